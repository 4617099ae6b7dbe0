"""The studio as a person explores it: compare, stop, look, compare two, take a node, ask, publish; by keyboard too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import jali
from browser.test_studio import Page, history, page, role

__all__ = ["page"]  # the fixture

pytest.importorskip("matplotlib")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.slow, pytest.mark.browser]
SLOW = ("recode", "anatomy", "angel", "marginals", "pdf")


def text(page: Page) -> str:
    return str(page.browser.execute_script("return document.getElementById('view').textContent"))


def only_fast(page: Page) -> None:
    """Leave out the methods that take long."""
    for name in SLOW:
        steps = len(history(page))
        page.press(f"#method-{name}")
        page.until(lambda steps=steps: len(history(page)) == steps + 1)  # type: ignore[misc]
        page.settled()


def test_a_person_explores_takes_a_node_asks_and_publishes(page: Page, axe: str, tmp_path: Path) -> None:
    """A search is stopped and keeps its points; the node that was taken is what `jali publish` publishes."""
    page.find("#rows table")
    page.choose(role(page, "occupation"), "sensitive")
    page.until(lambda: len(history(page)) == 2)
    page.press("nav.steps a[href='#explore']")
    page.press("#compare")
    page.find("#charts .spot")
    page.press("#stop")
    page.until(lambda: "What was found stays" in text(page))
    assert page.browser.find_elements("css selector", "[data-name]")
    only_fast(page)
    page.press("#compare")
    page.until(lambda: "points, by" in text(page), seconds=120)
    page.idle()
    page.look("explore", axe)
    page.press("#charts .spot[id$='lattice:2']")
    page.find("[data-point='lattice:2'] #beside table.beside")
    page.find("#part-columns", seconds=120)
    page.idle()
    page.look("point", axe)
    page.choose("#with", "partition:10")
    page.find(".two.report")
    page.idle()
    page.look("two", axe)
    page.press("#back")
    page.press("[data-point='lattice:2'] #part-lattice .spot[title*='sex 0']")
    page.until(lambda: history(page)[-1].startswith("take the node"))
    page.press("nav.steps a[href='#ask']")
    page.find("#condition", seconds=120)
    page.settled()
    page.press("#condition")
    page.find("#condition").send_keys("age >= 40 AND sex = 'Male'")
    page.press("#count")
    page.find("#answer .scale")
    frame = jali.read(tmp_path / "data" / "people.csv", quasi=["age", "sex"]).frame("pandas")
    truth = int(((frame["age"] >= 40) & (frame["sex"] == "Male")).sum())
    assert page.text_of("#answer .truth dd").replace(",", "") == str(truth)
    page.settled()
    page.look("ask", axe)
    page.press("nav.steps a[href='#decide']")
    page.press("#make")
    page.find(".verdict", seconds=120)
    page.choose("#decision", "publish")
    page.press("#by")
    page.find("#by").send_keys("Dr. Who")
    page.press("#save")
    page.until(lambda: "people-release" in page.text_of(".saved"), seconds=60)
    page.kept_to_itself()
    folder = tmp_path / "data"
    kept = json.loads((folder / "people.csv.studio.json").read_text())
    levels = kept["history"][kept["at"]]["job"]["generalize"]["levels"]
    subprocess.run([sys.executable, "-m", "jali", "publish", "job.toml", "-o", "again"], cwd=folder, check=True,
                   capture_output=True)  # fmt: skip
    one, other = (jali.load(folder / name) for name in ("people-release", "again"))
    assert one.levels == other.levels == levels
    assert one.principles == other.principles


def test_no_click_waits_for_a_comparison(page: Page) -> None:
    """Every view answers while methods are compared; how fast is measured by `python -m benchmarks studio`."""
    page.find("#rows table")
    page.press("nav.steps a[href='#explore']")
    page.press("#compare")
    page.find("#charts .spot")
    working = []
    for name, wanted in (("data", ".columns"), ("explore", "#charts"), ("decide", "#asked")):
        page.press(f"nav.steps a[href='#{name}']")
        page.find(wanted)
        working.append(not page.browser.execute_script("return document.getElementById('progress').hidden"))
    assert working[0], "the comparison had ended before anything could be asked for"
