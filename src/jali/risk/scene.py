"""The scene of an attack: a release, its original, and what counts as exposed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.counts import Bools, Cells, Floats, GivenCounts, Ints, Sensitive
from jali.releases.angel import Angel
from jali.releases.base import Release
from jali.releases.concealed import Concealed
from jali.releases.marginals import Marginals
from jali.releases.summary import many
from jali.risk.collected import collected_chances, collected_column, collected_place, strongest
from jali.risk.gallery import Names, value_name
from jali.risk.links import Links, links
from jali.risk.seen import TOLERANCE, Seen, by_combination


@dataclass(frozen=True, eq=False)
class Scene:
    """A release, its original, and what counts as exposed."""

    release: Release
    original: Table
    sensitive: str | None
    threshold: Fraction
    cases: int

    @cached_property
    def column(self) -> Sensitive:
        """The sensitive column that is attacked."""
        if isinstance(self.release, Marginals):
            return collected_column(self.release, self.sensitive)
        return self.cells.column

    @cached_property
    def cells(self) -> Cells:
        """People by published group and value; of ANGEL, by batch and value."""
        return self.release.counts().cells(self.sensitive, asked_by="attacks")

    @cached_property
    def several(self) -> bool:
        """Whether a person can have several rows."""
        return self.original.person is not None

    @cached_property
    def assumed(self) -> tuple[str, ...]:
        """What beliefs rest on where the release does not tell how many people have each value."""
        counts = None if isinstance(self.release, Marginals) else self.release.counts()
        bounded = isinstance(counts, GivenCounts) and self.column.name in counts.bounded
        told = "how many people have each value: as many as the rows allow were assumed, so beliefs are at most these"
        return (told,) if bounded else ()

    @cached_property
    def names(self) -> Names:
        """What groups are called."""
        return Names(self.release)

    def label(self, value: int) -> str:
        """What a value is called."""
        return value_name(self.column.labels[value])

    @cached_property
    def links(self) -> Links:
        """The groups that each combination of the original can be in."""
        return self.require_covered(links(self.release, self.own))

    def require_covered(self, found: Links) -> Links:
        """The links, or an InputError where somebody of the original is in no group."""
        if not bool((found.groups > 0).all()):
            do = "use the table that it was made from, with the same hierarchies"
            raise InputError("the release does not cover every row of this table", do=do)
        return found

    @cached_property
    def own(self) -> Table:
        """The original in the domain of the release: that of a concealed one is the public table's."""
        return self.release.widened(self.original) if isinstance(self.release, Concealed) else self.original

    @cached_property
    def truth(self) -> Cells:
        """People of the original by combination and value, the values numbered as in the release."""
        frequencies = self.original.frequencies
        counts = frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations)
        own = counts.cells(self.column.name, asked_by="attacks")
        number = self._numbers(own.column)[own.value]
        order = np.lexsort((number, own.group))
        reference = np.bincount(number, weights=own.n, minlength=len(self.column)).astype(np.int64)
        return Cells(own.groups, own.group[order], number[order], own.n[order], own.size, self.column, reference)

    @cached_property
    def entries(self) -> tuple[Ints, Ints, Ints, Ints | None]:
        """The original's combinations and values, the people of each entry, and the person where people are named."""
        frequencies = self.original.frequencies
        counts = frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations)
        at = [column.name for column in counts.sensitive].index(self.column.name)
        value = self._numbers(counts.sensitive[at])[counts.joint[counts.value, at]]
        return counts.group, value, counts.n, counts.person

    def _numbers(self, own: Sensitive) -> Ints:
        """The release's number of each value of the original's column; InputError where one is not in the release."""
        place = {label: number for number, label in enumerate(self.column.labels)}
        number = np.array([place.get(label, -1) for label in own.labels], dtype=np.int64)
        joint = self.original.frequencies.counts(np.zeros(self.original.frequencies.combinations, dtype=np.int64))
        if bool((number[np.unique(joint.cells(own.name).value)] < 0).any()):
            do = "use the table that it was made from"
            raise InputError(f'values of "{own.name}" in this table are not in the release', do=do)
        return number

    @cached_property
    def seen(self) -> Seen:
        """What the attacker who knows where somebody stands believes, and what is true."""
        if isinstance(self.release, Marginals):
            chances = collected_chances(self.release, self.original, self.column.name)
            return by_combination(chances, self.truth, collected_place(self.release, self.original))
        if isinstance(self.release, Angel):
            return by_combination(self.links.chances(self.cells), self.truth, self._buckets)
        cells, holders = self.cells, self._holders() if self.several else None
        return Seen(
            cells.group, cells.value, cells.n / cells.size[cells.group], cells.n, cells.size, self.original.people,
            "groups", self._group, holders,
        )  # fmt: skip

    @cached_property
    def homogeneous(self) -> Seen:
        """The same for who looks at one table at a time: the strongest marginal, not all of them together."""
        if not isinstance(self.release, Marginals):
            return self.seen
        return by_combination(strongest(self.release, self.original, self.column), self.truth, self.seen.place)

    def _group(self, group: int) -> str:
        return f"{self.names(group)} ({many(int(self.cells.size[group]), 'person', 'people')})"

    def _buckets(self, combination: int) -> str:
        """What somebody of an ANGEL release is found in: so many rows with so many batches between them."""
        rows, batches = int(self.links.matched[combination]), int(self.links.groups[combination])
        return f"a bucket of {many(rows, 'person', 'people')} in {many(batches, 'batch', 'batches')}"

    def _holders(self) -> tuple[Ints, ...]:
        """The people of each published group and value, as the original has them."""
        cells, (combination, value, _, person) = self.cells, self.entries
        assert person is not None
        width = len(cells.column)
        key = self.links.only[combination] * width + value
        order = np.argsort(key, kind="stable")
        wanted = cells.group * width + cells.value
        begin, end = (np.searchsorted(key[order], wanted, side=side) for side in ("left", "right"))
        people = person[order]
        return tuple(np.unique(people[a:b]) for a, b in zip(begin.tolist(), end.tolist(), strict=True))

    def sure(self, share: Floats) -> Bools:
        """Whether beliefs reach the threshold."""
        return np.asarray(share >= float(self.threshold) * (1 - TOLERANCE), dtype=bool)
