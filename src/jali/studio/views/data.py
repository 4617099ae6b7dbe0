"""The view of the data: what each column is, what it tells about people, and what it is for."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jali.core.charts import clipped
from jali.core.text import Html, bullets, element, html_table, joined, listed, percent, sentence
from jali.encoding.values import KINDS
from jali.errors import InputError
from jali.studio.state import ROLES, alone, roles_in, with_kind, with_role
from jali.studio.views.view import View, acting, choice, glance, head, narrowed, page_part, waiting

if TYPE_CHECKING:
    from jali.encoding.table import Column, Table
    from jali.studio.session import Session
    from jali.studio.worker import Desk

BARS = 16
"""Bars of a distribution: intervals of numbers and dates, the most frequent ones of other values."""
FEW = 12
"""Columns that one sees at a glance; more can be searched, and given a role together."""
PAGE = 25
"""Rows of a page."""
WORDS = {
    "quasi": "others may know it",
    "sensitive": "nobody should learn it",
    "other": "published as it is",
    "identifier": "names a person: dropped",
    "person": "says whose row it is",
    "weights": "weight of the row",
    "left out": "not published",
}
"""The roles as the page calls them."""
READ_AS = ("quasi", "sensitive")
"""The roles of columns whose kind matters."""
PUBLISHED = ("quasi", "sensitive", "other")


# -- tasks -----------------------------------------------------------------------------------------------------------


def profile(desk: Desk, person: str | None) -> dict[str, Any]:
    """The profile, the distribution of each column, and a job to begin with."""
    import jali

    desk.say("Reading the table")
    found = desk.whole()
    bars = {column.name: distribution(found.table, column) for column in found.table.columns}
    known = [{"name": c.name, "kind": c.kind, "values": len(c.values) - c.values.null_count}
             for c in found.table.columns]  # fmt: skip
    desk.part({"rows": found.table.rows, "columns": known, "bars": bars})
    desk.say("Looking for what makes people unique")
    made = jali.profile(found.table, person=person)
    source = desk.data.name
    job = {"input": source}
    if made.of_role("quasi"):
        from dataclasses import replace

        with_reading = replace(made, reading=found.reading, notes=found.notes)
        job = tomllib.loads(desk.first_job(with_reading, source, "job.toml"))
    return {"profile": made.to_dict(), "bars": bars, "job": job, "notes": list(found.notes)}


def distribution(table: Table, column: Column) -> list[tuple[str, int]]:
    """Labels and their numbers of rows: intervals in order, or the most frequent values and all others."""
    import numpy as np

    from jali.core.arrays import counted
    from jali.encoding import values as v

    rows = counted(column.codes, table.multiplicity, len(column.values))
    known = len(column.values) - (1 if column.values.null_count else 0)
    missing = [("missing", int(rows[known:].sum()))] if rows[known:].sum() else []
    values, rows = column.values.slice(0, known), rows[:known]
    kind = column.kind
    numbers = v.numbers(values) if kind == "number" else v.days(values) if kind == "date" else None
    if numbers is not None and known > BARS:
        whole = kind == "date" or v.is_whole(values)
        edges = _edges(float(numbers.min()), float(numbers.max()), whole=whole)
        held, _ = np.histogram(numbers, bins=edges, weights=rows)
        ends = [edges[:-1], edges[1:] - 1 if whole else edges[1:]]
        told = [
            one.astype("datetime64[D]").astype(str) if kind == "date" else [f"{x:.6g}" for x in one] for one in ends
        ]
        labels = [f"{a} to {b}" for a, b in zip(*told, strict=True)]
        return [*zip(labels, map(int, held), strict=True), *missing]
    order = np.argsort(-rows, kind="stable")[:BARS] if numbers is None else np.arange(known)
    labels = v.texts(values.take(order)).to_pylist()
    shown = [(clipped(label), int(n)) for label, n in zip(labels, rows[order], strict=True)]
    rest = int(rows.sum() - rows[order].sum())
    return [*shown, *([(f"{known - len(shown):,} other values", rest)] if rest else []), *missing]


def _edges(low: float, high: float, *, whole: bool) -> Any:
    """The ends of equal intervals; of whole numbers each holds equally many."""
    import numpy as np

    if not whole:
        return np.linspace(low, high, BARS + 1)
    width = -(-int(high - low + 1) // BARS)
    return low + width * np.arange(-(-int(high - low + 1) // width) + 1, dtype=np.float64)


def rows(desk: Desk, start: int) -> dict[str, Any]:
    """A page of rows as they stand in the table."""
    table = desk.whole().table
    start = min(max(start, 0), max(table.records - 1, 0) // PAGE * PAGE)
    taken = {c.name: c.labels.take(c.codes[start : start + PAGE]).to_pylist() for c in table.columns}
    cells = [[clipped(value, 40) for value in row] for row in zip(*taken.values(), strict=True)]
    return {"start": start, "rows": cells, "columns": list(taken), "records": table.records}


# -- actions ---------------------------------------------------------------------------------------------------------


def _columns(session: Session) -> list[dict[str, Any]]:
    run = session.want("profile", person=session.job.get("person"))
    if run.status != "done":
        raise InputError("the table is still being read", do="wait a moment")
    columns: list[dict[str, Any]] = run.result["profile"]["columns"]
    return columns


def set_role(session: Session, *, column: str, value: str) -> None:
    """Give a column another role."""
    if column not in [one["name"] for one in _columns(session)]:
        raise InputError(f'no column "{column}" in the table', do="reload the page")
    job = with_role(session.job, column, value, session.opened.first)
    session.record(f"{column}: {WORDS[value]}", job)


def set_roles(session: Session, *, columns: list[str], value: str) -> None:
    """Give several columns a role in one step."""
    known = [one["name"] for one in _columns(session)]
    if not columns or not all(one in known for one in columns):
        raise InputError("no column is listed" if not columns else "a column is not in the table", do="reload the page")
    if value in ("person", "weights") and len(columns) > 1:
        raise InputError("one column alone can have this role", do="choose it at the column")
    job = session.job
    for column in columns:
        job = with_role(job, column, value, session.opened.first)
    many = columns[0] if len(columns) == 1 else f"{len(columns)} columns"
    session.record(f"{many}: {WORDS[value]}", job)


def set_kind(session: Session, *, column: str, value: str) -> None:
    """Read a column as another kind of values, if all of them are of that kind."""
    if roles_in(session.job).get(column) not in READ_AS or value not in KINDS:
        raise InputError("the page sent something that the studio does not know", do="reload the page")
    job = with_kind(session.job, column, value)
    run = session.waited(session.want("hierarchy", column=column, document=alone(job, column, True)))
    if run.status == "failed":
        raise InputError(run.said)
    session.record(f"{column}: read as {value}", job)


def allow(session: Session, *, column: str, value: str) -> None:
    """Say why a column that looks like an identifier may be published."""
    if column not in [one["name"] for one in _columns(session)]:
        raise InputError(f'no column "{column}" in the table', do="reload the page")
    job = session.job
    reasons = {name: text for name, text in job.get("allow", {}).items() if name != column}
    reasons |= {column: value.strip()} if value.strip() else {}
    job = {key: given for key, given in job.items() if key != "allow"} | ({"allow": reasons} if reasons else {})
    session.record(f"{column}: why it may be published", job)


# -- the page --------------------------------------------------------------------------------------------------------


def render(session: Session, query: Mapping[str, str]) -> Html:
    """The columns with their roles, who is unique, and pages of rows."""
    run = session.want("profile", person=session.job.get("person"))
    lead = "Say what each column is for. jali suggests a role from names and values; you decide."
    if run.result is None:
        return joined([head("Data", lead), waiting(run, "Reading the table and looking at each column …")])
    if "profile" not in run.result:
        return joined([head("Data", lead), _early(run.result), _rows(session, query)])
    made = run.result["profile"]
    return page_part(joined([
        head("Data", lead), _glance(made), _summary(session, made, run.result["notes"]),
        _list(session, made, run.result["bars"]), _unique(made), _questions(made), _rows(session, query),
    ]))  # fmt: skip


def _early(found: Mapping[str, Any]) -> Html:
    """What is known as soon as the table was read, before roles can be suggested."""
    items = [
        element("li", element("div", element("h3", c["name"]), element("p", c["kind"], class_="kind"), class_="what"),
                element("div", _picture(at, c["name"], found["bars"][c["name"]]), class_="spread"),
                element("ul", element("li", f"{c['values']:,} values"), class_="facts"))
        for at, c in enumerate(found["columns"])
    ]  # fmt: skip
    figures = glance({"Rows": f"{found['rows']:,}", "Columns": str(len(items))})
    wait = element("p", "jali looks for what makes people unique, and suggests roles in a moment …", aria_busy="true")
    return joined([figures, wait, element("h2", "Columns"), element("ul", *items, class_="columns")])


def _glance(made: Mapping[str, Any]) -> Html:
    by_size = made["uniques"]["by_size"]
    figures = {"Rows": f"{made['rows']:,}", "People": f"{made['people']:,}", "Columns": f"{len(made['columns'])}"}
    if by_size:
        figures[f"Unique by at most {len(by_size)} columns"] = percent(by_size[-1] / made["people"])
    figures["Unique by all quasi-identifiers"] = percent(made["together"]["unique"] / made["people"])
    return glance(figures)


def _summary(session: Session, made: Mapping[str, Any], notes: list[str]) -> Html:
    """The red flags of all columns in one place, and what reading the file decided."""
    roles = roles_in(session.job)
    named = [c["name"] for c in made["columns"] if c["role"] == "identifier"]
    exposed = [name for name in named if roles.get(name) in PUBLISHED]
    parts: list[object] = []
    if exposed:
        told = "looks like an identifier and is" if len(exposed) == 1 else "look like identifiers and are"
        parts.append(element("p", element("b", "⚑ Red flag. "), f"{listed(exposed)} {told} published.", class_="flag"))
    elif named:
        told = "looks like an identifier and is" if len(named) == 1 else "look like identifiers and are"
        parts.append(element("p", element("b", "⚑ "), f"{listed(named)} {told} not published.", class_="flag calm"))
    if session.opened.stale:
        told = "was written again since the last step of this history. Check that roles and hierarchies still fit it."
        parts.append(element("p", f"{session.opened.data.name} {told}", class_="flag soft", id="stale"))
    doubtful = [c["name"] for c in made["columns"] if not c["sure"]]
    if doubtful:
        more = len(doubtful) - FEW
        some = f"{', '.join(doubtful[:FEW])} and {more} more; search for “check” below"
        told = some if more > 0 else listed(doubtful)
        parts.append(element("p", f"Worth a look, since jali is not sure: {told}.", class_="flag soft"))
    if notes:
        parts.append(element("details", element("summary", "How the file was read"),
                             bullets([sentence(text) for text in notes]), id="notes"))  # fmt: skip
    return joined(parts)


def _list(session: Session, made: Mapping[str, Any], bars: Mapping[str, Any]) -> Html:
    roles = roles_in(session.job)
    allowed, kinds = session.job.get("allow", {}), session.job.get("types", {})
    items = [
        _column(
            at,
            column,
            roles.get(column["name"], "left out"),
            kind=kinds.get(column["name"], column["kind"]),
            bars=bars[column["name"]],
            people=made["people"],
            allowed=allowed,
        )
        for at, column in enumerate(made["columns"])
    ]
    said = element("h2", "Columns", id="columns-title")
    tools = [_several(len(items))] if len(items) > FEW else []
    return joined([said, *tools, element("ul", "\n", joined(items), "\n", class_="columns", id="columns",
                                         aria_labelledby="columns-title")])  # fmt: skip


def _several(size: int) -> Html:
    """A field that narrows the columns, and a role for all that are left."""
    options = [element("option", f"{_short(one)}: {WORDS[one]}", value=one) for one in ROLES
               if one not in ("person", "weights")]  # fmt: skip
    role = element("label", element("span", "Role of all that are listed", class_="label"),
                   element("select", *options, name="value", id="roles-value"), class_="entry")  # fmt: skip
    give = element("button", "Give them this role", type="submit", class_="button", id="roles")
    form = element("form", role, give, data_listed="columns", **acting("roles"))
    return element("div", narrowed("Search columns by name, kind or role", "columns", size, id_="search-columns"), form,
                   class_="several")  # fmt: skip


def _column(
    at: int, column: Mapping[str, Any], role: str, *, kind: str, bars: list[tuple[str, int]], people: int,
    allowed: Mapping[str, str],
) -> Html:  # fmt: skip
    """One column: its name, distribution, figures, role, and why that."""
    name = column["name"]
    risky = column["role"] == "identifier" and role in PUBLISHED
    title = element("h3", name, id=f"column-{at}")
    what = element("p", kind, class_="kind")
    if role in READ_AS:
        known = {str(one): str(one) for one in KINDS}
        what = choice(f"Kind of {name}", "kind", known, kind, id_=f"kind-{at}", hidden=True, column=name)
    unique = percent(column["unique"] / people)
    facts = [f"{column['values']:,} values", f"{unique} unique", f"separation {percent(column['separation'])}"]
    facts += [f"{column['missing']:,} missing"] if column["missing"] else []
    chosen = choice(f"Role of {name}", "role", {one: f"{_short(one)}: {WORDS[one]}" for one in ROLES}, role,
                    id_=f"role-{at}", hidden=True, column=name)  # fmt: skip
    parts = [
        element("div", title, what, element("p", *_why(column, role), class_="why"), class_="what"),
        element("div", _picture(at, name, bars), class_="spread"),
        element("ul", *(element("li", fact) for fact in facts), class_="facts"),
        element("div", chosen, *_reason(at, name, allowed.get(name, "")) if risky else (), class_="role"),
    ]
    shown = f"role-{role.replace(' ', '-')}" + (" risky" if risky else "")
    text = f"{name} {kind} {_short(role)} {'check' if not column['sure'] else ''}".lower()
    return element("li", *parts, class_=shown, aria_labelledby=f"column-{at}", data_text=text, data_own=name)


def _short(role: str) -> str:
    return {"quasi": "quasi-identifier", "person": "person", "weights": "weights"}.get(role, role)


def _why(column: Mapping[str, Any], role: str) -> Iterator[object]:
    """Why jali suggests a role, marked where the person chose another or jali is not sure."""
    if column["role"] == "identifier":
        yield element("b", "⚑ ", class_="sign-flag")
    if role != column["role"]:
        yield element("b", f"jali suggests {_short(column['role'])}: ")
    yield sentence(column["reason"])
    if not column["sure"]:
        yield element("b", " Please check.")


def _reason(at: int, name: str, given: str) -> tuple[Html, ...]:
    told = {"type": "text", "value": given, "id": f"allow-{at}", "autocomplete": "off"}
    field = element("input", **told, **acting("allow", column=name))
    return (element("label", element("span", "Why it may be published", class_="label"), field, class_="entry"),)


def _picture(at: int, name: str, bars: list[tuple[str, int]]) -> Html:
    """The distribution as a small picture that also says its figures."""
    largest = max((n for _, n in bars), default=1) or 1
    wide = 160 / max(len(bars), 1)
    drawn = [
        element("rect", element("title", f"{label}: {n:,}"), x=f"{i * wide:.1f}", y=f"{40 - 38 * n / largest:.1f}",
                width=f"{max(wide - 1.5, 1):.1f}", height=f"{max(38 * n / largest, 0.6):.1f}",
                class_="gone" if label == "missing" else None)
        for i, (label, n) in enumerate(bars)
    ]  # fmt: skip
    most = sorted(bars, key=lambda one: -one[1])[:3]
    told = f"Distribution of {name}; most rows: " + ", ".join(f"{label} {n:,}" for label, n in most)
    ends = [bars[0][0], bars[-1][0]] if bars and " to " in bars[0][0] else []
    ends = [ends[0].split(" to ")[0], ends[1].split(" to ")[-1]] if ends else [f"{label}" for label, _ in most[:1]]
    under = element("p", *(element("span", text) for text in ends), class_="ends", aria_hidden="true")
    drawing = element("svg", element("title", told, id=f"spread-{at}"), *drawn, viewBox="0 0 160 40", role="img",
                      aria_labelledby=f"spread-{at}", preserveAspectRatio="none", class_="bars")  # fmt: skip
    return joined([drawing, under])


def _unique(made: Mapping[str, Any]) -> Html:
    sets = [(" + ".join(one["columns"]), f"{one['people']:,}") for one in made["uniques"]["sets"][:12]]
    if not sets:
        return Html("")
    table = html_table(("Columns", "People"), sets, numbers=(1,),
                       caption="The smallest sets of columns that make people unique")  # fmt: skip
    return element("details", element("summary", "Who is unique"), table, id="unique")


def _questions(made: Mapping[str, Any]) -> Html:
    asked = bullets([f"{one['title']} {sentence(one['answer'])}" for one in made["gdpr"]])
    harbor = [(one["title"], ", ".join(one["columns"]), one["answer"]) for one in made["safe_harbor"]]
    table = html_table(("Class", "Columns", "Answer"), harbor, caption="HIPAA Safe Harbor", named=True)
    return element("details", element("summary", "What two laws ask"), asked, table, id="laws")


def _rows(session: Session, query: Mapping[str, str]) -> Html:
    """A page of rows; only such pages travel."""
    start = int(query["start"]) if query.get("start", "").isdigit() else 0
    run = session.want("rows", start=min(start, 1 << 40))
    if run.result is None:
        return element("section", element("h2", "Rows"), waiting(run, "Reading rows …"), id="rows")
    found = run.result
    first, last = found["start"] + 1, found["start"] + len(found["rows"])
    table = html_table(found["columns"], found["rows"], caption=f"Rows {first:,} to {last:,} of {found['records']:,}")
    links = []
    if found["start"]:
        links.append(element("a", "← Earlier rows", href=f"#data?start={found['start'] - PAGE}", id="earlier"))
    if last < found["records"]:
        links.append(element("a", "Later rows →", href=f"#data?start={found['start'] + PAGE}", id="later"))
    return element("section", element("h2", "Rows"), table, element("p", *links, class_="pages"), id="rows")


VIEW = View(
    "data", "Data", render,
    actions={"role": set_role, "roles": set_roles, "kind": set_kind, "allow": allow},
    tasks={"profile": ("long", profile), "rows": ("quick", rows)},
)  # fmt: skip
