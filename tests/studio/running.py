"""A studio in a process of its own, and a client that speaks to it as a page does, or as an attacker would."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MARK = "<script>alert(1)</script>"
ROWS = 240


def table_text() -> str:
    """People with an age, a postal code, a name, a column whose name is a script, and values that are scripts."""
    lines = [f'name,age,zip,"{MARK}",disease']
    for i in range(ROWS):
        disease = ("flu", "asthma", "<img src=x onerror=alert(2)>", "none")[i % 4]
        lines.append(f"Person Number{i},{20 + i % 40},{10000 + i % 7},{'ab'[i % 2]},{disease}")
    return "\n".join(lines) + "\n"


class Client:
    """A page's requests, each of which can be forged."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://([\d.]+):(\d+)(/\S*)", address)
        assert found is not None
        self.host, self.port, self.first = f"{found[1]}:{found[2]}", int(found[2]), found[3]
        self.cookie = self.tab = ""

    def raw(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, dict[str, str]]:
        """A request with these headers and no others but Host."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}
        finally:
            connection.close()

    def enter(self) -> Client:
        """Use the first address."""
        status, _, headers = self.raw("GET", self.first)
        assert status == 303
        self.cookie, self.tab = headers["set-cookie"].split(";")[0], headers["location"].partition("#")[2]
        return self

    def own(self, method: str = "GET", **changes: str) -> dict[str, str]:
        """The headers of a page of ours, with changes; "" leaves one out."""
        every = {"Cookie": self.cookie, "X_Jali_Tab": self.tab}
        every |= {"Origin": f"http://{self.host}"} if method == "POST" else {}
        return {name: value for name, value in (every | changes).items() if value}

    def get(self, path: str) -> str:
        status, text, _ = self.raw("GET", path, **self.own())
        assert status == 200, (status, text)
        return text

    def act(self, view: str, action: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
        status, text, _ = self.raw("POST", f"/api/act/{view}/{action}", json.dumps(arguments), **self.own("POST"))
        return status, json.loads(text)

    def view(self, name: str, *, until: str = "", seconds: float = 60) -> str:
        """A view, when it shows what is waited for, or at least a result."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = self.get(f"/api/views/{name}")
            if (until in text) if until else "aria-busy" not in text:
                return text
            time.sleep(0.1)
        raise AssertionError(f"{name} does not show {until!r}: {text[:2000]}")

    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.get("/api/state")))


class Started:
    """A studio in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jali", "studio", *options, "--no-browser"], cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().rpartition(" ")[2]

    def client(self) -> Client:
        return Client(self.address)

    def end(self) -> tuple[int, str, str]:
        """Stop it as Ctrl-C does: its exit code, and what it has said."""
        if self.process.poll() is None:
            self.process.send_signal(2)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err
