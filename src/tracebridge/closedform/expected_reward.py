"""Expected rewards: which structure an operator means, and what is collected until a goal, in total, or discounted."""

from __future__ import annotations

import math
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform.bounds import discount_factor, problem_at
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.reward_graph import not_surely_reached, total_reward_regions
from tracebridge.errors import PropertyError
from tracebridge.pctl.ast import Number, OnePerStep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.pctl.ast import Formula, Span, Structure

    Mask = NDArray[np.bool_]


# ---------------------------------------------------------------- structures


def reward_structure(chain: MarkovChain, structure: Structure, span: Span | None = None) -> RewardStructure:
    """The reward structure with this name or number (from 1), the first one for None, or one for every step.

    Raises:
        PropertyError: if there is none of that name or number, or none at all.
    """
    if isinstance(structure, OnePerStep):
        return RewardStructure.from_fractions([1] * chain.n_states)
    known = list(chain.rewards)
    if not known:
        raise PropertyError(problem_at("the chain has no reward structure", None, span))
    if structure is None:
        return chain.rewards[known[0]]
    if isinstance(structure, str):
        if structure not in chain.rewards:
            hint = _name_hint(structure, known)
            raise PropertyError(problem_at(f'unknown reward structure "{structure}"', hint, span))
        return chain.rewards[structure]
    if not isinstance(structure, Number):
        raise PropertyError(problem_at(f"a reward structure is a name or a number, not {structure}", None, span))
    position = structure.value
    if position.denominator != 1 or not 1 <= position <= len(known):
        listed = ", ".join(f'{i} is "{name}"' for i, name in enumerate(known, 1))
        raise PropertyError(problem_at(f"there is no reward structure number {position}", listed, span))
    return chain.rewards[known[int(position) - 1]]


def _name_hint(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    quoted = ", ".join(f'"{structure}"' for structure in near or known)
    return f"did you mean {quoted}?" if near else f"the chain has {quoted}"


# ---------------------------------------------------------------- collected


def reward_until(arithmetic: Arithmetic, per_step: EnclosureVector, target: Mask) -> EnclosureVector:
    """Expected reward before the target; infinite where it is not reached almost surely."""
    missing = not_surely_reached(arithmetic.chain.transitions, target)
    zero = arithmetic.vector(np.zeros_like(target))
    return infinite_where(missing, arithmetic.solve(~missing & ~target, zero, per_step))


def total_reward(arithmetic: Arithmetic, per_step: EnclosureVector, *, within: Mask | None = None) -> EnclosureVector:
    """Expected reward in total; infinite where a recurrent class that earns anything can be reached.

    With ``within``, a set that no run leaves, only for the states in it; elsewhere 0.
    """
    asked = np.ones(len(per_step), dtype=np.bool_) if within is None else within
    endless, collecting = total_reward_regions(arithmetic.chain.transitions, (per_step.upper > 0).astype(np.bool_))
    zero = arithmetic.vector(np.zeros_like(asked))
    return infinite_where(asked & endless, arithmetic.solve(asked & collecting, zero, per_step))


def discounted_reward(
    arithmetic: Arithmetic, per_step: EnclosureVector, factor: Formula, steps: int | None
) -> EnclosureVector:
    """Expected sum of ``factor**i`` times the reward of step i = 0, 1, ..., of all steps or the first few.

    A run that goes on with probability ``factor`` after each step collects the same, so it is an ordinary sum of
    rewards of a chain with one more state.

    Raises:
        PropertyError: unless ``0 < factor < 1``, as Storm demands.
    """
    share = discount_factor(factor)
    n = arithmetic.chain.n_states
    stopping = arithmetic.on(_stopping(arithmetic.chain, share))
    running = np.arange(n + 1) < n
    zero = stopping.vector(np.zeros(n + 1, dtype=np.bool_))
    gain = EnclosureVector.where(running, per_step.take(np.minimum(np.arange(n + 1), n - 1)), zero)

    def in_total() -> EnclosureVector:
        return stopping.solve(running, zero, gain)

    total = in_total() if steps is None else stopping.iterate(zero, steps, running, gain=gain, limit=in_total)
    return total.take(np.arange(n))


def _stopping(chain: MarkovChain, factor: Fraction) -> MarkovChain:
    """The chain that stops after each step with probability ``1 - factor``, in one more state, the last."""
    P, n = chain.exact_transitions(), chain.n_states
    top, bottom = factor.numerator, factor.denominator
    # row i over denominator * bottom: its numerators times top, and what is missing to one
    scaled = [int(x) * top for x in P.numerators.tolist()]
    ends = P.indptr[1:].tolist()
    numerators: list[int] = []
    indices: list[int] = []
    columns = P.indices.tolist()
    for start, end, d in zip(P.indptr[:-1].tolist(), ends, P.denominators.tolist(), strict=True):
        numerators += [*scaled[start:end], int(d) * (bottom - top)]
        indices += [*columns[start:end], n]
    numerators.append(1)
    indices.append(n)
    matrix = RationalMatrix(
        np.append(P.indptr + np.arange(n + 1), P.indptr[-1] + n + 1),
        np.array(indices, dtype=np.int64),
        np.array(numerators, dtype=object),
        np.array([*(int(d) * bottom for d in P.denominators.tolist()), 1], dtype=object),
        n + 1,
    )
    states = tuple(f"s{i}" for i in range(n + 1))
    return MarkovChain(states=states, transitions=matrix, initial=(np.arange(n + 1) == n).astype(np.float64))


def infinite_where(mask: Mask, finite: EnclosureVector) -> EnclosureVector:
    """The vector with infinity in the places of the mask."""
    if not mask.any():
        return finite
    return EnclosureVector.where(mask, EnclosureVector.constant(len(finite), math.inf, exact=finite.exact), finite)
