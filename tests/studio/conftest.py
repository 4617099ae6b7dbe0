"""Studios that run, and end with the test that started them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from studio.running import Started, table_text

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """Start studios, which end with the test."""
    running: list[Started] = []

    def starting(*options: str, folder: Path = tmp_path) -> Started:
        running.append(Started(folder, *options))
        return running[-1]

    yield starting
    for one in running:
        one.process.kill()
        one.process.communicate()


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A table below a folder of its own."""
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "people.csv"
    path.write_text(table_text(), encoding="utf-8")
    return path


@pytest.fixture
def studio(start: Callable[..., Started], people: Path) -> Started:
    """A studio with the table of people."""
    return start(str(people))
