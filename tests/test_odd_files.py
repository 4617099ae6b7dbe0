"""No file brings jali down: each of several hundred odd ones gives a table, or one line that shows no cell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

import jali
from jali.cli.app import app
from jali.errors import JaliError
from jali.sources.tables import opened
from oracles.odd_files import SECRETS, curious, numbers, odd_files


def others(path: Path) -> list[str]:
    """What can be read beside the age: of files that a process of their own reads it is known."""
    if path.suffix in (".dta", ".sav", ".zsav", ".xpt", ".xlsx", ".ods", ".por"):
        return ["born"] if path.suffix == ".por" else ["name"]
    header = opened(path, wanted=[]).header
    return [name for name in dict.fromkeys(header) if name not in ("", "age") and header.count(name) == 1][:40]


def outcome(path: Path) -> str:
    """ "table", "refused", or what went wrong."""
    try:
        table = jali.read(path, quasi=["age"], other=others(path))
        said = [*table.notes]
    except JaliError as problem:
        said = [str(problem)]
        if "\n" in said[0] or "bug" in said[0]:
            return f"more than a line: {said[0]!r}"
        table = None
    except BaseException as problem:  # also what Rust raises
        return f"{type(problem).__name__}: {problem}"
    shown = [secret for secret in SECRETS for line in said if secret in line.replace(path.name, "")]
    return f"shows a cell: {said}" if shown else "refused" if table is None else "table"


def test_odd_texts_give_a_table_or_a_line(tmp_path: Path) -> None:
    """The quick part: CSV files."""
    found = {}
    for name, content in (*curious(), *numbers()):
        path = tmp_path / name
        path.write_bytes(content)
        found[name] = outcome(path)
    assert {name: what for name, what in found.items() if what not in ("table", "refused")} == {}
    assert found["late.csv"] == found["header.csv"] == found["ragged.csv"] == "refused"
    assert found["number-commas.csv"] == found["long-cell.csv"] == found["huge.csv"] == "table"


@pytest.mark.slow
def test_no_odd_file_gives_a_traceback_or_shows_a_cell(tmp_path: Path) -> None:
    """At least 300 of every form; by the library, and by the commands that read a file."""
    found: dict[str, str] = {}
    for number, (name, content) in enumerate(odd_files()):
        path = tmp_path / f"{number}-{name}"
        path.write_bytes(content)
        found[path.name] = outcome(path)
        if number % 5 == 0:
            for command in (["init", str(path), "-o", "-", "-q"], ["audit", str(path), "--quasi", "age"]):
                result = CliRunner().invoke(app, command)
                said = result.stderr.replace(path.name, "")
                lines = [line for line in said.splitlines() if not line.startswith("note: ")]
                if result.exit_code not in (0, 2) or len(lines) > 1 or any(secret in said for secret in SECRETS):
                    found[path.name] = f"{command[0]}: {result.exit_code} {said}"
        path.unlink()
    assert {name: what for name, what in found.items() if what not in ("table", "refused")} == {}
    assert len(found) >= 300
    assert min(Counter(found.values()).values()) >= 100
