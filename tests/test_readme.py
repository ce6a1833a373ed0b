"""The short manual is short, its links lead on, and its set-up is two commands; tests/test_docs.py runs its blocks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.manual_blocks import ROOT, blocks_of

README = ROOT / "README.md"
LONGEST = 250


def test_there_are_blocks_of_both_kinds() -> None:
    assert {block.language for block in blocks_of(README)} == {"bash", "python"}


def test_the_result_that_it_opens_with_is_that_of_the_tutorial() -> None:
    """Whose blocks are run, and must print those lines."""
    first = README.read_text(encoding="utf-8").split("```console\n")[1].split("```")[0]
    (command, *lines) = first.splitlines()
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert "\n".join(lines) in tutorial
    assert command.removeprefix("$ ") in tutorial


def test_set_up_is_two_commands() -> None:
    (setup,) = re.findall(r"^```sh\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    first, second = setup.strip().splitlines()
    assert "tracebridge demo" in first
    assert "pytest" in second


def test_the_command_that_it_names_is_the_one_that_its_blocks_run() -> None:
    script = Path(sys.executable).with_name("tracebridge")
    for command in ([script], [sys.executable, "-m", "tracebridge"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("tracebridge, version ")


def test_it_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README.read_text(encoding="utf-8"))
    assert links
    assert not [link for link in links if not (ROOT / link).is_file()]
