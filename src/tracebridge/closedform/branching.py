"""CTL: whether some run, or every run, satisfies a path operator, from the edges of the chain alone.

Probabilities play no part, and neither does fairness: ``A [F a]`` fails where one single run avoids ``a``, even if that
run has probability zero. Clarke, Grumberg and Peled, Model Checking, chapter 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import reaching
from tracebridge.closedform.bounds import step_window
from tracebridge.closedform.cycles import on_cycle
from tracebridge.closedform.until import until_form
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import (
    Eventually,
    Globally,
    Next,
    Release,
    Until,
    WeakUntil,
    is_pctl,
    state_operand,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.closedform.bounds import StepWindow
    from tracebridge.closedform.until import Holds, UntilForm
    from tracebridge.pctl.ast import PathFormula, Quantified

    Mask = NDArray[np.bool_]

#: Sets of states are stepped back so often at most; with a period among them more steps are skipped.
MAX_STEPS = 1_000_000


def satisfied_by_runs(matrix: csr_array, operator: Quantified, holds: Holds) -> Mask:
    """Where ``A [ path ]`` or ``E [ path ]`` holds, shape (n,).

    Args:
        matrix: its stored entries are the edges. operator: step bounds are already numbers.
        holds: the states where an operand is true, shape (n,).

    Raises:
        PropertyError: for a step bound that is no integer or is negative.
        UnsupportedError: for a path formula that is none of CTL, and for reward bounds.
    """
    path = operator.path
    if not is_pctl(path):
        raise UnsupportedError(
            f"{operator.quantifier} [ ... ] takes one path operator over formulas (CTL), not a formula of LTL"
        )
    universal = operator.quantifier == "A"
    found = _some_run(matrix, path, holds, negated=universal)  # A p is not E not p
    return ~found if universal else found


def _some_run(matrix: csr_array, path: PathFormula, holds: Holds, *, negated: bool) -> Mask:
    """Where some run satisfies the path operator, or its negation."""
    match path:
        case Next():
            return _before(matrix, holds(state_operand(path.operand)) ^ negated)
        case Eventually() | Globally() | Until() | WeakUntil() | Release():
            if path.reward_bounds:
                raise UnsupportedError("A and E take step bounds; with a reward bound only P is evaluated")
            form = until_form(path, holds, matrix.shape[0])
            window = step_window(path.bound)
            return (
                _some_run_avoids(matrix, form, window)
                if form.complemented ^ negated
                else _some_run_reaches(matrix, form, window)
            )
        case _:
            raise UnsupportedError(f"{type(path).__name__} is no path operator of CTL")


def _some_run_reaches(matrix: csr_array, form: UntilForm, window: StepWindow) -> Mask:
    if window.empty:
        return np.zeros_like(form.left)
    if window.length is None:
        opened = reaching(matrix, form.right, through=form.left)
    else:
        opened = _stepped(form.right, window.length, lambda x: form.right | (form.left & _before(matrix, x)))
    return _stepped(opened, window.first, lambda x: form.left & _before(matrix, x))


def _some_run_avoids(matrix: csr_array, form: UntilForm, window: StepWindow) -> Mask:
    """Where some run does not satisfy ``left U right`` within the window."""
    if window.empty:
        return np.ones_like(form.left)
    open_, safe = form.left & ~form.right, ~form.left & ~form.right
    if window.length is None:
        opened = reaching(matrix, safe | on_cycle(matrix, open_), through=open_)
    else:
        opened = _stepped(~form.right, window.length, lambda x: safe | (open_ & _before(matrix, x)))
    return _stepped(opened, window.first, lambda x: ~form.left | _before(matrix, x))


def _before(matrix: csr_array, targets: Mask) -> Mask:
    """The states with a successor among the targets."""
    found = np.zeros(matrix.shape[0], dtype=np.bool_)
    entries = np.flatnonzero(targets[matrix.indices])
    found[np.searchsorted(matrix.indptr, entries, side="right") - 1] = True
    return found


def _stepped(start: Mask, steps: int, step: Callable[[Mask], Mask]) -> Mask:
    """A step applied so many times. Sets recur in the end: a period (Brent 1980), often of one, is skipped."""
    current, kept, kept_for, horizon = start, start, 0, 1
    taken = 0
    while taken < steps:
        current = step(current)
        taken += 1
        kept_for += 1
        if np.array_equal(current, kept):
            steps = taken + (steps - taken) % kept_for
        elif kept_for == horizon:
            kept, kept_for, horizon = current, 0, 2 * horizon
        if taken > MAX_STEPS:
            raise UnsupportedError(f"more than {MAX_STEPS:,} steps without a period are too many for A and E")
    return current
