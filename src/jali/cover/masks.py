"""Masked texts such as 130**: tests become small automata that read the mask, hidden characters all at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints
from jali.encoding.values import put_back
from jali.errors import InputError
from jali.query.match import Part, holds, numbered
from jali.query.tree import Scalar, Test

HIDDEN = "*"
_MOST = 20_000  # states of the automata together
_LAST = "\U0010ffff"


def alphabet(masks: Iterable[str | None]) -> str:
    """What a hidden character is taken to be: a digit where only digits are shown, else a digit or a letter."""
    shown = set("".join(mask for mask in masks if mask is not None)) - {HIDDEN}
    if shown <= set(digits):
        return digits
    return digits + (ascii_lowercase if all(c == c.lower() for c in shown) else ascii_uppercase)


class _Machine(Protocol):
    """Reads a text character by character; a state is any hashable value."""

    start: Any

    def step(self, state: Any, character: str) -> Any: ...

    def accepts(self, state: Any) -> bool: ...


class _OneOf:
    """Whether the text is one of these: the state is what was read, while one of them begins so."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = frozenset(texts)
        self.beginnings = {text[:n] for text in self.texts for n in range(len(text) + 1)}
        self.start = "" if self.texts else None

    def step(self, state: str | None, character: str) -> str | None:
        longer = None if state is None else state + character
        return longer if longer in self.beginnings else None

    def accepts(self, state: str | None) -> bool:
        return state in self.texts


class _Order:
    """How the text compares with a bound: the state is how much of it was equal, or -1 below and -2 above it."""

    start = 0

    def __init__(self, op: str, bound: str) -> None:
        self.op, self.bound = op, bound

    def step(self, state: int, character: str) -> int:
        if state < 0:
            return state
        if state == len(self.bound):
            return -2
        here = self.bound[state]
        return state + 1 if character == here else -1 if character < here else -2

    def accepts(self, state: int) -> bool:
        if state == len(self.bound):
            return self.op in ("<=", ">=")
        return (state != -2) == (self.op in ("<", "<="))


class _Like:
    """Whether the text matches a pattern: the state is where in the pattern one can be."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.start = self._closed({0})

    def _closed(self, places: set[int]) -> frozenset[int]:
        for place in sorted(places):
            at = place
            while at < len(self.pattern) and self.pattern[at] == "%":
                at += 1
                places.add(at)
        return frozenset(places)

    def step(self, state: frozenset[int], character: str) -> frozenset[int]:
        places = set()
        for at in state:
            if at < len(self.pattern):
                sign = self.pattern[at]
                if sign == "%":
                    places.add(at)
                elif sign in ("_", character):
                    places.add(at + 1)
        return self._closed(places)

    def accepts(self, state: frozenset[int]) -> bool:
        return len(self.pattern) in state


def _machine(test: Test, length: int | None) -> _Machine:
    if test.op == "null":
        return _OneOf(())
    if test.op == "like":
        return _Like(cast(str, test.value))
    if test.op == "in":
        return _OneOf(_spelt(test, one, length) for one in cast(frozenset[Scalar], test.value))
    text = _spelt(test, cast(Scalar, test.value), length)
    return _OneOf([text]) if test.op == "=" else _Order(test.op, text)


def _spelt(test: Test, literal: Scalar, length: int | None) -> str:
    """The literal as text; a number as that many digits, since 13053 may be meant by zip = 13053."""
    if isinstance(literal, str):
        return literal
    if length is None or isinstance(literal, bool):
        holds(test, [""])  # says how to write it
        return str(literal)
    whole = math.ceil(literal) if test.op in ("<", ">=") else math.floor(literal)
    if whole < 0 or (whole != literal and test.op in ("=", "in")):
        return "" if test.op not in ("=", "in") else _LAST
    text = str(whole).zfill(length)
    return text if len(text) <= length else _LAST


@dataclass
class _Reader:
    """All tests read at once; what was found for a state is kept."""

    machines: list[_Machine]
    signs: dict[str, float]  # each character that can be hidden, and its share
    _steps: dict[tuple[Any, str], Any] = field(default_factory=dict)

    @property
    def start(self) -> tuple[Any, ...]:
        return tuple(machine.start for machine in self.machines)

    def step(self, state: tuple[Any, ...], character: str) -> tuple[Any, ...]:
        next_state = self._steps.get((state, character))
        if next_state is None:
            next_state = tuple(m.step(s, character) for m, s in zip(self.machines, state, strict=True))
            self._steps[state, character] = next_state
        return cast(tuple[Any, ...], next_state)

    def read(self, masks: Sequence[str]) -> tuple[Ints, list[dict[tuple[Any, ...], float]]]:
        """The ends that masks can have: states and their shares (0 where a character is not of the alphabet).

        Masks that have come to one state and hide the same from there on end alike: also which end each mask has.
        """
        shown = [mask.partition(HIDDEN)[0] for mask in masks]
        rests = [mask[len(begin) :] for mask, begin in zip(masks, shown, strict=True)]
        states, state = {self.start: 0}, np.zeros(len(masks), dtype=np.int64)
        lengths = np.array([len(begin) for begin in shown])
        for place, signs in enumerate(_columns(shown)):
            here, known = np.flatnonzero(lengths > place), list(states)
            pairs, of = np.unique(state[here] << 32 | signs[here], return_inverse=True)
            to = [self.step(known[pair >> 32], chr(pair & 0xFFFFFFFF)) for pair in pairs.tolist()]
            state[here] = np.array([states.setdefault(one, len(states)) for one in to], dtype=np.int64)[of.reshape(-1)]
        known, hidden = list(states), list(dict.fromkeys(rests))
        number = {rest: i for i, rest in enumerate(hidden)}
        pairs, of = np.unique(state << 32 | np.array([number[rest] for rest in rests]), return_inverse=True)
        return of.reshape(-1), [self._read(known[pair >> 32], hidden[pair & 0xFFFFFFFF]) for pair in pairs.tolist()]

    def _read(self, state: tuple[Any, ...], rest: str) -> dict[tuple[Any, ...], float]:
        now = {state: 1.0}
        for character in rest:
            after: dict[tuple[Any, ...], float] = {}
            signs = self.signs if character == HIDDEN else {character: 1.0}
            for one, share in now.items():
                for sign, part in signs.items():
                    to = self.step(one, sign)
                    after[to] = after.get(to, 0.0) + share * part
            now = _bounded(after)
        return now

    def reachable(self) -> dict[tuple[Any, ...], float]:
        """All states in which some text ends."""
        found, waiting = {self.start: 0.0}, [self.start]
        while waiting:
            state = waiting.pop()
            for sign in self.signs:
                to = self.step(state, sign)
                if to not in found:
                    found[to] = 0.0
                    waiting.append(to)
            _bounded(found)
        return found

    def truth(self, state: tuple[Any, ...]) -> list[bool]:
        return [machine.accepts(s) for machine, s in zip(self.machines, state, strict=True)]


def _columns(texts: Sequence[str]) -> NDArray[np.int64]:
    """The characters as numbers, place by place, 0 after the end of a text: (longest, texts)."""
    longest = max(map(len, texts), default=0)
    signs = np.array(texts, dtype=f"<U{longest + 1}").view("<u4").reshape(len(texts), longest + 1)
    return signs.T[:longest].astype(np.int64)


def _bounded(states: dict[Any, float]) -> dict[Any, float]:
    if len(states) > _MOST:
        raise InputError("condition: too many ways to match masked texts", do="use fewer % and _ in LIKE")
    return states


def _reader(tests: Sequence[Test], length: int | None, letters: str) -> _Reader:
    """The tests' automata. Their alphabet has one more character for each kind that the tests distinguish."""
    machines = [_machine(test, length) for test in tests]
    literals: list[str] = []
    for machine in machines:
        match machine:
            case _OneOf():
                literals.extend(machine.texts)
            case _Order():
                literals.append(machine.bound)
            case _Like():
                literals.append(machine.pattern)
    told = {sign for sign in "".join(literals) if sign < _LAST}
    signs = dict.fromkeys(sorted(told | {chr(ord(sign) + 1) for sign in told} | {"\x00"}), 0.0)
    return _Reader(machines, signs | {sign: 1 / len(letters) for sign in letters})


def parts(tests: Sequence[Test], nodes: Ints, masks: Sequence[str], letters: str) -> list[Part]:
    """The patterns on masked texts, one part for each length."""
    found = []
    lengths = np.array([len(mask) for mask in masks])
    for length in np.unique(lengths):
        reader, some = _reader(tests, int(length), letters), np.flatnonzero(lengths == length)
        which, ends = reader.read([masks[i] for i in some.tolist()])
        states = {state: row for row, state in enumerate(dict.fromkeys(s for end in ends for s in end))}
        truth = np.array([reader.truth(state) for state in states], dtype=np.bool_).reshape(len(states), len(tests))
        number, first = numbered(truth)
        share, possible = np.zeros((len(first), len(ends))), np.zeros((len(first), len(ends)), dtype=np.bool_)
        for column, end in enumerate(ends):
            for state, part in end.items():
                share[number[states[state]], column] += part
                possible[number[states[state]], column] = True
        found.append(Part(nodes[some], truth[first], share[:, which], possible[:, which]))
    return found


def universe(tests: Sequence[Test]) -> Bools:
    """The patterns that some text has: (patterns, tests)."""
    reader = _reader(tests, None, digits)
    truth = np.array([reader.truth(state) for state in reader.reachable()], dtype=np.bool_)
    return truth[numbered(truth)[1]]


def density(texts: Sequence[str | None], masks: Sequence[str], letters: str) -> tuple[Ints, Ints, Floats]:
    """Which masks fit which texts, and the probability of each text: 1 / letters for each hidden character."""
    shapes: dict[tuple[int, tuple[int, ...]], dict[str, list[int]]] = {}
    for number, mask in enumerate(masks):
        shown = tuple(i for i, sign in enumerate(mask) if sign != HIDDEN)
        shapes.setdefault((len(mask), shown), {}).setdefault("".join(mask[i] for i in shown), []).append(number)
    rows: list[tuple[int, int, float]] = []
    known = set(letters)
    for value, text in enumerate(texts):
        for (length, shown), fitting in shapes.items():
            if text is None or len(text) != length:
                continue
            visible = set(shown)
            if all(text[i] in known for i in range(length) if i not in visible):
                share = float(len(letters)) ** (len(shown) - length)
                rows += [(value, number, share) for number in fitting.get("".join(text[i] for i in shown), ())]
    values, found, share_of = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(values, dtype=np.int64), np.array(found, dtype=np.int64), np.array(share_of, dtype=np.float64)


def draw(masks: Sequence[str], which: NDArray[np.integer], letters: str, random: np.random.Generator) -> pa.Array:
    """One text for each given mask, each hidden character equally likely."""
    lengths = np.array([len(mask) for mask in masks], dtype=np.int64)
    signs = np.array([ord(sign) for sign in letters], dtype=np.uint32)
    table = _columns(masks).astype(np.uint32)
    drawn, places = [pa.array([], pa.string())], [np.zeros(0, dtype=np.int64)]
    for length in np.unique(lengths[which]):
        place = np.flatnonzero(lengths[which] == length)
        spelt = np.ascontiguousarray(table[:length, which[place]].T)
        hidden = spelt == ord(HIDDEN)
        spelt[hidden] = signs[random.integers(0, len(signs), int(hidden.sum()))]
        drawn.append(pa.array(spelt.view(f"<U{length}").reshape(-1) if length else [""] * len(place), pa.string()))
        places.append(place)
    return put_back(drawn, places)
