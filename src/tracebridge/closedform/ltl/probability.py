"""The probability of a path formula of LTL, and its probability among the runs that satisfy another one.

The formula is progressed along the runs: the product of the chain with the formulas that are left to satisfy is a
Markov chain again. Its graph decides where the probability is zero or one; the rest is linear equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.ltl.question import Question
from tracebridge.pctl.ast import PathNot

if TYPE_CHECKING:
    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.ltl.translation import Holds
    from tracebridge.pctl.ast import PathFormula


def ltl_probability(arithmetic: Arithmetic, path: PathFormula, holds: Holds) -> EnclosureVector:
    """The probability of a path formula from every state, shape (n,).

    Args:
        arithmetic: doubles or rationals, with the chain.
        path: any path formula without reward bounds; step bounds, already numbers, may stand at every operator.
        holds: the states where an operand is true, shape (n,).

    Raises:
        PropertyError: for a step bound that is no integer or is negative.
        UnsupportedError: for reward bounds and automata from files, for a formula that is too large, and if exact
            arithmetic would be too much work.
    """
    question = Question(arithmetic, holds, path)
    return question.decide(question.forms[0]).probabilities()[0]


def conditional_probability(
    arithmetic: Arithmetic, path: PathFormula, condition: PathFormula, holds: Holds
) -> EnclosureVector:
    """The probability of a path formula among the runs that satisfy another one, from every state, shape (n,).

    It is undefined where no run, or almost none, satisfies the condition. The probabilities x with which the condition
    holds and the formula too, and y with which the condition holds and the formula does not, are computed apart; their
    quotient ``x / (x + y)`` rises with x and falls with y, so its bounds are sharp. Else as `ltl_probability`.
    """
    question = Question(arithmetic, holds, condition, path, PathNot(path))
    given, *cases = question.forms
    x, y = (question.decide(question.formulas.conjunction([given, case])).probabilities()[0] for case in cases)
    return _share(x, y)


def _share(x: EnclosureVector, y: EnclosureVector) -> EnclosureVector:
    """``x / (x + y)`` of non-negative numbers; undefined where both are zero."""
    if x.exact:
        return x / (x + y)
    impossible = (x.upper == 0) & (y.upper == 0)
    bounds = []
    for top, rest in ((x.lower, y.upper), (x.upper, y.lower), (x.value, y.value)):
        part, other = EnclosureVector.from_floats(top), EnclosureVector.from_floats(rest)
        bounds.append(part / (part + other))
    # Numbers that are positive may be enclosed by zero and the smallest double.
    lower = np.where(bounds[0].undefined, 0.0, bounds[0].lower)
    upper = np.where(bounds[1].undefined, 1.0, np.minimum(bounds[1].upper, 1.0))
    value = np.where(bounds[2].undefined, lower, bounds[2].value)
    return EnclosureVector.from_bounds(np.where(impossible, np.nan, value), lower, upper)
