"""How hypothesis looks for counterexamples here, and where the tests find the Adult table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

IN_CI = bool(os.environ.get("CI"))

# No deadline and no complaint about slow draws: two workers on a busy machine are slow for reasons that are not ours.
BASE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)

settings.register_profile("dev", BASE, max_examples=50)
settings.register_profile("ci", BASE, max_examples=50, derandomize=True)  # the same change, the same verdict
settings.register_profile("slow", BASE, max_examples=1000, derandomize=IN_CI)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the profile: many examples under `-m slow`, the same ones each time in CI; --hypothesis-profile wins."""
    if config.getoption("--hypothesis-profile"):
        return
    marks = str(config.getoption("markexpr"))
    slow = "slow" in marks and "not slow" not in marks
    settings.load_profile("slow" if slow else "ci" if IN_CI else "dev")


@pytest.fixture(scope="session")
def adult_path() -> Path:
    """The Adult table, which is not part of the project: JALI_ADULT points to it, or the test skips."""
    path = os.environ.get("JALI_ADULT")
    if not path:
        pytest.skip("JALI_ADULT does not point to the Adult table")
    if not Path(path).is_file():
        pytest.fail(f"JALI_ADULT points to {path}, which is no file; correct it or unset it")
    return Path(path)
