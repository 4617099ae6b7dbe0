"""Laws of the job as state: what is written is what is read, steps go back and forth, files stay inside."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette")

from jali.core.forms import toml_text
from jali.errors import InputError
from jali.studio.guard import Folder, Keys
from jali.studio.state import (
    ROLES,
    State,
    alone,
    checked,
    roles_in,
    toml_of,
    with_hierarchy,
    with_role,
    without_column,
)
from jali.studio.views.view import page_part

JOB: dict[str, Any] = {
    "input": "people.csv",
    "quasi": {"age": {"bands": [5, 10]}, "zip code": True},
    "sensitive": {"disease": True},
    "identifier": ["name"],
    "types": {"zip code": "text"},
    "principles": [{"name": "KAnonymity", "k": 5}, {"name": "DistinctDiversity", "l": 2, "sensitive": "disease"}],
}

plain = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.booleans(), st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    plain, lambda one: st.lists(one, max_size=3) | st.dictionaries(keys, one, max_size=3), max_leaves=6
)


@given(st.dictionaries(keys, values, max_size=5))
def test_a_job_that_is_written_says_the_same_when_it_is_read(job: dict[str, Any]) -> None:
    """Whatever its keys and values are."""
    assert tomllib.loads(toml_text(job)) == job


def opened(folder: Path) -> State:
    (folder / "people.csv").write_text("age\n1\n")
    return State.opened(Folder(folder), folder / "people.csv")


def test_a_step_back_and_an_edit_forget_what_was_undone(tmp_path: Path) -> None:
    """And a state that is opened again is the same."""
    state = opened(tmp_path)
    for at, k in enumerate((2, 3, 4)):
        state.record(f"k = {k}", JOB | {"principles": [{"name": "KAnonymity", "k": k}]})
        assert state.at == at
    state.step(0)
    assert State.opened(state.folder, state.data).job["principles"][0]["k"] == 2
    state.record("k = 9", JOB | {"principles": [{"name": "KAnonymity", "k": 9}]})
    again = State.opened(state.folder, state.data)
    assert [said for said, _ in again.history] == ["k = 2", "k = 9"]
    assert (again.at, again.job) == (state.at, state.job)
    assert stat.S_IMODE(state.file.stat().st_mode) == 0o600
    state.record("nothing", state.job)
    assert len(state.history) == 2


def test_a_copy_of_the_job_is_a_copy(tmp_path: Path) -> None:
    """What a view does to it changes nothing that was not recorded."""
    state = opened(tmp_path)
    state.record("first", JOB)
    state.job["quasi"]["age"]["bands"].append(20)
    assert state.job == JOB


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 1, "at": 3, "history": []}', "\xff", "null"])
def test_a_file_that_is_no_history_is_left_alone(tmp_path: Path, text: str) -> None:
    """One line says so."""
    file = tmp_path / "people.csv.studio.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="no history of the studio"):
        opened(tmp_path)
    assert file.read_text(encoding="latin-1") == text


@given(st.lists(st.tuples(st.sampled_from(["age", "zip code", "disease", "name", "new"]), st.sampled_from(ROLES))))
def test_a_column_has_the_role_that_it_was_given_last(edits: list[tuple[str, str]]) -> None:
    """However roles are changed, each column has one, and the promises are about sensitive columns only."""
    job, last = JOB, roles_in(JOB)
    for column, role in edits:
        job = with_role(job, column, role, JOB)
        if role in ("person", "weights"):
            last = {name: own for name, own in last.items() if own != role}
        last[column] = role
    assert roles_in(job) == {name: role for name, role in last.items() if role != "left out"}
    about = {one["sensitive"] for one in job.get("principles", []) if "sensitive" in one}
    assert about == {name for name, role in last.items() if role == "sensitive"}
    assert tomllib.loads(toml_of(job)) == job


def test_a_role_that_is_given_back_brings_hierarchy_kind_and_promise_back() -> None:
    """Those of the first job, which jali suggested."""
    for column, role in (("age", "quasi"), ("zip code", "quasi"), ("disease", "sensitive")):
        again = with_role(without_column(JOB, column), column, role, JOB)
        assert again.get("types") == JOB["types"]
        assert again[role] == JOB[role]
        assert sorted(map(str, again["principles"])) == sorted(map(str, JOB["principles"]))


def test_a_job_names_no_file_outside_of_the_folder(tmp_path: Path) -> None:
    """Neither its table, nor its release, nor a hierarchy, nor through a link."""
    inner = tmp_path / "in"
    inner.mkdir()
    (inner / "link").symlink_to(tmp_path)
    folder = Folder(inner)
    checked(JOB, inner, folder)
    for change in ({"input": "../people.csv"}, {"output": "/tmp/x"}, {"output": "link/x"}, {"output": "~/x"},
                   {"quasi": {"age": {"taxonomy": "link/age.csv"}}}, {"pseudonym_key": "../key"}):  # fmt: skip
        with pytest.raises(InputError, match="only files below"):
            checked(JOB | change, inner, folder)


@pytest.mark.parametrize("change", [
    {"input": "sqlite:////elsewhere/secret.db?table=t"},
    {"input": {"database": "../outside/secret.db", "table": "t"}},
    {"input": "people.duckdb?table=t"},
    {"input": "*.parquet"},
    {"input": "parts"},
    {"output": "postgresql://127.0.0.1/db?table=t"},
    {"conceal": {"public": "postgresql://127.0.0.1/db?table=t"}},
    {"conceal": {"public": {"database": "../secret.db", "table": "t"}}},
    {"quasi": {"age": [{"taxonomy": "s3://bucket/age.csv"}]}},
])  # fmt: skip
def test_a_job_of_the_studio_reaches_no_database_and_no_address(change: dict[str, Any], tmp_path: Path) -> None:
    """The attacker hands over a job or a history; opening it sends nothing anywhere and reads nothing outside."""
    (tmp_path / "parts").mkdir()
    with pytest.raises(InputError, match="no database, no address"):
        checked(JOB | change, tmp_path, Folder(tmp_path))


def test_an_edited_hierarchy_lies_beside_the_job_under_a_name_of_its_content(tmp_path: Path) -> None:
    """Equal texts are one file, others another: a step back finds what it had."""
    state = opened(tmp_path)
    one, other = (state.keep_text("../zip/code", text) for text in ("1,*\n", "2,*\n"))
    assert state.keep_text("../zip/code", "1,*\n") == one != other
    assert (tmp_path / one).read_text() == "1,*\n"
    assert (tmp_path / one).parent.parent == tmp_path
    assert stat.S_IMODE((tmp_path / one).stat().st_mode) == 0o600


def test_a_token_opens_once() -> None:
    """A new one is made when the one before was used; asking again makes none, so nobody can void the holder's."""
    keys = Keys()
    first = keys.invite()
    assert keys.invite() == first
    assert keys.redeem(first)
    second = keys.invite()
    assert second != first
    assert not keys.redeem(first)
    assert keys.was_valid(first)
    assert not keys.was_valid("guess")
    assert keys.redeem(second)
    assert not keys.redeem(second)


def test_styles_become_attributes_that_the_policy_allows() -> None:
    """Those of elements, not words of a text."""
    from jali.core.text import element

    made = page_part(element("p", ' style="x"', style="width:1rem"))
    assert made == '<p data-style="width:1rem"> style=&quot;x&quot;</p>'


def test_the_history_is_plain_json(tmp_path: Path) -> None:
    """So that a person can read it and another program can, too."""
    state = opened(tmp_path)
    state.record("first", JOB)
    told = json.loads(state.file.read_text())
    assert told["history"] == [{"said": "first", "job": JOB}]


def test_a_job_that_withstands_who_knows_the_algorithm_still_does_with_a_sensitive_column() -> None:
    """A search over hierarchies has a proof for sizes alone; promises about values are kept by equal halves."""
    job = JOB | {"method": "generalize", "generalize": {"suppress": 0.05, "transparent": True}}
    made = with_role(job, "ward", "sensitive", JOB)
    assert made["method"] == "partition"
    assert made["partition"] == {"transparent": True}
    assert made["generalize"] == {"suppress": 0.05}
    assert with_role(JOB, "ward", "sensitive", JOB).get("method") == JOB.get("method")
    assert with_role(job, "ward", "other", JOB)["method"] == "generalize"


def test_a_hierarchy_that_was_refused_leaves_no_file(tmp_path: Path) -> None:
    """Unless a step of the history names the same text."""
    state = opened(tmp_path)
    kept, refused = (state.keep_text("age", text) for text in ("1;*\n", "2;*\n"))
    state.record("edited", with_hierarchy(JOB, "age", {"taxonomy": kept}))
    for name in (kept, refused):
        state.forget_text(name)
    assert (tmp_path / kept).is_file()
    assert not (tmp_path / refused).exists()


@given(st.sampled_from(["age", "zip code"]))
def test_a_column_alone_is_read_as_the_job_reads_it(column: str) -> None:
    """Its hierarchy and kind, and nothing of other columns."""
    made = alone(JOB | {"decimal": ",", "allow": {"age": "why", "name": "why not"}}, column, {"bands": [7]})
    assert made["quasi"] == {column: {"bands": [7]}}
    assert (made["input"], made["decimal"]) == ("people.csv", ",")
    assert made.get("types", {}) == ({"zip code": "text"} if column == "zip code" else {})
    assert not {"sensitive", "identifier", "principles"} & set(made)
    assert with_hierarchy(JOB, column, True)["quasi"] == JOB["quasi"] | {column: True}


def test_a_table_that_was_written_again_is_noticed(tmp_path: Path) -> None:
    """When the history is opened, and not after a step of the same table."""
    state = opened(tmp_path)
    state.record("first", JOB)
    assert not State.opened(state.folder, state.data).stale
    state.data.write_text("age\n1\n2\n")
    again = State.opened(state.folder, state.data)
    assert again.stale
    again.record("second", JOB | {"other": ["ward"]})
    assert not State.opened(state.folder, state.data).stale
