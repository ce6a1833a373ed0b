"""A live run under a monitor: where it is, what it earned, and how likely its steps were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import UsageError
from tracebridge.inference.online.property_table import PropertyReading, mean_of
from tracebridge.inference.online.reading import Estimate, Reading
from tracebridge.traces.model import Outcome, Step
from tracebridge.traces.problems import escaped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.inference.online.monitor import RuntimeMonitor

    Floats = NDArray[np.float64]

#: Readings name at most so many unseen transitions, and as many unseen steps; the first ones.
MOST_NAMED = 20
_LONGEST_NAME = 200


class MonitoredRun:
    """A live run under a monitor."""

    __slots__ = (
        "_chances",
        "_earned",
        "_ended",
        "_failed",
        "_final",
        "_log_likelihood",
        "_monitor",
        "_place",
        "_spread",
        "_state",
        "_steps",
        "_unseen_steps",
        "_unseen_transitions",
    )

    def __init__(self, monitor: RuntimeMonitor) -> None:
        self._monitor = monitor
        self._failed: tuple[str, str] | None = None  # the last step, if it ended in an error
        self._state: int | None = None  # of the first-order chain
        self._chances: Floats | None = None  # of its copies, where it has some
        self._place = -1  # in the chain of the tables; one of its places where several are likely
        self._spread: tuple[NDArray[np.int64], Floats] | None = None  # these, with their chances
        self._steps = 0
        self._ended: Outcome | None = None
        self._log_likelihood = 0.0
        self._earned = [0.0] * len(monitor.tables)
        self._final: list[PropertyReading | None] = [None] * len(monitor.tables)
        self._unseen_transitions: tuple[str, ...] = ()
        self._unseen_steps: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether it has no step and no end yet."""
        return not self._steps and self._ended is None

    def step(self, step: Step | str) -> Reading:
        """The reading after one more step: a `Step`, or the name of the state it is in.

        Raises:
            UsageError: the run has ended, or there is no such state. FitError: see `StepStates.of`.
        """
        self._require_open()
        monitor = self._monitor
        if isinstance(step, str):
            state, unseen, self._failed = monitor.states.named(step), None, None
        else:
            state, unseen = monitor.states.of(step, self._failed)
            self._failed = (step.kind, step.name) if step.error else None
        if unseen is not None:
            self._unseen_steps = _with(self._unseen_steps, unseen)
        self._steps += 1
        self._move(state)
        return self._reading(state, ended=False)

    def end(self, outcome: Outcome | str) -> Reading:
        """The reading after the end of the run; a censored run stays where it is.

        Raises:
            UsageError: the run has ended before, or there is no such outcome.
        """
        self._require_open()
        if outcome not in {*Outcome}:
            raise UsageError(f"{str(outcome)[:80]!r} is no outcome; there are {', '.join(Outcome)}")
        self._ended = Outcome(outcome)
        counted = self._ended
        if counted is Outcome.CENSORED and self._monitor.fit.policy == "failure":
            counted = Outcome.FAILURE
        if counted is not Outcome.CENSORED:
            self._move(self._monitor.ends[counted.value])
        return self._reading(self._state, ended=counted is not Outcome.CENSORED)

    def _require_open(self) -> None:
        if self._ended is not None:
            raise UsageError(f"the run has ended in {self._ended}: nothing follows")

    def _move(self, state: int) -> None:
        """Go on to a state of the chain, ends included."""
        monitor, before = self._monitor, self._state
        chain, copies = monitor.base.chain, monitor.copies
        self._place, self._spread = state, None
        if copies is None:
            log = monitor.likelihood.first[state] if before is None else monitor.likelihood.step(before, state)
        else:
            if before is None or self._chances is None:
                self._chances, log = copies.first(state)
            else:
                self._chances, log = copies.following(before, self._chances, state)
            likely = np.flatnonzero(self._chances)
            places = copies.positions[state][likely]
            self._place = int(places[0])
            if len(likely) > 1:
                self._spread = places, self._chances[likely]
        self._log_likelihood += log
        if before is None:
            if state not in monitor.seen_first and self._steps:
                self._unseen_transitions = _with(self._unseen_transitions, f"start -> {chain.states[state]}")
        else:
            if before * chain.n_states + state not in monitor.seen:
                named = f"{chain.states[before]} -> {chain.states[state]}"
                self._unseen_transitions = _with(self._unseen_transitions, named)
            place = before if copies is None else int(copies.positions[before][0])  # in the chain of the tables
            for i, table in enumerate(monitor.tables):
                if table.earned is not None and self._final[i] is None:
                    self._earned[i] += table.earned.item(place)
        self._state = state

    def _reading(self, state: int | None, *, ended: bool) -> Reading:
        monitor = self._monitor
        nothing = Estimate(value=float("nan"), lower=float("nan"), upper=float("nan"))
        steps, time = self._steps, self._steps if ended else self._steps - 1
        readings: list[PropertyReading] = []
        if state is not None:
            for i, table in enumerate(monitor.tables):
                found = self._final[i]
                if found is None:
                    if self._spread is None:
                        found = table.reading(time, self._place, self._earned[i], over=ended)
                    else:
                        found = table.mixed_reading(time, *self._spread, self._earned[i], over=ended)
                    if found.settled:
                        self._final[i] = found
                readings.append(found)
        return Reading(
            steps=steps,
            state=None if state is None else monitor.base.chain.states[state],
            ended=self._ended,
            success=nothing if state is None else self._estimate(monitor.success),
            steps_left=nothing if state is None else self._estimate(monitor.steps_left),
            properties=tuple(readings),
            log_likelihood=self._log_likelihood,
            tail=monitor.likelihood.tail(self._log_likelihood, steps, ended=ended),
            unseen_transitions=self._unseen_transitions,
            unseen_steps=self._unseen_steps,
            mark=monitor.mark,
        )

    def _estimate(self, of_states: tuple[Estimate, ...]) -> Estimate:
        if self._spread is None:
            return of_states[self._place]
        places, chances = self._spread
        value = mean_of(np.array([of_states[i].value for i in places.tolist()]), chances)
        return Estimate(value=value, lower=float("nan"), upper=float("nan"))


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    name = escaped(name, _LONGEST_NAME)
    return names if len(names) >= MOST_NAMED or name in names else (*names, name)
