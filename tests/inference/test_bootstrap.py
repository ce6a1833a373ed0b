import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.runs import NAMES, laid_out, runs

from tracebridge.chain import TransitionCounts, WeightedCounts, fit_counts
from tracebridge.errors import FitError, UsageError
from tracebridge.inference.bootstrap import Bootstrap
from tracebridge.inference.resampling_units import ResamplingUnits
from tracebridge.inference.run_counts import RunCounts
from tracebridge.states.features import OUTCOMES


def corpus(chosen, *, policy="censored", tasks=None, prior="none"):
    codes, offsets, outcomes = laid_out(chosen)
    paths = [([NAMES[code] for code in path], OUTCOMES[outcome]) for path, outcome in chosen]
    fit = fit_counts(TransitionCounts.from_paths(paths), policy=policy, prior=prior)
    part = RunCounts.of_paths(NAMES, codes, offsets, outcomes, policy=policy, task_ids=tasks)
    return fit, ResamplingUnits.of([part])


CORPUS = [((0, 1, 2), 0), ((0, 2), 1), ((1, 1), 0), ((0, 1, 2, 0), 0), ((3,), 1), ((), 0)]


@settings(max_examples=30, deadline=None)
@given(runs(), st.integers(0, 2**32))
def test_each_resample_is_the_unsmoothed_fit_to_its_runs(chosen, seed):
    chosen = [(path, outcome) for path, outcome in chosen if outcome != 2] + CORPUS  # every run ends
    fit, counted = corpus(chosen)
    (stack,) = list(Bootstrap.of_units(fit, counted).resamples(4, seed))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    units = len(chosen)
    weights = rng.multinomial(units, np.full(units, 1 / units), size=256)[:4]
    for k, drawn in enumerate(weights):
        again = [run for run, times in zip(chosen, drawn.tolist(), strict=True) for _ in range(times)]
        alone, _ = corpus(again)
        ours, theirs = stack.chain_at(k), alone.chain
        for name in theirs.states:
            i = ours.index(name)
            row = {ours.states[j]: p for j, p in enumerate(ours.transitions[[i]].toarray().ravel()) if p}
            other = theirs.transitions[[theirs.index(name)]].toarray().ravel()
            assert row == pytest.approx({theirs.states[j]: p for j, p in enumerate(other) if p})
            assert stack.initial[i, k] == pytest.approx(theirs.initial[theirs.index(name)])


def test_a_resample_without_a_way_to_an_end_keeps_the_row_of_the_corpus():
    # three of the runs through b loop there until they are censored; one leaves it
    chosen = [((0, 1, 1), 2)] * 3 + [((0, 1), 0), ((0,), 1), ((0,), 0)]
    fit, counted = corpus(chosen)
    stack = next(Bootstrap.of_units(fit, counted).resamples(200, 1))
    chain = stack.chain
    b = chain.index("b")
    span = slice(chain.transitions.indptr[b], chain.transitions.indptr[b + 1])
    exits = stack.entries[span][chain.transitions.indices[span] == chain.index("success")][0]
    assert exits.min() > 0
    assert np.isclose(exits, 0.25).any()  # as in the corpus: 3 loops, 1 end
    assert (exits > 0.26).any()


def test_tasks_are_drawn_whole():
    chosen = [((0,), 0), ((0,), 0), ((0,), 1), ((0,), 1)]
    fit, counted = corpus(chosen, tasks=["easy", "easy", "hard", "hard"])
    by_task = next(Bootstrap.of_units(fit, counted, "task").resamples(256, 0))
    by_run = next(Bootstrap.of_units(fit, counted).resamples(256, 0))
    a = by_task.chain.index("a")
    span = slice(by_task.chain.transitions.indptr[a], by_task.chain.transitions.indptr[a + 1])
    assert set(np.unique(by_task.entries[span])) == {0.0, 0.5, 1.0}
    assert set(np.unique(by_run.entries[span])) == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_fewer_resamples_are_the_first_ones(monkeypatch):
    fit, counted = corpus(CORPUS)
    monkeypatch.setattr("tracebridge.inference.bootstrap._BLOCK_CELLS", 300)
    many = np.concatenate([s.entries for s in Bootstrap.of_units(fit, counted).resamples(50, 3)], axis=1)
    few = np.concatenate([s.entries for s in Bootstrap.of_units(fit, counted).resamples(20, 3)], axis=1)
    np.testing.assert_array_equal(many[:, :20], few)


def test_a_dense_table_and_a_sparse_one_give_the_same_bytes(monkeypatch):
    fit, counted = corpus(CORPUS)
    stacks = []
    for share in (0, 2):
        monkeypatch.setattr("tracebridge.inference.bootstrap._DENSE_FROM", share)
        stacks.append(next(Bootstrap.of_units(fit, counted).resamples(50, 3)))
    assert stacks[0].entries.tobytes() == stacks[1].entries.tobytes()
    assert stacks[0].initial.tobytes() == stacks[1].initial.tobytes()


def test_what_cannot_be_drawn_again_is_refused():
    fit, counted = corpus(CORPUS)
    with pytest.raises(FitError, match="every run needs a task"):
        Bootstrap.of_units(fit, counted, "task")
    weighted = fit_counts(WeightedCounts.from_paths([(("a",), "success", 2), (("a",), "failure", 1)]))
    with pytest.raises(UsageError, match="weights"):
        Bootstrap.of_units(weighted, counted)
    with pytest.raises(UsageError, match="at least one"):
        list(Bootstrap.of_units(fit, counted).resamples(0, 1))
