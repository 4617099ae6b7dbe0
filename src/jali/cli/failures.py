"""What goes wrong becomes one line on stderr and an exit code; never a traceback, which could show original values."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from jali.errors import InfeasibleError, InputError, InternalError, JaliError

SHOW_VALUES = "jali.show_values"
"""Where a context keeps whether messages may show original values."""


class Failure(click.ClickException):
    """The end of a command: a line, and the exit code."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line on stderr."""
        click.echo(f"jali: error: {self.message}", file=file or sys.stderr)


class CouldNot(Failure):
    """What was asked for cannot be had, or jali has a bug."""

    exit_code = 1


class WrongInput(Failure):
    """The caller's data, parameters or places are wrong."""

    exit_code = 2


class BrokenPromise(Failure):
    """The audit found that a release does not keep what it promises."""

    exit_code = 3


class Interrupted(Failure):
    """The user pressed ctrl-C."""

    exit_code = 130


@contextmanager
def one_line(ctx: click.Context) -> Iterator[None]:
    """Whatever goes wrong inside ends as a Failure."""
    try:
        yield
    except (click.exceptions.Exit, click.Abort, Failure):
        raise
    except BrokenPipeError:
        _discard_output()
        ctx.exit(CouldNot.exit_code)
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except Exception as problem:
        if os.environ.get("JALI_DEBUG") or _is_help(problem):
            raise
        raise _failure(problem, show_values=bool(ctx.meta.get(SHOW_VALUES))) from None


def _is_help(problem: Exception) -> bool:
    """Whether click only wants to show the help: `jali` alone."""
    return type(problem).__name__ == "NoArgsIsHelpError"


def _failure(problem: Exception, *, show_values: bool) -> Failure:
    match problem:
        case InputError():
            return WrongInput(problem.with_value() if show_values else str(problem))
        case InfeasibleError():
            return CouldNot(str(problem))
        case InternalError():
            report = "" if "please report" in str(problem) else "; please report this bug"
            return CouldNot(f"{problem}{report}")
        case JaliError():
            return CouldNot(str(problem))
        case click.UsageError():
            see = f" (see {problem.ctx.command_path} --help)" if problem.ctx else ""
            return WrongInput(problem.format_message().rstrip(".") + see)
        case click.ClickException():
            return WrongInput(problem.format_message())
        case OSError():
            where = f" {problem.filename}" if problem.filename else ""
            return WrongInput(f"cannot read or write{where}: {problem.strerror or type(problem).__name__}")
        case MemoryError():
            return CouldNot("there is not enough memory")
    return _bug(problem)


def _bug(problem: Exception) -> Failure:
    """What jali did not foresee: its kind and place only, since its text could hold original values."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}jali{os.sep}" in frame.filename] or frames
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"
    return CouldNot(f"a bug ({type(problem).__name__} in {place}); please report it")


def _discard_output() -> None:
    """Nobody reads any more: let what is still buffered go nowhere, quietly."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a stream without a file behind it
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # lives as long as the process
