"""Laws of cells that carry a distribution."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.publish.partition import of_groups
from jali.releases.generalized import Generalized, Partitioned, Recoded
from jali.releases.pdf import ASSUMES, STARTS, Shift, cell_text, read_cell
from oracles import pdf as oracle
from oracles.often import examples

TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*")]
HOSTILE = ["{a: 1}", "a, b", 'say "x"', "a: 0.5", "", " ", "missing", "\\", "{", "}", '"', "x\ny", "0.5", "é ü", "1/3"]
QUASI = ("age", "tree", "town")


@st.composite
def tables(draw: st.DrawFn, most: int = 14) -> Table:
    """Small tables with ties, missing values, hostile names, declared and undeclared columns."""
    rows = draw(st.integers(2, most))
    column = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    frame = {
        "age": column(draw(st.sampled_from([[30], [20, 21, 29, 30], [1, 2, 18, None]]))),
        "tree": column(["a", "b", "c", "d"][: draw(st.integers(1, 4))]),
        "town": column(draw(st.lists(st.sampled_from([*HOSTILE, None]), min_size=1, max_size=4))),
        "ill": column(["flu", "cold", "cancer"][: draw(st.integers(1, 3))]),
    }
    ages = draw(st.sampled_from([jali.bands(5, 10), jali.bands(10, low=0, high=39)]))
    quasi = {"age": ages, "tree": jali.taxonomy(TREE), "town": jali.suppress()}
    domain: Any = draw(st.sampled_from(["declared", "present"]))
    return jali.table(pa.table(frame), quasi=quasi, sensitive=["ill"], domain=domain)


METHODS = {
    "generalize": jali.generalize,
    "suppress": lambda *a, **k: jali.generalize(*a, suppress=0.4, **k),
    "partition": jali.partition,
    "relaxed": lambda *a, **k: jali.partition(*a, mode="relaxed", **k),
    "partition, suppress": lambda *a, **k: jali.partition(*a, suppress=0.4, **k),
    "recode": jali.recode,
    "recode, suppress": lambda *a, **k: jali.recode(*a, suppress=0.4, **k),
}
methods = st.sampled_from(sorted(METHODS))
unsuppressed = st.sampled_from(sorted(method for method in METHODS if "suppress" not in method))
shares = st.sampled_from([Fraction(0), Fraction(1, 3), Fraction("0.66"), Fraction(1)])


def published(method: str, table: Table, k: int = 2, **how: Any) -> Any:
    """The release, or None where the whole table fails."""
    try:
        return METHODS[method](table, [jali.KAnonymity(k)], **how)
    except InfeasibleError:
        return None


def grouped(release: Any, table: Table) -> dict[int, list[dict[str, Any]]]:
    """The original's rows by published group."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row, group in zip(table.frame("arrow").to_pylist(), release.assignment(table), strict=True):
        found[int(group)].append(row)
    return found


def text(value: Any) -> str | None:
    return None if value is None else str(value)


@pytest.mark.parametrize("text", [
    "{", "{}", "{a: 0.5", "{a: 0.5}", "{a: 1/0}", "{a: 1//2, b: 0.5}", "{a: 0.5, b: 0.6}", "{a 1}", '{"a: 1}', "{a: .}",
])  # fmt: skip
def test_a_cell_that_is_no_distribution_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a cell with a distribution"):
        read_cell(text)


def test_a_manifest_that_says_something_else_than_the_cells_is_refused(tmp_path: Path) -> None:
    """People read the texts, programs the weights: they are the same, or the release is not opened."""
    table = jali.table(pa.table({"age": [1, 1, 1, 2], "ill": list("abab")}), quasi=["age"], sensitive=["ill"])
    path = published("partition", table, 4, show="pdf").save(tmp_path / "out") / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    facts = next(column for column in manifest["columns"] if column["role"] == "quasi")["hierarchy"]
    assert facts["weights"] == [[3, 1]]
    for weights in ([[2, 1]], [[3]], [[3, 0]]):
        facts["weights"] = weights
        path.write_text(json.dumps(manifest), encoding="utf-8")
        with pytest.raises(InputError, match="does not describe its tables"):
            jali.load(path.parent)


@examples(1.5)
@given(tables(), methods)
def test_a_cell_says_how_often_each_value_stands_in_its_group(table: Table, method: str) -> None:
    """Theorem 2: the frequencies of the group, read from the published cell alone, exactly."""
    release = published(method, table, show="pdf")
    if release is None:
        return
    groups = release.groups.to_pylist()
    for number, rows in grouped(release, table).items():
        for name in QUASI:
            if groups[number][name] == "*":
                continue
            values = [text(row[name]) for row in rows]
            assert read_cell(groups[number][name]) == oracle.distribution(values, list(set(values)), Fraction(1))


@examples(1.5)
@given(tables(), st.sampled_from(["partition", "relaxed", "recode"]), shares)
def test_a_shifted_cell_lies_on_the_way_from_even_shares_to_the_frequencies(
    table: Table, method: str, towards: Fraction
) -> None:
    """Equation 3, from the values of the group and from the smallest node of the taxonomy."""
    for start in ("set", "taxonomy"):
        release = published(method, table, show="pdf" if "recode" in method else {"tree": "pdf"}, towards=towards,
                            start=start)  # fmt: skip
        if release is None:
            return
        groups = release.groups.to_pylist()
        for number, rows in grouped(release, table).items():
            values = [row["tree"] for row in rows]
            nodes = [set(values)] if start == "set" or len(set(values)) == 1 else [set("ab"), set("cd"), set("abcd")]
            base = next(node for node in nodes if set(values) <= node)
            expected = oracle.distribution(values, sorted(base), towards)
            assert read_cell(groups[number]["tree"]) == expected


@examples(1.5)
@given(tables(), st.sampled_from(["generalize", "suppress"]))
def test_not_shifted_at_all_a_declared_column_says_what_its_node_says(table: Table, method: str) -> None:
    """towards=0 is the taxonomy's display: the same estimate of every value, and the same divergence."""
    plain = published(method, table)
    even = published(method, table, show={"tree": "pdf"}, towards=0)
    if plain is None:
        return
    cells = {"tree": ["a", "b", "c", "d"]}
    assert even.estimate().probability(cells) == pytest.approx(plain.estimate().probability(cells), abs=1e-12)
    assert even.levels == plain.levels
    assert sorted(even.groups["rows"].to_pylist()) == sorted(plain.groups["rows"].to_pylist())
    assert jali.measure(even, table, domain="declared").kl == pytest.approx(
        jali.measure(plain, table, domain="declared").kl, abs=1e-9
    )


@examples(1.5)
@given(tables(), methods)
def test_shifted_all_the_way_it_is_the_distribution(table: Table, method: str) -> None:
    release, whole = published(method, table, show="pdf"), published(method, table, show="pdf", towards=1, start="set")
    if release is not None:
        key = lambda one: sorted(map(repr, one.groups.to_pylist()))  # noqa: E731
        assert key(release) == key(whole)


@examples(1.5)
@given(tables(), methods, shares)
def test_a_release_with_distributions_comes_back_as_it_was(table: Table, method: str, towards: Fraction) -> None:
    """CSV and Parquet, whatever the values are called: the same cells, the same estimate, the same measures."""
    release = published(method, table, show="pdf", towards=towards)
    if release is None:
        return
    with TemporaryDirectory() as folder:
        for form in ("csv", "parquet"):
            loaded: Any = jali.load(release.save(Path(folder) / form, format=form))
            assert loaded.frame("arrow").to_pylist() == release.frame("arrow").to_pylist()
            for name in QUASI:
                one, other = release.estimate().frame([name]), loaded.estimate().frame([name])
                assert one.to_pylist() == other.to_pylist()
            assert jali.measure(loaded, table).kl == pytest.approx(jali.measure(release, table).kl, abs=1e-12)
            assert repr(loaded).split("Cost")[0] == repr(release).split("Cost")[0]


def lonely() -> Table:
    """Twenty people of whom two stand out: nobody else has their town, or their age."""
    frame = {
        "age": [20, 21] * 9 + [95, 96], "tree": ["a", "b", "b"] * 6 + ["d", "c"],
        "town": ["Ulm"] * 18 + ["Xanten", "Yverdon"], "ill": ["flu", "cold"] * 10,
    }  # fmt: skip
    quasi = {"age": jali.bands(5), "tree": jali.taxonomy(TREE), "town": jali.suppress()}
    return jali.table(pa.table(frame), quasi=quasi, sensitive=["ill"])


KINDS = (Generalized, Partitioned, Recoded)


def suppressed(kind: Any, show: Any, shift: Shift | None = None) -> Any:
    """The lonely table with its last two people suppressed, the others in one group or two."""
    table, promise = lonely(), (jali.KAnonymity(2),)
    if kind is Generalized:
        how = {} if shift is None else {"towards": shift.towards, "start": shift.start}
        return jali.generalize(table, promise, suppress=0.2, levels={"age": 1, "tree": 1}, show=show, **how)
    method = {"name": "partition", "suppress": "0.2"}
    group = np.array([0, 0, 1] * 6 + [-1, -1])
    shows = dict.fromkeys(QUASI, show) if show != "interval" else {"age": "interval", "tree": "set", "town": "set"}
    return of_groups(kind, table, group, 2, promise, method=method, shows=shows, shift=shift)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("show", ["taxonomy", "interval", "set", "pdf"])
def test_suppressed_rows_come_back_whatever_is_shown_of_the_others(kind: Any, show: str, tmp_path: Path) -> None:
    """Saved, loaded, verified and measured, they are as many as before, and the costs are the same."""
    table, release = lonely(), suppressed(kind, show)
    assert release.manifest.counts["suppressed"] == 2
    for form in ("csv", "parquet"):
        loaded: Any = jali.load(release.save(tmp_path / form, format=form))
        loaded.verify()
        assert loaded.manifest.counts == release.manifest.counts
        assert int(loaded.hidden_rows.sum()) == 2
        one, other = jali.measure(release, table), jali.measure(loaded, table)
        assert (one.suppressed, other.suppressed) == (2, 2)
        assert other.kl == pytest.approx(one.kl)
        assert {"age": "*", "tree": "*", "town": "*", "rows": 2} in loaded.groups.to_pylist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("towards", [Fraction(0), Fraction(1, 2), Fraction(1)])
def test_no_cell_and_no_word_of_the_manifest_names_what_only_suppressed_rows_have(
    kind: Any, start: Any, towards: Fraction, tmp_path: Path
) -> None:
    """Even shares go over the values that other rows show, where none were declared."""
    release = suppressed(kind, "pdf", Shift(towards, start))
    assert release.manifest.counts["suppressed"] == 2
    folder = release.save(tmp_path / "out")
    told = repr(release) + "".join(path.read_text("utf-8") for path in folder.iterdir())
    assert "Ulm" in told
    assert not [word for word in ("Xanten", "Yverdon", "95", "96") if f'"{word}"' in told or f"{word}:" in told]


@examples(1.5)
@given(tables(), methods, shares)
def test_the_saved_file_alone_says_what_the_manifest_says(table: Table, method: str, towards: Fraction) -> None:
    """Each cell of the CSV file, read by its own notation, has the values and weights of the manifest."""
    release = published(method, table, show="pdf", towards=towards)
    if release is None:
        return
    with TemporaryDirectory() as folder:
        path = release.save(Path(folder) / "out")
        manifest = json.loads((path / "manifest.json").read_text("utf-8"))
        with open(path / "data.csv", encoding="utf-8", newline="") as file:
            shown = list(csv.DictReader(file))
    assert manifest["method"]["pdf_assumes"] == ASSUMES
    for column in manifest["columns"]:
        if column["role"] != "quasi":
            continue
        facts = column["hierarchy"]
        for label, members, weights in zip(facts["labels"], facts["members"], facts["weights"], strict=True):
            told = {facts["leaves"][m]: Fraction(w, sum(weights)) for m, w in zip(members, weights, strict=True)}
            assert read_cell(label) == told
        known = {"" if label is None else label for label in facts["labels"]} | (
            {"*"} if facts.get("hidden") else set()
        )
        assert {row[column["name"]] for row in shown} <= known


names = st.one_of(st.none(), st.text(max_size=4), st.sampled_from(HOSTILE))


@given(st.lists(names, min_size=1, max_size=5, unique=True), st.data())
def test_a_cell_can_be_read_back_whatever_its_values_are_called(values: list[str | None], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(1, 12), min_size=len(values), max_size=len(values)))
    expected = {v: Fraction(w, sum(weights)) for v, w in zip(values, weights, strict=True)}
    if values != [None]:
        assert read_cell(cell_text(values, weights)) == expected
    assert cell_text(values, weights) != "*"


@examples(1.5)
@given(tables(), methods, shares)
def test_what_is_published_keeps_the_promise_and_covers_everybody(table: Table, method: str, towards: Fraction) -> None:
    """Groups that show the same merge, which breaks no promise; nobody's value has probability 0."""
    release = published(method, table, 3, show="pdf", towards=towards) if table.rows >= 3 else None
    if release is None:
        return
    rows = Counter(tuple(row[n] for n in QUASI) for row in release.frame("arrow").to_pylist())
    assert min(rows.values()) >= 3
    assert len(rows) == release.groups.num_rows
    assert math.isfinite(jali.measure(release, table).kl)


def test_boxes_with_equal_distributions_are_one_published_group(tmp_path: Path) -> None:
    """Two groups whose cells are equal in every column cannot be told apart, and nothing is lost or gained by it."""
    frame = pa.table({"age": [1, 2] * 4, "ill": list("aabbccdd")})
    table = jali.table(frame, quasi=["age"], sensitive=["ill"])
    promise = (jali.KAnonymity(4), jali.DistinctDiversity(2))
    made = {"table": table, "principles": promise, "method": {"name": "partition"}, "shows": {"age": "pdf"}}
    two = of_groups(Partitioned, group=np.repeat([0, 1], 4), groups=2, **made)
    one = of_groups(Partitioned, group=np.zeros(8, dtype=np.int64), groups=1, **made)
    loaded: Any = jali.load(two.save(tmp_path / "out"))
    for release in (two, one, loaded):
        assert release.groups.to_pylist() == [{"age": "{1: 0.5, 2: 0.5}", "rows": 8}]
        assert release.manifest.counts["groups"] == 1
        assert release.estimate().probability({"age": [1], "ill": ["a"]}) == pytest.approx([1 / 8])


@examples(1.5)
@given(tables(), st.sampled_from(["generalize", "suppress"]))
def test_no_other_display_of_the_same_groups_has_a_lower_divergence(table: Table, method: str) -> None:
    """Theorem 2, for groups that do not overlap: nearer to the frequencies is nearer to the table."""
    one = published(method, table, show="pdf")
    if one is None:
        return
    levels = one.levels
    least = jali.measure(one, table, domain="present").kl
    suppress = 0.4 if method == "suppress" else 0.0
    for show in ("taxonomy", "interval", "set"):
        other = jali.generalize(table, [jali.KAnonymity(2)], levels=levels, suppress=suppress, show=show)
        assert least <= jali.measure(other, table, domain="present").kl + 1e-9


@examples(1.5)
@given(tables(), unsuppressed)
def test_the_cost_falls_all_the_way_to_the_frequencies(table: Table, method: str) -> None:
    """Theorem 3, along the segment of Equation 3, whether or not the boxes overlap, and for the same groups.

    Who is best suppressed depends on what is shown, so that a budget would give other groups. The matching probability
    rises while the groups are the same: boxes that show the same are one group, in which more rows can change places.
    """
    costs, matches = [], []
    for towards in (Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1)):
        release = published(method, table, show="pdf", towards=towards)
        if release is None:
            return
        found = jali.measure(release, table)
        costs.append(found.kl_cost)
        matches.append((found.groups, found.log_match))
    assert None not in costs
    assert all(b <= a + 1e-9 for a, b in pairwise(costs))
    assert all(b >= a - 1e-9 for (before, a), (after, b) in pairwise(matches) if before == after)


@examples(1.5)
@given(tables(most=5), st.sampled_from(["generalize", "partition", "relaxed", "recode"]), shares)
def test_cost_and_matching_probability_are_those_of_all_reconstructions(
    table: Table, method: str, towards: Fraction
) -> None:
    """Against every way to draw a value for every cell."""
    release = published(method, table, show="pdf", towards=towards, start="set")
    if release is None:
        return
    shown, cells, groups = release.groups.to_pylist(), [], []
    for number, rows in grouped(release, table).items():
        cells.append({n: read_cell(shown[number][n]) for n in QUASI})
        groups.append([{**{n: text(row[n]) for n in QUASI}, "ill": row["ill"]} for row in rows])
    found = jali.measure(release, table)
    assert found.kl_cost == pytest.approx(oracle.kl_cost(groups, cells), abs=1e-9)
    size = max(math.prod(len(c[n]) for n in QUASI) ** len(g) for c, g in zip(cells, groups, strict=True))
    if size <= 20_000:
        assert math.exp(found.log_match) == pytest.approx(float(oracle.match(groups, cells, ["ill"])), rel=1e-9)


def test_the_printed_matching_probability_would_exceed_one() -> None:
    """Appendix I multiplies by c! for each sensitive value; two equal rows shown as they are would match with 2."""
    table = jali.table(pa.table({"age": [1, 1], "ill": ["a", "a"]}), quasi=["age"], sensitive=["ill"])
    assert jali.measure(jali.generalize(table, [jali.KAnonymity(2)]), table).log_match == 0.0


def test_where_boxes_overlap_only_a_fresh_release_knows_its_cost(tmp_path: Path) -> None:
    """Where they do not, a loaded one knows it too: every row is in the only box that covers it."""
    table = jali.datasets.census(rows=60, seed=2, quasi=["age", "sex"])
    boxes = {mode: jali.partition(table, [jali.KAnonymity(10)], mode=mode) for mode in ("strict", "relaxed")}
    loaded = {mode: jali.load(release.save(tmp_path / mode)) for mode, release in boxes.items()}
    assert jali.measure(loaded["strict"], table).kl_cost == pytest.approx(jali.measure(boxes["strict"], table).kl_cost)
    assert jali.measure(boxes["relaxed"], table).kl_cost is not None
    assert jali.measure(loaded["relaxed"], table).kl_cost is None
    assert "not known" in repr(jali.measure(loaded["relaxed"], table))


def test_a_reconstruction_draws_from_the_published_distributions() -> None:
    """Definition 7: each value with its probability, row by row in the published order."""
    frame = pa.table({"job": ["St"] * 3000 + ["Pr"] * 1000, "ill": ["a", "b"] * 2000})
    table = jali.table(frame, quasi=["job"], sensitive=["ill"])
    release = jali.generalize(table, [jali.KAnonymity(4000)], show="pdf")
    assert release.groups["job"].to_pylist() == ["{St: 0.75, Pr: 0.25}"]
    drawn = release.estimate().sample(None, seed=0)
    assert drawn["ill"].to_pylist() == release.frame("arrow")["ill"].to_pylist()
    assert abs(drawn["job"].to_pylist().count("St") - 3000) < 5 * math.sqrt(4000 * 0.75 * 0.25)
    assert drawn == release.estimate().sample(None, seed=0)


def test_an_estimate_tells_nearly_even_shares_from_even_ones() -> None:
    """100,001 of 200,001 is not a half."""
    frame = pa.table({"age": [1, 2], "ill": ["a", "a"]})
    table = jali.table(frame, quasi=["age"], sensitive=["ill"]).take(np.arange(2), np.array([100_001, 100_000]))
    release = jali.generalize(table, [jali.KAnonymity(200_001)], show="pdf")
    assert float(release.estimate().count("age = 1")) == pytest.approx(100_001, abs=1e-6)


def test_a_person_with_several_rows_counts_once_and_her_rows_stand_in_the_distribution(tmp_path: Path) -> None:
    frame = pa.table({"age": [1, 1, 1, 2, 9, 9], "ill": list("abcabb"), "who": [1, 1, 1, 2, 3, 4]})
    table = jali.table(frame, quasi={"age": jali.bands(5)}, sensitive=["ill"], person="who")
    for method in ("generalize", "partition", "recode"):
        release: Any = jali.load(published(method, table, show="pdf").save(tmp_path / method))
        assert jali.audit(release).k == 2
        assert set(release.groups["age"].to_pylist()) == {"{1: 0.75, 2: 0.25}", "9"}


def test_rows_that_stand_for_several_are_counted_as_several() -> None:
    frame = pa.table({"age": [1, 2, 3, 4], "ill": list("abab")})
    table = jali.table(frame, quasi=["age"], sensitive=["ill"])
    many = table.take(np.arange(4), np.array([5, 1, 1, 1]))
    release = jali.partition(many, [jali.KAnonymity(8)], show="pdf")
    assert release.groups["age"].to_pylist() == ["{1: 0.625, 2: 0.125, 3: 0.125, 4: 0.125}"]
    assert jali.measure(release, many).kl_cost == pytest.approx(-5 * math.log(5 / 8) + 3 * math.log(8))


def test_groups_formed_by_their_distributions_cost_less() -> None:
    """`similarity="pdf"` is what a release that shows distributions loses; only split="kl" compares groups."""
    table = jali.datasets.census(rows=3000, seed=0)
    costs = [
        jali.measure(jali.partition(table, [jali.KAnonymity(25)], split="kl", similarity=s, show="pdf"), table).kl
        for s in ("box", "pdf")
    ]
    assert costs[1] < costs[0]
    with pytest.raises(InputError, match='add split="kl"'):
        jali.partition(table, [jali.KAnonymity(10)], similarity="pdf")
    with pytest.raises(InputError, match='did you mean "pdf"'):
        jali.partition(table, [jali.KAnonymity(10)], split="kl", similarity="pdff")  # type: ignore[arg-type]


def test_it_says_what_it_does_not_cover() -> None:
    table = jali.datasets.census(rows=200, seed=1, quasi=["age", "sex"])
    words = "whether somebody is in the table"
    for method in METHODS:
        release = published(method, table, 5, show="pdf")
        assert words in repr(release)
        assert any(words in note for note in jali.audit(release).notes)
        assert words not in repr(published(method, table, 5))


@pytest.mark.parametrize("method", [jali.generalize, jali.partition, jali.recode])
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"towards": 0.5}, 'add show="pdf"'),
        ({"start": "set"}, 'add show="pdf"'),
        ({"show": "pdf", "towards": 1.5}, "between 0"),
        ({"show": "pdf", "towards": -1}, "between 0"),
        ({"show": "pdf", "start": "sett"}, 'did you mean "set"'),
        ({"show": "pdff"}, 'no display "pdff"|no way to show "pdff"|pdf'),
    ],
)
def test_wrong_words_are_answered_with_the_right_ones(method: Any, how: dict[str, Any], message: str) -> None:
    frame = pa.table({"age": [1, 2, 3, 4], "ill": list("abab")})
    with pytest.raises(InputError, match=message):
        method(jali.table(frame, quasi=["age"], sensitive=["ill"]), [jali.KAnonymity(2)], **how)
