"""Probabilities under a condition over all schedulers of a decision process: runs that miss the condition start again.

In the process with these resets the greatest probability of ending well is the greatest one of the path under the
condition (Baier, Klein, Klüppelholz and Märcker, Computing Conditional Probabilities in Markovian Models Efficiently,
TACAS 2014, section 4, for F under F). As soon as the path or the condition is decided the rest has no condition:

* the path holds: the run ends well with the greatest probability of the condition, and is reset otherwise;
* the path cannot hold any more: it ends badly with the least probability of the condition, and is reset otherwise;
* the condition holds: it ends well with the greatest probability of the path, and badly otherwise;
* the condition cannot hold any more: it is reset.

Whoever can leave both open for ever, or miss the condition for sure, may do so at once. The least probability is one
minus the greatest of the complement. Resets lead to the start, so that each state has a process of its own, and so has
the initial distribution: the optimum over the runs of all start states is no mean of the optima of each, as those that
meet the condition are other shares of them under other schedulers.
"""

from __future__ import annotations

from fractions import Fraction
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.rational import RationalMatrix
from tracebridge.closedform.decision.exact_optimiser import ExactOptimiser
from tracebridge.closedform.decision.optimum import optimum_of
from tracebridge.closedform.decision.path_probability import PathProbability
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.until import BoundedPath, until_form
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import Eventually, Label, Probability, Until, is_pctl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.decision.optimiser import Optimiser
    from tracebridge.closedform.until import Holds, UntilForm
    from tracebridge.pctl.ast import Formula, PathFormula

    Mask = NDArray[np.bool_]

#: More states are not asked about: each is a process of its own, solved in rationals.
MAX_STATES = 100

_LEFT, _RIGHT, _WELL = Label("left"), Label("right"), Label("well")


def optimum_under_condition(
    optimiser: Optimiser, operator: Probability, holds: Holds, starts: Sequence[Mapping[int, Fraction]] | None = None
) -> EnclosureVector:
    """The optimum of a path without bounds under another; undefined where no scheduler makes it possible.

    It is computed in rationals whatever the optimiser works in.

    Args:
        starts: where runs start, a number for each: states with their probabilities. By default every state by itself.

    Raises:
        PropertyError: the operator does not say which optimum is meant.
        UnsupportedError: other paths than F, G, U, W and R without bounds, or too many states.
    """
    process = optimiser.process
    if process.n_states > MAX_STATES:
        raise UnsupportedError(
            f"probabilities under a condition are optimised over at most {MAX_STATES} states, not {process.n_states}"
        )
    assert operator.condition is not None  # noqa: S101 - the caller looked
    path, condition = (_form(each, holds, process.n_states) for each in (operator.path, operator.condition))
    maximise = optimum_of(operator) == "max"
    resetting = _Resetting(ExactOptimiser(process), path, condition, wanted=maximise != path.complemented)
    each_state = [{state: Fraction(1)} for state in range(process.n_states)]
    values = [resetting.greatest(start) for start in (each_state if starts is None else starts)]
    found = EnclosureVector.from_fractions(values if maximise else [1 - value for value in values])
    return found if optimiser.exact else found.to_float()


def _form(path: PathFormula, holds: Holds, n: int) -> UntilForm:
    if not is_pctl(path) or not isinstance(path, BoundedPath) or path.bound is not None or path.reward_bounds:
        raise UnsupportedError("of a decision process only F, G, U, W and R without bounds are evaluated under || each")
    return until_form(path, holds, n)


class _Resetting:
    """The process with resets, but for where they lead."""

    def __init__(self, optimiser: ExactOptimiser, path: UntilForm, condition: UntilForm, *, wanted: bool) -> None:
        """``wanted``: whether ``left U right`` of the path is to be likely, or its complement."""
        self._optimiser = optimiser
        process, n = optimiser.process, optimiser.process.n_states
        self._condition = self._optimum(condition, maximise=True, complemented=condition.complemented)
        least_condition = self._optimum(condition, maximise=False, complemented=condition.complemented)
        greatest_path = self._optimum(path, maximise=True, complemented=not wanted)
        well, badly, again = n, n + 1, n + 2
        good, bad = path.right, ~path.left & ~path.right
        if not wanted:
            good, bad = bad, good
        met, missed = condition.right, ~condition.left & ~condition.right
        if condition.complemented:
            met, missed = missed, met
        open_ = ~(good | bad | met | missed)
        kept = optimiser.choices.avoidable(open_, ~open_)  # where both can be left open for ever
        self._rows: list[dict[int, Fraction]] = []
        self._sizes: list[int] = []
        matrix = process.exact_transitions()
        for i in range(n):
            rows: list[dict[int, Fraction]]
            if missed[i]:
                rows = [{again: Fraction(1)}]
            elif good[i]:
                rows = [_either(well, again, self._condition[i])]
            elif bad[i]:
                rows = [_either(badly, again, least_condition[i])]
            elif met[i]:
                rows = [_either(well, badly, greatest_path[i])]
            else:
                rows = [matrix.row(row) for row in range(*process.choice_starts[i : i + 2].tolist())]
                if not condition.complemented and not least_condition[i]:
                    rows.append({again: Fraction(1)})
                if condition.complemented and not wanted and kept[i]:
                    rows.append({well: Fraction(1)})
            self._rows += rows
            self._sizes.append(len(rows))
        self._rows += [{well: Fraction(1)}, {badly: Fraction(1)}]

    def greatest(self, start: Mapping[int, Fraction]) -> Fraction | float:
        """The greatest probability under the condition of runs that start so; NaN where that cannot be met."""
        if not any(self._condition[state] for state in start):
            return nan
        n = len(self._sizes) + 3
        again = n - 1
        process = DecisionProcess(
            states=tuple(map(str, range(n))),
            actions=tuple([("",) * size for size in (*self._sizes, 1, 1, 1)]),
            transitions=RationalMatrix.from_rows([*self._rows, dict(start)], n),
            initial=np.eye(1, n, again)[0],
        )
        asked = Probability(Eventually(_WELL), optimum="max")
        found = PathProbability(self._optimiser.over(process)).optimum(asked, lambda _: np.arange(n) == n - 3)
        value: Fraction = found.values.value[again]
        return value

    def _optimum(self, form: UntilForm, *, maximise: bool, complemented: bool) -> list[Fraction]:
        """The optimum of ``left U right``, or of its complement, in every state."""
        masks = {_LEFT.name: form.left, _RIGHT.name: form.right}

        def holds(operand: Formula) -> Mask:
            assert isinstance(operand, Label)  # noqa: S101 - one of its own
            return masks[operand.name]

        asked = Probability(Until(_LEFT, _RIGHT), optimum="max" if maximise != complemented else "min")
        values: list[Fraction] = PathProbability(self._optimiser).optimum(asked, holds).values.value.tolist()
        return [1 - value for value in values] if complemented else values


def _either(one: int, other: int, probability: Fraction) -> dict[int, Fraction]:
    return {one: probability, other: 1 - probability}
