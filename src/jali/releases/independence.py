"""What a collection of marginals claims: sentences about independence, and its junction tree as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from jali.graphical.marginal import ABSENT, Marginal
from jali.graphical.maxent import Tree, finest
from jali.releases.chains import Chain

LETTER, ROW, GAP = 8, 20, 56
"""Sizes in the picture: of a letter and a line, and between levels of the tree."""


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


def drawn(chains: Sequence[Chain], marginals: Sequence[Marginal], tree: Tree | None) -> str:
    """The junction tree as SVG: a box for each marginal, and what neighbours share on the line between them."""
    if tree is None:
        tree = Tree(tuple(marginals), (-1,) * len(marginals), (marginals[0],) * len(marginals))
    place = _places(tree)
    width = ROW + LETTER * max(len(line) for marginal in tree.marginals for line in _lines(chains, marginal))
    tall = [ROW * (len(marginal.attributes) + 1) for marginal in tree.marginals]
    deep = [depth for _, depth in place]
    rows = [max(tall[i] for i in range(len(tall)) if deep[i] == d) for d in range(max(deep) + 1)]
    labels = [
        ROW * max((len(tree.separators[i].attributes) for i in range(len(deep)) if deep[i] == d), default=0)
        for d in range(len(rows))
    ]
    tops = [sum(rows[:d]) + sum(labels[1 : d + 1]) + GAP * d + ROW for d in range(len(rows))]
    boxes = [(ROW + x * (width + ROW), tops[d]) for x, d in place]
    parts = []
    for i, (x, y) in enumerate(boxes):
        if tree.parent[i] >= 0:
            above = boxes[tree.parent[i]]
            parts.append(_line(above[0] + width // 2, above[1] + tall[tree.parent[i]], x + width // 2, y))
            shared = _lines(chains, tree.separators[i]) or ["nothing shared"]
            parts += _texts(shared, x + width // 2 + 8, y - ROW * len(shared), "shared")
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{tall[i]}" rx="6"/>')
        parts += _texts(_lines(chains, tree.marginals[i]), x + 12, y + ROW, "column")
    wide = max(x for x, _ in boxes) + width + width // 2 + ROW  # what is shared stands beside its line
    high = max(y + tall[i] for i, (_, y) in enumerate(boxes)) + ROW
    style = "rect{fill:#f7f5ef;stroke:#555}line{stroke:#555}text{font:13px sans-serif;fill:#222}.shared{fill:#777}"
    size = f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        f"<title>Junction tree of the published marginals</title><style>{style}</style>{''.join(parts)}</svg>\n"
    )


def _places(tree: Tree) -> list[tuple[int, int]]:
    """The column and the depth of each marginal: children beside each other, the first below its parent."""
    found: dict[int, tuple[int, int]] = {}
    free = 0

    def put(at: int, depth: int) -> None:
        nonlocal free
        found[at] = (free, depth)
        children = tree.children(at)
        for child in children:
            put(child, depth + 1)
        if not children:
            free += 1

    for root in (i for i, parent in enumerate(tree.parent) if parent < 0):
        put(root, 0)
    return [found[i] for i in range(len(tree.marginals))]


def _line(x1: int, y1: int, x2: int, y2: int) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _texts(lines: Iterable[str], x: int, y: int, kind: str) -> list[str]:
    return [f'<text class="{kind}" x="{x}" y="{y + ROW * at}">{escape(line)}</text>' for at, line in enumerate(lines)]
