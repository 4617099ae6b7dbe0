"""The private file of an ANGEL release: which batch each combination of original values is in, for the holder only."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from jali.core.arrays import Ints, Runs, combine, portions, run_lengths, runs, starts
from jali.core.files import built_file
from jali.core.formats import free_name
from jali.encoding.table import Column, Table
from jali.errors import InputError, path_of
from jali.principles.counts import Counts
from jali.releases.linked.linked import Assignment
from jali.releases.linked.tables import Contents
from jali.releases.store import within_release

if TYPE_CHECKING:
    from jali.search.halves import Seating


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
        joint, first = combine([(column.codes, len(column.values)) for column in table.sensitive], table.records)
        key = f.row_combination.astype(np.int64)
        for codes, width in ((joint, len(first)), (batch, batches)):
            key *= width
            key += codes
        parts, people = run_lengths(key)
        pair, own = np.divmod(parts, batches)
        combination, value = np.divmod(pair, len(first))
        return cls(table, batches, combination, value, own, people.astype(np.int64), batch)

    def counts(self) -> Counts:
        """People by batch and sensitive value."""
        f = self.table.frequencies
        whole = f.whole
        order = np.argsort(self.batch, kind="stable")
        return replace(
            whole, groups=self.batches, group=self.batch[order], value=self.value[order], n=self.people[order],
            whole=whole,
        )  # fmt: skip

    def renumbered(self, number: Ints) -> Assigned:
        """This assignment with the batches numbered anew."""
        return replace(self, batch=number[self.batch], of_record=number[self.of_record])

    def assignment(self) -> Assignment:
        """The batch of each row."""
        return Assignment(len(self.of_record), lambda: self.of_record)


@dataclass(frozen=True, eq=False)
class Seated:
    """Batches of a table whose records stand for several people: everybody is listed as a record, batch by batch."""

    table: Table
    seating: Seating
    of_rows: Table | None  # the table that was given, unless its rows are not held
    record: NDArray[np.int32] | None  # (records of that,) the record here

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return len(self.seating.in_group.sizes)

    @property
    def of_record(self) -> Ints:
        """The batch of each row of the table that was given."""
        return self.assignment().numbers()

    def assignment(self) -> Assignment:
        """Where the rows of the table that was given went, found when its holder asks."""
        assert self.of_rows is not None
        assert self.record is not None
        return Assignment.of_members(self.of_rows, self.record, self.seating.in_group, self.seating.member)

    def renumbered(self, order: Ints) -> Seated:
        """This assignment with batch order[i] as batch i."""
        size, several = self.seating.in_group.sizes, self.seating.people
        begin, own = starts(size), size[order]
        member, at = np.empty_like(self.seating.member), 0
        people = None if several is None else np.empty_like(several)
        for some in portions(own.astype(np.int64)):
            here = runs(begin[order[some]], own[some].astype(np.int64))
            member[at : at + len(here)] = self.seating.member[here]
            if people is not None and several is not None:
                people[at : at + len(here)] = several[here]
            at += len(here)
        from jali.search.halves import Seating  # which loads numba, and a release that is read needs none

        return replace(self, seating=Seating(member, Runs(own), people))

    def parts(self) -> Assigned:
        """This assignment as people of each combination, value and batch."""
        assert self.of_rows is not None
        return Assigned.of_records(self.of_rows.one_by_one(), self.of_record)


_BATCH, _COUNT = "batch", "count"
_DIGEST = b"jali"
_AGAIN = "use the private file that was saved with this release, and the table that it was made from"


def keys_of(assigned: Assigned | Seated) -> pa.Table:
    """How many rows of each combination of original values are in each batch, in the order of all three."""
    if isinstance(assigned, Seated):
        assigned = assigned.parts()
    table, f = assigned.table, assigned.table.frequencies
    order = np.lexsort((assigned.batch, assigned.value, assigned.combination))
    combination, value = assigned.combination[order], assigned.value[order]
    data = {c.name: _texts(c, f.codes[combination, i]) for i, c in enumerate(table.quasi)}
    data |= {c.name: _texts(c, f.joint[value, i]) for i, c in enumerate(table.sensitive)}
    for name, amount in ((_BATCH, assigned.batch[order] + 1), (_COUNT, assigned.people[order])):
        data[free_name(name, data)] = pa.array(amount)
    return pa.table(data)


def _texts(column: Column, codes: NDArray[np.integer]) -> pa.Array:
    """The texts of some codes, each once; a missing one has no code, since Parquet takes none in a dictionary."""
    codes = codes.astype(np.int32)
    missing = column.labels.is_null().to_numpy(zero_copy_only=False)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=missing), column.labels.fill_null(""))


def batches_of(keys: pa.Table, table: Table, contents: Contents) -> Ints:
    """The batch of each record of the table, counted from 0; who of equal records is in which does not matter.

    An InputError where the keys are not those of this table, or of the release with these contents.
    """
    columns = (*table.quasi, *table.sensitive)
    names = [column.name for column in columns]
    batch_name = free_name(_BATCH, names)
    count_name = free_name(_COUNT, [*names, batch_name])
    if keys.column_names != [*names, batch_name, count_name]:
        raise InputError("the private file has other columns than this table", do=_AGAIN)
    other_table = InputError("the private file does not belong to this table", do=_AGAIN)
    if not all(pa.types.is_integer(own.type) and own.null_count == 0 for own in keys.columns[-2:]):
        raise other_table
    try:
        batch, count = (keys[name].to_numpy().astype(np.int64) for name in (batch_name, count_name))
        asked = [_coded(keys[column.name], column.labels) for column in columns]
    except (KeyError, ValueError, TypeError, pa.ArrowException):
        raise other_table from None
    both = [(column.codes, code, len(column.values)) for column, code in zip(columns, asked, strict=True)]
    own, theirs = _matched(both, count)
    if own is None or (count < 1).any():
        raise other_table
    result = np.empty(len(own), dtype=np.int64)
    order = np.argsort(theirs, kind="stable")
    result[np.argsort(own, kind="stable")] = np.repeat(batch[order], count[order]) - 1
    _require_same(result, table, contents)
    return result


def _matched(columns: Sequence[tuple[NDArray[np.integer], Ints, int]], people: Ints) -> tuple[Ints | None, Ints]:
    """The combination of values of each record, and of each entry of some people; None where these are others.

    A column has the codes of the records and of the entries, and how many values there are.
    """
    rows = len(columns[0][0])
    both = [(np.concatenate([own.astype(np.int64), theirs]), width) for own, theirs, width in columns]
    number, first = combine(both, rows + len(people))
    own, theirs = number[:rows].astype(np.int64), number[rows:].astype(np.int64)
    same = np.array_equal(np.bincount(own, minlength=len(first)), np.bincount(theirs, people, minlength=len(first)))
    return own if same else None, theirs


def _coded(column: pa.ChunkedArray, labels: pa.Array) -> Ints:
    """The code of each text; a KeyError for one that the table does not have."""
    code = {label: number for number, label in enumerate(labels.to_pylist())}
    texts = column.cast(pa.string()).combine_chunks().dictionary_encode("encode")
    number = np.array([code[text] for text in texts.dictionary.to_pylist()], dtype=np.int64)
    found: Ints = number[texts.indices.to_numpy(zero_copy_only=False)]
    return found


def _require_same(batch: Ints, table: Table, contents: Contents) -> None:
    """Raise InputError unless these batches have the values that the release says."""
    size = contents.size
    different = InputError("the private file does not belong to this release", do=_AGAIN)
    if not 0 <= int(batch.min()) <= int(batch.max()) < len(size):  # before anything is counted up to them
        raise different
    if [column.name for column in table.sensitive] != [column.name for column in contents.hidden]:
        raise different
    if not np.array_equal(np.bincount(batch, minlength=len(size)), size):
        raise different
    both: list[tuple[NDArray[np.integer], Ints, int]] = [(batch, contents.entry_batch.astype(np.int64), len(size))]
    try:
        for column, hidden in zip(table.sensitive, contents.hidden, strict=True):
            code = _coded(pa.chunked_array([hidden.labels]), column.labels)[hidden.held]
            both.append((column.codes, code, len(column.values)))
    except KeyError:
        raise different from None
    if _matched(both, contents.people.astype(np.int64))[0] is None:
        raise different


def read_keys(path: str | Path) -> pa.Table:
    """A private file that was saved, and is as it was.

    Some changes would go unnoticed otherwise: two people with one value, say, whose batches were swapped.
    """
    file = path_of(path)
    try:
        keys = pq.read_table(file)
        if (keys.schema.metadata or {}).get(_DIGEST) != _digest(keys):
            raise InputError(f"{path} is not as it was saved with a release", do=_AGAIN)
        return keys
    except FileNotFoundError:
        raise InputError(
            f"no private file {path}", do="without it no marginal can be added to a saved release"
        ) from None
    except (OSError, pa.ArrowException):
        raise InputError(f"{path} is not a private file that jali can read", do=_AGAIN) from None


def _digest(keys: pa.Table) -> bytes:
    """A checksum of the names and rows, against accidents: it lies in the file itself, and nowhere else."""
    texts = [pc.fill_null(column.cast(pa.string()), "\0") for column in keys.columns]
    rows = pc.binary_join_element_wise(*texts, "\x1f").to_pylist()
    return hashlib.sha256("\x1e".join(["\x1f".join(keys.column_names), *rows]).encode()).hexdigest().encode()


def check_place(private: str | Path, folder: str | Path, *, overwrite: bool) -> Path:
    """Where the private file goes: never into a release's folder, nor over another file unless that is asked for."""
    path = Path(os.path.realpath(path_of(private)))
    release = Path(os.path.realpath(path_of(folder)))
    if path.suffix != ".parquet":
        raise InputError("the private file is written as Parquet", got=path.name, do="name it e.g. keys.parquet")
    if path == release or release in path.parents:
        raise InputError("the private file must not lie in the folder that is published", do="choose another place")
    if within_release(path):
        what = "the private file must not lie in the folder of a release, which is handed out as it is"
        raise InputError(what, do="choose another place")
    if path.is_dir():
        raise InputError(f"{private} is a folder", do="name a file")
    if path.exists() and not overwrite:
        raise InputError(f"the file {private} exists", do="choose another one, or pass overwrite (--overwrite)")
    return path


def write_keys(keys: pa.Table, path: Path, publish: Callable[[], Path], *, overwrite: bool) -> Path:
    """Write the keys so that they take their place only once the release has taken its own."""
    own = keys.replace_schema_metadata({_DIGEST: _digest(keys)})
    with built_file(path, lambda file: pq.write_table(own, file), overwrite=overwrite, private=True, parents=True):
        return publish()
