"""From columns as they came, and what the caller says each is for, to a Table: kinds, domains, hierarchies, people."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, counted
from jali.core.formats import LARGEST
from jali.encoding import values as v
from jali.encoding.builders import builder_of
from jali.encoding.hierarchy import Builder
from jali.encoding.identifiers import Identifiers, identifiers_of, pseudonyms
from jali.encoding.table import Column, Domain, Role, Table, check_roles
from jali.errors import HierarchyError, InputError, InternalError, nearest, nearest_hidden
from jali.sources.distinct import Raw, raw, refuse_infinite
from jali.sources.writing import Cells, Writing, as_line, groups_of_three

Missing = Literal["keep", "drop"]


@dataclass(frozen=True)
class Roles:
    """The caller's arguments in one checked form."""

    quasi: dict[str, Builder]
    sensitive: dict[str, Builder | None]
    other: tuple[str, ...] = ()
    person: str | None = None
    weights: str | None = None
    types: dict[str, v.Kind] = field(default_factory=dict)
    missing: Missing = "keep"
    domain: Domain = "declared"
    identifiers: Identifiers = field(default_factory=Identifiers)
    missing_is_value: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in self.types.items():
            if kind not in v.KINDS:
                raise InputError(f'types: no kind "{kind}" for column "{name}"', do=nearest(str(kind), v.KINDS))
        if self.missing not in ("keep", "drop"):
            raise InputError('missing must be "keep" or "drop"', got=repr(self.missing))
        if self.domain not in ("declared", "present"):
            raise InputError('domain must be "declared" or "present"', got=repr(self.domain))
        for name in self.missing_is_value:
            if name not in self.sensitive:
                do = nearest(name, self.sensitive)
                raise InputError(f'missing_is_value: "{name}" is no sensitive column', do=do)
        if not self.quasi:
            raise InputError("no quasi-identifier was named", do='name what an attacker may know: quasi=["age", "zip"]')

    def named(self) -> list[tuple[str, str]]:
        """Every named column that is read, with its role."""
        roles = [(n, "quasi") for n in self.quasi] + [(n, "sensitive") for n in self.sensitive]
        roles += [(n, "other") for n in self.other] + [(n, "identifier") for n in self.identifiers.pseudonyms]
        roles += [(self.person, "person")] if self.person is not None else []
        roles += [(self.weights, "weights")] if self.weights is not None else []
        return roles

    def published(self) -> list[tuple[str, str]]:
        """Every column that becomes one of the table."""
        return [(name, role) for name, role in self.named() if role not in ("person", "weights")]

    def every(self) -> list[tuple[str, str]]:
        """Every named column with its role."""
        return self.named() + [(name, "identifier") for name in self.identifiers.dropped]

    def check(self, known: list[str]) -> None:
        """Raise InputError when a name is unknown, doubled, or in two roles."""
        seen: set[str] = set()
        for name in known:
            if name and name in seen:  # columns without a name, as spreadsheets leave behind, are only not published
                raise InputError(f'column name "{name}" occurs more than once', do="rename one of them")
            seen.add(name)
        check_roles(self.every(), known)
        for name in self.types:
            if name not in seen:
                raise InputError(f'types: no column "{name}" in the table', do=nearest_hidden(name, known))


def roles_of(  # noqa: PLR0917 - in the order of the arguments of read and table
    quasi: Mapping[str, object] | Iterable[str],
    sensitive: Mapping[str, object] | Iterable[str],
    other: Iterable[str],
    person: str | None,
    weights: str | None,
    types: Mapping[str, v.Kind] | None,
    missing: Missing,
    domain: Domain,
    *,
    identifier: Mapping[str, object] | Iterable[str] = (),
    missing_is_value: Iterable[str] = (),
    **more: Any,
) -> Roles:
    """The caller's arguments, checked as far as can be without the table."""
    for role, given in (("person", person), ("weights", weights)):
        if given is not None and not isinstance(given, str):
            raise InputError(f"{role} must be the name of one column", got=type(given).__name__)
    if types is not None and not isinstance(types, Mapping):
        raise InputError("types must map columns to kinds", do='e.g. types={"zip": "text"}')
    exact = [*_named("other", other), *_named("sensitive", sensitive)]
    return Roles(
        {name: builder_of(name, given) for name, given in _named("quasi", quasi).items()},
        {n: None if g is None else builder_of(n, g) for n, g in _named("sensitive", sensitive).items()},
        tuple(_named("other", other)),
        person,
        weights,
        dict(types or {}),
        missing,
        domain,
        identifiers_of(_named("identifier", identifier), exact, **more),
        tuple(_named("missing_is_value", missing_is_value)),
    )


def _named(role: str, given: Mapping[str, object] | Iterable[str]) -> dict[str, object]:
    if isinstance(given, str):
        raise InputError(f"{role} must be a list of column names", got=f'"{given}"', do=f'write {role}=["{given}"]')
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Iterable):
        pairs = [(name, None) for name in given]
    else:
        raise InputError(f"{role} must be a list of column names", got=type(given).__name__, do=f'e.g. {role}=["age"]')
    named: dict[str, object] = {}
    for name, hierarchy in pairs:
        if not isinstance(name, str):
            raise InputError(f"{role}: column names are texts", got=repr(name), do="rename the column")
        if name in named:
            raise InputError(f'{role} names column "{name}" twice', do="name it once")
        named[name] = hierarchy
    return named


LONG = 1 << 20
"""A value of more bytes is long: a few rows of them are as much text as a column can hold."""
_WORKERS = min(4, os.cpu_count() or 1)  # columns are encoded side by side: Arrow and numpy leave Python free meanwhile
_FEW = 1 << 18  # records below which columns are encoded one after the other


def assemble(
    columns: Mapping[str, pa.ChunkedArray],
    roles: Roles,
    *,
    known: list[str],
    origin: str,
    infer: bool = False,
    writing: Writing | None = None,
    multiplicity: Ints | None = None,
    person: Ints | None = None,
    notes: tuple[str, ...] = (),
) -> Table:
    """The Table of these columns; `infer` reads texts of a file as numbers, dates and truth values where they are.

    `writing` says how a file writes them, and `notes` what its reading has said so far. Where an engine counted,
    `multiplicity` is the rows of each record, and `person` whose they are, unless nobody has two rows.
    """
    records = len(next(iter(columns.values())))
    if records == 0:
        raise InputError("the table is empty", do="give a table with at least one row")
    named = {name for name, _ in roles.every()}
    encoder = Encoder(roles, writing, infer)
    said = encoder.said

    def found(name: str) -> Raw:
        return encoder.raw(name, columns[name], multiplicity)

    work = [partial(encoder.column, name, columns, multiplicity) for name, _ in roles.published()]
    made = {column.name: column for column in _side_by_side(work, records)}
    table = Table(
        columns=tuple(made[name] for name in known if name in made),
        records=records,
        origin=origin,
        person=person
        if roles.person is None or multiplicity is not None
        else _person(roles.person, found(roles.person), said),
        weight=None if roles.weights is None else _weights(roles.weights, found(roles.weights), said),
        multiplicity=multiplicity,
        domain=roles.domain,
        unnamed=tuple(name for name in known if name not in named),
        person_name=roles.person,
        weight_name=roles.weights,
        dropped=roles.identifiers.dropped,
        allowed=roles.identifiers.allow,
    )
    every = (*notes, *encoder.notes(table.columns, known))
    table = replace(table, notes=tuple(map(as_line, every)))
    if roles.missing == "drop":
        table = _complete(table, roles)
    return _people_are_rows(table)


@dataclass(frozen=True)
class Encoder:
    """Makes columns of what was read: each has the values, the role and the hierarchy that the caller said."""

    roles: Roles
    writing: Writing | None = None
    infer: bool = False
    said: dict[str, Cells] = field(default_factory=dict)  # what reading the columns of texts decided

    def raw(self, name: str, column: pa.ChunkedArray, multiplicity: Ints | None) -> Raw:
        """The distinct values of a column; what stands for a missing value is one."""
        written = self.writing or Writing()
        made = raw(name, column, self.roles.types.get(name), has_rows=multiplicity is None)
        made = replace(made, distinct=written.without_markers(made.distinct), multiplicity=multiplicity)
        if v.kind_of(made.distinct) == "text" and self.writing is not None:
            self.said[name] = Cells(name, made.distinct, written, made.cells)
        return made

    def column(self, name: str, columns: Mapping[str, pa.ChunkedArray], multiplicity: Ints | None) -> Column:
        """The column of this name, with its domain and hierarchy."""
        own, roles = self.raw(name, columns[name], multiplicity), self.roles
        if name in roles.identifiers.pseudonyms:
            return _column(name, "identifier", own, pseudonyms(name, own.distinct, self._key), None)
        role: Role = "quasi" if name in roles.quasi else "sensitive" if name in roles.sensitive else "other"
        builder = roles.quasi.get(name) or roles.sensitive.get(name)
        made = encode(name, role, own, builder, roles.types.get(name), cells=self.said.get(name), infer=self.infer)
        return replace(made, missing_is_value=True) if name in roles.missing_is_value else made

    @cached_property
    def _key(self) -> bytes:
        return self.roles.identifiers.key()

    def notes(self, columns: Sequence[Column], known: Sequence[str]) -> Iterator[str]:
        """What the holder should know of how texts were read."""
        return _said([self.said[name] for name in known if name in self.said], columns)


def _side_by_side(work: Sequence[Callable[[], Column]], records: int) -> list[Column]:
    """The columns, made by several threads; where there are few records, starting these takes longer than the work."""
    if records < _FEW:
        return [make() for make in work]
    with ThreadPoolExecutor(_WORKERS) as workers:
        return list(workers.map(lambda make: make(), work))


def _said(columns: list[Cells], made: Sequence[Column]) -> Iterator[str]:
    """What reading the columns decided or left open."""
    for cells in columns:
        yield from cells.notes
    if not any(cells.options.get("decimal") == "," for cells in columns):
        return
    numbers = {column.name for column in made if column.kind == "number"}
    for cells in columns:  # 1.500 in a file that writes 17,5 elsewhere
        if cells.column in numbers and not cells.options and groups_of_three(cells.texts):
            yield (
                f'column "{cells.column}": "." before three digits is read as a decimal point, but other columns have '
                f'a decimal comma; write decimal = "," and thousands = "." if it groups digits'
            )


def encode(
    name: str, role: Role, found: Raw, builder: Builder | None, kind: v.Kind | None, *, cells: Cells | None, infer: bool
) -> Column:
    """A column with its domain and hierarchy; `cells` are those of a file whose values are texts."""
    values = found.distinct
    if kind is not None:
        values = _as_kind(name, found, kind, cells)
    elif infer and cells is not None:
        values = cells.as_text() if builder is not None and builder.reads_text else cells.read()
    if builder is not None:
        values = builder.typed(name, values)
    refuse_infinite(name, found, values)
    return _column(name, role, found, values, builder)


def _column(name: str, role: Role, found: Raw, values: pa.Array, builder: Builder | None) -> Column:
    """A column whose distinct values have got their kind: `values` stand in the places of the distinct ones."""
    if builder is None:
        domain, declared = v.ordered(values), False
    else:
        try:
            domain, declared = builder.domain(name, values)
        except HierarchyError as problem:
            if problem.value is None:
                raise
            what = problem.what + found.where(values.to_pylist().index(problem.value))
            raise HierarchyError(what, got=problem.got, do=problem.do, value=problem.value) from None
    position = v.places(domain, values)
    if position.min() < 0:
        raise InternalError(f'column "{name}" has a value outside its own domain')
    smallest: type[np.integer] = np.uint8 if len(domain) <= 2**8 else np.uint16 if len(domain) <= 2**16 else np.int32
    codes = found.codes(position.astype(smallest))
    _refuse_too_much_text(name, domain, codes)
    hierarchy = None
    if builder is not None:
        made = builder
        if builder.counts_rows:
            made = builder.counted(name, domain, counted(codes, found.multiplicity, len(domain)))
        hierarchy = made.build(name, domain, declared=declared)
    return Column(name, role, domain, codes, hierarchy, builder is not None and builder.judges_groups)


def _refuse_too_much_text(name: str, domain: pa.Array, codes: NDArray[np.integer]) -> None:
    """Raise InputError where long values, each in many rows, would be more text than a published column can hold."""
    if v.kind_of(domain) != "text":
        return
    lengths = pc.binary_length(domain).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if int(lengths.max(initial=0)) < LONG or int(lengths[codes].sum()) <= LARGEST:
        return
    what = f'column "{name}" holds values of more than {LONG:,} bytes, in all more than {LARGEST:,}'
    raise InputError(what, do="leave the column out, or shorten its values")


def _as_kind(name: str, found: Raw, kind: v.Kind, cells: Cells | None) -> pa.Array:
    """The distinct values as the kind the caller asked for; the error says which row stands against it."""
    if cells is not None and kind != "text":
        typed = cells.dates() if kind == "date" else None
        typed = cells.read() if typed is None else typed
        if v.kind_of(typed) == kind:
            return typed
        cells.notes.clear()
    try:
        return v.as_kind(name, found.distinct, kind)
    except InputError as problem:
        cells = cells or Cells(name, found.distinct, Writing(), found.cells)
        wrong = np.flatnonzero(cells.misfits(kind)).tolist() if v.kind_of(found.distinct) == "text" else []
        if not wrong:
            raise InputError(problem.what, do=cells.hint or problem.do) from None
        others = int(found.cells()[wrong].sum()) - 1
        more = "" if not others else " and 1 other cell" if others == 1 else f" and {others:,} other cells"
        value = found.distinct[wrong[0]].as_py()
        what = f"{problem.what}{found.where(wrong[0])}{more}"
        raise InputError(what, do=cells.hint or problem.do, value=value) from None


def _complete(table: Table, roles: Roles) -> Table:
    """Only the rows in which no column is missing, over the values that they hold; says how many were dropped."""
    keep = np.ones(table.records, dtype=bool)
    for column in table.columns:
        if column.values.null_count:
            keep &= column.codes != len(column.values) - 1
    if keep.all():
        return table
    if not keep.any():
        raise InputError("every row has a missing value", do='use missing="keep"')
    left = table.take(np.flatnonzero(keep), None if table.multiplicity is None else table.multiplicity[keep])
    builders: dict[str, Builder | None] = {**roles.quasi, **roles.sensitive}
    return replace(
        left,
        columns=tuple(_again(column, builders.get(column.name), left.multiplicity) for column in left.columns),
        incomplete=table.rows - left.rows,
    )


def _again(column: Column, builder: Builder | None, multiplicity: Ints | None) -> Column:
    """A column some of whose records are gone, over the values that are left."""
    used = np.flatnonzero(column.present)
    place = np.zeros(len(column.values), dtype=np.int64)
    place[used] = np.arange(len(used))
    values = column.values.take(pa.array(used))
    found = Raw(values, ((column.codes, place),), has_rows=False, multiplicity=multiplicity)
    return _column(column.name, column.role, found, values, builder)


def _person(name: str, found: Raw, said: Mapping[str, Cells]) -> Ints:
    blank = found.distinct.is_null()
    if v.kind_of(found.distinct) == "text":
        blank = pc.or_(blank, pc.equal(found.distinct, "").fill_null(True))
    at = int(pc.index(blank, True).as_py())
    if at >= 0:
        raise InputError(f'person column "{name}" is empty{found.where(at)}', do="give every row a person")
    if name in said:
        said[name].as_text()  # a text that often marks a missing value would be one person
    return found.codes(np.arange(len(found.distinct), dtype=np.int64))


def _people_are_rows(table: Table) -> Table:
    """Without persons where each has one row: then people are rows, and everything is simpler."""
    if table.person is None or (table.multiplicity is not None and int(table.multiplicity.max()) > 1):
        return table
    once = int(np.bincount(table.person).max()) == 1
    return replace(table, person=None) if once else table


def _weights(name: str, found: Raw, said: Mapping[str, Cells]) -> Floats:
    typed = said[name].read() if name in said else found.distinct
    values = v.numbers(typed)
    if values is None or v.kind_of(typed) == "date":
        raise InputError(
            f'weights column "{name}" must hold numbers', do="name a column of numbers, or leave weights out"
        )
    wrong = np.flatnonzero(~(values >= 0))
    if len(wrong):
        what = "empty" if np.isnan(values[wrong[0]]) else "negative"
        raise InputError(f'weights column "{name}" is {what}{found.where(int(wrong[0]))}', do="give every row a weight")
    if not values.max() > 0:
        raise InputError(f'weights column "{name}" sums to zero', do="name another column, or leave weights out")
    return found.codes(values)
