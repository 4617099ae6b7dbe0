"""Compiled counting of distinct rows: codes packed into words, and a hash table of words with their numbers.

An entry of the table is one row of an array: the words of a key, then how many rows have it; 0 is a free place. Keys
and numbers stand side by side, so that counting a row touches one place in memory.

The codes of a CSV file come from here too: `number_cells` finds the cells of a block, eight letters at a time, and
numbers the distinct ones of each column.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints
from jali.kernels.jit import inner, outer

# ruff: noqa: PLR0917


_AHEAD = 64  # keys whose entries are fetched together (measured)
_0, _1, _7, _32, _56 = (np.uint64(number) for number in (0, 1, 7, 32, 56))
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@outer
def pack(keys: Ints, word: int, indices: NDArray[np.int32], code: Ints, shift: int) -> None:
    """Add the code of each index, moved left, to a word of each key: keys (rows, words), code (indices that occur,)."""
    for i in range(len(indices)):
        keys[i, word] += code[indices[i]] << shift


@outer
def count_keys(  # one loop, since numba counts references whenever arrays are handed on
    keys: Ints, numbers: Ints, table: Ints, begin: int, used: int
) -> tuple[int, int]:
    """Count the keys from `begin` on; stops where the table is half full. How far it came, and the entries in use.

    `numbers` is how many rows each key stands for; empty: one each. The entries of some keys are looked at before the
    first of them is counted, so that memory fetches them side by side.
    """
    words, most, mask = keys.shape[1], len(table) // 2, np.uint64(len(table) - 1)
    place = np.empty(_AHEAD, dtype=np.uint64)
    for some in range(begin, len(keys), _AHEAD):
        end, seen = min(some + _AHEAD, len(keys)), 0
        for i in range(some, end):
            mixed = _0
            for w in range(words):
                mixed = (mixed ^ np.uint64(keys[i, w])) * _FACTOR
                mixed ^= mixed >> np.uint64(29)
            place[i - some] = (mixed * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)) & mask
            seen += table[place[i - some], words]  # so that it is near when it is needed
        if seen < 0:
            break  # never: but the compiler must not see that nobody needs the sum
        for i in range(some, end):
            at = place[i - some]
            while table[at, words] != 0:
                same = True
                for w in range(words):
                    same &= table[at, w] == keys[i, w]
                if same:
                    break
                at = (at + _1) & mask
            if table[at, words] == 0:
                if used >= most:
                    return i, used
                used += 1
                for w in range(words):
                    table[at, w] = keys[i, w]
            table[at, words] += numbers[i] if len(numbers) else 1
    return len(keys), used


# -- cells of CSV files ----------------------------------------------------------------------------------------------

DONE, FULL, REFUSED = 0, 1, 2
"""How numbering ends: all rows are numbered; a table is full; the lines are not such that each is a row."""
AHEAD = 16
"""Letters behind the last one that numbering may look at."""

_LINE, _RETURN, _QUOTE = 10, 13, 34
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)  # the lowest, highest bit of each letter
_LINES, _RETURNS = _ONES * np.uint64(_LINE), _ONES * np.uint64(_RETURN)
_NUMBERS = np.uint64(0x0001020304050607)  # times 256 ** i this has i in its highest letter
_LENGTH, _COLUMN = 17, 1  # where the length, and the column, of a cell begin in its mark
HASH, MARK, TEXT, CODE = range(4)
"""An entry of the table of cells: mixed bits, length, column and quotes, where its text begins, its code."""


class Cells(NamedTuple):
    """The distinct cells of some columns, as they are written, each with a code among those of its column."""

    table: Ints  # (entries, 4) at most half of them in use
    texts: NDArray[np.uint64]  # the cells, eight letters a word
    order: Ints  # (cells, 2) length, column and quotes of each, and where its text begins, as they came
    used: Ints  # (2 + columns,) cells and words in use, and the cells of each column


@outer
def number_cells(  # noqa: PLR0912
    letters: NDArray[np.uint8], some: tuple[int, int, int], form: tuple[int, NDArray[np.int64]], known: Cells,
    codes: NDArray[np.int32],
) -> tuple[int, int, int]:  # fmt: skip
    """Number the cells of some rows; how it ended, how far it came, and the rows so far.

    `some` is where they begin and end, each time with a line, and the rows before them. `form` is the separator, and
    the place of each field among the wanted columns, -1 for one that nobody wants. `codes` (rows, wanted columns) gets
    the codes; an empty line is no row. A line break within quotes, a cell whose closing quote is not its end, and a row
    with too few or too many cells are refused.
    """
    (at, end, row), (separator, column) = some, form
    table, texts, order, used = known
    mask, text = np.uint64(len(table) - 1), used[1]
    while at < end:
        empty = _line_end(letters, at)
        if empty:
            at += empty
            continue
        start = at
        for field in range(len(column)):
            quoted = 1 if letters[np.uint64(at)] == _QUOTE else 0
            first = at + quoted
            last = _closing(letters, first) if quoted else _stop(letters, first, separator)
            if quoted and letters[np.uint64(last)] != _QUOTE:
                return REFUSED, start, row
            at = last + quoted
            own = column[field]
            if own >= 0:
                words = (last - first + 7) >> 3
                if text + words > len(texts):
                    return FULL, start, row
                mark = ((last - first) << _LENGTH | own << _COLUMN | quoted) + 1
                mixed = _copied(letters, first, last, texts, text, np.uint64(mark))
                place = mixed & mask
                while table[place, MARK] != 0:
                    if table[place, MARK] == mark:
                        same, other = True, table[place, TEXT]
                        for i in range(words):
                            same &= texts[np.uint64(other + i)] == texts[np.uint64(text + i)]
                        if same:
                            break
                    place = (place + _1) & mask
                if table[place, MARK] == 0:
                    if 2 * used[0] >= len(table):
                        return FULL, start, row
                    table[place, HASH], table[place, MARK] = np.int64(mixed), mark
                    table[place, TEXT], table[place, CODE] = text, used[2 + own]
                    order[used[0], 0], order[used[0], 1] = mark - 1, text
                    text += words
                    used[0] += 1
                    used[1] = text
                    used[2 + own] += 1
                codes[row, own] = table[place, CODE]
            ended = _line_end(letters, at) if field == len(column) - 1 else letters[np.uint64(at)] == separator
            if not ended:
                return REFUSED, start, row
            at += ended
        row += 1
    return DONE, at, row


@inner
def _line_end(letters: NDArray[np.uint8], at: int) -> int:
    """How many letters end a line here; 0 where it does not end."""
    if letters[np.uint64(at)] == _LINE:
        return 1
    return 2 if letters[np.uint64(at)] == _RETURN and letters[np.uint64(at + 1)] == _LINE else 0


@inner
def _word(letters: NDArray[np.uint8], at: int) -> np.uint64:
    """Eight letters, the first in the lowest place; the compiler makes one access to memory of it."""
    place, word = np.uint64(at), _0
    for i in range(8):
        word |= np.uint64(letters[place + np.uint64(i)]) << np.uint64(8 * i)
    return word


@inner
def _zeros(word: np.uint64) -> np.uint64:
    """The highest bit of each letter that is 0, up to the first such; of those above it, of some others too."""
    return (word - _ONES) & ~word & _TOPS


@inner
def _stop(letters: NDArray[np.uint8], at: int, wanted: int) -> int:
    """Where the wanted letter, or the end of the line, first stands."""
    pattern = _ONES * np.uint64(wanted)
    while True:
        word = _word(letters, at)
        found = _zeros(word ^ pattern) | _zeros(word ^ _LINES) | _zeros(word ^ _RETURNS)
        if found != _0:
            lowest = (found & (~found + _1)) >> _7
            return int(at + np.int64((lowest * _NUMBERS) >> _56))
        at += 8


@inner
def _closing(letters: NDArray[np.uint8], at: int) -> int:
    """Where the quote that closes a cell stands, or the line ends before it; two quotes are one that is part of it."""
    at = _stop(letters, at, _QUOTE)
    while letters[np.uint64(at)] == _QUOTE and letters[np.uint64(at + 1)] == _QUOTE:
        at = _stop(letters, at + 2, _QUOTE)
    return at


@inner
def _copied(
    letters: NDArray[np.uint8], first: int, last: int, texts: NDArray[np.uint64], place: int, mixed: np.uint64
) -> np.uint64:
    """Copy a cell to a place of the texts, its last word filled with zeros; its bits, mixed."""
    while first < last:
        word = _word(letters, first)
        if last - first < 8:
            word &= (_1 << np.uint64(8 * (last - first))) - _1
        texts[np.uint64(place)] = word
        mixed = (mixed ^ word) * _FACTOR
        mixed ^= mixed >> _32
        place += 1
        first += 8
    return mixed


@outer
def move_cells(table: Ints, larger: Ints) -> None:
    """Put the entries of a table of cells into a larger one."""
    mask = np.uint64(len(larger) - 1)
    for i in range(len(table)):
        if table[i, MARK] != 0:
            at = np.uint64(table[i, HASH]) & mask
            while larger[at, MARK] != 0:
                at = (at + _1) & mask
            larger[at] = table[i]


@outer
def spell_cells(texts: NDArray[np.uint64], cells: Ints, begin: NDArray[np.int32], letters: NDArray[np.uint8]) -> None:
    """The letters of cells, one after the other: those of cell i at begin[i] to begin[i + 1]."""
    for i in range(len(cells)):
        for j in range(begin[i + 1] - begin[i]):
            word = texts[cells[i, 1] + (j >> 3)]
            letters[begin[i] + j] = np.uint8(word >> np.uint64(8 * (j & 7)))


def about_cells(cells: Ints) -> tuple[Ints, Ints, Bools]:
    """The length, the column, and whether it stands in quotes, of each cell."""
    marks = cells[:, 0]
    return marks >> _LENGTH, (marks & ((1 << _LENGTH) - 1)) >> _COLUMN, (marks & 1).astype(bool)
