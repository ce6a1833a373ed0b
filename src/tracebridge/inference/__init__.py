"""What the data say about a fitted chain and its properties.

`path_counts` reduces a corpus to what a certificate asks of it, and `certify` tests whether a first-order chain with
fixed probabilities describes it.
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
from tracebridge.inference.corpus_counts import PathCounts
from tracebridge.inference.counting import path_counts, split_counts
from tracebridge.inference.localisation import Departure, StateShare
from tracebridge.inference.published_rule import PaperProfile, paper_profile
from tracebridge.inference.scenarios import SCENARIOS, Scenario

__all__ = [
    "DEFAULT_REPLICATES",
    "IDENTITY",
    "SCENARIOS",
    "Certificate",
    "CertificateVerdict",
    "CovariateResult",
    "CurveDeparture",
    "Departure",
    "FitFigures",
    "PaperProfile",
    "PathCounts",
    "ReferenceEffects",
    "Scenario",
    "StateShare",
    "StatisticResult",
    "certify",
    "paper_profile",
    "path_counts",
    "split_counts",
]
