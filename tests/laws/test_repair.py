"""Laws of repair: a stronger promise, kept by suppressing and nothing else."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.principles.base import Principle
from jali.principles.counts import dense
from jali.releases.generalized import Generalized
from jali.search.common import what_stays
from oracles.audit import keeps
from oracles.published import Folder, publish, requirements, tables
from oracles.tuples import fewest


def _repaired(data: st.DataObject, table: Table) -> tuple[Generalized, list[Principle], Generalized] | None:
    """A release of the table, a further requirement, and the release repaired by groups; None where it cannot be."""
    release = publish(data, table)
    if release is None:
        return None
    try:
        asked = data.draw(requirements(table))
        return release, asked, jali.repair(release, asked)
    except (InfeasibleError, InputError):
        return None


def _kept(repaired: Generalized, old: Folder, new: Folder) -> tuple[tuple[str, ...], Counter[Any], Counter[Any]]:
    """Judge the published files: every promise holds, and what is not a quasi-identifier is as it was.

    Returns the stars of a suppressed row, and the rows before and after.
    """
    for principle in repaired.principles:
        column = getattr(principle, "sensitive", None)
        cells, whole = (new.counts(column), new.whole(column)) if column else ({}, Counter())
        assert keeps(principle, new.sizes(), cells, whole)
    stars = ("*",) * len(new.quasi)
    before, after = (Counter(tuple(r[n] for n in [*f.quasi, *f.told]) for r in f.rows) for f in (old, new))
    values = slice(len(stars), None)
    assert Counter(r[values] for r in before.elements()) == Counter(r[values] for r in after.elements())
    return stars, before, after


@given(tables(), st.data())
def test_a_repaired_release_keeps_old_and_new_promises_and_only_suppresses(table: Table, data: st.DataObject) -> None:
    made = _repaired(data, table)
    if made is None:
        return
    release, asked, repaired = made
    assert set(repaired.principles) == {*release.principles, *asked}
    with tempfile.TemporaryDirectory() as folder:
        old, path = Folder(release.save(Path(folder) / "old")), repaired.save(Path(folder) / "new")
        new, loaded = Folder(path), jali.load(path)
        assert repr(loaded)
    stars, before, after = _kept(repaired, old, new)
    for row, count in after.items():
        assert row[: len(stars)] == stars or count == before[row]
    assert repaired.levels == release.levels
    again = jali.repair(repaired, asked)
    assert again.manifest.counts == repaired.manifest.counts  # what holds is left alone
    assert jali.measure(repaired, table).discernibility == repaired.manifest.metrics["discernibility"]


EVEN: list[Principle] = [
    jali.KAnonymity(1), jali.KAnonymity(3), jali.DistinctDiversity(2), jali.DistinctDiversity(3),
    jali.EntropyDiversity(1.5), jali.EntropyDiversity(2), jali.EntropyDiversity(2.7), jali.FrequencyDiversity(2),
    jali.FrequencyDiversity(2.5), jali.RecursiveDiversity(1, 2), jali.RecursiveDiversity(2, 3),
]  # fmt: skip
OTHER: list[Principle] = [
    jali.TCloseness(0.1), jali.TCloseness(0.3), jali.AlphaAnonymity(0.4, 2, values=("0",)),
    jali.EntropyDiversity(2, dont_care=("0",)), jali.RecursiveDiversity(2, 2, protected=("1",), share=0.2),
]  # fmt: skip


def _one_group(n: list[int], principles: tuple[Principle, ...]) -> list[int]:
    """What stays of a group, beside another one, so that the table is more than the group."""
    counts = dense(np.array([n, [2] * len(n)]))
    here = counts.group == 0
    found = np.zeros(len(n), dtype=np.int64)
    found[counts.value[here]] = what_stays(principles, counts, counts.value[here], counts.n[here])
    return found.tolist()


@given(st.lists(st.integers(0, 5), min_size=2, max_size=4).filter(any), st.sets(st.sampled_from(EVEN), min_size=1))
def test_no_choice_of_tuples_takes_fewer_out_of_a_group_where_evenness_decides(
    n: list[int], chosen: set[Principle]
) -> None:
    """Against every choice; the group may keep its promises already, or lose everybody."""
    principles = tuple(sorted(chosen, key=repr))

    def holds(left: Counter[str]) -> bool:
        return all(keeps(p, {0: left.total()}, {0: left}, left) for p in principles)

    values = Counter({str(v): many for v, many in enumerate(n) if many})
    if holds(values):
        return
    stays = _one_group(n, principles)
    left = Counter({str(v): many for v, many in enumerate(stays) if many})
    assert all(0 <= many <= n[v] for v, many in enumerate(stays))
    assert not left or holds(left)
    assert values.total() - left.total() == fewest(values, holds)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=4).filter(any), st.sampled_from(OTHER))
def test_what_stays_of_a_group_keeps_every_other_promise_too(n: list[int], principle: Principle) -> None:
    stays = _one_group(n, (principle,))
    assert all(0 <= many <= n[v] for v, many in enumerate(stays))
    whole = dense(np.array([n, [2] * len(n)]))
    left = dense(np.array([stays, [a - b + 2 for a, b in zip(n, stays, strict=True)]]))  # the same table in all
    assert not any(stays) or bool(principle.holds(left)[0])
    assert left.reference("value").tolist() == whole.reference("value").tolist()


@given(tables(), st.data())
def test_by_tuples_all_promises_are_kept_and_no_more_rows_are_suppressed_than_by_groups(
    table: Table, data: st.DataObject
) -> None:
    """From the published files: what is left of groups, and all that is suppressed as one group."""
    made = _repaired(data, table)
    if made is None:
        return
    release, asked, by_groups = made
    repaired = jali.repair(release, asked, by="tuples")
    assert repaired.manifest.counts["suppressed"] <= by_groups.manifest.counts["suppressed"]
    with tempfile.TemporaryDirectory() as folder:
        old, new = Folder(release.save(Path(folder) / "old")), Folder(repaired.save(Path(folder) / "new"))
    stars, before, after = _kept(repaired, old, new)
    assert all(row[: len(stars)] == stars or count <= before[row] for row, count in after.items())
    assert "learns who was taken out" in repr(repaired)
    assert "learns who was taken out" in new.manifest["method"]["known_algorithm"]


def test_single_tuples_go_where_whole_groups_did() -> None:
    """Of six p and two q four p go, so that neither is more than half; a group with as many of both is left alone."""
    frame = pa.table({"q": ["x"] * 8 + ["y"] * 8 + ["z"] * 8, "s": [*"ppppppqq", *"pqpqpqpq", *"qqqqqqpp"]})
    table = jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"])
    release = jali.generalize(table, [jali.KAnonymity(2)], levels={"q": 0})
    promise = [jali.FrequencyDiversity(2)]
    assert jali.repair(release, promise).manifest.counts["suppressed"] == 16
    repaired = jali.repair(release, promise, by="tuples")
    assert repaired.manifest.counts["suppressed"] == 8  # four of p and four of q, which hold as one group
    assert Counter(repaired.frame("arrow")["q"].to_pylist()) == {"*": 8, "x": 4, "y": 8, "z": 4}
    assert repaired.manifest.method["by"] == "tuples"
    assert "by" not in jali.repair(release, promise).manifest.method
    with pytest.raises(InputError, match='no by "rows"'):
        jali.repair(release, promise, by="rows")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="about all groups at once"):
        jali.repair(release, [jali.Safety(0.9, 1)], by="tuples")
    with pytest.raises(InfeasibleError, match="8 of 24 rows would have to be suppressed, more than the 7 allowed"):
        jali.repair(release, promise, by="tuples", suppress=0.3)


def _release() -> Generalized:
    frame = pa.table({"q": ["x"] * 2 + ["y"] * 3 + ["z"] * 5, "s": ["p", "p", "p", "q", "q", *"pqpqp"]})
    table = jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"])
    return jali.generalize(table, [jali.KAnonymity(2)], levels={"q": 0})


def test_groups_that_break_are_suppressed_and_the_smallest_join_them() -> None:
    repaired = jali.repair(_release(), [jali.DistinctDiversity(2)])
    assert repaired.manifest.counts["suppressed"] == 5  # x alone has one value, so y joins it
    assert sorted(set(repaired.frame("arrow")["q"].to_pylist())) == ["*", "z"]


def test_what_cannot_be_repaired_says_why() -> None:
    with pytest.raises((InfeasibleError, InputError), match="3"):  # more than there are values
        jali.repair(_release(), [jali.DistinctDiversity(3)])
    with pytest.raises(InfeasibleError, match="5 of 10 rows would have to be suppressed, more than the 4 allowed"):
        jali.repair(_release(), [jali.DistinctDiversity(2)], suppress=0.4)
    with pytest.raises(InfeasibleError, match=r"entropy diversity 1\.999 cannot be met: the whole table reaches 1\.9"):
        jali.repair(_release(), [jali.EntropyDiversity(1.999)])
    for share in (-0.1, 1.1):
        with pytest.raises(InputError, match="suppress"):
            jali.repair(_release(), [jali.KAnonymity(2)], suppress=share)


def test_people_with_several_rows_cannot_be_repaired() -> None:
    frame = pa.table({"q": ["x"] * 4, "s": ["p", "q"] * 2, "who": [1, 1, 2, 3]})
    table = jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"], person="who")
    with pytest.raises(InputError, match="several rows"):
        jali.repair(jali.generalize(table, [jali.KAnonymity(2)]), [jali.KAnonymity(3)])


def test_a_saved_release_can_be_repaired_and_everything_can_be_suppressed(tmp_path: Path) -> None:
    repaired = jali.repair(_release().save(tmp_path / "old"), [jali.KAnonymity(10)])
    assert set(repaired.frame("arrow")["q"].to_pylist()) == {"*"}
    loaded = jali.load(repaired.save(tmp_path / "new"))
    assert jali.audit(loaded).k == 10
    hierarchy = next(facts["hierarchy"] for facts in loaded.columns_facts() if facts["role"] == "quasi")
    assert [here["labels"] for here in hierarchy["levels"]] == [[], ["*"]]
