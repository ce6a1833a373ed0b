"""Interval chains as PRISM models: what is written, and that Storm reads the same bounds and values."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from tracebridge.chain.interval import IntervalChain
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform.robust import robust_values
from tracebridge.errors import UsageError
from tracebridge.export.prism_intervals import format_prism_intervals
from tracebridge.pctl.parser import parse_formula

STORM = Path(__file__).parent / "storm_intervals_reference.py"


def interval_chain(initial=(1, 0, 0), low=0.125):
    return IntervalChain(
        states=("plan", "tool call", "success"),
        lower=csr_array(np.array([[0.1, 0.25, low], [0.2, 0.1, 0.3], [0, 0, 1.0]])),
        upper=csr_array(np.array([[0.4, 0.5, 0.7], [0.5, 0.4, 0.7], [0, 0, 1.0]])),
        initial=np.array(initial, dtype=float),
        labels={"success": [False, False, True]},
        rewards={"steps": RewardStructure(state=np.array([1.0, 2.0, 0.0]))},
    )


def test_the_text():
    assert (
        format_prism_intervals(interval_chain(low=0.0))
        == """\
// An interval Markov chain of 3 states, written by tracebridge: each probability lies
// between two bounds. The comment behind a command names its state.
// 1 lower bounds are 0: PRISM refuses them, and so does Storm for properties without a step
// bound.

dtmc

module chain
  s : [0..2] init 0;

  [] s=0 -> [0.1,0.4]:(s'=0) + [0.25,0.5]:(s'=1) + [0.0,0.7]:(s'=2);  // "plan"
  [] s=1 -> [0.2,0.5]:(s'=0) + [0.1,0.4]:(s'=1) + [0.3,0.7]:(s'=2);  // "tool call"
  [] s=2 -> [1.0,1.0]:(s'=2);  // "success"
endmodule

label "success" = s=2;  // label "success"
label "plan" = s=0;  // state "plan"
label "tool_x20_call" = s=1;  // state "tool call"

rewards "steps"  // "steps", state float, action none
  s=0 : 1.0;
  s=1 : 2.0;
endrewards
"""
    )


def test_a_floor_replaces_lower_bounds_of_zero_and_says_so():
    text = format_prism_intervals(interval_chain(low=0.0), floor=1e-6)
    assert "[1e-06,0.7]:(s'=2)" in text
    assert "// 1 lower bounds of 0 were raised to 1e-06" in text
    assert "[0.0," not in text
    with pytest.raises(UsageError, match=r"state 'plan': with the floor 0\.9 its lower bounds sum to over 1"):
        format_prism_intervals(interval_chain(low=0.0), floor=0.9)
    with pytest.raises(UsageError, match="lies between 0 and 1"):
        format_prism_intervals(interval_chain(), floor=0.0)


def test_too_many_states_are_refused():
    with pytest.raises(UsageError, match="3 states are too many"):
        format_prism_intervals(interval_chain(), max_states=2)


@pytest.mark.storm
def test_storm_reads_the_bounds_and_agrees_where_it_is_sound():
    # Not sound in Storm, or not there: lower bounds of zero, X and G of an interval DTMC.
    chain = interval_chain()
    questions = [
        (text, mode)
        for text in ('P=? [F<=3 "success"]', 'P=? [!"tool_x20_call" U "success"]', 'R{"steps"}=? [F "success"]')
        for mode in ("MINIMIZE", "MAXIMIZE")
    ]
    answer = ask_storm(format_prism_intervals(chain), questions)
    read = {(i, j): (low, high) for i, j, low, high in answer["bounds"]}
    lower, upper = chain.lower.toarray(), chain.upper.toarray()
    assert read.keys() == {(i, j) for i, j in np.argwhere(upper).tolist()}
    for (i, j), bounds in read.items():  # Storm rounds 0.4 to the next double below
        assert bounds == pytest.approx((lower[i, j], upper[i, j]), rel=2.0**-52)
    for (text, mode), value in zip(questions, answer["values"], strict=True):
        ours = robust_values(chain, parse_formula(text.replace("_x20_", " ")), mode[:3].lower())[0]
        assert float(ours.value) == pytest.approx(value, rel=1e-9), (text, mode)


@pytest.mark.storm
def test_a_spread_start_becomes_a_first_state():
    chain = interval_chain(initial=(0.25, 0.75, 0))
    text = format_prism_intervals(chain)
    assert "[] s=3 -> [0.25,0.25]:(s'=0) + [0.75,0.75]:(s'=1);  // the initial distribution" in text
    questions = [('P=? [F<=4 "success"]', "MINIMIZE"), ('P=? [F<=4 "success"]', "MAXIMIZE")]
    for (_, mode), value in zip(questions, ask_storm(text, questions)["values"], strict=True):
        ours = robust_values(chain, parse_formula('P=? [F<=3 "success"]'), mode[:3].lower())
        assert float(ours.value @ chain.initial) == pytest.approx(value, rel=1e-12)


def ask_storm(program, questions):
    done = subprocess.run(
        [sys.executable, str(STORM)],
        input=json.dumps({"program": program, "questions": questions}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
