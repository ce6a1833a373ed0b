"""The runtime monitor against the rational engine on chains whose runs begin with the prefix for certain."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.runs import NAMES, as_traces, runs

from tracebridge.chain import MarkovChain, RationalMatrix, TransitionCounts, fit_chain, fit_counts
from tracebridge.chain.rational import RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking import check
from tracebridge.errors import FitError, TracebridgeError, UsageError
from tracebridge.inference import property_uncertainty
from tracebridge.inference.expanded.standing import Standing
from tracebridge.inference.online.likelihood import DRAWN_RUNS
from tracebridge.inference.online.monitor import runtime_monitor
from tracebridge.traces import Outcome, Step, Trace

FORMULAS = (
    'P=? [ F "success" ]',
    'P=? [ F<=3 "success" ]',
    'P=? [ F[2,4] "b" ]',
    'P=? [ F>=2 "a" ]',
    'P=? [ !"c" U "success" ]',
    'P=? [ !"c" U[1,3] "b" ]',
    'P=? [ "a" W "b" ]',
    'P=? [ "b" R<=4 !"failure" ]',
    'P=? [ G[1,2] !"a" ]',
    'P=? [ G !"b" ]',
    'P=? [ X "b" ]',
    'P=? [ F<=0 "a" ]',
    'P=? [ F ("a" & P>=0.2999 [ X "success" ]) ]',
    'R{"steps"}=? [ F "absorbed" ]',
    'R{"steps"}=? [ F ("b" | "absorbed") ]',
    'R{"a"}=? [ C<=3 ]',
    'R{"a"}=? [ C ]',
    'R{"steps"}=? [ I=2 ]',
)
#: Every state occurs, so that each formula is about labels that there are.
EVERY_STATE = [((0, 1, 2, 3), 0), ((3, 2, 1, 0), 1)]


def beginning_with(chain: MarkovChain, prefix: list[int]) -> MarkovChain:
    """The same chain behind states of its own for the prefix, which a run passes through for certain."""
    n, k = chain.n_states, len(prefix)
    P = chain.exact_transitions()
    rows = [P.row(i) for i in range(n)]
    rows += [{n + i + 1: Fraction(1)} for i in range(k - 1)] + [rows[prefix[-1]]]
    source = [*range(n), *prefix]
    promising = [P.row(i).get(chain.index("success"), 0) >= Fraction("0.2999") for i in source]
    return MarkovChain(
        states=tuple(f"state {i}" for i in range(n + k)),
        transitions=RationalMatrix.from_rows(rows, n + k),
        initial=RationalVector.from_fractions([Fraction(int(i == n)) for i in range(n + k)]),
        labels={"promising": np.array(promising)}
        | {name: chain.label(name)[source] for name in {*chain.labels, *chain.states}},
        rewards={
            name: RewardStructure.from_fractions([each.fractions(action=False)[i] for i in source])
            for name, each in chain.rewards.items()
        },
    )


@st.composite
def live_runs(draw: st.DrawFn) -> tuple[object, list[str], str | None]:
    """A fit, a prefix of state names, and an end or none."""
    corpus = EVERY_STATE + draw(runs(8))
    fit = fit_chain(as_traces(corpus), prior=draw(st.sampled_from(["mass-one", "none"])))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
    return fit, names, draw(st.sampled_from([None, "success", "failure"]))


@settings(max_examples=8, deadline=None)
@given(live_runs())
def test_values_are_those_of_the_chain_that_begins_with_the_prefix(drawn):
    fit, names, end = drawn
    reading = runtime_monitor(fit, ";\n".join(FORMULAS), draws=0).read(names, end)
    path = [fit.chain.index(name) for name in [*names, *([end] if end else [])]]
    # what is true in a state of the prefix is what is true in the state that it stands for
    asked = ";\n".join(FORMULAS).replace('P>=0.2999 [ X "success" ]', '"promising"')
    results = check(beginning_with(fit.chain, path), asked, engines=["closed-form"], exact=True)
    assert len(results) == len(reading.properties) == len(FORMULAS)
    for result, found in zip(results, reading.properties, strict=True):
        assert found.value == pytest.approx(float(result.value.value), rel=1e-9, abs=1e-12), result.property.text
    assert reading.success.value == pytest.approx(reading.properties[0].value, rel=1e-12)
    left = reading.properties[FORMULAS.index('R{"steps"}=? [ F "absorbed" ]')].value - len(names)
    assert reading.steps_left.value == pytest.approx(max(left, 0.0), rel=1e-9, abs=1e-9)


@settings(max_examples=8, deadline=None)
@given(live_runs())
def test_what_is_settled_never_changes(drawn):
    fit, names, end = drawn
    run = runtime_monitor(fit, ";\n".join(FORMULAS), draws=0).start()
    readings = [run.step(name) for name in names] + ([run.end(end)] if end else [])
    for i in range(len(FORMULAS)):
        settled = [reading.properties[i] for reading in readings if reading.properties[i].settled]
        assert all(each == settled[0] for each in settled)
        assert [reading.properties[i].settled for reading in readings] == sorted(
            reading.properties[i].settled for reading in readings
        )


def fitted(n: int = 30):
    paths = [(["plan", "search", "answer"], "success"), (["plan", "search", "search", "answer"], "failure")] * n
    return fit_counts(TransitionCounts.from_paths(paths + [(["plan", "answer"], "success")] * n))


def test_time_shortens_the_bound():
    """After t steps on the way a bound is worth what one of t steps less is worth at the start."""
    fit = fitted()
    bounds = {t: 400 - t for t in (0, 1, 200, 390, 397, 400)}
    text = ";".join(f'P=? [ F<={d} "success" ]' for d in bounds.values())
    whole, *others = runtime_monitor(fit, text, draws=20).tables
    for t, table in zip(bounds, (whole, *others), strict=True):
        for name in ("value", "lower", "upper"):
            assert getattr(whole, name)[t] == pytest.approx(getattr(table, name)[0], rel=1e-12)


def test_a_prefix_of_one_step_has_the_interval_of_the_property():
    """Runs all start in one state, so that the value after the first step is the value at the start."""
    text = '//@ credible 0.9\n"rate": P>=0.6 [ F "success" ]; P>=0.2 [ F<=3 "success" ]; R{"steps"}<=4 [ F "absorbed" ]'
    fit = fitted()
    found = runtime_monitor(fit, text, draws=1000, seed=5, level=0.9).read(["plan"])
    known = property_uncertainty(fit, text, draws=1000, seed=5, level=0.9)
    for reading, each in zip(found.properties, known, strict=True):
        assert reading.value == pytest.approx(each.point, rel=1e-12)
        assert [reading.lower, reading.upper] == pytest.approx([each.interval.lower, each.interval.upper], rel=1e-9)
    assert found.properties[0].verdict == str(known[0].verdict)
    assert [reading.verdict for reading in found.properties[1:]] == ["satisfied", "satisfied"]


def test_credible_verdicts_are_those_of_the_share_of_draws():
    fit = fitted(3)
    bounds = np.linspace(0.2, 0.9, 8).round(2).tolist()
    asked = [f'P{comparison}{bound} [ F "success" ];' for bound in bounds for comparison in (">=", "<=")]
    text = "\n".join(f"//@ credible 0.8\n{formula}" for formula in asked)
    known = [str(each.verdict) for each in property_uncertainty(fit, text, draws=500)]
    found = [each.verdict for each in runtime_monitor(fit, text, draws=500).read(["plan"]).properties]
    assert found == known
    assert {*known} == {"satisfied", "violated", "undecided"}


def test_what_the_corpus_never_did_is_named():
    steps = {name: Step(name=name) for name in ("plan", "search", "answer")}
    traces = [
        Trace(trace_id=f"{i}", outcome=Outcome.SUCCESS, steps=tuple(map(steps.__getitem__, names)))
        for i, names in enumerate([("plan", "search", "answer"), ("plan", "answer")] * 5)
    ]
    monitor = runtime_monitor(
        fit_chain(traces), standing=Standing(scope="path", verdict="reject", reasons=("it has memory",))
    )
    usual = monitor.read([steps["plan"], steps["search"], steps["answer"]], "success")
    assert (usual.unseen_transitions, usual.unseen_steps) == ((), ())
    assert (usual.state, usual.ended, usual.steps_left.value) == ("success", Outcome.SUCCESS, 0)
    odd = monitor.read([steps["answer"], Step(name="search", error=True), steps["plan"]], "failure")
    assert odd.unseen_transitions == (
        "start -> answer",
        "answer -> search",
        "search -> plan",
        "plan -> failure",
    )
    assert odd.unseen_steps == ("action 'search', error",)
    assert odd.tail < usual.tail
    assert odd.mark == "chain rejected"
    assert odd.to_dict()["log_likelihood"] == "-Infinity"
    assert runtime_monitor(fit_chain(traces)).read([steps["plan"]]).mark == "chain not certified"


def test_the_tail_is_the_share_of_less_likely_runs():
    """Of runs that start with a (0.9) or b (0.1), and all end after that step, a tenth is as unlikely as b."""
    paths = [(["a"], "success")] * 90 + [(["b"], "success")] * 10
    monitor = runtime_monitor(fit_counts(TransitionCounts.from_paths(paths), prior="none"))
    reading = monitor.read(["b"])
    assert reading.log_likelihood == pytest.approx(math.log(0.1))
    assert reading.tail == pytest.approx(0.1, abs=5 * math.sqrt(0.09 / DRAWN_RUNS))
    assert monitor.read(["a"]).tail == 1
    beyond = monitor.read(["a", "a"])
    assert beyond.log_likelihood == -math.inf
    assert math.isnan(beyond.tail)


def test_refusals_say_why():
    text = '"twice": pow(P=? [ F "success" ], 2); "often": P=? [ G F "plan" ]; "good": P=? [ F "success" ];'
    monitor = runtime_monitor(fitted(), text, draws=10)
    assert [table.name for table in monitor.tables] == ["good"]
    assert sorted(monitor.refused) == ["often", "twice"]
    assert "after a prefix only P of X" in monitor.refused["twice"]
    run = monitor.start()
    with pytest.raises(UsageError, match="no state 'sleep'"):
        run.step("sleep")
    with pytest.raises(FitError, match="fitted to counts"):
        run.step(Step(name="sleep"))
    with pytest.raises(UsageError, match="no outcome"):
        run.end("maybe")
    run.end("censored")
    with pytest.raises(UsageError, match="has ended in censored"):
        run.step("plan")
    with pytest.raises(UsageError, match="takes a fitted chain"):
        runtime_monitor(fitted().chain)
    with pytest.raises(TracebridgeError, match="not negative"):
        runtime_monitor(fitted(), draws=-1)


def test_retries_are_told_by_the_step_before():
    call = Step(name="call", error=True)
    traces = [
        Trace(trace_id=f"{i}", outcome=Outcome.SUCCESS, steps=(call, Step(name="call"), Step(name="answer")))
        for i in range(5)
    ]
    monitor = runtime_monitor(fit_chain(traces))
    run = monitor.start()
    assert [run.step(step).state for step in traces[0].steps] == ["call.error", "call.retry", "answer"]
    assert run.end("success").unseen_steps == ()
