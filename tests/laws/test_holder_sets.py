"""Which values of the holder's column a published cell covers: exactly those under it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.releases.column import holder_sets

texts = st.lists(st.text("01", min_size=3, max_size=3), min_size=2, max_size=12)
ages = st.lists(st.integers(0, 30), min_size=2, max_size=12)


def covered(release: Any, table: Any, name: str) -> dict[str, set[str]]:
    """What the library says of each shown cell, as texts."""
    (published,) = [column for column in release.of_role("quasi") if column.name == name]
    start, member = holder_sets(published, table[name])
    labels = table[name].labels.to_pylist()
    assert all(list(member[a:b]) == sorted(member[a:b]) for a, b in pairwise(start))
    return {
        cell: {labels[i] for i in member[start[node] : start[node + 1]]}
        for node, cell in enumerate(published.labels.to_pylist())
    }


@given(texts, st.integers(1, 4))
def test_a_masked_text_covers_the_texts_that_begin_as_it_does(values: list[str], k: int) -> None:
    table = jali.table(pa.table({"zip": values, "s": ["x"] * len(values)}), quasi={"zip": jali.mask()}, sensitive=["s"])
    release = jali.recode(table, jali.KAnonymity(min(k, len(values))))
    for cell, found in covered(release, table, "zip").items():
        assert found == {text for text in values if cell == "*" or text.startswith(cell.rstrip("*"))}


@given(ages, st.integers(1, 4), st.booleans())
def test_an_interval_covers_the_numbers_within_it(values: list[int], k: int, missing: bool) -> None:
    known: list[int | None] = [*values, *[None] * missing]
    frame = pa.table({"age": pa.array(known, pa.int64()), "s": ["x"] * len(known)})
    table = jali.table(frame, quasi=["age"], sensitive=["s"])
    release = jali.partition(table, jali.KAnonymity(min(k, len(known))), show="interval")
    shown = release.frame("arrow")["age"].to_pylist()
    sets = covered(release, table, "age")
    for cell, found in sets.items():
        numbers = [int(text) for text in re.findall(r"\d+", cell or "")]
        low, high = (min(numbers), max(numbers)) if numbers else (0, 30 if cell == "*" else -1)
        assert {text for text in found if text is not None} == {str(age) for age in values if low <= age <= high}
    assert set(shown) <= set(sets)


@pytest.mark.parametrize("label", [0, 1])
def test_a_cell_that_the_hierarchy_does_not_know_is_refused(label: int) -> None:
    """A release beside another table than its own."""
    release, table = (
        jali.table(pa.table({"zip": zips, "s": ["x", "y"]}), quasi={"zip": jali.mask()}, sensitive=["s"])
        for zips in (["123", "456"], ["789", "321"][:: 1 - 2 * label])
    )
    made = jali.recode(release, jali.KAnonymity(1))
    with pytest.raises(jali.InputError, match="not those of this table"):
        covered(made, table, "zip")
