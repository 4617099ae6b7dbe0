"""A tenth of what `make fuzz` runs, with a new seed each time, in CI the same; the seed is part of every complaint."""

from __future__ import annotations

import os
import secrets
import sys

import pytest

from fuzz import inputs, kills

SEED = 0 if os.environ.get("CI") else secrets.randbits(32)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed as on Unix")
def test_kill_9_at_any_point_of_a_save_leaves_the_old_release_or_the_new_one() -> None:
    """And the next save leaves nothing else behind."""
    killed = kills.run(SEED, 24)
    assert killed.points >= 20
    assert not killed.wrong, f"seed {SEED}"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the watchdog is a signal")
def test_no_mutated_input_gives_a_traceback_a_hang_or_a_value() -> None:
    """Tables, jobs, hierarchies, manifests and queries with accidents in them."""
    wrong = inputs.run(SEED, 1000)
    assert not wrong, "\n".join(map(str, wrong))
