"""Finding and running the executable: limits, leftovers, and programs that only have the same name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.checking.prism_stand_in import install

from tracebridge.checking import default_engines
from tracebridge.checking.prism_process import PrismExecutable, find_prism
from tracebridge.errors import EngineError, EngineTimeoutError, UsageError


@pytest.fixture
def bare(monkeypatch, tmp_path) -> Path:
    """A folder that is the whole PATH, but for what a shell script needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("TRACEBRIDGE_PRISM", raising=False)
    return folder


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for_end(pid: int) -> None:
    for _ in range(200):
        if not is_running(pid):
            return
        time.sleep(0.05)
    raise AssertionError(f"{pid} is still running")


def test_nothing_is_found_where_nothing_is(bare):
    assert find_prism() is None
    assert default_engines() == ("closed-form", "storm")


def test_it_is_found_on_the_path(bare):
    path = install(bare)
    assert find_prism() == PrismExecutable(path)
    assert default_engines() == ("closed-form", "storm", "prism")


def test_it_is_found_by_the_environment_and_by_the_folder_it_was_unpacked_to(bare, monkeypatch):
    home = bare.parent / "prism-4.10"
    (home / "bin").mkdir(parents=True)
    path = install(home / "bin")
    monkeypatch.setenv("TRACEBRIDGE_PRISM", str(path))
    assert find_prism() == PrismExecutable(path)
    monkeypatch.delenv("TRACEBRIDGE_PRISM")
    assert find_prism(home) == PrismExecutable(path)
    assert find_prism(path).version() == "4.10.fake"


def test_an_empty_name_in_the_environment_turns_it_off(bare, monkeypatch):
    path = install(bare)
    monkeypatch.setenv("TRACEBRIDGE_PRISM", "")
    assert find_prism() is None
    assert find_prism(path) == PrismExecutable(path)


def test_a_relative_path_is_relative_to_here(bare, monkeypatch):
    path = install(bare)
    monkeypatch.chdir(bare)
    assert find_prism("prism") == PrismExecutable(path)


def test_another_program_called_prism_is_passed_over(bare, monkeypatch):
    install(bare)
    monkeypatch.setenv("FAKE_PRISM", "another program")
    assert find_prism() is None


def test_a_name_that_is_no_executable_is_refused(bare, monkeypatch):
    plain = bare / "notes.txt"
    plain.write_text("")
    for wrong in (bare / "nowhere", plain, bare):
        with pytest.raises(UsageError, match="--prism names"):
            find_prism(wrong)
    monkeypatch.setenv("TRACEBRIDGE_PRISM", str(plain))
    with pytest.raises(UsageError, match="TRACEBRIDGE_PRISM names"):
        find_prism()


def test_what_cannot_be_started_is_an_error(tmp_path):
    broken = tmp_path / "prism"
    broken.write_text("#!/nowhere/at/all\n")
    broken.chmod(0o755)
    with pytest.raises(EngineError, match="cannot be started"):
        PrismExecutable(broken).run([], tmp_path)
    assert PrismExecutable(broken).version() is None


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_the_time_limit_kills_the_program_behind_the_script(tmp_path, monkeypatch):
    executable = PrismExecutable(install(tmp_path))
    told = tmp_path / "pid"
    monkeypatch.setenv("FAKE_PRISM", "hang")
    monkeypatch.setenv("FAKE_PRISM_PIDS", str(told))
    for limit in (2, 30):  # a busy machine may take longer to start it
        with pytest.raises(EngineTimeoutError, match=f"within {limit} s and was stopped"):
            executable.run([], tmp_path, time_limit=limit)
        if told.exists() and told.read_text():
            break
    wait_for_end(int(told.read_text()))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_what_the_program_leaves_running_is_killed_and_not_waited_for(tmp_path, monkeypatch):
    executable = PrismExecutable(install(tmp_path))
    monkeypatch.setenv("FAKE_PRISM", "orphan")
    monkeypatch.setenv("FAKE_PRISM_PIDS", str(tmp_path / "pid"))
    began = time.monotonic()
    run = executable.run([], tmp_path, time_limit=50)
    assert time.monotonic() - began < 30
    assert run.status != 0  # it was given nothing to do
    wait_for_end(int((tmp_path / "pid").read_text()))


def test_only_the_end_of_a_flood_is_kept(tmp_path, monkeypatch):
    executable = PrismExecutable(install(tmp_path))
    monkeypatch.setenv("FAKE_PRISM", "flood")
    run = executable.run([], tmp_path)
    assert len(run.output) <= 8_192
    assert len(run.ending) < 1_000


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    from tests.checking.storm_chains import operator_of, three_transient_states, truth_on

    from tracebridge.checking.prism import PrismSession

    executable = PrismExecutable(install(tmp_path))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    chain = three_transient_states()
    session = PrismSession(chain, exact=False, executable=executable)
    session.evaluate(operator_of('P=? [ F "success" ]'), truth_on(chain))
    monkeypatch.setenv("FAKE_PRISM", "message")
    with pytest.raises(EngineError):
        session.evaluate(operator_of('P=? [ F "success" ]'), truth_on(chain))
    assert not list(scratch.iterdir())
