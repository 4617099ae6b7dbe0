"""Generalized releases: one table, generalized by level, cut into boxes, or recoded locally."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine, counted
from jali.core.formats import free_name
from jali.core.rows import Order, Places, Rows, cells
from jali.core.spill import Written
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InputError
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn
from jali.principles.base import Combined, Principle, exact
from jali.principles.counts import Counts
from jali.releases.base import Bound, Manifest, Reading, Release
from jali.releases.column import Published, restored, shown_alike
from jali.releases.facts import LevelFacts
from jali.releases.group_facts import GroupFacts, NodeFacts
from jali.releases.people import PEOPLE, people_counts
from jali.releases.summary import SEVERAL_ROWS, UNKNOWN_PRESENCE, beyond, summary

if TYPE_CHECKING:
    from jali.cover.cover import Cover
    from jali.releases.presence import Presence
    from jali.releases.unheld import Unheld
    from jali.search.layout import Peel

Requirement = Principle | Combined | Iterable[Principle | Combined]


class _Home(NamedTuple):
    """Where the rows of the original went: for each of its records, or combinations, one of the records given."""

    of: Ints
    records: int
    by_combination: bool


class Generalized(Release):
    """A table with generalized quasi-identifiers and exact sensitive values, in random order."""

    kind: ClassVar[str] = "generalized"

    def __init__(
        self, columns: tuple[Published, ...], manifest: Manifest, *, numbers: Ints | None = None,
        weight: NDArray[np.float64] | None = None, weight_name: str | None = None, people: pa.Table | None = None,
        origin: str = "arrow", of: Places | None = None, unheld: Unheld | None = None,
    ) -> None:  # fmt: skip
        """The release of rows, or of records that stand for `numbers` rows each; `of` is the record of each row.

        `unheld` are further columns, whose rows are not held.
        It keeps distinct rows with their numbers, in an order that follows from what they show and from nothing else.
        """
        held = [column.codes if numbers is None else column.held for column in columns]
        record, first = shown_alike(columns, held, *(() if weight is None else (weight,)))
        self._order = Order(counted(record, numbers, len(first)), None if of is None else record[of])
        self._columns = tuple(
            replace(column, held=codes[first], order=self._order) for column, codes in zip(columns, held, strict=True)
        )
        self.manifest, self.origin = manifest, origin
        self._weight, self._weight_name = None if weight is None else weight[first], weight_name
        self.people = people  # people by group and value, where a person can have several rows
        self.search: Mapping[str, int] = {}
        self._records = record  # (records,) the distinct row of each that was given
        self._home: _Home | None = None  # for the holder; never saved
        self._unheld = unheld

    @property
    def columns(self) -> tuple[Published, ...]:
        """The published columns, in the order of the table."""
        return self._columns if self._unheld is None else self._unheld.among(self._columns)

    @property
    def grouped_rows(self) -> Generalized:
        """The published table itself."""
        return self

    @property
    def rows(self) -> int:
        """How many rows were published."""
        return self._order.rows

    @property
    def numbers(self) -> Ints:
        """How many rows each distinct published row stands for: (distinct rows,)."""
        return self._order.numbers

    @property
    def distinct_weight(self) -> NDArray[np.float64] | None:
        """The weight of each distinct row, if there are weights: (distinct rows,)."""
        return self._weight

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """The weight of each published row, in published order, if there are weights: (rows,)."""
        return None if self._weight is None else self._weight[self._order.of]

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
    def counted_tables(self) -> dict[str, Written]:
        """The published table as its distinct rows, and a table of people where a person can have several rows."""
        unheld = self._unheld
        tables: dict[str, Written]
        tables = {"data": self._held_rows if unheld is None else unheld.table(self.columns, self.rows)}
        return tables if self.people is None else tables | {"people": Rows(self.people)}

    @property
    def named_columns(self) -> Mapping[str, Sequence[str]]:
        """The names of all columns of each published table, as often as the manifest names them."""
        weights = [] if self._weight_name is None else [self._weight_name]
        return {**super().named_columns, "data": [*(column.name for column in self.columns), *weights]}

    @cached_property
    def _held_rows(self) -> Rows:
        """The columns of the published table that are held."""
        data = {column.name: cells(column.texts, column.held) for column in self._columns}
        if self._weight is not None and self.weight_name is not None:
            data[self.weight_name] = pa.array(self._weight).dictionary_encode()
        return Rows(pa.table(data), self._order)

    @property
    def judged(self) -> Mapping[str, Sequence[str]]:
        """No promise is about columns that are published as they are and not sensitive."""
        kept = [column.name for column in self.columns if column.role in ("quasi", "sensitive")]
        kept += [] if self.weight_name is None else [self.weight_name]
        return {"data": kept} if len(kept) < len(self.columns) + (self.weight_name is not None) else {}

    def _read_back(self, place: str | Path, read: Reading) -> Self:
        """The release that was written, as far as promises are about it."""
        tables, manifest = read()
        kept = self.judged.get("data")
        if kept is not None:
            manifest = manifest | {"columns": [facts for facts in manifest["columns"] if facts["name"] in kept]}
        return self.restored(place, tables, manifest)

    def formula_columns(self) -> tuple[str, ...]:
        """The published text columns with a cell that begins with =, +, - or @, which spreadsheets run."""
        if self._unheld is None:
            return super().formula_columns()
        from jali.releases.unheld import formulas_in

        return formulas_in(self.columns)

    def shared_by(self, columns: tuple[Published, ...]) -> Ints:
        """How many rows show the same in these columns; where they are not all held, portion by portion."""
        unheld = self._unheld
        if unheld is not None and unheld.has(columns):
            return unheld.shared_by(columns, self.columns)
        return super().shared_by(columns)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The published table, and a table of people where a person can have several rows."""
        return {name: rows.plain() for name, rows in self.counted_tables.items()}

    @cached_property
    def grouping(self) -> tuple[NDArray[np.int32], Ints]:
        """The group of each distinct row, numbered by the cells that it shows, and a distinct row of each group."""
        return combine([(c.held, len(c.labels)) for c in self.of_role("quasi")], len(self.numbers))

    @property
    def individuals(self) -> pa.Table:
        """The published quasi-identifiers of each row, in published order."""
        held = self.tables["data"] if self._unheld is None else self._held_rows.plain()
        return held.select([column.name for column in self.of_role("quasi")])

    @property
    def group_of_rows(self) -> NDArray[np.int32]:
        """The group of each published row, in published order."""
        return self.grouping[0][self._order.of]

    @cached_property
    def sizes(self) -> Ints:
        """How many rows each group has: (groups,)."""
        return counted(self.grouping[0], self.numbers)

    @property
    def hidden_rows(self) -> NDArray[np.bool_]:
        """Which published rows are suppressed, in published order."""
        return self.hidden[self._order.of]

    @property
    def suppressed(self) -> int:
        """How many published rows are suppressed."""
        return int(self.numbers[self.hidden].sum())

    @property
    def hidden_groups(self) -> Ints:
        """The groups of suppressed rows: one at the most, unless suppressed rows show something."""
        return np.unique(self.grouping[0][self.hidden]).astype(np.int64)

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Which distinct rows are suppressed: those that show * everywhere though the columns are shown below it."""
        quasi = self.of_role("quasi")
        if not all(facts.hidden for column in quasi if isinstance(facts := column.facts, GroupFacts)):
            return np.zeros(len(self.numbers), dtype=bool)
        tops = all(isinstance(column.facts, LevelFacts) and column.facts.always_root for column in quasi)
        return self._all_roots & (not tops)

    @property
    def _all_roots(self) -> NDArray[np.bool_]:
        """Which distinct rows show * everywhere."""
        roots = np.ones(len(self.numbers), dtype=bool)
        for column in self.of_role("quasi"):
            roots &= False if column.cover_root is None else column.held == column.cover_root
        return roots

    def assignment(self, table: Table) -> Ints:
        """The group of each row of the original, by its place in `groups`: for its holder, and never saved."""
        group = self.group_of_records(table) if isinstance(table, Table) else None
        if group is None:
            raise InputError(
                "only a release that was just made from this table knows where its rows went",
                do="make it again: what is saved cannot be traced back",
            )
        return group if table.multiplicity is None else np.repeat(group, table.multiplicity)

    def group_of_records(self, table: Table) -> Ints | None:
        """The group of each record of the original; None where this release was not just made from it."""
        home = self._home
        if home is None or home.records != table.records:
            return None
        group = self.grouping[0][self._records[home.of]].astype(np.int64)
        if not home.by_combination:
            return group
        known = table.frequencies.combinations == len(group)
        return group[table.frequencies.row_combination] if known else None

    def remember(self, of: Ints, records: int, *, by_combination: bool) -> None:
        """Keep which of the given records each record, or each combination, of the original is in; in memory only."""
        self._home = _Home(of, records, by_combination)

    def __getstate__(self) -> dict[str, Any]:
        """A pickled release does not know where the original's rows went."""
        return self.__dict__ | {"_home": None, "_records": None}

    @property
    def groups(self) -> pa.Table:
        """The published groups: what each shows and how many rows it has."""
        first = self.grouping[1]
        shown = {c.name: c.labels.take(pa.array(c.held[first])) for c in self.of_role("quasi")}
        return pa.table([*shown.values(), pa.array(self.sizes)], names=[*shown, free_name("rows", shown)])

    def counts(self) -> Counts:
        """People by published group and sensitive value."""
        if self.people is None:
            return self.entries[0]
        many: Any = {"numbers": self.numbers, "everyone": self.manifest.counts["people"]}
        return people_counts(self.people, self.columns, self.grouping, self.principles, **many)

    @cached_property
    def entries(self) -> tuple[Counts, NDArray[np.int32]]:
        """Published rows by group and joint value, sorted by both, and the entry that each distinct row is in."""
        number, first = self.grouping
        sensitive = self.of_role("sensitive")
        codes = [(c.judged[1][c.held], len(c.judged[0])) for c in sensitive if c.judged is not None]
        value, value_first = combine(codes, len(number))
        joint = np.stack([c[value_first] for c, _ in codes], axis=1) if codes else np.zeros((1, 0), dtype=np.int64)
        entry, entry_first = combine([(number, len(first)), (value, len(joint))], len(number))
        counts = Counts(
            len(first),
            number[entry_first].astype(np.int64),
            value[entry_first].astype(np.int64),
            counted(entry, self.numbers),
            tuple(c.judged[0] for c in sensitive if c.judged is not None),
            joint.astype(np.int64),
        )
        return counts, entry

    def estimate(self) -> BoxEstimate:
        """What an analyst can infer from the published table."""
        shown = (column for column in self._columns if column.role != "identifier")
        return self._estimate(tuple(BoxColumn(c.name, c.kind, c.role, c.cover, c.held) for c in shown))

    def inferred(self, cover_of: Callable[[Published], Cover]) -> BoxEstimate:
        """The estimate of quasi-identifiers and sensitive columns where cells cover what `cover_of` says."""
        shown = [column for column in self.columns if column.role in ("quasi", "sensitive")]
        covers = [cover_of(c) if c.role == "quasi" else c.cover for c in shown]
        columns = [BoxColumn(c.name, c.kind, c.role, cover, c.held) for c, cover in zip(shown, covers, strict=True)]
        return self._estimate(tuple(columns))

    def _estimate(self, columns: tuple[BoxColumn, ...]) -> BoxEstimate:
        mass = self.numbers if self._weight is None else self.numbers * self._weight
        return BoxEstimate.from_rows(columns, mass.astype(np.float64), order=self._order)

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
        return "at most" if self._crossing or bool(self.hidden.any()) else "exact"

    @property
    def _crossing(self) -> bool:
        """Whether groups are shown by more than they are: by rounded ends, other values, or across nodes."""
        facts = [column.facts for column in self.of_role("quasi")]
        return any(isinstance(f, GroupFacts) and f.overlapping for f in facts)

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
    def from_tables(cls, tables: Mapping[str, Rows], manifest: Mapping[str, Any]) -> Self:
        """The release that was saved as these tables."""
        rows = tables["data"]
        data = rows.distinct
        columns, weight, weight_name = [], None, None
        for facts in manifest["columns"]:
            if facts["role"] == "weights":
                weight_name = facts["name"]
                texts = data[weight_name].cast(pa.string()).combine_chunks()
                weight = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
                continue
            columns.append(restored(facts, data[facts["name"]]))
        people = tables["people"].plain() if "people" in tables else None
        if people is not None:
            kinds = {name: pa.int64() if name == PEOPLE else pa.string() for name in people.column_names}
            people = pa.table({name: people[name].cast(kind) for name, kind in kinds.items()})
        facts = Manifest.from_dict(manifest)
        held: Any = {"numbers": rows.numbers, "of": rows.of if rows.order is None or rows.order.known else None}
        made = cls(tuple(columns), facts, **held, weight=weight, weight_name=weight_name, people=people)
        told = (facts.counts["rows"], facts.counts["groups"], facts.counts["suppressed"])
        if told != (made.rows, len(made.sizes), made.suppressed):
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
    def hidden(self) -> NDArray[np.bool_]:
        """Which distinct rows are suppressed: those that show * everywhere, if they are within the budget for it.

        Otherwise nobody asked for suppression, and they are a group like any other.
        """
        hidden = self._all_roots
        budget = exact("suppress", self.manifest.method.get("suppress", 0))
        return hidden & (int(self.numbers[hidden].sum()) <= budget * self.rows)


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
    """The jali table that is given; InputError for anything else, and for a table beyond memory."""
    if isinstance(given, LargeTable):
        raise given.refused(f"presence in the {which} table")
    if not isinstance(given, Table):
        raise InputError(f"the {which} table must be a jali table", do="use jali.read or jali.table")
    return given
