"""Attacks by looking at every person and every world: slow and obvious."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product


def homogeneity(groups: Sequence[Sequence[str]], threshold: Fraction) -> tuple[int, int]:
    """People in groups where one value reaches the threshold, and those who have it."""
    exposed = right = 0
    for values in groups:
        most = max(Counter(values).values())
        if Fraction(most, len(values)) >= threshold:
            exposed, right = exposed + len(values), right + most
    return exposed, right


def background(groups: Sequence[Sequence[str]], threshold: Fraction, ruled_out: int) -> int:
    """People whose value reaches the threshold once the most frequent other values are ruled out for them."""
    exposed = 0
    for values in groups:
        for own in values:
            others = sorted((n for value, n in Counter(values).items() if value != own), reverse=True)
            left = len(values) - sum(others[:ruled_out])
            exposed += Fraction(values.count(own), left) >= threshold
    return exposed


def rejected(
    groups: Sequence[Sequence[Sequence[str]]], fails: Callable[[Sequence[str]], bool]
) -> dict[tuple[int, int, str], Fraction]:
    """Pr(a person of a part has a value | some part of some group fails), over every order of each group's values.

    `groups` has the values of the people of each part of each group.
    """
    orders = [set(permutations([value for part in group for value in part])) for group in groups]
    hits: Counter[tuple[int, int, str]] = Counter()
    kept = 0
    for world in product(*orders):
        dealt = [_dealt(order, [len(part) for part in group]) for order, group in zip(world, groups, strict=True)]
        if not any(fails(part) for group in dealt for part in group):
            continue
        kept += 1
        for g, group in enumerate(dealt):
            for p, part in enumerate(group):
                hits[g, p, part[0]] += 1  # the first person of the part stands for all
    return {key: Fraction(n, kept) for key, n in hits.items()}


def _dealt(order: Sequence[str], sizes: Sequence[int]) -> list[Sequence[str]]:
    found, at = [], 0
    for size in sizes:
        found.append(order[at : at + size])
        at += size
    return found


# -- beliefs of each person ----------------------------------------------------------------------------------------

Belief = dict[str, Fraction]


def mixture(own: Sequence[int], batches: Sequence[dict[str, object]]) -> Belief:
    """The belief in each value for somebody who is one of these rows, each of which says its batch."""
    found: Counter[str] = Counter()
    for number in own:
        entries = [(str(entry["s"]), int(str(entry["count"]))) for entry in batches if entry["batch"] == number]
        size = sum(n for _, n in entries)
        for value, n in entries:
            found[value] += Fraction(n, size * len(own))  # type: ignore[assignment]
    return dict(found)  # type: ignore[arg-type]


def strongest_mixture(tables: Sequence[Sequence[int]], batches: Sequence[dict[str, object]]) -> Belief:
    """The strongest belief of any table; 1 where the batches that all tables leave have one value only."""
    left = set.intersection(*(set(own) for own in tables))
    values = {str(entry["s"]) for entry in batches if entry["batch"] in left}
    beliefs = [mixture(own, batches) for own in tables]
    if len(values) == 1:
        return dict.fromkeys(values, Fraction(1))
    return {value: max(belief.get(value, Fraction(0)) for belief in beliefs) for value in values}


def strongest(shares: Sequence[Belief]) -> Belief:
    """The same for marginals: the largest share of a value in any, if all of them leave it possible."""
    values = set.intersection(*(set(one) for one in shares))
    if len(values) == 1:
        return dict.fromkeys(values, Fraction(1))
    return {value: max(one[value] for one in shares) for value in values}


def believed(beliefs: Sequence[Belief], values: Sequence[str], threshold: Fraction) -> tuple[int, int]:
    """People of whom some value reaches the threshold, and those who have the likeliest (the first of equals)."""
    exposed = right = 0
    for belief, own in zip(beliefs, values, strict=True):
        value, most = min(belief.items(), key=lambda pair: (-pair[1], pair[0]))
        if most >= threshold:
            exposed, right = exposed + 1, right + (value == own)
    return exposed, right


def ruled_out(beliefs: Sequence[Belief], values: Sequence[str], threshold: Fraction, number: int) -> int:
    """People whose value reaches the threshold once the likeliest other values are ruled out for them."""
    exposed = 0
    for belief, own in zip(beliefs, values, strict=True):
        others = sorted((share for value, share in belief.items() if value != own), reverse=True)
        exposed += belief[own] / (1 - sum(others[:number])) >= threshold
    return exposed


def certain_values(
    quasi: Sequence[tuple[object, str]],
    values: Sequence[str],
    marginals: Sequence[Sequence[dict[str, object]]],
    covers: Callable[[str, object], bool],
) -> int:
    """People whose value is the same in every table that has these people and fits the marginals."""
    names = ("a", "b")

    def shown(world: Sequence[str]) -> list[Counter[int]]:
        found = []
        for cells in marginals:
            hits: Counter[int] = Counter()
            for person, value in zip(quasi, world, strict=True):
                for at, cell in enumerate(cells):
                    fits = all(covers(str(cell[n]), v) for n, v in zip(names, person, strict=True) if n in cell)
                    hits[at] += fits and cell.get("s", value) == value
            found.append(hits)
        return found

    true = shown(values)
    worlds = [world for world in product(sorted(set(values)), repeat=len(values)) if shown(world) == true]
    sets = [
        {tuple(sorted(world[j] for j in range(len(quasi)) if quasi[j] == quasi[i])) for world in worlds}
        for i in range(len(quasi))
    ]
    return sum(len(found) == 1 and len(set(next(iter(found)))) == 1 for found in sets)


def present_in_all(
    rows: Sequence[tuple[str, str]], public: Sequence[tuple[object, str]], covers: Callable[[str, object], bool]
) -> tuple[set[int], set[int]]:
    """Who is in every choice of people that can be matched to the published rows, and who in none."""
    fits = [[all(map(covers, row, person)) for person in public] for row in rows]
    choices = [
        set(chosen)
        for chosen in combinations(range(len(public)), len(rows))
        if any(all(fits[at][i] for at, i in enumerate(order)) for order in permutations(chosen))
    ]
    return set.intersection(*choices), set(range(len(public))) - set.union(*choices)


# -- people with several values ------------------------------------------------------------------------------------


def homogeneous_people(groups: Sequence[dict[int, set[str]]], threshold: Fraction) -> tuple[int, set[int]]:
    """People in a group of which so large a part has one value, each once; how many may have what is believed of them.

    Among equally frequent values any may be believed.
    """
    exposed: set[int] = set()
    rights: list[list[set[int]]] = []
    for people in groups:
        often = Counter(value for own in people.values() for value in own)
        most = max(often.values())
        if Fraction(most, len(people)) >= threshold:
            exposed |= set(people)
            likely = [value for value, n in often.items() if n == most]
            rights.append([{p for p, own in people.items() if value in own} for value in likely])
    return len(exposed), {len(set().union(*choice)) for choice in product(*rights)}


def most_ruled_out(groups: Sequence[dict[int, set[str]]], threshold: Fraction) -> int:
    """People who have a value that so large a part has of those who lack some other value, as they do; each once."""
    exposed: set[int] = set()
    for people in groups:
        values = set().union(*people.values())
        for value in values:
            for other in [None, *(values - {value})]:
                left = {p for p, own in people.items() if other not in own}
                having = {p for p in left if value in people[p]}
                if having and Fraction(len(having), len(left)) >= threshold:
                    exposed |= having
    return len(exposed)
