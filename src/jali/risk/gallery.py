"""What an attack finds, as a value that shows itself: how many people are exposed, and a few cases in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jali.releases.base import Release
from jali.releases.generalized import Generalized
from jali.releases.summary import cut
from jali.show import lines_of

CONFIDENTIAL = "confidential: made with the original, for its holder alone"
"""What stands above every gallery."""


@dataclass(frozen=True)
class Attack:
    """One way to learn about people, and whom it exposes in a release.

    Of the attack on presence the exposed are people of the public table who are surely in the private one, or not.
    """

    name: str
    attacker: str  # who can do it, and what he knows, in words
    exposed: int | None  # people about whom the attacker becomes as sure as the threshold says; None: not computed
    people: int  # of so many
    right: int | None = None  # of the exposed, those who do have the value that the attacker believes
    figures: Mapping[str, int | float] = field(default_factory=dict)
    cases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what was not looked at; the reason where nothing was computed

    def to_dict(self) -> dict[str, Any]:
        """The attack as JSON."""
        return {
            "name": self.name,
            "attacker": self.attacker,
            "exposed": self.exposed,
            "people": self.people,
            "right": self.right,
            "figures": dict(self.figures),
            "cases": list(self.cases),
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """The attack in lines of text."""
        share = (self.exposed or 0) / self.people if self.people else 0.0
        counted = self.exposed is not None
        rows = [("people exposed", f"{self.exposed:,} of {self.people:,} ({share:.1%})" if counted else "not computed")]
        if self.right is not None and self.exposed:
            rows.append(("  of them rightly", f"{self.right:,}"))
            rows.append(("  of them wrongly", f"{self.exposed - self.right:,}"))
        for name, figure in self.figures.items():
            rows.append((name, f"{figure:,}" if isinstance(figure, int) else f"{figure:.4f}"))
        told = [*(f"e.g. {case}" for case in self.cases), *(f"not covered: {note}" for note in self.notes)]
        return [self.name, f"  {self.attacker}", *(f"  {line}" for line in [*lines_of(rows), *told])]


@dataclass(frozen=True)
class Gallery:
    """The attacks on one release, from the simplest to the one that needs most knowledge."""

    column: str | None  # None where the release has no sensitive column: only presence is attacked
    threshold: float  # how sure an attacker must be of a value for the person to count as exposed
    attacks: tuple[Attack, ...]

    def __getitem__(self, name: str) -> Attack:
        from jali.errors import InputError, nearest

        for attack in self.attacks:
            if attack.name == name:
                return attack
        raise InputError(f'no attack "{name}"', do=nearest(name, [attack.name for attack in self.attacks]))

    def to_dict(self) -> dict[str, Any]:
        """All attacks as JSON."""
        return {
            "confidential": CONFIDENTIAL,
            "sensitive": self.column,
            "threshold": self.threshold,
            "attacks": [attack.to_dict() for attack in self.attacks],
        }

    def __repr__(self) -> str:
        about = "presence" if self.column is None else f'"{self.column}"'
        head = f"Attacks on {about}; exposed means a belief of at least {self.threshold:.4g} ({CONFIDENTIAL})"
        return "\n".join([head, *(line for attack in self.attacks for line in ("", *attack.lines()))])


class Names:
    """What each group is called in a sentence: its published cells where it shows some, else its number."""

    def __init__(self, release: Release) -> None:
        self._cells = release.groups.to_pylist() if isinstance(release, Generalized) else None
        self._columns = [c.name for c in release.of_role("quasi")] if isinstance(release, Generalized) else []

    def __call__(self, group: int) -> str:
        if self._cells is None:
            return f"bucket {group + 1}"  # as it is published
        shown = self._cells[group]
        told = {n: "missing" if shown[n] is None else cut(shown[n]) for n in self._columns}
        return "the group " + ", ".join(f"{name} {text}" for name, text in told.items())


def different(told: Iterable[str], most: int) -> tuple[str, ...]:
    """The first sentences that differ.

    >>> different(["a", "a", "b", "c"], 2)
    ('a', 'b')
    """
    found: dict[str, None] = {}
    for sentence in told:
        if len(found) == most:
            break
        found[sentence] = None
    return tuple(found)


def percent(share: float) -> str:
    """A belief in words.

    >>> percent(1.0), percent(2 / 3), percent(0.999)
    ('certain', '67 % sure', '99 % sure')
    """
    return "certain" if share == 1 else f"{min(round(100 * share), 99)} % sure"


def value_name(label: str | None) -> str:
    """A sensitive value in a sentence."""
    return "no value" if label is None else label
