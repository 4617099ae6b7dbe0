"""Hierarchies that fit: whatever the codes, dates, coordinates or frequencies, they are trees that say what they do."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import jali
from jali.encoding import values as v
from jali.encoding.codes import _BLOCKS, _CHAPTERS, COUNTRIES, SYSTEMS, icd_block, icd_chapter
from jali.encoding.hierarchy import Hierarchy, Level
from jali.errors import HierarchyError, InputError, UndeterminedError
from jali.job import Job
from oracles import builders as oracle
from oracles.encoding import band_of
from oracles.hierarchies import column, hierarchy, is_hierarchy, labels, refused_in_one_line

days = st.dates(dt.date(1900, 1, 1), dt.date(2024, 12, 31))
ICD = st.from_regex(r"[A-Z][0-9]{2}(\.[0-9]{1,2})?", fullmatch=True)
CODES = {
    "icd-10": ICD,
    "atc": st.from_regex(r"[A-V](0[1-9]([A-C]([AB](0[1-4])?)?)?)?", fullmatch=True),
    "nuts": st.from_regex(r"(DE|FR|AT)[1-3A]{0,3}", fullmatch=True),
    "naics": st.from_regex(r"(11|3[1-3]|4[2459]|48|62)[1-3]{0,4}", fullmatch=True),
}
POSTAL = {
    "AT": r"[1-9][0-9]{3}", "CA": r"[KMV][0-2]A ?[0-2]B[0-2]", "CH": r"[1-9][0-9]{3}", "DE": r"[0-9]{5}",
    "ES": r"[0-5][0-9]{4}", "FR": r"[0-9]{5}", "NL": r"10[0-9]{2} ?[A-Z]{2}",
    "UK": r"(SW1A|N1|M60|EC1V|B33) ?[0-9][A-Z]{2}", "US": r"[0-9]{5}(-[0-9]{4})?",
}  # fmt: skip


def in_order(found: Hierarchy, numbers: Any) -> bool:
    """Whether every node of every level is a run of values in their order, and lies between its bounds."""
    known = ~np.isnan(numbers)
    order = np.argsort(numbers[known], kind="stable")
    for nodes, level in zip(found.maps, found.levels, strict=True):
        along = nodes[known][order]
        if len(along) and np.count_nonzero(np.diff(along)) + 1 > len(np.unique(along)):
            return False
        if level.low is not None and level.high is not None:
            low, high, number = level.low[nodes][known], level.high[nodes][known], numbers[known]
            inside = (low <= number) & ((number <= high) if found.whole else (number < high) | (low == high))
            if not (inside | np.isnan(low)).all():
                return False
    return True


# -- codes ------------------------------------------------------------------------------------------------------------


@given(st.sampled_from(sorted(CODES)).flatmap(lambda name: st.tuples(st.just(name), st.lists(CODES[name], min_size=1))))
def test_code_systems_make_trees(case: tuple[str, list[str]]) -> None:
    """Of codes of every length, with a missing one, and no label stands for two sets of values."""
    name, codes = case
    found = hierarchy([*codes, None], jali.prefix(name))
    is_hierarchy(found)
    assert found.height == len(SYSTEMS[name].cuts) + 1
    unambiguous(found)
    for level in range(1, found.height):
        assert labels(found, level)[None] is None


def unambiguous(found: Hierarchy) -> None:
    seen: dict[str | None, list[int]] = {}
    for level in range(found.height):
        for label, members in zip(found.levels[level].texts(), found.members(level), strict=True):
            assert seen.setdefault(label, members.tolist()) == members.tolist(), label


@given(ICD)
def test_icd_chapters_are_those_of_the_published_ranges(code: str) -> None:
    """Of every code that lies in one; codes between two ranges, of national editions, go with the chapter before."""
    expected = oracle.chapter_of(code)
    assert expected is None or icd_chapter(code) == expected


def test_icd_blocks_lie_in_order_inside_chapters() -> None:
    """No two overlap, each lies in one chapter, and every chapter has some."""
    blocks = [tuple(block.split("-")) for block in _BLOCKS.split()]
    edges = [edge for block in blocks for edge in block]
    assert edges == sorted(edges)
    assert all(first <= last < other for (first, last), (other, _) in itertools.pairwise(blocks))
    chapters = {oracle.chapter_of(first) for first, _ in blocks}
    assert all(oracle.chapter_of(first) == oracle.chapter_of(last) for first, last in blocks)
    assert chapters == set(oracle.CHAPTERS) == {part.split()[1] for part in _CHAPTERS.split(", ")}
    shown = {"I11.0": "I10–I15", "i10": "I10–I15", "C50.1": "C50", "X85": "X85–Y09", "Y09": "X85–Y09", "D49": "D49"}
    assert {code: icd_block(code) for code in shown} == shown


def test_codes_become_what_the_issue_says() -> None:
    """I11.0, I11, I10–I15, IX; and where I11 itself occurs too, its category is marked."""
    plain = hierarchy(["I11.0", "I10", "J45.1"], jali.prefix("icd-10"))
    assert plain.rows()[1] == ("I11.0", "I11", "I10–I15", "IX", "*")
    marked = hierarchy(["I11.0", "I11", "J45.1"], jali.prefix("icd-10"))
    assert marked.rows()[0] == ("I11", "I11…", "I10–I15", "IX", "*")
    assert hierarchy(["334111"], jali.prefix("naics")).rows()[0] == ("334111", "33411", "3341", "334", "31-33", "*")
    assert hierarchy(["C09AA05"], jali.prefix("atc")).rows()[0] == ("C09AA05", "C09AA", "C09A", "C09", "C", "*")
    assert hierarchy(["DE212"], jali.prefix("nuts")).rows()[0] == ("DE212", "DE21", "DE2", "DE", "*")


@given(st.lists(st.text("ab1", max_size=6), min_size=1), st.sets(st.integers(1, 6), min_size=1))
def test_prefixes_of_any_length_are_trees(codes: list[str], lengths: set[int]) -> None:
    """Shorter codes stay as they are until their turn comes."""
    found = hierarchy(codes, jali.prefix(*sorted(lengths, reverse=True)))
    is_hierarchy(found)
    unambiguous(found)
    for level, length in enumerate(sorted(lengths, reverse=True), 1):
        assert {code: label.rstrip("…") for code, label in labels(found, level).items()} == {
            code: code[:length] for code in codes
        }


@given(st.lists(st.text("ab.", max_size=7), min_size=1))
def test_separators_cut_codes_at_the_same_depth(codes: list[str]) -> None:
    """The deepest codes first, so that a level means the same for all."""
    found = hierarchy(codes, jali.prefix(separator="."))
    is_hierarchy(found)
    unambiguous(found)
    deepest = max(code.count(".") for code in codes)
    assert found.height == deepest + 1
    for level in range(1, found.height):
        kept = deepest + 1 - level
        expected = {code: oracle.up_to(code, ".", kept) for code in codes}
        assert {code: label.rstrip("…") for code, label in labels(found, level).items()} == expected


@given(st.sampled_from(sorted(POSTAL)).flatmap(
    lambda c: st.tuples(st.just(c), st.lists(st.from_regex(POSTAL[c], fullmatch=True), min_size=1))
))  # fmt: skip
def test_postal_codes_are_trees_whose_labels_begin_alike(case: tuple[str, list[str]]) -> None:
    """Each label is a beginning of its codes, hidden signs and spaces apart."""
    country, codes = case
    found = hierarchy([*codes, None], jali.zip(country))
    is_hierarchy(found)
    for level in range(1, found.height):
        for code, label in labels(found, level).items():
            if code is not None and label is not None:
                assert code.replace(" ", "").startswith(label.rstrip("*").replace(" ", ""))


def test_every_country_is_known_by_an_example() -> None:
    """GB is UK; whole numbers get back the zeros that they lost; ZIP+4 has one level more."""
    assert set(POSTAL) == set(COUNTRIES)
    shown = {
        "AT": ("1010", "10**", "1***"), "CA": ("K1A 0B1", "K1A", "K"), "CH": ("8001", "80**", "8***"),
        "DE": ("10115", "101**", "10***", "1****"), "ES": ("28013", "280**", "28***"),
        "FR": ("75001", "750**", "75***"), "NL": ("1012 AB", "1012", "10"),
        "UK": ("SW1A 1AA", "SW1A 1", "SW1A", "SW"), "US": ("02138", "021**", "0****"),
    }  # fmt: skip
    for country, ladder in shown.items():
        assert hierarchy([COUNTRIES[country].example], jali.zip(country)).rows() == [(*ladder, "*")]
    assert jali.zip("GB") == jali.zip("UK")
    assert column([2138, 90210], jali.zip("US")).values.to_pylist() == ["02138", "90210"]
    assert hierarchy(["02138-1234"], jali.zip("US")).rows() == [("02138-1234", "02138", "021", "0", "*")]


# -- numbers and dates ------------------------------------------------------------------------------------------------


@given(
    st.lists(st.one_of(st.integers(-20, 130), st.none()), min_size=1), st.sampled_from([(1,), (5,), (5, 20)]),
    st.none() | st.integers(-5, 30), st.none() | st.integers(60, 110),
)  # fmt: skip
def test_tails_are_one_band_each(values: list[Any], widths: Any, bottom: int | None, top: int | None) -> None:
    """And bands end where a tail begins, in order, whatever the width."""
    assume(any(x is not None for x in values) and (bottom is not None or top is not None))
    made = column(values, jali.bands(*widths, bottom=bottom, top=top))
    is_hierarchy(made.hierarchy)
    assert in_order(made.hierarchy, v.numbers(made.values))
    for level, width in enumerate(widths, 1):
        for text, label in labels(made.hierarchy, level).items():
            assert label == (None if text is None else oracle.band_label(int(text), width, bottom, top))


def test_without_widths_only_the_tails_are_joined() -> None:
    found = hierarchy([3, 17.5, 89, 90, 104.0, None], jali.bands(bottom=5, top=90, low=0, high=120))
    assert [row[1] for row in found.rows()] == ["below 5", "17.5", "89", "90+", "90+", ""]
    level = found.levels[1]
    assert level.low is not None
    assert level.high is not None
    assert (level.low[0], level.high[0], level.low[3], level.high[3]) == (0, 5, 90, 120)


@given(st.lists(st.one_of(days, st.none()), min_size=1), st.sampled_from(["month", "quarter", "year", "decade"]))
def test_weeks_belong_to_the_month_of_their_thursday(values: list[dt.date | None], unit: str) -> None:
    """As ISO 8601 has it for years; so weeks and what lies above them are a tree, in the order of the days."""
    made = column(pa.array(values, pa.date32()), jali.dates("week", unit))
    found = made.hierarchy
    is_hierarchy(found)
    assert in_order(found, v.numbers(made.values))
    names = {"month": "%Y-%m", "year": "%Y"}
    for text in labels(found, 1):
        if text is None:
            continue
        day = dt.date.fromisoformat(text)
        middle = oracle.thursday(day)
        assert labels(found, 1)[text] == oracle.week_label(day)
        if unit in names:
            assert labels(found, 2)[text] == f"weeks of {middle:{names[unit]}}"


@given(
    st.lists(st.one_of(days, st.none()), min_size=1), st.sampled_from([(1,), (5, 10), (1, 5, 10, 20)]),
    st.sampled_from([dt.date(2024, 12, 31), dt.date(2024, 12, 31), dt.date(2025, 2, 28), dt.date(2028, 2, 29)]),
    st.sampled_from([None, 90, 85]),
)  # fmt: skip
def test_dates_of_birth_become_ages(values: list[dt.date | None], ages: Any, on: dt.date, top: int | None) -> None:
    """In bands, all from the top one on together, with the days of birth that each stands for."""
    assume(all(x is None or oracle.age_on(x, on) < 130 for x in values))
    made = column(pa.array(values, pa.date32()), jali.dates(ages=ages, on=on, top=top))
    found = made.hierarchy
    is_hierarchy(found)
    assert in_order(found, v.numbers(made.values))
    for level, width in enumerate(ages, 1):
        for text, label in labels(found, level).items():
            if text is not None:
                age = oracle.age_on(dt.date.fromisoformat(text), on)
                assert label == oracle.band_label(age, width, None, top)


@given(days, st.sampled_from([dt.date(2025, 6, 30), dt.date(2028, 2, 29)]))
def test_the_days_of_an_age_are_all_that_have_it(born: dt.date, on: dt.date) -> None:
    """The first and the last day of a node have its age, and the days beside them do not."""
    found = hierarchy(pa.array([born], pa.date32()), jali.dates(ages=[1], on=on, top=None))
    level = found.levels[1]
    assert level.low is not None
    assert level.high is not None
    first, last = (dt.date(1970, 1, 1) + dt.timedelta(days=int(x[0])) for x in (level.low, level.high))
    age, day = oracle.age_on(born, on), dt.timedelta(days=1)
    assert [oracle.age_on(x, on) for x in (first - day, first, last, last + day)] == [age + 1, age, age, age - 1]


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=60), st.sampled_from([(2,), (4, 2), (10, 5), (3,)]),
    st.sampled_from([1, 5, 0.5]), st.booleans(),
)  # fmt: skip
def test_quantiles_are_cut_where_the_shares_are_most_equal(values: list[int], parts: Any, step: Any, gap: bool) -> None:
    """At multiples of the step, counting every row, the missing value apart."""
    made = column([*values, *([None] if gap else [])], jali.quantiles(*parts, step=step))
    found = made.hierarchy
    is_hierarchy(found)
    assert in_order(found, v.numbers(made.values))
    for level, number in enumerate(parts, 1):
        begins = oracle.cuts([Fraction(x) for x in values], number, Fraction(str(step)))
        low = found.levels[level].low
        assert low is not None
        assert sorted(low[~np.isnan(low)])[1:] == [float(begin) for begin in begins]


def test_quantiles_show_no_value_of_the_rows() -> None:
    """Cuts and ends are multiples of a round step; with limits the ends are these."""
    random = np.random.default_rng(1)
    pay = random.lognormal(10, 1, 400)
    found = hierarchy(pay.tolist(), jali.quantiles(8, 4))
    step = 5000 if np.ptp(pay) > 200_000 else 2000
    for level in found.levels[1:-1]:
        assert level.low is not None
        assert not set(level.low) & set(pay)
        assert all(low % (step / 10) == 0 for low in level.low)
    limited = hierarchy([1, 5, 9, 30], jali.quantiles(2, low=0, high=99)).levels[1].texts()
    assert limited == ["[0, 5]", "[6, 99]"]


@given(
    st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=40), st.sets(st.integers(2, 12), min_size=1, max_size=3)
)
def test_rare_values_are_together_until_each_has_enough(values: list[str], least: set[int]) -> None:
    """As one by one; levels that would join all values are left out, and each node has at least as many rows."""
    made = column(values, jali.frequency(*sorted(least)))
    found = made.hierarchy
    is_hierarchy(found)
    known = sorted(set(values))
    rows = [values.count(value) for value in known]
    expected = [oracle.rare(rows, k) for k in sorted(least)]
    expected = [rare for rare in expected if 0 < len(rare) < len(known)]
    assert found.height == len(expected) + 1
    for level, rare in enumerate(expected, 1):
        assert labels(found, level) == {text: "(rare)" if i in rare else text for i, text in enumerate(known)}
        sizes = np.bincount(found.maps[level][made.codes])
        assert sizes.min() >= min(least)


def test_a_value_that_reads_as_rare_stays_itself() -> None:
    found = hierarchy(["(rare)"] * 5 + ["a"] * 2 + ["b"] * 2, jali.frequency(3))
    assert labels(found, 1) == {"(rare)": "(rare)", "a": "((rare))", "b": "((rare))"}


def test_rows_are_counted_where_an_engine_has_counted_them(tmp_path: Path) -> None:
    """A file that DuckDB counts gives the levels that its rows give, with missing rows dropped too."""
    duckdb = pytest.importorskip("duckdb")
    frame = pa.table({"x": ["a"] * 9 + ["b"] * 4 + ["c", "d", None], "y": [1] * 15 + [None]})
    plain = jali.table(frame, quasi={"x": jali.frequency(4)}, missing="drop").hierarchy("x")
    counted = jali.table(duckdb.from_arrow(frame), quasi={"x": jali.frequency(4)}, missing="drop").hierarchy("x")
    assert plain.rows() == counted.rows()
    assert labels(plain, 1) == {"a": "a", "b": "(rare)", "c": "(rare)", "d": "(rare)"}


@given(st.lists(st.decimals(-180, 180, places=4), min_size=1), st.sampled_from([("0.01", "0.1", "1"), ("0.05",)]))
def test_a_grid_has_half_open_cells(values: list[Any], widths: tuple[str, ...]) -> None:
    """Exact at the edges, also of whole numbers."""
    made = column([float(x) for x in values], jali.grid(*map(float, widths)))
    is_hierarchy(made.hierarchy)
    assert in_order(made.hierarchy, v.numbers(made.values))
    for level, width in enumerate(widths, 1):
        here: Level = made.hierarchy.levels[level]
        assert here.low is not None
        assert here.high is not None
        for text, node in zip(made.hierarchy.levels[0].texts(), made.hierarchy.maps[level], strict=True):
            low, high = band_of(str(text), Fraction(width))
            assert (here.low[node], here.high[node]) == (float(low), float(high))


@given(st.lists(st.tuples(*(st.decimals(-90, 90, places=2),) * 2), min_size=1), st.sampled_from([", ", ",", "; ", " "]))
def test_pairs_of_coordinates_lie_in_the_cells_of_both(pairs: list[tuple[Any, Any]], sign: str) -> None:
    texts = [f"{a}{sign}{b}" for a, b in pairs]
    found = hierarchy([*texts, None], jali.grid(0.1, 1))
    is_hierarchy(found)
    for level, width in ((1, "0.1"), (2, "1")):
        for text, (a, b) in zip(texts, pairs, strict=True):
            sides = [band_of(str(x), Fraction(width)) for x in (a, b)]
            expected = " × ".join(f"[{float(low):.10g}, {float(high):.10g})" for low, high in sides)
            assert labels(found, level)[text] == expected


# -- what jali chooses ------------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 10**6), min_size=6, unique=True) | st.lists(days, min_size=2, unique=True)
    | st.lists(ICD, min_size=2, unique=True)
    | st.lists(st.from_regex(POSTAL["UK"], fullmatch=True), min_size=2, unique=True)
    | st.lists(st.from_regex(r"[0-9]{5}", fullmatch=True), min_size=2, unique=True)
    | st.lists(CODES["atc"], min_size=2, unique=True)
)  # fmt: skip
def test_what_jali_chooses_has_no_level_that_changes_nothing(values: list[Any]) -> None:
    """Each level joins some values of the one below, and only the root joins all."""
    found = hierarchy(values, None)
    is_hierarchy(found)
    sizes = [len(level) for level in found.levels]
    assert all(above < below for below, above in itertools.pairwise(sizes))


@pytest.mark.parametrize(
    ("values", "made_by", "note"),
    [
        (["I11.0", "I11.9", "I10.1", "I20.0", "J45.0", "J45.1"], "prefix(icd-10)", "ICD-10"),
        (["I11.0", "I11.9", "J45.0", "J45.1"], "prefix(icd-10, 1)", "ICD-10"),
        (["C09AA05", "C09AA01", "N02BE01"], "prefix(atc, 1)", "ATC"),
        (["DE212", "DE211", "DE221", "FR101"], "prefix(nuts, 1, 2)", "NUTS"),
        (["SW1A 1AA", "SW1A 2AA", "N1 9GU"], "zip(UK, 2)", "postal"),
        (["K1A 0B1", "K1A 0B2", "M5V 1A1"], "zip(CA, 1)", "postal"),
        (["01067", "01069", "01234", "02345", "80331"], "prefix(3, 2, 1)", "codes of 5 digits"),
        (["52.52, 13.40", "52.53, 13.41", "48.13, 11.58"], "grid(1, 10)", "coordinates"),
        ([10115, 10117, 20095, 80331, 80333, 99084], "bands(5000, 20000, 40000, 80000)", "all its numbers have 5"),
        ([1970, 1971, 1985, 1990, 2001, 2003], "bands(5, 10, 20)", ""),
        (["red", "green", "blue"], "suppress()", ""),
        (["A1", "B2", "C3"], "suppress()", ""),
    ],
)
def test_jali_looks_at_the_values(values: list[Any], made_by: str, note: str) -> None:
    """And says what it takes them for."""
    found = hierarchy(values, None)
    assert found.chosen
    if not made_by.startswith(("bands", "grid")):
        assert found.made_by == made_by
    assert found.made_by.split("(")[0] == made_by.split("(", maxsplit=1)[0]
    assert note in found.note
    assert bool(note) == bool(found.note)


def test_coordinates_are_known_by_their_name() -> None:
    frame = pa.table({"lat": [48.1 + i / 7 for i in range(20)], "pay": [48.1 + i / 7 for i in range(20)]})
    table = jali.table(frame, quasi=["lat", "pay"])
    assert table.hierarchy("lat").made_by.startswith("grid(")
    assert table.hierarchy("pay").made_by.startswith("bands(")


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (jali.prefix, "needs lengths, a separator or the name"),
        (lambda: jali.prefix(3, separator="."), "needs lengths, a separator or the name"),
        (lambda: jali.prefix(1, 3), "must become shorter: got (1, 3)"),
        (lambda: jali.prefix(0), "at least 1"),
        (lambda: jali.prefix(2.5), "at least 1"),
        (lambda: jali.prefix(3, "icd-10"), "at least 1"),
        (lambda: jali.prefix("icd10"), 'did you mean "icd-10"'),
        (lambda: jali.prefix("icd-10", 4), "has the levels 1 to 3: got (4,)"),
        (lambda: jali.prefix("icd-10", 2, 1), "has the levels 1 to 3"),
        (lambda: jali.zip("DE", 0), "has the levels 1 to 3"),
        (lambda: jali.zip("DE", 1.5), "has the levels 1 to 3"),
        (lambda: jali.prefix(separator=", "), "must be one sign"),
        (lambda: jali.prefix(separator="a"), "must be one sign"),
        (lambda: jali.zip("XX"), "known: AT, CA"),
        (lambda: jali.zip(49), "known: AT, CA"),
        (lambda: jali.bands(5, top=10, bottom=20), "bottom is above top"),
        (lambda: jali.bands(5, top=10, bottom=10), "bottom is at top"),
        (lambda: jali.bands(5, top=10, high=9), "top is above high"),
        (lambda: jali.bands(top="a"), "top of bands"),
        (lambda: jali.dates("weeks"), 'did you mean "week"'),
        (lambda: jali.dates("year", "month"), "must become longer"),
        (lambda: jali.dates(ages=5), "ages need a day"),
        (lambda: jali.dates("month", on="2025-12-31"), "not both"),
        (lambda: jali.dates(on="31.12.2025"), "on must be a day"),
        (lambda: jali.dates(on=2025), "on must be a day"),
        (lambda: jali.dates(on="2025-12-31", ages=[5, 12]), "change 12 to 10"),
        (lambda: jali.dates(on="2025-12-31", ages=[0.5]), "whole years"),
        (lambda: jali.dates(on="2025-12-31", top=0), "whole years"),
        (jali.frequency, "at least 2"),
        (lambda: jali.frequency(1), "at least 2"),
        (lambda: jali.frequency(5.0), "at least 2"),
        (lambda: jali.frequency(50, 5), "must become larger"),
        (jali.quantiles, "whole numbers from 2"),
        (lambda: jali.quantiles(5, 10), "must divide"),
        (lambda: jali.quantiles(5, 2), "must divide"),
        (lambda: jali.quantiles(4, step=0), "must be positive"),
        (lambda: jali.quantiles(4, low="x"), "low of quantiles"),
        (lambda: jali.grid(0.1, 0.25), "multiple of the one before"),
        (lambda: jali.grid(-1), "must be positive"),
        (lambda: column(["a"], jali.quantiles(2)), 'quantiles() of column "x" needs numbers'),
        (lambda: column([True], jali.grid()), 'grid() of column "x" needs coordinates'),
    ],
)  # fmt: skip
def test_a_wrong_builder_is_refused_in_one_line(make: Any, message: str) -> None:
    """That says what was wrong and what to do."""
    refused_in_one_line(make, message)


@pytest.mark.parametrize(
    ("values", "builder"),
    [
        (["I11.0", "secret"], jali.prefix("icd-10")),
        (["C09AA05", "secret"], jali.prefix("atc")),
        (["10115", "D-4711"], jali.zip("DE")),
        (["SW1A 1AA", "secret"], jali.zip("UK")),
        (["52.5, 13.4", "secret"], jali.grid()),
        ([5, 77], jali.quantiles(2, low=0, high=50)),
        ([dt.date(2000, 1, 1), dt.date(2026, 1, 1)], jali.dates(on="2025-12-31")),
        ([dt.date(2000, 1, 1), dt.date(1895, 1, 1)], jali.dates(on="2025-12-31")),
    ],
)
def test_a_value_outside_is_located_but_not_shown(values: list[Any], builder: Any) -> None:
    """The message has the column and the row; the value only for whoever holds the table."""
    with pytest.raises(HierarchyError) as caught:
        column([values[0], *values], builder)
    assert "row 3" in str(caught.value)
    assert str(values[1]) not in str(caught.value)
    assert "\n" not in str(caught.value)


# -- files, jobs, releases --------------------------------------------------------------------------------------------

ROWS = 24
BUILT: dict[str, tuple[list[Any], Any, str]] = {
    "icd": (["I11.0", "I11", "I10", "J45.1"] * 6, jali.prefix("icd-10"), '{ prefix = "icd-10" }'),
    "chapter": (["I11.0", "I11.1", "I10", "J45.1"] * 6, jali.prefix("icd-10", 1, 3), '{ prefix = ["icd-10", 1, 3] }'),
    "area": (["10115", "10117", "20095", "80331"] * 6, jali.zip("DE", 2), '{ zip = ["DE", 2] }'),
    "length": (["abc", "abd", "xbd", "x"] * 6, jali.prefix(2, 1), "{ prefix = [2, 1] }"),
    "dots": (["1.2.3", "1.2", "4", "4.1"] * 6, jali.prefix(separator="."), '{ prefix = true, separator = "." }'),
    "zip": (["10115", "10117", "20095", "80331"] * 6, jali.zip("DE"), '{ zip = "DE" }'),
    "postcode": (["SW1A 1AA", "SW1A 2AA", "N1 9GU", "M1 1AE"] * 6, jali.zip("UK"), '{ zip = "UK" }'),
    "age": ([17, 30, 64, 95] * 6, jali.bands(5, 20, top=90, bottom=18), "{ bands = [5, 20], top = 90, bottom = 18 }"),
    "tail": ([17, 30, 64, 95] * 6, jali.bands(top=90), "{ bands = [], top = 90 }"),
    "week": (
        [dt.date(2020, 12, 20 + i) for i in range(4)] * 6, jali.dates("week", "year"), '{ dates = ["week", "year"] }',
    ),
    "born": (
        [dt.date(1930 + 20 * i, 2, 3) for i in range(4)] * 6, jali.dates(ages=[5, 10], on="2025-12-31"),
        "{ dates = true, ages = [5, 10], on = 2025-12-31 }",
    ),
    "often": (["a"] * 12 + ["b"] * 8 + ["c", "d"] * 2, jali.frequency(3, 9), "{ frequency = [3, 9] }"),
    "pay": ([10.5, 20, 30, 55] * 6, jali.quantiles(4, 2, step=5), "{ quantiles = [4, 2], step = 5 }"),
    "lat": ([52.52, 52.51, 48.1, 48.2] * 6, jali.grid(0.1, 1), "{ grid = [0.1, 1] }"),
    "place": (["52.52, 13.4", "52.51, 13.4", "48.1, 9.1", "48.2, 9.2"] * 6, jali.grid(), '"grid"'),
}  # fmt: skip


def table_of(name: str, builder: Any = ...) -> Any:
    values, made, _ = BUILT[name]
    frame = pa.table({name: values, "ill": ["flu", "cold", "cough"] * (ROWS // 3)})
    return jali.table(frame, quasi={name: made if builder is ... else builder}, sensitive=["ill"])


@pytest.mark.parametrize("name", BUILT)
def test_a_job_names_every_builder(name: str, tmp_path: Path) -> None:
    """As Python does."""
    (tmp_path / "job.toml").write_text(f'input = "x.csv"\n[quasi]\n{name} = {BUILT[name][2]}\n', encoding="utf-8")
    assert Job.load(tmp_path / "job.toml").quasi[name] == BUILT[name][1]


@pytest.mark.parametrize("name", BUILT)
def test_an_edited_file_comes_back(name: str, tmp_path: Path) -> None:
    """The same tree, and with another label where it was edited."""
    made = table_of(name).hierarchy(name)
    jali.write_hierarchy(made, tmp_path / "h.csv")
    again = table_of(name, jali.taxonomy(tmp_path / "h.csv")).hierarchy(name)
    assert [labels(again, level) for level in range(again.height + 1)] == [
        labels(made, level) for level in range(made.height + 1)
    ]
    label = made.levels[1].texts()[0]
    text = (tmp_path / "h.csv").read_text(encoding="utf-8").replace(f";{label};", ";Edited;")
    (tmp_path / "h.csv").write_text(text, encoding="utf-8")
    edited = table_of(name, jali.taxonomy(tmp_path / "h.csv")).hierarchy(name)
    assert "Edited" in edited.levels[1].texts()


@pytest.mark.parametrize("name", BUILT)
def test_releases_survive_being_saved_at_every_level(name: str, tmp_path: Path) -> None:
    """What is loaded says the same, measures the same, and reads the original with the same labels."""
    table = table_of(name)
    for level in range(table.hierarchy(name).height + 1):
        release = jali.generalize(table, jali.KAnonymity(1), levels={name: level})
        loaded = jali.load(release.save(tmp_path / str(level)))
        assert loaded[name].facts == release[name].facts
        assert jali.measure(loaded, table).to_dict() == jali.measure(release, table).to_dict()
        again = table_of(name, loaded[name].facts.builder(name))
        assert jali.measure(loaded, again).kl == pytest.approx(jali.measure(release, table).kl)


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("show", ["taxonomy", None])
def test_groups_are_shown_by_every_hierarchy(name: str, show: Any, tmp_path: Path) -> None:
    """A label never stands for two sets of values, and what is saved comes back."""
    table = table_of(name)
    for verb in (jali.partition, jali.recode):
        release = verb(table, jali.KAnonymity(4), **({} if show is None else {"show": show}))
        loaded = jali.load(release.save(tmp_path / verb.__name__, overwrite=True))
        assert jali.measure(loaded, table).kl == pytest.approx(jali.measure(release, table).kl)


@pytest.mark.parametrize("name", ["often", "pay"])
def test_levels_that_follow_from_frequencies_are_told_only_where_they_are_shown(name: str) -> None:
    """Of all others not even the number of nodes: they follow from rows that may be suppressed."""
    table = table_of(name)
    for level in range(3):
        told = jali.generalize(table, jali.KAnonymity(1), levels={name: level})[name].to_dict()["hierarchy"]
        assert [len(here["labels"]) for here in told["levels"]][1:] == [1]
        kept = json.dumps(told)
        for other in {1, 2} - {level}:
            own = set(table.hierarchy(name).levels[other].texts()) - set(table.hierarchy(name).levels[level].texts())
            assert not any(f'"{label}"' in kept for label in own)


def test_masked_postal_codes_can_be_asked_for() -> None:
    """An analyst knows which codes 101** may be, as of a mask; of SW1A nothing is assumed."""
    release = jali.generalize(table_of("zip"), jali.KAnonymity(1), levels={"zip": 1})
    assert release.estimate().count("zip == '10115'") == pytest.approx(12 / 100)
    unknown = jali.generalize(table_of("postcode"), jali.KAnonymity(1), levels={"postcode": 2})
    with pytest.raises(UndeterminedError, match=f"between 0 and {ROWS}"):
        unknown.estimate().count("postcode == 'SW1A 1AA'")


def test_a_lattice_too_large_names_levels_that_could_go() -> None:
    """Without them it is small enough; where even values and roots are too many, columns must go."""
    from jali.search.common import levels_that_could_go

    frame = pa.table({name: [f"{i:06d}" for i in range(50)] for name in "abcdefg"})
    table = jali.table(frame, quasi={name: jali.mask() for name in "abcdefg"})
    with pytest.raises(InputError, match=r"these levels could go: a 2, 3; b.*, or partition the table instead"):
        jali.generalize(table, jali.KAnonymity(2))
    gone = levels_that_could_go(table, 200_000)
    assert gone is not None
    left = [table.hierarchy(name).height + 1 - len(gone.get(name, [])) for name in "abcdefg"]
    assert np.prod(left) <= 200_000
    assert all(0 < level < table.hierarchy(name).height for name, levels in gone.items() for level in levels)
    assert levels_that_could_go(table, 100) is None
    many = jali.table(pa.table({f"c{i}": ["a", "b"] for i in range(20)}), quasi=[f"c{i}" for i in range(20)])
    with pytest.raises(InputError, match="leave out columns"):
        jali.generalize(many, jali.KAnonymity(2))


def test_a_hierarchy_is_drawn_as_a_tree() -> None:
    """The root first, a node that repeats its parent's name once, with the sums of its rows."""
    table = table_of("icd")
    found = table.hierarchy("icd")
    assert found.tree([6, 6, 6, 6]).splitlines() == [
        "*  24", "├─ IX  18", "│  └─ I10–I15  18", "│     ├─ I10…  6", "│     │  └─ I10  6", "│     └─ I11…  12",
        "│        ├─ I11  6", "│        └─ I11.0  6", "└─ X  6", "   └─ J40–J47  6", "      └─ J45…  6",
        "         └─ J45.1  6",
    ]  # fmt: skip
    drawn = hierarchy(["a", None, "\x1b[2J\n"], jali.suppress()).tree()
    assert "\x1b" not in drawn
    assert drawn.splitlines()[2:] == ["├─ a", "└─ (missing)"]
