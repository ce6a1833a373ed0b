"""Scores from elsewhere for the polls of a corpus, such as a surrogate's readouts: what another router could go by.

One JSON object a line: ``{"trace_id": ..., "block_id": ..., "agent": ..., "score": 0.87}``; a higher score is selected
first. Polls without one are selected last.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tracebridge.confidence.broadcast import Name
from tracebridge.confidence.record_lines import record_lines
from tracebridge.errors import InputError, Location, Problem
from tracebridge.traces.files import InputFile
from tracebridge.traces.inputs import label_of
from tracebridge.traces.json_text import JsonTextError, decode_strictly

if TYPE_CHECKING:
    from tracebridge.confidence.corpus import ConfidenceCorpus
    from tracebridge.confidence.table import Numbers

_MAX_PROBLEMS = 20


class _Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    trace_id: Name
    block_id: Name
    agent: Name
    score: float


def read_poll_scores(path: str | Path, corpus: ConfidenceCorpus) -> Numbers:
    """The scores of a corpus' polls, shape (N,) in the order of its table; NaN where there is none.

    Raises:
        InputError: lines that are no score, are of no poll of the corpus or of one that has a score already; with the
            places of the first ones.
    """
    row_of: dict[tuple[str, str, str], int] = {}
    n_polls = 0
    for trace in corpus.traces:
        for block in trace.blocks:
            for poll in block.polls:
                row_of.setdefault((trace.trace_id, block.block_id, poll.agent), n_polls)
                n_polls += 1
    scores = np.full(n_polls, np.nan)
    problems: list[Problem] = []
    label = label_of(path, 1)
    with InputFile(Path(path), label) as file:
        for place, line in record_lines(file):
            try:
                found = msgspec.convert(decode_strictly(line), _Score, strict=False)
                row = row_of.get((found.trace_id, found.block_id, found.agent))
                if row is None:
                    raise msgspec.ValidationError("there is no such poll in the corpus")
                if not math.isfinite(found.score):
                    raise msgspec.ValidationError(f"the score is {found.score}")
                if not math.isnan(scores[row]):
                    raise msgspec.ValidationError("this poll has a score already")
                scores[row] = found.score
            except (JsonTextError, msgspec.ValidationError) as error:
                problems.append(Problem(location=place, message=str(error)))
                if len(problems) == _MAX_PROBLEMS:
                    break
    if problems:
        raise InputError(problems)
    if n_polls and np.isnan(scores).all():
        raise InputError("the file holds no score", location=Location(path=label))
    return scores
