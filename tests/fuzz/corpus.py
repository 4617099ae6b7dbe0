"""The valid inputs that are mutated: a table with marked values, jobs, hierarchies, queries, releases of every kind."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa

import jali

MARKER = "Zq7x"
"""Begins every text of the table, so that a message that shows one is found."""
ZIPS = [f"{MARKER}{number}" for number in (13053, 13068, 14850, 14853)]
ILLS = [f"{MARKER}{name}" for name in ("flu", "cold", "cancer", "gout")]
JOBS = ["smith", "clerk", "nurse"]

QUERIES = [
    "age = 30", "age BETWEEN 30 AND 49 AND job IN ('smith', 'clerk')", "NOT (age < 40 OR zip = 'x') AND job <> 'nurse'",
    "ill IS NULL", "zip LIKE '1%' AND age >= 20", "job = 'smith' OR job = 'clerk' OR age > 55",
]  # fmt: skip

TAXONOMY = "smith;craft;*\nclerk;office;*\nnurse;care;*\n"
ZIP_TREE = "".join(f"{name};{name[:-2]};*\n" for name in ZIPS)

_HEAD = """\
input = "{data}"
output = "out"
other = ["note"]

[quasi]
zip = {{ taxonomy = "zips.csv" }}
age = {{ bands = [5, 10, 20], low = 0, high = 119 }}
job = {{ taxonomy = "jobs.csv" }}

[sensitive]
ill = true

[types]
note = "text"
{more}
[[principles]]
name = "KAnonymity"
k = 2

[[principles]]
name = "{name}"
{parameters}
"""
METHODS = {
    "generalize": 'method = "generalize"\n',
    "suppress": 'method = "generalize"\nmissing = "drop"\n',
    "partition": 'method = "partition"\n',
    "recode": 'method = "recode"\n',
    "anatomize": 'method = "anatomize"\n',
}
SECTIONS = {
    "generalize": '[generalize]\nmetric = "kl"\nlevels = { zip = 1 }\n',
    "suppress": "[generalize]\nsuppress = 0.2\n",
    "partition": '[partition]\nmode = "relaxed"\nsplit = "range"\n',
    "recode": '[recode]\nobjective = "kl"\n',
    "anatomize": "[anatomize]\n",
}
PRINCIPLES = [
    ("DistinctDiversity", "l = 2"), ("EntropyDiversity", "l = 1.2"), ("RecursiveDiversity", "c = 3.0\nl = 2"),
    ("TCloseness", "t = 0.9"), ("AlphaAnonymity", "alpha = 0.9"), ("FrequencyDiversity", "l = 1.2"),
    ("Safety", "c = 0.95\nk = 1"),
]  # fmt: skip


def columns() -> dict[str, list[object]]:
    """Forty people; every text of theirs but the job is marked."""
    source = random.Random(7)
    rows = 40
    return {
        "name": [f"{MARKER}name{row}" for row in range(rows)],
        "zip": [source.choice(ZIPS) for _ in range(rows)],
        "age": [source.randrange(20, 70) for _ in range(rows)],
        "job": [source.choice(JOBS) for _ in range(rows)],
        "note": [f"{MARKER}note{source.randrange(3)}" for _ in range(rows)],
        "ill": [ILLS[row % 4] for row in range(rows)],
    }


def table_file() -> bytes:
    """The table as CSV."""
    data = columns()
    lines = [",".join(data), *(",".join(map(str, row)) for row in zip(*data.values(), strict=True))]
    return ("\n".join(lines) + "\n").encode()


def job(method: str, principle: tuple[str, str], data: str = "table.csv") -> str:
    """A job for the table."""
    name, parameters = principle
    text = _HEAD.format(data=data, more=SECTIONS[method], name=name, parameters=parameters)
    return METHODS[method] + text


def releases(folder: Path) -> list[Path]:
    """A release of every kind, saved."""
    table = jali.table(
        pa.table(columns()), quasi={"zip": jali.mask(), "age": jali.bands(10, 30, low=0, high=119), "job": None},
        sensitive=["ill"],
    )  # fmt: skip
    two, l = jali.KAnonymity(2), jali.DistinctDiversity(2)
    public = jali.table(pa.table(columns()), quasi={"zip": jali.mask(), "age": jali.bands(10, low=0, high=119)})
    private = jali.table(
        pa.table(columns()).slice(0, 12), quasi={"zip": jali.mask(), "age": jali.bands(10, low=0, high=119)}
    )
    made = {
        "generalized": jali.generalize(table, [two, l], suppress=0.1),
        "pdf": jali.generalize(table, [two], show="pdf"),
        "partitioned": jali.partition(table, [two, l]),
        "recoded": jali.recode(table, [two, l]),
        "buckets": jali.anatomize(table, [l]),
        "angel": jali.angelize(table, l, k=2),
        "marginals": jali.marginals(table, [two, l], time_limit=5),
        "concealed": jali.conceal(private, public, low=0.01, high=0.9),
    }
    return [release.save(folder / name) for name, release in made.items()]


def values_of(release: Path) -> str:
    """The manifest of a saved release."""
    return json.dumps(json.loads((release / "manifest.json").read_text(encoding="utf-8")))
