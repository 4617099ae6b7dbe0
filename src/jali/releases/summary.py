"""A release in a few lines: what was published, under which guarantee, at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from jali.core.text import html_outline, html_table, notebook

if TYPE_CHECKING:
    from jali.principles.base import Principle
    from jali.releases.base import Release
    from jali.releases.column import Published
    from jali.releases.generalized import Generalized
    from jali.releases.linked.buckets import Buckets

ATTACKER = "an attacker who knows everybody's quasi-identifiers and who is in the table"
KNOWS_ALGORITHM = "also against an attacker who knows how the groups were chosen"
"""What a transparent release promises besides."""
HOLDER = "an attacker who holds the public table, which has everybody of this one, and wants to know who is in it"
"""Whom a concealed release is concealed from."""
NOT_COVERED = (
    "what an attacker knows beyond the quasi-identifiers, e.g. somebody's sensitive value",
    "what follows from how the groups were chosen, for whoever knows the algorithm",
    "another release of the same table beside this one",
)
"""What no promise of a generalized release speaks of."""
UNKNOWN_PRESENCE = "whether somebody is in the table, where an attacker does not know it: distributions can tell him"
"""What a release with distributions does not cover besides (Nergiz et al., Section IV)."""
OF_THE_PRESENT = "the sensitive values of whoever is in the table: a group may have one row, or rows with one value"
"""What a promise about presence does not cover either."""
SEVERAL_ROWS = "what follows from how many rows a person has, and in which groups, for whoever knows that"
"""What a release about people with several rows does not cover besides."""
UNKNOWN = "whether somebody's sensitive value is missing: that is published as it is"
"""What promises do not cover where a missing value is no value."""
LONGEST = 60
"""A cell of more letters is cut where it is shown to people; the published files have all of it."""
COSTS = {  # a repaired release lacks those that need the original
    "kl": "KL-divergence {:.4f} nats",
    "average": "{:,.1f} rows in a group on average",
    "discernibility": "discernibility {:,.0f}",
    "loss": "loss {:.4f}",
    "height": "generalization height {:.0f}",
}


class Words(NamedTuple):
    """What a kind of release calls its groups."""

    one: str = "group"  # one of the groups that sensitive values are counted by
    several: str = "groups"
    shown: str = "Groups"  # the groups that people are shown in, as a heading
    alike: str = "People who look alike, at least"  # what k counts


def many(number: int, one: str, more: str | None = None) -> str:
    """A number and its noun.

    >>> many(1, "group"), many(3000, "group"), many(2, "person", "people")
    ('1 group', '3,000 groups', '2 people')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def an(noun: str) -> str:
    """A noun and its article.

    >>> an("angel release"), an("marginals release")
    ('an angel release', 'a marginals release')
    """
    return f"{'an' if noun[0].lower() in 'aeio' else 'a'} {noun}"


def cut(cell: str) -> str:
    """A cell as it is shown to people: its first letters where it is long.

    >>> cut("{a: 0.5, b: 0.5}"), len(cut("{" + 40 * "a: 0.025, "))
    ('{a: 0.5, b: 0.5}', 60)
    """
    return cell if len(cell) <= LONGEST else cell[: LONGEST - 1] + "…"


def beyond(principles: Iterable[Principle]) -> str:
    """What the promises leave to an attacker who knows more than the quasi-identifiers: under Safety only many facts.

    >>> from jali.principles import KAnonymity, Safety
    >>> beyond([KAnonymity(3), Safety(0.9, 2)])
    'more than 2 facts that an attacker knows beyond the quasi-identifiers, or facts of another form'
    """
    from jali.principles import Safety  # here, since commands that need no numbers read this module too

    facts: dict[str | None, int] = {}
    for principle in principles:
        if isinstance(principle, Safety) and principle.k > 0:
            facts[principle.sensitive] = max(principle.k, facts.get(principle.sensitive, 0))
    if not facts:
        return NOT_COVERED[0]
    of = [f"{many(k, 'fact')}{'' if name is None else f' about {name}'}" for name, k in facts.items()]
    return f"more than {' or '.join(of)} that an attacker knows beyond the quasi-identifiers, or facts of another form"


VISIBLE = "who is in the table: quasi-identifiers are published row by row, so whoever knows somebody's can look"
"""What the promises of buckets do not speak of either."""


def cost_lines(metrics: Mapping[str, float]) -> list[str]:
    """The measures of a release in a line; those that compare with the original are not saved with it."""
    shown = ", ".join(text.format(metrics[name]) for name, text in COSTS.items() if name in metrics)
    hint = [] if "kl" in metrics else ["  KL-divergence: see jali.measure, which needs the original"]
    return ["Cost", *([f"  {shown}"] if shown else []), *hint]


def noted_lines(release: Release) -> list[str]:
    """The notes of a release, and why columns are published that look like identifiers, in lines of a summary."""
    allowed = [f"  {name}: {reason}" for name, reason in release.manifest.allowed.items()]
    lines = ["Note", *(f"  {note}" for note in release.notes)] if release.notes else []
    return lines + (["Allowed, though it looks like an identifier", *allowed] if allowed else [])


def with_notes(lines: list[str], release: Release) -> str:
    """A summary with the notes at its top, below the title and what is indented under it."""
    title = next((at for at, line in enumerate(lines[1:], 1) if not line.startswith(" ")), len(lines))
    return "\n".join([*lines[:title], *noted_lines(release), *lines[title:]])


def against(release: Release, whom: str) -> list[str]:
    """The attackers whom the promises are made against, in lines of a summary."""
    return [f"  {whom}", *([f"  {KNOWS_ALGORITHM}"] if release.transparent else [])]


def bucket_summary(release: Buckets) -> str:
    """What `print(release)` shows of buckets."""
    counts, metrics = release.manifest.counts, release.manifest.metrics
    number, count, weights = release.contents.names
    rows, buckets = many(counts["rows"], "row"), many(counts["groups"], "bucket")
    lines = [
        f"Buckets release: {rows} in {buckets}, as two tables tied by {number} only",
        "Published as individuals",
        *(f"  {individual_line(column)}" for column in release.contents.shown),
    ]
    lines += [f"  {weights}: weights, as the mean of each bucket"] if weights else []
    lines += ["Published as buckets", *(f"  {sensitive_line(column)}" for column in release.contents.hidden)]
    lines.append(f"  {count}: people of the bucket who have the value")
    lines += ["Guarantee", *(f"  {p!r}: {p.promise()}{of_known(release, p)}" for p in release.principles)]
    lines += against(release, f"where a group is a bucket, against {ATTACKER}")
    if counts["one_row_per_person_assumed"]:
        lines.append("  assuming one row per person")
    lines += ["Not covered", *(f"  {text}" for text in release.not_covered)]
    return with_notes([*lines, *cost_lines(metrics)], release)


def is_exact(column: Published) -> bool:
    """Whether a quasi-identifier is published as it is."""
    return column.role == "quasi" and column.level == 0 and not column.generalized_by_group


def individual_line(column: Published) -> str:
    """How a column of the individuals is published."""
    return f"{column.name}: as it is" if is_exact(column) else column_line(column)


def summary(release: Generalized) -> str:
    """What `print(release)` shows."""
    counts, metrics = release.manifest.counts, release.manifest.metrics
    who = "" if counts["one_row_per_person_assumed"] else f" about {many(counts['people'], 'person', 'people')}"
    lines = [
        f"{release.kind.capitalize()} release: {many(counts['rows'], 'row')}{who} in {many(counts['groups'], 'group')}"
    ]
    if counts["suppressed"]:
        are, own = ("is", "its") if counts["suppressed"] == 1 else ("are", "their")
        rows = many(counts["suppressed"], "row")
        lines.append(f"  {rows} {are} suppressed: * in every quasi-identifier, in a group of {own} own")
    lines += ["Published", *(f"  {column_line(column)}" for column in release.columns)]
    if release.weight_name:
        lines.append(f"  {release.weight_name}: weights, as the mean of each group")
    lines += ["Guarantee", *(f"  {principle!r}: {release.promised(principle)}" for principle in release.principles)]
    lines += against(release, f"against {release.against}")
    if counts["one_row_per_person_assumed"]:
        lines.append("  assuming one row per person")
    if release.people is not None:
        lines.append("  whichever of a person's values is the one that is looked for")
    lines += ["Not covered", *(f"  {text}" for text in release.not_covered)]
    lines += cost_lines(metrics)
    if release.search.get("nodes"):
        lines.append(f"  found by checking {release.search['checked']:,} of {many(release.search['nodes'], 'node')}")
    return with_notes(lines, release)


def column_line(column: Published) -> str:
    """How a column is published."""
    if column.role == "sensitive":
        return sensitive_line(column)
    if column.role == "identifier":
        return f"{column.name}: as pseudonyms, which only the holder of their key can trace back"
    if column.role == "other":
        return f"{column.name}: as it is; an attacker who knows it is not covered, see jali.audit"
    assert column.facts is not None
    example = next((text for text in column.labels.to_pylist() if text not in (None, "", "*")), None)
    shown = column.facts.in_words(column.level, None if example is None else cut(example))
    return f"{column.name}: {shown}{_unknown(column)}"


def sensitive_line(column: Published) -> str:
    """How a sensitive column is published, and whether its missing values count."""
    judged = None if column.judged is None else column.judged[0]
    if judged is None or None not in judged.labels:
        return f"{column.name}: sensitive, as it is"
    counts = (
        "counts as a value" if judged.unknown is None else "is no value: judged are the people whose value is known"
    )
    return f"{column.name}: sensitive, as it is; a missing one {counts}"


def some_unknown(release: Release) -> list[str]:
    """The sensitive columns in which a missing value is no value."""
    judged = {c.name: c.judged[0] for c in release.of_role("sensitive") if c.judged is not None}
    return [name for name, column in judged.items() if column.unknown is not None]


def of_known(release: Release, principle: Principle) -> str:
    """What a promise adds where it is judged on some people only; nothing where everybody's value is known."""
    named = getattr(principle.inner, "sensitive", None)
    some = not principle.inner.judges_size_alone and any(named in (None, name) for name in some_unknown(release))
    return ", judged on the people whose value is known" if some else ""


def _unknown(column: Published) -> str:
    """A hint where a cell does not say over what an analyst may spread it."""
    told = column.cover.known[column.held].all()
    return "" if told else "; what * covers is not declared, so that nobody can count or draw it"


def shown_in_notebook(release: Release) -> str:
    """The summary, and the first rows of each table."""
    parts: list[object] = [html_outline(repr(release))]
    for name, own in release.counted_tables.items():
        first = own.first(SHOWN_ROWS).to_pylist()
        rows = [["" if c is None else cut(c) if isinstance(c, str) else c for c in row.values()] for row in first]
        parts.append(html_table(own.names, rows, caption=f"Table “{name}”, its first rows"))
    return notebook(*parts)


SHOWN_ROWS = 5
"""How many rows of a table a notebook shows."""
