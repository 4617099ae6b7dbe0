"""ColumnPrinciple: parameters that are checked once, and what all principles about one sensitive column share.

Where people have several values, a group is judged by the worst choice of one value for each person: an attacker may
look for any of a person's values, so a promise must hold for every choice f(i) of one of the values of each person i.
Known are N people and the c_v of them who have value v; a choice gives counts h with h_v ≤ c_v and Σ h_v = N. The
choice that fills the commonest value with all its people, then the next, until everybody has one, has the largest sums
of its j largest counts: it majorizes every other, and is the worst for every Schur-concave level. Decision 21 has the
proofs, also for don't-care values, where the number T of people who choose a value to protect is tried where the worst
can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from jali.core.arrays import Bools, Ints, owners, runs_of
from jali.errors import InputError, told
from jali.principles.base import Principle, exact
from jali.principles.counts import Cells, Counts, Sensitive

Number = int | float | Fraction
Label = str | None  # a value of a sensitive column as people read it; None is the missing value


def number(name: str, value: object, kind: str, fits: Callable[[Fraction], bool], *, example: str) -> Number:
    """A parameter as it was written, when it is a number that fits; text such as "1/3" becomes a fraction.

    >>> number("t", "1/3", "a number from 0 to 1", lambda t: 0 <= t <= 1, example="0.2")
    Fraction(1, 3)
    """
    try:
        amount = exact(name, value)
    except InputError:
        amount = None
    if amount is None or not fits(amount):
        raise InputError(f"{name} must be {kind}", got=repr(told(value)), do=f"write e.g. {name}={example}")
    if isinstance(value, float):
        return float(value)  # a numpy float becomes a plain one
    return int(amount) if amount.denominator == 1 else amount


def count(name: str, value: object, *, example: str) -> int:
    """A parameter that is a whole number of at least 1: 5.0 is 5."""
    return int(number(name, value, "a whole number of at least 1", _is_count, example=example))


def _is_count(amount: Fraction) -> bool:
    return amount >= 1 and amount.denominator == 1


def labels(name: str, values: Iterable[object]) -> tuple[Label, ...]:
    """Values of a column by their labels, each once: 39 is "39", None and NaN are the missing value."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of values", got=repr(values), do=f"write {name}=[{values!r}]")
    ordered = sorted(values, key=str) if isinstance(values, (set, frozenset)) else values
    return tuple(dict.fromkeys(_label(value) for value in ordered))


def _label(value: object) -> Label:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else str(value)


def listed(names: Iterable[Label]) -> str:
    """Values as a sentence names them.

    >>> listed(["flu", "cold", None])
    '"flu", "cold" and the missing value'
    """
    shown = ["the missing value" if name is None else f'"{name}"' for name in names]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def part(share: Fraction) -> str:
    """A share of people as a sentence names it: "20 %", or "1/3" where the percentage does not come out even.

    >>> part(Fraction(1, 5)), part(Fraction(1, 3)), part(Fraction("0.015"))
    ('20 %', '1/3', '1.5 %')
    """
    tenths = share * 1000
    return f"{float(share * 100):g} %" if tenths.denominator == 1 else str(share)


class ColumnPrinciple(Principle):
    """Judges the values of one sensitive column; `sensitive` names it, None means the only one there is."""

    deals: ClassVar[bool] = True
    label_fields: ClassVar[tuple[str, ...]] = ()  # parameters that name values of the column
    sensitive: str | None

    def cells(self, counts: Counts) -> Cells:
        """Groups × values of the column that is judged, of the people whose value is known."""
        return counts.known(self.sensitive, asked_by=type(self).__name__)

    def holds(self, counts: Counts) -> Bools:
        """Whether each group keeps the promise; where nobody's value is known there is nothing to learn: (groups,)."""
        nobody = (self.cells(counts).size == 0) & (counts.size >= self.company())
        verdict: Bools = self.judge(counts) | nobody | (counts.size == 0)
        return verdict

    def judged_groups(self, counts: Counts) -> Bools:
        """Which groups have somebody whose value is known, or too few people: (groups,)."""
        few = (counts.size > 0) & (counts.size < self.company())
        judged: Bools = (self.cells(counts).size > 0) | few
        return judged

    def check(self, whole: Counts) -> None:
        column = whole.column(self.sensitive, asked_by=repr(self))
        self.check_labels((column,))
        self.check_column(column, whole)

    def require_column(self, whole: Counts) -> None:
        whole.column(self.sensitive, asked_by=repr(self))

    @property
    def names_values(self) -> bool:
        """Whether a parameter names values of the column."""
        return any(getattr(self, name) for name in self.label_fields)

    def check_labels(self, columns: Sequence[Sensitive]) -> None:
        """Raise InputError when a value that a parameter names is in none of the columns.

        The message gives back only what the caller wrote: the values of the table stay in the table.
        """
        for parameter in self.label_fields:
            for label in getattr(self, parameter):
                if label is None and parameter != "dont_care" and all(column.unknown is not None for column in columns):
                    what = f"{parameter} of {type(self).__name__} names the missing value, which is no value"
                    raise InputError(what, do=f'write missing_is_value=["{columns[0].name}"] when reading the table')
                if not any(label in column.labels for column in columns):
                    named = "the missing value" if label is None else f'"{label}"'
                    where = " or ".join(f'"{column.name}"' for column in columns)
                    raise InputError(
                        f"{parameter} of {type(self).__name__} names {named}, which is no value of {where}",
                        do="write the value as it stands in the table, None for a missing one",
                    )

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        """Raise InputError when the other parameters make no sense for this column."""

    def subject(self, fallback: str = "sensitive value") -> str:
        """What a promise calls the values: by the column's name where that is known."""
        return self.sensitive or fallback


def mask(column: Sensitive, labels: tuple[Label, ...]) -> Bools:
    """Which values of a column are named; names of other columns are passed over: (values,)."""
    named = np.zeros(len(column), dtype=bool)
    named[[column.labels.index(label) for label in labels if label in column.labels]] = True
    return named


def check_values(column: Sensitive, name: str, least: object, exactly: Fraction) -> None:
    """Raise InputError when more values are asked for than the column has."""
    if exactly > column.judged:
        values = f"{column.judged} value{'' if column.judged == 1 else 's'}"
        raise InputError(
            f'{name} = {least} is larger than the number of values of "{column.name}" ({values})',
            do=f"choose {name} of at most {column.judged}",
        )


def check_people(name: str, least: int, whole: Counts) -> None:
    """Raise InputError when a group would need more people than the whole table has."""
    people = int(whole.size.sum())
    if least > people:
        counted = f"{people} {'person' if people == 1 else 'people'}"
        do = f"choose {name} of at most {people}"
        raise InputError(f"{name} = {least} is larger than the table ({counted})", do=do)


def short_of(level: float, bound: float) -> str:
    """A level that misses its bound, with as many digits as it takes to see that it does.

    >>> short_of(10.5669, 12), short_of(10.5669, 10.57)
    ('10.57', '10.567')
    """
    for digits in range(4, 17):
        text = f"{level:.{digits}g}"
        if (float(text) < bound) == (level < bound):
            return text
    return repr(level)


_AT_ONCE = 1 << 20  # cells of choices judged together


def concentrated(cells: Cells) -> Cells:
    """The most concentrated choice of one value for each person that the counts allow, as cells.

    Where everybody has one value these are the cells themselves.
    """
    if cells.one_value:
        return cells
    return _kept(cells, np.clip(cells.size[cells.group] - _before(cells), 0, cells.n))


def worst_choices(cells: Cells, open_to_all: Bools) -> Iterator[tuple[Cells, Ints]]:
    """Choices among which is the worst one of each group, as cells, and the group of each; some at a time.

    `open_to_all`, (values,), are the don't-care values. Without any the most concentrated choice is the worst.
    """
    everyone = np.arange(cells.groups)
    if cells.one_value:
        yield cells, everyone
    elif not open_to_all.any():
        yield concentrated(cells), everyone
    else:
        yield from _with_dont_care(cells, open_to_all[cells.value])


def _with_dont_care(cells: Cells, careless: Bools) -> Iterator[tuple[Cells, Ints]]:
    """For T people who choose a value to protect, both sides are the most concentrated; T where a side fills a value.

    T is at least 1 where it can be: with 0 there is nothing to protect, and the promise holds.
    """
    before = np.where(careless, _before(cells, careless), _before(cells, ~careless))
    guarded, open_people = (cells.add(np.where(side, cells.n, 0)) for side in (~careless, careless))
    most = np.minimum(cells.size, guarded)
    least = np.minimum(np.maximum(cells.size - open_people, 1), most)
    filled = np.where(careless, cells.size[cells.group] - before - cells.n, before + cells.n)
    tried = np.clip(filled, least[cells.group], most[cells.group])
    group = np.concatenate((np.arange(cells.groups), np.arange(cells.groups), cells.group))
    pairs = np.unique(np.stack((group, np.concatenate((least, most, tried)))), axis=1)  # (2, choices)
    length = np.diff(cells.start)
    upto = np.cumsum(length[pairs[0]])
    begin = 0
    while begin < pairs.shape[1]:
        done = int(upto[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(upto, done + _AT_ONCE, side="right")))
        yield _chosen(cells, careless, before, *pairs[:, begin:end]), pairs[0, begin:end]
        begin = end


def _chosen(cells: Cells, careless: Bools, before: Ints, of: Ints, guarded: Ints) -> Cells:
    """The cells of some choices, each a group of its own: of which group it is, and T."""
    length, cell = runs_of(cells.start, of)
    choice = owners(length)
    people = np.where(careless[cell], (cells.size[of] - guarded)[choice], guarded[choice])
    n = np.clip(people - before[cell], 0, cells.n[cell])
    repeated = replace(
        cells, groups=len(of), group=choice, value=cells.value[cell], n=cells.n[cell], size=cells.size[of]
    )
    return _kept(repeated, n)


def _kept(cells: Cells, n: Ints) -> Cells:
    """The cells with other counts, those that have nobody left out."""
    some = n > 0
    return replace(cells, group=cells.group[some], value=cells.value[some], n=n[some], several=False)


def _before(cells: Cells, which: Bools | None = None) -> Ints:
    """The people in the cells of the same group that are filled before each: those with more people come first.

    With `which` only those cells count.  (cells,)
    """
    n = cells.n if which is None else np.where(which, cells.n, 0)
    order = np.lexsort((-n, cells.group))
    upto = np.cumsum(n[order]) - n[order]
    before = np.empty_like(n)
    before[order] = upto - upto[cells.start[cells.group[order]]]
    return before
