"""The conservative guarantee: against robust values, and against chains drawn inside the intervals."""

from __future__ import annotations

import pytest
from tests.closedform.robust.interval_chains import drawn_inside
from tests.export.test_prism_intervals import ask_storm

from tracebridge import fit_chain
from tracebridge.checking.result import Verdict
from tracebridge.checking.run import resolve_for
from tracebridge.closedform.robust import robust
from tracebridge.export.prism_intervals import format_prism_intervals
from tracebridge.inference.batched_evaluation import evaluate_draws
from tracebridge.inference.interval_entries import interval_chain_of_fit
from tracebridge.inference.intervals import Interval
from tracebridge.inference.robust_guarantee import robust_guarantees
from tracebridge.pctl import parse_properties
from tracebridge.traces import Outcome, Trace
from tracebridge.traces.model import Step

TEXT = """
"lone": P=? [ F "success" ];
"soon": P>=0.05 [ F<=3 "success" ];
"never": P>=0.999 [ F<=1 "success" ];
"steps": R{"steps"}=? [ F "absorbed" ];
"pass_at_3": 1 - pow(1 - P=? [ F "success" ], 3);
"difference": P=? [ F "success" ] - P=? [ F<=2 "success" ];
"nested": P=? [ F P>=0.2 [ X "success" ] ];
"both": P>=0.01 [ F "success" ] & P<=0.9999 [ F "success" ];
"ltl": P=? [ (F "a") & (F "success") ];
"""


def fit_of(counts, **options):
    runs = [
        Trace(
            trace_id=f"{word}-{outcome}-{i}",
            outcome=Outcome(outcome),
            steps=tuple(Step(name=name) for name in word),
            attributes={"w": str(1 + i % 2)},
        )
        for word, outcome, number in counts
        for i in range(number)
    ]
    return fit_chain(runs, **options)


@pytest.fixture(scope="module")
def fit():
    return fit_of([("ab", "success", 60), ("aab", "failure", 25), ("ba", "success", 12), ("b", "failure", 9)])


@pytest.fixture(scope="module")
def properties(fit):
    return resolve_for(fit.chain, parse_properties(TEXT), {}).properties


def test_each_kind_of_property_has_its_guarantee(fit, properties):
    found = dict(zip((each.name for each in properties), robust_guarantees(fit, properties), strict=True))
    chain = interval_chain_of_fit(fit, method="clopper-pearson", level=0.95, together="chain")
    lone = robust(chain, properties[0])
    assert (found["lone"].lower, found["lone"].upper) == (lone.minimum.lower, lone.maximum.upper)
    assert found["lone"].verdict is None
    assert found["soon"].verdict is Verdict.SATISFIED
    assert found["never"].verdict is Verdict.VIOLATED
    assert found["both"].verdict is Verdict.SATISFIED
    assert found["both"].lower is None
    ends = [1 - (1 - end) ** 3 for end in (found["lone"].lower, found["lone"].upper)]
    assert (found["pass_at_3"].lower, found["pass_at_3"].upper) == pytest.approx(ends, rel=1e-12)
    assert "one temporal operator" in found["ltl"].reason
    assert {each.transitions for each in found.values()} == {8}  # a and b, each to a, b, success and failure
    assert found["lone"].width_ratio(Interval(lower=0.5, upper=0.6, level=0.95, method="other")) == pytest.approx(
        (found["lone"].upper - found["lone"].lower) / 0.1
    )
    assert found["lone"].width_ratio(None) is None


def test_a_thousand_chains_inside_the_intervals_are_always_inside_the_guarantee(fit, properties):
    chain = interval_chain_of_fit(fit, method="clopper-pearson", level=0.95, together="chain")
    stack = drawn_inside(chain, 1_000, seed=7)
    entries = stack.entries
    assert (entries >= chain.lower.data[:, None]).all()
    assert (entries <= chain.upper.data[:, None]).all()
    for property_, found in zip(properties, robust_guarantees(fit, properties), strict=True):
        if found.reason is not None:
            continue
        drawn = evaluate_draws(stack, property_.formula)
        if found.verdict in (Verdict.SATISFIED, Verdict.VIOLATED):
            assert drawn.holds is not None
            assert (drawn.holds == (found.verdict is Verdict.SATISFIED)).all(), property_.name
        values = drawn.values
        if values is None or found.lower is None or found.upper is None:
            assert property_.name == "both"
            continue
        assert (values >= found.lower - 1e-12).all(), property_.name
        assert (values <= found.upper + 1e-12).all(), property_.name
        assert found.lower <= values[0] <= found.upper


@pytest.mark.storm
def test_storm_finds_the_same_guarantee_where_its_interval_engine_is_sound():
    # every transition of the support was seen, so that no lower bound is zero, and runs start in one state
    seen = [
        ("ab", "success", 30),
        ("ab", "failure", 9),
        ("a", "success", 14),
        ("a", "failure", 6),
        ("aab", "success", 8),
    ]
    fit = fit_of(seen, support="observed")
    chain = interval_chain_of_fit(fit, method="clopper-pearson", level=0.95, together="chain")
    assert chain.lower.data.min() > 0
    texts = ['P=? [ F "success" ]', 'R{"steps"}=? [ F "absorbed" ]', 'P=? [ F<=3 "success" ]']
    questions = [(text, mode) for text in texts for mode in ("MINIMIZE", "MAXIMIZE")]
    values = ask_storm(format_prism_intervals(chain), questions)["values"]
    found = robust_guarantees(fit, resolve_for(fit.chain, parse_properties(";".join(texts)), {}).properties)
    ours = [end for each in found for end in (each.lower, each.upper)]
    assert ours == pytest.approx(values, rel=1e-9)


def test_the_guarantee_is_wider_at_a_higher_level(fit, properties):
    narrow, wide = (robust_guarantees(fit, properties[:1], level=level)[0] for level in (0.5, 0.99))
    assert wide.lower < narrow.lower < narrow.upper < wide.upper


def test_without_plain_counts_there_is_none_and_it_says_why(properties):
    runs = [("ab", "success", 8), ("b", "failure", 6)]
    assert "weights" in robust_guarantees(fit_of(runs, weight="w"), properties[:1])[0].reason
    assert "remember" in robust_guarantees(fit_of(runs, model="order2"), properties[:1])[0].reason
