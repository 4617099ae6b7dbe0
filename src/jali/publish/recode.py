"""recode: local recoding of a table."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np

from jali.core.progress import Step, watched
from jali.encoding.table import Table
from jali.errors import InputError, nearest, one_of, told
from jali.principles.base import principles_of
from jali.publish.checks import budget_of, only_present, require_table, require_two
from jali.publish.partition import of_groups
from jali.releases.display import Show
from jali.releases.generalized import KNOWN_ALGORITHM, Recoded, Requirement
from jali.releases.pdf import Start, shift_of
from jali.search.recode.plan import PEELS, SHOWS
from jali.search.recode.recode import Objective, Peel, RecodeShow, recode_groups


def recode(
    table: Table,
    principles: Requirement,
    *,
    objective: Objective = "kl",
    peel: Peel = "size",
    show: RecodeShow | Literal["pdf"] = "taxonomy",
    towards: float | Fraction | None = None,
    start: Start = "taxonomy",
    suppress: float = 0.0,
    on_step: Step | None = None,
) -> Recoded:
    """Group people who already share their values first, and the rest at the least cost: local recoding, as a release.

    `objective` is what is kept best: "kl" or "granularity". With `peel="size"` who is grouped first depends on sizes
    alone; `peel="principle"` keeps more detail but tells whoever knows the algorithm which classes failed. `show` is
    "taxonomy" (the smallest node that covers a group), "set" (its values) or "pdf" (their distribution, for which the
    groups are sought as for sets; `towards` and `start` as in `partition`).
    `suppress` is the share of rows that may be suppressed (shown as `*`), where that serves the objective; who comes
    first depends on sizes alone.
    """
    require_table("recode", table)
    required = principles_of(principles)
    budget = int(budget_of(suppress) * table.rows)
    require_two(table)
    table = only_present(table)
    if not isinstance(show, str):
        got = f"show={told(show)!r}"
        raise InputError("recode shows all columns alike", got=got, do='give one display: show="pdf"')
    if show not in (*SHOWS, "pdf"):
        raise InputError(f'no show "{show}"', do=nearest(str(show), (*SHOWS, "pdf")))
    shift = shift_of({"": show}, towards, start)
    sought: RecodeShow = "set" if show == "pdf" else show
    shows: dict[str, Show] = dict.fromkeys((column.name for column in table.quasi), show)
    method: dict[str, Any] = {
        "name": "recode", "objective": objective, "peel": peel, "show": shows, "suppress": str(suppress),
        "known_algorithm": KNOWN_ALGORITHM[peel] if one_of(peel, PEELS) else "",
    }  # fmt: skip
    method |= shift.to_dict() if show == "pdf" else {}

    with watched("recoding", on_step) as step:

        def made(budget: int) -> Recoded:
            found = recode_groups(
                table, required, objective=objective, show=sought, peel=peel, budget=budget, on_step=step
            )
            groups = found.groups - found.suppressed
            group = found.group[table.frequencies.row_combination]
            group = np.where(group < groups, group, -1)
            release = of_groups(Recoded, table, group, groups, required, method=method, shows=shows, shift=shift)
            release.search = {"checked": found.checked}
            return release

        release = made(0)
        if budget:
            other = made(budget)  # the search reckons KL as if boxes did not overlap: the releases say what it is
            if objective == "granularity" or other.manifest.metrics["kl"] < release.manifest.metrics["kl"]:
                release = other
    return release
