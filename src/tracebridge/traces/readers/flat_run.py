"""One run of a flat trace file: its rows become a trace, or tell what is wrong with them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tracebridge.errors import Location, Problem
from tracebridge.traces.model import Outcome, Step, Trace
from tracebridge.traces.problems import escaped, shown
from tracebridge.traces.readers.columns import ATTRIBUTE_PREFIX
from tracebridge.traces.readers.flat_rows import ABSORBERS, INTEGER
from tracebridge.traces.readers.row_block import SharedFlaw, as_texts
from tracebridge.traces.readers.step_values import BLANK_WORDS, CONVERTED, plain, step_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracebridge.traces.readers.row_block import RowBlock

OUTCOME_WORDS: Mapping[str, Outcome] = MappingProxyType(
    {
        word: outcome
        for outcome, words in (
            (Outcome.SUCCESS, "success succeeded successful pass passed ok true yes 1 solved resolved correct"),
            (Outcome.FAILURE, "failure failed fail false no 0 unsolved unresolved incorrect wrong"),
            (Outcome.CENSORED, "censored capped step_cap max_steps timeout timed_out truncated interrupted unknown"),
        )
        for word in words.split()
    }
)
"""How an outcome may be written, in any case. Words that leave it open (done, finished, error, halted) are refused."""

_STEP_FIELDS = ("kind", "text", *CONVERTED)

T = TypeVar("T")


class RunReading:
    """Makes a trace of the rows of one run, and collects what is wrong with them.

    Attributes:
        problems: what is wrong; only where there is nothing is the trace one that may be used.
        has_outcome: whether any row says how the run ended.
    """

    def __init__(self, label: str, run_id: str, rows: RowBlock, state_field: str, attributes: Sequence[str]) -> None:
        """Of the rows; ``attributes`` are the fields that become attributes, in their order."""
        self._label = label
        self._run_id = run_id
        self._state_field = state_field
        self._attribute_fields = attributes
        self._first_line = rows.lines[0]
        self._lines = rows.lines
        self._columns: Mapping[str, Sequence[Any]] = rows.columns
        if rows.flaws:
            usable = [place for place in range(len(rows.lines)) if place not in rows.flaws]
            self._lines = _picked(rows.lines, usable)
            self._columns = {name: _picked(cells, usable) for name, cells in self._columns.items()}
        self.problems = [self._named(flaw) for _, flaw in sorted(rows.flaws.items())]
        self._is_whole = not self.problems
        self.has_outcome = True

    def trace(self, prefix: str = "") -> Trace:
        """The run as it stands in the file."""
        rows, absorber = self._ordered_steps()
        outcome, termination = self._ending(absorber)
        return Trace(
            trace_id=prefix + self._run_id,
            outcome=outcome,
            steps=self._steps(rows),
            termination=self._constant("termination") or termination,
            task_id=self._constant("task"),
            trial=self._constant("trial"),
            model=self._constant("model"),
            source=f"{self._label}:{self._first_line}",
            attributes=self._attributes(),
        )

    def _named(self, flaw: Problem) -> Problem:
        if isinstance(flaw, SharedFlaw):
            return flaw
        return replace(flaw, location=replace(flaw.location, record=escaped(self._run_id)))

    def _problem(self, row: int, field: str, message: str, hint: str | None = None) -> None:
        location = Location(path=self._label, line=self._lines[row], record=escaped(self._run_id), field=field)
        self.problems.append(Problem(location=location, message=message, hint=hint))

    def _ordered_steps(self) -> tuple[list[int], int | None]:
        """The rows that are steps, in order, and the row that names the absorber if there is one."""
        blank = [""] * len(self._lines)
        states, numbers = self._columns.get(self._state_field, blank), as_texts(self._columns.get("step", blank))
        for row, (state, number) in enumerate(zip(states, numbers, strict=True)):
            if number and not state:
                self._problem(row, self._state_field, f"step {shown(number)} has no state")
        rows = [row for row, state in enumerate(states) if state]
        is_numbered = self._state_field == "state" and any(_picked(numbers, rows))
        absorber = None
        if rows and self._names_absorber(rows[-1]) and not (is_numbered and numbers[rows[-1]]):
            absorber = rows.pop()
        if is_numbered:
            rows = self._sorted(rows, numbers)
        if rows and absorber is None and self._names_absorber(rows[-1]):
            absorber = rows.pop()
        return rows, absorber

    def _names_absorber(self, row: int) -> bool:
        return self._columns[self._state_field][row].lower() in ABSORBERS

    def _sorted(self, rows: Sequence[int], numbers: Sequence[str]) -> list[int]:
        numbered = []
        for row, text in zip(rows, _picked(numbers, rows), strict=True):
            if INTEGER.fullmatch(text):
                numbered.append((int(text.removesuffix(".0")), row))
            else:
                message = f"an integer was expected, got {shown(text)}" if text else "the row has no step number"
                self._problem(row, "step", message, "steps are numbered 0, 1, 2, ... or not at all")
        numbered.sort(key=lambda pair: pair[0])
        for (before, _), (number, row) in pairwise(numbered):
            if number == before:
                self._problem(row, "step", f"step {number} stands twice in the run")
            elif number > before + 1 and self._is_whole:
                self._problem(row, "step", f"step {number} follows step {before}: rows are missing")
        return [row for _, row in numbered]

    def _ending(self, absorber: int | None) -> tuple[Outcome, str | None]:
        found: dict[Outcome, str] = {}
        for text in dict.fromkeys(self._columns.get("outcome", ())):
            word = plain(text)
            if word in BLANK_WORDS:
                continue
            outcome = OUTCOME_WORDS.get(word)
            if outcome is None:
                hint = "a success, a failure or censored? `tracebridge traces formats` lists the words"
                self._doubt("outcome", text, f"{shown(text)} does not say the outcome", hint)
                continue
            found.setdefault(outcome, word)
            if len(found) > 1:
                self._doubt("outcome", text, f"{word!r} contradicts {next(iter(found.values()))!r} above")
                break
        if absorber is not None:
            state = Outcome(self._columns[self._state_field][absorber].lower())
            if found and state not in found:
                stated = next(iter(found.values()))
                self._problem(absorber, self._state_field, f"the run ends in {state} but its outcome is {stated!r}")
            found.setdefault(state, state)
        if not found:
            self.has_outcome = False
            return Outcome.CENSORED, "no_outcome"
        outcome, word = next(iter(found.items()))
        return outcome, word if outcome is Outcome.CENSORED and word != "censored" else None

    def _doubt(self, field: str, text: str, message: str, hint: str | None = None) -> None:
        """A problem of the first row that has this text."""
        self._problem(self._columns[field].index(text), field, message, hint)

    def _constant(self, field: str) -> str | None:
        """A field of the run: the one value that its rows have."""
        constant: str | None = None
        for value in dict.fromkeys(self._columns.get(field, ())):
            if value.lower() in BLANK_WORDS:
                continue
            if constant is not None:
                self._doubt(field, value, f"{shown(value)} contradicts {shown(constant)} above")
                break
            constant = value
        return constant

    def _attributes(self) -> dict[str, Any]:
        """The attributes that were mapped, where the run has a value."""
        found = {name.removeprefix(ATTRIBUTE_PREFIX): self._constant(name) for name in self._attribute_fields}
        return {name: value for name, value in found.items() if value is not None}

    def _steps(self, rows: Sequence[int]) -> tuple[Step, ...]:
        cells = {name: _picked(self._columns[name], rows) for name in _STEP_FIELDS if name in self._columns}
        if unread := [name for name in CONVERTED if cells.get(name) and isinstance(cells[name][0], str)]:
            cells |= self._converted({name: cells[name] for name in unread}, rows)
        names = _picked(self._columns.get(self._state_field, ()), rows)
        kinds = [kind or "action" for kind in cells["kind"]] if "kind" in cells else repeat("action")
        texts = [text or None for text in cells["text"]] if "text" in cells else repeat(None)
        errors = cells.get("error", repeat(False))
        confidences, tokens, durations = (
            cells.get(name, repeat(None)) for name in ("confidence", "tokens", "duration")
        )
        columns = zip(names, kinds, texts, errors, confidences, tokens, durations, strict=False)
        return tuple(
            [
                Step(
                    name=name,
                    kind=kind,
                    text=text,
                    error=error,
                    confidence=confidence,
                    tokens=n_tokens,
                    duration=duration,
                )
                for name, kind, text, error, confidence, n_tokens, duration in columns
            ]
        )

    def _converted(self, columns: Mapping[str, Sequence[Any]], rows: Sequence[int]) -> dict[str, list[Any]]:
        """Columns in which texts are left, as values; what is none is told, row by row."""
        values: dict[str, list[Any]] = {name: [] for name in columns}
        for place, row in enumerate(rows):
            for name, cells in columns.items():
                value = cells[place]
                if isinstance(value, str):
                    try:
                        value = step_value(name, value)
                    except msgspec.ValidationError as error:
                        self._problem(row, name, str(error))
                values[name].append(value)
        return values


def _picked(cells: Sequence[T], rows: Sequence[int]) -> list[T]:
    return [cells[row] for row in rows]
