"""An interval for each transition probability of a fit, and the interval chain that they make.

Two methods. ``credible``: the equal-tailed interval of the entry under the posterior of the fit, whose row is Dirichlet
and whose entries are Beta (the prior, support, policy and weights of the fit). ``clopper-pearson``: the exact binomial
confidence interval of the count of the entry among all departures (Clopper and Pearson 1934), which needs no prior and
has at least the stated coverage.

The level holds for each entry alone, or by Bonferroni's inequality for all entries of a row together, or of the whole
chain together. Every interval is widened to contain the fitted probability, so that the fitted chain is among the
chains between the bounds; that only raises the level. What the fit's support excludes stays impossible, so that a lone
successor is certain; absorbing states are not uncertain, and neither is the initial distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from scipy.sparse import csr_array
from scipy.special import betaincinv

from tracebridge.chain.interval import IntervalChain
from tracebridge.errors import UsageError
from tracebridge.inference.intervals import require_level
from tracebridge.inference.posterior import ChainPosterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit

    Floats = NDArray[np.float64]

EntryMethod = Literal["credible", "clopper-pearson"]

#: What the level is the level of: one entry, all entries of a row, or all entries of the chain together.
Family = Literal["entry", "row", "chain"]


def interval_chain_of_fit(
    fit: ChainFit, *, method: EntryMethod = "credible", level: float = 0.95, together: Family = "row"
) -> IntervalChain:
    """The chains whose transition probabilities all lie in their intervals.

    Args:
        fit: the fit. method: see above. level: between 0 and 1.
        together: whether the level is that of one ``entry``, of the box of a ``row`` (default), or of the ``chain``.

    Raises:
        UsageError: for an option that is none, and for ``clopper-pearson`` where runs have weights: it is about counts.
    """
    require_level(level)
    for name, value, known in (("method", method, EntryMethod), ("family", together, Family)):
        if value not in get_args(known):
            raise UsageError(f"{value!r} is no {name} of intervals; there are {', '.join(get_args(known))}")
    if method == "clopper-pearson" and fit.weighted is not None:
        raise UsageError(
            "Clopper-Pearson intervals are about counts, and the runs of this fit have weights: take credible"
        )
    posterior = ChainPosterior.of_fit(fit)
    P = fit.chain.transitions
    sizes = np.diff(P.indptr)
    uncertain = uncertain_entries(posterior)
    tail = (1 - level) / 2 / _family_sizes(together, sizes, uncertain)
    ends = (
        _credible(posterior.concentrations, P, tail) if method == "credible" else _clopper_pearson(fit, posterior, tail)
    )
    # The fitted rows are doubles that sum to one up to rounding: the widened bounds are exact ones around them.
    around = IntervalChain.around(fit.chain)
    low = np.where(uncertain, np.minimum(ends[0], around.lower.data), around.lower.data)
    high = np.where(uncertain, np.maximum(ends[1], around.upper.data), around.upper.data)
    return IntervalChain(
        states=fit.chain.states,
        lower=csr_array((low, P.indices, P.indptr), shape=P.shape),
        upper=csr_array((high, P.indices, P.indptr), shape=P.shape),
        initial=fit.chain.initial,
        labels=fit.chain.labels,
        rewards=fit.chain.rewards,
    )


def uncertain_entries(posterior: ChainPosterior) -> NDArray[np.bool_]:
    """The transitions with an interval, shape (entries,): not in an absorbing state, and not alone in their row."""
    sizes = np.diff(posterior.chain.transitions.indptr)
    return np.asarray((posterior.concentrations > 0) & (np.repeat(sizes, sizes) > 1))


def _family_sizes(together: Family, sizes: NDArray[np.int64], uncertain: NDArray[np.bool_]) -> Floats:
    """Among how many intervals each entry's error is shared, shape (entries,)."""
    match together:
        case "entry":
            return np.ones(len(uncertain))
        case "row":
            return np.repeat(sizes, sizes).astype(np.float64)
    return np.full(len(uncertain), max(float(np.count_nonzero(uncertain)), 1.0))


def _credible(concentrations: Floats, P: csr_array, tail: Floats) -> tuple[Floats, Floats]:
    """Quantiles of Beta(a, total - a)."""
    own = np.where(concentrations > 0, concentrations, 1.0)
    totals = np.repeat(np.add.reduceat(own, P.indptr[:-1]), np.diff(P.indptr))
    others = np.where(totals > own, totals - own, 1.0)  # an entry that is alone is certain and not asked
    return betaincinv(own, others, tail), 1 - betaincinv(others, own, tail)


def _clopper_pearson(fit: ChainFit, posterior: ChainPosterior, tail: Floats) -> tuple[Floats, Floats]:
    P, m = fit.chain.transitions, len(fit.alpha)
    alpha = np.zeros(fit.chain.n_states)
    alpha[:m] = [float(concentration) for concentration in fit.alpha]
    # A concentration is a count plus alpha.
    counts = np.maximum(np.rint(posterior.concentrations - np.repeat(alpha, np.diff(P.indptr))), 0.0)
    totals = np.repeat(np.add.reduceat(counts, P.indptr[:-1]), np.diff(P.indptr))
    others = totals - counts
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), others + 1, tail), 0.0)
    high = np.where(others > 0, 1 - betaincinv(np.maximum(others, 1), counts + 1, tail), 1.0)
    return low, high
