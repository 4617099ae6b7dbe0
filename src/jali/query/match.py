"""Which values satisfy a test of one column, and which truth values several tests can have together."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError
from jali.query.tree import Op, Scalar, Test, column_text, literal_text, number_from, shown, to_text


class Patterns(NamedTuple):
    """The distinct truth patterns of some tests, and what of each node's cover has each of them."""

    truth: Bools  # (patterns, tests)
    share: Floats  # (patterns, nodes) each node's sum is 1; nan where nothing is known of a node but what is possible
    possible: Bools  # (patterns, nodes)


class Part(NamedTuple):
    """The same for some nodes."""

    nodes: Ints  # (some nodes,)
    truth: Bools  # (patterns, tests)
    share: Floats  # (patterns, some nodes)
    possible: Bools  # (patterns, some nodes)


def numbered(truth: Bools) -> tuple[Ints, Ints]:
    """Number the distinct rows of a truth table: the number of each row, and one row of each number."""
    rows, width = len(truth), (truth.shape[1] + 7) // 8 or 1
    if rows <= 64:  # the pieces between a few literals: quicker one by one
        found: dict[bytes, int] = {}
        short = [found.setdefault(row.tobytes(), len(found)) for row in truth]
        return np.array(short, dtype=np.int64), np.array([short.index(i) for i in range(len(found))], dtype=np.int64)
    packed = np.zeros((rows, width), dtype=np.uint8)
    if truth.shape[1]:
        packed[:] = np.packbits(truth, axis=1)
    kind = pa.binary(width)
    keys = pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(packed.tobytes())])
    number = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(rows - 1, -1, -1)
    return number, first


def merged(parts: Sequence[Part], nodes: int) -> Patterns:
    """The patterns of all nodes, from those of some each; a node with one pattern has it surely."""
    if len(parts) == 1:
        _, truth, share, possible = parts[0]
    else:
        every = np.concatenate([part.truth for part in parts])
        number, first = numbered(every)
        truth, shape, at = every[first], (len(first), nodes), 0
        share, possible = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        for part in parts:
            where = np.ix_(number[at : at + len(part.truth)], part.nodes)
            share[where] += part.share
            possible[where] |= part.possible
            at += len(part.truth)
    sure = possible.sum(axis=0) == 1
    return Patterns(truth, np.where(sure | ~possible, possible, share), possible)


def folded(number: Ints, share: Floats, possible: Bools) -> tuple[Floats, Bools]:
    """Rows of the same number made one, in the order of the numbers: their summed shares, and if any is possible."""
    order = np.argsort(number, kind="stable")
    first = np.flatnonzero(np.diff(number[order], prepend=-1))
    if len(first) == len(number):
        return share[order], possible[order]
    return np.add.reduceat(share[order], first, axis=0), np.logical_or.reduceat(possible[order], first, axis=0)


Kind = Literal["number", "text", "truth", "date", "moment"]  # a moment is a datetime with a time zone
_NAMES = {"number": "numbers", "text": "text", "truth": "TRUE and FALSE", "date": "dates", "moment": "times in a zone"}
_PLAIN: dict[type, Kind | None] = {str: "text", int: "number", bool: "truth", type(None): None}  # the quick way
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)


@dataclass(frozen=True)
class _Members:
    """The values of one kind in a column, and the rows where they stand."""

    kind: Kind
    rows: Bools  # (values of the column,)
    values: NDArray[Any] | list[Any]  # (values of this kind,)


def holds(test: Test, values: Sequence[object] | NDArray[Any]) -> Bools:
    """Which of a column's values satisfy the test.

    None, NaN and NaT are missing, and satisfy only the null test. Integers and Decimals are compared exactly;
    a float with the float nearest to the literal. A literal is compared with values of its own kind: a quoted
    number with numbers, an ISO date with dates, 'true' with truth values, and a number or TRUE with text if
    all the text spells such. A date means its midnight. Where a column has no value of the literal's kind,
    that is an InputError, which never quotes the values.

    >>> holds(Test("age", ">", 30), [25, None, 41]).tolist()
    [False, False, True]
    """
    members = _members(test.column, values)
    result = np.zeros(len(values), dtype=np.bool_)
    if test.op == "null":
        for some in members:
            result |= some.rows
        return ~result
    if test.op == "like":
        return _like(test, members, result)
    literals = cast(frozenset[Scalar], test.value) if test.op == "in" else {cast(Scalar, test.value)}
    unmatched = set(literals)
    for some in members:
        for among, meaning in _comparable(literals, some, test.op):
            result[some.rows] |= _compare(among, test.op, list(meaning.values()))
            unmatched -= meaning.keys()
    if members and unmatched:
        raise _mismatch(test, min(unmatched, key=str), members[0].kind)
    return result


def _members(column: str, values: Sequence[object] | NDArray[Any]) -> list[_Members]:
    """The values of a column by kind, without the missing ones."""
    packed = _packed(values)
    if isinstance(packed, np.ndarray):
        present = ~np.isnan(packed)
        return [_Members("number", present, packed[present])] if present.any() else []
    kinds = [_PLAIN[type(value)] if type(value) in _PLAIN else _kind(column, value) for value in packed]
    found = []
    for kind in sorted({kind for kind in kinds if kind is not None}):
        some = [value for value, its in zip(packed, kinds, strict=True) if its == kind]
        if not _PLAIN.keys() >= set(map(type, some)):
            some = [_plain(value) for value in some]
        rows = np.array([its == kind for its in kinds], dtype=np.bool_)
        found.append(_Members(kind, rows, _packed(some) if kind == "number" else some))
    return found


def _packed(values: Sequence[object] | NDArray[Any]) -> NDArray[Any] | list[Any]:
    """Numbers as an array where it holds them exactly (None as NaN), anything else as a list."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iuf" and not isinstance(values, np.ma.MaskedArray):
            return values
        # numpy hands out nanoseconds as bare integers, microseconds as datetimes
        return cast(list[Any], (values.astype("M8[us]") if values.dtype.kind == "M" else values).tolist())
    listed, types = list(values), set(map(type, values))
    try:
        if types == {int}:
            return np.array(listed, dtype=np.int64)
        if types and types <= {float, type(None)}:
            return np.array(listed, dtype=np.float64)
    except OverflowError:
        pass
    return listed


def _kind(column: str, value: object) -> Kind | None:
    if isinstance(value, str):
        return "text"
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)):
        return "truth"
    if isinstance(value, Decimal):
        return None if value.is_nan() else "number"
    if isinstance(value, (int, np.integer)):
        return "number"
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else "number"
    if isinstance(value, datetime):
        if operator.ne(value, value):  # pandas' NaT is a datetime that differs from itself
            return None
        return "date" if value.utcoffset() is None else "moment"
    if isinstance(value, date):
        return "date"
    do = "convert them to numbers, text, dates or truth values"
    raise InputError(f"column {shown(column)}: values that cannot be compared", got=type(value).__name__, do=do)


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return cast(object, value.item())
    return datetime.combine(value, time()) if isinstance(value, date) and not isinstance(value, datetime) else value


def _comparable(
    literals: Iterable[Scalar], some: _Members, op: Op
) -> Iterator[tuple[NDArray[Any] | list[Any], dict[Scalar, Any]]]:
    """The values, and the literals that can be compared with them, in common terms."""
    groups: dict[Kind, list[Scalar]] = {}
    for literal in literals:
        kind: Kind = "truth" if isinstance(literal, bool) else "text" if isinstance(literal, str) else "number"
        groups.setdefault(kind, []).append(literal)
    for kind, group in groups.items():
        if kind == some.kind:
            yield some.values, {literal: literal for literal in group}
        elif kind == "text" and (some.kind != "truth" or op in ("=", "in")):
            meaning = {literal: _read(some.kind, cast(str, literal)) for literal in group}
            if known := {literal: meant for literal, meant in meaning.items() if meant is not None}:
                yield some.values, known
        elif some.kind == "text":
            spelt = {value: _read(kind, value) for value in set(some.values)}
            if None not in spelt.values():
                yield [spelt[value] for value in some.values], {literal: literal for literal in group}


def _read(kind: Kind, text: str) -> int | Decimal | bool | datetime | None:
    """What the text means as a value of that kind, if anything."""
    if kind == "number":
        return number_from(text.strip())
    if kind == "truth":
        return {"true": True, "false": False}.get(text.strip().lower())
    try:
        moment = datetime.fromisoformat(text) if _ISO.fullmatch(text) else None
    except ValueError:
        return None
    return moment if moment and (moment.tzinfo is not None) == (kind == "moment") else None


def _compare(values: NDArray[Any] | list[Any], op: Op, literals: list[Any]) -> Bools:
    if isinstance(values, np.ndarray):
        compare = _compare_floats if values.dtype.kind == "f" else _compare_integers
        each = [compare(values, "=" if op == "in" else op, literal) for literal in literals]
        return cast(Bools, np.logical_or.reduce(each, axis=0))
    exact = set(literals)
    near = {float(literal) if isinstance(literal, Decimal) else literal for literal in literals}
    if op in ("=", "in"):
        return np.array([v in (near if isinstance(v, float) else exact) for v in values], dtype=np.bool_)
    holds_for, (bound,), (near_bound,) = COMPARE[op], exact, near
    return np.array([holds_for(v, near_bound if isinstance(v, float) else bound) for v in values], dtype=np.bool_)


def _compare_integers(values: NDArray[Any], op: str, literal: int | Decimal) -> Bools:
    """Exact for any literal, since only integers that the array can hold are handed to numpy."""
    if op in (">", ">="):
        return ~_compare_integers(values, "<=" if op == ">" else "<", literal)
    limits = np.iinfo(values.dtype)
    if op == "=":
        fits = literal == int(literal) and limits.min <= literal <= limits.max
        return values == int(literal) if fits else np.zeros(len(values), dtype=np.bool_)
    most = math.floor(literal) if op == "<=" else math.ceil(literal) - 1
    return values <= most if limits.min <= most <= limits.max else np.full(len(values), most > limits.max)


def _compare_floats(values: NDArray[Any], op: str, literal: int | Decimal) -> Bools:
    """Decimals are rounded as the values were; an integer between two floats is compared exactly."""
    if isinstance(literal, Decimal):
        with np.errstate(over="ignore"):  # beyond the largest float is infinity
            return cast(Bools, COMPARE[op](values, values.dtype.type(float(literal))))
    wide, bound = values.astype(np.promote_types(values.dtype, np.float64), copy=False), float(literal)
    if bound != literal:
        if op == "=":
            return np.zeros(len(values), dtype=np.bool_)
        op = op[0] + ("=" if (bound < literal) == (op[0] == "<") else "")
    return cast(Bools, COMPARE[op](wide, bound))


def _like(test: Test, members: list[_Members], result: Bools) -> Bools:
    first, *others = [re.escape(run).replace("_", ".") for run in cast(str, test.value).split("%")]
    # each run is matched once, at its first place: atomic groups keep this linear where .*a.*a.*a would not be
    middle = "".join(f"(?>.*?{run})" for run in others[:-1])
    pattern = re.compile(first + middle + (f".*{others[-1]}" if others else ""), re.DOTALL)
    for some in members:
        if some.kind == "text":
            result[some.rows] = [pattern.fullmatch(value) is not None for value in some.values]
    if members and all(some.kind != "text" for some in members):
        raise _mismatch(test, cast(str, test.value), members[0].kind)
    return result


def _mismatch(test: Test, literal: Scalar, kind: Kind) -> InputError:
    name, op = shown(column_text(test.column)), test.op if test.op in COMPARE else "="
    advice = {
        "number": f"write a number without quotes, as in {name} {op} 30",
        "text": f"write the value in single quotes: {name} {op} {shown(literal_text(literal_text(literal)))}",
        "truth": f"write {name} = TRUE or {name} = FALSE",
        "date": "write a full date or time in single quotes, as '2020-05-01' or '2020-05-01T12:30'",
        "moment": "write the time with its offset in single quotes, as '2020-05-01T12:30+00:00'",
    }
    one = test if test.op == "like" else Test(test.column, "=" if test.op == "in" else test.op, literal)
    held = _NAMES[kind]
    if kind == "text":
        held += f", not only {_NAMES['truth' if isinstance(literal, bool) else 'number']}"
    return InputError(f"condition: column {name} holds {held}", got=shown(to_text(one)), do=advice[kind])
