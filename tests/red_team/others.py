"""What attackers learn about whom nothing is promised: two releases of one table, and a classifier on a real one."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np

import jali
from jali.core.arrays import Ints
from jali.principles.base import Principle
from jali.search.halves import People, halve
from jali.search.items import columns_of, items_of
from jali.search.mondrian import mondrian
from red_team.attackers import Learner, linked, logistic, naive_bayes
from red_team.cases import drawn
from red_team.pairs import PAIRS

LINKED = tuple(principle for method, principle in PAIRS if method == "partition")
SEVERAL = ("principle", "tables", "promise broken", "belief above every published share", "most above")
CLASSIFIED = ("table", "release", "groups", "their most frequent values", "naive Bayes", "logistic")
ADULT = ["age", "workclass", "education", "marital-status", "race"]


def several(principle: str, seed: int, tables: int) -> list[str]:
    """Two releases by halves of each table, with independent bits: how often they tell more together."""
    broken = above = 0
    most = Fraction(0)
    for number in range(tables):
        rng = np.random.default_rng([seed, number])
        one = linked(drawn(rng, principle), rng)
        broken += one.is_broken
        above += one.belief > one.published
        most = max(most, one.belief - one.published)
    return [principle, f"{tables:,}", f"{broken:,}", f"{above:,}", str(most)]


def classified() -> list[list[str]]:
    """The share of people whose value a classifier guesses that was trained on a release of their table."""
    tables = {"occupations, 20,000": jali.datasets.occupations(20_000)}
    if os.environ.get("JALI_ADULT"):
        tables["Adult, 45,222"] = jali.datasets.adult(quasi=ADULT, sensitive=["occupation"])
    asked = (jali.KAnonymity(6), jali.EntropyDiversity(6))
    return [_row(name, release, table, group)
            for name, table in tables.items()
            for release, group in _released(table, asked).items()]  # fmt: skip


def _released(table: Any, asked: tuple[Principle, ...]) -> dict[str, Ints]:
    """The group of each record in the table itself, in a plain partition and by equal halves."""
    boxes = mondrian(table, asked).group
    assert boxes is not None  # strict
    items = items_of(table, "relaxed")
    order = np.argsort(items.record)
    rng = np.random.default_rng(0)
    people = People(items.combination[order], items.value[order], items.whole)
    bits = {name: rng.permutation(table.records) for name in ("drawn", "ties")}
    return {
        "none: the table itself": np.arange(table.records),
        "plain partition": boxes[table.frequencies.row_combination],
        "equal halves": halve(columns_of(table), people, asked, **bits).group,
    }


def _row(name: str, release: str, table: Any, group: Ints) -> list[str]:
    value = table.sensitive[0].codes.astype(np.int64)
    place = np.stack([column.codes.astype(np.int64) for column in table.quasi])
    groups = int(group.max()) + 1
    count = np.zeros((groups, int(value.max()) + 1))
    np.add.at(count, (group, value), 1)
    share = count / count.sum(axis=1, keepdims=True)
    learners: tuple[Learner, ...] = (naive_bayes, logistic)
    right = [float((learner(place, group, share) == value).mean()) for learner in learners]
    allowed = "" if groups == table.records else f"{count.max(axis=1).sum() / len(value):.1%}"
    return [name, release, f"{groups:,}", allowed, *(f"{share:.1%}" for share in right)]
