"""Laws of audits: the figures are what the definitions say, group by group."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.encoding.table import Table
from jali.errors import InputError
from jali.risk.audit.audit import audit as audit_function
from jali.risk.verdict import exposed_by_groups
from oracles.audit import figures, rounded, sensitive_figures
from oracles.published import Folder, publish, tables

VALUES = st.sampled_from([1, 2, 3, 7, None])
ROWS = st.lists(st.tuples(st.sampled_from(["x", "y", "", None]), VALUES, st.sampled_from(["p", "q", None])), min_size=1)


def _frame(rows: list[tuple[Any, ...]]) -> pa.Table:
    q, n, w = zip(*rows, strict=True)
    return pa.table({"q": pa.array(q, pa.string()), "n": pa.array(n, pa.int64()), "w": pa.array(w, pa.string())})


def _expected(keys: list[Any], values: list[Any], order: list[Any] | None) -> dict[str, Any]:
    cells: dict[Any, Counter[Any]] = defaultdict(Counter)
    for key, value in zip(keys, values, strict=True):
        cells[key][value] += 1
    return sensitive_figures(Counter(keys), cells, Counter(values), order)


@given(ROWS)
def test_the_figures_of_a_raw_frame_are_what_the_definitions_say(rows: list[tuple[Any, ...]]) -> None:
    found = jali.audit(_frame(rows), quasi=["q"], sensitive=["n", "w"]).to_dict()
    keys = [q for q, _, _ in rows]
    order = [*sorted({n for _, n, _ in rows if n is not None}), *([None] if any(n is None for _, n, _ in rows) else [])]
    expected = {"n": _expected(keys, [n for _, n, _ in rows], order), "w": _expected(keys, [w for *_, w in rows], None)}
    for name, value in rounded(figures(Counter(keys))).items():
        assert rounded(found[name]) == value
    for name in expected["n"]:
        assert rounded(found[name]) == rounded({column: expected[column][name] for column in ("n", "w")})


@given(tables(persons=None), st.data())
def test_the_figures_of_a_release_are_those_of_its_files(table: Table, data: st.DataObject) -> None:
    release = publish(data, table)
    if release is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = release.save(Path(folder) / "out")
        found, seen = jali.audit(path), Folder(path)
    plain = found.to_dict()
    for name, value in rounded(figures(seen.sizes(), table.people)).items():
        assert rounded(plain[name]) == value
    assert found.holds
    for column, facts in seen.told.items():
        order = facts["judged_values"] if facts["ordered"] else None
        expected = sensitive_figures(seen.sizes(), seen.counts(column), seen.whole(column), order)
        for name, value in rounded(expected).items():
            shown = rounded(plain[name])
            assert (shown[column] if len(seen.told) > 1 else shown) == value, name


def test_nineteen_of_twenty_are_nearly_all() -> None:
    for same, others, nearly in ((19, 1, 1), (18, 1, 0), (37, 2, 0), (38, 2, 1)):
        frame = pa.table({"q": ["x"] * (same + others), "s": ["flu"] * same + ["cold"] * others})
        found = jali.audit(frame, quasi=["q"], sensitive=["s"])
        assert found.nearly_homogeneous.groups == nearly
        assert found.nearly_homogeneous.people == nearly * (same + others)
        assert found.homogeneous.groups == 0


def test_a_single_row_can_be_audited_but_not_published() -> None:
    frame = pa.table({"q": ["x"], "s": ["flu"]})
    found = jali.audit(frame, quasi=["q"], sensitive=["s"])
    assert (found.k, found.distinct_l, found.entropy_l, found.t, found.highest_risk) == (1, 1, 1.0, 0.0, 1.0)
    assert found.recursive_c == {2: float("inf")}
    assert found.to_dict()["recursive_c"] == {"2": None}
    with pytest.raises(InputError, match="one person"):
        jali.generalize(jali.table(frame, quasi=["q"], sensitive=["s"]), [jali.KAnonymity(1)])


def test_any_kind_of_frame_can_be_audited() -> None:
    data = {"q": ["x", "x", "y"], "s": ["flu", "cold", "flu"]}
    found = [
        jali.audit(frame, quasi=["q"], sensitive=["s"]).to_dict()
        for frame in (pa.table(data), pd.DataFrame(data, index=[5, 5, 9]), pl.DataFrame(data), pl.LazyFrame(data))
    ]
    assert found[0]["k"] == 1
    assert all(other == found[0] for other in found)


def test_figures_stand_at_the_top_by_name_or_by_column() -> None:
    frame = pa.table({"q": ["x", "x"], "s": ["flu", "cold"], "n": [1, 1]})
    one, two = (jali.audit(frame, quasi=["q"], sensitive=names) for names in (["s"], ["s", "n"]))
    assert one.distinct_l == one.to_dict()["distinct_l"] == 2
    assert two.distinct_l == two.to_dict()["distinct_l"] == {"s": 2, "n": 1}
    assert set(one.to_dict()) >= {"k", "distinct_l", "entropy_l", "t", "recursive_c", "largest_share", "homogeneous",
                                  "nearly_homogeneous", "highest_risk", "average_risk", "below"}  # fmt: skip
    none = jali.audit(frame, quasi=["q"])
    assert none.to_dict()["k"] == 2
    with pytest.raises(InputError, match="no sensitive column"):
        _ = none.t
    with pytest.raises(AttributeError):
        _ = none.nonsense


def test_people_are_counted_not_rows() -> None:
    frame = pa.table({"q": ["x"] * 4, "s": ["flu", "flu", "cold", "flu"], "who": [1, 1, 1, 2]})
    found = jali.audit(frame, quasi=["q"], sensitive=["s"], person="who")
    assert (found.k, found.people, found.largest_share) == (2, 2, 1.0)
    assert not any("one row per person" in note for note in found.notes)
    assert any("one row per person" in note for note in jali.audit(frame, quasi=["q"]).notes)


def test_people_in_several_groups_are_counted_once() -> None:
    """Three people, two of them with rows in both groups: five memberships, and nobody knows whose group is small."""
    frame = pa.table({"q": ["x", "x", "x", "y", "y"], "s": list("aabab"), "who": [1, 2, 3, 1, 2]})
    table = jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"], person="who")
    for found in (
        jali.audit(frame, quasi=["q"], sensitive=["s"], person="who"),
        jali.audit(jali.generalize(table, [jali.KAnonymity(2)])),
    ):
        assert (found.people, found.groups, found.k, found.average_size) == (3, 2, 2, 2.5)
        assert found.below == {2: 0.0, 3: pytest.approx(2 / 3), 5: 1.0, 10: 1.0, 20: 1.0}
        assert any("several groups: figures of groups count a person in each" in note for note in found.notes)


def test_the_share_exposed_by_groups_is_of_people_not_of_memberships() -> None:
    """Everybody has one group in which all have the same value, and two others: everybody is exposed."""
    frame = pa.table({"q": ["x"] * 4 + ["y"] * 4 + ["z"] * 4, "s": list("aaaa") + list("abcd") * 2,
                      "who": [1, 2, 3, 4] * 3})  # fmt: skip
    found = jali.audit(frame, quasi=["q"], sensitive=["s"], person="who")
    assert exposed_by_groups("homogeneity", found, None) == 1.0


def test_other_columns_are_tested_for_singling_out() -> None:
    frame = pa.table({"q": ["x"] * 4, "s": ["flu", "cold"] * 2, "ward": ["A", "A", "A", "B"]})
    table = jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"], other=["ward"])
    found = jali.audit(jali.generalize(table, [jali.KAnonymity(4)]))
    assert found.other is not None
    assert (found.other.smallest, found.other.alone, found.other.alone_share) == (1, 1, 0.25)
    assert "rows alone for who also knows ward" in repr(found)


def test_an_audit_says_what_it_does_not_cover() -> None:
    table = jali.datasets.census(rows=300, seed=0)
    text = repr(jali.audit(jali.generalize(table, [jali.KAnonymity(3)])))
    assert "beyond the quasi-identifiers" in text
    assert "knows the algorithm" in text
    assert "promise KAnonymity(3)" in text
    assert "BROKEN" not in text
    assert "1 groups" not in text


@pytest.mark.parametrize("k", [0, 1, 2])
def test_under_safety_only_more_than_k_facts_are_not_covered(k: int) -> None:
    """The promise speaks of k facts, so no line may say that what goes beyond the quasi-identifiers is not covered."""
    table = jali.datasets.census(rows=300, seed=0)
    promise = jali.Safety(0.9, k)
    for release in (jali.generalize(table, [promise]), jali.anatomize(table, promise, buckets="partition")):
        for text in (repr(release), repr(jali.audit(release))):
            assert ("more than 1 fact that" in text) == (k == 1)
            assert ("more than 2 facts that" in text) == (k == 2)
            assert ("what an attacker knows beyond" in text) == (k == 0)


def test_a_broken_promise_is_seen_in_what_was_published() -> None:
    from dataclasses import replace

    release = jali.generalize(jali.datasets.census(rows=300, seed=0), [jali.KAnonymity(3)])
    release.manifest = replace(release.manifest, principles=(jali.KAnonymity(301),))
    found = audit_function(release)
    assert not found.holds
    assert "BROKEN" in repr(found)


def test_a_frame_needs_its_columns_named() -> None:
    frame = pa.table({"q": ["x"], "s": ["flu"]})
    with pytest.raises(InputError, match="name its columns"):
        jali.audit(frame)
    with pytest.raises(InputError, match="list"):
        jali.audit(frame, quasi="q")


def test_an_audit_has_the_curve_of_disclosure_and_says_what_it_is() -> None:
    """Exact where the attacker knows the group, at most where groups overlap, none where people have several rows."""
    table = jali.datasets.census(rows=600, quasi=["age", "sex", "race"])
    k = [jali.KAnonymity(5)]
    anatomy = jali.anatomize(table, jali.FrequencyDiversity(3))
    kinds = {
        "exact": [jali.generalize(table, k), jali.partition(table, k), anatomy],
        "at most": [
            jali.recode(table, k),
            jali.partition(table, k, mode="relaxed"),
            jali.angelize(table, jali.FrequencyDiversity(3), k=5),
        ],
    }
    for kind, releases in kinds.items():
        for release in releases:
            found = jali.audit(release).disclosure
            assert found.kind == kind
            assert found == jali.disclosure.curve(release, range(14))
    printed = repr(jali.audit(kinds["at most"][0]))
    assert "sure of a value, with 1 more fact" in printed
    assert "at most" in printed
    several = pa.table({"who": [1, 1, 2, 3], "age": [1, 1, 2, 2], "disease": ["a", "b", "a", "b"]})
    undefined = jali.audit(several, quasi=["age"], sensitive=["disease"], person="who")
    assert undefined.disclosure is None
    assert undefined.to_dict()["disclosure"] is None
    assert "not defined" in repr(undefined)
