"""The shape of R(d): where it is concave, whether it looks exponential, and the rules for a sufficient budget.

``R(d + 1) - 2 R(d) + R(d - 1) = -v Q^(d-1) (I - Q) w`` for d >= 1, with w the success exits: concave wherever later
steps add less than earlier ones. A convex stretch says that a run must get past something first, such as a tool's
answer. ``Qw <= w`` in every state that a run visits is sufficient for concavity at every d, and not necessary; so is
``Q^d w <= Q^(d-1) w`` for concavity from d on, since Q is not negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.absorbing_system import Chain, Scalar, absorbers_in, absorbing_form
from tracebridge.closedform.approach import horizon_bound, paper_horizon_heuristic, spectral_radius
from tracebridge.closedform.firstpassage import first_passage_pmf
from tracebridge.closedform.fundamental import absorption_probabilities, long_run_split, mean_time_to_absorption
from tracebridge.closedform.passage import Passage, step_limit
from tracebridge.closedform.step_counts import allowed_gap, horizon
from tracebridge.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.entries import Array
    from tracebridge.closedform.firstpassage import Target

_UNIT = 2.0**-53
_SMALLEST = 1e-290  # below it underflow could pass for a zero
_LARGEST_DENSE = 2_000
_DEFECTIVE = 1e10  # a condition of eigenvectors beyond this is rounding noise of a matrix without a basis of them


# ---------------------------------------------------------------- concavity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveShape:
    """Where R(d) is concave.

    Attributes:
        second_differences: ``R(d + 1) - 2 R(d) + R(d - 1)`` for d = 1, ..., d_max; shape (d_max,).
        convex: the d in that range at which it is positive, proven for the exact chain.
        undecided: the d in that range whose sign lies within rounding, in a chain too large for rationals.
        falling: whether ``Qw <= w`` in every state that matters, which suffices for concavity at every d.
        concave_from: a d from which on R is concave for ever; None if none up to d_max was found.
    """

    second_differences: Array
    convex: tuple[int, ...]
    undecided: tuple[int, ...]
    falling: bool
    concave_from: int | None

    @property
    def concave(self) -> bool | None:
        """Whether R is concave at every d, beyond d_max too; None where that is not decided."""
        if self.convex:
            return False
        if self.concave_from is None or any(d < self.concave_from for d in self.undecided):
            return None
        return True


def curve_shape(chain: Chain, d_max: int, *, target: Target = "success", exact: bool = False) -> CurveShape:
    """The shape of R(d) for d = 1, ..., d_max, and what can be said beyond.

    Signs are those of the exact chain in either arithmetic: doubles decide where their error allows it, and rationals
    the rest.

    Raises:
        UsageError: for a d_max below one. ModelError: as for `reliability`.
        UnsupportedError: in exact mode, if that is too much work.
    """
    if isinstance(d_max, bool) or not isinstance(d_max, int | np.integer) or d_max < 1:
        raise UsageError(f"a shape needs a d_max of one or more, not {d_max!r}")
    form = absorbing_form(chain)
    hit = absorbers_in(form, target)
    passage, rational = (Passage.into(form, hit, exact=kind) for kind in (False, True))
    falling = _falls(rational)
    concave_from = 1 if falling else _falls_from(passage, d_max)
    if exact:
        differences = np.diff(rational.pmf(d_max + 1)[1:])
        convex = np.flatnonzero([value > 0 for value in differences.tolist()])
        undecided = np.empty(0, dtype=np.int64)
    else:
        steps = passage.pmf(d_max + 1)[1:]
        differences = np.diff(steps)
        roundings = (np.arange(2, d_max + 2) * passage.roundings_per_step + form.chain.n_states + 16) * _UNIT
        doubt = 2 * roundings * (steps[1:] + steps[:-1]) + 4 * _SMALLEST
        convex = np.flatnonzero(differences > doubt)
        undecided = np.flatnonzero(np.abs(differences) <= doubt)
        if len(undecided):
            convex, undecided = _settled(rational, convex, undecided)
    return CurveShape(
        second_differences=differences,
        convex=tuple((convex + 1).tolist()),
        undecided=tuple((undecided + 1).tolist()),
        falling=falling,
        concave_from=concave_from,
    )


def _settled(
    passage: Passage, convex: NDArray[np.int64], undecided: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What rationals say of the undecided signs; as it was if they are too much work."""
    try:
        steps = passage.pmf(int(undecided[-1]) + 2)[1:]
    except UnsupportedError:
        return convex, undecided
    rising = np.array([k for k in undecided.tolist() if steps[k + 1] > steps[k]], dtype=np.int64)
    return np.sort(np.concatenate([convex, rising])), np.empty(0, dtype=np.int64)


def _falls(passage: Passage) -> bool:
    """``Qw <= w``, in rationals."""
    ahead = passage.Q.right(passage.exits)
    return all(later <= now for later, now in zip(ahead.tolist(), passage.exits.tolist(), strict=True))


def _falls_from(passage: Passage, d_max: int) -> int | None:
    """The smallest d found, at most d_max, with ``Q^d w <= Q^(d-1) w`` by more than the error of doubles."""
    w = passage.exits
    for d in range(1, d_max + 1):
        if np.any((w > 0) & (w < _SMALLEST)):
            return None
        ahead = passage.Q.right(w)
        doubt = 2 * (d + 1) * (passage.roundings_per_step + _widest(passage)) * _UNIT
        if np.all((w - ahead > doubt * (w + ahead)) | ((w == 0) & (ahead == 0))):
            return d
        w = ahead
    return None


def _widest(passage: Passage) -> int:
    return int(np.bincount(passage.Q.rows, minlength=1).max())


# ---------------------------------------------------------------- the exponential limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialLimit:
    """How far R(d) is from ``1 - exp(-mu d)``, the limit law for rare failures and slow runs.

    The rates are those of renewal: successes and failures per step of operation. For a chain with one transient state
    they are its exits. The law of the literature (Goel and Okumoto's curve) is the limit for ``mu -> 0`` and
    ``eps / mu -> 0``; with a constant ratio the gap does not vanish, since R(d) tends to R_inf and the law to 1.

    Attributes:
        success_rate: ``mu = R_inf / MTTA``. failure_rate: ``eps = (1 - R_inf) / MTTA``; both per step.
        ratio: ``eps / mu``, which the limit wants near zero; the gap over all d is at least ``1 - R_inf``.
        gap: the supremum of ``|R(d) - (1 - exp(-mu d))|`` over the budgets that were looked at.
        scaled_gap: the same for ``R_inf (1 - exp(-d / MTTA))``, which needs slow runs but no rare failures.
        geometric_gap: the same for ``R_inf (1 - (1 - 1 / MTTA)^d)``, which a chain of one state has exactly.
        d_max: the largest budget looked at; None for all.
    """

    success_rate: float
    failure_rate: float
    ratio: float
    gap: float
    scaled_gap: float
    geometric_gap: float
    d_max: int | None

    @property
    def end_rate(self) -> float:
        """Ends per step of operation, ``1 / MTTA``."""
        return self.success_rate + self.failure_rate

    def obstacles(self, tolerance: float) -> list[str]:
        """Why the law does not hold within the tolerance; empty where it does."""
        if self.gap <= tolerance:
            return []
        found = []
        if self.ratio > tolerance:
            found.append(f"failures are not rare: eps / mu is {self.ratio:.3g}, which the limit wants near 0")
        if self.success_rate > tolerance:
            found.append(f"runs are short: mu is {self.success_rate:.3g} a step, which the limit wants near 0")
        if self.scaled_gap > tolerance:
            found.append(f"the time to an end is not exponential: {self._why_not_exponential(tolerance)}")
        return found

    def _why_not_exponential(self, tolerance: float) -> str:
        """Steps are whole: a geometric law of the same mean is off too, if runs are short. What is beyond is shape."""
        if self.geometric_gap <= tolerance:
            return f"runs end after few whole steps, {1 / self.end_rate:.3g} on average, at the same rate at every step"
        return "more than one state shapes it"


def exponential_limit(chain: Chain, *, d_max: int | None = None, target: Target = "success") -> ExponentialLimit:
    """Compare R(d) with the exponential limit for d = 0, ..., d_max, or for all d (to 1e-9).

    Raises:
        UsageError: if success cannot be reached or runs have no steps, so that there is no rate.
        UnsupportedError: if runs are too long to look at every budget; give a d_max then.
    """
    form = absorbing_form(chain)
    success, failure = (float(share) for share in long_run_split(form, target=target))
    steps = float(mean_time_to_absorption(form).overall)
    if not success or not steps:
        raise UsageError("there is no rate of success: no run succeeds, or none takes a step")
    rate = success / steps
    limits = []
    last = d_max
    if d_max is None:
        slowest = max(steps / success, float(horizon_bound(form, 1e-9, target=target)) / 21)
        reach = 21 * slowest  # exp(-21) < 1e-9
        if not reach <= step_limit(len(form.transient), form.Q.nnz):
            raise UnsupportedError("runs are too long to look at every budget: give a d_max")
        last = math.ceil(reach)
        limits = [failure]  # from there on R(d) and the law are at their limits
    curve = np.minimum(np.cumsum(first_passage_pmf(form, last or 0, target=target)), 1.0)
    d = np.arange(len(curve))
    return ExponentialLimit(
        success_rate=rate,
        failure_rate=failure / steps,
        ratio=failure / success,
        gap=float(max(np.abs(curve + np.expm1(-rate * d)).max(), *limits, 0.0)),
        scaled_gap=float(np.abs(curve + success * np.expm1(-d / steps)).max()),
        geometric_gap=float(np.abs(curve - success * (1 - max(1 - 1 / steps, 0.0) ** d)).max()),
        d_max=d_max,
    )


# ---------------------------------------------------------------- budgets that suffice


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonRules:
    """Budgets beyond which R(d) is within ``gap`` of R_inf, by rule.

    Attributes:
        gap: as given. exact: the smallest such budget. perron: a bound on it, `horizon_bound`.
        diagonal: the paper's bound (eq. 14), ``log(kappa max(h) / gap) / -log rho``; None where it does not apply.
        condition: kappa, the condition of the eigenvectors of Q in the row-sum norm, each of Euclidean length one.
        heuristic: the paper's tabulated rule, ``ceil(log(R_inf / gap) / -log rho)``: **not a bound**.
        reason: why ``diagonal`` is None.
    """

    gap: float
    exact: float
    perron: float
    diagonal: float | None
    condition: float | None
    heuristic: int
    reason: str | None = None


def horizon_rules(chain: Chain, gap: Scalar | int, *, target: Target = "success") -> HorizonRules:
    """Every rule for a sufficient budget side by side.

    Raises:
        UsageError: for a gap of zero or below. UnsupportedError: as for `horizon`, or above 2,000 states in one class.
    """
    allowed = allowed_gap(gap)
    if not allowed:
        raise UsageError("the rules for a sufficient budget need a gap above zero")
    form = absorbing_form(chain)
    diagonal, condition, reason = _diagonal_bound(form, allowed, target)
    return HorizonRules(
        gap=float(allowed),
        exact=horizon(form, gap, target=target),
        perron=horizon_bound(form, gap, target=target),
        diagonal=diagonal,
        condition=condition,
        heuristic=paper_horizon_heuristic(form, gap, target=target),
        reason=reason,
    )


def _diagonal_bound(chain: Chain, gap: Fraction, target: Target) -> tuple[float | None, float | None, str | None]:
    form = absorbing_form(chain)
    radius = spectral_radius(form)
    if radius == 0:
        return None, None, "the chain has no cycle: rho is 0"
    if radius >= 1:
        return None, None, "rho rounds to 1"
    if len(form.transient) > _LARGEST_DENSE:
        return None, None, f"more than {_LARGEST_DENSE} states"
    _, vectors = np.linalg.eig(form.Q.toarray())
    condition = math.inf
    if np.linalg.cond(vectors) < _DEFECTIVE:
        condition = float(np.linalg.norm(vectors, np.inf) * np.linalg.norm(np.linalg.inv(vectors), np.inf))
    if condition > _DEFECTIVE:
        return None, None, "Q cannot be diagonalised within rounding"
    h = float(absorption_probabilities(form)[:, absorbers_in(form, target)].sum(axis=1).max(initial=0.0))
    if condition * h <= gap:
        return 0.0, condition, None
    return math.log(condition * h / float(gap)) / -math.log(radius), condition, None
