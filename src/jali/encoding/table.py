"""Table: people's records as integer codes, with a domain, a role and a hierarchy for each column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding import values as v
from jali.encoding.frequencies import Frequencies, combine
from jali.encoding.hierarchy import Hierarchy
from jali.errors import InputError, nearest
from jali.principles.counts import Ints, Sensitive

Role = Literal["quasi", "sensitive", "other"]
Domain = Literal["declared", "present"]


@dataclass(frozen=True, eq=False)
class Column:
    """One column: `values[codes[row]]` is what stands in a row; the missing value, if there is one, is the last."""

    name: str
    role: Role
    values: pa.Array  # (values,) the domain, in order
    codes: NDArray[np.integer]  # (records,)
    hierarchy: Hierarchy | None = None
    judges_groups: bool = False  # whether a sensitive column is judged by the hierarchy's first level

    @property
    def kind(self) -> v.Kind:
        """Numbers, text, dates or truth values."""
        return v.kind_of(self.values)

    @property
    def declared(self) -> bool:
        """Whether the domain was declared, not only observed."""
        return self.hierarchy is not None and self.hierarchy.declared

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which values occur: (values,)."""
        return np.bincount(self.codes, minlength=len(self.values)) > 0

    @cached_property
    def labels(self) -> pa.Array:
        """The values as people read them."""
        return v.texts(self.values)

    def mask(self, domain: Domain) -> NDArray[np.bool_]:
        """Which values the domain has: all where it is declared, else those that occur."""
        return np.ones(len(self.values), dtype=bool) if domain == "declared" and self.declared else self.present

    def sensitive(self) -> tuple[Sensitive, Ints]:
        """The column as principles see it, and the judged value of each code."""
        level = 1 if self.judges_groups and self.hierarchy is not None and self.hierarchy.height > 1 else 0
        if self.hierarchy is None:
            ordered = self.kind in ("number", "date")
            labels = tuple(self.labels.to_pylist())
            return Sensitive(self.name, labels, ordered), np.arange(len(labels), dtype=np.int64)
        maps = self.hierarchy.maps
        base = maps[level].astype(np.int64)
        first = np.zeros(len(self.hierarchy.levels[level]), dtype=np.int64)
        first[base[::-1]] = np.arange(len(base))[::-1]
        order = np.argsort(first, kind="stable")  # nodes in the order of their first value
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        tree = tuple(m.astype(np.int64)[first[order]] for m in maps[level:])
        tree = (np.arange(len(order), dtype=np.int64), *tree[1:])
        labels = tuple(self.hierarchy.levels[level].labels.take(pa.array(order)).to_pylist())
        return Sensitive(self.name, labels, True, tree), rank[base]


@dataclass(frozen=True, eq=False)
class Table:
    """A table about people: encoded once; every search works on `frequencies`."""

    columns: tuple[Column, ...]
    records: int  # rows that are held; each stands for `multiplicity` rows
    origin: str = "arrow"  # the kind of frame that came in
    person: Ints | None = None  # (records,)
    weight: NDArray[np.float64] | None = None  # (records,)
    multiplicity: Ints | None = None  # (records,) from engines that counted distinct rows for us
    domain: Domain = "declared"
    unnamed: tuple[str, ...] = ()  # columns that were not named and never leave the building
    incomplete: int = 0  # rows dropped because a value was missing
    person_name: str | None = None
    weight_name: str | None = None

    def __post_init__(self) -> None:
        if self.records == 0:
            raise InputError("the table is empty", do="give a table with at least one row")
        if not self.quasi:
            raise InputError("no quasi-identifier was named", do='name what an attacker may know: quasi=["age", "zip"]')

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f'no column "{name}" in the table', do=nearest(name, [c.name for c in self.columns]))

    def of_role(self, role: Role) -> tuple[Column, ...]:
        """The columns of a role, in order."""
        return tuple(column for column in self.columns if column.role == role)

    @property
    def quasi(self) -> tuple[Column, ...]:
        """The quasi-identifiers."""
        return self.of_role("quasi")

    @property
    def sensitive(self) -> tuple[Column, ...]:
        """The sensitive columns."""
        return self.of_role("sensitive")

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return self.records if self.multiplicity is None else int(self.multiplicity.sum())

    @property
    def people(self) -> int:
        """How many people it is about: rows, unless persons are named."""
        return self.rows if self.person is None else len(np.unique(self.person))

    def hierarchy(self, name: str) -> Hierarchy:
        """The hierarchy of a quasi-identifier."""
        found = self[name].hierarchy
        if found is None:
            raise InputError(f'column "{name}" has no hierarchy', do="only quasi-identifiers are generalized")
        return found

    @cached_property
    def frequencies(self) -> Frequencies:
        """The distinct combinations and their counts, made once."""
        return _frequencies(self)

    def frame(self, kind: str | None = None) -> Any:
        """The table's own rows, for whoever holds it: as they came in, or "pandas", "polars", "arrow"."""
        from jali.encoding.native import to_native

        repeat = None if self.multiplicity is None else pa.array(np.repeat(np.arange(self.records), self.multiplicity))
        columns = {}
        for column in self.columns:
            values = column.values.take(pa.array(column.codes))
            columns[column.name] = values if repeat is None else values.take(repeat)
        return to_native(pa.table(columns), kind or self.origin)

    def sample(self, share: float, *, seed: int | np.random.Generator) -> Table:
        """A Bernoulli sample: each row (each person, where they are named) is kept with this probability."""
        if not 0 < share <= 1:
            raise InputError("the share of a sample must be above 0 and at most 1", got=str(share))
        random = np.random.default_rng(seed)
        if self.multiplicity is not None:
            count = random.binomial(self.multiplicity, share).astype(np.int64)
            return self._take(np.flatnonzero(count), count[count > 0])
        if self.person is not None:
            persons, index = np.unique(self.person, return_inverse=True)
            keep = (random.random(len(persons)) < share)[index.reshape(-1)]
        else:
            keep = random.random(self.records) < share
        return self._take(np.flatnonzero(keep), None)

    def _take(self, index: Ints, multiplicity: Ints | None) -> Table:
        columns = tuple(replace(column, codes=column.codes[index]) for column in self.columns)
        return replace(
            self,
            columns=columns,
            records=len(index),
            person=None if self.person is None else self.person[index],
            weight=None if self.weight is None else self.weight[index],
            multiplicity=multiplicity,
        )

    def head(self, rows: int) -> Table:
        """The first rows, e.g. to reproduce what another tool published from a part of a table."""
        return self._take(np.arange(min(rows, self.records)), None if self.multiplicity is None else self.multiplicity[:rows])

    def with_domain(self, domain: Domain) -> Table:
        """The same table, measured over another domain."""
        return replace(self, domain=domain)

    def __repr__(self) -> str:
        lines = [f"Table: {self.rows:,} rows, {self.people:,} people"]
        for column in self.columns:
            hierarchy = f", {column.hierarchy}" if column.hierarchy is not None else ""
            chosen = " (chosen by jali)" if column.hierarchy is not None and column.hierarchy.chosen else ""
            lines.append(f"  {column.role:9}  {column.name}: {column.kind}, {len(column.values)} values{hierarchy}{chosen}")
        if self.person_name:
            lines.append(f"  person     {self.person_name}: not published")
        if self.weight_name:
            lines.append(f"  weights    {self.weight_name}: published as each group's mean")
        if self.unnamed:
            lines.append(f"  not named and not published: {', '.join(self.unnamed)}")
        if self.incomplete:
            lines.append(f"  {self.incomplete:,} rows with a missing value were dropped")
        return "\n".join(lines)


def _frequencies(table: Table) -> Frequencies:
    quasi, sensitive = table.quasi, table.sensitive
    combination, first = combine([(c.codes, len(c.values)) for c in quasi], table.records)
    codes = np.stack([c.codes[first] for c in quasi], axis=1).astype(np.int32)
    joint_value, joint_first = combine([(c.codes, len(c.values)) for c in sensitive], table.records)
    joint = np.stack([c.codes[joint_first] for c in sensitive], axis=1) if sensitive else np.zeros((1, 0))
    keys: list[tuple[NDArray[np.integer], int]] = [(combination, len(codes)), (joint_value, len(joint))]
    if table.person is not None:
        keys.append((table.person, int(table.person.max(initial=0)) + 1))
    entry, entry_first = combine(keys, table.records)
    multiplicity = np.ones(table.records) if table.multiplicity is None else table.multiplicity.astype(np.float64)
    rows = np.bincount(entry, weights=multiplicity).astype(np.int64)
    weight = rows.astype(np.float64)
    if table.weight is not None:
        weight = np.bincount(entry, weights=table.weight * multiplicity)
    judged = [column.sensitive() for column in sensitive]
    return Frequencies(
        codes=codes,
        combination=combination[entry_first].astype(np.int64),
        value=joint_value[entry_first].astype(np.int64),
        people=rows if table.person is None else np.ones(len(rows), dtype=np.int64),
        rows=rows,
        weight=weight,
        person=None if table.person is None else table.person[entry_first],
        joint=joint.astype(np.int64),
        sensitive=tuple(s for s, _ in judged),
        judged=tuple(m for _, m in judged),
        row_combination=combination,
    )


def check_roles(named: Iterable[tuple[str, str]], known: Iterable[str]) -> None:
    """Raise InputError when a column is unknown or stands in two roles."""
    roles: dict[str, str] = {}
    names = list(known)
    for name, role in named:
        if name not in names:
            raise InputError(f'{role}: no column "{name}" in the table', do=nearest(name, names))
        if name in roles:
            raise InputError(f'column "{name}" is named as {roles[name]} and as {role}', do="give each column one role")
        roles[name] = role
