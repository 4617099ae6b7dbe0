"""What `--help` shows, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest

import jali
from jali.cli.app import app

ORIGINALS_READ_BY = {
    *("attack", "audit", "beliefs", "extend", "frontier", "hierarchy"),
    *("inject", "measure", "minimal", "presence", "profile", "publish", "report"),
}
FIGURES_PRINTED_BY = {
    "profile",
    "frontier",
    "attack",
    "disclosure",
    "extend",
    "publish",
    "minimal",
    "audit",
    "measure",
    "presence",
    "query",
    "repair",
    "inject",
    "beliefs",
    "demo",
}


def commands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield name, command
        if isinstance(command, click.Group):
            yield from commands(command)


COMMANDS = dict(commands(app))


def test_the_commands_are_those_of_the_issue() -> None:
    """Nothing is missing and nothing is undocumented."""
    named = {"attack", "publish", "minimal", "audit", "measure", "query", "repair", "beliefs", "hierarchy", "demo"}
    assert set(COMMANDS) == named | {
        "disclosure",
        "extend",
        "frontier",
        "inject",
        "reproduce",
        "init",
        "presence",
        "profile",
        "report",
        "sample",
        "studio",
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_and_each_option_says_what_it_does(name: str) -> None:
    """The list shows a whole sentence for each; each option has a help text, each argument its place in the text."""
    command = COMMANDS[name]
    assert command.help
    assert not command.get_short_help_str(limit=66).endswith("...")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"
        else:
            shown = str(parameter.metavar).strip("[]")
            assert shown in command.help or shown in ("JOB.toml", "RELEASE"), f"{name} {shown}"


@pytest.mark.parametrize("name", COMMANDS)
def test_options_mean_the_same_everywhere(name: str) -> None:
    """--json where figures are printed, --show-values where originals are read, --quiet everywhere."""
    options = {flag for parameter in COMMANDS[name].params for flag in parameter.opts}
    assert ("--json" in options) == (name in FIGURES_PRINTED_BY)
    assert ("--show-values" in options) == (name in ORIGINALS_READ_BY)
    assert {"-q", "--quiet"} <= options


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command(ward: Any, name: str) -> None:
    """`jali COMMAND --help` and -h work and exit with 0."""
    result = ward.jali(name, "--help")
    assert result.exit_code == 0
    assert result.stdout == ward.jali(name, "-h").stdout
    assert result.stdout.startswith("Usage: ")


def test_version(ward: Any) -> None:
    """`jali --version` is the package's."""
    assert ward.jali("--version").stdout == f"jali, version {jali.__version__}\n"


def test_jali_alone_shows_the_help(ward: Any) -> None:
    """Without a command there is the list of commands."""
    assert "Commands:" in ward.jali().output


def test_help_imports_nothing_heavy() -> None:
    """`jali --help` is fast because numpy, pyarrow and the rest are not imported for it."""
    heavy = {"numpy", "pyarrow", "narwhals", "rich", "pandas", "polars", "matplotlib", "duckdb"}
    script = f"""
import sys
from jali.cli.app import app
app(["--help"], standalone_mode=False)
print(*({heavy} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.split() == []
    assert "publish" in done.stdout
