"""load: a release read back from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from jali.errors import InputError
from jali.releases import store
from jali.releases.base import Release


def load(folder: str | Path) -> Release:
    """Read a release back; its files must be those that were published."""
    from jali.releases.concealed import Concealed
    from jali.releases.generalized import Generalized, Partitioned, Recoded
    from jali.releases.linked.angel import Angel
    from jali.releases.linked.buckets import Buckets
    from jali.releases.marginals import Marginals

    tables, manifest = store.read(folder)
    known = (Generalized, Partitioned, Recoded, Buckets, Angel, Marginals, Concealed)
    kinds: dict[str, Any] = {kind.kind: kind for kind in known}
    kind: Any = manifest.get("kind")
    if isinstance(kind, str) and kind not in kinds:
        raise InputError(f'no kind of release "{kind}"', do="use a newer jali")
    try:
        if not all(isinstance(facts[key], str) for facts in manifest["columns"] for key in ("name", "role", "kind")):
            raise ValueError("a column has no name, role or kind")
        release: Release = kinds[kind].from_tables(tables, manifest)
        _ = release.columns  # some kinds make them when they are asked for, from what the manifest says
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, pa.ArrowException):
        raise InputError(f"the manifest of {folder} does not describe its tables", do="get the release again") from None
    return release
