r"""Event logs of the broadcast deliberation of AgentVerse, one JSON object an event, in the order of events.

============================  =====================================================================
``type: summary``             ``stage: poll_{t}``: a poll of ``sender`` in turn t of ``round``
``type: message``             ``stage: discussion_{t}``: the speak of ``sender``; none if ``..._skipped``
``stage`` of a review         ``candidate_review_{t}``, ``approval_{r}_candidate_update``: the incumbent is now
                              ``candidate_answer``, else the last ``\boxed{}`` of ``content``
``stage: approval_{r}``       a vote of ``sender``: ``approve``, ``revised_answer``
``stage: evaluation_result``  ``correctness``, ``signal``, ``final_answer``, once an outer round
``total_model_calls``         with ``total_tokens``, ``wall_time_seconds``: what the run used
============================  =====================================================================

A file is one run, named after the file, unless its events say ``trace_id``. ``problem_uid`` (``task_id``), ``tier`` and
``cluster_id`` are read where an event has them. A block is called ``r{round}t{turn}``, its speak ``r{round}t{turn}s``:
labels are not in the logs, and a label file refers to these names.

The selection is the agent that spoke; where nobody did, the first of the largest scores, marked as derived. Scores are
whole numbers of 1 to 100 that the prompt asks for as the strength of the wish to speak now; a poll that could not be
parsed has the score 1 and can still be selected.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.confidence.agentverse_turn import Turn, says_something
from tracebridge.confidence.broadcast import (
    SCHEMA,
    Approval,
    Block,
    BroadcastTrace,
    Cell,
    Config,
    Evaluation,
    Incumbent,
    Poll,
    Protocol,
    RunOutcome,
    Speak,
    StatedScale,
    Usage,
)
from tracebridge.confidence.broadcast_lines import rule_problems
from tracebridge.confidence.canonical_answer import boxed_answer
from tracebridge.confidence.lost_records import LostRecords
from tracebridge.confidence.record_lines import record_lines
from tracebridge.errors import Location, Problem
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.problems import counted, escaped, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

SCALE = StatedScale(
    min=1.0,
    max=100.0,
    integer=True,
    parse_fail_value=1.0,
    elicitation="how strongly you want to speak now, 1 to 100 (called confidence)",
)
_CONFIG = Config(router_rule="argmax", tie_rule="first", candidate_update_policy="spoken, selected, highest score")
_POLL = re.compile(r"poll_([0-9]{1,6})")
_DISCUSSION = re.compile(r"discussion_([0-9]{1,6})(_skipped)?")
_REVIEW = re.compile(r"candidate_review_[0-9]{1,6}|approval_[0-9]{1,6}_candidate_update")
_APPROVAL = re.compile(r"approval_([0-9]{1,6})")
_MAX_PROBLEMS_PER_RUN = 20


def is_event_log(keys: Iterable[str]) -> bool:
    """Whether objects with these keys are events of such a log."""
    return {"type", "stage"} <= set(keys)


def read_agentverse(file: InputFile, log: ProblemLog) -> Iterator[BroadcastTrace]:
    """The runs of a log, in the order of their first events; one beside an event that cannot be read is refused."""
    runs: dict[str, _Run] = {}
    lost = LostRecords()
    for place, line in record_lines(file):
        try:
            event = decode_strictly(line)
            if not isinstance(event, dict):
                raise JsonTextError(f"an event is a JSON object, this is {shown(event)}")
            name = event.get("trace_id", file.stem)
            if not isinstance(name, str) or not name:
                raise JsonTextError(f"{shown(name)} is no trace_id")
        except JsonTextError as error:
            log.refuse(Problem(location=place, message=str(error)))
            lost.add(place)
            continue
        lost.follows(name)
        runs.setdefault(name, _Run(name, place)).take(event, place)
    for name, run in runs.items():
        trace, problems = run.trace()
        if problem := lost.problem(name):
            problems = [*problems, problem]
        if problems or trace is None:
            log.refuse(problems[:_MAX_PROBLEMS_PER_RUN])
            continue
        for note in run.notes():
            log.note(note)
        yield trace


class _Run:
    """Makes the trace of one run of its events, and collects what is wrong with them."""

    def __init__(self, name: str, place: Location) -> None:
        self._name = name
        self._place = place
        self._turns: list[Turn] = []
        self._by_key: dict[tuple[int, int], Turn] = {}
        self._approvals: list[Approval] = []
        self._evaluations: list[Evaluation] = []
        self._facts: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._n_other = 0
        self._problems: list[Problem] = []

    def take(self, event: dict[str, Any], place: Location) -> None:
        """Read one event."""
        for field in ("problem_uid", "task_id", "tier", "cluster_id"):
            if event.get(field) is not None:
                self._facts.setdefault(field, event[field])
        if "total_model_calls" in event:
            self._usage = self._converted(self._usage_of, event, place)
        stage = event.get("stage")
        if not isinstance(stage, str):
            self._n_other += "total_model_calls" not in event
        elif match := _POLL.fullmatch(stage):
            self._converted(self._poll, event, place, int(match[1]))
        elif match := _DISCUSSION.fullmatch(stage):
            self._converted(self._discussion, event, place, int(match[1]), match[2] is not None)
        elif _REVIEW.fullmatch(stage):
            self._converted(self._review, event, place)
        elif match := _APPROVAL.fullmatch(stage):
            self._converted(self._approval, event, place, int(match[1]))
        elif stage == "evaluation_result":
            self._converted(self._evaluation, event, place)
        else:
            self._n_other += 1

    def trace(self) -> tuple[BroadcastTrace | None, list[Problem]]:
        """The run, and all that is wrong with it."""
        problem = self._facts.get("problem_uid", self._facts.get("task_id", self._name))
        last = self._evaluations[-1] if self._evaluations else None
        fields = {
            "schema": SCHEMA,
            "trace_id": self._name,
            "problem_uid": str(problem) if isinstance(problem, int) else problem,
            "cluster_id": self._facts.get("cluster_id"),
            "tier": self._facts.get("tier"),
            "cell": Cell(actor_model="", benchmark="", judge_model=""),
            "mode": "broadcast",
            "protocol": Protocol(name="agentverse-broadcast", version=""),
            "config": _CONFIG,
            "score_scale": SCALE,
            "blocks": tuple(self._block(index, turn) for index, turn in enumerate(self._turns)),
            "approvals": tuple(self._approvals),
            "evaluations": tuple(self._evaluations),
            "outcome": RunOutcome(
                passed=None if last is None else last.passed,
                stop="censored" if last is None else "pass" if last.passed else "budget",
                final_answer=None if last is None else last.submitted_answer,
            ),
            "usage": self._usage,
            "source": f"{self._place.path}:{self._place.line}",
        }
        try:
            trace = msgspec.convert(fields, BroadcastTrace)
        except msgspec.ValidationError as error:
            self._problems.append(Problem(location=self._at(self._place), message=str(error)))
            return None, self._problems
        return trace, self._problems or rule_problems(trace, self._place)

    def notes(self) -> Iterator[Problem]:
        """What is worth knowing about a run that can be used."""
        if self._n_other:
            message = f"{counted(self._n_other, 'event')} of other stages are not read"
            yield Problem(location=self._at(self._place), message=message)
        for turn in self._turns:
            selection = turn.selection()
            if selection is not None and not selection.derived and selection.agent != selection.tie_set[0]:
                message = (
                    f"{shown(selection.agent)} spoke, the first of the largest scores is of {selection.tie_set[0]}"
                )
                yield Problem(location=self._at(self._place, turn.name), message=message)

    def _turn(self, event: dict[str, Any], turn: int) -> Turn:
        number = _whole(event, "round")
        found = self._by_key.get((number, turn))
        if found is None:
            found = self._by_key[number, turn] = Turn(number, turn, self._standing(number))
            self._turns.append(found)
        return found

    def _standing(self, number: int) -> Incumbent:
        """The answer that stands when a turn of a round begins."""
        if not self._turns:
            return Incumbent()
        last = self._turns[-1]
        incumbent = last.incumbent_after()
        if number > last.round and incumbent.answer is not None:
            return Incumbent(answer=incumbent.answer, source="previous_attempt")
        return incumbent

    def _poll(self, event: dict[str, Any], turn: int) -> None:
        block = self._turn(event, turn)
        if block.speak is not None:
            raise ValueError("a poll comes after the speak of its turn")
        score = event.get("score")
        block.polls.append(
            msgspec.convert(
                {
                    "agent": event.get("sender"),
                    "order": len(block.polls),
                    "score_raw": score,
                    "parse_ok": event.get("parse_succeeded", True),
                    "candidate_raw": event.get("candidate_answer"),
                    "extra": {"intent": event["intent"]} if event.get("intent") is not None else {},
                },
                Poll,
            )
        )

    def _discussion(self, event: dict[str, Any], turn: int, is_skipped: bool) -> None:
        block = self._turn(event, turn)
        if block.speak is not None:
            raise ValueError("a second speak in one turn")
        if is_skipped:
            return
        content = event.get("content")
        answer = event.get("candidate_answer")
        if not isinstance(content, str | None):
            raise ValueError(f"content is a text, this is {shown(content)}")
        block.speak = msgspec.convert(
            {
                "utt_id": f"{block.name}s",
                "agent": event.get("sender"),
                "candidate_raw": answer if answer is not None or content is None else boxed_answer(content),
                "text_sha256": None if content is None else hashlib.sha256(content.encode()).hexdigest(),
            },
            Speak,
        )

    def _review(self, event: dict[str, Any]) -> None:
        answer, content = event.get("candidate_answer"), event.get("content")
        if answer is None and isinstance(content, str):
            answer = boxed_answer(content)
        if not self._turns:
            raise ValueError("a review comes before the first turn")
        if isinstance(answer, str) and says_something(answer):
            fields = {"answer": answer, "source": event.get("sender")}
            self._turns[-1].reviewed = msgspec.convert(fields, Incumbent)

    def _approval(self, event: dict[str, Any], approval_round: int) -> None:
        fields = {
            "round": event.get("round"),
            "approval_round": approval_round,
            "agent": event.get("sender"),
            "approve": event.get("approve"),
            "revised_answer": event.get("revised_answer"),
            "parse_ok": event.get("parse_succeeded", True),
        }
        self._approvals.append(msgspec.convert(fields, Approval))

    def _evaluation(self, event: dict[str, Any]) -> None:
        correctness, signal = event.get("correctness"), event.get("signal")
        if correctness in (0, 1) and not isinstance(correctness, bool):
            correctness = bool(correctness)
        fields = {
            "round": event.get("round", len(self._evaluations)),
            "submitted_answer": event.get("final_answer"),
            "passed": correctness,
            "signal": signal if signal is None or isinstance(signal, str) else str(signal)[:1000],
        }
        self._evaluations.append(msgspec.convert(fields, Evaluation))

    def _usage_of(self, event: dict[str, Any]) -> Usage:
        fields = {
            "calls": event["total_model_calls"],
            "tokens_total": event.get("total_tokens"),
            "wall_s": event.get("wall_time_seconds"),
        }
        return msgspec.convert(fields, Usage)

    def _converted(self, convert: Any, event: dict[str, Any], place: Location, *details: Any) -> Any:
        """What a conversion gives; what is wrong with the event is a problem at its place."""
        try:
            return convert(event, *details)
        except ValueError as error:  # also msgspec.ValidationError
            self._problems.append(Problem(location=self._at(place), message=str(error)))
            return None

    def _block(self, index: int, turn: Turn) -> Block:
        return Block(
            block_id=turn.name,
            round=turn.round,
            turn=turn.turn,
            index=index,
            incumbent_before=turn.incumbent,
            polls=tuple(turn.polls),
            selection=turn.selection(),
            speak=turn.speak,
            incumbent_after=turn.incumbent_after(),
        )

    def _at(self, place: Location, field: str | None = None) -> Location:
        return Location(path=place.path, line=place.line, record=escaped(self._name), field=field)


def _whole(event: dict[str, Any], field: str) -> int:
    value = event.get(field, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{field} is a whole number, this is {shown(value)}")
    return value
