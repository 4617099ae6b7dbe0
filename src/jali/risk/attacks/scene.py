"""The scene of an attack: a release, its original, what counts as exposed, and what an attack finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, counted
from jali.core.text import bullets, element, html_table, lines_of, notebook
from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.principles.counts import Cells, GivenCounts, Sensitive
from jali.releases.base import Release
from jali.releases.summary import cut, many
from jali.risk.attacks.links import (
    Chances,
    Links,
    collected_chances,
    collected_column,
    collected_place,
    links,
    strongest,
)

CONFIDENTIAL = "confidential: made with the original, for its holder alone"
"""What stands above every gallery."""
TOLERANCE = 1e-9
"""Beliefs are floats; one reaches the threshold up to this much of it, far less than one person in a release makes."""

ALIASES = {"minimality": "algorithm"}
"""Earlier names of attacks."""


@dataclass(frozen=True)
class Attack:
    """One way to learn about people, and whom it exposes in a release.

    Of the attack on presence the exposed are people of the public table who are surely in the private one, or not.
    """

    name: str
    attacker: str  # who can do it, and what he knows, in words
    exposed: int | None  # people about whom the attacker becomes as sure as the threshold says; None: not computed
    people: int  # whom the attack was tried on
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
    tried: tuple[Attack, ...]
    replayed: Callable[[], Attack] | None = None  # the attack that takes longest, made when somebody looks at it

    @cached_property
    def attacks(self) -> tuple[Attack, ...]:
        """All attacks; that on presence is the last."""
        if self.replayed is None:
            return self.tried
        return (*self.tried[:-1], self._algorithm, self.tried[-1])

    @cached_property
    def _algorithm(self) -> Attack:
        assert self.replayed is not None
        return self.replayed()

    def __getitem__(self, name: str) -> Attack:
        wanted = ALIASES.get(name, name)
        if wanted == "algorithm" and self.replayed is not None:
            return self._algorithm
        names = [attack.name for attack in self.tried]
        if wanted not in names:
            raise InputError(f'no attack "{name}"', do=nearest(name, [*names, *ALIASES.values()]))
        return self.tried[names.index(wanted)]

    def only(self, name: str) -> Gallery:
        """The gallery with this attack alone."""
        return Gallery(self.column, self.threshold, (self[name],))

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
        means = f"exposed means a belief of at least {self.threshold:.4g}, by the algorithm one that breaks a promise"
        head = f"Attacks on {about}; {means} ({CONFIDENTIAL})"
        return "\n".join([head, *(line for attack in self.attacks for line in ("", *attack.lines()))])

    def _repr_html_(self) -> str:
        """Whom each attack exposes, and the cases below; the attack that takes longest only where it was made."""
        made = self.attacks if "_algorithm" in vars(self) or self.replayed is None else self.tried
        rows = [
            (a.name, a.attacker, *(("not computed", "") if a.exposed is None else (
                f"{a.exposed:,} of {a.people:,}", f"{a.exposed / max(a.people, 1):.1%}"
            )))
            for a in made
        ]  # fmt: skip
        about = "presence" if self.column is None else self.column
        table = html_table(
            ("Attack", "The attacker", "People exposed", "Share"), rows, caption=f"Attacks on {about}", numbers=(2, 3),
            named=True,
        )  # fmt: skip
        cases = [case for attack in made for case in attack.cases]
        return notebook(element("p", CONFIDENTIAL), table, *([bullets(cases)] if cases else []))


class Names:
    """What each group is called in a sentence: its published cells where it shows some, else its number."""

    def __init__(self, release: Release) -> None:
        rows = release.grouped_rows
        self._cells = None if rows is None else rows.groups.to_pylist()
        self._columns = [] if rows is None else [c.name for c in rows.of_role("quasi")]

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
    kept: dict[str, None] = {}
    for sentence in told:
        if len(kept) == most:
            break
        kept[sentence] = None
    return tuple(kept)


def percent(share: float) -> str:
    """A belief in words.

    >>> percent(1.0), percent(2 / 3), percent(0.999)
    ('certain', '67 % sure', '99 % sure')
    """
    return "certain" if share == 1 else f"{min(round(100 * share), 99)} % sure"


def value_name(label: str | None) -> str:
    """A sensitive value in a sentence."""
    return "no value" if label is None else label


@dataclass(frozen=True, eq=False)
class Seen:
    """Beliefs by group and value, sorted by both, and how many people of the group do have the value.

    A group is whatever the attacker cannot see into: a published group, a bucket, or everybody with one combination of
    quasi-identifiers. Where people have several rows a belief is that the value is among theirs; they may sum to more
    than 1, and `holders` names the people, so that each counts once.
    """

    group: Ints  # (cells,)
    value: Ints  # (cells,)
    share: Floats  # (cells,) the belief that somebody of the group has the value
    people: Ints  # (cells,) who do
    size: Ints  # (groups,) people
    everybody: int  # people in all, each counted once
    called: str  # what the groups are, in the plural
    place: Callable[[int], str]  # a group in a sentence
    holders: tuple[Ints, ...] | None = None  # (cells,) the people who have the value, by number

    @cached_property
    def start(self) -> Ints:
        """Where each group's cells begin: (groups + 1,)."""
        return np.searchsorted(self.group, np.arange(len(self.size) + 1)).astype(np.int64)

    @cached_property
    def ranked(self) -> Ints:
        """The cells, those of each group by their belief: (cells,)."""
        return np.lexsort((self.value, -self.share, self.group))

    @property
    def likeliest(self) -> Ints:
        """The cell of the most likely value of each group that has one: (groups that have people,)."""
        filled = np.flatnonzero(np.diff(self.start) > 0)
        return self.ranked[self.start[filled]]

    def within(self, groups: Bools) -> int:
        """How many people the groups have."""
        if self.holders is None:
            return int(self.size[groups].sum())
        return self.having(np.flatnonzero(groups[self.group]))

    def having(self, cells: Ints, without: Sequence[Ints] | None = None) -> int:
        """How many people have the value of one of the cells, and none of the values of `without`."""
        if self.holders is None:
            return int(self.people[cells].sum())
        named = []
        for at, cell in enumerate(cells.tolist()):
            own = self.holders[cell]
            for other in [] if without is None else without[at].tolist():
                own = np.setdiff1d(own, self.holders[other])
            named.append(own)
        return len(np.unique(np.concatenate(named))) if named else 0


def by_combination(chances: Chances, truth: Cells, place: Callable[[int], str]) -> Seen:
    """Everybody with the same quasi-identifiers looks alike: beliefs by combination, with the true counts."""
    width = len(truth.column)
    true = dict(zip((truth.group * width + truth.value).tolist(), truth.n.tolist(), strict=True))
    keys = (chances.combination * width + chances.value).tolist()
    people = np.array([true.get(key, 0) for key in keys], dtype=np.int64)
    called = "combinations of quasi-identifiers"
    everybody = int(truth.size.sum())
    return Seen(chances.combination, chances.value, chances.share, people, truth.size, everybody, called, place)


@dataclass(frozen=True, eq=False)
class Scene:
    """A release, its original, and what counts as exposed."""

    release: Release
    original: Table
    sensitive: str | None
    threshold: Fraction
    cases: int

    @cached_property
    def column(self) -> Sensitive:
        """The sensitive column that is attacked."""
        if self.release.collected is not None:
            return collected_column(self.release.collected, self.sensitive)
        return self.cells.column

    @cached_property
    def cells(self) -> Cells:
        """People by published group and value; of ANGEL, by batch and value."""
        return self.release.counts().cells(self.sensitive, asked_by="attacks")

    @cached_property
    def several(self) -> bool:
        """Whether a person can have several rows."""
        return self.original.person is not None

    @cached_property
    def assumed(self) -> tuple[str, ...]:
        """What beliefs rest on where the release does not tell how many people have each value."""
        counts = None if self.release.collected is not None else self.release.counts()
        bounded = isinstance(counts, GivenCounts) and self.column.name in counts.bounded
        told = "how many people have each value: as many as the rows allow were assumed, so beliefs are at most these"
        missing = "that a value is missing, which no promise hides: here it counts as a value that people are found by"
        return (*((told,) if bounded else ()), *((missing,) if self.column.unknown is not None else ()))

    @cached_property
    def names(self) -> Names:
        """What groups are called."""
        return Names(self.release)

    def label(self, value: int) -> str:
        """What a value is called."""
        return value_name(self.column.labels[value])

    @cached_property
    def links(self) -> Links:
        """The groups that each combination of the original can be in."""
        return self.require_covered(links(self.release, self.own))

    def require_covered(self, covering: Links) -> Links:
        """The links, or an InputError where somebody of the original is in no group."""
        if not bool((covering.groups > 0).all()):
            do = "use the table that it was made from, with the same hierarchies"
            raise InputError("the release does not cover every row of this table", do=do)
        return covering

    @cached_property
    def own(self) -> Table:
        """The original in the domain of the release: that of a concealed one is the public table's."""
        return self.release.widened(self.original)

    @cached_property
    def truth(self) -> Cells:
        """People of the original by combination and value, the values numbered as in the release."""
        frequencies = self.original.frequencies
        counts = frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations)
        own = counts.cells(self.column.name, asked_by="attacks")
        number = self._numbers(own.column)[own.value]
        order = np.lexsort((number, own.group))
        reference = counted(number, own.n, len(self.column))
        return Cells(own.groups, own.group[order], number[order], own.n[order], own.size, self.column, reference)

    @cached_property
    def entries(self) -> tuple[Ints, Ints, Ints, Ints | None]:
        """The original's combinations and values, the people of each entry, and the person where people are named."""
        frequencies = self.original.frequencies
        counts = frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations)
        at = [column.name for column in counts.sensitive].index(self.column.name)
        value = self._numbers(counts.sensitive[at])[counts.joint[counts.value, at]]
        return counts.group, value, counts.n, counts.person

    def _numbers(self, own: Sensitive) -> Ints:
        """The release's number of each value of the original's column; InputError where one is not in the release."""
        place = {label: number for number, label in enumerate(self.column.labels)}
        number = np.array([place.get(label, -1) for label in own.labels], dtype=np.int64)
        joint = self.original.frequencies.whole
        if bool((number[np.unique(joint.cells(own.name).value)] < 0).any()):
            do = "use the table that it was made from"
            raise InputError(f'values of "{own.name}" in this table are not in the release', do=do)
        return number

    @cached_property
    def seen(self) -> Seen:
        """What an attacker who knows somebody's group believes, and what is true."""
        collection = self.release.collected
        if collection is not None:
            chances = collected_chances(collection, self.original, self.column.name)
            return by_combination(chances, self.truth, collected_place(collection, self.original))
        if self.release.batched is not None:
            return by_combination(self.links.chances(self.cells), self.truth, self._buckets)
        cells, holders = self.cells, self._holders() if self.several else None
        return Seen(
            cells.group, cells.value, cells.n / cells.size[cells.group], cells.n, cells.size, self.original.people,
            "groups", self._group, holders,
        )  # fmt: skip

    @cached_property
    def homogeneous(self) -> Seen:
        """The same for an attacker who uses one table at a time: of marginals the strongest, not all together."""
        collection = self.release.collected
        if collection is None:
            return self.seen
        return by_combination(strongest(collection, self.original, self.column), self.truth, self.seen.place)

    def _group(self, group: int) -> str:
        return f"{self.names(group)} ({many(int(self.cells.size[group]), 'person', 'people')})"

    def _buckets(self, combination: int) -> str:
        """Where somebody of an ANGEL release is found: a bucket, its rows, and the batches that they are in."""
        rows, batches = int(self.links.matched[combination]), int(self.links.groups[combination])
        return f"a bucket of {many(rows, 'person', 'people')} in {many(batches, 'batch', 'batches')}"

    def _holders(self) -> tuple[Ints, ...]:
        """The people of each published group and value, as the original has them."""
        cells, (combination, value, _, person) = self.cells, self.entries
        assert person is not None
        width = len(cells.column)
        key = self.links.only[combination] * width + value
        order = np.argsort(key, kind="stable")
        wanted = cells.group * width + cells.value
        begin, end = (np.searchsorted(key[order], wanted, side=side) for side in ("left", "right"))
        people = person[order]
        return tuple(np.unique(people[a:b]) for a, b in zip(begin.tolist(), end.tolist(), strict=True))

    def sure(self, share: Floats) -> Bools:
        """Whether beliefs reach the threshold."""
        return np.asarray(share >= float(self.threshold) * (1 - TOLERANCE), dtype=bool)
