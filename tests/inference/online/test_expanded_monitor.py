"""The monitor of chains whose states remember more: Bayes' rule over all ways through the copies, written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tracebridge.chain import MarkovChain, RewardStructure
from tracebridge.chain.expanded.copies import category_copies
from tracebridge.checking import check
from tracebridge.inference.expanded.modelling import fit_chain
from tracebridge.inference.online.monitor import runtime_monitor
from tracebridge.traces import Outcome, Step, Trace

FORMULAS = (
    'P=? [ F "success" ]',
    'P=? [ F<=4 "success" ]',
    'P=? [ !"ask" U "success" ]',
    'P=? [ G[2,5] !"ask" ]',
    'P=? [ X "search" ]',
    'R{"steps"}=? [ F "absorbed" ]',
    'R{"ask"}=? [ C<=4 ]',
)


def corpus() -> list[Trace]:
    """Runs in which what follows a search depends on how often it was made, and on the task."""
    rng = np.random.default_rng(0)
    traces = []
    for i in range(80):
        names = ["ask"] if rng.random() < 0.5 else ["search"]
        while len(names) < 12 and rng.random() < (0.9 if names[-2:] == ["search", "search"] else 0.6):
            names.append("search" if rng.random() < 0.7 else "ask")
        good = rng.random() < (0.9 if i % 2 else 0.3)
        traces.append(
            Trace(
                trace_id=f"{i}",
                task_id=f"task {i % 10}",
                outcome=Outcome.SUCCESS if good else Outcome.FAILURE,
                steps=tuple(Step(name=name) for name in names),
            )
        )
    return traces


def by_bayes(chain: MarkovChain, names: list[str]) -> tuple[np.ndarray, float]:
    """The chances of the states at the end of a prefix, shape (n,), and its probability."""
    copies = category_copies(chain)
    P, chances = chain.transitions.toarray(), np.zeros(chain.n_states)
    for way in itertools.product(*(copies[name].tolist() for name in names)):
        moves = [P[i, j] for i, j in itertools.pairwise(way)]
        chances[way[-1]] += chain.initial[way[0]] * math.prod(moves)
    return chances / chances.sum(), float(chances.sum())


def continued(chain: MarkovChain, names: list[str], chances: np.ndarray) -> MarkovChain:
    """The chain behind states for the prefix, from the last of which it goes on as from states with these chances."""
    n, k = chain.n_states, len(names)
    P = np.zeros((n + k, n + k))
    P[:n, :n] = chain.transitions.toarray()
    for i in range(k - 1):
        P[n + i, n + i + 1] = 1
    P[n + k - 1, :n] = chances @ P[:n, :n]
    source = [*range(n), *(int(category_copies(chain)[name][0]) for name in names)]
    return MarkovChain(
        states=tuple(f"state {i}" for i in range(n + k)),
        transitions=P / P.sum(axis=1, keepdims=True),
        initial=np.eye(n + k)[n],
        labels={name: chain.label(name)[source] for name in ("success", "failure", "absorbed", "ask", "search")},
        rewards={name: RewardStructure(state=chain.rewards[name].state[source]) for name in ("steps", "ask")},
    )


@pytest.mark.parametrize("model", ["order2", "clock:steps", "phases:2", "classes:2"])
def test_values_are_conditional_on_all_that_is_seen(model):
    fit = fit_chain(corpus(), model=model, k_max=5)
    monitor = runtime_monitor(fit, ";\n".join(FORMULAS))
    assert len(monitor.tables) == len(FORMULAS)
    for names in (["ask"], ["search", "search"], ["search", "ask", "search", "search"]):
        chances, probability = by_bayes(fit.chain, names)
        reading = monitor.read(names)
        assert reading.log_likelihood == pytest.approx(math.log(probability), rel=1e-9)
        results = check(continued(fit.chain, names, chances), ";\n".join(FORMULAS), engines=["closed-form"])
        for result, found in zip(results, reading.properties, strict=True):
            assert found.value == pytest.approx(float(result.value.value), rel=1e-8, abs=1e-12), result.property.text
            assert found.settled or math.isnan(found.lower)
        assert reading.success.value == pytest.approx(reading.properties[0].value, rel=1e-9)
        ended = monitor.read(names, "failure")
        assert (ended.state, ended.success.value, ended.steps_left.value) == ("failure", 0, 0)
    assert 0.3 < monitor.read(["search", "search"]).tail <= 1


def test_a_property_about_what_is_not_seen_is_refused():
    fit = fit_chain(corpus(), model="order2", k_max=5)
    monitor = runtime_monitor(fit, '"odd": P=? [ G P>=0.5 [ X "search" ] ]; "good": P>=0.1 [ F "success" ];')
    assert list(monitor.refused) == ["odd"]
    assert "more than the steps of a run" in monitor.refused["odd"]
    assert monitor.read(["ask"]).properties[0].verdict == "satisfied"
