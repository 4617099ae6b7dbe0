"""Laws of ANGEL releases: batches keep the promises in every mixture, buckets keep k, and nothing else is told."""

from __future__ import annotations

import json
import pickle
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.core import arrays
from jali.cover.cover import Cover
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, InternalError
from jali.publish.checks import prepared
from jali.publish.drafts import of_groups
from jali.publish.partition import of_groups as boxed
from jali.releases.column import Published
from jali.releases.generalized import Partitioned
from jali.releases.linked import private as angel_keys
from jali.releases.linked.angel import Angel
from jali.releases.linked.join import smallest_certain
from jali.releases.linked.private import Assigned
from jali.releases.linked.tables import GroupTable
from oracles import angel as oracle
from oracles.often import seeds

ILL = ("flu", "cold", "cancer", "none", "asthma")


def people(seed: int, rows: int = 60) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table({
        "age": random.integers(20, 32, rows),
        "zip": random.choice(["13053", "13068", "14850"], rows),
        "sex": random.choice(["f", "m"], rows),
        "ill": random.choice(ILL, rows, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
        "pay": random.choice(["low", "high"], rows),
        "w": random.integers(1, 5, rows).astype(float),
        "ward": random.choice(["a", "b"], rows),
    })  # fmt: skip


def table(seed: int = 0, rows: int = 60, **roles: Any) -> Table:
    quasi = {"age": jali.bands(2, 4, 8), "zip": jali.mask(), "sex": jali.taxonomy([["f", "*"], ["m", "*"]])}
    return jali.table(people(seed, rows), **({"quasi": quasi, "sensitive": ["ill"]} | roles))


PRINCIPLES: list[Any] = [
    jali.DistinctDiversity(3),
    jali.FrequencyDiversity(2),
    jali.EntropyDiversity(2),
    jali.RecursiveDiversity(3, 2),
    jali.AlphaAnonymity(0.5, 4),
    jali.TCloseness(0.3),
    [jali.FrequencyDiversity(2), jali.TCloseness(0.4), jali.KAnonymity(3)],
]
WAYS: list[dict[str, Any]] = [
    {},
    {"batches": "curve", "show": "set"},
    {"batches": "partition", "buckets": "partition", "show": "taxonomy"},
]
BUCKETS = ("recode", "partition", "partition-kl")
MARGINALS = [["zip", "ill"], ["age", "sex"], ["age", "sex", "ill"]]


def batch_values(release: Angel) -> dict[int, Counter[Any]]:
    """The values of each batch, as its table says."""
    found: dict[int, Counter[Any]] = defaultdict(Counter)
    for row in release.batches.to_pylist():
        number, count = row.pop("batch"), row.pop("count")
        found[number][tuple(row.values())] += count
    return found


def shown_rows(release: Angel, name: str) -> list[oracle.Row]:
    """What each row of a table shows, and its batch."""
    found = []
    for row in release.tables[name].to_pylist():
        number = row.pop("batch", 0)
        found.append((tuple(row.values()), number))
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("principles", PRINCIPLES, ids=repr)
def test_batches_keep_the_promises_and_every_table_keeps_k(
    principles: Any, way: dict[str, Any], repeats: Callable[[int], int]
) -> None:
    """Judged from the published tables alone, by an oracle; every table has everybody, in the same batches."""
    for seed in range(repeats(3)):
        given_table = table(seed)
        release = jali.angelize(given_table, principles, k=3, marginals=MARGINALS, **way)
        batches, least = batch_values(release), release.k
        assert least == (4 if isinstance(principles, jali.AlphaAnonymity) else 3)
        assert list(release.tables) == ["data", "marginal-1", "marginal-2", "marginal-3", "batches"]
        assert release.tables["marginal-2"].column_names == ["age", "sex"]  # no sensitive column, no batch
        reference = {value[0]: n for value, n in sum(batches.values(), Counter()).items()}
        sensitive = release.counts().sensitive[0]
        judged = [p for p in release.principles if not isinstance(p, jali.KAnonymity)]
        for name in ("data", "marginal-1", "marginal-3"):
            rows = shown_rows(release, name)
            assert Counter(b for _, b in rows) == Counter({b: values.total() for b, values in batches.items()})
            assert min(Counter(cell for cell, _ in rows).values()) >= least
            for cell in {cell for cell, _ in rows}:
                found = {v[0]: f for v, f in oracle.bucket_mixture(rows, cell, batches).items()}
                for principle in judged:
                    assert oracle.keeps(principle, found, sensitive, reference)
        assert min(Counter(cell for cell, _ in shown_rows(release, "marginal-2")).values()) >= least


@given(st.integers(0, 10_000), st.sampled_from(PRINCIPLES), st.lists(st.integers(0, 7), min_size=30, max_size=30))
def test_every_mixture_of_batches_keeps_the_promises(seed: int, principles: Any, weights: list[int]) -> None:
    """Theorem 1: whatever an attacker infers about somebody's batch, exactly."""
    release = jali.angelize(table(seed % 40, 40), principles, k=2, buckets="partition")
    batches = {number: Counter({v[0]: n for v, n in c.items()}) for number, c in batch_values(release).items()}
    drawn = {number: weight for number, weight in zip(batches, weights, strict=False) if weight}
    if not drawn:
        drawn = dict.fromkeys(list(batches)[:1], 1)
    mixed = oracle.mixture({b: Fraction(w, sum(drawn.values())) for b, w in drawn.items()}, batches)
    reference = sum(batches.values(), Counter())
    for principle in release.batch_principles:
        assert oracle.keeps(principle, mixed, release.counts().sensitive[0], reference)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sensitive", [["ill"], ["ill", "pay"]])
def test_the_tables_are_those_of_the_people_who_were_put_into_them(way: dict[str, Any], sensitive: list[str]) -> None:
    """Each batch has its people's (joint) values; each row of a table covers somebody of its batch."""
    original = table(3, sensitive=sensitive)
    release = jali.angelize(
        original, jali.FrequencyDiversity(2, sensitive="ill"), k=3, marginals=[["age", "ill"]], **way
    )
    truth: dict[int, Counter[Any]] = defaultdict(Counter)
    for row, number in zip(original.frame("arrow").to_pylist(), release.assignment(original) + 1, strict=True):
        truth[int(number)][tuple(row[name] for name in sensitive)] += 1
    assert batch_values(release) == truth
    assert sorted(truth) == list(range(1, release.manifest.counts["batches"] + 1))
    estimate = release.estimate()
    assert estimate.count() == pytest.approx(60)
    assert estimate.sample(500, seed=1).num_rows == 500
    assert sum(estimate.frame(["zip", "ill"])["count"].to_pylist()) == pytest.approx(60)


def test_the_estimate_is_the_mixture_of_each_bucket(repeats: Callable[[int], int]) -> None:
    """probability(Q, x) = Σ over buckets that hold Q of |C| / |T| / |R(C)| · f(x), boxes that overlap added up."""
    for seed in range(repeats(4)):
        original = table(
            seed, quasi={"age": jali.bands(2, 4, 8, low=20, high=31), "sex": jali.taxonomy([["f", "*"], ["m", "*"]])}
        )
        release = jali.angelize(original, jali.FrequencyDiversity(2), k=3, show={"age": "interval", "sex": "set"})
        rows, batches = shown_rows(release, "data"), batch_values(release)
        cells = [(age, sex, ill) for age in range(20, 32) for sex in "fm" for ill in ILL]
        expected = []
        for age, sex, ill in cells:
            total = Fraction(0)
            for (shown_age, shown_sex), batch in rows:
                low, high = (int(x) for x in (shown_age.strip("[]").split(", ") * 2)[:2])
                sexes = shown_sex.strip("{}").split(", ")
                if low <= age <= high and sex in sexes:
                    share = Fraction(batches[batch][(ill,)], batches[batch].total())
                    total += Fraction(1, 60 * (high - low + 1) * len(sexes)) * share
            expected.append(float(total))
        asked = dict(zip(("age", "sex", "ill"), map(list, zip(*cells, strict=True)), strict=True))
        assert release.estimate().probability(asked).tolist() == pytest.approx(expected)


def test_it_is_never_worse_than_plain_generalization() -> None:
    """Section 3.4: the groups of the principle itself, as batches and buckets, if they give the lower KL."""
    owns = 0
    for seed in range(12):
        original = table(seed, 30, quasi={"age": jali.bands(2, 4, 8), "sex": jali.taxonomy([["f", "*"], ["m", "*"]])})
        for promise in (jali.FrequencyDiversity(1.5), jali.TCloseness(0.5), jali.DistinctDiversity(2)):
            angel = jali.angelize(original, promise, k=2, buckets="partition")
            plain = jali.partition(original, [promise, jali.KAnonymity(2)])
            assert angel.manifest.metrics["kl"] <= plain.manifest.metrics["kl"] + 1e-9
            owns += angel.manifest.method["batches"] == "own"
    assert owns > 0  # the case occurs


@pytest.mark.slow
def test_the_best_batches_and_buckets_are_the_better_ones_as_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default the KL is that of the best of all ways, in the display that is asked for, if all draw the same."""
    ways = [(batches, buckets) for batches in ("partition", "curve", "anatomy") for buckets in BUCKETS]
    taken = set()
    for seed, show in enumerate((None, "taxonomy", "set", None)):

        def same(rows: int, seed: int = seed) -> Any:
            return np.random.default_rng(seed).permutation(rows)

        monkeypatch.setattr("jali.publish.drafts.fresh_order", same)
        given_table, promise = table(seed, 40), jali.FrequencyDiversity(2)
        best = jali.angelize(given_table, promise, k=3, show=show)
        each = {
            way: jali.angelize(given_table, promise, k=3, batches=way[0], buckets=way[1], show=show) for way in ways
        }
        lowest = min(release.manifest.metrics["kl"] for release in each.values())
        assert best.manifest.metrics["kl"] == pytest.approx(lowest)
        assert jali.measure(best, given_table).kl == pytest.approx(lowest)  # from what is published
        taken.add((best.manifest.method["batches"], best.manifest.method["buckets"]))
    assert len(taken) > 1  # not always the same


def test_table_1a_of_the_paper_is_shown_by_the_boxes_that_fit_it() -> None:
    """Eight people in four pairs: a partition shows each pair by itself, with KL log 2; recoding joins bands of ten."""
    people = {"age": [21, 23, 38, 40, 41, 43, 58, 60], "sex": list("MMFFMMFF"), "ill": ["p", "p", "b", "b"] * 2}
    original = jali.table(
        pa.table(people), quasi={"age": jali.bands(10, 20, 40), "sex": jali.suppress()}, sensitive=["ill"]
    )
    shows: Any = {"age": "interval-exact", "sex": "set-exact"}
    release = jali.angelize(original, jali.FrequencyDiversity(2), k=2, show=shows)
    assert release.manifest.metrics["kl"] == pytest.approx(np.log(2))
    assert sorted(set(release.tables["data"]["age"].to_pylist())) == ["[21, 23]", "[38, 40]", "[41, 43]", "[58, 60]"]


def test_where_one_batch_is_left_the_dealt_ones_are_taken() -> None:
    """Two values in four have nearly half of the people each: no half of a cut keeps 2, dealt pairs do."""
    random = np.random.default_rng(5)
    values = random.permutation(["p"] * 20 + ["q"] * 19 + ["r"])
    original = jali.table(pa.table({"age": range(40), "ill": values}), quasi=["age"], sensitive=["ill"])
    options: Any = {"k": 2, "show": "interval-exact"}
    promise = jali.FrequencyDiversity(2)
    cut = {way: jali.angelize(original, promise, batches=way, **options) for way in ("partition", "curve")}
    best = jali.angelize(original, promise, **options)
    assert best.manifest.counts["batches"] > max(each.manifest.counts["batches"] for each in cut.values())
    assert best.manifest.method["batches"] == "anatomy"
    assert best.manifest.metrics["kl"] < min(each.manifest.metrics["kl"] for each in cut.values())


# -- the join -------------------------------------------------------------------------------------------------------


def group_table(name: str, rows: list[oracle.Row]) -> GroupTable:
    """A table with one column of its own, whose cells are these."""
    original = jali.table(pa.table({name: [str(cell) for cell, _ in rows]}), quasi=[name])
    made = boxed(
        Partitioned, original, original[name].codes.astype(np.int64), len(original[name].values), (jali.KAnonymity(1),),
        method={}, shows={name: "set"},
    )  # fmt: skip
    published = made[name]
    text = [published.labels[int(code)].as_py() for code in published.codes]
    order = [text.index(str(cell)) for cell, _ in rows]  # any row that shows the same has the same code
    codes = published.codes[order]
    return GroupTable(name, (published.with_codes(codes),), np.array([b for _, b in rows], dtype=np.int64))


def test_the_example_of_a_join_that_breaks_k() -> None:
    """(20-21, 1)(20-21, 2)(60-61, 1)(60-61, 2) and (A, 1)(A, 1)(B, 2)(B, 2): one person is 20-21 and A."""
    ages = [("20-21", 0), ("20-21", 1), ("60-61", 0), ("60-61", 1)]
    zips = [("A", 0), ("A", 0), ("B", 1), ("B", 1)]
    found = smallest_certain([group_table("ages", ages), group_table("zips", zips)], np.array([2, 2]))
    assert found is not None
    assert (found.low, found.high) == (1, 1)
    assert set(found.cells) == {"ages", "zips"}


@given(st.data())
def test_the_smallest_certain_cell_is_found_by_seating_everybody(data: Any) -> None:
    """Against every way to seat the people of each batch, for two and three tables."""
    batch = data.draw(st.lists(st.integers(0, 1), min_size=2, max_size=6).map(sorted))
    batch = [b - batch[0] for b in batch]
    many = data.draw(st.integers(2, 3))
    tables = [
        list(
            zip(
                data.draw(st.lists(st.sampled_from("AB"), min_size=len(batch), max_size=len(batch))), batch, strict=True
            )
        )
        for _ in range(many)
    ]
    expected = None
    for size in range(2, many + 1):
        for some in combinations(range(many), size):
            for low, high in oracle.certain_cells([tables[i] for i in some]).values():
                expected = (high, low) if expected is None else min(expected, (high, low))
    made = [group_table(f"t{i}", rows) for i, rows in enumerate(tables)]
    found = smallest_certain(made, np.bincount(batch))
    assert (None if found is None else (found.high, found.low)) == expected


def shared_table(name: str, rows: list[oracle.Row], own: bool) -> GroupTable:
    """A table whose cells are sets of letters of a column "c" that all tables show; with a column of its own beside."""
    cells = sorted({str(cell) for cell, _ in rows})
    codes = np.array([cells.index(str(cell)) for cell, _ in rows])
    start = np.cumsum([0, *map(len, cells)])
    cover = Cover.sets(pa.array(list("abc")), start, ["abc".index(letter) for cell in cells for letter in cell])
    shown = [Published("c", "quasi", "text", pa.array(cells), codes, cover)]
    if own:
        exact = Cover.exact(pa.array(cells))
        shown.append(Published(name, "quasi", "text", pa.array(cells), codes, exact))
    return GroupTable(name, tuple(shown), np.array([b for _, b in rows], dtype=np.int64))


@given(st.data())
def test_cells_that_share_no_value_of_a_column_have_nobody_in_common(data: Any) -> None:
    """Of two tables over one column, what follows from the room that cells leave is found, and no seating belies it."""
    people = data.draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1)), min_size=2, max_size=7))
    batch = sorted(b for _, b in people)
    people = [(letter, b - batch[0]) for letter, b in people]
    boxes = st.sampled_from(["a", "b", "c", "ab", "bc", "abc"])
    tables: list[list[oracle.Row]] = []
    for _ in range(2):
        cell = {letter: data.draw(boxes.filter(lambda box, own=letter: own in box)) for letter in "abc"}
        tables.append([(cell[letter], b) for letter, b in people])

    def fits(one: str, two: str) -> bool:
        return bool({*one} & {*two})

    made = [shared_table(f"t{i}", rows, data.draw(st.booleans())) for i, rows in enumerate(tables)]
    found = smallest_certain(made, np.bincount([b for _, b in people]))
    expected = oracle.pairs_with_room(tables[0], tables[1], fits)
    assert (None if found is None else (found.high, found.low)) == min(
        ((high, low) for low, high in expected.values()), default=None
    )
    if found is not None:
        low, high = oracle.certain_cells(tables, fits)[tuple(str(found.cells[f"t{i}"]["c"]) for i in range(2))]
        assert found.low <= low <= high <= found.high


def test_joint_k_refuses_somebody_who_is_alone_in_two_cells_over_one_column() -> None:
    """One of the four of a batch is 30, and only one of its boxes, ({25, 30}, A), holds 30: one person is 30 and A.

    The counts alone would leave room: two are in that box and one is 30, of four.
    """
    people = {"age": [30, 25, 40, 41, 30, 31, 25, 26], "zip": list("AAAABBBB"), "ill": list("xyxyxyxy")}
    original = jali.table(pa.table(people), quasi=["age", "zip"], sensitive=["ill"])
    batch = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    buckets = {
        ("age", "zip"): np.array([0, 0, 1, 1, 2, 2, 3, 3]),
        ("age", "ill"): np.array([0, 1, 2, 2, 0, 3, 1, 3]),
    }
    shows: dict[str, Any] = {"age": "set", "zip": "set"}
    promises = (jali.FrequencyDiversity(2),)
    found = of_groups(original, batch, buckets, promises, k=2, shows=shows).joint_cell()
    assert found is not None
    assert (found.low, found.high) == (1, 1)
    with pytest.raises(InputError, match="show a cell of 1 person, fewer than k = 2"):
        of_groups(original, batch, buckets, promises, k=2, shows=shows, joint_k=True)


def test_joint_k_coarsens_what_would_break_k_and_says_what() -> None:
    """The audit of what was published without it says that k is broken, with it that k is kept."""
    marginals = [["zip", "ill"], ["age", "ill"]]
    coarsened = 0
    for seed in range(3):
        original = table(seed)
        audit = jali.audit(jali.angelize(original, jali.FrequencyDiversity(2), k=3, marginals=marginals))
        assert audit.angel is not None
        assert audit.angel.tables == 3
        release = jali.angelize(original, jali.FrequencyDiversity(2), k=3, marginals=marginals, joint_k=True)
        assert release.joint_check().kept
        assert jali.audit(release).holds
        changed = release.manifest.method["coarsened"]
        if audit.angel.joint_keeps_k:
            assert changed == {}
            continue
        coarsened += 1
        assert "NO, k = 3" in repr(audit)
        assert changed
        assert all(f"{name} (" in repr(release).split("Coarsened")[1] for name in changed)
    assert coarsened > 0


def test_an_extension_keeps_k_together_with_what_is_there_or_is_refused() -> None:
    """New marginals are coarsened; what was published before stays as it is."""
    added = 0
    for seed in range(3):
        original = table(seed)
        alone = jali.angelize(original, jali.FrequencyDiversity(2), k=3, joint_k=True)
        for marginal in (["age"], ["zip", "ill"]):
            try:
                later = alone.extend(original, [marginal])
            except InputError:
                continue
            added += 1
            assert later.joint_check().kept
            assert later.tables["data"].equals(alone.tables["data"])
    assert added > 0


# -- saved, loaded, extended ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_saved_release_says_the_same(tmp_path: Path, format: Any) -> None:
    """Tables, promises, estimates; and the private file lies beside it, not in it, and only when asked for."""
    original = table(1, sensitive=["ill", "pay"], weights="w")
    promise = jali.MultiAttribute(jali.FrequencyDiversity(1.2))
    release = jali.angelize(original, promise, k=3, marginals=[["zip", "ill"], ["age", "sex"]])
    release.save(tmp_path / "out", format=format)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    again = jali.load(tmp_path / "out")
    assert isinstance(again, Angel)
    again.verify()
    for name, shown in release.tables.items():
        assert again.tables[name].to_pylist() == shown.to_pylist()
    for question in ("age >= 25 AND ill = 'flu'", "zip = '13053' AND pay = 'low'", "age >= 25"):
        assert again.estimate().count(question) == pytest.approx(release.estimate().count(question))
    assert jali.audit(again).holds
    assert jali.measure(again, original).kl == pytest.approx(release.manifest.metrics["kl"])
    release.save(tmp_path / "two", format=format, private=tmp_path / "keys.parquet")
    assert (tmp_path / "keys.parquet").stat().st_mode & 0o077 == 0  # for its owner only
    assert not {"keys.parquet"} & {path.name for path in (tmp_path / "two").iterdir()}
    keys = pq.read_table(tmp_path / "keys.parquet")
    assert sum(keys["count"].to_pylist()) == 60


def test_a_release_can_be_extended_at_once_and_months_later(tmp_path: Path) -> None:
    """The batches stay, the tables that were there stay row by row; rows and columns may come in another order."""
    original = table(2)
    release = jali.angelize(original, jali.TCloseness(0.4), k=3, marginals=[["zip", "ill"]])
    release.save(tmp_path / "out", private=tmp_path / "keys.parquet")
    loaded = jali.load(tmp_path / "out")
    assert isinstance(loaded, Angel)
    shuffled = jali.table(
        people(2).take(pa.array(np.random.default_rng(0).permutation(60))).select(["ill", "sex", "age", "zip"]),
        quasi={"age": jali.bands(2, 4, 8), "zip": jali.mask(), "sex": jali.taxonomy([["f", "*"], ["m", "*"]])},
        sensitive=["ill"],
    )  # fmt: skip
    assert [column.name for column in shuffled.quasi] == ["sex", "age", "zip"]
    more = [["zip", "sex", "ill"], ["age"]]
    for later in (
        release.extend(original, more),
        loaded.extend(shuffled, more, private=tmp_path / "keys.parquet"),
    ):
        assert later.batches.to_pylist() == release.batches.to_pylist()
        for name in ("data", "marginal-1"):
            assert later.tables[name].to_pylist() == release.tables[name].to_pylist()
        assert later.tables["marginal-2"].column_names == ["zip", "sex", "batch"]
        assert later.tables["marginal-3"].column_names == ["age"]
        later.save(tmp_path / "new", overwrite=True, private=tmp_path / "again.parquet")
        assert pq.read_table(tmp_path / "again.parquet").equals(pq.read_table(tmp_path / "keys.parquet"))
        assert later.estimate().count("zip = '13053' AND ill = 'flu'").high <= 60


def test_a_table_with_missing_values_can_be_extended_from_its_private_file(tmp_path: Path) -> None:
    """In numbers and in texts, beside an empty text, which is another value."""
    frame = people(4)
    age = [None if one < 23 else one for one in frame["age"].to_pylist()]
    place = [{"13053": None, "13068": ""}.get(one, one) for one in frame["zip"].to_pylist()]
    ill = [None if one == "none" else one for one in frame["ill"].to_pylist()]
    frame = pa.table({"age": age, "zip": place, "ill": ill})
    original = jali.table(frame, quasi={"age": jali.bands(2, 4, 8), "zip": jali.suppress()}, sensitive=["ill"])
    release = jali.angelize(original, jali.EntropyDiversity(2), k=5)
    release.save(tmp_path / "out", private=tmp_path / "keys.parquet")
    rows = pq.read_table(tmp_path / "keys.parquet").to_pylist()
    held = Counter((str(r["age"]) if r["age"] else None, r["zip"], r["ill"]) for r in rows for _ in range(r["count"]))
    texts = [None if one is None else str(one) for one in age]
    assert held == Counter(zip(texts, place, ill, strict=True))
    loaded = jali.load(tmp_path / "out")
    assert isinstance(loaded, Angel)
    later = loaded.extend(original, [["age", "ill"]], private=tmp_path / "keys.parquet")
    assert later.batches.to_pylist() == release.batches.to_pylist()
    assert later.tables["marginal-1"].column_names == ["age", "batch"]


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    """Another table, another release's file, no file, a file of something else: nothing is written."""
    original, other = table(2), table(3)
    release = jali.angelize(original, jali.FrequencyDiversity(2), k=3)
    foreign = jali.angelize(original, jali.FrequencyDiversity(1.5), k=3, batches="curve")
    release.save(tmp_path / "out", private=tmp_path / "keys.parquet")
    foreign.save(tmp_path / "foreign", private=tmp_path / "foreign.parquet")
    (tmp_path / "nothing.parquet").write_text("nothing")
    loaded = jali.load(tmp_path / "out")
    assert isinstance(loaded, Angel)
    want = [["zip", "ill"]]
    for call, match in (
        (lambda: loaded.extend(original, want), "does not know who is in which batch"),
        (lambda: loaded.extend(other, want, private=tmp_path / "keys.parquet"), "does not belong to this table"),
        (
            lambda: loaded.extend(original, want, private=tmp_path / "foreign.parquet"),
            "does not belong to this release",
        ),
        (lambda: loaded.extend(original, want, private=tmp_path / "nothing.parquet"), "not a private file"),
        (lambda: loaded.extend(original, want, private=tmp_path / "absent.parquet"), "no private file"),
        (lambda: loaded.save(tmp_path / "x", private=tmp_path / "x.parquet"), "just made"),
        (lambda: release.save(tmp_path / "x", private=tmp_path / "x" / "keys.parquet"), "must not lie in the folder"),
        (lambda: release.save(tmp_path / "x", private=tmp_path / "keys.parquet"), "exists"),
        (lambda: release.save(tmp_path / "x", private=tmp_path / "keys.csv"), "Parquet"),
        (lambda: release.save(tmp_path / "out", private=tmp_path / "x.parquet"), "not empty"),
        (lambda: release.extend(table(2, sensitive=["pay"]), want), "other sensitive columns"),
        (lambda: release.extend(other, want), "not the table that the release was made from"),
        (lambda: release.extend(original, []), "no marginal to add"),
        (lambda: release.save(3), "a path is text"),  # type: ignore[arg-type]
        (lambda: release.save(tmp_path / "x", private=3), "a path is text"),  # type: ignore[arg-type]
        (lambda: release.extend(original, [["age", "zip", "sex", "ill"]]), "no marginal to add"),
    ):
        with pytest.raises(InputError, match=match):
            call()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"out", "foreign", "keys.parquet", "foreign.parquet", "nothing.parquet"}


def test_the_private_file_never_lies_in_a_release_folder(tmp_path: Path) -> None:
    """Neither in its own nor in another one, nor deeper in one, nor by way of a link; and nothing is left behind."""
    original = table(1)
    release = jali.angelize(original, jali.FrequencyDiversity(2), k=3)
    jali.generalize(original, [jali.KAnonymity(3)]).save(tmp_path / "other")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    before = sorted(tmp_path.rglob("*"))
    for place in ("other/keys.parquet", "other/deep/er/keys.parquet", "link/keys.parquet", "own/keys.parquet"):
        with pytest.raises(InputError, match="must not lie in the folder"):
            release.save(tmp_path / "own", private=tmp_path / place)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_private_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    """Whatever was done to it; also what every count would bear out: two people with one value in swapped batches."""
    original = table(2)
    release = jali.angelize(original, jali.FrequencyDiversity(2), k=3, batches="curve")
    release.save(tmp_path / "out", private=tmp_path / "keys.parquet")
    loaded, keys = jali.load(tmp_path / "out"), pq.read_table(tmp_path / "keys.parquet")
    assert isinstance(loaded, Angel)
    want, path = [["zip", "ill"]], tmp_path / "changed.parquet"
    batch, value = keys["batch"].to_numpy(), keys["ill"].to_pylist()
    one, other = next(
        (i, j) for i in range(len(batch)) for j in range(i) if batch[i] != batch[j] and value[i] == value[j]
    )
    swapped = batch.copy()
    swapped[[one, other]] = batch[[other, one]]
    assert loaded.extend(original, want, private=tmp_path / "keys.parquet").rows == 60
    for name, amounts in (
        ("batch", swapped), ("batch", np.where(np.arange(len(batch)) == 0, 10**15, batch)), ("batch", batch - 1),
        ("count", keys["count"].to_numpy() + 0.5), ("count", [None] * len(keys)),
    ):  # fmt: skip
        at = keys.column_names.index(name)
        changed = keys.set_column(at, name, pa.array(amounts))
        pq.write_table(changed, path)
        with pytest.raises(InputError, match="not as it was saved"):
            loaded.extend(original, want, private=path)
        pq.write_table(changed.replace_schema_metadata({"jali": angel_keys._digest(changed)}), path)
        if amounts is swapped:  # by somebody who means to: the promises rest on the batches all the same
            loaded.extend(original, want, private=path).verify()
        else:
            with pytest.raises(InputError, match="does not belong to this"):
                loaded.extend(original, want, private=path)
    pq.write_table(keys.slice(1), path)
    for private, match in ((path, "not as it was saved"), (3, "a path is text")):
        with pytest.raises(InputError, match=match):
            loaded.extend(original, want, private=private)  # type: ignore[arg-type]


def test_distributions_of_quasi_identifiers_can_be_shown_too(tmp_path: Path) -> None:
    """show="pdf": saved, read back and asked like any other display."""
    release = jali.angelize(table(2), jali.FrequencyDiversity(2), k=3, show="pdf", marginals=[["zip", "ill"]])
    release.save(tmp_path / "out")
    loaded = jali.load(tmp_path / "out")
    for asked in ("ill = 'flu' AND age >= 30", "zip = '13053' AND ill = 'flu'"):
        assert loaded.estimate().count(asked) == pytest.approx(float(release.estimate().count(asked)))
    assert jali.audit(loaded).holds


def test_nothing_of_the_original_travels_with_a_release(tmp_path: Path) -> None:
    """No key in a pickle; fresh numbers and fresh orders at every call."""
    original = table(4)
    release = jali.angelize(original, jali.FrequencyDiversity(2), k=3, marginals=[["zip", "ill"]])
    thawed = pickle.loads(pickle.dumps(release))
    with pytest.raises(InputError, match="just made"):
        thawed.assignment(original)
    with pytest.raises(InputError, match="does not know"):
        thawed.extend(original, [["age", "ill"]])
    again = jali.angelize(original, jali.FrequencyDiversity(2), k=3, marginals=[["zip", "ill"]])
    assert release.tables["data"].to_pylist() != again.tables["data"].to_pylist()
    orders = [[row["batch"] for row in release.tables[name].to_pylist()] for name in ("data", "marginal-1")]
    assert orders[0] != orders[1]
    release.save(tmp_path / "out")
    told = (tmp_path / "out" / "manifest.json").read_text(encoding="utf-8")
    assert not {"keys", "order"} & set(json.loads(told))


def test_a_tampered_release_is_not_saved(tmp_path: Path) -> None:
    """Batches, buckets, sizes: each is judged again from the tables alone."""
    release = jali.angelize(table(5), jali.FrequencyDiversity(2), k=3, marginals=[["zip", "ill"]])
    held = release.contents
    first, second = held.tables
    lonely = np.zeros_like(held.people)
    lonely[:] = held.people
    lonely[0] += 1
    swapped = first.batch.copy()  # type: ignore[union-attr]
    swapped[0] = (swapped[0] + 1) % len(held.size)
    shown = tuple(column.with_codes(column.codes) for column in first.columns)
    split = (shown[0].with_codes(np.append(shown[0].codes[1:], shown[0].codes[:1])), *shown[1:])
    for broken in (
        held._replace(people=lonely),
        held._replace(tables=(GroupTable("data", shown, swapped), second)),
        held._replace(tables=(GroupTable("data", split, first.batch), second)),
        held._replace(tables=(GroupTable("data", shown, None), second)),
    ):
        with pytest.raises(InternalError, match="nothing was written"):
            Angel(broken, release.manifest).save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("principles", "options", "match"),
    [
        (jali.FrequencyDiversity(2), {}, "how many people must look alike"),
        (jali.KAnonymity(3), {}, "no principle says what batches must keep"),
        (jali.MultiAttribute(jali.Safety(0.7, 1)), {"k": 3}, "judges all groups at once"),
        (jali.MultiAttribute(jali.KAnonymity(2)), {"k": 3}, "counts people of a batch"),
        (jali.FrequencyDiversity(2), {"k": 61}, "larger than the table"),
        (jali.FrequencyDiversity(2), {"k": 0}, "whole number"),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": [["zpi", "ill"]]}, 'did you mean "zip"'),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": [["ill"]]}, "no quasi-identifier"),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": [[]]}, "no quasi-identifier"),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": ["zip"]}, "list of column names"),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": [["zip", "zip"]]}, "twice"),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": 5}, "marginals are lists of columns"),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": 0}, "marginals are lists of columns"),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": [5]}, "list of column names"),
        (jali.FrequencyDiversity(2), {"k": 3, "marginals": [None]}, "list of column names"),
        (jali.DeltaPresence(0.1, 0.5), {"k": 3}, "about a private table and the public one"),
        ([jali.FrequencyDiversity(2), jali.DeltaPresence(0.1, 0.5)], {"k": 3}, "about a private table and the public"),
        (jali.FrequencyDiversity(2), {"k": 3, "batches": "curved"}, 'did you mean "curve"'),
        (jali.FrequencyDiversity(2), {"k": 3, "buckets": "recoded"}, 'did you mean "recode"'),
        (jali.FrequencyDiversity(2), {"k": 3, "joint_k": "yes"}, "true or false"),
        (jali.FrequencyDiversity(2), {"k": 3, "joint_time": 0}, "seconds above 0"),
        (jali.FrequencyDiversity(2), {"k": 3, "show": "pie"}, "display"),
    ],
)
def test_bad_input_is_one_clear_line(principles: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        jali.angelize(table(), principles, **options)


def test_what_cannot_be_published_is_said() -> None:
    """A principle that even the whole table fails; other columns; persons; no sensitive column; questions."""
    with pytest.raises(InfeasibleError, match="cannot be met"):
        jali.angelize(table(), jali.FrequencyDiversity(5), k=3)
    for roles, match in (
        ({"other": ["ward"]}, "no other columns"),
        ({"person": "w"}, "one row per person"),
        ({"sensitive": []}, "need a sensitive column"),
    ):
        with pytest.raises(InputError, match=match):
            jali.angelize(table(**roles), jali.FrequencyDiversity(2), k=3)
    estimate = jali.angelize(table(), jali.FrequencyDiversity(2), k=3).estimate()
    with pytest.raises(InputError, match="was published"):
        estimate.count("ward = 'a'")
    with pytest.raises(InputError):
        estimate.count("age >")


def test_the_graph_is_drawn_for_small_releases_only(tmp_path: Path) -> None:
    """Figure 2: buckets, batches and the lines between them."""
    pytest.importorskip("matplotlib")
    release = jali.angelize(table(0), jali.FrequencyDiversity(2), k=5)
    drawn = release.graph(tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert "flu" in drawn
    large = jali.angelize(table(0, 600), jali.FrequencyDiversity(2), k=2)
    with pytest.raises(InputError, match="cannot be read"):
        large.graph(tmp_path / "large.svg")
    with pytest.raises(InputError, match="ending"):
        release.graph(tmp_path / "graph")
    assert not (tmp_path / "large.svg").exists()


def test_several_rows_that_stand_for_one_record_and_given_groups() -> None:
    """k = n, one bucket, one batch: everything is one group; and given groups that fail are refused."""
    original = table(6, 12)
    release = jali.angelize(original, jali.TCloseness(0.0), k=12)
    assert release.manifest.counts["batches"] == release.manifest.counts["groups"] == 1
    shows: Any = {"age": "interval", "zip": "set", "sex": "set"}
    each = {("age", "zip", "sex"): np.arange(12)}
    with pytest.raises(InputError, match="do not keep"):
        of_groups(original, np.arange(12), each, (jali.FrequencyDiversity(2),), k=1, shows=shows)
    with pytest.raises(InputError, match="k = 2 people"):
        of_groups(original, np.zeros(12, dtype=np.int64), each, (jali.TCloseness(0.5),), k=2, shows=shows)


@given(seeds)
def test_people_are_counted_by_combination_value_and_batch(seed: int) -> None:
    """From the batches of records or of combinations, one sensitive column or two: what counting rows gives."""
    made = prepared(table(seed, sensitive=["ill", "pay"][: 1 + seed % 2]))
    random = np.random.default_rng(seed)
    f = made.frequencies
    of_combination = random.integers(0, 4, f.combinations)
    of_combination[:4] = range(4)
    of_record = random.integers(0, 4, made.records)
    of_record[:4] = range(4)
    both = ((Assigned.of_combinations(made, of_combination), of_combination[f.row_combination]),
            (Assigned.of_records(made, of_record), of_record))  # fmt: skip
    order = random.permutation(4)
    for assigned, batch in both:
        for found, wanted in ((assigned, batch), (assigned.renumbered(order), order[batch])):
            values = zip(*(column.codes.tolist() for column in made.sensitive), strict=True)
            counted = Counter(zip(f.row_combination.tolist(), values, wanted.tolist(), strict=True))
            parts = zip(found.combination.tolist(), found.value.tolist(), found.batch.tolist(), strict=True)
            told = [(c, tuple(f.joint[v].tolist()), b) for c, v, b in parts]
            assert dict(zip(told, found.people.tolist(), strict=True)) == counted
            assert len(told) == len(counted)
            assert found.of_record.tolist() == wanted.tolist()


@given(seeds)
def test_the_kl_of_a_draft_is_that_of_the_release_it_becomes(seed: int) -> None:
    """Priced from combinations before anything is published, and from the published tables afterwards."""
    made = table(seed, **({"weights": "w"} if seed % 2 else {}))
    release = jali.angelize(made, PRINCIPLES[seed % 4], k=3, **WAYS[seed % 3])
    again = jali.measure(release, made).kl
    assert release.manifest.metrics["kl"] == pytest.approx(again, rel=1e-12)


@given(seeds)
def test_a_posterior_is_the_same_however_it_is_added_up(seed: int) -> None:
    """All pairs at once or a few at a time."""
    release = jali.angelize(table(seed), jali.FrequencyDiversity(2), k=2)
    wanted = release.posterior()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "AT_ONCE", 3)
        found = release.posterior()
    assert found.group.tolist() == wanted.group.tolist()
    assert found.value.tolist() == wanted.value.tolist()
    assert np.abs(found.n - wanted.n).max() <= 1


@given(seeds)
def test_kept_judges_k_by_the_rows_that_look_alike_and_never_by_batches(seed: int) -> None:
    """Batches may be smaller than k: what k counts are the rows of each table that show the same."""
    release = jali.angelize(table(seed, 12), [jali.KAnonymity(4), jali.DistinctDiversity(2)], marginals=[["age"]])
    shown = [release.tables[one.name].select([c.name for c in one.columns]) for one in release.contents.tables]
    fewest = min(min(Counter(tuple(row.values()) for row in one.to_pylist()).values()) for one in shown)
    assert release.kept() == {"KAnonymity(4)": fewest >= 4, "DistinctDiversity(2)": True}
