"""An attacker who runs the public verb itself: in every world and with every random order, one release after another.

The verbs draw orders from the system's randomness. Here the first orders that a verb draws of people are listed
instead, all of them, and the others, which number and shuffle what is published, stay as they are; releases are
compared without numbers and orders. Belief is everybody's, from the published tables alone.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import jali
from jali.core.arrays import Ints
from jali.encoding.table import Table
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts, Sensitive
from jali.releases.base import Release

Publisher = Callable[[Table], Release]
World = tuple[str, ...]
Belief = dict[tuple[int, str], Fraction]


def takes_transparent(verb: Callable[..., Any]) -> bool:
    """Whether the verb has the option."""
    return "transparent" in inspect.signature(verb).parameters


@contextlib.contextmanager
def drawing(orders: Sequence[Ints]) -> Iterator[None]:
    """The first orders of as many people as these are these; every other order is left as it is."""
    waiting = list(orders)

    def fresh_order(rows: int) -> Ints:
        if waiting and len(waiting[0]) == rows:
            return waiting.pop(0)
        return np.arange(rows)

    with contextlib.ExitStack() as stack:
        for name, module in [*sys.modules.items()]:
            for order in ("fresh_order", "open_order"):
                if name.startswith("jali.") and hasattr(module, order):
                    stack.enter_context(mock.patch.object(module, order, fresh_order))
        yield
    assert not waiting, "the verb draws fewer orders than are listed"


def shown(release: Release) -> object:
    """What is published, without numbers of groups and orders of rows."""
    frame = release.frame("pandas")
    number = next((name for name in ("bucket", "batch") if name in frame), None)
    if number is None:
        return frozenset(Counter(map(tuple, frame.astype(str).to_numpy().tolist())).items())
    counts = release.counts()
    groups: dict[int, Counter[object]] = defaultdict(Counter)
    for *cells, group in frame.astype(str).to_numpy().tolist():
        groups[int(group)][tuple(cells)] += 1
    own = {g: tuple(row) for g, row in enumerate(_histograms(counts), 1)}
    return frozenset(Counter((frozenset(cells.items()), own[g]) for g, cells in groups.items()).items())


def _histograms(counts: Counts) -> list[list[int]]:
    dense = np.zeros((counts.groups, len(counts.joint)), dtype=np.int64)
    np.add.at(dense, (counts.group, counts.value), counts.n)
    return dense.tolist()


def believed(
    table: Callable[[World], Table], true: World, publish: Publisher, draws: Sequence[int]
) -> dict[object, Belief]:
    """For each release that some world leads to, everybody's belief; the first orders, of these lengths, are listed."""
    orders = [[np.array(order) for order in permutations(range(length))] for length in draws]
    weight: Counter[object] = Counter()
    joint: Counter[tuple[object, int, str]] = Counter()
    for world in sorted(set(permutations(true))):
        for chosen in product(*orders):
            with drawing(chosen):
                release = shown(publish(table(world)))
            weight[release] += 1
            joint.update((release, p, v) for p, v in enumerate(world))
    return {
        release: {(p, v): Fraction(joint[release, p, v], total) for p in range(len(true)) for v in set(true)}
        for release, total in weight.items()
    }


def keeps(principle: Principle, belief: Belief, true: World) -> bool:
    """Whether the beliefs about each person, in the place of shares, keep the promise."""
    values = sorted(set(true))
    column = Sensitive("ill", tuple(values), ordered=True)
    whole = _counts([[true.count(v) for v in values]], column, None)
    scale = np.lcm.reduce([b.denominator for b in belief.values()])
    people = [[int(belief[p, v] * int(scale)) for v in values] for p in range(len(true))]
    return bool(hold((principle,), _counts(people, column, whole)).all())


def _counts(rows: list[list[int]], column: Sensitive, whole: Counts | None) -> Counts:
    matrix = np.array(rows)
    group, value = np.nonzero(matrix)
    joint = np.arange(matrix.shape[1])[:, None]
    return Counts(len(matrix), group, value, matrix[group, value], (column,), joint, None, whole)


def table_of(x: Sequence[int]) -> Callable[[World], Table]:
    """Tables of these people, one quasi-identifier each, whatever their values are."""

    def table(world: World) -> Table:
        frame = pa.table({"x": list(x), "ill": list(world)})
        return jali.table(frame, quasi={"x": jali.bands(2, 4, low=0, high=7)}, sensitive=["ill"])

    return table
