"""Compiled kernels on disk: forgotten when their sources are newer, and announced when they must be compiled again."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterable
from pathlib import Path


def prepare(cache: str | Path, pattern: str, sources: Iterable[Path], what: str) -> None:
    """Say so when kernels are about to be compiled, and forget those that are older than what they call.

    numba looks only at the file of the outermost kernel; what it calls and the constants in it live in others.
    """
    newest = max(path.stat().st_mtime for path in sources)
    stored = list(Path(cache).glob(pattern))
    stale = [index for index in stored if index.stat().st_mtime < newest]
    for index in stale:
        with contextlib.suppress(OSError):  # somebody else's folder, or gone already
            index.unlink()
    if len(stale) < len(stored):
        return
    note = f"compiling the kernels of {what}: some ten seconds, the first time only"
    logging.getLogger("jali").info(note)
    if sys.stderr.isatty():
        print(note, file=sys.stderr)
