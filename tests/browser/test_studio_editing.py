"""Hierarchies and promises in the studio as a person edits them; what was clicked is what `jali publish` runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import jali
from browser.test_studio import Page, history, page, recorded, role

pytest.importorskip("matplotlib")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.slow, pytest.mark.browser]
__all__ = ["page"]


def fill(page: Page, css: str, text: str) -> None:
    """Write into a field as a person does, in place of what stands there."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    page.settled()
    page.press(css)
    keys = ActionChains(page.browser).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL)
    keys.send_keys(text).perform()


def step(page: Page, name: str) -> None:
    page.press(f"nav.steps a[href='#{name}']")
    page.until(lambda: page.browser.execute_script("return location.hash") == f"#{name}")


def press_text(page: Page, css: str, text: str) -> None:
    """Press the link among these that says this, by its id, and wait until the view shows it as chosen."""
    script = "return [...document.querySelectorAll(arguments[0])].find(e => e.textContent === arguments[1])?.id"
    page.until(lambda: bool(page.browser.execute_script(script, css, text)))
    page.press("#" + page.browser.execute_script(script, css, text))
    page.until(lambda: bool(page.browser.execute_script(script, f"{css}[aria-current]", text)))
    page.settled()


def refused(page: Page, text: str) -> None:
    """The page says this in its line; the browser notes for itself that a request was refused."""
    page.until(lambda: text in page.text_of("#message"))
    noted = [entry["message"] for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert all("422" in one for one in noted)


def used(page: Page, said: str) -> None:
    """Use the builder that is previewed, and wait until the page shows it as the job's own."""
    page.press("#build-go")
    recorded(page, said)
    page.until(lambda: not page.browser.find_elements("css selector", "#preview"))


def nodes(page: Page) -> list[str]:
    """What the tree shows."""
    script = "return [...document.querySelectorAll('.tree .node a')].map(e => e.textContent)"
    return list(page.browser.execute_script(script))


def test_a_hierarchy_is_edited_and_a_promise_chosen_with_the_mouse(page: Page, axe: str, tmp_path: Path) -> None:
    """A builder, a level, nodes that move, are renamed, merged and split; a promise in words; the release is the same.

    What cannot be is refused in one line, and leaves the job as it was.
    """
    page.find("#rows table")
    page.choose(role(page, "occupation"), "sensitive")
    page.until(lambda: len(history(page)) == 2)
    step(page, "hierarchies")
    press_text(page, ".columns-of a", "education")
    page.press("#make-frequency")
    page.find("#preview")
    page.look("preview", axe)
    fill(page, "#field-frequency", "few")
    page.press("#build-go")
    refused(page, "frequency must be a list of numbers")
    assert len(history(page)) == 2
    fill(page, "#field-frequency", "20, 100")
    used(page, "education: frequency 20, 100")
    page.press("#make-suppress")
    page.find("#preview")
    used(page, "education: suppress")
    page.press("#above-0")
    recorded(page, "added a level")
    page.press("#above-0")
    page.until(lambda: len(history(page)) == 6)
    page.settled()
    first, second, third = nodes(page)[1], nodes(page)[4], nodes(page)[7]
    press_text(page, "[id^=node-2-]", first)
    fill(page, "#to", "Some school")
    page.press("#rename-go")
    page.until(lambda: "Some school" in nodes(page))
    press_text(page, "[id^=node-2-]", "Some school")
    fill(page, "#other", second)
    page.press("#merge-go")
    recorded(page, "merged")
    fill(page, "#other", third)
    page.press("#merge-go")
    page.until(lambda: len([one for one in history(page) if "merged" in one]) == 2)
    page.look("hierarchies", axe)
    page.press("#tick-0")
    fill(page, "#split-under", "Apart")
    page.press("#split-go")
    page.until(lambda: "Apart" in nodes(page))
    recorded(page, "moved a node")
    before = history(page)
    press_text(page, "[id^=node-2-]", "Apart")
    fill(page, "#to", "Some school")
    page.press("#rename-go")
    refused(page, "has that name already")
    assert history(page) == before
    step(page, "promises")
    page.press("#adding summary")
    page.press("#add-FrequencyDiversity-0")
    recorded(page, "promise: frequency diversity")
    page.until(lambda: "no occupation is held by more than 1/3" in page.text_of("#chosen"))
    at = page.browser.execute_script("return document.querySelectorAll('.promise').length") - 1
    fill(page, f"#promise-{at}-l", "50\t")
    page.until(lambda: "cannot be kept" in page.text_of(".promise.against"))
    page.look("promises", axe)
    fill(page, f"#promise-{at}-l", "2\t")
    page.until(lambda: not page.browser.find_elements("css selector", ".promise.against"))
    assert page.browser.execute_script("return document.getElementById('transparent').checked")
    page.choose("#method", "generalize")
    recorded(page, "method: generalize")
    page.press("#transparent")
    page.until(lambda: "This cannot be proved" in page.text_of("#method-of"))
    page.settled()
    page.press("#transparent")
    page.until(lambda: "cannot be proved" not in page.text_of("#method-of"))
    page.press("#presence summary")
    page.look("promises-kept", axe)
    step(page, "decide")
    page.press("#make")
    page.find(".verdict")
    fill(page, "#by", "Dr. Who")
    page.choose("#decision", "publish")
    page.press("#save")
    page.until(lambda: "people-release" in page.text_of(".saved"))
    page.kept_to_itself()
    folder = tmp_path / "data"
    again(folder)
    made = jali.load(folder / "people-release")
    assert "FrequencyDiversity" in [type(one).__name__ for one in made.principles]
    assert (folder / "job.toml").read_text().count("taxonomy") == 1


def again(folder: Path) -> None:
    """The job that was written gives the same release."""
    subprocess.run([sys.executable, "-m", "jali", "publish", "job.toml", "-o", "again"], cwd=folder, check=True,
                   capture_output=True)  # fmt: skip
    one, other = (jali.load(folder / name) for name in ("people-release", "again"))
    assert (one.levels, one.principles) == (other.levels, other.principles)
    assert sorted((folder / "people-release" / "data.csv").read_text().splitlines()) == sorted(
        (folder / "again" / "data.csv").read_text().splitlines()
    )
