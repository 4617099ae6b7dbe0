"""Laws of beliefs: Theorem 3.1 is what counting worlds finds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.errors import InputError
from oracles.beliefs import in_boxes, posterior, prior
from oracles.often import examples

PAIRS = [(q, s) for q in ("a", "b", "c") for s in ("flu", "cold")]
TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")]
SHOWN = [lambda q: q, lambda q: "y" if q == "c" else "x", lambda q: "*"]


def population(weights: dict[tuple[str, str], int]) -> pa.Table:
    return pa.table({
        "q": [q for q, _ in weights], "s": [s for _, s in weights], "frequency": [float(w) for w in weights.values()],
    })  # fmt: skip


@examples(0.25)
@given(st.lists(st.integers(0, 4), min_size=6, max_size=6), st.data(), st.integers(0, 2))
def test_theorem_3_1_is_what_counting_worlds_finds(counts: list[int], data: st.DataObject, level: int) -> None:
    weights = {pair: n for pair, n in zip(PAIRS, counts, strict=True) if n}
    if not weights:
        return
    rows = data.draw(st.lists(st.sampled_from(list(weights)), min_size=2, max_size=4))
    frame = pa.table({"q": [q for q, _ in rows], "s": [s for _, s in rows]})
    table = jali.table(frame, quasi={"q": jali.taxonomy(TREE)}, sensitive=["s"])
    release = jali.generalize(table, [jali.KAnonymity(1)], levels={"q": level})
    found = jali.beliefs(release, population(weights | dict.fromkeys(set(PAIRS) - set(weights), 0)))
    joint = {pair: Fraction(n) for pair, n in weights.items()}
    published = Counter((SHOWN[level](q), s) for q, s in rows)
    told = {q for q, _ in weights if any(shown == SHOWN[level](q) for shown, _ in published)}
    assert set(found.quasi["q"].to_pylist()) == told
    assert found.outside == len({q for q, _ in weights}) - len(told)
    worlds = {q: posterior(joint, published, SHOWN[level], q) for q in told}
    for row in found.frame().to_pylist():
        assert row["prior"] == pytest.approx(float(prior(joint, row["q"], row["s"])))
        believed = worlds[row["q"]]
        if believed:  # else nobody with q can be in the table
            assert row["posterior"] == pytest.approx(float(believed.get(row["s"], 0)))


def test_suppressed_groups_are_believed_as_one() -> None:
    """Nobody knows which combination a suppressed row had: all that is not shown is its box."""
    rows = [("a", "flu"), ("a", "cold"), ("b", "flu"), ("c", "cold")]
    frame = pa.table({"q": [q for q, _ in rows], "s": [s for _, s in rows]})
    release = jali.generalize(
        jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"]),
        [jali.KAnonymity(2)],
        suppress=0.5,
        levels={"q": 0},
    )
    weights = dict(zip(PAIRS, (3, 1, 2, 2, 1, 5), strict=True))
    joint = {pair: Fraction(n) for pair, n in weights.items()}
    shown = lambda q: q if q == "a" else "*"  # noqa: E731
    published = Counter((shown(q), s) for q, s in rows)
    for row in jali.beliefs(release, population(weights)).frame().to_pylist():
        assert row["posterior"] == pytest.approx(float(posterior(joint, published, shown, row["q"])[row["s"]]))


def test_theorem_5_1_a_generalization_can_breach_what_its_table_does_not() -> None:
    """Figures 5 and 6 of the paper."""
    joint = {("q1", "s1"): (0.15, 1), ("q1", "s2"): (0.35, 1), ("q2", "s1"): (0.25, 35), ("q2", "s2"): (0.25, 15)}
    frame = pa.table({
        "q": [q for (q, _), (_, n) in joint.items() for _ in range(n)],
        "s": [s for (_, s), (_, n) in joint.items() for _ in range(n)],
    })  # fmt: skip
    people = jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"])
    given_population = pa.table({
        "q": [q for q, _ in joint], "s": [s for _, s in joint], "frequency": [f for f, _ in joint.values()],
    })  # fmt: skip
    itself, merged = (jali.generalize(people, [jali.KAnonymity(2)], levels={"q": level}) for level in (0, 1))
    before, after = jali.beliefs(itself, given_population), jali.beliefs(merged, given_population)
    exact, hidden = ({(r["q"], r["s"]): r["posterior"] for r in found.frame().to_pylist()} for found in (before, after))
    assert exact["q1", "s1"] == pytest.approx(0.5)
    first, second = 36 * 0.15 / 0.4, 16 * 0.35 / 0.6
    assert hidden["q1", "s1"] == pytest.approx(first / (first + second))
    assert before.breaches(0.31, 0.58).num_rows == 0
    assert {r["s"] for r in after.breaches(0.31, 0.58).to_pylist()} == {"s1", "s2"}


def test_disclosures_and_breaches_are_those_of_the_definitions(tmp_path: Path) -> None:
    frame = pa.table({"q": ["a"] * 3 + ["b"] * 2, "s": ["flu"] * 3 + ["flu", "cold"]})
    release = jali.generalize(
        jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"]), [jali.KAnonymity(2)], levels={"q": 0}
    )
    weights = dict(zip(PAIRS[:4], (1, 1, 1, 1), strict=True))
    found = jali.beliefs(release, population(weights))
    assert [r["q"] for r in found.positive().to_pylist()] == ["a"]
    assert [(r["q"], r["s"]) for r in found.negative().to_pylist()] == [("a", "cold")]
    assert {r["s"] for r in found.breaches(0.6, 0.9).to_pylist()} == {"flu", "cold"}
    assert found.largest_change == pytest.approx(0.5)
    again = jali.beliefs(release.save(tmp_path / "out"), population(weights))
    assert again.to_dict() == found.to_dict()
    with pytest.raises(InputError, match="ρ1"):
        found.breaches(0.9, 0.1)
    with pytest.raises(InputError, match=r"no chance|lacks"):
        jali.beliefs(release, population({("a", "flu"): 1, ("b", "flu"): 1, ("a", "cold"): 1}))


def box(cell: str, every: tuple[str, ...] = ("1", "2", "3", "4")) -> frozenset[str]:
    """The values that a published cell covers, read as text: 2, [1, 3], {1, 3} or *."""
    if cell == "*":
        return frozenset(every)
    if cell.startswith("["):
        low, high = cell[1:-1].split(", ")
        return frozenset(v for v in every if int(low) <= int(v) <= int(high))
    return frozenset(cell.strip("{}").split(", "))


@given(st.lists(st.integers(1, 4), min_size=8, max_size=8), st.data())
def test_beliefs_in_boxes_that_may_overlap_are_what_counting_worlds_finds(
    counts: list[int], data: st.DataObject
) -> None:
    """Strict and relaxed partitions and local recoding, shown in each of their ways, fresh or from the files."""
    weights = dict(zip([(str(q), s) for q in range(1, 5) for s in ("flu", "cold")], counts, strict=True))
    rows = data.draw(st.lists(st.sampled_from(list(weights)), min_size=2, max_size=5))
    frame = pa.table({"q": [int(q) for q, _ in rows], "s": [s for _, s in rows]})
    table = jali.table(frame, quasi={"q": jali.bands(1, 2, low=1, high=4)}, sensitive=["s"])
    k = data.draw(st.integers(1, 2))
    show = data.draw(st.sampled_from(["interval", "set"]))
    release = {
        "strict": lambda: jali.partition(table, [jali.KAnonymity(k)], show=show),
        "relaxed": lambda: jali.partition(table, [jali.KAnonymity(k)], mode="relaxed", show=show),
        "recode": lambda: jali.recode(table, [jali.KAnonymity(k)]),
        "suppress": lambda: jali.partition(table, [jali.KAnonymity(2)], suppress=0.6, show=show),
        "tuples": lambda: jali.repair(
            jali.generalize(table, [jali.KAnonymity(1)], levels={"q": 1}), [jali.KAnonymity(2)], by="tuples"
        ),
    }[data.draw(st.sampled_from(["strict", "relaxed", "recode", "suppress", "tuples"]))]()
    known = pa.table({
        "q": [int(q) for q, _ in weights], "s": [s for _, s in weights], "frequency": [float(w) for w in counts],
    })  # fmt: skip
    found = jali.beliefs(release, known)
    joint = {pair: Fraction(n) for pair, n in weights.items()}
    shown = release.tables["data"].to_pylist()
    gone = release.hidden_rows.tolist()
    alone = frozenset().union(*(box(row["q"]) for row, away in zip(shown, gone, strict=True) if not away))
    if release.manifest.method.get("by") == "tuples":
        alone = frozenset()
    boxes = [
        (box(row["q"]) - alone if away else box(row["q"]), row["s"]) for row, away in zip(shown, gone, strict=True)
    ]
    covered = {q for q in ("1", "2", "3", "4") if any(q in own for own, _ in boxes)}
    assert {str(q) for q in found.quasi["q"].to_pylist()} == covered
    for row in found.frame().to_pylist():
        believed = in_boxes(joint, boxes, str(row["q"]))
        assert row["prior"] == pytest.approx(float(prior(joint, str(row["q"]), row["s"])))
        assert row["posterior"] == pytest.approx(float(believed.get(row["s"], 0)))


def test_beliefs_are_refused_where_cells_show_distributions() -> None:
    frame = pa.table({"q": [1, 2, 3, 4], "s": ["flu", "cold"] * 2})
    table = jali.table(frame, quasi={"q": jali.bands(2, low=1, high=4)}, sensitive=["s"])
    release = jali.partition(table, [jali.KAnonymity(2)], show="pdf")
    with pytest.raises(InputError, match="say more than the boxes"):
        jali.beliefs(release, table)
