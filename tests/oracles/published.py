"""Small tables of every sort, and a published folder read with nothing but the csv module."""

from __future__ import annotations

import csv
import datetime
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.principles.base import Principle
from jali.releases.generalized import Generalized

TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*"), ("e", "y", "*")]
_DAYS = [datetime.date(2020, 1, 1), datetime.date(2020, 2, 29), datetime.date(2021, 5, 5), None]
# column → its values and how they may be generalized
QUASI: dict[str, tuple[list[Any], list[Any]]] = {
    "age": ([30, 31, 36, 47, None], [jali.bands(5, 10), jali.bands(10, low=20, high=59), jali.suppress(), None]),
    "zip": (["13053", "13068", "148", "14853", "", None], [jali.mask(), jali.suppress(), None]),
    "tree": (["a", "b", "c", None], [jali.taxonomy(TREE)]),
    "born": (_DAYS, [jali.dates(), None]),
    "member": ([True, False, None], [jali.suppress()]),
    "height": ([1.5, 1.75, 2.0, None], [jali.bands(0.5), jali.suppress()]),
}
SENSITIVE: dict[str, tuple[list[Any], list[Any]]] = {
    "ill": (["flu", "cold", "", "None", "*", None], [None]),
    "pay": ([100, 150, 1200, 2500, None], [None, jali.bands(100, 1000)]),
    "kind": (["a", "b", "d", None], [None, jali.taxonomy(TREE)]),
}


@st.composite
def tables(draw: st.DrawFn, *, persons: bool | None = False, sensitive: int | None = None) -> Table:
    """Tables with nulls, the empty text beside them, ties, single values, and every kind of hierarchy and column."""
    rows = draw(st.integers(2, 12))
    quasi = draw(st.lists(st.sampled_from(list(QUASI)), min_size=1, max_size=3, unique=True))
    least = 1 if sensitive is None else sensitive
    told = draw(st.lists(st.sampled_from(list(SENSITIVE)), min_size=least, max_size=sensitive or 2, unique=True))
    frame: dict[str, list[Any]] = {}
    for name in [*quasi, *told]:
        values = (QUASI | SENSITIVE)[name][0]
        some = draw(st.lists(st.sampled_from(values), min_size=1, max_size=len(values), unique_by=repr))
        frame[name] = draw(st.lists(st.sampled_from(some), min_size=rows, max_size=rows))
    frame["name"] = [f"unnamed {row}" for row in range(rows)]
    roles: dict[str, Any] = {
        "quasi": {name: draw(st.sampled_from(QUASI[name][1])) for name in quasi},
        "sensitive": {name: draw(st.sampled_from(SENSITIVE[name][1])) for name in told},
        "domain": draw(st.sampled_from(["declared", "present"])),
    }
    if draw(st.booleans()):
        frame["ward"] = draw(st.lists(st.sampled_from(["A", "B", None]), min_size=rows, max_size=rows))
        roles["other"] = ["ward"]
    if draw(st.booleans()):
        frame["w"] = draw(st.lists(st.sampled_from([0.5, 1.0, 2.25]), min_size=rows, max_size=rows))
        roles["weights"] = "w"
    if persons or (persons is None and draw(st.booleans())):
        frame["who"] = draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows))
        roles["person"] = "who"
    types = {
        "name": pa.string(),
        "ward": pa.string(),
        "born": pa.date32(),
        "member": pa.bool_(),
        "height": pa.float64(),
    }
    types |= {"age": pa.int64(), "pay": pa.int64(), "w": pa.float64(), "who": pa.int64()}
    return jali.table(pa.table({n: pa.array(c, types.get(n, pa.string())) for n, c in frame.items()}), **roles)


@st.composite
def requirements(draw: st.DrawFn, table: Table) -> list[Principle]:
    """One or two principles that fit the table's columns."""
    column = draw(st.sampled_from([c.name for c in table.sensitive]))
    some = [
        jali.KAnonymity(1),
        jali.KAnonymity(2),
        jali.KAnonymity(3),
        jali.KAnonymity(table.people),
        jali.DistinctDiversity(2, sensitive=column),
        jali.EntropyDiversity(1.5, sensitive=column),
        jali.FrequencyDiversity(1.5, sensitive=column),
        jali.RecursiveDiversity(3, 2, sensitive=column),
        jali.TCloseness(0.4, sensitive=column),
    ]
    return draw(st.lists(st.sampled_from(some), min_size=1, max_size=2, unique=True))


def publish(data: st.DataObject, table: Table) -> Generalized | None:
    """A release of the table, the best or any node, or None where there is none."""
    levels = None
    if data.draw(st.booleans(), label="given levels"):
        levels = {c.name: data.draw(st.integers(0, table.hierarchy(c.name).height), label=c.name) for c in table.quasi}
    suppress = data.draw(st.sampled_from([0, 0.3, 0.9]), label="suppress")
    try:
        return jali.generalize(table, data.draw(requirements(table)), suppress=suppress, levels=levels)
    except (InfeasibleError, InputError):
        return None


def raw_rows(path: Path) -> Iterator[dict[str, str | None]]:
    """The rows of a CSV file that jali wrote; an empty field without quotes is None."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()  # no test value holds a line break
    header = next(csv.reader([lines[0]]))
    for line in lines[1:]:
        cells = next(csv.reader([line])) if line else [""]
        quoted = next(csv.reader([line], quoting=csv.QUOTE_NONE)) if line else [""]
        if len(quoted) != len(cells):  # a comma within quotes: [30, 34]
            quoted = _quoted(line)
        yield {n: None if q == "" else c for n, c, q in zip(header, cells, quoted, strict=True)}


def _quoted(line: str) -> list[str]:
    """The fields with their quotes."""
    fields, inside = [""], False
    for letter in line:
        inside ^= letter == '"'
        if letter == "," and not inside:
            fields.append("")
        else:
            fields[-1] += letter
    return fields


class Folder:
    """A published folder as anybody sees it: groups, and how many people of each have each value."""

    def __init__(self, folder: Path) -> None:
        self.manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        columns = self.manifest["columns"]
        self.quasi = [c["name"] for c in columns if c["role"] == "quasi"]
        self.told = {c["name"]: c for c in columns if c["role"] == "sensitive"}
        self.rows = list(raw_rows(folder / "data.csv"))
        people = folder / "people.csv"
        self.people = list(raw_rows(people)) if people.exists() else None

    def judged(self, column: str, value: str | None) -> str | None:
        """The value that a sensitive cell counts as: itself, or its band."""
        facts = self.told[column]
        found: str | None = facts["judged_values"][facts["judged_as"][facts["values"].index(value)]]
        return found

    def key(self, row: dict[str, str | None]) -> tuple[str | None, ...]:
        return tuple(row[name] for name in self.quasi)

    def sizes(self) -> dict[tuple[str | None, ...], int]:
        """People of each group."""
        if self.people is None:
            return dict(Counter(self.key(row) for row in self.rows))
        return {
            self.key(r): int(r["people"] or 0)
            for r in self.people
            if r["scope"] == "group" and not r["sensitive column"]
        }

    def counts(self, column: str) -> dict[tuple[str | None, ...], Counter[str | None]]:
        """People of each group by value of a sensitive column; where that is not published, as many as rows allow."""
        result: dict[tuple[str | None, ...], Counter[str | None]] = defaultdict(Counter)
        told = [r for r in self.people or [] if r["scope"] == "group" and r["sensitive column"] == column]
        for row in told:
            result[self.key(row)][row["value"]] += int(row["people"] or 0)
        if told:
            return result
        for row in self.rows:
            result[self.key(row)][self.judged(column, row[column])] += 1
        sizes = self.sizes()
        return {key: Counter({v: min(n, sizes[key]) for v, n in found.items()}) for key, found in result.items()}

    def whole(self, column: str) -> Counter[str | None]:
        """People of the whole table by value."""
        if self.people is None:
            return Counter(self.judged(column, row[column]) for row in self.rows)
        found = [r for r in self.people if r["scope"] == "table" and r["sensitive column"] == column]
        return Counter({r["value"]: int(r["people"] or 0) for r in found})
