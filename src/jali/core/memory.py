"""How much memory may be used: what a caller says, else what the machine or its container has."""

from __future__ import annotations

import os
import re
from pathlib import Path

from jali.errors import InputError, told

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30,
          "TIB": 1 << 40}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]I?B|)\s*", re.IGNORECASE)
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
SOMETHING = 2 << 30  # where nobody knows what the machine has


def memory_of(given: str | int | None) -> int:
    """The bytes that a caller allows: "4GB", "512MB", a number; half of what the machine has where nothing is said.

    >>> memory_of("4GB"), memory_of("1.5 MiB"), memory_of(2000)
    (4000000000, 1572864, 2000)
    """
    if given is None:
        return installed() // 2
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    found = _SIZE.fullmatch(given) if isinstance(given, str) else None
    size = 0 if found is None else int(float(found[1]) * _UNITS[found[2].upper()])
    if size < 1:
        do = 'write memory = "4GB", "512MB" or a number of bytes'
        raise InputError("memory is no size", got=repr(told(given)), do=do)
    return size


def installed(limits: tuple[str, ...] = _LIMITS) -> int:
    """The memory of the machine, or of the container that this process runs in, in bytes."""
    found = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for place in limits:
        try:
            text = Path(place).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit() and int(text) > 0:
            found.append(int(text))
    return min((each for each in found if each > 0), default=SOMETHING)


def shown(size: int) -> str:
    """A size as people write it.

    >>> shown(4_000_000_000), shown(1_500_000), shown(900)
    ('4GB', '1.5MB', '900 bytes')
    """
    for unit in ("GB", "MB", "KB"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.4g}{unit}"
    return f"{size} bytes"
