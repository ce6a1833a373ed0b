"""Polls without a deliberation: one line a poll, or one line an item with its polls.

Nobody was observed to be selected or to speak, so that every item is one block, without a speak, whose selection is
derived: the first of the largest scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.confidence.broadcast import (
    SCHEMA,
    Block,
    BroadcastTrace,
    Cell,
    Config,
    Gold,
    Poll,
    Protocol,
    Selection,
    StatedScale,
)
from tracebridge.confidence.lost_records import LostRecords
from tracebridge.confidence.poll_columns import ITEM_FIELDS, find_poll_columns
from tracebridge.confidence.poll_rows import PollRow, note_ignored, poll_rows, require_columns
from tracebridge.confidence.record_lines import record_lines
from tracebridge.confidence.score_scale import ScoreSightings, is_percentage, parse_score, stated
from tracebridge.errors import Location, Problem
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.model import Outcome
from tracebridge.traces.problems import escaped, shown
from tracebridge.traces.readers.flat import OUTCOME_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracebridge.confidence.table import ScoreScale
    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

POLLS_KEY = "polls"
FIRST_MAXIMUM = "first_maximum"
_UNTOLD = StatedScale(min=0.0, max=1.0, integer=False, elicitation=None)
_ENDS = (Outcome.SUCCESS, Outcome.FAILURE)
_TRUTHS = {word: outcome is Outcome.SUCCESS for word, outcome in OUTCOME_WORDS.items() if outcome in _ENDS}
_UNPARSED = frozenset({"unparseable", "unparsable", "unparsed"})
_BLANK = frozenset({"", "nan", "none", "null", "na", "n/a"})
_POLL_FIELDS = ("agent", "candidate", "confidence", "correct", "parse_ok")
_MAX_PROBLEMS_PER_ITEM = 5
_MAX_KNOWN_KEYS = 1_000


def read_flat_polls(file: InputFile, log: ProblemLog, sightings: ScoreSightings) -> Iterator[BroadcastTrace]:
    """The items of rows ``item, agent, candidate, confidence, correct``, in the order of their first rows.

    An item with a row that cannot be used, or beside one that cannot be read, is refused. Rows of one item may stand
    apart. A label may be written in the words for outcomes of flat traces (``true``, ``wrong``, ``1``, ...);
    ``Unparseable`` in its place says that the poll could not be parsed.
    """
    items: dict[str, list[PollRow]] = {}
    lost = LostRecords()
    for row in poll_rows(file, log):
        item = _name(row.values.get("item"))
        if item is None:
            message = f"the item has no name: {shown(row.values.get('item'))}"
            log.refuse(row.flaw or Problem(location=row.place, message=message))
            lost.add(row.place)
        else:
            lost.follows(item)
            items.setdefault(item, []).append(row)
    for item, rows in items.items():
        flaws = [row.flaw for row in rows if row.flaw is not None]
        if problem := lost.problem(item):
            flaws.append(problem)
        if flaws:
            log.refuse(flaws[:_MAX_PROBLEMS_PER_ITEM])
        else:
            yield from _checked(_ItemReading(item, rows), log, sightings)


def read_nested_polls(file: InputFile, log: ProblemLog, sightings: ScoreSightings) -> Iterator[BroadcastTrace]:
    """The items of records ``item, gold, polls: [{agent, answer, confidence, correct}]``."""
    columns_of = _ColumnsOf(file.mapping)
    for place, line in record_lines(file):
        try:
            record = decode_strictly(line)
        except JsonTextError as error:
            log.refuse(Problem(location=place, message=str(error)))
            continue
        polls = record.get(POLLS_KEY) if isinstance(record, dict) else None
        if not isinstance(polls, list) or not all(isinstance(poll, dict) for poll in polls):
            log.refuse(Problem(location=place, message="an item is a JSON object with an array of polls"))
            continue
        of_item = columns_of(record, ("item", *ITEM_FIELDS))
        shared = {field: record[column] for field, column in of_item.items()}
        rows = [
            PollRow(place, shared | {field: poll[column] for field, column in columns_of(poll, _POLL_FIELDS).items()})
            for poll in polls
        ]
        item = _name(shared.get("item"))
        if item is None:
            log.refuse(Problem(location=place, message="the item has no name", hint="--map item=KEY"))
        else:
            yield from _checked(_ItemReading(item, rows, place), log, sightings)
    if columns_of.names:
        require_columns(columns_of.fields, columns_of.names, file, Location(path=file.label))
    note_ignored(columns_of.names - columns_of.used, file, log)


class _ColumnsOf:
    """The keys of the fields of an object, looked for once for each set of keys.

    An item and its polls are looked at apart: an ``answer`` of the item is no candidate of its polls.

    Attributes:
        fields, names, used: the fields found, all keys seen, and those of them that are fields.
    """

    def __init__(self, mapping: Mapping[str, str]) -> None:
        self._mapping = mapping
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, str]] = {}
        self.fields: set[str] = set()
        self.names: set[str] = set()
        self.used = {POLLS_KEY}

    def __call__(self, values: dict[str, Any], fields: tuple[str, ...]) -> dict[str, str]:
        keys = tuple(values)
        if (keys, fields) not in self._known:
            mapping = {field: column for field, column in self._mapping.items() if field in fields}
            found = find_poll_columns(keys, mapping)
            columns = {field: column for field, column in found.items() if field in fields}
            self.fields |= columns.keys()
            self.names |= set(keys)
            self.used |= set(columns.values())
            if len(self._known) >= _MAX_KNOWN_KEYS:
                self._known.clear()
            self._known[keys, fields] = columns
        return self._known[keys, fields]


def with_scale(trace: BroadcastTrace, scale: ScoreScale) -> BroadcastTrace:
    """The trace of an item with the scale that was told since, and its derived selection: the first of the largest.

    Scores that the scale does not have are passed over, as are those that could not be read.
    """
    (block,) = trace.blocks
    step = _UNTOLD.resolution
    ranks = {
        poll.agent: round(poll.score_raw / step)
        for poll in block.polls
        if poll.score_raw is not None
        and scale.minimum <= poll.score_raw <= scale.maximum
        and not (scale.integer and poll.score_raw != int(poll.score_raw))
    }
    highest = max(ranks.values(), default=None)
    best = [agent for agent, rank in ranks.items() if rank == highest]
    selection = None
    if best:
        score = next(poll.score_raw for poll in block.polls if poll.agent == best[0])
        selection = Selection(agent=best[0], score=score, tie_set=tuple(best), rule=FIRST_MAXIMUM, derived=True)
    blocks = (msgspec.structs.replace(block, selection=selection),)
    return msgspec.structs.replace(trace, blocks=blocks, score_scale=stated(scale))


def _checked(reading: _ItemReading, log: ProblemLog, sightings: ScoreSightings) -> Iterator[BroadcastTrace]:
    trace = reading.trace()
    if reading.problems:
        log.refuse(reading.problems[:_MAX_PROBLEMS_PER_ITEM])
        return
    for score, place, percentage in reading.scores:
        sightings.add(score, place, percentage=percentage)
    yield trace


class _ItemReading:
    """Makes the trace of one item of its rows, and collects what is wrong with them."""

    def __init__(self, item: str, rows: list[PollRow], place: Location | None = None) -> None:
        self._item = item
        self._rows = rows
        self._place = place or rows[0].place
        self.problems: list[Problem] = []
        self.scores: list[tuple[int | float, Location, bool]] = []

    def trace(self) -> BroadcastTrace:
        if not self._rows:
            self._problem(self._place, "polls", "the item has no poll")
        item = {field: self._constant(field) for field in ITEM_FIELDS}
        polls = tuple(self._poll(order, row) for order, row in enumerate(self._rows))
        if len({poll.agent for poll in polls}) < len(polls):
            self._problem(self._place, "agent", "an agent stands twice in the item")
        source = str(Location(path=self._place.path, line=self._place.line, record=self._place.record))
        return BroadcastTrace(
            schema=SCHEMA,
            trace_id=self._item,
            problem_uid=item["problem"] or self._item,
            problem_text=item["problem_text"],
            cluster_id=item["cluster"],
            tier=item["tier"],
            cell=Cell(actor_model="", benchmark=item["benchmark"] or "", judge_model=""),
            mode="polls",
            protocol=Protocol(name="polls", version=""),
            config=Config(router_rule="argmax", tie_rule="first"),
            score_scale=_UNTOLD,
            gold=None if item["gold"] is None else Gold(answer=item["gold"]),
            blocks=(Block(block_id="0", round=0, turn=0, index=0, polls=polls, selection=None, speak=None),),
            source=source,
        )

    def _poll(self, order: int, row: PollRow) -> Poll:
        values = row.values
        agent = _name(values.get("agent"))
        if agent is None:
            self._problem(row.place, "agent", f"the agent has no name: {shown(values.get('agent'))}")
        stated_confidence = values.get("confidence")
        score = parse_score(stated_confidence)
        is_blank = stated_confidence is None or _is_blank(stated_confidence)
        if score is not None:
            self.scores.append((score, row.place, is_percentage(stated_confidence)))
        elif isinstance(stated_confidence, bool | list | dict):
            message = f"a confidence is a number, this is {shown(stated_confidence)}"
            self._problem(row.place, "confidence", message)
        was_graded = values.get("correct")
        is_unparsed = isinstance(was_graded, str) and was_graded.strip().lower() in _UNPARSED
        parse_ok = False if is_unparsed else self._truth(row, "parse_ok")
        return Poll(
            agent=agent or "?",
            order=order,
            score_raw=score,
            parse_ok=(score is not None or is_blank) if parse_ok is None else parse_ok,
            candidate_raw=self._text(row.place, "candidate", values.get("candidate")),
            correct=None if is_unparsed else self._truth(row, "correct"),
            extra={} if score is not None or is_blank else {"confidence": str(stated_confidence)[:100]},
        )

    def _constant(self, field: str) -> str | None:
        """A field of the item: the one value that its rows have."""
        constant = None
        for row in self._rows:
            text = self._text(row.place, field, row.values.get(field))
            if text is None or text == constant:
                continue
            if constant is not None:
                self._problem(row.place, field, f"{shown(text)} contradicts {shown(constant)} of the same item")
                break
            constant = text
        if constant is not None and field in ("problem", "cluster") and _name(constant) is None:
            self._problem(self._place, field, f"{shown(constant)} is no name")
        return constant

    def _text(self, place: Location, field: str, value: Any) -> str | None:
        if isinstance(value, list | dict):
            self._problem(place, field, f"one value was expected, got {shown(value)}")
            return None
        if value is None or value == "":
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def _truth(self, row: PollRow, field: str) -> bool | None:
        value = row.values.get(field)
        if value is None or isinstance(value, bool):
            return value
        if _is_blank(value):
            return None
        truth = (
            _TRUTHS.get(str(value).strip().lower().removesuffix(".0")) if isinstance(value, str | int | float) else None
        )
        if truth is None:
            self._problem(row.place, field, f"true or false was expected, got {shown(value)}")
        return truth

    def _problem(self, place: Location, field: str, message: str) -> None:
        record = escaped(self._item) if place.record is None else place.record
        at = Location(path=place.path, line=place.line, record=record, field=field)
        self.problems.append(Problem(location=at, message=message))


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in _BLANK


def _name(value: Any) -> str | None:
    """A name that prints on one line, of 1 to 1,000 characters; whole numbers are names too."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 1 <= len(value) <= 1000 or any(char < " " for char in value):
        return None
    return value


def has_nested_polls(keys: Iterable[str], mapping: Mapping[str, str]) -> bool:
    """Whether records with these keys are items with their polls."""
    keys = tuple(keys)
    return POLLS_KEY in keys and "blocks" not in keys and "item" in find_poll_columns(keys, mapping)


def has_flat_polls(names: Iterable[str], mapping: Mapping[str, str]) -> bool:
    """Whether rows with these columns are polls."""
    return {"item", "agent", "confidence"} <= find_poll_columns(tuple(names), mapping).keys()
