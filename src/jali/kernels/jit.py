"""How kernels are compiled, and how compiled ones are kept on disk."""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np

from jali import kernels

SOURCES = ("kernels/*.py", "principles/*.py", "core/arrays.py")
"""The files whose functions, constants and types compiled code takes in."""

njit: Any = numba.njit  # its stub lacks the options below
inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For kernels that only kernels call: without wrappers for Python and C they compile faster."""


def outer(kernel: Callable[..., Any]) -> Any:
    """For kernels that Python calls; their machine code is kept on disk until one of the sources changes.

    numba's own key is the time and size of the kernel's file; what it calls and its constants live in others.
    """
    compiled = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)(kernel)
    on_disk = compiled._cache._cache_file
    on_disk._source_stamp = key_of(Path(__file__).parents[1])
    on_disk._load_index = partial(_index_of, on_disk._load_index)
    return compiled


def _index_of(load: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
    """The machine code on disk; none where it was made from classes that have moved since.

    numba reads the index, and with it the classes of the arguments, before it compares the key.
    """
    try:
        return load()
    except (ImportError, AttributeError):
        return {}


def is_stored(kernel: Any) -> bool:
    """Whether machine code of these very sources is on disk."""
    return bool(kernel._cache._cache_file._load_index())


@cache
def key_of(package: Path) -> str:
    """A digest over the names and contents of these files."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)} ".encode() + content)
    return digest.hexdigest()


@cache
def prepare(kernel: Any, what: str) -> None:
    """Say so when kernels are about to be compiled, before the first call of one of them."""

    if is_stored(kernel):
        return
    note = f"compiling the kernels of {what}: half a minute of processor time or less, the first time only"
    logging.getLogger("jali").info(note)
    if sys.stderr.isatty():
        print(note, file=sys.stderr)


def ready(kernel: Any, what: str, *, little: bool) -> bool:
    """Whether to run the kernel: for little work only where its machine code is on disk; else say that it is made."""
    if little and not is_stored(kernel):
        return False
    prepare(kernel, what)
    return True


def chosen(kernel: Any, what: str, work: int) -> Any:
    """The kernel, or for little work the same function in plain Python, which is done before a compiler would be."""
    return kernel if ready(kernel, what, little=work <= kernels.LITTLE) else plain(kernel)


@cache
def plain(kernel: Any) -> Callable[..., Any]:
    """A kernel that runs without being compiled, as does every kernel that it calls; the result is the same."""
    function = _uncompiled(kernel, {})

    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):  # machine code does not warn either
            return function(*arguments)

    return run


def _uncompiled(kernel: Any, known: dict[Any, FunctionType]) -> FunctionType:
    """The function that the kernel was made from, with functions in place of the kernels that it names."""
    if kernel not in known:
        function = kernel.py_func
        names = dict(function.__globals__)
        known[kernel] = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        for name in function.__code__.co_names:
            if hasattr(names.get(name), "py_func"):
                names[name] = _uncompiled(names[name], known)
    return known[kernel]
