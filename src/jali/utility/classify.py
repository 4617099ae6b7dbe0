"""Classification: how well a decision tree that learnt from a release predicts people it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.encoding import values as v
from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.estimates.domain import plain

Floats = NDArray[np.float32]
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
        tests = _columns_of(holdout, [*names, column]).frame("arrow")
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


def _columns_of(holdout: Table, names: Sequence[str]) -> Table:
    known = [column.name for column in holdout.columns]
    for name in names:
        if name not in known:
            raise InputError(f'holdout: no column "{name}" in the table', do=nearest(name, known))
    return holdout


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


def _features(trained: pa.ChunkedArray, tests: pa.ChunkedArray) -> tuple[Floats, Floats]:
    """A column as numbers (nan where it is missing), or as a column of zeros and ones for each value trained on."""
    one, other = plain(trained), plain(tests)
    first, second = v.numbers(one), v.numbers(other)
    if v.kind_of(one) in ("number", "date") and first is not None and second is not None:
        return first.astype(np.float32)[:, None], second.astype(np.float32)[:, None]
    known = v.texts(one).dictionary_encode("encode").dictionary
    return _indicators(v.texts(one), known), _indicators(v.texts(other), known)


def _indicators(texts: pa.Array, known: pa.Array) -> Floats:
    code = pc.index_in(texts, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False)
    found: Floats = (code[:, None] == np.arange(len(known))).astype(np.float32)
    return found
