"""Release: what is published, with a manifest that says how and under which promises. It holds no original row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali._version import __version__
from jali.core.arrays import Bools, Ints, combine, counted
from jali.core.formats import formula_columns, to_native
from jali.core.rows import Rows
from jali.core.spill import Written
from jali.errors import InputError, InternalError, nearest
from jali.principles import from_dict
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts
from jali.releases import store
from jali.releases.summary import ATTACKER, NOT_COVERED, UNKNOWN, Words, an, column_line, of_known, some_unknown
from jali.releases.written import Format, no_memory

if TYPE_CHECKING:
    from jali.cover.cover import Cover
    from jali.encoding.table import Table
    from jali.estimates.base import Estimate
    from jali.releases.column import Published
    from jali.releases.generalized import Generalized
    from jali.releases.linked.angel import Angel
    from jali.releases.marginals import Marginals
    from jali.releases.presence import Presence

_SHAPES = {
    "kind": str, "jali": str, "method": Mapping, "principles": list, "counts": Mapping, "metrics": Mapping,
    "domain": Mapping, "earlier_releases": list,
}  # fmt: skip
"""What each part of a manifest is."""
COMPARED = ("kl", "loss")
"""Measures that compare with the original are for its holder: saved, they would tell alike originals apart."""
_NAMED = ("name", "role", "kind")  # of every column
Reading = Callable[[], tuple[Mapping[str, Rows], dict[str, Any]]]
"""A way to read the tables and the manifest of a release that was written."""
Bound = Literal["exact", "at most"]
"""Whether a figure about an attacker is exact or an upper bound."""


@dataclass(frozen=True)
class Manifest:
    """What a release says about itself: nothing that its tables do not already give away."""

    kind: str
    method: Mapping[str, Any]
    principles: tuple[Principle, ...]
    counts: Mapping[str, Any]
    metrics: Mapping[str, float] = field(default_factory=dict)
    domain: Mapping[str, str] = field(default_factory=dict)  # "declared" or "present" for each quasi-identifier
    earlier_releases: tuple[str, ...] = ()
    version: str = __version__
    notes: tuple[str, ...] = ()  # what a reader should know before using it, most of all what is not promised
    allowed: Mapping[str, str] = field(default_factory=dict)  # why a column that looks like an identifier is published

    def to_dict(self) -> dict[str, Any]:
        """As JSON, the way it is published."""
        more: dict[str, Any] = {"notes": list(self.notes)} if self.notes else {}
        more |= {"allowed": dict(self.allowed)} if self.allowed else {}
        return {
            "kind": self.kind,
            "jali": self.version,
            "method": dict(self.method),
            "principles": [principle.to_dict() for principle in self.principles],
            "promises": [principle.promise() for principle in self.principles],
            "counts": dict(self.counts),
            "metrics": {name: value for name, value in self.metrics.items() if name not in COMPARED},
            "domain": dict(self.domain),
            "earlier_releases": list(self.earlier_releases),
            **more,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Manifest:
        """From JSON; a ValueError where something in it is of another shape than `to_dict` gives it."""
        if not all(isinstance(data[name], shape) for name, shape in _SHAPES.items()):
            raise ValueError("not a manifest")
        counts = data["counts"]
        counted = [counts[name] for name in ("rows", "people", "one_row_per_person_assumed")]
        counted += [counts.get(name, 0) for name in ("groups", "suppressed")]
        figures = (*data["metrics"].values(), *counted)
        notes, allowed = data.get("notes", []), data.get("allowed", {})
        if not isinstance(notes, list) or not isinstance(allowed, Mapping):
            raise ValueError("not a manifest")
        texts = (data["method"]["name"], *data["domain"].values(), *data["earlier_releases"], *notes)
        texts += (*allowed.keys(), *allowed.values())
        if not all(isinstance(n, (int, float)) and math.isfinite(n) for n in figures):
            raise ValueError("not a manifest")
        if not all(isinstance(t, str) for t in texts):
            raise ValueError("not a manifest")
        if not isinstance(data["method"].get("transparent", False), bool):
            raise ValueError("not a manifest")
        levels = data["method"].get("levels", {})
        if not isinstance(levels, Mapping) or not all(isinstance(level, int) for level in levels.values()):
            raise ValueError("not a manifest")
        return cls(
            data["kind"],
            data["method"],
            tuple(from_dict(p) for p in data["principles"]),
            data["counts"],
            data["metrics"],
            data["domain"],
            tuple(data["earlier_releases"]),
            data["jali"],
            tuple(notes),
            dict(allowed),
        )


class Release(ABC):
    """Something published: tables, a manifest, and what analysts and attackers can make of them.

    Every kind answers the questions below for itself. Outside this room nobody asks which kind a release is: code that
    works on one table of grouped rows, on batches or on a collection of marginals asks for that part, which may be
    None.
    """

    kind: ClassVar[str]
    words: ClassVar[Words] = Words()
    against: ClassVar[str] = ATTACKER  # the attacker whom the promises are made against
    one_grouping: ClassVar[bool] = True  # people are shown in the groups that their sensitive values are counted by
    hides_presence: ClassVar[bool] = False  # the promises are about who of a public table is in this one
    needs_hierarchies: ClassVar[bool] = False  # a public table is compared with the cells by their hierarchies
    manifest: Manifest
    origin: str
    search: Mapping[str, int]  # how the search went (nodes, checked): for the holder, never saved

    # The parts that a release can have.

    @property
    def grouped_rows(self) -> Generalized | None:
        """The table whose rows show the group and the sensitive values of one person together, if there is one."""
        return None

    @property
    def batched(self) -> Angel | None:
        """The batches, and the tables of quasi-identifiers that their numbers link, if there are any."""
        return None

    @property
    def collected(self) -> Marginals | None:
        """The collection of marginals, if there is one."""
        return None

    # What is published.

    @property
    @abstractmethod
    def tables(self) -> dict[str, pa.Table]:
        """What is published, table by table."""

    @property
    def counted_tables(self) -> Mapping[str, Written]:
        """The tables as they are written: where many rows are alike, as distinct rows with their numbers."""
        return {name: Rows(table) for name, table in self.tables.items()}

    @property
    def named_columns(self) -> Mapping[str, Sequence[str]]:
        """The names of all columns of each published table."""
        return {name: rows.names for name, rows in self.counted_tables.items()}

    @property
    @abstractmethod
    def columns(self) -> tuple[Published, ...]:
        """The published columns."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows of the original were published."""

    @property
    def weight_name(self) -> str | None:
        """The published column of weights, if there is one."""
        return None

    @property
    def levels(self) -> dict[str, int]:
        """The level of each quasi-identifier, where each is shown at one."""
        return {}

    @property
    def judged(self) -> Mapping[str, Sequence[str]]:
        """The columns of a table that promises are about, where others need not be read to judge them."""
        return {}

    @property
    def groups(self) -> pa.Table | None:
        """What each group of people shows, and how many rows it has; None without groups."""
        return None

    @property
    def individuals(self) -> pa.Table | None:
        """The published quasi-identifiers of each row, in published order; None without rows."""
        return None

    @property
    def group_of_rows(self) -> NDArray[np.integer] | None:
        """The number, from 0, of each published row's group that values are counted by; None without rows."""
        return None

    @property
    def hidden_rows(self) -> Bools:
        """Which published rows are suppressed: (rows,)."""
        return np.zeros(self.rows, dtype=bool)

    def shared_by(self, columns: tuple[Published, ...]) -> Ints:
        """How many rows show the same in these columns, for each of the different things that they show."""
        number, _ = combine([(c.held, len(c.labels)) for c in columns], len(columns[0].held))
        return counted(number, None if columns[0].order is None else columns[0].order.numbers)

    def column_line(self, column: Published) -> str:
        """How a column is published, in a line that begins with its name."""
        return column_line(column)

    def of_role(self, role: str) -> tuple[Published, ...]:
        """The columns of a role."""
        return tuple(column for column in self.columns if column.role == role)

    def __getitem__(self, name: str) -> Published:
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f'no column "{name}" in the release', do=nearest(name, [c.name for c in self.columns]))

    @abstractmethod
    def counts(self) -> Counts:
        """People by published group and sensitive value, from the published tables alone."""

    @abstractmethod
    def columns_facts(self) -> list[dict[str, Any]]:
        """What the manifest says of each column."""

    @abstractmethod
    def estimate(self) -> Any:
        """What an analyst can infer: probabilities, counts, joint frames, samples."""

    @abstractmethod
    def inferred(self, cover_of: Callable[[Published], Cover]) -> Estimate:
        """The estimate where cells cover what `cover_of` says: for the holder of the original, who knows more."""

    # What it promises, and against whom.

    @property
    def principles(self) -> tuple[Principle, ...]:
        """The promises."""
        return self.manifest.principles

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know before using it; what the holder should know of reading is in `table.notes`."""
        return self.manifest.notes

    def with_notes(self, notes: Iterable[str]) -> Self:
        """The release with further notes, before its own."""
        self.manifest = replace(self.manifest, notes=tuple(dict.fromkeys((*notes, *self.notes))))
        return self

    def promised(self, principle: Principle) -> str:
        """What a promise means for this kind of release, in one plain sentence without a full stop."""
        assumed = self.manifest.method.get("pdf_assumes")
        text = principle.promise() + of_known(self, principle)
        return text if assumed is None else f"if {assumed}, {text}"

    def told(self) -> dict[str, Any]:
        """What the manifest says of the whole release, its promises as they hold for this kind."""
        return self.manifest.to_dict() | {"promises": [self.promised(principle) for principle in self.principles]}

    @property
    def transparent(self) -> bool:
        """Whether the promises hold also against an attacker who knows the algorithm: the manifest's own claim."""
        return self.manifest.method.get("transparent") is True

    @property
    def limits(self) -> tuple[str, ...]:
        """What no promise speaks of, whatever an attacker knows of people: the algorithm, and other releases."""
        known = str(self.manifest.method.get("known_algorithm", NOT_COVERED[1]))
        others = (*NOT_COVERED[2:], *((UNKNOWN,) if some_unknown(self) else ()))
        return others if self.transparent else (known, *others)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the promises do not speak of."""
        return (NOT_COVERED[0], *self.limits)

    @property
    def disclosure_bound(self) -> Bound | None:
        """Whether the maximum disclosure from `counts` is exact or an upper bound; None without groups of people.

        It is exact where an attacker who knows somebody's quasi-identifiers knows the group. Where groups overlap the
        attacker knows less, and the figure is an upper bound.
        """
        return None

    @property
    def public_table(self) -> Table | None:
        """The public table at hand, against which presence is judged; it is never saved."""
        return None

    def beside(self, public: Table) -> Release:
        """The release with a public table at hand, if its promises are judged against one; else as it is."""
        return self

    def presence(self, public: Table | None = None) -> Presence:
        """For each person of the public table the probability of being in this one, from the published cells alone."""
        do = "try the attack instead: jali.attacks(release, original, public=…)"
        raise InputError(f"the probability of presence is not defined for {an(self.kind)} release", do=do)

    def widened(self, original: Table) -> Table:
        """The original over the domain that the cells are about."""
        return original

    def frame(self, kind: str | None = None) -> Any:
        """The published table, in the kind of frame that came in, or as "pandas", "polars", "arrow"."""
        return to_native(self.tables["data"], self.origin if kind is None else kind)

    def verify(self) -> None:
        """Judge every promise again from the published tables alone; a broken one is an InternalError."""
        counts = self.counts()
        if not bool(hold(self.principles, counts).all()):
            broken = ", ".join(repr(p) for p in self.principles if not bool(p.holds(counts).all()))
            raise InternalError(f"the release does not keep {broken}; nothing was written: please report this bug")

    def totals(self) -> list[Ints]:
        """The sizes of the groups, largest first, and of each sensitive column the people of each value."""
        counts = self.counts()
        cells = [counts.cells(column.name) for column in counts.sensitive]
        people = [counted(each.value, each.n, len(each.column)) for each in cells]
        return [np.sort(counts.size)[::-1], *people]

    def kept(self) -> dict[str, bool]:
        """Whether each promise is kept, from the published tables alone."""
        counts = self.counts()
        return {repr(principle): bool(principle.holds(counts).all()) for principle in self.principles}

    def formula_columns(self) -> tuple[str, ...]:
        """The published text columns with a cell that begins with =, +, - or @, which spreadsheets run."""
        kinds = {facts["name"]: facts["kind"] for facts in self.columns_facts()}
        tables = [rows.distinct for rows in self.counted_tables.values() if isinstance(rows, Rows)]
        return tuple(dict.fromkeys(name for table in tables for name in formula_columns(table, kinds)))

    def save(
        self, folder: str | Path, *, overwrite: bool = False, format: Format = "csv",
        spreadsheet_safe: bool = False,
    ) -> Path:  # fmt: skip
        """Write data and manifest into a folder, atomically, once every promise is found kept in the written files.

        `spreadsheet_safe` puts an apostrophe before each CSV cell that a spreadsheet would run; `load` removes it.
        """
        with store.hold_release(folder, overwrite=overwrite):
            self.verify()
            return store.write(
                folder, self.counted_tables, self.written_facts(), overwrite=overwrite, form=format,
                check=lambda new: self.check_written(new, lambda: store.read(new, in_order=False, only=self.judged)),
                texts=self._pictures(), spreadsheet_safe=spreadsheet_safe,
            )  # fmt: skip

    def write(self, target: str | Path, *, engine: Any = None, overwrite: bool = False) -> Path:
        """Write the release into a folder of Parquet files, or into tables of a database in one transaction.

        Those are NAME, NAME_… and NAME_manifest for "postgresql://host/db?table=NAME". `engine="spark"` writes a
        folder. Every promise is judged from what the engine counts in the written rows, before they take their place.
        """
        from jali.releases.elsewhere import write

        return write(self, target, engine=engine, overwrite=overwrite)

    def written_facts(self) -> dict[str, Any]:
        """The manifest as it is written, but for the files."""
        return self.told() | {"columns": self.columns_facts()}

    def _pictures(self) -> dict[str, str]:
        """The pictures that are written with the tables, by file name."""
        return {}

    def _read_back(self, place: str | Path, read: Reading) -> Self:
        """The release that was written."""
        return self.restored(place, *read())

    @classmethod
    @abstractmethod
    def from_tables(cls, tables: Mapping[str, Rows], manifest: Mapping[str, Any]) -> Self:
        """The release that was saved as these tables."""

    @classmethod
    def restored(cls, folder: str | Path, tables: Mapping[str, Rows], manifest: Mapping[str, Any]) -> Self:
        """The release that the files of a folder are; InputError where the manifest does not describe them."""
        try:
            if not all(isinstance(facts[key], str) for facts in manifest["columns"] for key in _NAMED):
                raise ValueError("a column has no name, role or kind")
            release = cls.from_tables(tables, manifest)
            _ = release.columns  # some kinds make them when they are asked for, from what the manifest says
            return release
        except MemoryError:
            raise no_memory(folder) from None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, pa.ArrowException):
            do = "get the release again"
            raise InputError(f"the manifest of {folder} does not describe its tables", do=do) from None

    def _repr_html_(self) -> str:
        """What `print` shows, and the first rows of each table."""
        from jali.releases.summary import shown_in_notebook

        return shown_in_notebook(self)

    def check_written(self, place: str | Path, read: Reading) -> None:
        """Read what was written back: it must say what this release says, and keep every promise by itself."""
        try:
            written = self._read_back(place, read)
            written.verify()
            same, back = self.totals(), written.totals()
        except InputError as problem:
            raise InternalError(f"the files cannot be read back; nothing was written: {problem.what}") from None
        if len(same) != len(back) or not all(np.array_equal(a, b) for a, b in zip(same, back, strict=True)):
            what = "what is read back is not what the release says; nothing was written: please report this bug"
            raise InternalError(what)
