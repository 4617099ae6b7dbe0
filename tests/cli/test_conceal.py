"""jali publish with method = "conceal": a private file beside a public one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import jali
from jali.cli.app import app
from jali.job import Job

JOB = """\
input = "patients.csv"
output = "hidden"
method = "conceal"
quasi = ["age", "sex"]
sensitive = ["condition"]

[types]
condition = "text"

[conceal]
public = "town.csv"
low = 0.1
high = 0.6
search = "partition"
shift = "exact"
"""
TOWN = [(age, sex) for age in range(20, 60) for sex in "fm"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A town, some patients of it, and a job."""
    patients = [(age, sex) for age, sex in TOWN if age % 3 == 0]
    (tmp_path / "town.csv").write_text("age,sex\n" + "".join(f"{a},{s}\n" for a, s in TOWN), encoding="utf-8")
    rows = "".join(f"{a},{s},{'flu' if a % 2 else 'cold'}\n" for a, s in patients)
    (tmp_path / "patients.csv").write_text("age,sex,condition\n" + rows, encoding="utf-8")
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def publish(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["publish", "job.toml", *arguments])


def test_publishing_a_job_is_concealing_from_python(folder: Path) -> None:
    """The release is written, and tells the presence that the library's own has."""
    result = publish("--json", "-q")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["kind"] == "concealed"
    public = Job.load(folder / "job.toml").public()
    found = jali.load(folder / "hidden").presence(public=public)
    assert 0.1 <= found.low <= found.high <= 0.6
    private = jali.read(folder / "patients.csv", quasi=["age", "sex"], sensitive=["condition"])
    same = jali.conceal(private, public, low=0.1, high=0.6, search="partition", shift="exact")
    assert (same.presence().probabilities == found.probabilities).all()


def test_a_row_that_is_not_public_is_named_and_nothing_is_written(folder: Path) -> None:
    """Its values only on request."""
    with (folder / "patients.csv").open("a", encoding="utf-8") as file:
        file.write("77,f,flu\n")
    result = publish()
    assert result.exit_code == 2
    assert "row 27 of the private table" in result.stderr
    assert "77" not in result.stderr
    assert "77" in publish("--show-values").stderr
    assert not (folder / "hidden").exists()


def test_bounds_that_cannot_be_met_are_told_with_the_share_of_the_whole(folder: Path) -> None:
    """26 of 80 are present."""
    (folder / "job.toml").write_text(JOB.replace("low = 0.1", "low = 0.5"), encoding="utf-8")
    result = publish()
    assert result.exit_code == 1
    assert "0.325" in result.stderr
    assert not (folder / "hidden").exists()


def test_the_commands_that_read_releases_read_concealed_ones(folder: Path) -> None:
    """audit says that presence is judged elsewhere; measure and query work as they do."""
    publish("-q")
    run = CliRunner().invoke
    assert "judged against the public table" in run(app, ["audit", "hidden"]).output
    assert run(app, ["query", "hidden", "condition = 'flu'"]).exit_code == 0
    measured = run(app, ["measure", "hidden", "--original", "patients.csv", "--json"])
    assert measured.exit_code == 0, measured.output


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_presence_is_told_beside_the_public_table(folder: Path) -> None:
    """The same figures by the file, by the job and from Python; exit 3 where the bounds are broken beside it."""
    publish("-q")
    result = run("presence", "hidden", "--public", "town.csv", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    found = jali.load(folder / "hidden").presence(public=Job.load(folder / "job.toml").public())
    assert (told["people"], told["outside"]) == (80, found.outside)
    assert (told["low"], told["high"]) == (found.low, found.high)
    assert told["kept"] == {"DeltaPresence(0.1, 0.6)": True}
    assert json.loads(run("presence", "hidden", "--job", "job.toml", "--json").stdout) == told
    assert "probability of" in run("presence", "hidden", "--public", "town.csv").stdout
    with (folder / "town.csv").open("a", encoding="utf-8") as file:
        file.write("20,f\n" * 200)  # most of these cannot be patients
    broken = run("presence", "hidden", "--public", "town.csv")
    assert broken.exit_code == 3
    assert "DeltaPresence(0.1, 0.6): BROKEN" in broken.stdout


@pytest.mark.slow
def test_audit_and_report_judge_presence_beside_the_public_table(folder: Path) -> None:
    """Named, or found in the job; without it nothing changes."""
    publish("-q")
    plain = json.loads(run("audit", "hidden", "--json").stdout)
    assert (plain["kept"], "presence" in plain) == ({}, False)
    for way in (["--public-table", "town.csv"], ["--job", "job.toml"]):
        told = json.loads(run("audit", "hidden", *way, "--json").stdout)
        assert told["kept"] == {"DeltaPresence(0.1, 0.6)": True}
        assert 0.1 <= told["presence"]["low"] <= told["presence"]["high"] <= 0.6
        assert not any("judged against the public table" in note for note in told["notes"])
    assert "probability of being in the release, least" in run("audit", "hidden", "--public-table", "town.csv").stdout
    result = run("report", "hidden", "--public-table", "town.csv", "-o", "page.html")
    assert result.exit_code == 0, result.stderr
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "Presence against the public table" in page
    assert "kept, judged against the public table" in page
    assert "the release and the public table" in page
    private = run("report", "hidden", "--job", "job.toml", "-o", "private.html")
    assert private.exit_code == 0, private.stderr
    assert "Presence against the public table" in (folder / "private.html").read_text(encoding="utf-8")


def test_attack_decodes_presence_and_looks_up_the_public_table(folder: Path) -> None:
    publish("-q")
    result = run("attack", "hidden", "--original", "patients.csv", "--public", "town.csv", "--json")
    assert result.exit_code == 0, result.stderr
    found = {attack["name"]: attack for attack in json.loads(result.stdout)["attacks"]}
    assert found["linkage"]["people"] == found["presence"]["people"] == 80
    assert found["presence"]["exposed"] == found["presence"]["right"]
    assert found["presence"]["figures"]["groups whose private counts can be decoded"] > 0
    job = run("attack", "hidden", "--job", "job.toml", "--json")
    assert job.exit_code == 0, job.stderr
    again = {attack["name"]: attack for attack in json.loads(job.stdout)["attacks"]}
    assert again["presence"] == found["presence"]


def test_what_presence_cannot_be_judged_beside_is_one_line(folder: Path) -> None:
    publish("-q")
    (folder / "small.csv").write_text("age,sex\n20,f\n", encoding="utf-8")
    (folder / "plain.toml").write_text('input = "patients.csv"\nquasi = ["age", "sex"]\n', encoding="utf-8")
    for arguments, told in [
        (["presence", "hidden"], "pass --public FILE or --job JOB.toml"),
        (["presence", "hidden", "--public", "nowhere.csv"], "nowhere.csv"),
        (["presence", "hidden", "--public", "small.csv"], "not those of this table"),
        (["presence", "hidden", "--job", "plain.toml"], "names no public table"),
        (["audit", "hidden", "--job", "plain.toml"], "names no public table"),
        (["audit", "hidden", "--public-table", "small.csv"], "not those of this table"),
        (["audit", "hidden", "hidden", "--public-table", "town.csv"], "one release"),
        (["audit", "town.csv", "--quasi", "age", "--public-table", "town.csv"], "one release"),
        (["report", "hidden", "--public-table", "small.csv", "-o", "x.html"], "not those of this table"),
    ]:
        result = run(*arguments)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), (arguments, result.output)
        assert told in result.stderr, arguments
    assert not (folder / "x.html").exists()


def test_a_job_can_ask_for_transparent_groups(folder: Path) -> None:
    """The groups are written with their people, presence is judged from the files, and a shift is refused."""
    text = JOB.replace('search = "partition"\nshift = "exact"', "transparent = true")
    (folder / "job.toml").write_text(text, encoding="utf-8")
    result = publish("-q")
    assert result.exit_code == 0, result.stderr
    assert (folder / "hidden" / "groups.csv").read_text(encoding="utf-8").startswith('"age","sex","people","present"')
    assert (
        json.loads((folder / "hidden" / "manifest.json").read_text(encoding="utf-8"))["method"]["transparent"] is True
    )
    judged = CliRunner().invoke(app, ["presence", "hidden", "--job", "job.toml"])
    assert judged.exit_code == 0, judged.stderr
    assert "groups, which overlap" in judged.stdout
    assert "DeltaPresence(0.1, 0.6): kept" in judged.stdout
    (folder / "job.toml").write_text(text + 'shift = "exact"\n', encoding="utf-8")
    refused = publish("--overwrite")
    assert refused.exit_code == 2
    assert "a shift is computed from who is present" in refused.stderr
