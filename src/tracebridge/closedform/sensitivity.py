"""How reliability and run lengths move when transition probabilities do.

Everything here is *visits times worth*: how often a run is in a row, times what the row's changes are worth. Let
``x = N b`` be the worth of states and ``dQ``, ``db`` the changes of rows, exits among them. Then, with N' that of the
changed chain::

    pi0 x' - pi0 x  =  pi0 N' (dQ x + db)        exactly: the visits of the changed chain, one solve
                    ~  pi0 N  (dQ x + db)        to first order: the visits of the chain as it is

For one changed row ``pi0 N'`` is the formula of Sherman and Morrison; the solve serves any number of rows. Within a
budget of d steps the same holds with the occupancy after t steps and the worth of the d - 1 - t steps left, summed over
t. The norm bound of the literature stands beside them; it is far from tight.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.edit import RowChange, checked_changes, edited
from tracebridge.chain.rational import RationalVector
from tracebridge.closedform.absorbing_system import (
    AbsorbingSystem,
    Chain,
    Scalar,
    absorbers_in,
    absorbing_form,
    scalar,
)
from tracebridge.closedform.entries import Array, object_array
from tracebridge.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.absorbing import AbsorbingChain
    from tracebridge.closedform.firstpassage import Target

#: Numbers that a gradient may hold: steps of the budget times states.
GRADIENT_LIMIT = 5 * 10**7

_ROWS_AT_A_TIME = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a change does to one number.

    Attributes:
        before: the number for the chain as it is.
        change: what the change adds to it, exactly (up to rounding, in doubles).
        first_order: what the derivative says it adds.
    """

    before: Scalar
    change: Scalar
    first_order: Scalar

    @property
    def after(self) -> Scalar:
        """The number for the changed chain."""
        return self.before + self.change


@dataclass(frozen=True, slots=True, kw_only=True)
class NormBound:
    """The norm bound on a change of R_inf: a true statement, but loose, often above 1 and so empty.

    Attributes:
        value: ``|change of R_inf| <= value``; None where the bound says nothing.
        smallness: ``|N| |dQ|`` in row-sum norms, which must be below 1.
        reason: why there is no value.
    """

    value: Scalar | None
    smallness: Scalar
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLeverage:
    """How much the number depends on one row.

    Attributes:
        state: the state whose row it is. visits: expected visits to it.
        leverage: visits times the standard deviation of the successors' worth: the steepest first-order change of the
            number per unit of ``sqrt(sum of change^2 / probability)`` of the row, within its support. Divided by the
            square root of the row's count it is the row's part of the number's standard error (delta method).
        best, worst: the states that would raise and lower the number most if the row led there more often.
        gain, loss: the first-order change of the number per unit share of the row redirected to these; gain is not
            negative, loss not positive.
    """

    state: str
    visits: Scalar
    leverage: float
    best: str
    gain: Scalar
    worst: str
    loss: Scalar


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gradient:
    """The derivative of a number with respect to every transition probability, as a product of thin matrices.

    The derivative with respect to ``P[i, j]``, all other entries fixed, is ``(occupancy @ worth)[i, j]``. A row's
    probabilities sum to one, so that only its differences within a row mean something: moving probability from j to k.

    Attributes:
        form: the chain. value: the number itself.
        occupancy: shape (m, r), of the transient states. For R(d) column t is the distribution after t steps.
        worth: shape (r, n), of all states of the chain. For R(d) row t is the probability to succeed from there in what
            is left of the budget. For R_inf and the mean time r is 1.
    """

    form: AbsorbingChain
    value: Scalar
    occupancy: Array
    worth: Array

    def matrix(self) -> Array:
        """All derivatives; shape (m, n). Raises UnsupportedError if that is too large to form."""
        _require_size(self.occupancy.shape[0] * self.worth.shape[1])
        return np.asarray(self.occupancy @ self.worth)

    def entry(self, source: str, target: str) -> Scalar:
        """The derivative with respect to the probability from one state to another, by their names.

        Raises:
            ModelError: for a name that is no state. UsageError: for an absorbing source.
        """
        chain = self.form.chain
        i = int(np.searchsorted(self.form.transient, chain.index(source)))
        if i == len(self.form.transient) or self.form.transient[i] != chain.index(source):
            raise UsageError(f"{source!r} is where runs end: it has no probabilities to move")
        return scalar(self.occupancy[i] @ self.worth[:, chain.index(target)])

    def along(self, changes: Iterable[RowChange]) -> Scalar:
        """The first-order change of the number when rows change. Raises ModelError as `checked_changes` does."""
        exact = self.worth.dtype == object
        total: Any = Fraction(0) if exact else 0.0
        for i, by in checked_changes(self.form.chain, changes).items():
            row = self.occupancy[np.searchsorted(self.form.transient, i)]
            for j, change in by.items():
                total += (change if exact else float(change)) * (row @ self.worth[:, j])
        return scalar(total, exact=exact)

    def ranking(self) -> list[RowLeverage]:
        """The rows, those that the number depends on most first (ties in the order of the chain)."""
        exact = self.worth.dtype == object
        rows = self._rows()
        visits = self.occupancy.sum(axis=1)
        found = []
        for begin in range(0, len(rows), _ROWS_AT_A_TIME):
            derivatives = self.occupancy[begin : begin + _ROWS_AT_A_TIME] @ self.worth
            for i, row in enumerate(derivatives, start=begin):
                found.append(self._leverage(i, row, scalar(visits[i], exact=exact), *rows[i]))
        return sorted(found, key=lambda item: -item.leverage)  # a stable sort

    def _rows(self) -> list[tuple[NDArray[np.int64], Array]]:
        """Successors and their probabilities, for each transient state."""
        chain, found = self.form.chain, []
        matrix = chain.exact_transitions() if self.worth.dtype == object else None
        P = chain.transitions
        for position in self.form.transient.tolist():
            if matrix is not None:
                row = matrix.row(position)
                found.append((np.array(list(row), dtype=np.int64), object_array(list(row.values()))))
            else:
                span = slice(int(P.indptr[position]), int(P.indptr[position + 1]))
                found.append((P.indices[span], P.data[span] / P.data[span].sum()))
        return found

    def _leverage(
        self, i: int, derivatives: Array, visits: Scalar, successors: NDArray[np.int64], probabilities: Array
    ) -> RowLeverage:
        exact = derivatives.dtype == object
        states = self.form.chain.states
        mean = probabilities @ derivatives[successors]
        spread = probabilities @ (derivatives[successors] - mean) ** 2
        best, worst = int(np.argmax(derivatives)), int(np.argmin(derivatives))
        zero: Scalar = Fraction(0) if exact else 0.0
        return RowLeverage(
            state=states[int(self.form.transient[i])],
            visits=visits,
            leverage=math.sqrt(spread),
            best=states[best],
            gain=max(scalar(derivatives[best] - mean, exact=exact), zero),
            worst=states[worst],
            loss=min(scalar(derivatives[worst] - mean, exact=exact), zero),
        )


# ---------------------------------------------------------------- gradients


def reliability_gradient(
    chain: Chain, *, d: int | None = None, target: Target = "success", exact: bool = False
) -> Gradient:
    """The gradient of R(d), or of R_inf where d is None, with respect to every transition probability.

    Args:
        chain: an absorbing chain. d: the budget in steps. target: what counts as success. exact: compute in Fractions.

    Raises:
        ModelError: if the chain is not absorbing, or for a target that is unknown or not absorbing.
        UnsupportedError: if the budget times the states exceeds `GRADIENT_LIMIT`.
    """
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    hit = absorbers_in(system.chain, target)
    occupancy, worth = _occupancy(system, d), _worth_of_success(system, hit, d)
    earned = occupancy.sum(axis=1) @ system.exits(hit) + system.initial_absorbed[hit].sum()
    return Gradient(form=system.chain, value=scalar(earned, exact=exact), occupancy=occupancy, worth=worth)


def mean_time_gradient(chain: Chain, *, exact: bool = False) -> Gradient:
    """The gradient of the mean time to absorption, in steps; arguments as for `reliability_gradient`."""
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    visits = system.visits()
    worth = _on_all_states(system, system.solve(system.ones()), np.zeros(system.R.shape[1], dtype=np.bool_))
    value = scalar(visits.sum(), exact=exact)
    return Gradient(form=system.chain, value=value, occupancy=visits[:, None], worth=worth[None, :])


# ---------------------------------------------------------------- effects of a change


def reliability_effect(
    chain: Chain,
    changes: Collection[RowChange],
    *,
    d: int | None = None,
    target: Target = "success",
    exact: bool = False,
) -> Effect:
    """What changed rows do to R(d), or to R_inf where d is None: exactly, and to first order.

    Args:
        changes: at most one a row; see `tracebridge.chain.edit.row_changes`. The rest: see `reliability_gradient`.

    Raises:
        ModelError: if a probability leaves 0..1, or a run of the changed chain may never end; else as
            `reliability_gradient`.
    """
    base = _in_arithmetic(absorbing_form(chain), exact=exact)
    return _effect(reliability_gradient(base, d=d, target=target, exact=exact), changes, d)


def mean_time_effect(chain: Chain, changes: Collection[RowChange], *, exact: bool = False) -> Effect:
    """What changed rows do to the mean time to absorption, in steps; arguments as for `reliability_effect`."""
    base = _in_arithmetic(absorbing_form(chain), exact=exact)
    return _effect(mean_time_gradient(base, exact=exact), changes, None)


def norm_bound(
    chain: Chain, changes: Collection[RowChange], *, target: Target = "success", exact: bool = False
) -> NormBound:
    """``|N|^2 |dQ| |r| / (1 - |N| |dQ|)``, which bounds the change of R_inf (paper, Proposition 2).

    The norms are largest row sums. This is the sum of the paper's linear term and remainder for this very change. It
    holds where ``|N| |dQ| < 1`` and exits stay as they are. `reliability_effect` is exact, and no more work.
    """
    form = absorbing_form(chain)
    system = AbsorbingSystem(form, exact=exact)
    transient = set(form.transient.tolist())
    found = checked_changes(form.chain, changes).values()
    sizes = [sum((abs(change) for j, change in by.items() if j in transient), Fraction(0)) for by in found]
    size: Any = max(sizes, default=Fraction(0))
    longest: Any = max(system.solve(system.ones()).tolist(), default=Fraction(0))
    exit_: Any = max(system.exits(absorbers_in(form, target)).tolist(), default=Fraction(0))
    if not exact:
        size = float(size)
    smallness = scalar(longest * size, exact=exact)
    if any(j not in transient for by in found for j in by):
        return NormBound(value=None, smallness=smallness, reason="the bound is for exits that stay as they are")
    if smallness >= 1:
        reason = "the change is too large for the bound: |N| |dQ| is not below 1"
        return NormBound(value=None, smallness=smallness, reason=reason)
    value = longest * smallness * exit_ / (1 - smallness)
    return NormBound(value=scalar(value, exact=exact), smallness=smallness)


# ---------------------------------------------------------------- behind them


def _effect(gradient: Gradient, changes: Collection[RowChange], d: int | None) -> Effect:
    changed = absorbing_form(edited(gradient.form.chain, changes))
    system = AbsorbingSystem(changed, exact=gradient.worth.dtype == object)
    # The worth of states is that of the chain before the change: the two together are exact, not first order.
    return Effect(
        before=gradient.value,
        change=replace(gradient, occupancy=_occupancy(system, d)).along(changes),
        first_order=gradient.along(changes),
    )


def _in_arithmetic(form: AbsorbingChain, *, exact: bool) -> Chain:
    """The chain itself, or in exact mode the rational chain that its doubles denote, so that no change is rounded."""
    chain = form.chain
    if not exact or chain.is_exact:
        return form
    transitions: Any = chain.exact_transitions()
    initial: Any = RationalVector.from_fractions(chain.exact_initial())
    return replace(chain, transitions=transitions, rationals=None, initial=initial, initial_rationals=None)


def _occupancy(system: AbsorbingSystem, d: int | None) -> Array:
    """Expected visits, shape (m, 1), or the distribution after 0, ..., d - 1 steps, shape (m, d)."""
    if d is None:
        return system.visits()[:, None]
    columns = _budget_array(system, d, system.size).T
    v = system.initial
    for t in range(d):
        columns[:, t] = v
        v = system.Q.left(v)
    return columns


def _worth_of_success(system: AbsorbingSystem, hit: NDArray[np.bool_], d: int | None) -> Array:
    """The probability of success from every state, shape (1, n); or with d - 1, ..., 0 steps left, shape (d, n)."""
    exits = system.exits(hit)
    if d is None:
        h = system.solve(exits)
        return _on_all_states(system, h if system.exact else np.minimum(h, 1.0), hit)[None, :]
    rows = _budget_array(system, d, system.chain.chain.n_states)
    u = 0 * exits
    for t in range(d - 1, -1, -1):
        rows[t] = _on_all_states(system, u, hit)
        u = system.Q.right(u) + exits
    return rows


def _budget_array(system: AbsorbingSystem, d: int, width: int) -> Array:
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 0:
        raise UsageError(f"a number of steps is an integer, zero or more, not {d!r}")
    _require_size(d * system.chain.chain.n_states)
    return np.zeros((d, width), dtype=object if system.exact else np.float64)


def _require_size(numbers: int) -> None:
    if numbers > GRADIENT_LIMIT:
        raise UnsupportedError(
            f"the gradient has {numbers} numbers (limit {GRADIENT_LIMIT}): ask for a smaller budget or single entries"
        )


def _on_all_states(system: AbsorbingSystem, x: Array, hit: NDArray[np.bool_]) -> Array:
    """The vector of the transient states with ones in the absorbers of ``hit`` and zeros in the others; shape (n,)."""
    whole = np.zeros(system.chain.chain.n_states, dtype=object if system.exact else np.float64)
    if system.exact:
        whole[:] = Fraction(0)
    whole[system.chain.transient] = x
    whole[system.chain.absorbing[hit]] = Fraction(1) if system.exact else 1.0
    return whole
