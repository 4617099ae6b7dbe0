"""jali audit of several releases of one table."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

import jali


def test_audit_of_two_releases_says_what_both_give_away(published: Any) -> None:
    """The figures are the library's; a promise that both break together is exit code 3."""
    other = published.jali("publish", "job.toml", "-o", "again")
    assert other.exit_code == 0
    result = published.jali("audit", "out", "again")
    assert result.exit_code == 0
    assert "largest belief from both" in result.stdout
    told = json.loads(published.jali("audit", "out", "again", "--json").stdout)
    assert told == json.loads(json.dumps(jali.audit(["out", "again"]).to_dict()))
    assert json.loads(published.jali("audit", "out", "again", "out", "--json").stdout)["pairs"].keys() == {
        "1+2", "1+3", "2+3",
    }  # fmt: skip


def test_a_promise_that_two_releases_break_together_is_exit_code_3(ward: Any) -> None:
    """By age and by zip code the first patient has one of two diseases; only one of them is in both groups."""
    diseases = ["pneumonia", "flu", "bronchitis", "pneumonia", "flu", "bronchitis"]
    frame = pa.table({"age": [21, 23, 58, 60, 70, 72], "zip": [10, 58, 12, 60, 78, 80], "disease": diseases})
    half = jali.FrequencyDiversity(2)
    by_age = jali.table(frame, quasi={"age": jali.bands(25)}, sensitive=["disease"])
    jali.generalize(by_age, half).save(ward / "age")
    jali.generalize(jali.table(frame, quasi={"zip": jali.bands(25)}, sensitive=["disease"]), half).save(ward / "zip")
    result = ward.jali("audit", "age", "zip")
    assert result.exit_code == 3
    assert "must have disease = pneumonia" in result.stdout
    assert result.stderr.startswith("jali: error: a promise is broken: FrequencyDiversity(2) of release 1")


def test_several_releases_take_no_columns(published: Any, refused: Any) -> None:
    assert "leave --quasi" in refused(published.jali("audit", "out", "out", "--quasi", "zip"))
