"""The minimal elements of an upward closed set of lattice nodes, found by bisecting chains."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

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
    for node in verdicts.lowest_first():
        if not verdicts.state[node]:
            verdicts.bisect(verdicts.chain(node), holds)
    return [verdicts.levels[node] for node in verdicts.minimal()]


_HOLDS, _FAILS = 1, 2


class _Verdicts:
    """What is known of each node, by its number in the order of the levels: nothing yet, that it holds or fails."""

    def __init__(self, top: Levels) -> None:
        self.top = top
        self.levels = list(product(*(range(t + 1) for t in top)))
        self.steps = [prod(t + 1 for t in top[i + 1 :]) for i in range(len(top))]  # to the next level of each column
        self.state = bytearray(len(self.levels))

    def lowest_first(self) -> list[int]:
        return sorted(range(len(self.levels)), key=lambda node: sum(self.levels[node]))

    def above(self, node: int) -> list[int]:
        return [
            node + step
            for level, most, step in zip(self.levels[node], self.top, self.steps, strict=True)
            if level < most
        ]

    def below(self, node: int) -> list[int]:
        return [node - step for level, step in zip(self.levels[node], self.steps, strict=True) if level]

    def chain(self, node: int) -> list[int]:
        """From a node upwards through undecided nodes."""
        chain = [node]
        while (after := next((n for n in self.above(chain[-1]) if not self.state[n]), None)) is not None:
            chain.append(after)
        return chain

    def bisect(self, chain: list[int], holds: Callable[[Levels], bool]) -> None:
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            if holds(self.levels[chain[middle]]):
                self._decide(chain[middle], _HOLDS, self.above)
                high = middle
            else:
                self._decide(chain[middle], _FAILS, self.below)
                low = middle + 1

    def _decide(self, node: int, verdict: int, onwards: Callable[[int], list[int]]) -> None:
        """Tag the node and all that follows from it, stopping where that is known already."""
        pending = [node]
        while pending:
            current = pending.pop()
            if not self.state[current]:
                self.state[current] = verdict
                pending.extend(onwards(current))

    def minimal(self) -> list[int]:
        holding = (node for node, state in enumerate(self.state) if state == _HOLDS)
        return [node for node in holding if all(self.state[n] == _FAILS for n in self.below(node))]
