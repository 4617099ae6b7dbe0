"""BoxEstimate: each published row is a box of cells over which its mass is spread evenly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, combine, owners
from jali.core.formats import to_native
from jali.core.rows import Order
from jali.cover.cover import DECLARE
from jali.cover.sets import plain
from jali.errors import InputError
from jali.estimates import base
from jali.estimates.base import Count, condition_of, generator, kept, names_of, short, table_of, undetermined
from jali.estimates.cells import joint_table, listed, summed
from jali.estimates.conditions import BoxColumn, Separate, assumed, by_column, expanded, unknown
from jali.query.match import Patterns
from jali.query.tree import Condition, Constant, Test, columns, simplify, tests_of


class _Projected(NamedTuple):
    """The boxes as some columns show them."""

    codes: tuple[Ints, ...]  # each (boxes,)
    mass: Floats  # (boxes,)


@dataclass(frozen=True, eq=False)
class BoxEstimate:
    """Distinct published rows, each with its mass; values within a cell as its cover says, columns independent."""

    columns: tuple[BoxColumn, ...]
    mass: Floats  # (boxes,) rows, or the sum of their weights
    total: float = -1.0  # the mass of all boxes
    held: NDArray[np.integer] | None = None  # (rows that are held,) the box of each; None: a box stands for mass rows
    order: Order | None = None  # of the published rows, where those that are held are distinct
    _projections: dict[tuple[int, ...], _Projected] = field(default_factory=dict, init=False, repr=False)
    _patterns: dict[tuple[int, tuple[Test, ...]], Patterns] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        mass = np.asarray(self.mass, dtype=np.float64)
        object.__setattr__(self, "mass", mass)
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names) or any(len(column.codes) != len(mass) for column in self.columns):
            raise InputError("boxes: columns must have different names and one code for each box")
        if not np.isfinite(mass).all() or (mass < 0).any() or not mass.sum() > 0:
            raise InputError("boxes: masses must be finite, not negative, and not all zero")
        if self.total >= 0 and not np.isclose(self.total, mass.sum(), rtol=1e-9):
            raise InputError("boxes: the total is not the sum of the masses", got=f"{self.total} and {mass.sum()}")
        object.__setattr__(self, "total", float(mass.sum()))

    @classmethod
    def from_rows(
        cls, columns: Sequence[BoxColumn], weights: Floats | None = None, *, order: Order | None = None
    ) -> BoxEstimate:
        """The estimate of a published table: its rows reduced to the distinct ones.

        With an order they are distinct rows already, and `weights` are those of all the rows that each stands for.
        """
        rows = len(columns[0].codes) if columns else 0
        if any(len(column.codes) != rows for column in columns) or (weights is not None and len(weights) != rows):
            raise InputError("boxes: each column and the weights must have one entry for each row", got=f"{rows} rows")
        number, first = combine([(column.codes, column.cover.nodes) for column in columns], rows)
        mass = added(number, weights, len(first))
        return cls(
            tuple(replace(column, codes=column.codes[first]) for column in columns), mass, held=number, order=order
        )

    @property
    def rows(self) -> NDArray[np.integer] | None:
        """The box of each published row, in published order; None where each box stands for mass rows."""
        return self.held if self.held is None or self.order is None else self.held[self.order.of]

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"BoxEstimate({len(self.mass):,} boxes of mass {short(self.total)}: {names})"

    def _index(self, name: object) -> int:
        return base.place_of(name, [column.name for column in self.columns])

    def _project(self, chosen: tuple[int, ...]) -> _Projected:
        """The boxes as the chosen columns show them, equal ones made one."""

        def projected() -> _Projected:
            some = [self.columns[i] for i in chosen]
            number, first = combine([(column.codes, column.cover.nodes) for column in some], len(self.mass))
            mass = added(number, self.mass, len(first))
            return _Projected(tuple(column.codes[first].astype(np.int64) for column in some), mass)

        return kept(self._projections, chosen, projected)

    def judged(self, column: int, some: tuple[Test, ...]) -> Patterns:
        """The truth patterns of some tests on a column's nodes."""
        return kept(self._patterns, (column, some), lambda: self.columns[column].cover.patterns(some))

    # Counting.

    def count(self, condition: str | Condition | None = None, *, where: Mapping[str, object] | None = None) -> Count:
        """How many people satisfy the condition, with what is certain and possible of it.

        A row counts with the probability that a cell of its box satisfies the condition: exactly, by
        Shannon's expansion over the columns that the condition names, never over cells.
        """
        asked = condition_of(condition, where)
        for name in sorted(columns(asked)):  # also in what has no bearing on the answer
            self._index(name)
        asked = simplify(asked)
        chosen = tuple(sorted(self._index(name) for name in columns(asked)))
        if not chosen:
            return Count(self.total if asked == Constant(True) else 0.0)
        separate = by_column(asked)
        answer = None if separate is None else self._separately(separate)
        if answer is not None:
            return answer
        boxes = self._project(chosen)
        some = [self.columns[i] for i in chosen]
        own = [tests_of(asked, column.name) for column in some]
        judged = [self.judged(i, those) for i, those in zip(chosen, own, strict=True)]
        share, surely, maybe = expanded(asked, own, judged, boxes.codes)
        low, high = float(boxes.mass[surely].sum()), float(boxes.mass[maybe].sum())
        open_ = maybe & ~surely
        doubted = [codes[open_] for codes in boxes.codes]
        if np.isnan(share[open_]).any():
            raise undetermined(unknown(some, judged, doubted), low, high, do=DECLARE)
        value = low + float(boxes.mass[open_] @ share[open_])
        assumes = assumed(some, judged, doubted)
        return Count(min(max(value, low), high), low=low, high=high, assumes=assumes)

    def expected(self, asked: Condition) -> float:
        """How many people are likely to satisfy the condition: the number that `count` has, without its bounds."""
        asked = simplify(asked)
        separate = by_column(asked)
        value = float(self._separate.ask(separate).value.sum()) if separate else math.nan
        return float(self.count(asked)) if math.isnan(value) else value  # which says what is not known

    @cached_property
    def _separate(self) -> Separate:
        return Separate(self.columns, np.zeros(len(self.mass), dtype=np.int64), self.mass)

    def _separately(self, separate: Mapping[str, tuple[Condition, ...]]) -> Count | None:
        """The count for a conjunction of conditions on single columns; None where a cell may be anything."""
        answer = self._separate.ask(separate)
        low, high, value = float(answer.sure.sum()), float(answer.maybe.sum()), float(answer.value.sum())
        if np.isnan(value):
            return None
        open_ = np.flatnonzero(answer.maybe > answer.sure)
        assumes = answer.rests_on(open_) if len(open_) else ()
        return Count(min(max(value, low), high), low=low, high=high, assumes=assumes)

    # Cells.

    def probability(self, cells: Any) -> Floats:
        """The probability of each cell, given by exact values of some columns (None is the missing value): (cells,).

        p = Σ mass / total × Π shares over the boxes that hold the cell; boxes that overlap add up.
        Where a column has intervals of fractions it is a density in that column.
        """
        table = table_of(cells)
        chosen = tuple(self._index(name) for name in table.column_names)
        if not chosen:
            raise InputError("the cells have no column", do="give the values of at least one published column")
        boxes = self._project(chosen)
        asked, dense = [], []
        for i, column, codes in zip(chosen, table.columns, boxes.codes, strict=True):
            values = encoded(column)
            asked.append(values.indices.to_numpy(zero_copy_only=False).astype(np.int64))
            dense.append(self.columns[i].cover.density(values.dictionary, self.columns[i].name, codes))
        nodes = [self.columns[i].cover.nodes for i in chosen]
        return summed(asked, dense, nodes, boxes.codes, boxes.mass / self.total)

    def frame(self, columns: Sequence[str], kind: str | None = None) -> Any:
        """The joint table of some columns at exact values, with a `count`; sums to the total."""
        names = names_of(columns)
        chosen = tuple(self._index(name) for name in names)
        base.require_once(chosen, names)
        boxes = self._project(chosen)
        sets = [listed(self.columns[i].cover, names[at], boxes.codes[at]) for at, i in enumerate(chosen)]
        return to_native(joint_table(names, sets, boxes.codes, boxes.mass), kind or "arrow")

    def sample(self, n: int | None = None, *, seed: int | np.random.Generator) -> pa.Table:
        """People drawn from the estimate: boxes by mass, then a value for each cell by its cover.

        Without n one value is drawn for each cell that was published: a reconstruction of as many rows, in
        the published order (weights are not applied).
        """
        random = generator(seed)
        boxes = self._published() if n is None else self.draw_boxes(n, random)
        return pa.table({c.name: c.cover.draw(c.codes[boxes], random, c.name) for c in self.columns})

    def draw_boxes(self, n: int, random: np.random.Generator) -> NDArray[np.integer]:
        """The boxes of n people, drawn by mass, in random order: (n,)."""
        base.require_rows(n)
        boxes = owners(random.multinomial(int(n), self.mass / self.mass.sum()))
        random.shuffle(boxes)
        return boxes

    def _published(self) -> NDArray[np.integer]:
        rows = self.rows
        if rows is not None:
            return rows
        if (self.mass != np.floor(self.mass)).any():
            raise InputError("how many rows were published is not known", do="give the number of rows to draw")
        return owners(self.mass.astype(np.int64))


def encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Values that somebody asks about, each distinct one once."""
    if column.num_chunks == 1 and pa.types.is_dictionary(column.type):
        compacted = _compact(column.chunk(0))
        if compacted is not None:
            return compacted
    pieces = [plain(piece) for piece in column.chunks]
    whole = pa.concat_arrays(pieces) if pieces else plain(pa.array([], column.type))
    return whole.dictionary_encode("encode")


def _compact(column: pa.DictionaryArray) -> pa.DictionaryArray | None:
    """The values that occur, if no two words stand for the same one and none is missing without a word for it."""
    values = plain(column.dictionary)
    if column.indices.null_count or len(values.unique()) < len(values):
        return None
    codes = column.indices.to_numpy().astype(np.int64)
    used = np.flatnonzero(np.bincount(codes, minlength=len(values)))
    number = np.zeros(len(values), dtype=np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(number[codes]), values.take(pa.array(used)))
