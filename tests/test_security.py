"""Input cannot reach what it must not reach: shells, command lines, other folders, or the eye of who reads a file."""

from __future__ import annotations

import ast
import json
import re
import stat
import unicodedata
import zipfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

from tracebridge import MarkovChain, RationalMatrix, RationalVector, check, compare, read_traces
from tracebridge.cli import run
from tracebridge.errors import TracebridgeError
from tracebridge.pctl.printer import quote

ROOT = Path(__file__).parent.parent

#: Reads as another name where its controls are obeyed, and would be a command where a shell saw it.
HOSTILE = "$(touch owned)`touch owned`; \u202egnp.exe\u2066\u200f\u061c\ufeff\u200b"

#: Functions that start a shell, run text, or unpack to disk; and modules that make objects of any class.
FORBIDDEN = {"system", "popen", "eval", "exec", "extractall", "extract"}
FORBIDDEN_MODULES = {"pickle", "shelve", "marshal", "dill", "cloudpickle"}


def test_no_module_starts_a_shell_runs_text_unpacks_archives_or_loads_pickles():
    modules = sorted((ROOT / "src").rglob("*.py"))
    assert len(modules) > 100
    words = re.compile(rf"\b({'|'.join(sorted(FORBIDDEN | FORBIDDEN_MODULES | {'shell'}))})\b")
    for path in modules:
        text = path.read_text(encoding="utf-8")
        if not words.search(text):
            continue  # parsing every module takes long
        for node in ast.walk(ast.parse(text)):
            where = path.name, getattr(node, "lineno", 0)
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                assert name not in FORBIDDEN, where
                assert "shell" not in {keyword.arg for keyword in node.keywords}, where
            elif isinstance(node, ast.Import):
                assert not FORBIDDEN_MODULES & {each.name for each in node.names}, where
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in FORBIDDEN_MODULES, where


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What `assess` and the verbs after it write of runs and properties with such names, in a folder of its own."""
    place = tmp_path_factory.mktemp("hostile")
    steps = [{"kind": "tool", "name": HOSTILE}, {"kind": "tool", "name": "search"}]
    common = {"termination": HOSTILE, "model": HOSTILE, "attributes": {HOSTILE: HOSTILE}, "steps": steps}
    rows = [
        {"trace_id": f"r{i}{HOSTILE}", "task_id": f"t{i % 4}{HOSTILE}", "outcome": "success", **common}
        for i in range(8)
    ]
    (place / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = HOSTILE.replace("\\", "")
    (place / "my.props").write_text(
        f'//@ requirement R{named}\n"p{named}": P>=0.1 [ F "{named}" ];\n"b": P=? [ F "success" ];\n', encoding="utf-8"
    )
    light = ["--engine", "closed-form", "--draws", "20", "--futures", "0", "--bootstrap", "0"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        files = ["--certificate-replicates", "19", "--junit", "junit.xml", "--summary", "summary.md"]
        assert run(["assess", "runs.jsonl", "my.props", "-o", "out", *light, *files]) in {0, 4}
        assert run(["gate", "out/evidence.json", "--summary", "gate.md", "--junit", "gate.xml"]) in {0, 4}
        for form in ("yaml", "mermaid"):
            assert run(["gsn", "out/evidence.json", "--to", form, "-o", f"gsn.{form}"]) == 0
        assert run(["export", "out/chain.json", "--to", "all", "-o", "exported"]) == 0
    return place


def test_no_file_holds_characters_that_hide_or_reorder_names(folder):
    """Properties are kept as they were given, and UMB is no text; everywhere else such characters are escaped."""
    written = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".props", ".umb"}]
    assert len(written) > 15
    for path in written:
        text = path.read_text(encoding="utf-8")
        hidden = {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}} - {"\n", "\t"}
        assert not hidden, path.name
    for name in ("out/report.html", "out/summary.md", "junit.xml", "gate.md", "gsn.yaml", "exported/prism/model.prism"):
        assert "202e" in (folder / name).read_text(encoding="utf-8"), name  # told, not dropped


def test_no_name_is_run_as_a_command(folder):
    assert not [path for path in folder.rglob("owned*") if path.is_file()]


def test_no_name_reaches_the_command_line_of_prism(folder, tmp_path, monkeypatch):
    """A program in the place of PRISM writes down how it was called: its arguments are ours, word by word."""
    program, called = tmp_path / "prism", tmp_path / "called"
    program.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo "PRISM version 4.8.1" && exit 0\n'
        f'printf "%s\\n" "$@" >> {called}\nexit 1\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.chdir(tmp_path)
    from tracebridge.checking.models import read_model

    chain = read_model(folder / "out" / "chain.json").chain
    results = check(chain, folder / "my.props", engines=["prism"], prism=program)
    assert [str(result.verdict) for result in results] == ["error"] * len(results)
    words = called.read_text().splitlines()
    assert words
    assert all(word.isascii() and not set(word) & set("$`;() ") for word in words), words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["called", "prism"]


@pytest.mark.storm
def test_a_name_is_never_read_as_a_part_of_a_formula():
    """Each name would change the formula, or the model, if its quotes ended it: then the value would be another."""
    names = ['a" | true | "b', 'x"] | P>=0 [ F "success', 'end; module m2 // "', HOSTILE]
    n = len(names)
    rows = [[Fraction(0)] * (n + 2) for _ in range(n + 2)]
    for i in range(n):
        rows[i][i + 1 if i + 1 < n else n] += Fraction(1, 2)
        rows[i][n + 1] += Fraction(1, 2)
    rows[n][n] = rows[n + 1][n + 1] = Fraction(1)
    ends = {"success": [i == n for i in range(n + 2)], "failure": [i == n + 1 for i in range(n + 2)]}
    own = {name: [i == k for i in range(n + 2)] for k, name in enumerate(names)}
    chain = MarkovChain(
        states=(*names, "success", "failure"),
        transitions=RationalMatrix.from_rows([{j: x for j, x in enumerate(row) if x} for row in rows]),
        initial=RationalVector.from_fractions([1, *[0] * (n + 1)]),
        labels={**ends, **own},
    )
    formulas = "".join(f"P=? [ F {quote(name)} ];\n" for name in names)
    agreements = compare(check(chain, formulas, engines=["closed-form", "storm"], exact=True))
    for k, agreement in enumerate(agreements):
        assert [result.value.value for result in agreement.results] == [Fraction(1, 2**k)] * 2


@pytest.mark.parametrize("name", ["../../outside.json", "/outside.json", "samples/../../outside.json"])
def test_members_of_an_archive_never_leave_it(tmp_path, name):
    place = tmp_path / "in" / "here"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {}}))
        archive.writestr(name, "{}")
    before = sorted(tmp_path.rglob("*"))
    with suppress(TracebridgeError):  # it holds no run
        list(read_traces(place / "log.eval"))
    assert sorted(tmp_path.rglob("*")) == before
