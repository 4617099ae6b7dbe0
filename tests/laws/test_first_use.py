"""Kernels in plain Python give what compiled ones give, so that a small table need not wait for the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali import kernels
from jali.errors import InfeasibleError, InputError
from jali.kernels import jit
from jali.kernels.recode import pair_up
from jali.risk.attacks.replay import published

ALWAYS, NEVER = -1, 2**62


@contextmanager
def compiling(when: int) -> Iterator[None]:
    """Compile always or never, whatever is on disk and however small the table is."""
    names = ("LITTLE", "FEW", "LOOKS")
    before, stored = {name: getattr(kernels, name) for name in names}, jit.is_stored
    for name in names:
        setattr(kernels, name, when)
    jit.is_stored = lambda kernel: when == ALWAYS  # type: ignore[assignment]
    try:
        yield
    finally:
        jit.is_stored = stored
        for name in names:
            setattr(kernels, name, before[name])


def people(seed: int, rows: int) -> jali.Table:
    draw = np.random.default_rng(seed)
    frame = {
        "age": draw.integers(0, 30, rows),
        "zip": draw.choice(["130", "131", "148", "149"], rows),
        "ill": draw.choice(list("abcd"), rows),
    }
    quasi = {"age": jali.bands(5, 10, low=0, high=29), "zip": jali.mask()}
    return jali.table(pa.table(frame), quasi=quasi, sensitive=["ill"])


def shown(verb: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What is published; or that nothing can be, and why."""
    try:
        return published(verb(*arguments, **options))
    except (InfeasibleError, InputError) as error:
        return str(error)


VERBS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "generalize": (jali.generalize, {"suppress": 0.1}),
    "partition": (jali.partition, {"split": "kl"}),
    "partition, relaxed": (jali.partition, {"mode": "relaxed"}),
    "recode": (jali.recode, {}),
    "recode by the principle": (jali.recode, {"peel": "principle"}),
    "recode by KL, as sets": (jali.recode, {"objective": "kl", "show": "set"}),
}


@pytest.mark.parametrize("name", VERBS)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 40), k=st.integers(1, 4))
def test_verbs_publish_the_same_compiled_or_not(name: str, seed: int, rows: int, k: int) -> None:
    table, (verb, options) = people(seed, rows), VERBS[name]
    promise = [jali.KAnonymity(k), jali.DistinctDiversity(2)][: 1 + seed % 2]
    found = []
    for when in (ALWAYS, NEVER):
        with compiling(when):
            found.append(shown(verb, table, promise, **options))
    assert found[0] == found[1]


@given(seed=st.integers(0, 10_000), rows=st.integers(2, 40))
def test_safety_is_judged_alike(seed: int, rows: int) -> None:
    table, found = people(seed, rows), []
    for when in (ALWAYS, NEVER):
        with compiling(when):
            found.append(shown(jali.partition, table, jali.Safety(0.9, 1)))
    assert found[0] == found[1]


def test_a_plain_kernel_calls_no_compiled_one() -> None:
    seen: set[int] = set()

    def walk(function: Any) -> None:
        assert not hasattr(function, "py_func")
        if id(function) in seen:
            return
        seen.add(id(function))
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            assert not hasattr(value, "py_func"), name
            if hasattr(value, "__code__") and value.__module__ is None:
                walk(value)

    walk(jit._uncompiled(pair_up, {}))
    assert seen


def test_little_work_is_compiled_only_where_that_was_done_before(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(jit, "prepare", lambda kernel, what: said.append(what))
    monkeypatch.setattr(jit, "is_stored", lambda kernel: False)
    assert jit.chosen(pair_up, "something", kernels.LITTLE) is jit.plain(pair_up)
    assert not said
    assert jit.chosen(pair_up, "something", kernels.LITTLE + 1) is pair_up
    monkeypatch.setattr(jit, "is_stored", lambda kernel: True)
    assert jit.chosen(pair_up, "something", 1) is pair_up
    assert said == ["something", "something"]
