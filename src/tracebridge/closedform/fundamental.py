"""The fundamental matrix ``N = (I - Q)^-1`` of an absorbing chain and what follows from it.

Visits, absorption probabilities, times to absorption and their variances (Kemeny and Snell, Finite Markov Chains,
chapter 3). Systems are solved, never inverted, and every formula is arranged so that no digits cancel: with tiny exit
probabilities the answers keep their relative accuracy. With ``exact=True`` the same formulas run over Fractions.

All functions take an `AbsorbingChain`, or a `MarkovChain` that is one (else ModelError). Arrays are aligned with
`AbsorbingChain.transient_states` and `AbsorbingChain.absorbing_states`; they hold float64, or Fractions (dtype object)
when exact. A row of doubles stands for the row divided by its sum, in both.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tracebridge.closedform.absorbing_system import (
    AbsorbingSystem,
    Chain,
    Scalar,
    absorbers_in,
    absorbing_form,
    complementary,
    scalar,
)
from tracebridge.closedform.entries import Array, Entries
from tracebridge.errors import UnsupportedError
from tracebridge.html_table import html_table

#: N has m^2 entries: above this many transient states it is not formed in doubles (a gigabyte).
N_LIMIT = 11_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateValues:
    """One number for each transient state, and the number for a run that starts from the initial distribution.

    Attributes:
        states: names of the m transient states.
        values: shape (m,); float64, or Fractions (dtype object).
        overall: for a run from the initial distribution, runs without a step included.
    """

    states: tuple[str, ...]
    values: Array
    overall: Scalar

    def __getitem__(self, state: str) -> Scalar:
        """The number of one state. Raises KeyError for a name that is no transient state."""
        try:
            position = self.states.index(state)
        except ValueError:
            raise KeyError(state) from None
        return scalar(self.values[position])

    def to_dict(self) -> dict[str, Any]:
        """Plain data; Fractions become ``"p/q"``."""

        def plain(value: Any) -> float | str:
            return str(value) if isinstance(value, Fraction) else float(value)

        pairs = zip(self.states, self.values.tolist(), strict=True)
        return {"values": {state: plain(value) for state, value in pairs}, "overall": plain(self.overall)}

    def _repr_html_(self) -> str:
        pairs = [("from the start", self.overall), *zip(self.states, self.values.tolist(), strict=True)]
        return html_table(("state", "value"), pairs, noun="states")


# ---------------------------------------------------------------- visits


def fundamental_matrix(chain: Chain, *, exact: bool = False) -> Array:
    """N: the expected number of visits to state j from state i, the start counted; shape (m, m).

    Raises:
        UnsupportedError: above `N_LIMIT` states; `expected_visits` and the other functions never form N.
    """
    return _formed(AbsorbingSystem(absorbing_form(chain), exact=exact))


def expected_visits(chain: Chain, *, exact: bool = False) -> Array:
    """``pi0 N``: expected visits to each transient state from the initial distribution; shape (m,)."""
    return AbsorbingSystem(absorbing_form(chain), exact=exact).visits()


def visit_variances(chain: Chain, *, exact: bool = False) -> Array:
    """``N (2 N_dg - I) - N_sq``: variances of the number of visits to j from i; shape (m, m).

    Evaluated as ``H N_dg (N_dg - I) + H (1 - H) N_dg^2`` with H the probability that j is visited at all (the start
    counted): the visits are geometric once j is reached.
    """
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    N = _formed(system)
    visits_at_home = N.diagonal()
    revisits = system.Q.right(N).diagonal()  # N - I = Q N, without the subtraction
    reached = N / visits_at_home
    missed = 1 - reached if exact else np.maximum(1 - reached, 0.0)
    return np.asarray(reached * visits_at_home * revisits + reached * missed * visits_at_home**2)


def hitting_probabilities(chain: Chain, *, exact: bool = False) -> Array:
    """``H = (N - I) N_dg^-1``: the probability of a visit to j after leaving i (for i = j a return); shape (m, m).

    ``N - I`` is taken as ``Q N``.
    """
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    N = _formed(system)
    H = system.Q.right(N) / N.diagonal()
    return H if exact else np.minimum(H, 1.0)


# ---------------------------------------------------------------- where runs end


def absorption_probabilities(chain: Chain, *, exact: bool = False) -> Array:
    """``B = N R``: the probability that a run from transient state i ends in absorbing state j; shape (m, a)."""
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    B = system.solve(system.R.right(_identity(system.R.shape[1], exact=exact)))
    return B if exact else np.minimum(B, 1.0)


def long_run_outcomes(chain: Chain, *, exact: bool = False) -> dict[str, Scalar]:
    """``pi0 B`` plus the runs without a step: where runs end, by the name of the absorbing state; sums to one."""
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    outcomes = system.outcomes()
    return {name: scalar(value) for name, value in zip(system.chain.absorbing_states, outcomes, strict=True)}


def long_run_reliability(chain: Chain, *, target: str | Collection[str] = "success", exact: bool = False) -> Scalar:
    """``R_inf = pi0 B[:, target]`` plus the initial mass in the target: the probability that a run ever succeeds.

    Args:
        chain: the chain; absorbers outside the target count as failure, whatever they are called.
        target: the label or state that means success, or several of them; all of its states must be absorbing.
        exact: compute in Fractions.

    Raises:
        ModelError: for an unknown label, or one that holds in a transient state.
    """
    return long_run_split(chain, target=target, exact=exact)[0]


def long_run_unreliability(chain: Chain, *, target: str | Collection[str] = "success", exact: bool = False) -> Scalar:
    """``1 - R_inf``, summed from the other absorbers and so accurate however small it is; see `long_run_reliability`.

    It is zero if and only if no other absorber can be reached.
    """
    return long_run_split(chain, target=target, exact=exact)[1]


def long_run_split(chain: Chain, *, target: str | Collection[str], exact: bool = False) -> tuple[Scalar, Scalar]:
    """``(R_inf, 1 - R_inf)`` by one solve, both with full relative accuracy."""
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    hit = absorbers_in(system.chain, target)
    outcomes = system.outcomes()
    return complementary(outcomes[hit].sum(), outcomes[~hit].sum(), exact=exact)


# ---------------------------------------------------------------- how long runs take


def mean_time_to_absorption(chain: Chain, *, exact: bool = False) -> StateValues:
    """``t = N 1``: expected steps until a run ends (MTTA), for each state and overall.

    A run without a step counts 0 in the overall value ``pi0 t``.
    """
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    t = system.solve(system.ones())
    return StateValues(states=system.chain.transient_states, values=t, overall=scalar(system.initial @ t, exact=exact))


def absorption_time_variance(chain: Chain, *, exact: bool = False) -> StateValues:
    """``(2 N - I) t - t_sq``: variance of the number of steps until a run ends, in steps squared.

    Evaluated as ``N w`` with ``w_i`` the variance of t over the successors of i (0 in absorbers): by the law of total
    variance the same number, as a sum of non-negative terms. The overall value is the variance of the mixture over
    the initial distribution, runs without a step included as zeros.
    """
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    t = system.solve(system.ones())
    ahead = system.Q.right(t)  # t - 1: the expected time from the successor on
    Q = system.Q
    spread = Entries(Q.rows, Q.columns, Q.values * (t[Q.columns] - ahead[Q.rows]) ** 2, Q.shape).right(system.ones())
    variance = system.solve(spread + system.exits(system.every_absorber) * ahead**2)
    mean = system.initial @ t
    overall = system.initial @ (variance + (t - mean) ** 2) + system.initial_absorbed.sum() * mean**2
    return StateValues(states=system.chain.transient_states, values=variance, overall=scalar(overall, exact=exact))


# ---------------------------------------------------------------- matrices in full


def _formed(system: AbsorbingSystem) -> Array:
    if system.size > N_LIMIT:
        raise UnsupportedError(
            f"the fundamental matrix of {system.size} transient states is too large to form (limit {N_LIMIT}): "
            "ask for expected visits, absorption probabilities or times instead"
        )
    return system.solve(_identity(system.size, exact=system.exact))


def _identity(size: int, *, exact: bool) -> Array:
    if not exact:
        return np.eye(size)
    eye = np.full((size, size), Fraction(0), dtype=object)
    np.fill_diagonal(eye, Fraction(1))
    return eye
