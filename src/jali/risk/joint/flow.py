"""Which pairs of groups can have anybody in them: found by a flow, however many worlds there are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise


class Impossible(Exception):  # noqa: N818  # no error: the answer that there is no world
    """There is no world: nobody can be matched so."""


def possible(
    rows: Sequence[int], columns: Sequence[int], amount: Mapping[int, int], near: Mapping[int, Sequence[int]]
) -> set[tuple[int, int]]:
    """The pairs that have people in some world; Impossible where there is no world.

    One world is found as a flow from rows to columns. A pair that it does not use is used by another world if and only
    if people can be moved around a circle through it: if both ends are in one strong component of the residual graph.
    """
    flow = _world(rows, columns, amount, near)
    back: dict[int, list[int]] = {j: [] for j in columns}
    for (i, j), people in flow.items():
        if people:
            back[j].append(i)
    circle = _strong({i: list(near[i]) for i in rows} | back)
    return {(i, j) for i in rows for j in near[i] if flow.get((i, j)) or circle[i] == circle[j]}


def _world(
    rows: Sequence[int], columns: Sequence[int], amount: Mapping[int, int], near: Mapping[int, Sequence[int]]
) -> dict[tuple[int, int], int]:
    """One way to match everybody: first come, first served, then along paths that make room."""
    flow: dict[tuple[int, int], int] = {}
    held: dict[int, dict[int, None]] = {j: {} for j in columns}  # rows that have people in a column, in order
    rest, room = {i: amount[i] for i in rows}, {j: amount[j] for j in columns}
    for i in rows:
        for j in near[i]:
            people = min(rest[i], room[j])
            if people:
                _move(flow, held, i, j, people)
                rest[i], room[j] = rest[i] - people, room[j] - people
    for i in rows:
        while rest[i]:
            path = _path(i, near, held, room)
            ends = [flow[b, a] for a, b in zip(path[1::2], path[2::2], strict=False)]
            people = min(rest[i], room[path[-1]], *ends)
            for at, (a, b) in enumerate(pairwise(path)):
                _move(flow, held, *((a, b, people) if at % 2 == 0 else (b, a, -people)))
            rest[i], room[path[-1]] = rest[i] - people, room[path[-1]] - people
    return flow


def _move(flow: dict[tuple[int, int], int], held: dict[int, dict[int, None]], i: int, j: int, people: int) -> None:
    flow[i, j] = flow.get((i, j), 0) + people
    if flow[i, j]:
        held[j][i] = None
    else:
        held[j].pop(i, None)


def _path(
    start: int, near: Mapping[int, Sequence[int]], held: Mapping[int, Mapping[int, None]], room: Mapping[int, int]
) -> list[int]:
    """The shortest way from a row to a column that has room: row, column, a row that has people there, and so on."""
    came: dict[int, int] = {start: start}
    waiting = deque([start])
    while waiting:
        i = waiting.popleft()
        for j in near[i]:
            if j in came:
                continue
            came[j] = i
            if room[j]:
                path = [j]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return path[::-1]
            for other in held[j]:
                if other not in came:
                    came[other] = j
                    waiting.append(other)
    raise Impossible


def _strong(near: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The strong component of each node (Tarjan's algorithm, without recursion)."""
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    component: dict[int, int] = {}
    stack: list[int] = []
    for start in near:
        if start in number:
            continue
        calls: list[tuple[int, Iterator[int]]] = [(start, iter(near[start]))]
        number[start] = lowest[start] = len(number)
        stack.append(start)
        while calls:
            node, others = calls[-1]
            for other in others:
                if other not in number:
                    number[other] = lowest[other] = len(number)
                    stack.append(other)
                    calls.append((other, iter(near[other])))
                    break
                if other not in component:
                    lowest[node] = min(lowest[node], number[other])
            else:
                calls.pop()
                if calls:
                    lowest[calls[-1][0]] = min(lowest[calls[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    while True:
                        member = stack.pop()
                        component[member] = node
                        if member == node:
                            break
    return component
