"""Files: written whole or not at all, held by one process at a time, and read only where reading ends."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import select
import shutil
import stat
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jali.errors import InputError, path_of

_HELD_BY_ANOTHER = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file, which is made for that and removed afterwards.

    A BlockingIOError where another process, or another thread of this one, holds it. False where the file system has
    no locks: then nothing is held.
    """
    handle, held = _locked(path)
    try:
        yield held
    finally:
        _let_go(path, handle)


def _locked(path: Path) -> tuple[int, bool]:
    """A handle of the file that stands at the path, and whether it is locked."""
    while True:
        handle = _opened(path)
        try:
            held = lock(handle)
            if not held or _is_at(path, handle):
                return handle, held
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the last holder has removed the file meanwhile: a lock on it keeps nobody out


def _opened(path: Path) -> int:
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, flags | os.O_CREAT, 0o644)
    except PermissionError:
        if not path.is_file():
            raise
        return os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))  # left behind by a crash of another user


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def lock(handle: int) -> bool:
    """Lock without waiting; False where the file system cannot, BlockingIOError where somebody else has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if problem.errno in _HELD_BY_ANOTHER:
            raise BlockingIOError(problem.errno, "held by another process") from None
        return False
    return True


def _let_go(path: Path, handle: int) -> None:
    """Remove the file and end the lock, in this order: a process that gets the lock of a removed file tries again."""
    if sys.platform != "win32":  # which removes nothing that is open
        with contextlib.suppress(OSError):
            os.unlink(path)
    os.close(handle)
    if sys.platform == "win32":
        with contextlib.suppress(OSError):
            os.unlink(path)


_ELSEWHERE = "choose another place"


SPILLED = "spilled"
"""The name of a folder within the one in which something is built, for what is not held in memory meanwhile."""


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
"""The places that are held already, so that a holder can write to its place after the work."""


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
    if place.building.is_symlink() or {path.name for path in place.building.iterdir()} - {"new", "old", SPILLED}:
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
    put_file(path, lambda file: file.write_bytes(data), overwrite=overwrite, private=private)


def put_file(path: Path, write: Callable[[Path], object], *, overwrite: bool, private: bool = False) -> None:
    """Write a file whole or not at all."""
    with built_file(path, write, overwrite=overwrite, private=private):
        pass


@contextmanager
def built_file(
    path: Path, write: Callable[[Path], object], *, overwrite: bool, private: bool = False, parents: bool = False
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


def require_space(folder: Path, wanted: int) -> None:
    """Raise InputError where a disk has less room than something that will be written needs."""
    there = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    free = shutil.disk_usage(there).free
    if free < wanted:
        size, unit = (1e9, "GB") if wanted >= 1e9 else (1e6, "MB")
        got = f"{free / size:,.1f} {unit} free, about {wanted / size:,.1f} {unit} needed"
        raise InputError(f"there is not enough room in {folder}", got=got, do="free some space or choose another place")


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


PATIENCE = 10.0
"""Seconds that a pipe may have no writer."""
_BLOCK = 1 << 20
_NAME_A_FILE = "name a file"


def is_regular(path: Path) -> bool:
    """Whether a path is a regular file, so that it can be read more than once; False for a pipe.

    An InputError for a device or a socket, an OSError for a folder and where there is nothing that can be read.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
        raise InputError(f"{path} is a device", do=_NAME_A_FILE)
    return stat.S_ISREG(mode)


def content(path: Path) -> bytes:
    """All bytes of a regular file or of a pipe; an InputError or OSError where there are none to be had."""
    if is_regular(path):
        return path.read_bytes()
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else opening it waits for a writer, for ever
    try:
        first = _first_block(path, handle)
        os.set_blocking(handle, True)
        return first + drained(str(path), lambda: os.read(handle, _BLOCK))
    finally:
        os.close(handle)


def drained(name: str, read: Callable[[], bytes]) -> bytes:
    """What a stream gives until it ends; an InputError where it begins with nothing but zeros, which have no end."""

    def blocks() -> Iterator[bytes]:
        zeros = 0
        while block := read():
            zeros = zeros + len(block) if zeros >= 0 and not block.strip(b"\0") else -1
            if zeros >= _BLOCK:
                raise InputError(f"{name} holds nothing but zeros", do=_NAME_A_FILE)
            yield block

    return b"".join(blocks())


def _first_block(path: Path, handle: int) -> bytes:
    """Wait until somebody has the other end of a pipe open, or had; what it gives by then, perhaps nothing yet."""
    poll = select.poll()
    poll.register(handle, select.POLLIN | select.POLLHUP)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            block = os.read(handle, _BLOCK)
        except BlockingIOError:  # there is a writer, and reading would have to wait for it
            return b""
        if block or poll.poll(100):  # something, or the end
            return block
    raise InputError(f"nobody writes to the pipe {path}", do="start what writes to it, or name a file")


def job_data(path: Path) -> dict[str, Any]:
    """What a job file says; an InputError, with the line where there is one, for a file that is no TOML."""
    try:
        return tomllib.loads(content(path).decode("utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"no job file {path}", do="check the path, or write one with jali init") from None
    except OSError as problem:
        raise InputError(f"the job file {path} cannot be read", got=problem.strerror) from None
    except UnicodeDecodeError as problem:
        line = bytes(problem.object[: problem.start]).count(b"\n") + 1
        raise InputError(f"{path.name}: line {line} is not valid UTF-8", do="save it as UTF-8 text") from None
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path.name} is not valid TOML: {problem}", do="correct that line") from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise InputError(f"{path.name} has a number with too many digits", do="write a smaller one") from None
    except RecursionError:
        raise InputError(f"{path.name} is not valid TOML: too deeply nested") from None
