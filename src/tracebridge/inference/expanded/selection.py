"""Which of several forms of chain are kept: those that no other foretells surely better, and not by a trifle.

A form is dismissed if another one of its family gains more than a critical number of standard errors over it. One
standard error, the usual rule, is for two forms: the best of six that are all as good as the first-order chain gained
more than that on 15 % of corpora of such a chain. So the critical number is that of the largest of all gains over the
form: the .95 quantile of its largest standardised gain, had it none, by a Gaussian multiplier bootstrap over tasks
(Chernozhukov, Chetverikov and Kato 2013, Annals of Statistics 41, 2786-2819; the kept forms are a model confidence set
as that of Hansen, Lunde and Nason 2011, Econometrica 79, 453-497, in one step). About one corpus in twenty of the
simplest form loses it, whatever the number of others; fewer, as what others estimate in vain costs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.inference.expanded.cross_validation import HeldOutScore
    from tracebridge.inference.expanded.scope import Scope
    from tracebridge.states.model_form import ModelForm

    Floats = NDArray[np.float64]

#: How often the largest gain may be taken for one where there is none.
LEVEL = 0.05

#: Gains up to so many nats a run are none: the likelihood of a run differs by one per cent.
LEAST_GAIN = 0.01

_MULTIPLIERS = 1_000
_SEED = 20_130_401


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A form that was scored.

    Attributes:
        name: as it is told. form: with the bins of its clock. score: on held-out runs, the same for all candidates.
        scopes: whose families it belongs to.
    """

    name: str
    form: ModelForm
    score: HeldOutScore
    scopes: tuple[Scope, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dismissal:
    """Why a form is not kept.

    Attributes:
        by: the name of the one that is to be preferred. gain, error: of its score, nats a run, and its standard error.
        contained: it is contained in this form, which foretells no better.
    """

    by: str
    gain: float
    error: float
    contained: bool

    def __str__(self) -> str:
        if self.contained:
            return f"foretells no better than {self.by}, which it contains"
        return f"{self.by} foretells better by {self.gain:.2g} ({self.error:.1g}) nats a run"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"by": self.by, "gain": self.gain, "error": self.error, "contained": self.contained}


def why_dismissed(candidate: Candidate, candidates: Sequence[Candidate], scope: Scope) -> Dismissal | None:
    """Why a candidate is not kept for a scope of its own; None if it is."""
    others = [other for other in candidates if other is not candidate and scope in other.scopes]
    gains = [other.score.gain_over(candidate.score, scope) for other in others]
    for other, (gain, error) in zip(others, gains, strict=True):
        if gain > 0 and contains(candidate.form, other.form):
            return Dismissal(by=other.name, gain=gain, error=error, contained=True)
    critical = critical_gain(candidate.score, [other.score for other in others], scope)
    surely = [
        (gain, error, other.name)
        for other, (gain, error) in zip(others, gains, strict=True)
        if gain > LEAST_GAIN and gain > critical * error
    ]
    if not surely:
        return None
    gain, error, name = max(surely)
    return Dismissal(by=name, gain=gain, error=error, contained=False)


def critical_gain(score: HeldOutScore, others: Sequence[HeldOutScore], scope: Scope) -> float:
    """How many standard errors the largest gain of the others exceeds by chance at `LEVEL`.

    Args:
        score: that others may gain over. others: of the same runs; those that equal it count for nothing.
    """
    differences = np.array([other.of(scope) - score.of(scope) for other in others]).reshape(
        len(others), len(score.blocks)
    )
    _, block_of_run = np.unique(score.blocks, return_inverse=True)
    sums = np.zeros((len(others), int(block_of_run.max(initial=-1)) + 1))
    np.add.at(sums.T, block_of_run, (differences - differences.mean(axis=1, keepdims=True)).T)
    spread = np.sqrt((sums**2).sum(axis=1))
    varying = spread > 0
    if not varying.any():
        return 0.0
    weights = np.random.default_rng(_SEED).standard_normal((_MULTIPLIERS, sums.shape[1]))
    largest = (weights @ (sums[varying] / spread[varying, None]).T).max(axis=1)
    return float(np.quantile(largest, 1 - LEVEL))


def contains(form: ModelForm, other: ModelForm) -> bool:
    """A chain of the other form is one of this form, but for the bins of a clock."""
    return (
        form.previous >= other.previous
        and form.dwell >= other.dwell
        and form.has_clock >= other.has_clock
        and form.phases >= other.phases
    )
