"""The minimal elements of an upward closed set of lattice nodes, found by bisecting chains."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product
from operator import mul

Levels = tuple[int, ...]


def below(low: Levels, high: Levels) -> bool:
    """Whether no level of `low` exceeds that of `high`."""
    return all(a <= b for a, b in zip(low, high, strict=True))


def frontier(top: Levels, holds: Callable[[Levels], bool]) -> list[Levels]:
    """All minimal nodes between zero and `top` that hold, when whatever lies above a node that holds does too.

    Each chain from an undecided node to the top is bisected; a node that holds decides everything above it and one
    that does not everything below it, so most nodes are never asked.

    >>> frontier((2, 2), lambda node: sum(node) >= 3)
    [(1, 2), (2, 1)]
    """
    verdicts = _Verdicts(top)
    for node in verdicts.nodes():
        if verdicts[node] is None:
            _bisect(verdicts, _chain(node, top, verdicts), holds)
    return sorted(n for n in verdicts.nodes() if verdicts[n] and not any(verdicts[f] for f in _finer(n)))


def _finer(node: Levels) -> list[Levels]:
    return [(*node[:i], level - 1, *node[i + 1 :]) for i, level in enumerate(node) if level > 0]


def _chain(node: Levels, top: Levels, verdicts: _Verdicts) -> list[Levels]:
    """From a node upwards through undecided nodes."""
    chain = [node]
    while True:
        above = [(*node[:i], n + 1, *node[i + 1 :]) for i, n in enumerate(node) if n < top[i]]
        undecided = [n for n in above if verdicts[n] is None]
        if not undecided:
            return chain
        node = undecided[0]
        chain.append(node)


def _bisect(verdicts: _Verdicts, chain: list[Levels], holds: Callable[[Levels], bool]) -> None:
    low, high = 0, len(chain)
    while low < high:
        middle = (low + high) // 2
        if holds(chain[middle]):
            verdicts.decide(chain[middle], True)
            high = middle
        else:
            verdicts.decide(chain[middle], False)
            low = middle + 1


class _Verdicts:
    """What is known of each node: True, False or nothing yet."""

    def __init__(self, top: Levels) -> None:
        self.top = top
        self._shape = tuple(t + 1 for t in top)
        self._state = bytearray(reduce(mul, self._shape, 1))  # 0 unknown, 1 holds, 2 fails
        self._nodes = sorted(product(*(range(s) for s in self._shape)), key=lambda n: (sum(n), n))

    def nodes(self) -> list[Levels]:
        return self._nodes

    def _index(self, node: Levels) -> int:
        index = 0
        for level, size in zip(node, self._shape, strict=True):
            index = index * size + level
        return index

    def __getitem__(self, node: Levels) -> bool | None:
        return (None, True, False)[self._state[self._index(node)]]

    def decide(self, node: Levels, verdict: bool) -> None:
        """Tag the node and all that follows from it, stopping where that is known already."""
        mark, step = (1, 1) if verdict else (2, -1)
        pending = [node]
        while pending:
            current = pending.pop()
            index = self._index(current)
            if self._state[index]:
                continue
            self._state[index] = mark
            for i, level in enumerate(current):
                if 0 <= level + step < self._shape[i]:
                    pending.append((*current[:i], level + step, *current[i + 1 :]))
