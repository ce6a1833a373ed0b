"""How much likelier the transitions of new runs are under a chain that changed than under that of a baseline corpus.

A row of the chain, and its start, is a distribution over M outcomes. If nothing changed, the rows of the new runs are
those of the baseline, known as far as its counts c tell: with a symmetric Dirichlet prior of mass a, the next outcome
is j with probability ``(c_j + n_j + a/M) / (c + n + a)``, n being the new counts so far. This predictive accounts for
the error of estimation of a small baseline. An alternative says ``(r_j + k p_j) / (r + k)``: a row that begins at the
baseline's mean p and learns from the new counts r. Whatever is predicted from the past, the ratio of the two has mean
one under the former, so that products of ratios are test martingales (Ville 1939).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracebridge.errors import NothingToCheckError, UsageError

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit

#: What a transition to a state that the baseline does not have counts as.
UNSEEN = "a state that the baseline does not have"
START = "start"

#: How firmly alternatives hold to the baseline: it counts as so many transitions of the row.
FIRMNESS = (2.0, 8.0, 32.0, 128.0)

_LEAST_MASS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaselineRows:
    """The counts that new runs are compared with.

    Attributes:
        outcomes: what a step may be followed by: the m states, ``success``, ``failure`` and `UNSEEN`; M of them.
        counts: of each row, the start last: outcome to transitions, shape (m + 1) of mappings.
        masses: of the priors that the null hypothesis ranges over, ascending, from 1/2 to M/2 (Jeffreys) in doublings.
        policy: what censored runs count as.
    """

    outcomes: tuple[str, ...]
    counts: tuple[Mapping[int, int], ...]
    masses: tuple[float, ...]
    policy: str

    @classmethod
    def of_fit(cls, fit: ChainFit) -> BaselineRows:
        """The rows behind a fit.

        Raises:
            UsageError: its runs have weights. NothingToCheckError: it has no state.
        """
        if fit.weighted is not None:
            raise UsageError("drift is told from counts of runs; those of this baseline have weights")
        rows = fit.row_counts()
        if not rows.states:
            raise NothingToCheckError("the baseline has no state to compare transitions of")
        counts: list[dict[int, int]] = [{} for _ in rows.states]
        entries = rows.counts.tocoo()
        for i, j, n in zip(*(part.tolist() for part in entries.coords), entries.data.tolist(), strict=True):
            if n:
                counts[i][j] = n
        counts.append({j: n for j, n in enumerate(rows.starts.tolist()) if n})
        size = len(rows.states) + 3
        masses = [_LEAST_MASS]
        while masses[-1] * 2 < size / 2:
            masses.append(masses[-1] * 2)
        return cls(
            outcomes=(*rows.states, "success", "failure", UNSEEN),
            counts=tuple(counts),
            masses=(*masses, size / 2),
            policy=fit.policy,
        )

    @property
    def n_rows(self) -> int:
        """The number of rows m + 1."""
        return len(self.counts)

    def name(self, row: int) -> str:
        """The state of a row, or `START`."""
        return START if row == self.n_rows - 1 else self.outcomes[row]


@dataclass(slots=True, kw_only=True, eq=False)
class RowEvidence:
    """One row under the null hypothesis and under the alternatives, as its new transitions come.

    Attributes:
        baseline: its counts by outcome. size: M. masses: see `BaselineRows`.
        new: all new counts. recent: the same, those of long ago forgotten.
        null: log-likelihood of the new transitions under each mass. alternative: under each firmness.
        run_null, run_recent: the same of the last run alone, the alternatives having learnt from recent counts.
        last_run: number of the run that the row was last in.
    """

    baseline: Mapping[int, int]
    size: int
    masses: Sequence[float]
    new: dict[int, int] = field(default_factory=dict)
    recent: dict[int, float] = field(default_factory=dict)
    null: list[float] = field(init=False)
    alternative: list[float] = field(default_factory=lambda: [0.0] * len(FIRMNESS))
    run_null: list[float] = field(init=False)
    run_recent: list[float] = field(default_factory=lambda: [0.0] * len(FIRMNESS))
    last_run: int = 0
    n_baseline: int = field(init=False)
    n_new: int = 0
    n_recent: float = 0.0

    def __post_init__(self) -> None:
        self.null = [0.0] * len(self.masses)
        self.run_null = [0.0] * len(self.masses)
        self.n_baseline = sum(self.baseline.values())

    def mean(self, outcome: int) -> float:
        """The baseline's probability of an outcome, with a prior of mass one."""
        return (self.baseline.get(outcome, 0) + 1 / self.size) / (self.n_baseline + 1)

    def add(self, outcome: int, run: int, forgetting: float) -> None:
        """One more transition of the row, in a run; recent counts keep the share ``forgetting`` from run to run."""
        if run != self.last_run:
            kept = forgetting ** (run - self.last_run)
            self.recent = {j: n * kept for j, n in self.recent.items() if n * kept > 1e-9}
            self.n_recent = sum(self.recent.values())
            self.last_run = run
            self.run_null = [0.0] * len(self.masses)
            self.run_recent = [0.0] * len(FIRMNESS)
        log, mean = math.log, self.mean(outcome)
        new, recent = self.new.get(outcome, 0), self.recent.get(outcome, 0.0)
        seen, total = self.baseline.get(outcome, 0) + new, self.n_baseline + self.n_new
        for g, mass in enumerate(self.masses):
            found = log((seen + mass / self.size) / (total + mass))
            self.null[g] += found
            self.run_null[g] += found
        for k, firmness in enumerate(FIRMNESS):
            prior = firmness * mean
            self.alternative[k] += log((new + prior) / (self.n_new + firmness))
            self.run_recent[k] += log((recent + prior) / (self.n_recent + firmness))
        self.new[outcome] = new + 1
        self.recent[outcome] = recent + 1
        self.n_new += 1
        self.n_recent += 1
