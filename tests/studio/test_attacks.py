"""Attacks on a studio that runs: nothing leaks, nothing is lost, and the page says what happened."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from studio.running import MARK, Client, Started

pytestmark = pytest.mark.slow
VALUES = ("Person Number", "asthma", "10000", "people.csv")


def refused(client: Client, method: str, path: str, body: str | None = None, **headers: str) -> int:
    """The status of a request that must tell nothing of the table."""
    status, text, _ = client.raw(method, path, body, **headers)
    assert status >= 400
    assert not [value for value in VALUES if value in text], text
    return status


def test_who_has_no_key_learns_nothing(studio: Started) -> None:
    """Wrong Host, wrong Origin, another site, no cookie, no token of the tab: each alone is refused."""
    client = studio.client()
    for path in ("/", "/api/state", "/api/views/data", "/static/shell.js", "/?token=guess", "/api/events"):
        assert refused(client, "GET", path) == 403
    client.enter()
    client.view("data")
    for host in ("evil.example", f"evil.example:{client.port}", "127.0.0.1", f"127.0.0.1:{client.port}.evil.example"):
        assert refused(client, "GET", "/api/state", **client.own(Host=host)) == 421
    for path in ("/api/state", "/api/views/data", "/api/events"):
        assert refused(client, "GET", path, **client.own(Cookie="")) == 403
        assert refused(client, "GET", path, **client.own(X_Jali_Tab="")) == 403
        assert refused(client, "GET", path, **client.own(X_Jali_Tab="0" * 43)) == 403
        assert refused(client, "GET", path, **client.own(Origin="http://evil.example")) == 403
        assert refused(client, "GET", path, **client.own(Origin=f"http://127.0.0.1:{client.port + 1}")) == 403
        assert refused(client, "GET", path, **client.own(Sec_Fetch_Site="cross-site")) == 403
    before = client.state()
    role = json.dumps({"column": "age", "value": "left out"})
    for change in ({"Origin": ""}, {"Origin": "null"}, {"Cookie": ""}, {"X_Jali_Tab": ""}):
        assert refused(client, "POST", "/api/act/data/role", role, **client.own("POST", **change)) == 403
    assert refused(client, "DELETE", "/api/state", **client.own("POST")) == 405
    assert client.state() == before


def test_a_first_address_opens_once(studio: Started) -> None:
    """Who saw it later, in a list of processes or a history, gets nothing; the holder reads a new one."""
    client = studio.client().enter()
    assert refused(client, "GET", client.first) == 403
    assert studio.process.stdout is not None
    again = Client(studio.process.stdout.readline().strip().rpartition(" ")[2]).enter()
    assert "age" in again.view("data")


def test_the_cookie_alone_gives_no_page_with_data(studio: Started) -> None:
    """A server on another port of this machine sees the cookie: with it one gets the frame, and no token of a tab."""
    client = studio.client().enter()
    client.view("data")
    status, text, headers = client.raw("GET", "/", Cookie=client.cookie)
    assert status == 200
    assert client.tab not in text
    assert not [value for value in VALUES if value in text]
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def listening(process: int) -> dict[int, str]:
    """The TCP sockets that a process and those below it listen on: the address of each port, as the kernel has it."""
    own, found = set(), {}
    for link in [link for one in family(process) for link in Path(f"/proc/{one}/fd").iterdir()]:
        with contextlib.suppress(FileNotFoundError):  # which was closed meanwhile
            own.add(os.readlink(link))
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:  # LISTEN
                address, _, port = fields[1].partition(":")
                found[int(port, 16)] = address
    return found


def family(process: int) -> list[int]:
    """A process and those below it."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(one for child in children for one in family(int(child)))]


def test_a_scan_of_ports_finds_one_on_loopback_that_says_nothing(studio: Started) -> None:
    """Other machines find no port; another user of this one finds one, no key in the list of processes, no data."""
    client = studio.client()
    Client(studio.address).enter().view("data")  # the worker runs too
    assert listening(studio.process.pid) == {client.port: "0100007F"}
    for one in family(studio.process.pid):
        assert client.first.partition("=")[2] not in Path(f"/proc/{one}/cmdline").read_text()
    for knock in (b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"HELP\r\n\r\n", b"\x00" * 64):
        with socket.create_connection(("127.0.0.1", client.port), timeout=5) as scan:
            scan.sendall(knock)
            scan.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda scan=scan: scan.recv(1 << 16), b"")).decode()  # type: ignore[misc]
        assert not [value for value in (*VALUES, "jali", "uvicorn") if value in answer], answer


def test_files_outside_the_folder_are_out_of_reach(studio: Started, people: Path, tmp_path: Path) -> None:
    """Neither dots, nor whole paths, nor a link lead out; a job that names such a file does not run."""
    client = studio.client().enter()
    client.view("data")
    outside = tmp_path / "outside"
    outside.mkdir()
    (people.parent / "link").symlink_to(outside)
    fields = {"report": "r.html", "job": "j.toml", "decision": "publish", "by": "me"}
    for name in ("../outside/release", str(outside / "release"), "link/release", "..", ".", "", "a\0b", ".hidden"):
        status, told = client.act("decide", "save", release=name, **fields)
        assert status == 422, name
        assert told["error"]
    for path in ("/static/../guard.py", "/static/..%2fguard.py", "/static/%2e%2e/app.py", "/static//etc/passwd"):
        assert refused(client, "GET", path, **client.own()) in (404, 403)
    assert not [*outside.iterdir()]
    assert client.state()["at"] == 0


def test_no_name_and_no_value_becomes_part_of_the_page(studio: Started) -> None:
    """A column that is called a script and values that are elements stay text."""
    client = studio.client().enter()
    text = client.view("data")
    assert "onerror" in text
    assert MARK not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
    status, _ = client.act("data", "role", column=MARK, value="quasi")
    assert status == 200
    assert MARK not in client.view("decide")


def test_nonsense_is_refused_in_one_line(studio: Started) -> None:
    """Wrong names, wrong types, no JSON, deep JSON: 422 and a line; the state stays."""
    client = studio.client().enter()
    client.view("data")
    before = client.state()
    for arguments in ({"column": "nobody", "value": "quasi"}, {"column": "age", "value": "king"}, {"column": 3}, {}):
        status, told = client.act("data", "role", **arguments)
        assert status == 422, arguments
        assert "\n" not in told["error"]
    for body in ("", "[]", "no json", "[" * 100_000, '{"a": "\\ud800"}'):
        status, text, _ = client.raw("POST", "/api/act/data/role", body, **client.own("POST"))
        assert status == 422, text
    assert client.act("data", "nothing")[0] == 422
    for wrong in ({"at": 99}, {"at": "x"}, {"at": True}, {"by": "x"}, {"by": [1]}, {"by": None}):
        assert client.act("data", "step", **wrong)[0] == 422, wrong
    assert client.state() == before


def test_a_huge_body_is_refused_before_it_is_read(studio: Started) -> None:
    """Two gigabytes are announced, or come in pieces: the answer comes after little of it."""
    client = studio.client().enter()
    head = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in client.own("POST").items())
    head = f"POST /api/act/data/role HTTP/1.1\r\nHost: {client.host}\r\n{head}"
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as link:
        link.sendall(f"{head}Content-Length: {2 << 30}\r\n\r\n".encode())
        assert link.recv(100).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as link:
        link.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        piece, sent = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n", 0
        try:
            while sent < 2 << 30:
                link.sendall(piece)
                sent += 1 << 20
        except OSError:
            pass  # the other side has closed
        assert sent < 200 << 20
    assert client.state()["open"]


def kept_job(people: Path) -> dict[str, Any]:
    """The job that the history beside the table ends with."""
    kept = json.loads(people.with_name("people.csv.studio.json").read_text())
    return dict(kept["history"][kept["at"]]["job"])


def test_a_hundred_requests_at_once_are_answered(studio: Started, people: Path) -> None:
    """Fifty edits and fifty views from a hundred connections: each edit is one step after another, in the file too."""
    client = studio.client().enter()
    client.view("data")
    before = len(kept_job(people).get("principles", []))

    def one(at: int) -> int:
        if at % 2:
            return client.raw("GET", "/api/views/data", **client.own())[0]
        return client.act("promises", "add", name="KAnonymity")[0]

    with ThreadPoolExecutor(100) as many:
        assert set(many.map(one, range(100))) == {200}
    state = client.state()
    assert state["at"] == len(state["history"]) - 1 == 50
    assert len(kept_job(people)["principles"]) == before + 50


def worker_of(studio: Started) -> int:
    """The process in which the studio works."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            named = b"spawn_main" in (place / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        if parent == studio.process.pid and named:
            found.append(int(place.name))
    return found[-1]


def test_a_worker_that_is_killed_is_noticed_and_replaced(studio: Started) -> None:
    """The page says that it ended; the same task runs in another one, and the job is as it was."""
    client = studio.client().enter()
    client.view("data")
    client.act("data", "role", column="zip", value="left out")
    client.act("decide", "make")
    os.kill(worker_of(studio), signal.SIGKILL)
    assert "worker process ended" in client.view("decide", until="worker process ended")
    assert client.state()["at"] == 1
    assert client.act("decide", "make")[0] == 200
    assert "What an attacker can do" in client.view("decide")


def test_a_server_that_is_killed_loses_nothing(studio: Started, people: Path, start: Callable[..., Started]) -> None:
    """Its worker ends with it; another studio finds the job, its history and what had been undone."""
    client = studio.client().enter()
    client.view("data")
    for value in ("sensitive", "other", "quasi"):
        assert client.act("data", "role", column="disease", value=value)[0] == 200
    client.act("data", "step", by=-1)
    before, worker = client.state(), worker_of(studio)
    studio.process.kill()
    studio.process.wait()
    kept = people.with_name("people.csv.studio.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    until = time.monotonic() + 10
    while Path(f"/proc/{worker}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()
    again = start(str(people)).client().enter()
    after = again.state()
    assert [after[key] for key in ("at", "history", "table")] == [before[key] for key in ("at", "history", "table")]


def test_two_studios_do_not_write_one_history(studio: Started, people: Path) -> None:
    """The second one says so in one line and ends."""
    studio.client().enter()
    second = Started(people.parent, str(people))
    _, _, err = second.end()
    assert second.process.returncode == 2
    assert "another studio has people.csv open" in err


def test_it_stops_cleanly_and_says_no_value(studio: Started) -> None:
    """Ctrl-C ends it with code 0; what it printed names the address and no value of the table."""
    client = studio.client().enter()
    client.view("data")
    client.act("decide", "make")
    client.view("decide")
    code, out, err = studio.end()
    assert code == 0
    assert not [value for value in ("Person Number", "asthma", "flu") if value in out + err]
    assert "Traceback" not in err


def test_it_stops_by_itself_where_nobody_looks(start: Callable[..., Started], people: Path) -> None:
    """After the minutes that were asked for."""
    lonely = start(str(people), "--stop-after", "0.02")
    assert lonely.process.wait(timeout=30) == 0
