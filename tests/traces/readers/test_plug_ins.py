"""Readers of other packages, as small distributions on the path: metadata, entry points and a module."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracebridge.cli import run
from tracebridge.errors import TraceError, UsageError
from tracebridge.traces import FORMATS, known_readers, read_traces
from tracebridge.traces.readers.plug_ins import installed_plug_ins

WORDS = '''
from tracebridge.traces import Outcome, Trace
from tracebridge.traces.problems import Location, Problem

class Words:
    """A run a line.

    step  none
    """

    name = "words"
    description = "one run a line"

    def detect(self, file):
        return file.head.startswith(b"WORDS\\n")

    def read(self, file, log):
        for number, text in enumerate(file.document().decode().splitlines()[1:], 2):
            if text == "bad":
                log.refuse(Problem(location=Location(path=file.label, line=number), message="bad word"))
            elif text == "worse":
                raise LookupError(text)
            elif text == "dict":
                yield {"trace_id": "x"}
            else:
                yield Trace(trace_id=text, outcome=Outcome.SUCCESS)

reader = Words()
'''


@pytest.fixture(autouse=True)
def _forget_plug_ins() -> Iterator[None]:
    installed_plug_ins.cache_clear()
    yield
    installed_plug_ins.cache_clear()


class Environment:
    """A folder of installed packages."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch

    def install(self, package: str, code: str, value: str = "reader") -> None:
        module = package.replace("-", "_")
        metadata = self.folder / f"{module}-1.2.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        (metadata / "entry_points.txt").write_text(f"[tracebridge.readers]\n{package} = {module}:{value}\n")
        (self.folder / f"{module}.py").write_text(code)
        self.monkeypatch.delitem(__import__("sys").modules, module, raising=False)
        self.monkeypatch.syspath_prepend(self.folder)
        installed_plug_ins.cache_clear()


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    return Environment(tmp_path / "site-packages", monkeypatch)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "file.txt"
    path.write_text("WORDS\none\nbad\ncontrol\tcharacter\ntwo\n")
    return path


def test_a_package_adds_a_format(environment: Environment, words: Path) -> None:
    environment.install("demo-words", WORDS)
    assert list(known_readers()) == [*FORMATS, "words"]
    kept = read_traces(words, skip_bad=True)
    assert [trace.trace_id for trace in kept] == ["one", "two"]
    # what a reader hands out is checked against the trace schema like any other input
    assert ["bad word" in str(kept.problems[0]), "U+0009" in str(kept.problems[1])] == [True, True]
    assert kept.files[0].format == "words"


def test_the_listing_says_where_a_format_comes_from(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.install("demo-words", WORDS)
    environment.install("demo-broken", "raise RuntimeError('not today')")
    assert run(["traces", "formats", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    origins = {entry["name"]: entry["origin"] for entry in listed["formats"]}
    assert origins["words"] == "demo-words 1.2"
    assert origins["jsonl"].startswith("tracebridge ")
    assert listed["formats"][-1]["details"] == "A run a line.\n\nstep  none"
    (unused,) = listed["unused_plug_ins"]
    assert unused == "demo-broken 1.2: its trace reader 'demo_broken:reader' is not used: RuntimeError: not today"
    assert run(["traces", "formats"]) == 0
    out, err = capsys.readouterr()
    assert "words: one run a line [demo-words 1.2]" in out
    assert err == f"note: {unused}\n"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("x = 1", "AttributeError"),
        ("this is no python", "SyntaxError"),
        (WORDS.replace("reader = Words()", "reader = Words"), "Words is a class, where an object of it is needed"),
        (WORDS.replace("def read", "def rede"), "the object has no method read"),
        (WORDS.replace('name = "words"', "name = 3"), "its name is not a line of text"),
        (WORDS.replace('name = "words"', 'name = "jsonl"'), "the name 'jsonl' is in use"),
    ],
)
def test_a_broken_plug_in_is_named_and_takes_no_other_down(
    environment: Environment, words: Path, code: str, why: str
) -> None:
    environment.install("demo-broken", code)
    environment.install("demo-words", WORDS)
    kept = read_traces(words, skip_bad=True)
    assert len(kept) == 2
    (note,) = map(str, kept.notes)
    assert note.startswith("demo-broken 1.2: its trace reader 'demo_broken:reader' is not used: ")
    assert why in note
    with pytest.raises(UsageError, match=r"no trace format 'brokn'(?s:.*)demo-broken 1.2: its trace reader"):
        read_traces(words, format="brokn")


def test_two_plug_ins_that_recognise_a_file(environment: Environment, words: Path) -> None:
    environment.install("demo-words", WORDS)
    environment.install("demo-greedy", WORDS.replace('"words"', '"greedy"'))
    with pytest.raises(TraceError, match=r"may be greedy and words .choose one with --format"):
        read_traces(words)


def test_a_plug_in_that_fails_while_it_looks(environment: Environment, words: Path) -> None:
    environment.install("demo-words", WORDS)
    environment.install(
        "demo-failing", WORDS.replace('"words"', '"failing"').replace("return file", "return [].pop() or file")
    )
    kept = read_traces(words, skip_bad=True)
    assert len(kept) == 2
    (note,) = map(str, kept.notes)
    expected = (
        "file.txt: the reader 'failing' of demo-failing 1.2 failed to look at the file: IndexError: pop from empty"
    )
    assert note.startswith(expected)


@pytest.mark.parametrize(
    ("line", "why"), [("worse", "LookupError: worse"), ("dict", "a Trace was expected, got a dict")]
)
def test_a_plug_in_that_fails_while_it_reads(environment: Environment, words: Path, line: str, why: str) -> None:
    environment.install("demo-words", WORDS)
    words.write_text(f"WORDS\none\n{line}\ntwo\n")
    kept = read_traces(words, skip_bad=True)
    assert [trace.trace_id for trace in kept] == ["one"]
    assert "the reader 'words' of demo-words 1.2 failed to read the file: " in str(kept.problems[0])
    assert why in str(kept.problems[0])
