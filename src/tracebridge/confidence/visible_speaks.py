"""Which earlier speaks each speaker could see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tracebridge.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracebridge.confidence.broadcast import BroadcastTrace
    from tracebridge.confidence.table import Codes

Visibility: TypeAlias = Literal["all_prior", "window"]
"""What a speaker could see where the trace does not say: all earlier speaks, or the last ones of its window."""

_MOST_PAIRS = 10_000_000
_WINDOWED_MEMORY = "summary_plus_recent"


def visible_speaks(traces: Sequence[BroadcastTrace], visibility: Visibility) -> tuple[Codes, Codes]:
    """For each speak of the corpus, in order, the rows of the earlier speaks that it could see.

    Where a block lists the utterances, those; else all earlier speaks of the trace or, with ``window`` and a memory of
    ``summary_plus_recent``, the last ``recent_history_window`` of them. A speaker always sees its own. Listed
    utterances that are no speaks (reviews, system messages) have no row.

    Returns:
        ``first_visible`` (S + 1,) and ``visible`` (V,): speak s saw ``visible[first_visible[s]:first_visible[s + 1]]``.

    Raises:
        InputError: more than 10 million pairs.
    """
    rows: list[Codes] = []
    n_pairs = start = 0
    for trace in traces:
        window = _window(trace) if visibility == "window" else None
        n_spoken = 0
        for seen in _seen(trace, window):
            n_pairs += len(seen)
            if n_pairs > _MOST_PAIRS:
                raise InputError(f"more than {_MOST_PAIRS} pairs of a speak and an earlier one that it could see")
            rows.append(seen + start)
            n_spoken += 1
        start += n_spoken
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return first, np.concatenate([np.zeros(0, np.int64), *rows])


def _window(trace: BroadcastTrace) -> int | None:
    return trace.config.recent_history_window if trace.config.memory_mode == _WINDOWED_MEMORY else None


def _seen(trace: BroadcastTrace, window: int | None) -> Iterator[Codes]:
    """For each speak of a trace, the places of those it could see among the speaks of the trace."""
    place_of: dict[str, int] = {}
    own: dict[str, list[int]] = {}
    for block in trace.blocks:
        if block.speak is None:
            continue
        place = len(place_of)
        mine = own.setdefault(block.speak.agent, [])
        if block.visible is not None:
            listed = {place_of[name] for name in block.visible if name in place_of}
            yield np.array(sorted(listed.union(mine)), dtype=np.int64)
        elif window is not None and window < place:
            yield np.array(sorted({*mine, *range(place - window, place)}), dtype=np.int64)
        else:
            yield np.arange(place)
        place_of[block.speak.utt_id] = place
        mine.append(place)
