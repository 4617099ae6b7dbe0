"""Repair: bring an existing release to a stronger principle by suppressing groups that break it, or tuples in them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import average_size, discernibility, runs
from jali.encoding.hierarchy import ROOT
from jali.errors import InfeasibleError, InputError, nearest, one_of, told
from jali.principles.base import Principle, exact, principles_of
from jali.publish.generalize import WEIGHT_DIGITS
from jali.publish.transparent import claim, is_asked
from jali.releases.base import Manifest, Release, fresh_order
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
    hidden = _hidden_groups(found, required)[found.group_of_rows]
    if by == "tuples":
        single = _hidden_tuples(found, required)
        hidden = single if single.sum() < hidden.sum() else hidden
    _require_budget(hidden, found.hidden_rows, budget)
    made = _suppressed(found, hidden)
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
    rows = np.bincount(release.group_of_rows, minlength=counts.groups)
    broken = breaking(required, counts)
    hidden = broken.copy()
    hidden[release.group_of_rows[release.hidden_rows]] = True
    if not broken.any():
        return hidden
    order = np.lexsort((np.arange(counts.groups), rows))
    joining = order[~hidden[order]]
    enough = first_union_that_holds(required, counts, np.flatnonzero(hidden), joining)
    assert enough is not None, "all groups together were found to hold"
    hidden[joining[:enough]] = True
    return hidden


def _hidden_tuples(release: Generalized, required: tuple[Principle, ...]) -> NDArray[np.bool_]:
    """Which published rows must go where single ones do; of rows with the same group and value chance decides."""
    counts, entry = release.entries()
    hidden = np.unique(release.group_of_rows[release.hidden_rows]).astype(np.int64)
    taken = tuples_taken(required, counts, hidden)
    shuffled = fresh_order(release.rows)
    shuffled = shuffled[np.argsort(entry[shuffled], kind="stable")]
    rank = runs(0, counts.n)  # within the entry
    rows = np.zeros(release.rows, dtype=bool)
    rows[shuffled] = rank < taken[entry[shuffled]]
    return rows


def _require_budget(rows: NDArray[np.bool_], already: NDArray[np.bool_], budget: Fraction) -> None:
    needed, allowed = int(rows.sum()), int(budget * len(rows))
    if needed > allowed and not np.array_equal(rows, already):
        raise InfeasibleError(
            f"{needed:,} of {len(rows):,} rows would have to be suppressed, more than the {allowed:,} allowed"
        )


def _suppressed(release: Generalized, rows: NDArray[np.bool_]) -> Generalized:
    """The same release with * in these rows, in a new order."""
    order = fresh_order(release.rows)
    hidden = (_hide(column, rows) if column.role == "quasi" else column for column in release.columns)
    weight = _mean_weight(release, rows)
    return Generalized(
        tuple(replace(column, codes=column.codes[order]) for column in hidden),
        release.manifest,
        weight=None if weight is None else weight[order],
        weight_name=release.weight_name,
        origin=release.origin,
    )


def _manifest(old: Generalized, new: Generalized, required: tuple[Principle, ...], method: dict[str, Any]) -> Manifest:
    """What the repaired release says of itself; measures that need the original are not known."""
    sizes = np.bincount(new.group_of_rows)
    shown = np.bincount(new.group_of_rows[~new.hidden_rows], minlength=len(sizes)).astype(np.float64)
    suppressed = int(new.hidden_rows.sum())
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
    return replace(column, labels=labels, codes=renumber[codes], cover=cover, facts=facts, cover_root=new_root)


def _mean_weight(release: Generalized, rows: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """The weights with their mean in these rows: a group's own mean would tell the groups apart."""
    if release.weight is None:
        return None
    weight = release.weight.copy()
    if rows.any():
        weight[rows] = float(f"{weight[rows].mean():.{WEIGHT_DIGITS}g}")
    return weight
