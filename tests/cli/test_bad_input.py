"""Bad input, item by item as the foundation issue lists it: one clear line, exit code 2, nothing written."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

Edit = Callable[[Any], object]


def job(old: str, new: str) -> Edit:
    return lambda ward: ward.edit("job.toml", old, new)


def data(old: str, new: str) -> Edit:
    return lambda ward: ward.edit("patients.csv", old, new)


def principle(text: str) -> Edit:
    """The job with one principle."""

    def edit(ward: Any) -> None:
        path = ward / "job.toml"
        head = path.read_text(encoding="utf-8").split("[[principles]]")[0]
        path.write_text(f"{head}[[principles]]\n{text}\n", encoding="utf-8")

    return edit


def only_lines(count: int) -> Edit:
    """The table with its first lines only."""

    def edit(ward: Any) -> None:
        lines = (ward / "patients.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        (ward / "patients.csv").write_text("".join(lines[:count]), encoding="utf-8")

    return edit


def latin(ward: Any) -> None:
    path = ward / "patients.csv"
    path.write_bytes(path.read_bytes().replace(b"Indian", b"Indi\xe9n"))


def filled_output(ward: Any) -> None:
    (ward / "out").mkdir()
    (ward / "out" / "mine.txt").write_text("mine", encoding="utf-8")


CASES: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "missing file": (job("patients.csv", "nobody.csv"), ("nobody.csv", "check the path")),
    "missing taxonomy": (job("nationality.csv", "nations.csv"), ("nations.csv", "check the path")),
    "input is a folder": (job('"patients.csv"', '"."'), ("is a folder",)),
    "unknown column": (job("zip =", "zpi ="), ('no column "zpi"', 'did you mean "zip"?')),
    "unknown sensitive column": (job("condition =", "conditions ="), ('"conditions"', 'did you mean "condition"?')),
    "a column in two roles": (job("condition = true", "condition = true\nage = true"), ('"age"', "one role")),
    "no quasi-identifier": (
        lambda ward: ward.edit("job.toml", job_quasi(ward), ""),
        ("no quasi-identifier", "name what an attacker may know"),
    ),
    "no sensitive column": (job("condition = true\n", ""), ("EntropyDiversity", "sensitive")),
    "empty table": (only_lines(1), ("empty", "at least one row")),
    "empty file": (only_lines(0), ("empty", "header")),
    "publishing one row": (only_lines(2), ("one person cannot be published",)),
    "k below 1": (principle('name = "KAnonymity"\nk = 0'), ("k must be a whole number of at least 1", "got 0")),
    "k not whole": (principle('name = "KAnonymity"\nk = 2.5'), ("k must be a whole number",)),
    "k larger than the table": (principle('name = "KAnonymity"\nk = 13'), ("k = 13 is larger than the table",)),
    "l larger than the number of values": (
        principle('name = "DistinctDiversity"\nl = 4'),
        ("l = 4 is larger than the number of values", '"condition"', "at most 3"),
    ),
    "t above 1": (principle('name = "TCloseness"\nt = 1.5'), ("t must be", "got 1.5")),
    "t below 0": (principle('name = "TCloseness"\nt = -0.1'), ("t must be", "got -0.1")),
    "unknown principle": (principle('name = "KAnonimity"\nk = 2'), ("KAnonimity", 'did you mean "KAnonymity"?')),
    "unknown key at the top": (job("input =", "imput ="), ('unknown key "imput"', 'did you mean "input"?')),
    "unknown key in a hierarchy": (job("bands", "band"), ('unknown key "band"', 'did you mean "bands"?', "age")),
    "unknown key of a principle": (principle('name = "KAnonymity"\nkk = 2'), ('"kk"', 'did you mean "k"?')),
    "unknown key of the method": (job("[sens", "[generalize]\nmetrik = 1\n[sens"), ('"metrik"', '"metric"')),
    "unknown metric": (job("[sensitive]", '[generalize]\nmetric = "kk"\n[sensitive]'), ('"kk"',)),
    "suppress above 1": (job("[sensitive]", "[generalize]\nsuppress = 5\n[sensitive]"), ("suppress", "got 5")),
    "unknown level": (job("[sensitive]", "[generalize]\nlevels = { zip = 9 }\n[sensitive]"), ('"zip"', "0 to 5")),
    "invalid TOML": (job('zip = "mask"', "zip = mask"), ("job.toml", "not valid TOML", "line 5")),
    "bad UTF-8": (latin, ("patients.csv", "row 5", "not valid utf-8", "--encoding", "encoding =")),
    "duplicate column names": (data("name,zip,age", "name,zip,zip"), ('"zip" occurs more than once',)),
    "output folder not empty": (filled_output, ("out is not empty", "--overwrite")),
    "output is a file": (job('"out"', '"patients.csv"'), ("is a file",)),
    "no output": (job('output = "out"\n', ""), ("no output", "-o FOLDER")),
    "widths that do not nest": (job("[5, 10, 20]", "[5, 12]"), ("age", "multiple of the one before", "5, 12")),
    "numbers expected": (job('zip = "mask"', 'zip = "mask"\nname = { bands = 5 }'), ('"name"', "needs numbers")),
    "no such encoding": (job("[quasi]", 'encoding = "klingon"\n[quasi]'), ("klingon",)),
    "a long separator": (job("[quasi]", 'separator = ";;"\n[quasi]'), ("one character",)),
    "rows of another width": (data("Ann,", "Ann,Ann,"), ("row 2 has 6 fields",)),
}  # fmt: skip


def job_quasi(ward: Any) -> str:
    """The job's [quasi] section."""
    text = (ward / "job.toml").read_text(encoding="utf-8")
    return str(text[text.index("[quasi]") : text.index("[sensitive]")])


def everything(ward: Any) -> dict[str, bytes]:
    """Each file below the folder with its content."""
    return {str(p.relative_to(ward.folder)): p.read_bytes() for p in sorted(ward.folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line_and_exit_code_2(ward: Any, refused: Any, originals: list[str], case: str) -> None:
    """The line names what is wrong, shows no original value, and nothing on disk has changed."""
    edit, words = CASES[case]
    edit(ward)
    before = everything(ward)
    line = refused(ward.jali("publish", "job.toml"))
    assert all(word in line for word in words), line
    assert not [value for value in originals if value in line], line
    assert everything(ward) == before


UNCOVERED: dict[str, tuple[Edit, tuple[str, ...], str]] = {
    "a value that the taxonomy lacks": (
        lambda ward: ward.edit("nationality.csv", "Japanese;Asia;*\n", ""),
        ("nationality.csv", '"nationality"', "row 3"),
        "Japanese",
    ),
    "a value outside the declared bounds": (
        job("low = 0", "low = 22"),
        ('"age"', "row 3", "low=22"),
        "21",
    ),
    "a hierarchy that is no tree": (
        lambda ward: (ward / "nationality.csv").write_text(
            "Russian;Old;Europe;*\nAmerican;New;America;*\nJapanese;Old;Asia;*\nIndian;Old;Asia;*\n", encoding="utf-8"
        ),
        ('"nationality"', "not a tree", "level 1"),
        "Old",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCOVERED)
def test_original_values_are_shown_only_when_asked_for(ward: Any, refused: Any, case: str) -> None:
    """Without --show-values a message has column and row; with it, the value too."""
    edit, words, value = UNCOVERED[case]
    edit(ward)
    line = refused(ward.jali("publish", "job.toml"))
    assert all(word in line for word in words), line
    assert value not in line.replace("low=22", "")
    shown = refused(ward.jali("publish", "job.toml", "--show-values"))
    assert value in shown
    assert "out" not in ward.names()
    for command in (["minimal", "job.toml"], ["hierarchy", "job.toml", "age"]):
        assert value in refused(ward.jali(*command, "--show-values"))


def test_what_cannot_be_met_is_exit_code_1(ward: Any, refused: Any) -> None:
    """An entropy that the whole table does not reach is no wrong input; the line says what is reached."""
    principle('name = "EntropyDiversity"\nl = 2.99')(ward)
    line = refused(ward.jali("publish", "job.toml"), code=1)
    assert "cannot be met: the whole table reaches 2.9" in line
    assert "out" not in ward.names()


COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "no command": (["publis"], ('no command "publis"', 'did you mean "publish"?')),
    "no such option": (["publish", "--fast"], ("--fast", "jali publish --help")),
    "no such option of jali": (["--fast"], ("--fast",)),
    "no argument": (["publish"], ("JOB.toml",)),
    "no job": (["publish", "jobs.toml"], ("no job file jobs.toml", "jali init")),
    "a folder as job": (["publish", "."], ("cannot be read",)),
    "a table as job": (["publish", "patients.csv"], ("not valid TOML", "line 1")),
    "another format": (["publish", "job.toml", "--format", "xlsx"], ("xlsx", "csv", "parquet")),
    "audit of nothing": (["audit", "nowhere"], ("no release in nowhere",)),
    "audit of a folder without release": (["audit", "."], ("no release in .",)),
    "audit of a file without columns": (["audit", "patients.csv"], ("--quasi",)),
    "audit of a release with columns": (["audit", "out", "--quasi", "age"], ("--quasi",)),
    "audit with an unknown column": (["audit", "patients.csv", "--quasi", "agee"], ("agee", 'did you mean "age"?')),
    "audit with a column twice": (["audit", "patients.csv", "--quasi", "age", "--sensitive", "age"], ("one role",)),
    "measure without original": (["measure", "out"], ("--original", "--job")),
    "measure against nothing": (["measure", "out", "--original", "nobody.csv"], ("nobody.csv",)),
    "measure against another table": (["measure", "out", "--original", "job.toml"], ('no column "zip"',)),
    "measure over an unknown domain": (["measure", "out", "--job", "job.toml", "--domain", "x"], ("--domain",)),
    "query of nothing": (["query", "nowhere", "age > 3"], ("no release in nowhere",)),
    "query without condition": (["query", "out"], ("CONDITION",)),
    "query with an unknown column": (["query", "out", "agee > 3"], ("agee", "age")),
    "query that is no condition": (["query", "out", "age >"], ("condition",)),
    "repair without output": (["repair", "out", "job.toml"], ("--output",)),
    "repair over something": (["repair", "out", "job.toml", "-o", "out"], ("not empty",)),
    "attack without original": (["attack", "out"], ("--original", "--job")),
    "attack with a threshold of nothing": (
        ["attack", "out", "--original", "patients.csv", "--threshold", "0"], ("threshold",)
    ),
    "attack with a threshold in words": (
        ["attack", "out", "--original", "patients.csv", "--threshold", "high"], ("threshold must be a number",)
    ),
    "attack with half a case": (["attack", "out", "--original", "patients.csv", "--cases", "0.5"], ("cases",)),
    "attack with a public file that is not there": (
        ["attack", "out", "--original", "patients.csv", "--public", "voters.csv"], ("voters.csv",)
    ),
    "attack on an unknown column": (
        ["attack", "out", "--original", "patients.csv", "--sensitive", "cond"], ('no sensitive column "cond"',)
    ),
    "inject without output": (["inject", "out", "job.toml"], ("--output",)),
    "inject into nothing": (["inject", "nowhere", "job.toml", "-o", "more"], ("no release in nowhere",)),
    "beliefs without population": (["beliefs", "out"], ("--population",)),
    "beliefs with one rho": (["beliefs", "out", "--population", "patients.csv", "--rho1", "0.1"], ("--rho2",)),
    "beliefs with rhos upside down": (
        ["beliefs", "out", "--population", "patients.csv", "--rho1", "0.5", "--rho2", "0.1"], ("ρ1",)
    ),
    "beliefs of an unknown column": (
        ["beliefs", "out", "--population", "patients.csv", "--sensitive", "cond"], ('no column "cond"', "condition")
    ),
    "hierarchy of an unknown column": (["hierarchy", "job.toml", "agee"], ("agee", 'did you mean "age"?')),
    "hierarchy of a sensitive column": (["hierarchy", "job.toml", "condition"], ("no hierarchy",)),
    "hierarchy into a folder": (["hierarchy", "job.toml", "age", "-o", "out"], ("is a folder",)),
    "hierarchy into nowhere": (["hierarchy", "job.toml", "age", "-o", "a/b/c.csv"], ("no folder",)),
    "init of nothing": (["init", "nobody.csv"], ("no file nobody.csv",)),
    "demo of nobody": (["demo", "--rows", "0"], ("--rows",)),
    "demo of too few": (["demo", "--rows", "5"], ("k = 10 is larger than the table",)),
}  # fmt: skip


@pytest.mark.parametrize("case", COMMANDS)
def test_a_command_that_is_called_wrongly(published: Any, refused: Any, originals: list[str], case: str) -> None:
    """Every command keeps to the same rule: one line, exit code 2, no original value, nothing written."""
    arguments, words = COMMANDS[case]
    before = everything(published)
    line = refused(published.jali(*arguments))
    assert all(word in line for word in words), line
    assert not [value for value in originals if value in line], line
    assert everything(published) == before


def test_a_release_that_was_changed_is_refused(published: Any, refused: Any) -> None:
    """Every command that reads a release checks its digests first."""
    published.edit("out/data.csv", "Cancer", "Flu")
    for command in (["audit", "out"], ["query", "out", "age > 30"], ["measure", "out", "--original", "patients.csv"]):
        assert "was changed after it was published" in refused(published.jali(*command))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format_version": 1, "files": {}}', '{"format_version": 99, "files": {}}']
)
def test_a_manifest_that_is_none_is_refused(published: Any, refused: Any, text: str) -> None:
    """Whatever stands in manifest.json, the answer is a line."""
    (published / "out" / "manifest.json").write_text(text, encoding="utf-8")
    refused(published.jali("audit", "out"))


def test_bad_input_from_a_real_process(ward: Any) -> None:
    """The same through the installed entry point: exit code 2, one line, no traceback."""
    ward.edit("job.toml", "input =", "imput =")
    done = ward.process("publish", "job.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'jali: error: job.toml: unknown key "imput"; did you mean "input"?\n'


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may read and write everything")
def test_no_permission(ward: Any, refused: Any) -> None:
    """A table that may not be read and a folder that may not be written are named, and nothing is left behind."""
    (ward / "closed").mkdir()
    (ward / "closed").chmod(0o500)
    assert "closed" in refused(ward.jali("publish", "job.toml", "-o", "closed/out"))
    assert os.listdir(ward / "closed") == []
    (ward / "patients.csv").chmod(0)
    assert "no permission" in refused(ward.jali("publish", "job.toml"))


def test_a_file_without_a_header_does_not_give_its_first_person_away(ward: Any, refused: Any) -> None:
    """Where the first line is a person, an unknown column must not be answered with what stands there."""
    (ward / "rows.csv").write_text("Umeko,21,Cancer\nBob,31,Flu\n", encoding="utf-8")
    promises = '[[principles]]\nname = "KAnonymity"\nk = 2\n'
    (ward / "rows.toml").write_text(
        f'input = "rows.csv"\noutput = "new"\nquasi = ["age"]\n{promises}', encoding="utf-8"
    )
    line = refused(ward.jali("publish", "rows.toml"))
    assert not {"Umeko", "21", "Cancer"} & set(line.replace('"', " ").split())
