"""Laws of releases: what was published is what was promised, and what is read back is what was published."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.core import files as writing
from jali.core.rows import Rows
from jali.encoding.table import Table
from jali.errors import InputError, InternalError
from jali.releases.generalized import Generalized
from jali.releases.summary import many
from oracles.audit import keeps, rounded
from oracles.published import Folder, publish, tables

FORMATS = st.sampled_from(["csv", "parquet"])


def rows_of(release: Generalized) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in release.frame("arrow").to_pylist())


def small() -> Generalized:
    frame = pa.table({"age": [1, 2, 31, 32, 33, 64], "ill": ["flu", "cold", "flu", "cold", "flu", "cold"]})
    table = jali.table(frame, quasi={"age": jali.bands(10, 30)}, sensitive=["ill"])
    return jali.generalize(table, [jali.KAnonymity(2)], suppress=0.5, levels={"age": 1})


# What is read back.


@given(tables(persons=None), FORMATS, st.data())
def test_what_is_loaded_is_what_was_saved(table: Table, form: Any, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        loaded = jali.load(release.save(Path(folder) / "out", format=form))
    assert isinstance(loaded, Generalized)
    assert rows_of(loaded) == rows_of(release)
    assert loaded.levels == release.levels
    assert loaded.manifest.to_dict() == release.manifest.to_dict()
    assert loaded.columns_facts() == release.columns_facts()
    assert int(loaded.hidden_rows.sum()) == int(release.hidden_rows.sum())
    assert rounded(jali.audit(loaded).to_dict()) == rounded(jali.audit(release).to_dict())
    for column in release.columns:
        for condition in (f'"{column.name}" IS NULL', f'"{column.name}" IS NOT NULL'):
            assert _answer(loaded, condition) == pytest.approx(_answer(release, condition))
    name = release.of_role("sensitive")[0].name
    assert _sorted(loaded.estimate().frame([name])) == _sorted(release.estimate().frame([name]))


def _answer(release: Generalized, condition: str) -> tuple[float, ...]:
    try:
        count = release.estimate().count(condition)
    except InputError:  # * of a domain that was not declared
        return (-1.0,)
    return float(count), count.low, count.high


def _sorted(frame: pa.Table) -> list[str]:
    """The rows as texts; sums of weights depend on the order of their terms in the last digits."""
    rows = ({k: round(x, 9) if isinstance(x, float) else x for k, x in row.items()} for row in frame.to_pylist())
    return sorted(repr(row) for row in rows)


def test_a_table_of_one_column_keeps_its_missing_values() -> None:
    table = jali.table(pa.table({"a": ["x", "x", None, None]}), quasi={"a": jali.suppress()})
    release = jali.generalize(table, [jali.KAnonymity(2)])
    with tempfile.TemporaryDirectory() as folder:
        assert rows_of(jali.load(release.save(Path(folder) / "out"))) == Counter({("x",): 2, (None,): 2})  # type: ignore[arg-type]


def test_texts_that_look_alike_stay_apart(tmp_path: Path) -> None:
    odd = ["a\nb", 'q"uo,te', "", "None", "null", "*", " a", "a ", "01", "1", None, "NA"]
    frame = pa.table({"a": ["x"] * len(odd), "s": odd})
    release = jali.generalize(jali.table(frame, quasi={"a": jali.suppress()}, sensitive=["s"]), [jali.KAnonymity(2)])
    for form in ("csv", "parquet"):
        loaded = jali.load(release.save(tmp_path / form, format=form))  # type: ignore[arg-type]
        assert Counter(loaded.frame("arrow")["s"].to_pylist()) == Counter(odd)
        assert jali.audit(loaded).distinct_l == len(odd) - 1  # the missing one is no value


# What was promised, from the files alone.


@given(tables(persons=None), st.data())
def test_every_published_group_keeps_every_promise(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        seen = Folder(release.save(Path(folder) / "out"))
    sizes = seen.sizes()
    assert sum(Counter(seen.key(row) for row in seen.rows).values()) == table.rows
    for principle in release.principles:
        column = getattr(principle, "sensitive", None)
        cells = seen.counts(column) if column else {}
        assert keeps(principle, sizes, cells, seen.whole(column) if column else Counter())


@given(tables(persons=None), st.data())
def test_the_published_sensitive_distribution_is_the_tables(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        seen = Folder(release.save(Path(folder) / "out"))
    for column in table.sensitive:
        own = Counter(column.labels.take(pa.array(column.codes)).to_pylist())
        assert Counter(row[column.name] for row in seen.rows) == own
    assert list(seen.rows[0]) == [c.name for c in table.columns] + ([table.weight_name] if table.weight_name else [])


@given(tables(persons=None), st.data())
def test_suppressed_rows_show_a_star_everywhere_and_form_a_group(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None or not release.manifest.counts["suppressed"]:
        return
    with tempfile.TemporaryDirectory() as folder:
        seen = Folder(release.save(Path(folder) / "out"))
    stars = [row for row in seen.rows if all(row[name] == "*" for name in seen.quasi)]
    assert len(stars) == release.manifest.counts["suppressed"] == int(release.hidden_rows.sum())
    assert release.manifest.counts["groups"] == len(seen.sizes())


@given(tables(), st.data())
def test_each_group_has_one_weight_the_mean(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None or release.weight is None:
        return
    for group in range(release.manifest.counts["groups"]):
        assert len(set(release.weight[release.group_of_rows == group])) == 1
    assert release.weight.sum() == pytest.approx(table.weight.sum(), rel=1e-4)  # type: ignore[union-attr]


# What must not be written.


def test_a_release_that_was_tampered_with_is_not_saved(tmp_path: Path) -> None:
    release = small()
    alone = np.zeros(release.rows, dtype=np.uint8)
    alone[0] = 1
    bad = release.columns[0].with_codes(alone)
    tampered = Generalized((bad, *release.columns[1:]), release.manifest)
    with pytest.raises(InternalError, match="does not keep KAnonymity"):
        tampered.save(tmp_path / "out")
    promised = small()
    promised.manifest = replace(promised.manifest, principles=(jali.KAnonymity(99),))
    with pytest.raises(InternalError, match="nothing was written"):
        promised.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_files_themselves_are_judged_not_what_is_in_memory(tmp_path: Path) -> None:
    release = small()
    data = release.tables["data"]
    for wrong in (data.slice(1), data.set_column(1, "ill", pa.array(["flu"] * data.num_rows))):
        release.counted_tables["data"] = Rows(wrong)
        with pytest.raises(InternalError, match="nothing was written"):
            release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_people_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    frame = pa.table({"a": ["x"] * 4, "s": ["p", "q", "p", "q"], "who": [1, 1, 2, 3]})
    table = jali.table(frame, quasi={"a": jali.suppress()}, sensitive=["s"], person="who")
    release = jali.generalize(table, [jali.KAnonymity(3), jali.DistinctDiversity(2)])
    people = release.people
    assert people is not None
    for row, amount in ((0, 5), (1, 3), (2, 0)):
        counts = people["people"].to_pylist()
        counts[row] = amount
        release.people = people.set_column(people.schema.get_field_index("people"), "people", pa.array(counts))
        with pytest.raises((InputError, InternalError)):
            release.save(tmp_path / "out")


def test_a_shown_star_and_a_suppressed_row_are_never_confused(tmp_path: Path) -> None:
    """A value that reads * is refused, in the table and in a taxonomy; a masked letter is told apart."""
    tree = [("a", "*", "all"), ("b", "*", "all"), ("c", "y", "all"), ("d", "z", "all")]
    frame = pa.table({"a": ["a", "b", "c", "d"], "star": ["*", "*", "c", "d"], "s": ["p", "q", "p", "q"]})
    for quasi in ({"a": jali.taxonomy(tree)}, {"star": jali.suppress()}):
        with pytest.raises(InputError, match=r"\*"):
            jali.generalize(jali.table(frame, quasi=quasi, sensitive=["s"]), [jali.KAnonymity(2)], suppress=0.5)
    digits = pa.table({"age": ["4", "5", "41", "42", "67", "88"], "s": ["p", "q"] * 3})
    table = jali.table(digits, quasi={"age": jali.mask()}, sensitive=["s"])
    release = jali.generalize(table, [jali.KAnonymity(2)], suppress=0.7, levels={"age": 1})
    assert Counter(release.frame("arrow")["age"].to_pylist()) == Counter({"4*": 2, "*": 4})
    loaded = jali.load(release.save(tmp_path / "out"))
    assert int(loaded.hidden_rows.sum()) == 4  # type: ignore[attr-defined]


# Folders.


def test_save_refuses_a_folder_that_holds_anything_else(tmp_path: Path) -> None:
    release = small()
    folder = release.save(tmp_path / "out")
    with pytest.raises(InputError, match="not empty"):
        release.save(folder)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not a release"):
        release.save(folder, overwrite=True)
    web = tmp_path / "web"
    web.mkdir()
    (web / "manifest.json").write_text('{"name": "an app"}')
    with pytest.raises(InputError, match="not a release"):
        release.save(web, overwrite=True)
    with pytest.raises(InputError, match="is a file"):
        release.save(web / "manifest.json")
    with pytest.raises(InputError, match="csv"):
        release.save(tmp_path / "other", format="xml")  # type: ignore[arg-type]


def test_save_overwrites_a_release_with_all_of_the_new_one(tmp_path: Path) -> None:
    release = small()
    folder = release.save(tmp_path / "out", format="parquet")
    release.save(folder, overwrite=True)
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv", "manifest.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "empty").mkdir()
    jali.load(release.save(tmp_path / "empty"))
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    jali.load(release.save(tmp_path / "link", overwrite=True))


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_at_any_step_leaves_the_old_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool, error: BaseException
) -> None:
    """Every call to the system fails in turn; the old release stays and nothing else does, until all calls pass."""
    old, new = small(), jali.repair(small(), [jali.KAnonymity(3)])
    folder = old.save(tmp_path / "out")
    if not exchange:
        monkeypatch.setattr(writing, "_exchange", lambda first, second: False)
    passed = 0
    for failing in range(40):
        calls = iter(range(1000))
        with monkeypatch.context() as patch:
            for name in ("replace", "fsync"):
                patch.setattr(os, name, _failing(getattr(os, name), calls, failing, error))
            try:
                new.save(folder, overwrite=True)
                passed += 1
            except (InputError, KeyboardInterrupt):
                passed = 0
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        found = jali.load(folder)
        assert found.principles == (new.principles if passed else found.principles)
        if passed and next(calls) <= failing:
            break
        if passed:
            old.save(folder, overwrite=True)
    assert passed


def _failing(call: Any, calls: Any, failing: int, error: BaseException) -> Any:
    def called(*arguments: Any, **named: Any) -> Any:
        if next(calls) == failing:
            raise error
        return call(*arguments, **named)

    return called


def test_a_folder_without_permission_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(writing, "locked", refuse)
    with pytest.raises(InputError, match=r"cannot write to .*out: got Permission denied; choose another place"):
        small().save(tmp_path / "out")


def test_a_saved_folder_has_the_permissions_of_any_new_folder(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        folder = small().save(tmp_path / "out")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o750


def _edit(folder: Path, **facts: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def test_load_refuses_what_is_not_as_it_was_published(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no release in"):
        jali.load(tmp_path)
    with pytest.raises(InputError, match="no release in"):
        jali.load(tmp_path / "nowhere")
    folder = small().save(tmp_path / "out")
    data, manifest = folder / "data.csv", folder / "manifest.json"
    good, facts = data.read_bytes(), json.loads(manifest.read_text())
    data.write_bytes(good.replace(b"flu", b"flo"))
    with pytest.raises(InputError, match="changed after it was published"):
        jali.load(folder)
    data.unlink()
    with pytest.raises(InputError, match=r"lacks data\.csv"):
        jali.load(folder)
    data.write_bytes(good)
    (tmp_path / "secret.csv").write_bytes(good)
    for outside in ("../secret.csv", str(tmp_path / "secret.csv")):
        _edit(folder, files={outside: facts["files"]["data.csv"]})
        with pytest.raises(InputError, match="outside"):
            jali.load(folder)
    for wrong in ({"format_version": 99}, {"kind": "oracle"}, {"columns": []}, {"columns": [{}]}, {"files": {}},
                  {"files": []}, {"principles": [{"name": "Nonsense"}]}, {"counts": None}):  # fmt: skip
        _edit(folder, **(facts | wrong))
        with pytest.raises(InputError):
            jali.load(folder)
    for text in ("{", "[]", "null", "\x00"):
        manifest.write_text(text)
        with pytest.raises(InputError, match="not a manifest"):
            jali.load(folder)


# How it reads.


def test_a_release_prints_what_it_is_and_what_it_is_not() -> None:
    release = small()
    text = repr(release)
    assert "6 rows in 2 groups" in text
    assert "Not covered" in text
    assert "knows the algorithm" in text
    assert "checking" in repr(jali.generalize(jali.datasets.census(rows=100, seed=0), [jali.KAnonymity(3)]))
    repaired = repr(jali.repair(release, [jali.KAnonymity(6)]))
    assert "jali.measure" in repaired
    assert "6 rows are suppressed" in repaired
    assert (many(1, "group"), many(0, "group"), many(1, "person", "people")) == ("1 group", "0 groups", "1 person")


def test_the_search_is_shown_but_never_saved(tmp_path: Path) -> None:
    release = small()
    assert set(release.search) == {"nodes", "checked"}
    manifest = json.loads((release.save(tmp_path / "out") / "manifest.json").read_text())
    assert not {"nodes", "checked"} & set(manifest["method"])
    assert not jali.load(tmp_path / "out").search


MADE = {
    "generalize": lambda table: jali.generalize(table, [jali.KAnonymity(3)]),
    "partition": lambda table: jali.partition(table, [jali.KAnonymity(3)]),
    "recode": lambda table: jali.recode(table, [jali.KAnonymity(3)]),
    "buckets": lambda table: jali.anatomize(table, jali.FrequencyDiversity(1.5), buckets="partition"),
    "angel": lambda table: jali.angelize(table, jali.FrequencyDiversity(1.5), k=3),
}


@pytest.mark.parametrize("method", MADE)
def test_the_manifest_does_not_tell_who_of_a_group_has_which_value(method: str, tmp_path: Path) -> None:
    """Two of three are alike. Whether they share the flu shows in the KL-divergence, and nowhere in the files."""
    told, costs = [], set()
    for ill in (["flu", "flu", "cold"], ["flu", "cold", "flu"]):
        table = jali.table(pa.table({"city": ["A", "A", "B"], "ill": ill}), quasi=["city"], sensitive=["ill"])
        release = MADE[method](table)
        manifest = json.loads((release.save(tmp_path / str(len(told))) / "manifest.json").read_text(encoding="utf-8"))
        del manifest["files"]  # digests of tables whose rows were shuffled
        told.append(manifest)
        costs.add(release.manifest.metrics["kl"])
    assert told[0] == told[1]
    assert len(costs) == 2
