"""The exponential limit for rare failures (paper, Proposition 7 and Fig. 6): does the gap vanish?"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.shape import exponential_limit
from tracebridge.studies.random_chains import chain_of_rows
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import equals, fixed

if TYPE_CHECKING:
    from tracebridge.studies.replication import Replication

#: The six regimes of Fig. 6: success probability per step; the budget is 2 / mu.
SUCCESS_RATES = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
#: The gap in the limit if eps / mu stays at 1/10, by hand: (1 - exp(-2.2)) / 1.1 against 1 - exp(-2).
LIMIT = abs((1 - math.exp(-2.2)) / 1.1 - (1 - math.exp(-2)))


def gap(mu: float, eps: float) -> float:
    """The largest gap of R(d) to ``1 - exp(-mu d)`` up to ``d = 2 / mu``, of the chain with one state."""
    chain = chain_of_rows(np.array([[1 - mu - eps, mu, eps]]))
    return exponential_limit(chain, d_max=round(2 / mu)).gap


def study(_: Replication) -> Findings:
    """Compute the gap in the paper's regimes, and in some of which the proposition speaks; nothing is random."""
    tenth = [gap(mu, mu / 10) for mu in SUCCESS_RATES]
    square = [gap(mu, mu**2) for mu in SUCCESS_RATES]
    rows = tuple(
        (mu, round(2 / mu), mu / 10, one, mu**2, other)
        for mu, one, other in zip(SUCCESS_RATES, tenth, square, strict=True)
    )
    columns = ("mu", "budget", "eps = mu / 10", "gap", "eps = mu^2", "gap")
    return Findings(
        tables=(Table(title="Largest gap of R(d) to 1 - exp(-mu d)", columns=columns, rows=rows),),
        statements=(
            fixed("eps = mu / 10: the gap grows from regime to regime, by", float(np.diff(tenth).min()), lower=0.0),
            equals("eps = mu / 10: its limit is |(1 - e^-2.2)/1.1 - (1 - e^-2)|", gap(1e-4, 1e-5), LIMIT, 5e-5),
            fixed("eps = mu^2: the gap shrinks from regime to regime, by a factor of", _slowest(square), upper=0.6),
        ),
        not_reproduced=(
            (
                "Fig. 6 is said to show R(d) approach the limit law over six regimes. All six have eps / mu = "
                "0.1, where the proposition asks for eps / mu -> 0: the gap grows from .031 to .056 and does not "
                "vanish. With eps = mu^2 it does, as proven"
            ),
        ),
        notes=("one exponential passage is no non-homogeneous Poisson process: this is an exponential limit",),
    )


def _slowest(gaps: list[float]) -> float:
    return max(later / earlier for earlier, later in itertools.pairwise(gaps))
