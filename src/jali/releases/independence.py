"""What a collection of marginals claims: sentences about independence, and its junction tree as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from jali.graphical.marginal import ABSENT, Marginal
from jali.graphical.maxent import Tree, finest
from jali.releases.chains import Chain

LETTER, ROW, PAD, STEP = 7, 20, 12, 36
"""Sizes in the picture: of a letter, of a line, within and around boxes, and from a box to those that hang on it."""


def sentences(chains: Sequence[Chain], marginals: Sequence[Marginal], tree: Tree | None) -> tuple[str, ...]:
    """What the estimate takes for granted: independence across each separator, evenness below what is shown."""
    found: list[str] = []
    if tree is None:
        found.append(
            "the marginals are not decomposable: beyond what they show together, nothing else is taken to hold"
        )
    else:
        for at in range(1, len(tree.marginals)):
            below = finest([tree.marginals[i] for i in _subtree(tree, at)])
            others = finest([m for i, m in enumerate(tree.marginals) if i not in _subtree(tree, at)])
            given = tree.separators[at]
            one, two = (_named(chains, _beyond(side, given)) for side in (others, below))
            shared = _named(chains, given)
            verb = "are" if " and " in one else "is"
            found.append(f"{f'given {shared}: ' if shared else ''}{one} {verb} taken as independent of {two}")
    shown = finest(marginals)
    for chain, level in zip(chains, shown.levels, strict=True):
        if level == ABSENT:
            found.append(f"{chain.name} is in no marginal: each of its values is taken as equally likely")
        elif chain.levels[level] > 0:
            found.append(
                f"within {chain.like(chain.levels[level])}, each value of {chain.name} is taken as equally likely"
            )
    return tuple(found)


def _subtree(tree: Tree, at: int) -> set[int]:
    found = {at}
    for i in range(at + 1, len(tree.marginals)):
        if tree.parent[i] in found:
            found.add(i)
    return found


def _beyond(side: Marginal, given: Marginal) -> Marginal:
    """What one side shows more finely than what is given."""
    pairs = zip(side.levels, given.levels, strict=True)
    return Marginal(tuple(ABSENT if own == shared else own for own, shared in pairs))


def _named(chains: Sequence[Chain], marginal: Marginal) -> str:
    names = _lines(chains, marginal)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lines(chains: Sequence[Chain], marginal: Marginal) -> list[str]:
    return [chains[i].like(chains[i].levels[marginal.levels[i]]) for i in marginal.attributes]


# -- the picture -------------------------------------------------------------------------------------------------

STYLE = (
    "rect{fill:#f7f5ef;stroke:#8a857a}path{fill:none;stroke:#8a857a;shape-rendering:crispEdges}"
    "text{font:13px sans-serif;fill:#222}"
    ".name{font-weight:600}.shared{fill:#777;font-style:italic}.sensitive{fill:#a3341f}"
)


def drawn(chains: Sequence[Chain], marginals: Sequence[Marginal], tree: Tree | None) -> str:
    """The junction tree as SVG: a box for each marginal, below the one that it hangs on, and what the two share.

    Boxes stand below each other and further to the right the deeper they hang, so that nothing crosses; they are
    numbered as the published tables are, and sensitive columns stand out.
    """
    if tree is None:
        tree = Tree(tuple(marginals), (-1,) * len(marginals), (marginals[0],) * len(marginals))
    parts: list[str] = []
    corner: dict[int, tuple[int, int]] = {}  # of each box, below on the left
    wide, y = 0, PAD
    for at, depth in _downward(tree):
        x = PAD + STEP * depth
        named = f"marginal {list(marginals).index(tree.marginals[at]) + 1}"
        lines = _lines(chains, tree.marginals[at])
        if depth:
            shared = ", ".join(_lines(chains, tree.separators[at]))
            told = f"shares {shared}" if shared else "shares nothing"
            parts.append(_text(told, x, y + ROW - 7, "shared"))
            wide, y = max(wide, x + LETTER * len(told)), y + ROW
            above = corner[tree.parent[at]]
            parts.append(f'<path d="M{above[0] + PAD} {above[1]}V{y + ROW}H{x}"/>')
        width = 2 * PAD + LETTER * max(map(len, [named, *lines]))
        tall = ROW * (len(lines) + 1) + PAD
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{tall}" rx="6"/>')
        parts.append(_text(named, x + PAD, y + ROW, "name"))
        for row, (i, line) in enumerate(zip(tree.marginals[at].attributes, lines, strict=True), start=2):
            parts.append(_text(line, x + PAD, y + ROW * row, chains[i].role))
        wide, y = max(wide, x + width), y + tall
        corner[at] = (x, y)
        y += PAD
    size = f'viewBox="0 0 {wide + PAD} {y}" width="{wide + PAD}" height="{y}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        f"<title>Junction tree of the published marginals</title><style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _downward(tree: Tree) -> Iterator[tuple[int, int]]:
    """Each marginal and its depth, right after the one that it hangs on and what hangs on its elder siblings."""
    waiting = [(root, 0) for root, parent in enumerate(tree.parent) if parent < 0][::-1]
    while waiting:
        at, depth = waiting.pop()
        yield at, depth
        waiting += [(child, depth + 1) for child in reversed(tree.children(at))]


def _text(line: str, x: int, y: int, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(line)}</text>'
