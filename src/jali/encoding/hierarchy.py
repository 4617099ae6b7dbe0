"""Hierarchy: a chain of coarsenings of a column, the builders that wait for their column, and taxonomies as CSV.

A `Recipe` says which builder made a hierarchy, and with which arguments.
"""

from __future__ import annotations

import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, counted, sorted_by
from jali.core.files import content, put_content
from jali.core.formats import any_length
from jali.core.text import html_table, notebook, tree_text
from jali.encoding import values as v
from jali.errors import HierarchyError, InputError, path_of

ROOT = "*"
"""How everything-at-once is shown."""
SHOWN = 8
"""So many labels of a level are shown in a notebook."""

Family = Literal[
    "bands", "mask", "dates", "suppress", "taxonomy", "prefix", "zip", "frequency", "quantiles", "grid"
]  # fmt: skip
FAMILIES: tuple[Family, ...] = get_args(Family)
TREES: frozenset[Family] = frozenset({"taxonomy", "prefix", "zip", "frequency"})
"""Families whose nodes are no runs of values in order: groups are cut along their tree."""
COUNTED: frozenset[Family] = frozenset({"frequency", "quantiles"})
"""Families whose levels follow from how many rows have each value."""
_NUMBERED: tuple[Family, ...] = ("bands", "dates", "prefix", "zip", "frequency", "quantiles", "grid")
_WORDED: tuple[Family, ...] = ("dates", "prefix", "zip")
_NUMBERS = ("origin", "low", "high", "bottom", "top", "step")
_OPTIONS: dict[Family, tuple[str, ...]] = {
    "bands": ("origin", "low", "high", "bottom", "top"),
    "dates": ("top", "on"),
    "prefix": ("separator",),
    "quantiles": ("low", "high", "step"),
}
_NUMBER = re.compile(r"-?[0-9][0-9.]*(e[+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True)
class Recipe:
    """A builder and its arguments, as a value; its text, `bands(5, 10, 20)`, is what people read."""

    family: Family
    widths: tuple[Fraction, ...] = ()  # numbers: widths of bands, lengths of prefixes, people of frequencies, …
    origin: Fraction = Fraction(0)  # of bands
    low: Fraction | None = None
    high: Fraction | None = None
    source: str | None = None  # of a taxonomy: the name of its file; never published
    words: tuple[str, ...] = ()  # units of dates, a code system, a country
    bottom: Fraction | None = None
    top: Fraction | None = None
    step: Fraction | None = None  # of quantiles
    on: str | None = None  # of dates: the day at which ages are told
    separator: str | None = None  # of prefixes

    def __str__(self) -> str:
        if self.family == "taxonomy":
            return "taxonomy" if self.source is None else f"taxonomy({self.source})"
        named = [(name, getattr(self, name)) for name in (*_NUMBERS, "on", "separator")]
        named[0] = ("origin", self.origin or None)
        options = [f"{name}={x if isinstance(x, str) else plain(x)}" for name, x in named if x is not None]
        return f"{self.family}({', '.join([*self.words, *map(plain, self.widths), *options])})"

    @classmethod
    def read(cls, text: str) -> Recipe | None:
        """The recipe that a manifest names; None for an empty text, a ValueError for any other that is no recipe.

        >>> Recipe.read("bands(5, 10, low=0.5)") == Recipe("bands", (Fraction(5), Fraction(10)), low=Fraction(1, 2))
        True
        """
        if not text or text == "taxonomy":
            return cls("taxonomy") if text else None
        name, _, inside = text.removesuffix(")").partition("(")
        family = next((known for known in FAMILIES if known == name and known != "taxonomy"), None)
        if family is None:
            raise ValueError("no hierarchy is made like this")
        parts = [part.partition("=") for part in inside.split(", ")] if inside else []
        bare = [part for part, sign, _ in parts if not sign]
        given: dict[str, Any] = {part: value for part, sign, value in parts if sign}
        numbers = [part for part in bare if _NUMBER.fullmatch(part)]
        words = [part for part in bare if part not in numbers and _WORD.fullmatch(part)]
        known = set(given) <= set(_OPTIONS.get(family, ()))
        if not known or (numbers and family not in _NUMBERED) or (words and family not in _WORDED):
            raise ValueError("no hierarchy is made like this")
        given |= {part: Fraction(value) for part, value in given.items() if part in _NUMBERS}
        made = cls(family, tuple(map(Fraction, numbers)), words=tuple(words), **given)
        if str(made) != text or (family == "bands" and made == cls("bands")):
            raise ValueError("no hierarchy is made like this")
        return made


def plain(number: Fraction) -> str:
    """A number as people write it: 5, 0.25."""
    return str(number.numerator) if number.denominator == 1 else repr(float(number))


@dataclass(frozen=True, eq=False)
class Level:
    """One level's nodes: what they are called and, for bands and dates, which interval each covers."""

    labels: pa.Array  # (nodes,) text, each once; null is the missing value
    low: Floats | None = None  # (nodes,) nan for a node that is no interval
    high: Floats | None = None  # (nodes,) the last value of it, or its end where values are fractions

    def __len__(self) -> int:
        return len(self.labels)

    def texts(self) -> list[str | None]:
        """The labels as Python strings."""
        return list(self.labels.to_pylist())


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """`maps[level][code]` is the node of a value; level 0 is the identity, the last level has a single root."""

    column: str
    maps: tuple[NDArray[np.int32], ...]  # each (values,)
    levels: tuple[Level, ...]
    declared: bool = False  # whether the values are a declared domain, not only those that occur
    chosen: bool = False  # whether jali chose it because none was given
    recipe: Recipe | None = None  # None where no builder made it
    whole: bool = True  # whether intervals hold whole numbers (or days): [20, 29]; otherwise [20, 30)
    note: str = ""  # what its holder should check, where jali chose it
    parents: tuple[NDArray[np.int32], ...] = field(init=False)  # parents[level][node] → node one level up

    def __post_init__(self) -> None:
        values = len(self.maps[0]) if self.maps else 0
        if not self.maps or not np.array_equal(self.maps[0], np.arange(values)) or len(self.levels[0]) != values:
            raise HierarchyError(f'hierarchy of "{self.column}": level 0 must be the values themselves')
        if len(self.levels[-1]) != 1:
            raise HierarchyError(
                f'hierarchy of "{self.column}": the top level must be one value that covers all',
                got=f"{len(self.levels[-1])} values",
                do='add a last column "*"',
            )
        object.__setattr__(self, "parents", tuple(self._parents(level) for level in range(1, len(self.maps))))

    def _parents(self, level: int) -> NDArray[np.int32]:
        """The node at this level of each node one level below."""
        here = self.levels[level].labels
        if len(here) > 1 and int(pc.index(here, ROOT).as_py()) >= 0:
            raise HierarchyError(
                f'hierarchy of "{self.column}": "{ROOT}" means everything, but at level {level} not all are it',
                do=f'use "{ROOT}" only where a whole level is "{ROOT}"',
            )
        below, above = self.maps[level - 1], self.maps[level]
        parent = np.zeros(len(self.levels[level - 1]), dtype=np.int32)
        parent[below] = above
        split = np.flatnonzero(parent[below] != above)
        if len(split):
            raise HierarchyError(
                f'hierarchy of "{self.column}" is not a tree: '
                f"one value of level {level - 1} lies under two of level {level}",
                do=f"give each value of level {level - 1} one value in level {level}",
                value=self.levels[level - 1].labels[int(below[split[0]])].as_py(),
            )
        return parent

    @property
    def made_by(self) -> str:
        """What made it, for people to read: "bands(5, 10, 20)"; empty where no builder did."""
        return "" if self.recipe is None else str(self.recipe)

    @property
    def height(self) -> int:
        """The number of steps from the values to the root."""
        return len(self.maps) - 1

    def node_sizes(self, level: int, mask: Bools | None = None) -> Ints:
        """How many values each node of a level covers (only those in the mask, if given): (nodes,)."""
        nodes = self.maps[level] if mask is None else self.maps[level][mask]
        return counted(nodes, length=len(self.levels[level]))

    def members(self, level: int) -> list[Ints]:
        """The codes of the values that each node of a level covers, ascending."""
        order, start = sorted_by(self.maps[level], len(self.levels[level]))
        return np.split(order, start[1:-1])

    def rows(self) -> list[tuple[str, ...]]:
        """One row per value, one text per level: the CSV form that ARX users have.

        There the missing value and the empty text look the same; where a column has both, they share a row.
        """
        columns = [self.levels[i].labels.take(pa.array(m)).to_pylist() for i, m in enumerate(self.maps)]
        rows = [tuple("" if text is None else text for text in row) for row in zip(*columns, strict=True)]
        return [row for row, value in zip(rows, columns[0], strict=True) if value is not None or "" not in columns[0]]

    def tree(self, counts: Sequence[int] | None = None) -> str:
        """The nodes as a tree in lines, the root first; `counts` are those of the values, in their order."""
        columns = [self.levels[i].labels.take(pa.array(m)).to_pylist() for i, m in enumerate(self.maps)]
        named = (tuple("(missing)" if text is None else text for text in path) for path in zip(*columns, strict=True))
        paths = [path[::-1] for path in named]
        return tree_text(paths, counts)

    def _repr_html_(self) -> str:
        rows = []
        for level, nodes in enumerate(self.levels):
            labels = ["missing" if label is None else label for label in nodes.texts()[:SHOWN]]
            more = f" and {len(nodes) - SHOWN:,} more" if len(nodes) > SHOWN else ""
            rows.append((level, f"{len(nodes):,}", ", ".join(labels) + more))
        return notebook(html_table(("Level", "Values", "Labels"), rows, caption=repr(self), numbers=(0, 1)))

    def __repr__(self) -> str:
        sizes = " → ".join(f"{len(level):,}" for level in self.levels)
        return f"Hierarchy({self.column!r}, {self.made_by or 'levels'}: {sizes} values)"


Step = tuple[NDArray[np.int32], Level]
"""A level, and the node of each value at it."""


def from_steps(column: str, values: pa.Array, steps: Iterable[Step], **facts: Any) -> Hierarchy:
    """The hierarchy of the values' texts and these levels above them; a last level with the root is added."""
    own = (np.arange(len(values), dtype=np.int32), Level(values))
    root = (np.zeros(len(values), dtype=np.int32), Level(pa.array([ROOT], pa.string())))
    maps, levels = zip(own, *steps, root, strict=True)
    return Hierarchy(column, maps, levels, **facts)


def by_label(labels: pa.Array) -> Step:
    """The level at which each value has this label: nodes in the order in which they first occur."""
    encoded = labels.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), Level(encoded.dictionary)


@dataclass(frozen=True)
class Builder(ABC):
    """A hierarchy that waits for its column: says what its values are, which there are, then what they become."""

    reads_text: ClassVar[bool] = False  # whether a file's column is read as text, so that 01234 keeps its zero
    judges_groups: ClassVar[bool] = False  # whether a sensitive column is judged by the first level's groups
    counts_rows: ClassVar[bool] = False  # whether its levels follow from how many rows have each value

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values that occur, each in its place, as the kind that this hierarchy works on."""
        return present

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The distinct values of the column in order (the missing one last), and whether they were declared."""
        return v.ordered(present), False

    def counted(self, column: str, values: pa.Array, rows: Ints) -> Builder:
        """The builder once it is known how many rows have each value, for those that count them."""
        return self

    @abstractmethod
    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """The hierarchy over these values."""


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
        return present if kind == "text" or kind == v.kind_of(v.inferred(self._texts)) else v.texts(present)

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

    @cached_property
    def _texts(self) -> pa.Array:
        return pa.array([row[0] for row in self.rows], pa.string())

    def _leaves(self, like: pa.Array) -> tuple[pa.Array, list[tuple[str, ...]]]:
        """The leaves as the kind of these values, and their rows; the empty one only where the values have it."""
        spelt = v.kind_of(like) == "text"
        leaves = self._texts if spelt else v.inferred(self._texts)
        without = spelt and int(pc.index(like, "").as_py()) < 0
        known = pc.not_equal(leaves, "") if without else leaves.is_valid()
        return leaves.filter(known), [row for row, kept in zip(self.rows, known.to_pylist(), strict=True) if kept]

    def build(self, column: str, values: pa.Array, *, declared: bool = True) -> Hierarchy:
        """The levels of the rows, then the root."""
        ladders: list[Sequence[str | None]] = list(self._leaves(values)[1])
        if values.null_count:
            missing = next((row for row in self.rows if not row[0]), ("",) * len(self.rows[0]))
            ladders.append([text or None for text in missing])
        levels = list(zip(*ladders, strict=True))[1:-1]
        steps = [by_label(pa.array(level, pa.string())) for level in levels]
        return from_steps(
            column, v.texts(values), steps, declared=declared, recipe=Recipe("taxonomy", source=self.source)
        )


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
    return rows_in(text)


def rows_in(text: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a taxonomy's text, whichever of three signs separates its levels."""
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
    return rows_text(hierarchy.rows(), separator=separator)


def rows_text(rows: Iterable[Sequence[str]], *, separator: str = ";") -> str:
    """Rows of a hierarchy as the text of such a file."""
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue()
