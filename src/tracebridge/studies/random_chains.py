"""Chains that studies draw: rows ``(m, m + 2)`` of states, success and failure, and the MarkovChain of such rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain import MarkovChain, RewardStructure
from tracebridge.inference.scenarios import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_CONCENTRATION = 20.0


def random_rows(
    rng: np.random.Generator,
    m: int,
    *,
    end: float,
    success: tuple[float, float] = (0.0, 1.0),
    successors: int | None = None,
) -> Floats:
    """Rows of a random chain of m states, each of which can be reached from every other.

    Args:
        end: the mean probability that a step is a run's last; beta-distributed over states, of concentration 20.
        success: the range of the probability that such a run has succeeded, uniform over states.
        successors: states that may follow a state, with uniform Dirichlet probabilities; None for all.
    """
    ends = rng.beta(_CONCENTRATION * end, _CONCENTRATION * (1 - end), size=m)
    share = rng.uniform(*success, size=m)
    rows = np.zeros((m, m + 2))
    if successors is None or successors >= m:
        rows[:, :m] = rng.dirichlet(np.ones(m), size=m)
    else:
        for i in range(m):
            others = rng.permutation(np.delete(np.arange(m), (i + 1) % m))[: successors - 1]
            rows[i, [(i + 1) % m, *others]] = rng.dirichlet(np.ones(successors))
    rows[:, :m] *= (1 - ends)[:, None]
    rows[:, m], rows[:, m + 1] = ends * share, ends * (1 - share)
    return rows


def chain_of_rows(rows: Floats) -> MarkovChain:
    """The chain of such rows, which starts in the first state; it has the labels and rewards of a fit."""
    m = len(rows)
    P = np.vstack([rows / rows.sum(axis=1, keepdims=True), np.eye(m + 2)[m:]])
    end = np.arange(m + 2)
    return MarkovChain(
        states=(*state_names(m), "success", "failure"),
        transitions=P,
        initial=np.eye(m + 2)[0],
        labels={"success": end == m, "failure": end == m + 1, "absorbed": end >= m},
        rewards={"steps": RewardStructure(state=(end < m).astype(np.float64))},
    )


def scenario_of_rows(rows: Floats, *, cut: float = 0.0) -> Scenario:
    """Corpora of such a chain; ``cut`` is the probability that a run which goes on is censored after a step."""
    m = len(rows)
    return Scenario(
        name="",
        description="",
        is_null=True,
        n_states=m,
        start=np.eye(m)[0],
        law=lambda now: rows[now.state],
        cut=cut,
    )


def state_names(m: int) -> tuple[str, ...]:
    """``s00``, ``s01``, ..."""
    return tuple(f"s{i:02d}" for i in range(m))
