"""The columns of the demo census: their hierarchies, and how people are drawn.

The hierarchies of age, sex, race, marital-status and education are those of the tables in the l-diversity paper (the
names of the levels are ours); those of native-country and workclass are our own. All levels together span
5 × 2 × 2 × 3 × 4 × 3 × 3 = 2,160 full-domain recodings.

People are drawn from pair counts that the package carries (frequencies.json, made by tools/census_frequencies.py, which
also says why they are safe). The counts lie along a graph in which each column has at most two parents, themselves
joined. A column with two parents is drawn from the distribution of largest entropy that has the three pair tables as
its marginals, so that every published table is reproduced. Values too rare for any table replace, at random, the value
drawn.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jali.errors import InputError, InternalError, nearest

__all__ = ["AGES", "COLUMNS", "QUASI", "SENSITIVE", "TOP", "Network", "Value", "network", "rows", "sample"]

# -- hierarchies, one row a value --------------------------------------------------------------------------------------

TOP = "*"
AGES = range(17, 91)
BANDS = (5, 10, 20)  # widths in years; each band starts at a multiple of its width: 0-4, 5-9, ...

Tree: TypeAlias = "str | dict[str, Tree]"  # a text holds the values themselves, separated by blanks

_TREES: dict[str, Tree] = {
    "sex": "Male Female",
    "race": "White Black Asian-Pac-Islander Amer-Indian-Eskimo Other",
    "marital-status": {
        "Married": "Married-civ-spouse Married-AF-spouse Married-spouse-absent Separated",
        "Not-married": "Never-married Divorced Widowed",
    },
    "education": {
        "Up-to-HS": {
            "Elementary": "Preschool 1st-4th 5th-6th 7th-8th",
            "High-school": "9th 10th 11th 12th HS-grad",
        },
        "Post-HS": {
            "College": "Some-college Assoc-voc Assoc-acdm Bachelors",
            "Graduate": "Masters Prof-school Doctorate",
        },
    },
    # The source does not explain `South`; nearly everyone there is Asian-Pac-Islander, so we read South Korea.
    "native-country": {
        "Northern-America": "United-States Canada Outlying-US(Guam-USVI-etc)",
        "Middle-America": "Mexico Guatemala El-Salvador Honduras Nicaragua",
        "Caribbean": "Puerto-Rico Cuba Dominican-Republic Haiti Jamaica Trinadad&Tobago",
        "South-America": "Columbia Ecuador Peru",
        "Western-Europe": "England Scotland Ireland France Germany Holand-Netherlands",
        "Southern-Europe": "Italy Portugal Greece",
        "Eastern-Europe": "Poland Hungary Yugoslavia",
        "East-Asia": "China Hong Taiwan Japan South",
        "South-East-Asia": "Philippines Vietnam Thailand Laos Cambodia",
        "South-Asia": "India Iran",
    },
    # `Without-pay` are people who work unpaid in a family business.
    "workclass": {
        "Company": "Private",
        "Own-business": "Self-emp-not-inc Self-emp-inc Without-pay",
        "Government": "Federal-gov State-gov Local-gov",
    },
}

QUASI = ("age", *_TREES)
"""The quasi-identifiers, in the order of Figure 7 of the l-diversity paper."""
SENSITIVE = ("occupation", "salary-class")


def rows(column: str) -> list[tuple[str, ...]]:
    """One tuple a value of the column, one entry a level, from the value itself to `*`.

    >>> rows("age")[0]
    ('17', '15-19', '10-19', '0-19', '*')
    >>> rows("workclass")[1]
    ('Self-emp-not-inc', 'Own-business', '*')
    """
    if column == "age":
        return [(str(age), *(_band(age, width) for width in BANDS), TOP) for age in AGES]
    if column not in _TREES:
        raise InputError("the demo census has no hierarchy for this column", got=column, do=nearest(column, QUASI))
    return list(_unfold(_TREES[column], (TOP,)))


def _band(age: int, width: int) -> str:
    start = age - age % width
    return f"{start}-{start + width - 1}"


def _unfold(tree: Tree, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(tree, str):
        for value in tree.split():
            yield (value, *above)
    else:
        for label, below in tree.items():
            yield from _unfold(below, (label, *above))


# -- people ------------------------------------------------------------------------------------------------------------

Value: TypeAlias = int | str
Codes: TypeAlias = NDArray[np.uint8]

COLUMNS = QUASI + SENSITIVE
SMALLEST = 5
CHUNK = 1 << 14  # rows drawn at a time: few enough to stay in the cache, and for memory to be reused (measured)
FIT_WITHIN = 1e-3  # people by which a fitted table may miss a published one, in any cell
SWEEPS = 2000


@dataclass(frozen=True)
class Network:
    """Pair counts of the same people along a graph whose columns have no, one or two parents each.

    `pairs` has each edge as (parent, column); `parents` is in the order of drawing; `rare` has the public counts of
    the values that no pair table holds.
    """

    people: int
    domains: dict[str, list[Value]]
    parents: dict[str, tuple[str, ...]]
    pairs: dict[tuple[str, str], NDArray[np.int64]]  # (values of the parent, values of the column)
    rare: dict[str, NDArray[np.int64]]  # (values,)

    def __post_init__(self) -> None:
        drawn: set[str] = set()
        for column, parents in self.parents.items():
            edges = {*((parent, column) for parent in parents), *itertools.pairwise(parents)}
            if len(parents) > 2 or not drawn.issuperset(parents) or not edges <= self.pairs.keys():
                raise InternalError(
                    f"{column} needs at most two parents, drawn before it and joined; it has {parents}."
                )
            drawn.add(column)
        for (a, b), n in self.pairs.items():
            if ((n != 0) & (n < SMALLEST)).any():
                raise InternalError(f"the table of {a} and {b} has a cell under {SMALLEST}; make the file again.")
            agrees = np.array_equal(n.sum(1), self.single(a)) and np.array_equal(n.sum(0), self.single(b))
            if not agrees or n.sum() != self.people:
                raise InternalError(f"the table of {a} and {b} counts other people than the rest; make the file again.")

    def single(self, column: str) -> NDArray[np.int64]:
        """How many of the counted people have each value: a sum of the first table that holds the column."""
        (a, _), n = next((edge, n) for edge, n in self.pairs.items() if column in edge)
        counts: NDArray[np.int64] = n.sum(axis=1 if a == column else 0)
        return counts

    def replacement(self, column: str) -> NDArray[np.float64]:
        """The chance that each rare value replaces the value drawn, so that it has its public share of the column."""
        rare = self.rare.get(column, np.zeros(len(self.domains[column]), dtype=np.int64))
        share: NDArray[np.float64] = rare / (self.people + rare.sum())
        return share


@cache
def network() -> Network:
    """The pair counts in the package."""
    stored = json.loads(files("jali.datasets").joinpath("frequencies.json").read_text(encoding="utf-8"))
    place = {c: {str(value): i for i, value in enumerate(values)} for c, values in stored["domains"].items()}
    pairs = {}
    for table in stored["pairs"]:
        a, b = table["columns"]
        pairs[a, b] = np.zeros((len(place[a]), len(place[b])), dtype=np.int64)
        for value, row in table["cells"].items():
            pairs[a, b][place[a][value]] = _counts(row, place[b])
    return Network(
        people=stored["people"],
        domains={column: stored["domains"][column] for column in COLUMNS},
        parents={column: tuple(parents) for column, parents in stored["parents"].items()},
        pairs=pairs,
        rare={column: _counts(row, place[column]) for column, row in stored["rare"].items()},
    )


def _counts(row: dict[str, Any], place: dict[str, int]) -> NDArray[np.int64]:
    counts = np.zeros(len(place), dtype=np.int64)
    for value, n in row.items():
        counts[place[value]] = n
    return counts


def require_rows(what: str, rows: int) -> int:
    """How many people to draw; an InputError where that is no number of them."""
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
        raise InputError(f"{what}: rows must be a whole number of at least 1", got=repr(rows))
    return int(rows)


def require_domain(domain: str) -> None:
    """Raise InputError for a domain that is not known."""
    if domain not in ("declared", "present"):
        raise InputError('domain must be "declared" or "present"', got=repr(domain))


def sample(rows: int, seed: int | np.random.Generator) -> dict[str, tuple[list[Value], Codes]]:
    """For each column its domain and, for each sampled row, the code of its value in the domain.

    >>> domain, codes = sample(3, seed=0)["sex"]
    >>> domain, codes.dtype, len(codes)
    (['Male', 'Female'], dtype('uint8'), 3)
    """
    if rows < 0:
        raise InputError("a sample cannot have fewer than no rows", got=f"rows={rows}", do="give rows >= 0")
    rng = np.random.default_rng(seed)
    net = network()
    codes = {column: np.empty(rows, dtype=np.uint8) for column in COLUMNS}
    for start in range(0, rows, CHUNK):
        chunk = {column: code[start : start + CHUNK] for column, code in codes.items()}  # views
        for column, urn in _urns().items():
            urn.draw(chunk[column], [chunk[parent] for parent in net.parents[column]], rng)
    for column in net.rare:
        _replace(codes[column], net.replacement(column), rng)
    return {column: (list(net.domains[column]), code) for column, code in codes.items()}


def _replace(codes: Codes, chance: NDArray[np.float64], rng: np.random.Generator) -> None:
    """Put each rare value in the place of others, with its chance, whatever else the row holds."""
    total = float(chance.sum())
    where = rng.choice(len(codes), size=rng.binomial(len(codes), total), replace=False)
    codes[where] = rng.choice(len(chance), size=len(where), p=chance / total)


@dataclass(frozen=True)
class _Urn:
    """Walker's alias tables, one for each combination of parents: two reads a draw, whatever the domain.

    Cell c = combination × size + i covers [c, c + 1): a point below `bound` is value i, one above it the alias.
    """

    size: int  # of the column's domain
    widths: tuple[int, ...]  # of the parents' domains
    bound: NDArray[np.float64]  # (combinations × size,)
    pick: Codes  # (combinations × size × 2,): the value of the cell, its alias

    def draw(self, out: Codes, parents: list[Codes], rng: np.random.Generator) -> None:
        # 24 random bits: with them the sums below are exact, so no point ever slips into the next combination.
        point = rng.random(len(out), dtype=np.float32).astype(np.float64)
        point *= self.size
        if parents:
            combination = np.zeros(len(out), dtype=np.float64)
            for parent, width in zip(parents, self.widths, strict=True):
                combination *= width
                combination += parent
            combination *= self.size
            point += combination
        cell = point.astype(np.intp)
        above = point >= self.bound.take(cell)
        cell *= 2
        cell += above
        self.pick.take(cell, out=out, mode="clip")  # every cell exists; this mode only saves a copy


@cache
def _urns() -> dict[str, _Urn]:
    """An urn for each column, in the order of drawing."""
    net = network()
    urns = {}
    for column, parents in net.parents.items():
        size = len(net.domains[column])
        tables = [_alias(weights) for weights in _joint(net, column).reshape(-1, size)]
        stay, alias = (np.concatenate(part) for part in zip(*tables, strict=True))
        cell = np.arange(len(stay))
        urns[column] = _Urn(
            size=size,
            widths=tuple(len(net.domains[parent]) for parent in parents),
            bound=cell + stay,
            pick=np.stack((cell % size, alias), axis=1).ravel().astype(np.uint8),
        )
    return urns


def _joint(net: Network, column: str) -> NDArray[np.float64]:
    """Weights of the column's values, last axis, with those of its parents."""
    match net.parents[column]:
        case ():
            return net.single(column).astype(np.float64)
        case (parent,):
            return net.pairs[parent, column].astype(np.float64)
        case (p, q):
            return fit(net.pairs[p, q], net.pairs[p, column], net.pairs[q, column])
    raise InternalError("a column has more than two parents, which its network should have refused.")


def fit(ab: NDArray[np.int64], ac: NDArray[np.int64], bc: NDArray[np.int64]) -> NDArray[np.float64]:
    """The table of largest entropy with these three pair tables, by iterative proportional fitting: (a, b, c)."""
    n = np.ones((*ab.shape, ac.shape[1]))
    for _ in range(SWEEPS):
        for axis, pair in ((2, ab), (1, ac), (0, bc)):
            now = n.sum(axis)
            n *= np.expand_dims(np.divide(pair, now, out=np.zeros_like(now), where=now > 0), axis)
        if max(abs(n.sum(2) - ab).max(), abs(n.sum(1) - ac).max()) < FIT_WITHIN:
            return n
    raise InternalError(f"three pair tables were not fitted in {SWEEPS} sweeps; do they count the same people?")


def _alias(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The chance to stay with each value, and the alias to go to otherwise, that give the weights (Vose 1991)."""
    size, total = len(weights), float(weights.sum())
    alias = np.arange(size)
    if total == 0:  # a combination of parents that nobody has is never drawn
        return np.ones(size), alias
    stay = weights * (size / total)
    poor, rich = [i for i in range(size) if stay[i] < 1], [i for i in range(size) if stay[i] >= 1]
    while poor and rich:
        i, j = poor.pop(), rich[-1]
        alias[i] = j
        stay[j] -= 1 - stay[i]
        if stay[j] < 1:
            poor.append(rich.pop())
    stay[poor + rich] = 1.0  # what is left over has a share of 1 but for rounding
    return stay, alias
