"""Tables of more distinct combinations than memory holds: their rows stay where they are, and are asked by codes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints, counted
from jali.encoding.frequencies import Frequencies
from jali.encoding.table import Coarse, Column, Table
from jali.errors import InputError, told

T = TypeVar("T")
MORE = 'give more memory, e.g. memory = "16GB", or name fewer columns, or coarser hierarchies'
BYTES, EACH = 128, 16
"""What a distinct combination takes while it is searched: bytes, and bytes for each of its columns."""
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30,
          "TIB": 1 << 40}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]I?B|)\s*", re.IGNORECASE)
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
SOMETHING = 2 << 30  # where nobody knows what the machine has


def memory_of(given: str | int | None) -> int:
    """The bytes that a caller allows: "4GB", "512MB", a number; half of what the machine has where nothing is said.

    >>> memory_of("4GB"), memory_of("1.5 MiB"), memory_of(2000)
    (4000000000, 1572864, 2000)
    """
    if given is None:
        return installed() // 2
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    match = _SIZE.fullmatch(given) if isinstance(given, str) else None
    size = 0 if match is None else int(float(match[1]) * _UNITS[match[2].upper()])
    if size < 1:
        do = 'write memory = "4GB", "512MB" or a number of bytes'
        raise InputError("memory is no size", got=repr(told(given)), do=do)
    return size


def installed(limits: tuple[str, ...] = _LIMITS) -> int:
    """The memory of the machine, or of the container that this process runs in, in bytes."""
    sizes = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for place in limits:
        try:
            text = Path(place).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit() and int(text) > 0:
            sizes.append(int(text))
    return min((size for size in sizes if size > 0), default=SOMETHING)


def shown(size: int) -> str:
    """A size as people write it.

    >>> shown(4_000_000_000), shown(1_500_000), shown(900)
    ('4GB', '1.5MB', '900 bytes')
    """
    for unit in ("GB", "MB", "KB"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.4g}{unit}"
    return f"{size} bytes"


def room_of(memory: int, columns: int) -> int:
    """How many distinct combinations of `columns` columns fit into `memory` bytes; at least one."""
    return max(1, memory // (BYTES + EACH * columns))


@dataclass(frozen=True)
class Cut:
    """Rows divided into groups by the node of a column: below the first bound, below the next, …, and the rest."""

    column: str
    bounds: tuple[int, ...]  # ascending
    parts: tuple[Cut | int, ...]  # one more; a number is that of a group, -1 where its rows are not counted

    @property
    def columns(self) -> set[str]:
        """The columns by which rows are divided, here and below."""
        return {self.column}.union(*(part.columns for part in self.parts if isinstance(part, Cut)))

    def planted(self, part: Cut | int) -> Cut:
        """This cut with `part` in the place of group 0; rows of all other groups are not counted."""

        def instead(own: Cut | int) -> Cut | int:
            return own.planted(part) if isinstance(own, Cut) else part if own == 0 else -1

        return Cut(self.column, self.bounds, tuple(map(instead, self.parts)))


Box = Cut | None
"""Some of the rows: group 0 of a cut; None is all of them."""


def _balanced(column: str, bounds: Sequence[int], first: int = 0) -> Cut | int:
    """Groups between bounds, numbered from `first`, as a tree of halves: an engine asks few questions of a row."""
    if not bounds:
        return first
    middle = len(bounds) // 2
    parts = _balanced(column, bounds[:middle], first), _balanced(column, bounds[middle + 1 :], first + middle + 1)
    return Cut(column, (bounds[middle],), parts)


def _between(column: str, edges: Sequence[int | None]) -> Cut:
    """The rows from one edge on and below the other, as group 0; None is no edge."""
    low, high = edges
    bounds = tuple(edge for edge in (low, high) if edge is not None)
    return Cut(column, bounds, (*(() if low is None else (-1,)), 0, *(() if high is None else (-1,))))


@dataclass(frozen=True, eq=False)
class Sizes:
    """How many combinations have a certain number of rows; the combinations themselves stay with the engine."""

    group: Ints  # (entries,) 0 where rows are not divided
    size: Ints  # (entries,) rows of a combination
    many: Ints  # (entries,) combinations


class TooManyError(Exception):
    """There are more combinations than the caller can take."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Distinct combinations of nodes, sorted, with their rows."""

    nodes: Mapping[str, Ints]  # (records,) of each column that was asked for
    rows: Ints  # (records,)
    group: Ints | None = None  # (records,) where rows were divided

    @property
    def groups(self) -> Ints:
        """The group of each record: (records,), all 0 where rows were not divided."""
        return np.zeros(len(self.rows), dtype=np.int64) if self.group is None else self.group


class Elsewhere(Protocol):
    """Rows that stay where they are. `nodes` are by code: what takes the place of each value of a column."""

    def count(
        self, nodes: Mapping[str, Ints], *, of: Sequence[str] | None = None, within: Cut | None = None,
        most: int | None = None,
    ) -> Counted:  # fmt: skip
        """The distinct combinations of the columns `of`, by default all that have nodes; `within` cuts by nodes too.

        TooManyError where there are more than `most`.
        """

    def sizes(self, nodes: Mapping[str, Ints], *, within: Cut | None = None) -> Sizes:
        """How many combinations of these columns have how many rows."""

    def each(
        self, work: Callable[[Counted], T], nodes: Mapping[str, Ints], *, of: Sequence[str], within: Cut
    ) -> Sequence[T] | None:
        """The results of `work` for each group, in any order; None where the engine has no workers that can do it."""


class Nobody:
    """Stands for the engine in its own workers, each of which has the rows of one group and may ask for no others."""

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        raise AssertionError("a worker asks for no rows")

    count = sizes = each = _refuse


@dataclass(frozen=True, eq=False, repr=False)
class LargeTable(Table):
    """A table whose distinct combinations do not fit into the memory that is allowed.

    Its columns know their values and how many rows have each, and have no codes: `records` is 0. Methods that can do
    without all combinations at once ask for some; every other one says so.
    """

    elsewhere: Elsewhere = field(kw_only=True)
    memory: int = field(kw_only=True)  # bytes

    def __post_init__(self) -> None:
        assert all(column.value_rows is not None for column in self.columns)

    @property
    def room(self) -> int:
        """How many distinct combinations may be held."""
        return room_of(self.memory, len(self.columns))

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        rows = self.columns[0].value_rows
        assert rows is not None
        return int(rows.sum())

    @property
    def people(self) -> int:
        """As many as rows."""
        return self.rows

    def at(self, levels: Sequence[int], *, sensitive: bool = True, other: bool = True) -> Table:
        """The table counted at these levels of its quasi-identifiers; TooManyError where even that is too much."""
        kept = {"quasi", *(["sensitive"] if sensitive else []), *(["other", "identifier"] if other else [])}
        columns = [column for column in self.columns if column.role in kept]
        level = dict(zip([column.name for column in self.quasi], levels, strict=True))
        nodes = {c.name: self._nodes(c, level.get(c.name)) for c in columns}
        found = self.elsewhere.count(nodes, most=self.room)
        made = [self._column(c, found.nodes[c.name], nodes[c.name]) for c in columns]
        return self.made(made, found.rows, Coarse(tuple(levels), self.entropy if sensitive else 0.0))

    def at_roots(self, *, other: bool = False) -> Table:
        """The table with every quasi-identifier at its root: what is published apart from them."""
        try:
            return self.at([self.hierarchy(column.name).height for column in self.quasi], other=other)
        except TooManyError:
            names = ", ".join(c.name for c in self.columns if c.role == "sensitive" or (other and c.role != "quasi"))
            which = "columns that are published as they are" if other else "sensitive columns"
            what = f"{which} have more combinations than memory holds"
            raise InputError(what, do=f"leave out some of them ({names}), or give more memory") from None

    def values_at(self, levels: Sequence[int], name: str) -> Counted:
        """The combinations of quasi-identifiers at these levels, but one of them value by value; InputError if many."""
        pairs = zip(self.quasi, levels, strict=True)
        nodes = {column.name: self._nodes(column, None if column.name == name else level) for column, level in pairs}
        try:
            return self.elsewhere.count(nodes, most=self.room)
        except TooManyError:
            what = f'the values of "{name}" in each group are more than memory holds'
            raise InputError(what, do=f'show it as "taxonomy", or {MORE}') from None

    @property
    def others(self) -> tuple[Column, ...]:
        """The columns that are published as they are and that no promise is about."""
        return tuple(column for column in self.columns if column.role in ("other", "identifier"))

    def without_others(self) -> LargeTable:
        """The table without the columns that are published as they are."""
        return replace(self, columns=tuple(c for c in self.columns if c.role in ("quasi", "sensitive")))

    # -- rows that come in portions ---------------------------------------------------------------------------

    def boxes(self, nodes: Mapping[str, Ints], by: Sequence[str], within: Box = None) -> Iterator[tuple[Box, bool]]:
        """The rows of a box divided into boxes by the nodes of the columns `by`, each with whether it fits.

        One does not fit only where it has a single node in each of these columns.
        """
        widest = sorted(by, key=lambda name: -len(np.unique(nodes[name])))
        yield from self._boxes(nodes, widest, within, int(self.elsewhere.sizes(nodes, within=within).many.sum()))

    def _boxes(
        self, nodes: Mapping[str, Ints], by: Sequence[str], box: Box, many: int
    ) -> Iterator[tuple[Box, bool]]:  # fmt: skip
        if many <= self.room:
            yield box, True
            return
        for name in by:
            values = self.elsewhere.count(nodes, of=[name], within=box)
            if len(values.rows) > 1:
                break
        else:
            yield box, False
            return
        bounds = _bounds(values.nodes[name], values.rows, many / self.room)
        cut = _balanced(name, bounds)
        assert isinstance(cut, Cut)  # the first and the last node are apart
        sizes = self.elsewhere.sizes(nodes, within=cut if box is None else box.planted(cut))
        parts = counted(sizes.group, sizes.many, len(bounds) + 1).tolist()
        for first, last in neighbours(parts, self.room):
            edges = (None if first == 0 else bounds[first - 1], None if last == len(bounds) else bounds[last])
            here = _between(name, edges)
            yield from self._boxes(nodes, by, here if box is None else box.planted(here), sum(parts[first : last + 1]))

    def portions(self, nodes: Mapping[str, Ints], by: Sequence[str], within: Box = None) -> Iterator[Counted]:
        """The combinations of all columns that have nodes, a box at a time."""
        for box, _ in self.boxes(nodes, by, within):
            yield self.elsewhere.count(nodes, within=box)

    def pieces(self) -> Iterator[Table]:
        """The cells of quasi-identifiers and sensitive values in tables that fit, each cell in one of them.

        They come in the same order whatever the memory: by the column of most values, then by the next.
        """
        own = self.without_others()
        nodes = {c.name: self._nodes(c, None) for c in sorted(own.columns, key=lambda c: -len(c.values))}
        for found in own.portions(nodes, list(nodes)):
            yield own.made([with_codes(column, found.nodes[column.name]) for column in own.columns], found.rows, None)

    def sizes_at(self, levels: Sequence[int]) -> Sizes:
        """How many combinations of the quasi-identifiers have how many rows at these levels."""
        pairs = zip(self.quasi, levels, strict=True)
        return self.elsewhere.sizes({column.name: self._nodes(column, level) for column, level in pairs})

    def cells_at(self, levels: Sequence[int]) -> int:
        """How many combinations of quasi-identifiers at these levels and sensitive values there are."""
        return int(self.elsewhere.sizes(self.nodes_at(levels)).many.sum())

    def nodes_at(self, levels: Sequence[int]) -> dict[str, Ints]:
        """The nodes of quasi-identifiers at these levels, and the codes of sensitive values, by code."""
        level = dict(zip([column.name for column in self.quasi], levels, strict=True))
        return {c.name: self._nodes(c, level.get(c.name)) for c in (*self.quasi, *self.sensitive)}

    def made(self, columns: Sequence[Column], rows: Ints, coarse: Coarse | None) -> Table:
        """A table of some of the rows, or of all, in memory."""
        return Table(columns=tuple(columns), records=len(rows), multiplicity=rows, coarse=coarse, **about(self))

    @cached_property
    def entropy(self) -> float:
        """Σ F log F over the cells of quasi-identifiers and sensitive values."""
        cells = self.elsewhere.sizes({c.name: self._nodes(c, 0) for c in (*self.quasi, *self.sensitive)})
        share = cells.size / self.rows
        return float(np.sum(cells.many * (share * np.log(share))))

    def all_nodes_at(self, levels: Mapping[str, int]) -> dict[str, Ints]:
        """The nodes of every column: quasi-identifiers at these levels, the others as they are."""
        return {column.name: self._nodes(column, levels.get(column.name)) for column in self.columns}

    def _nodes(self, column: Column, level: int | None) -> Ints:
        codes = np.arange(len(column.values), dtype=np.int64)
        if level is None or column.role != "quasi":
            return codes
        return self.hierarchy(column.name).maps[level].astype(np.int64)

    @staticmethod
    def _column(column: Column, found: Ints, nodes: Ints) -> Column:
        """The column of counted records: each has a code of those that occur under its node."""
        code = np.zeros(int(nodes.max()) + 1, dtype=np.int64)
        occurring = np.flatnonzero(column.present)[::-1]
        code[nodes[occurring]] = occurring
        return with_codes(column, code[found])

    def _known(self, column: Column) -> tuple[pa.Array, int]:
        """The values of a column that occur and are not missing, and how many people have one."""
        assert column.value_rows is not None
        missing = int(column.value_rows[-1]) if column.values.null_count else 0
        return column.values.filter(pa.array(column.present)).drop_null(), self.rows - missing

    def refused(self, what: str, instead: str = "") -> InputError:
        """The error for a method that needs every distinct combination; `instead` says what else can be done."""
        beyond = f'the table has more distinct combinations than memory = "{shown(self.memory)}" holds'
        do = 'give more memory, e.g. memory = "16GB", or name fewer columns'
        what = f"{what} needs every distinct combination at once, and {beyond}"
        return InputError(what, do=f"{instead}, or {do}" if instead else do)

    @cached_property
    def frequencies(self) -> Frequencies:
        """Never held: InputError."""
        self._refuse("this")

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        raise self.refused("this")

    people_at = frame = sample = head = take = one_by_one = distinct = merged = with_quasi = _refuse
    without_sensitive = _refuse


def with_codes(column: Column, codes: NDArray[np.integer]) -> Column:
    """The column with these codes."""
    many = len(column.values)
    smallest: type[np.integer] = np.uint8 if many <= 2**8 else np.uint16 if many <= 2**16 else np.int32
    known = column.value_rows if column.role == "quasi" else None
    return replace(column, codes=codes.astype(smallest), value_rows=known)


def about(table: Table) -> dict[str, Any]:
    """What a table knows of itself besides its rows, as its parts and its copy beyond memory know it too."""
    names = ("origin", "domain", "unnamed", "incomplete", "notes", "dropped", "allowed")
    return {name: getattr(table, name) for name in names}


def pieces_of(table: Table) -> Iterable[Table]:
    """A table in pieces that fit, no cell of its columns in two of them: itself where all of it fits."""
    return table.pieces() if isinstance(table, LargeTable) else (table,)


_PARTS = 256
"""Parts that a column is cut into at once, where an engine says how many combinations each has."""


def _bounds(nodes: Ints, rows: Ints, needed: float) -> list[int]:
    """The nodes at which a column is cut into about twice as many parts as are needed, of like numbers of rows."""
    parts = 2 * min(_PARTS // 2, math.ceil(needed))
    total, before = int(rows.sum()), np.cumsum(rows) - rows
    part = (2 * before + rows) * parts // (2 * total)
    return [int(node) for node in nodes[1:][part[1:] > part[:-1]]]


def neighbours(many: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Neighbouring parts put together as long as they fit: the first and the last of each."""
    runs: list[tuple[int, int]] = []
    held = 0
    for at, size in enumerate(many):
        if runs and held + size <= room:
            runs[-1], held = (runs[-1][0], at), held + size
        else:
            runs.append((at, at))
            held = size
    return runs
