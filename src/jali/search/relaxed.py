"""Relaxed partitions of a table beyond memory: its people lie in a private file, in the order of the table.

A relaxed cut may divide people who share a value, those who come first from those who come last. The order is that of
their combinations, then of their sensitive values, then of their other columns, and every part of a group keeps it. The
engine sends the table once, in portions that follow each other in this order, and everybody becomes an entry of a file.

A group that does not fit is read for the histogram of each column, and again for the values of those who come before
the median among people with its value. From both the splitter of the search in memory decides. Then the group is read
once more to write its parts, each in the order in which it was read. A group that fits is finished by the search in
memory. So the groups are those that it would have found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Floats, Ints, SumsByKey, counted
from jali.encoding.large import with_codes
from jali.encoding.table import Column
from jali.errors import ChangedError
from jali.search.grown import Grown
from jali.search.items import items_of
from jali.search.mondrian import cut
from jali.search.spilled import Buckets, Entries, Filed, Leaves, Parts, Spill
from jali.search.splits import Histograms, gain_of, together
from jali.search.splits import Parts as Cuts
from jali.search.trunk import Branch, Trunk

Histogram = tuple[Ints, Ints, Ints]
"""Places of a column, joint values, and the people who have both, sorted by place."""

ITSELF = np.zeros(1, dtype=np.int64)
"""The group that a splitter knows only one of."""


class Middle(NamedTuple):
    """The median of a column, and how many of those who have it are in the lower half."""

    place: int
    first: int


class Rule(NamedTuple):
    """How a group is divided: by the place in a column, and people of one place by who comes first."""

    column: int
    part: Ints  # (places,) the part of each place; of the divided one that of those who come last
    parts: int
    middle: Middle | None  # the place that is divided, whose first people are in part 0


class Relaxing(Filed):
    """The relaxed partition of one table beyond memory."""

    def __init__(self, trunk: Trunk, threads: int | None) -> None:
        super().__init__(trunk)
        self.threads = threads
        self.places = [trunk.places[column.name] for column in self.table.quasi]

    @property
    def order(self) -> list[Column]:
        """All columns in the order by which people are sorted."""
        roles = ("quasi", "sensitive", "other", "identifier")
        return [column for role in roles for column in self.table.columns if column.role == role]

    def grown(self, portions: Sequence[Branch]) -> Grown:
        """The groups of everybody; `portions` are the whole table, in the order of its people."""
        self.require_space(2)
        with ExitStack() as files:
            first = files.enter_context(Spill(self.kind))
            everybody = [first.put(entries) for entries in self.everybody(self.fetched(portions, self.order))]
            if sum(part.many for part in everybody) != self.table.rows:
                raise ChangedError()
            return self.kept(self._cut([everybody], files))

    def _cut(self, nodes: list[Parts], files: ExitStack) -> Iterator[Leaves]:
        """The groups of these nodes, a level of the tree at a time."""
        while nodes:
            below, following = files.enter_context(Spill(self.kind)), []
            for node in nodes:
                many = sum(part.many for part in node)
                rule = self._rule(node) if many > self.room else None
                if rule is not None:
                    parts = Buckets(below, rule.parts)
                    for entries, part in self._divided(node, rule):
                        parts.add(entries, part)
                    following += parts.parts
                    continue
                yield self._finished(node) if many <= self.room else self.leaf(node)
                self.ended(many)
            nodes[0][0].spill.close()  # its people are in parts, or in groups
            nodes = following

    def _places(self, entries: Entries, a: int) -> Ints:
        places: Ints = self.places[a][self.codes(entries)[self.table.quasi[a].name]]
        return places

    # -- the cut of a group that does not fit -------------------------------------------------------------------

    def _rule(self, node: Parts) -> Rule | None:
        """How a node is divided; None where no cut is allowed."""
        found = self._histograms(node)
        middles = [
            None if self.columns.tree[a] else _middle(counted(own[0], own[2])) for a, own in enumerate(found)
        ]  # fmt: skip
        before = self._before(node, middles)
        refined = [
            own if middle is None else _refined(own, middle.place, first)
            for own, middle, first in zip(found, middles, before, strict=True)
        ]
        given = [(np.zeros(len(rows), dtype=np.int64), place, value, rows) for place, value, rows in refined]
        trunk = self.trunk
        splitter = Histograms(
            self.columns, given, trunk.whole, trunk.principles, split=trunk.split, similarity=trunk.similarity,
            mode="relaxed",
        )  # fmt: skip
        if trunk.split == "kl":
            rule = self._most_informed(node, splitter, middles)
        else:
            (parts,) = together(splitter, [splitter.propose(ITSELF)])
            rule = None if parts is None else self._rule_of(splitter, parts, middles)
        trunk.checked += splitter.checked
        return rule

    def _histograms(self, node: Parts) -> list[Histogram]:
        """How many people of a node have each place of each column with each value."""
        values = len(self.trunk.whole.joint)
        sums = [SumsByKey(len(place) * values) for place in self.places]
        for entries in self.read(node):
            value = self.values(entries)
            for a, own in enumerate(sums):
                own.add(self._places(entries, a) * values + value, np.ones(len(entries)))
        made = [(key // values, key % values, rows.astype(np.int64)) for key, rows in (own.all() for own in sums)]
        if max(len(rows) for *_, rows in made) > self.room:
            raise self.trunk.refused("the histogram of a group")
        return made

    def _before(self, node: Parts, middles: Sequence[Middle | None]) -> list[Ints]:
        """For each column, the people of each joint value who have its median and go to the lower half: (values,)."""
        values = len(self.trunk.whole.joint)
        found = [np.zeros(values, dtype=np.int64) for _ in middles]
        left = [0 if middle is None else middle.first for middle in middles]
        for entries in self.read(node) if any(left) else ():
            value = self.values(entries)
            for a, middle in enumerate(middles):
                if middle is None or not left[a]:
                    continue
                first = np.flatnonzero(self._places(entries, a) == middle.place)[: left[a]]
                found[a] += np.bincount(value[first], minlength=values)
                left[a] -= len(first)
        return found

    def _rule_of(self, splitter: Histograms, parts: Cuts, middles: Sequence[Middle | None]) -> Rule:
        """The rule that divides people as the splitter divided a column into these parts."""
        a = int(splitter.column[parts[0][0]])
        part, middle = np.zeros(len(self.places[a]), dtype=np.int64), middles[a]
        for number, own in enumerate(parts):
            part[splitter.place[own]] = number
        divided = middle is not None and middle.place in splitter.place[parts[0]] and part[middle.place] != 0
        return Rule(a, part, len(parts), middle if divided else None)

    def _divided(self, node: Parts, rule: Rule) -> Iterator[tuple[Entries, Ints]]:
        """The people of a node, some at a time, and the part of each."""
        left = 0 if rule.middle is None else rule.middle.first
        for entries in self.read(node):
            place = self._places(entries, rule.column)
            part = rule.part[place]
            if rule.middle is not None:
                first = np.flatnonzero(place == rule.middle.place)[:left]
                part[first] = 0
                left -= len(first)
            yield entries, part

    # -- cuts that are compared by KL ----------------------------------------------------------------------------

    def _most_informed(self, node: Parts, splitter: Histograms, middles: Sequence[Middle | None]) -> Rule | None:
        """The allowable cut that gains most information a person, of equal ones that of the first column."""
        (ranked,) = together(splitter, [splitter.by_information(ITSELF)])
        before, people = splitter.information(ITSELF), sum(part.many for part in node)
        best: tuple[int, Rule | None] = 0, None
        for _, _, parts in sorted(ranked, key=lambda split: split[1]):
            rule = self._rule_of(splitter, parts, middles)
            gain = gain_of(before, self._information(node, splitter, rule), people)
            if best[1] is None or gain > best[0]:
                best = gain, rule
        return best[1]

    def _information(self, node: Parts, splitter: Histograms, rule: Rule) -> float:
        """The information of the parts of a node, added up."""
        widths = [len(self.trunk.whole.joint), *(len(place) for place in self.places)]
        sums = [SumsByKey(rule.parts * width) for width in widths]
        for entries, part in self._divided(node, rule):
            each = [self.values(entries), *(self._places(entries, a) for a in range(len(self.places)))]
            for own, width, at in zip(sums, widths, each, strict=True):
                own.add(part * width + at, np.ones(len(entries)))
        people, *spread = (_by_part(*own.all(), rule.parts, width) for own, width in zip(sums, widths, strict=True))
        return sum(
            splitter.informed(n.astype(np.float64), [own[number] for own in spread])
            for number, (_, n) in enumerate(people)
        )

    # -- groups that fit -----------------------------------------------------------------------------------------

    def _finished(self, node: Parts) -> Leaves:
        """The groups of a node that fits."""
        entries = np.concatenate([part.read() for part in node])
        codes, trunk = self.codes(entries), self.trunk
        made = [with_codes(column, codes[column.name]) for column in self.table.columns]
        piece = self.table.made(made, np.ones(len(entries), dtype=np.int64), None)
        items = items_of(piece, "relaxed")
        assert items.record is not None  # since they are relaxed
        items = replace(items, value=self.values(entries)[items.record], whole=trunk.whole)
        number, _, checked = cut(
            piece, items, trunk.principles, mode="relaxed", split=trunk.split, similarity=trunk.similarity,
            threads=self.threads, importance=trunk.importance,
        )  # fmt: skip
        trunk.checked += checked
        group = np.empty(len(entries), dtype=np.int64)
        group[items.record] = number
        return [(entries, group)]


def _by_part(keys: Ints, people: Floats, parts: int, width: int) -> list[tuple[Ints, Ints]]:
    """Of each part its places, or values, and the people of each; a key is part · width + place."""
    edges = np.searchsorted(keys, np.arange(parts + 1) * width).tolist()
    return [(keys[low:high] % width, people[low:high].astype(np.int64)) for low, high in pairwise(edges)]


def _middle(people: Ints) -> Middle | None:
    """The place whose people are divided when everybody is halved; None where the cut is between two places."""
    upto, half = np.cumsum(people), int(people.sum()) // 2
    place = int(np.searchsorted(upto, half))
    first = half - int(upto[place] - people[place])
    return None if half == upto[place] else Middle(place, first)


def _refined(own: Histogram, middle: int, before: Ints) -> Histogram:
    """The histogram with the people of the median in two entries of a value: those who come first, and the others."""
    place, value, rows = own
    low, high = np.searchsorted(place, [middle, middle + 1]).tolist()
    there = np.flatnonzero(before)
    last = rows[low:high] - before[value[low:high]]
    left = last > 0
    at = np.full(len(there) + int(left.sum()), middle)
    return (
        np.concatenate([place[:low], at, place[high:]]),
        np.concatenate([value[:low], there, value[low:high][left], value[high:]]),
        np.concatenate([rows[:low], before[there], last[left], rows[high:]]),
    )
