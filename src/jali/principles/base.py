"""Principle: a promise that each group of people keeps, judged from counts alone."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError, listed, nearest, told
from jali.principles.counts import Cells, Counts, Sensitive

if TYPE_CHECKING:
    from jali.principles.rules import Rule

ENTROPY_TOLERANCE = 1e-9
"""Entropies are compared in nats up to this much, so that a bound met exactly counts as met."""

TIE = 1e-12
"""Two shares that differ by less, relatively, are the same."""

_HUGE = re.compile(r"e[+-]?\d{4,}", re.IGNORECASE)
"""An exponent beyond every parameter's, whose power of ten would take for ever."""

_REGISTRY: dict[str, type[Principle]] = {}
"""Every principle by the name of its class; `Principle.__init_subclass__` fills it."""

_OWN = (
    "rules", "expected", "shares_alone", "evenness_alone", "judges_size_alone", "company", "dealt_by",
    "closed_under_mixing",
)  # fmt: skip
"""What a subclass never inherits from another principle, because it may judge otherwise than that one."""


class Expected(NamedTuple):
    """How a principle judges distributions of real numbers, such as those that maximum entropy expects of a cell.

    A row has a number for each value of the column, on any scale. Rows are right to about 15 digits, so comparisons
    have a relative tie: in favour of a bound that may be met (≤), against one that must be beaten (<).
    """

    level: Callable[[Floats], Floats]  # (rows, values) → (rows,); every row has a positive number
    enough: Callable[[Floats, float], Bools]  # levels and the tie → whether they keep the promise
    looks_at: Literal["values", "ratios", "shares"] = "shares"  # which values occur, ratios of two values, or all
    frequent: int | None = None  # how many frequent values the relaxed check requires; None: it cannot replace this


@dataclass(frozen=True)
class Principle(ABC):
    """Judges groups by their counts of people.

    `level` says what each group reaches, `holds` whether that is enough. An empty group holds: nobody is in it.

    A class with `level`, `judge`, `bound` and `promise` is a whole principle: every method judges by these. `rules`
    makes partitions and recoding faster, `shares_alone` or `expected` admits it to collections of marginals. These and
    the other hooks of `_OWN` are reset in every subclass; one that judges as its parent does writes
    `rules = Parent.rules`.
    """

    monotone: ClassVar[bool] = True  # merging groups that hold never breaks it
    scope: ClassVar[Literal["group", "table"]] = "group"  # "table": a verdict looks at all groups at once
    better: ClassVar[Literal["higher", "lower"]] = "higher"  # which levels are the stronger promise
    judges_size_alone: ClassVar[bool] = False  # whether `least_size` says it all
    shares_alone: ClassVar[bool] = (
        False  # whether a group and one with twice as many people of each value are judged alike
    )
    every_column: ClassVar[bool] = False  # whether it judges every sensitive column in turn
    deals: ClassVar[bool] = False  # whether anatomy may deal people into buckets by this promise alone
    monotone_for_spread_people: ClassVar[bool] = False  # also where somebody with one value has rows in several groups
    monotone_for_several_values: ClassVar[bool] = False  # also where somebody has several values, all in one group
    needs_reference: ClassVar[bool] = False  # whether it looks at the people of the whole table by value
    title: ClassVar[str] = ""  # as people call it: "entropy diversity"

    def __init_subclass__(cls) -> None:
        _REGISTRY[cls.__name__] = cls
        for name in _OWN:
            if name not in vars(cls):
                setattr(cls, name, vars(Principle)[name])
        cls.__repr__ = Principle.__repr__  # type: ignore[method-assign]  # else @dataclass writes a long one of its own

    @abstractmethod
    def level(self, counts: Counts) -> Floats:
        """What each group reaches: (groups,)."""

    @abstractmethod
    def judge(self, counts: Counts) -> Bools:
        """Whether each group that has people in it reaches the bound, exactly: (groups,)."""

    @property
    @abstractmethod
    def bound(self) -> str:
        """The bound as people read it: "12", "(3, 6)"."""

    @abstractmethod
    def promise(self) -> str:
        """The guarantee in one plain sentence, without a full stop."""

    def holds(self, counts: Counts) -> Bools:
        """Whether each group keeps the promise: (groups,)."""
        verdict: Bools = self.judge(counts) | (counts.size == 0)
        return verdict

    def alone(self, counts: Counts) -> Bools:
        """Whether each group would keep the promise if it were the whole table: (groups,)."""
        return self.holds(counts)

    def check(self, whole: Counts) -> None:  # noqa: B027  # a principle that fits every table has nothing to check
        """Raise InputError when the parameters make no sense for this table (`whole` has one group: everybody)."""

    def least_size(self) -> int:
        """No group of fewer people can hold (where a person has one value): lets searches skip early."""
        return 1

    def rules(self, whole: Counts) -> Sequence[Rule] | None:
        """Its compiled form: rules that must all hold; None where it has none, and is judged group by group.

        `whole` has one group, everybody. The rules must judge every group exactly as `judge` does.
        """
        return None

    def expected(self, column: Sensitive, reference: Floats) -> Expected | None:
        """Its form for distributions of real numbers; None where they are judged as counts of very many people.

        `reference` are the people of the whole table who have each value of the column.
        """
        return None

    def evenness_alone(self) -> bool:
        """Whether it looks at nothing but the size of a group and how even its counts are."""
        return False

    def closed_under_mixing(self) -> bool:
        """Whether shares that keep it still keep it when they are mixed: needed for `transparent=True` (decision 41).

        The mean of distributions that keep the promise, with any weights, must keep it too.
        """
        return False

    def company(self) -> int:
        """How many people must look alike; 1 where it is about values only."""
        return self.least_size() if self.judges_size_alone else 1

    def dealt_by(self, people: int) -> int:
        """How many people with different values a bucket needs at the least, when `people` are dealt into buckets."""
        return self.least_size()

    def require_column(self, whole: Counts) -> None:  # noqa: B027  # one that judges no column needs none
        """Raise InputError when the table lacks the column that it judges."""

    @property
    def inner(self) -> Principle:
        """The principle that judges a column: itself, or the one that it wraps."""
        return self

    def judged_groups(self, counts: Counts) -> Bools:
        """Which groups have people in whom there is something to judge: (groups,)."""
        return counts.size > 0

    def worst(self, counts: Counts) -> float:
        """The weakest level of any group that has people in it."""
        level = self.level(counts)[self.judged_groups(counts)]
        if len(level) == 0:
            return math.nan
        return float(level.min() if self.better == "higher" else level.max())

    def shortfall(self, whole: Counts) -> str:
        """Why even the whole table fails: "entropy diversity 12 cannot be met: the whole table reaches 10.57"."""
        return f"{self.title} {self.bound} cannot be met: the whole table reaches {show(self.worst(whole))}"

    def __and__(self, other: Principle | Combined) -> Combined:
        return Combined((self,)) & other

    def __repr__(self) -> str:
        parts = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING:
                parts.append(repr(value))
            elif value != field.default:
                parts.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters as plain JSON values; `from_dict` reads them back."""
        result: dict[str, Any] = {"name": type(self).__name__}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                result[field.name] = plain(value)
        return result


def plain(value: Any) -> Any:
    """A parameter as a JSON value: principles nest, fractions become text, tuples lists."""
    if isinstance(value, Principle):
        return value.to_dict()
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return str(value) if not isinstance(value, (int, float, str, bool, type(None))) else value


def known_principles() -> dict[str, type[Principle]]:
    """Every principle that can be made, by the name under which job files and manifests know it."""
    return {name: kind for name, kind in _REGISTRY.items() if not inspect.isabstract(kind)}


def from_dict(data: dict[str, Any]) -> Principle:
    """The principle that `to_dict` (or a job file) describes.

    >>> from jali.principles.anonymity import KAnonymity
    >>> from_dict({"name": "KAnonymity", "k": 4})
    KAnonymity(4)
    """
    arguments = dict(data)
    name = str(arguments.pop("name", ""))
    kinds = known_principles()
    if name not in kinds:
        raise InputError(f'no principle "{name}"', do=nearest(name, sorted(kinds)))
    kind = kinds[name]
    known = [field.name for field in dataclasses.fields(kind)]
    for key, value in arguments.items():
        if key not in known:
            raise InputError(f'{name} has no parameter "{key}"', do=nearest(key, known))
        if isinstance(value, dict):
            arguments[key] = from_dict(value)
        elif isinstance(value, list):
            arguments[key] = tuple(value)
    needed = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING]
    missing = [n for n in needed if n not in arguments]
    if missing:
        raise InputError(f"{name} needs {', '.join(missing)}")
    return kind(**arguments)


@dataclass(frozen=True)
class Combined:
    """Several principles that all must hold: what `a & b` gives; iterates over its parts."""

    parts: tuple[Principle, ...]

    def __iter__(self) -> Iterator[Principle]:
        return iter(self.parts)

    def __and__(self, other: Principle | Combined) -> Combined:
        return Combined(self.parts + (other.parts if isinstance(other, Combined) else (other,)))


def principles_of(requirement: Principle | Combined | Iterable[Principle | Combined]) -> tuple[Principle, ...]:
    """A requirement in any of its forms as a tuple of principles, duplicates removed."""
    alone = isinstance(requirement, (Principle, Combined, str, bytes))
    parts = None if alone else listed(requirement)
    flat: list[Principle] = []
    for part in (requirement,) if parts is None else parts:
        if not isinstance(part, (Principle, Combined)):
            got = f"the class {part.__name__}" if isinstance(part, type) else type(part).__name__
            raise InputError("a requirement is a list of principles", got=got, do="e.g. [KAnonymity(5)]")
        flat.extend(part if isinstance(part, Combined) else (part,))
    if not flat:
        raise InputError("no principle was given", do="name at least one, e.g. [KAnonymity(5)]")
    for named in (getattr(part, "sensitive", None) for part in flat):
        if not isinstance(named, str | None):
            raise InputError("sensitive must be the name of a column", got=type(named).__name__)
    return tuple(dict.fromkeys(flat))


def hold(principles: Iterable[Principle], counts: Counts) -> Bools:
    """Whether each group keeps every promise: (groups,)."""
    verdict = np.ones(counts.groups, dtype=bool)
    for principle in principles:
        verdict &= principle.holds(counts)
    return verdict


def least_people(principles: Iterable[Principle], whole: Counts) -> int:
    """No group of fewer people can hold: lets searches skip early. `whole` has the columns that are judged.

    Where values are missing, a group in which nobody's value is known holds, unless its people are too few.
    """
    missing = any(column.unknown is not None for column in whole.sensitive)
    return max((p.company() if missing else p.least_size() for p in principles), default=1)


def exact(name: str, value: object) -> Fraction:
    """A parameter as people wrote it: 0.07 is 7/100, not the nearest double."""
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, Fraction):
            return value
        text = str(value)
        if _HUGE.search(text):
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{name} must be a number", got=repr(told(value))) from None


def whole_number(name: str, value: object, *, least: int = 1) -> int:
    """A parameter that must be a whole number of at least `least`."""
    number = exact(name, value)
    if number.denominator != 1 or number < least:
        raise InputError(f"{name} must be a whole number of at least {least}", got=repr(value))
    return int(number)


def at_most(left: Ints, ratio: Fraction, right: Ints) -> Bools:
    """left ≤ ratio · right, exactly, whatever the size of the numbers."""
    return np.asarray(_scaled(left, ratio.denominator) <= _scaled(right, ratio.numerator), dtype=bool)


def less_than(left: Ints, ratio: Fraction, right: Ints) -> Bools:
    """left < ratio · right, exactly."""
    return np.asarray(_scaled(left, ratio.denominator) < _scaled(right, ratio.numerator), dtype=bool)


def at_least_bound(bound: object) -> Callable[[Floats, float], Bools]:
    """For `Expected.enough`: levels of at least the bound."""
    least = float(exact("bound", bound))
    return lambda levels, tie: np.asarray(levels >= least * (1 - tie))


def at_most_bound(bound: object) -> Callable[[Floats, float], Bools]:
    """For `Expected.enough`: levels of at most the bound, which is a share or a distance from 0 to 1."""
    most = float(exact("bound", bound))
    return lambda levels, tie: np.asarray(levels <= most + tie)


def _scaled(amount: Ints, factor: int) -> Any:
    """amount · factor without overflow: Python integers where 64 bits might not be enough."""
    if len(amount) and int(np.abs(amount).max()) * abs(factor) >= 2**62:
        return amount.astype(object) * factor
    return amount * np.int64(factor) if abs(factor) < 2**62 else amount.astype(object) * factor


def show(number: float) -> str:
    """A level in a message: whole numbers without decimals, others with four digits."""
    if math.isinf(number) or math.isnan(number):
        return "no finite value" if math.isinf(number) else "nothing"
    if number == round(number):
        return str(round(number))
    return f"{number:.4g}"


__all__ = ["ENTROPY_TOLERANCE", "Cells", "Combined", "Principle", "at_most", "exact", "from_dict", "hold", "less_than"]
