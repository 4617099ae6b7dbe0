"""The view in which one decides: the verdict with its reasons, the sign-off, and saving what was decided."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jali.core.text import Html, bullets, element, html_table, joined, percent, sentence
from jali.errors import InputError
from jali.risk.policy import ALGORITHM
from jali.studio.state import Document, roles_in, toml_of
from jali.studio.views import policy
from jali.studio.views.look import promise
from jali.studio.views.method import HIDES, no_proof
from jali.studio.views.policy import judged
from jali.studio.views.view import View, acting, button, entry, head, page_part, tick_box, waiting

if TYPE_CHECKING:
    from jali.reports.material import Material
    from jali.studio.session import Session
    from jali.studio.worker import Desk

DECISIONS = ("publish", "do not publish")
"""After the second one no release is written, only the report that says so and the job."""
REPLACE = "Replace what is there under these names"
WRITTEN = "# Written by the studio of jali. It runs as it is:  jali publish {}\n"


# -- tasks -----------------------------------------------------------------------------------------------------------


def _material(desk: Desk, document: Document, *, algorithm: bool) -> Material:
    """The release that a job asks for with all that is known of it; kept, so that what was judged is what is saved."""
    from jali.reports.material import Material

    job = desk.job(document)
    key = {name: value for name, value in document.items() if name not in ("output", "frontier", "policy")}

    def made() -> Material:
        desk.say("Reading the table")
        table = desk.table(document)
        beside = job.public() if job.method == HIDES else None
        desk.say("Searching for the release")
        return Material(desk.release(document), table, beside, attacked=algorithm)

    found: Material = desk.kept("material", [key, algorithm], made)
    return found.judged_by(job.policy, desk.compared(document))


def decide(desk: Desk, document: Document, algorithm: bool = False) -> dict[str, Any]:
    """Make the release that the job asks for, judge it, and give the pages of its report in parts.

    With `algorithm` the attack of somebody who knows how the groups were chosen is tried too, which takes longest.
    """
    from jali.reports import decision
    from jali.reports.material import Missing
    from jali.reports.page import SECTIONS
    from jali.risk.verdict import reaches

    material = _material(desk, document, algorithm=algorithm)
    release = material.release
    desk.say("Attacking it with the algorithm known" if algorithm else "Judging what an attacker would learn")
    first = [decision.banner(material), decision.decision(material).html(), decision.before(material).html()]
    rest = [make for make in SECTIONS if make not in (decision.decision, decision.before, decision.signoff)]
    counts = material.manifest["counts"]
    every = [[one.threshold, one.column, one.found, one.outcome] for one in material.verdict.judged]
    reached = {} if isinstance(material.audit, Missing) else reaches(material.audit, release)
    known = any(one.threshold == ALGORITHM and one.outcome == "not judged" for one in material.verdict.judged)
    figures = {"Rows": f"{counts['rows']:,}"}
    if counts.get("groups"):
        figures[release.words.shown] = f"{counts['groups']:,}"
    told: dict[str, Any] = {
        "verdict": joined(first), "report": "", "decision": material.verdict.decision,
        "notes": [*_notes(material), *release.notes], "figures": figures, "open": known and not algorithm,
        "asked": _possible(document, [one.to_dict() for one in material.verdict.asked]),
        "judged": every, "reaches": {name: percent(share) for name, share in reached.items()},
    }  # fmt: skip
    desk.part(told)  # the verdict does not wait for the pictures
    parts: list[Html] = []
    desk.say("Drawing the report")
    for at, make in enumerate(rest):
        desk.step(at, len(rest))
        with desk.drawing:
            parts.append(make(material).html())
    return told | {"report": joined(parts)}


def _possible(document: Document, asked: list[Document]) -> list[Document]:
    """The promises that the method of a job can make: conceal makes none, a transparent one those with a proof."""
    method = str(document.get("method", "generalize"))
    if method == HIDES:
        return []
    proved = document.get(method, {}).get("transparent") is True
    return [one for one in asked if not proved or not no_proof(document | {"principles": [one]}, method)]


def _notes(material: Material) -> tuple[str, ...]:
    return () if material.original is None else material.original.notes


def save(
    desk: Desk, *, document: Document, release: str, report: str, job: str, decided: Mapping[str, str], replace: bool,
    algorithm: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Save the release, its private report and the job; what cannot be written is found before the work.

    What was judged last is what is saved: neither the release nor a figure of the report is made a second time.
    """
    from jali.core.files import hold_file, put_content
    from jali.releases.store import hold_release
    from jali.reports.page import digest, report_of

    base = desk.data.parent
    places = {name: desk.folder.new(given, base) for name, given in (("report", report), ("job", job))}
    folder = desk.folder.new(release, base)
    _require_apart(folder, places.values(), desk.data)
    made = desk.job(document)
    with ExitStack() as held:
        publish = decided["decision"] == DECISIONS[0]
        if publish:
            held.enter_context(_free(hold_release(folder, overwrite=replace)))
        for path in places.values():
            held.enter_context(_free(hold_file(path, overwrite=replace)))
        material = _material(desk, document, algorithm=algorithm)
        found = material.release
        keys: dict[str, Any] = (
            {"private": made.private} if made.private is not None and found.batched is not None else {}
        )
        if publish:
            desk.say("Writing the release")
            found.save(folder, overwrite=replace, spreadsheet_safe=made.spreadsheet_safe, **keys)
        desk.say("Writing the report")
        signed = dict(decided) | ({"digest": digest(folder)} if publish else {})
        with desk.drawing:
            page = report_of(material.decided_by(signed))
        put_content(places["report"], page.html, overwrite=True, private=True)
        put_content(places["job"], WRITTEN.format(places["job"].name) + toml_of(document), overwrite=True)
    named = {"release": folder, **places} if publish else places
    return {name: desk.folder.relative(path) for name, path in named.items()}


@contextmanager
def _free(place: AbstractContextManager[Any]) -> Iterator[Any]:
    """A place that is held; where something is there already, the line speaks of the box on the page."""
    with ExitStack() as held:
        try:
            found = held.enter_context(place)
        except InputError as problem:
            if "--overwrite" not in (problem.do or ""):
                raise
            raise InputError(problem.what, do=f'choose another name, or tick "{REPLACE}"') from None
        yield found


def _require_apart(folder: Path, files: Any, data: Path) -> None:
    """The report is confidential and the job names the table: neither lies in what is handed out."""
    for path in files:
        if folder in path.parents or path in (folder, data):
            raise InputError("report and job must not lie in the folder of the release", do="name another place")
    if folder == data.parent or folder in data.parents:
        raise InputError("the release needs a folder of its own", do="write a new name, e.g. release")


# -- actions ---------------------------------------------------------------------------------------------------------


def make(session: Session, *, algorithm: bool = False) -> None:
    """Begin to make and judge the release, also by the attack that takes longest if that is asked for."""
    problem = session.opened.problem()
    if problem:
        raise InputError(problem)
    session.again("decide", document=session.job, algorithm=algorithm)


def meet(session: Session) -> None:
    """Promise what the policy asks for in place of what is promised too weakly, and make the release again."""
    run, job = judged(session, session.job), session.job
    promises = job.get("principles", [])
    for asked in [] if run is None or run.result is None else run.result["asked"]:
        about = asked["name"], asked.get("sensitive")
        promises = [*(one for one in promises if (one["name"], one.get("sensitive")) != about), asked]
    if promises == job.get("principles", []):
        raise InputError("the policy asks for no other promise", do="see what can be done below the verdict")
    session.record("promise what the policy asks for", job | {"principles": promises})
    make(session)


def save_all(
    session: Session, *, release: str, report: str, job: str, decision: str, by: str, replace: bool = False
) -> None:
    """Save everything; the job says where its release is."""
    if decision not in DECISIONS:
        raise InputError("no decision was made", do="choose one")
    if not by.strip():
        raise InputError("nobody signs", do="write who decides")
    folder = session.folder.new(release, session.opened.base)
    output = folder.relative_to(session.opened.base).as_posix() if folder.is_relative_to(session.opened.base) else (
        str(folder))  # fmt: skip
    document = session.job | {"output": output}
    session.record(f"release folder: {output}", document)
    decided = {"decision": decision, "by": by.strip(), "on": date.today().isoformat()}
    run = judged(session, document)
    known = run is not None and run.result is not None and json.loads(run.key)[1]["algorithm"]
    session.again("save", document=document, release=release, report=report, job=job, decided=decided, replace=replace,
                  algorithm=known)  # fmt: skip


# -- the page --------------------------------------------------------------------------------------------------------


def render(session: Session, query: Mapping[str, str]) -> Html:
    """The job in short, the verdict with its reasons, and the form that saves."""
    lead = "jali makes the release that the job asks for, attacks it, and says whether it may be published."
    parts: list[object] = [head("Decide and publish", lead)]
    if not session.job:
        return joined([*parts, waiting(session.want("profile", person=None), "Reading the table …")])
    problem = session.opened.problem()
    parts.append(_job(session))
    if problem:
        said = element("p", sentence(problem))
        return joined([*parts, element("div", said, element("p", element("a", "Go to Data", href="#data")),
                                       class_="problem", role="alert")])  # fmt: skip
    run = judged(session, session.job)
    if run is None or run.status == "stopped":
        go = button("Make the release and judge it", "make", kind="first", id_="make")
        return joined([*parts, element("p", go, class_="go")])
    if run.result is None:
        return joined([*parts, waiting(run, "Making the release and attacking it …")])
    found = run.result
    verdict = element("div", Html(found["verdict"]), class_="report")
    if found["open"]:
        try_it = button("Try the attack that knows the algorithm", "make", id_="algorithm", algorithm=True)
        told = (
            "Whether somebody who knows how the groups were chosen learns more is not judged yet. This takes longest."
        )
        parts.append(element("div", element("p", told), element("p", try_it), class_="quiet", id="open"))
    rest = element("div", Html(found["report"]), class_="report") if found["report"] else (
        element("p", "Its pictures are being drawn …", class_="quiet", aria_busy="true"))  # fmt: skip
    if found["asked"]:
        parts.append(_asked(found["asked"]))
    more = element("details", element("summary", "The rest of the report"), rest, id="rest")
    notes = [element("details", element("summary", "Notes"), bullets([sentence(n) for n in found["notes"]]),
                     id="notes")] if found["notes"] else []  # fmt: skip
    return page_part(joined([*parts, verdict, *notes, more, _form(session, found["decision"])]))


def _asked(promises: list[Any]) -> Html:
    """The promises that the policy asks for, which one press makes."""
    press = button("Promise this, and make the release again", "meet", kind="first", id_="meet")
    told = element("p", "Promises that would meet what is missed:")
    lines = bullets([sentence(promise(one)) for one in promises])
    return element("div", told, lines, element("p", press), id="asked-for")


def _job(session: Session) -> Html:
    """What will be published, in a few lines."""
    job = session.job
    roles = roles_in(job)
    by_role = {
        "Others may know": [name for name, role in roles.items() if role == "quasi"],
        "Nobody should learn": [name for name, role in roles.items() if role == "sensitive"],
        "Published as it is": [name for name, role in roles.items() if role == "other"],
        "Dropped": [name for name, role in roles.items() if role == "identifier"],
    }
    rows = [(label, ", ".join(names)) for label, names in by_role.items() if names]
    said = [sentence(promise(one)) for one in job.get("principles", ())]
    if job.get("method") == HIDES:
        said = [f"Everybody of {job['conceal']['public']} is in the table with a probability of "
                f"{job['conceal']['low']} to {job['conceal']['high']}."]  # fmt: skip
    rows += [("Promises", joined(element("div", one) for one in said) if said else "none yet")]
    rows += [("Method", str(job.get("method", "generalize")))]
    table = html_table(("What", "Which"), rows, caption="The job", named=True)
    return element("section", table, policy.section(session, words=False), class_="asked", id="asked")


def _form(session: Session, verdict: str) -> Html:
    """Sign-off and where things go; below it what became of the last time."""
    stem = session.opened.data.stem
    options = [
        element("option", one, value=one, selected="" if (one == DECISIONS[0]) == (verdict == "safe") else None)
        for one in DECISIONS
    ]
    decision = element("label", element("span", "Decision", class_="label"),
                       element("select", *options, name="decision", id="decision"), class_="entry")  # fmt: skip
    fields = [
        decision,
        entry("Decided by", "by", id_="by", hint="stands in the sign-off of the private report"),
        entry("Folder of the release", "release", f"{stem}-release", id_="release", hint="what you hand out"),
        entry("Private report", "report", f"{stem}-report.html", id_="report", hint="confidential: for your files"),
        entry("Job", "job", "job.toml", id_="job", hint="jali publish runs it again"),
    ]
    send = element("button", "Sign and save", type="submit", class_="button first", id="save")
    form = element(
        "form", element("div", *fields, class_="fields"),
        tick_box(REPLACE, "replace", id_="replace"),
        element("p", send), **acting("save"),
    )  # fmt: skip
    saved = _saved(session)
    return element("section", element("h2", "Sign-off and save"), form, *([saved] if saved else []), id="signing")


def _saved(session: Session) -> Html | None:
    run = next((run for run in reversed(session.runs.values()) if run.task == "save"), None)
    if run is None:
        return None
    if run.result is None:
        return waiting(run, "Saving …")
    names = {"release": "Release, to hand out", "report": "Private report", "job": "Job"}
    lines = [(names[name], element("code", place)) for name, place in run.result.items()]
    table = html_table(("What", "Where"), lines, caption="Saved", named=True)
    again = element("p", "The same from the shell: ", element("code", f"jali publish {run.result['job']} -o again"))
    return element("div", element("p", "✓ Saved.", class_="says"), table, again, class_="saved", role="status")


VIEW = View(
    "decide", "Decide and publish", render,
    actions={"make": make, "meet": meet, "save": save_all, **policy.ACTIONS},
    tasks={"decide": ("long", decide), "save": ("long", save)},
)  # fmt: skip
