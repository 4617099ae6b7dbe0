"""Columns of a marginals release: the levels that some marginal shows, as a chain that the manifest describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT
from jali.encoding.table import Column
from jali.estimates.cover import Cover
from jali.graphical.estimate import MarginalColumn
from jali.graphical.marginal import Attribute
from jali.principles.counts import Ints, Sensitive
from jali.releases.covers import cover_of
from jali.releases.published import Published, hierarchy_facts


@dataclass(frozen=True, eq=False)
class Chain:
    """A column as the marginals show it: its published levels, finest first, and what the finest nodes stand for.

    Only nodes that occur have a number here. A column that no marginal has is a chain without levels.
    """

    name: str
    role: Literal["quasi", "sensitive"]
    kind: v.Kind
    levels: tuple[int, ...]  # as the table numbers them
    labels: tuple[tuple[str | None, ...], ...]  # (levels, nodes)
    parents: tuple[tuple[int, ...], ...]  # parents[i][node of level i] → node of level i + 1
    facts: Mapping[str, Any]  # of the hierarchy below the finest level, or of the sensitive values
    cover: Cover

    @property
    def attribute(self) -> Attribute:
        """The chain for counting. How many values a node covers is the cover's affair: here each counts as one."""
        maps = [np.arange(len(self.labels[0]) if self.labels else 1, dtype=np.int32)]
        for step in self.parents:
            maps.append(np.asarray(step, dtype=np.int32)[maps[-1]])
        nodes = tuple(len(labels) for labels in self.labels)
        sizes = tuple(np.bincount(m, minlength=n).astype(np.int64) for m, n in zip(maps, nodes, strict=False))
        return Attribute(self.name, self.role, tuple(maps[: len(nodes)]), nodes, sizes, max(1, *nodes, 1), len(nodes))

    @property
    def column(self) -> MarginalColumn:
        """The column as an estimate sees it."""
        return MarginalColumn(self.name, self.kind, self.role, self.cover)

    @property
    def published(self) -> Published:
        """The column at its finest published level, without rows; one that no marginal has is always *."""
        labels = pa.array(self.labels[0] if self.labels else [ROOT], pa.string())
        level = self.levels[0] if self.levels else 0
        none = np.zeros(0, dtype=np.int64)
        if self.role == "sensitive":
            judged = self.judged if self.labels else None
            return Published(self.name, "sensitive", self.kind, labels, none, self.cover, judged=judged)
        root = None if self.labels else 0
        return Published(self.name, "quasi", self.kind, labels, none, self.cover, level, dict(self.facts), None, root)

    @property
    def judged(self) -> tuple[Sensitive, Ints]:
        """A sensitive column as principles see it, and the judged value of each node."""
        tree = tuple(np.asarray(level, dtype=np.int64) for level in self.facts["judged_tree"])
        sensitive = Sensitive(self.name, tuple(self.facts["judged_values"]), self.facts["ordered"], tree)
        return sensitive, np.asarray(self.facts["judged_as"], dtype=np.int64)

    def like(self, level: int) -> str:
        """How the column is called at a published level: age; where it has several, exact age, age like [20, 29]."""
        if level == 0:
            return self.name if len(self.levels) == 1 else f"exact {self.name}"
        example = next((text for text in self.labels[self.levels.index(level)] if text), "an empty value")
        return f"{self.name} like {example}"

    def to_dict(self) -> dict[str, Any]:
        """What the manifest says of the column; `chain_of` reads it back."""
        return {
            "name": self.name,
            "role": self.role,
            "kind": self.kind,
            "levels": list(self.levels),
            "labels": [list(labels) for labels in self.labels],
            "parents": [list(step) for step in self.parents],
            "facts": dict(self.facts),
        }


def publish_chain(column: Column, levels: Sequence[int]) -> Chain:
    """The column at the levels that marginals show, from the table's own hierarchy."""
    if column.role == "sensitive":
        return _published_sensitive(column, shown=bool(levels))
    hierarchy = column.hierarchy
    assert hierarchy is not None
    shown = sorted(set(levels))
    used = [np.unique(hierarchy.maps[level][column.codes]) for level in shown]
    labels = [
        hierarchy.levels[n].labels.take(pa.array(nodes)).to_pylist() for n, nodes in zip(shown, used, strict=True)
    ]
    parents = []
    for below, above, nodes, over in zip(shown, shown[1:], used, used[1:], strict=False):
        step = np.zeros(len(hierarchy.levels[below]), dtype=np.int64)
        step[hierarchy.maps[below]] = hierarchy.maps[above]
        parents.append(np.searchsorted(over, step[nodes]).tolist())
    first = shown[0] if shown else hierarchy.height
    own = used[0] if shown else np.zeros(1, dtype=np.int64)
    facts = hierarchy_facts(hierarchy, first, own)
    return chain_of({
        "name": column.name, "role": "quasi", "kind": column.kind, "levels": shown, "labels": labels,
        "parents": parents, "facts": facts,
    })  # fmt: skip


def _published_sensitive(column: Column, *, shown: bool) -> Chain:
    """A sensitive column with the values that occur; of one that no marginal has nothing is told but its name."""
    used = np.flatnonzero(column.present) if shown else np.zeros(0, dtype=np.int64)
    judged, mapping = column.sensitive() if shown else (Sensitive(column.name, ()), used)
    return chain_of({
        "name": column.name, "role": "sensitive", "kind": column.kind, "levels": [0] if shown else [],
        "labels": [column.labels.take(pa.array(used)).to_pylist()] if shown else [], "parents": [],
        "facts": {
            "ordered": judged.ordered, "judged_values": list(judged.labels),
            "judged_tree": [level.tolist() for level in judged.tree], "judged_as": mapping[used].tolist(),
        },
    })  # fmt: skip


def chain_of(told: Mapping[str, Any]) -> Chain:
    """The column that the manifest describes."""
    labels = tuple(tuple(own) for own in told["labels"])
    kind: v.Kind = told["kind"]
    if told["role"] == "sensitive":
        values = pa.array(labels[0], pa.string()) if labels else None
        cover = Cover.unknown(1, kind=kind) if values is None else Cover.exact(v.as_kind(told["name"], values, kind))
    elif labels:
        cover = cover_of(told["facts"], pa.array(labels[0], pa.string()), None, kind)
    else:
        cover = cover_of(told["facts"], pa.array([ROOT], pa.string()), 0, kind)
    parents = tuple(tuple(step) for step in told["parents"])
    levels = tuple(int(level) for level in told["levels"])
    if len(levels) != len(labels) or len(parents) != max(len(levels) - 1, 0):
        raise ValueError("the levels of a column do not fit each other")
    made = Chain(told["name"], told["role"], kind, levels, labels, parents, told["facts"], cover)
    if made.role == "sensitive" and labels:
        judged, of_node = made.judged
        if of_node.shape != (len(labels[0]),) or not bool(((of_node >= 0) & (of_node < len(judged))).all()):
            raise ValueError("a value is judged as one that is not there")
    return made
