"""What a trace is, whatever file it came from: steps, how the run ended, and why."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec

# Checked by the decoder, in C, and published in trace.schema.json. Names and identifiers stay short enough to print.
Identifier = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Outcome(StrEnum):
    """How a run ended. Censored means that the end was not observed: a cap, a crash of the harness, no verdict."""

    SUCCESS = "success"
    FAILURE = "failure"
    CENSORED = "censored"


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One step of an agent: what a budget ``d`` counts.

    Attributes:
        name: what was done, e.g. a tool's name; 1 to 1,000 characters, none of them a control character.
        kind: the role of the step: ``tool``, ``message``, ``action``, ...
        text: free text of the step.
        error: the step ended in an error.
        confidence: the agent's stated confidence, 0 to 1.
        tokens: tokens used, not negative.
        duration: seconds, not negative.
        attributes: anything else; values are JSON.
    """

    name: Identifier
    kind: str = "action"
    text: str | None = None
    error: bool = False
    confidence: Probability | None = None
    tokens: Count | None = None
    duration: Seconds | None = None
    attributes: dict[str, Any] = {}


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One run of an agent.

    Attributes:
        trace_id: unique within a corpus; 1 to 1,000 characters, none of them a control character.
        outcome: success, failure or censored.
        steps: in order; may be empty (a run that ended before its first step).
        termination: why the run ended, in the words of its source, e.g. ``step_cap``.
        task_id: the task that was attempted; runs of one task are not independent.
        trial: which attempt at the task this was.
        model: the model that ran.
        source: the file and record the run came from.
        attributes: anything else; values are JSON. ``started`` is when the run began, an ISO 8601 instant.
    """

    trace_id: Identifier
    outcome: Outcome
    steps: tuple[Step, ...] = ()
    termination: str | None = None
    task_id: str | None = None
    trial: str | None = None
    model: str | None = None
    source: str | None = None
    attributes: dict[str, Any] = {}
