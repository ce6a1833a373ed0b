"""Steps with a past that few runs had are named with their counts."""

from collections import Counter

import pytest

from tracebridge.chain.expanded.thin_contexts import THIN_COUNT, thin_context_note
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths

RUNS = [("ab", "success")] * 20 + [("aab", "failure")] * 4 + [("abba", "success")] * 2


def paths() -> RunPaths:
    return RunPaths.of_names([(list(steps), outcome) for steps, outcome in RUNS], states=("a", "b"))


def test_counts_are_those_of_the_runs():
    pairs = Counter(pair for steps, _ in RUNS for pair in zip("^" + steps, steps, strict=False))
    thin = {pair: number for pair, number in pairs.items() if number < THIN_COUNT}
    assert thin == {("a", "a"): 4, ("b", "b"): 2, ("b", "a"): 2}
    note = thin_context_note(paths(), parse_model("order2"))
    assert note is not None
    assert f"3 of {len(pairs)} kinds of step" in note
    assert f"{8 / sum(pairs.values()):.1%} of all steps" in note
    assert "(a [previous a] 4 times; a [previous b] 2 times; b [previous b] 2 times)" in note


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("clock:0,1,3", "a [step 3+] 2 times"),
        ("dwell2", "a [stay 1+] 4 times"),
        ("clock:0,1,3", "step 1 to 2] 4 times"),
    ],
)
def test_pasts_are_called_as_in_states(form, name):
    assert name in str(thin_context_note(paths(), parse_model(form)))


def test_without_thin_contexts_nothing_is_said():
    plenty = RunPaths.of_names([(list("ab"), "success")] * 20, states=("a", "b"))
    assert thin_context_note(plenty, parse_model("order2")) is None
    assert thin_context_note(paths(), parse_model("phases:2")) is None
