"""How a group's values are shown: the smallest taxonomy node that covers them, their interval, set or distribution."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.encoding import values as v
from jali.encoding.ends import Ends, Grid, Naming, Span, ends_of, every_value, steps_of, written
from jali.encoding.hierarchy import ROOT, Hierarchy
from jali.encoding.table import Column, Table
from jali.errors import InputError, nearest, one_of, told
from jali.principles.counts import distinct_pairs
from jali.releases.column import Published, compact
from jali.releases.facts import Bounds
from jali.releases.group_facts import GroupFacts, IntervalFacts, NodeFacts, SetFacts
from jali.releases.pdf import MISSING, Shift, bases, group_weights, levels_of, pdf_facts, tallies
from jali.search.common import Partition
from jali.search.items import places_of, under_taxonomy

Show = Literal["taxonomy", "interval", "set", "pdf", "interval-exact", "set-exact"]
SHOWS: tuple[Show, ...] = get_args(Show)
OTHERS = "other values"
"""How a set shows words that are not public."""
PEOPLE = 5
"""How many people share a value that is named, unless the promises say it."""


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
        if chosen in ("interval", "interval-exact") and column.kind not in ("number", "date"):
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


def naming_values(
    table: Table, shows: Mapping[str, Show], grid: Grid | None, people: int | None
) -> tuple[Table, dict[str, Any]]:
    """The table whose columns know which of their values intervals and sets may name, and what a manifest says of it.

    Public are the values of a declared domain, and those that at least `people` people share. Displays that are exact
    name any value.
    """
    shown = [column for column in table.quasi if shows[column.name] in ("interval", "set") and not column.declared]
    steps, least = steps_of(tuple(shown), grid), PEOPLE if people is None else people
    if not shown:
        return table, {}
    ends = {column.name: ends_of(table, column, least, steps.get(column.name)) for column in shown}
    columns = tuple(replace(column, ends=ends.get(column.name)) for column in table.columns)
    known = table.__dict__.get("frequencies")
    table = replace(table, columns=columns)
    if known is not None:
        table.__dict__["frequencies"] = known
    return table, {"named": {"people": least} | ({"grid": written(steps)} if steps else {})}


def shown_again(method: Mapping[str, Any]) -> dict[str, Any]:
    """The options that show a table again as a manifest says; releases before public ends named any value."""
    shows = dict(method["show"])
    if "named" not in method:
        return {
            "show": {name: f"{show}-exact" if show in ("interval", "set") else show for name, show in shows.items()}
        }
    return {"show": shows} | ({"grid": method["named"]["grid"]} if "grid" in method["named"] else {})


class Members(NamedTuple):
    """Who is in each group: the values of some column that it has, each at least once, and the group of each record."""

    codes: Ints  # (members,)
    group: Ints  # (members,)
    groups: int
    records: Ints  # (records,) their groups
    rows: Ints | None = None  # (members,) how many rows each stands for; one where that is not said


def ends_alone(table: Table, column: Column, show: Show) -> Ints | None:
    """The rank of each code, where the members of a group of lowest and highest rank, and whether a value is missing,
    say all that is shown of the group; None where every value counts."""
    if show == "taxonomy" and under_taxonomy(column):
        return places_of(table)[column.name]
    if show in ("interval", "interval-exact"):
        return np.argsort(_in_order(column)[1])
    return None


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
    if show in ("interval", "interval-exact"):
        return _intervals(column, members, crossing=_crossing(column, level))
    if show in ("set", "set-exact"):
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
    numbers = column.numbers
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
    facts, of_group = _interval_facts(column, found, crossing=crossing)
    return _published(column, of_group[found.records], facts)


def _interval_facts(column: Column, found: Members, *, crossing: bool) -> tuple[IntervalFacts, Ints]:
    """The intervals of groups, and the node of each group; ends that the column may not name are rounded outward."""
    codes, group, groups, _, _ = found
    _, order = _in_order(column)
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
    ends = column.ends or every_value(column)
    nodes: dict[tuple[Span | None, bool], int] = {}
    of_node, rounded = np.zeros(len(first), dtype=np.int64), False
    for at, one in enumerate(first):
        span = None if high[one] < 0 else ends.span(column, int(order[low[one]]), int(order[high[one]]))
        if span is not None and span.rounded:  # an interval that reads like a rounded one is the same cell
            span, rounded = span._replace(rounded=False), True
        of_node[at] = nodes.setdefault((span, bool(empty[one])), len(nodes))
    facts = IntervalFacts(
        labels=tuple(_interval_text(span, hole) for span, hole in nodes),
        bounds=Bounds(
            tuple(None if span is None else span.low for span, _ in nodes),
            tuple(None if span is None else span.high for span, _ in nodes),
        ),
        missing=tuple(hole for _, hole in nodes),
        whole=bool(v.is_whole(column.values)), crossing=crossing or rounded,
        naming=None if column.declared else ends.naming(rounded=rounded),
    )  # fmt: skip
    return facts, of_node[number.reshape(-1)]


def _interval_text(span: Span | None, hole: bool) -> str | None:
    if span is None:
        return None
    return f"{span.text} or missing" if hole else span.text


def _sets(column: Column, found: Members) -> Published:
    """Sets of public values; a group with others says so, or shows the interval of its numbers or days."""
    ends = column.ends or every_value(column)
    owner, code, _ = distinct_pairs(found.group, found.codes)
    unnamed = np.zeros(found.groups, dtype=bool)
    unnamed[owner[~ends.public[code]]] = True
    spans, span_of = None, np.full(found.groups, -1, dtype=np.int64)
    if column.kind in ("number", "date") and unnamed.any():
        spans, span_of = _spans_of(column, found, unnamed)
    start = np.searchsorted(owner, np.arange(found.groups + 1))
    numbers: dict[tuple[bytes, int], int] = {}
    of_group = np.zeros(found.groups, dtype=np.int64)
    for at, (a, b) in enumerate(pairwise(start)):
        own = code[a:b] if span_of[at] < 0 else code[:0]
        which = int(span_of[at]) if span_of[at] >= 0 else -2 if unnamed[at] else -1  # an interval, other values, a set
        of_group[at] = numbers.setdefault((own[ends.public[own]].astype(np.int32).tobytes(), which), len(numbers))
    facts = _set_facts(column, [(np.frombuffer(key, dtype=np.int32), which) for key, which in numbers], spans)
    return _published(column, of_group[found.records], replace(facts, naming=_named_by(column, ends, spans)))


def _spans_of(column: Column, found: Members, some: NDArray[np.bool_]) -> tuple[IntervalFacts, Ints]:
    """The intervals of some groups, and the node of each group, -1 of the others."""
    number = np.cumsum(some) - 1
    kept = some[found.group]
    inside = Members(found.codes[kept], number[found.group[kept]], int(some.sum()), number[some])
    facts, of_group = _interval_facts(column, inside, crossing=True)
    return facts, np.where(some, of_group[np.maximum(number, 0)], -1)


def _set_facts(column: Column, nodes: Sequence[tuple[Ints, int]], spans: IntervalFacts | None) -> SetFacts:
    """The facts of sets: the codes of each, and its interval (by number), or whether it has other values (-2)."""
    labels = column.labels.to_pylist()
    used = np.unique(np.concatenate([codes for codes, _ in nodes]))
    position = {int(c): i for i, c in enumerate(used)}
    texts = tuple(
        _set_text([labels[i] for i in codes], others=which == -2) if which < 0 or spans is None else spans.labels[which]
        for codes, which in nodes
    )
    return SetFacts(
        labels=texts,
        leaves=tuple(labels[c] for c in used),
        members=tuple(tuple(position[int(c)] for c in codes) for codes, _ in nodes),
        others=frozenset(node for node, (_, which) in enumerate(nodes) if which == -2),
        intervals=spans,
    )


def _named_by(column: Column, ends: Ends, spans: IntervalFacts | None) -> Naming | None:
    return None if column.declared else ends.naming(rounded=spans is not None)


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


def _set_text(values: Sequence[str | None], *, others: bool = False) -> str | None:
    """A set as people read it, no two sets alike; one value alone is shown as it is, where it looks like no set or *.

    >>> _set_text(["a", None]), _set_text(["a"]), _set_text(["a, b", "c"]), _set_text(["{a, b}"])
    ('{a, missing}', 'a', '{"a, b", c}', '{"{a, b}"}')
    """
    if not others and len(values) == 1 and (values[0] is None or not (values[0].startswith("{") or values[0] == ROOT)):
        return values[0]
    return "{" + ", ".join([*map(_named, values), *([OTHERS] if others else [])]) + "}"


def _named(label: str | None) -> str:
    if label is None:
        return MISSING
    plain = label not in ("", MISSING, ROOT, OTHERS) and not set(label) & set('{},"\\') and label == label.strip()
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


def shown_by_group(
    table: Table, column: Column, partition: Partition, show: Show, *, shift: Shift | None,
    values: tuple[Ints, Ints, Ints] | None = None,
) -> Published:  # fmt: skip
    """A quasi-identifier as each group's own values allow; suppressed rows show *.

    `values` are codes, their groups and their rows, where the records of the table have no values of their own.
    """
    groups = partition.groups - partition.suppressed
    record = partition.group[table.frequencies.row_combination]
    codes, group, rows = values or (column.codes.astype(np.int64), record, table.multiplicity)
    group, record = (np.where(each < groups, each, -1) for each in (group, record))
    members = Members(codes, group, groups, record, rows)
    return publish_groups(column, members, show, shift=shift, level=partition.levels[column.name])
