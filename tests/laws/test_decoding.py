"""Laws of decoding: who is surely present or absent is what listing every private table finds."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Literal

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given

import jali
from jali.errors import InfeasibleError, InputError
from jali.releases.concealed import Concealed
from jali.risk.attacks.decoding import surely, swapped
from jali.search.screen import framed
from oracles import presence as oracle

COLOUR = [("red", "*"), ("blue", "*"), ("teal", "*")]
SHAPE = [("dot", "*"), ("bar", "*")]
TREES = ({"*": ("red", "blue", "teal")}, {"*": ("dot", "bar")})
PEOPLE = [(colour, shape) for colour, _ in COLOUR for shape, _ in SHAPE]


def table(rows: list[tuple[str, str]]) -> jali.encoding.table.Table:
    frame = pa.table({"colour": [c for c, _ in rows], "shape": [s for _, s in rows]})
    return jali.table(frame, quasi={"colour": jali.taxonomy(COLOUR), "shape": jali.taxonomy(SHAPE)})


def made(
    private: list[tuple[str, str]], public: list[tuple[str, str]], shift: Literal["none", "bounds", "exact"], steps: int
) -> Concealed | None:
    try:
        more = {} if shift == "none" else {"steps": steps}
        return jali.conceal(table(private), table(public), low=0, high=1, shift=shift, search="partition", **more)
    except (InfeasibleError, InputError):
        return None


def cells(release: Concealed) -> list[tuple[str, ...]]:
    frame = release.frame("arrow")
    return list(zip(frame["colour"].to_pylist(), frame["shape"].to_pylist(), strict=True))


@given(st.lists(st.sampled_from(PEOPLE), min_size=3, max_size=8), st.data())
def test_who_is_surely_present_or_absent_is_what_listing_every_private_table_finds(
    public: list[tuple[str, str]], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.integers(0, len(public) - 1), min_size=2))
    steps, shift = data.draw(st.sampled_from([1, 2, 3, 10])), data.draw(st.sampled_from(["none", "exact"]))
    low, high = data.draw(st.sampled_from([(0, 1), (0, 0.9), (0.1, 0.8), (0.3, 0.7)]))
    more = {} if shift == "none" else {"steps": steps}
    private, whole = table([public[i] for i in chosen]), table(public)
    try:
        release = jali.conceal(private, whole, low=low, high=high, shift=shift, search=data.draw(
            st.sampled_from(["lattice", "partition"])), **more)  # fmt: skip
    except (InfeasibleError, InputError):
        assume(False)
        raise
    found = surely(release, whole, framed(private, whole).private, seconds=60)
    always, never, alone = oracle.decoded(cells(release), public, TREES, 1 if shift == "none" else steps)
    combination = whole.frequencies.row_combination
    assert found.undecided == 0
    assert {i for i in range(len(public)) if found.present[combination[i]]} == always
    assert {i for i in range(len(public)) if found.absent[combination[i]]} == never
    assert found.decoded == alone


@pytest.mark.parametrize("shift", ["none", "exact"])
def test_every_private_table_that_is_published_the_same_agrees_with_what_is_sure(
    shift: Literal["none", "exact"],
) -> None:
    """The whole algorithm is run on every private table: what is called certain holds in all that look the same."""
    public = [*PEOPLE[:4], PEOPLE[0]]
    published = {}
    for size in (2, 3):
        for chosen in itertools.combinations(range(len(public)), size):
            release = made([public[i] for i in chosen], public, shift, steps=4)
            if release is not None:
                published[chosen] = (release, Counter(cells(release)))
    some = 0
    for chosen, (release, rows) in published.items():
        truth = framed(table([public[i] for i in chosen]), table(public)).private
        found = surely(release, table(public), truth, seconds=60)
        alike = [set(other) for other, (_, shown) in published.items() if shown == rows]
        combination = table(public).frequencies.row_combination
        for i in range(len(public)):
            there = sum(public[j] == public[i] for j in range(len(public)))
            counts = {sum(public[j] == public[i] for j in world) for world in alike}
            assert not found.present[combination[i]] or counts == {there}
            assert not found.absent[combination[i]] or counts == {0}
            some += bool(found.present[combination[i]] or found.absent[combination[i]])
    assert some or shift == "none"


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=7), st.data())
def test_a_swap_finds_only_members_that_differ_in_some_world(rows: list[tuple[int, ...]], data: st.DataObject) -> None:
    """Against every world with the same counts of each value in each column."""
    people = Counter(rows)
    members = sorted(people)
    private = {m: data.draw(st.integers(0, people[m])) for m in members}
    found = swapped(
        np.array(members), np.array([people[m] for m in members]), np.array([private[m] for m in members])
    )  # fmt: skip
    differs = set()
    for counts in itertools.product(*(range(people[m] + 1) for m in members)):
        world = dict(zip(members, counts, strict=True))
        if sums(world) == sums(private):
            differs |= {m for m in members if world[m] != private[m]}
    assert {m for m, changes in zip(members, found, strict=True) if changes} <= differs


def sums(world: dict[tuple[int, ...], int]) -> list[list[int]]:
    """How many have each value in each column."""
    return [[sum(n for m, n in world.items() if m[j] == v) for v in range(3)] for j in range(3)]
