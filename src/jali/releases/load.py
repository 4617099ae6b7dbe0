"""load: a release read back from its folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jali.core.rows import Rows
from jali.errors import InputError
from jali.releases import store
from jali.releases.base import Release


def load(folder: str | Path) -> Release:
    """Read a release back from its folder, or from a database that counts its rows; nothing of it may be changed.

    A database is named as for `write`: "postgresql://host/db?table=NAME", "clinic.duckdb?table=NAME".
    """
    tables, manifest = _read(folder)
    there = {name: sorted(rows.names) for name, rows in tables.items()}
    release = _kind_of(folder, manifest).restored(folder, tables, manifest)
    if {name: sorted(names) for name, names in release.named_columns.items()} != there:
        what = f"the tables of {folder} do not hold what its manifest describes"  # which no promise was judged with
        raise InputError(what, do="get the release again")
    return release


def _read(place: str | Path) -> tuple[Mapping[str, Rows], dict[str, Any]]:
    if located_release(place):
        from jali.sources.engines import stored
        from jali.sources.engines.locations import target_of

        location = target_of(place)
        assert location is not None
        return stored.read(location)
    return store.read(place)


def located_release(place: object) -> bool:
    """Whether a place is one in a database."""
    if not isinstance(place, (str, Path)) or os.path.isdir(place):
        return False
    from jali.sources.engines.locations import target_of

    return target_of(place) is not None


def release_of(asked_by: str, given: object) -> Release:
    """The release that is given, or that is saved in the folder that is given."""
    release = load(given) if isinstance(given, (str, Path)) else given
    if not isinstance(release, Release):
        do = "pass what jali.generalize and its like return, or the folder it was saved in"
        raise InputError(f"{asked_by} needs a release", got=type(release).__name__, do=do)
    return release


def _kind_of(folder: str | Path, manifest: dict[str, Any]) -> type[Release]:
    """The kind of release that a manifest names; no other kind is imported."""
    match manifest.get("kind"):
        case "generalized" | "partitioned" | "recoded" as kind:
            from jali.releases.generalized import Generalized, Partitioned, Recoded

            return {"generalized": Generalized, "partitioned": Partitioned, "recoded": Recoded}[kind]
        case "buckets":
            from jali.releases.linked.buckets import Buckets

            return Buckets
        case "angel":
            from jali.releases.linked.angel import Angel

            return Angel
        case "marginals":
            from jali.releases.marginals import Marginals

            return Marginals
        case "concealed":
            from jali.releases.concealed import Concealed

            return Concealed
        case str(kind):
            raise InputError(f'no kind of release "{kind}"', do="use a newer jali")
    raise InputError(f"the manifest of {folder} does not describe its tables", do="get the release again")
