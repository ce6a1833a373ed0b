"""Shards add up to one reading of all files: the same chain, document and problems, whoever reads what and when."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config, register_parallel_backend
from joblib.parallel import ThreadingBackend

from tracebridge.chain import document_text, fit_chain
from tracebridge.errors import FitError, TraceError
from tracebridge.pipeline import fit_files
from tracebridge.sharding import ReadingProgress, ShardOptions, read_shards
from tracebridge.traces import Outcome, Step, Trace, TraceStream, TraceTally, open_traces, write_traces

STEPS = st.builds(
    Step,
    name=st.sampled_from(["plan", "search", "edit"]),
    kind=st.sampled_from(["tool", "message"]),
    error=st.booleans(),
    text=st.sampled_from([None, "said"]),
    attributes=st.sampled_from([{}, {"retry": True}, {"retry": False}]),
)
RUNS = st.lists(
    st.tuples(
        st.lists(STEPS, max_size=5),
        st.sampled_from(Outcome),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, "cap"]),
    ),
    min_size=1,
    max_size=12,
)


def traces_of(runs: Sequence[tuple[list[Step], Outcome, str | None, str | None]]) -> list[Trace]:
    dates = [{}, {"started": "2026-03-01T00:00:00Z"}, {"started": "2026-01-02T03:04:05+01:00"}, {"started": "soon"}]
    return [
        Trace(
            trace_id=f"run-{i}",
            outcome=outcome,
            steps=tuple(steps),
            task_id=task,
            termination=reason,
            attributes=dates[i % len(dates)],
        )
        for i, (steps, outcome, task, reason) in enumerate(runs)
    ]


def write_shards(folder: Path, traces: Sequence[Trace], cuts: Sequence[int]) -> None:
    folder.mkdir(exist_ok=True)
    bounds = [0, *sorted(cut % (len(traces) + 1) for cut in cuts), len(traces)]
    for i, (start, end) in enumerate(pairwise(bounds)):
        if end > start:
            write_traces(traces[start:end], folder / f"{i}.jsonl")


def single_pass(paths: Sequence[Path], **options: object) -> tuple[str, dict[str, object]]:
    """The chain and the corpus by one reading, made of the stages themselves."""
    stream, tally = open_traces(paths, skip_bad=True), TraceTally()
    fit = fit_chain(map(tally.add, stream), **options)  # type: ignore[arg-type]
    return document_text(fit.to_dict()), corpus_document(stream, tally)


def corpus_document(stream: TraceStream, tally: TraceTally) -> dict[str, object]:
    return {
        **tally.summary().to_dict(),
        "files": [file.to_dict() for file in stream.files],
        "n_skipped": stream.log.n_skipped,
        "problems": [str(problem) for problem in stream.log.listing()],
        "notes": [str(note) for note in stream.log.notes],
        "endings": stream.endings.to_dict(),
    }


@settings(max_examples=15)
@given(runs=RUNS, cuts=st.lists(st.integers(0, 12), max_size=3), data=st.data())
def test_shards_are_one_pass(
    tmp_path_factory: pytest.TempPathFactory, runs: list[object], cuts: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    write_shards(folder, traces_of(runs), cuts)  # type: ignore[arg-type]
    expected = single_pass([folder], prior="laplace", policy="failure")
    kept = data.draw(st.booleans())
    manifest = data.draw(st.sampled_from([None, folder.parent / f"{folder.name}.json"]))
    for _ in range(2):  # read, and found in the manifest
        found = fit_files([folder], prior="laplace", policy="failure", keep=kept, manifest=manifest)
        assert (document_text(found.fit.to_dict()), found.corpus) == expected
    again = document_text(fit_chain(found.traces, prior="laplace", policy="failure").to_dict())
    assert again == expected[0]
    heads = [(t.trace_id, t.outcome, t.task_id, t.termination, len(t.steps)) for t in found.traces]
    assert heads == [(t.trace_id, t.outcome, t.task_id, t.termination, len(t.steps)) for t in open_traces([folder])]


@pytest.mark.parametrize("jobs", [None, 2])
def test_rules_from_files_apply_to_the_corpus(tmp_path: Path, jobs: int | None) -> None:
    steps = [Step(name="plan")]
    runs = traces_of([(steps, Outcome.CENSORED, f"t{i}", ["cap", "crash", None][i % 3]) for i in range(9)])
    write_shards(tmp_path / "corpus", runs, [2, 5])
    rules = tmp_path / "endings.toml"
    rules.write_text('[endings]\ncap = "failure"\ncrash = "drop"\ncrsh = "censored"\n')
    outcomes = tmp_path / "outcomes.json"
    outcomes.write_text('{"t0": true, "t2": true, "t4": false, "t99": true}')
    told = []
    for options in ({"endings": rules}, {"outcomes": [outcomes]}, {"outcomes": [outcomes], "endings": rules}):
        stream, tally = open_traces(tmp_path / "corpus", **options), TraceTally()  # type: ignore[arg-type]
        chain = document_text(fit_chain(map(tally.add, stream)).to_dict())
        found = fit_files([tmp_path / "corpus"], jobs=jobs, manifest=tmp_path / "m.json", **options)  # type: ignore[arg-type]
        assert found.corpus == corpus_document(stream, tally)
        assert document_text(found.fit.to_dict()) == chain
        told += found.corpus["notes"]
    assert "endings.toml, field cap: 3 runs by this rule: counted as failed" in told
    assert "endings.toml, field crsh: 0 runs by this rule: counted as censored (did you mean crash?)" in told


def corpus_with_faults(folder: Path) -> Path:
    """Five files: two with a run in common, one that is another's copy, one with a bad line, one of no known format."""
    runs = traces_of([([Step(name="plan"), Step(name="edit", error=True)], Outcome.SUCCESS, "a", None)] * 6)
    folder.mkdir()
    write_traces(runs[:3], folder / "a.jsonl")
    write_traces(runs[2:5], folder / "b.jsonl")
    (folder / "c.jsonl").write_bytes((folder / "a.jsonl").read_bytes())
    write_traces(runs[5:], folder / "d.jsonl")
    with (folder / "d.jsonl").open("a") as file:
        file.write('{"trace_id": "x", "outcome": "won"}\n')
    (folder / "e.json").write_text("[1]")
    (folder / "f.json").write_text("[2]")
    return folder


@pytest.mark.parametrize("jobs", [None, 2])
def test_faults_are_told_as_one_reading_tells_them(tmp_path: Path, jobs: int | None) -> None:
    folder = corpus_with_faults(tmp_path / "corpus")
    chain, corpus = single_pass([folder])
    assert corpus["n_skipped"] == 5
    found = fit_files([folder], skip_bad=True, jobs=jobs)
    assert (document_text(found.fit.to_dict()), found.corpus) == (chain, corpus)
    with pytest.raises(TraceError) as expected:
        list(open_traces([folder]))
    with pytest.raises(TraceError) as raised:
        fit_files([folder], jobs=jobs)
    assert str(raised.value) == str(expected.value)
    assert "d.jsonl:2" in str(raised.value)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    runs = traces_of([([Step(name="plan")], Outcome.SUCCESS, None, None)] * 6)
    write_traces(runs[:4], tmp_path / "a.jsonl")
    write_traces(runs[2:], tmp_path / "b.jsonl")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes((tmp_path / "b.jsonl").read_bytes()))
    writer.start()
    found = fit_files([tmp_path / "a.jsonl", pipe], skip_bad=True, keep=True, jobs=2)
    writer.join()
    expected = single_pass([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert document_text(found.fit.to_dict()) == expected[0]
    assert [str(problem) for problem in found.corpus["problems"]] == [
        f"pipe, record pipe:{line}, field trace_id: the trace_id 'run-{line + 1}' was used by an earlier run "
        "(is a file or a run in there twice?)"
        for line in (1, 2)
    ]
    assert len(list(found.traces)) == 6


class AllAtOnce(ThreadingBackend):  # type: ignore[misc]
    """Gives results when all are there, as Ray's backend does."""

    supports_return_generator = False


@pytest.mark.parametrize("backend", ["threading", "all-at-once"])
def test_a_users_own_backend_reads(tmp_path: Path, backend: str) -> None:
    register_parallel_backend("all-at-once", AllAtOnce)
    write_shards(tmp_path / "corpus", traces_of([([Step(name="plan")], Outcome.SUCCESS, None, None)] * 8), [2, 4])
    told: list[ReadingProgress] = []
    with parallel_config(backend=backend, n_jobs=2):
        found = fit_files([tmp_path / "corpus"], on_progress=told.append)
    assert document_text(found.fit.to_dict()) == single_pass([tmp_path / "corpus"])[0]
    assert (told[-1].shards_read, told[-1].n_runs, told[-1].bytes_read) == (3, 8, told[-1].n_bytes)


def test_a_state_map_goes_to_the_workers(tmp_path: Path) -> None:
    write_shards(
        tmp_path / "corpus", traces_of([([Step(name="plan"), Step(name="x")], Outcome.SUCCESS, "a", None)] * 4), [2]
    )
    states = tmp_path / "map.toml"
    states.write_text('[[rule]]\nstate = "planning"\nname = ["plan"]\n')
    with pytest.raises(FitError, match="no rule of the state map matches"):
        fit_files([tmp_path / "corpus"], states=states, jobs=2)
    states.write_text('default = "rest"\n[[rule]]\nstate = "planning"\nname = ["plan"]\n')
    found = fit_files([tmp_path / "corpus"], states=states, jobs=2, keep=True, manifest=tmp_path / "m.json")
    assert document_text(found.fit.to_dict()) == single_pass([tmp_path / "corpus"], states=states)[0]
    assert document_text(fit_chain(found.traces, states=states).to_dict()) == document_text(found.fit.to_dict())


def test_weights_are_those_of_one_pass(tmp_path: Path) -> None:
    runs = [
        Trace(trace_id=str(i), outcome=Outcome.SUCCESS, steps=(Step(name="ab"[i % 2]),), attributes={"w": i + 1})
        for i in range(6)
    ]
    write_shards(tmp_path / "corpus", runs, [3])
    found = fit_files([tmp_path / "corpus"], weight="w", jobs=2)
    assert document_text(found.fit.to_dict()) == single_pass([tmp_path / "corpus"], weight="w")[0]


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["atif", "tau2_bench", "otel", "swe_agent"])
def test_files_that_readers_name_are_read_where_they_belong(shared_data: Path, name: str) -> None:
    folder = shared_data / "traces" / name
    stream, tally = open_traces(folder, skip_bad=True), TraceTally()
    for trace in stream:
        tally.add(trace)
    shards = read_shards([folder], ShardOptions.of(features=False), jobs=2)
    assert {**shards.tally.summary().to_dict(), **shards.document()} == corpus_document(stream, tally)


@settings(max_examples=8)
@given(
    words=st.lists(
        st.lists(st.sampled_from(["read", "file", "test", "fix", "bug"]), max_size=4), min_size=2, max_size=8
    )
)
def test_texts_are_clustered_once_for_all_shards(
    tmp_path_factory: pytest.TempPathFactory, words: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    steps = [Step(name="say", text=" ".join(said)) for said in words]
    runs = [
        Trace(trace_id=str(i), outcome=Outcome.SUCCESS, steps=tuple(steps[i % 3 :]), task_id=f"t{i % 4}")
        for i in range(9)
    ]
    write_shards(folder, runs, [2, 5])
    expected = single_pass([folder], text_features=True, k_max=3)
    manifest = folder.parent / f"{folder.name}.json"
    for _ in range(2):
        found = fit_files([folder], text_features=True, k_max=3, manifest=manifest, keep=True)
        assert (document_text(found.fit.to_dict()), found.corpus) == expected
    assert [trace.steps for trace in found.traces] == [run.steps for run in runs]
