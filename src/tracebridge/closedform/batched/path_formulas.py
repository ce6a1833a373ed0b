"""Path formulas of LTL on a stack of chains: probabilities, conditional probabilities, and rewards that hang on them.

The same methods as in `tracebridge.closedform.ltl`, in plain doubles. The automaton, its product with the chain and
what the graph of that decides depend on edges and labels only, so they are made once for all draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.batched.chain_stack import LARGEST, SMALLEST
from tracebridge.closedform.batched.linear_system import MOST_SIDE_BY_SIDE
from tracebridge.closedform.batched.product_equations import StackedProductEquations
from tracebridge.closedform.ltl.probability import decided_cases, decided_path
from tracebridge.closedform.ltl.reward import until_satisfied, until_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.batched.chain_stack import ChainStack
    from tracebridge.closedform.ltl.question import DecidedProduct
    from tracebridge.closedform.ltl.reward import Collecting
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import PathFormula

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

#: What a product holds for the draws that are computed at a time takes about so many bytes.
CHUNK_BYTES = 128 * 2**20


def path_probability(stack: ChainStack, path: PathFormula, holds: Holds) -> Floats:
    """The probability of a path formula, shape (n, draws): see `tracebridge.closedform.ltl.ltl_probability`."""
    decided = decided_path(stack.chain.transitions, path, holds)
    return _formula_asked_about(stack, decided)


def conditional_path_probability(stack: ChainStack, path: PathFormula, condition: PathFormula, holds: Holds) -> Floats:
    """The probability of a path formula among the runs that satisfy another one, shape (n, draws); NaN where undefined.

    See `tracebridge.closedform.ltl.conditional_probability`.
    """
    cases = decided_cases(stack.chain.transitions, path, condition, holds)
    x, y = (_formula_asked_about(stack, case) for case in cases)
    with np.errstate(invalid="ignore"):  # 0/0: almost no run satisfies the condition
        return x / (x + y)


def satisfied_prefix_reward(stack: ChainStack, path: PathFormula, per_step: Floats, holds: Holds) -> Floats:
    """The expected reward until a co-safe formula is satisfied, shape (n, draws).

    See `tracebridge.closedform.ltl.satisfied_prefix_reward`; ``per_step`` has the shape (n,).
    """
    collecting = until_satisfied(stack.chain.transitions, path, holds)
    gain = [per_step] * len(collecting.open)
    finite = _in_chunks(stack, collecting.decided, lambda some: _collected(some, collecting, gain))
    return np.where(collecting.endless[:, None], np.inf, finite)


def conditional_reward(
    stack: ChainStack, target: Mask, condition: PathFormula, per_step: Floats, holds: Holds
) -> Floats:
    """The expected reward before a target among the runs that satisfy a condition, shape (n, draws); NaN as above.

    See `tracebridge.closedform.ltl.conditional_reward`; ``target`` and ``per_step`` have the shape (n,).
    """
    collecting = until_target(stack.chain.transitions, target, condition, holds)

    def averages(some: ChainStack) -> Floats:
        probabilities = _probabilities(some, collecting.decided)
        gain = [per_step[:, None] * probability for probability in probabilities]
        with np.errstate(invalid="ignore", divide="ignore"):
            return _collected(some, collecting, gain) / probabilities[0]

    average = _in_chunks(stack, collecting.decided, averages)
    average = np.where(collecting.endless[:, None], np.inf, average)
    return np.where(collecting.decided.possible[0][:, None], average, np.nan)


def _formula_asked_about(stack: ChainStack, decided: DecidedProduct) -> Floats:
    return _in_chunks(stack, decided, lambda some: _probabilities(some, decided)[0])


def _probabilities(stack: ChainStack, decided: DecidedProduct) -> list[Floats]:
    """The probability of the formula of each reached node, one array of shape (n, draws) or (n, 1) a formula."""
    open_ = decided.between
    given = [row[:, None] for row in decided.certain.astype(np.float64)]
    found = StackedProductEquations(stack=stack, product=decided.product, open=open_, given=given).solve()
    if stack.has_all_edges:
        for values, between in zip(found, open_, strict=True):
            if between.any():
                values[between] = np.clip(values[between], SMALLEST, LARGEST)
    return found


def _collected(stack: ChainStack, collecting: Collecting, gain: Sequence[Floats]) -> Floats:
    """What is collected from every state on, shape (n, draws) or (n, 1); that of formula i is ``gain[i]`` a step."""
    zero = np.zeros((collecting.open.shape[1], 1))
    equations = StackedProductEquations(
        stack=stack,
        product=collecting.decided.product,
        open=collecting.open,
        given=[zero] * len(collecting.open),
        gain=gain,
    )
    return equations.solve()[0]


def _in_chunks(stack: ChainStack, decided: DecidedProduct, evaluate: Callable[[ChainStack], Floats]) -> Floats:
    """Values of states for all draws, shape (n, draws), computed for as many at a time as fit into memory."""
    transitions = len(decided.possible) * len(stack.entries)
    per_draw = 8 * (4 * decided.possible.size + 3 * transitions + 4 * MOST_SIDE_BY_SIDE**2)
    size = max(1, CHUNK_BYTES // per_draw)
    n = stack.chain.n_states
    values = np.empty((n, stack.draws))
    for first in range(0, stack.draws, size):
        draws = np.arange(first, min(first + size, stack.draws))
        values[:, draws] = evaluate(stack.select(draws))
    return values
