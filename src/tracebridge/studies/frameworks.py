"""The seven frameworks of the paper: its figures, and stand-in chains with the same size, reliability and rate.

The paper's chains are not published. A stand-in has random routes and equal exits in every state: then the spectral
radius is the probability to go on and the reliability is the share of success among exits, both as printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework as the paper has it.

    Attributes:
        name: its name. states, reliability, radius, horizon: m, R_inf, rho(Q) and the horizon for .01 of Table IV.
        held_out_states, distance, p, gap: m, D, p and L of Table V.
        posterior, bootstrap: smallest, median and largest interval width of Table III.
    """

    name: str
    states: int
    reliability: float
    radius: float
    horizon: int
    held_out_states: int
    distance: float
    p: float
    gap: float
    posterior: tuple[float, float, float]
    bootstrap: tuple[float, float, float]

    def stand_in(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Rows (m, m + 2) of a chain with the paper's m, R_inf and rho."""
        m = self.states
        routes = rng.dirichlet(np.ones(m), size=m) * self.radius
        end = 1 - self.radius
        return np.column_stack([routes, np.full(m, end * self.reliability), np.full(m, end * (1 - self.reliability))])


#: In the order of Table IV: its columns, then those of Table V, then the two kinds of widths of Table III.
FRAMEWORKS = (
    Framework("toolformer", 10, 0.4497, 0.442, 5, 5, 0.024, 1.0, 0.052, (0.041, 0.108, 0.241), (0.034, 0.101, 0.208)),
    Framework("autogpt", 5, 0.3866, 0.370, 4, 6, 0.032, 0.987, 0.039, (0.044, 0.112, 0.283), (0.012, 0.100, 0.268)),
    Framework("agentbench", 10, 0.3262, 0.654, 9, 5, 0.032, 0.988, 0.021, (0.034, 0.116, 0.265), (0.032, 0.103, 0.25)),
    Framework("babyagi", 12, 0.2853, 0.656, 8, 6, 0.047, 0.776, 0.053, (0.040, 0.113, 0.286), (0.035, 0.100, 0.291)),
    Framework("reflexion", 12, 0.0695, 0.636, 5, 5, 0.031, 0.992, 0.052, (0.048, 0.109, 0.238), (0.040, 0.098, 0.253)),
    Framework("cot_agent", 10, 0.0684, 0.526, 3, 5, 0.024, 1.0, 0.018, (0.029, 0.111, 0.337), (0.008, 0.084, 0.288)),
    Framework("react", 9, 0.0581, 0.509, 3, 5, 0.017, 1.0, 0.048, (0.037, 0.110, 0.313), (0.017, 0.097, 0.287)),
)
