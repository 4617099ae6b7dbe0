"""What a view is, the elements that views share, and the fields in which values of a job are typed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jali.core.forms import BOOL, Form
from jali.core.text import Html, element, joined, sentence

if TYPE_CHECKING:
    from jali.studio.session import Run, Session
    from jali.studio.worker import Lane, Task


Render = Callable[["Session", Mapping[str, str]], Html]
Action = Callable[..., Any]


@dataclass(frozen=True)
class View:
    """A step of the way: how it is shown, what it can do, and the tasks that its worker runs.

    `render(session, query)` gives the HTML from the job and from results. An action, `action(session, **arguments)`,
    is what a button or a field does: it records an edit of the job or begins a task. A task,
    `task(desk, **arguments)`, runs in the worker and returns what JSON can hold.
    """

    name: str
    title: str
    render: Render
    actions: Mapping[str, Action] = field(default_factory=dict)
    tasks: Mapping[str, tuple[Lane, Task]] = field(default_factory=dict)
    script: str | None = None  # a module of static/ with `attach(root, studio)`, where the common script is not enough


_STYLE = re.compile(r' style="')


def page_part(html: Html) -> Html:
    """HTML for a page whose policy forbids styles in it: the common script sets them from another attribute.

    Within a text the quote is escaped, so only attributes are found.
    """
    return Html(_STYLE.sub(' data-style="', html))


def acting(action: str, **arguments: object) -> dict[str, str]:
    """The attributes of an element that does something: an action of its view, and what it is given."""
    return {"data_act": action, "data_args": json.dumps(arguments, ensure_ascii=False)}


def button(text: str, action: str, *, kind: str = "", id_: str | None = None, **arguments: object) -> Html:
    """A button that does something."""
    return element(
        "button", text, type="button", class_=f"button {kind}".strip(), id=id_, **acting(action, **arguments)
    )


def choice(
    label: str, action: str, options: Mapping[str, str], chosen: str, *, id_: str, hidden: bool = False,
    **arguments: object,
) -> Html:  # fmt: skip
    """A list to choose from; the action is given `value`."""
    items = [
        element("option", text, value=value, selected="" if value == chosen else None)
        for value, text in options.items()
    ]
    name = element("span", label, class_="unseen" if hidden else "label")
    return element("label", name, element("select", *items, id=id_, **acting(action, **arguments)), class_="choice")


def entry(label: str, name: str, value: str = "", *, id_: str, hint: str = "", kind: str = "text") -> Html:
    """A field of a form."""
    under = [element("span", hint, class_="hint", id=f"{id_}-hint")] if hint else []
    described = f"{id_}-hint" if hint else None
    given = {"type": kind, "name": name, "value": value, "id": id_, "autocomplete": "off"}
    field_ = element("input", aria_describedby=described, **given)
    return element("label", element("span", label, class_="label"), field_, *under, class_="entry")


def tick_box(label: str, name: str, *, id_: str) -> Html:
    """A box of a form that is ticked or not."""
    box = element("input", type="checkbox", name=name, id=id_)
    return element("label", box, " ", label, class_="tick")


def head(title: str, *lead: object) -> Html:
    """The heading of a view and what it is for."""
    return element("header", element("h1", title), *(element("p", text, class_="lead") for text in lead), class_="view")


def waiting(run: Run, what: str) -> Html:
    """In place of a result: that it is being made, or why it could not be; a failed one can be tried again."""
    if run.status == "failed":
        again = button("Try again", "again", kind="first", number=run.number)
        return element("div", element("p", sentence(run.said)), element("p", again), class_="problem", role="alert")
    if run.status == "stopped":
        again = button("Begin again", "again", kind="first", number=run.number)
        return element("div", element("p", "Stopped. Nothing was changed."), element("p", again), class_="quiet")
    lines = [element("i", class_="line") for _ in range(6)]
    return element("div", element("p", what), joined(lines), class_="skeleton", aria_busy="true")


def narrowed(label: str, list_: str, size: int, *, id_: str, chosen: bool = False) -> Html:
    """A field that narrows a list to the items with these words, and says how many are left.

    With `chosen` the items are buttons: the arrow keys go through them, and Enter presses the first.
    """
    field = element("input", type="text", id=id_, autocomplete="off", spellcheck="false", data_narrows=list_,
                    data_chosen="" if chosen else None)  # fmt: skip
    left = element("output", f"{size:,} listed", id=f"{id_}-left", class_="hint", for_=id_)
    return element("label", element("span", label, class_="label"), field, left, class_="entry narrow")


def amount(size: int) -> str:
    """Bytes as people say them.

    >>> amount(900), amount(2_300_000), amount(5 * 10**9)
    ('900 bytes', '2.3 MB', '5.0 GB')
    """
    for unit, of in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= of:
            return f"{size / of:.1f} {unit}"
    return f"{size} bytes"


def glance(figures: Mapping[str, str]) -> Html:
    """The few figures that matter most."""
    items = [element("div", element("dt", name), element("dd", value)) for name, value in figures.items()]
    return element("dl", *items, class_="glance")


# -- fields: what is typed becomes what a job file would say, and the other way round --------------------------------

_WHOLE = re.compile(r"[+-]?\d{1,18}")
_FRACTION = re.compile(r"[+-]?\d*\.?\d+([eE][+-]?\d{1,3})?")


def typed(form: Form, text: str) -> Any:
    """What was typed, as the first sort of value that fits the form; the text itself where none does.

    >>> from jali.core.forms import NUMBER, TEXT, any_of, list_of
    >>> widths = any_of("", NUMBER, list_of("", NUMBER))
    >>> typed(widths, "5, 10, 20"), typed(widths, "5"), typed(TEXT, "5")
    ([5, 10, 20], 5, '5')
    """
    return next((one for one in _readings(text.strip()) if form.fits(one)), text.strip())


def _readings(text: str) -> Iterator[Any]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) == 1:
        yield plain(parts[0])
        yield text
    yield [plain(part) for part in parts]
    yield parts
    yield text
    try:
        yield tomllib.loads(f"x = {{ {text} }}")["x"]
        yield tomllib.loads(f"x = [ {text} ]")["x"]
    except (ValueError, RecursionError):  # no TOML, or a number of too many digits
        return


def plain(text: str) -> Any:
    """A word of a list: true, false, a number, or the word."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text


def spelled(value: Any) -> str:
    """A value of a job as one types it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {spelled(one)}" for key, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        if any(isinstance(one, list) for one in value):
            return ", ".join(f"[{spelled(one)}]" for one in value)
        return ", ".join(map(spelled, value))
    return str(value)


def option_field(
    label: str, name: str, form: Form, given: Any, *, id_: str, choices: Sequence[str] = (), **act: Any
) -> Html:
    """A field for an option of this form: a box, a list to choose from, or a text; `act` makes it act when changed."""
    if form is BOOL:
        box = element("input", type="checkbox", name=name, id=id_, checked="" if given is True else None, **act)
        return element("label", box, " ", label, class_="tick")
    said = element("span", label, class_="label")
    hint = element("span", form.words, class_="hint", id=f"{id_}-hint")
    if choices:
        own = spelled(given)
        options = [element("option", one or "–", value=one, selected="" if one == own else None) for one in choices]
        return element("label", said, element("select", *options, name=name, id=id_, **act), class_="entry")
    field = element("input", type="text", name=name, value=spelled(given), id=id_, autocomplete="off",
                    aria_describedby=f"{id_}-hint", **act)  # fmt: skip
    return element("label", said, field, hint, class_="entry")


def known_names(id_: str, names: Sequence[str]) -> Html:
    """Names that a field offers while one types."""
    return element("datalist", *(element("option", value=name) for name in names), id=id_)


def named_field(label: str, name: str, *, id_: str, names: str | None = None, hint: str = "", value: str = "") -> Html:
    """A field for the name of something, which can offer those of a list."""
    under = [element("span", hint, class_="hint", id=f"{id_}-hint")] if hint else []
    described = f"{id_}-hint" if hint else None
    field = element("input", type="text", name=name, value=value, id=id_, autocomplete="off", list=names,
                    aria_describedby=described)  # fmt: skip
    return element("label", element("span", label, class_="label"), field, *under, class_="entry")


def form_of_fields(action: str, parts: Sequence[object], press: str, *, id_: str, **arguments: object) -> Html:
    """Fields with a button that sends them to an action; what was typed is forgotten when it was done."""
    send = element("button", press, type="submit", class_="button", id=f"{id_}-go")
    return element("form", *parts, element("p", send), id=id_, data_once="", **acting(action, **arguments))
