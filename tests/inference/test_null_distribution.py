from __future__ import annotations

import numpy as np
import pytest

from tracebridge.errors import UsageError
from tracebridge.inference.null_distribution import NullDistribution, holm


def test_p_values_count_the_observed_corpus_too():
    replicates = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0], [3.0, 8.0]])
    null = NullDistribution(observed=np.array([2.0, 9.0]), replicates=replicates)
    assert null.p_values.tolist() == [3 / 5, 1 / 5]
    assert null.p == 1 / 5
    np.testing.assert_allclose(null.mean, [1.5, 6.5])


def test_under_the_null_every_rank_of_the_joint_statistic_is_equally_likely():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(2_000):
        drawn = rng.gamma(2.0, size=(20, 3))
        values.append(NullDistribution(observed=drawn[0], replicates=drawn[1:]).p)
    counts = np.bincount(np.rint(np.array(values) * 20).astype(int), minlength=21)[1:]
    assert (((counts - 100) ** 2) / 100).sum() < 43.8  # chi-square with 19 degrees of freedom, 1 in 1,000


def test_a_statistic_that_never_varies_says_nothing():
    null = NullDistribution(observed=np.array([0.0, 1.0]), replicates=np.column_stack([np.zeros(19), np.arange(19.0)]))
    assert null.p_values[0] == 1
    assert null.spread[0] == 0
    assert null.p > 0.5


def test_beyond_its_critical_value_a_statistic_alone_rejects():
    rng = np.random.default_rng(1)
    replicates = rng.normal(size=(999, 2))
    null = NullDistribution(observed=np.zeros(2), replicates=replicates)
    beyond = NullDistribution(observed=np.array([null.critical[0] + 0.05, 0.0]), replicates=replicates)
    within = NullDistribution(observed=np.array([null.critical[0] - 0.05, 0.0]), replicates=replicates)
    assert beyond.p < 0.05 < within.p


def test_holm_adjusts_as_in_the_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_no_replicates_no_test():
    with pytest.raises(UsageError):
        NullDistribution(observed=np.zeros(1), replicates=np.empty((0, 1)))
