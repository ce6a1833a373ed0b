"""Ctrl-C while Storm hangs, through the real command line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.storm,
    pytest.mark.skipif(shutil.which("ps") is None, reason="ps is needed to see the processes"),
]

MODEL = """{"kind": "markov-chain", "schema_version": 1, "states": ["go", "success"], "initial": {"go": 1.0},
"transitions": {"go": {"go": 0.5, "success": 0.5}, "success": {"success": 1.0}}, "labels": {}, "rewards": {}}"""

FOREVER = 'P=? [ F<=1000000000000 "success" ];'


def processes() -> dict[int, tuple[int, float, str]]:
    """Parent, seconds of CPU time and command of every process that is no zombie."""
    columns = ["pid", "ppid", "stat", "time", "args"]
    listing = subprocess.run(
        [shutil.which("ps") or "ps", "-A", "-ww", *(part for name in columns for part in ("-o", f"{name}="))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = {}
    for line in listing.splitlines():
        pid, parent, state, used, command = line.split(maxsplit=4)
        if not state.startswith("Z"):
            found[int(pid)] = (int(parent), _seconds(used), command)
    return found


def _seconds(used: str) -> float:
    """``[[days-]hours:]minutes:seconds``."""
    days, _, clock = used.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + 86_400 * int(days or 0)


def storm_of(client: int) -> list[tuple[int, float]]:
    return [
        (pid, used)
        for pid, (parent, used, command) in processes().items()
        if parent == client and "storm_worker" in command
    ]


def wait_for_storm(client: subprocess.Popen[str], *, busy: float) -> int:
    """The Storm process of the client, once it has computed for so many seconds."""
    for _ in range(600):
        for pid, used in storm_of(client.pid):
            if used >= busy:
                return pid
        if client.poll() is not None:
            pytest.fail(f"it ended by itself: {client.communicate()}")
        time.sleep(0.1)
    pytest.fail("Storm never computed")


def heeding_ctrl_c() -> None:
    """A process that a shell started in the background ignores Ctrl-C, and so do its children; this one is not to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("busy", [0, 3], ids=["while Storm starts", "while Storm computes"])
def test_ctrl_c_ends_a_check_that_hangs_in_storm(tmp_path: Path, busy: float) -> None:
    (tmp_path / "model.json").write_text(MODEL)
    (tmp_path / "forever.props").write_text(FOREVER)
    arguments = ["check", "model.json", "forever.props", "--engine", "storm"]
    client = subprocess.Popen(
        [sys.executable, "-m", "tracebridge", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heeding_ctrl_c,  # noqa: PLW1509 - the test runs no threads
    )
    try:
        storm = wait_for_storm(client, busy=busy)
        sent = time.monotonic()
        os.killpg(client.pid, signal.SIGINT)  # as the terminal does
        output, errors = client.communicate(timeout=30)
        elapsed = time.monotonic() - sent
    finally:
        client.kill()
    assert client.returncode == 130
    assert elapsed < 1 + 2 * (os.getloadavg()[0] > 2)
    assert output == ""
    assert errors.strip() == "interrupted"
    assert storm not in processes()
