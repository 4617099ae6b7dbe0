"""How results show themselves: figures as aligned lines of text, and as HTML in which every value is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Sequence

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_VOID = frozenset({"br", "hr", "meta"})


def lines_of(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Names to the left, figures to the right of a common margin.

    >>> lines_of([("k", "4"), ("groups", "12")])
    ['k        4', 'groups  12']
    """
    rows = list(rows)
    left = max((len(name) for name, _ in rows), default=0)
    right = max((len(text) for _, text in rows), default=0)
    return [f"{name:<{left}}  {text:>{right}}".rstrip() for name, text in rows]


class Html(str):
    """Text that is HTML already; any other text is escaped where it enters."""

    __slots__ = ()


def printable(text: object) -> str:
    """The text without signs that no page and no picture may hold.

    >>> printable("a\\x00b")
    'a�b'
    """
    return _UNPRINTABLE.sub("\ufffd", str(text))


def escaped(text: object) -> Html:
    """The text as HTML; what is HTML already stays as it is.

    >>> escaped("<b> & co")
    '&lt;b&gt; &amp; co'
    """
    return text if isinstance(text, Html) else Html(html.escape(printable(text)))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """An HTML element; an attribute's final underscore is dropped, the others become hyphens; None leaves it out.

    >>> element("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{told}>")
    return Html(f"<{tag}{told}>{''.join(map(escaped, children))}</{tag}>")


def joined(parts: Iterable[object]) -> Html:
    """HTML one after the other."""
    return Html("\n".join(map(escaped, parts)))


def html_table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    caption: object,
    numbers: Collection[int] = (),
    named: bool = False,
) -> Html:
    """A table with a caption and a header; columns in `numbers` stand to the right; `named` rows begin with a name."""

    def cell(at: int, text: object) -> Html:
        style = "n" if at in numbers else None
        if at == 0 and named:
            return element("th", text, scope="row", class_=style)
        return element("td", text, class_=style)

    head = element("tr", *(element("th", t, scope="col", class_="n" if i in numbers else None)
                           for i, t in enumerate(header)))  # fmt: skip
    body = joined(element("tr", *(cell(i, text) for i, text in enumerate(row))) for row in rows)
    table = element(
        "table", element("caption", element("span", caption)), element("thead", head), element("tbody", body)
    )
    return element("div", table, class_="wide", tabindex="0", role="region", aria_label=caption)


def html_outline(text: str) -> Html:
    """Lines as headings, and the lines that are indented below them as their lists.

    >>> html_outline("Cost\\n  KL 0.5")
    '<p><b>Cost</b></p>\\n<ul>\\n<li>KL 0.5</li>\\n</ul>'
    """
    parts: list[object] = []
    items: list[Html] = []

    def close() -> None:
        if items:
            parts.append(element("ul", "\n", Html("\n".join(items)), "\n"))
            items.clear()

    for line in text.splitlines():
        if line.startswith("  "):
            items.append(element("li", line.strip()))
        elif line.strip():
            close()
            parts.append(element("p", element("b", line)))
    close()
    return joined(parts)
