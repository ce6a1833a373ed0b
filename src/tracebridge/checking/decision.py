"""Engines over a decision process: who answers which operator, and what a property must say to be asked of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.checking.decision_prism import DecisionPrismSession
from tracebridge.checking.decision_storm import DecisionStormSession
from tracebridge.checking.engine import CLOSED_FORM, STORM, EngineSession
from tracebridge.closedform.decision import (
    ExactOptimiser,
    FloatOptimiser,
    optimal_quantile,
    optimal_values,
    optimum_of,
    optimum_under_condition,
)
from tracebridge.errors import Location, Problem, PropertyError
from tracebridge.pctl import ast
from tracebridge.pctl.source import locate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.checking.engine import Holds
    from tracebridge.checking.prism_process import PrismExecutable
    from tracebridge.checking.result import Note
    from tracebridge.checking.storm_process import StormWorker
    from tracebridge.closedform.enclosure import Enclosure, EnclosureVector


class DecisionClosedFormSession:
    """An `EngineSession`: our own engine, which optimises over all schedulers (`tracebridge.closedform.decision`)."""

    name = CLOSED_FORM

    def __init__(self, process: DecisionProcess, *, exact: bool = False) -> None:
        self.process = process
        self.exact = exact
        self.notes: list[Note] = []
        self._optimiser: ExactOptimiser | FloatOptimiser | None = None

    def evaluate(self, operator: ast.Operator, holds: Holds) -> EnclosureVector:
        """The optimum of the operator in every state; see `EngineSession.evaluate`."""
        return optimal_values(self._ready, operator, holds).values

    def evaluate_quantile(
        self, quantile: ast.Quantile, holds: Holds, weights: Sequence[Fraction]
    ) -> tuple[EnclosureVector, Enclosure]:
        """The quantile of the optimum, see `optimal_quantile`."""
        return optimal_quantile(self._ready, quantile, holds, weights)

    def evaluate_start_under_condition(self, operator: ast.Probability, holds: Holds) -> Enclosure:
        """The optimum over the runs of all start states; see `OptimisingSession.evaluate_start_under_condition`."""
        start = {state: weight for state, weight in enumerate(self.process.exact_initial()) if weight}
        return optimum_under_condition(self._ready, operator, holds, [start])[0]

    @property
    def _ready(self) -> ExactOptimiser | FloatOptimiser:
        if self._optimiser is None:  # a process too large for rationals is refused where it is asked about
            self._optimiser = ExactOptimiser(self.process) if self.exact else FloatOptimiser(self.process)
        return self._optimiser


def decision_session(
    engine: str,
    process: DecisionProcess,
    *,
    exact: bool,
    worker: StormWorker | None = None,
    prism: PrismExecutable | None = None,
    time_limit: float,
) -> EngineSession:
    """The engine of this name with a process loaded; properties are those of its frame (`DecisionProcess.frame`).

    Args:
        engine: of `tracebridge.checking.engine.ENGINE_NAMES` the name shown. worker: for Storm. prism: for PRISM, None
            if there is none. time_limit: seconds for one operator in Storm, or one run of PRISM.
    """
    if engine == CLOSED_FORM:
        return DecisionClosedFormSession(process, exact=exact)
    if engine == STORM and worker is not None:
        return DecisionStormSession(process, exact=exact, worker=worker, time_limit=time_limit)
    return DecisionPrismSession(process, exact=exact, executable=prism, time_limit=time_limit)


def require_optima(file: ast.PropertyFile) -> None:
    """Refuse queries that do not say which optimum over the schedulers is meant.

    Raises:
        PropertyError: with every such place.
    """
    problems: list[Problem] = []
    for property_ in file.properties:
        for node in ast.walk(property_.formula):
            if isinstance(node, ast.Probability | ast.Reward | ast.SteadyState):
                try:
                    optimum_of(node)
                except PropertyError as error:
                    place = Location(path=file.path) if node.span is None else locate(node.span, file.path)
                    problems += [
                        Problem(location=place, message=each.message, hint=each.hint) for each in error.problems
                    ]
    if problems:
        raise PropertyError(problems)
