"""Fields for the values of a job: what is typed becomes what a job file would say, and the other way round."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jali.core.forms import BOOL, Form
from jali.core.text import Html, element
from jali.studio.views.view import acting

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
