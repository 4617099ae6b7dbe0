"""From raw columns to a Table: roles, kinds, domains, hierarchies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.encoding import values as v
from jali.encoding.builders import Automatic, Builder, builder_of
from jali.encoding.table import Column, Domain, Role, Table, check_roles
from jali.errors import HierarchyError, InputError, nearest

Missing = Literal["keep", "drop"]


@dataclass(frozen=True)
class Roles:
    """What each column is for, as the caller said it."""

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
        roles += [(self.person, "person")] if self.person else []
        roles += [(self.weights, "weights")] if self.weights else []
        return roles

    def check(self, known: list[str]) -> None:
        """Raise InputError when a name is unknown, doubled, or in two roles."""
        doubled = sorted({name for name in known if known.count(name) > 1})
        if doubled:
            raise InputError(f'column name "{doubled[0]}" occurs more than once', do="rename one of them")
        check_roles(self.named(), known)
        for name in self.types:
            if name not in known:
                raise InputError(f'types: no column "{name}" in the table', do=nearest(name, known))


def roles_of(
    quasi: Mapping[str, object] | Iterable[str],
    sensitive: Mapping[str, object] | Iterable[str],
    other: Iterable[str],
    person: str | None,
    weights: str | None,
    types: Mapping[str, v.Kind] | None,
    missing: Missing,
    domain: Domain,
) -> Roles:
    """The caller's arguments in one checked form."""
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
        return {str(name): builder for name, builder in given.items()}
    names = [str(name) for name in given]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'{role} names column "{name}" twice')
    return dict.fromkeys(names)


@dataclass(frozen=True, eq=False)
class Raw:
    """A column as it came: distinct values (null among them if it occurs) and the code of each record."""

    distinct: pa.Array
    codes: NDArray[np.int64]


def raw(name: str, column: pa.ChunkedArray | pa.Array) -> Raw:
    """Distinct values and codes of an Arrow column; NaN counts as missing, infinity is refused."""
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1 else column
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(_plain(name, column), null_encoding="mask")
    dictionary = _plain(name, column.dictionary)
    indices = column.indices
    codes = indices.fill_null(len(dictionary)).to_numpy(zero_copy_only=False) if indices.null_count else indices.to_numpy()
    occurs = np.bincount(codes, minlength=len(dictionary) + 1) > 0
    distinct = pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)])
    if dictionary.null_count or len(pc.unique(dictionary)) < len(dictionary) or not occurs.all():
        # categories that do not occur, that repeat or that are null: number what is really there
        again = pc.dictionary_encode(distinct.filter(pa.array(occurs)), null_encoding="encode")
        renumber = np.full(len(occurs), -1, dtype=np.int64)
        renumber[occurs] = again.indices.to_numpy()
        return Raw(again.dictionary, renumber[codes])
    return Raw(distinct, codes)


def _plain(name: str, values: pa.Array) -> pa.Array:
    """Values of a type that jali knows; others are refused with the reason."""
    kind = values.type
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())
        if bool(pc.any(pc.is_inf(values)).as_py()):
            row = int(np.argmax(np.isinf(values.to_numpy(zero_copy_only=False)))) + 1
            raise InputError(f'column "{name}" holds an infinite number', got=f"row {row}", do="replace it or leave it empty")
        return pc.if_else(pc.is_nan(values), None, values)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.string())
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_decimal(kind):
        return values
    if pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_date(kind):
        return values.cast(pa.date32())
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us"), safe=False)
    if pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return values
    if pa.types.is_dictionary(kind):
        return _plain(name, values.dictionary_decode())
    raise InputError(f'column "{name}" has a type that cannot be published', got=str(kind), do=f'turn it into text or numbers first')


def encode(name: str, role: Role, found: Raw, builder: Builder | None, kind: v.Kind | None, *, from_text: bool) -> Column:
    """A column with its domain and hierarchy."""
    distinct = found.distinct
    if kind is not None:
        distinct = v.as_kind(name, distinct, kind)
    elif from_text and not (builder is not None and builder.reads_text):
        distinct = v.inferred(distinct)
    try:
        values, declared = builder.domain(name, distinct) if builder else (v.ordered(distinct), False)
    except HierarchyError as problem:
        raise _located(problem, found, distinct) from None
    position = _position(values, distinct)
    codes = position[found.codes].astype(_smallest(len(values)))
    hierarchy = builder.build(name, values, declared=declared) if builder else None
    if role == "sensitive" and isinstance(builder, Automatic):
        hierarchy = None
    return Column(name, role, values, codes, hierarchy, bool(builder and builder.judges_groups))


def _position(values: pa.Array, distinct: pa.Array) -> NDArray[np.int64]:
    """Where each distinct value stands in the domain; texts meet typed values by how they read."""
    if values.type != distinct.type:
        values, distinct = v.texts(values), v.texts(distinct)
    return pc.index_in(distinct, values).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def _smallest(values: int) -> type[np.integer]:
    return np.uint8 if values <= 2**8 else np.uint16 if values <= 2**16 else np.int32


def _located(problem: HierarchyError, found: Raw, distinct: pa.Array) -> HierarchyError:
    """The same error with the row where the offending value first stands."""
    texts = v.texts(distinct).to_pylist()
    wanted = None if problem.value is None else str(problem.value)
    if wanted not in texts or problem.value is None:
        return problem
    row = int(np.argmax(found.codes == texts.index(wanted))) + 1
    return HierarchyError(f"{problem.what}, row {row}", got=problem.got, do=problem.do, value=problem.value)


def assemble(
    columns: dict[str, pa.ChunkedArray], roles: Roles, *, known: list[str], from_text: bool, origin: str,
    multiplicity: NDArray[np.int64] | None = None,
) -> Table:  # fmt: skip
    """The Table of these columns."""
    records = len(next(iter(columns.values())))
    if records == 0:
        raise InputError("the table is empty", do="give a table with at least one row")
    found = {name: raw(name, column) for name, column in columns.items()}
    person = _person(roles.person, found, counted=multiplicity is not None)
    weight = _weights(roles.weights, found)
    made: dict[str, Column] = {}
    for name, builder in roles.quasi.items():
        made[name] = encode(name, "quasi", found[name], builder, roles.types.get(name), from_text=from_text)
    for name, sensitive_builder in roles.sensitive.items():
        made[name] = encode(name, "sensitive", found[name], sensitive_builder, roles.types.get(name), from_text=from_text)
    for name in roles.other:
        made[name] = encode(name, "other", found[name], None, roles.types.get(name), from_text=from_text)
    named = [name for name, _ in roles.named()]
    table = Table(
        tuple(made[name] for name in known if name in made),
        records,
        origin,
        person,
        weight,
        multiplicity,
        roles.domain,
        tuple(name for name in known if name not in named),
        0,
        roles.person,
        roles.weights,
    )
    return without_missing(table) if roles.missing == "drop" else table


def without_missing(table: Table) -> Table:
    """Only the rows in which no column is missing; the table says how many were dropped."""
    from dataclasses import replace

    keep = np.ones(table.records, dtype=bool)
    for column in table.columns:
        if column.values.null_count:
            keep &= column.codes != len(column.values) - 1
    if keep.all():
        return table
    if not keep.any():
        raise InputError("every row has a missing value", do='use missing="keep"')
    multiplicity = None if table.multiplicity is None else table.multiplicity[keep]
    left = table._take(np.flatnonzero(keep), multiplicity)
    return replace(left, incomplete=table.rows - left.rows)


def _person(name: str | None, found: dict[str, Raw], *, counted: bool) -> NDArray[np.int64] | None:
    if name is None:
        return None
    column = found[name]
    missing = column.distinct.is_null().to_numpy(zero_copy_only=False)[column.codes]
    if missing.any():
        raise InputError(f'person column "{name}" is empty in row {int(np.argmax(missing)) + 1}', do="give every row a person")
    person = column.codes.astype(np.int64)
    once = len(np.unique(person)) == len(person) and not counted
    return None if once else person  # one row each: people are rows


def _weights(name: str | None, found: dict[str, Raw]) -> NDArray[np.float64] | None:
    if name is None:
        return None
    column = found[name]
    values = v.numbers(v.inferred(column.distinct) if v.kind_of(column.distinct) == "text" else column.distinct)
    if values is None:
        raise InputError(f'weights column "{name}" must hold numbers')
    weight = values[column.codes]
    wrong = ~(weight >= 0)
    if wrong.any():
        raise InputError(f'weights column "{name}" is missing or negative in row {int(np.argmax(wrong)) + 1}')
    if not weight.sum() > 0:
        raise InputError(f'weights column "{name}" sums to zero')
    return weight
