"""Laws of repair: a stronger promise, kept by suppressing and nothing else."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.releases.generalized import Generalized
from oracles.audit import keeps
from oracles.published import Folder, publish, requirements, tables


@given(tables(), st.data())
def test_a_repaired_release_keeps_old_and_new_promises_and_only_suppresses(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None:
        return
    try:
        asked = data.draw(requirements(table))
        repaired = jali.repair(release, asked)
    except (InfeasibleError, InputError):
        return
    assert set(repaired.principles) == {*release.principles, *asked}
    with tempfile.TemporaryDirectory() as folder:
        old, path = Folder(release.save(Path(folder) / "old")), repaired.save(Path(folder) / "new")
        new, loaded = Folder(path), jali.load(path)
        assert repr(loaded)
    for principle in repaired.principles:
        column = getattr(principle, "sensitive", None)
        cells, whole = (new.counts(column), new.whole(column)) if column else ({}, Counter())
        assert keeps(principle, new.sizes(), cells, whole)
    stars = ("*",) * len(new.quasi)
    before, after = (Counter(tuple(r[n] for n in [*f.quasi, *f.told]) for r in f.rows) for f in (old, new))
    for row, count in after.items():
        assert row[: len(stars)] == stars or count == before[row]
    values = slice(len(stars), None)
    assert Counter(r[values] for r in before.elements()) == Counter(r[values] for r in after.elements())
    assert repaired.levels == release.levels
    again = jali.repair(repaired, asked)
    assert again.manifest.counts == repaired.manifest.counts  # what holds is left alone
    assert jali.measure(repaired, table).discernibility == repaired.manifest.metrics["discernibility"]


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
