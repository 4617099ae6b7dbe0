"""Mutated inputs: every command ends in time, with an exit code from 0 to 3 and at most one line of error.

No message shows a value of the table, and none says that jali has a bug. Each case follows from the seed and its own
number, so that it can be run again alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from click.testing import CliRunner, Result

from fuzz import corpus
from fuzz.mutate import mutated_bytes, mutated_json, mutated_parquet, mutated_query

SECONDS = 10
"""A case that takes longer hangs."""


class Hang(BaseException):
    """The watchdog's, which no handler of ours may catch."""


@dataclass(frozen=True)
class Case:
    """A command, and what it may repeat in messages since it was typed."""

    arguments: list[str]
    typed: str = ""


@dataclass(frozen=True)
class Wrong:
    """A case that went wrong, and how to run it again."""

    seed: int
    number: int
    kind: str
    arguments: list[str]
    what: str

    def __str__(self) -> str:
        return f"seed {self.seed}, case {self.number} ({self.kind}, {' '.join(self.arguments)!r}): {self.what}"


class Folder:
    """Where the inputs lie, and the kinds of cases that are made from them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.releases = corpus.releases(folder / "releases")
        self.manifests = {path.name: corpus.values_of(path) for path in self.releases}
        self.files = {"table.csv": corpus.table_file(), "zips.csv": corpus.ZIP_TREE.encode()}
        self.files["jobs.csv"] = corpus.TAXONOMY.encode()
        self.kinds: dict[str, Callable[[random.Random], Case]] = {
            "csv": self.csv, "parquet": self.parquet, "toml": self.toml, "manifest": self.manifest,
            "hierarchy": self.hierarchy, "query": self.query,
        }  # fmt: skip
        self._compile()

    def _compile(self) -> None:
        """Run every method under every principle once: what is compiled then is not waited for later."""
        for method in corpus.METHODS:
            for principle in corpus.PRINCIPLES:
                self._written(corpus.job(method, principle))
                CliRunner().invoke(_app(), ["publish", "job.toml", "--dry-run", "-q"])
        for release in self.releases:
            for command in _commands(str(release), corpus.QUERIES[1]):
                CliRunner().invoke(_app(), command)

    def _written(self, job: str | bytes | None = None, **changed: bytes) -> None:
        for name, data in self.files.items():
            (self.folder / name).write_bytes(changed.get(name.partition(".")[0], data))
        if job is not None:
            (self.folder / "job.toml").write_bytes(job if isinstance(job, bytes) else job.encode())

    def _job(self, source: random.Random, data: str = "table.csv") -> str:
        return corpus.job(source.choice(list(corpus.METHODS)), source.choice(corpus.PRINCIPLES), data)

    def _publish(self, source: random.Random) -> list[str]:
        saved = ["--overwrite", "-q"] if source.random() < 0.2 else ["--dry-run", "-q"]
        return ["publish", "job.toml", *saved]

    def csv(self, source: random.Random) -> Case:
        """A table that was damaged, published or audited or given a job."""
        self._written(self._job(source), table=mutated_bytes(self.files["table.csv"], source))
        audit = ["audit", "table.csv", "--quasi", "zip,age", "--sensitive", "ill"]
        return Case(
            source.choice((self._publish(source), self._publish(source), audit, ["init", "table.csv", "-o", "-"]))
        )

    def parquet(self, source: random.Random) -> Case:
        """A Parquet file with other types, or damaged."""
        self._written(self._job(source, "table.parquet"))
        (self.folder / "table.parquet").write_bytes(mutated_parquet(pa.table(corpus.columns()), source))
        audit = ["audit", "table.parquet", "--quasi", "zip,age", "--sensitive", "ill"]
        return Case(
            source.choice((self._publish(source), self._publish(source), audit, ["init", "table.parquet", "-o", "-"]))
        )

    def toml(self, source: random.Random) -> Case:
        """A job with accidents."""
        job = mutated_bytes(self._job(source).encode(), source)
        self._written(job)
        other = (["hierarchy", "job.toml", "age"], ["minimal", "job.toml", "-q"])
        return Case(
            source.choice((self._publish(source), self._publish(source), *other)), job.decode("utf-8", "replace")
        )

    def hierarchy(self, source: random.Random) -> Case:
        """A taxonomy with accidents: of the zip, whose values are marked, or of the job."""
        name = source.choice(("zips", "jobs"))
        self._written(self._job(source), **{name: mutated_bytes(self.files[f"{name}.csv"], source)})
        return Case(source.choice((self._publish(source), ["hierarchy", "job.toml", "zip"])))

    def manifest(self, source: random.Random) -> Case:
        """A release whose manifest was changed, or its data with the digest made to fit."""
        release = source.choice(self.releases)
        target = self.folder / "changed"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(release, target)
        text = self.manifests[release.name]
        if source.random() < 0.25:
            text = _with_other_data(target, text, source)
        elif source.random() < 0.7:
            text = mutated_json(text, source)
        else:
            text = mutated_bytes(text.encode(), source).decode("utf-8", "surrogateescape")
        (target / "manifest.json").write_text(text, encoding="utf-8", errors="surrogateescape")
        self._written()
        return Case(source.choice(_commands("changed", source.choice(corpus.QUERIES))), text)

    def query(self, source: random.Random) -> Case:
        """A condition with accidents."""
        release = source.choice(self.releases)
        condition = mutated_query(source.choice(corpus.QUERIES), source)
        return Case(["query", str(release), "--", condition], condition)

    def invoke(self, case: Case) -> Result:
        """Run a case in this process; a Hang where it takes too long."""
        with _watched():
            return CliRunner().invoke(_app(), case.arguments)

    def judged(self, kind: str, seed: int, number: int) -> Wrong | None:
        """Run a case and say what is wrong about how it ended, if anything."""
        source = random.Random(f"{seed} {number} {kind}")
        case = self.kinds[kind](source)
        try:
            what = _what_is_wrong(self.invoke(case), case)
        except Hang:
            what = f"took longer than {SECONDS} s"
        return None if what is None else Wrong(seed, number, kind, case.arguments, what)


def _app() -> Any:
    from jali.cli.app import app

    return app


def _commands(release: str, condition: str) -> list[list[str]]:
    """What can be done with a release."""
    return [
        ["audit", release], ["query", release, condition], ["sample", release, "-n", "5"],
        ["disclosure", release, "-k", "0..2"], ["measure", release], ["measure", release, "--original", "table.csv"],
    ]  # fmt: skip


def _with_other_data(target: Path, text: str, source: random.Random) -> str:
    import hashlib

    facts = json.loads(text)
    name = source.choice(list(facts["files"]))
    data = mutated_bytes((target / name).read_bytes(), source)
    (target / name).write_bytes(data)
    facts["files"][name]["sha256"] = hashlib.sha256(data).hexdigest()
    return json.dumps(facts)


def _what_is_wrong(result: Result, case: Case) -> str | None:
    said = result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{type(result.exception).__name__} came through"
    if result.exit_code not in (0, 1, 2, 3):
        return f"exit code {result.exit_code}"
    if "Traceback" in said or "a bug (" in said or "please report" in said:
        return said.strip()
    errors = [line for line in said.splitlines() if not line.startswith("note: ")]
    if (result.exit_code in (1, 2) and len(errors) != 1) or (result.exit_code == 0 and errors):
        return f"exit code {result.exit_code} with {len(errors)} lines of error: {said.strip()[:600]}"
    if corpus.MARKER in said and corpus.MARKER not in case.typed:
        return f"a value in a message: {said.strip()[:300]}"
    return None


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    """A Hang after ten seconds of processor time, or where somebody waits for ever."""

    def bark(*_: Any) -> None:
        raise Hang

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, SECONDS), (signal.SIGALRM, signal.ITIMER_REAL, 9 * SECONDS))
    before = [signal.signal(number, bark) for number, _, _ in timers]
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


@contextlib.contextmanager
def prepared() -> Iterator[Folder]:
    """A folder with the inputs, which is where we are."""
    here, chance = Path.cwd(), random.Random(0)
    with tempfile.TemporaryDirectory() as name, mock.patch("secrets.token_bytes", chance.randbytes):  # the same order
        os.chdir(name)
        try:
            yield Folder(Path(name))
        finally:
            os.chdir(here)


def run(seed: int, many: int, *, first: int = 0, kinds: tuple[str, ...] = ()) -> list[Wrong]:
    """Judge so many cases, the kinds in turn; says on stderr how far it is."""
    wrong: list[Wrong] = []
    with prepared() as folder:
        chosen = kinds or tuple(folder.kinds)
        for number in range(first, first + many):
            found = folder.judged(chosen[number % len(chosen)], seed, number)
            if found is not None:
                wrong.append(found)
                print(found, file=sys.stderr, flush=True)
            if (number + 1) % 1000 == 0:
                print(f"{number + 1 - first:,} inputs, {len(wrong)} wrong", file=sys.stderr, flush=True)
    return wrong
