"""Laws of interaction graphs, junction trees and the moves between models, against brute force on small graphs."""

from __future__ import annotations

import numpy as np
import pytest

from jali.graphical import graph
from jali.graphical.graph import Model, Move
from oracles import graphs

WIDTH = 6


def collections(seed: int, count: int, width: int = WIDTH) -> list[list[int]]:
    """Random collections of sets of vertices, each a few, the empty one left out."""
    random = np.random.default_rng(seed)
    return [[int(one) for one in random.integers(1, 1 << width, size=random.integers(1, 6))] for _ in range(count)]


def vertices_of(masks: list[int]) -> frozenset[int]:
    return frozenset().union(*map(graphs.members, masks))


def chordal_by_definition(masks: list[int]) -> bool:
    return graphs.triangulated(vertices_of(masks), graphs.edges_of(masks))


def graphical_by_definition(masks: list[int]) -> bool:
    cliques = graphs.maximal_cliques(vertices_of(masks), graphs.edges_of(masks))
    return cliques <= {graphs.members(mask) for mask in masks}


def test_a_collection_has_a_junction_tree_exactly_when_it_is_graphical_and_triangulated() -> None:
    """Definition 5.6; the tree's order is perfect, whichever clique it starts from."""
    seen = {True: 0, False: 0}
    for masks in collections(3, 3000):
        tree = graph.junction_tree(masks)
        wanted = chordal_by_definition(masks) and graphical_by_definition(masks)
        assert (tree is not None) == wanted == graph.decomposable(masks)
        seen[wanted] += 1
        for root in range(len(graph.largest(masks)) if tree else 0):
            again = graph.junction_tree(masks, root=root)
            assert again is not None
            assert graphs.perfect(again.cliques)
            assert again.cliques[0] == graph.largest(masks)[root]
            assert set(again.cliques) == set(graph.largest(masks))
            for i in range(1, len(again.cliques)):
                assert again.parent[i] < i
                assert again.separator[i] == again.cliques[i] & again.cliques[again.parent[i]]
    assert min(seen.values()) > 300


def test_the_separators_of_a_junction_tree_are_the_minimal_separators_of_the_graph() -> None:
    """Whatever tree is taken; between vertices of different components there is none."""
    checked = 0
    for masks in collections(4, 1500):
        tree = graph.junction_tree(masks)
        if tree is not None:
            found = {graphs.members(s) for s in {*tree.separator[1:]} - {0}}
            assert found == graphs.minimal_separators(vertices_of(masks), graphs.edges_of(masks))
            checked += bool(found)
    assert checked > 100


def test_figure_2_of_the_paper() -> None:
    """ABC, BCD, DE is decomposable; ABC, BD, CD, DE has the same graph and is not graphical; Figure 3 has no chord."""
    a, b, c, d, e = (1 << i for i in range(5))
    first, second = [a | b | c, b | c | d, d | e], [a | b | c, b | d, c | d, d | e]
    assert graph.interaction(first, 5) == graph.interaction(second, 5)
    assert graph.decomposable(first)
    assert not graph.decomposable(second)
    assert not graphical_by_definition(second)
    tree = graph.junction_tree(first)
    assert tree is not None
    assert {*tree.separator[1:]} == {b | c, d}


# -- moves -----------------------------------------------------------------------------------------------------------

CHAINS = [(2, 2, 1), (3, 2), (1, 1, 1, 1, 1), (2, 1, 2, 1), (3, 3)]


def prefixes(chains: tuple[int, ...], mask: int) -> bool:
    start = 0
    for length in chains:
        own = mask >> start & (1 << length) - 1
        if own & (own + 1):
            return False
        start += length
    return True


def is_model(chains: tuple[int, ...], vertices: frozenset[int], edges: graphs.Edges) -> bool:
    """Triangulated, chains complete from their beginning, every clique prefixes of chains."""
    if not graphs.triangulated(vertices, edges):
        return False
    mask = sum(1 << v for v in vertices)
    if not prefixes(chains, mask):
        return False
    cliques = graphs.maximal_cliques(vertices, edges)
    start = 0
    for length in chains:
        own = [v for v in range(start, start + length) if v in vertices]
        if any(frozenset((u, v)) not in edges for u in own for v in own if u < v):
            return False
        start += length
    return all(prefixes(chains, sum(1 << v for v in clique)) for clique in cliques)


def changed(vertices: frozenset[int], edges: graphs.Edges, move: Move) -> tuple[frozenset[int], graphs.Edges]:
    if move.u != move.v:
        return vertices, edges ^ {frozenset((move.u, move.v))}
    return vertices - {move.u}, frozenset(edge for edge in edges if move.u not in edge)


@pytest.mark.parametrize("chains", CHAINS)
def test_the_allowed_edge_moves_are_exactly_those_that_leave_a_model(chains: tuple[int, ...]) -> None:
    """On random walks: every pair, joined or not, judged by brute force; and the next model is built right."""
    random = np.random.default_rng(sum(chains))
    width = sum(chains)
    model = Model.of(chains, [])
    for _ in range(150):
        allowed = set(model.moves())
        vertices = vertices_of(list(model.cliques)) if model.cliques else frozenset()
        edges = graphs.edges_of(model.cliques)
        for u in vertices:
            for v in vertices:
                if u < v:
                    kind = "remove" if frozenset((u, v)) in edges else "add"
                    move = Move(kind, u, v)  # type: ignore[arg-type]
                    wanted = is_model(chains, *changed(vertices, edges, move))
                    assert (move in allowed) == wanted, (model, move)
        for u in vertices:
            move = Move("remove", u, u)
            assert (move in allowed) == is_model(chains, *changed(vertices, edges, move))
        for u in set(range(width)) - vertices:
            above = [v for v in range(width) if model.above(u) >> v & 1]
            assert (Move("add", u, u) in allowed) == (set(above) <= vertices)
        move = sorted(allowed)[random.integers(len(allowed))]
        after = model.after(move)
        again = Model.of(chains, after.cliques)
        there = {v for v, near in enumerate(after.neighbours) if near}
        joined = frozenset(frozenset((u, v)) for u in there for v in graphs.members(after.neighbours[u]) - {u})
        assert {graphs.members(clique) for clique in after.cliques} == graphs.maximal_cliques(there, joined)
        assert set(after.cliques) == set(again.cliques)
        assert after.neighbours == again.neighbours
        assert graph.decomposable(after.cliques or [0])
        assert all(prefixes(chains, clique) for clique in after.cliques)
        model = after


def test_every_move_can_be_taken_back() -> None:
    """Adding what was removed, and the other way round, leads back to the same model (nodes: with their edges gone)."""
    random = np.random.default_rng(5)
    model = Model.of((2, 2, 1), [])
    for _ in range(300):
        moves = sorted(model.moves())
        move = moves[random.integers(len(moves))]
        after = model.after(move)
        back = Move("remove" if move.kind == "add" else "add", move.u, move.v)
        assert after.allows(back)
        if move.u != move.v or move.kind == "add":
            assert set(after.after(back).cliques) == set(model.cliques)
        model = after
