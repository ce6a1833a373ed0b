"""The optimality equation of a decision process, with its end components contracted, and what a policy of it means.

``x_i = opt_a (gain_a + sum_j p_aj x_j)`` over the choices a of each unknown state i, with x known elsewhere. Where a
scheduler could stay for ever among unknown states without a gain, the equation has more than one solution. So each such
end component is left at once: its first state has the choices of all its members that lead out of it, and the others
lead to the first (Haddad and Monmege, Theoretical Computer Science 735, 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, eye_array, vstack

from tracebridge.chain.rational import RationalMatrix
from tracebridge.closedform.decision.choices import Choices
from tracebridge.closedform.integer_system import rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimalityEquation:
    """See the module.

    Attributes:
        process: the choices of the process itself.
        choices: those of the equation; known states have one, to themselves.
        rows: the row of the process that each choice of the equation is, shape (k,); with m rows in the process,
            ``m + j`` is one that leads to state j for certain.
        unknown: shape (n,). known: 1 in these states, 0 in the others that are not unknown.
        gains: of the choices, Fractions of shape (k,), dtype object; None for zero.
        maximise: which optimum.
        every_choice_leaves: each policy leaves the unknown states surely; else one that does not gains without end.
        components: the number of the end component of each state, -1 in none. inside: the choices that stay in them.
    """

    process: Choices
    choices: Choices
    rows: Indices
    unknown: Mask
    known: Mask
    gains: NDArray[Any] | None
    maximise: bool
    every_choice_leaves: bool
    components: Indices
    inside: Mask

    @classmethod
    def of(
        cls,
        process: Choices,
        *,
        unknown: Mask,
        known: Mask,
        maximise: bool,
        gains: list[Fraction] | None = None,
        allowed: Mask | None = None,
        idle: Mask | None = None,
        every_choice_leaves: bool = True,
    ) -> OptimalityEquation:
        """The equation, contracted.

        Args:
            process: the choices of the process. gains: of each, m of them.
            allowed: the choices to optimise over, shape (m,); each unknown state has some. None for all.
            idle: the choices whose end components are contracted, which have an exit each; None for no contraction.
        """
        n, m = process.n, len(process.owner)
        components, inside = np.full(n, -1, dtype=np.int64), np.zeros(m, dtype=np.bool_)
        if idle is not None:
            components, inside = process.end_components(idle & unknown[process.owner])
        member = components >= 0
        head = np.arange(n)
        if member.any():
            numbers, first = np.unique(components, return_index=True)
            head[member] = first[np.searchsorted(numbers, components[member])]
        kept = unknown[process.owner] & ~process.staying_among(components)
        if allowed is not None:
            kept &= allowed
        directed = np.flatnonzero(~unknown | (head != np.arange(n)))  # one certain row each
        rows = np.concatenate([np.flatnonzero(kept), m + head[directed]])
        owner = np.concatenate([head[process.owner[kept]], directed])
        order = np.argsort(owner, kind="stable")
        rows = rows[order]
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n))]).astype(np.int64)
        pattern = csr_array(extended(process.pattern)[rows])
        of_rows = None
        if gains is not None:
            of_rows = np.array([*gains, *[Fraction(0)] * n], dtype=object)[rows]
        return cls(
            process=process,
            choices=Choices(starts=starts, pattern=pattern),
            rows=rows,
            unknown=unknown,
            known=known,
            gains=of_rows,
            maximise=maximise,
            every_choice_leaves=every_choice_leaves,
            components=components,
            inside=inside,
        )

    def proper_policy(self) -> Indices:
        """For each unknown state a choice of the equation such that the unknown states are surely left; shape (u,)."""
        everything = np.ones(len(self.rows), dtype=np.bool_)
        return self.choices.towards(~self.unknown, everything, within=self.unknown)[self.unknown]

    def is_proper(self, policy: Indices) -> bool:
        """Whether the unknown states are surely left under a policy."""
        chosen = np.zeros(len(self.rows), dtype=np.bool_)
        chosen[policy] = True
        return bool((self.choices.towards(~self.unknown, chosen, within=self.unknown)[self.unknown] >= 0).all())

    def decisions(self, policy: Indices) -> Indices:
        """What a policy of the equation means in the process: a choice for each unknown state, else -1; shape (n,)."""
        m, n = len(self.process.owner), self.process.n
        decided = np.full(n, -1, dtype=np.int64)
        row_of = np.full(n, -1, dtype=np.int64)
        row_of[self.unknown] = self.rows[policy]
        taken = row_of[(row_of >= 0) & (row_of < m)]
        decided[self.process.owner[taken]] = taken
        member = self.components >= 0
        if member.any():  # the others of a component go to the one that leaves it
            leaving = member & (decided >= 0)
            way = self.process.towards(leaving, self.inside, within=member & ~leaving)
            decided = np.where(member & ~leaving, way, decided)
        return decided


def extended(matrix: csr_array) -> csr_array:
    """The rows of a matrix of shape (m, n) and below them those of the identity."""
    return csr_array(vstack([matrix, eye_array(matrix.shape[1], format="csr")], format="csr"))


def rational_rows(matrix: RationalMatrix, rows: Indices) -> RationalMatrix:
    """These rows of a matrix of shape (m, n) with those of the identity below them, in rationals."""
    n = matrix.n_columns
    whole = RationalMatrix(
        np.append(matrix.indptr, matrix.indptr[-1] + 1 + np.arange(n)),
        np.append(matrix.indices, np.arange(n)),
        np.append(matrix.numerators.astype(object), np.ones(n, dtype=object)),
        np.append(matrix.denominators.astype(object), np.ones(n, dtype=object)),
        n,
    )
    return rows_of(whole, rows)
