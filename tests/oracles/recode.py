"""Granularity and KL of groups, slow and obvious: every row, every cell of its box, straight from the definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from jali.encoding.table import Table


def covered(table: Table, column: int, codes: set[int], show: str) -> set[int]:
    """The values of the domain that a group's values are published as."""
    quasi = table.quasi[column]
    domain = {code for code, inside in enumerate(quasi.mask(table.domain).tolist()) if inside}
    if show == "set":
        return codes
    for nodes in table.hierarchy(quasi.name).maps:
        if len({int(nodes[code]) for code in codes}) == 1:
            node = int(nodes[next(iter(codes))])
            return {code for code in domain if int(nodes[code]) == node}
    raise AssertionError("every hierarchy ends in one root")


def boxes(table: Table, group: Sequence[int], show: str) -> dict[int, list[set[int]]]:
    """The values that each group covers in each column."""
    members: dict[int, list[int]] = defaultdict(list)
    for combination, number in enumerate(group):
        members[int(number)].append(combination)
    codes = table.frequencies.codes
    columns = range(codes.shape[1])
    return {
        number: [covered(table, a, {int(codes[c, a]) for c in inside}, show) for a in columns]
        for number, inside in members.items()
    }


def granularity(table: Table, group: Sequence[int], show: str) -> float:
    """One minus the mean over rows and columns of (values covered − 1) / (values in the column − 1)."""
    box = boxes(table, group, show)
    loss = 0.0
    for combination in table.frequencies.row_combination.tolist():
        for a, values in enumerate(box[int(group[combination])]):
            whole = int(table.quasi[a].mask(table.domain).sum())
            loss += (len(values) - 1) / (whole - 1) if whole > 1 else 0.0
    return 1 - loss / table.records / len(table.quasi)


def kl(table: Table, group: Sequence[int], show: str, *, overlap: bool = True) -> float:
    """Σ F log (F / F*): each row is spread evenly over its box, and boxes add up where they overlap.

    Without `overlap` a cell receives only what its own group spreads over it.
    """
    box = boxes(table, group, show)
    rows = table.frequencies.row_combination.tolist()
    sensitive = list(zip(*(c.codes.tolist() for c in table.sensitive), strict=True)) or [()] * len(rows)
    codes = [tuple(int(v) for v in table.frequencies.codes[c]) for c in rows]
    own = Counter(zip(codes, sensitive, strict=True))
    inferred: dict[object, float] = defaultdict(float)
    for combination, value in zip(rows, sensitive, strict=True):
        number = int(group[combination])
        area = math.prod(len(values) for values in box[number])
        for cell in itertools.product(*box[number]):
            inferred[(cell, value) if overlap else (cell, value, number)] += 1 / area / len(rows)
    number_of = {cell: int(group[c]) for cell, c in zip(codes, rows, strict=True)}
    total = 0.0
    for (cell, value), n in own.items():
        key = (cell, value) if overlap else (cell, value, number_of[cell])
        total += n / len(rows) * math.log(n / len(rows) / inferred[key])
    return total


def kl_at_own_cells(table: Table, group: Sequence[int], show: str) -> float:
    """The same with overlaps, looking only at cells that occur: a box gives each of them what it gives any other."""
    f, n = table.frequencies, table.records
    numbers = np.asarray(group)
    inferred = np.zeros((f.combinations, len(f.joint)))
    for number, box in boxes(table, group, show).items():
        inside = np.ones(f.combinations, dtype=bool)
        for a, values in enumerate(box):
            inside &= np.isin(f.codes[:, a], list(values))
        mine = numbers[f.combination] == number
        spread = np.bincount(f.value[mine], weights=f.rows[mine], minlength=len(f.joint))
        inferred[inside] += spread / n / math.prod(len(values) for values in box)
    share = f.rows / n
    return float(share @ np.log(share / inferred[f.combination, f.value]))


def peeled(
    walk: Sequence[Sequence[int]], maps: Sequence[Sequence[Sequence[int]]], codes: Sequence[Sequence[int]],
    people: Sequence[int], least: int,
) -> list[int]:  # fmt: skip
    """At each node of the walk the classes of what is left that have enough people; what stays is one more group."""
    group, groups = [-1] * len(codes), 0
    for levels in walk:
        classes: dict[tuple[int, ...], list[int]] = {}
        for c, own in enumerate(codes):
            if group[c] < 0:
                shown = tuple(int(maps[a][level][own[a]]) for a, level in enumerate(levels))
                classes.setdefault(shown, []).append(c)
        for members in classes.values():
            if sum(people[c] for c in members) >= least:
                for c in members:
                    group[c] = groups
                groups += 1
    return [groups if one < 0 else one for one in group]
