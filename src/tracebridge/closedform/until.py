"""The path operators of PCTL as ``U`` and its complement, and their probabilities, one value a state.

Probabilities are never computed as one minus another: the complement of ``U``, to which ``G``, ``W`` and ``R`` come
down, has a non-negative recursion of its own, so a small probability keeps its relative accuracy. What the graph alone
decides (probability zero, probability one) is decided there, first, and is exact in any arithmetic. Baier and Katoen,
Principles of Model Checking, chapter 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import reaching, recurrent_classes
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.pctl.ast import Eventually, Globally, Release, Until, WeakUntil, state_operand

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.bounds import StepWindow
    from tracebridge.pctl.ast import Formula

    Mask = NDArray[np.bool_]
    Holds = Callable[[Formula], Mask]

BoundedPath = Eventually | Globally | Until | WeakUntil | Release
"""The path operators that take bounds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UntilForm:
    """``left U right``, or its complement, with whatever bound the operator has.

    Attributes:
        left, right: states, shape (n,). complemented: the path operator says that ``left U right`` does not hold.
    """

    left: Mask
    right: Mask
    complemented: bool


def until_form(path: BoundedPath, holds: Holds, n: int) -> UntilForm:
    """A path operator over formulas in terms of U; bounds carry over as they are."""
    everywhere = np.ones(n, dtype=np.bool_)
    match path:
        case Eventually():
            return UntilForm(left=everywhere, right=holds(state_operand(path.operand)), complemented=False)
        case Globally():
            return UntilForm(left=everywhere, right=~holds(state_operand(path.operand)), complemented=True)
    left, right = holds(state_operand(path.left)), holds(state_operand(path.right))
    match path:
        case Until():
            return UntilForm(left=left, right=right, complemented=False)
        case WeakUntil():  # a W b is not ((a & !b) U (!a & !b))
            return UntilForm(left=left & ~right, right=~left & ~right, complemented=True)
        case Release():  # a R b is not (!a U !b)
            return UntilForm(left=~left, right=~right, complemented=True)


def until_probability(arithmetic: Arithmetic, form: UntilForm, window: StepWindow) -> EnclosureVector:
    """The probability that ``right`` holds at a step of the window and ``left`` at all steps before, or that not."""
    left, right = form.left, form.right
    if window.empty:
        return arithmetic.vector(np.full(len(left), form.complemented))
    open_ = left & ~right
    if window.length is None:
        opened = unbounded_until(arithmetic, form)
    else:
        opened = arithmetic.iterate(
            arithmetic.vector(~right if form.complemented else right),
            window.length,
            open_,
            limit=lambda: unbounded_until(arithmetic, form),
        )
    if window.first == 0:
        return opened
    # A path that leaves ``left`` before the window opens is decided.
    everywhere = np.ones_like(left)
    decided = arithmetic.vector(np.full(len(left), form.complemented))
    one_earlier = EnclosureVector.where(left, arithmetic.iterate(opened, 1, everywhere), decided)
    return arithmetic.iterate(one_earlier, window.first - 1, left)


def decided_by_graph(matrix: csr_array, form: UntilForm) -> tuple[Mask, Mask]:
    """Where the probability without a bound is above zero, and where it is one; shape (n,) each."""
    open_, goal = form.left & ~form.right, form.right
    if form.complemented:  # leave ``open_`` to a state outside ``right``, or end in a recurrent class inside it
        goal = ~open_ & ~form.right
        for states in recurrent_classes(matrix):
            if open_[states].all():
                goal[states] = True
    possible = reaching(matrix, goal, through=open_)
    return possible, ~reaching(matrix, ~possible, through=open_ & ~goal)


def unbounded_until(arithmetic: Arithmetic, form: UntilForm) -> EnclosureVector:
    """The probability of ``left U right``, or of its complement, without a bound."""
    possible, certain = decided_by_graph(arithmetic.chain.transitions, form)
    return arithmetic.solve(possible & ~certain, arithmetic.vector(certain))
