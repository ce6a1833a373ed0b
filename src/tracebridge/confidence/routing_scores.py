"""What a router could go by in place of stated confidence: corrected online, or composed of all agents' confidence.

Neither looks at the labels of the blocks that it routes: MARGIN goes by what was known before each block, the
composition is fitted to other problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.block_streams import block_responses, block_streams
from tracebridge.confidence.composition import base_rates, fit_composition
from tracebridge.confidence.composition_streams import calibrated_streams, stated_support
from tracebridge.confidence.folds import tier_stratified_folds
from tracebridge.confidence.margin import Margin
from tracebridge.confidence.online import prequential_confidence

if TYPE_CHECKING:
    from tracebridge.confidence.table import ConfidenceTable, Numbers

MARGIN = "margin"
COMPOSED = "composed"


def margin_scores(table: ConfidenceTable) -> Numbers:
    """(N,) each poll's confidence as MARGIN corrects it, blocks taken as the order of time; NaN for all others.

    With the shrinkage of models that is advised for a start without data.

    Raises:
        InputError: an agent with two valid polls in a block.
    """
    held = block_responses(table)
    scores = np.full(len(table.polls.block), np.nan)
    scores[held.poll] = prequential_confidence(Margin(model_shrinkage=10.0), held.responses)
    return scores


def composed_scores(table: ConfidenceTable, *, seed: int = 0) -> Numbers:
    """(N,) the probability of each poll's answer by all agents together, cross-fitted by problem; NaN for all others.

    Log-odds of calibrated confidence are added up with the discount for what agents share; see
    `tracebridge.confidence.composition_pools`.

    Raises:
        InputError: an agent with two valid polls in a block. FitError: fewer than two problems, or a half of them
            without a labelled answer.
    """
    held = block_streams(table)
    trace = table.blocks.trace[held.block]
    folds = tier_stratified_folds(
        table.traces.problem[trace], table.traces.tier[trace], group_names=table.problems, seed=seed
    )
    pooled = np.full(held.poll.shape, np.nan)
    for fold in np.unique(folds).tolist():
        here = folds == fold
        fitting, _ = calibrated_streams(held.streams[~here], held.streams[~here])
        streams, _ = calibrated_streams(held.streams[~here], held.streams[here])
        composition = fit_composition(fitting, seed=seed)
        pooled[here] = composition.pool(stated_support(streams), base_rates(streams, composition.base_rate))
    return held.of_polls(pooled, len(table.polls.block))
