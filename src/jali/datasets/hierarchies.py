"""Hierarchies of the seven quasi-identifiers of the demo census, one row a value.

Those of age, sex, race, marital-status and education are the ones of the tables in the l-diversity paper (the names
of the levels are ours); those of native-country and workclass are our own. All levels together span
5 × 2 × 2 × 3 × 4 × 3 × 3 = 2,160 full-domain recodings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from jali.errors import InputError, nearest

__all__ = ["AGES", "COLUMNS", "TOP", "rows"]

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

COLUMNS = ("age", *_TREES)


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
        raise InputError("the demo census has no hierarchy for this column", got=column, do=nearest(column, COLUMNS))
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
