"""Bounds of counts are exact: they are the fewest and the most over all tables that fit what was published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.cli.app import app
from jali.errors import UndeterminedError
from jali.query import tree as q
from oracles import bounds as oracle

TREE = [["x", "xy", "*"], ["y", "xy", "*"], ["z", "zz", "*"]]
ANY_NUMBER = [None, *(n / 2 for n in range(-2, 12))]  # what an undeclared * of numbers may be, as far as tests tell
SETS = {"xy": ["x", "y"], "zz": ["z"], "*": ["x", "y", "z"]}


def readings(name: str, shown: str) -> list[Any]:
    """What a published cell may stand for, by what it shows."""
    if name == "a":
        low, high = (int(end) for end in (shown.strip("[]").split(", ") * 2)[:2])
        return list(range(low, min(high, 4) + 1))  # the last band is wider than the declared domain
    if name == "b":
        return SETS.get(shown, [shown])
    return ANY_NUMBER if name == "c" and shown == "*" else [int(shown) if name == "c" else shown]


def atoms() -> st.SearchStrategy[q.Condition]:
    """Tests of any of the columns."""
    order = st.sampled_from(["=", "<", "<=", ">", ">="])
    return (
        st.builds(q.Test, st.sampled_from("ac"), order, st.integers(0, 4))
        | st.builds(q.Test, st.just("b"), st.just("in"), st.frozensets(st.sampled_from("xyz"), min_size=1))
        | st.builds(q.Test, st.just("s"), st.just("="), st.sampled_from("pq"))
        | st.just(q.Test("c", "null", None))
    )


def conditions() -> st.SearchStrategy[q.Condition]:
    """AND, OR and NOT over tests, nested."""
    return st.recursive(
        atoms(),
        lambda part: (
            st.builds(q.Not, part)
            | st.lists(part, min_size=2, max_size=3).map(lambda parts: q.And(tuple(parts)))
            | st.lists(part, min_size=2, max_size=3).map(lambda parts: q.Or(tuple(parts)))
        ),
        max_leaves=6,
    )


PEOPLE = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from("xyz"), st.integers(0, 3), st.sampled_from("pq")),
    min_size=2, max_size=6,
)  # fmt: skip


def read(people: list[tuple[Any, ...]]) -> Any:
    """The table of some people: declared bands, a taxonomy, and a column of which only * can be shown."""
    a, b, c, s = (list(each) for each in zip(*people, strict=True))
    columns = {"a": a, "b": b, "c": c, "s": s}
    quasi = {"a": jali.bands(2, 4, low=0, high=4), "b": jali.taxonomy(TREE), "c": jali.suppress()}
    return jali.table(pa.table(columns), quasi=quasi, sensitive=["s"])


def asked(estimate: Any, condition: q.Condition) -> tuple[float, float]:
    """The bounds of a count, whether there is an estimate or not."""
    try:
        found = estimate.count(condition)
    except UndeterminedError as problem:
        return problem.low, problem.high
    assert found.low <= found <= found.high
    return found.low, found.high


@given(PEOPLE, conditions(), st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)))
def test_the_bounds_of_a_generalized_table_are_those_of_all_its_worlds(
    people: list[tuple[Any, ...]], condition: q.Condition, levels: tuple[int, int, int]
) -> None:
    """Every row can be any cell of its box, independently; also where a cell is * and its domain is not declared."""
    release = jali.generalize(
        read(people), [jali.KAnonymity(1)], levels=dict(zip("abc", levels, strict=True)), suppress=0
    )
    rows = [
        {name: readings(name, str(shown)) for name, shown in row.items()}
        for row in release.tables["data"].select(["a", "b", "c", "s"]).to_pylist()
    ]
    assert asked(release.estimate(), condition) == oracle.over_worlds(rows, condition)


def starred() -> Any:
    """A table whose one quasi-identifier is published as *, with no declared domain."""
    ages = pa.table({"age": [30, 41, 52, 63], "zip": list("aabb"), "ill": ["flu", "cold", "flu", "flu"]})
    return jali.table(ages, quasi={"age": jali.suppress(), "zip": jali.suppress()}, sensitive=["ill"])


RELEASES: dict[str, Any] = {
    "generalize": lambda: jali.generalize(starred(), [jali.KAnonymity(4)]),
    "angelize": lambda: jali.angelize(starred(), jali.FrequencyDiversity(1.2), k=4, show="taxonomy"),
    "anatomize": lambda: jali.anatomize(
        starred(), jali.FrequencyDiversity(1.2), buckets={"age": 1, "zip": 1}, generalized=True
    ),
    "marginals": lambda: jali.marginals(starred(), [jali.KAnonymity(3)]),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_query_answers_with_bounds_where_a_column_is_shown_as_a_star(kind: str, tmp_path: Path) -> None:
    """Of 3 people with flu any number may be above 40: no estimate, but at least 0 and at most 3; exit code 0."""
    RELEASES[kind]().save(tmp_path / "out")
    result = CliRunner().invoke(app, ["query", str(tmp_path / "out"), "age > 40 AND ill = 'flu'", "--json", "-q"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["count"], told["low"], told["high"], told["assumes"]) == (None, 0, 3, [])
    result = CliRunner().invoke(app, ["query", str(tmp_path / "out"), "age > 40 OR ill = 'flu'"])
    assert result.exit_code == 0, result.output
    told = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert told == [["estimate", "not", "known"], ["at", "least", "3"], ["at", "most", "4"]]
    assert "no declared domain" in result.stderr


def test_or_over_and_is_exact_where_only_one_world_remains() -> None:
    """a = 1 for one of two people and nobody has b = y: the count is 1, whoever has which value."""
    two = jali.table(pa.table({"a": [1, 2], "b": ["x", "x"], "s": ["p", "q"]}), quasi=["a", "b"], sensitive=["s"])
    for release in (
        jali.angelize(two, jali.FrequencyDiversity(2), k=1),
        jali.anatomize(two, jali.FrequencyDiversity(2)),
    ):
        found = release.estimate().count("a = 1 OR (b = 'y' AND s = 'p')")
        assert (found.low, found, found.high) == (1, 1, 1)


HUGE = [2**53 - 3, 2**53, 2**60, 2**62, -(2**53) - 5, -(2**62)]
METHODS: dict[str, Any] = {
    "lattice": lambda table: jali.generalize(table, jali.KAnonymity(2)),
    "recoding": lambda table: jali.recode(table, jali.KAnonymity(2)),
    **{
        show: lambda table, show=show: jali.partition(table, jali.KAnonymity(2), show=show)
        for show in ("interval", "interval-exact", "set", "set-exact", "taxonomy", "pdf")
    },
    "ANGEL": lambda table: jali.angelize(table, jali.FrequencyDiversity(1), k=2),
}


@pytest.mark.parametrize("method", METHODS)
@given(
    base=st.sampled_from(HUGE),
    steps=st.lists(st.none() | st.integers(0, 9), min_size=2, max_size=9).filter(lambda some: any(s for s in some)),
    op=st.sampled_from(["<", "<=", "=", ">", ">="]),
    at=st.integers(-2, 11),
    read=st.tuples(
        st.sampled_from(["quasi", "sensitive"]), st.sampled_from([pa.int64(), pa.string(), pa.decimal128(25, 2)])
    ),
)
def test_the_truth_lies_within_the_bounds_beyond_the_whole_numbers_that_floats_hold(
    method: str, *, base: int, steps: list[int | None], op: Any, at: int, read: tuple[str, pa.DataType]
) -> None:
    """Intervals end at floats, which take 2**53 + 1 for 2**53: bounds are wider there, and never miss."""
    role, form = read
    numbers = [None if step is None else base + step for step in steps]
    texts = [None if number is None else str(number) for number in numbers]
    frame = pa.table({"x": pa.array(texts if form == pa.string() else numbers).cast(form), "s": ["a"] * len(numbers)})
    roles = {"quasi": {"x": None}, "sensitive": ["s"]} if role == "quasi" else {"quasi": ["s"], "sensitive": ["x"]}
    estimate = METHODS[method](jali.table(frame, **roles)).estimate()
    compare = {"<": int.__lt__, "<=": int.__le__, "=": int.__eq__, ">": int.__gt__, ">=": int.__ge__}[op]
    truth = sum(number is not None and compare(number, base + at) for number in numbers)
    try:
        count = estimate.count(q.Test("x", op, base + at))
        low, high = count.low, count.high
    except UndeterminedError as problem:
        low, high = problem.low, problem.high
    assert low <= truth <= high
