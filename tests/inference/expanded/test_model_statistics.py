"""The statistics of richer chains against their definitions, cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.chain.expanded.random_models import random_model

from tracebridge.chain.expanded.estimation import ModelStack, estimate_stack
from tracebridge.chain.expanded.forward import predictive
from tracebridge.errors import FitError
from tracebridge.inference import SCENARIOS
from tracebridge.inference.expanded import statistics
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.inference.expanded.statistics import (
    TABLES,
    EventTable,
    TableMisfit,
    event_tables,
    integer_tables,
    lumped_pearson,
    model_misfit,
)
from tracebridge.inference.misfit import misfit
from tracebridge.inference.path_tables import PathTables
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import CENSORED, RunPaths

HAZARD = np.array([0, 0.1, 0.1, 0.1, 1.0])
FORMS = ["first-order", "order2+clock:0,2", "phases:2", "phases:2:full+dwell2", "group:model+phases:2"]


def some_corpora(name: str, n_corpora: int = 3, n_runs: int = 60) -> tuple[ModelStack, RunPaths, np.ndarray]:
    """Drawn corpora, some of their runs cut, with a stack of other models of the same form."""
    models = [random_model(name, seed=seed) for seed in range(n_corpora)]
    paths, corpora = ModelSimulation(models[0], HAZARD).corpora(n_runs, np.random.SeedSequence(5).spawn(n_corpora))
    parts = {part: np.stack([getattr(model, part) for model in models]) for part in ("start", "rows", "advance")}
    return ModelStack(form=models[0].form, states=paths.states, groups=models[0].groups, **parts), paths, corpora


def of_scenario(name: str, n: int) -> RunPaths:
    """Runs of a first-order scenario, some of them cut."""
    scenario = SCENARIOS[name]
    codes, offsets, outcomes = scenario.draw(n, np.random.default_rng(0))
    return RunPaths.of_codes("abcdefgh"[: int(codes.max()) + 1], codes, offsets, outcomes)


def one(paths: RunPaths) -> np.ndarray:
    return np.zeros(paths.n_runs, dtype=np.int64)


@pytest.mark.parametrize("name", FORMS)
def test_tables_are_sums_over_steps(name):
    stack, paths, corpora = some_corpora(name)
    found = event_tables(stack, paths, corpora)
    m, bins = 3, [0, 1, 2, 2, 3, 3, 3, 3]
    for k in range(len(stack)):
        corpus = paths.take(np.flatnonzero(corpora == k))
        predicted, following = predictive(stack.model(k), corpus), corpus.following
        observed = {t: np.zeros((m + 1 if t == TABLES[0] else 5, m, m + 2)) for t in TABLES}
        expected = {t: np.zeros_like(observed[t]) for t in TABLES}
        for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
            stay = 0
            for t in range(a, b):
                stay = stay + 1 if t > a and corpus.codes[t] == corpus.codes[t - 1] else 0
                if following[t] == m + CENSORED:
                    continue
                contexts = (corpus.codes[t - 1] if t > a else m, bins[t - a], bins[stay])
                for table, u in zip(TABLES, contexts, strict=True):
                    observed[table][u, corpus.codes[t], following[t]] += 1
                    expected[table][u, corpus.codes[t]] += predicted[t]
        for table in TABLES:
            np.testing.assert_array_equal(found[table].observed[k], observed[table])
            np.testing.assert_allclose(found[table].expected[k], expected[table], atol=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_what_is_expected_after_a_category_in_a_context_adds_up_to_its_events(name):
    for table in event_tables(*some_corpora(name)).values():
        assert table.observed.sum() > 100
        np.testing.assert_allclose(table.expected.sum(axis=-1), table.observed.sum(axis=-1), atol=1e-11)


def test_the_first_order_chain_expects_its_rows_wherever_a_state_is():
    paths = of_scenario("N3", 100)
    stack = estimate_stack(paths, one(paths), 1, parse_model("first-order"))
    for table in event_tables(stack, paths, one(paths)).values():
        events = table.observed[0].sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(table.expected[0], events * stack.rows[0, 0, 0], atol=1e-11)


def test_the_first_order_gap_is_that_of_the_first_order_certificate():
    paths = of_scenario("N3", 150)
    assert (paths.outcomes == CENSORED).any()
    tables = PathTables.of_paths(paths.codes, paths.offsets, paths.outcomes, len(paths.states))
    stack = estimate_stack(paths, one(paths), 1, parse_model("first-order"))
    assert integer_tables(event_tables(stack, paths, one(paths)), paths, one(paths)) == tables
    ours, theirs = model_misfit(stack, paths, one(paths)).gap, misfit(tables).gap
    assert (ours.step[0], ours.outcome[0]) == (theirs.step[0], theirs.outcome[0])
    np.testing.assert_allclose([ours.observed, ours.fitted], [theirs.observed, theirs.fitted], atol=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_corpora_do_not_depend_on_those_beside_them_nor_on_blocks(name, monkeypatch):
    stack, paths, corpora = some_corpora(name)
    whole = model_misfit(stack, paths, corpora)
    monkeypatch.setattr(statistics, "_BLOCK_STEPS", 7)
    for k in range(len(stack)):
        mine = paths.take(np.flatnonzero(corpora == k))
        parts = {part: getattr(stack, part)[[k]] for part in ("start", "rows", "advance")}
        own = ModelStack(form=stack.form, states=stack.states, groups=stack.groups, **parts)
        alone = model_misfit(own, mine, one(mine))
        np.testing.assert_allclose(alone.values[0], whole.values[k], atol=1e-11)
        for name_, table in alone.tables.items():
            np.testing.assert_allclose(table.g2[0], whole.tables[name_].g2[k], atol=1e-9)


small_tables = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, (*shape, shape[2] + 2), elements=st.integers(0, 30).map(float)),
        arrays(np.float64, (*shape, shape[2] + 2), elements=st.floats(1e-3, 30.0)),
    )
)


@settings(max_examples=40)
@given(small_tables)
def test_lumps_are_cells_then_categories_then_the_rest(tables):
    observed, expected = tables
    found, lumps = lumped_pearson(observed, expected)
    for k, (n, e) in enumerate(zip(observed, expected, strict=True)):
        chosen, rest = [], [0.0, 0.0]
        for c in range(n.shape[1]):
            left = [0.0, 0.0]
            for u in range(n.shape[0]):
                for x in range(n.shape[2]):
                    if e[u, c, x] >= 5:
                        chosen.append((n[u, c, x], e[u, c, x]))
                    else:
                        left = [left[0] + n[u, c, x], left[1] + e[u, c, x]]
            if left[1] >= 5:
                chosen.append(tuple(left))
            else:
                rest = [rest[0] + left[0], rest[1] + left[1]]
        if rest[1] >= 5:
            chosen.append(tuple(rest))
        chi_square = sum((a - b) ** 2 / b for a, b in chosen)
        assert lumps[k] == len(chosen)
        expected_value = (chi_square - len(chosen)) / math.sqrt(2 * len(chosen)) if chosen else 0.0
        assert found[k] == pytest.approx(expected_value, rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@given(small_tables)
def test_g2_and_freeman_tukey_are_sums_over_cells(tables):
    observed, expected = tables
    found = TableMisfit.of(EventTable(observed=observed, expected=expected))
    for k, (n, e) in enumerate(zip(observed, expected, strict=True)):
        pairs = list(zip(n.ravel().tolist(), e.ravel().tolist(), strict=True))
        g2 = 2 * sum(a * math.log(a / b) for a, b in pairs if a)
        freeman_tukey = sum((math.sqrt(a) + math.sqrt(a + 1) - math.sqrt(4 * b + 1)) ** 2 for a, b in pairs)
        assert found.g2[k] == pytest.approx(g2, rel=1e-9, abs=1e-9)
        assert found.freeman_tukey[k] == pytest.approx(freeman_tukey, rel=1e-9, abs=1e-9)
        assert found.n_events[k] == n.sum()


def test_too_many_states_are_refused():
    states = [f"s{i:03}" for i in range(300)]
    paths = RunPaths.of_names([(["s000"], "success")], states=states)
    stack = estimate_stack(paths, one(paths), 1, parse_model("first-order"))
    with pytest.raises(FitError, match="300 states are too many"):
        model_misfit(stack, paths, one(paths))
