"""What changed between two evidence files, against posteriors that are known in closed form."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta
from tests.small_evidence import edited

from tracebridge.pipeline import assess
from tracebridge.report.evidence_diff import compare_evidence

DRAWS = 2_000
PROPERTIES = """\
//@ requirement R1
//@ credible 0.9
"ok": P>=0.6 [ F "success" ];
"failed": P=? [ F "failure" ];
P=? [ F<=1 "success" ];
"both": P>=0.1 [ F "success" ] & P>=0.1 [ F "failure" ];
"""


def one_step_runs(folder, successes, failures, *, tool="work", properties=PROPERTIES, **options):
    """Evidence of runs of one step, whose probability of success is Beta(s + 1/3, f + 1/3) by the default prior."""
    folder.mkdir()
    outcomes = ["success"] * successes + ["failure"] * failures
    runs = [
        {"trace_id": str(i), "steps": [{"kind": "tool", "name": tool}], "outcome": outcome}
        for i, outcome in enumerate(outcomes)
    ]
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    (folder / "agent.props").write_text(properties)
    settings = {"engines": ["closed-form"], "draws": DRAWS, "resamples": 0, "replicates": 0, "futures": 0}
    return assess([folder / "runs.jsonl"], folder / "agent.props", **{**settings, **options}).evidence


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    return one_step_runs(tmp_path_factory.mktemp("diff") / "before", 20, 20)


@pytest.fixture(scope="module")
def after(tmp_path_factory):
    return one_step_runs(tmp_path_factory.mktemp("diff") / "after", 34, 6)


def by_key(found):
    return {each.key: each for each in found.properties}


def reference(old, new):
    """Quantiles of the difference of two independent Beta variables, from a million draws of another generator."""
    rng = np.random.Generator(np.random.MT19937(7))
    ours, theirs = (rng.beta(s + 1 / 3, f + 1 / 3, size=1_000_000) for s, f in (old, new))
    return np.quantile(theirs - ours, [0.025, 0.975])


def test_a_difference_is_that_of_the_two_posteriors(before, after):
    change = by_key(compare_evidence(before, after))["R1"]
    lower, upper = reference((20, 20), (34, 6))
    # the standard error of the outer quantiles of 2,000 draws is about 0.004 here
    assert change.difference.lower == pytest.approx(lower, abs=0.016)
    assert change.difference.upper == pytest.approx(upper, abs=0.016)
    old, new = beta(20 + 1 / 3, 20 + 1 / 3), beta(34 + 1 / 3, 6 + 1 / 3)
    greater, _ = quad(lambda x: old.cdf(x) * new.pdf(x), 0, 1)
    assert change.probability_greater == pytest.approx(greater, abs=4 * np.sqrt(greater * (1 - greater) / DRAWS))
    assert (change.old_value, change.new_value) == (pytest.approx(0.5), pytest.approx(34.333333 / 40.666667))
    assert change.old_satisfied == pytest.approx(float(old.sf(0.6)), abs=4 * 0.5 / np.sqrt(DRAWS))
    assert change.draws == DRAWS


def test_a_file_compared_with_itself_differs_by_nothing_and_is_as_unsure_as_two_corpora(before):
    """The same seed draws the same numbers for both: taken pair by pair, the difference would be zero and sure."""
    found = compare_evidence(before, before)
    change = by_key(found)["R1"]
    assert change.probability_greater == 0.5
    lower, upper = reference((20, 20), (20, 20))
    assert change.difference.lower == pytest.approx(lower, abs=0.02)
    assert change.difference.upper == pytest.approx(upper, abs=0.02)
    assert found.options == found.inputs == found.corpus == found.standings == found.transitions == ()
    assert found.verdicts_changed == found.surely_changed == found.properties_added == found.states_added == ()


def test_swapping_the_files_swaps_the_signs(before, after):
    forth, back = by_key(compare_evidence(before, after)), by_key(compare_evidence(after, before))
    for key, change in forth.items():
        if change.difference is not None:
            assert change.probability_greater == pytest.approx(1 - back[key].probability_greater)
            assert change.difference.lower == pytest.approx(-back[key].difference.upper, abs=0.02)


def test_verdicts_and_what_surely_changed_are_named(before, after):
    found = compare_evidence(before, after)
    assert [each.key for each in found.verdicts_changed] == ["R1"]
    assert {each.key for each in found.surely_changed} == {"R1", "failed", 'P=? [ F<=1 "success" ]'}
    assert {each.what for each in found.corpus} == {
        "runs that ended in success",
        "runs that ended in failure",
        "pass rate",
    }
    assert {each.what for each in found.inputs} == {"traces: runs.jsonl"}
    both = by_key(found)["both"]
    assert (both.difference, both.reason) == (None, "it is about no single number")
    assert both.old_satisfied is not None


def test_transitions_that_differ_come_with_their_posterior_error(before, after):
    found = compare_evidence(before, after)
    change = next(each for each in found.transitions if (each.source, each.target) == ("work", "success"))
    p, q = (20 + 1 / 3) / 41, (34 + 1 / 3) / 41
    assert (change.old, change.new) == (pytest.approx(p), pytest.approx(q))
    assert change.error == pytest.approx(np.sqrt(p * (1 - p) / 42 + q * (1 - q) / 42))
    assert found.transitions_changed == 2


def test_properties_are_put_together_by_requirement_then_name_then_formula(before, tmp_path):
    other = """\
//@ requirement R1
"renamed": P>=0.7 [ F "success" ];
"failed": R{"steps"}=? [ F "absorbed" ];
"added": P=? [ F "success" ];
P=? [ F<=1 "success" ];
"""
    found = compare_evidence(before, one_step_runs(tmp_path / "other", 20, 20, properties=other))
    change = by_key(found)
    assert {key: each.matched_by for key, each in change.items()} == {
        "R1": "requirement",
        "failed": "name",
        'P=? [ F<=1 "success" ]': "formula",
    }
    assert not change["R1"].same_formula
    assert change["R1"].difference is not None  # another threshold, the same number
    assert change["failed"].difference is None
    assert change["failed"].reason == "it asks for another number than before"
    assert (found.properties_added, found.properties_removed) == (("added",), ("both",))
    assert [each.what for each in found.options] == []


def test_other_states_and_no_draws_are_said(before, tmp_path):
    found = compare_evidence(before, one_step_runs(tmp_path / "other", 20, 20, tool="think", draws=0))
    assert (found.states_added, found.states_removed) == (("think",), ("work",))
    assert [each.to_dict() for each in found.options] == [{"what": "draws", "old": DRAWS, "new": 0}]
    assert {each.reason for each in found.properties} == {"no posterior was drawn for one of them"}
    assert all(each.difference is None for each in found.properties)


def test_a_number_without_an_interval_has_no_difference(before):
    place = ["results", "properties", 0, "uncertainty", "interval"]
    change = by_key(compare_evidence(before, edited(before, place, None)))["R1"]
    assert (change.difference, change.reason) == (None, "one of them has no interval")


def test_the_document_is_json(before, after):
    document = compare_evidence(before, after).to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert len(document["properties"]) == 4
