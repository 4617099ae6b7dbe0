"""What an analyst keeps: rules and predictions from reconstructions, beside those from the original."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.estimates.boxes import BoxColumn, BoxEstimate
from jali.estimates.cover import Cover
from jali.principles.counts import Ints
from jali.releases.generalized import Generalized
from jali.utility.classify import classified, require_classifier
from jali.utility.rules import rule_errors, share_of


@dataclass(frozen=True, eq=False)
class Asked:
    """What a caller of `measure` wants to know about rules and classes, checked."""

    columns: tuple[str, ...]  # among which rules are mined
    rules: bool
    classify: str | None
    holdout: Table | None
    support: float
    confidence: float
    seeds: int

    @classmethod
    def of(
        cls, original: Table, rules: bool | Sequence[str], classify: str | None, holdout: Table | None,
        *, support: float, confidence: float, seeds: int,
    ) -> Asked | None:  # fmt: skip
        """None where nothing of the sort is asked."""
        published = [column.name for column in original.columns if column.role != "other"]
        if isinstance(rules, str) or not isinstance(rules, (bool, Iterable)):
            do = f'write rules=["{rules}"]' if isinstance(rules, str) else "write rules=True for all columns"
            raise InputError("rules must be True, False or a list of column names", got=repr(rules), do=do)
        listed = published if isinstance(rules, bool) else list(rules)
        if not listed:
            raise InputError("rules names no column", do="write rules=True for all columns")
        for what, name in [("rules", name) for name in listed] + [("classify", classify)] * (classify is not None):
            if name not in published:
                raise InputError(f'{what}: no column "{name}" was published', do=nearest(str(name), published))
        if holdout is not None and classify is None:
            raise InputError("holdout is for classify", do='name the column: classify="…"')
        if rules is False and classify is None:
            return None
        share_of("support", support), share_of("confidence", confidence)
        if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1 + (classify is not None):
            least = 1 + (classify is not None)
            raise InputError(f"seeds must be a whole number, at least {least}", got=repr(seeds))
        if holdout is not None and not isinstance(holdout, Table):
            raise InputError("holdout must be a jali table", do="use jali.read or jali.table")
        if classify is not None:
            require_classifier()
        columns = tuple(name for name in published if name in listed)
        return cls(columns, rules is not False, classify, holdout, support, confidence, seeds)

    def answers(self, release: Generalized, original: Table, covers: Mapping[str, Cover]) -> dict[str, Any]:
        """The fields of Measures that were asked for."""
        own = original.frame("arrow")
        drawn = reconstructions(release, original, covers, seeds=self.seeds)
        found: dict[str, Any] = {}
        if self.rules:
            some = [one.select(self.columns) for one in drawn]
            found["rules"] = rule_errors(
                own.select(self.columns), some, support=self.support, confidence=self.confidence
            )
        if self.classify is not None:
            names = list(dict.fromkeys([*self.columns, self.classify]))
            some = [one.select(names) for one in drawn]
            found["class_rules"] = rule_errors(
                own.select(names), some, support=self.support, confidence=self.confidence, then=self.classify
            )
            found["classified"] = classified(
                drawn, original, self.classify,
                names=[c.name for c in original.columns if c.role != "other" and c.name != self.classify],
                holdout=self.holdout, in_order=_places(release, original) is not None,
            )  # fmt: skip
        return found


def reconstructions(
    release: Generalized, original: Table, covers: Mapping[str, Cover], *, seeds: int
) -> list[pa.Table]:
    """One value for every published cell, with seeds 0, 1, …: the same whenever it is asked.

    The rows stand in the order of the original's where a fresh release knows it, else sorted by what they show: not as
    they were published, since that order is different each time.
    """
    told = [column for column in release.columns if column.role != "other"]
    places = _places(release, original)
    order = np.lexsort([column.codes for column in told]) if places is None else places
    columns = [BoxColumn(c.name, c.kind, c.role, covers.get(c.name, c.cover), c.codes[order]) for c in told]
    estimate = BoxEstimate.from_rows(columns)
    return [estimate.sample(None, seed=seed) for seed in range(seeds)]


def _places(release: Generalized, original: Table) -> Ints | None:
    """The published row of each of the original's, where that is known one by one."""
    known = release._places is not None and len(release._places) == original.records and original.multiplicity is None
    return release._places if known else None
