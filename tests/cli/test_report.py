"""The report on the command line: which edition, where it goes, what it refuses."""

from __future__ import annotations

import hashlib
import json
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
    assert text.count("Confidential: this section uses the original table.") == 6
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


def with_policy(ward: Any, *lines: str) -> None:
    """Give the job a policy."""
    ward.edit("job.toml", "[quasi]", "\n".join(["[policy]", *lines, "", "[quasi]"]))


LOOSE = ('preset = "internal"', "highest_risk = 0.25", 'average_risk = "1/4"', "exposed = 1")


def test_a_release_that_is_not_safe_ends_with_3(published: Any) -> None:
    """With --check, and of an audit with --policy; the page is written all the same, and stderr says why in a line."""
    done = published.jali("report", "out", "--policy", "public", "--check", "-o", "a.html")
    assert done.exit_code == 3
    assert "Highest risk of re-identification: 25.0" in done.stderr.splitlines()[-1]
    assert "groups of at least 11 people, now the smallest has" in (published / "a.html").read_text(encoding="utf-8")
    assert published.jali("report", "out", "--policy", "public", "-o", "b.html").exit_code == 0
    judged = published.jali("audit", "out", "--policy", "public", "--json", "-q")
    assert judged.exit_code == 3
    told = json.loads(judged.stdout)["verdict"]
    assert (told["decision"], told["safe"]) == ("change", False)
    assert published.jali("audit", "out", "-q").exit_code == 0


@pytest.mark.slow
def test_the_policy_of_the_job_is_taken(published: Any, refused: Any) -> None:
    """By the report of that job, and where it is named as the policy; a preset on the command line goes before it."""
    with_policy(published, *LOOSE)
    done = published.jali("report", "out", "--job", "job.toml", "--check", "-o", "a.html")
    assert done.exit_code == 0, done.stderr
    assert "Safe to publish under these assumptions." in (published / "a.html").read_text(encoding="utf-8")
    assert published.jali("audit", "out", "--policy", "job.toml", "-q").exit_code == 0
    other = published.jali("report", "out", "--job", "job.toml", "--policy", "public", "--check", "-o", "b.html", "-q")
    assert other.exit_code == 3
    published.edit("job.toml", "highest_risk", "highest_rsk")
    assert "highest_risk" in refused(published.jali("audit", "out", "--policy", "job.toml"))
    assert "highest_risk" in refused(published.jali("publish", "job.toml", "--overwrite"))


def test_a_policy_must_be_known(published: Any, refused: Any) -> None:
    """A preset, or a job that has one; it judges one release."""
    assert "public" in refused(published.jali("audit", "out", "--policy", "publik"))
    assert "no [policy]" in refused(published.jali("audit", "out", "--policy", "job.toml"))
    assert "one release" in refused(published.jali("audit", "out", "out", "--policy", "public"))


def test_two_releases_stand_side_by_side(published: Any, refused: Any) -> None:
    """In both editions; of three it asks back."""
    published.edit("job.toml", "k = 4", "k = 6")
    assert published.jali("publish", "job.toml", "-o", "other", "-q").exit_code == 0
    for how in ((), ("--job", "job.toml")):
        done = published.jali("report", "out", "other", *how, "-o", "two.html", "--overwrite")
        assert done.exit_code == 0, done.stderr
        text = (published / "two.html").read_text(encoding="utf-8")
        assert "KAnonymity(4); EntropyDiversity(2.5)" in text
        assert ("Confidential" in text) is bool(how)
        assert "Umeko" not in text
    assert "one release or two" in refused(published.jali("report", "out", "out", "out"))


def test_the_sign_off_names_who_decided_and_what_was_published(published: Any, refused: Any) -> None:
    """In the private edition alone: the digest is that of the manifest as any tool computes it."""
    signed = ("--decided-by", "Ada <b>", "--decided-on", "2026-11-17", "--decision", "publish")
    done = published.jali("report", "out", "--job", "job.toml", *signed, "-o", "a.html")
    assert done.exit_code == 0, done.stderr
    text = (published / "a.html").read_text(encoding="utf-8")
    assert hashlib.sha256((published / "out" / "manifest.json").read_bytes()).hexdigest() in text
    assert "Ada &lt;b&gt;" in text
    assert "private edition" in refused(published.jali("report", "out", *signed, "-o", "b.html"))


@pytest.mark.slow
def test_a_frontier_says_what_a_change_would_cost(published: Any, refused: Any) -> None:
    """From the file that jali frontier --json wrote; another file is refused."""
    made = published.jali("frontier", "job.toml", "--methods", "lattice", "--strengths", "11", "--json", "-q")
    (published / "f.json").write_text(made.stdout, encoding="utf-8")
    asked = ("report", "out", "--job", "job.toml", "-o", "a.html", "--frontier")
    done = published.jali(*asked, "f.json")
    assert done.exit_code == 0, done.stderr
    text = (published / "a.html").read_text(encoding="utf-8")
    assert "hat it would cost: analysts&#x27; counts would be off by" in text
    assert "For the data team: lattice at k = 11" in text
    assert "is no frontier" in refused(published.jali(*asked, "job.toml", "--overwrite"))
