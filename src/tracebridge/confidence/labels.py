"""Labels in a file of their own: which polls and speaks are correct, and what judges say of spoken answers.

One JSON object a line, for a poll ``{"trace_id": ..., "block_id": ..., "agent": ..., "correct": true}``, for a speak
the same with ``utt_id`` in place of ``agent``. ``judge``, ``method`` and ``verdict`` say where the label comes from; a
speak may carry ``equiv``, the judgements of its answer against that of the selected poll. Later lines add to earlier
ones; what contradicts them, or names nothing in the corpus, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tracebridge.confidence.broadcast import CorrectnessLabel, Equivalence, Name, Poll
from tracebridge.confidence.record_lines import record_lines
from tracebridge.errors import Location, Problem
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.problems import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracebridge.confidence.broadcast import Block, BroadcastTrace
    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog


class LabelRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a label file: exactly one of ``agent`` (a poll) and ``utt_id`` (a speak)."""

    trace_id: Name
    block_id: Name
    agent: Name | None = None
    utt_id: Name | None = None
    correct: bool | None = None
    judge: str | None = None
    method: Literal["exact", "rule", "judge"] | None = None
    verdict: str | None = None
    equiv: tuple[Equivalence, ...] = ()

    @property
    def target(self) -> tuple[str, str, str, str]:
        """What the label is of, as a key."""
        kind, name = ("poll", self.agent) if self.utt_id is None else ("speak", self.utt_id)
        return self.trace_id, self.block_id, kind, name or ""

    @property
    def label(self) -> CorrectnessLabel | None:
        """Where the label comes from, if it says."""
        if self.judge is None and self.method is None and self.verdict is None:
            return None
        return CorrectnessLabel(judge=self.judge, method=self.method, verdict=self.verdict)


class LabelFiles:
    """The labels of some files, and which of them found what they are of."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str, str, str], list[tuple[LabelRecord, Location]]] = {}

    def read(self, file: InputFile, log: ProblemLog) -> int:
        """Add the labels of a file and return their number; lines that are none go to the log."""
        n_labels = 0
        for place, line in record_lines(file):
            try:
                record = msgspec.convert(decode_strictly(line), LabelRecord)
                if (record.agent is None) == (record.utt_id is None):
                    raise msgspec.ValidationError("a label is of an agent's poll or of an utt_id, and says which")
                if record.equiv and record.utt_id is None:
                    raise msgspec.ValidationError("equiv is of a speak, which utt_id names")
            except (JsonTextError, msgspec.ValidationError) as error:
                log.refuse(Problem(location=place, message=str(error)))
            else:
                self._records.setdefault(record.target, []).append((record, place))
                n_labels += 1
        return n_labels

    def attach(self, traces: Iterable[BroadcastTrace], log: ProblemLog) -> list[BroadcastTrace]:
        """The traces with their labels; labels that fit nothing go to the log."""
        by_block: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for trace_id, block_id, kind, name in self._records:
            by_block.setdefault((trace_id, block_id), []).append((kind, name))
        labelled = {trace_id for trace_id, _ in by_block}
        result = []
        for trace in traces:
            if trace.trace_id in labelled:
                blocks = tuple(
                    self._with_labels(block, trace.trace_id, by_block.get((trace.trace_id, block.block_id), []), log)
                    for block in trace.blocks
                )
                trace = msgspec.structs.replace(trace, blocks=blocks)  # noqa: PLW2901
            result.append(trace)
        for records in self._records.values():
            for _, place in records:
                message = "the label is of nothing in the corpus: no such trace, block, poll or speak"
                log.refuse(Problem(location=place, message=message))
        return result

    def _with_labels(self, block: Block, trace_id: str, wanted: list[tuple[str, str]], log: ProblemLog) -> Block:
        if not wanted:
            return block
        polls: list[Poll] = []
        for poll in block.polls:
            polls.append(self._labelled(poll, (trace_id, block.block_id, "poll", poll.agent), log))
        speak = block.speak
        if speak is not None:
            speak = self._labelled(speak, (trace_id, block.block_id, "speak", speak.utt_id), log)
        return msgspec.structs.replace(block, polls=tuple(polls), speak=speak)

    def _labelled(self, answer: Any, target: tuple[str, str, str, str], log: ProblemLog) -> Any:
        for record, place in self._records.pop(target, ()):
            changes: dict[str, Any] = {}
            if record.correct is not None:
                if answer.correct not in (None, record.correct):
                    message = f"correct is {_word(record.correct)} here and {_word(answer.correct)} before"
                    log.refuse(Problem(location=_named(place, target), message=message))
                    continue
                changes["correct"] = record.correct
            if record.label is not None:
                changes["label"] = record.label
            if record.equiv:
                judges = {judgement.judge: judgement for judgement in answer.equiv}
                again = [new for new in record.equiv if judges.get(new.judge, new).verdict != new.verdict]
                if again:
                    message = f"the judge {escaped(again[0].judge)} decided otherwise before"
                    log.refuse(Problem(location=_named(place, target), message=message))
                    continue
                changes["equiv"] = tuple((judges | {new.judge: new for new in record.equiv}).values())
            answer = msgspec.structs.replace(answer, **changes)
        return answer


def _word(truth: bool) -> str:
    return "true" if truth else "false"


def _named(place: Location, target: tuple[str, str, str, str]) -> Location:
    return Location(path=place.path, line=place.line, record=escaped("/".join((target[0], target[1], target[3]))))
