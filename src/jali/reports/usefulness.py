"""What a report says of usefulness: columns, pairs of columns, query error, and the cost in figures."""

from __future__ import annotations

import math

from jali.core.charts import bars, lines
from jali.core.text import Html, Section, element, figure, html_table, joined, paragraphs, percent
from jali.measures.columns import CLASSES, Association, Distribution
from jali.reports.material import SEED, Material, Missing, not_defined

_PUBLISHED_FIGURES = {
    "average": ("Rows in a group on average", "{:,.1f}"),
    "discernibility": ("Discernibility", "{:,.0f}"),
    "height": ("Generalization height", "{:.0f}"),
}
"""Measures in a manifest that follow from the published tables alone."""


def columns(m: Material) -> Section:
    """Each column, as published and in the original."""
    title = "Column by column"
    private = m.original is not None
    said = (
        f"What an analyst infers from the release, {_spread(m)}, next to the original. The distance is the share of "
        "people that would have to move from class to class to make them equal."
        if private
        else f"What an analyst infers from the release, {_spread(m)}."
    )
    drawn = [_column(found, name, f"column-{i}") for i, (name, found) in enumerate(m.distributions.items())]
    body = joined([paragraphs(said), element("div", *drawn, class_="pair")])
    return Section("columns", title, body, confidential=private)


def _spread(m: Material) -> str:
    """How people are spread over the values that a cell stands for, by what the cells show."""
    quasi = [column for column in m.release.columns if column.role == "quasi"]
    told = [column.distributions is not None for column in quasi]
    if not any(told):
        return "with people spread evenly within what a cell covers"
    if all(told):
        return "with people spread within a cell as its distribution says"
    return "with people spread as a cell's distribution says, and evenly within what a cell without one covers"


def _column(found: Distribution | Missing, name: str, place: str) -> Html:
    if isinstance(found, Missing):
        return element("div", element("h3", name), not_defined(found))
    labels = found.classes.labels
    series = {"inferred": found.published.tolist()}
    title = name
    if found.original is not None:
        series = {"original": found.original.tolist(), **series}
        title = f"{name} (distance {found.distance:.3f})"
    texts = [
        f"{label}: " + ", ".join(f"{percent(values[i])} {kind}" for kind, values in series.items())
        for i, label in enumerate(labels)
    ]
    picture = bars(labels, series, title=title, description="; ".join(texts), axis="share")
    rows = [(label, *(percent(values[i]) for values in series.values())) for i, label in enumerate(labels)]
    header = (name, *(kind.capitalize() for kind in series))
    return figure(picture, place, html_table(header, rows, caption=f"Shares of {name}", numbers=(1, 2)))


def pairs(m: Material) -> Section:
    """Which associations between columns are kept."""
    private = m.original is not None
    names = list(m.distributions)
    if len(names) < 2:
        return Section("pairs", "Pairs of columns", not_defined(Missing("it has a single column")))
    rows = [
        (name, *(_pair(m.associations[other, name]) for other in names[:i]), *("" for _ in names[i:-1]))
        for i, name in enumerate(names)
        if i > 0
    ]
    said = (
        "How far two columns go together (Cramér's V, from 0 not at all to 1 fully): as inferred from the release, and "
        "the original's in brackets. The darker, the further apart."
        if private
        else "How far two columns go together in the release (Cramér's V, from 0 not at all to 1 fully)."
    )
    classes = f"Columns with more than {CLASSES} values are compared by classes."
    if any(isinstance(found, Missing) for found in m.associations.values()):
        classes += " A dash stands where that is not defined: a column of the two is not, or they have too many values."
    table = html_table(("Column", *names[:-1]), rows, caption="Association of pairs of columns", named=True)
    return Section("pairs", "Pairs of columns", joined([paragraphs(f"{said} {classes}"), table]), confidential=private)


def _pair(found: Association | Missing) -> Html | str:
    if isinstance(found, Missing):
        return element("span", "–", title=found.reason)
    if found.original is None:
        return f"{found.published:.2f}"
    far = min(4, int(abs(found.published - found.original) / 0.05))
    return element("span", f"{found.published:.2f} ({found.original:.2f})", class_=f"far far{far}")


def queries(m: Material) -> Section:
    """How well random questions are answered."""
    title = "Counts that analysts ask for"
    if m.original is None:
        return Section("queries", title, not_defined(Missing("query error is a comparison with the original table")))
    if isinstance(m.errors, Missing):
        return Section("queries", title, not_defined(m.errors), confidential=True)
    volumes = [e.volume for e in m.errors]
    series = {"mean": [_or_none(e.average) for e in m.errors], "median": [_or_none(e.median) for e in m.errors]}
    picture = lines(
        [100 * v for v in volumes], series, title="Relative error of a count, by how much the question covers",
        description="; ".join(f"volume {percent(e.volume)}: median {percent(e.median)}" for e in m.errors),
        labels=("volume of the question, in percent", "relative error"), percent=True,
    )  # fmt: skip
    rows = [
        (percent(e.volume), percent(e.average), percent(e.median), f"{e.empty:,}", f"{e.empty_average:,.1f}")
        for e in m.errors
    ]
    header = ("Volume", "Mean error", "Median error", "Nobody asked for", "Estimated for those")
    table = html_table(header, rows, caption="Query error by volume", numbers=range(5))
    said = (
        f"{m.errors[0].queries} random questions of each volume (seed {SEED}), each about every quasi-identifier and "
        "sensitive column; the relative error of the estimated count. A question of volume 5\u00a0% asks for about "
        "5\u00a0% of all combinations of values."
    )
    body = joined([paragraphs(said), element("div", figure(picture, "queries", table), class_="pair")])
    return Section("queries", title, body, confidential=True)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def cost(m: Material) -> Section:
    """The cost in figures."""
    title = "Cost"
    if m.original is None:
        metrics = m.manifest["metrics"]
        rows = [(label, form.format(metrics[key])) for key, (label, form) in _PUBLISHED_FIGURES.items()
                if key in metrics]  # fmt: skip
        table = html_table(("Measure", "Value"), rows, caption="What follows from the published tables", numbers=(1,),
                           named=True)  # fmt: skip
        said = paragraphs("KL-divergence and loss compare with the original table: see the private edition.")
        return Section("cost", title, joined([table, said] if rows else [said]))
    if isinstance(m.measures, Missing):
        return Section("cost", title, not_defined(m.measures), confidential=True)
    rows = [(label.strip(), text) for label, text in m.measures.lines()]
    table = html_table(
        ("Measure", "Value"), rows, caption="What the release costs an analyst", numbers=(1,), named=True
    )
    about = (
        "KL-divergence is how far what an analyst infers is from the original, over all columns together: 0 is nothing "
        "lost. Loss is how much of a column's domain a cell covers on average: 0 is a single value, 1 all of them."
    )
    return Section("cost", title, joined([paragraphs(about), table]), confidential=True)
