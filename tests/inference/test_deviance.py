from __future__ import annotations

import numpy as np
import pytest
from scipy.special import xlogy
from scipy.stats import chi2_contingency, hypergeom

from tracebridge.inference import SCENARIOS
from tracebridge.inference import deviance as module
from tracebridge.inference.deviance import cells, deviance, mean_xlogx
from tracebridge.inference.event_counts import EventCounts
from tracebridge.inference.misfit import context_tables


def from_table(table: np.ndarray) -> EventCounts:
    """One state that is left in as many ways as the table has columns; rows are contexts."""
    n_contexts, n_next = table.shape
    context, following = np.nonzero(table)
    return EventCounts.of(
        context, np.zeros(len(context), dtype=np.int64), following, table[context, following],
        n_contexts=n_contexts, n_states=n_next - 2,
    )  # fmt: skip


def test_g2_is_that_of_contingency_tables():
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = rng.integers(0, 6, size=(4, 5))
        table[0] += 1
        table[:, 0] += 1
        expected = chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
        assert deviance(from_table(table)).g2[0, 0] == pytest.approx(expected, rel=1e-12)


def test_large_expectations_give_the_moments_of_chi_square():
    found = deviance(from_table(np.full((4, 5), 2_000)))
    assert found.mean[0, 0] == pytest.approx(12, rel=2e-3)
    assert found.variance[0, 0] == pytest.approx(24, rel=2e-3)
    assert found.z[0] == pytest.approx(-12 / 24**0.5, rel=2e-3)


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_moments_given_the_margins_are_those_of_permuted_tables(scale):
    rng = np.random.default_rng(1)
    shares = np.array([0.5, 0.25, 0.15, 0.05, 0.03, 0.02])
    contexts = rng.choice(12, size=int(60 * scale), p=rng.dirichlet(np.ones(12)))
    following = rng.choice(6, size=len(contexts), p=shares)
    state = np.zeros_like(contexts)
    values = []
    for _ in range(600):
        table = EventCounts.of(contexts, state, rng.permutation(following), n_contexts=12, n_states=4)
        values.append(deviance(table).g2[0, 0])
    found = deviance(table)
    assert abs(found.mean[0, 0] - np.mean(values)) < 4 * np.std(values) / 600**0.5
    assert found.variance[0, 0] == pytest.approx(np.var(values), rel=0.5)  # it only sets the scale


def test_the_mean_of_k_log_k_is_that_of_the_hypergeometric_law():
    rng = np.random.default_rng(2)
    total = rng.integers(1, 400, size=150)
    total[:30] = rng.integers(400, 3_000, size=30)
    drawn, marked = (rng.integers(1, total + 1) for _ in range(2))
    drawn[::3] = np.minimum(drawn[::3], 3)
    found = mean_xlogx(*(part.astype(float) for part in (total, drawn, marked)))
    for i in range(150):
        law = hypergeom(total[i], marked[i], drawn[i])
        k = np.arange(max(0, drawn[i] + marked[i] - total[i]), min(drawn[i], marked[i]) + 1)
        assert found[i] == pytest.approx(float(law.pmf(k) @ xlogy(k, k)), abs=2e-3)


def test_corpora_and_states_are_apart_and_slices_change_nothing(monkeypatch):
    table = context_tables(SCENARIOS["F2"].counts(100, seed=0).tables)["previous state"]
    whole = deviance(table)
    counts = {
        (int(c.row[i]), int(c.context[i]), int(c.following[i])): int(n[i])
        for c, n in cells(table)
        for i in range(len(n))
    }
    assert sum(counts.values()) == table.counts.sum()
    assert sum(n > 0 for n in counts.values()) == len(table.keys)
    monkeypatch.setattr(module, "_SLICE", 10)
    assert len(list(cells(table))) > 20
    sliced = deviance(table)
    np.testing.assert_allclose(sliced.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(sliced.variance, whole.variance, rtol=1e-12)
    for state in range(8):
        alone = deviance(table.where(table.states == state))
        assert alone.g2.sum() == pytest.approx(whole.g2[0, state], rel=1e-9)
        assert alone.z[0] == pytest.approx(whole.z_by_state[0, state], rel=1e-9)


def test_expectations_add_up_to_the_margins():
    table = context_tables(SCENARIOS["N2"].counts(50, seed=0).tables)["step time"]
    expected = sum(cell.expected.sum() for cell, _ in cells(table))
    assert expected == pytest.approx(table.counts.sum())


def test_nothing_to_depend_on_is_no_deviance():
    for table in (np.array([[3, 0, 2]]), np.array([[3, 0, 0], [2, 0, 0]]), np.zeros((2, 3), dtype=int)):
        found = deviance(from_table(table))
        assert found.z.tolist() == [0.0]
        assert found.nats.tolist() == [0.0]


def test_information_is_recovered_without_bias():
    """A context that decides one event in four, among five: .25 of the mass moved in each of five contexts."""
    rng = np.random.default_rng(3)
    p = np.full((5, 5), 0.75 / 5) + 0.25 * np.eye(5)
    truth = float((p[0] * np.log(p[0] / 0.2)).sum())
    found = []
    for _ in range(300):
        contexts = rng.integers(5, size=150)
        following = (p[contexts].cumsum(axis=1) < rng.random((150, 1))).sum(axis=1)
        found.append(
            deviance(EventCounts.of(contexts, np.zeros(150, int), following, n_contexts=5, n_states=3)).nats[0]
        )
    assert abs(np.mean(found) - truth) < 4 * np.std(found) / 300**0.5 + 0.01


@pytest.mark.parametrize("permuted", [True, False])
def test_corpora_side_by_side_have_the_values_of_each_alone(permuted):
    rng = np.random.default_rng(3)
    for _ in range(30):
        g, contexts, m, n = rng.integers(1, [5, 8, 5, 60])
        cells_of_one = int(contexts * m * (m + 2))
        events = [rng.integers(m * (m + 2), size=n)] * g if permuted else rng.integers(m * (m + 2), size=(g, n))
        keys = [rng.integers(contexts, size=n) * m * (m + 2) + drawn for drawn in events]
        sizes = {"n_contexts": int(contexts), "n_states": int(m)}
        side_by_side = np.concatenate([k * cells_of_one + key for k, key in enumerate(keys)])
        together = deviance(EventCounts.of_keys(side_by_side, n_corpora=int(g), **sizes))
        for k, key in enumerate(keys):
            alone = deviance(EventCounts.of_keys(key, n_corpora=1, **sizes))
            for part in ("g2", "mean", "variance", "n_by_state"):
                np.testing.assert_allclose(getattr(together, part)[k], getattr(alone, part)[0], rtol=1e-10, atol=1e-10)
