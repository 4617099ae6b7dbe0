"""kill -9 at any moment of a save: the target is the old one or the new one, whole, and the next save cleans up.

A child process counts its calls into the system, and all that it does in the modules that write, before and after
each, and kills itself at a chosen count; others are killed by the clock, wherever they are.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import jali
from jali.core import files as writing
from jali.core.files import put_content
from jali.releases.base import Release
from jali.releases.linked.private import read_keys

SECONDS = 60
WATCHED = ("core/files.py", "core/files.py")
BY_THE_CLOCK = 0.15
"""The share of the points at which the clock kills."""


@dataclass(frozen=True)
class Scene:
    """Something that is saved over something older, or where nothing was."""

    name: str
    before: Callable[[Path], Any] | None
    save: Callable[[Path], Any]
    state: Callable[[Path], str]  # "old", "new" or "none"; raises where it is neither
    exchange: bool = True
    expected: tuple[str, ...] = ("out",)


@dataclass
class Killed:
    """What came of it."""

    points: int = 0
    counted: str = ""
    wrong: list[str] = field(default_factory=list)


def scenes() -> list[Scene]:
    """New releases, replaced ones with and without an exchange in one step, one with a private file, and a file."""
    data = pa.table({"zip": ["1", "1", "2", "2"] * 3, "age": [20, 21, 22, 23] * 3, "ill": ["flu", "cold"] * 6})
    table = jali.table(data, quasi={"zip": jali.mask(), "age": jali.bands(2, 4)}, sensitive=["ill"])
    old, new = (jali.generalize(table, [jali.KAnonymity(k)]) for k in (2, 3))
    angels = [jali.angelize(table, jali.DistinctDiversity(2), k=k) for k in (2, 3)]

    def kept(folder: Path, keys: Path) -> Callable[[Release], Path]:
        return lambda angel: angel.save(folder, overwrite=True, private=keys)  # type: ignore[call-arg]

    def saved(release: Release) -> Callable[[Path], Any]:
        return lambda place: release.save(place / "out", overwrite=True)

    def kept_beside(release: Release) -> Callable[[Path], Any]:
        return lambda place: kept(place / "out", place / "keys.parquet")(release)

    def file(text: str) -> Callable[[Path], Any]:
        return lambda place: put_content(place / "out", text * 5000, overwrite=True)

    def file_state(place: Path) -> str:
        target = place / "out"
        return {"old" * 5000: "old", "new" * 5000: "new"}[target.read_text()] if target.exists() else "none"

    return [
        Scene("new", None, saved(new), _state),
        Scene("replaced", saved(old), saved(new), _state),
        Scene("replaced in two steps", saved(old), saved(new), _state, exchange=False),
        Scene(
            "private", kept_beside(angels[0]), kept_beside(angels[1]), _angel_state, expected=("keys.parquet", "out")
        ),
        Scene("file", file("old"), file("new"), file_state),
    ]


def _state(place: Path) -> str:
    folder = place / "out"
    if not folder.exists() or not any(folder.iterdir()):
        return "none"
    jali.audit(folder)
    return {2: "old", 3: "new"}[next(p.k for p in jali.load(folder).principles if isinstance(p, jali.KAnonymity))]


def _angel_state(place: Path) -> str:
    read_keys(place / "keys.parquet")
    return _state(place)


def _in_child(scene: Scene, place: Path, at: int | None) -> int:
    """Save in a child process, which kills itself at an event or, without one, says how many there are."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            events = _counted(at)
            if not scene.exchange:
                writing._exchange = lambda first, second: False  # type: ignore[assignment]
            scene.save(place)
            sys.setprofile(None)
            os.write(writer, str(events[0]).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    _awaited(child)
    with os.fdopen(reader, "rb") as pipe:
        return int(pipe.read() or 0)


def _counted(at: int | None) -> list[int]:
    events = [0]

    def profile(frame: Any, event: str, argument: Any) -> None:
        system = event.startswith("c_") and getattr(argument, "__module__", None) == "posix"
        if system or os.path.basename(frame.f_code.co_filename) in WATCHED:
            events[0] += 1
            if events[0] == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(profile)
    return events


def _awaited(child: int) -> int:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError("a save did not end")


def _killed_by_the_clock(scene: Scene, place: Path, seconds: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            if not scene.exchange:
                writing._exchange = lambda first, second: False  # type: ignore[assignment]
            scene.save(place)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _awaited(child)


def _judged(scene: Scene, place: Path, label: str) -> str | None:
    """What is wrong after a kill, and after the next save, if anything."""
    allowed = {"old", "new"} if scene.before else {"none", "new"}
    try:
        found = scene.state(place)
        if found not in allowed and not (found == "none" and not scene.exchange):  # aside, until the next save
            return f"{label}: the target is {found}"
        if found == "none" and scene.before is not None:
            with writing.hold(place / "out"):
                pass
            if scene.state(place) != "old":
                return f"{label}: the old one is not put back"
        scene.save(place)
        if scene.state(place) != "new":
            return f"{label}: the next save did not take its place"
    except Exception as problem:
        return f"{label}: {type(problem).__name__}: {problem}"
    left = sorted(os.listdir(place))
    return None if left == sorted(scene.expected) else f"{label}: left behind {left}"


def run(seed: int, points: int) -> Killed:
    """Kill at so many points, in equal shares for each scene."""
    source, result, counted = random.Random(seed), Killed(), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        for scene in scenes():
            place = Path(name) / "place"
            share = -(-points // 5)

            def fresh(scene: Scene = scene, place: Path = place) -> None:
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir()
                if scene.before is not None:
                    scene.before(place)

            fresh()
            started = time.perf_counter()
            total = _in_child(scene, place, None)
            seconds = time.perf_counter() - started
            by_clock = max(1, int(share * BY_THE_CLOCK))
            chosen = sorted(source.sample(range(1, total + 1), min(share - by_clock, total)))
            for at in [*chosen, *([None] * by_clock)]:
                fresh()
                if at is not None:
                    label = f"{scene.name}, event {at} of {total}"
                    _in_child(scene, place, at)
                else:
                    after = source.uniform(0, seconds)
                    label = f"{scene.name}, after {after:.4f} s"
                    _killed_by_the_clock(scene, place, after)
                result.points += 1
                counted[scene.name] += 1
                if (wrong := _judged(scene, place, label)) is not None:
                    result.wrong.append(wrong)
                    print(f"seed {seed}: {wrong}", file=sys.stderr, flush=True)
    result.counted = ", ".join(f"{scene}: {n}" for scene, n in counted.items())
    return result
