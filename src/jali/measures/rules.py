"""Association rules and classifiers learned from a reconstruction, compared with those of the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine
from jali.cover.sets import plain
from jali.encoding import values as v
from jali.encoding.table import Table
from jali.encoding.values import as_kind, texts
from jali.errors import InputError, nearest
from jali.estimates.boxes import BoxEstimate
from jali.principles.base import exact

Item: TypeAlias = tuple[str, str | None]  # a column and the text of its value
SUPPORT, CONFIDENCE, LONGEST = 0.05, 0.8, 4
DOUBTFUL = 1_000
"""Up to how many doubtful rows the probability of a rule is computed."""


@dataclass(frozen=True)
class Rule:
    """A row with all values of `when` has the value `then`."""

    when: tuple[Item, ...]  # in the order of the table's columns
    then: Item

    def __str__(self) -> str:
        return " and ".join(map(_item, self.when)) + " ⇒ " + _item(self.then)


@dataclass(frozen=True)
class RuleErrors:
    """How the rules of reconstructions differ from the original's: means over seeds."""

    error: float  # Σ |confidence − confidence| over the rules of either; one that is not there counts as the least
    found: int  # rules of the original
    kept: float  # how many of them a reconstruction has too
    false: float  # how many it has that the original lacks
    support: float
    confidence: float
    seeds: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


def mine(
    frame: pa.Table,
    *,
    support: float = SUPPORT,
    confidence: float = CONFIDENCE,
    longest: int = LONGEST,
    then: str | None = None,
) -> dict[Rule, float]:
    """Every rule of the table with at least this support and confidence, and its confidence.

    A rule has one value on its right (of column `then`, where that is given) and up to `longest` − 1 on its left.
    Shares are compared exactly.
    """
    least, sure = share_of("support", support), share_of("confidence", confidence)
    if isinstance(longest, bool) or not isinstance(longest, int) or longest < 2:
        raise InputError("longest must be a whole number, at least 2", got=repr(longest))
    names = frame.column_names
    if then is not None and then not in names:
        raise InputError(f'no column "{then}" in the table', do=nearest(then, names))
    columns = [_coded(frame[name]) for name in names]
    needed = max(1, -(-least.numerator * frame.num_rows // least.denominator))
    found = dict(_frequent([codes for codes, _ in columns], [len(v) for _, v in columns], needed, longest))
    rules = {}
    for items, count in found.items():
        for at in items if len(items) > 1 else ():
            if then is not None and names[at[0]] != then:
                continue
            when = tuple(item for item in items if item != at)
            if count * sure.denominator >= sure.numerator * found[when]:
                *left, right = ((names[c], columns[c][1][code]) for c, code in (*when, at))
                rules[Rule(tuple(left), right)] = count / found[when]
    return rules


def distance(one: Mapping[Rule, float], other: Mapping[Rule, float], confidence: float = CONFIDENCE) -> float:
    """Σ |C − C'| over the rules of either, a rule that is not there counting as the least confidence.

    Equation 5 of Section VI in Nergiz et al.
    """
    return sum(abs(one.get(rule, confidence) - other.get(rule, confidence)) for rule in sorted({*one, *other}, key=str))


def rule_errors(
    original: pa.Table, drawn: Sequence[pa.Table], *, support: float, confidence: float, then: str | None = None
) -> RuleErrors:
    """The rules of the original against those of each reconstruction."""
    own = mine(original, support=support, confidence=confidence, then=then)
    others = [mine(one, support=support, confidence=confidence, then=then) for one in drawn]
    return RuleErrors(
        error=float(np.mean([distance(own, other, confidence) for other in others])),
        found=len(own),
        kept=float(np.mean([len(own.keys() & other.keys()) for other in others])),
        false=float(np.mean([len(other.keys() - own.keys()) for other in others])),
        support=support,
        confidence=confidence,
        seeds=len(others),
    )


def rule_probability(
    estimate: BoxEstimate, rule: Rule, *, support: float = SUPPORT, confidence: float = CONFIDENCE
) -> float:
    """The probability that a reconstruction has the rule (Section IV-C): exactly, over all reconstructions.

    Rows are independent; each is on both sides of the rule, on its left only, or neither. The joint distribution of
    how many rows are on both sides and on the left only grows row by row.
    """
    least, sure = share_of("support", support), share_of("confidence", confidence)
    rows = estimate.rows
    if rows is None:
        raise InputError("how many rows were published is not known", do="use the estimate of a release")
    whole = np.prod([_item_shares(estimate, item) for item in rule.when], axis=0)
    then = _item_shares(estimate, rule.then)
    both, left = (whole * then)[rows], (whole * (1 - then))[rows]
    certain = (np.isin(both, (0.0, 1.0))) & (np.isin(left, (0.0, 1.0)))
    doubtful = np.flatnonzero(~certain)
    if len(doubtful) > DOUBTFUL:
        do = "draw reconstructions and count in how many it holds"
        raise InputError(f"the rule depends on more than {DOUBTFUL:,} rows", got=f"{len(doubtful):,}", do=do)
    chance = np.zeros((len(doubtful) + 1, len(doubtful) + 1))  # (on both sides, on the left only)
    chance[0, 0] = 1.0
    for step, row in enumerate(doubtful, 1):
        a, b = both[row], left[row]
        old = chance[: step + 1, : step + 1].copy()
        chance[: step + 1, : step + 1] = old * max(1 - a - b, 0.0)
        chance[1 : step + 1, : step + 1] += old[:step] * a
        chance[: step + 1, 1 : step + 1] += old[:, :step] * b
    on_both = np.arange(len(chance))[:, None] + int(both[certain].sum())
    on_left = np.arange(len(chance))[None, :] + int(left[certain].sum())
    enough = on_both * least.denominator >= least.numerator * len(rows)
    firm = on_both * sure.denominator >= sure.numerator * (on_both + on_left)
    return float(chance[enough & firm & (on_both > 0)].sum())


def share_of(name: str, value: float | Fraction) -> Fraction:
    """A share above 0 and at most 1, exactly as it was written."""
    share = exact(name, value)
    if not 0 < share <= 1:
        raise InputError(f"{name} must be above 0 and at most 1", got=repr(value))
    return share


def _item_shares(estimate: BoxEstimate, item: Item) -> NDArray[np.float64]:
    """The probability that a row of each box has the value: (boxes,)."""
    names = [column.name for column in estimate.columns]
    if item[0] not in names:
        raise InputError(f'no column "{item[0]}" was published', do=nearest(item[0], names))
    column = estimate.columns[names.index(item[0])]
    cover, share = column.cover, np.zeros(column.cover.nodes)
    if not cover.whole and not np.isnan(cover.low).all():
        raise InputError(f'no value of column "{item[0]}" has a probability: it is shown as intervals of fractions')
    value = as_kind(item[0], pa.array([item[1]], pa.string()), column.kind)
    _, nodes, shares = cover.density(value, item[0], np.unique(column.codes).astype(np.int64))
    share[nodes] = shares
    found: NDArray[np.float64] = np.clip(share, 0.0, 1.0)[column.codes]
    return found


def _item(item: Item) -> str:
    return f"{item[0]} = {'missing' if item[1] is None else item[1]}"


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str | None]]:
    """The code of each row, and the texts that they stand for."""
    encoded = texts(plain(column)).dictionary_encode("encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()


def _frequent(
    codes: Sequence[Ints], widths: Sequence[int], needed: int, longest: int
) -> Iterator[tuple[tuple[tuple[int, int], ...], int]]:
    """Every itemset that is frequent enough and not too large, with the number of rows that have it.

    A set of columns grows to the right, in the rows only whose values in it are frequent: no frequent set is missed.
    """
    waiting: list[tuple[tuple[int, ...], Ints]] = [((), np.arange(len(codes[0])))]
    while waiting:
        columns, rows = waiting.pop()
        for column in range(columns[-1] + 1 if columns else 0, len(codes)):
            chosen = (*columns, column)
            number, first = combine([(codes[c][rows], widths[c]) for c in chosen], len(rows))
            count = np.bincount(number, minlength=len(first))
            kept = count >= needed
            for at in np.flatnonzero(kept):
                yield tuple((c, int(codes[c][rows[first[at]]])) for c in chosen), int(count[at])
            if kept.any() and len(chosen) < longest:
                waiting.append((chosen, rows[kept[number]]))


Singles = NDArray[np.float32]
LEAF = 5
"""The fewest rows in a leaf of the decision tree."""


@dataclass(frozen=True)
class Classified:
    """The share of people whose class is predicted rightly, by what the classifier learnt from."""

    column: str
    accuracy: float  # from reconstructions of the release: the mean over seeds
    original: float  # from the original
    majority: float  # by always naming the most frequent class of the original
    tested_on: Literal["holdout", "folds"]
    seeds: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


def require_classifier() -> None:
    """Raise InputError where scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise InputError("classifying needs scikit-learn, which is not installed", do='pip install "jali[rules]"')


def classified(
    drawn: Sequence[pa.Table], original: Table, column: str, *, names: Sequence[str], holdout: Table | None,
    in_order: bool,
) -> Classified:  # fmt: skip
    """Train on reconstructions and test on originals that were not trained on.

    With a holdout these are its rows. Without one the people are cut into as many folds as there are reconstructions:
    the rows of a fold are tested by what was learnt from the reconstructed rows of all others, which must stand in the
    order of the original's (`in_order`).
    """
    own = original.frame("arrow")
    if holdout is not None:
        known = [other.name for other in holdout.columns]
        for name in [*names, column]:
            if name not in known:
                raise InputError(f'holdout: no column "{name}" in the table', do=nearest(name, known))
        tests = holdout.frame("arrow")
        accuracy = float(np.mean([_accuracy(one, tests, names, column) for one in drawn]))
        named = _majority(own, tests, column)
        return Classified(column, accuracy, _accuracy(own, tests, names, column), named, "holdout", len(drawn))
    if not in_order:
        do = "pass holdout= (--holdout), a table of people who are not in it, or measure a release that was just made"
        raise InputError("classify needs people whose published rows were not trained on", do=do)
    if original.rows < len(drawn):
        raise InputError("classify needs more rows than seeds", got=f"{original.rows:,} rows, {len(drawn)} seeds")
    fold = np.random.default_rng(0).permutation(original.rows) % len(drawn)
    found = []
    for number, one in enumerate(drawn):
        inside, outside = (pa.array(np.flatnonzero(some)) for some in (fold == number, fold != number))
        tests, rest = own.take(inside), own.take(outside)
        ways = _accuracy(one.take(outside), tests, names, column), _accuracy(rest, tests, names, column)
        found.append((*ways, _majority(rest, tests, column)))
    means = np.average(found, axis=0, weights=np.bincount(fold))
    return Classified(column, float(means[0]), float(means[1]), float(means[2]), "folds", len(drawn))


def _accuracy(trained: pa.Table, tests: pa.Table, names: Sequence[str], column: str) -> float:
    from sklearn.tree import DecisionTreeClassifier

    parts = [_features(trained[name], tests[name]) for name in names]
    learnt, asked = (np.concatenate([part[i] for part in parts], axis=1) for i in (0, 1))
    tree = DecisionTreeClassifier(min_samples_leaf=LEAF, random_state=0)
    tree.fit(learnt, _classes(trained, column))
    return float(np.mean(tree.predict(asked) == _classes(tests, column)))


def _majority(trained: pa.Table, tests: pa.Table, column: str) -> float:
    classes, counts = np.unique(_classes(trained, column), return_counts=True)
    return float(np.mean(_classes(tests, column) == classes[counts.argmax()]))


def _classes(frame: pa.Table, column: str) -> NDArray[np.str_]:
    """The class of each row as text; a missing one is a class too."""
    return np.array([f"={text}" if text is not None else "" for text in v.texts(plain(frame[column])).to_pylist()])


def _features(trained: pa.ChunkedArray, tests: pa.ChunkedArray) -> tuple[Singles, Singles]:
    """A column as numbers (nan where it is missing), or as a column of zeros and ones for each value trained on."""
    one, other = plain(trained), plain(tests)
    first, second = v.numbers(one), v.numbers(other)
    if v.kind_of(one) in ("number", "date") and first is not None and second is not None:
        return first.astype(np.float32)[:, None], second.astype(np.float32)[:, None]
    known = v.texts(one).dictionary_encode("encode").dictionary
    return _indicators(v.texts(one), known), _indicators(v.texts(other), known)


def _indicators(texts: pa.Array, known: pa.Array) -> Singles:
    code = pc.index_in(texts, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False)
    found: Singles = (code[:, None] == np.arange(len(known))).astype(np.float32)
    return found
