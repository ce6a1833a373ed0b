"""How far the runs whose end was not seen could move a richer chain: every one fails, or every one succeeds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.errors import UsageError
from tracebridge.states.run_paths import CENSORED, FAILURE, SUCCESS

if TYPE_CHECKING:
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.markov import MarkovChain


def censoring_extremes_of(fit: ExpandedFit) -> list[MarkovChain]:
    """Chains of the same form, fitted as if all censored runs failed with their last step, and as if all succeeded.

    Classes of tasks are left out. See `tracebridge.chain.censoring_bounds` for what these two bound.

    Raises:
        UsageError: the fit was read from a document that does not hold its runs.
    """
    paths = fit.paths
    if paths is None:
        raise UsageError("the document of this fit does not hold its runs, which are too many")
    form = replace(fit.form, classes=1)
    found = []
    for outcome in (FAILURE, SUCCESS):
        outcomes = np.where(paths.outcomes == CENSORED, outcome, paths.outcomes).astype(np.int8)
        model = estimate(replace(paths, outcomes=outcomes), form, fit.kappa, fit.seed)
        found.append(ExpandedStructure.of_model(model).chain(model))
    return found
