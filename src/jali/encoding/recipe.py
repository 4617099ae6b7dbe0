"""Recipe: which builder made a hierarchy, and with which arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

Family = Literal["bands", "mask", "dates", "suppress", "taxonomy"]
FAMILIES: tuple[Family, ...] = get_args(Family)
WITHOUT_ARGUMENTS: tuple[Family, ...] = ("mask", "dates", "suppress")
_BANDS = re.compile(
    r"bands\(([^=]+?)" + "".join(rf"(?:, {name}=([^,=]+))?" for name in ("origin", "low", "high")) + r"\)"
)


@dataclass(frozen=True)
class Recipe:
    """A builder and its arguments, as a value; its text, `bands(5, 10, 20)`, is what people read."""

    family: Family
    widths: tuple[Fraction, ...] = ()  # of bands
    origin: Fraction = Fraction(0)  # of bands
    low: Fraction | None = None  # of bands
    high: Fraction | None = None  # of bands
    source: str | None = None  # of a taxonomy: the name of its file; never published

    def __str__(self) -> str:
        if self.family == "taxonomy":
            return "taxonomy" if self.source is None else f"taxonomy({self.source})"
        named = (("origin", self.origin or None), ("low", self.low), ("high", self.high))
        options = [f"{name}={plain(number)}" for name, number in named if number is not None]
        return f"{self.family}({', '.join([*map(plain, self.widths), *options])})"

    @classmethod
    def read(cls, text: str) -> Recipe | None:
        """The recipe that a manifest names; None for an empty text, a ValueError for any other that is no recipe.

        >>> Recipe.read("bands(5, 10, low=0.5)") == Recipe("bands", (Fraction(5), Fraction(10)), low=Fraction(1, 2))
        True
        """
        if not text:
            return None
        known = {str(recipe): recipe for recipe in (cls(family) for family in (*WITHOUT_ARGUMENTS, "taxonomy"))}
        if text in known:
            return known[text]
        if (call := _BANDS.fullmatch(text)) is None:
            raise ValueError("no hierarchy is made like this")
        widths, origin, low, high = call.groups()
        low, high = (None if bound is None else Fraction(bound) for bound in (low, high))
        return cls("bands", tuple(map(Fraction, widths.split(", "))), Fraction(origin or 0), low, high)


def plain(number: Fraction) -> str:
    """A number as people write it: 5, 0.25."""
    return str(number.numerator) if number.denominator == 1 else repr(float(number))
