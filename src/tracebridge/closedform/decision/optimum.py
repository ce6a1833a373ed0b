"""Which optimum over the schedulers of a decision process an operator asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.closedform.bounds import problem_at
from tracebridge.errors import PropertyError
from tracebridge.pctl.operand_types import letter_of

if TYPE_CHECKING:
    from tracebridge.pctl.ast import Optimum, Quantitative


def optimum_of(operator: Quantitative) -> Optimum:
    """``min`` or ``max``: as it is written, or as a threshold on *all* schedulers means it.

    ``P>=p`` says that every scheduler reaches p, so that it is about the least probability, and ``P<=p`` about the
    greatest; ``Pmax>=p`` says that some scheduler does (PRISM's manual, "The P operator").

    Raises:
        PropertyError: a query without ``min`` or ``max``.
    """
    if operator.optimum is not None:
        return operator.optimum
    if operator.threshold is None:
        letter = letter_of(operator)
        raise PropertyError(
            problem_at(
                f"{letter}=? has no single value in a model with choices",
                f"ask for {letter}min=? or {letter}max=?, the optimum over all schedulers",
                operator.span,
            )
        )
    return "min" if operator.threshold.comparison in {">", ">="} else "max"
