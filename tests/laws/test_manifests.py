"""A manifest that was changed by accident is refused when it is loaded, or means something; it is never a bug."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jali
from fuzz import corpus
from jali.encoding.table import Table
from jali.errors import InputError


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition whose cells are sets, so that its manifest has leaves, members and labels."""
    table = jali.table(pa.table(corpus.columns()), quasi={"job": None, "age": None}, sensitive=["ill"])
    return jali.partition(table, [jali.KAnonymity(2)], show="set").save(tmp_path_factory.mktemp("m") / "out")


CHANGES = {
    "a number beyond 64 bits": lambda c: c[1]["hierarchy"].update(members=[[10**30]] * 9),
    "a member that is no leaf": lambda c: c[1]["hierarchy"].update(members=[[0.5]] * 9),
    "a leaf that is no text": lambda c: c[1]["hierarchy"].update(leaves=[[1]] * 9),
    "a name that is no text": lambda c: c[0].update(name=7),
    "a value judged as none": lambda c: c[-1].update(judged_as=[99] * 4),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_manifest_is_refused_when_it_is_loaded(saved: Path, what: str) -> None:
    """Small cases of what `make fuzz` found."""
    path = saved / "manifest.json"
    before = path.read_text(encoding="utf-8")
    facts = json.loads(before)
    CHANGES[what](facts["columns"])
    assert facts != json.loads(before)
    path.write_text(json.dumps(facts), encoding="utf-8")
    try:
        with pytest.raises(InputError, match="does not describe its tables"):
            jali.load(saved)
    finally:
        path.write_text(before, encoding="utf-8")
    jali.load(saved)


@pytest.mark.parametrize("judged_as", [2, [0], [0, 99], [[0], [1]], [-1, 0]])
def test_marginals_whose_values_are_judged_as_none_are_refused_when_they_are_loaded(
    tmp_path: Path, judged_as: object
) -> None:
    """One judged value for each value, among those that are there."""
    table = jali.table(pa.table({"a": list("xxyy") * 2, "s": list("pq") * 4}), quasi=["a"], sensitive=["s"])
    saved = jali.marginals(table, [jali.KAnonymity(2), jali.DistinctDiversity(2)]).save(tmp_path / "out")
    path = saved / "manifest.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    assert facts["columns"][-1]["facts"]["judged_as"] == [0, 1]
    facts["columns"][-1]["facts"]["judged_as"] = judged_as
    path.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InputError, match="does not describe its tables"):
        jali.load(saved)


KINDS: dict[str, Callable[[Table], Any]] = {
    "generalized": lambda t: jali.generalize(t, [jali.KAnonymity(2)]),
    "buckets": lambda t: jali.anatomize(t, jali.FrequencyDiversity(2)),
    "angel": lambda t: jali.angelize(t, jali.FrequencyDiversity(2), k=2, marginals=[["age"]]),
    "marginals": lambda t: jali.marginals(t, [jali.KAnonymity(2)]),
}


def of_kind(kind: str, folder: Path, **roles: Any) -> Path:
    """A release of this kind, in Parquet files."""
    rows = pa.table(
        {
            "age": [1, 2, 1, 2] * 5,
            "ill": list("abcde") * 4,
            "who": [row // 2 for row in range(20)],
            "w": [1.5, 2.5] * 10,
        }
    )
    table = jali.table(rows, **({"quasi": ["age"], "sensitive": ["ill"]} | roles))
    return KINDS[kind](table).save(folder / "out", format="parquet")  # type: ignore[no-any-return]


def with_tables(folder: Path, change: Callable[[str, pa.Table], pa.Table]) -> Path:
    """The release with its tables changed, and their digests in the manifest with them."""
    path = folder / "manifest.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    for name, told in facts["files"].items():
        if told["table"] is not None:
            pq.write_table(change(told["table"], pq.read_table(folder / name)), folder / name)
            told["sha256"] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    path.write_text(json.dumps(facts), encoding="utf-8")
    return folder


@pytest.mark.parametrize("roles", [{}, {"weights": "w"}, {"person": "who"}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_the_manifest_does_not_name_is_refused(kind: str, roles: Any, tmp_path: Path) -> None:
    """No promise was judged with it, and it may single people out."""
    if (kind, *roles) in (("marginals", "weights"), *((own, "person") for own in KINDS if own != "generalized")):
        return  # which this kind refuses
    facts = json.loads((of_kind(kind, tmp_path, **roles) / "manifest.json").read_text(encoding="utf-8"))
    jali.load(tmp_path / "out")
    for changed in {told["table"] for told in facts["files"].values()} - {None}:

        def longer(name: str, rows: pa.Table, changed: str = changed) -> pa.Table:
            return rows.append_column("id", pa.array(range(rows.num_rows))) if name == changed else rows

        folder = with_tables(Path(shutil.copytree(tmp_path / "out", tmp_path / changed)), longer)
        with pytest.raises(InputError, match=r"do not hold what its manifest describes|does not fit"):
            jali.audit(jali.load(folder))


@pytest.mark.parametrize("kind", ["generalized", "buckets", "angel"])
@pytest.mark.parametrize("role", ["bogus", "person", "batch"])
def test_a_column_of_no_known_role_is_refused(kind: str, role: str, tmp_path: Path) -> None:
    """Neither the promises nor what an audit says of other columns would be about it."""
    path = of_kind(kind, tmp_path) / "manifest.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    facts["columns"][0]["role"] = role
    facts["counts"] |= {"groups": 1} if kind == "generalized" else {}
    path.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InputError, match="does not describe its tables"):
        jali.load(path.parent)


def test_a_column_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    path = of_kind("generalized", tmp_path) / "manifest.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    facts["columns"].append(facts["columns"][0])
    path.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InputError, match="describes"):
        jali.load(path.parent)


def test_a_table_that_the_manifest_does_not_describe_is_refused(tmp_path: Path) -> None:
    folder = of_kind("generalized", tmp_path)
    (folder / "raw.parquet").write_bytes((folder / "data.parquet").read_bytes())
    path = folder / "manifest.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    facts["files"]["raw.parquet"] = facts["files"]["data.parquet"] | {"table": "raw"}
    path.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InputError, match="do not hold what its manifest describes"):
        jali.load(folder)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [{"q": ["x"]}, {"age": ["1"], "ill": [["a"]], "bucket": [1], "batch": [None]}])
def test_files_of_different_columns_are_no_table(kind: str, other: Any, tmp_path: Path) -> None:
    folder = of_kind(kind, tmp_path)
    pq.write_table(pa.table(other), folder / "more.parquet")
    path = folder / "manifest.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    digest = hashlib.sha256((folder / "more.parquet").read_bytes()).hexdigest()
    facts["files"]["more.parquet"] = next(iter(facts["files"].values())) | {"sha256": digest}
    path.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InputError, match=r"are not of one table|cannot be read") as problem:
        jali.load(folder)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_whose_columns_share_names_is_no_table(kind: str, tmp_path: Path) -> None:
    folder = with_tables(
        of_kind(kind, tmp_path), lambda _, rows: pa.table(rows.columns * 2, names=rows.column_names * 2)
    )
    with pytest.raises(InputError, match=r"cannot be read|does not describe its tables"):
        jali.load(folder)


def test_a_file_of_a_name_that_there_cannot_be_is_missing(tmp_path: Path) -> None:
    path = of_kind("generalized", tmp_path) / "manifest.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    for name in ("x" * 5000, "\0", "..", ""):
        path.write_text(json.dumps(facts | {"files": {name: facts["files"]["data.parquet"]}}), encoding="utf-8")
        with pytest.raises(InputError, match="lacks"):
            jali.load(path.parent)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 400])
def test_figures_that_are_no_numbers_are_refused(number: str, tmp_path: Path) -> None:
    """They would be found when the release is shown."""
    path = of_kind("generalized", tmp_path) / "manifest.json"
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r'"average": [0-9.]+', f'"average": {number}', text)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(InputError, match="does not describe its tables"):
        jali.load(path.parent)


def test_marginals_whose_people_add_up_to_few_in_64_bits_are_refused(tmp_path: Path) -> None:
    """Four times 2**62 are 0."""

    def many(_: str, rows: pa.Table) -> pa.Table:
        people = rows["people"].to_pylist()
        if len(people) > 4:
            people = [*[2**62] * 4, sum(people) - len(people) + 5, *[1] * (len(people) - 5)]
        return rows.set_column(rows.column_names.index("people"), "people", pa.array(people))

    with pytest.raises(InputError, match="does not describe its tables"):
        jali.load(with_tables(of_kind("marginals", tmp_path), many))


def test_people_of_a_group_are_said_once(tmp_path: Path) -> None:
    """Of two numbers the second would count."""

    def doubled(name: str, rows: pa.Table) -> pa.Table:
        return pa.concat_tables([rows.slice(0, 1), rows]) if name == "people" else rows

    release = jali.load(with_tables(of_kind("generalized", tmp_path, person="who"), doubled))
    with pytest.raises(InputError, match="does not fit the published table"):
        jali.audit(release)
