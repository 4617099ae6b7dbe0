"""What an ANGEL release publishes: batches of sensitive values, and tables of generalized quasi-identifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import (
    Floats,
    Ints,
    Runs,
    SumsByKey,
    counted,
    portions,
    runs_of,
    starts,
)
from jali.core.charts import Picture, clipped
from jali.core.rows import NumbersOf, Paired, Rows, cells
from jali.core.sketch import COLOURS
from jali.errors import InputError
from jali.estimates.link_join import TABLED
from jali.principles.counts import Counts
from jali.releases.column import Published, restored
from jali.releases.linked.linked import Members, counts_of, paired, require_once, require_people, values_of, weight_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = 2**40
"""A posterior is judged as counts of this many people; a share above 0 is rounded up to at least one of them."""


class GroupTable:
    """Generalized quasi-identifiers of everybody: distinct cells, each a bucket, and how often each is in each batch.

    The constructor takes records as `paired` does; without batches, a record's weight is the mean of its bucket.
    """

    def __init__(
        self, name: str, columns: Sequence[Published], batch: NDArray[np.integer] | None,
        weight: Floats | None = None, **how: Any,
    ) -> None:  # fmt: skip
        self.name, self.linked = name, batch is not None
        known, link = (None, batch) if weight is None else np.unique(weight, return_inverse=True)
        if link is None:
            member = how.get("member")
            link = np.zeros(len(columns[0].held) if member is None else len(member), dtype=np.int32)
        self.columns, self.pairs = paired(columns, link.reshape(-1), **(how or {"given": True}))
        self.weight = None if known is None else known[self.pairs.link]  # (pairs,) where there is no batch to say it

    @property
    def rows(self) -> int:
        """How many people it shows."""
        return self.pairs.order.rows

    @property
    def batch(self) -> Ints | None:
        """The batch of each row in published order, counted from 0; None for a marginal without sensitive columns."""
        return self.pairs.link[self.pairs.order.of].astype(np.int64) if self.linked else None

    @property
    def bucket(self) -> Ints:
        """The bucket of each row in published order, as its cells tell."""
        return self.pairs.cell[self.pairs.order.of].astype(np.int64)

    @property
    def sizes(self) -> Ints:
        """How many rows show the same: (buckets,)."""
        order = self.columns[0].order
        assert order is not None
        return order.numbers

    @property
    def shares(self) -> tuple[Ints, Ints, Ints]:
        """People of each bucket in each batch, sorted by bucket: bucket, batch and people, each (pairs,)."""
        order = np.argsort(self.pairs.cell, kind="stable")
        own = self.pairs.cell, self.pairs.link, self.pairs.numbers
        bucket, batch, people = (each[order].astype(np.int64) for each in own)
        return bucket, batch, people

    def label(self, bucket: int) -> dict[str, str | None]:
        """What the rows of a bucket show, by column."""
        return {column.name: column.labels[int(column.held[bucket])].as_py() for column in self.columns}

    def names(self, batch_name: str, weight_name: str | None) -> list[str]:
        """The names of all columns."""
        weights = [] if self.linked or self.weight is None or weight_name is None else [weight_name]
        return [*(column.name for column in self.columns), *([batch_name] if self.linked else weights)]

    def counted(self, batch_name: str, weight_name: str | None) -> Rows:
        """The table as it is published."""
        data = pa.table({column.name: cells(column.texts, column.held) for column in self.columns})
        link, weight, apart = self.pairs.link, self.weight, dict[str, NumbersOf]()
        if self.linked:
            apart[batch_name] = lambda some: pa.array(link[some].astype(np.int64) + 1)
        elif weight is not None and weight_name is not None:
            apart[weight_name] = lambda some: pa.array(weight[some])
        return Paired(data, self.pairs.order, self.pairs.cell, apart)


class Contents(NamedTuple):
    """All that is published; batches are counted from 0 here and from 1 where they are published."""

    tables: tuple[GroupTable, ...]  # the first has every quasi-identifier
    hidden: tuple[Published, ...]  # the sensitive columns of the batches' entries
    entries: Runs  # the batch of each entry
    people: NDArray[np.integer]  # (entries,)
    weight: Floats | None = None  # (batches,) the mean of each
    names: tuple[str, str, str | None] = ("batch", "count", None)  # of the number, the count, the weights

    @property
    def entry_batch(self) -> NDArray[np.int32]:
        """The batch of each entry, in order: (entries,)."""
        return self.entries.each

    @property
    def size(self) -> Ints:
        """People of each batch: (batches,)."""
        return counted(self.entry_batch, self.people)

    def require_fit(self, k: int) -> None:
        """Raise ValueError unless every table shows the same batches, and each of its rows with k - 1 others."""
        require_people(self.people, self.tables[0].rows)
        size = self.size
        if (size == 0).any():
            raise ValueError("the batches are not in order")
        require_once("batch", self.hidden, self.entry_batch)
        if not self.tables[0].linked:
            raise ValueError("the first table has no batches")
        for table in self.tables:
            if table.linked and not np.array_equal(counted(table.pairs.link, table.pairs.numbers, len(size)), size):
                raise ValueError(f'the table "{table.name}" does not have the same people in each batch')
            if table.rows != int(size.sum()):
                raise ValueError(f'the table "{table.name}" is about other people')
            if int(table.sizes.min()) < k:
                raise ValueError(f'in the table "{table.name}" fewer than {k} people show the same')

    def counts(self) -> Counts:
        """People by batch and sensitive value."""
        return counts_of(self.hidden, self.entry_batch, self.people)


def posterior(table: GroupTable, held: Contents) -> Counts:
    """What an attacker believes of somebody whose bucket he knows, as `SHARES` people of each bucket.

    f = Σ over batches of n(bucket, batch) / |bucket| · f(batch): Equation 2 of the ANGEL paper (Tao et al.).
    """
    bucket, batch, people = table.pairs.cell, table.pairs.link, table.pairs.numbers
    value, whole = values_of(held.hidden, held.people)
    values, begin, in_batch, in_bucket = len(whole.joint), starts(held.entries.sizes), held.size, table.sizes
    sums_of = SumsByKey(len(in_bucket) * values, dense=TABLED)
    for some in portions(held.entries.sizes[batch]):
        size, entry = runs_of(begin, batch[some])
        share = people[some] / in_bucket[bucket[some]] / in_batch[batch[some]]
        key = np.repeat(bucket[some] * np.int64(values), size) + value[entry]
        sums_of.add(key, np.repeat(share, size) * held.people[entry])
    keys, sums = sums_of.all()
    n = np.ceil(sums * SHARES - 0.5).clip(1).astype(np.int64)
    return Counts(len(in_bucket), keys // values, keys % values, n, whole.sensitive, whole.joint, None, whole)


def contents_of(tables: Mapping[str, Rows], columns: Sequence[Mapping[str, Any]]) -> Contents:
    """What these tables hold, by what the manifest says of their columns; a ValueError where they do not fit."""
    names = {facts["role"]: facts["name"] for facts in columns if "table" not in facts}
    number, count, weights = names["batch"], names["count"], names.get("weights")
    told: dict[str, list[Mapping[str, Any]]] = {}
    for facts in columns:
        if "table" in facts:
            told.setdefault(facts["table"], []).append(facts)
    if {*tables} != {*told} or next(iter(told)) != "data":
        raise ValueError("the manifest names other tables")
    batches = Members.of(tables["batches"], number, as_rows=True)
    groups = []
    for name, own in told.items():
        if name == "batches":
            continue
        read = Members.of(tables[name], number)
        weight = None if read.numbers is not None or weights is None else floats(read.shown[weights])
        shown = tuple(restored(each, read.shown[each["name"]]) for each in own)
        link, how = None if read.numbers is None else read.link, read.how
        del read  # numbers of every row
        groups.append(GroupTable(name, shown, link, weight, **how))
    weight = None
    if weights is not None:
        weight = weight_of("batch", batches.each(floats(batches.shown[weights])), batches.link)
    hidden = [restored(facts, batches.shown[facts["name"]]) for facts in told["batches"]]
    if all(column.judged is None for column in hidden):
        raise ValueError("the batches have no sensitive column")
    return Contents(tuple(groups), *batches.entries(hidden, count), weight, (number, count, weights))


def floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A published column of numbers."""
    found: NDArray[np.float64] = column.cast(pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


# -- the picture (Figure 2) --------------------------------------------------------------------------------------

LARGEST = 60
"""Buckets, and batches, up to which a graph can be read."""
WIDE = 44
"""Letters of a bucket or batch that are shown."""


def graph(table: GroupTable, contents: Contents) -> Picture:
    """Buckets on the left, batches on the right; a line is as wide as people are in both."""
    buckets, batches = len(table.sizes), len(contents.size)
    if max(buckets, batches) > LARGEST:
        got = f"{buckets:,} buckets and {batches:,} batches"
        do = "draw a smaller release, or look at release.tables"
        raise InputError(f"a graph of more than {LARGEST} buckets or batches cannot be read", got=got, do=do)
    shown = [", ".join(str(text) for text in table.label(bucket).values()) for bucket in range(buckets)]
    held = _values(contents)
    ties = list(zip(*(amounts.tolist() for amounts in table.shares), strict=True))  # bucket, batch, people

    def draw(canvas: Figure) -> None:
        high = max(buckets, batches)
        left = [(i + 0.5) * high / buckets for i in range(buckets)]
        right = [(i + 0.5) * high / batches for i in range(batches)]
        axes = canvas.subplots()
        for bucket, batch, people in ties:
            width = 0.6 + 3.0 * people / int(table.sizes[bucket])
            axes.plot([0, 1], [left[bucket], right[batch]], color=COLOURS[0], linewidth=width, alpha=0.5, zorder=1)
        axes.scatter([0] * buckets, left, color=COLOURS[6], marker="s", zorder=2, s=16)
        axes.scatter([1] * batches, right, color=COLOURS[1], marker="o", zorder=2, s=16)
        for x, places, texts, side, away in ((0, left, shown, "right", -6), (1, right, held, "left", 6)):
            for y, text in zip(places, texts, strict=True):
                axes.annotate(clipped(text, WIDE), (x, y), (away, 0), textcoords="offset points", ha=side, va="center")
        axes.set(xlim=(-1.1, 2.1), ylim=(high, 0))
        axes.set_axis_off()

    said = "; ".join(f"{shown[bucket]}: {people} in batch {batch + 1}" for bucket, batch, people in ties)
    return Picture("Which batches each bucket is a mixture of", said, draw, 8, max(2.0, 0.32 * max(buckets, batches)))


def _values(contents: Contents) -> list[str]:
    """What each batch holds: `1: flu 2, cold 1`."""
    texts = [column.labels.take(pa.array(column.held)).to_pylist() for column in contents.hidden]
    told: list[list[str]] = [[] for _ in range(len(contents.size))]
    for batch, people, *values in zip(contents.entry_batch.tolist(), contents.people.tolist(), *texts, strict=True):
        told[batch].append(f"{' and '.join('missing' if v is None else str(v) for v in values)} {people}")
    return [f"{number}: {', '.join(values)}" for number, values in enumerate(told, 1)]
