"""The whole way through the studio without a mouse: from the list of files to the release that `jali publish` makes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jali
from browser.test_studio import Page, history, recorded, role
from studio.running import Started

pytest.importorskip("matplotlib")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.slow, pytest.mark.browser]
ENTER, SPACE, BACKSPACE, CONTROL = "\ue007", "\ue00d", "\ue003", "\ue009"
UP, RIGHT, DOWN = "\ue013", "\ue014", "\ue015"
SLOW = ("recode", "anatomy", "angel", "marginals", "pdf")


@pytest.fixture
def asking(browser: Any, tmp_path: Path, screenshots: Path) -> Iterator[Page]:
    """A studio that asks for a table: some of the invented census, and other files beside it."""
    frame = jali.datasets.census(rows=2000, seed=0).frame("pandas")[["age", "sex", "education", "occupation"]]
    frame.insert(0, "patient name", [f"Person {i}" for i in range(len(frame))])
    (tmp_path / "years").mkdir()
    for name in ("people.csv", "years/people-2023.csv", "years/visits.csv"):
        frame.to_csv(tmp_path / name, index=False)
    studio = Started(tmp_path)
    try:
        yield Page(browser, studio, screenshots)
    finally:
        studio.process.kill()
        studio.process.communicate()


def text(page: Page) -> str:
    return str(page.browser.execute_script("return document.getElementById('view').textContent"))


def value(page: Page, id_: str) -> str:
    return str(page.browser.execute_script("return document.getElementById(arguments[0]).value", id_))


def goes(page: Page, name: str, wanted: str) -> None:
    """Go to a step by its link, from the top of the page."""
    page.browser.execute_script("document.getElementById('skip').focus()")
    page.enter(f"#{name}")
    page.find(wanted, seconds=120)
    page.settled()


def test_the_whole_way_needs_no_mouse(asking: Page, axe: str, tmp_path: Path) -> None:
    """Open, roles, a hierarchy, a promise, explore, stop, compare, take, ask, judge, thresholds, sign, publish."""
    page = asking
    opens(page, axe)
    says_what_columns_are_for(page)
    edits_a_hierarchy(page)
    promises(page)
    explores(page)
    asks(page)
    publishes(page, axe)
    page.kept_to_itself()
    job = json.loads((tmp_path / "people.csv.studio.json").read_text())
    method = job["history"][job["at"]]["job"]["method"]
    subprocess.run([sys.executable, "-m", "jali", "publish", "job.toml", "-o", "again"], cwd=tmp_path, check=True,
                   capture_output=True)  # fmt: skip
    one, other = (jali.load(tmp_path / name) for name in ("people-release", "again"))
    assert method in ("generalize", "partition")
    assert (one.kind, one.principles, one.levels, one.rows) == (other.kind, other.principles, other.levels, other.rows)


def opens(page: Page, axe: str) -> None:
    """Two words narrow the list; the arrow keys go through it; Enter opens."""
    page.find("#files li")
    page.look("files", axe)
    page.tab_to("search-files")
    page.keys("people")
    page.until(lambda: page.text_of("#search-files-left") == "2 of 3 listed")
    page.keys(DOWN)
    assert page.focused("textContent").startswith("people.csv")
    page.keys(DOWN)
    assert page.focused("textContent").startswith("people-2023.csv")
    page.keys(UP, ENTER)
    page.find("#rows table")
    page.until(lambda: page.text_of("#table") == "people.csv")


def says_what_columns_are_for(page: Page) -> None:
    """A letter changes a role, ctrl-z takes it back, and the focus stays."""
    field = role(page, "occupation")[1:]
    page.idle()
    page.tab_to(field)
    page.keys("s")
    page.until(lambda: len(history(page)) == 2)
    page.settled()
    page.until(lambda: page.focused() == field)
    page.browser.switch_to.active_element.send_keys(CONTROL, "z")
    page.until(lambda: value(page, field) != "sensitive")
    page.settled()
    page.tab_to(field)
    page.keys("s")
    page.until(lambda: value(page, field) == "sensitive" and "nobody should learn it" in history(page)[-1])


def edits_a_hierarchy(page: Page) -> None:
    """A builder is previewed and used, a level added, a node renamed."""
    goes(page, "hierarchies", "#levels")
    page.enter("column-1")
    page.until(lambda: "column=1" in page.browser.current_url)
    page.settled()
    page.enter("make-frequency")
    page.find("#preview")
    page.settled()
    page.enter("build-go")
    recorded(page, "frequency 5, 50")
    page.find("#above-0")
    page.until(lambda: page.focused() == "build-go")
    page.enter("above-0")
    recorded(page, "added a level")
    page.enter("node-1-1")
    page.find("#rename")
    page.settled()
    page.write("to", f"Named by keyboard{ENTER}")
    recorded(page, "renamed a node")
    page.until(lambda: "Named by keyboard" in text(page))


def promises(page: Page) -> None:
    """A promise in words, and its parameter."""
    goes(page, "promises", "#raw")
    page.browser.execute_script("document.querySelector('#adding summary').id = 'adding-summary'")
    page.enter("adding-summary")
    page.enter("add-DistinctDiversity-0")
    recorded(page, "promise: distinct diversity")
    at = page.browser.execute_script("return document.querySelectorAll('#chosen .promise').length") - 1
    page.write(f"promise-{at}-l", f"3{ENTER}")
    recorded(page, "distinct diversity: l = 3")


def explores(page: Page) -> None:
    """A comparison is begun, stopped and gone on with; a sign is chosen with arrows, compared with another, taken."""
    goes(page, "explore", "#compare")
    page.enter("compare")
    page.find("#charts .spot")
    page.browser.execute_script("document.getElementById('view').focus()")
    page.enter("stop")
    page.until(lambda: "What was found stays" in text(page), seconds=60)
    page.idle()
    for name in SLOW:
        page.tab_to(f"method-{name}")
        page.keys(SPACE)
        recorded(page, f"without {name}")
        page.until(lambda name=name: page.focused() == f"method-{name}")  # type: ignore[misc]
    page.enter("compare")
    page.until(lambda: bool(re.search(r"All \d+ points, by", text(page))), seconds=180)
    page.idle()
    first = page.browser.execute_script("return document.querySelector('#charts .spot').id")
    page.tab_to(first)
    page.keys(RIGHT)
    assert page.focused() != first
    name = page.focused().removeprefix("spot-0-")
    page.keys(ENTER)
    page.find(f"[data-point='{name}'] [id^='take-']", seconds=120)
    page.idle()
    page.tab_to("with")
    page.keys(DOWN)
    page.find(".two.report", seconds=120)
    page.idle()
    taking = page.browser.execute_script("return document.querySelector('[id^=take-]').id")
    page.enter(taking)
    page.until(lambda: history(page)[-1].startswith("take "))
    page.until(lambda: "This is what the job asks for" in text(page))


def asks(page: Page) -> None:
    """A mistake is shown at its place; then a count with its truth."""
    goes(page, "ask", "#condition")
    page.tab_to("condition")
    page.keys("age >= AND", ENTER)
    page.until(lambda: "at position 8" in text(page))
    assert page.text_of(".wrong mark") == "A"
    page.settled()
    page.write("condition", f"age >= 40{ENTER}")
    page.find("#answer .scale", seconds=60)
    page.settled()


def publishes(page: Page, axe: str) -> None:
    """The verdict; a threshold of one's own changes it; sign-off and saving."""
    goes(page, "decide", "#make")
    page.enter("make")
    page.find(".verdict", seconds=180)
    page.idle()
    page.browser.execute_script("document.querySelector('#thresholds summary').id = 'thresholds-summary'")
    page.enter("thresholds-summary")
    page.write("threshold-highest-risk", f"1 in 1000{ENTER}")
    recorded(page, "policy: highest_risk 1 in 1000")
    page.until(lambda: "at most 0.1" in page.text_of(".verdict"), seconds=120)
    page.idle()
    assert "groups of at least 1,000 people" in text(page)
    assert page.browser.find_elements("css selector", ".thresholds .own .reached:is(.change, .grave)")
    page.look("thresholds", axe)
    page.write("threshold-highest-risk", f"{BACKSPACE}{ENTER}")
    recorded(page, "policy: highest_risk as the preset")
    page.until(lambda: "at most 0.1" not in page.text_of(".verdict"), seconds=120)
    page.idle()
    page.tab_to("decision")
    page.keys("p")
    page.until(lambda: value(page, "decision") == "publish")
    page.write("by", "Dr. Who")
    page.enter("save")
    page.until(lambda: "people-release" in page.text_of(".saved"), seconds=120)
    page.idle()
