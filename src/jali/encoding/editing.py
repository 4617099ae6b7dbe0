"""Hierarchies edited by hand: nodes are renamed, moved, merged and split, levels come and go.

A hierarchy is its rows here, as ARX's CSV form has them: one row per value, one text per level, the value first and the
root last. A node is a text at a level. Every edit gives new rows that are a tree again, and leaves the values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from jali.encoding.hierarchy import ROOT
from jali.errors import HierarchyError

Row = tuple[str, ...]
Rows = tuple[Row, ...]


def renamed(rows: Sequence[Row], level: int, node: str, to: str) -> Rows:
    """A node under another name, which no node of its level has yet."""
    _require_inner(rows, level)
    _require_node(rows, level, node)
    if to != node and to in _nodes(rows, level):
        raise HierarchyError("a node of this level has that name already", do="merge the two, or choose another name")
    return _changed(rows, lambda row: row[level] == node, lambda row: (*row[:level], _name(to), *row[level + 1 :]))


def merged(rows: Sequence[Row], level: int, node: str, other: str) -> Rows:
    """Another node's values go to a node of the same level, which keeps its name and its place."""
    _require_inner(rows, level)
    above = _require_node(rows, level, node)[level:]
    _require_node(rows, level, other)
    if node == other:
        raise HierarchyError("a node cannot be merged with itself", do="name another one of the same level")
    return _changed(rows, lambda row: row[level] == other, lambda row: (*row[:level], *above))


def moved(rows: Sequence[Row], level: int, nodes: Collection[str], under: str) -> Rows:
    """Nodes go under another one, a level higher: one that is there, else a new one beside the first one's own.

    A new one splits them off. Where nothing is left under a node, it is gone.
    """
    if not nodes:
        raise HierarchyError("no node was chosen", do="tick those that are to move")
    for node in nodes:
        _require_node(rows, level, node)
    if level + 1 >= len(rows[0]) - 1:
        raise HierarchyError("above this level there is the root alone", do="add a level above it first")
    first = next(row for row in rows if row[level] in nodes)
    known = next((row for row in rows if row[level + 1] == under.strip()), None)
    above = (_name(under), *first[level + 2 :]) if known is None else known[level + 1 :]
    return _changed(rows, lambda row: row[level] in nodes, lambda row: (*row[: level + 1], *above))


def with_level(rows: Sequence[Row], level: int) -> Rows:
    """One level more, above this one and the same as it: a place for nodes to be merged in.

    Above the values, each is a node of its own; the missing value stays what it is.
    """
    if not 0 <= level < len(rows[0]) - 1:
        raise HierarchyError("no level can stand above the root", do="choose a lower one")
    return tuple((*row[: level + 1], row[level], *row[level + 1 :]) for row in rows)


def without_level(rows: Sequence[Row], level: int) -> Rows:
    """The same without a level between the values and the root."""
    _require_inner(rows, level)
    return tuple((*row[:level], *row[level + 1 :]) for row in rows)


def _changed(rows: Sequence[Row], which: Callable[[Row], bool], make: Callable[[Row], Row]) -> Rows:
    return tuple(make(row) if which(row) else row for row in rows)


def _nodes(rows: Sequence[Row], level: int) -> set[str]:
    return {row[level] for row in rows}


def _require_inner(rows: Sequence[Row], level: int) -> None:
    if level == 0:
        raise HierarchyError("the values themselves stay as the table has them", do="edit a level above them")
    if not 0 < level < len(rows[0]) - 1:
        raise HierarchyError("the root stays as it is", do="edit a level below it")


def _require_node(rows: Sequence[Row], level: int, node: str) -> Row:
    """A row with this node at this level."""
    found = next((row for row in rows if row[level] == node), None) if 0 <= level < len(rows[0]) else None
    if found is None:
        raise HierarchyError("there is no such node at this level", do="name one that is there")
    return found


def _name(given: str) -> str:
    text = given.strip()
    if not text or text == ROOT:
        raise HierarchyError("a node needs a name", do=f'write one; "{ROOT}" is the name of the root')
    return text
