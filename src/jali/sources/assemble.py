"""From columns as they came, and what the caller says each is for, to a Table: kinds, domains, hierarchies, people."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints
from jali.core.formats import LARGEST
from jali.encoding import values as v
from jali.encoding.builders import builder_of
from jali.encoding.hierarchy import Builder
from jali.encoding.table import Column, Domain, Role, Table, check_roles
from jali.errors import HierarchyError, InputError, InternalError, nearest, nearest_hidden

T = TypeVar("T", bound=np.number)
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

    def __post_init__(self) -> None:
        for name, kind in self.types.items():
            if kind not in v.KINDS:
                raise InputError(f'types: no kind "{kind}" for column "{name}"', do=nearest(str(kind), v.KINDS))
        if self.missing not in ("keep", "drop"):
            raise InputError('missing must be "keep" or "drop"', got=repr(self.missing))
        if self.domain not in ("declared", "present"):
            raise InputError('domain must be "declared" or "present"', got=repr(self.domain))
        if not self.quasi:
            raise InputError("no quasi-identifier was named", do='name what an attacker may know: quasi=["age", "zip"]')

    def named(self) -> list[tuple[str, str]]:
        """Every named column with its role."""
        roles = [(n, "quasi") for n in self.quasi] + [(n, "sensitive") for n in self.sensitive]
        roles += [(n, "other") for n in self.other]
        roles += [(self.person, "person")] if self.person is not None else []
        roles += [(self.weights, "weights")] if self.weights is not None else []
        return roles

    def check(self, known: list[str]) -> None:
        """Raise InputError when a name is unknown, doubled, or in two roles."""
        seen: set[str] = set()
        for name in known:
            if name and name in seen:  # columns without a name, as spreadsheets leave behind, are only not published
                raise InputError(f'column name "{name}" occurs more than once', do="rename one of them")
            seen.add(name)
        check_roles(self.named(), known)
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
) -> Roles:
    """The caller's arguments, checked as far as can be without the table."""
    for role, given in (("person", person), ("weights", weights)):
        if given is not None and not isinstance(given, str):
            raise InputError(f"{role} must be the name of one column", got=type(given).__name__)
    if types is not None and not isinstance(types, Mapping):
        raise InputError("types must map columns to kinds", do='e.g. types={"zip": "text"}')
    return Roles(
        {name: builder_of(name, given) for name, given in _named("quasi", quasi).items()},
        {n: None if g is None else builder_of(n, g) for n, g in _named("sensitive", sensitive).items()},
        tuple(_named("other", other)),
        person,
        weights,
        dict(types or {}),
        missing,
        domain,
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


@dataclass(frozen=True, eq=False)
class Raw:
    """Distinct values (each occurs; the missing one is null) and, chunk by chunk, where each record's stands."""

    distinct: pa.Array  # (values,)
    parts: tuple[tuple[NDArray[np.integer], Ints], ...]  # indices of records, and the value of each index
    has_rows: bool = True  # whether a record's number is a row's number; not so where an engine counted rows

    def codes(self, of: NDArray[T]) -> NDArray[T]:
        """For each record the entry of an array over the distinct values: (records,)."""
        return np.concatenate([of[value][indices] for indices, value in self.parts])

    def where(self, value: int) -> str:
        """', row 17' for the row in which a distinct value first stands."""
        before = 0
        for indices, number in self.parts:
            found = np.flatnonzero(number[indices] == value)
            if len(found) and self.has_rows:
                return f", row {before + int(found[0]) + 1}"
            before += len(indices)
        return ""


def raw(name: str, column: pa.ChunkedArray, kind: v.Kind | None = None, *, has_rows: bool = True) -> Raw:
    """Distinct values and codes of an Arrow column; NaN counts as missing, infinity is refused."""
    dictionaries, chunks = [], []
    for chunk in column.chunks or [pa.array([], column.type)]:
        encoded = chunk if pa.types.is_dictionary(chunk.type) else _encodable(name, chunk, kind).dictionary_encode()
        dictionary = _plain(name, encoded.dictionary, kind)
        _refuse_broken_text(name, dictionary)
        indices = encoded.indices
        if indices.null_count:
            indices = indices.cast(pa.int32()).fill_null(len(dictionary))
        codes = indices.to_numpy()
        occurs = np.bincount(codes, minlength=len(dictionary) + 1) > 0
        dictionaries.append(pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)]).filter(pa.array(occurs)))
        chunks.append((codes, occurs))
    # Categories that never occur are gone; those that repeat, within a chunk or over chunks, become one.
    every = pa.concat_arrays(dictionaries).dictionary_encode(null_encoding="encode")
    numbers = every.indices.to_numpy().astype(np.int64)
    parts, at = [], 0
    for codes, occurs in chunks:
        value = np.zeros(len(occurs), dtype=np.int64)
        value[occurs] = numbers[at : at + int(occurs.sum())]
        at += int(occurs.sum())
        parts.append((codes, value))
    found = Raw(every.dictionary, tuple(parts), has_rows)
    refuse_infinite(name, found, found.distinct)
    return found


def refuse_infinite(name: str, found: Raw, values: pa.Array) -> None:
    """Raise InputError when one of the values, each in the place of a distinct one, is infinite."""
    at = v.infinite(values)
    if at is not None:
        raise InputError(
            f'column "{name}" holds an infinite number{found.where(at)}', do="replace it or leave it empty"
        )


def _refuse_broken_text(name: str, values: pa.Array) -> None:
    """Raise InputError for bytes that a file calls text and that are none."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError(f'column "{name}" holds text that is not valid UTF-8', do="write it again as UTF-8") from None


def _encodable(name: str, values: pa.Array, kind: v.Kind | None) -> pa.Array:
    """The values in a type that Arrow can number."""
    of = values.type
    if pa.types.is_string_view(of):
        return values.cast(pa.large_string())
    if pa.types.is_null(of):
        return values.cast(pa.string())
    known = (
        pa.types.is_floating(of), pa.types.is_integer(of), pa.types.is_decimal(of), pa.types.is_boolean(of),
        pa.types.is_string(of), pa.types.is_large_string(of), pa.types.is_date(of), pa.types.is_timestamp(of),
    )  # fmt: skip
    return values if any(known) else _plain(name, values, kind)


def _plain(name: str, values: pa.Array, kind: v.Kind | None) -> pa.Array:
    """Values of one of the few types that jali works with; others are refused with the reason."""
    of = values.type
    if pa.types.is_floating(of):
        return v.without_signs_of_zero(values.cast(pa.float64()))
    if pa.types.is_string(of) or pa.types.is_boolean(of) or pa.types.is_decimal(of):
        return values
    if pa.types.is_large_string(of) or pa.types.is_string_view(of) or pa.types.is_null(of):
        return values.cast(pa.string())
    if pa.types.is_date(of):
        return values.cast(pa.date32())
    if pa.types.is_timestamp(of):  # times are told as the clock of their own zone showed them
        local = values if of.tz is None else pc.local_timestamp(values)
        return local.cast(pa.timestamp("us"), safe=False)
    try:
        if pa.types.is_integer(of):
            return values.cast(pa.string() if kind == "text" else pa.int64())
        if kind == "text":
            return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    what = "whole numbers beyond 64 bits" if pa.types.is_integer(of) else "values that jali cannot publish"
    do = f'turn it into texts or numbers first, or write types={{"{name}": "text"}}'
    raise InputError(f'column "{name}" holds {what}', got=str(of), do=do)


LONG = 1 << 20
"""A value of more bytes is long: a few rows of them are as much text as a column can hold."""
_WORKERS = min(4, os.cpu_count() or 1)  # columns are encoded side by side: Arrow and numpy leave Python free meanwhile


def assemble(
    columns: Mapping[str, pa.ChunkedArray],
    roles: Roles,
    *,
    known: list[str],
    origin: str,
    infer: bool = False,
    multiplicity: Ints | None = None,
) -> Table:
    """The Table of these columns; `infer` reads texts of a file as numbers, dates and truth values where they are."""
    records = len(next(iter(columns.values())))
    if records == 0:
        raise InputError("the table is empty", do="give a table with at least one row")
    named = {name for name, _ in roles.named()}

    def found(name: str) -> Raw:
        return raw(name, columns[name], roles.types.get(name), has_rows=multiplicity is None)

    def encoded(name: str, role: Role, builder: Builder | None) -> Column:
        return encode(name, role, found(name), builder, roles.types.get(name), infer=infer)

    with ThreadPoolExecutor(_WORKERS) as workers:
        quasi = [workers.submit(encoded, name, "quasi", builder) for name, builder in roles.quasi.items()]
        sensitive = [workers.submit(encoded, name, "sensitive", builder) for name, builder in roles.sensitive.items()]
        other = [workers.submit(encoded, name, "other", None) for name in roles.other]
        made = {column.name: column for column in (job.result() for job in quasi + sensitive + other)}
    table = Table(
        columns=tuple(made[name] for name in known if name in made),
        records=records,
        origin=origin,
        person=None if roles.person is None else _person(roles.person, found(roles.person)),
        weight=None if roles.weights is None else _weights(roles.weights, found(roles.weights)),
        multiplicity=multiplicity,
        domain=roles.domain,
        unnamed=tuple(name for name in known if name not in named),
        person_name=roles.person,
        weight_name=roles.weights,
    )
    if roles.missing == "drop":
        table = _complete(table, roles)
    return _people_are_rows(table)


def encode(name: str, role: Role, found: Raw, builder: Builder | None, kind: v.Kind | None, *, infer: bool) -> Column:
    """A column with its domain and hierarchy."""
    values = found.distinct
    if kind is not None:
        values = _as_kind(name, found, kind)
    elif infer and not (builder is not None and builder.reads_text):
        values = v.inferred(values)
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
    hierarchy = None if builder is None else builder.build(name, domain, declared=declared)
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


def _as_kind(name: str, found: Raw, kind: v.Kind) -> pa.Array:
    """The distinct values as the kind the caller asked for; the error says which row stands against it."""
    try:
        return v.as_kind(name, found.distinct, kind)
    except InputError as problem:
        for at in range(len(found.distinct)):
            try:
                v.as_kind(name, found.distinct.slice(at, 1), kind)
            except InputError:
                value = found.distinct[at].as_py()
                raise InputError(problem.what + found.where(at), do=problem.do, value=value) from None
        raise


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
        columns=tuple(_again(column, builders.get(column.name)) for column in left.columns),
        incomplete=table.rows - left.rows,
    )


def _again(column: Column, builder: Builder | None) -> Column:
    """A column some of whose records are gone, over the values that are left."""
    used = np.flatnonzero(column.present)
    place = np.zeros(len(column.values), dtype=np.int64)
    place[used] = np.arange(len(used))
    values = column.values.take(pa.array(used))
    return _column(column.name, column.role, Raw(values, ((column.codes, place),), has_rows=False), values, builder)


def _person(name: str, found: Raw) -> Ints:
    blank = found.distinct.is_null()
    if v.kind_of(found.distinct) == "text":
        blank = pc.or_(blank, pc.equal(found.distinct, "").fill_null(True))
    at = int(pc.index(blank, True).as_py())
    if at >= 0:
        raise InputError(f'person column "{name}" is empty{found.where(at)}', do="give every row a person")
    return found.codes(np.arange(len(found.distinct), dtype=np.int64))


def _people_are_rows(table: Table) -> Table:
    """Without persons where each has one row: then people are rows, and everything is simpler."""
    if table.person is None or (table.multiplicity is not None and int(table.multiplicity.max()) > 1):
        return table
    once = int(np.bincount(table.person).max()) == 1
    return replace(table, person=None) if once else table


def _weights(name: str, found: Raw) -> Floats:
    values = v.numbers(found.distinct)
    if values is None or v.kind_of(found.distinct) == "date":
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
