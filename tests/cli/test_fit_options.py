"""Options of a fit on the command line: the support, the start, and weights of runs."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tracebridge import fit_chain, read_traces
from tracebridge.chain import DeclaredSupport, read_fit
from tracebridge.cli import run

RUNS = """run_id,state,outcome,w
a,plan,,1
a,search,,1
a,answer,success,1
b,plan,,3
b,search,failure,3
c,plan,,0.5
c,answer,success,0.5
"""

GRAPH = {"plan": ["search", "answer"], "search": ["search", "answer"], "answer": [], "escalate": ["answer"]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "graph.json").write_text(json.dumps({"successors": GRAPH}))
    (tmp_path / "graph.toml").write_text(
        "[successors]\n" + "\n".join(f"{state} = {json.dumps(names)}" for state, names in GRAPH.items())
    )
    return tmp_path


def fitted(*options: str):
    assert run(["fit", "runs.csv", "-o", "chain.json", *options]) == 0
    return read_fit("chain.json")


def of_library(mapping: dict[str, str] | None = None, **options: object):
    return fit_chain(read_traces("runs.csv", mapping=mapping), **options).to_dict()  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["graph.json", "graph.toml"])
def test_a_declared_graph(here, path):
    fit = fitted("--support", path)
    assert fit.declared == DeclaredSupport(successors=GRAPH)
    assert fit.to_dict() == of_library(support=GRAPH)


def test_the_observed_support(here):
    assert fitted("--support", "observed").to_dict() == of_library(support="observed")


@pytest.mark.parametrize(
    ("options", "start"),
    [
        (["--start", "smoothed"], "smoothed"),
        (["--start", "plan=1/3,search=2/3"], {"plan": Fraction(1, 3), "search": Fraction(2, 3)}),
        (["--start", "plan=0.25", "--start", "answer=0.75"], {"plan": Fraction(1, 4), "answer": Fraction(3, 4)}),
    ],
)
def test_a_start(here, options, start):
    assert fitted(*options).to_dict() == of_library(start=start)


def test_weights_come_from_a_column(here):
    """3 of 4.5 parts of the weight fail; without a prior that is R_inf."""
    fit = fitted("--map", "attributes.worth=w", "--weight", "worth", "--prior", "none")
    assert fit.to_dict() == of_library({"attributes.worth": "w"}, weight="worth", prior="none")
    assert fit.weighted is not None
    assert fit.weighted.total_weight == Fraction(9, 2)


def test_assess_takes_them_too(here):
    quick = ["--draws", "0", "--futures", "0", "--bootstrap", "0", "--certificate-replicates", "0"]
    assert run(["assess", "runs.csv", "--support", "graph.toml", "--start", "plan=1", "-o", "out", *quick]) in (0, 1, 4)
    assert read_fit("out/chain.json").to_dict() == of_library(support=GRAPH, start={"plan": 1})


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--support", "seen"], 2, "--support takes full, observed, or the file of a declared graph"),
        (["--support", ""], 2, "--support takes full, observed, or the file of a declared graph"),
        (["--support", "runs.csv"], 3, "not JSON"),
        (["--start", "plan"], 2, "--start takes observed, smoothed, or shares such as plan=1/2"),
        (["--start", "plan=1/3"], 2, "the start sums to 1/3"),
        (["--start", "plan=x"], 2, "'x' is no number"),
        (["--start", "walk=1"], 3, "'walk', which is no state"),
        (["--weight", "worth"], 3, "run 'a' has no attribute 'worth'"),
        (["--map", "attributes.worth=outcome,outcome=-", "--weight", "worth"], 3, "no number of zero or more"),
    ],
)
def test_what_cannot_be_done_is_said(here, capsys, options, code, message):
    assert run(["fit", "runs.csv", "-o", "chain.json", *options]) == code
    assert message in capsys.readouterr().err
