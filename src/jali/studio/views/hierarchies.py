"""The view of hierarchies: for each quasi-identifier a tree and its levels, builders to choose from, edits by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jali.core.charts import clipped
from jali.core.text import Html, element, html_table, joined, sentence
from jali.errors import InputError
from jali.job import HIERARCHIES
from jali.studio.state import Document, alone, checked, hierarchies_in, with_hierarchy
from jali.studio.views.tree import beside, chosen_number, label_shown, label_text, place
from jali.studio.views.view import View, button, form_of_fields, head, option_field, page_part, spelled, typed, waiting

if TYPE_CHECKING:
    from jali.encoding.builders import Row, Rows
    from jali.studio.session import Run, Session
    from jali.studio.worker import Desk

EDITED = 100_000
"""Nodes of a level that are shown and can be edited one by one; a hierarchy of more values is edited as a file."""
KINDS: dict[str, tuple[str, str, dict[str, str]]] = {
    "auto": ("jali chooses", "jali chooses by what the values look like.", {}),
    "bands": ("bands", "Numbers in bands of equal width; each width is a level.", {"bands": "5, 10, 20"}),
    "quantiles": ("quantiles", "Numbers in intervals with about equally many rows.", {"quantiles": "8, 4, 2"}),
    "dates": ("dates", "Days in months, quarters, years and decades.", {"dates": "month, year"}),
    "prefix": ("prefix", "Codes by their beginnings, or by a system such as icd-10.", {"prefix": "3, 1"}),
    "zip": ("zip", "Postal codes of a country, in the steps of its system.", {"zip": "DE"}),
    "mask": ("mask", "Characters are hidden from the right, one more at each level.", {}),
    "grid": ("grid", "Places on a map in squares of these widths, in degrees.", {"grid": "0.1, 1"}),
    "frequency": ("frequency", "Values with fewer rows than this become one, a level a number.",
                  {"frequency": "5, 50"}),
    "suppress": ("suppress", "A value is shown, or nothing of it.", {}),
}  # fmt: skip
"""The builders: their names, what they do, and what their fields hold at first."""


# -- tasks -----------------------------------------------------------------------------------------------------------


def hierarchy(desk: Desk, column: str, document: Document) -> dict[str, Any]:
    """The levels of a column's hierarchy: labels, parents and people of their nodes."""
    table = desk.job(document).table()
    made = table.hierarchy(column)
    levels = []
    for at, level in enumerate(made.levels):
        people = table.people_at(column, at)
        held = people[people > 0]
        nodes = len(level) <= EDITED
        levels.append({
            "nodes": len(level), "smallest": int(held.min()), "empty": int(len(people) - len(held)),
            "labels": level.texts() if nodes else [], "people": people.tolist() if nodes else [],
            "parents": made.parents[at].tolist() if nodes and at < made.height else [],
        })  # fmt: skip
    return {"levels": levels, "made_by": made.made_by, "chosen": made.chosen, "note": made.note, "people": table.people}


# -- actions ---------------------------------------------------------------------------------------------------------


def build(session: Session, *, column: str, kind: str, **fields: Any) -> None:
    """Give a column the hierarchy of a builder, with what stands in its fields."""
    if kind not in KINDS:
        raise InputError(f'no builder "{kind}"', do=f"it is one of {', '.join(KINDS)}")
    forms = HIERARCHIES[kind]
    given = {key: typed(forms[key], str(text)) for key, text in fields.items() if key in forms and str(text).strip()}
    given.setdefault(kind, True)
    _use(session, column, given, f"{column}: {_called(given)}")


def rename(session: Session, *, column: str, level: int, node: str, to: str) -> None:
    """Give a node another name."""
    from jali.encoding.builders import renamed

    _edit(session, column, f"{column}: renamed a node", lambda rows: renamed(rows, level, node, to.strip()))


def merge(session: Session, *, column: str, level: int, node: str, other: str) -> None:
    """Merge a node with another one of its level."""
    from jali.encoding.builders import merged

    _edit(session, column, f"{column}: merged two nodes", lambda rows: merged(rows, level, node, other.strip()))


def move(
    session: Session, *, column: str, level: int, under: str, node: str = "", below: list[Any] | None = None,
    **ticked: Any,
) -> None:  # fmt: skip
    """Move a node, or those that are ticked, under another one; a new name splits them off."""
    from jali.encoding.builders import moved

    chosen = [name for at, name in enumerate(below or ()) if ticked.get(f"tick-{at}") is True]
    nodes = [node] if not below else [str(name) for name in chosen]
    what = "a node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    _edit(session, column, f"{column}: moved {what}", lambda rows: moved(rows, level, nodes, under))


def add_level(session: Session, *, column: str, level: int) -> None:
    """Add a level above another one, the same as it."""
    from jali.encoding.builders import with_level

    _edit(session, column, f"{column}: added a level", lambda rows: with_level(rows, level))


def drop_level(session: Session, *, column: str, level: int) -> None:
    """Remove a level."""
    from jali.encoding.builders import without_level

    _edit(session, column, f"{column}: removed a level", lambda rows: without_level(rows, level))


def take_text(session: Session, *, column: str, text: str) -> None:
    """Use a hierarchy in ARX's CSV form."""
    from jali.encoding.hierarchy import rows_in

    _keep(session, column, rows_in(text.removeprefix("\ufeff")), f"{column}: imported a hierarchy")


def give_text(session: Session, *, column: str) -> dict[str, str]:
    """The hierarchy in ARX's CSV form, to be saved by the browser."""
    from jali.encoding.hierarchy import rows_text

    rows = _rows(_found(session, column))
    return {"name": f"{column}.csv", "text": rows_text(rows)}


def _edit(session: Session, column: str, said: str, make: Callable[[Rows], Rows]) -> None:
    _keep(session, column, make(_rows(_found(session, column))), said)


def _keep(session: Session, column: str, rows: Sequence[Row], said: str) -> None:
    """Keep rows as a file beside the job, once they are known to be a hierarchy, and use it."""
    import pyarrow as pa

    from jali.encoding.hierarchy import rows_text, taxonomy

    if column not in hierarchies_in(session.job):
        raise InputError(f'"{column}" is no quasi-identifier', do="reload the page")
    made = taxonomy(rows)  # says what is wrong with them before anything is written
    made.build(column, pa.array([row[0] for row in rows if row[0]], pa.string()))
    name = session.opened.keep_text(column, rows_text(rows))
    try:
        _use(session, column, {"taxonomy": name}, said)
    except InputError:
        session.opened.forget_text(name)
        raise


def _use(session: Session, column: str, given: Any, said: str) -> None:
    """Try a hierarchy on the table; only one that fits becomes part of the job."""
    job = with_hierarchy(session.job, column, given)
    state = session.opened
    document = alone(job, column, given)
    checked(document, state.base, state.folder)
    run = session.waited(session.want("hierarchy", column=column, document=document))
    if run.status == "failed":
        raise InputError(run.said)
    session.record(said, job)


def _found(session: Session, column: str) -> dict[str, Any]:
    """The hierarchy as it stands, whose nodes can be edited."""
    run = _run(session, column, hierarchies_in(session.job).get(column, True))
    if run.status != "done":
        raise InputError(run.said if run.status == "failed" else "the hierarchy is being made", do="wait a moment")
    result: dict[str, Any] = run.result
    if not result["levels"][0]["labels"]:
        do = "write it with jali hierarchy job.toml COLUMN -o FILE, and import that when it is edited"
        raise InputError(f"a hierarchy of more than {EDITED:,} values is edited as a file", do=do)
    return result


def _rows(found: Mapping[str, Any]) -> Rows:
    """One row per value, one text per level, as `Hierarchy.rows` has them."""
    levels = found["levels"]
    both = None in levels[0]["labels"] and "" in levels[0]["labels"]  # they look the same in such a file
    rows = []
    for value, label in enumerate(levels[0]["labels"]):
        path, node = [label_text(label)], value
        for below, level in pairwise(levels):
            node = below["parents"][node]
            path.append(label_text(level["labels"][node]))
        if label is not None or not both:
            rows.append(tuple(path))
    return tuple(rows)


def _run(session: Session, column: str, given: Any) -> Run:
    return session.want("hierarchy", column=column, document=alone(session.job, column, given))


# -- the page --------------------------------------------------------------------------------------------------------


def render(session: Session, query: Mapping[str, str]) -> Html:
    """The columns, the builders, the levels, the tree and the panel of its node."""
    lead = "Say how each column may be coarsened: the values at the bottom, everything at the top, steps between."
    top = head("Hierarchies", lead)
    if not session.job:
        return joined([top, waiting(session.want("profile", person=None), "Reading the table …")])
    known = hierarchies_in(session.job)
    if not known:
        none = element(
            "p", "No column is a quasi-identifier. ", element("a", "Say which others may know", href="#data")
        )
        return joined([top, element("div", none, class_="problem", role="alert")])
    at = chosen_number(query, "column", len(known))
    column = list(known)[at]
    tabs = [
        element("li", element("a", name, href=place(i), id=f"column-{i}", aria_current="true" if i == at else None))
        for i, name in enumerate(known)
    ]
    parts = [top, element("ul", *tabs, class_="tabs columns-of", aria_label="Quasi-identifiers")]
    step = session.opened.at  # a preview is one of this step: after an edit the address means nothing any more
    draft = query["make"] if query.get("make") in KINDS and query.get("step") == str(step) else None
    given = known[column]
    parts.append(_builders((at, step), column, given, draft))
    if draft is not None and draft != _kind(given):
        given = {draft: True} | {key: typed(HIERARCHIES[draft][key], text) for key, text in KINDS[draft][2].items()}
        parts.append(element("p", element("b", "Preview. "), "The job has another hierarchy until you press Use it.",
                             class_="flag soft", id="preview"))  # fmt: skip
    run = _run(session, column, given)
    if run.result is None:
        return joined([*parts, waiting(run, "Making the hierarchy …")])
    large = not run.result["levels"][0]["labels"]
    preview = given != known[column] or large  # neither can be edited here
    tree = beside(at, column, run.result, query, preview=preview)
    return page_part(joined([*parts, _levels(column, run.result, preview), tree, _files(column, large=large)]))


def _kind(given: Any) -> str:
    """The builder of a hierarchy in a job."""
    if given is True:
        return "auto"
    return given if isinstance(given, str) else next((key for key in given if key in HIERARCHIES), "auto")


def _called(given: Mapping[str, Any]) -> str:
    kind = _kind(given)
    own = [spelled(given[kind])] if given[kind] is not True else []
    own += [f"{key} {spelled(value)}" for key, value in given.items() if key != kind]
    return f"{kind} {', '.join(own)}".strip()


def _builders(at: tuple[int, int], column: str, given: Any, draft: str | None) -> Html:
    """The builders to choose from, and the fields of the one that is shown."""
    now = _kind(given)
    shown = draft or now
    chips = [
        element("li", element("a", name, href=place(at[0], make=kind, step=at[1]), id=f"make-{kind}", title=what,
                              aria_current="true" if kind == shown else None,
                              class_="now" if kind == now else None))
        for kind, (name, what, _) in KINDS.items()
    ]  # fmt: skip
    row = element("ul", *chips, class_="tabs", aria_label=f"Builders for {column}")
    if shown == "taxonomy":
        said = element("p", "Each value has its place in a list, which you can edit below.", class_="quiet")
        return element("section", element("h2", "How it is made"), row, said, id="builders")
    own = given if isinstance(given, Mapping) and shown == now else {}
    first = own or KINDS[shown][2]
    fields = [
        option_field(_label(key, shown), key, form, first.get(key), id_=f"field-{key}")
        for key, form in HIERARCHIES[shown].items() if form.words != "true"
    ]  # fmt: skip
    main, more = fields[:1], fields[1:]
    rest = [element("details", element("summary", "More options"), element("div", *more, class_="fields"), id="more")]
    parts = [
        element("p", KINDS[shown][1], class_="quiet"),
        element("div", *main, class_="fields"),
        *(rest if more else ()),
    ]
    form = form_of_fields("build", parts, "Use it", id_="build", column=column, kind=shown)
    return element("section", element("h2", "How it is made"), row, form, id="builders")


def _label(key: str, kind: str) -> str:
    words = {"bands": "Widths", "quantiles": "Numbers of intervals", "dates": "Units", "prefix": "Lengths, or a system",
             "zip": "Country", "grid": "Widths", "frequency": "Fewest rows"}  # fmt: skip
    return words.get(kind, kind) if key == kind else key


def _levels(column: str, found: Mapping[str, Any], preview: bool) -> Html:
    """The table of levels; between the values and the root one can be added or removed."""
    top = len(found["levels"]) - 1
    rows: list[tuple[object, ...]] = []
    for at, level in enumerate(found["levels"]):
        some = ", ".join(clipped(label_shown(label), 24) for label in level["labels"][:4])
        some = some if level["labels"] else "too many to list"
        some += f" and {level['nodes'] - 4:,} more" if level["nodes"] > 4 and level["labels"] else ""
        tools = []
        if not preview and at < top:
            tools.append(button("Add one above", "add_level", kind="plain", id_=f"above-{at}", column=column, level=at))
        if not preview and 0 < at < top:
            tools.append(button("Remove", "drop_level", kind="plain", id_=f"drop-{at}", column=column, level=at))
        name = "values" if at == 0 else "root" if at == top else str(at)
        rows.append((name, f"{level['nodes']:,}", f"{level['smallest']:,}", some, joined(tools)))
    header = ("Level", "Nodes", "Fewest people", "Such as", "Change")
    shown = [row[:4] for row in rows] if preview else rows
    table = html_table(header[:4] if preview else header, shown, caption="From the values to the root",
                       numbers=(1, 2), named=True)  # fmt: skip
    said = [sentence(found["note"])] if found["note"] else []
    made = element("p", "Made by ", element("code", found["made_by"]), ". " if found["made_by"] else "", *said,
                   class_="quiet")  # fmt: skip
    return element("section", element("h2", "Levels"), table, made if found["made_by"] else "", id="levels")


def _files(column: str, *, large: bool) -> Html:
    """A hierarchy as a file: one row per value, one column per level."""
    chosen = element("input", type="file", id="import", accept=".csv,.txt,text/csv", data_import=column)
    take = element("label", element("span", "Import a hierarchy", class_="label"), chosen, class_="entry")
    give = element("button", "Export it", type="button", class_="button", id="export", data_export=column)
    give = element("code", "jali hierarchy job.toml COLUMN -o FILE") if large else give
    said = "ARX reads and writes the same form: a row for each value, a column for each level, no header."
    return element("section", element("h2", "As a file"), element("p", said, class_="quiet"),
                   element("div", take, element("p", give), class_="fields"), id="files")  # fmt: skip


VIEW = View(
    "hierarchies", "Hierarchies", render,
    actions={"build": build, "rename": rename, "merge": merge, "move": move, "add_level": add_level,
             "drop_level": drop_level, "import": take_text, "export": give_text},
    tasks={"hierarchy": ("quick", hierarchy)}, script="hierarchies.js",
)  # fmt: skip
