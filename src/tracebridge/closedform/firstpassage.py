"""When runs reach their end: the distribution of first passage times, step budgets and horizons.

``R(d) = Pr(F<=d success)`` is the probability that a run succeeds within a budget of d steps. It never decreases in d;
the "decay" in the literature's "reliability decay curve" is over the length of the task, not over the budget. A run
without a step is absorbed at time 0.

Distributions are computed forward, ``v <- v Q``, and never from a power of Q. Answers that are step counts (quantiles,
budgets, horizons) are proven for the exact chain: ``R_inf - R(d) = v Q^d h`` with ``h = N r`` is a positive quantity
that never increases, and it is compared in rigorous bounds, in ball arithmetic where doubles leave the comparison open,
and in rationals where it is a tie. Numbers given as floats are read as the decimals that print them: 0.9 is 9/10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice
from numbers import Rational
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tracebridge.chain.graph import reaching
from tracebridge.closedform import directed
from tracebridge.closedform.elimination import solve_enclosed, solve_exact
from tracebridge.closedform.fundamental import (
    Array,
    CanonicalForm,
    Chain,
    Entries,
    Scalar,
    absorbers_in,
    absorbing_form,
    complementary,
    long_run_split,
    scalar,
)
from tracebridge.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from flint import arb, arb_mat

    from tracebridge.chain.absorbing import AbsorbingChain
    from tracebridge.chain.rational import RationalMatrix

Target = str | Collection[str]

#: Up to this many states step counts are decided in ball arithmetic at once; up to the limit when doubles cannot.
_BALLS_FIRST = 48
_BALL_LIMIT = 250
_BALL_BITS = (128, 1024)
#: Forward recursions go this far before other means are tried: steps, and entries times steps.
_STEPS = 50_000
_ENTRY_STEPS = 2 * 10**9
_LONGEST = 10**8
#: Exact recursions stop at this many bit operations: steps squared times entries times bits of the denominator.
_EXACT_WORK = 10**12
_UNIT = 2.0**-53


# ---------------------------------------------------------------- distributions


def reliability(chain: Chain, d: int, *, target: Target = "success", exact: bool = False) -> Scalar:
    """``R(d)``, the probability to reach the target within d steps from the initial distribution (paper, eq. 1).

    Args:
        chain: an absorbing chain.
        d: the budget in steps, not negative.
        target: the label or state that means success, or several of them; all of its states must be absorbing.
        exact: compute in Fractions.

    Raises:
        ModelError: if the chain is not absorbing, or for a target that is unknown or not absorbing.
        UnsupportedError: for a budget beyond the reach of every method at this size.
    """
    form = absorbing_form(chain)
    return _split(form, absorbers_in(form, target), _step_count(d), exact=exact, both=False)[0]


def reliability_curve(chain: Chain, d_max: int, *, target: Target = "success", exact: bool = False) -> Array:
    """``R(0), ..., R(d_max)``, shape (d_max + 1,), non-decreasing (the reliability decay curve of the literature)."""
    return _cumulated(first_passage_pmf(chain, d_max, target=target, exact=exact))


def first_passage_pmf(chain: Chain, d_max: int, *, target: Target = "success", exact: bool = False) -> Array:
    """Probabilities to succeed in exactly 0, ..., d_max steps; shape (d_max + 1,). Their sum tends to R_inf."""
    form = absorbing_form(chain)
    return _Passage.into(form, absorbers_in(form, target), exact=exact).pmf(_step_count(d_max))


def absorption_time_pmf(chain: Chain, d_max: int, *, exact: bool = False) -> Array:
    """Probabilities that a run ends, however it ends, in exactly 0, ..., d_max steps; shape (d_max + 1,)."""
    form = absorbing_form(chain)
    return _Passage.into(form, _everywhere(form), exact=exact).pmf(_step_count(d_max))


def absorption_time_cdf(chain: Chain, d_max: int, *, exact: bool = False) -> Array:
    """Probabilities that a run has ended within 0, ..., d_max steps; shape (d_max + 1,)."""
    return _cumulated(absorption_time_pmf(chain, d_max, exact=exact))


def reliability_split(
    chain: Chain, d: int | None, *, target: Target = "success", exact: bool = False
) -> tuple[Scalar, Scalar]:
    """``(R(d), 1 - R(d))``, both accurate however small; ``d=None`` means no limit."""
    if d is None:
        return long_run_split(chain, target=target, exact=exact)
    form = absorbing_form(chain)
    return _split(form, absorbers_in(form, target), _step_count(d), exact=exact, both=True)


def _split(form: AbsorbingChain, hit: NDArray[np.bool_], d: int, *, exact: bool, both: bool) -> tuple[Scalar, Scalar]:
    """As `reliability_split`; without ``both`` only R(d) is as accurate, which may take fewer steps."""
    if exact:
        reached = sum(_Passage.into(form, hit, exact=True).pmf(d).tolist(), Fraction(0))
        return reached, 1 - reached
    system = CanonicalForm(form, exact=False)
    limit = _step_limit(system.size, len(system.Q.rows))
    v, ended = system.initial, system.initial_absorbed
    for _ in range(min(d, limit)):
        running = v.sum()
        settled = min(ended[hit].sum(), ended[~hit].sum()) if both else ended[hit].sum()
        if running <= 2.0**-60 * settled:
            break  # what still runs changes nothing
        ended = ended + system.R.left(v)
        v = system.Q.left(v)
    else:
        if d > limit:
            return _split_in_balls(_Passage.into(form, hit, exact=True), d)
    return complementary(ended[hit].sum(), ended[~hit].sum() + v.sum(), exact=False)


# ---------------------------------------------------------------- means


def mean_time_to_success(chain: Chain, *, target: Target = "success", exact: bool = False) -> Scalar:
    """``pi0 N h / R_inf``: expected steps of the runs that succeed; NaN if none can (there is nothing to average)."""
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    hit = absorbers_in(system.chain, target)
    visits = system.visits()
    success = (system.R.left(visits) + system.initial_absorbed)[hit].sum()
    if not success:
        return math.nan
    return scalar(visits @ system.solve(system.exits(hit)) / success, exact=exact)


def steps_per_failure(chain: Chain, *, target: Target = "success", exact: bool = False) -> Scalar:
    """``MTTA / (1 - R_inf)``: steps of operation for each run that does not succeed.

    Infinite if failure cannot be reached; NaN if, moreover, runs have no steps.
    """
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    hit = absorbers_in(system.chain, target)
    visits = system.visits()
    return _ratio(visits.sum(), (system.R.left(visits) + system.initial_absorbed)[~hit].sum(), exact=exact)


def runs_per_failure(chain: Chain, *, target: Target = "success", exact: bool = False) -> Scalar:
    """``1 / (1 - R_inf)``: runs for each run that does not succeed; infinite if failure cannot be reached."""
    return _ratio(1, long_run_split(chain, target=target, exact=exact)[1], exact=exact)


# ---------------------------------------------------------------- step counts, proven


def first_passage_quantile(
    chain: Chain, p: Scalar | int, *, target: Target = "success", given_success: bool = False
) -> float:
    """The smallest d with ``R(d) >= p``; infinite where no budget reaches p, in particular where ``R_inf < p``.

    With ``given_success`` the distribution is that of the runs that succeed, ``R(d) / R_inf`` (NaN if none can).

    Raises:
        UsageError: unless 0 <= p <= 1.
        UnsupportedError: if the chain is too large to decide a comparison that lies within rounding.
    """
    p = _probability(p)
    form = absorbing_form(chain)
    hit = absorbers_in(form, target)
    if given_success and not long_run_split(form, target=target)[0]:
        return math.nan
    if p == 0:
        return 0
    if given_success:
        return _first_step_within(form, hit, slope=1 - p, offset=Fraction(0))
    return _first_step_within(form, hit, slope=Fraction(1), offset=-p)


def budget_for(chain: Chain, reliability: Scalar | int, *, target: Target = "success") -> int | None:
    """The smallest budget d with ``R(d) >= reliability``; None where no budget is enough."""
    d = first_passage_quantile(chain, reliability, target=target)
    return None if math.isinf(d) else int(d)


def absorption_time_quantile(chain: Chain, p: Scalar | int) -> float:
    """The smallest d such that a run has ended within d steps with probability p or more.

    Infinite only for p = 1 in a chain with a cycle.
    """
    form = absorbing_form(chain)
    return _first_step_within(form, _everywhere(form), slope=Fraction(0), offset=1 - _probability(p))


def horizon(chain: Chain, gap: Scalar | int, *, target: Target = "success") -> float:
    """The smallest d with ``R_inf - R(d) <= gap``: the budget beyond which more steps buy at most ``gap``.

    Exact, where the paper's eq. 14 and `horizon_bound` are bounds. Infinite only for gap 0 in a chain with a cycle.

    Raises:
        UsageError: for a negative gap.
        UnsupportedError: if the chain is too large to decide a comparison that lies within rounding.
    """
    form = absorbing_form(chain)
    return _first_step_within(form, absorbers_in(form, target), slope=Fraction(0), offset=_gap(gap))


# ---------------------------------------------------------------- analytic bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricBound:
    """``R_inf - R(d) <= factor * rate**d`` for every d; rounded upwards.

    For any ``u > 0``, ``rate = max (Qu)_i / u_i`` (Collatz and Wielandt) and ``factor = (v.u) max(h / u)`` are such a
    bound. With u the Perron vector of an irreducible Q the rate is the spectral radius, and the bound is nearly tight.
    """

    factor: float
    rate: float

    def at(self, d: int) -> float:
        """The bound on ``R_inf - R(d)``."""
        return math.nextafter(self.factor * self.rate**d * (1 + 4 * _UNIT), math.inf)

    def horizon(self, gap: float) -> float:
        """The smallest d at which the bound is at most ``gap``; infinite if there is none."""
        if self.at(0) <= gap:
            return 0
        if gap <= 0 or self.rate >= 1:
            return math.inf
        d = 1 if self.rate == 0 else max(1, math.ceil(math.log(self.factor / gap) / -math.log(self.rate)))
        while self.at(d) > gap:
            d += 1
        while self.at(d - 1) <= gap:
            d -= 1
        return d


def perron_bound(chain: Chain, *, target: Target = "success") -> GeometricBound:
    """A geometric bound on the approach of R(d) to R_inf, from the Perron vector of Q on the states that matter.

    The vector comes from lazy power iteration, and the bound is a bound wherever the iteration stops. On a reducible
    Q it is valid, but not tight.
    """
    form = absorbing_form(chain)
    passage = _Passage.into(form, absorbers_in(form, target), exact=False)
    if passage.size == 0:
        return GeometricBound(factor=0.0, rate=0.0)
    u = CanonicalForm(form, exact=False).solve(np.ones(len(form.transient)))[passage.positions]
    work = len(u) + len(passage.Q.rows)
    for _ in range(min(10_000, 1000 + _ENTRY_STEPS // (10 * work))):
        ahead = passage.Q.right(u)
        ratios = ahead / u
        lazy = u + ahead  # half a step: periodic chains converge too
        lazy /= lazy.max()
        if np.ptp(ratios) <= 1e-14 * ratios.max() or lazy.min() < 1e-250:
            break
        u = lazy
    _, upper = passage.hitting_bounds()
    factor = float(passage.v @ u) * float((upper / u).max())
    rate = float((passage.Q.right(u) / u).max())
    once, per_step = 2 * (len(u) + 16) * _UNIT, 2 * passage.roundings_per_step * _UNIT
    return GeometricBound(factor=factor * (1 + once), rate=rate * (1 + per_step))


def horizon_bound(chain: Chain, gap: Scalar | int, *, target: Target = "success") -> float:
    """An upper bound on `horizon` from `perron_bound`; infinite where the bound never gets below ``gap``."""
    return perron_bound(chain, target=target).horizon(directed.down(_gap(gap)))


def spectral_radius(chain: Chain) -> float:
    """The spectral radius of Q, class by class: exactly zero for a chain without cycles."""
    Q = absorbing_form(chain).Q
    count, component = connected_components(Q, directed=True, connection="strong")
    sizes = np.bincount(component, minlength=count)
    diagonal = Q.diagonal()
    radius = float(diagonal.max(initial=0.0))
    for c in np.flatnonzero(sizes > 1).tolist():
        members = np.flatnonzero(component == c)
        if len(members) > 2000:
            raise UnsupportedError(f"the spectral radius of a class of {len(members)} states: use perron_bound")
        block = Q[members][:, members].toarray()
        radius = max(radius, float(np.abs(np.linalg.eigvals(block)).max()))
    return radius


def paper_horizon_heuristic(chain: Chain, gap: Scalar | int, *, target: Target = "success") -> int:
    """``ceil(log(R_inf / gap) / -log rho)``: a paper heuristic, not a bound.

    This is what Table IV of the paper tabulates (not its eq. 14). It can fall short of the exact `horizon` and is
    here for comparison only. 0 where ``R_inf <= gap``, and for chains without cycles (rho = 0).
    """
    allowed = float(_gap(gap))
    if allowed == 0:
        raise UsageError("the heuristic horizon needs a gap above zero")
    total = float(long_run_split(chain, target=target)[0])
    radius = spectral_radius(chain)
    if total <= allowed or radius == 0:
        return 0
    if radius >= 1:
        raise UnsupportedError("the spectral radius rounds to one: the heuristic has no value in doubles")
    return math.ceil(math.log(total / allowed) / -math.log(radius))


# ---------------------------------------------------------------- the passage behind all of them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Passage:
    """The part of a chain that matters for a passage into absorbing states: reached from the start and leading there.

    Attributes:
        form: the chain. target: where the passage leads, shape (n,).
        positions: the r states that matter, among the transient ones.
        v: initial mass, shape (r,). mass: initial mass already in the target. Q: shape (r, r).
        exits: one-step probabilities into the target, shape (r,).
        certain: whether nothing but the target can be reached, so that ``h = 1``.
    """

    form: AbsorbingChain
    target: NDArray[np.bool_]
    positions: NDArray[np.int64]
    v: Array
    mass: Scalar
    Q: Entries
    exits: Array
    certain: bool

    @classmethod
    def into(cls, form: AbsorbingChain, hit: NDArray[np.bool_], *, exact: bool) -> _Passage:
        """The passage into the absorbers where ``hit`` (shape (a,)) holds, in doubles or in Fractions."""
        system = CanonicalForm(form, exact=exact)
        chain = form.chain
        target = np.zeros(chain.n_states, dtype=np.bool_)
        target[form.absorbing[hit]] = True
        visited = chain.reachable_states()
        relevant = (visited & reaching(chain.transitions, target))[form.transient]
        positions = np.flatnonzero(relevant)
        renumbered = np.cumsum(relevant) - 1
        kept = relevant[system.Q.rows] & relevant[system.Q.columns]
        rows, columns = renumbered[system.Q.rows[kept]], renumbered[system.Q.columns[kept]]
        return cls(
            form=form,
            target=target,
            positions=positions,
            v=system.initial[positions],
            mass=scalar(system.initial_absorbed[hit].sum(), exact=exact),
            Q=Entries(rows, columns, system.Q.values[kept], (len(positions), len(positions))),
            exits=system.exits(hit)[positions],
            certain=not np.any(visited[form.absorbing] & ~hit),
        )

    @property
    def size(self) -> int:
        """The number r of states that matter."""
        return len(self.positions)

    # ------------------------------------------------------------ forward recursion

    def pmf(self, d_max: int) -> Array:
        """Probabilities of passage in exactly 0, ..., d_max steps; shape (d_max + 1,)."""
        if isinstance(self.mass, Fraction):
            pmf = np.full(d_max + 1, self.mass, dtype=object)
            for d, (v, bottom) in zip(range(1, d_max + 1), self.integer_steps(d_max), strict=False):
                pmf[d] = _dot(v, self.exits) / bottom
            return pmf
        if d_max > _LONGEST or d_max * len(self.Q.rows) > 10 * _ENTRY_STEPS:
            raise UnsupportedError(f"a distribution over {d_max} steps of {self.size} states is too long to list")
        probabilities = np.zeros(d_max + 1)
        probabilities[0] = self.mass
        v = self.v
        for d in range(1, d_max + 1):
            probabilities[d] = v @ self.exits
            v = self.Q.left(v)
            if not v.any():
                break
        return probabilities

    def integer_steps(self, d_max: int) -> Iterator[tuple[Array, int]]:
        """``v Q^d`` for d = 0, 1, ... as integers and their common denominator (for a passage in Fractions)."""
        scale = math.lcm(*(Fraction(x).denominator for x in self.Q.values.tolist()))
        bottom = math.lcm(*(Fraction(x).denominator for x in self.v.tolist()))
        if d_max**2 * (len(self.Q.rows) + self.size) * scale.bit_length() > _EXACT_WORK:
            raise UnsupportedError(f"{d_max} steps of {self.size} states are too much work in exact arithmetic")
        Q = Entries(self.Q.rows, self.Q.columns, _integers(self.Q.values, scale), self.Q.shape)
        v = _integers(self.v, bottom)
        while True:
            yield v, bottom
            v, bottom = Q.left(v), bottom * scale

    @property
    def roundings_per_step(self) -> int:
        """How many roundings of doubles one step puts on any path: normalising the row, products, sums."""
        widest = int(np.diff(self.form.chain.transitions.indptr).max(initial=0))
        into = int(np.bincount(self.Q.columns, minlength=1).max())
        return widest + into + 5

    # ------------------------------------------------------------ h, the probability of ever getting there

    def hitting_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rigorous lower and upper bounds in doubles on h of the exact chain; each of shape (r,)."""
        if self.certain:
            return np.ones(self.size), np.ones(self.size)
        P = self.form.chain.exact_transitions()
        (h,) = solve_enclosed(P, self._states, [self._exact_exits(P)])
        return h.lower, h.upper

    def exact_hitting(self) -> Array:
        """h of the exact chain in Fractions; shape (r,)."""
        h = np.full(self.size, Fraction(1), dtype=object)
        if not self.certain and self.size:
            P = self.form.chain.exact_transitions()
            h[:] = solve_exact(P, self._states, [self._exact_exits(P)])[0]
        return h

    @property
    def _states(self) -> NDArray[np.int64]:
        return self.form.transient[self.positions]

    def _exact_exits(self, P: RationalMatrix) -> list[Fraction]:
        into = np.zeros(self.form.chain.n_states, dtype=object)
        hits = self.target[P.indices]
        np.add.at(into, P.row_of_entry[hits], P.numerators[hits].astype(object))
        pairs = zip(into[self._states].tolist(), P.denominators[self._states].tolist(), strict=True)
        return [Fraction(int(top), int(bottom)) for top, bottom in pairs]

    def longest(self) -> float:
        """The smallest d with ``v Q^d = 0``; infinite with a cycle."""
        edges = csr_array((np.ones(len(self.Q.rows)), (self.Q.rows, self.Q.columns)), shape=self.Q.shape)
        components, _ = connected_components(edges, directed=True, connection="strong") if self.size else (0, None)
        if components < self.size or edges.diagonal().any():
            return math.inf
        import networkx as nx

        graph = nx.DiGraph(list(zip(self.Q.rows.tolist(), self.Q.columns.tolist(), strict=True)))
        return int(nx.dag_longest_path_length(graph)) + 1 if self.size else 0


# ---------------------------------------------------------------- deciding the first step


class _UndecidedError(Exception):
    """A comparison that lies within the bounds of the arithmetic in use."""


def _first_step_within(form: AbsorbingChain, hit: NDArray[np.bool_], *, slope: Fraction, offset: Fraction) -> float:
    """The smallest d with ``R_inf - R(d) <= slope * R_inf + offset``, proven for the exact chain; infinite if none."""
    if slope == 0 and offset >= 1:
        return 0
    passage = _Passage.into(form, hit, exact=False)
    if passage.size > _BALLS_FIRST:
        try:
            return _search_in_doubles(passage, slope, offset)
        except _UndecidedError:
            if passage.size > _BALL_LIMIT:
                raise UnsupportedError(
                    f"a step count of a chain with {passage.size} states cannot be decided: a comparison lies within "
                    "rounding, or the count is beyond a recursion in doubles"
                ) from None
    return _search_in_balls(_Passage.into(form, hit, exact=True), slope, offset)


def _search_in_doubles(passage: _Passage, slope: Fraction, offset: Fraction) -> float:
    """By forward recursion; every number carries the bound on the roundings behind it."""
    once = (
        passage.size + passage.form.chain.n_states + 16
    )  # roundings of the initial distribution and the product with h
    lower, upper = passage.hitting_bounds()

    def gap_bounds(v: Array, d: int) -> tuple[float, float]:
        roundings = (d * passage.roundings_per_step + once) * _UNIT
        relative = roundings / (1 - roundings)
        # The constant covers what underflow may have changed.
        return float(v @ lower) * (1 - relative) - 1e-300, float(v @ upper) * (1 + relative) + 1e-300

    least = most = slope + offset
    if not passage.certain:
        low, high = gap_bounds(passage.v, 0)
        around = Fraction(once, 2**52)
        least = slope * (Fraction(passage.mass) * (1 - around) + Fraction(low)) + offset
        most = slope * (Fraction(passage.mass) * (1 + around) + Fraction(high)) + offset
    if most < 0:
        return math.inf
    if least == most == 0:
        return passage.longest()
    if least <= 0:
        raise _UndecidedError
    least_double, most_double = directed.down(least), directed.up(most)
    v = passage.v
    for d in range(_step_limit(passage.size, len(passage.Q.rows))):
        low, high = gap_bounds(v, d)
        if high <= least_double:
            return d
        if low <= most_double:
            raise _UndecidedError
        v = passage.Q.left(v)
    raise _UndecidedError


def _search_in_balls(passage: _Passage, slope: Fraction, offset: Fraction) -> float:
    """By doubling in ball arithmetic of rising precision, and ties in rationals (for a passage in Fractions)."""
    from flint import ctx

    for bits in _BALL_BITS:
        with ctx.workprec(bits):
            try:
                tail = _Tail(passage)
                threshold = _ball(slope) * (_ball(passage.mass) + tail.gap(tail.v)) + _ball(offset)
                if threshold < 0:
                    return math.inf
                if threshold > 0:
                    return tail.first(threshold)
            except _UndecidedError:
                continue
    h = passage.exact_hitting()
    exact = slope * (Fraction(passage.mass) + _dot(passage.v, h)) + offset
    if exact < 0:
        return math.inf
    if exact == 0:
        return passage.longest()

    def settle(d: int) -> bool:
        v, bottom = next(islice(passage.integer_steps(d), d, None))
        return _dot(v, h) <= exact * bottom

    with ctx.workprec(_BALL_BITS[-1]):
        return _Tail(passage).first(_ball(exact), settle)


class _Tail:
    """``v Q^d h = R_inf - R(d)`` in ball arithmetic at the precision in force, for any d by doubling."""

    def __init__(self, passage: _Passage) -> None:
        from flint import arb_mat

        size = passage.size
        Q = arb_mat(size, size)
        system = arb_mat(size, size)
        for i in range(size):
            system[i, i] = 1
        for i, j, value in zip(passage.Q.rows.tolist(), passage.Q.columns.tolist(), passage.Q.values, strict=True):
            Q[i, j] = _ball(value)
            system[i, j] = _ball((i == j) - value)
        self.v = arb_mat(1, size, [_ball(value) for value in passage.v])
        self._powers = [Q]
        if passage.certain:
            self._h = arb_mat(size, 1, [1] * size)
            return
        try:
            self._h = system.solve(arb_mat(size, 1, [_ball(value) for value in passage.exits]))
        except ZeroDivisionError:  # the system is singular within the precision
            raise _UndecidedError from None

    def gap(self, vector: arb_mat) -> arb:
        """The probability of getting to the target from the masses in ``vector`` (1, r)."""
        return sum((vector * self._h).entries(), _ball(Fraction(0)))

    def doubled(self, k: int) -> arb_mat:
        """``Q^(2^k)``."""
        while len(self._powers) <= k:
            self._powers.append(self._powers[-1] * self._powers[-1])
        return self._powers[k]

    def after(self, d: int) -> arb_mat:
        """``v Q^d``, shape (1, r)."""
        vector = self.v
        for k in range(d.bit_length()):
            if d >> k & 1:
                vector = vector * self.doubled(k)
        return vector

    def first(self, threshold: arb, settle: Callable[[int], bool] | None = None) -> int:
        """The smallest d with ``v Q^d h <= threshold``; ``settle(d)`` answers where the balls overlap."""

        def within(d: int, vector: arb_mat) -> bool:
            gap = self.gap(vector)
            if gap <= threshold:
                return True
            if gap > threshold:
                return False
            if settle is None:
                raise _UndecidedError
            return settle(d)

        if within(0, self.v):
            return 0
        k, d, vector = 0, 0, self.v
        while not within(1 << k, ahead := self.v * self.doubled(k)):
            k, d, vector = k + 1, 1 << k, ahead
        for j in reversed(range(k - 1)):
            ahead = vector * self.doubled(j)
            if not within(d + (1 << j), ahead):
                d, vector = d + (1 << j), ahead
        return d + 1


def _split_in_balls(passage: _Passage, d: int) -> tuple[float, float]:
    """``(R(d), 1 - R(d))`` for budgets beyond recursion, both to the last bit of a double."""
    from flint import ctx

    for bits in _BALL_BITS if passage.size <= _BALL_LIMIT else ():
        with ctx.workprec(bits):
            try:
                tail = _Tail(passage)
            except _UndecidedError:
                continue
            hit = _ball(passage.mass) + tail.gap(tail.v) - tail.gap(tail.after(d))
            missed = 1 - hit
            if min(hit.rel_accuracy_bits(), missed.rel_accuracy_bits()) > 60:
                return float(hit.mid()), float(missed.mid())
    raise UnsupportedError(f"a budget of {d} steps is too long for a chain with {passage.size} states: leave it out")


# ---------------------------------------------------------------- numbers


def _ball(value: Scalar | int) -> arb:
    from flint import arb, fmpq

    fraction = Fraction(value)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def _step_limit(states: int, entries: int) -> int:
    """How many steps a recursion in doubles takes before something else, or nothing, is tried."""
    return _STEPS if states <= _BALL_LIMIT else max(_STEPS, _ENTRY_STEPS // max(1, entries))


def _integers(values: Array, scale: int) -> Array:
    integers = np.empty(len(values), dtype=object)
    integers[:] = [int(value * scale) for value in values.tolist()]
    return integers


def _dot(x: Array, y: Array) -> Fraction:
    return sum((a * b for a, b in zip(x.tolist(), y.tolist(), strict=True)), Fraction(0))


def _cumulated(pmf: Array) -> Array:
    if pmf.dtype != object:
        return np.asarray(np.minimum(np.cumsum(pmf), 1.0))
    curve = np.empty(len(pmf), dtype=object)
    curve[:] = list(accumulate(pmf.tolist()))
    return curve


def _everywhere(form: AbsorbingChain) -> NDArray[np.bool_]:
    return np.ones(len(form.absorbing), dtype=np.bool_)


def _ratio(top: Any, bottom: Any, *, exact: bool) -> Scalar:
    if not bottom:
        return math.inf if top else math.nan
    return scalar(top, exact=exact) / scalar(bottom, exact=exact)


def _step_count(d: int) -> int:
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 0:
        raise UsageError(f"a number of steps is an integer, zero or more, not {d!r}")
    return int(d)


def rational(value: Scalar | int) -> Fraction:
    """The number as a user wrote it: a float stands for the shortest decimal that prints it, 0.9 for 9/10."""
    if isinstance(value, Rational):
        return Fraction(value)
    number = float(value)
    if not math.isfinite(number):
        raise UsageError(f"a finite number is needed, not {value!r}")
    return Fraction(repr(number))


def _probability(p: Scalar | int) -> Fraction:
    number = rational(p)
    if not 0 <= number <= 1:
        raise UsageError(f"a probability lies between 0 and 1, {p!r} does not")
    return number


def _gap(gap: Scalar | int) -> Fraction:
    number = rational(gap)
    if number < 0:
        raise UsageError(f"a gap is zero or more, not {gap!r}")
    return number
