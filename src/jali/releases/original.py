"""The original beside its release: which published node each of its values has, and how to read it again."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from jali.encoding.bands import Bands
from jali.encoding.builder import Builder
from jali.encoding.builders import Automatic, Dates, Mask, Suppress
from jali.encoding.hierarchy import Hierarchy
from jali.encoding.table import Column
from jali.encoding.taxonomy import Taxonomy
from jali.errors import InputError
from jali.principles.counts import Ints
from jali.releases.generalized import Generalized
from jali.releases.published import Published


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
    if not labels and published.facts is not None and len(published.facts["levels"]) == 1:
        return hierarchy.height
    order = sorted(range(hierarchy.height + 1), key=lambda level: (level != published.level, level))
    for level in order:
        if set(labels) <= set(hierarchy.levels[level].texts()):
            return level
    raise InputError(
        f'the values of column "{hierarchy.column}" in the release are not those of this table',
        do="use the table that the release was made from, with the same hierarchies",
    )


def builders(release: Generalized) -> dict[str, Builder]:
    """Hierarchies for reading the original again, from what the manifest says of them."""
    return {column.name: _builder(column) for column in release.of_role("quasi")}


def _builder(column: Published) -> Builder:
    facts = column.facts
    assert facts is not None
    made_by = str(facts["made_by"])
    if made_by.startswith("bands("):
        return Bands(*_bands_arguments(made_by))
    if made_by == "mask()":
        return Mask()
    if made_by == "dates()":
        return Dates()
    if facts["declared"]:
        return _taxonomy(column.name, facts)
    return Suppress() if made_by == "suppress()" else Automatic()


def _bands_arguments(made_by: str) -> tuple[Any, ...]:
    call = ast.parse(made_by, mode="eval").body
    assert isinstance(call, ast.Call)
    named = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    widths = tuple(ast.literal_eval(argument) for argument in call.args)
    return widths, named.get("origin", 0), named.get("low"), named.get("high")


def _taxonomy(name: str, facts: Mapping[str, Any]) -> Taxonomy:
    """Leaves and the published level with all above it; finer levels were not published."""
    rows = []
    for leaf, node in zip(facts["leaves"], facts["leaf_nodes"], strict=True):
        if leaf is None:
            continue
        row, at = [leaf], node
        for level in facts["levels"]:
            if level["level"] > 0:
                row.append(level["labels"][at])
            at = level["parents"][at] if "parents" in level else 0
        rows.append(tuple("" if text is None else text for text in row))
    return Taxonomy(tuple(rows), name)
