"""The attacker who knows the algorithm, from the definition: every assignment, published again through the public verb.

The attacker knows everybody's quasi-identifiers, who is in the table, the published folder, the job and the code, but
not the random bits. Values are written to people in every possible way; what the verb publishes is compared row by row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import pyarrow as pa

from jali.errors import InfeasibleError, InputError

Publish = Callable[[list[Any]], Any]  # the values of the people, in their order → what is published


def assignments(values: Sequence[Any]) -> Iterator[list[Any]]:
    """Every different way to give these values to as many people."""
    yield from (list(one) for one in sorted(set(permutations(values))))


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows of a published table, whatever their order."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def beliefs(values: Sequence[Any], publish: Publish) -> tuple[list[Counter[Any]], int]:
    """What the attacker believes of each person, value by value, and how many assignments lead to the release."""
    wanted = publish(list(values))
    kept = []
    for world in assignments(values):
        try:
            same = publish(world) == wanted
        except (InfeasibleError, InputError):
            same = False
        if same:
            kept.append(world)
    found = []
    for person in range(len(values)):
        believed: Counter[Any] = Counter()
        for world in kept:
            believed[world[person]] += Fraction(1, len(kept))  # type: ignore[assignment]  # of fractions
        found.append(believed)
    return found, len(kept)


def mean_of_alike(found: list[Counter[Any]], alike: Sequence[Any]) -> list[Counter[Any]]:
    """The same where random bits decide who of those who are alike is who."""
    result = []
    for one in alike:
        own = [i for i, other in enumerate(alike) if other == one]
        mean: Counter[Any] = Counter()
        for i in own:
            for value, share in found[i].items():
                mean[value] += share / len(own)
        result.append(mean)
    return result


def distinct(l: int) -> Callable[[Counter[Any]], bool]:
    """Whether beliefs keep distinct l-diversity."""
    return lambda believed: sum(share > 0 for share in believed.values()) >= l


def frequency(l: Fraction) -> Callable[[Counter[Any]], bool]:
    """Whether no belief exceeds 1 / l."""
    return lambda believed: max(believed.values()) <= 1 / l


def below(c: Fraction) -> Callable[[Counter[Any]], bool]:
    """Whether every belief is below c: Safety(c, 0)."""
    return lambda believed: max(believed.values()) < c


def given_facts(values: Sequence[Any], publish: Publish, k: int) -> Fraction:
    """The largest belief in anybody's value, given k facts of the form "if A has a, then B has b": all are tried."""
    from itertools import combinations

    wanted = publish(list(values))
    kept = [world for world in assignments(values) if publish(world) == wanted]
    people, kinds = range(len(values)), sorted(set(values))
    atoms = [(person, value) for person in people for value in kinds]
    facts = [(a, b) for a in atoms for b in atoms]
    best = Fraction(0)
    for some in combinations(facts, k):
        left = [w for w in kept if all(w[a[0]] != a[1] or w[b[0]] == b[1] for a, b in some)]
        for person, value in atoms if left else ():
            best = max(best, Fraction(sum(w[person] == value for w in left), len(left)))
    return best
