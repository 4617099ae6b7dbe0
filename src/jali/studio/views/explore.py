"""The view in which one explores: every method at a range of strengths, and each of these points seen closely."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from jali.core.text import Html, bullets, element, html_table, joined, sentence
from jali.errors import InputError
from jali.risk.policy import ALGORITHM, Policy, policy_of
from jali.studio.state import Document, read_by
from jali.studio.views import look
from jali.studio.views.look import METHODS, latest, taken
from jali.studio.views.view import View, acting, button, choice, head, page_part, waiting

if TYPE_CHECKING:
    from jali.compare.frontier import Frontier
    from jali.compare.points import Knob, Point
    from jali.studio.session import Run, Session
    from jali.studio.worker import Desk

COMPARED = ("lattice", "partition", "recode", "anatomy", "angel", "marginals", "pdf")
"""The methods as the frontier calls them."""
DRAWN = 1.0
"""Seconds between two drawings of a frontier that grows."""


def explored(job: Mapping[str, Any]) -> Document:
    """What a comparison depends on in a job: not its method, and nothing that taking a point chose."""
    document = {k: deepcopy(v) for k, v in job.items() if k not in ("method", "output", "policy", "private", "conceal")}
    asked = any(job.get(name, {}).get("transparent") is True for name in METHODS)
    if asked:  # of one method in the job: here every method has its transparent form beside it
        document["frontier"] = {"transparent": "prefer", **document.get("frontier", {})}
    for name in METHODS:
        kept = {key: value for key, value in document.pop(name, {}).items() if not _was_chosen(key, value)}
        document |= {name: kept} if kept else {}
    return document


def _was_chosen(key: str, value: object) -> bool:
    """Whether an option of a method is one that taking a point writes: the next comparison chooses it anew."""
    return key in ("levels", "buckets", "transparent") or (key, value) == ("show", "pdf")


# -- the task --------------------------------------------------------------------------------------------------------


def explore(desk: Desk, document: Document) -> dict[str, Any]:
    """Compare all methods; each point is shown when it is known, and kept for the next comparison."""
    from jali.compare.points import Cache, knob

    job = desk.job(document)
    desk.say("Reading the table")
    table = desk.table(document)
    turned = knob(job.requirement, job.compare.get("vary"))
    known = desk.kept("points", read_by(document), lambda: Cache(None))
    desk.say("Comparing methods")
    last = {"at": 0.0, "charts": ""}

    def show(found: Frontier, *, over: bool = False) -> dict[str, Any]:
        if over or time.monotonic() - last["at"] > DRAWN:  # type: ignore[operator]
            with desk.drawing:
                last["charts"] = joined(_charts(found))
            last["at"] = time.monotonic()
        return _told(found, turned, document) | {"charts": last["charts"], "over": over}

    made = job.frontier(table, on_step=desk.step, resume=known, on_point=lambda found: desk.part(show(found)))
    desk.compare(document, made.to_dict())
    return show(made, over=True)


def _charts(found: Frontier) -> list[Html]:
    from jali.compare.page import figures

    return [element("div", figure, class_="marks", data_go="#explore?point=") for figure in figures(found)]


def _told(found: Frontier, turned: Knob, document: Document) -> dict[str, Any]:
    """The points, what each would write into the job, and what the comparison says."""
    from jali.compare.page import reasons
    from jali.compare.points import knobs

    return {
        "points": [_point(found, point, turned, document) for point in found.points],
        "reasons": list(reasons(found)) if found.at_asked else [],
        "varied": turned.parameter, "vary": turned.names[1], "asked": str(found.asked),
        "could_vary": [one.names for one in knobs(turned.requirement)],
    }  # fmt: skip


def _point(found: Frontier, point: Point, turned: Knob, document: Document) -> dict[str, Any]:
    from jali.compare.methods import METHODS as ABOUT
    from jali.compare.page import cells

    kl, error, meets, withstands, seconds = cells(point)
    told: dict[str, Any] = {
        "name": point.name, "label": f"{point.label}, {turned.parameter} = {point.strength}", "method": point.label,
        "about": ABOUT[point.method].about, "strength": str(point.strength), "kl": kl, "error": error, "meets": meets,
        "transparent": withstands, "seconds": seconds, "verdict": point.verdict, "reason": point.reason,
        "recommended": point is found.recommended, "sense": [[p.principle, p.met, p.sense] for p in point.parts],
        "reaches": dict(point.reaches), "proved": point.transparent, "rank": list(point.rank),
    }  # fmt: skip
    if point.reason is None:
        required = turned.at(point.strength)
        call = found.call(point, required)
        principles = deepcopy(document["principles"])
        own = principles[turned.place]
        own.get("principle", own)[turned.parameter] = point.to_dict()["strength"]
        kept = [given for given, principle in zip(principles, required, strict=True) if principle in call.kept]
        told["call"] = {"method": call.method, "options": dict(call.options), "principles": kept}
        told["lost"] = [repr(principle) for principle in required if principle not in call.kept]
    return told


# -- actions ---------------------------------------------------------------------------------------------------------


def compare(session: Session) -> None:
    """Begin to compare all methods."""
    problem = session.opened.problem()
    if problem:
        raise InputError(problem)
    session.again("explore", document=explored(session.job))


def vary(session: Session, *, value: str) -> None:
    """Vary another parameter of the promises."""
    job = session.job
    session.record(f"explore: vary {value}", job | {"frontier": {**job.get("frontier", {}), "vary": value}})


def choose(session: Session, *, method: str, value: bool) -> None:
    """Compare with a method, or without it."""
    job = session.job
    now = job.get("frontier", {}).get("methods", list(COMPARED))
    chosen = [name for name in COMPARED if (value if name == method else name in now)]
    if method not in COMPARED or not chosen:
        raise InputError("no method is left to compare", do="choose at least one")
    rest = {key: given for key, given in job.get("frontier", {}).items() if key != "methods"}
    rest |= {"methods": chosen} if len(chosen) < len(COMPARED) else {}
    job = {key: given for key, given in job.items() if key != "frontier"} | ({"frontier": rest} if rest else {})
    session.record(f"explore: {'with' if value else 'without'} {method}", job)


def take(session: Session, *, point: str) -> None:
    """Write the method and the promise of a point into the job."""
    found = point_of(session, point)
    session.record(f"take {found['label']}", taken(session, found))


def take_node(session: Session, *, point: str, levels: dict[str, Any]) -> None:
    """Write the levels of a node into the job, with the promise of the point whose lattice it is in."""
    found = point_of(session, point)
    job = taken(session, found)
    known = {str(name) for name in job["quasi"]} == set(levels)
    if not known or not all(type(level) is int for level in levels.values()) or job["method"] != METHODS[0]:
        raise InputError("the page sent something that the studio does not know", do="reload the page")
    job[METHODS[0]] = {**job.get(METHODS[0], {}), "levels": levels}
    told = ", ".join(f"{name} {level}" for name, level in levels.items())
    session.record(f"take the node {told}", job)


def point_of(session: Session, name: str) -> dict[str, Any]:
    """The point of a name that has a release."""
    run = latest(session)
    points = [] if run is None or run.result is None else run.result["points"]
    found: dict[str, Any] | None = next((one for one in points if one["name"] == name), None)
    if found is None or "call" not in found:
        raise InputError("there is no such point", do="go back to Explore")
    return found


# -- the page --------------------------------------------------------------------------------------------------------


def render(session: Session, query: Mapping[str, str]) -> Html:
    """The frontier, or one point of it, or two of them side by side."""
    if not session.job:
        return joined([head("Explore"), waiting(session.want("profile", person=None), "Reading the table …")])
    run = latest(session)
    if run is not None and run.result is not None and query.get("point"):
        return page_part(look.render(session, point_of(session, query["point"]), run.result, query))
    lead = "Every method at a range of strengths, tried on your table. The lower a sign, the more an analyst keeps."
    parts: list[object] = [head("Explore", lead)]
    if session.job.get("method") == "conceal":
        said = ("The job hides who is in the table, which one method alone can do: there is nothing to compare. "
                "Its bounds stand on Promises.")  # fmt: skip
        return joined([*parts, element("p", said, class_="flag soft"), element("p", element("a", "Go to Promises",
                       href="#promises"))])  # fmt: skip
    problem = session.opened.problem()
    if problem:
        said = element("p", sentence(problem))
        back = element("p", element("a", "Go to Data", href="#data"))
        return joined([*parts, element("div", said, back, class_="problem", role="alert")])
    parts.append(_controls(session, run))
    if run is None:
        return joined([*parts, _methods()])
    if run.result is None or run.status == "failed":
        return joined([*parts, waiting(run, "Comparing methods: the first points come in a moment …")])
    return page_part(joined([*parts, _frontier(session, run)]))


def _controls(session: Session, run: Run | None) -> Html:
    """What is compared, and the button that begins."""
    promises = [sentence(look.promise(one)) for one in session.job.get("principles", ())]
    parts: list[object] = [element("p", element("b", "Promises")), bullets(promises or ["None yet."])]
    changed = run is not None and json.loads(run.key)[1]["document"] != explored(session.job)
    if run is not None and run.result is not None:
        result = run.result
        options = {names[1] if _alone(names[1], result) else names[2]: names[1] for names in result["could_vary"]}
        if len(options) > 1:
            chosen = session.job.get("frontier", {}).get("vary", next(iter(options)))
            parts.append(choice("What is varied", "vary", options, chosen, id_="vary"))
    parts.append(_ticks(session))
    if run is None or run.status != "running":
        text = "Compare all methods" if run is None else "Compare again" if changed else "Compare once more"
        text = "Go on" if run is not None and run.status == "stopped" and not changed else text
        go = button(text, "compare", kind="first" if run is None or changed or text == "Go on" else "", id_="compare")
        parts.append(element("p", go))
    if changed and _job_point(session, run) is None:
        said = "The job has changed since this comparison."
        parts.append(element("p", said, class_="flag soft"))
    return element("section", *parts, class_="controls")


def _ticks(session: Session) -> Html:
    """The methods, of which slow ones can be left out."""
    now = session.job.get("frontier", {}).get("methods", COMPARED)
    boxes = [
        element("label", element("input", type="checkbox", id=f"method-{name}", checked="" if name in now else None,
                                 **acting("method", method=name)), " ", name, class_="tick")
        for name in COMPARED
    ]  # fmt: skip
    return element("fieldset", element("legend", "Methods"), *boxes, class_="ticks")


def _alone(name: str, result: Mapping[str, Any]) -> bool:
    return [names[1] for names in result["could_vary"]].count(name) == 1


def _methods() -> Html:
    """What will be done, before anything is."""
    said = (
        "jali makes a release with every method it knows, at several strengths of a promise: levels of hierarchies, "
        "boxes, groups recoded one by one, buckets, batches, tables of counts, distributions.",
        "It measures what an analyst loses with each, and says which one to take. You can look at every one of them, "
        "compare two, take one into the job, and stop at any time.",
    )
    return joined(element("p", text) for text in said)


def _job_point(session: Session, run: Run | None) -> str | None:
    """The name of the point that the job asks for, if it is one of the comparison."""
    for point in [] if run is None or run.result is None else run.result["points"]:
        if "call" in point and look.in_job(session, point):
            return str(point["name"])
    return None


def _frontier(session: Session, run: Run) -> Html:
    """The charts, what they say, and every point in a table."""
    result = run.result
    asked = _job_point(session, run)
    state = {"running": "Points appear as they are found.", "stopped": "Stopped. What was found stays."}
    parts: list[object] = []
    if run.status in state:
        parts.append(element("p", state[run.status], class_="quiet"))
    if result["reasons"]:
        first, *rest = result["reasons"]
        more = [element("details", element("summary", "Why not another one"), bullets(rest), id="why")] if rest else []
        parts.append(element("div", element("p", element("b", sentence(first))), *more, class_="advice"))
        parts.append(_safest(session.job, result, asked))
    parts.append(element("div", Html(result["charts"]), class_="pair charts", id="charts"))
    parts.append(element("p", "Full sign: keeps all promises. Half: keeps them in a sense of its own. Empty: not all "
                         "of them. Ring: recommended. Click a sign, or choose it with the arrow keys and Enter.",
                         class_="hint"))  # fmt: skip
    parts += _tables(session, result, asked)
    missing = [f"{one['label']}: {one['reason']}" for one in result["points"] if one["reason"]]
    if missing:
        parts.append(element("details", element("summary", "What could not be made"), bullets(missing), id="missing"))
    return joined(parts)


def _tables(session: Session, result: Mapping[str, Any], asked: str | None) -> list[Html]:
    """The points at the strength that the promise asks for, and all of them."""
    job = session.job
    made = [one for one in result["points"] if not one["reason"]]
    header = (result["varied"], "Method", "KL (nats)", "Query error", "Keeps", f"Policy {_policy(job).base}", "Seconds",
              "Look")  # fmt: skip
    rows = [(one["strength"] == result["asked"], _row(one, asked, _missed(job, one))) for one in made]
    own = [row for here, row in rows if here]
    number = "1 point" if len(rows) == 1 else f"{len(rows)} points"
    title = f"All {number}, by {result['vary']}" if result["over"] else f"{number} so far, by {result['vary']}"
    at = f"At {result['varied']} = {result['asked']}, which the promise asks for"
    every = html_table(header, [row for _, row in rows], caption=title, numbers=(0, 2, 3, 6))
    if not own:
        return [every]
    return [html_table(header, own, caption=at, numbers=(0, 2, 3, 6)),
            element("details", element("summary", title), every, id="all-points")]  # fmt: skip


SHORT = {"highest_risk": "highest risk", "average_risk": "average risk", "largest_belief": "belief in a value",
         "exposed.homogeneity": "homogeneity", "exposed.linkage": "linkage",
         "exposed.background knowledge": "background knowledge", ALGORITHM: "algorithm known"}  # fmt: skip
"""The thresholds that a method decides, in a table."""


def _policy(job: Mapping[str, Any]) -> Policy:
    return policy_of(job.get("policy") or None)


def _missed(job: Mapping[str, Any], point: Mapping[str, Any]) -> tuple[str, ...]:
    """The thresholds of the job's policy that a point misses, or that are not known of it."""
    return _policy(job).missed(point["reaches"], transparent=point["proved"])


def _misses(point: Mapping[str, Any], missed: Sequence[str]) -> Html:
    """Which thresholds a point misses, and which are not known of it."""
    if not missed:
        return element("span", "✓ meets it", class_="reached met")
    lost = [SHORT.get(one, "belief with facts") for one in missed if one in point["reaches"]]
    unknown = [SHORT.get(one, "belief with facts") for one in missed if one not in point["reaches"]]
    told = f"✕ {', '.join(lost)}" if lost else f"? not judged: {unknown[0]}"
    told += f" and {len(unknown) - 1} more" if not lost and len(unknown) > 1 else ""
    return element("span", told, class_="reached grave" if lost else "reached unknown")


def _safest(job: Mapping[str, Any], result: Mapping[str, Any], asked: str | None) -> Html:
    """Of the points that keep the promises as they read and meet the policy, the one that loses least."""
    policy = _policy(job)
    made = [one for one in result["points"] if not one["reason"]]
    first = next((at for at, one in enumerate(made) if one["strength"] == result["asked"]), 0)
    safe = [one for one in made[first:] if one["verdict"] == "all" and not _missed(job, one)]
    if not safe:
        said = (f"None of these points meets the policy {policy.base} by its method alone. Ask for a stronger promise, "
                "tick transparency on Promises, or choose other readers.")  # fmt: skip
        return element("p", said, class_="flag soft", id="safest")
    best = min(safe, key=lambda one: one["rank"])
    also = "It also meets" if best["recommended"] else f"{best['label'].capitalize()} loses least of those that meet"
    link = element("a", "Look at it", href=f"#explore?point={best['name']}", id="look-safest")
    take_it = button("Take it", "take", kind="plain", id_="take-safest", point=best["name"])
    go = [" ", take_it] if best["name"] != asked else []
    return element("p", element("b", "✓ "), f"{also} every threshold of the policy {policy.base} that a method "
                   f"decides (KL {best['kl']}, query error {best['error']}). ", link, *go, class_="flag calm",
                   id="safest")  # fmt: skip


def _row(point: Mapping[str, Any], asked: str | None, missed: Sequence[str]) -> tuple[object, ...]:
    marks = [" ★ recommended"] if point["recommended"] else []
    marks += [" ✓ in the job"] if point["name"] == asked else []
    spoken = f"{point['label']}: KL {point['kl']}, query error {point['error']}, keeps {point['meets']}"
    hidden = element("span", spoken, hidden="", data_name=point["name"])
    told = element("span", point["method"], hidden, *(element("b", mark, class_="badge") for mark in marks))
    link = element("a", "Look", element("span", f" at {point['label']}", class_="unseen"),
                   href=f"#explore?point={point['name']}")  # fmt: skip
    policy = _misses(point, missed)
    return point["strength"], told, point["kl"], point["error"], point["meets"], policy, point["seconds"], link


VIEW = View(
    "explore", "Explore", render,
    actions={"compare": compare, "vary": vary, "method": choose, "take": take, "node": take_node},
    tasks={"explore": ("long", explore), **look.TASKS}, script="explore.js",
)  # fmt: skip
