"""From a real file to a release: what `jali init` writes for nine situations is published strictly, without editing.

The files have the traits of real ones; everybody in them is invented.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from click.testing import CliRunner

import jali
from jali.cli.app import app
from oracles import reading as slow

Rows = dict[str, Sequence[Any]]
PEOPLE = 400


def drawn(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def ages(random: np.random.Generator, rows: int = PEOPLE) -> list[int]:
    return [int(x) for x in random.normal(48, 17, rows).clip(18, 95)]


def pick(random: np.random.Generator, values: Sequence[str], rows: int = PEOPLE) -> list[str]:
    return [values[i] for i in random.integers(0, len(values), rows)]


def names(rows: int = PEOPLE) -> list[str]:
    return [f"{'BCDFGHKLMNPRSTVW'[i % 16]}{'aeiou'[i % 5]}{'lmnrst'[i % 6]}o{i}" for i in range(rows)]


def deaths() -> Rows:
    """A register of deaths with names and coordinates."""
    r = drawn(1)
    return {
        "name": names(),
        "age": ages(r),
        "gender": pick(r, ["M", "F"]),
        "race": pick(r, ["white", "black", "asian", "hispanic"]),
        "date": [f"20{15 + i % 6:02}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(PEOPLE)],
        "longitude": [round(float(x), 5) for x in r.uniform(-120, -70, PEOPLE)],
        "latitude": [round(float(x), 5) for x in r.uniform(25, 48, PEOPLE)],
        "manner_of_death": pick(r, ["shot", "shot and tasered"]),
        "cause_of_death": pick(r, ["gunshot", "vehicle", "taser", "other"]),
    }


def census() -> Rows:
    """A census of 43 columns, most of them codes."""
    r = drawn(2)
    rows: Rows = {"AGE": ages(r), "SEX": pick(r, ["1", "2"]), "RACE": pick(r, ["1", "2", "3", "6"])}
    rows |= {
        "PERWT": [float(x) for x in r.integers(20, 300, PEOPLE)],
        "INCTOT": list(map(int, r.integers(0, 40, PEOPLE) * 500)),
    }
    return rows | {f"CODE{i:02}": list(map(int, r.integers(0, 2 + i % 9, PEOPLE))) for i in range(38)}


def panel() -> Rows:
    """Patients with several rows each."""
    r = drawn(3)
    persons = [int(x) for x in r.integers(0, 120, PEOPLE)]
    born, sex = ages(r, 120), pick(r, ["f", "m"], 120)
    return {
        "patient_id": [10_000 + p for p in persons],
        "visit_id": list(range(500_000, 500_000 + PEOPLE)),
        "age": [born[p] for p in persons],
        "sex": [sex[p] for p in persons],
        "admission_date": [f"2021-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(PEOPLE)],
        "diagnosis": pick(r, ["I10", "E11", "J45", "F32"]),
    }


def wide() -> Rows:
    """A statistics file of 67 columns."""
    r = drawn(4)
    rows: Rows = {"caseid": list(range(1, PEOPLE + 1)), "age": ages(r), "sex": pick(r, ["male", "female"])}
    rows |= {
        "region": pick(r, ["north", "south", "east"]),
        "bmi": [round(float(x), 1) for x in r.normal(25, 4, PEOPLE)],
    }
    rows |= {f"q{i}": [float(x) for x in r.integers(1, 6, PEOPLE)] for i in range(1, 61)}
    return rows | {
        "remarks": [f"said that the {w} of week {i} was not to be had" for i, w in enumerate(names())],
        "weight_kg": list(map(int, r.integers(45, 120, PEOPLE))),
    }


def r_export() -> Rows:
    """What R writes, with row names and NA."""
    r = drawn(5)
    rows: Rows = {"rownames": list(range(1, PEOPLE + 1)), "age": ages(r), "sex": pick(r, ["Male", "Female"])}
    return rows | {
        "educ": pick(r, ["low", "mid", "high", "NA"]),
        "smoker": pick(r, ["yes", "no", "NA"]),
        "glucose": pick(r, ["NA", *map(str, range(70, 100))]),
    }


def half_tested() -> Rows:
    """HIV is positive, or the cell is empty."""
    r = drawn(6)
    rows: Rows = {
        "age": ages(r),
        "sex": pick(r, ["f", "m"]),
        "zip": pick(r, ["10115", "10117", "10119", "20095", "20097"]),
    }
    return rows | {"hiv": pick(r, ["positive", "", "", ""])}


def addresses() -> Rows:
    """Names and addresses."""
    r = drawn(7)
    return {
        "first_name": pick(r, ["Ann", "Bo", "Cy", "Di", "Ed", "Flo"]),
        "last_name": names(),
        "address": [f"{i} Elm Street" for i in range(PEOPLE)],
        "email": [f"{name.lower()}@example.org" for name in names()],
        "phone": [f"+1 555 {i:07}" for i in range(PEOPLE)],
        "dob": [f"{1940 + i % 60}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(PEOPLE)],
        "city": pick(r, ["Ames", "Boone", "Clive"]),
        "salary": [int(x) * 1000 for x in r.integers(20, 60, PEOPLE)],
    }


def precise() -> Rows:
    """Sensitive numbers that a single-precision program wrote."""
    r = drawn(8)
    rows: Rows = {"age": ages(r), "sex": pick(r, ["f", "m"]), "department": pick(r, ["A", "B", "C", "D"])}
    return rows | {
        "income": [float(np.float32(x)) for x in r.normal(3.2, 0.4, PEOPLE).round(2)],
        "job_satisfaction": pick(r, list("12345")),
    }


def german() -> Rows:
    """A German export: decimal commas, points between thousands, days before months, k. A. for no answer."""
    r = drawn(9)
    return {
        "Patienten-Nr.": [f"P-{i:05}" for i in range(PEOPLE)],
        "Name, Vorname": [f"{name}, Eva" for name in names()],
        "Geburtsdatum": [f"{1 + i % 28:02}.{1 + i % 12:02}.{1940 + i % 60}" for i in range(PEOPLE)],
        "Größe": [f"1,{x}" for x in r.integers(50, 99, PEOPLE)],
        "Geschlecht": pick(r, ["m", "w", "d"]),
        "PLZ": pick(r, ["01067", "01069", "04103", "10115"]),
        "Familienstand": pick(r, ["ledig", "verheiratet", "verwitwet"]),
        "Einkommen": ["k. A." if x == 20 else f"{x // 20}.{x % 20 * 50:03},00" for x in r.integers(20, 120, PEOPLE)],
        "Bemerkung": [f"kam am Tag {i} mit der Bahn zu uns" for i in range(PEOPLE)],
    }


def labelled() -> Rows:
    """A poll in which codes have labels."""
    r = drawn(12)
    rows: Rows = {"id": list(range(1, PEOPLE + 1)), "sex": list(map(float, r.integers(1, 3, PEOPLE)))}
    return rows | {"age": [*map(float, ages(r)[1:]), 98.0], "vote": list(map(float, r.integers(1, 6, PEOPLE)))}


def admissions() -> Rows:
    """What a clerk keeps in a spreadsheet."""
    r = drawn(13)
    rows: Rows = {"Surname": names(), "Age": ages(r), "Sex": pick(r, ["f", "m"])}
    return rows | {
        "Postcode": pick(r, ["AB1 2CD", "AB2 3EF", "CD1 1AA"]),
        "Disease": pick(r, ["I10", "E11", "J45", "F32"]),
    }


SITUATIONS: dict[str, tuple[Callable[[], Rows], str]] = {
    "a register of deaths": (deaths, "csv"),
    "a census of 43 columns": (census, "parquet"),
    "a panel of patients": (panel, "csv"),
    "a statistics file of 67 columns": (wide, "dta"),
    "an export of R": (r_export, "csv"),
    "a German export": (german, "cp1252"),
    "positive or empty": (half_tested, "csv"),
    "names and addresses": (addresses, "csv"),
    "needless precision": (precise, "parquet"),
    "value labels of SPSS": (labelled, "sav"),
    "value labels of Stata": (labelled, "dta"),
    "a spreadsheet": (admissions, "xlsx"),
    "an archive": (admissions, "zip"),
    "a byte order mark and semicolons": (admissions, "bom"),
}
DROPPED = {
    "a register of deaths": {"name"},
    "a panel of patients": {"visit_id"},
    "a statistics file of 67 columns": {"caseid", "remarks"},
    "a German export": {"Patienten-Nr.", "Name, Vorname", "Bemerkung"},
    "names and addresses": {"first_name", "last_name", "address", "email", "phone"},
    "value labels of SPSS": {"id"},
    "value labels of Stata": {"id"},
    "a spreadsheet": {"Surname"},
    "an archive": {"Surname"},
    "a byte order mark and semicolons": {"Surname"},
}


def written(rows: Rows, form: str) -> str:
    """The rows as a file in the working folder."""
    place = f"data.{form if form in ('parquet', 'dta', 'sav', 'xlsx', 'zip') else 'csv'}"
    lines = [list(rows), *map(list, zip(*rows.values(), strict=True))]
    if form == "parquet":
        pq.write_table(pa.table({name: list(values) for name, values in rows.items()}), place)
    elif form in ("dta", "sav"):
        labels = {
            "sex": {1.0: "male", 2.0: "female"},
            "vote": {1.0 + i: f"party {i}" for i in range(5)},
            "age": {98.0: "refused"},
        }
        about = {
            "variable_value_labels": {n: told for n, told in labels.items() if isinstance(rows.get(n, [""])[0], float)}
        }
        getattr(pyreadstat, f"write_{form}")(pd.DataFrame(dict(rows)), place, **about)
    elif form == "xlsx":
        Path(place).write_bytes(slow.xlsx({"Data": lines}))
    else:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=";" if form in ("cp1252", "bom") else ",").writerows(lines)
        content = text.getvalue().encode({"cp1252": "cp1252", "bom": "utf-8-sig"}.get(form, "utf-8"))
        Path(place).write_bytes(slow.zipped({"data.csv": content}) if form == "zip" else content)
    return place


def telling(rows: Rows) -> set[str]:
    """Texts that are long enough to be looked for, and no word that a figure or a reason could have."""
    words = {"Female", "female", "hispanic", "positive", "vehicle", "other", "white", "verheiratet"}
    return {str(cell) for cells in rows.values() for cell in cells if isinstance(cell, str) and len(cell) >= 6} - words


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), prog_name="jali")


SLOW = ("dta", "sav", "xlsx")  # another process reads these
LARGE = ("a census of 43 columns", "names and addresses", *(n for n, (_, form) in SITUATIONS.items() if form in SLOW))


@pytest.mark.parametrize(
    "situation", [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in SITUATIONS]
)
def test_what_init_writes_is_published_strictly_and_safe_for_everybody_to_read(
    situation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`jali init FILE && jali publish job.toml --strict` gives a release that the policy "public" finds safe.

    Identifiers are not in it, nor in the job.
    """
    monkeypatch.chdir(tmp_path)
    make, form = SITUATIONS[situation]
    place = written(make(), form)
    begun = run("init", place)
    assert begun.exit_code == 0, begun.output
    done = run("publish", "job.toml", "--strict")
    assert done.exit_code == 0, f"{done.output}\n{Path('job.toml').read_text('utf-8')}"
    release = jali.load("release")
    told = "".join(run(*asked).output for asked in (("profile", place), ("profile", place, "--json")))
    assert not [cell for cell in telling(make()) if cell in Path("job.toml").read_text("utf-8") + told]
    published = {column.name for column in release.columns}
    dropped = DROPPED.get(situation, set())
    assert not published & dropped
    assert dropped <= {*tomllib.loads(Path("job.toml").read_text("utf-8")).get("identifier", [])}
    assert jali.audit("release").holds
    for asked in (("audit", "release", "--policy", "public"), ("report", "release", "-o", "page.html", "--check")):
        judged = run(*asked)
        assert judged.exit_code == 0, judged.output
        assert "safe to publish" in judged.output.lower()
    assert len(published) >= 3


@pytest.mark.parametrize("people", [5, 12, 19, 20, 21, 39, 40, 41])
def test_a_first_job_of_few_people_runs_and_says_where_none_can_be_for_everybody(
    people: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 20 people on the release meets the policy "public"; of fewer, the job and a note say that none can."""
    monkeypatch.chdir(tmp_path)
    r = drawn(people)
    rows: Rows = {"age": ages(r, people), "sex": pick(r, ["f", "m"], people)}
    begun = run(
        "init", written(rows | {"disease": [["I10", "E11", "J45", "F32"][i % 4] for i in range(people)]}, "csv")
    )
    said = f"no release of {people} people meets the policy public"
    assert (said in begun.output, said in Path("job.toml").read_text("utf-8")) == (people < 20, people < 20)
    assert run("publish", "job.toml", "--strict").exit_code == 0
    assert run("audit", "release", "--policy", "public").exit_code == (3 if people < 20 else 0)


@pytest.mark.parametrize("people", [1, 2, 4])
def test_a_table_of_fewer_people_than_a_group_gets_no_job(
    people: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its profile can be seen, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    place = written({"age": list(range(30, 30 + people)), "disease": ["flu"] * people}, "csv")
    begun = run("init", place)
    assert (begun.exit_code, Path("job.toml").exists()) == (2, False)
    assert f"groups of at least 5 people, and the table is about {people}" in begun.output
    assert run("profile", place).exit_code == 0


TITLES = {
    "in a spreadsheet": (slow.xlsx, "data.xlsx"),
    "with separators": ("{title};;\n;;\n{rows}", "data.csv"),
    "without separators": ("{title}\n\n{rows}", "data.csv"),
}


@pytest.mark.parametrize(
    "form", [pytest.param(name, marks=pytest.mark.slow if name == "in a spreadsheet" else ()) for name in TITLES]
)
def test_a_title_above_the_names_is_refused_and_not_taken_for_one(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one column would be read, and in a CSV file whole lines as its values."""
    monkeypatch.chdir(tmp_path)
    how, place = TITLES[form]
    lines = [["Age", "Sex", "Disease"], *([str(20 + i % 30), "f", "flu"] for i in range(60))]
    if callable(how):
        Path(place).write_bytes(how({"Data": [["Clinic of St. Anne"], [], *lines]}))
    else:
        Path(place).write_text(how.format(title="Clinic of St. Anne", rows="\n".join(map(";".join, lines)) + "\n"))
    for command in ("init", "profile"):
        begun = run(command, place)
        assert (begun.exit_code, Path("job.toml").exists()) == (2, False), begun.output
        assert "names 1 of 3 columns; delete the title above the line with the names" in begun.output


def test_a_column_of_lists_is_one_column_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few separators in some cells are no table."""
    monkeypatch.chdir(tmp_path)
    cells = [["Bonn, Rhein", "Köln", "Aachen, am Dom, alt"][i % 3] for i in range(60)]
    assert run("profile", written({"Ort": cells}, "csv")).exit_code == 0


def test_a_household_is_no_person_and_markers_among_words_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a household is dropped; "k. A." is taken as missing, said, and marked for a check."""
    monkeypatch.chdir(tmp_path)
    r = drawn(10)
    for name in ("household_id", "Haushaltsnummer", "hhid"):
        rows: Rows = {name: [1000 + i // 3 for i in range(PEOPLE)], "Alter": ages(r)}
        rows |= {"Beruf": pick(r, ["Koch", "Arzt", "k. A."]), "Diagnose": pick(r, ["I10", "E11", "J45", "F32"])}
        begun = run("init", written(rows, "csv"), "--overwrite")
        job = tomllib.loads(Path("job.toml").read_text("utf-8"))
        assert (job["identifier"], job.get("person")) == ([name], None)
        assert job["missing_markers"] == ["k. A."]
        assert "taken as missing" in begun.output
        assert "# check" in next(line for line in Path("job.toml").read_text("utf-8").splitlines() if "k. A." in line)
        assert run("publish", "job.toml", "--strict", "-o", name).exit_code == 0


def test_sensitive_numbers_that_tell_everybody_apart_together_are_noted_and_not_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them is close to unique; a first job has so many of them as do not tell nearly everybody apart."""
    monkeypatch.chdir(tmp_path)
    r = drawn(11)
    rows: Rows = {"age": ages(r), "income": [int(x) * 1000 for x in r.integers(10, 60, PEOPLE)]}
    rows |= {
        "bmi": [int(x) / 10 for x in r.integers(150, 400, PEOPLE)],
        "glucose": list(map(int, r.integers(60, 180, PEOPLE))),
    }
    table = jali.table(pa.table({n: list(c) for n, c in rows.items()}), quasi=["age"], sensitive=["income", "bmi"])
    promises = [jali.DistinctDiversity(2, sensitive=name) for name in ("income", "bmi")]
    assert any(
        "together tell nearly everybody apart" in note for note in jali.generalize(table, promises).manifest.notes
    )
    run("init", written(rows, "csv"))
    assert list(tomllib.loads(Path("job.toml").read_text("utf-8"))["sensitive"]) == ["income"]
    assert run("publish", "job.toml", "--strict").exit_code == 0
