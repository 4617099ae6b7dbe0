"""A published column: what its cells say, and what an analyst may know that they cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Ints, added, combine, narrowed, starts
from jali.core.rows import Order
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT, Hierarchy
from jali.encoding.table import Column, Domain, Role
from jali.errors import InputError
from jali.principles.counts import Sensitive
from jali.releases.facts import LevelFacts
from jali.releases.group_facts import GroupFacts, IntervalFacts, NodeFacts, SetFacts
from jali.releases.pdf import PdfFacts

Judged = tuple[Sensitive, Ints]
"""A sensitive column as principles see it, and the judged value of each node."""


@dataclass(frozen=True, eq=False)
class Published:
    """One column of a published table: only nodes that occur in it have a label here."""

    name: str
    role: Role
    kind: v.Kind  # of the values before generalization
    labels: pa.Array  # (nodes,) what is shown; null is the missing value
    held: NDArray[np.integer]  # (rows that are held,) nodes; these are distinct rows where there is an order
    cover: Cover
    level: int = 0
    facts: LevelFacts | GroupFacts | None = None  # what is said of a quasi-identifier
    judged: Judged | None = None  # a sensitive column as judged: its values, and that of each node
    cover_root: int | None = None  # the node that stands for everything: *
    order: Order | None = None  # of the published rows; None where each of them is held

    @cached_property
    def codes(self) -> NDArray[np.integer]:
        """The node of each published row, in published order: (rows,)."""
        return self.held if self.order is None else self.held[self.order.of]

    @property
    def rows_by_node(self) -> NDArray[np.float64]:
        """How many published rows show each node: (nodes,)."""
        return added(self.held, None if self.order is None else self.order.numbers, len(self.labels))

    def with_codes(self, codes: NDArray[np.integer]) -> Published:
        """The column with these nodes, one for each row."""
        return replace(self, held=codes, order=None)

    @property
    def generalized_by_group(self) -> bool:
        """Whether each group shows the column in its own way, not the whole table at one level."""
        return isinstance(self.facts, GroupFacts)

    @property
    def distributions(self) -> PdfFacts | None:
        """The facts of a column whose cells show distributions; None for every other column."""
        return self.facts if isinstance(self.facts, PdfFacts) else None

    @property
    def texts(self) -> pa.Array:
        """What each node shows: numbers and dates where every cell is an exact value, otherwise text."""
        texts = self.labels
        if self.level == 0 and self.kind != "text" and self.cover_root is None and not self.generalized_by_group:
            typed = v.as_kind(self.name, self.labels, self.kind)
            texts = typed if v.texts(typed).equals(texts) else texts  # 1.50 would not come back from a file as it was
        return texts

    def shown(self) -> pa.Array:
        """The cell of each published row, in published order."""
        return self.texts.take(pa.array(self.codes))

    def to_dict(self) -> dict[str, Any]:
        """What the manifest says of the column; `restored` reads it back."""
        told: dict[str, Any] = {"name": self.name, "role": self.role, "kind": self.kind}
        if self.role == "quasi":
            told |= {"level": self.level, "hierarchy": None if self.facts is None else self.facts.to_dict()}
        if self.judged is not None:
            sensitive, of_node = self.judged
            told |= judged_dict(sensitive) | {"values": self.labels.to_pylist(), "judged_as": of_node.tolist()}
        return told


def shown_alike(
    columns: Sequence[Published], held: Sequence[NDArray[np.integer]], *more: NDArray[Any]
) -> tuple[NDArray[np.int32], Ints]:
    """The distinct row of each record, numbered by what is shown and by `more` numbers, and a record of each."""
    keys = []
    for column, codes in zip(columns, held, strict=True):
        rank = np.empty(len(column.labels), dtype=np.int32)
        rank[pc.array_sort_indices(column.labels).to_numpy()] = np.arange(len(rank), dtype=np.int32)
        keys.append((narrowed(rank)[codes], len(rank)))
    for numbers in more:
        known, at = np.unique(numbers, return_inverse=True)
        keys.append((at.reshape(-1), len(known)))
    return combine(keys, len(held[0]))


def compact(codes: NDArray[np.integer], nodes: int) -> tuple[NDArray[np.integer], Ints]:
    """Codes renumbered over the nodes that occur, and those nodes: what does not occur leaves no trace."""
    used = np.flatnonzero(np.bincount(codes, minlength=nodes))
    renumber = np.zeros(nodes, dtype=np.int32)
    renumber[used] = np.arange(len(used), dtype=np.int32)
    small = np.uint8 if len(used) <= 2**8 else np.uint16 if len(used) <= 2**16 else np.int32
    return renumber[codes].astype(small), used


def publish_quasi(column: Column, level: int, hidden: NDArray[np.bool_] | None) -> Published:
    """A quasi-identifier at a level of its hierarchy; hidden records show the root."""
    hierarchy = column.hierarchy
    assert hierarchy is not None
    nodes = hierarchy.maps[level][column.codes]
    count = len(hierarchy.levels[level])
    if hidden is not None and hidden.any() and level < hierarchy.height:
        nodes = np.where(hidden, count, nodes)
        count += 1
    codes, used = compact(nodes, count)
    own = used[used < len(hierarchy.levels[level])]
    labels = hierarchy.levels[level].labels.take(pa.array(own))
    root = None
    if len(own) < len(used):
        if ROOT in labels.to_pylist():
            raise InputError(
                f'column "{column.name}" shows a value as {ROOT}, just like the suppressed rows',
                do="replace it in the table (a missing value is an empty cell), or do not suppress",
            )
        labels = pa.concat_arrays([labels, pa.array([ROOT], pa.string())])
        root = len(own)
    elif level == hierarchy.height:
        root = 0
        labels = pa.array([ROOT], pa.string())
    facts = LevelFacts.of(hierarchy, level, own)
    cover = facts.cover(labels, root, column.kind)
    return Published(column.name, "quasi", column.kind, labels, codes, cover, level, facts, None, root)


def publish_exact(column: Column) -> Published:
    """A sensitive or other column, as it is."""
    codes, used = compact(column.codes, len(column.values))
    labels = column.labels.take(pa.array(used))
    judged = None
    if column.role == "sensitive":
        sensitive, mapping = column.sensitive()
        judged = (sensitive, mapping[used])
    values = column.values.take(pa.array(used))
    cover = Cover.exact(values)
    return Published(column.name, column.role, column.kind, labels, codes, cover, 0, None, judged)


def restored(told: Mapping[str, Any], column: pa.ChunkedArray) -> Published:
    """The column that was saved, and of which the manifest says this; a ValueError for a role that no column has."""
    name, role, kind = told["name"], told["role"], told["kind"]
    if role not in get_args(Role):
        raise ValueError("a column has a role that nobody knows")
    if role == "quasi":
        facts = facts_of(told["hierarchy"])
        labels, codes = _encoded(column, facts.cells)
        root = facts.root(labels.to_pylist())
        level = told["level"] if isinstance(facts, LevelFacts) else 0
        return Published(name, role, kind, labels, codes, facts.cover(labels, root, kind), level, facts, None, root)
    labels, codes = _encoded(column, told.get("values", []))
    cover = Cover.exact(v.as_kind(name, labels, kind))
    if role != "sensitive":
        return Published(name, role, kind, labels, codes, cover)
    number = dict(zip(told["values"], told["judged_as"], strict=True))
    judged = judged_of(name, told, [number[label] for label in labels.to_pylist()])
    return Published(name, role, kind, labels, codes, cover, judged=judged)


def facts_of(told: Mapping[str, Any]) -> LevelFacts | GroupFacts:
    """What a manifest says of a quasi-identifier; a ValueError, KeyError or TypeError for nonsense."""
    if "display" not in told:
        return LevelFacts.from_dict(told)
    kinds: dict[str, type[NodeFacts | IntervalFacts | SetFacts]]
    kinds = {kind.display: kind for kind in (NodeFacts, IntervalFacts, SetFacts, PdfFacts)}
    return kinds[told["display"]].from_dict(told)


def judged_dict(sensitive: Sensitive) -> dict[str, Any]:
    """What the manifest says of the values that a sensitive column is judged by."""
    missing = {"missing_is_value": sensitive.unknown is None} if None in sensitive.labels else {}
    return {
        "ordered": sensitive.ordered,
        "judged_values": list(sensitive.labels),
        "judged_tree": [level.tolist() for level in sensitive.tree],
        **missing,
    }


def judged_of(name: str, told: Mapping[str, Any], of_node: Sequence[int]) -> Judged:
    """The judged values in a manifest, and that of each node; a ValueError where a node's value is not among them."""
    tree = tuple(np.asarray(level, dtype=np.int64) for level in told["judged_tree"])
    labels = tuple(told["judged_values"])
    unknown = labels.index(None) if told.get("missing_is_value", True) is False else None
    sensitive = Sensitive(name, labels, told["ordered"], tree, unknown)
    node = np.asarray(of_node, dtype=np.int64)
    if node.ndim != 1 or not bool(((node >= 0) & (node < len(sensitive))).all()):
        raise ValueError("a value is judged as one that is not there")
    return sensitive, node


def whole_numbers(column: pa.ChunkedArray) -> Ints:
    """A column of whole numbers that was saved; a ValueError where one is missing."""
    if column.null_count:
        raise ValueError("a number is missing")
    known = column if pa.types.is_integer(column.type) else column.cast(pa.string())  # a dictionary, perhaps
    found: Ints = known.cast(pa.int64()).to_numpy()
    return found


def _encoded(column: pa.ChunkedArray, known: Sequence[str | None]) -> tuple[pa.Array, NDArray[np.integer]]:
    """The distinct texts of a column in the order of the known ones, and the code of each row."""
    if not pa.types.is_dictionary(column.type):
        column = v.texts(column.combine_chunks()) if column.num_chunks else column.cast(pa.string())
        column = pa.chunked_array([column]).dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    labels, indices = array.dictionary, array.indices
    if indices.null_count:
        labels = pa.concat_arrays([labels, pa.nulls(1, pa.string())])
        indices = indices.fill_null(len(labels) - 1)
    place = {text: i for i, text in enumerate(known)}
    order = np.argsort([place.get(text, len(place)) for text in labels.to_pylist()], kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return labels.take(pa.array(order)), rank[indices.to_numpy(zero_copy_only=False)].astype(np.int32)


# What the cells are for the holder of the table.


def holder_sets(published: Published, column: Column) -> tuple[Ints, Ints]:
    """Which values of the holder's column each shown node covers: (nodes + 1,) starts and members."""
    facts = published.facts
    assert isinstance(facts, GroupFacts)
    covered, every = facts.covered(column), np.arange(len(column.values))
    members = [every if node < 0 else covered(node) for node in facts.nodes_of(published.labels.to_pylist())]
    start = starts([len(m) for m in members])
    return start, np.concatenate(members).astype(np.int64)


def node_numbers(published: Published, column: Column) -> Ints:
    """The published node of each value of the holder's column; -1 for a value that only * covers: (values,)."""
    hierarchy = column.hierarchy
    if hierarchy is None:
        raise InputError(f'column "{column.name}" is not a quasi-identifier of this table')
    labels = {label: node for node, label in enumerate(published.labels.to_pylist()) if node != published.cover_root}
    level = _level(hierarchy, published, labels)
    nodes = np.array([labels.get(label, -1) for label in hierarchy.levels[level].texts()], dtype=np.int64)
    if level == hierarchy.height and published.cover_root is not None:
        nodes[:] = published.cover_root
    return nodes[hierarchy.maps[level]]


def _level(hierarchy: Hierarchy, published: Published, labels: Mapping[str | None, int]) -> int:
    """The level whose nodes carry the published labels: the same number, unless finer levels were not kept."""
    if not labels and isinstance(published.facts, LevelFacts) and published.facts.always_root:
        return hierarchy.height
    order = sorted(range(hierarchy.height + 1), key=lambda level: (level != published.level, level))
    for level in order:
        if set(labels) <= set(hierarchy.levels[level].texts()):
            return level
    raise InputError(
        f'the values of column "{hierarchy.column}" in the release are not those of this table',
        do="use the table that the release was made from, with the same hierarchies",
    )


def holder_cover(published: Published, column: Column, domain: Domain) -> Cover:
    """What each shown cell covers, for the holder of the table, who knows every value and its hierarchy."""
    mask = column.mask(domain)
    values = column.values.filter(pa.array(mask))
    if published.distributions is not None:
        return published.distributions.holder_cover(published.labels, column, np.flatnonzero(mask))
    if published.generalized_by_group:
        start, member = holder_sets(published, column)
        rank = np.cumsum(mask) - 1
        kept = mask[member]
        before = starts(kept)
        return Cover.sets(values, before[start].astype(np.int64), rank[member[kept]].astype(np.int64))
    nodes = node_numbers(published, column)
    nodes = np.where(nodes == published.cover_root, -1, nodes) if published.cover_root is not None else nodes
    return Cover.grouped(values, nodes[mask], len(published.labels), root=published.cover_root)
