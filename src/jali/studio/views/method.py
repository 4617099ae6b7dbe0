"""How the release is made, as the page of promises shows it: the method, transparency, options, and who is present."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from jali.core.text import Html, element, percent, sentence
from jali.errors import InputError
from jali.job import METHODS, section_keys
from jali.studio.state import Document, checked, read_by
from jali.studio.views.view import (
    Action,
    acting,
    button,
    choice,
    form_of_fields,
    known_names,
    named_field,
    option_field,
    plain,
    spelled,
    typed,
)

if TYPE_CHECKING:
    from jali.studio.session import Run, Session
    from jali.studio.worker import Desk

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
HIDES = "conceal"
FIRST = {"low": "0.01", "high": "0.5"}
"""The bounds of presence that the form begins with."""
TRANSPARENT = "The promises hold even for somebody who knows how jali chose the groups"
WHY_TRANSPARENT = (
    "This software is public: somebody can run it on every table that could be the original, and rule out those from "
    "which it would have made another release. A transparent release tells that person nothing more. Partition, angel, "
    "anatomize and conceal have a proof; others only where the sizes of groups are all that is promised. It costs some "
    "detail."
)
WHY_PRESENCE = (
    "In some tables being listed is the secret: a register of diabetics, of offenders, of people who were tested. "
    "Then nobody should be able to tell that a neighbour is in it. jali can hide that if it knows among whom: it needs "
    "a second table, of everybody whom an attacker may think of, such as a list of residents. That table has the same "
    "quasi-identifiers, and each person of this one once. It is read, and never published."
)
ALONE = (
    "Hiding who is in the table is the one promise of its method: the other promises leave the job. "
    "Going back to another method brings them back."
)


# -- tasks -----------------------------------------------------------------------------------------------------------


def population(desk: Desk, document: Document) -> dict[str, Any]:
    """How many people of the population are in the table, and why the bounds cannot be kept, if so."""
    from jali.risk.reach import presence

    desk.say("Looking for everybody in the population")
    job = desk.job(document)
    found = presence(desk.table(document), job.public(), low=job.options["low"], high=job.options["high"])
    return {"people": found.people, "present": found.present, "against": found.against}


# -- actions ---------------------------------------------------------------------------------------------------------


def set_method(session: Session, *, value: str) -> None:
    """Publish with another method; where that hides nobody's presence, the promises before it come back."""
    if value not in METHODS or (value == HIDES and HIDES not in session.job):
        known = [name for name in METHODS if name != HIDES]
        raise InputError(f'no method "{value}"', do=f"it is one of {', '.join(known)}")
    job = session.job
    if job.get("method") == HIDES and value != HIDES:
        job = {key: kept for key, kept in job.items() if key != HIDES} | _promises_before(session)
    session.record(f"method: {value}", job | {"method": value})


def _promises_before(session: Session) -> Document:
    """The promises of the last job that hid nobody's presence, about columns that are still sensitive."""
    state, job = session.opened, session.job
    for _, before in reversed(state.history[: state.at + 1]):
        if before.get("method") != HIDES and "principles" in before:
            columns = {None, *job.get("sensitive", ())}
            kept = [one for one in before["principles"] if one.get("sensitive") in columns]
            return {"principles": kept} if kept else {}
    return {}


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


def conceal(session: Session, *, public: str, low: str, high: str) -> None:
    """Hide who is in the table, among the people of another one; both are looked at before the job says so."""
    from jali.principles import DeltaPresence

    state, job = session.opened, session.job
    if not public.strip():
        raise InputError("no table of the population was named", do="name a file below the folder of the table")
    found = session.folder.inside(public.strip())
    if not found.is_file():
        raise InputError(f"no file {public.strip()}", do="name a file with everybody whom an attacker may think of")
    bounds = DeltaPresence(plain(low.strip()), plain(high.strip()))
    named = found.relative_to(state.base).as_posix() if found.is_relative_to(state.base) else str(found)
    own = {key: value for key, value in job.get(HIDES, {}).items() if key not in ("public", "low", "high")}
    own |= {"public": named, "low": float(bounds.low), "high": float(bounds.high)}
    made = {key: value for key, value in job.items() if key != "principles"} | {"method": HIDES, HIDES: own}
    checked(made, state.base, state.folder)
    run = session.waited(_looked(session, made))
    if run.status == "failed":
        raise InputError(run.said)
    session.record(f"hide who is in the table: {spelled(own['low'])} to {spelled(own['high'])}", made)


def _looked(session: Session, job: Document) -> Run:
    bounds = {key: job[HIDES][key] for key in ("public", "low", "high")}
    return session.want("population", document=read_by(job) | {"method": HIDES, HIDES: bounds})


ACTIONS: dict[str, Action] = {"method": set_method, "option": set_option, "conceal": conceal}


# -- the page --------------------------------------------------------------------------------------------------------


def section(session: Session) -> Html:
    """How the release is made, and whether the promise holds against somebody who knows that."""
    import jali

    job = session.job
    method = str(job.get("method", "generalize"))
    names = {name: SAYS[name] for name in METHODS if name != HIDES or method == HIDES}
    chosen = choice("Method", "method", names, method, id_="method")
    own = job.get(method, {})
    forms = section_keys(method)
    box = option_field(TRANSPARENT, "transparent", forms["transparent"], own.get("transparent"), id_="transparent",
                       **acting("option", key="transparent"))  # fmt: skip
    parts: list[object] = [chosen, box, element("p", WHY_TRANSPARENT, class_="hint")]
    against = no_proof(job, method) if own.get("transparent") else ""
    if against:
        parts.append(element("p", element("b", "✕ This cannot be proved: "), f"{against}.", class_="flag"))
    function = getattr(jali, METHODS[method])
    rest = [option_field(key, key, form, own.get(key), id_=f"option-{key}", choices=_choices(function, key),
                         **acting("option", key=key))
            for key, form in forms.items() if key not in ("transparent", "public", "low", "high")]  # fmt: skip
    more = element("details", element("summary", "Options of the method"), element("div", *rest, class_="fields"),
                   id="options")  # fmt: skip
    return element("section", element("h2", "How it is made"), *parts, more, id="method-of")


def _choices(function: Any, key: str) -> tuple[str, ...]:
    """The words that an option can be, where it can be nothing else; the empty one leaves it to jali."""
    hint = inspect.signature(function, eval_str=True).parameters[key].annotation
    return ("", *get_args(hint)) if get_origin(hint) is Literal else ()


def no_proof(job: Mapping[str, Any], method: str) -> str:
    """Why a transparent release of this job is refused; nothing where it has a proof."""
    from jali.principles.base import from_dict
    from jali.publish.transparent import answer, require_mixing

    try:
        promises = [from_dict(dict(one)) for one in job.get("principles", [])]
        if method in ("partition", "angel", HIDES):
            require_mixing(promises)
            return ""
    except InputError as problem:
        return str(problem)
    own = job.get(method, {})
    first = {"metric": "loss", "objective": "granularity", "buckets": "anatomy", "levels_given": "levels" in own}
    found = answer({"name": method, **first, **own}, promises)
    return "" if found.proved else f"{method}: {found.why}; {found.do}"


# -- who is present --------------------------------------------------------------------------------------------------


def presence(session: Session) -> Html:
    """The promise about who is in the table: its card where the job makes it, else the form that does."""
    job = session.job
    own = job.get(HIDES, {})
    if job.get("method") != HIDES:
        summary = element("summary", "Is it a secret who is in the table at all?")
        return element("details", summary, element("p", WHY_PRESENCE), element("p", ALONE, class_="quiet"),
                       _form(session, own, "Hide who is in it"), id="presence")  # fmt: skip
    says = f"Everybody of {own['public']} is in the table with a probability of {own['low']} to {own['high']}."
    title = element("h3", says, element("span", "δ-presence", class_="kind"))
    run = _looked(session, job)
    found = run.result
    state = element("p", sentence(run.said) if run.status == "failed" else "Looking at both tables …", class_="quiet")
    if found is not None:
        share = percent(found["present"] / max(found["people"], 1))
        told = f"{found['present']:,} of {found['people']:,} people ({share}) are in the table."
        state = element("p", element("b", "✕ This cannot be kept: "), f"{found['against']}.", class_="flag") if (
            found["against"]) else element("p", f"{told} The nearer both bounds are to that share, the less a "
                                           "release tells.", class_="quiet")  # fmt: skip
    back = button("Promise something else", "method", kind="plain", id_="reveal", value=_method_before(session))
    kind = "promise against" if found is not None and found["against"] else "promise"
    card = element("li", title, _form(session, own, "Change the bounds"), state, element("p", back), class_=kind)
    return element("ul", card, class_="cards-of", id="presence")


def _method_before(session: Session) -> str:
    """The method of the last job that hid nobody's presence."""
    steps = reversed(session.opened.history[: session.opened.at + 1])
    known = (str(job.get("method", "generalize")) for _, job in steps)
    return next((method for method in known if method != HIDES), "partition")


def _form(session: Session, own: Mapping[str, Any], press: str) -> Html:
    state = session.opened
    known = [name for name in session.folder.tables() if name != session.folder.relative(state.data)]
    shown = ""
    if own.get("public"):
        shown = session.folder.relative(session.folder.inside(str(own["public"]), state.base))
    hint = f"a file below {session.folder.root.name}"
    fields = [
        known_names("tables", known),
        element("div", named_field("Table of the population", "public", id_="public", names="tables", value=shown,
                                   hint=hint),
                named_field("At least (0 to 1)", "low", id_="low", value=spelled(own.get("low")) or FIRST["low"],
                            hint="0 allows to be sure that somebody is not in it"),
                named_field("At most (0 to 1)", "high", id_="high", value=spelled(own.get("high")) or FIRST["high"],
                            hint="how sure an attacker may be that somebody is in it"), class_="fields"),
    ]  # fmt: skip
    return form_of_fields("conceal", fields, press, id_="conceal")
