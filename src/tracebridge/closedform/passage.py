"""The passage of a chain into some of its absorbing states, behind distributions, step counts and bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tracebridge.chain.graph import reaching
from tracebridge.closedform.absorbing_system import AbsorbingSystem, Scalar, scalar
from tracebridge.closedform.enclosed_solution import solve_enclosed
from tracebridge.closedform.entries import Array, Entries
from tracebridge.closedform.rational_solution import solve_exact
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.absorbing import AbsorbingChain
    from tracebridge.chain.rational import RationalMatrix

#: Step counts of up to so many states are decided in ball arithmetic where doubles cannot.
BALL_LIMIT = 250

#: Forward recursions go this far before other means are tried: steps, and entries times steps.
ENTRY_STEPS = 2 * 10**9
_STEPS = 50_000
_LONGEST = 10**8
#: Exact recursions stop at this many bit operations: steps squared times entries times bits of the denominator.
_EXACT_WORK = 10**12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passage:
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
    def into(cls, form: AbsorbingChain, hit: NDArray[np.bool_], *, exact: bool) -> Passage:
        """The passage into the absorbers where ``hit`` (shape (a,)) holds, in doubles or in Fractions."""
        system = AbsorbingSystem(form, exact=exact)
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
                pmf[d] = dot(v, self.exits) / bottom
            return pmf
        if d_max > _LONGEST or d_max * len(self.Q.rows) > 10 * ENTRY_STEPS:
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


def step_limit(states: int, entries: int) -> int:
    """How many steps a recursion in doubles takes before something else, or nothing, is tried."""
    return _STEPS if states <= BALL_LIMIT else max(_STEPS, ENTRY_STEPS // max(1, entries))


def dot(x: Array, y: Array) -> Fraction:
    """The inner product of rationals or integers."""
    return sum((a * b for a, b in zip(x.tolist(), y.tolist(), strict=True)), Fraction(0))


def every_absorber(form: AbsorbingChain) -> NDArray[np.bool_]:
    """The mask of all absorbing states, shape (a,)."""
    return np.ones(len(form.absorbing), dtype=np.bool_)


def _integers(values: Array, scale: int) -> Array:
    integers = np.empty(len(values), dtype=object)
    integers[:] = [int(value * scale) for value in values.tolist()]
    return integers
