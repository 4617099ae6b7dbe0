"""Sensitive values reach a search through one gate; whoever reads them elsewhere is named here, with the reason.

Against somebody who knows the algorithm a release gives away what its search saw. So a new place that judges groups or
reads values fails this test until it goes through `search/gate.py` or is named below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import jali
from jali.search.gate import recorded, recording
from jali.search.lattice.lattice import Lattice
from jali.search.mondrian import mondrian

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "jali"
GATE = "search/gate.py"

# Calls that give a verdict outside the gate.
VERDICTS = {
    "publish/partition.py": "verifies what is about to be published",
    "publish/generalize.py": "verifies what is about to be published, where groups are shown alike",
    "publish/drafts.py": "verifies what is about to be published",
    "publish/repair.py": "says of the published values as one group that a promise cannot be kept",
    "publish/checks.py": "says in an error why levels that the holder gave cannot be published",
    "search/batches.py": "the least l whose buckets keep a promise, which follows from the multiset (decision 43)",
    "search/halves.py": "decision 41 accounts for its verdicts; dealt batches follow from the multiset (decision 44)",
    "search/shift.py": "judges shifts of a concealed release; replayed as a whole",
}

# Modules that read the value of an entry, or joint values, to count people or costs.
VALUES = {
    "search/batches.py": "counts of pieces of the curve, for the gate; dealing reads the multiset (decision 9)",
    "search/common.py": "counts of unions, for the gate; suppressed tuples, which the release says are given away",
    "search/halves.py": "counts of halves, for the proof of decision 41; what is dealt is the multiset (decision 44)",
    "search/lattice/compiled.py": "counts of lattice nodes; the compiled twin finds the same node as the generic one",
    "search/lattice/costs.py": "the cost by KL, which is noted as a comparison",
    "search/lattice/portions.py": "counts of nodes beyond memory, whose verdicts are those of memory (decision 102)",
    "search/lattice/tally.py": "counts of lattice nodes, for the gate and the cost by KL",
    "search/spilled.py": "counts of halves, whose groups are those of halves.py from the same draws (decision 103)",
    "search/splits.py": "the gain by KL, which is noted as a comparison",
    "search/items.py": "counts of parts, for the gate; the compiled twin gives the same groups as the generic",
    "search/trunk.py": "counts of parts, for the gate; its groups are those of the search in memory (decision 100)",
    "search/relaxed.py": "counts of parts, for the gate; its groups are those of the search in memory (decision 114)",
    "search/screen.py": "who is present, for the proof of decision 45",
    "search/peeling.py": "counts of groups for the gate, and the cost by KL",
    "publish/drafts.py": "the table of batches, as it is published",
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for room in ("search", "publish"):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())


def verdicts(tree: ast.Module) -> bool:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(
        (isinstance(call, ast.Name) and call.id == "hold")
        or (isinstance(call, ast.Attribute) and call.attr in {"holds", "alone"})
        for call in calls
    )


def values(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in {"value", "joint"} for node in ast.walk(tree))


def test_groups_are_judged_through_the_gate_alone() -> None:
    assert {name for name, tree in sources() if verdicts(tree)} == {GATE, *VERDICTS}


def test_sensitive_values_are_read_where_it_is_said_and_nowhere_else() -> None:
    assert {name for name, tree in sources() if values(tree)} == {*VALUES}


def table() -> jali.Table:
    frame = pa.table({"x": [0, 0, 2, 2, 6, 6, 7], "d": list("aabbcca")})
    return jali.table(frame, quasi={"x": jali.bands(2, 4, low=0, high=7)}, sensitive=["d"])


def test_a_record_says_what_was_judged_and_stays_off_otherwise() -> None:
    """Each recorded verdict is that of its parts, judged again from the table."""
    some = table()
    promise = (jali.DistinctDiversity(2),)
    assert not recording()
    plain = mondrian(some, promise)
    with recorded() as trace:
        assert recording()
        boxes = mondrian(some, promise)
        Lattice(some, promise, on_step=lambda done, total: None).best("kl", 0)
    assert not recording()
    assert np.array_equal(plain.group, boxes.group)
    assert trace.verdicts
    assert trace.costs == ["lattice nodes by kl"]
    x, d = some["x"].codes, some["d"].codes
    combinations = [tuple(row) for row in some.frequencies.codes.tolist()]
    for one in trace.verdicts:
        parts: dict[int, set[int]] = {}
        for combination, part in zip(one.combination.tolist(), one.part.tolist(), strict=True):
            who = np.flatnonzero(x == combinations[combination][0])
            parts.setdefault(part, set()).update(d[who].tolist())
        assert one.held == all(len(own) >= 2 for own in parts.values())
