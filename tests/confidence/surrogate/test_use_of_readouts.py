import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from tracebridge.confidence.bootstrap import Resampling
from tracebridge.confidence.surrogate import Gate, ReadoutEnsemble, feedback_message
from tracebridge.confidence.surrogate.evaluation import CONTROL, evaluate_scores
from tracebridge.errors import UsageError

scores = st.lists(st.integers(-3, 3).map(float) | st.just(math.nan), min_size=2, max_size=30)


def test_the_ensemble_is_the_mean_of_mid_ranks():
    ensemble = ReadoutEnsemble.fit({"a": [1.0, 2, 2, 3], "b": [0.1, math.nan, 0.3, 0.2]})
    found = ensemble.confidence({"a": [2.0, 0, math.nan], "b": [math.nan, 0.25, math.nan]})
    assert found[:2] == pytest.approx([0.5, (0 + 2 / 3) / 2])
    assert math.isnan(found[2])


@given(scores)
def test_only_the_order_of_a_readout_counts(values):
    if all(map(math.isnan, values)):
        return
    plain = ReadoutEnsemble.fit({"a": values}).confidence({"a": values})
    bent = [math.exp(value) for value in values]
    assert np.array_equal(plain, ReadoutEnsemble.fit({"a": bent}).confidence({"a": bent}), equal_nan=True)


def test_with_labels_it_is_the_mean_of_isotonic_probabilities():
    values, correct = [1.0, 2, 3, 4], [0, 1, 0, 1]
    ensemble = ReadoutEnsemble.fit({"a": values}, correct)
    assert ensemble.confidence({"a": values}) == pytest.approx([0, 0.5, 0.5, 1])


@pytest.mark.parametrize("columns", [{}, {"a": [1.0], "b": [1.0, 2.0]}, {"a": [math.nan]}])
def test_no_ensemble_of_nothing(columns):
    with pytest.raises(UsageError):
        ReadoutEnsemble.fit(columns)


@given(scores, st.floats(0.01, 1))
def test_the_gate_keeps_its_coverage(values, coverage):
    known = sorted(value for value in values if not math.isnan(value))
    if not known:
        return
    gate = Gate.at_coverage(values, coverage)
    accepted = gate.accepts(values)
    wanted = min(len(known), max(1, math.ceil(coverage * len(values) - 1e-9)))
    assert accepted.sum() >= wanted
    assert sum(value > gate.threshold for value in known) < wanted  # only ties make it more
    assert not accepted[np.isnan(values)].any()


def test_feedback_tells_the_result_and_the_confidence():
    assert feedback_message("booked", 0.81237) == {"result": "booked", "call_confidence": 0.8124}
    assert feedback_message("booked", math.nan) == {"result": "booked", "call_confidence": None}
    with pytest.raises(UsageError):
        feedback_message("booked", 1.2)
    for coverage in (0, 1.5):
        with pytest.raises(UsageError):
            Gate.at_coverage([0.5], coverage)


def test_a_readout_that_knows_something_beats_the_control():
    rng = np.random.default_rng(0)
    correct = rng.integers(2, size=600)
    told = {"readout": correct + rng.normal(size=600), "empty": np.full(600, 0.5)}
    found = evaluate_scores(
        told,
        correct,
        cluster_of_call=np.arange(600) // 2,
        n_clusters=300,
        resampling=Resampling(replicates=200),
    )
    assert list(found) == ["readout", "empty", CONTROL]
    assert found["readout"]["AUROC"].value == pytest.approx(roc_auc_score(correct, told["readout"]), abs=1e-12)
    assert found["readout"]["AUROC"].lower > 0.5
    assert found["empty"]["AUROC"].value == 0.5
    assert found[CONTROL]["AUROC"].lower < 0.5 < found[CONTROL]["AUROC"].upper
    assert found["readout"]["ECE"].value < 0.08  # held out
    assert found["readout"]["accuracy at coverage .5"].value > found[CONTROL]["accuracy at coverage .5"].value + 0.1
