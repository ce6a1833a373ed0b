"""Numbers for names and for answers, in the order in which they are first met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from tracebridge.confidence.canonical_answer import canonical_answer
from tracebridge.confidence.label_findings import answer_of, problem_scope
from tracebridge.confidence.table import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tracebridge.confidence.broadcast import BroadcastTrace, Poll, Speak
    from tracebridge.confidence.table import Codes

T = TypeVar("T", bound="Hashable")


class Numbering(Generic[T]):
    """Numbers names from 0."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}

    def __call__(self, name: T) -> int:
        """The number of a name; a new one gets the next."""
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def names(self) -> tuple[T, ...]:
        """The names in the order of their numbers."""
        return tuple(self._numbers)


class AnswerCodes:
    """Codes of canonical answers; one answer to two problems has two codes."""

    def __init__(self, traces: Sequence[BroadcastTrace]) -> None:
        scopes = Numbering[tuple[str, str]]()
        self._scope_of_trace = [scopes(problem_scope(trace)) for trace in traces]
        self._codes = Numbering[tuple[int, str]]()
        self._verdicts: dict[tuple[int, int], set[str]] = {}

    def of_text(self, trace: int, answer: str | None) -> int:
        """The code of an answer in a trace; ``UNKNOWN`` for one that says nothing."""
        canonical = "" if answer is None else canonical_answer(answer)
        return self._codes((self._scope_of_trace[trace], canonical)) if canonical else UNKNOWN

    def of_spoken(self, trace: int, spoken: Poll | Speak) -> int:
        """The code of the answer of a poll or a speak."""
        canonical = answer_of(spoken)
        return self._codes((self._scope_of_trace[trace], canonical)) if canonical else UNKNOWN

    def judged(self, one: int, other: int, verdict: str) -> None:
        """Take note of what a judge says of two answers."""
        self._verdicts.setdefault((min(one, other), max(one, other)), set()).add(verdict)

    @property
    def names(self) -> tuple[str, ...]:
        """The answers in the order of their codes."""
        return tuple(answer for _, answer in self._codes.names)

    def equivalent(self) -> Codes:
        """(E, 2) the pairs that some judge found equivalent and none divergent, in increasing order."""
        pairs = sorted(
            pair for pair, said in self._verdicts.items() if "equivalent" in said and "divergent" not in said
        )
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)
