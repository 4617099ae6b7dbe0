"""Releases that an earlier jali wrote mean what they meant: the folders of tests/kept are never written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import jali
from jali.releases.concealed import Concealed
from kept.releases import HERE, MADE, original_file, public, read_again, said

SAID: dict[str, Any] = json.loads((HERE / "said.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(SAID))
def test_a_release_of_an_earlier_jali_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    """Its summary, audit, counts, covers and measures are those of the jali that wrote it."""
    release = jali.load(HERE / name)
    # What is measured against is a table that is not saved: another one, with the same invented rows, is as good.
    found = said(release, MADE[name][0]()) | {"read": read_again(release, original_file(tmp_path))}
    expected = dict(SAID[name])
    assert found.pop("kl") == pytest.approx(expected.pop("kl"), abs=1e-12)
    assert found == expected


@pytest.mark.parametrize("name", sorted(SAID))
def test_a_release_of_an_earlier_jali_is_saved_again_byte_by_byte(name: str, tmp_path: Path) -> None:
    """Tables, pictures and manifest."""
    release = jali.load(HERE / name)
    beside = release.beside(public()) if isinstance(release, Concealed) else release
    again = beside.save(tmp_path / "again")
    files = {path.name: path.read_bytes() for path in (HERE / name).iterdir()}
    assert {path.name: path.read_bytes() for path in again.iterdir()} == files


def test_every_kind_and_every_display_is_kept() -> None:
    """What is kept covers what can be written: a new kind or display needs a folder of its own."""
    manifests = [json.loads((HERE / name / "manifest.json").read_text(encoding="utf-8")) for name in SAID]
    kinds = {manifest["kind"] for manifest in manifests}
    assert kinds == {"generalized", "partitioned", "recoded", "buckets", "angel", "marginals", "concealed"}
    told = [column["hierarchy"] for manifest in manifests for column in manifest["columns"] if column.get("hierarchy")]
    assert {one.get("display") for one in told} == {None, "taxonomy", "interval", "set", "pdf"}
    families = {one["made_by"].partition("(")[0] for one in told if "made_by" in one}
    assert families == {"bands", "mask", "dates", "suppress", "taxonomy", ""}
    assert {one["display"] for one in told if one.get("hidden")} == {"interval", "set", "pdf"}
    assert any(one.get("crossing") for one in told)
