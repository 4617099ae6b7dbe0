"""What a reader sees: pages in a browser, as wide as a desk and as narrow as a telephone."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import html5lib
import pytest

import jali

pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.slow, pytest.mark.browser]

WIDTHS = (1280, 390, 1920)
KINDS = (
    "private", "public", "partition", "recoded", "distributions", "buckets", "angel", "marginals", "concealed", "bad",
    "two", "profile", "frontier",
)  # fmt: skip
CUT_OFF = """
const bad = [];
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  for (const [text, box] of boxes)
    if (Math.min(box.left - frame.left, frame.right - box.right, box.top - frame.top, frame.bottom - box.bottom) < -2)
      bad.push('cut off: ' + text);
  for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
    const [a, p] = boxes[i], [b, q] = boxes[j];
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 2 && high > Math.min(p.height, q.height) * 0.5) bad.push('overlap: ' + a + ' | ' + b);
  }
}
return bad;
"""
SMALLEST = """
return Math.min(99, ...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height));
"""
HEADINGS = """
[...document.querySelectorAll('h2, h3, caption, figcaption, thead tr')].map(e => e.textContent.replace(/\\s+/g, ''))
"""
ENDS = """
[...document.querySelectorAll('table, ul')].map(e => e.querySelectorAll('tbody tr, li'))
  .filter(rows => rows.length > 1).map(rows => rows[rows.length - 1].textContent.replace(/\\s+/g, ''))
"""
OUTSIDE = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll('h1, h2, h3, p, li, figcaption, caption span, dt, dd, svg')]
  .filter(e => { const b = e.getBoundingClientRect(); return b.width && (b.right > width + 1 || b.left < -1); })
  .map(e => e.textContent.slice(0, 60));
"""
AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(
  r => done(r.violations.map(v => v.id + ': ' + v.nodes[0].html.slice(0, 200))));
"""
COLOURS = """
const pictures = [...document.querySelectorAll('figure svg')];
const fill = e => getComputedStyle(e).fill;
const papers = pictures.map(s => s.querySelector('g path')).filter(p => p).map(fill);
return {pictures: pictures.length, paper: [...new Set(papers)],
        ink: [...new Set(pictures.flatMap(s => [...s.querySelectorAll('text')].map(fill)))]};
"""
SEARCHED = """
const tables = document.querySelectorAll('table.long'), table = tables[0], body = table.tBodies[0];
const field = table.parentElement.previousElementSibling.querySelector('input');
const rows = body.rows.length, type = text => { field.value = text; field.dispatchEvent(new Event('input')); };
type('loss');
const shown = [...body.rows].filter(r => !r.hidden).length;
type('');
const button = table.tHead.querySelectorAll('button')[3], texts = () => [...body.rows].map(r => r.cells[3].textContent);
button.click();
const up = texts();
button.click();
return {tables: tables.length, rows, shown, after: body.rows.length, up, down: texts()};
"""


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports on the census in both editions, on a partition with long names, and on the other kinds of release."""
    folder = tmp_path_factory.mktemp("pages")
    table = jali.datasets.census(rows=3000, seed=0)
    release = jali.generalize(table, [jali.KAnonymity(10), jali.EntropyDiversity(3)], suppress=0.05)
    parted = jali.partition(table, [jali.KAnonymity(5)])
    buckets = jali.anatomize(table, [jali.FrequencyDiversity(3)])
    made = {
        "private": jali.report(release, table),
        "public": jali.report(release),
        "partition": jali.report(
            parted, table, title="A very long title " * 6 + "Donaudampfschifffahrtsgesellschaft" * 3
        ),
        "buckets": jali.report(buckets, table),
        "angel": jali.report(jali.angelize(table, [jali.FrequencyDiversity(3)], k=5), table),
        "marginals": jali.report(marginals_of(few := people(900)), few),
        "concealed": jali.report(jali.conceal(few, people(3000, public=True), low=0.05, high=0.7), few),
        "bad": jali.report(*bad()),
        "two": jali.report(
            [jali.generalize(few, [jali.KAnonymity(11)]), jali.partition(few, [jali.KAnonymity(5)])], few
        ),
        "recoded": jali.report(jali.recode(few, [jali.KAnonymity(5)]), few),
        "distributions": jali.report(jali.partition(few, [jali.KAnonymity(5)], show="pdf"), few),
        "profile": jali.profile(few),
        "frontier": jali.frontier(
            few, [jali.KAnonymity(5), jali.EntropyDiversity(2)], strengths=[11], methods=["lattice", "partition"]
        ),
    }
    return {name: page.save(folder / f"{name}.html") for name, page in made.items()}


def people(rows: int, *, public: bool = False) -> Any:
    """Some people of the census with few columns; everybody's are public but for the occupation."""
    quasi = {"age": jali.bands(5, 10, 20, low=0, high=119), "sex": jali.suppress(), "education": jali.suppress()}
    frame = jali.datasets.census(rows=3000, seed=0).frame("pandas").iloc[:rows]
    sensitive = [] if public else ["occupation"]
    return jali.table(frame[[*quasi, *sensitive]], quasi=quasi, sensitive=sensitive)


def marginals_of(table: Any) -> Any:
    """Marginals of them."""
    return jali.marginals(table, [jali.KAnonymity(6), jali.EntropyDiversity(3)])


def bad() -> tuple[Any, Any]:
    """A release that nobody should publish, with names in it and groups of one value, and its table."""
    frame = jali.datasets.census(rows=600, seed=0).frame("pandas")[["age", "sex", "occupation"]]
    frame = frame.assign(**{"patient name": [f"Person {i}" for i in range(600)]})
    frame.loc[frame["age"] > 50, "occupation"] = "Sales"
    quasi = {"age": jali.bands(5, 10, low=0, high=119), "sex": jali.suppress()}
    table = jali.table(frame, quasi=quasi, sensitive=["occupation"], other=["patient name"],
                       allow={"patient name": "wanted"})  # fmt: skip
    return jali.generalize(table, [jali.KAnonymity(2)]), table


def open_at(browser: Any, path: Path, width: int, scheme: str = "light") -> None:
    """Show a page in a window of this width, light or dark, its logs emptied before."""
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())


def asked_for(browser: Any) -> list[str]:
    """What the page asked for, from the browser's log."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def shoot(browser: Any, path: Path, width: int) -> None:
    """A picture of the whole page."""
    height = browser.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path.write_bytes(base64.b64decode(shot["data"]))


@pytest.mark.parametrize("name", KINDS)
def test_a_page_is_valid_html(pages: dict[str, Path], name: str) -> None:
    """As a strict parser of the standard reads it."""
    html5lib.HTMLParser(strict=True).parse(pages[name].read_text(encoding="utf-8"))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", KINDS)
def test_a_page_fits_and_asks_for_nothing(
    browser: Any, pages: dict[str, Path], screenshots: Path, name: str, width: int
) -> None:
    """No error in the console, no request but for itself, nothing beyond the margin, no label cut off or on another."""
    path = pages[name]
    for scheme in ("dark", "light"):
        open_at(browser, path, width, scheme)
        assert asked_for(browser) == [path.as_uri()]
        assert browser.get_log("browser") == []
        shoot(browser, screenshots / f"{name}-{width}-{scheme}.png", width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE) == []
    assert browser.execute_script(CUT_OFF) == []
    assert browser.execute_script(SMALLEST) >= 8  # pixels from the top of a letter to the foot of its line


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_axe_finds_nothing(browser: Any, axe: str, pages: dict[str, Path], name: str, scheme: str) -> None:
    """No violation of what axe-core checks, on a desk and on a telephone."""
    browser.set_script_timeout(120)
    for width in (1280, 390):
        open_at(browser, pages[name], width, scheme)
        browser.execute_script(axe)
        assert browser.execute_async_script(AXE) == []


def test_a_dark_page_has_dark_pictures(browser: Any, pages: dict[str, Path]) -> None:
    """The paper of every picture is that of the page, and its letters are light."""
    open_at(browser, pages["public"], 1280, "dark")
    seen = browser.execute_script(COLOURS)
    assert seen["pictures"] > 2
    assert seen["paper"] == ["rgb(20, 24, 29)"]
    assert all(int(part) > 150 for colour in seen["ink"] for part in colour[4:-1].split(","))


def test_long_tables_can_be_searched_and_sorted_and_are_whole_without_a_script(
    browser: Any, pages: dict[str, Path]
) -> None:
    """Typing hides rows that lack the text; a click sorts, another turns it round; no row is lost."""
    open_at(browser, pages["two"], 1280)
    found = browser.execute_script(SEARCHED)
    assert found["tables"] > 0
    assert 0 < found["shown"] < found["rows"] == found["after"]
    up, down = ([text for text in found[way] if text != "–"] for way in ("up", "down"))
    assert up == sorted(up)
    assert down == sorted(up, reverse=True)
    assert "<tbody" in pages["two"].read_text(encoding="utf-8")


@pytest.mark.parametrize("name", KINDS)
def test_no_printed_sheet_ends_with_a_heading_or_begins_with_the_last_row(
    browser: Any, pages: dict[str, Path], screenshots: Path, pdftotext: str, name: str
) -> None:
    """Printed it is a PDF of some sheets; no heading is left behind at the foot of one, no last row or point alone."""
    open_at(browser, pages[name], 1280)
    headings, ends = (set(browser.execute_script(f"return {script.strip()}")) for script in (HEADINGS, ENDS))
    a4 = {"printBackground": True, "paperWidth": 8.27, "paperHeight": 11.69}
    path = screenshots / f"{name}.pdf"
    path.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", a4)["data"]))
    text = subprocess.run([pdftotext, "-layout", str(path), "-"], check=True, capture_output=True, text=True).stdout
    sheets = [[squeezed(line) for line in sheet.splitlines() if line.strip()] for sheet in text.split("\f")]
    sheets = [lines for lines in sheets if lines]
    assert 0 < len(sheets) < 40
    assert [lines[-1] for lines in sheets[:-1] if lines[-1] in headings] == []
    assert [lines[0] for lines in sheets[1:] if lines[0] in ends] == []


def squeezed(text: str) -> str:
    """A line without blanks, since a PDF has none of its own."""
    return "".join(text.split())


def test_the_checks_fire(browser: Any, tmp_path: Path) -> None:
    """A page that asks, complains, is too wide, and has labels cut off and on each other is found out."""
    path = tmp_path / "bad.html"
    path.write_text(
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>bad</title><body><p style="width:2000px">wide</p>'
        '<svg viewBox="0 0 100 50" style="width:300px"><text x="90" y="20">cut off here</text>'
        '<text x="2" y="40">one</text><text x="3" y="41">two</text></svg>'
        '<img src="missing.png" alt=""><script>console.error("oh")</script></body></html>',
        encoding="utf-8",
    )
    open_at(browser, path, 390)
    assert any(url.endswith("missing.png") for url in asked_for(browser))
    assert browser.get_log("browser")
    assert browser.execute_script("return document.documentElement.scrollWidth") > 390
    assert "wide" in browser.execute_script(OUTSIDE)
    found = browser.execute_script(CUT_OFF)
    assert "cut off: cut off here" in found
    assert "overlap: two | one" in found


def test_the_pictures_fit(browser: Any, screenshots: Path, tmp_path: Path) -> None:
    """Lattices, trees, boxes and a junction tree: no label cut off or on another."""
    table = jali.datasets.census(rows=3000, seed=0)
    few = [c.name for c in table.quasi][:4]
    frame = table.frame("pandas")
    quasi: dict[str, Any] = {name: jali.suppress() for name in few[1:]} | {"age": jali.bands(5, 10, 20)}
    small = jali.table(frame[[*few, "occupation"]], quasi=quasi, sensitive=["occupation"])
    parted = jali.partition(table, [jali.KAnonymity(50)])
    drawn = [
        jali.picture(jali.minimal(small, [jali.KAnonymity(10)]), chosen=jali.generalize(small, [jali.KAnonymity(10)])),
        jali.picture(jali.minimal(table, [jali.KAnonymity(10)])),
        *(jali.picture(column.hierarchy) for column in table.quasi if column.hierarchy is not None),
        jali.picture(parted, columns=["age", "education"]),
        jali.picture(marginals_of(table)),
    ]
    path = tmp_path / "pictures.html"
    body = "".join(f"<h2>{i}</h2>{picture.svg(f'p{i}')}" for i, picture in enumerate(drawn))
    path.write_text(
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>x</title><body>{body}</body></html>', "utf-8"
    )
    open_at(browser, path, 1280)
    shoot(browser, screenshots / "pictures-1280.png", 1280)
    assert browser.execute_script(CUT_OFF) == []
    assert browser.get_log("browser") == []
