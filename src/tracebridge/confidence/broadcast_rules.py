"""What the types of a broadcast trace cannot say: how its parts must fit together."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tracebridge.traces.problems import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.confidence.broadcast import Block, BroadcastTrace, StatedScale

_FINEST = 1e-12


class Flaw(NamedTuple):
    """Something that is wrong in a trace: the field, what, and what to do about it."""

    field: str
    message: str
    hint: str | None = None


def broken_rules(trace: BroadcastTrace) -> Iterator[Flaw]:
    """All that does not fit: the scale, the order of blocks and polls, names that stand twice or refer to nothing."""
    yield from _scale_flaws(trace.score_scale)
    block_ids: set[str] = set()
    spoken: dict[str, int] = {}
    for number, block in enumerate(trace.blocks):
        where = f"blocks[{number}]"
        if block.block_id in block_ids:
            yield Flaw(f"{where}.block_id", f"{shown(block.block_id)} stands twice in the trace")
        block_ids.add(block.block_id)
        yield from _poll_flaws(block, where)
        if block.speak is not None:
            if block.speak.utt_id in spoken:
                yield Flaw(f"{where}.speak.utt_id", f"{shown(block.speak.utt_id)} stands twice in the trace")
            spoken[block.speak.utt_id] = number
            yield from _speak_flaws(block, where)
    for number, block in enumerate(trace.blocks):
        for utterance in block.visible or ():
            if spoken.get(utterance, -1) >= number:
                message = f"the utterance {shown(utterance)} was not yet spoken when it is said to be visible"
                yield Flaw(f"blocks[{number}].visible", message)
    for number, (before, after) in enumerate(pairwise(trace.blocks), 1):
        if after.index <= before.index:
            message = f"block {after.index} follows block {before.index}"
            yield Flaw(f"blocks[{number}].index", message, "blocks stand in their order")
        if (after.round, after.turn) < (before.round, before.turn):
            message = f"round {after.round}, turn {after.turn} follows round {before.round}, turn {before.turn}"
            yield Flaw(f"blocks[{number}].round", message, "blocks stand in their order")
    if trace.outcome is not None and trace.outcome.stop == "pass" and trace.outcome.passed is False:
        yield Flaw("outcome", "the run stopped because it passed, and did not pass")


def _scale_flaws(scale: StatedScale) -> Iterator[Flaw]:
    if not (math.isfinite(scale.max) and 0 <= scale.min < scale.max):
        message = f"a scale from {scale.min:g} to {scale.max:g}"
        yield Flaw("score_scale", message, "a confidence is score / max: 0 <= min < max is needed")
    elif scale.integer and not (scale.min.is_integer() and scale.max.is_integer()):
        yield Flaw("score_scale", f"a scale of whole numbers from {scale.min:g} to {scale.max:g}")
    elif not _FINEST * scale.max <= scale.resolution < scale.max - scale.min:
        yield Flaw("score_scale.resolution", f"{scale.resolution:g} is no resolution of this scale")


def _poll_flaws(block: Block, where: str) -> Iterator[Flaw]:
    agents = {poll.agent for poll in block.polls}
    if len(agents) < len(block.polls):
        yield Flaw(f"{where}.polls", "an agent was polled twice in one block")
    if any(after.order <= before.order for before, after in pairwise(block.polls)):
        yield Flaw(f"{where}.polls", "order does not increase", "polls stand in the order of polling")
    if block.selection is not None:
        chosen = block.selection.agent
        for field, named in (("agent", () if chosen is None else (chosen,)), ("tie_set", block.selection.tie_set)):
            for agent in sorted(set(named) - agents):
                message = f"{shown(agent)} was not polled in this block"
                yield Flaw(f"{where}.selection.{field}", message)


def _speak_flaws(block: Block, where: str) -> Iterator[Flaw]:
    speak, selection = block.speak, block.selection
    if speak is None:
        return
    if selection is not None and selection.agent not in (None, speak.agent):
        message = f"{shown(speak.agent)} speaks and {shown(selection.agent)} was selected"
        yield Flaw(f"{where}.speak.agent", message)
    judges = [judgement.judge for judgement in speak.equiv]
    if len(set(judges)) < len(judges):
        yield Flaw(f"{where}.speak.equiv", "a judge decides twice on one utterance")
