"""Generalized releases: one table in which quasi-identifiers are shown at a level of their hierarchies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding import values as v
from jali.encoding.frequencies import combine
from jali.encoding.table import Table
from jali.estimates.cover import Cover
from jali.errors import InfeasibleError, InputError, nearest
from jali.principles.base import Combined, Principle, exact, hold, principles_of
from jali.principles.counts import Counts, Ints, Sensitive
from jali.progress import Step, watched
from jali.releases.base import Manifest, Release, fresh_order
from jali.releases.published import Published, cover_of, publish_exact, publish_quasi
from jali.search.groups import Partition
from jali.search.lattice import Lattice, Node
from jali.search.metrics import Costing, Metric

Requirement = Principle | Combined | Iterable[Principle | Combined]
WEIGHT_DIGITS = 6


class Generalized(Release):
    """A table with generalized quasi-identifiers and exact sensitive values, in random order."""

    kind: ClassVar[str] = "generalized"

    def __init__(
        self, columns: tuple[Published, ...], manifest: Manifest, *, weight: NDArray[np.float64] | None = None,
        weight_name: str | None = None, people: pa.Table | None = None, origin: str = "arrow",
    ) -> None:  # fmt: skip
        self.columns, self.manifest, self.origin = columns, manifest, origin
        self.weight, self.weight_name = weight, weight_name
        self.people = people  # people by group and value, where a person can have several rows
        self.rows = len(columns[0].codes)

    def of_role(self, role: str) -> tuple[Published, ...]:
        """The columns of a role."""
        return tuple(column for column in self.columns if column.role == role)

    @property
    def levels(self) -> dict[str, int]:
        """The published level of each quasi-identifier."""
        return {column.name: column.level for column in self.of_role("quasi")}

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The published table, and the counts of people beside it where a person can have several rows."""
        data = {column.name: column.shown() for column in self.columns}
        if self.weight is not None and self.weight_name is not None:
            data[self.weight_name] = pa.array(self.weight)
        tables = {"data": pa.table(data)}
        if self.people is not None:
            tables["people"] = self.people
        return tables

    @cached_property
    def _group(self) -> tuple[NDArray[np.int32], Ints]:
        """The group of each row, numbered in published order, and one row of each group."""
        number, first = combine([(c.codes, len(c.labels)) for c in self.of_role("quasi")], self.rows)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return rank[number], first[order]

    @property
    def groups(self) -> pa.Table:
        """The published groups: what each shows and how many rows it has."""
        number, first = self._group
        shown = {c.name: c.labels.take(pa.array(c.codes[first])) for c in self.of_role("quasi")}
        return pa.table(shown | {"rows": np.bincount(number)})

    def counts(self) -> Counts:
        """People by published group and sensitive value."""
        if self.people is not None:
            return _people_counts(self)
        number, first = self._group
        sensitive = self.of_role("sensitive")
        codes = [(c.judged[1][c.codes], len(c.judged[0])) for c in sensitive if c.judged is not None]
        value, value_first = combine(codes, self.rows)
        joint = np.stack([c[value_first] for c, _ in codes], axis=1) if codes else np.zeros((1, 0), dtype=np.int64)
        entry, entry_first = combine([(number, len(first)), (value, len(joint))], self.rows)
        return Counts(
            len(first),
            number[entry_first].astype(np.int64),
            value[entry_first].astype(np.int64),
            np.bincount(entry).astype(np.int64),
            tuple(c.judged[0] for c in sensitive if c.judged is not None),
            joint.astype(np.int64),
        )

    def estimate(self) -> Any:
        """What an analyst can infer from the published table."""
        from jali.estimates.boxes import BoxEstimate

        return BoxEstimate.of(self)

    def columns_facts(self) -> list[dict[str, Any]]:
        """What the manifest says of each column."""
        return [_facts(column) for column in self.columns] + (
            [{"name": self.weight_name, "role": "weights", "kind": "number"}] if self.weight_name else []
        )

    @classmethod
    def from_tables(cls, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any]) -> Generalized:
        """The release that was saved as these tables."""
        data = tables["data"]
        columns, weight, weight_name = [], None, None
        for facts in manifest["columns"]:
            if facts["role"] == "weights":
                weight_name = facts["name"]
                texts = data[weight_name].cast(pa.string()).combine_chunks()
                weight = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
                continue
            columns.append(_restored(facts, data[facts["name"]]))
        people = tables.get("people")
        if people is not None:
            people = pa.table({n: people[n].cast(pa.string()) for n in people.column_names})
        return cls(tuple(columns), Manifest.from_dict(manifest), weight=weight, weight_name=weight_name, people=people)

    def __repr__(self) -> str:
        from jali.releases.summary import summary

        return summary(self)


def _facts(column: Published) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": column.name, "role": column.role, "kind": column.kind}
    if column.role == "quasi":
        facts |= {"level": column.level, "hierarchy": column.facts}
    if column.judged is not None:
        judged = column.judged[0]
        facts |= {
            "ordered": judged.ordered,
            "judged_values": list(judged.labels),
            "judged_tree": [level.tolist() for level in judged.tree],
            "values": column.labels.to_pylist(),
            "judged_as": column.judged[1].tolist(),
        }
    return facts


def _restored(facts: Mapping[str, Any], column: pa.ChunkedArray) -> Published:
    texts = column.cast(pa.string()) if not pa.types.is_dictionary(column.type) else column
    encoded = texts.unify_dictionaries() if pa.types.is_dictionary(column.type) else texts.dictionary_encode()
    array = encoded.combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    labels, indices = array.dictionary, array.indices
    if indices.null_count:
        labels = pa.concat_arrays([labels, pa.nulls(1, pa.string())])
        indices = indices.fill_null(len(labels) - 1)
    codes = indices.to_numpy(zero_copy_only=False)
    if facts["role"] == "quasi":
        hierarchy = facts["hierarchy"]
        shown = hierarchy["levels"][0]["labels"]
        top = len(hierarchy["levels"]) == 1
        texts_list = labels.to_pylist()
        root = texts_list.index("*") if "*" in texts_list and (top or "*" not in shown) else None
        cover = cover_of(hierarchy, labels, root, facts["kind"])
        return Published(facts["name"], "quasi", facts["kind"], labels, codes, cover, facts["level"], hierarchy)
    cover = Cover(v.as_kind(facts["name"], labels, facts["kind"]), np.arange(len(labels), dtype=np.int64))
    judged = None
    if facts["role"] == "sensitive":
        tree = tuple(np.asarray(level, dtype=np.int64) for level in facts["judged_tree"])
        sensitive = Sensitive(facts["name"], tuple(facts["judged_values"]), facts["ordered"], tree)
        number = dict(zip(facts["values"], facts["judged_as"], strict=True))
        judged = (sensitive, np.array([number[label] for label in labels.to_pylist()], dtype=np.int64))
    return Published(facts["name"], facts["role"], facts["kind"], labels, codes, cover, 0, None, judged)
