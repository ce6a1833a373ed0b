"""The manual is true: its code blocks run, in order, in one empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.mark.storm
@pytest.mark.xdist_group("readme")
@pytest.mark.parametrize("position", range(len(BLOCKS)))
def test_block(folder: Path, position: int) -> None:
    for earlier in range(position + 1):  # a block may use what earlier ones wrote
        mark = folder / f".block-{earlier}-ran"
        if earlier == position or not mark.exists():
            execute(*BLOCKS[earlier], folder)
            mark.touch()


def execute(language: str, code: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", code] if language == "bash" else [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{code}\n--- exit {done.returncode}\n{done.stdout}\n{done.stderr}"


def test_there_are_blocks_of_both_kinds() -> None:
    assert {language for language, _ in BLOCKS} == {"bash", "python"}


def test_set_up_is_two_commands() -> None:
    (setup,) = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    first, second = setup.strip().splitlines()
    assert "tracebridge demo" in first
    assert "pytest" in second
