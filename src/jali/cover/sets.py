"""Known values of a column, made comparable, and sets of them: which members satisfy which tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, owners, runs_of, sorted_by
from jali.encoding import values as v
from jali.errors import InputError
from jali.query.match import Part, holds, numbered
from jali.query.tree import Test

_SMALL = 1 << 16  # cells of a table that is quicker to multiply with than to look up


def require(truth: bool, what: str) -> None:
    """Refuse a cover that is not well formed."""
    if not truth:
        raise InputError(f"cover: {what} is not what a cover needs", do="see the fields of Cover")


def clean(values: pa.Array) -> pa.Array:
    """Known values: plain, distinct, at most one missing (NaN is missing)."""
    values = plain(values)
    if len(pc.unique(values)) != len(values):
        raise InputError("cover: a known value stands twice", do="give each value once, and the missing one as null")
    return values


def plain(values: pa.Array) -> pa.Array:
    """Values without the encodings that frames use: no dictionary, one kind of text, missing instead of NaN."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        return plain(plain(values.dictionary).take(values.indices))
    if pa.types.is_null(values.type) or pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.string())
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return values


def as_kind(column: str, values: pa.Array, kind: v.Kind | None) -> pa.Array:
    """Exact values that somebody asks about, as the kind that the column has."""
    values = plain(values)
    if kind is None or v.kind_of(values) == kind:
        return values
    if values.null_count == len(values):
        return pa.nulls(len(values), type_of(kind, whole=True))
    try:
        return v.as_kind(column, values, kind)
    except InputError:
        raise InputError(f'column "{column}" holds values of kind {kind}', got=v.kind_of(values)) from None


def index_among(known: pa.Array, asked: pa.Array) -> Ints:
    """Where each asked value stands among the known ones, both as one type; -1 where it does not."""
    kind = joint_type([known.type, asked.type])
    found = pc.index_in(asked.cast(kind, safe=False), value_set=known.cast(kind, safe=False))
    return cast(Ints, found.fill_null(-1).to_numpy(zero_copy_only=False))


def joint_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type that holds values of all these types of one kind."""
    if all(one == types[0] for one in types):
        return types[0]
    if all(pa.types.is_integer(one) for one in types):
        return pa.int64()
    if any(pa.types.is_timestamp(one) or pa.types.is_date(one) for one in types):
        return pa.timestamp("us", next((one.tz for one in types if pa.types.is_timestamp(one)), None))
    if any(pa.types.is_floating(one) or pa.types.is_decimal(one) for one in types):
        return pa.float64()
    return pa.string()


def type_of(kind: v.Kind | None, *, whole: bool) -> pa.DataType:
    """How values of a kind are held when no known value says it."""
    if kind == "number":
        return pa.int64() if whole else pa.float64()
    if kind == "date":
        return pa.date32() if whole else pa.timestamp("us")
    return pa.bool_() if kind == "boolean" else pa.string()


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of known values, each value judged once for all nodes.

    Node i is one of the values `member[start[i]:start[i + 1]]`, with the probabilities `share`.
    """

    values: pa.Array
    start: Ints  # (nodes + 1,)
    member: Ints  # (members,)
    share: Floats  # (members,)

    @cached_property
    def size(self) -> Ints:
        """How many members each node has: (nodes,)."""
        return cast(Ints, np.diff(self.start))

    @cached_property
    def node(self) -> Ints:
        """The node of each member: (members,)."""
        return owners(self.size)

    @cached_property
    def even(self) -> bool:
        """Whether the members of each node are equally likely."""
        return bool(np.allclose(self.share, (1 / np.maximum(self.size, 1))[self.node], rtol=1e-12, atol=0))

    @cached_property
    def _by_value(self) -> tuple[Ints, Ints]:
        """The members in the order of their values, and where each value's begin."""
        return sorted_by(self.member, len(self.values))

    @cached_property
    def _present(self) -> tuple[Ints, Any]:
        """Where the values are not missing, and these as what `holds` reads fastest."""
        present = self.values.drop_null()
        plain = pa.types.is_integer(present.type) or pa.types.is_floating(present.type)
        where = np.flatnonzero(self.values.is_valid().to_numpy(zero_copy_only=False))
        return where, present.to_numpy(zero_copy_only=False) if plain else present.to_pylist()

    @cached_property
    def _texts(self) -> dict[str, int] | None:
        """Where each text stands, if the values are texts."""
        if not pa.types.is_string(self.values.type) or self.values.null_count == len(self.values):
            return None
        return {text: at for at, text in enumerate(self.values.to_pylist()) if text is not None}

    def truth(self, test: Test) -> Bools:
        """Which of the values satisfy the test: (values,)."""
        truth = np.full(len(self.values), test.op == "null")
        wanted = (test.value,) if test.op == "=" else test.value if test.op == "in" else None
        if self._texts is not None and isinstance(wanted, (tuple, frozenset)) and {*map(type, wanted)} == {str}:
            truth[[self._texts[text] for text in wanted if text in self._texts]] = True  # as `holds` says, but quicker
            return truth
        where, present = self._present
        truth[where] = holds(test, present)
        return truth

    @cached_property
    def _counted(self) -> Floats | None:
        """Whether each value is in each node, where that table is small: (values, nodes)."""
        if len(self.size) * len(self.values) > _SMALL:
            return None
        counted = np.zeros((len(self.values), len(self.size)))
        counted[self.member, self.node] = 1
        return counted

    def counts(self, truth: Bools) -> Floats:
        """How many members of each node are among the given values: (nodes,)."""
        if self._counted is not None:
            found: Floats = truth.astype(np.float64) @ self._counted
            return found
        return added(self.node, truth[self.member].astype(np.float64), len(self.size))

    def shares(self, truth: Bools) -> Floats:
        """The share of each node that the given values have: (nodes,)."""
        return added(self.node, self.share * truth[self.member], len(self.size))

    def part(self, tests: Sequence[Test], nodes: Ints) -> Part:
        """The patterns on these nodes: each value is judged once, then counted in the nodes that hold it."""
        truth = np.zeros((len(self.values), len(tests)), dtype=np.bool_)
        for column, test in enumerate(tests):
            truth[:, column] = self.truth(test)
        number, first = numbered(truth)
        key = self.node * len(first) + number[self.member]
        shape = (len(self.size), len(first))
        counts = np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape)
        share = counts / np.maximum(self.size, 1)[:, None]
        if not self.even:
            share = added(key, self.share, shape[0] * shape[1]).reshape(shape)
        return Part(nodes, truth[first], share[nodes].T, counts[nodes].T > 0)

    def density(self, values: pa.Array) -> tuple[Ints, Ints, Floats]:
        """Which nodes hold which values, and how likely each is there."""
        index = index_among(self.values, values)
        value = np.flatnonzero(index >= 0)
        order, begin = self._by_value
        size, at = runs_of(begin, index[value])
        at = order[at]
        return np.repeat(value, size), self.node[at], self.share[at]

    def draw(self, nodes: NDArray[np.integer], random: np.random.Generator) -> pa.Array:
        """One member of each given node."""
        begin, size = self.start[nodes], self.size[nodes]
        if self.even:
            at = begin + (random.random(len(nodes)) * size).astype(np.int64)
        else:
            upto = np.concatenate([[0.0], np.cumsum(self.share)])
            wanted = upto[begin] + random.random(len(nodes)) * (upto[begin + size] - upto[begin])
            at = np.clip(np.searchsorted(upto, wanted, side="right") - 1, begin, begin + size - 1)
        return self.values.take(pa.array(self.member[at]))
