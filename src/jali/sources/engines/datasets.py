"""Many Parquet files as one table: a folder, a glob, a bucket, an Arrow dataset. DuckDB counts where it is at hand."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
from pyarrow import acero

from jali.encoding.large import Cut, Sizes
from jali.errors import InputError
from jali.sources.distinct import encodable
from jali.sources.engines.base import (
    GROUP,
    NO_RECODING,
    PEOPLE,
    PERSON,
    ROWS,
    Combinations,
    Engine,
    Recoding,
    in_order,
    refuse_nobody,
    sizes_in,
)
from jali.sources.engines.databases import DatabaseTable
from jali.sources.engines.embedded import bounded, opened
from jali.sources.engines.frames import LazyFrame
from jali.sources.engines.locations import Location, is_address


@contextlib.contextmanager
def engine_at(location: Location, memory: int | None = None) -> Iterator[Engine]:
    """The engine that counts the rows of the table at a location; `memory` bounds a DuckDB that is started for it."""
    if location.scheme != "parquet":
        with opened(location, memory=memory) as database:
            yield DatabaseTable(database, database.chosen(location.table))
        return
    with engine_of(dataset_at(location.place), location.place, memory) as engine:
        yield engine


@contextlib.contextmanager
def engine_of(dataset: ds.Dataset, shown: str = "the dataset", memory: int | None = None) -> Iterator[Engine]:
    """What counts the rows of an Arrow dataset: DuckDB, where it is installed and the files are here; else Arrow.

    DuckDB gives columns other names where two differ in capitals only, and takes "*" for all columns.
    """
    names = dataset.schema.names
    plain = "*" not in names and len({name.casefold() for name in names}) == len(names)
    files = _files_here(dataset) if plain else None
    with _readable(shown):
        try:
            import duckdb
        except ModuleNotFoundError:
            yield ArrowDataset(dataset)
            return
        if files is None:
            yield ArrowDataset(dataset)
            return
        try:
            with bounded(memory) as own, duckdb.connect(config=own) as connection:
                yield LazyFrame(nw.from_native(connection.read_parquet(files, hive_partitioning=False)))
        except duckdb.OutOfMemoryException:
            raise MemoryError(f"there is not enough memory for {shown}") from None
        except duckdb.Error as problem:  # whose text can hold a value
            raise InputError(f"{shown} cannot be read", got=type(problem).__name__, do=_CHECK) from None


def _files_here(dataset: ds.Dataset) -> list[str] | None:
    """The files of a dataset of plain Parquet files on this machine; None where it is something else."""
    plain = isinstance(dataset, ds.FileSystemDataset) and isinstance(dataset.format, ds.ParquetFileFormat)
    if not plain or not isinstance(dataset.filesystem, pafs.LocalFileSystem):
        return None
    keys = {str(one.partition_expression) for one in dataset.get_fragments()}
    return list(dataset.files) if keys == {"true"} else None  # values in the names of folders are Arrow's to read


def dataset_at(place: str) -> ds.Dataset:
    """The Parquet files in a folder, of a glob, or below a URL; all must have the same columns."""
    with _readable(place):
        system, path = pafs.FileSystem.from_uri(place) if is_address(place) else (pafs.LocalFileSystem(), place)
        files, base = _files(system, path)
        if not files:
            raise InputError(f"{place} is a folder without Parquet files", do="name a file, or another folder")
        by_folder = ds.partitioning(flavor="hive")
        found = ds.dataset(files, filesystem=system, format="parquet", partitioning=by_folder, partition_base_dir=base)
        _require_alike(found, place)
        return found


def _files(system: Any, path: str) -> tuple[list[str], str]:
    """The Parquet files that a path or pattern stands for, and the folder that they all lie in."""
    wild = [path.find(letter) for letter in "*?[" if letter in path]
    if not wild and system.get_file_info(path).type == pafs.FileType.File:
        return [path], path.rpartition("/")[0]
    base = path[: min(wild)].rpartition("/")[0] if wild else path.rstrip("/")
    if isinstance(system, pafs.LocalFileSystem) and wild:
        return sorted(each for each in glob.glob(path, recursive=True) if Path(each).is_file()), base
    every = [one.path for one in system.get_file_info(pafs.FileSelector(base, recursive=True)) if one.is_file]
    own = [each for each in every if not each.rpartition("/")[2].startswith((".", "_"))]
    matching = [each for each in own if fnmatch.fnmatchcase(each, path)] if wild else own
    return sorted(each for each in matching if each.lower().endswith((".parquet", ".pq"))), base


def _require_alike(dataset: ds.Dataset, place: str) -> None:
    """Raise InputError where a file has other columns than the first: missing ones would be empty without a word."""
    first = None
    for one in dataset.get_fragments():
        own = {field.name: field.type for field in one.physical_schema}
        first = own if first is None else first
        if own != first:
            what = f"{place}: {Path(one.path).name} has other columns, or columns of another type, than the first file"
            raise InputError(what, do="name files of one table")


_CHECK = "check that these are Parquet files and that you may read them"


@contextlib.contextmanager
def _readable(place: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"no file {place}", do="check the path") from None
    except MemoryError:
        raise
    except (OSError, pa.ArrowException) as problem:
        why = getattr(problem, "strerror", None)
        what = f"{place} cannot be read" + (f" ({why})" if why else "")
        raise InputError(what, do=_CHECK) from None


@dataclass(frozen=True)
class ArrowDataset:
    """A dataset whose rows Arrow counts, batch by batch."""

    dataset: ds.Dataset

    @cached_property
    def header(self) -> list[str]:
        """The names of its columns."""
        return list(self.dataset.schema.names)

    def count(
        self, columns: Sequence[str], *, person: str | None = None, recoded: Mapping[str, Recoding] = NO_RECODING,
        within: Cut | None = None, most: int | None = None,
    ) -> Combinations:  # fmt: skip
        """The distinct combinations with their rows; of people with several rows each comes by itself."""
        plan, names = self._asked(columns, person, recoded, within)
        answer = _aggregate(plan, names, ROWS).to_table()
        if person is None:
            return in_order(answer, names, most=most)
        own = answer[PERSON]
        nobody = own.is_null() if not pa.types.is_string(own.type) else pc.or_kleene(own.is_null(), pc.equal(own, ""))
        refuse_nobody(person, int(pc.sum(answer.filter(nobody)[ROWS]).as_py() or 0))
        if len(own.unique()) == int(pc.sum(answer[ROWS]).as_py() or 0):
            return self.count(columns, recoded=recoded, most=most)
        return in_order(answer, columns, PERSON)

    def sizes(
        self, columns: Sequence[str], *, recoded: Mapping[str, Recoding] = NO_RECODING, within: Cut | None = None
    ) -> Sizes:
        """How many combinations have how many rows: counted twice over."""
        plan, names = self._asked(columns, None, recoded, within)
        keys = [ROWS] if within is None else [GROUP, ROWS]
        return sizes_in(_aggregate(_aggregate(plan, names, ROWS), keys, PEOPLE).to_table(), within)

    def batches(self, columns: Sequence[str], recoded: Mapping[str, Recoding]) -> Iterator[pa.RecordBatch]:
        """The distinct combinations, as Arrow gives them."""
        plan, names = self._asked(columns, None, recoded, None)
        yield from _aggregate(plan, names, ROWS).to_reader()

    def _asked(
        self, columns: Sequence[str], person: str | None, recoded: Mapping[str, Recoding], within: Cut | None
    ) -> tuple[acero.Declaration, list[str]]:
        """The rows that are counted, with nodes and groups, and the names of what makes a combination."""
        own = [] if person is None else [person]
        read = [*columns, *sorted(set() if within is None else within.columns - {*columns}), *own]
        for name in read:
            if pa.types.is_nested(of := self.dataset.schema.field(name).type):  # which Arrow does not count
                encodable(name, pa.nulls(0, of), None)
        scan = acero.Declaration("scan", acero.ScanNodeOptions(self.dataset, columns={n: pc.field(n) for n in read}))
        names = [*read[: len(read) - len(own)], *([] if person is None else [PERSON])]
        how = acero.ProjectNodeOptions([pc.field(n) for n in read], names)
        plan = acero.Declaration("project", how, [scan])
        for name in names:
            if name in recoded:
                plan = _joined(plan, names, name, recoded[name])
        if within is None:
            return plan, names
        kept = [GROUP, *columns]
        how = acero.ProjectNodeOptions([_group(within), *(pc.field(n) for n in columns)], kept)
        grouped = acero.Declaration("project", how, [plan])
        return acero.Declaration("filter", acero.FilterNodeOptions(pc.field(GROUP) >= 0), [grouped]), kept


def _aggregate(plan: acero.Declaration, keys: list[str], name: str) -> acero.Declaration:
    """The distinct rows, each with how often it stands."""
    how = acero.AggregateNodeOptions([([], "hash_count_all", None, name)], keys=keys)
    return acero.Declaration("aggregate", how, [plan])


def _group(cut: Cut | int) -> pc.Expression:
    """The number of the group of a row."""
    if isinstance(cut, int):
        return pc.scalar(pa.scalar(cut, pa.int64()))
    last = _group(cut.parts[-1])
    for bound, part in reversed(list(zip(cut.bounds, cut.parts, strict=False))):
        last = pc.if_else(pc.field(cut.column) < bound, _group(part), last)
    return last


def _joined(plan: acero.Declaration, names: list[str], name: str, recoding: Recoding) -> acero.Declaration:
    """Nodes in the place of the values of a column."""
    nodes = pa.table({ROWS: recoding.values, PERSON + " node": pa.array(recoding.nodes)})
    other = acero.Declaration("table_source", acero.TableSourceNodeOptions(nodes))
    both = acero.HashJoinNodeOptions("left outer", [name], [ROWS], names, [PERSON + " node"])
    joined = acero.Declaration("hashjoin", both, [plan, other])
    node = pc.field(PERSON + " node")
    node = node if recoding.missing is None else pc.coalesce(node, pc.scalar(pa.scalar(recoding.missing, pa.int64())))
    kept = [node if each == name else pc.field(each) for each in names]
    return acero.Declaration("project", acero.ProjectNodeOptions(kept, names), [joined])
