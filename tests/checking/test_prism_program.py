"""PRISM programs become chains, or are refused with a reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.checking.storm_chains import F

from tracebridge.checking.prism_program import build_prism_chain
from tracebridge.checking.storm_process import StormWorker
from tracebridge.errors import EngineTimeoutError, ModelError

pytestmark = pytest.mark.storm


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as shared:
        yield shared


HEAD = "dtmc\nmodule m\n  s : [0..2] init 0;\n  b : bool init false;\n"
TAIL = "  [] s>0 -> true;\nendmodule\n"


def test_a_program_becomes_an_exact_chain_with_names(worker: StormWorker) -> None:
    text = """dtmc
const int k; const double p; const bool on;
global g : [0..1] init 0;
module m
  x : [0..k] init 0;
  b : bool init on;
  [go] x=0 -> p:(x'=1)&(b'=false) + 1-p:(x'=2);
  [] x>0 -> true;
endmodule
label "done" = x>0;
rewards "cost"
  x=0 : 0.1;
  [go] true : 2;
endrewards
rewards
  true : 1;
endrewards
"""
    chain = build_prism_chain(text, constants={"k": "2", "p": "1/3", "on": "true"}, worker=worker)
    assert chain.states == ("g=0,x=0,b=true", "g=0,x=1,b=false", "g=0,x=2,b=true")
    assert chain.is_exact
    assert chain.rationals is not None
    assert chain.rationals.row(0) == {1: F(1, 3), 2: F(2, 3)}
    assert chain.initial.tolist() == [1, 0, 0]
    assert {name: mask.tolist() for name, mask in chain.labels.items()} == {"done": [False, True, True]}
    assert chain.rewards["cost"].fractions(action=False) == [F(1, 10), 0, 0]
    assert chain.rewards["cost"].fractions(action=True) == [F(21, 10), 0, 0]
    assert sorted(chain.rewards) == ["cost", "rewards"]
    floating = build_prism_chain(text, constants={"k": "2", "p": "0.25", "on": "false"}, worker=worker, exact=False)
    assert not floating.is_exact
    assert floating.transitions.toarray()[0].tolist() == [0, 0.25, 0.75]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  [] s=0 -> 1/2:(s'=1) + 1/3:(s'=2);\n", r"state 's=0,b=false': its row sums to 5/6"),
        ("  [] s=0 -> 1/2:(s'=1) + 1/2:(s'=5);\n", r"out-of-bounds value \(5\) for the variable 's'"),
        ("  [] s=0 -> (s'=1);\n  [] s<1 -> (s'=2);\n", r"several commands are enabled in state 's=0,b=false'"),
        ("  [] s=0 & b -> (s'=1);\n", r"state 's=0,b=false' has no transition"),
        ("  [] s=0 -> 1+(s+1)/5:(s'=1) + -((s+1)/5):(s'=2);\n", r"evaluates to value 6/5"),
        ("  [] s=0 -> (s'=1)\n", r"Parsing error at 6:4"),
        ("  [] s=0 -> p:(s'=1) + 1-p:(s'=2);\n", r"Parsing error at 5:12"),
    ],
)
def test_unsound_programs_are_refused(worker: StormWorker, body: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build_prism_chain(HEAD + body + TAIL, worker=worker)


def test_sums_within_rounding_become_doubles(worker: StormWorker) -> None:
    chain = build_prism_chain(
        HEAD + "  [] s=0 -> 0.3333333333333333:(s'=1) + 0.6666666666666666:(s'=2);\n" + TAIL, worker=worker
    )
    assert not chain.is_exact
    assert chain.exact_transitions().row(0)[1] == F(3333333333333333, 9999999999999999)
    with pytest.raises(ModelError, match=r"out-of-bounds value \(7\)|out of bounds"):
        build_prism_chain(
            HEAD + "  [] s=0 -> 0.3333333333333333:(s'=7) + 0.6666666666666666:(s'=2);\n" + TAIL, worker=worker
        )


def test_irrational_probabilities_become_doubles(worker: StormWorker) -> None:
    chain = build_prism_chain(HEAD + "  [] s=0 -> pow(0.5,0.5):(s'=1) + 1-pow(0.5,0.5):(s'=2);\n" + TAIL, worker=worker)
    assert chain.transitions.toarray()[0].tolist() == pytest.approx([0, 0.5**0.5, 1 - 0.5**0.5], abs=1e-15)


def test_deadlocks_may_be_fixed(worker: StormWorker) -> None:
    chain = build_prism_chain(HEAD + "  [] s=0 -> (s'=1);\nendmodule\n", worker=worker, fix_deadlocks=True)
    assert chain.absorbing.tolist() == [False, True]


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({}, "constants without a value: k, p"),
        ({"k": "2"}, "constants without a value: p"),
        ({"k": "2", "p": "0.5", "q": "1"}, r"no undefined constant 'q' \(undefined: k, p\)"),
        ({"k": "2", "p": "0.5,k=3"}, "does not give a constant a number"),
        ({"k": "2", "p": "true"}, "Storm cannot build"),
    ],
)
def test_constants_that_do_not_fit(worker: StormWorker, constants: dict[str, str], message: str) -> None:
    text = (
        "dtmc\nconst int k;\nconst double p;\nmodule m\n s:[0..k] init 0;\n [] true -> p:(s'=1)+1-p:(s'=0);\nendmodule"
    )
    with pytest.raises(ModelError, match=message):
        build_prism_chain(text, constants=constants, worker=worker)


def test_other_kinds_of_model_are_refused(worker: StormWorker) -> None:
    with pytest.raises(ModelError, match="type mdp"):
        build_prism_chain("mdp\nmodule m\n s:[0..1] init 0;\n [] true -> true;\nendmodule\n", worker=worker)
    with pytest.raises(ModelError, match="3 initial states"):
        build_prism_chain(
            "dtmc\nmodule m\n s:[0..2];\n [] true -> true;\nendmodule\ninit true endinit\n", worker=worker
        )


def test_an_endless_program_runs_into_the_time_limit() -> None:
    program = "dtmc\nmodule m\n s: [0..1000000000] init 0;\n [] true -> (s'=s+1);\nendmodule\n"
    with StormWorker(memory_limit=4 << 30) as worker, pytest.raises(EngineTimeoutError):
        build_prism_chain(program, worker=worker, time_limit=1)
