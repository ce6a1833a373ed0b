"""Shell completion: the scripts are click's, shells take them, and verbs, options and files are completed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import get_completion_class

from tracebridge.cli import run
from tracebridge.cli.app import VERBS, app

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_that_of_click(shell, capsys):
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    expected = get_completion_class(shell)(app, {}, "tracebridge", "_TRACEBRIDGE_COMPLETE").source()
    assert script.rstrip("\n") == expected.rstrip("\n")
    assert run(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["script"] == expected
    if (program := shutil.which(shell)) is not None:
        checked = subprocess.run([program, "-n"], input=script, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_another_shell_is_refused(capsys):
    assert run(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err


def test_without_a_shell_it_says_which_there_are(capsys):
    assert run(["completion"]) == 2
    told = capsys.readouterr().err
    assert all(f"\n  {shell}" in told for shell in SHELLS)
    assert "\\t" not in told


def completed(words: str, monkeypatch, capsys) -> set[str]:
    monkeypatch.setenv("_TRACEBRIDGE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert run([]) == 0
    return set(capsys.readouterr().out.splitlines())


def test_verbs_options_and_files_are_completed(monkeypatch, capsys):
    assert completed("tracebridge ", monkeypatch, capsys) == {f"plain,{verb}" for verb in VERBS}
    assert completed("tracebridge gs", monkeypatch, capsys) == {"plain,gsn"}
    assert completed("tracebridge --v", monkeypatch, capsys) == {"plain,--version"}
    assert completed("tracebridge check --ju", monkeypatch, capsys) == {"plain,--junit"}
    assert completed("tracebridge check --engine s", monkeypatch, capsys) == {"plain,storm"}


def test_every_argument_that_is_a_file_is_completed_as_one():
    """A completion that knows nothing of files takes them away from the shell's own."""
    context = click.Context(app)
    waiting = [(name, app.get_command(context, name)) for name in app.list_commands(context)]
    seen = 0
    while waiting:
        name, command = waiting.pop()
        if isinstance(command, click.Group):
            waiting += [
                (f"{name} {each}", command.get_command(context, each)) for each in command.list_commands(context)
            ]
            continue
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                seen += 1
                assert isinstance(parameter.type, click.Path | click.Choice) or name == "study", (
                    f"{name} {parameter.name}"
                )
    assert seen > 15


def test_bash_completes_in_earnest(tmp_path):
    """The script in a shell, with the program that it calls on the path."""
    program = tmp_path / "tracebridge"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tracebridge "$@"\n')
    program.chmod(0o755)
    session = (
        'eval "$(tracebridge completion bash)"; COMP_WORDS=(tracebridge tri); COMP_CWORD=1; '
        '_tracebridge_completion tracebridge; printf "%s" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    done = subprocess.run(
        [bash, "-c", session], capture_output=True, text=True, check=True, env=environment, cwd=Path.home()
    )
    assert done.stdout == "trials"
