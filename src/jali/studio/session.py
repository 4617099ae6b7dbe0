"""A session of the studio: its state, its worker, the tasks that run and their results, and who listens."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jali.core.files import job_data, locked
from jali.errors import InputError
from jali.studio.guard import Folder
from jali.studio.state import Document, State, load_checks
from jali.studio.worker import Desk, FirstJob, Lane, Worker

KEPT = 64
"""Results that are kept; the one that was asked for longest ago goes first."""
WAITS = 60.0
"""Seconds in which an action tries something before it is kept."""
LOST = "the worker process ended, as when it is killed or memory runs out; your job is kept, so try again"
STOPPED = "stopped"
FIRST = "profile"
"""The task that comes first: its result has a job to begin with."""

Status = Literal["running", "done", "failed", "stopped"]


@dataclass
class Run:
    """A task that was asked for, and what became of it."""

    number: int
    task: str
    key: str
    status: Status = "running"
    said: str = ""
    done: int = 0
    total: int = 0
    result: Any = None  # when it is done, or the last part of it

    def to_dict(self) -> dict[str, Any]:
        """What a page shows of it: no result, which the views render."""
        return {name: getattr(self, name) for name in ("number", "task", "status", "said", "done", "total")}


class Session:
    """What the application works on. Views read `job`, and ask `want` for results."""

    def __init__(self, folder: Folder, first_job: FirstJob, lanes: Mapping[str, Lane]) -> None:
        self.folder, self.first_job, self.lanes = folder, first_job, lanes
        self.state: State | None = None
        self.worker: Worker | None = None
        self.runs: OrderedDict[int, Run] = OrderedDict()
        self.version = 0
        self._number = 0
        self.acting = threading.Lock()  # held by an action from the job that it reads to the one that it records
        self._lock = threading.RLock()
        self._listeners: set[asyncio.Queue[dict[str, Any]]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._held = ExitStack()
        self.stopping = threading.Event()  # the server is about to end

    # -- the state ---------------------------------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        """Open a table below the folder, or the table of a job there; its history goes on where it was."""
        if self.state is not None:
            raise InputError("a table is open already", do="start another studio for another table")
        found = self.folder.inside(path)
        job: Document | None = None
        if found.suffix == ".toml":
            job = job_data(found)
            found = self.folder.inside(found.parent / str(job.get("input", "")))
        if not found.is_file():
            raise InputError(f"no file {path}", do="name a file with a table")
        self._hold(found)
        state = State.opened(self.folder, found)
        if job is not None:
            state.record("opened the job", job)
        self.state = state
        self.worker = Worker(Desk(self.folder, found, self.first_job), self.lanes, self._hear)
        self.want(FIRST, person=state.job.get("person"))
        self.changed()

    def _hold(self, data: Path) -> None:
        """Keep a second studio away from the same history."""
        try:
            self._held.enter_context(locked(data.with_name(f".{data.name}.studio-lock")))
        except BlockingIOError:
            raise InputError(f"another studio has {data.name} open", do="go to its page, or stop it first") from None
        except OSError as problem:
            raise InputError(f"cannot write to {data.parent}", got=problem.strerror, do="copy the table") from None

    @property
    def opened(self) -> State:
        """The state, where a table is open."""
        if self.state is None:
            raise InputError("no table is open", do="choose one first")
        return self.state

    @property
    def job(self) -> Document:
        """A copy of the job as it stands; {} before there is one."""
        return {} if self.state is None else self.state.job

    def record(self, said: str, job: Document) -> None:
        """Make this the job, and tell every tab."""
        with self._lock:
            self.opened.record(said, job)
            self.changed()

    def step(self, by: int | None = None, *, at: int | None = None) -> None:
        """Go back or forward in the history, or to a step of it."""
        with self._lock:
            state = self.opened
            self.opened.step(state.at + (by or 0) if at is None else at)
            self.changed()

    def changed(self) -> None:
        """Tell every tab that the state is another one."""
        self.version += 1
        self._tell({"event": "state", "version": self.version})

    def to_dict(self) -> dict[str, Any]:
        """What the frame of the page shows."""
        state = self.state
        running = [run.to_dict() for run in self.runs.values() if run.status == "running"]
        told: dict[str, Any] = {"version": self.version, "running": running, "open": state is not None}
        if state is not None:
            said = [text for text, _ in state.history]
            told |= {"table": self.folder.relative(state.data), "at": state.at, "history": said}
            told |= {"problem": state.problem() if state.history else None}
        return told

    # -- tasks -------------------------------------------------------------------------------------------------------

    def want(self, task: str, **arguments: Any) -> Run:
        """The run of a task with these arguments: the one that there is, else a new one that begins now."""
        key = json.dumps([task, arguments], sort_keys=True, default=str)
        with self._lock:
            for run in self.runs.values():
                if run.key == key and run.status != "stopped":
                    self.runs.move_to_end(run.number)
                    return run
            return self._begin(task, key, arguments)

    def find(self, task: str, **arguments: Any) -> Run | None:
        """The last run of a task with these arguments; it begins nothing."""
        key = json.dumps([task, arguments], sort_keys=True, default=str)
        return next((run for run in reversed(self.runs.values()) if run.key == key), None)

    def again(self, task: str, **arguments: Any) -> Run:
        """A new run of a task, whatever became of an earlier one, unless that is still going on."""
        key = json.dumps([task, arguments], sort_keys=True, default=str)
        with self._lock:
            for run in [run for run in self.runs.values() if run.key == key]:
                if run.status == "running":
                    return run
                del self.runs[run.number]
            return self._begin(task, key, arguments)

    def waited(self, run: Run, seconds: float = WAITS) -> Run:
        """The run, when it has ended, or after these seconds: for what an action tries before it records it."""
        until = time.monotonic() + seconds
        while run.status == "running" and time.monotonic() < until:
            time.sleep(0.01)
        return run

    def _begin(self, task: str, key: str, arguments: Mapping[str, Any]) -> Run:
        if task not in self.lanes:
            raise InputError(f'no task "{task}"')
        if self.worker is None:
            raise InputError("no table is open", do="choose one first")
        self._number += 1
        run = Run(self._number, task, key)
        self.runs[run.number] = run
        for old in [run for run in self.runs.values() if run.status != "running"][:-KEPT]:
            del self.runs[old.number]
        self._tell({"event": "run", **run.to_dict()})
        self.worker.send(run.number, task, arguments)
        return run

    def stop(self, number: int) -> None:
        """Stop a run; it takes at most a little longer than the worker's patience."""
        run = self.runs.get(number)
        if run is None or run.status != "running" or self.worker is None:
            return
        run.said = "stopping"
        self.worker.stop(number, is_over=lambda: run.status != "running")

    def _hear(self, number: int | None, kind: str, *more: Any) -> None:
        """A message of the worker, in the thread that listens to it."""
        with self._lock:
            if number is None:
                self._lost()
                return
            run = self.runs.get(number)
            if run is None or run.status != "running":
                return
            match kind:
                case "step":
                    run.done, run.total = more
                case "said":
                    run.said, run.done, run.total = more[0], 0, 0
                case "part":
                    if run.task == FIRST and run.result is None:  # the first page is there, the next click is not
                        threading.Thread(target=load_checks, daemon=True).start()
                    run.result = more[0]
                case "done":
                    run.status, run.result = "done", more[0]
                    self._begin_history(run)
                case "failed":
                    run.status, run.said = "failed", more[0]
                case "stopped":
                    run.status, run.said = "stopped", STOPPED
            self._tell({"event": "part" if kind == "part" else "run", **run.to_dict()})

    def _begin_history(self, run: Run) -> None:
        """The first profile gives the job that the history begins with."""
        if run.task == FIRST and self.state is not None and not self.state.history:
            try:
                self.state.record("roles that jali suggests", run.result["job"])
                self.changed()
            except InputError as problem:
                run.status, run.said = "failed", str(problem)

    def _lost(self) -> None:
        """The worker has ended: what it was doing has failed, or was stopped."""
        for run in [run for run in self.runs.values() if run.status == "running"]:
            asked = run.said == "stopping"
            run.status, run.said = ("stopped", STOPPED) if asked else ("failed", LOST)
            self._tell({"event": "run", **run.to_dict()})

    # -- tabs --------------------------------------------------------------------------------------------------------

    @property
    def listeners(self) -> int:
        """How many tabs are open."""
        return len(self._listeners)

    def _tell(self, news: dict[str, Any]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._spread, news)

    def _spread(self, news: dict[str, Any]) -> None:
        for queue in self._listeners:
            queue.put_nowait(news)

    async def news(self) -> AsyncIterator[dict[str, Any]]:
        """What happens from now on, with a sign of life every few seconds."""
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            yield {"event": "hello", "version": self.version}
            while not self.stopping.is_set():
                try:
                    yield await asyncio.wait_for(queue.get(), timeout=1)
                except TimeoutError:
                    yield {"event": "alive"}
            yield {"event": "bye"}
        finally:
            self._listeners.discard(queue)

    def close(self) -> None:
        """End the worker, and let others have the history."""
        if self.worker is not None:
            self.worker.close()
        self._held.close()
