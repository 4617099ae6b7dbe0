"""A published column: what its cells say, and what an analyst may know that they cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT, Hierarchy
from jali.encoding.table import Column, Role
from jali.errors import InputError
from jali.principles.counts import Sensitive
from jali.releases.covers import cover_of, display_cover
from jali.releases.pdf import require_same_words


@dataclass(frozen=True, eq=False)
class Published:
    """One column of a published table: only nodes that occur in it have a label here."""

    name: str
    role: Role
    kind: v.Kind  # of the values before generalization
    labels: pa.Array  # (nodes,) what is shown; null is the missing value
    codes: NDArray[np.integer]  # (rows,) nodes
    cover: Cover
    level: int = 0
    facts: dict[str, Any] | None = None  # the hierarchy's part in the manifest
    judged: tuple[Sensitive, Ints] | None = None  # a sensitive column as judged: its values, and that of each node
    cover_root: int | None = None  # the node that stands for everything: *

    @property
    def generalized_by_group(self) -> bool:
        """Whether each group shows the column in its own way, not the whole table at one level."""
        return self.facts is not None and "display" in self.facts

    def shown(self, order: slice | None = None) -> pa.Array:
        """The cells: numbers and dates where every cell is an exact value, otherwise text."""
        texts = self.labels
        if self.level == 0 and self.kind != "text" and self.cover_root is None and not self.generalized_by_group:
            typed = v.as_kind(self.name, self.labels, self.kind)
            texts = typed if v.texts(typed).equals(texts) else texts  # 1.50 would not come back from a file as it was
        return texts.take(pa.array(self.codes if order is None else self.codes[order]))

    def to_dict(self) -> dict[str, Any]:
        """What the manifest says of the column; `restored` reads it back."""
        facts: dict[str, Any] = {"name": self.name, "role": self.role, "kind": self.kind}
        if self.role == "quasi":
            facts |= {"level": self.level, "hierarchy": self.facts}
        if self.judged is not None:
            judged, of_node = self.judged
            facts |= {
                "ordered": judged.ordered,
                "judged_values": list(judged.labels),
                "judged_tree": [level.tolist() for level in judged.tree],
                "values": self.labels.to_pylist(),
                "judged_as": of_node.tolist(),
            }
        return facts


def _labels_of(hierarchy: Mapping[str, Any]) -> list[str | None]:
    """What the cells of a saved quasi-identifier may say."""
    labels: list[str | None] = hierarchy["labels"] if "display" in hierarchy else hierarchy["levels"][0]["labels"]
    return labels


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
    facts = hierarchy_facts(hierarchy, level, own)
    cover = cover_of(facts, labels, root, column.kind)
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


def restored(facts: Mapping[str, Any], column: pa.ChunkedArray) -> Published:
    """The column that was saved with these facts."""
    name, role, kind = facts["name"], facts["role"], facts["kind"]
    known = _labels_of(facts["hierarchy"]) if role == "quasi" else facts.get("values", [])
    labels, codes = _encoded(column, known)
    if role == "quasi":
        hierarchy = facts["hierarchy"]
        _require_nodes(hierarchy)
        texts = labels.to_pylist()
        if "display" in hierarchy:
            if hierarchy["display"] == "pdf":
                require_same_words(hierarchy)
            stands = hierarchy["display"] == "taxonomy" or hierarchy.get("hidden")
            shown_root = texts.index(ROOT) if stands and ROOT in texts else None
            cover = display_cover(hierarchy, labels, kind)
            return Published(name, role, kind, labels, codes, cover, 0, hierarchy, None, shown_root)
        is_root = ROOT in texts and (len(hierarchy["levels"]) == 1 or ROOT not in hierarchy["levels"][0]["labels"])
        root = texts.index(ROOT) if is_root else None
        cover = cover_of(hierarchy, labels, root, kind)
        return Published(name, role, kind, labels, codes, cover, facts["level"], hierarchy, None, root)
    cover = Cover.exact(v.as_kind(name, labels, kind))
    if role != "sensitive":
        return Published(name, role, kind, labels, codes, cover)
    tree = tuple(np.asarray(level, dtype=np.int64) for level in facts["judged_tree"])
    sensitive = Sensitive(name, tuple(facts["judged_values"]), facts["ordered"], tree)
    number = dict(zip(facts["values"], facts["judged_as"], strict=True))
    of_node = np.array([number[label] for label in labels.to_pylist()], dtype=np.int64)
    if len(of_node) and not 0 <= of_node.min() <= of_node.max() < len(sensitive):
        raise ValueError("a value is judged as one that is not there")
    return Published(name, role, kind, labels, codes, cover, judged=(sensitive, of_node))


def _require_nodes(hierarchy: Mapping[str, Any]) -> None:
    """Raise ValueError where a node of a saved hierarchy is named by no text, or has a member that is no leaf."""
    above = [label for level in hierarchy.get("levels", ()) for label in level["labels"]]
    named = [*above, *hierarchy.get("labels", ()), *hierarchy.get("leaves", ())]
    if not all(name is None or isinstance(name, str) for name in named):
        raise ValueError("a node has a name that is no text")
    members = [member for node in hierarchy.get("members", ()) for member in node]
    if not all(isinstance(member, int) and 0 <= member < len(hierarchy["leaves"]) for member in members):
        raise ValueError("a member of a node is no leaf")
    for key in {"low", "high", "missing"} & set(hierarchy):
        if not isinstance(hierarchy[key], list) or len(hierarchy[key]) != len(hierarchy["labels"]):
            raise ValueError("the nodes do not have a bound each")


def whole_numbers(column: pa.ChunkedArray) -> Ints:
    """A column of whole numbers that was saved; a ValueError where one is missing."""
    if column.null_count:
        raise ValueError("a number is missing")
    found: Ints = column.cast(pa.string()).cast(pa.int64()).to_numpy().astype(np.int64)
    return found


def _encoded(column: pa.ChunkedArray, known: list[str | None]) -> tuple[pa.Array, NDArray[np.integer]]:
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


def hierarchy_facts(hierarchy: Hierarchy, level: int, used: Ints) -> dict[str, Any]:
    """What the manifest says of a hierarchy: nodes at or above the published level, leaves only where declared.

    All of it follows from what is published and from what the caller declared, nothing from suppressed rows.
    """
    levels = []
    for number in range(level, hierarchy.height + 1):
        here = hierarchy.levels[number]
        facts: dict[str, Any] = {"level": number, "labels": here.texts() if number < hierarchy.height else [ROOT]}
        if here.low is not None and here.high is not None:
            facts["low"] = [None if np.isnan(x) else x for x in here.low.tolist()]
            facts["high"] = [None if np.isnan(x) else x for x in here.high.tolist()]
        if number < hierarchy.height:
            facts["parents"] = hierarchy.parents[number].tolist()
        levels.append(facts)
    result: dict[str, Any] = {
        "made_by": _made_by(hierarchy, level),
        "declared": hierarchy.declared,
        "chosen": hierarchy.chosen,
        "whole": hierarchy.whole,
        "levels": levels,
    }
    if hierarchy.declared:
        result["leaves"] = hierarchy.levels[0].texts()
        result["leaf_nodes"] = hierarchy.maps[level].tolist()
        declared = {node for node, label in enumerate(levels[0]["labels"]) if label is not None}
        return trimmed(result, sorted(declared | set(used.tolist())))
    return _without_hints(trimmed(result, used.tolist()))


def _made_by(hierarchy: Hierarchy, level: int) -> str:
    if hierarchy.made_by.startswith("taxonomy"):
        return "taxonomy"  # not the name of somebody's file
    if hierarchy.chosen and level in (0, hierarchy.height) and hierarchy.made_by.startswith("bands"):
        return ""  # widths that jali chose follow the values, and here nothing is shown of them
    return hierarchy.made_by


def trimmed(facts: Mapping[str, Any], kept: list[int]) -> dict[str, Any]:
    """The facts with only these nodes of the published level, and what lies above them.

    A missing value counts as declared only where it is shown.
    """
    levels, at = [], kept
    for here in facts["levels"]:
        here, last = dict(here), "parents" not in here  # noqa: PLW2901  # the caller's facts stay as they are
        at = [0] if last else at
        for key in {"labels", "low", "high"} & set(here):
            here[key] = [here[key][i] for i in at]
        if not last:
            above = sorted({here["parents"][i] for i in at})
            position = {node: i for i, node in enumerate(above)}
            here["parents"] = [position[here["parents"][i]] for i in at]
            at = above
        levels.append(here)
    result = dict(facts) | {"levels": levels}
    if "leaves" in facts:
        position = {node: i for i, node in enumerate([0] if len(levels) == 1 else kept)}
        missing = len(levels) > 1 and None in levels[0]["labels"]
        pairs = zip(facts["leaves"], facts["leaf_nodes"], strict=True)
        leaves = [(leaf, position[node]) for leaf, node in pairs if leaf is not None or missing]
        result |= {"leaves": [leaf for leaf, _ in leaves], "leaf_nodes": [node for _, node in leaves]}
    return result


def _without_hints(facts: dict[str, Any]) -> dict[str, Any]:
    """Without levels whose number or width follows from values that are not shown."""
    *below, root = facts["levels"]
    if facts["chosen"]:  # bands that jali chose are as wide as all values together make them
        below = [here | {"parents": [0] * len(here["labels"])} for here in below[:1]]
    if facts["made_by"] == "mask()":  # there are as many levels as the longest text has letters, shown or not
        steps: list[dict[str, Any]] = []
        for here in below:
            steps = steps[:-1] if steps and steps[-1]["labels"] == here["labels"] else steps
            steps = [*steps, here]
        first = facts["levels"][0]["level"]
        below = [here | {"level": first + step} for step, here in enumerate(steps)]
        root = root | {"level": first + len(steps)}
    return facts | {"levels": [*below, root]}
