"""The report: one page that opens without a network, in a public edition and a private one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jali.core.files import content, put_content
from jali.core.text import (
    Html,
    Section,
    bullets,
    document,
    element,
    html_table,
    joined,
    listed,
    paragraphs,
    percent,
    sentence,
)
from jali.encoding.table import Table
from jali.errors import InputError, nearest, path_of
from jali.measures.measure import require_original
from jali.releases.base import Release
from jali.releases.load import load
from jali.releases.store import within_release
from jali.releases.summary import an, many
from jali.reports import decision, privacy, published
from jali.reports.material import Material, Missing
from jali.risk.audit.audit import audit
from jali.risk.audit.figures import Audit
from jali.risk.policy import Policy, policy_of
from jali.risk.verdict import Verdict, naming

if TYPE_CHECKING:
    from jali.compare.frontier import Frontier
    from jali.risk.attacks.scene import Gallery

Edition = Literal["public", "private"]

SECTIONS = (
    decision.decision, decision.before, published.columns, privacy.guarantee, privacy.disclosure, privacy.groups,
    privacy.worst_groups, published.pairs, published.queries, published.cost, published.published, privacy.limits,
    published.made, decision.signoff,
)  # fmt: skip
DECIDED = ("decision", "by", "on")
"""What the holder may say for the sign-off."""
NOTICE = {
    "public": "Public edition: everything here is computed from the release alone.",
    "private": "Confidential report: it compares the release with the original table, and stays with you (the public "
    "edition is for handing out). The verdict below is about the data.",
}


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a release, whole in one text, and the verdict that it begins with."""

    html: str
    title: str
    edition: Edition
    verdicts: tuple[Verdict, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether the release may be published; of two releases that of the first."""
        return self.verdicts[0]

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
    release: Release | str | Path | Sequence[Release | str | Path], original: Table | None = None, *,
    public: bool = False, public_table: Table | Any = None, title: str | None = None,
    policy: Policy | str | Mapping[str, Any] | None = None, attacks: Gallery | bool = False,
    frontier: Frontier | str | Path | None = None, decided: Mapping[str, str] | None = None,
) -> Report:  # fmt: skip
    """A page that a data steward can decide from: the verdict, what it follows from, what was gained and lost.

    Without the original it is the public edition, computed from the release alone. With it every section that uses
    the original is marked as confidential. `public` makes sure that it is the public one. `public_table`, a table,
    frame or file with everybody, is what presence is judged beside. The verdict follows from the `policy`: "public"
    (the default), "researchers", "internal", or a mapping of thresholds. `attacks=True` also tries the attack that
    takes longest; what `jali.attacks` found can be given instead. A `frontier`, or what `jali frontier --json` wrote,
    says what changes would cost. `decided` is for the sign-off: decision, by, on. Of two releases in a list the page
    shows both side by side.
    """
    if public and original is not None:
        raise InputError("the public edition does not use the original", do="leave the original out")
    if title is not None and not isinstance(title, str):
        raise InputError("title must be text", got=repr(title))
    given = list(release) if isinstance(release, (list, tuple)) else [release]
    if len(given) not in (1, 2):
        raise InputError("a report is about one release or two", got=str(len(given)), do="name one or two")
    if original is None and (attacks or frontier is not None or decided):
        raise InputError("attacks, frontier and decided are for the private edition", do="pass the original too")
    asked = None if policy is None else policy_of(policy), attacks, _costs(frontier), _said(decided)
    every = [_material(one, original, public_table, asked) for one in given]
    if len(every) == 1:
        return report_of(every[0], title=title)
    edition: Edition = "public" if original is None else "private"
    named = title or "Two releases side by side"
    return Report(_beside(named, edition, *every), named, edition, tuple(m.verdict for m in every))


def report_of(material: Material, *, title: str | None = None) -> Report:
    """The page about one release; figures that its material has computed before are not computed again."""
    edition: Edition = "public" if material.original is None else "private"
    named = title or f"Report on {an(material.release.kind.replace('angel', 'ANGEL'))} release"
    return Report(_page(named, edition, material), named, edition, (material.verdict,))


def _material(one: Any, original: Table | None, public_table: Any, asked: tuple[Any, ...]) -> Material:
    """What the page shows of a release, checked."""
    policy, attacks, frontier, decided = asked
    found = load(one) if isinstance(one, (str, Path)) else one
    if not isinstance(found, Release):
        raise InputError("a report is about a release", got=type(found).__name__, do="pass a release or its folder")
    if original is not None:
        require_original(found, original)
        kept = {"digest": digest(Path(one)), "release": Path(one).name} if isinstance(one, (str, Path)) else {}
        decided = decided | kept
    else:
        found = copy(found)  # as it is saved: what a fresh release remembers beyond its tables is left behind
    known = None
    if public_table is not None:
        from jali.risk.attacks.links import public_table as as_public  # which loads the search for presence

        known = as_public(found, public_table, judged=True)
        found = found.beside(known)
    material = Material(found, original, known, policy, attacks, frontier, decided)
    if known is not None and not isinstance(material.audit, Audit):
        audit(found, public_table=known)  # says in full why presence cannot be judged
    return material


def digest(folder: Path) -> str:
    """The SHA-256 of the manifest of a saved release, which has those of its files; nothing where there is none."""
    manifest = folder / "manifest.json"
    return sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else ""


def _said(decided: Mapping[str, str] | None) -> dict[str, str]:
    for key, value in (decided or {}).items():
        if key not in (*DECIDED, "digest", "release"):
            raise InputError(f'decided: no entry "{key}"', do=nearest(str(key), DECIDED))
        if not isinstance(value, str):
            raise InputError(f"decided: {key} must be text", got=type(value).__name__)
    return dict(decided or {})


def _costs(frontier: Frontier | str | Path | None) -> Mapping[str, Any] | None:
    """A frontier as plain values, from the object or from the file that `jali frontier --json` wrote."""
    if frontier is None:
        return None
    from jali.compare.frontier import Frontier  # which loads every method of publishing

    if isinstance(frontier, Frontier):
        return frontier.to_dict()
    if not isinstance(frontier, (str, Path)):
        raise InputError("frontier must be a frontier or a file", got=type(frontier).__name__, do="see jali.frontier")
    do = "write it with: jali frontier JOB.toml --json > FILE"
    try:
        told = json.loads(content(path_of(frontier)))
        for point in told["points"]:
            figures = [point[name] for name in ("kl", "error") if point[name] is not None]
            figures += point["reaches"].values()
            Fraction(str(point["strength"])), bool(point["meets_all"]), bool(point["transparent"])
            if not isinstance(point["method"], str) or not all(isinstance(figure, (int, float)) for figure in figures):
                raise ValueError
        if not isinstance(told["vary"], str):
            raise ValueError
        return dict(told)
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
        raise InputError(f"{frontier} is no frontier", do=do) from None


def _page(title: str, edition: Edition, material: Material) -> str:
    sections = [make(material) for make in SECTIONS]
    notice = _notice(edition, beside=material.public_table is not None)
    parts = [element("h1", title), notice, decision.banner(material), *_explained(material),
             decision.answers(material), *_noted(material), _glance(material)]  # fmt: skip
    top = element("header", "\n", joined(parts), "\n")
    body = joined([top, _contents(sections), element("main", "\n", joined(s.html() for s in sections), "\n")])
    return document(title, body, edition=edition)


# -- two releases --------------------------------------------------------------------------------------------------


def _beside(title: str, edition: Edition, one: Material, other: Material) -> str:
    """Two releases of one table: what differs, what is gained and lost."""
    both = (one, other)
    columns = [
        element("div", element("h2", f"Release {letter}: {m.release.kind}"), decision.banner(m),
                element("h3", "What would make it safe"), decision.remedy(m), _glance(m))
        for letter, m in zip("AB", both, strict=True)
    ]  # fmt: skip
    warned = paragraphs("The two are compared as alternatives. What an attacker learns who holds both is another "
                        "question: jali audit A B.")  # fmt: skip
    private = edition == "private"
    sections = [
        Section("verdict", "Thresholds", _thresholds(*both), confidential=private),
        Section("differs", "What differs", _differences(*both), confidential=private),
        Section("gained", "What is gained and lost", _gains(*both), confidential=private),
    ]
    top = element("header", "\n", joined([element("h1", title), _notice(edition, beside=False),
                  element("div", *columns, class_="pair"), warned]), "\n")  # fmt: skip
    body = joined([top, _contents(sections), element("main", "\n", joined(s.html() for s in sections), "\n")])
    return document(title, body, edition=edition)


def _thresholds(one: Material, other: Material) -> Html:
    judged = [{j.name: j for j in m.verdict.judged} for m in (one, other)]
    rows = [
        (name, *(f"{decision.JUDGED[own[name].outcome]}: {own[name].found}" if name in own else "–" for own in judged))
        for name in dict.fromkeys([*judged[0], *judged[1]])
    ]
    caption = f"Policy “{one.verdict.policy.preset}”"
    return html_table(("Threshold", "A", "B"), rows, caption=caption, named=True)


def _differences(one: Material, other: Material) -> Html:
    """How each column is shown, and how each release was made, where they are not the same."""
    shown = [dict(published.shown_lines(m)) for m in (one, other)]
    made = [dict(published.made_lines(m)) for m in (one, other)]
    promised = [{"promises": "; ".join(map(repr, m.release.principles))} for m in (one, other)]
    parts = []
    for caption, (a, b) in (("Columns", shown), ("How it was made", made), ("Promises", promised)):
        rows = [
            (name, a.get(name, "–"), b.get(name, "–")) for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)
        ]
        parts.append(html_table(("What", "A", "B"), rows, caption=caption, named=True) if rows else
                     paragraphs(f"{caption}: no difference."))  # fmt: skip
    return joined(parts)


def _gains(one: Material, other: Material) -> Html:
    """Figures of both, and which of the two is the better one in each: all of them are better when lower."""
    rows = []
    figures = [dict(_figures(m)) for m in (one, other)]
    for name in dict.fromkeys([*figures[0], *figures[1]]):
        a, b = (own.get(name) for own in figures)
        better = "–" if a is None or b is None else "equal" if abs(a - b) < 5e-5 else "A" if a < b else "B"
        form = (lambda v: f"{v:.4f} nats") if name.startswith("KL") else percent
        rows.append((name, *("not defined" if v is None else form(v) for v in (a, b)), better))
    return html_table(("Figure, better when lower", "A", "B", "Better"), rows, caption="Risk, then loss", named=True)


def _figures(m: Material) -> list[tuple[str, float | None]]:
    audited = m.audit if isinstance(m.audit, Audit) else None
    found: list[tuple[str, float | None]] = []
    if audited is not None:
        found += [("Highest risk of re-identification", 1 / audited.k), ("Average risk", audited.average_risk)]
        found += [(f"How sure of somebody's {s.column}", s.largest_share) for s in audited.sensitive]
    if not m.attacks and m.original is not None and m.names("sensitive"):
        found += [(f"People exposed by {name}", share) for name, share in m.exposed.items()]
    for name in dict.fromkeys(a.name for a in m.attacks):
        own = [a for a in m.attacks if a.name == name and a.exposed is not None]
        worst = max(((a.exposed or 0) / max(a.people, 1) for a in own), default=None)
        found.append((f"People exposed by {name}", worst))
    if not isinstance(m.measures, Missing):
        found += [("KL-divergence", m.measures.kl), ("Loss", m.measures.loss)]
        found += [(f"Loss of {name}", share) for name, share in m.measures.columns.items()]
    if not isinstance(m.errors, Missing):
        found += [(f"Median error of counts, volume {percent(e.volume)}", e.median) for e in m.errors]
    return found


# -- parts of every page -------------------------------------------------------------------------------------------


def _explained(m: Material) -> list[Html]:
    """What quasi-identifiers are, before the page speaks of them."""
    quasi = listed(m.names("quasi"))
    told = f"Quasi-identifiers are the facts that others may know of people; here: {quasi}."
    return [element("p", told, class_="none")] if quasi else []


def _noted(m: Material) -> list[Html]:
    """The notes of the release, and why columns are published that look like identifiers."""
    allowed = [
        f"“{name}” looks like an identifier and is published: {reason}"
        for name, reason in m.release.manifest.allowed.items()
    ]
    lines = [sentence(text) for text in (*m.release.notes, *allowed)]
    return [element("div", element("h2", "Notes"), bullets(lines), class_="notes")] if lines else []


def _notice(edition: Edition, *, beside: bool) -> Html:
    text = NOTICE[edition]
    if beside and edition == "public":
        text = text.replace("the release alone", "the release and the public table against which presence is judged")
    return element("p", text, class_="quiet")


def _glance(m: Material) -> Html:
    """The few figures that matter most."""
    counts = m.manifest["counts"]
    facts = [("Rows", f"{counts['rows']:,}")]
    facts += [(m.release.words.shown, f"{counts['groups']:,}")] if counts.get("groups") else []
    if isinstance(m.audit, Audit):
        facts.append((m.release.words.alike, f"{m.audit.k:,}"))
        if m.audit.kept:
            broken = [name for name, kept in m.audit.kept.items() if not kept]
            said = f"{len(m.audit.kept)} of {len(m.audit.kept)} kept" if not broken else (
                f"{many(len(broken), 'promise')} BROKEN")  # fmt: skip
            facts.append(("Promises that it makes", said + _unpromised(m)))
    items = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    return element("dl", *items, class_="glance")


def _unpromised(m: Material) -> str:
    """What a reader of "all kept" must also know: columns without a promise, and that names make them void."""
    none = [one.column for one in m.for_everybody.judged if one.threshold == "promise" and one.outcome != "met"]
    named = naming(m.release)
    return f"{', but void' if named else ''}{f'; none about {listed(none)}' if none else ''}"


def _contents(sections: list[Section]) -> Html:
    links = [
        element("li", element("a", s.title, href=f"#{s.name}"),
                element("span", " ◆", title="confidential") if s.confidential else "")
        for s in sections
    ]  # fmt: skip
    legend = (
        [element("p", "◆ confidential: it uses the original table")] if any(s.confidential for s in sections) else []
    )
    return element("nav", element("h2", "Contents"), element("ol", *links), *legend, aria_label="Contents")
