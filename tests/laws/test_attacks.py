"""Laws of the attack gallery: each attack finds what looking at every person, or at every world, finds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import jali
from jali.encoding.table import Table
from jali.errors import InputError
from jali.risk.attacks.exact import spreads
from oracles.attacks import background, homogeneity

# The twelve inpatients of the l-diversity paper, Figure 1.
ZIP = [13053, 13068, 13068, 13053, 14853, 14853, 14850, 14850, 13053, 13053, 13068, 13068]
AGE = [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35]
NATION = ["Russian", "American", "Japanese", "American", "Indian", "Russian"]
NATION += ["American", "American", "American", "Indian", "Japanese", "American"]
CONDITION = ["Heart", "Heart", "Virus", "Virus", "Cancer", "Heart", "Virus", "Virus", *["Cancer"] * 4]
HOSPITAL = pa.table({"zip": [str(z) for z in ZIP], "age": AGE, "nation": NATION, "condition": CONDITION})


def hospital() -> Table:
    """With age in the paper's bands: below 30, 30 to 39, 40 and above."""
    bands = [(str(a), "<30" if a < 30 else "3*" if a < 40 else ">=40", "*") for a in sorted(AGE)]
    quasi = {"zip": jali.mask(), "age": jali.taxonomy(bands), "nation": jali.suppress()}
    return jali.table(HOSPITAL, quasi=quasi, sensitive=["condition"], types={"age": "text"})


def figure_2() -> Any:
    """The 4-anonymous table of Figure 2 (whose zip codes are 130** and 1485*; here one level for all)."""
    return jali.generalize(hospital(), [jali.KAnonymity(4)], levels={"zip": 2, "age": 1, "nation": 1})


def test_homogeneity_finds_the_four_cancer_patients_of_the_paper() -> None:
    found = jali.attacks(figure_2(), hospital())["homogeneity"]
    assert (found.exposed, found.right, found.people) == (4, 4, 12)
    assert found.figures == {"groups with one value": 1, "people in them": 4}
    assert found.cases == (
        "an attacker who knows that somebody is in the group zip 130**, age 3*, nation * (4 people) "
        "is certain of Cancer",
    )


def test_long_cells_are_cut_in_the_words_of_a_case() -> None:
    """A group is called by its cells, of which a distribution over many values would fill the page."""
    rows = 40
    table = jali.table(pa.table({"age": list(range(rows)), "ill": ["flu"] * rows}), quasi=["age"], sensitive=["ill"])
    release = jali.generalize(table, [jali.KAnonymity(rows)], show="pdf")
    cell = release.groups["age"][0].as_py()
    (case,) = jali.attacks(release, table)["homogeneity"].cases
    assert f"age {cell[:59]}… ({rows} people)" in case


def test_background_knowledge_finds_umeko() -> None:
    """Who is under 30 and has no heart disease has a virus, as the paper says; and the other way round."""
    found = jali.attacks(figure_2(), hospital())["background knowledge"]
    assert found.figures["exposed once 1 value is ruled out"] == found.exposed == 8
    assert any("age <30" in case and "does not have Heart is certain of Virus" in case for case in found.cases)
    assert found.figures["exposed once 2 values are ruled out"] == 12


def test_linkage_by_quasi_identifiers_finds_bob() -> None:
    """A neighbour of 31 in 13053 is looked up; a stranger elsewhere is not in the table."""
    public = pa.table({"zip": ["13053", "13053", "99999"], "age": ["31", "28", "31"], "nation": ["American"] * 3})
    found = jali.attacks(figure_2(), hospital(), public=public)["linkage"]
    assert (found.exposed, found.people) == (1, 3)
    assert found.figures["match no group"] == 1
    assert found.figures["match exactly one group"] == 2
    assert found.figures["people of the original who look like an exposed one"] == 1
    assert found.figures["of them the belief is right for"] == 1
    assert found.cases == ("1 person matches the group zip 130**, age 3*, nation * (4 rows): certain of Cancer",)


def test_whoever_is_alone_in_a_group_matches_one_row() -> None:
    alone = jali.generalize(hospital(), [jali.KAnonymity(1)], levels={"zip": 0, "age": 0, "nation": 0})
    found = jali.attacks(alone, hospital())["linkage"]
    assert found.figures["match exactly one row"] == found.exposed == found.right == 12


def random_table(random: np.random.Generator, rows: int = 24) -> tuple[Table, pa.Table]:
    b, s = random.choice(list("xyz"), rows), random.choice(list("pqrst"), rows)
    frame = pa.table({"a": random.integers(0, 8, rows), "b": b, "s": s})
    quasi = {"a": jali.bands(2, 4, low=0, high=7), "b": jali.suppress()}
    return jali.table(frame, quasi=quasi, sensitive=["s"]), frame


def groups_of(release: Any) -> list[list[str]]:
    """The values of each published group."""
    values = release.tables["data"]["s"].to_pylist()
    found: dict[int, list[str]] = {}
    for group, value in zip(release.group_of_rows.tolist(), values, strict=True):
        found.setdefault(group, []).append(value)
    return [found[g] for g in range(len(found))]


MAKERS = {
    "generalize": lambda t: jali.generalize(t, [jali.KAnonymity(2)], levels={"a": 1, "b": 1}),
    "suppress": lambda t: jali.generalize(t, [jali.KAnonymity(3)], suppress=0.4, metric="loss"),
    "partition": lambda t: jali.partition(t, [jali.KAnonymity(2)]),
    "relaxed": lambda t: jali.partition(t, [jali.KAnonymity(2)], mode="relaxed"),
    "recode": lambda t: jali.recode(t, [jali.KAnonymity(2)]),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("threshold", ["0.5", "2/3", "1"])
def test_exposed_people_are_those_found_one_by_one(kind: str, threshold: str) -> None:
    """Homogeneity and background knowledge, on random tables, against counting person by person."""
    random = np.random.default_rng(5)
    least = Fraction(threshold)
    for _ in range(8):
        table, _ = random_table(random)
        try:
            release = MAKERS[kind](table)
        except jali.InfeasibleError:
            continue
        found = jali.attacks(release, table, threshold=least)
        groups = groups_of(release)
        assert (found["homogeneity"].exposed, found["homogeneity"].right) == homogeneity(groups, least)
        for ruled_out in (1, 2, 3):
            name = f"exposed once {ruled_out} value{'s are' if ruled_out > 1 else ' is'} ruled out"
            assert found["background knowledge"].figures[name] == background(groups, least, ruled_out)


@pytest.mark.parametrize("kind", ["generalize", "suppress", "partition", "recode"])
def test_linkage_counts_the_published_rows_that_cover_a_person(kind: str, tmp_path: Path) -> None:
    """Against reading the published cells one by one, for the holder and from the saved files alike."""
    random = np.random.default_rng(8)
    for round_ in range(6):
        table, frame = random_table(random)
        release = MAKERS[kind](table)
        shown = release.tables["data"].to_pylist()
        group = release.group_of_rows.tolist()
        hidden = release.hidden_rows.tolist()
        exposed = right = one_group = one_row = 0
        for person in frame.to_pylist():
            rows = [i for i, row in enumerate(shown) if covers(row, person)]
            rows = [i for i in rows if not hidden[i]] or rows
            assert rows
            value, most = Counter(shown[i]["s"] for i in rows).most_common(1)[0]
            one_group += len({group[i] for i in rows}) == 1
            one_row += len(rows) == 1
            if most / len(rows) > 0.6:
                exposed, right = exposed + 1, right + (value == person["s"])
        folder = release.save(tmp_path / f"{kind}{round_}")
        for what in (release, folder):
            found = jali.attacks(what, table, threshold=0.6000001)["linkage"]
            assert found.figures == {
                "match no group": 0, "match exactly one group": one_group, "match exactly one row": one_row,
            }  # fmt: skip
            assert (found.exposed, found.right) == (exposed, right)
        everybody = jali.attacks(release, table, public=frame.drop_columns(["s"]), threshold=0.6000001)["linkage"]
        assert (everybody.exposed, everybody.figures["match exactly one row"]) == (exposed, one_row)


def covers(row: dict[str, Any], person: dict[str, Any]) -> bool:
    """Whether a published row's cells cover a person's, read as text."""
    a, b = str(row["a"]), str(row["b"])
    if a == "*":
        fits = True
    elif a.startswith("["):
        low, high = a[1:-1].split(", ")
        fits = int(low) <= person["a"] <= int(high)
    else:
        fits = int(a) == person["a"]
    return fits and (b in ("*", person["b"]) or (b.startswith("{") and person["b"] in b))


def test_a_bucketized_release_is_attacked_like_any_other() -> None:
    table = hospital()
    release = jali.anatomize(table, [jali.DistinctDiversity(2)])
    found = jali.attacks(release, table)
    assert found["homogeneity"].exposed == 0
    assert found["linkage"].figures["match no group"] == 0
    assert found["background knowledge"].exposed > 0
    assert all("bucket" in case for case in found["background knowledge"].cases)
    assert "of no use" in found["algorithm"].attacker
    assert (found["algorithm"].exposed, found["algorithm"].notes) == (0, ())


def test_linkage_into_buckets_weighs_each_individual_that_matches() -> None:
    """Somebody whose quasi-identifiers stand in two buckets has each value as often as the two say, row by row."""
    random, some = np.random.default_rng(4), 0
    for _ in range(10):
        table, frame = random_table(random)
        release = jali.anatomize(table, [jali.DistinctDiversity(2)])
        individuals, entries = (release.tables[name].to_pylist() for name in ("individuals", "buckets"))
        size = Counter(row["bucket"] for row in individuals)
        exposed = one_row = 0
        for person in frame.to_pylist():
            rows = [row for row in individuals if (row["a"], row["b"]) == (person["a"], person["b"])]
            one_row += len(rows) == 1
            chance: Counter[str] = Counter()
            for row in rows:
                for entry in entries:
                    if entry["bucket"] == row["bucket"]:
                        chance[entry["s"]] += Fraction(entry["count"], size[row["bucket"]] * len(rows))
            exposed += max(chance.values()) >= Fraction(3, 8)
        some += 0 < exposed < 24
        found = jali.attacks(release, table, threshold=Fraction(3, 8))["linkage"]
        assert (found.exposed, found.figures["match exactly one row"]) == (exposed, one_row)
    assert some


# -- knowledge of the algorithm --------------------------------------------------------------------------------


def test_the_algorithm_tells_who_has_hiv() -> None:
    """Two people of one zip and four of another: at most half may have HIV, so that they were put together tells all.

    The four cannot fail with two cases of HIV, so the two of the first zip have it: Wong et al. 2007.
    """
    frame = pa.table({"zip": ["1"] * 2 + ["2"] * 4, "disease": ["HIV", "HIV", "flu", "cold", "gout", "acne"]})
    table = jali.table(frame, quasi={"zip": jali.suppress()}, sensitive=["disease"])
    release = jali.generalize(table, [jali.AlphaAnonymity(0.5, 2, values=("HIV",))])
    found = jali.attacks(release, table)["algorithm"]
    assert (found.exposed, found.right, found.figures["largest belief"]) == (2, 2, 1)
    assert found.cases[0] == "for 2 people of the 6 in the group zip *, the belief in HIV rises from 33% to 100%"
    cut = jali.attacks(jali.partition(table, [jali.AlphaAnonymity(0.5, 2, values=("HIV",))]), table)["algorithm"]
    assert (cut.exposed, cut.right) == (2, 2)


def test_nothing_follows_where_sizes_explain_a_rejection_or_levels_were_given() -> None:
    frame = pa.table({"zip": ["1"] + ["2"] * 5, "disease": ["HIV", "HIV", "flu", "cold", "gout", "acne"]})
    table = jali.table(frame, quasi={"zip": jali.suppress()}, sensitive=["disease"])
    asked = [jali.AlphaAnonymity(0.5, 2, values=("HIV",))]
    small = jali.attacks(jali.generalize(table, asked), table)["algorithm"]
    assert (small.exposed, small.figures["largest belief"]) == (0, pytest.approx(1 / 3))
    assert small.figures["worlds"] == small.figures["worlds that lead to the release"]
    given = jali.attacks(jali.generalize(table, asked, levels={"zip": 1}), table)["algorithm"]
    assert given.exposed is None
    assert given.notes


DISPLAYS: dict[str, Any] = {"set": "set", "pdf": "pdf", "interval": {"a": "interval"}, "mixed": {"b": "pdf"}}


@pytest.mark.parametrize("show", DISPLAYS)
def test_what_groups_are_told_apart_by_does_not_depend_on_how_they_are_shown(show: str, tmp_path: Path) -> None:
    """The same full-domain groups, each shown in its own way, are attacked alike, fresh or from the files."""
    random = np.random.default_rng(3)
    for round_ in range(4):
        table, _ = random_table(random)
        promises = [jali.KAnonymity(2), jali.DistinctDiversity(2)]
        plain, own = jali.generalize(table, promises), jali.generalize(table, promises, show=DISPLAYS[show])
        assert plain.levels == own.levels
        expected = jali.attacks(plain, table, threshold=Fraction(1, 2), time_limit=1)
        for what in (own, own.save(tmp_path / str(round_))):
            found = jali.attacks(what, table, threshold=Fraction(1, 2), time_limit=1)
            for one, other in zip(found.tried, expected.tried, strict=True):
                assert (one.exposed, one.right, one.figures) == (other.exposed, other.right, other.figures)


def test_the_algorithm_is_not_replayed_where_the_hierarchies_of_groups_are_not_known() -> None:
    """Sets do not tell by which bands they were formed; the other attacks need not know it."""
    frame = pa.table({"a": [0, 1, 2, 3, 4, 5, 6, 7], "s": list("pqpqpqpq")})
    made_from = jali.table(frame, quasi={"a": jali.bands(2, 4, low=0, high=7)}, sensitive=["s"])
    release = jali.generalize(made_from, [jali.KAnonymity(4)], show="set")
    assert release.levels == {"a": 2}
    for other in (jali.suppress(), jali.bands(1, 3, low=0, high=7)):  # too few levels, other nodes
        found = jali.attacks(release, jali.table(frame, quasi={"a": other}, sensitive=["s"]))
        assert found["linkage"].figures["match exactly one group"] == 8
        assert found["algorithm"].exposed is None
        assert "something else" in found["algorithm"].notes[0]


@pytest.mark.parametrize("kind", ["relaxed", "generalize"])
def test_what_was_not_computed_is_not_told_as_nobody(kind: str) -> None:
    table, _ = random_table(np.random.default_rng(1))
    gallery = jali.attacks(MAKERS[kind](table), table, time_limit=2)
    found = gallery["algorithm"]
    assert (found.exposed, found.right, found.to_dict()["exposed"]) == (None, None, None)
    told = found.lines()
    assert [line.split() for line in told if "people exposed" in line] == [["people", "exposed", "not", "computed"]]
    assert any(found.notes[0] in line for line in told)
    assert found.notes[0]


def test_spreads_are_all_tables_with_the_given_sums() -> None:
    assert len(list(spreads((2, 2, 1), (2, 3)))) == 5
    for way in spreads((3, 2, 2), (2, 2, 3)):
        assert [sum(row) for row in way] == [2, 2, 3]
        assert [sum(column) for column in zip(*way, strict=True)] == [3, 2, 2]


# -- what it says, and bad input ---------------------------------------------------------------------------------


def test_a_gallery_is_marked_confidential_and_shows_no_original_cell() -> None:
    found = jali.attacks(figure_2(), hospital())
    text = repr(found)
    assert "confidential" in text.splitlines()[0]
    assert "confidential" in found.to_dict()
    assert not any(zip_code in text for zip_code in HOSPITAL["zip"].to_pylist())
    assert [attack["name"] for attack in found.to_dict()["attacks"]] == [
        "homogeneity", "background knowledge", "linkage", "algorithm", "presence",
    ]  # fmt: skip
    assert jali.attacks(figure_2(), hospital(), cases=0)["homogeneity"].cases == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "threshold must be above 0"),
        ({"threshold": 1.5}, "at most 1"),
        ({"cases": -1}, "cases must be a whole number"),
        ({"sensitive": "cond"}, "no sensitive column"),
        ({"public": pa.table({"zip": ["1"]})}, "age"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        jali.attacks(figure_2(), hospital(), **options)


def test_another_table_than_the_original_is_refused() -> None:
    other = jali.table(
        pa.table({"zip": ["99999"] * 2, "age": ["31"] * 2, "nation": ["Martian"] * 2, "condition": ["Flu"] * 2}),
        quasi={"zip": jali.mask(), "age": jali.taxonomy([("31", "3*", "*")]), "nation": jali.suppress()},
        sensitive=["condition"], types={"age": "text"},
    )  # fmt: skip
    with pytest.raises(InputError):
        jali.attacks(figure_2(), other)
    with pytest.raises(InputError, match="the original must be a table"):
        jali.attacks(figure_2(), HOSPITAL)  # type: ignore[arg-type]
    with pytest.raises(InputError, match='no attack "homogenity"; did you mean "homogeneity"'):
        jali.attacks(figure_2(), hospital())["homogenity"]
