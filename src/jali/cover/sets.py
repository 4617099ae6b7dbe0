"""Sets of known values: which members satisfy which tests, judged once for all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, owners, runs_of
from jali.cover.domain import comparable
from jali.query.algebra import Test, holds
from jali.query.match import Part, numbered

_SMALL = 1 << 16  # cells of a table that is quicker to multiply with than to look up


@dataclass(frozen=True, eq=False)
class Sets:
    """Node i is one of the values `member[start[i]:start[i + 1]]`, with the probabilities `share`."""

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
        order = np.argsort(self.member, kind="stable")
        return order, np.searchsorted(self.member[order], np.arange(len(self.values) + 1))

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
        known, asked = comparable(self.values, values)
        index = pc.index_in(asked, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False)
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
