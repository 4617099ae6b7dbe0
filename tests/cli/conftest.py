"""The inpatients of the l-diversity paper (Figure 1) in a folder, with a taxonomy and a job, and a way to run jali."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

# The twelve people of Figure 1 are invented; the names are ours, so that there is a column that must never leave.
PATIENTS = """\
name,zip,age,nationality,condition
Olga,13053,28,Russian,Heart Disease
Ann,13068,29,American,Heart Disease
Umeko,13068,21,Japanese,Viral Infection
Bill,13053,23,American,Viral Infection
Indira,14853,50,Indian,Cancer
Ivan,14853,55,Russian,Heart Disease
Carol,14850,47,American,Viral Infection
Dan,14850,49,American,Viral Infection
Bob,13053,31,American,Cancer
Ravi,13053,37,Indian,Cancer
Kenji,13068,36,Japanese,Cancer
Eve,13068,35,American,Cancer
"""
NATIONALITY = """\
Russian;Europe;*
American;America;*
Japanese;Asia;*
Indian;Asia;*
"""
JOB = """\
input = "patients.csv"
output = "out"

[quasi]
zip = "mask"
age = { bands = [5, 10, 20], low = 0, high = 119 }
nationality = { taxonomy = "nationality.csv" }

[sensitive]
condition = true

[[principles]]
name = "KAnonymity"
k = 4

[[principles]]
name = "EntropyDiversity"
l = 2.5
"""
ORIGINALS = sorted({cell for line in PATIENTS.splitlines()[1:] for cell in line.split(",") if not cell.isdigit()})
ORIGINALS += sorted(
    {line.split(",")[1] for line in PATIENTS.splitlines()[1:]}
)  # zips; ages are too short to search for


@dataclass(frozen=True)
class Ward:
    """The folder, and what is done in it."""

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text in a file, which must be there."""
        text = (self / name).read_text(encoding="utf-8")
        assert old in text, f"{name} lacks {old!r}"
        (self / name).write_text(text.replace(old, new), encoding="utf-8")

    def jali(self, *arguments: object, **options: Any) -> Result:
        """Run a command in this process; nothing but an exit may come out of it."""
        result = CliRunner().invoke(_app(), [str(a) for a in arguments], **options)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    def process(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own."""
        command = [sys.executable, "-m", "jali", *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, **options)

    def names(self) -> list[str]:
        """Everything in the folder, hidden files too."""
        return sorted(os.listdir(self.folder))


def _app() -> Any:
    from jali.cli.app import app

    return app


@pytest.fixture
def ward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ward:
    """The inpatients in a folder, which is where we are."""
    folder = tmp_path / "ward"
    folder.mkdir()
    for name, text in {"patients.csv": PATIENTS, "nationality.csv": NATIONALITY, "job.toml": JOB}.items():
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    return Ward(folder)


@pytest.fixture
def published(ward: Ward) -> Ward:
    """The same, with a release in `out`."""
    result = ward.jali("publish", "job.toml", "-q")
    assert result.exit_code == 0, result.stderr
    return ward


@pytest.fixture
def refused() -> Callable[..., str]:
    """A check that a command was refused: exit code 2, one line, nothing on stdout; gives back the line."""

    def check(result: Result, code: int = 2) -> str:
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("jali: error: ")
        assert "Traceback" not in lines[0]
        return lines[0]

    return check


@pytest.fixture
def originals() -> list[str]:
    """Values of the table that no message may show."""
    return ORIGINALS
