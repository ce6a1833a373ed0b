"""What an operator is worth after a prefix of a run: its conditional value, given the states so far.

A run is in state ``X_t`` at time t; a prefix ``X_0 .. X_t`` has t + 1 steps. After it a path formula of PCTL is one of
three things: satisfied already, no longer possible, or for the rest of the run to decide, which by the Markov property
has the probability of the same formula from ``X_t`` on, with t steps less in its bounds. A reward is what was earned so
far plus what is expected from ``X_t`` on. So a table of times by states says it all: time t has the recursion
``V_t = gain + P V_(t+1)`` in the states where nothing is settled. Baier and Katoen, Principles of Model Checking, 10.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.batched.operators import evaluate_stacked, unbounded_until
from tracebridge.closedform.bounds import number_of_steps, step_window
from tracebridge.closedform.expected_reward import reward_structure
from tracebridge.closedform.until import BoundedPath, until_form
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import (
    CumulativeReward,
    InstantaneousReward,
    Next,
    Probability,
    ReachReward,
    Reward,
    is_pctl,
    state_operand,
)
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.batched.chain_stack import ChainStack
    from tracebridge.closedform.bounds import StepWindow
    from tracebridge.closedform.until import Holds, UntilForm
    from tracebridge.pctl.ast import Formula

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

#: The most times by states that a table may have.
MAX_CELLS = 2**21


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefixForm:
    """An operator as a question about the rest of a run, for T times and n states; the last time stands for all later.

    Attributes:
        settled: where the prefix has decided the value, whatever follows, shape (T, n).
        answer: the value of the rest where it is settled, shape (T, n).
        earned: what a step from each state adds to the value until it is settled, shape (n,); None for a probability.
        afterwards: the value of the rest at the last time, shape (n, draws); None if it is settled in all states then.
    """

    settled: Mask
    answer: Floats
    earned: Floats | None
    afterwards: Callable[[ChainStack], Floats] | None

    @property
    def n_times(self) -> int:
        """The number of times T."""
        return len(self.settled)

    def values(self, stack: ChainStack) -> Iterator[Floats]:
        """The value of the rest at the times T - 1, T - 2, ..., 0, each of shape (n, draws).

        What the edges decide is exactly 0 or 1, and nothing else is, as in `ChainStack.iterate`. Once values do not
        change from one time to the next they are the same array.

        Raises:
            UnsupportedError, EngineError: as the operators of a stack do.
        """
        n = self.settled.shape[1]
        everywhere = np.ones(n, dtype=np.bool_)
        later = np.broadcast_to(self.answer[-1][:, None], (n, stack.draws))
        if self.afterwards is not None:
            found = np.broadcast_to(self.afterwards(stack), (n, stack.draws))
            later = np.where(self.settled[-1][:, None], later, found)
        yield later
        steady = False
        for t in range(self.n_times - 2, -1, -1):
            asked_alike = np.array_equal(self.settled[t], self.settled[t + 1]) and np.array_equal(
                self.answer[t], self.answer[t + 1]
            )
            if not (steady and asked_alike):
                following = stack.iterate(later, 1, everywhere, self.earned)
                found = np.where(self.settled[t][:, None], self.answer[t][:, None], following)
                steady = asked_alike and np.array_equal(found, later)
                if not steady:
                    later = found
            yield later


def prefix_form(chain: MarkovChain, operator: Formula, holds: Holds) -> PrefixForm:
    """The conditional value of an operator given a prefix.

    Args:
        chain: what the states and reward structures are of. operator: with its bounds as numbers; its threshold is not
            looked at. holds: the states where an operand is true, shape (n,).

    Raises:
        UnsupportedError: for all but P of X, U, F, G, W and R with step bounds and R of F, C and I=k, each without a
            condition; and for a table of more than `MAX_CELLS`.
        PropertyError: for a bound that is no number, and for an unknown reward structure.
    """
    match operator:
        case Probability(path=path, condition=None) if is_pctl(path):
            if isinstance(path, Next):
                return _next(holds(state_operand(path.operand)))
            if isinstance(path, BoundedPath) and not path.reward_bounds:
                return _until(until_form(path, holds, chain.n_states), step_window(path.bound))
        case Reward(path=ReachReward(), condition=None):
            earned = reward_structure(chain, operator.structure, operator.span).per_step
            return _reach(operator, earned, holds)
        case Reward(path=CumulativeReward() as path, condition=None) if not (path.reward_bounds or path.discount):
            earned = reward_structure(chain, operator.structure, operator.span).per_step
            if path.bound is None:
                return _total(operator, earned, holds)
            return _cumulative(earned, number_of_steps(path.bound) - path.strict)
        case Reward(path=InstantaneousReward(time=time), condition=None):
            reward = reward_structure(chain, operator.structure, operator.span).state
            return _instantaneous(reward, number_of_steps(time))
    raise UnsupportedError(
        "after a prefix only P of X, U, F, G, W and R with step bounds, and R of F, C and I=k, without conditions, are "
        f"evaluated, each as a property of its own; not {_short(operator)}"
    )


def _short(formula: Formula) -> str:
    text = format_formula(formula)
    return text if len(text) <= 80 else text[:77] + "..."


# ---------------------------------------------------------------- P


def _next(holds: Mask) -> PrefixForm:
    settled, answer = _table(2, len(holds))
    settled[1], answer[1] = True, holds
    return PrefixForm(settled=settled, answer=answer, earned=None, afterwards=None)


def _until(form: UntilForm, window: StepWindow) -> PrefixForm:
    left, right, n = form.left, form.right, len(form.left)
    if window.empty:
        settled, answer = _table(1, n)
        settled[:], answer[:] = True, form.complemented
        return PrefixForm(settled=settled, answer=answer, earned=None, afterwards=None)
    first, last = window.first, window.last
    settled, answer = _table((first if last is None else last) + 1, n)
    settled[:first] = ~left  # left before the window opens: too early
    settled[first:] = right | ~left
    answer[first:] = right
    if last is not None:
        settled[last] = True
    if form.complemented:
        answer = 1 - answer
    afterwards = (lambda stack: unbounded_until(stack, form)) if last is None else None
    return PrefixForm(settled=settled, answer=answer, earned=None, afterwards=afterwards)


# ---------------------------------------------------------------- R


def _reach(operator: Reward, earned: Floats, holds: Holds) -> PrefixForm:
    assert isinstance(operator.path, ReachReward)  # noqa: S101 - the caller matched it
    settled, answer = _table(1, len(earned))
    settled[0] = holds(operator.path.operand)
    return PrefixForm(
        settled=settled,
        answer=answer,
        earned=earned,
        afterwards=lambda stack: evaluate_stacked(stack, operator, holds),
    )


def _total(operator: Reward, earned: Floats, holds: Holds) -> PrefixForm:
    settled, answer = _table(1, len(earned))
    return PrefixForm(
        settled=settled,
        answer=answer,
        earned=earned,
        afterwards=lambda stack: evaluate_stacked(stack, operator, holds),
    )


def _cumulative(earned: Floats, steps: int) -> PrefixForm:
    if steps < 0:
        raise UnsupportedError("C<0 collects nothing; the first bound that means something is C<=0")
    settled, answer = _table(steps + 1, len(earned))
    settled[steps] = True
    return PrefixForm(settled=settled, answer=answer, earned=earned, afterwards=None)


def _instantaneous(reward: Floats, time: int) -> PrefixForm:
    settled, answer = _table(time + 1, len(reward))
    settled[time], answer[time] = True, reward
    return PrefixForm(settled=settled, answer=answer, earned=None, afterwards=None)


def _table(times: int, n: int) -> tuple[Mask, Floats]:
    if times * n > MAX_CELLS:
        raise UnsupportedError(
            f"a bound of {times - 1:,} steps over {n} states needs a table of more than {MAX_CELLS:,} entries"
        )
    return np.zeros((times, n), dtype=np.bool_), np.zeros((times, n))
