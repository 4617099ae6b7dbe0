"""What a manifest says of a column is the typed facts of it, and nothing is lost on the way to JSON and back."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.builders import of_recipe
from jali.encoding.hierarchy import FAMILIES, Builder, Recipe
from jali.releases.column import facts_of

WORDS = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")]
decimals = st.integers(-999, 999).map(lambda n: Fraction(n, 100))


def _column(one: st.SearchStrategy[Any], rows: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(one, min_size=rows, max_size=rows)


@st.composite
def tables(draw: st.DrawFn) -> Any:
    """A number, a word and a code, each with one of the hierarchies that fit it; values may be missing."""
    rows = draw(st.integers(2, 9))
    numbers = draw(_column(st.one_of(st.none(), st.integers(0, 12)), rows))
    frame = pa.table({
        "number": pa.array(numbers, pa.int64()), "word": draw(_column(st.sampled_from("abc"), rows)),
        "code": draw(_column(st.text("01", min_size=1, max_size=3), rows)),
        "ill": draw(_column(st.sampled_from("pq"), rows)),
    })  # fmt: skip
    quasi = {
        "number": draw(st.sampled_from([None, jali.bands(2, 4), jali.bands(3, low=0, high=12), jali.suppress()])),
        "word": draw(st.sampled_from([None, jali.taxonomy(WORDS)])),
        "code": draw(st.sampled_from([jali.mask(), jali.suppress()])),
    }
    return jali.table(frame, quasi=quasi, sensitive=["ill"])


@given(tables(), st.sampled_from(["levels", "taxonomy", "set", "pdf", None]), st.data())
def test_facts_come_back_from_json_as_they_were(table: Any, show: Any, data: st.DataObject) -> None:
    """Whatever the level or the display, suppressed rows included."""
    if show == "levels":
        heights = {name: table.hierarchy(name).height for name in ("number", "word", "code")}
        levels = {name: data.draw(st.integers(0, height)) for name, height in heights.items()}
        try:
            release = jali.generalize(table, jali.KAnonymity(2), levels=levels, suppress=0.9)
        except jali.InfeasibleError:
            return
    else:
        release = jali.partition(table, jali.KAnonymity(1), show=show)
    for column in release.of_role("quasi"):
        assert column.facts is not None
        told = column.facts.to_dict()
        again = facts_of(json.loads(json.dumps(told)))
        assert again == column.facts
        assert again.to_dict() == told


@given(
    st.lists(decimals.filter(lambda n: n > 0), min_size=1, max_size=4), decimals, st.none() | decimals,
    st.none() | decimals,
)  # fmt: skip
def test_the_text_of_bands_names_every_argument(
    widths: list[Fraction], origin: Fraction, low: Fraction | None, high: Fraction | None
) -> None:
    recipe = Recipe("bands", tuple(widths), origin, low, high)
    assert Recipe.read(str(recipe)) == recipe


@pytest.mark.parametrize("family", FAMILIES[1:])
def test_the_text_of_every_other_recipe_is_read_back(family: Any) -> None:
    assert Recipe.read(str(Recipe(family))) == Recipe(family)


RECIPES = [
    "bands(5, bottom=18, top=90)", "bands(high=120, top=90)", "dates(week, month)",
    "dates(1, 5, top=90, on=2025-12-31)", "prefix(3, 1)", "prefix(icd-10)", "prefix(separator=.)",
    "zip(DE)", "zip(DE, 1, 3)", "prefix(icd-10, 2)", "frequency(5, 50)",
    "quantiles(10, 5, low=0, step=0.5)", "grid(0.01, 0.1)",
]  # fmt: skip


@pytest.mark.parametrize("text", RECIPES)
def test_a_recipe_prints_as_it_was_read_and_a_builder_follows_it(text: str) -> None:
    recipe = Recipe.read(text)
    assert recipe is not None
    assert str(recipe) == text
    assert isinstance(of_recipe(recipe), Builder)


@pytest.mark.parametrize(
    "text",
    [
        "bands",
        "bands()",
        "bands(5",
        "bands(x)",
        "bands(5, low=)",
        "bands(5, height=3)",
        "masks()",
        "taxonomy(f)",
        "mask(3)",
        "zip(DE",
        "bands(5, top=9, low=1)",
        "frequency(week)",
        "quantiles(4, 2)x",
        "dates(1, height=2)",
    ],
)
def test_a_text_that_no_builder_prints_is_refused(text: str) -> None:
    """A manifest that was changed is refused when it is loaded, not when somebody reads the original again."""
    with pytest.raises(ValueError, match=r"no hierarchy|Fraction"):
        Recipe.read(text)


def test_the_name_of_a_taxonomys_file_is_for_its_owner_alone() -> None:
    """The hierarchy prints it, the release does not."""
    rows = pa.table({"word": list("abc"), "ill": list("pqp")})
    table = jali.table(rows, quasi={"word": jali.taxonomy(WORDS)}, sensitive=["ill"])
    assert table.hierarchy("word").made_by == "taxonomy(rows)"
    told = jali.generalize(table, jali.KAnonymity(1), levels={"word": 0})["word"].to_dict()
    assert told["hierarchy"]["made_by"] == "taxonomy"


CHANGES: dict[str, dict[str, Any]] = {
    "a recipe that no builder prints": {"made_by": "quantile(4)"},
    "a recipe that no builder follows": {"made_by": "quantiles(4, 3)"},
    "a country that nobody knows": {"made_by": "zip(XX)"},
    "a leaf in no node": {"leaf_nodes": [0, 1, 7]},
    "leaves without nodes": {"leaf_nodes": [0]},
    "no levels": {"levels": []},
    "a parent that is not there": {"levels": [{"level": 1, "labels": ["x", "y"], "parents": [0, 3]}]},
}


@pytest.mark.parametrize("what", CHANGES)
def test_facts_that_do_not_fit_each_other_are_refused(what: str) -> None:
    rows = pa.table({"word": list("abc"), "ill": list("pqp")})
    table = jali.table(rows, quasi={"word": jali.taxonomy(WORDS)}, sensitive=["ill"])
    told = jali.generalize(table, jali.KAnonymity(1), levels={"word": 0})["word"].to_dict()["hierarchy"]
    assert facts_of(told).to_dict() == told
    root = [{"level": 2, "labels": ["*"]}] if what.startswith("a parent") else []
    changed = {key: value + root if key == "levels" else value for key, value in CHANGES[what].items()}
    with pytest.raises((ValueError, KeyError)):
        facts_of(told | changed)
