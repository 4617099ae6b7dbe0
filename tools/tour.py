"""Pictures of the guided tour: `python tools/tour.py FOLDER` walks through the studio of the invented census.

It needs chromium and its driver, and selenium. The pictures go into the folder, which is none of the repository's.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROWS = 5000
COLUMNS = ["age", "sex", "education", "occupation"]
DIAGNOSES = ["asthma", "back pain", "cancer", "depression", "diabetes", "flu", "fracture", "gastritis", "heart disease",
             "hepatitis", "HIV", "hypertension", "migraine", "stroke"]  # fmt: skip


@contextmanager
def studio(folder: Path) -> Iterator[str]:
    """The address of a studio with some of the invented census."""
    import jali

    everybody = jali.datasets.census(rows=4 * ROWS, seed=0).frame("pandas")[COLUMNS]
    everybody.drop(columns="occupation").to_csv(folder / "residents.csv", index=False)
    (folder / "archive").mkdir()
    everybody[:200].to_csv(folder / "archive" / "people-2024.csv", index=False)
    frame = everybody[:ROWS].copy()
    jobs = sorted(set(frame["occupation"]))
    frame["diagnosis"] = [DIAGNOSES[jobs.index(job)] for job in frame.pop("occupation")]
    frame.insert(0, "patient name", [f"Person {i}" for i in range(len(frame))])
    frame.to_csv(folder / "people.csv", index=False)
    process = subprocess.Popen([sys.executable, "-u", "-m", "jali", "studio", "--no-browser"],
                               cwd=folder, stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip().rpartition(" ")[2]
    finally:
        process.kill()
        process.wait()


@contextmanager
def browser() -> Iterator[Any]:
    """Debian's chromium, without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.binary_location = str(shutil.which("chromium"))
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
    try:
        yield driver
    finally:
        driver.quit()


class Tour:
    """A walk, of which pictures are taken."""

    def __init__(self, driver: Any, pictures: Path) -> None:
        self.driver, self.pictures, self.number = driver, pictures, 0

    def until(self, css: str, there: Callable[[Any], bool] = lambda found: True, seconds: float = 240) -> Any:
        """The element, when it is there and as it should be."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for found in self.driver.find_elements("css selector", css):
                try:
                    if there(found):
                        return found
                except Exception:  # the page was replaced meanwhile
                    continue
            time.sleep(0.1)
        raise SystemExit(f"the tour does not come to {css}")

    def press(self, css: str) -> None:
        """Press what is there, whatever lies over it."""

        def pressed(found: Any) -> bool:
            self.driver.execute_script("arguments[0].click()", found)
            return True

        self.until(css, pressed)

    def type(self, css: str, text: str) -> None:
        """Write into a field, in place of what stands there."""
        field = self.until(css)
        field.clear()
        field.send_keys(text)

    def go(self, place: str) -> None:
        """Go to a view."""
        self.driver.execute_script("location.hash = arguments[0]", place)

    def shoot(self, name: str, *, width: int = 1280, dark: bool = False, tall: int = 2400) -> None:
        """Take a picture of the page as it is."""
        self.number += 1
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        time.sleep(0.5)
        height = min(self.driver.execute_script("return document.documentElement.scrollHeight"), tall)
        asked = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", asked)
        target = self.pictures / f"{self.number:02}-{name}.png"
        target.write_bytes(base64.b64decode(shot["data"]))
        print(target)


def opened(tour: Tour) -> None:
    """A table is chosen; its columns, hierarchies and promises are seen."""
    tour.until("#files li")
    tour.shoot("open")
    tour.type("#search-files", "people.csv")
    tour.press("#files li:not([hidden]) button")
    tour.until("#rows table")
    tour.until("#role-1")
    tour.shoot("data")
    tour.go("hierarchies")
    tour.until("#levels table")
    tour.shoot("hierarchies")
    tour.go("promises")
    tour.until("#raw table")
    tour.shoot("promises")


def explored(tour: Tour) -> None:
    """Methods are compared, one point is seen closely, two side by side, one is taken."""
    tour.go("explore")
    tour.until("#compare")
    tour.shoot("explore-begin")
    tour.press("#compare")
    tour.until("#charts svg")
    tour.shoot("explore-live")
    tour.until("caption", lambda found: "points, by" in found.get_attribute("textContent"))
    tour.shoot("explore")
    tour.shoot("explore-dark", dark=True)
    tour.shoot("explore-telephone", width=390)
    tour.press("a[href^='#explore?point=lattice']")
    tour.until("#beside table")
    tour.until("#part-columns", seconds=300)
    tour.shoot("point", tall=6000)
    first = tour.driver.execute_script("return document.querySelector('[data-point]').dataset.point")
    other = tour.driver.execute_script("return [...document.querySelectorAll('#with option')][2].value")
    tour.go(f"explore?point={first}&with={other}")
    tour.until(".two.report")
    tour.until("#progress[hidden]")
    tour.shoot("two-points", tall=4000)
    tour.go(f"explore?point={first}")
    tour.press("[id^='take-']")
    tour.until(".flag.calm")


def decided(tour: Tour) -> None:
    """A question, the verdict, a threshold of one's own."""
    tour.go("ask")
    tour.press(".button.chip:nth-of-type(2)")
    tour.until("#answer .scale")
    tour.shoot("ask")
    tour.shoot("ask-dark", dark=True)
    tour.go("decide")
    tour.press("#make")
    tour.until(".verdict", seconds=300)
    tour.shoot("decide")
    tour.press("#thresholds summary")
    tour.type("#threshold-highest-risk", "1 in 30\t")
    tour.until("#policy-back")
    tour.until(".verdict", seconds=300)
    tour.until("#progress[hidden]")
    tour.shoot("thresholds")


def hidden(tour: Tour) -> None:
    """Who is in the table becomes the secret."""
    tour.go("promises")
    tour.press("#presence summary")
    tour.type("#public", "residents.csv")
    tour.press("#conceal-go")
    tour.until("#reveal")
    tour.until("#presence .quiet", lambda found: "of 20,000 people" in found.get_attribute("textContent"))
    tour.shoot("presence")
    tour.go("decide")
    tour.press("#make")
    tour.until(".verdict", seconds=300)
    tour.shoot("presence-decided")


def main(folder: str) -> None:
    """Take the pictures."""
    pictures = Path(folder)
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, studio(Path(place)) as address, browser() as driver:
        driver.get(address)
        tour = Tour(driver, pictures)
        for part in (opened, explored, decided, hidden):
            part(tour)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "tour")
