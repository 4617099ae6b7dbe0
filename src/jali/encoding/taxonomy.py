"""Taxonomies in the CSV form that ARX users have: no header, a row per value, a column per level."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from jali.encoding import values as v
from jali.encoding.builders import Builder
from jali.encoding.hierarchy import Hierarchy, from_labels
from jali.errors import HierarchyError, InputError


@dataclass(frozen=True)
class Taxonomy(Builder):
    """A hierarchy given value by value; its leaves are the declared domain of the column."""

    reads_text: ClassVar[bool] = True

    rows: tuple[tuple[str, ...], ...]
    source: str = "rows"

    def __post_init__(self) -> None:
        if not self.rows:
            raise HierarchyError(f"taxonomy {self.source} is empty", do="give a row per value, a column per level")
        widths = {len(row) for row in self.rows}
        if len(widths) > 1:
            number = next(i for i, row in enumerate(self.rows, 1) if len(row) != len(self.rows[0]))
            raise HierarchyError(
                f"taxonomy {self.source}: row {number} has {len(self.rows[number - 1])} levels",
                got=f"{len(self.rows[0])} in the first row",
                do="give every value the same number of levels",
            )
        seen: set[str] = set()
        for number, row in enumerate(self.rows, 1):
            if row[0] in seen:
                raise HierarchyError(f"taxonomy {self.source}: row {number} repeats a value", do="list each value once")
            seen.add(row[0])

    def _typed(self, present: pa.Array) -> pa.Array:
        """The leaves as the kind of the column where all of them can be read so, else as text."""
        leaves = pa.array([row[0] for row in self.rows], pa.string())
        kind = v.kind_of(present)
        typed = v.inferred(leaves) if kind != "text" else leaves
        return typed if v.kind_of(typed) == kind and kind != "text" else leaves

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The leaves, in the order of the rows; every value that occurs must be one of them."""
        leaves = self._typed(present)
        found = v.texts(present)
        known = set(v.texts(leaves).to_pylist())
        for text in found.to_pylist():
            if text is not None and text not in known:
                spaces = " (it has spaces around it)" if text != text.strip() else ""
                raise HierarchyError(
                    f'taxonomy {self.source} does not cover a value of column "{column}"{spaces}',
                    do="add a row for it, or use missing values / types= if it should not be there",
                    value=text,
                )
        if found.null_count:
            leaves = pa.concat_arrays([leaves, pa.nulls(1, leaves.type)])
        return leaves, True

    def build(self, column: str, values: pa.Array, *, declared: bool = True) -> Hierarchy:
        """The levels of the rows; a missing value stays itself below the root."""
        by_leaf = {row[0]: row for row in self.rows}
        by_text = dict(zip(v.texts(self._typed(values)).to_pylist(), self.rows, strict=True)) | by_leaf
        height = len(self.rows[0])
        root = self.rows[0][-1]
        rows = [
            ((None,) * (height - 1) + (root,) if text is None else (text, *by_text[text][1:]))
            for text in v.texts(values).to_pylist()
        ]
        labels = [pa.array(list(level), pa.string()) for level in zip(*rows, strict=True)]
        if height == 1:
            labels.append(pa.array(["*"] * len(rows), pa.string()))
        return from_labels(column, labels, declared=declared, made_by=f"taxonomy({self.source})")


def taxonomy(path_or_rows: str | Path | Iterable[Sequence[str]]) -> Builder:
    """A hierarchy from a CSV file (semicolon or comma, no header) or from rows of texts.

    >>> taxonomy([("Ithaca", "New York", "*"), ("Dryden", "New York", "*")]).rows[0]
    ('Ithaca', 'New York', '*')
    """
    if isinstance(path_or_rows, (str, Path)):
        return Taxonomy(_read(Path(path_or_rows)), Path(path_or_rows).name)
    rows = [tuple("" if text is None else str(text) for text in row) for row in path_or_rows]
    return Taxonomy(tuple(rows))


def _read(path: Path) -> tuple[tuple[str, ...], ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"no taxonomy file {path}", do="check the path") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"taxonomy file {path} cannot be read", got=type(problem).__name__, do="save it as UTF-8 text") from None
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = ";" if first.count(";") >= first.count(",") and ";" in first else ","
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    return tuple(tuple(row) for row in rows if row)


def write_hierarchy(hierarchy: Hierarchy, path: str | Path, *, separator: str = ";") -> None:
    """Write a hierarchy in the CSV form that ARX reads: a row per value, a column per level."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(hierarchy.rows())
