"""Ways into the studio and out of a task: a table that the page asks for, a job, the demo, a search that is stopped."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jali
import jali.job
from studio.running import MARK, Started, table_text

pytest.importorskip("starlette")

from jali.studio.views.promises import WORDS

pytestmark = pytest.mark.slow


def test_without_a_table_the_page_asks_for_one_below_the_folder(start: Callable[..., Started], people: Path) -> None:
    """It lists tables, opens the one that is chosen, and none from elsewhere."""
    (people.parent / "deep").mkdir()
    (people.parent / "deep" / "more.csv").write_text(table_text())
    (people.parent.parent / "outside.csv").write_text(table_text())
    client = start(folder=people.parent).client().enter()
    page = client.view("data")
    assert "people.csv" in page
    assert "deep/more.csv" in page
    assert "outside.csv" not in page
    for wrong in ("../outside.csv", "nothing.csv", "deep", ""):
        assert client.act("data", "open", path=wrong)[0] == 422
    assert client.act("decide", "make")[0] == 422
    assert client.act("data", "open", path="deep/more.csv")[0] == 200
    assert "disease" in client.view("data")
    assert client.state()["table"] == "deep/more.csv"
    assert client.act("data", "open", path="people.csv")[0] == 422


def test_a_job_is_opened_and_saved_again(start: Callable[..., Started], people: Path) -> None:
    """The job that the command line wrote is the state, and what the studio saves loads."""
    job = people.with_name("mine.toml")
    subprocess.run([sys.executable, "-m", "jali", "init", str(people), "-o", str(job), "-q"], check=True)
    client = start(str(job)).client().enter()
    client.view("data")
    told = client.state()
    assert told["history"] == ["opened the job"]
    assert told["problem"] is None
    fields = {"release": "out", "report": "r.html", "job": "again.toml", "decision": "publish", "by": "me"}
    assert client.act("decide", "save", **fields)[0] == 200
    assert client.act("decide", "make")[0] == 200
    assert "again.toml" in client.view("decide", until="Saved.")
    assert jali.load(people.parent / "out").principles
    assert (people.parent / "r.html").stat().st_mode & 0o077 == 0
    from jali.job import Job

    assert Job.load(people.parent / "again.toml").requirement == Job.load(job).requirement
    assert client.act("decide", "save", **fields)[0] == 200
    assert "tick" in client.view("decide", until="Try again")


def test_a_search_can_be_stopped_and_begun_again(start: Callable[..., Started], tmp_path: Path) -> None:
    """It ends within seconds, the page offers to begin again, and the studio goes on."""
    frame = jali.datasets.census(rows=60_000, seed=0).frame("pandas")
    frame.to_csv(tmp_path / "census.csv", index=False)
    client = start("census.csv").client().enter()
    client.view("data")
    assert client.act("decide", "make")[0] == 200
    running = [run for run in client.state()["running"] if run["task"] == "decide"]
    assert len(running) == 1
    began = time.monotonic()
    assert client.act("decide", "stop", number=running[0]["number"])[0] == 200
    assert "Make the release" in client.view("decide", until="Make the release")
    assert time.monotonic() - began < 10
    assert client.state()["running"] == []
    assert "census" in client.state()["table"]
    client.view("data")


def test_the_demo_needs_nothing(start: Callable[..., Started], tmp_path: Path) -> None:
    """The invented census, with an occupation that nobody should learn."""
    client = start("--demo").client().enter()
    assert "occupation" in client.view("data")
    assert (tmp_path / "jali-studio-demo" / "census.csv").is_file()
    assert "Nobody should learn" in client.get("/api/views/decide")


def test_what_cannot_be_opened_is_said_in_one_line(tmp_path: Path) -> None:
    """No file, a table beside --demo, a history that is none, a port that nobody may have."""
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    (tmp_path / "a.csv.studio.json").write_text("nonsense")
    for options in (["no.csv"], ["a.csv", "--demo"], ["a.csv"], ["--port", "99999"], ["--stop-after", "0"]):
        done = subprocess.run([sys.executable, "-m", "jali", "studio", "--no-browser", *options], cwd=tmp_path,
                              capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
        assert done.returncode == 2, (options, done.stderr)
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""


def test_without_its_packages_one_line_names_the_extra(tmp_path: Path) -> None:
    """Starlette cannot be found: the line says what to install."""
    code = (
        "import sys, importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'starlette' else found(name, *more)\n"
        "sys.argv = ['jali', 'studio', '--no-browser']\nfrom jali.__main__ import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install "jali[studio]"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_hierarchy_that_does_not_fit_is_refused_and_leaves_nothing(studio: Started, people: Path) -> None:
    """One line each; what is exported is imported again; column names and values that are scripts stay texts."""
    client = studio.client().enter()
    client.view("data")
    client.view("hierarchies", until="Tree")
    before = client.state()["history"]
    for action, given in (
        ("build", {"kind": "bands", "bands": "5, 7"}), ("build", {"kind": "zip", "zip": "DE"}),
        ("build", {"kind": "dates"}), ("build", {"kind": "nonsense"}), ("import", {"text": ""}),
        ("import", {"text": "20;*\n"}), ("import", {"text": "20;a;*\n20;b;*\n"}), ("rename", {"level": 1, "node": "?",
        "to": "x"}), ("merge", {"level": 0, "node": "20", "other": "21"}), ("add_level", {"level": 99}),
        ("move", {"level": 0, "under": "x", "below": ["20"]}), ("drop_level", {"level": 0}),
    ):  # fmt: skip
        status, told = client.act("hierarchies", action, column="age", **given)
        assert status == 422, (action, given)
        assert "\n" not in told["error"]
    for action in ("build", "export", "add_level"):
        more = {"build": {"kind": "mask"}, "export": {}, "add_level": {"level": 0}}[action]
        assert client.act("hierarchies", action, column="name", **more)[0] == 422
    assert client.state()["history"] == before
    assert not list((people.parent / "people.csv.hierarchies").glob("*"))
    assert client.act("hierarchies", "build", column="age", kind="bands", bands="10, 20")[0] == 200
    text = client.act("hierarchies", "export", column="age")[1]["told"]["text"]
    assert client.act("hierarchies", "import", column="age", text=text)[0] == 200
    assert client.act("hierarchies", "export", column="age")[1]["told"]["text"] == text
    for name in ("hierarchies", "promises"):
        assert MARK not in client.view(name)


def test_promises_that_cannot_be_made_are_refused(studio: Started) -> None:
    """And what the page says of those that can is from counts, before any search."""
    client = studio.client().enter()
    client.view("data")
    assert client.act("data", "role", column="disease", value="sensitive")[0] == 200
    for name in WORDS:
        assert client.act("promises", "add", name=name, column="disease")[0] == 200
    assert client.act("promises", "add", name="Safety")[0] == 422
    assert client.act("promises", "add", name="DeltaPresence", column="disease")[0] == 422
    for at, key, value in ((0, "k", "0"), (0, "k", "many"), (0, "q", "1"), (99, "k", "2"), (0, "k", "")):
        assert client.act("promises", "change", at=at, key=key, value=value)[0] == 422
    assert client.act("promises", "change", at=0, key="k", value="1000")[0] == 200
    assert "cannot be kept" in client.view("promises", until="cannot be kept")
    assert client.act("promises", "option", key="nonsense", value="1")[0] == 422
    assert client.act("promises", "option", key="mode", value="nonsense")[0] == 422
    while client.act("promises", "remove", at=0)[0] == 200:
        pass
    assert "Nothing yet" in client.view("promises")


def kept_job(people: Path) -> dict[str, Any]:
    """The job that the history beside the table is at."""
    kept = json.loads(people.with_name("people.csv.studio.json").read_text())
    return dict(kept["history"][kept["at"]]["job"])


def test_a_policy_has_thresholds_of_ones_own(studio: Started, people: Path) -> None:
    """As people write them; nonsense is refused; empty is what the preset says; a judged release is judged again."""
    client = studio.client().enter()
    client.view("data")
    for key, value in (("highest_risk", "2"), ("highest_risk", "-1"), ("highest_risk", "many"), ("nothing", "1"),
                       ("highest_risk", True), ("promise", "yes"), ("facts", "half"), ("facts", "-1"),
                       ("exposed.nobody", "0"), ("disclosure", "110 %")):  # fmt: skip
        status, told = client.act("promises", "threshold", key=key, value=value)
        assert status == 422, (key, value)
        assert "\n" not in told["error"]
    assert "policy" not in kept_job(people) or kept_job(people)["policy"] == {"preset": "public"}
    assert client.act("decide", "make")[0] == 200
    client.view("decide", until="The rest of the report")
    for key, value in (("highest_risk", "1 in 2000"), ("exposed.linkage", "1 %"), ("promise", False), ("facts", "2")):
        assert client.act("decide", "threshold", key=key, value=value)[0] == 200
    assert kept_job(people)["policy"] == {
        "preset": "public", "highest_risk": "1/2000", "promise": False, "facts": 2,
        "exposed": {"homogeneity": 0, "background knowledge": 0, "linkage": "1/100"},
    }  # fmt: skip
    page = client.view("decide", until="at most 0.05")
    assert "groups of at least 2,000 people" in page
    assert "4 thresholds are your own" in page.replace("Thresholds", "thresholds")
    for key in ("highest_risk", "exposed.linkage", "facts"):
        assert client.act("decide", "threshold", key=key, value=" ")[0] == 200
    assert client.act("decide", "threshold", key="promise", value=True)[0] == 200
    assert kept_job(people)["policy"] == {"preset": "public"}
    assert client.act("promises", "policy", value="nobody")[0] == 422


def test_what_the_policy_asks_for_is_promised_with_one_press(studio: Started, people: Path) -> None:
    """The promises that the verdict names stand in the job, and the release that is made again meets them."""
    client = studio.client().enter()
    client.view("data")
    assert client.act("decide", "meet")[0] == 422
    for at in range(len(kept_job(people)["principles"]) - 1, -1, -1):
        assert client.act("promises", "remove", at=at)[0] == 200
    assert client.act("promises", "add", name="KAnonymity")[0] == 200
    assert client.act("promises", "change", at=0, key="k", value="2")[0] == 200
    assert client.act("promises", "method", value="partition")[0] == 200
    assert client.act("decide", "make")[0] == 200
    page = client.view("decide", until="asked-for")
    assert "Every person shares the quasi-identifiers with at least 10 others" in page
    assert client.act("decide", "meet")[0] == 200
    asked = kept_job(people)["principles"]
    assert {"name": "KAnonymity", "k": 11} in asked
    assert {"name": "FrequencyDiversity", "l": 2, "sensitive": "disease"} in asked
    assert {"name": "KAnonymity", "k": 2} not in asked
    assert 'id="meet"' not in client.view("decide", until="The rest of the report")


def test_who_is_in_the_table_can_be_hidden(start: Callable[..., Started], people: Path) -> None:
    """Among the people of another table, which is looked at first; the promises come back with another method."""
    lines = [line.split(",") for line in people.read_text().splitlines()[1:]]
    with people.with_name("town.csv").open("w") as town:
        print("age,zip", *(f"{row[1]},{row[2]}" for row in lines * 3), sep="\n", file=town)
    people.with_name("few.csv").write_text("age,zip\n20,10000\n")
    client = start(str(people)).client().enter()
    client.view("data")
    assert client.act("data", "role", column="disease", value="sensitive")[0] == 200
    assert client.act("data", "role", column=MARK, value="left out")[0] == 200
    before = kept_job(people)
    assert "Is it a secret who is in the table" in client.view("promises")
    for public, low, high, said in (
        ("", "0", "1", "no table"), ("nothing.csv", "0", "1", "no file"), ("../x.csv", "0", "1", "only files below"),
        ("few.csv", "0", "1", "public table"), ("town.csv", "0.9", "0.1", ""), ("town.csv", "x", "1", "low must be"),
    ):  # fmt: skip
        status, told = client.act("promises", "conceal", public=public, low=low, high=high)
        assert status == 422, public
        assert said in told["error"]
    assert kept_job(people) == before
    assert client.act("promises", "method", value="conceal")[0] == 422
    assert client.act("promises", "conceal", public="town.csv", low="0.5", high="0.6")[0] == 200
    assert "cannot be kept" in client.view("promises", until="cannot be kept")
    assert client.act("promises", "conceal", public="town.csv", low="0.1", high="0.6")[0] == 200
    assert "240 of 720 people" in client.view("promises", until="240 of 720 people")
    assert kept_job(people)["conceal"] == {"public": "town.csv", "low": 0.1, "high": 0.6}
    assert "nothing to compare" in client.view("explore")
    assert client.act("decide", "make")[0] == 200
    page = client.view("decide", until="The rest of the report", seconds=120)
    assert "kept as stated" in page
    assert "an attacker who holds the public table" in page
    fields = {"release": "out", "report": "r.html", "job": "job.toml", "decision": "publish", "by": "me"}
    assert client.act("decide", "save", **fields)[0] == 200
    client.view("decide", until="Saved.")
    subprocess.run([sys.executable, "-m", "jali", "publish", "job.toml", "-o", "again"], cwd=people.parent, check=True,
                   capture_output=True)  # fmt: skip
    one, other = (jali.load(people.parent / name) for name in ("out", "again"))
    assert one.principles == other.principles == (jali.DeltaPresence(0.1, 0.6),)
    assert client.act("promises", "method", value="partition")[0] == 200
    assert kept_job(people)["principles"] == before["principles"]
    assert "conceal" not in kept_job(people)


def test_several_columns_get_a_role_in_one_step(studio: Started) -> None:
    """Those that are listed; one that is not there changes nothing; a person is one column."""
    client = studio.client().enter()
    client.view("data")
    for columns, value in (([], "other"), (["age", "nobody"], "other"), (["age", "zip"], "person"),
                           (["age"], "king"), ([["age"]], "other")):  # fmt: skip
        assert client.act("data", "roles", columns=columns, value=value)[0] == 422, columns
    assert client.act("data", "roles", columns=["zip", "disease"], value="left out")[0] == 200
    assert client.state()["history"][1:] == ["2 columns: not published"]
    assert client.act("data", "allow", column="nobody", value="why")[0] == 422


def test_a_column_is_read_as_another_kind(studio: Started, people: Path) -> None:
    """Where all of its values are of that kind; then jali chooses a hierarchy for them, and the job says so."""
    client = studio.client().enter()
    client.view("data")
    for column, value in (("zip", "date"), ("age", "king"), ("nobody", "text"), ("name", "text")):
        status, told = client.act("data", "kind", column=column, value=value)
        assert status == 422, (column, value)
        assert "\n" not in told["error"]
        assert "10000" not in told["error"]
    assert client.act("hierarchies", "build", column="age", kind="bands", bands="10")[0] == 200
    assert client.act("data", "kind", column="age", value="text")[0] == 200
    job = kept_job(people)
    assert job["types"]["age"] == "text"
    assert job["quasi"]["age"] is True
    assert jali.job.Job.of(job, people.parent).table()["age"].kind == "text"


def test_a_wide_table_can_be_searched(start: Callable[..., Started], tmp_path: Path) -> None:
    """More columns than one sees at a glance have a field, and a role for all that it leaves; few have none."""
    names = [f"lab{i}" for i in range(30)]
    rows = [",".join(str((i * j) % 7) for j in range(1, 31)) for i in range(60)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    page = start("wide.csv").client().enter().view("data", until='id="role-29"')
    assert 'data-narrows="columns"' in page
    assert page.count('data-own="lab') == 30


def test_a_hierarchy_of_too_many_values_shows_its_levels_and_says_so() -> None:
    """The tree begins above the values; nothing that would be refused is offered."""
    from jali.studio.views.hierarchies import _files, _levels
    from jali.studio.views.tree import beside

    def level(labels: list[str], people: list[int], parents: list[int], nodes: int) -> dict[str, Any]:
        return {"labels": labels, "people": people, "parents": parents, "nodes": nodes, "smallest": 1, "empty": 0}

    levels = [level([], [], [], 130_000), level(["1*", "2*"], [60_000, 70_000], [0, 0], 2),
              level(["*"], [130_000], [], 1)]  # fmt: skip
    found = {"levels": levels, "people": 130_000, "made_by": "", "note": ""}
    drawn = beside(0, "code", found, {"level": "0", "node": "1"}, preview=True)
    assert "code has too many values to list" in drawn
    assert "A node of level 1: 70,000 people" in drawn
    assert "<form" not in drawn
    told = _levels("code", found, True) + _files("code", large=True)
    assert "too many to list" in told
    assert "Add one above" not in told
    assert "data-export" not in told


def test_every_promise_of_a_job_can_be_chosen() -> None:
    """But that of conceal, which is the method's own."""
    from jali.principles.base import from_dict, known_principles

    ours = {name for name, kind in known_principles().items() if kind.__module__.startswith("jali.")}
    assert set(WORDS) == ours - {"DeltaPresence"}
    for name, words in WORDS.items():
        made = from_dict({"name": name, **words.first})
        assert set(words.fields) <= set(type(made).__dataclass_fields__)


def test_every_builder_of_a_job_can_be_chosen() -> None:
    """But a file, which is imported; and what its fields hold at first is a hierarchy."""
    from jali.job import HIERARCHIES, Job
    from jali.studio.views.hierarchies import KINDS
    from jali.studio.views.view import typed

    assert set(KINDS) == set(HIERARCHIES) - {"taxonomy"}
    for kind, (_, _, first) in KINDS.items():
        given = {kind: True} | {key: typed(HIERARCHIES[kind][key], text) for key, text in first.items()}
        Job.of({"input": "a.csv", "quasi": {"x": given}}, Path())
