"""What a report says first and last: the verdict, risk and use before and after, and the block to sign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jali.core.text import (
    Html,
    Section,
    bullets,
    element,
    html_table,
    joined,
    listed,
    paragraphs,
    percent,
    sentence,
)
from jali.principles import KAnonymity
from jali.releases.summary import many
from jali.reports.answers import UNCONFIRMED, assumed, checklist, coded, exposures, largest, lost_most, ranked
from jali.reports.material import Material, Missing
from jali.risk.audit.figures import Audit
from jali.risk.policy import ALGORITHM, Policy
from jali.risk.verdict import TOLERANCE, Decision, Flag, Judged, Outcome, exposed_by_groups, naming

SIGNS: dict[Decision, str] = {"safe": "✓", "change": "!", "stop": "✕"}
JUDGED: dict[Outcome, str] = {"met": "✓ met", "not judged": "? not judged", "missed": "! missed", "grave": "✕ missed"}
NAMED = 3
"""The most drivers that the banner names; the list below it names all of them."""
TOP = 3
"""How many of them stand at the top of the page."""
NO_METHOD = ("kept", "identifiers", "singled_out", "others", "promise", "exposed.presence")
"""Thresholds that no other method or strength would meet."""
FOLDED = ("largest_belief", "disclosure", "exposed.homogeneity", "exposed.background knowledge", "exposed.linkage")
"""Thresholds that somebody misses who is exposed: the people say it once."""
UNSAVED = "not saved in a folder yet: do not sign until it is, and a new page names the folder and its fingerprint"
NAMING = ("identifiers", "singled_out", "others")
"""Thresholds that names miss: that everybody is named says it once."""
LEGEND = "✕ forbids publishing, ! needs a change, ? could not be judged: you must."
UNKNOWN = "not known without a population"


# -- the verdict -----------------------------------------------------------------------------------------------------


def banner(m: Material) -> Html:
    """The verdict in one sentence, one colour, a word and a sign, for whom it is, and what drives it."""
    found = m.verdict
    whom = [f" {sentence(found.audience)}"] if found.audience else []
    says = element("p", element("span", SIGNS[found.decision], class_="sign", aria_hidden="true"), " ",
                   element("strong", f"{found.sentence}."), *whom, class_="says")  # fmt: skip
    shown = _drives(m)
    why: list[object] = [bullets([sentence(text) for text in shown])]
    if not shown:
        met = f"All {len(found.judged)} thresholds of the policy were judged and are met, if these points are true."
        why = [element("p", f"{met} {UNCONFIRMED}"), checklist(assumed(m))]
    elif found.assumes:
        why.append(element("p", sentence(f"not judged: {listed(found.assumes)}")))
    if any(one.void for one in found.judged):
        gone = naming(m.release)
        out = f"{listed(gone)} {'is' if len(gone) == 1 else 'are'} left out"
        why.append(element("p", f"Every other risk on this page counts only once {out}."))
    if public := _for_everybody(m):
        why.append(element("p", sentence(public)))
    under = element("p", f"Policy: {m.under}. ", element("a", "Every threshold, and what can be done", href="#verdict"))
    return element("div", "\n", joined([says, *why, under]), "\n", class_=f"verdict {found.decision}")


def _drives(m: Material) -> list[str]:
    """What drives the verdict: everybody who is exposed, in people, then the thresholds that say something else."""
    flags = m.verdict.flags
    missed = any(flag.first.threshold in FOLDED and flag.first.outcome != "not judged" for flag in flags)
    people = exposures(m) if missed else []
    named = naming(m.release)
    folded = (*(FOLDED if people else ()), *(NAMING if named else ()))
    found = any(flag.first.threshold == "identifiers" for flag in flags)
    names = [f"with {listed(named)} in each row everybody can be found: 100\u00a0%"] if found else []
    rest = [flag for flag in flags if flag.first.threshold not in folded]
    told = [*people, *(flag.told for flag in rest if flag.first.outcome != "not judged")]
    if names:
        told = [f"even without {listed(named)} it fails: {text[0].lower()}{text[1:]}" for text in told]
    told = [*names, *told, *(flag.told for flag in rest if flag.first.outcome == "not judged")]
    return [*told[:NAMED], *([f"all {many(len(flags), 'red flag')} stand below"] if len(told) > NAMED else [])]


def _for_everybody(m: Material) -> str:
    """What a release that is judged for fewer readers would miss for the public."""
    if m.verdict.decision == "stop" or m.verdict.policy.base == "public" or not m.verdict.policy.readers[0]:
        return ""
    judged = m.for_everybody.judged
    missed = [one.name for one in judged if one.outcome in ("missed", "grave")]
    unknown = [one.name for one in judged if one.outcome == "not judged"]
    if not missed and not unknown:
        return (f"it also meets all {len(judged)} thresholds for the public: before it goes there, have a page made "
                "with the policy “public”")  # fmt: skip
    parts = [f"it misses {len(missed)} of {len(judged)} thresholds ({_few(missed)})"] if missed else []
    parts += [f"{len(unknown)} of {len(judged)} thresholds could not be judged ({_few(unknown)})"] if unknown else []
    return f"for the public {listed(parts)}"


def _few(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - NAMED
    return "; ".join([*names[:NAMED], *([f"{more} more"] if more > 0 else [])])


def answers(m: Material) -> Html:
    """The largest risk, what would make it safe, and what analysts lost most: a card each."""
    told = "What analysts lost compares with the original table: the private edition says it."
    texts = lost_most(m, TOP)
    lost = bullets(texts) if texts else paragraphs(
        told if m.original is None else "Nothing that this page looks at was lost.")  # fmt: skip
    cards = [
        ("The largest risk, and to whom", paragraphs(*(largest(m) or ["It is not defined for this release."]))),
        ("Nothing needed" if m.verdict.safe else "What would make it safe", remedy(m)),
        ("What analysts lost most", lost),
    ]
    return element("div", *(element("div", element("h2", title), body, class_="card") for title, body in cards),
                   class_="answers")  # fmt: skip


def remedy(m: Material) -> Html:
    """Every change once, in words that can be sent on, what they cost together, and how they are made."""
    if m.verdict.safe:
        return joined([paragraphs("It is safe under the policy, if the points above are true."), *_safer(m)])
    needed = m.verdict.needed
    parts: list[object] = [paragraphs("Ask whoever makes the release for these changes:"), _changes(needed)]
    readers, rest = m.verdict.policy.readers
    if readers and needed:
        parts.append(paragraphs(f"After these changes, once a new page like this one says so, it may go to {readers}"
                                f"{f', not to {rest}' if rest else ''}."))  # fmt: skip
    best = None
    if m.frontier is not None:
        best = _best(m, m.verdict.judged)
        parts.append(paragraphs(sentence(f"what it would cost: {best.plain}" if best else (
            "no way of publishing that the frontier compared meets all of these thresholds"))))  # fmt: skip
    return joined([*parts, *_team(needed, *([best.way] if best else []))])


def _safer(m: Material) -> list[Html]:
    """What a release that is safe for fewer readers needs for the public, in words; nothing where it needs nothing."""
    needed = m.for_everybody.needed if m.verdict.policy.base != "public" else ()
    if not needed:
        return []
    ask, instead = "ask the data team, before anything is handed out,", "It would then replace this release."
    if [flag.first.threshold for flag in needed] == [ALGORITHM]:
        goal = "judge" if needed[0].first.outcome == "not judged" else "have"
        what = needed[0].plain.replace(", or ", ", or to ")
        return [paragraphs(f"To {goal} it for the public too, {ask} to {what}. {instead}"), *_team(needed)]
    return [paragraphs(f"To have it for the public too, {ask} for these changes:"), _changes(needed),
            paragraphs(instead), *_team(needed)]  # fmt: skip


def _changes(needed: Sequence[Flag]) -> Html:
    plain = dict.fromkeys(sentence(flag.plain) for flag in needed)
    return element("ol", "\n", joined(element("li", coded(text)) for text in plain), "\n")


def _team(needed: Sequence[Flag], *ways: str) -> list[Html]:
    """The options that change the release, and their cost in figures, for the data team."""
    how = list(dict.fromkeys(one for flag in needed for one in flag.how))
    where = "Promises stand in [[principles]] of the job, options in the section of its method."
    lines = bullets([coded(text) for text in (*how, *map(sentence, ways))])
    told = [element("p", coded(where))] if how else []
    return [element("details", element("summary", "For the data team"), lines, *told)] if how or ways else []


def decision(m: Material) -> Section:
    """Every threshold, what drives the verdict, what can be done, and what it assumes."""
    private = m.original is not None
    left: list[object] = []
    if m.verdict.flags:
        left += [element("h3", "Red flags, and what you can do"), element("p", LEGEND, class_="none"), *_flags(m)]
    rows = [(one.name, one.limit or "–", one.found, f"– {one.void}" if one.void else JUDGED[one.outcome])
            for one in m.verdict.judged]  # fmt: skip
    table = html_table(
        ("Threshold", "At most", "Found", "Judged"), rows, caption=f"Policy “{m.verdict.policy.preset}”", named=True
    )
    if not left:  # the assumptions stand in the banner then
        return Section("verdict", "May this be published?", table, confidential=private)
    left += [element("h3", "These are the assumptions"), checklist(assumed(m))]
    columns = (left, [table])
    body = element("div", *(element("div", "\n", joined(parts), "\n") for parts in columns), class_="stack")
    return Section("verdict", "May this be published?", body, confidential=private)


def _flags(m: Material) -> list[Html]:
    """Each flag with what can be done; those that need nothing of their own stand together."""
    own = [flag for flag in m.verdict.flags if not all(m.verdict.follows(one) for one in flag.judged)]
    rest = [flag for flag in m.verdict.flags if flag not in own]
    best = None if m.frontier is None else _best(m, m.verdict.judged)
    parts = [paragraphs(sentence(f"what all of it would cost: {best.both}"))] if best else []
    parts.append(element("ol", "\n", joined(_flag(m, one, priced=not best) for one in own), "\n", class_="flags"))
    if rest:
        parts.append(paragraphs("What is asked for above is enough for these too:"))
        lines = [element("li", _told(flag), class_=_kind(flag)) for flag in rest]
        parts.append(element("ol", "\n", joined(lines), "\n", class_="flags"))
    return parts


def _kind(flag: Flag) -> str:
    return flag.first.outcome.replace(" ", "-")


def _told(flag: Flag) -> Html:
    return element("b", f"{JUDGED[flag.first.outcome].split()[0]} ", sentence(flag.told))


def _flag(m: Material, flag: Flag, *, priced: bool) -> Html:
    told = [_told(flag)]
    if flag.plain:
        told.append(element("span", coded(sentence(f"what you can do: {flag.plain}"))))
    if flag.how:
        told.append(element("span", "For the data team: ", coded(sentence("; ".join(flag.how)))))
    if m.frontier is not None and priced:
        told.append(element("span", sentence(what_it_costs(m, flag))))
    return element("li", *told, class_=_kind(flag))


def what_it_costs(m: Material, flag: Flag) -> str:
    """What the frontier says that meeting one threshold would cost, or that it has no way to meet it."""
    if flag.first.threshold in NO_METHOD:
        return "the frontier has no price for that: it depends on the columns and the promises, not on the method"
    best = _best(m, flag.judged)
    return f"what it would cost: {best.both}" if best else (
        "no way of publishing that the frontier compared meets this threshold: compare more strengths"
    )  # fmt: skip


class _Price(NamedTuple):
    """What a point of the frontier costs: in words for everybody, and its method, strength and loss."""

    plain: str
    way: str

    @property
    def both(self) -> str:
        return f"{self.plain}. For the data team: {self.way}"


def _best(m: Material, judged: Sequence[Judged]) -> _Price | None:
    """Of the points of the frontier that meet these thresholds, the price of the one that loses least."""
    assert m.frontier is not None
    asked = [one for one in judged if one.threshold not in NO_METHOD]
    points = [p for p in m.frontier["points"] if p["meets_all"] and p["kl"] is not None and _no_weaker(m, p)
              and all(_meets(p, one, m.verdict.policy) for one in asked)]  # fmt: skip
    if not points:
        return None
    best = min(points, key=lambda p: float(p["kl"]))
    at = f"{str(m.frontier['vary']).rpartition('.')[2]} = {best['strength']}"
    smallest = best["reaches"].get("highest_risk")
    size = f", which has groups of at least {round(1 / smallest)}," if smallest else ""
    way = f"{best['method']}{', transparent,' if best['transparent'] else ''} at {at}{size}"
    now = "" if isinstance(m.measures, Missing) else (
        f"{', less' if best['kl'] < m.measures.kl else ''} than the {m.measures.kl:.2f} of this release")  # fmt: skip
    now = now if now.startswith(",") else now.replace(" than", ", more than", 1)
    plain = "one of the ways that the frontier compared meets it; how far counts would be off was not measured"
    if best["error"] is not None:
        plain = f"analysts' counts would be off by {percent(best['error'])} on average"
    return _Price(plain, f"{way} loses {best['kl']:.2f} nats{now}")


def _no_weaker(m: Material, point: Mapping[str, Any]) -> bool:
    """Whether a point has groups as large as the release promises: nobody is advised to promise less."""
    asked = [principle.k for principle in m.release.principles if isinstance(principle, KAnonymity)]
    reached = point["reaches"].get("highest_risk")
    return not asked or (reached is not None and float(reached) <= 1 / max(asked) + TOLERANCE)


def _meets(point: Mapping[str, Any], one: Judged, policy: Policy) -> bool:
    """Whether a point of the frontier meets a threshold; not where it does not say."""
    if one.threshold == ALGORITHM:
        return bool(point["transparent"])
    key = f"disclosure.{policy.facts}" if one.threshold == "disclosure" else one.threshold
    reached = point["reaches"].get(key)
    return reached is not None and one.most is not None and float(reached) <= float(one.most) + TOLERANCE


# -- before and after ------------------------------------------------------------------------------------------------


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
    parts.append(element("details", element("summary", "What the words mean"), bullets(_WORDS), open="open"))
    body = element("div", *parts, class_="stack")
    return Section("before", "Risk and use, before and after", body, confidential=private)


_WORDS = (
    "Prosecutor risk: of re-identifying somebody who is known to be in the table, for whom that is easiest.",
    "Marketer risk: the share of people whom an attacker re-identifies who links everybody: the average risk.",
    "Journalist risk: of re-identifying somebody of whom it is not known whether they are in the table. It depends on "
    "how many people outside the table look the same, and needs a population.",
    "Exposed: an attacker is at least 95\u00a0% sure of somebody's sensitive value.",
    "How sure: the probability that the attacker gives to the likeliest sensitive value of the person for whom it is "
    "highest, knowing the quasi-identifiers of everybody.",
    "Quasi-identifiers: facts that others may know of people, such as age, sex and zip. Groups are people who show the "
    "same ones. Where there are buckets and batches, people of a bucket look alike, and values are counted by batch.",
    "Lost: for a column, how much of its domain a cell stands for; for a pair, which share of the link of two "
    "columns is gone (the link is Cramér's V, from 0 not at all to 1 fully); for counts, the median relative error. "
    "0\u00a0% is nothing, 100\u00a0% is all of it.",
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
        was, now = ("not defined" if f is None else percent(f) for f in figures)
        return was, voided(now)

    named = naming(m.release)

    def voided(now: str) -> str:
        return f"100\u00a0%; without {listed(named)}: {now}" if named else now

    if named:
        yield (f"Rows that name their person, by {listed(named)}", percent(1.0), percent(1.0))
    yield ("Prosecutor risk, highest", *both(lambda a: 1 / a.k if a.highest_risk is None else a.highest_risk))
    yield ("Marketer risk, the average", *both(lambda a: a.average_risk))
    yield ("Journalist risk", UNKNOWN, UNKNOWN)
    yield ("People who look like nobody else", *both(lambda a: a.below.get(2)))
    for column in m.names("sensitive"):

        def belief(audited: Audit, column: str = column) -> float | None:
            return next((s.largest_share for s in audited.sensitive if s.column == column), None)

        yield (f"How sure an attacker can be of somebody's {column}", *both(belief))
    yield from ((name, was, voided(now)) for name, was, now in _exposures(m, earlier))


def _exposures(m: Material, earlier: Audit | None) -> Iterator[tuple[str, str, str]]:
    """People whom each attack exposes: as it was tried, else as the published groups tell."""
    columns = m.names("sensitive") or [""]

    def was(name: str, some: Sequence[str]) -> str:
        own = replace(earlier, sensitive=tuple(s for s in earlier.sensitive if s.column in some)) if earlier else None
        share = None if own is None or not own.sensitive else exposed_by_groups(name, own, None)
        return "not tried" if share is None else percent(share)

    if not m.attacks and m.names("sensitive"):
        for name, share in m.exposed.items():
            yield (f"People exposed by {name}", was(name, columns), "not tried" if share is None else percent(share))
    unseen = {attack.name for attack in m.attacks if attack.name == "presence" and attack.exposed is None}
    for name in [name for name in dict.fromkeys(attack.name for attack in m.attacks) if name not in unseen]:
        for column, attack in zip(columns, (a for a in m.attacks if a.name == name), strict=False):
            now = "not computed" if attack.exposed is None else percent(attack.exposed / max(attack.people, 1))
            about = f" ({column})" if len(columns) > 1 else ""
            yield (f"People exposed by {name}{about}", was(name, [column]), now)


# -- sign-off --------------------------------------------------------------------------------------------------------


def signoff(m: Material) -> Section:
    """Who decided what, when, on which policy; blank in the public edition, which is a function of the release."""
    private = m.original is not None
    told = dict(m.decided) if private else {}
    rows = [
        ("Release", told.get("release", UNSAVED if private else "")),
        ("Fingerprint (SHA-256 of manifest.json)", told.get("digest", "")),
        ("Policy", m.verdict.policy.preset if private else ""),
        ("Verdict of this page", ": ".join(filter(None, (m.verdict.sentence, m.verdict.audience))) if private else ""),
        ("Decision", told.get("decision", "")),
        ("Decided by", told.get("by", "")),
        ("Date", told.get("on", "")),
        ("Signature", ""),
    ]
    cells = [(name, element("span", text, class_="sign-line")) for name, text in rows]
    table = html_table(("What", "Filled in by the person who decides"), cells, caption="Sign-off", named=True)
    if not private:
        return Section("signoff", "Sign-off", table)
    confirmed = checklist([one for one in assumed(m) if one.kind == "confirm"])
    body = joined([confirmed, element("p", UNCONFIRMED), table])
    return Section(
        "signoff", "Sign-off", body, confidential=True, mark="For your files: no part of the public edition."
    )
