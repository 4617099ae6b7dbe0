"""Judged: thresholds of a policy as they were found, the flags among them, and the verdict that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from jali.core.text import element, html_table, lines_of, listed, notebook
from jali.principles import FrequencyDiversity, KAnonymity, Safety
from jali.principles.base import Principle
from jali.risk.audit.figures import NEARLY
from jali.risk.policy import Policy

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
