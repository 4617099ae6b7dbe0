"""A frontier in words and as one page: sentences, tables and pictures, for the holder of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from jali.compare.methods import METHODS, Met
from jali.compare.points import Point
from jali.core.charts import MARKERS, Picture, require_plots
from jali.core.sketch import COLOURS, marked
from jali.core.text import Html, document, element, html_table, joined, listed, notebook, paragraphs, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jali.compare.frontier import Frontier

WITHSTANDS = "withstands an attacker who knows how the groups were chosen"
# -- in words ----------------------------------------------------------------------------------------------------------

HEADER = ("method", "KL (nats)", "query error", "meets", "transparent", "seconds")


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
    if chosen is not None and frontier.transparent:
        yield from _transparency(chosen, meeting)
    if chosen is not None and chosen.verdict == "otherwise":
        for names, are, sense in _senses(chosen, "otherwise"):
            yield f"It was accepted that {names} {are} kept in this sense: {sense}."
    rest = [p for p in asked if p.verdict in ("otherwise", "part") and not frontier.meets(p)]
    for point in sorted(rest, key=lambda p: p.rank):
        if chosen is None or point.rank[0] < chosen.rank[0]:
            yield _passed_over(point)


def _chosen(frontier: Frontier, chosen: Point, meeting: Sequence[Point]) -> str:
    begin = f"{chosen.label if frontier.transparent else chosen.method} is recommended for {required(frontier)}: "
    answers = "a query error that is not defined" if chosen.error is None else (
        f"an average query error of {percentage(chosen.error)}")  # fmt: skip
    figures = f"{chosen.kl:.4f} nats, with {answers}"
    least = min(meeting, key=lambda point: point.rank)
    if chosen.rank > least.rank:
        more = f"loses at most a tenth more than {least.method} ({least.kl:.4f} nats), which does not"
        return f"{begin}it {WITHSTANDS}, and {more} ({figures})."
    if len(meeting) == 1:
        return f"{begin}it is the only method here that meets all of it ({figures})."
    ties = [point for point in meeting if point.rank[0] == chosen.rank[0]]
    if len(ties) == 1:
        return f"{begin}it loses least of the {len(meeting)} methods that meet all of it ({figures})."
    others = listed([point.method for point in ties if point is not chosen])
    equal = all(point.rank == chosen.rank for point in ties)
    why = "and comes first in the list" if equal else "and answers queries best"
    return f"{begin}it loses as little as {others}, {why} ({figures})."


def _transparency(chosen: Point, meeting: Sequence[Point]) -> Iterator[str]:
    """Whether the recommended point withstands an attacker who knows the algorithm, or what that would cost."""
    others = [point for point in meeting if point.transparent]
    if chosen.transparent:
        if chosen.rank == min(point.rank for point in meeting):  # else the first sentence says it
            yield f"It {WITHSTANDS}."
    elif others:
        best = min(others, key=lambda point: point.rank)
        yield f"{best.label} ({best.kl:.4f} nats), {WITHSTANDS}, but loses more than a tenth more."
    else:
        yield f"No method that meets all of it {WITHSTANDS}."


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


def cells(point: Point) -> tuple[str, str, str, str, str]:
    """The figures of a point: KL-divergence, query error, what it meets, whether it is transparent, seconds."""
    kl = "–" if point.kl is None else f"{point.kl:.4f}"
    error = "–" if point.kl is None else percentage(point.error)
    withstands = "–" if point.reason else "yes" if point.transparent else "no"
    return kl, error, point.meets, withstands, f"{point.seconds:,.1f}"


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
        yield f"{cell:<{width}}" if place in (1, 4, 5) else f"{cell:>{width}}"


# -- as a page ---------------------------------------------------------------------------------------------------------

TITLE = "Privacy against usefulness"
MARK = "Confidential: every figure here was computed from the original table. Do not hand this page out."
HOW_TO_READ = (
    "Each sign is a method at a strength of the requirement; the lower it stands, the more an analyst keeps. A full "
    "sign meets all of the requirement, and only those are joined by a line. A half-full sign keeps all of it, but "
    "some of it in a sense of its own, which was not accepted. An empty sign does not keep all of it. The ring marks "
    "the one that is recommended. A sign with an edge in the colour of the letters withstands an attacker who knows "
    "how the groups were chosen."
)
LIMITS = (
    "KL-divergence compares the distribution that an analyst infers with that of the original, over all "
    "quasi-identifiers and sensitive columns together: 0 means that nothing is lost.",
    "Which method costs least depends on the original, so the choice itself says a little about it. No promise "
    "covers that, not even that of a transparent release: where it matters, choose the method beforehand.",
    "Publish one of these releases, never two: promises hold for each of them alone.",
)
MET = {"yes": "yes", "otherwise": "in a sense of its own", "no": "no"}
RING = "recommended"
SPIKE = 20
"""Figures that are further apart than this many times are drawn on a logarithmic scale."""


def page(frontier: Frontier) -> str:
    """The whole page, which asks nothing of a network."""
    require_plots()
    top = element("header", "\n", joined([element("h1", TITLE), element("p", MARK, class_="mark")]), "\n")
    body = joined([top, element("main", "\n", inside(frontier), "\n")])
    return document(TITLE, body, edition="private")


def shown(frontier: Frontier) -> Html:
    """What a notebook shows: the same, marked as confidential too."""
    return notebook(element("p", element("b", MARK)), inside(frontier))


def inside(frontier: Frontier) -> Html:
    """What the page says, without its head; without pictures where they cannot be drawn."""
    parts = [_section("recommended", "Recommended", _sentences(frontier))]
    if find_spec("matplotlib") is not None:
        shown = [element("p", HOW_TO_READ), element("div", *figures(frontier), class_="pair")]
        parts.append(_section("frontier", "Strength against cost", joined(shown)))
    parts.append(_section("points", "Every method at every strength", _points(frontier)))
    parts.append(_section("senses", "What each method keeps, and in which sense", _senses_section(frontier)))
    missing = [point for point in frontier.points if point.reason]
    if missing:
        items = [element("li", f"{p.method}, {varied(frontier, p)}: {p.reason}") for p in missing]
        parts.append(_section("missing", "What could not be made", element("ul", "\n", joined(items), "\n")))
    parts.append(_section("limits", "What to keep in mind", joined(element("p", text) for text in LIMITS)))
    return joined(parts)


def _section(name: str, title: str, body: Html) -> Html:
    return element("section", "\n", joined([element("h2", title), body]), "\n", id=name)


def _sentences(frontier: Frontier) -> Html:
    return joined(element("p", element("b", text) if first == 0 else text) for first, text in
                  enumerate(reasons(frontier)))  # fmt: skip


def _points(frontier: Frontier) -> Html:
    name, chosen = frontier.vary.rpartition(".")[2], frontier.recommended
    rows = [
        (str(point.strength), f"{point.method} (recommended)" if point is chosen else point.method, *cells(point))
        for point in frontier.points
    ]
    asked = f"asked: {frontier.asked}; {frontier.queries:,} random questions of volume {frontier.volume:g}"
    table = html_table(
        (name, *HEADER), rows, caption=f"{required(frontier)}, by {frontier.vary} ({asked})", numbers=(0, 2, 3, 6)
    )
    return joined([table, paragraphs(*map(sentence, undefined(frontier)))])


def _senses_section(frontier: Frontier) -> Html:
    rows = [
        (f"{point.method}: {METHODS[point.method].about}", part.principle, MET[part.met], part.sense)
        for point in frontier.at_asked
        for part in point.parts
    ]
    accepted = listed(sorted(frontier.accept)) or "none"
    caption = f"The requirement as asked; methods whose own sense is accepted: {accepted}"
    return html_table(("method", "principle", "met", "sense"), rows, caption=caption, named=True)


# -- pictures ------------------------------------------------------------------------------------------------------


class _Axis(NamedTuple):
    """What stands upright: its title and label, the figure of a point, and how it reads in words and at a tick."""

    title: str
    label: str
    figure: Callable[[Point], float | None]
    words: Callable[[float], str]
    tick: Callable[[float], str]


def pictures(frontier: Frontier) -> tuple[Picture, Picture]:
    """KL-divergence and query error, by strength and method."""
    kl = _Axis("KL-divergence", "KL-divergence (nats)", lambda point: point.kl, "{:.4f} nats".format, "{:g}".format)
    error = _Axis("Query error", "average relative error", lambda point: point.error, percentage, _percent)
    return _picture(frontier, kl), _picture(frontier, error)


def figures(frontier: Frontier) -> list[Html]:
    """The pictures with their captions."""
    return [
        element("figure", "\n", joined([element("figcaption", made.title), made.svg(f"frontier-{at}")]), "\n")
        for at, made in enumerate(pictures(frontier), 1)
    ]


def _picture(frontier: Frontier, axis: _Axis) -> Picture:
    told = [
        f"{point.label} at {varied(frontier, point)}: {axis.words(value)}, meets {point.meets}"
        for point in frontier.points
        if (value := axis.figure(point)) is not None
    ]
    missing = sum(axis.figure(point) is None for point in frontier.points)
    without = f" Not drawn, because there is no such figure: {missing}." if missing else ""
    description = f"{'; '.join(told) or 'No figures'}.{without}"

    return Picture(
        f"{axis.title} by {frontier.vary}", description, lambda canvas: _draw(canvas, frontier, axis), 5.6, 4.0
    )


def _draw(canvas: Figure, frontier: Frontier, axis: _Axis) -> None:
    axes = canvas.subplots()
    strengths = list(dict.fromkeys(point.strength for point in frontier.points))
    methods = list(dict.fromkeys(point.method for point in frontier.points))
    for number, name in enumerate(methods):
        aside = (number - (len(methods) - 1) / 2) * 0.08  # so that equal figures do not hide each other
        own = [
            (strengths.index(point.strength) + aside, value, point)
            for point in frontier.points
            if point.method == name and (value := axis.figure(point)) is not None
        ]
        _draw_method(axes, frontier, list(METHODS).index(name), own)
    axes.set(xlabel=f"{frontier.vary} (weak to strong)", ylabel=axis.label, xlim=(-0.5, len(strengths) - 0.5))
    ticks = [f"{value}\nasked" if value == frontier.asked else f"{value}" for value in strengths]
    axes.set_xticks(range(len(strengths)), ticks)
    drawn = [value for point in frontier.points if (value := axis.figure(point)) is not None]
    _scale(axes, axis, drawn)
    axes.grid(axis="y", linewidth=0.4, color="#cccccc")
    axes.set_axisbelow(True)
    if drawn:
        signs, names = axes.get_legend_handles_labels()
        order = sorted(range(len(names)), key=lambda at: names[at] == RING)  # the ring last
        canvas.legend([signs[at] for at in order], [names[at] for at in order], loc="outside upper center", ncols=4,
                      frameon=False)  # fmt: skip


def _draw_method(axes: Axes, frontier: Frontier, number: int, own: list[tuple[float, float, Point]]) -> None:
    """The signs of a method; those that meet all of the requirement are joined."""
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    name = list(METHODS)[number]
    for transparent in (False, True):
        joined_ = [(x, y) for x, y, point in own if frontier.meets(point) and point.transparent is transparent]
        if joined_:
            axes.plot(*zip(*joined_, strict=True), color=colour, linewidth=1.3, zorder=2)
    for place, (x, y, point) in enumerate(own):
        full = "full" if frontier.meets(point) else "left" if point.verdict == "otherwise" else "none"
        axes.plot([x], [y], linestyle="", marker=marker, markersize=6, color=colour, fillstyle=full,
                  markeredgecolor="black" if point.transparent else colour, markerfacecoloralt="white", zorder=3,
                  label=name if place == 0 else None, gid=marked([point.name]))  # fmt: skip
        if point is frontier.recommended:
            axes.plot([x], [y], linestyle="", marker="o", markersize=14, markerfacecolor="none",
                      markeredgecolor="black", markeredgewidth=1.4, zorder=4, label=RING)  # fmt: skip


def _scale(axes: Axes, axis: _Axis, values: list[float]) -> None:
    if values and min(values) > 0 and max(values) > SPIKE * min(values):
        _log_scale(axes, max(values) / min(values))
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: axis.tick(float(f"{value:.6g}")))


def _log_scale(axes: Axes, times: float) -> None:
    """Powers of ten at the long ticks; over few of them also 2 and 5 times those, else too few ticks have a figure."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if times < 1000 else (1,)))
    axes.yaxis.set_minor_formatter(NullFormatter())  # its own would write LaTeX


def _percent(share: float) -> str:
    return f"{share * 100:g}%"
