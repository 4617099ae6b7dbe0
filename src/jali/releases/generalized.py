"""Generalized releases: one table, generalized by level, cut into boxes, or recoded locally."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine, counted
from jali.core.formats import free_name
from jali.encoding.table import Table
from jali.errors import InputError
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn
from jali.principles.base import Combined, Principle, exact
from jali.principles.counts import Counts
from jali.releases.base import Bound, Manifest, Release
from jali.releases.column import Published, restored
from jali.releases.facts import LevelFacts
from jali.releases.group_facts import GroupFacts, IntervalFacts, NodeFacts
from jali.releases.people import people_counts
from jali.releases.summary import SEVERAL_ROWS, UNKNOWN_PRESENCE, beyond, summary
from jali.search.layout import Peel

if TYPE_CHECKING:
    from jali.cover.cover import Cover
    from jali.releases.presence import Presence

Requirement = Principle | Combined | Iterable[Principle | Combined]


class Generalized(Release):
    """A table with generalized quasi-identifiers and exact sensitive values, in random order."""

    kind: ClassVar[str] = "generalized"

    def __init__(
        self, columns: tuple[Published, ...], manifest: Manifest, *, weight: NDArray[np.float64] | None = None,
        weight_name: str | None = None, people: pa.Table | None = None, origin: str = "arrow",
    ) -> None:  # fmt: skip
        self._columns, self.manifest, self.origin = columns, manifest, origin
        self.weight, self._weight_name = weight, weight_name
        self.people = people  # people by group and value, where a person can have several rows
        self.search: Mapping[str, int] = {}
        self._places: Ints | None = None  # (records,) a published row of each record, for the holder; never saved

    @property
    def columns(self) -> tuple[Published, ...]:
        """The published columns, in the order of the table."""
        return self._columns

    @property
    def grouped_rows(self) -> Generalized:
        """The published table itself."""
        return self

    @property
    def rows(self) -> int:
        """How many rows were published."""
        return len(self._columns[0].codes)

    @property
    def weight_name(self) -> str | None:
        """The published column of weights, if there is one."""
        return self._weight_name

    @property
    def levels(self) -> dict[str, int]:
        """The level of each quasi-identifier, published or only behind the groups; none in a partition."""
        if "levels" in self.manifest.method:
            return dict(self.manifest.method["levels"])
        return {column.name: column.level for column in self.of_role("quasi") if not column.generalized_by_group}

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The published table, and a table of people where a person can have several rows."""
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
        if not all(facts.hidden for column in quasi if isinstance(facts := column.facts, GroupFacts)):
            return np.zeros(self.rows, dtype=bool)
        tops = all(isinstance(column.facts, LevelFacts) and column.facts.always_root for column in quasi)
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
            counted(entry),
            tuple(c.judged[0] for c in sensitive if c.judged is not None),
            joint.astype(np.int64),
        )
        return counts, entry

    def estimate(self) -> BoxEstimate:
        """What an analyst can infer from the published table."""
        columns = tuple(BoxColumn(c.name, c.kind, c.role, c.cover, c.codes) for c in self.columns)
        return BoxEstimate.from_rows(columns, self.weight)

    def inferred(self, cover_of: Callable[[Published], Cover]) -> BoxEstimate:
        """The estimate of quasi-identifiers and sensitive columns where cells cover what `cover_of` says."""
        shown = [column for column in self.columns if column.role != "other"]
        covers = [cover_of(c) if c.role == "quasi" else c.cover for c in shown]
        columns = [BoxColumn(c.name, c.kind, c.role, cover, c.codes) for c, cover in zip(shown, covers, strict=True)]
        return BoxEstimate.from_rows(tuple(columns), self.weight)

    @property
    def _never_covered(self) -> tuple[str, ...]:
        """What no promise of such a release speaks of, however its cells are shown."""
        return (beyond(self.principles), *self.limits)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the promises do not speak of."""
        several = () if self.people is None else (SEVERAL_ROWS,)
        unknown = (UNKNOWN_PRESENCE,) if "pdf_assumes" in self.manifest.method else ()
        return (*self._never_covered, *several, *unknown)

    @property
    def disclosure_bound(self) -> Bound:
        """Exact, unless rows are suppressed or intervals are shown across the nodes that were cut."""
        return "at most" if self._crossing or bool(self.hidden_rows.any()) else "exact"

    @property
    def _crossing(self) -> bool:
        """Whether groups are shown by intervals across the nodes that were cut."""
        facts = [column.facts for column in self.of_role("quasi")]
        return any(isinstance(f, IntervalFacts) and f.crossing for f in facts)

    def presence(self, public: Table | None = None) -> Presence:
        """For each person of the public table the probability of being in this one, from the published cells alone."""
        from jali.releases.presence import presence_of

        known = self.public_table if public is None else require_jali_table("public", public)
        if known is None:
            do = "use release.beside(public)" if self.hides_presence else "pass it: release.presence(public)"
            raise InputError("presence can only be told beside the public table", do=do)
        return presence_of(self, known)

    def columns_facts(self) -> list[dict[str, Any]]:
        """What the manifest says of each column."""
        return [column.to_dict() for column in self.columns] + (
            [{"name": self.weight_name, "role": "weights", "kind": "number"}] if self.weight_name else []
        )

    @classmethod
    def from_tables(cls, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any]) -> Self:
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
        return summary(self)


class Partitioned(Generalized):
    """A table whose quasi-identifiers each group shows as tightly as its own values allow."""

    kind: ClassVar[str] = "partitioned"

    @property
    def disclosure_bound(self) -> Bound:
        """Exact for a strict partition whose groups show no more than they are, and no row is suppressed."""
        facts = [column.facts for column in self.of_role("quasi")]
        wider = any(isinstance(f, NodeFacts) and f.family != "taxonomy" for f in facts)
        strict = self.manifest.method.get("mode") == "strict"
        overlap = self._crossing or wider or not strict or self.manifest.counts.get("suppressed", 0)
        return "at most" if overlap else "exact"

    @cached_property
    def hidden_rows(self) -> NDArray[np.bool_]:
        """Which published rows are suppressed: those that show * everywhere, if they are within the budget for it.

        Otherwise nobody asked for suppression, and they are a group like any other.
        """
        hidden = np.ones(self.rows, dtype=bool)
        for column in self.of_role("quasi"):
            hidden &= False if column.cover_root is None else column.codes == column.cover_root
        budget = exact("suppress", self.manifest.method.get("suppress", 0))
        return hidden & (int(hidden.sum()) <= budget * self.rows)


KNOWN_ALGORITHM: dict[Peel, str] = {
    "size": "whoever knows the algorithm can at times tell of classes published together that one failed, and which",
    "principle": "whoever knows the algorithm can often tell which classes failed the promises before they were merged",
}
"""What the way of peeling can give away; saved with the release, and true of every release that is made so."""


class Recoded(Partitioned):
    """A table recoded group by group."""

    kind: ClassVar[str] = "recoded"

    @property
    def disclosure_bound(self) -> Bound:
        """An upper bound: groups of local recoding overlap."""
        return "at most"


def require_jali_table(which: str, given: object) -> Table:
    """The jali table that is given, or an InputError."""
    if not isinstance(given, Table):
        raise InputError(f"the {which} table must be a jali table", do="use jali.read or jali.table")
    return given
