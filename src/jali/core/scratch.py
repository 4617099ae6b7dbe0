"""Private folders for what is not held in memory; those that killed processes left are cleared away by the next one."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from jali.core.files import lock

PREFIX = "jali-"
LOCK = "lock"
"""The file that a process holds locked as long as it uses the folder; it says on which machine that is."""
_UNLOCKED = "locking"  # its name before it is locked: nobody ever sees a lock that its own process does not hold yet
OURS = ("combinations.", "duckdb_temp_")
"""How all other names in such a folder begin: copies of combinations, and what DuckDB has no memory for."""


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that nobody else may look into, and that is gone in the end. Abandoned ones are cleared away first.

    Where the system has no locks, a folder is never taken for abandoned.
    """
    clear_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    handle = None
    try:
        handle = _claimed(folder)
        yield folder
    finally:
        _remove(folder)
        if handle is not None:
            os.close(handle)  # which ends the lock


def _claimed(folder: Path) -> int | None:
    """A handle that locks a new folder; None where there are no locks, and then the folder has no file for that."""
    if not hasattr(os, "geteuid"):
        return None
    handle = os.open(folder / _UNLOCKED, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if lock(handle):
            os.write(handle, _machine())
            os.rename(folder / _UNLOCKED, folder / LOCK)
        else:
            os.unlink(folder / _UNLOCKED)
    except BaseException:
        os.close(handle)
        raise
    return handle


@cache
def _machine() -> bytes:
    """What tells this machine from others that may share a file system with it."""
    known = [platform.node().encode()]
    with contextlib.suppress(OSError):
        known.append(Path("/etc/machine-id").read_bytes())
    return b"jali " + hashlib.blake2b(b"\0".join(known), digest_size=16).hexdigest().encode()


def clear_abandoned(parent: Path) -> None:
    """Remove private folders that processes of this user made on this machine, and no process uses any more."""
    if not hasattr(os, "geteuid"):
        return
    with contextlib.suppress(OSError):
        for name in [each for each in os.listdir(parent) if each.startswith(PREFIX)]:
            with contextlib.suppress(OSError):  # it is not ours, in use, or another process has removed it
                _clear(parent / name)


def _clear(folder: Path) -> None:
    if not _is_private(os.lstat(folder), stat.S_IFDIR | 0o700):
        return
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _is_private(os.fstat(handle), stat.S_IFREG | 0o600) and lock(handle) and _is_ours(folder, handle):
            _remove(folder)
    finally:
        os.close(handle)


def _is_private(facts: os.stat_result, mode: int) -> bool:
    return facts.st_mode == mode and facts.st_uid == os.geteuid()


def _is_ours(folder: Path, handle: int) -> bool:
    """Whether a folder was made here, and nothing else is lost with it."""
    own = _machine()
    if os.pread(handle, len(own) + 1, 0) != own:
        return False
    with os.scandir(folder) as every:
        files = [each for each in every if each.name != LOCK]
        return all(each.name.startswith(OURS) and each.is_file(follow_symlinks=False) for each in files)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: what is left of it if this process is killed meanwhile is still abandoned.

    Where others may write beside it, a link may have taken its place: what that leads to stays.
    """
    with contextlib.suppress(FileNotFoundError):
        if os.listdir not in os.supports_fd:  # no links that anybody may make, and no locks
            shutil.rmtree(folder)
            return
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as problem:
            if problem.errno in (errno.ENOTDIR, errno.ELOOP):
                return
            raise
        try:
            for name in sorted(os.listdir(handle), key=LOCK.__eq__):
                is_folder = stat.S_ISDIR(os.lstat(name, dir_fd=handle).st_mode)
                (shutil.rmtree if is_folder else os.unlink)(name, dir_fd=handle)
        finally:
            os.close(handle)
        os.rmdir(folder)
