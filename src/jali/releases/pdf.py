"""Cells that carry a distribution: how often each value stands in the group, or evenly spread values shifted to that.

A cell is text that a person can read, `{Student: 0.75, Professor: 0.25}`, and that a program can read back exactly:
probabilities are short decimals or fractions, and a value that holds a character of the notation stands in quotes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from jali.core.arrays import Ints, added_by_key
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.builders import Suppress
from jali.encoding.ends import Naming, every_value
from jali.encoding.hierarchy import ROOT, Builder, Hierarchy
from jali.encoding.table import Column
from jali.errors import InputError, nearest, one_of, told
from jali.principles.base import exact
from jali.releases.facts import texts_of
from jali.releases.group_facts import SetFacts, flat, listed, members_of

Start = Literal["taxonomy", "set"]
STARTS: tuple[Start, ...] = ("taxonomy", "set")
DIGITS = 4
"""Up to how many decimals a probability is written as a decimal; else it is a fraction."""
MISSING = "missing"
ASSUMES = "the attacker already knows who is in the table"
"""What publishing distributions rests on (Nergiz et al., Section IV); saved with the release."""
_PLAIN = re.compile(r"[^\s{},:\"\\]+(?: [^\s{},:\"\\]+)*")
_PART = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^{},:"\\]+): ([0-9./]+)(, |\}$)')


@dataclass(frozen=True)
class Shift:
    """f = u + towards · (o − u): o the frequencies of the group, u even shares over what the group starts from.

    Equation 3 of Nergiz et al. It starts from the node of the taxonomy that the group lies in, or from its values.
    """

    towards: Fraction = Fraction(1)
    start: Start = "taxonomy"

    def to_dict(self) -> dict[str, str]:
        """What the manifest says of it."""
        return {"towards": str(self.towards), "start": self.start, "pdf_assumes": ASSUMES}


def shift_of(shows: Mapping[str, str], towards: float | Fraction | None, start: Start) -> Shift:
    """How far the distributions are shifted; InputError where none is shown."""
    if not one_of(start, STARTS):
        raise InputError(f'no start "{told(start)}"', do=nearest(start, STARTS))
    if "pdf" not in shows.values() and (towards is not None or start != "taxonomy"):
        name = "start" if towards is None else "towards"
        raise InputError(f"{name} is about distributions, and none is shown", do='add show="pdf"')
    share = Fraction(1) if towards is None else exact("towards", towards)
    if not 0 <= share <= 1:
        raise InputError("towards lies between 0 (evenly spread) and 1 (as in the group)", got=repr(towards))
    return Shift(share, start)


def shifted(counts: Mapping[int, int], base: Sequence[int], towards: Fraction) -> dict[int, int]:
    """Whole numbers in the proportions of u + towards · (o − u), without a common divisor.

    >>> shifted({0: 3, 1: 1}, [0, 1, 2], Fraction(1, 3))
    {0: 17, 1: 11, 2: 8}
    """
    people, even = sum(counts.values()), (towards.denominator - towards.numerator) * sum(counts.values())
    per_row = towards.numerator * len(base)
    found = {value: even + per_row * counts.get(value, 0) for value in base}
    divisor = math.gcd(*found.values()) if people else 1
    return {value: weight // divisor for value, weight in found.items() if weight}


def tallies(codes: Ints, group: Ints, groups: int, *, width: int, rows: Ints | None) -> list[dict[int, int]]:
    """How many rows of each group have each value; `rows` is how many each record stands for."""
    keys, sums = added_by_key(group * width + codes, rows)
    begin = np.searchsorted(keys // width, np.arange(groups + 1))
    value, count = keys % width, sums.astype(np.int64)
    return [dict(zip(value[a:b].tolist(), count[a:b].tolist(), strict=True)) for a, b in pairwise(begin)]


def bases(column: Column, nodes: Sequence[tuple[int, int]], shown: Ints) -> list[list[int]]:
    """The values under each (level, node): the declared ones, else those that groups show; missing only if they do.

    Nothing follows from suppressed rows: `shown` are the codes of the others.
    """
    hierarchy = column.hierarchy
    assert hierarchy is not None
    seen = np.zeros(len(column.values), dtype=bool)
    seen[shown] = True
    known = column.mask("declared").copy() if column.declared else seen
    if column.values.null_count:
        known[-1] = seen[-1]
    found: dict[tuple[int, int], list[int]] = {}
    for level, node in set(nodes):
        under = (hierarchy.maps[level] == node) & known
        found[level, node] = np.flatnonzero(under).tolist()
    return [found[one] for one in nodes]


def group_weights(
    counts: Sequence[Mapping[int, int]], base: Sequence[Sequence[int]], towards: Sequence[Fraction]
) -> list[dict[int, int]]:
    """The shifted distribution of each group, each by its own share of the way: all (groups,)."""
    return [shifted(c, b, t) for c, b, t in zip(counts, base, towards, strict=True)]


# Cells as text.


def cell_text(values: Sequence[str | None], weights: Sequence[int]) -> str | None:
    """A distribution as people read it; one value alone is shown as it is, and a missing one as a missing cell.

    >>> cell_text(["Student", "Professor"], [3, 1]), cell_text(["Student"], [1]), cell_text(["a: b", None], [2, 1])
    ('{Student: 0.75, Professor: 0.25}', 'Student', '{"a: b": 2/3, missing: 1/3}')
    """
    if len(values) == 1 and (values[0] is None or _is_plain(values[0])):
        return values[0]
    total = sum(weights)
    parts = (f"{_name(v)}: {_number(w, total)}" for v, w in zip(values, weights, strict=True))
    return "{" + ", ".join(parts) + "}"


def read_cell(text: str | None) -> dict[str | None, Fraction]:
    """The distribution that a cell shows, exactly.

    >>> read_cell("{Student: 0.75, Professor: 0.25}")
    {'Student': Fraction(3, 4), 'Professor': Fraction(1, 4)}
    """
    if text is None or not text.startswith("{"):
        return {text: Fraction(1)}
    found: dict[str | None, Fraction] = {}
    at = 1
    while at < len(text) and (part := _PART.match(text, at)):
        name, at = part[1], part.end()
        try:
            value = None if name == MISSING else json.loads(name) if name.startswith('"') else name
            found[value] = found.get(value, 0) + Fraction(part[2])
        except (ValueError, ZeroDivisionError):
            break
    if at < len(text) or sum(found.values()) != 1:
        raise InputError("not a cell with a distribution", do="give it as it was published")
    return found


def _is_plain(value: str) -> bool:
    return value not in (MISSING, ROOT) and _PLAIN.fullmatch(value) is not None


def _name(value: str | None) -> str:
    if value is None:
        return MISSING
    return value if _is_plain(value) else json.dumps(value, ensure_ascii=False)


def _number(weight: int, total: int) -> str:
    scaled, rest = divmod(weight * 10**DIGITS, total)
    if rest == 0:
        return f"{scaled / 10**DIGITS:g}"
    divisor = math.gcd(weight, total)
    return f"{weight // divisor}/{total // divisor}"


# What a column with distributions says.


@dataclass(frozen=True, kw_only=True)
class PdfFacts(SetFacts):
    """Values with their weights: a distribution for each group."""

    display: ClassVar[str] = "pdf"
    words: ClassVar[str] = "the distribution in each group"

    weights: tuple[tuple[int, ...], ...]  # (nodes,) of the members
    declared: bool  # whether the leaves are a declared domain

    def shares(self, node: int) -> dict[str | None, Fraction]:
        """The probability of each value that a node has."""
        total = sum(self.weights[node])
        pairs = zip(self.members[node], self.weights[node], strict=True)
        return {self.leaves[member]: Fraction(weight, total) for member, weight in pairs}

    def cover(self, labels: pa.Array, root: int | None, kind: v.Kind) -> Cover:
        """The members of each distribution, by their probabilities; a suppressed row is any value."""
        nodes, every = self.nodes_of(labels.to_pylist()), len(self.leaves)
        shares = [[1 / every] * every if n < 0 else self.floats(n) for n in nodes]
        share = [one for some in shares for one in some]
        return listed(self.leaves, self.members, nodes, kind, declared=self.declared, share=share)

    def floats(self, node: int) -> list[float]:
        """The probabilities of a node's members, in their order."""
        total = sum(self.weights[node])
        return [weight / total for weight in self.weights[node]]

    def holder_cover(self, labels: pa.Array, column: Column, every: Ints) -> Cover:
        """What each cell covers for the holder: the values that it shows, and every value where it is suppressed."""
        place = {text: i for i, text in enumerate(column.labels.to_pylist())}
        member: list[int] = []
        share: list[float] = []
        start = [0]
        for node in self.nodes_of(labels.to_pylist()):
            names = [] if node < 0 else [self.leaves[i] for i in self.members[node]]
            if not all(name in place for name in names):
                what = f'the values of column "{column.name}" in the release are not those of this table'
                raise InputError(what, do="use the table that the release was made from")
            member += every.tolist() if node < 0 else [place[name] for name in names]
            share += [1 / len(every)] * len(every) if node < 0 else self.floats(node)
            start.append(len(member))
        return Cover.sets(column.values, start, member, share)

    def builder(self, name: str) -> Builder:
        """A declared domain with its root, else the values that occur."""
        return flat(self.leaves, name) if self.declared else Suppress()

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        members, weights = ([list(one) for one in lists] for lists in (self.members, self.weights))
        return self._told(
            declared=self.declared, labels=list(self.labels), leaves=list(self.leaves), members=members, weights=weights
        )

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> PdfFacts:
        """From JSON; a ValueError where the texts, which people read, say something else than the weights."""
        labels = texts_of(told["labels"])
        leaves, members = members_of(told, len(labels))
        weights = tuple(map(tuple, told["weights"]))
        for text, own, heavy in zip(labels, members, weights, strict=True):
            if cell_text([leaves[m] for m in own], heavy) != text:
                raise ValueError("a cell says something else than its weights")
        return cls(
            labels=labels, hidden=bool(told.get("hidden")), leaves=leaves, members=members, weights=weights,
            declared=bool(told.get("declared")), naming=Naming.from_dict(told.get("named")),
        )  # fmt: skip


def pdf_facts(column: Column, weights: Sequence[Mapping[int, int]]) -> tuple[PdfFacts, Ints]:
    """The facts of a column whose groups have these weights by code, and the node of each group."""
    labels = column.labels.to_pylist()
    number: dict[tuple[tuple[int, int], ...], int] = {}
    of_group = [number.setdefault(tuple(sorted(one.items())), len(number)) for one in weights]
    cells = [sorted(key, key=lambda pair: (-pair[1], pair[0])) for key in number]
    hierarchy = column.hierarchy
    declared = hierarchy is not None and hierarchy.declared
    used = sorted({code for cell in cells for code, _ in cell})
    if declared:  # all of it: that is what a suppressed row may be
        used = sorted({*used, *(i for i, label in enumerate(labels) if label is not None)})
    position = {code: i for i, code in enumerate(used)}
    facts = PdfFacts(
        labels=tuple(cell_text([labels[code] for code, _ in cell], [weight for _, weight in cell]) for cell in cells),
        leaves=tuple(labels[code] for code in used),
        members=tuple(tuple(position[code] for code, _ in cell) for cell in cells),
        weights=tuple(tuple(weight for _, weight in cell) for cell in cells),
        declared=declared,
        naming=None if declared else (column.ends or every_value(column)).naming(rounded=False),
    )
    return facts, np.array(of_group, dtype=np.int64)


def levels_of(hierarchy: Hierarchy, level: int, codes: Ints, group: Ints, groups: int) -> list[tuple[int, int]]:
    """The node of one level that each group lies in."""
    node = np.zeros(groups, dtype=np.int64)
    node[group] = hierarchy.maps[level][codes]
    return [(level, int(one)) for one in node]
