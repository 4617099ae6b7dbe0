"""δ-presence: a public table does not show too surely who of it is in a private one, nor who is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError
from jali.principles.base import at_most, exact, show
from jali.principles.column import ColumnPrinciple, Number, number, part
from jali.principles.counts import Counts
from jali.principles.rules import LARGEST, Rule

PRESENCE = "\x1fpresence"
"""The column of a public table that says who is in the private one: no file can have a column of this name."""
ABSENT, PRESENT = "absent", "present"


@dataclass(frozen=True)
class DeltaPresence(ColumnPrinciple):
    """In every group of the public table the share that is in the private one is from `low` to `high`, both included.

    low ≤ present / size ≤ high. Nergiz, Atzori and Clifton 2007; Definition 3 of the pdf-generalization paper.
    Level: that share. A group with nobody present reaches 0. `jali.conceal` keeps it.
    """

    title: ClassVar[str] = "delta-presence"
    deals: ClassVar[bool] = False
    low: Number
    high: Number
    _: KW_ONLY
    sensitive: str | None = PRESENCE

    def __post_init__(self) -> None:
        words = "a share from 0 to 1"
        for name, example in (("low", "0.01"), ("high", "0.6")):
            given = number(name, getattr(self, name), words, lambda share: 0 <= share <= 1, example=example)
            object.__setattr__(self, name, given)
        if self.exact_low > self.exact_high:
            raise InputError("low must not be above high", got=f"low={self.low}, high={self.high}", do="swap them")

    @property
    def exact_low(self) -> Fraction:
        """The lower bound as it was written."""
        return exact("low", self.low)

    @property
    def exact_high(self) -> Fraction:
        """The upper bound as it was written."""
        return exact("high", self.high)

    def present(self, counts: Counts) -> Ints:
        """How many of each group are in the private table: (groups,)."""
        cells = self.cells(counts)
        return cells.add(cells.n * (cells.value == cells.column.labels.index(PRESENT)))

    def level(self, counts: Counts) -> Floats:
        return np.where(counts.size > 0, self.present(counts) / np.maximum(counts.size, 1), np.nan)

    def judge(self, counts: Counts) -> Bools:
        present = self.present(counts)
        absent = counts.size - present
        return at_most(present, self.exact_high, counts.size) & at_most(absent, 1 - self.exact_low, counts.size)

    def worst(self, counts: Counts) -> float:
        """The share that is furthest outside the bounds; the largest where all are inside."""
        level = self.level(counts)[counts.size > 0]
        if len(level) == 0:
            return float("nan")
        low, high = float(level.min()), float(level.max())
        return low if float(self.low) - low > max(high - float(self.high), 0.0) else high

    @property
    def bound(self) -> str:
        return f"({self.low}, {self.high})"

    def promise(self) -> str:
        low, high = part(self.exact_low), part(self.exact_high)
        return (
            f"whoever holds the public table finds each person of it in this one with a probability of {low} to {high}"
        )

    def check(self, whole: Counts) -> None:
        self.require_column(whole)

    def require_column(self, whole: Counts) -> None:
        names = [column.name for column in whole.sensitive]
        if self.sensitive != PRESENCE or PRESENCE not in names:
            raise InputError(
                "DeltaPresence is about a private table and the public one around it",
                do="use jali.conceal(private, public, low=…, high=…)",
            )

    def rules(self, whole: Counts) -> Sequence[Rule]:
        return [
            Rule(LARGEST, self.exact_high, named=(PRESENT,)),
            Rule(LARGEST, 1 - self.exact_low, named=(ABSENT,)),
        ]

    def least_size(self) -> int:
        if self.exact_low == 0 or self.exact_high == 0:
            return 1
        return -(-self.exact_high.denominator // self.exact_high.numerator)

    def shortfall(self, whole: Counts) -> str:
        share = show(self.worst(whole))
        return f"delta-presence {self.bound} cannot be met: of the whole public table a share of {share} is present"
