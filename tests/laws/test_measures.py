"""Laws of measures: they are what the definitions say, whoever computes them and from whatever is at hand."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InputError
from jali.measures.holder import builders
from jali.releases.generalized import Generalized
from oracles.measures import METRICS, measures
from oracles.published import publish, tables

CLOSE = {"rel": 1e-4, "abs": 1e-5}  # weights are published to six digits


@given(tables(persons=None), st.data())
def test_measures_are_what_the_definitions_say(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None:
        return
    expected = measures(table, release)
    found = jali.measure(release, table)
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, **CLOSE)
    assert dict(release.manifest.metrics) == pytest.approx({name: expected[name] for name in METRICS}, **CLOSE)
    assert found.to_dict()["rows"] == table.rows
    with tempfile.TemporaryDirectory() as folder:
        loaded = jali.measure(release.save(Path(folder) / "out"), table)
    assert {name: getattr(loaded, name) for name in expected} == pytest.approx(expected, **CLOSE)


@given(tables(persons=None), st.data())
def test_the_original_can_be_read_again_with_what_the_release_says(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None:
        return
    frame = table.frame("arrow")
    if table.weight is not None:
        frame = frame.append_column("w", pa.array(table.weight))
    with tempfile.TemporaryDirectory() as folder:
        loaded = jali.load(release.save(Path(folder) / "out"))
    assert isinstance(loaded, Generalized)
    again = jali.table(
        frame, quasi=builders(loaded), sensitive=[c.name for c in table.sensitive], weights=table.weight_name,
        domain=table.domain,
    )  # fmt: skip
    found, expected = jali.measure(loaded, again).to_dict(), jali.measure(release, table).to_dict()
    for name in ("kl", "height", "average", "discernibility", "loss", "granularity", "groups", "suppressed"):
        assert found[name] == pytest.approx(expected[name], **CLOSE), name


@given(tables(), st.data())
def test_the_domain_can_be_chosen_when_measuring(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None:
        return
    for domain in ("declared", "present"):
        other: Any = domain
        expected = measures(replace(table, domain=other), release)
        assert jali.measure(release, table, domain=other).kl == pytest.approx(expected["kl"], **CLOSE)


def test_saved_measures_are_those_that_follow_from_the_files(tmp_path: Path) -> None:
    table = jali.datasets.census(rows=2000, seed=0)
    release = jali.generalize(table, [jali.KAnonymity(5)], suppress=0.05)
    saved = jali.load(release.save(tmp_path / "out")).manifest.metrics
    assert saved == {n: v for n, v in release.manifest.metrics.items() if n in ("discernibility", "average", "height")}


def test_measures_print_as_a_table() -> None:
    table = jali.datasets.census(rows=200, seed=0)
    text = repr(jali.measure(jali.generalize(table, [jali.KAnonymity(3)]), table))
    assert len({len(line) for line in text.splitlines()}) == 1
    assert "KL-divergence (nats)" in text


def test_another_table_is_refused() -> None:
    table = jali.table(pa.table({"a": ["x", "x"], "s": ["p", "q"]}), quasi={"a": jali.suppress()}, sensitive=["s"])
    release = jali.generalize(table, [jali.KAnonymity(2)])
    for frame in (
        {"a": ["x"] * 3, "s": ["p"] * 3},
        {"a": ["y", "y"], "s": ["p", "q"]},
        {"a": ["x", "x"], "s": ["p", "r"]},
    ):
        other = jali.table(pa.table(frame), quasi={"a": jali.suppress()}, sensitive=["s"])
        with pytest.raises(InputError):
            jali.measure(release, other)
    with pytest.raises(InputError, match="jali table"):
        jali.measure(release, pa.table({"a": []}))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="domain"):
        jali.measure(release, table, domain="all")  # type: ignore[arg-type]
