"""Releases that an engine writes: tables of a database, or a folder that Spark fills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jali.errors import InputError, nearest, one_of
from jali.releases import store
from jali.releases.written import files_of
from jali.sources.engines import stored
from jali.sources.engines.locations import Location, target_of

if TYPE_CHECKING:
    from jali.core.rows import Rows
    from jali.releases.base import Release
    from jali.sources.engines.spark import Spark

_OF_FOLDERS = ("spark", "arrow")


def write(release: Release, target: str | Path, *, engine: Any, overwrite: bool) -> Path:
    """Write a release with the engine of its target; where it went, as `load` takes it."""
    location = target_of(target)
    if location is not None:
        return _write_database(release, location, engine, overwrite=overwrite)
    if engine is None or one_of(engine, ("arrow",)):
        return release.save(target, overwrite=overwrite, format="parquet")
    from jali.sources.engines.spark import Spark

    spark = Spark.of(engine)
    if spark is None:
        got = engine if isinstance(engine, str) else type(engine).__name__
        do = nearest(engine, _OF_FOLDERS) if isinstance(engine, str) else 'pass engine="spark", or a Spark session'
        raise InputError("no engine that writes a folder", got=str(got), do=do)
    return _write_folder(release, target, spark, overwrite=overwrite)


def _write_database(release: Release, location: Location, engine: Any, *, overwrite: bool) -> Path:
    if engine is not None and not one_of(engine, (location.scheme,)):
        raise InputError(f"{location.shown} writes for itself", do="leave engine= out")
    release.verify()
    stored.write(
        location, _whole(release), release.written_facts(), overwrite=overwrite,
        check=lambda read: release.check_written(location.shown, read),
    )  # fmt: skip
    return location.address


def _write_folder(release: Release, folder: str | Path, spark: Spark, *, overwrite: bool) -> Path:
    """Tables whose rows have no number, but an order that says something, are written here."""

    def files(new: Path, name: str, rows: Rows) -> dict[str, dict[str, Any]]:
        return files_of(new, name, rows, "parquet") if rows.order is None else spark.write(new, name, rows)

    with store.hold_release(folder, overwrite=overwrite):
        release.verify()
        return store.write(
            folder, _whole(release), release.written_facts(), overwrite=overwrite, form="parquet",
            check=lambda new: release.check_written(new, lambda: _counted(new, spark)), write_files=files,
        )  # fmt: skip


def _whole(release: Release) -> dict[str, Rows]:
    return {name: rows.whole() for name, rows in release.counted_tables.items()}


def _counted(folder: Path, spark: Spark) -> tuple[dict[str, Rows], dict[str, Any]]:
    """The tables of a folder as Spark counts them, and the manifest."""
    manifest = store.manifest_of(folder)
    parts: dict[str, list[Path]] = {}
    for name, facts in manifest.pop("files").items():
        if facts["table"] is not None:
            parts.setdefault(facts["table"], []).append(folder / name)
    return {name: spark.counted(paths) for name, paths in parts.items()}, manifest
