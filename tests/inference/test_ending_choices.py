"""Other choices of what runs count as, against fits to traces that were rewritten by that choice."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from tracebridge.chain import fit_chain
from tracebridge.chain.counts import CensoringPolicy
from tracebridge.chain.fit import ChainFit
from tracebridge.errors import TracebridgeError
from tracebridge.inference.ending_choices import TRIED_REASONS, EndingChoices, UnsuccessfulRuns, ending_choices
from tracebridge.pctl import parse_properties, resolve_constants
from tracebridge.report.ending_choices import ending_choices_markdown, ending_choices_to_dict
from tracebridge.report.figures import KeyFigures, key_figures
from tracebridge.traces import Outcome, Step, Trace

PROPERTIES = resolve_constants(parse_properties('"rate": P=? [ F "success" ]; P>=0.3 [ F<=4 "success" ]'), {})


def random_traces(seed: int, reasons: tuple[str | None, ...] = ("step_cap", "crash", None)) -> list[Trace]:
    rng = np.random.default_rng(seed)
    traces = []
    for run in range(40):
        outcome = Outcome(rng.choice(["success", "failure", "censored"], p=[0.4, 0.3, 0.3]))
        steps = tuple(Step(name=str(name)) for name in rng.choice(["plan", "code", "test"], int(rng.integers(0, 6))))
        reason = reasons[int(rng.integers(len(reasons)))]
        traces.append(Trace(trace_id=str(run), outcome=outcome, steps=steps, termination=reason))
    return traces


def chosen(traces: list[Trace], policy: CensoringPolicy = "censored") -> tuple[ChainFit, EndingChoices | None]:
    fit = fit_chain(traces, policy=policy)
    tally = UnsuccessfulRuns(fit)
    assert list(tally.passing(traces)) == traces
    return fit, ending_choices(fit, tally, PROPERTIES)


def rewritten(traces: list[Trace], treated: Callable[[Trace], CensoringPolicy | None]) -> list[Trace]:
    """The traces with another outcome, or without those that are dropped; None leaves one as it is."""
    found = []
    for trace in traces:
        treatment = None if trace.outcome is Outcome.SUCCESS else treated(trace)
        if treatment is None:
            found.append(trace)
        elif treatment != "drop":
            found.append(msgspec.structs.replace(trace, outcome=Outcome(treatment)))
    return found


@pytest.mark.parametrize("policy", ["censored", "failure"])
@pytest.mark.parametrize("seed", [0])
def test_each_choice_is_the_fit_to_traces_rewritten_by_it(seed: int, policy: CensoringPolicy) -> None:
    traces = random_traces(seed)
    _, choices = chosen(traces, policy)
    assert choices is not None
    assert {each.reason for each in choices.choices} == {None, "step_cap", "crash", ""}
    for choice in choices.choices:

        def treated(trace: Trace, choice: object = choice) -> CensoringPolicy | None:
            reason, treatment = choice.reason, choice.treatment  # type: ignore[attr-defined]
            cut = trace.outcome is Outcome.CENSORED
            if reason is None or reason == "":  # a failure without a reason was seen
                mine = cut and (reason is None or trace.termination is None)
            else:
                mine = trace.termination == reason
            return treatment if mine else policy if cut else None

        expected = key_figures(fit_chain(rewritten(traces, treated)).chain)
        assert isinstance(expected, KeyFigures)
        assert choice.numbers.reliability == pytest.approx(expected.reliability, rel=1e-12)
        assert choice.numbers.mean_time == pytest.approx(expected.mean_time, rel=1e-12)
        assert choice.numbers.values[0] == pytest.approx(expected.reliability, rel=1e-12)
        assert choice.numbers.pass_rate == fit_chain(rewritten(traces, treated)).counts.pass_rate()


def test_the_present_numbers_are_those_of_the_fit() -> None:
    fit, choices = chosen(random_traces(5), "failure")
    figures = key_figures(fit.chain)
    assert choices is not None
    assert isinstance(figures, KeyFigures)
    assert choices.present.reliability == figures.reliability
    assert choices.present.pass_rate == fit.counts.pass_rate("failure")


def test_runs_that_only_succeed_or_fail_for_no_stated_reason_leave_nothing_to_choose() -> None:
    traces = [msgspec.structs.replace(trace, termination=None) for trace in random_traces(1)]
    assert chosen([trace for trace in traces if trace.outcome is not Outcome.CENSORED])[1] is None


def test_one_reason_of_all_censored_runs_is_shown_once() -> None:
    traces = [
        msgspec.structs.replace(trace, termination="cap" if trace.outcome is Outcome.CENSORED else None)
        for trace in random_traces(2)
    ]
    _, choices = chosen(traces)
    assert choices is not None
    assert [(each.reason, each.treatment) for each in choices.choices] == [("cap", "failure"), ("cap", "drop")]


def test_rare_reasons_are_left_out_and_said_so() -> None:
    many = tuple(f"reason {i}" for i in range(TRIED_REASONS + 3))
    _, choices = chosen(random_traces(3, many))
    assert choices is not None
    assert len({each.reason for each in choices.choices} - {None}) == TRIED_REASONS
    assert any("rarer reasons" in note for note in choices.notes)


def test_a_choice_without_a_chain_says_why() -> None:
    steps = (Step(name="plan"),)
    traces = [Trace(trace_id="a", outcome=Outcome.FAILURE, steps=steps, termination="cap")]
    _, choices = chosen(traces)
    assert choices is not None
    left_out = next(each for each in choices.choices if each.treatment == "drop")
    assert left_out.numbers.reliability is None
    with pytest.raises(TracebridgeError) as refused:
        fit_chain(traces[:0])
    assert left_out.numbers.missing == str(refused.value)
    shown = "\n".join(ending_choices_markdown(choices, ["rate", "soon"]))
    assert f"- none: {left_out.numbers.missing}" in shown
    assert "as it is" in shown
    document = ending_choices_to_dict(choices)
    assert document["choices"][-1]["counted_as"] == "drop"
    assert document["present"]["R_inf"] < 0.5
