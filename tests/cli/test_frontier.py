"""jali frontier and jali publish --auto: the same as from Python, with one line for whatever is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jali
from jali.job import Job

SECTION = """
[frontier]
methods = ["lattice", "partition", "pdf"]
vary = "k"
strengths = [2, 3]
queries = 5
volume = 0.3

[partition]
split = "entropy"

[[principles]]
name = "KAnonymity"
"""


@pytest.fixture
def short(ward: Any) -> Any:
    """A job whose frontier is quick."""
    ward.edit("job.toml", '\n[[principles]]\nname = "KAnonymity"\n', SECTION)
    return ward


def test_the_command_says_what_python_says(short: Any) -> None:
    """The job's section is the arguments; options of other methods are taken from their own sections."""
    result = short.jali("frontier", "job.toml", "--json", "-q")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    job = Job.load(short / "job.toml")
    python = jali.frontier(
        job.table(), job.requirement, methods=["lattice", "partition", "pdf"], vary="k", strengths=[2, 3], queries=5,
        volume=0.3, options={"partition": {"split": "entropy"}},
    )  # fmt: skip
    for own, other in zip(told["points"], python.to_dict()["points"], strict=True):
        assert {**own, "seconds": 0} == {**other, "seconds": 0}
    assert told["recommended"] == python.recommended.method  # type: ignore[union-attr]
    assert told["reason"] == python.reason
    assert {p["strength"] for p in told["points"]} == {2, 3, 4}


def test_options_go_before_the_job(short: Any) -> None:
    """What is written on the command line counts."""
    arguments = ("--methods", "recode,pdf", "--vary", "l", "--strengths", "1.5,3/2,2", "--queries", "4")
    result = short.jali("frontier", "job.toml", *arguments, "--volume", "0.5", "--accept", "pdf", "--json", "-q")
    told = json.loads(result.stdout)
    assert [(p["method"], p["strength"]) for p in told["points"]] == [
        (method, strength) for strength in (1.5, 2, 2.5) for method in ("recode", "pdf")
    ]
    assert (told["vary"], told["queries"], told["volume"]) == ("EntropyDiversity.l", 4, 0.5)
    assert told["accept"] == ["pdf"]


def test_the_page_is_written_and_the_holder_is_told_that_it_is_confidential(short: Any) -> None:
    """The table on stdout, the note on stderr; an earlier page is replaced only if that is said."""
    result = short.jali("frontier", "job.toml", "-o", "frontier.html")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Frontier of KAnonymity(4) and EntropyDiversity(2.5), by KAnonymity.k")
    assert "confidential" in result.stderr
    text = (short / "frontier.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert short.jali("frontier", "job.toml", "-o", "frontier.html").exit_code == 2
    assert short.jali("frontier", "job.toml", "-o", "frontier.html", "--overwrite").exit_code == 0


def test_no_original_value_leaves_through_the_frontier(short: Any, originals: list[str]) -> None:
    """Not through the page, the table, the JSON or the file to continue from."""
    shown = short.jali("frontier", "job.toml", "-o", "page.html", "--resume", "kept.json").output
    shown += short.jali("frontier", "job.toml", "--json").output
    shown += (short / "page.html").read_text(encoding="utf-8") + (short / "kept.json").read_text(encoding="utf-8")
    assert not [value for value in originals if re.search(rf"\b{value}\b", shown)]
    assert short.names() == ["job.toml", "kept.json", "nationality.csv", "page.html", "patients.csv"]


def test_a_run_continues_from_its_file(short: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nothing is made."""
    first = json.loads(short.jali("frontier", "job.toml", "--resume", "kept.json", "--json").stdout)

    def refuse(*arguments: Any) -> None:
        raise AssertionError("it was made again")

    monkeypatch.setattr("jali.compare.methods.Method.release", refuse)
    assert json.loads(short.jali("frontier", "job.toml", "--resume", "kept.json", "--json").stdout) == first


def test_what_is_wrong_is_one_line(short: Any, refused: Callable[..., str]) -> None:
    """And nothing is written; what is confidential does not go where the release goes."""
    for arguments, text in (
        (("--methods", "latice"), 'did you mean "lattice"'),
        (("--vary", "x"), 'no parameter "x"'),
        (("--strengths", "0"), "k must be"),
        (("--accept", "everything"), 'no method "everything"'),
        (("--resume", "patients.csv"), "no file that a frontier can continue from"),
        (("-o", "."), "is a folder; name a file"),
        (("-o", ".", "--overwrite"), "is a folder; name a file"),
        (("-o", "out/frontier.html"), "must not lie in the folder that is handed out"),
        (("-o", "nowhere/frontier.html"), "there is no folder nowhere; make it"),
        (("--resume", "nowhere/kept.json"), "there is no folder nowhere; make it"),
        (("--resume", "out/kept.json"), "must not lie in the folder that is handed out"),
    ):
        assert text in refused(short.jali("frontier", "job.toml", *arguments))
    short.edit("job.toml", "strengths = [2, 3]", "strength = [2, 3]")
    assert 'did you mean "strengths"' in refused(short.jali("frontier", "job.toml"))
    short.edit("job.toml", "strength = [2, 3]", 'methods_ = "pdf"')
    assert 'unknown key "methods_"' in refused(short.jali("frontier", "job.toml"))
    assert short.names() == ["job.toml", "nationality.csv", "patients.csv"]


def test_auto_publishes_what_is_recommended_and_says_why(short: Any) -> None:
    """At the job's own strength, whatever the job's method is; nothing of the comparison is in the release."""
    result = short.jali("publish", "job.toml", "--auto", "-q")
    assert result.exit_code == 0, result.stderr
    job = Job.load(short / "job.toml")
    found = job.frontier(strengths=(), transparent="prefer")
    assert found.recommended is not None
    assert f"{found.recommended.method} is recommended for KAnonymity(4) and EntropyDiversity(2.5)" in result.stdout
    assert found.reason in result.stdout
    release = jali.load(short / "out")
    assert release.kind == {"lattice": "generalized", "partition": "partitioned"}[found.recommended.method]
    assert set(release.principles) == set(job.requirement)
    assert {point.strength for point in found.points} == {4}
    written = b"".join(path.read_bytes() for path in Path(short / "out").iterdir())
    assert b"recommend" not in written
    assert b"frontier" not in written


def test_auto_takes_a_sense_of_its_own_only_if_the_job_accepts_it(short: Any) -> None:
    """Distributions cost least here, and are published only when the steward says so."""
    plain = json.loads(short.jali("publish", "job.toml", "--auto", "--json", "--dry-run", "-q").stdout)
    assert plain["chosen"]["recommended"] != "pdf"
    short.edit("job.toml", 'vary = "k"', 'accept = ["pdf"]')
    told = json.loads(short.jali("publish", "job.toml", "--auto", "--json", "-q").stdout)
    assert told["chosen"]["recommended"] == "pdf"
    assert set(told["method"]["show"].values()) == {"pdf"}
    assert set(jali.load(short / "out").manifest.method["show"].values()) == {"pdf"}


def test_auto_publishes_nothing_where_nothing_meets_the_requirement(short: Any, refused: Callable[..., str]) -> None:
    """Exit code 1, one line, no folder."""
    short.edit("job.toml", 'methods = ["lattice", "partition", "pdf"]', 'methods = ["pdf", "anatomy"]')
    line = refused(short.jali("publish", "job.toml", "--auto", "-q"), 1)
    assert "Nothing is recommended: none of pdf and anatomy meets all of" in line
    assert not (short / "out").exists()


def test_auto_says_why_a_requirement_cannot_be_met(short: Any, refused: Callable[..., str]) -> None:
    """The reason of the methods themselves."""
    short.edit("job.toml", "l = 2.5", "l = 2.999")
    line = refused(short.jali("publish", "job.toml", "--auto", "-q"), 1)
    assert "lattice, partition and pdf: entropy diversity 2.999 cannot be met: the whole table reaches" in line
