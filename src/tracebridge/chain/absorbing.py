"""AbsorbingChain: the canonical form of a chain in which every run ends.

With transient states first, ``P = [[Q, R], [0, I]]``: Q moves among transient states, R leads into absorbing ones
(Kemeny and Snell, Finite Markov Chains, chapter 3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.graph import reaching
from tracebridge.chain.markov import MarkovChain
from tracebridge.errors import ModelError
from tracebridge.html_table import html_paragraph


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AbsorbingChain:
    """The canonical form of ``chain``; m transient and a absorbing states, in the order of the chain.

    Attributes:
        chain: the chain as it was given.
        transient, absorbing: positions of the two kinds of states in the chain, ascending; shapes (m,) and (a,).
        Q: shape (m, m). R: shape (m, a).
        initial: mass on transient states, shape (m,). initial_absorbed: mass already in absorbing states (runs without
            a step), shape (a,). Together they sum to one.

    Raises:
        ModelError: if a state cannot reach any absorbing state; the message names such states.
    """

    chain: MarkovChain
    transient: NDArray[np.int64] = field(init=False)
    absorbing: NDArray[np.int64] = field(init=False)
    Q: csr_array = field(init=False)
    R: csr_array = field(init=False)

    def __post_init__(self) -> None:
        absorbing = self.chain.absorbing
        stuck = np.flatnonzero(~reaching(self.chain.transitions, absorbing))
        if len(stuck):
            named = ", ".join(repr(self.chain.states[i]) for i in stuck[:5])
            more = f" and {len(stuck) - 5} more" if len(stuck) > 5 else ""
            raise ModelError(f"not an absorbing chain: no absorbing state can be reached from {named}{more}")
        set_ = object.__setattr__
        set_(self, "transient", np.flatnonzero(~absorbing))
        set_(self, "absorbing", np.flatnonzero(absorbing))
        rows = self.chain.transitions[self.transient]
        set_(self, "Q", csr_array(rows[:, self.transient]))
        set_(self, "R", csr_array(rows[:, self.absorbing]))

    def __repr__(self) -> str:
        return f"<AbsorbingChain of {len(self.transient)} transient and {len(self.absorbing)} absorbing states>"

    def to_records(self, first: int | None = None) -> list[dict[str, Any]]:
        """One record a transition of the chain; see `MarkovChain.to_records`."""
        return self.chain.to_records(first)

    def _repr_html_(self) -> str:
        return html_paragraph(repr(self)[1:-1]) + self.chain._repr_html_()

    @property
    def initial(self) -> NDArray[np.float64]:
        """Initial mass on transient states, shape (m,)."""
        return self.chain.initial[self.transient]

    @property
    def initial_absorbed(self) -> NDArray[np.float64]:
        """Initial mass on absorbing states, shape (a,)."""
        return self.chain.initial[self.absorbing]

    @property
    def transient_states(self) -> tuple[str, ...]:
        """Names of the transient states, in the order of Q."""
        return tuple(self.chain.states[i] for i in self.transient)

    @property
    def absorbing_states(self) -> tuple[str, ...]:
        """Names of the absorbing states, in the order of the columns of R."""
        return tuple(self.chain.states[i] for i in self.absorbing)
