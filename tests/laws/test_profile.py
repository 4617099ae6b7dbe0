"""The risk profile: figures equal those of brute force, roles follow names and values, and no value is shown."""

from __future__ import annotations

import json
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.cli.starting import job_text
from jali.errors import InputError
from jali.risk.roles import SAFE_HARBOR, Facts, suggest
from jali.risk.uniques import LARGEST, Coded, Everybody, _once, certainty, minimal_uniques, spread
from oracles import uniques as oracle
from oracles.often import examples

ROWS = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(0, 2)] * width), min_size=1, max_size=9)
)


def coded(rows: list[tuple[int, ...]]) -> dict[str, Coded]:
    """The columns by name, a to e."""
    return {"abcde"[at]: Coded(np.array(column), 3) for at, column in enumerate(zip(*rows, strict=True))}


@examples(4)
@given(ROWS, st.booleans(), st.data())
def test_minimal_unique_sets_are_those_of_brute_force(rows: Any, several: bool, data: st.DataObject) -> None:
    """For people with one row and with several, up to four columns; so are the people who are unique by so many."""
    persons = data.draw(st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows))) if several else None
    found = minimal_uniques(coded(rows), Everybody(len(rows), None if persons is None else np.array(persons)))
    who = list(range(len(rows))) if persons is None else persons
    expected = oracle.minimal_sets(rows, who, LARGEST)
    assert {tuple("abcde".index(name) for name in one.columns): one.people for one in found.sets} == expected
    sizes = range(1, min(LARGEST, len(rows[0])) + 1)
    assert list(found.by_size) == [oracle.unique_by_at_most(rows, who, size) for size in sizes]
    assert found.paired == ()


@given(ROWS, st.data())
def test_counted_rows_are_the_same_as_rows(rows: Any, data: st.DataObject) -> None:
    """Distinct rows with their numbers, as an engine counts them, give what the rows themselves give."""
    distinct = sorted(set(rows))
    times = np.array([rows.count(row) for row in distinct])
    by_rows = minimal_uniques(coded(rows), Everybody(len(rows)))
    by_number = minimal_uniques(coded(distinct), Everybody(len(distinct), multiplicity=times))
    assert by_rows == by_number
    every = list(coded(rows).values())
    assert spread(every, Everybody(len(rows))) == spread(
        list(coded(distinct).values()), Everybody(len(distinct), multiplicity=times)
    )


@given(ROWS)
def test_with_little_time_the_last_columns_are_searched_in_pairs_and_that_is_said(rows: Any) -> None:
    """No set of more than two columns has one of them; all the others are those of brute force."""
    found = minimal_uniques(coded(rows), Everybody(len(rows)), work=0)
    names = list(coded(rows))
    assert found.searched == tuple(names[:LARGEST])
    assert found.paired == tuple(names[LARGEST:])
    expected = {
        chosen: people
        for chosen, people in oracle.minimal_sets(rows, range(len(rows)), LARGEST).items()
        if len(chosen) <= 2 or max(chosen) < LARGEST
    }
    assert {tuple("abcde".index(name) for name in one.columns): one.people for one in found.sets} == expected


@given(ROWS)
def test_distinction_and_separation_are_those_of_brute_force(rows: Any) -> None:
    """Of all columns together; one row separates nothing."""
    found = spread(list(coded(rows).values()), Everybody(len(rows)))
    assert found.distinct == len(set(rows))
    assert found.distinction == pytest.approx(float(oracle.distinction(rows)))
    assert found.separation == pytest.approx(float(oracle.separation(rows)))
    assert found.unique == sum(rows.count(row) == 1 for row in rows)


@given(ROWS, st.data())
def test_what_is_certain_is_that_of_brute_force(rows: Any, data: st.DataObject) -> None:
    """The share of the people whose known value everybody in their group has; the missing value is none."""
    length = {"min_size": len(rows), "max_size": len(rows)}
    values = data.draw(st.lists(st.sampled_from([0, 1, None]), **length))
    persons = data.draw(st.lists(st.integers(0, 4), **length))
    sensitive = Coded(np.array([2 if value is None else value for value in values]), 3)
    quasi = list(coded(rows).values())
    found = certainty(quasi, sensitive, True, Everybody(len(rows), np.array(persons)))
    assert found == pytest.approx(float(oracle.certain(rows, values, persons)))


@given(st.lists(st.integers(0, 1 << 40), max_size=30))
def test_keys_that_occur_once_are_found_in_any_space(keys: list[int]) -> None:
    """Whether a table of all keys is small enough, or their hashes are looked up first."""
    for width in (max(keys, default=0) + 1, 1 << 61):
        assert _once(np.array(keys, dtype=np.int64), width).tolist() == [keys.count(key) == 1 for key in keys]


def test_contributions_are_shares_of_what_makes_people_unique() -> None:
    """A column in every set has 1, a constant one 0; a set of one column counts more than one of two."""
    rows = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
    found = minimal_uniques(coded(rows), Everybody(4))
    assert found.contributions() == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert found.score(1) > found.score(2) > 0
    assert minimal_uniques(coded([(0, 0), (0, 0)]), Everybody(2)).contributions() == {"a": 0.0, "b": 0.0}


# -- roles ---------------------------------------------------------------------------------------------------------


def facts(name: str, values: list[Any], *, rows: int = 9, missing: int = 0) -> Facts:
    return Facts(name, pa.array(values), np.full(len(values), rows), missing, rows * len(values), rows > 1)


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("age", list(range(20, 80)), "quasi"),
        ("Geburtsdatum", ["1970-05-17", "1971-06-18"], "quasi"),
        ("latitude", [51.05 + i / 7 for i in range(40)], "quasi"),
        ("income", list(range(0, 3000, 50)), "sensitive"),
        ("hiv", ["positive"], "left out"),
        ("fnlwgt", [1.5, 2.5, 0.5], "weights"),
        ("last_name", ["Kaya", "Roth", "Lind"], "identifier"),
        ("photo", ["a.png", "b.png", "c.png"], "identifier"),
        ("home_page", [f"https://example.org/{i}" for i in range(30)], "identifier"),
        ("zzz", ["red", "blue", "green"], "quasi"),
    ],
)
def test_roles_follow_names_and_values(name: str, values: list[Any], role: str) -> None:
    missing = 5 if name == "hiv" else 0
    assert suggest(facts(name, values, missing=missing)).role == role


def test_what_is_empty_or_constant_needs_no_role() -> None:
    assert suggest(facts("note", [])).role == "left out"
    assert suggest(facts("country", ["CH"])).role == "other"


def test_a_doubt_is_said() -> None:
    """A column that nothing is known of is a quasi-identifier, to be checked; a known one need not be."""
    assert not suggest(facts("zzz", ["red", "blue"])).sure
    assert suggest(facts("sex", ["f", "m"])).sure


# -- the whole -----------------------------------------------------------------------------------------------------

SECRETS = {
    "name": [f"Quirinius{i}" for i in range(60)],
    "zip": [f"{86420 + i % 7}" for i in range(60)],
    "age": [31 + i % 40 for i in range(60)],
    "diagnosis": [("melancholia", "scrofula", "dropsy")[i % 3] for i in range(60)],
    "city": [("Xanadu", "Ophir")[i % 2] for i in range(60)],
}
HIDDEN = ("Quirinius", "8642", "melancholia", "scrofula", "dropsy", "Xanadu", "Ophir")


def test_a_profile_shows_no_value_unless_asked(tmp_path: Path) -> None:
    """Neither its text, nor its figures, nor its page, nor the job; with show_values frequent ones stand in all."""
    made = jali.profile(pa.table(SECRETS))
    page = made.save(tmp_path / "profile.html").read_text("utf-8")
    texts = (repr(made), json.dumps(made.to_dict()), page, made._repr_html_(), job_text(made, "data.csv", "job.toml"))
    assert not [hidden for hidden in HIDDEN for text in texts if hidden in text]
    shown = jali.profile(pa.table(SECRETS), show_values=True)
    assert "scrofula" in repr(shown)
    assert shown["diagnosis"].examples
    assert "scrofula" not in job_text(shown, "data.csv", "job.toml")


def test_a_file_a_frame_and_a_table_have_the_same_profile(tmp_path: Path) -> None:
    import pyarrow.csv as pacsv

    frame = pa.table({name: values for name, values in SECRETS.items() if name != "zip"})
    pacsv.write_csv(frame, tmp_path / "data.csv")
    named = {"quasi": dict.fromkeys(frame.column_names, jali.suppress())}
    profiles = [jali.profile(x) for x in (frame, tmp_path / "data.csv", jali.table(frame, **named), frame.to_pandas())]
    assert all(one == profiles[0] for one in profiles)


def test_the_figures_of_a_profile_count_people() -> None:
    """Whose row it is follows from an identifier that rows share, or from `person`."""
    rows = {"patient_id": [7, 7, 8, 8, 9], "age": [30, 31, 40, 40, 50], "ill": ["a", "b", "a", "a", "b"]}
    made = jali.profile(pa.table(rows))
    assert (made.rows, made.people) == (5, 3)
    assert made["patient_id"].role == "person"
    assert made["age"].unique == 3
    assert jali.profile(pa.table({"who": rows["patient_id"], "age": rows["age"]}), person="who").people == 3
    with pytest.raises(InputError, match="no column"):
        jali.profile(pa.table(rows), person="nobody")


def test_columns_that_say_the_same_are_named_once() -> None:
    """Education and its number: one of them is left out, and it says why."""
    level = [i % 4 for i in range(80)]
    frame = pa.table(
        {"education": [f"level {i}" for i in level], "education-num": level, "age": [20 + i for i in range(80)]}
    )
    made = jali.profile(frame)
    assert {made["education"].role, made["education-num"].role} == {"quasi", "left out"}


def test_a_wide_table_says_what_it_leaves_out() -> None:
    """A first job has at most twelve quasi-identifiers; every other column stands in it with its reason."""
    random = np.random.default_rng(0)
    made = jali.profile(pa.table({f"c{i}": random.integers(0, 4, 200) for i in range(30)}))
    assert len(made.of_role("quasi")) == 12
    left = made.of_role("left out")
    assert len(left) == 18
    text = job_text(made, "data.csv", "job.toml")
    assert all(f'"{column.name}"' in text and column.reason in text for column in left)
    assert tomllib.loads(text)["method"] == "partition"


def test_every_class_of_safe_harbor_is_answered() -> None:
    """Eighteen classes, each with an answer; ages count where somebody is over 89."""
    made = jali.profile(pa.table(SECRETS))
    assert len(made.safe_harbor) == len(SAFE_HARBOR) == 18
    found = {one.title[1]: one.columns for one in made.safe_harbor if one.columns}
    assert found == {"A": ("name",), "B": ("zip", "city")}
    old = jali.profile(pa.table({"age": [89 + i % 5 for i in range(20)], "sex": ["f", "m"] * 10}))
    assert [one.columns for one in old.safe_harbor if one.title.startswith("(C)")] == [("age",)]


def test_the_three_questions_are_answered_from_the_same_figures() -> None:
    made = jali.profile(pa.table(SECRETS))
    single, link, infer = made.gdpr
    assert f"{made.uniques.by_size[0]:,}" in single.answer
    assert "name" in link.answer
    assert set(infer.columns) == set(made.certain) == {"diagnosis"}


def test_a_table_without_quasi_identifiers_gets_one() -> None:
    """A job needs one: a column is taken, and that is to be checked."""
    made = jali.profile(pa.table({"diagnosis": ["a", "b", "c", "d"] * 10}))
    assert [column.name for column in made.of_role("quasi")] == ["diagnosis"]
    assert not made["diagnosis"].sure


KINDS: list[st.SearchStrategy[Any]] = [
    st.none(), st.integers(-(2**40), 2**40), st.integers(0, 3), st.floats(-1e9, 1e9), st.booleans(),
    st.text(max_size=6), st.sampled_from(["a", "b"]), st.dates(),
]  # fmt: skip
NAMES = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8),
    st.sampled_from(["id", "name", "age", "income", "weight", "zip", "date", "hiv"]),
)


@st.composite
def frames(draw: st.DrawFn) -> pa.Table:
    """Frames with any names, each column of one kind or empty."""
    rows = draw(st.integers(1, 12))
    columns = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)):
        cells = st.one_of(st.none(), draw(st.sampled_from(KINDS)))
        columns[name] = pa.array(draw(st.lists(cells, min_size=rows, max_size=rows)))
    return pa.table(columns)


@given(frames())
def test_every_table_has_a_profile_and_a_job_that_can_be_loaded(frame: pa.Table) -> None:
    """Whatever the columns are called; each has one role, and the job names those that are published."""
    from jali.job import Job

    made = jali.profile(frame)
    assert [column.name for column in made.columns] == frame.column_names
    assert repr(made)
    assert made._repr_html_()
    if not made.of_role("quasi"):
        return
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job.toml")
        job.write_text(job_text(made, "data.csv", job.name), encoding="utf-8")
        loaded = Job.load(job)
    assert list(loaded.quasi) == [column.name for column in made.of_role("quasi")]
    assert list(loaded.identifier) == [column.name for column in made.of_role("identifier")]


@pytest.mark.parametrize("name", ["disease", "hiv", "hivtest", "Diagnose", "income", "relig"])
def test_what_nobody_should_learn_is_left_out_where_everybody_has_the_same(name: str) -> None:
    """Published, it would be known of everybody in the table; also where no other column can be a quasi-identifier."""
    alone = jali.profile(pa.table({name: ["positive"] * 30}))
    assert alone[name].role == "left out"
    beside = jali.profile(pa.table({name: ["positive"] * 30, "ward": ["north"] * 30}))
    assert (beside[name].role, beside["ward"].role) == ("left out", "quasi")


def test_the_reason_for_leaving_a_secret_out_is_the_one_that_holds() -> None:
    """One value is frequent, or people have several rows; neither reason is given for the other."""
    ages, visits = [30 + n % 5 for n in range(60)], ["flu", "asthma", "cancer", "stroke"] * 15
    frequent = jali.profile(pa.table({"age": ages, "disease": ["flu", "flu", "asthma"] * 20}))["disease"]
    repeated = jali.profile(pa.table({"patient_id": [n // 2 for n in range(60)], "age": ages, "disease": visits}))
    assert (frequent.role, repeated["disease"].role) == ("left out", "left out")
    assert "over 2 in 5 people have one value" in frequent.reason
    assert "several rows" not in frequent.reason
    assert "people have several rows" in repeated["disease"].reason
    assert "2 in 5" not in repeated["disease"].reason


def test_a_name_of_a_column_stays_as_it_is_written() -> None:
    """A sentence does not begin with one, since it would be written with a capital letter."""
    frame = pa.table({"age": [30 + n % 5 for n in range(60)], "hiv": ["yes", None] * 30})
    assert "leaves out what nobody should learn: hiv" in repr(jali.profile(frame))
    names = {"name": [f"N{n}" for n in range(60)], "vorname": [f"V{n}" for n in range(60)]}
    two = pa.table(names | {"age": [30, 31] * 30})
    assert "name, vorname: found; a first job drops them" in repr(jali.profile(two))


def test_columns_that_cannot_be_published_are_said_and_not_read() -> None:
    frame = pa.table({"age": [30, 31, 30], "seen": pa.array([[1], [2], None]), "blob": pa.array([b"a", b"b", b"c"])})
    made = jali.profile(frame)
    assert made.unread == ("seen", "blob")
    assert "seen, blob" in repr(made)
    assert '"blob"' in job_text(made, "data.csv", "job.toml")


@pytest.mark.parametrize("source", [42, [1, 2], None])
def test_what_is_no_table_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match="not a frame"):
        jali.profile(source)


def test_a_sensitive_number_that_tells_people_apart_is_left_out() -> None:
    """In bands like a quasi-identifier it would have no promise."""
    incomes = [20_000 + 7.31 * n for n in range(200)]
    frame = pa.table({"age": [20 + n % 40 for n in range(200)], "income": incomes})
    assert jali.profile(frame)["income"].role == "left out"


@pytest.mark.parametrize("name", ["Hauptdiagnose", "Entlassungsdiagnose", "Vorerkrankung"])
def test_german_compounds_are_told_by_their_last_word(name: str) -> None:
    """What somebody was found to have when leaving is no date."""
    frame = pa.table({"age": [20 + n % 40 for n in range(200)], name: ["flu", "cold", "gout", "acne"] * 50})
    assert jali.profile(frame)[name].role == "sensitive"


@pytest.mark.parametrize(
    "names",
    [
        "Vorerkrankungen Dauermedikation Alkoholkonsum Haushaltseinkommen Bruttolohn Parteizugehörigkeit Vorstrafen "
        "Schulnote Pflegegrad",
        "antecedents_medicaux groupe_sanguin tabagisme consommation_alcool appartenance_religieuse casier_judiciaire "
        "montant_pret",
        "grupo_sanguineo tabaquismo afiliacion_politica antecedentes_penales presion_arterial glucosa",
        "gruppo_sanguigno fumatore consumo_alcol partito_politico precedenti_penali pressione_arteriosa glicemia",
    ],
    ids=["German", "French", "Spanish", "Italian"],
)
def test_sensitive_columns_are_told_in_four_more_languages(names: str) -> None:
    """None of them becomes a quasi-identifier, which would be published without a promise about it."""
    facts = pa.array(["w1", "w2", "w3", "w4"])
    for name in names.split():
        assert suggest(Facts(name, facts, np.full(4, 50), 0, 200, True)).role == "sensitive", name


def test_places_families_and_schooling_stay_quasi_identifiers() -> None:
    """Their names have parts of sensitive ones."""
    facts = pa.array(["w1", "w2", "w3", "w4"])
    names = "Familienstand Schulbildung Wohnort situation_familiale niveau_etudes estado_civil titolo_studio Fallzahl"
    for name in names.split():
        assert suggest(Facts(name, facts, np.full(4, 50), 0, 200, True)).role == "quasi", name


def test_safe_harbor_names_the_class_of_columns_that_tell_everybody_apart() -> None:
    """Not only that of other unique codes; and what is dropped is not said to be published."""
    names = {"license_plate": "L", "device_serial": "M", "url": "N", "fingerprint": "P", "photo": "Q"}
    columns: dict[str, Any] = {name: [f"{name}{n:03}x{n * n % 97}" for n in range(200)] for name in names}
    columns |= {"street": [f"Main Street {n}" for n in range(200)], "zip_code": [f"1011{n % 4}" for n in range(200)]}
    made = jali.profile(pa.table(columns))
    found = {one.title[1]: one for one in made.safe_harbor}
    for name, letter in names.items():
        assert made[name].role == "identifier"
        assert name in found[letter].columns, letter
    assert found["B"].columns == ("street", "zip_code")
    assert "publishes zip_code, more coarsely" in found["B"].answer


def test_the_plate_of_a_car_is_nobody_whose_rows_are_counted() -> None:
    """Two people who share a car are two people."""
    plates = [f"B-AX {1000 + n}" for n in range(199)] + ["B-AX 1000"]
    made = jali.profile(pa.table({"license_plate": plates, "age": [20 + n % 40 for n in range(200)]}))
    assert (made["license_plate"].role, made.people) == ("identifier", 200)
