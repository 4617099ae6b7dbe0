"""Which groups are shown alike, and so are one published group."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from jali.encoding.frequencies import Frequencies, combine
from jali.encoding.table import Table
from jali.principles.counts import Ints
from jali.search.recode_plan import RecodeShow


def shown_alike(
    table: Table, frequencies: Frequencies, group: Ints, groups: int, show: RecodeShow, *, hidden: bool = False
) -> tuple[Ints, int]:
    """The published group of each combination, and how many there are: groups that show the same are one.

    Where the last group is `hidden`, it is shown as * and stays by itself.
    """
    keys: list[tuple[Ints, int]] = []
    for column, codes in zip(table.quasi, frequencies.codes.T.astype(np.int64), strict=True):
        key = _sets(codes, group, groups) if show == "set" else _nodes(table, column.name, codes, group, groups)
        keys.append((key, int(key.max(initial=0)) + 1))
    if hidden:
        keys.append(((np.arange(groups) == groups - 1).astype(np.int64), 2))
    number, first = combine(keys, groups)
    return number[group].astype(np.int64), len(first)


def _nodes(table: Table, name: str, codes: Ints, group: Ints, groups: int) -> Ints:
    """A number for the smallest node that covers each group: (groups,)."""
    key, begin = np.full(groups, -1, dtype=np.int64), 0
    for nodes in table.hierarchy(name).maps:
        low, high = np.full(groups, len(nodes), dtype=np.int64), np.full(groups, -1, dtype=np.int64)
        np.minimum.at(low, group, nodes[codes])
        np.maximum.at(high, group, nodes[codes])
        key = np.where((key < 0) & (low == high), begin + low, key)
        begin += int(nodes.max(initial=0)) + 1
    return key


def _sets(codes: Ints, group: Ints, groups: int) -> Ints:
    """A number for the set of values of each group: (groups,)."""
    width = int(codes.max(initial=0)) + 1
    pairs = np.unique(group * width + codes)
    begin = np.searchsorted(pairs, np.arange(groups + 1) * width)
    known: dict[bytes, int] = {}
    values = (pairs % width).astype(np.int64)
    found = [known.setdefault(values[a:b].tobytes(), len(known)) for a, b in pairwise(begin)]
    return np.array(found, dtype=np.int64)
