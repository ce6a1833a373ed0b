"""Property checking: engines evaluate operators, one shared path turns them into verdicts."""

from tracebridge.checking.engine import ENGINE_NAMES, EngineSession
from tracebridge.checking.result import CheckResult, Note, OperatorValue, Verdict
from tracebridge.checking.run import check, iter_check

__all__ = ["ENGINE_NAMES", "CheckResult", "EngineSession", "Note", "OperatorValue", "Verdict", "check", "iter_check"]
