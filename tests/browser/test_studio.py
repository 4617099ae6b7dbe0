"""The studio as a person walks through it: open, say what columns are for, decide, save; the job runs again."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jali
from studio.running import Started

pytest.importorskip("matplotlib")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.slow, pytest.mark.browser]

AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(
  r => done(r.violations.map(v => v.id + ': ' + v.nodes[0].html.slice(0, 200))));
"""
WORKING = """
document.getElementById('doing').textContent = 'Writing the release';
document.getElementById('progress').hidden = false;
"""
BUSY = "main[aria-busy], main [aria-busy]"
DRAWN = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
SCROLL = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
OUTSIDE = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll('h1, h2, h3, p, li, select, button, input, svg, dd, dt')]
  .filter(e => e.checkVisibility() && !e.closest('.wide, .unseen, .skip, nav.steps'))
  .filter(e => { const b = e.getBoundingClientRect(); return b.width && (b.right > width + 1 || b.left < -1); })
  .map(e => e.outerHTML.slice(0, 80));
"""


class Page:
    """The page of a studio in a browser."""

    def __init__(self, browser: Any, studio: Started, pictures: Path) -> None:
        self.browser, self.studio, self.pictures = browser, studio, pictures
        self.size(1280)
        browser.get("about:blank")  # the page of the studio before this one asks for nothing any more
        browser.get_log("browser"), browser.get_log("performance")
        browser.get(studio.address)

    def size(self, width: int, scheme: str = "light") -> None:
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def find(self, css: str, *, seconds: float = 60) -> Any:
        """The element, when it is there."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.browser.find_elements("css selector", css)
            if found:
                return found[0]
            time.sleep(0.05)
        raise AssertionError(f"no {css} in: {self.browser.find_element('tag name', 'body').text[:2000]}")

    def text_of(self, css: str) -> str:
        self.find(css)
        return str(self.browser.execute_script(f"return document.querySelector({css!r})?.textContent || ''"))

    def until(self, said: Callable[[], bool], *, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not said():
            assert time.monotonic() < end, self.browser.find_element("tag name", "body").text[:2000]
            time.sleep(0.05)

    def press(self, css: str) -> None:
        """Press a button as a mouse does, wherever it stands; once more where the view was shown again meanwhile."""
        from selenium.common.exceptions import StaleElementReferenceException

        for last in (False, False, True):
            found = self.find(css)
            try:
                self.browser.execute_script(SCROLL, found)
                found.click()
                return
            except StaleElementReferenceException:
                if last:
                    raise

    def choose(self, css: str, value: str) -> None:
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import Select

        try:
            Select(self.find(css)).select_by_value(value)
        except StaleElementReferenceException:  # the view was shown again meanwhile
            Select(self.find(css)).select_by_value(value)

    def look(self, name: str, axe: str) -> None:
        """At a desk and on a telephone, in light and dark: nothing lies outside, and axe-core finds nothing."""
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                self.size(width, scheme)
                self.settled()
                self.browser.execute_async_script(DRAWN)
                self._shoot(f"studio-{name}-{width}-{scheme}")
                assert not self.browser.execute_script(OUTSIDE), (name, width)
                self.browser.execute_script(axe)
                assert not self.browser.execute_async_script(AXE), (name, width, scheme)
        self.size(1280)

    def settled(self) -> None:
        """Wait until the view is there whole: nothing is fetched, and no part of it is still being made."""
        self.until(lambda: not self.browser.find_elements("css selector", BUSY), seconds=120)

    def idle(self) -> None:
        """Wait until nothing is being made, and the view shows all of it."""
        script = "return document.getElementById('progress').hidden && !document.querySelector(arguments[0])"
        self.until(lambda: bool(self.browser.execute_script(script, BUSY)), seconds=180)

    def keys(self, *pressed: str) -> None:
        """Press keys, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(*pressed).perform()

    def focused(self, what: str = "id") -> str:
        """The id of what has the focus, or another property of it."""
        return str(self.browser.execute_script(f"return document.activeElement?.{what} || ''"))

    def tab_to(self, wanted: str) -> None:
        """Press Tab until the focus is on the element of this id, or on the link to this place."""
        for _ in range(400):
            if self.focused() == wanted or (wanted.startswith("#") and self.focused("hash") == wanted):
                return
            self.keys("\ue004")
        raise AssertionError(f"Tab never comes to {wanted}")

    def enter(self, wanted: str) -> None:
        """Go somewhere with Tab, and press Enter."""
        self.tab_to(wanted)
        self.keys("\ue007")

    def write(self, wanted: str, text: str) -> None:
        """Go to a field with Tab, and write in place of what stands there."""
        self.tab_to(wanted)
        self.browser.switch_to.active_element.send_keys("\ue009", "a")
        self.keys(text)

    def _shoot(self, name: str) -> None:
        height = self.browser.execute_script("return document.documentElement.scrollHeight")
        width = self.browser.execute_script("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 6000), "scale": 1}
        asked = {"captureBeyondViewport": True, "clip": clip}
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", asked)
        (self.pictures / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def kept_to_itself(self) -> None:
        """No error in the console, and no request to another host."""
        assert not [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        own = self.studio.address.partition("?")[0]
        assert asked
        assert not [url for url in asked if not url.startswith((own, "blob:"))]


@pytest.fixture
def page(browser: Any, tmp_path: Path, screenshots: Path) -> Iterator[Page]:
    """A studio with some of the invented census and with names, in the browser."""
    folder = tmp_path / "data"
    folder.mkdir()
    frame = jali.datasets.census(rows=2000, seed=0).frame("pandas")[["age", "sex", "education", "occupation"]]
    frame.insert(0, "patient name", [f"Person {i}" for i in range(len(frame))])
    frame.to_csv(folder / "people.csv", index=False)
    studio = Started(tmp_path, "data/people.csv")
    try:
        yield Page(browser, studio, screenshots)
    finally:
        studio.process.kill()
        studio.process.communicate()


def role(page: Page, column: str) -> str:
    """The field of a column's role."""
    script = "return [...document.querySelectorAll('.columns h3')].findIndex(h => h.textContent === arguments[0])"
    page.find(".columns")
    return f"#role-{page.browser.execute_script(script, column)}"


def history(page: Page) -> list[str]:
    page.find("#history")
    return list(
        page.browser.execute_script("return [...document.querySelectorAll('#history li')].map(e => e.textContent)")
    )


def recorded(page: Page, said: str) -> None:
    """Wait until the last step of the history says this, and the view shows it."""
    page.until(lambda: said in history(page)[-1])
    page.settled()


def test_a_person_goes_from_the_table_to_the_release(page: Page, axe: str, tmp_path: Path) -> None:
    """The token leaves the address; roles, undo, verdict, sign-off; `jali publish` makes the same release again."""
    page.find("#rows table")
    assert "token" not in page.browser.current_url
    assert page.studio.client().first not in page.browser.page_source
    page.idle()
    page.look("data", axe)
    page.browser.execute_script(WORKING)
    page.look("working", axe)
    page.browser.execute_script("document.getElementById('progress').hidden = true")
    assert "patient name" in page.text_of(".flag")
    page.choose(role(page, "occupation"), "sensitive")
    page.until(lambda: len(history(page)) == 2)
    page.choose(role(page, "patient name"), "other")
    page.until(lambda: "Red flag" in page.text_of(".flag"))
    page.press("#undo")
    page.until(lambda: "Red flag" not in page.text_of(".flag"))
    page.browser.refresh()
    page.find(".columns")
    assert len(history(page)) == 3
    page.press("nav.steps a[href='#decide']")
    page.press("#make")
    page.find(".verdict")
    page.idle()
    page.look("decide", axe)
    page.press("#by")
    page.find("#by").send_keys("Dr. Who")
    page.choose("#decision", "do not publish")
    page.press("#save")
    assert "people-release" not in page.text_of(".saved")
    assert not (tmp_path / "data" / "people-release").exists()
    page.choose("#decision", "publish")
    page.press("#replace")
    page.press("#save")
    page.until(lambda: "people-release" in page.text_of(".saved"))
    page.idle()
    page.look("saved", axe)
    page.kept_to_itself()
    folder = tmp_path / "data"
    assert "Dr. Who" in (folder / "people-report.html").read_text()
    subprocess.run([sys.executable, "-m", "jali", "publish", "job.toml", "-o", "again"], cwd=folder, check=True,
                   capture_output=True)  # fmt: skip
    one, other = (jali.load(folder / name) for name in ("people-release", "again"))
    assert one.transparent  # random bits decide which people are a group: the same promises, not the same rows
    assert other.transparent
    assert (one.kind, one.principles, one.rows) == (other.kind, other.principles, other.rows)


def test_the_page_says_when_the_studio_is_gone(page: Page) -> None:
    """And that nothing is lost."""
    page.find(".columns")
    page.studio.process.kill()
    page.until(lambda: "nothing is lost" in page.text_of("#message"))
