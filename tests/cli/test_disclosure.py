"""jali disclosure: numbers, sentences and pictures from a saved release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import jali


def test_disclosure_prints_what_python_computes(published: Any) -> None:
    """The same curve, as a table and as JSON."""
    found = jali.disclosure.curve(Path("out"), range(4))
    shown = published.jali("disclosure", "out", "-k", "0..3")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout == repr(found) + "\n"
    assert json.loads(published.jali("disclosure", "out", "-k", "0..3", "--json").stdout) == found.to_dict()


@pytest.mark.parametrize(("asked", "ks"), [("2", [2]), ("1,3", [1, 3]), ("0..2", [0, 1, 2]), (" 1 .. 2 ", [1, 2])])
def test_numbers_of_facts_are_one_several_or_a_range(published: Any, asked: str, ks: list[int]) -> None:
    """As people write them."""
    assert json.loads(published.jali("disclosure", "out", "-k", asked, "--json").stdout)["k"] == ks


def test_the_witness_and_an_attacker_who_knows_it_agree(published: Any) -> None:
    """The sentences end with the probability that the curve has; the same knowledge from a file gives it again."""
    result = json.loads(published.jali("disclosure", "out", "-k", "1", "--witness", "--json").stdout)
    assert result["witness"]["probability"] == pytest.approx(result["implications"][0])
    worst = jali.disclosure.witness(Path("out"), 1)
    (one,) = worst.knowledge
    atoms = [[[a.person.bucket, a.person.index], a.value] for a in (one.given[0], one.then[0])]
    Path("facts.json").write_text(json.dumps([{"if": [atoms[0]], "then": [atoms[1]]}]), encoding="utf-8")
    told = json.loads(published.jali("disclosure", "out", "--knowledge", "facts.json", "--json").stdout)["risk"]
    assert told["exact"]
    assert told["probability"] >= worst.probability - 1e-12
    text = published.jali("disclosure", "out", "--witness", "--knowledge", "facts.json").stdout
    assert "An attacker who knows this is sure to" in text
    assert "With the knowledge of facts.json" in text


def test_what_the_witness_wrote_is_knowledge(published: Any) -> None:
    """The whole output of the command, as it stands, is a file for --knowledge."""
    written = published.jali("disclosure", "out", "-k", "2", "--witness", "--json").stdout
    Path("worst.json").write_text(written, encoding="utf-8")
    told = json.loads(published.jali("disclosure", "out", "--knowledge", "worst.json", "--json").stdout)["risk"]
    assert told["probability"] == pytest.approx(json.loads(written)["witness"]["probability"], abs=1e-12)


def test_the_worst_facts_are_as_many_as_are_printed(published: Any) -> None:
    """Also where more would add nothing."""
    for asked in ("1", "40"):
        text = published.jali("disclosure", "out", "-k", asked, "--witness").stdout
        heading, *lines = text.split("The worst ")[1].splitlines()
        many = len(lines) - 1  # the last says what follows
        assert heading.split(";")[0] == f"{many} fact{'s' * (many != 1)}"
        assert ("more would add nothing" in heading) == (many < int(asked))


@pytest.mark.parametrize("name", ["curve.svg", "curve.png", "curve.pdf", "curve.gif", "curve.jpg"])
def test_the_curve_is_drawn(published: Any, name: str) -> None:
    """In the form that the file's name says."""
    result = published.jali("disclosure", "out", "--plot", name)
    assert result.exit_code == 0, result.stderr
    assert Path(name).stat().st_size > 1000
    assert f"Saved in {name}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["out", "-k", "-1"], "-k is no number of facts"),
        (["out", "-k", "3..1"], "write 3, 0..13 or 1,3,5"),
        (["out", "-k", "many"], "-k is no number of facts"),
        (["out", "-k", "0..99999999999"], "-k asks for too many numbers of facts"),
        (["out", "--sensitive", "conditon"], 'no sensitive column "conditon"'),
        (["out", "--knowledge", "none.json"], "cannot read none.json"),
        (["out", "--plot", "curve"], "ending says its form"),
        (["nowhere"], "nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    published: Any, refused: Any, arguments: list[str], message: str
) -> None:
    """And nothing is drawn."""
    assert message in refused(published.jali("disclosure", *arguments))
    assert not Path("curve").exists()
