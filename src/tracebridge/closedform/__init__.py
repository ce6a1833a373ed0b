"""Closed forms: what follows from a chain by linear algebra, exactly or with a bound on rounding.

What one asks for: `fundamental` has visits, absorption probabilities and times, `firstpassage` reliability within a
step budget, `step_counts` quantiles, budgets and horizons, `approach` bounds on them, `repeated` pass@k and pass^k,
and `modelcheck` the operators of the property language. What they stand on: `factorization` solves linear systems
without cancellation, `enclosed_solution` proves the error of a solution, `rational_solution` has none, `enclosure`
carries bounds through arithmetic and `arithmetic` runs vectors in doubles or rationals. No files and no other tool.
"""

from tracebridge.closedform.approach import (
    GeometricBound,
    horizon_bound,
    paper_horizon_heuristic,
    perron_bound,
    spectral_radius,
)
from tracebridge.closedform.arithmetic import Arithmetic
from tracebridge.closedform.enclosed_solution import solve_enclosed, solve_enclosed_transposed
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.factorization import factorize
from tracebridge.closedform.firstpassage import (
    absorption_time_cdf,
    absorption_time_pmf,
    first_passage_pmf,
    mean_time_to_success,
    reliability,
    reliability_curve,
    reliability_split,
    runs_per_failure,
    steps_per_failure,
)
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.closedform.fundamental import (
    StateValues,
    absorption_probabilities,
    absorption_time_variance,
    expected_visits,
    fundamental_matrix,
    hitting_probabilities,
    long_run_outcomes,
    long_run_reliability,
    long_run_unreliability,
    mean_time_to_absorption,
    visit_variances,
)
from tracebridge.closedform.linear_solver import Factorization
from tracebridge.closedform.modelcheck import evaluate_operator, evaluate_quantile, rounding_amplification
from tracebridge.closedform.rational_solution import solve_exact, solve_exact_transposed
from tracebridge.closedform.repeated import (
    TrialGap,
    correlated_pass_at_k,
    correlated_pass_hat_k,
    estimate_pass_at_k,
    estimate_pass_hat_k,
    pass_at_k,
    pass_hat_k,
    trial_gap,
)
from tracebridge.closedform.step_counts import (
    absorption_time_quantile,
    budget_for,
    first_passage_quantile,
    horizon,
)

__all__ = [
    "Arithmetic",
    "Enclosure",
    "EnclosureVector",
    "ExactArithmetic",
    "Factorization",
    "FloatArithmetic",
    "GeometricBound",
    "StateValues",
    "TrialGap",
    "absorption_probabilities",
    "absorption_time_cdf",
    "absorption_time_pmf",
    "absorption_time_quantile",
    "absorption_time_variance",
    "budget_for",
    "correlated_pass_at_k",
    "correlated_pass_hat_k",
    "estimate_pass_at_k",
    "estimate_pass_hat_k",
    "evaluate_operator",
    "evaluate_quantile",
    "expected_visits",
    "factorize",
    "first_passage_pmf",
    "first_passage_quantile",
    "fundamental_matrix",
    "hitting_probabilities",
    "horizon",
    "horizon_bound",
    "long_run_outcomes",
    "long_run_reliability",
    "long_run_unreliability",
    "mean_time_to_absorption",
    "mean_time_to_success",
    "paper_horizon_heuristic",
    "pass_at_k",
    "pass_hat_k",
    "perron_bound",
    "reliability",
    "reliability_curve",
    "reliability_split",
    "rounding_amplification",
    "runs_per_failure",
    "solve_enclosed",
    "solve_enclosed_transposed",
    "solve_exact",
    "solve_exact_transposed",
    "spectral_radius",
    "steps_per_failure",
    "trial_gap",
    "visit_variances",
]
