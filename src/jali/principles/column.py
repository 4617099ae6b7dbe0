"""ColumnPrinciple: what all principles about the values of one sensitive column share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from jali.errors import InputError
from jali.principles.base import Principle
from jali.principles.counts import Bools, Cells, Counts, Sensitive
from jali.principles.parameters import Label


class ColumnPrinciple(Principle):
    """Judges the values of one sensitive column; `sensitive` names it, None means the only one there is."""

    label_fields: ClassVar[tuple[str, ...]] = ()  # parameters that name values of the column
    sensitive: str | None

    def cells(self, counts: Counts) -> Cells:
        """Groups × values of the column that is judged."""
        return counts.cells(self.sensitive, asked_by=type(self).__name__)

    def check(self, whole: Counts) -> None:
        column = whole.column(self.sensitive, asked_by=repr(self))
        self.check_labels((column,))
        self.check_column(column, whole)

    def check_labels(self, columns: Sequence[Sensitive]) -> None:
        """Raise InputError when a value that a parameter names is in none of the columns.

        The message gives back only what the caller wrote: the values of the table stay in the table.
        """
        for parameter in self.label_fields:
            for label in getattr(self, parameter):
                if not any(label in column.labels for column in columns):
                    named = "the missing value" if label is None else f'"{label}"'
                    where = " or ".join(f'"{column.name}"' for column in columns)
                    raise InputError(
                        f"{parameter} of {type(self).__name__} names {named}, which is no value of {where}",
                        do="write the value as it stands in the table, None for a missing one",
                    )

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        """Raise InputError when the other parameters make no sense for this column."""

    def subject(self, fallback: str = "sensitive value") -> str:
        """What a promise calls the values: by the column's name where that is known."""
        return self.sensitive or fallback


def mask(column: Sensitive, labels: tuple[Label, ...]) -> Bools:
    """Which values of a column are named; names of other columns are passed over: (values,)."""
    named = np.zeros(len(column), dtype=bool)
    named[[column.labels.index(label) for label in labels if label in column.labels]] = True
    return named


def check_values(column: Sensitive, name: str, least: object, exactly: Fraction) -> None:
    """Raise InputError when more values are asked for than the column has."""
    if exactly > len(column):
        values = f"{len(column)} value{'' if len(column) == 1 else 's'}"
        raise InputError(
            f'{name} = {least} is larger than the number of values of "{column.name}" ({values})',
            do=f"choose {name} of at most {len(column)}",
        )


def check_people(name: str, least: int, whole: Counts) -> None:
    """Raise InputError when a group would need more people than the whole table has."""
    people = int(whole.size.sum())
    if least > people:
        counted = f"{people} {'person' if people == 1 else 'people'}"
        do = f"choose {name} of at most {people}"
        raise InputError(f"{name} = {least} is larger than the table ({counted})", do=do)


def short_of(level: float, bound: float) -> str:
    """A level that misses its bound, with as many digits as it takes to see that it does.

    >>> short_of(10.5669, 12), short_of(10.5669, 10.57)
    ('10.57', '10.567')
    """
    for digits in range(4, 17):
        text = f"{level:.{digits}g}"
        if (float(text) < bound) == (level < bound):
            return text
    return repr(level)
