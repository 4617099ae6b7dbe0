"""Who is suppressed where groups are boxes: the classes that stand out most, by quasi-identifiers and sizes alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from jali.principles.counts import Bools
from jali.search.suppress import first_union_that_holds

if TYPE_CHECKING:
    from jali.search.recode_search import Search


def standouts(search: Search, budget: int) -> Iterator[Bools]:
    """Combinations to suppress together, within a budget of rows: a few candidates, each of which keeps every promise.

    Classes are made from quasi-identifiers and sizes alone, and ranked by what their boxes cost a row: the dearest
    first, of equal ones the smallest. Suppressed are the first of them, up to a half, a quarter, an eighth … of all
    rows; where they break a promise together the next ones join, as long as the budget lasts, until they keep it. So
    the promises decide how many are suppressed, never who comes before whom. Fewer come first, and a larger budget only
    adds candidates.
    """
    if budget < 1:
        return
    group, groups = search.classes(search.least)
    rows, cost = search.row_costs(group, groups)
    order = np.lexsort((np.arange(groups), rows, -np.round(cost, 9)))
    order = order[cost[order] > 0]
    upto = np.cumsum(rows[order])
    last = int(np.searchsorted(upto, budget, side="right"))
    counts, done = search.counts(group, groups), 0
    for halvings in range(int(rows.sum()).bit_length(), 0, -1):
        most = int(rows.sum()) >> halvings
        first = int(np.searchsorted(upto, most, side="right"))
        if most > budget:
            return
        if first <= done:
            continue
        more = first_union_that_holds(search.principles, counts, order[:first], order[first:last])
        if more is None:
            return
        done = first + more
        hidden: Bools = np.isin(group, order[:done])
        if not hidden.all() and bool(search.without(hidden).together().all()):
            yield hidden
