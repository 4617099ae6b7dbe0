"""A release in a few lines: what was published, under which guarantee, at what cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jali.releases.generalized import Generalized


def summary(release: Generalized) -> str:
    """What `print(release)` shows."""
    counts, metrics = release.manifest.counts, release.manifest.metrics
    who = f" about {counts['people']:,} people" if counts["people"] != counts["rows"] else ""
    lines = [f"Generalized release: {counts['rows']:,} rows{who} in {counts['groups']:,} groups"]
    if counts["suppressed"]:
        lines.append(f"  {counts['suppressed']:,} rows are suppressed: * in every quasi-identifier, one group of their own")
    lines.append("Published")
    for column in release.columns:
        if column.role != "quasi":
            lines.append(f"  {column.name}: {column.role}, as it is")
            continue
        assert column.facts is not None
        height = column.level + len(column.facts["levels"]) - 1
        chosen = "; hierarchy chosen by jali" if column.facts["chosen"] else ""
        example = next((t for t in column.labels.to_pylist() if t not in (None, "*")), "*")
        lines.append(f"  {column.name}: level {column.level} of {height}, like {example}{chosen}")
    if release.weight_name:
        lines.append(f"  {release.weight_name}: weights, as each group's mean")
    lines.append("Guarantee")
    lines += [f"  {principle!r}: {principle.promise()}" for principle in release.principles]
    if counts["one_row_per_person_assumed"]:
        lines.append("  assuming one row per person")
    lines.append("Cost")
    lines.append(
        f"  KL-divergence {metrics['kl']:.4f} nats, average group {metrics['average']:.1f} rows, "
        f"discernibility {metrics['discernibility']:,.0f}, loss {metrics['loss']:.4f}, height {metrics['height']:.0f}"
    )
    return "\n".join(lines)
