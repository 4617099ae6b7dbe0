"""Points of a frontier: a requirement at several strengths, and what a method costs and keeps at each."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from jali._version import __version__
from jali.compare.methods import Met
from jali.core.files import content, put_content
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.principles import MultiAttribute, Principle
from jali.principles.base import exact, plain
from jali.principles.column import Number

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


def knobs(requirement: tuple[Principle, ...]) -> list[Knob]:
    """Every parameter that can be varied."""
    return [
        Knob(requirement, place, parameter)
        for place, principle in enumerate(requirement)
        for parameter in DEFAULTS.get(_kind(principle), ())
    ]


def knob(requirement: tuple[Principle, ...], vary: str | None) -> Knob:
    """The parameter that is varied: the first that can be, or the one of this name."""
    every = knobs(requirement)
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


Verdict = Literal["all", "otherwise", "part", "none"]
"""All is kept as it reads; all, but some of it in another sense; not all; there is no release."""


class Part(NamedTuple):
    """A principle of the requirement, whether it is met, and in which sense."""

    principle: str
    met: Met
    sense: str


@dataclass(frozen=True)
class Point:
    """A method at a strength; without a release there is a reason, and no figures."""

    method: str
    strength: Number
    kl: float | None = None  # nats
    error: float | None = None  # the mean relative error of the workload; None where it is not defined
    parts: tuple[Part, ...] = ()
    seconds: float = 0.0
    reason: str | None = None
    undefined: str | None = None  # why there is a release and yet no query error
    transparent: bool = False  # whether it withstands an attacker who knows the algorithm
    reaches: Mapping[str, float] = field(default_factory=dict)  # of each threshold of a policy, as far as it is defined

    @property
    def name(self) -> str:
        """A name of its own in a frontier: "lattice:5", "recode:5:transparent"."""
        return f"{self.method}:{plain(self.strength)}" + (":transparent" if self.transparent else "")

    @property
    def label(self) -> str:
        """The method in a sentence."""
        return f"{self.method}, transparent" if self.transparent else self.method

    @property
    def verdict(self) -> Verdict:
        """How much of the requirement it meets."""
        if self.reason is not None:
            return "none"
        met = {part.met for part in self.parts}
        return "part" if "no" in met else "otherwise" if "otherwise" in met else "all"

    @property
    def meets(self) -> str:
        """The same in words."""
        broken = ", ".join(part.principle for part in self.parts if part.met == "no")
        words = {"all": "all", "otherwise": "all, in a sense of its own", "part": f"not {broken}", "none": "no release"}
        return words[self.verdict]

    @property
    def sense(self) -> str:
        """In which sense each principle is met, or why not."""
        return "; ".join(f"{part.principle}: {part.sense}" for part in self.parts)

    @property
    def rank(self) -> tuple[float, float]:
        """The lower the better: KL-divergence (as good as equal in nine decimals is equal), then query error."""
        kl = math.inf if self.kl is None else round(self.kl, 9)
        return kl, math.inf if self.error is None else self.error

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "method": self.method,
            "strength": plain(self.strength),
            "kl": self.kl,
            "error": self.error,
            "meets": self.meets,
            "verdict": self.verdict,
            "parts": [part._asdict() for part in self.parts],
            "seconds": self.seconds,
            "reason": self.reason,
            "undefined": self.undefined,
            "transparent": self.transparent,
            "reaches": dict(self.reaches),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], strength: Number) -> Point:
        """From plain values; the strength is the one that was asked for, as it was written."""
        parts = tuple(Part(**part) for part in data["parts"])
        figures = (data["kl"], data["error"], parts, data["seconds"], data["reason"], data["undefined"])
        return cls(data["method"], strength, *figures, data["transparent"], data["reaches"])


FIGURES = 4
"""Raised whenever jali comes to other figures for the same release: points of an older number are made anew."""
ABOUT = "figures of jali.frontier, computed from the original: private, for the holder of the table alone"


@dataclass(frozen=True, eq=False)
class Cache:
    """Points that are known already, by what they depend on; written whole after each new one.

    A digest would confirm whoever guesses the table, and so would the figures: only the owner can read the file.
    """

    path: Path | None
    salt: str = ""
    table: str = ""
    points: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | Path | None, table: Table) -> Cache:
        """The file, which must be of this table, or a new one; nothing is kept without a path."""
        if path is None:
            return cls(None)
        target = Path(path)
        if not target.exists():
            salt = secrets.token_hex(16)
            return cls(target, salt, _digest(table, salt))
        found = _parsed(target)
        if found["table"] != _digest(table, found["salt"]):
            do = "name another file, or delete this one"
            raise InputError(f"{target} is about another table, or one that is read differently", do=do)
        return cls(target, found["salt"], found["table"], dict(found["points"]))

    def key(self, facts: Mapping[str, Any]) -> str:
        """What a point depends on, in short."""
        text = json.dumps({**facts, "jali": __version__, "figures": FIGURES}, sort_keys=True, default=repr)
        return hashlib.blake2b(text.encode(), digest_size=16, key=self.salt.encode()).hexdigest()

    def get(self, key: str, strength: Number) -> Point | None:
        """The point, if it is known."""
        if key not in self.points:
            return None
        try:
            return Point.from_dict(self.points[key], strength)
        except (KeyError, TypeError):
            raise _foreign(self.path) from None

    def put(self, key: str, point: Point) -> None:
        """Remember a point, in the file too."""
        self.points[key] = point.to_dict()
        if self.path is not None:
            told = {"about": ABOUT, "salt": self.salt, "table": self.table, "points": self.points}
            put_content(self.path, json.dumps(told, indent=1), overwrite=True, private=True)


def _foreign(path: Path | None) -> InputError:
    return InputError(f"{path} is no file that a frontier can continue from", do="name another one, or a new one")


def _parsed(path: Path) -> Any:
    try:
        found = json.loads(content(path).decode("utf-8"))
        known = found["about"] == ABOUT and all(isinstance(found[key], str) for key in ("salt", "table"))
        if not known or not isinstance(found["points"], dict):
            raise ValueError
    except OSError as problem:
        raise InputError(f"{path} cannot be read", got=problem.strerror, do="name another file") from None
    except (ValueError, KeyError, TypeError):
        raise _foreign(path) from None
    return found


def _digest(table: Table, salt: str) -> str:
    """Everything that figures depend on in a table, in short."""
    found = hashlib.blake2b(digest_size=32, key=salt.encode())

    def add(*parts: object) -> None:
        for part in parts:
            data = np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode()
            found.update(len(data).to_bytes(8, "little") + data)

    add(table.domain, table.weight_name, table.person_name, table.records)
    add(table.person, table.weight, table.multiplicity)
    for column in (c for c in table.columns if c.role != "identifier"):  # pseudonyms change with their key
        add(column.name, column.role, column.kind, column.judges_groups, column.declared)
        add(column.labels.to_pylist(), column.codes.astype(np.int64))  # no codes beyond memory
        for level, nodes in zip(
            column.hierarchy.levels if column.hierarchy else (),
            column.hierarchy.maps if column.hierarchy else (),
            strict=True,
        ):
            add(level.labels.to_pylist(), nodes.astype(np.int64))
    if isinstance(table, LargeTable):
        for piece in table.pieces():  # the rows of each cell: the pieces differ with the memory, their rows do not
            assert piece.multiplicity is not None
            cells = [*(column.codes.astype(np.int64) for column in piece.columns), piece.multiplicity]
            found.update(np.stack(cells, axis=1).tobytes())
    return found.hexdigest()
