"""CSV files block by block, two at a time: cells become numbers, and the rows of a large file are counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Ints, owners, starts
from jali.kernels import counting as kernels
from jali.sources import distinct
from jali.sources.distinct import Tally
from jali.sources.engines.base import ROWS, Combinations, in_order

_CELLS, _WORDS = 1 << 11, 1 << 12  # of a new table
_COLUMNS = 1 << 15
_MARK = b"\xef\xbb\xbf"
_EMPTY, _FIRST = _MARK + b"\r\n", 1 << 12  # what may stand before the names, and where they mostly stand
_MOST = 2**31 - 1  # letters of the distinct cells of a column that Arrow can number


class NotByLine(Exception):  # noqa: N818 - no error: the file is read otherwise
    """A line of the file is no row, or its cells are not written as everywhere."""


class NearlyDistinct(Exception):  # noqa: N818
    """Nearly all of the first rows are distinct, so that counting them is no help."""


class Blocks:
    """The rows of a file, some at a time, each block ending with a line; threads may share it."""

    def __init__(self, file: Any, size: int, separator: str, workers: int = 2) -> None:
        """`file` gives bytes of UTF-8, about `size` of them make a block."""
        self.workers = workers  # who read side by side
        self._file, self._size, self._rest, self._number = file, size, b"", -1
        self.separator = separator.encode()
        self._lock = threading.Lock()

    def next(self, buffer: bytearray) -> tuple[int, int, bytearray]:
        """The number of the next block, how many bytes it has, 0 at the end, and where: in the buffer or a larger one.

        Behind a block there are bytes that the kernels may look at.
        """
        with self._lock:
            size, ended = len(self._rest), False
            if len(buffer) < size + self._size + kernels.AHEAD:
                buffer = bytearray(size + self._size + kernels.AHEAD)
            buffer[:size] = self._rest
            while not ended:
                room = len(buffer) - kernels.AHEAD
                while size < room and not ended:
                    read = self._file.readinto(memoryview(buffer)[size:room])
                    size, ended = size + read, read == 0
                end = buffer.rfind(b"\n", 0, size) + 1
                if ended or (end and (self._number >= 0 or buffer[: min(end, _FIRST)].strip(_EMPTY))):
                    break
                buffer = buffer + bytes(len(buffer))  # a line, or empty ones, longer than all this
            if ended and end < size:
                if buffer.startswith(self.separator, size - 1):  # where Arrow takes the empty cell for an empty text
                    raise NotByLine
                buffer[size] = ord("\n")
                size = end = size + 1
            self._rest = bytes(memoryview(buffer)[end:size])
            self._number += 1
            return self._number, end, buffer


@dataclass(eq=False)
class _Worker:
    """One of those who share the blocks of a file: the distinct cells that it met, and the rows of its blocks."""

    fields: NDArray[np.int64]  # (fields of a row,) the place of each among the wanted columns, or -1
    separator: int
    buffer: bytearray = field(default_factory=bytearray)
    blocks: list[tuple[int, int]] = field(default_factory=list)  # numbers, and how many cells were known after each
    kept: dict[int, list[NDArray[np.integer]]] = field(default_factory=dict)  # codes of each block, column by column
    rows: int = 0

    def __post_init__(self) -> None:
        self.columns = int(self.fields.max()) + 1
        self.known = kernels.Cells(
            np.zeros((_CELLS, 4), dtype=np.int64), np.zeros(_WORDS, dtype=np.uint64),
            np.zeros((_CELLS // 2, 2), dtype=np.int64), np.zeros(2 + self.columns, dtype=np.int64),
        )  # fmt: skip
        self.codes = np.zeros((0, self.columns), dtype=np.int32)
        self.tally = Tally(self.columns)
        self.own = [np.arange(_CELLS) for _ in range(self.columns)]  # each code for itself

    def numbered(self, number: int, begin: int, end: int) -> list[NDArray[np.integer]]:
        """The codes of the rows of a block, column by column."""
        if len(self.codes) <= (most := end // len(self.fields) + 1):
            self.codes = np.empty((most + 1, self.columns), dtype=np.int32)
        letters, form, row = np.frombuffer(self.buffer, np.uint8), (self.separator, self.fields), 0
        while True:
            ended, begin, row = kernels.number_cells(letters, (begin, end, row), form, self.known, self.codes)
            if ended == kernels.REFUSED:
                raise NotByLine
            if ended == kernels.DONE:
                break
            self._grow()
        self.blocks.append((number, int(self.known.used[0])))
        self.rows += row
        return [self.codes[:row, at].astype(_narrowest(known)) for at, known in enumerate(self.known.used[2:].tolist())]

    def _grow(self) -> None:
        """Make room for more cells, or for more letters."""
        table, texts, order, used = self.known
        if 2 * used[0] < len(table):
            self.known = self.known._replace(texts=np.concatenate((texts, np.zeros_like(texts))))
            return
        larger = np.zeros((2 * len(table), 4), dtype=np.int64)
        kernels.move_cells(table, larger)
        self.known = self.known._replace(table=larger, order=np.concatenate((order, np.zeros_like(order))))

    def count(self, codes: Sequence[NDArray[np.integer]]) -> None:
        """Count rows and forget them."""
        known = self.known.used[2:].tolist()
        for at, cells in enumerate(known):
            if len(self.own[at]) < cells:
                self.own[at] = np.arange(2 * cells)
        parts = zip(codes, self.own, known, strict=True)
        self.tally.add([(some.astype(np.int32), own[:cells]) for some, own, cells in parts])
        if self.tally.rows >= distinct.MANY // 2 and self.tally.used > distinct.NEARLY * self.tally.rows:
            raise NearlyDistinct

    def count_kept(self) -> None:
        """Count the rows that were kept so far."""
        while self.kept:
            self.count(self.kept.popitem()[1])

    def values(self, column: int) -> tuple[pa.Array, Ints]:
        """The cells of a column as texts, in the order of their codes, and the block in which each first stands.

        A cell without letters is missing, unless it stands in quotes. Two quotes within quotes are one.
        """
        cells = self.known.order[: self.known.used[0]]
        length, of, quoted = kernels.about_cells(cells)
        own = np.flatnonzero(of == column)
        length, quoted = length[own], quoted[own]
        if int(length.sum()) > _MOST:
            raise NotByLine
        begin = starts(length).astype(np.int32)
        letters = np.empty(int(begin[-1]), dtype=np.uint8)
        kernels.spell_cells(self.known.texts, np.ascontiguousarray(cells[own]), begin, letters)
        filled = pa.array(quoted | (length > 0)).buffers()[1]
        texts = pa.Array.from_buffers(pa.string(), len(own), [filled, pa.py_buffer(begin), pa.py_buffer(letters)])
        texts.validate(full=True)
        if (letters == ord('"')).any():
            texts = pc.if_else(pa.array(quoted), pc.replace_substring(texts, '""', '"'), texts)
        number, upto = np.array(self.blocks or [(0, 0)]).T
        return texts, number[owners(np.diff(upto, prepend=0))][own]


def rows_by_line(
    blocks: Blocks, header: Sequence[str], wanted: Sequence[str], *, count: bool
) -> tuple[dict[str, pa.ChunkedArray], Ints | None]:
    """The wanted columns as dictionaries of text and, where there are many rows, how many each record stands for.

    NotByLine where Arrow must read the file, NearlyDistinct where rows are not to be counted.
    """
    fields = np.full(len(header), -1, dtype=np.int64)
    fields[[header.index(name) for name in wanted]] = np.arange(len(wanted))
    if len(blocks.separator) > 1 or len(header) > _COLUMNS:
        raise NotByLine
    workers = [_Worker(fields, blocks.separator[0]) for _ in range(blocks.workers)]
    stopped = threading.Event()

    def work(worker: _Worker) -> None:
        try:
            while not stopped.is_set():
                number, end, worker.buffer = blocks.next(worker.buffer)
                if end == 0:
                    return
                begin = 0 if number else _after_header(worker.buffer, end, fields, worker.separator)
                codes = worker.numbered(number, begin, end)
                if count and sum(each.rows for each in workers) >= distinct.MANY:
                    worker.count_kept()
                    worker.count(codes)
                else:
                    worker.kept[number] = codes
        except BaseException:
            stopped.set()
            raise

    if len(workers) == 1:
        work(workers[0])
    else:
        _side_by_side(work, workers, stopped)
    try:
        known = [_known([worker.values(at) for worker in workers]) for at in range(len(wanted))]
    except pa.ArrowInvalid:  # letters of another encoding
        raise NotByLine from None
    rows = sum(worker.rows for worker in workers)
    if rows == 0:
        raise NotByLine
    if count and rows >= distinct.MANY:
        found = _counted(workers, known, wanted)
        return {name: found.table[name] for name in wanted}, found.rows
    return _held(workers, known, wanted), None


def _side_by_side(work: Callable[[_Worker], None], workers: Sequence[_Worker], stopped: threading.Event) -> None:
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            for done in [pool.submit(work, worker) for worker in workers]:
                done.result()
        finally:
            stopped.set()  # also where somebody interrupts


def _after_header(buffer: bytearray, end: int, fields: NDArray[np.int64], separator: int) -> int:
    """Where the first row begins, behind the line with the names, which must be written as everywhere, too."""
    begin = len(_MARK) if buffer.startswith(_MARK) else 0
    while begin < end and buffer[begin] in b"\r\n":
        begin += 1
    line = buffer.find(b"\n", begin, end) + 1
    nobody, letters = _Worker(np.full_like(fields, -1), separator), np.frombuffer(buffer, np.uint8)
    form = separator, nobody.fields
    ended, _, rows = kernels.number_cells(letters, (begin, line, 0), form, nobody.known, nobody.codes)
    if ended != kernels.DONE or rows != 1:
        raise NotByLine
    return line


Known = tuple[pa.Array, list[Ints]]
"""The distinct values of a column, and which of them each cell of each worker is."""


def _known(of: Sequence[tuple[pa.Array, Ints]]) -> Known:
    """The distinct values of a column in the order in which they first stand in the file."""
    if len(of) == 1:  # whose cells are in order
        coded = of[0][0].dictionary_encode(null_encoding="encode")
        return coded.dictionary, [coded.indices.to_numpy().astype(np.int64)]
    cells, block = pa.concat_arrays([texts for texts, _ in of]), np.concatenate([blocks for _, blocks in of])
    order = np.argsort(block, kind="stable")  # each block is of one worker, whose cells are in order
    coded = cells.take(pa.array(order)).dictionary_encode(null_encoding="encode")
    value = np.empty(len(order), dtype=np.int64)
    value[order] = coded.indices.to_numpy()
    return coded.dictionary, np.split(value, np.cumsum([len(texts) for texts, _ in of])[:-1])


def _held(workers: Sequence[_Worker], known: Sequence[Known], names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Every row, in the order of the file."""
    every = sorted((number, at) for at, worker in enumerate(workers) for number in worker.kept)
    found = {}
    for column, (name, (values, value)) in enumerate(zip(names, known, strict=True)):
        narrow = [own.astype(_narrowest(len(values))) for own in value]
        as_they_are = [bool((own == np.arange(len(own))).all()) for own in value]
        parts = [workers[at].kept[number][column] for number, at in every]
        parts = [
            part if as_they_are[at] else narrow[at][part] for (_, at), part in zip(every, parts, strict=True)
        ]  # looking up codes that stay takes longer than all else of a small file
        indices = pa.array(np.concatenate(parts or [np.zeros(0, dtype=np.uint8)]))
        found[name] = pa.chunked_array([pa.DictionaryArray.from_arrays(indices, values)])
    return found


def _narrowest(values: int) -> type[np.integer[Any]]:
    return np.uint8 if values <= 2**8 else np.uint16 if values <= 2**16 else np.int32


def _counted(workers: Sequence[_Worker], known: Sequence[Known], names: Sequence[str]) -> Combinations:
    """The distinct rows of all blocks."""
    whole = Tally(len(names))
    for at, worker in enumerate(workers):
        worker.count_kept()
        codes, numbers = worker.tally.all()
        del worker.tally
        if len(numbers):
            whole.add(
                [(own.astype(np.int32), value[at]) for own, (_, value) in zip(codes, known, strict=True)], numbers
            )
    codes, numbers = whole.all()
    del whole
    columns: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(pa.array(own), values)
        for name, own, (values, _) in zip(names, codes, known, strict=True)
    }
    return in_order(pa.table(columns | {ROWS: pa.array(numbers)}), list(names))
