"""What differs from kind to kind of release: what promises mean, by which groups they are judged, what k counts."""

from __future__ import annotations

from jali.principles import KAnonymity
from jali.principles.base import Principle, show
from jali.principles.counts import Counts
from jali.releases.angel import Angel
from jali.releases.base import Release
from jali.releases.buckets import Buckets
from jali.releases.concealed import Concealed
from jali.releases.marginals import Marginals
from jali.reports.material import Material, Missing, attempt

BESIDE = "judged beside the public table, which is no part of the release"


def a_kind(release: Release) -> str:
    """The kind with its article.

    >>> from types import SimpleNamespace
    >>> a_kind(SimpleNamespace(kind="angel")), a_kind(SimpleNamespace(kind="recoded"))
    ('an angel release', 'a recoded release')
    """
    return f"{'an' if release.kind[0] in 'aeiou' else 'a'} {release.kind} release"


def reached(m: Material, principle: Principle) -> str | None:
    """What the release reaches of a promise; None where that is no single figure."""
    if isinstance(m.release, Concealed):
        found = attempt(m.release.presence)
        return None if isinstance(found, Missing) else f"{found.low:.4g} to {found.high:.4g}"
    if isinstance(m.release, (Angel, Marginals)) and isinstance(principle, KAnonymity):
        return None if isinstance(m.audit, Missing) else show(m.audit.k)
    counts = m.counts
    return None if isinstance(counts, Missing) else _worst(principle, counts)


def _worst(principle: Principle, counts: Counts) -> str | None:
    found = attempt(lambda: show(principle.worst(counts)))
    return None if isinstance(found, Missing) else found


def judged(m: Material, principle: Principle) -> str:
    """Whether a promise is kept, and how that was found."""
    kept = {} if isinstance(m.audit, Missing) else m.audit.kept
    how = BESIDE if isinstance(m.release, Concealed) else "judged again from the published tables"
    if repr(principle) not in kept:
        return how if isinstance(m.release, Concealed) else ""
    return f"kept, {how}" if kept[repr(principle)] else "BROKEN"


def group_word(release: Release) -> tuple[str, str]:
    """What the groups are called that sensitive values are counted by: one, and several."""
    if isinstance(release, Angel):
        return "batch", "batches"
    return ("bucket", "buckets") if isinstance(release, Buckets) else ("group", "groups")


def counted(release: Release) -> str:
    """What the groups are called that people are shown in; those of ANGEL are not the ones values are counted by."""
    return "Buckets" if isinstance(release, (Angel, Buckets)) else "Groups"


def alike(release: Release) -> str:
    """What k counts."""
    if isinstance(release, Marginals):
        return "k of k-link and k-combinatorial anonymity"
    return f"People who look alike{' in each table' if isinstance(release, Angel) else ''}, at least"
