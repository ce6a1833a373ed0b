"""The lines of a PRISM file with variables for what states remember (see `tracebridge.export.prism_variables`).

Labels and rewards speak of the category and are read as those of other files are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from tracebridge.chain.expanded.naming import CATEGORY, NO_VALUE, STEP, VARIABLES
from tracebridge.export.prism_lines import PrismLines
from tracebridge.export.prism_numbers import Distribution, read_distribution, read_name, reject
from tracebridge.export.prism_text import VARIABLES_VERSION

#: Values of variables beyond this are no states of ours.
MAX_VALUE = 200_000

_INTEGER = r"-1|0|[1-9][0-9]{0,8}"
_NUMBER = r"[0-9][0-9.e+/-]*"
_NAMED = re.compile(r'// (category|group) ([0-9]{1,9}): "([^"\n]*)"')
_DECLARATION = re.compile(
    rf"  ([a-z_]+) : \[({_INTEGER})\.\.({_INTEGER})\] init ({_INTEGER});(?:  // mass ({_NUMBER}))?"
)
_TERM = re.compile(rf"([a-z_]+)(=|>=|<=)({_INTEGER})")
_BRANCH = re.compile(rf"({_NUMBER}):(.*)")
_UPDATE = re.compile(rf"\(([a-z_]+)'=(?:({_INTEGER})|([a-z_]+)\+1)\)")
_ADDED_ROW = "  // the initial distribution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What a branch does to the variables that it names: a value by position, and whether the step grows by one."""

    values: dict[int, int]
    one_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCommand:
    """A command for states that differ in the step alone.

    Attributes:
        values: of the variables in the first of them. last_step: the step of the last.
        updates, distribution: what its branches do, and their probabilities, with positions among them as targets.
    """

    line: int
    values: tuple[int, ...]
    last_step: int
    updates: tuple[Update, ...]
    distribution: Distribution


@dataclass(slots=True, kw_only=True)
class VariableLines(PrismLines):
    """What the lines said so far.

    Attributes:
        names: of categories and groups. start: the values that runs start with. ranges: commands; the one of the added
            first state stands in ``first``.
    """

    version: ClassVar[int] = VARIABLES_VERSION
    subject: ClassVar[str] = CATEGORY

    names: dict[str, list[str]] = field(default_factory=lambda: {"category": [], "group": []})
    start: dict[str, int] = field(default_factory=dict)
    mass: str | None = None
    ranges: list[RangeCommand] = field(default_factory=list)
    first: RangeCommand | None = None
    _first_follows: bool = False

    @property
    def variables(self) -> list[str]:
        """The variables that are declared."""
        return list(self.start)

    def _take(self, line: str) -> str:
        if self.line > 1 and self._items is None:
            if line.startswith("  [] "):
                self._range_command(line)
                return line
            if match := _NAMED.fullmatch(line):
                self._name(match[1], int(match[2]), read_name(match[3]))
                return line
            if match := _DECLARATION.fullmatch(line):
                self._declare(match)
                return line
            self._first_follows = line == _ADDED_ROW
        return PrismLines._take(self, line)  # a dataclass with slots is another class than super() looks for

    def _name(self, kind: str, number: int, name: str) -> None:
        if number != len(self.names[kind]):
            reject(f"the {kind} that follows has the number {len(self.names[kind])}, not {number}")
        if not name and kind == CATEGORY:
            reject("a category needs a name")
        if name in self.names[kind]:
            reject(f"two of them are called {name!r}")
        self.names[kind].append(name)

    def _declare(self, match: re.Match[str]) -> None:
        name = match[1]
        if name not in VARIABLES or name in self.start:
            reject(f"{name} is declared already, or is none of {', '.join(VARIABLES)}")
        self.start[name] = self._value(match[4])
        if match[5] is not None:
            self.mass = match[5]

    def _value(self, digits: str) -> int:
        value = int(digits)
        if value > MAX_VALUE:
            reject(f"{value} is larger than any value of a variable ({MAX_VALUE})")
        return value

    # ------------------------------------------------------------ commands

    def _range_command(self, line: str) -> None:
        guard, arrow, rest = line.removeprefix("  [] ").partition(" -> ")
        if not arrow or not rest.endswith(";"):
            reject(f"{line[:80]!r} is no command of the form '[] category=i & ... -> p:(category'=k) + ...;'")
        is_first = self._first_follows
        values, last_step = self._guarded(guard)
        updates: list[Update] = []
        weights: list[tuple[int, str]] = []
        for branch in rest[:-1].split(" + "):
            match = _BRANCH.fullmatch(branch)
            if match is None:
                reject(f"{branch[:80]!r} is no branch of the form p:(category'=k) & ...")
            weights.append((len(weights), match[1]))
            updates.append(self._update(match[2]))
        what = "the initial distribution" if is_first else f"the row of {guard[:80]}"
        exact = self.exact_initial if is_first else self.exact_transitions
        command = RangeCommand(
            line=self.line,
            values=values,
            last_step=last_step,
            updates=tuple(updates),
            distribution=read_distribution(weights, what, exact=exact),
        )
        if not is_first:
            self.ranges.append(command)
        elif self.first is None:
            self.first = command
        else:
            reject(f"the initial distribution stands already on line {self.first.line}")

    def _guarded(self, guard: str) -> tuple[tuple[int, ...], int]:
        """The values of the first state, and the last step; variables that are not named have no value."""
        low: dict[str, int] = {}
        high: dict[str, int] = {}
        for term in guard.split(" & "):
            match = _TERM.fullmatch(term)
            if match is None or match[1] not in self.start or (match[2] != "=" and match[1] != STEP):
                reject(f"{term[:80]!r} is no condition on one of {', '.join(self.start)}")
            name, value = match[1], self._value(match[3])
            if match[2] in ("=", ">="):
                low[name] = value
            if match[2] in ("=", "<="):
                high[name] = value
        if low.keys() != high.keys() or CATEGORY not in low or high.get(STEP, 0) < low.get(STEP, 0):
            reject(f"{guard[:80]!r} does not say which states it is about")
        values = tuple(low.get(name, NO_VALUE) for name in self.start)
        return values, high.get(STEP, NO_VALUE)

    def _update(self, text: str) -> Update:
        values: dict[int, int] = {}
        one_more = False
        for part in text.split(" & "):
            match = _UPDATE.fullmatch(part)
            if match is None or match[1] not in self.start or match[3] not in (None, match[1]):
                reject(f"{part[:80]!r} is no update of the form (category'=k)")
            if match[3] is None:
                values[self.variables.index(match[1])] = self._value(match[2])
            elif match[1] == STEP:
                one_more = True
            else:
                reject(f"{part[:80]!r}: the step alone is counted on")
        return Update(values=values, one_more=one_more)
