"""Which methods are tried with which principles, and what becomes of one table."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Ints
from red_team import dealing, halving
from red_team.cases import Case, drawn
from red_team.worlds import Outcome

INTEGRATED = 20
"""Of this many tables, one is also tried by an attacker who does not know the bits, where it is small enough."""
LITERAL = 100
"""Of this many tables, one is also tried by running the publisher in every world, where these are few."""
FEW_WORLDS = 300  # in which the publisher is run one by one
SMALL = 6  # people, where all orders of ties are listed

DEALT = ("distinct diversity", "frequency diversity", "(c, 0)-safety", "(c, 1)-safety")
HALVED = (
    "(α, k)-anonymity", "entropy diversity", "recursive diversity", "t-closeness", "t-closeness, ordered",
    "t-closeness, hierarchical",
)  # fmt: skip
SEVERAL = ("multi-attribute distinct", "multi-attribute t-closeness")
PAIRS: tuple[tuple[str, str], ...] = (
    *(("partition", p) for p in (*DEALT[:3], *HALVED, *SEVERAL)),
    *(("angelize, halves", p) for p in HALVED),
    *(("angelize, dealt", p) for p in DEALT),
    *(("anatomize", p) for p in DEALT),
    ("conceal", "δ-presence"),
    *(("angelize, halves", p) for p in (*DEALT[:2], *SEVERAL)),
)


class Result(NamedTuple):
    """What became of many tables of one pair."""

    method: str
    principle: str
    tables: int = 0
    worlds: int = 0
    releases: int = 0
    excess: Fraction = Fraction(0)
    unknown_tables: int = 0  # tried with bits unknown
    unknown_releases: int = 0
    broken: int = 0  # releases in which somebody's belief breaks the promise

    def __add__(self, other: Result) -> Result:  # type: ignore[override]
        sums = [a + b for a, b in zip(self[2:], other[2:], strict=True)]
        return Result(*self[:2], *sums)._replace(excess=max(self.excess, other.excess))

    @property
    def is_clean(self) -> bool:
        return self.excess == 0 and self.broken == 0


def attack(pair: tuple[str, str], seed: int, tables: range) -> Result:
    """These tables of a pair; each follows from the seed and its own number."""
    result = Result(*pair)
    number = PAIRS.index(pair)
    one = _dealt if pair[0] in ("angelize, dealt", "anatomize") else _halved
    for table in tables:
        result += one(pair, np.random.default_rng([seed, number, table]), table)
    return result


def _halved(pair: tuple[str, str], rng: np.random.Generator, table: int) -> Result:
    """A table of which at least one sample may be cut, so that verdicts can differ."""
    case = _suitable(rng, pair[1], _can_be_cut)
    outcome = halving.bits_known(case, rng)
    result = _of(pair, outcome)
    if table % LITERAL == 0 and outcome.worlds <= FEW_WORLDS:
        state = rng.bit_generator.state
        known = halving.bits_known(case, rng)
        rng.bit_generator.state = state
        if halving.replayed(case, rng) != known:
            raise AssertionError(f"{pair}: the publisher does something else than the red team thinks")
    if table % INTEGRATED == 0:
        small = _suitable(rng, pair[1], lambda case: case.people <= SMALL and _can_be_cut(case))
        alike = classes(small, rng) if pair[0].startswith("angelize") else combinations(small)
        unknown = halving.bits_unknown(small, alike)
        result += Result(*pair, 0, 0, 0, unknown.excess, 1, unknown.releases, unknown.broken)
    return result


def _dealt(pair: tuple[str, str], rng: np.random.Generator, table: int) -> Result:
    """A table whose people can be dealt; all bits are unknown."""
    case = _suitable(rng, pair[1], lambda case: case.people <= 7 and dealing.l_of(case) is not None)
    outcome = dealing.anatomy(case) if pair[0] == "anatomize" else dealing.angel(case, classes(case, rng))
    assert outcome is not None  # it can be dealt
    return _of(pair, outcome)._replace(unknown_tables=1, unknown_releases=outcome.releases)


def _of(pair: tuple[str, str], outcome: Outcome) -> Result:
    return Result(*pair, 1, outcome.worlds, outcome.releases, outcome.excess, 0, 0, outcome.broken)


def _suitable(rng: np.random.Generator, principle: str, fits: Callable[[Case], bool]) -> Case:
    while True:
        case = drawn(rng, principle)
        if fits(case):
            return case


def _can_be_cut(case: Case) -> bool:
    return any(sample.depth for sample in halving.samples(case))


def combinations(case: Case) -> Ints:
    """Who is alike in every quasi-identifier: the most that a published group can tell."""
    return np.unique(case.columns.place.T, axis=0, return_inverse=True)[1].reshape(-1)


def classes(case: Case, rng: np.random.Generator) -> Ints:
    """Buckets of ANGEL: a coarsening of the combinations that no sensitive value has a part in."""
    alike = combinations(case)
    merged = rng.integers(0, int(rng.integers(1, 4)), int(alike.max()) + 1)
    return np.unique(merged[alike], return_inverse=True)[1].reshape(-1)
