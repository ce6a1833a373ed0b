from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from tracebridge.inference import SCENARIOS, PathCounts
from tracebridge.inference.grouped_runs import GroupedRuns
from tracebridge.inference.misfit import misfit
from tracebridge.inference.path_tables import CENSORED, PathTables
from tracebridge.inference.simulation import Simulation

LONGEST = 3
HAZARD = np.array([0.0, 0.25, 0.0, 1.0])


def capped_paths(start, rows):
    """Every run of a chain of two states that is cut by HAZARD: its states, its outcome, its probability."""
    for end in (0, 1):
        yield (), end, start[2 + end]
    going = [((state,), start[state]) for state in (0, 1)]
    while going:
        longer = []
        for path, chance in going:
            row, hazard = rows[path[-1]], HAZARD[len(path)]
            for end in (0, 1):
                yield path, end, chance * row[2 + end]
            yield path, CENSORED, chance * (row[0] + row[1]) * hazard
            longer += [((*path, after), chance * row[after] * (1 - hazard)) for after in (0, 1)]
        going = [each for each in longer if each[1] > 0]


def law_of_corpora(start, rows, n_runs):
    """Probability of each corpus, by its tables."""
    law: Counter[bytes] = Counter()
    for runs in product(list(capped_paths(start, rows)), repeat=n_runs):
        codes = np.array([code for path, _, _ in runs for code in path], dtype=np.int64)
        offsets = np.cumsum([0, *(len(path) for path, _, _ in runs)])
        tables = PathTables.of_paths(codes, offsets, np.array([end for _, end, _ in runs]), 2)
        law[fingerprint(tables)[0]] += np.prod([chance for _, _, chance in runs])
    return law


def fingerprint(tables: PathTables) -> list[bytes]:
    """Each corpus in bytes that are equal where its tables are."""
    g = tables.n_corpora
    parts = [tables.starts, np.pad(tables.ends, ((0, 0), (0, 0), (0, LONGEST + 1 - tables.ends.shape[2])))]
    for events in (tables.previous, tables.clock, tables.dwell):
        dense = np.zeros(events.n_cells, dtype=np.int64)
        dense[events.keys] = events.counts
        parts.append(dense)
    flat = np.concatenate([part.reshape(g, -1) for part in parts], axis=1)
    return [row.tobytes() for row in flat]


class RunByRun:
    """What follows each state, by the rows of the law."""

    def __init__(self, rows):
        self._ladders = np.cumsum(rows, axis=1)

    def following(self, states, rng):
        after = (rng.random((len(states), 1)) > self._ladders[states]).sum(axis=1)
        return np.minimum(after, self._ladders.shape[1] - 1)


@pytest.mark.parametrize(("steps_in_groups", "seed"), [(LONGEST, 1), (1, 2), (0, 3)])
def test_corpora_have_the_law_of_runs_drawn_one_by_one(steps_in_groups, seed):
    rng = np.random.default_rng(seed)
    start, rows = rng.dirichlet([2, 2, 0.2, 0.2]), rng.dirichlet([2, 2, 1, 1], size=2)
    law = law_of_corpora(start, rows, n_runs=2)
    assert sum(law.values()) == pytest.approx(1)

    number = 30_000
    groups = GroupedRuns(start, rows, n_corpora=number, n_runs=2, rng=rng)
    for length in range(1, steps_in_groups + 1):
        groups.step(HAZARD[length])
    rest = Simulation([PathTables.of_paths(np.array([0, 1]), np.array([0, 2]), np.array([0]), 2)])
    rest._sampler, rest._hazard = RunByRun(rows), HAZARD
    seen = Counter(fingerprint(groups.tables() + rest._follow(*groups.going(), number, rng, time=groups.time)))

    assert set(seen) <= set(law)
    common = [key for key, chance in law.items() if chance * number >= 5]
    observed = [*(seen[key] for key in common), number - sum(seen[key] for key in common)]
    expected = [*(law[key] * number for key in common), number * (1 - sum(law[key] for key in common))]
    assert len(common) > 50
    assert chisquare(observed, expected).pvalue > 0.001


@pytest.mark.parametrize("name", ["N3", "F1"])
def test_many_runs_are_drawn_in_groups_and_are_possible_corpora(name):
    counts = SCENARIOS[name].counts(4_000, seed=0)
    drawing = Simulation([counts.tables])
    assert drawing.draws_groups
    (drawn,) = next(drawing.replicates(6, np.random.SeedSequence(5)))
    assert drawn.n_runs.tolist() == [4_000] * 6
    assert len(np.unique(drawn.clock.totals)) > 1
    for k in range(6):
        cut = PathTables(
            **{
                table: type(each)(
                    n_corpora=1,
                    n_contexts=each.n_contexts,
                    n_states=each.n_states,
                    keys=each.keys[each.corpora == k] % (each.n_cells // 6),
                    counts=each.counts[each.corpora == k],
                )
                for table, each in (("previous", drawn.previous), ("clock", drawn.clock), ("dwell", drawn.dwell))
            },
            starts=drawn.starts[[k]],
            ends=drawn.ends[[k]],
        )
        PathCounts(states=counts.states, tables=cut)  # checks flow, ends and lengths against each other


def test_statistics_of_grouped_and_single_runs_have_one_distribution():
    tables = SCENARIOS["N1"].counts(2_000, seed=0).tables
    values = []
    for in_groups in (True, False):
        drawing = Simulation([tables])
        drawing.draws_groups = in_groups
        drawn = drawing.replicates(400, np.random.SeedSequence(in_groups))
        values.append(np.concatenate([misfit(corpora[0]).values for corpora in drawn]))
    means, deviations = (np.array([getattr(part, kind)(axis=0) for part in values]) for kind in ("mean", "std"))
    error = np.sqrt((deviations**2).sum(axis=0) / 400)
    assert (np.abs(means[0] - means[1]) < 4 * error).all()
    assert (np.abs(np.log(deviations[0] / deviations[1])) < 4 / np.sqrt(400)).all()
