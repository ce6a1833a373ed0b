"""The least and the greatest value of each PCTL and reward operator over an interval chain, one value a state.

Nature chooses a row between the bounds, in each state and *anew at each step*, knowing the history: the reading of an
interval chain as a Markov decision process. A chain that is merely unknown keeps one row a state for ever. For ``U``
without a bound, ``G``, ``W``, ``R`` and expected rewards until a goal nature's best choice never changes, so that both
readings have the same bounds. For step bounds, ``C<=k`` and ``I=k`` the bounds here contain those of the unknown chain
and may be wider.

What the edges alone decide is exact. The rest are doubles rounded outward: bounded operators step by step (see
`rows`), unbounded ones by proof (see `fixed_point`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from tracebridge.closedform import directed
from tracebridge.closedform.bounds import collected_steps, number_of_steps, step_window
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.expected_reward import infinite_where, reward_structure
from tracebridge.closedform.robust.fixed_point import BellmanEquation, solve_bellman
from tracebridge.closedform.robust.possibilities import Possibilities
from tracebridge.closedform.until import BoundedPath, until_form
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import (
    Binary,
    CumulativeReward,
    InstantaneousReward,
    Label,
    Next,
    Probability,
    ReachReward,
    Reward,
    Truth,
    Unary,
    is_pctl,
    state_operand,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.chain.interval import IntervalChain
    from tracebridge.closedform.bounds import StepWindow
    from tracebridge.closedform.until import Holds, UntilForm
    from tracebridge.pctl.ast import Formula, Operator, PathFormula

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]

Direction = Literal["min", "max"]

#: Steps times the entries of the chain, and some for each step itself; more is refused, a few minutes of work.
MAX_WORK = 5 * 10**8
_WORK_OF_A_STEP = 2_000


def robust_values(
    chain: IntervalChain, operator: Operator, direction: Direction, holds: Holds | None = None
) -> EnclosureVector:
    """The least or greatest value of an operator in every state, shape (n,), over the choices of nature.

    The threshold and the optimum of the operator are not looked at.

    Args:
        chain: the bounds of the rows.
        operator: ``P`` of a PCTL path, or ``R`` of ``F``, ``C<=k`` or ``I=k``; bounds are numbers already.
        direction: ``min`` or ``max``.
        holds: the states where an operand is true, shape (n,); without it operands are Boolean combinations of labels.

    Raises:
        PropertyError: for an unknown reward structure, and a bound that is no number of steps.
        ModelError: for an unknown label.
        UnsupportedError: for any other operator or operand, and if it would be too much work.
    """
    maximise = direction == "max"
    holds = holds or partial(_states_where, chain)
    match operator:
        case Probability() if operator.condition is None:
            return _probability(chain, operator.path, holds, maximise=maximise)
        case Reward() if operator.condition is None:
            return _reward(chain, operator, holds, maximise=maximise)
    raise UnsupportedError("over an interval chain P and R are evaluated, without a condition")


# ---------------------------------------------------------------- P


def _probability(chain: IntervalChain, path: PathFormula, holds: Holds, *, maximise: bool) -> EnclosureVector:
    if not is_pctl(path):
        raise UnsupportedError("over an interval chain P takes one temporal operator over state formulas")
    possibilities = Possibilities.of_chain(chain)
    everywhere = np.ones(chain.n_states, dtype=np.bool_)
    if isinstance(path, Next):
        goal = _indicator(holds(state_operand(path.operand)))
        return _iterated(possibilities, goal, 1, everywhere, maximise=maximise)
    if not isinstance(path, BoundedPath) or path.reward_bounds:
        raise UnsupportedError("over an interval chain bounds on rewards are not evaluated")
    form = until_form(path, holds, chain.n_states)
    # Whoever makes the complement likely makes the path unlikely.
    towards = maximise != form.complemented
    value = _until(possibilities, form, step_window(path.bound), maximise=towards)
    return EnclosureVector.from_floats(np.ones(chain.n_states)) - value if form.complemented else value


def _until(possibilities: Possibilities, form: UntilForm, window: StepWindow, *, maximise: bool) -> EnclosureVector:
    """The optimal probability that ``right`` holds at a step of the window and ``left`` at all steps before."""
    left, right = form.left, form.right
    nowhere = np.zeros_like(left)
    if window.empty:
        return _indicator(nowhere)
    if window.length is None:
        opened = _unbounded_until(possibilities, left & ~right, right, maximise=maximise)
    else:
        opened = _iterated(possibilities, _indicator(right), window.length, left & ~right, maximise=maximise)
    if window.first == 0:
        return opened
    # A path that leaves ``left`` before the window opens is lost.
    one_earlier = _iterated(possibilities, opened, 1, ~nowhere, maximise=maximise)
    started = EnclosureVector.where(left, one_earlier, _indicator(nowhere))
    return _iterated(possibilities, started, window.first - 1, left, maximise=maximise)


def _unbounded_until(possibilities: Possibilities, open_: Mask, goal: Mask, *, maximise: bool) -> EnclosureVector:
    if maximise:
        one, zero = possibilities.attainable(open_, goal), ~possibilities.possible(open_, goal)
    else:
        one, zero = possibilities.certain(open_, goal), possibilities.avoidable(open_, goal)
    unknown = ~one & ~zero
    if maximise:  # where nature could stay for ever it does not gain by it; the least value is zero there
        possibilities = possibilities.contracted(possibilities.end_components(unknown))
    known = one.astype(np.float64)
    nothing = np.zeros(np.count_nonzero(unknown))
    return solve_bellman(
        BellmanEquation(
            rows=possibilities.rows_of(unknown),
            unknown=unknown,
            known_lower=known,
            known_upper=known,
            gain_lower=nothing,
            gain_upper=nothing,
            maximise=maximise,
            largest=1.0,
            ranking=known,
            every_choice_leaves=True,
        )
    )


# ---------------------------------------------------------------- R


def _reward(chain: IntervalChain, operator: Reward, holds: Holds, *, maximise: bool) -> EnclosureVector:
    structure = reward_structure(chain.member, operator.structure, operator.span)
    possibilities = Possibilities.of_chain(chain)
    everywhere = np.ones(chain.n_states, dtype=np.bool_)
    path = operator.path
    match path:
        case ReachReward():
            target = holds(path.operand)
            gain = _enclosed(structure.fractions(action=True))
            return _reward_until(possibilities, gain, target, maximise=maximise)
        case CumulativeReward(discount=None, reward_bounds=()) if (steps := collected_steps(path)) is not None:
            gain = _enclosed(structure.fractions(action=True))
            return _iterated(possibilities, _indicator(~everywhere), steps, everywhere, maximise=maximise, gain=gain)
        case InstantaneousReward():
            start = _enclosed(structure.fractions(action=False))
            return _iterated(possibilities, start, number_of_steps(path.time), everywhere, maximise=maximise)
    raise UnsupportedError("over an interval chain R takes F of a state formula, C<=k and I=k")


def _reward_until(
    possibilities: Possibilities, gain: EnclosureVector, target: Mask, *, maximise: bool
) -> EnclosureVector:
    """The optimal reward before the target; infinite where nature avoids it, or cannot help to miss it."""
    n = len(target)
    everywhere, nothing = np.ones(n, dtype=np.bool_), np.zeros(n)
    ranking = nothing
    if maximise:
        finite = possibilities.certain(everywhere, target)
    else:
        finite = possibilities.attainable(everywhere, target)
        possibilities = possibilities.restricted(finite & ~target, finite)
        # To stay for ever where nothing is earned is not for free: the target is then missed.
        idle = possibilities.end_components(finite & ~target & (gain.upper == 0))
        possibilities = possibilities.contracted(idle)
        distances = possibilities.distances(target)
        ranking = np.where(np.isfinite(distances), distances, n)
    unknown = finite & ~target
    value = solve_bellman(
        BellmanEquation(
            rows=possibilities.rows_of(unknown),
            unknown=unknown,
            known_lower=nothing,
            known_upper=nothing,
            gain_lower=gain.lower[unknown],
            gain_upper=gain.upper[unknown],
            maximise=maximise,
            largest=None,
            ranking=ranking,
            every_choice_leaves=maximise,
        )
    )
    return infinite_where(~finite, value)


# ---------------------------------------------------------------- steps


def _iterated(
    possibilities: Possibilities,
    start: EnclosureVector,
    steps: int,
    active: Mask,
    *,
    maximise: bool,
    gain: EnclosureVector | None = None,
) -> EnclosureVector:
    """``x <- gain + opt p x`` in the active states, so many times, rounded outward."""
    rows = possibilities.rows_of(active)
    lower, upper, value = start.lower.copy(), start.upper.copy(), start.value.copy()
    for done in range(steps):
        if done * (len(rows.indices) + _WORK_OF_A_STEP) > MAX_WORK:
            raise UnsupportedError(f"{steps} steps over {len(rows.indices)} uncertain transitions are too many")
        below, _ = rows.mean_bounds(lower, maximise=maximise)
        _, above = rows.mean_bounds(upper, maximise=maximise)
        if gain is not None:
            below = directed.add_down(below, gain.lower[active])
            above = directed.add_up(above, gain.upper[active])
        if np.array_equal(below, lower[active]) and np.array_equal(above, upper[active]):
            break  # and so in every further step
        lower[active], upper[active] = below, above
        value = (lower + upper) / 2
    return EnclosureVector.from_bounds(value, lower, upper)


def _indicator(states: Mask) -> EnclosureVector:
    return EnclosureVector.from_floats(states.astype(np.float64))


def _enclosed(numbers: Sequence[Fraction]) -> EnclosureVector:
    return EnclosureVector.from_fractions(numbers).to_float()


# ---------------------------------------------------------------- operands


def _states_where(chain: IntervalChain, formula: Formula) -> Mask:
    """Where a Boolean combination of labels holds, shape (n,), without recursion."""
    truths: dict[int, Mask] = {}
    for node in reversed(list(walk(formula))):  # parts before what they are parts of
        match node:
            case Truth(value):
                truths[id(node)] = np.full(chain.n_states, value)
            case Label(name):
                truths[id(node)] = chain.label(name)
            case Unary("!", operand):
                truths[id(node)] = ~truths[id(operand)]
            case Binary(("&" | "|" | "=>" | "<=>") as operator, left, right):
                truths[id(node)] = _joined(operator, truths[id(left)], truths[id(right)])
            case _:
                raise UnsupportedError(
                    "over an interval chain operands are Boolean combinations of labels, not "
                    f"{type(node).__name__.lower()}"
                )
    return truths[id(formula)]


def _joined(operator: str, left: Mask, right: Mask) -> Mask:
    match operator:
        case "&":
            return left & right
        case "|":
            return left | right
        case "=>":
            return ~left | right
    return np.asarray(left == right)
