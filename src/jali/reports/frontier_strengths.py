"""Strengths: a requirement with one of its parameters varied, from the weakest to the strongest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jali.errors import InputError, nearest
from jali.principles import MultiAttribute, Principle
from jali.principles.base import exact
from jali.principles.parameters import Number

_L = (2, 3, 4, 5, 6)
DEFAULTS: Mapping[str, Mapping[str, tuple[Number, ...]]] = {
    "KAnonymity": {"k": (2, 5, 10, 25, 50)},
    "AlphaAnonymity": {"alpha": (0.8, 0.6, 0.4, 0.3, 0.2), "k": (2, 5, 10, 25, 50)},
    "DistinctDiversity": {"l": _L},
    "FrequencyDiversity": {"l": _L},
    "EntropyDiversity": {"l": _L},
    "RecursiveDiversity": {"l": _L, "c": (5, 4, 3, 2, 1)},
    "TCloseness": {"t": (0.5, 0.4, 0.3, 0.2, 0.1)},
    "Safety": {"c": (0.9, 0.8, 0.7, 0.6, 0.5), "k": (1, 2, 3, 4, 5)},
}
"""What is varied of each principle, the first by default, and through which values: from weak to strong."""


@dataclass(frozen=True)
class Knob:
    """A parameter of one of the principles of a requirement."""

    requirement: tuple[Principle, ...]
    place: int  # of the principle
    parameter: str

    @property
    def _inner(self) -> Principle:
        principle = self.requirement[self.place]
        return principle.principle if isinstance(principle, MultiAttribute) else principle

    @property
    def names(self) -> tuple[str, str, str]:
        """What it may be called, the shortest first; the last is never ambiguous."""
        kind = type(self._inner).__name__
        return self.parameter, f"{kind}.{self.parameter}", f"{self.place + 1}.{self.parameter}"

    @property
    def asked(self) -> Number:
        """The value that the requirement itself has."""
        value: Number = getattr(self._inner, self.parameter)
        return value

    @property
    def defaults(self) -> tuple[Number, ...]:
        """Values from weak to strong."""
        return DEFAULTS[type(self._inner).__name__][self.parameter]

    def at(self, value: Any) -> tuple[Principle, ...]:
        """The requirement at another strength; the principle itself refuses a value that makes no sense."""
        turned: Principle = replace(self._inner, **{self.parameter: value})
        if isinstance(self.requirement[self.place], MultiAttribute):
            turned = MultiAttribute(turned)
        return (*self.requirement[: self.place], turned, *self.requirement[self.place + 1 :])

    def values(self, strengths: Iterable[Any] | None) -> tuple[Number, ...]:
        """The strengths, or sensible ones, from weak to strong, the asked one always among them."""
        if isinstance(strengths, (str, int, float)):
            do = f"write strengths=[{strengths!r}]"
            raise InputError("strengths is a list of numbers", got=repr(strengths), do=do)
        found = {exact(self.parameter, self.asked): self.asked}
        for value in self.defaults if strengths is None else strengths:
            checked: Number = getattr(replace(self, requirement=self.at(value))._inner, self.parameter)
            found.setdefault(exact(self.parameter, checked), checked)
        rising = self.defaults[-1] > self.defaults[0]
        return tuple(found[value] for value in sorted(found, reverse=not rising))


def knob(requirement: tuple[Principle, ...], vary: str | None) -> Knob:
    """The parameter that is varied: the first that can be, or the one of this name."""
    every = [
        Knob(requirement, place, parameter)
        for place, principle in enumerate(requirement)
        for parameter in DEFAULTS.get(_kind(principle), ())
    ]
    if not every:
        do = f"ask for one of {', '.join(DEFAULTS)}"
        raise InputError("no parameter of this requirement can be varied", do=do)
    if vary is None:
        return every[0]
    found = [one for one in every if vary in one.names]
    if not found:
        known = [name for one in every for name in one.names[:2]]
        raise InputError(f'no parameter "{vary}" to vary', do=nearest(str(vary), dict.fromkeys(known)))
    if len(found) > 1:
        do = "write " + " or ".join(f'"{one.names[1]}"' for one in found)
        if len({one.names[1] for one in found}) < len(found):
            do = "write " + " or ".join(f'"{one.names[2]}", of the principle {one.place + 1}' for one in found)
        raise InputError(f'several principles have "{vary}"', do=do)
    return found[0]


def _kind(principle: Principle) -> str:
    return type(principle.principle if isinstance(principle, MultiAttribute) else principle).__name__
