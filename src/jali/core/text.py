"""How results show themselves: aligned lines of text, HTML in which every value is escaped, and the parts of a page."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jali.core.charts import Picture  # which is drawn with the elements below

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_VOID = frozenset({"br", "hr", "input", "link", "meta"})


def lines_of(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Names to the left, figures to the right of a common margin.

    >>> lines_of([("k", "4"), ("groups", "12")])
    ['k        4', 'groups  12']
    """
    rows = list(rows)
    left = max((len(name) for name, _ in rows), default=0)
    right = max((len(text) for _, text in rows), default=0)
    return [f"{name:<{left}}  {text:>{right}}".rstrip() for name, text in rows]


def aligned(lines: Sequence[Sequence[str]], *, left: Collection[int] = ()) -> list[str]:
    """Cells in columns as wide as their widest cell; those of the columns in `left` begin at their margin.

    >>> aligned([["zip", "groups"], ["2", "12"]], left=(0,))
    ['zip  groups', '2        12']
    """
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return [
        "  ".join(
            f"{c:<{w}}" if i in left else f"{c:>{w}}" for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


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


_NOTEBOOK = Html(
    "<style>.jali table{border-collapse:collapse;margin:.4em 0 1em}.jali caption{text-align:left;font-weight:600;"
    "padding:.2em 0}.jali th,.jali td{text-align:left;vertical-align:top;padding:.2em 1em .2em 0;"
    "border-bottom:1px solid #8885;font-weight:normal}.jali thead th{font-weight:600;border-bottom:2px solid #8889}"
    ".jali .n{text-align:right}.jali p{margin:.3em 0}</style>"
)


def notebook(*parts: object) -> Html:
    """What a notebook shows: tables as pages have them, in the colours of the notebook."""
    return element("div", _NOTEBOOK, "\n", joined(parts), "\n", class_="jali")


LONG = 15
"""A table of more rows can be searched and sorted where the page's script runs."""


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
    lines = [element("tr", *(cell(i, text) for i, text in enumerate(row))) for row in rows]
    table = element(
        "table", element("caption", element("span", caption)), element("thead", head),
        element("tbody", joined(lines)), class_="long" if len(lines) > LONG else None,
    )  # fmt: skip
    return element("div", table, class_="wide", tabindex="0", role="region", aria_label=caption)


def html_outline(text: str) -> Html:
    """Lines as headings, and the lines that are indented below them as their lists.

    >>> html_outline("Cost\\n  KL 0.5")
    '<p><b>Cost</b></p>\\n<ul>\\n<li>KL 0.5</li>\\n</ul>'
    """
    parts: list[object] = []
    told = (line for line in text.splitlines() if line.startswith("  ") or line.strip())
    for indented, lines in groupby(told, key=lambda line: line.startswith("  ")):
        some = [line.strip() if indented else element("p", element("b", line)) for line in lines]
        parts += [bullets(some)] if indented else some
    return joined(parts)


_PERCENT = "\u00a0%"  # never at the beginning of a line
MARK = "Confidential: this section uses the original table."


@dataclass(frozen=True)
class Section:
    """A section of the page; a confidential one uses the original and says so."""

    name: str
    title: str
    body: Html
    confidential: bool = False
    mark: str = MARK  # what a confidential one says

    def html(self) -> Html:
        """The section as HTML."""
        mark = [element("p", self.mark, class_="mark")] if self.confidential else []
        inside = joined([element("h2", self.title), *mark, self.body])
        return element("section", "\n", inside, "\n", id=self.name, class_="private" if self.confidential else None)


def figure(picture: Picture, name: str, table: Html) -> Html:
    """A picture with its caption, and its figures as a table for readers who cannot see it."""
    shown = element("figcaption", picture.title)
    data = element("details", element("summary", "The same as a table"), table)
    return element("figure", "\n", joined([shown, picture.svg(name), data]), "\n")


def paragraphs(*texts: object) -> Html:
    """One paragraph a text."""
    return joined(element("p", text) for text in texts)


def bullets(items: Sequence[object]) -> Html:
    """A list."""
    return element("ul", "\n", joined(element("li", item) for item in items), "\n")


def percent_up(share: float) -> str:
    r"""A probability as a whole percentage, rounded up: a guarantee is never stated more strongly than it is.

    >>> percent_up(5 / 12), percent_up(0.5), percent_up(1.0), percent_up(0.9999)
    ('42\xa0%', '50\xa0%', '100\xa0%', '100\xa0%')
    """
    return f"{math.ceil(share * 100 - 1e-9)}{_PERCENT}"


def percent(share: float) -> str:
    r"""A share with as many digits as tell something.

    >>> percent(0.4166), percent(0.0002), percent(0.0)
    ('41.7\xa0%', '0.02\xa0%', '0\xa0%')
    """
    if share in (0, 1):
        return f"{share * 100:.0f}{_PERCENT}"
    return f"{share * 100:.1f}{_PERCENT}" if share >= 0.001 else f"{share * 100:.2g}{_PERCENT}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["age", "sex", "zip"])
    'age, sex and zip'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def document(title: str, body: Html, *, edition: str) -> str:
    """A whole page with its style, which asks nothing of a network."""
    from base64 import b64encode
    from hashlib import sha256
    from importlib.resources import files

    style, script = (
        "\n" + files("jali.core").joinpath(f"templates/{name}").read_text(encoding="utf-8")
        for name in ("style.css", "script.js")
    )
    ours = b64encode(sha256(script.encode()).digest()).decode()  # nothing but our own script may run
    allowed = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{ours}'; form-action 'none'"
    head = element(
        "head", "\n",
        joined([
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="referrer", content="no-referrer"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'),
            element("meta", name="color-scheme", content="light dark"),
            element("title", title),
            element("style", Html(style)),
        ]), "\n",
    )  # fmt: skip
    inside = joined([body, element("script", Html(script))])
    return f"<!DOCTYPE html>\n{element('html', head, element('body', inside, class_=edition), lang='en')}\n"


def tree_text(paths: Sequence[Sequence[str]], counts: Sequence[int] | None = None) -> str:
    """A tree in lines, from the path to each of its leaves; a node that repeats its parent's name is left out.

    With counts, one of each a leaf, every node has the sum of its leaves.

    >>> print(tree_text([("*", "fruit", "fig"), ("*", "fruit", "plum"), ("*", "salt", "salt")], [2, 1, 4]), end="")
    *  7
    ├─ fruit  3
    │  ├─ fig  2
    │  └─ plum  1
    └─ salt  4
    """
    lines: list[str] = []

    def draw(leaves: list[int], depth: int, first: str, others: str) -> None:
        name = paths[leaves[0]][depth]
        total = "" if counts is None else f"  {sum(counts[leaf] for leaf in leaves):,}"
        lines.append(f"{first}{' '.join(printable(name).split()) or '(blank)'}{total}\n")
        below: list[list[int]] = [leaves]
        while depth + 1 < len(paths[leaves[0]]) and len(below) == 1 and paths[below[0][0]][depth] == name:
            depth += 1
            parts: dict[str, list[int]] = {}
            for leaf in leaves:
                parts.setdefault(paths[leaf][depth], []).append(leaf)
            below = list(parts.values())
        if paths[below[0][0]][depth] == name and len(below) == 1:
            return
        for part in below:
            last = part is below[-1]
            draw(part, depth, others + ("└─ " if last else "├─ "), others + ("   " if last else "│  "))

    if paths:
        draw(list(range(len(paths))), 0, "", "")
    return "".join(lines)
