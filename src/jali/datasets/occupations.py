"""A synthetic census with the domains of the experiments in the ANGEL paper, and an occupation of fifty for everyone.

The table that the paper used cannot be had. This one is invented: no person and no published figure is behind it. It
has the same attributes with as many values each (marital status 6, work class 10, education 17, gender 2, age 78,
occupation 50), skewed as such columns are, and an occupation that depends on education, gender and work class.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats
from jali.datasets.columns import require_domain, require_rows
from jali.encoding.builders import bands, suppress
from jali.encoding.hierarchy import Builder, Taxonomy
from jali.encoding.table import Column, Domain, Table
from jali.errors import InputError

__all__ = ["occupations"]

Codes: TypeAlias = NDArray[np.uint8]

AGES = np.arange(16, 94)
GENDER = ("Male", "Female")
MARITAL = {
    "With-spouse": ("Married", "Married-spouse-absent"),
    "Alone": ("Never-married", "Separated", "Divorced", "Widowed"),
}
EDUCATION = {
    "School": ("None", "Nursery", "Grade-1-4", "Grade-5-6", "Grade-7-8", "Grade-9", "Grade-10", "Grade-11"),
    "Diploma": ("Grade-12", "High-school", "Equivalency"),
    "College": ("Some-college", "Associate", "Bachelor"),
    "Graduate": ("Master", "Professional", "Doctorate"),
}
WORK = {
    "Employed": ("Company", "Non-profit"),
    "Own-business": ("Self-employed", "Incorporated", "Family-unpaid"),
    "Government": ("Federal", "State", "Local", "Armed-forces"),
    "None": ("Not-working",),
}
_WORK_SHARE = (0.66, 0.07, 0.07, 0.04, 0.004, 0.03, 0.045, 0.065, 0.006, 0.01)
_EDUCATION_SHARE = (0.9, 0.3, 0.9, 1.4, 1.6, 1.8, 2.6, 3.1, 2.2, 25, 4, 20, 8.5, 18.5, 7, 1.9, 1.3)

# Name, the education (0-16) it is most common at, how much that may vary, the share of women, how common it is, and
# the sector it leans to: c(ompany), o(wn), g(overnment).
_OCCUPATIONS = """
Cashier 9 3 .72 30 c|Retail-sales 10 3 .51 34 c|Sales-manager 12 2.5 .42 15 c|Sales-agent 13 2.5 .33 12 c
Real-estate-agent 12 2.5 .55 8 o|Receptionist 11 2.5 .91 11 c|Secretary 11 2.5 .95 27 c|Bookkeeper 12 2.5 .87 13 c
Data-clerk 11 3 .78 9 c|Mail-carrier 10 2.5 .38 6 g|Stock-clerk 9 3 .38 15 c|Dispatcher 10 2.5 .56 4 c
Office-manager 12 2.5 .68 13 c|Executive 14 2 .31 19 c|Financial-manager 14 2 .54 10 c|Accountant 13.5 1.5 .6 16 c
Programmer 13.5 1.5 .22 18 c|Network-technician 12.5 2 .2 9 c|Engineer 13.7 1.5 .13 14 c|Architect 14 1.5 .26 3 o
Scientist 15 1.5 .42 6 g|Physician 15.5 .8 .35 8 o|Dentist 15.5 .8 .27 3 o|Nurse 13 1.5 .9 25 c
Therapist 14 1.3 .74 6 c|Health-technician 12 2 .73 13 c|Nursing-aide 9 3 .89 17 c|Lawyer 15.2 .9 .33 9 o
Paralegal 12.7 2 .86 5 c|Primary-teacher 13.8 1.2 .81 24 g|Secondary-teacher 14 1.2 .56 11 g|Professor 15.6 1 .46 10 g
Librarian 14 1.5 .84 3 g|Social-worker 13.6 1.5 .79 9 g|Clergy 14 2 .16 4 c|Artist 13 2.5 .47 8 o
Police-officer 12 1.8 .14 9 g|Firefighter 11.5 2 .04 4 g|Soldier 10.5 2 .14 6 g|Security-guard 10 3 .24 9 c
Cook 7.5 3.5 .41 22 c|Waiter 9.5 3 .71 20 c|Cleaner 6 3.5 .45 28 c|Hairdresser 10 2.5 .92 8 o
Child-carer 10 3 .95 13 o|Farmer 9 3.5 .22 9 o|Carpenter 8.5 3 .02 15 o|Electrician 10 2.2 .02 9 c
Mechanic 9 3 .03 18 c|Driver 8.5 3 .1 32 c
"""
_SECTORS = {"Employed": "c", "Own-business": "o", "Government": "g"}
SKEW = 0.35  # how much a sector is preferred or avoided, as a factor


def occupations(rows: int = 300_000, seed: int | np.random.Generator = 0, *, domain: Domain = "declared") -> Table:
    """A synthetic census of people with one of fifty occupations, the sensitive column.

    >>> occupations(1000)
    Table: 1,000 rows, 1,000 people
      quasi      marital-status: text, 6 values, Hierarchy('marital-status', taxonomy(marital-status): 6 → 2 → 1 values)
      quasi      work-class: text, 10 values, Hierarchy('work-class', taxonomy(work-class): 10 → 4 → 1 values)
      quasi      education: text, 17 values, Hierarchy('education', taxonomy(education): 17 → 4 → 1 values)
      quasi      gender: text, 2 values, Hierarchy('gender', suppress(): 2 → 1 values)
      quasi      age: number, 78 values, Hierarchy('age', bands(5, 10, 20, low=16, high=93): 78 → 16 → 9 → 5 → 1 values)
      sensitive  occupation: text, 50 values
    """
    rows = require_rows("occupations", rows)
    require_domain(domain)
    try:
        random = np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError("not a seed", got=repr(seed), do="give a whole number or a numpy Generator") from None
    codes = _drawn(rows, random)
    values = {name: _values(tree) for name, tree in _TREES.items()} | {"gender": GENDER}
    quasi = [_column(name, values.get(name), codes[name]) for name in _QUASI]
    names = pa.array([name for name, *_ in _table()])
    return Table((*quasi, Column("occupation", "sensitive", names, codes["occupation"])), rows, domain=domain)


_QUASI = ("marital-status", "work-class", "education", "gender", "age")
_TREES = {"marital-status": MARITAL, "work-class": WORK, "education": EDUCATION}


def _values(tree: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(value for values in tree.values() for value in values)


def _column(name: str, values: Sequence[str] | None, codes: Codes) -> Column:
    domain = pa.array(AGES) if values is None else pa.array(values)
    return Column(name, "quasi", domain, codes, _builder(name).build(name, domain, declared=True))


def _builder(name: str) -> Builder:
    if name == "age":
        return bands(5, 10, 20, low=int(AGES[0]), high=int(AGES[-1]))
    if name == "gender":
        return suppress()
    rows = [(value, node, "*") for node, values in _TREES[name].items() for value in values]
    return Taxonomy(tuple(rows), name)


@cache
def _table() -> list[tuple[str, float, float, float, float, str]]:
    """The occupations with their figures, as written above."""
    found = []
    for entry in _OCCUPATIONS.replace("\n", "|").split("|"):
        if entry:
            name, level, spread, women, share, sector = entry.split()
            found.append((name, float(level), float(spread), float(women), float(share), sector))
    return found


def _drawn(rows: int, random: np.random.Generator) -> dict[str, Codes]:
    """The codes of each column, in the order of their dependence."""
    age = _draw(_age_share()[None, :], np.zeros(rows, dtype=np.int64), random)
    gender = (random.random(rows) < 0.49 + 0.001 * (AGES[age] - 40)).astype(np.uint8)
    marital = _draw(_marital_share(), age.astype(np.int64), random)
    education = _draw(_education_share(), age.astype(np.int64), random)
    work = _draw(_work_share(), education.astype(np.int64), random)
    both = (education.astype(np.int64) * 2 + gender) * len(_values(WORK)) + work
    return {
        "marital-status": marital,
        "work-class": work,
        "education": education,
        "gender": gender,
        "age": age,
        "occupation": _draw(_occupation_share(), both, random),
    }


def _draw(share: Floats, given: NDArray[np.int64], random: np.random.Generator) -> Codes:
    """One value for each row, by the shares of what is given: share is (conditions, values), not yet summing to 1."""
    upto = np.cumsum(share / share.sum(axis=1, keepdims=True), axis=1)
    upto[:, -1] = 1.5  # no draw is above it, whatever the rounding
    stacked = (upto + 2 * np.arange(len(upto))[:, None]).ravel()  # one sorted array: a search finds condition and value
    place = np.searchsorted(stacked, random.random(len(given)) + 2 * given, side="right")
    codes: Codes = (place - given * share.shape[1]).astype(np.uint8)
    return codes


def _age_share() -> Floats:
    """Many from 25 to 55, few above 70."""
    share: Floats = np.where(AGES < 25, 0.5 + (AGES - 16) / 18, 1.0) / (1 + np.exp((AGES - 60) / 5.5))
    return share + 0.002


def _marital_share() -> Floats:
    """The young are single, the old are widowed: (ages, statuses)."""
    married = 0.62 / (1 + np.exp(-(AGES - 27) / 3.5))
    never = 1 / (1 + np.exp((AGES - 29) / 4)) + 0.05
    divorced = 0.16 / (1 + np.exp(-(AGES - 35) / 5))
    widowed = 0.45 / (1 + np.exp(-(AGES - 74) / 6))
    return np.stack([married, 0.02 + 0 * AGES, never, 0.2 * divorced, divorced, widowed], axis=1)


def _education_share() -> Floats:
    """High school and college are common; the young have not finished, the old left earlier: (ages, educations)."""
    level = np.arange(len(_EDUCATION_SHARE))
    least = np.array([0, 4, 5, 8, 9, 11, 12, 14, 15, 16, 16, 17, 19, 21, 23, 24, 26])  # the age at which it is reached
    reached = 1 / (1 + np.exp(-(AGES[:, None] - least) / 0.7))
    earlier = np.exp(-np.clip(AGES[:, None] - 50, 0, None) * (level - 9) / 160)
    share: Floats = np.array(_EDUCATION_SHARE) * reached * earlier
    return share


def _work_share() -> Floats:
    """More of the educated work for the government or a non-profit: (educations, classes)."""
    level = np.arange(len(_EDUCATION_SHARE))[:, None]
    lean = np.array([-0.02, 0.10, -0.02, 0.06, -0.15, 0.06, 0.11, 0.09, 0.02, -0.2])
    share: Floats = np.array(_WORK_SHARE) * np.exp(lean * (level - 10))
    return share


def _occupation_share() -> Floats:
    """By education, gender and work class: (educations × genders × classes, occupations)."""
    table = _table()
    level, spread, women, common = (np.array([row[i] for row in table], dtype=np.float64) for i in (1, 2, 3, 4))
    fits = np.exp(-0.5 * ((np.arange(len(_EDUCATION_SHARE))[:, None] - level) / spread) ** 2) + 0.004
    gender = np.stack([1 - women, women])
    sectors = np.array([_SECTORS.get(node, "-") for node, values in WORK.items() for _ in values])
    own = np.array([row[5] for row in table])
    leans = np.where(own[None, :] == sectors[:, None], 1 / SKEW, SKEW)
    share: Floats = common * fits[:, None, None, :] * gender[None, :, None, :] * leans[None, None, :, :]
    return share.reshape(-1, len(table))
