"""The command `jali`: data on stdout, notes on stderr; exit 0 fine, 1 could not, 2 wrong input, 3 the audit failed."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from typing import Any

import click

from jali._version import __version__
from jali.cli.demo import demo, reproduce
from jali.cli.holding import attack, beliefs, extend, inject, measure, repair
from jali.cli.publishing import frontier, hierarchy, init, minimal, publish
from jali.cli.reading import audit, disclosure, presence, query, report, sample
from jali.cli.shared import Interrupted, one_line
from jali.errors import InputError, nearest


class App(click.Group):
    """A group whose every failure is one line; commands are listed in the order of a first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were added."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The options before the command."""
        with one_line(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command of a name, or a hint at the nearest one."""
        if args[0] not in self.commands:
            raise InputError(f'no command "{args[0]}"', do=nearest(args[0], self.commands))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and see that its output reached its reader."""
        with one_line(ctx):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result


@click.group("jali", cls=App, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="jali", help="Show the version and exit.")
def app() -> None:
    """Publish tables about people without exposing anybody.

    Start with `jali demo`, or with `jali init DATA.csv`. Exit codes: 0 fine, 1 could not, 2 wrong input, 3 a promise is
    broken.
    """


for command in (
    demo,
    init,
    publish,
    frontier,
    minimal,
    hierarchy,
    audit,
    measure,
    report,
    query,
    sample,
    extend,
    repair,
    inject,
    beliefs,
    disclosure,
    attack,
    presence,
    reproduce,
):
    app.add_command(command)


def main() -> None:
    """What the installed command `jali` runs."""
    with contextlib.suppress(ValueError, AttributeError):  # not in the main thread, or no such signal
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that half-written files go
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a sign shows its number instead
    try:
        app(prog_name="jali")
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
