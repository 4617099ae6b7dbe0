"""Laws of estimates from boxes: counts, bounds, probabilities, joint tables and samples against plain enumeration."""

import copy
import datetime as dt
import json
import math
import pickle
import time
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.cover.cover import Cover
from jali.errors import InputError, UndeterminedError
from jali.estimates import cells as joint
from jali.estimates.base import Count, Estimate, likely
from jali.estimates.boxes import BoxEstimate, encoded
from jali.estimates.conditions import BoxColumn
from jali.query import tree as q
from oracles import estimates as oracle

EPOCH = dt.date(1970, 1, 1)


class Drawn(NamedTuple):
    """A cover, and the same said value by value."""

    kind: Any
    cover: Cover
    nodes: list[oracle.Node]
    tests: st.SearchStrategy[tuple[Any, Any]]


number_tests = (
    st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), st.integers(-1, 7) | st.sampled_from([0.5, 2.5]))
    | st.tuples(st.just("in"), st.frozensets(st.integers(-1, 7), min_size=1))
    | st.just(("null", None))
)
texts = st.text("012ab", max_size=3)
text_tests = (
    st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), texts)
    | st.tuples(st.just("in"), st.frozensets(texts, min_size=1))
    | st.tuples(st.just("like"), st.text("012ab%_", max_size=4))
    | st.just(("null", None))
)


@st.composite
def sets(draw: st.DrawFn) -> Drawn:
    """Any sets of known numbers, which may overlap, with any shares."""
    values = [*range(draw(st.integers(1, 5))), *draw(st.sampled_from([[], [None]]))]
    chosen = draw(st.lists(st.lists(st.sampled_from(values), min_size=1, unique=True), min_size=1, max_size=4))
    weights = [draw(st.lists(st.integers(1, 3), min_size=len(some), max_size=len(some))) for some in chosen]
    if draw(st.booleans()):
        weights = [[1] * len(some) for some in chosen]
    nodes = [
        {value: Fraction(weight, sum(shares)) for value, weight in zip(some, shares, strict=True)}
        for some, shares in zip(chosen, weights, strict=True)
    ]
    start = np.cumsum([0, *map(len, chosen)])
    member = [values.index(value) for some in chosen for value in some]
    share = [float(part) for node in nodes for part in node.values()]
    return Drawn("number", Cover.sets(pa.array(values, pa.int64()), start, member, share), nodes, number_tests)


@st.composite
def groups(draw: st.DrawFn) -> Drawn:
    """Groups of known texts under a root that holds them all."""
    values = [*"ab012"[: draw(st.integers(1, 5))], *draw(st.sampled_from([[], [None]]))]
    count = draw(st.integers(1, 3))
    node_of = draw(st.lists(st.integers(-1, count - 1), min_size=len(values), max_size=len(values)))
    used = sorted({node for node in node_of if node >= 0})
    node_of = [used.index(node) if node >= 0 else -1 for node in node_of]
    cover = Cover.grouped(pa.array(values, pa.string()), node_of, len(used) + 1, root=len(used))
    nodes = [oracle.even([v for v, its in zip(values, node_of, strict=True) if its == n]) for n in range(len(used))]
    return Drawn("text", cover, [*nodes, oracle.even(values)], text_tests)


@st.composite
def bands(draw: st.DrawFn) -> Drawn:
    """Intervals of whole numbers or days, which may overlap, and the missing value."""
    ends = [sorted(pair) for pair in draw(st.lists(st.tuples(*[st.integers(0, 6)] * 2), min_size=1, max_size=3))]
    low, high = ([float(pair[side]) for pair in ends] + [math.nan] for side in (0, 1))
    days = draw(st.booleans())
    spans: list[list[Any]] = [list(range(first, last + 1)) for first, last in ends]
    tests = number_tests
    if days:
        spans = [[(EPOCH + dt.timedelta(n)).isoformat() for n in span] for span in spans]
        days_text = st.integers(-1, 7).map(lambda n: (EPOCH + dt.timedelta(n)).isoformat())
        tests = (
            st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), days_text)
            | st.tuples(st.just("in"), st.frozensets(days_text, min_size=1))
            | st.just(("null", None))
        )
    kind = "date" if days else "number"
    cover = Cover.intervals(low, high, True, kind, missing=len(ends))
    return Drawn(kind, cover, [*map(oracle.even, spans), {None: Fraction(1)}], tests)


@st.composite
def masks(draw: st.DrawFn) -> Drawn:
    """Masked digits; a hidden character is a digit, but anything that the tests tell apart is possible."""
    labels = draw(st.lists(st.text("012*", min_size=1, max_size=2).filter(lambda s: s != "*"), min_size=1, max_size=3))
    nodes = []
    for label in labels:
        likely = list(map("".join, product(*("0123456789" if sign == "*" else sign for sign in label))))
        wide = map("".join, product(*("0123456789\x00:abc" if sign == "*" else sign for sign in label)))
        nodes.append(dict.fromkeys(wide, Fraction(0)) | dict(oracle.even(likely)))
    return Drawn("text", Cover.masked([*labels, None], missing=len(labels)), [*nodes, {None: Fraction(1)}], text_tests)


@st.composite
def estimates(draw: st.DrawFn, *, fuzzy: bool = True) -> tuple[BoxEstimate, list[oracle.Box], st.SearchStrategy[Any]]:
    """Boxes over one to three columns, as an estimate and written out; and conditions about them."""
    kinds = sets() | groups() | bands()
    drawn = draw(st.lists(kinds | masks() if fuzzy else kinds, min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*(st.integers(0, len(one.nodes) - 1) for one in drawn)), min_size=1, max_size=5))
    columns = [
        BoxColumn("abc"[i], one.kind, "quasi", one.cover, np.array([row[i] for row in rows], dtype=np.uint8))
        for i, one in enumerate(drawn)
    ]
    weights = np.array(draw(st.lists(st.integers(1, 5), min_size=len(rows), max_size=len(rows))), dtype=np.float64)
    boxes = [
        oracle.Box(Fraction(int(weight)), tuple(one.nodes[code] for one, code in zip(drawn, row, strict=True)))
        for weight, row in zip(weights, rows, strict=True)
    ]
    atoms = st.one_of([one.tests.map(lambda t, name="abc"[i]: q.Test(name, *t)) for i, one in enumerate(drawn)])
    conditions = st.recursive(
        atoms,
        lambda part: (
            st.builds(q.Not, part)
            | st.lists(part, min_size=2, max_size=3).map(lambda parts: q.And(tuple(parts)))
            | st.lists(part, min_size=2, max_size=3).map(lambda parts: q.Or(tuple(parts)))
        ),
        max_leaves=6,
    )
    return BoxEstimate.from_rows(columns, weights), boxes, conditions


def plain(value: Any) -> Any:
    """A value as the oracle writes it: dates as texts."""
    return value.isoformat() if isinstance(value, dt.date) else value


def refused(action: Any, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        action()
    line = str(caught.value)
    assert "\n" not in line
    assert not [word for word in words if word not in line], line


# Counting.


@given(st.data())
def test_a_count_is_what_writing_out_every_cell_gives(data: st.DataObject) -> None:
    """Estimate, certain and possible, for any boxes and any AND, OR and NOT across columns."""
    estimate, boxes, conditions = data.draw(estimates())
    condition = data.draw(conditions)
    names = [column.name for column in estimate.columns]
    value, low, high = oracle.count(boxes, names, condition)
    found = estimate.count(condition)
    assert likely(estimate, condition) == pytest.approx(float(found), abs=1e-9)
    assert found == pytest.approx(float(value), rel=1e-9, abs=1e-9)
    assert (found.low, found.high) == (float(low), float(high))
    assert estimate.count(q.to_text(condition)) == found


@given(st.data())
def test_a_condition_and_its_negation_add_up_to_everybody(data: st.DataObject) -> None:
    """count(c) + count(NOT c) = total, low ≤ count ≤ high, and what is certain of one is impossible for the other."""
    estimate, _, conditions = data.draw(estimates())
    condition = data.draw(conditions)
    yes, no = estimate.count(condition), estimate.count(q.Not(condition))
    assert yes + no == pytest.approx(estimate.total)
    assert yes.low <= yes <= yes.high
    assert yes.low + no.high == pytest.approx(estimate.total)
    assert estimate.count() == estimate.total


@given(st.data())
def test_an_exact_count_assumes_nothing(data: st.DataObject) -> None:
    """Assumptions are named where, and only where, what was published leaves a doubt."""
    estimate, _, conditions = data.draw(estimates())
    found = estimate.count(data.draw(conditions))
    assert bool(found.assumes) == (not found.exact)


def three() -> BoxEstimate:
    """Two ages in bands or hidden, masked zip codes, exact diseases."""
    age = Cover.intervals([20, 30], [29, 39], True)
    zips = Cover.masked(["130**", "148**"])
    disease = Cover.exact(pa.array(["flu", "cold", None]))
    codes = [np.array(c) for c in ([0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 2, 0])]
    return BoxEstimate.from_rows(
        [
            BoxColumn("age", "number", "quasi", age, codes[0]),
            BoxColumn("zip", "text", "quasi", zips, codes[1]),
            BoxColumn("disease", "text", "sensitive", disease, codes[2]),
        ]
    )


def test_only_assumptions_that_matter_are_named() -> None:
    """Equal shares where one column is in doubt, independence where two are, digits where masks are read."""
    estimate = three()
    assert estimate.count("disease = 'flu'").assumes == ()
    assert estimate.count("age < 40").assumes == ()
    equal = "values within a published cell are equally likely"
    hidden = 'each hidden character of "zip" is one of the 10 digits'
    assert estimate.count("age < 25").assumes == (equal,)
    assert estimate.count("zip = '13053' and disease = 'flu'").assumes == (equal, hidden)
    assert estimate.count("age < 25 and zip = '13053'").assumes == (
        equal,
        hidden,
        "columns are independent within a row",
    )


def test_a_guess_is_counted_on_but_is_never_certain() -> None:
    """A row hidden as * may hold what was published nowhere else, unless the domain is declared."""
    low, high = [20, 20], [29, 39]
    codes = np.array([0, 0, 1])
    for guessed in (
        Cover.intervals(low, high, True, guessed=1),
        Cover.grouped(pa.array(np.arange(20, 40)), [0] * 10 + [-1] * 10, 2, root=1, declared=False),
    ):
        estimate = BoxEstimate.from_rows([BoxColumn("age", "number", "quasi", guessed, codes)])
        for text, value, most in [("age >= 90", 0, 1), ("age < 40", 3, 3), ("age < 30", 2.5, 3), ("age is null", 0, 1)]:
            found = estimate.count(text)
            assert (found, found.low, found.high) == (value, 2 * (value > 1), most)
            assert any("shows *" in sentence for sentence in found.assumes)
        assert estimate.count("age >= 20 or not age >= 20").assumes == ()
    declared = Cover.grouped(pa.array(np.arange(20, 40)), [0] * 10 + [-1] * 10, 2, root=1)
    estimate = BoxEstimate.from_rows([BoxColumn("age", "number", "quasi", declared, codes)])
    assert estimate.count("age >= 90").exact
    refused(lambda: Cover.intervals(low, high, True, guessed=2))


def test_a_masked_text_is_a_text_of_its_length() -> None:
    """130** may be 13053 (one of a hundred), never 1305 or 14853; LIKE and order read what is shown."""
    estimate = three()
    assert estimate.count("zip = '13053'") == pytest.approx(0.01)
    assert estimate.count("zip in ('13053', '14801')") == pytest.approx(0.04)
    assert estimate.count("zip = 13053") == pytest.approx(0.01)
    assert estimate.count("zip <= 13049") == pytest.approx(0.5)
    assert estimate.count("zip = '1305'").high == 0
    assert estimate.count("zip like '13%'").low == 1
    assert estimate.count("zip like '____7'") == pytest.approx(0.4)
    assert estimate.count("zip < '14'").exact
    letters = Cover.masked(["AB*", "*"])
    column = BoxColumn("code", "text", "quasi", letters, np.array([0]))
    assert BoxEstimate((column,), np.ones(1)).count("code = 'ABC'") == pytest.approx(1 / 36)


def test_intervals_of_whole_numbers_hold_their_ends_and_intervals_of_fractions_end_before() -> None:
    """[20, 29] has ten values; [20, 30) has a length of ten, and a single value of it is possible but has no share."""
    for whole, high in ((True, 29.0), (False, 30.0)):
        cover = Cover.intervals([20.0], [high], whole)
        estimate = BoxEstimate((BoxColumn("age", "number", "quasi", cover, np.array([0])),), np.array([10.0]))
        assert estimate.count("age < 25") == pytest.approx(5)
        assert estimate.count("age <= 25") == pytest.approx(6 if whole else 5)
        assert estimate.count("age < 22.5") == pytest.approx(3 if whole else 2.5)
        assert estimate.count("age = 25") == pytest.approx(1 if whole else 0)
        assert estimate.count("age = 25").high == 10
        assert estimate.count("age = 30").high == 0
        assert estimate.count("age = 22.5").high == (0 if whole else 10)
        assert estimate.count("age >= 20").low == 10
    point = Cover.intervals([2.5], [2.5], False)
    estimate = BoxEstimate((BoxColumn("x", "number", "quasi", point, np.array([0])),), np.array([1.0]))
    assert [float(estimate.count(c)) for c in ("x = 2.5", "x < 2.5", "x <= 2.5", "x > 2")] == [1, 0, 1, 1]


def test_dates_are_counted_by_their_days() -> None:
    """Half of May 2020 lies before the 16th and a half; literals are ISO texts."""
    low, high = ((dt.date(2020, 5, day) - EPOCH).days for day in (1, 31))
    column = BoxColumn("born", "date", "quasi", Cover.intervals([low], [high], True, "date"), np.array([0]))
    estimate = BoxEstimate((column,), np.array([31.0]))
    assert estimate.count("born < '2020-05-16'") == pytest.approx(15)
    assert estimate.count("born <= '2020-05-16T12:00'") == pytest.approx(16)
    assert estimate.count(where={"born": (dt.date(2020, 5, 1), dt.date(2020, 5, 2))}) == pytest.approx(2)
    assert estimate.probability({"born": [dt.date(2020, 5, 3), dt.date(2020, 6, 1)]}) == pytest.approx([1 / 31, 0])
    assert estimate.sample(3, seed=1).schema.field("born").type == pa.date32()
    refused(lambda: estimate.count("born < 3"), "dates")


def test_a_domain_of_1e30_cells_is_answered_at_once() -> None:
    """Five columns of a million values each and an OR across them: no cell is ever written out."""
    million = Cover.intervals([0], [10**6 - 1], True)
    columns = tuple(BoxColumn(name, "number", "quasi", million, np.zeros(1, dtype=int)) for name in "abcde")
    estimate = BoxEstimate(columns, np.array([10.0**6]))
    begin = time.perf_counter()
    found = estimate.count("a < 500000 or b >= 500000 or c < 500000 or not d < 500000 or e = 7")
    assert time.perf_counter() - begin < 1
    assert found == pytest.approx(10**6 * (1 - (1 - 1e-6) / 16))
    refused(lambda: estimate.frame(list("abcde")), "1,000,000,000,000,000,000,000,000,000,000 cells")


def hidden() -> BoxEstimate:
    """Three people of known age and two of whom nothing is known."""
    ages = Cover.intervals([20, math.nan], [29, math.nan], True)
    columns = [
        BoxColumn("age", "number", "quasi", ages, np.array([0, 0, 0, 1, 1])),
        BoxColumn("sex", "text", "quasi", Cover.exact(pa.array(["f", "m"])), np.array([0, 1, 0, 1, 0])),
        BoxColumn("code", "text", "quasi", Cover.unknown(1), np.zeros(5, dtype=int)),
    ]
    return BoxEstimate.from_rows(columns)


def test_a_joint_table_has_every_name_once_also_beside_a_column_called_count() -> None:
    """The counts stand last; where a column has their name, they get another."""
    values = pa.array(["x", "y"])
    for names, last in ((["a", "b"], "count"), (["count", "b"], "count_"), (["count_", "count"], "count__")):
        columns = [BoxColumn(name, "text", "quasi", Cover.exact(values), np.array([0, 1, 1])) for name in names]
        found = BoxEstimate.from_rows(columns).frame(names)
        assert found.column_names == [*names, last]
        assert found[last].to_pylist() == [1, 2]


def test_what_depends_on_an_unknown_cell_is_refused_with_its_bounds() -> None:
    """The error names the column, the bounds and the remedy; what does not depend on it is answered."""
    estimate = hidden()
    refused(lambda: estimate.count("age < 30"), '"age"', "between 3 and 5", "bands(low=, high=)")
    refused(lambda: estimate.count("code like 'a%' and sex = 'f'"), '"code"', "between 0 and 3")
    refused(lambda: estimate.count("code = 7 or code = TRUE"), '"code"', "between 0 and 5")
    refused(lambda: estimate.sample(3, seed=0), '"age"', "cannot be drawn")
    refused(lambda: estimate.frame(["age"]), '"age"')
    refused(lambda: estimate.probability({"age": [3]}), '"age"')
    assert estimate.count("age > 30 and age < 20") == 0
    assert estimate.count("code like 'a%' and not code >= 'a'") == 0
    assert estimate.count("age is null or age is not null") == 5
    assert estimate.count("sex = 'f' or age < 0 and sex = 'f'") == 3
    assert estimate.probability({"sex": ["f", "m"]}) == pytest.approx([0.6, 0.4])
    assert estimate.frame(["sex"])["count"].to_pylist() == [3, 2]


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("pq")), min_size=2, max_size=8),
    st.sampled_from([jali.partition, jali.recode]),
    st.sampled_from("xyz"),
)
def test_a_word_that_is_kept_is_itself_and_one_that_is_hidden_is_anything(
    rows: list[tuple[str, str]], make: Any, asked: str
) -> None:
    """Also where groups show the smallest node: a column of kept or hidden words has no hierarchy but its values."""
    frame = pa.table({"b": [b for b, _ in rows], "c": [c for _, c in rows]})
    table = jali.table(frame, quasi={"b": jali.suppress(), "c": jali.suppress()})
    release = make(table, [jali.KAnonymity(2)], show="taxonomy")
    shown = release.tables["data"]["b"].to_pylist()
    expected = (shown.count(asked), shown.count(asked) + shown.count("*"))
    try:
        found = release.estimate().count(f"b = '{asked}'")
        low, high = found.low, found.high
    except UndeterminedError as open_:
        low, high = open_.low, open_.high
    assert (low, high) == expected


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("aeg > 3", ['did you mean "age"?']),
        ("age > ", ["position"]),
        ("age = 'old'", ["age", "numbers"]),
        ("age like '2%'", ["age", "numbers"]),
        ("disease = 3", ["disease", "text"]),
        ("zip = TRUE", ["zip", "text"]),
        (17, ["not a condition", "int"]),
        ("false and agee > 3", ["agee", 'did you mean "age"?']),
    ],
)
def test_a_bad_condition_is_refused(condition: Any, words: list[str]) -> None:
    """In one line that says what to do."""
    refused(lambda: three().count(condition), *words)


def test_a_count_takes_a_condition_or_a_mapping_but_not_both() -> None:
    """The two say the same."""
    estimate = three()
    assert estimate.count(where={"age": (20, 24), "disease": "flu"}) == estimate.count(
        "age between 20 and 24 and disease = 'flu'"
    )
    refused(lambda: estimate.count("age > 3", where={"age": 3}), "both")


def test_a_count_is_a_float_that_knows_its_bounds() -> None:
    """Arithmetic, rounding, f-strings, JSON, copies and pickles work; bounds are checked."""
    found = Count(12.5, low=3, high=40, assumes=("a",))
    assert repr(found) == "Count(12.5, low=3, high=40)"
    assert (f"{found}", f"{found:.2f}", str(found), json.dumps([found])) == ("12.5", "12.50", "12.5", "[12.5]")
    assert (found + 1, round(found), found / 2) == (13.5, 12, 6.25)
    for same in (copy.copy(found), pickle.loads(pickle.dumps(found))):
        assert (same, same.low, same.high, same.assumes) == (12.5, 3, 40, ("a",))
    assert repr(Count(2.5, low=1.23456, high=4.56711)) == "Count(2.5, low=1.234, high=4.568)"
    assert repr(Count(0.1, low=0.0123456, high=0.123456)) == "Count(0.1, low=0.0123, high=0.124)"
    rounded = Count(20.499999999999986)
    assert (str(rounded), f"{rounded}", float(rounded)) == ("20.5", "20.5", 20.499999999999986)
    assert Count(3).exact
    refused(lambda: Count(3, low=4), "bounds")
    assert isinstance(three(), Estimate)


# Cells.


@given(st.data())
def test_probabilities_are_those_of_enumeration_and_sum_to_one(data: st.DataObject) -> None:
    """For any subset of columns, over its whole domain; a cell outside it has none."""
    estimate, boxes, _ = data.draw(estimates())
    chosen = data.draw(st.lists(st.sampled_from(range(len(estimate.columns))), min_size=1, unique=True))
    expected = oracle.frame(boxes, chosen)
    keys = list(expected)
    names = [estimate.columns[i].name for i in chosen]
    for few in (0, joint.FEW):  # by sets of boxes, and by looking up nodes
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(joint, "FEW", few)
            found = estimate.probability({name: [key[at] for key in keys] for at, name in enumerate(names)})
        assert found == pytest.approx([float(expected[key]) / estimate.total for key in keys])
        assert found.sum() == pytest.approx(1)
    outside = estimate.columns[chosen[0]]
    never = {"number": 99, "date": dt.date(2000, 1, 1), "text": "zzz"}[outside.kind]
    assert estimate.probability({outside.name: [never]}).tolist() == [0]


@given(st.data())
def test_a_joint_table_is_that_of_enumeration(data: st.DataObject) -> None:
    """Each cell once, none without people, and all people in it."""
    estimate, boxes, _ = data.draw(estimates())
    chosen = data.draw(st.lists(st.sampled_from(range(len(estimate.columns))), min_size=1, unique=True))
    table = estimate.frame([estimate.columns[i].name for i in chosen])
    *keys, counts = (column.to_pylist() for column in table.columns)
    found = dict(zip([tuple(map(plain, key)) for key in zip(*keys, strict=True)], counts, strict=True))
    expected = oracle.frame(boxes, chosen)
    assert len(found) == table.num_rows
    assert found == pytest.approx({key: float(people) for key, people in expected.items()})
    assert sum(counts) == pytest.approx(estimate.total)


@given(st.data())
def test_a_joint_table_agrees_with_counting_each_cell(data: st.DataObject) -> None:
    """frame and count are one estimate."""
    estimate, _, _ = data.draw(estimates(fuzzy=False))
    names = [column.name for column in estimate.columns]
    for *cell, people in zip(*(column.to_pylist() for column in estimate.frame(names).columns), strict=True):
        assert estimate.count(where=dict(zip(names, cell, strict=True))) == pytest.approx(people)


def wide(rows: int, seed: int = 0, sizes: tuple[int, ...] = (40, 30, 20, 10)) -> BoxEstimate:
    """Four columns of groups under roots, so that boxes overlap a lot."""
    random = np.random.default_rng(seed)
    columns = []
    for i, size in enumerate(sizes):
        cover = Cover.grouped(pa.array(np.arange(size)), np.arange(size) // 5, size // 5 + 1, root=size // 5)
        columns.append(BoxColumn("abcd"[i], "number", "quasi", cover, random.integers(0, size // 5 + 1, rows)))
    return BoxEstimate.from_rows(columns)


@pytest.mark.parametrize("less", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_many_boxes_and_many_cells_give_the_same_as_few(less: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one piece or in many small ones, and spread out or contracted: the same table and the same probabilities."""
    estimate = wide(3_000 // less, sizes=(40 // less, 30, 20 // less, 10))
    whole = estimate.frame(list("abcd"))
    cells, people = whole.drop_columns(["count"]), whole["count"].to_numpy()
    assert people.sum() == pytest.approx(estimate.total)
    assert estimate.probability(cells) * estimate.total == pytest.approx(people)
    for names in (["a"], ["a", "b"], ["d", "b", "c"]):
        order = [(name, "ascending") for name in names]
        part = estimate.frame(names).sort_by(order)
        again = whole.group_by(names).aggregate([("count", "sum")]).sort_by(order)
        assert part["count"].to_numpy() == pytest.approx(again["count_sum"].to_numpy())
    monkeypatch.setattr(joint, "LARGEST", 1_000_000 // less**2)
    monkeypatch.setattr(joint, "CELL_WORDS", 1_000)
    monkeypatch.setattr(joint, "VALUE_WORDS", 100)
    contracted = estimate.frame(list("abcd"))
    assert contracted.drop_columns(["count"]) == cells
    assert contracted["count"].to_numpy() == pytest.approx(people)
    for few in (0, 512):
        monkeypatch.setattr(joint, "FEW", few)
        assert estimate.probability(cells) * estimate.total == pytest.approx(people)


def test_cells_come_as_any_frame_and_joint_tables_go_as_any() -> None:
    """Mappings, Arrow, pandas (NaN is missing) and Polars; what is no table is refused."""
    cover = Cover.exact(pa.array([1, 2, None], pa.int64()))
    estimate = BoxEstimate((BoxColumn("a", "number", "quasi", cover, np.arange(3)),), np.array([5.0, 3.0, 2.0]))
    cells = {"a": [1, None, 7]}
    for given_as in (cells, pa.table(cells), pd.DataFrame(cells), pl.DataFrame(cells), {"a": ["1", None, "7"]}):
        assert estimate.probability(given_as) == pytest.approx([0.5, 0.2, 0])
    assert estimate.probability({"a": []}).shape == (0,)
    assert estimate.probability({"a": [None]}) == pytest.approx([0.2])
    assert estimate.probability(pd.DataFrame(cells, index=[5, 1, 9])) == pytest.approx([0.5, 0.2, 0])
    assert isinstance(estimate.frame(["a"], "polars"), pl.DataFrame)
    assert isinstance(estimate.frame(["a"], "pandas"), pd.DataFrame)
    refused(lambda: estimate.probability({"b": [1]}), '"b"')
    refused(lambda: estimate.probability({"a": [True]}), '"a"', "number")
    refused(lambda: estimate.probability({}), "no column")
    refused(lambda: estimate.probability({"a": [1, "x"]}), "no table")
    refused(lambda: estimate.probability(3), "no table")
    refused(lambda: estimate.frame([]), "none")
    refused(lambda: estimate.frame(["a", "a"]), "once")


def test_categories_of_frames_are_their_values() -> None:
    """A categorical column of pandas or Polars is asked about as the text it shows."""
    estimate = three()
    expected = estimate.probability({"disease": ["flu", "flu"]})
    for frame in (pd.DataFrame({"disease": pd.Categorical(["flu", "flu"])}),
                  pl.DataFrame({"disease": pl.Series(["flu", "flu"], dtype=pl.Categorical)})):  # fmt: skip
        assert estimate.probability(frame).tolist() == expected.tolist()


def test_many_literals_on_many_intervals_or_masks_are_judged_as_one_by_one() -> None:
    """What is done for some intervals at a time, or for masks that end alike, is the sum of its parts."""
    low = np.arange(3_000.0)
    cover = Cover.intervals(low, low + 9, True)
    wanted = [*range(0, 3_000, 3), 3_004]
    share = cover.patterns((q.Test("x", "in", wanted),))
    held = np.array([sum(number <= one <= number + 9 for one in (*range(0, 3_012, 3), 3_004)) for number in low])
    beyond = np.array([sum(number <= one <= number + 9 for one in range(3_000, 3_012, 3)) for number in low])
    assert share.share[share.truth[:, 0]][0] == pytest.approx((held - beyond) / 10)
    masks = [f"{i:02d}{'*' * (i % 3)}" for i in range(100)] + ["*1*", "1**", "111"]
    asked = (q.Test("z", "like", "%1"), q.Test("z", ">=", "105"), q.Test("z", "in", {"11", "111", "120"}))
    together = Cover.masked(masks).patterns(asked)
    for node, mask in enumerate(masks):
        alone = Cover.masked([mask]).patterns(asked)
        found = {tuple(t): s for t, s in zip(together.truth.tolist(), together.share[:, node], strict=True) if s > 0}
        single = {tuple(t): s for t, s in zip(alone.truth.tolist(), alone.share[:, 0], strict=True) if s > 0}
        assert found == pytest.approx(single)


def test_fractions_have_densities_and_no_joint_table() -> None:
    """In [0, 4) each value has density 1/4; there is no list of values."""
    cover = Cover.intervals([0.0], [4.0], False)
    estimate = BoxEstimate((BoxColumn("x", "number", "quasi", cover, np.array([0])),), np.array([2.0]))
    assert estimate.probability({"x": [0.0, 3.9, 4.0]}) == pytest.approx([0.25, 0.25, 0])
    refused(lambda: estimate.frame(["x"]), "fractions")


# Samples.


@given(st.data())
def test_a_reconstruction_has_a_value_of_each_published_cell(data: st.DataObject) -> None:
    """sample() has the published rows in their order, and each value lies in its box."""
    estimate, boxes, _ = data.draw(estimates())
    table = estimate.sample(seed=data.draw(st.integers(0, 2**32)))
    assert table.column_names == [column.name for column in estimate.columns]
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert len(rows) == len(boxes)
    for row, box in zip(rows, boxes, strict=True):
        assert all(node.get(plain(value), 0) > 0 for value, node in zip(row, box.nodes, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_samples_are_as_frequent_as_the_estimate_says(seed: int) -> None:
    """Total variation of 200,000 drawn rows from the joint table is small: uneven sets, bands, masks, overlaps."""
    random = np.random.default_rng(seed)
    uneven = Cover.sets(pa.array([1, 2, None]), [0, 2, 5], [0, 1, 0, 1, 2], [0.25, 0.75, 0.5, 0.2, 0.3])
    bands = Cover.intervals([0, 2, math.nan], [2, 5, math.nan], True, missing=2)
    columns = [
        BoxColumn("a", "number", "quasi", uneven, random.integers(0, 2, 20)),
        BoxColumn("b", "number", "quasi", bands, random.integers(0, 3, 20)),
        BoxColumn("c", "text", "quasi", Cover.masked(["1*", "17"]), random.integers(0, 2, 20)),
    ]
    estimate = BoxEstimate.from_rows(columns, random.random(20))
    drawn = estimate.sample(200_000, seed=seed)
    counts = drawn.group_by(["a", "b", "c"]).aggregate([([], "count_all")])
    expected = estimate.probability(counts.drop_columns(["count_all"]))
    assert expected.sum() == pytest.approx(1, abs=0.01)
    assert np.abs(counts["count_all"].to_numpy() / 200_000 - expected).sum() / 2 < 0.02


def test_samples_are_repeatable_and_typed() -> None:
    """The same seed gives the same rows; a generator goes on; what is no seed or number is refused."""
    estimate = three()
    assert estimate.sample(50, seed=3) == estimate.sample(50, seed=np.random.default_rng(3))
    assert estimate.sample(50, seed=3) != estimate.sample(50, seed=4)
    assert estimate.sample(0, seed=3).schema.types == [pa.int64(), pa.string(), pa.string()]
    for seed in (None, -1, "3", True):
        refused(lambda seed=seed: estimate.sample(3, seed=seed), "seed")
    for n in (-1, 2.5, True):
        refused(lambda n=n: estimate.sample(n, seed=1), "number of rows")
    fraction = BoxEstimate(estimate.columns, estimate.mass / 3)
    refused(lambda: fraction.sample(seed=1), "rows were published")


# What is no cover and no box.


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Cover.exact(pa.array([1, 1])),
        lambda: Cover.exact(pa.array([None, None, 1])),
        lambda: Cover.grouped(pa.array([1, 2]), [0, 2], 2),
        lambda: Cover.grouped(pa.array([1, 2]), [0], 2),
        lambda: Cover.grouped(pa.array([1, 2]), [0, 0], 1, root=1),
        lambda: Cover.sets(pa.array([1, 2]), [0, 2], [0, 1], [0.5, 0.6]),
        lambda: Cover.sets(pa.array([1, 2]), [0, 2], [0, 1], [1.0, 0.0]),
        lambda: Cover.sets(pa.array([1, 2]), [0, 2, 1], [0, 1]),
        lambda: Cover.sets(pa.array([1, 2]), [0, 2], [0, 2]),
        lambda: Cover.intervals([3], [2], True),
        lambda: Cover.intervals([2.5], [3], True),
        lambda: Cover.intervals([2], [math.nan], True),
        lambda: Cover.intervals([2], [math.inf], False),
        lambda: Cover.intervals([2], [3, 4], False),
        lambda: Cover.intervals([2], [3], True, "text"),
        lambda: Cover.intervals([2], [3], True, missing=0),
        lambda: Cover.unknown(2, missing=2),
        lambda: Cover.unknown(-1),
        lambda: Cover.sets(pa.array([1, 2]), [0, 2], [0, 0]),
        lambda: BoxColumn("a", "number", "quasi", Cover.unknown(2), np.array([0.0])),
        lambda: BoxEstimate.from_rows(three().columns, np.ones(1)),
        lambda: BoxColumn("a", "number", "quasi", Cover.unknown(2), np.array([0, 2])),
        lambda: BoxEstimate((), np.ones(1)),
        lambda: BoxEstimate((BoxColumn("a", "text", "quasi", Cover.unknown(1), np.zeros(1, dtype=int)),), np.zeros(1)),
        lambda: BoxEstimate((BoxColumn("a", "text", "quasi", Cover.unknown(1), np.zeros(1, dtype=int)),), np.ones(2)),
        lambda: BoxEstimate(
            (BoxColumn("a", "text", "quasi", Cover.unknown(1), np.zeros(1, dtype=int)),), np.ones(1), 2
        ),
    ],
)
def test_a_value_checks_itself_when_it_is_made(wrong: Any) -> None:
    """Each malformed cover or box is refused in one line."""
    refused(wrong)


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (["a", "b", "c"], [2, 0, 0]),  # b does not occur
        (["a", "b", None], [2, 0, 1]),
        (["a", "b"], [1, None, 0]),  # missing without a word
        (["a", None], [1, None, 0]),  # and with one
        (["a", "b", "a"], [2, 0, 1]),  # two words for one value
        ([1.5, math.nan, 2.5], [1, 0, 1]),
        ([1.5, math.nan, None], [1, 2, 0]),
        (["a"], []),
    ],
)
@pytest.mark.parametrize("cut", [0, 1])
def test_values_that_come_as_a_dictionary_are_encoded_like_any_others(
    words: list[Any], codes: list[int | None], cut: int
) -> None:
    """Each value that occurs stands once, nothing else does, and every cell keeps its value."""
    kind = pa.float64() if words[0] == 1.5 else pa.string()
    given = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(words, kind, from_pandas=False))
    for column in (pa.chunked_array([given[cut:]]), pa.chunked_array([given[:cut], given[cut:]])):
        found, cells = encoded(column), column.cast(kind).to_pylist()
        wanted = [None if cell is None or str(cell) == "nan" else cell for cell in cells]
        assert found.dictionary.take(found.indices).to_pylist() == wanted
        assert Counter(found.dictionary.to_pylist()) == Counter({*wanted})
