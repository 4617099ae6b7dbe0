"""The view of promises: chosen in words, with what the table keeps of them already and how far one can go."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from jali.core.text import Html, bullets, element, html_table, joined, percent, sentence
from jali.errors import InputError, JaliError
from jali.job import METHODS, section_keys
from jali.studio.state import Document, read_by, roles_in
from jali.studio.views.fields import option_field, plain, spelled, typed
from jali.studio.views.view import View, acting, button, choice, glance, head, page_part, waiting

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
"""The promises that can be chosen. δ-presence is not among them: it is the promise of the method conceal."""
INNER = ("DistinctDiversity", "FrequencyDiversity", "EntropyDiversity", "RecursiveDiversity", "TCloseness")
"""The promises that can be made for each sensitive column in turn."""
DISTANCES = ("equal", "ordered", "hierarchical")
SAYS = {
    "generalize": "generalize: the same step of each hierarchy for everybody",
    "partition": "partition: groups of people, each shown by its own intervals",
    "recode": "recode: hierarchies step by step, where it is needed",
    "anatomize": "anatomize: quasi-identifiers as they are, sensitive values apart",
    "angel": "angel: batches and buckets in two tables",
    "marginals": "marginals: small tables of counts",
    "conceal": "conceal: hides who is in the table at all",
}
"""The methods as the page calls them; what they cost each other the page Explore says."""

TRANSPARENT = "The promises hold even for somebody who knows how jali chose the groups"
WHY_TRANSPARENT = (
    "This software is public: somebody can run it on every table that could be the original, and rule out those from "
    "which it would have made another release. A transparent release tells that person nothing more. Partition, angel, "
    "anatomize and conceal have a proof; others only where the sizes of groups are all that is promised. It costs some "
    "detail."
)


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


def set_method(session: Session, *, value: str) -> None:
    """Publish with another method."""
    if value not in METHODS:
        raise InputError(f'no method "{value}"', do=f"it is one of {', '.join(METHODS)}")
    session.record(f"method: {value}", session.job | {"method": value})


def set_option(session: Session, *, key: str, value: Any) -> None:
    """Give the method an option; an empty field leaves it to jali."""
    import jali

    job = session.job
    method = str(job.get("method", "generalize"))
    forms = section_keys(method)
    if key not in forms or not isinstance(value, (str, bool)):
        raise InputError(f'{method} has no option "{key}"', do="reload the page")
    given = value if isinstance(value, bool) else typed(forms[key], value)
    known = _choices(getattr(jali, METHODS[method]), key)
    if known and given not in known and given:
        raise InputError(f"{key} is none of {', '.join(known[1:])}", got=spelled(given), do="choose one of them")
    own = {k: v for k, v in job.get(method, {}).items() if k != key}
    own |= {} if given in ("", False) else {key: given}
    made = {k: v for k, v in job.items() if k != method} | ({method: own} if own else {})
    if given not in ("", False) and not forms[key].fits(given):
        raise InputError(f"{key} must be {forms[key].words}", got=spelled(given))
    session.record(f"{method}: {key} {spelled(given) or 'as jali chooses'}", made)


def set_policy(session: Session, *, value: str) -> None:
    """Judge the release by another policy."""
    from jali.studio.views.decide import set_policy as judged_by

    judged_by(session, value=value)


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
    parts += [_chosen(job, found), _adding(job), _raw(job, found), _method(job), _policy(job)]
    return page_part(joined(parts))


def _chosen(job: Mapping[str, Any], found: Mapping[str, Any] | None) -> Html:
    promises = job.get("principles", [])
    title = element("h2", "What the release will promise")
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


def _method(job: Mapping[str, Any]) -> Html:
    """How the release is made, and whether the promise holds against somebody who knows that."""
    import jali

    method = str(job.get("method", "generalize"))
    names = {name: SAYS[name] for name in METHODS if name != "conceal" or method == "conceal"}
    chosen = choice("Method", "method", names, method, id_="method")
    own = job.get(method, {})
    forms = section_keys(method)
    box = option_field(TRANSPARENT, "transparent", forms["transparent"], own.get("transparent"), id_="transparent",
                       **acting("option", key="transparent"))  # fmt: skip
    parts: list[object] = [chosen, box, element("p", WHY_TRANSPARENT, class_="hint")]
    against = _no_proof(job, method) if own.get("transparent") else ""
    if against:
        parts.append(element("p", element("b", "✕ This cannot be proved: "), f"{against}.", class_="flag"))
    function = getattr(jali, METHODS[method])
    rest = [option_field(key, key, form, own.get(key), id_=f"option-{key}", choices=_choices(function, key),
                         **acting("option", key=key))
            for key, form in forms.items() if key not in ("transparent", "public")]  # fmt: skip
    more = element("details", element("summary", "Options of the method"), element("div", *rest, class_="fields"),
                   id="options")  # fmt: skip
    return element("section", element("h2", "How it is made"), *parts, more, id="method-of")


def _choices(function: Any, key: str) -> tuple[str, ...]:
    """The words that an option can be, where it can be nothing else; the empty one leaves it to jali."""
    hint = inspect.signature(function, eval_str=True).parameters[key].annotation
    return ("", *get_args(hint)) if get_origin(hint) is Literal else ()


def _no_proof(job: Mapping[str, Any], method: str) -> str:
    """Why a transparent release of this job is refused; nothing where it has a proof."""
    from jali.principles.base import from_dict
    from jali.publish.transparent import answer, require_mixing

    try:
        promises = [from_dict(dict(one)) for one in job.get("principles", [])]
        if method in ("partition", "angel", "conceal"):
            require_mixing(promises)
            return ""
    except InputError as problem:
        return str(problem)
    own = job.get(method, {})
    first = {"metric": "loss", "objective": "granularity", "buckets": "anatomy", "levels_given": "levels" in own}
    found = answer({"name": method, **first, **own}, promises)
    return "" if found.proved else f"{method}: {found.why}; {found.do}"


def _policy(job: Mapping[str, Any]) -> Html:
    """Who may read the release, and what must hold for that, in words."""
    from jali.risk.policy import policy_of
    from jali.studio.views.decide import POLICIES

    given = job.get("policy", {})
    policy = policy_of(given or None)
    preset = str(given.get("preset", "public"))
    chosen = choice("Who may read the release", "policy", POLICIES, preset, id_="policy")
    own = [element("p", "The job has thresholds of its own.", class_="quiet")] if set(given) - {"preset"} else []
    said = "The verdict of the last step follows from these thresholds. Promises that meet them make it safe."
    return element("section", element("h2", "What the verdict asks"), element("p", said, class_="quiet"), chosen, *own,
                   bullets(list(policy.words())), id="policy-of")  # fmt: skip


VIEW = View(
    "promises", "Promises", render,
    actions={"add": add, "change": change, "remove": remove, "method": set_method, "option": set_option,
             "policy": set_policy},
    tasks={"reached": ("quick", reached)},
)  # fmt: skip
