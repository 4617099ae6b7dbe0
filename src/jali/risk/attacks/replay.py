"""Replay: what the publisher publishes when the same people have other values.

The attacker knows everybody's quasi-identifiers, who is in the table, the published folder, the job and the code, but
not the random bits. A world gives the published values to the people in some way. The publisher is run again on it,
with the options of the manifest, and what it publishes is compared with the release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine
from jali.encoding.table import Column, Table
from jali.errors import InfeasibleError, InputError
from jali.principles import DeltaPresence, KAnonymity
from jali.principles.anonymity import PRESENCE, PRESENT
from jali.principles.base import Principle, exact
from jali.principles.counts import Counts
from jali.publish.checks import importance_of
from jali.publish.conceal import conceal
from jali.publish.generalize import generalize
from jali.publish.partition import partition, recode
from jali.publish.repair import repair
from jali.releases.base import Release
from jali.releases.column import Published
from jali.releases.display import shown_again
from jali.releases.generalized import Generalized, Partitioned
from jali.releases.linked.angel import Angel
from jali.releases.linked.buckets import Buckets
from jali.risk.attacks.links import Links, links_to
from jali.search.batches import batches_along
from jali.search.lattice.lattice import Lattice
from jali.search.layout import RecodeShow
from jali.search.mondrian import mondrian
from jali.search.recode import recode_groups
from jali.search.screen import framed

Publisher = Callable[[Table], Hashable]
"""What is published of a table, so that equal results are equal releases; InfeasibleError where nothing is."""


@dataclass(frozen=True, eq=False)
class People:
    """Everybody, one record each; slots are people whom the publisher cannot tell apart but by their values."""

    table: Table
    slot: Ints  # (people,)
    value: Ints  # (people,) what really stands in the columns that are no quasi-identifiers, all of them together
    judged: Ints  # (values,) the joint sensitive value, numbered as in the table's frequencies

    @property
    def slots(self) -> int:
        """How many there are."""
        return int(self.slot.max()) + 1

    @property
    def size(self) -> Ints:
        """People of each slot: (slots,)."""
        return np.bincount(self.slot).astype(np.int64)

    @property
    def counts(self) -> Ints:
        """The true world: people by slot and value, (slots, values)."""
        n = np.zeros((self.slots, len(self.judged)), dtype=np.int64)
        np.add.at(n, (self.slot, self.value), 1)
        return n

    def world(self, counts: Ints) -> Table:
        """The table in which people have values by these counts: (slots, values)."""
        value = np.empty(len(self.slot), dtype=np.int64)
        values = np.tile(np.arange(counts.shape[1]), len(counts))
        value[np.argsort(self.slot, kind="stable")] = np.repeat(values, counts.ravel())
        first = np.zeros(len(self.judged), dtype=np.int64)
        first[self.value] = np.arange(len(self.value))  # somebody who really has the value
        moved = (c if c.role == "quasi" else replace(c, codes=c.codes[first[value]]) for c in self.table.columns)
        return replace(self.table, columns=tuple(moved))

    @cached_property
    def whole(self) -> Counts:
        """Everybody as one group."""
        f = self.table.frequencies
        return f.whole

    def judge(self, n: Ints) -> Counts:
        """People by row and value, (rows, values), as principles see them; the whole table is their reference."""
        whole = self.whole
        row, value = np.nonzero(n)
        return Counts(
            len(n), row.astype(np.int64), self.judged[value], n[row, value], whole.sensitive, whole.joint, None, whole
        )


def people_of(table: Table, *, one_by_one: bool = False) -> People:
    """The people of a table; `one_by_one` makes everybody a slot, else those of one combination are one."""
    if table.multiplicity is not None:
        table = table.take(np.repeat(np.arange(table.records), table.multiplicity), None)
    f = table.frequencies
    others = [(c.codes, len(c.values)) for c in table.columns if c.role != "quasi"]
    value, first = combine(others, table.records)
    joint, _ = combine([(c.codes, len(c.values)) for c in table.sensitive], table.records)
    slot = np.arange(table.records) if one_by_one else f.row_combination
    return People(table, slot.astype(np.int64), value.astype(np.int64), joint[first].astype(np.int64))


def presences_of(private: Table, public: Table) -> People:
    """The people of the public table; what travels is who of them is in the private one."""
    return people_of(framed(private, public).table)


OTHER_WAYS = "that other ways to form batches and buckets had a higher KL-divergence"


@dataclass(frozen=True)
class Replay:
    """The publisher of a release, and what it must publish to be that of this release."""

    publish: Publisher
    target: Hashable
    least: str = ""  # what part of the attacker's knowledge the replay leaves out, in words

    def same(self, table: Table) -> bool:
        """Whether the publisher publishes the release from this table."""
        try:
            return self.publish(table) == self.target
        except (InfeasibleError, InputError):
            return False


def replays_of(release: Release, original: Table, own: Links | None, public: Table | None) -> list[Replay] | str:
    """The publishers that the manifest may mean, the likeliest first; or in words why none can be run again.

    `own` are the groups that cover each combination of the original, where the release shows groups.
    """
    method = release.manifest.method
    if release.hides_presence:
        return _concealing(release, public) if public is not None else "who is in the table: no public table was given"
    known: Mapping[Any, Callable[[Any, Table, Ints], list[Replay] | str]] = {
        "generalize": _generalizing, "partition": _partitioning, "recode": _recoding, "repair": _repairing,
        "angelize": _angelizing, "anatomize": _bucketing,
    }  # fmt: skip
    make = known.get(method.get("name"))
    if make is None or own is None:
        return f'how "{method.get("name", release.kind)}" chose what it publishes: it cannot be run again'
    return make(release, original, own.only)


def published(release: Release, quasi: bool = False) -> Hashable:
    """What a release shows, whatever the order of its rows: equal releases are equal. `quasi` leaves out the values."""
    data = release.tables["data"]
    if quasi:
        data = data.select([column.name for column in release.of_role("quasi")])
    rows = Counter(zip(*(column.to_pylist() for column in data.columns), strict=True))
    return tuple(sorted(release.levels.items())), frozenset(rows.items())


def _cells(
    group: Ints, of: NDArray[np.integer], values: Sequence[list[str | None]], many: Ints | None = None
) -> Hashable:
    """Groups of combinations and the values in each, whatever the groups' numbers.

    `group` is that of each combination; `of` is that of each row, whose values stand in lists, `many` of each.
    """
    number, first = np.unique(group, return_index=True)
    name = np.full(int(max(number.max(), of.max(initial=0))) + 1, -1)
    name[number] = first
    rows: Counter[Hashable] = Counter()
    heads = np.ones(len(of), dtype=np.int64) if many is None else many
    for row, n in zip(zip(name[of].tolist(), *values, strict=True), heads.tolist(), strict=True):
        rows[row] += n
    return name[group].tobytes(), frozenset(rows.items())


def _texts(columns: Iterable[Column | Published]) -> list[list[str | None]]:
    """The texts of everything but quasi-identifiers, column by column, in the order of their names."""
    some = sorted((column for column in columns if column.role != "quasi"), key=lambda column: column.name)
    return [column.labels.take(pa.array(column.codes)).to_pylist() for column in some]


def _of_table(table: Table, group: Ints) -> Hashable:
    """What groups of a table's combinations show."""
    return _cells(group, group[table.frequencies.row_combination], _texts(table.columns))


# -- the publishers -----------------------------------------------------------------------------------------------


def _silent(done: int, total: int) -> None:
    """Nobody listens."""


def _shift(method: Mapping[str, Any]) -> dict[str, Any]:
    """What a verb is given besides: how distributions are shifted, and how important columns are."""
    weighed = {"importance": method["importance"]} if "importance" in method else {}
    if "towards" not in method:
        return weighed
    return weighed | {"towards": exact("towards", method["towards"]), "start": method["start"]}


def _generalizing(release: Generalized, original: Table, only: Ints) -> list[Replay] | str:
    method, principles = release.manifest.method, release.principles
    if method.get("levels_given"):
        return "why its holder chose these levels"
    if "show" in method or (only < 0).any():
        options: Any = {"metric": method["metric"], "suppress": method["suppress"], **_shift(method)}
        options |= shown_again(method) if "show" in method else {}
        return [Replay(lambda table: published(generalize(table, principles, **options)), published(release))]
    budget = exact("suppress", method["suppress"])

    def publish(table: Table) -> Hashable:
        lattice = Lattice(table, principles, on_step=_silent)
        node, hidden = lattice.best(method["metric"], budget, importance_of(table, method.get("importance")))
        levels = tuple(sorted((c.name, n) for c, n in zip(table.quasi, node, strict=True)))
        return levels, _of_table(table, lattice.partition(node, hidden).group)

    shown = _cells(only, release.group_of_rows, _texts(release.columns))
    return [Replay(publish, (tuple(sorted(release.levels.items())), shown))]


def _partitioning(release: Partitioned, original: Table, only: Ints) -> list[Replay] | str:
    method, principles = release.manifest.method, release.principles
    names = ("mode", "split", "suppress") + (("similarity",) if "similarity" in method else ())
    options: Any = {name: method[name] for name in names} | _shift(method) | shown_again(method)
    wider = release.disclosure_bound != "exact"  # boxes that are shown alike may be several
    if wider or exact("suppress", method["suppress"]) > 0 or (only < 0).any():
        return [Replay(lambda table: published(partition(table, principles, **options)), published(release))]
    cuts: Any = {name: options[name] for name in ("split", "similarity") if name in options}
    cuts["importance"] = importance_of(original, method.get("importance"))
    shown = _cells(only, release.group_of_rows, _texts(release.columns))
    return [Replay(lambda table: _of_table(table, _cut(table, principles, **cuts)), shown)]


def _cut(table: Table, principles: tuple[Principle, ...], **cuts: Any) -> Ints:
    """The groups of a strict partition: (combinations,)."""
    boxes = mondrian(table, principles, threads=1, **cuts)
    assert boxes.group is not None  # strict
    return boxes.group


def _recoding(release: Partitioned, original: Table, only: Ints) -> list[Replay] | str:
    method, principles = release.manifest.method, release.principles
    options: Any = {name: method[name] for name in ("objective", "peel", "suppress")} | _shift(method)
    again = shown_again(method)
    (again["show"],) = set(again["show"].values())
    return [Replay(lambda table: published(recode(table, principles, **options, **again)), published(release))]


def _repairing(release: Generalized, original: Table, only: Ints) -> list[Replay] | str:
    """Repair once more at the same levels: why these were chosen is not known, since repair starts from a release."""
    method, principles, levels = release.manifest.method, release.principles, release.levels
    if method.get("by", "groups") != "groups":
        return str(method["known_algorithm"])
    budget = float(exact("suppress", method["suppress"]))

    def publish(table: Table) -> Hashable:
        return published(repair(generalize(table, [KAnonymity(1)], levels=levels), principles, suppress=budget))

    return [Replay(publish, published(release), "why the release that was repaired had these levels")]


def _bucketing(release: Buckets, original: Table, only: Ints) -> list[Replay] | str:
    method, principles = release.manifest.method, release.principles
    if method.get("buckets") != "partition" or method.get("mode") != "strict" or (only < 0).any():
        return "why its holder chose these levels" if method.get("buckets") == "levels" else "how records were divided"
    entries = release.contents
    shown = _cells(only, entries.entry_bucket, _texts(entries.hidden), entries.people.astype(np.int64))
    return [Replay(lambda table: _of_table(table, _cut(table, principles, split=method["split"])), shown)]


def _angelizing(release: Angel, original: Table, only: Ints) -> list[Replay] | str:
    """Batches and buckets in the ways that the manifest names; that other ways had a higher KL is left out."""
    method, required = release.manifest.method, release.batch_principles
    data = release.contents.tables[0]
    nobody = np.zeros(data.rows, dtype=bool)
    only = links_to(data.columns, data.bucket, nobody, original, None).only
    if method.get("coarsened") or len(release.contents.tables) > 1 or (only < 0).any():
        return "what several tables, or buckets that overlap, say together"
    if method["batches"] not in ("own", "partition", "curve"):
        return "what dealt batches beside buckets that were chosen by their KL-divergence say together"
    alike = (KAnonymity(release.k),)
    of = (*required, *alike) if method["batches"] == "own" else alike
    shows: tuple[RecodeShow, ...] = ("taxonomy", "set") if method["buckets"] == "recode" else ("taxonomy",)
    target = _of_release(release, only)
    made = (partial(_batches, required, method["batches"], _bucketing_by(original, of, method, show)) for show in shows)
    return [Replay(publish, target, OTHER_WAYS) for publish in made]


def _bucketing_by(
    original: Table, of: tuple[Principle, ...], method: Mapping[str, Any], show: RecodeShow
) -> Callable[[Table], Ints]:
    """How buckets are formed, as combinations are numbered; from sizes alone they are the same in every world."""
    if method["buckets"] == "recode":
        return lambda table: recode_groups(table, of, show=show).group
    split = "kl" if method["buckets"] == "partition-kl" else "range"
    if split == "range" and all(principle.judges_size_alone for principle in of):
        always = _cut(original, of)
        return lambda table: always
    return lambda table: _cut(table, of, split=split)


def _batches(required: tuple[Principle, ...], way: str, buckets: Callable[[Table], Ints], table: Table) -> Hashable:
    """Batches, each by its people in each bucket and its values, and the buckets by their combinations."""
    f, bucket = table.frequencies, buckets(table)
    batch = batches_along(table, required, np.arange(table.records)).batch if way == "curve" else (
        bucket if way == "own" else _cut(table, required)
    )[f.row_combination]  # fmt: skip
    name = _first(bucket)
    values = list(zip(*_texts(table.columns), strict=True))
    members: dict[int, tuple[list[int], list[Any]]] = {}
    for at, one, value in zip(name[f.row_combination].tolist(), batch.tolist(), values, strict=True):
        own = members.setdefault(one, ([], []))
        own[0].append(at)
        own[1].append(value)
    return name.tobytes(), frozenset(Counter(_sorted(*own) for own in members.values()).items())


def _of_release(release: Angel, only: Ints) -> Hashable:
    """The same from the published tables."""
    contents, (data, *_) = release.contents, release.contents.tables
    name = _first(only)
    by_bucket = np.zeros(int(only.max()) + 1, dtype=np.int64)
    by_bucket[only] = name
    members: dict[int, tuple[list[int], list[Any]]] = {}
    for at, one, n in zip(*(each.tolist() for each in data.shares), strict=True):
        members.setdefault(one, ([], []))[0].extend([int(by_bucket[at])] * n)
    values = zip(*_texts(contents.hidden), strict=True)
    for one, n, value in zip(contents.entry_batch.tolist(), contents.people.tolist(), values, strict=True):
        members[one][1].extend([value] * n)
    return name.tobytes(), frozenset(Counter(_sorted(*own) for own in members.values()).items())


def _first(group: Ints) -> Ints:
    """Of each combination the first one of its group."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    return first[number.reshape(-1)].astype(np.int64)


def _sorted(places: list[int], values: list[Any]) -> tuple[Hashable, Hashable]:
    return tuple(sorted(places)), frozenset(Counter(values).items())


def _concealing(release: Release, public: Table) -> list[Replay] | str:
    """Who is present decides what is shown; the private values travel with the private people and tell nothing."""
    method, (bounds,) = release.manifest.method, release.principles
    assert isinstance(bounds, DeltaPresence)
    options: Any = {name: method[name] for name in ("search", "shift", "show")}

    def publish(table: Table) -> Hashable:
        column = table[PRESENCE]
        present = np.flatnonzero(column.codes == column.values.to_pylist().index(PRESENT))
        quasi = tuple(replace(c, codes=table[c.name].codes) for c in public.quasi)
        private = replace(public, columns=quasi, records=table.records, multiplicity=None).take(present, None)
        made = conceal(private, public, low=bounds.exact_low, high=bounds.exact_high, **options)  # type: ignore[arg-type]  # exact
        return published(made, quasi=True)

    return [Replay(publish, published(release, quasi=True))]
