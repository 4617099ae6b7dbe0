"""Angel: batches that keep the promises about sensitive values, and tables whose quasi-identifiers are k-anonymous."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from jali.core import verb
from jali.core.arrays import Ints
from jali.core.formats import free_name, to_native
from jali.core.progress import Step
from jali.core.rows import Rows
from jali.cover.cover import Cover
from jali.encoding.table import Table
from jali.errors import InputError, InternalError, nearest
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn
from jali.estimates.linked import LinkedEstimate
from jali.estimates.together import SeveralEstimate
from jali.principles import KAnonymity
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.releases.base import Bound, Manifest
from jali.releases.column import Published
from jali.releases.linked.decide import JOINT_TIME, JointCheck, decide
from jali.releases.linked.join import JointCell
from jali.releases.linked.linked import Assignment, Linked, broken_by, entries_of, totals_of, worst_of
from jali.releases.linked.private import check_place, write_keys
from jali.releases.linked.tables import Contents, GroupTable, contents_of, graph, posterior
from jali.releases.summary import (
    ATTACKER,
    Words,
    against,
    beyond,
    column_line,
    cost_lines,
    many,
    sensitive_line,
    with_notes,
)
from jali.releases.written import Format

TOLERANCE = 1e-5
"""Posteriors are sums of floats: their levels are compared with those of batches up to this relative error."""
_OWN = ("batch", "count", "weights")


class Angel(Linked):
    """A table of batches (batch, sensitive values, count), and tables of generalized quasi-identifiers with batches.

    The promises about sensitive values are kept by the batches, and by every mixture of them; k by each table.
    """

    kind: ClassVar[str] = "angel"
    words: ClassVar[Words] = Words("batch", "batches", "Buckets", "People who look alike in each table, at least")
    one_grouping: ClassVar[bool] = False  # people are shown in buckets, values are counted in batches

    contents: Contents

    # What is published.

    @property
    def batched(self) -> Angel:
        """The release itself."""
        return self

    @property
    def rows(self) -> int:
        """How many rows `data` has."""
        return self.contents.tables[0].rows

    @property
    def columns(self) -> tuple[Published, ...]:
        """The published columns: the quasi-identifiers as `data` shows them, then the sensitive ones."""
        return self.contents.tables[0].columns + self.contents.hidden

    @property
    def k(self) -> int:
        """How many people show the same in every table, at the least."""
        return max((p.k for p in self.principles if isinstance(p, KAnonymity)), default=1)

    @property
    def batch_principles(self) -> tuple[Principle, ...]:
        """The promises that batches keep: all but k."""
        return tuple(p for p in self.principles if not isinstance(p, KAnonymity))

    @property
    def mixed_principles(self) -> tuple[Principle, ...]:
        """Those that a mixture of batches reaches a level of; Safety is about arrangements within batches."""
        return tuple(p for p in self.batch_principles if p.scope == "group")

    @property
    def counted_tables(self) -> dict[str, Rows]:  # made when asked for: a number for each row
        """The tables of quasi-identifiers, `data` with all of them first, and the table of batches."""
        held = self.contents
        number, count, weights = held.names
        shown = {table.name: table.counted(number, weights) for table in held.tables}
        batches: Rows = entries_of(held, (number, count))
        if held.weight is not None and weights is not None:
            batches = Rows(batches.coded().append_column(weights, pa.array(held.weight[held.entry_batch])))
        return shown | {"batches": batches}

    @property
    def named_columns(self) -> Mapping[str, Sequence[str]]:
        """The names of all columns of each table."""
        held = self.contents
        number, count, weights = held.names
        shown = {table.name: table.names(number, weights) for table in held.tables}
        hidden = [*(column.name for column in held.hidden), count, *([] if weights is None else [weights])]
        return shown | {"batches": [number, *hidden]}

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The same tables row by row."""
        return {name: rows.plain() for name, rows in self.counted_tables.items()}

    @property
    def batches(self) -> pa.Table:
        """The table of batches: how often each has each sensitive value."""
        return self.tables["batches"]

    @property
    def group_of_rows(self) -> Ints:
        """The batch of each row of `data`, counted from 0: its number less one."""
        batch = self.contents.tables[0].batch
        assert batch is not None
        return batch

    @property
    def groups(self) -> pa.Table:
        """The buckets of `data`: what each shows, and how many rows it has."""
        table = self.contents.tables[0]
        shown = {c.name: c.labels.take(pa.array(c.held)) for c in table.columns}
        return pa.table([*shown.values(), pa.array(table.sizes)], names=[*shown, free_name("rows", shown)])

    def frame(self, kind: str | None = None) -> Any:
        """The table of all quasi-identifiers with its batch numbers, in the kind of frame that came in, or as asked."""
        return to_native(self.tables["data"], kind or self.origin)

    def graph(self, path: str | Path) -> Path:
        """Draw the buckets of `data`, the batches, and how many people tie each two; for small releases (Figure 2)."""
        return graph(self.contents.tables[0], self.contents).save(path)

    # What it promises.

    def promised(self, principle: Principle) -> str:
        """k holds table by table, and for all together if that was asked; the rest holds in every batch."""
        if not isinstance(principle, KAnonymity):
            return f"where a group is a batch, {super().promised(principle)}"
        joint = bool(self.manifest.method.get("joint_k")) and len(self.contents.tables) > 1
        more = f"; no cells of several tables certainly hold somebody and fewer than {principle.k}" if joint else ""
        return f"in each table of quasi-identifiers, {super().promised(principle)}{more}"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the promises do not speak of."""
        joined = (LIKELY if self.manifest.method.get("joint_k") else JOIN,) if len(self.contents.tables) > 1 else ()
        return (*joined, beyond(self.principles), *self.limits)

    @property
    def disclosure_bound(self) -> Bound:
        """An upper bound: an attacker knows a person's bucket, and the batch is one of several."""
        return "at most"

    def kept(self) -> dict[str, bool]:
        """Whether each promise is kept, from the published tables alone: k by each table, the others by the batches."""
        counts, k = self.counts(), min(int(table.sizes.min()) for table in self.contents.tables)
        about_values = self.batch_principles
        return {repr(p): bool(p.holds(counts).all()) for p in about_values} | {
            repr(p): k >= self.k for p in self.principles if p not in about_values
        }

    def counts(self) -> Counts:
        """People by batch and sensitive value."""
        return self.contents.counts()

    def posterior(self, table: str = "data") -> Counts:
        """What an attacker believes of somebody whose bucket he knows: the mixture of its batches (Equation 2)."""
        return posterior(self._table(table), self.contents)

    def joint_check(self, *, seconds: float = JOINT_TIME) -> JointCheck:
        """Whether k holds for all tables together, those without batches too, if that is decided within the time."""
        return decide(self.contents.tables, self.contents.size, self.k, seconds=seconds)

    def joint_cell(self) -> JointCell | None:
        """Of the cells that some tables certainly share, those with the fewest people, as far as that was found."""
        return self.joint_check().cell

    def _table(self, name: str) -> GroupTable:
        known = {table.name: table for table in self.contents.tables if table.linked}
        if name not in known:
            raise InputError(f'no table "{name}" with batches', do=nearest(str(name), known))
        return known[name]

    def verify(self) -> None:
        """Judge every promise again from the published tables alone: batches, buckets, and what follows from both."""
        try:
            self.contents.require_fit(self.k)
            if broken := self.broken():
                raise ValueError(f"the batches do not keep {', '.join(map(repr, broken))}")
            self._require_posteriors()
        except ValueError as problem:
            raise InternalError(f"{problem}; nothing was written: please report this bug") from None
        if self.manifest.method.get("joint_k"):
            asked = self.manifest.method.get("joint_time")
            seconds = max(float(asked), JOINT_TIME) if isinstance(asked, (int, float)) else JOINT_TIME
            require_joint(self.contents, self.k, seconds=seconds)  # a short time to search is none to check

    def broken(self) -> list[Principle]:
        """The promises about values that some batch does not keep."""
        held = self.contents
        return broken_by(self.batch_principles, held.hidden, held.entry_batch, held.people)

    def totals(self) -> list[Ints]:
        """The sizes of the batches, largest first, and the people of each sensitive value."""
        return totals_of(self.contents)

    def _require_posteriors(self) -> None:
        """No bucket may give away more than the worst batch: a mixture cannot, if its batches are what they seem."""
        held = self.contents
        worst = {p: worst_of(p, held.hidden, held.entry_batch, held.people) for p in self.mixed_principles}
        for table in self.contents.tables:
            if not table.linked:
                continue
            mixed = posterior(table, held)
            for principle, batch in worst.items():
                here = principle.worst(mixed)
                sign = 1 if principle.better == "higher" else -1
                if sign * here < sign * batch - TOLERANCE * max(1.0, abs(batch)):
                    raise ValueError(f'a bucket of "{table.name}" does not keep {principle!r}')

    # What can be inferred.

    def estimate(self) -> SeveralEstimate:
        """What an analyst can infer: from all tables that can be combined, else from the one that fits."""
        return self.inferred(lambda column: column.cover)

    def inferred(self, cover_of: Callable[[Published], Cover]) -> SeveralEstimate:
        """The estimate where the cells of every table cover what `cover_of` says: for the holder of the original."""
        return SeveralEstimate(tuple(self._estimate(table, cover_of) for table in self.contents.tables))

    def linked(self, covers: Mapping[str, Cover]) -> LinkedEstimate:
        """The estimate of `data` alone, with other covers for some columns."""
        made = self._estimate(self.contents.tables[0], lambda column: covers.get(column.name, column.cover))
        assert isinstance(made, LinkedEstimate)
        return made

    def _estimate(self, table: GroupTable, cover_of: Callable[[Published], Cover]) -> LinkedEstimate | BoxEstimate:
        held = self.contents
        shown = [BoxColumn(c.name, c.kind, c.role, cover_of(c), c.held) for c in table.columns]
        cell, link, order = table.pairs.cell, table.pairs.link, table.pairs.order
        if not table.linked:
            own = [replace(column, codes=column.codes[cell]) for column in shown]
            mass = order.numbers if table.weight is None else order.numbers * table.weight
            return BoxEstimate.from_rows(own, mass.astype(np.float64), order=order)
        hidden = [BoxColumn(c.name, c.kind, c.role, c.cover, c.held) for c in held.hidden]
        entry, people = (each.astype(np.int64) for each in (held.entry_batch, held.people))
        return LinkedEstimate.of_pairs(
            shown, cell, link, order, hidden, entry, people, weight=held.weight, called="batch"
        )  # fmt: skip

    # For the holder.

    def remember(self, keys: Callable[[], pa.Table], assigned: Assignment) -> None:
        """Keep which batch the original's rows are in, in memory only."""
        self._keys, self._assigned = keys, assigned

    def extend(
        self,
        table: Table,
        marginals: Iterable[Sequence[str]],
        private: str | Path | None = None,
        *,
        joint_k: bool | None = None,
        joint_time: float = JOINT_TIME,
        on_step: Step | None = None,
    ) -> Angel:
        """The same release with more marginals over the same batches, to be published in its place.

        A release that was read from its folder needs the `private` file that was saved with it. With `joint_k=True`,
        or if it was asked of the release, the new marginals are coarsened until all tables together keep k, which may
        take `joint_time` seconds.
        """
        extended = verb("extended")
        options = {"joint_k": joint_k, "joint_time": joint_time, "on_step": on_step}
        found: Angel = extended(self, table, marginals, private, **options)
        return found

    def save(
        self, folder: str | Path, *, overwrite: bool = False, format: Format = "csv",
        spreadsheet_safe: bool = False, private: str | Path | None = None,
    ) -> Path:  # fmt: skip
        """Write the tables and the manifest into a folder, and with `private` the original's batches into that file.

        Both take their places once every promise is found kept in the written files, or neither does.
        """
        publish = partial(super().save, folder, overwrite=overwrite, format=format, spreadsheet_safe=spreadsheet_safe)
        if private is None:
            return publish()
        if self._keys is None:
            do = "save it when it is made, from a table that memory holds, or leave private out"
            raise InputError("only a release that was just made knows its private file", do=do)
        path = check_place(private, folder, overwrite=overwrite)
        return write_keys(self._keys(), path, publish, overwrite=overwrite)

    # On disk.

    def columns_facts(self) -> list[dict[str, Any]]:
        """What the manifest says of each column, table by table."""
        names = zip(_OWN, self.contents.names, strict=True)
        facts = [column.to_dict() | {"table": t.name} for t in self.contents.tables for column in t.columns]
        facts += [column.to_dict() | {"table": "batches"} for column in self.contents.hidden]
        return facts + [{"name": name, "role": role, "kind": "number"} for role, name in names if name is not None]

    @classmethod
    def from_tables(cls, tables: Mapping[str, Rows], manifest: Mapping[str, Any]) -> Self:
        """The release that was saved as these tables."""
        facts = Manifest.from_dict(manifest)
        made = cls(contents_of(tables, manifest["columns"]), facts)
        made.contents.require_fit(made.k)
        first = made.contents.tables[0]
        told = (facts.counts["rows"], facts.counts["groups"], facts.counts["batches"])
        if told != (first.rows, len(first.sizes), len(made.contents.size)):
            raise ValueError("the manifest counts something else")
        return made

    def __repr__(self) -> str:
        return summary(self)


def require_joint(contents: Contents, k: int, *, seconds: float = JOINT_TIME) -> None:
    """Raise InputError where all tables together do not keep k, or where that is not decided within the time."""
    kept, found = decide(contents.tables, contents.size, k, seconds=seconds)
    if kept is None:
        raise InputError(
            f"whether all tables together keep k = {k} was not decided within {seconds:g} seconds",
            do="publish fewer marginals, raise joint_time, or leave joint_k out if k need not hold for the join",
        )
    if not kept:
        assert found is not None  # it breaks k
        names = " and ".join(f'"{name}"' for name in found.cells)
        many = "1 person" if found.high == 1 else f"{found.low} people"
        if found.low < found.high:
            many = f"between {found.low} and {found.high} people"
        raise InputError(
            f"together, the tables {names} show a cell of {many}, fewer than k = {k}",
            do="publish fewer marginals, or leave joint_k out if k need not hold for all tables together",
            value=str(found),
        )


RESTS = "the promises about sensitive values rest on the batches alone: every mixture of batches keeps them"
JOIN = "k for all tables together, which the batch number and their counts tie: see jali.audit"
LIKELY = (
    "cells of several tables that hold fewer than k people in most tables that fit what is published, but not in all"
)


def summary(release: Angel) -> str:
    """What `print(release)` shows."""
    counts, metrics, held = release.manifest.counts, release.manifest.metrics, release.contents
    number, count, weights = held.names
    rows, batches = many(counts["rows"], "row"), many(counts["batches"], "batch", "batches")
    lines = [f"Angel release: {rows} in {batches} and {many(counts['groups'], 'bucket')}"]
    for table in held.tables:
        tied = "" if table.linked else ", without batches"
        lines += [f"Published as {table.name}{tied}", *(f"  {column_line(column)}" for column in table.columns)]
    lines += ["Published as batches", *(f"  {sensitive_line(column)}" for column in held.hidden)]
    lines.append(f"  {count}: people of the {number} who have the value")
    lines += [f"  {weights}: weights, as the mean of each {number}"] if weights else []
    lines += _coarsened(release)
    lines.append("Guarantee")
    lines += [f"  {principle!r}: {release.promised(principle)}" for principle in release.principles]
    lines += against(release, f"against {ATTACKER}")
    lines.append(f"  {RESTS}")
    if counts["one_row_per_person_assumed"]:
        lines.append("  assuming one row per person")
    lines += ["Not covered", *(f"  {text}" for text in release.not_covered)]
    lines += cost_lines(metrics)
    return with_notes(lines, release)


def _coarsened(release: Angel) -> list[str]:
    """What was coarsened so that all tables together keep k."""
    coarsened = release.manifest.method.get("coarsened")
    if not isinstance(coarsened, Mapping) or not coarsened:
        return []
    named = "; ".join(f"{table} ({', '.join(map(str, columns))})" for table, columns in coarsened.items())
    return [f"Coarsened, since k holds for all tables together (joint_k): {named}"]
