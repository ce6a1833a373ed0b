"""Which forms are kept, on scores with known gains and on runs of known order."""

from __future__ import annotations

import numpy as np
import pytest

from tracebridge.inference.expanded.cross_validation import HeldOutScore, choose_model
from tracebridge.inference.expanded.selection import LEAST_GAIN, Candidate, critical_gain, why_dismissed
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths

FORMS = ("first-order", "clock:0,1,2,4", "order2", "order2+clock:0,1,2,4")


def score(values: np.ndarray, form: str = "first-order", blocks: np.ndarray | None = None) -> HeldOutScore:
    return HeldOutScore(
        form=parse_model(form),
        kappa=1.0,
        log_likelihoods=values,
        timings=values,
        blocks=np.arange(len(values)) if blocks is None else blocks,
    )


def candidate(values: np.ndarray, form: str, name: str | None = None) -> Candidate:
    return Candidate(name=name or form, form=parse_model(form), score=score(values, form), scopes=("timing", "path"))


def runs(order: int, n: int, seed: int) -> RunPaths:
    """Runs over three categories, whose next step depends on the last one, or on the last two."""
    rng = np.random.default_rng(seed)
    once = np.random.default_rng(1).dirichlet(np.ones(3), size=3)
    twice = np.random.default_rng(2).dirichlet(np.full(3, 0.4), size=(4, 3))
    found = []
    for _ in range(n):
        before, now, names = 3, int(rng.integers(3)), []
        while True:
            names.append("abc"[now])
            if rng.random() < 0.2:
                break
            row = once[now] if order == 1 else twice[before, now]
            before, now = now, int(rng.choice(3, p=row))
        found.append((names, "success" if rng.random() < 0.7 else "failure"))
    return RunPaths.of_names(found, states=("a", "b", "c"))


def kept(paths: RunPaths, seed: int) -> dict[str, bool]:
    """Whether each form is kept for the path."""
    found = [
        Candidate(name=form, form=parse_model(form), score=score, scopes=("path",))
        for form, score in ((form, choose_model(paths, parse_model(form), seed=seed).score) for form in FORMS)
    ]
    return {each.name: why_dismissed(each, found, "path") is None for each in found}


def test_the_critical_number_is_that_of_the_largest_of_independent_gains() -> None:
    """Of k independent gains it is the normal quantile of ``.95 ** (1 / k)``; one gain has the one-sided 1.64."""
    from scipy.stats import norm

    rng = np.random.default_rng(0)
    for k in (1, 6):
        others = [score(rng.standard_normal(400)) for _ in range(k)]
        assert critical_gain(score(np.zeros(400)), others, "path") == pytest.approx(norm.ppf(0.95 ** (1 / k)), abs=0.12)


def test_runs_of_a_task_are_one_deviation() -> None:
    """Copies of the same run add nothing: the critical number is that of the runs without their copies."""
    values = np.random.default_rng(3).standard_normal((2, 50))
    alone = critical_gain(score(np.zeros(50)), [score(each) for each in values], "timing")
    blocks = np.repeat(np.arange(50), 4)
    copied = [score(np.repeat(each, 4), blocks=blocks) for each in values]
    assert critical_gain(score(np.zeros(200), blocks=blocks), copied, "timing") == pytest.approx(alone)


def test_scores_that_are_the_same_gain_nothing() -> None:
    plain = candidate(np.zeros(30), "first-order")
    assert critical_gain(plain.score, [plain.score], "path") == 0.0
    assert why_dismissed(plain, [plain, candidate(np.zeros(30), "order2")], "path") is None


def test_a_trifle_is_no_gain_however_sure() -> None:
    noise = 1e-5 * np.random.default_rng(4).standard_normal(500)
    plain = candidate(np.zeros(500), "first-order")
    for gain, reason in ((0.9 * LEAST_GAIN, False), (1.1 * LEAST_GAIN, True)):
        richer = candidate(noise + gain, "order2")
        assert (why_dismissed(plain, [plain, richer], "path") is not None) == reason
        assert why_dismissed(richer, [plain, richer], "path") is None


def test_first_order_runs_keep_the_first_order_chain_however_many_forms_gain_by_chance() -> None:
    """Forms that are as good as the first-order chain: it is dismissed on about one corpus in twenty.

    With one standard error for the best of six it would be on nearly two in three: P(max of 6 > 1) = 1 - .84 ** 6.
    """
    rng = np.random.default_rng(5)
    corpora, lost, lost_before = 120, 0, 0
    for _ in range(corpora):
        plain = candidate(np.zeros(80), "first-order")
        others = [candidate(rng.standard_normal(80), "order2", name=str(i)) for i in range(6)]
        lost += why_dismissed(plain, [plain, *others], "path") is not None
        gains = [other.score.gain_over(plain.score) for other in others]
        lost_before += any(gain > error for gain, error in gains)
    error = np.sqrt(0.05 * 0.95 / corpora)
    assert lost / corpora < 0.05 + 3 * error
    assert lost  # it is a test, and no veto
    assert lost_before / corpora > 0.5


def test_runs_of_first_order_stay_there_and_runs_of_second_order_move() -> None:
    stayed = [kept(runs(1, 60, seed), seed)["first-order"] for seed in range(12)]
    assert sum(stayed) >= 10  # of 12 at the rate of .05, fewer than 10 have a probability of .02
    moved = kept(runs(2, 100, 0), 0)
    assert (moved["first-order"], moved["clock:0,1,2,4"], moved["order2"]) == (False, False, True)
