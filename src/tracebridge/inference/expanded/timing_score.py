"""How well a chain foretells when runs end, and how: the log-score of the times and kinds of their ends.

What the timing scope is about, scored by itself: a chain may foretell every step well and the time of the end badly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.expanded.model_curves import end_curves
from tracebridge.states.run_paths import CENSORED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.states.run_paths import RunPaths

# Probabilities below this are beyond what a difference of curves can tell.
_LEAST = 1e-15


def timing_scores(model: ExpandedModel, paths: RunPaths) -> NDArray[np.float64]:
    """The log-probability to end as each run did with its last step, shape (n_runs,).

    Of a censored run, that of having gone on beyond its last step; nothing, if it was cut before its first. The group
    of a run is not used, and its class neither.
    """
    lengths = paths.lengths
    longest = int(lengths.max(initial=0))
    curves = end_curves(model.space, model.start[None], model.rows[None], model.advance[None], longest)[0]
    ended = np.diff(curves, axis=1, prepend=0.0)
    surviving = 1.0 - curves.sum(axis=0)
    censored = paths.outcomes == CENSORED
    kinds = np.where(censored, 0, paths.outcomes)
    found = np.where(censored, surviving[lengths], ended[kinds, lengths])
    scores = np.log(np.maximum(found, _LEAST))
    return np.where(censored & (lengths == 0), 0.0, scores)
