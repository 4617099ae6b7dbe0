"""Progress of what takes long: a bar on a terminal after a second, nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jali.errors import InputError

Step = Callable[[int, int], None]
"""Called with how much is done and how much there is; raising from it stops the work."""


@contextmanager
def watched(title: str, on_step: Step | None) -> Iterator[Step]:
    """The caller's `on_step`, or a bar on a terminal once the work has taken a second."""
    if on_step is not None and not callable(on_step):
        do = "e.g. on_step=lambda done, total: None"
        raise InputError("on_step must be a function", got=type(on_step).__name__, do=do)
    if on_step is not None or not sys.stderr.isatty():
        yield on_step or (lambda done, total: None)
        return
    started = time.monotonic()
    bar: list[Any] = []

    def step(done: int, total: int) -> None:
        if not bar and time.monotonic() - started > 1:
            bar.append(_bar(title))
        if bar:
            progress, task = bar[0]
            progress.update(task, completed=done, total=total)

    try:
        yield step
    finally:
        if bar:
            bar[0][0].stop()


def _bar(title: str) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    progress.start()
    return progress, progress.add_task(title)
