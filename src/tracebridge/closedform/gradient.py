"""How a number moves with each transition probability of a chain: gradients on the edges that the chain has.

Two conventions, of which only the second stays among chains:

* *free*: ``dv/dP[i, j]`` with all other entries fixed, in the equations as they are. The row does not sum to one any
  more, so that only differences within a row mean something: ``free[i, j] - free[i, k]`` is what moving probability
  from k to j does.
* *along the simplex*: P[i, j] grows and the other entries of its row shrink in proportion to what they are, which keeps
  the row a distribution and its edges: ``(free[i, j] - mean_i) / (1 - P[i, j])`` with the mean of ``free[i, .]`` under
  the row. An entry that is alone in its row cannot move: NaN.

What the edges alone decide (zero, one, infinite) is a constant, for the edges are given: `sensitivity` has what R_inf,
R(d) and the mean time gain from transitions that are not there.

The second is also what a posterior says: if a row is Dirichlet, its other entries are proportional to their means given
one of them. Backward accumulation (`gradient_tape`) gives the gradient of one number by all entries at the price of a
second evaluation, one transposed solve for each system.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.gradient_operators import TracedOperators

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import Operator

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EntryGradient:
    """The gradient of one number on the edges of a chain.

    Attributes:
        chain: the chain. value: the number.
        free: the derivative by each stored entry of ``chain.transitions``, in its order, shape (entries,).
        initial: the derivative by each initial probability, all others fixed, shape (n,).
    """

    chain: MarkovChain
    value: float
    free: Floats
    initial: Floats

    @property
    def centred(self) -> Floats:
        """The free derivatives minus their mean under the row, shape (entries,): the part that means something."""
        sizes, first = _sizes(self.chain), self.chain.transitions.indptr[:-1]
        P = _row_shares(self.chain)
        # Relative to the likeliest entry of the row, whose weight close to one would cost digits.
        apart = self.free - np.repeat(self.free[_likeliest(self.chain)], sizes)
        return np.asarray(apart - np.repeat(np.add.reduceat(P * apart, first), sizes))

    @property
    def along_simplex(self) -> Floats:
        """The derivative by each entry, the rest of its row shrinking in proportion, shape (entries,).

        NaN for an entry that is alone in its row.
        """
        sizes, first = _sizes(self.chain), self.chain.transitions.indptr[:-1]
        P, likeliest = _row_shares(self.chain), _likeliest(self.chain)
        others = 1 - P
        P[likeliest] = 0
        others[likeliest] = np.add.reduceat(P, first)
        alone = np.repeat(sizes == 1, sizes)
        return np.where(alone, np.nan, self.centred / np.where(alone, 1.0, others))


def operator_gradient(chain: MarkovChain, operator: Operator, holds: Holds) -> EntryGradient:
    """The gradient of an operator at the start, of its mean under the initial distribution.

    Args:
        operator: bounds are already numbers; its threshold is not looked at. Operands are taken as the sets of states
            that they are, also where they are operators with thresholds.
        holds: the states where an operand is true, shape (n,).

    Raises:
        UnsupportedError, PropertyError, EngineError: as `TracedOperators.value` and `TracedOperators.pull_back`.
    """
    operators = TracedOperators(chain)
    vector = operators.value(operator, holds)
    free = operators.pull_back(vector, chain.initial)
    start = chain.initial > 0
    return EntryGradient(
        chain=chain,
        value=float(chain.initial[start] @ vector.value[start]),
        free=free,
        initial=vector.value,
    )


def _sizes(chain: MarkovChain) -> NDArray[np.int64]:
    return np.asarray(np.diff(chain.transitions.indptr))


def _row_shares(chain: MarkovChain) -> Floats:
    """The entries of P, each row divided by its sum."""
    P = chain.transitions
    return np.asarray(P.data / np.repeat(np.add.reduceat(P.data, P.indptr[:-1]), _sizes(chain)))


def _likeliest(chain: MarkovChain) -> NDArray[np.int64]:
    """The place of a largest entry of each row among the entries, shape (n,)."""
    P = chain.transitions
    row_of_entry = np.repeat(np.arange(chain.n_states), _sizes(chain))
    return np.asarray(np.lexsort((P.data, row_of_entry))[P.indptr[1:] - 1])
