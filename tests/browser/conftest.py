"""A browser without a window: Debian's chromium, installed if it is not there and we may."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracles.debian import need

CHROMIUM = ["chromium", "chromium-driver", "fonts-dejavu-core"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser, which keeps a log of its console and of what it asks the network for."""
    selenium = pytest.importorskip("selenium.webdriver")
    if why := need(CHROMIUM, lambda: all(map(shutil.which, ("chromium", "chromedriver")))):
        pytest.skip(f"there is no chromium; {why}")
    options = selenium.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = selenium.Chrome(options=options, service=selenium.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def pdftotext() -> str:
    """The program that reads the text of a PDF."""
    if why := need(["poppler-utils"], lambda: shutil.which("pdftotext")):
        pytest.skip(f"there is no pdftotext; {why}")
    return str(shutil.which("pdftotext"))


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, fetched with npm into a folder that is forgotten."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, and axe-core comes from it")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        ["npm", "pack", "axe-core", "--silent"], cwd=folder, capture_output=True, check=False, timeout=120
    )
    packed = list(folder.glob("axe-core-*.tgz"))
    if done.returncode or not packed:
        pytest.skip("npm cannot fetch axe-core here")
    with tarfile.open(packed[0]) as archive:
        found = archive.extractfile("package/axe.min.js")
        assert found is not None
        return found.read().decode()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the pages go: JALI_SCREENSHOTS, to be looked at, or a folder that is forgotten."""
    named = os.environ.get("JALI_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
