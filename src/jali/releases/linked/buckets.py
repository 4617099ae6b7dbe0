"""Buckets: quasi-identifiers in one table, sensitive values in another, and only a bucket number between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from jali.core.arrays import Floats, Ints, combine
from jali.core.formats import to_native
from jali.core.rows import Rows, fresh_order
from jali.errors import InternalError
from jali.estimates.conditions import BoxColumn
from jali.estimates.link_join import shuffled_within
from jali.estimates.linked import LinkedEstimate
from jali.principles import AlphaAnonymity, KAnonymity, MultiAttribute
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.releases.base import Bound, Manifest
from jali.releases.column import Published, restored, whole_numbers
from jali.releases.linked.tables import Linked, counts_of, floats, weight_of
from jali.releases.summary import NOT_COVERED, VISIBLE, Words, beyond, bucket_summary, individual_line, is_exact

if TYPE_CHECKING:
    from jali.cover.cover import Cover


def counts_on_size(principle: Principle) -> bool:
    """Whether a promise is about the size of groups: then the individuals of a bucket must show the same."""
    inner = principle.principle if isinstance(principle, MultiAttribute) else principle
    return isinstance(inner, (KAnonymity, AlphaAnonymity))


class Contents(NamedTuple):
    """What the two published tables hold; buckets are counted from 0 here and from 1 where they are published."""

    shown: tuple[Published, ...]  # of the individuals: quasi-identifiers and other columns
    bucket: Ints  # (rows,)
    hidden: tuple[Published, ...]  # the sensitive columns of the buckets' entries
    entry_bucket: Ints  # (entries,) sorted
    people: Ints  # (entries,)
    weight: Floats | None = None  # (buckets,) the mean of each
    names: tuple[str, str, str | None] = ("bucket", "count", None)  # of the number, the count, the weights

    def require_fit(self, *, alike: bool) -> None:
        """Raise ValueError unless each bucket has as many individuals as values, and each value of it once.

        `alike`: its individuals must also show the same quasi-identifiers.
        """
        buckets = int(self.entry_bucket.max(initial=-1)) + 1
        size = np.bincount(self.entry_bucket, self.people, minlength=buckets)
        rows = np.bincount(self.bucket, minlength=buckets)
        if (self.people < 1).any() or not np.array_equal(size, rows) or (rows == 0).any():
            raise ValueError("the two tables do not have the same people in each bucket")
        keys = [(self.entry_bucket, buckets), *((c.codes, len(c.labels)) for c in self.hidden)]
        if len(combine(keys, len(self.people))[1]) < len(self.people):
            raise ValueError("a bucket names a value twice")
        keys = [(self.bucket, buckets), *((c.codes, len(c.labels)) for c in self.shown if c.role == "quasi")]
        if alike and len(combine(keys, len(self.bucket))[1]) > buckets:
            raise ValueError("the individuals of a bucket can be told apart")


class Buckets(Linked):
    """Two tables: who is in which bucket, and how often each bucket has each sensitive value (anatomy)."""

    kind: ClassVar[str] = "buckets"
    words: ClassVar[Words] = Words("bucket", "buckets", "Buckets")

    contents: Contents

    @property
    def columns(self) -> tuple[Published, ...]:
        """The published columns: those of the individuals, then the sensitive ones."""
        return self.contents.shown + self.contents.hidden

    @property
    def rows(self) -> int:
        """How many individuals were published."""
        return len(self.contents.bucket)

    @property
    def group_of_rows(self) -> Ints:
        """The bucket of each individual, counted from 0: its number less one."""
        return self.contents.bucket

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The individuals with their bucket numbers, and the buckets with their values and counts."""
        held = self.contents
        number, count, weights = held.names
        individuals = {column.name: column.shown() for column in held.shown} | {number: pa.array(held.bucket + 1)}
        if held.weight is not None and weights is not None:
            individuals[weights] = pa.array(held.weight[held.bucket])
        buckets = {number: pa.array(held.entry_bucket + 1)} | {column.name: column.shown() for column in held.hidden}
        return {"individuals": pa.table(individuals), "buckets": pa.table(buckets | {count: pa.array(held.people)})}

    @property
    def groups(self) -> pa.Table:
        """The buckets: their numbers, and how many rows each has."""
        size = np.bincount(self.contents.bucket)
        return pa.table({self.contents.names[0]: pa.array(np.arange(1, len(size) + 1)), "rows": pa.array(size)})

    def frame(self, kind: str | None = None) -> Any:
        """The published individuals with their bucket numbers, in the kind of frame that came in, or as asked."""
        return to_native(self.tables["individuals"], self.origin if kind is None else kind)

    def permuted(self, kind: str | None = None) -> Any:
        """The individuals, each with a sensitive value of the bucket: dealt out anew, at random, at every call.

        It is drawn from the published tables and the system's own randomness, so it says no more than they do: who
        got which value means nothing, and any number of such tables say nothing either.
        """
        held = self.contents
        entry = shuffled_within(held.entry_bucket, held.people, held.bucket, fresh_order(self.rows))
        dealt = pa.array(entry)
        values = self.tables["buckets"].select([column.name for column in held.hidden]).take(dealt)
        table = self.tables["individuals"]
        for column in held.hidden:
            table = table.append_column(column.name, values[column.name])
        return to_native(table, self.origin if kind is None else kind)

    def remember(self, assigned: Ints) -> None:
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
        super().verify()

    def estimate(self) -> LinkedEstimate:
        """What an analyst can infer from the two tables."""
        return self.linked({})

    def inferred(self, cover_of: Callable[[Published], Cover]) -> LinkedEstimate:
        """The estimate where the cells of quasi-identifiers cover what `cover_of` says."""
        return self.linked({column.name: cover_of(column) for column in self.of_role("quasi")})

    def linked(self, covers: Mapping[str, Any]) -> LinkedEstimate:
        """The estimate, with other covers for some columns."""
        held = self.contents
        shown, hidden = (
            [BoxColumn(c.name, c.kind, c.role, covers.get(c.name, c.cover), c.codes) for c in columns]
            for columns in (held.shown, held.hidden)
        )
        return LinkedEstimate.from_rows(shown, held.bucket, hidden, held.entry_bucket, held.people, weight=held.weight)

    def columns_facts(self) -> list[dict[str, Any]]:
        """What the manifest says of each column."""
        names = zip(("bucket", "count", "weights"), self.contents.names, strict=True)
        own = [{"name": name, "role": role, "kind": "number"} for role, name in names if name is not None]
        return [column.to_dict() for column in self.columns] + own

    @classmethod
    def from_tables(cls, tables: Mapping[str, Rows], manifest: Mapping[str, Any]) -> Self:
        """The release that was saved as these tables."""
        individuals, buckets = tables["individuals"].coded(), tables["buckets"].coded()
        names = {facts["role"]: facts["name"] for facts in manifest["columns"]}
        told = [facts for facts in manifest["columns"] if facts["role"] not in ("bucket", "count", "weights")]
        number, count, weights = names["bucket"], names["count"], names.get("weights")
        bucket, entry_bucket = whole_numbers(individuals[number]) - 1, whole_numbers(buckets[number]) - 1
        contents = Contents(
            tuple(restored(f, individuals[f["name"]]) for f in told if f["role"] != "sensitive"),
            bucket,
            tuple(restored(f, buckets[f["name"]]) for f in told if f["role"] == "sensitive"),
            entry_bucket,
            whole_numbers(buckets[count]),
            None if weights is None else weight_of("bucket", floats(individuals[weights]), bucket),
            (number, count, weights),
        )
        facts = Manifest.from_dict(manifest)
        contents.require_fit(alike=any(map(counts_on_size, facts.principles)))
        if (facts.counts["rows"], facts.counts["groups"]) != (len(bucket), int(entry_bucket.max()) + 1):
            raise ValueError("the manifest counts something else")
        if (np.diff(entry_bucket) < 0).any():
            raise ValueError("the buckets are not in order")
        return cls(contents, facts)

    def __repr__(self) -> str:
        return bucket_summary(self)
