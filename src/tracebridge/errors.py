"""Everything tracebridge raises, in one tree; the exit code of the command line sits on the class.

TracebridgeError
├── UsageError          2   the call cannot be understood
├── InputError          3   a file or a value given by the user is wrong; carries the place
│   ├── TraceError          trace files; carries every problem that was found
│   ├── PropertyError       property files: syntax, types, unknown labels
│   ├── ModelError          a chain that breaks an invariant
│   └── FitError            a corpus that no chain can be fitted to
├── EngineError         4   an engine failed
│   ├── EngineTimeoutError
│   └── UnsupportedError    this engine cannot evaluate this operator
└── NothingToCheckError 5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where in the user's input something was found; every part is optional.

    ``line`` and ``column`` count from 1; ``record`` names a run inside a file, ``field`` a key inside a record.
    """

    path: str | None = None
    line: int | None = None
    column: int | None = None
    record: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = self.path or ""
        if self.line is not None:
            place += f":{self.line}"
            if self.column is not None:
                place += f":{self.column}"
        parts = [place] if place else []
        if self.record is not None:
            parts.append(f"record {self.record}")
        if self.field is not None:
            parts.append(f"field {self.field}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with the input: where, what, and what to do about it.

    ``excerpt`` shows the place in the text that the user wrote: the source line and a caret below it.
    """

    location: Location
    message: str
    hint: str | None = None
    excerpt: str | None = None

    def __str__(self) -> str:
        place = str(self.location)
        text = f"{place}: {self.message}" if place else self.message
        text = f"{text} ({self.hint})" if self.hint else text
        return f"{text}\n{self.excerpt}" if self.excerpt else text


class TracebridgeError(Exception):
    """The root of all errors raised on purpose."""

    exit_code: ClassVar[int] = 70


class UsageError(TracebridgeError, ValueError):
    """The call cannot be understood: an unknown option value, a missing argument."""

    exit_code = 2


class InputError(TracebridgeError, ValueError):
    """A file or value from the user is wrong.

    Attributes:
        problems: everything that was found, in input order; at least one.
    """

    exit_code = 3

    def __init__(self, problems: str | Problem | Iterable[Problem], *, location: Location | None = None) -> None:
        if isinstance(problems, str):
            problems = Problem(location=location or Location(), message=problems)
        if isinstance(problems, Problem):
            problems = (problems,)
        self.problems: Sequence[Problem] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class TraceError(InputError):
    """Trace files with bad records."""


class PropertyError(InputError):
    """A property file that cannot be read, or a property that does not fit the model."""


class ModelError(InputError):
    """A chain that breaks an invariant, or a model file that cannot be read."""


class FitError(InputError):
    """A corpus that no chain can be fitted to under the chosen options."""


class EngineError(TracebridgeError, RuntimeError):
    """An engine failed to answer."""

    exit_code = 4


class EngineTimeoutError(EngineError, TimeoutError):
    """An engine did not answer within its time limit and was stopped."""


class UnsupportedError(EngineError):
    """An engine cannot evaluate an operator, or not at this size."""


class NothingToCheckError(TracebridgeError):
    """There is no property, no run or no state to work on."""

    exit_code = 5
