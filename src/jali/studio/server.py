"""The server of the studio: it listens on loopback alone, and stops when it is asked to or when nobody looks."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jali.errors import InputError

LOOPBACK = "127.0.0.1"
LOOKS = 1.0
"""Seconds between two looks at whether anybody is there."""


def require_studio() -> None:
    """Raise InputError where the packages of the studio are not installed."""
    from importlib.util import find_spec

    missing = [name for name in ("starlette", "uvicorn", "matplotlib") if find_spec(name) is None]
    if missing:
        what = f"the studio needs {', '.join(missing)}, which is not installed"
        raise InputError(what, do='pip install "jali[studio]"')


def serve(
    root: Path, data: Path | None, *, first_job: Callable[[Any, str, str], str], port: int = 0,
    announce: Callable[[str], None], opened: Callable[[str], None] | None = None, stop_after: float | None = None,
) -> None:  # fmt: skip
    """Run the studio until it is stopped; `announce` is told each address, `opened` the first one.

    Only files below `root` are read or written. `stop_after` minutes without a page it stops by itself.
    """
    require_studio()
    from jali.studio.guard import Folder
    from jali.studio.session import Session
    from jali.studio.views import LANES

    session = Session(Folder(root), first_job, LANES)
    try:
        if data is not None:
            session.open(data)
        with _listening(port) as listening:
            asyncio.run(_run(session, listening, announce, opened, stop_after))
    finally:
        session.close()


def _listening(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
        found.listen(128)
    except (OSError, OverflowError) as problem:
        found.close()
        why = getattr(problem, "strerror", None) or "no such port"
        raise InputError(f"cannot listen on port {port}", got=why, do="choose another one, or 0 for any") from None
    return found


async def _run(
    session: Any, listening: socket.socket, announce: Callable[[str], None], opened: Callable[[str], None] | None,
    stop_after: float | None,
) -> None:  # fmt: skip
    import uvicorn

    from jali.studio.app import application
    from jali.studio.guard import Guard, Keys

    port = listening.getsockname()[1]
    keys = Keys()

    def address(token: str) -> str:
        return f"http://{LOOPBACK}:{port}/?token={token}"

    guard = Guard(application(session), keys=keys, port=port, invited=lambda token: announce(address(token)))
    server = uvicorn.Server(uvicorn.Config(
        guard, log_level="critical", access_log=False, lifespan="off", server_header=False, date_header=False,
        timeout_graceful_shutdown=1, timeout_keep_alive=5, h11_max_incomplete_event_size=64 << 10,
        http="h11", ws="none",
    ))  # fmt: skip
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]

    def stop() -> None:
        session.stopping.set()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, stop)
    first = address(keys.invite())
    announce(first)
    watching = asyncio.create_task(_watch(session, guard, stop, stop_after))
    if opened is not None:
        loop.run_in_executor(None, opened, first)
    try:
        await server.serve(sockets=[listening])
    finally:
        watching.cancel()


async def _watch(session: Any, guard: Any, stop: Callable[[], None], stop_after: float | None) -> None:
    """Stop when no page was there for so many minutes and nothing is being made."""
    while stop_after is not None:
        await asyncio.sleep(min(LOOKS, stop_after * 60))
        if session.listeners or any(run.status == "running" for run in session.runs.values()):
            guard.last = time.monotonic()
        elif time.monotonic() - guard.last > stop_after * 60:
            stop()
            return
