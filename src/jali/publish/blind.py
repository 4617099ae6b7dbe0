"""Tables of an ANGEL release that follow from quasi-identifiers and random bits alone, whatever the values in batches.

Buckets are formed and compared without the sensitive columns, so that nothing about them can be read off which buckets
were taken. Decision 44 has the proof.
"""

from __future__ import annotations

from jali.core.arrays import added
from jali.core.progress import Step
from jali.encoding.table import Table
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn
from jali.measures.holder import divergence
from jali.principles import KAnonymity
from jali.principles.base import Principle
from jali.publish.checks import Marginal
from jali.publish.drafts import Draft, Found, How, bucketed, draft, kl_of, seated_at_random
from jali.releases.column import holder_cover
from jali.search.seating import Seats


def of_seats(table: Table, required: tuple[Principle, ...], seats: Seats, how: How, step: Step) -> Found:
    """Batches that are seated in one way, and the buckets that show the quasi-identifiers best."""
    assigned = seated_at_random(table, required, seats, step)
    buckets, data = _sharpest(table, "data", how, linked=True, step=step)
    return Found(kl_of(assigned, data), seats, buckets, assigned, data)


def blind_marginal(table: Table, asked: Marginal, name: str, how: How, *, step: Step) -> Draft:
    """The table of a marginal, from the k-anonymous buckets that show its own columns best."""
    shows = {column: how.shows[column] for column in asked.columns}
    return _sharpest(table.with_quasi(shows), name, how._replace(shows=shows), linked=asked.linked, step=step)[1]


def _sharpest(table: Table, name: str, how: How, *, linked: bool, step: Step) -> tuple[str, Draft]:
    """Of the buckets that are asked for, those with the lowest KL of the quasi-identifiers alone; and their way."""
    blind = table.without_sensitive()
    tables = [
        (way, draft(blind, name, bucket, how.shows, linked=linked))
        for way, bucket in bucketed(blind, (KAnonymity(how.k),), how, step)
    ]
    return tables[0] if len(tables) == 1 else min(tables, key=lambda each: _kl_of_boxes(blind, each[1]))


def _kl_of_boxes(blind: Table, data: Draft) -> float:
    """The KL-divergence of the quasi-identifiers alone, over the domain of the table's holder."""
    shown = tuple(
        BoxColumn(c.name, c.kind, c.role, holder_cover(c, blind[c.name], blind.domain), c.codes) for c in data.columns
    )
    return divergence(BoxEstimate(shown, added(data.bucket, blind.weight)), blind)
