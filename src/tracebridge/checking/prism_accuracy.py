"""How accurate PRISM's doubles are assumed to be.

PRISM's explicit engine is told to iterate by Gauss-Seidel until no value changes by more than `EPSILON` of itself in a
sweep. With s the largest expected number of steps (`rounding_amplification`), the error is then at most ``EPSILON (1 +
s)`` of the largest value, because the matrix that turns a change into the error that is left has rows whose sums are
at most that; the same holds for the power method, to which some versions switch (IterationMethodGS.java). Assumed is

* ``(4 w eps + r) (1 + k)`` of each value for k steps, w the largest number of successors, eps = 2^-52, r how far a row
  of doubles is from one; that is a bound, because nothing negative is added, and a minimum or maximum over choices is
  as accurate as what it is taken of;
* ``(10 EPSILON + 8 w eps + r) (1 + s)`` of the largest value for equations;
* `AUTOMATON_SIZE` times that for LTL, whose equations are over pairs of a state and one of an automaton;
* as many times that as there are recurrent classes for long-run averages, for which each of them is reached by
  equations. Within a class PRISM iterates to a criterion from which no error follows, and not at all where the class is
  periodic: there is an answer only where every class is one state;
* all of that of one, not of the value, where PRISM computes one minus the probability (G, W, R).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import recurrent_classes
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.modelcheck import rounding_amplification
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.checking.engine import Holds
    from tracebridge.checking.prism_formulation import PrismQuery
    from tracebridge.pctl.ast import Operator

#: What PRISM is told to iterate to, relative.
EPSILON = 1e-13

#: States that the automaton of an LTL formula is assumed to have.
AUTOMATON_SIZE = 16

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedError:
    """An error relative to each value, and one relative to the largest.

    Raises:
        UnsupportedError: it leaves no digit.
    """

    of_each: float
    of_largest: float = 0.0

    def __post_init__(self) -> None:
        error = self.of_each + self.of_largest
        if not error < 1:
            raise UnsupportedError(
                f"PRISM's doubles may have no correct digit here: a relative error of {error:.1g} must be assumed"
            )


def assumed_error(chain: MarkovChain, query: PrismQuery, operator: Operator, holds: Holds) -> AssumedError:
    """The error to assume of the answer to a query that asks about ``operator``.

    Raises:
        UnsupportedError: no accuracy can be assumed.
    """
    if query.kind == "steps":
        return error_of_steps(chain.transitions, query.steps)
    times = 1
    if query.kind == "automaton":
        times = AUTOMATON_SIZE
    if query.kind == "long run":
        classes = recurrent_classes(chain.transitions)
        if any(len(states) > 1 for states in classes):
            raise UnsupportedError(
                "PRISM iterates for long-run averages, and not to any accuracy that can be relied on"
            )
        times = len(classes)
    widest, rows_off = _rows(chain.transitions)
    steps = rounding_amplification(chain, operator, holds)
    error = times * (10 * EPSILON + 8 * widest * _EPS + rows_off) * (1 + steps)
    return AssumedError(of_each=(4 * widest * _EPS + rows_off) * query.steps, of_largest=error)


def error_of_steps(transitions: csr_array, steps: int) -> AssumedError:
    """The error of so many steps of a chain, or of the choices of a decision process; rows of doubles, shape (m, n).

    Raises:
        UnsupportedError: they are too many.
    """
    widest, rows_off = _rows(transitions)
    return AssumedError(of_each=(4 * widest * _EPS + rows_off) * (1 + steps))


def _rows(transitions: csr_array) -> tuple[int, float]:
    """The most entries of a row, and how far the sum of one is from one."""
    sums = np.asarray(transitions.sum(axis=1)).ravel()
    return int(np.diff(transitions.indptr).max()), float(np.abs(sums - 1).max())


def enclosed(
    transitions: csr_array, query: PrismQuery, values: NDArray[np.float64], error: AssumedError
) -> EnclosureVector:
    """The values with the bounds that the error leaves.

    Infinity is told by the graph, and so is zero where PRISM does not compute one minus something.
    """
    finite = np.isfinite(values)
    largest = 1.0 if query.complemented else float(np.max(values, where=finite, initial=0.0))
    slack = error.of_largest / (1 - error.of_largest) * largest + (error.of_each if query.complemented else 0.0)
    lower = np.maximum(values * (1 - error.of_each) - slack, 0.0)
    upper = values / (1 - error.of_each)
    upper = np.where((values > 0) | query.complemented, upper + slack, upper)
    if query.steps * -float(np.log10(transitions.data.min())) > 300:  # so small a product may be zero
        upper = np.maximum(upper, np.finfo(np.float64).tiny)
    if query.is_probability:
        upper = np.minimum(upper, 1.0)
        values = np.minimum(values, 1.0)
    return EnclosureVector.from_bounds(values, np.where(finite, lower, values), np.where(finite, upper, values))
