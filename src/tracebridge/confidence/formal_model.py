"""The deliberations of a corpus as a chain and as routing processes, with what both engines say of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, get_args

from tracebridge.agreement import compare
from tracebridge.checking import check
from tracebridge.checking.result import number_to_json
from tracebridge.confidence.deliberation import Deliberations
from tracebridge.confidence.deliberation_chain import DeliberationFigures, fit_deliberations
from tracebridge.confidence.routing_process import ActionSet, routing_process
from tracebridge.confidence.routing_uncertainty import router_intervals
from tracebridge.confidence.routing_values import RouterValue, router_values
from tracebridge.confidence.selection_ignorability import selection_ignorability
from tracebridge.errors import NothingToCheckError
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tracebridge.agreement import Agreement
    from tracebridge.chain import ChainFit
    from tracebridge.confidence.bootstrap import Resampling
    from tracebridge.confidence.commitment import CommitmentPairs
    from tracebridge.confidence.router import RouteableBlocks
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.routing_process import RoutingProcess
    from tracebridge.confidence.selection_ignorability import IndependenceTest
    from tracebridge.confidence.table import Numbers
    from tracebridge.pctl.ast import PropertyFile

OBSERVED = "observed"
"""The router that was observed, among the routers of `FormalModel`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoutingReview:
    """A routing process and what the engines say of it, property by property."""

    routing: RoutingProcess
    agreements: tuple[Agreement, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "action_set": self.routing.action_set,
            "states": self.routing.process.n_states,
            "choices": self.routing.process.n_choices,
            "properties": [agreement.to_dict() for agreement in self.agreements],
            "notes": list(self.routing.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FormalModel:
    """What follows from deliberations as a chain.

    Attributes:
        deliberations: the paths.
        unsmoothed: their chain by maximum likelihood, and ``figures`` that follow from it.
        reviews: the routing processes, one an action set, in the order of `ActionSet`.
        routers: fixed routers on the process of valid choices; first what was observed, invalid selections included.
        ignorability: tests of what the routing processes assume.
    """

    deliberations: Deliberations
    unsmoothed: ChainFit
    figures: DeliberationFigures
    reviews: tuple[RoutingReview, ...]
    routers: tuple[RouterValue, ...]
    ignorability: tuple[IndependenceTest, ...]

    def review(self, action_set: ActionSet) -> RoutingReview:
        """The routing process of an action set."""
        return next(review for review in self.reviews if review.routing.action_set == action_set)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "n_deliberations": len(self.deliberations.identifiers),
            "n_cut": self.deliberations.n_cut,
            "n_blocks_without_polls": self.deliberations.n_without_polls,
            "figures": {name: number_to_json(value) for name, value in asdict(self.figures).items()},
            "routers": [router.to_dict() for router in self.routers],
            "routing": [review.to_dict() for review in self.reviews],
            "selection_ignorability": [test.to_dict() for test in self.ignorability],
        }


def formal_model(
    pools: BlockPools,
    pairs: CommitmentPairs,
    routers: tuple[RouteableBlocks, Mapping[str, Numbers]],
    properties: PropertyFile,
    *,
    engines: Sequence[str],
    exact: bool = False,
    time_limit: float | None = None,
    prism: str | Path | None = None,
    resampling: Resampling | None = None,
) -> FormalModel:
    """Build the chain and the routing processes of a corpus, and check the properties of the latter.

    Args:
        pools, pairs: of one table, whose judge and policies hold here too.
        routers: the blocks that routers are compared on, and by rule the probability of a correct selection in each.
        properties: of routing processes, with minima and maxima. engines, exact, time_limit, prism: see `check`.
        resampling: of clusters, for intervals of the routers' values; there are none by default.

    Raises:
        NothingToCheckError: nobody was polled, or no deliberation has a known end.
        FitError: as `fit_counts` does.
    """
    deliberations = Deliberations.of(pools, pairs)
    if all(outcome is Outcome.CENSORED for outcome in deliberations.outcomes):
        raise NothingToCheckError("no deliberation has a known end")
    calls = Fraction(len(pools.table.polls.block), int((pools.n_polls > 0).sum()))
    unsmoothed = fit_deliberations(deliberations, calls_per_poll_round=calls, prior="none")
    figures = DeliberationFigures.of(unsmoothed.chain)
    reviews = []
    for action_set in get_args(ActionSet):
        routing = routing_process(pools, deliberations, action_set=action_set, calls_per_poll_round=calls)
        results = check(routing.process, properties, engines=engines, exact=exact, time_limit=time_limit, prism=prism)
        reviews.append(RoutingReview(routing=routing, agreements=tuple(compare(results))))
    observed = RouterValue(rule=OBSERVED, passes=figures.passes, blocks=figures.blocks)
    valid = next(review.routing for review in reviews if review.routing.action_set == "valid")
    values = (observed, *router_values(valid, *routers))
    if resampling is not None:
        intervals = router_intervals(valid, deliberations, *routers, resampling)
        values = tuple(replace(value, intervals=each) for value, each in zip(values, intervals, strict=True))
    return FormalModel(
        deliberations=deliberations,
        unsmoothed=unsmoothed,
        figures=figures,
        reviews=tuple(reviews),
        routers=values,
        ignorability=selection_ignorability(pools, deliberations),
    )
