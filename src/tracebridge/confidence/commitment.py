"""Does the selected agent say in public what won it the turn? Poll and spoken answer of each valid pair.

A valid pair is a valid selected poll and a spoken answer, both with a label of correctness, whose equivalence is
decided. Over the pairs P and the divergent ones D among them, with z the poll's and x the spoken correctness:

====================  =======================  ==========
PSDR                  divergent                of P
PSIR                  z = 0, x = 1             of D
PSDRg                 z = 1, x = 0             of D
NPCS given D          sum of x - z             over D
NPCS unconditional    sum of x - z             over P
label inconsistency   x differs from z         of P not D
====================  =======================  ==========
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from tracebridge.confidence.audit_tally import RatioTally, tally
from tracebridge.confidence.routing_pools import MissingLabel, Scalar, at_rows, labels_under_policy
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.table import Codes, ConfidenceTable, Labels

#: What a pair counts as that the judge did not decide.
UndecidedPolicy = Literal["exclude", "divergent", "equivalent"]

DIVERGENT_PAIRS = "divergent pairs"
VALID_PAIRS = "valid pairs"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitmentPairs:
    """The valid pairs of a corpus (P), and what was left out.

    Attributes:
        judge: whose verdicts these are; None for equality of canonical answers alone.
        speak, poll, trace: (P,) rows of the utterances, of the selected polls, of the traces.
        divergent: (P,) the spoken answer is another than the poll's.
        poll_correct, spoken_correct: (P,) 0 or 1.
        dropped_trace: rows of the traces of those pairs of a valid poll and a spoken answer that are no valid pairs.
        n_undecided, n_unlabelled: how many pairs the judge left undecided, whatever became of them; how many of the
            others lack a label.
    """

    judge: str | None
    speak: Codes
    poll: Codes
    trace: Codes
    divergent: NDArray[np.bool_]
    poll_correct: Labels
    spoken_correct: Labels
    dropped_trace: Codes
    n_undecided: int
    n_unlabelled: int

    @property
    def shift(self) -> NDArray[np.int64]:
        """(P,) x - z: 1 improved, -1 degraded."""
        return self.spoken_correct.astype(np.int64) - self.poll_correct


def commitment_pairs(
    table: ConfidenceTable,
    *,
    judge: str | None = None,
    undecided_policy: UndecidedPolicy = "exclude",
    on_missing_label: MissingLabel = "drop",
) -> CommitmentPairs:
    """The valid pairs under one judge, the first by default.

    Raises:
        UsageError: an unknown judge or policy. InputError: ``on_missing_label`` is ``error`` and a label is missing.
    """
    if undecided_policy not in get_args(UndecidedPolicy):
        raise UsageError(
            f"an undecided pair can be one of {', '.join(get_args(UndecidedPolicy))}, not {undecided_policy!r}"
        )
    judge = judge if judge is not None else next(iter(table.judges), None)
    speaks, polls, block = table.speaks, table.polls, table.speaks.block
    poll = table.blocks.selected[block]
    stated = at_rows(polls.valid, poll, False) & (speaks.answer >= 0)
    verdict = verdicts_of(table, judge)
    z = labels_under_policy(at_rows(polls.correct, poll, UNKNOWN), stated, on_missing_label, "selected polls")
    x = labels_under_policy(speaks.correct, stated, on_missing_label, "spoken answers")
    undecided = stated & (verdict == UNKNOWN)
    labelled = (z >= 0) & (x >= 0)
    pair = stated & labelled & (~undecided if undecided_policy == "exclude" else True)
    divergent = np.where(undecided, undecided_policy == "divergent", verdict == 1)
    rows, trace = np.flatnonzero(pair), table.blocks.trace[block]
    return CommitmentPairs(
        judge=judge,
        speak=rows,
        poll=poll[rows],
        trace=trace[rows],
        divergent=divergent[rows],
        poll_correct=z[rows],
        spoken_correct=x[rows],
        dropped_trace=trace[stated & ~pair],
        n_undecided=int(undecided.sum()),
        n_unlabelled=int((stated & ~undecided & ~labelled).sum()),
    )


def verdicts_of(table: ConfidenceTable, judge: str | None) -> Labels:
    """(S,) 1 divergent, 0 equivalent, ``UNKNOWN`` undecided by this judge.

    Without a judge canonical forms decide: answers diverge where these differ. A pair that is said to have gone to
    judges, of whom none is known, is undecided.

    Raises:
        UsageError: there is no such judge.
    """
    if judge is None:
        polled = at_rows(table.polls.answer, table.blocks.selected[table.speaks.block], UNKNOWN)
        return np.where(table.speaks.residual, UNKNOWN, table.speaks.answer != polled).astype(np.int8)
    if judge not in table.judges:
        known = ", ".join(table.judges) or "none"
        raise UsageError(f"there is no judge {judge!r} of the equivalence of answers; known: {known}")
    return table.speaks.divergent[:, table.judges.index(judge)]


def commitment_tallies(pairs: CommitmentPairs) -> tuple[RatioTally, ...]:
    """The metrics of commitment; units are the pairs, and those that were left out."""
    n_dropped = len(pairs.dropped_trace)
    trace = np.concatenate([pairs.trace, pairs.dropped_trace])
    dropped = np.arange(len(trace)) >= len(pairs.trace)

    def padded(values: NDArray[Scalar]) -> NDArray[Scalar]:
        return np.concatenate([values, np.zeros(n_dropped, dtype=values.dtype)])

    divergent, shift = padded(pairs.divergent), padded(pairs.shift)
    every, kept = padded(np.ones(len(pairs.trace))), padded(~pairs.divergent)
    rows = (
        ("PSDR", divergent, every, VALID_PAIRS),
        ("PSIR", shift > 0, divergent, DIVERGENT_PAIRS),
        ("PSDRg", shift < 0, divergent, DIVERGENT_PAIRS),
        ("NPCS_given_divergence", shift, divergent, DIVERGENT_PAIRS),
        ("NPCS_unconditional", shift, every, VALID_PAIRS),
        ("label_inconsistency", shift != 0, kept, "pairs that do not diverge"),
    )
    return tuple(
        tally(
            name,
            among,
            numerator=above,
            denominator=below,
            dropped=dropped,
            trace=trace,
            bounds=(-1.0 if name.startswith("NPCS") else 0.0, 1.0),
        )
        for name, above, below, among in rows
    )
