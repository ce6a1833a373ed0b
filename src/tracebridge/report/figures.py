"""The headline numbers of a fitted chain, from the closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.checking.result import number_to_json
from tracebridge.closedform import (
    absorption_time_variance,
    first_passage_quantile,
    horizon,
    long_run_outcomes,
    long_run_reliability,
    mean_time_to_absorption,
    reliability_curve,
    steps_per_failure,
)
from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from tracebridge.chain.markov import MarkovChain

#: Budgets at which R(d) is reported, as far as they matter.
BUDGETS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)

#: The horizon reported is the smallest d with R_inf - R(d) at most this.
HORIZON_GAP = Fraction(1, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigures:
    """Numbers that describe a chain from its start; see the functions of the same names.

    Attributes:
        outcomes: where runs end in the long run, by absorbing state.
        reliability: R_inf. mean_time: MTTA in steps; standard_deviation: of the number of steps.
        curve: R(d) at a few budgets, up to the horizon.
        horizon: smallest d with R_inf - R(d) <= 0.01. median_success: smallest d with R(d) >= R_inf / 2.
        steps_per_failure: MTTA / (1 - R_inf).
    """

    outcomes: dict[str, float]
    reliability: float
    mean_time: float
    standard_deviation: float
    curve: dict[int, float]
    horizon: float
    median_success: float
    steps_per_failure: float

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "outcomes": {name: number_to_json(value) for name, value in self.outcomes.items()},
            "R_inf": number_to_json(self.reliability),
            "MTTA": number_to_json(self.mean_time),
            "MTTA_standard_deviation": number_to_json(self.standard_deviation),
            "R": {str(d): number_to_json(value) for d, value in self.curve.items()},
            "horizon_0.01": number_to_json(self.horizon),
            "median_steps_to_success": number_to_json(self.median_success),
            "steps_per_failure": number_to_json(self.steps_per_failure),
        }


def key_figures(chain: MarkovChain) -> KeyFigures | str:
    """The figures, or the reason why there are none: some runs never end, or no state means success."""
    try:
        form = AbsorbingChain(chain=chain)
        reliability = float(long_run_reliability(form))
    except ModelError as error:
        return str(error)
    reach = horizon(form, HORIZON_GAP)
    last = int(min(max(reach, 1), BUDGETS[-1]))
    curve = reliability_curve(form, last)
    shown = [d for d in BUDGETS if d <= last]
    return KeyFigures(
        outcomes={name: float(value) for name, value in long_run_outcomes(form).items()},
        reliability=reliability,
        mean_time=float(mean_time_to_absorption(form).overall),
        standard_deviation=float(absorption_time_variance(form).overall) ** 0.5,
        curve={d: float(curve[d]) for d in shown},
        horizon=float(reach),
        median_success=float(first_passage_quantile(form, Fraction(1, 2), given_success=True)),
        steps_per_failure=float(steps_per_failure(form)),
    )
