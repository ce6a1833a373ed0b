from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tracebridge.closedform import absorption_time_variance, long_run_reliability, mean_time_to_absorption
from tracebridge.inference import SCENARIOS, PathCounts, simulation
from tracebridge.inference.path_tables import CENSORED, PathTables
from tracebridge.inference.simulation import Simulation


def one_by_one(tables: PathTables) -> list[PathTables]:
    """Corpora side by side, apart."""
    apart = []
    for k in range(tables.n_corpora):
        parts = {}
        for name in ("previous", "clock", "dwell"):
            table = getattr(tables, name)
            mine = table.corpora == k
            cells = table.n_cells // table.n_corpora
            parts[name] = type(table)(
                n_corpora=1,
                n_contexts=table.n_contexts,
                n_states=table.n_states,
                keys=table.keys[mine] % cells,
                counts=table.counts[mine],
            )
        apart.append(PathTables(**parts, starts=tables.starts[[k]], ends=tables.ends[[k]]))
    return apart


@pytest.mark.parametrize("block", [50, 3_000, 2_000_000])
def test_replicates_are_possible_corpora_of_the_same_size(block, monkeypatch):
    monkeypatch.setattr(simulation, "_BLOCK_EVENTS", block)
    counts = SCENARIOS["N3"].counts(80, seed=0)
    replicates = list(Simulation([counts.tables]).replicates(12, np.random.SeedSequence(5)))
    corpora = [corpus for (drawn,) in replicates for corpus in one_by_one(drawn)]
    assert len(corpora) == 12
    for corpus in corpora:
        assert corpus.n_runs.tolist() == [80]
        # The constructor checks flow, ends and lengths against each other.
        seen = np.unique(np.concatenate([corpus.clock.states, np.flatnonzero(corpus.starts[0])]))
        assert len(seen) == corpus.n_states
        PathCounts(states=counts.states, tables=corpus)


def test_the_same_seed_gives_the_same_corpora():
    tables = SCENARIOS["F1"].counts(50, seed=0).tables
    ours, again, others = (
        next(Simulation([tables]).replicates(5, np.random.SeedSequence(seed)))[0] for seed in (1, 1, 2)
    )
    assert ours == again != others


def test_runs_have_the_length_and_the_end_that_the_closed_forms_say():
    fit, counts = SCENARIOS["F1"].fitted(400, seed=0)
    number, n = 50, 400
    drawn = next(Simulation([counts.tables]).replicates(number, np.random.SeedSequence(7)))[0]
    runs = number * n
    by_length = drawn.ends.sum(axis=(0, 1))
    mean = (by_length * np.arange(len(by_length))).sum() / runs
    deviation = float(absorption_time_variance(fit.chain).overall) ** 0.5
    assert abs(mean - float(mean_time_to_absorption(fit.chain).overall)) < 4 * deviation / runs**0.5
    share = drawn.ends[:, 0].sum() / runs
    expected = float(long_run_reliability(fit.chain))
    assert abs(share - expected) < 4 * (expected * (1 - expected) / runs) ** 0.5


def test_a_step_cap_is_replayed():
    codes, offsets, outcomes = SCENARIOS["N1"].draw(300, np.random.default_rng(1))
    cap = 6
    lengths = np.diff(offsets)
    kept = np.concatenate([codes[a : min(a + cap, b)] for a, b in pairwise(offsets)])
    outcomes = np.where(lengths > cap, CENSORED, outcomes)
    capped = PathTables.of_paths(kept, np.concatenate([[0], np.cumsum(np.minimum(lengths, cap))]), outcomes, 5)
    drawn = next(Simulation([capped]).replicates(20, np.random.SeedSequence(0)))[0]
    assert drawn.longest.max() == cap
    assert drawn.ends[:, CENSORED, :cap].sum() == 0
    real = (lengths > cap).mean()
    assert abs(drawn.ends[:, CENSORED].sum() / 6000 - real) < 0.06


def test_runs_that_never_end_are_stopped_and_counted(monkeypatch):
    monkeypatch.setattr(simulation, "_LONGEST_STEPS", 30)
    monkeypatch.setattr(simulation, "_LONGEST_TIMES", 1)
    codes = np.zeros(400, dtype=np.int64)
    tables = PathTables.of_paths(codes, np.array([0, 30, 400]), np.array([0, 2]), 1)
    monkeypatch.setattr(simulation, "censoring_hazard", lambda _: np.zeros(1))
    simulated = Simulation([tables])
    list(simulated.replicates(20, np.random.SeedSequence(0)))
    assert simulated.n_stopped > 0
