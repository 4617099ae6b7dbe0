"""What an ANGEL release publishes: batches of sensitive values, and tables of generalized quasi-identifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added_by_key, combine, counted, portions, runs_of
from jali.core.charts import COLOURS, Picture, clipped
from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.counts import Counts
from jali.releases.base import Manifest, Release
from jali.releases.column import Published, restored, whole_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = 2**40
"""A posterior is judged as counts of this many people; a share above 0 is rounded up to at least one of them."""


class Linked(Release):
    """Tables that share nothing but numbers, which tie people to counts of sensitive values: buckets, or batches."""

    contents: Any  # each kind has its own
    _keys: pa.Table | None = None  # the batches of the original's combinations, for the holder

    def __init__(self, contents: Any, manifest: Manifest, *, origin: str = "arrow") -> None:
        self.contents, self.manifest, self.origin = contents, manifest, origin
        self.search: Mapping[str, int] = {}
        self._assigned: Ints | None = None  # (rows of the original,) the number of each, for the holder

    @property
    def weight_name(self) -> str | None:
        """The published column of weights, if there is one."""
        name: str | None = self.contents.names[2]
        return name

    @property
    def individuals(self) -> pa.Table:
        """The published quasi-identifiers of each individual, in published order."""
        shown, *_ = self.tables.values()
        return shown.select([column.name for column in self.of_role("quasi")])

    def assignment(self, table: Table) -> Ints:
        """The bucket or batch of each row of the original, counted from 0: for its holder.

        It is never saved, but in the private file of an ANGEL release.
        """
        if self._assigned is None or not isinstance(table, Table) or len(self._assigned) != table.rows:
            raise InputError(
                "only a release that was just made from this table knows where its rows went",
                do="make it again: what is saved cannot be traced back",
            )
        return self._assigned

    def __getstate__(self) -> dict[str, Any]:
        """A pickled release does not know where the original's rows went."""
        return self.__dict__ | {"_keys": None, "_assigned": None}


def counts_of(hidden: Sequence[Published], group: Ints, people: Ints) -> Counts:
    """People by group and value, from the sensitive columns of entries that are sorted by group."""
    judged = [(c.judged[0], c.judged[1][c.codes]) for c in hidden if c.judged is not None]
    value, first = combine([(codes, len(values)) for values, codes in judged], len(people))
    joint = np.stack([codes[first] for _, codes in judged], axis=1).astype(np.int64)
    own = tuple(values for values, _ in judged)
    return Counts(int(group[-1]) + 1, group, value.astype(np.int64), people, own, joint)


def weight_of(what: str, shown: Floats, group: Ints) -> Floats:
    """The weight of each group, which all rows of it must show; a ValueError where they do not."""
    weight = np.zeros(int(group.max(initial=-1)) + 1)
    weight[group] = shown
    if not np.array_equal(weight[group], shown):
        raise ValueError(f"a {what} shows two weights")
    return weight


class GroupTable:
    """Generalized quasi-identifiers of everybody, in an order of its own; rows of one bucket show the same cells."""

    def __init__(
        self, name: str, columns: tuple[Published, ...], batch: Ints | None, weight: Floats | None = None
    ) -> None:
        self.name, self.columns = name, columns
        self.batch = batch  # (rows,) counted from 0; None for a marginal without the sensitive columns
        self.weight = weight  # (rows,) the mean of the bucket; only where there is no batch to say it

    @property
    def rows(self) -> int:
        """How many people it shows."""
        return len(self.columns[0].codes)

    @cached_property
    def cells(self) -> tuple[NDArray[np.int32], Ints]:
        """The bucket of each row, as its cells tell, and one row of each bucket."""
        return combine([(column.codes, len(column.labels)) for column in self.columns], self.rows)

    @cached_property
    def sizes(self) -> Ints:
        """How many rows show the same: (buckets,)."""
        return counted(self.cells[0])

    @cached_property
    def shares(self) -> tuple[Ints, Ints, Ints]:
        """People of each bucket in each batch, sorted by bucket: bucket, batch and people, each (pairs,)."""
        assert self.batch is not None
        number, first = combine([(self.cells[0], len(self.sizes)), (self.batch, int(self.batch.max()) + 1)], self.rows)
        people = counted(number)
        return self.cells[0][first].astype(np.int64), self.batch[first], people

    def label(self, bucket: int) -> dict[str, str | None]:
        """What the rows of a bucket show, by column."""
        row = int(self.cells[1][bucket])
        return {column.name: column.labels[int(column.codes[row])].as_py() for column in self.columns}

    def shown(self, batch_name: str, weight_name: str | None) -> pa.Table:
        """The table as it is published."""
        data = {column.name: column.shown() for column in self.columns}
        if self.batch is not None:
            data[batch_name] = pa.array(self.batch + 1)
        elif self.weight is not None and weight_name is not None:
            data[weight_name] = pa.array(self.weight)
        return pa.table(data)


class Contents(NamedTuple):
    """All that is published; batches are counted from 0 here and from 1 where they are published."""

    tables: tuple[GroupTable, ...]  # the first has every quasi-identifier
    hidden: tuple[Published, ...]  # the sensitive columns of the batches' entries
    entry_batch: Ints  # (entries,) sorted
    people: Ints  # (entries,)
    weight: Floats | None = None  # (batches,) the mean of each
    names: tuple[str, str, str | None] = ("batch", "count", None)  # of the number, the count, the weights

    @property
    def size(self) -> Ints:
        """People of each batch: (batches,)."""
        return counted(self.entry_batch, self.people)

    def require_fit(self, k: int) -> None:
        """Raise ValueError unless every table shows the same batches, and each of its rows with k - 1 others."""
        size = self.size
        if (self.people < 1).any() or (size == 0).any() or (np.diff(self.entry_batch) < 0).any():
            raise ValueError("the batches are not in order")
        keys = [(self.entry_batch, len(size)), *((c.codes, len(c.labels)) for c in self.hidden)]
        if len(combine(keys, len(self.people))[1]) < len(self.people):
            raise ValueError("a batch names a value twice")
        if self.tables[0].batch is None:
            raise ValueError("the first table has no batches")
        for table in self.tables:
            if table.batch is not None and not np.array_equal(np.bincount(table.batch, minlength=len(size)), size):
                raise ValueError(f'the table "{table.name}" does not have the same people in each batch')
            if table.rows != int(size.sum()):
                raise ValueError(f'the table "{table.name}" is about other people')
            if int(table.sizes.min()) < k:
                raise ValueError(f'in the table "{table.name}" fewer than {k} people show the same')

    def counts(self) -> Counts:
        """People by batch and sensitive value."""
        return counts_of(self.hidden, self.entry_batch, self.people)


def posterior(table: GroupTable, batches: Counts) -> Counts:
    """What an attacker believes of somebody whose bucket he knows, as `SHARES` people of each bucket.

    f = Σ over batches of n(bucket, batch) / |bucket| · f(batch): Equation 2 of the ANGEL paper (Tao et al.).
    """
    bucket, batch, people = table.shares
    values, begin = len(batches.joint), np.searchsorted(batches.group, np.arange(batches.groups + 1))
    share = people / table.sizes[bucket] / batches.size[batch]
    parts = []
    for some in portions(np.diff(begin)[batch]):
        size, entry = runs_of(begin, batch[some])
        key = np.repeat(bucket[some] * values, size) + batches.value[entry]
        parts.append(added_by_key(key, np.repeat(share[some], size) * batches.n[entry]))
    keys, sums = parts[0]
    if len(parts) > 1:
        keys, sums = added_by_key(*(np.concatenate(amounts) for amounts in zip(*parts, strict=True)))
    n = np.ceil(sums * SHARES - 0.5).clip(1).astype(np.int64)
    return Counts(len(table.sizes), keys // values, keys % values, n, batches.sensitive, batches.joint, None, batches)


def contents_of(tables: Mapping[str, pa.Table], columns: Sequence[Mapping[str, Any]]) -> Contents:
    """What these tables hold, by what the manifest says of their columns; a ValueError where they do not fit."""
    names = {facts["role"]: facts["name"] for facts in columns if "table" not in facts}
    number, count, weights = names["batch"], names["count"], names.get("weights")
    told: dict[str, list[Mapping[str, Any]]] = {}
    for facts in columns:
        if "table" in facts:
            told.setdefault(facts["table"], []).append(facts)
    batches = tables["batches"]
    if {*tables} != {*told} or next(iter(told)) != "data":
        raise ValueError("the manifest names other tables")
    entry_batch = whole_numbers(batches[number]) - 1
    groups = []
    for name, own in told.items():
        if name == "batches":
            continue
        table = tables[name]
        linked = number in table.column_names
        groups.append(
            GroupTable(
                name,
                tuple(restored(each, table[each["name"]]) for each in own),
                whole_numbers(table[number]) - 1 if linked else None,
                None if linked or weights is None else floats(table[weights]),
            )
        )
    weight = None if weights is None else weight_of("batch", floats(batches[weights]), entry_batch)
    hidden = tuple(restored(facts, batches[facts["name"]]) for facts in told["batches"])
    if all(column.judged is None for column in hidden):
        raise ValueError("the batches have no sensitive column")
    return Contents(tuple(groups), hidden, entry_batch, whole_numbers(batches[count]), weight, (number, count, weights))


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
    texts = [column.labels.take(pa.array(column.codes)).to_pylist() for column in contents.hidden]
    told: list[list[str]] = [[] for _ in range(len(contents.size))]
    for batch, people, *values in zip(contents.entry_batch.tolist(), contents.people.tolist(), *texts, strict=True):
        told[batch].append(f"{' and '.join('missing' if v is None else str(v) for v in values)} {people}")
    return [f"{number}: {', '.join(values)}" for number, values in enumerate(told, 1)]
