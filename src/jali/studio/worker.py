"""The worker: a process of its own that holds the table and does what takes long, so that the page never waits.

Tasks are functions of the views: `task(desk, **arguments)` returns what JSON can hold. A long task runs beside one that
looks at a single release and beside quick ones, each sort one after the other. A task is stopped at its next step; a
worker that does not come to one is killed, and another one reads the table again. What fails says one line without
values of the table.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, get_args

from jali.errors import InternalError, JaliError
from jali.studio.guard import Folder, place_of
from jali.studio.state import Document, checked, read_by

if TYPE_CHECKING:
    from jali.encoding.table import Table
    from jali.job import Job
    from jali.releases.base import Release
    from jali.sources.tables import Whole

Lane = Literal["quick", "look", "long"]
Task = Callable[..., Any]
FirstJob = Callable[[Any, str, str], str]
"""A first job for a profile: `job_text` of the command line."""
PATIENCE = 1.0
"""Seconds in which a task that is stopped may come to its next step."""
NEWS = 0.1
"""Seconds between two messages about progress."""


class StoppedError(Exception):
    """A task was stopped at a step."""


# -- in the worker ---------------------------------------------------------------------------------------------------


@dataclass
class Desk:
    """What the worker holds: the table, read once, and the release that was made last."""

    folder: Folder
    data: Path
    first_job: FirstJob
    tell: Callable[..., None] = print  # (kind, …) about the task that runs in this thread; the worker sets it
    _compared: tuple[Document, Mapping[str, Any]] | None = None  # the last comparison, and how its table is read
    _kept: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _locks: dict[str, Any] = field(default_factory=dict)

    def kept(self, what: str, key: object, make: Callable[[], Any]) -> Any:
        """Something that is made once for a key; only that of the last key is kept."""
        written = json.dumps(key, sort_keys=True, default=str)
        with self._locks.setdefault(what, threading.RLock()):  # a quick task does not wait for another sort of thing
            if self._kept.get(what, ("", None))[0] != written:
                self._kept.pop(what, None)
                self._kept[what] = (written, make())
            return self._kept[what][1]

    def whole(self) -> Whole:
        """The table with all its columns, before anybody has said what they are for."""
        from jali.sources.tables import whole

        return self.kept("whole", str(self.data), lambda: whole(self.data))  # type: ignore[no-any-return]

    def job(self, document: Document) -> Job:
        """A job that can run."""
        return checked(document, self.data.parent, self.folder)

    def table(self, document: Document) -> Table:
        """The table as a job reads it; kept while only its promises and methods change."""
        return self.kept("table", read_by(document), lambda: self.job(document).table())  # type: ignore[no-any-return]

    def release(self, document: Document) -> Release:
        """The release that a job asks for; kept until another one is asked for."""
        key = {name: value for name, value in document.items() if name not in ("output", "policy", "frontier")}
        job = self.job(document)
        return self.kept("release", key, lambda: job.run(self.table(document), on_step=self.step))  # type: ignore[no-any-return]

    def compare(self, document: Document, found: Mapping[str, Any]) -> None:
        """Keep a comparison, as `Frontier.to_dict` says it, for what the verdict says of costs."""
        self._compared = (read_by(document), found)

    def compared(self, document: Document) -> Mapping[str, Any] | None:
        """The last comparison of the table as a job reads it."""
        return self._compared[1] if self._compared and self._compared[0] == read_by(document) else None

    @property
    def drawing(self) -> Any:
        """To be held while something is drawn: matplotlib draws one picture at a time."""
        return self._locks.setdefault("drawing", threading.RLock())

    def step(self, done: int, total: int) -> None:
        """How far the task is: an `on_step`, which also stops the work when that was asked for."""
        self.tell("step", int(done), int(total))

    def say(self, text: str) -> None:
        """What the task is doing now, in words."""
        self.tell("said", text)

    def part(self, result: Any) -> None:
        """A result that can be shown before the task ends."""
        self.tell("part", result)


def work(pipe: Connection, desk: Desk, stopped: Any, lanes: Mapping[str, Lane]) -> None:
    """The life of the worker: tasks come through the pipe, and what becomes of them goes back."""
    import signal

    from jali.studio.views import TASKS

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends the worker
    os.nice(5)  # the page comes first
    sending = threading.Lock()
    own = threading.local()

    def send(*message: Any) -> None:
        with sending:
            pipe.send(message)

    def tell(kind: str, *more: Any) -> None:
        if getattr(own, "number", None) is None:
            return  # a thread of somebody else's
        if own.number == stopped.value:
            raise StoppedError
        now = time.monotonic()
        if kind != "step" or now - own.last > NEWS or more[0] == more[1]:
            own.last = now
            send(own.number, kind, *more)

    def run(queue: SimpleQueue[Any]) -> None:
        while True:
            own.number, name, arguments = queue.get()
            own.last = 0.0
            send(own.number, *_outcome(lambda: TASKS[name](desk, **arguments)))  # noqa: B023 (called at once)
            _give_back()

    desk.tell = tell
    queues: dict[str, SimpleQueue[Any]] = {lane: SimpleQueue() for lane in get_args(Lane)}
    for queue in queues.values():
        threading.Thread(target=run, args=(queue,), daemon=True).start()
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        while True:
            number, name, arguments = pipe.recv()
            queues[lanes[name]].put((number, name, arguments))
    except (EOFError, OSError):
        os._exit(0)


def _give_back() -> None:
    """Give memory that a task has freed back to the system: the allocators would keep it for the next one."""
    import ctypes

    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError, TypeError):  # which other systems than Linux have not
        ctypes.CDLL(None).malloc_trim(0)


def _outcome(task: Callable[[], Any]) -> tuple[str, Any]:
    """What a task gave: its result, that it was stopped, or one line that says what was wrong."""
    try:
        return "done", task()
    except StoppedError:
        return "stopped", None
    except InternalError as problem:
        return "failed", f"{problem}; please report this bug"
    except JaliError as problem:
        return "failed", str(problem)
    except MemoryError:
        return "failed", "there is not enough memory"
    except OSError as problem:
        return "failed", f"cannot read or write: {problem.strerror or type(problem).__name__}"
    except Exception as problem:
        return "failed", place_of(problem)


def _follow_parent() -> None:
    """End with the server, even where it was killed."""
    parent = mp.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


# -- in the server ---------------------------------------------------------------------------------------------------


class Worker:
    """The server's side: sends tasks, hears what becomes of them, and starts another process when one has ended."""

    def __init__(self, desk: Desk, lanes: Mapping[str, Lane], hear: Callable[..., None]) -> None:
        self._desk = desk  # empty: it is filled in the process
        self._lanes, self._hear = lanes, hear
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._stopped: Any = None

    @property
    def pid(self) -> int | None:
        """The process that works now."""
        return None if self._process is None else self._process.pid

    def send(self, number: int, name: str, arguments: Mapping[str, Any]) -> None:
        """Have a task done."""
        with self._lock:
            if self._process is None or not self._process.is_alive():
                self._start()
            assert self._pipe is not None
            self._pipe.send((number, name, dict(arguments)))

    def _start(self) -> None:
        context = mp.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._stopped = context.Value("q", -1)
        self._process = context.Process(
            target=work, args=(theirs, self._desk, self._stopped, self._lanes), daemon=True, name="jali studio worker"
        )
        self._process.start()
        theirs.close()
        threading.Thread(target=self._listen, args=(self._pipe, self._process), daemon=True).start()

    def _listen(self, pipe: Connection, process: Any) -> None:
        try:
            while True:
                self._hear(*pipe.recv())
        except (EOFError, OSError):
            process.join()
            self._hear(None, "ended", process.exitcode)

    def stop(self, number: int, *, is_over: Callable[[], bool]) -> None:
        """Stop a task at its next step, or with the process where it comes to none."""
        with self._lock:
            if self._stopped is None:
                return
            self._stopped.value = number
            process = self._process
        until = time.monotonic() + PATIENCE
        while not is_over() and time.monotonic() < until:
            time.sleep(0.02)
        if not is_over():
            process.kill()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.join()
