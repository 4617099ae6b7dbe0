"""Files and folders: written whole or not at all, by one process at a time.

What is written is built under a hidden name beside its target, synced, and takes its place in one step. A lock beside
the target is held meanwhile; what a process that was killed has left there goes when the next one holds the place.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from jali.errors import InputError, path_of
from jali.locking import locked

_ELSEWHERE = "choose another place"


@dataclass(frozen=True)
class Place:
    """Where something will stand, and the hidden name under which it is built."""

    target: Path
    building: Path

    @property
    def new(self) -> Path:
        """Of a folder: what will take the target's place."""
        return self.building / "new"

    @property
    def old(self) -> Path:
        """Of a folder: what stood in the target's place, where the two cannot be exchanged in one step."""
        return self.building / "old"


_held: ContextVar[tuple[Place, ...]] = ContextVar("held", default=())
"""The places that are held already, so that whoever holds one before the work can write to it afterwards."""


@contextmanager
def hold(path: str | Path, *, parents: bool = False) -> Iterator[Place]:
    """Keep every other process from writing to a path; with `parents` missing folders above it are made.

    Held again within, it is the same place. In the end nothing is left but the target.
    """
    target = Path(os.path.realpath(path_of(path)))
    for place in _held.get():
        if place.target == target:
            try:
                yield place
            finally:
                _settled(place)  # what failed within may be tried again
            return
    with _refusing(path):
        made = [folder for folder in reversed(target.parents) if parents and not folder.exists()]
    try:
        with _refusing(path):
            for folder in made:
                folder.mkdir(exist_ok=True)
        with _only_holder(path, target) as place:
            token = _held.set((*_held.get(), place))
            try:
                yield place
            finally:
                _held.reset(token)
    finally:
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # it is in use
                folder.rmdir()


@contextmanager
def _only_holder(path: str | Path, target: Path) -> Iterator[Place]:
    hidden = target.parent / f".{target.name}.jali-"
    with contextlib.ExitStack() as stack:
        with _refusing(path):
            held = stack.enter_context(locked(Path(f"{hidden}lock")))
            # Without a lock nobody knows whether what lies there is still being built.
            fixed = held and _settled(Place(target, Path(f"{hidden}new")))
        place = Place(target, Path(f"{hidden}{'new' if fixed else secrets.token_hex(8)}"))
        try:
            yield place
        finally:
            _settled(place)


@contextmanager
def _refusing(path: str | Path) -> Iterator[None]:
    """What the system refuses is an InputError about this path."""
    try:
        yield
    except BlockingIOError:
        what, do = f"another process is writing to {path}", f"wait until it has finished, or {_ELSEWHERE}"
        raise InputError(what, do=do) from None
    except OSError as problem:
        raise InputError(f"cannot write to {path}", got=reason(problem), do=_ELSEWHERE) from None


def _settled(place: Place) -> bool:
    """Remove what was being built, once a folder that was moved aside for it is back; False where that cannot be."""
    try:
        if not place.building.is_dir():
            place.building.unlink(missing_ok=True)
        elif _is_own(place):
            if place.old.is_dir() and not place.target.exists():
                os.replace(place.old, place.target)
            shutil.rmtree(place.building)
    except OSError:
        return False
    return not os.path.lexists(place.building)


def _is_own(place: Place) -> bool:
    """Whether a folder is one that this user's jali builds in, and nothing else is lost with it."""
    if place.building.is_symlink() or {path.name for path in place.building.iterdir()} - {"new", "old"}:
        return False
    return not hasattr(os, "geteuid") or place.building.stat().st_uid == os.geteuid()


def reason(problem: OSError) -> str:
    """Why the system refused something."""
    return problem.strerror or type(problem).__name__


@contextmanager
def hold_file(path: str | Path, *, overwrite: bool, parents: bool = False) -> Iterator[Place]:
    """Hold a path for a file that can be written there; an InputError where it cannot."""
    target = path_of(path)
    with _refusing(path):
        if target.is_dir():
            raise InputError(f"{path} is a folder", do="name a file")
        if target.exists() and not target.is_file():
            raise InputError(f"{path} is a device or a pipe", do="name a file")
        if not parents and not target.parent.is_dir():
            raise InputError(f"there is no folder {target.parent}", do=f"make it, or {_ELSEWHERE}")
    with hold(path, parents=parents) as place:
        if target.exists() and not overwrite:
            raise InputError(f"the file {path} exists", do="choose another one, or pass overwrite (--overwrite)")
        yield place


@contextmanager
def hold_folder(path: str | Path) -> Iterator[Place]:
    """Hold a folder that files can be written into; an InputError where they cannot."""
    target = path_of(path)
    with _refusing(path):
        if target.exists() and not target.is_dir():
            raise InputError(f"{path} is a file", do="name a folder")
        if target.is_dir() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with hold(path, parents=True) as place:
        yield place


def put_content(path: Path, content: str | bytes, *, overwrite: bool, private: bool = False) -> None:
    """Write a file with this content, text as UTF-8; a private one only its owner may read."""
    data = content.encode("utf-8") if isinstance(content, str) else content

    def write(file: Path) -> None:
        file.write_bytes(data)

    put_file(path, write, overwrite=overwrite, private=private)


def put_file(path: Path, write: Callable[[Path], None], *, overwrite: bool, private: bool = False) -> None:
    """Write a file whole or not at all."""
    with built_file(path, write, overwrite=overwrite, private=private):
        pass


@contextmanager
def built_file(
    path: Path, write: Callable[[Path], None], *, overwrite: bool, private: bool = False, parents: bool = False
) -> Iterator[None]:
    """Build a file, which takes its place when the block has ended without an error."""
    with hold_file(path, overwrite=overwrite, parents=parents) as place:
        with _refusing(path):
            os.close(os.open(place.building, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # nobody else may read it
            write(place.building)
            sync(place.building)
        yield
        with _refusing(path):
            if not private:
                place.building.chmod(0o644)
            os.replace(place.building, place.target)
        _sync_folder(place.target.parent)


def put_folder(place: Place) -> None:
    """Put the finished folder in its place, in one step where the system can."""
    if not place.target.exists() or not any(place.target.iterdir()):
        os.replace(place.new, place.target)
    elif not _exchange(place.new, place.target):
        os.replace(place.target, place.old)
        os.replace(place.new, place.target)  # if this fails, the old one is put back when the place is let go
    _sync_folder(place.target.parent)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders atomically (Linux); False where that cannot be done."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    at_cwd, exchange = -100, 2
    return bool(renameat2(at_cwd, os.fsencode(first), at_cwd, os.fsencode(second), exchange) == 0)


def sync(path: Path) -> None:
    """See that what was written into a file, or the names in a folder, would survive a power cut."""
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # what was written is in place; some file systems cannot sync a folder
        sync(folder)
