"""Buckets on the command line: published, audited, measured, asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

JOB = """
input = "patients.csv"
output = "buckets"
method = "anatomize"
sensitive = ["condition"]

[quasi]
zip = "mask"
age = { bands = [5, 10, 20] }

[[principles]]
name = "FrequencyDiversity"
l = 2
"""


@pytest.fixture
def buckets(ward: Any) -> Any:
    """The inpatients, dealt into buckets of two."""
    (ward / "buckets.toml").write_text(JOB, encoding="utf-8")
    result = ward.jali("publish", "buckets.toml")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Buckets release: 12 rows in 6 buckets")
    return ward


def test_publish_writes_two_tables(buckets: Any) -> None:
    names = {path.name for path in (buckets / "buckets").iterdir()}
    assert names == {"individuals.csv", "buckets.csv", "manifest.json"}
    for path in (buckets / "buckets").iterdir():
        assert "Umeko" not in path.read_text(encoding="utf-8")


def test_audit_finds_the_promise_kept_and_says_who_is_visible(buckets: Any) -> None:
    result = buckets.jali("audit", "buckets", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["holds"]
    assert found["smallest_bucket"] == 2
    assert any("who is in the table" in note for note in found["notes"])


@pytest.mark.parametrize("how", [("--job", "buckets.toml"), ("--original", "patients.csv")])
def test_measure_finds_what_publish_reported(buckets: Any, how: tuple[str, str]) -> None:
    result = buckets.jali("measure", "buckets", *how, "--json")
    assert result.exit_code == 0, result.stderr
    figures = json.loads(result.stdout)
    manifest = json.loads((buckets / "buckets" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["metrics"] == {"average": figures["average"]}
    made = json.loads(buckets.jali("publish", "buckets.toml", "--dry-run", "--json").stdout)["metrics"]
    assert figures["loss"] == pytest.approx(made["loss"])
    assert figures["discernibility"] is None


def test_query_estimates_with_bounds(buckets: Any) -> None:
    found = json.loads(buckets.jali("query", "buckets", "age >= 30 AND condition = 'Cancer'", "--json").stdout)
    assert found["low"] <= 5 <= found["high"]
    assert found["assumes"]


def test_what_needs_another_kind_of_release_says_so(buckets: Any, refused: Any) -> None:
    refused(buckets.jali("repair", "buckets", "--job", "buckets.toml", "-o", "other"))
    refused(buckets.jali("beliefs", "buckets", "--population", "patients.csv"))


def test_a_job_is_checked_before_anything_is_read(ward: Any, refused: Any) -> None:
    for wrong, words in (
        ("buckets = 3", "buckets must be"),
        ("generalized = 2", "generalized must be"),
        ('bucket = "anatomy"', 'did you mean "buckets"?'),
        ('buckets = "anatomie"', 'did you mean "anatomy"?'),
    ):
        (ward / "wrong.toml").write_text(JOB.replace("[quasi]", f"[anatomize]\n{wrong}\n\n[quasi]"), encoding="utf-8")
        assert words in refused(ward.jali("publish", "wrong.toml"))
