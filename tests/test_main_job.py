"""The main job on real traces, where they are at hand, and on the packaged corpus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from tracebridge import assess, check, compare, fit_chain, read_model, read_traces
from tracebridge.cli import run
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption
from tracebridge.resources import packaged

ROOT = Path(__file__).resolve().parents[1]
PROPERTIES = [ROOT / "properties" / f"{name}.props" for name in ("budget", "reliability", "safety", "termination")]
DEMO = packaged("demo", "refund_agent.jsonl")

#: For tests of what is exported, which no draw changes.
POINT_ONLY = {"draws": 0, "resamples": 0, "replicates": 0}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.storm
@pytest.mark.parametrize("exact", [False, True], ids=["doubles", "rationals"])
@pytest.mark.shared_data
def test_tau_bench(shared_data, tmp_path, capsys, exact):
    source = str(shared_data / "traces" / "tau_bench" / "gpt-4o-airline.json")
    arguments = [
        "assess",
        source,
        str(ROOT / "properties" / "reliability.props"),
        "-o",
        str(tmp_path / "out"),
        "--json",
    ]
    if exact:
        arguments += ["--exact", "--draws", "200", "--bootstrap", "0", "--certificate-replicates", "19"]
    code = run(arguments)
    document = json.loads(capsys.readouterr().out)
    assert document["corpus"]["outcomes"] == {"success": 84, "failure": 111, "censored": 5}
    assert document["corpus"]["n_runs"] == 200
    assert document["fit"]["pass_rate"] == {"censored": "28/65", "failure": "21/50", "drop": "28/65"}
    assert code == document["exit_code"] == 1  # 43 % of the runs succeed, half were asked for
    for item in document["properties"]:
        assert item["agree"] is True
        assert item["gap"] == 0.0 if exact else item["gap"] <= 1e-9
        assert [engine["engine"] for engine in item["engines"]] == ["closed form", "Storm"]
        assert all(engine["exact"] is exact and engine["operators"] for engine in item["engines"])
        if exact:
            assert item["engines"][0]["operators"] == item["engines"][1]["operators"]
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == document
    assert document["certificate"]["verdict"] == "reject"
    assert document["mark"] == "chain rejected"
    reached = document["properties"][1]
    assert reached["uncertainty"]["violated"] > 0.95  # which is why the verdict is no mere point estimate


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["gpt-4.1_airline.json", "gpt-4.1_retail.json", "tau2_each_termination.json"])
def test_tau2_bench(shared_data, name):
    traces = read_traces(shared_data / "traces" / "tau2_bench" / name)
    completed = [trace for trace in traces if trace.outcome != "censored"]
    fit = fit_chain(completed, prior="none")
    rate = Fraction(sum(trace.outcome == "success" for trace in completed), len(completed))
    assert long_run_reliability(fit.chain, exact=True) == rate
    mean = Fraction(sum(len(trace.steps) for trace in completed), len(completed))
    assert mean_time_to_absorption(fit.chain, exact=True).overall == mean


@pytest.mark.storm
@pytest.mark.parametrize("properties", PROPERTIES, ids=lambda path: path.stem)
def test_every_packaged_property_is_answered_equally_by_both_engines(properties):
    chain = fit_chain(read_traces(DEMO)).chain
    for agreement in compare(check(chain, properties, exact=True)):
        assert agreement.agree is True
        assert agreement.gap == 0.0


@pytest.mark.storm
def test_two_runs_write_the_same_bytes(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:  # separate processes, with hashes seeded apart
        command = [sys.executable, "-m", "tracebridge", "assess", str(DEMO), "-o", str(folder)]
        command += ["--draws", "100", "--bootstrap", "50", "--certificate-replicates", "19", "--futures", "4"]
        environment = {**os.environ, "PYTHONHASHSEED": "random"}
        done = subprocess.run(command, check=False, capture_output=True, env=environment)
        assert done.returncode == 4  # the packaged runs do not decide every property, and their tasks differ
    assert files_of(folders[0]) == files_of(folders[1])
    assert set(files_of(folders[0])) == {
        "chain.json",
        "evidence.json",
        "model.prism",
        "properties.props",
        "properties.source.props",
        "report.html",
        "results.json",
        "summary.md",
    }


@pytest.mark.storm
def test_what_is_written_reads_back_as_the_same_chain(tmp_path):
    assessment = assess([DEMO], output=tmp_path / "out", engines=["closed-form"], **POINT_ONLY)
    chain = assessment.fitted.fit.chain
    for name in ("chain.json", "model.prism"):
        back = read_model(tmp_path / "out" / name).chain
        assert back.states == chain.states
        assert back.to_records() == chain.to_records()
        assert back.exact_initial() == chain.exact_initial()


@pytest.mark.storm
def test_the_rewritten_properties_have_the_same_values_on_the_exported_model(tmp_path):
    """The exported files are checked as another user would: through Storm's own builder, from one initial state."""
    from tracebridge.checking.prism_program import build_prism_chain
    from tracebridge.checking.storm_process import StormWorker

    for properties in PROPERTIES:
        folder = tmp_path / properties.stem
        assessment = assess([DEMO], properties, output=folder, exact=True, **POINT_ONLY)
        text = (folder / "model.prism").read_text()
        with StormWorker() as worker:
            built = build_prism_chain(text, worker=worker)
        assert built.initial.max() == 1.0
        again = compare(check(built, folder / "properties.props", exact=True))
        originals = {agreement.property.name: agreement for agreement in assessment.agreements}
        for agreement in again:
            original = originals[agreement.property.name]
            assert agreement.verdict == original.verdict
            assert [r.value for r in agreement.results] == [r.value for r in original.results]


def test_an_assessment_names_its_exit_code():
    options = {"engines": ["closed-form"], "draws": 200, "resamples": 0, "futures": 0}
    assessment = assess([DEMO], ROOT / "properties" / "termination.props", replicates=0, **options)
    assert assessment.exit_code == 0
    assert assessment.folder is None
    assessment = assess([DEMO], ROOT / "properties" / "termination.props", replicates=39, **options)
    assert assessment.certificate.verdict == "reject"  # its tasks differ in difficulty
    assert assessment.exit_code == 4
