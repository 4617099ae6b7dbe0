"""The view of promises: chosen in words, with what the table keeps of them already and how far one can go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jali.core.text import Html, element, html_table, joined, percent, sentence
from jali.errors import InputError, JaliError
from jali.studio.state import Document, read_by, roles_in
from jali.studio.views import method, policy
from jali.studio.views.view import View, acting, button, glance, head, page_part, plain, spelled, waiting

if TYPE_CHECKING:
    from jali.principles.base import Principle
    from jali.studio.session import Session
    from jali.studio.worker import Desk


class Words(NamedTuple):
    """A principle as the page offers it."""

    says: str  # the promise in words; {column} is the sensitive one
    name: str  # what the field calls it
    first: dict[str, Any]  # its parameters when it is added
    fields: dict[str, str]  # what its parameters are called


WORDS: dict[str, Words] = {
    "KAnonymity": Words(
        "Nobody can be told from at least 4 other people", "k-anonymity", {"k": 5}, {"k": "People who look alike"}),
    "FrequencyDiversity": Words(
        "Nobody’s {column} can be guessed better than 1 in 3", "frequency diversity", {"l": 3},
        {"l": "A guess is right 1 time in"}),
    "DistinctDiversity": Words(
        "Whoever looks alike has at least 2 different values of {column}", "distinct diversity", {"l": 2},
        {"l": "Different values"}),
    "EntropyDiversity": Words(
        "{column} stays as uncertain as 3 equally frequent values", "entropy diversity", {"l": 3},
        {"l": "As uncertain as equally frequent values", "dont_care": "Values that may be learnt"}),
    "RecursiveDiversity": Words(
        "The most frequent {column} does not stand out, even when other values are ruled out", "recursive diversity",
        {"c": 3, "l": 2},
        {"c": "Fewer people than times all others (c)", "l": "With l − 2 values ruled out (l)",
         "dont_care": "Values that may be learnt", "protected": "Values that are rare and must stay so",
         "share": "Largest share of those"}),
    "TCloseness": Words(
        "Whoever looks alike has {column} as everybody has", "t-closeness", {"t": 0.2},
        {"t": "Farthest from everybody’s distribution (0 to 1)", "distance": "How far values are apart"}),
    "AlphaAnonymity": Words(
        "Nobody can be told from others, and no {column} is held by most of those", "(α, k)-anonymity",
        {"alpha": 0.5, "k": 5},
        {"alpha": "Largest share of one value", "k": "People who look alike", "values": "Only for these values"}),
    "Safety": Words(
        "{column} stays uncertain even for somebody who knows facts about others", "(c, k)-safety", {"c": 0.7, "k": 1},
        {"c": "No belief reaches (0 to 1)", "k": "Facts that are known"}),
    "MultiAttribute": Words(
        "A promise for each sensitive column, even when a person’s other ones are known", "multi-attribute",
        {"principle": {"name": "DistinctDiversity", "l": 2}}, {}),
}  # fmt: skip
"""The promises that can be chosen. δ-presence is not among them: it needs a second table, and has a form of its own."""
PROMISED = "What the release will promise"
INNER = ("DistinctDiversity", "FrequencyDiversity", "EntropyDiversity", "RecursiveDiversity", "TCloseness")
"""The promises that can be made for each sensitive column in turn."""
DISTANCES = ("equal", "ordered", "hierarchical")
# -- tasks -----------------------------------------------------------------------------------------------------------


def reached(desk: Desk, document: Document) -> dict[str, Any]:
    """What the original keeps of the promises, and of the simplest ones for each column; how far one could go."""
    import jali
    from jali.principles.base import show
    from jali.risk.reach import reach

    table = desk.table(document)
    asked = desk.job(document).principles
    simple: list[Principle] = [jali.KAnonymity(2)]
    for column in table.sensitive:
        name = column.name
        simple += [jali.DistinctDiversity(1, sensitive=name), jali.FrequencyDiversity(1, sensitive=name),
                   jali.EntropyDiversity(1, sensitive=name), jali.TCloseness(1, sensitive=name)]  # fmt: skip
    found = reach(table, [*asked, *simple])
    told = [{
        "says": one.promise.promise(), "title": one.promise.title, "raw": show(one.raw), "most": show(one.most),
        "outside": one.outside, "against": one.against, "final": one.final,
        "sensitive": getattr(one.promise, "sensitive", None),
    } for one in found]  # fmt: skip
    return {"asked": told[: len(asked)], "simple": told[len(asked) :], "people": table.people}


# -- actions ---------------------------------------------------------------------------------------------------------


def add(session: Session, *, name: str, column: str = "") -> None:
    """Add a promise with its first parameters."""
    if name not in WORDS:
        raise InputError(f'no promise "{name}"', do="choose one of the list")
    made = {"name": name, **WORDS[name].first}
    if name not in ("KAnonymity", "MultiAttribute"):
        if not column:
            raise InputError("the promise is about a sensitive column", do="choose one, or give a column that role")
        made["sensitive"] = column
    _record(session, f"promise: {WORDS[name].name}", [*session.job.get("principles", []), made])


def change(session: Session, *, at: int, key: str, value: str) -> None:
    """Change a parameter of a promise."""
    promises = session.job.get("principles", [])
    if not 0 <= at < len(promises):
        raise InputError("there is no such promise any more", do="reload the page")
    promise = promises[at]
    inner = promise.get("principle") if key.startswith("principle.") else promise
    if not isinstance(inner, dict):
        raise InputError("there is no such promise any more", do="reload the page")
    own = key.removeprefix("principle.")
    if own == "name":
        new = {"name": value, **WORDS[value].first} if value in INNER else {"name": value}
        promises[at] = {**promise, "principle": new}
    else:
        given = _parameter(own, value)
        changed = {k: v for k, v in inner.items() if k != own} | ({} if given in ("", []) else {own: given})
        promises[at] = changed if inner is promise else {**promise, "principle": changed}
    _record(session, f"{WORDS[promise['name']].name}: {own} = {value.strip()}", promises)


def _parameter(key: str, text: str) -> Any:
    if key in ("dont_care", "protected", "values"):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text.strip() if key in ("distance", "sensitive") else plain(text.strip())


def remove(session: Session, *, at: int) -> None:
    """Take a promise back."""
    promises = session.job.get("principles", [])
    if not 0 <= at < len(promises):
        raise InputError("there is no such promise any more", do="reload the page")
    said = WORDS[promises[at]["name"]].name if promises[at].get("name") in WORDS else "a promise"
    _record(session, f"without {said}", [*promises[:at], *promises[at + 1 :]])


def _record(session: Session, said: str, promises: list[dict[str, Any]]) -> None:
    """Promises that can be made; jali says which cannot."""
    from jali.principles.base import from_dict

    for one in promises:
        from_dict(dict(one))
    job = {key: value for key, value in session.job.items() if key != "principles"}
    session.record(said, job | ({"principles": promises} if promises else {}))


# -- the page --------------------------------------------------------------------------------------------------------


def render(session: Session, query: Mapping[str, str]) -> Html:
    """The promises with what they would take, the list to add one, the method, the policy."""
    lead = "Say what nobody may learn. jali searches for the release that keeps it and loses least."
    top = head("Promises", lead)
    if not session.job:
        return joined([top, waiting(session.want("profile", person=None), "Reading the table …")])
    job = session.job
    problem = session.opened.problem()
    parts: list[object] = [top]
    if problem:
        parts.append(element("div", element("p", sentence(problem)), class_="problem", role="alert"))
        found = None
    else:
        known = {"principles": job["principles"]} if "principles" in job else {}
        run = session.want("reached", document=read_by(job) | known)
        found = run.result
        if run.status == "failed":
            parts.append(waiting(run, ""))
    hides = job.get("method") == method.HIDES
    chosen = element("section", element("h2", PROMISED), method.presence(session), id="chosen") if hides else (
        joined([_chosen(job, found), _adding(job), method.presence(session)]))  # fmt: skip
    parts += [chosen, _raw(job, found), method.section(session), policy.section(session, words=True)]
    return page_part(joined(parts))


def _chosen(job: Mapping[str, Any], found: Mapping[str, Any] | None) -> Html:
    promises = job.get("principles", [])
    title = element("h2", PROMISED)
    if not promises:
        none = element("p", "Nothing yet. Without a promise jali publishes nothing.", class_="flag soft")
        return element("section", title, none, id="chosen")
    columns = [name for name, role in roles_in(job).items() if role == "sensitive"]
    cards = [_card(at, one, found["asked"][at] if found else None, found["people"] if found else 0, columns)
             for at, one in enumerate(promises)]  # fmt: skip
    return element("section", title, element("ul", *cards, class_="cards-of"), id="chosen")


def _card(
    at: int, given: Mapping[str, Any], found: Mapping[str, Any] | None, people: int, columns: Sequence[str]
) -> Html:
    """A promise: what it says, its parameters, what the table keeps of it, and what stands against it."""
    from jali.principles.base import from_dict

    name = str(given.get("name", ""))
    try:
        says = sentence(from_dict(dict(given)).promise())
    except JaliError as problem:
        says = sentence(str(problem))
    words = WORDS.get(name)
    title = element("h3", says, element("span", words.name if words else name, class_="kind"))
    state = _state(found, people) if found else element("p", "Looking at the table …", class_="quiet", aria_busy="true")
    take = button("Take it back", "remove", kind="plain", id_=f"remove-{at}", at=at)
    fields = element("div", *_fields(at, given, columns), class_="fields") if words else ""
    kind = "against" if found and found["against"] else "kept" if found and not found["outside"] else ""
    return element("li", title, fields, state, element("p", take), class_=f"promise {kind}".strip())


def _state(found: Mapping[str, Any], people: int) -> Html:
    if found["against"]:
        far = f" Everybody in one group reaches {found['most']}." if found["most"] != "nan" else ""
        return element("p", element("b", "✕ This cannot be kept: "), f"{found['against']}.{far}", class_="flag")
    if not found["outside"]:
        return element("p", element("b", "✓ "), "The table keeps it as it is.", class_="flag calm")
    share = percent(found["outside"] / max(people, 1))
    short = f"{found['outside']:,} people ({share}) are in groups that fall short."
    best = "; no release does better" if found["final"] else ""
    return element("p", f"As it is, the table reaches {found['raw']}: {short} Everybody in one group would reach "
                   f"{found['most']}{best}.", class_="quiet")  # fmt: skip


def _fields(at: int, given: Mapping[str, Any], columns: Sequence[str], prefix: str = "") -> Iterator[Html]:
    """The parameters of a promise, each of which acts when it is changed."""
    words = WORDS[str(given["name"])]
    for key, label in words.fields.items():
        yield _field(f"{prefix}{key}", label, given.get(key), at, DISTANCES if key == "distance" else ())
    if words.fields and given["name"] != "KAnonymity" and not prefix:
        yield _field("sensitive", "About", given.get("sensitive"), at, columns)
    inner = given.get("principle")
    if isinstance(inner, Mapping) and inner.get("name") in WORDS:
        names = tuple(dict.fromkeys([*INNER, str(inner["name"])]))
        yield _field("principle.name", "For each column", inner["name"], at, names)
        yield from _fields(at, inner, columns, "principle.")


def _field(key: str, label: str, given: Any, at: int, choices: Sequence[str]) -> Html:
    id_ = f"promise-{at}-{key.replace('.', '-')}"
    act = acting("change", at=at, key=key)
    said = element("span", label, class_="label")
    if choices:
        own = spelled(given) or choices[0]
        options = [element("option", one, value=one, selected="" if one == own else None) for one in choices]
        return element("label", said, element("select", *options, id=id_, **act), class_="entry")
    field = element("input", type="text", value=spelled(given), id=id_, autocomplete="off", **act)
    return element("label", said, field, class_="entry")


def _adding(job: Mapping[str, Any]) -> Html:
    """The list of promises in words; those about a column once for each sensitive one."""
    columns = [name for name, role in roles_in(job).items() if role == "sensitive"]
    rows: list[Html] = []
    for name, words in WORDS.items():
        about = [""] if "{column}" not in words.says else columns
        if name == "MultiAttribute" and len(columns) < 2:
            continue
        for at, column in enumerate(about):
            says = words.says.replace("{column}", column)
            press = element("button", "Add", type="button", class_="button", id=f"add-{name}-{at}",
                            aria_label=f"Add: {says}", **acting("add", name=name, column=column))  # fmt: skip
            rows.append(element("li", press, element("span", says, element("i", words.name, class_="kind"))))
    hint = [] if columns else [element("p", "No column is sensitive. ", element("a", "Say which", href="#data"),
                                       " to promise something about it.", class_="quiet")]  # fmt: skip
    told = element("summary", "Add a promise")
    return element("details", told, *hint, element("ul", *rows, class_="offers"), id="adding",
                   open=None if job.get("principles") else "")  # fmt: skip


def _raw(job: Mapping[str, Any], found: Mapping[str, Any] | None) -> Html:
    """What the table reaches as it is, and the most that any release can."""
    title = element("h2", "How far one can go")
    if not found:
        return Html("")
    words = {"distinct diversity": "Different values", "frequency diversity": "A guess is right 1 time in",
             "entropy diversity": "As uncertain as equally frequent values",
             "t-closeness": "Distance from everybody’s distribution"}  # fmt: skip
    first, *rest = found["simple"]
    rows = [("Everybody", "People who look alike", first["raw"], first["most"])]
    rows += [(one["sensitive"], words[one["title"]], one["raw"], one["most"]) for one in rest if one["most"] != "nan"]
    table = html_table(("About", "What", "The table as it is", "At most"), rows, numbers=(2, 3), named=True,
                       caption="What groups of people who look alike show")  # fmt: skip
    unique = glance({"People": f"{found['people']:,}", "Fewest who look alike": first["raw"],
                     "People whom nobody looks like": f"{first['outside']:,}"})  # fmt: skip
    return element("section", title, unique, table, id="raw")


VIEW = View(
    "promises", "Promises", render,
    actions={"add": add, "change": change, "remove": remove, **method.ACTIONS, **policy.ACTIONS},
    tasks={"reached": ("quick", reached), "population": ("quick", method.population)},
)  # fmt: skip
