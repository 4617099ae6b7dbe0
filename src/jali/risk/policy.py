"""Policy: thresholds that a release must meet, presets by who may read it, and what was found of each threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal

from jali.core.text import element, html_table, lines_of, listed, notebook
from jali.errors import InputError, nearest
from jali.principles import FrequencyDiversity, KAnonymity, Safety
from jali.principles.base import Principle, exact, whole_number
from jali.risk.audit.figures import NEARLY

Share = Fraction | float | str
EXPOSING = ("homogeneity", "background knowledge", "linkage")
"""The attacks whose exposure a single number limits; presence is limited where it is named."""
ALGORITHM = "algorithm"
ATTACKS = (*EXPOSING, ALGORITHM, "presence")
TOLERANCE = 1e-12
"""Figures are floats: one meets a threshold up to this much of it, far less than one person makes."""
READERS = {
    "public": ("everybody", ""),
    "researchers": ("researchers under contract", "the public"),
    "internal": ("people of your own house", "anybody outside"),
}
"""Whom each preset is made for, and who must not read what meets only that."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What must hold of a release before it is published; None is no threshold, which nothing can miss."""

    preset: str = "own"  # what the policy is called
    highest_risk: Share | None = None  # of re-identifying somebody who is known to be in the table
    average_risk: Share | None = None  # of re-identifying anybody, on average over the people
    largest_belief: Share | None = None  # in one sensitive value of anybody, from the quasi-identifiers
    disclosure: Share | None = None  # the same belief with this number of facts more
    facts: int = 1
    exposed: Share | Mapping[str, Share] | None = None  # share of people whom each attack exposes
    singled_out: Share | None = None  # share of rows that columns published as they are tell from all others
    identifiers: bool = False  # whether columns may be published that look like identifiers
    others: bool = False  # whether columns may be published as they are that nobody declared sensitive
    promise: bool = False  # whether every sensitive column needs a promise about it
    algorithm: bool = False  # whether the attacker knows how the groups were chosen

    def __post_init__(self) -> None:
        for one in ("highest_risk", "average_risk", "largest_belief", "disclosure", "singled_out"):
            if getattr(self, one) is not None:
                object.__setattr__(self, one, _share(one, getattr(self, one)))
        object.__setattr__(self, "facts", whole_number("facts", self.facts, least=0))
        if isinstance(self.exposed, Mapping):
            for name in self.exposed:
                if name not in ATTACKS:
                    raise InputError(f'policy: no attack "{name}"', do=nearest(str(name), ATTACKS))
            object.__setattr__(self, "exposed", {n: _share(f"exposed.{n}", s) for n, s in self.exposed.items()})
        elif self.exposed is not None:
            object.__setattr__(self, "exposed", _share("exposed", self.exposed))

    @property
    def limits(self) -> Mapping[str, Fraction]:
        """The share of people that each attack may expose, by the attacks that are limited."""
        if isinstance(self.exposed, Mapping):
            return {name: exact(name, share) for name, share in self.exposed.items()}
        return {} if self.exposed is None else dict.fromkeys(EXPOSING, exact("exposed", self.exposed))

    @property
    def thresholds(self) -> Mapping[str, Fraction]:
        """The shares that a method decides, by the names under which `risk.verdict.reaches` tells what it reaches."""
        named = {one: getattr(self, one) for one in ("highest_risk", "average_risk", "largest_belief")}
        named |= {f"disclosure.{self.facts}": self.disclosure}
        known = {name: exact(name, share) for name, share in named.items() if share is not None}
        return known | {f"exposed.{name}": share for name, share in self.limits.items() if name in EXPOSING}

    def missed(self, reached: Mapping[str, float], *, transparent: bool) -> tuple[str, ...]:
        """The thresholds that a release misses which reaches this much of each; one it says nothing about is missed."""
        found = [name for name, most in self.thresholds.items()
                 if name not in reached or reached[name] > float(most) + TOLERANCE]  # fmt: skip
        open_ = (self.algorithm or ALGORITHM in self.limits) and not transparent
        return (*found, *((ALGORITHM,) if open_ else ()))

    @property
    def base(self) -> str:
        """The preset that it is, or that it changes some thresholds of."""
        return self.preset.partition(",")[0]

    @property
    def readers(self) -> tuple[str, str]:
        """Whom the preset is made for, and who must not have it then; nothing for a policy of one's own."""
        return READERS.get(self.base, ("", ""))

    def to_dict(self) -> dict[str, Any]:
        """The thresholds as the job file spells them."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: str(value) if isinstance(value, Fraction) else value for name, value in told.items()}
        if isinstance(self.exposed, Mapping):
            plain["exposed"] = {name: str(share) for name, share in self.exposed.items()}
        return plain

    def words(self) -> Iterator[str]:
        """The thresholds as sentences."""

        def some(share: Share, of: str) -> str:
            return f"at most {float(exact('', share)):.3g} of the {of}" if exact("", share) else "nobody"

        if self.highest_risk is not None:
            risk = exact("highest_risk", self.highest_risk)
            groups = f": groups of at least {-(-risk.denominator // risk.numerator)} people" if risk else ""
            yield f"Nobody is found with a chance above {risk}{groups}."
        if self.average_risk is not None:
            yield f"On average the chance to find a person is at most {self.average_risk}."
        if self.largest_belief is not None:
            yield f"No sensitive value of anybody is believed with more than {self.largest_belief}."
        if self.disclosure is not None:
            facts = "one fact more" if self.facts == 1 else f"{self.facts} facts more"
            yield f"With {facts} no belief is above {self.disclosure}."
        for attack, share in self.limits.items():
            yield f"The attack “{attack}” exposes {some(share, 'people')}."
        if self.singled_out is not None:
            yield f"Columns that are published as they are single out {some(self.singled_out, 'rows')}."
        if not self.identifiers:
            yield "No column that looks like an identifier is published."
        if self.promise:
            yield "Every sensitive column has a promise about it."
        if self.algorithm:
            yield "Somebody who knows how the groups were chosen learns no more than the release shows."


def _share(name: str, given: Share) -> Fraction:
    share = exact(f"policy: {name}", given)
    if not 0 <= share <= 1:
        raise InputError(f"policy: {name} is a share from 0 to 1", got=str(given))
    return share


PRESETS: dict[str, Policy] = {
    "public": Policy(
        preset="public", highest_risk=Fraction(1, 11), average_risk=Fraction(1, 20), largest_belief=Fraction(1, 2),
        disclosure=Fraction(3, 4), exposed=0, singled_out=0, promise=True, algorithm=True,
    ),
    "researchers": Policy(
        preset="researchers", highest_risk=Fraction(1, 5), average_risk=Fraction(1, 20), largest_belief=Fraction(3, 4),
        disclosure=Fraction(9, 10), exposed=Fraction(1, 100), singled_out=Fraction(1, 20), promise=True,
    ),
    "internal": Policy(
        preset="internal", highest_risk=Fraction(1, 3), average_risk=Fraction(1, 10), largest_belief=Fraction(9, 10),
        exposed=Fraction(1, 20), singled_out=Fraction(1, 5), identifiers=True,
        others=True,
    ),
}  # fmt: skip
"""By who may read the release. The highest risks are those of groups of 11, 5 and 3 people (decision 60)."""


def policy_of(given: Policy | str | Mapping[str, Any] | None) -> Policy:
    """A policy, the preset of that name, or a preset with some thresholds of its own; without one, the strictest."""
    if isinstance(given, Policy):
        return given
    if given is None or isinstance(given, str):
        name = "public" if given is None else given
        if name not in PRESETS:
            raise InputError(f'no policy "{name}"', do=nearest(name, PRESETS))
        return PRESETS[name]
    if not isinstance(given, Mapping):
        raise InputError("a policy is a name or a mapping of thresholds", got=type(given).__name__, do='e.g. "public"')
    known = [field.name for field in fields(Policy)]
    for key in given:
        if key not in known:
            raise InputError(f'policy: no threshold "{key}"', do=nearest(str(key), known))
    own = {key: value for key, value in given.items() if key != "preset"}
    if "preset" not in given:
        return Policy(**own)
    base = policy_of(given["preset"])
    return replace(base, **own, preset=f"{base.preset}, with thresholds of its own") if own else base


# -- thresholds as they were found, the flags among them, and the verdict --------------------------------------------

Outcome = Literal["met", "not judged", "missed", "grave"]
"""How a threshold was found: met, not evaluated, missed, or missed so far that somebody is exposed."""
Decision = Literal["safe", "change", "stop"]
SENTENCES: dict[Decision, str] = {
    "safe": "Safe to publish under these assumptions",
    "change": "Publish after these changes",
    "stop": "Do not publish",
}


@dataclass(frozen=True)
class Judged:
    """One threshold: what was asked, what was found, and what can be done where they do not agree."""

    threshold: str  # its key in the policy; "kept" for the promises themselves
    name: str  # in words
    limit: str
    found: str
    outcome: Outcome
    do: str = ""  # what would make it met, or have it judged; `how` stands at its end
    excess: float = 0.0  # what was found, in times the limit: which of several drives the verdict
    column: str = ""  # the sensitive column that it is about, where there is one for each
    most: Fraction | None = None  # the limit as a number
    how: str = ""  # the same for whoever makes the release: a promise or an option
    void: str = ""  # why it is worth nothing although it is met

    @property
    def plain(self) -> str:
        """What can be done, without the promise or option that does it."""
        return self.do.removesuffix(f": {self.how}") if self.how else self.do

    @property
    def told(self) -> str:
        """The threshold in one line."""
        if self.outcome == "not judged":
            return f"{self.name}: not judged, {self.found}"
        return f"{self.name}: {self.found}, at most {self.limit} is allowed" if self.limit else (
            f"{self.name}: {self.found}")  # fmt: skip


@dataclass(frozen=True)
class Flag:
    """A threshold that is not met, by one or several sensitive columns, the gravest first."""

    judged: tuple[Judged, ...]

    @property
    def first(self) -> Judged:
        """The gravest of them."""
        return self.judged[0]

    @property
    def told(self) -> str:
        """What was found, in one line."""
        if len(self.judged) == 1:
            return self.first.told
        name = TOPICS.get(self.first.threshold, self.first.name)
        found = "; ".join(f"{one.column} {one.found}" for one in self.judged)
        return f"{name}: {found}; at most {self.first.limit} is allowed" if self.first.limit else f"{name}: {found}"

    @property
    def do(self) -> str:
        """What can be done, and by which promise or option; columns that need the same are named together."""
        return self._together("do")

    @property
    def plain(self) -> str:
        """What can be done, in words that a steward can send to the data team."""
        return self._together("plain")

    @property
    def how(self) -> tuple[str, ...]:
        """The promises and options that do it."""
        return tuple(dict.fromkeys(one.how for one in self.judged if one.how))

    def _together(self, what: Literal["do", "plain"]) -> str:
        by: dict[str, list[Judged]] = {}
        for one in self.judged:
            text = getattr(one, what)
            by.setdefault(text.replace(one.column, "\0") if one.column else text, []).append(one)
        told = []
        for same in by.values():
            others = listed([one.column for one in same[1:]])
            first = getattr(same[0], what)
            told.append(f"{first}; the same for {others}" if others else first)
        return "; ".join(told)


TOPICS = {
    "largest_belief": "How sure an attacker can be of a value",
    "disclosure": "How sure an attacker who learned more can be of a value",
    "promise": "A promise about each sensitive column",
}
"""What thresholds are called that are judged for each sensitive column."""


REMOVES = {
    "largest_belief": ("exposed.homogeneity", "exposed.linkage"),
    "disclosure": ("exposed.background knowledge",),
}
"""What is met too once a threshold is, if its limit lies below that of an exposed person."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """Whether a release may be published under a policy, and what drives that."""

    policy: Policy
    judged: tuple[Judged, ...]
    assumes: tuple[str, ...] = ()  # what no threshold judges, beside what every release assumes

    @property
    def decision(self) -> Decision:
        """The worst outcome decides; what was not judged is never safe."""
        found = {one.outcome for one in self.judged}
        return "stop" if "grave" in found else "change" if found & {"missed", "not judged"} or not found else "safe"

    @property
    def safe(self) -> bool:
        """Whether every threshold was judged and met."""
        return self.decision == "safe"

    @property
    def sentence(self) -> str:
        """The decision in words."""
        return SENTENCES[self.decision]

    @property
    def audience(self) -> str:
        """To whom it may go, or may not: the decision for the readers that the policy is made for."""
        readers, rest = self.policy.readers
        if not readers:
            return ""
        if self.decision == "safe":
            return f"it may go to {readers}{f', not to {rest}' if rest else ''}"
        away = f"go to {readers}" if rest else "be made public"  # the public is everybody
        if self.decision == "change":
            return f"as it is, it must not {away}"
        return f"it must not {away}{f', still less to {rest}' if rest else ''}"

    @property
    def drivers(self) -> tuple[Judged, ...]:
        """The thresholds that are not met, the gravest first."""
        order = {"grave": 0, "missed": 1, "not judged": 2}
        found = [one for one in self.judged if one.outcome != "met"]
        return tuple(sorted(found, key=lambda one: (order[one.outcome], -one.excess)))

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What is not met, one for each threshold: columns that miss the same one stand together."""
        found: dict[str, list[Judged]] = {}
        for one in self.drivers:
            found.setdefault(one.threshold, []).append(one)
        return tuple(Flag(tuple(some)) for some in found.values())

    @property
    def steps(self) -> tuple[str, ...]:
        """What would make it safe, each change once."""
        return tuple(dict.fromkeys(flag.do for flag in self.needed))

    @property
    def needed(self) -> tuple[Flag, ...]:
        """The flags that need a change of their own: what others ask for is not enough."""
        left = tuple(one for one in self.drivers if one.do and not self.follows(one))
        return Verdict(self.policy, left).flags

    @property
    def asked(self) -> tuple[Principle, ...]:
        """The promises that would have thresholds met which are not; those that `how` names, as principles."""
        found: list[Principle] = []
        for one in self.drivers:
            if not one.how or not one.most or one.outcome == "not judged":
                continue
            match one.threshold:
                case "highest_risk":
                    found.append(KAnonymity(math.ceil(1 / one.most)))
                case "largest_belief":
                    found.append(FrequencyDiversity(1 / one.most, sensitive=one.column))
                case "disclosure":
                    found.append(Safety(one.most, self.policy.facts, sensitive=one.column))
        return tuple(found)

    def follows(self, judged: Judged) -> bool:
        """Whether a threshold is met too once the others are: a promise that one asks for is enough for both."""
        asked = [one for one in self.drivers if one.threshold in REMOVES and one.most is not None]
        if judged.threshold == "promise":
            return judged.column in {one.column for one in asked}
        if judged.threshold in ("singled_out", "others"):  # by columns that name people, and are left out
            return any(one.threshold == "identifiers" and one.do == judged.do for one in self.drivers)
        return any(
            judged.threshold in REMOVES[one.threshold] and one.most < NEARLY for one in asked if one.most is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain nested values."""
        keys = ("threshold", "name", "limit", "found", "outcome", "do", "how", "void")
        rows = [{key: getattr(one, key) for key in keys} for one in self.judged]
        return {"decision": self.decision, "sentence": self.sentence, "safe": self.safe, "audience": self.audience,
                "policy": self.policy.to_dict(), "judged": rows, "assumes": list(self.assumes),
                "steps": list(self.steps)}  # fmt: skip

    def __repr__(self) -> str:
        whom = f": {self.audience}" if self.audience else ""
        lines = [f"{self.sentence}{whom} (policy {self.policy.preset})"]
        lines += lines_of((f"  {one.name}", self._short(one)) for one in self.judged)
        lines += [f"not judged: {text}" for text in self.assumes]
        lines += [f"to do: {text}" for text in self.steps]
        return "\n".join(dict.fromkeys(lines))

    @staticmethod
    def _short(one: Judged) -> str:
        limit = f" (at most {one.limit})" if one.limit and one.outcome != "not judged" else ""
        void = f", {one.void}" if one.void else ""
        return f"{one.outcome}: {one.found}{limit}{void}".replace("\u00a0", " ")

    def _repr_html_(self) -> str:
        rows = [(one.name, one.limit, one.found, one.void or one.outcome) for one in self.judged]
        caption = ": ".join(filter(None, (self.sentence, self.audience)))
        table = html_table(("Threshold", "At most", "Found", "Judged"), rows, caption=caption, named=True)
        told = [f"Not judged: {text}" for text in self.assumes] + [f"To do: {text}" for text in self.steps]
        return notebook(table, *(element("p", text) for text in told))
