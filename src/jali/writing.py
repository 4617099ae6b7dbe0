"""Files: written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from jali.errors import InputError


def put_file(path: Path, write: Callable[[Path], None], *, overwrite: bool) -> None:
    """Write a file whole or not at all."""
    if path.is_dir():
        raise InputError(f"{path} is a folder", do="name a file")
    if path.exists() and not overwrite:
        raise InputError(f"the file {path} exists", do="choose another one, or pass --overwrite")
    building: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        os.close(handle)
        building = Path(name)
        write(building)
        building.chmod(0o644)
        os.replace(building, path)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise InputError(f"cannot write to {path}", got=reason, do="choose another place") from None
    finally:
        if building is not None:
            building.unlink(missing_ok=True)
