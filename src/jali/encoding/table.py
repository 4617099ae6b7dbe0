"""Tables: columns of codes with roles, encoded once; searches read their frequencies and touch no rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, combine, counted, owners
from jali.core.text import element, html_table, notebook
from jali.encoding import values as v
from jali.encoding.frequencies import Frequencies, Nodes, Under, entries
from jali.encoding.hierarchy import ROOT, Hierarchy
from jali.encoding.identifiers import Suspicion, suspicion
from jali.errors import InputError, nearest, nearest_hidden
from jali.principles.counts import Sensitive

if TYPE_CHECKING:
    from jali.encoding.ends import Ends

Role = Literal["quasi", "sensitive", "other", "identifier"]  # the last for pseudonyms
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
    missing_is_value: bool = False  # whether promises about a sensitive column count a missing value as one
    ends: Ends | None = None  # which values intervals and sets may name; None: any
    value_rows: Ints | None = None  # (values,) rows of each value, where records do not say, being coarser than values

    @property
    def kind(self) -> v.Kind:
        """Numbers, text, dates or truth values."""
        return v.kind_of(self.values)

    @property
    def declared(self) -> bool:
        """Whether the domain was declared, not only observed."""
        return self.hierarchy is not None and self.hierarchy.declared

    @cached_property
    def present(self) -> Bools:
        """Which values occur: (values,)."""
        rows = np.bincount(self.codes, minlength=len(self.values)) if self.value_rows is None else self.value_rows
        return rows > 0

    @cached_property
    def labels(self) -> pa.Array:
        """The values as people read them."""
        return v.texts(self.values)

    @cached_property
    def numbers(self) -> Floats:
        """The numbers, or days, that the values are, nan for the missing one: (values,)."""
        found = v.numbers(self.values)
        assert found is not None
        return found

    @cached_property
    def star(self) -> int:
        """The code of the value "*", which stands for every value in a release; -1 where there is none."""
        return int(pc.index(self.labels, ROOT).as_py())

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes of all levels of its hierarchy, one level after the other."""
        assert self.hierarchy is not None
        widths, examples = tuple(len(level) for level in self.hierarchy.levels), []
        for nodes, width in zip(self.hierarchy.maps, widths, strict=True):
            examples.append(np.zeros(width, dtype=np.int32))
            examples[-1][nodes] = np.arange(len(nodes))
        maps = np.concatenate(self.hierarchy.maps).astype(np.int32, copy=False)
        return Nodes(widths, maps, np.concatenate(examples), {})

    def under(self, domain: Domain) -> Under:
        """How many values of the domain each node of each level covers; found once."""
        known, hierarchy = self.nodes.under, self.hierarchy
        if domain not in known and hierarchy is not None:
            mask, levels = self.mask(domain), range(hierarchy.height + 1)
            sizes = [hierarchy.node_sizes(level, mask).astype(np.float64) for level in levels]
            known[domain] = Under(sizes, [np.log(np.maximum(size, 1.0)) for size in sizes])
        return known[domain]

    def mask(self, domain: Domain) -> Bools:
        """Which values the domain has: all where it is declared, else those that occur."""
        return np.ones(len(self.values), dtype=bool) if domain == "declared" and self.declared else self.present

    def sensitive(self) -> tuple[Sensitive, Ints]:
        """The column as principles see it, and the judged value of each code.

        Judged values are in the order of the first code of each; a taxonomy's rows give words an order.
        """
        ordered = self.kind in ("number", "date") or self.declared
        if self.hierarchy is None:
            labels = tuple(self.labels.to_pylist())
            return self._judged(labels, ordered), np.arange(len(labels), dtype=np.int64)
        level = 1 if self.judges_groups else 0
        nodes = self.hierarchy.maps[level]
        used, first, rank = np.unique(nodes, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        above = (m[first[order]].astype(np.int64) for m in self.hierarchy.maps[level + 1 :])
        labels = tuple(self.hierarchy.levels[level].labels.take(pa.array(used[order])).to_pylist())
        tree = (np.arange(len(order), dtype=np.int64), *above)
        return self._judged(labels, ordered, tree), position[rank.reshape(-1)]

    def _judged(self, labels: tuple[str | None, ...], ordered: bool, tree: tuple[Ints, ...] = ()) -> Sensitive:
        unknown = None if self.missing_is_value or None not in labels else labels.index(None)
        return Sensitive(self.name, labels, ordered, tree, unknown)


@dataclass(frozen=True)
class Coarse:
    """What is known of a table whose records were counted at levels of the hierarchies, not value by value.

    The code of a record is one of those under its node, so that whatever is asked at these levels or above is right.
    """

    levels: tuple[int, ...]  # of each quasi-identifier
    entropy: float  # Σ F log F over the cells of the table's own values


@dataclass(frozen=True, eq=False)
class Table:
    """A table about people: encoded once; every search works on `frequencies`."""

    columns: tuple[Column, ...]
    records: int  # rows that are held; each stands for `multiplicity` rows
    origin: str = "arrow"  # the kind of frame that came in
    person: Ints | None = None  # (records,)
    weight: Floats | None = None  # (records,)
    multiplicity: Ints | None = None  # (records,) from engines that counted distinct rows for us
    domain: Domain = "declared"
    unnamed: tuple[str, ...] = ()  # columns that were not named and never leave the building
    incomplete: int = 0  # rows dropped because a value was missing
    person_name: str | None = None
    weight_name: str | None = None
    notes: tuple[str, ...] = ()  # what the holder should know of how the table was read
    dropped: tuple[str, ...] = ()  # identifiers that were named and are not published
    allowed: Mapping[str, str] = field(default_factory=dict)  # why columns that look like identifiers are published
    coarse: Coarse | None = None

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
    def floor(self) -> tuple[int, ...]:
        """The lowest level of each quasi-identifier that the records tell."""
        return tuple(0 for _ in self.quasi) if self.coarse is None else self.coarse.levels

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
        column = self[name]
        if column.hierarchy is None:
            raise InputError(f'column "{name}" has no hierarchy', do="only quasi-identifiers are generalized")
        if column.star >= 0:
            rows = np.flatnonzero(column.codes == column.star)
            where = f" in row {rows[0] + 1}" if len(rows) and self.multiplicity is None else ""
            raise InputError(
                f'column "{name}" holds the value "{ROOT}"{where}, which stands for every value in a release',
                do="give it another name, or leave it empty if it means unknown",
            )
        return column.hierarchy

    def people_at(self, name: str, level: int) -> Ints:
        """How many people have a value under each node of a level of a quasi-identifier's hierarchy: (nodes,)."""
        hierarchy = self.hierarchy(name)
        nodes, node = len(hierarchy.levels[level]), hierarchy.maps[level][self[name].codes]
        if self.person is None:
            return counted(node, self.multiplicity, nodes)
        pairs = np.unique(self.person.astype(np.int64) * nodes + node)  # somebody can have several values
        return counted(pairs % nodes, length=nodes)

    @cached_property
    def frequencies(self) -> Frequencies:
        """The distinct combinations and their counts, made once."""
        return _frequencies(self)

    @cached_property
    def suspected(self) -> tuple[tuple[Column, Suspicion], ...]:
        """The columns that would be published as they are and seem to name people, unless that is allowed."""
        exact = [column for column in self.columns if column.role in ("other", "sensitive")]
        found = ((column, suspicion(column.name, *self._known(column))) for column in exact)
        return tuple((column, why) for column, why in found if why is not None and column.name not in self.allowed)

    def _known(self, column: Column) -> tuple[pa.Array, int]:
        """The values of a column that occur and are not missing, and how many people have one."""
        known = column.codes < len(column.values) - (1 if column.values.null_count else 0)
        rows = int(known.sum()) if self.multiplicity is None else int(self.multiplicity[known].sum())
        people = rows if self.person is None else len(np.unique(self.person[known]))
        return column.values.filter(pa.array(column.present)).drop_null(), people

    def frame(self, kind: str | None = None) -> Any:
        """The table's own rows: as they came in, or "pandas", "polars", "arrow"."""
        from jali.core.formats import to_native

        repeat = None if self.multiplicity is None else pa.array(owners(self.multiplicity))
        columns = {}
        for column in self.columns:
            codes = pa.array(column.codes)
            columns[column.name] = column.values.take(codes if repeat is None else codes.take(repeat))
        return to_native(pa.table(columns), kind or self.origin)

    def sample(self, share: float, *, seed: int | np.random.Generator) -> Table:
        """A Bernoulli sample: each row (each person, where they are named) is kept with this probability."""
        if not 0 < share <= 1:
            raise InputError("the share of a sample must be above 0 and at most 1", got=str(share))
        random = np.random.default_rng(seed)
        if self.person is not None:
            persons, index = np.unique(self.person, return_inverse=True)
            kept = np.flatnonzero((random.random(len(persons)) < share)[index.reshape(-1)])
            count = None if self.multiplicity is None else self.multiplicity[kept]
        elif self.multiplicity is not None:
            drawn = random.binomial(self.multiplicity, share)
            kept = np.flatnonzero(drawn)
            count = drawn[kept].astype(np.int64)
        else:
            kept, count = np.flatnonzero(random.random(self.records) < share), None
        if len(kept) == 0:
            raise InputError(
                "the sample is empty", got=f"share={share} of {self.rows:,} rows", do="take a larger share"
            )
        return self.take(kept, count)

    def head(self, rows: int) -> Table:
        """The first rows, e.g. to reproduce what another tool published from a part of a table."""
        if rows < 1:
            raise InputError("head() needs at least one row", got=str(rows))
        if self.multiplicity is None:
            return self.take(np.arange(min(rows, self.records)), None)
        before = np.cumsum(self.multiplicity) - self.multiplicity
        kept = np.flatnonzero(before < rows)
        return self.take(kept, np.minimum(self.multiplicity[kept], rows - before[kept]))

    def take(self, records: NDArray[np.integer], multiplicity: Ints | None) -> Table:
        """Some of the records; `multiplicity` is the number of rows of each, one by default."""
        return replace(
            self,
            columns=tuple(replace(column, codes=column.codes[records]) for column in self.columns),
            records=len(records),
            person=None if self.person is None else self.person[records],
            weight=None if self.weight is None else self.weight[records],
            multiplicity=multiplicity,
        )

    def one_by_one(self) -> Table:
        """The same with one record for each row; what was counted of it is kept."""
        if self.multiplicity is None:
            return self
        record = owners(self.multiplicity).astype(np.int32)
        made, f = self.take(record, None), self.frequencies
        made.__dict__["frequencies"] = replace(f, row_combination=f.row_combination[record])
        return made

    def distinct(self) -> Table:
        """The same rows with one record for each distinct one; weights become the mean of the rows it stands for."""
        if self.of_role("other") or self.of_role("identifier"):
            return self.merged(None)[0]
        f = self.frequencies  # whose entries are these records
        codes = {column.name: f.codes[f.combination, at] for at, column in enumerate(self.quasi)}
        codes |= {column.name: f.joint[f.value, at] for at, column in enumerate(self.sensitive)}
        columns = tuple(replace(column, codes=codes[column.name].astype(column.codes.dtype)) for column in self.columns)
        made = replace(self, columns=columns, records=len(f.rows), person=f.person, multiplicity=f.rows)
        return made._standing_for(f.weight, f.combination, f)

    def merged(self, group: Ints | None) -> tuple[Table, NDArray[np.int32]]:
        """The same with records of different groups kept apart, and the new record of each record."""
        f = self.frequencies
        keys = [(column.codes, len(column.values)) for column in self.columns if column.role != "quasi"]
        keys += [(each, int(each.max()) + 1) for each in (f.row_combination, self.person) if each is not None]
        keys += [] if group is None else [(group - group.min(), int(group.max() - group.min()) + 1)]
        number, first = combine(keys, self.records)
        weight = self.weight
        weight = weight if weight is None or self.multiplicity is None else weight * self.multiplicity
        made = self.take(first, counted(number, self.multiplicity))
        return made._standing_for(added(number, weight), f.row_combination[first], f), number

    def _standing_for(self, weight: Floats, combination: NDArray[np.integer], f: Frequencies) -> Table:
        """The table of merged records, the sum of whose weights and whose combinations are given."""
        assert self.multiplicity is not None
        made = replace(self, weight=None if self.weight is None else weight / self.multiplicity)
        made.__dict__["frequencies"] = replace(f, row_combination=combination.astype(np.int32))
        return made

    def with_quasi(self, names: Iterable[str]) -> Table:
        """The same records with only these quasi-identifiers; their frequencies follow from those of the table."""
        kept = {*names}
        made = replace(self, columns=tuple(c for c in self.columns if c.role != "quasi" or c.name in kept))
        chosen = [at for at, column in enumerate(self.quasi) if column.name in kept]
        made.__dict__["frequencies"] = self.frequencies.projected(chosen)
        return made

    def without_sensitive(self) -> Table:
        """The same records without their sensitive columns, one row a person."""
        made = replace(self, columns=tuple(c for c in self.columns if c.role != "sensitive"))
        made.__dict__["frequencies"] = self.frequencies.without_values()
        return made

    def with_domain(self, domain: Domain) -> Table:
        """The same table, measured over another domain."""
        return replace(self, domain=domain)

    def __repr__(self) -> str:
        rows, people = "row" if self.rows == 1 else "rows", "person" if self.people == 1 else "people"
        lines = [f"Table: {self.rows:,} {rows}, {self.people:,} {people}"]
        for column in self.columns:
            hierarchy = f", {column.hierarchy}" if column.hierarchy is not None else ""
            chosen = " (chosen by jali)" if column.hierarchy is not None and column.hierarchy.chosen else ""
            values = "1 value" if len(column.values) == 1 else f"{len(column.values)} values"
            lines.append(f"  {column.role:9}  {column.name}: {column.kind}, {values}{hierarchy}{chosen}")
        if self.person_name:
            lines.append(f"  person     {self.person_name}: not published")
        if self.weight_name:
            lines.append(f"  weights    {self.weight_name}: published as each group's mean")
        if self.dropped:
            lines.append(f"  identifier {', '.join(self.dropped)}: not published")
        if self.unnamed:
            lines.append(f"  not named and not published: {', '.join(self.unnamed)}")
        if self.incomplete:
            dropped = "row with a missing value was" if self.incomplete == 1 else "rows with a missing value were"
            lines.append(f"  {self.incomplete:,} {dropped} dropped")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The columns, what each is for, and how it can be generalized; no row and no value."""
        rows = [
            (c.name, c.role, c.kind, f"{len(c.values):,}", "" if c.hierarchy is None else str(c.hierarchy))
            for c in self.columns
        ]
        header = ("Column", "Role", "Kind", "Values", "Hierarchy")
        caption = f"Table of {self.rows:,} rows about {self.people:,} people"
        rest = repr(self).splitlines()[1 + len(self.columns) :]
        table = html_table(header, rows, caption=caption, numbers=(3,), named=True)
        return notebook(table, *(element("p", line.strip()) for line in rest))


def _frequencies(table: Table) -> Frequencies:
    quasi, sensitive = table.quasi, table.sensitive
    combination, first = combine([(c.codes, len(c.values)) for c in quasi], table.records)
    codes = np.stack([c.codes[first] for c in quasi], axis=1).astype(np.int32)
    joint_value, joint_first = combine([(c.codes, len(c.values)) for c in sensitive], table.records)
    joint = np.stack([c.codes[joint_first] for c in sensitive], axis=1) if sensitive else np.zeros((1, 0))
    rows, weight = table.multiplicity, table.weight
    weight = weight if weight is None or rows is None else weight * rows
    judged = [column.sensitive() for column in sensitive]
    return Frequencies(
        codes=codes,
        joint=joint.astype(np.int64),
        sensitive=tuple(s for s, _ in judged),
        judged=tuple(m for _, m in judged),
        row_combination=combination,
        finest=None if table.coarse is None else table.coarse.entropy,
        **entries((combination, len(codes)), (joint_value, len(joint)), table.person, rows, weight),
    )


def check_roles(named: Iterable[tuple[str, str]], known: Iterable[str]) -> None:
    """Raise InputError when a column is unknown or stands in two roles."""
    roles: dict[str, str] = {}
    names = list(known)
    for name, role in named:
        if name not in names:
            raise InputError(f'{role}: no column "{name}" in the table', do=nearest_hidden(name, names))
        if name in roles:
            raise InputError(f'column "{name}" is named as {roles[name]} and as {role}', do="give each column one role")
        roles[name] = role
