"""From agent traces to model-checked reliability.

The public functions a first user meets; each is loaded when it is first used, so that importing the package is quick.

>>> from tracebridge import check, compare, fit_chain, read_traces
>>> fit = fit_chain(read_traces("runs.csv"))                                        # doctest: +SKIP
>>> agreements = compare(check(fit.chain, 'P>=0.7 [ F<=8 "success" ]'))             # doctest: +SKIP
>>> assert all(agreement.ok for agreement in agreements)                            # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.agreement import Agreement, compare
    from tracebridge.chain import (
        AbsorbingChain,
        ChainFit,
        DecisionProcess,
        MarkovChain,
        RationalMatrix,
        RationalVector,
        RewardStructure,
        TransitionCounts,
        fit_counts,
        sample_traces,
    )
    from tracebridge.checking import CheckResult, Verdict, check
    from tracebridge.checking.models import Model, read_model, write_model
    from tracebridge.closedform import (
        Enclosure,
        absorption_probabilities,
        expected_visits,
        fundamental_matrix,
        horizon,
        long_run_reliability,
        mean_time_to_absorption,
        pass_at_k,
        pass_hat_k,
        reliability,
        reliability_curve,
    )
    from tracebridge.confidence.audit import audit_confidence
    from tracebridge.errors import TracebridgeError
    from tracebridge.inference import Certificate, certify, property_uncertainty
    from tracebridge.inference.expanded.modelling import fit_chain
    from tracebridge.inference.judgement import judge
    from tracebridge.inference.online.monitor import runtime_monitor
    from tracebridge.pctl import format_properties, parse_properties, read_properties
    from tracebridge.pipeline import Assessment, assess, replay
    from tracebridge.plot import plot_calibration, plot_certificate, plot_chain, plot_reliability
    from tracebridge.report.evidence import Evidence
    from tracebridge.report.evidence_reading import read_evidence
    from tracebridge.report.gate import gate
    from tracebridge.states import StateMap, TextFeatures, read_state_map
    from tracebridge.traces import Outcome, Step, Trace, TraceSet, open_traces, read_traces, write_traces

_HOME = {
    "tracebridge.chain": (
        "AbsorbingChain",
        "ChainFit",
        "DecisionProcess",
        "MarkovChain",
        "RationalMatrix",
        "RationalVector",
        "RewardStructure",
        "TransitionCounts",
        "fit_counts",
        "sample_traces",
    ),
    "tracebridge.checking": ("CheckResult", "Verdict", "check"),
    "tracebridge.checking.models": ("Model", "read_model", "write_model"),
    "tracebridge.closedform": (
        "Enclosure",
        "absorption_probabilities",
        "expected_visits",
        "fundamental_matrix",
        "horizon",
        "long_run_reliability",
        "mean_time_to_absorption",
        "pass_at_k",
        "pass_hat_k",
        "reliability",
        "reliability_curve",
    ),
    "tracebridge.agreement": ("Agreement", "compare"),
    "tracebridge.confidence.audit": ("audit_confidence",),
    "tracebridge.errors": ("TracebridgeError",),
    "tracebridge.inference": ("Certificate", "certify", "property_uncertainty"),
    "tracebridge.inference.expanded.modelling": ("fit_chain",),
    "tracebridge.inference.judgement": ("judge",),
    "tracebridge.inference.online.monitor": ("runtime_monitor",),
    "tracebridge.pctl": ("format_properties", "parse_properties", "read_properties"),
    "tracebridge.pipeline": ("Assessment", "assess", "replay"),
    "tracebridge.plot": ("plot_calibration", "plot_certificate", "plot_chain", "plot_reliability"),
    "tracebridge.report.evidence": ("Evidence",),
    "tracebridge.report.evidence_reading": ("read_evidence",),
    "tracebridge.report.gate": ("gate",),
    "tracebridge.states": ("StateMap", "TextFeatures", "read_state_map"),
    "tracebridge.traces": (
        "Outcome",
        "Step",
        "Trace",
        "TraceSet",
        "open_traces",
        "read_traces",
        "write_traces",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "AbsorbingChain",
    "Agreement",
    "Assessment",
    "Certificate",
    "ChainFit",
    "CheckResult",
    "DecisionProcess",
    "Enclosure",
    "Evidence",
    "MarkovChain",
    "Model",
    "Outcome",
    "RationalMatrix",
    "RationalVector",
    "RewardStructure",
    "StateMap",
    "Step",
    "TextFeatures",
    "Trace",
    "TraceSet",
    "TracebridgeError",
    "TransitionCounts",
    "Verdict",
    "__version__",
    "absorption_probabilities",
    "assess",
    "audit_confidence",
    "certify",
    "check",
    "compare",
    "expected_visits",
    "fit_chain",
    "fit_counts",
    "format_properties",
    "fundamental_matrix",
    "gate",
    "horizon",
    "judge",
    "long_run_reliability",
    "mean_time_to_absorption",
    "open_traces",
    "parse_properties",
    "pass_at_k",
    "pass_hat_k",
    "plot_calibration",
    "plot_certificate",
    "plot_chain",
    "plot_reliability",
    "property_uncertainty",
    "read_evidence",
    "read_model",
    "read_properties",
    "read_state_map",
    "read_traces",
    "reliability",
    "reliability_curve",
    "replay",
    "runtime_monitor",
    "sample_traces",
    "write_model",
    "write_traces",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
