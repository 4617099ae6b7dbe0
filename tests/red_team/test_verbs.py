"""The public verbs with `transparent=True`, run in every world with every random order."""

from __future__ import annotations

from typing import Any

import pytest

import jali
from jali.principles.base import Principle
from red_team.verbs import Publisher, believed, keeps, table_of, takes_transparent

X, TRUE = (0, 2, 2, 5), ("a", "b", "b", "a")
PROMISES = [jali.FrequencyDiversity(2), jali.EntropyDiversity(1.9), jali.TCloseness(0.3), jali.DistinctDiversity(2)]


def asked(verb: Any, promise: Principle, **more: Any) -> Publisher:
    """The verb with this promise, transparent where it can be asked to."""
    if not takes_transparent(verb):
        pytest.skip(f"{verb.__name__} has no option transparent")
    return lambda table: verb(table, [promise], transparent=True, **more)


@pytest.mark.slow
def test_dealt_buckets_show_what_an_attacker_believes() -> None:
    """`anatomize` in every world with every order: in each release everybody's belief keeps the promise."""
    promise = jali.FrequencyDiversity(2)
    found = believed(table_of(X), TRUE, lambda table: jali.anatomize(table, [promise]), [2, 2])  # of a, of b
    assert len(found) > 1
    assert all(keeps(promise, belief, TRUE) for belief in found.values())


def test_a_plain_partition_gives_somebody_away() -> None:
    """The same attacker, and beliefs that break the promise which the release states."""
    promise = jali.DistinctDiversity(2)
    publish: Publisher = lambda table: jali.partition(table, [promise])  # noqa: E731
    found = believed(table_of((0, 1, 2, 4, 5)), ("a", "b", "b", "b", "a"), publish, [])
    assert not all(keeps(promise, belief, ("a", "b", "b", "b", "a")) for belief in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_a_transparent_partition_keeps_its_promise(promise: Principle) -> None:
    """All draws and all orders of ties, from the published table alone."""
    found = believed(table_of(X), TRUE, asked(jali.partition, promise), [len(TRUE)] * 2)
    assert all(keeps(promise, belief, TRUE) for belief in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_transparent_angel_keeps_its_promise(promise: Principle) -> None:
    """Halves draw two orders; three people, so that all fit, with values that keep the promise as one group."""
    x = (0, 2, 5)
    true = ("a", "b", "c") if promise in PROMISES[:2] else ("a", "b", "a")
    found = believed(table_of(x), true, asked(jali.angelize, promise, k=1), [len(true)] * 2)
    assert all(keeps(promise, belief, true) for belief in found.values())
