"""PRISM programs become chains, or are refused with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.checking.storm_chains import F

from tracebridge.chain import chain_from_dict, chain_to_dict
from tracebridge.checking.models import read_model, write_model
from tracebridge.checking.prism_program import build_prism_chain, build_prism_program
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
    assert {name: values.tolist() for name, values in chain.variables.items()} == {
        "g": [0, 0, 0],
        "x": [0, 1, 2],
        "b": [True, False, True],
    }
    assert dict(chain.constants) == {"k": 2, "p": F(1, 3), "on": True}
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


WALK = """dtmc
// const int hidden = 1; formula hidden = s;
const half = 3; const int N = 2*half; const double p = 0.2; const bool on = N>5 & p<1/4;
const double root = pow(2, 0.5);
module m
  s : [-3..N] init 0;
  b : bool init false;
  [] true -> 1/2:(s'=min(s+1,N)) + 1/4:(s'=max(-3,s-1)) + 1/4:(b'=!b);
endmodule
"""

#: Expressions of programs, with what they are where s and b are those of a state.
EXPRESSIONS = {
    "mod(s+3,2)=1": lambda s, b: (s + 3) % 2 == 1,
    "b => s>0": lambda s, b: not b or s > 0,
    "b = (s>0)": lambda s, b: b == (s > 0),
    "!b & s>=0 | s=N": lambda s, b: (not b and s >= 0) or s == 6,
    "(b ? s : -s) > 0": lambda s, b: (s if b else -s) > 0,
    "s/3 + s/3 + s/3 = s": lambda s, b: True,
    "floor(s/2) = ceil(s/2)": lambda s, b: s % 2 == 0,
    "pow(2,s+3) > 8": lambda s, b: s > 0,
    "min(s, 0) != max(s, 0)": lambda s, b: s != 0,
    "round(s/2) = s/2": lambda s, b: s % 2 == 0,
    "on & s>half*p": lambda s, b: s > F(3, 5),
}


def test_formulas_are_what_storm_says_they_are(worker: StormWorker) -> None:
    definitions = "".join(f"formula f{i} = {text};\n" for i, text in enumerate(EXPRESSIONS))
    labels = "".join(f'label "f{i}" = {text};\n' for i, text in enumerate(EXPRESSIONS))
    program = build_prism_program(WALK + definitions + labels, worker=worker)
    chain = program.chain
    assert chain.n_states == 20
    states = list(zip(chain.variables["s"].tolist(), chain.variables["b"].tolist(), strict=True))
    for i, (text, meaning) in enumerate(EXPRESSIONS.items()):
        ours = chain.variables[f"f{i}"]
        assert ours.tolist() == chain.labels[f"f{i}"].tolist(), text
        assert ours.tolist() == [meaning(s, b) for s, b in states], text


def test_formulas_of_numbers_have_types_and_may_use_each_other(worker: StormWorker) -> None:
    definitions = "formula twice = third*6;\nformula third = s/3;\nformula next = s+1; // formula x = s;\n"
    definitions += "formula low = s*0.1 <= 0.3;\nformula huge = pow(10, s+20);\n"
    chain = build_prism_chain(WALK + definitions + 'label "x" = next>0;\n', worker=worker)
    s = chain.variables["s"]
    types = {name: str(values.dtype) for name, values in chain.variables.items()}
    formulas = {"twice": "int64", "third": "float64", "next": "int64", "low": "bool"}  # huge is beyond 64 bits
    assert list(types.items()) == list(({"s": "int64", "b": "bool"} | formulas).items())
    assert chain.variables["next"].tolist() == (s + 1).tolist()
    assert chain.variables["third"].tolist() == [float(F(value, 3)) for value in s.tolist()]
    assert chain.variables["twice"].tolist() == (2 * s).tolist()  # exact until the end: 6 * (1/3) is 2
    assert chain.variables["low"].tolist() == (s <= 3).tolist()  # exact, where doubles have 3*0.1 > 0.3


def test_constants_are_exact_and_what_cannot_be_evaluated_is_told(worker: StormWorker) -> None:
    program = build_prism_program(WALK + "formula inverse = 6/s;\nformula positive = inverse>0;\n", worker=worker)
    assert dict(program.chain.constants) == {"N": 6, "p": F(1, 5), "half": 3, "on": True}
    assert list(program.chain.variables) == ["s", "b"]
    told = "\n".join(program.notes)
    assert "properties cannot use the constant root: pow(2, 1/2) is not rational" in told
    assert "properties cannot use the formula inverse: division by zero (where s=0)" in told
    assert "properties cannot use the formula positive" in told
    assert "hidden" not in told


def test_a_model_keeps_its_words_in_json_and_says_what_is_missing(tmp_path: Path) -> None:
    program = tmp_path / "walk.prism"
    program.write_text(WALK + "formula inverse = 6/s;\nformula high = s>half;\n", encoding="utf-8")
    model = read_model(program)
    assert [note.partition(":")[0] for note in model.notes] == [
        "properties cannot use the constant root",
        "properties cannot use the formula inverse",
    ]
    write_model(model.chain, tmp_path / "walk.json")
    again = read_model(tmp_path / "walk.json")
    assert again.notes == ()
    assert again.chain.word_names() == model.chain.word_names() == ["s", "b", "high", "half", "N", "p", "on"]
    assert dict(again.chain.constants) == dict(model.chain.constants)
    for name, values in model.chain.variables.items():
        assert again.chain.variables[name].dtype == values.dtype
        assert again.chain.variables[name].tolist() == values.tolist()


def test_renamed_modules_bring_variables(worker: StormWorker) -> None:
    text = """dtmc
module one
  x : [0..1] init 0;
  [a] true -> 1/2:(x'=1-x) + 1/2:true;
endmodule
module two = one [x=y, a=a] endmodule
formula both = x=1 & y=1;
"""
    chain = build_prism_chain(text, worker=worker)
    assert list(chain.variables) == ["x", "y", "both"]
    assert chain.variables["both"].tolist() == ((chain.variables["x"] == 1) & (chain.variables["y"] == 1)).tolist()


def test_states_without_variables_and_repeated_values(worker: StormWorker) -> None:
    chain = build_prism_chain("dtmc\nmodule m\n [] true -> true;\nendmodule\nformula f = 2;\n", worker=worker)
    assert chain.states == ("state0",)
    assert chain.variables["f"].tolist() == [2]


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


def test_reward_structures_keep_the_order_of_the_program(worker: StormWorker) -> None:
    """So that ``R{1}`` and a bare ``R`` mean what they mean in PRISM."""
    text = "dtmc\nmodule m\n s:[0..1];\n [] true -> (s'=1);\nendmodule\n" + "".join(
        f'rewards "{name}" true : 1; endrewards\n' for name in ("zeta", "alpha", "mid")
    )
    chain = build_prism_program(text, worker=worker).chain
    assert list(chain.rewards) == ["zeta", "alpha", "mid"]
    assert list(chain_from_dict(chain_to_dict(chain)).rewards) == ["zeta", "alpha", "mid"]


def test_an_interval_model_is_refused_with_where_to_go(worker: StormWorker) -> None:
    text = HEAD + "  [] s=0 -> [0.1,0.5]:(s'=1) + [0.5,0.9]:(s'=2);\n" + TAIL
    with pytest.raises(ModelError, match="interval model") as refused:
        build_prism_chain(text, worker=worker)
    assert "check --robust" in str(refused.value.problems[0].hint)
