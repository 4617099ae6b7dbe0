"""A lattice node whose groups are each shown by their own values, with its suppressed rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding.hierarchy import ROOT
from jali.encoding.table import Column, Table
from jali.releases.covers import display_cover
from jali.releases.display import Show, publish_groups
from jali.releases.pdf import Shift
from jali.releases.published import Published, compact
from jali.search.groups import Partition


def shown_by_group(table: Table, column: Column, partition: Partition, show: Show, shift: Shift | None) -> Published:
    """A quasi-identifier as each group's own values allow; suppressed rows show *."""
    group = partition.group[table.frequencies.row_combination]
    level, rows = partition.levels[column.name], table.multiplicity
    if not partition.suppressed:
        return publish_groups(column, group, partition.groups, show, shift=shift, rows=rows, level=level)
    hidden = group == partition.groups - 1
    seen = replace(column, codes=column.codes[~hidden])
    rows = None if rows is None else rows[~hidden]
    shown = publish_groups(seen, group[~hidden], partition.groups - 1, show, shift=shift, rows=rows, level=level)
    return with_hidden(shown, hidden)


def with_hidden(shown: Published, hidden: NDArray[np.bool_]) -> Published:
    """The column with * in the hidden records; `shown` has the codes of the others only."""
    assert shown.facts is not None
    texts = shown.labels.to_pylist()
    labels, root, facts = shown.labels, shown.cover_root, shown.facts | {"hidden": True}
    if root is None:
        root = len(texts)
        labels = pa.concat_arrays([labels, pa.array([ROOT], pa.string())])
    codes = np.full(len(hidden), root, dtype=np.int64)
    codes[~hidden] = shown.codes
    cover = display_cover(facts, labels, shown.kind)
    return replace(
        shown, labels=labels, codes=compact(codes, len(labels))[0], cover=cover, facts=facts, cover_root=root
    )
