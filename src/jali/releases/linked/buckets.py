"""Buckets: quasi-identifiers in one table, sensitive values in another, and only a bucket number between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, Runs, combine, counted
from jali.core.formats import to_native
from jali.core.rows import NumbersOf, Paired, Rows, cells, fresh_order
from jali.core.spill import Written
from jali.errors import InputError, InternalError
from jali.estimates.conditions import BoxColumn
from jali.estimates.link_join import Mass, shuffled_within
from jali.estimates.linked import LinkedEstimate
from jali.principles import AlphaAnonymity, KAnonymity, MultiAttribute
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.releases.base import Bound, Manifest, Reading
from jali.releases.column import Published, restored
from jali.releases.linked.linked import (
    Assignment,
    Linked,
    Members,
    Pairs,
    broken_by,
    counts_of,
    entries_of,
    mass_of,
    paired,
    require_once,
    require_people,
    sized,
    totals_of,
    weight_of,
)
from jali.releases.linked.tables import floats
from jali.releases.summary import NOT_COVERED, VISIBLE, Words, beyond, bucket_summary, individual_line, is_exact
from jali.releases.unheld import Unheld, formulas_in

if TYPE_CHECKING:
    from jali.cover.cover import Cover


def counts_on_size(principle: Principle) -> bool:
    """Whether a promise is about the size of groups: then the individuals of a bucket must show the same."""
    inner = principle.principle if isinstance(principle, MultiAttribute) else principle
    return isinstance(inner, (KAnonymity, AlphaAnonymity))


class Contents(NamedTuple):
    """What the two published tables hold; buckets are counted from 0 here and from 1 where they are published."""

    shown: tuple[Published, ...]  # of the individuals: quasi-identifiers and other columns, each distinct cell once
    pairs: Pairs  # which cells are how often in which bucket
    hidden: tuple[Published, ...]  # the sensitive columns of the buckets' entries
    entries: Runs  # the bucket of each entry
    people: NDArray[np.integer]  # (entries,)
    weight: Floats | None = None  # (buckets,) the mean of each
    names: tuple[str, str, str | None] = ("bucket", "count", None)  # of the number, the count, the weights

    @property
    def buckets(self) -> int:
        """How many buckets there are."""
        return len(self.entries.sizes)

    @property
    def entry_bucket(self) -> NDArray[np.int32]:
        """The bucket of each entry, in order: (entries,)."""
        return self.entries.each

    @property
    def bucket(self) -> NDArray[np.integer]:
        """The bucket of each individual, in published order: (rows,)."""
        return self.pairs.link[self.pairs.order.of]

    @property
    def sizes(self) -> Ints:
        """How many individuals each bucket has: (buckets,)."""
        return counted(self.pairs.link, self.pairs.numbers, self.buckets)

    def require_fit(self, *, alike: bool) -> None:
        """Raise ValueError unless each bucket has as many individuals as values, and each value of it once.

        `alike`: its individuals must also show the same quasi-identifiers.
        """
        require_people(self.people, self.pairs.order.rows)
        size, rows = counted(self.entry_bucket, self.people, self.buckets), self.sizes
        if not np.array_equal(size, rows) or (rows == 0).any():
            raise ValueError("the two tables do not have the same people in each bucket")
        del size, rows
        require_once("bucket", self.hidden, self.entry_bucket)
        if not alike:
            return
        quasi = [(c.held, len(c.labels)) for c in self.shown if c.role == "quasi"]
        cell, _ = combine(quasi, len(self.shown[0].held))
        last, link = np.empty(self.buckets, dtype=np.int64), self.pairs.link
        last[link] = cell[self.pairs.cell]
        if not np.array_equal(last[link], cell[self.pairs.cell]):
            raise ValueError("the individuals of a bucket can be told apart")


class Buckets(Linked):
    """Two tables: who is in which bucket, and how often each bucket has each sensitive value (anatomy)."""

    kind: ClassVar[str] = "buckets"
    words: ClassVar[Words] = Words("bucket", "buckets", "Buckets")

    contents: Contents
    _unheld: Unheld | None = None

    def without_rows(self, unheld: Unheld) -> Self:
        """The release whose individuals are not held: of these, contents know the values, and the sizes of buckets."""
        self._unheld = unheld
        return self

    def _require_rows(self, what: str) -> None:
        if self._unheld is not None:
            do = "save it into a folder, and read its files part by part"
            raise InputError(f"{what} needs all individuals, which are more than memory holds", do=do)

    @property
    def columns(self) -> tuple[Published, ...]:
        """The published columns: those of the individuals, then the sensitive ones."""
        return self.contents.shown + self.contents.hidden

    @property
    def rows(self) -> int:
        """How many individuals were published."""
        return self.contents.pairs.order.rows

    @property
    def group_of_rows(self) -> NDArray[np.integer]:
        """The bucket of each individual, counted from 0: its number less one."""
        self._require_rows("the bucket of each row")
        return self.contents.bucket

    @property
    def counted_tables(self) -> dict[str, Written]:  # made when asked for: a number for each row
        """The individuals with their bucket numbers, and the buckets with their values and counts."""
        held = self.contents
        number, count, weights = held.names
        if self._unheld is not None:
            written = self._unheld.table(held.shown, self.rows, number)
            return {"individuals": written, "buckets": entries_of(held, (number, count))}
        link, weight = held.pairs.link, held.weight
        apart: dict[str, NumbersOf] = {number: lambda some: pa.array(link[some].astype(np.int64) + 1)}
        if weight is not None and weights is not None:
            apart[weights] = lambda some: pa.array(weight[link[some]])
        shown = pa.table({column.name: cells(column.texts, column.held) for column in held.shown})
        individuals = Paired(shown, held.pairs.order, held.pairs.cell, apart)
        return {"individuals": individuals, "buckets": entries_of(held, (number, count))}

    @property
    def named_columns(self) -> Mapping[str, Sequence[str]]:
        """The names of all columns of both tables."""
        held = self.contents
        number, count, weights = held.names
        shown = [*(column.name for column in held.shown), number, *([] if weights is None else [weights])]
        return {"individuals": shown, "buckets": [number, *(column.name for column in held.hidden), count]}

    @property
    def judged(self) -> Mapping[str, Sequence[str]]:
        """Of individuals their buckets, unless a promise says that they look alike."""
        number, _, weights = self.contents.names
        alike = any(map(counts_on_size, self.principles))
        return {} if alike or weights is not None else {"individuals": [number]}

    def _read_back(self, place: str | Path, read: Reading) -> Self:
        """The release that was written, as far as promises are about it."""
        tables, manifest = read()
        if self.judged:
            kept = [facts for facts in manifest["columns"] if facts["role"] in ("sensitive", "bucket", "count")]
            manifest = manifest | {"columns": kept}
        return self.restored(place, tables, manifest)

    def shared_by(self, columns: tuple[Published, ...]) -> Ints:
        """How many rows show the same in these columns; where they are not held, portion by portion."""
        if self._unheld is not None and self._unheld.has(columns):
            return self._unheld.shared_by(columns, self.contents.shown)
        return super().shared_by(columns)

    def formula_columns(self) -> tuple[str, ...]:
        """The published text columns with a cell that begins with =, +, - or @, which spreadsheets run."""
        return super().formula_columns() if self._unheld is None else formulas_in(self.columns)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The same tables row by row."""
        return {name: rows.plain() for name, rows in self.counted_tables.items()}

    @property
    def groups(self) -> pa.Table:
        """The buckets: their numbers, and how many rows each has."""
        size = self.contents.sizes
        return pa.table({self.contents.names[0]: pa.array(np.arange(1, len(size) + 1)), "rows": pa.array(size)})

    def frame(self, kind: str | None = None) -> Any:
        """The published individuals with their bucket numbers, in the kind of frame that came in, or as asked."""
        return to_native(self.tables["individuals"], self.origin if kind is None else kind)

    def permuted(self, kind: str | None = None) -> Any:
        """The individuals, each with a sensitive value of the bucket: dealt out anew, at random, at every call.

        It is drawn from the published tables and the system's own randomness, so it says no more than they do: who
        got which value means nothing, and any number of such tables say nothing either.
        """
        self._require_rows("dealing values out")
        held = self.contents
        own, people = (each.astype(np.int64) for each in (held.entry_bucket, held.people))
        entry = shuffled_within(own, people, held.bucket.astype(np.int64), fresh_order(self.rows))
        dealt = pa.array(entry)
        values = self.tables["buckets"].select([column.name for column in held.hidden]).take(dealt)
        table = self.tables["individuals"]
        for column in held.hidden:
            table = table.append_column(column.name, values[column.name])
        return to_native(table, self.origin if kind is None else kind)

    def remember(self, assigned: Assignment) -> None:
        """Keep the bucket of each row of the original, in memory only."""
        self._assigned = assigned

    def column_line(self, column: Published) -> str:
        """How a column is published; individuals can show their quasi-identifiers as they are."""
        return individual_line(column) if column.role == "quasi" else super().column_line(column)

    def promised(self, principle: Principle) -> str:
        """What a promise means where groups are buckets."""
        return f"where a group is a bucket, {super().promised(principle)}"

    def counts(self) -> Counts:
        """People by bucket and sensitive value, from the table of buckets."""
        return counts_of(self.contents.hidden, self.contents.entry_bucket, self.contents.people)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the promises do not speak of.

        An attacker who knows that people were dealt at random learns nothing from it: all tables that fit the buckets
        lead to them equally often.
        """
        dealt = self.manifest.method["buckets"] == "anatomy"
        told = (beyond(self.principles), *(NOT_COVERED[2:] if dealt else self.limits))
        return (VISIBLE, *told) if any(map(is_exact, self.of_role("quasi"))) else told

    @property
    def disclosure_bound(self) -> Bound:
        """Exact: everybody's bucket is published."""
        return "exact"

    def verify(self) -> None:
        """Judge every promise again from the published tables alone, and whether the two tables fit."""
        try:
            self.contents.require_fit(alike=any(map(counts_on_size, self.principles)))
        except ValueError as problem:
            raise InternalError(f"{problem}; nothing was written: please report this bug") from None
        if broken := self.broken():
            raise InternalError(
                f"the release does not keep {', '.join(map(repr, broken))}; nothing was written: please report this bug"
            )

    def broken(self) -> list[Principle]:
        """The promises that some bucket does not keep."""
        held = self.contents
        return broken_by(self.principles, held.hidden, held.entry_bucket, held.people)

    def kept(self) -> dict[str, bool]:
        """Whether each promise is kept, from the published tables alone."""
        broken = self.broken()
        return {repr(principle): principle not in broken for principle in self.principles}

    def totals(self) -> list[Ints]:
        """The sizes of the buckets, largest first, and the people of each sensitive value."""
        return totals_of(self.contents)

    def estimate(self) -> LinkedEstimate:
        """What an analyst can infer from the two tables."""
        return self.linked({})

    def inferred(self, cover_of: Callable[[Published], Cover]) -> LinkedEstimate:
        """The estimate where the cells of quasi-identifiers cover what `cover_of` says."""
        return self.linked({column.name: cover_of(column) for column in self.of_role("quasi")})

    def linked(self, covers: Mapping[str, Any]) -> LinkedEstimate:
        """The estimate, with other covers for some columns."""
        self._require_rows("an estimate")
        held = self.contents
        shown, hidden = (
            [BoxColumn(c.name, c.kind, c.role, covers.get(c.name, c.cover), c.held) for c in columns]
            for columns in (held.shown, held.hidden)
        )
        own, people = (each.astype(np.int64, copy=False) for each in (held.entry_bucket, held.people))
        pairs = held.pairs
        return LinkedEstimate.of_pairs(
            shown, pairs.cell, pairs.link, pairs.order, hidden, own, people, weight=held.weight
        )  # fmt: skip

    def mass(self, cover_of: Callable[[Published], Cover]) -> Mass:
        """The mass of exact cells of the quasi-identifiers and sensitive columns; `cover_of` says what cells cover."""
        return mass_of(self.contents.shown, self.contents.pairs, self.contents, cover_of)

    def columns_facts(self) -> list[dict[str, Any]]:
        """What the manifest says of each column."""
        names = zip(("bucket", "count", "weights"), self.contents.names, strict=True)
        own = [{"name": name, "role": role, "kind": "number"} for role, name in names if name is not None]
        return [column.to_dict() for column in self.columns] + own

    @classmethod
    def from_tables(cls, tables: Mapping[str, Rows], manifest: Mapping[str, Any]) -> Self:
        """The release that was saved as these tables."""
        names = {facts["role"]: facts["name"] for facts in manifest["columns"]}
        told = [facts for facts in manifest["columns"] if facts["role"] not in ("bucket", "count", "weights")]
        number, count, weights = names["bucket"], names["count"], names.get("weights")
        facts = Manifest.from_dict(manifest)
        read = Members.of(tables["individuals"], number)
        shown = [restored(f, read.shown[f["name"]]) for f in told if f["role"] != "sensitive"]
        weight = None if weights is None else weight_of("bucket", read.each(floats(read.shown[weights])), read.link)
        alike = any(map(counts_on_size, facts.principles))
        if shown and (read.in_order or alike):
            columns, pairs = paired(shown, read.link, **read.how)
        else:  # only the promises are judged, which ask for the sizes of buckets
            columns, pairs = tuple(shown), sized(read)
        del read  # which may have a number for every row
        entries = Members.of(tables["buckets"], number, as_rows=True)
        hidden = [restored(f, entries.shown[f["name"]]) for f in told if f["role"] == "sensitive"]
        contents = Contents(columns, pairs, *entries.entries(hidden, count), weight, (number, count, weights))
        del entries
        contents.require_fit(alike=alike)
        if (facts.counts["rows"], facts.counts["groups"]) != (pairs.order.rows, contents.buckets):
            raise ValueError("the manifest counts something else")
        return cls(contents, facts)

    def __repr__(self) -> str:
        return bucket_summary(self)
