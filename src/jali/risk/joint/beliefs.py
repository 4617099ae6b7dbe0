"""What an attacker believes of whoever is in a pair of groups of two releases, and what that says of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from jali.core.arrays import combine
from jali.releases.generalized import Generalized
from jali.risk.joint.figures import Certain, JointAudit, JointBelief, Shown
from jali.risk.joint.matching import Expected, Pair
from jali.risk.joint.sides import Key, Label, Plan, Side, kept_by

ATTACKER = "the figures are for an attacker who knows somebody's quasi-identifiers and holds both releases"
STRONGER = "an attacker who knows everybody's quasi-identifiers, or how the releases were made, can learn more"


def figures_of(
    sides: tuple[Side, Side], plan: Plan, found: Mapping[Pair, Mapping[Key, Expected]], sure: Mapping[Pair, int],
    numbers: tuple[int, int],
) -> JointAudit:  # fmt: skip
    """All figures of a joint audit.

    `found` is how many people of each key are expected in the pairs of groups that somebody can be in, `sure` how many
    are there at least, `numbers` how the two releases are called.
    """
    worst: tuple[float, float, Pair, str, Label] | None = None
    highest, certain = 0.0, []
    for pair, by_key in found.items():
        for column in plan.sensitive:
            beliefs = _beliefs(by_key, plan.keys.index(column))
            for value, (low, high) in beliefs.items():
                highest = max(highest, high)
                if worst is None or low > worst[0]:
                    worst = low, high, pair, column, value
            if len(beliefs) == 1:
                certain.append((pair, column, next(iter(beliefs))))
    assert worst is not None  # a release has rows
    low, high, pair, column, value = worst
    given = [Certain(_shown(sides, p), name, v, sure[p], _mean(found[p])) for p, name, v in certain]
    known = {pair: {key: m.high for key, m in keys.items()} for pair, keys in found.items() if _known(keys)}
    kept: dict[str, bool | None] = {}
    notes = [ATTACKER, STRONGER, *_notes(sides, plan)]
    for number, side in zip(numbers, sides, strict=True):
        promises, more = kept_by(side.release, plan.keys, list(known.values()), all_known=len(known) == len(found))
        kept |= {f"{promise} of release {number}": verdict for promise, verdict in promises.items()}
        notes += [note for note in more if note not in notes]
    return JointAudit(
        people=sides[0].release.rows,
        cells=len(found),
        exact_cells=len(known),
        alone=tuple(_alone(side.release, plan.sensitive) for side in sides),
        worst=JointBelief(_shown(sides, pair), column, value, low, high),
        largest_possible=highest,
        certain=tuple(sorted(given, key=lambda one: (-one.people, -one.expected, str(one.groups)))),
        kept=kept,
        notes=tuple(notes),
        numbers=numbers,
    )


def _beliefs(by_key: Mapping[Key, Expected], place: int) -> dict[Label, tuple[float, float]]:
    """How likely each value of one column is for who is in a pair of groups, at least and at most."""
    low, high = defaultdict[Label, Fraction](Fraction), defaultdict[Label, Fraction](Fraction)
    for key, mean in by_key.items():
        low[key[place]] += mean.low
        high[key[place]] += mean.high
    least, most = sum(low.values(), Fraction(0)), sum(high.values(), Fraction(0))
    return {value: (_share(low[value], most - high[value]), _share(high[value], least - low[value])) for value in high}


def _share(own: Fraction, others: Fraction) -> float:
    return float(own / (own + others)) if others else 1.0


def _known(by_key: Mapping[Key, Expected]) -> bool:
    return len(by_key) == 1 or all(mean.exact for mean in by_key.values())


def _mean(by_key: Mapping[Key, Expected]) -> float:
    return float(sum((mean.low for mean in by_key.values()), Fraction(0)))


def _shown(sides: tuple[Side, Side], pair: Pair) -> tuple[Shown, Shown]:
    return sides[0].shown(pair[0]), sides[1].shown(pair[1])


def _alone(release: Generalized, sensitive: Sequence[str]) -> float:
    """The largest share of a value in a group of one release."""
    largest = 0.0
    group, first = combine([(c.codes, len(c.labels)) for c in release.of_role("quasi")], release.rows)
    size = np.bincount(group, minlength=len(first))
    for name in sensitive:
        column = release[name]
        cell, example = combine([(group, len(first)), (column.codes, len(column.labels))], release.rows)
        largest = max(largest, float((np.bincount(cell) / size[group[example]]).max()))
    return largest


def _notes(sides: tuple[Side, Side], plan: Plan) -> Iterator[str]:
    """What was assumed of these two releases."""
    both = [name for name in plan.keys if name not in plan.sensitive]
    if both:
        yield f"both releases show {', '.join(both)} as it is, so only rows that agree on it can be one person's"
    for name in plan.cells:
        covers = [side.release[name].cover for side in sides]
        if any(not cover.known.all() or cover.guessed is not None for cover in covers):
            yield f'a cell of "{name}" whose values are not declared was taken to fit everything'
    if any(bool(side.release.hidden_rows.any()) for side in sides):
        yield "not covered: suppressed rows fit everything here, though none of them is in a published group"
    for side in sides:
        own = [c.name for c in side.release.of_role("sensitive") if c.name not in plan.sensitive]
        if own:
            yield f"not covered: {', '.join(own)}, which one release alone has"
