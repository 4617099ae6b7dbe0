"""How a group's values are shown: the smallest taxonomy node that covers them, their interval, set or distribution."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT, Hierarchy
from jali.encoding.table import Column, Table
from jali.errors import InputError, nearest, one_of, told
from jali.principles.counts import distinct_pairs
from jali.releases.column import Published, compact
from jali.releases.facts import Bounds
from jali.releases.group_facts import GroupFacts, IntervalFacts, NodeFacts, SetFacts
from jali.releases.pdf import MISSING, Shift, bases, group_weights, levels_of, pdf_facts, tallies
from jali.search.common import Partition
from jali.search.items import under_taxonomy

Show = Literal["taxonomy", "interval", "set", "pdf"]
SHOWS: tuple[Show, ...] = ("taxonomy", "interval", "set", "pdf")


def shows_of(
    columns: tuple[Column, ...], show: Show | Mapping[str, Show] | None, *, default: Show | None = None
) -> dict[str, Show]:
    """How each quasi-identifier is shown: as asked, else numbers as intervals, words by their taxonomy or as sets."""
    names = [column.name for column in columns]
    asked: dict[str, Show] = (
        dict(show) if isinstance(show, Mapping) else {} if show is None else dict.fromkeys(names, show)
    )
    for name, kind in asked.items():
        if not one_of(name, names):
            raise InputError(f'show: no quasi-identifier "{name}"', do=nearest(name, names))
        if not one_of(kind, SHOWS):
            raise InputError(f'no display "{told(kind)}"', do=nearest(kind, SHOWS))
    result = {}
    for column in columns:
        chosen = asked.get(column.name) or default or _default(column)
        if chosen == "interval" and column.kind not in ("number", "date"):
            if isinstance(show, Mapping):
                raise InputError(f'column "{column.name}" has no intervals', do='show it as "taxonomy" or "set"')
            chosen = default or _default(column)
        result[column.name] = chosen
    return result


def _default(column: Column) -> Show:
    if column.kind in ("number", "date") and not _crossing(column, None):
        return "interval"
    assert column.hierarchy is not None
    return "taxonomy" if column.hierarchy.height > 1 else "set"


class Members(NamedTuple):
    """Who is in each group: the values of some column that it has, each at least once, and the group of each record."""

    codes: Ints  # (members,)
    group: Ints  # (members,)
    groups: int
    records: Ints  # (records,) their groups
    rows: Ints | None = None  # (members,) how many rows each stands for; one where that is not said


def publish_groups(
    column: Column, members: Members, show: Show, *, shift: Shift | None = None, level: int | None = None
) -> Published:
    """A quasi-identifier shown group by group; records of the group -1 are hidden, and show *.

    `level` is that of a lattice node, if the groups are one's. For distributions: how far they are shifted; with a
    level the shift starts from its value.
    """
    hidden = members.records < 0
    if bool(hidden.any()):
        kept = members.group >= 0
        rows = None if members.rows is None else members.rows[kept]
        seen = Members(members.codes[kept], members.group[kept], members.groups, members.records[~hidden], rows)
        return _with_hidden(publish_groups(column, seen, show, shift=shift, level=level), hidden)
    if show == "taxonomy":
        return _taxonomy(column, members)
    if show == "interval":
        return _intervals(column, members, crossing=_crossing(column, level))
    if show == "set":
        return _sets(column, members)
    return _distributions(column, members, shift or Shift(), level)


def _extremes(nodes: Ints, group: Ints, groups: int) -> tuple[Ints, Ints]:
    """The lowest and highest of each group's numbers."""
    low, high = np.full(groups, np.iinfo(np.int64).max), np.full(groups, -1)
    np.minimum.at(low, group, nodes)
    np.maximum.at(high, group, nodes)
    return low, high


def _smallest(hierarchy: Hierarchy, found: Members) -> tuple[Ints, Ints]:
    """The level and number of the smallest node that covers each group."""
    groups = found.groups
    level_of, node_of = np.full(groups, -1), np.zeros(groups, dtype=np.int64)
    for level, mapping in enumerate(hierarchy.maps):
        low, high = _extremes(mapping.astype(np.int64)[found.codes], found.group, groups)
        first = (level_of < 0) & (low == high)
        level_of[first], node_of[first] = level, low[first]
    return level_of, node_of


def _taxonomy(column: Column, found: Members) -> Published:
    hierarchy = column.hierarchy
    assert hierarchy is not None
    level_of, node_of = _smallest(hierarchy, found)
    width = max(len(level) for level in hierarchy.levels)
    keys, number = np.unique(level_of * width + node_of, return_inverse=True)
    nodes = [(int(key) // width, int(key) % width) for key in keys]
    texts = [
        ROOT if level == hierarchy.height else hierarchy.levels[level].labels[node].as_py() for level, node in nodes
    ]
    below = {level: hierarchy.members(level) for level in {level for level, _ in nodes}}
    members = [below[level][node] for level, node in nodes]
    _require_distinct(column.name, texts, members)
    family = None if hierarchy.recipe is None else hierarchy.recipe.family
    facts = NodeFacts(labels=tuple(texts), family=family, whole=hierarchy.whole)
    if hierarchy.declared:
        named = tuple(tuple(m.tolist()) for m in members)
        facts = replace(facts, leaves=tuple(hierarchy.levels[0].texts()), members=named)
    else:
        facts = replace(facts, bounds=_bounds(column, nodes))
    return _published(column, number.astype(np.int64)[found.records], facts)


def _require_distinct(name: str, texts: list[str | None], members: list[Ints]) -> None:
    """A label must not stand for two different sets of values."""
    seen: dict[str | None, Ints] = {}
    for text, covered in zip(texts, members, strict=True):
        if text in seen and not np.array_equal(seen[text], covered):
            raise InputError(
                f'the hierarchy of "{name}" uses one label for different values at different levels',
                do='rename the label on one level, or show="set"',
            )
        seen[text] = covered


def _bounds(column: Column, nodes: list[tuple[int, int]]) -> Bounds | None:
    """The intervals of a bands or dates hierarchy's nodes; the root's is what the other nodes span, if any is shown."""
    hierarchy, numbers = column.hierarchy, v.numbers(column.values)
    assert hierarchy is not None
    if column.kind not in ("number", "date") or numbers is None:
        return None
    low, high = np.full(len(nodes), np.nan), np.full(len(nodes), np.nan)
    for index, (level, node) in enumerate(nodes):
        here = hierarchy.levels[level]
        if level == 0:
            low[index] = high[index] = numbers[node]
        elif here.low is not None and here.high is not None:
            low[index], high[index] = here.low[node], here.high[node]
    roots = [index for index, (level, _) in enumerate(nodes) if level == hierarchy.height]
    if not np.isnan(low).all():
        low[roots], high[roots] = np.nanmin(low), np.nanmax(high)
    return Bounds.of(low, high)


def _in_order(column: Column) -> tuple[NDArray[np.float64], Ints]:
    """The numbers that a column's values are, and their codes by size, a missing value last."""
    numbers = v.numbers(column.values)
    assert numbers is not None
    return numbers, np.argsort(np.where(np.isnan(numbers), np.inf, numbers), kind="stable")


def _crossing(column: Column, level: int | None) -> bool:
    """Whether intervals can overlap though groups do not: where a node of the tree they follow is no run of numbers."""
    hierarchy = column.hierarchy
    if hierarchy is None or (level is None and not under_taxonomy(column)):
        return False  # cut along the order
    numbers, order = _in_order(column)
    order = order[~np.isnan(numbers[order])]
    followed = hierarchy.maps if level is None else hierarchy.maps[level : level + 1]
    along = (nodes[order] for nodes in followed)
    return any(np.count_nonzero(np.diff(nodes)) + 1 > len(np.unique(nodes)) for nodes in along)


def _intervals(column: Column, found: Members, *, crossing: bool) -> Published:
    codes, group, groups, records, _ = found
    numbers, order = _in_order(column)
    missing = len(column.values) - 1 if column.values.null_count else len(column.values)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    empty = np.zeros(groups, dtype=bool)
    empty[group[codes == missing]] = True
    filled = codes != missing
    low, high = _extremes(rank[codes[filled]], group[filled], groups)
    low = np.where(high < 0, -1, low)
    width = len(order) + 1
    _, first, number = np.unique(((low + 1) * width + high + 1) * 2 + empty, return_index=True, return_inverse=True)
    labels = column.labels
    texts, lows, highs, holes = [], [], [], []
    for at in first:
        a, b, hole = int(low[at]), int(high[at]), bool(empty[at])
        span = None
        if b >= 0:
            one, other = labels[int(order[a])].as_py(), labels[int(order[b])].as_py()
            span = one if a == b else f"[{one}, {other}]"
        texts.append(span if not hole or span is None else f"{span} or missing")
        lows.append(None if b < 0 else float(numbers[order[a]]))
        highs.append(None if b < 0 else float(numbers[order[b]]))
        holes.append(hole)
    facts = IntervalFacts(
        labels=tuple(texts), bounds=Bounds(tuple(lows), tuple(highs)), missing=tuple(holes),
        whole=bool(v.is_whole(column.values)), crossing=crossing,
    )  # fmt: skip
    return _published(column, number.reshape(-1).astype(np.int64)[records], facts)


def _sets(column: Column, found: Members) -> Published:
    owner, codes, _ = distinct_pairs(found.group, found.codes)
    code = codes.astype(np.int32)
    start = np.searchsorted(owner, np.arange(found.groups + 1))
    numbers: dict[bytes, int] = {}
    of_group = np.array([numbers.setdefault(code[a:b].tobytes(), len(numbers)) for a, b in pairwise(start)])
    labels = column.labels.to_pylist()
    members = [np.frombuffer(key, dtype=np.int32) for key in numbers]
    used = np.unique(np.concatenate(members))
    position = {int(c): i for i, c in enumerate(used)}
    facts = SetFacts(
        labels=tuple(_set_text([labels[i] for i in m]) for m in members),
        leaves=tuple(labels[c] for c in used),
        members=tuple(tuple(position[int(c)] for c in m) for m in members),
    )
    return _published(column, of_group.astype(np.int64)[found.records], facts)


def _distributions(column: Column, found: Members, shift: Shift, level: int | None) -> Published:
    counts = tallies(found.codes, found.group, found.groups, width=len(column.values), rows=found.rows)
    base = [list(one) for one in counts]
    if shift.start == "taxonomy" and shift.towards < 1:
        assert column.hierarchy is not None
        if level is None:
            nodes = [(int(a), int(b)) for a, b in zip(*_smallest(column.hierarchy, found), strict=True)]
        else:
            nodes = levels_of(column.hierarchy, level, found.codes, found.group, found.groups)
        base = bases(column, nodes, found.codes)
    return publish_weights(column, found.records, group_weights(counts, base, [shift.towards] * found.groups))


def publish_weights(column: Column, group: Ints, weights: Sequence[Mapping[int, int]]) -> Published:
    """A quasi-identifier as distributions: the weight of each code in each group; `group` is that of each record."""
    facts, of_group = pdf_facts(column, weights)
    return _published(column, of_group[group], facts)


def _set_text(values: Sequence[str | None]) -> str | None:
    """A set as people read it, no two sets alike; one value alone is shown as it is, where it looks like no set or *.

    >>> _set_text(["a", None]), _set_text(["a"]), _set_text(["a, b", "c"]), _set_text(["{a, b}"])
    ('{a, missing}', 'a', '{"a, b", c}', '{"{a, b}"}')
    """
    if len(values) == 1 and (values[0] is None or not (values[0].startswith("{") or values[0] == ROOT)):
        return values[0]
    return "{" + ", ".join(map(_named, values)) + "}"


def _named(label: str | None) -> str:
    if label is None:
        return MISSING
    plain = label not in ("", MISSING, ROOT) and not set(label) & set('{},"\\') and label == label.strip()
    return label if plain else json.dumps(label, ensure_ascii=False)


def _published(column: Column, nodes: NDArray[np.int64], facts: GroupFacts) -> Published:
    codes, used = compact(nodes, len(facts.labels))
    assert len(used) == len(facts.labels)
    labels, root = pa.array(facts.labels, pa.string()), facts.root(facts.labels)
    cover = facts.cover(labels, root, column.kind)
    return Published(column.name, "quasi", column.kind, labels, codes, cover, 0, facts, None, root)


def _with_hidden(shown: Published, hidden: NDArray[np.bool_]) -> Published:
    """The column with * in the hidden records; `shown` has the codes of the others only, and says nothing of these."""
    assert isinstance(shown.facts, GroupFacts)
    labels, root, facts = shown.labels, shown.cover_root, replace(shown.facts, hidden=True)
    if root is None:
        root = len(labels)
        labels = pa.concat_arrays([labels, pa.array([ROOT], pa.string())])
    codes = np.full(len(hidden), root, dtype=np.int64)
    codes[~hidden] = shown.codes
    cover = facts.cover(labels, root, shown.kind)
    return replace(shown, labels=labels, held=compact(codes, len(labels))[0], cover=cover, facts=facts, cover_root=root)


def shown_by_group(table: Table, column: Column, partition: Partition, show: Show, shift: Shift | None) -> Published:
    """A quasi-identifier as each group's own values allow; suppressed rows show *."""
    group = partition.group[table.frequencies.row_combination]
    groups = partition.groups - partition.suppressed
    group = np.where(group < groups, group, -1)
    members = Members(column.codes.astype(np.int64), group, groups, group, table.multiplicity)
    return publish_groups(column, members, show, shift=shift, level=partition.levels[column.name])
