"""Judges a partitioning by Safety: each split against all other groups at once, without computing those again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali.errors import InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts, Floats, Ints
from jali.principles.safety import Safety
from jali.principles.worst_case import Buckets, least_false, of_cells, targeted
from jali.principles.worst_case_exact import MARGIN, Key, keys_of, least_ratio
from jali.search.compiled import prepare
from jali.search.mondrian_generic import Judge


class SafetyJudge:
    """Allows a split as long as all groups together are safe; equal groups are not told apart."""

    def __init__(self, safety: Safety, whole: Counts) -> None:
        from jali.search.safety_tree import empty_tree, grown, put, ratio_if

        prepare(put, "the partitioning by safety")
        self._put, self._ratio_if, self._grown = put, ratio_if, grown
        self.safety, self.k, self.bound = safety, safety.k, safety.ratio
        self.tree = empty_tree(1, self.k)
        self.rows: list[Ints] = []  # people and largest counts of each leaf
        self.leaves: dict[Key, list[int]] = {}  # of the groups that are there now
        self._enter(*self._seen(whole))

    def _seen(self, counts: Counts) -> tuple[Buckets, Floats]:
        """Groups, and their vectors: (groups, 2, k + 1)."""
        buckets = of_cells(self.safety.cells(counts), self.k + 1)
        free = least_false(buckets, self.k + 1)
        return buckets, np.ascontiguousarray(np.stack([free[:-1].T, targeted(free, buckets).T], axis=1))

    def allows(self, group: Counts, parts: Counts) -> bool:
        """Whether all groups are safe once the group is split."""
        leaf = self.leaves[keys_of(self._seen(group)[0])[0]][-1]
        buckets, vectors = self._seen(parts)
        ratio, bound = self._ratio_if(self.tree, leaf, vectors), float(self.bound)
        if abs(ratio - bound) > MARGIN * bound:
            return bool(ratio > bound)
        others = [self.rows[other] for there in self.leaves.values() for other in there if other != leaf]
        together = np.array([*others, *np.vstack([buckets.size, buckets.top]).T], dtype=np.int64)
        return least_ratio(Buckets(together[:, 0], together[:, 1:].T), self.k) > self.bound

    def commit(self, group: Counts, parts: Counts) -> None:
        """The group is gone and its parts are there."""
        key = keys_of(self._seen(group)[0])[0]
        leaf = self.leaves[key].pop()
        if not self.leaves[key]:
            del self.leaves[key]
        self._enter(*self._seen(parts), reuse=leaf)

    def _enter(self, buckets: Buckets, vectors: Floats, *, reuse: int | None = None) -> None:
        for index, key in enumerate(keys_of(buckets)):
            leaf = reuse if index == 0 and reuse is not None else len(self.rows)
            row = np.array(key, dtype=np.int64)
            if leaf == len(self.rows):
                self.rows.append(row)
            self.rows[leaf] = row
            if leaf >= len(self.tree) // 2:
                self.tree = self._grown(self.tree)
            self.leaves.setdefault(key, []).append(leaf)
            self._put(self.tree, leaf, vectors[index])


class Judges:
    """Several judges, all of whom must allow a split."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self.judges = judges

    def allows(self, group: Counts, parts: Counts) -> bool:
        """Whether every judge allows it."""
        return all(judge.allows(group, parts) for judge in self.judges)

    def commit(self, group: Counts, parts: Counts) -> None:
        """Tell every judge."""
        for judge in self.judges:
            judge.commit(group, parts)


def safeties_of(principles: Sequence[Principle]) -> list[Safety]:
    """The principles about all groups at once; partitioning knows how to judge Safety alone."""
    found = [p for p in principles if p.scope == "table"]
    for principle in found:
        if not isinstance(principle, Safety):
            raise InputError(
                f"{principle!r} cannot be partitioned: partitioning judges one sensitive column at a time",
                do="write Safety(c, k, sensitive=…) for each column, or generalize",
            )
    return [p for p in found if isinstance(p, Safety)]


def judge_of(principles: Sequence[Principle], whole: Counts) -> Judge | None:
    """The judge of the principles about all groups at once; None where there are none."""
    judges = [SafetyJudge(safety, whole) for safety in safeties_of(principles)]
    return Judges(judges) if judges else None
