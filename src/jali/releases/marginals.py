"""Marginals releases: a collection of generalized marginals, which an analyst combines by maximum entropy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from jali.core.arrays import EXACT, combine
from jali.core.charts import Picture
from jali.core.formats import free_name, to_native
from jali.core.rows import Rows
from jali.core.text import joined
from jali.errors import InputError, InternalError
from jali.graphical.estimate import Fitted, MarginalColumn, MaxEntropyEstimate
from jali.graphical.inference import Network
from jali.graphical.marginal import ABSENT, Cache, Domain, Marginal, MarginalCounts
from jali.graphical.maxent import Tree, fit, tree_of
from jali.graphical.privacy.block import smallest_group
from jali.graphical.privacy.privacy import Checker, Verdict
from jali.principles import AlphaAnonymity, KAnonymity, Principle
from jali.principles.counts import Counts
from jali.releases.base import Manifest, Reading, Release
from jali.releases.chains import Chain, chain_of, drawn, sentences
from jali.releases.column import Published, whole_numbers
from jali.releases.summary import Words, cost_lines, many, with_notes

if TYPE_CHECKING:
    from jali.cover.cover import Cover

PICTURE = "junction-tree.svg"
ATTACKERS: Mapping[str, str] = {
    "quasi": "an attacker who knows everybody's quasi-identifiers and combines them with the marginals by maximum "
    "entropy, over the values that some whole table gives each person",
    "marginals": "an attacker who knows one person's quasi-identifiers and combines the marginals by maximum entropy; "
    "not one who knows the table of everybody's quasi-identifiers",
}
"""Who the promises about sensitive values are made against."""
FROM_FILES = (
    "that attacker was judged beside the table when the release was made, and the table is not published: from these "
    "files alone the promises can be judged again for an attacker who knows one person's quasi-identifiers"
)
NOT_COVERED = (
    "what an attacker knows beyond the quasi-identifiers, e.g. somebody's sensitive value",
    "every single table that agrees with the marginals: promises about sensitive values speak of what is expected",
    "whether somebody is in the table",
    "what follows from how the marginals were chosen, for whoever knows the algorithm",
    "another release of the same table beside this one",
)


def promise_of(principle: Principle, attacker: str) -> str:
    """What a promise means for a collection, against this attacker, in one plain sentence without a full stop."""
    parts = []
    if isinstance(principle, KAnonymity) or (isinstance(principle, AlphaAnonymity) and principle.k > 1):
        k = principle.k
        parts.append(
            f"each marginal by itself shows every person among at least {k} people ({k}-link anonymity), and the "
            f"marginals together never show that a cell of the quasi-identifiers holds from 1 to {k - 1} people "
            f"({k}-combinatorial anonymity)"
        )
    if not isinstance(principle, KAnonymity):
        where = "in each cell"
        where += "" if attacker == "marginals" else ", and of each person beside everybody's quasi-identifiers"
        parts.append(f"for the sensitive values that maximum entropy expects {where}: {principle.promise()}")
    return "; ".join(parts)


class PublishedMarginal(NamedTuple):
    """One marginal: the level of each of its columns, as the table numbers them, and its counts."""

    levels: dict[str, int]
    counts: pa.Table


class Marginals(Release):
    """A collection of generalized marginals with the number of people in each cell that has somebody."""

    kind: ClassVar[str] = "marginals"
    words: ClassVar[Words] = Words(alike="People who look alike in each marginal, at least")
    one_grouping: ClassVar[bool] = False  # there are no groups
    needs_hierarchies: ClassVar[bool] = True

    def __init__(self, chains: tuple[Chain, ...], counts: Sequence[MarginalCounts], manifest: Manifest) -> None:
        self.chains, self.manifest, self.origin = chains, manifest, "arrow"
        self.cache = Cache(Domain(tuple(chain.attribute for chain in chains)), tuple(counts))
        self.search: Mapping[str, int] = {}

    @property
    def collected(self) -> Marginals:
        """The release itself."""
        return self

    @property
    def collection(self) -> tuple[Marginal, ...]:
        """The marginals, their levels counted over what was published."""
        return tuple(source.marginal for source in self.cache.sources)

    @property
    def columns(self) -> tuple[Published, ...]:
        """The columns, each at the finest level that some marginal shows."""
        return tuple(chain.published for chain in self.chains)

    @property
    def rows(self) -> int:
        """How many people every marginal counts."""
        return self.cache.total

    @property
    def smallest_cell(self) -> int:
        """How many people any marginal links somebody to at the least: the k of k-link anonymity."""
        return min(smallest_group(self.cache, marginal)[0] for marginal in self.collection)

    @cached_property
    def marginals(self) -> tuple[PublishedMarginal, ...]:
        """Each marginal: the level of each column, and its cells with the number of people."""
        return tuple(
            PublishedMarginal(self._levels(source.marginal), self._table(source)) for source in self.cache.sources
        )

    def _levels(self, marginal: Marginal) -> dict[str, int]:
        return {self.chains[i].name: self.chains[i].levels[marginal.levels[i]] for i in marginal.attributes}

    def _table(self, source: MarginalCounts) -> pa.Table:
        shown: dict[str, pa.Array] = {}
        for at, i in enumerate(source.marginal.attributes):
            labels = pa.array(self.chains[i].labels[source.marginal.levels[i]], pa.string())
            shown[self.chains[i].name] = labels.take(pa.array(source.cells[:, at]))
        return pa.table([*shown.values(), pa.array(source.n)], names=[*shown, free_name("people", shown)])

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The published tables, one a marginal: marginal_1, marginal_2, …"""
        return {f"marginal_{at}": marginal.counts for at, marginal in enumerate(self.marginals, start=1)}

    def frame(self, kind: str | None = None, *, marginal: int = 1) -> Any:
        """One of the published tables (the first is 1), as "pandas", "polars" or "arrow"."""
        if isinstance(marginal, bool) or not isinstance(marginal, int) or not 1 <= marginal <= len(self.marginals):
            raise InputError(
                "no such marginal", got=repr(marginal), do=f"give a number from 1 to {len(self.marginals)}"
            )
        return to_native(self.marginals[marginal - 1].counts, kind or self.origin)

    @cached_property
    def graph(self) -> Tree | None:
        """The junction tree of the marginals; None where they are not decomposable."""
        return tree_of(self.cache.domain, self.collection)

    def independencies(self) -> tuple[str, ...]:
        """What the maximum-entropy estimate takes for granted, in sentences."""
        return sentences(self.chains, self.collection, self.graph)

    def picture(self) -> Picture:
        """The junction tree; marginals without one stand below each other."""
        return drawn(self.chains, self.collection, self.graph)

    def _repr_html_(self) -> str:
        return joined([super()._repr_html_(), self.picture().svg("junction-tree")])

    @property
    def attacker(self) -> str:
        """The attacker of the promises: "quasi" or "marginals", the weaker one, where the manifest does not say."""
        return "quasi" if self.manifest.method.get("attacker") == "quasi" else "marginals"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the promises do not speak of."""
        knows = () if self.attacker == "quasi" else ("an attacker who knows everybody's quasi-identifiers",)
        return (*knows, *NOT_COVERED)

    def promised(self, principle: Principle) -> str:
        """What a promise means for a collection."""
        return promise_of(principle, self.attacker)

    def counts(self) -> Counts:
        """A collection has no single table of groups."""
        raise InputError("a marginals release has no groups", do="ask release.verdict() or release.estimate()")

    def verdict(self, principles: tuple[Principle, ...] | None = None) -> Verdict:
        """Every promise, or other principles, judged for all marginals together, from the published tables alone.

        The attacker is the one who knows a single person's quasi-identifiers: everybody's are not published.
        """
        columns = tuple(chain.judged for chain in self.chains if chain.role == "sensitive")
        asked = self.principles if principles is None else principles
        return Checker(self.cache, asked, columns, self.manifest.method.get("epsilon")).check(self.collection)

    def kept(self) -> dict[str, bool]:
        """Whether each promise is kept, from the published tables alone."""
        return {repr(principle): self.verdict((principle,)).holds for principle in self.principles}

    def verify(self) -> None:
        """Judge every promise again from the published tables alone; a broken one is an InternalError."""
        try:
            self.estimate_parts()
            verdict = self.verdict()
        except InputError as problem:
            raise InternalError(f"the marginals do not fit together; nothing was written: {problem.what}") from None
        if not verdict.holds:
            raise InternalError(f"the release does not keep its promises; nothing was written: {verdict.reason}")

    def estimate_parts(self) -> Network | Fitted:
        """The distribution behind the estimate; marginals that contradict each other are refused."""
        if self.graph is not None:
            return Network(self.cache, self.graph)
        fitted = fit(self.cache, self.collection)
        if fitted.gap > 1e-6:
            raise InputError(
                "the marginals contradict each other, or could not be fitted", got=f"a gap of {fitted.gap:.2g}"
            )
        return Fitted(fitted)

    def estimate(self) -> MaxEntropyEstimate:
        """What an analyst can infer: the distribution of highest entropy that agrees with every marginal."""
        columns = tuple(chain.column for chain in self.chains)
        return MaxEntropyEstimate(columns, self.cache, self.collection, self.estimate_parts())

    def inferred(self, cover_of: Callable[[Published], Cover]) -> MaxEntropyEstimate:
        """The estimate where the finest nodes of each column cover what `cover_of` says; it compares values only."""
        columns = tuple(MarginalColumn(c.name, c.kind, c.role, cover_of(c)) for c in self.columns)
        return MaxEntropyEstimate(columns, self.cache, self.collection, self.estimate_parts(), joint=False)

    def columns_facts(self) -> list[dict[str, Any]]:
        """What the manifest says of each column."""
        return [chain.to_dict() for chain in self.chains]

    def written_facts(self) -> dict[str, Any]:
        """The manifest as it is written, with the levels of each marginal."""
        told = {"attacker": ATTACKERS[self.attacker], "marginals": [marginal.levels for marginal in self.marginals]}
        return super().written_facts() | told

    def _pictures(self) -> dict[str, str]:
        """The junction tree."""
        return {PICTURE: self.picture().svg_file()}

    def check_written(self, place: str | Path, read: Reading) -> None:
        """Read what was written back: it must say what this release says, and keep every promise by itself."""
        try:
            written = self._read_back(place, read)
            written.verify()
        except InputError as problem:
            raise InternalError(f"the files cannot be read back; nothing was written: {problem.what}") from None
        there = written.tables
        same = all(name in there and _sorted(table).equals(_sorted(there[name])) for name, table in self.tables.items())
        if len(written.tables) != len(self.tables) or not same:
            raise InternalError(
                "the files do not say what the release says; nothing was written: please report this bug"
            )

    @classmethod
    def from_tables(cls, tables: Mapping[str, Rows], manifest: Mapping[str, Any]) -> Self:
        """The release that was saved as these tables."""
        chains = tuple(chain_of(told) for told in manifest["columns"])
        names = sorted(tables, key=lambda name: int(re.fullmatch(r"marginal_(\d+)", name)[1]))  # type: ignore[index]
        if len(names) != len(manifest["marginals"]):
            raise ValueError("the manifest counts other marginals")
        told = zip(manifest["marginals"], names, strict=True)
        counts = [_counted(chains, levels, tables[name].plain()) for levels, name in told]
        made = cls(chains, counts, Manifest.from_dict(manifest))
        if made.rows != made.manifest.counts["rows"]:
            raise ValueError("the manifest counts something else")
        return made

    def __repr__(self) -> str:
        lines = [
            f"Marginals release: {many(self.rows, 'person', 'people')} in {many(len(self.marginals), 'marginal')}",
            "Published",
        ]
        for at, (levels, counts) in enumerate(self.marginals, start=1):
            by_name = {chain.name: chain for chain in self.chains}
            shown = ", ".join(by_name[name].like(level) for name, level in levels.items())
            lines.append(f"  marginal {at}: {shown} ({many(counts.num_rows, 'cell')})")
        lines += ["Guarantee", *(f"  {principle!r}: {self.promised(principle)}" for principle in self.principles)]
        if "relaxed" in self.manifest.method:
            lines.append(f"  weaker than that: {self.manifest.method['relaxed']}")
        lines += [f"  against {ATTACKERS[self.attacker]}", "  assuming one row per person"]
        lines += [f"  {FROM_FILES}"] if self.attacker == "quasi" else []
        lines += ["Not covered", *(f"  {text}" for text in self.not_covered), *cost_lines(self.manifest.metrics)]
        return with_notes(lines, self)


def _counted(chains: Sequence[Chain], levels: Mapping[str, int], table: pa.Table) -> MarginalCounts:
    """A marginal's counts, from its published table."""
    names = [chain.name for chain in chains]
    own = [ABSENT] * len(chains)
    columns = []
    for name, level in levels.items():
        chain = chains[names.index(name)]
        own[names.index(name)] = chain.levels.index(level)
        number = {label: node for node, label in enumerate(chain.labels[chain.levels.index(level)])}
        codes = np.array([number[text] for text in table[name].to_pylist()], dtype=np.int64)
        columns.append((names.index(name), codes, len(number)))
    columns.sort(key=lambda column: column[0])
    n = whole_numbers(table[free_name("people", levels)])
    rank, first = combine([(codes, nodes) for _, codes, nodes in columns], table.num_rows)
    if not columns or len(first) != table.num_rows or (n < 1).any() or n.sum(dtype=np.float64) >= EXACT:
        raise ValueError("a marginal has a cell twice, or one with nobody, or more people than can be added up")
    cells = np.stack([codes[first] for _, codes, _ in columns], axis=1).astype(np.int32)
    return MarginalCounts(Marginal(tuple(own)), cells, n[first].astype(np.int64), rank)


def _sorted(table: pa.Table) -> pa.Table:
    """The same rows in an order that does not depend on where they were written."""
    return table.sort_by([(name, "ascending") for name in table.column_names])
