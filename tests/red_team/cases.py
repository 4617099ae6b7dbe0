"""Small tables for the red team, drawn at random: a few people with ties in ordered columns and taxonomies.

Everybody is a combination of their own; people who are alike have the same places in every column.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import jali
from jali.core.arrays import Bools, Ints
from jali.principles import MultiAttribute, Safety
from jali.principles.anonymity import ABSENT, PRESENCE, PRESENT, DeltaPresence
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts, Sensitive
from jali.search.halves import By
from jali.search.items import Columns, columns_of
from red_team.worlds import number_of_worlds

BY = get_args(By)
PEOPLE = (2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 8, 8, 8)  # a table has one of these
MOST_WORLDS = 2520
"""Tables with more worlds are not drawn."""
TREES = (
    (("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")),
    (("a", "x", "r", "*"), ("b", "x", "r", "*"), ("c", "y", "r", "*"), ("d", "z", "s", "*"), ("e", "z", "s", "*")),
)
VALUE_TREE = (np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]))
"""A tree over four sensitive values: the first two are siblings, and so are the last two."""


class Values(NamedTuple):
    """The sensitive columns of a table."""

    kind: str  # "one", "several" columns, or "presence"
    joint: int  # joint values

    @property
    def sensitive(self) -> tuple[Sensitive, ...]:
        if self.kind == "presence":
            return (Sensitive(PRESENCE, (ABSENT, PRESENT)),)
        if self.kind == "several":
            return tuple(Sensitive(name, ("v0", "v1")) for name in ("d", "e"))
        labels = tuple(f"v{v}" for v in range(self.joint))
        return (Sensitive("d", labels, ordered=True, tree=VALUE_TREE if self.joint == 4 else ()),)

    def counts(self, histogram: Ints, whole: Counts | None = None) -> Counts:
        """Counts of a matrix, groups × joint values."""
        several = self.kind == "several"
        joint = np.array([[a, b] for a in range(2) for b in range(2)]) if several else np.arange(self.joint)[:, None]
        group, value = np.nonzero(histogram)
        return Counts(len(histogram), group, value, histogram[group, value], self.sensitive, joint, None, whole)


class Case(NamedTuple):
    """A small table and what is promised about it."""

    columns: Columns
    value: Ints  # (people,) the true world
    values: Values
    principles: tuple[Principle, ...]
    by: By = "area"  # which column is cut
    sorting: bool = False  # whether ties stand as earlier cuts have put them

    @property
    def people(self) -> int:
        return len(self.value)

    @property
    def histogram(self) -> tuple[int, ...]:
        """How many people have each joint value."""
        return tuple(np.bincount(self.value, minlength=self.values.joint).tolist())

    @property
    def whole(self) -> Counts:
        """Everybody as one group."""
        return self.values.counts(np.array([self.histogram]))

    @property
    def promises(self) -> tuple[Principle, ...]:
        """Those that bound a belief: k-anonymity does not."""
        return tuple(p for p in self.principles if not p.judges_size_alone)

    def hold(self, histogram: Ints, principles: tuple[Principle, ...]) -> Bools:
        """The verdict on each row of a matrix, groups × values."""
        return hold(principles, self.values.counts(histogram, self.whole))

    def verdicts(self, histogram: Ints) -> Bools:
        """Whether each group keeps every promise; the last axis is that of the values, the others stay."""
        stride = np.cumprod([1, *(n + 1 for n in self.histogram[:-1])])
        return _verdicts(self.values, self.histogram, self.principles)[histogram @ stride]


@cache
def _whole_holds(values: Values, histogram: tuple[int, ...], principles: tuple[Principle, ...]) -> bool:
    return bool(hold(principles, values.counts(np.array([histogram])))[0])


@cache
def _verdicts(values: Values, histogram: tuple[int, ...], principles: tuple[Principle, ...]) -> Bools:
    """The verdict on every group that can be made of these people, the first value counted fastest.

    A group is judged by itself: halves refuse principles that look at all groups at once.
    """
    every = np.indices([n + 1 for n in reversed(histogram)]).reshape(len(histogram), -1)[::-1].T
    return hold(principles, values.counts(every, values.counts(np.array([histogram]))))


Draw = Callable[[np.random.Generator], Principle]


def _one_of(*choices: Principle) -> Draw:
    return lambda rng: choices[int(rng.integers(len(choices)))]


PRINCIPLES: dict[str, Draw] = {
    "distinct diversity": _one_of(jali.DistinctDiversity(2), jali.DistinctDiversity(3)),
    "frequency diversity": _one_of(*(jali.FrequencyDiversity(l) for l in ("6/5", "3/2", 2, 3))),
    "(α, k)-anonymity": _one_of(
        jali.AlphaAnonymity(0.7, 2), jali.AlphaAnonymity(0.5, 2, values=["v0"]), jali.AlphaAnonymity(0.34, 1)
    ),
    "entropy diversity": _one_of(*(jali.EntropyDiversity(l) for l in (1.5, 1.8, 2, 2.5))),
    "recursive diversity": _one_of(*(jali.RecursiveDiversity(c, l) for c, l in ((2, 2), (3, 2), (1, 2), (2, 3)))),
    "t-closeness": _one_of(*(jali.TCloseness(t) for t in (0.2, 0.25, 0.34, 0.5))),
    "t-closeness, ordered": _one_of(*(jali.TCloseness(t, distance="ordered") for t in (0.15, 0.2, 0.3))),
    "t-closeness, hierarchical": _one_of(*(jali.TCloseness(t, distance="hierarchical") for t in (0.15, 0.25, 0.4))),
    "(c, 0)-safety": _one_of(*(Safety(c, 0) for c in (0.51, 0.6, 0.76, 0.9))),
    "(c, 1)-safety": _one_of(*(Safety(c, 1) for c in (0.51, 0.67, 0.76, 1))),
    "multi-attribute distinct": _one_of(MultiAttribute(jali.DistinctDiversity(2))),
    "multi-attribute t-closeness": _one_of(*(MultiAttribute(jali.TCloseness(t)) for t in (0.34, 0.5, 0.6))),
    "δ-presence": _one_of(*(DeltaPresence(a, b) for a, b in ((0, 0.5), (0, 0.75), (0.2, 0.8), (0.25, 0.6), (0.1, 1)))),
}


def drawn(rng: np.random.Generator, principle: str) -> Case:
    """A table whose whole keeps a promise of this sort."""
    while True:
        n = PEOPLE[int(rng.integers(len(PEOPLE)))]
        values = _values(rng, principle)
        value = np.searchsorted(np.cumsum(rng.dirichlet(np.full(values.joint, 2.0)))[:-1], rng.random(n))
        if principle == "multi-attribute distinct" and n == 8:
            value = rng.permutation(np.repeat(np.arange(4), 2))  # the smallest table that can be cut
        k, by, sorting = int(rng.integers(1, 3)), BY[int(rng.integers(2))], bool(rng.integers(2))
        asked = (PRINCIPLES[principle](rng), jali.KAnonymity(k))[:k]
        case = Case(_columns(rng, n), value, values, asked, by, sorting)
        if sum(m > 0 for m in case.histogram) < 2 or number_of_worlds(case.histogram) > MOST_WORLDS:
            continue
        if _whole_holds(values, case.histogram, asked):
            return case


def _values(rng: np.random.Generator, principle: str) -> Values:
    if principle == "δ-presence":
        return Values("presence", 2)
    if principle.startswith("multi-attribute"):
        return Values("several", 4)
    return Values("one", 4 if principle == "t-closeness, hierarchical" else int(rng.integers(2, 5)))


def _columns(rng: np.random.Generator, n: int) -> Columns:
    """One or two quasi-identifiers: ordered ones, some with values that nobody has, and taxonomies."""
    kinds = rng.random(int(rng.integers(1, 3))) < 0.4
    parts = [_tree(int(rng.integers(len(TREES)))) if kind else _ordered(rng) for kind in kinds]
    size = [node.shape[1] for _, node, _ in parts]
    return Columns(
        place=np.stack([rng.integers(0, s, n) for s in size]).astype(np.int32),
        tree=np.array([tree for tree, _, _ in parts]),
        width=np.array([s if tree else int(node[0, -1]) + 1 for s, (tree, node, _) in zip(size, parts, strict=True)]),
        size=np.array(size),
        offset=np.cumsum([0, *(node.size for _, node, _ in parts[:-1])]),
        node=np.concatenate([node.ravel() for _, node, _ in parts]),
        leaves=np.concatenate([leaves.ravel() for _, _, leaves in parts]),
    )


def _ordered(rng: np.random.Generator) -> tuple[bool, Ints, Ints]:
    """Ranks in the domain: some values that lie between have no people."""
    rank = np.cumsum(rng.integers(1, 3, int(rng.integers(2, 7))))[None, :] - 1
    return False, rank, np.ones_like(rank)


@cache
def _tree(number: int) -> tuple[bool, NDArray[np.int64], NDArray[np.int64]]:
    """A taxonomy, laid out by jali: nodes and leaves at each level of each place."""
    rows = TREES[number]
    frame = pa.table({"x": [row[0] for row in rows], "d": ["v0"] * len(rows)})
    table = jali.table(frame, quasi={"x": jali.taxonomy(rows)}, sensitive=["d"])
    columns = columns_of(table)
    levels = len(rows[0])
    return True, columns.node.reshape(levels, -1), columns.leaves.reshape(levels, -1)
