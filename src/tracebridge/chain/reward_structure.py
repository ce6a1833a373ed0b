"""RewardStructure: what states and transitions earn, in doubles or in rationals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.model_problems import problem
from tracebridge.chain.rational import RationalVector
from tracebridge.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewardStructure:
    """A named reward: what a state earns at each time it is occupied, and what leaving it earns.

    In a sum over steps both count (``C``, ``F``, long-run ``S``); ``I=k`` looks at the state reward alone, as PRISM and
    Storm do.

    Attributes:
        state: shape (n,), non-negative and finite. action: the same, or None for zero.
        exact_state, exact_action: the same numbers as rationals; without them the doubles are taken as exact.
    """

    state: NDArray[np.float64]
    action: NDArray[np.float64] | None = None
    exact_state: RationalVector | None = None
    exact_action: RationalVector | None = None

    @classmethod
    def from_fractions(
        cls, state: Sequence[Fraction | int], action: Sequence[Fraction | int] | None = None
    ) -> RewardStructure:
        """Exact rewards."""
        exact_state = RationalVector.from_fractions(state)
        exact_action = None if action is None else RationalVector.from_fractions(action)
        return cls(
            state=exact_state.to_float(),
            action=None if exact_action is None else exact_action.to_float(),
            exact_state=exact_state,
            exact_action=exact_action,
        )

    def __post_init__(self) -> None:
        for name in ("state", "action"):
            values = getattr(self, name)
            if values is not None:
                held = np.array(values, dtype=np.float64)
                held.flags.writeable = False
                object.__setattr__(self, name, held)

    @property
    def per_step(self) -> NDArray[np.float64]:
        """State plus action reward, shape (n,)."""
        return self.state if self.action is None else self.state + self.action

    def fractions(self, *, action: bool) -> list[Fraction]:
        """The state rewards as Fractions; with ``action`` plus the action rewards."""
        state = self.exact_state.to_fractions() if self.exact_state else [Fraction(x) for x in self.state.tolist()]
        if not action or self.action is None:
            return state
        extra = self.exact_action.to_fractions() if self.exact_action else [Fraction(x) for x in self.action.tolist()]
        return [a + b for a, b in zip(state, extra, strict=True)]


def reward_problems(
    name: str, values: NDArray[np.float64], count: int, owners: str, owner_name: Callable[[int], str]
) -> Iterator[Problem]:
    """What is wrong with the rewards of so many owners (states, choices), of which each has a name."""
    if values.shape != (count,):
        yield problem(f"reward {name!r} has shape {values.shape} for {count} {owners}")
        return
    for i in np.flatnonzero(~(values >= 0) | ~np.isfinite(values)).tolist():
        yield problem(
            f"{owner_name(i)}: its reward {name!r} is {float(values[i])!r}", "rewards are finite and not negative"
        )
