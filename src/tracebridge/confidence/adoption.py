"""Which of the answers in view does a divergent speaker take up? One row for each, and one for the incumbent.

The source of a public answer is the poll that won its turn. The source of an incumbent is the last earlier turn of the
trace in which it was said, or else in which it was the selected candidate; one with neither (a revision in review) has
no source confidence, and its row is left out and counted. That confidence was never shown to the speaker: its
coefficient is an association.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.divergence_class import equivalent_answers, visible_pairs
from tracebridge.confidence.regression_design import RegressionDesign, regression_design
from tracebridge.confidence.routing_pools import at_rows
from tracebridge.confidence.table import UNKNOWN

if TYPE_CHECKING:
    from tracebridge.confidence.commitment import CommitmentPairs
    from tracebridge.confidence.table import Codes, ConfidenceTable


def adoption_design(table: ConfidenceTable, pairs: CommitmentPairs) -> RegressionDesign:
    """The regression of ``adopted``: the spoken answer is equivalent to the one in view.

    Columns: ``role_self`` and ``role_incumbent`` (against a peer's), ``lag`` in turns, ``source_confidence``,
    ``source_correct``, ``most_recent`` (the latest public answer in view).
    """
    speaks, blocks = table.speaks, table.blocks
    rows = pairs.speak[pairs.divergent]
    position, seen = visible_pairs(table, rows)
    given = speaks.answer[seen] >= 0
    position, seen = position[given], seen[given]
    latest = np.full(len(rows), UNKNOWN, dtype=np.int64)
    np.maximum.at(latest, position, seen)
    standing = np.flatnonzero(blocks.incumbent[speaks.block[rows]] >= 0)
    block = speaks.block[rows[standing]]

    speaker = np.concatenate([rows[position], rows[standing]])
    answer = np.concatenate([speaks.answer[seen], blocks.incumbent[block]])
    source = np.concatenate([speaks.block[seen], last_block_with(table, block, blocks.incumbent[block])])
    correct = np.concatenate([speaks.correct[seen], blocks.incumbent_correct[block]])
    is_incumbent = np.arange(len(speaker)) >= len(seen)
    own = np.concatenate([speaks.agent[seen] == speaks.agent[rows[position]], np.zeros(len(block), dtype=np.bool_)])
    recent = np.concatenate([seen == latest[position], np.zeros(len(block), dtype=np.bool_)])
    # A source that was never polled has no confidence either, and regression_design leaves such a row out.
    confidence = at_rows(table.polls.confidence, at_rows(blocks.selected, source, UNKNOWN), np.nan)
    return regression_design(
        "adoption",
        "adopted",
        "answers in view of a divergent speaker",
        y=equivalent_answers(table, speaks.answer[speaker], answer),
        columns={
            "role_self": own.astype(np.float64),
            "role_incumbent": is_incumbent.astype(np.float64),
            "lag": np.where(source >= 0, speaks.block[speaker] - source, np.nan),
            "source_confidence": confidence,
            "source_correct": np.where(correct >= 0, correct, np.nan),
            "most_recent": recent.astype(np.float64),
        },
        cluster=table.cluster_of_block[speaks.block[speaker]],
    )


def last_block_with(table: ConfidenceTable, block: Codes, answer: Codes) -> Codes:
    """The last block before ``block`` of its trace where ``answer`` was said, or else selected; ``UNKNOWN`` if none."""
    speaks, polls = table.speaks, table.polls
    said = _last_before(table, speaks.block, speaks.answer, block, answer)
    chosen = np.flatnonzero(table.blocks.selected >= 0)
    polled = _last_before(table, chosen, polls.answer[table.blocks.selected[chosen]], block, answer)
    return np.where(said >= 0, said, polled)


def _last_before(table: ConfidenceTable, event_block: Codes, event_answer: Codes, block: Codes, answer: Codes) -> Codes:
    trace, n_blocks, n_answers = table.blocks.trace, len(table.blocks.trace), len(table.answers)
    known = event_answer >= 0
    event_block, event_answer = event_block[known], event_answer[known]
    found = np.full(len(block), UNKNOWN, dtype=np.int64)
    if len(event_block) == 0:
        return found
    kinds, kind = np.unique(trace[event_block] * n_answers + event_answer, return_inverse=True)
    events = np.sort(kind * n_blocks + event_block)
    sought = trace[block] * n_answers + answer
    at = np.minimum(np.searchsorted(kinds, sought), len(kinds) - 1)
    before = np.searchsorted(events, at * n_blocks + block) - 1
    hit = (kinds[at] == sought) & (before >= 0) & (events[np.maximum(before, 0)] // n_blocks == at)
    found[hit] = events[before[hit]] % n_blocks
    return found
