"""What a monitor says after a prefix of a run."""

from __future__ import annotations

from typing import Any

import msgspec

from tracebridge.checking.result import number_to_json
from tracebridge.inference.online.property_table import PropertyReading
from tracebridge.traces.model import Outcome


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number of the fitted chain with the ends of its posterior interval, NaN where nothing was drawn."""

    value: float
    lower: float
    upper: float


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What is known after a prefix of a run.

    Attributes:
        steps: how many the prefix has. state: that of the last step, or ``success`` or ``failure`` once the run ended;
            None for a run without a step that was cut off.
        ended: the outcome, once the run ended.
        success: the probability of success. steps_left: the expected number of further steps; infinite where the run
            may never end.
        properties: one reading each, in the order of the file, without those that the monitor refused.
        log_likelihood: of the prefix under the chain. tail: see `PrefixLikelihood`.
        unseen_transitions: those of the prefix that no run of the corpus made, such as ``plan -> answer``.
        unseen_steps: its steps of a kind that the corpus did not have; each was read as the nearest state.
        mark: what the certificate says against the chain; None if it accepts it.
    """

    steps: int
    state: str | None
    ended: Outcome | None
    success: Estimate
    steps_left: Estimate
    properties: tuple[PropertyReading, ...]
    log_likelihood: float
    tail: float
    unseen_transitions: tuple[str, ...]
    unseen_steps: tuple[str, ...]
    mark: str | None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            name: _json_values(value)
            for name, value in ((name, getattr(self, name)) for name in self.__struct_fields__)
        }


def _json_values(value: Any) -> Any:
    if isinstance(value, float):
        return number_to_json(value)
    if isinstance(value, tuple):
        return [_json_values(each) for each in value]
    if isinstance(value, msgspec.Struct):
        return {name: _json_values(getattr(value, name)) for name in value.__struct_fields__}
    return str(value) if isinstance(value, Outcome) else value
