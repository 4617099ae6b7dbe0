"""Laws of marginals releases: what is saved says all that is promised, and nothing else; bad requests are refused."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Literal

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, InternalError
from jali.estimates.base import Estimate
from jali.graphical.marginal import MarginalCounts
from jali.releases.marginals import PICTURE, Marginals
from jali.reproduce.marginals import PARTS, patients
from oracles.often import examples

FIGURE_1B, FIGURE_1C, FIGURE_1D, FIGURE_1E = PARTS.values()


def people(rows: int = 300, seed: int = 0, **given: Any) -> Table:
    """People whose columns depend on each other."""
    random = np.random.default_rng(seed)
    age = random.integers(20, 50, rows)
    ward = (age // 10 + random.integers(0, 2, rows)) % 3
    ill = (ward + random.integers(0, 2, rows)) % 3
    data = {
        "age": age,
        "ward": [["north", "south", "west"][i] for i in ward],
        "sex": [["f", "m"][i] for i in random.integers(0, 2, rows)],
        "ill": [["flu", "cold", "cancer"][i] for i in ill],
    }
    quasi = {"age": jali.bands(5, 10, low=20, high=49), "ward": jali.suppress(), "sex": jali.suppress()}
    return jali.table(pa.table(data), **({"quasi": quasi, "sensitive": ["ill"]} | given))


PROMISES = [jali.KAnonymity(5), jali.EntropyDiversity(1.5)]


# -- Figure 1 --------------------------------------------------------------------------------------------------------


def test_figure_1_the_zip_and_condition_marginal_gives_the_measles_away() -> None:
    """1(b) is 4-anonymous; beside it 1(d) leaves measles for whoever lives in 14850 and is under 40."""
    table = patients()
    alone = jali.check_marginals(table, [FIGURE_1B], [jali.KAnonymity(4), jali.DistinctDiversity(3)])
    assert alone.holds
    both = jali.check_marginals(table, [FIGURE_1B, FIGURE_1D], jali.DistinctDiversity(2))
    assert not both
    assert both.reached == 1
    assert both.cell == {"zip": "14850", "age": "< 40"}
    assert "distinct" in both.reason


def test_figure_1_the_age_marginal_may_be_added_and_the_zip_and_age_marginal_may_not() -> None:
    """Ages in fives tell nothing more of conditions (2-link anonymous); 1(e) has cells with one person."""
    table = patients()
    promises = [jali.KAnonymity(2), jali.DistinctDiversity(3)]
    assert jali.check_marginals(table, [FIGURE_1B, FIGURE_1C], promises).holds
    broken = jali.check_marginals(table, [FIGURE_1B, FIGURE_1E], promises)
    assert not broken
    assert broken.reached == 1
    assert isinstance(broken.principle, jali.KAnonymity)
    assert "2-link" in broken.reason


def test_figure_1b_is_2_3_diverse_only_with_equality() -> None:
    """jali is strict: the group of four whose counts are 2, 1, 1 has 2 = 2 · 1."""
    table = patients()
    assert not jali.check_marginals(table, [FIGURE_1B], jali.RecursiveDiversity(2, 3))
    assert jali.check_marginals(table, [FIGURE_1B], jali.RecursiveDiversity(2.01, 3))


# -- a release -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_release_comes_back_from_its_files_as_it_was(tmp_path: Path, form: Any) -> None:
    """Tables, levels, promises, estimates, sentences and the picture."""
    release = jali.marginals(people(), PROMISES)
    assert release.save(tmp_path / "out", format=form) == tmp_path / "out"
    again = jali.load(tmp_path / "out")
    assert isinstance(again, Marginals)
    again.verify()
    assert again.verdict().holds
    assert [m.levels for m in again.marginals] == [m.levels for m in release.marginals]
    assert all(again.tables[name].equals(table) for name, table in release.tables.items())
    assert again.independencies() == release.independencies()
    assert (tmp_path / "out" / PICTURE).read_text() == release.picture().svg_file() == again.picture().svg_file()
    question = "age < 33 AND ward = 'north' OR ill = 'flu' AND sex = 'f'"
    assert again.estimate().count(question) == pytest.approx(release.estimate().count(question))
    assert isinstance(again.estimate(), Estimate)
    release.save(tmp_path / "out", overwrite=True)


def test_every_marginal_counts_everybody_at_its_levels() -> None:
    """Against the rows themselves."""
    table = people()
    release = jali.marginals(table, PROMISES)
    rows = table.frame("pandas")
    for at, (levels, counts) in enumerate(release.marginals, start=1):
        assert sum(counts["people"].to_pylist()) == table.rows == release.rows
        labels = {}
        for name, level in levels.items():
            column = table[name]
            own = column.labels if column.hierarchy is None else column.hierarchy.levels[level].labels
            maps = np.arange(len(column.values)) if column.hierarchy is None else column.hierarchy.maps[level]
            labels[name] = own.take(pa.array(maps[column.codes])).to_pylist()
        told = {tuple(row[name] for name in levels): row["people"] for row in counts.to_pylist()}
        seen: dict[tuple[Any, ...], int] = {}
        for key in zip(*labels.values(), strict=True):
            seen[key] = seen.get(key, 0) + 1
        assert told == seen
        assert release.frame("pandas", marginal=at)["people"].sum() == len(rows)
    with pytest.raises(InputError, match="no such marginal"):
        release.frame(marginal=0)


def test_the_collection_beats_the_best_single_table() -> None:
    """Injecting utility lowers the divergence and keeps the base among the marginals."""
    table = people()
    base = jali.generalize(table, PROMISES)
    release = jali.inject(table, base, PROMISES)
    assert release.manifest.metrics["kl"] < base.manifest.metrics["kl"]
    wanted = {name: level for name, level in base.levels.items() if level < table.hierarchy(name).height} | {"ill": 0}
    assert any(
        set(wanted) <= set(levels) and all(levels[name] <= level for name, level in wanted.items())
        for levels, _ in release.marginals
    )
    free = jali.marginals(table, PROMISES, search="exhaustive")
    assert free.manifest.metrics["kl"] <= release.manifest.metrics["kl"] + 1e-9


def test_a_saved_base_can_be_added_to(tmp_path: Path) -> None:
    """A base is what its files say."""
    table = people()
    base = jali.generalize(table, PROMISES)
    base.save(tmp_path / "base")
    loaded = jali.load(tmp_path / "base")
    one, two = jali.inject(table, base, PROMISES), jali.inject(table, loaded, PROMISES)  # type: ignore[arg-type]
    assert [m.levels for m in one.marginals] == [m.levels for m in two.marginals]


def test_a_base_that_is_no_lattice_node_of_this_table_is_refused() -> None:
    """Suppressed rows, boxes, another table, other columns."""
    table = people()
    levels = {"age": 1, "ward": 0, "sex": 0}
    hiding = jali.generalize(table, jali.KAnonymity(8), suppress=0.9, levels=levels)
    assert hiding.manifest.counts["suppressed"]
    with pytest.raises(InputError, match="suppressed rows"):
        jali.inject(table, hiding, PROMISES)
    with pytest.raises(InputError, match="at one level"):
        jali.inject(table, jali.partition(table, PROMISES), PROMISES)
    shows: tuple[Literal["interval", "set", "pdf"], ...] = ("interval", "set", "pdf")
    for show in shows:  # of the right table, and at one level, but each group shows what it holds
        with pytest.raises(InputError, match="group by group, not at one level"):
            jali.inject(table, jali.generalize(table, PROMISES, show=show), PROMISES)
    for other in (people(seed=1), people(rows=299), people(sensitive=[])):
        base = jali.generalize(other, jali.KAnonymity(5))
        with pytest.raises(InputError, match="another table"):
            jali.inject(table, base, PROMISES)
    weak = jali.generalize(table, jali.KAnonymity(2))
    with pytest.raises(InfeasibleError, match="base release does not keep"):
        jali.inject(table, weak, jali.KAnonymity(200))


def test_bad_requests_are_refused_in_one_line() -> None:
    """Levels that do not exist, empty marginals, searches, limits, persons and weights."""
    table = people()
    for collection, message in [
        ([{"age": 7}], "no such level"),
        ([{}], "at least one column"),
        ([], "list of marginals"),
        ({"age": 1}, "list of marginals"),
        ("age", "list of marginals"),
        (["age"], "list of marginals"),
        ([["age", "sex"]], "list of marginals"),
        (None, "list of marginals"),
        ([{1: 0}], "no quasi-identifier"),
        ([{"age": -1}], "not a level"),
        ([{"age": True}], "not a level"),
        ([{"agee": 1}], 'did you mean "age"'),
        ([{"ill": 1}], "stays at level 0"),
    ]:
        with pytest.raises(InputError, match=message):
            jali.check_marginals(table, collection, PROMISES)  # type: ignore[arg-type]
    with pytest.raises(InputError, match='did you mean "greedy"'):
        jali.marginals(table, PROMISES, search="gredy")  # type: ignore[arg-type]
    for limit in (0, -1, True, "1"):
        with pytest.raises(InputError, match="time_limit"):
            jali.marginals(table, PROMISES, time_limit=limit)  # type: ignore[arg-type]
    for bad in (2, "a", True, -0.1):
        with pytest.raises(InputError, match="epsilon"):
            jali.marginals(table, PROMISES, epsilon=bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a seed"):
        jali.marginals(table, PROMISES, search="walk", seed="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs a base"):
        jali.inject(table, None, PROMISES)  # type: ignore[arg-type]
    for nonsense in (None, "table", table.frame("pandas")):
        with pytest.raises(InputError, match="jali table"):
            jali.marginals(nonsense, PROMISES)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="jali table"):
            jali.check_marginals(nonsense, [{"age": 0}], PROMISES)  # type: ignore[arg-type]
    data = table.frame("arrow").append_column("who", pa.array(np.arange(300) // 2))
    named = jali.table(data, quasi=["age"], sensitive=["ill"], person="who")
    with pytest.raises(InputError, match="names persons; keep one row of each person"):
        jali.marginals(named, PROMISES)


def test_changed_counts_are_found_before_anything_is_written(tmp_path: Path) -> None:
    """A broken promise and marginals that contradict each other are a bug, and nothing is left behind."""
    release = jali.marginals(people(), PROMISES)
    source = release.cache.sources[0]
    n = source.n.copy()
    n[0], n[-1] = n[0] + 1, n[-1] - 1  # cells that differ in what the marginals share
    wrong = MarginalCounts(source.marginal, source.cells, n, source.cell_of_combination)
    broken = Marginals(release.chains, [wrong, *release.cache.sources[1:]], release.manifest)
    with pytest.raises(InternalError, match="contradict"):
        broken.save(tmp_path / "out")
    more = MarginalCounts(source.marginal, source.cells, source.n + 1, source.cell_of_combination)
    with pytest.raises(InputError, match="same number of people"):
        Marginals(release.chains, [more, *release.cache.sources[1:]], release.manifest)
    alone = Marginals(release.chains, release.cache.sources, release.manifest)
    object.__setattr__(alone.manifest, "principles", (jali.KAnonymity(200),))
    with pytest.raises(InternalError, match="nothing was written"):
        alone.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_manifest_that_does_not_fit_its_tables_is_refused(tmp_path: Path) -> None:
    """Other marginals, other totals, unknown labels: one line."""
    jali.marginals(people(), PROMISES).save(tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    told = json.loads(path.read_text())
    for change in (
        {"marginals": told["marginals"][1:]},
        {"counts": told["counts"] | {"rows": 7}},
        {"columns": told["columns"][1:]},
    ):
        path.write_text(json.dumps(told | change))
        with pytest.raises(InputError, match="does not describe its tables"):
            jali.load(tmp_path / "out")
    picture = tmp_path / "out" / PICTURE
    path.write_text(json.dumps(told))
    picture.write_text("<svg/>")
    with pytest.raises(InputError, match="was changed"):
        jali.load(tmp_path / "out")


def test_values_that_no_marginal_shows_are_not_in_the_files(tmp_path: Path) -> None:
    """Where the domain is not declared, values below the published levels and other columns leave no trace."""
    rows = 240
    data = {
        "zip": [f"86{row % 2}{row:03}" for row in range(rows)],
        "sex": ["f", "m"] * (rows // 2),
        "ill": (["flu", "cold", "cancer"] * rows)[:rows],
        "name": [f"Zebulon{row}" for row in range(rows)],
    }
    table = jali.table(pa.table(data), quasi={"zip": jali.mask(), "sex": jali.suppress()}, sensitive=["ill"])
    release = jali.marginals(table, [jali.KAnonymity(5)])
    release.save(tmp_path / "out")
    found = "".join(path.read_text() for path in (tmp_path / "out").iterdir()) + repr(release)
    assert "Zebulon" not in found
    assert not any(value in found for value in data["zip"])


def test_the_manifest_says_in_which_sense_the_promises_hold(tmp_path: Path) -> None:
    """k-link and k-combinatorial; what maximum entropy expects; never more than that."""
    release = jali.marginals(people(), PROMISES)
    release.save(tmp_path / "out")
    promises = json.loads((tmp_path / "out" / "manifest.json").read_text())["promises"]
    assert "5-link" in promises[0]
    assert "5-combinatorial" in promises[0]
    assert "maximum entropy expects" in promises[1]
    for text in promises:
        assert text in repr(release)


def test_sentences_and_picture_name_every_column_of_every_marginal() -> None:
    """One sentence for each separator, one for each column that is spread; the picture is well-formed."""
    release = jali.marginals(people(), PROMISES)
    assert release.graph is not None
    said = release.independencies()
    assert sum("independent of" in text for text in said) == len(release.graph.marginals) - 1
    picture = ET.fromstring(release.picture().svg())  # our own text
    texts = [node.text or "" for node in picture.iter() if node.tag.endswith("text")]
    boxes = [node for node in picture.iter() if node.tag.endswith("rect")]
    assert len(boxes) == len(release.marginals)
    for levels, _ in release.marginals:
        assert all(any(re.search(rf"\b{name}\b", text) for text in texts) for name in levels)


def test_in_the_picture_nothing_stands_on_anything_else() -> None:
    """Boxes do not overlap, lines cross no box and no text, every table's number stands in a box of its own."""
    release = jali.marginals(people(), PROMISES)
    picture = ET.fromstring(release.picture().svg())  # our own text
    by_tag = {name: [node.attrib for node in picture.iter() if node.tag.endswith(name)] for name in ("rect", "path")}
    boxes = [tuple(float(box[side]) for side in ("x", "y", "width", "height")) for box in by_tag["rect"]]
    for at, (x, y, w, h) in enumerate(boxes):
        for a, b, c, d in boxes[at + 1 :]:
            assert x + w <= a or a + c <= x or y + h <= b or b + d <= y
    texts = [(float(node.attrib["x"]), float(node.attrib["y"])) for node in picture.iter() if node.tag.endswith("text")]
    assert len(by_tag["path"]) == len(boxes) - 1
    for path in by_tag["path"]:
        found = re.fullmatch(r"M(\d+) (\d+)V(\d+)H(\d+)", path["d"])
        assert found
        left, top, bottom, right = map(float, found.groups())
        assert not any(x < left < x + w and y < bottom and top < y + h for x, y, w, h in boxes)
        assert any((x, y) == (right, bottom - 20) for x, y, _, _ in boxes)
        assert all(x > left for x, y in texts if top < y < bottom)
    shown = [node.text for node in picture.iter() if node.attrib.get("class") == "name"]
    assert sorted(map(str, shown)) == [f"marginal {at}" for at in range(1, len(release.marginals) + 1)]


# -- measured and audited ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"max_sensitive": 0}, {"max_sensitive": 1}], ids=str)
@pytest.mark.parametrize("domain", ["declared", "present"])
def test_measured_against_its_table_the_divergence_is_the_releases_own(
    tmp_path: Path, options: dict[str, Any], domain: Any
) -> None:
    """From the published counts at the table's cells, also read back from files; nothing else is defined."""
    for seed, quasi in enumerate((None, ["age", "ward", "sex"], {"age": jali.bands(7), "ward": jali.mask()})):
        table = people(seed=seed, domain=domain, **({} if quasi is None else {"quasi": quasi}))
        release = jali.marginals(table, PROMISES, **options)
        release.save(tmp_path / f"out{seed}")
        for one in (release, tmp_path / f"out{seed}"):
            found = jali.measure(one, table)
            assert found.kl == pytest.approx(release.manifest.metrics["kl"], abs=1e-9)
            assert (found.groups, found.average, found.loss, found.granularity, found.discernibility) == (None,) * 5
            assert "not defined" in repr(found)
    with pytest.raises(InputError, match="not the table"):
        jali.measure(release, people(rows=299))
    with pytest.raises(InputError, match="rules and classes"):
        jali.measure(release, table, rules=True)


def test_an_audit_says_what_the_marginals_reach_and_never_a_disclosure() -> None:
    """k is the largest that a check allows; sensitive figures are those of the worst cell of the estimate."""
    for seed in range(4):
        table = people(seed=seed)
        release = jali.marginals(table, PROMISES)
        found = jali.audit(release)
        collection = [dict(levels) for levels, _ in release.marginals]
        allowed = [k for k in range(1, found.k + 20) if jali.check_marginals(table, collection, jali.KAnonymity(k))]
        assert found.k == max(allowed)
        assert found.kept == {"KAnonymity(5)": True, "EntropyDiversity(1.5)": True}
        assert found.holds
        cells: dict[tuple[Any, ...], dict[str, float]] = {}
        for row in release.estimate().frame(["age", "ward", "sex", "ill"], "arrow").to_pylist():
            cells.setdefault((row["age"], row["ward"], row["sex"]), {})[row["ill"]] = row["count"]
        shares = [np.array(list(own.values())) / sum(own.values()) for own in cells.values()]
        assert found.distinct_l == min(map(len, shares))
        assert found.largest_share == pytest.approx(max(own.max() for own in shares))
        assert found.entropy_l == pytest.approx(min(np.exp(-(own * np.log(own)).sum()) for own in shares))
        assert found.recursive_c[2] == pytest.approx(max(own.max() / (1 - own.max()) for own in shares))
        assert (found.groups, found.highest_risk, found.average_risk, found.homogeneous) == (None,) * 4
        assert found.disclosure is None
        assert found.to_dict()["disclosure"] is None
        assert "combinatorial" in repr(found)
        assert any("maximum entropy" in note for note in found.notes)


def test_an_audit_tells_a_broken_promise_and_a_column_that_was_left_out() -> None:
    release = jali.marginals(people(), PROMISES, max_sensitive=0)
    object.__setattr__(release.manifest, "principles", (jali.KAnonymity(200), jali.EntropyDiversity(1.5)))
    found = jali.audit(release)
    assert found.kept == {"KAnonymity(200)": False, "EntropyDiversity(1.5)": True}
    assert not found.holds
    assert found.sensitive == ()
    assert any("ill is in no marginal" in note for note in found.notes)


def test_marginals_that_contradict_each_other_are_not_audited() -> None:
    release = jali.marginals(people(), PROMISES)
    source = release.cache.sources[0]
    n = source.n.copy()
    n[0], n[-1] = n[0] + 1, n[-1] - 1
    wrong = MarginalCounts(source.marginal, source.cells, n, source.cell_of_combination)
    with pytest.raises(InputError, match="contradict"):
        jali.audit(Marginals(release.chains, [wrong, *release.cache.sources[1:]], release.manifest))


def test_two_pairs_that_share_a_band_are_independent_given_it() -> None:
    """The sentence of the issue: given the coarser level, exact age and the other column are independent."""
    from jali.graphical.marginal import Cache
    from jali.graphical.maxent import tree_of
    from jali.releases.chains import publish_chain, sentences

    table = people()
    domain = Cache.of(table).domain
    own = [domain.marginal({"age": 2, "ward": 0}), domain.marginal({"age": 0})]
    chains = [
        publish_chain(table["age"], [0, 2]),
        publish_chain(table["ward"], [0]),
        publish_chain(table["sex"], []),
        publish_chain(table["ill"], []),
    ]
    shown = [type(m)(tuple({0: 0, 2: 1, -1: -1}[level] for level in m.levels)) for m in own]
    tree = tree_of(type(domain)(tuple(chain.attribute for chain in chains)), shown)
    said = sentences(chains, shown, tree)
    assert said[0] == "given age like [20, 29]: ward is taken as independent of exact age"
    assert said[1:] == (
        "sex is in no marginal: each of its values is taken as equally likely",
        "ill is in no marginal: each of its values is taken as equally likely",
    )


def test_a_time_limit_is_kept_and_said() -> None:
    """The best so far is published, and the manifest says that the search was cut short."""
    release = jali.marginals(people(), PROMISES, search="walk", time_limit=0.3, seed=1)
    assert release.manifest.method["complete"] is False
    assert jali.marginals(people(), PROMISES).manifest.method["complete"] is True


def test_several_sensitive_columns_are_judged_together_or_apart() -> None:
    """Each by its own promises; the release is verified from its files all the same."""
    random = np.random.default_rng(3)
    data = (
        people().frame("arrow").append_column("pay", pa.array([["low", "high"][i] for i in random.integers(0, 2, 300)]))
    )
    quasi = {"age": jali.bands(5, 10, low=20, high=49), "ward": jali.suppress()}
    table = jali.table(data, quasi=quasi, sensitive=["ill", "pay"])
    promises = [
        jali.KAnonymity(5),
        jali.DistinctDiversity(2, sensitive="ill"),
        jali.DistinctDiversity(2, sensitive="pay"),
    ]
    release = jali.marginals(table, promises)
    release.verify()
    assert {"ill", "pay"} <= {name for levels, _ in release.marginals for name in levels}


@examples(0.4)
@given(
    ages=st.lists(st.sampled_from([1, 2, 3, 18, 35, None]), min_size=4, max_size=24),
    zips=st.lists(st.sampled_from(["13053", "13068", "14850", "", None]), min_size=24, max_size=24),
    ills=st.lists(st.sampled_from(["flu", "cold", "", None]), min_size=24, max_size=24),
    chosen=st.booleans(),
)
def test_any_table_comes_back_with_missing_and_empty_values(
    tmp_path_factory: pytest.TempPathFactory,
    ages: list[int | None],
    zips: list[str | None],
    ills: list[str | None],
    chosen: bool,
) -> None:
    """Masks, bands, hierarchies that jali chooses, empty texts and missing values; the promise is kept in the files."""
    rows = len(ages)
    data = pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "zip": pa.array(zips[:rows], pa.string()),
            "ill": pa.array(ills[:rows], pa.string()),
        }
    )
    quasi = ["age", "zip"] if chosen else {"age": jali.bands(5, 10), "zip": jali.mask()}
    table = jali.table(data, quasi=quasi, sensitive=["ill"])
    release = jali.marginals(table, jali.KAnonymity(2))
    folder = tmp_path_factory.mktemp("release") / "out"
    release.save(folder)
    again = jali.load(folder)
    assert isinstance(again, Marginals)
    assert again.verdict().holds
    for levels, counts in again.marginals:
        quasi_of = [name for name in levels if name != "ill"]
        groups: dict[tuple[Any, ...], int] = {}
        for row in counts.to_pylist():
            key = tuple(row[name] for name in quasi_of)
            groups[key] = groups.get(key, 0) + row["people"]
        assert min(groups.values()) >= 2
    if any("ill" in levels for levels, _ in again.marginals):
        assert again.estimate().count("ill = 'flu'") == sum(ill == "flu" for ill in ills[:rows])
