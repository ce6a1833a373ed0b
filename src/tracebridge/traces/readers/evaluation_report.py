"""Reports and predictions of SWE-bench that lie among the traces: they hold no run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.errors import Location, Problem
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.model import Trace
    from tracebridge.traces.problems import ProblemLog


class EvaluationReportReader:
    """Files of outcomes or predictions that lie among traces: they hold no run, and are passed over with a note.

    ============  ===============================================================================
    run           none
    step          none
    error         none
    outcome       a report's lists of ids, for the runs of other files (``outcomes``)
    censoring     none
    task, trial   none
    model         none
    ============  ===============================================================================
    """

    name = "outcomes"
    description = "reports and predictions of SWE-bench: no runs, but a report can be given as outcomes of other files"

    def detect(self, file: InputFile) -> bool:
        """A report with lists of ids, or predictions."""
        seen = shape(file.head)
        if seen.kind not in ("object", "array") or not seen.keys.isdisjoint({"trajectory", "history", "test_result"}):
            return False
        if not seen.keys.isdisjoint({"resolved_ids", "unresolved_ids", "empty_patch_ids"}):
            return True
        return b'"model_patch"' in file.head and b'"model_name_or_path"' in file.head

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """No run."""
        message = "the file holds outcomes or predictions, no runs"
        log.note(Problem(location=Location(path=file.label), message=message, hint="a report can be given as outcomes"))
        return iter(())
