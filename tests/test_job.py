"""A job is the same as the Python arguments, and whatever is wrong in it is one line that says where."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Literal

import pytest

import jali
from jali.errors import HierarchyError, InputError
from jali.job import METHODS, Job, requirement, section_keys
from jali.sources.tables import read

ROWS = "zip;age;born;sex;disease;ward;id;w\n" + "".join(
    f"0{1000 + i % 3};{20 + i};19{40 + i}-05-17;{'fm'[i % 2]};{('flu', 'cold')[i // 2 % 2]};A;{i};1.5\n"
    for i in range(12)
)
SMALL = 'input = "people.csv"\nquasi = ["age"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table and a taxonomy."""
    (tmp_path / "people.csv").write_text(ROWS, encoding="latin-1")
    (tmp_path / "sex.csv").write_text("f;*\nm;*\n", encoding="utf-8")
    return tmp_path


def load(folder: Path, text: str) -> Job:
    (folder / "job.toml").write_text(text, encoding="utf-8")
    return Job.load(folder / "job.toml")


WHOLE = """
input = "people.csv"
output = "out"
method = "generalize"
separator = ";"
encoding = "latin-1"
missing = "drop"
domain = "present"
person = "id"
weights = "w"
other = ["ward"]

[quasi]
zip = "mask"
age = { bands = [5, 10, 20], origin = 0, low = 0, high = 120 }
born = "dates"
sex = { taxonomy = "sex.csv" }

[sensitive]
disease = true

[types]
zip = "text"

[generalize]
metric = "height"
suppress = 0.25

[[principles]]
name = "KAnonymity"
k = 2

[[principles]]
name = "MultiAttribute"
principle = { name = "RecursiveDiversity", c = 3.5, l = 2, dont_care = ["flu"] }
"""


def test_a_job_is_the_same_as_the_python_arguments(folder: Path) -> None:
    """Every key has its counterpart, paths are relative to the job, and nothing is left over."""
    job = load(folder, WHOLE)
    assert job == Job(
        input=folder / "people.csv",
        output=folder / "out",
        quasi={
            "zip": jali.mask(),
            "age": jali.bands(5, 10, 20, origin=0, low=0, high=120),
            "born": jali.dates(),
            "sex": jali.taxonomy(folder / "sex.csv"),
        },
        sensitive={"disease": None},
        principles=(
            jali.KAnonymity(2),
            jali.MultiAttribute(jali.RecursiveDiversity(3.5, 2, dont_care=("flu",))),
        ),
        options={"metric": "height", "suppress": 0.25},
        other=("ward",),
        person="id",
        weights="w",
        types={"zip": "text"},
        missing="drop",
        domain="present",
        separator=";",
        encoding="latin-1",
    )


def test_running_a_job_is_reading_and_generalizing(folder: Path) -> None:
    """The release has the levels and costs of the one that the library makes from the same arguments."""
    job = load(folder, WHOLE)
    release = job.run()
    table = read(
        folder / "people.csv", quasi=job.quasi, sensitive=["disease"], other=["ward"], person="id", weights="w",
        types={"zip": "text"}, missing="drop", domain="present",
    )  # fmt: skip
    same = jali.generalize(table, list(job.principles), metric="height", suppress=0.25)
    assert release.manifest.metrics == same.manifest.metrics
    assert release.manifest.principles == same.manifest.principles
    assert release.manifest.method["suppress"] == "0.25"
    assert job.run(job.table()).manifest.counts == release.manifest.counts


def test_the_keys_of_a_job_are_those_of_the_library() -> None:
    """Each keyword of `read` is a field of the job; each option of a method is one of its keyword arguments.

    The public table of `conceal` is named among them; the table of a database is named with it, in `input`.
    """
    fields = {field.name for field in dataclasses.fields(Job)}
    assert set(inspect.signature(read).parameters) - {"path", "table"} <= fields
    for name in METHODS:
        keywords = inspect.signature(getattr(jali, "angelize" if name == "angel" else name)).parameters.values()
        known = {p.name for p in keywords if p.kind is p.KEYWORD_ONLY or p.name == "public"}
        assert set(section_keys(name)) == known - {"on_step"}


def test_an_option_of_a_function_is_an_option_of_the_job(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb with invented options: the job takes them, checks their forms, resolves their paths and passes them on."""
    given: dict[str, object] = {}

    def verb(
        table: object,
        principles: object,
        *,
        roast: Literal["light", "dark"] = "light",
        cups: int | None = None,
        milk: bool = False,
        beans: str | Path | None = None,
        sugar: Mapping[str, int] | None = None,
        grind: Literal["fine"] | Mapping[str, int] = "fine",
        spices: list[str] | None = None,
        brewed: int | list[int] = 1,
        on_step: Callable[[int], None] | None = None,
    ) -> dict[str, object]:
        given.update(locals())
        return given

    monkeypatch.setattr(jali, "recode", verb)
    text = SMALL + 'separator = ";"\nmethod = "recode"\n[recode]\n'
    wanted = {"roast": "dark", "cups": 2, "milk": True, "sugar": {"age": 1}, "grind": {"age": 1}, "spices": ["anise"]}
    lines = 'roast = "dark"\ncups = 2\nmilk = true\nsugar.age = 1\ngrind.age = 1\nspices = ["anise"]\nbrewed = [1]\n'
    end = '[[principles]]\nname = "KAnonymity"\nk = 2\n'
    load(folder, text + lines + 'beans = "beans.csv"\n' + end).run()
    assert given.items() >= (wanted | {"brewed": [1], "beans": folder / "beans.csv"}).items()
    for wrong, message in {
        "cup = 2": r'\[recode\]: unknown key "cup"; did you mean "cups"\?',
        "cups = true": r"\[recode\]: cups must be a number: got true",
        "milk = 1": r"\[recode\]: milk must be true or false: got 1",
        "beans = 1": r"\[recode\]: beans must be text: got 1",
        "grind = {}": r'\[recode\]: grind must be "fine" or a table of levels: got {}',
        "brewed = {}": r"\[recode\]: brewed must be a number or a list: got {}",
        "on_step = 1": r'\[recode\]: unknown key "on_step"',
        'objective = "kl"': r'\[recode\]: unknown key "objective"',
    }.items():
        with pytest.raises(InputError, match=message):
            load(folder, text + wrong + "\n")


@pytest.mark.parametrize("spelling", ['"{}"', "{{ {} = true }}"])
@pytest.mark.parametrize("word", ["mask", "dates", "suppress", "auto"])
def test_a_hierarchy_without_parameters_has_two_spellings(folder: Path, word: str, spelling: str) -> None:
    """`zip = "mask"` is `zip = { mask = true }`; auto lets jali choose."""
    job = load(folder, f'input = "people.csv"\n[quasi]\nzip = {spelling.format(word)}\n')
    assert job.quasi == {"zip": None if word == "auto" else getattr(jali, word)()}


def test_plain_lists_true_and_sections(folder: Path) -> None:
    """Lists of names, `true` and [quasi.age] sections say the same."""
    listed = load(folder, 'input = "people.csv"\nquasi = ["age", "sex"]\nsensitive = ["disease"]\n')
    tabled = load(folder, 'input = "people.csv"\n[quasi]\nage = true\nsex = true\n[sensitive]\ndisease = true\n')
    assert listed == tabled
    assert listed.quasi == {"age": None, "sex": None}
    section = load(folder, 'input = "people.csv"\n[quasi.age]\nbands = 5\nlow = 0\n')
    assert section.quasi == {"age": jali.bands(5, low=0)}


def test_a_taxonomy_may_stand_in_the_job(folder: Path) -> None:
    """Rows of texts, as `jali.taxonomy` takes them."""
    job = load(folder, 'input = "people.csv"\n[quasi]\nsex = { taxonomy = [["f", "*"], ["m", "*"]] }\n')
    assert job.quasi["sex"] == jali.taxonomy([("f", "*"), ("m", "*")])
    assert job.table()["sex"].declared


def test_a_sensitive_column_with_bands(folder: Path) -> None:
    """A hierarchy of a sensitive column gives the groups by which it is judged."""
    job = load(folder, 'input = "people.csv"\nquasi = ["sex"]\n[sensitive]\nage = { bands = [10] }\n')
    assert job.sensitive == {"age": jali.bands(10)}
    assert job.table()["age"].judges_groups


def test_decimals_stay_as_they_were_written(folder: Path) -> None:
    """0.07 is 7/100, and text such as "1/3" is a fraction."""
    text = SMALL + '[[principles]]\nname = "TCloseness"\nt = 0.07\n[[principles]]\nname = "TCloseness"\nt = "1/3"\n'
    first, second = load(folder, text).principles
    assert Fraction(str(first.t)) == Fraction(7, 100)  # type: ignore[attr-defined]
    assert second == jali.TCloseness(Fraction(1, 3))


def test_absolute_paths_and_standard_input(folder: Path, tmp_path: Path) -> None:
    """An absolute path stays; "-" is standard input."""
    assert load(folder, f'input = "{tmp_path / "people.csv"}"\nquasi = ["age"]\n').input == tmp_path / "people.csv"
    assert load(folder, 'input = "-"\nquasi = ["age"]\n').input == Path("-")


def test_a_byte_order_mark_is_no_mistake(folder: Path) -> None:
    """Editors on Windows write one."""
    (folder / "job.toml").write_text(SMALL, encoding="utf-8-sig")
    assert Job.load(folder / "job.toml").quasi == {"age": None}


def test_a_job_for_repair_needs_only_principles(folder: Path) -> None:
    """`requirement` reads them alone; without any it says how to add one."""
    path = folder / "more.toml"
    path.write_text('[[principles]]\nname = "KAnonymity"\nk = 3\n', encoding="utf-8")
    assert requirement(path) == (jali.KAnonymity(3),)
    path.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"more\.toml: no principle was given; add \[\[principles\]\]"):
        requirement(path)
    with pytest.raises(InputError, match="no principle was given"):
        load(folder, SMALL).run()


AGE = 'input = "x"\n[quasi]\nage = '
P = SMALL + "[[principles]]\nname = "

WRONG: dict[str, tuple[str, str]] = {
    "no input": ('quasi = ["age"]', r'job\.toml: no input was named; write input = "table\.csv"'),
    "no quasi": ('input = "people.csv"', r"job\.toml: no quasi-identifier was named"),
    "input is a number": ('input = 3\nquasi = ["age"]', r"job\.toml: input must be text or \{ database = .*: got 3"),
    "unknown key": (SMALL + "sensitve = []", r'job\.toml: unknown key "sensitve"; did you mean "sensitive"\?'),
    "unknown section": (SMALL + "[mondrian]", r'job\.toml: unknown key "mondrian"'),
    "unknown method": (
        SMALL + 'method = "generalise"',
        r'job\.toml: no method "generalise"; did you mean "generalize"\?',
    ),
    "missing": (SMALL + 'missing = "dropp"', r'job\.toml: missing must be "keep" or "drop": got \'dropp\''),
    "domain": (SMALL + 'domain = "all"', r'job\.toml: domain must be "declared" or "present"'),
    "types": (
        SMALL + '[types]\nage = "txt"',
        r'job\.toml: types: no kind "txt" for column "age"; did you mean "text"\?',
    ),
    "types are no texts": (SMALL + "[types]\nage = 3", r"job\.toml: types must be a table of kinds"),
    "other is text": (SMALL + 'other = "ward"', r'job\.toml: other must be a list of column names.*: got "ward"'),
    "quasi is text": (
        'input = "people.csv"\nquasi = "age"',
        r'job\.toml: quasi must be a list of column names.*: got "age"',
    ),
    "a column twice": ('input = "x"\nquasi = ["age", "age"]', r'job\.toml \[quasi\] names column "age" twice'),
    "two roles": (SMALL + 'sensitive = ["age"]', r'job\.toml: column "age" is named as quasi and as sensitive'),
    "two roles with person": (SMALL + 'person = "age"', r'column "age" is named as quasi and as person'),
    "misspelt hierarchy": (AGE + '"msk"', r'AT not a hierarchy: got "msk"; did you mean "mask"\?'),
    "a file name": (AGE + '"age.csv"', r'AT not a hierarchy: got "age\.csv"; write .*taxonomy = "file\.csv"'),
    "a number": (AGE + "5", r"AT not a hierarchy: got 5; write"),
    "false": (AGE + "false", r"AT not a hierarchy: got false"),
    "mask is false": (AGE + "{ mask = false }", r"AT mask must be true: got false"),
    "nothing": (AGE + "{}", r"AT no hierarchy; write"),
    "two hierarchies": (AGE + "{ mask = true, bands = [5] }", r"AT mask and bands at once"),
    "unknown option": (AGE + "{ bands = [5], lo = 0 }", r'AT unknown key "lo"; did you mean "low"\?'),
    "option of another": (AGE + "{ mask = true, low = 0 }", r'AT unknown key "low"'),
    "widths are texts": (AGE + '{ bands = ["5"] }', r"AT bands must be a list of numbers"),
    "no widths": (AGE + "{ bands = [] }", r"AT .*at least one width"),
    "widths that do not nest": (AGE + "{ bands = [5, 12] }", r"AT each width"),
    "low is text": (AGE + '{ bands = [5], low = "0" }', r'AT low must be a number: got "0"'),
    "low is not finite": (AGE + "{ bands = [5], low = nan }", r"AT low must be a number"),
    "no taxonomy": (AGE + '{ taxonomy = "no.csv" }', r"AT no taxonomy file .*no\.csv"),
    "a taxonomy of numbers": (AGE + "{ taxonomy = [[1, 2]] }", r"AT taxonomy must be a file"),
    "a top key too late": (
        SMALL + '[generalize]\noutput = "out"',
        r'\[generalize\]: unknown key "output"; it belongs above the first',
    ),
    "an option above its section": (
        SMALL + 'method = "recode"\nshow = "pdf"',
        r'job\.toml: unknown key "show"; it belongs in the section \[recode\]',
    ),
    "a top key among columns": (AGE + 'true\noutput = "out"', r"\[quasi\] output: .*above the first \[section\]"),
    "metric is a list": (SMALL + "[generalize]\nmetric = []", r"\[generalize\]: metric must be text: got \[\]"),
    "suppress is text": (
        SMALL + '[generalize]\nsuppress = "5 %"',
        r'\[generalize\]: suppress must be a number: got "5 %"',
    ),
    "suppress is true": (
        SMALL + "[generalize]\nsuppress = true",
        r"\[generalize\]: suppress must be a number: got true",
    ),
    "levels is a number": (SMALL + "[generalize]\nlevels = 2", r"\[generalize\]: levels must be a table: got 2"),
    "the method's section is text": (SMALL + 'generalize = "kl"', r'job\.toml: generalize must be a table: got "kl"'),
    "one bracket": (
        SMALL + '[principles]\nname = "KAnonymity"',
        r"job\.toml: principles must be tables with two brackets",
    ),
    "no name": (
        SMALL + "[[principles]]\nk = 3",
        r'\[\[principles\]\] 1: a principle needs a name; e\.g\. name = "KAnonymity"',
    ),
    "the name is a number": (SMALL + "[[principles]]\nname = 3", r"\[\[principles\]\] 1: a principle needs a name"),
    "unknown principle": (P + '"KAnon"', r'\[\[principles\]\] 1: no principle "KAnon"'),
    "unknown parameter": (
        P + '"KAnonymity"\nk = 2\n[[principles]]\nname = "EntropyDiversity"\nll = 2',
        r'\[\[principles\]\] 2: EntropyDiversity has no parameter "ll"; did you mean "l"\?',
    ),
    "missing parameter": (P + '"KAnonymity"', r"\[\[principles\]\] 1: KAnonymity needs k"),
    "k is true": (P + '"KAnonymity"\nk = true', r"\[\[principles\]\] 1: k must be"),
    "k is a date": (P + '"KAnonymity"\nk = 2020-01-01', r"\[\[principles\]\] 1: k must be"),
    "k is not a number": (P + '"KAnonymity"\nk = nan', r"\[\[principles\]\] 1: k must be"),
    "sensitive is a list": (P + '"TCloseness"\nt = 1\nsensitive = ["a"]', r"sensitive must be the name"),
    "dont_care is text": (P + '"EntropyDiversity"\nl = 2\ndont_care = "flu"', r"dont_care must be a list"),
    "conceal without public": (SMALL + 'method = "conceal"\n[conceal]\nlow = 0\nhigh = 1', r"conceal needs public"),
    "conceal without bounds": (SMALL + 'method = "conceal"\n[conceal]\npublic = "people.csv"', r"conceal needs low"),
    "conceal with principles": (
        SMALL + 'method = "conceal"\n[conceal]\npublic = "people.csv"\nlow = 0\nhigh = 1\n'
        '[[principles]]\nname = "KAnonymity"\nk = 2',
        r"no \[\[principles\]\]",
    ),
    "invalid TOML": ("input = people.csv", r"job\.toml is not valid TOML: .*line 1"),
    "cut off": ('input = "people.csv', r"job\.toml is not valid TOML: .*"),
    "a key twice": (SMALL + 'quasi = ["zip"]', r"job\.toml is not valid TOML: .*"),
    "long values are cut": (AGE + f'"{"9" * 99}"', r'got "9{38}…;'),
}


@pytest.mark.parametrize("case", WRONG)
def test_whatever_is_wrong_in_a_job_is_one_line(folder: Path, case: str) -> None:
    """The line names the key, the place, and what to write instead."""
    text, pattern = WRONG[case]
    pattern = pattern.replace("AT ", r"job\.toml \[quasi\] age: ")
    with pytest.raises(InputError, match=pattern) as caught:
        load(folder, text + "\n")
    assert "\n" not in str(caught.value)


def test_errors_keep_their_kind_and_their_value(folder: Path) -> None:
    """A HierarchyError from inside a job is one outside, too."""
    with pytest.raises(HierarchyError, match=r"job\.toml \[quasi\] age: "):
        load(folder, 'input = "x"\n[quasi]\nage = { bands = [5, 12] }\n')


def test_files_that_are_no_jobs(folder: Path) -> None:
    """A missing file, a folder, bad UTF-8 and endless nesting are lines as well."""
    with pytest.raises(InputError, match=r"no job file .*; check the path"):
        Job.load(folder / "nowhere.toml")
    with pytest.raises(InputError, match="cannot be read"):
        Job.load(folder)
    (folder / "job.toml").write_bytes(b'input = "x"\n# caf\xe9\n')
    with pytest.raises(InputError, match=r"job\.toml: line 2 is not valid UTF-8"):
        Job.load(folder / "job.toml")
    (folder / "job.toml").write_text("a = " + "[" * 100_000, encoding="utf-8")
    with pytest.raises(InputError, match="not valid TOML"):
        Job.load(folder / "job.toml")


def test_a_job_checks_itself_when_it_is_made() -> None:
    """A Job from Python is checked as one from a file."""
    with pytest.raises(InputError, match="no quasi-identifier"):
        Job(Path("x.csv"), {})
    with pytest.raises(InputError, match='no method "mondrian"'):
        Job(Path("x.csv"), {"age": None}, method="mondrian")
    with pytest.raises(InputError, match="one role"):
        Job(Path("x.csv"), {"age": None}, {"age": None})
