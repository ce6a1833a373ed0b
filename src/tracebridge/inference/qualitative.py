"""What the qualitative verdicts of a property rest on: transitions that the chain lacks because no run made them.

Whether something is possible, sure or inevitable is a question about the graph of a chain. On observed or declared
support the verdict holds relative to that support, and an unseen transition may overturn it. Looked at are the
operators ``P`` with a threshold of 0 or 1, ``A`` and ``E`` of an unbounded ``F``, ``G`` or ``U`` that are not within
another operator; their operands hold where they hold in the fitted chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.unseen import VerdictSupport, verdict_support
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.evaluation import Evaluation
from tracebridge.checking.operands import evaluated_parts
from tracebridge.checking.truths import Truths
from tracebridge.errors import EngineError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.decisive_edges import ReachabilityKind
    from tracebridge.chain.fit import ChainFit

    Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class QualitativeBasis:
    """What one qualitative operator of a property rests on.

    Attributes:
        operator: it, as a property text.
        support: the question about reaching that it asks or denies, its answer, and the transitions that would change
            it; None where they were not looked for.
        reason: why not. nested: an operand is a verdict itself, taken as it is in the fitted chain.
    """

    operator: str
    support: VerdictSupport | None
    reason: str | None = None
    nested: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "operator": self.operator,
            "support": None if self.support is None else self.support.to_dict(),
            "reason": self.reason,
            "nested": self.nested,
        }


def is_relative_to_support(fit: ChainFit) -> bool:
    """Whether the chain lacks transitions that were not seen or declared, so that qualitative verdicts rest on that."""
    return fit.support != "full" or fit.prior in {"none", 0}


def qualitative_basis(fit: ChainFit, formula: ast.Formula) -> tuple[QualitativeBasis, ...]:
    """What each qualitative operator of a resolved formula rests on, in the order of the text; none for other formulas.

    Args:
        fit: the fitted chain. formula: without constants, references and definitions of labels.
    """
    found = []
    for node, nested in evaluated_parts(formula):
        if nested or not isinstance(node, ast.Probability | ast.Quantified) or not _is_qualitative(node):
            continue
        text = format_formula(node)
        try:
            asked = _question(fit, node)
            if asked is None:
                found.append(QualitativeBasis(operator=text, support=None, reason="it is no plain F, G or U"))
                continue
            target, kind, through, inner = asked
            support = verdict_support(fit, target, kind, through=through)
            found.append(QualitativeBasis(operator=text, support=support, nested=inner))
        except (EngineError, UnsupportedError) as error:
            found.append(QualitativeBasis(operator=text, support=None, reason=str(error)))
    return tuple(found)


def _is_qualitative(node: ast.Probability | ast.Quantified) -> bool:
    if isinstance(node, ast.Quantified):
        return True
    if node.threshold is None or node.condition is not None:
        return False
    value = node.threshold.value
    return isinstance(value, ast.Number) and (
        (value.value == 0 and node.threshold.comparison in {">", "<="})
        or (value.value == 1 and node.threshold.comparison in {">=", "<"})
    )


def _question(
    fit: ChainFit, node: ast.Probability | ast.Quantified
) -> tuple[Mask, ReachabilityKind, Mask | None, bool] | None:
    """Target, kind, through, and whether an operand is a verdict itself; None for another path formula."""
    certain = node.quantifier == "A" if isinstance(node, ast.Quantified) else _threshold_is_one(node)
    sure: ReachabilityKind = "inevitable" if isinstance(node, ast.Quantified) else "almost-sure"
    match node.path:
        case ast.Eventually(operand, None, ()) if isinstance(operand, ast.Formula):
            return _states(fit, operand), sure if certain else "possible", None, _has_operator(operand)
        case ast.Globally(operand, None, ()) if isinstance(operand, ast.Formula):
            # surely always: the contrary is impossible; possibly always: the contrary is not sure
            return ~_states(fit, operand), "possible" if certain else sure, None, _has_operator(operand)
        case ast.Until(left, right, None, ()) if isinstance(left, ast.Formula) and isinstance(right, ast.Formula):
            inner = _has_operator(left) or _has_operator(right)
            return _states(fit, right), sure if certain else "possible", _states(fit, left), inner
    return None


def _threshold_is_one(node: ast.Probability) -> bool:
    return (
        node.threshold is not None and isinstance(node.threshold.value, ast.Number) and node.threshold.value.value == 1
    )


def _has_operator(formula: ast.Formula) -> bool:
    return any(isinstance(node, ast.Operator) for node in ast.walk(formula))


def _states(fit: ChainFit, operand: ast.Formula) -> Mask:
    """Where a formula holds in the fitted chain, shape (n,). Raises UnsupportedError where rounding leaves it open."""
    evaluation = Evaluation(PropertyChecker(fit.chain, ClosedFormSession(fit.chain)))
    truths = evaluation.run(operand)
    if not isinstance(truths, Truths) or not truths.certain:
        raise UnsupportedError(f"doubles do not decide in which states {format_formula(operand)} holds")
    return np.asarray(truths.states.surely)
