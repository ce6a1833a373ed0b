"""The probability of a path formula of LTL, and its probability among the runs that satisfy another one.

The formula is progressed along the runs: the product of the chain with the formulas that are left to satisfy is a
Markov chain again. Its graph decides where the probability is zero or one; the rest is linear equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.ltl.equations import ProductEquations
from tracebridge.closedform.ltl.question import DecidedProduct, Question
from tracebridge.pctl.ast import PathNot

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
    return probabilities(arithmetic, decided_path(arithmetic.chain.transitions, path, holds))[0]


def conditional_probability(
    arithmetic: Arithmetic, path: PathFormula, condition: PathFormula, holds: Holds
) -> EnclosureVector:
    """The probability of a path formula among the runs that satisfy another one, from every state, shape (n,).

    It is undefined where no run, or almost none, satisfies the condition. The probabilities x with which the condition
    holds and the formula too, and y with which the condition holds and the formula does not, are computed apart; their
    quotient ``x / (x + y)`` rises with x and falls with y, so its bounds are sharp. Else as `ltl_probability`.
    """
    cases = decided_cases(arithmetic.chain.transitions, path, condition, holds)
    x, y = (probabilities(arithmetic, case)[0] for case in cases)
    return _share(x, y)


def decided_path(matrix: csr_array, path: PathFormula, holds: Holds) -> DecidedProduct:
    """What the graph decides of a path formula."""
    question = Question(matrix, holds, path)
    return question.decide(question.forms[0])


def decided_cases(
    matrix: csr_array, path: PathFormula, condition: PathFormula, holds: Holds
) -> tuple[DecidedProduct, DecidedProduct]:
    """What the graph decides of a condition with a path formula, and of the condition without it."""
    question = Question(matrix, holds, condition, path, PathNot(path))
    given, with_path, without = question.forms
    conjunction = question.formulas.conjunction
    return question.decide(conjunction([given, with_path])), question.decide(conjunction([given, without]))


def probabilities(arithmetic: Arithmetic, decided: DecidedProduct) -> list[EnclosureVector]:
    """The probability of the formula of each reached node, one vector a formula."""
    equations = ProductEquations(
        arithmetic=arithmetic,
        product=decided.product,
        open=decided.between,
        given=[arithmetic.vector(row) for row in decided.certain],
    )
    return equations.solve()


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
