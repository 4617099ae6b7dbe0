"""What the top of a report answers: the largest risk and to whom, what analysts lost most, and what is assumed."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from jali.core.text import Html, bullets, element, escaped, listed, percent, percent_up, sentence
from jali.encoding.hierarchy import ROOT
from jali.measures.queries import Association, Distribution
from jali.releases.summary import cut, many
from jali.reports.material import VOLUMES, Material, Missing
from jali.reports.privacy import described
from jali.risk.audit.figures import Audit
from jali.risk.beliefs import Exposed, exposed, surest
from jali.risk.verdict import PROVED, naming, tested

RANKED = 12
"""The most things that are ranked by how much of them was lost."""
WEAK = 0.1
"""Columns that go together less than this had nothing to lose."""
GONE = "not published at all"
NAMED_GROUPS = 3
"""The most groups of exposed people that are described."""


# -- the largest risk, and to whom -----------------------------------------------------------------------------------


def largest(m: Material) -> list[str]:
    """Who is at the largest risk, in words: whom a row names, who is exposed or the surest belief, who is alike."""
    if not isinstance(m.audit, Audit):
        return []
    named = listed(naming(m.release))
    texts = [f"everybody: each row shows {named}, which says whose it is. With {named} everybody is found: 100\u00a0%"]
    texts = texts if named else []
    worst = max(m.audit.sensitive, key=lambda s: s.largest_share, default=None)
    rest = [*(exposures(m) or ([] if worst is None else [_surest(m, worst.column, worst.largest_share)]))]
    if m.audit.k == 1:  # nothing is surer than this
        rest.insert(0, f"{_alone(m.audit)} like nobody else: anyone who looks for one of them finds the right row for "
                    "certain")  # fmt: skip
    elif m.audit.k:
        rest.append(f"people who look alike are at least {m.audit.k:,}: who looks for one of them finds the right row "
                    f"with a probability of {percent(1 / m.audit.k)} at the most")  # fmt: skip
    if m.audit.other is not None and m.audit.other.alone and not named:
        other = m.audit.other
        rest.append(f"{many(other.alone, 'row is', 'rows are')} told from all others by {listed(other.columns)}, "
                    "published as they are")  # fmt: skip
    told = [sentence(text) for text in rest]
    return [*map(sentence, texts), f"Only once {named} is left out: {' '.join(told)}"] if named else told


def _alone(audit: Audit) -> str:
    """The people who look like nobody else, counted where the audit knows the number."""
    share = audit.below.get(2)
    if not share:
        return "some people look"
    people = max(round(share * audit.people), 1)
    return f"{many(people, 'person', 'people')} ({percent(share)}) {'looks' if people == 1 else 'look'}"


def exposures(m: Material) -> list[str]:
    """Everybody whose group gives a sensitive value away, in people, a sentence for each column, the most first."""
    if isinstance(m.counts, Missing) or m.release.batched is not None or not isinstance(m.audit, Audit):
        return []
    told = {column.name for column in m.counts.sensitive}
    every = [exposed(m.counts, s.column) for s in m.audit.sensitive if s.column in told]
    found = sorted((one for one in every if one.people), key=lambda one: -one.people)
    return [_exposed(m, one) for one in found]


def _exposed(m: Material, found: Exposed) -> str:
    assert isinstance(m.audit, Audit)
    assert not isinstance(m.counts, Missing)
    one, several, *_ = m.release.words
    known = listed(_telling(m)) or "their row"
    share = percent(found.people / max(m.audit.people, 1))
    sure = "for certain" if found.certain else "for certain or nearly so (95\u00a0% or more)"
    value = f"their {found.column} is “{cut(found.values[0])}”" if len(found.values) == 1 else f"their {found.column}"
    text = f"{many(found.people, 'person', 'people')} ({share}): anyone who finds their {one} by {known} knows {sure} "
    text += f"that {value}" if len(found.values) == 1 else value
    places = [f"{described(m, m.counts, group)} ({many(size, 'person', 'people')})"
              for group, size in zip(found.groups[:NAMED_GROUPS], found.sizes, strict=False)]  # fmt: skip
    more = len(found.groups) - len(places)
    if len(found.groups) == 1:
        return f"{text}. They are those {_inside(m, places[0])} {places[0]}"
    if not more:
        return f"{text}. They are in {len(places)} {several}: {'; '.join(places)}"
    rest = many(more, f"{one} more", f"{several} more")
    return f"{text}. The largest {several if len(places) > 1 else one} of them: {'; '.join(places)}; and {rest}"


def _telling(m: Material) -> list[str]:
    """The quasi-identifiers of which something is published."""
    gone = {
        column.name
        for column in m.release.columns
        if column.distributions is None and {str(label) for label in column.labels.to_pylist()} <= {ROOT}
    }
    return [name for name in m.names("quasi") if name not in gone]


def _surest(m: Material, column: str, share: float) -> str:
    """Of whom an attacker can be surest, of what, and what a guess by the shares of the whole table would be."""
    who = f"an attacker who knows somebody's {listed(m.names('quasi')) or 'row'}"
    assert isinstance(m.audit, Audit)
    if m.audit.angel is not None:
        mixed = m.audit.angel.largest_share.get(column, share)
        more = f", and at most {percent(share)} if they also find out the person's batch"
        return (f"{who} is at most {percent(mixed)} sure of their {column}{more if mixed < share else ''}. This is "
                "an upper limit for everybody in the table; no single group can be named, because this release "
                f"publishes the facts and the values in separate tables{_guess(m, column)}")  # fmt: skip
    found = None
    if not isinstance(m.counts, Missing) and column in {c.name for c in m.counts.sensitive}:
        found = surest(m.counts, column)
    if found is None or isinstance(m.counts, Missing):
        return f"{who} is at most {percent(share)} sure of their {column}{_guess(m, column)}"
    sure = "certain" if share >= 1 else f"{percent(share)} sure"
    where = described(m, m.counts, found.group)
    text = f"{who} can be {sure} that {column} is “{cut(found.value)}” for the {many(found.people, 'person', 'people')}"
    if found.as_sure > found.people:
        others = f"{many(found.as_sure, 'person', 'people')} ({percent(found.as_sure / max(m.audit.people, 1))})"
        text = (f"{who} can be {sure} of the {column} of {others}; for example that it is “{cut(found.value)}” for the "
                f"{many(found.people, 'person', 'people')}")  # fmt: skip
    guess = "" if found.everybody is None else (
        f". By the whole table alone, without groups, a guess of that would be right for {percent(found.everybody)}"
    )  # fmt: skip
    return f"{text} {_inside(m, where)} {where}{guess}"


def _inside(m: Material, where: str) -> str:
    return "in" if where.startswith(f"{m.release.words.one} ") else "with"


def _guess(m: Material, column: str) -> str:
    """How often a guess of the commonest value is right, where the release shows how common it is."""
    common = next((s.commonest for s in m.audit.sensitive if s.column == column), None) if (
        isinstance(m.audit, Audit)) else None  # fmt: skip
    once = m.manifest["counts"].get("one_row_per_person_assumed", True)  # else shares of values are not those of people
    return (
        ""
        if not common or not once
        else f". By the whole table alone, a guess of the commonest value is right for {percent(common)}"
    )


# -- what is assumed -------------------------------------------------------------------------------------------------


SIGNS = {"confirm": "☐ I confirm", "covered": "✓ Judged", "proved": f"✓ {sentence(PROVED)}".rstrip("."),
         "open": "⚠ Not covered"}  # fmt: skip
UNCONFIRMED = "If you cannot confirm a point, do not publish."
FEW = 3
"""Certainty with more facts than this is no weak point: nearly every release ends there."""


class Assumed(NamedTuple):
    """Something that the verdict rests on: for the steward to confirm, what was judged or proved, or what was not."""

    kind: Literal["confirm", "covered", "proved", "open"]
    text: str

    def html(self) -> Html:
        """The assumption with a box to tick, or a sign that it is a weak point."""
        return element("span", element("b", f"{SIGNS[self.kind]}: "), f"{self.text}.")


def assumed(m: Material) -> list[Assumed]:
    """Under what the verdict holds, and what it does not judge."""
    release = m.release
    quasi = listed(m.names("quasi"))
    against = release.against.removeprefix("an attacker who ")
    against = against.replace("quasi-identifiers", f"quasi-identifiers ({quasi})", 1) if quasi else against
    facts = m.verdict.policy.facts if m.verdict.policy.disclosure is not None else 0
    unjudged = any(one.threshold == "disclosure" and one.outcome == "not judged" for one in m.verdict.judged)
    more = many(facts, "further fact") if facts else ""
    judged = bool(more) and not unjudged
    tried = tested(m.attacks)
    once = m.manifest["counts"].get("one_row_per_person_assumed", True)
    confirmed = [
        "each person is in the table once (several rows of one person would break this)"
        if once
        else ("rows of one person are named by a column that is not published"),
        "no other release of the same table is published beside this one",
    ]
    covered = [
        f"an attacker who {against}",
        *([f"the same attacker with {more}, such as a value that somebody does not have"] if judged else []),
        *(["an attacker who knows how jali chose the groups, by an attack"] if tried else []),
    ]  # fmt: skip
    proved = ["an attacker who knows how jali chose the groups learns no more"]
    weak = [  # from what was not judged at all to special cases
        *m.verdict.assumes,
        *(["what only the original could show: it was judged from the release alone"] if m.original is None else []),
        f"an attacker who knows more about people than {quasi or 'that'}{f', and {more}' if more else ''}",
        *_weak(m),
        *([] if release.transparent or tried else ["an attacker who knows how jali chose the groups; not tested"]),
    ]
    told = {"confirm": confirmed, "covered": covered, "proved": proved if release.transparent and not tried else [],
            "open": weak}  # fmt: skip
    return [Assumed(kind, text) for kind, texts in told.items() for text in texts]  # type: ignore[arg-type]


def _weak(m: Material) -> Iterator[str]:
    """What the audit found that no threshold judges: facts that are enough, and tables that together keep less."""
    if not isinstance(m.audit, Audit):
        return
    for s in m.audit.sensitive:
        curve = s.disclosure
        known = [] if curve is None else list(zip(curve.k, curve.implications, strict=True))
        enough = next((k for k, sure in known if sure >= 1 and 0 < k <= FEW), None)
        if enough is not None and s.largest_share < 1:
            yield f"with {many(enough, 'fact')} more an attacker may be certain of somebody's {s.column}"
    if m.audit.angel is not None and m.audit.angel.joint_keeps_k is not True and m.audit.angel.tables > 1:
        kept = "does not hold" if m.audit.angel.joint_keeps_k is False else "was not shown to hold"
        yield f"k = {m.audit.angel.k} holds in each table by itself; in all of them together it {kept}"


def checklist(every: Sequence[Assumed]) -> Html:
    """Assumptions to tick, and weak points."""
    return element("div", bullets([one.html() for one in every]), class_="checklist")


_CODE = re.compile(r"""--[a-z-]+|\[\[\w+\]\]|[A-Z]\w+\([^()]*\)|\w+ = (?:true|"\w+"|\d+)""")


def coded(text: str) -> Html:
    """A text in which options and promises stand as code."""
    places = [0, *(at for found in _CODE.finditer(text) for at in found.span()), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    return Html("".join(
        element("code", piece, class_=None if " " in piece else "one") if at % 2 else escaped(piece)
        for at, piece in enumerate(pieces)
    ))  # fmt: skip


# -- what analysts lost ----------------------------------------------------------------------------------------------


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
    columns = [*_lost_columns(m)]
    gone = {one.what for one in columns if one.words == GONE}
    every = [*columns, *_lost_pairs(m, gone), *_lost_queries(m)]
    return sorted(every, key=lambda one: (-one.lost, one.what))[:RANKED]


def lost_most(m: Material, most: int) -> list[str]:
    """What analysts lost most, a sentence each; columns that are not published at all stand together."""
    every, quasi = ranked(m), m.names("quasi")
    gone = [one.what for one in every if one.words == GONE]
    gone = sorted(gone, key=quasi.index)
    if gone and len(gone) == len(quasi):
        return [f"All of {listed(quasi)}: nothing of them is published."]
    texts = [f"{listed(gone)}: {GONE}"] if gone else []
    texts += [f"{one.what}: {one.words}" for one in every if one.words != GONE]
    return [sentence(text) for text in texts[:most]]


def _lost_columns(m: Material) -> Iterator[Lost]:
    covered = {} if isinstance(m.measures, Missing) else m.measures.columns
    for name, found in m.distributions.items():
        share = covered.get(name)
        if share is not None:
            words = _blurred(m, name, share)
            if share > 0:
                yield Lost(name, "exact values", words, share, words)
        elif isinstance(found, Distribution) and found.distance:
            words = f"on balance {percent(found.distance)} of the people are counted under a wrong value"
            yield Lost(name, "exact shares", words, found.distance, words)


def _blurred(m: Material, name: str, share: float) -> str:
    """How much of a quasi-identifier is hidden, in words: `share` is the mean share of its values in a cell."""
    own = [column for column in m.release.columns if column.name == name]
    if share >= 1 - 1e-9 and len(own) == 1 and str(own[0].labels[0].as_py()).startswith("{"):
        return GONE  # a set of all values
    if len(own) == 1 and len(own[0].labels) == 1 and own[0].labels[0].as_py() not in (ROOT, None):
        return f"the same {cut(str(own[0].labels[0].as_py()))} in every row"
    if share >= 1 - 1e-9:
        return GONE
    some = [] if m.original is None else [str(value) for value in m.original[name].values.to_pylist()]
    if len(some) == 2 and len(own) == 1 and own[0].distributions is None:
        shown = own[0].rows_by_node
        hidden = float(shown[[str(label) not in some for label in own[0].labels.to_pylist()]].sum() / shown.sum())
        return f"hidden in {percent(hidden)} of the rows (they say “{cut(some[0])} or {cut(some[1])}”)"
    return f"blurred, a cell stands for {percent(share)} of all its values on average"


def _lost_pairs(m: Material, gone: Collection[str]) -> Iterator[Lost]:
    """Links of columns that are published both: of one that is not, every link is gone with it."""
    for (one, other), found in m.associations.items():
        if {one, other} & {*gone}:
            continue
        if isinstance(found, Association) and found.original is not None and found.original >= WEAK:
            before, after = f"{found.original:.2f}", f"{found.published:.2f}"
            if found.published < found.original and before != after:
                share = found.published / found.original
                kept = _kept(share)
                words = f"the link is {kept} (strength {before} → {after})"
                yield Lost(f"{one} and {other}", f"link of {before}", f"link of {after}, {kept}", 1 - share, words)


def _kept(share: float) -> str:
    """What is left of a link, in words."""
    steps = (
        (0.005, "wholly lost"),
        (0.1, "almost wholly lost"),
        (0.5, "mostly lost"),
        (0.8, "weakened"),
        (math.inf, "slightly weakened"),
    )
    return next(words for limit, words in steps if share < limit)


def _lost_queries(m: Material) -> Iterator[Lost]:
    small, large = VOLUMES[0], 0.05
    for errors in [] if isinstance(m.errors, Missing) else m.errors:
        if errors.volume in (small, large) and errors.median > 0:  # not NaN either
            about = f"about {percent_up(errors.volume)} of all combinations"
            what = f"counts of {'small' if errors.volume == small else 'larger'} groups ({about})"
            words = f"half of them are off by more than {percent(errors.median)}"
            yield Lost(what, "exact", words, errors.median, words)
