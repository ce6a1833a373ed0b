"""How often 95 % posterior intervals cover the truth, where the chain is the right model: ours, and the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain import fit_counts
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption, reliability
from tracebridge.inference import property_uncertainty
from tracebridge.studies.random_chains import chain_of_rows, random_rows, scenario_of_rows
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import mean_share, rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.studies.replication import Replication

FIGURES = ("R_inf", "R(5)", "MTTA")
DRAWS = 1_000
RUNS = (50, 200)
LEAST, MEAN_BETWEEN = 0.90, (0.93, 0.97)

_PROPERTIES = 'P=? [ F "success" ]; P=? [ F<=5 "success" ]; R{"steps"}=? [ F "absorbed" ]'


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownChain:
    """A chain that corpora are drawn from; see `random_rows`."""

    name: str
    seed: int
    states: int
    successors: int
    end: float
    success: tuple[float, float]

    @property
    def rows(self) -> NDArray[np.float64]:
        """Its rows (m, m + 2)."""
        rng = np.random.default_rng(self.seed)
        return random_rows(rng, self.states, end=self.end, success=self.success, successors=self.successors)


CHAINS = (
    KnownChain(name="dense, 5", seed=1, states=5, successors=5, end=0.15, success=(0.3, 0.7)),
    KnownChain(name="most succeed, 10", seed=2, states=10, successors=10, end=0.15, success=(0.87, 0.97)),
    KnownChain(name="nearly all, 5", seed=3, states=5, successors=5, end=0.15, success=(0.985, 0.995)),
    KnownChain(name="sparse, 10", seed=4, states=10, successors=3, end=0.15, success=(0.1, 0.4)),
    KnownChain(name="short runs, 10", seed=5, states=10, successors=4, end=0.35, success=(0.2, 0.5)),
)


@cache
def true_figures(known: KnownChain) -> tuple[float, float, float]:
    """R_inf, R(5) and the mean time of the chain itself."""
    chain = chain_of_rows(known.rows)
    mean_time = mean_time_to_absorption(chain).overall
    return float(long_run_reliability(chain)), float(reliability(chain, 5)), float(mean_time)


def covered(cell: tuple[KnownChain, int], rng: np.random.Generator) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Whether the intervals of one corpus cover each figure: with the default prior, and with the paper's."""
    known, n_runs = cell
    fit, _ = scenario_of_rows(known.rows).fitted(n_runs, seed=int(rng.integers(2**63)))
    seed = int(rng.integers(2**63))
    truth = true_figures(known)
    found = []
    for each in (fit, fit_counts(fit.counts, profile="paper")):
        intervals = [result.interval for result in property_uncertainty(each, _PROPERTIES, draws=DRAWS, seed=seed)]
        found.append(tuple(at is not None and value in at for value, at in zip(truth, intervals, strict=True)))
    return found[0], found[1]


def study(replication: Replication) -> Findings:
    """Coverage of R_inf, R(5) and the mean time (MTTA) over five chains and two sizes of corpus."""
    cells = list(product(CHAINS, RUNS))
    hits: NDArray[np.bool_] = np.array(replication.of_each(covered, cells))  # cell, corpus, prior, figure
    number = replication.number
    rows = []
    for (known, n_runs), by_cell in zip(cells, hits, strict=True):
        ours, papers = by_cell.mean(axis=0).tolist()
        rows.append((known.name, true_figures(known)[0], n_runs, *ours, *papers))
    counts = hits[:, :, 0].sum(axis=1)
    lower, upper = MEAN_BETWEEN
    by_corpus = hits[:, :, 0].mean(axis=2).ravel()
    text = f"mean coverage over {len(cells)} cells and {len(FIGURES)} figures"
    statements = [mean_share(text, by_corpus, "corpora", lower=lower, upper=upper)]
    statements += [
        rate(f"least coverage of {figure} in a cell", int(counts[:, k].min()), number, "corpora", lower=LEAST)
        for k, figure in enumerate(FIGURES)
    ]
    small = cells.index((CHAINS[1], 50))
    text = "paper's prior, most succeed, 50 runs: coverage of R_inf"
    statements.append(rate(text, int(hits[small, :, 1, 0].sum()), number, "corpora", upper=0.2))
    return Findings(
        tables=(
            Table(
                title=f"Coverage of 95 % intervals with the default and the paper's prior; {number} corpora a cell",
                columns=("chain", "true R_inf", "runs", *FIGURES, *(f"paper: {f}" for f in FIGURES)),
                rows=tuple(rows),
            ),
        ),
        statements=tuple(statements),
        not_reproduced=(
            (
                "the paper gives intervals and no coverage. With its prior, one pseudo-count an entry, intervals "
                "for R_inf miss an agent that mostly succeeds: ten states and 50 runs pull R_inf toward one half"
            ),
        ),
        notes=("all of this holds where the chain is the right model; a rejected chain has no such intervals",),
    )
