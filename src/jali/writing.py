"""Files: written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from jali.errors import InputError


def put_content(path: Path, content: str | bytes, *, overwrite: bool, private: bool = False) -> None:
    """Write a file with this content, text as UTF-8; a private one only its owner may read."""
    data = content.encode("utf-8") if isinstance(content, str) else content

    def write(file: Path) -> None:
        file.write_bytes(data)

    put_file(path, write, overwrite=overwrite, private=private)


def put_file(path: Path, write: Callable[[Path], None], *, overwrite: bool, private: bool = False) -> None:
    """Write a file whole or not at all."""
    if path.is_dir():
        raise InputError(f"{path} is a folder", do="name a file")
    if path.exists() and not overwrite:
        raise InputError(f"the file {path} exists", do="choose another one, or pass --overwrite")
    building: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # nobody else may read it yet
        os.close(handle)
        building = Path(name)
        write(building)
        if not private:
            building.chmod(0o644)
        os.replace(building, path)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise InputError(f"cannot write to {path}", got=reason, do="choose another place") from None
    finally:
        if building is not None:
            building.unlink(missing_ok=True)
