"""Runs side by side in time, so that all of them advance by one step in one array operation.

The steps of runs laid end to end are reordered to all first steps, then all second steps, and so on, longer runs first.
The runs that have a step t are then the first ``active[t]`` ones, and what belongs to time t is one slice. Few long
runs are cut into pieces, which then stand side by side as runs do; see `tracebridge.chain.expanded.pieces`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.states.expansion import ContextSpace
    from tracebridge.states.run_paths import RunPaths

    Integers = NDArray[np.integer]
    Codes = NDArray[np.int64]


#: Pieces pay if the longest run has so many steps, and the runs at a time, times the square of the phases, are fewer.
_LONG, _WIDE = 256, 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideBySide:
    """Some runs, none without a step, in p pieces ordered by time. A piece is a whole run, if runs are not cut.

    Pieces are those that are not the last of their runs, all of one length, by their number in the run; then the last
    ones, longer ones first. The first steps of pieces are the first p steps.

    Attributes:
        runs: their numbers, longer ones first, shape (n,).
        firsts: the first piece of each run, shape (n,).
        run_of_piece: places in ``runs``, shape (p,).
        following: the next piece of the same run after each but the last ones, shape (pieces that are not the last,).
        through: how many of these are first, second, ... pieces.
        active: how many pieces have a step t, descending, shape (T,) for T steps of the longest.
        begins: where the steps of time t start among the reordered ones, shape (T + 1,); from 0 to S.
        steps: where each of the reordered steps stands in the runs laid end to end, shape (S,).
    """

    runs: Codes
    firsts: Codes
    run_of_piece: Codes
    following: Codes
    through: Codes
    active: Codes
    begins: Codes
    steps: Codes

    @classmethod
    def of(cls, offsets: Codes, runs: Codes, piece: int | None = None) -> SideBySide:
        """These runs, each of at least one step, out of runs laid end to end at ``offsets``.

        Args:
            piece: cut runs after every so many steps.
        """
        lengths = offsets[runs + 1] - offsets[runs]
        order = np.argsort(-lengths, kind="stable")
        runs, lengths = runs[order], lengths[order]
        size = int(lengths.max(initial=1)) if piece is None else piece
        pieces = -(-lengths // size)
        first = np.cumsum(pieces) - pieces
        run = np.repeat(np.arange(len(runs)), pieces)
        number = np.arange(len(run)) - first[run]
        length = np.minimum(lengths[run] - number * size, size)
        is_last = number == pieces[run] - 1
        order = np.lexsort((run, number, -length, is_last))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        longest = int(length.max(initial=0))
        active = np.searchsorted(-length[order], -np.arange(longest), side="left").astype(np.int64)
        begins = np.concatenate([[0], np.cumsum(active)]).astype(np.int64)
        piece_of_step = order[np.arange(int(begins[-1])) - np.repeat(begins[:-1], active)]
        began = offsets[runs][run] + number * size
        return cls(
            runs=runs,
            firsts=place[first],
            run_of_piece=run[order],
            following=place[order[: len(order) - len(runs)] + 1],
            through=np.bincount(number[~is_last]),
            active=active,
            begins=begins,
            steps=began[piece_of_step] + np.repeat(np.arange(longest), active),
        )

    @property
    def run_of_step(self) -> Codes:
        """The place in ``runs`` of the run of each reordered step, shape (S,)."""
        return self.run_of_piece[np.arange(len(self.steps)) - np.repeat(self.begins[:-1], self.active)]

    def handed_on(self) -> list[slice]:
        """The first, the second, ... pieces of the runs that go on after them."""
        ends = np.cumsum(self.through).tolist()
        return [slice(end - n, end) for end, n in zip(ends, self.through.tolist(), strict=True)]

    def advances(self) -> list[tuple[slice, slice, slice]]:
        """For each time t from 1 on: the steps of t - 1, those of them whose pieces go on, and the steps of t."""
        begins, active = self.begins.tolist(), self.active.tolist()
        return [
            (
                slice(begins[t - 1], begins[t]),
                slice(begins[t - 1], begins[t - 1] + active[t]),
                slice(*begins[t : t + 2]),
            )
            for t in range(1, len(active))
        ]


def piece_length(lengths: Codes, n_phases: int) -> int | None:
    """After how many steps to cut runs of these lengths, or None if they are too many or too short for that."""
    longest, steps = int(lengths.max(initial=0)), int(lengths.sum())
    if n_phases == 1 or longest < _LONG or steps * n_phases**2 > _WIDE * longest:
        return None
    return ceil(sqrt(longest / 2))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedBatch:
    """What was seen of some runs, as positions in tables of probabilities; steps are in the order of ``layout``.

    Attributes:
        layout: the runs. corpora: the runs are of these corpora; positions count from the first of them.
        event: position of corpus, context, category and what followed, in a table of shape (corpora, C, m, m + 2); of
            the last step of a censored run, which was followed by a category unseen, as if by the first one.
        cut: which steps these are, shape (number of censored runs,).
        leaving: position of corpus and category in a table (corpora, m).
        last: which steps are the last of their runs, shape (n,).
        first: position of corpus, group and first category of each run in a table (corpora, G, m), shape (n,).
    """

    layout: SideBySide
    corpora: slice
    event: Codes
    cut: Codes
    leaving: Codes
    last: Codes
    first: Codes


def observed_batches(
    space: ContextSpace, paths: RunPaths, corpora: Integers | None = None, *, most_steps: int
) -> Iterator[ObservedBatch]:
    """All runs that have a step, corpus by corpus, in batches of at most ``most_steps`` steps or of one run.

    Args:
        space: contexts over the categories of the runs, with their groups where its form has one.
        corpora: the corpus of each run, shape (n_runs,); all are of one corpus without it.

    Raises:
        ModelError: for runs over other categories or groups than those of ``space``.
    """
    m, n_groups = space.n_states, space.n_groups
    if len(paths.states) != m:
        raise ModelError(f"runs over {len(paths.states)} categories cannot be judged by a model over {m}")
    grouped = space.form.group is not None
    if grouped and paths.n_groups != n_groups:
        raise ModelError(f"runs of {paths.n_groups} groups cannot be judged by a model of {n_groups}")
    offsets, lengths, following = paths.offsets, paths.lengths, paths.following
    contexts = space.of_paths(paths.codes, offsets, paths.groups if grouped else None)
    groups = paths.groups if grouped else np.zeros(paths.n_runs, dtype=np.int64)
    of_run = np.zeros(paths.n_runs, dtype=np.int64) if corpora is None else np.asarray(corpora, dtype=np.int64)
    order = np.lexsort((-lengths, of_run))
    order = order[lengths[order] > 0]
    ends = np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most_steps, side="right")))
        runs = order[start:stop]
        layout = SideBySide.of(offsets, runs, piece_length(lengths[runs], space.form.phases))
        lowest, highest = int(of_run[order[start]]), int(of_run[order[stop - 1]])
        corpus = of_run[layout.runs] - lowest
        steps, of_step = layout.steps, corpus[layout.run_of_step]
        codes, after = paths.codes[steps].astype(np.int64), following[steps]
        cut = np.flatnonzero(after == m + 2)
        after[cut] = 0
        yield ObservedBatch(
            layout=layout,
            corpora=slice(lowest, highest + 1),
            event=((of_step * space.size + contexts[steps]) * m + codes) * (m + 2) + after,
            cut=cut,
            leaving=of_step * m + codes,
            last=np.flatnonzero(steps == offsets[layout.runs + 1][layout.run_of_step] - 1),
            first=(corpus * n_groups + groups[layout.runs]) * m + paths.codes[offsets[layout.runs]],
        )
        start = stop
