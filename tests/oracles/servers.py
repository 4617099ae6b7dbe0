"""Servers that tests start themselves, talked to without jali."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def run(self, command: str, *values: Any) -> list[Any]:
        """What it answers to somebody who knows nothing of jali."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            found = connection.execute(command, values or None)
            return found.fetchall() if found.description else []
