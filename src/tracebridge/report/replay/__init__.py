"""Evidence computed again: every number that follows from its counts, and what does not fit together."""

from tracebridge.report.replay.account import Difference, NotRecomputed
from tracebridge.report.replay.consistency import inconsistencies
from tracebridge.report.replay.outcome import Replay, Runs, replay_evidence

__all__ = ["Difference", "NotRecomputed", "Replay", "Runs", "inconsistencies", "replay_evidence"]
