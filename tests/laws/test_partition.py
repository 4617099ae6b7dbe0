"""Laws of partitioned and recoded releases: what is shown is right, and keeps every promise in the saved file."""

from __future__ import annotations

import csv
import itertools
import json
import math
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.publish.partition import of_groups
from jali.releases.display import _set_text
from jali.releases.generalized import Partitioned

TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*")]
SHOWS = (None, "taxonomy", "interval", "set", "interval-exact", "set-exact")


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Small tables with ties, missing values, and one column of each kind."""
    rows = draw(st.integers(2, 16))
    column = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    frame = {
        "age": column(draw(st.sampled_from([[30], [20, 21, 29, 30], [1, 2, 3, 18, 35, None]]))),
        "tree": column(["a", "b", "c", "d"][: draw(st.integers(1, 4))]),
        "town": column(["Ithaca", "Dryden", "Etna"][: draw(st.integers(1, 3))]),
        "ill": column(["flu", "cold", "cancer"][: draw(st.integers(1, 3))]),
    }
    quasi = {"age": jali.bands(5, 10), "tree": jali.taxonomy(TREE), "town": jali.suppress()}
    domain: Any = draw(st.sampled_from(["declared", "present"]))
    return jali.table(pa.table(frame), quasi=quasi, sensitive=["ill"], domain=domain)


requirements = st.sampled_from(
    [
        [jali.KAnonymity(2)],
        [jali.KAnonymity(3), jali.DistinctDiversity(2)],
        [jali.EntropyDiversity(1.5)],
        [jali.FrequencyDiversity(1.5)],
    ]
)
ways = st.one_of(
    st.fixed_dictionaries(
        {
            "show": st.sampled_from(SHOWS),
            "mode": st.sampled_from(["strict", "relaxed"]),
            "split": st.sampled_from(["range", "entropy", "kl"]),
            "suppress": st.sampled_from([0, 0.3, 0.6]),
        }
    ),
    st.fixed_dictionaries(
        {
            "show": st.sampled_from(["taxonomy", "set", "set-exact"]),
            "objective": st.sampled_from(["kl", "granularity"]),
            "peel": st.sampled_from(["size", "principle"]),
            "suppress": st.sampled_from([0, 0.3, 0.6]),
        }
    ),
)


def published(table: Table, principles: list[Any], way: dict[str, Any]) -> Any:
    """The release, or None where the whole table fails."""
    try:
        if "objective" in way:
            return jali.recode(table, principles, **way)
        return jali.partition(table, principles, **way)
    except (InfeasibleError, InputError):
        return None


@given(tables(), requirements, ways)
def test_every_group_of_the_saved_file_keeps_every_promise(table: Table, principles: list[Any], way: Any) -> None:
    """Counted again with nothing but the csv module and the definitions."""
    release = published(table, principles, way)
    if release is None:
        return
    with TemporaryDirectory() as folder:
        release.save(Path(folder) / "out")
        with open(Path(folder) / "out" / "data.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        loaded = jali.load(Path(folder) / "out")
    groups: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for row in rows:
        groups[row["age"], row["tree"], row["town"]][row["ill"]] += 1
    for counts in groups.values():
        size = counts.total()
        entropy = -sum(n / size * math.log(n / size) for n in counts.values())
        for principle in principles:
            reached = {
                "KAnonymity": size,
                "DistinctDiversity": len(counts),
                "EntropyDiversity": math.exp(entropy) + 1e-9,
                "FrequencyDiversity": size / max(counts.values()),
            }[type(principle).__name__]
            assert reached >= float(principle.bound)
    assert Counter(row["ill"] for row in rows) == Counter(table.frame("arrow")["ill"].to_pylist())
    assert loaded.frame("arrow").to_pylist() == release.frame("arrow").to_pylist()
    assert jali.audit(loaded).to_dict() == jali.audit(release).to_dict()
    assert jali.measure(loaded, table).kl == pytest.approx(jali.measure(release, table).kl, abs=1e-12)


def _covers(label: str | None, value: Any, column: str, cells: Iterable[str | None]) -> bool:
    """Whether a shown cell stands for a value, read as a person would: other values are those that no cell names."""
    if label is None or value is None:
        return (label is None and value is None) or (value is None and str(label).endswith("or missing")) or (
            value is None and (label == "*" or "missing" in str(label))
        )  # fmt: skip
    text = str(label).removesuffix(" or missing")
    if text in ("*", str(value)):
        return True
    if text.startswith("["):
        low, high = (int(part) for part in text[1:-1].split(", "))
        return low <= value <= high
    if text.startswith("{"):
        names = text[1:-1].split(", ")
        elsewhere = {name for cell in cells for name in str(cell).strip("{}").split(", ")}
        return str(value) in names or ("other values" in names and str(value) not in elsewhere)
    return column == "tree" and any(row[0] == value and text in row for row in TREE)


@given(tables(), requirements, ways)
def test_every_row_lies_in_a_box_that_shows_it(table: Table, principles: list[Any], way: Any) -> None:
    """For each person of the table a published row with the same sensitive value covers all quasi-identifiers."""
    release = published(table, principles, way)
    if release is None:
        return
    shown = release.frame("arrow").to_pylist()
    cells = {c: {s[c] for s in shown} for c in ("age", "tree", "town")}
    for row in table.frame("arrow").to_pylist():
        assert any(
            s["ill"] == row["ill"] and all(_covers(s[c], row[c], c, cells[c]) for c in ("age", "tree", "town"))
            for s in shown
        )


def _divergence(release: Any, table: Table, names: tuple[str, ...]) -> float:
    """KL by enumeration: each published row gives every point of its box the same share."""
    rows = table.frame("arrow").to_pylist()
    domains = {}
    for name in names:
        column = table[name]
        values = column.values.to_pylist()
        domains[name] = [v for v, there in zip(values, column.mask(table.domain), strict=True) if there]
    inferred: dict[tuple[Any, ...], float] = defaultdict(float)
    published = release.frame("arrow").to_pylist()
    cells = {n: {row[n] for row in published} for n in names}
    for shown in published:
        box = [[v for v in domains[n] if _covers(shown[n], v, n, cells[n])] for n in names]
        area = math.prod(len(side) for side in box)
        for point in itertools.product(*box):
            inferred[*point, shown["ill"]] += 1 / area / len(rows)
    own = Counter((*(r[n] for n in names), r["ill"]) for r in rows)
    return sum(n / len(rows) * math.log(n / len(rows) / inferred[cell]) for cell, n in own.items())


@given(tables(), requirements, ways)
def test_the_divergence_is_that_of_rows_spread_over_their_boxes(table: Table, principles: list[Any], way: Any) -> None:
    """What is measured and what the manifest says are both what enumeration gives."""
    release = published(table, principles, way)
    if release is None:
        return
    expected = _divergence(release, table, ("age", "tree", "town"))
    assert jali.measure(release, table).kl == pytest.approx(max(expected, 0.0), abs=1e-9)
    assert release.manifest.metrics["kl"] == pytest.approx(max(expected, 0.0), abs=1e-9)


@given(tables(), requirements, ways)
def test_the_assignment_leads_each_row_to_a_group_that_shows_it(table: Table, principles: list[Any], way: Any) -> None:
    """Each row of the original is in exactly one group, which covers it; groups are as large as they say."""
    release = published(table, principles, way)
    if release is None:
        return
    groups, number = release.groups.to_pylist(), release.assignment(table)
    for row, group in zip(table.frame("arrow").to_pylist(), number, strict=True):
        assert all(
            _covers(groups[group][c], row[c], c, {g[c] for g in groups}) for c in ("age", "tree", "town")
        )  # fmt: skip
    assert [group["rows"] for group in groups] == [int((number == i).sum()) for i in range(len(groups))]


def test_an_assignment_is_never_saved_or_pickled(tmp_path: Path) -> None:
    table = jali.datasets.census(rows=200, seed=5, quasi=["age", "sex"])
    for release in (jali.generalize(table, [jali.KAnonymity(5)]), jali.recode(table, [jali.KAnonymity(5)])):
        assert len(release.assignment(table)) == 200
        kept = jali.load(release.save(tmp_path / release.kind))
        for other in (kept, pickle.loads(pickle.dumps(release))):
            with pytest.raises(InputError, match="cannot be traced back"):
                other.assignment(table)


@given(tables(), requirements, ways)
def test_an_estimate_of_everything_is_everybody(table: Table, principles: list[Any], way: Any) -> None:
    release = published(table, principles, way)
    if release is not None:
        assert float(release.estimate().count()) == pytest.approx(table.rows)
        assert float(release.estimate().count("ill = 'flu'")) == Counter(table.frame("arrow")["ill"].to_pylist())["flu"]


CONDITIONS = {
    "age IS NULL": lambda row: row["age"] is None,
    "age >= 20": lambda row: row["age"] is not None and row["age"] >= 20,
    "tree = 'a' AND NOT age = 30": lambda row: row["tree"] == "a" and row["age"] != 30,
    "town = 'Etna' OR ill = 'flu'": lambda row: row["town"] == "Etna" or row["ill"] == "flu",
}


@given(tables(), requirements, ways)
def test_the_truth_lies_between_the_bounds_of_an_estimate(table: Table, principles: list[Any], way: Any) -> None:
    """What is certain is never too much and what is possible never too little; or the question is refused."""
    release = published(table, principles, way)
    if release is None:
        return
    rows = table.frame("arrow").to_pylist()
    for condition, holds in CONDITIONS.items():
        truth = sum(holds(row) for row in rows)
        try:
            count = release.estimate().count(condition)
        except InputError:
            continue
        assert count.low <= truth <= count.high


@pytest.mark.parametrize("ages", [[20, 25, None, 31], [20.5, 25.0, None, 31.0], [20, 25, None, 3_000_000]])
def test_a_cell_that_may_be_missing_never_claims_to_be_there(ages: list[Any]) -> None:
    """An interval or missing: neither that somebody is above 20 nor that nobody is missing is certain."""
    frame = pa.table({"age": ages, "ill": list("abab")})
    release = jali.partition(jali.table(frame, quasi=["age"], sensitive=["ill"]), [jali.KAnonymity(4)])
    assert release.groups["age"].to_pylist()[0].endswith("or missing")
    for condition, truth in (("age IS NULL", 1), ("age >= 20", 3), ("age < 5000000", 3)):
        try:
            count = release.estimate().count(condition)
        except InputError:
            continue
        assert count.low <= truth <= count.high


def test_an_interval_of_fractions_holds_its_largest_value() -> None:
    frame = pa.table({"age": [20.5, 25.25, 31.5, 31.5], "ill": list("abab")})
    release = jali.partition(jali.table(frame, quasi=["age"], sensitive=["ill"]), [jali.KAnonymity(4)])
    for condition, truth in (("age >= 31.5", 2), ("age > 31.5", 0), ("age < 31.5", 2), ("age >= 20.5", 4)):
        count = release.estimate().count(condition)
        assert count.low <= truth <= count.high


def test_people_are_counted_where_a_person_has_several_rows() -> None:
    """Three rows of one person are one person, in a partition too."""
    frame = pa.table({"age": [1, 1, 1, 2, 9, 9], "ill": list("abcabb"), "who": [1, 1, 1, 2, 3, 4]})
    table = jali.table(frame, quasi=["age"], sensitive=["ill"], person="who")
    release = jali.partition(table, [jali.KAnonymity(2)])
    assert jali.audit(release).k >= 2


def test_weights_are_published_as_means_of_the_groups() -> None:
    frame = pa.table({"age": [1, 1, 9, 9], "w": [1.0, 3.0, 5.0, 7.0], "ill": list("abab")})
    table = jali.table(frame, quasi=["age"], sensitive=["ill"], weights="w")
    release = jali.partition(table, [jali.KAnonymity(2)])
    assert sorted(release.frame("arrow")["w"].to_pylist()) == [2.0, 2.0, 6.0, 6.0]


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ({"mode": "strikt"}, 'did you mean "strict"'),
        ({"split": "rang"}, 'did you mean "range"'),
        ({"show": "sets"}, 'did you mean "set"'),
        ({"show": {"agee": "set"}}, 'did you mean "age"'),
        ({"show": {"town": "interval"}}, 'column "town" has no intervals'),
        ({"threads": 0}, "threads must be a whole number"),
    ],
)
def test_wrong_words_are_answered_with_the_right_ones(way: dict[str, Any], message: str) -> None:
    frame = pa.table({"age": [1, 2, 3, 4], "town": list("abab"), "ill": list("abab")})
    table = jali.table(frame, quasi=["age", "town"], sensitive=["ill"])
    with pytest.raises(InputError, match=message):
        jali.partition(table, [jali.KAnonymity(2)], **way)


names = st.sampled_from(["a", "b", "c", "a, b", "b, c", "{a, b}", '"', "missing", "*", "", " a", "\\\\", None])


@given(st.sets(names, min_size=1), st.sets(names, min_size=1))
def test_two_sets_are_never_shown_alike(one: set[str | None], other: set[str | None]) -> None:
    texts = [_set_text(sorted(some, key=lambda name: (name is None, name or ""))) for some in (one, other)]
    assert (texts[0] == texts[1]) == (one == other)
    assert "*" not in texts


def test_sets_of_values_that_look_like_several_come_back_as_they_were(tmp_path: Path) -> None:
    """{"a, b", c} and {a, "b, c"} are two cells, and each covers its own two values."""
    frame = pa.table({"job": ["a, b", "c"] * 3 + ["a", "b, c"] * 3, "town": [1] * 6 + [2] * 6, "ill": ["x", "y"] * 6})
    table = jali.table(frame, quasi=["job", "town"], sensitive=["ill"])
    release = jali.recode(table, [jali.KAnonymity(6)], show="set-exact")
    assert set(release.frame("arrow")["job"].to_pylist()) == {'{"a, b", c}', '{a, "b, c"}'}
    loaded = jali.load(release.save(tmp_path / "out"))
    assert jali.measure(loaded, table).kl == pytest.approx(np.log(2))
    assert loaded.estimate().count(where={"job": "c"}) == pytest.approx(3)


def test_a_release_says_when_it_is_made_that_nobody_can_count_what_it_shows_as_everything() -> None:
    """Bands without ends: what * covers is not declared, which an analyst would otherwise learn too late."""
    frame = pa.table({"age": list(range(20, 60)), "ill": ["flu", "cold"] * 20})
    for bands, told in ((jali.bands(10), True), (jali.bands(10, low=0, high=99), False)):
        release = jali.generalize(jali.table(frame, quasi={"age": bands}, sensitive=["ill"]), [jali.KAnonymity(40)])
        assert ("what * covers is not declared" in repr(release)) == told
        refused = pytest.raises(InputError, match="publish it with a declared domain") if told else nullcontext()
        with refused:
            release.estimate().sample(None, seed=0)


def test_a_partition_cannot_be_repaired_and_says_so() -> None:
    frame = pa.table({"age": [1, 2, 3, 4], "ill": list("abab")})
    table = jali.table(frame, quasi=["age"], sensitive=["ill"])
    release = jali.partition(table, [jali.KAnonymity(2)])
    with pytest.raises(InputError, match="partition the table again"):
        jali.repair(release, [jali.DistinctDiversity(2)])


@pytest.mark.parametrize(("peel", "words"), [("size", "can at times tell"), ("principle", "which classes failed")])
def test_a_recoded_release_says_what_its_algorithm_gives_away(peel: Any, words: str) -> None:
    table = jali.datasets.census(rows=300, seed=2, quasi=["age", "sex"])
    release = jali.recode(table, [jali.KAnonymity(5), jali.DistinctDiversity(3)], peel=peel)
    assert words in repr(release)
    assert any(words in note for note in jali.audit(release).notes)


def test_values_can_tell_which_of_two_classes_published_together_failed() -> None:
    """Two people of A and three of B, together flu twice and cold three times: every table that gives this group has A
    with one value, while B may keep the promise. So no release may say that nobody can tell which failed.
    """
    together = []
    for flu in itertools.combinations(range(5), 2):
        ill = ["flu" if person in flu else "cold" for person in range(5)]
        frame = pa.table({"town": list("AABBB"), "ill": ill})
        table = jali.table(frame, quasi={"town": jali.suppress()}, sensitive=["ill"])
        release = jali.recode(table, [jali.KAnonymity(2), jali.DistinctDiversity(2)])
        if release.manifest.counts["groups"] == 1:
            together.append((len({*ill[:2]}), len({*ill[2:]})))
        assert "not which" not in str(release.manifest.method["known_algorithm"])
    assert together
    assert {town_a for town_a, _ in together} == {1}
    assert {town_b for _, town_b in together} == {1, 2}


def test_recoding_is_never_worse_than_the_best_node() -> None:
    table = jali.datasets.census(rows=1000, seed=4, quasi=["age", "sex", "education"])
    promises = [jali.KAnonymity(5), jali.EntropyDiversity(3)]
    node = jali.measure(jali.generalize(table, promises), table).kl
    assert jali.measure(jali.recode(table, promises), table).kl <= node + 1e-9


def _with_outliers() -> Table:
    """Sixty people of two towns and few ages, and four who are unlike anybody; nobody else has their values."""
    frame = {
        "age": [20 + i % 4 for i in range(60)] + [71, 83, 97, None],
        "town": ["Ithaca", "Dryden"] * 30 + ["Etna", "Lodi", "Ovid", "Ulysses"],
        "ill": ["flu", "cold", "cold", "flu"] * 16,
    }
    quasi = {"age": jali.bands(5, 10), "town": jali.suppress()}
    return jali.table(pa.table(frame), quasi=quasi, sensitive=["ill"])


@pytest.mark.parametrize("method", [jali.partition, jali.recode])
def test_what_stands_out_is_suppressed_where_that_keeps_more(method: Any) -> None:
    """Four people unlike anybody cost less as * than in any box, and are counted as suppressed."""
    table, promises = _with_outliers(), [jali.KAnonymity(4), jali.DistinctDiversity(2)]
    plain, release = (method(table, promises, show="taxonomy", suppress=share) for share in (0, 0.1))
    assert jali.measure(release, table).kl <= jali.measure(plain, table).kl
    suppressed = [row for row in release.frame("arrow").to_pylist() if row["age"] == row["town"] == "*"]
    assert len(suppressed) == release.manifest.counts["suppressed"] == jali.measure(release, table).suppressed == 4
    assert plain.manifest.counts["suppressed"] == jali.measure(plain, table).suppressed == 0


@pytest.mark.parametrize("show", ["taxonomy", "interval", "set"])
def test_suppressed_rows_leave_no_trace(show: Any, tmp_path: Path) -> None:
    """They show * however the others are shown, cover everything, and no file names a value that only they have."""
    table, promises = _with_outliers(), (jali.KAnonymity(4),)
    group = np.where(np.arange(64) < 60, np.arange(64) % 2, -1)
    shows: Any = {"age": show, "town": "set" if show == "interval" else show}
    method = {"name": "partition", "suppress": "0.1", "show": shows}
    release = of_groups(Partitioned, table, group, 2, promises, method=method, shows=shows)
    assert release.frame("arrow").filter(pc.field("age") == "*")["town"].to_pylist() == ["*"] * 4
    folder = Path(release.save(tmp_path / "out"))
    loaded = jali.load(folder)
    assert loaded.manifest.counts == release.manifest.counts
    assert loaded.manifest.counts["suppressed"] == int(loaded.hidden_rows.sum()) == 4
    assert jali.measure(loaded, table).kl == pytest.approx(jali.measure(release, table).kl)
    assert jali.measure(release, table).kl == pytest.approx(_divergence(release, table, ("age", "town")))
    columns = json.dumps(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["columns"])
    for text in (columns, (folder / "data.csv").read_text(encoding="utf-8")):
        for value in ("71", "83", "97", "Etna", "Lodi", "Ovid", "Ulysses"):
            assert value not in text


def test_a_budget_of_suppression_is_checked_as_for_the_lattice() -> None:
    """A share below 1; what the whole table cannot reach fails as without it; by default nothing is suppressed."""
    table = _with_outliers()
    for method in (jali.partition, jali.recode):
        for wrong in (1, -0.1, "much", True):
            with pytest.raises(InputError, match="suppress"):
                method(table, [jali.KAnonymity(4)], suppress=wrong)
        with pytest.raises(InfeasibleError):
            method(table, [jali.RecursiveDiversity(1, 2)], suppress=0.5)
        assert method(table, [jali.KAnonymity(4)]).manifest.counts["suppressed"] == 0


def test_people_with_several_rows_are_suppressed_as_people() -> None:
    """Promises count people in the suppressed group too, and the table of people names it."""
    frame = _with_outliers().frame("arrow").append_column("who", pa.array([0, 0, *range(2, 64)]))
    quasi = {"age": jali.bands(5, 10), "town": jali.suppress()}
    table = jali.table(frame, quasi=quasi, sensitive=["ill"], person="who")
    release = jali.partition(table, [jali.KAnonymity(4)], suppress=0.1)
    assert release.manifest.counts["suppressed"] == 4
    people = release.tables["people"].to_pylist()
    assert [row["people"] for row in people if row["town"] == "*" and row["value"] is None] == [4]


@given(
    people=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), min_size=2, max_size=9),
    peel=st.sampled_from(["size", "principle"]),
)
@example(people=[*zip("bcbdacbbb", "xxxxyyxxy", strict=True)], peel="size")
def test_where_all_classes_of_a_group_hold_no_release_says_that_one_failed(
    people: list[tuple[str, str]], peel: Any
) -> None:
    """Classes that hold by themselves can be published together: what is said of failures holds at times only."""
    town, ill = (list(column) for column in zip(*people, strict=True))
    table = jali.table(pa.table({"town": town, "ill": ill}), quasi={"town": jali.suppress()}, sensitive=["ill"])
    try:
        release = jali.recode(table, [jali.DistinctDiversity(2)], peel=peel, show="set", suppress=0.3)
    except (InfeasibleError, InputError):
        return  # everybody has one value
    for cell in {*release.frame("arrow")["town"].to_pylist()} - {"*"}:
        inside = cell.strip("{}").split(", ")
        values = [{value for place, value in people if place == one} for one in inside]
        if len(inside) > 1 and all(len(one) >= 2 for one in values):
            assert "can tell" not in str(release.manifest.method["known_algorithm"])
