"""Figures as aligned lines of text."""

from __future__ import annotations

from collections.abc import Iterable


def lines_of(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Names to the left, figures to the right of a common margin.

    >>> lines_of([("k", "4"), ("groups", "12")])
    ['k        4', 'groups  12']
    """
    rows = list(rows)
    left = max((len(name) for name, _ in rows), default=0)
    right = max((len(text) for _, text in rows), default=0)
    return [f"{name:<{left}}  {text:>{right}}".rstrip() for name, text in rows]
