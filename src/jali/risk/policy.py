"""Policy: the thresholds that a release must meet before it is published, and presets by who may read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from jali.errors import InputError, nearest
from jali.principles.base import exact, whole_number

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
