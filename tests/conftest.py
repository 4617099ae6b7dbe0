"""How often the laws are tried, what tests cost, and where they find the Adult table.

Two runs share all laws: `make test` tries each a few times, `make test-slow` again and often. A law says with
`@examples(times)` that it wants more examples than the profile gives, and with the fixture `repeats` how often it
repeats its own loop; both follow the run. Whatever does so is marked `law` here, so no run can forget it.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from oracles.often import FEW, MANY, repeated

if TYPE_CHECKING:
    from jali.encoding.table import Table

IN_CI = bool(os.environ.get("CI"))

# No deadline and no complaint about slow draws: two workers on a busy machine are slow for reasons that are not ours.
# In CI the examples are the same each time: the same change, the same verdict.
BASE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, derandomize=IN_CI)

settings.register_profile("fast", BASE, max_examples=FEW)
settings.register_profile("slow", BASE, max_examples=MANY)

BUDGET = 2.0
"""Processor seconds; a test of `make test` that takes more is named at the end: make it smaller, or mark it slow."""
NAMED = 15  # at most so many tests are named

cost_of: dict[str, float] = {}  # by test, of all workers


def is_slow_run(config: pytest.Config) -> bool:
    """Whether the run was asked for slow tests, by name: `-m slow`, `-m "slow or law"`."""
    marks = str(config.getoption("markexpr"))
    return "slow" in marks and "not slow" not in marks


def pytest_configure(config: pytest.Config) -> None:
    """Choose the profile; --hypothesis-profile wins."""
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("slow" if is_slow_run(config) else "fast")


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what tries more under another profile, so that `make test-slow` tries it again."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)) or "repeats" in getattr(item, "fixturenames", ()):
            item.add_marker("law")


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: they are not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_sessionfinish() -> None:
    """Let everything go again, so that what libraries check when they end is as ever."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Remember the processor time when a test starts: its own and that of the processes it waited for."""
    item.stash[_STARTED] = _spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Write into each report what the test has cost so far; the report also finds its way from a worker."""
    report = yield
    report.user_properties = [*report.user_properties, ("cost", _spent() - item.stash[_STARTED])]
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the last word on the cost of each test."""
    cost_of[report.nodeid] = dict(report.user_properties).get("cost", 0.0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what the tests cost, and name those that are over the budget of a fast one."""
    if hasattr(config, "workerinput") or not cost_of:
        return
    slow = is_slow_run(config)
    named = sorted(((cost, test) for test, cost in cost_of.items() if slow or cost > BUDGET), reverse=True)[:NAMED]
    terminalreporter.section(f"cost: {sum(cost_of.values()):.0f} processor seconds in {len(cost_of)} tests")
    if named:
        terminalreporter.write_line("the dearest:" if slow else f"over the {BUDGET:g} seconds of a fast test:")
    for cost, test in named:
        terminalreporter.write_line(f"{cost:7.1f} s  {test}")


_STARTED = pytest.StashKey[float]()


def _spent() -> float:
    mine = os.times()
    return time.process_time() + mine.children_user + mine.children_system


@pytest.fixture(autouse=True, scope="session")
def _unsynced() -> Iterator[None]:
    """Files of tests need not survive a power cut; tests about syncing put their own `fsync` in its place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session")
def repeats() -> Callable[[int], int]:
    """How often a loop of a law is repeated: as often as it says under `make test-slow`, else a part of it."""
    return repeated


@pytest.fixture(scope="session")
def adult_path() -> Path:
    """The Adult table, which is not part of the project: JALI_ADULT points to it, or the test skips."""
    path = os.environ.get("JALI_ADULT")
    if not path:
        pytest.skip("JALI_ADULT does not point to the Adult table")
    if not Path(path).is_file():
        pytest.fail(f"JALI_ADULT points to {path}, which is no file; correct it or unset it")
    return Path(path)


@pytest.fixture(scope="session")
def arx_adult(adult_path: Path) -> Table:
    """The first 30,162 rows of Adult with the hierarchies that ship with ARX's example."""
    folder = adult_path.parent / "arx-hierarchies"
    if not folder.is_dir():
        pytest.skip("ARX's hierarchies are not beside the Adult table")
    import jali

    names = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
    quasi = {name: jali.taxonomy(folder / f"{name}.csv") for name in names}
    return jali.read(adult_path, quasi=quasi, sensitive=["occupation"], domain="present").head(30_162)
