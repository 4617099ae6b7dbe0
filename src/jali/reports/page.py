"""The report: one page that opens without a network, in a public edition and a private one."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jali.core.charts import require_plots
from jali.core.files import put_content
from jali.core.text import Html, Section, bullets, document, element, joined, sentence
from jali.encoding.table import Table
from jali.errors import InputError, path_of
from jali.measures.measure import require_original
from jali.releases.base import Release
from jali.releases.load import load
from jali.releases.store import within_release
from jali.releases.summary import an, many
from jali.reports import privacy, published
from jali.reports.material import Material
from jali.risk.attacks.links import public_table as as_public
from jali.risk.audit.audit import audit
from jali.risk.audit.figures import Audit

Edition = Literal["public", "private"]

SECTIONS = (
    published.published, privacy.guarantee, privacy.disclosure, privacy.groups, privacy.worst_groups,
    published.columns, published.pairs, published.queries, published.cost, privacy.limits, published.made,
)  # fmt: skip
NOTICE = {
    "public": "Public edition: everything here is computed from the release alone.",
    "private": "Confidential: this edition compares the release with the original table. Do not hand it out; the "
    "public edition is for that.",
}


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a release, whole in one text."""

    html: str
    title: str
    edition: Edition

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the page into a file, whole or not at all; not among the files of a release."""
        target = path_of(path)
        require_outside(target)
        put_content(target, self.html, overwrite=overwrite)
        return target

    def _repr_html_(self) -> str:
        return element("iframe", srcdoc=self.html, title=self.title, style="width:100%;height:40rem;border:0")

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {self.edition} edition, {len(self.html.encode()):,} bytes)"


def require_outside(target: Path) -> None:
    """Raise InputError where a file would lie in the folder of a release, which holds its own files and no other."""
    if within_release(target):
        raise InputError(
            "a report must not lie in the folder of a release, which is handed out as it is", do="name another place"
        )


def report(
    release: Release | str | Path, original: Table | None = None, *, public: bool = False,
    public_table: Table | Any = None, title: str | None = None,
) -> Report:  # fmt: skip
    """A page that a data steward can decide from: what was published, what it guarantees, what it costs.

    Without the original it is the public edition, computed from the release alone. With it every section that uses
    the original is marked as confidential. `public` makes sure that it is the public one. `public_table`, a table,
    frame or file with everybody, is what presence is judged beside.
    """
    require_plots()
    if public and original is not None:
        raise InputError("the public edition does not use the original", do="leave the original out")
    if title is not None and not isinstance(title, str):
        raise InputError("title must be text", got=repr(title))
    found = load(release) if isinstance(release, (str, Path)) else release
    if not isinstance(found, Release):
        raise InputError("a report is about a release", got=type(found).__name__, do="pass a release or its folder")
    if original is not None:
        require_original(found, original)
    else:
        found = copy(found)  # as it is saved: what a fresh release remembers beyond its tables is left behind
    edition: Edition = "public" if original is None else "private"
    known = None if public_table is None else as_public(found, public_table, judged=True)
    found = found if known is None else found.beside(known)
    material = Material(found, original, known)
    if known is not None and not isinstance(material.audit, Audit):
        audit(found, public_table=known)  # says in full why presence cannot be judged
    named = title or f"Report on {an(found.kind)} release"
    return Report(_page(named, edition, material), named, edition)


def _page(title: str, edition: Edition, material: Material) -> str:
    sections = [make(material) for make in SECTIONS]
    notice = _notice(edition, beside=material.public_table is not None)
    top = element("header", "\n", joined([element("h1", title), notice, *_noted(material), _glance(material)]), "\n")
    body = joined([top, _contents(sections), element("main", "\n", joined(s.html() for s in sections), "\n")])
    return document(title, body, edition=edition)


def _noted(m: Material) -> list[Html]:
    """The notes of the release, and why columns are published that look like identifiers."""
    allowed = [
        f"“{name}” looks like an identifier and is published: {reason}"
        for name, reason in m.release.manifest.allowed.items()
    ]
    lines = [sentence(text) for text in (*m.release.notes, *allowed)]
    return [element("h2", "Notes"), bullets(lines)] if lines else []


def _notice(edition: Edition, *, beside: bool) -> Html:
    text = NOTICE[edition]
    if beside and edition == "public":
        text = text.replace("the release alone", "the release and the public table against which presence is judged")
    return element("p", text, class_="mark" if edition == "private" else "open")


def _glance(m: Material) -> Html:
    """The few figures that matter most."""
    counts = m.manifest["counts"]
    facts = [("Rows", f"{counts['rows']:,}")]
    facts += [(m.release.words.shown, f"{counts['groups']:,}")] if counts.get("groups") else []
    if isinstance(m.audit, Audit):
        facts.append((m.release.words.alike, f"{m.audit.k:,}"))
        if m.audit.kept:
            broken = [name for name, kept in m.audit.kept.items() if not kept]
            said = "all kept" if not broken else f"{many(len(broken), 'promise')} BROKEN"
            facts.append(("Promises", said))
    items = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    return element("dl", *items, class_="glance")


def _contents(sections: list[Section]) -> Html:
    links = [
        element("li", element("a", s.title, href=f"#{s.name}"), " (confidential)" if s.confidential else "")
        for s in sections
    ]
    return element("nav", element("h2", "Contents"), element("ol", *links), aria_label="Contents")
