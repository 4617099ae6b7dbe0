"""Make src/jali/datasets/frequencies.json from the Adult table named by the environment variable JALI_ADULT.

    JALI_ADULT=... python tools/census_frequencies.py > src/jali/datasets/frequencies.json

The file holds pair counts along a small graph in which every column has at most two parents, themselves joined, and
nothing else about the people. Which people are counted is decided here, once, for all the tables:

1. Drop everyone who falls into a cell under 5 of one of the pair tables; count again; repeat until no cell is.
   Every table then counts the same people, so two tables agree on each column they share, a column's own counts are
   sums of published cells, and subtracting one published number from another never uncovers a hidden cell.
2. Three tables that form a triangle could still pin a cell of the three columns together. Whoever falls into such a
   cell under 5 is dropped too, unless an exchange of four people against four others lowers that cell by one and
   leaves all published tables as they are. Then no combination of the three columns of a triangle, nor of all nine
   columns, that 1 to 4 counted people share can be worked out: one of all nine would have to equal one of its triangles
   (Dobra and Fienberg 2000, bounds of decomposable tables), and that one can be lowered.
3. A value that lost all its people keeps its place in the domain, with a public round count: its people to the
   nearest multiple of 5, at least 5. It stands in no pair table, so there is nothing to subtract it from.

The graph was grown from each starting pair by the information that two parents' tables carry about a new column, less
a charge for people in small cells. It keeps 82 % of the mutual information of all 36 pairs; the best tree keeps 65 %.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.datasets import columns

SMALLEST = 5
COLUMNS = (*columns.QUASI, "occupation", "salary-class")
PARENTS: dict[str, tuple[str, ...]] = {  # in the order of drawing
    "marital-status": (),
    "education": ("marital-status",),
    "occupation": ("marital-status", "education"),
    "age": ("marital-status", "education"),
    "salary-class": ("marital-status", "education"),
    "sex": ("marital-status", "occupation"),
    "workclass": ("marital-status", "occupation"),
    "race": ("marital-status", "occupation"),
    "native-country": ("marital-status", "race"),
}
EDGES = [(parent, column) for column, parents in PARENTS.items() for parent in parents]
TRIANGLES = [(*parents, column) for column, parents in PARENTS.items() if len(parents) == 2]

Codes = dict[str, NDArray[np.int64]]  # column: (people,)
ABOUT = {
    "what": "Pair counts from which jali samples its demo census. No row of the source is here.",
    "source": "Adult, B. Becker and R. Kohavi (1996), UCI Machine Learning Repository, doi:10.24432/C5XW20, CC BY 4.0; "
    "changed: complete rows of both files, counted in pairs, small cells dropped.",
    "made by": "tools/census_frequencies.py",
}
SAFETY = [
    "No cell is under 5. A pair that is not listed has nobody among the people counted here.",
    "All tables count the same people: those left after dropping, again and again, everyone in a cell under 5 of any "
    "table. So tables that share a column agree on its counts, and no subtraction uncovers a hidden cell.",
    "No combination of three columns joined in pairs, or of all nine, that 1 to 4 counted people share can be worked "
    "out from the tables: an exchange that keeps every table lowers it (checked by the script for each such cell).",
    "A value in 'rare' lost all its people. Its count is rounded to a multiple of 5, at least 5, and it is in no pair.",
]


def read(path: Path) -> tuple[dict[str, list[str]], Codes]:
    """The domain of each column, as text, and the code of each person in it."""
    with path.open(newline="", encoding="utf-8") as lines:
        people = list(csv.DictReader(lines))
    domains, codes = {}, {}
    for column in COLUMNS:
        seen = [person[column] for person in people]
        listed = column in columns.QUASI
        domains[column] = [row[0] for row in columns.rows(column)] if listed else sorted(set(seen))
        code = {value: i for i, value in enumerate(domains[column])}
        codes[column] = np.array([code[value] for value in seen], dtype=np.int64)
    return domains, codes


def count(codes: Codes, columns: Iterable[str], sizes: dict[str, int]) -> NDArray[np.int64]:
    """How many people have each combination of values of the columns, one axis a column."""
    columns = tuple(columns)
    shape = tuple(sizes[column] for column in columns)
    flat = np.ravel_multi_index([codes[column] for column in columns], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def in_small_pairs(codes: Codes, sizes: dict[str, int]) -> NDArray[np.bool_]:
    """Who falls into a cell under 5 of a pair table."""  # (people,)
    small = np.zeros(len(codes["age"]), dtype=np.bool_)
    for a, b in EDGES:
        small |= count(codes, (a, b), sizes)[codes[a], codes[b]] < SMALLEST
    return small


def in_pinned_triples(codes: Codes, sizes: dict[str, int]) -> NDArray[np.bool_]:
    """Who falls into a cell under 5 of a triangle that no exchange can lower."""  # (people,)
    hit = np.zeros(len(codes["age"]), dtype=np.bool_)
    for a, b, c in TRIANGLES:
        n = count(codes, (a, b, c), sizes)
        pinned = np.zeros(n.shape, dtype=np.bool_)
        for i, j, k in np.argwhere((n > 0) & (n < SMALLEST)):
            pinned[i, j, k] = not can_be_lowered(n > 0, i, j, k)
        hit |= pinned[codes[a], codes[b], codes[c]]
    return hit


def can_be_lowered(held: NDArray[np.bool_], i: int, j: int, k: int) -> bool:
    """Whether some i', j', k' have people in (i, j', k'), (i', j, k') and (i', j', k).

    One person fewer in each of these and in (i, j, k), one more in (i', j, k), (i, j', k), (i, j, k') and
    (i', j', k'), keeps all three pair tables.
    """
    # Without i, j and k themselves, what is left of each plane is indexed by i', j', k' only.
    front = np.delete(np.delete(held[i], j, 0), k, 1).astype(np.int64)  # (j', k')
    side = np.delete(np.delete(held[:, j], i, 0), k, 1).astype(np.int64)  # (i', k')
    top = np.delete(np.delete(held[:, :, k], i, 0), j, 1)  # (i', j')
    return bool(((side @ front.T > 0) & top).any())


def counted(codes: Codes, sizes: dict[str, int]) -> Codes:
    """The people who are left when no cell is small and none can be worked out."""
    while True:
        drop = in_small_pairs(codes, sizes)
        if not drop.any():
            drop = in_pinned_triples(codes, sizes)
        if not drop.any():
            return codes
        codes = {column: code[~drop] for column, code in codes.items()}


def frequencies(path: Path) -> dict[str, Any]:
    """What the file holds."""
    domains, everyone = read(path)
    sizes = {column: len(values) for column, values in domains.items()}
    left = counted(everyone, sizes)
    rare: dict[str, dict[str, int]] = {}
    for column, values in domains.items():
        before, after = count(everyone, (column,), sizes), count(left, (column,), sizes)
        gone = np.flatnonzero(after == 0)
        if gone.size:
            rare[column] = {values[i]: max(SMALLEST, 5 * round(before[i] / 5)) for i in gone}
    pairs = []
    for a, b in EDGES:
        cells: dict[str, dict[str, int]] = {}
        n = count(left, (a, b), sizes)
        for i, j in np.argwhere(n):
            cells.setdefault(domains[a][i], {})[domains[b][j]] = int(n[i, j])
        pairs.append({"columns": [a, b], "cells": cells})
    return {
        "about": ABOUT,
        "safety": SAFETY,
        "people": len(left["age"]),
        "domains": {c: [int(v) for v in values] if c == "age" else values for c, values in domains.items()},
        "parents": {column: list(parents) for column, parents in PARENTS.items()},
        "rare": rare,
        "pairs": pairs,
    }


def text(value: Any, depth: int = 0) -> str:
    """JSON with a line for each thing whose parts hold no further parts."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    prose = any(isinstance(part, str) and " " in part for part in parts)
    if not prose and not any(isinstance(part, dict | list) for part in parts):
        return json.dumps(value, ensure_ascii=False)
    indent, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, dict):
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {text(part, depth + 1)}" for key, part in value.items()]
        return "{" + indent + ("," + indent).join(lines) + end + "}"
    return "[" + indent + ("," + indent).join(text(part, depth + 1) for part in value) + end + "]"


if __name__ == "__main__":
    if "JALI_ADULT" not in os.environ:
        sys.exit("JALI_ADULT is not set; set it to the path of the Adult table as one CSV file with a header.")
    found = frequencies(Path(os.environ["JALI_ADULT"]))
    print(text(found))
    print(f"{found['people']} people counted; rare: {json.dumps(found['rare'])}", file=sys.stderr)
