"""Generalized releases: one table in which quasi-identifiers are shown at a level of their hierarchies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding.frequencies import combine
from jali.encoding.native import free_name
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.estimates.boxes import BoxColumn, BoxEstimate
from jali.principles.base import Combined, Principle, principles_of
from jali.principles.counts import Counts, Ints
from jali.progress import Step, watched
from jali.releases.asked import budget_of, failure, node_of, require_table, require_two
from jali.releases.base import Manifest, Release, fresh_order
from jali.releases.display import Show, shows_of
from jali.releases.pdf import Shift, Start, shift_of
from jali.releases.people import people_counts, people_table
from jali.releases.present import only_present
from jali.releases.published import Published, publish_exact, publish_quasi, restored
from jali.releases.shown import shown_by_group
from jali.search.groups import Partition
from jali.search.lattice import Lattice, Nodes
from jali.search.metrics import Costing, Costs, Metric
from jali.search.tally import Roller

Requirement = Principle | Combined | Iterable[Principle | Combined]
WEIGHT_DIGITS = 6


class Generalized(Release):
    """A table with generalized quasi-identifiers and exact sensitive values, in random order."""

    kind: ClassVar[str] = "generalized"

    def __init__(
        self, columns: tuple[Published, ...], manifest: Manifest, *, weight: NDArray[np.float64] | None = None,
        weight_name: str | None = None, people: pa.Table | None = None, origin: str = "arrow",
    ) -> None:  # fmt: skip
        self._columns, self.manifest, self.origin = columns, manifest, origin
        self.weight, self.weight_name = weight, weight_name
        self.people = people  # people by group and value, where a person can have several rows
        self.rows = len(columns[0].codes)
        self.search: Mapping[str, int] = {}
        self._places: Ints | None = None  # (records,) a published row of each record, for the holder; never saved

    @property
    def columns(self) -> tuple[Published, ...]:
        """The published columns, in the order of the table."""
        return self._columns

    @property
    def levels(self) -> dict[str, int]:
        """The level of each quasi-identifier, published or only behind the groups; none in a partition."""
        if "levels" in self.manifest.method:
            return dict(self.manifest.method["levels"])
        return {column.name: column.level for column in self.of_role("quasi") if not column.generalized_by_group}

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
    def individuals(self) -> pa.Table:
        """The published quasi-identifiers of each row, in published order."""
        return self.tables["data"].select([column.name for column in self.of_role("quasi")])

    @property
    def group_of_rows(self) -> NDArray[np.int32]:
        """The group of each published row, numbered in published order."""
        return self._group[0]

    @cached_property
    def hidden_rows(self) -> NDArray[np.bool_]:
        """Which published rows are suppressed: those that show * everywhere though the columns are shown below it."""
        quasi = self.of_role("quasi")
        hidden = np.ones(self.rows, dtype=bool)
        for column in quasi:
            hidden &= False if column.cover_root is None else column.codes == column.cover_root
        own = [column.facts or {} for column in quasi if column.generalized_by_group]
        if not all(facts.get("hidden") for facts in own):
            return np.zeros(self.rows, dtype=bool)
        tops = all(column.facts is not None and len(column.facts.get("levels", ())) == 1 for column in quasi)
        return hidden & (not tops)

    def assignment(self, table: Table) -> Ints:
        """The group of each row of the original, by its place in `groups`: for its holder, and never saved."""
        if self._places is None or not isinstance(table, Table) or len(self._places) != table.records:
            raise InputError(
                "only a release that was just made from this table knows where its rows went",
                do="make it again: what is saved cannot be traced back",
            )
        group = self.group_of_rows[self._places].astype(np.int64)
        return group if table.multiplicity is None else np.repeat(group, table.multiplicity)

    def remember(self, order: Ints, records: int) -> None:
        """Keep which record each published row came from, in memory only."""
        self._places = np.empty(records, dtype=np.int64)
        self._places[order] = np.arange(len(order))

    def __getstate__(self) -> dict[str, Any]:
        """A pickled release does not know where the original's rows went."""
        return self.__dict__ | {"_places": None}

    def shared_by(self, columns: tuple[Published, ...]) -> Ints:
        """How many rows share each row's cells in these columns: (rows,)."""
        number, _ = combine([(c.codes, len(c.labels)) for c in columns], self.rows)
        return np.bincount(number)[number].astype(np.int64)

    @property
    def groups(self) -> pa.Table:
        """The published groups: what each shows and how many rows it has."""
        number, first = self._group
        shown = {c.name: c.labels.take(pa.array(c.codes[first])) for c in self.of_role("quasi")}
        return pa.table([*shown.values(), pa.array(np.bincount(number))], names=[*shown, free_name("rows", shown)])

    def counts(self) -> Counts:
        """People by published group and sensitive value."""
        if self.people is not None:
            everyone = self.manifest.counts["people"]
            return people_counts(self.people, self.columns, self._group, self.principles, everyone)
        return self.entries()[0]

    def entries(self) -> tuple[Counts, NDArray[np.int32]]:
        """Published rows by group and joint value, sorted by both, and the entry that each row is in: (rows,)."""
        number, first = self._group
        sensitive = self.of_role("sensitive")
        codes = [(c.judged[1][c.codes], len(c.judged[0])) for c in sensitive if c.judged is not None]
        value, value_first = combine(codes, self.rows)
        joint = np.stack([c[value_first] for c, _ in codes], axis=1) if codes else np.zeros((1, 0), dtype=np.int64)
        entry, entry_first = combine([(number, len(first)), (value, len(joint))], self.rows)
        counts = Counts(
            len(first),
            number[entry_first].astype(np.int64),
            value[entry_first].astype(np.int64),
            np.bincount(entry).astype(np.int64),
            tuple(c.judged[0] for c in sensitive if c.judged is not None),
            joint.astype(np.int64),
        )
        return counts, entry

    def estimate(self) -> BoxEstimate:
        """What an analyst can infer from the published table."""
        columns = tuple(BoxColumn(c.name, c.kind, c.role, c.cover, c.codes) for c in self.columns)
        return BoxEstimate.from_rows(columns, self.weight)

    def columns_facts(self) -> list[dict[str, Any]]:
        """What the manifest says of each column."""
        return [column.to_dict() for column in self.columns] + (
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
            columns.append(restored(facts, data[facts["name"]]))
        people = tables.get("people")
        if people is not None:
            people = pa.table({n: people[n].cast(pa.string()) for n in people.column_names})
        facts = Manifest.from_dict(manifest)
        made = cls(tuple(columns), facts, weight=weight, weight_name=weight_name, people=people)
        told = (facts.counts["rows"], facts.counts["groups"], facts.counts["suppressed"])
        if told != (data.num_rows, len(made._group[1]), int(made.hidden_rows.sum())):
            raise ValueError("the manifest counts something else")
        return made

    def __repr__(self) -> str:
        from jali.releases.summary import summary

        return summary(self)


def publish(
    table: Table, partition: Partition, principles: tuple[Principle, ...], method: Mapping[str, Any],
    *, shows: Mapping[str, Show] | None = None, shift: Shift | None = None,
) -> Generalized:  # fmt: skip
    """The release of a partition that is a lattice node; columns are shown at its level, or each group as `shows`."""
    frequencies = table.frequencies
    hidden = partition.hidden[frequencies.row_combination] if partition.suppressed else None
    records = np.arange(table.records)
    order = (records if table.multiplicity is None else np.repeat(records, table.multiplicity))[fresh_order(table.rows)]
    shows = shows or {}
    made = [
        publish_exact(column)
        if column.role != "quasi"
        else publish_quasi(column, partition.levels[column.name], hidden)
        if shows.get(column.name, "taxonomy") == "taxonomy"
        else shown_by_group(table, column, partition, shows[column.name], shift)
        for column in table.columns
    ]
    people = None
    if table.person is not None:
        people = people_table(table, partition, made, principles)
    weight = mean_weight(table, partition.group[frequencies.row_combination])
    told = {"groups": partition.groups, "suppressed": _suppressed(table, partition)}
    manifest = manifest_of(Generalized.kind, table, principles, method, **told)
    release = Generalized(
        tuple(replace(column, codes=column.codes[order]) for column in made),
        replace(manifest, metrics=asdict(_costs(table, partition))),
        weight=None if weight is None else weight[order],
        weight_name=table.weight_name,
        people=people,
        origin=table.origin,
    )
    release.remember(order, table.records)
    if any(column.generalized_by_group for column in made):
        from jali.releases.original import holder_costs

        costs = vars(holder_costs(release, table, table.domain))
        told = {name: costs[name] for name in ("kl", "average", "discernibility", "loss")}
        release.manifest = replace(release.manifest, metrics=told)
    release.verify()
    return release


def manifest_of(
    kind: str,
    table: Table,
    principles: tuple[Principle, ...],
    method: Mapping[str, Any],
    *,
    groups: int,
    suppressed: int,
) -> Manifest:
    """The manifest of a release of this table, without its metrics."""
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
    levels: Mapping[str, int] | None = None,
    show: Show | Mapping[str, Show] = "taxonomy",
    towards: float | Fraction | None = None,
    start: Start = "taxonomy",
    on_step: Step | None = None,
) -> Generalized:
    """The best full-domain generalization that keeps every promise, as a release.

    `metric` is what is kept lowest: "kl", "discernibility", "average", "height" or "loss". `suppress` is the share of
    rows that may be suppressed (shown as `*`); the result is the best node of the whole lattice under that budget.
    `levels` publishes a given node instead, e.g. one of `minimal`'s, if it keeps the promises. `show` says how the
    groups are shown: "taxonomy" (the level), "interval", "set" or "pdf" (the distribution of each group, or with
    `towards` below 1 one between even shares and that).
    """
    require_table("generalize", table)
    required = principles_of(principles)
    budget = budget_of(suppress)
    require_two(table)
    table = only_present(table)
    shows = shows_of(table.quasi, show, default="taxonomy")
    shift = shift_of(shows, towards, start)
    with watched("searching the lattice", on_step) as step:
        lattice = Lattice(table, required, on_step=step)
        if levels is None:
            node, hidden = lattice.best(metric, budget)
        else:
            node = node_of(table, levels)
            found = lattice.suppression(lattice.tally(node), int(budget * table.rows))
            if found is None:
                raise InfeasibleError(failure(lattice, node))
            hidden = found
    method: dict[str, Any] = {
        "name": "generalize", "metric": metric, "suppress": str(suppress), "levels_given": levels is not None,
    }  # fmt: skip
    if set(shows.values()) != {"taxonomy"}:
        method |= {"show": shows, "levels": dict(zip(shows, map(int, node), strict=True))}
    method |= shift.to_dict() if "pdf" in shows.values() else {}
    release = publish(table, lattice.partition(node, hidden), required, method, shows=shows, shift=shift)
    release.search = {"nodes": lattice.nodes, "checked": lattice.checked}
    return release


def minimal(table: Table, principles: Requirement, *, on_step: Step | None = None) -> Nodes:
    """Every minimal generalization that keeps the promises: no column can be shown more finely in any of them."""
    require_table("minimal", table)
    table = only_present(table)
    with watched("searching the lattice", on_step) as step:
        return Lattice(table, principles_of(principles), on_step=step).minimal_nodes()
