"""BoxEstimate: each published row is a box of cells over which its mass is spread evenly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding.frequencies import combine
from jali.encoding.native import to_native
from jali.encoding.values import Kind
from jali.errors import InputError, nearest
from jali.estimates.base import INDEPENDENT, Count, condition_of, generator, short, table_of
from jali.estimates.condition import And, Condition, Constant, Not, Or, Test, columns, simplify, tests
from jali.estimates.cover import DECLARE, Cover
from jali.estimates.domain import plain
from jali.estimates.joint import joint_table, listed, summed
from jali.estimates.patterns import Bools, Floats, Ints, Patterns, added

Role = Literal["quasi", "sensitive", "other"]
_KEPT = 256  # projections and patterns that are kept for the next question


@dataclass(frozen=True, eq=False)
class BoxColumn:
    """A published column: `codes[row]` is the node that the row shows, and the cover says what that stands for."""

    name: str
    kind: Kind
    role: Role
    cover: Cover
    codes: NDArray[np.integer]  # (rows,)

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        if codes.dtype.kind not in "iu":
            raise InputError(f'column "{self.name}": codes must be whole numbers', got=str(codes.dtype))
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < self.cover.nodes:
            raise InputError(f'column "{self.name}": a code that is no node', do=f"give codes below {self.cover.nodes}")
        if self.cover.kind is None:
            object.__setattr__(self, "cover", replace(self.cover, kind=self.kind))


class Projected(NamedTuple):
    """The boxes as some columns show them."""

    codes: tuple[Ints, ...]  # each (boxes,)
    mass: Floats  # (boxes,)


@dataclass(frozen=True, eq=False)
class BoxEstimate:
    """Distinct published rows, each with its mass; values within a cell as its cover says, columns independent."""

    columns: tuple[BoxColumn, ...]
    mass: Floats  # (boxes,) rows, or the sum of their weights
    total: float = -1.0  # the mass of all boxes
    rows: NDArray[np.integer] | None = None  # (published rows,) the box of each; None: each box stands for mass rows
    _projections: dict[tuple[int, ...], Projected] = field(default_factory=dict, init=False, repr=False)
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
    def from_rows(cls, columns: Sequence[BoxColumn], weights: Floats | None = None) -> BoxEstimate:
        """The estimate of a published table: its rows reduced to the distinct ones."""
        rows = len(columns[0].codes) if columns else 0
        if any(len(column.codes) != rows for column in columns) or (weights is not None and len(weights) != rows):
            raise InputError("boxes: each column and the weights must have one entry for each row", got=f"{rows} rows")
        number, first = combine([(column.codes, column.cover.nodes) for column in columns], rows)
        mass = np.bincount(number, weights, minlength=len(first)).astype(np.float64)
        return cls(tuple(replace(column, codes=column.codes[first]) for column in columns), mass, rows=number)

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"BoxEstimate({len(self.mass):,} boxes of mass {short(self.total)}: {names})"

    def _index(self, name: object) -> int:
        names = [column.name for column in self.columns]
        if name not in names:
            raise InputError(f'no column "{name}" was published', do=nearest(str(name), names))
        return names.index(str(name))

    def _project(self, chosen: tuple[int, ...]) -> Projected:
        """The boxes as the chosen columns show them, equal ones made one."""
        found = self._projections.get(chosen)
        if found is None:
            some = [self.columns[i] for i in chosen]
            number, first = combine([(column.codes, column.cover.nodes) for column in some], len(self.mass))
            mass = added(number, self.mass, len(first))
            found = Projected(tuple(column.codes[first].astype(np.int64) for column in some), mass)
            _keep(self._projections, chosen, found)
        return found

    def _judged(self, column: int, some: tuple[Test, ...]) -> Patterns:
        found = self._patterns.get((column, some))
        if found is None:
            found = self.columns[column].cover.patterns(some)
            _keep(self._patterns, (column, some), found)
        return found

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
        boxes = self._project(chosen)
        own = [tuple(t for t in tests(asked) if t.column == self.columns[i].name) for i in chosen]
        judged = [self._judged(i, some) for i, some in zip(chosen, own, strict=True)]
        share, surely, maybe = expanded(asked, own, judged, boxes)
        low, high = float(boxes.mass[surely].sum()), float(boxes.mass[maybe].sum())
        open_ = maybe & ~surely
        if np.isnan(share[open_]).any():
            what = f"the count depends on column {self._unknown(chosen, judged, boxes, open_)}, published as *"
            between = f"it lies between {short(low)} and {short(high)}"
            raise InputError(f"{what} with no declared domain: {between}", do=DECLARE)
        value = low + float(boxes.mass[open_] @ share[open_])
        return Count(
            min(max(value, low), high), low=low, high=high, assumes=self._assumed(chosen, judged, boxes, open_)
        )

    def _unknown(self, chosen: tuple[int, ...], judged: list[Patterns], boxes: Projected, rows: Bools) -> str:
        """The columns whose cells in these rows may be anything."""
        return " and ".join(
            f'"{self.columns[i].name}"'
            for i, found, codes in zip(chosen, judged, boxes.codes, strict=True)
            if np.isnan(found.share[:, codes[rows]]).any()
        )

    def _assumed(
        self, chosen: tuple[int, ...], judged: list[Patterns], boxes: Projected, rows: Bools
    ) -> tuple[str, ...]:
        """What the answer rests on in rows that are neither surely in nor surely out."""
        found: dict[str, None] = {}
        several = np.zeros(int(rows.sum()), dtype=np.int64)
        for i, patterns, codes in zip(chosen, judged, boxes.codes, strict=True):
            doubtful = (patterns.possible.sum(axis=0) > 1)[codes[rows]]
            several += doubtful
            if doubtful.any():
                nodes = np.flatnonzero(np.bincount(codes[rows][doubtful]))
                found |= dict.fromkeys(self.columns[i].cover.assumes(nodes, self.columns[i].name))
        return (*found, INDEPENDENT) if (several > 1).any() else tuple(found)

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
            encoded = _encoded(column)
            asked.append(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))
            dense.append(self.columns[i].cover.density(encoded.dictionary, self.columns[i].name, codes))
        nodes = [self.columns[i].cover.nodes for i in chosen]
        return summed(asked, dense, nodes, boxes.codes, boxes.mass / self.total)

    def frame(self, columns: Sequence[str], kind: str | None = None) -> Any:
        """The joint table of some columns at exact values, with a `count`; sums to the total."""
        names = [columns] if isinstance(columns, str) else list(columns)
        chosen = tuple(self._index(name) for name in names)
        if not chosen or len(set(chosen)) < len(chosen):
            raise InputError("the columns of a frame must be some, each once", got=", ".join(map(str, names)) or "none")
        boxes = self._project(chosen)
        sets = [listed(self.columns[i].cover, names[at], boxes.codes[at]) for at, i in enumerate(chosen)]
        return to_native(joint_table(names, sets, boxes.codes, boxes.mass), kind or "arrow")

    def sample(self, n: int | None = None, *, seed: int | np.random.Generator) -> pa.Table:
        """People drawn from the estimate: boxes by mass, then a value for each cell by its cover.

        Without n one value is drawn for each cell that was published: a reconstruction of as many rows, in
        the published order (weights are not applied).
        """
        random = generator(seed)
        if n is None:
            boxes = self._published()
        else:
            if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
                raise InputError("not a number of rows", got=repr(n), do="give a whole number, or None for all rows")
            boxes = np.repeat(np.arange(len(self.mass)), random.multinomial(int(n), self.mass / self.mass.sum()))
            random.shuffle(boxes)
        return pa.table({c.name: c.cover.draw(c.codes[boxes], random, c.name) for c in self.columns})

    def _published(self) -> NDArray[np.integer]:
        if self.rows is not None:
            return self.rows
        if (self.mass != np.floor(self.mass)).any():
            raise InputError("how many rows were published is not known", do="give the number of rows to draw")
        return np.repeat(np.arange(len(self.mass)), self.mass.astype(np.int64))


def expanded(
    asked: Condition, own: list[tuple[Test, ...]], judged: list[Patterns], boxes: Projected
) -> tuple[Floats, Bools, Bools]:
    """The share of each box that satisfies the condition, and whether all of it and any of it may: each (boxes,).

    Column by column, what is left of the condition under each pattern, and the share of each box where it is left.
    """
    rows = len(boxes.mass)
    left = {asked: (np.ones(rows), np.ones(rows, dtype=np.bool_))}
    ends = {truth: (np.zeros(rows), np.zeros(rows, dtype=np.bool_)) for truth in (True, False)}
    for some, patterns, codes in zip(own, judged, boxes.codes, strict=True):
        after: dict[Condition, tuple[Floats, Bools]] = {}
        for condition, (share, possible) in left.items():
            for rest, alike in _split(condition, some, patterns).items():
                into = ends[rest.value] if isinstance(rest, Constant) else after.get(rest)
                if into is None:
                    into = after[rest] = (np.zeros(rows), np.zeros(rows, dtype=np.bool_))
                part, allowed = _together(patterns, alike)
                into[1][:] |= possible & allowed[codes]
                if rest != Constant(False):  # of what fails only its being possible is asked
                    into[0][:] += share * part[codes]
        left = after
    return ends[True][0], ~ends[False][1], ends[True][1]


def _split(condition: Condition, some: tuple[Test, ...], patterns: Patterns) -> dict[Condition, list[int]]:
    """What is left of the condition, and the patterns that leave it so."""
    found: dict[Condition, list[int]] = {}
    for number, truth in enumerate(patterns.truth.tolist()):
        rest = simplify(_resolved(condition, dict(zip(some, truth, strict=True))))
        found.setdefault(rest, []).append(number)
    return found


def _together(patterns: Patterns, alike: list[int]) -> tuple[Floats, Bools]:
    """The share of each node that has one of these patterns, known where it can have no other: each (nodes,)."""
    allowed: Bools = patterns.possible[alike].max(axis=0)
    others = patterns.possible.sum(axis=0) > patterns.possible[alike].sum(axis=0)
    return np.where(allowed & others, patterns.share[alike].sum(axis=0), allowed), allowed


def _resolved(condition: Condition, truth: Mapping[Test, bool]) -> Condition:
    """The condition with constants in place of the tests whose truth is known."""
    match condition:
        case Test():
            return Constant(truth[condition]) if condition in truth else condition
        case Not(part):
            return Not(_resolved(part, truth))
        case And(parts):
            return And(tuple([_resolved(part, truth) for part in parts]))
        case Or(parts):
            return Or(tuple([_resolved(part, truth) for part in parts]))
    return condition


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    pieces = [plain(piece) for piece in column.chunks]
    whole = pa.concat_arrays(pieces) if pieces else plain(pa.array([], column.type))
    return whole.dictionary_encode("encode")


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    """Keep a value for the next question, in place of the oldest when there are many."""
    while len(kept) >= _KEPT:
        kept.pop(next(iter(kept)))
    kept[key] = value
