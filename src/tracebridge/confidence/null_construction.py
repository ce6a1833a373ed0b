"""What routing metrics read when confidence says nothing, and when it says nearly everything.

- **Permutation null**: within every block the scores are dealt again among all polls, valid and invalid.
- **Noisy oracle**: scores are ``clip(y + sigma * noise, 0, 1)`` with standard normal noise and y = 1 for a valid
  correct poll, 0 for every other.

Either is routed to the first of the highest scores. PCCA is 1/2 under the null; CTR is not what it was, because scores
of invalid polls come among the valid ones. Means over replicates are estimates: their Monte-Carlo standard error is the
standard deviation over the root of the number of replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.routing import alignment_tallies, selection_tallies
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Numbers

METRICS = ("CRA", "HRWP", "PCCA", "CTR")

DEFAULT_REPLICATES = 50
DEFAULT_NOISE = (0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Construction:
    """The metrics under one construction.

    Attributes:
        name: ``permutation_null`` or ``noisy_oracle``. sigma: the noise of the latter; NaN for the former.
        replicates: how many there were.
        mean, deviation: by metric, over the replicates in which it has a value (divisor: their number); NaN without.
    """

    name: str
    sigma: float
    replicates: int
    mean: dict[str, float]
    deviation: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "name": self.name,
            "sigma": number_to_json(self.sigma),
            "replicates": self.replicates,
            "mean": {name: number_to_json(value) for name, value in self.mean.items()},
            "deviation": {name: number_to_json(value) for name, value in self.deviation.items()},
        }


def permutation_null(pools: BlockPools, *, replicates: int = DEFAULT_REPLICATES, seed: int = 0) -> Construction:
    """The null of no information, with the scores that there are.

    Raises:
        UsageError: no replicate.
    """
    block = pools.table.polls.block

    def dealt(rng: np.random.Generator) -> Numbers:
        return np.asarray(pools.score[np.lexsort((rng.random(len(block)), block))])

    return _replicated("permutation_null", math.nan, pools, dealt, replicates, seed)


def noisy_oracle(
    pools: BlockPools, sigma: float, *, replicates: int = DEFAULT_REPLICATES, seed: int = 0
) -> Construction:
    """Scores that follow correctness up to noise.

    Raises:
        UsageError: no replicate, or a noise that is negative or not finite.
    """
    if not 0 <= sigma < math.inf:
        raise UsageError(f"the noise of an oracle is finite and not negative, not {sigma}")
    truth = (pools.correct == 1).astype(np.float64)

    def told(rng: np.random.Generator) -> Numbers:
        return np.asarray(np.clip(truth + sigma * rng.standard_normal(len(truth)), 0.0, 1.0))

    return _replicated("noisy_oracle", sigma, pools, told, replicates, seed)


def all_constructions(
    pools: BlockPools,
    *,
    replicates: int = DEFAULT_REPLICATES,
    noise: Sequence[float] = DEFAULT_NOISE,
    seed: int = 0,
) -> tuple[Construction, ...]:
    """The null, and an oracle for each noise."""
    null = permutation_null(pools, replicates=replicates, seed=seed)
    return (null, *(noisy_oracle(pools, sigma, replicates=replicates, seed=seed) for sigma in noise))


def _replicated(
    name: str,
    sigma: float,
    pools: BlockPools,
    scores: Callable[[np.random.Generator], Numbers],
    replicates: int,
    seed: int,
) -> Construction:
    if replicates < 1:
        raise UsageError(f"a construction needs a replicate, not {replicates}")
    found = np.array(
        [
            _metrics(pools, scores(np.random.default_rng(child)))
            for child in np.random.SeedSequence(seed).spawn(replicates)
        ]
    )
    defined = [column[~np.isnan(column)] for column in found.T]
    return Construction(
        name=name,
        sigma=sigma,
        replicates=replicates,
        mean={m: float(c.mean()) if len(c) else math.nan for m, c in zip(METRICS, defined, strict=True)},
        deviation={m: _deviation(c) for m, c in zip(METRICS, defined, strict=True)},
    )


def _metrics(pools: BlockPools, score: Numbers) -> list[float]:
    routed = replace(pools, score=score, selected=pools.first_of_highest(score))
    values = {tally.name: tally.value.value for tally in (*selection_tallies(routed), *alignment_tallies(routed))}
    return [values[name] for name in METRICS]


def _deviation(values: Numbers) -> float:
    """Divisor: their number; exactly 0 where all are equal, whatever the rounding of their mean."""
    if not len(values):
        return math.nan
    return float(values.std()) if np.ptp(values) > 0 else 0.0
