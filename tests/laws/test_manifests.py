"""A manifest that was changed by accident is refused when it is loaded, or means something; it is never a bug."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jali
from fuzz import corpus
from jali.errors import InputError


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition whose cells are sets, so that its manifest has leaves, members and labels."""
    import pyarrow as pa

    table = jali.table(pa.table(corpus.columns()), quasi={"job": None, "age": None}, sensitive=["ill"])
    return jali.partition(table, [jali.KAnonymity(2)], show="set").save(tmp_path_factory.mktemp("m") / "out")


CHANGES = {
    "a number beyond 64 bits": lambda c: c[1]["hierarchy"].update(members=[[10**30]] * 9),
    "a member that is no leaf": lambda c: c[1]["hierarchy"].update(members=[[0.5]] * 9),
    "a leaf that is no text": lambda c: c[1]["hierarchy"].update(leaves=[[1]] * 9),
    "a name that is no text": lambda c: c[0].update(name=7),
    "a value judged as none": lambda c: c[-1].update(judged_as=[99] * 4),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_manifest_is_refused_when_it_is_loaded(saved: Path, what: str) -> None:
    """Small cases of what `make fuzz` found."""
    path = saved / "manifest.json"
    before = path.read_text(encoding="utf-8")
    facts = json.loads(before)
    CHANGES[what](facts["columns"])
    assert facts != json.loads(before)
    path.write_text(json.dumps(facts), encoding="utf-8")
    try:
        with pytest.raises(InputError, match="does not describe its tables"):
            jali.load(saved)
    finally:
        path.write_text(before, encoding="utf-8")
    jali.load(saved)


@pytest.mark.parametrize("judged_as", [2, [0], [0, 99], [[0], [1]], [-1, 0]])
def test_marginals_whose_values_are_judged_as_none_are_refused_when_they_are_loaded(
    tmp_path: Path, judged_as: object
) -> None:
    """One judged value for each value, among those that are there."""
    import pyarrow as pa

    table = jali.table(pa.table({"a": list("xxyy") * 2, "s": list("pq") * 4}), quasi=["a"], sensitive=["s"])
    saved = jali.marginals(table, [jali.KAnonymity(2), jali.DistinctDiversity(2)]).save(tmp_path / "out")
    path = saved / "manifest.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    assert facts["columns"][-1]["facts"]["judged_as"] == [0, 1]
    facts["columns"][-1]["facts"]["judged_as"] = judged_as
    path.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InputError, match="does not describe its tables"):
        jali.load(saved)
