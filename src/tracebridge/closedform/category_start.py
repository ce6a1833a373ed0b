"""What a number "from category x" is in an expanded chain: the mean over its copies, weighted by expected visits.

A category has a copy for every past that is remembered, and no copy may stand for all. A visit to the category, drawn
among all the visits that runs make to it, is in copy i with probability ``n_i / sum n`` over the copies, where ``n =
pi0 N`` are expected visits; in that sense all numbers of categories here are those of a visit. In a plain chain each
category is one state and nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.expanded.copies import category_copies
from tracebridge.closedform.absorbing_system import Chain, absorbing_form, scalar
from tracebridge.closedform.entries import Array, object_array
from tracebridge.closedform.fundamental import expected_visits
from tracebridge.closedform.sensitivity import Gradient, RowLeverage
from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.absorbing_system import Scalar

    Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CategoryVisits:
    """The categories of a chain with their copies among its m transient states.

    Attributes:
        copies: positions in `AbsorbingChain.transient_states` by category; each state by itself in a plain chain.
        visits: expected visits to the transient states, shape (m,); float64 or Fractions.
    """

    copies: Mapping[str, Integers]
    visits: Array

    def total(self, values: Array) -> list[Scalar]:
        """Sums over the copies of each category of values of transient states, shape (m,)."""
        return [self._scalar(values[own].sum()) for own in self.copies.values()]

    def mean(self, values: Array) -> list[Scalar]:
        """Means over the visits to each category; NaN for one that no run visits."""
        return [self.mean_of(name, values) for name in self.copies]

    def mean_of(self, category: str, values: Array) -> Scalar:
        """The mean over the visits to one category. Raises KeyError for another name."""
        own = self.copies[category]
        visits = self.visits[own]
        total = visits.sum()
        return self._scalar((visits @ values[own]) / total) if total else math.nan

    def _scalar(self, value: Any) -> Scalar:
        return scalar(value, exact=self.visits.dtype == object)


def category_visits(chain: Chain, *, exact: bool = False) -> CategoryVisits:
    """The categories of an absorbing chain and the expected visits to their copies. Raises as `expected_visits`."""
    form = absorbing_form(chain)
    copies = category_copies(form.chain)
    if not copies:
        alone = {name: np.array([i]) for i, name in enumerate(form.transient_states)}
        return CategoryVisits(copies=alone, visits=expected_visits(form, exact=exact))
    place = np.full(form.chain.n_states, -1, dtype=np.int64)
    place[form.transient] = np.arange(len(form.transient))
    return CategoryVisits(
        copies={name: place[positions] for name, positions in copies.items()},
        visits=expected_visits(form, exact=exact),
    )


def category_start(chain: Chain, category: str, *, exact: bool = False) -> Array:
    """The distribution over all n states of the chain that "from this category" means, shape (n,).

    Args:
        chain: an absorbing chain. category: the name of a category, or of a single state, which stands for itself.
        exact: compute in Fractions.

    Raises:
        ModelError: for a name that is neither, or a category that no run visits; or as `expected_visits`.
    """
    form = absorbing_form(chain)
    n = form.chain.n_states
    start: Array = object_array([Fraction(0)] * n) if exact else np.zeros(n)
    known = category_visits(form, exact=exact)
    if category not in known.copies or len(known.copies[category]) == 1:
        if category not in known.copies and category not in form.chain.states:
            names = ", ".join(repr(name) for name in list(known.copies)[:8])
            raise ModelError(f"there is no category {category[:80]!r}; there are {names}")
        position = form.transient[known.copies[category][0]] if category in known.copies else form.chain.index(category)
        start[position] = Fraction(1) if exact else 1.0
        return start
    own = known.copies[category]
    visits = known.visits[own]
    total = visits.sum()
    if not total:
        raise ModelError(f"no run visits {category!r}, so that no copy of it is more likely than another")
    start[form.transient[own]] = visits / total
    return start


# ---------------------------------------------------------------- what the number depends on


def category_ranking(gradient: Gradient) -> list[RowLeverage]:
    """The rows of whole categories, those that the number depends on most first; `Gradient.ranking` in a plain chain.

    ``visits`` are those to all copies. ``leverage`` is the root of the sum of the squares of the copies': the steepest
    change per unit of the root of the sum over all copies of ``change^2 / probability``. ``gain`` and ``loss`` are
    first-order changes per unit share of all rows redirected to the category, where each copy leads to the copies of
    the target that it leads to anyway (see `tracebridge.chain.edit`); targets that some copy never leads to are left
    out.
    """
    form = gradient.form
    copies = category_copies(form.chain)
    if not copies:
        return gradient.ranking()
    exact = gradient.worth.dtype == object
    chain, m = form.chain, len(form.transient)
    names = [*copies, *form.absorbing_states]
    target_of = np.full(chain.n_states, -1, dtype=np.int64)
    for k, positions in enumerate(copies.values()):
        target_of[positions] = k
    target_of[form.absorbing] = len(copies) + np.arange(len(form.absorbing))
    row, column, probability = _entries(gradient)
    derivative = _derivatives(gradient, row, column)
    mean = _sums(row, probability * derivative, m)
    spread = _sums(row, probability * (derivative - mean[row]) ** 2, m)
    kind = row * len(names) + target_of[column]
    share = _sums(kind, probability, m * len(names))
    leads = share > 0
    worth = _sums(kind, probability * derivative, m * len(names))
    worth[leads] = worth[leads] / share[leads]
    worth, leads = worth.reshape(m, -1) - mean[:, None], leads.reshape(m, -1)
    visits = gradient.occupancy.sum(axis=1)
    place = np.full(chain.n_states, -1, dtype=np.int64)
    place[form.transient] = np.arange(m)
    found = []
    for name, positions in copies.items():
        own = place[positions]
        possible = np.flatnonzero(leads[own].all(axis=0))
        changes = worth[own][:, possible].sum(axis=0)
        best, worst = int(np.argmax(changes)), int(np.argmin(changes))
        zero: Scalar = Fraction(0) if exact else 0.0
        found.append(
            RowLeverage(
                state=name,
                visits=scalar(visits[own].sum(), exact=exact),
                leverage=math.sqrt(spread[own].sum()),
                best=names[possible[best]],
                gain=max(scalar(changes[best], exact=exact), zero),
                worst=names[possible[worst]],
                loss=min(scalar(changes[worst], exact=exact), zero),
            )
        )
    return sorted(found, key=lambda item: -item.leverage)  # a stable sort


def _entries(gradient: Gradient) -> tuple[Integers, Integers, Array]:
    """Rows (among transient states), columns and probabilities of the transitions of transient states."""
    form = gradient.form
    place = np.full(form.chain.n_states, -1, dtype=np.int64)
    place[form.transient] = np.arange(len(form.transient))
    P: Any = form.chain.transitions
    probability: Array
    if gradient.worth.dtype == object:
        P = form.chain.exact_transitions()
        bottoms = P.denominators[P.row_of_entry].tolist()
        pairs = zip(P.numerators.tolist(), bottoms, strict=True)
        probability = object_array([Fraction(top, bottom) for top, bottom in pairs])
    else:
        probability = P.data / np.repeat(np.asarray(P.sum(axis=1)).ravel(), np.diff(P.indptr))
    row = np.repeat(place, np.diff(P.indptr))
    kept = row >= 0
    return row[kept], P.indices[kept].astype(np.int64), probability[kept]


def _derivatives(gradient: Gradient, row: Integers, column: Integers) -> Array:
    """The derivative of the number with respect to the probabilities of these transitions."""
    total: Array = gradient.occupancy[row, 0] * gradient.worth[0, column]
    for t in range(1, gradient.worth.shape[0]):
        total = total + gradient.occupancy[row, t] * gradient.worth[t, column]
    return total


def _sums(place: Integers, values: Array, size: int) -> Array:
    """Sums of the values at each of ``size`` places."""
    if values.dtype != object:
        return np.bincount(place, values, minlength=size)
    total = object_array([Fraction(0)] * size)
    np.add.at(total, place, values)
    return total
