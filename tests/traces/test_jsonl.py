from __future__ import annotations

import gzip
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, Step, Trace, open_traces, read_traces, write_traces
from tracebridge.traces import jsonl as jsonl_module
from tracebridge.traces.jsonl import examine_line

GOOD = b'{"trace_id":"a","outcome":"success","steps":[{"name":"search"}]}'

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = st.text(st.characters(codec="utf-8", exclude_characters=[chr(c) for c in range(32)]), min_size=1, max_size=12)
attributes = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), json_values, max_size=2)
steps = st.builds(
    Step,
    name=names,
    kind=texts,
    text=st.none() | texts,
    error=st.booleans(),
    confidence=st.none() | st.floats(0, 1),
    tokens=st.none() | st.integers(0, 2**70),
    duration=st.none() | st.floats(0, 1e300),
    attributes=attributes,
)
traces = st.builds(
    Trace,
    trace_id=names,
    outcome=st.sampled_from(Outcome),
    steps=st.lists(steps, max_size=4).map(tuple),
    termination=st.none() | texts,
    task_id=st.none() | texts,
    trial=st.none() | texts,
    model=st.none() | texts,
    source=texts,
    attributes=attributes,
)
corpora = st.lists(traces, min_size=1, max_size=4, unique_by=lambda trace: trace.trace_id)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(corpus=corpora, suffix=st.sampled_from([".jsonl", ".jsonl.gz", ".jsonl.zst"]))
def test_what_is_written_reads_back(tmp_path: Path, corpus: list[Trace], suffix: str) -> None:
    path = tmp_path / f"corpus{suffix}"
    assert write_traces(corpus, path) == len(corpus)
    assert list(read_traces(path)) == corpus
    assert [child.name for child in tmp_path.iterdir() if child.name.startswith(".")] == []


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_the_same_traces_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    corpus = [Trace(trace_id=f"t{i}", outcome=Outcome.FAILURE, steps=(Step(name="a"),)) for i in range(50)]
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    write_traces(corpus, first)
    write_traces(iter(corpus), second)
    assert first.read_bytes() == second.read_bytes()


def write(tmp_path: Path, *lines: bytes, name: str = "corpus.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(b"\n".join(lines))
    return path


def problem_of(tmp_path: Path, line: bytes) -> str:
    """What is said about a bad line between two good ones; the good ones must survive."""
    path = write(tmp_path, GOOD, line, GOOD.replace(b'"a"', b'"b"'), b"")
    with pytest.raises(TraceError) as caught:
        list(open_traces(path))
    assert len(caught.value.problems) == 1
    kept = read_traces(path, skip_bad=True)
    assert [trace.trace_id for trace in kept] == ["a", "b"]
    assert kept.n_skipped == 1
    return str(caught.value.problems[0])


@pytest.mark.parametrize(
    ("line", "place", "what"),
    [
        (b'{"trace_id":"x","outcome":"won"}', "corpus.jsonl:2, record x, field outcome", "success, failure, censored"),
        (b'{"trace_id":"x"}', "record x, field outcome", "missing"),
        (b'{"outcome":"success"}', "corpus.jsonl:2, field trace_id", "missing"),
        (b'{"trace_id":"","outcome":"success"}', "field trace_id", "length >= 1"),
        (b'{"trace_id":7,"outcome":"success"}', "field trace_id", "Expected `str`, got `int`, got 7"),
        (b'{"trace_id":"x","outcome":"success","step":[]}', "field step", "did you mean steps?"),
        (b'{"trace_id":"x","outcome":"success","steps":{}}', "field steps", "an array of steps"),
        (b'{"trace_id":"x","outcome":"success","steps":["a"]}', "field steps[0]", "a step is a JSON object"),
        (
            b'{"trace_id":"x","outcome":"success","steps":[{"name":"a"},{"name":"b","confidence":1.5}]}',
            "field steps[1].confidence",
            "<= 1.0, got 1.5",
        ),
        (b'{"trace_id":"x","outcome":"success","steps":[{"name":"a","tokens":-1}]}', "steps[0].tokens", "got -1"),
        (b'{"trace_id":"x","outcome":"success","steps":[{"name":"a","tokens":1.5}]}', "steps[0].tokens", "got 1.5"),
        (b'{"trace_id":"x","outcome":"success","steps":[{"name":"a","duration":-1}]}', "steps[0].duration", "got -1"),
        (
            b'{"trace_id":"x","outcome":"success","steps":[{"name":"a","err":true}]}',
            "steps[0].err",
            "did you mean error",
        ),
        (b'{"trace_id":"x","outcome":"success","steps":[{"name":"a\\u001b[31m"}]}', "steps[0].name", "U+001B"),
        (b'{"trace_id":"x\\n","outcome":"success"}', "field trace_id", "U+000A"),
        (b'{"trace_id":"x","outcome":"success","steps":[{"name":"a","duration":1e999}]}', "corpus.jsonl:2", "1e999"),
        (
            b'{"trace_id":"x","outcome":"success","steps":[{"name":"a","duration":NaN}]}',
            "corpus.jsonl:2",
            "'NaN' is not",
        ),
        (b'{"trace_id":"x\xff","outcome":"success"}', "corpus.jsonl:2:15", "byte 0xff is not valid UTF-8"),
        (b'{"trace_id":"x\x00","outcome":"success"}', "corpus.jsonl:2:15", "NUL byte"),
        (b'{"trace_id":"\\ud800","outcome":"success"}', "corpus.jsonl:2", "half of a surrogate pair"),
        (b'{"trace_id":"x","outcome":"success"} {}', "corpus.jsonl:2:38", "Extra data"),
        (b"[1]", "corpus.jsonl:2", "a trace is a JSON object, this is a list"),
        (b"[" * 100_000, "corpus.jsonl:2", "nested too deeply"),
        (
            b'{"trace_id":"x","outcome":"success","attributes":' + b'{"a":' * 10_000,
            "corpus.jsonl:2",
            "nested too deeply",
        ),
        (b'{"trace_id":"x","outcome":"success","attributes":{"a":1' + b"0" * 5000 + b"}}", "corpus.jsonl:2", "4300"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_bad_lines_are_named_and_the_others_survive(tmp_path: Path, line: bytes, place: str, what: str) -> None:
    message = problem_of(tmp_path, line)
    assert place in message
    assert what in message


def test_all_flaws_of_a_line_are_listed(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"trace_id":"x","outcom":"success","steps":[{"name":""},{"tokens":-3}]}')
    with pytest.raises(TraceError) as caught:
        read_traces(path)
    fields = [problem.location.field for problem in caught.value.problems]
    assert fields == ["outcom", "outcome", "steps[0].name", "steps[1].name", "steps[1].tokens"]


def test_a_last_line_that_breaks_off_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, GOOD[:40])
    with pytest.raises(TraceError, match=r"corpus.jsonl:2:.*breaks off.*was the file written to its end"):
        read_traces(path)


def test_blank_lines_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n  \n" + GOOD.replace(b'"a"', b'"b"'))
    corpus = read_traces(path)
    assert [(trace.trace_id, trace.source) for trace in corpus] == [("a", "corpus.jsonl:1"), ("b", "corpus.jsonl:4")]


def test_integral_floats_are_integers_as_in_json_schema(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"trace_id":"x","outcome":"success","steps":[{"name":"a","tokens":5.0}]}')
    assert read_traces(path).traces[0].steps[0].tokens == 5


def test_a_line_beyond_the_limit_is_refused_and_the_next_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_module, "MAX_LINE_BYTES", 1 << 20)
    huge = GOOD.replace(b"search", b"s" * (3 << 20))
    path = write(tmp_path, GOOD, huge, GOOD.replace(b'"a"', b'"b"'))
    corpus = read_traces(path, skip_bad=True)
    assert [trace.trace_id for trace in corpus] == ["a", "b"]
    assert "longer than 1 MiB" in str(corpus.problems[0])
    assert corpus.problems[0].location.line == 2


class Written(NamedTuple):
    """How a line is written by somebody else: its blanks, its escapes, and the fields at their defaults."""

    colon: str
    comma: str
    ascii_only: bool
    colons_escaped: bool
    defaults_given: bool

    def text(self, value: Any, repeat: Iterator[bool]) -> str:
        """The value as JSON; ``repeat`` says of each key whether it stands there once more, with another value."""
        if isinstance(value, dict):
            pairs = []
            for key, inner in value.items():
                if next(repeat):
                    pairs.append(f"{self.text(key, repeat)}{self.colon}null")
                pairs.append(f"{self.text(key, repeat)}{self.colon}{self.text(inner, repeat)}")
            return "{" + self.comma.join(pairs) + "}"
        if isinstance(value, list | tuple):
            return "[" + self.comma.join(self.text(inner, repeat) for inner in value) + "]"
        text = json.dumps(value, ensure_ascii=self.ascii_only)
        return text.replace(":", "\\u003a") if self.colons_escaped else text


written = st.builds(
    Written,
    colon=st.sampled_from([":", ": ", " :"]),
    comma=st.sampled_from([",", ", "]),
    ascii_only=st.booleans(),
    colons_escaped=st.booleans(),
    defaults_given=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(trace=traces, style=written, data=st.data())
def test_a_line_is_refused_if_and_only_if_a_key_stands_twice(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace, style: Written, data: st.DataObject
) -> None:
    document = msgspec.to_builtins(trace)
    if style.defaults_given:
        document = msgspec.structs.asdict(trace) | {"steps": [msgspec.structs.asdict(step) for step in trace.steps]}
    asked: list[bool] = []
    style.text(document, iter(lambda: asked.append(False), True))  # type: ignore[arg-type, func-returns-value]
    n_keys = len(asked)
    chosen = data.draw(st.none() | st.integers(0, n_keys - 1))
    line = style.text(document, (number == chosen for number in itertools.count()))
    path = write(tmp_path_factory.mktemp("corpus"), line.encode())
    if chosen is None:
        assert read_traces(path).traces == (trace,)
    else:
        with pytest.raises(TraceError, match=r"corpus\.jsonl:1: the key '.*' stands twice in one object"):
            read_traces(path)


def test_a_source_in_the_line_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"trace_id":"a","outcome":"success","source":"elsewhere.json[3]"}')
    assert read_traces(path).traces[0].source == "elsewhere.json[3]"


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=80) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_give_a_trace_or_problems(data: bytes) -> None:
    found = examine_line(data)
    assert isinstance(found, Trace) or len(found) >= 1


@settings(max_examples=60, deadline=None)
@given(corpus=corpora, cut=st.integers(0, 10_000), junk=st.binary(max_size=3))
def test_damaged_lines_never_escape_as_other_errors(corpus: list[Trace], cut: int, junk: bytes) -> None:
    line = msgspec.json.encode(corpus[0])
    place = cut % (len(line) + 1)
    found = examine_line(line[:place] + junk + line[place:])
    assert isinstance(found, Trace) or len(found) >= 1


@pytest.mark.parametrize(
    ("trace", "what"),
    [
        (Trace(trace_id="", outcome=Outcome.SUCCESS), "trace_id"),
        (Trace(trace_id="a", outcome=Outcome.SUCCESS, steps=(Step(name="a\n"),)), "U+000A"),
        (Trace(trace_id="a", outcome=Outcome.SUCCESS, steps=(Step(name="a", confidence=2.0),)), "confidence"),
        (Trace(trace_id="a", outcome=Outcome.SUCCESS, steps=(Step(name="a", duration=float("nan")),)), "finite"),
        (Trace(trace_id="a", outcome=Outcome.SUCCESS, attributes={"a": (1, 2)}), "plain JSON"),
        (Trace(trace_id="a", outcome=Outcome.SUCCESS, attributes={"a": object()}), "cannot be written"),
    ],
)
def test_what_would_not_read_back_is_not_written(tmp_path: Path, trace: Trace, what: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"before")
    with pytest.raises(TraceError, match=what.replace("+", r"\+")):
        write_traces([trace], path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    trace = Trace(trace_id="a", outcome=Outcome.SUCCESS)
    assert write_traces([trace], "-") == 1
    assert capfdbinary.readouterr().out == b'{"trace_id":"a","outcome":"success"}\n'


def test_a_trace_id_is_written_once(tmp_path: Path) -> None:
    trace = Trace(trace_id="a", outcome=Outcome.SUCCESS)
    with pytest.raises(TraceError, match="'a' is used twice"):
        write_traces([trace, trace], tmp_path / "corpus.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_data_that_break_off_are_reported_and_what_came_before_is_kept(tmp_path: Path, suffix: str) -> None:
    whole = tmp_path / f"whole.jsonl{suffix}"
    noise = [
        Trace(trace_id=f"{i:05d}", outcome=Outcome.SUCCESS, attributes={"n": i * 2654435761 % 2**32})
        for i in range(20_000)
    ]
    write_traces(noise, whole)
    data = whole.read_bytes()
    cut = tmp_path / f"cut.jsonl{suffix}"
    cut.write_bytes(data[: len(data) * 3 // 4])
    corpus = read_traces(cut, skip_bad=True)
    assert 0 < len(corpus) < len(noise)
    assert [trace.trace_id for trace in corpus] == [trace.trace_id for trace in noise[: len(corpus)]]
    assert "damaged or cut off" in str(corpus.problems[-1])
    assert corpus.files[0].n_records == len(corpus)
    with pytest.raises(TraceError, match="damaged or cut off"):
        read_traces(cut)


def test_several_compressed_members_follow_each_other(tmp_path: Path) -> None:
    other = GOOD.replace(b'"a"', b'"b"')
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(GOOD + b"\n") + gzip.compress(other + b"\n"))
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(GOOD + b"\n") + zstandard.compress(other + b"\n"))
    for path in tmp_path.iterdir():
        assert [trace.trace_id for trace in read_traces(path)] == ["a", "b"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped:
        buffer = io.BufferedReader(io.BytesIO(gzip.compress(GOOD)))

    monkeypatch.setattr("sys.stdin", Piped())
    corpus = read_traces("-")
    assert corpus.traces[0].source == "<stdin>:1"
    assert corpus.files[0].path == "<stdin>"


def test_json_of_other_writers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(
        json.dumps({"outcome": "censored", "steps": [{"name": 'é"\\', "kind": "tool"}], "trace_id": "é"}) + "\n"
    )
    assert read_traces(path).traces[0].steps == (Step(name='é"\\', kind="tool"),)
