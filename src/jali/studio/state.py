"""The state of the studio: a job as plain data and its history, in a private file beside the table.

The job is all there is: what TOML would hold, nothing else. Every edit adds the whole job to the history; undo and
redo step through it. The file is replaced whole at each change, so that a crash loses nothing. Hierarchies that were
edited are CSV files in a folder beside it, named by their content: a step back finds what it had.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from jali.core.files import put_content
from jali.core.forms import toml_text
from jali.errors import InputError
from jali.job import METHODS, Job, section_keys
from jali.studio.guard import Folder

Document = dict[str, Any]
"""A job as plain data, as `tomllib` reads it."""
VERSION = 1
ENDING = ".studio.json"
READ_FIRST = 64 << 20
"""Bytes of a history that is read; a larger one is none of ours."""

READS = ("input", "quasi", "sensitive", "other", "person", "weights", "types", "missing", "domain", "identifier",
         "allow", "pseudonym_key", "missing_is_value", "separator", "encoding", "sheet", "missing_markers", "decimal",
         "thousands", "date_format", "memory")  # fmt: skip
"""The keys of a job that say how its table is read."""


def load_checks() -> None:
    """Load what checking a job needs, so that no click waits for it."""
    import jali.risk.policy  # noqa: F401

    for section in (*METHODS, "frontier"):
        section_keys(section)


def read_by(job: Mapping[str, Any]) -> Document:
    """What a job says about how its table is read."""
    return {name: job[name] for name in READS if name in job}


@dataclass
class State:
    """The job of one table and how it came to be."""

    folder: Folder
    data: Path  # the table
    history: list[tuple[str, Document]] = field(default_factory=list)  # what was done, and the job after it
    at: int = -1
    stale: bool = False  # whether the table was written again after the history was, when this was opened

    @classmethod
    def opened(cls, folder: Folder, data: Path) -> State:
        """The state beside a table: its history where there is one, else nothing yet."""
        state = cls(folder, folder.inside(data))
        if state.file.is_file():
            state.history, state.at, seen = _history(state.file)
            state.stale = seen is not None and seen != state.seen()
        return state

    def seen(self) -> list[int]:
        """What tells that the table was written again: its size and time, never what it holds."""
        found = self.data.stat()
        return [found.st_size, found.st_mtime_ns]

    @property
    def file(self) -> Path:
        """Where the history is kept."""
        return self.folder.inside(self.data.with_name(self.data.name + ENDING))

    @property
    def base(self) -> Path:
        """The folder that paths in the job are relative to: that of the table, where the job is saved."""
        return self.data.parent

    @property
    def job(self) -> Document:
        """A copy of the job as it stands."""
        return deepcopy(self.history[self.at][1]) if self.history else {}

    @property
    def first(self) -> Document:
        """The job that the history begins with, which jali suggested."""
        return deepcopy(self.history[0][1]) if self.history else {}

    def record(self, said: str, job: Document) -> None:
        """Make this the job; what had been undone is forgotten. Nothing is recorded where nothing changes."""
        if self.history and job == self.history[self.at][1]:
            return
        toml_of(job)  # before it is kept
        steps = [*self.history[: self.at + 1], (said, deepcopy(job))]
        self._keep(steps, len(steps) - 1)

    def step(self, at: int) -> None:
        """Go to a step of the history."""
        if not 0 <= at < len(self.history):
            raise InputError("there is no such step in the history", do="reload the page")
        self._keep(self.history, at)

    def _keep(self, steps: list[tuple[str, Document]], at: int) -> None:
        told = {
            "version": VERSION, "at": at, "data": self.seen(),
            "history": [{"said": said, "job": job} for said, job in steps],
        }  # fmt: skip
        put_content(self.file, json.dumps(told, ensure_ascii=False), overwrite=True, private=True)
        self.history, self.at = steps, at

    def keep_text(self, column: str, text: str) -> str:
        """Keep the text of an edited hierarchy beside the job; what the job calls it. Equal texts are one file."""
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", column).strip("-")[:40] or "column"
        place = self.folder.inside(self.base / f"{self.data.name}.hierarchies")
        place.mkdir(mode=0o700, exist_ok=True)
        file = place / f"{name}-{sha256(text.encode()).hexdigest()[:12]}.csv"
        put_content(file, text, overwrite=True, private=True)
        return file.relative_to(self.base).as_posix()

    def forget_text(self, name: str) -> None:
        """Remove such a file again, unless a step of the history names it."""
        if not any(name in list(_paths(job)) for _, job in self.history):
            self.folder.inside(name, self.base).unlink(missing_ok=True)

    def problem(self) -> str | None:
        """Why the job cannot run as it stands; None where it can be tried."""
        try:
            checked(self.job, self.base, self.folder)
        except InputError as found:
            return str(found)
        return None


def _history(file: Path) -> tuple[list[tuple[str, Document]], int, list[int] | None]:
    """The history in a file, and what the table was like then; an InputError where it is none of ours."""
    try:
        if file.stat().st_size > READ_FIRST:
            raise ValueError
        told = json.loads(file.read_text(encoding="utf-8"))
        steps = [(str(one["said"]), dict(one["job"])) for one in told["history"]]
        at = int(told["at"])
        if told["version"] != VERSION or not 0 <= at < len(steps):
            raise ValueError
    except (ValueError, KeyError, TypeError, OSError):
        raise InputError(f"{file} is no history of the studio", do="move it away, or name another table") from None
    return steps, at, told.get("data")


def toml_of(job: Mapping[str, Any]) -> str:
    """The job as the text of a TOML file, which says the same when it is read; an InputError where none can."""
    try:
        text = toml_text(job)
        text.encode()
        same = tomllib.loads(text) == job
    except (TypeError, ValueError):
        same = False
    if not same:
        raise InputError("a job file cannot say this", do="use plain texts, numbers and lists")
    return text


def checked(job: Document, base: Path, folder: Folder) -> Job:
    """The job, whose files all lie below the folder; an InputError where it cannot run."""
    for path in _paths(job):  # before anything is opened: a job reads its taxonomies
        several = isinstance(path, str) and path != job.get("output") and _holds_several(folder, path, base)
        if several or not isinstance(path, str) or "://" in path or "?table=" in path:
            do = "start the studio with a file, or run the job with jali publish"
            raise InputError("the studio reads one file: no database, no address, no folder of files", do=do)
        folder.inside(path, base)
    made = Job.of(job, base)
    if not made.quasi:
        raise InputError("no column is a quasi-identifier", do="say which columns others may know")
    return made


def _holds_several(folder: Folder, path: str, base: Path) -> bool:
    """Whether a path could be read as several files, whose links nobody has followed."""
    found = folder.inside(path, base)
    if found.is_dir():
        return not (found / "manifest.json").is_file()
    return found.suffix.lower() in (".parquet", ".pq") and any(sign in path for sign in "*?[") and not found.is_file()


def _paths(job: Mapping[str, Any]) -> Iterator[object]:
    """Every file that a job names, and every database."""
    for key in ("input", "output", "private", "pseudonym_key"):
        if key in job:
            yield job[key]
    yield from _files_in(job.values())


def _files_in(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        if isinstance(value, Mapping):
            yield from (value[key] for key in ("taxonomy", "public") if isinstance(value.get(key), (str, Mapping)))
            if "database" in value:
                yield value
            yield from _files_in(value.values())
        elif isinstance(value, list):
            yield from _files_in(value)


# -- roles -----------------------------------------------------------------------------------------------------------

ALONE = ("input", "person", "missing", "domain", "separator", "encoding", "sheet", "missing_markers", "decimal",
         "thousands", "date_format", "memory")  # fmt: skip
"""The keys of a job that say how any one of its columns is read."""
ROLES = ("quasi", "sensitive", "other", "identifier", "person", "weights", "left out")
"""What a column can be for, as the profile calls it."""


def roles_in(job: Mapping[str, Any]) -> dict[str, str]:
    """The role of each column that a job names."""
    roles = {str(name): role for role in ("quasi", "sensitive", "other", "identifier") for name in job.get(role, ())}
    return roles | {str(job[role]): role for role in ("person", "weights") if job.get(role)}


def with_role(job: Document, column: str, role: str, first: Mapping[str, Any]) -> Document:
    """A job in which a column has another role; its hierarchy and promise are those that the first job gave it."""
    if role not in ROLES:
        raise InputError(f'no role "{role}"', do=f"it is one of {', '.join(ROLES)}")
    made = without_column(job, column)
    match role:
        case "quasi":
            made["quasi"] = _as_table(made.get("quasi", {})) | {column: _hierarchy(first, column)}
        case "sensitive":
            made["sensitive"] = _as_table(made.get("sensitive", {})) | {column: True}
            own = [one for one in first.get("principles", ()) if one.get("sensitive") == column]
            added = own or [{"name": "DistinctDiversity", "l": 2, "sensitive": column}]
            made["principles"] = [*made.get("principles", []), *added]
            made = _provable(made)
        case "identifier":
            named = made.get("identifier", [])
            made["identifier"] = {**named, column: "drop"} if isinstance(named, dict) else [*named, column]
        case "other":
            made["other"] = [*made.get("other", []), column]
        case "person" | "weights":
            made[role] = column
    if role in ("quasi", "sensitive") and column in first.get("types", {}):
        made["types"] = {**made.get("types", {}), column: first["types"][column]}
    return made


def _provable(job: Document) -> Document:
    """A job that is to withstand who knows the algorithm, with equal halves: they do so under promises about values."""
    method = str(job.get("method", "generalize"))
    own = job.get(method, {})
    if method not in ("generalize", "recode") or own.get("transparent") is not True:
        return job
    rest = {key: value for key, value in own.items() if key != "transparent"}
    made = {key: value for key, value in job.items() if key != method} | ({method: rest} if rest else {})
    return made | {"method": "partition", "partition": made.get("partition", {}) | {"transparent": True}}


def with_hierarchy(job: Document, column: str, hierarchy: Any) -> Document:
    """A job in which a quasi-identifier has another hierarchy."""
    known = _as_table(job.get("quasi", {}))
    if column not in known:
        raise InputError(f'"{column}" is no quasi-identifier', do="choose one on the page Hierarchies")
    return deepcopy(job) | {"quasi": known | {column: hierarchy}}


def with_kind(job: Document, column: str, kind: str) -> Document:
    """A job that reads a column as another kind of values; jali then chooses the hierarchy that such values have."""
    made = deepcopy(job) | {"types": {**job.get("types", {}), column: kind}}
    quasi = hierarchies_in(made)
    return made | {"quasi": quasi | {column: True}} if column in quasi else made


def alone(job: Mapping[str, Any], column: str, hierarchy: Any) -> Document:
    """A job that reads one quasi-identifier as this one does, and nothing else but whose the rows are."""
    kept = {key: job[key] for key in ALONE if key in job}
    own = {key: {column: job[key][column]} for key in ("types", "allow") if column in job.get(key, {})}
    return deepcopy(kept) | own | {"quasi": {column: hierarchy}}


def hierarchies_in(job: Mapping[str, Any]) -> dict[str, Any]:
    """The hierarchy of each quasi-identifier, as the job says it."""
    return _as_table(job.get("quasi", {}))


def _as_table(given: Any) -> dict[str, Any]:
    return dict.fromkeys(given, True) if isinstance(given, list) else dict(given)


def _hierarchy(first: Mapping[str, Any], column: str) -> Any:
    """The hierarchy of a column in the first job, else one that jali chooses."""
    return _as_table(first.get("quasi", {})).get(column, True)


def without_column(job: Document, column: str) -> Document:
    """A job that does not name a column."""
    made = deepcopy(job)
    for key in ("quasi", "sensitive", "types", "allow"):
        given = made.get(key, {})
        made[key] = {n: v for n, v in given.items() if n != column} if isinstance(given, dict) else (
            [n for n in given if n != column])  # fmt: skip
    for key in ("other", "missing_is_value"):
        made[key] = [name for name in made.get(key, []) if name != column]
    named = made.get("identifier", [])
    made["identifier"] = {n: v for n, v in named.items() if n != column} if isinstance(named, dict) else (
        [n for n in named if n != column])  # fmt: skip
    for key in ("person", "weights"):
        if made.get(key) == column:
            del made[key]
    made["principles"] = [one for one in made.get("principles", []) if one.get("sensitive") != column]
    return {key: value for key, value in made.items() if value not in ({}, [])}
