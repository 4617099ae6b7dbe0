"""Laws of the report: what it says, to whom it may be shown, and that it is a well-formed page of its own."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import jali
from jali.core import charts, sketch
from jali.core.text import MARK, percent_up
from jali.errors import InputError
from jali.measures.queries import CLASSES, association, cramers_v, distribution
from jali.principles.counts import dense
from jali.releases.base import Release
from jali.releases.marginals import promise_of
from jali.reports import published
from jali.reports.answers import ranked
from jali.reports.decision import remedy
from jali.reports.material import Material, Missing, attempt
from jali.reports.page import SECTIONS, Report
from jali.reports.privacy import groups, guarantee, size_classes, worst_case, worst_groups
from jali.risk.audit.audit import figures
from jali.risk.audit.figures import together
from jali.risk.beliefs import exposed, surest, worst_of

pytest.importorskip("matplotlib")

SECTION_NAMES = [
    "verdict", "before", "columns", "guarantee", "disclosure", "groups", "worst", "pairs", "queries", "cost",
    "published", "limits", "made", "signoff",
]  # fmt: skip


def people(rows: int = 240, seed: int = 0, **more: Any) -> pd.DataFrame:
    """Invented people."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(20, 60, rows),
            "city": random.choice(["Pune", "Agra", "Delhi"], rows),
            "illness": random.choice(["flu", "cold", "gout", "none"], rows, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    return frame.assign(**more)


def made_of(frame: pd.DataFrame, **options: Any) -> Any:
    """A table of them."""
    chosen: dict[str, Any] = {
        "quasi": {"age": jali.bands(10, 20, low=0, high=99), "city": jali.suppress()},
        "sensitive": ["illness"],
    }
    return jali.table(frame, **(chosen | options))


POPULATION = made_of(pd.concat([people(120), people(240, seed=1)]).drop(columns="illness"), sensitive=[])
SEVERAL = people(person=np.repeat(np.arange(120), 2))
GIVEN: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "generalized": (lambda t: jali.generalize(t, [jali.KAnonymity(5)]), made_of(people())),
    "suppressed": (lambda t: jali.generalize(t, [jali.KAnonymity(9)], suppress=0.2), made_of(people(60))),
    "intervals": (lambda t: jali.partition(t, [jali.KAnonymity(5), jali.DistinctDiversity(2)]), made_of(people())),
    "sets": (lambda t: jali.partition(t, [jali.KAnonymity(5)], show="set"), made_of(people())),
    "recoded": (lambda t: jali.recode(t, [jali.KAnonymity(5)]), made_of(people())),
    "buckets": (lambda t: jali.anatomize(t, [jali.FrequencyDiversity(2)]), made_of(people())),
    "distributions": (lambda t: jali.partition(t, [jali.KAnonymity(5)], show="pdf"), made_of(people())),
    "angel": (lambda t: jali.angelize(t, [jali.FrequencyDiversity(2)], k=5), made_of(people())),
    "marginals": (lambda t: jali.marginals(t, [jali.KAnonymity(5), jali.EntropyDiversity(2)]), made_of(people())),
    "concealed": (lambda t: jali.conceal(t, POPULATION, low=0.05, high=0.9), made_of(people(120))),
    "concealed distributions": (
        lambda t: jali.conceal(t, POPULATION, low=0.05, high=0.9, search="partition", shift="exact"),
        made_of(people(120)),
    ),
    "safe": (lambda t: jali.generalize(t, [jali.Safety(0.9, 1)]), made_of(people())),
    "several rows a person": (
        lambda t: jali.generalize(t, [jali.KAnonymity(2)]), made_of(SEVERAL, person="person"),
    ),
    "weights": (
        lambda t: jali.generalize(t, [jali.KAnonymity(5)]),
        made_of(people(w=np.linspace(0.5, 3, 240)), weights="w"),
    ),
    "nothing sensitive": (lambda t: jali.generalize(t, [jali.KAnonymity(5)]), made_of(people(), sensitive=[])),
    "missing values": (
        lambda t: jali.generalize(t, [jali.KAnonymity(5)]),
        made_of(people().assign(city=[None if i % 5 == 0 else "Agra" for i in range(240)])),
    ),
    "two sensitive": (
        lambda t: jali.generalize(t, [jali.KAnonymity(5)]),
        made_of(people(pay=np.arange(240) % 7), sensitive=["illness", "pay"]),
    ),
}  # fmt: skip


FAST = ("suppressed",)
KINDS = [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in GIVEN]


class Made(dict[str, Any]):
    """Each kind of release, made when it is first asked for."""

    def __missing__(self, name: str) -> Any:
        make, table = GIVEN[name]
        return self.setdefault(name, make(table))


@pytest.fixture(scope="module")
def releases() -> Made:
    """Each kind of release, made once."""
    return Made()


def well_formed(page: str) -> Any:
    """The page, parsed by the rules of HTML5: any offence is an error."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


OURS = "\n" + (Path(charts.__file__).parent / "templates" / "script.js").read_text(encoding="utf-8")


def scripts_of(tree: Any) -> list[str]:
    """The text of every script of a page."""
    return ["".join(part.itertext()) for part in tree.iter("script")]


def ids_of(tree: Any) -> list[str]:
    return [part.get("id") for part in tree.iter() if isinstance(part.tag, str) and part.get("id")]


# -- every kind of release ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_release_has_a_well_formed_page(releases: Any, name: str) -> None:
    """All sections, one h1, captions, names for pictures, no id twice, every reference inside, nothing from outside."""
    page = jali.report(releases[name], GIVEN[name][1]).html
    tree = well_formed(page)
    ids = ids_of(tree)
    assert len(ids) == len(set(ids))
    assert [part.get("id") for part in tree.iter("section")] == SECTION_NAMES
    assert len(list(tree.iter("h1"))) == 1
    assert all(part.find("caption") is not None for part in tree.iter("table"))
    for part in tree.iter():
        for key, value in part.attrib.items():
            for reference in re.findall(r"url\(#([^)]*)\)", value) + ([value[1:]] if key == "href" else []):
                assert reference in ids
            if key == "aria-labelledby":
                assert set(value.split()) <= set(ids)
    assert not re.search(r"https?:|//\w", re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))
    assert scripts_of(tree) == [OURS]
    assert "url(" not in re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]  # type: ignore[index]
    assert 'lang="en"' in page


@pytest.mark.parametrize("name", KINDS)
def test_the_public_edition_is_a_function_of_the_release_alone(releases: Any, name: str, tmp_path: Path) -> None:
    """Whoever has only the files makes the same page, to the byte."""
    release = releases[name]
    folder = release.save(tmp_path / "out")
    page = jali.report(release, public=True).html
    assert jali.report(folder).html == page
    assert [part.get("id") for part in well_formed(page).iter("section")] == SECTION_NAMES


@pytest.mark.slow
def test_two_originals_with_the_same_tables_have_the_same_public_edition(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the generalization hides does not come back: not in KL, not in loss, not in any other figure."""
    monkeypatch.setattr("jali.core.rows.fresh_random", lambda: np.random.default_rng(0))
    first = people()
    other = first.assign(age=first["age"] // 10 * 10)
    made = [jali.generalize(made_of(f), [jali.KAnonymity(2)], levels={"age": 1, "city": 0}) for f in (first, other)]
    assert not first.equals(other)
    assert made[0].tables["data"].equals(made[1].tables["data"])
    assert made[0].manifest.metrics["kl"] != made[1].manifest.metrics["kl"]
    assert jali.report(made[0]).html == jali.report(made[1]).html
    costs = [published.cost(Material(r, made_of(f))).html() for r, f in zip(made, (first, other), strict=True)]
    assert costs[0] != costs[1]  # so the comparison above could have failed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["marginals", "intervals", "angel"])
def test_a_section_is_marked_exactly_where_the_original_changes_it(releases: Any, name: str) -> None:
    """Every section that is not marked is the one of the public edition."""
    release, table = releases[name], GIVEN[name][1]
    for make in SECTIONS:
        private, public = make(Material(release, table)), make(Material(release))
        assert not public.confidential
        assert private.confidential == (private.html() != public.html())
        assert private.confidential == (private.mark in private.html())
    assert MARK not in jali.report(release).html


@pytest.mark.slow
def test_every_kind_of_release_is_among_those_that_are_tried(releases: Any) -> None:
    """A new kind gets a line in GIVEN."""

    def kinds(of: type) -> set[type]:
        return {of} | {kind for below in of.__subclasses__() for kind in kinds(below)}

    published = {kind.kind for kind in kinds(Release) if kind.__module__.startswith("jali.") and "kind" in vars(kind)}
    assert published == {releases[name].kind for name in GIVEN}


def test_the_public_table_of_a_concealed_release_stays_with_the_holder(releases: Any) -> None:
    """Bounds that only the public table shows to be kept stand in the private edition, not in the public one."""
    release = releases["concealed"]
    private = guarantee(Material(release)).html()
    found = release.presence()
    assert f"reached {found.low:.4g} to {found.high:.4g}; kept, judged against the public table" in private
    public = jali.report(release).html
    assert "reached" not in public
    assert "judged against the public table, which is no part of the release" in public


def test_a_promise_means_what_it_means_for_the_kind(releases: Any) -> None:
    """Marginals promise k-link anonymity, and say so; the k that ANGEL reaches is that of buckets, not of batches."""
    said = guarantee(Material(releases["marginals"])).html()
    made = releases["marginals"]
    promises = [promise_of(principle, made.attacker)[1:] for principle in made.principles]  # but a capital
    assert all(escape(promise) in said for promise in promises)
    assert "Every person shares the quasi-identifiers" not in said
    angel = jali.angelize(jali.datasets.census(rows=600, seed=0), [jali.FrequencyDiversity(3)], k=5)
    smallest = min(int(table.sizes.min()) for table in angel.contents.tables)
    assert smallest != jali.audit(angel).angel.smallest_batch  # so that they can be told apart
    assert f"KAnonymity(5); asked 5; reached {smallest}; kept" in guarantee(Material(angel)).html()
    assert "People by the size of their batch" in groups(Material(angel)).html()


def test_k_of_angel_is_promised_table_by_table_everywhere() -> None:
    """Page, text and manifest say so, and the page shows what the audit finds where the batch number joins tables."""
    table = made_of(people(120))
    angel = jali.angelize(table, [jali.FrequencyDiversity(2)], k=5, marginals=[["age", "illness"]])
    page = guarantee(Material(angel)).html()
    for principle, said in zip(angel.principles, angel.told()["promises"], strict=True):
        assert said == angel.promised(principle)
        assert said[1:] in page  # but a capital
        assert f"{principle!r}: {said}" in repr(angel)
    (k,) = [angel.promised(p) for p in angel.principles if isinstance(p, jali.KAnonymity)]
    assert k.startswith("in each table of quasi-identifiers, ")
    found = jali.audit(angel).angel
    assert found.tables == 2
    for name, value in together(found):
        assert f"{name}</th><td>{value}</td>" in page
    assert "all tables together keep k" in page


def test_distributions_promise_only_against_whoever_knows_who_is_in_the_table(releases: Any) -> None:
    """As the frontier says of them; cells without distributions promise without that."""
    release = releases["distributions"]
    said = release.promised(release.principles[0])
    assert said.startswith("if the attacker already knows who is in the table, every person shares")
    assert said[1:] in guarantee(Material(release)).html()
    assert "already knows" not in guarantee(Material(releases["intervals"])).html()


def test_where_a_column_stands_is_told_table_by_table_and_marginal_by_marginal(releases: Any) -> None:
    """Of ANGEL with its table; of marginals with its level in each of them, and that it is in none."""
    table = made_of(people(120))
    angel = jali.angelize(table, [jali.FrequencyDiversity(2)], k=5, marginals=[["age", "illness"]])
    assert published.published(Material(angel)).html().count('<th scope="row">age</th>') == 2
    assert "<td>marginal-1</td>" in published.published(Material(angel)).html()
    release = releases["marginals"]
    told = published.published(Material(release)).html()
    for chain in release.chains:
        levels = [own[chain.name] for own, _ in release.marginals if chain.name in own]
        assert all(f"{chain.like(level)} in marginal" in told for level in levels)
        assert levels or f"{chain.name}</th><td>quasi-identifier</td><td>in no marginal" in told


def test_the_sign_off_of_the_public_edition_is_blank_and_that_of_the_private_is_not(
    releases: Any, tmp_path: Path
) -> None:
    """Whoever decides fills it in: nothing of it stands in a page that others make from the same files."""
    folder = releases["suppressed"].save(tmp_path / "out")
    pages = [jali.report(folder).html, jali.report(folder, GIVEN["suppressed"][1], decided={"by": "Ada"}).html]
    told = [
        ["".join(part.itertext()) for part in well_formed(page).iter("span") if part.get("class") == "sign-line"]
        for page in pages
    ]
    assert len(told[0]) == len(told[1]) == 8
    assert not any(told[0])
    assert "Ada" in told[1]
    with pytest.raises(InputError, match="private edition"):
        jali.report(folder, decided={"by": "Ada"})
    with pytest.raises(InputError, match="by"):
        jali.report(folder, GIVEN["suppressed"][1], decided={"bye": "Ada"})


def test_two_releases_side_by_side_are_a_function_of_both(releases: Any, tmp_path: Path) -> None:
    """Well formed, the same from the files, each with its own verdict; and a threshold is shown for both."""
    table = GIVEN["generalized"][1]
    two = [releases["generalized"], releases["marginals"]]
    folders = [release.save(tmp_path / str(i)) for i, release in enumerate(two)]
    page = jali.report(two)
    assert page.html == jali.report(folders).html
    tree = well_formed(page.html)
    assert [part.get("id") for part in tree.iter("section")] == ["verdict", "differs", "gained"]
    assert len(page.verdicts) == 2
    assert [v.decision for v in page.verdicts] == [jali.report(one).verdict.decision for one in two]
    assert page.verdict is page.verdicts[0]
    assert "KL-divergence</th>" not in page.html  # the figure compares with the original
    assert "KL-divergence" in jali.report(two, table).html
    with pytest.raises(InputError, match="one release or two"):
        jali.report([])


def test_a_column_that_shows_nothing_is_said_to_be_not_published(releases: Any) -> None:
    """No even bars are drawn for what every row shows as *."""
    table = made_of(people())
    release = jali.generalize(table, [jali.KAnonymity(5)], levels={"age": 1, "city": 1})
    for page in (jali.report(release).html, jali.report(release, table).html):
        cards = [part for part in well_formed(page).iter("div") if part.get("class") == "card"]
        shown = {card.find("h3").text: card for card in cards if card.find("h3") is not None}
        assert "Not published" in "".join(shown["city"].itertext())
        assert not list(shown["city"].iter("figure"))
        assert list(shown["age"].iter("figure"))


def test_what_was_lost_is_ranked(releases: Any) -> None:
    """The most first; nothing is lost in a release that shows everything; and nothing is said without the original."""
    table = made_of(people())
    release = jali.generalize(table, [jali.KAnonymity(5)], levels={"age": 2, "city": 1})
    lost = [one.lost for one in ranked(Material(release, table))]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] == 1
    exact = jali.generalize(table, [jali.KAnonymity(1)], levels={})
    assert not [one for one in ranked(Material(exact, table)) if one.lost > 1e-9]
    assert ranked(Material(release)) == []
    pairs = {one.what: one for one in ranked(Material(release, table)) if one.before.startswith("link")}
    assert pairs
    for one in pairs.values():  # the share of the link that is gone, as far as two digits of each strength tell it
        was, now = (float(text.split("link of ")[1][:4]) for text in (one.before, one.after))
        assert abs(one.lost - (1 - now / was)) <= 0.011 / was


def test_the_public_edition_takes_no_original(releases: Any) -> None:
    """Asked for both, it asks back."""
    with pytest.raises(InputError, match="does not use the original"):
        jali.report(releases["generalized"], GIVEN["generalized"][1], public=True)


def test_another_table_is_not_the_original(releases: Any) -> None:
    """A table with other rows, or something that is no table, is refused."""
    with pytest.raises(InputError, match="not the table"):
        jali.report(releases["generalized"], made_of(people(30)))
    with pytest.raises(InputError, match="jali table"):
        jali.report(releases["generalized"], people())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="about a release"):
        jali.report(people())


# -- what comes from the data ------------------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script>"
NASTY = [EVIL, "$x^2$ & \"quotes' <b>", "a\x00b\x1b", "名前", "]]>", "&amp;", "\u202eabc", "x" * 300, "_hidden", ""]


@pytest.mark.parametrize(
    "method", ["generalize", *(pytest.param(m, marks=pytest.mark.slow) for m in ("partition", "anatomize"))]
)
def test_names_and_values_are_shown_as_such(method: str) -> None:
    """A column or a value that looks like HTML, mathematics or an escape is text, in tables and in pictures."""
    rows = 60
    frame = pd.DataFrame({EVIL: np.arange(rows) % 3 + 20, "$c_1$": [NASTY[i % 3] for i in range(rows)],
                          "_v": [NASTY[i % len(NASTY)] for i in range(rows)]})  # fmt: skip
    table = jali.table(frame, quasi={EVIL: jali.bands(10), "$c_1$": jali.suppress()}, sensitive=["_v"])
    principle = jali.FrequencyDiversity(2) if method == "anatomize" else jali.KAnonymity(5)
    release = getattr(jali, method)(table, [principle])
    tree = well_formed(jali.report(release, table, title=EVIL).html)
    assert scripts_of(tree) == [OURS]
    assert EVIL in "".join(tree.itertext())
    assert EVIL not in release._repr_html_()
    assert EVIL not in jali.audit(release)._repr_html_()
    assert EVIL not in table.hierarchy(EVIL)._repr_html_()
    assert EVIL not in jali.minimal(table, [jali.KAnonymity(5)])._repr_html_()


# -- the same numbers everywhere ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("method", "options"), [("recode", {"show": "set"}), ("anatomize", {})])
def test_a_column_may_be_called_as_jali_calls_its_own(method: str, options: Any) -> None:
    """Whatever a column is called, both editions are made; a joint table's own count gives way."""
    frame = people(60).rename(columns={"city": "count", "illness": "batch"}).assign(people="a", bucket="b")
    quasi = {"age": jali.bands(10, 20), "count": jali.suppress(), "people": jali.suppress(), "bucket": jali.suppress()}
    table = jali.table(frame, quasi=quasi, sensitive=["batch"])
    release = getattr(jali, method)(table, [jali.FrequencyDiversity(1)], **options)
    assert release.estimate().frame(["count", "batch"]).column_names == ["count", "batch", "count_"]
    assert well_formed(jali.report(release, table).html) is not None
    assert well_formed(jali.report(release).html) is not None


def test_the_report_shows_the_numbers_of_audit_and_measure(releases: Any) -> None:
    """What `jali.audit` and `jali.measure` say stands in the page, with three digits after the point at the most."""
    release, table = releases["intervals"], GIVEN["intervals"][1]
    text = "".join(well_formed(jali.report(release, table).html).itertext())
    for name, figure in jali.measure(release, table).lines():
        whole, _, digits = figure.partition(".")
        shown = f"{float(figure.replace(',', '')):,.3f}" if len(digits) > 3 else figure
        assert f"{name.strip()}{shown}" in text, (name, whole)
    audit = jali.audit(release)
    assert f"reached {audit.k}" in text
    assert f"at most {percent_up(audit.largest_share)} of the time" in text
    assert all(note[1:] in text for note in audit.notes)


def test_a_guarantee_is_never_stated_more_strongly_than_it_is() -> None:
    """Percentages of the worst case are rounded up, and certainty is called so."""
    random = np.random.default_rng(3)
    for _ in range(200):
        counts = random.integers(0, 6, (3, 5)) + np.eye(3, 5, dtype=np.int64)
        audited = figures(dense(counts)).sensitive[0]
        said = worst_case(audited, "age")
        true = float((counts.max(axis=1) / counts.sum(axis=1)).max())
        if true == 1:
            assert said == [f"An attacker who knows someone's age may be certain of somebody's {audited.column}."]
            continue
        bound = int(re.search(r"at most (\d+)", said[0])[1])  # type: ignore[index]
        assert bound - 1 < 100 * true <= bound + 1e-6
        ruled_out = float(_without_worst(counts))
        if ruled_out == 1:
            assert "may be certain" in said[1]
        else:
            assert 100 * ruled_out <= int(re.search(r"at most (\d+)", said[1])[1]) + 1e-6  # type: ignore[index]


def _without_worst(counts: Any) -> float:
    """How sure whoever can rule out the worst one value is, by trying all."""
    best = 0.0
    for row in counts:
        for out in range(len(row)):
            left = np.delete(row, out)
            best = max(best, float(left.max() / left.sum()) if left.sum() else 0.0)
    return best


def test_whoever_is_right_all_of_the_time_is_said_to_be_certain(releases: Any) -> None:
    """Where one fact tells all; no sentence speaks of 100 %."""
    table = made_of(people(60))
    release = jali.generalize(table, [jali.DistinctDiversity(2)])
    (audited,) = jali.audit(release).sensitive
    sure = dataclasses.replace(audited.disclosure, implications=(audited.disclosure.implications[0], 1.0))
    texts = worst_case(dataclasses.replace(audited, disclosure=sure), "age")
    assert texts[-1].endswith("that value” may be certain of somebody's illness.")
    assert not any("100" in text for text in texts)


def test_where_more_facts_are_not_defined_it_says_so(releases: Any) -> None:
    """People with several rows: the share is told, the curve is not."""
    text = "".join(well_formed(jali.report(releases["several rows a person"]).html).itertext())
    assert "Not defined for this release: the disclosure of illness has no meaning" in text


def test_what_a_kind_of_release_lacks_is_said_and_the_rest_is_shown(
    releases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release without groups or without an estimate has a page too."""
    release = releases["generalized"]

    def no_groups() -> Any:
        raise InputError("it has no groups")

    monkeypatch.setattr(release, "counts", no_groups)
    monkeypatch.setattr(release, "estimate", no_groups)
    page = jali.report(release, GIVEN["generalized"][1]).html
    assert [part.get("id") for part in well_formed(page).iter("section")] == SECTION_NAMES
    assert page.count("Not defined for this release: it has no groups.") >= 4
    assert page.count("No picture: it has no groups.") >= 2


def test_a_broken_promise_is_shown_as_broken(releases: Any) -> None:
    """The report judges again; a manifest that promises more than the tables keep does not help."""
    made = jali.generalize(GIVEN["generalized"][1], [jali.KAnonymity(5)])
    made.manifest = dataclasses.replace(made.manifest, principles=(jali.KAnonymity(200),))
    page = jali.report(made).html
    assert "1 promise BROKEN" in page
    assert "1 of 1 kept" not in page
    assert "Do not publish." in page


# -- the figures behind the pictures ---------------------------------------------------------------------------------


def test_size_classes_hold_every_group_once() -> None:
    """Against counting one by one."""
    random = np.random.default_rng(5)
    for _ in range(200):
        size = random.integers(1, random.integers(2, 400), random.integers(1, 50))
        labels, number, persons = size_classes(size)
        assert (number.sum(), persons.sum()) == (len(size), size.sum())
        for label, n, p in zip(labels, number, persons, strict=True):
            low, _, high = label.replace(",", "").partition(" – ")
            own = size[(size >= int(low)) & (size <= int(high or low))]
            assert (len(own), own.sum()) == (n, p)


def test_the_worst_groups_are_those_with_the_largest_share() -> None:
    """No group that is left out has a larger share of one value than one that is shown."""
    random = np.random.default_rng(6)
    for _ in range(200):
        counts = random.integers(0, 5, (8, 3)) + np.array([1, 0, 0])
        chosen = worst_of(dense(counts).cells(), 3).tolist()
        share = counts.max(axis=1) / counts.sum(axis=1)
        rest = np.delete(share, chosen)
        assert len(chosen) == 3
        assert share[chosen].min() >= rest.max() - 1e-12
        assert list(share[chosen]) == sorted(share[chosen], reverse=True)


def test_everybody_is_counted_whom_a_group_gives_away() -> None:
    """As the groups say one by one: the people, their values, the surest of them, and the guess without groups."""
    random = np.random.default_rng(8)
    seen = set()
    for _ in range(200):
        counts = random.integers(0, 3, (6, 3)) * random.integers(0, 9, (6, 3)) + np.array(
            [random.integers(1, 40), 0, 0]
        )
        given = dense(counts)
        (column,) = given.sensitive
        found, best = exposed(given, column.name), surest(given, column.name)
        away = [row for row in counts.tolist() if 20 * max(row) >= 19 * sum(row)]
        assert found.people == sum(map(sum, away)) == sum(found.sizes)
        assert len(found.groups) == len(away)
        assert {*found.values} == {str(column.labels[row.index(max(row))]) for row in away}
        assert found.certain == all(max(row) == sum(row) for row in away)
        assert found.people == figures(given).sensitive[0].nearly_homogeneous.people  # type: ignore[union-attr]
        assert best is not None
        row = counts[best.group]
        assert best.share == row.max() / row.sum() == max(own.max() / own.sum() for own in counts)
        assert best.people == row.sum()
        assert best.everybody == counts[:, row.argmax()].sum() / counts.sum()
        seen.add((bool(away), found.certain))
    assert len(seen) > 2  # some with nobody, some certain, some only nearly


def test_names_make_every_other_figure_void() -> None:
    """No threshold that a name undoes is shown as met, no promise as kept alone, and no name is repeated."""
    frame = people().assign(**{"patient name": [f"Person {i}" for i in range(240)]})
    table = made_of(frame, other=["patient name"], allow={"patient name": "asked for"})
    release = jali.generalize(table, [jali.KAnonymity(5)], levels={"age": 2, "city": 1})
    plain = jali.generalize(made_of(people()), [jali.KAnonymity(5)], levels={"age": 2, "city": 1})
    for policy in ("researchers", "internal"):
        found = jali.report(release, policy=policy).verdict
        free = {one.threshold: one for one in jali.report(plain, policy=policy).verdict.judged}
        assert {one.outcome for one in free.values() if one.threshold == "highest_risk"} == {"met"}
        assert not any(one.void for one in free.values())
        assert all(one.void for one in found.judged if one.threshold in ("highest_risk", "average_risk") and
                   one.outcome == "met")  # fmt: skip
        assert any(one.void for one in found.judged)
    page = jali.report(release, table, policy="researchers").html
    assert "Person 1" not in page
    assert "With patient name everybody is found" in page
    assert "void while patient name is published" in page
    assert "Every other risk on this page counts only once patient name is left out." in page
    clean = jali.report(plain, made_of(people()), policy="researchers").html
    assert "void while" not in clean
    assert "Every other risk" not in clean


def test_the_banner_counts_the_flags_that_stand_below() -> None:
    """What fails without the names too is told apart, and the number of red flags is that of the lists below."""
    frame = people().assign(**{"patient name": [f"Person {i}" for i in range(240)]})
    table = made_of(frame, other=["patient name"], allow={"patient name": "asked for"})
    release = jali.generalize(table, [jali.KAnonymity(2)], levels={"age": 1})
    page = jali.report(release, policy={"preset": "researchers", "average_risk": "1/200", "highest_risk": "1/150"})
    banner = page.html.split('class="verdict stop"')[1].split('class="answers"')[0]
    assert "With patient name in each row everybody can be found: 100\u00a0%." in banner
    assert "Even without patient name it fails: " in banner
    (told,) = re.findall(r"All (\d+) red flags stand below", banner)
    lists = [part for part in well_formed(page.html).iter("ol") if part.get("class") == "flags"]
    assert int(told) == sum(len(part.findall("li")) for part in lists)


def test_what_the_public_would_need_is_asked_for_in_words() -> None:
    """A card that is safe for fewer readers has its options for the data team alone; a proof is named as a proof."""
    table = made_of(people())
    hidden = jali.partition(table, [jali.KAnonymity(20)])
    policy = {"preset": "internal", "largest_belief": 1}
    card = middle(jali.report(hidden, policy=policy))
    assert card.startswith("Nothing needed")
    words, _, team = card.partition("For the data team")
    assert "for the public too, ask the data team, before anything is handed out," in words
    assert "It would then replace this release." in words
    assert "transparent = true" not in words
    assert "transparent = true" in team
    proved = jali.report(jali.partition(table, [jali.KAnonymity(20)], transparent=True), policy=policy).html
    assert "✓ Proved for this method, not tested here: " in proved
    assert "; not tested" not in proved
    assert "If you cannot confirm a point, do not publish." in proved


def middle(report: Any) -> str:
    """The text of the second of the three answers."""
    (cards,) = [part for part in well_formed(report.html).iter("div") if part.get("class") == "answers"]
    return "".join(cards[1].itertext())


def test_the_price_is_told_in_counts_and_the_method_to_the_data_team() -> None:
    """The frontier's nats, method and strength stand apart; and the card says who may have it afterwards."""
    table = made_of(people())
    release = jali.generalize(table, [jali.KAnonymity(2)], levels={"age": 1})
    point = {"method": "lattice", "strength": 30, "kl": 3.25, "error": 0.125, "meets_all": True, "transparent": False}
    met = dict.fromkeys(("highest_risk", "average_risk", "largest_belief", "disclosure.1", "exposed.homogeneity",
                         "exposed.background knowledge", "exposed.linkage"), 0.0) | {"highest_risk": 0.02}  # fmt: skip
    frontier = {"vary": "k", "points": [{**point, "reaches": met}]}
    material = Material(release, table, policy={"preset": "researchers", "average_risk": "1/200"}, frontier=frontier)
    told = "".join(ElementTree.fromstring(f"<div>{remedy(material)}</div>").itertext())
    words, _, team = told.partition("For the data team")
    assert "What it would cost: analysts' counts would be off by 12.5\u00a0% on average." in words
    assert "it may go to researchers under contract, not to the public." in words
    assert not re.search("nats|lattice|k = ", words)
    assert "Lattice at k = 30, which has groups of at least 50, loses 3.25 nats" in team


def test_the_verdict_names_whom_it_is_for() -> None:
    """A release for fewer readers says what it would miss for the public; one of a policy of one's own names nobody."""
    release = jali.generalize(made_of(people()), [jali.KAnonymity(5)], levels={"age": 2, "city": 1})
    pages = {policy: jali.report(release, policy=policy) for policy in ("public", "researchers", "internal")}
    assert "must not be made public" in pages["public"].verdict.audience
    assert "researchers under contract" in pages["researchers"].verdict.audience
    assert "For the public it" in pages["internal"].html
    assert "For the public it" not in pages["public"].html
    own = jali.report(release, policy={"highest_risk": 1})
    assert own.verdict.safe
    assert own.verdict.audience == ""
    changed = jali.report(release, policy={"preset": "researchers", "highest_risk": "1/4"}).verdict
    assert "researchers" in changed.audience


def test_shares_of_an_exact_release_are_those_of_the_original() -> None:
    """Nothing generalized: distance 0, the same association; and each class is what its members add up to."""
    frame = people(400).assign(day=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400) % 90, "D"),
                               tag=[f"t{i % 30}" for i in range(400)])  # fmt: skip
    quasi = {"age": jali.bands(10), "day": jali.dates(), "tag": jali.suppress(), "city": jali.suppress()}
    table = jali.table(frame, quasi=quasi, sensitive=["illness"])
    release = jali.generalize(table, [jali.KAnonymity(1)], levels={})
    estimate = release.estimate()
    found = {c: distribution(estimate, c, table) for c in [*quasi, "illness"]}
    for name, one in found.items():
        assert one.distance == pytest.approx(0, abs=1e-12)
        assert one.published.sum() == pytest.approx(1)
        assert len(one.classes.labels) <= CLASSES
        values = frame[name].dt.date if name == "day" else frame[name]
        assert np.bincount(one.classes.of(values), minlength=len(one.classes.labels)) / 400 == pytest.approx(
            one.published
        )
    both = association(estimate, found["age"].classes, found["illness"].classes, table)
    assert both is not None
    assert both.published == pytest.approx(both.original)


def test_cramers_v_is_that_of_scipy() -> None:
    """On random tables."""
    from scipy.stats.contingency import association as reference

    random = np.random.default_rng(1)
    for _ in range(300):
        shape = random.integers(2, 6, 2)
        table = random.integers(0, 9, shape) + 1
        assert cramers_v(table.astype(float)) == pytest.approx(reference(table, method="cramer"), abs=1e-6)


def test_a_pair_is_compared_where_its_table_shows_values_that_a_column_alone_does_not() -> None:
    """Releases of several tables answer a pair from another table: its V is that of the values this one shows."""

    class Several:
        """One column without the value that the pair has."""

        def frame(self, columns: list[str]) -> pa.Table:
            cells = {"a": [1, 2, 3], "b": ["x", "y", "x"], "count": [4.0, 5.0, 6.0]}
            return pa.table(cells if len(columns) == 2 else {columns[0]: cells[columns[0]][:2], "count": [1.0, 1.0]})

    one, other = (distribution(Several(), name).classes for name in "ab")  # type: ignore[arg-type]
    found = association(Several(), one, other)  # type: ignore[arg-type]
    assert found is not None
    assert found.published == pytest.approx(cramers_v(np.array([[4.0, 0], [0, 5], [6, 0]])))


def test_only_errors_of_input_count_as_not_defined() -> None:
    """A bug is not hidden as something that does not apply."""

    def bug() -> None:
        raise ZeroDivisionError

    assert isinstance(attempt(lambda: jali.KAnonymity(0)), Missing)
    with pytest.raises(ZeroDivisionError):
        attempt(bug)


# -- pictures and notebooks --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pictures_are_text_in_vectors_and_speak(tmp_path: Path) -> None:
    """A hierarchy, a lattice (drawn or summarized), boxes: an SVG with title, description and its labels as text."""
    table = GIVEN["intervals"][1]
    nodes = jali.minimal(table, [jali.KAnonymity(5)])
    release = jali.generalize(table, [jali.KAnonymity(5)])
    drawn = {
        "tree": jali.picture(table.hierarchy("age"), tmp_path / "tree.svg"),
        "lattice": jali.picture(nodes, tmp_path / "lattice.svg", chosen=release),
        "boxes": jali.picture(jali.partition(table, [jali.KAnonymity(5)]), tmp_path / "boxes.svg"),
        "marginals": jali.picture(jali.marginals(table, [jali.KAnonymity(5)]), tmp_path / "marginals.svg"),
    }
    for name, picture in drawn.items():
        text = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert text.count("<text") >= 4
        assert f'<title id="picture-title">{picture.title}' in text
        assert "<image" not in text
        assert picture.svg("a") == picture.svg("a")
        assert picture._repr_html_() == picture.svg()
    assert "chosen" in drawn["lattice"].svg()
    assert "Chosen: " in drawn["lattice"].description


def test_the_junction_tree_is_one_picture_everywhere(
    releases: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python, in the folder, in a notebook and in the report; as SVG also where matplotlib is not installed."""
    release = releases["marginals"]
    assert release.picture().svg("junction-tree") in jali.report(release).html
    assert all(text in "".join(well_formed(jali.report(release).html).itertext()) for text in
               (text[1:] for text in release.independencies()))  # fmt: skip
    assert jali.picture(release, tmp_path / "tree.png").title == release.picture().title
    assert (tmp_path / "tree.png").read_bytes()[:4] == b"\x89PNG"
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    jali.picture(release, tmp_path / "tree.svg")
    release.save(tmp_path / "out")
    assert (tmp_path / "tree.svg").read_bytes() == (tmp_path / "out" / "junction-tree.svg").read_bytes()
    assert release.picture().svg("junction-tree") in release._repr_html_()
    with pytest.raises(InputError, match="matplotlib"):
        jali.picture(release, tmp_path / "other.png")


def test_the_lattice_counts_what_it_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept and minimal nodes against judging every node, for monotone and other principles, drawn and summarized."""
    table = made_of(people(40))
    for principles in ([jali.KAnonymity(6)], [jali.TCloseness(0.3)], [jali.KAnonymity(4), jali.DistinctDiversity(3)]):
        nodes = jali.minimal(table, principles)
        kept = 0
        for age in range(nodes.top["age"] + 1):
            for city in range(nodes.top["city"] + 1):
                release = attempt_levels(table, principles, {"age": age, "city": city})
                assert nodes.keeps((age, city)) == release
                kept += release
        for most in (400, 1):
            monkeypatch.setattr("jali.reports.pictures.MOST_NODES", most)
            assert f"{kept} keep the promise, {len(nodes)} of them minimal" in jali.picture(nodes).title


def attempt_levels(table: Any, principles: Any, levels: Any) -> bool:
    try:
        jali.generalize(table, principles, levels=levels)
    except jali.InfeasibleError:
        return False
    return True


def test_a_lattice_says_what_its_names_mean() -> None:
    """For who sees it: in which order the levels stand, and the minimal nodes, whether or not their names have room."""
    nodes = jali.minimal(made_of(people()), [jali.KAnonymity(9)])
    texts = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", jali.picture(nodes).svg()))
    assert "Levels in the order age, city." in texts
    for node in nodes:
        assert "\u00a0".join(str(level) for level in node.levels.values()) in texts


def test_ticks_at_equal_steps_read_as_equal_steps() -> None:
    """Also where a step is no whole per cent; they begin at 0 and reach the largest figure."""
    told: dict[str, Any] = {"title": "t", "description": "d"}
    for most in (0.0, 1e-9, 0.03, 0.06, 0.11, 0.19, 0.2, 1.0, 1.7, 40.0):
        places = sketch.steps(most)
        assert places[0] == 0
        assert np.diff(places) == pytest.approx(places[1])
        assert places[-2] < most <= places[-1] * (1 + 1e-9) or most == 0
        drawn = charts.lines([1, 2], {"a": [0.0, most]}, labels=("x", "y"), percent=True, **told)
        for picture in (drawn, charts.bars(["a"], {"s": [most]}, axis="share", **told)):
            texts = [part.text for part in well_formed_svg(picture).iter() if part.tag == "text"]
            assert {charts.tick(place) for place in places} <= set(texts)


def well_formed_svg(picture: charts.Picture) -> ElementTree.Element:
    """The picture as it stands in a page."""
    return ElementTree.fromstring(picture.svg("x"))


@pytest.mark.parametrize("values", [[0.5, 0.25], [0.0, 0.0], [1.0, 1e-6]])
def test_bars_are_as_long_as_their_figures(values: list[float]) -> None:
    """In proportion to each other, within the drawing, also where matplotlib paints them."""
    from matplotlib.figure import Figure

    picture = charts.bars(["a", "b"], {"s": values, "t": values[::-1]}, title="t", description="d", axis="share")
    root = well_formed_svg(picture)
    right = float(root.get("viewBox", "").split()[2])
    drawn = [part for part in root.iter("rect") if float(part.get("y", "0")) > 18]
    wide = [float(part.get("width", "nan")) for part in drawn]
    given = [*values, *values[::-1]]
    scale = max(wide) / max(*given, 1e-12)
    assert wide == pytest.approx([value * scale for value in given], abs=0.06)
    assert all(float(p.get("x", "nan")) + w <= right for p, w in zip(drawn, wide, strict=True))
    canvas = Figure()
    picture.draw(canvas)
    assert sorted(p.get_width() for p in canvas.axes[0].patches)[-1] == pytest.approx(max([18.0, *wide]), abs=0.06)


def test_a_large_hierarchy_is_drawn_with_its_first_values() -> None:
    """What is left out is counted."""
    table = jali.table(pd.DataFrame({"n": range(500)}), quasi={"n": jali.bands(50, 100)})
    assert "more" in jali.picture(table.hierarchy("n")).svg()


def test_what_cannot_be_drawn_says_why(tmp_path: Path) -> None:
    """Unknown things, columns, endings, nodes."""
    table = GIVEN["intervals"][1]
    parted = jali.partition(table, [jali.KAnonymity(5)])
    nodes = jali.minimal(table, [jali.KAnonymity(5)])
    for wrong, match in [
        (lambda: jali.picture(3), "no picture"),
        (lambda: jali.picture(parted, columns=["age", "ctiy"]), "city"),
        (lambda: jali.picture(parted, columns=["age"]), "two quasi-identifiers"),
        (lambda: jali.picture(nodes, chosen=parted), "no node"),
        (lambda: jali.picture(nodes, chosen={"age": 1}), "another lattice"),
        (lambda: jali.picture(nodes, tmp_path / "x.doc"), "ending"),
    ]:
        with pytest.raises(InputError, match=match):
            wrong()


def test_results_show_themselves_in_a_notebook(releases: Any) -> None:
    """Release, audit, table, measures, attacks, verdict and more as well-formed HTML; no row of a table."""
    table = GIVEN["generalized"][1]
    release = releases["generalized"]
    gallery = jali.attacks(release, table)
    for one in (table, jali.measure(release, table), gallery, jali.report(release).verdict):
        well_formed(f"<!DOCTYPE html><html><head><title>x</title></head><body>{one._repr_html_()}</body></html>")
    assert "algorithm" not in gallery._repr_html_()  # showing it must not start what takes a minute
    assert "Pune" not in table._repr_html_()
    shown = [*releases.values(), *map(jali.audit, releases.values()), table.hierarchy("age")]
    shown += [jali.minimal(table, [jali.KAnonymity(5)])]
    for one in shown:
        well_formed(f"<!DOCTYPE html><html><head><title>x</title></head><body>{one._repr_html_()}</body></html>")


def test_a_page_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch, releases: Any, tmp_path: Path) -> None:
    """Its pictures are our own; another form of file says what to install."""
    whole = jali.report(releases["generalized"]).html
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    assert jali.report(releases["generalized"]).html == whole
    curve = jali.disclosure.curve(releases["generalized"])
    curve.plot(tmp_path / "curve.svg")
    with pytest.raises(InputError, match=r'pip install "jali\[plots\]"'):
        curve.plot(tmp_path / "curve.png")


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """An existing file stays unless it may be replaced; nothing else is left behind."""
    page = Report("<!DOCTYPE html><title>x</title>", "x", "public")
    well_formed(f"<!DOCTYPE html><html><head><title>x</title></head><body>{page._repr_html_()}</body></html>")
    path = page.save(tmp_path / "report.html")
    assert path.read_bytes().decode("utf-8") == page.html
    with pytest.raises(InputError, match="exists"):
        page.save(path)
    page.save(path, overwrite=True)
    with pytest.raises(InputError, match="there is no folder"):
        page.save(tmp_path / "nowhere" / "report.html")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert "public edition" in repr(page)


def test_no_page_is_written_among_the_files_of_a_release(releases: Any, tmp_path: Path) -> None:
    """Else the release could not be replaced, and the page would be handed out with it."""
    folder = releases["generalized"].save(tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text("{}", encoding="utf-8")
    before = sorted(folder.iterdir())
    for edition in ("public", "private"):
        page = Report("<!DOCTYPE html><title>x</title>", "x", edition)
        with pytest.raises(InputError, match="name another place"):
            page.save(folder / "report.html")
        page.save(tmp_path / "other" / f"{edition}.html")
    assert sorted(folder.iterdir()) == before
    releases["generalized"].save(folder, overwrite=True)


@pytest.mark.parametrize(
    ("show", "evenly", "as_told"), [("set", True, False), ("pdf", False, True), (None, True, True)]
)
def test_how_people_are_spread_is_told_as_cells_are_shown(show: Any, evenly: bool, as_told: bool) -> None:
    """Evenly only where a cell says nothing of its values' frequencies; None is one column of each kind."""
    table = made_of(people())
    release = jali.generalize(table, [jali.KAnonymity(5)], show=show or {"age": "pdf"})
    for original in (None, table):
        said = str(published.columns(Material(release, original)).body)
        assert ("evenly within" in said, "distribution says" in said) == (evenly, as_told)


def test_long_cells_are_cut_for_people_and_never_in_the_files(tmp_path: Path) -> None:
    release = jali.generalize(made_of(people()), [jali.KAnonymity(60)], show="pdf")
    cells = [cell for column in ("age", "city") for cell in release.tables["data"][column].to_pylist()]
    long = {cell for cell in cells if len(cell) > 60}
    assert long
    pages = [str(make(Material(release, None)).body) for make in (published.published, worst_groups)]
    for text in (str(release), release._repr_html_(), *pages):
        assert not [cell for cell in long if cell in text]
        assert any(cell[:59] + "…" in text for cell in long) or text is pages[1]
    assert not re.search(r"\d: \d+/\d+", pages[1])  # in sentences a distribution is the values that it covers
    saved = jali.load(release.save(tmp_path / "out"))
    assert long <= set(saved.tables["data"]["age"].to_pylist() + saved.tables["data"]["city"].to_pylist())


def test_lines_that_coincide_are_both_seen() -> None:
    """The later one is broken, and its marks are hollow and larger; a gap is a gap."""
    told: dict[str, Any] = {"title": "t", "description": "d", "labels": ("x", "y")}
    root = well_formed_svg(charts.lines([1, 2], {"a": [0.5, 0.6], "b": [0.5, 0.6]}, **told))
    coloured = [p for p in root.iter("polyline") if "--chart" in (p.get("stroke") or "")][-2:]
    assert [part.get("stroke-dasharray") is None for part in coloured] == [True, False]
    full, hollow = [*root.iter("circle")][-1], [*root.iter("polygon")][-1]
    assert (full.get("fill") != "none", hollow.get("fill")) == (True, "none")
    left, right = (float(hollow.get("points", "").split()[i].split(",")[0]) for i in (0, 1))
    assert right - left > 2 * float(full.get("r", "nan"))
    gap = well_formed_svg(charts.lines([1, 2, 3], {"a": [0.5, None, 0.6]}, **told))
    assert not [p for p in gap.iter("polyline") if "--chart" in (p.get("stroke") or "")]
    assert len([*gap.iter("circle")]) == 2
