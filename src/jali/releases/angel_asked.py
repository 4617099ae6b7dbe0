"""What is asked of an ANGEL release: promises that batches can keep, k, and marginals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.principles import AlphaAnonymity, KAnonymity, MultiAttribute, Safety
from jali.principles.base import Principle, whole_number
from jali.principles.column import ColumnPrinciple
from jali.releases.asked import require_two
from jali.releases.present import only_present


class Marginal(NamedTuple):
    """Some quasi-identifiers that get a table of their own."""

    columns: tuple[str, ...]
    linked: bool  # whether it names a sensitive column, and so shows batches


def prepared(table: Table) -> Table:
    """The table, one record a row, if it can be published in batches."""
    require_two(table)
    if not table.sensitive:
        raise InputError("batches need a sensitive column", do='name one: sensitive=["…"] in read or table')
    if table.person is not None:
        raise InputError("batches need one row per person", do="keep one row of each person, or generalize the table")
    others = [column.name for column in table.of_role("other")]
    if others:
        do = "leave them out: only quasi-identifiers and sensitive columns are protected in batches"
        raise InputError("an ANGEL release has no other columns", got=", ".join(others), do=do)
    table = only_present(table)
    if table.multiplicity is not None:  # rows of one record may go to different batches
        table = table.take(np.repeat(np.arange(table.records), table.multiplicity), None)
    return table


def promises_of(table: Table, required: tuple[Principle, ...], k: int | None) -> tuple[int, tuple[Principle, ...]]:
    """How many people must look alike, and the principles that batches must keep.

    k-anonymity, alone or in (α, k), is about buckets. What batches promise must also hold for every mixture of them:
    it must be about the distribution of values in a group and never be broken by merging groups, or it must be Safety
    (docs/decisions/0027).
    """
    sizes = [] if k is None else [whole_number("k", k)]
    kept: list[Principle] = []
    for principle in required:
        if isinstance(principle, KAnonymity):
            sizes.append(principle.k)
        elif isinstance(principle, AlphaAnonymity):
            sizes.append(principle.k)
            kept.append(replace(principle, k=1))
        else:
            _require_local(principle)
            kept.append(principle)
    if not kept:
        do = "promise a diversity or closeness as well, or use jali.partition for k-anonymity alone"
        raise InputError("no principle says what batches must keep about the sensitive values", do=do)
    if not sizes:
        do = "pass k=10, say; k=1 shows quasi-identifiers as they are, as jali.anatomize does"
        raise InputError("it was not said how many people must look alike", do=do)
    whole = table.frequencies.counts(np.zeros(table.frequencies.combinations, dtype=np.int64), 1)
    KAnonymity(max(sizes)).check(whole)
    return max(sizes), tuple(dict.fromkeys(kept))


def _require_local(principle: Principle) -> None:
    inner = principle.principle if isinstance(principle, MultiAttribute) else principle
    if principle.scope == "table" and not isinstance(principle, Safety):
        what = f"{principle!r} judges all groups at once, and batches are formed for one sensitive column at a time"
        raise InputError(what, do="write Safety(c, k, sensitive=…) for each column")
    if isinstance(principle, MultiAttribute) and isinstance(inner, (KAnonymity, AlphaAnonymity)):
        if isinstance(inner, AlphaAnonymity) and inner.k == 1:
            return
        raise InputError(
            f"{principle!r} counts people of a batch, and batches promise only distributions",
            do="give k as k=…, and MultiAttribute(AlphaAnonymity(alpha, 1)) for the shares",
        )
    if not isinstance(inner, ColumnPrinciple) or not principle.monotone:
        raise InputError(
            f"{principle!r} is not about the distribution of a sensitive column that mixtures of batches keep",
            do="promise a diversity or closeness; for presence choose k, or use jali.generalize",
        )


def marginals_of(table: Table, given: Iterable[Sequence[str]]) -> list[Marginal]:
    """The marginals that are asked for, each once; one of everything is the table `data`, which is there anyway."""
    quasi, sensitive = ([c.name for c in columns] for columns in (table.quasi, table.sensitive))
    found: dict[Marginal, None] = {}
    if isinstance(given, str) or not isinstance(given, Iterable):
        do = f'write marginals=[["{quasi[0]}", "{sensitive[0]}"]]'
        raise InputError("marginals are lists of columns", got=repr(given), do=do)
    for names in given:
        listed = isinstance(names, Iterable) and not isinstance(names, str)
        if not listed or not all(isinstance(name, str) for name in names):
            do = f'write [["{quasi[0]}", "{sensitive[0]}"]]'
            raise InputError("a marginal is a list of column names", got=repr(names), do=do)
        for name in names:
            if name not in quasi + sensitive:
                raise InputError(
                    f'a marginal names no column of the table: "{name}"', do=nearest(name, quasi + sensitive)
                )
        if len(set(names)) < len(names):
            raise InputError("a marginal names a column twice", got=", ".join(names))
        own = tuple(name for name in quasi if name in names)
        if not own:
            do = "name at least one quasi-identifier: the sensitive columns alone are in the table of batches"
            raise InputError("a marginal has no quasi-identifier", got=", ".join(names) or "no column", do=do)
        found[Marginal(own, any(name in sensitive for name in names))] = None
    found.pop(Marginal(tuple(quasi), linked=True), None)
    return list(found)
