"""Tables that are written without being held: rows come in portions, and their order is drawn on disk.

Every row goes into one of some buckets, each with the same probability and by itself; then each bucket is shuffled, one
after the other. That is sorting by independent uniform numbers whose first digit is the bucket, so that every order of
all rows is equally likely. A bucket is a file of codes, a few bytes a row; what the codes stand for stays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core import rows as counting
from jali.core.arrays import Ints, steps
from jali.core.progress import Step
from jali.core.rows import Rows, cells
from jali.errors import ChangedError, InputError

AT_ONCE = 1 << 20
"""Rows that go into buckets together, or come out of one."""
_NUMBER = 12  # bytes of a number in a line of text, with its comma


class Portion(NamedTuple):
    """Some distinct rows of a table, in the order of what they show, and how many rows each stands for."""

    codes: Sequence[NDArray[np.integer]]  # of each column, (distinct rows,) each
    numbers: Ints  # (distinct rows,)


@dataclass(frozen=True, eq=False)
class Portioned:
    """A table whose distinct rows come in portions, as often as they are asked for, and are never held together."""

    shown: Mapping[str, pa.Array | None]  # what each code of a column stands for; None: itself, a whole number
    count: int  # rows
    rows_of: Mapping[str, Ints]  # (codes,) the rows of each code of a column, where that is known
    portions: Callable[[], Iterator[Portion]]
    most: int  # rows that may be held

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return list(self.shown)

    @property
    def kind(self) -> np.dtype[np.void]:
        """How a row lies in a bucket: the codes of its columns."""
        wide = [8 if labels is None else _width(len(labels)) for labels in self.shown.values()]
        return np.dtype([(f"c{at}", f"<u{width}") for at, width in enumerate(wide)])

    @property
    def buckets(self) -> int:
        """How many buckets there are, so that each fits into memory."""
        return max(1, -(-self.count // self.most))

    @property
    def bytes(self) -> int:
        """About how many bytes the table has as lines of text, and those of its buckets."""
        total = self.kind.itemsize * self.count
        for name, labels in self.shown.items():
            if labels is None or not pa.types.is_string(labels.type) or name not in self.rows_of:
                total += _NUMBER * self.count
                continue
            lengths = pc.binary_length(labels).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64) + 3
            total += int(lengths @ self.rows_of[name])
        return total

    def table(self, rows: NDArray[np.void]) -> pa.Table:
        """What rows of a bucket show."""
        own = {f"c{at}": labels for at, labels in enumerate(self.shown.values())}
        return pa.table([_cells(labels, rows[at]) for at, labels in own.items()], names=self.names)

    def changed(self, change: Callable[[pa.Table], pa.Table]) -> Portioned:
        """The table after `change`, which changes texts and names of columns."""
        made: dict[str, pa.Array | None] = {}
        names = dict(zip(self.names, change(self.table(np.zeros(0, self.kind))).column_names, strict=True))
        for name, labels in self.shown.items():
            whole = None if labels is None else change(pa.table({name: labels})).column(0).combine_chunks()
            made[names[name]] = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
        return replace(self, shown=made, rows_of={names[name]: rows for name, rows in self.rows_of.items()})

    def first(self, most: int) -> pa.Table:
        """No row: none is held."""
        return self.table(np.zeros(0, self.kind))

    def _refuse(self) -> NoReturn:
        what = f"the {self.count:,} rows of this release are more than memory holds"
        raise InputError(what, do="save it into a folder, and read its files part by part")

    plain = coded = whole = _refuse


Written = Rows | Portioned
"""A table that is written."""


def _cells(labels: pa.Array | None, codes: NDArray[np.integer]) -> pa.Array:
    """Cells as a dictionary where there are few different ones: else it would be larger than they are."""
    if labels is None:
        return pa.array(codes.astype(np.int64))
    place = codes.astype(np.int32)
    return cells(labels, place) if len(labels) <= REPEATED else labels.take(pa.array(place))


REPEATED = 1 << 14
"""Different cells of a column up to which they are written as a dictionary."""


def _width(codes: int) -> int:
    """The bytes of a code."""
    return 1 if codes <= 2**8 else 2 if codes <= 2**16 else 4


def drawn_on_disk(table: Portioned, folder: Path, step: Step) -> Iterator[pa.Table]:
    """The rows in a uniformly random order, some at a time; what lies in the folder meanwhile is removed.

    `step` hears of each row twice: when it goes into its bucket, and when it comes out.
    """
    random, paths = counting.fresh_random(), [folder / str(bucket) for bucket in range(table.buckets)]
    folder.mkdir()
    done = 0
    for portion in table.portions():
        for rows in _listed(portion, table.kind):
            _put(rows, random.integers(len(paths), size=len(rows)), paths)
            done += len(rows)
            step(done, 2 * table.count)
    if done != table.count:
        raise ChangedError()
    for path in paths:
        if not path.exists():
            continue  # nobody was drawn into it
        rows = np.fromfile(path, dtype=table.kind)
        path.unlink()
        order = np.arange(len(rows), dtype=np.int64)
        random.shuffle(order)
        for some in steps(len(rows), 1, AT_ONCE):
            yield table.table(rows[order[some]])
            done += some.stop - some.start
            step(done, 2 * table.count)
    folder.rmdir()


def _listed(portion: Portion, kind: np.dtype[np.void]) -> Iterator[NDArray[np.void]]:
    """The rows that distinct rows stand for, one by one, some at a time."""
    ends = np.cumsum(portion.numbers)
    for some in steps(int(ends[-1]) if len(ends) else 0, 1, AT_ONCE):
        first, last = np.searchsorted(ends, [some.start, some.stop - 1], side="right").tolist()
        here = np.minimum(ends[first : last + 1], some.stop) - some.start
        own = np.repeat(np.arange(first, last + 1), np.diff(here, prepend=0))
        rows = np.empty(len(own), dtype=kind)
        for at, codes in enumerate(portion.codes):
            rows[f"c{at}"] = codes[own]
        yield rows


def _put(rows: NDArray[np.void], bucket: Ints, paths: Sequence[Path]) -> None:
    """Append each row to the file of its bucket."""
    order = np.argsort(bucket.astype(np.uint16) if len(paths) <= 2**16 else bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(len(paths) + 1)).tolist()
    for path, low, high in zip(paths, edges[:-1], edges[1:], strict=True):
        if low < high:
            with path.open("ab") as file:
                file.write(rows[order[low:high]].tobytes())
