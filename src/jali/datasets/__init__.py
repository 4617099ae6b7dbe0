"""Tables to try jali on: a synthetic census, and the real Adult table where you have it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.datasets.columns import AGES, BANDS, QUASI, SENSITIVE, Value, require_domain, require_rows, sample
from jali.datasets.columns import rows as hierarchy_rows
from jali.datasets.occupations import occupations
from jali.encoding.builders import bands, suppress
from jali.encoding.hierarchy import Builder, Taxonomy
from jali.encoding.table import Column, Domain, Role, Table
from jali.errors import InputError, nearest
from jali.sources.tables import read

__all__ = ["adult", "census", "occupations"]

Labels = Literal["right", "paper"]

ROWS = 45_222
FIRST_FILE = 30_162
"""Rows of the Adult table that come from the first of its two files."""
HOW = (
    'get "Adult" from the UCI Machine Learning Repository, put adult.data and then adult.test into one CSV file '
    "without the rows that have a missing value (?) and without blanks around values, with the header age, workclass, "
    "fnlwgt, education, education-num, marital-status, occupation, relationship, race, sex, capital-gain, "
    "capital-loss, hours-per-week, native-country, salary-class; then pass its path or set JALI_ADULT to it"
)


def census(
    rows: int = ROWS,
    seed: int | np.random.Generator = 0,
    sensitive: Iterable[str] = ("occupation",),
    *,
    quasi: Iterable[str] | None = None,
    domain: Domain = "declared",
) -> Table:
    """A synthetic census: people nobody knows, drawn from public low-order frequencies of UCI Adult.

    `sensitive` is "occupation", "salary-class" or both; `quasi` a choice of the other columns, in the order wanted
    (a sensitive column that is not named as such may be among them). The same rows and seed give the same table.

    >>> census(1000, sensitive=["salary-class"], quasi=["sex", "age"])
    Table: 1,000 rows, 1,000 people
      quasi      sex: text, 2 values, Hierarchy('sex', taxonomy(sex): 2 → 1 values)
      quasi      age: number, 74 values, Hierarchy('age', bands(5, 10, 20, low=17, high=90): 74 → 16 → 9 → 5 → 1 values)
      sensitive  salary-class: text, 2 values
    """
    roles = _roles(quasi, sensitive)
    require_domain(domain)
    rows = require_rows("census", rows)
    drawn = sample(rows, seed)
    return Table(tuple(_column(name, role, *drawn[name]) for name, role in roles.items()), rows, domain=domain)


def adult(
    path: str | Path | None = None,
    *,
    quasi: Iterable[str] | None = None,
    sensitive: Iterable[str] = ("occupation",),
    labels: Labels = "right",
    domain: Domain = "declared",
) -> Table:
    """The real UCI Adult table (45,222 people), from a path or from the environment variable JALI_ADULT.

    Columns and hierarchies are those of `census`. `labels="paper"` reads the salary classes as the l-diversity paper
    did: the second file writes `>50K.` with a dot, and those people were taken for `<=50K`, so that 7,508 people are
    above 50K instead of 11,208.
    """
    roles = _roles(quasi, sensitive)
    require_domain(domain)
    if labels not in ("right", "paper"):
        raise InputError('labels must be "right" or "paper"', got=repr(labels))
    table = _read(_path(path), roles, domain)
    if labels == "paper" and table.rows != ROWS:
        raise InputError(
            f'labels="paper" needs all {ROWS:,} rows in their order, those of adult.test last',
            got=f"{table.rows:,} rows",
            do=HOW,
        )
    found = {name: table[name] for name in roles}
    for name in (name for name, role in roles.items() if role == "sensitive"):
        found[name] = replace(found[name], role="sensitive", hierarchy=None, judges_groups=False)
    if "salary-class" in found:
        found["salary-class"] = _salary(found["salary-class"], labels)
    return replace(table, columns=tuple(found.values()))


def _roles(quasi: Iterable[str] | None, sensitive: Iterable[str]) -> dict[str, Role]:
    """Each named column with its role, quasi-identifiers first, in the caller's order."""
    for role, given in (("quasi", quasi), ("sensitive", sensitive)):
        if isinstance(given, str):
            raise InputError(f"{role} must be a list of column names", got=f'"{given}"', do=f'write {role}=["{given}"]')
    named: list[tuple[str, Role]] = [(name, "quasi") for name in (QUASI if quasi is None else quasi)]
    named += [(name, "sensitive") for name in sensitive]
    roles: dict[str, Role] = {}
    for name, role in named:
        known = SENSITIVE if role == "sensitive" else QUASI + SENSITIVE
        if name not in known:
            raise InputError(f'{role}: no such column "{name}"', do=nearest(str(name), known))
        if name in roles:
            twice = f"twice as {role}" if roles[name] == role else f"as {roles[name]} and as {role}"
            raise InputError(f'column "{name}" is named {twice}', do="name each column once")
        roles[name] = role
    return roles


def _builder(name: str) -> Builder:
    """The hierarchy of a column, over its whole domain; the bands of age are those of `columns`."""
    if name == "age":
        return bands(*BANDS, low=AGES[0], high=AGES[-1])
    return Taxonomy(tuple(hierarchy_rows(name)), name) if name in QUASI else suppress()


def _column(name: str, role: Role, domain: list[Value], codes: NDArray[np.uint8]) -> Column:
    values = pa.array(domain)
    if role == "sensitive":
        return Column(name, role, values, codes)
    return Column(name, role, values, codes, _builder(name).build(name, values, declared=True))


def _path(path: str | Path | None) -> Path:
    given = path or os.environ.get("JALI_ADULT")
    if not given:
        raise InputError("the Adult table is not part of jali, and JALI_ADULT does not name it", do=HOW)
    if not Path(given).is_file():
        where = "" if path else "JALI_ADULT: "
        raise InputError(f"{where}there is no file {given}", do=HOW)
    return Path(given)


def _read(path: Path, roles: dict[str, Role], domain: Domain) -> Table:
    """The named columns, all as quasi-identifiers, since those have hierarchies that say what may stand in them."""
    try:
        return read(path, quasi={name: _builder(name) for name in roles}, domain=domain)
    except InputError as problem:
        what = f"{path} is not the Adult table that jali expects: {problem.what}"
        raise InputError(what, got=problem.got, do=HOW, value=problem.value) from None


def _salary(column: Column, labels: Labels) -> Column:
    """The two salary classes: with a dot or without, or as the paper read them."""
    classes = pa.array(["<=50K", ">50K"])
    texts = column.labels.to_pylist()
    if not {str(text).removesuffix(".") for text in texts} <= {"<=50K", ">50K"}:
        raise InputError("salary-class has values other than <=50K and >50K", do=HOW)
    above = np.array([str(text).startswith(">") for text in texts])[column.codes]
    if labels == "paper":
        above[FIRST_FILE:] = False
    hierarchy = None if column.hierarchy is None else suppress().build(column.name, classes, declared=True)
    return replace(column, values=classes, codes=above.astype(np.uint8), hierarchy=hierarchy)
