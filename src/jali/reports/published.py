"""What a report says of the tables: what was published, how useful it is, what it costs, and how it was made."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pyarrow as pa

from jali.core.charts import bars, lines
from jali.core.spill import Written
from jali.core.text import (
    Html,
    Section,
    bullets,
    element,
    figure,
    html_table,
    joined,
    listed,
    paragraphs,
    percent,
    sentence,
)
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT
from jali.measures.measure import MEANS
from jali.measures.queries import CLASSES, Association, Distribution
from jali.releases.column import Published
from jali.releases.marginals import Marginals
from jali.releases.summary import an, cut, many
from jali.reports.material import SEED, Material, Missing, not_defined
from jali.risk.verdict import naming

ROWS = 8
"""The number of rows that are shown of each table."""
MOSTLY = 0.5
"""A picture of the most frequent values says nothing where the others have more people than this."""
MERGED, LISTED = 12, 8
"""The most cells of a column whose values are listed, and the most values of each."""
ROLES = {
    "quasi": "quasi-identifier", "sensitive": "sensitive", "other": "other", "weights": "weights",
    "identifier": "identifier, as pseudonyms", "bucket": "bucket number", "batch": "batch number", "count": "count",
}  # fmt: skip


def published(m: Material) -> Section:
    """The tables and their columns."""
    parts: list[object] = [_sizes(m), _columns(m)]
    parts += [] if m.release.collected is None else _junction_tree(m.release.collected)
    named = naming(m.release)
    parts += [_first_rows(name, rows, named) for name, rows in m.release.counted_tables.items()]
    return Section("published", "What the release contains", joined(parts))


def _sizes(m: Material) -> Html:
    counts = m.manifest["counts"]
    known = {"rows": "Rows", "people": "People", "groups": m.release.words.shown, "suppressed": "Suppressed rows"}
    rows = [(label, f"{counts[key]:,}") for key, label in known.items() if isinstance(counts.get(key), int)]
    rows += [
        (f"Table “{name}”", f"{many(own.count, 'row')} × {many(len(own.names), 'column')}")
        for name, own in m.release.counted_tables.items()
    ]
    caption = sentence(f"{an(m.release.kind.replace('angel', 'ANGEL'))} release").rstrip(".")
    return html_table(("What", "Size"), rows, caption=caption, numbers=(1,), named=True)


def _columns(m: Material) -> Html:
    rows = [
        (f["name"], ROLES.get(str(f.get("role")), f.get("role") or ""), *place, line)
        for f, (place, line) in zip(m.columns, _shown(m), strict=True)
    ]
    several = () if m.release.batched is None else ("Table",)
    return html_table(("Column", "Role", *several, "How it is shown"), rows, caption="Columns", named=True)


def _shown(m: Material) -> list[tuple[tuple[str, ...], str]]:
    """Of each column of the manifest in which table it stands, where columns stand in several, and how it is shown."""
    release, batched, collected = m.release, m.release.batched, m.release.collected
    if batched is not None:
        every = [*(c for t in batched.contents.tables for c in t.columns), *batched.contents.hidden]
        lines = [_line(m, column) for column in every] + [""] * (len(m.columns) - len(every))
        return [((str(f.get("table", "")),), line) for f, line in zip(m.columns, lines, strict=True)]
    of = {c.name: _line(m, c) for c in release.columns} if collected is None else _in_marginals(collected)
    return [((), of.get(f["name"], "")) for f in m.columns]


def shown_lines(m: Material) -> list[tuple[str, str]]:
    """Each column, in the table where it stands, and how it is shown."""
    told = zip(m.columns, _shown(m), strict=True)
    return [(f"{facts['name']} in {place[0]}" if place else str(facts["name"]), line) for facts, (place, line) in told]


def _in_marginals(release: Marginals) -> dict[str, str]:
    """At which level each column stands in which marginals."""
    told: dict[str, str] = {}
    for chain in release.chains:
        own = [(at, levels[chain.name]) for at, (levels, _) in enumerate(release.marginals, 1) if chain.name in levels]
        places = [
            f"{chain.like(level)} in marginal{'s' if len(at) > 1 else ''} {listed(at)}"
            for level in dict.fromkeys(level for _, level in own)
            if (at := [str(place) for place, other in own if other == level])
        ]
        told[chain.name] = "; ".join(places) or "in no marginal"
    return told


def _line(m: Material, column: Published) -> str:
    line = m.release.column_line(column).removeprefix(f"{column.name}: ")
    found = re.match(r"level (\d+) of (\d+), (like .*|always \*)", line)
    if found is None:
        return line
    plainly = "not published" if found[3] == "always *" else "as it is" if found[1] == "0" else "coarser"
    return line.replace(found[0], f"{plainly}, {found[3]} (level {found[1]} of {found[2]})", 1)


def _junction_tree(release: Marginals) -> list[Html]:
    """How the marginals hang together, and what an analyst takes for granted who combines them."""
    chains = {chain.name: chain for chain in release.chains}
    rows = [
        (f"marginal {at}", ", ".join(chains[name].like(level) for name, level in levels.items()), f"{cells.num_rows:,}")
        for at, (levels, cells) in enumerate(release.marginals, start=1)
    ]
    table = html_table(("Marginal", "Columns", "Cells"), rows, caption="The marginals", numbers=(2,), named=True)
    said = "Combined by maximum entropy, the marginals say no more than they must. An analyst takes for granted:"
    return [
        figure(release.picture(), "junction-tree", table), paragraphs(said),
        bullets([sentence(text) for text in release.independencies()]),
    ]  # fmt: skip


def _first_rows(name: str, table: Written, named: list[str]) -> Html:
    """The first rows of a table; what names their people is not repeated here."""
    first = table.first(ROWS)
    columns = [["(not shown here)"] * first.num_rows if column in named else _texts(first[column])
               for column in first.column_names]  # fmt: skip
    rest = table.count - first.num_rows
    caption = f"Table “{name}”, its first rows" + (f" ({rest:,} more follow)" if rest else "")
    rows = [["" if text is None else cut(text) for text in row] for row in zip(*columns, strict=True)]
    numbers = [i for i, c in enumerate(columns) if c and all(t is None or _is_number(t) for t in c)]
    return html_table(first.column_names, rows, caption=caption, numbers=numbers)


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """Cells as they stand in the files."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return list(v.texts(array).to_pylist())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def made(m: Material) -> Section:
    """How it was made, as the manifest tells."""
    rows = [*made_lines(m)]
    by_domain: dict[str, list[str]] = {}
    for name, told in m.manifest["domain"].items():
        by_domain.setdefault(DOMAINS.get(told, told), []).append(name)
    rows += [(f"Values of {listed(names)}", told) for told, names in by_domain.items()]
    rows.append(("Earlier releases", ", ".join(m.manifest["earlier_releases"]) or "none"))
    rows.append(("Made with", f"jali {m.manifest['jali']}"))
    table = html_table(("What", "As the manifest says"), rows, caption="How the release was made", named=True)
    return Section("made", "How it was made", element("div", table))


MADE = {
    "name": "Method", "metric": "The cost that was made small", "objective": "The cost that was made small",
    "suppress": "Share of rows that might be suppressed", "levels_given": "Levels were chosen by hand",
    "mode": "How groups are cut", "split": "Where groups are cut", "show": "How groups are shown",
    "transparent": "Withstands who knows the algorithm", "known_algorithm": "Who knows the algorithm",
    "joint_k": "k was asked for in all tables together", "base": "Added to an earlier release",
    "max_sensitive": "The most sensitive columns of a marginal", "complete": "The search came to its end",
    "peel": "By what classes are found that stay as they are",
    "named": "Values are named that at least these many share",
    "pdf_assumes": "Distributions assume", "generalized": "Quasi-identifiers are generalized too",
}  # fmt: skip
"""What the method of a manifest says, in words."""
COSTS = {"kl": "KL-divergence", "dm": "discernibility"}
"""Costs that a manifest names by letters."""
DOMAINS = {"declared": "as declared", "present": "those that occur in the table"}


def made_lines(m: Material) -> list[tuple[str, str]]:
    """How the release was made: a name and what the manifest says of it."""
    told = [(key, COSTS.get(str(v), v) if key in ("metric", "objective") else v)
            for key, v in m.manifest["method"].items()]  # fmt: skip
    told = [(key, percent(float(v)) if key == "suppress" else v) for key, v in told]
    return [(MADE.get(key, key.replace("_", " ").capitalize()), plain(v)) for key, v in told]


def plain(value: Any) -> str:
    """A value of the manifest as text."""
    if value is None:
        return "none"
    if isinstance(value, dict) and not any(isinstance(one, (dict, list)) for one in value.values()):
        return ", ".join(f"{name}: {plain(one)}" for name, one in value.items()) or "none"
    if isinstance(value, list) and not any(isinstance(one, (dict, list)) for one in value):
        return listed([plain(one) for one in value]) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_PUBLISHED_FIGURES = {
    "average": ("average group size", "{:,.1f}"),
    "discernibility": ("discernibility", "{:,.0f}"),
    "height": ("generalization height", "{:.0f}"),
}
"""Measures in a manifest that follow from the published tables alone."""


def columns(m: Material) -> Section:
    """Each column, as published and in the original."""
    title = "Column by column"
    private = m.original is not None
    said = (
        f"What an analyst infers from the release, {_spread(m)}, next to the original. The distance is the share of "
        "people who are counted under another value, on balance."
        if private
        else f"What an analyst infers from the release, {_spread(m)}."
    )
    told = shown_lines(m)
    drawn = [_column(m, found, name, i, told) for i, (name, found) in enumerate(m.distributions.items())]
    body = joined([paragraphs(said), element("div", *drawn, class_="cards")])
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


def _column(m: Material, found: Distribution | Missing, name: str, place: int, lines: list[tuple[str, str]]) -> Html:
    """What is published of a column, how far off that is, and which values are merged."""
    own = [line for told, line in lines if told == name or told.startswith(f"{name} in ")]
    facts = [sentence(text) for text in dict.fromkeys(own) if text]
    column = next((c for c in m.release.columns if c.name == name), None)
    title = element("h3", name)
    if column is not None and column.role == "quasi" and column.labels.to_pylist() == [ROOT]:
        said = "Not published: every row shows *."
        return element("div", title, element("p", said, class_="none"), class_="card")
    if isinstance(found, Missing):
        told = any("is not declared" in text for text in facts)  # which is why there is no picture
        why = [] if told else [element("p", f"No picture: {found.reason}.", class_="none")]
        return element("div", title, paragraphs(*facts), *why, class_="card")
    if found.distance is not None:
        facts.append(
            f"On balance {percent(found.distance)} of the people are counted under another value than in the original."
        )
    if m.original is not None and column is not None:
        here = many(len(column.labels), "different cell")
        values = int(np.count_nonzero(np.bincount(m.original[name].codes)))
        facts.append(f"{many(values, 'value')} in the original, {here} here.")
    parts = [title, paragraphs(*facts), _shares(found, name, f"column-{place}"), _merged(column)]
    return element("div", *parts, class_="card")


def _shares(found: Distribution, name: str, place: str) -> Html:
    """The shares of a column's classes, drawn and as a table."""
    labels = found.classes.labels
    if labels and labels[-1].endswith(" other values") and found.published[-1] > MOSTLY:
        said = f"No picture: {percent(float(found.published[-1]))} of the people would be among {labels[-1]}, all rare."
        return element("p", said, class_="none")
    series = {"inferred": found.published.tolist()}
    if found.original is not None:
        series = {"original": found.original.tolist(), **series}
    texts = [
        f"{label}: " + ", ".join(f"{percent(values[i])} {kind}" for kind, values in series.items())
        for i, label in enumerate(labels)
    ]
    picture = bars(labels, series, title=f"Shares of {name}", description="; ".join(texts), axis="share of the people")
    rows = [(label, *(percent(values[i]) for values in series.values())) for i, label in enumerate(labels)]
    header = (name, *(kind.capitalize() for kind in series))
    return figure(picture, place, html_table(header, rows, caption=f"Shares of {name}", numbers=(1, 2)))


def _merged(column: Published | None) -> Html:
    """Which values the most frequent cells stand for, where they list several; all of that stands in the manifest."""
    sets = None if column is None or column.role != "quasi" else column.cover.listed
    if column is None or sets is None or int(sets.size.max(initial=0)) < 2:
        return Html("")
    people = column.rows_by_node.astype(np.int64)
    texts = v.texts(sets.values).to_pylist()
    rows = []
    for node in np.argsort(-people, kind="stable")[:MERGED].tolist():
        members = sorted(
            str(texts[i]) for i in sets.member[sets.start[node] : sets.start[node + 1]] if texts[i] is not None
        )
        more = f" and {len(members) - LISTED:,} more" if len(members) > LISTED else ""
        rows.append(
            (cut(str(column.labels[node].as_py())), f"{people[node]:,}", ", ".join(map(cut, members[:LISTED])) + more)
        )
    table = html_table(
        ("Cell", "Rows", "Stands for"), rows, caption=f"Values of {column.name} that are merged", numbers=(1,)
    )
    return element("details", element("summary", "Which values are merged"), table)


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
    header = ("Volume", "Mean error", "Median error", "Questions that fit nobody", "People estimated for those")
    table = html_table(header, rows, caption="Query error by volume", numbers=range(5))
    said = (
        f"“How many people are like this?”: {m.errors[0].queries} random questions of each size (seed {SEED}), each "
        "about every quasi-identifier and sensitive column, and how far the answer of the release is off. A question "
        "of volume 5\u00a0% fits about 5\u00a0% of all combinations of values."
    )
    body = joined([paragraphs(said), element("div", figure(picture, "queries", table), class_="pair")])
    return Section("queries", title, body, confidential=True)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _nats(kl: float) -> str:
    """A number of nats in words that need no theory."""
    answers = kl / math.log(2)
    return (
        f"The KL-divergence is {kl:.1f} nats, which is as much as {answers:.1f} answers to yes-or-no questions about "
        "each person: that much of what the original tells about somebody an analyst cannot infer. For comparison: to "
        "guess one of 10 values that are equally frequent takes 2.3 nats, or 3.3 answers."
    )


def _means(label: str) -> str:
    """What a measure is, in words."""
    of_one = "how much of its domain a cell of this column stands for: 0 a single value, 1 all values"
    return MEANS.get(label, of_one if label.startswith("loss of ") else "")


def _rounded(text: str) -> str:
    """A figure with three digits after the point at the most: a page is no place for more."""
    many_digits = re.fullmatch(r"-?[\d,]+\.\d{4,}", text)
    return text if many_digits is None else f"{float(text.replace(',', '')):,.3f}"


def cost(m: Material) -> Section:
    """The cost in figures."""
    title = "What it costs an analyst, in figures"
    if m.original is None:
        metrics = m.manifest["metrics"]
        rows = [(label, form.format(metrics[key]), MEANS.get(label, "")) for key, (label, form)
                in _PUBLISHED_FIGURES.items() if key in metrics]  # fmt: skip
        table = html_table(("Measure", "Value", "What it is"), rows, caption="What follows from the published tables",
                           numbers=(1,), named=True)  # fmt: skip
        said = paragraphs("KL-divergence and loss compare with the original table: see the private edition.")
        return Section("cost", title, joined([table, said] if rows else [said]))
    if isinstance(m.measures, Missing):
        return Section("cost", title, not_defined(m.measures), confidential=True)
    rows = [(label.strip(), _rounded(text), _means(label.strip())) for label, text in m.measures.lines()]
    table = html_table(
        ("Measure", "Value", "What it is"), rows, caption="What the release costs an analyst", numbers=(1,), named=True
    )
    return Section("cost", title, joined([paragraphs(_nats(m.measures.kl)), table]), confidential=True)
