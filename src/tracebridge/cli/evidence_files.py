"""Evidence files as verbs take them that compute nothing again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.cli.console import say

if TYPE_CHECKING:
    from tracebridge.report.evidence import Evidence

#: The exit code for a record that does not fit what follows from it.
ALTERED = 6


def opened(path: str) -> tuple[Evidence, int]:
    """An evidence file and the exit code that it deserves: `ALTERED`, and a warning for each reason, if it is unsound.

    Raises:
        ModelError: it is no evidence file.
    """
    from tracebridge.report.evidence_reading import read_evidence
    from tracebridge.report.soundness import unsoundness

    evidence = read_evidence(path)
    reasons = unsoundness(evidence)
    for reason in reasons:
        say(f"warning: {path}: {reason}; `tracebridge replay` tells more")
    return evidence, ALTERED if reasons else 0
