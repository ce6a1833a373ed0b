"""Property checking: engines evaluate operators, one shared path turns them into verdicts."""

from tracebridge.checking.engine import ENGINE_NAMES, EngineSession
from tracebridge.checking.result import CheckResult, Listing, Note, OperatorValue, Verdict
from tracebridge.checking.run import check, default_engines, iter_check, iter_points

__all__ = [
    "ENGINE_NAMES",
    "CheckResult",
    "EngineSession",
    "Listing",
    "Note",
    "OperatorValue",
    "Verdict",
    "check",
    "default_engines",
    "iter_check",
    "iter_points",
]
