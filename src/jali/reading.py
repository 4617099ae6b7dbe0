"""Files that a caller names: regular files, and pipes that somebody writes to; never a device, which has no end."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jali.errors import InputError

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
    except RecursionError:
        raise InputError(f"{path.name} is not valid TOML: too deeply nested") from None
