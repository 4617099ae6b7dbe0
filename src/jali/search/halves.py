"""Equal halves: groups that tell an attacker who knows this algorithm nothing more than they show.

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

from jali.core.arrays import Bools, Ints
from jali.core.progress import Step
from jali.kernels import DIGITS
from jali.kernels.jit import prepare
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts
from jali.search.mondrian.plan import Columns


class People(NamedTuple):
    """Everybody who is put into groups, one by one."""

    combination: Ints  # (people,)
    value: Ints  # (people,) joint sensitive value
    whole: Counts  # everybody as one group

    def counts(self, people: NDArray[np.integer], group: Ints, groups: int) -> Counts:
        """People by group and value, when each of these people is in the group beside them."""
        whole = self.whole
        n = np.ones(len(people), dtype=np.int64)
        return Counts(groups, group, self.value[people], n, whole.sensitive, whole.joint, None, whole)


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
Cut = Callable[[NDArray[np.int32]], tuple[NDArray[np.int32], Bools]]
"""Nodes, (nodes, people), cut into their halves, (2 · nodes, people / 2), and which nodes have one combination."""


def samples_of(histogram: Ints, least: int, principles: tuple[Principle, ...], whole: Counts) -> list[Sample]:
    """How the people are drawn into samples: a function of the table's values and the promises alone.

    Each sample takes the largest q · 2^J of those who are left, `least` <= q < 2 · `least`, in proportion to their
    values; a sample that would break a promise, or leave people who do, is not taken.
    """
    samples: list[Sample] = []
    left = histogram.copy()
    while True:
        people = int(left.sum())
        depth = max(people // least, 1).bit_length() - 1
        size = (people >> depth) << depth
        taken = left if size == people else _in_proportion(left, size)
        if not _holds(taken, principles, whole) or (size < people and not _holds(left - taken, principles, whole)):
            return [*samples, Sample(left, 0)]
        samples.append(Sample(taken, depth))
        left = left - taken
        if size == people:
            return samples


def _in_proportion(histogram: Ints, size: int) -> Ints:
    """A histogram of `size` people with nearly the same shares; of equal remainders the first values get one more."""
    people = int(histogram.sum())
    share = histogram * size
    taken = share // people
    rest = np.argsort(-(share % people), kind="stable")[: size - int(taken.sum())]
    taken[rest] += 1
    return taken


def _holds(histogram: Ints, principles: tuple[Principle, ...], whole: Counts) -> bool:
    value = np.flatnonzero(histogram)
    zero = np.zeros(len(value), dtype=np.int64)
    counts = Counts(1, zero, value, histogram[value], whole.sensitive, whole.joint, None, whole)
    return bool(hold(principles, counts).all())


def halve(
    columns: Columns, people: People, principles: tuple[Principle, ...], *, drawn: Ints, ties: Ints,
    by: By = "area", sorting: bool = False, on_step: Step | None = None, compiled: bool = True,
) -> Halves:  # fmt: skip
    """Groups of people by equal halves.

    `drawn` and `ties` are two independent random permutations of the people: the first says who is drawn into which
    sample, the second who of those with the same value comes first. `by` says which column a node is cut along: the one
    that makes the boxes of both halves smallest ("area"), or the one of which the node spans the largest part
    ("range"). With `sorting` people with the same value stand as the cuts before have put them, and only those who were
    alike in all of these in the order of `ties`.
    """
    least = max(1, *(p.least_size() for p in principles))
    histogram = np.bincount(people.value, minlength=len(people.whole.joint)).astype(np.int64)
    samples = samples_of(histogram, least, principles, people.whole)
    cut = (_compiled_cut if compiled else _plain_cut)(columns, people.combination, by, sorting)
    group = np.empty(len(people.value), dtype=np.int64)
    groups = checked = done = 0
    rank = np.argsort(ties)
    for members, sample in zip(_draw(people.value, samples, drawn), samples, strict=True):
        in_turn = members[np.argsort(rank[members])].astype(np.int32)
        for leaves, judged in _leaves(people, principles, in_turn, sample.depth, cut):
            number, size = leaves.shape
            group[leaves] = np.arange(groups, groups + number)[:, None]
            groups, checked, done = groups + number, checked + judged, done + number * size
            if on_step is not None:
                on_step(done, len(group))
    return Halves(group, groups, checked)


def _draw(value: Ints, samples: Sequence[Sample], drawn: Ints) -> list[Ints]:
    """The people of each sample: of each value as many as its histogram says, in the order in which they are drawn."""
    order = drawn[np.argsort(value[drawn], kind="stable")]
    many = np.stack([sample.histogram for sample in samples], axis=1)  # (values, samples)
    sample = np.repeat(np.tile(np.arange(len(samples)), len(many)), many.ravel())
    return np.split(order[np.argsort(sample, kind="stable")], np.cumsum(many.sum(axis=0))[:-1])


def _leaves(
    people: People, principles: tuple[Principle, ...], members: NDArray[np.int32], depth: int, cut: Cut
) -> Iterator[tuple[NDArray[np.int32], int]]:
    """The leaves of one sample, (leaves, people) at a time, and how many cuts were judged for them."""
    nodes = members[None, :]
    for _ in range(depth):
        halves, uncut = cut(nodes)
        number, size = halves.shape
        counts = people.counts(halves.ravel(), np.repeat(np.arange(number), size), number)
        held = hold(principles, counts).reshape(-1, 2).all(axis=1) & ~uncut
        yield nodes[~held], len(held)
        nodes = halves.reshape(-1, 2 * size)[held].reshape(-1, size)
    yield nodes, 0


def _plain_cut(columns: Columns, combination: Ints, by: By, sorting: bool) -> Cut:
    """Cuts nodes of one size each into equal halves: the twin of the compiled kernel."""

    def cut(nodes: NDArray[np.int32]) -> tuple[NDArray[np.int32], Bools]:
        number, size = nodes.shape
        best = np.full(number, -1, dtype=np.int64)
        halves = nodes.copy()
        for a in range(len(columns.tree)):
            place = columns.place[a][combination[nodes]].astype(np.int64)
            order = np.argsort(place, axis=1, kind="stable")
            low, last, first, high = (np.take_along_axis(place, order, 1)[:, [0, size // 2 - 1, size // 2, -1]]).T
            whole, lower, upper = (_span(columns, a, x, y) for x, y in ((low, high), (low, last), (first, high)))
            part = (whole - 1) / max(int(columns.width[a]) - 1, 1)
            gain = part if by == "range" else 2 * np.log(whole) - (np.log(lower) + np.log(upper))
            gain = np.floor(gain * DIGITS + 0.5).astype(np.int64)
            better = (gain > best) & (low < high)
            best[better] = gain[better]
            kept = order[better]
            if not sorting:  # the order of ties
                kept = np.sort(kept.reshape(-1, 2, size // 2), axis=2).reshape(-1, size)
            halves[better] = np.take_along_axis(nodes[better], kept, 1)
        return halves.reshape(2 * number, size // 2), best < 0

    return cut


def _compiled_cut(columns: Columns, combination: Ints, by: By, sorting: bool) -> Cut:
    """The same by the kernel, the nodes shared among threads."""
    from jali.kernels.halves import Ground, cut_equally

    prepare(cut_equally, "equal halves")
    ground = Ground(
        combination,
        columns.place,
        np.stack([columns.tree, columns.size, columns.offset, columns.width]).astype(np.int64),
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
