"""How often 95 % intervals of richer chains cover the truth, where a chain of the same form is the truth.

The truth of a form is the chain of this form that fits a real corpus. Corpora of some hundred runs are drawn from it
and fitted in the same form; R at the median length of a run, R_inf and the mean time get intervals from the draws of
each fit, and these hold the truth or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.fit import fit_expanded
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.closedform import (
    absorption_time_cdf,
    long_run_reliability,
    mean_time_to_absorption,
    reliability,
)
from tracebridge.inference import property_uncertainty
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.inference.intervals import Interval, wilson
from tracebridge.states.features import OUTCOMES

if TYPE_CHECKING:
    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.states.model_form import ModelForm
    from tracebridge.states.run_paths import RunPaths
    from tracebridge.studies.replication import Replication

FIGURES = ("R(median)", "R_inf", "MTTA")
RUNS = 200

#: Draws of a fit; refits of phases are as many. Two hundred of them cost intervals about half a percent of coverage.
DRAWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A truth that corpora are drawn from.

    Attributes:
        model: its parameters. kappa: what fits to its corpora are shrunk by.
        median: steps within which half of its runs end. figures: of `FIGURES`.
        runs: of a corpus. draws: of a fit.
    """

    model: ExpandedModel
    kappa: float
    median: int
    figures: tuple[float, float, float]
    runs: int = RUNS
    draws: int = DRAWS

    @classmethod
    def of_runs(
        cls, paths: RunPaths, form: ModelForm, *, kappa: float = 1.0, runs: int = RUNS, draws: int = DRAWS
    ) -> KnownModel:
        """The chain of a form, with the bins of its clock chosen, that fits these runs. Raises as `estimate`."""
        model = estimate(paths, form, kappa)
        chain = ExpandedStructure.of_model(model).chain(model)
        mean_time = float(mean_time_to_absorption(chain).overall)
        ended = np.asarray(absorption_time_cdf(chain, 2 * max(1, int(np.ceil(mean_time)))), dtype=np.float64)
        median = int(np.argmax(ended >= 0.5))  # by Markov's inequality it is at most twice the mean
        figures = (float(reliability(chain, median)), float(long_run_reliability(chain)), mean_time)
        return cls(model=model, kappa=kappa, median=median, figures=figures, runs=runs, draws=draws)


def covered(known: KnownModel, rng: np.random.Generator) -> tuple[bool, ...]:
    """Whether the intervals from one drawn corpus hold each of `FIGURES`."""
    seed = int(rng.integers(2**32))
    paths, _ = ModelSimulation(known.model).corpora(known.runs, [np.random.SeedSequence(seed)])
    base = fit_counts(_counts(paths))
    fit = fit_expanded(base, paths, known.model.form, kappa=known.kappa, seed=seed)
    asked = f'P=? [ F<={known.median} "success" ]; P=? [ F "success" ]; R{{"steps"}}=? [ F "absorbed" ]'
    found = property_uncertainty(fit, asked, draws=known.draws, seed=seed)
    return tuple(
        each.interval is not None and truth in each.interval for each, truth in zip(found, known.figures, strict=True)
    )


def _counts(paths: RunPaths) -> TransitionCounts:
    names = np.array(paths.states, dtype=object)
    ends = [OUTCOMES[outcome] for outcome in paths.outcomes.tolist()]
    runs = np.split(names[paths.codes], paths.offsets[1:-1])
    return TransitionCounts.from_paths(zip((tuple(run) for run in runs), ends, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class FormCoverage:
    """The coverage of one form.

    Attributes:
        form: its name. known: the truth. hits: corpora whose interval held the truth, of each of `FIGURES`.
        corpora: how many there were.
    """

    form: str
    known: KnownModel
    hits: tuple[int, ...]
    corpora: int

    @property
    def rates(self) -> tuple[float, ...]:
        """The coverage of each of `FIGURES`."""
        return tuple(hits / self.corpora for hits in self.hits)

    def intervals(self, level: float = 0.95) -> tuple[Interval, ...]:
        """Wilson intervals of these."""
        return tuple(wilson(hits, self.corpora, level) for hits in self.hits)


def coverage_of_forms(knowns: Sequence[KnownModel], replication: Replication) -> list[FormCoverage]:
    """The coverage of each truth, over so many corpora as there are replicates."""
    return [
        FormCoverage(
            form=str(known.model.form),
            known=known,
            hits=tuple(np.array(found).sum(axis=0).tolist()),
            corpora=len(found),
        )
        for known, found in zip(knowns, replication.of_each(covered, knowns), strict=True)
    ]
