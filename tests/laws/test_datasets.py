"""Laws of the ready tables: the synthetic census, and the real Adult table where it is."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.datasets import adult, census, columns

HEADER = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "salary-class",
)  # fmt: skip
PERSON = {
    "age": "39", "workclass": "State-gov", "education": "Bachelors", "marital-status": "Never-married", "race": "White",
    "occupation": "Sales", "sex": "Male", "native-country": "United-States", "salary-class": "<=50K",
}  # fmt: skip


def write(path: Path, *people: dict[str, str], header: tuple[str, ...] = HEADER) -> Path:
    """A file of invented people as the Adult table would have them."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header, restval="0", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(PERSON | person for person in people)
    return path


def test_the_census_has_the_columns_of_the_paper() -> None:
    """45,222 people, seven quasi-identifiers in the order of Figure 7, Occupation sensitive."""
    table = census()
    assert table.rows == table.people == 45_222
    assert [column.name for column in table.quasi] == list(columns.QUASI)
    assert [column.name for column in table.sensitive] == ["occupation"]
    assert table["age"].kind == "number"
    assert (table["age"].values[0].as_py(), table["age"].values[-1].as_py()) == (17, 90)


def test_the_census_is_what_the_sampler_draws() -> None:
    """No value changes on the way from the sampler's codes to the table."""
    drawn = columns.sample(500, seed=3)
    rows = census(500, seed=3, sensitive=["occupation", "salary-class"]).frame("arrow")
    for name, (domain, codes) in drawn.items():
        assert rows[name].to_pylist() == [domain[code] for code in codes]


def test_a_seed_gives_the_same_census_and_another_seed_another() -> None:
    """A generator seeded alike gives it too, and the choice of columns does not change the people."""
    first, again = census(2000, seed=1), census(2000, seed=np.random.default_rng(1))
    assert first.frame("arrow").equals(again.frame("arrow"))
    assert not first.frame("arrow").equals(census(2000, seed=2).frame("arrow"))
    fewer = census(2000, seed=1, quasi=["sex", "age"], sensitive=["salary-class"])
    assert fewer.frame("arrow")["age"].equals(first.frame("arrow")["age"])


@given(st.permutations([*columns.QUASI, "salary-class"]), st.integers(1, 8))
def test_quasi_identifiers_are_chosen_and_ordered_by_the_caller(names: list[str], many: int) -> None:
    """Any choice in any order, a sensitive column that is not used as such among them."""
    table = census(50, quasi=names[:many])
    assert [column.name for column in table.quasi] == names[:many]


@pytest.mark.parametrize("name", columns.QUASI)
def test_each_hierarchy_of_the_census_is_that_of_the_paper(name: str) -> None:
    """The same values under the same nodes at every level, whatever the nodes are called; the domain is declared."""
    column = census(10, quasi=[name])[name]
    rows = columns.rows(name)
    assert column.declared
    assert column.labels.to_pylist() == [row[0] for row in rows]
    assert column.hierarchy is not None
    assert column.hierarchy.height == len(rows[0]) - 1
    for level, nodes in enumerate(column.hierarchy.maps):
        labels = [row[level] for row in rows]
        assert len(set(zip(nodes.tolist(), labels, strict=True))) == len(set(labels)) == len(set(nodes.tolist()))


def test_both_sensitive_columns_can_be_asked_for() -> None:
    """Either one, both, in either order, or none."""
    for names in (["occupation"], ["salary-class"], ["salary-class", "occupation"], []):
        assert [column.name for column in census(100, sensitive=names).sensitive] == names


def test_the_census_is_measured_over_the_domain_that_is_asked_for() -> None:
    """Declared: all 74 ages; present: those that occur."""
    assert census(10)["age"].mask(census(10).domain).sum() == 74
    few = census(10, domain="present")
    assert few["age"].mask(few.domain).sum() <= 10


def test_a_census_can_be_published_and_saved(tmp_path: Path) -> None:
    """The table works where every other table works."""
    release = jali.generalize(census(3000, quasi=["age", "sex", "race"]), [jali.KAnonymity(5)])
    assert jali.audit(release).k >= 5
    assert jali.load(release.save(tmp_path / "out")).frame("arrow").num_rows == 3000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensitive": ["ocupation"]}, 'sensitive: no such column "ocupation"; did you mean "occupation"'),
        ({"sensitive": ["age"]}, 'sensitive: no such column "age"; known: occupation, salary-class'),
        ({"sensitive": "occupation"}, r'sensitive must be a list .* write sensitive=\["occupation"\]'),
        ({"quasi": ["eduction"]}, 'quasi: no such column "eduction"; did you mean "education"'),
        ({"quasi": "age"}, r'quasi must be a list .* write quasi=\["age"\]'),
        ({"quasi": ["age", "age"]}, 'column "age" is named twice as quasi'),
        ({"quasi": ["occupation"]}, 'column "occupation" is named as quasi and as sensitive'),
        ({"quasi": []}, "no quasi-identifier was named"),
        ({"domain": "all"}, "domain must be"),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest(options: dict[str, object], message: str) -> None:
    """The error names the parameter, says what was given and what to do."""
    with pytest.raises(jali.InputError, match=message):
        census(10, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [0, -1, 2.5, True, "10"])
def test_a_census_has_at_least_one_row(rows: object) -> None:
    """Anything but a whole number of at least one is refused."""
    with pytest.raises(jali.InputError, match="rows must be a whole number of at least 1"):
        census(rows)  # type: ignore[arg-type]


def test_where_the_adult_table_is_absent_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No path, a path to nothing, a variable that names nothing: where it is from, and what the file must look like."""
    monkeypatch.delenv("JALI_ADULT", raising=False)
    how = 'get "Adult" from the UCI Machine Learning Repository.*JALI_ADULT'
    with pytest.raises(jali.InputError, match=f"is not part of jali.*{how}"):
        adult()
    with pytest.raises(jali.InputError, match=f"there is no file .*{how}"):
        adult(tmp_path / "adult.csv")
    monkeypatch.setenv("JALI_ADULT", str(tmp_path / "adult.csv"))
    with pytest.raises(jali.InputError, match="JALI_ADULT: there is no file"):
        adult()


def test_the_adult_table_is_read_from_a_path_or_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the columns and hierarchies of the census; what is not asked for is not read."""
    path = write(tmp_path / "adult.csv", {"age": "17"}, {"sex": "Female"}, {"salary-class": ">50K"})
    monkeypatch.setenv("JALI_ADULT", str(path))
    for table in (adult(), adult(path), adult(str(path))):
        assert [(c.name, c.role) for c in table.columns] == [(c.name, c.role) for c in census(1).columns]
        assert [repr(c.hierarchy) for c in table.quasi] == [repr(c.hierarchy) for c in census(1).quasi]
        assert "salary-class" in table.unnamed
    chosen = adult(path, quasi=["race", "age"], sensitive=["salary-class", "occupation"])
    assert [column.name for column in chosen.columns] == ["race", "age", "salary-class", "occupation"]
    assert chosen["age"].values.take(chosen["age"].codes).to_pylist() == [17, 39, 39]


def test_the_second_files_dots_are_no_part_of_a_salary_class(tmp_path: Path) -> None:
    """>50K. is >50K, as a sensitive column and as a quasi-identifier."""
    people = [{"salary-class": text} for text in ("<=50K", ">50K", "<=50K.", ">50K.")]
    path = write(tmp_path / "adult.csv", *people)
    column = adult(path, sensitive=["salary-class"])["salary-class"]
    assert (column.labels.to_pylist(), column.codes.tolist()) == (["<=50K", ">50K"], [0, 1, 0, 1])
    column = adult(path, quasi=["salary-class"])["salary-class"]
    assert column.codes.tolist() == [0, 1, 0, 1]
    assert column.declared


def test_another_table_is_not_taken_for_adult(tmp_path: Path) -> None:
    """A missing column, a value that is none of Adult's, or too few rows for the paper's reading are refused."""
    with pytest.raises(jali.InputError, match=r'no column "race".*get "Adult"'):
        adult(write(tmp_path / "a.csv", {}, header=tuple(name for name in HEADER if name != "race")))
    with pytest.raises(jali.InputError, match=r'column "workclass", row 2.*missing value \(\?\)'):
        adult(write(tmp_path / "b.csv", {}, {"workclass": "?"}))
    with pytest.raises(jali.InputError, match="other than <=50K and >50K"):
        adult(write(tmp_path / "c.csv", {"salary-class": "rich"}), sensitive=["salary-class"])
    with pytest.raises(jali.InputError, match=r"needs all 45,222 rows.*got 1 rows"):
        adult(write(tmp_path / "d.csv", {}), sensitive=["salary-class"], labels="paper")
    with pytest.raises(jali.InputError, match='labels must be "right" or "paper"'):
        adult(write(tmp_path / "e.csv", {}), labels="wrong")  # type: ignore[arg-type]
