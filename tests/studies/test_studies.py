"""The studies themselves: what they compute, held against values derived otherwise, and a small run of each."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from tracebridge.chain import fit_counts
from tracebridge.closedform import long_run_reliability, reliability_curve, spectral_radius
from tracebridge.errors import UsageError
from tracebridge.inference import SCENARIOS, RunCounts, paper_profile
from tracebridge.inference.scenarios import Moment
from tracebridge.studies import STUDIES, chosen_studies, goodness_of_fit, held_out, ladder, run_study
from tracebridge.studies.closed_form import simulated_successes
from tracebridge.studies.frameworks import FRAMEWORKS
from tracebridge.studies.goodness_of_fit import MEMORIES, _remembering
from tracebridge.studies.held_out import Runs, distances
from tracebridge.studies.perturbation import paper_bound
from tracebridge.studies.random_chains import chain_of_rows, random_rows, scenario_of_rows
from tracebridge.studies.result import Table
from tracebridge.studies.uncertainty_tables import TABLE_2, ExitCounts, counts_behind, smoothed

FEW = {
    "closed-form": 1,
    "perturbation": 8,
    "correlation": 20,
    "exponential-limit": 1,
    "case-study": 1,
    "goodness-of-fit": 1,
    "uncertainty-tables": 4,
    "held-out": 1,
    "certificate": 1,
    "coverage": 1,
    "ladder": 1,
    "broadcast": 2,
}


# ---------------------------------------------------------------- every study


@pytest.mark.parametrize("name", STUDIES)
def test_no_statement_fails_in_a_small_run(name, monkeypatch):
    for module in (held_out, goodness_of_fit):  # three of seven take half the time
        monkeypatch.setattr(module, "FRAMEWORKS", FRAMEWORKS[:3])
    monkeypatch.setattr(ladder, "FORMS", ladder.FORMS[:3])
    monkeypatch.setattr(ladder, "COVERED_FORMS", ladder.FORMS[:2])
    monkeypatch.setattr(ladder, "RUNGS", ladder.RUNGS[:4])
    result = run_study(name, replicates=FEW[name])
    assert result.findings.statements
    assert result.findings.tables
    assert not result.failed
    # Nothing of chance is in these: they must hold however few replicates there are.
    assert all(s.verdict == "holds" for s in result.findings.statements if not s.sample)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.skipif("TRACEBRIDGE_FULL_STUDIES" not in os.environ, reason="full studies take an hour")
@pytest.mark.parametrize("name", STUDIES)
def test_every_statement_holds_in_a_full_run(name):
    study = STUDIES[name]
    result = run_study(name, replicates=max(study.full, 1), jobs=-1)
    assert {s.text: s.measured for s in result.findings.statements if s.verdict != "holds"} == {}


def test_studies_are_found_by_name():
    assert [study.name for study in chosen_studies(["all"])] == list(STUDIES)
    assert [study.name for study in chosen_studies(["coverage", "held-out", "coverage"])] == ["coverage", "held-out"]
    with pytest.raises(UsageError, match="did you mean held-out"):
        chosen_studies(["heldout"])
    with pytest.raises(UsageError, match="one study at a time"):
        run_study("all")
    with pytest.raises(UsageError, match="replicates=0"):
        run_study("correlation", replicates=0)


def test_a_table_has_cells_for_its_columns():
    with pytest.raises(UsageError, match="a row of 1 cells in a table of 2"):
        Table(title="x", columns=("a", "b"), rows=((1,),))
    shown = Table(title="x", columns=("a", "b"), rows=((math.inf, 1 / 3),)).to_dict()
    assert shown["rows"] == [[None, 0.3333333333]]


# ---------------------------------------------------------------- simulation


@pytest.mark.parametrize(("m", "n_runs"), [(4, 20_000), (60, 3_000)])
def test_simulated_runs_succeed_as_often_as_the_chain_says(m, n_runs):
    rows = random_rows(np.random.default_rng(m), m, end=0.2)
    successes = np.cumsum(simulated_successes(rows, n_runs, np.random.default_rng(1)))
    exact = reliability_curve(chain_of_rows(rows), len(successes) - 1)
    assert successes[0] == 0
    z = (successes - n_runs * exact)[1:] / np.sqrt(n_runs * exact * (1 - exact))[1:]
    assert np.abs(z).max() < 4.5
    assert z.std() > 0


def test_random_chains_are_what_was_asked_for():
    rows = random_rows(np.random.default_rng(0), 200, end=0.15, success=(0.3, 0.7), successors=3)
    assert np.allclose(rows.sum(axis=1), 1, atol=1e-12)
    assert ((rows[:, :-2] > 0).sum(axis=1) == 3).all()
    assert rows[:, -2:].sum(axis=1).mean() == pytest.approx(0.15, abs=0.02)
    share = rows[:, -2] / rows[:, -2:].sum(axis=1)
    assert 0.3 <= share.min() < 0.32
    assert 0.68 < share.max() <= 0.7


# ---------------------------------------------------------------- the paper's formulas


def test_the_bound_is_tight_for_one_state():
    """By hand: q = .8 to .82 with exit .15 takes R_inf from .75 to .8333, and eq. 3 gives just that."""
    bound = paper_bound(np.array([[0.8]]), np.array([[0.02]]), np.array([0.15]))
    assert bound == pytest.approx(0.15 / 0.18 - 0.75, abs=1e-12)
    assert paper_bound(np.array([[0.8]]), np.array([[0.2]]), np.array([0.15])) is None


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.name)
def test_a_stand_in_has_the_printed_figures(framework):
    chain = chain_of_rows(framework.stand_in(np.random.default_rng(0)))
    assert float(long_run_reliability(chain)) == pytest.approx(framework.reliability, abs=1e-12)
    assert spectral_radius(chain) == pytest.approx(framework.radius, abs=1e-9)


def test_rows_of_table_2_have_the_counts_that_are_known():
    """Shapes of Beta distributions found before, by another search."""
    known = {
        ("react", "wait"): (2, 33),
        ("react", "retry"): (2, 57),
        ("reflexion", "plan"): (18, 131),
        ("reflexion", "wait"): (6, 41),
        ("toolformer", "wait"): (4, 51),
    }
    for (framework, state), (a, b) in known.items():
        (found,) = counts_behind(*TABLE_2[framework][state])
        assert (found.successes + 1, found.departures + 7 - found.successes) == (a, b)
    unique = [
        len({(f.departures, f.successes) for f in counts_behind(*row)})
        for rows in TABLE_2.values()
        for row in rows.values()
    ]
    assert len(unique) == 18
    assert min(unique) >= 1
    assert unique.count(1) >= 14


@settings(max_examples=15)
@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))))
def test_counts_come_back_from_what_they_print(drawn):
    n, c, f = drawn
    f = min(f, n - c)
    a, total = c + 1, n + 8
    printed = [round(float(x), 3) for x in (a / total, *beta.ppf([0.025, 0.975], a, total - a), (f + 1) / total)]
    assert ExitCounts(departures=n, successes=c, failures=f) in counts_behind(*printed, departures=600)


def test_the_papers_estimate_is_that_of_its_profile():
    scenario = SCENARIOS["N1"]
    fit, _ = scenario.fitted(60, seed=4)
    m = scenario.n_states
    runs = RunCounts.of_paths(scenario.states, *scenario.draw(60, np.random.default_rng(4)))
    counts = np.asarray(runs.table.sum(axis=0)).reshape(m + 1, m + 2)[:m]
    rows, success = smoothed(counts[None])
    chain = fit_counts(fit.counts, profile="paper").chain
    assert np.allclose(rows[0], chain.transitions.toarray()[:m], atol=1e-12)
    assert success[0] == pytest.approx(float(long_run_reliability(chain)), abs=1e-12)


def test_distances_to_the_same_runs_are_those_of_the_published_rule():
    tables = SCENARIOS["N3"].counts(150, seed=2).tables
    rule, found = paper_profile(tables), distances(tables, tables)
    assert found.ks == pytest.approx(rule.ks_distance, abs=1e-12)
    assert found.p == pytest.approx(rule.ks_p, abs=1e-12)
    assert found.gap == pytest.approx(rule.gap, abs=1e-12)


def test_one_run_in_twenty_is_cut():
    rows = random_rows(np.random.default_rng(1), 5, end=0.2)
    runs = Runs.drawn(rows, 4_000, np.random.default_rng(2))
    whole = scenario_of_rows(rows).draw(4_000, np.random.default_rng(2))
    lengths, before = np.diff(runs.offsets), np.diff(whole[1])
    censored = runs.outcomes == 2
    assert censored.mean() == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 4_000))
    assert (lengths[~censored] == before[~censored]).all()
    assert ((lengths >= 1) & (lengths <= before)).all()
    counts = runs.counts(5)
    assert counts.n_runs == 4_000
    assert runs.path_counts(5).runs_by_outcome() == counts.runs_by_outcome()


@pytest.mark.parametrize("memory", MEMORIES)
def test_memory_leaves_ends_as_they_are(memory):
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 5, end=0.15)
    law = _remembering(rows, memory, 0.6, rng.dirichlet(np.ones(5), size=5))
    state, before = np.array([0, 1, 2, 3]), np.array([5, 4, 2, 0])
    mixed = law(Moment(time=1, before=before, state=state, stay=np.zeros(4, dtype=np.int64), kind=np.zeros(4)))
    assert np.allclose(mixed.sum(axis=1), 1, atol=1e-12)
    assert np.allclose(mixed[:, 5:], rows[state, 5:], atol=1e-15)
    assert np.array_equal(mixed[0], rows[0])  # the first step has no memory
    preferred = {"return": 4, "cycle": (4 + 1 + 1) % 5}
    if memory in preferred:
        expected = 0.4 * rows[1, preferred[memory]] + 0.6 * rows[1, :5].sum()
        assert mixed[1, preferred[memory]] == pytest.approx(expected, abs=1e-12)
