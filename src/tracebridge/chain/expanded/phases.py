"""Hidden phases fitted to runs: penalised maximum likelihood by expectation maximisation.

What is maximised is the log-likelihood plus the logarithms of the priors that `maximised` states. A run that was cut
is known to have gone on after its last step, and counts with the probability of that. The category's row over all
phases comes from what is known of all runs, whatever their phases, so that for forms without contexts the priors are
fixed and no iteration lowers this objective (Dempster, Laird and Rubin, 1977). With contexts, the coarser rows that
rows are shrunk to move with the iterations, and the objective, though it settles, need not rise in each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.context_rows import require_cells, require_kappa, start_counts
from tracebridge.chain.expanded.estimation import space_of
from tracebridge.chain.expanded.expectation import PhaseCounts, expected_counts
from tracebridge.chain.expanded.forward import most_steps
from tracebridge.chain.expanded.maximisation import Probabilities, log_priors, maximised
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.chain.expanded.side_by_side import observed_batches
from tracebridge.chain.expanded.workspace import Workspace
from tracebridge.errors import ModelError, NothingToCheckError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.side_by_side import ObservedBatch
    from tracebridge.states.expansion import ContextSpace
    from tracebridge.states.model_form import ModelForm
    from tracebridge.states.run_paths import RunPaths

    Codes = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Integers = NDArray[np.integer]

MAX_ITERATIONS = 500

#: Starts that are tried for each that is followed to the end, and the iterations after which they are compared.
STARTS, TRIAL_ITERATIONS = 4, 20

#: The fit has converged when an iteration changes the objective by less than this share of it.
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFit:
    """The best of some starts of expectation maximisation.

    Attributes:
        model: the probabilities; classes of tasks, if its form has them, are all alike.
        log_likelihood: of all runs under the model.
        objective: the same plus the logarithms of the priors, up to a constant.
        iterations: of the best start. converged: they ended because the objective no longer changed, and not by
            `MAX_ITERATIONS`.
        restarts: the objective that each start reached which was followed to the end, the best first.
    """

    model: ExpandedModel
    log_likelihood: float
    objective: float
    iterations: int
    converged: bool
    restarts: tuple[float, ...]


def fit_phases(
    paths: RunPaths,
    form: ModelForm,
    kappa: float = 1.0,
    restarts: int = 3,
    seed: int = 0,
    warm: ExpandedModel | None = None,
) -> PhaseFit:
    """Fit a form with hidden phases to runs.

    Args:
        paths: under their censoring policy. form: with two phases or more and the bins of its clock chosen.
        kappa: mass of the priors of rows.
        restarts: how many starts are followed to the end, of which the best is kept; these are the best ones after
            `TRIAL_ITERATIONS` among `STARTS` as many (Biernacki, Celeux and Govaert, 2003). The first start splits
            every run in equal parts, the others in parts drawn with ``seed``.
        warm: a model that the iterations start from instead.

    Raises:
        UsageError: for one phase, restarts below 1, a kappa that is not above 0, or bins that are not chosen.
        NothingToCheckError: if no run has a known start.
        FitError: for too many contexts.
        ModelError: if ``warm`` is of another form or over other names, or a run is impossible under it.
    """
    if restarts < 1:
        raise UsageError(f"phases are fitted from one start or more, not {restarts}")
    search = _Search.of(paths, form, kappa)
    if warm is not None:
        firsts = [search.expected(_side_by_side(warm, search, paths))]
    else:
        sources = [None, *np.random.default_rng(seed).spawn(STARTS * restarts - 1)]
        firsts = [_counts_of_split(search.space, paths, _split(paths, form, source)) for source in sources]
    tried = sorted((search.climb(search.iterated(first), TRIAL_ITERATIONS) for first in firsts), key=_descending)
    climbs = sorted((search.climb(climb, MAX_ITERATIONS) for climb in tried[:restarts]), key=_descending)
    best = climbs[0]
    found = best.found
    return PhaseFit(
        model=ExpandedModel(
            form=search.space.form,
            states=paths.states,
            groups=() if form.group is None else paths.group_names,
            start=found.start[0],
            rows=found.rows[0],
            advance=found.advance[0],
            class_weights=np.full(form.classes, 1 / form.classes),
            class_tilts=np.zeros(form.classes),
        ),
        log_likelihood=best.log_likelihood,
        objective=best.objective,
        iterations=best.iterations,
        converged=best.converged,
        restarts=tuple(climb.objective for climb in climbs),
    )


def em_stack(
    paths: RunPaths,
    corpora: Integers,
    b: int,
    form: ModelForm,
    kappa: float,
    warm: ExpandedModel,
    iterations: int,
) -> tuple[Floats, Floats, Floats]:
    """Refit b corpora side by side, each from the same model by the same number of iterations.

    Args:
        paths: the runs of all corpora. corpora: the corpus of each run, from 0 to b - 1, shape (n_runs,).
        form, kappa: as for `fit_phases`.

    Returns:
        start, shape (b, G, Z, m + 2); rows, shape (b, Z, C, m, m + 2); advance, shape (b, Z, m, Z).

    Raises:
        UsageError, NothingToCheckError, FitError, ModelError: as `fit_phases` does; for iterations below 1.
    """
    if iterations < 1:
        raise UsageError(f"phases are refitted by one iteration or more, not {iterations}")
    search = _Search.of(paths, form, kappa, corpora, b)
    found = _side_by_side(warm, search, paths)
    for _ in range(iterations):
        found = search.maximised(search.expected(found))
    return found.start, found.rows, found.advance


# ------------------------------------------------------------ iterations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Climb:
    """Where iterations have come to: probabilities, and the expected numbers under them."""

    found: Probabilities
    counts: PhaseCounts
    log_likelihood: float
    objective: float
    iterations: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    """The runs of b corpora, ready for iterations.

    ``starts`` are numbers of runs by group and first category or end, shape (b, G, m + 2).
    """

    space: ContextSpace
    batches: tuple[ObservedBatch, ...]
    starts: Floats
    kappa: float
    workspace: Workspace

    @classmethod
    def of(cls, paths: RunPaths, form: ModelForm, kappa: float, corpora: Integers | None = None, b: int = 1) -> _Search:
        if form.phases < 2:
            raise UsageError(f"model {form} has no hidden phases to fit")
        require_kappa(kappa)
        space = space_of(paths, form)
        require_cells(space, b * form.phases)
        starts = start_counts(space, paths, corpora, b).astype(np.float64)
        totals = starts.sum(axis=(1, 2))
        if not totals.all():
            number = int(np.flatnonzero(totals == 0)[0])
            raise NothingToCheckError(f"corpus {number} of {b} has no run with a known start")
        batches = tuple(observed_batches(space, paths, corpora, most_steps=most_steps(form)))
        return cls(space=space, batches=batches, starts=starts, kappa=kappa, workspace=Workspace())

    def expected(self, found: Probabilities) -> PhaseCounts:
        return expected_counts(self.space.form, self.batches, found.start, found.rows, found.advance, self.workspace)

    def maximised(self, counts: PhaseCounts) -> Probabilities:
        shares = self.starts / self.starts.sum(axis=(1, 2), keepdims=True)
        return maximised(self.space, counts, shares, self.kappa)

    def iterated(self, counts: PhaseCounts, objective: float = -np.inf, iterations: int = 0) -> _Climb:
        """One iteration more for one corpus, from these expected numbers, which came of so many iterations."""
        found = self.maximised(counts)
        after = self.expected(found)
        starts = self.starts[self.starts > 0]
        log_likelihood = float(after.log_likelihood[0] + (starts * np.log(starts / starts.sum())).sum())
        reached = log_likelihood + float(log_priors(self.space, counts, found, self.kappa)[0])
        return _Climb(
            found=found,
            counts=after,
            log_likelihood=log_likelihood,
            objective=reached,
            iterations=iterations + 1,
            converged=abs(reached - objective) <= TOLERANCE * abs(reached),
        )

    def climb(self, climb: _Climb, most: int) -> _Climb:
        """Iterate until the objective settles, or ``most`` iterations were made."""
        while not climb.converged and climb.iterations < most:
            climb = self.iterated(climb.counts, climb.objective, climb.iterations)
        return climb


def _descending(climb: _Climb) -> float:
    return -climb.objective


def _side_by_side(warm: ExpandedModel, search: _Search, paths: RunPaths) -> Probabilities:
    groups = () if search.space.form.group is None else paths.group_names
    if warm.form != search.space.form or warm.states != paths.states or warm.groups != groups:
        raise ModelError(
            f"phases of {search.space.form} cannot be sought from a model of {warm.form} or of other names"
        )
    b = len(search.starts)
    start, rows, advance = (
        np.broadcast_to(values, (b, *values.shape)) for values in (warm.start, warm.rows, warm.advance)
    )
    return Probabilities(start=start, rows=rows, advance=advance)


# ------------------------------------------------------------ starts of the iterations


def _split(paths: RunPaths, form: ModelForm, source: np.random.Generator | None) -> Codes:
    """A phase for every step, by the part of its run, shape (n_steps,): equal parts, or random ones.

    Phases that go in any order have two parts each, in random order.
    """
    n_phases = form.phases
    order = np.arange(n_phases)
    shares = np.full(n_phases, 1 / n_phases)
    if source is not None:
        if form.phase_kind == "full":
            order = source.permutation(np.tile(order, 2))
        shares = source.dirichlet(np.full(len(order), 2.0))
    lengths = paths.lengths
    earlier = np.arange(paths.n_steps) - np.repeat(paths.offsets[:-1], lengths)
    part = np.searchsorted(np.cumsum(shares)[:-1], earlier / np.repeat(lengths, lengths), side="right")
    return order[part]


def _counts_of_split(space: ContextSpace, paths: RunPaths, phases: Codes) -> PhaseCounts:
    """What happened, if these were the phases. Left to right, a jump over a phase counts as one step on."""
    form, m = space.form, space.n_states
    n_phases, n_groups, n_contexts = form.phases, space.n_groups, space.size
    grouped = form.group is not None
    contexts = space.of_paths(paths.codes, paths.offsets, paths.groups if grouped else None)
    following = paths.following
    seen, inside = following < m + 2, np.flatnonzero(following < m)
    row = (phases * n_contexts + contexts) * m + paths.codes
    event = row * (m + 2) + following
    after = phases[inside + 1]
    if form.phase_kind == "left-to-right":
        after = np.minimum(after, phases[inside] + 1)
    change = (phases[inside] * m + paths.codes[inside]) * n_phases + after
    firsts = paths.offsets[:-1][paths.lengths > 0]
    groups = paths.groups[paths.lengths > 0] if grouped else 0
    first = (groups * n_phases + phases[firsts]) * m + paths.codes[firsts]
    shapes = (
        (first, (1, n_groups, n_phases, m)),
        (event[seen], (1, n_phases, n_contexts, m, m + 2)),
        (row[~seen], (1, n_phases, n_contexts, m)),
        (change, (1, n_phases, m, n_phases)),
    )
    starts, rows, survivors, changes = (
        np.bincount(key, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64) for key, shape in shapes
    )
    return PhaseCounts(
        starts=starts, rows=rows, survivors=survivors, changes=changes, log_likelihood=np.full(1, -np.inf)
    )
