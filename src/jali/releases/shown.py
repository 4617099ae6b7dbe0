"""A lattice node whose groups are each shown by their own values, with its suppressed rows."""

from __future__ import annotations

import numpy as np

from jali.encoding.table import Column, Table
from jali.releases.display import Members, Show, publish_groups
from jali.releases.pdf import Shift
from jali.releases.published import Published
from jali.search.groups import Partition


def shown_by_group(table: Table, column: Column, partition: Partition, show: Show, shift: Shift | None) -> Published:
    """A quasi-identifier as each group's own values allow; suppressed rows show *."""
    group = partition.group[table.frequencies.row_combination]
    groups = partition.groups - partition.suppressed
    group = np.where(group < groups, group, -1)
    members = Members(column.codes.astype(np.int64), group, groups, group, table.multiplicity)
    return publish_groups(column, members, show, shift=shift, level=partition.levels[column.name])
