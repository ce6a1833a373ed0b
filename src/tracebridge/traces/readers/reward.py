"""What a benchmark's reward says about the outcome of a run."""

from __future__ import annotations

from tracebridge.traces.model import Outcome
from tracebridge.traces.readers.records import RecordError

# The tolerance of tau-bench's own test: 1 - 1e-6 <= reward <= 1 + 1e-6.
REWARD_TOLERANCE = 1e-6


def outcome_of_reward(reward: float, *, field: str) -> Outcome:
    """Success for a reward of one, failure for zero, both within 1e-6.

    Raises:
        RecordError: any other reward: a chain with one success state has no place for half a success, and where to
            draw the line is the user's decision.
    """
    if abs(reward - 1) <= REWARD_TOLERANCE:
        return Outcome.SUCCESS
    if abs(reward) <= REWARD_TOLERANCE:
        return Outcome.FAILURE
    message = f"the reward {reward!r} is neither 0 nor 1"
    raise RecordError(message, field=field, hint="choose a threshold and write 0 or 1 into the file")
