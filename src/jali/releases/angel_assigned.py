"""Who is in which batch: of each record, and counted by combination and sensitive value."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jali.encoding.frequencies import combine
from jali.encoding.table import Table
from jali.principles.counts import Counts, Ints


@dataclass(frozen=True, eq=False)
class Assigned:
    """The batch of everybody; parts are the people of one combination who have one value and are in one batch."""

    table: Table  # one record a row
    batches: int  # numbered from 0 without gaps
    combination: Ints  # (parts,)
    value: Ints  # (parts,) joint value of the sensitive columns
    batch: Ints  # (parts,)
    people: Ints  # (parts,)
    of_record: Ints  # (records,) the batch of each

    @classmethod
    def of_combinations(cls, table: Table, batch: Ints) -> Assigned:
        """From the batch of each combination: nothing is counted again."""
        f = table.frequencies
        of_record = batch[f.row_combination]
        return cls(table, int(batch.max()) + 1, f.combination, f.value, batch[f.combination], f.rows, of_record)

    @classmethod
    def of_records(cls, table: Table, batch: Ints) -> Assigned:
        """From the batch of each record."""
        f, batches = table.frequencies, int(batch.max()) + 1
        values = [(column.codes, len(column.values)) for column in table.sensitive]
        number, first = combine([(f.row_combination, f.combinations), *values, (batch, batches)], table.records)
        combination = f.row_combination[first].astype(np.int64)
        joint, _ = combine([(codes[first], width) for codes, width in values], len(first))
        people = np.bincount(number, minlength=len(first)).astype(np.int64)
        return cls(table, batches, combination, joint.astype(np.int64), batch[first], people, batch)

    def counts(self) -> Counts:
        """People by batch and sensitive value."""
        f = self.table.frequencies
        whole = f.counts(np.zeros(f.combinations, dtype=np.int64), 1)
        order = np.argsort(self.batch, kind="stable")
        return replace(
            whole, groups=self.batches, group=self.batch[order], value=self.value[order], n=self.people[order],
            whole=whole,
        )  # fmt: skip

    def renumbered(self, number: Ints) -> Assigned:
        """The same with other numbers of the batches."""
        return replace(self, batch=number[self.batch], of_record=number[self.of_record])
