"""How far corpora are from richer chains: when runs end, and what follows a step in a context that may matter.

``first passage``: the largest gap between the chain's and the observed probability to have ended in success, or in
failure, within d steps. ``previous state``, ``step time``, ``dwell``: events (context u, category c, next x) against
``E[u, c, x]``, the sum of the chain's probabilities of x given the run so far over the steps of c in u.

Most cells of such tables are nearly empty, and rows there are shrunk, so that the likelihood ratio G2 and Freeman and
Tukey's statistic depend on how much. The test is Pearson's statistic over lumps instead: each cell with an expectation
of five or more, and what is left of a category, or of all of them, as one, in units of its deviation for as many
independent lumps, ``(X2 - L) / sqrt(2 L)``, so that it hardly depends on how many there are. On chains fitted to 200
runs over 22 categories, at level .05, G2 rejected up to .9 of corpora of the very chain, and the joint test of the
lumps .01 to .08.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import xlogy

from tracebridge.chain.expanded.estimation import space_of
from tracebridge.chain.expanded.forward import predictive_stack
from tracebridge.errors import FitError
from tracebridge.inference.event_counts import EventCounts
from tracebridge.inference.expanded.model_curves import end_curves
from tracebridge.inference.misfit import FIRST_PASSAGE, CurveGap, aalen_johansen, largest_gap
from tracebridge.inference.path_tables import MAX_RUN_LENGTH, STEP_BINS, PathTables, step_bin
from tracebridge.states.features import OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.estimation import ModelStack
    from tracebridge.states.run_paths import RunPaths

    Codes = NDArray[np.int64]
    Floats = NDArray[np.float64]

_Record = TypeVar("_Record", CurveGap, "TableMisfit")

TABLES = ("previous state", "step time", "dwell")

#: Cells with smaller expectations are lumped.
LEAST_EXPECTED = 5.0
#: At most so many cells are in the tables of one corpus.
_MAX_CELLS = 20_000_000
#: About so many steps are worked on at once.
_BLOCK_STEPS = 250_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventTable:
    """Events of g corpora by context, category and next, beside what chains expect.

    Attributes:
        observed, expected: shape (g, contexts, m, m + 2). The sums over the last axis are equal.
    """

    observed: Floats
    expected: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableMisfit:
    """The statistics of one table, of g corpora.

    Attributes:
        lumped: Pearson's statistic over lumps, standardised. lumps: their number. Shape (g,).
        g2_by_state: likelihood ratio by category, shape (g, m). n_by_state: events, shape (g, m).
        freeman_tukey: shape (g,).
    """

    lumped: Floats
    lumps: Codes
    g2_by_state: Floats
    n_by_state: Floats
    freeman_tukey: Floats

    @property
    def g2(self) -> Floats:
        """Likelihood ratio, shape (g,)."""
        return np.asarray(self.g2_by_state.sum(axis=1))

    @property
    def n_events(self) -> Floats:
        """Shape (g,)."""
        return np.asarray(self.n_by_state.sum(axis=1))

    @classmethod
    def of(cls, table: EventTable) -> TableMisfit:
        """The statistics of a table."""
        observed, expected = table.observed, table.expected
        lumped, lumps = lumped_pearson(observed, expected)
        ratio = np.divide(observed, expected, out=np.ones_like(observed), where=observed > 0)
        roots = np.sqrt(observed) + np.sqrt(observed + 1) - np.sqrt(4 * expected + 1)
        return cls(
            lumped=lumped,
            lumps=lumps,
            g2_by_state=2 * xlogy(observed, ratio).sum(axis=(1, 3)),
            n_by_state=observed.sum(axis=(1, 3)),
            freeman_tukey=np.square(roots).sum(axis=(1, 2, 3)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelMisfit:
    """The statistics of g corpora.

    Attributes:
        gap: of the curves. tables: by name.
    """

    gap: CurveGap
    tables: Mapping[str, TableMisfit]

    @property
    def names(self) -> tuple[str, ...]:
        """The statistics in the order of ``values``."""
        return (FIRST_PASSAGE, *self.tables)

    @property
    def values(self) -> Floats:
        """The statistics that are tested, shape (g, number of statistics); large is bad."""
        return np.column_stack([self.gap.size, *(table.lumped for table in self.tables.values())])

    @classmethod
    def joined(cls, parts: Sequence[ModelMisfit]) -> ModelMisfit:
        """The statistics of all these corpora."""
        return cls(
            gap=_joined(CurveGap, [part.gap for part in parts]),
            tables={name: _joined(TableMisfit, [part.tables[name] for part in parts]) for name in parts[0].tables},
        )


def _joined(kind: type[_Record], parts: Sequence[_Record]) -> _Record:
    return kind(**{item.name: np.concatenate([getattr(part, item.name) for part in parts]) for item in fields(kind)})


def model_misfit(stack: ModelStack, paths: RunPaths, corpora: Codes) -> ModelMisfit:
    """The statistics of corpora, each against its own chain.

    Args:
        stack: g chains. paths: runs of all corpora, those of a corpus side by side. corpora: of each run, ascending.

    Raises:
        FitError: for too many categories, or a run longer than `MAX_RUN_LENGTH`.
    """
    tables = event_tables(stack, paths, corpora)
    observed = integer_tables(tables, paths, corpora)
    curves = aalen_johansen(observed)
    fitted = end_curves(space_of(paths, stack.form), stack.start, stack.rows, stack.advance, curves.shape[2] - 1)
    return ModelMisfit(
        gap=largest_gap(curves, fitted, observed.longest),
        tables={name: TableMisfit.of(without_first_steps(name, table)) for name, table in tables.items()},
    )


def without_first_steps(name: str, table: EventTable) -> EventTable:
    """The table ``previous state`` without the first steps of runs, which have none; other tables as they are."""
    if name != TABLES[0]:
        return table
    return EventTable(observed=table.observed[:, :-1], expected=table.expected[:, :-1])


def lumped_pearson(observed: Floats, expected: Floats) -> tuple[Floats, Codes]:
    """Standardised Pearson statistics of tables, shape (g, contexts, m, m + 2), and the numbers of lumps: (g,), (g,).

    What is left in the end is left out if less than `LEAST_EXPECTED` is expected there; zero without a lump.
    """
    chi_square, lumps = np.zeros(len(observed)), np.zeros(len(observed), dtype=np.int64)
    for pooled_over in ((1, 3), 1, None):
        own = expected >= LEAST_EXPECTED
        terms = np.square(observed - expected) / np.where(own, expected, 1.0)
        inner = tuple(range(1, observed.ndim))
        chi_square += np.where(own, terms, 0.0).sum(axis=inner)
        lumps += own.sum(axis=inner)
        if pooled_over is not None:
            observed = np.where(own, 0.0, observed).sum(axis=pooled_over)
            expected = np.where(own, 0.0, expected).sum(axis=pooled_over)
    return (chi_square - lumps) / np.sqrt(2 * np.maximum(lumps, 1)), lumps


# ---------------------------------------------------------------- counting


def event_tables(stack: ModelStack, paths: RunPaths, corpora: Codes) -> dict[str, EventTable]:
    """The tables of corpora against their chains; the last context of ``previous state`` is the first step of runs.

    Args:
        as of `model_misfit`.
    """
    m, g = len(paths.states), len(stack.start)
    if (m + 1) * m * (m + 2) > _MAX_CELLS:
        raise FitError(f"{m} states are too many for the certificate of a richer chain: fold rare ones")
    sizes = (m + 1, len(STEP_BINS), len(STEP_BINS))
    observed = [np.zeros(g * size * m * (m + 2)) for size in sizes]
    expected = [np.zeros((g * size * m, m + 2)) for size in sizes]
    for runs in _blocks(paths):
        part, whose = paths.take(runs), corpora[runs]
        predicted = predictive_stack(stack, part, whose)
        following = part.following
        seen = following < m + 2
        predicted, following, states = predicted[seen], following[seen], part.codes[seen].astype(np.int64)
        corpus = np.repeat(whose, part.lengths)[seen]
        for k, context in enumerate(_contexts(part)):
            row = (corpus * sizes[k] + context[seen]) * m + states
            observed[k] += np.bincount(row * (m + 2) + following, minlength=len(observed[k]))
            expected[k] += _sums(row, predicted, len(expected[k]))
    return {
        name: EventTable(
            observed=observed[k].reshape(g, sizes[k], m, m + 2), expected=expected[k].reshape(g, sizes[k], m, m + 2)
        )
        for k, name in enumerate(TABLES)
    }


def integer_tables(tables: Mapping[str, EventTable], paths: RunPaths, corpora: Codes) -> PathTables:
    """The same corpora in integers, with the lengths and ends of their runs."""
    m, lengths = len(paths.states), paths.lengths
    g = len(tables[TABLES[0]].observed)
    longest = int(lengths.max(initial=0))
    if longest > MAX_RUN_LENGTH:
        raise FitError(f"a run of {longest} steps is too long: the certificate times runs of {MAX_RUN_LENGTH}")
    kinds = len(OUTCOMES)
    ends = (corpora * kinds + paths.outcomes) * (longest + 1) + lengths
    begun = lengths > 0
    starts = corpora[begun] * m + paths.codes[paths.offsets[:-1][begun]]
    previous, clock, dwell = (_event_counts(tables[name]) for name in TABLES)
    return PathTables(
        previous=previous,
        clock=clock,
        dwell=dwell,
        starts=np.bincount(starts, minlength=g * m).reshape(g, m),
        ends=np.bincount(ends, minlength=g * kinds * (longest + 1)).reshape(g, kinds, longest + 1),
    )


def _event_counts(table: EventTable) -> EventCounts:
    g, contexts, m, _ = table.observed.shape
    counts = table.observed.ravel()
    keys = np.flatnonzero(counts)
    return EventCounts(
        n_corpora=g, n_contexts=contexts, n_states=m, keys=keys, counts=np.rint(counts[keys]).astype(np.int64)
    )


def _blocks(paths: RunPaths) -> Iterator[Codes]:
    """All runs, some at a time."""
    first = 0
    while first < paths.n_runs:
        above = int(paths.offsets[first]) + _BLOCK_STEPS
        end = max(first + 1, int(np.searchsorted(paths.offsets, above, side="right")) - 1)
        yield np.arange(first, end)
        first = end


def _contexts(paths: RunPaths) -> tuple[Codes, Codes, Codes]:
    """Of every step: the state before it, or m; the bin of earlier steps, and of earlier steps of the same stay."""
    lengths = paths.lengths
    place = np.arange(paths.n_steps)
    before = np.empty(paths.n_steps, dtype=np.int64)
    before[1:] = paths.codes[:-1]
    before[paths.offsets[:-1][lengths > 0]] = len(paths.states)
    stay = place - np.maximum.accumulate(np.where(before != paths.codes, place, 0)) if len(place) else place
    return before, step_bin(place - np.repeat(paths.offsets[:-1], lengths)), step_bin(stay)


def _sums(rows: Codes, values: Floats, size: int) -> Floats:
    """Sums of the rows of ``values`` by number, shape (size, width)."""
    n = len(rows)
    belongs = csr_array((np.ones(n), rows, np.arange(n + 1)), shape=(n, size))
    return np.asarray(belongs.T @ values)
