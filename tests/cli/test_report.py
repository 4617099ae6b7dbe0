"""The report on the command line: which edition, where it goes, what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("matplotlib")


def test_without_the_original_it_is_the_public_edition(published: Any) -> None:
    """Also with --public, to the byte; no name stands in it, and a zip code only as one of ten that 1305* may be."""
    first = published.jali("report", "out", "-o", "a.html", "-q")
    assert first.exit_code == 0, first.stderr
    assert first.stdout == "The public edition is in a.html\n"
    text = (published / "a.html").read_text(encoding="utf-8")
    assert "Public edition" in text
    assert "Confidential" not in text
    assert not [name for name in ("Umeko", "Olga", "patients.csv", str(published.folder)) if name in text]
    assert text.count("13053:") == text.count("13050:") == text.count("13057:")
    published.jali("report", "out", "--public", "-o", "b.html")
    assert (published / "b.html").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "how", [("--job", "job.toml"), pytest.param(("--original", "patients.csv"), marks=pytest.mark.slow)]
)
def test_with_the_original_it_is_the_private_edition(published: Any, how: tuple[str, str]) -> None:
    """Marked as confidential, under the title that was asked for."""
    done = published.jali("report", "out", *how, "--title", "Ward 7 <A>", "-o", "r.html")
    assert done.exit_code == 0, done.stderr
    text = (published / "r.html").read_text(encoding="utf-8")
    assert "<title>Ward 7 &lt;A&gt;</title>" in text
    assert text.count("Confidential: this section uses the original table.") == 7
    assert "Umeko" not in text


def test_what_it_refuses(published: Any, refused: Any) -> None:
    """Both editions at once, a page among what is handed out, a file that is there, no release."""
    assert "does not use" in refused(published.jali("report", "out", "--public", "--job", "job.toml"))
    where = ("--job", "job.toml", "-o", "out/report.html")
    assert "handed out" in refused(published.jali("report", "out", *where))
    assert "another place" in refused(published.jali("report", "out", "-o", "out/report.html"))
    again = published.jali("publish", "job.toml", "--overwrite", "-q")
    assert again.exit_code == 0, again.stderr
    (published / "report.html").write_text("mine", encoding="utf-8")
    assert "--overwrite" in refused(published.jali("report", "out"))
    assert (published / "report.html").read_text(encoding="utf-8") == "mine"
    refused(published.jali("report", "nowhere"))


@pytest.mark.slow
def test_the_demo_ends_with_a_report_of_its_own(ward: Any, refused: Any) -> None:
    """It lies beside the release, is replaced with it, and somebody else's is not."""
    done = ward.jali("demo", "--rows", "3000", "-q")
    assert "jali-demo/report.html" in done.stdout
    page = ward / "jali-demo" / "report.html"
    assert page.stat().st_size < 3_000_000
    page.write_text("mine", encoding="utf-8")
    assert "did not write" in refused(ward.jali("demo", "--rows", "3000", "-q"))
    assert page.read_text(encoding="utf-8") == "mine"
