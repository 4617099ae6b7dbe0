"""An audit as its words say it: one group at a time, from counters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import jali
from jali.principles.base import ENTROPY_TOLERANCE, Principle
from oracles.people import fitting
from oracles.principles import distinct_values, entropy, equal_closeness, needed_c, ordered_closeness

Sizes = Mapping[Any, int]
Cells = Mapping[Any, Counter[Any]]


def keeps(principle: Principle, sizes: Sizes, cells: Cells, whole: Counter[Any]) -> bool:
    """Whether every group keeps the promise; `cells` are the groups' counts of the column that it judges."""
    return all(_keeps(principle, size, cells.get(group, Counter()), whole) for group, size in sizes.items())


def known(size: int, cells: Counter[Any]) -> tuple[int, Counter[Any]]:
    """A group without those whose value is missing, None: who is left, and their values.

    Where people have several values, those are counted who surely have one that is known.
    """
    seen = Counter({value: n for value, n in cells.items() if n and value is not None})
    return max(size - cells[None], *seen.values(), 0), seen


def _keeps(principle: Principle, size: int, cells: Counter[Any], whole: Counter[Any]) -> bool:
    if isinstance(principle, jali.KAnonymity):
        return size >= principle.k
    size, cells = known(size, cells)
    counts = list(cells.values())
    if not counts:
        return True  # nobody's value is known
    match principle:
        case jali.DistinctDiversity():
            return len(counts) >= principle.l
        case jali.EntropyDiversity():
            return entropy(counts) >= math.log(principle.l) - ENTROPY_TOLERANCE
        case jali.FrequencyDiversity():
            return max(counts) * Fraction(str(principle.l)) <= size
        case jali.RecursiveDiversity():
            return needed_c(counts, principle.l) < Fraction(str(principle.c))
        case jali.TCloseness():
            values = [value for value in whole if value is not None]
            distance = equal_closeness([cells[v] for v in values], [whole[v] for v in values])
            return distance <= Fraction(str(principle.t))
    raise AssertionError(principle)


def figures(sizes: Sizes, people: int | None = None) -> dict[str, Any]:
    """What sizes alone say; `people` is how many there are, where somebody is in several groups."""
    members = sum(sizes.values())
    people = members if people is None else people
    return {
        "k": min(sizes.values()),
        "groups": len(sizes),
        "people": people,
        "average_size": members / len(sizes),
        "highest_risk": max(1 / n for n in sizes.values()),
        "average_risk": sum(n * (1 / n) for n in sizes.values()) / members,
        "below": {str(b): min(1, sum(n for n in sizes.values() if n < b) / people) for b in (2, 3, 5, 10, 20)},
    }


def sensitive_figures(sizes: Sizes, cells: Cells, whole: Counter[Any], order: list[Any] | None) -> dict[str, Any]:
    """What groups give away of one sensitive column; `order` are its values where their order means something.

    Where people have several values, that is what the worst choice of one value for each gives away. Where the people
    of the whole table are not known, there is no closeness to it. None is the missing value, which is no value: who has
    it is not looked at, and where people have several values those are who surely have another one.
    """
    left = [known(size, cells[group]) for group, size in sizes.items()]
    whole = Counter({v: n for v, n in whole.items() if v is not None})
    order = None if order is None else [v for v in order if v is not None]
    groups = [(size, list(seen.values()), seen) for size, seen in left if size]
    if not groups:
        nobody = {"groups": 0, "people": 0}
        return {
            "distinct_l": 0, "entropy_l": 0.0, "recursive_c": {}, "t": None, "t_ordered": None, "largest_share": 0.0,
            "homogeneous": nobody, "nearly_homogeneous": nobody,
        }  # fmt: skip
    choices = [choice for size, counts, _ in groups for choice in fitting(counts, size)]
    fewest = min(distinct_values(choice) for choice in choices)
    values = list(whole)
    shares = [Fraction(max(counts), size) for size, counts, _ in groups]
    needed = {l: max(needed_c(choice, l) for choice in choices) for l in range(2, fewest + 2)}
    result: dict[str, Any] = {
        "distinct_l": fewest,
        "entropy_l": min(math.exp(entropy(choice)) for choice in choices),
        "recursive_c": {str(l): None if math.isinf(c) else float(c) for l, c in needed.items()},
        "t": None,
        "t_ordered": None,
        "largest_share": float(max(shares)),
        "homogeneous": _people(groups, shares, Fraction(1)),
        "nearly_homogeneous": _people(groups, shares, Fraction(19, 20)),
    }
    if whole:
        result["t"] = float(
            max(equal_closeness([c[v] for v in values], [whole[v] for v in values]) for *_, c in groups)
        )
    if whole and order is not None and len(order) > 1:
        whole_in_order = [whole[v] for v in order]
        result["t_ordered"] = float(max(ordered_closeness([c[v] for v in order], whole_in_order) for *_, c in groups))
    return result


def _people(groups: list[Any], shares: list[Fraction], least: Fraction) -> dict[str, int]:
    some = [size for (size, *_), share in zip(groups, shares, strict=True) if share >= least]
    return {"groups": len(some), "people": sum(some)}


def rounded(figures: Any) -> Any:
    """Nested figures to nine digits, for comparing sums that were added up in another order."""
    if isinstance(figures, dict):
        return {name: rounded(value) for name, value in figures.items()}
    return round(figures, 9) if isinstance(figures, float) else figures
