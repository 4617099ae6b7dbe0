"""ANGEL on the command line: published, extended, sampled, measured, asked."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

JOB = """
input = "patients.csv"
output = "angel"
method = "angel"
sensitive = ["condition"]

[quasi]
zip = "mask"
age = { bands = [5, 10, 20], low = 0, high = 119 }

[angel]
k = 3

[[principles]]
name = "EntropyDiversity"
l = 1.5
"""
MORE = JOB.replace("k = 3", 'k = 3\nmarginals = [["age", "condition"], ["zip"]]')


@pytest.fixture
def angel(ward: Any) -> Any:
    """The inpatients, in batches, with their private file beside them."""
    (ward / "angel.toml").write_text(JOB, encoding="utf-8")
    (ward / "more.toml").write_text(MORE, encoding="utf-8")
    result = ward.jali("publish", "angel.toml", "--private", "keys.parquet")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Angel release: 12 rows")
    return ward


def test_publish_keeps_the_private_file_out_of_the_folder(angel: Any) -> None:
    assert {path.name for path in (angel / "angel").iterdir()} == {"data.csv", "batches.csv", "manifest.json"}
    assert (angel / "keys.parquet").is_file()


def test_publish_says_what_is_lost_without_a_private_file(angel: Any) -> None:
    result = angel.jali("publish", "angel.toml", "--overwrite")
    assert "no private file was kept" in result.stderr


def test_extend_adds_tables_over_the_same_batches(angel: Any) -> None:
    result = angel.jali("extend", "angel", "more.toml", "--private", "keys.parquet", "-o", "new")
    assert result.exit_code == 0, result.stderr
    assert "Published as marginal-2, without batches" in result.stdout
    assert (angel / "new" / "batches.csv").read_bytes() == (angel / "angel" / "batches.csv").read_bytes()
    assert angel.jali("audit", "new").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("more.toml", "-o", "new"), "private file of the release is needed"),
        (("more.toml", "--private", "nowhere.parquet", "-o", "new"), "no private file"),
        (("angel.toml", "--private", "keys.parquet", "-o", "new"), "no marginal to add"),
    ],
)
def test_extend_refuses_and_writes_nothing(angel: Any, arguments: tuple[str, ...], says: str) -> None:
    result = angel.jali("extend", "angel", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not (angel / "new").exists()


def test_sample_draws_from_any_release(angel: Any) -> None:
    result = angel.jali("sample", "angel", "-n", "50", "--seed", "3")
    assert result.exit_code == 0, result.stderr
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["zip", "age", "condition"]
    assert len(rows) == 51
    assert result.stdout == angel.jali("sample", "angel", "-n", "50", "--seed", "3").stdout
    for name in ("people.csv", "people.parquet"):
        assert angel.jali("sample", "angel", "-n", "5", "-o", name).exit_code == 0
        assert (angel / name).is_file()
    assert angel.jali("sample", "angel", "-o", "people.txt").exit_code == 2


@pytest.mark.parametrize("how", [("--job", "angel.toml"), ("--original", "patients.csv")])
def test_measure_asks_random_counts(angel: Any, how: tuple[str, str]) -> None:
    result = angel.jali("measure", "angel", *how, "--queries", "40", "--volume", "0.3", "--seed", "2", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["queries"]
    assert found["queries"] == 40
    assert found["volume"] == 0.3
    assert "average error" in angel.jali("measure", "angel", *how, "--queries", "40").stdout
    assert "queries" not in json.loads(angel.jali("measure", "angel", *how, "--json").stdout)


def test_private_is_for_angel_only(angel: Any) -> None:
    plain = JOB.replace('method = "angel"', 'method = "partition"')
    (angel / "plain.toml").write_text(plain, encoding="utf-8")
    result = angel.jali("publish", "plain.toml", "--private", "x.parquet", "-o", "plain")
    assert result.exit_code == 2
    assert "ANGEL" in result.stderr
    assert not (angel / "plain").exists()


def test_batches_are_attacked_and_what_does_not_apply_is_said(angel: Any) -> None:
    result = angel.jali("attack", "angel", "--original", "patients.csv", "--json")
    assert result.exit_code == 0, result.stderr
    found = {attack["name"]: attack for attack in json.loads(result.stdout)["attacks"]}
    assert found["linkage"]["figures"]["match no batch"] == 0
    assert found["homogeneity"]["exposed"] is not None
    for name in ("algorithm", "presence"):
        assert found[name]["exposed"] is None
        assert found[name]["notes"]
