"""The view in which one asks: counts from the release and from the original, and people drawn from the release."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jali.core.charts import clipped
from jali.core.text import Html, element, html_table, joined, percent, sentence
from jali.errors import InputError, UndeterminedError
from jali.studio.state import Document
from jali.studio.views.view import View, button, head, page_part, waiting

if TYPE_CHECKING:
    from jali.encoding.table import Column, Table
    from jali.studio.session import Run, Session
    from jali.studio.worker import Desk

DRAWN = 10
"""Invented people that are shown."""
LONGEST = 2000
"""Letters of a question."""


def asked(job: Mapping[str, Any]) -> Document:
    """What answers depend on in a job."""
    return {key: value for key, value in job.items() if key not in ("output", "policy", "frontier")}


# -- tasks -----------------------------------------------------------------------------------------------------------


def prepare(desk: Desk, document: Document) -> dict[str, Any]:
    """Make the release that questions are put to; which columns can be asked for, and a few questions."""
    from jali.query.tree import to_text

    desk.say("Making the release")
    table, release = desk.table(document), desk.release(document)
    desk.say("Preparing the estimate")
    desk.kept("estimate", document, release.estimate)
    columns = [c for c in (*table.quasi, *table.sensitive) if c.values.null_count < len(c.values)]
    tests = {c.name: _test(table, c) for c in columns}
    told = [{"name": c.name, "kind": c.kind, "example": clipped(to_text(tests[c.name]), 60)} for c in columns]
    ordered = sorted(columns, key=lambda c: (c.role != "quasi", c.kind not in ("number", "date")))
    return {"columns": told, "examples": _examples([tests[c.name] for c in ordered])}


def _common(table: Table, column: Column) -> Any:
    """A value that many have."""
    import numpy as np

    from jali.core.arrays import counted

    rows = counted(column.codes, table.multiplicity, len(column.values))
    rows = np.where(column.values.is_null().to_numpy(zero_copy_only=False), 0, rows)
    ordered = column.kind in ("number", "date")
    place = int(np.searchsorted(np.cumsum(rows), rows.sum() / 2)) if ordered else int(rows.argmax())
    return column.values[place].as_py()


def _test(table: Table, column: Column) -> Any:
    from jali.query.tree import Test

    return Test(column.name, ">=" if column.kind in ("number", "date") else "=", _common(table, column))


def _examples(tests: Sequence[Any]) -> list[str]:
    """Questions that somebody might ask: about one column, about two, about three."""
    from jali.query.tree import And, to_text

    few = [*tests[:1], *reversed(tests[1:])][:3]
    return [to_text(And(tuple(few[:size])) if size > 1 else few[0]) for size in range(1, len(few) + 1)]


def ask(desk: Desk, document: Document, condition: str) -> dict[str, Any]:
    """A count from the release, with its bounds, and the true one."""
    from jali.measures.queries import true_count

    table, release = desk.table(document), desk.release(document)
    estimate = desk.kept("estimate", document, release.estimate)
    told: dict[str, Any] = {"rows": float(table.rows) if table.weight is None else float(true_count(table, "TRUE"))}
    try:
        found = estimate.count(condition)
        told |= {"estimate": float(found), "low": found.low, "high": found.high, "assumes": list(found.assumes)}
    except UndeterminedError as problem:
        told |= {"estimate": None, "low": problem.low, "high": problem.high, "assumes": [problem.what]}
    return told | {"truth": true_count(table, condition)}


def sample(desk: Desk, document: Document, seed: int) -> dict[str, Any]:
    """Invented people, drawn from what the release shows."""
    release = desk.release(document)
    drawn = desk.kept("estimate", document, release.estimate).sample(DRAWN, seed=seed)
    columns = [drawn[name].to_pylist() for name in drawn.column_names]
    return {
        "columns": drawn.column_names,
        "rows": [[clipped(v, 40) for v in row] for row in zip(*columns, strict=True)],
    }


# -- actions ---------------------------------------------------------------------------------------------------------


def put(session: Session, *, condition: str) -> None:
    """Ask a question; it joins the history of questions."""
    if not condition.strip():
        raise InputError("the question is empty", do="write a condition, as in age > 30, or TRUE for everybody")
    if len(condition) > LONGEST:
        raise InputError(f"the question has more than {LONGEST:,} letters", do="ask a shorter one")
    session.again("ask", document=asked(session.job), condition=condition.strip())


def draw(session: Session, *, seed: int) -> None:
    """Draw other people."""
    session.want("sample", document=asked(session.job), seed=abs(seed) % (1 << 31))


# -- the page --------------------------------------------------------------------------------------------------------


def render(session: Session, query: Mapping[str, str]) -> Html:
    """The question, its answers, those before, and people drawn from the release."""
    lead = "Count people as an analyst of the release would, and see the truth beside it, which only you know."
    parts: list[object] = [head("Ask", lead)]
    if not session.job:
        return joined([*parts, waiting(session.want("profile", person=None), "Reading the table …")])
    problem = session.opened.problem()
    if problem:
        back = element("p", element("a", "Go to Data", href="#data"))
        return joined([*parts, element("div", element("p", sentence(problem)), back, class_="problem", role="alert")])
    document = asked(session.job)
    run = session.find("prepare", document=document) or session.want("prepare", document=document)
    if run.result is None:
        return joined([*parts, waiting(run, "Making the release that the job asks for …")])
    runs = [one for one in reversed(session.runs.values()) if one.task == "ask"]
    own = [one for one in runs if json.loads(one.key)[1]["document"] == document]
    parts += [_form(run.result, own), *([_answer(own[0])] if own else []), _history(own[1:]), _drawn(session, document)]
    return page_part(joined(parts))


def question(run: Run) -> str:
    """What a run was asked."""
    return str(json.loads(run.key)[1]["condition"])


def _form(found: Mapping[str, Any], runs: list[Run]) -> Html:
    """The field, questions to begin with, and what can be asked for."""
    last = question(runs[0]) if runs else ""
    field = element("input", type="text", name="condition", id="condition", value=last, autocomplete="off",
                    spellcheck="false", aria_describedby="condition-hint", maxlength=str(LONGEST))  # fmt: skip
    hint = element("span", "Conditions as in SQL: AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL. TRUE counts everybody.",
                   class_="hint", id="condition-hint")  # fmt: skip
    send = element("button", "Count", type="submit", class_="button first", id="count")
    entry = element("label", element("span", "How many rows satisfy", class_="label"), field, hint, class_="entry")
    form = element("form", entry, send, class_="question", data_act="ask", data_args="{}")
    tries = [button(text, "ask", kind="chip", condition=text) for text in found["examples"]]
    rows = [(c["name"], c["kind"], element("code", c["example"])) for c in found["columns"]]
    columns = element("details", element("summary", "What can be asked for"),
                      html_table(("Column", "Kind", "Such as"), rows, caption="Columns", named=True),
                      id="askable")  # fmt: skip
    return joined([form, element("p", "For example: ", *tries, class_="chips"), columns])


_PLACE = re.compile(r"at position (\d+)")


def _wrong(run: Run) -> Html:
    """What is wrong with a question, with a sign under the place."""
    text, found = question(run), _PLACE.search(run.said)
    shown = [text]
    if found is not None:
        at = min(int(found[1]), len(text) + 1) - 1
        shown = [text[:at], element("mark", text[at : at + 1] or " "), text[at + 1 :]]
    return element("div", element("p", element("code", *shown, class_="wrong")), element("p", sentence(run.said)),
                   class_="problem", role="alert")  # fmt: skip


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2f}"


def _off(found: Mapping[str, Any]) -> str:
    if found["estimate"] is None or (not found["truth"] and found["estimate"]):
        return "–"
    return percent(abs(found["estimate"] - found["truth"]) / found["truth"]) if found["truth"] else "0 %"


def _answer(run: Run) -> Html:
    """The last question: estimate, bounds and truth beside each other, as figures and as a picture."""
    if run.status == "failed":
        return _wrong(run)
    if run.result is None:
        return element("section", waiting(run, "Counting …"), id="answer")
    found = run.result
    bounds = f"{_number(found['low'])} to {_number(found['high'])}"
    if found["low"] == found["high"]:
        bounds = "exact"
    figures = {"Estimate": _number(found["estimate"]), "Bounds": bounds, "Truth": _number(found["truth"]),
               "Off by": _off(found)}  # fmt: skip
    cards = [
        element("div", element("dt", name), element("dd", value), class_=name.lower().replace(" ", "-"))
        for name, value in figures.items()
    ]
    said = "The truth is for you alone. An analyst sees the estimate, and that the count lies within the bounds."
    rests = [element("p", "The estimate rests on this: ", sentence("; ".join(found["assumes"])), class_="hint")]
    top = element("h2", element("code", question(run)))
    parts = [top, element("dl", *cards, class_="glance answer"), _scale(found), element("p", said, class_="quiet")]
    return element("section", *parts, *(rests if found["assumes"] else []), id="answer", aria_live="polite")


def _scale(found: Mapping[str, Any]) -> Html:
    """All rows as a line, the bounds as a bar on it, estimate and truth as signs."""
    whole = max(found["rows"], found["high"], found["truth"], 1.0)

    def at(value: float) -> float:
        return 8 + 584 * value / float(whole)

    low, high = at(found["low"]), at(found["high"])
    parts = [
        element("title", f"Of {_number(found['rows'])}: bounds {_number(found['low'])} to {_number(found['high'])}, "
                f"estimate {_number(found['estimate'])}, truth {_number(found['truth'])}", id="scale-title"),
        element("line", x1="8", x2="592", y1="26", y2="26", class_="axis"),
        element("rect", x=f"{low:.1f}", y="19", width=f"{max(high - low, 2):.1f}", height="14", rx="3", class_="range"),
    ]  # fmt: skip
    if found["estimate"] is not None:
        parts.append(element("circle", cx=f"{at(found['estimate']):.1f}", cy="26", r="6", class_="estimate"))
    true = at(found["truth"])
    parts.append(element("path", d=f"M{true:.1f} 12 V40", class_="truth"))
    drawing = element("svg", *parts, viewBox="0 0 600 52", role="img", aria_labelledby="scale-title", class_="scale")
    key = element("p", element("span", "● estimate", class_="k-estimate"),
                  element("span", "▬ bounds", class_="k-range"), element("span", "| truth", class_="k-truth"),
                  element("span", f"0 to {_number(found['rows'])} rows"), class_="key", aria_hidden="true")  # fmt: skip
    return joined([drawing, key])


def _history(runs: list[Run]) -> Html:
    """The questions before."""
    rows = []
    for run in runs:
        text = element("code", question(run))
        again = button("Ask again", "ask", kind="plain", condition=question(run))
        if run.result is None:
            rows.append((text, "–", "–", "–", sentence(run.said) if run.status == "failed" else run.status, again))
        else:
            found = run.result
            bounds = f"{_number(found['low'])} to {_number(found['high'])}"
            rows.append((text, _number(found["estimate"]), bounds, _number(found["truth"]), _off(found), again))
    if not rows:
        return Html("")
    header = ("Question", "Estimate", "Bounds", "Truth", "Off by", "Again")
    return element("section", html_table(header, rows, caption="Questions before", numbers=(1, 3)), id="questions")


def _drawn(session: Session, document: Document) -> Html:
    """People who do not exist, as the release has them."""
    every = [one for one in reversed(session.runs.values()) if one.task == "sample"]
    run = next((one for one in every if json.loads(one.key)[1]["document"] == document), None)
    run = session.want("sample", document=document, seed=1) if run is None else run
    title = element("h2", "Invented people")
    said = "Drawn from what an analyst can infer from the release. None is a row of the table, but by chance."
    if run.status == "failed":
        return element("section", title, element("p", sentence(run.said), class_="quiet"), id="invented")
    if run.result is None:
        return element("section", title, waiting(run, "Drawing people …"), id="invented")
    table = html_table(run.result["columns"], run.result["rows"], caption=f"{len(run.result['rows'])} invented people")
    other = button("Draw others", "draw", id_="draw", seed=int(json.loads(run.key)[1]["seed"]) + 1)
    return element("section", title, element("p", said), table, element("p", other), id="invented")


VIEW = View(
    "ask", "Ask", render,
    actions={"ask": put, "draw": draw},
    tasks={"prepare": ("look", prepare), "ask": ("quick", ask), "sample": ("quick", sample)},
)  # fmt: skip
