"""Compiled kernels: announced when they must be compiled, which takes a while."""

from __future__ import annotations

import logging
import sys
from functools import cache
from typing import Any


@cache
def prepare(kernel: Any, what: str) -> None:
    """Say so when kernels are about to be compiled, before the first call of one of them."""
    from jali.search.jit import is_stored

    if is_stored(kernel):
        return
    note = f"compiling the kernels of {what}: some ten seconds, the first time only"
    logging.getLogger("jali").info(note)
    if sys.stderr.isatty():
        print(note, file=sys.stderr)
