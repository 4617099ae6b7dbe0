"""`make bench-peers`: the same work by other tools, in one run. They are run as their documentation says."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from typing import Any

import jali
from benchmarks.peers.estimates import marginals
from benchmarks.table import show, timed
from jali.datasets.columns import rows
from jali.search.mondrian import mondrian

QUASI = ["age", "sex", "race", "marital-status", "education", "native-country", "workclass"]
SENSITIVE = "occupation"


def quietly(work: Any) -> Any:
    """Run a tool without what it prints."""

    def run() -> Any:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return work()

    return run


def auditing(frame: Any) -> None:
    """pycanon's figures, one call each, beside jali's audit, which gives all of them."""
    from pycanon import anonymity

    calls = {
        "k": lambda: anonymity.k_anonymity(frame, QUASI),
        "distinct l": lambda: anonymity.l_diversity(frame, QUASI, [SENSITIVE]),
        "entropy l": lambda: anonymity.entropy_l_diversity(frame, QUASI, [SENSITIVE]),
        "recursive c, l": lambda: anonymity.recursive_c_l_diversity(frame, QUASI, [SENSITIVE]),
        "t": lambda: anonymity.t_closeness(frame, QUASI, [SENSITIVE]),
    }
    seconds, audit = timed(lambda: jali.audit(frame, quasi=QUASI, sensitive=[SENSITIVE]), repeat=3)
    ours = {
        "k": audit.k,
        "distinct l": audit.distinct_l,
        "entropy l": round(audit.entropy_l, 4),
        "t": round(audit.t, 4),
    }
    table, total = [], 0.0
    for name, call in calls.items():
        taken, answer = timed(quietly(call))
        total += taken
        table.append([name, taken, str(answer), str(ours.get(name, audit.recursive_c.get(2)))])
    table.append(["all of them", total, "", ""])
    show(f"pycanon, {len(frame):,} rows, raw census", ["figure", "seconds", "pycanon says", "jali says"], table)
    show("jali.audit, all figures", ["seconds", "ratio"], [[seconds, total / seconds]])


def full_domain(frame: Any) -> None:
    """anjana's full-domain search beside jali's, k = 10, with and without entropy 6."""
    from anjana.anonymity import entropy_l_diversity, k_anonymity

    hierarchies = {c: {i: [r[i] for r in _levels(c, frame)] for i in range(len(rows(c)[0]))} for c in QUASI}
    text = frame.astype(str)
    quasi = {c: jali.taxonomy(rows(c)) for c in QUASI}
    k, entropy = jali.KAnonymity(10), jali.EntropyDiversity(6)
    work = [
        ("k = 10, 5 % suppressed", lambda: k_anonymity(text, [], QUASI, 10, 5, hierarchies), [k]),
        (
            "k = 10, entropy 6, 5 % suppressed",
            lambda: entropy_l_diversity(text, [], QUASI, SENSITIVE, 10, 6, 5, hierarchies),
            [k, entropy],
        ),
    ]
    table = []
    for name, theirs, principles in work:
        taken, found = timed(quietly(theirs))
        ours, release = timed(lambda p=principles: _publish(text, quasi, p), repeat=3)
        groups = found.groupby(QUASI).ngroups if len(found) else 0
        table.append(
            [name, taken, groups, len(found), ours, release.manifest.counts["groups"], release.rows, taken / ours]
        )
    show(
        f"anjana and jali, {len(frame):,} rows: frame in, published table out",
        ["requirement", "anjana s", "groups", "rows", "jali s", "groups ", "rows ", "ratio"],
        table,
    )


def boxes(frame: Any) -> None:
    """anonypy's Mondrian beside jali's partition, k = 5: the partitioner alone, then a published table."""
    from anonypy.anonypy import anonymize
    from anonypy.mondrian import Mondrian

    category = frame.copy()
    for name in QUASI:
        if name != "age":
            category[name] = category[name].astype("category")
    promises = [jali.KAnonymity(5)]
    table = jali.table(frame, quasi={c: jali.taxonomy(rows(c)) for c in QUASI}, sensitive=[SENSITIVE])
    jali.partition(table, promises)  # encoded, and compiled, before the clock starts
    theirs, parts = timed(quietly(lambda: Mondrian(category, QUASI, SENSITIVE).partition(5)))
    ours, found = timed(lambda: mondrian(table, promises), repeat=3)
    show(
        f"anonypy and jali, {len(frame):,} rows, k = 5: the partitioner alone",
        ["anonypy s", "groups", "jali s", "groups ", "ratio"],
        [[theirs, len(parts), ours, found.groups, theirs / ours]],
    )
    more, published = timed(quietly(lambda: anonymize(category, parts, QUASI, SENSITIVE)))
    ours, release = timed(lambda: jali.partition(table, promises), repeat=3)
    smallest = min(sum(row["count"] for row in group) for group in _grouped(published))
    show(
        f"anonypy and jali, {len(frame):,} rows, k = 5: published table out; jali's also measured and checked again",
        ["anonypy s", "groups", "smallest", "jali s", "groups ", "smallest ", "ratio"],
        [
            [
                theirs + more,
                len(_grouped(published)),
                smallest,
                ours,
                release.groups.num_rows,
                jali.audit(release).k,
                (theirs + more) / ours,
            ],
        ],
    )


def _grouped(found: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in found:
        groups.setdefault(tuple(str(row[name]) for name in QUASI), []).append(row)
    return list(groups.values())


def _publish(frame: Any, quasi: dict[str, Any], principles: list[Any]) -> Any:
    table = jali.table(frame, quasi=quasi, sensitive=[SENSITIVE])
    return jali.generalize(table, principles, suppress=0.05)


def _levels(column: str, frame: Any) -> list[tuple[str, ...]]:
    present = set(frame[column].astype(str))
    return [row for row in rows(column) if row[0] in present]


PEERS: dict[str, tuple[Any, int]] = {
    "pycanon": (auditing, 45_222), "anjana": (full_domain, 45_222), "anonypy": (boxes, 30_000),
    "mbi": (marginals, 45_222),
}  # fmt: skip


def main(names: list[str]) -> None:
    """Print the tables of the named tools, or of all."""
    frame = jali.datasets.census(rows=45_222, seed=0).frame("pandas")
    for name in names or PEERS:
        compare, rows = PEERS[name]
        compare(frame.head(rows))


main(sys.argv[1:])
