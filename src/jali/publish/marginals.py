"""Marginals of a table: searched for, added to a base release, or judged as they are given."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jali.core.formats import free_name
from jali.core.progress import Step, watched
from jali.core.rows import Rows
from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.estimates.base import generator
from jali.graphical.marginal import Cache, Marginal, MarginalCounts, maximal
from jali.graphical.maxent import LARGEST, Divergence, cells_of, divergence, fit, tree_of
from jali.graphical.privacy.privacy import SECONDS, Attacker, Checker, Verdict, columns_of
from jali.graphical.search import SEARCHES, Found, Problem, Search, select
from jali.principles.base import Principle, principles_of, show
from jali.publish.checks import only_present, require_publishable, require_table
from jali.publish.generalize import manifest_of
from jali.publish.transparent import claim, is_asked
from jali.releases.base import Release
from jali.releases.chains import publish_chain
from jali.releases.column import node_numbers
from jali.releases.generalized import Generalized, Requirement
from jali.releases.load import load
from jali.releases.marginals import Marginals
from jali.releases.summary import an


def marginals(
    table: Table,
    principles: Requirement,
    *,
    base: Generalized | str | Path | None = None,
    search: Search = "greedy",
    max_sensitive: int | None = None,
    seed: int | np.random.Generator = 0,
    time_limit: float | None = None,
    epsilon: float | None = None,
    attacker: Attacker = "quasi",
    transparent: bool = False,
    on_step: Step | None = None,
) -> Marginals:
    """The collection of marginals that tells most about the table and keeps every promise as a whole.

    `base` is a generalized release of the table, or where it is saved, that stays among the marginals. `search` is
    "greedy", "walk" (random, with restarts, from the seed) or "exhaustive" (small tables). `max_sensitive` allows so
    many marginals with a sensitive column at most; after `time_limit` seconds the best so far is published. `epsilon`
    allows the relaxed check of diversity where the exact one is too large: a weaker promise, and the release says so.
    `attacker`: "quasi" knows everybody's quasi-identifiers, "marginals" only those of the person he looks for; the
    release says which. A collection that cannot be judged in 60 seconds is not published. `transparent=True` is
    refused: there is no proof against an attacker who knows how the collection was chosen.
    """
    required = principles_of(principles)
    require_table("marginals", table)
    if is_asked(transparent):
        claim({"name": "marginals"}, required, one_row=table.person is None)
    _check_asked(search, time_limit)
    random = generator(seed)
    require_publishable(table, pseudonyms=False)
    table = only_present(table)
    cache = Cache.of(table)
    mask = 0 if base is None else cache.domain.mask(base_marginal(table, cache, base))
    deadline = None if time_limit is None else time.monotonic() + time_limit
    with watched("searching for marginals", on_step) as step:
        checker = Checker(cache, required, columns_of(table), epsilon, attacker)
        problem = Problem(Divergence(cache), checker, mask, max_sensitive, deadline, step)
        found = select(problem, search, seed=random)
    told = {"name": "marginals", "base": base is not None, "search": search, "max_sensitive": max_sensitive}
    told |= {"attacker": attacker, "complete": found.complete} | ({} if epsilon is None else {"epsilon": epsilon})
    if found.verdict.relaxed:
        told["relaxed"] = found.verdict.reason
    return publish_collection(table, cache, found, required, told)


def inject(
    table: Table,
    base: Generalized | str | Path,
    principles: Requirement,
    *,
    search: Search = "greedy",
    max_sensitive: int | None = None,
    seed: int | np.random.Generator = 0,
    time_limit: float | None = None,
    epsilon: float | None = None,
    attacker: Attacker = "quasi",
    transparent: bool = False,
    on_step: Step | None = None,
) -> Marginals:
    """The base release among as many marginals as can safely be added to it: `marginals` with this base."""
    if base is None:
        raise InputError("inject needs a base release", do="name one, or use jali.marginals to search from scratch")
    return marginals(
        table, principles, base=base, search=search, max_sensitive=max_sensitive, seed=seed, time_limit=time_limit,
        epsilon=epsilon, attacker=attacker, transparent=transparent, on_step=on_step,
    )  # fmt: skip


def _check_asked(search: str, limit: object) -> None:
    if search not in SEARCHES:
        raise InputError(f'no search "{search}"', do=nearest(str(search), SEARCHES))
    if limit is not None:
        _check_limit(limit)


def _check_limit(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0:
        raise InputError("time_limit is a number of seconds above 0", got=repr(limit))


def publish_collection(
    table: Table, cache: Cache, found: Found, principles: tuple[Principle, ...], method: Mapping[str, Any]
) -> Marginals:
    """The release of a collection, read back from its own tables and judged from them alone."""
    columns = [*table.quasi, *table.sensitive]
    levels = [sorted({m.levels[i] for m in found.marginals if m.levels[i] >= 0}) for i in range(len(columns))]
    chains = tuple(publish_chain(column, own) for column, own in zip(columns, levels, strict=True))
    manifest = manifest_of(Marginals.kind, table, principles, method, groups=0, suppressed=0)
    facts: dict[str, Any] = {name: manifest.counts[name] for name in ("rows", "people", "one_row_per_person_assumed")}
    facts |= {"marginals": len(found.marginals)}
    manifest = replace(manifest, counts=facts, metrics={"kl": found.kl})
    told = manifest.to_dict() | {
        "columns": [chain.to_dict() for chain in chains],
        "marginals": [cache.domain.named(marginal) for marginal in found.marginals],
    }
    tables = {
        f"marginal_{at}": Rows(_labelled(table, cache.counts(marginal)))
        for at, marginal in enumerate(found.marginals, start=1)
    }
    release = Marginals.from_tables(tables, told)
    release.manifest = manifest
    release.origin = table.origin
    release.search = {"checked": found.checked}
    release.verify()
    return release


def _labelled(table: Table, counts: MarginalCounts) -> pa.Table:
    """A marginal's cells by their labels."""
    columns = [*table.quasi, *table.sensitive]
    shown: dict[str, pa.Array] = {}
    for at, i in enumerate(counts.marginal.attributes):
        column, level = columns[i], counts.marginal.levels[i]
        hierarchy = column.hierarchy if column.role == "quasi" else None
        labels = column.labels if hierarchy is None else hierarchy.levels[level].labels
        shown[column.name] = labels.take(pa.array(counts.cells[:, at]))
    return pa.table([*shown.values(), pa.array(counts.n)], names=[*shown, free_name("people", shown)])


# -- a base ------------------------------------------------------------------------------------------------------


def base_marginal(table: Table, cache: Cache, release: Generalized | str | Path) -> Marginal:
    """The marginal that a generalized release of this table is; refused where it is none, or of another table."""
    given: object = load(release) if isinstance(release, (str, Path)) else release
    base = given.grouped_rows if isinstance(given, Release) else None
    if base is None or not base.levels:
        got = an(f"{given.kind} release") if isinstance(given, Release) else type(given).__name__
        do = "use jali.generalize: its releases show each column at one level"
        raise InputError("the base must show every column at one level of its hierarchy", got=got, do=do)
    for column in base.of_role("quasi"):
        if column.generalized_by_group:
            what = f'the base shows "{column.name}" group by group, not at one level of its hierarchy'
            raise InputError(what, do='generalize with show="taxonomy"')
    if base.hidden_rows.any():
        raise InputError("the base has suppressed rows, which no marginal shows", do="generalize without suppress")
    names = {column.name for column in (*table.quasi, *table.sensitive)}
    own = {column.name for column in base.columns if column.role in ("quasi", "sensitive")}
    if names != own or base.rows != table.rows:
        raise InputError("the base was made from another table", do="give the table that it was made from")
    levels = {column.name: 0 for column in table.sensitive}
    levels |= {column.name: _level_of(table, base, column.name) for column in table.quasi}
    marginal = cache.domain.marginal(levels)
    if not _same_cells(base, _labelled(table, cache.counts(marginal))):
        raise InputError("the base was made from another table", do="give the table that it was made from")
    return marginal


def _level_of(table: Table, base: Generalized, name: str) -> int:
    """The level of the table's hierarchy whose nodes are those of the published column."""
    hierarchy, codes = table.hierarchy(name), np.unique(table[name].codes)
    nodes = node_numbers(base[name], table[name])[codes]
    for level in range(hierarchy.height + 1):
        own = hierarchy.maps[level][codes]
        if len(np.unique(own)) == len(np.unique(nodes)) == len({*zip(own.tolist(), nodes.tolist(), strict=True)}):
            return level
    raise InputError(f'the base shows "{name}" at no level of its hierarchy', do="give the table that it was made from")


def _same_cells(base: Generalized, cells: pa.Table) -> bool:
    """Whether the published rows, counted, are these cells; a column that is always * is left out of both."""
    *names, people = cells.column_names
    shown = pa.table({name: base[name].labels.take(pa.array(base[name].codes)) for name in names})
    counted = shown.group_by(names).aggregate([([], "count_all")])
    one, two = (
        dict(zip(zip(*(of[name].to_pylist() for name in names), strict=True), of[count].to_pylist(), strict=True))
        for of, count in ((counted, "count_all"), (cells, people))
    )
    return one == two


# -- a given collection ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CollectionVerdict:
    """Whether marginals may be published together, why, and the cell that breaks it; for the holder of the table."""

    holds: bool
    reason: str
    cell: Mapping[str, str | None] | None  # what the worst cell shows, by column
    principle: Principle | None
    reached: float
    decomposable: bool
    kl: float | None  # nats; None where the collection is not decomposable and too large to be fitted

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        lines = [
            "The marginals may be published together" if self.holds else "The marginals must not be published together"
        ]
        lines.append(f"  {self.reason}")
        if self.cell:
            where = ", ".join(f"{name} {value}" for name, value in self.cell.items())
            lines.append(f"  the worst combination: {where} (reaches {show(self.reached)})")
        if self.kl is not None:
            lines.append(f"  KL-divergence {self.kl:.4f} nats")
        return "\n".join(lines)


def check_marginals(
    table: Table,
    collection: Sequence[Mapping[str, int]],
    principles: Requirement,
    *,
    epsilon: float | None = None,
    attacker: Attacker = "quasi",
    time_limit: float = SECONDS,
) -> CollectionVerdict:
    """Whether these marginals (the level of each column that one has) keep every promise when published together.

    `attacker` and `epsilon` as for `marginals`. What cannot be judged in `time_limit` seconds does not hold.
    """
    require_table("check_marginals", table)
    _check_limit(time_limit)
    listed = isinstance(collection, Sequence) and all(isinstance(levels, Mapping) for levels in collection)
    if not listed or not collection:
        raise InputError("a collection is a list of marginals", do='e.g. [{"age": 2, "occupation": 0}, {"race": 0}]')
    table = only_present(table)
    cache = Cache.of(table)
    own = maximal(cache.domain.marginal(levels) for levels in collection)
    found = Checker(cache, principles_of(principles), columns_of(table), epsilon, attacker, time_limit).check(own)
    tree = tree_of(cache.domain, own)
    kl = None
    if tree is not None:
        kl = Divergence(cache).kl([cache.domain.mask(marginal) for marginal in own])
    elif cells_of(cache.domain, own) <= LARGEST:
        kl = divergence(cache, fit(cache, own))
    return CollectionVerdict(
        found.holds, found.reason, _cell(table, found), found.principle, found.reached, tree is not None, kl
    )


def _cell(table: Table, found: Verdict) -> dict[str, str | None] | None:
    if found.worst is None:
        return None
    shown = {}
    for name, (level, node) in found.worst.items():
        column = table[name]
        hierarchy = column.hierarchy if column.role == "quasi" else None
        labels = column.labels if hierarchy is None else hierarchy.levels[level].labels
        shown[name] = labels[node].as_py()
    return shown
