"""Concealed releases: the rows of a private table, shown so that nobody can tell too surely who of a public one it has.

Groups are groups of the public table: every cell follows from the public table and, where distributions are shown,
from the private frequencies of its group. Nothing is drawn tight around the private rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Bools, combine, counted
from jali.core.rows import Rows
from jali.core.spill import Written
from jali.encoding import values as v
from jali.encoding.large import LargeTable
from jali.encoding.table import Column, Table
from jali.errors import InputError, InternalError
from jali.principles.anonymity import DeltaPresence
from jali.releases.base import Bound, Reading
from jali.releases.generalized import Generalized, require_jali_table
from jali.releases.presence import Parts, Presence, presence_in_parts
from jali.releases.summary import HOLDER, NOT_COVERED, OF_THE_PRESENT, beyond
from jali.search.screen import Framed, framed

KNOWN_ALGORITHM: dict[bool, str] = {
    False: "whoever knows the algorithm learns that no finer groups kept the bounds, and of a lattice that no other "
    "such groups tell more of the private rows",
    True: "whoever knows the algorithm can often work out how far a group was shifted, and from that the frequencies "
    "of its private rows, which say more than the distributions (reversibility)",
}
"""What the algorithm gives away, without and with shifted distributions; saved with the release."""
TRANSPARENT = "an attacker who takes some people of the public table for likelier than others beforehand"
"""What a transparent release does not cover (decision 45)."""


@dataclass(frozen=True, eq=False)
class Widened(Column):
    """A private column in a larger domain: what counts as occurring are the values that the cells may be about."""

    occurring: Bools = field(kw_only=True)  # (values,)

    @cached_property
    def present(self) -> Bools:
        return self.occurring


class Concealed(Generalized):
    """A table of private rows whose groups are groups of a public table."""

    kind: ClassVar[str] = "concealed"
    against: ClassVar[str] = HOLDER
    hides_presence: ClassVar[bool] = True
    needs_hierarchies: ClassVar[bool] = True
    _public: Table | None = None  # in memory only
    parts: Parts | None = None  # the groups of a transparent release

    def beside(self, public: Table) -> Self:
        """The same release, with the public table to judge it by at hand; that is never saved."""
        made = object.__new__(type(self))  # not copy.copy, which leaves out what is not pickled
        made.__dict__.update(self.__dict__)
        made._public = require_jali_table("public", public)
        return made

    @cached_property
    def counted_tables(self) -> dict[str, Written]:
        """The published table; of a transparent release also its groups, with the people that each has."""
        groups = {} if self.parts is None else {"groups": Rows(self.parts.table(self.of_role("quasi")))}
        return {**super().counted_tables, **groups}

    @classmethod
    def from_tables(cls, tables: Mapping[str, Rows], manifest: Mapping[str, Any]) -> Self:
        """The release that was saved as these tables."""
        made = super().from_tables(tables, manifest)
        if manifest["method"].get("transparent"):
            made.parts = Parts.of(tables["groups"].plain(), made.of_role("quasi"))
            made._require_rows(made.parts)
        return made

    def _require_rows(self, parts: Parts) -> None:
        """Raise ValueError where the groups do not have the rows that are published with their cells."""
        quasi = self.of_role("quasi")
        both = [(np.append(c.held, cell), len(c.labels)) for c, cell in zip(quasi, parts.cells, strict=True)]
        number, first = combine(both, len(self.numbers) + len(parts.people))
        rows, told = np.split(number, [len(self.numbers)])
        if not np.array_equal(counted(rows, self.numbers, len(first)), counted(told, parts.present, len(first))):
            raise ValueError("the groups count something else")

    def presence(self, public: Table | None = None) -> Presence:
        """For each person of the public table the probability of being in this one, or bounds where groups overlap."""
        known = self._public if public is None else require_jali_table("public", public)
        if self.parts is None or known is None:
            return super().presence(public)
        return presence_in_parts(self, self.parts, known)

    @property
    def public_table(self) -> Table | None:
        """The public table at hand, which is never saved."""
        return self._public

    @property
    def disclosure_bound(self) -> Bound:
        """Exact where groups that overlap in the public table are refused; those of a transparent release do."""
        return "exact" if self.parts is None else "at most"

    @property
    def _never_covered(self) -> tuple[str, ...]:
        """Of a transparent release, nothing follows from how the groups were chosen."""
        known = super()._never_covered
        return known if self.parts is None else (beyond(self.principles), TRANSPARENT, NOT_COVERED[2])

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the promises do not speak of; they are about presence, so not about sensitive values."""
        return (OF_THE_PRESENT, *self._never_covered) if self.of_role("sensitive") else super().not_covered

    def verify(self, public: Table | None = None) -> None:
        """Judge the bounds again from the published cells and the public table.

        A broken one is an InternalError, or an InputError where the caller gives the public table.
        """
        presence = self.presence(public)
        if not self.principles:
            raise InputError("the release promises no bounds of presence", do="get the release again")
        for principle in self.principles:
            if isinstance(principle, DeltaPresence) and presence.holds(principle):
                continue
            if public is not None:
                raise InputError(
                    f"against this public table the release does not keep {principle!r}",
                    got=f"{presence.low:.4g} to {presence.high:.4g}",
                    do="give the public table that it was made with; if this is the one, do not use the release",
                )
            raise InternalError(f"the release does not keep {principle!r}; nothing was written: please report this bug")

    def kept(self) -> dict[str, bool]:
        """Whether each promise is kept, where the public table is at hand to judge it."""
        if self._public is None:
            return {}
        presence = self.presence()
        return {repr(p): isinstance(p, DeltaPresence) and presence.holds(p) for p in self.principles}

    def widened(self, original: Table) -> Table:
        """The private table over the domain that the cells are about: values that only public people have are in it."""
        if isinstance(original, LargeTable):
            raise original.refused("a figure of a concealed release")
        if self._public is not None:
            return _in_public_domain(original, framed(original, self._public))
        return replace(original, columns=tuple(self._with_leaves(column) for column in original.columns))

    def _with_leaves(self, column: Column) -> Column:
        """The column with all values that the cells of a saved release name."""
        shown = next((c for c in self.of_role("quasi") if c.name == column.name), None)
        named = () if shown is None or shown.facts is None else shown.facts.named or ()
        known = set(column.labels.to_pylist())
        more = [text for text in named if text not in known]
        if not more or column.declared:  # a declared domain is the same for both tables
            return column
        both = [
            column.values,
            v.as_kind(column.name, pa.array(more, pa.string()), column.kind).cast(column.values.type),
        ]
        values = v.ordered(pa.concat_arrays(both))
        codes = v.places(values, column.values)[column.codes]
        return _widened(replace(column, values=values, hierarchy=None), codes, np.ones(len(values), dtype=bool))

    def _read_back(self, place: str | Path, read: Reading) -> Self:
        assert self._public is not None  # `save` has verified it against the public table
        return super()._read_back(place, read).beside(self._public)

    def __getstate__(self) -> dict[str, Any]:
        """A pickled release knows neither where the original's rows went nor the public table."""
        return super().__getstate__() | {"_public": None}


# -- what is published ----------------------------------------------------------------------------------------------


def _widened(column: Column, codes: NDArray[np.integer], occurring: Bools) -> Column:
    return Widened(
        column.name, column.role, column.values, codes, column.hierarchy, column.judges_groups, occurring=occurring
    )


def _in_public_domain(private: Table, frame: Framed) -> Table:
    """The private table with the public table's domains and hierarchies."""
    codes = frame.codes[frame.place]
    known = {c.name: _widened(c, codes[:, i], c.present) for i, c in enumerate(frame.table.quasi)}
    columns = tuple(known.get(column.name, column) for column in private.columns)
    return replace(private, columns=columns, domain=frame.table.domain)
