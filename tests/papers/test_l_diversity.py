"""The l-diversity paper, digit for digit. What needs the real Adult table is marked `paper`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import jali
from jali.releases.generalized import Generalized
from jali.reproduce import examples, l_diversity, run

QUASI = ("age", "sex", "race", "marital-status", "education")

# Transcribed from the paper: affected / all minimal tables, average groups, average tuples.
PRINTED_9 = """
2  8/8   7.38 558.00
5  11/12 3.58 381.58
10 10/12 1.75 300.42
15 7/8   2.12 317.25
20 8/10  1.20 228.20
30 7/10  0.90 215.40
50 5/5   1.00 202.80
"""
PRINTED_11 = """
2  8/8   20.50 13574.5
5  12/12 12.67 13328.3
10 12/12 7.83  10796.5
15 8/8   8.88  12009.4
20 10/10 7.10  11041.0
30 10/10 5.50  11177.0
50 5/5   5.80  8002.0
"""

# Computed independently with the right labels: tables, groups, people at 100 %, groups and people at 95 %.
RIGHT = {
    2: ("8/8", "5.75", "314.12", "14.62", "10425.9"),
    10: ("8/12", "1.17", "137.83", "5.42", "7679.2"),
    50: ("3/5", "0.60", "84.80", "3.80", "4906.0"),
}

FIGURE_2 = """
130**|< 30|*|Heart Disease
130**|< 30|*|Heart Disease
130**|< 30|*|Viral Infection
130**|< 30|*|Viral Infection
1485*|≥ 40|*|Cancer
1485*|≥ 40|*|Heart Disease
1485*|≥ 40|*|Viral Infection
1485*|≥ 40|*|Viral Infection
130**|3*|*|Cancer
130**|3*|*|Cancer
130**|3*|*|Cancer
130**|3*|*|Cancer
"""
FIGURE_4 = """
1305*|≤ 40|*|Heart Disease
1305*|≤ 40|*|Viral Infection
1305*|≤ 40|*|Cancer
1305*|≤ 40|*|Cancer
1485*|> 40|*|Cancer
1485*|> 40|*|Heart Disease
1485*|> 40|*|Viral Infection
1485*|> 40|*|Viral Infection
1306*|≤ 40|*|Heart Disease
1306*|≤ 40|*|Viral Infection
1306*|≤ 40|*|Cancer
1306*|≤ 40|*|Cancer
"""


def rows(printed: str) -> dict[int, tuple[str, ...]]:
    return {int(k): tuple(cells) for k, *cells in map(str.split, printed.strip().splitlines())}


def published(release: Generalized) -> Counter[str]:
    columns = ("zip", "age", "nationality", "condition")
    return Counter("|".join(row[c] for c in columns) for row in release.frame("arrow").to_pylist())


# -- worked examples: no data needed ---------------------------------------------------------------------------


def test_figure_2_is_a_minimal_4_anonymous_table_that_gives_cancer_away() -> None:
    """Published from Figure 1 it is the printed table; all four people of one group have cancer."""
    patients = examples.inpatients()
    release = jali.generalize(patients, jali.KAnonymity(4), levels=examples.FIGURE_2)
    assert published(release) == Counter(FIGURE_2.strip().splitlines())
    assert examples.FIGURE_2 in [dict(node.levels) for node in jali.minimal(patients, jali.KAnonymity(4))]
    found = jali.audit(release)
    assert (found.k, found.distinct_l) == (4, 1)
    assert (found.homogeneous.groups, found.homogeneous.people) == (1, 4)
    assert examples.same_condition(release) == ["Cancer"]


def test_figure_4_is_the_one_3_diverse_table_and_2_8_diverse_by_entropy() -> None:
    """The search finds the printed table, whatever the metric; its entropy diversity is 2√2."""
    patients = examples.inpatients()
    release = jali.generalize(patients, jali.DistinctDiversity(3))
    assert published(release) == Counter(FIGURE_4.strip().splitlines())
    assert [dict(node.levels) for node in jali.minimal(patients, jali.DistinctDiversity(3))] == [examples.FIGURE_4]
    found = jali.audit(release)
    assert (found.k, found.distinct_l, found.homogeneous.groups) == (4, 3, 0)
    assert found.entropy_l == pytest.approx(2 * 2**0.5, abs=1e-12)
    assert jali.generalize(patients, jali.EntropyDiversity(2.8)).levels == examples.FIGURE_4


def test_bayes_optimal_privacy_is_not_monotone() -> None:
    """Theorem 5.1: 0.3 → 0.5 and no breach after T; > 0.59 and a (0.31, 0.58)-breach after its generalization."""
    itself, merged = examples.theorem_5_1()
    beliefs = {(row["q"], row["s"]): (row["prior"], row["posterior"]) for row in itself.frame("arrow").to_pylist()}
    for cell, expected in {
        ("q1", "s1"): (0.3, 0.5),
        ("q1", "s2"): (0.7, 0.5),
        ("q2", "s1"): (0.5, 0.7),
        ("q2", "s2"): (0.5, 0.3),
    }.items():
        assert beliefs[cell] == pytest.approx(expected, abs=1e-12)
    assert itself.breaches(0.31, 0.58).num_rows == 0
    after = {(row["q"], row["s"]): row["posterior"] for row in merged.frame("arrow").to_pylist()}
    assert after["q1", "s1"] == pytest.approx(13.5 / (13.5 + 16 * 0.35 / 0.6), abs=1e-12)
    assert after["q1", "s1"] > 0.59
    breached = {(row["q"], row["s"]) for row in merged.breaches(0.31, 0.58).to_pylist()}
    assert ("q1", "s1") in breached


def test_the_run_through_algorithm_1() -> None:
    """The log-entropic means are as printed, and the adjusted entropy is 1.772971168390 nats."""
    means = [examples.log_entropic_mean(counts) for counts in ((3, 4), (2, 3, 4), (2, 3, 3, 4))]
    assert [f"{mean:.3f}" for mean in means] == ["1.263", "1.136", "1.127"]
    assert examples.adjusted_entropy() == pytest.approx(1.772971168390, abs=5e-13)


# -- the Adult table --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def attacked(adult_path: Path) -> dict[str, dict[int, tuple[tuple[str, ...], tuple[str, ...]]]]:
    """Figures 9 and 11 as printed, by reading of the labels and k."""
    found = {}
    for labels in ("paper", "right"):
        table = jali.datasets.adult(adult_path, quasi=QUASI, sensitive=["salary-class"], labels=labels)
        found[labels] = {}
        for k in l_diversity.ATTACK_KS:
            same, nearly = l_diversity.homogeneity(table, k)
            found[labels][k] = same.shown(2), nearly.shown(1)
    return found


@pytest.mark.paper
def test_figure_9_digit_for_digit(attacked: dict[str, dict[int, tuple[tuple[str, ...], ...]]]) -> None:
    """With the paper's reading of the labels every digit of the homogeneity attack is as printed."""
    assert {k: same for k, (same, _) in attacked["paper"].items()} == rows(PRINTED_9)


@pytest.mark.paper
def test_figure_11_digit_for_digit(attacked: dict[str, dict[int, tuple[tuple[str, ...], ...]]]) -> None:
    """With the paper's reading of the labels every digit of the 95 % attack is as printed."""
    assert {k: nearly for k, (_, nearly) in attacked["paper"].items()} == rows(PRINTED_11)


@pytest.mark.paper
def test_the_attack_with_the_right_labels(attacked: dict[str, dict[int, tuple[tuple[str, ...], ...]]]) -> None:
    """With the labels read right it is the independently computed one, and never reaches more people."""
    for k, expected in RIGHT.items():
        same, nearly = attacked["right"][k]
        assert (*same, *nearly[1:]) == expected
    for k, right in attacked["right"].items():
        paper = attacked["paper"][k]
        assert all(float(r[2]) < float(p[2]) for r, p in zip(right, paper, strict=True))


@pytest.mark.paper
def test_the_two_readings_of_the_labels(adult_path: Path) -> None:
    """11,208 people are above 50K; read as in the paper, 7,508."""
    for labels, above in (("right", 11_208), ("paper", 7_508)):
        column = jali.datasets.adult(adult_path, sensitive=["salary-class"], labels=labels)["salary-class"]
        assert column.values.to_pylist() == ["<=50K", ">50K"]
        assert int(column.codes.sum()) == above


@pytest.mark.paper
def test_occupation_alone_is_entropy_10_57_diverse(adult_path: Path) -> None:
    """exp(entropy) is 10.5669; recursive (3, 11) holds and (3, 12) cannot be met, and the error says so."""
    table = jali.datasets.adult(adult_path, quasi=["sex"])
    found = jali.audit(l_diversity.suppressed(table))
    assert f"{found.entropy_l:.4f}" == "10.5669"
    assert found.recursive_c[11] < 3 <= found.recursive_c[12]
    assert jali.generalize(table, jali.RecursiveDiversity(3, 11)).levels == {"sex": 1}
    with pytest.raises(jali.InfeasibleError, match="12"):
        jali.generalize(table, jali.RecursiveDiversity(3, 12))
    with pytest.raises(jali.InfeasibleError, match=r"10\.57"):
        jali.generalize(table, jali.EntropyDiversity(12))


@pytest.mark.paper
def test_the_two_counts_by_age(adult_path: Path) -> None:
    """In the text's own tens, 81-90 and 31-40, there are 114 and 12,291 people."""
    ages = l_diversity.by_age(adult_path)
    assert (ages["[81, 90]"], ages["[31, 40]"]) == (114, 12_291)
    assert sum(ages.values()) == 45_222


@pytest.mark.paper
def test_kl_of_plain_generalizations(adult_path: Path) -> None:
    """Under 6-anonymity and entropy 6 there are three minimal tables; their KL, and that of nothing, are known."""
    names = ("race", "sex", "age", "marital-status")
    table = jali.datasets.adult(adult_path, quasi=names)
    promise = jali.KAnonymity(6) & jali.EntropyDiversity(6)
    known = {(0, 0, 4, 1): 1.586611, (1, 1, 4, 0): 2.219927, (1, 1, 2, 1): 2.426097}
    found = {tuple(node.levels[name] for name in names): node.kl for node in jali.minimal(table, promise)}
    assert found == pytest.approx(known, abs=1e-6)
    for levels, kl in (known | {(1, 1, 4, 2): 2.954251}).items():
        release = jali.generalize(table, promise, levels=dict(zip(names, levels, strict=True)))
        assert jali.measure(release, table).kl == pytest.approx(kl, abs=1e-6)


@pytest.mark.paper
def test_more_privacy_never_costs_less(adult_path: Path) -> None:
    """Figures 16 and 20: along k = l the least cost only grows; diversity costs at least anonymity, Base the most."""
    figure = l_diversity.cost(adult_path, "figure-16")
    costs = {(row[0], row[1]): [float(cell) for cell in row[2:]] for row in figure.rows}  # none is missing here
    for (title, _), along in costs.items():
        assert along == sorted(along)
        assert all(a >= b for a, b in zip(along, costs[title, "k-anonymity"], strict=True))
    figure = l_diversity.divergence(adult_path, "figure-20", sampled=False)
    for _, _, base, *along in figure.rows:
        assert along == sorted(along)
        assert along[-1] <= base + 1e-9
    assert figure.rows[3][2] == pytest.approx(2.954251, abs=1e-6)  # the Base of age, sex, race, marital-status


@pytest.mark.paper
def test_figure_13_goes_to_eight_quasi_identifiers(adult_path: Path) -> None:
    """The first eight attributes of Figure 7 span 4,320 nodes, and every setting has minimal tables."""
    figure = l_diversity.figure_13(adult_path)
    assert [row[:3] for row in figure.rows][-1] == ("8", "salary-class", 4320)
    assert all(seconds > 0 and found > 0 for row in figure.rows for seconds, found in (row[3:5], row[5:7]))


@pytest.mark.paper
def test_arx_finds_the_same_optimum(adult_path: Path) -> None:
    """By ARX's loss the best full-domain table for k = 5 and for k = 10 is the one that ARX 3.9.2 finds."""
    folder = adult_path.parent / "arx-hierarchies"
    if not folder.is_dir():
        pytest.skip("no arx-hierarchies beside the Adult table")
    best = {
        "sex": 0, "age": 4, "race": 0, "marital-status": 1, "education": 3, "native-country": 2, "workclass": 2,
    }  # fmt: skip
    quasi = {name: jali.taxonomy(folder / f"{name}.csv") for name in best}
    table = jali.read(adult_path, quasi=quasi, sensitive=["occupation"], domain="present").head(30_162)
    for k in (5, 10):
        release = jali.generalize(table, jali.KAnonymity(k), metric="loss")
        assert release.levels == best
        assert release.groups.num_rows == 20


@pytest.mark.paper
def test_the_whole_report_is_written(adult_path: Path, tmp_path: Path) -> None:
    """`run` gives every figure that can be had, says which cannot, and writes tables and plots."""
    report = run("l-diversity", adult=adult_path, out=tmp_path, quick=True)
    text = repr(report)
    assert text.count("every digit is as printed") == 2
    assert "Lands End" in text
    assert "quick" in text
    written = {path.name for path in tmp_path.iterdir()}
    assert {f"{figure.name}.csv" for figure in report.figures} | {"report.md"} <= written
    plots = {"figure-13", "figure-15", "figure-16", "figure-19", "figure-20"}
    assert {f"{name}.{kind}" for name in plots for kind in ("svg", "png")} <= written
