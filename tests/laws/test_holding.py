"""Which boxes hold which cells, against looking at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from jali.core import arrays
from jali.estimates import link_join as holding
from oracles.often import examples, seeds


@examples(3)
@given(seeds)
def test_hits_are_those_of_looking_at_every_pair(seed: int) -> None:
    """Boxes that overlap, values in no node, one cell, one box; in one go and in many small ones, tabled or not."""
    random = np.random.default_rng(seed)
    columns, cells, boxes = (int(n) for n in random.integers([1, 1, 1], [4, 12, 20]))
    asked, dense, nodes, codes, tables = [], [], [], [], []
    for _ in range(columns):
        values, own = (int(n) for n in random.integers([1, 1], [5, 6]))
        share = np.where(random.random((values, own)) < 0.5, random.random((values, own)) + 0.01, 0.0)
        value, node = np.nonzero(share)
        dense.append((value, node, share[value, node]))
        asked.append(random.integers(0, values, cells))
        codes.append(random.integers(0, own, boxes))
        nodes.append(own)
        tables.append(share)
    distinct = np.unique(np.stack(codes), axis=1)  # boxes differ
    codes = list(distinct)
    mass = random.random((distinct.shape[1], 3))
    at = random.integers(0, cells, 10)
    value = random.integers(0, 3, 10)
    key = np.arange(mass.size)
    kept = random.random(mass.size) < 0.7
    kept[0] = True
    with pytest.MonkeyPatch.context() as patch:
        if seed % 3 == 0:
            patch.setattr(arrays, "AT_ONCE", 5)
        if seed % 2 == 0:
            patch.setattr(holding, "TABLED", 0)
        found = holding.hits_of(asked, dense, nodes, codes)
        sums = holding.summed_at(found, at, value, (key[kept], mass.ravel()[kept]), 3)
    got = {
        (cell, int(found.box[at])): float(found.share[at])
        for cell in range(cells)
        for at in range(int(found.start[cell]), int(found.start[cell + 1]))
    }
    expected = {}
    for cell in range(cells):
        for box in range(distinct.shape[1]):
            share = np.prod([tables[i][asked[i][cell], codes[i][box]] for i in range(columns)])
            if share > 0:
                expected[cell, box] = float(share)
    assert got == pytest.approx(expected)
    assert len(found.box) == len(expected)
    for i in range(10):
        by_hand = sum(
            share * mass[box, value[i]] for (cell, box), share in expected.items()
            if cell == at[i] and kept[box * 3 + value[i]]
        )  # fmt: skip
        assert sums[i] == pytest.approx(by_hand)
