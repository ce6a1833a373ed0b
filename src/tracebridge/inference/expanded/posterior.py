"""Draws of a chain that remembers more than its category, as stacks of chains.

Forms of contexts alone are drawn by `ContextPosterior`, whose runs are independent as those of a first-order posterior.
With hidden phases or classes of tasks transitions are not independent of each other: there draws are refits to
resampled corpora (`Resamples`), of whole tasks where tasks repeat. The method of an interval says which it was.
Both were chosen by what their intervals cover, see `tracebridge.studies.expanded_coverage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.errors import ModelError, UsageError
from tracebridge.inference.expanded.context_posterior import ContextPosterior
from tracebridge.inference.expanded.rare_ends import RareEnds
from tracebridge.inference.expanded.resampling import Resamples, Unit, repeats_tasks
from tracebridge.inference.posterior import ChainPosterior

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.pctl.ast import Formula
    from tracebridge.states.run_paths import RunPaths

#: The stream of random numbers for `RareEnds`, beside that of the parameters.
_OF_RARE_ENDS = (1,)

#: Resampled corpora that are refitted, whatever number of draws is asked for.
MOST_RESAMPLES = 200

#: Chains of many transitions are drawn less often: about so many transitions in all draws, but `FEWEST_DRAWS` at least.
_MOST_TRANSITIONS, FEWEST_DRAWS = 2_500_000, 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedPosterior:
    """Draws of the chain of an expanded fit; their edges are those of its chain.

    Attributes:
        chain: of the fit. structure: of its states and transitions.
        source: what the parameters are drawn by.
        rare: outcomes that few runs had, of which draws must not be too sure; None where there is none.
    """

    chain: MarkovChain
    structure: ExpandedStructure
    source: ContextPosterior | Resamples
    rare: RareEnds | None = None

    @classmethod
    def of_fit(cls, fit: ExpandedFit, unit: Unit | None = None) -> ExpandedPosterior:
        """The draws behind a fit.

        Args:
            unit: for refits whatever the form, to resamples of this.

        Raises:
            UsageError: its runs were too many for the document that it was read from.
            FitError: there are too few runs, or tasks, to draw them again.
            ModelError: a transition of the chain has probability zero.
        """
        paths = runs_of(fit)
        model = fit.model
        source: ContextPosterior | Resamples
        if unit is not None or fit.form.phases > 1 or fit.form.classes > 1:
            source = Resamples(model, paths, fit.kappa, unit)
        else:
            source = ContextPosterior.of_runs(model.space, paths, fit.kappa)
        structure = ExpandedStructure.of_model(model)
        if fit.chain.transitions.nnz != structure.n_transitions:
            raise ModelError(f"the chain of {fit.form} has a transition of probability zero, which no draw would have")
        return cls(chain=fit.chain, structure=structure, source=source, rare=RareEnds.of_runs(paths))

    @property
    def method(self) -> str:
        """How draws are made, in words."""
        name = "Bayesian bootstrap of transitions"
        if isinstance(self.source, Resamples):
            name = f"{self.source.unit} bootstrap, refitted"
        return name if self.rare is None else f"{name}, {self.rare.method}"

    def number(self, asked: int) -> int:
        """How many draws are made in acceptable time when so many are asked for."""
        most = max(FEWEST_DRAWS, _MOST_TRANSITIONS // self.structure.n_transitions)
        if isinstance(self.source, Resamples):
            most = min(most, MOST_RESAMPLES)
        return min(asked, most)

    def draws(self, number: int, seed: int) -> Iterator[ChainStack]:
        """So many draws, in chunks that fit into memory; the first draws are the same however many are asked for.

        Raises:
            UsageError: for no draw at all.
        """
        if number < 1:
            raise UsageError(f"a posterior needs at least one draw, not {number}")
        block = self.source.at_a_time
        for key, first in enumerate(range(0, number, block)):
            parameters = self.source.block(key, min(block, number - first), seed)
            entries, initial = parameters.transitions(self.structure)
            if self.rare is not None:
                rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key, *_OF_RARE_ENDS)))
                entries = self.rare.with_one_more(self.structure, entries, initial, first, rng)
            yield ChainStack(self.chain, entries, initial)


def resampled_otherwise(fit: ExpandedFit) -> list[ExpandedPosterior]:
    """Refits to resampled runs, and to resampled tasks where tasks repeat, but for what `ExpandedPosterior` does."""
    usual = ExpandedPosterior.of_fit(fit).source
    units: list[Unit] = ["trace", "task"] if repeats_tasks(runs_of(fit)) else ["trace"]
    if isinstance(usual, Resamples):
        units = [] if fit.form.classes > 1 else [unit for unit in units if unit != usual.unit]
    return [ExpandedPosterior.of_fit(fit, unit) for unit in units]


def no_draws(fit: ChainFit | ExpandedFit, formula: Formula) -> str | None:
    """Why draws say nothing of a resolved property of a fit; None where they do. See `RareEnds`."""
    if not isinstance(fit, ExpandedFit):
        return None
    rare = RareEnds.of_runs(runs_of(fit))
    return None if rare is None else rare.unknown_place(formula)


def runs_of(fit: ExpandedFit) -> RunPaths:
    """The runs of a fit. Raises UsageError if it was read from a document without them."""
    if fit.paths is None:
        raise UsageError(
            "the document of this fit does not hold its runs, which are too many: fit the model to the traces again"
        )
    return fit.paths


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitDraws:
    """The draws of a fit of either kind.

    Attributes:
        posterior: what is drawn from. method: its name, in words.
    """

    posterior: ChainPosterior | ExpandedPosterior
    method: str

    @classmethod
    def of_fit(cls, fit: ChainFit | ExpandedFit) -> FitDraws:
        """The posterior of a first-order fit, or the draws behind an expanded one."""
        if isinstance(fit, ExpandedFit):
            expanded = ExpandedPosterior.of_fit(fit)
            return cls(posterior=expanded, method=f"{expanded.method}, equal-tailed")
        return cls(posterior=ChainPosterior.of_fit(fit), method=f"posterior of the {fit.prior} prior, equal-tailed")

    def number(self, asked: int) -> int:
        """How many draws are made when so many are asked for: fewer of large chains and of refits."""
        return self.posterior.number(asked) if isinstance(self.posterior, ExpandedPosterior) else asked

    @property
    def reason(self) -> str:
        """Why there are fewer draws than were asked for."""
        if isinstance(self.posterior, ExpandedPosterior) and isinstance(self.posterior.source, Resamples):
            return "each is a refit to resampled runs"
        return f"the chain has {self.posterior.chain.n_states:,} states"

    def draws(self, number: int, seed: int) -> Iterator[ChainStack]:
        """So many draws, see `ChainPosterior.draws`."""
        return self.posterior.draws(number, seed)
