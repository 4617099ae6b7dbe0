"""Laws of the small language for counting: text and tree, the algebra, and the judging of values."""

# the module is imported whole: pytest would collect bare names such as Test and tests

import datetime as dt
import operator
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from jali.errors import InputError
from jali.query import tree as q
from jali.query.match import holds
from jali.query.parse import parse

Truth = NDArray[np.bool_]
AGE, ILL = q.Test("age", ">", 30), q.Test("disease", "=", "flu")
OPS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

numbers = st.integers() | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40)
literals = numbers | st.text() | st.floats(-1e200, 1e200)
names = st.text(min_size=1) | st.sampled_from(["age", "not", "marital-status", "naïve", 'say "x"', "Null"])
any_tests = (
    st.builds(q.Test, names, st.sampled_from(["=", "<", "<=", ">", ">="]), literals)
    | st.builds(q.Test, names, st.just("="), st.booleans())
    | st.builds(q.Test, names, st.just("in"), st.frozensets(literals, min_size=1))
    | st.builds(q.Test, names, st.just("like"), st.text())
    | st.builds(q.Test, names, st.just("null"), st.none())
)


def conditions(atoms: st.SearchStrategy[q.Test]) -> st.SearchStrategy[q.Condition]:
    """Trees over the atoms, with empty and single ANDs and ORs as well."""
    leaves: st.SearchStrategy[q.Condition] = atoms | st.builds(q.Constant, st.booleans())

    def grown(part: st.SearchStrategy[q.Condition]) -> st.SearchStrategy[q.Condition]:
        parts = st.lists(part, max_size=3).map(tuple)
        return st.builds(q.Not, part) | st.builds(q.And, parts) | st.builds(q.Or, parts)

    return st.recursive(leaves, grown, max_leaves=12)


few = conditions(
    st.builds(q.Test, st.sampled_from("ab"), st.sampled_from(["=", "<", ">="]), st.integers(0, 3))
    | st.builds(q.Test, st.sampled_from("ab"), st.just("null"), st.none())
)
cells = st.none() | st.integers(0, 3)
tables = st.lists(st.tuples(cells, cells), min_size=1, max_size=8)


def evaluate(condition: q.Condition, rows: list[tuple[Any, Any]]) -> Truth:
    """The obvious twin of any count: each test on each row, joined as the words say."""
    match condition:
        case q.Test():
            return holds(condition, [row["ab".index(condition.column)] for row in rows])
        case q.Not(part):
            return ~evaluate(part, rows)
        case q.And(parts):
            return reduce(operator.and_, [evaluate(p, rows) for p in parts], np.ones(len(rows), dtype=np.bool_))
        case q.Or(parts):
            return reduce(operator.or_, [evaluate(p, rows) for p in parts], np.zeros(len(rows), dtype=np.bool_))
        case q.Constant(value):
            return np.full(len(rows), value)


# Text and tree.


@given(conditions(any_tests))
def test_a_simplified_condition_is_printed_and_parsed_back_unchanged(condition: q.Condition) -> None:
    """parse(to_text(c)) == c for simplified c, and in general up to simplification."""
    plain = q.simplify(condition)
    assert parse(q.to_text(plain)) == plain
    assert q.simplify(parse(q.to_text(condition))) == plain


words = st.sampled_from(
    [
        *("a", "AND", "or", "NOT", "(", ")", "=", "<", "BETWEEN", "IN", "LIKE", "IS", "NULL", "TRUE", "'x'", '"c d"'),
        *("3", "-", ".5", ",", "1e9999999999", "≤", "'", '"', "²", "٣", "é", "\n", "é", "-1.50"),
    ]
)


@given(st.text() | st.lists(words, max_size=12).map(" ".join) | st.lists(words, max_size=8).map("".join))
def test_any_text_is_a_condition_that_prints_faithfully_or_an_input_error(text: str) -> None:
    """Nothing but InputError leaves `parse`, its line has a position, and what parses survives a round trip."""
    condition, line = None, "condition, at position 0: "
    try:
        condition = parse(text)
    except InputError as error:
        line = str(error)
    assert line.startswith("condition, at position ")
    assert "\n" not in line
    assert condition is None or parse(q.to_text(condition)) == condition


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("age > 30", AGE),
        ("30 < age", AGE),
        ("age<>-3", q.Not(q.Test("age", "=", -3))),
        ("3 != age", q.Not(q.Test("age", "=", 3))),
        ("NOT age == 1.50", q.Not(q.Test("age", "=", Decimal("1.5")))),
        ("x = 1e3", q.Test("x", "=", 1000)),
        ("age between 20 and 30", q.And((q.Test("age", ">=", 20), q.Test("age", "<=", 30)))),
        ("age NOT BETWEEN 2 AND 3", q.Not(q.And((q.Test("age", ">=", 2), q.Test("age", "<=", 3))))),
        ("a IN ('x', 3)", q.Test("a", "in", {"x", 3})),
        ("a NOT IN ('it''s')", q.Not(q.Test("a", "in", {"it's"}))),
        ("a IS NULL OR a IS NOT NULL", q.Or((q.Test("a", "null", None), q.Not(q.Test("a", "null", None))))),
        ("a LIKE 'b%' AND a NOT LIKE '_'", q.And((q.Test("a", "like", "b%"), q.Not(q.Test("a", "like", "_"))))),
        ('"marital-status" = \'x\'', q.Test("marital-status", "=", "x")),
        ('"say ""x""" = 1', q.Test('say "x"', "=", 1)),
        ("größe_2 > 1", q.Test("größe_2", ">", 1)),
        ("आयु > 1", q.Test("आयु", ">", 1)),
        ("true", q.Constant(True)),
        ("smoker = FALSE", q.Test("smoker", "=", False)),
        ("TRUE = smoker", q.Test("smoker", "=", True)),
        ("age>30 or age>30 and not disease='flu'", q.Or((AGE, q.And((AGE, q.Not(ILL)))))),
        ("(age > 30 OR age > 30) AND disease = 'flu'", q.And((q.Or((AGE, AGE)), ILL))),
    ],
)  # fmt: skip
def test_a_text_means_what_an_analyst_expects(text: str, meaning: q.Condition) -> None:
    """Each line of the grammar, with SQL's precedence: NOT before AND before OR."""
    assert parse(text) == meaning


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("  ", 1, "empty"),
        ("marital-status = 'x'", 1, 'write "marital-status" in double quotes'),
        ("20 <= age < 30", 11, "write 20 <= age AND age < 30, or age BETWEEN low AND high"),
        ('disease = "flu"', 11, "write text in single quotes, as 'flu'"),
        ("disease = flu", 11, "write text in single quotes, as 'flu'"),
        ("age = NULL", 7, "IS NULL"),
        ("age > 30 AND", 13, "a condition is missing"),
        ("age ≥ 30", 5, "write >="),
        ("age => 30", 6, "= != < <= > >="),
        ("age > 1,000", 8, "without commas"),
        ("born > 2020-05-01", 12, "'2020-05-01'"),
        ("age - 3 > 5", 5, "no arithmetic"),
        ("capital gain > 5", 9, '"capital gain"'),
        ("smoker", 7, "smoker = TRUE"),
        ("smoker > TRUE", 8, "no order"),
        ("a IN ()", 7, "a value is missing"),
        ("a IN (1, TRUE)", 6, "mixes"),
        ("a LIKE 3", 3, "LIKE 'a%'"),
        ("a NOT = 3", 7, "BETWEEN, IN or LIKE"),
        ("a = 'it", 5, "close it"),
        ("a = “x”", 5, "straight quotes"),
        ("a = 1 && b = 2", 7, "write AND"),
        ("(a = 1", 7, "close the parenthesis"),
        ("a = 1)", 6, "remove it"),
        ("2020_income > 3", 1, "double quotes"),
        ("3 < 5", 5, "one side must be a column"),
        ("'x'", 1, "compare a column with it"),
        ("a = 1e400", 5, "below 1e300"),
        ('"" = 1', 1, "a column without a name"),
    ],
)
def test_a_mistake_is_answered_with_its_place_and_its_cure(text: str, position: int, hint: str) -> None:
    """The line points to the position and says what to write instead."""
    with pytest.raises(InputError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"condition, at position {position}: ")
    assert hint in str(caught.value)


@pytest.mark.parametrize("text", ["(" * 10_000 + "a = 1" + ")" * 10_000, "NOT " * 10_000 + "a = 1", "(NOT " * 10_000])
def test_deep_nesting_is_an_input_error(text: str) -> None:
    """No depth of parentheses or NOTs reaches Python's recursion limit."""
    with pytest.raises(InputError, match="inside each other"):
        parse(text)


@pytest.mark.parametrize("text", ['"a\nb"', '"a\nb" = c', "a\nb = 1", "a = 'x\n", '1 < "a\nb" < 3', 'a = "b\u2028c"'])
def test_an_error_is_one_line_whatever_was_written(text: str) -> None:
    """Line breaks in names and values do not break the line."""
    with pytest.raises(InputError) as caught:
        parse(text)
    assert len(str(caught.value).splitlines()) == 1


def test_a_hundred_levels_and_any_length_are_fine() -> None:
    """What may be nested can also be simplified and printed; a long flat condition has no limit."""
    deep = parse("(a = 1 OR NOT (b = 2 AND " * 33 + "c = 3" + "))" * 33)
    assert parse(q.to_text(deep)) == deep
    assert len(q.tests(parse(" OR ".join(f"a = {i}" for i in range(20_000))))) == 20_000


def test_one_is_not_true() -> None:
    """`a = 1` and `a = TRUE` are different tests although 1 == True in Python."""
    assert q.Test("a", "=", 1) != q.Test("a", "=", True)
    assert q.Test("a", "in", {1}) != q.Test("a", "in", {True})
    assert q.tests(parse("a = 1 OR a = TRUE")) == (q.Test("a", "=", 1), q.Test("a", "=", True))


@pytest.mark.parametrize(
    ("column", "op", "value"),
    [
        *(("", "=", 1), ("a", "~", 1), ("a", "=", None), ("a", "=", float("nan")), ("a", "=", Decimal("sNaN"))),
        *(("a", "<", True), ("a", "in", frozenset()), ("a", "in", [1, True]), ("a", "like", 3), ("a", "null", 0)),
        *(("a", "=", 10**5000), ("a", "null", 10**5000), ("a", "=", object()), ("a", "in", [None])),
    ],
    ids=lambda value: type(value).__name__,  # pytest cannot print the huge integers
)
def test_a_test_that_means_nothing_cannot_be_made(column: str, op: Any, value: object) -> None:
    """A test checks itself, whoever makes it."""
    with pytest.raises(InputError):
        q.Test(column, op, value)


# The algebra.


@given(few, few, tables)
def test_de_morgan(a: q.Condition, b: q.Condition, rows: list[tuple[Any, Any]]) -> None:
    """NOT (a AND b) = NOT a OR NOT b, and the other way round, missing values included."""
    assert np.array_equal(evaluate(q.Not(q.And((a, b))), rows), evaluate(q.Or((q.Not(a), q.Not(b))), rows))
    assert np.array_equal(evaluate(q.Not(q.Or((a, b))), rows), evaluate(q.And((q.Not(a), q.Not(b))), rows))


@given(few, tables)
def test_a_condition_and_its_negation_add_up_to_everybody(condition: q.Condition, rows: list[tuple[Any, Any]]) -> None:
    """count(c) + count(NOT c) = n: negation is two-valued."""
    assert evaluate(condition, rows).sum() + evaluate(q.Not(condition), rows).sum() == len(rows)


@given(few, tables)
def test_simplifying_changes_no_answer_and_is_done_once(condition: q.Condition, rows: list[tuple[Any, Any]]) -> None:
    """simplify keeps the meaning, leaves no constant inside, and is idempotent."""
    plain = q.simplify(condition)
    assert np.array_equal(evaluate(condition, rows), evaluate(plain, rows))
    assert q.simplify(plain) == plain
    assert isinstance(plain, q.Constant) or "Constant" not in repr(plain)
    assert set(q.tests(plain)) <= set(q.tests(condition))


@given(few, tables, st.data())
def test_assigning_a_test_its_truth_changes_no_answer(
    condition: q.Condition, rows: list[tuple[Any, Any]], data: st.DataObject
) -> None:
    """On the rows where t is true c equals assign(c, {t: True}), elsewhere assign(c, {t: False}), and t is gone."""
    test = data.draw(st.sampled_from(q.tests(condition) or (q.Test("a", "=", 1),)))
    yes, no = q.assign(condition, {test: True}), q.assign(condition, {test: False})
    expanded = np.where(evaluate(test, rows), evaluate(yes, rows), evaluate(no, rows))
    assert np.array_equal(evaluate(condition, rows), expanded)
    assert test not in q.tests(yes) + q.tests(no)


def test_tests_and_columns_are_found_in_order() -> None:
    """tests lists each atomic test once, in order of first appearance."""
    condition = parse("disease = 'flu' AND NOT (age > 30 OR disease = 'flu') AND TRUE")
    assert q.tests(condition) == (ILL, AGE)
    assert q.columns(condition) == {"age", "disease"}
    assert q.tests(q.Constant(True)) == ()


# From a mapping.


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({}, "TRUE"),
        ({"age": (35, 45), "disease": {"flu"}}, "age BETWEEN 35 AND 45 AND disease IN ('flu')"),
        ({"age": (None, 45)}, "age <= 45"),
        ({"age": (0, None)}, "age >= 0"),
        ({"age": ("9", "10")}, "age BETWEEN '9' AND '10'"),
        ({"age": None, "smoker": True}, "age IS NULL AND smoker = TRUE"),
        ({"a": [np.int64(3), None]}, "a IN (3) OR a IS NULL"),
        ({"a": {None}}, "a IS NULL"),
        ({"x": 0.1}, "x = 0.1"),
        ({"born": (dt.date(2020, 1, 1), dt.date(2020, 5, 1))}, "born BETWEEN '2020-01-01' AND '2020-05-01'"),
        ({"seen": dt.datetime(2020, 5, 1, 12)}, "seen = '2020-05-01T12:00:00'"),
    ],
)  # fmt: skip
def test_a_mapping_means_the_same_as_its_text(where: dict[str, object], text: str) -> None:
    """Tuples are closed ranges, sets and lists are IN, scalars equality, None is missing."""
    assert q.from_mapping(where) == parse(text)


@pytest.mark.parametrize(
    "value",
    [
        *((1, 2, 3), (), (None, None), {"a": 1}, set(), [], (3, 2), ("b", "a"), ("10", "9"), (1, "a"), float("nan")),
        *((False, True), [[1]], [1, True], object(), (np.zeros(2), 1), 10**5000, (10**5000, 1, 2), np.zeros(2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_mapping_of_a_bad_shape_is_an_error_that_names_the_column(value: object) -> None:
    """Bad shapes are InputErrors of one line with the column's name and advice."""
    with pytest.raises(InputError, match=r"column age: .*; .*") as caught:
        q.from_mapping({"age": value})
    assert "\n" not in str(caught.value)


def test_a_mapping_is_required_and_so_are_names() -> None:
    """A list or a nameless column is refused."""
    for bad in ([("a", 1)], {1: 2}, {"": 2}):
        with pytest.raises(InputError):
            q.from_mapping(bad)  # type: ignore[arg-type]


# Judging values.

order_tests = st.builds(q.Test, st.just("x"), st.sampled_from(list(OPS)), numbers | st.floats(-1e200, 1e200))
wide = st.integers(-(10**25), 10**25)
ambiguous = st.sampled_from([2**53, 2**53 + 1, 10**20, 10**20 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 0])
cells_of_numbers = (
    wide | ambiguous | st.floats(allow_nan=False) | st.decimals(allow_nan=False) | ambiguous.map(float) | st.none()
)


def slow(test: q.Test, value: Any) -> bool:
    """Rational arithmetic, with decimals rounded to a float only beside a float."""
    if value is None:
        return False
    bound: Any = test.value
    if isinstance(value, float) and isinstance(bound, Decimal):
        return bool(OPS[test.op](value, float(bound)))
    if value in (float("inf"), float("-inf")):
        return bool(OPS[test.op](float(value), 0.0))
    return bool(OPS[test.op](Fraction(value), Fraction(bound)))


@given(order_tests | st.builds(q.Test, st.just("x"), st.sampled_from(list(OPS)), ambiguous), st.lists(cells_of_numbers))
def test_numbers_are_compared_exactly(test: q.Test, values: list[Any]) -> None:
    """holds agrees with rational arithmetic on integers, Decimals and floats of any size."""
    assert holds(test, values).tolist() == [slow(test, v) for v in values]


halves = st.integers(-9, 9).map(lambda n: n / 2)  # floats of any width hold them


@given(
    st.builds(q.Test, st.just("x"), st.sampled_from(list(OPS)), ambiguous | st.integers(-3, 3) | halves),
    st.sampled_from([np.int8, np.int64, np.uint64, np.float32, np.float64]),
    st.lists(st.integers(0, 3) | st.just(100)),
)
def test_an_array_is_judged_like_its_list(test: q.Test, dtype: type, values: list[int]) -> None:
    """A numeric ndarray of any width gives what the Python numbers give."""
    array: NDArray[Any] = np.array(values, dtype=dtype)
    assert holds(test, array).tolist() == holds(test, array.tolist()).tolist()


@given(
    st.lists(st.none() | st.floats() | st.integers(-5, 5) | st.decimals()),
    st.frozensets(st.integers(-5, 5), min_size=1),
)
def test_in_is_a_union_of_equalities(values: list[Any], wanted: frozenset[int]) -> None:
    """x IN (a, b) is x = a OR x = b; missing values, NaN among them, satisfy neither but IS NULL."""
    each = [holds(q.Test("x", "=", one), values) for one in wanted]
    found = holds(q.Test("x", "in", wanted), values)
    assert np.array_equal(found, np.logical_or.reduce(each))
    assert not (found & holds(q.Test("x", "null", None), values)).any()


def like(pattern: str, text: str) -> bool:
    """LIKE as a recursion on the pattern."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(pattern[1:], text[i:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and like(pattern[1:], text[1:])


@given(st.text("ab%_.\n", max_size=6), st.lists(st.text("ab.\n_%", max_size=6)))
def test_like_is_what_its_recursion_says(pattern: str, values: list[str]) -> None:
    """% stands for any text, _ for one sign, everything else for itself."""
    assert holds(q.Test("x", "like", pattern), values).tolist() == [like(pattern, v) for v in values]


def test_like_takes_linear_time() -> None:
    """A pattern of many % cannot stall the count."""
    assert not holds(q.Test("x", "like", "%a" * 40 + "%b"), ["a" * 5000]).any()


DAY, NOON = dt.date(2020, 5, 1), dt.datetime(2020, 5, 1, 12)
ZONED = dt.datetime(2020, 5, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("x > 9", ["30", "8", None], "TFF"),
        ("x = 501", ["00501", " 501"], "TT"),
        ("x = '501'", ["00501", "501"], "FT"),
        ("x >= '30'", [30, 29.5, Decimal(31), None], "TFTF"),
        ("x = 0.1", [0.1, Decimal("0.1"), Decimal("0.1000000000000000001")], "TTF"),
        ("x = 0.1", np.array([0.1, np.nan], dtype=np.float32), "TF"),
        ("x < 70000.5", np.array([1.0], dtype=np.float16), "T"),
        ("x = 3", [np.int8(3), np.float32(3), None], "TTF"),
        ("x = TRUE", [True, False, None, np.True_], "TFFT"),
        ("x IN ('True')", [True, False], "TF"),
        ("x = FALSE", ["true", "FALSE"], "FT"),
        ("x >= '2020-05-01'", [DAY, NOON, dt.date(2020, 4, 30), None], "TTFF"),
        ("x = '2020-05-01'", [DAY, NOON], "TF"),
        ("x = '2020-05-01 12:00'", np.array(["2020-05-01T12:00", "NaT"], dtype="M8[ns]"), "TF"),
        ("x = '2020-05-01T13:00+01:00'", [ZONED], "T"),
        ("x < 'b'", ["a", "b", "", None], "TFTF"),
        ("x = 'unknown'", [30, "unknown", None], "FTF"),
        ("x > 20", [30, "unknown", 10], "TFF"),
        ("x IN ('unknown', '30')", [30, "unknown", 10], "TTF"),
        ("x IS NULL", [None, float("nan"), Decimal("sNaN"), 0, ""], "TTTFF"),
        ("x IS NULL", np.ma.masked_array([1, 2], mask=[False, True]), "FT"),
        ("x = 'a'", [None, float("nan")], "FF"),
        ("x = 'a'", [], ""),
        ("x = 'a'", np.array([], dtype=np.int64), ""),
    ],
)  # fmt: skip
def test_values_of_each_kind_are_judged_as_expected(text: str, values: Any, expected: str) -> None:
    """Literals meet numbers, text, truth values and dates in common terms."""
    test = parse(text)
    assert isinstance(test, q.Test)
    assert "".join("FT"[t] for t in holds(test, values).tolist()) == expected


@pytest.mark.parametrize(
    ("text", "values", "hint"),
    [
        ("age = 'thirty'", [30], "column age holds numbers: got age = 'thirty'; write a number without quotes"),
        ("age IN ('thirty', '30')", [30], "column age holds numbers: got age = 'thirty'"),
        ("age > 30", ["30", "secret"], "holds text, not only numbers"),
        ("age > 30", ["30", "secret"], "write the value in single quotes: age > '30'"),
        ("x = TRUE", ["secret"], "holds text, not only TRUE and FALSE"),
        ("x = TRUE", [1], "holds numbers"),
        ("x = 1", [True], "write x = TRUE or x = FALSE"),
        ("x < 'true'", [True], "write x = TRUE or x = FALSE"),
        ("born > '2020-05'", [DAY], "write a full date or time in single quotes"),
        ("born > '2020-02-30'", [DAY], "write a full date or time in single quotes"),
        ("born > 2020", [DAY], "write a full date or time in single quotes"),
        ("seen > '2020-05-01'", [ZONED], "with its offset"),
        ("age LIKE '3%'", [30], "holds numbers"),
        ('"a b" = 1', [b"secret"], "convert them"),
    ],
)  # fmt: skip
def test_a_literal_of_another_kind_is_an_error_that_names_the_column(text: str, values: list[Any], hint: str) -> None:
    """The line says what the column holds and what to write, and never quotes a value of the table."""
    test = parse(text)
    assert isinstance(test, q.Test)
    with pytest.raises(InputError) as caught:
        holds(test, values)
    assert hint in str(caught.value)
    assert test.column in str(caught.value)
    assert "secret" not in str(caught.value)
