"""Columns of a release that are published as they are, and whose rows are not held with those of the release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, counted, found_among, narrowed
from jali.core.formats import formula_columns
from jali.core.spill import Portion, Portioned
from jali.errors import InputError
from jali.releases.column import Published, shown_alike


@dataclass(frozen=True, eq=False)
class Unheld:
    """Columns that no promise is about, where memory cannot hold all rows that have them: these come in portions.

    A portion has codes of all columns of the release, in the order of `names`; they number the labels of each column.
    Rows that show the same but for their sensitive values are in one portion, unless `split` has what they show in the
    quasi-identifiers.
    """

    columns: tuple[Published, ...]  # held as their values, with the rows of each
    names: tuple[str, ...]  # of all columns, as they stand in the table
    portions: Callable[[], Iterator[Portion]]
    most: int  # rows that may be held
    split: Sequence[NDArray[np.integer]]  # labels of each quasi-identifier

    def __getstate__(self) -> NoReturn:
        """Rows that an engine holds cannot be sent to another process."""
        raise InputError("a release whose rows are not held stays in its process", do="save it, and load it there")

    def among(self, held: Sequence[Published]) -> tuple[Published, ...]:
        """All columns of the release, those that are held included, as they stand in the table."""
        every = {column.name: column for column in (*held, *self.columns)}
        return tuple(every[name] for name in self.names)

    def has(self, columns: Sequence[Published]) -> bool:
        """Whether one of these columns is not held."""
        return any(column.name == own.name for column in columns for own in self.columns)

    def table(self, columns: Sequence[Published], rows: int, number: str | None = None) -> Portioned:
        """The published table; `columns` are all of them, but for one of whole numbers that comes last."""
        shown: dict[str, pa.Array | None] = {column.name: column.texts for column in columns}
        shown |= {} if number is None else {number: None}
        each = {column.name: column.rows_by_node.astype(np.int64) for column in columns}

        def portions() -> Iterator[Portion]:
            return (in_order(columns, portion) for portion in self.portions())

        return Portioned(shown, rows, each, portions, self.most)

    def shared_by(self, columns: Sequence[Published], every: Sequence[Published]) -> Ints:
        """How many rows show the same in these of all columns, for each of the different things that they show."""
        at = [self.names.index(column.name) for column in columns]
        widths = [len(column.labels) for column in columns]
        found: list[NDArray[np.integer]] = []
        apart: list[list[NDArray[np.integer]]] = []
        for codes, numbers in self.portions():
            cells = [own for column, own in zip(every, codes, strict=False) if column.role == "quasi"]
            split = among(self.split, cells)
            apart.append([*(codes[i][split] for i in at), numbers[split]])
            found.append(_alike([codes[i][~split] for i in at], widths, numbers[~split]))
        *hidden, rows = (np.concatenate(each) for each in zip(*apart, strict=True))
        return np.concatenate([*found, _alike(hidden, widths, rows)]).astype(np.int64, copy=False)


def among(known: Sequence[NDArray[np.integer]], asked: Sequence[NDArray[np.integer]]) -> Bools:
    """Which rows of codes are among those that are known; both are given by column."""
    if len(known[0]) == 0 or len(asked[0]) == 0:
        return np.zeros(len(asked[0]), dtype=bool)
    distinct = np.unique(np.stack(known), axis=1)
    widths = [1 + max(int(a.max()), int(b.max())) for a, b in zip(distinct, asked, strict=True)]
    return found_among(list(distinct), list(asked), widths, distinct.shape[1] + len(asked[0])) >= 0


def _alike(
    codes: Sequence[NDArray[np.integer]], widths: Sequence[int], rows: NDArray[np.integer]
) -> NDArray[np.integer]:  # fmt: skip
    """How many rows are alike, for each of the different rows of codes."""
    if len(rows) == 0:
        return rows
    return narrowed(counted(combine(list(zip(codes, widths, strict=True)), len(rows))[0], rows))


def in_order(columns: Sequence[Published], portion: Portion) -> Portion:
    """The distinct rows of a portion, in the order of what they show."""
    number, first = shown_alike(columns, portion.codes[: len(columns)], *portion.codes[len(columns) :])
    return Portion([codes[first] for codes in portion.codes], counted(number, portion.numbers, len(first)))


def formulas_in(columns: Sequence[Published]) -> tuple[str, ...]:
    """The names of columns with a cell that spreadsheets run."""
    every = ((column, pa.table({column.name: column.texts})) for column in columns)
    return tuple(name for column, table in every for name in formula_columns(table, {column.name: column.kind}))
