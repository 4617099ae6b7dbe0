"""What a caller asks for, checked; and tables without values that do not occur."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from jali.core.arrays import ONE, Ints, combine, counted
from jali.core.text import listed
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT, Hierarchy, Level
from jali.encoding.identifiers import Suspicion, tells_apart
from jali.encoding.large import LargeTable
from jali.encoding.table import Column, Table
from jali.errors import InputError, nearest, told
from jali.principles import AlphaAnonymity, KAnonymity, MultiAttribute, Safety
from jali.principles.base import Principle, exact, show, whole_number
from jali.principles.column import ColumnPrinciple
from jali.principles.counts import Counts
from jali.releases.base import Release
from jali.search.lattice.lattice import Lattice


def budget_of(suppress: float) -> Fraction:
    """The share of rows that may be suppressed."""
    budget = exact("suppress", suppress)
    if not 0 <= budget < 1:
        raise InputError("suppress is a share of the rows, at least 0 and below 1", got=repr(suppress))
    return budget


def promised_people(principles: Iterable[Principle]) -> int | None:
    """How many people must look alike, if a promise says it."""
    found = [p.k for p in principles if isinstance(p, (KAnonymity, AlphaAnonymity))]
    return max(found, default=None)


MOST_IMPORTANT = 1_000_000
"""How many times as important as the least important column another one can be."""


def importance_of(table: Table, given: Mapping[str, float] | None) -> Ints | None:
    """The importance of each quasi-identifier, in millionths of the least one's; None where all are alike.

    A column that is not named has importance 1.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InputError("importance is by column", got=type(given).__name__, do="e.g. importance={'age': 3}")
    names = [column.name for column in table.quasi]
    for name in given:
        if name not in names:
            raise InputError(f'importance: no quasi-identifier "{told(name)}"', do=nearest(name, names))
    weights = [exact(f'importance of "{name}"', given.get(name, 1)) for name in names]
    if min(weights) <= 0 or max(weights) > MOST_IMPORTANT * min(weights):
        do = f"and none more than {MOST_IMPORTANT:,} times that of another column"
        raise InputError("importance must be a number above 0", got=str(told(dict(given))), do=do)
    relative = np.array([round(weight / min(weights) * ONE) for weight in weights], dtype=np.int64)
    return None if (relative == ONE).all() else relative


def told_importance(table: Table, given: Mapping[str, float] | None) -> dict[str, Any]:
    """What the manifest's method says of it; nothing where all columns are alike."""
    if given is None or importance_of(table, given) is None:
        return {}
    return {"importance": {name: float(weight) for name, weight in given.items()}}


def require_table(asked_by: str, given: object, *, large: bool = False) -> None:
    """Raise InputError for anything but a jali table; for one beyond memory, unless the method is made for `large`."""
    if isinstance(given, LargeTable) and not large:
        raise given.refused(asked_by, "use generalize or partition")
    if not isinstance(given, Table):
        raise InputError(f"{asked_by} needs a jali table", got=type(given).__name__, do="use jali.read or jali.table")


def require_two(table: Table) -> None:
    """Raise InputError where a release would be about one person."""
    if table.people < 2:
        raise InputError("a table about one person cannot be published", do="audit it instead: jali.audit(…)")


def require_publishable(table: Table, *, pseudonyms: bool = True) -> None:
    """Raise InputError where a column that is published as it is seems to name people, or where there is one person.

    Pseudonyms tie the rows and tables of a person together: `pseudonyms` says whether the method can have them.
    """
    require_two(table)
    for column, why in table.suspected:
        if not _noted_only(column, why):
            raise InputError(
                f'column "{column.name}" is published as it is and looks like an identifier ({why.kind}): {why.reason}',
                do=f'name it as identifier, or write allow = {{ {column.name} = "why nobody is named by it" }}',
            )
    for column in table.of_role("identifier"):
        if not pseudonyms:
            do = "drop the identifier, or generalize the table"
            raise InputError("a pseudonym would tie the tables of such a release together", got=column.name, do=do)
        if table.person is not None or _repeats(table, column):
            what = f'people have several rows, and the pseudonym of "{column.name}" would tie them together'
            raise InputError(what, do="drop the identifier, or keep one row of each person")


def _noted_only(column: Column, why: Suspicion) -> bool:
    """Whether a column is published in spite of a suspicion, with a note: measurements are often close to unique."""
    return column.role == "sensitive" and column.kind in ("number", "date") and why.kind == "close to unique"


def _repeats(table: Table, column: Column) -> bool:
    """Whether a value of a column, the missing one left out, stands in several rows."""
    known = column.value_rows
    rows = counted(column.codes, table.multiplicity, len(column.values)) if known is None else known
    return bool((rows[: len(column.values) - (1 if column.values.null_count else 0)] > 1).any())


def notes_of(table: Table, principles: Iterable[Principle], others: Sequence[Column] = ()) -> tuple[str, ...]:
    """What a reader of a release should know: which sensitive columns no promise is about, and odd values.

    `others` are columns of the release that the table does not hold.
    """
    judged = [p for p in principles if not p.inner.judges_size_alone]
    names = {None if p.every_column else getattr(p.inner, "sensitive", None) for p in judged}
    found = [
        f'no promise is about the sensitive column "{column.name}": everybody of a group may have the same value'
        for column in table.sensitive
        if None not in names and column.name not in names
    ]
    found += [f'the sensitive column "{c.name}" is close to unique: {w.reason}' for c, w in table.suspected]
    found += [
        f'the numbers of "{column.name}" have digits that only rounding errors can have made: round them first'
        for column in (*table.sensitive, *table.of_role("other"), *others)
        if column.name not in table.allowed and v.needless_digits(column.values.filter(pa.array(column.present)))
    ]
    return (*found, *_together(table))


def _together(table: Table) -> tuple[str, ...]:
    """A note where sensitive numbers and dates, none of them close to unique, tell nearly everybody apart together."""
    columns = [c for c in table.sensitive if c.kind in ("number", "date") and c.name not in table.allowed]
    if len(columns) < 2:
        return ()
    _, first = combine([(column.codes, len(column.values)) for column in columns], table.records)
    if not tells_apart(len(first), table.people):
        return ()
    what = f"the sensitive columns {listed([column.name for column in columns])} together tell nearly everybody apart"
    return (f"{what}: who knows them from elsewhere finds the row; publish fewer, or round them",)


def note_of_stars(release: Release) -> tuple[str, ...]:
    """A note where no quasi-identifier says anything in any row."""
    for column in release.of_role("quasi"):
        if column.cover_root is None or bool((column.held != column.cover_root).any()):
            return ()
    suppress = exact("suppress", release.manifest.method.get("suppress", 0))
    instead = "partition or recode the table" if suppress else "allow some suppression, e.g. suppress = 0.05"
    return (f"every quasi-identifier is shown as {ROOT} in every row: {instead}",)


def refuse_notes(notes: Iterable[str]) -> None:
    """Raise InputError where there is a note and none may be."""
    if every := tuple(notes):
        raise InputError(f"strict: {'; '.join(every)}", do="mend it, or leave strict out")


def node_of(table: Table, levels: Mapping[str, int]) -> tuple[int, ...]:
    """The lattice node of levels by column; a column that is not named stays as it is."""
    names = [column.name for column in table.quasi]
    for name in levels:
        if name not in names:
            raise InputError(f'levels: no quasi-identifier "{name}"', do=nearest(name, names))
    result = []
    for name in names:
        height = table.hierarchy(name).height
        level = levels.get(name, 0)
        if isinstance(level, bool) or not isinstance(level, (int, np.integer)) or not 0 <= level <= height:
            raise InputError(f'levels: column "{name}" has levels 0 to {height}', got=repr(told(level)))
        result.append(int(level))
    return tuple(result)


def failure(lattice: Lattice, node: tuple[int, ...]) -> str:
    """Why a node cannot be published."""
    counts = lattice.roller.counts(lattice.tally(node))
    broken = [p for p in lattice.principles if not bool(p.holds(counts).all())]
    if not broken:
        return "the suppressed rows would not keep the promises as a group of their own"
    return f"these levels do not keep {reached(broken, counts)} within the budget of suppressed rows"


def reached(broken: Iterable[Principle], counts: Counts) -> str:
    """Promises that are broken, each with the level that the worst group reaches."""
    return ", ".join(f"{p.title} {p.bound} (reached: {show(p.worst(counts))})" for p in broken)


def only_present(table: Table) -> Table:
    """The same table; sensitive columns whose domain was not declared know only the values that occur."""
    columns = tuple(_only_present(column) if column.role == "sensitive" else column for column in table.columns)
    unchanged = all(new is old for new, old in zip(columns, table.columns, strict=True))
    return table if unchanged else replace(table, columns=columns)


def _only_present(column: Column) -> Column:
    if column.declared or bool(column.present.all()):
        return column
    kept = np.flatnonzero(column.present)
    rank = np.zeros(len(column.values), dtype=column.codes.dtype)
    rank[kept] = np.arange(len(kept))
    hierarchy = None if column.hierarchy is None else _restricted(column.hierarchy, kept)
    return replace(column, values=column.values.take(pa.array(kept)), codes=rank[column.codes], hierarchy=hierarchy)


def _restricted(hierarchy: Hierarchy, kept: Ints) -> Hierarchy:
    """The hierarchy over some of its values; nodes without a value go."""
    maps, levels = [], []
    for nodes, level in zip(hierarchy.maps, hierarchy.levels, strict=True):
        used, number = np.unique(nodes[kept], return_inverse=True)
        low, high = (None if bound is None else bound[used] for bound in (level.low, level.high))
        maps.append(number.reshape(-1).astype(np.int32))
        levels.append(Level(level.labels.take(pa.array(used)), low, high))
    return replace(hierarchy, maps=tuple(maps), levels=tuple(levels))


class Marginal(NamedTuple):
    """Some quasi-identifiers that get a table of their own."""

    columns: tuple[str, ...]
    linked: bool  # whether it names a sensitive column, and so shows batches


def prepared(table: Table) -> Table:
    """The table if it can be published in batches; rows of one record may go to different ones."""
    require_publishable(table, pseudonyms=False)
    if not table.sensitive:
        raise InputError("batches need a sensitive column", do='name one: sensitive=["…"] in read or table')
    if table.person is not None:
        raise InputError("batches need one row per person", do="keep one row of each person, or generalize the table")
    others = [column.name for column in table.of_role("other")]
    if others:
        do = "leave them out: only quasi-identifiers and sensitive columns are protected in batches"
        raise InputError("an ANGEL release has no other columns", got=", ".join(others), do=do)
    return only_present(table)


def promises_of(table: Table, required: tuple[Principle, ...], k: int | None) -> tuple[int, tuple[Principle, ...]]:
    """How many people must look alike, and the principles that batches must keep.

    k-anonymity, alone or in (α, k), is about buckets. What batches promise must also hold for every mixture of them:
    it must be about the distribution of values in a group and never be broken by merging groups, or it must be Safety
    (docs/decisions/0027).
    """
    sizes = [] if k is None else [whole_number("k", k)]
    kept: list[Principle] = []
    for principle in required:
        if isinstance(principle, KAnonymity):
            sizes.append(principle.k)
        elif isinstance(principle, AlphaAnonymity):
            sizes.append(principle.k)
            kept.append(replace(principle, k=1))
        else:
            _require_local(principle)
            kept.append(principle)
    if not kept:
        do = "promise a diversity or closeness as well, or use jali.partition for k-anonymity alone"
        raise InputError("no principle says what batches must keep about the sensitive values", do=do)
    if not sizes:
        do = "pass k=10, say; k=1 shows quasi-identifiers as they are, as jali.anatomize does"
        raise InputError("no k says how many people must look alike", do=do)
    whole = table.frequencies.whole
    KAnonymity(max(sizes)).check(whole)
    return max(sizes), tuple(dict.fromkeys(kept))


def _require_local(principle: Principle) -> None:
    inner = principle.principle if isinstance(principle, MultiAttribute) else principle
    if principle.scope == "table" and not isinstance(principle, Safety):
        what = f"{principle!r} judges all groups at once, and batches are formed for one sensitive column at a time"
        raise InputError(what, do="write Safety(c, k, sensitive=…) for each column")
    if isinstance(principle, MultiAttribute) and isinstance(inner, (KAnonymity, AlphaAnonymity)):
        if isinstance(inner, AlphaAnonymity) and inner.k == 1:
            return
        raise InputError(
            f"{principle!r} counts people of a batch, and batches promise only distributions",
            do="give k as k=…, and MultiAttribute(AlphaAnonymity(alpha, 1)) for the shares",
        )
    if not isinstance(inner, ColumnPrinciple) or not principle.monotone:
        raise InputError(
            f"{principle!r} is not about the distribution of a sensitive column that mixtures of batches keep",
            do="promise a diversity or closeness; for presence choose k, or use jali.generalize",
        )


def marginals_of(table: Table, given: Iterable[Sequence[str]]) -> list[Marginal]:
    """The marginals that are asked for, each once; one of everything is the table `data`, which is there anyway."""
    quasi, sensitive = ([c.name for c in columns] for columns in (table.quasi, table.sensitive))
    found: dict[Marginal, None] = {}
    if isinstance(given, str) or not isinstance(given, Iterable):
        do = f'write marginals=[["{quasi[0]}", "{sensitive[0]}"]]'
        raise InputError("marginals are lists of columns", got=repr(given), do=do)
    for names in given:
        listed = isinstance(names, Iterable) and not isinstance(names, str)
        if not listed or not all(isinstance(name, str) for name in names):
            do = f'write [["{quasi[0]}", "{sensitive[0]}"]]'
            raise InputError("a marginal is a list of column names", got=repr(names), do=do)
        for name in names:
            if name not in quasi + sensitive:
                raise InputError(
                    f'a marginal names no column of the table: "{name}"', do=nearest(name, quasi + sensitive)
                )
        if len(set(names)) < len(names):
            raise InputError("a marginal names a column twice", got=", ".join(names))
        own = tuple(name for name in quasi if name in names)
        if not own:
            do = "name at least one quasi-identifier: the sensitive columns alone are in the table of batches"
            raise InputError("a marginal has no quasi-identifier", got=", ".join(names) or "no column", do=do)
        found[Marginal(own, any(name in sensitive for name in names))] = None
    found.pop(Marginal(tuple(quasi), linked=True), None)
    return list(found)
