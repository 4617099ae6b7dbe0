"""Places to read from and to write to: one process at a time, checked before the work, with nothing left behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import jali
from jali.core import files as locking
from jali.core import files as reading
from jali.core import files as writing
from jali.errors import InputError

BEFORE = ["job.toml", "nationality.csv", "patients.csv"]
unix = pytest.mark.skipif(sys.platform == "win32", reason="signals, pipes and devices as on Unix")

HOLDING = """
import sys, time
from jali.core.files import hold
with hold(sys.argv[1]) as place:
    place.building.mkdir()
    (place.building / "new").mkdir()
    (place.building / "new" / "data.csv").write_text("half a row")
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def another_process(folder: Path, target: str = "out") -> Iterator[subprocess.Popen[str]]:
    """A process that is building something for a target."""
    command = [sys.executable, "-c", HOLDING, target]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def never(*arguments: object, **options: object) -> Any:
    raise AssertionError("the work began")


@unix
def test_the_second_of_two_processes_is_told_before_its_work(
    ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --overwrite too, and by another way to the same folder; nothing of the first one's work is touched."""
    with another_process(ward.folder):
        monkeypatch.setattr("jali.job.read", never)
        (ward / "way").symlink_to(ward.folder)
        for command in (["publish", "job.toml"], ["publish", "job.toml", "--overwrite", "-o", "way/out"]):
            assert "another process is writing to" in refused(ward.jali(*command))
        assert (ward / ".out.jali-new" / "new" / "data.csv").read_text() == "half a row"


@unix
def test_what_a_killed_process_leaves_is_cleaned_by_the_next_save(ward: Any) -> None:
    """Neither its lock nor its hidden folder stands in the way, and both are gone afterwards."""
    with another_process(ward.folder) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert {".out.jali-lock", ".out.jali-new"} <= set(ward.names())
    assert ward.jali("publish", "job.toml", "-q").exit_code == 0
    assert ward.names() == sorted([*BEFORE, "out"])


@unix
def test_the_second_of_two_saves_is_told(ward: Any) -> None:
    """From Python too, also from another thread of the same process."""
    release = jali.load(_published(ward))
    said: list[str] = []

    def second() -> None:
        try:
            release.save("out", overwrite=True)
        except InputError as problem:
            said.append(str(problem))

    with writing.hold("out"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        release.save("out", overwrite=True)  # who holds the place may write
    assert said == ["another process is writing to out; wait until it has finished, or choose another place"]
    second()
    assert len(said) == 1


def test_what_failed_while_a_place_is_held_can_be_tried_again(tmp_path: Path) -> None:
    """A file that could not be finished leaves nothing that stands in the way of the next attempt."""

    def fail(path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise OSError(28, "No space left on device")

    with writing.hold_file(tmp_path / "page.html", overwrite=False):
        with pytest.raises(InputError, match="No space left"):
            writing.put_file(tmp_path / "page.html", fail, overwrite=False)
        writing.put_content(tmp_path / "page.html", "whole", overwrite=False)
        writing.put_content(tmp_path / "page.html", "again", overwrite=True, private=True)
    assert os.listdir(tmp_path) == ["page.html"]
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "again"
    assert sys.platform == "win32" or (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600


def _published(ward: Any) -> Path:
    assert ward.jali("publish", "job.toml", "-q").exit_code == 0
    return Path("out")


def test_what_somebody_else_put_there_stays(ward: Any) -> None:
    """A folder with the hidden name but with other contents is nobody's half-built release."""
    (ward / ".out.jali-new").mkdir()
    (ward / ".out.jali-new" / "diary.txt").write_text("mine", encoding="utf-8")
    assert ward.jali("publish", "job.toml", "-q").exit_code == 0
    assert ward.names() == sorted([*BEFORE, ".out.jali-new", "out"])
    assert (ward / ".out.jali-new" / "diary.txt").read_text(encoding="utf-8") == "mine"


def test_a_file_system_without_locks(ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release is saved as ever; what lies about is left alone, and a target that changed meanwhile is noticed."""
    monkeypatch.setattr(locking, "lock", lambda handle: False)
    (ward / ".out.jali-new" / "new").mkdir(parents=True)
    assert ward.jali("publish", "job.toml", "-q").exit_code == 0
    assert ward.names() == sorted([*BEFORE, ".out.jali-new", "out"])
    build = jali.releases.store._build  # type: ignore[attr-defined]

    def meanwhile(*arguments: Any) -> None:
        build(*arguments)
        (ward / "out").rename(ward / "gone")
        (ward / "out").mkdir()

    monkeypatch.setattr("jali.releases.store._build", meanwhile)
    assert "was replaced meanwhile" in refused(ward.jali("publish", "job.toml", "-q", "--overwrite"))
    assert ward.names() == sorted([*BEFORE, ".out.jali-new", "gone", "out"])


def test_a_release_that_was_moved_aside_is_put_back(ward: Any, monkeypatch: pytest.MonkeyPatch, refused: Any) -> None:
    """Where two folders cannot be exchanged, a crash between the two renames leaves the old one for the next save."""
    _published(ward)
    (ward / ".out.jali-new" / "new").mkdir(parents=True)
    (ward / "out").rename(ward / ".out.jali-new" / "old")
    assert "not empty" in refused(ward.jali("publish", "job.toml", "-q"))
    assert jali.load("out").principles[0] == jali.KAnonymity(4)
    assert ward.names() == sorted([*BEFORE, "out"])


TARGETS: dict[str, list[str]] = {
    "publish": ["publish", "job.toml", "-o", "{}"],
    "publish --private": ["publish", "angel.toml", "-o", "fresh", "--private", "{}.parquet"],
    "report": ["report", "out", "-o", "{}"],
    "frontier": ["frontier", "job.toml", "-o", "{}"],
    "frontier --resume": ["frontier", "job.toml", "--resume", "{}"],
    "sample": ["sample", "out", "-o", "{}.csv"],
    "hierarchy": ["hierarchy", "job.toml", "age", "-o", "{}"],
    "init": ["init", "patients.csv", "-o", "{}"],
    "profile": ["profile", "patients.csv", "-o", "{}"],
    "demo": ["demo", "-o", "{}"],
    "extend": ["extend", "out", "job.toml", "--private", "keys.parquet", "-o", "{}"],
    "repair": ["repair", "out", "job.toml", "-o", "{}"],
    "inject": ["inject", "out", "job.toml", "-o", "{}"],
    "disclosure --plot": ["disclosure", "out", "--plot", "{}.svg"],
    "reproduce": ["reproduce", "l-diversity", "-o", "{}"],
}


@pytest.mark.parametrize("case", TARGETS)
def test_every_target_is_checked_before_the_work(
    published: Any, refused: Any, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """A file that stands where a folder must, and another process that writes to the target, are said at once."""
    text = (published / "job.toml").read_text(encoding="utf-8")
    (published / "angel.toml").write_text('method = "angel"\n' + text, encoding="utf-8")
    before = published.names()
    for work in ("jali.job.read", "jali.releases.base.store.read", "jali.datasets.census", "jali.reproduce.importlib",
                 "jali.risk.profile.whole"):  # fmt: skip
        monkeypatch.setattr(work, never)
    below = "patients.csv/x"
    assert "patients.csv" in refused(published.jali(*(part.format(below) for part in TARGETS[case])))
    target = TARGETS[case][-1].format("taken")
    if case in ("publish --private", "frontier --resume"):
        target = "taken" + (".parquet" if "private" in case else "")
    with locking.locked(published / f".{target}.jali-lock"):
        line = refused(published.jali(*(part.format("taken") for part in TARGETS[case])))
    assert "another process is writing to" in line
    assert published.names() == before


@unix
@pytest.mark.parametrize("place", ["input", "job", "taxonomy", "knowledge"])
@pytest.mark.parametrize("what", ["/dev/zero", "pipe"])
def test_what_never_ends_is_refused(
    published: Any, refused: Any, monkeypatch: pytest.MonkeyPatch, place: str, what: str
) -> None:
    """A device has no end, and a pipe that nobody writes to no beginning."""
    monkeypatch.setattr(reading, "PATIENCE", 0.05)
    if what == "pipe":
        os.mkfifo(published / "pipe")
        what = str(published / "pipe")
    if place in ("input", "taxonomy"):
        published.edit("job.toml", "patients.csv" if place == "input" else "nationality.csv", what)
    command = ["publish", "job.toml", "--dry-run"]
    if place == "job":
        command = ["publish", what]
    elif place == "knowledge":
        command = ["disclosure", "out", "--knowledge", what]
    line = refused(published.jali(*command))
    assert ("is a device" if what.startswith("/dev") else "nobody writes to the pipe") in line


@unix
def test_a_pipe_whose_writer_takes_its_time_is_read(ward: Any) -> None:
    """`jali audit <(slow command)` waits for it, and a writer that says nothing at all is an empty file."""
    os.mkfifo(ward / "pipe")

    def write(data: str) -> None:
        with open(ward / "pipe", "w", encoding="utf-8") as pipe:
            pipe.write(data[:30])
            pipe.flush()
            pipe.write(data[30:])

    text = (ward / "patients.csv").read_text(encoding="utf-8")
    for data, code in ((text, 0), ("", 2)):
        writer = threading.Timer(0.2, write, [data])
        writer.start()
        result = ward.jali("audit", "pipe", "--quasi", "age", "--sensitive", "condition")
        writer.join()
        assert result.exit_code == code, result.stderr
    assert "is empty" in result.stderr


def test_zeros_from_standard_input_are_refused() -> None:
    """`jali audit - < /dev/zero` ends."""
    zeros = io.BytesIO(bytes(5 << 20))
    with pytest.raises(InputError, match="nothing but zeros"):
        reading.drained("standard input", lambda: zeros.read(1 << 16))
    assert reading.drained("x", io.BytesIO(b"\0" * 9 + b"a" * (2 << 20)).read) == b"\0" * 9 + b"a" * (2 << 20)


def test_a_tilde_in_a_job_is_the_home_folder(ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every path of a job; a home that is not there is said."""
    home = ward / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("patients.csv", "nationality.csv"):
        (ward / name).rename(home / name)
        ward.edit("job.toml", f'"{name}"', f'"~/{name}"')
    ward.edit("job.toml", '"out"', '"~/results/out"')
    assert ward.jali("publish", "job.toml", "-q").exit_code == 0
    assert jali.audit(home / "results" / "out").holds
    assert sorted(os.listdir(ward.folder)) == ["home", "job.toml"]
    ward.edit("job.toml", "~/results", "~nobody-of-this-name/x")
    assert "no such home folder" in refused(ward.jali("publish", "job.toml"))


STARTING = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["jali", "audit", "nowhere"]
runpy.run_module("jali", run_name="__main__")
"""


@unix
@pytest.mark.parametrize("module", ["jali.cli.app", "jali.cli.reading", "jali.releases.base"])
def test_ctrl_c_while_modules_are_loaded_shows_no_traceback(tmp_path: Path, module: str) -> None:
    """Before the command runs the process ends by the signal; afterwards there is one line."""
    done = subprocess.run(
        [sys.executable, "-c", STARTING.format(module=module)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (-signal.SIGINT, 130)
    assert done.stderr in ("", "jali: error: interrupted\n")


def test_devices_and_pipes_are_not_written_over(published: Any, refused: Any) -> None:
    """As root, replacing /dev/null by a report would harm everybody."""
    if not Path("/dev/null").exists():
        pytest.skip("the system has no /dev/null")
    assert "is a device or a pipe" in refused(published.jali("report", "out", "-o", "/dev/null", "--overwrite"))
    assert not Path("/dev/null").is_file()


def test_cells_that_a_spreadsheet_runs_are_noted_and_quoted(ward: Any) -> None:
    """By an option or a key of the job; the note names columns, not cells."""
    ward.edit("patients.csv", "Cancer", "=HYPERLINK(1)")
    plain = ward.jali("publish", "job.toml", "-o", "plain")
    note = next(line for line in plain.stderr.splitlines() if "spreadsheets run" in line)
    assert "condition" in note
    assert "--spreadsheet-safe" in note
    assert "HYPERLINK" not in note
    assert '"=HYPERLINK' in (ward / "plain" / "data.csv").read_text(encoding="utf-8")
    safe = ward.jali("publish", "job.toml", "-o", "safe", "--spreadsheet-safe")
    assert "quoted, as asked" in safe.stderr
    ward.edit("job.toml", "input", "spreadsheet_safe = true\ninput")
    assert ward.jali("publish", "job.toml", "-o", "keyed", "-q").exit_code == 0
    for name in ("safe", "keyed"):
        assert '"=' not in (ward / name / "data.csv").read_text(encoding="utf-8")
    drawn = [ward.jali("sample", "safe", "-n", "40", *more) for more in ([], ["--spreadsheet-safe"])]
    assert "=HYPERLINK" in drawn[0].stdout
    assert [line for line in drawn[1].stdout.splitlines() if '"=' in line] == []
    assert all("spreadsheets run" in one.stderr for one in drawn)
    assert ward.jali("audit", "safe", "--json").stdout == ward.jali("audit", "plain", "--json").stdout
