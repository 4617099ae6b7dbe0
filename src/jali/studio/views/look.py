"""One point of a comparison seen closely, and two of them side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from jali.core.charts import clipped
from jali.core.text import Html, element, escaped, html_table, joined, listed, percent, sentence
from jali.errors import InfeasibleError, InputError, JaliError
from jali.job import METHODS as OF_JOBS
from jali.studio.state import read_by
from jali.studio.views.view import button, choice, glance, waiting

if TYPE_CHECKING:
    from jali.encoding.table import Table
    from jali.releases.base import Release
    from jali.reports.material import Material
    from jali.studio.session import Run, Session
    from jali.studio.state import Document
    from jali.studio.worker import Desk, Lane, Task

METHODS = tuple(name for name in OF_JOBS if name != "conceal")
"""The methods that are compared, as a job calls them."""
PAGE = 15
"""Rows of a page."""
NODES = 40
"""Minimal nodes that are listed; the others are in the picture."""
TITLES = {
    "losses": "What each column lost", "lattice": "The lattice", "groups": "", "boxes": "Boxes", "disclosure": "",
    "worst": "", "columns": "",
}  # fmt: skip
"""The parts of a look in their order; those of the report have titles of their own."""


# -- the job of a point ---------------------------------------------------------------------------------------------


def taken(session: Session, point: Mapping[str, Any]) -> Document:
    """The job with the method and the promises of a point."""
    run = latest(session)
    base = {} if run is None else json.loads(run.key)[1]["document"]
    job = {key: value for key, value in session.job.items() if key not in (*METHODS, "private", "conceal")}
    job |= {name: base[name] for name in METHODS if name in base}
    call = deepcopy(point["call"])
    job |= {"method": call["method"], "principles": call["principles"]}
    return job | {call["method"]: call["options"]} if call["options"] else job


def latest(session: Session) -> Run | None:
    """The last comparison of the table as it is read now, whatever the job has taken since."""
    wanted = read_by(session.job)
    for run in reversed(session.runs.values()):
        if run.task == "explore" and read_by(json.loads(run.key)[1]["document"]) == wanted:
            return run
    return None


def document_of(session: Session, point: Mapping[str, Any]) -> Document:
    """The job that would make a point, without what does not bear on it."""
    return {key: value for key, value in taken(session, point).items() if key not in ("output", "policy", "frontier")}


def in_job(session: Session, point: Mapping[str, Any]) -> bool:
    """Whether the job asks for a point."""
    return taken(session, point) == {"method": METHODS[0], **session.job}


# -- tasks -----------------------------------------------------------------------------------------------------------


def look(desk: Desk, document: Document) -> dict[str, Any]:
    """Make the release of a point and show it part by part, with the sections and pictures of the report."""
    from jali.reports import privacy, published
    from jali.reports.material import Material

    desk.job(document)
    desk.say("Making the release")
    table, release = desk.table(document), desk.release(document)
    material = Material(release, table)
    found: dict[str, Any] = {"kind": release.kind, "figures": _figures(material), "over": False}
    desk.part(dict(found))
    makers: dict[str, Callable[[], Html]] = {
        "losses": lambda: _losses(material), "lattice": lambda: _lattice(desk, table, release),
        "groups": lambda: privacy.groups(material).html(), "boxes": lambda: _boxes(release),
        "disclosure": lambda: privacy.disclosure(material).html(),
        "worst": lambda: privacy.worst_groups(material).html(), "columns": lambda: published.columns(material).html(),
    }  # fmt: skip
    desk.say("Looking at the release")
    for at, (name, make) in enumerate(makers.items()):
        desk.step(at, len(makers))
        with desk.drawing:
            found[name] = make()
        desk.part(dict(found))
    return found | {"over": True}


def _figures(m: Material) -> dict[str, str]:
    """The figures that two points are compared by."""
    from jali.reports.material import Missing

    counts = m.manifest["counts"]
    told = {"Rows": f"{counts['rows']:,}"}
    if counts.get("groups"):
        told[m.release.words.shown] = f"{counts['groups']:,}"
    if counts.get("suppressed"):
        told["Suppressed rows"] = f"{counts['suppressed']:,}"
    if not isinstance(m.measures, Missing):
        told["KL (nats)"] = f"{m.measures.kl:.4f}"
        told |= {} if m.measures.average is None else {"Rows in a group": f"{m.measures.average:,.1f}"}
        told |= {} if m.measures.loss is None else {"Loss": percent(m.measures.loss)}
    if not isinstance(m.audit, Missing) and m.audit.highest_risk is not None:
        told["Highest risk"] = percent(m.audit.highest_risk)
    return told


def _losses(m: Material) -> Html:
    """Of each quasi-identifier the mean share of its values that a cell covers, as bars."""
    from jali.reports.material import Missing

    if isinstance(m.measures, Missing) or not m.measures.columns:
        return Html("")
    said = "The share of a column's other values that a published cell covers on average: 0 % as it was, 100 % for *."
    rows = [
        (name, element("meter", f"{share:.3f}", min="0", max="1", value=f"{share:.4f}", aria_label=f"loss of {name}"),
         percent(share))
        for name, share in m.measures.columns.items()
    ]  # fmt: skip
    table = html_table(("Column", "From 0 to 1", "Lost"), rows, caption="Columns", numbers=(2,), named=True)
    return joined([element("p", said), table])


def _boxes(release: Release) -> Html:
    import jali

    try:
        made = jali.picture(release)
    except InputError:
        return Html("")
    return element("figure", element("figcaption", made.title), made.svg("boxes"))


def _lattice(desk: Desk, table: Table, release: Release) -> Html:
    """The lattice with its satisfied and minimal nodes, each of which can be taken; nothing without levels."""
    import jali

    if not release.levels:
        return Html("")
    try:
        nodes = jali.minimal(table, release.principles, on_step=desk.step)
    except (InputError, InfeasibleError) as problem:
        return element("p", sentence(str(problem)), class_="quiet")
    names = list(nodes.top)
    made = jali.picture(nodes, chosen={name: release.levels[name] for name in names})
    drawn = element("figure", element("figcaption", made.title), made.svg("lattice"))
    picture = element("div", drawn, class_="marks", data_node=json.dumps(names, ensure_ascii=False))
    order = sorted(nodes, key=lambda node: (node.kl, list(node.levels.values())))[:NODES]
    rows = [
        (*node.levels.values(), f"{node.groups:,}", f"{node.smallest:,}", f"{node.kl:.4f}", percent(node.loss),
         _taker({name: int(level) for name, level in node.levels.items()}, dict(release.levels)))
        for node in order
    ]  # fmt: skip
    more = f", the {NODES} of lowest KL" if len(nodes) > len(order) else ""
    table_ = html_table(
        (*names, "Groups", "Smallest", "KL", "Loss", "Job"), rows, numbers=range(len(names) + 4),
        caption=f"{len(nodes):,} minimal nodes{more}: the level of each column, and what it costs",
    )  # fmt: skip
    how = "A node is a level for each column. Click one that keeps the promise, or choose it with the arrow keys and " \
        "Enter, and the job publishes it."  # fmt: skip
    return joined([element("p", how), picture, table_])


def _taker(levels: Mapping[str, int], chosen: Mapping[str, int]) -> Html:
    told = ", ".join(f"{name} {level}" for name, level in levels.items())
    unseen = element("span", f" the node {told}", class_="unseen")
    mark = element("b", "★ ", class_="badge") if levels == chosen else Html("")
    return element("span", mark, element("button", "Take", unseen, type="button", class_="button plain",
                                         data_levels=json.dumps(levels, ensure_ascii=False)))  # fmt: skip


def beside(desk: Desk, document: Document, start: int) -> dict[str, Any]:
    """A page of rows before and after: row by row where the release knows where each went, else each in its order."""
    table, release = desk.table(document), desk.release(document)
    start = min(max(start, 0), max(table.records - 1, 0) // PAGE * PAGE)
    some = slice(start, start + PAGE)
    roles = ("quasi", "sensitive", "other")
    columns = [column for role in roles for column in table.of_role(role)]  # type: ignore[arg-type]
    before = [column.labels.take(column.codes[some]).to_pylist() for column in columns]
    told: dict[str, Any] = {"start": start, "records": table.records, "columns": [c.name for c in columns],
                            "before": _cells(before)}  # fmt: skip
    rows = release.grouped_rows
    group = None if rows is None else rows.group_of_records(table)
    if rows is None or group is None:
        return told | {"tables": [_first(name, made, start) for name, made in release.tables.items()]}
    shown = rows.groups.take(group[some])
    quasi = set(shown.column_names[:-1])
    after = [
        shown[c.name].to_pylist() if c.name in quasi else values for c, values in zip(columns, before, strict=True)
    ]
    return told | {"after": _cells(after)}


def _first(name: str, made: Any, start: int) -> dict[str, Any]:
    start = min(start, max(made.num_rows - 1, 0) // PAGE * PAGE)
    part = made.slice(start, PAGE)
    values = [part[column].to_pylist() for column in part.column_names]
    return {"name": name, "columns": part.column_names, "rows": _cells(values), "of": made.num_rows}


def _cells(columns: Sequence[Sequence[object]]) -> list[list[str]]:
    return [[clipped(value, 40) for value in row] for row in zip(*columns, strict=True)]


TASKS: dict[str, tuple[Lane, Task]] = {"look": ("look", look), "beside": ("quick", beside)}


# -- the page --------------------------------------------------------------------------------------------------------


def promise(given: Mapping[str, Any]) -> str:
    """A promise of a job in words; by its name where it cannot be made."""
    from jali.principles.base import from_dict

    try:
        made = from_dict(dict(given))
        return f"{made.promise()} ({made.title})"
    except JaliError:
        pass
    own = ", ".join(f"{key} = {value}" for key, value in given.items() if key not in ("name", "sensitive"))
    about = f" of {given['sensitive']}" if "sensitive" in given else ""
    return f"{given['name']} ({own}){about}" if own else f"{given['name']}{about}"


def render(session: Session, point: Mapping[str, Any], result: Mapping[str, Any], query: Mapping[str, str]) -> Html:
    """A point, or two of them."""
    other = next((one for one in result["points"] if one["name"] == query.get("with") and "call" in one), None)
    if other is not None and other["name"] != point["name"]:
        return _two(session, point, other)
    run = _run(session, point)
    parts: list[object] = [_head(session, point), _choose(point, result)]
    if run.result is None:
        return joined([*parts, waiting(run, "Making the release of this point …")])
    found = run.result
    parts += [glance(_glance(point, found)), _rows(session, point, query)]
    for name, title in TITLES.items():
        if found.get(name):
            own = [element("h2", title)] if title else []
            parts.append(element("div", *own, Html(found[name]), class_="report", id=f"part-{name}"))
    if not found["over"]:
        parts.append(element("p", "More follows …", class_="quiet", aria_busy="true"))
    return element("div", joined(parts), data_point=point["name"])


def _run(session: Session, point: Mapping[str, Any]) -> Run:
    return session.want("look", document=document_of(session, point))


def _head(session: Session, point: Mapping[str, Any]) -> Html:
    """What the point is, what it keeps, and taking it."""
    back = element("p", element("a", "← All points", href="#explore", id="back"))
    badge = [element("b", " ★ recommended", class_="badge")] if point["recommended"] else []
    title = element("h1", point["label"], *badge)
    kept = [element("p", f"It publishes {point['about']}.", class_="lead")]
    own = [f"{principle}: {sense}" for principle, met, sense in point["sense"] if met != "yes"]
    if own:
        kept.append(element("p", "In a sense of its own. ", sentence("; ".join(own)), class_="flag soft"))
    return element("header", back, title, *kept, _take(session, point), class_="view")


def _take(session: Session, point: Mapping[str, Any]) -> Html:
    if in_job(session, point):
        go = element("a", "Decide and publish", href="#decide")
        return element(
            "p", element("b", "✓ This is what the job asks for."), " Go on with ", go, ".", class_="flag calm"
        )
    lost = [f" It gives up {listed(point['lost'])}."] if point["lost"] else []
    taking = button("Take this", "take", kind="first", id_=f"take-{_id(point)}", point=point["name"])
    return element("p", taking, *(element("span", text, class_="quiet") for text in lost))


def _id(point: Mapping[str, Any]) -> str:
    return re.sub(r"\W+", "-", point["name"])


def _choose(point: Mapping[str, Any], result: Mapping[str, Any]) -> Html:
    """Another point to compare with."""
    options = {"": "choose a point"} | {
        one["name"]: one["label"] for one in result["points"] if "call" in one and one["name"] != point["name"]
    }
    return choice("Compare with", "", options, "", id_="with")


def _glance(point: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, str]:
    return {**found["figures"], "Query error": point["error"]}


def _rows(session: Session, point: Mapping[str, Any], query: Mapping[str, str]) -> Html:
    """A page of rows, before and after."""
    start = int(query["start"]) if query.get("start", "").isdigit() else 0
    run = session.want("beside", document=document_of(session, point), start=min(start, 1 << 40))
    title = element("h2", "Rows before and after")
    if run.result is None:
        return element("section", title, waiting(run, "Reading rows …"), id="beside")
    found = run.result
    first, last = found["start"] + 1, found["start"] + len(found["before"])
    caption = f"Rows {first:,} to {last:,} of {found['records']:,}"
    at = f"#explore?point={point['name']}&start="
    links = (
        [element("a", "← Earlier rows", href=f"{at}{found['start'] - PAGE}", id="earlier")] if found["start"] else []
    )
    if last < found["records"]:
        links.append(element("a", "Later rows →", href=f"{at}{found['start'] + PAGE}", id="later"))
    shown = _aligned(found, caption) if "after" in found else _apart(found, caption)
    return element("section", title, shown, element("p", *links, class_="pages"), id="beside")


def _aligned(found: Mapping[str, Any], caption: str) -> Html:
    """One table whose left half is the original and whose right half is what is published; changed cells stand out."""
    names = found["columns"]
    halves = element("tr", element("td", ""), *(
        element("th", title, colspan=len(names), scope="colgroup", class_=side)
        for title, side in (("Before", None), ("After", "after"))))  # fmt: skip
    columns = element("tr", element("th", "Row", scope="col", class_="n"), *(
        element("th", name, scope="col", class_="after" if at == len(names) else None)
        for at, name in enumerate([*names, *names])))  # fmt: skip
    lines = []
    for at, (before, after) in enumerate(zip(found["before"], found["after"], strict=True), found["start"] + 1):
        old = [element("td", text) for text in before]
        new = [
            element("td", text, class_=" ".join(filter(None, ("after" if i == 0 else "", "new" if text != was else "")))
                    or None)
            for i, (was, text) in enumerate(zip(before, after, strict=True))
        ]  # fmt: skip
        lines.append(element("tr", element("th", f"{at:,}", scope="row", class_="n"), *old, *new))
    table = element("table", element("caption", element("span", caption)), element("thead", halves, columns),
                    element("tbody", joined(lines)), class_="beside")  # fmt: skip
    return element("div", table, class_="wide", tabindex="0", role="region", aria_label=caption)


def _apart(found: Mapping[str, Any], caption: str) -> Html:
    """The original beside what is published in an order of its own."""
    said = "This release publishes no rows that could be found again: its tables stand in an order of their own."
    tables = [html_table(found["columns"], found["before"], caption=f"Before: {caption[0].lower()}{caption[1:]}")]
    tables += [
        html_table(one["columns"], one["rows"], caption=f"After: table “{one['name']}”, {one['of']:,} rows")
        for one in found["tables"]
    ]
    return joined([element("p", said), element("div", *tables, class_="pair")])


def _two(session: Session, one: Mapping[str, Any], other: Mapping[str, Any]) -> Html:
    """Two points side by side: figures in one table, then the same parts of both."""
    back = element("p", element("a", f"← {one['label']}", href=f"#explore?point={one['name']}", id="back"))
    title = element("header", back, element("h1", "Two points"), class_="view")
    both = [(point, _run(session, point)) for point in (one, other)]
    heads = [
        element("div", element("h2", point["label"]), element("p", f"It publishes {point['about']}.", class_="lead"),
                _take(session, point))
        for point, _ in both
    ]  # fmt: skip
    parts: list[object] = [title, element("div", *heads, class_="two")]
    if any(run.result is None for _, run in both):
        waits = [waiting(run, "Making its release …") if run.result is None else Html("") for _, run in both]
        return joined([*parts, element("div", *(element("div", one) for one in waits), class_="two")])
    figures = [_glance(point, run.result) | {"Keeps": point["meets"]} for point, run in both]
    names = list(dict.fromkeys([*figures[0], *figures[1]]))
    rows = [(name, *(own.get(name, "–") for own in figures)) for name in names]
    header = ("Figure", one["label"], other["label"])
    parts.append(html_table(header, rows, caption="What differs", numbers=(1, 2), named=True))
    for name in ("losses", "groups", "disclosure", "boxes", "worst"):
        cells = [
            _named_apart(run.result.get(name, ""), f"p{at}-", point["label"]) for at, (point, run) in enumerate(both)
        ]
        if any(cells):
            none = {True: "Not defined for this release.", False: "In a moment …"}
            made = [
                element("div", cell or element("p", none[run.result["over"]], class_="none"))
                for cell, (_, run) in zip(cells, both, strict=True)
            ]
            own = [element("h2", TITLES[name])] if TITLES[name] else []
            parts.append(joined([*own, element("div", *made, class_="two report")]))
    return joined(parts)


_IDS = re.compile(r'(\bid="|href="#|="url\(#|aria-labelledby=")([^"]*)')


_REGION = 'role="region" aria-label="'


def _named_apart(html: str, prefix: str, of: str) -> Html:
    """The same HTML with other ids and names, so that it can stand twice on a page; within texts quotes are escaped."""
    made = _IDS.sub(lambda found: found[1] + " ".join(prefix + name for name in found[2].split()), html)
    return Html(made.replace(_REGION, f"{_REGION}{escaped(of)}: "))
