"""Equal halves, and batches that are halved or dealt: an attacker who knows this algorithm learns what they show only.

A node is cut into two halves of the same number of people, along one quasi-identifier; people with the same value are
divided at random. It is cut if and only if both halves keep every promise, and no second cut is tried. Which column is
cut follows from the quasi-identifiers alone. Then everybody in a leaf is equally likely to have each of its values
(decision 41): successes are functions of the leaves' histograms, and the failure at a leaf does not change when values
are permuted within its halves or when the halves change places.

All nodes of a depth must have the same even size. So the people are first drawn into samples of q · 2^J people each, as
large as they fit, and the last sample is one group. What values each sample has follows from the table's values alone;
who is drawn is random. Each sample is halved by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali import kernels
from jali.core.arrays import ONE, Bools, Ints, Runs, combine, counted, is_dense, narrowed, steps
from jali.core.progress import Step
from jali.encoding.table import Table
from jali.errors import InputError
from jali.kernels import DIGITS
from jali.kernels.jit import ready
from jali.principles import AlphaAnonymity, FrequencyDiversity, TCloseness
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts
from jali.search.batches import dealing_of, dealt_into, dealt_out, seated_row, smallest
from jali.search.common import require_feasible
from jali.search.items import Columns, columns_of


class People(NamedTuple):
    """Everybody who is put into groups, one by one."""

    combination: Ints  # (people,)
    value: Ints  # (people,) joint sensitive value
    whole: Counts  # everybody as one group

    def counts(self, nodes: NDArray[np.integer]) -> Counts:
        """People by node and value; each row of `nodes` has the people of one."""
        whole, values = self.whole, len(self.whole.joint)
        cell = (self.value[nodes] + values * np.arange(len(nodes))[:, None]).ravel()
        people = np.ones(len(cell), dtype=np.int64)
        if is_dense(values * len(nodes), len(cell)):  # else they are counted one by one
            every = np.bincount(cell, minlength=values * len(nodes))
            cell = np.flatnonzero(every)
            people = every[cell]
        node, value = np.divmod(cell, values)
        return Counts(len(nodes), node, value, people, whole.sensitive, whole.joint, None, whole)

    def in_order(self, order: Ints) -> People:
        """The same people, renumbered in this order."""
        return People(self.combination[order], self.value[order], self.whole)


def people_of(table: Table) -> People:
    """Everybody of a table that has one record for each person."""
    f = table.frequencies
    value, _ = combine([(column.codes, len(column.values)) for column in table.sensitive], table.records)
    whole = f.whole
    return People(f.row_combination.astype(np.int64), value.astype(np.int64), whole)


class Sample(NamedTuple):
    """People who are halved together, at most `depth` times."""

    histogram: Ints  # (values,) how many of them have each value
    depth: int  # 2^depth divides their number


class Halves(NamedTuple):
    """Who is together."""

    group: Ints  # (people,)
    groups: int
    checked: int  # cuts that were judged


By = Literal["area", "range"]
BYS: tuple[By, ...] = ("area", "range")
Cut = Callable[[NDArray[np.int32]], tuple[NDArray[np.int32], Bools]]
"""Nodes, (nodes, people), cut into their halves, (2 · nodes, people / 2), and which nodes have one combination."""


def samples_of(histogram: Ints, least: int, principles: tuple[Principle, ...], whole: Counts) -> list[Sample]:
    """How the people are drawn into samples: a function of the table's values and the promises alone.

    Each sample takes as many of those who are left as it can, in proportion to their values: q · 2^J people,
    `least` <= q < 2 · `least`, who keep the promises and leave nobody or people who do. Where no number will do, all
    who are left are one group.
    """
    samples: list[Sample] = []
    left = histogram.copy()
    while left.any():
        sample = next((s for s in _candidates(left, least) if _fits(s, left, principles, whole)), Sample(left, 0))
        samples.append(sample)
        left = left - sample.histogram
    return samples


def _candidates(left: Ints, least: int) -> Iterator[Sample]:
    """Samples of those who are left, from the largest one down to `least` people."""
    people = int(left.sum())
    for depth in range(max(people // least, 1).bit_length() - 1, -1, -1):
        for q in range(min(people >> depth, 2 * least - 1), least - 1, -1):
            yield Sample(_in_proportion(left, q << depth), depth)


def _fits(sample: Sample, left: Ints, principles: tuple[Principle, ...], whole: Counts) -> bool:
    """Whether the people of the sample keep every promise, and so do the others, if there are any."""
    others = left - sample.histogram
    both = np.stack([sample.histogram, others])
    return all_hold(both[both.any(axis=1)], principles, whole)


def _in_proportion(histogram: Ints, size: int) -> Ints:
    """A histogram of `size` people with nearly the same shares; of equal remainders the first values get one more."""
    people = int(histogram.sum())
    share = histogram * size
    taken = share // people
    rest = np.argsort(-(share % people), kind="stable")[: size - int(taken.sum())]
    taken[rest] += 1
    return taken


def all_hold(people: Ints, principles: tuple[Principle, ...], whole: Counts) -> bool:
    """Whether groups keep every promise, whose people have each value: (groups, values)."""
    group, value = np.nonzero(people)
    n, judged = people[group, value], whole.joint
    return bool(hold(principles, Counts(len(people), group, value, n, whole.sensitive, judged, None, whole)).all())


def halve(
    columns: Columns, people: People, principles: tuple[Principle, ...], *, drawn: Ints, ties: Ints,
    by: By = "area", sorting: bool = False, on_step: Step | None = None, compiled: bool | None = None,
) -> Halves:  # fmt: skip
    """Groups of people by equal halves.

    `drawn` and `ties` are two independent random permutations of the people: the first says who is drawn into which
    sample, the second who of those with the same value comes first. `by` says which column a node is cut along: the one
    that makes the boxes of both halves smallest ("area"), or the one of which the node spans the largest part
    ("range"). With `sorting` people with the same value stand as the cuts before have put them, and only those who were
    alike in all of these in the order of `ties`. The kernel cuts where it is worth compiling, or as `compiled` says.
    """
    least = max(1, *(p.least_size() for p in principles))
    histogram = np.bincount(people.value, minlength=len(people.whole.joint)).astype(np.int64)
    samples = samples_of(histogram, least, principles, people.whole)
    in_turn = people.in_order(ties)  # then people of a node who follow each other lie near each other
    cut = cut_of(columns, in_turn.combination, by, sorting=sorting, compiled=compiled)
    group = np.empty(len(people.value), dtype=np.int64)
    groups = checked = done = 0
    rank = np.empty_like(ties)
    rank[ties] = np.arange(len(ties))
    for members, sample in zip(_draw(people.value, samples, drawn), samples, strict=True):
        node = np.sort(rank[members].astype(np.int32))
        for leaves, judged in leaves_of(in_turn, principles, node, sample.depth, cut):
            number, size = leaves.shape
            group[leaves] = np.arange(groups, groups + number)[:, None]
            groups, checked, done = groups + number, checked + judged, done + number * size
            if on_step is not None:
                on_step(done, len(group))
    return Halves(group[rank], groups, checked)


class Seating(NamedTuple):
    """Everybody, group by group, as the record that they are one of."""

    member: NDArray[np.int32]  # (members,) the record
    in_group: Runs
    people: NDArray[np.integer] | None = None  # (members,) where a member stands for several


def halve_counted(
    columns: Columns, records: People, multiplicity: Ints, principles: tuple[Principle, ...], *,
    order_of: Callable[[int], Ints], turn_of: Callable[[int], Ints], by: By = "area", sorting: bool = False,
    on_step: Step | None = None, compiled: bool | None = None,
) -> Seating:  # fmt: skip
    """Groups by equal halves from counts: `records` has combination and value of each record, of `multiplicity` people.

    People of one record are alike, so a random order of people is one of copies of records: of each value `order_of`
    draws it, and those who come first are drawn into the first sample. `turn_of` draws the order of ties in each
    sample. So the groups have the distribution that `halve` gives them.
    """
    least = max(1, *(p.least_size() for p in principles))
    many = len(records.whole.joint)
    histogram = counted(records.value, multiplicity, many)
    samples = samples_of(histogram, least, principles, records.whole)
    row, people = seated_row(records.value, multiplicity, np.arange(many), order_of), int(histogram.sum())
    cut = cut_of(columns, records.combination, by, sorting=sorting, compiled=compiled, people=people)
    member, sizes, done = np.empty(people, dtype=np.int32), list[NDArray[np.integer]](), 0
    begin = np.cumsum(histogram) - histogram
    for sample in samples:
        drawn = np.concatenate([row[b : b + n] for b, n in zip(begin, sample.histogram, strict=True)])
        begin += sample.histogram
        drawn = drawn[turn_of(len(drawn))]
        for leaves, _ in leaves_of(records, principles, drawn, sample.depth, cut):
            number, size = leaves.shape
            member[done : done + number * size] = leaves.reshape(-1)
            sizes.append(np.full(number, size, dtype=np.int32))
            done += number * size
            if on_step is not None:
                on_step(done, people)
    return Seating(member, Runs(narrowed(np.concatenate(sizes))))


def _draw(value: Ints, samples: Sequence[Sample], drawn: Ints) -> list[Ints]:
    """The people of each sample: of each value as many as its histogram says, in the order in which they are drawn."""
    narrow = value.astype(smallest(int(value.max(initial=0)) + 1))
    order = drawn[np.argsort(narrow[drawn], kind="stable")]
    many = np.stack([sample.histogram for sample in samples], axis=1)  # (values, samples)
    sample = np.repeat(np.tile(np.arange(len(samples)), len(many)), many.ravel())
    return np.split(
        order[np.argsort(sample.astype(smallest(len(samples))), kind="stable")], np.cumsum(many.sum(axis=0))[:-1]
    )


def leaves_of(
    people: People, principles: tuple[Principle, ...], members: NDArray[np.int32], depth: int, cut: Cut
) -> Iterator[tuple[NDArray[np.int32], int]]:
    """The leaves of one sample, (leaves, people) at a time, and how many cuts were judged for them.

    Nodes of one depth are cut some at a time; those that are cut further are written over those that were there before.
    """
    nodes = members[None, :]
    for _ in range(depth):
        size, kept = nodes.shape[1] // 2, 0
        flat = nodes.reshape(-1)
        for some in steps(len(nodes), max(2 * size, len(people.whole.joint))):
            halves, uncut = cut(nodes[some])
            held = hold(principles, people.counts(halves)).reshape(-1, 2).all(axis=1) & ~uncut
            yield nodes[some][~held], len(held)
            further = halves.reshape(-1, 2 * size)[held].reshape(-1)
            flat[kept : kept + len(further)] = further
            kept += len(further)
        nodes = flat[:kept].reshape(-1, size)
    yield nodes, 0


def cut_of(
    columns: Columns, combination: Ints, by: By, *, sorting: bool = False, compiled: bool | None = None,
    people: int | None = None,
) -> Cut:  # fmt: skip
    """What cuts nodes of people, or of records, with these combinations; compiled where it is worth it."""
    if compiled is None:
        from jali.kernels.halves import cut_equally

        compiled = ready(
            cut_equally, "equal halves", little=(len(combination) if people is None else people) <= kernels.FEW
        )
    return (_compiled_cut if compiled else _plain_cut)(columns, combination, by, sorting)


def _plain_cut(columns: Columns, combination: Ints, by: By, sorting: bool) -> Cut:
    """Cuts nodes of one size each into equal halves: the twin of the compiled kernel."""

    def cut(nodes: NDArray[np.int32]) -> tuple[NDArray[np.int32], Bools]:
        number, size = nodes.shape
        best = np.full(number, -1, dtype=np.int64)
        halves = nodes.copy()
        for a in range(len(columns.tree)):
            place = columns.place[a][combination[nodes]].astype(np.int64)
            order = np.argsort(place, axis=1, kind="stable")
            ends = np.take_along_axis(place, order, 1)[:, [0, size // 2 - 1, size // 2, -1]].T
            gain = gains_of(columns, a, by, list(ends))
            better = gain > best
            best[better] = gain[better]
            kept = order[better]
            if not sorting:  # the order of ties
                kept = np.sort(kept.reshape(-1, 2, size // 2), axis=2).reshape(-1, size)
            halves[better] = np.take_along_axis(nodes[better], kept, 1)
        return halves.reshape(2 * number, size // 2), best < 0

    return cut


def gains_of(columns: Columns, a: int, by: By, ends: Sequence[Ints]) -> Ints:
    """What cuts of a column gain, to nine digits; -1 where all have the same value.

    `ends` are the lowest and highest places of the lower halves and those of the upper ones: (nodes,) each.
    """
    low, last, first, high = ends
    whole, lower, upper = (_span(columns, a, x, y) for x, y in ((low, high), (low, last), (first, high)))
    part = (whole - 1) / max(int(columns.width[a]) - 1, 1)
    gain = part if by == "range" else 2 * np.log(whole) - (np.log(lower) + np.log(upper))
    return np.where(low < high, np.floor(gain * (columns.weights[a] / ONE) * DIGITS + 0.5).astype(np.int64), -1)


def _compiled_cut(columns: Columns, combination: Ints, by: By, sorting: bool) -> Cut:
    """The cut by the kernel, which shares the nodes among threads."""
    from jali.kernels.halves import Ground, cut_equally

    ground = Ground(
        combination.astype(np.int32),
        columns.place,
        np.stack([columns.tree, columns.size, columns.offset, columns.width, columns.weights]).astype(np.int64),
        np.stack([columns.node, columns.leaves]),
    )

    def cut(nodes: NDArray[np.int32]) -> tuple[NDArray[np.int32], Bools]:
        number, size = nodes.shape
        halves, uncut = nodes.copy(), np.zeros(number, dtype=bool)
        cut_equally(ground, halves.reshape(-1), size, by == "range", sorting, uncut)
        return halves.reshape(2 * number, size // 2), uncut

    return cut


def _span(columns: Columns, a: int, low: Ints, high: Ints) -> Ints:
    """How many values of the domain lie between two places, or under the smallest node that covers both."""
    at, size = int(columns.offset[a]), int(columns.size[a])
    if not columns.tree[a]:
        return columns.node[at + high] - columns.node[at + low] + 1
    end = len(columns.node) if a + 1 == len(columns.offset) else int(columns.offset[a + 1])
    node, leaves = (rows[at:end].reshape(-1, size) for rows in (columns.node, columns.leaves))
    level = (node[:, low] != node[:, high]).sum(axis=0)
    return np.asarray(leaves[level, low])


# -- batches: who sits in which, by halves or dealt at random to the most batches that keep every promise --------------
#
# The promises say which, before anybody's value is looked at. Decision 44 has the proof.

Seats = Literal["anatomy", "halves"]
BOUNDING = (FrequencyDiversity, AlphaAnonymity, TCloseness)
"""Promises that bound single shares: their batches are few and large, and analysts learn more from small boxes.

Batches under the others are many and small, and those that are cut where they are widest tell more (measured on Adult).
"""


def seats_of(principles: Sequence[Principle]) -> Seats:
    """How people are put into batches under these promises: a rule that looks at no table.

    Halves follow the quasi-identifiers, and so tell analysts more; Safety, which is about all batches at once, is kept
    by dealing alone.
    """
    return "anatomy" if any(p.scope == "table" for p in principles) else "halves"


def cut_by(principles: Sequence[Principle]) -> By:
    """Along which columns halves are cut under these promises: a rule that looks at no table."""
    return "area" if all(isinstance(p.inner, BOUNDING) for p in principles) else "range"


def require_seats(way: Seats, principles: Sequence[Principle]) -> None:
    """Raise InputError where batches by equal halves would not keep a promise about all batches at once."""
    broken = [p for p in principles if p.scope == "table"]
    if way == "halves" and broken:
        what = f"equal halves judge batches one by one, and {broken[0]!r} is about all of them at once"
        raise InputError(what, do='pass batches="anatomy", which deals people at random')


class Orders(NamedTuple):
    """Two independent random orders of everybody, which nobody can repeat."""

    first: Ints  # (people,) who is dealt, or drawn into a sample, before whom
    ties: Ints  # (people,) who of those with equal quasi-identifiers comes first


def seated(
    table: Table, principles: tuple[Principle, ...], way: Seats, orders: Orders, *, on_step: Step | None = None
) -> Ints:
    """The batch of each record of a table with one record a person: (records,)."""
    people = people_of(table)
    require_feasible(principles, people.whole)
    require_seats(way, principles)
    if way == "anatomy":
        return dealt(people.value, principles, people.whole, orders.first)
    halves = halve(
        columns_of(table), people, principles, drawn=orders.first, ties=orders.ties, by=cut_by(principles),
        sorting=True, on_step=on_step,
    )  # fmt: skip
    return halves.group


def seated_counted(
    table: Table, principles: tuple[Principle, ...], way: Seats, order_of: Callable[[int], Ints],
    turn_of: Callable[[int], Ints], *, on_step: Step | None = None,
) -> Seating:  # fmt: skip
    """The batches of a table whose records stand for several people each, drawn from these counts."""
    assert table.multiplicity is not None
    people = people_of(table)
    require_feasible(principles, people.whole)
    require_seats(way, principles)
    if way == "anatomy":
        many = counted(people.value, table.multiplicity, len(people.whole.joint))
        place, batches = dealing_of(many, principles, people.whole)
        row = seated_row(people.value, table.multiplicity, np.argsort(place), order_of)
        return Seating(*dealt_out(row, order_of(batches)))
    return halve_counted(
        columns_of(table), people, table.multiplicity, principles, order_of=order_of, turn_of=turn_of,
        by=cut_by(principles), sorting=True, on_step=on_step,
    )  # fmt: skip


def dealt(value: Ints, principles: tuple[Principle, ...], whole: Counts, order: Ints) -> Ints:
    """The batch of everybody, dealt at random into as many batches as keep every promise: (people,).

    Everybody stands in a row, value by value, and is dealt out to the batches in turn. So which values meet in a batch
    follows from how many people have each value, and the number of batches is chosen before anybody is dealt.
    """
    place, batches = dealing_of(counted(value, length=len(whole.joint)), principles, whole)
    return dealt_into(place[value], batches, order)
