"""What an attacker may know beyond the release: basic implications between people's values (worst-case paper, 2.2)."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from jali.core.files import content
from jali.errors import InputError, listed, nearest, one_of, path_of, told

FORM = '[{"if": [[person, value], …], "then": [[person, value], …]}, …], a person is a row number or [bucket, index]'
"""The JSON form of knowledge, in one line."""


Facts = Literal["implications", "negations"]
"""The facts that an attacker may know: any implications, or only that people do not have values."""


def require_facts(given: Any) -> None:
    """Raise InputError for a kind of facts that is not known."""
    if not one_of(given, get_args(Facts)):
        raise InputError(f'no knowledge "{told(given)}"', do=nearest(given, get_args(Facts)))


def has(value: str | None) -> str:
    """That somebody has a value, without its subject."""
    return "has no value" if value is None else f"has {value}"


def lacks(value: str | None) -> str:
    """That somebody does not have a value, without its subject."""
    return "has a value" if value is None else f"does not have {value}"


@dataclass(frozen=True, order=True)
class Person:
    """Somebody of a release: a bucket and a place in it, both from 0, in published order; in words both are from 1.

    >>> print(Person(0, 3))
    person 4 of bucket 1
    """

    bucket: int
    index: int

    def __post_init__(self) -> None:
        for name, number in (("bucket", self.bucket), ("index", self.index)):
            object.__setattr__(self, name, row_number(number, f"the {name} of a person"))

    def __str__(self) -> str:
        return f"person {self.index + 1} of bucket {self.bucket + 1}"


@dataclass(frozen=True)
class Atom:
    """That somebody has a value: t_p[S] = s (Definition 1).

    The person is a Person, a pair (bucket, index), or the number of a published row, from 0 (in words from 1).

    >>> print(Atom((0, 3), "flu"))
    person 4 of bucket 1 has flu
    """

    person: Person | int
    value: str | None  # None is the missing value

    def __post_init__(self) -> None:
        object.__setattr__(self, "person", _person(self.person))
        value = self.value
        if not (value is None or isinstance(value, (str, int, float))) or isinstance(value, bool):
            raise InputError("the value of an atom must be text", got=type(value).__name__)
        object.__setattr__(self, "value", None if value is None else str(value))

    def __str__(self) -> str:
        return f"{self.who} {has(self.value)}"

    @property
    def who(self) -> str:
        """The person in words, counted from 1."""
        return f"the person of row {self.person + 1}" if isinstance(self.person, int) else str(self.person)


@dataclass(frozen=True)
class Implication:
    """If all of `given` hold, then at least one of `then` does (Definition 2).

    Without `given`, one of `then` holds for sure; without `then`, not all of `given` hold.

    >>> print(Implication(Atom(7, "flu"), Atom(1, "flu")))
    if the person of row 8 has flu, then the person of row 2 has flu
    """

    given: tuple[Atom, ...] = ()
    then: tuple[Atom, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", _atoms(self.given))
        object.__setattr__(self, "then", _atoms(self.then))
        if not self.given and not self.then:
            raise InputError("an implication without atoms can never hold", do="give it atoms, on at least one side")

    @classmethod
    def unless(cls, person: Person | int, value: str | None) -> Implication:
        """That somebody does not have a value: a negation.

        >>> print(Implication.unless(3, "mumps"))
        the person of row 4 does not have mumps
        """
        return cls((Atom(person, value),), ())

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """All its atoms."""
        return self.given + self.then

    def __str__(self) -> str:
        given, then = " and ".join(map(str, self.given)), " or ".join(map(str, self.then))
        if not self.given:
            return then
        if self.then:
            return f"if {given}, then {then}"
        return f"{self.given[0].who} {lacks(self.given[0].value)}" if len(self.given) == 1 else f"not: {given}"


def knowledge_from(data: Any) -> tuple[Implication, ...]:
    """Knowledge from its JSON form, also from what holds it: a witness, or all that `jali disclosure --json` wrote.

    >>> [print(one) for one in knowledge_from([{"if": [[[0, 1], "flu"]], "then": [[[1, 0], "flu"]]}])]
    if person 2 of bucket 1 has flu, then person 1 of bucket 2 has flu
    [None]
    """
    for holder in ("witness", "knowledge"):
        data = data[holder] if isinstance(data, dict) and holder in data else data
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InputError("knowledge must be a list of implications", do=f"write {FORM}")
    return tuple(_implication(one, number) for number, one in enumerate(data, 1))


def read_knowledge(path: str | Path) -> tuple[Implication, ...]:
    """Knowledge from a JSON file."""
    path = path_of(path)
    try:
        data = json.loads(content(path).decode("utf-8"))
    except OSError as problem:
        raise InputError(f"cannot read {path}", got=problem.strerror or type(problem).__name__) from None
    except ValueError:  # JSON that is none, or bytes that are no text
        raise InputError(f"{path} is no JSON", do=f"write {FORM}") from None
    return knowledge_from(data)


def to_json(knowledge: Iterable[Implication]) -> list[dict[str, Any]]:
    """Knowledge in its JSON form; `knowledge_from` reads it back."""
    return [{"if": [pair(a) for a in one.given], "then": [pair(a) for a in one.then]} for one in knowledge]


def pair(atom: Atom) -> list[Any]:
    """An atom in its JSON form."""
    who = atom.person
    return [who if isinstance(who, int) else [who.bucket, who.index], atom.value]


def _implication(data: Any, number: int) -> Implication:
    if not isinstance(data, dict):
        raise InputError(f"piece {number} of the knowledge is no implication", do=f"write {FORM}")
    for key in data:
        if key not in ("if", "then"):
            raise InputError(f'piece {number} of the knowledge: no key "{key}"', do=nearest(str(key), ["if", "then"]))
    sides = [data.get(key, []) for key in ("if", "then")]
    for pair in (pair for side in sides for pair in (side if isinstance(side, list) else [None])):
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError(f"piece {number} of the knowledge: an atom is [person, value]", do=f"write {FORM}")
    try:
        given, then = (tuple(Atom(_listed(who), value) for who, value in side) for side in sides)
        return Implication(given, then)
    except InputError as problem:
        raise InputError(f"piece {number} of the knowledge: {problem.what}", got=problem.got, do=problem.do) from None


def _listed(who: Any) -> Any:
    return tuple(who) if isinstance(who, list) else who


def _person(who: Any) -> Person | int:
    if isinstance(who, Person):
        return who
    if isinstance(who, tuple):
        if len(who) != 2:
            raise InputError("a person is a row number or a pair (bucket, index)", got=f"{len(who)} parts")
        return Person(*who)
    return row_number(who, "the row of a person")


def row_number(given: Any, what: str) -> int:
    """A count from 0, also a numpy integer."""
    try:
        if isinstance(given, bool):
            raise TypeError
        number = operator.index(given)
    except TypeError:
        raise InputError(f"{what} must be a whole number", got=type(given).__name__) from None
    if number < 0:
        raise InputError(f"{what} must be at least 0", got=str(number))
    return number


def _atoms(given: Any) -> tuple[Atom, ...]:
    found = (given,) if isinstance(given, Atom) else listed(given)
    if found is None:
        raise InputError("an implication needs atoms", got=type(given).__name__, do="write Atom(person, value)")
    for atom in found:
        if not isinstance(atom, Atom):
            raise InputError("an implication needs atoms", got=type(atom).__name__, do="write Atom(person, value)")
    return found
