"""Explore and Ask: what a comparison depends on, what taking a point writes, and what the worker answers."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import jali
from jali.compare.methods import METHODS
from jali.core.forms import toml_text
from jali.core.text import Html
from jali.studio.views.explore import COMPARED, explored
from jali.studio.views.look import _named_apart
from studio.running import Client, Started

pytest.importorskip("matplotlib")

JOB: dict[str, Any] = {
    "input": "people.csv", "quasi": {"age": True}, "principles": [{"name": "KAnonymity", "k": 5}],
    "method": "generalize", "output": "out", "policy": {"preset": "public"},
    "generalize": {"levels": {"age": 2}, "suppress": 0.01},
    "partition": {"show": "pdf"}, "recode": {"show": "taxonomy", "transparent": True},
}  # fmt: skip


def test_what_was_taken_does_not_narrow_the_next_comparison() -> None:
    """Levels and how groups are shown are chosen anew; what somebody gave stays; the job is not touched."""
    before = json.dumps(JOB)
    assert explored(JOB) == {
        "input": "people.csv", "quasi": {"age": True}, "principles": [{"name": "KAnonymity", "k": 5}],
        "generalize": {"suppress": 0.01}, "recode": {"show": "taxonomy"},
        "frontier": {"transparent": "prefer"},
    }  # fmt: skip
    assert json.dumps(JOB) == before


def test_every_method_of_the_frontier_can_be_left_out() -> None:
    """The page names the methods that are compared, in their order."""
    assert tuple(METHODS) == COMPARED


def test_a_part_can_stand_twice_on_a_page() -> None:
    """Ids and what refers to them change together; texts that look like them do not."""
    text = ' id=&quot;a&quot;<div role="region" aria-label="Columns"></div>'
    made = Html(f'<svg aria-labelledby="a b"><g id="a" clip-path="url(#c)"></g><use href="#a"></use>{text}</svg>')
    wanted = f'<svg aria-labelledby="p-a p-b"><g id="p-a" clip-path="url(#p-c)"></g><use href="#p-a"></use>{text}</svg>'
    assert _named_apart(made, "p-", "one & other") == wanted.replace("Columns", "one &amp; other: Columns")


# -- with a studio that runs -----------------------------------------------------------------------------------------


@pytest.fixture
def client(studio: Started) -> Client:
    """A page of a studio, when the table was read and the disease is sensitive."""
    client = studio.client().enter()
    client.view("data", until="role-1")
    assert client.act("data", "role", column="disease", value="sensitive")[0] == 200
    return client


def answered(client: Client, condition: str) -> str:
    assert client.act("ask", "ask", condition=condition)[0] == 200
    end = time.monotonic() + 30
    while "Counting" in (text := client.view("ask", until="condition-hint")):
        assert time.monotonic() < end
        time.sleep(0.1)
    return text


@pytest.mark.slow
def test_a_point_that_is_taken_is_what_jali_publishes(client: Client, people: Path) -> None:
    """Explore, take the lattice at another strength and then a node of it: the job publishes these levels; undo."""
    for method in ("recode", "anatomy", "angel", "marginals", "pdf"):
        assert client.act("explore", "method", method=method, value=False)[0] == 200
    assert client.act("explore", "method", method="nonsense", value=True)[0] == 422
    assert client.act("explore", "compare")[0] == 200
    page = client.view("explore", until="points, by", seconds=120)
    names = set(re.findall(r'data-name="([^"]+)"', page))
    assert {"lattice:2", "lattice:10", "partition:5"} <= names
    assert all(f'data-marks="{name}"' in page for name in names)
    assert client.act("explore", "take", point="nonsense")[0] == 422
    assert client.act("explore", "take", point="lattice:10")[0] == 200
    assert "in the job" in client.view("explore", until="points, by")
    look = client.view("explore?point=lattice:10", until="part-columns", seconds=120)
    assert "<img src" not in look
    assert "<script" not in look
    levels = json.loads(html.unescape(re.findall(r'data-levels="([^"]+)"', look)[-1]))
    assert client.act("explore", "node", point="lattice:10", levels=levels)[0] == 200
    assert client.act("explore", "node", point="partition:10", levels=levels)[0] == 422
    for wrong in ({"age": "x"}, {"age": 1}, {**levels, "name": 1}):
        assert client.act("explore", "node", point="lattice:10", levels=wrong)[0] == 422
    assert client.state()["history"][-1].startswith("take the node")
    history = json.loads((people.parent / "people.csv.studio.json").read_text())
    job = history["history"][history["at"]]["job"]
    assert job["principles"][0]["k"] == 10
    (people.parent / "job.toml").write_text(toml_text(job))
    subprocess.run([sys.executable, "-m", "jali", "publish", "job.toml", "-o", "out"], cwd=people.parent, check=True,
                   capture_output=True)  # fmt: skip
    assert jali.load(people.parent / "out").levels == levels
    client.act("explore", "step", by=-2)
    assert "✓ in the job" in client.view("explore", until="points, by")


@pytest.mark.slow
def test_answers_are_those_of_the_release_and_of_the_table(client: Client, people: Path) -> None:
    """Estimate and truth of a count; a mistake is shown at its place; nonsense and scripts are refused or escaped."""
    client.view("ask", until="condition-hint", seconds=120)
    page = answered(client, "age >= 40 AND disease = 'flu'")
    rows = [line.split(",") for line in people.read_text().splitlines()[1:]]
    truth = sum(int(row[1]) >= 40 and row[-1] == "flu" for row in rows)
    assert re.search(rf"<dt>Truth</dt><dd>{truth}</dd>", page)
    assert "Invented people" in page
    page = answered(client, "age >= AND")
    assert 'role="alert"' in page
    assert "<mark>A</mark>ND" in page
    page = answered(client, "nobody = '<script>'")
    assert "<script" not in page
    assert "nobody" in page
    assert client.act("ask", "ask", condition="")[0] == 422
    assert client.act("ask", "ask", condition="x" * 5000)[0] == 422
    assert client.act("ask", "ask", condition=3)[0] == 422


@pytest.mark.slow
def test_a_comparison_that_is_stopped_keeps_its_points(client: Client) -> None:
    """What was found before stays on the page, and going on does not begin anew."""
    assert client.act("explore", "compare")[0] == 200
    client.view("explore", until='data-marks="')
    number = next(run["number"] for run in client.state()["running"] if run["task"] == "explore")
    assert client.act("explore", "stop", number=number)[0] == 200
    page = client.view("explore", until="What was found stays", seconds=30)
    assert 'data-name="' in page
    assert "Go on" in page
    known = set(re.findall(r'data-name="([^"]+)"', page))
    assert client.act("explore", "compare")[0] == 200
    page = client.view("explore", until="Points appear as they are found")
    while not known <= set(re.findall(r'data-name="([^"]+)"', page)):
        page = client.view("explore", until='data-name="')
