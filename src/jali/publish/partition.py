"""partition: a table cut into boxes that keep every promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, counted
from jali.core.progress import Step, watched
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.measures.holder import holder_costs
from jali.principles.base import Principle, hold, principles_of
from jali.publish.checks import budget_of, only_present, require_table, require_two
from jali.publish.generalize import manifest_of, mean_weight
from jali.releases.base import fresh_order
from jali.releases.column import publish_exact
from jali.releases.display import Members, Show, publish_groups, shows_of
from jali.releases.generalized import Partitioned, Requirement
from jali.releases.pdf import Shift, Start, shift_of
from jali.releases.people import people_table
from jali.search.common import Partition
from jali.search.mondrian.mondrian import Mode, Similarity, Split, mondrian, require_cuts
from jali.search.recode.recode import standouts
from jali.search.recode.search import Search

Kind = TypeVar("Kind", bound=Partitioned)


def of_groups(
    kind: type[Kind], table: Table, group: Ints, groups: int, principles: tuple[Principle, ...],
    *, method: Mapping[str, Any], shows: Mapping[str, Show], shift: Shift | None = None,
) -> Kind:  # fmt: skip
    """The release of groups, each shown by its own values; `group` is that of each record, -1 if suppressed."""
    members = iter(_members(table, group, groups))
    made = [
        publish_groups(c, next(members), shows[c.name], shift=shift) if c.role == "quasi" else publish_exact(c)
        for c in table.columns
    ]
    # boxes that show the same are one published group
    shown, first = combine([(c.codes, len(c.labels)) for c in made if c.role == "quasi"], table.records)
    published = _partition(table, shown, len(first)) if table.person is not None else None
    if published is not None and not bool(hold(principles, published.counts(table)).all()):
        raise InfeasibleError(
            "groups that are shown alike are one published group, and here such a group breaks a promise; "
            'use generalize, or show the groups otherwise, e.g. as "set"'
        )
    records = np.arange(table.records)
    order = records if table.multiplicity is None else np.repeat(records, table.multiplicity)
    order = order[fresh_order(table.rows)]
    weight = mean_weight(table, shown.astype(np.int64))
    release = kind(
        tuple(replace(column, codes=column.codes[order]) for column in made),
        manifest_of(kind.kind, table, principles, method, groups=len(first), suppressed=0),
        weight=None if weight is None else weight[order],
        weight_name=table.weight_name,
        people=None if published is None else people_table(table, published, made, principles),
        origin=table.origin,
    )
    release.remember(order, table.records)
    told = dict(release.manifest.counts) | {"suppressed": int(release.hidden_rows.sum())}
    release.manifest = replace(release.manifest, counts=told)
    costs = vars(holder_costs(release, table, table.domain))
    metrics = {name: costs[name] for name in ("kl", "average", "discernibility", "loss")}
    release.manifest = replace(release.manifest, metrics=metrics)
    release.verify()
    return release


def _members(table: Table, group: Ints, groups: int) -> list[Members]:
    """Who is in each group, for each quasi-identifier: combinations where none of them is divided, else records."""
    frequencies, codes = table.frequencies, [column.codes for column in table.quasi]
    combination = np.zeros(frequencies.combinations, dtype=np.int64)
    combination[frequencies.row_combination] = group
    if not np.array_equal(combination[frequencies.row_combination], group):
        return [Members(code.astype(np.int64), group, groups, group, table.multiplicity) for code in codes]
    rows = counted(frequencies.combination, frequencies.rows, frequencies.combinations)
    return [Members(code.astype(np.int64), combination, groups, group, rows) for code in frequencies.codes.T]


def _partition(table: Table, shown: NDArray[np.int32], groups: int) -> Partition:
    """The published groups of the table's combinations."""
    group = np.zeros(table.frequencies.combinations, dtype=np.int64)
    group[table.frequencies.row_combination] = shown
    return Partition(group, groups, {})


def partition(
    table: Table,
    principles: Requirement,
    *,
    mode: Mode = "strict",
    split: Split = "range",
    similarity: Similarity = "box",
    show: Show | Mapping[str, Show] | None = None,
    towards: float | Fraction | None = None,
    start: Start = "taxonomy",
    suppress: float = 0.0,
    threads: int | None = None,
    on_step: Step | None = None,
) -> Partitioned:
    """Cut the table into small groups that keep every promise (Mondrian), as a release.

    `mode` is "strict" (no two boxes overlap) or "relaxed" (people with equal values may be divided). `split` says which
    column is cut first: "range", "entropy" or "kl", where `similarity="pdf"` compares groups by their distributions and
    not by their boxes. `show` says how a group's values are shown: "taxonomy", "interval",
    "set" or "pdf", for all columns or by column; by default numbers as intervals, words by their taxonomy, else as
    sets. With "pdf" a cell is the distribution in its group, or with `towards` below 1 one between even shares over
    what it starts from ("taxonomy": its node, "set": its values) and that.
    `suppress` is the share of rows that may be suppressed (shown as `*`), where that lowers the KL-divergence.
    """
    require_table("partition", table)
    required = principles_of(principles)
    share = budget_of(suppress)
    require_cuts(mode, split, similarity)
    require_two(table)
    table = only_present(table)
    shows = shows_of(table.quasi, show)
    if mode == "relaxed" and table.person is not None:
        raise InputError("relaxed partitioning needs one row per person", do='use mode="strict"')
    if share and any(p.scope == "table" for p in required):
        raise InputError("a principle about all groups at once allows no suppression here", do="leave out suppress")
    shift = shift_of(shows, towards, start)
    method = {"name": "partition", "mode": mode, "split": split, "show": shows, "suppress": str(suppress)}
    method |= {"similarity": similarity} if split == "kl" else {}
    method |= shift.to_dict() if "pdf" in shows.values() else {}
    options: Any = {"mode": mode, "split": split, "similarity": similarity, "threads": threads}

    with watched("partitioning", on_step) as step:

        def made(hidden: Bools | None) -> Partitioned:
            boxes = mondrian(table, required, **options, on_step=step, hidden=hidden)
            group = boxes.row_group if boxes.group is None else boxes.group[table.frequencies.row_combination]
            assert group is not None
            release = of_groups(
                Partitioned, table, group, boxes.groups, required, method=method, shows=shows, shift=shift
            )
            release.search = {"checked": boxes.checked}
            return release

        release = made(None)
        for hidden in _candidates(table, required, int(share * table.rows), step):
            try:
                other = made(hidden)
            except InfeasibleError:  # some groups would be shown alike, and break a promise together
                continue
            if other.manifest.counts["suppressed"] and _cost(other) < _cost(release):
                release = other
    return release


def _candidates(table: Table, principles: tuple[Principle, ...], budget: int, step: Step) -> Iterator[Bools]:
    """Which combinations to suppress: (combinations,) each."""
    if budget:
        yield from standouts(Search(table, principles, "kl", "taxonomy", step), budget)


def _cost(release: Partitioned) -> float:
    return round(release.manifest.metrics["kl"], 12)
