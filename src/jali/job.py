"""The job: a TOML file that says what to publish and how, checked whole before anything is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jali.core.files import job_data
from jali.core.forms import (
    BOOL,
    DATABASE,
    FILE,
    NUMBER,
    TABLE,
    TEXT,
    TEXTS,
    TRUE,
    Form,
    any_of,
    form_of,
    list_of,
    shown,
    table_of,
)
from jali.core.progress import Step
from jali.encoding.builders import bands, dates, frequency, mask, quantiles, suppress
from jali.encoding.codes import grid, prefix
from jali.encoding.codes import zip as zip_code
from jali.encoding.hierarchy import Builder, taxonomy
from jali.encoding.large import memory_of
from jali.encoding.table import Domain, Table, check_roles
from jali.encoding.values import Kind
from jali.errors import InputError, nearest, path_of
from jali.principles import Principle, from_dict
from jali.sources.assemble import Missing, roles_of
from jali.sources.engines.locations import is_address, of_job
from jali.sources.tables import READING, read
from jali.sources.writing import Writing

if TYPE_CHECKING:
    from jali.compare.frontier import Frontier
    from jali.releases.base import Release
    from jali.risk.policy import Policy

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """What `jali.read` and a method such as `jali.generalize` are given, in one checked value."""

    input: Path
    quasi: Mapping[str, Builder | None]
    sensitive: Mapping[str, Builder | None] = field(default_factory=dict)
    principles: tuple[Principle, ...] = ()
    output: Path | None = None
    method: str = "generalize"
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of the method
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the same, of other methods
    compare: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of jali.frontier
    other: tuple[str, ...] = ()
    person: str | None = None
    weights: str | None = None
    types: Mapping[str, Kind] = field(default_factory=dict)
    missing: Missing = "keep"
    domain: Domain = "declared"
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    missing_markers: str | Sequence[str] | None = None
    decimal: str | None = None
    thousands: str | None = None
    date_format: str | None = None
    private: Path | None = None  # where the batches of an ANGEL release are kept for its holder
    spreadsheet_safe: bool = False  # whether the cells of CSV files that a spreadsheet would run are quoted
    identifier: Mapping[str, str] | Sequence[str] = ()  # dropped, unless "pseudonym" is said
    allow: Mapping[str, str] = field(default_factory=dict)  # why columns that look like identifiers are published
    pseudonym_key: Path | None = None  # the private file of the key that pseudonyms are made with
    strict: bool = False  # whether a note is an error
    missing_is_value: Sequence[str] = ()  # sensitive columns in which a missing value counts as one
    policy: Policy | None = None  # what a release must meet to be published
    memory: str | int | None = None  # how much of it distinct combinations may take, by default half of the machine's

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f'no method "{self.method}"', do=nearest(self.method, METHODS))
        if self.method == "conceal":
            self._check_conceal()
        if self.private is not None and self.method != "angel":
            raise InputError("private is for ANGEL releases", got=f'method = "{self.method}"', do="leave it out")
        roles = roles_of(
            self.quasi, self.sensitive, self.other, self.person, self.weights, self.types, self.missing, self.domain,
            **self._more,
        )  # fmt: skip
        check_roles(roles.every(), [name for name, _ in roles.every()])
        memory_of(self.memory)
        Writing.of(self.missing_markers, self.decimal, self.thousands, self.date_format)
        if self.pseudonym_key is not None and self.output in self.pseudonym_key.parents:
            raise InputError("the key must not lie in the folder that is published", do="choose another place")

    @property
    def _more(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in ("identifier", "allow", "pseudonym_key", "missing_is_value")}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the holder should know of the job: sections that its method does not use."""
        unused = ", ".join(f"[{name}]" for name, given in self.sections.items() if given)
        return (f'{unused} is not used: method = "{self.method}"',) if unused else ()

    @property
    def reading(self) -> dict[str, Any]:
        """How the files of the job are written: the options of `jali.read` of these names."""
        return {name: getattr(self, name) for name in READING}

    @classmethod
    def load(cls, path: str | Path) -> Job:
        """The job in a TOML file; the paths in it are relative to that file."""
        path = Path(path)
        return cls.of(job_data(path), path.parent, place=path.name)

    @classmethod
    def of(cls, data: Data, folder: Path, *, place: str = "job.toml") -> Job:
        """The job that a TOML file in a folder would hold, from what it says; `place` is what messages call it."""
        _check_keys(place, data, {**_FIELDS, **dict.fromkeys(METHODS, TABLE)})
        if "input" not in data:
            raise InputError(f"{place}: no input was named", do='write input = "table.csv"')
        method = data.get("method", "generalize")
        given: dict[str, Any] = {key: data[key] for key in _AS_THEY_ARE if key in data}
        with _at(place):
            given |= {key: _path(folder, data[key]) if key in data else None for key in ("input", *_PATHS)}
        given["other"] = tuple(data.get("other", ()))
        given |= {role: _columns(f"{place} [{role}]", data.get(role, {}), folder) for role in ("quasi", "sensitive")}
        sections = {name: _options(place, name, data[name], folder) for name in METHODS if name in data}
        given |= {"options": sections.pop(method, {}), "sections": sections}
        given["compare"] = _options(place, "frontier", data.get("frontier", {}), folder)
        given |= {"principles": _principles(place, data), "policy": _policy(place, data)}
        with _at(place):
            return cls(**given)

    @property
    def requirement(self) -> tuple[Principle, ...]:
        """The principles, of which a release needs at least one."""
        return _at_least_one(self.principles)

    def table(self, source: str | Path | None = None) -> Table:
        """The table of the job, or another file read in the same way."""
        return read(
            self.input if source is None else source, types=self.types,
            quasi=self.quasi, sensitive=self.sensitive, other=self.other, person=self.person, weights=self.weights,
            missing=self.missing, domain=self.domain, memory=self.memory, **self.reading, **self._more,
        )  # fmt: skip

    def public(self, source: str | Path | None = None) -> Table:
        """The public table that the private one is concealed in, or another: its quasi-identifiers, read likewise."""
        return read(
            self.options["public"] if source is None else source,
            quasi=self.quasi, types={name: kind for name, kind in self.types.items() if name in self.quasi},
            missing=self.missing, domain=self.domain, memory=self.memory, **self.reading,
        )  # fmt: skip

    def _check_conceal(self) -> None:
        for key in ("public", "low", "high"):
            if key not in self.options:
                do = 'write [conceal] with public = "public.csv", low = 0.01 and high = 0.6'
                raise InputError(f"conceal needs {key}", do=do)
        if self.principles:
            raise InputError("conceal keeps low and high, and no [[principles]]", do="leave them out")

    def run(self, table: Table | None = None, *, on_step: Step | None = None) -> Release:
        """The release that the job asks for; `table` where it was read already."""
        import jali
        from jali.publish.checks import refuse_notes

        options = {key: value for key, value in self.options.items() if key != "public"}
        asked = self.public() if self.method == "conceal" else self.requirement
        table = self.table() if table is None else table
        method: Callable[..., Release] = getattr(jali, METHODS[self.method])
        made = method(table, asked, on_step=on_step, **options)
        made = made.with_notes(self.notes) if self.notes else made
        refuse_notes((*table.notes, *made.notes) if self.strict else ())
        return made

    def frontier(self, table: Table | None = None, *, on_step: Step | None = None, **changes: Any) -> Frontier:
        """What each method costs under the job's requirement; `changes` go before the job's own `[frontier]`."""
        from jali.compare.frontier import frontier, sections_known

        every = {**self.sections, self.method: self.options}
        own = {name: options for name, options in every.items() if name in sections_known()}
        arguments = {**self.compare, "options": own, **changes}
        return frontier(self.table() if table is None else table, self.requirement, on_step=on_step, **arguments)


def requirement(path: str | Path) -> tuple[Principle, ...]:
    """The principles of a job file, which need not say more than those."""
    path = Path(path)
    data = job_data(path)
    _check_keys(path.name, data, {**_FIELDS, **dict.fromkeys(METHODS, TABLE)})
    with _at(path.name):
        return _at_least_one(_principles(path.name, data))


def policy_in(path: str | Path) -> Policy | None:
    """The policy of a job file, which need not say more than that; None where it has none."""
    path = Path(path)
    return _policy(path.name, job_data(path))


def _policy(place: str, data: Data) -> Policy | None:
    from jali.risk.policy import Policy, policy_of

    if "policy" not in data:
        return None
    if not TABLE.fits(data["policy"]):
        raise InputError(f"{place}: policy must be {TABLE.words}", do='write [policy] with preset = "public"')
    _check_keys(f"{place} [policy]", data["policy"], options_of(Policy))
    with _at(place):
        return policy_of(data["policy"])


def _at_least_one(principles: tuple[Principle, ...]) -> tuple[Principle, ...]:
    if not principles:
        raise InputError("no principle was given", do='add [[principles]] with name = "KAnonymity" and k = 5')
    return principles


def _path(folder: Path, given: str | Data) -> Path:
    """A path in a job, relative to its folder, with ~ for a home folder; or "-", or a table of a database."""
    if isinstance(given, Mapping) or is_address(given) or given == "-":
        return of_job(given, folder)
    try:
        return folder / path_of(given).expanduser()
    except RuntimeError:
        raise InputError("no such home folder", got=given, do="write the whole path") from None


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Errors from inside say where in the job they come from."""
    try:
        yield
    except InputError as problem:
        what = f"{place}: {problem.what}"
        raise type(problem)(what, got=problem.got, do=problem.do, value=problem.value) from None


# -- what may stand where ----------------------------------------------------------------------------------------


_NAMES = list_of('a list of column names, e.g. ["ward"]', TEXT)
_COLUMNS = any_of('a list of column names, e.g. ["age"], or a table', TABLE, _NAMES)
_WIDTHS = any_of("a list of numbers, e.g. [5, 10, 20]", NUMBER, list_of("", NUMBER))
_ROWS = any_of('a file, e.g. "nationality.csv", or rows of texts', TEXT, list_of("", list_of("", TEXT)))
_AS_THEY_ARE = (
    "method", "person", "weights", "types", "missing", "domain", "spreadsheet_safe", "identifier", "allow", "strict",
    "missing_is_value", "memory", *READING,
)  # fmt: skip
_PATHS = ("output", "private", "pseudonym_key")
_FIELDS: dict[str, Form] = {
    **dict.fromkeys(("input", "output"), any_of('text or { database = "…", table = "…" }', FILE, DATABASE)),
    **dict.fromkeys(("private", "pseudonym_key"), FILE),
    **dict.fromkeys(_AS_THEY_ARE, TEXT),
    **dict.fromkeys(("spreadsheet_safe", "strict"), BOOL),
    "memory": any_of('a size, e.g. "4GB", or a number of bytes', TEXT, NUMBER),
    "identifier": any_of('a list of column names, or a table, e.g. { patient_id = "pseudonym" }', TEXTS, _NAMES),
    "allow": table_of('a table of reasons, e.g. ward = "wards are no people"', TEXT),
    "types": table_of('a table of kinds, e.g. zip = "text"', TEXT),
    "missing_markers": any_of('a list of texts, e.g. ["NA"], or "r", "stata" or "sas"', TEXT, list_of("", TEXT)),
    **dict.fromkeys(("other", "missing_is_value"), _NAMES),
    "quasi": _COLUMNS,
    "sensitive": _COLUMNS,
    "principles": list_of("tables with two brackets each, [[principles]]", TABLE),
    **dict.fromkeys(("frontier", "policy"), TABLE),
}
METHODS = {name: name for name in ("generalize", "partition", "marginals", "recode", "anatomize", "angel", "conceal")}
METHODS["angel"] = "angelize"
"""The methods that a job can name, and the public function of each. The options of a method are its function's."""

# -- options, from the signatures of the functions that take them --------------------------------------------------

_METHODS = list_of('a list of methods, e.g. ["lattice", "pdf"]', TEXT)
_LISTS = {
    "methods": _METHODS,
    "accept": _METHODS,
    "strengths": list_of("a list of numbers, e.g. [2, 5, 10]", any_of("", NUMBER, TEXT)),
    "marginals": list_of('lists of column names, e.g. [["zip", "disease"]]', _NAMES),
}
"""The lists whose items a message names more exactly than a type does."""


@cache
def options_of(function: Callable[..., Any]) -> Mapping[str, Form]:
    """The options of a function that a job can give: its keyword arguments of types that TOML has.

    `public`, a table, is given by the name of its file.
    """
    arguments = inspect.signature(function, eval_str=True).parameters.values()
    forms = {one.name: form_of(one.annotation) for one in arguments if one.kind is one.KEYWORD_ONLY}
    forms |= {one.name: FILE for one in arguments if one.name == "public"}
    return {name: _LISTS.get(name, form) for name, form in forms.items() if form is not None}


def section_keys(section: str) -> Mapping[str, Form]:
    """The keys of the section of a method, or of [frontier]."""
    import jali

    if section in METHODS:
        return options_of(getattr(jali, METHODS[section]))
    known = options_of(jali.frontier)
    return {name: form for name, form in known.items() if name not in ("seed", "options", "resume")}


_MIXED = list_of("", any_of("", NUMBER, TEXT))
_SYSTEM = any_of('a list of lengths, e.g. [3, 1], or a system, e.g. "icd-10"', _WIDTHS, TEXT, TRUE, _MIXED)
_UNITS = any_of('a list of units, e.g. ["week", "month"]', TRUE, TEXT, list_of("", TEXT))
_BUILDERS: dict[str, tuple[Callable[..., Builder], Form]] = {
    "bands": (bands, _WIDTHS),
    "mask": (mask, TRUE),
    "dates": (dates, _UNITS),
    "suppress": (suppress, TRUE),
    "prefix": (prefix, _SYSTEM),
    "zip": (zip_code, any_of('a country, e.g. "DE"', TEXT, _MIXED)),
    "grid": (grid, any_of(_WIDTHS.words, TRUE, _WIDTHS)),
    "frequency": (frequency, _WIDTHS),
    "quantiles": (quantiles, _WIDTHS),
}
_WORDS = ("mask", "dates", "suppress", "grid", "auto")
HIERARCHIES: dict[str, dict[str, Form]] = {
    **{kind: {kind: form, **options_of(make)} for kind, (make, form) in _BUILDERS.items()},
    **{"auto": {"auto": TRUE}, "taxonomy": {"taxonomy": _ROWS}},
}
"""The hierarchies that a job can name, each with the keys that it takes."""
_HOW = 'write "mask", "dates", "suppress", "auto", { bands = [5, 10, 20] } or { taxonomy = "file.csv" }'


def _check_keys(place: str, data: Data, known: Mapping[str, Form]) -> None:
    """Raise InputError for a key that is not known here, or whose value has another form than it must."""
    for key, value in data.items():
        if key not in known:
            belongs = "[" in place and key in _FIELDS
            do = "it belongs above the first [section]" if belongs else _section_of(place, key, data)
            raise InputError(f'{place}: unknown key "{key}"', do=do or nearest(key, known))
        if not known[key].fits(value):
            raise InputError(f"{place}: {key} must be {known[key].words}", got=shown(value))


def _section_of(place: str, key: str, data: Data) -> str:
    """Where an option of the job's method belongs that stands above its section; nothing where it is none."""
    method = data.get("method", "generalize")
    known = "[" not in place and isinstance(method, str) and method in METHODS and key in section_keys(method)
    return f"it belongs in the section [{method}]" if known else ""


def _columns(place: str, given: Data | list[str], folder: Path) -> dict[str, Builder | None]:
    """The columns of a role with their hierarchies; None where jali chooses one."""
    if isinstance(given, list):
        doubled = next((name for name in given if given.count(name) > 1), None)
        if doubled is not None:
            raise InputError(f'{place} names column "{doubled}" twice')
        return dict.fromkeys(given)
    return {name: _hierarchy(f"{place} {name}", name, spec, folder) for name, spec in given.items()}


def _hierarchy(place: str, name: str, given: object, folder: Path) -> Builder | None:
    if given is True:
        return None
    if isinstance(given, str) and given in _WORDS:
        given = {given: True}
    if not isinstance(given, dict):
        raise InputError(f"{place}: not a hierarchy", got=shown(given), do=_advice(name, given))
    kinds = [key for key in given if key in HIERARCHIES]
    if len(kinds) > 1:
        raise InputError(f"{place}: {kinds[0]} and {kinds[1]} at once", do="give a column one hierarchy")
    _check_keys(place, given, HIERARCHIES[kinds[0]] if kinds else dict.fromkeys(HIERARCHIES, TRUE))
    if not kinds:
        raise InputError(f"{place}: no hierarchy", do=_HOW)
    with _at(place):
        return _made(kinds[0], given, folder)


def _advice(name: str, given: object) -> str:
    if name in _FIELDS:
        return f"if you mean the job's own {name}, write it above the first [section]"
    hint = nearest(given, _WORDS) if isinstance(given, str) else ""
    return hint if hint.startswith("did you mean") else _HOW


def _made(kind: str, given: Data, folder: Path) -> Builder | None:
    if kind == "taxonomy":
        source = given["taxonomy"]
        return taxonomy(_path(folder, source) if isinstance(source, str) else source)
    if kind == "auto":
        return None
    own = given[kind]
    positional = [] if own is True else own if isinstance(own, list) else [own]
    return _BUILDERS[kind][0](*positional, **{key: value for key, value in given.items() if key != kind})


def _options(place: str, section: str, given: Data, folder: Path) -> dict[str, Any]:
    """The keyword arguments in a section of the job."""
    known = section_keys(section) if given else {}
    _check_keys(f"{place} [{section}]", given, known)
    return {key: _path(folder, value) if known[key] is FILE else value for key, value in given.items()}


def _principles(place: str, data: Data) -> tuple[Principle, ...]:
    found = []
    for number, given in enumerate(data.get("principles", ()), 1):
        with _at(f"{place} [[principles]] {number}"):
            if not isinstance(given.get("name"), str):
                raise InputError("a principle needs a name", do='e.g. name = "KAnonymity"')
            if not isinstance(given.get("sensitive", ""), str):
                raise InputError("sensitive must be the name of a column", got=shown(given["sensitive"]))
            found.append(from_dict(dict(given)))
    return tuple(found)
