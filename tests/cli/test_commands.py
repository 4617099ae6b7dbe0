"""Every command, end to end, on the inpatients of Figure 1."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import tomllib
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.cli.reading import _number
from jali.job import Job


def test_publish_writes_a_release_and_prints_what_was_published(ward: Any) -> None:
    """stdout has the summary and the path, stderr the notes; the release loads and keeps its promises."""
    result = ward.jali("publish", "job.toml")
    assert result.exit_code == 0
    assert result.stdout.startswith("Generalized release: 12 rows in 3 groups")
    assert result.stdout.endswith("Saved in out\n")
    assert "note: not named and not published: name" in result.stderr
    assert "note:" not in result.stdout
    assert jali.audit(jali.load("out")).holds


def test_publish_leaves_unnamed_columns_at_home(published: Any) -> None:
    """The release has the named columns, and no file of it holds a name."""
    for path in (published / "out").iterdir():
        assert "Umeko" not in path.read_text(encoding="utf-8")
    assert published.names() == ["job.toml", "nationality.csv", "out", "patients.csv"]


def test_publish_as_json_is_the_manifest_and_the_path(ward: Any) -> None:
    """With --json and --quiet nothing but JSON is printed."""
    result = ward.jali("publish", "job.toml", "--json", "--quiet")
    assert result.stderr == ""
    told = json.loads(result.stdout)
    manifest = json.loads((ward / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert told["path"] == "out"
    assert told["levels"] == {"zip": 1, "age": 3, "nationality": 2}
    for key in ("kind", "method", "principles", "counts"):
        assert told[key] == manifest[key]
    assert told["metrics"].items() > manifest["metrics"].items()  # with those that compare with the original


def test_notes_come_first_and_strict_makes_them_errors(ward: Any) -> None:
    """On stderr before the notes on reading, under `notes` of --json, and as one line with exit code 2."""
    ward.edit("job.toml", '[[principles]]\nname = "EntropyDiversity"\nl = 2.5\n', "[partition]\nsuppress = 0.1\n")
    unused, unjudged = (
        '[partition] is not used: method = "generalize"',
        'no promise is about the sensitive column "cond',
    )
    refused = ward.jali("publish", "job.toml", "--strict")
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"jali: error: strict: {unused}; {unjudged}")
    assert not (ward / "out").exists()
    result = ward.jali("publish", "job.toml", "--json")
    assert result.stderr.startswith(f"note: {unused}\nnote: {unjudged}")
    told = json.loads(result.stdout)
    assert told["notes"][0] == unused
    assert told["notes"] == json.loads((ward / "out" / "manifest.json").read_text(encoding="utf-8"))["notes"]


def test_strict_has_nothing_against_a_job_without_notes(ward: Any) -> None:
    """What is not named, and what is assumed, is told but is no note."""
    result = ward.jali("publish", "job.toml", "--strict", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["notes"] == []


def test_a_dry_run_writes_nothing(ward: Any) -> None:
    """It does everything else, and says that it was one; it needs no output."""
    ward.edit("job.toml", 'output = "out"\n', "")
    before = ward.names()
    result = ward.jali("publish", "job.toml", "--dry-run")
    assert result.exit_code == 0
    assert "Saved" not in result.stdout
    assert "nothing was written" in result.stderr
    assert ward.names() == before


def test_a_key_of_pseudonyms_is_made_once_and_not_by_a_dry_run(ward: Any) -> None:
    """The key is private; the same one makes the same pseudonyms."""
    more = 'output = "out"\nidentifier = { name = "pseudonym" }\npseudonym_key = "key"\n'
    ward.edit("job.toml", 'output = "out"\n', more)
    assert ward.jali("publish", "job.toml", "--dry-run").exit_code == 0
    assert "key" not in ward.names()
    found = []
    for folder in ("one", "two"):
        assert ward.jali("publish", "job.toml", "-o", folder).exit_code == 0
        found.append(set(jali.load(folder).frame("arrow")["name"].to_pylist()))
    assert found[0] == found[1]
    assert len(found[0]) == 12
    assert (ward / "key").stat().st_mode & 0o077 == 0


def test_publish_elsewhere_as_parquet(ward: Any) -> None:
    """-o goes before the job's output; --format parquet writes Parquet."""
    result = ward.jali("publish", "job.toml", "-o", "deep/er", "--format", "parquet")
    assert result.exit_code == 0, result.stderr
    assert pq.read_table(ward / "deep" / "er" / "data.parquet").num_rows == 12
    assert not (ward / "out").exists()


def test_paths_in_a_job_are_relative_to_it(ward: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job works from whatever folder it is called; -o is relative to where we are."""
    monkeypatch.chdir(ward.folder.parent)
    assert ward.jali("publish", "ward/job.toml").exit_code == 0
    assert (ward / "out" / "manifest.json").is_file()
    assert ward.jali("publish", "ward/job.toml", "-o", "here").exit_code == 0
    assert Path("here/manifest.json").is_file()


def test_overwrite_replaces_a_release(published: Any) -> None:
    """With --overwrite the new release takes the old one's place, whole."""
    published.edit("job.toml", "k = 4", "k = 6")
    result = published.jali("publish", "job.toml", "--overwrite")
    assert result.exit_code == 0, result.stderr
    assert jali.audit("out").k >= 6
    assert published.names() == ["job.toml", "nationality.csv", "out", "patients.csv"]


@pytest.mark.slow
def test_a_table_from_standard_input(ward: Any) -> None:
    """`input = "-"` reads the table from a pipe."""
    ward.edit("job.toml", "patients.csv", "-")
    done = ward.process("publish", "job.toml", "-q", input=(ward / "patients.csv").read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Generalized release: 12 rows")


def test_minimal_lists_every_node(ward: Any) -> None:
    """The table has a row a node, the same as the library's nodes."""
    ward.edit("job.toml", '[[principles]]\nname = "EntropyDiversity"\nl = 2.5\n', "")
    ward.edit("job.toml", "k = 4", "k = 2")
    told = json.loads(ward.jali("minimal", "job.toml", "--json").stdout)
    result = ward.jali("minimal", "job.toml")
    header, *rows = [line.split() for line in result.stdout.splitlines()]
    assert header[:3] == ["zip", "age", "nationality"]
    assert header[3:] == ["groups", "smallest", "height", "KL", "discernibility", "average", "loss"]
    assert len(rows) == len(told) > 1
    for row, node in zip(rows, told, strict=True):
        assert [int(cell) for cell in row[:3]] == list(node["levels"].values())
        assert int(row[4]) == node["smallest"] >= 2
        assert float(row[6]) == pytest.approx(node["kl"], abs=1e-4)


def test_minimal_says_that_it_takes_no_suppression(ward: Any) -> None:
    """A job's suppress does not silently change its meaning."""
    ward.edit("job.toml", '[[principles]]\nname = "K', '[generalize]\nsuppress = 0.1\n[[principles]]\nname = "K')
    result = ward.jali("minimal", "job.toml")
    assert result.exit_code == 0
    assert "suppress is left out" in result.stderr
    assert ward.jali("minimal", "job.toml", "-q").stderr == ""


def test_a_minimal_node_can_be_published(ward: Any) -> None:
    """[generalize] levels publishes a node that `minimal` lists."""
    node = json.loads(ward.jali("minimal", "job.toml", "--json").stdout)[0]
    levels = ", ".join(f"{name} = {level}" for name, level in node["levels"].items())
    ward.edit("job.toml", "[sensitive]", f"[generalize]\nlevels = {{ {levels} }}\n[sensitive]")
    told = json.loads(ward.jali("publish", "job.toml", "--json").stdout)
    assert told["levels"] == node["levels"]


def test_audit_of_a_release(published: Any) -> None:
    """The figures are the library's, promises are kept, the exit code is 0."""
    result = published.jali("audit", "out")
    assert result.exit_code == 0
    assert "promise KAnonymity(4)" in result.stdout
    told = json.loads(published.jali("audit", "out", "--json").stdout)
    assert told == json.loads(json.dumps(jali.audit("out").to_dict()))
    assert told["k"] == 4


def test_a_broken_promise_is_exit_code_3(published: Any) -> None:
    """A manifest that promises more than the data keeps: the figures on stdout, one line on stderr."""
    published.edit("out/manifest.json", '"k": 4', '"k": 5')
    result = published.jali("audit", "out", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["holds"] is False
    assert result.stderr == "jali: error: a promise is broken: KAnonymity(5)\n"


@pytest.mark.slow
def test_a_broken_promise_is_exit_code_3_of_the_process(published: Any) -> None:
    published.edit("out/manifest.json", '"k": 4', '"k": 5')
    assert published.process("audit", "out").returncode == 3


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_audit_of_any_file(ward: Any, form: str) -> None:
    """A file is audited with named columns; each of Figure 1's patients is alone."""
    if form == "parquet":
        pq.write_table(pacsv.read_csv("patients.csv"), "patients.parquet")
    columns = ("--quasi", "zip,age,nationality", "--sensitive", "condition")
    told = json.loads(ward.jali("audit", f"patients.{form}", *columns, "--json").stdout)
    assert (told["k"], told["people"], told["distinct_l"]) == (1, 12, 1)
    coarser = json.loads(ward.jali("audit", f"patients.{form}", "--quasi", "zip", "--json").stdout)
    assert coarser["k"] == 2
    assert "distinct_l" not in coarser


@pytest.mark.parametrize("place", ["patients.sqlite?table=patients", "parts/*.parquet", "parts"])
def test_a_table_of_a_database_or_a_folder_is_audited_and_begun_as_a_file_is(ward: Any, place: str) -> None:
    """audit with named columns, and the first job, which runs as it is and names the table beside it."""
    table = pacsv.read_csv("patients.csv")
    with closing(sqlite3.connect("patients.sqlite")) as database:
        database.execute(f"CREATE TABLE patients ({', '.join(table.column_names)})")
        database.execute("CREATE TABLE visits (a)")
        database.executemany(
            "INSERT INTO patients VALUES (?, ?, ?, ?, ?)", [tuple(r.values()) for r in table.to_pylist()]
        )
        database.commit()
    (ward / "parts").mkdir()
    pq.write_table(table, "parts/1.parquet")
    result = ward.jali("audit", place, "--quasi", "zip", "--sensitive", "condition", "--json")
    assert json.loads(result.stdout)["k"] == 2
    assert ward.jali("init", place, "-o", "first.toml").exit_code == 0
    assert f'input = "{place}"' in (ward / "first.toml").read_text()
    assert ward.jali("publish", "first.toml", "--dry-run").exit_code == 0


def test_commands_ask_for_files_beside_a_release_in_a_database(ward: Any) -> None:
    """A private file may lie anywhere: a database is no folder that is handed out."""
    ward.edit("job.toml", 'output = "out"', 'output = { database = "out.sqlite", table = "out" }')
    resumed = ("--methods", "lattice", "--strengths", "2", "--resume", "private.json", "--json")
    assert ward.jali("frontier", "job.toml", *resumed).exit_code == 0


def test_audit_counts_people_where_they_are_named(ward: Any) -> None:
    """--person: two rows of one person are one person."""
    ward.edit("patients.csv", "Ann,", "Umeko,")
    told = json.loads(ward.jali("audit", "patients.csv", "--quasi", "zip", "--person", "name", "--json").stdout)
    assert told["people"] == 11


def test_a_column_name_with_a_comma_is_quoted(ward: Any) -> None:
    """--quasi reads names as CSV does."""
    ward.edit("patients.csv", "name,zip", 'name,"zip, five"')
    result = ward.jali("audit", "patients.csv", "--quasi", 'age, "zip, five"', "--json")
    assert json.loads(result.stdout)["groups"] == 12


@pytest.mark.parametrize("how", [("--original", "patients.csv"), ("--job", "job.toml")])
def test_measure_finds_what_publish_reported(published: Any, how: tuple[str, ...]) -> None:
    """Against the original, read through the release or through the job, the costs are those of publishing it."""
    told = json.loads(published.jali("measure", "out", *how, "--json").stdout)
    assert told == json.loads(json.dumps(jali.measure("out", Job.load("job.toml").table()).to_dict()))
    metrics = json.loads((published / "out" / "manifest.json").read_text(encoding="utf-8"))["metrics"]
    assert metrics == {name: told[name] for name in ("discernibility", "average", "height")}
    made = json.loads(published.jali("publish", "job.toml", "--dry-run", "--json").stdout)["metrics"]
    assert made == pytest.approx({name: told[name] for name in ("kl", "discernibility", "average", "height", "loss")})
    assert "KL-divergence" in published.jali("measure", "out", *how).stdout


def test_measure_over_the_domain_that_occurs(published: Any) -> None:
    """--domain changes what a cell is spread over."""
    declared, present = (
        json.loads(published.jali("measure", "out", "--original", "patients.csv", "--domain", d, "--json").stdout)
        for d in ("declared", "present")
    )
    assert declared["kl"] > present["kl"]
    assert set(present["domain"].values()) == {"present"}


def test_measure_of_an_original_beyond_memory_says_the_same(published: Any) -> None:
    """--memory bounds what is held of it."""
    pq.write_table(pacsv.read_csv(published / "patients.csv"), published / "patients.parquet")
    asked = ("measure", "out", "--original", "patients.parquet", "--queries", "5", "--json")
    held, beyond = (json.loads(published.jali(*asked, *more).stdout) for more in ((), ("--memory", "2000")))
    queries = beyond.pop("queries"), held.pop("queries")
    assert queries[0] == pytest.approx(queries[1], nan_ok=True)
    assert beyond.pop("columns") == pytest.approx(held.pop("columns"))
    assert beyond.pop("domain") == held.pop("domain")
    assert beyond == pytest.approx(held)
    refused = published.jali(*asked, "--memory", "2000", "--rules")
    assert refused.exit_code == 2
    assert "measure with rules or classify needs every distinct combination at once" in refused.stderr


def test_measure_reads_text_that_looks_like_numbers_as_the_release_did(ward: Any) -> None:
    """A column's kind comes from the release: zips that were read as text are text again."""
    ward.edit("job.toml", 'zip = "mask"', 'zip = "suppress"')
    ward.edit("job.toml", "[sensitive]", '[types]\nzip = "text"\n[sensitive]')
    ward.edit("job.toml", "k = 4", "k = 2")
    ward.edit("job.toml", "l = 2.5", "l = 1")
    assert ward.jali("publish", "job.toml").exit_code == 0
    assert ward.jali("measure", "out", "--original", "patients.csv").exit_code == 0


def test_query_estimates_with_bounds_and_assumptions(published: Any) -> None:
    """What is printed is the library's Count."""
    condition = "age >= 30 AND condition = 'Cancer'"
    count = jali.load("out").estimate().count(condition)
    told = json.loads(published.jali("query", "out", condition, "--json").stdout)
    assert told == {
        "condition": condition, "count": float(count), "low": count.low, "high": count.high,
        "assumes": list(count.assumes),
    }  # fmt: skip
    shown = published.jali("query", "out", condition).stdout
    assert "estimate" in shown
    assert all(f"assuming: {text}" in shown for text in count.assumes)


@given(st.floats(0, 1e14), st.sampled_from(["estimate", "at least", "at most"]))
def test_a_bound_that_is_printed_is_one_still(figure: float, name: str) -> None:
    """It is rounded outward; what is printed has no exponent, and is right to six digits."""
    printed = _number(figure, name)
    assert "e" not in printed
    shown = Fraction(printed.replace(",", ""))
    exact = Fraction(figure)
    slack = exact * Fraction(1, 10**14)  # sums of floats are no more exact
    assert name != "at least" or shown <= exact + slack
    assert name != "at most" or shown >= exact - slack
    assert abs(shown - exact) <= exact * Fraction(1, 10**5)


@pytest.mark.parametrize(
    ("figure", "name", "printed"),
    [(0, "at least", "0"), (3, "at most", "3"), (1_234_564, "at most", "1,234,564"), (0.1 + 0.2, "at most", "0.3"),
     (2_795_819.4, "estimate", "2,795,819"), (2_795_819.4, "at most", "2,795,820"), (22.56671, "estimate", "22.5667")],
)  # fmt: skip
def test_counts_are_printed_as_people_write_them(figure: float, name: str, printed: str) -> None:
    assert _number(figure, name) == printed


def test_inject_adds_marginals_to_a_release(published: Any) -> None:
    """The base stays among the marginals; what is saved can be queried; a job can name the base itself."""
    result = published.jali("inject", "out", "job.toml", "-o", "more")
    assert result.exit_code == 0, result.stderr
    assert "Saved in more" in result.stdout
    assert "instead of out" in result.stderr
    weak = published.jali("inject", "out", "job.toml", "-o", "weak", "--attacker", "marginals")
    assert "everybody's quasi-identifiers and" in result.stdout
    assert "knows one person's quasi-identifiers" in weak.stdout
    told = json.loads(published.jali("inject", "out", "job.toml", "-o", "more", "--overwrite", "--json", "-q").stdout)
    assert told["kind"] == "marginals"
    assert told["method"]["base"]
    assert published.jali("query", "more", "age >= 30 AND condition = 'Cancer'").exit_code == 0
    job = (published / "job.toml").read_text(encoding="utf-8")
    (published / "marginals.toml").write_text(
        f'method = "marginals"\n{job}\n[marginals]\nbase = "out"\n', encoding="utf-8"
    )
    result = published.jali("publish", "marginals.toml", "-o", "same")
    assert result.exit_code == 0, result.stderr
    assert jali.load("same").tables == jali.load("more").tables
    audited = published.jali("audit", "more")
    assert audited.exit_code == 0, audited.stderr
    assert "combinatorial" in audited.stdout
    measured = [
        json.loads(published.jali("measure", "more", *how, "--json").stdout)["kl"]
        for how in (("--job", "job.toml"), ("--original", "patients.csv"))
    ]
    assert measured[0] == pytest.approx(measured[1])
    assert "kl" not in jali.load("more").manifest.metrics


def test_repair_adds_a_promise(ward: Any) -> None:
    """A 4-anonymous release becomes diverse by suppression; only [[principles]] of the job is read."""
    ward.edit("job.toml", '[[principles]]\nname = "EntropyDiversity"\nl = 2.5\n', "")
    assert ward.jali("publish", "job.toml").exit_code == 0
    (ward / "more.toml").write_text('[[principles]]\nname = "DistinctDiversity"\nl = 3\n', encoding="utf-8")
    result = ward.jali("repair", "out", "more.toml", "-o", "repaired")
    assert result.exit_code == 0, result.stderr
    assert "never together with it" in result.stderr
    assert "Saved in repaired" in result.stdout
    told = json.loads(ward.jali("audit", "repaired", "--json").stdout)
    assert told["holds"]
    assert told["distinct_l"] == 3
    again = json.loads(ward.jali("repair", "out", "more.toml", "-o", "repaired", "--overwrite", "--json", "-q").stdout)
    assert [p["name"] for p in again["principles"]] == ["KAnonymity", "DistinctDiversity"]


def test_beliefs_against_the_population(published: Any) -> None:
    """The table itself as the population: nothing changes, since each person is known already."""
    told = json.loads(published.jali("beliefs", "out", "--population", "patients.csv", "--json").stdout)
    assert told["column"] == "condition"
    assert told["largest_change"] == pytest.approx(0)
    with_breaches = published.jali(
        "beliefs", "out", "--population", "patients.csv", "--sensitive", "condition", "--rho1", "0.2", "--rho2", "0.5"
    )
    assert "(0.2, 0.5)-breaches: 0" in with_breaches.stdout


def test_beliefs_against_joint_frequencies(published: Any) -> None:
    """--frequency names the column of a table of joint frequencies."""
    cells = [line.split(",")[1:] for line in (published / "patients.csv").read_text(encoding="utf-8").splitlines()[1:]]
    conditions = sorted({cell[-1] for cell in cells})
    with open("population.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["zip", "age", "nationality", "condition", "f"])
        writer.writerows([*cell[:-1], c, 8 if c == cell[-1] else 1] for cell in cells for c in conditions)
    arguments = ("--population", "population.csv", "--frequency", "f", "--rho1", "0.9", "--rho2", "0.9", "--json")
    told = json.loads(published.jali("beliefs", "out", *arguments).stdout)
    assert told["combinations"] == 12
    assert 0 < told["largest_change"] < 1
    assert isinstance(told["breaches"], int)


@pytest.mark.slow
def test_attack_tells_whom_each_attack_exposes(published: Any) -> None:
    """As text and as JSON; the original is read as the release tells or as the job says, the public file looked up."""
    arguments = ("attack", "out", "--original", "patients.csv")
    shown = published.jali(*arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "confidential" in shown.stdout.splitlines()[0]
    told = json.loads(published.jali(*arguments, "--json", "-q").stdout)
    assert [attack["name"] for attack in told["attacks"]] == [
        "homogeneity", "background knowledge", "linkage", "algorithm", "presence",
    ]  # fmt: skip
    by_job = json.loads(published.jali("attack", "out", "--job", "job.toml", "--json", "-q").stdout)
    assert by_job["attacks"][:3] == told["attacks"][:3]
    (published / "voters.csv").write_text("zip,age,nationality\n13053,31,American\n99999,31,American\n", "utf-8")
    options = ("--public", "voters.csv", "--sensitive", "condition", "--threshold", "0.5", "--cases", "1", "--json")
    linked = json.loads(published.jali(*arguments, *options).stdout)["attacks"][2]
    assert linked["people"] == 2
    assert linked["figures"]["match no group"] == 1
    assert linked["figures"]["match exactly one group"] == 1


def test_hierarchy_is_what_taxonomy_reads(ward: Any) -> None:
    """What `hierarchy` writes can be named in a job, on stdout and in a file alike."""
    result = ward.jali("hierarchy", "job.toml", "age")
    assert result.stdout.splitlines()[0] == "0;[0, 4];[0, 9];[0, 19];*"
    assert len(result.stdout.splitlines()) == 120
    assert ward.jali("hierarchy", "job.toml", "age", "-o", "age.csv").stdout == ""
    assert (ward / "age.csv").read_text(encoding="utf-8") == result.stdout
    ward.edit("job.toml", "{ bands = [5, 10, 20], low = 0, high = 119 }", '{ taxonomy = "age.csv" }')
    assert ward.jali("publish", "job.toml").exit_code == 0


def test_hierarchy_warns_where_it_lists_values_of_the_table(ward: Any) -> None:
    """Leaves that were not declared are original values; a file that exists is kept."""
    result = ward.jali("hierarchy", "job.toml", "zip")
    assert result.stdout.splitlines()[0] == "13053;1305*;130**;13***;1****;*"
    assert "keep it as safe as the table" in result.stderr
    refused = ward.jali("hierarchy", "job.toml", "zip", "-o", "nationality.csv")
    assert refused.exit_code == 2
    assert (ward / "nationality.csv").read_text(encoding="utf-8").startswith("Russian;")


def test_hierarchy_draws_a_tree(ward: Any) -> None:
    """With the rows of each node if asked for; a file is written too; an edited one comes back."""
    result = ward.jali("hierarchy", "job.toml", "nationality", "--tree", "--counts", "-o", "n.csv")
    lines = result.stdout.splitlines()
    assert lines[:3] == ["*  12", "├─ Europe  2", "│  └─ Russian  2"]
    assert lines[-1] == "   └─ Indian  2"
    assert "keep it as safe as the table" in result.stderr
    assert (ward / "n.csv").read_text(encoding="utf-8").splitlines()[0] == "Russian;Europe;*"
    ward.edit("n.csv", "Europe", "Eurasia")
    ward.edit("job.toml", "nationality.csv", "n.csv")
    assert "├─ Eurasia" in ward.jali("hierarchy", "job.toml", "nationality", "--tree").stdout
    refused = ward.jali("hierarchy", "job.toml", "nationality", "--counts")
    assert refused.exit_code == 2
    assert "--counts goes with --tree" in refused.stderr


def test_a_hierarchy_of_a_table_beyond_memory_has_the_same_counts(ward: Any) -> None:
    """Its values and their rows are known, though its combinations do not fit."""
    tree = ("hierarchy", "job.toml", "nationality", "--tree", "--counts")
    held = ward.jali(*tree)
    pq.write_table(pacsv.read_csv(ward / "patients.csv"), ward / "patients.parquet")
    ward.edit("job.toml", "patients.csv", "patients.parquet")
    beyond = ward.jali(*tree, "--memory", "2000")
    assert beyond.exit_code == 0
    assert beyond.stdout == held.stdout


def test_methods_are_compared_beyond_memory(ward: Any) -> None:
    """jali frontier and jali publish --auto choose among those that work there; the others say why not."""
    pq.write_table(pacsv.read_csv(ward / "patients.csv"), ward / "patients.parquet")
    ward.edit("job.toml", "patients.csv", "patients.parquet")
    told = ward.jali("frontier", "job.toml", "--memory", "2000", "--strengths", "4", "--json")
    assert told.exit_code == 0
    points = {each["method"]: each["reason"] for each in json.loads(told.stdout)["points"]}
    assert points["lattice"] is None
    assert "needs every distinct combination at once" in points["recode"]
    chosen = json.loads(ward.jali("publish", "job.toml", "--auto", "--memory", "2000", "--json").stdout)["chosen"]
    assert chosen["recommended"] in ("lattice", "partition")
    assert ward.jali("audit", "out").exit_code == 0


def test_publish_says_where_numbers_may_be_codes(ward: Any) -> None:
    """Chosen intervals are named, and columns that look like codes."""
    ward.edit("job.toml", 'zip = "mask"\nage = { bands = [5, 10, 20], low = 0, high = 119 }', "zip = true\nage = true")
    notes = ward.jali("publish", "job.toml").stderr
    assert "numbers are shown as intervals in age: where they are codes, choose another" in notes
    assert "jali chose the hierarchy of zip, age" in notes


def test_a_job_weighs_columns(ward: Any) -> None:
    """Importance is an option of the methods that search; nonsense is refused in one line."""
    text = (ward / "job.toml").read_text(encoding="utf-8")
    for method in ("generalize", "partition", "recode"):
        section = f"[{method}]\nimportance = {{ age = 3, zip = 0.5 }}\n"
        (ward / "job.toml").write_text(f'method = "{method}"\n{text}\n{section}', encoding="utf-8")
        assert ward.jali("publish", "job.toml", "--overwrite").exit_code == 0
        told = json.loads((ward / "out" / "manifest.json").read_text(encoding="utf-8"))["method"]
        assert told["importance"] == {"age": 3.0, "zip": 0.5}
    ward.edit("job.toml", "age = 3,", "agee = 3,")
    refused = ward.jali("publish", "job.toml", "--overwrite")
    assert refused.exit_code == 2
    assert 'did you mean "age"?' in refused.stderr


@pytest.mark.slow
def test_demo_needs_no_input_and_can_be_repeated(ward: Any) -> None:
    """It ends with the figures and the path, and replaces its own earlier output."""
    for _ in range(2):
        result = ward.jali("demo", "--rows", "3000")
        assert result.exit_code == 0, result.stderr
        assert "What an attacker can do" in result.stdout
        assert "before" in result.stdout
        assert "policy researchers" in result.stdout
        assert "Saved in jali-demo" in result.stdout.splitlines()[-1]
    told = json.loads(ward.jali("demo", "--rows", "20000", "--seed", "1", "-o", "other", "--json", "-q").stdout)
    assert told["audit"]["holds"]
    assert told["audit"]["k"] >= 10
    assert told["measures"]["kl"] == pytest.approx(told["metrics"]["kl"])
    assert all(answer["low"] <= answer["truth"] <= answer["high"] for answer in told["queries"])
    assert all(abs(answer["count"] - answer["truth"]) <= 0.2 * answer["truth"] for answer in told["queries"])
    assert told["method"]["transparent"] is True
    assert "verdict" in told


@pytest.mark.parametrize("stranger", ["notes.txt", "manifest.json"])
def test_demo_refuses_a_folder_that_holds_anything_else(ward: Any, refused: Any, stranger: str) -> None:
    """A file that the demo did not write stays."""
    (ward / "jali-demo").mkdir()
    (ward / "jali-demo" / stranger).write_text("{}", encoding="utf-8")
    assert "did not write" in refused(ward.jali("demo", "--rows", "500"))
    assert os.listdir(ward / "jali-demo") == [stranger]


@pytest.mark.slow
def test_demo_does_not_replace_the_release_of_another_table(published: Any, refused: Any) -> None:
    """A release is not the demo's own because it is a release, nor when a file was added to it."""
    assert "did not write" in refused(published.jali("demo", "--rows", "500", "-o", "out"))
    assert jali.load("out").principles[0] == jali.KAnonymity(4)
    assert published.jali("demo", "--rows", "3000").exit_code == 0
    (published / "jali-demo" / "mine.txt").write_text("", encoding="utf-8")
    refused(published.jali("demo", "--rows", "500"))


def test_init_writes_a_job_that_runs_as_it_is(ward: Any) -> None:
    """Every column stands in it, names are dropped, guesses are marked, no value is shown; it is published as it is."""
    result = ward.jali("init", "patients.csv", "-o", "start.toml")
    assert result.exit_code == 0, result.stderr
    text = (ward / "start.toml").read_text(encoding="utf-8")
    for name in ("name", "zip", "age", "nationality", "condition"):
        assert f'"{name}"' in text
    assert "identifier = [" in text
    assert "# check" in text
    assert not [value for value in ("Umeko", "13053", "Russian", "Cancer") if value in text]
    published = ward.jali("publish", "start.toml", "--strict")
    assert published.exit_code == 0, published.stderr
    assert (ward / "release" / "manifest.json").is_file()


def test_init_is_told_whose_row_it_is(ward: Any, refused: Any) -> None:
    """As a profile is; the job says it."""
    rows = [f"{n // 2},{20 + n // 2 % 40},{'fm'[n // 2 % 2]}" for n in range(120)]
    (ward / "visits.csv").write_text("\n".join(["kid,age,sex", *rows]), encoding="utf-8")
    written = ward.jali("init", "visits.csv", "--person", "kid", "-o", "-").stdout
    assert tomllib.loads(written)["person"] == "kid"
    assert "kid" not in tomllib.loads(written)["quasi"]
    assert "no column" in refused(ward.jali("init", "visits.csv", "--person", "nobody", "-o", "-"))


def test_a_job_with_a_number_of_too_many_digits_is_refused(ward: Any, refused: Any) -> None:
    """Python reads none of more than 4,300 digits, and no float is as large as one of 400."""
    for digits, said in ((5000, "too many digits"), (400, "must be")):
        text = f'input = "patients.csv"\nquasi = {{ age = {{ bands = [1{"0" * digits}] }} }}\n'
        (ward / "job.toml").write_text(text, encoding="utf-8")
        assert said in refused(ward.jali("publish", "job.toml", "-o", "out"))


def test_profile_prints_text_json_and_a_page(ward: Any, refused: Any) -> None:
    """The same figures each time; values only where they are asked for."""
    text = ward.jali("profile", "patients.csv").stdout
    assert "12 rows, 12 people, 5 columns" in text
    assert "Umeko" not in text
    told = json.loads(ward.jali("profile", "patients.csv", "--json").stdout)
    assert [column["role"] for column in told["columns"] if column["name"] == "name"] == ["identifier"]
    assert told["uniques"]["by_size"]
    page = ward.jali("profile", "patients.csv", "-o", "profile.html")
    assert page.exit_code == 0
    assert "confidential" in page.stderr
    assert "Umeko" not in (ward / "profile.html").read_text(encoding="utf-8")
    assert "exists" in refused(ward.jali("profile", "patients.csv", "-o", "profile.html"))
    assert "American" in ward.jali("profile", "patients.csv", "--show-values").stdout
    assert "no column" in refused(ward.jali("profile", "patients.csv", "--person", "nobody"))


def test_kinds_of_columns_are_told_in_the_shell_as_in_a_job(ward: Any, refused: Any) -> None:
    """`--types` of profile, init and audit; a first job keeps them; what is no kind or column is refused."""
    rows = "".join(f"{i % 7 + 1},{'flu' if i % 3 else 'cold'}\n" for i in range(60))
    (ward.folder / "wards.csv").write_text("ward,disease\n" + rows)
    plain, told = (json.loads(ward.jali("profile", "wards.csv", "--json", *more).stdout)["columns"][0]["kind"]
                   for more in ((), ("--types", "ward=text")))  # fmt: skip
    assert (plain, told) == ("number", "text")
    written = ward.jali("init", "wards.csv", "--types", "ward=text", "-o", "-").stdout
    assert tomllib.loads(written)["types"] == {"ward": "text"}
    audited = ward.jali("audit", "wards.csv", "--quasi", "ward", "--sensitive", "disease", "--types", "ward=text")
    assert audited.exit_code == 0
    assert 'did you mean "text"' in refused(ward.jali("init", "wards.csv", "--types", "ward=txt", "-o", "-"))
    assert "no column" in refused(ward.jali("profile", "wards.csv", "--types", "wart=text"))
    assert "write zip=text" in refused(ward.jali("profile", "wards.csv", "--types", "ward"))


def test_init_to_stdout_and_of_parquet(ward: Any) -> None:
    """`-o -` prints the job; the columns of a Parquet file come from its schema."""
    pq.write_table(pacsv.read_csv("patients.csv"), "patients.parquet")
    from_csv, from_parquet = (ward.jali("init", f"patients.{form}", "-o", "-").stdout for form in ("csv", "parquet"))
    assert from_csv.replace("patients.csv", "patients.parquet") == from_parquet
    assert "job.toml" in from_csv


def test_init_is_relative_to_the_job_and_keeps_what_is_there(ward: Any, refused: Any) -> None:
    """The input is written as the job sees it; an existing job is not replaced."""
    (ward / "jobs").mkdir()
    assert ward.jali("init", "patients.csv", "--separator", ",", "-o", "jobs/a.toml").exit_code == 0
    text = (ward / "jobs" / "a.toml").read_text(encoding="utf-8")
    assert 'input = "../patients.csv"' in text
    assert 'separator = ","' in text
    assert "exists" in refused(ward.jali("init", "patients.csv", "-o", "jobs/a.toml"))


@pytest.mark.parametrize(
    "first", ["Olga,13053,28,Russian,Heart Disease\n", "Cancer,Russian\nFlu,Russian\n", "a,a\n1,2\n"]
)
def test_init_refuses_a_file_without_names(ward: Any, refused: Any, first: str) -> None:
    """A first line that is a person's row is not copied into a job."""
    (ward / "bare.csv").write_text(first, encoding="utf-8")
    line = refused(ward.jali("init", "bare.csv", "-o", "bare.toml"))
    assert "does not look like column names" in line
    assert "Russian" not in line
    assert not (ward / "bare.toml").exists()


def test_reproduce_names_the_papers_it_knows(ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt paper gets a hint; an absent Adult table gets a line that says how to get it."""
    monkeypatch.delenv("JALI_ADULT", raising=False)
    assert 'did you mean "l-diversity"?' in refused(ward.jali("reproduce", "l-diversty"))
    assert "JALI_ADULT" in refused(ward.jali("reproduce", "l-diversity"))
    assert "missing.csv" in refused(ward.jali("reproduce", "l-diversity", "--adult", "missing.csv"))


def test_reproduce_passes_on_what_it_was_given(ward: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is the library's run and prints its report."""
    given: dict[str, Any] = {}

    def run(name: str, **options: Any) -> str:
        given.update(options, name=name)
        return "the report"

    monkeypatch.setattr("jali.reproduce.run", run)
    result = ward.jali("reproduce", "l-diversity", "--adult", "a.csv", "-o", "figures", "--quick")
    assert result.exit_code == 0
    assert "the report" in result.stdout
    assert (given["name"], given["quick"]) == ("l-diversity", True)
    assert (given["adult"], given["out"]) == (Path("a.csv"), Path("figures"))
