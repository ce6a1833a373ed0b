"""Expected rewards that hang on a path formula of LTL."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import problem_at
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.ltl.equations import ProductEquations
from tracebridge.closedform.ltl.normal_form import TRUE
from tracebridge.closedform.ltl.probability import decided_path, probabilities
from tracebridge.closedform.ltl.progression import MAX_TRANSITIONS, Progression, explore
from tracebridge.closedform.ltl.question import Question
from tracebridge.closedform.ltl.safety import is_co_safe
from tracebridge.errors import PropertyError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.ltl.normal_form import Form, Formulas
    from tracebridge.closedform.ltl.question import DecidedProduct
    from tracebridge.closedform.ltl.translation import Holds
    from tracebridge.pctl.ast import Formula, PathFormula

    Mask = NDArray[np.bool_]
    Nodes = NDArray[np.bool_]  # shape (formulas, states)


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
    collecting = until_satisfied(arithmetic.chain.transitions, path, holds)
    gain = [per_step] * len(collecting.open)
    return _constant_where(collecting.endless, math.inf, _collected(arithmetic, collecting, gain))


def conditional_reward(
    arithmetic: Arithmetic, target: Formula, condition: PathFormula, per_step: EnclosureVector, holds: Holds
) -> EnclosureVector:
    """The expected reward before a target among the runs that satisfy a condition: Storm's ``R [ F target || path ]``.

    It is undefined where the condition has the probability zero, and infinite where runs that satisfy it may miss the
    target. Arguments, shapes and errors as of `satisfied_prefix_reward`; the condition is any path formula.
    """
    collecting = until_target(arithmetic.chain.transitions, holds(target), condition, holds)
    of_condition = probabilities(arithmetic, collecting.decided)
    # what is collected by the runs that satisfy the condition, others counting zero
    collected = _collected(arithmetic, collecting, [per_step * probability for probability in of_condition])
    average = _constant_where(collecting.endless, math.inf, _quotient(collected, of_condition[0]))
    return _constant_where(~collecting.decided.possible[0], math.nan, average)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collecting:
    """Where a reward that hangs on a path formula is collected: what the graph decides.

    Attributes:
        decided: the product with the formula. open: the nodes that collect, shape (F, n); the others have nothing left
            to collect, or are endless. endless: the states with an infinite reward, shape (n,).
    """

    decided: DecidedProduct
    open: Nodes
    endless: Mask


def until_satisfied(matrix: csr_array, path: PathFormula, holds: Holds) -> Collecting:
    """A reward that is collected until a co-safe formula is satisfied: see `satisfied_prefix_reward`."""
    question = Question(matrix, holds, path)
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
    return Collecting(decided=decided, open=decided.reached & decided.certain & ~satisfied, endless=~decided.certain[0])


def until_target(matrix: csr_array, target: Mask, condition: PathFormula, holds: Holds) -> Collecting:
    """A reward that is collected before a target, in runs that satisfy a condition: see `conditional_reward`."""
    decided = decided_path(matrix, condition, holds)
    product, possible = decided.product, decided.possible
    at_target = np.broadcast_to(target, possible.shape)
    missing = possible & ~product.reaching(at_target)
    endless = product.reaching(missing, through=~at_target)
    return Collecting(
        decided=decided, open=decided.reached & possible & ~at_target & ~endless, endless=endless[0] & possible[0]
    )


def _collected(arithmetic: Arithmetic, collecting: Collecting, gain: Sequence[EnclosureVector]) -> EnclosureVector:
    """The reward that is collected from every state on, shape (n,); that of formula i is ``gain[i]`` a step."""
    zero = arithmetic.vector(np.zeros(collecting.open.shape[1], dtype=np.bool_))
    equations = ProductEquations(
        arithmetic=arithmetic,
        product=collecting.decided.product,
        open=collecting.open,
        given=[zero] * len(collecting.open),
        gain=gain,
    )
    return equations.solve()[0]


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
