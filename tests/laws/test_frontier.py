"""The frontier: every point is what its method makes, nothing is recommended that does not meet the requirement."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.compare import methods as frontier_methods
from jali.compare.frontier import Frontier
from jali.compare.methods import METHODS, Method, methods_of
from jali.compare.page import MARK, page, pictures
from jali.compare.points import DEFAULTS, Cache, Part, Point, knob
from jali.errors import InfeasibleError, InputError
from jali.job import METHODS as JOB_METHODS
from jali.measures.queries import workload
from jali.reports.material import Material
from oracles.often import seeds

ALWAYS = ("lattice", "partition", "recode", "anatomy", "marginals", "pdf")
SAME_EACH_TIME = ("lattice", "partition", "recode", "marginals", "pdf")
REQUIREMENT = (jali.KAnonymity(4), jali.DistinctDiversity(2))
SCRIPT = "<script>alert(1)</script>"


def people(rows: int = 80, *, seed: int = 0, sensitive: str = "ill") -> Any:
    """A small table in which every declared value occurs, so that holder and analyst spread cells over the same."""
    random = np.random.default_rng(seed)
    data = {
        "zip": [("131", "132", "148")[i] for i in random.integers(3, size=rows)],
        "age": random.integers(20, 28, size=rows),
        sensitive: [("flu", "cold", "cancer")[i] for i in random.integers(3, size=rows)],
    }
    return jali.table(pa.table(data), quasi={"zip": jali.mask(), "age": jali.bands(2, 4)}, sensitive=[sensitive])


def open_ended(seed: int) -> Any:
    """Ages in bands without a lowest and a highest one, not all of which occur."""
    random = np.random.default_rng(seed)
    data = people(100, seed=seed).frame("arrow").drop(["age"]).append_column("age", [random.integers(20, 80, size=100)])
    return jali.table(data, quasi={"zip": jali.mask(), "age": jali.bands(5, 10, 20)}, sensitive=["ill"])


def divergence(table: Any, release: Any) -> float:
    """KL-divergence by its definition, Σ p ln (p / q), with q from what an analyst infers, cell by cell."""
    names = [column.name for column in (*table.quasi, *table.sensitive)]
    cells = table.frame("arrow").select(names).group_by(names).aggregate([([], "count_all")])
    p = cells["count_all"].to_numpy() / table.rows
    q = release.estimate().probability(cells.select(names))
    return float((p * np.log(p / q)).sum())


@pytest.fixture(scope="module")
def table() -> Any:
    return people()


@pytest.fixture(scope="module")
def found(table: Any) -> Frontier:
    return jali.frontier(table, REQUIREMENT, strengths=[2, 4, 10], methods=ALWAYS, queries=40)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What methods are asked to make while this is watched."""
    seen: list[tuple[str, Any]] = []

    def watched(method: Method) -> Method:
        def function(table: Any, required: Any, **options: Any) -> Any:
            seen.append((method.name, required))
            return method.function(table, required, **options)

        return replace(method, function=function)

    monkeypatch.setattr(frontier_methods, "METHODS", {name: watched(method) for name, method in METHODS.items()})
    return seen


# -- what a point says -----------------------------------------------------------------------------------------------


def test_there_is_a_point_for_every_method_at_every_strength(found: Frontier) -> None:
    """From weak to strong, none dropped."""
    assert [(p.strength, p.method) for p in found.points] == [(k, m) for k in (2, 4, 10) for m in ALWAYS]


@pytest.mark.parametrize("name", SAME_EACH_TIME)
def test_a_point_has_the_figures_of_the_release_that_its_method_makes(table: Any, found: Frontier, name: str) -> None:
    """KL-divergence by its definition, and the error of the same questions."""
    for point in (p for p in found.points if p.method == name):
        required = (jali.KAnonymity(point.strength), REQUIREMENT[1])
        release = methods_of([name])[0].release(table, required, {}, lambda done, total: None)
        assert point.kl == pytest.approx(divergence(table, release), abs=1e-9)
        assert point.error == pytest.approx(workload(table, 40, volume=0.05).errors(release.estimate()).average)


def test_the_methods_are_the_public_functions(table: Any, found: Frontier) -> None:
    """With their own defaults."""
    public: dict[str, Callable[[], Any]] = {
        "lattice": lambda: jali.generalize(table, REQUIREMENT),
        "partition": lambda: jali.partition(table, REQUIREMENT),
        "recode": lambda: jali.recode(table, REQUIREMENT),
        "marginals": lambda: jali.marginals(table, REQUIREMENT),
        "pdf": lambda: jali.partition(table, REQUIREMENT, show="pdf"),
    }
    for name, make in public.items():
        (point,) = (p for p in found.at_asked if p.method == name)
        assert point.kl == pytest.approx(make().manifest.metrics["kl"], abs=1e-12)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_what_is_said_to_be_met_is_kept_by_every_published_group(seed: int) -> None:
    """Judged from the published tables alone; and what is not promised is not said to be met."""
    table = people(40 + 10 * seed, seed=seed)
    requirements: list[Any] = [
        REQUIREMENT, (jali.EntropyDiversity(1.5),), (jali.TCloseness(0.4), jali.KAnonymity(3)), (jali.KAnonymity(3),),
        (jali.AlphaAnonymity(0.8, 3),),
    ]  # fmt: skip
    for requirement in requirements:
        made = jali.frontier(table, requirement, strengths=[], methods=ALWAYS, queries=2)
        for point in (p for p in made.points if p.reason is None):
            release = made.release(table, method=point.method)
            assert [part.principle for part in point.parts] == [repr(p) for p in requirement]
            for part, principle in zip(point.parts, requirement, strict=True):
                assert (part.met == "no") == (principle not in release.principles)
                if part.met == "yes":
                    assert bool(principle.holds(release.counts()).all())


def test_each_method_says_what_the_issue_says_of_it(found: Frontier) -> None:
    """Anatomy does not keep k, marginals keep it as k-link, pdf only where it is known who is in the table."""
    met = {p.method: {part.principle.partition("(")[0]: part for part in p.parts} for p in found.at_asked}
    for name in ("lattice", "partition", "recode"):
        assert {part.met for part in met[name].values()} == {"yes"}
    assert met["anatomy"]["KAnonymity"].met == "no"
    assert met["anatomy"]["DistinctDiversity"].met == "otherwise"
    assert "4-link" in met["marginals"]["KAnonymity"].sense
    assert met["marginals"]["KAnonymity"].met == met["marginals"]["DistinctDiversity"].met == "otherwise"
    assert "who already knows who is in the table" in met["pdf"]["KAnonymity"].sense
    assert met["pdf"]["KAnonymity"].met == "otherwise"


def test_anatomy_really_does_not_keep_k(table: Any, found: Frontier) -> None:
    """The audit of its release tells people apart whom the requirement wants alike."""
    assert jali.audit(found.release(table, method="anatomy")).k < 4


def test_options_change_what_a_method_keeps(table: Any) -> None:
    """Buckets whose people are shown alike keep k; a lattice that shows distributions is as narrow as pdf."""
    options = {"anatomize": {"buckets": "partition", "generalized": True}, "generalize": {"show": "pdf"}}
    made = jali.frontier(table, REQUIREMENT, strengths=[], methods=["anatomy", "lattice"], queries=2, options=options)
    verdicts = {point.method: point.verdict for point in made.points}
    assert verdicts == {"anatomy": "all", "lattice": "otherwise"}
    assert jali.audit(made.release(table, method="anatomy")).k >= 4


def test_angel_keeps_k_table_by_table_and_is_told_k_where_nobody_said_it() -> None:
    """What it is asked for, and in which sense it keeps what is required."""
    asked: list[tuple[Any, Any]] = []

    def angelize(table: Any, required: Any, *, on_step: Any, **options: Any) -> None:
        asked.append((required, options))

    method = replace(METHODS["angel"], function=angelize)
    for required in (REQUIREMENT, REQUIREMENT[1:]):
        method.release(None, required, {}, lambda done, total: None)  # type: ignore[arg-type]
    assert asked == [(REQUIREMENT, {}), (REQUIREMENT[1:], {"k": 10})]
    assert method.sense(jali.KAnonymity(4), {}).met == "otherwise"
    assert "each published table" in method.sense(jali.KAnonymity(4), {}).words
    assert method.sense(jali.TCloseness(0.2), {}).met == "yes"


@pytest.mark.parametrize("seed", range(3))
def test_the_query_error_is_that_of_measure_where_no_domain_is_declared(seed: int) -> None:
    """Bands without ends are published as `*` of nobody knows what; the holder knows, in every figure."""
    table = open_ended(seed)
    made = jali.frontier(table, REQUIREMENT, strengths=[], methods=SAME_EACH_TIME, queries=30, seed=seed)
    assert {p.verdict for p in made.points} == {"all", "otherwise"}
    for one in made.points:
        found = jali.measure(made.release(table, method=one.method), table, queries=30, seed=seed).queries
        assert found is not None
        assert one.error == pytest.approx(found.average, rel=1e-12)


def test_a_report_asks_as_measure_does_where_no_domain_is_declared() -> None:
    """Volume by volume."""
    table = open_ended(0)
    release = jali.generalize(table, REQUIREMENT)
    errors = Material(release, table).errors
    assert isinstance(errors, list)
    for one in errors:
        assert one == jali.measure(release, table, queries=one.queries, volume=one.volume).queries


def test_a_release_whose_query_error_is_not_defined_is_still_a_release(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its KL-divergence and can be recommended; text and page say that the other figure is not defined."""

    def refuse(*arguments: Any) -> None:
        raise InputError("it cannot be told")

    monkeypatch.setattr("jali.compare.frontier.inferred_beside", refuse)
    made = jali.frontier(table, REQUIREMENT, strengths=[], methods=["lattice"], queries=2)
    assert made.recommended is made.points[0]
    assert (made.points[0].error, made.points[0].reason) == (None, None)
    assert made.points[0].kl is not None
    assert "not defined" in repr(made)
    assert "not defined" in made.reason
    assert "not defined" in page(made)
    assert made.points[0].undefined == "it cannot be told"
    assert "the query error of lattice is not defined: it cannot be told" in repr(made)
    assert "The query error of lattice is not defined: it cannot be told." in page(made)


def test_a_column_of_which_every_value_is_missing_is_not_asked_about() -> None:
    """The frontier is about the others; whoever asks for that column alone is told what to do."""
    data = people().frame("arrow")
    none = data.set_column(data.schema.get_field_index("ill"), "ill", pa.nulls(data.num_rows, pa.string()))
    table = jali.table(none, quasi={"zip": jali.mask(), "age": jali.bands(2, 4)}, sensitive=["ill"])
    made = jali.frontier(table, jali.KAnonymity(4), strengths=[], methods=["lattice"], queries=5)
    (one,) = made.points
    assert one.error is not None
    with pytest.raises(InputError, match="leave the column out"):
        workload(table, 5, columns=["ill"])


# -- what is recommended ---------------------------------------------------------------------------------------------


def invented(*points: Point, accept: tuple[str, ...] = ()) -> Frontier:
    return Frontier(points, (jali.KAnonymity(5),), "KAnonymity.k", 5, frozenset(accept), 10, 0.05, {})


def point(method: str, kl: float, error: float, met: Any = "yes", strength: int = 5) -> Point:
    return Point(method, strength, kl, error, (Part("KAnonymity(5)", met, "so"),))


@given(seeds)
def test_the_recommended_point_is_the_cheapest_of_those_that_meet_everything_as_asked(seed: int) -> None:
    """By brute force over random points: no weaker strength, no other sense unless accepted, ties by query error."""
    random = np.random.default_rng(seed)
    for _ in range(100):
        points = [
            point(
                name,
                random.integers(3) / 2,
                random.integers(3) / 2,
                random.choice(["yes", "otherwise", "no"]),
                strength,
            )
            for strength in (2, 5, 10)
            for name in ALWAYS
        ]
        points[int(random.integers(len(points)))] = Point("pdf", 5, reason="cannot be met")
        accept = tuple(name for name in ALWAYS if random.random() < 0.3)
        chosen = invented(*points, accept=accept).recommended
        allowed = [
            p for p in points
            if p.strength == 5 and p.kl is not None
            and all(part.met == "yes" or (part.met == "otherwise" and p.method in accept) for part in p.parts)
        ]  # fmt: skip
        if chosen is None:
            assert not allowed
        else:
            assert chosen in allowed
            assert (chosen.kl, chosen.error) == min((p.kl, p.error) for p in allowed)


def test_the_reason_says_why() -> None:
    """The only one, the cheapest, a tie; what costs less and why it is not taken; that nothing meets it."""
    assert "only method" in invented(point("lattice", 1, 1)).reason
    assert "loses least of the 2" in invented(point("lattice", 1, 1), point("recode", 2, 0)).reason
    tie = invented(point("lattice", 1, 1), point("recode", 1, 0.5))
    assert tie.recommended is tie.points[1]
    assert "as little as lattice, and answers queries best" in tie.reason
    assert "comes first" in invented(point("lattice", 1, 1), point("recode", 1, 1)).reason
    other = invented(point("lattice", 1, 1), point("pdf", 0.5, 1, "otherwise"), point("anatomy", 0.1, 1, "no"))
    assert "pdf (0.5000 nats) keeps KAnonymity(5) in a sense of its own, which was not accepted" in other.reason
    assert "anatomy (0.1000 nats) does not keep KAnonymity(5)" in other.reason
    assert "It was accepted that KAnonymity(5)" in replace(other, accept=frozenset(["pdf"])).reason
    both = replace(other.points[1], parts=(*other.points[1].parts, Part("TCloseness(0.2)", "otherwise", "so")))
    assert "pdf (0.5000 nats) keeps " in invented(point("lattice", 1, 1), both).reason
    for part in both.parts:
        assert part.principle in invented(point("lattice", 1, 1), both).reason
        assert part.principle in invented(point("lattice", 1, 1), both, accept=("pdf",)).reason
    nothing = invented(point("anatomy", 0.1, 1, "no"), accept=("anatomy",))
    assert nothing.recommended is None
    assert nothing.reason.startswith("Nothing is recommended: none of anatomy meets all of KAnonymity(5).")
    why = {"lattice": "too few", "pdf": "too few", "recode": "no"}
    refused = [Point(name, 5, reason=reason) for name, reason in why.items()]
    assert invented(*refused).reason.endswith("lattice and pdf: too few. recode: no.")
    with pytest.raises(InfeasibleError, match="Nothing is recommended"):
        nothing.release(people())


def test_the_recommended_release_keeps_the_requirement(table: Any, found: Frontier) -> None:
    """Made again from the table, with all of the requirement among its promises."""
    release = found.release(table)
    assert set(release.principles) == set(REQUIREMENT)
    assert found.recommended is not None
    assert release.manifest.metrics["kl"] == pytest.approx(found.recommended.kl)


# -- what cannot be had ----------------------------------------------------------------------------------------------


def test_what_cannot_be_made_is_said_and_not_dropped(table: Any) -> None:
    """A k beyond the table, a diversity beyond its values, a method that keeps nothing of it."""
    made = jali.frontier(table, REQUIREMENT[:1], strengths=[4, 10_000], methods=["lattice", "anatomy"], queries=2)
    verdicts = {(p.method, p.strength): p.verdict for p in made.points}
    assert verdicts == {
        ("lattice", 4): "all", ("anatomy", 4): "none", ("lattice", 10_000): "none", ("anatomy", 10_000): "none",
    }  # fmt: skip
    for one in (p for p in made.points if p.verdict == "none"):
        assert one.kl is None
        assert one.reason is not None
        assert one.reason in repr(made)
        assert one.reason.split('"')[0].split("'")[0] in page(made)
    diverse = jali.frontier(table, jali.DistinctDiversity(2), strengths=[4], methods=["partition"], queries=2)
    assert [p.verdict for p in diverse.points] == ["all", "none"]


def test_what_makes_no_sense_for_any_method_is_an_error(table: Any) -> None:
    """One line that says what to do."""
    for arguments, text in (
        ({"requirement": jali.EntropyDiversity(2, sensitive="il")}, "il"),
        ({"methods": ["latice"]}, 'did you mean "lattice"'),
        ({"methods": "lattice"}, "list of names"),
        ({"methods": []}, "no method"),
        ({"accept": ["pfd"]}, 'did you mean "pdf"'),
        ({"vary": "kk"}, 'did you mean "k"'),
        ({"strengths": [0]}, "k must be"),
        ({"strengths": 5}, "list of numbers"),
        ({"options": {"generalise": {}}}, 'did you mean "generalize"'),
        ({"options": 5}, "keyword arguments by function"),
        ({"options": {"partition": 5}}, 'those of "partition" are keyword arguments'),
        ({"options": {"partition": {"modee": 1}}}, 'did you mean "mode"'),
        ({"options": {"partition": {"on_step": None}}}, 'no option "on_step"'),
        ({"accept": ["anatomy"]}, re.escape("anatomy does not keep KAnonymity(4) in any sense")),
        ({"queries": 0}, "queries"),
        ({"volume": 2}, "volume"),
        ({"requirement": []}, "no principle"),
    ):
        with pytest.raises(InputError, match=text):
            jali.frontier(table, **({"requirement": REQUIREMENT} | arguments))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="jali table"):
        jali.frontier({"a": [1]}, REQUIREMENT)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a table about one person cannot be published"):
        jali.frontier(people(1), REQUIREMENT)
    assert jali.frontier(table, REQUIREMENT[1], strengths=[], methods=["anatomy"], accept=["anatomy"]).recommended


# -- strengths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DEFAULTS)
def test_strengths_go_from_weak_to_strong_with_the_asked_one_among_them(kind: str) -> None:
    """Whatever keeps a stronger one keeps the weaker ones too: on random groups."""
    random = np.random.default_rng(1)
    counts = jali.principles.dense(random.integers(0, 12, size=(300, 6)))
    made = {"AlphaAnonymity": (0.5, 3), "RecursiveDiversity": (2.5, 3), "Safety": (0.75, 1), "TCloseness": (0.25,)}
    principle = getattr(jali, kind)(*made.get(kind, (3,)))
    for parameter in DEFAULTS[kind]:
        turned = knob((principle,), parameter)
        values = turned.values(None)
        assert getattr(principle, parameter) in values
        assert set(DEFAULTS[kind][parameter]) <= set(values)
        verdicts = np.array([turned.at(value)[0].holds(counts) for value in values])
        assert (verdicts[1:] <= verdicts[:-1]).all()


def test_a_parameter_is_found_by_its_name_its_principle_or_its_place() -> None:
    """The first by default; an ambiguous name is refused with what to write; several columns are reached too."""
    both = (jali.KAnonymity(5), jali.Safety(0.8, 2), jali.MultiAttribute(jali.EntropyDiversity(2)))
    assert knob(both, None).names[1] == "KAnonymity.k"
    assert knob(both, "l").at(3)[2] == jali.MultiAttribute(jali.EntropyDiversity(3))
    assert knob(both, "Safety.k").at(3)[1] == jali.Safety(0.8, 3)
    assert knob(both, "2.c").asked == 0.8
    with pytest.raises(InputError, match=re.escape('write "KAnonymity.k" or "Safety.k"')):
        knob(both, "k")
    twice = (jali.TCloseness(0.3, sensitive="a"), jali.TCloseness(0.2, sensitive="b"))
    with pytest.raises(InputError, match=re.escape('"1.t"')):
        knob(twice, "t")
    assert knob(twice, "2.t").asked == 0.2
    with pytest.raises(InputError, match="can be varied"):
        knob((jali.DeltaPresence(0, 0.5),), None)


def test_equal_strengths_are_one_however_they_are_written() -> None:
    """0.2, "1/5" and 0.20 are the same."""
    assert knob((jali.TCloseness(0.2),), None).values(["1/5", 0.2, "0.4"]) == (pytest.approx(0.4), 0.2)


# -- continuing ------------------------------------------------------------------------------------------------------


class StopError(Exception):
    """Raised by the caller in the middle."""


def test_an_interrupted_run_continues_where_it_was(
    table: Any, found: Frontier, tmp_path: Path, calls: list[tuple[str, Any]]
) -> None:
    """No point is made twice, and the figures are those of a run that was never interrupted."""
    arguments: Any = {"strengths": [2, 4, 10], "methods": SAME_EACH_TIME, "queries": 40, "resume": tmp_path / "half"}

    def stop(done: int, total: int) -> None:
        assert total == 3 * len(SAME_EACH_TIME)
        if done == 7:
            raise StopError

    with pytest.raises(StopError):
        jali.frontier(table, REQUIREMENT, on_step=stop, **arguments)
    assert len(calls) == 7
    whole = jali.frontier(table, REQUIREMENT, **arguments)
    assert len(calls) == 3 * len(SAME_EACH_TIME)
    assert len(set(calls)) == len(calls)
    for one, other in zip(whole.points, (p for p in found.points if p.method != "anatomy"), strict=True):
        assert replace(one, seconds=0) == replace(other, seconds=0)
    again = jali.frontier(table, REQUIREMENT, **arguments)
    assert len(calls) == 3 * len(SAME_EACH_TIME)
    assert again.points == whole.points


def test_what_a_point_depends_on_makes_another_point(table: Any, tmp_path: Path, calls: list[tuple[str, Any]]) -> None:
    """Other questions, options or promises are computed anew; another choice of what to vary is not."""
    base: Any = {"strengths": [], "methods": ["lattice"], "queries": 5, "resume": tmp_path / "kept"}
    for number, change in enumerate(
        ({}, {"queries": 6}, {"volume": 0.1}, {"seed": 1}, {"options": {"generalize": {"metric": "loss"}}}), 1
    ):
        jali.frontier(table, REQUIREMENT, **(base | change))
        assert len(calls) == number
    jali.frontier(table, REQUIREMENT, vary="l", accept=["pdf"], **base)
    assert len(calls) == 5
    jali.frontier(table, jali.KAnonymity(4), **base)
    assert len(calls) == 6


def test_figures_of_an_older_jali_are_made_anew(
    table: Any, tmp_path: Path, calls: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file from before the figures changed is no error, and none of its points is shown."""
    run: dict[str, Any] = {"strengths": [], "methods": ["lattice"], "queries": 2, "resume": tmp_path / "kept.json"}
    with monkeypatch.context() as older:
        older.setattr("jali.compare.points.FIGURES", 1)
        jali.frontier(table, REQUIREMENT, **run)
    assert len(calls) == 1
    text = (tmp_path / "kept.json").read_text("utf-8")
    (tmp_path / "kept.json").write_text(text.replace('"undefined": null', '"other": null'), "utf-8")
    jali.frontier(table, REQUIREMENT, **run)
    assert len(calls) == 2
    jali.frontier(table, REQUIREMENT, **run)
    assert len(calls) == 2


def test_the_file_is_private_and_has_figures_only(table: Any, tmp_path: Path) -> None:
    """For its owner alone, without a value of the table; of two tables it is never mixed."""
    path = tmp_path / "private.json"
    jali.frontier(table, REQUIREMENT, strengths=[], methods=["lattice", "anatomy"], queries=2, resume=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text(encoding="utf-8")
    assert "private" in json.loads(text)["about"]
    assert not [value for value in ("flu", "cold", "cancer", "zip", "131", "148") if re.search(rf"\b{value}\b", text)]
    for other in (people(seed=1), people().with_domain("present"), people(79)):
        with pytest.raises(InputError, match="another table"):
            jali.frontier(other, REQUIREMENT, strengths=[], methods=["lattice"], queries=2, resume=path)
    assert path.read_text(encoding="utf-8") == text
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "{}", "[1]", "a,b\n1,2\n", '{"about": "something else"}'])
def test_a_file_of_another_kind_is_refused_and_left_alone(table: Any, tmp_path: Path, text: str) -> None:
    """Nobody loses a table to a misspelt option."""
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="no file that a frontier can continue from"):
        jali.frontier(table, REQUIREMENT, strengths=[], methods=["lattice"], queries=2, resume=path)
    assert path.read_text(encoding="utf-8") == text


def test_two_files_about_one_table_have_nothing_in_common_to_compare(table: Any, tmp_path: Path) -> None:
    """The digest is salted: equal tables cannot be told by equal digests."""
    told = []
    for name in ("a", "b"):
        jali.frontier(table, REQUIREMENT, strengths=[], methods=["lattice"], queries=2, resume=tmp_path / name)
        told.append(json.loads((tmp_path / name).read_text(encoding="utf-8")))
    assert told[0]["table"] != told[1]["table"]
    assert not set(told[0]["points"]) & set(told[1]["points"])


# -- how it shows itself ---------------------------------------------------------------------------------------------


def test_only_points_that_meet_everything_are_joined_by_a_line(found: Frontier) -> None:
    """In both pictures; every other point is drawn too, and exactly one ring marks the recommended one."""
    from matplotlib.figure import Figure

    for accept in (frozenset[str](), frozenset(["pdf", "marginals"])):
        shown = replace(found, accept=accept)
        for picture, figure in zip(pictures(shown), ("kl", "error"), strict=True):
            canvas = Figure()
            picture.draw(canvas)
            lines = canvas.axes[0].get_lines()
            joined = [line for line in lines if line.get_linestyle() == "-"]
            expected = [
                [getattr(p, figure) for p in shown.points if p.method == name and shown.meets(p)] for name in ALWAYS
            ]
            assert [list(line.get_ydata()) for line in joined] == [own for own in expected if own]
            signs = [line for line in lines if line.get_linestyle() == "None"]
            rings = [line for line in signs if line.get_markersize() == 14]
            assert len(signs) - len(rings) == len(shown.points)
            assert [list(ring.get_ydata()) for ring in rings] == [[getattr(shown.recommended, figure)]]
            full = sum(line.get_fillstyle() == "full" for line in signs) - len(rings)
            assert full == sum(map(shown.meets, shown.points))


@pytest.mark.slow
def test_every_tick_of_a_logarithmic_scale_reads_as_a_number() -> None:
    """No LaTeX, and at least two of them, however far the figures are apart."""
    for least in (0.1, 0.06, 0.01, 0.001, 1e-6):
        shown = invented(point("lattice", 3.0, 2.9), point("recode", 3.0 * least / 3, least))
        for picture in pictures(shown):
            drawn = picture.svg()
            assert "$" not in drawn
            ticks = re.findall(r">([0-9.e+-]+)%?</text>", drawn)
            assert len([tick for tick in ticks if tick != "5"]) >= 2


class Reading(HTMLParser):
    """What stands in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "srcset", "action")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone_and_is_marked_as_confidential(found: Frontier, tmp_path: Path) -> None:
    """One script, ours, no address outside, pictures that speak, tables with captions, the reason, every point."""
    path = found.save(tmp_path / "frontier.html")
    reading = Reading()
    reading.feed(path.read_text(encoding="utf-8"))
    assert reading.tags.count("script") == 1  # ours: tables can be searched and sorted
    assert "http:" not in path.read_text(encoding="utf-8")
    assert "https:" not in path.read_text(encoding="utf-8")
    assert all(address.startswith("#") for address in reading.addresses)
    assert len(set(reading.ids)) == len(reading.ids)
    assert reading.tags.count("svg") == reading.tags.count("desc") == 2
    assert reading.tags.count("table") == reading.tags.count("caption") == 2
    assert "Confidential" in reading.text
    for sentence in found.reason.split(". "):
        assert sentence.rstrip(".") in reading.text
    assert reading.tags.count("tr") >= len(found.points)
    with pytest.raises(InputError, match="exists"):
        found.save(path)


def test_a_notebook_is_told_that_a_frontier_is_confidential(found: Frontier) -> None:
    """As the page and the text are."""
    assert found._repr_html_().index(MARK) < found._repr_html_().index("<section")
    assert "confidential" in repr(found)


def test_names_from_the_table_are_escaped() -> None:
    """A column may be called anything."""
    principle = jali.DistinctDiversity(2, sensitive=SCRIPT)
    made = jali.frontier(people(sensitive=SCRIPT), principle, strengths=[], methods=["lattice", "pdf"], queries=2)
    assert SCRIPT in repr(made)
    for text in (page(made), made._repr_html_()):
        assert text.count("<script") == text.count('<script>\n"use strict"')  # ours alone
        assert "&lt;script&gt;alert(1)" in text


def test_frame_dict_and_text_say_the_same(found: Frontier) -> None:
    """One row a point, one of them recommended, in every kind of frame; plain values that JSON can hold."""
    rows = found.frame().to_pylist()
    assert [(r["method"], r["strength"], r["kl"], r["query_error"]) for r in rows] == [
        (p.method, p.strength, p.kl, p.error) for p in found.points
    ]
    assert found.recommended is not None
    assert [(r["method"], r["strength"]) for r in rows if r["recommended"]] == [(found.recommended.method, 4)]
    assert len(found.frame("pandas")) == len(found.frame("polars")) == len(rows)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["recommended"] == found.recommended.method
    assert [p["meets_all"] for p in told["points"]] == [r["meets_all"] for r in rows]
    assert [p["kl"] for p in told["points"]] == [r["kl"] for r in rows]
    assert found.reason.split(". ")[0] in repr(found)
    assert repr(found).count("\n") >= len(rows)


# -- while it grows --------------------------------------------------------------------------------------------------


def test_each_point_is_told_as_soon_as_it_is_known_and_what_is_known_is_not_made_again(
    table: Any, calls: list[tuple[str, Any]]
) -> None:
    """`on_point` sees the frontier grow by a point at a time; a cache in memory spares the second run all work."""
    seen: list[tuple[str, ...]] = []
    known = Cache(None)
    ways: Any = {"methods": ["lattice", "partition"], "strengths": [2], "queries": 10, "resume": known}
    made = jali.frontier(table, REQUIREMENT, on_point=lambda so_far: seen.append(names(so_far)), **ways)
    assert seen == [names(made)[: n + 1] for n in range(len(made.points))]
    assert len(set(names(made))) == len(made.points)
    before = len(calls)
    again = jali.frontier(table, REQUIREMENT, **ways)
    assert (names(again), len(calls)) == (names(made), before)


def names(found: Frontier) -> tuple[str, ...]:
    return tuple(point.name for point in found.points)


@pytest.mark.parametrize("name", SAME_EACH_TIME)
def test_the_call_of_a_point_makes_its_release(table: Any, found: Frontier, name: str) -> None:
    """The method, options and promises that a job would have give the KL-divergence of the point, at each strength."""
    for point in (p for p in found.points if p.method == name):
        required = knob(REQUIREMENT, None).at(point.strength)
        call = found.call(point, required)
        made = getattr(jali, JOB_METHODS[call.method])(table, call.kept, **call.options)
        assert made.manifest.metrics["kl"] == point.kl
        assert set(made.principles) == {p for p in required if p in call.kept}
