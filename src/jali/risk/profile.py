"""The risk profile of a table before it is published: each column, who is unique, what two laws ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jali.core import text as html
from jali.core.files import put_content
from jali.core.text import Html, Section, aligned, bullets, document, element, html_table, joined, listed, percent
from jali.encoding import values as v
from jali.encoding.identifiers import is_of_several
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InputError, nearest_hidden, path_of
from jali.releases.store import within_release
from jali.risk import roles
from jali.risk.roles import Facts, Role, Suggestion, facts_of
from jali.risk.uniques import (
    SHOWN,
    Coded,
    Everybody,
    Spread,
    Uniques,
    certainty,
    minimal_uniques,
    share_of,
    spread,
    too_telling,
)
from jali.sources.tables import Whole, whole

QUASI = 12
"""So many quasi-identifiers a suggested job has at most: with more, groups of people hardly share anything."""
SENSITIVE = 4
NODES, LATTICE, FEWEST = 5_000, 8, 200
"""A suggested job generalizes up to this number of combinations of levels, up to this number of columns and from this
number of people on; else it partitions, since a search would take long or end in stars."""
SHARED = 0.1
"""Columns with fewer values for each row than this can say the same; others do so by chance, where all are unique."""


@dataclass(frozen=True)
class ColumnProfile:
    """One column: figures, and what it is likely for."""

    name: str
    kind: v.Kind
    values: int  # distinct ones, without the missing one
    missing: int  # rows
    unique: int  # people who are the only ones with their value
    distinction: float
    separation: float
    role: Role
    reason: str
    sure: bool
    hierarchy: str = ""  # of a quasi-identifier, as a job writes it
    promise: str = ""  # of a sensitive column, likewise
    rank: int | None = None  # among the quasi-identifiers, 1 the most telling
    contribution: float | None = None  # its share of what makes people unique
    examples: tuple[str, ...] = ()  # frequent values, only where they were asked for

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON has them; no values unless they were asked for."""
        told = dict(vars(self))
        if not self.examples:
            del told["examples"]
        return told


@dataclass(frozen=True)
class Finding:
    """What a law asks, the columns that it is about, and the answer."""

    title: str
    columns: tuple[str, ...]
    answer: str


@dataclass(frozen=True, repr=False)
class Profile:
    """What a table tells about its people, in figures; it holds no row, and no value unless one was asked for."""

    rows: int
    people: int
    columns: tuple[ColumnProfile, ...]
    together: Spread  # of all quasi-identifiers
    uniques: Uniques
    certain: Mapping[str, float]  # sensitive column → share of the people whom the quasi-identifiers give it away of
    safe_harbor: tuple[Finding, ...]
    gdpr: tuple[Finding, ...]
    nodes: int = 1  # combinations of the levels of the quasi-identifiers
    reading: Mapping[str, Any] = field(default_factory=dict)  # options with which the file was read
    notes: tuple[str, ...] = ()  # how these were detected
    unread: tuple[str, ...] = ()  # columns that jali cannot publish: lists, bytes, columns without a name
    labelled: tuple[tuple[str, bool], ...] = ()  # columns with value labels, and whether these stand for all codes
    types: Mapping[str, v.Kind] = field(default_factory=dict)  # as the caller gave them

    def of_role(self, role: Role) -> tuple[ColumnProfile, ...]:
        """The columns of a likely role; quasi-identifiers in the order of their rank, others in that of the table."""
        found = [column for column in self.columns if column.role == role]
        return tuple(sorted(found, key=lambda column: column.rank or 0))

    def __getitem__(self, name: str) -> ColumnProfile:
        known = {column.name: column for column in self.columns}
        if name not in known:
            raise InputError(f'no column "{name}" in the profile', do=nearest_hidden(name, list(known)))
        return known[name]

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it."""
        unique = {"searched": self.uniques.searched, "pairs_only": self.uniques.paired, "by_size": self.uniques.by_size}
        sets = [{"columns": one.columns, "people": one.people} for one in self.uniques.sets]
        return {
            "rows": self.rows,
            "people": self.people,
            "columns": [column.to_dict() for column in self.columns],
            "quasi": [column.name for column in self.of_role("quasi")],
            "together": self.together._asdict(),
            "uniques": unique | {"sets": sets},
            "certain": dict(self.certain),
            "safe_harbor": [vars(one) for one in self.safe_harbor],
            "gdpr": [vars(one) for one in self.gdpr],
            "unread": self.unread,
            "notes": self.notes,
        }

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the page into a file, whole or not at all; it is confidential, and lies in no release."""
        target = path_of(path)
        if within_release(target):
            raise InputError("a profile must not lie in the folder of a release", do="name another place")
        put_content(target, document("Risk profile", _page(self), edition="private"), overwrite=overwrite)
        return target

    def _repr_html_(self) -> str:
        return html.notebook(*(section.body for section in _sections(self)))

    def __repr__(self) -> str:
        return "\n\n".join(f"{title}\n{body}" if title else body for title, body in _parts(self))


def profile(
    source: Any, *, person: str | None = None, types: Mapping[str, v.Kind] | None = None, show_values: bool = False,
    separator: str | None = None, encoding: str | None = None, sheet: str | None = None,
    missing_markers: str | Iterable[str] | None = None, decimal: str | None = None, thousands: str | None = None,
    date_format: str | None = None,
) -> Profile:  # fmt: skip
    """What a table tells about its people, and what each column is likely for: a file, a frame, or a jali table.

    `person` names the column that says whose row it is; without it, an identifier that several rows share is taken.
    `types` are the kinds of columns, `reading` says how a file is written, both as in `jali.read`; `show_values` adds
    frequent values of each column. Figures count people, and a missing value as a value.
    """
    if isinstance(source, Table):
        found = Whole(source, {})
    else:
        found = whole(
            source, types=types, separator=separator, encoding=encoding, sheet=sheet, missing_markers=missing_markers,
            decimal=decimal, thousands=thousands, date_format=date_format,
        )  # fmt: skip
    table = found.table
    if isinstance(table, LargeTable):
        raise table.refused("profile")
    names = [column.name for column in table.columns]
    if person is not None and person not in names:
        raise InputError(f'person: no column "{person}" in the table', do=nearest_hidden(person, names))
    made = _Making.of(table, person)
    return replace(
        made.profile(show_values=show_values), unread=tuple(filter(None, table.unnamed)), types=types or {},
        reading=found.reading, notes=found.notes, labelled=found.labelled,
    )  # fmt: skip


# -- how it is made ------------------------------------------------------------------------------------------------


class _Making:
    """A profile while it is made: the columns as numbers, the people, the suggestions so far."""

    def __init__(
        self, table: Table, everybody: Everybody, facts: dict[str, Facts], found: dict[str, Suggestion]
    ) -> None:
        self.table, self.everybody, self.facts, self.found = table, everybody, facts, found
        self.coded = {column.name: Coded(column.codes, len(column.values)) for column in table.columns}

    @classmethod
    def of(cls, table: Table, person: str | None) -> _Making:
        """The suggestions, once with one row a person, and again where a column says whose rows they are."""
        everybody = Everybody(table.records, table.person, table.multiplicity)
        facts = {column.name: facts_of(column, everybody) for column in table.columns}
        found = {name: roles.suggest(one, several_rows=table.person is not None) for name, one in facts.items()}
        person = _person(facts, found) if person is None and table.person is None else person
        if person is not None:
            codes = table[person].codes.astype(np.int64)
            everybody = Everybody(table.records, codes, table.multiplicity)
            facts = {column.name: facts_of(column, everybody) for column in table.columns}
            found = {name: roles.suggest(one, several_rows=True) for name, one in facts.items()}
            found[person] = Suggestion(
                "person", "it says whose row it is: people have several", topic=found[person].topic
            )
        return cls(table, everybody, facts, found)

    def profile(self, *, show_values: bool) -> Profile:
        """The profile with all its figures."""
        alone = {name: spread([coded], self.everybody) for name, coded in self.coded.items()}
        self._require_one_quasi(alone)
        order = sorted(self._of("quasi"), key=lambda name: (not self.found[name].sure, -alone[name].separation))
        uniques = minimal_uniques({name: self.coded[name] for name in order}, self.everybody)
        share = uniques.contributions()
        order.sort(key=lambda name: (-share.get(name, -1.0), -alone[name].separation, name))
        self._leave_out_twins(order, alone)
        self._leave_out(order)
        quasi = [name for name in order if self.found[name].role == "quasi"]
        recipes = {name: roles.recipe_of(self.facts[name], self.found[name].builder) for name in quasi}
        nodes = 1
        for _, levels in recipes.values():
            nodes *= levels
        columns = []
        for column in self.table.columns:
            name, said = column.name, self.found[column.name]
            own = alone[name]
            columns.append(ColumnProfile(
                name, column.kind, len(self.facts[name].values), self.facts[name].missing, own.unique, own.distinction,
                own.separation, said.role, said.reason, said.sure,
                roles.spec(recipes[name][0]) if name in recipes else "", said.promise,
                quasi.index(name) + 1 if name in quasi else None, share.get(name),
                roles.examples(self.facts[name]) if show_values else (),
            ))  # fmt: skip
        within = [self.coded[name] for name in quasi]
        certain = {
            n: certainty(within, self.coded[n], self.facts[n].missing > 0, self.everybody)
            for n in self._of("sensitive")
        }
        together = spread(within, self.everybody)
        people = self.table.rows if self.everybody.person is None else len(np.unique(self.everybody.person))
        made = Profile(
            self.table.rows, people, tuple(columns), together, uniques, certain, self._safe_harbor(), (), nodes
        )
        return replace(made, gdpr=_gdpr(made))

    def _of(self, role: Role) -> list[str]:
        return [name for name, said in self.found.items() if said.role == role]

    def _require_one_quasi(self, alone: Mapping[str, Spread]) -> None:
        """Make the column that tells people apart least a quasi-identifier where none is, since a job needs one."""
        others = [name for name, said in self.found.items() if said.role in ("other", "sensitive", "left out")]
        least = {name: 1 if said.role == "other" else 2 for name, said in self.found.items()}  # one secret value tells
        others = [n for n in others if len(self.facts[n].values) + bool(self.facts[n].missing) >= least[n]]
        if not self._of("quasi") and others:
            name = min(others, key=lambda one: (self.found[one].role != "other", alone[one].separation))
            self.found[name] = roles.as_quasi(
                self.facts[name], "a job needs a quasi-identifier, and no other column is one"
            )

    def _leave_out_twins(self, order: list[str], alone: Mapping[str, Spread]) -> None:
        """Leave out a column that says the same as one of a higher rank: their values go together one by one."""
        for at, name in enumerate(order):
            for other in order[:at]:
                alike = alone[name].distinct == alone[other].distinct and self.found[other].role == "quasi"
                alike &= alone[name].distinction < SHARED
                both = [self.coded[name], self.coded[other]]
                if alike and spread(both, self.everybody).distinct == alone[name].distinct:
                    reason = f"it says the same as {other}"
                    self.found[name] = replace(self.found[name], role="left out", reason=reason, sure=False)
        order[:] = [name for name in order if self.found[name].role == "quasi"]

    def _leave_out(self, order: Sequence[str]) -> None:
        """Leave out what is too much for one job: quasi-identifiers of the lowest rank, further sensitive columns."""
        sure_first = sorted(order, key=lambda name: (not self.found[name].sure, order.index(name)))
        for role, names, most in (("quasi", sure_first, QUASI), ("sensitive", self._of("sensitive"), SENSITIVE)):
            for name in names[most:]:
                self._drop(name, f"beyond the {most} {role} columns of a first job")
        numbers = {n: self.coded[n] for n in self._of("sensitive") if v.kind_of(self.facts[n].values) != "text"}
        for name in too_telling(numbers, self.everybody):
            self._drop(name, "with the other sensitive numbers it tells nearly everybody apart")

    def _drop(self, name: str, why: str) -> None:
        what = f"{self.found[name].reason}; {why}"
        self.found[name] = replace(self.found[name], role="left out", reason=what, sure=False, promise="")

    def _safe_harbor(self) -> tuple[Finding, ...]:
        findings = []
        for one in roles.SAFE_HARBOR:
            names = [n for n, said in self.found.items() if roles.in_class(one, n, said, roles.largest(self.facts[n]))]
            names = [n for n in names if not (one.letter == "B" and roles.is_wide(n))]
            kept = [n for n in names if self.found[n].role not in ("identifier", "left out", "person")]
            answer = "nothing found"
            if names:
                all_of = "it" if len(names) == 1 else "them"
                which = all_of if len(kept) == len(names) else ", ".join(kept)
                does = f"publishes {which}, {_PARTLY}" if kept else f"drops {all_of}"
                answer = f"found; a first job {does}"
            findings.append(Finding(f"({one.letter}) {one.title}", tuple(names), answer))
        return tuple(findings)


_PARTLY = "more coarsely where the promises need that, which may be less than this class asks for"


def _person(facts: Mapping[str, Facts], found: Mapping[str, Suggestion]) -> str | None:
    """The identifier that says whose row it is, where several rows share it: that with the fewest values."""
    likely = [
        name
        for name, said in found.items()
        if said.role == "identifier" and said.topic in ("record number", "social-security number")
        and facts[name].repeated and not facts[name].missing and len(facts[name].values) > 1
        and not is_of_several(name)
    ]  # fmt: skip
    return min(likely, key=lambda name: len(facts[name].values), default=None)


# -- the three questions -------------------------------------------------------------------------------------------


def _gdpr(made: Profile) -> tuple[Finding, ...]:
    """Singling out, linkability and inference, as the Article 29 Working Party asks of what is called anonymous.

    Opinion 05/2014 (WP216); recital 26 of the GDPR names singling out.
    """
    quasi = tuple(column.name for column in made.of_role("quasi"))
    named = tuple(column.name for column in made.columns if column.role in ("identifier", "person"))
    few = [f"{share_of(n, made.people)} by at most {size}" for size, n in enumerate(made.uniques.by_size, 1)]
    single = f"people who are unique by the columns that others may know: {'; '.join(few)}; " if few else ""
    single += f"{share_of(made.together.unique, made.people)} by all {len(quasi)} together"
    link = f"columns that tie rows to other tables: {listed(named)}" if named else "no column looks like an identifier"
    if made.people < made.rows:
        link += f"; people have {made.rows / made.people:.1f} rows on average, which tell more together than each alone"
    told = [f"{name} of {percent(share)}" for name, share in made.certain.items()]
    secret = [column.name for column in made.columns if column.reason.startswith("nobody should learn it")]
    infer = f"the first job leaves out what nobody should learn: {listed(secret)}" if secret else ""
    if told:
        infer = f"the quasi-identifiers give away for certain {listed(told)} of the people whose value is known"
    return (
        Finding("Can somebody be singled out?", quasi, single),
        Finding("Can records about the same person be linked?", named, link),
        Finding("Can something be inferred about somebody?", tuple(made.certain), infer or "no column looks sensitive"),
    )


# -- how it shows itself -------------------------------------------------------------------------------------------

_HEADER = ("column", "kind", "values", "missing", "unique", "distinction", "separation", "role")


def _parts(made: Profile) -> Iterable[tuple[str, str]]:
    """Titles and texts."""
    rows = [_row(column) for column in made.columns]
    yield "", f"Profile: {made.rows:,} rows, {made.people:,} people, {len(made.columns)} columns"
    yield "Columns", "\n".join(f"  {line}" for line in aligned([_HEADER, *rows], left=(0, 1, 7)))
    yield "Why", "\n".join(f"  {column.name}: {_reason(column)}" for column in made.columns)
    if made.unread:
        yield "Not read, since jali cannot publish such values", f"  {', '.join(made.unread)}"
    yield "Who is unique", "\n".join(f"  {line}" for line in made.uniques.lines(made.people))
    yield "The three questions of the GDPR's supervisors", "\n".join(f"  {o.title} {_sentence(o)}" for o in made.gdpr)
    found = [f"  {one.title}: {', '.join(one.columns)}: {one.answer}" for one in made.safe_harbor if one.columns]
    yield _HARBOR, "\n".join([*found, f"  {_nothing(made)}"])


_HARBOR = "HIPAA Safe Harbor, 45 CFR 164.514(b)(2), as far as names and values of columns tell"


def _nothing(made: Profile) -> str:
    none = [one.title[1] for one in made.safe_harbor if not one.columns]
    return f"nothing found of {listed(none)}" if none else "something found of every class"


def _sentence(one: Finding) -> str:
    return one.answer[:1].upper() + one.answer[1:] + "."


def _row(column: ColumnProfile) -> tuple[str, ...]:
    role = f"{column.role} {column.rank}" if column.rank else column.role
    doubt = "" if column.sure else "?"
    return (
        column.name, column.kind, f"{column.values:,}", f"{column.missing:,}", f"{column.unique:,}",
        percent(column.distinction), percent(column.separation), role + doubt,
    )  # fmt: skip


def _reason(column: ColumnProfile) -> str:
    more = f"; {column.hierarchy}" if column.hierarchy else ""
    shown = f"; e.g. {', '.join(column.examples)}" if column.examples else ""
    return f"{column.reason}{more}{shown}"


def _sections(made: Profile) -> list[Section]:
    rows = [(*_row(column), _reason(column)) for column in made.columns]
    about = "What each column is likely for"
    columns = html_table((*_HEADER, "why"), rows, caption=about, numbers=(2, 3, 4, 5, 6), named=True)
    sets = html_table(
        ("columns", "people"), [(" + ".join(one.columns), f"{one.people:,}") for one in made.uniques.sets[: 3 * SHOWN]],
        caption="The smallest sets of columns that make people unique", numbers=(1,),
    )  # fmt: skip
    unique = joined([bullets(made.uniques.lines(made.people, sets=False)), sets])
    harbor = html_table(
        ("class", "columns", "answer"), [(one.title, ", ".join(one.columns), one.answer) for one in made.safe_harbor],
        caption=_HARBOR, named=True,
    )  # fmt: skip
    asked = bullets([f"{one.title} {_sentence(one)}" for one in made.gdpr])
    return [
        Section("columns", "Columns", columns),
        Section("unique", "Who is unique", unique),
        Section("gdpr", "The three questions of the GDPR's supervisors", asked),
        Section("harbor", "HIPAA Safe Harbor", harbor),
    ]


def _page(made: Profile) -> Html:
    at_once = made.uniques.by_size[-1] if made.uniques.by_size else 0
    figures = [("rows", f"{made.rows:,}"), ("people", f"{made.people:,}"), ("columns", str(len(made.columns)))]
    figures += [(f"unique by at most {len(made.uniques.by_size)} columns", percent(at_once / made.people))]
    told = [element("div", element("dt", name), element("dd", figure)) for name, figure in figures]
    mark = element("p", "Confidential: computed from the original table, for its holder alone.", class_="mark")
    head = [element("h1", "Risk profile"), mark, element("dl", *told, class_="glance")]
    main = element("main", "\n", joined(section.html() for section in _sections(made)), "\n")
    return joined([element("header", "\n", joined(head), "\n"), main])
