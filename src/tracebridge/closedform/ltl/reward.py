"""Expected rewards that hang on a path formula of LTL."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import problem_at
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.ltl.normal_form import TRUE
from tracebridge.closedform.ltl.product import ProductEquations
from tracebridge.closedform.ltl.progression import MAX_TRANSITIONS, Progression, explore
from tracebridge.closedform.ltl.question import Question
from tracebridge.closedform.ltl.safety import is_co_safe
from tracebridge.errors import PropertyError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.ltl.normal_form import Form, Formulas
    from tracebridge.closedform.ltl.translation import Holds
    from tracebridge.pctl.ast import Formula, PathFormula

    Mask = NDArray[np.bool_]


def satisfied_prefix_reward(
    arithmetic: Arithmetic, path: PathFormula, per_step: EnclosureVector, holds: Holds
) -> EnclosureVector:
    """The expected reward until a co-safe formula is satisfied, from every state, shape (n,); PRISM's ``R [ path ]``.

    A run has satisfied the formula at the first state after which it cannot fail any more, whatever operands are true
    in later states; the reward of that state does not count. As in PRISM, operands that hold everywhere or nowhere are
    constants, and equal or opposite ones depend on each other; else any combination of them is thought possible. The
    reward is infinite where the probability of the formula is below one.

    Args:
        arithmetic, path, holds: as of `ltl_probability`.
        per_step: what is collected when a state is left, shape (n,), non-negative.

    Raises:
        PropertyError: if, with negations moved inside, an operator G, W or R without a step bound is left: then no
            finite part of a run need satisfy the formula.
        PropertyError, UnsupportedError: as `ltl_probability`.
    """
    question = Question(arithmetic, holds, path)
    form = question.forms[0]
    if not is_co_safe(question.formulas, form):
        raise PropertyError(
            problem_at(
                "no finite part of a run need satisfy this path formula, so there is no reward until then",
                "use X, U, F and step bounds; G, W and R only under a negation",
                path.span,
            )
        )
    decided = question.decide(form)
    product = decided.product
    unavoidable = _valid(question.formulas, product.forms, question.letters.truth.shape[1])
    satisfied = unavoidable[product.following] & (product.following >= 0)
    zero = arithmetic.vector(np.zeros(len(per_step), dtype=np.bool_))
    equations = ProductEquations(
        arithmetic=arithmetic,
        product=product,
        open=decided.reached & decided.certain & ~satisfied,
        given=[zero] * len(product.forms),
        gain=[per_step] * len(product.forms),
    )
    return _constant_where(~decided.certain[0], math.inf, equations.solve()[0])


def conditional_reward(
    arithmetic: Arithmetic, target: Formula, condition: PathFormula, per_step: EnclosureVector, holds: Holds
) -> EnclosureVector:
    """The expected reward before a target among the runs that satisfy a condition: Storm's ``R [ F target || path ]``.

    It is undefined where the condition has the probability zero, and infinite where runs that satisfy it may miss the
    target. Arguments, shapes and errors as of `satisfied_prefix_reward`; the condition is any path formula.
    """
    question = Question(arithmetic, holds, condition)
    decided = question.decide(question.forms[0])
    product, possible = decided.product, decided.possible
    at_target = np.broadcast_to(holds(target), possible.shape)
    missing = possible & ~product.reaching(at_target)
    endless = product.reaching(missing, through=~at_target)
    probabilities = decided.probabilities()
    zero = arithmetic.vector(np.zeros(len(per_step), dtype=np.bool_))
    # what is collected by the runs that satisfy the condition, others counting zero
    equations = ProductEquations(
        arithmetic=arithmetic,
        product=product,
        open=decided.reached & possible & ~at_target & ~endless,
        given=[zero] * len(product.forms),
        gain=[per_step * probability for probability in probabilities],
    )
    average = _quotient(equations.solve()[0], probabilities[0])
    return _constant_where(~possible[0], math.nan, _constant_where(endless[0], math.inf, average))


def _valid(formulas: Formulas, forms: Sequence[Form], n_operands: int) -> Mask:
    """Which co-safe formulas hold whatever the operands will be, shape (formulas,): every word leads them to true."""
    if 2**n_operands > MAX_TRANSITIONS:
        raise UnsupportedError(
            f"a reward until a formula with {n_operands} different operands is satisfied is too much"
        )
    valuations = np.array(list(itertools.product([False, True], repeat=n_operands)), dtype=np.bool_)
    everything = tuple(range(len(valuations)))
    automaton = explore(
        Progression(formulas, valuations.reshape(len(valuations), n_operands)), forms, [everything] * len(valuations)
    )
    valid = np.array([form == TRUE for form in automaton.forms])
    while not np.array_equal(grown := valid | valid[automaton.table].all(axis=1), valid):
        valid = grown
    return valid[: len(forms)]


def _quotient(top: EnclosureVector, bottom: EnclosureVector) -> EnclosureVector:
    """``top / bottom`` of non-negative numbers, where the bottom is positive although its lower bound may be zero."""
    quotient = top / bottom
    if quotient.exact:
        return quotient
    unknown = quotient.undefined & (bottom.upper > 0)
    ends = EnclosureVector.from_floats(top.lower) / EnclosureVector.from_floats(bottom.upper)
    lower = np.where(unknown, ends.lower, quotient.lower)
    upper = np.where(unknown, np.inf, quotient.upper)
    return EnclosureVector.from_bounds(np.where(unknown, lower, quotient.value), lower, upper)


def _constant_where(mask: Mask, number: float, otherwise: EnclosureVector) -> EnclosureVector:
    constant = EnclosureVector.constant(len(otherwise), number, exact=otherwise.exact)
    return EnclosureVector.where(mask, constant, otherwise)
