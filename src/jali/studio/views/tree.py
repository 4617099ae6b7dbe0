"""A hierarchy as a tree on the page: its nodes with their people, and the panel in which one of them is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from jali.core.charts import clipped
from jali.core.text import Html, element, percent
from jali.studio.views.view import form_of_fields, known_names, named_field

SHOWN = 40
"""Children of a node that the tree shows; the panel of the node has pages of all of them."""
OPEN = 120
"""A hierarchy of at most this number of nodes is shown whole."""
PAGE = 100
"""Nodes of a page of the panel, and names that a field offers."""


def label_shown(label: str | None) -> str:
    """The label of a node as the page shows it."""
    return "(missing)" if label is None else label or "(empty)"


def label_text(label: str | None) -> str:
    """The label of a node as a file has it."""
    return "" if label is None else label


def chosen_number(query: Mapping[str, str], key: str, below: int) -> int:
    """A number in the address of the view; the nearest possible one."""
    text = query.get(key, "")
    return min(int(text), below - 1) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def place(at: int, **more: object) -> str:
    """The address of a column, or of a node of it."""
    return "#hierarchies?" + urlencode({"column": at, **more})


def beside(at: int, column: str, found: Mapping[str, Any], query: Mapping[str, str], *, preview: bool) -> Html:
    """The tree beside the panel of the node that is chosen."""
    title = element("h2", "Tree")
    left_out = sum(not level["labels"] for level in found["levels"])
    large = []
    if left_out:
        found = {**found, "levels": found["levels"][left_out:]}
        large = [_too_large(column, left_out)]
    levels = found["levels"]
    level = chosen_number(query, "level", len(levels)) if "level" in query else len(levels) - 1
    node = chosen_number(query, "node", levels[level]["nodes"])
    more = {key: query[key] for key in ("make", "step") if key in query} if preview else {}
    tree = Tree(at, found, (level, node), more, left_out)
    drawn = element("div", title, *large, element("ul", tree.item(len(levels) - 1, 0), class_="tree"), id="tree")
    panel = element("div", *_panel(column, tree, query, preview), id="panel", class_="panel", tabindex="-1",
                    role="region", aria_label="The chosen node")  # fmt: skip
    return element("section", drawn, panel, class_="tree-and-panel")


def _too_large(column: str, left_out: int) -> Html:
    """Why the lowest levels of a tree are not shown, and what can be done about them."""
    what = "Its values are" if left_out == 1 else f"Its values and the {left_out - 1} levels above them are"
    return element(
        "p", f"{column} has too many values to list. {what} not shown here, and nodes cannot be edited one by one. "
        "Choose another builder above, or edit the hierarchy as a file: ",
        element("code", "jali hierarchy job.toml COLUMN -o FILE"), " writes it, and below it is imported.",
        class_="flag soft", id="large",
    )  # fmt: skip


class Tree:
    """The nodes of a hierarchy as the page shows them: (level, node), where node counts within its level."""

    def __init__(
        self, at: int, found: Mapping[str, Any], chosen: tuple[int, int], more: Mapping[str, str], left_out: int = 0,
    ) -> None:  # fmt: skip
        self.left_out = left_out  # levels below the first one here
        self.at, self.levels, self.people, self.chosen, self.more = at, found["levels"], found["people"], chosen, more
        self.open = {chosen}
        node = chosen[1]
        for level in range(chosen[0], len(self.levels) - 1):
            node = self.levels[level]["parents"][node]
            self.open.add((level + 1, node))
        self.whole = sum(level["nodes"] for level in self.levels) <= OPEN
        self.below: list[dict[int, list[int]]] = [{}]
        for one in self.levels[:-1]:
            own: dict[int, list[int]] = {}
            for child, parent in enumerate(one["parents"]):
                own.setdefault(parent, []).append(child)
            self.below.append(own)

    def link(self, level: int, node: int, **more: object) -> str:
        """The address of a node."""
        return place(self.at, level=level, node=node, **self.more, **more)

    def label(self, level: int, node: int) -> str:
        """What a node is called."""
        return label_shown(self.levels[level]["labels"][node])

    def count(self, level: int, node: int) -> int:
        """The people of a node."""
        return int(self.levels[level]["people"][node])

    def item(self, level: int, node: int) -> Html:
        """A node, and those below it where it is open."""
        people = self.count(level, node)
        bar = element("i", class_="bar", style=f"width:{100 * people / max(self.people, 1):.1f}%")
        here = "true" if (level, node) == self.chosen else None
        name = element("a", clipped(self.label(level, node), 60), href=self.link(level, node),
                       id=f"node-{level}-{node}", aria_current=here)  # fmt: skip
        line = element("div", name, element("span", f"{people:,}", class_="n"), bar, class_="node")
        below = self.below[level].get(node, []) if self.whole or (level, node) in self.open else []
        items = [self.item(level - 1, one) for one in self._first(level - 1, below)]
        if len(below) > len(items):
            more = f"and {len(below) - len(items):,} more"
            items.append(element("li", element("a", more, href=self.link(level, node), class_="quiet")))
        return element("li", line, element("ul", *items) if items else "")

    def _first(self, level: int, nodes: list[int]) -> Iterator[int]:
        """The first ones, and the one that leads to the chosen node."""
        for at, node in enumerate(nodes):
            if self.whole or at < SHOWN or (level, node) in self.open:
                yield node


def _panel(column: str, tree: Tree, query: Mapping[str, str], preview: bool) -> Iterator[Html]:
    """What the chosen node is, and what can be done to it."""
    level, node = tree.chosen
    top, people = len(tree.levels) - 1, tree.count(level, node)
    below = tree.below[level].get(node, [])
    real = level + tree.left_out
    kind = "The root" if level == top else "A value" if real == 0 else f"A node of level {real}"
    holds = f", {len(below):,} nodes below it" if real > 1 else f", {len(below):,} values" if real else ""
    holds = holds if below or not real else ""
    yield element("h2", clipped(tree.label(level, node), 80))
    yield element("p", f"{kind}: {people:,} people, {percent(people / max(tree.people, 1))}{holds}.", class_="quiet")
    if preview:
        said = "Use this hierarchy first, then edit it." if not tree.left_out else "It is edited as a file."
        yield element("p", said, class_="quiet")
        return
    yield from _changes(column, tree)
    if 0 < level < top:
        yield _split(column, tree, query, below)
    elif top == 1:
        yield element("p", "To group values, add a level, then move them under names of your own.", class_="quiet")
    elif level == top:
        yield element("p", "Choose a node in the tree to change it.", class_="quiet")


def _changes(column: str, tree: Tree) -> Iterator[Html]:
    """Rename, merge and move: of values, only the last."""
    level, node = tree.chosen
    top, name = len(tree.levels) - 1, label_text(tree.levels[level]["labels"][node])
    own: dict[str, object] = {"column": column, "level": level, "node": name}
    if 0 < level < top:
        yield known_names("names-here", _names(tree.levels[level]))
        to = named_field("New name", "to", id_="to", value=name)
        yield form_of_fields("rename", [to], "Rename", id_="rename", **own)
        other = named_field("Another node of this level", "other", id_="other", names="names-here",
                            hint="what is below it comes to this one")  # fmt: skip
        yield form_of_fields("merge", [other], "Merge", id_="merge", **own)
    if level + 1 < top:
        yield known_names("names-above", _names(tree.levels[level + 1]))
        under = named_field("Move it under", "under", id_="under", names="names-above",
                            hint="a node of the level above, or a new name")  # fmt: skip
        yield form_of_fields("move", [under], "Move", id_="move", **own)


def _names(level: Mapping[str, Any]) -> list[str]:
    return [label_text(label) for label in level["labels"][:PAGE]]


def _split(column: str, tree: Tree, query: Mapping[str, str], below: list[int]) -> Html:
    """The nodes below, to be ticked and moved together: under a node that is there, or split off under a new name."""
    level, node = tree.chosen
    first = chosen_number(query, "from", max(len(below), 1)) // PAGE * PAGE
    listed = below[first : first + PAGE]
    boxes = [
        element("label", element("input", type="checkbox", name=f"tick-{at}", id=f"tick-{at}"), " ",
                clipped(tree.label(level - 1, one), 60), " ",
                element("span", f"{tree.count(level - 1, one):,}", class_="n"), class_="tick")
        for at, one in enumerate(listed)
    ]  # fmt: skip
    pages = []
    if first:
        pages.append(element("a", "← Earlier", href=tree.link(level, node, **{"from": first - PAGE})))
    if first + PAGE < len(below):
        pages.append(element("a", "Later →", href=tree.link(level, node, **{"from": first + PAGE})))
    under = named_field("Move the ticked ones under", "under", id_="split-under", names="names-here",
                        hint="a node of this level; a new name splits them off")  # fmt: skip
    parts = [element("fieldset", element("legend", "Below it"), *boxes, class_="pick"),
             element("p", *pages, class_="pages") if pages else "", under]  # fmt: skip
    names = [label_text(tree.levels[level - 1]["labels"][one]) for one in listed]
    return form_of_fields("move", parts, "Move or split", id_="split", column=column, level=level - 1, below=names)
