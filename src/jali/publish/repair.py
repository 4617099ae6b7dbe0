"""Repair: bring an existing release to a stronger principle by suppressing groups that break it, or tuples in them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, average_size, counted, discernibility, owners, starts
from jali.core.rows import fresh_order
from jali.encoding.hierarchy import ROOT
from jali.errors import InfeasibleError, InputError, nearest, one_of, told
from jali.principles.base import Principle, exact, principles_of
from jali.publish.generalize import WEIGHT_DIGITS
from jali.publish.transparent import claim, is_asked
from jali.releases.base import Manifest, Release
from jali.releases.column import Published
from jali.releases.facts import LevelFacts
from jali.releases.generalized import Generalized, Requirement
from jali.releases.load import release_of
from jali.releases.summary import an
from jali.search.common import breaking, first_union_that_holds, tuples_taken

By = Literal["groups", "tuples"]
BYS: tuple[By, ...] = ("groups", "tuples")

WHO_WAS_TAKEN_OUT = (
    "whoever knows the algorithm and everybody's quasi-identifiers learns who was taken out: a group that shows fewer "
    "rows than it has people lost those of its most frequent values, or of the values that broke a promise"
)
"""What suppressing single tuples gives away; saved with the release."""


def repair(
    release: Release | str | Path, principles: Requirement, *, suppress: float = 1.0, by: By = "groups",
    transparent: bool = False,
) -> Generalized:  # fmt: skip
    """A release that also keeps these principles: groups that break one are suppressed (end of Section 5).

    Works on what is published, not on the original. `suppress` is the largest share of rows that may be suppressed.
    `by="tuples"` suppresses single tuples of such a group, as few as are found, until the rest keeps every promise; it
    never suppresses more rows, but an attacker who knows the algorithm learns who was taken out, as the release says.
    `transparent=True` is for k-anonymity, and for a release that is transparent already.
    Publish the result instead of the first release, never both: the difference would give the groups away.
    """
    given = release_of("repair", release)
    if not one_of(by, BYS):
        raise InputError(f'repair: no by "{told(by)}"', do=nearest(by, BYS))
    found = given.grouped_rows
    if found is None:
        raise InputError(f"{an(given.kind)} release cannot be repaired", do="repair a generalized one")
    budget = exact("suppress", suppress)
    if not 0 <= budget <= 1:
        raise InputError("suppress is a share of the rows, at least 0 and at most 1", got=repr(suppress))
    if any(column.generalized_by_group for column in found.of_role("quasi")):
        do = f"{found.manifest.method['name']} the table again with the principles"
        raise InputError("a release that shows each group in its own way cannot be repaired", do=do)
    required = tuple(dict.fromkeys(found.principles + principles_of(principles)))
    told_by: dict[str, Any] = {"by": by, "known_algorithm": WHO_WAS_TAKEN_OUT} if by == "tuples" else {}
    method = _method(found, {"suppress": str(suppress), **told_by}, required, claimed=is_asked(transparent))
    _require_feasible(found, required, by)
    taken = np.where(_hidden_groups(found, required)[found.grouping[0]], found.numbers, 0)
    if by == "tuples":
        single = _hidden_tuples(found, required)
        taken = single if single.sum() < taken.sum() else taken
    _require_budget(found, taken, budget)
    made = _suppressed(found, taken)
    made.manifest = _manifest(found, made, required, method)
    made.verify()
    return made


def _method(
    old: Generalized, asked: dict[str, Any], required: tuple[Principle, ...], *, claimed: bool
) -> dict[str, Any]:
    """What the manifest says of the repair; that the old release was transparent does not say that the new one is."""
    before = {name: value for name, value in old.manifest.method.items() if name != "transparent"}
    method = before | {"name": "repair", "repaired": old.manifest.method["name"], **asked}
    return method | (claim(method, required, one_row=old.people is None) if claimed else {})


def _require_feasible(release: Generalized, required: tuple[Principle, ...], by: By) -> None:
    counts = release.counts()
    if counts.several_rows:
        do = "generalize the table again"
        raise InputError("a release in which a person has several rows cannot be repaired", do=do)
    whole = counts.merged()
    if by == "tuples" and any(principle.scope == "table" for principle in required):
        name = next(repr(principle) for principle in required if principle.scope == "table")
        raise InputError(f"{name} is about all groups at once, and tuples are judged group by group", do='by="groups"')
    for principle in required:
        principle.check(whole)
    failing = [p for p in required if not bool(p.holds(whole).all())]
    if failing:
        raise InfeasibleError("; ".join(p.shortfall(whole) for p in failing))


def _hidden_groups(release: Generalized, required: tuple[Principle, ...]) -> NDArray[np.bool_]:
    """Which published groups must go, the suppressed one among them."""
    counts = release.counts()
    rows = release.sizes
    broken = breaking(required, counts)
    hidden = broken.copy()
    hidden[release.hidden_groups] = True
    if not broken.any():
        return hidden
    order = np.lexsort((np.arange(counts.groups), rows))
    joining = order[~hidden[order]]
    enough = first_union_that_holds(required, counts, np.flatnonzero(hidden), joining)
    assert enough is not None, "all groups together were found to hold"
    hidden[joining[:enough]] = True
    return hidden


def _hidden_tuples(release: Generalized, required: tuple[Principle, ...]) -> Ints:
    """How many of each distinct row must go where single rows do; of those with the same value chance decides."""
    counts, entry = release.entries
    gone = tuples_taken(required, counts, release.hidden_groups)
    order = np.argsort(entry, kind="stable")
    each = np.repeat(order, release.numbers[order])  # the rows of an entry, one after the other
    begin, size = starts(counts.n), counts.n
    shuffled = fresh_order(release.rows)
    shuffled = shuffled[np.argsort(owners(size)[shuffled], kind="stable")]  # within the entry
    rank = np.arange(release.rows) - np.repeat(begin[:-1], size)
    return counted(each[shuffled[rank < np.repeat(gone, size)]], length=len(release.numbers))


def _require_budget(release: Generalized, taken: Ints, budget: Fraction) -> None:
    needed, allowed = int(taken.sum()), int(budget * release.rows)
    already = np.where(release.hidden, release.numbers, 0)
    if needed > allowed and not np.array_equal(taken, already):
        raise InfeasibleError(
            f"{needed:,} of {release.rows:,} rows would have to be suppressed, more than the {allowed:,} allowed"
        )


def _suppressed(release: Generalized, taken: Ints) -> Generalized:
    """The same release; `taken` is how many rows of each distinct one become *."""
    left = release.numbers - taken
    both = np.concatenate([np.flatnonzero(left), np.flatnonzero(taken)])
    rows = np.arange(len(both)) >= int((left > 0).sum())  # the second part is suppressed
    numbers = np.where(rows, taken[both], left[both])
    own = (column.with_codes(column.held[both]) for column in release.columns)
    return Generalized(
        tuple(_hide(column, rows) if column.role == "quasi" else column for column in own),
        release.manifest,
        numbers=numbers,
        weight=_mean_weight(release, both, rows, numbers),
        weight_name=release.weight_name,
        origin=release.origin,
    )


def _manifest(old: Generalized, new: Generalized, required: tuple[Principle, ...], method: dict[str, Any]) -> Manifest:
    """What the repaired release says of itself; measures that need the original are not known."""
    sizes, suppressed = new.sizes, new.suppressed
    shown = added(new.grouping[0][~new.hidden], new.numbers[~new.hidden], len(sizes))
    return replace(
        old.manifest,
        principles=required,
        method=method,
        counts=dict(old.manifest.counts) | {"suppressed": suppressed, "groups": len(sizes)},
        metrics={
            "discernibility": discernibility(shown, suppressed, new.rows),
            "average": average_size(new.rows, len(sizes)),
            "height": float(sum(new.levels.values())),
        },
    )


def _hide(column: Published, rows: NDArray[np.bool_]) -> Published:
    """The column with * in these rows; nodes that no longer occur leave no trace."""
    assert isinstance(column.facts, LevelFacts)
    labels, root = column.labels, column.cover_root
    if root is None and rows.any():
        if ROOT in labels.to_pylist():
            raise InputError(
                f'column "{column.name}" shows a value as {ROOT}, just like suppressed rows',
                do="generalize the table again",
            )
        labels, root = pa.concat_arrays([labels, pa.array([ROOT], pa.string())]), len(labels)
    codes = column.codes if root is None else np.where(rows, root, column.codes)
    used = np.flatnonzero(np.bincount(codes, minlength=len(labels)))
    renumber = np.full(len(labels), -1, dtype=np.int64)
    renumber[used] = np.arange(len(used))
    new_root = int(renumber[root]) if root is not None and renumber[root] >= 0 else None
    labels = labels.take(pa.array(used))
    shown = {label for node, label in enumerate(labels.to_pylist()) if node != new_root}
    declared = column.facts.declared
    kept = [i for i, text in enumerate(column.facts.cells) if text in shown or (declared and text is not None)]
    facts = column.facts.trimmed(kept)
    cover = facts.cover(labels, new_root, column.kind)
    return replace(column, labels=labels, held=renumber[codes], cover=cover, facts=facts, cover_root=new_root)


def _mean_weight(release: Generalized, which: Ints, rows: NDArray[np.bool_], numbers: Ints) -> Floats | None:
    """The weights of these distinct rows, with their mean in the suppressed ones: a group's own would tell it apart."""
    if release.distinct_weight is None:
        return None
    weight = release.distinct_weight[which]
    if rows.any():
        mean = np.average(weight[rows], weights=numbers[rows])
        weight[rows] = float(f"{mean:.{WEIGHT_DIGITS}g}")
    return weight
