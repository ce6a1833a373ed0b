"""Shell completion: shells take the scripts and complete verbs, options, values and files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from tracebridge.cli import run
from tracebridge.cli.app import VERBS, app

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_reads_its_script(shell, capsys):
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert run(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["script"].rstrip("\n") == script.rstrip("\n")
    checked = subprocess.run([found(shell), "-n"], input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def found(shell: str) -> str:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    return program


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


def verbs() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(app)
    waiting = [(name, app.get_command(context, name)) for name in app.list_commands(context)]
    while waiting:
        words, command = waiting.pop()
        if isinstance(command, click.Group):
            waiting += [
                (f"{words} {name}", command.get_command(context, name)) for name in command.list_commands(context)
            ]
        else:
            yield words, command


def test_every_argument_that_is_a_file_is_completed_as_one():
    """A completion that knows nothing of files takes them away from the shell's own."""
    seen = 0
    for words, command in verbs():
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                seen += 1
                assert isinstance(parameter.type, click.Path | click.Choice) or words == "study", (
                    f"{words} {parameter.name}"
                )
    assert seen > 15


def test_every_study_is_completed():
    from tracebridge.cli.study import NAMES
    from tracebridge.studies import ALL, STUDIES

    assert [*STUDIES, ALL] == list(NAMES)


def test_every_option_that_is_a_file_is_completed_as_one():
    seen = 0
    for words, command in verbs():
        for option in command.params:
            if isinstance(option, click.Option) and {"FILE", "PATH", "CHAIN"} & set((option.metavar or "").split("|")):
                items = option.shell_complete(click.Context(command), "")
                assert "file" in {item.type for item in items}, f"{words} {option.opts}"
                seen += 1
    assert seen > 30


#: What is typed, and the command line that Tab makes of it.
TYPED = {
    "tria": "trials",
    "study exponen": "study exponential-limit",
    "check --engine=st": "check --engine=storm",
    "fit x --support obs": "fit x --support observed",
    "check --junit=oth": "check --junit=other.csv",
    "fit my": "fit my runs.jsonl",
}


@pytest.mark.parametrize(
    ("shell", "options", "begin"),
    [
        ("bash", ["--norc", "-i"], 'eval "$(tracebridge completion bash)"'),
        ("zsh", ["-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(tracebridge completion zsh)"'),
    ],
)
def test_a_shell_completes_what_is_typed(shell, options, begin, tmp_path):
    """Keys go to an interactive shell; where nothing is to complete, the program writes down its arguments."""
    program = found(shell)
    said = tmp_path / "said"
    environment = with_program(tmp_path, otherwise=f'echo "$*" >> {said}')
    (tmp_path / "my runs.jsonl").touch()
    (tmp_path / "other.csv").touch()
    keys = [begin, *(f"tracebridge {typed}\t" for typed in TYPED), "exit", ""]
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [program, *options],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env=environment,
        start_new_session=True,
    ):
        os.close(theirs)
        os.write(ours, "\n".join(keys).encode())
        shown = b""
        with suppress(OSError):  # which is how a terminal ends
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    assert said.read_text().splitlines() == list(TYPED.values()), shown.decode()


def test_fish_completes_what_is_typed(tmp_path):
    program = found("fish")
    (tmp_path / "my runs.jsonl").touch()
    (tmp_path / "other.csv").touch()
    asked = {typed: made for typed, made in TYPED.items() if typed != "check --junit=oth"}  # it has no files behind =
    session = "tracebridge completion fish | source;" + "".join(
        f'complete -C "tracebridge {typed}"; echo; ' for typed in [*asked, "ga"]
    )
    done = subprocess.run(
        [program, "-N", "-c", session],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=with_program(tmp_path, otherwise="exit 1"),
    )
    *told, gate = done.stdout.rstrip("\n").split("\n\n")
    for (typed, made), completions in zip(asked.items(), told, strict=True):
        assert [line.partition("\t")[0] for line in completions.splitlines()] == [
            "my runs.jsonl" if typed == "fit my" else made.split(" ")[-1]
        ], typed
    assert gate.split("\t") == ["gate", VERBS["gate"][1]]  # which has a comma


def with_program(folder: Path, *, otherwise: str) -> dict[str, str]:
    """An environment with a program `tracebridge` that completes, and else does something."""
    program = folder / "bin" / "tracebridge"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nif [ -n "$_TRACEBRIDGE_COMPLETE" ] || [ "$1" = completion ]; then\n'
        f'  exec {sys.executable} -m tracebridge "$@"\nfi\n{otherwise}\n'
    )
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(folder), "TERM": "dumb"}
