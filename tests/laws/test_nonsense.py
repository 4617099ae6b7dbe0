"""Laws of nonsense: whatever is passed in place of a table, a requirement or a release, the answer is one line."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jali
from jali.errors import InputError

TABLE = jali.datasets.census(rows=300, seed=0, quasi=["age", "sex", "race"])
LACKING = jali.datasets.census(rows=300, seed=0, quasi=["age", "sex"])
K = [jali.KAnonymity(3)]
DISTINCT = [jali.DistinctDiversity(2)]
RELEASE = jali.generalize(TABLE, K)
MAKERS: dict[str, Callable[..., Any]] = {
    "generalize": jali.generalize,
    "partition": jali.partition,
    "recode": jali.recode,
    "anatomize": jali.anatomize,
    "angelize": jali.angelize,
    "marginals": jali.marginals,
    "frontier": jali.frontier,
    "minimal": jali.minimal,
    "chain": jali.disclosure.chain,
}


def refused(call: Callable[[], object]) -> str:
    """The one line that the call is answered with."""
    with pytest.raises(InputError) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    ("nonsense", "got"),
    [
        (None, "NoneType"), (5, "int"), (jali.KAnonymity, "the class KAnonymity"), ("k", "str"), ([5], "int"),
        ([jali.KAnonymity], "the class KAnonymity"),
    ],
)  # fmt: skip
def test_a_requirement_is_principles(maker: str, nonsense: object, got: str) -> None:
    line = refused(lambda: MAKERS[maker](TABLE, nonsense))
    assert line == f"a requirement is a list of principles: got {got}; e.g. [KAnonymity(5)]"


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    "nonsense",
    [pd.DataFrame({"age": [1, 2]}), RELEASE, None, 5, "people.csv", np.zeros((2, 2))],
    ids=lambda nonsense: type(nonsense).__name__,
)
def test_a_table_is_a_jali_table(maker: str, nonsense: object) -> None:
    line = refused(lambda: MAKERS[maker](nonsense, K))
    got = type(nonsense).__name__
    assert line == f"{maker} needs a jali table: got {got}; use jali.read or jali.table"


@pytest.mark.parametrize("nonsense", [TABLE, pd.DataFrame({"age": [1]}), None, 5], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("attacks", lambda given: jali.attacks(given, TABLE)),
        ("measure", lambda given: jali.measure(given, TABLE)),
        ("repair", lambda given: jali.repair(given, K)),
        ("beliefs", lambda given: jali.beliefs(given, TABLE)),
    ],
)
def test_a_release_is_a_release(name: str, ask: Callable[[object], object], nonsense: object) -> None:
    assert refused(lambda: ask(nonsense)).startswith(f"{name} needs a release: got {type(nonsense).__name__}; ")


@pytest.mark.parametrize("nonsense", [3, [], (), 2.5])
def test_a_curve_needs_numbers(nonsense: Any) -> None:
    for ask in (jali.disclosure.Tracker([[2, 1]]).curve, lambda ks: jali.disclosure.curve(RELEASE, ks)):
        assert "a curve needs a list of numbers k" in refused(lambda ask=ask: ask(nonsense))  # type: ignore[misc]


@pytest.mark.parametrize("nonsense", [5, [], [5], ["age"], {"age": 1}, "age"])
def test_a_chain_is_a_list_of_nodes(nonsense: Any) -> None:
    safe = [jali.Safety(0.9, k=1)]
    assert "a chain is a list of nodes" in refused(lambda: jali.disclosure.chain(TABLE, safe, chain=nonsense))


@pytest.mark.parametrize("nonsense", [5, None, 2.5, "age"])
def test_rules_are_asked_for_by_a_list(nonsense: Any) -> None:
    assert "rules must be True, False or a list" in refused(lambda: jali.measure(RELEASE, TABLE, rules=nonsense))


@pytest.mark.parametrize("nonsense", [-1, 2.5, None, "many"])
def test_queries_are_a_number(nonsense: Any) -> None:
    assert refused(lambda: jali.measure(RELEASE, TABLE, queries=nonsense)).startswith("queries must be a")


@pytest.mark.parametrize("nonsense", [5, None, 2.5, {"age": 1}])
def test_an_audit_says_what_it_takes(nonsense: Any) -> None:
    line = refused(lambda: jali.audit(nonsense))
    assert line.startswith("audit takes a release, its folder, a list of releases, a jali table or a frame: got ")
    assert "not a frame" in refused(lambda: jali.audit(nonsense, quasi=["age"]))


KINDS = ("generalized", "buckets", "angel", "marginals")


@pytest.fixture(scope="module")
def releases() -> dict[str, Any]:
    """One release of each of several kinds."""
    diverse = [jali.FrequencyDiversity(3)]
    made = jali.anatomize(TABLE, diverse), jali.angelize(TABLE, diverse, k=3), jali.marginals(TABLE, K)
    return dict(zip(KINDS, (RELEASE, *made), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nonsense", [5, None, 2.5])
def test_a_frame_and_a_folder_are_asked_for_by_name(releases: dict[str, Any], kind: str, nonsense: Any) -> None:
    """Nothing is written, and no traceback is shown."""
    release = releases[kind]
    assert refused(lambda: release.estimate().frame(nonsense)).startswith("the columns of a frame are a list of names")
    for ask in (release.save, jali.load):
        assert refused(lambda ask=ask: ask(nonsense)).startswith("a path is text: got ")  # type: ignore[misc]


@pytest.mark.parametrize("nonsense", [5, b"title", ["a"]])
def test_a_title_is_text(nonsense: Any) -> None:
    pytest.importorskip("matplotlib")
    assert refused(lambda: jali.report(RELEASE, title=nonsense)).startswith("title must be text")


@pytest.mark.parametrize("make", ["generalize", "partition", "marginals", "anatomize", "angelize"])
def test_the_original_has_every_column_of_the_release(make: str) -> None:
    """As `measure` refuses a table that lacks one, so does the report."""
    pytest.importorskip("matplotlib")
    diverse: dict[str, Any] = {
        "anatomize": [jali.FrequencyDiversity(3)],
        "angelize": [jali.FrequencyDiversity(3), *K],
    }
    release = MAKERS[make](TABLE, diverse.get(make, K))
    asked = [lambda: jali.measure(release, LACKING), lambda: jali.report(release, LACKING)]
    assert {refused(ask) for ask in asked} == {'no column "race" in the table; known: age, sex, occupation'}


# Whatever is passed.

NONSENSE: list[Any] = [
    None, True, 5, -1, 2.5, "no such thing", "two\nlines", "long " * 1000, b"text", [], ["age"], [[]], {"age": 1},
    object(), np.array(3), np.array([1, 2]), np.array([[1.5]]), pd.DataFrame({"age": ["x"]}), int, TABLE, RELEASE,
    "\0", "\ud800", "",
]  # fmt: skip
COUNTS = [[2, 2, 1], [2, 1, 1, 1]]
ASKED: dict[str, tuple[Callable[[Any], object], list[object]]] = {
    "knowledge": (lambda x: jali.disclosure.maximum(COUNTS, 1, knowledge=x), []),
    "sensitive": (lambda x: jali.disclosure.maximum(RELEASE, 1, sensitive=x), [None]),
    "sensitive of a principle": (lambda x: jali.generalize(TABLE, [jali.Safety(0.9, 1, sensitive=x)]), [None]),
    "ks": (lambda x: jali.disclosure.curve(COUNTS, x), [np.array([1, 2])]),
    "kind of a curve": (lambda x: jali.disclosure.curve(COUNTS).frame(x), []),
    "kind of a frame": (RELEASE.frame, [None]),
    "plot": (lambda x: jali.disclosure.curve(COUNTS).plot(x), []),
    "knowledge of risk": (lambda x: jali.disclosure.risk(COUNTS, x), [[]]),
    "confidence": (lambda x: jali.disclosure.risk(COUNTS, confidence=x), []),
    "a file of knowledge": (jali.disclosure.read_knowledge, []),
    "a person": (lambda x: jali.disclosure.risk(COUNTS, (), jali.disclosure.Atom(x, "0")), []),
    "atoms": (jali.disclosure.Implication, []),
    "one more bucket": (lambda x: jali.disclosure.Tracker(COUNTS).add(x), [5, np.array(3), np.array([1, 2])]),
    "a bucket that goes": (lambda x: jali.disclosure.Tracker(COUNTS).remove(x), []),
    "a chain": (lambda x: jali.disclosure.chain(TABLE, K, chain=x), [None]),
    "mode": (lambda x: jali.partition(TABLE, K, mode=x), []),
    "split": (lambda x: jali.partition(TABLE, K, split=x), [None]),
    "split of equal halves": (lambda x: jali.partition(TABLE, DISTINCT, split=x, transparent=True), [None]),
    "split of sizes": (lambda x: jali.partition(TABLE, K, split=x, transparent=True), [None]),
    "mode of sizes": (lambda x: jali.partition(TABLE, K, mode=x, transparent=True), []),
    "transparent": (lambda x: jali.partition(TABLE, K, transparent=x), [True, False]),
    "a transparent frontier": (lambda x: jali.frontier(TABLE, K, transparent=x), [True, False]),
    "similarity": (lambda x: jali.partition(TABLE, K, similarity=x), []),
    "show": (lambda x: jali.partition(TABLE, K, show=x), [None]),
    "start": (lambda x: jali.partition(TABLE, K, show="pdf", start=x), []),
    "objective": (lambda x: jali.recode(TABLE, K, objective=x), []),
    "peel": (lambda x: jali.recode(TABLE, K, peel=x), []),
    "on_step": (lambda x: jali.partition(TABLE, K, on_step=x), [None, int]),
    "buckets": (lambda x: jali.anatomize(TABLE, [jali.FrequencyDiversity(3)], buckets=x), [{"age": 1}]),
    "assignment": (RELEASE.assignment, [TABLE]),
    "load": (jali.load, []),
}


def equal(one: object, other: object) -> bool:
    """Whether both are the same thing."""
    return one is other or (type(one) is type(other) and repr(one) == repr(other))


@pytest.mark.parametrize("asked", ASKED)
def test_whatever_is_passed_the_answer_is_one_line(asked: str) -> None:
    """A text, an array, a frame, a class: what is not understood is refused, and said in one line that can be read."""
    ask, understood = ASKED[asked]
    for nonsense in NONSENSE:
        if not any(equal(nonsense, one) for one in understood):
            assert len(refused(functools.partial(ask, nonsense))) < 1_000


@pytest.mark.parametrize("asked", ASKED)
def test_no_answer_repeats_what_stands_in_a_frame(asked: str) -> None:
    """A frame that was passed in the wrong place may be the original: a message is kept in logs."""
    ask, _ = ASKED[asked]
    frame = pd.DataFrame({"name": ["Hannah"], "ill": ["mumps"]})
    for given in (frame, frame["name"], frame.to_numpy()):
        line = refused(functools.partial(ask, given))
        assert "Hannah" not in line
        assert "mumps" not in line


@pytest.mark.parametrize("nonsense", [pd.Series(["Hannah"]), np.array(["Hannah"]), pd.DataFrame({"name": ["Hannah"]})])
def test_no_answer_about_a_number_repeats_what_stands_in_a_frame(nonsense: Any) -> None:
    asks: list[Callable[[Any], object]] = [
        lambda x: jali.disclosure.maximum(COUNTS, x), lambda x: jali.disclosure.Tracker(COUNTS, most=x),
        lambda x: jali.Safety(x, 1), lambda x: jali.Safety(0.5, x), jali.KAnonymity,
        lambda x: jali.partition(TABLE, K, suppress=x), lambda x: jali.partition(TABLE, K, threads=x),
        lambda x: jali.disclosure.risk(COUNTS, samples=x), lambda x: jali.disclosure.risk(COUNTS, seed=x),
        lambda x: jali.generalize(TABLE, K, levels={"age": x}),
    ]  # fmt: skip
    for ask in asks:
        assert "Hannah" not in refused(functools.partial(ask, nonsense))


@pytest.mark.parametrize("folder", [None, 5, "", "\0", "\ud800", "x" * 5_000, b"out", []])
def test_a_release_is_saved_in_a_folder_that_has_a_name(
    folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least of all in the place of the folder one stands in."""
    monkeypatch.chdir(tmp_path)
    refused(lambda: RELEASE.save(folder))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", ["1e999999999", "1E+99999", "-1e-99999"])
def test_a_number_that_no_one_could_write_out_is_refused_at_once(number: str) -> None:
    asks: list[Callable[[Any], object]] = [
        lambda c: jali.Safety(c, 1), jali.KAnonymity, lambda k: jali.disclosure.maximum(COUNTS, k),
    ]  # fmt: skip
    for ask in asks:
        assert " must be a" in refused(functools.partial(ask, number))


# What stands in a folder.


@pytest.fixture(scope="module")
def saved(releases: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The releases, in folders."""
    folder = tmp_path_factory.mktemp("saved")
    return {kind: release.save(folder / kind) for kind, release in releases.items()}


def copied(source: Path, target: Path) -> Path:
    """The folder once more."""
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def edited(folder: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """The folder, its manifest changed."""
    path = folder / "manifest.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    edit(told)
    path.write_text(json.dumps(told), encoding="utf-8")
    return folder


PARTS = ("kind", "jali", "method", "principles", "counts", "metrics", "domain", "earlier_releases", "columns")
WRONG: dict[str, tuple[object, ...]] = {
    part: tuple(
        wrong
        for wrong in (None, 5, [5], {"a": None}, [], {}, "text")
        if not (part in ("metrics", "domain") and wrong == {})  # a release may have none
        and not (part in ("principles", "earlier_releases") and wrong == [])
        and not (part in ("jali", "kind") and wrong == "text")
    )
    for part in PARTS
}


@pytest.mark.parametrize("kind", ["generalized", "buckets", "angel", "marginals"])
@pytest.mark.parametrize("part", PARTS)
def test_a_manifest_has_the_shape_it_was_written_in(
    saved: dict[str, Path], tmp_path: Path, kind: str, part: str
) -> None:
    for number, wrong in enumerate(WRONG[part]):
        folder = copied(saved[kind], tmp_path / str(number))
        edited(folder, lambda told, wrong=wrong: told.__setitem__(part, wrong))  # type: ignore[misc]
        assert "does not describe its tables" in refused(lambda folder=folder: jali.load(folder)), wrong  # type: ignore[misc]


@pytest.mark.parametrize("wrong", [None, 5, [], {}, "text", ["table", "rows", "sha256"], {"table": [], "rows": 1}])
@pytest.mark.parametrize("key", [None, "table", "rows", "sha256"])
def test_what_a_manifest_says_of_files_has_its_shape(
    saved: dict[str, Path], tmp_path: Path, key: str | None, wrong: object
) -> None:
    if (key, wrong) in (("table", "text"), ("table", None), ("sha256", "text"), ("rows", 5)):
        return  # of the right shape

    def edit(told: dict[str, Any]) -> None:
        if key is None:
            told["files"]["data.csv"] = wrong
        else:
            told["files"]["data.csv"][key] = wrong

    folder = edited(copied(saved["generalized"], tmp_path / "one"), edit)
    assert "is not a manifest that jali can read" in refused(lambda: jali.load(folder))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\xff\xfea,b\n1,2\n", b"\n", b"\x00", b'"', b"age\n1,2\n"])
def test_a_file_that_is_no_table_is_refused_though_its_digest_fits(
    saved: dict[str, Path], tmp_path: Path, content: bytes
) -> None:
    folder = copied(saved["generalized"], tmp_path / "one")
    (folder / "data.csv").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edited(folder, lambda told: told["files"]["data.csv"].__setitem__("sha256", digest))
    line = refused(lambda: jali.load(folder))
    assert "data.csv cannot be read: got not a table" in line or "does not describe its tables" in line


@pytest.mark.parametrize("maker", ["generalize", "partition", "recode"])
def test_what_is_told_how_far_the_work_is_must_be_a_function(maker: str) -> None:
    assert refused(lambda: MAKERS[maker](TABLE, K, on_step=3)).startswith("on_step must be a function: got int")
