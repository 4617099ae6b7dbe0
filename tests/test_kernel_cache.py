"""Machine code on disk is used only while every source that it was made from is the same."""

from __future__ import annotations

import ast
import importlib
import pickle
import shutil
from pathlib import Path

import numba
import numpy as np
import pytest

import jali
from jali.kernels import jit

PACKAGE = Path(jali.__file__).parent
KERNELS = sorted(path for path in PACKAGE.rglob("*.py") if "import inner" in path.read_text("utf-8"))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for path in (path for pattern in jit.SOURCES for path in PACKAGE.glob(pattern)):
        (tmp_path / path.relative_to(PACKAGE)).parent.mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(PACKAGE))
    return tmp_path


def key(package: Path) -> str:
    jit.key_of.cache_clear()
    return jit.key_of(package)


def test_a_copy_has_the_same_key(copied: Path) -> None:
    assert key(copied) == key(PACKAGE)


@pytest.mark.parametrize(
    "name", ["kernels/judge.py", "kernels/worst_case.py", "kernels/jit.py", "principles/worst_case.py"]
)
def test_an_edit_of_anything_that_a_kernel_calls_changes_the_key(copied: Path, name: str) -> None:
    before = key(copied)
    edited = copied / name
    edited.write_bytes(edited.read_bytes().replace(b"1", b"2", 1))  # of the same length, as a constant's edit may be
    assert key(copied) != before


def test_a_source_that_comes_goes_or_is_renamed_changes_the_key(copied: Path) -> None:
    keys = [key(copied)]
    (copied / "kernels" / "new.py").write_text("ONE = 1\n")
    keys.append(key(copied))
    (copied / "kernels" / "new.py").rename(copied / "kernels" / "newer.py")
    keys.append(key(copied))
    assert len(set(keys)) == 3
    (copied / "kernels" / "newer.py").unlink()
    assert key(copied) == keys[0]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_every_kernel_on_disk_has_that_key(path: Path) -> None:
    module = importlib.import_module(f"jali.{path.parent.name}.{path.stem}")
    caches = [getattr(found, "_cache", None) for found in vars(module).values()]
    files = [cache._cache_file for cache in caches if hasattr(cache, "_cache_file")]
    assert all(file._source_stamp == key(PACKAGE) for file in files)


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernels_take_in_only_sources_that_the_key_covers(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jali."):
            source = PACKAGE.parent / f"{str(node.module).replace('.', '/')}.py"
            room = source.with_suffix("") / "__init__.py"
            assert any(found in (source, room) for pattern in jit.SOURCES for found in PACKAGE.glob(pattern))


def test_machine_code_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from jali.kernels.worst_case import choose, few_that_matter

    few_that_matter(np.ones((2, 2), dtype=np.int64), 1)
    assert jit.is_stored(choose)
    monkeypatch.setattr(choose._cache._cache_file, "_source_stamp", "of an edited source")
    assert not jit.is_stored(choose)


def test_machine_code_for_classes_that_have_moved_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jali.kernels.worst_case import choose

    index = tmp_path / "stale.nbi"
    index.write_bytes(pickle.dumps(numba.__version__) + b"cjali.kernels.gone\nLayout\n.")
    monkeypatch.setattr(choose._cache._cache_file, "_index_path", str(index))
    assert not jit.is_stored(choose)
