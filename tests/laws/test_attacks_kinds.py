"""Laws of the attacks on ANGEL, on marginals, on presence, and on people with several rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given

import jali
from jali.core.rows import Rows
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.releases.base import Manifest
from jali.releases.chains import publish_chain
from jali.releases.marginals import Marginals
from jali.risk.beliefs import exposed_by_groups
from jali.risk.policy import EXPOSING
from oracles import attacks as oracle

QUASI = {"a": jali.bands(2, 4, low=0, high=7), "b": jali.suppress()}


def table_of(rows: list[tuple[int, str, str]], **more: Any) -> Table:
    frame = pa.table({"a": [a for a, _, _ in rows], "b": [b for _, b, _ in rows], "s": [s for _, _, s in rows]})
    for name, values in more.items():
        frame = frame.append_column(name, pa.array(values))
    return jali.table(frame, quasi=QUASI, sensitive=["s"], **({"person": "who"} if "who" in more else {}))


rows_of = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from("xyz"), st.sampled_from("pqr")), min_size=4, max_size=10
)


def covers(shown: object, value: object, cells: Iterable[object] = ()) -> bool:
    """Whether a published cell covers a value, read as text; other values are those that none of the cells names."""
    cell = str(shown)
    if cell in ("*", str(value)):
        return True
    if cell.startswith("["):
        low, high = cell[1:-1].split(", ")
        return int(low) <= int(str(value)) <= int(high)
    named = {name for one in cells for name in str(one).strip("{}").split(", ")}
    return cell.startswith("{") and (
        str(value) in cell[1:-1].split(", ") or ("other values" in cell and str(value) not in named)
    )


# -- ANGEL ---------------------------------------------------------------------------------------------------------


@given(rows_of, st.data())
def test_attacks_on_angel_believe_the_mixture_of_batches(rows: list[tuple[int, str, str]], data: st.DataObject) -> None:
    """Against reading the published tables row by row; with several tables the strongest, and what all leave."""
    table = table_of(rows)
    marginals = data.draw(st.sampled_from([[], [["a", "s"]], [["a", "s"], ["b"]]]))
    try:
        release = jali.angelize(
            table, [jali.FrequencyDiversity(1.2)], k=data.draw(st.integers(1, 3)), marginals=marginals
        )
    except (InfeasibleError, InputError):
        assume(False)
        raise
    tables = {name: shown.to_pylist() for name, shown in release.tables.items()}
    batches = tables.pop("batches")
    least = data.draw(st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(1)]))
    gallery = jali.attacks(release, table, threshold=least)
    in_data, everywhere = [], []
    for a, b, _ in rows:
        person = {"a": a, "b": b}
        own = {
            name: [
                row["batch"]
                for row in shown
                if all(covers(row[c], person[c], {one[c] for one in shown}) for c in ("a", "b") if c in row)
            ]
            for name, shown in tables.items()
            if "batch" in shown[0]
        }
        in_data.append(oracle.mixture(own["data"], batches))
        everywhere.append(oracle.strongest_mixture(list(own.values()), batches))
    values = [s for _, _, s in rows]
    assert (gallery["homogeneity"].exposed, gallery["homogeneity"].right) == oracle.believed(in_data, values, least)
    assert (gallery["linkage"].exposed, gallery["linkage"].right) == oracle.believed(everywhere, values, least)
    for number in (1, 2, 3):
        name = f"exposed once {number} value{'s are' if number > 1 else ' is'} ruled out"
        assert gallery["background knowledge"].figures[name] == oracle.ruled_out(in_data, values, least, number)


def test_angel_from_the_files_and_a_public_table(tmp_path: Path) -> None:
    rows = [(i % 8, "xyz"[i % 3], "pqr"[(i * 7) % 3]) for i in range(24)]
    table = table_of(rows)
    release = jali.angelize(table, [jali.FrequencyDiversity(1.5)], k=3)
    fresh = jali.attacks(release, table, threshold=0.4)
    loaded = jali.attacks(release.save(tmp_path / "angel"), table, threshold=0.4)
    assert [attack.to_dict() for attack in fresh.tried] == [attack.to_dict() for attack in loaded.tried]
    public = pa.table({"a": [a for a, _, _ in rows], "b": [b for _, b, _ in rows]})
    found = jali.attacks(release, table, public=public, threshold=0.4)
    assert found["linkage"].exposed == fresh["linkage"].exposed
    assert found["presence"].figures["people certainly present"] == found["presence"].right == 24  # all are in it


# -- marginals -----------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xy"), st.sampled_from("pqr")), min_size=4, max_size=7),
    st.data(),
)
def test_attacks_on_marginals_are_what_each_marginal_and_every_table_say(
    rows: list[tuple[int, str, str]], data: st.DataObject
) -> None:
    """Homogeneity by the strongest marginal; certainty by listing every table with these people and marginals."""
    table = table_of(rows)
    try:
        release = jali.marginals(table, [jali.KAnonymity(data.draw(st.integers(1, 2)))], search="greedy")
    except (InfeasibleError, InputError):
        assume(False)
        raise
    shown = [marginal.counts.to_pylist() for marginal in release.marginals]
    shown_with = [cells for cells in shown if "s" in cells[0]]
    assume(bool(shown_with))
    least = data.draw(st.sampled_from([Fraction(1, 2), Fraction(1)]))
    gallery = jali.attacks(release, table, threshold=least)
    beliefs = []
    for a, b, _ in rows:
        shares = []
        for cells in shown_with:
            own = Counter()
            for cell in cells:
                if all(covers(cell[c], v) for c, v in (("a", a), ("b", b)) if c in cell):
                    own[cell["s"]] += cell["people"]
            shares.append({s: Fraction(n, own.total()) for s, n in own.items()})
        beliefs.append(oracle.strongest(shares))
    values = [s for _, _, s in rows]
    assert (gallery["homogeneity"].exposed, gallery["homogeneity"].right) == oracle.believed(beliefs, values, least)
    sure = oracle.certain_values([(a, b) for a, b, _ in rows], values, shown, covers)
    assert gallery["linkage"].figures["certain from the marginals and everybody's quasi-identifiers"] == sure
    assert gallery["linkage"].exposed is not None
    assert gallery["linkage"].exposed >= sure


def test_who_knows_everybody_is_certain_of_the_fifth_person() -> None:
    """Two marginals that each look harmless: beside the quasi-identifiers of all five they tell one value."""
    rows = [("a0", "b1", "x"), ("a0", "b1", "y"), ("a2", "b0", "x"), ("a2", "b0", "y"), ("a2", "b1", "x")]
    frame = pa.table({"a": [r[0] for r in rows], "b": [r[1] for r in rows], "s": [r[2] for r in rows]})
    table = jali.table(frame, quasi={"a": jali.suppress(), "b": jali.suppress()}, sensitive=["s"])
    counts = {"rows": 5, "people": 5, "one_row_per_person_assumed": True, "marginals": 2}
    manifest = Manifest("marginals", {"name": "marginals"}, (jali.KAnonymity(1),), counts).to_dict()
    manifest["columns"] = [publish_chain(table[name], [0]).to_dict() for name in ("a", "b", "s")]
    manifest["marginals"] = [{name: 0, "s": 0} for name in ("a", "b")]
    tables = {}
    for at, name in enumerate(("a", "b"), start=1):
        counted = Counter(zip(frame[name].to_pylist(), frame["s"].to_pylist(), strict=True))
        columns = [[pair[0] for pair in counted], [pair[1] for pair in counted], list(counted.values())]
        tables[f"marginal_{at}"] = Rows(pa.table(columns, names=[name, "s", "people"]))
    release = Marginals.from_tables(tables, manifest)
    found = jali.attacks(release, table)
    assert found["homogeneity"].exposed == 0
    assert (found["linkage"].exposed, found["linkage"].right) == (1, 1)
    assert found["linkage"].cases == ("1 person matches the cell a a2, b b1: certain of x",)


# -- presence ------------------------------------------------------------------------------------------------------

MAKERS = {
    "generalize": lambda t: jali.generalize(t, [jali.KAnonymity(2)]),
    "suppress": lambda t: jali.generalize(t, [jali.KAnonymity(2)], suppress=0.4, metric="loss"),
    "partition": lambda t: jali.partition(t, [jali.KAnonymity(2)]),
    "recode": lambda t: jali.recode(t, [jali.KAnonymity(2)]),
    "tuples": lambda t: jali.repair(
        jali.generalize(t, [jali.KAnonymity(1)], levels={"a": 1, "b": 1}), [jali.KAnonymity(2)], by="tuples"
    ),
}  # fmt: skip


@given(rows_of, st.sampled_from(list(MAKERS)), st.data())
def test_who_is_certainly_present_is_in_every_choice_of_people_that_fits_the_rows(
    rows: list[tuple[int, str, str]], kind: str, data: st.DataObject
) -> None:
    """Every choice of public people who can be matched to the published rows, cell by cell, agrees."""
    inside = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=2, max_size=6)))
    table = table_of([rows[i] for i in inside])
    try:
        release = MAKERS[kind](table)
    except (InfeasibleError, InputError):
        assume(False)
        raise
    public = pa.table({"a": [a for a, _, _ in rows], "b": [b for _, b, _ in rows]})
    found = jali.attacks(release, table, public=public)["presence"]
    shown = [(row["a"], row["b"]) for row in release.tables["data"].to_pylist()]
    every = {cell for row in shown for cell in row}
    always, never = oracle.present_in_all(shown, [(a, b) for a, b, _ in rows], partial(covers, cells=every))
    assert found.exposed == found.right
    assert found.figures["people certainly present"] <= len(always)
    assert found.figures["people certainly absent"] <= len(never)
    assert found.people == len(rows)


def test_a_concealed_release_is_decoded_fresh_and_from_its_files(tmp_path: Path) -> None:
    town = [(a, b) for a in range(8) for b in "xyz"]
    patients = [(a, b, "pq"[(a + i) % 2]) for i, (a, b) in enumerate(town) if a % 3 == 0 or b == "x"]
    public = pa.table({"a": [a for a, _ in town], "b": [b for _, b in town]})
    private, whole = table_of(patients), jali.table(public, quasi=QUASI)
    release = jali.conceal(private, whole, low=0.1, high=0.8, shift="exact", search="partition")
    fresh = jali.attacks(release, private, time_limit=1)
    names = ["homogeneity", "background knowledge", "linkage", "algorithm", "presence"]
    assert [attack.name for attack in fresh.attacks] == names
    found = fresh["presence"]
    assert found.exposed == found.right
    assert found.people == len(town)
    assert found.figures["groups whose private counts can be decoded"] > 0
    folder = release.save(tmp_path / "hidden")
    again = jali.attacks(folder, private, public=public)
    assert again["presence"].to_dict() == found.to_dict()
    assert jali.attacks(folder, private)["presence"].exposed is None  # no public table, no figure
    other = jali.attacks(folder, private, public=public.slice(0, 3))["presence"]
    assert other.exposed is None
    assert "must hold everybody" in other.notes[0]


def test_a_concealed_release_without_sensitive_values_is_attacked_for_presence_alone() -> None:
    frame = pa.table({"a": [0, 1, 2, 3, 4, 5]})
    public = jali.table(frame, quasi={"a": QUASI["a"]})
    private = jali.table(frame.slice(0, 3), quasi={"a": QUASI["a"]})
    found = jali.attacks(jali.conceal(private, public, low=0, high=1, shift="exact"), private)
    assert [attack.name for attack in found.tried] == ["presence"]
    assert "Attacks on presence" in repr(found)


# -- people with several rows --------------------------------------------------------------------------------------


@given(rows_of, st.data())
def test_people_with_several_rows_are_counted_once_and_by_their_sets_of_values(
    rows: list[tuple[int, str, str]], data: st.DataObject
) -> None:
    """Homogeneity person by person; background knowledge never claims more than is true of the people left."""
    who = data.draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
    table = table_of(rows, who=who)
    levels = {"a": data.draw(st.integers(0, 3)), "b": data.draw(st.integers(0, 1))}
    try:
        release = jali.generalize(table, [jali.KAnonymity(1), jali.DistinctDiversity(1)], levels=levels)
    except (InfeasibleError, InputError):
        assume(False)
        raise
    width = {0: 1, 1: 2, 2: 4, 3: 8}[levels["a"]]
    groups: dict[Any, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for (a, b, s), person in zip(rows, who, strict=True):
        groups[a // width, b if levels["b"] == 0 else "*"][person].add(s)
    least = data.draw(st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(1)]))
    gallery = jali.attacks(release, table, threshold=least)
    exposed, right = oracle.homogeneous_people(list(groups.values()), least)
    assert (gallery["homogeneity"].exposed, gallery["homogeneity"].people) == (exposed, len(set(who)))
    assert gallery["homogeneity"].right in right
    most = oracle.most_ruled_out(list(groups.values()), least)
    assert gallery["background knowledge"].exposed is not None
    assert gallery["background knowledge"].exposed <= most
    assert gallery["algorithm"].exposed is None
    assert ("several rows" in gallery["algorithm"].notes[0]) == (len(set(who)) < len(who))


def test_beliefs_are_said_to_be_upper_bounds_where_people_are_not_counted_by_value() -> None:
    """No promise is about the values, so nobody is told how many people have each: two rows may be one person's."""
    table = table_of([(0, "x", "p"), (0, "x", "p"), (0, "x", "q")], who=[1, 1, 2])
    release = jali.generalize(table, [jali.KAnonymity(1)], levels={"a": 3, "b": 1})
    gallery = jali.attacks(release, table)
    for name in ("homogeneity", "background knowledge", "linkage"):
        assert any("at most these" in note for note in gallery[name].notes)
    counted = jali.generalize(table, [jali.KAnonymity(1), jali.DistinctDiversity(1)], levels={"a": 3, "b": 1})
    assert jali.attacks(counted, table)["homogeneity"].notes == ()


def test_one_row_for_each_person_is_attacked_as_if_no_person_were_named() -> None:
    random = np.random.default_rng(3)
    for _ in range(4):
        rows = [(int(a), b, s) for a, b, s in zip(
            random.integers(0, 8, 20), random.choice(list("xyz"), 20), random.choice(list("pqr"), 20), strict=True,
        )]  # fmt: skip
        plain, named = table_of(rows), table_of(rows, who=list(range(20)))
        levels = {"a": 2, "b": 1}
        galleries = [
            jali.attacks(jali.generalize(t, [jali.KAnonymity(2)], levels=levels), t, threshold=Fraction(1, 2))
            for t in (plain, named)
        ]
        for name in ("homogeneity", "background knowledge", "linkage"):
            one, other = (gallery[name] for gallery in galleries)
            assert (one.exposed, one.right, one.figures) == (other.exposed, other.right, other.figures)


@pytest.mark.parametrize("kind", ["angel", "marginals", "generalize", "recode"])
def test_no_kind_of_release_is_refused(kind: str) -> None:
    rows = [(i % 8, "xyz"[i % 3], "pqr"[(i * 7) % 3]) for i in range(24)]
    table = table_of(rows)
    release = {
        "angel": lambda: jali.angelize(table, [jali.FrequencyDiversity(1.5)], k=3),
        "marginals": lambda: jali.marginals(table, [jali.KAnonymity(2)]),
        **{name: (lambda make=make: make(table)) for name, make in MAKERS.items()},
    }[kind]()
    for attack in jali.attacks(release, table).attacks:
        assert attack.exposed is not None or attack.notes


def test_a_release_without_a_sensitive_column_gives_away_presence_alone() -> None:
    """Nobody has a value to learn; who is in the table is still looked up beside a public one."""
    table = jali.table(pa.table({"a": [1, 1, 2, 2, 3, 3], "b": ["x"] * 6}), quasi=["a", "b"])
    release = jali.generalize(table, [jali.KAnonymity(2)])
    alone = jali.attacks(release, table)
    assert [attack.name for attack in alone.attacks] == ["algorithm", "presence"]
    assert alone["algorithm"].exposed == 0
    assert "no sensitive column" in repr(alone)
    beside = jali.attacks(release, table, public=pa.table({"a": [1, 1, 2, 2, 3, 3, 9], "b": ["x"] * 7}))
    assert (beside["presence"].people, beside["presence"].exposed) == (7, 7)


# -- what the published tables tell without the original -----------------------------------------------------------


WAYS = {
    "lattice": lambda table, data: jali.generalize(
        table,
        [jali.KAnonymity(2)],
        suppress=data.draw(st.sampled_from([0, 0.3])),
        show=data.draw(st.sampled_from(["taxonomy", "set-exact", "pdf"])),
    ),
    "partition": lambda table, data: jali.partition(table, [jali.KAnonymity(2)]),
    "recode": lambda table, data: jali.recode(table, [jali.KAnonymity(2)]),
    "buckets": lambda table, data: jali.anatomize(table, [jali.FrequencyDiversity(1.2)]),
    "angel": lambda table, data: jali.angelize(
        table, [jali.FrequencyDiversity(1.2)], k=2, marginals=data.draw(st.sampled_from([[], [["a", "s"]]]))
    ),
    "marginals": lambda table, data: jali.marginals(table, [jali.KAnonymity(2)], search="greedy"),
}


@pytest.mark.parametrize("way", WAYS)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xy"), st.sampled_from("pqrt")), min_size=6,
                     max_size=24), data=st.data())  # fmt: skip
def test_what_published_tables_tell_of_an_attack_is_what_the_attack_finds(
    way: str, rows: list[tuple[int, str, str]], data: st.DataObject
) -> None:
    """Whenever they tell it: for groups and buckets always, but for linkage where somebody can be in several."""
    table = table_of(rows)
    try:
        release = WAYS[way](table, data)
        gallery = jali.attacks(release, table, cases=0)
    except (InfeasibleError, InputError):
        assume(False)
        raise
    audit = jali.audit(release)
    for name in EXPOSING:
        told, found = exposed_by_groups(name, audit, release), gallery[name]
        assert told is not None or way in ("angel", "marginals") or (name == "linkage" and way != "lattice")
        if told is not None:
            assert told == pytest.approx((found.exposed or 0) / found.people), name
            event(f"{way}, {name}: {'some' if told else 'nobody'}")
