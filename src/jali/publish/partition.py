"""partition and recode: groups that follow the people of a table, each shown by its own values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, counted
from jali.core.progress import Step, watched
from jali.core.rows import fresh_order, open_order
from jali.encoding.ends import Grid
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, nearest, one_of, told
from jali.measures.holder import holder_costs
from jali.principles.base import Principle, hold, principles_of
from jali.publish.checks import (
    budget_of,
    importance_of,
    note_of_stars,
    only_present,
    promised_people,
    require_publishable,
    require_table,
    told_importance,
)
from jali.publish.generalize import ALIKE, manifest_of, mean_weight, one_of_each
from jali.publish.portions import GroupedRows
from jali.publish.transparent import claim, halved_claim, is_asked, require_mixing, sizes_alone
from jali.releases.column import publish_exact
from jali.releases.display import Members, Show, ends_alone, naming_values, publish_groups, shows_of
from jali.releases.generalized import KNOWN_ALGORITHM, Partitioned, Recoded, Requirement
from jali.releases.pdf import Shift, Start, shift_of
from jali.releases.people import people_table
from jali.search.common import Partition, require_feasible
from jali.search.grown import Grown
from jali.search.halves import BYS, By, halve, people_of
from jali.search.items import Mode, Similarity, Split, columns_of
from jali.search.layout import PEELS, SHOWS, Objective, Peel, RecodeShow
from jali.search.mondrian import Boxes, mondrian, require_cuts
from jali.search.peeling import Search
from jali.search.recode import Recoding, recode_groups, standouts
from jali.search.relaxed import Relaxing
from jali.search.spilled import Bits, Halving
from jali.search.trunk import Trunk

Kind = TypeVar("Kind", bound=Partitioned)


def of_groups(
    kind: type[Kind], table: Table, group: Ints, groups: int, principles: tuple[Principle, ...],
    *, method: Mapping[str, Any], shows: Mapping[str, Show], shift: Shift | None = None, divided: bool = True,
    beyond: _Beyond | None = None,
) -> Kind:  # fmt: skip
    """The release of groups, each shown by its own values; `group` is that of each record, -1 if suppressed.

    Where people with equal values are not `divided` it is that of each combination. `beyond` knows the members of
    groups that do not fit into memory.
    """
    if divided:
        held, number = table.merged(group)
        home = number.astype(np.int64)
        own = group[one_of_each(home, held.records)]
    else:
        held = table.distinct()
        own = group[held.frequencies.row_combination]
        home = one_of_each(held.frequencies.row_combination, len(group))
    members = iter(_members(held, own, groups) if beyond is None else beyond.members(own))
    made = [
        publish_groups(c, next(members), shows[c.name], shift=shift) if c.role == "quasi" else publish_exact(c)
        for c in held.columns
    ]
    # boxes that show the same are one published group
    shown, first = combine([(c.held, len(c.labels)) for c in made if c.role == "quasi"], held.records)
    others = None if beyond is None else beyond.others
    beside = () if others is None else others.large.of_role("other")
    published = _partition(held, shown, len(first)) if table.person is not None else None
    if published is not None and not bool(hold(principles, published.counts(held)).all()):
        raise InfeasibleError(ALIKE)
    release = kind(
        tuple(made),
        manifest_of(kind.kind, table, principles, method, groups=len(first), suppressed=0, others=beside),
        numbers=held.multiplicity,
        weight=mean_weight(held, shown.astype(np.int64)),
        weight_name=table.weight_name,
        people=None if published is None else people_table(held, published, made, principles),
        origin=table.origin,
        unheld=None if others is None else others.unheld(held, own, made),
    )
    if table.person is None and len(first) < groups and not bool(hold(principles, release.counts()).all()):
        raise InfeasibleError(ALIKE)
    release.remember(home, table.records, by_combination=not divided)
    counts = dict(release.manifest.counts) | {"suppressed": release.suppressed}
    release.manifest = replace(release.manifest, counts=counts)
    costs = vars(holder_costs(release, table, table.domain, pieces=None if beyond is None else beyond.pieces()))
    metrics = {name: costs[name] for name in ("kl", "average", "discernibility", "loss")}
    release.manifest = replace(release.manifest, metrics=metrics)
    release.verify()
    return release.with_notes(note_of_stars(release))


class _Beyond(NamedTuple):
    """The groups of a table beyond memory, and the rows of it, piece by piece."""

    grown: Grown
    pieces: Callable[[], Iterable[Table]]  # no cell of quasi-identifiers and sensitive values in two of them
    others: GroupedRows | None = None  # with columns that are not held

    def members(self, records: Ints) -> Iterator[Members]:
        """Who is in each group, for each quasi-identifier in turn."""
        for kept in self.grown.members:
            codes, group, rows = (array.astype(np.int64) for array in kept)
            yield Members(codes, group, self.grown.groups, records, rows)


def _members(table: Table, group: Ints, groups: int) -> list[Members]:
    """Who is in each group, for each quasi-identifier: combinations where none of them is divided, else records."""
    frequencies, codes = table.frequencies, [column.codes for column in table.quasi]
    combination = np.zeros(frequencies.combinations, dtype=np.int64)
    combination[frequencies.row_combination] = group
    if not np.array_equal(combination[frequencies.row_combination], group):
        return [Members(code.astype(np.int64), group, groups, group, table.multiplicity) for code in codes]
    rows = counted(frequencies.combination, frequencies.rows, frequencies.combinations)
    return [Members(code.astype(np.int64), combination, groups, group, rows) for code in frequencies.codes.T]


def _partition(table: Table, shown: NDArray[np.int32], groups: int) -> Partition:
    """The published groups of the table's combinations."""
    group = np.zeros(table.frequencies.combinations, dtype=np.int64)
    group[table.frequencies.row_combination] = shown
    return Partition(group, groups, {})


class _Asked(NamedTuple):
    """A table, and how its groups are published whichever they are."""

    table: Table
    principles: tuple[Principle, ...]
    method: Mapping[str, Any]
    shows: Mapping[str, Show]
    shift: Shift

    def release(
        self, kind: type[Kind], group: Ints, groups: int, checked: int, *, divided: bool = False,
        beyond: _Beyond | None = None,
    ) -> Kind:  # fmt: skip
        """The release of these groups; `checked` is how many groups the search has judged."""
        how: Any = {"method": self.method, "shows": self.shows, "shift": self.shift, "divided": divided}
        how |= {"beyond": beyond}
        made = of_groups(kind, self.table, group, groups, self.principles, **how)
        made.search = {"checked": checked}
        return made


def partition(
    table: Table,
    principles: Requirement,
    *,
    mode: Mode = "strict",
    split: Split | By | None = None,
    similarity: Similarity = "box",
    importance: Mapping[str, float] | None = None,
    show: Show | Mapping[str, Show] | None = None,
    towards: float | Fraction | None = None,
    start: Start = "taxonomy",
    grid: Grid | None = None,
    suppress: float = 0.0,
    transparent: bool = False,
    threads: int | None = None,
    on_step: Step | None = None,
) -> Partitioned:
    """Cut the table into small groups that keep every promise (Mondrian), as a release.

    `mode` is "strict" (no two boxes overlap) or "relaxed" (people with equal values may be divided). `split` says which
    column is cut first: "range" (the default), "entropy" or "kl", where `similarity="pdf"` compares groups by their
    distributions and not by their boxes. `importance` multiplies what a cut of a column counts, by name and 1 where
    none is given, so that important columns are cut first.
    `show` says how a group's values are shown: "taxonomy", "interval", "set" or "pdf", for all columns or by column; by
    default numbers as intervals, words by their taxonomy, else as sets. With "pdf" a cell is the distribution in its
    group, or with `towards` below 1 one between even shares over what it starts from ("taxonomy": its node, "set": its
    values) and that. Intervals and sets name public values alone: those of a declared domain, and those that at least k
    people of the table share (k of the promises, else 5). Other ends are rounded outward to multiples of `grid`, a step
    for all columns or by column (for dates a unit such as "month"), else of a step that follows from declared limits,
    else from the rows, and the release says so; a set shows words that are not public as other values, and numbers as
    an interval. "interval-exact" and "set-exact" name any value.
    `suppress` is the share of rows that may be suppressed (shown as `*`), where that lowers the KL-divergence.
    `transparent=True` keeps the promises also against an attacker who knows this algorithm: the people are cut into
    equal halves, by the column that makes the boxes smallest (`split="area"`) or that spans most ("range"); people with
    equal values are divided at random, and boxes may overlap. k-anonymity alone is cut as without it.
    """
    require_table("partition", table, large=True)
    required, share = principles_of(principles), budget_of(suppress)
    as_it_is = sizes_alone(required) and not one_of(mode, ("relaxed",)) and not one_of(split, ("area",))
    halves = is_asked(transparent) and not as_it_is
    by: Any = _equally(split, required, share) if halves else _plainly(split)
    require_cuts(mode, "range" if halves else by, similarity)
    if isinstance(table, LargeTable):
        _require_beyond(table, required, share)
        if halves or mode == "relaxed":
            table.at_roots(other=True)  # which must fit
    require_publishable(table)
    table = only_present(table)
    shows = shows_of(table.quasi, show)
    _require_cut(table, required, mode, share)
    if mode == "relaxed" and not isinstance(table, LargeTable):
        table = table.one_by_one()  # people of one record may go to different groups
    shift = shift_of(shows, towards, start)
    table, named = naming_values(table, shows, grid, promised_people(required))
    weights = importance_of(table, importance)
    method: dict[str, Any] = {"name": "partition", "mode": "relaxed" if halves else mode, "split": by, "show": shows}
    method |= {"suppress": str(suppress)} | ({"similarity": similarity} if by == "kl" else {})
    method |= (shift.to_dict() if "pdf" in shows.values() else {}) | told_importance(table, importance) | named
    if transparent:
        one_row = table.person is None
        method |= halved_claim(one_row=one_row) if halves else claim(method, required, one_row=one_row)
    asked = _Asked(table, required, method, shows, shift)
    with watched("partitioning", on_step) as step:
        if isinstance(table, LargeTable):
            ends = {c.name: order for c in table.quasi if (order := ends_alone(table, c, shows[c.name])) is not None}
            told: Any = {"split": "range" if halves else by, "importance": weights, "on_step": step, "ends": ends}
            told |= {"similarity": similarity}
            strict = not halves and mode == "strict"
            trunk = Trunk(table.without_others() if strict else table, required, **told)
            if strict:
                return _cut_beyond(asked, table, trunk, threads)
            return _halved_beyond(asked, trunk, by) if halves else _relaxed_beyond(asked, trunk, threads)
        if halves:
            return _halved(asked, by, weights, step)
        options: Any = {"mode": mode, "split": by, "similarity": similarity, "threads": threads, "importance": weights}
        cut = partial(mondrian, table, required, **options, on_step=step)
        return _best_cut(asked, cut, _candidates(table, required, int(share * table.rows), step))


def _require_beyond(table: LargeTable, required: tuple[Principle, ...], share: Fraction) -> None:
    """Raise InputError for what cannot be found from histograms."""
    if share:
        raise table.refused("partition with suppress", "leave suppress out, or generalize")
    if any(p.scope == "table" for p in required):
        raise table.refused("partition under Safety", "generalize")


def _cut_beyond(asked: _Asked, table: LargeTable, trunk: Trunk, threads: int | None) -> Partitioned:
    """The release of a table beyond memory: its engine cuts groups until they fit."""
    branches = trunk.grow()
    grown = trunk.finish(branches, threads)
    others = GroupedRows(table, trunk, branches, grown, threads) if table.others else None
    whole = None if others is None else others.whole()
    grown, others = (grown, others) if whole is None else (whole, None)
    return _of_grown(asked, grown, lambda: trunk.pieces(branches, other=False), others)


def _halved_beyond(asked: _Asked, trunk: Trunk, by: By) -> Partitioned:
    """The release of equal halves of a table beyond memory, whose people pass through a private file."""
    halving = Halving(trunk, by, Bits(fresh_order, open_order))
    return _of_grown(asked, halving.grown(trunk.portions()), trunk.table.pieces)


def _relaxed_beyond(asked: _Asked, trunk: Trunk, threads: int | None) -> Partitioned:
    """The release of a relaxed partition of a table beyond memory, whose people pass through a private file too."""
    relaxing = Relaxing(trunk, threads)
    return _of_grown(asked, relaxing.grown(trunk.in_order(relaxing.order)), trunk.table.pieces)


def _of_grown(
    asked: _Asked, grown: Grown, pieces: Callable[[], Iterable[Table]], others: GroupedRows | None = None
) -> Partitioned:  # fmt: skip
    beyond = _Beyond(grown, pieces, others)
    found = asked._replace(table=grown.table)
    return found.release(Partitioned, grown.group, grown.groups, grown.checked, divided=True, beyond=beyond)


def _require_cut(table: Table, required: tuple[Principle, ...], mode: Mode, share: Fraction) -> None:
    if mode == "relaxed" and table.person is not None:
        raise InputError("relaxed partitioning needs one row per person", do='use mode="strict"')
    if share and any(p.scope == "table" for p in required):
        raise InputError("a principle about all groups at once allows no suppression here", do="leave out suppress")


def _plainly(split: object) -> object:
    """How groups are cut without equal halves."""
    if one_of(split, ("area",)):
        raise InputError('split="area" is for equal halves', do='pass transparent=True, or use "range"')
    return "range" if split is None else split


def _equally(split: Any, required: tuple[Principle, ...], share: Fraction) -> By:
    """How equal halves are cut; InputError for promises and options that they do not go with."""
    require_mixing(required)
    if share:
        do = "leave suppress out"
        raise InputError("suppress compares releases by sensitive values, and a transparent one must not", do=do)
    by: By = "area" if split is None else split
    if not one_of(by, BYS):
        do = 'leave split out, or use "area" or "range"'
        raise InputError("a transparent partition is cut into equal halves", got=f"split={told(split)!r}", do=do)
    return by


def _halved(asked: _Asked, by: By, importance: Ints | None, step: Step) -> Partitioned:
    """The release of equal halves. Who is drawn into which sample, and the order of ties, are random and forgotten."""
    table = asked.table.one_by_one()  # people of one record may go to different halves
    people = people_of(table)
    require_feasible(asked.principles, people.whole)
    drawn, ties = fresh_order(table.records), open_order(table.records)
    columns = columns_of(table, importance)
    cut = halve(columns, people, asked.principles, drawn=drawn, ties=ties, by=by, on_step=step)
    return asked._replace(table=table).release(Partitioned, cut.group, cut.groups, cut.checked, divided=True)


def _best_cut(asked: _Asked, cut: Callable[..., Boxes], candidates: Iterable[Bools]) -> Partitioned:
    """The release without suppressed combinations, or with those of a candidate where its KL-divergence is lower."""
    release = _of_boxes(asked, cut(hidden=None))
    for hidden in candidates:
        try:
            other = _of_boxes(asked, cut(hidden=hidden))
        except InfeasibleError:  # some groups would be shown alike, and break a promise together
            continue
        if other.manifest.counts["suppressed"] and _cost(other) < _cost(release):
            release = other
    return release


def _of_boxes(asked: _Asked, boxes: Boxes) -> Partitioned:
    group = boxes.row_group if boxes.group is None else boxes.group
    assert group is not None
    return asked.release(Partitioned, group, boxes.groups, boxes.checked, divided=boxes.group is None)


def _candidates(table: Table, principles: tuple[Principle, ...], budget: int, step: Step) -> Iterator[Bools]:
    """Which combinations to suppress: (combinations,) each."""
    if budget:
        yield from standouts(Search(table, principles, "kl", "taxonomy", step), budget)


def _cost(release: Partitioned) -> float:
    return round(release.manifest.metrics["kl"], 12)


def recode(
    table: Table,
    principles: Requirement,
    *,
    objective: Objective = "kl",
    importance: Mapping[str, float] | None = None,
    peel: Peel = "size",
    show: RecodeShow | Literal["pdf", "set-exact"] = "taxonomy",
    towards: float | Fraction | None = None,
    start: Start = "taxonomy",
    grid: Grid | None = None,
    suppress: float = 0.0,
    transparent: bool = False,
    on_step: Step | None = None,
) -> Recoded:
    """Group people who already share their values first, and the rest at the least cost: local recoding, as a release.

    `objective` is what is kept best: "kl" or "granularity"; `importance` multiplies what each column costs it, by name
    and 1 where none is given. With `peel="size"` who is grouped first depends on sizes
    alone; `peel="principle"` keeps more detail, but an attacker who knows the algorithm learns which classes failed.
    `show` is "taxonomy" (the smallest node that covers a group), "set" (its values, where they are public; `grid` as in
    `partition`), "set-exact" (any value) or "pdf" (their distribution, for which the groups are sought as for sets;
    `towards` and `start` as in `partition`).
    `suppress` is the share of rows that may be suppressed (shown as `*`), where that serves the objective; who comes
    first depends on sizes alone. `transparent=True` is for k-anonymity with objective="granularity": then nothing here
    reads sensitive values, and an attacker who knows the algorithm learns nothing more.
    """
    require_table("recode", table)
    required = principles_of(principles)
    budget = int(budget_of(suppress) * table.rows)
    require_publishable(table)
    table = only_present(table)
    _require_show(show)
    shift = shift_of({"": show}, towards, start)
    shows: dict[str, Show] = dict.fromkeys((column.name for column in table.quasi), show)
    table, named = naming_values(table, shows, grid, promised_people(required))
    method: dict[str, Any] = {
        "name": "recode", "objective": objective, "peel": peel, "show": shows, "suppress": str(suppress),
        "known_algorithm": KNOWN_ALGORITHM[peel] if one_of(peel, PEELS) else "",
    }  # fmt: skip
    method |= (shift.to_dict() if show == "pdf" else {}) | told_importance(table, importance) | named
    method |= claim(method, required, one_row=table.person is None) if is_asked(transparent) else {}
    asked = _Asked(table, required, method, shows, shift)
    with watched("recoding", on_step) as step:
        weights = importance_of(table, importance)
        options: Any = {"objective": objective, "show": "taxonomy" if show == "taxonomy" else "set", "peel": peel}
        options |= {"importance": weights}
        sought = partial(recode_groups, table, required, **options, on_step=step)
        plain = sought(budget=0)
        release = _of_classes(asked, plain)
        if budget:
            found = sought(budget=budget)
            other = _of_classes(asked, found)
            # the search reckons KL as if boxes did not overlap: the releases say what it is, but weigh no columns
            better = other.manifest.metrics["kl"] < release.manifest.metrics["kl"]
            if objective == "granularity" or (better if weights is None else found.reached < plain.reached):
                release = other
    return release


def _require_show(show: object) -> None:
    if not isinstance(show, str):
        got = f"show={told(show)!r}"
        raise InputError("recode shows all columns alike", got=got, do='give one display: show="pdf"')
    if show not in (*SHOWS, "set-exact", "pdf"):
        raise InputError(f'no show "{show}"', do=nearest(show, (*SHOWS, "set-exact", "pdf")))


def _of_classes(asked: _Asked, found: Recoding) -> Recoded:
    groups = found.groups - found.suppressed
    return asked.release(Recoded, np.where(found.group < groups, found.group, -1), groups, found.checked)
