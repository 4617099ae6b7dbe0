"""Parts of a page: sections, figures with their tables, and how numbers read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from jali.core.charts import Picture
from jali.core.text import Html, element, joined

_PERCENT = "\u00a0%"  # never at the beginning of a line
MARK = "Confidential: this section uses the original table."


@dataclass(frozen=True)
class Section:
    """A section of the page; a confidential one uses the original and says so."""

    name: str
    title: str
    body: Html
    confidential: bool = False

    def html(self) -> Html:
        """The section as HTML."""
        mark = [element("p", MARK, class_="mark")] if self.confidential else []
        inside = joined([element("h2", self.title), *mark, self.body])
        return element("section", "\n", inside, "\n", id=self.name, class_="private" if self.confidential else None)


def figure(picture: Picture, name: str, table: Html) -> Html:
    """A picture with its caption, and its figures as a table for whoever cannot or will not see it."""
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
    if share == 0:
        return f"0{_PERCENT}"
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
    style = files("jali.core").joinpath("templates/style.css").read_text(encoding="utf-8")
    head = element(
        "head", "\n",
        joined([
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="referrer", content="no-referrer"),
            element("title", title),
            element("style", Html("\n" + style)),
        ]), "\n",
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{element('html', head, element('body', body, class_=edition), lang='en')}\n"
