"""Counts: how many people of each group have each sensitive value. All that a principle may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, counted, exactly_added, is_dense
from jali.errors import InputError, nearest, one_of, told


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive column as principles see it: its values by name, in order, and their tree."""

    name: str
    labels: tuple[str | None, ...]  # (values,) None is the missing value
    ordered: bool = False  # whether the order of the values means anything
    tree: tuple[Ints, ...] = ()  # tree[level][value] → node; level 0 the values, the last a single root
    unknown: int | None = None  # the missing value, where it is no value to be judged

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def judged(self) -> int:
        """How many values are judged: all, but for a missing one that is none."""
        return len(self.labels) - (self.unknown is not None)


@dataclass(frozen=True, eq=False)
class Cells:
    """The nonzero counts of groups × values of one sensitive column, sorted by group, then value."""

    groups: int
    group: Ints  # (cells,)
    value: Ints  # (cells,)
    n: Ints  # (cells,) people of the group who have the value, at least 1
    size: Ints  # (groups,) people of the group; less than the sum of its cells where people have several values
    column: Sensitive
    reference: Ints  # (values,) people of the whole published table who have the value
    several: bool = False  # whether a person can have several values

    @cached_property
    def one_value(self) -> bool:
        """Whether everybody has one value in each group, so that people of different values add up."""
        return not self.several or bool(np.array_equal(self.total, self.size))

    @cached_property
    def start(self) -> Ints:
        """Where each group's cells begin: (groups + 1,)."""
        return np.searchsorted(self.group, np.arange(self.groups + 1)).astype(np.int64)

    @cached_property
    def total(self) -> Ints:
        """The sum of each group's cells: (groups,)."""
        return exactly_added(self.group, self.n, self.groups)

    def sum(self, amount: NDArray[np.int64] | Floats) -> Floats:
        """The sum of an amount per cell over each group, as floats: (groups,)."""
        return added(self.group, amount, self.groups)

    def add(self, amount: Ints) -> Ints:
        """The exact sum of an integer amount per cell over each group: (groups,)."""
        return exactly_added(self.group, amount, self.groups)

    def largest(self, amount: Ints) -> Ints:
        """The largest amount among each group's cells, 0 for a group without cells: (groups,)."""
        best = np.zeros(self.groups, dtype=np.int64)
        np.maximum.at(best, self.group, amount)
        return best


@dataclass(frozen=True, eq=False)
class Counts:
    """People by group and sensitive value, sparse: one entry per group × joint value (× person).

    `value` numbers joint values of all sensitive columns; `joint[value]` are the values of each column.
    Without `person` an entry stands for `n` people. With it an entry stands for one person, who may have
    entries in several groups and with several values, and is counted once in each.
    """

    groups: int
    group: Ints  # (entries,)
    value: Ints  # (entries,)
    n: Ints  # (entries,)
    sensitive: tuple[Sensitive, ...] = ()
    joint: Ints = field(default_factory=lambda: np.zeros((1, 0), dtype=np.int64))  # (joint values, columns)
    person: Ints | None = None  # (entries,)
    whole: Counts | None = None  # the published table these groups are a part of; itself by default

    @cached_property
    def size(self) -> Ints:
        """People in each group: (groups,)."""
        if self.person is None:
            return exactly_added(self.group, self.n, self.groups)
        group, _, _ = distinct_pairs(self.group, self.person)
        return counted(group, length=self.groups)

    @property
    def several_rows(self) -> bool:
        """Whether a person can have several rows."""
        return self.person is not None

    @cached_property
    def people(self) -> int:
        """How many people there are, each counted once."""
        return int(self.n.sum()) if self.person is None else len(np.unique(self.person))

    def one_value(self, name: str) -> bool:
        """Whether everybody has one value of a column in the whole published table."""
        return self.person is None or int(self.reference(name).sum()) == (self.whole or self).people

    def column(self, name: str | None, *, asked_by: str = "a principle") -> Sensitive:
        """The sensitive column of that name, or the only one."""
        names = [column.name for column in self.sensitive]
        if name is None:
            if len(names) == 1:
                return self.sensitive[0]
            if not names:
                do = 'name one: sensitive=["…"] in read or table'
                raise InputError(f"{asked_by} needs a sensitive column", do=do)
            raise InputError(
                f"{asked_by} must say which sensitive column it judges",
                got=", ".join(names),
                do=f'write sensitive="{names[0]}", or MultiAttribute({asked_by}) to judge them all',
            )
        if not one_of(name, names):
            raise InputError(f'{asked_by}: no sensitive column "{told(name)}"', do=nearest(name, names))
        return self.sensitive[names.index(name)]

    def cells(self, name: str | None = None, *, asked_by: str = "a principle") -> Cells:
        """Groups × values of one sensitive column."""
        column = self.column(name, asked_by=asked_by)
        if column.name not in self._known_cells:
            group, value, n = self._cells(column)
            reference = self.reference(column.name)
            self._known_cells[column.name] = Cells(
                self.groups, group, value, n, self.size, column, reference, self.several_rows
            )
        return self._known_cells[column.name]

    def known(self, name: str | None = None, *, asked_by: str = "a principle") -> Cells:
        """Groups × values of one sensitive column as promises see them: of the people whose value is known.

        Where somebody has several rows, a group's people who are surely known are counted: those who have no missing
        value, or those of its most frequent value, if these are more. Fewer people are never judged more kindly.
        """
        every = self.cells(name, asked_by=asked_by)
        unknown, column = every.column.unknown, every.column.name
        if unknown is None:
            return every
        if column not in self._cells_of_known:
            inside = every.value != unknown
            group, value, n = every.group[inside], every.value[inside], every.n[inside]
            size = every.size - exactly_added(every.group, np.where(inside, 0, every.n), self.groups)
            np.maximum.at(size, group, n)
            reference = np.where(np.arange(len(every.reference)) == unknown, 0, every.reference)
            self._cells_of_known[column] = Cells(
                self.groups, group, value, n, size, every.column, reference, every.several
            )
        return self._cells_of_known[column]

    def reference(self, name: str) -> Ints:
        """How many people of the whole published table have each value of a column: (values,)."""
        column = self.column(name)
        whole = self.whole or self
        if name not in whole._references:
            value = self.joint[whole.value, self.sensitive.index(column)]
            n = whole.n
            if whole.person is not None:
                value, _, n = distinct_pairs(value, whole.person)
                n = np.ones_like(n)
            whole._references[name] = exactly_added(value, n, len(column))
        return whole._references[name]

    @cached_property
    def _references(self) -> dict[str, Ints]:
        return {}

    @cached_property
    def _known_cells(self) -> dict[str, Cells]:
        return {}

    @cached_property
    def _cells_of_known(self) -> dict[str, Cells]:
        return {}

    def _cells(self, column: Sensitive) -> tuple[Ints, Ints, Ints]:
        index = [c.name for c in self.sensitive].index(column.name)
        value = self.joint[self.value, index]
        if self.person is None:
            return distinct_pairs(self.group, value, self.n)
        cell, _, _ = distinct_pairs(self.group * len(column) + value, self.person)
        return distinct_pairs(cell // len(column), cell % len(column))

    def split(self, name: str) -> tuple[Counts, Ints]:
        """Each group cut by the other sensitive columns, as if they were quasi-identifiers.

        Returns the finer counts and the group that each finer group came from (Definition 4.6).
        """
        index = [c.name for c in self.sensitive].index(self.column(name).name)
        others = np.delete(self.joint, index, axis=1)
        _, rest = np.unique(others, axis=0, return_inverse=True)
        rest = rest.reshape(-1).astype(np.int64)
        width = int(rest.max(initial=0)) + 1
        keys, group = np.unique(self.group * width + rest[self.value], return_inverse=True)
        finer = Counts(
            len(keys), group.astype(np.int64), self.value, self.n, self.sensitive, self.joint, self.person,
            self.whole or self,
        )  # fmt: skip
        return finer, keys // width

    def merged(self, into: Ints | None = None) -> Counts:
        """Groups joined: group g becomes group `into[g]`; all into one by default."""
        into = np.zeros(self.groups, dtype=np.int64) if into is None else into
        groups = int(into.max(initial=-1)) + 1
        return Counts(
            groups, into[self.group], self.value, self.n, self.sensitive, self.joint, self.person, self.whole or self
        )


@dataclass(frozen=True, eq=False)
class GivenCounts(Counts):
    """Counts that were published as such: people of each group, and of each group and value of each column.

    What a person's rows have in common is not known, so the columns cannot be judged together.
    """

    sizes: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (groups,)
    given: Mapping[str, Ints] = field(default_factory=dict)  # column → (cells, 3): group, value, people; sorted
    references: Mapping[str, Ints] = field(default_factory=dict)  # column → (values,), where they were published
    bounded: tuple[str, ...] = ()  # columns whose people were not published: the most that the rows allow

    @property
    def size(self) -> Ints:
        """People in each group: (groups,)."""
        return self.sizes

    @property
    def several_rows(self) -> bool:
        """Whether a person can have several rows."""
        return True

    def reference(self, name: str) -> Ints:
        """How many people of the whole published table have each value of a column: (values,).

        Where that was not published, people count in each of their groups.
        """
        if name in self.references:
            return self.references[name]
        _, value, n = self._cells(self.column(name))
        return exactly_added(value, n, len(self.column(name)))

    def one_value(self, name: str) -> bool:
        """Whether everybody has one value of a column, which is when the whole table's people may be published."""
        return name in self.references

    def _cells(self, column: Sensitive) -> tuple[Ints, Ints, Ints]:
        cells = self.given[column.name]
        return cells[:, 0], cells[:, 1], cells[:, 2]

    def split(self, name: str) -> tuple[Counts, Ints]:
        """Refused: the counts do not say which values belong to the same person."""
        raise unlinked()

    def merged(self, into: Ints | None = None) -> Counts:
        """Refused: the counts do not say who is in two groups, so they cannot be added up."""
        raise InputError("published counts of people cannot be added up", do="judge the groups as they were published")


def unlinked() -> InputError:
    """What is said where values of one person would have to be linked."""
    do = "publish one row per person, or name the column that each principle judges: sensitive=…"
    return InputError("MultiAttribute needs one row per person", do=do)


def distinct_pairs(first: Ints, second: Ints, n: Ints | None = None) -> tuple[Ints, Ints, Ints]:
    """The distinct pairs in order, and the sum of n (by default the number of entries) over each, where it is not 0."""
    if n is not None and not n.all():
        first, second, n = first[n > 0], second[n > 0], n[n > 0]
    width = int(second.max(initial=0)) + 1
    key = first * width + second
    if n is not None and bool(np.all(key[1:] > key[:-1])):
        return first, second, n
    amount = np.ones(len(key), dtype=np.int64) if n is None else n
    span = (int(first.max(initial=0)) + 1) * width
    if is_dense(span, len(key)):
        total = exactly_added(key, amount, span)
        keys = np.flatnonzero(total)
        return keys // width, keys % width, total[keys]
    keys, index = np.unique(key, return_inverse=True)
    return keys // width, keys % width, exactly_added(index, amount, len(keys))


def dense(counts: NDArray[np.int64], sensitive: tuple[Sensitive, ...] | None = None) -> Counts:
    """Counts from a plain matrix, groups × values of one sensitive column.

    >>> dense(np.array([[2, 0], [1, 3]])).size.tolist()
    [2, 4]
    """
    counts = np.asarray(counts, dtype=np.int64)
    if counts.ndim != 2:
        raise InputError("a matrix of counts has two dimensions, groups × values", got=f"{counts.ndim}")
    if bool((counts < 0).any()):
        raise InputError("counts of people cannot be negative")
    groups, values = counts.shape
    if sensitive is None:
        sensitive = (Sensitive("value", tuple(str(v) for v in range(values)), ordered=True),)
    group, value = np.nonzero(counts)
    joint = np.arange(values, dtype=np.int64)[:, None]
    return Counts(groups, group.astype(np.int64), value.astype(np.int64), counts[group, value], sensitive, joint)
