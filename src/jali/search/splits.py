"""Mondrian for any principle: each group proposes splits, and all that are proposed at a time are judged together.

A group is an array of items in their order. What it proposes is a generator: it yields lists of parts, is sent back
which of them hold, and returns the split it has found or None. The rules are those of the compiled kernels.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import floor, log
from typing import Protocol, TypeVar

import numpy as np

from jali.core.arrays import ONE, Bools, Floats, Ints, added, owners
from jali.kernels import CUTS, DIGITS
from jali.principles.base import Principle, least_people
from jali.principles.counts import Counts
from jali.search.gate import compare, judged_alone, note
from jali.search.items import Columns, Items, Mode, Similarity, Split

Parts = list[Ints]
Found = TypeVar("Found")
Proposal = Generator[Parts, Bools, Found]
Candidate = tuple[Fraction | int, int, int, int, Parts | None]  # -gain, first item, column, group, parts if known

_AT_ONCE = 1 << 22  # items judged together


class Judge(Protocol):
    """A promise about all groups together: it may forbid a split that every group-local principle allows.

    It is asked about one split at a time, in one order: largest gain, then the group with the first item, then the
    column. A split that it forbids is not proposed again, so its verdicts must not become milder as groups are split.
    """

    def allows(self, group: Counts, parts: Counts) -> bool:
        """Whether a group (counts of one group) may be split into these parts (counts of several)."""

    def commit(self, group: Counts, parts: Counts) -> None:
        """Told that the split, which it allowed just before, has been made."""


class Splitter:
    """How one group is split: the columns it may be split by, and the parts of each split."""

    def __init__(
        self, columns: Columns, items: Items, principles: tuple[Principle, ...], *, mode: Mode, split: Split,
        similarity: Similarity = "box",
    ) -> None:  # fmt: skip
        self.columns, self.items, self.principles = columns, items, principles
        self.relaxed, self.by, self.similarity = mode == "relaxed", split, similarity
        self.least = least_people(principles, items.whole) if items.person is None else 1
        self.checked = 0

    def places(self, group: Ints, a: int) -> Ints:
        """Where the items of a group stand in a column: (items,)."""
        places: Ints = self.columns.place[a, self.items.combination[group]].astype(np.int64)
        return places

    def judged(self, parts: Parts) -> Bools:
        """Which of these parts keep every promise, each by itself: (parts,)."""
        return judged_alone(self.principles, self.counts(parts))

    def counts(self, parts: Parts) -> Counts:
        """People of each part by value."""
        number = owners([len(part) for part in parts])
        return self.items.counts(np.concatenate(parts), number, len(parts))

    def members(self, parts: Parts) -> tuple[Ints, Ints]:
        """The combinations of these parts, and the part of each: (members,) each."""
        number = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return self.items.combination[np.concatenate(parts)], number

    # -- which column -----------------------------------------------------------------------------------------

    def gains(self, group: Ints) -> list[tuple[Fraction | int, int]]:
        """The columns in which a group has several values, the one with the largest gain first."""
        gains: list[tuple[Fraction | int, int]] = []
        for a in range(len(self.columns.tree)):
            places = self.places(group, a)
            low, high = int(places.min()), int(places.max())
            if low < high:
                gains.append((self._gain(group, a, places, low, high), a))
        return sorted(gains, key=lambda gain: (-gain[0], gain[1]))

    def _gain(self, group: Ints, a: int, places: Ints, low: int, high: int) -> Fraction | int:
        weight = int(self.columns.weights[a]) / ONE
        if self.by == "range":
            part = Fraction(self.span(a, low, high) - 1, int(self.columns.width[a]) - 1)
            return part if self.columns.importance is None else floor(weight * float(part) * DIGITS + 0.5)
        if self.by == "kl":
            return 0  # known only once the split is
        return floor(weight * self.entropy(places, self.items.n[group]) * DIGITS + 0.5)

    @staticmethod
    def entropy(places: Ints, people: Ints) -> float:
        """How uncertain the values of people are in a column, in nats."""
        heft = np.bincount(places - places.min(), weights=people)
        share = heft[heft > 0] / heft.sum()
        return -float(share @ np.log(share))

    def level(self, a: int, low: int, high: int) -> int:
        """The lowest level at which two places of a tree lie under one node."""
        at, size = int(self.columns.offset[a]), int(self.columns.size[a])
        level = 0
        while self.columns.node[at + level * size + low] != self.columns.node[at + level * size + high]:
            level += 1
        return level

    def span(self, a: int, low: int, high: int) -> int:
        """How many values of the domain lie between two places, or under the smallest node that covers them."""
        at, size = int(self.columns.offset[a]), int(self.columns.size[a])
        if not self.columns.tree[a]:
            return int(self.columns.node[at + high] - self.columns.node[at + low]) + 1
        return int(self.columns.leaves[at + self.level(a, low, high) * size + low])

    def information(self, group: Ints) -> float:
        """Σ n log(n / area) over the joint values of a group; by distributions, log area is the sum of entropies."""
        n = self.items.n[group]
        spread = [(self.places(group, a), n) for a in range(len(self.columns.tree))]
        return self.informed(added(self.items.value[group], n), spread)

    def informed(self, n: Floats, spread: Iterable[tuple[Ints, Ints]]) -> float:
        """The information of a group: `n` people of each joint value; of each column the places and their people."""
        n = n[n > 0]
        area = 0.0
        for a, (places, people) in enumerate(spread):
            weight = int(self.columns.weights[a]) / ONE
            if self.similarity == "pdf":
                area += weight * self.entropy(places, people)
            else:
                area += weight * log(self.span(a, int(places.min()), int(places.max())))
        return float(n @ np.log(n)) - float(n.sum()) * area

    # -- the first allowable split of a column -----------------------------------------------------------------

    def by_column(self, group: Ints, a: int) -> Proposal[Parts | None]:
        """The parts of the first allowable split of one column."""
        at, places = int(self.columns.offset[a]), self.places(group, a)
        if not self.columns.tree[a]:
            return (yield from self._halves(group, places))
        level = self.level(a, int(places.min()), int(places.max())) - 1
        return (yield from self._children(group, self.columns.node[at + level * int(self.columns.size[a]) + places]))

    def _halves(self, group: Ints, places: Ints) -> Proposal[Parts | None]:
        by_place = group[np.argsort(places, kind="stable")]
        upto = np.cumsum(self.items.n[by_place])
        for cut in self._cuts(np.sort(places), upto):
            self.checked += 1
            parts = [np.sort(by_place[:cut]), np.sort(by_place[cut:])]
            if min(int(upto[cut - 1]), int(upto[-1] - upto[cut - 1])) >= self.least and (yield parts).all():
                return parts
        return None

    def _cuts(self, places: Ints, upto: Ints) -> Iterator[int]:
        """How many of the sorted items go to the lower half: the most even cuts first, of equal ones the lower."""
        uneven = np.abs(2 * upto[:-1] - upto[-1])
        if self.relaxed:
            yield int(np.argmin(uneven)) + 1
        between = np.flatnonzero(places[1:] != places[:-1])  # values stay together
        for cut in between[np.argsort(uneven[between], kind="stable")][:CUTS]:
            yield int(cut) + 1

    def _children(self, group: Ints, nodes: Ints) -> Proposal[Parts | None]:
        """All children, each a part; when relaxed, those that fail are one, which the smallest others join."""
        children = [group[nodes == node] for node in np.unique(nodes)]
        people = [int(self.items.n[child].sum()) for child in children]
        self.checked += 1
        if not self.relaxed and min(people) < self.least:
            return None
        holds = yield children
        if holds.all():
            return children
        if not self.relaxed:
            return None
        rest = {i for i in range(len(children)) if not holds[i]}
        others = sorted((i for i in range(len(children)) if holds[i]), key=lambda i: people[i])
        joined = np.sort(np.concatenate([children[i] for i in rest]))
        while not (yield [joined]).all():
            if not others:
                return None
            rest.add(others.pop(0))
            joined = np.sort(np.concatenate([children[i] for i in rest]))
        return [joined, *(children[i] for i in sorted(others))] if others else None

    # -- the split of a group ----------------------------------------------------------------------------------

    def propose(self, group: Ints) -> Proposal[Parts | None]:
        """The split of a group: that of the first column in order that allows one, or the one that gains most."""
        if self.by != "kl":
            for _, a in self.gains(group):
                parts = yield from self.by_column(group, a)
                if parts:
                    return parts
            return None
        ranked = yield from self.by_information(group)
        return ranked[0][2] if ranked else None

    def by_information(self, group: Ints) -> Proposal[list[tuple[int, int, Parts]]]:
        """The allowable split of each column with its gain in Σ n log(n / area) a person, the largest first."""
        compare("splits of a group by kl")
        found = []
        before = self.information(group) if len(group) > 1 else 0.0
        for _, a in self.gains(group):
            parts = yield from self.by_column(group, a)
            if parts:
                after = sum(self.information(part) for part in parts)
                found.append((gain_of(before, after, int(self.items.n[group].sum())), a, parts))
        return sorted(found, key=lambda split: (-split[0], split[1]))


class Histograms(Splitter):
    """Splits groups of which only the histogram of each column is known: an item is a value of a column."""

    def __init__(
        self, columns: Columns, found: Sequence[tuple[Ints, Ints, Ints, Ints]], whole: Counts,
        principles: tuple[Principle, ...], *, split: Split, similarity: Similarity, mode: Mode = "strict",
    ) -> None:  # fmt: skip
        _, self.place, value, rows = (np.concatenate(each) for each in zip(*found, strict=True))
        items = Items(np.arange(len(rows)), value, rows, None, whole)
        super().__init__(columns, items, principles, mode=mode, split=split, similarity=similarity)
        sizes = [len(own) for own, *_ in found]
        self.column = np.repeat(np.arange(len(found)), sizes)
        self.begin = np.concatenate(([0], np.cumsum(sizes)))
        self.groups = [own for own, *_ in found]  # sorted

    def own(self, group: Ints, a: int) -> Ints:
        """The items of a column that a group, given by its number, has."""
        low, high = np.searchsorted(self.groups[a], [int(group[0]), int(group[0]) + 1]) + self.begin[a]
        return np.arange(low, high)

    def places(self, group: Ints, a: int) -> Ints:
        """Where items stand in their column."""
        return self.place[group]

    def gains(self, group: Ints) -> list[tuple[Fraction | int, int]]:
        """The columns in which a group has several values, the one with the largest gain first."""
        gains: list[tuple[Fraction | int, int]] = []
        for a in range(len(self.columns.tree)):
            own = self.own(group, a)
            places = self.place[own]
            low, high = int(places.min()), int(places.max())
            if low < high:
                gains.append((self._gain(own, a, places, low, high), a))
        return sorted(gains, key=lambda gain: (-gain[0], gain[1]))

    def information(self, group: Ints) -> float:
        """That of a group, given by its number."""
        own = [self.own(group, a) for a in range(len(self.columns.tree))]
        people = added(self.items.value[own[0]], self.items.n[own[0]])
        return self.informed(people, [(self.place[each], self.items.n[each]) for each in own])

    def by_information(self, group: Ints) -> Proposal[list[tuple[int, int, Parts]]]:
        """The allowable split of each column; what they gain is not known here."""
        compare("splits of a group by kl")
        found = []
        for _, a in self.gains(group):
            parts = yield from self.by_column(group, a)
            if parts:
                found.append((0, a, parts))
        return found

    def by_column(self, group: Ints, a: int) -> Proposal[Parts | None]:
        """The parts of the first allowable split of one column."""
        return (yield from super().by_column(self.own(group, a), a))


def gain_of(before: float, after: float, people: int) -> int:
    """What a split gains in information a person, to nine digits."""
    return floor((after - before) / float(people) * DIGITS + 0.5)


def grow(splitter: Splitter, group: Ints, finished: Callable[[Ints], None]) -> None:
    """Split a group until nothing more is allowed, a generation at a time."""
    generation = [group]
    while generation:
        following: list[Ints] = []
        splits = together(splitter, [splitter.propose(one) for one in generation])
        for one, parts in zip(generation, splits, strict=True):
            if parts is None:
                finished(one)
            else:
                following += parts
        generation = following


def together(splitter: Splitter, proposals: list[Proposal[Found]]) -> list[Found]:
    """What each proposal returns; in each round the parts that they all yield are judged as one batch."""
    results: dict[int, Found] = {}
    answers: dict[int, Bools | None] = dict.fromkeys(range(len(proposals)))
    while answers:
        asked: dict[int, Parts] = {}
        for index, answer in answers.items():
            try:
                asked[index] = next(proposals[index]) if answer is None else proposals[index].send(answer)
            except StopIteration as stop:
                results[index] = stop.value
        answers = dict(_judged(splitter, asked))
    return [results[index] for index in range(len(proposals))]


def _judged(splitter: Splitter, asked: dict[int, Parts]) -> Iterator[tuple[int, Bools]]:
    batch: dict[int, int] = {}
    parts: Parts = []
    items = 0
    for index, (key, wanted) in enumerate(asked.items()):
        batch[key] = len(wanted)
        parts += wanted
        items += sum(len(part) for part in wanted)
        if items > _AT_ONCE or index == len(asked) - 1:
            verdict = splitter.judged(parts)
            for one, end in zip(batch, np.cumsum(list(batch.values())), strict=True):
                answer = verdict[end - batch[one] : end]
                note("cut", partial(splitter.members, asked[one]), bool(answer.all()))
                yield one, answer
            batch, parts, items = {}, [], 0


def grow_in_order(splitter: Splitter, judge: Judge, group: Ints, finished: Callable[[Ints], None]) -> None:
    """Split groups one at a time, always by the candidate with the largest gain, and only as the judge allows.

    Candidates are ordered by gain, then the group's first item, then column. A group whose candidates are all used up
    is finished.
    """
    groups: list[Ints] = [group]
    left: list[int] = []  # candidates that each group still has
    heap: list[Candidate] = []

    def enter(number: int) -> None:
        first = int(groups[number][0])
        if splitter.by == "kl":
            ranked = together(splitter, [splitter.by_information(groups[number])])[0]
            candidates: list[Candidate] = [(-gain, first, a, number, parts) for gain, a, parts in ranked]
        else:
            candidates = [(-gain, first, a, number, None) for gain, a in splitter.gains(groups[number])]
        left.append(len(candidates))
        for candidate in candidates:
            heapq.heappush(heap, candidate)
        if not candidates:
            finished(groups[number])

    enter(0)
    while heap:
        _, _, a, number, parts = heapq.heappop(heap)
        if left[number] == 0:
            continue  # the group was split by another column
        group = groups[number]
        parts = parts or together(splitter, [splitter.by_column(group, a)])[0]
        if parts and judge.allows(splitter.counts([group]), splitter.counts(parts)):
            judge.commit(splitter.counts([group]), splitter.counts(parts))
            left[number] = 0
            for part in parts:
                groups.append(part)
                enter(len(groups) - 1)
            continue
        left[number] -= 1
        if left[number] == 0:
            finished(group)
