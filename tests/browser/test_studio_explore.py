"""The studio as a person explores it: compare, stop, look, compare two, take a node, ask, publish; by keyboard too."""

from __future__ import annotations

import json
import subprocess
import sys
import time
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


def focused(page: Page, what: str = "id") -> str:
    """The id of what has the focus, or another property of it."""
    return str(page.browser.execute_script(f"return document.activeElement.{what} || ''"))


def keys(page: Page, *pressed: str) -> None:
    """Press keys, wherever the focus is."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(page.browser).send_keys(*pressed).perform()


def settled(page: Page) -> None:
    """Wait until every part of the view is there."""
    page.until(lambda: not page.browser.find_elements("css selector", "#view [aria-busy]"), seconds=120)


def text(page: Page) -> str:
    return str(page.browser.execute_script("return document.getElementById('view').textContent"))


def only_fast(page: Page) -> None:
    """Leave out the methods that take long."""
    for name in SLOW:
        steps = len(history(page))
        page.press(f"#method-{name}")
        page.until(lambda steps=steps: len(history(page)) == steps + 1)  # type: ignore[misc]


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
    settled(page)
    page.press("#condition")
    page.find("#condition").send_keys("age >= 40 AND sex = 'Male'")
    page.press("#count")
    page.find("#answer .scale")
    frame = jali.read(tmp_path / "data" / "people.csv", quasi=["age", "sex"]).frame("pandas")
    truth = int(((frame["age"] >= 40) & (frame["sex"] == "Male")).sum())
    assert page.text_of("#answer .truth dd").replace(",", "") == str(truth)
    settled(page)
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


def test_exploring_and_asking_need_no_mouse(page: Page) -> None:
    """Tab comes to a chart, arrows to another sign, Enter looks at it and takes it; a mistake is shown at its place."""
    from selenium.webdriver.common.keys import Keys

    def tab_to(wanted: str) -> None:
        for _ in range(120):
            if focused(page).startswith(wanted) or focused(page, "href").endswith(wanted):
                return
            keys(page, Keys.TAB)
        raise AssertionError(f"Tab never comes to {wanted}")

    page.find("#rows table")
    keys(page, Keys.TAB)
    tab_to("#explore")
    keys(page, Keys.ENTER)
    page.find("#compare")
    for name in SLOW:
        steps = len(history(page))
        tab_to(f"method-{name}")
        keys(page, Keys.SPACE)
        page.until(lambda steps=steps: len(history(page)) == steps + 1)  # type: ignore[misc]
        page.until(lambda name=name: focused(page) == f"method-{name}")  # type: ignore[misc]
    tab_to("compare")
    keys(page, Keys.ENTER)
    page.until(lambda: "points, by" in text(page), seconds=120)
    page.idle()
    tab_to("spot-0-")
    first = focused(page)
    keys(page, Keys.ARROW_RIGHT)
    assert focused(page) != first
    name = focused(page).removeprefix("spot-0-")
    keys(page, Keys.ENTER)
    page.find(f"[data-point='{name}'] [id^='take-']")
    page.idle()
    tab_to("take-")
    keys(page, Keys.ENTER)
    page.until(lambda: "This is what the job asks for" in text(page))
    page.browser.execute_script("document.getElementById('skip').focus()")
    tab_to("#ask")
    keys(page, Keys.ENTER)
    page.find("#condition", seconds=120)
    settled(page)
    tab_to("condition")
    keys(page, "age >= AND", Keys.ENTER)
    page.until(lambda: "at position 8" in text(page))
    assert page.text_of(".wrong mark") == "A"


def test_a_click_is_answered_at_once(page: Page) -> None:
    """While methods are compared every view answers; the median click within 200 ms where the machine is not busy."""
    page.find("#rows table")
    page.press("nav.steps a[href='#explore']")
    page.press("#compare")
    page.find("#charts .spot")
    taken = []
    for name, wanted in (("data", ".columns"), ("explore", "#charts"), ("decide", "#asked")) * 2:
        begin = time.monotonic()
        page.press(f"nav.steps a[href='#{name}']")
        page.find(wanted)
        taken.append(time.monotonic() - begin)
    assert sorted(taken)[len(taken) // 2] < 2, taken
