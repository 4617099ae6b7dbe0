"""Lazy frames: DuckDB relations, Polars, Ibis and Spark count their own rows, asked through narwhals."""

from __future__ import annotations

import contextlib
import logging
import pickle
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from jali.core.scratch import private_folder
from jali.encoding.large import Cut, Sizes, TooManyError
from jali.errors import ChangedError, InputError
from jali.sources.distinct import gathered
from jali.sources.engines.base import (
    GROUP,
    NO_RECODING,
    PEOPLE,
    PERSON,
    PROFILE,
    ROWS,
    Combinations,
    Recoding,
    in_order,
    profiles_in,
    profiles_of,
    quoted,
    refuse_nobody,
    sizes_in,
)
from jali.sources.engines.embedded import reader_of

T = TypeVar("T")


@dataclass(frozen=True)
class LazyFrame:
    """A lazy frame of any library that narwhals knows."""

    frame: nw.LazyFrame[Any]
    number: str | None = None  # the column that says how many rows each stands for

    @property
    def library(self) -> str:
        """Which library it is of: "duckdb", "polars", "ibis", "pyspark" …"""
        return str(self.frame.implementation.name).lower().removesuffix("_connect")

    @property
    def header(self) -> list[str]:
        """The names of its columns."""
        return list(self.frame.collect_schema().names())

    def count(
        self, columns: Sequence[str], *, person: str | None = None, recoded: Mapping[str, Recoding] = NO_RECODING,
        within: Cut | None = None, most: int | None = None,
    ) -> Combinations:  # fmt: skip
        """The distinct combinations with their rows, person by person where somebody has several."""
        frame, names = self._asked(columns, person, recoded, within)
        if person is None or not self._has_repeated(frame, person):
            return in_order(self._answer(self._grouped(frame, names), most, recoded), names, most=most)
        if self.library in _PROFILES:
            return _PROFILES[self.library](frame.to_native(), names)
        every = [*names, PERSON]
        return in_order(self._grouped(frame, every).collect("pyarrow").to_arrow(), names, PERSON)

    def sizes(
        self, columns: Sequence[str], *, recoded: Mapping[str, Recoding] = NO_RECODING, within: Cut | None = None
    ) -> Sizes:
        """How many combinations have how many rows: counted twice over."""
        frame, names = self._asked(columns, None, recoded, within)
        keys = [ROWS] if within is None else [GROUP, ROWS]
        again = self._grouped(frame, names).group_by(keys).agg(nw.len().alias(PEOPLE))
        return sizes_in(again.collect("pyarrow").to_arrow(), within)

    def batches(self, columns: Sequence[str], recoded: Mapping[str, Recoding]) -> Iterator[pa.RecordBatch]:
        """The distinct combinations, as the library gives them."""
        frame, names = self._asked(columns, None, recoded, None)
        yield from _BATCHES[self.library](self._grouped(frame, names).to_native())

    @contextlib.contextmanager
    def kept(self, columns: Sequence[str], recoded: Mapping[str, Recoding]) -> Iterator[LazyFrame]:
        """The distinct combinations in the hands of Spark, on the disks of its workers, until the block ends."""
        from pyspark import StorageLevel

        frame, names = self._asked(columns, None, recoded, None)
        own = self._grouped(frame, names).to_native().persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield LazyFrame(nw.from_native(own), ROWS)
        finally:
            with contextlib.suppress(Exception):  # a session that has ended keeps nothing
                own.unpersist()

    def each(
        self, work: Callable[[Combinations], T], columns: Sequence[str], recoded: Mapping[str, Recoding], within: Cut
    ) -> list[T] | None:
        """What Spark's workers, which need jali and pandas, make of each group by `work`; None where they fail."""
        frame, names = self._asked(columns, None, recoded, within)

        def one(group: pa.Table) -> pa.Table:
            return pa.table({"made": pa.array([pickle.dumps(work(in_order(group, names)))], pa.binary())})

        groups = self._grouped(frame, names).to_native().groupBy(_spark_name(GROUP))
        try:
            with warnings.catch_warnings(action="ignore"):  # that it knows no newer pandas, none of which is used
                made = groups.applyInArrow(one, "made binary").collect()
        except Exception as problem:
            if type(problem).__module__.split(".")[0] not in ("py4j", "pyspark"):
                raise
            logging.getLogger("jali").info("Spark's workers cannot cut groups: %s; done here", type(problem).__name__)
            return None
        return [pickle.loads(bytes(row.made)) for row in made]

    def _asked(
        self, columns: Sequence[str], person: str | None, recoded: Mapping[str, Recoding], within: Cut | None
    ) -> tuple[nw.LazyFrame[Any], list[str]]:
        """The rows that are counted, with nodes and groups, and the names of what makes a combination."""
        names = list(columns)
        read = [*names, *sorted(set() if within is None else within.columns - {*names})]
        if self.library == "duckdb" and "*" in read:
            raise InputError('a column of DuckDB cannot be called "*", which stands for all columns', do="rename it")
        more: list[Any] = [
            *([] if person is None else [nw.col(person).alias(PERSON)]),
            *([self.number] if self.number else []),
        ]
        frame = self.frame.select([*read, *more])
        for name in read:
            if name in recoded:
                frame = self._recoded(frame, name, recoded[name])
        if within is not None:
            frame = frame.with_columns(_group(within).alias(GROUP)).filter(nw.col(GROUP) >= 0)
            names = [GROUP, *names]
        return frame, names

    def _grouped(self, frame: nw.LazyFrame[Any], names: list[str]) -> nw.LazyFrame[Any]:
        """The distinct rows of these columns, with how many there are of each.

        Columns have plain names while they are grouped: DuckDB would read "x.y" as the column y of a table x.
        """
        rows = nw.len() if self.number is None else nw.col(self.number).sum()
        plain = {name: f"c{at}" for at, name in enumerate(names)}
        own: list[Any] = [
            *(nw.col(name).alias(each) for name, each in plain.items()),
            *([self.number] if self.number else []),
        ]
        counted = frame.select(*own).group_by([*plain.values()], drop_null_keys=False).agg(rows.alias(ROWS))
        return counted.select(*(nw.col(each).alias(name) for name, each in plain.items()), ROWS)

    def _answer(self, counted: nw.LazyFrame[Any], most: int | None, recoded: Mapping[str, Recoding]) -> pa.Table:
        """What was counted; TooManyError, or a table of more rows, where it is more than `most`."""
        if self.library == "pyspark" and self.number is None and not recoded:  # values, and not their codes
            return sent_by_spark(counted.to_native(), most)
        counted = counted if most is None else counted.head(most + 1)
        return counted.collect("pyarrow").to_arrow()

    @staticmethod
    def _has_repeated(frame: nw.LazyFrame[Any], person: str) -> bool:
        """Whether somebody has several rows; an InputError where a row is nobody's."""
        own = nw.col(PERSON)
        nobody = own.is_null()
        if frame.collect_schema()[PERSON] == nw.String:
            nobody = nobody | (own == "")
        asked = (
            frame.select(nobody.alias("n"), own).group_by("n", PERSON, drop_null_keys=False).agg(nw.len().alias("r"))
        )
        found = asked.select(
            nw.col("r").max().alias("most"),
            nw.when(nw.col("n")).then(nw.col("r")).otherwise(nw.lit(0)).sum().alias("nobody"),
        )
        answer = found.collect("pyarrow").to_arrow().to_pylist()[0]
        refuse_nobody(person, int(answer["nobody"] or 0))
        return int(answer["most"] or 0) > 1

    def _recoded(self, frame: nw.LazyFrame[Any], name: str, recoding: Recoding) -> nw.LazyFrame[Any]:
        """The frame with the nodes of a column's values in their place, by a join."""
        value, node = f"{PROFILE} {name}", f"{ROWS} {name}"
        nodes = pa.table({value: recoding.values, node: pa.array(recoding.nodes)})
        names = list(frame.collect_schema().names())
        joined = frame.join(nw.from_native(_NODES[self.library](frame.to_native(), nodes)).lazy(),
                            left_on=name, right_on=value, how="left")  # fmt: skip
        own = nw.col(node) if recoding.missing is None else nw.col(node).fill_null(recoding.missing)
        return joined.select(*(own.alias(name) if each == name else nw.col(each) for each in names))


def _group(cut: Cut | int) -> Any:
    """The number of the group of a row."""
    if isinstance(cut, int):
        return nw.lit(cut)
    last = _group(cut.parts[-1])
    for bound, part in reversed(list(zip(cut.bounds, cut.parts, strict=False))):
        last = nw.when(nw.col(cut.column) < bound).then(_group(part)).otherwise(last)
    return last


# -- a table of ours in the hands of an engine ----------------------------------------------------------------------


def _in_duckdb(relation: Any, nodes: pa.Table) -> Any:
    return relation.query("jali_rows", "SELECT * FROM nodes")  # which DuckDB finds by its name


def _in_polars(frame: Any, nodes: pa.Table) -> Any:
    import polars as pl

    return pl.from_arrow(nodes).lazy()  # type: ignore[union-attr]


def _in_spark(frame: Any, nodes: pa.Table) -> Any:
    from pyspark.sql import functions as f

    return f.broadcast(frame.sparkSession.createDataFrame(nodes))


def _in_ibis(table: Any, nodes: pa.Table) -> Any:
    import ibis

    return ibis.memtable(nodes)


_NODES: dict[str, Callable[[Any, pa.Table], Any]] = {
    "duckdb": _in_duckdb, "polars": _in_polars, "pyspark": _in_spark, "ibis": _in_ibis,
}  # fmt: skip


# -- combinations that come here, some at a time --------------------------------------------------------------------


def _polars_batches(frame: Any) -> Iterator[pa.RecordBatch]:
    """Through a file, which Polars writes without holding all of it."""
    with private_folder() as folder:
        path = folder / "combinations.parquet"
        frame.sink_parquet(path)
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches()


_BATCHES: dict[str, Callable[[Any], Iterable[pa.RecordBatch]]] = {
    "duckdb": reader_of, "polars": _polars_batches, "ibis": lambda table: table.to_pyarrow_batches(),
}  # fmt: skip


SENT = 1 << 20
"""Rows that Spark sends together, about."""
PARTS = 16
"""Parts that it sends at the most: for each it looks at all rows."""


def sent_by_spark(frame: Any, most: int | None = None) -> pa.Table:
    """The rows of a frame with its texts as codes: the texts of all rows are never here at once."""
    with contextlib.closing(_spark_parts(frame, most)) as parts:
        answer = gathered(parts)
    pa.default_memory_pool().release_unused()  # what the texts took
    return answer


def _spark_parts(frame: Any, most: int | None) -> Generator[pa.Table]:
    """The rows of a frame, some at a time; Spark computes them once and keeps them meanwhile, on its workers."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as f

    own = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        rows = own.count()
        if most is not None and rows > most:
            raise TooManyError
        parts = min(PARTS, max(1, -(-rows // SENT)))
        part = f.pmod(f.xxhash64(*(f.col(_spark_name(name)) for name in own.columns)), f.lit(parts))
        for at in range(parts):
            sent = (own.filter(part == at) if parts > 1 else own).toArrow()
            rows -= sent.num_rows
            yield sent
        if rows:  # a worker was lost, and the rows that it computes again are others
            raise ChangedError()
    finally:
        own.unpersist()


# -- people: what each person has, and how many people have the same -------------------------------------------------


def _duckdb_profiles(relation: Any, names: list[str]) -> Combinations:
    fields = ", ".join(f"c{at} := {quoted(name)}" for at, name in enumerate(names))
    columns = ", ".join(map(quoted, names))
    answer = relation.query(
        "jali_rows",
        f"""SELECT profile AS {quoted(PROFILE)}, count(*) AS {quoted(PEOPLE)} FROM (
          SELECT list_sort(list(struct_pack({fields}, n := jali_n))) AS profile FROM (
            SELECT {quoted(PERSON)}, {columns}, count(*) AS jali_n FROM jali_rows GROUP BY {quoted(PERSON)}, {columns}
          ) GROUP BY {quoted(PERSON)}
        ) GROUP BY profile""",
    )
    return profiles_of(answer.to_arrow_table(), names).each()


def _polars_profiles(frame: Any, names: list[str]) -> Combinations:
    import polars as pl

    fields = [pl.col(name).alias(f"c{at}") for at, name in enumerate(names)]
    each = frame.group_by(PERSON, *names).agg(pl.len().alias(ROWS))
    profile = pl.struct([*fields, pl.col(ROWS).alias("n")]).sort().alias(PROFILE)
    alike = each.group_by(PERSON).agg(profile).group_by(PROFILE).agg(pl.len().alias(PEOPLE))
    return profiles_of(alike.collect().to_arrow(), names).each()


def _spark_profiles(frame: Any, names: list[str]) -> Combinations:
    from pyspark.sql import functions as f

    renamed = frame.select(f.col(_spark_name(PERSON)).alias("person"), *(
        f.col(_spark_name(name)).alias(f"c{at}") for at, name in enumerate(names)))  # fmt: skip
    columns = [f"c{at}" for at in range(len(names))]
    each = renamed.groupBy("person", *columns).agg(f.count(f.lit(1)).alias("n"))
    profile = f.array_sort(f.collect_list(f.struct(*columns, "n"))).alias(PROFILE)
    alike = each.groupBy("person").agg(profile).groupBy(f.col(_spark_name(PROFILE)))
    return profiles_of(alike.agg(f.count(f.lit(1)).alias(PEOPLE)).toArrow(), names).each()


def _spark_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _ibis_profiles(table: Any, names: list[str]) -> Combinations:
    """Not every database of Ibis has lists of structures; all can number rows by their rank, and join texts."""
    import ibis

    numbered = table.mutate(**{PROFILE: ibis.dense_rank().over(order_by=names)})
    places = numbered.select(PROFILE, *names).distinct().to_pyarrow()
    each = numbered.group_by([PERSON, PROFILE]).agg(**{ROWS: numbered.count()})
    each = each.mutate(one=each[PROFILE].cast("string") + ":" + each[ROWS].cast("string"))
    alike = each.group_by(PERSON).agg(**{PROFILE: each["one"].group_concat(",")})
    answer = alike.group_by(PROFILE).agg(**{PEOPLE: alike.count()}).to_pyarrow()
    return profiles_in(places, names, answer).each()


_PROFILES: dict[str, Callable[[Any, list[str]], Combinations]] = {
    "duckdb": _duckdb_profiles, "polars": _polars_profiles, "pyspark": _spark_profiles, "ibis": _ibis_profiles,
}  # fmt: skip
