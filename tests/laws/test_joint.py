"""Laws of joint audits: worlds, and what cells of two releases have in common, counted one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.cover.cover import Cover
from jali.cover.overlap import overlap
from jali.errors import InputError
from jali.publish.partition import of_groups
from jali.releases.generalized import Generalized, Partitioned
from jali.risk.audit.joint_figures import JointAudit, JointAudits
from jali.risk.audit.matching import Budget, Impossible, expected
from oracles.joint import in_common, means
from oracles.often import examples

PEOPLE = pa.table(
    {
        "age": [21, 23, 58, 60, 70, 72],
        "sex": list("MMFFMM"),
        "zip": [10_000, 58_000, 12_000, 60_000, 78_000, 80_000],
        "disease": ["pneumonia", "flu", "bronchitis", "pneumonia", "flu", "bronchitis"],
    }
)
"""Table 2a of the ANGEL paper."""


def release(frame: pa.Table, columns: list[str], group: list[int], **more: Any) -> Partitioned:
    """The given groups, numbers shown as intervals, texts as sets."""
    texts = [name for name in columns if pa.types.is_string(frame[name].type)]
    quasi = {name: jali.suppress() if name in texts else jali.bands(10) for name in columns}
    table = jali.table(frame.select([*columns, "disease"]), quasi=quasi, sensitive=["disease"])
    shows: Any = {name: "set" if name in texts else "interval" for name in columns}
    promises = more.get("promises", (jali.DistinctDiversity(1),))
    return of_groups(
        Partitioned, table, np.array(group), max(group) + 1, promises, method={"name": "given"}, shows=shows
    )


def table_2b() -> Partitioned:
    """Table 2b of the paper: a 2-diverse generalization."""
    return release(PEOPLE, ["age", "sex", "zip"], [0, 0, 1, 1, 2, 2], promises=(jali.FrequencyDiversity(2),))


def table_2c() -> Partitioned:
    """Table 2c of the paper: a 2-diverse marginal."""
    return release(PEOPLE, ["zip"], [0, 1, 0, 1, 2, 2], promises=(jali.FrequencyDiversity(2),))


def test_tables_2b_and_2c_together_say_that_the_first_patient_has_pneumonia() -> None:
    """Each is 2-diverse; Alan is in the first group of both, and the groups share pneumonia alone."""
    found = jali.audit([table_2b(), table_2c()])
    assert isinstance(found, JointAudit)
    alan = [dict(c.groups[0]) | dict(c.groups[1]) | {"value": c.value} for c in found.certain]
    assert {"age": "[21, 23]", "sex": "M", "zip": "[10000, 12000]", "value": "pneumonia"} in alan
    assert (found.largest_belief, found.alone) == (1, (0.5, 0.5))
    assert found.cells == found.exact_cells == 5
    assert set(found.kept.values()) == {False}
    assert "must have disease = pneumonia" in repr(found)


# Expected people, against all worlds.

amounts = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6)
weights_of = st.one_of(
    st.lists(st.sampled_from([0, 0, 1, 1, 2, 5]), min_size=16, max_size=16),
    st.tuples(*[st.sampled_from([1, 2, Fraction(1, 2)])] * 8).map(  # rank one
        lambda f: [f[i] * f[4 + j] for i in range(4) for j in range(4)]
    ),
)


@examples(4)
@given(rows=amounts, weights=weights_of)
def test_expected_people_are_the_mean_over_all_worlds(rows: list[tuple[int, int]], weights: list[Any]) -> None:
    """Exactly where worlds are counted; within the bounds, and possible when it is, where they are not."""
    one, two = [(i, "x") for i, _ in rows], [(j, "x") for _, j in rows]
    common = {(i, j): weights[4 * i + j] for i in range(4) for j in range(4)}
    held, hold = Counter(i for i, _ in rows), Counter(j for _, j in rows)
    known = {p: Fraction(w) for p, w in common.items() if w and p[0] in held and p[1] in hold}
    wanted = means(one, two, common)
    for steps in (100_000, 0):
        try:
            found = expected(held, hold, known, Budget(each=steps))
        except Impossible:
            assert not wanted
            continue
        assert wanted
        assert found.keys() == known.keys()
        for pair, mean in found.items():
            truth = wanted.get((*pair, "x"), 0)
            assert mean.low <= truth <= mean.high
            assert mean.exact or not steps
            assert (mean.high > 0) == (truth > 0)


# The audit, against all worlds.

people = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.sampled_from(["p", "q", "r"])), min_size=2, max_size=6
)


@given(rows=people, data=st.data())
def test_beliefs_are_those_of_all_worlds(rows: list[tuple[int, str, str]], data: st.DataObject) -> None:
    """Two partitions of one small table, one of them without a column: E[m_ij(x)] over its sum, pair by pair."""
    n = len(rows)
    frame = pa.table(dict(zip(("age", "town", "disease"), map(list, zip(*rows, strict=True)), strict=True)))
    one, two = (data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)) for _ in range(2))
    one, two = ([sorted(set(g)).index(x) for x in g] for g in (one, two))
    found = jali.audit([release(frame, ["age", "town"], one), release(frame, ["age"], two)])
    assert isinstance(found, JointAudit)
    wanted = _beliefs(rows, one, two)
    assert found.cells == found.exact_cells == len(wanted)
    assert found.largest_belief == pytest.approx(max(max(b.values()) for b in wanted.values()))
    certain = {(_text(c.groups[0]), _text(c.groups[1]), c.value) for c in found.certain}
    assert certain == {(*pair, x) for pair, b in wanted.items() for x in b if len(b) == 1}


def _text(shown: Any) -> tuple[Any, ...]:
    return tuple(shown.values())


def _beliefs(rows: list[tuple[int, str, str]], one: list[int], two: list[int]) -> dict[Any, dict[str, float]]:
    """What is believed of who is in each pair of groups, by what they show."""
    shown: list[dict[int, tuple[str, ...]]] = [{}, {}]
    ages: list[dict[int, set[int]]] = [{}, {}]
    for side, group in enumerate((one, two)):
        for g in set(group):
            mine = [row for row, own in zip(rows, group, strict=True) if own == g]
            low, high = min(r[0] for r in mine), max(r[0] for r in mine)
            towns = sorted({r[1] for r in mine})
            town = towns[0] if len(towns) == 1 else "{" + ", ".join(towns) + "}"
            age = str(low) if low == high else f"[{low}, {high}]"
            shown[side][g] = (age,) if side else (age, town)
            ages[side][g] = set(range(low, high + 1))
    # groups that show the same are one
    sides = [[(shown[s][g], r[2]) for g, r in zip(group, rows, strict=True)] for s, group in enumerate((one, two))]
    common = {(shown[0][a], shown[1][b]): in_common(ages[0][a], ages[1][b]) for a, b in product(set(one), set(two))}
    found: dict[Any, dict[str, Fraction]] = defaultdict(dict)
    for (i, j, x), mean in means(sides[0], sides[1], common).items():
        found[i, j][x] = mean
    return {pair: {x: float(m / sum(b.values())) for x, m in b.items()} for pair, b in found.items()}


# What two cells have in common.

NUMBERS = range(8)
DAYS = [date(1970, 1, 1) + timedelta(n) for n in NUMBERS]


@st.composite
def covers(draw: st.DrawFn, kind: str) -> tuple[Cover, list[set[Any] | None]]:
    """A cover of whole numbers or days, and the values of each node; None for one that may be anything."""
    nodes = draw(st.integers(1, 3))
    typed = pa.array(list(NUMBERS), pa.int64()) if kind == "number" else pa.array(DAYS, pa.date32())
    if draw(st.booleans()):
        values = pa.concat_arrays([typed, pa.nulls(1, typed.type)])
        sets = [draw(st.sets(st.integers(0, 8), min_size=1)) for _ in range(nodes)]
        start = np.concatenate([[0], np.cumsum([len(s) for s in sets])])
        return Cover.sets(values, start, [i for s in sets for i in sorted(s)]), [*sets]
    ends = [sorted(draw(st.tuples(st.integers(0, 7), st.integers(0, 7)))) for _ in range(nodes)]
    missing = draw(st.sampled_from([None, nodes]))
    unknown = draw(st.booleans())
    low = [float(a) for a, _ in ends] + [np.nan] * ((missing is not None) + unknown)
    high = [float(b) for _, b in ends] + [np.nan] * ((missing is not None) + unknown)
    kinds: Any = kind
    made = Cover.intervals(low, high, True, kinds, missing=missing)
    known: list[set[Any] | None] = [set(range(a, b + 1)) for a, b in ends]
    return made, known + ([{8}] if missing is not None else []) + ([None] if unknown else [])


@examples(3)
@given(data=st.data(), kind=st.sampled_from(["number", "date"]))
def test_cells_have_in_common_what_both_may_stand_for(data: st.DataObject, kind: str) -> None:
    """Value by value; a cell that may be anything has all of the other's values in common with it."""
    (one, ones), (two, twos) = data.draw(covers(kind)), data.draw(covers(kind))
    found = overlap(one, two)
    for a, b in product(range(one.nodes), range(two.nodes)):
        first, second = ones[a], twos[b]
        if first is None and second is None:
            assert found[a, b] >= max([1, *(len(s) for s in [*ones, *twos] if s)])
        elif first is None or second is None:
            assert found[a, b] == len(first or second or ())
        else:
            assert found[a, b] == in_common(first, second)
    assert np.array_equal(found.T, overlap(two, one))


masks = st.text("0*1", min_size=1, max_size=3).filter(lambda text: text != "*")


@examples(2)
@given(ones=st.lists(masks, min_size=1, max_size=3), twos=st.lists(masks, min_size=1, max_size=3))
def test_masks_have_in_common_the_texts_that_fit_both(ones: list[str], twos: list[str]) -> None:
    """Spelt out over the ten digits."""
    texts = {n: ["".join(t) for t in product("0123456789", repeat=n)] for n in (1, 2, 3)}

    def fitting(mask: str) -> set[str]:
        return {t for t in texts[len(mask)] if all(m in ("*", c) for m, c in zip(mask, t, strict=True))}

    found = overlap(Cover.masked(ones), Cover.masked(twos))
    wanted = [[in_common(fitting(a), fitting(b)) for b in twos] for a in ones]
    assert found.tolist() == wanted
    exact = overlap(Cover.masked(ones), Cover.exact(pa.array(texts[2])))
    assert exact.tolist() == [[float(t in fitting(a)) if len(a) == 2 else 0.0 for t in texts[2]] for a in ones]


def test_a_mask_fits_texts_with_characters_that_no_mask_shows() -> None:
    """What a hidden character is taken to be elsewhere must not rule anything out here."""
    assert overlap(Cover.masked(["13*"]), Cover.exact(pa.array(["13A", "14A", "13"]))).tolist() == [[1, 0, 0]]


def test_intervals_of_fractions_have_their_length_in_common() -> None:
    one = Cover.intervals([0.0, 2.5, 1.0], [2.5, 5.0, 1.0], False)
    two = Cover.intervals([0.5, 5.0, 1.0], [3.0, 6.0, 1.0], False)
    assert overlap(one, two).tolist() == [[2.0, 0.0, 1.0], [0.5, 0.0, 0.0], [1.0, 0.0, 1.0]]
    whole = Cover.intervals([0.0, 3.0], [2.0, 9.0], True)
    assert overlap(one, whole).tolist() == [[3.0, 0.0], [0.0, 2.0], [1.0, 0.0]]
    assert overlap(whole, one).tolist() == overlap(one, whole).T.tolist()


def test_a_guessed_root_fits_everything() -> None:
    guessed = Cover.intervals([0.0, 0.0], [1.0, 1.0], True, guessed=1)
    assert overlap(guessed, Cover.intervals([5.0], [7.0], True)).tolist() == [[0.0], [3.0]]


# What is refused, and what is said.


def test_releases_of_different_tables_are_refused() -> None:
    other = PEOPLE.set_column(3, "disease", pa.array(["flu"] * 6))
    with pytest.raises(InputError, match="cannot be of the same table"):
        jali.audit([table_2b(), release(other, ["zip"], [0, 1, 0, 1, 2, 2])])
    moved = PEOPLE.set_column(2, "zip", pa.array([1, 2, 3, 4, 5, 6]))
    with pytest.raises(InputError, match="cannot be of the same table"):
        jali.audit([table_2b(), release(moved, ["zip"], [0, 1, 0, 1, 2, 2])])


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda: [table_2b()], "two releases"),
        (lambda: [table_2b(), PEOPLE], "of releases"),
        (lambda: [table_2b(), jali.anatomize(_table(), jali.FrequencyDiversity(2))], "buckets release"),
        (lambda: [table_2b(), jali.angelize(_table(), jali.FrequencyDiversity(2), k=2)], "^an angel release"),
        (lambda: [table_2b(), _sensitive_zip()], 'column "zip" is sensitive in one'),
        (lambda: [table_2b(), _other_sensitive()], "no sensitive column in common"),
        (lambda: [table_2b(), _several_rows()], "several rows"),
    ],
)
def test_what_cannot_be_audited_together_is_refused(what: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        jali.audit(what())


def test_a_list_of_releases_takes_no_columns() -> None:
    with pytest.raises(InputError, match="know their columns"):
        jali.audit([table_2b(), table_2c()], sensitive=["disease"])


def _table(**more: Any) -> Any:
    return jali.table(PEOPLE, quasi={"zip": jali.bands(10_000)}, sensitive=["disease"], **more)


def _sensitive_zip() -> Generalized:
    table = jali.table(PEOPLE, quasi={"age": jali.bands(10)}, sensitive=["zip", "disease"])
    return jali.generalize(table, jali.KAnonymity(2))


def _other_sensitive() -> Generalized:
    frame = PEOPLE.select(["age", "disease"]).rename_columns(["age", "illness"])
    table = jali.table(frame, quasi={"age": jali.bands(10)}, sensitive=["illness"])
    return jali.generalize(table, jali.KAnonymity(2))


def _several_rows() -> Generalized:
    frame = PEOPLE.append_column("who", pa.array([1, 1, 2, 2, 3, 3]))
    table = jali.table(frame, quasi={"age": jali.bands(10, 50)}, sensitive=["disease"], person="who")
    return jali.generalize(table, jali.KAnonymity(1))


def test_three_releases_are_audited_two_at_a_time() -> None:
    """What two of them give away is found, and that all three may say more is told."""
    found = jali.audit([table_2c(), table_2c(), table_2b()])
    assert isinstance(found, JointAudits)
    assert {pair: one.largest_belief for pair, one in found.pairs.items()} == {(1, 2): 0.5, (1, 3): 1.0, (2, 3): 1.0}
    assert (found.largest_belief, found.holds) == (1, False)
    assert "can learn more" in found.notes[0]
    assert set(found.to_dict()["pairs"]) == {"1+2", "1+3", "2+3"}
    assert "promise FrequencyDiversity(2) of release 3" in repr(found)


def test_saved_releases_are_audited_together(tmp_path: Path) -> None:
    """From their files alone, with the same figures."""
    table_2b().save(tmp_path / "b")
    table_2c().save(tmp_path / "c")
    found, again = jali.audit([table_2b(), table_2c()]), jali.audit([tmp_path / "b", str(tmp_path / "c")])
    assert found.to_dict() == again.to_dict()


def test_a_release_says_nothing_more_beside_itself() -> None:
    """Disjoint groups meet only themselves."""
    census = jali.datasets.census(500, seed=1)
    made = jali.generalize(census, jali.DistinctDiversity(2))
    found, alone = jali.audit([made, made]), jali.audit(made)
    assert isinstance(found, JointAudit)
    assert found.cells == alone.groups
    assert found.holds
    assert found.largest_belief == pytest.approx(alone.largest_share)


def test_a_column_that_both_show_as_it_is_tells_people_apart() -> None:
    """Rows that differ there are not one person's: here it says who is who, and two groups of two become certain."""
    frame = pa.table({"age": [1, 2, 3, 4], "ward": list("xyxy"), "disease": list("pqqp")})
    shows: Any = {"age": "interval"}
    made = []
    for group in ([0, 0, 1, 1], [0, 1, 1, 0]):
        table = jali.table(frame, quasi={"age": jali.bands(2)}, sensitive=["disease"], other=["ward"])
        promises = (jali.DistinctDiversity(1),)
        made.append(of_groups(Partitioned, table, np.array(group), 2, promises, method={"name": "given"}, shows=shows))
    found = jali.audit(made)
    assert isinstance(found, JointAudit)
    assert any("ward" in note for note in found.notes)
    assert {one.value for one in found.certain} == {"p", "q"}
