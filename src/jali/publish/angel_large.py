"""ANGEL of a table beyond memory: buckets are strict partitions; batches are partitions, equal halves, or dealt.

Of the table only this is kept: how many people of each batch are in which bucket of each table, with which sensitive
values. Equal halves and partitions pass through a private file, in which everybody has the numbers of their buckets.
What is tried is compared by the KL-divergence, which is added up over portions of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints, Runs, combine, counted, found_among, narrowed
from jali.core.progress import Step
from jali.core.rows import fresh_order, open_order
from jali.encoding.large import LargeTable, TooManyError, with_codes
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn
from jali.measures.holder import divergence_of_pieces
from jali.principles import KAnonymity
from jali.principles.base import Principle
from jali.publish.checks import Marginal
from jali.publish.drafts import (
    Draft,
    Found,
    How,
    bucketed,
    dealt_by,
    draft,
    entries_of,
    lower,
    mass_between,
    method_of,
    of_drafts,
    promised,
    require_dealt,
)
from jali.publish.portions import GroupedRows, require_room
from jali.releases.column import Published, holder_cover
from jali.releases.display import Members, ends_alone, publish_groups
from jali.releases.linked.angel import Angel
from jali.releases.linked.linked import broken_by
from jali.releases.linked.private import Seated
from jali.search.batches import dealt_out, row_of, seated_row
from jali.search.halves import Seating, Seats, cut_by, seated_counted
from jali.search.items import Split
from jali.search.spilled import Bits, Halving, Listed, regrouped
from jali.search.trunk import Branch, Trunk

BATCHES = ("partition", "halves", "anatomy")
BUCKETS = ("partition", "partition-kl")
"""What "best" compares beyond memory."""


class Ways(NamedTuple):
    """The ways that are tried, of batches and of buckets."""

    batches: tuple[str, ...]
    buckets: tuple[str, ...]


def ways_of(
    table: LargeTable, asked: tuple[str, str], required: tuple[Principle, ...], seats: Seats | None, *, joint_k: bool
) -> Ways:
    """The ways to form batches and buckets that are asked for; InputError for those that need every combination."""
    batches, buckets = asked
    together = any(p.scope == "table" for p in required)
    for wrong, what, instead in (
        (batches == "curve", 'batches="curve"', 'use batches = "partition", "halves" or "anatomy"'),
        (batches == "partition" and together, 'batches="partition" under Safety', 'use batches = "anatomy"'),
        (buckets == "recode", 'buckets="recode"', 'use buckets = "partition" or "partition-kl"'),
        (joint_k, "joint_k", "leave joint_k out"),
    ):
        if wrong:
            raise table.refused(f"angelize with {what}", instead)
    every = ("anatomy",) if together else BATCHES
    ways = (seats,) if seats is not None else every if batches == "best" else (batches,)
    if ways == ("anatomy",):
        require_room(table, 'angelize with batches="anatomy"')
    return Ways(ways, BUCKETS if buckets == "best" else (buckets,))


class Beside(NamedTuple):
    """The table of a marginal, whose combinations are held."""

    table: Table
    draft: Draft

    def of(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.int32]:
        """The bucket of rows with these codes."""
        columns = self.table.quasi
        known, asked = [c.codes for c in columns], [codes[c.name] for c in columns]
        many = self.table.records + len(asked[0])
        return self.draft.bucket[found_among(known, asked, [len(c.values) for c in columns], many)]


class Cut(NamedTuple):
    """The groups of a strict partition as buckets of `data`, and the tables beside it."""

    way: str
    rows: GroupedRows
    columns: tuple[Published, ...]  # their codes are (buckets,)
    beside: tuple[Beside, ...]

    @property
    def labels(self) -> list[int]:
        """How many buckets each table has."""
        return [self.rows.grown.groups, *(int(each.draft.bucket.max()) + 1 for each in self.beside)]

    def listed(self) -> Iterator[Listed]:
        """The distinct rows of the table, each with its bucket of each table."""
        for codes, group, people in self.rows.each():
            yield Listed(codes, [group, *(each.of(codes) for each in self.beside)], people)


class Tally(NamedTuple):
    """How many people are in which bucket of each table, with which sensitive values and in which batch."""

    table: Table  # a record for each combination of buckets and sensitive values
    buckets: list[Ints]  # (records,) of each table
    seating: Seating | None  # None until batches are formed


class Beyond:
    """One request for an ANGEL release of a table beyond memory."""

    def __init__(
        self, table: LargeTable, required: tuple[Principle, ...], ways: Ways, how: How, *,
        wanted: Sequence[Marginal], step: Step,
    ) -> None:  # fmt: skip
        self.table, self.required, self.ways, self.how = table, required, ways, how
        self.wanted, self.step, self.alike = wanted, step, (KAnonymity(how.k),)
        self.blind = replace(table, columns=table.quasi)

    def release(self, facts: Mapping[str, Any]) -> Angel:
        """The release; its manifest says what was compared, and also `facts`."""
        found = self._seated() if self.how.blind else self._best()
        several = any(len(ways) > 1 for ways in self.ways)
        tried = {"tried": {name: list(ways) for name, ways in self.ways._asdict().items()}} if several else {}
        method = method_of(found, self.how) | {"joint_k": False} | tried | dict(facts)
        drafts, principles = (found.data, *found.beside), promised(self.required, self.how.k)
        return of_drafts(found.assigned, drafts, principles, method, kl=found.kl, pieces=self.table.pieces)

    def _tallied(self, parts: Iterable[tuple[Listed, Ints | None]]) -> Tally:
        """What a release shows of these rows, which come with their batches or, as None, without."""
        names, kept = [column.name for column in self.table.sensitive], list[list[NDArray[np.integer]]]()
        for rows, batch in parts:
            least = 0 if batch is None else int(batch.min())
            keys = [*([] if batch is None else [batch - least]), *rows.labels, *(rows.codes[name] for name in names)]
            number, example = combine([(key, int(key.max()) + 1) for key in keys], len(rows.people))
            columns = [key[example].astype(np.int32) for key in keys]
            if batch is not None:
                columns[0] += np.int32(least)
            kept.append([*columns, narrowed(counted(number, rows.people, len(example)))])
            seated = batch is not None
        *columns, people = (np.concatenate(column) for column in zip(*kept, strict=True))
        number, example = combine([(column, int(column.max()) + 1) for column in columns[seated:]], len(people))
        codes = dict(zip(names, columns[-len(names) :], strict=True))
        none = np.zeros(len(example), dtype=np.int64)  # buckets say what is shown of quasi-identifiers
        made = [with_codes(c, codes[c.name][example] if c.name in codes else none) for c in self.table.columns]
        table = self.table.made(made, counted(number, people, len(example)), None)
        buckets = [bucket[example].astype(np.int64) for bucket in columns[seated : -len(names)]]
        return Tally(table, buckets, _seating(columns[0], number, people) if seated else None)

    # -- buckets -------------------------------------------------------------------------------------------------

    def _cut(self, principles: tuple[Principle, ...], way: str) -> Cut:
        """Buckets that keep these promises; where sizes alone decide, the trunk has no sensitive column to read."""
        sizes = self.how.blind or (way == "partition" and principles == self.alike)
        trunk = self._trunk(self.blind if sizes else self.table, principles, way)
        branches = trunk.grow()
        grown = trunk.finish(branches, None)
        each, members = np.arange(grown.groups), [[own.astype(np.int64) for own in kept] for kept in grown.members]
        columns = tuple(
            publish_groups(c, Members(codes, group, grown.groups, each, rows), self.how.shows[c.name])
            for c, (codes, group, rows) in zip(self.table.quasi, members, strict=True)
        )
        beside = tuple(self._beside(asked, f"marginal-{at}", way) for at, asked in enumerate(self.wanted, 1))
        return Cut(way, GroupedRows(self.table, trunk, branches, grown, None), columns, beside)

    def _trunk(self, table: LargeTable, principles: tuple[Principle, ...], way: str) -> Trunk:
        shows = self.how.shows
        ends = {c.name: order for c in table.quasi if (order := ends_alone(table, c, shows[c.name])) is not None}
        split: Split = "kl" if way == "partition-kl" else "range"
        return Trunk(table, principles, split=split, importance=None, on_step=self.step, ends=ends)

    def _beside(self, asked: Marginal, name: str, way: str) -> Beside:
        """The table of a marginal, from a partition of its own columns, cut in the same way as `data`."""
        shows = {column: self.how.shows[column] for column in asked.columns}
        hidden = () if self.how.blind or way == "partition" else self.table.sensitive
        columns = (*(self.table[column] for column in asked.columns), *hidden)
        try:
            found = self.table.elsewhere.count(
                self.table.all_nodes_at({}), of=[column.name for column in columns], most=self.table.room
            )
        except TooManyError:
            what = f"the marginal of {', '.join(asked.columns)} has more combinations than memory holds"
            raise InputError(what, do="name fewer columns of it, or give more memory") from None
        some = self.table.made([with_codes(c, found.nodes[c.name]) for c in columns], found.rows, None)
        how = self.how._replace(shows=shows, ways=(way,))
        [(_, bucket)] = bucketed(some, self.alike, how, self.step)
        made = draft(some, name, bucket, shows, linked=asked.linked)
        if not hidden:
            return Beside(some, made)
        one = np.unique(some.frequencies.row_combination, return_index=True)[1]
        held = self.table.made([with_codes(c, c.codes[one]) for c in some.quasi], found.rows[one], None)
        return Beside(held, made._replace(bucket=made.bucket[one]))

    def _sharpest(self) -> Cut:
        """Of the buckets that are asked for, those with the lowest KL of the quasi-identifiers alone."""
        cuts = [self._cut(self.alike, way) for way in self.ways.buckets]
        return cuts[0] if len(cuts) == 1 else min(cuts, key=self._kl_of_boxes)

    def _kl_of_boxes(self, cut: Cut) -> float:
        table, grown = self.table, cut.rows.grown
        shown = tuple(
            BoxColumn(c.name, c.kind, c.role, holder_cover(c, table[c.name], table.domain), c.codes)
            for c in cut.columns
        )
        sizes = counted(grown.group, grown.table.multiplicity, grown.groups).astype(np.float64)
        return divergence_of_pieces(BoxEstimate(shown, sizes), self.blind.pieces(), table.rows)

    # -- batches -------------------------------------------------------------------------------------------------

    def _seated(self) -> Found:
        """Batches in the way that the promises say, and the buckets that show the quasi-identifiers best."""
        cut, (way,) = self._sharpest(), self.ways.batches
        if way == "halves":
            return self._of(way, cut, self._halved(cut))
        tally = self._tallied((some, None) for some in cut.listed())
        seating = seated_counted(tally.table, self.required, "anatomy", fresh_order, open_order, on_step=self.step)
        return self._of(way, cut, tally._replace(seating=seating))

    def _best(self) -> Found:
        """Of the batches and buckets that are asked for, and plain generalizations, those with the lowest KL."""
        lowest: Found | None = None
        cuts = [self._cut(self.alike, way) for way in self.ways.buckets]
        for way in self.ways.batches:
            for cut, tally in self._batched(way, cuts):
                lowest = lower(lowest, self._of(way, cut, tally))
        if all(p.scope == "group" for p in self.required):
            for way in dict.fromkeys((*self.ways.buckets, "partition")):
                cut = self._cut((*self.required, *self.alike), way)
                tally = self._tallied((some, some.labels[0].astype(np.int64)) for some in cut.listed())
                lowest = lower(lowest, self._of("own", cut, tally))
        assert lowest is not None  # a way that cannot be done alone raises an error
        return lowest

    def _batched(self, way: str, cuts: Sequence[Cut]) -> Iterator[tuple[Cut, Tally]]:
        """Batches formed in this way, with each of these buckets; of several ways one that fails is left out."""
        if way == "partition":
            trunk = self._trunk(self.table, self.required, way)
            branches = trunk.grow()
            yield from ((cut, self._partitioned(cut, trunk, branches)) for cut in cuts)
            return
        for cut in cuts:
            try:
                yield cut, self._halved(cut) if way == "halves" else self._dealt(cut)
            except (InfeasibleError, InputError):
                if way == "halves" or len(self.ways.batches) == 1:
                    raise

    def _partitioned(self, cut: Cut, trunk: Trunk, branches: Sequence[Branch]) -> Tally:
        return self._tallied(regrouped(trunk, branches, cut.listed(), cut.labels))

    def _halved(self, cut: Cut) -> Tally:
        """Equal halves of everybody, who bring the numbers of their buckets along."""
        trunk = self._trunk(self.table, self.required, "partition")
        bits = Bits(fresh_order, open_order)
        halving = Halving(trunk, cut_by(self.required), bits, sorting=True, labels=cut.labels)

        def parts() -> Iterator[tuple[Listed, Ints]]:
            batches = here = 0
            for some in halving.leaves(cut.listed()):
                for entries, group in some:
                    labels = [entries[f"l{at}"] for at in range(len(cut.labels))]
                    ones = np.ones(len(entries), dtype=np.int64)
                    yield Listed(halving.codes(entries), labels, ones), group + batches
                    here = int(group.max()) + 1
                batches += here

        return self._tallied(parts())

    def _dealt(self, cut: Cut) -> Tally:
        """Batches of people with different values, dealt at random; an error where they do not keep every promise."""
        require_room(self.table, 'angelize with batches="anatomy"')
        tally = self._tallied((some, None) for some in cut.listed())
        people = tally.table.multiplicity
        assert people is not None
        value, l, unknown = dealt_by(tally.table, self.required)
        line, batches = row_of(counted(value, people), l, unknown)
        seating = Seating(*dealt_out(seated_row(value, people, line, fresh_order), fresh_order(batches)))
        hidden, entries, many = entries_of(Seated(tally.table, seating, None, None))
        require_dealt(broken_by(self.required, hidden, entries.each, many))
        return tally._replace(seating=seating)

    def _of(self, way: str, cut: Cut, tally: Tally) -> Found:
        """These batches and buckets as a draft of the release, with their KL-divergence."""
        assert tally.seating is not None
        assigned = Seated(tally.table, tally.seating, None, None)
        own, *others = (bucket.astype(np.int32) for bucket in tally.buckets)
        data = Draft("data", cut.columns, own)
        kl = divergence_of_pieces(mass_between(assigned, data), self.table.pieces(), self.table.rows)
        beside = zip(cut.beside, others, strict=True)
        return Found(kl, way, cut.way, assigned, data, tuple(each.draft._replace(bucket=b) for each, b in beside))


def _seating(batch: NDArray[np.int32], record: NDArray[np.int32], people: NDArray[np.integer]) -> Seating:
    """Who is in which batch, batch by batch."""
    if bool((batch[1:] < batch[:-1]).any()):
        order = np.argsort(batch, kind="stable")
        batch, record, people = batch[order], record[order], people[order]
    return Seating(record, Runs.of(batch), people)
