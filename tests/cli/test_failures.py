"""When something breaks in the middle: a line, an exit code, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jali
from jali.errors import InternalError

BEFORE = ["job.toml", "nationality.csv", "patients.csv"]


def no_space(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "where", ["os.fsync", "pyarrow.csv.write_csv", "json.dumps", "os.replace", "jali.core.files.locked"]
)
def test_a_full_disk_leaves_nothing_behind(
    ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Wherever the disk fills up while a release is written, there is a line and no file."""
    monkeypatch.setattr(where, lambda *a, **k: no_space())
    assert "No space left on device" in refused(ward.jali("publish", "job.toml"))
    assert ward.names() == BEFORE


@pytest.mark.parametrize(
    "command", [["init", "patients.csv", "-o", "new"], ["hierarchy", "job.toml", "age", "-o", "new"]]
)
@pytest.mark.parametrize("where", ["os.replace", "jali.core.files.locked"])
def test_a_full_disk_and_single_files(
    ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch, command: list[str], where: str
) -> None:
    """The commands that write one file write it whole or not at all."""
    monkeypatch.setattr(where, lambda *a, **k: no_space())
    assert "No space left on device" in refused(ward.jali(*command))
    assert ward.names() == BEFORE


@pytest.mark.parametrize("problem", [OSError(errno.EACCES, "Permission denied"), OSError(errno.EROFS, "Read-only")])
def test_no_permission_to_write(ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch, problem: OSError) -> None:
    """A place that may not be written to is named, with the system's reason."""

    def refuse(*arguments: object, **options: object) -> None:
        raise problem

    monkeypatch.setattr("jali.core.files.locked", refuse)
    line = refused(ward.jali("publish", "job.toml"))
    assert "out" in line
    assert str(problem.strerror) in line
    assert ward.names() == BEFORE


@pytest.mark.slow
def test_a_full_disk_for_the_output_itself(published: Any) -> None:
    """`jali audit out > /dev/full` says what is wrong and does not end with 0."""
    if not Path("/dev/full").exists():
        pytest.skip("the system has no /dev/full")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jali", "audit", "out"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "where", ["written._write_table", "store._write_text", "written.digest_of", "store.put_folder"]
)
def test_a_crash_while_saving_leaves_the_old_release(
    published: Any, refused: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """With --overwrite too, the old release is there, whole, until the new one is."""

    def crash(*arguments: object, **options: object) -> None:
        raise RuntimeError("13053 Umeko")

    monkeypatch.setattr(f"jali.releases.{where}", crash)
    line = refused(published.jali("publish", "job.toml", "--overwrite"), code=1)
    assert "please report" in line
    monkeypatch.undo()
    os.chdir(published.folder)
    assert jali.load("out").principles[0] == jali.KAnonymity(4)
    assert published.names() == sorted([*BEFORE, "out"])


KILLED_WHILE_SAVING = """
import os, sys
from jali.releases import store
put = store.put_folder
def die(*arguments):
    if {when!r} == "after":
        put(*arguments)
    os._exit(9)
store.put_folder = die
from jali.cli.app import main
sys.argv = ["jali", "publish", "job.toml", "--overwrite"]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_while_saving_leaves_a_whole_release(published: Any, when: str) -> None:
    """Not even `kill -9` gives half a release: it is the old one or the new one."""
    published.edit("job.toml", "k = 4", "k = 6")
    script = KILLED_WHILE_SAVING.format(when=when)
    done = subprocess.run([sys.executable, "-c", script], cwd=published.folder, check=False)
    assert done.returncode == 9
    assert jali.load("out").principles[0] == jali.KAnonymity(4 if when == "before" else 6)
    assert jali.audit("out").holds


def test_a_bug_is_a_line_without_values(ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What jali did not foresee gets its kind and place, not its text: that could hold original values."""

    def crash(*arguments: object, **options: object) -> None:
        raise ValueError("cannot convert 'Umeko' to a number")

    monkeypatch.setattr("jali.job.read", crash)
    line = refused(ward.jali("publish", "job.toml", "--show-values"), code=1)
    assert re.search(r"a bug \(ValueError in job\.py:\d+\)", line)
    assert "please report" in line
    assert "Umeko" not in line


@pytest.mark.slow
def test_jali_debug_gives_developers_the_traceback(ward: Any) -> None:
    """With JALI_DEBUG=1 the error comes through as it is."""
    done = ward.process("publish", "nowhere.toml", env=os.environ | {"JALI_DEBUG": "1"})
    assert "Traceback" in done.stderr
    assert "InputError" in done.stderr


def test_an_internal_error_asks_to_be_reported(ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A promise of jali's own that was broken is exit code 1, and nothing was written."""

    def broken(self: object) -> None:
        raise InternalError("the release does not keep KAnonymity(4)")

    monkeypatch.setattr("jali.releases.base.Release.verify", broken)
    assert "please report" in refused(ward.jali("publish", "job.toml"), code=1)
    assert ward.names() == BEFORE


def test_no_memory(ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that does not fit is a line too."""

    def crash(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("jali.job.read", crash)
    assert "not enough memory" in refused(ward.jali("publish", "job.toml"), code=1)


@pytest.mark.parametrize(
    "where", ["jali.job.read", "jali.releases.written._write_table", "jali.search.lattice.lattice.Lattice.best"]
)
def test_ctrl_c_is_exit_code_130(ward: Any, refused: Any, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Whenever it comes, it ends with one line and leaves nothing behind."""

    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    def interrupt_machine_code(*arguments: object, **options: object) -> None:
        raise SystemError("a kernel returned a result with an exception set") from KeyboardInterrupt()

    for stopped in (interrupt, interrupt_machine_code):
        monkeypatch.setattr(where, stopped)
        assert refused(ward.jali("publish", "job.toml"), code=130) == "jali: error: interrupted"
        assert ward.names() == BEFORE


SLOW = """
import sys, time
from jali.releases import written
write = written._write_table
def slowly(*arguments):
    digest = write(*arguments)
    print("writing", flush=True)
    time.sleep(60)
    return digest
written._write_table = slowly
from jali.cli.app import main
sys.argv = ["jali", "publish", "job.toml"]
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on Unix")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_writing_leaves_nothing_behind(ward: Any, number: int, code: int) -> None:
    """A real process that is interrupted, or asked to end, takes its unfinished files with it."""
    command = [sys.executable, "-c", SLOW]
    with subprocess.Popen(
        command, cwd=ward.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in said
    assert ward.names() == BEFORE


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes break as on Unix")
@pytest.mark.parametrize("command", [["audit", "out"], ["hierarchy", "job.toml", "age", "-q"], ["--help"]])
def test_a_reader_that_goes_away_is_no_reason_to_complain(published: Any, command: list[str]) -> None:
    """`jali … | head` is quiet."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "jali", *command], cwd=published.folder, stdout=writer, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.slow
def test_a_terminal_without_the_signs_shows_something(published: Any) -> None:
    """Output in ASCII neither fails nor breaks JSON."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert published.process("audit", "out", env=environment).returncode == 0
    done = published.process("query", "out", "condition = 'Grün'", "--json", env=environment)
    assert json.loads(done.stdout)["condition"] == "condition = 'Grün'"


@pytest.mark.slow
def test_no_progress_in_a_pipe(ward: Any) -> None:
    """Nothing but notes comes on stderr where it is no terminal, and nothing at all with --quiet."""
    loud, quiet = ward.process("publish", "job.toml"), ward.process("publish", "job.toml", "-q", "--overwrite")
    assert all(line.startswith("note: ") for line in loud.stderr.splitlines())
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout


def test_quiet_means_no_bar_on_a_terminal_either(ward: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """--quiet gives the search a step that draws nothing."""
    steps: list[Any] = []
    original = jali.generalize

    def spy(*arguments: Any, on_step: Any, **options: Any) -> Any:
        steps.append(on_step)
        return original(*arguments, on_step=on_step, **options)

    monkeypatch.setattr(jali, "generalize", spy)
    ward.jali("publish", "job.toml", "--dry-run")
    ward.jali("publish", "job.toml", "--dry-run", "-q")
    assert steps[0] is None
    assert steps[1](1, 2) is None
