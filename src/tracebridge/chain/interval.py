"""IntervalChain: the Markov chains whose every transition probability lies between two bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.model_problems import problem, refuse_if_any
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import ModelError, Problem

if TYPE_CHECKING:
    Mask = NDArray[np.bool_]

#: Half the distance from one to the next double.
_UNIT = 2.0**-53
_SMALLEST = 5e-324


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalChain:
    """A set of Markov chains over the same states: any row between its bounds that sums to one, in each state.

    The bounds are doubles taken exactly, and a row is free of the others (rectangular uncertainty). What is meant by
    the choice of rows is up to the question: once for all, which makes the set of *members*, or anew at each step, the
    interval-MDP reading of `tracebridge.closedform.robust`.

    Attributes:
        states: n unique, non-empty names.
        lower, upper: CSR of shape (n, n) over the same edges, those with ``upper > 0``; zeros of ``lower`` are stored.
            They may be given over different edges.
        initial: the initial distribution, shape (n,), which is no interval.
        labels, rewards: as in `MarkovChain`.
        member: one chain of the set, with the same states, labels and rewards: each row at the same fraction of the way
            from its lower to its upper bounds.

    Raises:
        ModelError: naming the states, unless ``0 <= lower <= upper <= 1``, each row has ``sum lower <= 1 <= sum upper``
            (exactly: bounds that come from rounding are to be rounded outward, see `around`), and a state that only
            returns to itself has the bounds [1, 1]; and as `MarkovChain`.
    """

    states: tuple[str, ...]
    lower: csr_array
    upper: csr_array
    initial: NDArray[np.float64]
    labels: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    rewards: Mapping[str, RewardStructure] = field(default_factory=dict)
    member: MarkovChain = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "states", tuple(self.states))
        n = len(self.states)
        for name in ("lower", "upper"):
            shape = getattr(self, name).shape
            if shape != (n, n):
                raise ModelError(f"{n} states need {n} x {n} {name} bounds, not {shape}")
        lower, upper, problems = _aligned(self.states, self.lower, self.upper)
        problems = problems or _entry_problems(self.states, lower, upper) or _row_problems(self.states, lower, upper)
        refuse_if_any(problems)
        member = MarkovChain(
            states=self.states,
            transitions=_between(lower, upper),
            initial=self.initial,
            labels=self.labels,
            rewards=self.rewards,
        )
        for array in (lower.data, upper.data, upper.indices, upper.indptr):
            array.flags.writeable = False
        set_(self, "lower", lower)
        set_(self, "upper", upper)
        set_(self, "initial", member.initial)
        set_(self, "labels", member.labels)
        set_(self, "rewards", member.rewards)
        set_(self, "member", member)

    @classmethod
    def around(cls, chain: MarkovChain, radius: float = 0.0) -> IntervalChain:
        """All chains whose entries differ from those of ``chain`` by no more than ``radius``, on its edges.

        Bounds are rounded outward, so that the exact chain that the doubles stand for is among them. No edge vanishes
        with a radius of zero; with a larger one an edge of at most that probability may. Absorbing states stay so.

        Raises:
            ModelError: for a radius that is negative or no number.
        """
        if not radius >= 0 or math.isinf(radius):
            raise ModelError(f"a radius is a finite number of zero or more, not {radius!r}")
        P = chain.transitions
        sizes = np.diff(P.indptr)
        # A row of doubles stands for itself divided by its exact sum, a row of rationals is off by one rounding.
        doubt = np.abs(np.add.reduceat(P.data, P.indptr[:-1]) - 1) + (sizes + 4) * _UNIT
        relative = np.repeat(doubt, sizes)
        low = np.nextafter(P.data * (1 - relative) - radius, -np.inf)
        high = np.nextafter(P.data * (1 + relative) + radius, np.inf)
        low = np.maximum(low, _SMALLEST) if radius == 0 else np.maximum(low, 0.0)
        alone = np.repeat(sizes == 1, sizes)  # the only successor is certain
        lower, upper = np.where(alone, 1.0, low), np.where(alone, 1.0, np.minimum(high, 1.0))
        return cls(
            states=chain.states,
            lower=csr_array((lower, P.indices, P.indptr), shape=P.shape),
            upper=csr_array((upper, P.indices, P.indptr), shape=P.shape),
            initial=chain.initial,
            labels=chain.labels,
            rewards=chain.rewards,
        )

    @property
    def n_states(self) -> int:
        """The number of states n."""
        return len(self.states)

    @property
    def absorbing(self) -> Mask:
        """States whose only successor is themselves, shape (n,)."""
        single = np.diff(self.upper.indptr) == 1
        alone = np.zeros(self.n_states, dtype=np.bool_)
        alone[single] = self.upper.indices[self.upper.indptr[:-1][single]] == np.flatnonzero(single)
        return alone

    def label(self, name: str) -> Mask:
        """Where the label holds; see `MarkovChain.label`.

        Raises:
            ModelError: for an unknown label.
        """
        return self.member.label(name)

    def contains(self, chain: MarkovChain) -> bool:
        """Whether every transition of ``chain``, as a double, lies between the bounds; its states are in this order."""
        if chain.states != self.states:
            return False
        P = chain.transitions
        edges, given = _keys(self.upper), _keys(P)
        place = np.minimum(np.searchsorted(edges, given), len(edges) - 1)
        if not np.array_equal(edges[place], given):
            return False
        values = np.zeros(len(edges))
        values[place] = P.data
        return bool(np.all((self.lower.data <= values) & (values <= self.upper.data)))

    def __repr__(self) -> str:
        return f"<IntervalChain of {self.n_states} states, {self.upper.nnz} transitions>"


def compared_with_one(values: NDArray[np.float64], indptr: NDArray[np.int64]) -> NDArray[np.int8]:
    """The sign of ``sum - 1`` for each row of non-negative values laid end to end, none empty; exact."""
    sizes = np.diff(indptr)
    sums = np.add.reduceat(values, indptr[:-1])
    signs = np.sign(sums - 1).astype(np.int8)
    for i in np.flatnonzero(np.abs(sums - 1) <= 2 * sizes * _UNIT * np.maximum(sums, 1)).tolist():
        exact = math.fsum([*values[indptr[i] : indptr[i + 1]].tolist(), -1.0])  # correctly rounded: its sign is exact
        signs[i] = (exact > 0) - (exact < 0)
    return np.asarray(signs)


def _aligned(states: tuple[str, ...], lower: csr_array, upper: csr_array) -> tuple[csr_array, csr_array, list[Problem]]:
    """Both bounds over the edges of the upper ones, and the lower ones that have no edge."""
    high, low = (csr_array(bound, dtype=np.float64, copy=True) for bound in (upper, lower))
    for bound in (high, low):
        bound.sum_duplicates()
        bound.eliminate_zeros()
    high = csr_array((high.data, high.indices.astype(np.int64), high.indptr.astype(np.int64)), shape=high.shape)
    edges, given = _keys(high), _keys(low)
    place = np.searchsorted(edges, given)
    known = place < len(edges)
    known[known] = edges[place[known]] == given[known]
    n = len(states)
    problems = [
        problem(f"state {states[key // n]!r}: {states[key % n]!r} follows with a lower bound of {value!r}, above 0")
        for key, value in zip(given[~known].tolist(), low.data[~known].tolist(), strict=True)
    ]
    data = np.zeros(len(edges))
    data[place[known]] = low.data[known]
    return csr_array((data, high.indices, high.indptr), shape=high.shape), high, problems


def _keys(matrix: csr_array) -> NDArray[np.int64]:
    """One ascending number an entry: its place in the dense matrix, row by row."""
    n = matrix.shape[0]
    return np.asarray(np.repeat(np.arange(n, dtype=np.int64), np.diff(matrix.indptr)) * n + matrix.indices)


def _entry_problems(states: tuple[str, ...], lower: csr_array, upper: csr_array) -> list[Problem]:
    ordered = (lower.data >= 0) & (lower.data <= upper.data) & (upper.data <= 1)
    n = len(states)
    keys = _keys(upper)[~ordered].tolist()
    bounds = zip(lower.data[~ordered].tolist(), upper.data[~ordered].tolist(), strict=True)
    return [
        problem(
            f"state {states[key // n]!r}: {states[key % n]!r} follows with the bounds [{low!r}, {high!r}]",
            "0 <= lower <= upper <= 1",
        )
        for key, (low, high) in zip(keys, bounds, strict=True)
    ]


def _row_problems(states: tuple[str, ...], lower: csr_array, upper: csr_array) -> list[Problem]:
    sizes = np.diff(upper.indptr)
    problems = [problem(f"state {states[i]!r}: nothing follows it") for i in np.flatnonzero(sizes == 0).tolist()]
    if problems:
        return problems
    hint = "bounds that come from rounding have to be rounded outward"
    for bound, side, wrong in ((lower, "lower", 1), (upper, "upper", -1)):
        relation = "above" if wrong > 0 else "below"
        problems += [
            problem(
                f"state {states[i]!r}: its {side} bounds sum to "
                f"{float(bound.data[upper.indptr[i] : upper.indptr[i + 1]].sum())!r}, {relation} 1",
                hint,
            )
            for i in np.flatnonzero(compared_with_one(bound.data, upper.indptr) == wrong).tolist()
        ]
    first = upper.indptr[:-1]
    alone = (sizes == 1) & (upper.indices[first] == np.arange(len(states))) & (lower.data[first] < 1)
    problems += [
        problem(
            f"state {states[i]!r}: it only returns to itself, with a lower bound of {float(lower.data[k])!r}, not 1"
        )
        for i, k in zip(np.flatnonzero(alone).tolist(), first[alone].tolist(), strict=True)
    ]
    return problems


def _between(lower: csr_array, upper: csr_array) -> csr_array:
    """A member: in each row ``lower + t (upper - lower)`` with the t that makes the row sum to one."""
    sizes, first = np.diff(upper.indptr), upper.indptr[:-1]
    missing = np.maximum(1 - np.add.reduceat(lower.data, first), 0.0)
    room = np.add.reduceat(upper.data - lower.data, first)
    t = np.minimum(np.divide(missing, room, out=np.zeros_like(room), where=room > 0), 1.0)
    data = lower.data + np.repeat(t, sizes) * (upper.data - lower.data)
    return csr_array((data, upper.indices.copy(), upper.indptr.copy()), shape=upper.shape)
