"""Groups of a public table that hide who of it is in a private one (SPALM, and the same over the partitioner)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine, counted, owners, starts
from jali.core.progress import Step
from jali.encoding import values as v
from jali.encoding.table import Column, Table
from jali.errors import InputError, nearest
from jali.principles.anonymity import ABSENT, PRESENCE, PRESENT, DeltaPresence, KAnonymity
from jali.principles.base import Principle
from jali.principles.counts import Counts, Sensitive, dense
from jali.search.common import levels_of, require_feasible
from jali.search.halves import Halves, People, halve
from jali.search.items import columns_of
from jali.search.lattice.lattice import Lattice
from jali.search.mondrian import mondrian


@dataclass(frozen=True, eq=False)
class Framed:
    """A private table inside a public one, combination by combination of the public table's quasi-identifiers."""

    table: Table  # the public table, compact, with a column that says who is present
    codes: NDArray[np.int32]  # (combinations, columns) in the public table's domain
    public: Ints  # (combinations,) people of the public table
    private: Ints  # (combinations,) people of the private one among them
    place: Ints  # (private records,) the combination of each


@dataclass(frozen=True, eq=False)
class Screen:
    """Disjoint groups of the public table, each within the bounds."""

    group: Ints  # (combinations,)
    groups: int
    levels: Mapping[str, int] | None  # of a lattice node
    checked: int
    nodes: int = 0


def framed(private: Table, public: Table) -> Framed:
    """The private table inside the public one; an InputError where a private row is not in it.

    Rows meet by the values of the quasi-identifiers; each person of the public table can be in the private one once.
    """
    _require_single_rows(private, "private")
    _require_single_rows(public, "public")
    _require_columns(private, public)
    for column in public.quasi:
        public.hierarchy(column.name)  # refuses a value that looks like the root
    codes, unknown = _in_public_codes(private, public)
    frequencies = public.frequencies
    people = np.bincount(frequencies.combination, weights=frequencies.people, minlength=frequencies.combinations)
    place = _places(frequencies.codes, codes, [len(c.values) for c in public.quasi], unknown)
    rows = np.ones(private.records, dtype=np.int64) if private.multiplicity is None else private.multiplicity
    _require_room(private, place, rows, people.astype(np.int64))
    present = counted(place, rows, frequencies.combinations)
    table = _with_presence(public, people.astype(np.int64), present)
    return Framed(table, frequencies.codes, people.astype(np.int64), present, place)


def _require_single_rows(table: Table, which: str) -> None:
    if table.person is not None or table.weight is not None:
        what = "a column of persons" if table.person is not None else "weights"
        raise InputError(
            f"the {which} table has {what}, and presence counts one row per person",
            do="read it without, with one row for each person",
        )


def _require_columns(private: Table, public: Table) -> None:
    own, known = [c.name for c in private.quasi], [c.name for c in public.quasi]
    for name in own:
        if name not in known:
            raise InputError(f'the public table has no quasi-identifier "{name}"', do=nearest(name, known))
    for name in known:
        if name not in own:
            raise InputError(f'the private table has no quasi-identifier "{name}"', do=nearest(name, own))
    told = {c.name for c in private.columns if c.role != "quasi"}
    seen = told & {*(c.name for c in public.columns), *public.unnamed}
    if seen:
        raise InputError(
            f'column "{min(seen)}" would be published as it is, and stands in the public table too',
            do="name it as a quasi-identifier of both, or leave it out of one of them",
        )


def _in_public_codes(private: Table, public: Table) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The private rows in the codes of the public table, and which of them have a value it does not know."""
    columns, unknown = [], np.zeros(private.records, dtype=bool)
    for column in public.quasi:
        own = private[column.name]
        codes = v.places(column.values, own.values)[own.codes]
        unknown |= codes < 0
        columns.append(np.maximum(codes, 0))
    return np.stack(columns, axis=1), unknown


def _places(known: NDArray[np.int32], codes: NDArray[np.int64], widths: list[int], unknown: NDArray[np.bool_]) -> Ints:
    """Which of the known combinations each row has, -1 for none: (rows,)."""
    both = np.concatenate([known.astype(np.int64), codes])
    number, first = combine([(both[:, i], width) for i, width in enumerate(widths)], len(both))
    place = first[number[len(known) :]]  # the first of equal rows; the known combinations come first
    return np.where(unknown | (place >= len(known)), -1, place)


def _require_room(private: Table, place: Ints, rows: Ints, people: Ints) -> None:
    """Raise InputError for the first private row for which the public table has nobody (left)."""
    order = np.argsort(place, kind="stable")
    before = np.cumsum(rows[order]) - rows[order]
    starts = np.searchsorted(place[order], place[order])
    taken = np.empty_like(rows)
    taken[order] = before - before[starts] + rows[order]  # by the rows of the same combination up to this one
    missing = place < 0
    wrong = missing | (taken > np.where(missing, 0, people[place]))
    if not bool(wrong.any()):
        return
    at = int(np.argmax(wrong))
    value = {c.name: c.values[int(c.codes[at])].as_py() for c in private.quasi}
    what = "is not in the public table" if missing[at] else "is there more often than in the public table"
    raise InputError(
        f"row {at + 1} of the private table {what}",
        do="the public table must hold everybody: check that both were read in the same way",
        value=value,
    )


def _with_presence(public: Table, people: Ints, present: Ints) -> Table:
    """The public table by combination, with who is present as a sensitive column."""
    absent = people - present
    combination = np.concatenate([np.flatnonzero(absent), np.flatnonzero(present)])
    is_present = np.repeat([0, 1], [np.count_nonzero(absent), np.count_nonzero(present)])
    codes = public.frequencies.codes[combination]
    quasi = [replace(column, codes=codes[:, i]) for i, column in enumerate(public.quasi)]
    column = Column(PRESENCE, "sensitive", pa.array([ABSENT, PRESENT]), is_present.astype(np.uint8))
    many = np.concatenate([absent[absent > 0], present[present > 0]])
    return Table((*quasi, column), len(combination), multiplicity=many, domain=public.domain)


def lattice_screen(frame: Framed, bounds: DeltaPresence, on_step: Step) -> Screen:
    """The full-domain generalization within the bounds that tells most of the private rows (SPALM).

    Least is the KL cost when each cell spreads evenly over its values: Σ over private rows and columns of log(values).
    """
    lattice = Lattice(frame.table, (bounds,), on_step=on_step)
    costs = [_level_costs(frame, i, column) for i, column in enumerate(frame.table.quasi)]
    nodes = lattice.minimal()
    best = min(nodes, key=lambda node: (round(sum(costs[i][n] for i, n in enumerate(node)), 9), node))
    partition = lattice.partition(best)
    return Screen(partition.group, partition.groups, levels_of(frame.table, best), lattice.checked, lattice.nodes)


def _level_costs(frame: Framed, index: int, column: Column) -> list[float]:
    """What each level of a column costs the private rows."""
    hierarchy = frame.table.hierarchy(column.name)
    rows = np.bincount(frame.codes[:, index], weights=frame.private, minlength=len(column.values))
    mask = column.mask(frame.table.domain)
    sizes = [hierarchy.node_sizes(level, mask)[nodes] for level, nodes in enumerate(hierarchy.maps)]
    return [float(rows @ np.log(np.maximum(size, 1))) for size in sizes]


def partition_screen(frame: Framed, bounds: DeltaPresence, on_step: Step) -> Screen:
    """Boxes of the public table within the bounds, as small as strict partitioning makes them."""
    boxes = mondrian(frame.table, (bounds,), mode="strict", on_step=on_step)
    assert boxes.group is not None
    return Screen(boxes.group, boxes.groups, None, boxes.checked)


# -- equal halves: nobody can tell who is present, not even with this algorithm at hand --------------------------------
#
# The value of a public person is to be present or absent. How many people are drawn into each sample, and how many of
# them are present, follows from the numbers of public and of private people and from the bounds. Columns are chosen by
# the public people's quasi-identifiers. Decision 45 has the theorem.


@dataclass(frozen=True, eq=False)
class Halved:
    """The groups in which somebody is present; people with one combination can be in several of them."""

    size: Ints  # (groups,) people of the public table
    present: Ints  # (groups,) of the private one
    group: Ints  # (entries,) sorted by group, then combination
    combination: Ints  # (entries,) in the public table's numbering
    people: Ints  # (entries,) of the public table
    rows: Ints  # (private rows,) the group of each
    checked: int  # cuts that were judged


def halved_screen(
    frame: Framed, rows: Ints, public: Table, bounds: DeltaPresence, *, drawn: Ints, ties: Ints,
    on_step: Step | None = None,
) -> Halved:  # fmt: skip
    """The public people in groups within the bounds; `drawn` and `ties` are two random permutations of them.

    People are numbered by combination, and of each combination those who are present come first. `rows` is the
    combination of each private row.
    """
    people, halves = halve_people(frame, public, bounds, drawn=drawn, ties=ties, on_step=on_step)
    at, combination, is_present = starts(frame.public), people.combination, people.value
    present = counted(halves.group, is_present, halves.groups)
    number = np.cumsum(present > 0) - 1
    kept = np.flatnonzero(present[halves.group])
    group = number[halves.group[kept]]
    keys, many = np.unique(group * len(frame.public) + combination[kept], return_counts=True)
    entry_group, entry_combination = np.divmod(keys, len(frame.public))
    placed = number[halves.group[at[rows] + _turn(rows)]]
    return Halved(
        counted(group, length=int(number[-1]) + 1), present[present > 0], entry_group, entry_combination,
        many.astype(np.int64), placed, halves.checked,
    )  # fmt: skip


def halve_people(
    frame: Framed, public: Table, bounds: DeltaPresence, *, drawn: Ints, ties: Ints, on_step: Step | None = None
) -> tuple[People, Halves]:
    """Everybody of the public table, and who is together."""
    combination = owners(frame.public)
    before = np.arange(len(combination)) - starts(frame.public)[combination]
    is_present = (before < frame.private[combination]).astype(np.int64)
    people = People(combination, is_present, _whole(len(combination), int(is_present.sum())))
    require_feasible((bounds,), people.whole)
    halves = halve(columns_of(public), people, _judged(bounds), drawn=drawn, ties=ties, on_step=on_step)
    return people, halves


def _whole(public: int, private: int) -> Counts:
    """All public people as one group: their number and how many are present, and nothing else."""
    return dense(np.array([[public - private, private]]), (Sensitive(PRESENCE, (ABSENT, PRESENT)),))


def _judged(bounds: DeltaPresence) -> tuple[Principle, ...]:
    """The bounds, and the least size of a group with somebody present: smaller groups show nobody, so none is cut."""
    if bounds.exact_high == 0:
        return (bounds,)
    return bounds, KAnonymity(-(-bounds.exact_high.denominator // bounds.exact_high.numerator))


def _turn(rows: Ints) -> Ints:
    """How many rows with the same combination come before each."""
    order = np.argsort(rows, kind="stable")
    turn = np.empty(len(rows), dtype=np.int64)
    turn[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    return turn
