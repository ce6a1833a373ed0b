from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import NoReturn

import pytest

from tracebridge.errors import NothingToCheckError, TraceError, UsageError
from tracebridge.traces import open_traces, read_traces, write_traces


def line(name: str) -> str:
    return json.dumps({"trace_id": name, "outcome": "success", "steps": [{"name": "x"}]}) + "\n"


TAU = [{"task_id": 1, "trial": 0, "reward": 1.0, "info": {}, "traj": [{"role": "assistant", "content": "hi"}]}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    (root / "b").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / "b" / "native.jsonl").write_text(line("n1") + line("n2"))
    (root / "b" / "tau.json").write_text(json.dumps(TAU))
    # content decides, the name does not
    (root / "a.json").write_bytes(gzip.compress(b"run_id;state;outcome\nf1;x;ok\n"))
    (root / ".hidden" / "no.jsonl").write_text(line("hidden"))
    (root / "README.md").write_text("not data")
    return root


def test_a_folder_of_mixed_formats(folder: Path) -> None:
    corpus = read_traces(folder)
    assert [(file.path, file.format, file.n_records) for file in corpus.files] == [
        ("a.json", "flat", 1),
        ("b/native.jsonl", "jsonl", 2),
        ("b/tau.json", "tau-bench", 1),
    ]
    assert [trace.trace_id for trace in corpus] == ["f1", "n1", "n2", "b/tau/1/0"]
    assert "README.md" in str(corpus.notes[0])
    for file in corpus.files:
        assert file.sha256 == hashlib.sha256((folder / file.path).read_bytes()).hexdigest()


def test_patterns_lists_and_repeats(folder: Path) -> None:
    by_pattern = read_traces(str(folder / "**" / "*.json*"))
    assert [file.path for file in by_pattern.files] == ["a.json", "b/native.jsonl", "b/tau.json"]
    path = folder / "b" / "native.jsonl"
    assert len(read_traces([path, str(path), folder / "b" / ".." / "b" / "native.jsonl"])) == 2


FLAT = "run_id,state,outcome\n1,{0},ok\n2,{0},fail\n"


def test_files_of_one_name_have_labels_that_tell_them_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("d1/r", "d2/r", "d1/sub/r", "other"):
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([TAU[0] | {"model": name}]))
    monkeypatch.chdir(tmp_path)

    def labels(*paths: str | Path) -> list[str]:
        corpus = read_traces(list(paths))
        names = [file.path for file in corpus.files]
        assert [trace.trace_id for trace in corpus] == [f"{name.removesuffix('.json')}/1/0" for name in names]
        return names

    assert labels("d1/r.json", "d2/r.json", "other.json") == ["d1/r.json", "d2/r.json", "other.json"]
    assert labels(tmp_path / "d1" / "r.json", tmp_path / "d2" / "r.json") == ["d1/r.json", "d2/r.json"]
    assert labels("d1", "d2") == ["d1/r.json", "sub/r.json", "d2/r.json"]
    assert labels("d1/r.json", "d1/sub/r.json") == ["d1/r.json", "sub/r.json"]
    assert labels("d1/*.json", "d2/*.json") == ["d1/r.json", "d2/r.json"]
    assert labels("d1/r.json", "d2/../d1/r.json") == ["r.json"]
    monkeypatch.chdir(tmp_path / "d1")
    assert labels("r.json", "../d2/r.json") == ["r.json", "d2/r.json"]
    assert labels("../other.json") == ["other.json"]


def test_run_ids_of_another_flat_file_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(FLAT.format(name))
    corpus = read_traces(tmp_path)
    assert [trace.trace_id for trace in corpus] == ["1", "2", "b.csv/1", "b.csv/2"]
    (note,) = corpus.notes
    assert str(note).startswith("b.csv: run ids of an earlier file stand here again; the runs here are called b.csv/")


@pytest.mark.parametrize("text", [FLAT.format("x"), line("n1"), json.dumps(TAU)])
def test_the_same_bytes_twice_are_a_problem(tmp_path: Path, text: str) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(text)
    with pytest.raises(TraceError, match=r"^b.json: the same file twice: it has the bytes of a.json \(give it once\)$"):
        read_traces(tmp_path)
    kept = read_traces(tmp_path, skip_bad=True)
    assert [file.path for file in kept.files] == ["a.json"]
    assert kept.n_skipped == 1
    (tmp_path / "b.json").write_text(text.replace("x", "y").replace("n1", "n2").replace("hi", "ho"))
    assert len(read_traces(tmp_path).files) == 2


def test_file_names_that_are_no_text(tmp_path: Path) -> None:
    tau, flat = tmp_path / os.fsdecode(b"r\xff.json"), tmp_path / "c\x1bd.csv"
    try:
        tau.write_text(json.dumps(TAU))
        flat.write_text(FLAT.format("x"))
    except OSError:
        pytest.skip("this file system takes names of text only")
    corpus = read_traces(tmp_path)
    assert [file.path for file in corpus.files] == ["c\\x1bd.csv", "r\\xff.json"]
    assert [trace.trace_id for trace in corpus] == ["1", "2", "r\\xff/1/0"]
    write_traces(corpus, tmp_path / "out.jsonl")
    with pytest.raises(TraceError, match=r"no\\xff.json: there is no such file"):
        open_traces(tmp_path / os.fsdecode(b"no\xff.json"))


def test_an_empty_path_is_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for paths in ("", [""], ["a.json", ""]):
        with pytest.raises(UsageError, match="a path is empty"):
            open_traces(paths)
    assert len(read_traces(".").files) == 3


def test_one_file_that_is_not_read_is_one(folder: Path) -> None:
    (note,) = read_traces(folder).notes
    assert str(note) == "corpus: 1 file is not read, by the suffix: README.md (name a file to read it)"


def test_known_formats_are_listed_once(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.json").write_text(json.dumps({"sessionId": name, "projectHash": "p"}))
    stream = open_traces(tmp_path)
    for _ in range(2):
        with pytest.raises(TraceError) as caught:
            list(stream)
        assert str(caught.value).count("looks like a Gemini CLI session, which is not read yet") == 3
        assert str(caught.value).count("known formats are") == 1


def test_iterating_again_reads_again(folder: Path) -> None:
    stream = open_traces(folder)
    assert list(stream) == list(stream)
    assert len(stream.files) == 3


def test_a_trace_id_in_two_files(folder: Path) -> None:
    (folder / "c.jsonl").write_text(line("n2") + line("n3"))
    with pytest.raises(
        TraceError, match=r"c.jsonl, record c.jsonl:1, field trace_id: the trace_id 'n2' was used"
    ) as caught:
        read_traces(folder)
    assert len(caught.value.problems) == 1
    kept = read_traces(folder, skip_bad=True)
    assert [trace.trace_id for trace in kept][-1] == "n3"
    assert (kept.n_skipped, len(kept.problems)) == (1, 1)


def test_problems_are_limited_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line("a") + '{"trace_id": ""}\n' * 7)
    stream = open_traces(path, max_problems=3)
    seen: list[str] = []
    with pytest.raises(TraceError) as caught:
        seen.extend(trace.trace_id for trace in stream)
    # the good ones arrive before the error
    assert seen == ["a"]
    assert (stream.log.n_problems, stream.log.n_skipped, len(stream.log.problems)) == (14, 7, 3)
    assert str(caught.value.problems[-1]) == "and 11 more problems"


def test_when_every_record_is_bad_skipping_does_not_help(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"trace_id": "a", "outcome": "won"}\n')
    with pytest.raises(TraceError, match="field outcome"):
        read_traces(path, skip_bad=True)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty"),
        (b"  \n", "the file is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", r"Git LFS pointer.*git lfs pull"),
        (b"PK\x03\x04", "the file holds a zip archive"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16 text"),
        (
            b'{"talk": [], "score": 1}',
            "JSON object with the keys score, talk.*known formats are jsonl.*--format",
        ),
        (
            b'{"messages": [], "score": 1}',
            "keys messages, score.*one of reward, success.*--outcomes FILE.*--format messages",
        ),
        (b"runs.jsonl".ljust(257, b"\0") + b"ustar", "tar xf FILE"),
        (b"hello world\n", "text that starts 'hello world'"),
        (b"{}", "the file holds an empty JSON object"),
        (b"[ ]", "the file holds an empty JSON array"),
        (b"[{}]", "a JSON array whose first element is an object that has no key"),
        (b"[1]", "a JSON array of something else than objects"),
        (
            b'{"sessionId": "s", "projectHash": "p"}',
            r"file.jsonl: looks like a Gemini CLI session, which is not read yet",
        ),
        (b"\x1f\x8b\x08damaged", "compressed data are damaged"),
        (b"\x28\xb5\x2f\xfddamaged", "compressed data are damaged"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=what):
        read_traces(path)
    (tmp_path / "good.jsonl").write_text(line("a"))
    kept = read_traces(tmp_path, skip_bad=True)
    assert (len(kept), kept.n_skipped) == (1, 1)


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file"):
        open_traces(tmp_path / "nothing.jsonl")
    with pytest.raises(TraceError, match="no file matches"):
        open_traces(str(tmp_path / "*.jsonl"))
    with pytest.raises(NothingToCheckError, match="no trace file in"):
        open_traces(tmp_path)
    with pytest.raises(NothingToCheckError, match="no trace file was named"):
        open_traces([])


def test_a_file_that_must_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(line("a"))

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TraceError, match=r"file\.jsonl: cannot be opened: Permission denied"):
        read_traces(path)


def test_usage() -> None:
    with pytest.raises(UsageError, match="did you mean tau-bench"):
        open_traces("x", format="tau_bench")
    with pytest.raises(UsageError, match="there are jsonl"):
        open_traces("x", format="?")
    with pytest.raises(UsageError, match="max_problems"):
        open_traces("x", max_problems=0)


def test_a_format_can_be_imposed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("run_id,state,outcome\na,x,ok\n")
    assert len(read_traces(path, format="flat")) == 1
    with pytest.raises(TraceError, match="this is not JSON"):
        read_traces(path, format="jsonl")


def test_a_converted_corpus_reads_back_the_same(folder: Path, tmp_path: Path) -> None:
    corpus = read_traces(folder)
    path = tmp_path / "converted.jsonl.zst"
    write_traces(corpus, path)
    assert read_traces(path).traces == corpus.traces


def test_outcomes_that_lie_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run = {"environment": name, "trajectory": [{"action": "ls"}], "info": {"exit_status": "submitted"}}
        (tmp_path / f"{name}.traj").write_text(json.dumps(run))
    report = tmp_path / "results.json"
    report.write_text('{"resolved_ids": ["a"], "unresolved_ids": ["b"]}')
    corpus = read_traces(tmp_path, outcomes=report)  # the report is in the folder too, where it is no run
    assert corpus.outcomes() == {"success": 1, "failure": 1, "censored": 0}
    assert [(file.path, file.format) for file in corpus.files][:2] == [
        ("results.json", "outcomes"),
        ("a.traj", "swe-agent"),
    ]
    other = tmp_path / "other.csv"
    other.write_text("instance_id,resolved\na,False\n")
    paths = [tmp_path / "a.traj", tmp_path / "b.traj"]
    with pytest.raises(
        TraceError, match=r"results.json \(resolved_ids\) says success; other.csv \(row 1\) says failure"
    ):
        read_traces(paths, outcomes=[report, other])
    assert read_traces(paths, outcomes=[report, other], skip_bad=True).outcomes()["failure"] == 1
    with pytest.raises(TraceError, match="contradict each other"):
        read_traces(paths[:1], outcomes=[report, other], skip_bad=True)  # no run is left


def test_rules_for_endings_come_after_the_outcomes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run = {"environment": name, "trajectory": [{"action": "ls"}], "info": {"exit_status": "exit_cost"}}
        (tmp_path / f"{name}.traj").write_text(json.dumps(run))
    report = tmp_path / "results.json"
    report.write_text('{"resolved_ids": ["a"], "unresolved_ids": ["b"]}')
    rules = tmp_path / "endings.toml"
    rules.write_text('[endings]\nexit_cost = "failure"\n')
    assert read_traces(tmp_path, outcomes=report).outcomes() == {"success": 1, "failure": 0, "censored": 1}
    corpus = read_traces(tmp_path, outcomes=report, endings=rules)
    assert corpus.outcomes() == {"success": 1, "failure": 1, "censored": 0}
    assert "1 run by this rule: counted as failed" in str(corpus.notes[-1])


def test_a_link_to_a_file_is_that_file_and_a_second_name_of_its_bytes_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line("n1"))
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    assert [file.path for file in read_traces(tmp_path).files] == ["a.jsonl"]
    (tmp_path / "second.jsonl").hardlink_to(tmp_path / "a.jsonl")
    with pytest.raises(TraceError, match=r"^second.jsonl: the same file twice: it has the bytes of a.jsonl"):
        read_traces(tmp_path)
