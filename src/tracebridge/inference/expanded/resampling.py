"""Corpora drawn again: whole tasks with replacement where tasks repeat, else runs, and the form fitted to each.

Every resample is refitted, its classes of tasks too; of the first fit nothing is kept but, for hidden phases, the place
that EM starts from. Runs of one task stay together, so that what they share widens the intervals as it should.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from tracebridge.chain.expanded.estimation import estimate_stack
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.errors import FitError, UsageError
from tracebridge.inference.expanded.parameter_draws import ParameterDraws
from tracebridge.inference.expanded.task_classes import Endings, class_rates, without_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.states.run_paths import RunPaths

    Codes = NDArray[np.int64]

#: What is drawn again: tasks with all their runs, runs that name none by themselves; or runs.
Unit = Literal["task", "trace"]

#: Refits are kept for who asks for them again as long as they are at most so many probabilities: a quarter gibibyte.
_MOST_KEPT = 2**25

#: Resamples that are refitted side by side have at most about so many steps, and probabilities, in all.
_STEPS_SIDE_BY_SIDE, _CELLS_SIDE_BY_SIDE, _MOST_SIDE_BY_SIDE = 500_000, 10_000_000, 64


class Resamples:
    """Refits of a model to resampled corpora.

    Args:
        model: the fit to the runs themselves. paths: the runs, under their policy. kappa: of the fit.
        unit: what is drawn again; by default tasks, if there is one with several runs.

    Raises:
        FitError: there are less than two of them.
        UsageError: for runs of a model with classes of tasks.
    """

    def __init__(self, model: ExpandedModel, paths: RunPaths, kappa: float, unit: Unit | None = None) -> None:
        self.unit: Unit = unit or ("task" if repeats_tasks(paths) else "trace")
        if self.unit == "trace" and model.form.classes > 1:
            raise UsageError("what makes classes are the trials of a task: draw tasks again, not runs")
        self._model, self._plain, self._paths, self._kappa = model, without_classes(model), paths, kappa
        units = paths.blocks if self.unit == "task" else np.arange(paths.n_runs)
        _, units, sizes = np.unique(units, return_inverse=True, return_counts=True)
        if len(sizes) < 2:
            raise FitError(f"to draw {self.unit}s again takes two or more of them, and there is {len(sizes)}")
        self._sizes = sizes
        self._by_unit = np.argsort(units, kind="stable")  # the runs of a unit, one after the other
        self._firsts = np.cumsum(sizes) - sizes
        self._kept: dict[tuple[int, int, int], ParameterDraws] = {}

    @property
    def at_a_time(self) -> int:
        """How many resamples are refitted side by side."""
        steps = _STEPS_SIDE_BY_SIDE // max(1, self._paths.n_steps)
        cells = _CELLS_SIDE_BY_SIDE // max(1, self._plain.rows.size)
        return max(1, min(steps, cells, _MOST_SIDE_BY_SIDE))

    def block(self, key: int, number: int, seed: int) -> ParameterDraws:
        """The first ``number`` of the `at_a_time` resamples of a block, the same whatever others are asked for.

        Raises:
            NothingToCheckError: no run of a resample has a known start.
        """
        found = self._kept.get((key, number, seed))
        if found is None:
            found = self._refitted(key, number, seed)
            if found.rows.size + sum(kept.rows.size for kept in self._kept.values()) <= _MOST_KEPT:
                self._kept[key, number, seed] = found
        return found

    def _refitted(self, key: int, number: int, seed: int) -> ParameterDraws:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key,)))
        n_units = len(self._sizes)
        drawn = rng.integers(n_units, size=(self.at_a_time, n_units))[:number]
        runs, corpora = self.runs_of(drawn)
        form = self._plain.form
        stack = estimate_stack(self._paths.take(runs), corpora, number, form, self._kappa, warm=self._plain)
        draws = ParameterDraws.of_first_axis(stack.start, stack.rows, stack.advance)
        return draws if self._model.form.classes == 1 else self._with_classes(draws, drawn)

    def runs_of(self, drawn: Codes) -> tuple[Codes, Codes]:
        """The runs of drawn units, shape (resamples, units), end to end, and the resample of each."""
        sizes = self._sizes[drawn]
        flat = sizes.ravel()
        within = np.arange(int(flat.sum())) - np.repeat(np.cumsum(flat) - flat, flat)
        runs = self._by_unit[np.repeat(self._firsts[drawn.ravel()], flat) + within]
        return runs, np.repeat(np.arange(len(drawn)), sizes.sum(axis=1))

    @cached_property
    def _structure(self) -> ExpandedStructure:
        return ExpandedStructure.of_model(self._plain)

    def _with_classes(self, draws: ParameterDraws, drawn: Codes) -> ParameterDraws:
        """Classes are fitted to the tasks of each resample; a task drawn twice counts as two."""
        tasks = self._paths.tasks[self._by_unit[self._firsts]]  # of each unit
        samples = np.zeros((draws.draws, len(self._paths.task_names)))
        named = tasks[drawn] >= 0
        np.add.at(samples, (np.nonzero(named)[0], tasks[drawn][named]), 1)
        weights, rates = class_rates(self._paths, self._model.form.classes, samples)
        structure = self._structure
        entries = structure.entries(draws.rows, draws.advance, draws.class_tilts)
        initial = structure.initial(draws.start, draws.class_weights)
        tilts = np.empty_like(rates.T)
        for i in range(draws.draws):
            ends = Endings.of_entries(structure, entries[:, i], initial[:, i])
            tilts[:, i] = [ends.tilt(rate) for rate in rates[i].tolist()]
        return draws.with_classes(weights.T, tilts)


def repeats_tasks(paths: RunPaths) -> bool:
    """There is a task with several runs."""
    return len(np.unique(paths.blocks)) < paths.n_runs
