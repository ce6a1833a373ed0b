"""The runs of a flat trace file in whose rows nothing is out of the ordinary, as nearly all are.

What can be known of a whole block is found out once, so that little is left to do for a run. `RunReading` would say the
same of such runs; whatever it would have to look into is left to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tracebridge.traces.model import Outcome, Step, Trace
from tracebridge.traces.readers.columns import ATTRIBUTE_PREFIX
from tracebridge.traces.readers.flat_run import OUTCOME_WORDS
from tracebridge.traces.readers.step_values import BLANK_WORDS, CONVERTED, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.traces.readers.row_block import RowBlock, Stretch

_N_COMMON_FIELDS = 4
_ABSORBERS = {outcome.value: outcome for outcome in Outcome}
_RUN_FIELDS = ("termination", "task", "trial", "model")
_NUMERALS = list(map(str, range(1 << 10)))
_is_name = re.compile("[^\x00-\x1f\ud800-\udfff]{1,1000}").fullmatch  # a part of what the trace schema allows


class PlainRuns:
    """Makes traces of the runs that are plain; they obey the trace schema."""

    def __init__(self, label: str, *, prefix: str, state_field: str, attributes: Sequence[str]) -> None:
        """Of a file; ``prefix`` comes before each run's id, ``attributes`` are the fields that become attributes."""
        self._label = label
        self._prefix = prefix
        self._state_field = state_field
        self._fields = (*_RUN_FIELDS, *attributes)
        self._attributes = [name.removeprefix(ATTRIBUTE_PREFIX) for name in attributes]
        self._block: RowBlock | None = None
        self._columns: _Columns | None = None

    def trace(self, run: Stretch) -> tuple[Trace, bool] | None:
        """A run, and whether any row says how it ended; None if something in it is not plain."""
        run_id, block, start, end = run
        if block is not self._block:
            self._block, self._columns = block, self._columns_of(block)
        trace_id = self._prefix + run_id
        if self._columns is None or not _is_name(trace_id):
            return None
        states, numbers, outcomes, fields, steps = self._columns
        absorber = _ABSORBERS.get(states[end - 1].lower())
        stop = end if absorber is None else end - 1
        if numbers and not _are_in_order(numbers[start : stop if numbers[end - 1] == "" else end]):
            return None
        stated = _sole(outcomes[start:end]) if outcomes else ""
        values = [_sole(column[start:end]) if column else "" for column in fields]
        if stated is None or None in values:
            return None
        outcome, reason = absorber, None if absorber else "no_outcome"
        if stated:
            word = plain(stated)
            outcome = OUTCOME_WORDS.get(word)
            if outcome is None or absorber not in (None, outcome):
                return None
            reason = word if outcome is Outcome.CENSORED and word != "censored" else None
        termination, task, trial, model, *attributes = values
        trace = Trace(
            trace_id=trace_id,
            outcome=outcome or Outcome.CENSORED,
            steps=_steps(steps, start, stop),
            termination=termination or reason,
            task_id=task or None,
            trial=trial or None,
            model=model or None,
            source=f"{self._label}:{block.lines[start]}",
            attributes={name: value for name, value in zip(self._attributes, attributes, strict=True) if value},
        )
        return trace, outcome is not None

    def _columns_of(self, block: RowBlock) -> _Columns | None:
        """The columns of a block each row of which makes a step of the schema; else None."""
        columns = block.columns
        states = columns.get(self._state_field, [""])
        values = {name: columns[name] for name in CONVERTED if name in columns}
        if block.flaws or any(isinstance(cells[0], str) for cells in values.values()):
            return None
        if not all(map(_is_name, set(states))):
            return None
        nones = [None] * len(states)
        errors = values.get("error", [False] * len(states))
        confidences, tokens, durations = (values.get(name, nones) for name in CONVERTED[1:])
        steps: tuple[Sequence[Any], ...] = (states, errors, tokens, durations)
        if not columns.keys().isdisjoint(("kind", "text", "confidence")):
            kinds = [kind or "action" for kind in columns.get("kind", nones)]
            texts = [text or None for text in columns.get("text", nones)]
            steps += (kinds, texts, confidences)
        numbers = columns.get("step", ()) if self._state_field == "state" else ()
        fields = [columns.get(name, "") for name in self._fields]
        return _Columns(states, numbers, columns.get("outcome", ()), fields, steps)


class _Columns(NamedTuple):
    """Columns of a block, empty where there is none: what a run is made of, and at last all columns of its steps."""

    states: Sequence[str]
    numbers: Sequence[Any]
    outcomes: Sequence[str]
    fields: Sequence[Sequence[str]]
    steps: Sequence[Sequence[Any]]


def _steps(columns: Sequence[Sequence[Any]], start: int, end: int) -> tuple[Step, ...]:
    """The steps of some rows; those of the common fields alone take a third less time."""
    rows = zip(*[cells[start:end] for cells in columns], strict=True)
    if len(columns) == _N_COMMON_FIELDS:
        steps = [
            Step(name=name, error=error, tokens=tokens, duration=duration) for name, error, tokens, duration in rows
        ]
    else:
        steps = [
            Step(name=name, error=error, tokens=tokens, duration=duration, kind=kind, text=text, confidence=confidence)
            for name, error, tokens, duration, kind, text, confidence in rows
        ]
    return tuple(steps)


def _are_in_order(numbers: Sequence[Any]) -> bool:
    """Whether the numbers of steps are 0, 1, 2, ... or 1, 2, 3, ..., or there are none."""
    first = numbers[0] if numbers else ""
    if first in ("0", "1"):
        return list(numbers) == _NUMERALS[int(first) : int(first) + len(numbers)]
    if first in (0, 1):
        return list(numbers) == list(range(first, first + len(numbers)))
    return first == "" and numbers.count("") == len(numbers)


def _sole(texts: Sequence[str]) -> str | None:
    """The one text among some that are blank; a blank if all are, None if there are two."""
    text = texts[0]
    if texts.count(text) == len(texts):
        return "" if text.lower() in BLANK_WORDS else text
    stated = [text for text in set(texts) if text.lower() not in BLANK_WORDS]
    return None if len(stated) > 1 else stated[0] if stated else ""
