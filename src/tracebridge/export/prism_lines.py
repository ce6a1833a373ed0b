"""The lines of a PRISM file that tracebridge wrote, one by one: what each says, or why it says nothing.

Probabilities and rewards that are spelled otherwise than `tracebridge.export.prism.format_prism` spells them (other
denominators, another order of branches) are read as what they are, and the line is given back in the usual spelling.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from tracebridge.chain.state_annotations import IMPLICIT_LABELS
from tracebridge.errors import Location, Problem
from tracebridge.export.prism import command_line
from tracebridge.export.prism_numbers import (
    UNDO,
    Distribution,
    RejectedLineError,
    number_text,
    read_distribution,
    read_double,
    read_name,
    read_position,
    read_reward,
    read_reward_denominator,
    reject,
)
from tracebridge.export.prism_text import FORMAT_VERSION, MARKER, VARIABLES_VERSION, reward_line

_MAX_PROBLEMS = 20

_INTEGER = r"0|[1-9][0-9]*"
_NUMBER = r"[0-9][0-9.e+/-]*"
_NAME = r'"([^"\n]*)"'
_ADDED_ROW = "the initial distribution"
_FIRST_LINE = re.compile(re.escape(MARKER) + r" ([0-9]+), transitions (exact|float), initial (exact|float)")
_VARIABLE = re.compile(rf"  s : \[0\.\.({_INTEGER})\] init ({_INTEGER});(?:  // mass ({_NUMBER}))?")
_COMMAND = re.compile(rf"  \[\] s=({_INTEGER}) -> ([^;]*);  // ({_NAME}|{_ADDED_ROW})")
_BRANCH = re.compile(rf"({_NUMBER}):\(s'=({_INTEGER})\)")
_LABEL = re.compile(
    rf'label "[A-Za-z0-9_]+" = ([^;]*);  // (?:(label|state) {_NAME}|the added first state|the states that it leads to)'
)
_REWARDS = re.compile(rf'rewards "[A-Za-z0-9_]+"  // {_NAME}, state (float|{_INTEGER}), action (float|none|{_INTEGER})')
_NO_REWARDS = "  true : 0;"


@cache
def _run(subject: str) -> re.Pattern[str]:
    return re.compile(rf"{subject}>=({_INTEGER}) & {subject}<=({_INTEGER})|{subject}=({_INTEGER})")


@cache
def _reward_of(subject: str) -> re.Pattern[str]:
    return re.compile(rf"  (\[\] )?{subject}=({_INTEGER}) : ({_NUMBER});")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The line of a state, or of the added first state, whose name is None."""

    line: int
    state: int
    name: str | None
    distribution: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """The line of ``s``: its largest value, its first one, and the initial mass there."""

    line: int
    highest: int
    start: int
    mass: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRuns:
    """A label and the first and last states of its runs."""

    line: int
    runs: list[tuple[int, int]]


@dataclass(slots=True, kw_only=True)
class RewardItems:
    """A reward structure: values by state, integers over the denominator; that is None for doubles.

    ``action`` is None where there are no action rewards.
    """

    line: int
    state: dict[int, int | float] = field(default_factory=dict)
    action: dict[int, int | float] | None = None
    state_denominator: int | None = None
    action_denominator: int | None = None


@dataclass(slots=True, kw_only=True)
class PrismLines:
    """What the lines said so far.

    Attributes:
        path: for messages. line: the number of lines taken. problems: of lines that were refused, in their order.
        state_names: names of states by what their labels say. farthest: the largest state that branches, labels and
            rewards speak of, with its line.
    """

    version: ClassVar[int] = FORMAT_VERSION
    subject: ClassVar[str] = "s"  # the variable that labels and rewards speak of

    path: str | None
    line: int = 0
    exact_transitions: bool = False
    exact_initial: bool = False
    variable: Variable | None = None
    commands: dict[int, Command] = field(default_factory=dict)
    added: Command | None = None
    labels: dict[str, LabelRuns] = field(default_factory=dict)
    rewards: dict[str, RewardItems] = field(default_factory=dict)
    state_names: dict[int, str] = field(default_factory=dict)
    farthest: tuple[int, int] = (0, 1)
    problems: list[Problem] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)  # of states, with their lines
    _items: RewardItems | None = None  # of the reward structure that the next lines belong to

    def take(self, line: str) -> str:
        """Read one line; what has none of the forms is left to the comparison of the whole texts.

        Returns:
            The line, numbers in the spelling of `format_prism`.
        """
        self.line += 1
        try:
            return self._take(line)
        except RejectedLineError as rejected:
            if len(self.problems) < _MAX_PROBLEMS:
                message, hint = rejected.args
                self.problems.append(self.problem(message, hint))
            return line

    def problem(self, message: str, hint: str | None = UNDO, *, line: int | None = None) -> Problem:
        """A problem of a line, by default the last that was taken."""
        return Problem(location=Location(path=self.path, line=line or self.line), message=message, hint=hint)

    def _take(self, line: str) -> str:
        if self.line == 1:
            self._first(line)
        elif self._items is not None:
            return self._reward_item(line, self._items)
        elif line.startswith("  [] "):
            return self._command(line)
        elif line.startswith("label "):
            self._label(line)
        elif line.startswith("rewards "):
            self._rewards(line)
        elif line.startswith("  s : "):
            self._variable(line)
        return line

    def _first(self, line: str) -> None:
        match = _FIRST_LINE.fullmatch(line)
        if match is None:
            reject("this text was not written by tracebridge", "without this line Storm or PRISM can read it")
        if match[1] != str(self.version):
            known = f"{FORMAT_VERSION} and {VARIABLES_VERSION}"
            reject(f"this text has format {match[1]}; this version of tracebridge reads formats {known}")
        self.exact_transitions, self.exact_initial = match[2] == "exact", match[3] == "exact"

    # ------------------------------------------------------------ the module

    def _variable(self, line: str) -> None:
        match = _VARIABLE.fullmatch(line)
        if match is None:
            reject(f"{line[:80]!r} does not have the form 's : [0..k] init i;'")
        if self.variable is not None:
            reject(f"the variable s is declared already, on line {self.variable.line}")
        start = read_position(match[2])
        mass = read_distribution([(start, match[3] or "1")], "the initial mass", exact=self.exact_initial)
        self.variable = Variable(line=self.line, highest=read_position(match[1]), start=start, mass=mass)

    def _command(self, line: str) -> str:
        match = _COMMAND.fullmatch(line)
        if match is None:
            reject(f"{line[:80]!r} is no command of the form '[] s=i -> p:(s'=k) + ...;  // \"name\"'")
        state, comment = read_position(match[1]), match[3]
        earlier = self.commands.get(state) or (self.added if self.added and self.added.state == state else None)
        if earlier is not None:
            reject(f"s={state} has a command already, on line {earlier.line}")
        name = None if comment == _ADDED_ROW else read_name(match[4])
        if name is None:
            if self.added is not None:
                reject(f"the initial distribution stands already on line {self.added.line}")
            what, exact = "the initial distribution", self.exact_initial
        else:
            if not name:
                reject("a state needs a name")
            if name in self._names:
                reject(f"two states are called {name!r}; the first is on line {self._names[name]}")
            what, exact = f"state {name!r}: its row", self.exact_transitions
            self._names[name] = self.line
            self.state_names.setdefault(state, name)
        branches = []
        for branch in match[2].split(" + "):
            parts = _BRANCH.fullmatch(branch)
            if parts is None:
                reject(f"{branch[:80]!r} is no branch of the form p:(s'=k)")
            branches.append((self._mentioned(parts[2]), parts[1]))
        distribution = read_distribution(branches, what, exact=exact)
        command = Command(line=self.line, state=state, name=name, distribution=distribution)
        if name is None:
            self.added = command
        else:
            self.commands[state] = command
        return command_line(state, distribution.targets, distribution.texts(), comment)

    # ------------------------------------------------------------ labels and rewards

    def _label(self, line: str) -> None:
        match = _LABEL.fullmatch(line)
        if match is None:
            reject(f'{line[:80]!r} is no label of the form \'label "identifier" = states;  // label "name"\'')
        if match[2] is None:  # follows from the initial distribution
            return
        name = read_name(match[3])
        if match[2] == "state":
            if only := re.fullmatch(rf"s=({_INTEGER})", match[1]):
                self.state_names.setdefault(self._mentioned(only[1]), name)
            return
        if not name or name in IMPLICIT_LABELS:
            reject(f"{name!r} cannot be given as a label", "init and deadlock follow from the chain")
        if name in self.labels:
            reject(f"the label {name!r} is defined already, on line {self.labels[name].line}")
        runs = [(first or only, last or only) for first, last, only in _run(self.subject).findall(match[1])]
        positions = [(read_position(first), self._mentioned(last)) for first, last in runs]
        self.labels[name] = LabelRuns(line=self.line, runs=positions)

    def _rewards(self, line: str) -> None:
        items = self._items = RewardItems(line=self.line)  # also of a line that is refused: its items are no commands
        match = _REWARDS.fullmatch(line)
        if match is None:
            reject(
                f'{line[:80]!r} does not have the form \'rewards "identifier"  // "name", state kind, action kind\', '
                "where a kind is float, none or a denominator"
            )
        name = read_name(match[1])
        if not name:
            reject("a reward structure needs a name")
        if name in self.rewards:
            reject(f"the reward structure {name!r} is defined already, on line {self.rewards[name].line}")
        items.state_denominator = read_reward_denominator(match[2])
        if match[3] != "none":
            items.action, items.action_denominator = {}, read_reward_denominator(match[3])
        self.rewards[name] = items

    def _reward_item(self, line: str, items: RewardItems) -> str:
        if line == "endrewards":
            self._items = None
            return line
        if line == _NO_REWARDS:
            return line
        match = _reward_of(self.subject).fullmatch(line)
        if match is None:
            reject(f"{line[:80]!r} is no reward of the form '{self.subject}=i : number;', or '[] ' before it")
        is_action = match[1] is not None
        values = items.action if is_action else items.state
        denominator = items.action_denominator if is_action else items.state_denominator
        if values is None:
            reject(f"an action reward, but line {items.line} says that the structure has none")
        state = self._mentioned(match[2])
        if state in values:
            reject(
                f"a second reward of {self.subject}={state} in the structure of line {items.line}; write their sum once"
            )
        value = read_double(match[3]) if denominator is None else read_reward(match[3], denominator, items.line)
        values[state] = value
        return reward_line(state, number_text(value, denominator), self.subject, action=is_action)

    def _mentioned(self, digits: str) -> int:
        position = read_position(digits)
        if position > self.farthest[0]:
            self.farthest = (position, self.line)
        return position
