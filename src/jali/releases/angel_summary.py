"""An ANGEL release in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jali.releases.summary import ATTACKER, NOT_COVERED, beyond, column_line, cost_lines, many

if TYPE_CHECKING:
    from jali.releases.angel import Angel

RESTS = "the promises about sensitive values rest on the batches alone: every mixture of batches keeps them"
JOIN = "k for all tables together, which the batch number and their counts tie: see jali.audit"
LIKELY = (
    "cells of several tables that hold fewer than k people in most tables that fit what is published, but not in all"
)


def not_covered(release: Angel) -> tuple[str, ...]:
    """What the promises of an ANGEL release do not speak of."""
    joined = (LIKELY if release.manifest.method.get("joint_k") else JOIN,) if len(release.contents.tables) > 1 else ()
    return (*joined, beyond(release.principles), *NOT_COVERED[1:])


def summary(release: Angel) -> str:
    """What `print(release)` shows."""
    counts, metrics, held = release.manifest.counts, release.manifest.metrics, release.contents
    number, count, weights = held.names
    rows, batches = many(counts["rows"], "row"), many(counts["batches"], "batch", "batches")
    lines = [f"Angel release: {rows} in {batches} and {many(counts['groups'], 'bucket')}"]
    for table in held.tables:
        tied = "" if table.batch is not None else ", without batches"
        lines += [f"Published as {table.name}{tied}", *(f"  {column_line(column)}" for column in table.columns)]
    lines += ["Published as batches", *(f"  {column.name}: sensitive, as it is" for column in held.hidden)]
    lines.append(f"  {count}: people of the {number} who have the value")
    lines += [f"  {weights}: weights, as the mean of each {number}"] if weights else []
    lines += _coarsened(release)
    lines.append("Guarantee")
    lines += [f"  {principle!r}: {release.promised(principle)}" for principle in release.principles]
    lines.append(f"  against {ATTACKER}")
    lines.append(f"  {RESTS}")
    if counts["one_row_per_person_assumed"]:
        lines.append("  assuming one row per person")
    lines += ["Not covered", *(f"  {text}" for text in not_covered(release))]
    lines += cost_lines(metrics)
    return "\n".join(lines)


def _coarsened(release: Angel) -> list[str]:
    """What was coarsened so that all tables together keep k."""
    coarsened = release.manifest.method.get("coarsened")
    if not isinstance(coarsened, Mapping) or not coarsened:
        return []
    named = "; ".join(f"{table} ({', '.join(map(str, columns))})" for table, columns in coarsened.items())
    return [f"Coarsened, since k holds for all tables together (joint_k): {named}"]
