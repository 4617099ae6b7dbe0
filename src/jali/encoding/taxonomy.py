"""Taxonomies in the CSV form that ARX users have: no header, a row per value, a column per level."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jali.encoding import values as v
from jali.encoding.builder import Builder
from jali.encoding.fields import any_length
from jali.encoding.hierarchy import Hierarchy, by_label, from_steps
from jali.errors import HierarchyError, InputError, path_of
from jali.reading import content
from jali.writing import put_content


@dataclass(frozen=True)
class Taxonomy(Builder):
    """A hierarchy given value by value; its leaves are the declared domain of the column.

    A row whose value is empty says what a missing value becomes; without one it stays itself below the root.
    """

    reads_text: ClassVar[bool] = True

    rows: tuple[tuple[str, ...], ...]
    source: str = "rows"

    def __post_init__(self) -> None:
        if not self.rows or not self.rows[0]:
            raise HierarchyError(f"taxonomy {self.source} is empty", do="give a row per value, a column per level")
        seen: set[str] = set()
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.rows[0]):
                raise HierarchyError(
                    f"taxonomy {self.source}: row {number} has {len(row)} levels",
                    got=f"{len(self.rows[0])} in the first row",
                    do="give every value the same number of levels",
                )
            if row[0] in seen:
                raise HierarchyError(f"taxonomy {self.source}: row {number} repeats a value", do="list each value once")
            seen.add(row[0])
            if len(row) > 1 and row[-1] != self.rows[0][-1]:
                raise HierarchyError(
                    f"taxonomy {self.source}: row {number} ends in another value than row 1",
                    do='the last level must be one value that covers all: add a last column "*"',
                )

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as they are where the leaves can be read as the same kind, so that 39 is "39"; else as text."""
        kind = v.kind_of(present)
        return present if kind in ("text", v.kind_of(v.inferred(self._texts))) else v.texts(present)

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The leaves, in the order of the rows; every value that occurs must be one of them."""
        leaves, _ = self._leaves(present)
        if len(pc.unique(leaves)) < len(leaves):
            raise HierarchyError(
                f'taxonomy {self.source}: two rows are the same {v.kind_of(leaves)} in column "{column}"',
                do=f'list each value once, or read the column as text: types={{"{column}": "text"}}',
            )
        uncovered = (v.places(leaves, present) < 0) & present.is_valid().to_numpy(zero_copy_only=False)
        if uncovered.any():
            value = present[int(np.argmax(uncovered))].as_py()
            spaces = " (it has spaces around it)" if isinstance(value, str) and value != value.strip() else ""
            raise HierarchyError(
                f'taxonomy {self.source} does not cover a value of column "{column}"{spaces}',
                do=f'add a row for it or correct it (types={{"{column}": "number"}} makes 39, 39.0 and 039 one value)',
                value=value,
            )
        if present.null_count:
            leaves = pa.concat_arrays([leaves, pa.nulls(1, leaves.type)])
        return leaves, True

    @property
    def _texts(self) -> pa.Array:
        return pa.array([row[0] for row in self.rows], pa.string())

    def _leaves(self, like: pa.Array) -> tuple[pa.Array, list[tuple[str, ...]]]:
        """The leaves as the kind of these values, and their rows; the empty one only where the values have it."""
        leaves = self._texts
        if v.kind_of(like) != "text":
            leaves = v.inferred(leaves)
            known = leaves.is_valid()
        elif int(pc.index(like, "").as_py()) < 0:
            known = pc.not_equal(leaves, "")
        else:
            known = leaves.is_valid()
        return leaves.filter(known), [row for row, kept in zip(self.rows, known.to_pylist(), strict=True) if kept]

    def build(self, column: str, values: pa.Array, *, declared: bool = True) -> Hierarchy:
        """The levels of the rows, then the root."""
        ladders: list[Sequence[str | None]] = list(self._leaves(values)[1])
        if values.null_count:
            missing = next((row for row in self.rows if not row[0]), ("",) * len(self.rows[0]))
            ladders.append([text or None for text in missing])
        levels = list(zip(*ladders, strict=True))[1:-1]
        steps = [by_label(pa.array(level, pa.string())) for level in levels]
        return from_steps(column, v.texts(values), steps, declared=declared, made_by=f"taxonomy({self.source})")


def taxonomy(path_or_rows: str | Path | Iterable[Sequence[object]]) -> Builder:
    """A hierarchy from a CSV file (semicolon or comma, no header) or from rows of texts.

    >>> taxonomy([("Ithaca", "New York", "*"), ("Dryden", "New York", "*")]).rows[0]
    ('Ithaca', 'New York', '*')
    """
    if isinstance(path_or_rows, (str, Path)):
        return Taxonomy(_read(Path(path_or_rows)), Path(path_or_rows).name)
    rows = []
    for number, row in enumerate(path_or_rows, 1):
        if isinstance(row, str):
            raise HierarchyError(
                f"taxonomy: row {number} is a text", do='give each row as a tuple: ("Ithaca", "New York", "*")'
            )
        rows.append(tuple(_label(given) for given in row))
    return Taxonomy(tuple(rows))


def _label(given: object) -> str:
    if isinstance(given, float) and given.is_integer():
        return str(int(given))
    return "" if given is None else str(given)


def _read(path: Path) -> tuple[tuple[str, ...], ...]:
    try:
        text = content(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"no taxonomy file {path}", do="check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"taxonomy file {path} is not valid UTF-8", do="save it as UTF-8 text") from None
    except OSError as problem:
        raise InputError(f"taxonomy file {path} cannot be read", got=problem.strerror, do="name a CSV file") from None
    return max((_split(text, separator) for separator in (";", ",", "\t")), key=_regular)


def _split(text: str, separator: str) -> tuple[tuple[str, ...], ...]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    with any_length():
        return tuple(tuple(row) for row in rows if row)


def _regular(rows: tuple[tuple[str, ...], ...]) -> tuple[bool, bool]:
    """How well a separator fits: it separates something, and the same number of fields in every row."""
    return bool(rows) and len(rows[0]) > 1, len({len(row) for row in rows}) == 1


def write_hierarchy(hierarchy: Hierarchy, path: str | Path, *, separator: str = ";") -> None:
    """Write a hierarchy in the CSV form that ARX reads: a row per value, a column per level."""
    put_content(path_of(path), hierarchy_text(hierarchy, separator=separator), overwrite=True)


def hierarchy_text(hierarchy: Hierarchy, *, separator: str = ";") -> str:
    """A hierarchy as the text of such a file."""
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(hierarchy.rows())
    return out.getvalue()
