"""Minimality attack: what follows from the algorithm having rejected every finer release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, prod

import numpy as np

from jali.core.arrays import Bools, Ints, counted, owners, runs_of
from jali.principles.base import Principle, hold
from jali.principles.counts import Cells, Counts
from jali.releases.column import Published, node_numbers
from jali.releases.group_facts import NodeFacts
from jali.releases.summary import an, many
from jali.risk.attacks.scene import Attack, Scene
from jali.risk.disclosure.count import Budget, TooManyError
from jali.search.mondrian.generic import Splitter
from jali.search.mondrian.plan import columns_of, items_of

Row = tuple[int, ...]


@dataclass(frozen=True)
class Failure:
    """How likely it is that some part of a group breaks a promise, when its values are in random order."""

    chance: Fraction
    joint: tuple[tuple[Fraction, ...], ...]  # (parts, values) Pr(a person of the part has the value, and a part fails)


def failure(counts: Row, sizes: Row, principles: tuple[Principle, ...], cells: Cells, budget: Budget) -> Failure:
    """Look at every way to spread a group's values (`counts`, of all values) over parts of these sizes.

    A way stands for Π_part size! / Π_value n! of the equally likely worlds. Each way takes a step.
    """
    used = [value for value, n in enumerate(counts) if n]
    ways = []
    for way in spreads(tuple(counts[value] for value in used), sizes):
        budget.spend(1)
        ways.append(way)
    fails = _some_part_fails(np.array(ways, dtype=np.int64), np.array(used, dtype=np.int64), principles, cells)
    weights = [prod(factorial(sum(row)) // prod(map(factorial, row)) for row in way) for way in ways]
    total = sum(weights)
    broken = [(way, weight) for way, weight, fail in zip(ways, weights, fails.tolist(), strict=True) if fail]
    joint = [[Fraction(0)] * len(counts) for _ in sizes]
    for part, size in enumerate(sizes):
        for place, value in enumerate(used):
            joint[part][value] = Fraction(sum(weight * way[part][place] for way, weight in broken), size * total)
    return Failure(Fraction(sum(weight for _, weight in broken), total), tuple(tuple(row) for row in joint))


def spreads(counts: Row, sizes: Row) -> Iterator[tuple[Row, ...]]:
    """Every way to spread values over parts: tables with these column and row sums.

    >>> list(spreads((1, 1), (1, 1)))
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    if len(sizes) == 1:
        yield (counts,)
        return
    for row in _takes(counts, sizes[0]):
        left = tuple(n - taken for n, taken in zip(counts, row, strict=True))
        for rest in spreads(left, sizes[1:]):
            yield (row, *rest)


def _takes(counts: Row, size: int) -> Iterator[Row]:
    """Every way to take `size` of these."""
    if not counts:
        yield ()
        return
    rest = sum(counts[1:])
    for first in range(max(0, size - rest), min(counts[0], size) + 1):
        for others in _takes(counts[1:], size - first):
            yield (first, *others)


def _some_part_fails(ways: Ints, used: Ints, principles: tuple[Principle, ...], cells: Cells) -> Bools:
    """Whether some part breaks a promise: (ways,), all judged together. `ways` is (ways, parts, values)."""
    number, parts, width = ways.shape
    flat = ways.reshape(number * parts, width)
    group, place = np.nonzero(flat)
    values = len(cells.column)
    joint = np.arange(values, dtype=np.int64)[:, None]
    whole = Counts(1, np.zeros(values, dtype=np.int64), joint[:, 0], cells.reference, (cells.column,), joint)
    counts = Counts(
        len(flat), group.astype(np.int64), used[place], flat[group, place], (cells.column,), joint, None, whole
    )
    return np.asarray(~hold(principles, counts).reshape(number, parts).all(axis=1))


ATTACKER = "knows everybody's quasi-identifiers, the algorithm and the promises: every finer release broke one"
OF_NO_USE = "knows the anatomy algorithm, which is of no use: it leads to the buckets equally often from every table"
WAYS = 100_000
"""How many ways to spread values over parts are looked at in all, some seconds; what needs more becomes a note."""
MOST = 5_000
"""How many of them for one rejection."""
SMALL = Fraction(1, 1000)
"""Where finer groups were to fail anyway with all but this chance, no belief changes by more than it."""


@dataclass(frozen=True, eq=False)
class Rejected:
    """A finer grouping that the algorithm turned down, so that at least one of its parts breaks a promise."""

    why: str
    combinations: Ints  # those that it speaks of
    part: Ints  # the finer group of each of them


@dataclass(frozen=True, eq=False)
class Learnt:
    """What a rejection says of the people in one part of a group."""

    why: str
    group: int
    combinations: Ints
    value: int
    before: Fraction
    after: Fraction


def minimality(scene: Scene) -> Attack:
    """Condition each belief on what the algorithm must have seen (one rejection at a time).

    Before, the values of each published group are in random order. A part is a finer group within a published one; that
    the finer grouping was turned down says that at least one part breaks a promise.
    """
    people = scene.original.people
    method = scene.release.manifest.method
    if (method.get("name"), method.get("buckets")) == ("anatomize", "anatomy"):
        return Attack("minimality", OF_NO_USE, 0, people, 0)
    why_not = _why_not(scene)
    if why_not is not None:
        return Attack("minimality", ATTACKER, None, people, notes=(why_not,))
    learnt: list[Learnt] = []
    tally = {"rejected finer groupings": 0, "of them to be expected anyway": 0}
    uncounted, budget = 0, Budget(WAYS)
    local = method["name"] == "partition"
    for rejected in _cuts(scene) if local else _children(scene):
        if not _fails(scene, rejected):
            continue
        tally["rejected finer groupings"] += 1
        mine = Budget(min(MOST, budget.steps))
        budget.steps -= mine.steps
        try:
            raised = _learn(scene, rejected, mine)
        except TooManyError:
            uncounted += 1
            continue
        budget.steps += mine.steps
        tally["of them to be expected anyway"] += raised is None
        learnt += raised or []
    several = tally["rejected finer groupings"] > 1
    notes = ["what follows from several rejections together"] if several else []
    if uncounted:
        notes.append(f"{many(uncounted, 'rejection')} of groups with too many worlds to count")
    return _told(scene, learnt, people, dict(tally), tuple(notes))


def _told(
    scene: Scene, learnt: list[Learnt], people: int, figures: dict[str, int | float], notes: tuple[str, ...]
) -> Attack:
    """The attack, from the strongest belief that any rejection gives about each combination."""
    best: dict[int, Learnt] = {}
    for one in sorted(learnt, key=lambda one: one.after):
        best |= dict.fromkeys(one.combinations.tolist(), one)
    truth = scene.truth
    value, sure = np.full(truth.groups, -1, dtype=np.int64), np.zeros(truth.groups, dtype=bool)
    for combination, one in best.items():
        value[combination] = one.value
        sure[combination] = one.before < scene.threshold <= one.after
    exposed = int(truth.size[sure].sum())
    right = int(truth.n[sure[truth.group] & (truth.value == value[truth.group])].sum())
    figures["people of whom a belief rises"] = int(truth.size[list(best)].sum()) if best else 0
    figures["largest rise of a belief"] = float(max((one.after - one.before for one in learnt), default=Fraction(0)))
    ranked = sorted(learnt, key=lambda one: (one.before - one.after, one.group, int(one.combinations[0])))
    one_each = {one.group: one for one in reversed(ranked)}  # the strongest case of each group
    cases = tuple(_case(scene, one) for one in sorted(one_each.values(), key=ranked.index)[: scene.cases])
    return Attack("minimality", ATTACKER, exposed, people, right, figures, cases, notes)


def _case(scene: Scene, one: Learnt) -> str:
    who = many(int(scene.truth.size[one.combinations].sum()), "person", "people")
    size = int(scene.cells.size[one.group])
    return (
        f"{one.why}: for {who} of the {size} in {scene.names(one.group)}, the belief in {scene.label(one.value)} "
        f"rises from {float(one.before):.0%} to {float(one.after):.0%}"
    )


def _why_not(scene: Scene) -> str | None:
    """Why nothing can be computed for a release."""
    release, method = scene.release, scene.release.manifest.method
    unknown = str(method.get("known_algorithm", f"what the algorithm of {an(release.kind)} release gives away"))
    if release.grouped_rows is None:
        return unknown
    if scene.several:
        return "what the algorithm gives away where a person can have several rows"
    if len(release.of_role("sensitive")) != 1:
        return "what the algorithm gives away where there are several sensitive columns"
    if any(principle.scope == "table" for principle in release.principles):
        return "what follows from a promise about all groups at once"
    if method.get("name") == "generalize" and method.get("levels_given"):
        return "why its holder chose these levels"
    if method.get("name") == "generalize" and Fraction(str(method.get("suppress", "0"))) > 0:
        return "what follows from finer releases that had too many rows to suppress"
    if method.get("name") == "partition" and method.get("mode") == "strict":
        return _hierarchies_missing(scene)
    if method.get("name") == "generalize":
        return _levels_missing(scene)
    return unknown


def _hierarchies_missing(scene: Scene) -> str | None:
    """A group is split along its taxonomies, so these must be the ones that it was split along."""
    for published in scene.release.of_role("quasi"):
        hierarchy = scene.original[published.name].hierarchy
        assert hierarchy is not None
        known = {text for level in hierarchy.levels for text in level.texts()} | {"*"}
        if isinstance(published.facts, NodeFacts) and not set(published.labels.to_pylist()) <= known:
            return f'what the algorithm gives away, since the taxonomy of "{published.name}" is not known here'
    return None


def _levels_missing(scene: Scene) -> str | None:
    """Where groups show a column in their own way, its levels here must be those that they were formed by."""
    quasi = scene.release.of_role("quasi")
    if not any(published.generalized_by_group for published in quasi):
        return None
    unknown = "what the algorithm gives away, since the hierarchies that groups were formed by are not known here"
    codes, names = scene.original.frequencies.codes, [column.name for column in scene.original.quasi]
    keys = [scene.links.only]
    for published in quasi:
        shown = _shown(scene, published)
        if shown is None:
            return unknown
        keys.append(shown[codes[:, names.index(published.name)]])
    nodes, pairs = (np.unique(np.stack(some), axis=1).shape[1] for some in (keys[1:], keys))
    return None if nodes == pairs == scene.cells.groups else unknown


def _shown(scene: Scene, published: Published) -> Ints | None:
    """The node that each value of a column has in a full-domain generalization, shown or only behind its groups."""
    column = scene.original[published.name]
    if not published.generalized_by_group:
        return node_numbers(published, column)
    level = scene.release.levels[published.name]
    assert column.hierarchy is not None
    return column.hierarchy.maps[level].astype(np.int64) if level <= column.hierarchy.height else None


# -- what was rejected -------------------------------------------------------------------------------------------


def _children(scene: Scene) -> Iterator[Rejected]:
    """For each quasi-identifier, the same generalization with this column one step finer."""
    names = [column.name for column in scene.original.quasi]
    codes = scene.original.frequencies.codes
    for published in scene.release.of_role("quasi"):
        column = scene.original[published.name]
        hierarchy = column.hierarchy
        assert hierarchy is not None
        shown = _shown(scene, published)
        assert shown is not None
        for nodes in reversed(hierarchy.maps[:-1]):
            inside = len(np.unique(nodes.astype(np.int64) * (int(shown.max()) + 2) + shown)) == len(np.unique(nodes))
            key = scene.links.only * (int(nodes.max()) + 1) + nodes[codes[:, names.index(published.name)]]
            number, part = np.unique(key, return_inverse=True)
            if inside and len(number) > scene.cells.groups:  # finer than what is shown, for somebody
                why = f"{published.name} could not be shown more finely"
                yield Rejected(why, np.arange(len(codes)), part.reshape(-1).astype(np.int64))
                break


def _cuts(scene: Scene) -> Iterator[Rejected]:
    """Every split of every group that a strict partitioning tries, in vain, before it leaves the group alone."""
    table = scene.original
    items = items_of(table, "strict")
    splitter = Splitter(columns_of(table), items, scene.release.principles, mode="strict", split="range")
    group = scene.links.only[items.combination]
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    groups = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    for members in sorted(groups, key=lambda one: int(items.n[one].sum())):  # small ones are counted soonest
        for _, column in splitter.gains(members):
            tried = splitter.by_column(members, column)
            parts = next(tried, None)
            while parts is not None:
                why = f"it could not be split by {table.quasi[column].name}"
                number = owners([len(part) for part in parts])
                combination, first = np.unique(items.combination[np.concatenate(parts)], return_index=True)
                yield Rejected(why, combination, number[first])
                try:
                    parts = tried.send(np.zeros(len(parts), dtype=bool))
                except StopIteration:
                    parts = None


# -- what a rejection says ---------------------------------------------------------------------------------------


def _learn(scene: Scene, rejected: Rejected, budget: Budget) -> list[Learnt] | None:
    """The beliefs that a rejection raises; None where sizes alone explain it, or it was to be expected anyway."""
    size = counted(rejected.part, scene.truth.size[rejected.combinations])
    owner = np.zeros(len(size), dtype=np.int64)
    owner[rejected.part] = scene.links.only[rejected.combinations]
    least = max(principle.least_size() for principle in scene.release.principles)
    if bool((size < least).any()):
        return None
    order = np.argsort(owner, kind="stable")
    places = np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)  # the parts of each group
    failures: list[tuple[int, Ints, Failure]] = []
    none = Fraction(1)  # the chance that no part fails
    for parts in sorted(places, key=lambda parts: int(size[parts].sum())):
        if len(parts) < 2:
            continue  # the group itself keeps every promise
        group = int(owner[parts[0]])
        sizes = tuple(size[parts].tolist())
        failures.append(
            (group, parts, failure(_row(scene, group), sizes, scene.release.principles, scene.cells, budget))
        )
        none *= 1 - failures[-1][2].chance
        if none <= SMALL:
            return None
    return [one for group, parts, fail in failures for one in _raised(scene, rejected, (group, parts, fail), none)]


def _fails(scene: Scene, rejected: Rejected) -> bool:
    """Whether a part does break a promise in the original: only what is true can be inferred."""
    truth = scene.truth
    n, place = runs_of(truth.start, rejected.combinations)
    joint = np.arange(len(truth.column), dtype=np.int64)[:, None]
    whole = Counts(1, np.zeros_like(joint[:, 0]), joint[:, 0], truth.reference, (truth.column,), joint)
    group, value, people = np.repeat(rejected.part, n), truth.value[place], truth.n[place]
    counts = Counts(int(group.max()) + 1, group, value, people, (truth.column,), joint, None, whole)
    return not bool(hold(scene.release.principles, counts).all())


def _row(scene: Scene, group: int) -> tuple[int, ...]:
    """How many people of a group have each value."""
    cells = scene.cells
    here = slice(int(cells.start[group]), int(cells.start[group + 1]))
    row = np.zeros(len(cells.column), dtype=np.int64)
    row[cells.value[here]] = cells.n[here]
    return tuple(row.tolist())


def _raised(scene: Scene, rejected: Rejected, where: tuple[int, Ints, Failure], none: Fraction) -> Iterator[Learnt]:
    """The values that are more likely once some part of some group must fail.

    Pr(s | some group fails) = (Pr(s, own group fails) + Pr(s, it does not) · Pr(another one fails)) / Pr(some fails).
    """
    group, parts, fail = where
    elsewhere = 1 - none / (1 - fail.chance)
    row = _row(scene, group)
    for number, part in enumerate(parts.tolist()):
        for value, n in enumerate(row):
            before = Fraction(n, sum(row))
            joint = fail.joint[number][value]
            after = (joint + (before - joint) * elsewhere) / (1 - none)
            if after - before > SMALL:
                yield Learnt(rejected.why, group, rejected.combinations[rejected.part == part], value, before, after)
