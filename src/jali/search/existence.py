"""Existence: how likely each member of a group is among the ones that are present, from everybody's likelihoods.

The paper's Equation 4 is a ratio of elementary symmetric polynomials, ex_k = p_k e_{n-1}(P without k) / e_n(P): the
probability that a Bernoulli trial succeeds, given that n of all trials do. Such a probability does not change when all
odds are multiplied by one factor, so the odds are tilted until n successes are what one expects. Then everything that
matters is near n: the distribution of the number of successes is built in a window around n, and each member is taken
out of it again, upwards from below for probabilities up to ½ and downwards from above for larger ones, which is the
direction in which no error grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, counted
from jali.errors import InputError
from jali.kernels.jit import chosen

_TAIL = 50.0  # the window leaves out less than exp(-50)
_FEW = 48  # members of equal likelihood up to which they are added one by one


def existence(likelihoods: NDArray[np.floating] | list[float], present: int) -> Floats:
    """The probability that each member of a group is present, when `present` of them are: (members,).

    ex_k = p_k e_{n-1}(P without k) / e_n(P), Equation 4 of the pdf-generalization paper. Only the ratios of the
    likelihoods matter. They sum to `present`.

    >>> existence([3 / 16, 9 / 16, 9 / 16, 3 / 16, 1 / 16], present=4).round(4).tolist()
    [0.8235, 0.9412, 0.9412, 0.8235, 0.4706]
    """
    members = _checked(likelihoods)
    values, which, many = np.unique(members, return_inverse=True, return_counts=True)
    return weighted_existence(values, many.astype(np.int64), _count(present, members))[which.reshape(-1)]


def _checked(likelihoods: NDArray[np.floating] | list[float]) -> Floats:
    try:
        members = np.asarray(likelihoods, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("likelihoods must be numbers", do="write e.g. existence([0.2, 0.6], present=1)") from None
    if members.ndim != 1:
        raise InputError("likelihoods are a list, one for each member", got=f"{members.ndim} dimensions")
    if not bool(np.isfinite(members).all()):
        raise InputError("a likelihood is not a finite number", got=f"member {np.argmin(np.isfinite(members)) + 1}")
    if bool((members < 0).any()):
        raise InputError("a likelihood cannot be negative", got=f"member {np.argmax(members < 0) + 1}")
    if len(members) and not bool(members.any()):
        raise InputError("all likelihoods are zero", do="at least one member must be possible")
    return members


def _count(present: object, members: Floats) -> int:
    if isinstance(present, bool) or not isinstance(present, (int, np.integer)) or present < 0:
        raise InputError("present must be a whole number of at least 0", got=repr(present))
    if present > len(members):
        raise InputError(f"more are present than there are members ({len(members):,})", got=f"{present:,}")
    possible = int(np.count_nonzero(members))
    if present > possible:
        raise InputError(f"more are present than members of positive likelihood ({possible:,})", got=f"{present:,}")
    return int(present)


def weighted_existence(likelihoods: Floats, many: Ints, present: int) -> Floats:
    """The same for `many[i]` members of each likelihood (each likelihood once): (likelihoods,).

    At least `present` members have a positive likelihood.
    """
    result = np.zeros(len(likelihoods))
    possible = likelihoods > 0
    total = int(many[possible].sum())
    if present in (0, total) or int(possible.sum()) == 1:
        result[possible] = present / max(total, 1)
        return result
    odds = _tilted(np.log(likelihoods[possible]), many[possible], present)
    result[possible] = _conditioned(odds, many[possible], present)
    return result


class Kernels:
    """The compiled twins, or for few members the same functions in plain Python."""

    def __init__(self, members: int) -> None:
        from jali.kernels import existence as compiled

        self.HOLDS, self.UNDECIDED = compiled.HOLDS, compiled.UNDECIDED
        worth = partial(chosen, what="presence", work=members**2)
        self.by_means = worth(compiled.by_means)
        self.within_bounds = worth(compiled.within_bounds)
        self.existences = worth(compiled.existences)


@dataclass(frozen=True, eq=False)
class Alike:
    """Members of groups, those of a group who are equally likely put together; sorted by group, then likelihood."""

    logs: Floats  # (entries,) of likelihoods
    many: Ints  # (entries,) members
    start: Ints  # (groups + 1,) where each group's entries begin
    entry: Ints  # (members,) the entry of each


def logs_of(likely: Floats) -> Floats:
    """The logarithms of likelihoods, -inf of 0."""
    return np.log(likely, out=np.full(len(likely), -np.inf), where=likely > 0)


def alike(logs: Floats, people: Ints, group: Ints, groups: int) -> Alike:
    """Members, by the logarithms of their likelihoods, each standing for some people, as entries of their groups."""
    order = np.lexsort((logs, group))
    value, owner = logs[order], group[order]
    new = np.append(True, (value[1:] != value[:-1]) | (owner[1:] != owner[:-1]))[: len(order)]
    entry = np.empty(len(order), dtype=np.int64)
    entry[order] = np.cumsum(new) - 1
    many = counted(entry, people, int(new.sum()))
    return Alike(value[new], many, np.searchsorted(owner[new], np.arange(groups + 1)).astype(np.int64), entry)


def _tilted(log_odds: Floats, many: Ints, present: int) -> Floats:
    """The odds times the factor at which `present` successes are expected: Newton, kept inside a bracket."""
    low = -float(log_odds.max()) + np.log(present / many.sum()) - 1.0
    high = -float(log_odds.min()) + np.log(present / max(many.sum() - present, 1)) + 1.0
    shift = 0.5 * (low + high)
    for _ in range(200):
        q = _share(log_odds + shift)
        excess = float(many @ q) - present
        if abs(excess) < 1e-6 * max(1.0, min(present, float(many.sum()) - present)):
            break
        low, high = (low, shift) if excess > 0 else (shift, high)
        slope = float(many @ (q * (1.0 - q)))
        step = shift - excess / slope if slope > 0 else low
        shift = step if low < step < high else 0.5 * (low + high)
    odds: Floats = np.exp(np.clip(log_odds + shift, -700.0, 700.0))
    return odds


def _share(log_odds: Floats) -> Floats:
    """The probability that belongs to odds: x / (1 + x)."""
    small = np.exp(-np.abs(log_odds))
    share: Floats = np.where(log_odds > 0, 1.0, small) / (1.0 + small)
    return share


def _conditioned(odds: Floats, many: Ints, present: int) -> Floats:
    """The probability of each trial's success, given that `present` of all succeed."""
    q, r = odds / (1.0 + odds), 1.0 / (1.0 + odds)
    first, mass = _successes(odds, many)
    at = present - first  # where n stands in the window
    result = np.empty(len(odds))
    rare = q <= 0.5
    without = _taken_out(mass, q[rare], r[rare], at)
    result[rare] = q[rare] * without / mass[at]
    # seen from the other side: failures are the rare thing
    without = _taken_out(mass[::-1], r[~rare], q[~rare], len(mass) - 1 - at)
    absent = r[~rare] * without / mass[at]
    result[~rare] = 1.0 - absent
    return result


def _taken_out(mass: Floats, q: Floats, r: Floats, at: int) -> Floats:
    """The mass at `at` − 1 when one member of probability q ≤ ½ (r = 1 − q) is taken out: (q,).

    mass[j] = r g[j] + q g[j-1], solved for g from below.
    """
    g = np.zeros(len(q))
    ratio, scale = q / r, 1.0 / r
    for j in range(at):
        g = mass[j] * scale - ratio * g
    return g


# -- the number of successes ----------------------------------------------------------------------------------------


def _reach(variance: float) -> int:
    """How far from its mean a sum of trials goes, but for a share of exp(-_TAIL) (Bernstein)."""
    return int(np.ceil(_TAIL / 3 + np.sqrt(_TAIL**2 / 9 + 2 * _TAIL * variance))) + 2


def _successes(odds: Floats, many: Ints) -> tuple[int, Floats]:
    """The mass of the number of successes within reach of its mean, up to a factor, and the number it begins with."""
    parts = _one_by_one(np.repeat(odds[many <= _FEW], many[many <= _FEW]))
    parts += [_binomial(float(x), int(c)) for x, c in zip(odds[many > _FEW], many[many > _FEW], strict=True)]
    while len(parts) > 1:  # neighbours first: fewer roundings than one after the other
        parts = [_joined(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]


Part = tuple[int, Floats]


def _one_by_one(odds: Floats) -> list[Part]:
    """The masses of about √members blocks of members, which grow side by side."""
    if len(odds) == 0:
        return []
    length = max(1, int(np.sqrt(len(odds))))
    blocks = -(-len(odds) // length)
    rest = np.zeros(blocks * length - len(odds))  # odds of 0 change nothing
    padded = np.concatenate([odds, rest]).reshape(blocks, length).T
    q, r = padded / (1.0 + padded), 1.0 / (1.0 + padded)
    mass = np.zeros((length + 1, blocks))
    mass[0] = 1.0
    for i in range(length):
        mass[1 : i + 2] = mass[1 : i + 2] * r[i] + mass[: i + 1] * q[i]
        mass[0] *= r[i]
    return [_trimmed(0, np.ascontiguousarray(mass[:, b])) for b in range(blocks)]


def _binomial(odds: float, trials: int) -> Part:
    """The mass of the successes of equal trials, multiplied up and down from its mode."""
    q = odds / (1.0 + odds)
    mode = min(int((trials + 1) * q), trials)
    reach = _reach(trials * q * (1.0 - q))
    first, last = max(0, mode - reach), min(trials, mode + reach)
    up = np.arange(mode, last)
    down = np.arange(mode, first, -1)
    rising = np.cumprod((trials - up) / (up + 1) * odds)
    falling = np.cumprod(down / (trials - down + 1) / odds)
    mass = np.concatenate([falling[::-1], [1.0], rising])
    return first, mass / mass.sum()


def _joined(one: Part, other: Part) -> Part:
    return _trimmed(one[0] + other[0], np.convolve(one[1], other[1]))


def _trimmed(first: int, mass: Floats) -> Part:
    """The mass without ends that do not matter, its sum 1."""
    mass = mass / mass.sum()
    number = np.arange(len(mass))
    mean = float(number @ mass)
    reach = _reach(float((number - mean) ** 2 @ mass))
    start, stop = max(0, int(mean) - reach), min(len(mass), int(mean) + reach + 2)
    return first + start, mass[start:stop]
