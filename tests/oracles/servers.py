"""Servers that tests start themselves, talked to without jali."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@dataclass
class Server:
    """A Postgres server of our own: its own folder, its own port on this machine, a password."""

    programs: Path
    folder: Path
    port: int
    user: str | None  # whom it runs as, where this process is root's: Postgres refuses root
    process: subprocess.Popen[bytes] | None = None

    def url(self, table: str | None = None) -> str:
        """The address of a table."""
        return f"postgresql://jali@127.0.0.1:{self.port}/postgres" + ("" if table is None else f"?table={table}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [self.programs / "postgres", "-D", self.folder / "data", "-p", str(self.port), "-h", "127.0.0.1",
                   "-k", self.folder, "-c", "fsync=on"]  # fmt: skip
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        self.process = subprocess.Popen(command, user=self.user, **quiet)
        for _ in range(300):
            if self.answers():
                return
            time.sleep(0.1)
        raise RuntimeError("Postgres does not start")

    def answers(self) -> bool:
        """Whether it takes connections."""
        asked = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, check=False).returncode == 0

    def kill(self) -> None:
        """kill -9 for the server and all its workers."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):  # it was killed before
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def run(self, command: str, *values: Any) -> list[Any]:
        """What it answers to somebody who knows nothing of jali."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            found = connection.execute(command, values or None)
            return found.fetchall() if found.description else []


class _Objects(BaseHTTPRequestHandler):
    """Folders below `root` as buckets of S3, to be read: an object, a part of one, a list of keys."""

    root: Path

    def log_message(self, *said: Any) -> None:
        """Nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).strip("/").partition("/")
        path = self.root / bucket
        if not path.is_dir():
            self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
        elif not key:
            self._answer(200, self._listed(path, parse_qs(parts.query)))
        elif not (path / key).is_file():
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            self._part((path / key).read_bytes())

    def _part(self, whole: bytes) -> None:
        asked = self.headers.get("Range")
        if asked is None:
            return self._answer(200, whole)
        first, last = (int(each) for each in asked.removeprefix("bytes=").split("-"))
        part = whole[first : last + 1]
        shown = f"bytes {first}-{first + len(part) - 1}/{len(whole)}"
        return self._answer(206, part, **{"Content-Range": shown})

    def _listed(self, bucket: Path, asked: dict[str, list[str]]) -> bytes:
        begin = asked.get("prefix", [""])[0]
        names = sorted(str(each.relative_to(bucket)) for each in bucket.rglob("*") if each.is_file())
        found = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{(bucket / name).stat().st_size}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for name in names if name.startswith(begin)
        )  # fmt: skip
        listed = f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
        return listed.encode()

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "ETag": '"one"', **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@contextmanager
def buckets(root: Path) -> Iterator[str]:
    """Serve the folders below `root` as buckets of S3; gives the address of the server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Objects", (_Objects,), {"root": root}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
