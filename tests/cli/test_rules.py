"""Laws of `jali measure --rules --classify`, and of jobs that show distributions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import jali
from jali.cli.app import app

JOB = """
input = "people.csv"
output = "out"
method = "{method}"
quasi = ["sex", "education"]
sensitive = ["salary-class"]
[{method}]
show = "pdf"
towards = 0.5
start = "set"
[[principles]]
name = "KAnonymity"
k = 20
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, seed in (("people", 1), ("others", 2)):
        table = jali.datasets.census(400, seed, ["salary-class"], quasi=["sex", "education"])
        table.frame("pandas").to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments], prog_name="jali")
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("method", ["generalize", "partition", "recode"])
def test_a_job_that_shows_distributions_is_published_and_measured(folder: Path, method: str) -> None:
    """From the job to the figures; what the release itself tells of its columns is enough to read the original."""
    (folder / "job.toml").write_text(JOB.format(method=method), encoding="utf-8")
    run("publish", folder / "job.toml", "--quiet")
    manifest = json.loads((folder / "out" / "manifest.json").read_text("utf-8"))
    assert (manifest["method"]["towards"], manifest["method"]["start"]) == ("1/2", "set")
    options = ["--rules", "--classify", "salary-class", "--holdout", folder / "others.csv", "--json", "--quiet"]
    by_job = json.loads(run("measure", folder / "out", "--job", folder / "job.toml", *options))
    alone = json.loads(run("measure", folder / "out", "--original", folder / "people.csv", *options))
    for found in (by_job, alone):
        assert found["rules"]["found"] >= found["rules"]["kept"]
        assert found["classified"]["tested_on"] == "holdout"
    assert by_job["kl"] == pytest.approx(alone["kl"])


def test_a_saved_release_needs_people_who_were_not_published_to_classify(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.format(method="partition"), encoding="utf-8")
    run("publish", folder / "job.toml", "--quiet")
    said = run("measure", folder / "out", "--original", folder / "people.csv", "--classify", "salary-class", code=2)
    assert "holdout" in said
