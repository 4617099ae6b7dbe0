"""Mutations: valid inputs made wrong in the ways in which files and typed texts go wrong."""

from __future__ import annotations

import copy
import io
import json
import random
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TOKENS = [
    b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\\", b"=",
    b"[", b"]", b"{", b"}", b"(", b")", b"*", b"%", b"-1", b"0", b"1e308", b"-0.0", b"nan", b"inf", b"9" * 40, b"null",
    b"true", b"false", "é".encode(), "\u2028".encode(), "🏥".encode(), b"A" * 3000, b"2020-02-30", b"1/0", b"0.1.2",
    b"..", b"/", b"~", b"NaN", b"#", b"[[", b"]]", b"'''", b'"""', b"PAR1", b"\x1f\x8b", b"BZh", b"PK\x03\x04",
]  # fmt: skip
JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 10**30, 1e308, -0.5, 0.1, "", "x", "*", "nan", "quasi", "number", [], {}, [None],
    [[]], [0], ["a", "a"], {"a": 1}, {"": None}, "é\u2028", "A" * 2000, [1, "a", None], -(2**63),
]  # fmt: skip
NUMBERS = ["0", "-1", "1", "2", "3", "7", "1.5", "1e308", "-0.0", "1e-300", "0.5", "9" * 20, "9" * 40, "nan", "inf"]


def mutated_bytes(data: bytes, source: random.Random) -> bytes:
    """Bytes after one to four small accidents."""
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        data = source.choice(_ACCIDENTS)(data, source)
    return data


def _flip(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + bytes([source.randrange(256)]) + data[at + 1 :]


def _insert(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + source.choice(TOKENS) + data[at:]


def _replace(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + source.choice(TOKENS) + data[at + source.randrange(8) :]


def _cut(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + data[at + source.choice((1, 2, 5, 50, len(data))) :]


def _repeat(data: bytes, source: random.Random) -> bytes:
    at, many = source.randrange(len(data) + 1), source.choice((1, 5, 40))
    return data[: at + many] + data[at:]


def _lines(data: bytes, source: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        one, other = source.randrange(len(lines)), source.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
        if source.random() < 0.5:
            del lines[source.randrange(len(lines))]
    return b"".join(lines)


def _number(data: bytes, source: random.Random) -> bytes:
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if not found:
        return data
    at = source.choice(found)
    return data[: at.start()] + source.choice(NUMBERS).encode() + data[at.end() :]


def _word(data: bytes, source: random.Random) -> bytes:
    """One word in the place of another of the same text."""
    found = list(re.finditer(rb"[A-Za-z_]{2,}", data))
    if len(found) < 2:
        return data
    at, other = source.sample(found, 2)
    return data[: at.start()] + other[0] + data[at.end() :]


_ACCIDENTS = (_flip, _insert, _insert, _replace, _cut, _repeat, _lines, _number, _number, _word)


def mutated_json(text: str, source: random.Random) -> str:
    """JSON in which something has another value, is gone, or stands twice."""
    data = json.loads(text)
    for _ in range(source.choice((1, 1, 2))):
        holder, key = source.choice(list(_places(data)))
        action = source.random()
        if action < 0.6:
            holder[key] = copy.deepcopy(source.choice(JUNK))
        elif action < 0.75:
            del holder[key]
        else:
            _, other = held = source.choice(list(_places(data)))
            holder[key] = copy.deepcopy(held[0][other])
        if not data:
            break
    return json.dumps(data)


def _places(data: Any) -> Any:
    """Every place in nested JSON: the list or object, and the key in it."""
    keys = range(len(data)) if isinstance(data, list) else list(data) if isinstance(data, dict) else ()
    for key in keys:
        yield data, key
        yield from _places(data[key])


_TYPES = [
    pa.string(), pa.large_string(), pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(),
    pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin"), pa.decimal128(20, 3), pa.binary(), pa.null(),
    pa.time64("us"), pa.duration("s"), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int64()),
    pa.struct([("a", pa.int64())]),
]  # fmt: skip


def mutated_parquet(table: pa.Table, source: random.Random) -> bytes:
    """A Parquet file in which columns have other types or values, or whose bytes were damaged."""
    columns = {name: table[name] for name in table.column_names}
    for _ in range(source.choice((0, 1, 2))):
        name = source.choice(list(columns))
        columns[name] = _other_column(columns[name], source)
    if source.random() < 0.2:
        del columns[source.choice(list(columns))]
    if source.random() < 0.1:
        columns[source.choice(["zip", "", "=x", "\n"])] = pa.array(range(table.num_rows))
    out = io.BytesIO()
    try:
        pq.write_table(pa.table(columns).slice(0, source.choice((0, 1, 2, 1000, 1000, 1000))), out)
    except (pa.ArrowException, ValueError):
        pq.write_table(table, out)
    data = out.getvalue()
    return mutated_bytes(data, source) if source.random() < 0.4 else data


def _other_column(column: pa.ChunkedArray, source: random.Random) -> pa.ChunkedArray:
    action, rows = source.random(), len(column)
    try:
        if action < 0.5:
            return column.cast(source.choice(_TYPES), safe=False)
        if action < 0.7:
            values = [source.choice([*column.to_pylist(), None]) for _ in range(rows)]
            return pa.chunked_array([pa.array(values)])
        kind = source.choice(_TYPES)
        strange = [0, -1, None, "x", float("nan"), float("inf"), True, b"\xff", 2**62, 10**30]
        return pa.chunked_array([pa.array([source.choice(strange)] * rows).cast(kind, safe=False)])
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.chunked_array([pa.nulls(rows, source.choice(_TYPES[:8]))])


_WORDS = [
    "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "=", "<>", "!=", "<", ">", "<=", ">=", "(", ")", ",",
    "zip", "age", "job", "ill", '"age"', "'flu'", "'*'", "''", '""', "''''", "30", "-1", "1e308", "3.5", "'30'", "*",
    "é", "'", '"', "--", ";", "TRUE", "2020-01-01", "'2020-01-01'", "'%'", "'_'", "9" * 30, "nan", "\0", "\n",
]  # fmt: skip


def mutated_query(text: str, source: random.Random) -> str:
    """A condition with some words changed, or words at random."""
    if source.random() < 0.3:
        return " ".join(source.choice(_WORDS) for _ in range(source.choice((0, 1, 3, 8, 30))))
    if source.random() < 0.4:
        return mutated_bytes(text.encode(), source).decode("utf-8", "replace")
    words = text.split(" ")
    for _ in range(source.choice((1, 2, 3))):
        at = source.randrange(len(words) + 1)
        words[at : at + source.choice((0, 1, 1, 2))] = [source.choice(_WORDS)]
    deep = source.choice((0, 0, 0, 1, 300))
    return "(" * deep + source.choice(("", "", "NOT " * source.choice((1, 500)))) + " ".join(words) + ")" * deep
