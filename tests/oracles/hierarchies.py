"""A column of a table with one hierarchy, and all that a hierarchy promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import jali
from jali.encoding.hierarchy import Hierarchy
from jali.errors import InputError
from oracles.encoding import breaks_of


def column(values: list[Any], builder: object, **options: Any) -> Any:
    """The column of a table with these values."""
    return jali.table(pa.table({"x": pa.array(values)}), quasi={"x": builder}, **options)["x"]


def hierarchy(values: list[Any], builder: object, **options: Any) -> Hierarchy:
    found = column(values, builder, **options).hierarchy
    assert isinstance(found, Hierarchy)
    return found


def labels(found: Hierarchy, level: int) -> dict[str | None, str | None]:
    """Each value's label at a level."""
    nodes = found.levels[level].texts()
    return {value: nodes[node] for value, node in zip(found.levels[0].texts(), found.maps[level], strict=True)}


def is_hierarchy(found: Hierarchy) -> None:
    """All that a hierarchy promises."""
    assert not breaks_of([m.tolist() for m in found.maps])
    for level, parent in enumerate(found.parents):
        assert np.array_equal(parent[found.maps[level]], found.maps[level + 1])
    for number, level in enumerate(found.levels):
        assert len(set(level.texts())) == len(level), "two nodes of one level read the same"
        assert set(found.maps[number].tolist()) == set(range(len(level))), "a node without values"
        if level.low is not None:
            assert level.high is not None
            assert len(level.low) == len(level.high) == len(level)
    assert found.levels[-1].texts() == ["*"]


def refused_in_one_line(make: Callable[[], object], message: str) -> None:
    """What is made is refused, in one line that holds this message."""
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
