"""Each block's pool of candidates: how many are valid, how many correct, which were on top, and what was selected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

import numpy as np

from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import InputError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.table import Codes, ConfidenceTable, Labels, Numbers

Scalar = TypeVar("Scalar", bound=np.generic)

#: What becomes of a valid candidate whose correctness is not known: its unit is left out where the label is needed, it
#: counts as wrong, or it is an error.
MissingLabel = Literal["drop", "wrong", "error"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockPools:
    """The pools of all blocks (B), with what every metric asks of them. N is the number of polls.

    Attributes:
        table: where they are from.
        score: (N,) to compare with: as stated, and below everything where none could be read.
        correct: (N,) labels of the valid polls under the policy for missing labels; ``UNKNOWN`` for invalid ones.
        n_polls, n_valid, n_correct: (B,) polls, valid polls, valid polls known to be correct.
        labelled: (B,) every valid poll has a label.
        selected: (B,) rows of the selected polls; ``UNKNOWN`` where nothing was selected.
    """

    table: ConfidenceTable
    score: Numbers
    correct: Labels
    n_polls: Codes
    n_valid: Codes
    n_correct: Codes
    labelled: NDArray[np.bool_]
    selected: Codes

    @property
    def has_selection(self) -> NDArray[np.bool_]:
        """(B,) a poll was selected."""
        return self.selected >= 0

    @property
    def selected_valid(self) -> NDArray[np.bool_]:
        """(B,) a valid poll was selected."""
        return at_rows(self.table.polls.valid, self.selected, False)

    @property
    def selected_correct(self) -> Labels:
        """(B,) the selected poll is valid and correct: 1; it is wrong or invalid: 0; else ``UNKNOWN``."""
        label = np.where(self.selected_valid, at_rows(self.correct, self.selected, UNKNOWN), 0)
        return np.where(self.has_selection, label, UNKNOWN).astype(np.int8)

    @property
    def solvable(self) -> Labels:
        """(B,) a valid candidate is correct; known as soon as one is, or as all valid ones have a label."""
        return np.where(self.n_correct > 0, 1, np.where(self.labelled, 0, UNKNOWN)).astype(np.int8)

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """(B,) all valid candidates have a label, and some are correct and some wrong."""
        return self.labelled & (self.n_correct > 0) & (self.n_correct < self.n_valid)

    def maxima(self, score: Numbers) -> Numbers:
        """(B,) the highest of so many scores (N,) in each block; minus infinity in a block without polls."""
        highest = np.full(len(self.n_polls), -np.inf)
        asked = self.n_polls > 0
        if asked.any():
            highest[asked] = np.maximum.reduceat(score, self.table.blocks.first_poll[:-1][asked])
        return highest

    @property
    def top_tie(self) -> NDArray[np.bool_]:
        """(B,) several polls have the highest score."""
        block = self.table.polls.block
        top = self.score == self.maxima(self.score)[block]
        return np.asarray(np.bincount(block[top], minlength=len(self.n_polls)) > 1)

    def first_of_highest(self, score: Numbers) -> Codes:
        """(B,) rows of the polls that a router takes which keeps the first of equal scores (N,)."""
        block = self.table.polls.block
        top = np.flatnonzero(score == self.maxima(score)[block])
        first = np.full(len(self.n_polls), UNKNOWN, dtype=np.int64)
        first[block[top[::-1]]] = top[::-1]  # of several assignments to one place the last one stays
        return first


def block_pools(table: ConfidenceTable, *, on_missing_label: MissingLabel = "drop") -> BlockPools:
    """The pools of a corpus.

    Raises:
        UsageError: an unknown policy. InputError: with ``error``, a valid poll has no label.
    """
    polls, n_blocks = table.polls, len(table.blocks.trace)
    correct = labels_under_policy(polls.correct, polls.valid, on_missing_label, "valid polls")
    n_valid = np.bincount(polls.block[polls.valid], minlength=n_blocks)
    n_correct = np.bincount(polls.block[correct == 1], minlength=n_blocks)
    n_labelled = np.bincount(polls.block[correct >= 0], minlength=n_blocks)
    return BlockPools(
        table=table,
        score=np.where(np.isnan(polls.score), -np.inf, polls.score),
        correct=correct,
        n_polls=np.diff(table.blocks.first_poll),
        n_valid=n_valid,
        n_correct=n_correct,
        labelled=n_labelled == n_valid,
        selected=table.blocks.selected,
    )


def labels_under_policy(label: Labels, applies: NDArray[np.bool_], policy: MissingLabel, what: str) -> Labels:
    """The labels where they apply, ``UNKNOWN`` elsewhere, with the missing ones as the policy says; ``what`` they are.

    Raises:
        UsageError: an unknown policy. InputError: with ``error``, a label that applies is missing.
    """
    if policy not in get_args(MissingLabel):
        raise UsageError(f"a missing label can be one of {', '.join(get_args(MissingLabel))}, not {policy!r}")
    missing = applies & (label == UNKNOWN)
    if policy == "error" and missing.any():
        raise InputError(
            f"{int(missing.sum())} {what} have no label of correctness, the first in row {int(np.argmax(missing))}: "
            "label them, or say that units without a label are dropped or count as wrong"
        )
    filled = np.where(missing, 0, label) if policy == "wrong" else label
    return np.where(applies, filled, UNKNOWN).astype(np.int8)


def at_rows(column: NDArray[Scalar], rows: Codes, missing: bool | float) -> NDArray[Scalar]:
    """A column at some rows, and ``missing`` where the row is ``UNKNOWN``."""
    taken = np.full(len(rows), missing, dtype=column.dtype)
    known = rows >= 0
    taken[known] = column[rows[known]]
    return taken
