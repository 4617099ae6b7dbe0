"""What must not be found in anything that jali publishes, prints, logs or raises: every byte is searched."""

from __future__ import annotations

import datetime
import getpass
import json
import logging
import pickle
import re
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jali
from jali.errors import InputError, JaliError
from jali.releases.base import Release
from jali.releases.generalized import Generalized

RARE_ZIP, RARE_AGE, NAME, PERSON, WEIGHT = "86423", 8642, "Zebulon", "pid77312", 3.1415926
ROWS = 200


def frame(rows: int = ROWS) -> dict[str, list[Any]]:
    """Two hundred people in order; row 17 has a rare zip and a rare age, and everybody has a name and an id."""
    random = np.random.default_rng(5)
    columns: dict[str, list[Any]] = {
        "name": [f"{NAME}{row}" for row in range(rows)],
        "zip": [("13053", "13068", "14850", "14853")[row % 4] for row in range(rows)],
        "age": [20 + row % 7 for row in range(rows)],
        "ill": [("flu", "cold", "cancer")[random.integers(3)] for _ in range(rows)],
        "who": [f"{PERSON}x{row}" for row in range(rows)],
        "w": [round(1 + random.random(), 7) for _ in range(rows)],
    }
    columns["zip"][17], columns["age"][17], columns["w"][17] = RARE_ZIP, RARE_AGE, WEIGHT
    return columns


def table(**roles: Any) -> Any:
    given: dict[str, Any] = {"quasi": {"zip": jali.mask(), "age": None}, "sensitive": ["ill"], "weights": "w"}
    return jali.table(pa.table(frame()), **(given | roles))


def published(release: Release, folder: Path) -> bytes:
    """All bytes of the release in both formats, and what it prints."""
    for form in ("csv", "parquet"):
        release.save(folder / form, format=form)  # type: ignore[arg-type]
    files = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    texts = [
        repr(release),
        repr(jali.audit(release)),
        repr(jali.load(folder / "csv")),
        json.dumps(jali.audit(release).to_dict()),
    ]
    return files + "\n".join(texts).encode()


def suppressed(**roles: Any) -> Generalized:
    """A release at the lowest levels, in which the rare row is suppressed with a few others."""
    release = jali.generalize(table(**roles), [jali.KAnonymity(4)], suppress=0.1, levels={"zip": 0, "age": 0})
    assert 0 < release.manifest.counts["suppressed"] < ROWS / 10
    return release


def test_no_unnamed_column_leaves_the_building(tmp_path: Path) -> None:
    columns = frame()
    columns["insurance number"] = columns.pop("name")
    release = jali.generalize(jali.table(pa.table(columns), quasi=["zip"], sensitive=["ill"]), [jali.KAnonymity(4)])
    found = published(release, tmp_path)
    for marker in (NAME, "insurance", PERSON):
        assert marker.encode() not in found


def test_suppressed_values_leave_no_trace(tmp_path: Path) -> None:
    """Neither the values, nor what lies above them, nor a band width or a mask length that follows from them."""
    release = suppressed()
    found = published(release, tmp_path)
    for marker in (RARE_ZIP, RARE_ZIP[:3], str(RARE_AGE), str(WEIGHT), "864"):
        assert marker.encode() not in re.sub(rb'"sha256": "[0-9a-f]+"', b"", _texts_only(found)), marker
    manifest = json.loads((tmp_path / "csv" / "manifest.json").read_text())
    without = jali.table(
        pa.table({n: c[:17] + c[18:] for n, c in frame().items()}),
        quasi={"zip": jali.mask(), "age": None}, sensitive=["ill"], weights="w",
    )  # fmt: skip
    clean = jali.generalize(without, [jali.KAnonymity(4)], suppress=0.1, levels={"zip": 0, "age": 0})
    hierarchies = [column.get("hierarchy") for column in manifest["columns"]]
    assert hierarchies[:2] == [facts.get("hierarchy") for facts in clean.columns_facts()][:2]


def _texts_only(found: bytes) -> bytes:
    """Without the Parquet files' own numbers, in which any three digits may occur."""
    return b"\n".join(part for part in found.split(b"PAR1") if b"\x00" not in part)


def test_a_longer_text_in_a_suppressed_row_does_not_show_in_the_levels() -> None:
    zips = ["13053"] * 4 + ["13068"] * 4 + ["123456789", "12345678"]
    data = pa.table({"zip": zips, "ill": ["flu", "cold"] * 5})
    given = jali.table(data, quasi={"zip": jali.mask()}, sensitive=["ill"])
    expected = ["13053", "1305*", "130**", "13***", "1****", "*"]
    for level in (0, 1, 5):
        release = jali.generalize(given, [jali.KAnonymity(2)], suppress=0.2, levels={"zip": level})
        levels = release["zip"].to_dict()["hierarchy"]["levels"]
        assert [here["labels"][0] for here in levels] == expected[min(level, 4) :]
        assert [here["level"] for here in levels] == list(range(level, level + len(levels)))


def test_a_missing_value_in_a_suppressed_row_does_not_show_in_a_declared_domain(tmp_path: Path) -> None:
    ages = [30, 30, 40, 40, None, 50]
    data = pa.table({"age": pa.array(ages, pa.int64()), "ill": ["flu", "cold"] * 3})
    given = jali.table(data, quasi={"age": jali.bands(10, low=20, high=59)}, sensitive=["ill"])
    for level in (0, 1):
        release = jali.generalize(given, [jali.KAnonymity(2)], suppress=0.4, levels={"age": level})
        assert release.manifest.counts["suppressed"] == 2
        hierarchy = release["age"].to_dict()["hierarchy"]
        assert None not in hierarchy["leaves"]
        assert all(None not in here["labels"] for here in hierarchy["levels"])
        jali.load(release.save(tmp_path / str(level)))
    top = jali.generalize(given, [jali.KAnonymity(2)], levels={"age": 2})
    assert None not in top["age"].to_dict()["hierarchy"]["leaves"]


def test_below_the_published_level_nothing_is_named(tmp_path: Path) -> None:
    given = table(quasi={"zip": jali.mask(), "age": jali.bands(10, 100, 10000)})
    release = jali.generalize(given, [jali.KAnonymity(2)], levels={"zip": 2, "age": 2}, suppress=0.6)
    assert release.manifest.counts["suppressed"]
    found = _texts_only(published(release, tmp_path))
    for zip_code in ("13053", "1305", "1306", "1485"):
        assert zip_code.encode() not in re.sub(rb'"sha256": "[0-9a-f]+"', b"", found)


def test_values_of_dropped_and_unsampled_rows_leave_no_trace() -> None:
    columns = frame()
    columns["ill"][3], columns["zip"][3] = "leprosy", None
    dropped = jali.table(pa.table(columns), quasi={"zip": jali.mask()}, sensitive=["ill"], missing="drop")
    release = jali.generalize(dropped, [jali.KAnonymity(1)], levels={"zip": 0})
    assert "leprosy" not in json.dumps(release.columns_facts())
    columns["zip"][3] = "13053"
    whole = jali.table(pa.table(columns), quasi={"zip": jali.mask()}, sensitive=["ill"])
    sampled = next(s for s in (whole.sample(0.5, seed=n) for n in range(9)) if not _has(s, "leprosy"))
    assert "leprosy" not in json.dumps(
        jali.generalize(sampled, [jali.KAnonymity(1)], levels={"zip": 0}).columns_facts()
    )


def _has(given: Any, value: str) -> bool:
    return value in given.frame("arrow")["ill"].to_pylist()


def test_persons_are_counted_and_never_named(tmp_path: Path) -> None:
    columns = frame()
    columns["who"] = [f"{PERSON}x{row // 2}" for row in range(ROWS)]
    given = jali.table(pa.table(columns), quasi={"zip": jali.mask()}, sensitive=["ill"], person="who")
    found = published(jali.generalize(given, [jali.KAnonymity(4)], suppress=0.6, levels={"zip": 0}), tmp_path)
    assert PERSON.encode() not in found
    manifest = (tmp_path / "csv" / "manifest.json").read_text()
    assert '"who"' not in manifest


def test_single_weights_are_not_published() -> None:
    release = suppressed()
    assert release.weight is not None
    for group in range(release.manifest.counts["groups"]):
        assert len(set(release.weight[release.group_of_rows == group])) == 1
    assert not set(release.weight.tolist()) & set(frame()["w"])


def test_the_order_of_rows_says_nothing() -> None:
    """Published twice, the rows come in two orders, and neither follows the table's."""
    data = pa.table({"zip": ["x"] * 2000, "ill": [str(row) for row in range(2000)]})
    given = jali.table(data, quasi={"zip": jali.suppress()}, sensitive=["ill"], allow={"ill": "numbers of this test"})
    orders = [
        [int(text) for text in jali.generalize(given, [jali.KAnonymity(2)]).frame("arrow")["ill"].to_pylist()]
        for _ in range(2)
    ]
    assert orders[0] != orders[1]
    for first, second in ((orders[0], range(2000)), (orders[1], range(2000)), orders):
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.15  # six standard deviations


def test_nothing_tells_where_when_and_by_whom(tmp_path: Path) -> None:
    """No path, no time, no user, no seed, no digest but those of the published files."""
    found = published(suppressed(), tmp_path)
    manifest = json.loads((tmp_path / "csv" / "manifest.json").read_text())
    assert str(tmp_path).encode() not in found
    assert str(Path.cwd()).encode() not in found
    if len(user := getpass.getuser()) > 3:
        assert user.encode() not in found
    for stamp in (str(datetime.date.today()), f"{datetime.date.today().year}-"):
        assert stamp.encode() not in _texts_only(found)
    assert "seed" not in json.dumps(manifest)
    assert re.findall(r"[0-9a-f]{32,}", json.dumps(manifest)) == [manifest["files"]["data.csv"]["sha256"]]
    assert manifest["earlier_releases"] == []
    assert set(manifest["method"]) == {"name", "metric", "suppress", "levels_given"}


def test_a_taxonomys_file_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "secret-project.csv"
    path.write_text("13053;*\n13068;*\n14850;*\n14853;*\n86423;*\n")
    release = jali.generalize(table(quasi={"zip": jali.taxonomy(path)}), [jali.KAnonymity(4)], suppress=0.1)
    assert b"secret" not in published(release, tmp_path / "out")


def test_measures_are_no_digest_of_the_original(tmp_path: Path) -> None:
    """Two originals that differ in one row below the published level have the same manifest, digests apart."""
    manifests = []
    for last in ("14853", "14850"):
        columns = frame()
        columns["zip"][3] = last
        data = jali.table(pa.table(columns), quasi={"zip": jali.mask()}, sensitive=["ill"])
        release = jali.generalize(data, [jali.KAnonymity(2)], levels={"zip": 3}, suppress=0.6)
        manifest = json.loads((release.save(tmp_path / last) / "manifest.json").read_text())
        del manifest["files"]
        manifests.append(manifest)
    assert manifests[0] == manifests[1]


def test_a_release_holds_no_original(tmp_path: Path) -> None:
    held = pickle.dumps(suppressed())
    for marker in (RARE_ZIP, NAME, PERSON, str(RARE_AGE)):
        assert marker.encode() not in held


def test_buckets_name_nobody_and_no_unnamed_column(tmp_path: Path) -> None:
    """Quasi-identifiers and sensitive values are published; names, persons, single weights and the rest are not."""
    release = jali.anatomize(table(person="who"), [jali.FrequencyDiversity(2)])
    found = published(release, tmp_path)
    for marker in (NAME, PERSON, "insurance", '"who"', str(WEIGHT)):
        assert marker.encode() not in found
        assert marker.encode() not in pickle.dumps(release)
    manifest = json.loads((tmp_path / "csv" / "manifest.json").read_text())
    assert set(manifest["method"]) == {"name", "buckets", "generalized"}
    digests = [facts["sha256"] for facts in manifest["files"].values()]
    assert sorted(re.findall(r"[0-9a-f]{32,}", json.dumps(manifest))) == sorted(digests)
    assert str(tmp_path).encode() not in found


def test_generalized_buckets_show_nothing_below_their_level(tmp_path: Path) -> None:
    given = table(quasi={"zip": jali.mask(), "age": jali.bands(10, 100, 10000)})
    levels = {"zip": 3, "age": 2}
    found = _texts_only(published(jali.anatomize(given, [jali.FrequencyDiversity(2)], generalized=levels), tmp_path))
    for marker in ("13053", "130**", "148**", RARE_ZIP, RARE_ZIP[:3] + "*", str(RARE_AGE)):
        told = re.sub(rb'"sha256": "[0-9a-f]+"', b"", found)
        assert not re.search(rb"(?<![\d.])" + re.escape(marker.encode()), told), marker  # not the digits of a fraction


def test_nothing_but_the_bucket_ties_people_to_values(tmp_path: Path) -> None:
    """Two tables that differ in who of a bucket has which value are published in the same way.

    So nothing in the files, neither an order nor a count, can say which of the two was published.
    """
    ages, ill = list(range(8)), ["flu", "cold"] * 4
    bands = {"age": jali.bands(2, 4, 8)}
    files = []
    for values in (ill, ["cold", "flu"] * 4):
        given = jali.table(pa.table({"age": ages, "ill": values}), quasi=bands, sensitive=["ill"])
        release = jali.anatomize(given, [jali.FrequencyDiversity(2)], buckets={"age": 1})
        shown = {frozenset(row["age"] for row in rows) for rows in _by_bucket(release, "individuals").values()}
        held = sorted(tuple(sorted(row["ill"] for row in rows)) for rows in _by_bucket(release, "buckets").values())
        manifest = json.loads((release.save(tmp_path / values[0]) / "manifest.json").read_text())
        del manifest["files"]
        files.append((shown, held, manifest))
    assert files[0] == files[1]


def _by_bucket(release: Any, name: str) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in release.tables[name].to_pylist():
        found.setdefault(row["bucket"], []).append(row)
    return found


def test_errors_and_logs_show_no_value(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    release = suppressed()
    release.save(tmp_path / "out")
    other = jali.table(
        pa.table({"zip": ["99999", "99998"], "age": [1, 2], "ill": ["x", "y"]}), quasi=["zip", "age"], sensitive=["ill"]
    )
    wrong = [
        lambda: jali.generalize(table(), [jali.EntropyDiversity(3.5)]),
        lambda: jali.generalize(table(), [jali.KAnonymity(4)], levels={"zip": 0, "age": 0}),
        lambda: jali.anatomize(table(), [jali.FrequencyDiversity(2.9)]),
        lambda: jali.anatomize(table(), [jali.DistinctDiversity(3)]),
        lambda: jali.anatomize(table(), [jali.FrequencyDiversity(2)], buckets={"zip": 0}),
        lambda: jali.anatomize(table(), [jali.FrequencyDiversity(2), jali.TCloseness(0.01)]),
        lambda: jali.measure(release, other),
        lambda: jali.beliefs(release, other),
        lambda: jali.attacks(release, other),
        lambda: jali.repair(release, [jali.KAnonymity(ROWS)], suppress=0.1),
        lambda: jali.table(pa.table(frame()), quasi={"age": jali.bands(10, low=0, high=99)}),
        lambda: jali.table(pa.table(frame()), quasi={"zip": jali.taxonomy([("13053", "*")])}),
        lambda: release.estimate().count("zap = 5"),
    ]
    for failing in wrong:
        with pytest.raises(JaliError) as problem:
            failing()
        for marker in (RARE_ZIP, str(RARE_AGE), NAME, PERSON, "99999", "cancer"):
            assert marker not in str(problem.value)
            assert marker not in caplog.text


def test_tracebacks_of_files_that_cannot_be_read_show_no_row(tmp_path: Path) -> None:
    """What Arrow and DuckDB say of a broken file holds rows of it, with columns that were not asked for."""
    broken, times = tmp_path / "broken.csv", tmp_path / "times"
    broken.write_text(f"name,zip,ill\n{NAME},{RARE_ZIP},flu,cold\n{NAME},{RARE_ZIP},flu\n")
    times.mkdir()
    pytest.importorskip("duckdb")
    late = pa.array([2**62 + RARE_AGE], pa.int64()).cast(pa.time64("us"))
    pq.write_table(pa.table({"zip": late, "ill": ["flu"]}), times / "t.parquet")
    for path in (broken, times):
        with pytest.raises(InputError) as problem:
            jali.read(path, quasi=["zip"], sensitive=["ill"])
        shown = "".join(traceback.format_exception(problem.value))
        for marker in (NAME, RARE_ZIP, str(2**62 + RARE_AGE)):
            assert marker not in shown


def test_the_value_is_shown_to_whoever_asks_for_it() -> None:
    with pytest.raises(InputError) as problem:
        jali.table(pa.table(frame()), quasi={"zip": jali.taxonomy([("13053", "*")])})
    assert problem.value.with_value() != str(problem.value)
