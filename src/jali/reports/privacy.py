"""What a report says of privacy: the guarantee in plain sentences, disclosure, groups, the worst of them, limits."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from jali.core.arrays import Ints, counted
from jali.core.charts import bars
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
    percent_up,
    sentence,
)
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT
from jali.principles.counts import Cells, Counts
from jali.releases.display import OTHERS
from jali.releases.summary import ATTACKER, KNOWS_ALGORITHM, cut, many
from jali.reports.material import Material, Missing, judged, not_defined, reached
from jali.risk.audit.figures import Audit, SensitiveAudit, present, together
from jali.risk.beliefs import worst_of
from jali.risk.disclosure.tracker import Curve
from jali.risk.verdict import naming, voiding

WORST = 3
"""The number of worst groups that are shown for each sensitive column."""
VALUES = 9
"""The most values of a group that are shown one by one; the others are added up."""
ABOUT_CURVES = (
    "Each fact is one that the attacker learned elsewhere and that is true: either that somebody does not have a "
    "value, or any “if … then …” between people's values. The curves show the worst such facts, chosen by an "
    "attacker who also knows who is in the table and everybody's quasi-identifiers."
)
INTERVAL = re.compile(r"\[([^,]+), ([^,]+)\]")
"""An interval with both ends, as cells show it."""
FEW = 4
"""The most values of a distribution that are named in a sentence."""
RULED_OUT = ("", "one value", "two values", "three values")


def guarantee(m: Material) -> Section:
    """The promises, what the release reaches, and what that means in the worst case."""
    audit = m.audit
    items = []
    void = voiding(named) if (named := naming(m.release)) else ""
    for principle in m.release.principles:
        found, verdict = reached(m, principle), judged(m, principle)
        told = [repr(principle), f"asked {principle.bound}", *([] if found is None else [f"reached {found}"])]
        figures = "; ".join([*told, *filter(None, (verdict, void))])
        bad = "broken" if verdict == "BROKEN" else "void" if void else None
        promise = element("b", sentence(m.release.promised(principle)))
        items.append(element("li", promise, element("span", figures), class_=bad))
    parts: list[object] = [element("ul", "\n", joined(items), "\n", class_="promises")]
    if m.release.transparent:
        parts.append(element("p", f"The promises hold {KNOWS_ALGORITHM}: proved for this method."))
    if isinstance(audit, Missing):
        parts.append(not_defined(audit))
    else:
        known = listed(m.names("quasi")) or "nothing else"
        said = [text for s in audit.sensitive for text in worst_case(s, known)]
        if said:
            parts += [element("h3", "In the worst case"), bullets(said)]
        if audit.angel is not None:
            caption = "What batches and buckets show together"
            parts.append(html_table(("Figure", "Value"), together(audit.angel), caption=caption, named=True))
        if audit.presence is not None:
            caption = "Presence against the public table"
            parts.append(html_table(("Figure", "Value"), present(audit.presence), caption=caption, named=True))
    return Section("guarantee", "The guarantee", joined(parts))


def worst_case(audited: SensitiveAudit, known: str) -> list[str]:
    """What the worst attackers learn of somebody's value, in words; figures are rounded up."""
    column, curve = audited.column, audited.disclosure
    who = f"An attacker who knows someone's {known}"
    if audited.largest_share >= 1:
        return [f"{who} may be certain of somebody's {column}."]
    if curve is None:
        right = f"is right about {column} at most {percent_up(audited.largest_share)} of the time"
        return [f"{who} {right}; what further facts would add is not defined for this release."]
    texts = [f"{who} is right about {column} at most {percent_up(curve.negations[0])} of the time."]
    for k, sure in list(zip(curve.k, curve.negations, strict=True))[1 : len(RULED_OUT)]:
        if sure >= 1:
            texts.append(
                f"The same attacker who can also rule out {RULED_OUT[k]} may be certain of somebody's {column}."
            )
            break
        still = f"is still right at most {percent_up(sure)} of the time"
        texts.append(f"The same attacker who can also rule out {RULED_OUT[k]} of {column} {still}.")
    fact = "any one fact of the form “if this person has this value, that person has that value”"
    sure = curve.implications[1]
    found = f"is right at most {percent_up(sure)} of the time" if sure < 1 else f"may be certain of somebody's {column}"
    texts.append(f"An attacker who rules out no value but knows {fact} {found}.")
    return texts


def disclosure(m: Material) -> Section:
    """How sure attackers with more facts can be, as curves."""
    title = "How sure attackers with more facts can be"
    if isinstance(m.audit, Missing):
        return Section("disclosure", title, not_defined(m.audit))
    parts: list[object] = [paragraphs(ABOUT_CURVES)] if any(s.disclosure is not None for s in m.audit.sensitive) else []
    for number, audited in enumerate(m.audit.sensitive):
        found = audited.disclosure
        if found is None:
            why = "where there are no groups of people" if isinstance(m.counts, Missing) else (
                "where a person can have several rows"
            )  # fmt: skip
            parts.append(not_defined(Missing(f"the disclosure of {audited.column} has no meaning {why}")))
        else:
            parts.append(_curve(found, audited.column, f"curve-{number}"))
    if not m.audit.sensitive:
        parts = [not_defined(Missing("it has no sensitive column"))]
    return Section("disclosure", title, joined(parts))


def _curve(curve: Curve, column: str, name: str) -> Html:
    sure = next((i for i, value in enumerate(curve.negations) if value >= 1), len(curve.k) - 1)
    end = max(sure + 1, 3)
    shown = Curve(curve.k[:end], curve.implications[:end], curve.negations[:end], curve.kind)
    rows = [(k, percent(a), percent(b)) for k, a, b in zip(shown.k, shown.implications, shown.negations, strict=True)]
    header = ("Facts", "Any facts", "Values ruled out")
    least = " (upper bounds)" if curve.kind == "at most" else ""
    caption = f"Maximum disclosure of {column}{least}"
    drawn = figure(shown.picture(about=column), name, html_table(header, rows, caption=caption, numbers=(0, 1, 2)))
    return element("div", drawn, class_="pair")


def groups(m: Material) -> Section:
    """How large the groups are."""
    one, several, *_ = m.release.words
    title = f"{one.capitalize()} sizes"
    if isinstance(m.counts, Missing):
        return Section("groups", title, not_defined(m.counts))
    size = m.counts.size[m.counts.size > 0]
    labels, number, people = size_classes(size)
    share = people / people.sum()
    picture = bars(
        labels, {"people": share.tolist()}, axis="share of the people", title=f"People by the size of their {one}",
        description="; ".join(f"{several} of {a}: {percent(b)}" for a, b in zip(labels, share, strict=True)),
    )  # fmt: skip
    rows = [(a, f"{n:,}", f"{p:,}", percent(p / people.sum())) for a, n, p in zip(labels, number, people, strict=True)]
    table = html_table(
        (f"People in the {one}", several.capitalize(), "People", "Share"), rows, caption=title, numbers=(1, 2, 3)
    )
    middle = f"{np.median(size):,.1f}".removesuffix(".0")
    facts = [
        (several.capitalize(), f"{len(size):,}"), ("People in the smallest", f"{int(size.min()):,}"),
        ("People in the median one", middle), ("People in the largest", f"{int(size.max()):,}"),
        ("People on average", f"{size.mean():,.1f}"),
    ]  # fmt: skip
    if isinstance(m.audit, Audit) and m.audit.highest_risk is not None and m.audit.average_risk is not None:
        facts += [("Risk of re-identification, highest", percent(m.audit.highest_risk)),
                  ("Risk of re-identification, average", percent(m.audit.average_risk))]  # fmt: skip
    told = html_table(("Figure", "Value"), facts, caption=f"{several.capitalize()} in short", numbers=(1,), named=True)
    return Section("groups", title, element("div", figure(picture, "sizes", table), told, class_="pair"))


def size_classes(size: Ints) -> tuple[list[str], Ints, Ints]:
    """Group sizes in classes that double from the smallest on: their names, groups in each, people in each."""
    low, most = int(size.min()), int(size.max())
    starts = [low]
    while starts[-1] * 2 <= most:
        starts.append(starts[-1] * 2)
    at = np.searchsorted(starts, size, side="right") - 1
    number = counted(at, length=len(starts))
    people = counted(at, size, len(starts))
    ends = [*(s - 1 for s in starts[1:]), most]
    labels = [f"{a:,}" if a == b else f"{a:,} – {b:,}" for a, b in zip(starts, ends, strict=True)]
    return labels, number, people


def worst_groups(m: Material) -> Section:
    """What an attacker believes of people in the worst groups."""
    one, several, *_ = m.release.words
    title = f"What attackers believe about people in the worst {several}"
    counts = m.counts
    if isinstance(counts, Missing):
        return Section("worst", title, not_defined(counts))
    if not counts.sensitive:
        return Section("worst", title, not_defined(Missing("it has no sensitive column")))
    intro = paragraphs(
        f"The {several} in which one value is most frequent, next to everybody who was published. An attacker who "
        f"finds somebody's {one} takes each value to be as likely as the bars show. "
        "This is what the release tells about real people."
    )
    parts: list[object] = [intro]
    for number, column in enumerate(counts.sensitive):
        cells = counts.known(column.name)
        chosen = worst_of(cells, WORST)
        drawn = [_group(m, counts, cells, int(g), f"worst-{number}-{i}") for i, g in enumerate(chosen)]
        parts += [element("h3", column.name), element("div", *drawn, class_="pair")]
    return Section("worst", title, joined(parts))


def _group(m: Material, counts: Counts, cells: Cells, group: int, name: str) -> Html:
    one = m.release.words.one
    own = slice(int(cells.start[group]), int(cells.start[group + 1]))
    shares = np.zeros(len(cells.column))
    shares[cells.value[own]] = cells.n[own] / max(int(cells.size[group]), 1)
    everybody = cells.reference / max(int(cells.reference.sum()), 1)
    labels = ["missing" if text is None else str(text) for text in cells.column.labels]
    order = sorted(range(len(labels)), key=lambda i: (-shares[i], -everybody[i], labels[i]))
    most = VALUES if len(order) > VALUES + 1 else len(order)  # "1 other value" takes as much room as the value
    top, rest = order[:most], order[most:]
    shown = [labels[i] for i in top] + ([f"{len(rest):,} other values"] if rest else [])
    ours = [float(shares[i]) for i in top] + ([float(shares[rest].sum())] if rest else [])
    theirs = [float(everybody[i]) for i in top] + ([float(everybody[rest].sum())] if rest else [])
    people = many(int(cells.size[group]), "person", "people")
    picture = bars(
        shown, {f"this {one}": ours, "everybody": theirs}, axis=f"share of {cells.column.name}",
        title=f"{people}: {described(m, counts, group)}",
        description="; ".join(f"{a}: {percent(b)}" for a, b in zip(shown, ours, strict=True)),
    )  # fmt: skip
    rows = [(a, percent(b), percent(c)) for a, b, c in zip(shown, ours, theirs, strict=True)]
    header = (cells.column.name, f"This {one}", "Everybody")
    caption = f"{cells.column.name} in this {one} and in the whole release"
    return figure(picture, name, html_table(header, rows, caption=caption, numbers=(1, 2)))


def described(m: Material, counts: Counts, group: int) -> str:
    """What a group shows of its people, but for what every row shows."""
    groups = m.release.groups if m.release.one_grouping else None
    if groups is None or groups.num_rows != counts.groups:
        return f"{m.release.words.one} {group + 1}"
    row = groups.slice(group, 1).to_pylist()[0]
    *names, _ = groups.column_names
    told = [_cell(m, name, row[name]) for name in names if row[name] != ROOT]
    return ", ".join(text for text in told if text) or "the same cells as everybody"


def _cell(m: Material, name: str, label: object) -> str:
    """A cell of a group in words; nothing where every row shows it."""
    text = "missing" if label is None else cut(str(label))
    interval = INTERVAL.fullmatch(text)
    shown = f"{name} {interval[1]} to {interval[2]}" if interval else f"{name} {text}"
    column = next((column for column in m.release.columns if column.name == name), None)
    if column is None or label is None:
        return shown
    if len(column.labels) == 1:
        return ""
    sets = column.cover.listed
    if sets is None or len(sets.values) < 2:
        return shown
    node = column.labels.to_pylist().index(label)
    if int(sets.size[node]) == len(sets.values):  # it tells nothing apart
        return f"any {name}"
    named = text.startswith("{") and OTHERS not in text and "…" not in text
    if column.distributions is None and not named:
        return shown
    members = sets.values.take(pa.array(np.sort(sets.member[sets.start[node] : sets.start[node + 1]])))
    texts = [str(text) for text in v.texts(members).to_pylist()]
    if column.kind in ("number", "date"):
        return f"{name} {texts[0]} to {texts[-1]}" if len(texts) > 1 else f"{name} {texts[0]}"
    return f"{name} {' or '.join(map(cut, texts[:FEW]))}{f' or {len(texts) - FEW} more' if len(texts) > FEW else ''}"


def limits(m: Material) -> Section:
    """What the promises do not speak of."""
    title = "Limits of the guarantee"
    notes = m.audit.notes if isinstance(m.audit, Audit) else (
        f"the promises are made against {ATTACKER}", *(f"not covered: {text}" for text in m.release.not_covered)
    )  # fmt: skip
    named = [f"{name} is published as it is: whoever knows it finds the row, whatever is promised"
             for name in naming(m.release)]  # fmt: skip
    return Section("limits", title, bullets([sentence(note) for note in (*named, *notes)]))
