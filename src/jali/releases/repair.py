"""Repair: bring an existing release to a stronger principle by suppressing the groups that break it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding.hierarchy import ROOT
from jali.errors import InfeasibleError, InputError
from jali.principles.base import Principle, exact, hold, principles_of
from jali.principles.counts import GivenCounts
from jali.releases.base import Release, fresh_order, load
from jali.releases.generalized import Generalized, Requirement
from jali.releases.published import Published, cover_of
from jali.search.suppress import first_union_that_holds


def repair(release: Release | str | Path, principles: Requirement, *, suppress: float = 1.0) -> Generalized:
    """A release that also keeps these principles: groups that break one are suppressed (end of Section 5).

    Works on what is published, not on the original. `suppress` is the largest share of rows that may be suppressed.
    Publish the result instead of the first release, never beside it: the difference would give the groups away.
    """
    found = load(release) if isinstance(release, (str, Path)) else release
    if not isinstance(found, Generalized):
        raise InputError(f"a {found.kind} release cannot be repaired", do="repair a generalized one")
    required = tuple(dict.fromkeys(found.principles + principles_of(principles)))
    counts = found.counts()
    if isinstance(counts, GivenCounts):
        raise InputError("a release in which a person has several rows cannot be repaired", do="generalize the table again")
    whole = counts.merged()
    for principle in required:
        principle.check(whole)
    failing = [p for p in required if not bool(p.holds(whole).all())]
    if failing:
        raise InfeasibleError("; ".join(p.shortfall(whole) for p in failing))
    hidden = _hidden_groups(found, required, exact("suppress", suppress) * found.rows)
    return _suppressed(found, hidden[found.group_of_rows], required)


def _hidden_groups(release: Generalized, required: tuple[Principle, ...], budget: object) -> NDArray[np.bool_]:
    counts = release.counts()
    rows = np.bincount(release.group_of_rows, minlength=counts.groups)
    broken = ~hold(required, counts)
    hidden = broken.copy()
    hidden[release.group_of_rows[release.hidden_rows]] = True
    if not broken.any():
        return hidden
    order = np.lexsort((np.arange(counts.groups), rows))
    joining = order[~hidden[order]]
    enough = first_union_that_holds(required, counts, np.flatnonzero(hidden), joining)
    if enough is None or rows[hidden].sum() + rows[joining[:enough]].sum() > budget:
        needed = "all" if enough is None else f"{int(rows[hidden].sum() + rows[joining[:enough]].sum()):,}"
        raise InfeasibleError(f"{needed} of {release.rows:,} rows would have to be suppressed, more than allowed")
    hidden[joining[:enough]] = True
    return hidden


def _suppressed(release: Generalized, rows: NDArray[np.bool_], required: tuple[Principle, ...]) -> Generalized:
    order = fresh_order(release.rows)
    columns = tuple(
        replace(c, codes=c.codes[order]) for c in (_hide(c, rows) if c.role == "quasi" else c for c in release.columns)
    )
    manifest = replace(
        release.manifest,
        principles=required,
        method=dict(release.manifest.method) | {"name": "repair", "repaired": release.manifest.method["name"]},
        counts=dict(release.manifest.counts) | {"suppressed": int(rows.sum())},
        metrics={},
    )
    weight = _mean_weight(release, rows)
    made = Generalized(
        columns, manifest, weight=None if weight is None else weight[order], weight_name=release.weight_name,
        origin=release.origin,
    )  # fmt: skip
    sizes = np.bincount(made.group_of_rows).astype(np.float64)
    shown = np.bincount(made.group_of_rows[~made.hidden_rows], minlength=len(sizes)).astype(np.float64)
    made.manifest = replace(
        manifest,
        counts=dict(manifest.counts) | {"groups": len(sizes)},
        metrics={
            "discernibility": float(shown @ shown) + float(rows.sum()) * made.rows,
            "average": made.rows / len(sizes),
            "height": float(sum(made.levels.values())),
        },
    )
    made.verify()
    return made


def _hide(column: Published, rows: NDArray[np.bool_]) -> Published:
    """The column with * in these rows; nodes that no longer occur leave no trace."""
    labels = column.labels
    root = column.cover_root
    if root is None:
        labels, root = pa.concat_arrays([labels, pa.array([ROOT], pa.string())]), len(labels)
    codes = np.where(rows, root, column.codes)
    used = np.flatnonzero(np.bincount(codes, minlength=len(labels)))
    renumber = np.full(len(labels), -1, dtype=np.int64)
    renumber[used] = np.arange(len(used))
    labels = labels.take(pa.array(used))
    new_root = int(renumber[root]) if renumber[root] >= 0 else None
    facts = _trimmed(column, labels, new_root)
    cover = cover_of(facts, labels, new_root, column.kind)
    return replace(column, labels=labels, codes=renumber[codes], cover=cover, facts=facts, cover_root=new_root)


def _trimmed(column: Published, labels: pa.Array, root: int | None) -> dict[str, object]:
    """The hierarchy's facts without nodes that are no longer published (where the domain was not declared)."""
    assert column.facts is not None
    if column.facts["declared"]:
        return column.facts
    kept = {label for node, label in enumerate(labels.to_pylist()) if node != root}
    levels = []
    at: list[int] = [i for i, label in enumerate(column.facts["levels"][0]["labels"]) if label in kept]
    for facts in column.facts["levels"]:
        last = "parents" not in facts
        here = dict(facts)
        at = at if not last else [0]
        for key in ("labels", "low", "high"):
            if key in facts:
                here[key] = [facts[key][i] for i in at]
        if not last:
            above = sorted({facts["parents"][i] for i in at})
            here["parents"] = [above.index(facts["parents"][i]) for i in at]
            at = above
        levels.append(here)
    return dict(column.facts) | {"levels": levels}


def _mean_weight(release: Generalized, rows: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    if release.weight is None:
        return None
    weight = release.weight.copy()
    if rows.any():
        weight[rows] = float(f"{weight[rows].mean():.6g}")
    return weight
