"""A frontier in words: why a point is recommended, and its points as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jali.compare.methods import Met
from jali.compare.points import Point
from jali.core.text import listed

if TYPE_CHECKING:
    from jali.compare.frontier import Frontier

HEADER = ("method", "KL (nats)", "query error", "meets", "seconds")


def required(frontier: Frontier) -> str:
    """The requirement in a sentence."""
    return listed([repr(principle) for principle in frontier.requirement])


def varied(frontier: Frontier, point: Point) -> str:
    """The strength of a point: "k = 5"."""
    return f"{frontier.vary.rpartition('.')[2]} = {point.strength}"


def percentage(share: float | None) -> str:
    """An error in per cent.

    >>> percentage(0.1234), percentage(0.00042), percentage(None)
    ('12.3 %', '0.042 %', 'not defined')
    """
    if share is None:
        return "not defined"
    return f"{share * 100:,.1f} %" if share >= 0.001 or share == 0 else f"{share * 100:.2g} %"


def reasons(frontier: Frontier) -> Iterator[str]:
    """Why the recommended point is recommended, or why there is none; then what would cost less, and why it is not."""
    chosen, asked = frontier.recommended, frontier.at_asked
    meeting = [point for point in asked if frontier.meets(point)]
    if chosen is None:
        yield f"Nothing is recommended: none of {listed([p.method for p in asked])} meets all of {required(frontier)}."
        for reason in dict.fromkeys(p.reason for p in asked if p.reason):
            yield f"{listed([p.method for p in asked if p.reason == reason])}: {reason}."
    else:
        yield _chosen(frontier, chosen, meeting)
    if chosen is not None and chosen.verdict == "otherwise":
        for names, are, sense in _senses(chosen, "otherwise"):
            yield f"It was accepted that {names} {are} kept in this sense: {sense}."
    rest = [p for p in asked if p.verdict in ("otherwise", "part") and not frontier.meets(p)]
    for point in sorted(rest, key=lambda p: p.rank):
        if chosen is None or point.rank[0] < chosen.rank[0]:
            yield _passed_over(point)


def _chosen(frontier: Frontier, chosen: Point, meeting: Sequence[Point]) -> str:
    begin = f"{chosen.method} is recommended for {required(frontier)}: "
    answers = "a query error that is not defined" if chosen.error is None else (
        f"an average query error of {percentage(chosen.error)}")  # fmt: skip
    figures = f"{chosen.kl:.4f} nats, with {answers}"
    if len(meeting) == 1:
        return f"{begin}it is the only method here that meets all of it ({figures})."
    ties = [point for point in meeting if point.rank[0] == chosen.rank[0]]
    if len(ties) == 1:
        return f"{begin}it loses least of the {len(meeting)} methods that meet all of it ({figures})."
    others = listed([point.method for point in ties if point is not chosen])
    equal = all(point.rank == chosen.rank for point in ties)
    why = "and comes first in the list" if equal else "and answers queries best"
    return f"{begin}it loses as little as {others}, {why} ({figures})."


def _passed_over(point: Point) -> str:
    met: Met = "no" if point.verdict == "part" else "otherwise"
    cost = f"{point.method} ({point.kl:.4f} nats)"
    said = [
        f"does not keep {names}: {sense}"
        if met == "no"
        else f"keeps {names} in a sense of its own, which was not accepted: {sense}"
        for names, _, sense in _senses(point, met)
    ]
    return f"{cost} {'; it '.join(said)}."


def _senses(point: Point, met: Met) -> Iterator[tuple[str, str, str]]:
    """The principles that a point meets so, those of one sense together, "is" or "are", and the sense."""
    for sense in dict.fromkeys(part.sense for part in point.parts if part.met == met):
        names = [part.principle for part in point.parts if part.met == met and part.sense == sense]
        yield listed(names), "is" if len(names) == 1 else "are", sense


def undefined(frontier: Frontier) -> Iterator[str]:
    """Why there are points without a query error, each reason once."""
    points = [point for point in frontier.points if point.undefined]
    for reason in dict.fromkeys(point.undefined for point in points):
        methods = listed(list(dict.fromkeys(point.method for point in points if point.undefined == reason)))
        yield f"the query error of {methods} is not defined: {reason}"


def cells(point: Point) -> tuple[str, str, str, str]:
    """The figures of a point: KL-divergence, query error, what it meets, seconds."""
    kl = "–" if point.kl is None else f"{point.kl:.4f}"
    error = "–" if point.kl is None else percentage(point.error)
    return kl, error, point.meets, f"{point.seconds:,.1f}"


def table_of_text(frontier: Frontier) -> str:
    """What `print(frontier)` shows."""
    chosen = frontier.recommended
    name = frontier.vary.rpartition(".")[2]
    rows = [(name, *HEADER)]
    rows += [(f"{p.strength}", ("* " if p is chosen else "") + p.method, *cells(p)) for p in frontier.points]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [f"Frontier of {required(frontier)}, by {frontier.vary} (confidential: made with the original)"]
    lines += ["  " + "  ".join(_padded(row, widths)).rstrip() for row in rows]
    lines += [f"  no release: {p.method}, {varied(frontier, p)}: {p.reason}" for p in frontier.points if p.reason]
    lines += [f"  {text}" for text in undefined(frontier)]
    return "\n".join([*lines, *(f"* {text}" if i == 0 else f"  {text}" for i, text in enumerate(reasons(frontier)))])


def _padded(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Words to the left, figures to the right."""
    for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield f"{cell:<{width}}" if place in (1, 4) else f"{cell:>{width}}"
