"""What the data say about a fitted chain and its properties.

`path_counts` reduces a corpus to what a certificate asks of it, and `certify` tests whether a first-order chain with
fixed probabilities describes it. `property_uncertainty` and `second_opinions` give properties their intervals,
`plan_runs` says how many more runs would decide them. `repeated_trials` is for tasks of different difficulty,
`compare_agents`, `compare_rows` and `decompose_reliability` for two agents or two versions of one.
"""

from tracebridge.inference.certificate import (
    IDENTITY,
    Certificate,
    CertificateVerdict,
    CovariateResult,
    CurveDeparture,
    FitFigures,
    ReferenceEffects,
    StatisticResult,
)
from tracebridge.inference.certification import DEFAULT_REPLICATES, certify
from tracebridge.inference.comparison import (
    AgentComparison,
    TaskComparison,
    compare_agents,
    compare_pass_rates,
    compare_tasks,
)
from tracebridge.inference.corpus_counts import PathCounts
from tracebridge.inference.counting import path_counts, split_counts
from tracebridge.inference.differences import Difference
from tracebridge.inference.intervals import Interval
from tracebridge.inference.localisation import Departure, StateShare
from tracebridge.inference.planning import Plan, plan_runs
from tracebridge.inference.posterior import ChainPosterior
from tracebridge.inference.published_rule import PaperProfile, paper_profile
from tracebridge.inference.regression import Decomposition, RowDifference, compare_rows, decompose_reliability
from tracebridge.inference.resampling_units import ResamplingUnits
from tracebridge.inference.run_counts import RunCounts
from tracebridge.inference.scenarios import SCENARIOS, Scenario
from tracebridge.inference.second_opinion import SecondOpinion, second_opinions
from tracebridge.inference.step_count_intervals import budget_interval, horizon_interval
from tracebridge.inference.task_counts import TaskCounts
from tracebridge.inference.task_mixtures import beta_binomial, latent_classes
from tracebridge.inference.trials import RepeatedTrials, SharedDifficulty, repeated_trials, shared_difficulty
from tracebridge.inference.uncertainty import PropertyUncertainty, property_uncertainty

__all__ = [
    "DEFAULT_REPLICATES",
    "IDENTITY",
    "SCENARIOS",
    "AgentComparison",
    "Certificate",
    "CertificateVerdict",
    "ChainPosterior",
    "CovariateResult",
    "CurveDeparture",
    "Decomposition",
    "Departure",
    "Difference",
    "FitFigures",
    "Interval",
    "PaperProfile",
    "PathCounts",
    "Plan",
    "PropertyUncertainty",
    "ReferenceEffects",
    "RepeatedTrials",
    "ResamplingUnits",
    "RowDifference",
    "RunCounts",
    "Scenario",
    "SecondOpinion",
    "SharedDifficulty",
    "StateShare",
    "StatisticResult",
    "TaskComparison",
    "TaskCounts",
    "beta_binomial",
    "budget_interval",
    "certify",
    "compare_agents",
    "compare_pass_rates",
    "compare_rows",
    "compare_tasks",
    "decompose_reliability",
    "horizon_interval",
    "latent_classes",
    "paper_profile",
    "path_counts",
    "plan_runs",
    "property_uncertainty",
    "repeated_trials",
    "second_opinions",
    "shared_difficulty",
    "split_counts",
]
