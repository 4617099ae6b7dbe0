"""Private folders: only those that a process of ours left are ever removed, and only once it is gone."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jali.core import scratch
from jali.core.files import lock
from jali.core.scratch import LOCK, PREFIX, clear_abandoned, private_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="nothing is cleared without users and locks")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty temporary folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def abandoned(parent: Path, name: str = "abandoned") -> Path:
    """A folder as a killed process leaves it."""
    with private_folder() as own:
        told = (own / LOCK).read_bytes()
    folder = parent / f"{PREFIX}{name}"
    folder.mkdir(mode=0o700)
    (folder / LOCK).touch(mode=0o600)
    (folder / LOCK).write_bytes(told)
    for each in ("combinations.duckdb", "combinations.duckdb.wal", "combinations.parquet", "duckdb_temp_storage-0.tmp"):
        (folder / each).write_bytes(b"codes")
    return folder


def test_an_abandoned_folder_is_removed_by_the_next_use(temporary: Path) -> None:
    """With all that is in it; one that is in use stays, whoever asks, and is gone in the end."""
    folder = abandoned(temporary)
    with private_folder() as first:
        assert not folder.exists()
        assert stat.S_IMODE(first.stat().st_mode) == 0o700
        (first / "combinations.duckdb").touch()
        with private_folder() as second:
            clear_abandoned(temporary)
            assert {*temporary.iterdir()} == {first, second}
            assert (first / "combinations.duckdb").exists()
    assert [*temporary.iterdir()] == []


def _linked(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def _linked_lock(folder: Path) -> None:
    (folder / LOCK).rename(folder.parent / "lock")
    (folder / LOCK).symlink_to(folder.parent / "lock")


def _piped(folder: Path) -> None:
    (folder / LOCK).unlink()
    os.mkfifo(folder / LOCK, 0o600)


def _with_link(folder: Path) -> None:
    (folder / "combinations.link").symlink_to("/")


CHANGES: dict[str, Callable[[Path], object]] = {
    "its name is another": lambda folder: folder.rename(folder.with_name("others-abandoned")),
    "it is a link": _linked,
    "others may look into it": lambda folder: folder.chmod(0o755),
    "it has no lock": lambda folder: (folder / LOCK).unlink(),
    "its lock is a link": _linked_lock,
    "its lock is a pipe": _piped,
    "others may open its lock": lambda folder: (folder / LOCK).chmod(0o644),
    "its lock is of another machine": lambda folder: (folder / LOCK).write_bytes(b"jali " + b"0" * 32),
    "its lock says nothing": lambda folder: (folder / LOCK).write_bytes(b""),
    "its lock says more": lambda folder: (folder / LOCK).write_bytes((folder / LOCK).read_bytes() + b"!"),
    "it has a file of somebody": lambda folder: (folder / "notes.txt").write_text("mine"),
    "it has a folder": lambda folder: (folder / "combinations.folder").mkdir(),
    "it has a link": _with_link,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_folder_that_may_be_of_somebody_else_is_never_touched(
    change: Callable[[Path], object], temporary: Path
) -> None:
    """Each of these alone is enough."""
    change(abandoned(temporary))
    before = sorted(temporary.rglob("*"))
    with private_folder():
        pass
    assert sorted(temporary.rglob("*")) == before


def test_a_folder_of_another_user_is_never_touched(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by a user who may write everywhere."""
    folder = abandoned(temporary)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    clear_abandoned(temporary)
    assert folder.exists()
    monkeypatch.undo()
    clear_abandoned(temporary)
    assert not folder.exists()


def test_a_folder_is_held_by_its_lock_and_not_by_a_number_of_a_process(temporary: Path) -> None:
    """Another handle on the lock, such as that of a forked process, holds it too."""
    folder = abandoned(temporary)
    handle = os.open(folder / LOCK, os.O_RDWR)
    assert lock(handle)
    clear_abandoned(temporary)
    assert (folder / "combinations.duckdb").exists()
    os.close(handle)
    clear_abandoned(temporary)
    assert not folder.exists()


def test_without_locks_nothing_is_taken_for_abandoned(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that is found nor one that is made there."""
    folder = abandoned(temporary)
    monkeypatch.setattr(scratch, "lock", lambda handle: False)
    with private_folder() as own:
        assert [*own.iterdir()] == []
        monkeypatch.undo()
        clear_abandoned(own.parent)
        assert own.exists()
    assert folder.exists() is False  # by the call with locks


def test_a_folder_is_never_seen_with_a_lock_that_is_not_held(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever clears at any moment while a folder is made leaves it."""
    real = os.rename

    def looking(*given: object) -> None:
        clear_abandoned(temporary)
        real(*given)  # type: ignore[arg-type]
        clear_abandoned(temporary)

    monkeypatch.setattr(os, "rename", looking)
    with private_folder() as own:
        assert (own / LOCK).exists()


def test_the_lock_goes_last(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who is killed while removing a folder leaves one that the next use removes."""
    folder = abandoned(temporary)
    real, left = os.unlink, [2]

    def killed(path: str, *, dir_fd: int | None = None) -> None:
        if left[0] == 0:
            raise OSError
        left[0] -= 1
        real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", killed)
    clear_abandoned(temporary)
    monkeypatch.undo()
    assert len([*folder.iterdir()]) == 3
    clear_abandoned(temporary)
    assert not folder.exists()


@pytest.mark.parametrize("target", ["folder", "file", "nothing"])
def test_a_link_in_the_place_of_a_folder_is_not_followed(temporary: Path, target: str) -> None:
    """In a temporary folder where others may rename what they do not own."""
    theirs = temporary.parent / "theirs"
    if target == "folder":
        (theirs / "below").mkdir(parents=True)
        (theirs / "below" / "kept").touch()
        (theirs / "kept").touch()
    elif target == "file":
        theirs.touch()
    before = sorted(temporary.parent.rglob("*"))
    with private_folder() as own:
        own.rename(temporary / "moved")
        own.symlink_to(theirs)
    assert [*filter(os.path.lexists, before)] == before
    assert own.is_symlink()
