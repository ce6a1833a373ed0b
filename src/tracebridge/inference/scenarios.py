"""Corpora with a known truth: eight that a first-order chain describes, and the ways in which one can be wrong.

They show what the certificate's error rates are. A null is a first-order absorbing chain with fixed probabilities and
independent runs, with or without censoring; an alternative breaks exactly one of these assumptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tracebridge.chain.counts import TransitionCounts
from tracebridge.chain.fit import fit_counts
from tracebridge.inference.corpus_counts import PathCounts
from tracebridge.inference.path_tables import CENSORED
from tracebridge.states.flow import RunFlow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What the next step of each of k runs may depend on; arrays of shape (k,).

    Attributes:
        time: steps before the present one. before: the previous state, m at the first step. state: the present one.
        stay: earlier steps of the same stay in it. kind: a number in [0, 1) drawn once a run.
    """

    time: int
    before: Integers
    state: Integers
    stay: Integers
    kind: Floats


Law = Callable[[Moment], "Floats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A way to draw corpora.

    Attributes:
        name: short. description: one line. is_null: a first-order chain is the truth.
        n_states: m. start: distribution of first states, shape (m,).
        law: probabilities of what follows, shape (k, m + 2): states, success, failure.
        cut: probability that a run which goes on is censored after a step.
    """

    name: str
    description: str
    is_null: bool
    n_states: int
    start: Floats
    law: Law
    cut: float = 0.0

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states: ``s00``, ``s01``, ..."""
        return tuple(f"s{i:02d}" for i in range(self.n_states))

    def draw(self, n_runs: int, rng: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        """Codes, offsets and outcomes of so many runs, as in `PathTables.of_paths`."""
        m = self.n_states
        runs = np.arange(n_runs)
        state = rng.choice(m, size=n_runs, p=self.start)
        before, stay = np.full(n_runs, m), np.zeros(n_runs, dtype=np.int64)
        kind = rng.random(n_runs)
        outcomes = np.zeros(n_runs, dtype=np.int64)
        visits: list[tuple[Integers, Integers]] = []
        time = 0
        while len(runs):
            visits.append((runs, state))
            rows = self.law(Moment(time=time, before=before, state=state, stay=stay, kind=kind))
            above = np.cumsum(rows, axis=1)
            after = np.minimum((above <= rng.random(len(runs))[:, None] * above[:, -1:]).sum(axis=1), m + 1)
            going = after < m
            outcomes[runs[~going]] = after[~going] - m
            cut = going & (rng.random(len(runs)) < self.cut)
            outcomes[runs[cut]] = CENSORED
            going &= ~cut
            stay = np.where(after == state, stay + 1, 0)[going]
            runs, before, state, kind = runs[going], state[going], after[going], kind[going]
            time += 1
        run_of_step = np.concatenate([which for which, _ in visits])
        order = np.argsort(run_of_step, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(run_of_step, minlength=n_runs))])
        return np.concatenate([codes for _, codes in visits])[order], offsets, outcomes

    def counts(self, n_runs: int, seed: int) -> PathCounts:
        """A corpus of so many runs."""
        return PathCounts.of_paths(self.states, *self.draw(n_runs, np.random.default_rng(seed)))

    def fitted(self, n_runs: int, seed: int) -> tuple[ChainFit, PathCounts]:
        """The same corpus with a chain fitted to it."""
        codes, offsets, outcomes = self.draw(n_runs, np.random.default_rng(seed))
        outcome_of_step = np.repeat(outcomes, np.diff(offsets))
        flows = []
        for outcome in range(3):
            lengths = np.diff(offsets)[outcomes == outcome]
            ends = np.concatenate([[0], np.cumsum(lengths)])
            flows.append(RunFlow.from_paths(codes[outcome_of_step == outcome], ends, self.n_states))
        counts = TransitionCounts(states=self.states, success=flows[0], failure=flows[1], censored=flows[2])
        return fit_counts(counts), PathCounts.of_paths(self.states, codes, offsets, outcomes)


def _chain(routes: Floats, exits: Floats, success: Floats) -> Floats:
    """Rows (m, m + 2) from routes (m, m) that sum to one, and the probabilities to end and to succeed then, (m,)."""
    return np.column_stack([routes * (1 - exits)[:, None], exits * success, exits * (1 - success)])


def _dense(seed: int, m: int) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(m), size=m)


def _sparse(seed: int, m: int, successors: int) -> Floats:
    rng = np.random.default_rng(seed)
    routes = np.zeros((m, m))
    for i in range(m):
        # the next state is always among them, so that all states are reached
        others = np.setdiff1d(np.arange(m), [(i + 1) % m])
        chosen = np.append(rng.choice(others, size=successors - 1, replace=False), (i + 1) % m)
        routes[i, chosen] = rng.dirichlet(np.ones(successors))
    return routes


def _exits(seed: int, m: int, mean: float) -> Floats:
    concentration = 20.0
    return np.random.default_rng(seed).beta(concentration * mean, concentration * (1 - mean), size=m)


def _remembering(rows: Floats, weight: float) -> Law:
    """With this weight a run that goes on does so to the state that the last two decide; ends as in ``rows``."""
    m = len(rows)

    def law(now: Moment) -> Floats:
        mixed = rows[now.state].copy()
        later = np.flatnonzero(now.before < m)
        going_on = mixed[later, :m].sum(axis=1)
        mixed[later, :m] *= 1 - weight
        mixed[later, (now.before + now.state + 1)[later] % m] += weight * going_on
        return mixed

    return law


def _null(name: str, description: str, rows: Floats, *, start: Floats | None = None, cut: float = 0.0) -> Scenario:
    m = len(rows)
    if start is None:
        start = np.eye(m)[0]
    return Scenario(
        name=name,
        description=description,
        is_null=True,
        n_states=m,
        start=start,
        law=lambda now: rows[now.state],
        cut=cut,
    )


def _nulls() -> list[Scenario]:
    def even(m: int, value: float) -> Floats:
        return np.full(m, value)

    return [
        _null("N1", "dense, 5 states, 40 % succeed", _chain(_dense(1, 5), _exits(1, 5, 0.12), even(5, 0.4))),
        _null(
            "N2",
            "sparse, 10 states, short runs, a third succeed",
            _chain(_sparse(2, 10, 3), _exits(2, 10, 0.35), even(10, 0.33)),
            start=even(10, 0.1),
        ),
        _null(
            "N3",
            "dense, 5 states, 97 % succeed, 5 % censored",
            _chain(_dense(3, 5), _exits(3, 5, 0.16), even(5, 0.97)),
            cut=0.01,
        ),
        _null("F1", "dense, 3 states", _chain(_dense(11, 3), even(3, 0.2), np.array([0.9, 0.5, 0.2]))),
        _null("F2", "dense, 8 states", _chain(_dense(12, 8), _exits(12, 8, 0.15), even(8, 0.6))),
        _null("F3", "sparse, 8 states", _chain(_sparse(13, 8, 3), _exits(13, 8, 0.15), even(8, 0.6))),
        _null(
            "F4",
            "sparse, 12 states, few ends",
            _chain(_sparse(14, 12, 4), _exits(14, 12, 0.12), np.random.default_rng(14).uniform(0.1, 0.9, 12)),
        ),
        _null("F5", "dense, 6 states, 98 % succeed", _chain(_dense(15, 6), _exits(15, 6, 0.18), even(6, 0.98))),
    ]


def _routes(seed: int) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(5, 2.0), size=5)


def second_order(weight: float) -> Scenario:
    """The last two states decide the next with this weight, between 0 (a null) and 1; ends have probability .12."""
    plain = _chain(_routes(21), np.full(5, 0.12), np.full(5, 0.6))
    return Scenario(
        name=f"second order {weight:g}",
        description=f"second order with weight {weight:g}, ends unchanged",
        is_null=not weight,
        n_states=5,
        start=np.eye(5)[0],
        law=_remembering(plain, weight),
    )


def _alternatives() -> list[Scenario]:
    m = 5
    start = np.eye(m)[0]
    success = np.full(m, 0.6)
    exits = np.full(m, 0.12)
    routes, other_routes = _routes(21), _routes(22)
    plain = _chain(routes, exits, success)
    rerouted = _chain(other_routes, exits, success)
    early, late = _chain(routes, np.full(m, 0.08), success), _chain(routes, np.full(m, 0.25), success)
    easy = _chain(routes, np.full(m, 0.24), np.full(m, 0.9))
    hard = _chain(routes, np.full(m, 0.11), np.full(m, 0.25))
    away = (1 - np.eye(m)) / (m - 1)
    leaving, staying = _chain(away, exits, success), _chain(np.eye(m), exits, success)

    def scenario(name: str, description: str, law: Law) -> Scenario:
        return Scenario(name=name, description=description, is_null=False, n_states=m, start=start, law=law)

    return [
        scenario(
            "A1",
            "the chance to end rises from .08 to .25 at the fifth step",
            lambda now: (early if now.time < 4 else late)[now.state],
        ),
        scenario(
            "A1b",
            "other routes from the fourth step on, ends unchanged",
            lambda now: (plain if now.time < 3 else rerouted)[now.state],
        ),
        replace(second_order(0.3), name="A2"),
        replace(second_order(0.15), name="A2c"),
        scenario(
            "A3",
            "half of the runs are easy (90 % succeed, soon), half hard (25 %, late)",
            lambda now: np.where((now.kind < 0.5)[:, None], easy[now.state], hard[now.state]),
        ),
        scenario(
            "A4",
            "every stay lasts three steps, ends unchanged",
            lambda now: np.where((now.stay < 2)[:, None], staying[now.state], leaving[now.state]),
        ),
    ]


#: By name: the nulls N1-N3 and F1-F5, the alternatives A1, A1b, A2, A2c, A3 and A4.
SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {scenario.name: scenario for scenario in (*_nulls(), *_alternatives())}
)
