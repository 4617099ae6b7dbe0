"""Cells of boxes: which boxes hold a cell, and the joint table of all cells that boxes hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, added_by_key, combine, owners, pairs_of, runs_of, sorted_by
from jali.core.formats import free_name
from jali.cover.cover import Cover
from jali.cover.sets import Sets, typed
from jali.errors import InputError

LARGEST = 20_000_000  # cells of a joint table
CELL_WORDS = 2**17  # of 64 bits, held at once for cells
VALUE_WORDS = 2**22  # and for the values of a column
FIRST_WORDS = 32  # of boxes that are looked at before the cells that they hold are left out
FEW = 512  # ways to choose a node for each value of a cell, up to which they are tried one by one
_BIT = np.uint64(1)

Density = tuple[Ints, Ints, Floats]  # (value, node, share) of one column


def summed(
    asked: Sequence[Ints], dense: Sequence[Density], nodes: Sequence[int], codes: Sequence[Ints], mass: Floats
) -> Floats:
    """Σ mass × Π shares over the boxes that hold each cell: (cells,).

    asked[column][cell] is a value, codes[column][box] a node. Where values lie in a node or two, these are looked
    up; otherwise each value is a set of boxes, held as bits, and a cell's boxes are what its values' sets share.
    """
    ways = math.prod(int(np.bincount(found[0], minlength=1).max()) for found in dense)
    return (_joined if ways <= FEW else _intersected)(asked, dense, nodes, codes, mass)


def _joined(
    asked: Sequence[Ints], dense: Sequence[Density], nodes: Sequence[int], codes: Sequence[Ints], mass: Floats
) -> Floats:
    """Column by column: which boxes begin as the cell may, for each choice of its values' nodes."""
    number, known = np.zeros(len(mass), dtype=np.int64), []
    for code, count in zip(codes, nodes, strict=True):
        keys, number = np.unique(number * count + code, return_inverse=True)
        number = number.reshape(-1)
        known.append(keys)
    sums = added(number, mass, len(known[-1]))
    lying = []  # of each column: where the nodes of a value begin, these, and its shares there
    for (value, node, share), values in zip(dense, asked, strict=True):
        order, start = sorted_by(value, int(values.max(initial=-1)) + 1)
        lying.append((start, node[order], share[order]))
    result = np.zeros(len(asked[0]))
    step = CELL_WORDS // 8
    for at in range(0, len(result), step):
        cell = np.arange(at, min(at + step, len(result)))
        begun, weight = np.zeros(len(cell), dtype=np.int64), np.ones(len(cell))
        for values, (start, node, share), count, keys in zip(asked, lying, nodes, known, strict=True):
            which, place = pairs_of(start, values[cell])
            wanted = begun[which] * count + node[place]
            begun = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            kept = np.flatnonzero(keys[begun] == wanted)
            begun, which, place = begun[kept], which[kept], place[kept]
            cell, weight = cell[which], weight[which] * share[place]
        result[at : at + step] = added(cell - at, weight * sums[begun], len(result[at : at + step]))
    return result


def _intersected(
    asked: Sequence[Ints], dense: Sequence[Density], nodes: Sequence[int], codes: Sequence[Ints], mass: Floats
) -> Floats:
    """Each value as the set of boxes that hold it, as bits; the boxes of a cell are in all of its values' sets.

    Columns that are not spread (a value is a node of its own) are left for the end: cells and boxes that differ only
    there are one until then.
    """
    flat = [_per_node(found, count) for found, count in zip(dense, nodes, strict=True)]
    weight = mass.copy()
    for share, code in zip(flat, codes, strict=True):
        weight *= 1.0 if share is None else share[code]
    spread = [column for column, found in enumerate(dense) if not _is_exact(found)]
    exact = [column for column in range(len(dense)) if column not in spread]
    values = [int(asked[c].max(initial=0)) + 1 for c in spread]
    short, cell_first = combine([(asked[c], n) for c, n in zip(spread, values, strict=True)], len(asked[0]))
    box_of, box_first = combine([(codes[c], nodes[c]) for c in spread], len(mass))
    cell_key, box_key, keys = _keys([(asked[c], dense[c], nodes[c], codes[c]) for c in exact], len(short), len(mass))
    space = len(box_first) * keys
    masses = Keyed.of(*added_by_key(box_of * keys + box_key, weight), space, tabled=space <= VALUE_WORDS)
    table = masses.amount.reshape(-1, keys) if masses.key is None else None  # (boxes, keys)
    if not spread:
        return masses.at(cell_key)
    order, start = sorted_by(short, len(cell_first))  # the cells that are one but for the columns that are not spread
    shares = {
        i: Keyed.of(dense[c][0] * nodes[c] + dense[c][1], dense[c][2], 0, tabled=False)
        for i, c in enumerate(spread)
        if flat[c] is None
    }
    some_asked = [asked[c][cell_first] for c in spread]
    held = [(dense[c], nodes[c], codes[c][box_first]) for c in spread]
    found, key = np.zeros(len(short)), cell_key[order]
    block = max(1, VALUE_WORDS // max(len(dense[c][0]) for c in spread)) * 64
    for begin in range(0, len(box_first), block):
        some = [code[begin : begin + block] for _, _, code in held]
        bits = [_bits(a, h[0], h[1], code) for a, h, code in zip(some_asked, held, some, strict=True)]
        step = max(1, CELL_WORDS // bits[0].shape[1])
        for at in range(0, len(cell_first), step):
            here = bits[0][some_asked[0][at : at + step]]
            for column in range(1, len(spread)):
                here &= bits[column][some_asked[column][at : at + step]]
            low, high = start[at], start[at + len(here)]
            if not shares and table is not None and np.count_nonzero(here) * 2 > here.size:
                unpacked = np.unpackbits(here.view(np.uint8), axis=1, bitorder="little")[:, : len(some[0])]
                local = owners(np.diff(start[at : at + len(here) + 1]))
                found[low:high] += (unpacked @ table[begin : begin + block])[local, key[low:high]]
                continue
            cell, box = _hits(here)
            part = np.ones(len(cell))
            for column, share_of in shares.items():
                part *= share_of.at(some_asked[column][at + cell] * held[column][1] + some[column][box])
            hit, place = pairs_of(start, at + cell)
            more = part[hit] * masses.at((begin + box)[hit] * keys + key[place])
            found[low:high] += added(place - low, more, int(high - low))
    result = np.empty(len(short))
    result[order] = found
    return result


def _is_exact(found: Density) -> bool:
    """Whether each value is a node of its own."""
    return all(int(np.bincount(side, minlength=1).max()) <= 1 for side in found[:2])


def _keys(columns: Sequence[tuple[Ints, Density, int, Ints]], cells: int, boxes: int) -> tuple[Ints, Ints, int]:
    """What cells and boxes are in the columns that are not spread, as one number each; and how many there are."""
    sides = []
    for asked, (value, node, _), nodes, codes in columns:
        of_value = np.full(int(asked.max(initial=0)) + 1, nodes)  # a value in no node is in no box
        known = value < len(of_value)
        of_value[value[known]] = node[known]
        sides.append((np.concatenate([of_value[asked], codes]), nodes + 1))
    number, first = combine(sides, cells + boxes)
    return number[:cells].astype(np.int64), number[cells:].astype(np.int64), len(first)


class Keyed(NamedTuple):
    """Amounts by key, 0 for any other key: in a table of all keys, or sorted."""

    key: Ints | None  # (amounts,) sorted; None: the amounts are a table
    amount: Floats

    @classmethod
    def of(cls, key: Ints, amount: Floats, keys: int, *, tabled: bool) -> Keyed:
        """From distinct keys; in a table only those below `keys` can be asked for."""
        if tabled:
            table, below = np.zeros(keys), key < keys
            table[key[below]] = amount[below]
            return cls(None, table)
        order = np.argsort(key, kind="stable")
        return cls(key[order], amount[order])

    def at(self, wanted: Ints) -> Floats:
        """The amount of each wanted key."""
        if self.key is None or not len(self.key):
            return np.zeros(len(wanted)) if self.key is not None else self.amount[wanted]
        place = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where(self.key[place] == wanted, self.amount[place], 0.0)


def _per_node(found: Density, nodes: int) -> Floats | None:
    """The share of whatever value each node holds, where it is the same for all of them."""
    _, node, share = found
    flat = np.zeros(nodes)
    flat[node] = share
    return flat if bool((flat[node] == share).all()) else None


def _bits(asked: Ints, found: Density, nodes: int, codes: Ints) -> NDArray[np.uint64]:
    """The boxes that hold each value up to the last that is asked for, as bits: (values, words)."""
    boxes = len(codes)
    words, box = (boxes + 63) // 64, np.arange(boxes)
    used, short = np.unique(codes, return_inverse=True)
    of_node = np.zeros((len(used), words), dtype="<u8")
    np.bitwise_or.at(of_node, (short.reshape(-1), box // 64), _BIT << (box % 64).astype(np.uint64))
    number = np.full(nodes, -1)
    number[used] = np.arange(len(used))
    value, node, _ = found
    result = np.zeros((int(asked.max(initial=0)) + 1, words), dtype="<u8")
    kept = (number[node] >= 0) & (value < len(result))  # a value of the column need not be one that is asked for
    value, node = value[kept], number[node[kept]]
    order = np.argsort(value, kind="stable")
    present, first = np.unique(value[order], return_index=True)
    if len(present):
        result[present] = np.bitwise_or.reduceat(of_node[node[order]], first, axis=0)
    return result


def _hits(here: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """The (row, bit) of each bit that is set."""
    row, word = np.nonzero(here)
    found = np.unpackbits(here[row, word].view(np.uint8), bitorder="little").reshape(-1, 64)
    which, bit = np.nonzero(found)
    return row[which], word[which] * 64 + bit


def first_and_last(
    asked: Sequence[Ints], dense: Sequence[Density], nodes: Sequence[int], codes: Sequence[Ints]
) -> tuple[Ints, Ints]:
    """The first and the last of the boxes that hold each cell, in the order in which they are given; -1 for none."""
    first, last = (_first(asked, dense, nodes, [code[::way] for code in codes]) for way in (1, -1))
    return first, np.where(last < 0, -1, len(codes[0]) - 1 - last)


def _first(asked: Sequence[Ints], dense: Sequence[Density], nodes: Sequence[int], codes: Sequence[Ints]) -> Ints:
    """The first box that holds each cell. Boxes are looked at in blocks, and cells that are found are left out."""
    result = np.full(len(asked[0]), -1, dtype=np.int64)
    left = np.arange(len(result))
    for begin in range(0, len(codes[0]), FIRST_WORDS * 64):
        some = [code[begin : begin + FIRST_WORDS * 64] for code in codes]
        bits = [_bits(a, d, n, code) for a, d, n, code in zip(asked, dense, nodes, some, strict=True)]
        for part in np.array_split(left, max(1, len(left) * FIRST_WORDS // CELL_WORDS)):
            here = bits[0][asked[0][part]]
            for column in range(1, len(bits)):
                here &= bits[column][asked[column][part]]
            word = (here != 0).argmax(axis=1)
            held = here[np.arange(len(part)), word]
            row = np.flatnonzero(held)
            lowest = held[row] & (~held[row] + _BIT)
            result[part[row]] = begin + word[row] * 64 + np.log2(lowest.astype(np.float64)).astype(np.int64)
        left = left[result[left] < 0]
    return result


def listed(cover: Cover, column: str, nodes: Ints) -> Sets:
    """The cover, known at these nodes, with all its values named: whole numbers and masked texts are counted out."""
    cover.require_known(nodes, column, "has no joint table")
    spanned = ~np.isnan(cover.low)
    if spanned.any() and not cover.whole:
        raise InputError(f'column "{column}" has no exact values to list: its cells are intervals of fractions',
                         do="ask count() for a range of it")  # fmt: skip
    hidden = [0 if mask is None else mask.count("*") for mask in cover.masks or ()]
    size = int((cover.high - cover.low + 1)[spanned].sum()) + sum(len(cover.letters) ** n for n in hidden if n)
    if size > LARGEST:
        raise InputError(f'column "{column}": its cells hold {size:,} values, more than {LARGEST:,}', do="ask count()")
    found: list[tuple[int, pa.Array]] = []
    for node in np.flatnonzero(spanned).tolist():
        numbers = np.arange(cover.low[node], cover.high[node] + 1)
        found.append((node, typed(numbers, cover.kind, whole=True).cast(cover.type)))
    for node, mask in enumerate(cover.masks or ()):
        if mask is not None:
            texts = product(*(cover.letters if sign == "*" else sign for sign in mask))
            found.append((node, pa.array(["".join(text) for text in texts], pa.string())))
    if cover.missing is not None:
        found.append((cover.missing, pa.nulls(1, cover.type)))
    return _with(cover, found)


def _with(cover: Cover, found: Sequence[tuple[int, pa.Array]]) -> Sets:
    """The cover's known values and these, which are equally likely in their nodes."""
    known = pa.array([], cover.type) if cover.values is None else cover.values.cast(cover.type)
    sizes = np.array([len(values) for _, values in found], dtype=np.int64)
    encoded = pa.concat_arrays([known, *(values for _, values in found)]).dictionary_encode("encode")
    number = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    node = owners(np.diff(cover.start))
    node = np.concatenate([node, np.repeat(np.array([n for n, _ in found], dtype=np.int64), sizes)])
    member = np.concatenate([number[cover.member], number[len(known) :]])
    share = np.concatenate([cover.share, np.repeat(1 / np.maximum(sizes, 1), sizes)])
    order, start = sorted_by(node, cover.nodes)
    return Sets(encoded.dictionary, start, member[order], share[order])


def joint_table(names: Sequence[str], sets: Sequence[Sets], codes: Sequence[Ints], mass: Floats) -> pa.Table:
    """The cells that boxes hold and their counts, in the order of their values' numbers."""
    shape = [len(one.values) for one in sets]
    spread = np.prod([one.size[code].astype(np.float64) for one, code in zip(sets, codes, strict=True)], axis=0).sum()
    if spread <= LARGEST:
        cells, counts = _spread(sets, codes, mass)
    elif math.prod(shape) <= LARGEST and math.prod(max(len(s.size), len(s.values)) for s in sets) <= 4 * LARGEST:
        cells, counts = _contracted(sets, codes, mass)
    else:
        most = min(math.prod(shape), int(spread))
        raise InputError(f"the joint table has up to {most:,} cells, more than {LARGEST:,}", do="name fewer columns")
    kept = counts > 0
    data = {n: s.values.take(pa.array(cell[kept])) for n, s, cell in zip(names, sets, cells, strict=True)}
    return pa.table([*data.values(), pa.array(counts[kept])], names=[*names, free_name("count", names)])


def _spread(sets: Sequence[Sets], codes: Sequence[Ints], mass: Floats) -> tuple[list[Ints], Floats]:
    """Each box's cells written out, equal ones added up."""
    box, counts, cells = np.arange(len(mass)), mass, list[Ints]()
    for one, code in zip(sets, codes, strict=True):
        size, at = runs_of(one.start, code[box])
        counts = np.repeat(counts, size) * one.share[at]
        box = np.repeat(box, size)
        cells = [*(np.repeat(cell, size) for cell in cells), one.member[at]]
    number, first = combine([(cell, len(one.values)) for cell, one in zip(cells, sets, strict=True)], len(box))
    return [cell[first] for cell in cells], added(number, counts, len(first))


def _contracted(sets: Sequence[Sets], codes: Sequence[Ints], mass: Floats) -> tuple[list[Ints], Floats]:
    """The masses as an array over nodes, turned column by column into one over values."""
    key = np.ravel_multi_index(tuple(codes), tuple(len(one.size) for one in sets))
    array = added(key, mass, math.prod(len(one.size) for one in sets)).reshape([len(one.size) for one in sets])
    for one in sets:
        share = np.zeros((len(one.size), len(one.values)))
        share[one.node, one.member] = one.share
        array = np.tensordot(array, share, axes=([0], [0]))
    return [np.asarray(i) for i in np.unravel_index(np.arange(array.size), array.shape)], array.reshape(-1)
