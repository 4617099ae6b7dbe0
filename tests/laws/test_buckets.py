"""Laws of buckets: two tables that fit, keep their promises by themselves, and are tied by nothing but a number."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import shutil
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jali
from jali.core.arrays import Runs
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, InternalError
from jali.releases.linked.buckets import Buckets
from oracles import linked as oracle

ILL = ("flu", "cold", "cancer", "none", "asthma")


def people(seed: int, rows: int = 40) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table({
        "age": random.integers(20, 28, rows),
        "zip": random.choice(["13053", "13068", "14850"], rows),
        "ill": random.choice(ILL, rows, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
        "pay": random.choice(["low", "high"], rows),
        "w": random.integers(1, 5, rows).astype(float),
        "ward": random.choice(["a", "b"], rows),
    })  # fmt: skip


def table(seed: int = 0, rows: int = 40, **roles: Any) -> Table:
    quasi = {"age": jali.bands(2, 4, 8), "zip": jali.mask()}
    return jali.table(people(seed, rows), **({"quasi": quasi, "sensitive": ["ill"]} | roles))


WAYS: list[dict[str, Any]] = [
    {},
    {"buckets": "partition"},
    {"buckets": "partition", "generalized": True, "show": "set"},
    {"buckets": "partition", "generalized": {"age": 1}},
    {"buckets": {"age": 3, "zip": 4}},
    {"buckets": {"age": 3, "zip": 4}, "generalized": True},
    {"generalized": {"zip": 2, "age": 1}},
]


def by_bucket(release: Buckets) -> dict[int, Counter[tuple[Any, ...]]]:
    """The values of each bucket, as its table says."""
    found: dict[int, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for row in release.tables["buckets"].to_pylist():
        number, count = row.pop("bucket"), row.pop("count")
        found[number][tuple(row.values())] += count
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sensitive", [["ill"], ["ill", "pay"]])
def test_the_buckets_are_those_of_the_people_who_were_put_into_them(way: dict[str, Any], sensitive: list[str]) -> None:
    """Each bucket has its people's quasi-identifiers and its people's values, joint ones where there are several."""
    for seed in range(5):
        given = table(seed, sensitive=sensitive)
        release = jali.anatomize(given, jali.FrequencyDiversity(2, sensitive="ill"), **way)
        original, bucket = given.frame("arrow").to_pylist(), release.assignment(given) + 1
        truth: dict[int, Counter[tuple[Any, ...]]] = defaultdict(Counter)
        for row, number in zip(original, bucket.tolist(), strict=True):
            truth[number][tuple(row[name] for name in sensitive)] += 1
        assert by_bucket(release) == truth
        assert sorted(truth) == list(range(1, release.manifest.counts["groups"] + 1))
        shown = release.tables["individuals"]["bucket"].to_pylist()
        assert Counter(shown) == Counter(bucket.tolist())
        if not way.get("generalized"):
            cells = Counter((r["age"], r["zip"], r["bucket"]) for r in release.tables["individuals"].to_pylist())
            assert cells == Counter((r["age"], r["zip"], b) for r, b in zip(original, bucket.tolist(), strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_saved_is_what_is_read(way: dict[str, Any], tmp_path: Path) -> None:
    given = table(weights="w", other=["ward"])
    release = jali.anatomize(given, jali.FrequencyDiversity(2), **way)
    for form in ("csv", "parquet"):
        read = jali.load(release.save(tmp_path / form, format=form))  # type: ignore[arg-type]
        assert isinstance(read, Buckets)
        own, theirs = release.counts(), read.counts()
        assert (own.size == theirs.size).all()
        assert by_bucket(read) == by_bucket(release)
        assert repr(read).split("Cost")[0] == repr(release).split("Cost")[0]  # KL is saved coarsely
        for name in ("individuals", "buckets"):
            assert read.tables[name].to_pylist() == release.tables[name].to_pylist()
        for asked in ("ill = 'flu'", "age >= 24 AND ill = 'flu'", "ward = 'a' OR NOT ill IN ('flu', 'cold')"):
            one, other = release.estimate().count(asked), read.estimate().count(asked)
            assert (one, one.low, one.high, one.assumes) == (other, other.low, other.high, other.assumes)
        one_measure, other_measure = jali.measure(read, given), jali.measure(release, given)
        assert (one_measure.kl, one_measure.loss) == pytest.approx((other_measure.kl, other_measure.loss))
        assert jali.audit(read).to_dict() == jali.audit(release).to_dict()
    assert sorted(path.name for path in (tmp_path / "csv").iterdir()) == [
        "buckets.csv", "individuals.csv", "manifest.json",
    ]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_truth_is_within_the_bounds_of_every_count(way: dict[str, Any]) -> None:
    given = table(1, rows=60)
    frame = given.frame("pandas")
    estimate = jali.anatomize(given, jali.FrequencyDiversity(2), **way).estimate()
    for asked, truth in (
        ("age >= 24 AND ill = 'flu'", ((frame.age >= 24) & (frame.ill == "flu")).sum()),
        ("zip = '13053' OR ill IN ('flu', 'cold')", ((frame.zip == "13053") | frame.ill.isin(["flu", "cold"])).sum()),
        ("age < 22 AND NOT ill = 'none'", ((frame.age < 22) & (frame.ill != "none")).sum()),
        ("zip LIKE '130%' AND (age > 25 OR ill = 'flu')",
         (frame.zip.str.startswith("130") & ((frame.age > 25) | (frame.ill == "flu"))).sum()),
    ):  # fmt: skip
        found = estimate.count(asked)
        assert found.low <= truth <= found.high
        assert found.low <= found <= found.high
    assert estimate.count("ill = 'flu'") == (frame.ill == "flu").sum()
    assert estimate.count("ill = 'flu'").exact


def test_the_divergence_is_that_of_writing_everybody_out_with_every_value() -> None:
    """Σ F log(F / F*), F* from each row with each value of its bucket."""
    for seed in range(10):
        given = table(seed, rows=30)
        release = jali.anatomize(given, jali.FrequencyDiversity(2), buckets=["anatomy", "partition"][seed % 2])
        values = by_bucket(release)
        links = defaultdict(list)
        for row in release.tables["individuals"].to_pylist():
            links[row["bucket"]].append(({row["age"]: Fraction(1)}, {row["zip"]: Fraction(1)}))
        written = [oracle.Link(shown, list(values[number].elements())) for number, shown in links.items()]
        inferred: Counter[tuple[Any, ...]] = Counter()
        for box in oracle.boxes(written):
            inferred[tuple(next(iter(node)) for node in box.nodes)] += box.mass  # type: ignore[assignment]
        rows = [tuple(row.values()) for row in given.frame("arrow").to_pylist()]
        expected = sum(n / 30 * math.log(n / inferred[cell]) for cell, n in Counter(rows).items())
        measured = jali.measure(release, given)
        assert measured.kl == pytest.approx(expected)
        assert (measured.loss, measured.granularity, measured.discernibility, measured.height) == (0, 1, None, None)


def test_everybody_dealt_has_company_of_different_values_only() -> None:
    for l in (1, 2, 3):
        release = jali.anatomize(table(3), jali.FrequencyDiversity(l))
        assert all(set(values.values()) == {1} and len(values) in (l, l + 1) for values in by_bucket(release).values())
        assert jali.audit(release).largest_share <= 1 / l


def test_distinct_diversity_and_fractions_drive_the_deal_too() -> None:
    assert jali.anatomize(table(), jali.DistinctDiversity(3)).groups["rows"].to_pylist()
    release = jali.anatomize(table(), [jali.FrequencyDiversity(2.5), jali.EntropyDiversity(2.9)])
    assert min(release.groups["rows"].to_pylist()) == 3


def test_orders_and_numbers_say_nothing() -> None:
    """Published twice, rows come in two orders and buckets under two numbers; neither follows the table's."""
    data = pa.table({"id": np.arange(2000), "ill": [str(row % 1000) for row in range(2000)]})
    given = jali.table(data, quasi=["id"], sensitive=["ill"])
    releases = [jali.anatomize(given, jali.FrequencyDiversity(2)) for _ in range(2)]
    orders = [release.frame("arrow")["id"].to_pylist() for release in releases]
    numbers = [release.assignment(given).tolist() for release in releases]
    for kind in (orders, numbers):
        for first, second in ((kind[0], range(2000)), (kind[1], range(2000)), kind):
            assert abs(np.corrcoef(first, second)[0, 1]) < 0.15  # six standard deviations
    sizes = releases[0].tables["buckets"]["bucket"].to_pylist()
    assert sizes == sorted(sizes)


def test_who_is_permuted_into_which_value_means_nothing() -> None:
    """Each bucket keeps its values, two draws differ, many are even; a loaded one too."""
    given = table(5)
    release = jali.anatomize(given, jali.FrequencyDiversity(4))
    again = pickle.loads(pickle.dumps(release))
    draws = [(release, again)[i % 2].permuted("pandas") for i in range(300)]
    values = by_bucket(release)
    for draw in draws[:5]:
        assert list(draw.columns) == ["age", "zip", "bucket", "ill"]
        assert (draw[["age", "zip", "bucket"]] == release.frame("pandas")).all().all()
        for number, rows in draw.groupby("bucket"):
            assert Counter((value,) for value in rows["ill"]) == values[number]
    assert len({tuple(draw["ill"]) for draw in draws}) == 300
    row = draws[0]["bucket"][0]
    met = Counter(draw["ill"][0] for draw in draws)
    assert set(met) == {value for (value,) in values[row]}
    assert min(met.values()) > 300 / len(met) / 2


def test_weights_are_the_mean_of_each_bucket() -> None:
    given = table(2, weights="w")
    release = jali.anatomize(given, jali.FrequencyDiversity(3))
    bucket = release.assignment(given)
    weight = people(2)["w"].to_numpy()
    shown = release.frame("pandas")
    for number in range(bucket.max() + 1):
        mean = weight[bucket == number].mean()
        assert set(shown.w[shown.bucket == number + 1]) == {float(f"{mean:.6g}")}
    assert release.estimate().total == pytest.approx(weight.sum(), rel=1e-5)


def test_rows_that_were_counted_are_dealt_one_by_one() -> None:
    given = table(4)
    twice = given.take(np.arange(given.records), np.full(given.records, 2))
    release = jali.anatomize(twice, jali.FrequencyDiversity(3))
    assert release.rows == 80
    assert len(release.assignment(twice)) == 80
    assert all(max(values.values()) == 1 for values in by_bucket(release).values())


@pytest.mark.parametrize("options", [{"mode": "relaxed"}, {"mode": "x"}, {"split": "kl"}, {"split": "x"}])
def test_how_to_cut_is_refused_where_nothing_is_cut(options: dict[str, Any]) -> None:
    for buckets in ("anatomy", {"age": 3, "zip": 4}):
        with pytest.raises(InputError, match=r'pass buckets="partition"'):
            jali.anatomize(table(), jali.FrequencyDiversity(2), buckets=buckets, **options)


def test_a_promise_of_company_holds_only_where_nobody_is_told_apart(tmp_path: Path) -> None:
    promises = [jali.KAnonymity(4), jali.FrequencyDiversity(2)]
    for way in ({"buckets": "partition"}, {"buckets": {"age": 3, "zip": 4}}, {}):
        with pytest.raises(InputError, match="shown one by one"):
            jali.anatomize(table(), promises, **way)  # type: ignore[arg-type]
    for way in ({"buckets": "partition"}, {"buckets": {"age": 3, "zip": 4}}):
        release = jali.anatomize(table(), promises, generalized=True, **way)  # type: ignore[arg-type]
        found = jali.audit(jali.load(release.save(tmp_path / str(len(way["buckets"])))))
        assert found.k >= 4
        assert found.holds


def test_an_audit_counts_who_shows_the_same_and_says_who_can_be_found() -> None:
    release = jali.anatomize(table(), jali.FrequencyDiversity(3))
    found = jali.audit(release)
    cells = Counter((row["age"], row["zip"]) for row in release.tables["individuals"].to_pylist())
    assert (found.k, found.highest_risk) == (min(cells.values()), 1 / min(cells.values()))
    assert found.average_risk == pytest.approx(len(cells) / 40)
    assert (found.smallest_bucket, found.groups) == (3, 13)
    assert any("who is in the table" in note for note in found.notes)
    assert not any("knows the algorithm" in note for note in found.notes)
    cut = jali.audit(jali.anatomize(table(), jali.FrequencyDiversity(2), buckets="partition"))
    assert any("knows the algorithm" in note for note in cut.notes)


def _rewritten(folder: Path, name: str, old: str, new: str) -> Path:
    """A file changed, and its digest in the manifest with it."""
    path, manifest = folder / name, json.loads((folder / "manifest.json").read_text())
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    manifest["files"][name]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("buckets.csv", '1,"cold",1\n', '1,"cold",2\n'),
        ("buckets.csv", '1,"cold",1\n', '1,"cold",0\n'),
        ("buckets.csv", '1,"cold",1\n', '2,"cold",1\n'),
        ("buckets.csv", '1,"cold",1\n', '1,"cancer",1\n'),
        ("buckets.csv", '1,"cold",1\n', '1,"plague",1\n'),
        ("individuals.csv", ',1\n', ',2\n'),
        ("individuals.csv", ',1\n', ',x\n'),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_are_refused(name: str, old: str, new: str, tmp_path: Path) -> None:
    data = pa.table({"age": [1, 2, 3, 4], "ill": ["cold", "cancer"] * 2})
    release = jali.anatomize(jali.table(data, quasi=["age"], sensitive=["ill"]), jali.FrequencyDiversity(2))
    folder = _rewritten(release.save(tmp_path / "out"), name, old, new)
    with pytest.raises(InputError, match="does not describe its tables"):
        jali.load(folder)


def two_tables(kind: str, folder: Path) -> Path:
    """A saved release of buckets or of batches, whose table of values begins with the number 1."""
    data = pa.table({"age": [1, 2] * 10, "ill": [f"ill{row % 10}" for row in range(20)]})
    given, promise = jali.table(data, quasi=["age"], sensitive=["ill"]), jali.DistinctDiversity(5)
    if kind == "buckets":
        return jali.anatomize(given, promise).save(folder / "out", format="parquet")
    return jali.angelize(given, promise, k=2, batches="anatomy", buckets="partition").save(
        folder / "out", format="parquet"
    )


def _with_column(folder: Path, name: str, column: str, change: Callable[[list[int]], list[int]]) -> Path:
    """A column of a Parquet file changed, and its digest in the manifest with it."""
    path, manifest = folder / name, json.loads((folder / "manifest.json").read_text())
    rows = pq.read_table(path)
    numbers = pa.array(change(rows[column].to_pylist()), pa.int64())
    pq.write_table(rows.set_column(rows.column_names.index(column), column, numbers), path)
    manifest["files"][name]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


LINKED = {"buckets": ("individuals.parquet", "buckets.parquet", "bucket"),
          "angel": ("data.parquet", "batches.parquet", "batch")}  # fmt: skip


@pytest.mark.parametrize("kind", LINKED)
@pytest.mark.parametrize("number", [10**8, 2**32, 10**15, 2**63 - 1])
def test_a_number_beyond_all_others_is_refused_before_a_table_of_all_is_made(
    kind: str, number: int, tmp_path: Path
) -> None:
    """Also where every number is that much larger: in fewer bits it would be another one."""
    saved = two_tables(kind, tmp_path)
    for file in LINKED[kind][:2]:
        changes: list[Any] = [lambda own: [*own[:-1], number]]
        changes += [lambda own: [one + number for one in own]] if number < 2**62 else []
        for at, change in enumerate(changes):
            folder = Path(shutil.copytree(saved, tmp_path / f"{file}{at}"))
            _with_column(folder, file, LINKED[kind][2], change)
            tracemalloc.start()
            try:
                with pytest.raises(InputError, match="does not describe its tables"):
                    jali.load(folder)
                assert tracemalloc.get_traced_memory()[1] < 10_000_000
            finally:
                tracemalloc.stop()


@pytest.mark.parametrize("kind", LINKED)
def test_people_who_add_up_to_few_in_64_bits_are_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long tables are added up as whole numbers, of which four times 2**62 are 0."""
    monkeypatch.setattr("jali.core.arrays._PIECE", 1)
    saved = two_tables(kind, tmp_path)
    _, file, number = LINKED[kind]
    own = pq.read_table(saved / file)
    first = own[number].to_pylist().count(1)
    size = sum(own["count"].to_pylist()[:first])
    assert first >= 5
    _with_column(saved, file, "count", lambda counts: [*[2**62] * 4, size - first + 5, *counts[5:]])
    with pytest.raises(InputError, match="does not describe its tables"):
        jali.load(saved)


def test_a_broken_promise_is_found_before_and_after_saving(tmp_path: Path) -> None:
    release = jali.anatomize(table(), jali.FrequencyDiversity(3))
    folder = release.save(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["principles"][0]["l"] = 5
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert not jali.audit(folder).holds
    held = release.contents
    elsewhere = held.pairs._replace(links=Runs.of(np.zeros_like(held.pairs.link)))
    for wrong in (held._replace(people=held.people + 1), held._replace(pairs=elsewhere)):
        release.contents = wrong
        with pytest.raises(InternalError, match="nothing was written"):
            release.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_only_the_holder_knows_who_is_where(tmp_path: Path) -> None:
    given = table()
    release = jali.anatomize(given, jali.FrequencyDiversity(2))
    for forgetful in (pickle.loads(pickle.dumps(release)), jali.load(release.save(tmp_path / "out"))):
        with pytest.raises(InputError, match="just made"):
            forgetful.assignment(given)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="just made"):
        release.assignment(table(rows=7))


def test_names_that_are_taken_get_out_of_the_way(tmp_path: Path) -> None:
    data = people(0).rename_columns(["bucket", "zip", "count", "pay", "w", "ward"])
    given = jali.table(data, quasi=["bucket", "zip"], sensitive=["count"])
    release = jali.load(jali.anatomize(given, jali.FrequencyDiversity(3)).save(tmp_path / "out"))
    assert release.tables["individuals"].column_names == ["bucket", "zip", "bucket_"]
    assert release.tables["buckets"].column_names == ["bucket_", "count", "count_"]


def test_missing_values_are_values() -> None:
    data = pa.table({"age": [1, None, 3, 4], "ill": ["cold", None, None, "flu"]})
    release = jali.anatomize(jali.table(data, quasi=["age"], sensitive=["ill"]), jali.FrequencyDiversity(2))
    assert release.estimate().count("ill IS NULL") == 2
    assert release.estimate().count("age IS NULL AND ill IS NULL").high == 1


def test_a_node_is_as_good_as_its_levels() -> None:
    node = jali.minimal(table(), [jali.FrequencyDiversity(2)])[0]
    one = jali.anatomize(table(), jali.FrequencyDiversity(2), buckets=node)
    other = jali.anatomize(table(), jali.FrequencyDiversity(2), buckets=dict(node.levels))
    assert sorted(map(str, by_bucket(one).values())) == sorted(map(str, by_bucket(other).values()))


@pytest.mark.parametrize(
    ("given", "promises", "way", "words"),
    [
        ({}, [jali.FrequencyDiversity(2)], {"buckets": "partitoin"}, 'did you mean "partition"'),
        ({}, [jali.FrequencyDiversity(2)], {"buckets": 3}, '"anatomy", "partition" or levels'),
        ({}, [jali.FrequencyDiversity(2)], {"buckets": {"zap": 1}}, 'did you mean "zip"'),
        ({}, [jali.FrequencyDiversity(2)], {"generalized": True}, "name the levels"),
        ({}, [jali.FrequencyDiversity(2)], {"generalized": "yes"}, "levels by column"),
        ({}, [jali.FrequencyDiversity(2)], {"generalized": {"age": 9}}, "levels 0 to 4"),
        ({}, [jali.FrequencyDiversity(2)], {"show": "set"}, "boxes of a partition"),
        ({}, [jali.EntropyDiversity(2)], {}, "no promise says"),
        ({}, [], {}, "no principle"),
        ({"sensitive": []}, [jali.FrequencyDiversity(2)], {}, "need a sensitive column"),
        ({"sensitive": ["ill", "pay"]}, [jali.FrequencyDiversity(2)], {}, "which sensitive column"),
        ({"sensitive": ["ill", "pay"]},
         [jali.FrequencyDiversity(2, sensitive="ill"), jali.FrequencyDiversity(1, sensitive="pay")], {}, "2 columns"),
        ({"person": "ward"}, [jali.FrequencyDiversity(2)], {}, "one row per person"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(given: Any, promises: Any, way: Any, words: str) -> None:
    with pytest.raises(InputError) as problem:
        jali.anatomize(table(**given), promises, **way)
    assert words in str(problem.value)


def test_what_cannot_be_reached_is_said_with_what_can() -> None:
    given = table(0)
    most = max(Counter(people(0)["ill"].to_pylist()).values())
    with pytest.raises(InfeasibleError, match=f"reaches {40 / most:.4g}"):
        jali.anatomize(given, jali.FrequencyDiversity(4.9))
    with pytest.raises(InfeasibleError, match=f"can reach is {40 // most}$"):
        jali.anatomize(given, jali.DistinctDiversity(5))
    with pytest.raises(InfeasibleError, match=r'do not keep .*use buckets="partition"'):
        jali.anatomize(given, [jali.FrequencyDiversity(2), jali.TCloseness(0.2)])
    with pytest.raises(InfeasibleError, match="these levels"):
        jali.anatomize(given, jali.FrequencyDiversity(3), buckets={"age": 0, "zip": 0})
    jali.anatomize(given, [jali.FrequencyDiversity(2), jali.TCloseness(0.2)], buckets="partition")


def test_any_promise_forms_the_buckets_of_a_partition() -> None:
    for promise in (jali.TCloseness(0.3), jali.EntropyDiversity(2.5), jali.RecursiveDiversity(3, 2)):
        release = jali.anatomize(table(), promise, buckets="partition")
        assert jali.audit(release).holds


def test_a_job_and_the_arguments_do_the_same(tmp_path: Path) -> None:
    from jali.job import Job

    people(0).to_pandas().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "job.toml").write_text(
        'input = "people.csv"\nmethod = "anatomize"\nquasi = ["age", "zip"]\nsensitive = ["ill"]\n'
        '[anatomize]\nbuckets = "partition"\ngeneralized = true\nshow = "set"\nsplit = "kl"\n'
        '[[principles]]\nname = "FrequencyDiversity"\nl = 2\n'
    )
    job = Job.load(tmp_path / "job.toml")
    release, same = job.run(), job.run()
    assert isinstance(release, Buckets)
    assert release.manifest.method == {
        "name": "anatomize", "buckets": "partition", "mode": "strict", "split": "kl", "generalized": True,
        "named": {"people": 5},
    }  # fmt: skip
    assert sorted(release.groups["rows"].to_pylist()) == sorted(same.groups["rows"].to_pylist())  # type: ignore[attr-defined]
