"""Small releases of every kind and display, as an earlier jali wrote them, and what is read from each.

    PYTHONPATH=tests python -m kept.releases

writes the folders beside this file, and `said.json`. Run it again only when the format of a release changes, with the
last commit before the change: the folders stand for releases that people have already published.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import jali
from jali.cli.shared import read_like
from jali.cover.cover import Cover
from jali.encoding.table import Table

HERE = Path(__file__).parent
ROWS = 24
JOBS = [("nurse", "care", "*"), ("cook", "food", "*"), ("baker", "food", "*"), ("judge", "law", "*")]
CONDITIONS = ("age >= 30", "job = 'cook'", "ill = 'flu'", "age < 40 and ill = 'flu'")


def frame() -> pa.Table:
    """Invented people."""
    age = [20 + (7 * i) % 40 for i in range(ROWS)]
    return pa.table({
        "age": pa.array([None if i == 5 else one for i, one in enumerate(age)], pa.int64()),
        "zip": [f"1{(i * 5) % 3}{i % 2}" for i in range(ROWS)],
        "job": [JOBS[(i * i + i // 5) % 4][0] for i in range(ROWS)],
        "born": [dt.date(1990 + (i * 3) % 20, 1 + i % 12, 1 + i) for i in range(ROWS)],
        "pay": [round(1.5 * ((i * 11) % 13), 1) for i in range(ROWS)],
        "sex": ["f", "m"] * (ROWS // 2),
        "ill": ["flu", "cold", "ulcer", "gout"] * (ROWS // 4),
    })  # fmt: skip


def table(*names: str, declared: bool = True) -> Table:
    """The table with these quasi-identifiers."""
    given: dict[str, Any] = {
        "age": jali.bands(5, 10, 20, origin=1, low=16, high=65) if declared else jali.bands(5, 10),
        "zip": jali.mask(), "job": jali.taxonomy(JOBS) if declared else None, "born": jali.dates(),
        "pay": jali.bands(0.5, 2.5) if declared else None, "sex": jali.suppress(),
    }  # fmt: skip
    return jali.table(frame().select([*names, "ill"]), quasi={name: given[name] for name in names}, sensitive=["ill"])


K, L = jali.KAnonymity(3), jali.FrequencyDiversity(2)
ALL = ("age", "zip", "job", "born", "pay", "sex")
LEVELS = {"age": 3, "zip": 3, "job": 1, "born": 5, "pay": 3, "sex": 0}


def private() -> Table:
    """Some of the people."""
    return _without_taxonomy(frame().select(["age", "job", "ill"]).take([*range(0, ROWS, 2), 1, 3]), ["ill"])


def public() -> Table:
    """Everybody, as the public knows them."""
    return _without_taxonomy(frame().select(["age", "job"]), [])


def _without_taxonomy(rows: pa.Table, sensitive: list[str]) -> Table:
    return jali.table(rows, quasi={"age": jali.bands(5, 10), "job": None}, sensitive=sensitive)


def _oddly() -> Table:
    """Ages under a taxonomy whose nodes are no runs of numbers."""
    rows = [(str(age), "odd" if age % 2 else "even", "*") for age in range(20, 60)]
    people = frame().select(["age", "ill"]).drop_null()
    return jali.table(people, quasi={"age": jali.taxonomy(rows)}, sensitive=["ill"])


def _table(*names: str, declared: bool = True) -> Callable[[], Table]:
    return lambda: table(*names, declared=declared)


MADE: dict[str, tuple[Callable[[], Table], Callable[[Table], Any]]] = {
    "levels-declared": (_table(*ALL), lambda t: jali.generalize(t, [K], levels=LEVELS, suppress=0.9)),
    "levels-undeclared": (
        _table("age", "zip", "job", declared=False),
        lambda t: jali.generalize(t, [jali.KAnonymity(2)], levels={"age": 2, "zip": 2, "job": 0}, suppress=0.95),
    ),
    "levels-exact": (
        _table("zip", "pay", declared=False),
        lambda t: jali.generalize(t, [jali.KAnonymity(1)], levels={"zip": 0, "pay": 0}),
    ),
    "levels-dates": (_table("born", "sex"), lambda t: jali.generalize(t, [K], levels={"born": 4, "sex": 0})),
    "levels-top": (
        _table("age", "zip", declared=False),
        lambda t: jali.generalize(t, [K], levels={"age": 3, "zip": 3}),
    ),
    "levels-sets": (_table("age", "job"), lambda t: jali.generalize(t, [K], show="set")),
    "levels-intervals": (_table("age", "job"), lambda t: jali.generalize(t, [K], show={"age": "interval"})),
    "partition-default": (_table("age", "job"), lambda t: jali.partition(t, [K])),
    "partition-taxonomy": (_table(*ALL), lambda t: jali.partition(t, [K], show="taxonomy")),
    "partition-undeclared": (
        _table("age", "zip", "job", declared=False),
        lambda t: jali.partition(t, [K], show="taxonomy"),
    ),
    "partition-set": (_table("age", "zip"), lambda t: jali.partition(t, [K], show="set")),
    "partition-pdf": (
        _table("age", "job"),
        lambda t: jali.partition(t, [K], show="pdf", towards=0.5, start="set"),
    ),
    "partition-crossing": (_oddly, lambda t: jali.partition(t, [K], show="interval")),
    "hidden-mixed": (
        _table("age", "job", declared=False),
        lambda t: jali.generalize(
            t, [jali.KAnonymity(2)], levels={"age": 2, "job": 0}, show={"age": "interval", "job": "pdf"}, suppress=0.9
        ),
    ),
    "hidden-sets": (
        _table("zip", "job"),
        lambda t: jali.generalize(t, [jali.KAnonymity(2)], levels={"zip": 0, "job": 0}, show="set", suppress=0.9),
    ),
    "recode": (_table("age", "job"), lambda t: jali.recode(t, [K])),
    "public-ends": (_table("age", "born", "pay", "job", declared=False), lambda t: jali.partition(t, [K])),
    "public-sets": (_table("age", "zip", "job", declared=False), lambda t: jali.recode(t, [K], show="set")),
    "buckets": (_table("age", "job"), lambda t: jali.anatomize(t, L)),
    "buckets-generalized": (
        _table("age", "job"),
        lambda t: jali.anatomize(t, L, buckets="partition", generalized=True),
    ),
    "angel": (
        _table("age", "job"),
        lambda t: jali.angelize(t, L, k=3, batches="partition", buckets="partition"),
    ),
    "marginals": (_table("age", "job", "sex"), lambda t: jali.marginals(t, [K, jali.EntropyDiversity(2)])),
    "concealed": (private, lambda t: jali.conceal(t, public(), low=0.2, high=0.9)),
    "concealed-pdf": (private, lambda t: jali.conceal(t, public(), low=0.2, high=0.9, show="pdf")),
}


def _or_refused(told: Callable[[], Any]) -> Any:
    """What is told, or why it is not."""
    try:
        return told()
    except jali.InputError as problem:
        return f"refused: {problem}"


def _cover(cover: Cover) -> str:
    """What the nodes of a column cover, in one short text."""
    values = None if cover.values is None else cover.values.to_pylist()
    arrays = [one.tolist() for one in (cover.start, cover.member, cover.share, cover.low, cover.high)]
    told = [cover.nodes, cover.kind, cover.whole, cover.masks, cover.missing, cover.guessed, *arrays, values]
    return _digest(json.dumps(told, default=str))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def said(release: Any, original: Table) -> dict[str, Any]:
    """What is read from a release: its summary, its audit, counts of people, and its measures for the holder."""
    estimate = release.estimate()
    names = {column.name for column in release.columns}
    asked = [one for one in CONDITIONS if ("age" in names or "age" not in one) and ("job" in names or "job" not in one)]
    counted = {one: _or_refused(lambda one=one: repr(estimate.count(one))) for one in asked}
    return {
        "summary": _digest(repr(release)),
        "audit": _digest(" ".join(re.findall(r"\d[\d.,]*", str(jali.audit(release))))),  # figures; words may change
        "counts": counted,
        "kl": _or_refused(lambda: jali.measure(release, original).kl),
        "covers": {column.name: _cover(column.cover) for column in release.columns},
    }


def read_again(release: Any, file: Path) -> str:
    """What the original is when it is read with the hierarchies that the release tells of."""
    return _digest(str(_or_refused(lambda: repr(read_like(release, file)))))


def original_file(folder: Path) -> Path:
    """All invented people as a CSV file."""
    from pyarrow import csv

    path = folder / "people.csv"
    csv.write_csv(frame(), path)
    return path


def main() -> None:
    """Write all folders."""
    import tempfile

    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        file = original_file(Path(temporary))
        for name, (table_of, publish) in MADE.items():
            original = table_of()
            release = jali.load(publish(original).save(HERE / name, overwrite=True))
            told[name] = said(release, original) | {"read": read_again(release, file)}
    (HERE / "said.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
