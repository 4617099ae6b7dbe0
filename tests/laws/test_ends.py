"""Laws of ends: intervals and sets name public values alone, and everything else still holds of them."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.ends import ends_of, ladder, people_by_value
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, UndeterminedError
from oracles.ends import outward, shared_values, step_of_rows

K = 3
TOWNS = ["Ithaca", "Dryden", "Etna", "Lansing", "Enfield"]


@st.composite
def people(draw: st.DrawFn, *, persons: bool = False) -> tuple[dict[str, list[Any]], Table]:
    """A small table of whole numbers, fractions, days and words, with ties and missing values."""
    rows = draw(st.integers(4, 18))
    column = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    day = dt.date(1970, 1, 1)
    frame = {
        "age": column(draw(st.sampled_from([[30], [20, 21, 29, 30, 41], [-7, 1, 2, 3, 18, 35, None]]))),
        "pay": column([0.1, 0.3, 0.7, 1.25, 2.0, 17.5]),
        "born": column([day + dt.timedelta(days=n) for n in (0, 3, 40, 400, 9000)]),
        "town": column(TOWNS[: draw(st.integers(1, 5))]),
        "ill": column(["flu", "cold", "cancer"]),
    }
    known = {"person": column(list(range(5)))} if persons else {}
    quasi = {"age": None, "pay": None, "born": None, "town": jali.suppress()}
    options: Any = {"person": "person"} if persons else {}
    return frame | known, jali.table(pa.table(frame | known), quasi=quasi, sensitive=["ill"], **options)


def parts(cell: str | None) -> list[str]:
    """The values that a cell names, read as people read it."""
    text = str(cell).removesuffix(" or missing")
    if text[:1] in "[{":
        return [part for part in text[1:-1].split(", ") if part != "other values"]
    return [text]


def texts(values: list[Any]) -> list[str]:
    return [str(int(x)) if isinstance(x, float) and x == int(x) else str(x) for x in values]


@given(st.integers(2, 5), st.data())
def test_a_value_is_public_exactly_if_enough_people_share_it(k: int, data: st.DataObject) -> None:
    """People are counted, not rows: somebody who has a value in three rows is one person."""
    frame, table = data.draw(people(persons=data.draw(st.booleans())))
    for name in ("age", "pay", "born", "town"):
        public = shared_values(frame[name], frame.get("person"), k)
        column = table[name]
        ends = ends_of(table, column, k, None)
        expected = [value in public or value is None for value in column.values.to_pylist()]
        assert ends.public.tolist() == expected
        owners = frame.get("person", range(len(frame[name])))
        pairs = {(owner, value) for owner, value in zip(owners, frame[name], strict=True)}
        assert Counter(value for _, value in pairs) == dict(
            zip(column.values.to_pylist(), people_by_value(table, column).tolist(), strict=True)
        )


@pytest.mark.parametrize("show", [None, "interval", "set"])
@given(data=st.data())
def test_no_cell_names_a_value_that_few_share_unless_it_is_a_multiple_of_the_step(
    show: Any, data: st.DataObject
) -> None:
    """Each named value is shared by k people, or an end that the oracle rounds so."""
    frame, table = data.draw(people())
    release = jali.partition(table, [jali.KAnonymity(K)], show=show)
    for name in ("age", "pay", "town"):
        public = set(texts(sorted(shared_values([x for x in frame[name] if x is not None], None, K))))
        naming = release[name].facts.naming  # type: ignore[union-attr]
        for cell in release[name].labels.to_pylist():
            for part in parts(cell):
                if part in public or part in ("None", "missing"):
                    continue
                assert name != "town"
                assert naming is not None
                assert naming.source == "rows"
                assert (Fraction(part) / Fraction(str(naming.step))).denominator == 1


STEPS = st.sampled_from(["1", "2", "5", "10", "0.5", "1.5", "0.01", "2.4", "37/3"]).map(Fraction)


@given(st.lists(st.integers(-40, 90), min_size=1, max_size=14), st.integers(2, 4), st.none() | STEPS, st.booleans())
def test_ends_are_rounded_as_the_definition_says(
    numbers: list[int], k: int, grid: Fraction | None, floats: bool
) -> None:
    """The step is the caller's, else that of the rows; an end that k people share stays; whole numbers stay whole."""
    kind = pa.float64() if floats else pa.int64()
    table = jali.table(pa.table({"x": pa.array(numbers, kind)}), quasi={"x": jali.suppress()})
    column, values = table["x"], [Fraction(x) for x in numbers]
    public = shared_values(values, None, k)
    ends = ends_of(table, column, k, grid)
    step = grid or step_of_rows(values, None, k)
    for low, high in itertools.combinations_with_replacement(sorted(set(values)), 2):
        span = ends.span(column, *(column.values.to_pylist().index(int(x)) for x in (low, high)))
        first, last = outward(low, high, public, step)
        assert span == (first, last, str(first) if first == last else f"[{first}, {last}]", not {low, high} <= public)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-300, 300)), min_size=3, max_size=25), st.integers(2, 4))
def test_the_step_of_the_rows_is_the_first_that_hides_nine_in_ten(rows: list[tuple[int, int]], k: int) -> None:
    """With people who have several rows, and without; a table whose values are all shared needs none."""
    for named in (False, True):
        owner = [person for person, _ in rows] if named else None
        frame = pa.table({"who": [person for person, _ in rows], "x": [x for _, x in rows]})
        options: Any = {"person": "who"} if named else {}
        table = jali.table(frame, quasi={"x": jali.bands(5)}, **options)
        ends = ends_of(table, table["x"], k, None)
        values = [Fraction(x) for _, x in rows]
        if set(values) <= shared_values(values, owner, k):
            assert ends.step is None
        else:
            assert ends.step == step_of_rows(values, owner, k)


def test_steps_are_one_two_or_five_times_a_power_of_ten() -> None:
    for least in (Fraction(1, 3000), Fraction(7, 10), Fraction(1), Fraction(12), Fraction(10**20)):
        step = next(ladder(least))
        digits = f"{float(step):e}"
        assert digits[0] in "125"
        assert least <= step <= Fraction(5, 2) * least
        assert set(digits[1 : digits.index("e")]) <= {".", "0"}


@pytest.mark.parametrize("show", ["interval", "set"])
@given(data=st.data())
def test_every_row_is_covered_by_its_cell_and_bounds_hold(show: Any, data: st.DataObject) -> None:
    """What an analyst counts lies within the bounds, also where cells show other values or overlap."""
    frame, table = data.draw(people())
    release = jali.partition(table, [jali.KAnonymity(K)], show=show)
    estimate = release.estimate()
    for condition, holds in (
        ("age >= 21", lambda row: row["age"] is not None and row["age"] >= 21),
        ("pay < 0.7", lambda row: row["pay"] < 0.7),
        ("town = 'Etna'", lambda row: row["town"] == "Etna"),
        ("born < '1971-01-01'", lambda row: row["born"] < dt.date(1971, 1, 1)),
        ("town = 'Etna' and ill = 'flu'", lambda row: row["town"] == "Etna" and row["ill"] == "flu"),
    ):
        rows = [dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)]
        try:
            found: Any = estimate.count(condition)
        except UndeterminedError as unknown:
            found = unknown
        assert found.low <= sum(map(holds, rows)) <= found.high


@given(data=st.data())
def test_figures_are_exact_only_where_cells_are_those_of_the_groups(data: st.DataObject) -> None:
    """A rounded end or another value makes cells overlap: disclosure is an upper bound then, also when loaded."""
    _, table = data.draw(people())
    release = jali.partition(table, [jali.KAnonymity(K)])
    exact = jali.partition(table, [jali.KAnonymity(K)], show={c.name: _exactly(c.kind) for c in table.quasi})
    wider = [column.name for column in release.of_role("quasi") if column.facts.overlapping]  # type: ignore[union-attr]
    assert release.disclosure_bound == ("at most" if wider else "exact")
    assert exact.disclosure_bound == "exact"
    with TemporaryDirectory() as folder:
        loaded = jali.load(release.save(Path(folder) / "out"))
        assert loaded.disclosure_bound == release.disclosure_bound
        assert repr(loaded["age"].facts) == repr(release["age"].facts)
        assert jali.audit(loaded).to_dict() == jali.audit(release).to_dict()
    if not wider:
        assert jali.measure(release, table).kl == pytest.approx(jali.measure(exact, table).kl)


def _exactly(kind: str) -> Any:
    return "interval-exact" if kind in ("number", "date") else "set-exact"


@given(data=st.data(), verb=st.sampled_from(["generalize", "partition", "recode", "anatomize", "angelize"]))
def test_groups_that_are_shown_alike_are_one_group_of_the_files(data: st.DataObject, verb: str) -> None:
    """Counted again from the file: every group has k people, and as many groups as the manifest says."""
    _, table = data.draw(people())
    options: dict[str, Any] = {"generalize": {"show": "interval"}, "recode": {"show": "set"}}.get(verb, {})
    promises: list[Any] = [jali.KAnonymity(K)]
    if verb == "anatomize":
        options, promises = {"buckets": "partition", "generalized": True}, [jali.DistinctDiversity(2)]
    if verb == "angelize":
        promises.append(jali.DistinctDiversity(2))
    try:
        release = getattr(jali, verb)(table, promises, **options)
    except (InfeasibleError, InputError):
        return
    with TemporaryDirectory() as folder:
        loaded = jali.load(release.save(Path(folder) / "out"))
    cells = Counter(tuple(row.values()) for row in loaded.individuals.to_pylist())
    if verb in ("generalize", "partition", "recode"):
        assert len(cells) == loaded.manifest.counts["groups"]
    if verb != "anatomize":
        assert min(cells.values()) >= K
    assert all(loaded.kept().values())


@pytest.mark.parametrize("verb", ["generalize", "partition", "recode", "anatomize", "angelize"])
@given(data=st.data())
def test_no_cell_without_brackets_names_a_rare_value(verb: str, data: st.DataObject) -> None:
    """A number or day that stands alone is shared by k people, whatever the step; k is 5 where no promise says it."""
    rows = data.draw(st.sampled_from([4, 8]))
    column = lambda values: [  # noqa: E731
        values[0], *data.draw(st.lists(st.sampled_from(values), min_size=rows - 1, max_size=rows - 1)),
    ]  # fmt: skip
    none = [None] * 4  # a group of one rare value and of missing ones has a single value
    some = data.draw(st.sampled_from([[0, *none], [7, 41, *none], [-1, 0, 1], [20.0, 100.0, *none], [0.5, *none]]))
    frame = {
        "age": column(some), "pay": column([0.25, 3.0, 88.85, *none]), "ill": ["flu", "cold"] * (rows // 2),
        "born": column([dt.date(1970, 1, 1), dt.date(1970, 1, 2), dt.date(1999, 5, 5), *none]),
    }  # fmt: skip
    quasi = {"age": jali.suppress(), "pay": jali.bands(5, low=0.25, high=88.85), "born": jali.suppress()}
    chosen = data.draw(st.sampled_from(list(quasi)))
    table = jali.table(pa.table(frame), quasi={chosen: quasi[chosen]}, sensitive=["ill"])
    units = ["day", "week", "month"] if chosen == "born" else [0.01, 0.3, 0.5, 1, 1.5, 2, 88.85, 1000]
    grid, show = data.draw(st.none() | st.sampled_from(units)), "set" if verb == "recode" else "interval"
    promises: Any = [jali.KAnonymity(K), jali.DistinctDiversity(2)]
    options: dict[str, Any] = {"show": show, "grid": grid}
    if verb == "anatomize":
        promises, options = promises[1:], options | {"buckets": "partition", "generalized": True}
    try:
        release = getattr(jali, verb)(table, promises, **options)
    except InfeasibleError:
        return
    shared = shared_values([x for x in frame[chosen] if x is not None], None, 5 if verb == "anatomize" else K)
    for cell in release[chosen].labels.to_pylist():
        text = str(cell).removesuffix(" or missing")
        assert text[0] in "[{" or text in {"None", "*", *texts(list(shared))}


def test_an_end_that_is_rounded_onto_a_public_value_makes_no_second_cell(tmp_path: Path) -> None:
    """20 and 23 are public, 21 is not: [20, 23] is one cell, whichever of its groups was rounded."""
    ages, ward = [20] * 5 + [23] * 2 + [21] + [23] * 5, "a" * 7 + "b" * 6
    frame = pa.table({"age": ages, "ward": list(ward), "ill": list("xyxyxyxyxyxyx")})
    table = jali.table(frame, quasi={"age": jali.bands(50), "ward": jali.suppress()}, sensitive=["ill"])
    release = jali.generalize(
        table, [jali.KAnonymity(5)], levels={"age": 1, "ward": 0}, show={"age": "interval"}, grid=5
    )
    cells = {(row["age"], row["ward"]) for row in release.tables["data"].to_pylist()}
    assert cells == {("[20, 23]", "a"), ("[20, 23]", "b")}
    assert jali.load(release.save(tmp_path / "out")).tables["data"].num_rows == len(frame)


def test_people_with_several_rows_are_judged_by_the_groups_that_are_shown() -> None:
    frame = pa.table({
        "who": [i // 2 for i in range(40)], "x": [i * 1.37 for i in range(40)],
        "ill": ["flu", "cold", "gout", "cold"] * 10,
    })  # fmt: skip
    table = jali.table(frame, quasi={"x": jali.bands(5)}, sensitive=["ill"], person="who")
    for make in (jali.partition, lambda t, p: jali.generalize(t, p, show="interval")):
        release = make(table, [jali.KAnonymity(4)])
        assert all(release.kept().values())
        assert not {str(x) for x in frame["x"].to_pylist()} & {
            p for c in release["x"].labels.to_pylist() for p in parts(c)
        }


def test_declared_values_are_public_and_limits_give_the_step() -> None:
    numbers = [17.3, 18.9, 23.4, 88.8, 41.7, 64.2]
    for builder, expected in (
        (jali.bands(5, low=0, high=100), "[17, 89]"),  # a hundredth of the limits: 1
        (jali.bands(5, low=0, high=1000), "[10, 90]"),
        (jali.bands(5, low=0, high=88.85), "[17, 88.85]"),  # no end passes a limit
        (jali.grid(0.01, 0.1), "[0, 100]"),  # a width of a hierarchy may be finer than people are apart
    ):
        table = jali.table(pa.table({"x": numbers}), quasi={"x": builder})
        assert jali.partition(table, [jali.KAnonymity(6)], show="interval")["x"].labels.to_pylist() == [expected]
    ages = jali.table(pa.table({"x": [17, 18, 91]}), quasi={"x": jali.bands(5, low=0, high=120)})
    release = jali.partition(ages, [jali.KAnonymity(3)])
    assert release["x"].labels.to_pylist() == ["[17, 91]"]
    assert release["x"].facts.naming is None  # type: ignore[union-attr]


def test_days_and_moments_are_rounded_to_the_calendar() -> None:
    days = [dt.date(1970, 2, 3), dt.date(1981, 7, 9), dt.date(1999, 12, 30)]
    table = jali.table(pa.table({"born": days}), quasi=["born"])
    for grid, expected in (
        ("year", "[1970-01-01, 1999-12-31]"), ("month", "[1970-02-01, 1999-12-31]"),
        ("week", "[1970-02-02, 2000-01-02]"), ({"born": "decade"}, "[1970-01-01, 1999-12-31]"),
        ("quarter", "[1970-01-01, 1999-12-31]"),
    ):  # fmt: skip
        assert jali.partition(table, [jali.KAnonymity(3)], grid=grid)["born"].labels.to_pylist() == [expected]
    moments = jali.table(
        pa.table({"seen": [dt.datetime(2020, 1, 1, 5, 7), dt.datetime(2020, 2, 29, 23, 59, 59)]}), quasi=["seen"]
    )
    shown = jali.partition(moments, [jali.KAnonymity(2)], grid="month")["seen"].labels.to_pylist()
    assert shown == ["[2020-01-01 00:00:00, 2020-03-01 00:00:00]"]


def test_a_single_rare_value_on_the_grid_is_shown_with_the_next() -> None:
    """Also with a step that is no whole number, with nobody else known, at a limit, and for days."""
    limited, free = jali.bands(5, low=0.25, high=88.85), jali.suppress()
    for value, builder, grid, expected in (
        (7, free, 0.5, "[7, 8]"), (41.0, free, 1.5, "[39, 42]"), (0, free, None, "[0, 2]"),
        (0.25, limited, 0.25, "[0.25, 0.5]"), (88.85, limited, 0.05, "[88.8, 88.85]"),
        (dt.date(1999, 12, 31), free, "day", "[1999-12-31, 2000-01-01]"),
    ):  # fmt: skip
        table = jali.table(pa.table({"x": [value, None, None, None]}), quasi={"x": builder})
        release = jali.partition(table, [jali.KAnonymity(3)], show="interval", grid=grid)  # type: ignore[arg-type]
        assert release["x"].labels.to_pylist() == [f"{expected} or missing"]
    table = jali.table(pa.table({"x": [20.0, 41.0, 100.0]}), quasi={"x": free})
    release = jali.partition(table, [jali.KAnonymity(3)], show="interval", grid=1.5)
    assert release["x"].labels.to_pylist() == ["[18, 102]"]
    assert "rounded to multiples of 3" in repr(release)


def test_a_release_says_which_values_it_names(tmp_path: Path) -> None:
    frame = pa.table({"x": [1.5, 2.25, 3.125, 9.75] * 2, "job": ["a", "a", "b", "c"] * 2, "ill": ["flu", "cold"] * 4})
    table = jali.table(frame, quasi={"x": None, "job": jali.suppress()}, sensitive=["ill"])
    told = {
        None: ("shared by at least 4 people, else rounded to multiples of", "a step from the rows"),
        "interval-exact": ("ends as in the rows",),
        "pdf": ("values as in the rows",),
    }
    for show, words in told.items():
        release = jali.partition(table, [jali.KAnonymity(4)], show=show)  # type: ignore[arg-type]
        for each in (release, jali.load(release.save(tmp_path / str(show)))):
            assert all(word in repr(each) for word in words)
        assert ("named" in release.manifest.method) == (show != "pdf")
    asked = jali.partition(table, [jali.KAnonymity(4)], grid={"x": 0.5})
    assert "rounded to multiples of 0.5" in repr(asked)
    assert "a step from the rows" not in repr(asked)
    told_again = json.loads((asked.save(tmp_path / "asked") / "manifest.json").read_text())
    assert told_again["method"]["named"] == {"people": 4, "grid": {"x": 0.5}}


def test_a_grid_that_makes_no_sense_is_refused_in_one_line() -> None:
    frame = pa.table({"x": [1.5, 2.5], "born": [dt.date(2000, 1, 1)] * 2, "job": ["a", "b"], "age": [1, 2]})
    quasi = {"x": None, "born": None, "job": jali.suppress(), "age": jali.bands(5, low=0, high=9)}
    table = jali.table(frame, quasi=quasi)
    for grid in (
        0, -1, float("nan"), True, "fortnight", {"x": 0}, {"x": "month"}, {"born": 3}, {"job": 1}, {"y": 1}, {"age": 1},
        [1], {"x": None}, {"x": 10**400},
    ):  # fmt: skip
        with pytest.raises(InputError) as problem:
            jali.partition(table, [jali.KAnonymity(2)], grid=grid)  # type: ignore[arg-type]
        assert "\n" not in str(problem.value)
    with pytest.raises(InputError, match="for the boxes of a partition"):
        jali.anatomize(jali.table(frame, quasi=["x"], sensitive=["job"]), jali.DistinctDiversity(2), grid=1)


def test_large_and_tiny_numbers_are_rounded_outward() -> None:
    for numbers in ([2**60 + 1, 2**60 + 7], [1e-9, 3e-9], [-(2**40) - 1, 2**40 + 1], [0.1 + 0.2, 1e12], [-0.5, -0.25]):
        table = jali.table(pa.table({"x": numbers}), quasi={"x": jali.suppress()})
        release = jali.partition(table, [jali.KAnonymity(2)], show="interval")
        low, high = (Fraction(part) for part in parts(release["x"].labels[0].as_py()))
        assert low <= min(Fraction(str(x)) for x in numbers)
        assert max(Fraction(str(x)) for x in numbers) <= high
        cover = release["x"].cover
        assert cover.low[0] <= min(numbers)
        assert np.nextafter(cover.high[0], np.inf) >= max(numbers)
