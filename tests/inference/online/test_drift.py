"""The drift monitor: its guarantees by enumeration, its false alarms by simulation, and what it finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tracebridge.chain import MarkovChain, TransitionCounts, fit_counts
from tracebridge.chain.sample import sample_paths
from tracebridge.errors import UsageError
from tracebridge.inference.online.drift import DriftMonitor
from tracebridge.inference.online.drift_evidence import UNSEEN, BaselineRows

#: The four outcomes of the start of a chain with one state, each as a run that says nothing else.
STARTS = (((), "success"), ((), "failure"), (("a",), "censored"), (("b",), "censored"))


def baseline(times: int = 1):
    """Of the starts six are a, three success and none failure."""
    return fit_counts(TransitionCounts.from_paths([(["a"], "success")] * 6 * times + [([], "success")] * 3 * times))


def urn(sequence: tuple[int, ...], counts: tuple[int, ...], mass: float) -> float:
    """The probability of a sequence of outcomes by Polya's urn with the counts and the mass of the prior in it."""
    balls = [count + mass / len(counts) for count in counts]
    probability = 1.0
    for outcome in sequence:
        probability *= balls[outcome] / sum(balls)
        balls[outcome] += 1
    return probability


def test_both_guarantees_hold_exactly_for_every_prior():
    """Over all sequences of four starts: P(p <= alpha) <= alpha, E <= 1 on average, and the detector <= the runs."""
    rows, runs, levels = BaselineRows.of_fit(baseline()), 4, (0.7, 0.5, 0.2, 0.1)
    masses = rows.masses
    assert masses == (0.5, 1.0, 2.0)
    mean_e, mean_detector = (dict.fromkeys(masses, 0.0) for _ in range(2))
    ever = dict.fromkeys(itertools.product(masses, levels), 0.0)
    for sequence in itertools.product(range(4), repeat=runs):
        monitor = DriftMonitor(rows, run_length=1e9, half_life=3)
        for outcome in sequence:
            reading = monitor.add(*STARTS[outcome])
        for mass in masses:
            chance = urn(sequence, (3, 0, 6, 0), mass)
            mean_e[mass] += chance * math.exp(reading.log_e)
            mean_detector[mass] += chance * reading.detector
            for level in levels:
                ever[mass, level] += chance * (reading.p <= level)
    assert all(probability <= level for (_, level), probability in ever.items())
    assert max(mean_e.values()) <= 1 + 1e-12
    assert runs / 2 < max(mean_detector.values()) <= runs + 1e-9  # it is no empty bound


def chain_of(p: float, q: float, lasting: float = 0.5) -> MarkovChain:
    """From a to success (p) and failure, from b to success and failure (q), else on with the chance ``lasting``."""
    return MarkovChain(
        states=("a", "b", "success", "failure"),
        transitions=np.array(
            [[0, lasting, p, 1 - lasting - p], [lasting, 0, 1 - lasting - q, q], [0, 0, 1, 0], [0, 0, 0, 1]]
        ),
        initial=np.array([0.8, 0.2, 0, 0]),
    )


def drawn(chain: MarkovChain, n_runs: int, seed: int) -> list[tuple[list[str], str]]:
    runs = []
    for path in sample_paths(chain, n_runs, seed=seed).tolist():
        names = [chain.states[i] for i in path]
        runs.append(([name for name in names if name in "ab"], names[-1]))
    return runs


def test_false_alarms_ever_are_within_the_stated_probability():
    """Streams of three long runs, from the same fixed chain as their small baselines, of 10 runs each.

    The bound is of a supremum over priors and far from tight here: the share that alarms is below it without slack.
    """
    chain, alpha = chain_of(0.05, 0.05, lasting=0.9), 0.2
    streams, length, ever = 800, 3, 0
    bases = drawn(chain, 10 * streams // 20, seed=1)
    news = drawn(chain, length * streams, seed=2)
    for stream in range(streams):
        if stream % 20 == 0:
            base = bases[stream // 2 : stream // 2 + 10]
            rows = BaselineRows.of_fit(fit_counts(TransitionCounts.from_paths(base)))
        monitor = DriftMonitor(rows, alpha=alpha)
        for path, outcome in news[length * stream : length * (stream + 1)]:
            reading = monitor.add(path, outcome)
        ever += reading.ever
    assert 0 < ever / streams <= alpha


def test_false_alarms_of_the_window_are_as_far_apart_as_stated():
    """Two streams of 1,000 runs without drift; the number of alarms is about that of a Poisson variable."""
    chain, run_length, length, windows = chain_of(0.4, 0.3), 50.0, 1_000, 0
    for seed in range(2):
        monitor = DriftMonitor(
            fit_counts(TransitionCounts.from_paths(drawn(chain, 60, seed=seed))), run_length=run_length
        )
        for path, outcome in drawn(chain, length, seed=10 + seed):
            monitor.add(path, outcome)
        windows += monitor.windows
    most = 2 * length / run_length
    assert most / 3 < windows <= most + 3 * math.sqrt(most)  # it is no empty bound


def test_a_drift_is_found_and_laid_at_the_door_of_its_row():
    before, after = chain_of(0.4, 0.05), chain_of(0.4, 0.45)
    fit = fit_counts(TransitionCounts.from_paths(drawn(before, 400, seed=3)))
    monitor = DriftMonitor(fit, alpha=0.01, run_length=10_000, half_life=100)
    assert not any(monitor.add(*run).ever for run in drawn(before, 300, seed=4))
    assert monitor.windows == 0
    found = [monitor.add(*run) for run in drawn(after, 300, seed=5)]
    first_window = next(i for i, reading in enumerate(found) if reading.window)
    assert first_window < 100
    assert monitor.alarmed_at is not None
    assert found[monitor.alarmed_at - 301].newly
    assert found[-1].p <= 0.01
    for causes in (monitor.causes(), monitor.causes(recent=True)):
        assert causes[0].state == "b"
        assert causes[0].probability > 0.99
        assert {change.target for change in causes[0].transitions[:2]} == {"failure", "success"}
        (more,) = [change for change in causes[0].transitions if change.target == "failure"]
        assert more.observed > 2 * more.expected


def test_new_states_are_outcomes_of_their_own():
    monitor = DriftMonitor(baseline(10), alpha=0.01)
    for _ in range(10):
        reading = monitor.add(["a", "lost", "a"], "success")
    assert reading.ever
    assert monitor.causes()[0].state == "a"
    assert monitor.causes()[0].transitions[0].target == UNSEEN


def test_it_goes_on_where_it_was_saved():
    chain = chain_of(0.3, 0.3)
    fit = fit_counts(TransitionCounts.from_paths(drawn(chain, 50, seed=6)))
    options = {"alpha": 0.05, "run_length": 100.0, "half_life": 20.0}
    monitor, other = DriftMonitor(fit, **options), DriftMonitor(fit, **options)
    runs = drawn(chain_of(0.1, 0.5), 80, seed=7)
    for run in runs[:40]:
        monitor.add(*run)
    other.restore(monitor.to_dict())
    assert [other.add(*run) for run in runs[40:]] == [monitor.add(*run) for run in runs[40:]]
    assert other.causes() == monitor.causes()
    with pytest.raises(UsageError, match="another baseline or options"):
        DriftMonitor(fit, alpha=0.01).restore(monitor.to_dict())
    with pytest.raises(UsageError, match="another baseline or options"):
        DriftMonitor(baseline(), **options).restore(monitor.to_dict())


def test_what_cannot_be_watched_is_refused():
    with pytest.raises(UsageError, match="lies between 0 and 1"):
        DriftMonitor(baseline(), alpha=1)
    with pytest.raises(UsageError, match="no outcome"):
        DriftMonitor(baseline()).add(["a"], "maybe")
