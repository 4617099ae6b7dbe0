"""Laws of rules and classes: what is mined, how it is compared, and how likely a reconstruction has it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.errors import InputError
from jali.measures import rules as classify
from jali.measures.rules import Rule, distance, mine, rule_probability
from jali.releases.pdf import read_cell
from oracles import pdf as oracle
from oracles.often import examples

SHARES = st.sampled_from([0.1, 0.125, 0.25, 0.3, 0.5, 0.75, 0.8, 1.0])
CENSUS = ["sex", "education", "marital-status"]


@st.composite
def frames(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 9))
    column = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    return pa.table({"a": column([1, 2, None]), "b": column(["x", "y", "", None]), "c": column([True, False]),
                     "d": column(["p", "q"])})  # fmt: skip


def texts(frame: pa.Table) -> list[dict[str, str | None]]:
    spell = lambda value: None if value is None else str(value).lower() if isinstance(value, bool) else str(value)  # noqa: E731
    return [{name: spell(value) for name, value in row.items()} for row in frame.to_pylist()]


@given(frames(), SHARES, SHARES, st.integers(2, 4), st.sampled_from([None, "a", "d"]))
def test_every_rule_is_found_and_no_other(
    frame: pa.Table, support: float, confidence: float, longest: int, then: str | None
) -> None:
    """Against every set of values; shares that are met exactly count as met."""
    found = mine(frame, support=support, confidence=confidence, longest=longest, then=then)
    expected = oracle.rules(texts(frame), Fraction(str(support)), Fraction(str(confidence)), longest, then)
    assert {(frozenset(rule.when), rule.then): share for rule, share in found.items()} == {
        key: float(share) for key, share in expected.items()
    }


def test_the_distance_is_that_of_equation_5() -> None:
    """A rule that is not there counts as if it had the least confidence."""
    one, two, three = (Rule((("a", x),), ("b", "y")) for x in "xyz")
    assert distance({one: 0.9, two: 1.0}, {two: 0.85, three: 0.95}) == pytest.approx(0.1 + 0.15 + 0.15)
    assert distance({one: 0.9}, {one: 0.9}) == 0.0


@examples(0.6)
@given(st.data(), SHARES, SHARES)
def test_the_probability_of_a_rule_is_that_over_all_reconstructions(
    data: st.DataObject, support: float, confidence: float
) -> None:
    """Against every table that can be drawn from the published cells."""
    rows = data.draw(st.integers(2, 6))
    column = lambda values: data.draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    frame = pa.table({"a": column(["x", "y"]), "b": column(["p", "q"]), "ill": column(["s", "t"])})
    table = jali.table(frame, quasi=["a", "b"], sensitive=["ill"])
    show: Any = data.draw(st.sampled_from(["pdf", "set-exact"]))
    release = jali.partition(table, [jali.KAnonymity(data.draw(st.integers(2, rows)))], show=show)
    when, then = data.draw(st.sampled_from([
        ((("a", "x"),), ("b", "p")), ((("a", "x"), ("b", "q")), ("ill", "s")), ((("ill", "t"),), ("a", "y")),
    ]))  # fmt: skip
    even = lambda cell: {v: Fraction(1, len(p)) for p in [cell[1:-1].split(", ")] for v in p}  # noqa: E731
    read = read_cell if show == "pdf" else lambda cell: even(cell) if cell.startswith("{") else {cell: Fraction(1)}
    cells = [
        {"a": read(row["a"]), "b": read(row["b"]), "ill": {row["ill"]: Fraction(1)}}
        for row in release.frame("arrow").to_pylist()
    ]
    expected = oracle.rule_probability(cells, when, then, Fraction(str(support)), Fraction(str(confidence)))
    found = rule_probability(release.estimate(), Rule(when, then), support=support, confidence=confidence)
    assert found == pytest.approx(float(expected), abs=1e-12)


def test_a_release_that_changes_nothing_loses_no_rule() -> None:
    table = jali.datasets.census(rows=500, seed=3, quasi=CENSUS, sensitive=["salary-class"])
    untouched = jali.generalize(table, [jali.KAnonymity(1)], levels={})
    found = jali.measure(untouched, table, rules=True, classify="salary-class")
    for errors in (found.rules, found.class_rules):
        assert errors is not None
        assert errors.error == errors.false == 0.0
        assert errors.kept == errors.found > 0
    assert found.classified is not None
    assert found.classified.accuracy == found.classified.original


def test_distributions_keep_more_rules_than_sets_and_sets_more_than_nothing() -> None:
    """The paper's Figure 3, on the demo census, where the differences are large."""
    table = jali.datasets.census(rows=3000, seed=0, quasi=CENSUS, sensitive=["salary-class"])
    errors = []
    for show in ("pdf", "set-exact"):
        found = jali.measure(jali.partition(table, [jali.KAnonymity(50)], show=show), table, rules=True)
        assert found.rules is not None
        errors.append(found.rules.error)
    assert errors[0] < errors[1]


def test_the_same_table_gives_the_same_errors_though_rows_are_published_in_another_order(tmp_path: Path) -> None:
    table = jali.datasets.census(rows=400, seed=3, quasi=CENSUS, sensitive=["salary-class"])
    releases = [jali.generalize(table, [jali.KAnonymity(20)], show="pdf") for _ in range(2)]
    found = [jali.measure(one, table, rules=True, classify="salary-class").to_dict() for one in releases]
    assert found[0] == found[1]
    loaded = [jali.load(one.save(tmp_path / str(i))) for i, one in enumerate(releases)]
    again = [jali.measure(one, table, rules=["sex", "education"]).to_dict() for one in loaded]
    assert again[0] == again[1]


def test_a_holdout_is_what_is_tested(tmp_path: Path) -> None:
    """A loaded release does not know its rows, and so needs one; what is learnt from the original is the same."""
    table = jali.datasets.census(rows=800, seed=3, quasi=CENSUS, sensitive=["salary-class"])
    other = jali.datasets.census(rows=300, seed=4, quasi=CENSUS, sensitive=["salary-class"])
    release = jali.generalize(table, [jali.KAnonymity(20)], show="pdf")
    loaded = jali.load(release.save(tmp_path / "out"))
    with pytest.raises(InputError, match="pass holdout="):
        jali.measure(loaded, table, classify="salary-class")
    one, two = (jali.measure(r, table, classify="salary-class", holdout=other).classified for r in (release, loaded))
    assert one is not None
    assert two is not None
    assert (one.tested_on, one.original, one.majority) == (two.tested_on, two.original, two.majority)
    shares = other.frame("arrow")["salary-class"].to_pylist()
    assert one.majority == pytest.approx(shares.count("<=50K") / len(shares))
    assert 0.5 < one.accuracy <= 1


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classify, "find_spec", lambda name: None)
    table = jali.datasets.census(rows=100, seed=3, quasi=CENSUS, sensitive=["salary-class"])
    release = jali.generalize(table, [jali.KAnonymity(5)])
    with pytest.raises(InputError, match=r'pip install "jali\[rules\]"'):
        jali.measure(release, table, classify="salary-class")
    assert jali.measure(release, table, rules=True).rules is not None


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"rules": ["sexx"]}, 'did you mean "sex"'),
        ({"rules": []}, "rules names no column; write rules=True for all columns"),
        ({"classify": "salary"}, 'no column "salary" was published'),
        ({"rules": True, "support": 0}, "support must be above 0"),
        ({"rules": True, "confidence": 1.2}, "confidence must be above 0"),
        ({"rules": True, "seeds": 0}, "seeds must be"),
        ({"holdout": 3}, "holdout is for classify"),
        ({"classify": "sex", "holdout": 3}, "holdout must be a jali table"),
    ],
)
def test_wrong_words_are_answered_with_the_right_ones(how: dict[str, Any], message: str) -> None:
    table = jali.datasets.census(rows=60, seed=3, quasi=CENSUS, sensitive=["salary-class"])
    with pytest.raises(InputError, match=message):
        jali.measure(jali.generalize(table, [jali.KAnonymity(5)]), table, **how)


def test_a_rule_that_depends_on_too_many_rows_is_refused() -> None:
    table = jali.datasets.census(rows=2000, seed=3, quasi=CENSUS, sensitive=["salary-class"])
    release = jali.generalize(table, [jali.KAnonymity(1500)], show="pdf")
    with pytest.raises(InputError, match="more than 1,000 rows"):
        rule_probability(release.estimate(), Rule((("education", "HS-grad"),), ("salary-class", "<=50K")))
