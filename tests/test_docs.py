"""The documents do what they say: every example is run, every name, command, option and key is written down.

A page is run from top to bottom in a folder of its own, which starts with the files that the README's first example
writes. Its Python blocks share one namespace. What a block is for stands in its fence:

    python    is run; a text block right after it is what it prints
    pycon     is a doctest
    console   lines that begin with "$ jali" are run; the lines below are what they print, if there are any
    toml      is a job that can be loaded
    csv       is a file, if a comment before it says so

A comment right before a block says what is different about it: `<!-- not run: reason -->`, `<!-- exit 2 -->`,
`<!-- file: job.toml -->`, `<!-- not a job: reason -->`. An ellipsis (...) in an output stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import jali
from jali.cli.app import app
from jali.job import _FIELDS, HIERARCHIES, METHODS, Job, section_keys

ROOT = Path(__file__).resolve().parent.parent
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
WRITTEN = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((DOCS / "decisions").glob("*.md"))]
NOT_RUN = {"reproductions.md": "needs the Adult table; tests/papers asserts its figures"}
LONG = ("command-line.md", "frontier.md", "report.md")  # seconds each; make test-slow runs them
RUN = ("python", "pycon", "console", "toml", "csv")
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_FENCE = re.compile(r"^```(\w*)\s*$")
_COMMENT = re.compile(r"^<!--\s*(not run|exit|file|not a job):?\s*(.*?)\s*-->$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with what the comments before it say."""

    page: Path
    line: int  # of the fence, from 1
    kind: str
    text: str
    follows: int  # lines of words between it and the block before
    says: dict[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    says: dict[str, str] = {}
    inside: tuple[int, str, list[str]] | None = None
    words = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        assert not re.match(r"\s+```", line), f"{page.name}:{number}: begin the block at the margin, so that it is run"
        if inside is None and fence:
            inside = (number, fence[1], [])
        elif inside is not None and line.startswith("```"):
            start, kind, body = inside
            found.append(Block(page, start, kind, "\n".join(body) + "\n", words, says))
            inside, says, words = None, {}, 0
        elif inside is not None:
            inside[2].append(line)
        elif comment := _COMMENT.match(line):
            says = {**says, comment[1]: comment[2]}
        elif line.strip():
            says, words = {}, words + 1
    assert inside is None, f"{page.name}: a block that begins in line {inside and inside[0]} is never closed"
    return found


class Reader:
    """Somebody who reads a page from top to bottom and does what it says."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.printed = ""  # by the last Python block

    def read(self, page: list[Block]) -> None:
        for number, block in enumerate(page):
            if "not run" in block.says:
                assert block.says["not run"], f"{block.where}: say why it is not run"
                continue
            after_python = number > 0 and page[number - 1].kind == "python" and not block.follows
            if block.kind == "text" and after_python and "not run" not in page[number - 1].says:
                same(block, self.printed, block.text)
            elif block.kind in RUN:
                getattr(self, block.kind)(block)
            else:
                assert ">>> " not in block.text, f"{block.where}: call it pycon, so that it is checked"

    def python(self, block: Block) -> None:
        code = compile("\n" * block.line + block.text, str(block.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        self.printed = out.getvalue()

    def pycon(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(block.text, self.names, block.where, str(block.page), block.line)
        said: list[str] = []
        result = doctest.DocTestRunner(optionflags=ALIKE).run(test, out=said.append, clear_globs=False)
        assert result.failed == 0, "".join(said)
        self.names.update(test.globs)

    def console(self, block: Block) -> None:
        for command, expected in commands(block):
            result = CliRunner().invoke(app, shlex.split(command)[1:], prog_name="jali")
            code = int(block.says.get("exit", "0"))
            assert result.exit_code == code, f"{block.where}: {command}: exit {result.exit_code}\n{result.output}"
            if expected.strip():
                same(block, result.output, expected)

    def toml(self, block: Block) -> None:
        if "not a job" in block.says:
            assert block.says["not a job"], f"{block.where}: say what it is instead"
            tomllib.loads(block.text)
        name = block.says.get("file", "example.toml")
        Path(name).write_text(block.text, encoding="utf-8")
        if "not a job" not in block.says:
            Job.load(name)

    def csv(self, block: Block) -> None:
        if "file" in block.says:
            Path(block.says["file"]).write_text(block.text, encoding="utf-8")


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The jali commands of a console block, each with the lines that it is said to print."""
    for part in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        if command.startswith("jali"):
            yield command, printed


def same(block: Block, got: str, expected: str) -> None:
    """The output is the expected one, but for white space and what an ellipsis stands for."""
    assert doctest.OutputChecker().check_output(expected, got, ALIKE), f"{block.where} prints\n{got}"


@pytest.mark.parametrize(
    "page", [pytest.param(p, id=p.name, marks=pytest.mark.slow if p.name in LONG else ()) for p in PAGES]
)
def test_every_example_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code runs, doctests and outputs are right, commands end with the code that is said, jobs can be loaded."""
    if page.name in NOT_RUN:
        pytest.skip(NOT_RUN[page.name])
    monkeypatch.chdir(tmp_path)
    if page != README:
        Reader().read(shared_files())
    Reader().read(blocks(page))


def shared_files() -> list[Block]:
    """The blocks of the README that write the files which every page may use."""
    of_readme = blocks(README)
    first = next(block for block in of_readme if block.kind == "python")
    return [first, *(block for block in of_readme if "file" in block.says)]


def test_every_page_is_linked_from_the_readme() -> None:
    """Whoever starts there finds everything."""
    linked = set(_LINK.findall(README.read_text(encoding="utf-8")))
    assert not [page.name for page in PAGES[1:] if f"docs/{page.name}" not in linked]


def test_every_decision_is_linked_from_a_page() -> None:
    """What is decided is found where it matters."""
    linked = {(page.parent / link).resolve() for page in PAGES for link in _LINK.findall(page.read_text("utf-8"))}
    assert not [page.name for page in (DOCS / "decisions").glob("*.md") if page.resolve() not in linked]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Files that are linked exist, with the headings that are meant."""
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        if heading:
            assert heading in headings(target), f"{page.name}: {link}"


def headings(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_no_page_tells_of_the_machine_it_was_written_on(page: Path) -> None:
    """Examples work anywhere: no absolute paths, no addresses of machines."""
    assert not re.search(r"/(work|tmp|home|root|Users)/|localhost|127\.0\.0", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", jali.__all__)
def test_every_public_name_is_explained(name: str) -> None:
    """Some page says jali.NAME."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert re.search(rf"\bjali\.{name}\b", text), f"no page mentions jali.{name}"


# -- the command line ----------------------------------------------------------------------------------------------

COMMAND_LINE = (DOCS / "command-line.md").read_text(encoding="utf-8") if (DOCS / "command-line.md").exists() else ""
SHARED = "Options that many commands have"


def section(title: str) -> str:
    """What stands under a heading of command-line.md, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}$(.*?)(?=^#+ |\Z)", COMMAND_LINE, flags=re.MULTILINE | re.DOTALL)
    assert found, f'command-line.md has no section "{title}"'
    return found[1]


@pytest.mark.parametrize("command", app.commands.values(), ids=lambda command: str(command.name))
def test_every_command_and_option_is_explained(command: click.Command) -> None:
    """Each command has a section, which names its arguments and options, or the shared section does."""
    own, shared = section(f"jali {command.name}"), section(SHARED)
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            assert str(parameter.metavar) in own, f"jali {command.name} {parameter.metavar}"
            continue
        for option in (*parameter.opts, *parameter.secondary_opts):
            here = re.compile(rf"(?<![\w-]){re.escape(option)}(?![\w-])")
            assert here.search(own) or here.search(shared), f"jali {command.name} {option}"


def test_every_key_of_a_job_is_explained() -> None:
    """Each key that a job may have stands in the section on jobs."""
    of_methods = {key for section in (*METHODS, "frontier") for key in section_keys(section)}
    of_hierarchies = {key for options in HIERARCHIES.values() for key in options}
    every = {*_FIELDS, *METHODS, *of_methods, *of_hierarchies}
    missing = {key for key in every if f"`{key}`" not in section("The job file")}
    assert not missing


def test_every_exit_code_is_explained() -> None:
    """Those of the failures, and 0."""
    from jali.cli.shared import Failure

    codes = {kind.exit_code for kind in Failure.__subclasses__()} | {0}
    assert not [code for code in codes if f"| {code} |" not in section("Exit codes")]
