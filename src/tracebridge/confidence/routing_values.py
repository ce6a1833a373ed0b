"""What routers are worth in the end: the probability that a deliberation passes under each of them.

For the kinds of poll that a router may select, ``Pmax`` and ``Pmin`` bound every router whatsoever; a given router is a
scheduler of the same process and lies between them. All of these are trace-level counterfactuals and rest on
selection-ignorability; the success of single blocks (`tracebridge.confidence.router`) does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.deliberation_chain import DeliberationFigures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracebridge.confidence.router import RouteableBlocks
    from tracebridge.confidence.routing_process import RoutingProcess
    from tracebridge.confidence.routing_uncertainty import ValueIntervals
    from tracebridge.confidence.table import Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterValue:
    """A fixed router on the routing process.

    Attributes:
        rule: its name. passes: P(pass) under it. blocks: expected blocks of a deliberation.
        intervals: of these and of the gain over the observed router; None unless clusters were drawn again.
    """

    rule: str
    passes: float
    blocks: float
    intervals: ValueIntervals | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        document = {"rule": self.rule, "passes": number_to_json(self.passes), "blocks": number_to_json(self.blocks)}
        if self.intervals is not None:
            found = {"passes": self.intervals.passes, "blocks": self.intervals.blocks, "gain": self.intervals.gain}
            for name, each in found.items():
                document |= {f"{name}_{end}": number_to_json(getattr(each.interval, end)) for end in ("lower", "upper")}
            document |= {"interval_status": self.intervals.passes.status, "reason": self.intervals.passes.reason}
        return document


def router_values(
    routing: RoutingProcess, blocks: RouteableBlocks, successes: Mapping[str, Numbers]
) -> tuple[RouterValue, ...]:
    """Each router as a scheduler.

    Args:
        routing: of the action set ``valid``. blocks: those that routers are compared on.
        successes: by rule the probability that it selects a correct poll, shape (R,); see `router_successes`. Where a
            rule selects an invalid poll it counts as selecting a wrong one.
    """
    found = []
    for rule, success in successes.items():
        correct = np.full(len(blocks.pools.n_polls), np.nan)
        correct[blocks.block] = success
        figures = DeliberationFigures.of(routing.process.induced(routing.scheduler(correct)))
        found.append(RouterValue(rule=rule, passes=figures.passes, blocks=figures.blocks))
    return tuple(found)
