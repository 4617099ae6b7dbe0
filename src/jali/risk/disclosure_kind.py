"""What the maximum disclosure of a release's groups means for the release: exact, a bound, or nothing."""

from __future__ import annotations

from typing import Literal

from jali.releases.base import Release
from jali.releases.generalized import Generalized

Kind = Literal["exact", "at most"]


def bound_kind(release: Release) -> Kind | None:
    """Whether the maximum disclosure is exact, or "at most"; None for a release that has no groups of people.

    It is exact where an attacker who knows someone's quasi-identifiers knows the group. Where groups overlap, which
    they do if rows are suppressed, recoded, divided among equals, shown by nodes that are wider than the groups, or by
    intervals across the nodes that were cut, the attacker knows less, and the figure is an upper bound.
    """
    if release.kind in ("buckets", "concealed"):  # concealed groups that overlap in the public table are refused
        return "exact"
    if release.kind == "angel":  # of a person the bucket is known, and the batch is one of several
        return "at most"
    if not isinstance(release, Generalized):
        return None
    facts = [column.facts or {} for column in release.of_role("quasi")]
    crossing = any(f.get("crossing") for f in facts)
    if release.kind == "generalized":
        return "at most" if crossing or bool(release.hidden_rows.any()) else "exact"
    if crossing or release.kind != "partitioned" or release.manifest.method.get("mode") != "strict":
        return "at most"
    wider = any(f.get("display") == "taxonomy" and f.get("made_by") != "taxonomy" for f in facts)
    return "at most" if wider or release.manifest.counts.get("suppressed", 0) else "exact"
