"""The figures of a joint audit, and how they print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jali.core.text import lines_of
from jali.releases.summary import many

Shown = Mapping[str, str | None]
"""What a group shows, by column."""

MENTIONED = 5
"""How many certain pairs of groups are printed one by one."""


@dataclass(frozen=True)
class JointBelief:
    """How likely a value is for somebody in a pair of groups."""

    groups: tuple[Shown, Shown]  # what the groups of both releases show
    column: str
    value: str | None
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether it is known, not only bounded."""
        return self.low == self.high

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts."""
        return vars(self) | {"groups": [dict(shown) for shown in self.groups], "exact": self.exact}


@dataclass(frozen=True)
class Certain:
    """A pair of groups of which everybody who is in both can have one value only."""

    groups: tuple[Shown, Shown]
    column: str
    value: str | None
    people: int  # who are in both groups in every world
    expected: float  # people who are in both groups on average over all worlds, at least

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts."""
        return vars(self) | {"groups": [dict(shown) for shown in self.groups]}


@dataclass(frozen=True)
class JointAudit:
    """What an attacker who holds two releases of one table can learn."""

    people: int
    cells: int  # pairs of groups that somebody can be in
    exact_cells: int  # those of which the belief is known, not only bounded
    alone: tuple[float, ...]  # the largest belief that each release gives by itself
    worst: JointBelief  # the largest belief: of those that are only bounded by what is sure
    largest_possible: float  # no belief is above it
    certain: tuple[Certain, ...]
    kept: Mapping[str, bool | None]  # each release's promise for every pair of groups; None where it is not decided
    notes: tuple[str, ...] = ()
    numbers: tuple[int, int] = (1, 2)  # of the releases among those that were given

    @property
    def largest_belief(self) -> float:
        """How sure of a value an attacker can be of somebody, at least; see `largest_possible`."""
        return self.worst.low

    @property
    def holds(self) -> bool:
        """Whether every promise was found kept by both releases together."""
        return all(kept is True for kept in self.kept.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts with the attributes' names at the top."""
        return vars(self) | {
            "alone": list(self.alone),
            "numbers": list(self.numbers),
            "largest_belief": self.largest_belief,
            "worst": self.worst.to_dict(),
            "certain": [found.to_dict() for found in self.certain],
            "kept": dict(self.kept),
            "holds": self.holds,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return "\n".join(lines_of(_rows(self)) + _said(self) + [f"note: {note}" for note in self.notes])


@dataclass(frozen=True)
class JointAudits:
    """What an attacker who holds several releases of one table can learn, two releases at a time."""

    pairs: Mapping[tuple[int, int], JointAudit]  # by the numbers of the releases, from 1
    notes: tuple[str, ...]

    @cached_property
    def worst(self) -> JointBelief:
        """The largest belief that any two of the releases give."""
        return max((found.worst for found in self.pairs.values()), key=lambda worst: worst.low)

    @property
    def largest_belief(self) -> float:
        """How sure of a value an attacker can be of somebody, at least."""
        return self.worst.low

    @property
    def certain(self) -> tuple[Certain, ...]:
        """All pairs of groups of which everybody can have one value only."""
        return tuple(one for found in self.pairs.values() for one in found.certain)

    @property
    def kept(self) -> dict[str, bool | None]:
        """Each release's promises together with each of the others."""
        return {
            f"{name}, releases {a} and {b}": kept
            for (a, b), found in self.pairs.items()
            for name, kept in found.kept.items()
        }

    @property
    def holds(self) -> bool:
        """Whether every promise was found kept by every two releases together."""
        return all(found.holds for found in self.pairs.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts; pairs by the numbers of their releases, "1+2"."""
        return {
            "largest_belief": self.largest_belief,
            "worst": self.worst.to_dict(),
            "pairs": {f"{a}+{b}": found.to_dict() for (a, b), found in self.pairs.items()},
            "kept": self.kept,
            "holds": self.holds,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        parts = [f"— releases {a} and {b} —\n{found!r}" for (a, b), found in self.pairs.items()]
        return "\n\n".join([*parts, "\n".join(f"note: {note}" for note in self.notes)])


def _rows(audit: JointAudit) -> list[tuple[str, str]]:
    rows = [
        ("people", f"{audit.people:,}"),
        ("pairs of groups that somebody can be in", f"{audit.cells:,}"),
        ("those whose belief is known, not only bounded", f"{audit.exact_cells:,}"),
    ]
    rows += [
        (f"largest belief from release {i} alone", f"{share:.4f}")
        for i, share in zip(audit.numbers, audit.alone, strict=True)
    ]
    at_least = audit.largest_possible > audit.largest_belief
    rows.append(("largest belief from both" + (", at least" if at_least else ""), f"{audit.largest_belief:.4f}"))
    rows += [("largest belief from both, at most", f"{audit.largest_possible:.4f}")] if at_least else []
    people, mean = sum(found.people for found in audit.certain), sum(found.expected for found in audit.certain)
    rows.append(("pairs of groups that give a value away", f"{len(audit.certain):,}"))
    if audit.certain:
        rows += [("people in them, at least", f"{people:,}"), ("people in them on average", f"{mean:,.2f}")]
    words = {True: "kept by both together", False: "BROKEN by both together", None: "not decided"}
    return rows + [(f"promise {name}", words[kept]) for name, kept in audit.kept.items()]


def _said(audit: JointAudit) -> list[str]:
    """The certain pairs in words, or else the worst belief."""
    if not audit.certain:
        return [f"worst: a person who is {_who(audit.worst)} has {_what(audit.worst)} with {_chance(audit.worst)}"]
    lines = [f"certain: a person who is {_who(found)} must have {_what(found)}" for found in audit.certain[:MENTIONED]]
    left = len(audit.certain) - MENTIONED
    return lines + ([f"… and {many(left, 'more pair')} of groups"] if left > 0 else [])


def _who(found: JointBelief | Certain) -> str:
    texts = [", ".join(f"{name} {_text(cell)}" for name, cell in shown.items()) for shown in found.groups]
    return " and ".join(f"in ({text})" for text in texts)


def _what(found: JointBelief | Certain) -> str:
    return f"{found.column} = {_text(found.value)}"


def _text(cell: str | None) -> str:
    return "(missing)" if cell is None else cell


def _chance(belief: JointBelief) -> str:
    if belief.exact:
        return f"probability {belief.low:.4f}"
    return f"a probability between {belief.low:.4f} and {belief.high:.4f}"
