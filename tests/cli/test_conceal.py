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
    assert "judged beside the public table" in run(app, ["audit", "hidden"]).output
    assert run(app, ["query", "hidden", "condition = 'flu'"]).exit_code == 0
    measured = run(app, ["measure", "hidden", "--original", "patients.csv", "--json"])
    assert measured.exit_code == 0, measured.output
