"""What a report says first and last: the verdict, risk and use before and after, and the block to sign."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jali.core.text import Html, Section, bullets, element, html_table, joined, listed, paragraphs, percent, sentence
from jali.measures.queries import Association, Distribution
from jali.principles.base import exact
from jali.releases.summary import KNOWS_ALGORITHM, many
from jali.reports.material import Material, Missing
from jali.reports.privacy import described, worst_of
from jali.risk.audit.figures import Audit
from jali.risk.verdict import Decision, Judged, Outcome

SIGNS: dict[Decision, str] = {"safe": "✓", "change": "!", "stop": "✕"}
JUDGED: dict[Outcome, str] = {"met": "✓ met", "not judged": "? not judged", "missed": "! missed", "grave": "✕ missed"}
NAMED = 3
"""The most drivers that the banner names; the list below it names all of them."""
RANKED = 12
"""The most things that are ranked by how much of them was lost."""
VOLUME = 0.05
"""The volume of the questions that stand for queries in the ranking."""
UNKNOWN = "not known without a population"


# -- the verdict -----------------------------------------------------------------------------------------------------


def banner(m: Material) -> Html:
    """The verdict in one sentence, one colour, a word and a sign, and what drives it."""
    found = m.verdict
    says = element("p", element("span", SIGNS[found.decision], class_="sign", aria_hidden="true"), " ",
                   element("strong", f"{found.sentence}."), class_="says")  # fmt: skip
    drivers = [one.told for one in found.drivers]
    rest = len(drivers) - NAMED
    shown = [*drivers[:NAMED], *([f"and {many(rest, 'more threshold')}"] if rest > 0 else [])]
    why = bullets([sentence(text) for text in shown]) if shown else element(
        "p", f"All {len(found.judged)} thresholds of the policy were judged and are met.")  # fmt: skip
    under = element("p", f"Policy: {m.under}. ", element("a", "Why, and what can be done", href="#verdict"))
    return element("div", "\n", joined([says, why, under]), "\n", class_=f"verdict {found.decision}")


def decision(m: Material) -> Section:
    """Every threshold, what drives the verdict, what can be done, and what it assumes."""
    private = m.original is not None
    left: list[object] = []
    if m.verdict.drivers:
        flags = element("ol", "\n", joined(_flag(m, one) for one in m.verdict.drivers), "\n", class_="flags")
        left += [element("h3", "Red flags, and what you can do"), flags]
    right: list[object] = []
    if said := largest(m):
        right += [element("h3", "The largest risk, and to whom"), paragraphs(*said)]
    if lost := ranked(m):
        texts = [f"{one.what}: {one.words}" for one in lost[:3]]
        right += [element("h3", "What analysts lost most"), bullets([sentence(text) for text in texts])]
    rows = [(one.name, one.limit or "–", one.found, JUDGED[one.outcome]) for one in m.verdict.judged]
    table = html_table(
        ("Threshold", "At most", "Found", "Judged"), rows, caption=f"Policy “{m.verdict.policy.preset}”", named=True
    )
    assumed = [element("h3", "These are the assumptions"), bullets([sentence(text) for text in _assumed(m)])]
    columns = ([*left, *assumed], [*right, table]) if left else (right, [table, *assumed])
    body = element("div", *(element("div", "\n", joined(parts), "\n") for parts in columns), class_="stack")
    return Section("verdict", "May this be published?", body, confidential=private)


def _flag(m: Material, one: Judged) -> Html:
    kind = one.outcome.replace(" ", "-")
    told = [element("b", f"{JUDGED[one.outcome].split()[0]} ", sentence(one.told))]
    costs = what_it_costs(m.frontier, m.verdict.policy.to_dict(), one)
    if one.do:
        told.append(element("span", sentence(f"what you can do: {one.do}")))
    return element("li", *told, *(element("span", text) for text in costs), class_=kind)


def what_it_costs(frontier: Mapping[str, Any] | None, policy: Mapping[str, Any], one: Judged) -> Iterator[str]:
    """What the frontier says that a change would cost: the cheapest point that meets all and is strong enough."""
    if frontier is None or one.threshold not in ("highest_risk", "average_risk", "largest_belief"):
        return
    points = [p for p in frontier["points"] if p.get("meets_all") and p.get("kl") is not None]
    if str(frontier["vary"]).rpartition(".")[2] == "k" and one.threshold == "highest_risk":
        points = [p for p in points if exact("k", p["strength"]) * exact("risk", policy["highest_risk"]) >= 1]
    elif one.threshold == "highest_risk":
        return
    if not points:
        yield "No point of the frontier is strong enough: compare more strengths."
        return
    best = min(points, key=lambda p: float(p["kl"]))
    error = "" if best.get("error") is None else f", with an average query error of {percent(best['error'])}"
    at = f"{str(frontier['vary']).rpartition('.')[2]} = {best['strength']}"
    yield f"What it would cost: {best['method']} at {at} loses {best['kl']:.2f} nats{error}."


def largest(m: Material) -> list[str]:
    """Who is at the largest risk, in words: the most certain belief, and the smallest group."""
    if not isinstance(m.audit, Audit):
        return []
    texts = []
    worst = max(m.audit.sensitive, key=lambda s: s.largest_share, default=None)
    if worst is not None:
        whom = ""
        if not isinstance(m.counts, Missing) and worst.column in {c.name for c in m.counts.sensitive}:
            cells = m.counts.cells(worst.column)
            at = int(worst_of(cells)[0])
            people = many(int(cells.size[at]), "person", "people")
            whom = f", about {people} of {described(m, m.counts, at)}"
        texts.append(
            f"An attacker who knows somebody's {listed(m.names('quasi')) or 'row'} is right about one value of "
            f"{worst.column} with a probability of {percent(worst.largest_share)} at the most{whom}."
        )
    alike = many(m.audit.k, "person", "people")
    risk = f"{percent(1 / m.audit.k)} at the most" if m.audit.k else "not known"
    texts.append(f"The fewest people who look alike are {alike}: who looks for one of them is right with {risk}.")
    if m.audit.other is not None and m.audit.other.alone:
        other = m.audit.other
        texts.append(f"{many(other.alone, 'row is', 'rows are')} told from all others by {listed(other.columns)}, "
                     "which is published as it is.")  # fmt: skip
    return texts


def _assumed(m: Material) -> list[str]:
    release = m.release
    return [
        f"the attacker {release.against.removeprefix('an attacker who ')}",
        f"the promises hold {KNOWS_ALGORITHM}" if release.transparent else (
            "what an attacker learns who knows how the groups were chosen is "
            + ("judged by an attack" if any(a.name == "algorithm" for a in m.attacks) else "not part of the figures")
        ),
        "one row per person" if m.manifest["counts"].get("one_row_per_person_assumed", True) else (
            "people can have several rows, which are named by a column that is not published"
        ),
        "no other release of the same table is published beside this one",
        *(["it was judged from the release alone, without the original"] if m.original is None else []),
    ]  # fmt: skip


# -- before and after ------------------------------------------------------------------------------------------------


class Lost(NamedTuple):
    """Something that an analyst asks, as it was in the original and is in the release; `lost` from 0 to 1 and more."""

    what: str
    before: str
    after: str
    lost: float
    words: str


def ranked(m: Material) -> list[Lost]:
    """Columns, pairs of columns and queries, what was lost most first; nothing without the original."""
    if m.original is None:
        return []
    every = [*_lost_columns(m), *_lost_pairs(m), *_lost_queries(m)]
    return sorted(every, key=lambda one: (-one.lost, one.what))[:RANKED]


def _lost_columns(m: Material) -> Iterator[Lost]:
    covered = {} if isinstance(m.measures, Missing) else m.measures.columns
    for name, found in m.distributions.items():
        share = covered.get(name)
        if share is not None:
            words = "not published at all" if share >= 1 - 1e-9 else (
                f"a cell stands for {percent(share)} of its values on average")  # fmt: skip
            if share > 0:
                yield Lost(f"column {name}", "exact values", words, share, words)
        elif isinstance(found, Distribution) and found.distance:
            words = f"{percent(found.distance)} of the people would be counted in a wrong class"
            yield Lost(f"column {name}", "exact shares", words, found.distance, words)


def _lost_pairs(m: Material) -> Iterator[Lost]:
    for (one, other), found in m.associations.items():
        if isinstance(found, Association) and found.original is not None:
            far = abs(found.published - found.original)
            before, after = f"{found.original:.2f}", f"{found.published:.2f}"
            words = f"the association falls from {before} to {after}" if found.published < found.original else (
                f"the association seems {after} instead of {before}")  # fmt: skip
            if before != after:
                yield Lost(f"{one} with {other}", before, after, far, f"{words} (Cramér's V, 0 to 1)")


def _lost_queries(m: Material) -> Iterator[Lost]:
    for errors in [] if isinstance(m.errors, Missing) else m.errors:
        if errors.volume == VOLUME and not math.isnan(errors.median):
            words = f"half of the counts of this sort are off by more than {percent(errors.median)}"
            yield Lost(f"counts over {percent(VOLUME)} of all combinations", "exact", words, errors.median, words)


def before(m: Material) -> Section:
    """Risk and use of the original and of the release, side by side."""
    private = m.original is not None
    rows = [(name, *([was] if private else []), now) for name, was, now in risks(m)]
    header = ("Risk", *(["Before, in the original"] if private else []), "After, in the release")
    parts: list[object] = [html_table(header, rows, caption="What an attacker can do", named=True)]
    if private:
        lost = [(one.what, one.before, one.after, _bar(one.lost)) for one in ranked(m)]
        if lost:
            parts.append(html_table(("What an analyst asks", "Before", "After", "Lost"), lost, named=True,
                                    caption="What an analyst loses, the most first"))  # fmt: skip
        else:
            parts.append(paragraphs("Nothing that the report looks at was lost."))
    else:
        parts.append(paragraphs("What an analyst loses compares with the original table: see the private edition."))
    parts.append(element("details", element("summary", "What the words mean"), bullets(_WORDS)))
    body = element("div", *parts, class_="stack")
    return Section("before", "Risk and use, before and after", body, confidential=private)


_WORDS = (
    "Prosecutor risk: of re-identifying somebody who is known to be in the table, for whom that is easiest.",
    "Marketer risk: the share of people whom an attacker re-identifies who links everybody: the average risk.",
    "Journalist risk: of re-identifying somebody of whom it is not known whether they are in the table. It depends on "
    "how many people outside the table look the same, and needs a population.",
    "Exposed: an attacker is at least 95\u00a0% sure of somebody's sensitive value.",
    "Lost: for a column, how much of its domain a cell stands for; for a pair, how far Cramér's V is off; for counts, "
    "the median relative error. 0\u00a0% is nothing, 100\u00a0% is all of it.",
)


def _bar(share: float) -> Html:
    wide = f"{min(max(share, 0.0), 1.0) * 6:.2f}rem"
    return element("span", element("span", percent(share)), element("i", style=f"width:{wide}"), class_="bar")


def risks(m: Material) -> Iterator[tuple[str, str, str]]:
    """Each risk in words, as it was in the original and as it is in the release."""
    earlier = m.before if isinstance(m.before, Audit) else None
    later = m.audit if isinstance(m.audit, Audit) else None

    def both(of: Any) -> tuple[str, str]:
        figures = [None if audited is None else of(audited) for audited in (earlier, later)]
        return tuple("not defined" if f is None else percent(f) for f in figures)  # type: ignore[return-value]

    yield ("Prosecutor risk, highest", *both(lambda a: 1 / a.k if a.highest_risk is None else a.highest_risk))
    yield ("Marketer risk, the average", *both(lambda a: a.average_risk))
    yield ("Journalist risk", UNKNOWN, UNKNOWN)
    yield ("People who look like nobody else", *both(lambda a: a.below.get(2)))
    for column in m.names("sensitive"):

        def belief(audited: Audit, column: str = column) -> float | None:
            return next((s.largest_share for s in audited.sensitive if s.column == column), None)

        yield (f"Largest belief in one value of {column}", *both(belief))
    known = {s.column: s.nearly_homogeneous for s in (earlier.sensitive if earlier is not None else ())}
    columns = m.names("sensitive") or [""]
    unseen = {attack.name for attack in m.attacks if attack.name == "presence" and attack.exposed is None}
    names = [name for name in dict.fromkeys(attack.name for attack in m.attacks) if name not in unseen]
    for name in names:
        for column, attack in zip(columns, (a for a in m.attacks if a.name == name), strict=False):
            nearly = known.get(column) if name in ("homogeneity", "linkage") else None
            was = "not tried" if nearly is None or earlier is None else percent(nearly.people / max(earlier.people, 1))
            now = "not computed" if attack.exposed is None else percent(attack.exposed / max(attack.people, 1))
            about = f" ({column})" if len(columns) > 1 else ""
            yield (f"People exposed by {name}{about}", was, now)


# -- sign-off --------------------------------------------------------------------------------------------------------


def signoff(m: Material) -> Section:
    """Who decided what, when, on which policy; blank in the public edition, which is a function of the release."""
    private = m.original is not None
    told = dict(m.decided) if private else {}
    rows = [
        ("SHA-256 of manifest.json", told.get("digest", "")),
        ("Policy", m.verdict.policy.preset if private else ""),
        ("Verdict of this page", m.verdict.sentence if private else ""),
        ("Decision", told.get("decision", "")),
        ("Decided by", told.get("by", "")),
        ("On", told.get("on", "")),
        ("Signature", ""),
    ]
    cells = [(name, element("span", text, class_="sign-line")) for name, text in rows]
    table = html_table(("What", "Filled in by the person who decides"), cells, caption="Sign-off", named=True)
    return Section("signoff", "Sign-off", table, confidential=private)
