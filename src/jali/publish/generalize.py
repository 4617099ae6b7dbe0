"""generalize and minimal: full-domain generalization of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, found_among
from jali.core.progress import Step, watched
from jali.encoding.ends import Grid
from jali.encoding.large import LargeTable
from jali.encoding.table import Column, Table
from jali.errors import InfeasibleError
from jali.principles.base import Principle, hold, principles_of
from jali.publish.checks import (
    budget_of,
    failure,
    importance_of,
    node_of,
    note_of_stars,
    notes_of,
    only_present,
    promised_people,
    require_publishable,
    require_table,
    told_importance,
)
from jali.publish.transparent import claim, is_asked
from jali.releases.base import Manifest
from jali.releases.column import Published, publish_exact, publish_quasi
from jali.releases.display import Show, naming_values, shown_by_group, shows_of
from jali.releases.generalized import Generalized, Requirement
from jali.releases.pdf import Shift, Start, shift_of
from jali.releases.people import people_table
from jali.search.common import Partition
from jali.search.lattice.costs import Costing, Costs, Metric, Nodes
from jali.search.lattice.lattice import Lattice
from jali.search.lattice.tally import Roller

WEIGHT_DIGITS = 6


class Beyond(NamedTuple):
    """A table beyond memory, of which a lattice node is published."""

    table: LargeTable

    def values(self, coarse: Table, partition: Partition, name: str) -> tuple[Ints, Ints, Ints]:
        """The values of a column in each group: codes, their groups, and their rows; `coarse` was counted for them."""
        maps = {column: self.table.hierarchy(column).maps[level] for column, level in partition.levels.items()}
        f, widths = coarse.frequencies, [int(nodes.max()) + 1 for nodes in maps.values()]
        known = [nodes[codes] for nodes, codes in zip(maps.values(), f.columns, strict=True)]
        _, first = combine([*zip(known, widths, strict=True)], f.combinations)
        found = self.table.values_at([*partition.levels.values()], name)
        asked = [maps[c][own] if c == name else own for c, own in found.nodes.items()]
        place = found_among([nodes[first] for nodes in known], asked, widths, len(first) + len(found.rows))
        return found.nodes[name], partition.group[first][place], found.rows


def publish(
    table: Table, partition: Partition, principles: tuple[Principle, ...], method: Mapping[str, Any],
    *, shows: Mapping[str, Show] | None = None, shift: Shift | None = None, beyond: Beyond | None = None,
    large: LargeTable | None = None,
) -> Generalized:  # fmt: skip
    """The release of a partition that is a lattice node; columns are shown at its level, or each group as `shows`.

    `beyond` is the table whose levels these are, where its own values are not held; `large` is the same where columns
    that are published as they are are not held either.
    """
    held = table.distinct()
    combination = held.frequencies.row_combination
    hidden = partition.hidden[combination] if partition.suppressed else None
    shows = shows or {}
    values_of = partial(beyond.values, table, partition) if beyond else (lambda name: None)
    made = [
        publish_exact(column)
        if column.role != "quasi"
        else publish_quasi(column, partition.levels[column.name], hidden)
        if shows.get(column.name, "taxonomy") == "taxonomy"
        else shown_by_group(held, column, partition, shows[column.name], shift=shift, values=values_of(column.name))
        for column in held.columns
    ]
    suppressed = _suppressed(table, partition)
    shown = _as_shown(held, partition, made)
    if shown is not partition and not bool(hold(principles, shown.counts(held)).all()):
        raise InfeasibleError(ALIKE)
    people = None if table.person is None else people_table(held, shown, made, principles)
    told = {"groups": shown.groups, "suppressed": suppressed}
    others = () if large is None else large.of_role("other")
    manifest = manifest_of(Generalized.kind, table, principles, method, **told, others=others)
    unheld = None
    if large is not None:
        from jali.publish.portions import of_node

        unheld = of_node(large, partition.levels, held, made, hidden)
    release = Generalized(
        tuple(made),
        replace(manifest, metrics=asdict(_costs(table, partition))),
        numbers=held.multiplicity,
        weight=mean_weight(held, shown.group[combination]),
        weight_name=table.weight_name,
        people=people,
        origin=table.origin,
        unheld=unheld,
    )
    release.remember(one_of_each(combination, table.frequencies.combinations), table.records, by_combination=True)
    if any(column.generalized_by_group for column in made):
        from jali.measures.holder import holder_costs

        pieces = None if beyond is None else beyond.table.pieces()
        costs = vars(holder_costs(release, table, table.domain, pieces=pieces))
        told = {name: costs[name] for name in ("kl", "average", "discernibility", "loss")}
        release.manifest = replace(release.manifest, metrics=told)
    release.verify()
    return release.with_notes(note_of_stars(release))


ALIKE = (
    "groups that are shown alike are one published group, and here such a group breaks a promise; "
    'use generalize with levels, or name values as they are: show="interval-exact" or "set-exact"'
)


def _as_shown(table: Table, partition: Partition, made: Sequence[Published]) -> Partition:
    """The groups as they are published: those that show the same are one."""
    if not any(column.generalized_by_group for column in made):
        return partition
    cells = [(column.held, len(column.labels)) for column in made if column.role == "quasi"]
    number, first = combine(cells, table.records)
    if len(first) == partition.groups:
        return partition
    group = np.zeros(table.frequencies.combinations, dtype=np.int64)
    group[table.frequencies.row_combination] = number
    if partition.suppressed:  # suppressed rows are the last group
        last = int(group[np.flatnonzero(partition.hidden)[0]])
        group = np.where(group == last, len(first) - 1, group - (group > last))
    return replace(partition, group=group, groups=len(first))


def one_of_each(number: NDArray[np.integer], count: int) -> Ints:
    """A record of each number: (count,)."""
    found = np.zeros(count, dtype=np.int64)
    found[number] = np.arange(len(number))
    return found


def manifest_of(
    kind: str,
    table: Table,
    principles: tuple[Principle, ...],
    method: Mapping[str, Any],
    *,
    groups: int,
    suppressed: int,
    others: Sequence[Column] = (),
) -> Manifest:
    """The manifest of a release of this table, and of `others` columns that are not held, without its metrics."""
    return Manifest(
        kind=kind,
        method=dict(method),
        principles=principles,
        counts={
            "rows": table.rows,
            "people": table.people,
            "groups": groups,
            "suppressed": suppressed,
            "one_row_per_person_assumed": table.person_name is None,
        },
        domain={c.name: "declared" if c.declared and table.domain == "declared" else "present" for c in table.quasi},
        notes=notes_of(table, principles, others),
        allowed=dict(table.allowed),
    )


def _suppressed(table: Table, partition: Partition) -> int:
    """How many rows are suppressed."""
    rows = np.bincount(partition.group[table.frequencies.combination], weights=table.frequencies.rows)
    return int(rows[-1]) if partition.suppressed else 0


def _costs(table: Table, partition: Partition) -> Costs:
    """The partition's costs, from its own tally."""
    roller = Roller(table)
    levels = tuple(partition.levels[c.name] for c in table.quasi)
    tally = roller.roll(roller.bottom, levels)
    number, _ = roller.numbers(roller.bottom, levels)
    hidden = np.zeros(tally.groups, dtype=bool)
    hidden[number[partition.hidden]] = True
    return Costing(table).prices(tally, hidden)


def mean_weight(table: Table, group: Ints) -> NDArray[np.float64] | None:
    """The mean weight of each record's group: single weights would identify people. `group` is that of each record."""
    if table.weight is None:
        return None
    rows = np.ones(table.records) if table.multiplicity is None else table.multiplicity.astype(np.float64)
    mean = np.bincount(group, weights=table.weight * rows) / np.bincount(group, weights=rows)
    return np.array([float(f"{m:.{WEIGHT_DIGITS}g}") for m in mean])[group]


def generalize(
    table: Table,
    principles: Requirement,
    *,
    metric: Metric = "kl",
    suppress: float = 0.0,
    importance: Mapping[str, float] | None = None,
    levels: Mapping[str, int] | None = None,
    show: Show | Mapping[str, Show] = "taxonomy",
    towards: float | Fraction | None = None,
    start: Start = "taxonomy",
    grid: Grid | None = None,
    transparent: bool = False,
    on_step: Step | None = None,
) -> Generalized:
    """The best full-domain generalization that keeps every promise, as a release.

    `metric` is what is kept lowest: "kl", "discernibility", "average", "height" or "loss". `suppress` is the share of
    rows that may be suppressed (shown as `*`); the result is the best node of the whole lattice under that budget.
    `importance` multiplies what columns cost, by name and 1 where none is given: of KL the logarithm of cell sizes, of
    loss and height each column's part; the other metrics know no columns. Figures that are reported stay as they are.
    `levels` publishes a given node instead, e.g. one of `minimal`'s, if it keeps the promises. `show` says how the
    groups are shown: "taxonomy" (the level), "interval", "set" or "pdf" (the distribution of each group, or with
    `towards` below 1 one between even shares and that). Intervals and sets name public values alone, as in `partition`
    with `grid`. `transparent=True` is for k-anonymity with any metric but "kl":
    then nothing here reads sensitive values, and an attacker who knows the algorithm learns nothing more.
    """
    require_table("generalize", table, large=True)
    required = principles_of(principles)
    budget = budget_of(suppress)
    require_publishable(table)
    table = only_present(table)
    shows = shows_of(table.quasi, show, default="taxonomy")
    shift = shift_of(shows, towards, start)
    table, named = naming_values(table, shows, grid, promised_people(required))
    large = table if isinstance(table, LargeTable) else None
    method: dict[str, Any] = {
        "name": "generalize", "metric": metric, "suppress": str(suppress), "levels_given": levels is not None,
    }  # fmt: skip
    weights = importance_of(table, importance)
    method |= told_importance(table, importance)
    method |= claim(method, required, one_row=table.person is None) if is_asked(transparent) else {}
    with watched("searching the lattice", on_step) as step:
        given = None if levels is None else node_of(table, levels)
        if large is None:
            lattice = Lattice(table, required, on_step=step)
            node, hidden = (given, None) if given is not None else lattice.best(metric, budget, weights)
        else:
            from jali.search.lattice.beyond import best_beyond, given_beyond

            if given is None:
                lattice, node, hidden = best_beyond(large, required, metric, budget, weights, on_step=step)
            else:
                lattice, node, hidden = given_beyond(large, required, given, on_step=step), given, None
        table = lattice.table
        hidden = _suppression(lattice, node, int(budget * table.rows)) if hidden is None else hidden
    if set(shows.values()) != {"taxonomy"}:
        method |= {"show": shows, "levels": dict(zip(shows, map(int, node), strict=True))} | named
    method |= shift.to_dict() if "pdf" in shows.values() else {}
    told: Any = {"shows": shows, "shift": shift, "beyond": None if large is None else Beyond(large)}
    if large is not None and len(large.columns) > len(table.columns):
        if set(shows.values()) != {"taxonomy"}:
            raise large.refused('generalize with show other than "taxonomy" and columns that are published as they are')
        told["large"] = large
    partition, looked = lattice.partition(node, hidden), {"nodes": lattice.nodes, "checked": lattice.checked}
    del lattice  # its tallies can be larger than what is published
    release = publish(table, partition, required, method, **told)
    release.search = looked
    return release


def _suppression(lattice: Lattice, node: tuple[int, ...], budget: int) -> Bools:
    """The groups of a given node that are suppressed; InfeasibleError where the node cannot be published."""
    found = lattice.suppression(lattice.tally(node), budget)
    if found is None:
        raise InfeasibleError(failure(lattice, node))
    return found


def minimal(table: Table, principles: Requirement, *, on_step: Step | None = None) -> Nodes:
    """Every minimal generalization that keeps the promises: no column can be shown more finely in any of them."""
    require_table("minimal", table, large=True)
    table = only_present(table)
    with watched("searching the lattice", on_step) as step:
        if isinstance(table, LargeTable):
            from jali.search.lattice.beyond import minimal_beyond

            return minimal_beyond(table, principles_of(principles), on_step=step)
        return Lattice(table, principles_of(principles), on_step=step).minimal_nodes()
