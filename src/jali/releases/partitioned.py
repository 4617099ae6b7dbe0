"""Partitioned releases: one table whose groups are boxes, each shown in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jali.encoding.frequencies import combine
from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.base import Principle, principles_of
from jali.principles.counts import Ints
from jali.progress import Step, watched
from jali.releases.asked import require_two
from jali.releases.base import fresh_order
from jali.releases.display import Show, publish_groups, shows_of
from jali.releases.generalized import Generalized, Requirement, manifest_of, mean_weight
from jali.releases.original import holder_costs
from jali.releases.pdf import Shift, Start, shift_of
from jali.releases.people import people_table
from jali.releases.present import only_present
from jali.releases.published import publish_exact
from jali.search.groups import Partition
from jali.search.mondrian import Mode, Similarity, Split, mondrian


class Partitioned(Generalized):
    """A table whose quasi-identifiers each group shows as tightly as its own values allow."""

    kind: ClassVar[str] = "partitioned"

    @classmethod
    def of_groups(
        cls, table: Table, group: Ints, groups: int, principles: tuple[Principle, ...], *, method: Mapping[str, Any],
        shows: Mapping[str, Show], shift: Shift | None = None,
    ) -> Self:  # fmt: skip
        """The release of groups (`group` is that of each record), each shown by its own values."""
        made = [
            publish_groups(c, group, groups, shows[c.name], shift=shift, rows=table.multiplicity)
            if c.role == "quasi"
            else publish_exact(c)
            for c in table.columns
        ]
        # boxes that show the same are one published group
        shown, first = combine([(c.codes, len(c.labels)) for c in made if c.role == "quasi"], table.records)
        records = np.arange(table.records)
        order = records if table.multiplicity is None else np.repeat(records, table.multiplicity)
        order = order[fresh_order(table.rows)]
        weight = mean_weight(table, shown.astype(np.int64))
        release = cls(
            tuple(replace(column, codes=column.codes[order]) for column in made),
            manifest_of(cls.kind, table, principles, method, groups=len(first), suppressed=0),
            weight=None if weight is None else weight[order],
            weight_name=table.weight_name,
            people=None if table.person is None else people_table(table, _partition(table, shown, len(first)), made),
            origin=table.origin,
        )
        release.remember(order, table.records)
        costs = vars(holder_costs(release, table, table.domain))
        metrics = {name: costs[name] for name in ("kl", "average", "discernibility", "loss")}
        release.manifest = replace(release.manifest, metrics=metrics)
        release.verify()
        return release


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
    """
    required = principles_of(principles)
    require_two(table)
    table = only_present(table)
    shows = shows_of(table.quasi, show)
    shift = shift_of(shows, towards, start)
    with watched("partitioning", on_step) as step:
        boxes = mondrian(table, required, mode=mode, split=split, similarity=similarity, threads=threads, on_step=step)
    method: dict[str, Any] = {"name": "partition", "mode": mode, "split": split, "show": shows}
    method |= {"similarity": similarity} if split == "kl" else {}
    method |= shift.to_dict() if "pdf" in shows.values() else {}
    group = boxes.row_group if boxes.group is None else boxes.group[table.frequencies.row_combination]
    assert group is not None
    if table.person is not None and boxes.group is None:
        raise InputError("relaxed partitioning needs one row per person", do='use mode="strict"')
    release = Partitioned.of_groups(table, group, boxes.groups, required, method=method, shows=shows, shift=shift)
    release.search = {"checked": boxes.checked}
    return release
