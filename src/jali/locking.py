"""Locks on files: one process at a time, and none after a crash, since a lock ends with the process that holds it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
            held = _lock(handle)
            if not held or _is_at(path, handle):
                return handle, held
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # whoever had the lock has removed the file meanwhile: a lock on it keeps nobody out


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


def _lock(handle: int) -> bool:
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
    """Remove the file and end the lock, in this order: whoever gets the lock of a removed file tries again."""
    if sys.platform != "win32":  # which removes nothing that is open
        with contextlib.suppress(OSError):
            os.unlink(path)
    os.close(handle)
    if sys.platform == "win32":
        with contextlib.suppress(OSError):
            os.unlink(path)
