"""How far the runs whose end was not seen could move an answer.

What a chain or a survival curve makes of censored runs is right if they were cut for reasons that do not foretell their
end. Where that is doubtful no estimate helps, but bounds do: every censored run fails, or every one succeeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from tracebridge.chain.counts import TransitionCounts
from tracebridge.chain.fit import ChainFit, fit_counts
from tracebridge.chain.weights import WeightedCounts
from tracebridge.errors import UsageError
from tracebridge.states.flow import RunFlow
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.survival import LengthCounts

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CensoringExtremes:
    """The two fits between which the unseen ends could put a chain: each censored run ends with its last step.

    The two chains differ only in how runs end. ``R(d)`` and ``R_inf`` of the fit to any other assignment of ends to the
    censored runs lie between theirs (with an observed or given start), and its mean time equals theirs: a run that
    would have gone on took longer, so that for the time this is a lower bound.

    Attributes:
        all_fail, all_succeed: fits to the same runs, with the options of the fit they are made from.
    """

    all_fail: ChainFit
    all_succeed: ChainFit

    def of(self, measure: Callable[[MarkovChain], _Answer]) -> tuple[_Answer, _Answer]:
        """A number of the two chains, as in ``extremes.of(lambda chain: reliability(chain, 8))``: fail, then succeed.

        These are bounds of a number that grows with each success, such as ``R(d)``.
        """
        return measure(self.all_fail.chain), measure(self.all_succeed.chain)


def censoring_extremes(fit: ChainFit) -> CensoringExtremes:
    """Fit the same runs, whatever the policy of the fit, as if all censored ones failed, and as if all succeeded."""
    corpus = fit.weighted or fit.counts
    fits = [
        fit_counts(
            _ended(corpus, outcome),
            prior=fit.prior,
            support=fit.declared or fit.support,
            start=fit.start,
            profile=fit.profile,
            abstraction=fit.abstraction,
        )
        for outcome in (Outcome.FAILURE, Outcome.SUCCESS)
    ]
    return CensoringExtremes(all_fail=fits[0], all_succeed=fits[1])


def reliability_bounds(counts: LengthCounts, d: int | None = None) -> tuple[Fraction, Fraction] | None:
    """Bounds of the share of these runs that succeed within d steps, or ever, that assume nothing; None without a run.

    A censored run of L steps did not end with them; it may succeed with step L + 1, or never. One without a step may
    have ended at once.

    Raises:
        UsageError: for a number of steps that is none.
    """
    if d is not None and (isinstance(d, bool) or not isinstance(d, int) or d < 0):
        raise UsageError(f"a number of steps is an integer, zero or more, not {d!r}")
    if not counts.n_runs:
        return None
    succeeded = counts.within(Outcome.SUCCESS, d)
    perhaps = counts.within(Outcome.CENSORED, None if d is None else max(d - 1, 0))
    return Fraction(succeeded, counts.n_runs), Fraction(succeeded + perhaps, counts.n_runs)


def mean_length_bounds(counts: LengthCounts) -> tuple[Fraction, Fraction | float] | None:
    """Bounds of the mean number of steps to the end that assume nothing; infinite above if a run is censored.

    A censored run takes at least one step more than was seen, one without a step perhaps none. None without a run.
    """
    if not counts.n_runs:
        return None
    cut = counts.within(Outcome.CENSORED, None)
    more = cut - counts.within(Outcome.CENSORED, 0)
    least = Fraction(counts.n_steps + more, counts.n_runs)
    return least, math.inf if cut else least


def _ended(corpus: TransitionCounts | WeightedCounts, outcome: Outcome) -> TransitionCounts | WeightedCounts:
    """Every censored run as one with this outcome."""
    if isinstance(corpus, WeightedCounts):
        return WeightedCounts(
            counts=_counts_ended(corpus.counts, outcome),
            weighted=_counts_ended(corpus.weighted, outcome),
            unit_weight=corpus.unit_weight,
            sum_of_squares=corpus.sum_of_squares,
        )
    return _counts_ended(corpus, outcome)


def _counts_ended(counts: TransitionCounts, outcome: Outcome) -> TransitionCounts:
    flows = {Outcome.SUCCESS: counts.success, Outcome.FAILURE: counts.failure}
    flows[outcome] = flows[outcome] + counts.censored
    none = RunFlow.none(len(counts.states))
    return TransitionCounts(
        states=counts.states, success=flows[Outcome.SUCCESS], failure=flows[Outcome.FAILURE], censored=none
    )
