"""Decision processes through the front door: programs, questions, verdicts, several objectives, the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.chain.test_decision import router
from tests.closedform.decision.random_processes import random_process

from tracebridge.agreement import compare
from tracebridge.chain import RationalVector
from tracebridge.chain.decision import DecisionProcess
from tracebridge.checking import Verdict, check
from tracebridge.checking.models import is_model, read_model, write_model
from tracebridge.checking.prism_program import build_prism_program
from tracebridge.checking.storm_process import StormWorker
from tracebridge.cli import run
from tracebridge.errors import ModelError, PropertyError

pytestmark = pytest.mark.storm

pytest.importorskip("stormpy")

PROGRAM = """mdp
const double p;
module first
  x : [0..2] init 0;
  [go] x=0 -> p:(x'=1) + 1-p:(x'=2);
  [wait] x=0 -> true;
  [] x>0 -> true;
  [] x=1 -> (x'=2);
endmodule
module second
  done : bool init false;
  [wait] !done -> (done'=true);
  [go] true -> true;
endmodule
label "lost" = x=2;
rewards "cost"
  [go] true : 2;
  x=1 : 1/2;
endrewards
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as running:
        yield running


def test_a_program_keeps_its_actions_rewards_and_variables(worker: StormWorker) -> None:
    program = build_prism_program(PROGRAM, constants={"p": "1/3"}, worker=worker)
    process = program.described
    assert isinstance(process, DecisionProcess)
    here = process.index("x=0,done=false")
    assert sorted(process.actions[here]) == ["go", "wait"]
    go = int(process.choice_starts[here]) + process.actions[here].index("go")
    row = {process.states[j]: p for j, p in process.exact_transitions().row(go).items()}
    assert row == {"x=1,done=false": Fraction(1, 3), "x=2,done=false": Fraction(2, 3)}
    assert process.rewards["cost"].action is not None
    assert process.rewards["cost"].action[go] == 2
    assert process.rewards["cost"].state[process.index("x=1,done=false")] == 0.5
    assert process.actions[process.index("x=1,done=true")] == ("", "")
    assert process.variables["x"].tolist() == [int(name[2]) for name in process.states]
    assert process.constants == {"p": Fraction(1, 3)}
    with pytest.raises(ModelError, match="type mdp, not dtmc"):
        _ = program.chain


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[] x>0 -> true;", "[] x=1 -> true;", "x=2,done=false' has no transition"),
        ("+ 1-p:", "+ 1/2-p:", "sum"),
        ("(x'=1)", "(x'=7)", "out of bounds|bounds"),
        ("mdp", "pomdp", "only dtmc and mdp"),
    ],
)
def test_an_unsound_program_is_refused(worker: StormWorker, old: str, new: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build_prism_program(PROGRAM.replace(old, new, 1), constants={"p": "1/3"}, worker=worker)


def test_queries_without_an_optimum_are_refused_all_at_once() -> None:
    with pytest.raises(PropertyError) as caught:
        check(router(), 'P=? [ F "success" ];\nPmax=? [ F P>=0.5 [ X "success" ] ];\n1 - R{"cost"}=? [ F "success" ];')
    places = [(problem.location.line, problem.message[:3]) for problem in caught.value.problems]
    assert places == [(1, "P=?"), (3, "R=?")]
    assert "Pmin=? or Pmax=?" in str(caught.value)


def test_unknown_labels_and_rewards_are_refused() -> None:
    with pytest.raises(PropertyError, match='no state has the label "sucess"'):
        check(router(), 'Pmax=? [ F "sucess" ]')
    with pytest.raises(PropertyError, match="price"):
        check(router(), 'R{"price"}max=? [ F "success" ]')


def test_verdicts_are_about_all_schedulers_or_about_some() -> None:
    properties = """P>=0.7 [ X "success" ]; P>=0.5 [ X "success" ]; Pmax>=0.7 [ X "success" ]; P<=0.7 [ X "success" ];
R{"cost"}<=2.5 [ F "success" ]; Rmin<=2 [ F "success" ]; Pmax=? [ X P>=0.7 [ X "success" ] ]"""
    agreements = compare(check(router(), properties))
    verdicts = [each.verdict for each in agreements]
    no, yes = Verdict.VIOLATED, Verdict.SATISFIED
    assert verdicts == [no, yes, yes, no, no, yes, None]
    assert all(each.agree for each in agreements)
    assert [float(each.results[0].value.value) for each in agreements[-1:] if each.results[0].value] == [0.75]


def test_a_spread_start_is_the_mean_over_its_states() -> None:
    process = router(initial=RationalVector(np.array([3, 1]), 4))
    (agreement,) = compare(check(process, 'Pmax=? [ X "success" ]', exact=True))
    assert agreement.results[0].value is not None
    assert agreement.results[0].value.value == Fraction(3, 4) * Fraction(3, 4) + Fraction(1, 4)
    assert agreement.gap == 0


def test_what_one_engine_has_is_said_to_come_from_one() -> None:
    properties = """Pmax=? [ G F "success" ]; multi(Pmax=? [ F "success" ], R{"cost"}<=3 [ F "success" ]);
multi(P>=1 [ F "success" ], R{"cost"}<=2 [ F "success" ]); multi(P>=1 [ F "success" ], R{"cost"}<=1.5 [ F "success" ]);
E [ G !"success" ]"""
    for exact in (False, True):
        agreements = compare(check(router(), properties, exact=exact))
        assert [each.verdict for each in agreements[2:]] == [Verdict.SATISFIED, Verdict.VIOLATED, Verdict.SATISFIED]
        assert [float(each.results[1].value.value) for each in agreements[:2] if each.results[1].value] == [
            pytest.approx(1, abs=1e-8),
            pytest.approx(1, abs=1e-8),
        ]
        assert all(each.agree is None and "single engine" in (each.reason or "") for each in agreements)


def test_the_best_answers_for_a_price_come_from_a_random_choice() -> None:
    """Asking the strong expert with probability x each time costs (1 + 3x)/(3/5 + 2/5 x), two for x = 1/11.

    The answer is right with (1/2 + 2/5 x)/(3/5 + 2/5 x), then 59/70; only a randomised scheduler has both.
    """
    process = read_model(Path(__file__).parents[2] / "prism_models" / "expert_routing.prism").described
    properties = """multi(Pmax=? [ F "right" ], R{"cost"}<=2 [ F "answered" ]);
multi(P>=0.84 [ F "right" ], R{"cost"}<=2 [ F "answered" ]);
multi(P>=0.85 [ F "right" ], R{"cost"}<=2 [ F "answered" ]);
multi(P>=0.9 [ G !"wrong" ], R{"cost"}<=4 [ F "answered" ])"""
    _, storm = zip(*[each.results for each in compare(check(process, properties))], strict=True)
    assert storm[0].value is not None
    assert storm[0].value.lower <= 59 / 70 <= storm[0].value.upper
    assert [each.truth for each in storm[1:]] == [True, False, True]
    assert isinstance(process, DecisionProcess)
    chain = process.induced({"s=0": {"strong": Fraction(1, 11), "weak": Fraction(10, 11)}, "s=1": 0, "s=2": 0})
    right, cost = compare(check(chain, 'P=? [ F "right" ]; R{"cost"}=? [ F "answered" ]', exact=True))
    assert right.results[0].value is not None
    assert cost.results[0].value is not None
    assert (right.results[0].value.value, cost.results[0].value.value) == (Fraction(59, 70), 2)


@pytest.mark.parametrize("exact", [True, False])
def test_the_greatest_probability_under_a_condition(exact: bool) -> None:
    """Storm has it for F under F; the least one and other paths come from our own engine alone."""
    for seed in (20, 50, 52, 55) if exact else (50,):  # with values that are neither 0 nor 1
        process = random_process(seed, 4)
        (greatest, least, other) = compare(
            check(
                process,
                'Pmax=? [ F "a" || F "b" ]; Pmin=? [ F "a" || F "b" ]; Pmax=? [ G "c" || F "b" ]',
                exact=exact,
            )
        )
        assert all("single engine" in (each.reason or "") for each in (least, other))
        own, storm = [result.operators[0].states for result in greatest.results]
        assert own.exact == storm.exact == exact
        assert own.to_float().value.tolist() == pytest.approx(storm.to_float().value.tolist(), rel=1e-15, nan_ok=True)
        if exact:
            assert all(a == b or a != a for a, b in zip(own.value, storm.value, strict=True))  # noqa: PLR0124 - NaN
        assert any(0 < value < 1 for value in own.value.tolist())


def test_several_objectives_need_one_start() -> None:
    process = router(initial=RationalVector(np.array([1, 1]), 2))
    results = check(process, 'multi(Pmax=? [ F "success" ], Pmax=? [ X "success" ])')
    assert all(result.verdict is Verdict.UNSUPPORTED for result in results)
    assert "one initial state" in (results[1].reason or "")


def test_the_command_line_checks_a_process_and_refuses_what_is_for_chains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, properties = tmp_path / "router.json", tmp_path / "router.props"
    write_model(router(), model)
    assert is_model(model)
    properties.write_text('"cost": R{"cost"}min=? [ F "success" ];\n"sure": P>=1 [ F "success" ];\n')
    assert run(["check", str(model), str(properties), "--exact", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    values = [[engine["value"]["value"] for engine in each["engines"]] for each in document["properties"]]
    assert values == [["2", "2"], ["1", "1"]]
    assert run(["show", str(model), "--sensitivity"]) == 3
    message = capsys.readouterr().err
    assert "decision process" in message
    assert "DecisionProcess.induced makes a chain of it" in message


def test_constants_of_a_program_come_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.prism").write_text(PROGRAM)
    (tmp_path / "m.props").write_text('Pmin=? [ F "lost" ]; Pmax=? [ F<=1 x=1 & p < 0.5 ];')
    arguments = ["check", str(tmp_path / "m.prism"), str(tmp_path / "m.props"), "--const", "p=0.25", "--exact"]
    assert run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["engines"][0]["value"]["value"] for each in document["properties"]] == ["3/4", "1/4"]
    assert read_model(tmp_path / "m.prism", constants={"p": Fraction(1, 4)}).fitted is None
