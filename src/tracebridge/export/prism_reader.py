"""Reading back the PRISM files that tracebridge wrote: the same chain, number by number and name by name.

This is no reader of the PRISM language. It takes exactly what `tracebridge.export.prism.format_prism` writes: the chain
is collected line by line, written again, and the two texts must be equal, so that an edit which the comments do not
reflect is found instead of being read half.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain, RewardStructure
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.errors import Location, ModelError, Problem
from tracebridge.export.prism import FORMAT_VERSION, MARKER, format_prism

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_DIGITS = 4_300  # of a number; Python reads no longer ones
_MAX_LABEL_ENTRIES = 10**9  # truth values of all labels; a short file could ask for far more

_NUMBER = r"[0-9][0-9.e+/-]*"
_NAME = r'"([^"\n]*)"'
_FIRST_LINE = re.compile(re.escape(MARKER) + r" ([0-9]+), transitions (exact|float), initial (exact|float)")
_VARIABLE = re.compile(rf"  s : \[0\.\.[0-9]+\] init ([0-9]+);(?:  // mass ({_NUMBER}))?")
_COMMAND = re.compile(rf"  \[\] s=[0-9]+ -> ([^;]*);  // (?:{_NAME}|the initial distribution)")
_BRANCH = re.compile(rf"({_NUMBER}):\(s'=([0-9]+)\)")
_LABEL = re.compile(rf'label "[A-Za-z0-9_]+" = ([^;]*);  // label {_NAME}')
_RUN = re.compile(r"s>=([0-9]+) & s<=([0-9]+)|s=([0-9]+)")
_REWARDS = re.compile(rf'rewards "[A-Za-z0-9_]+"  // {_NAME}, state (float|[0-9]+), action (float|none|[0-9]+)')
_REWARD_ITEM = re.compile(rf"  (\[\] )?s=([0-9]+) : ({_NUMBER});")
_RATIONAL = re.compile(r"([0-9]+)(?:\.0)?(?:/([0-9]+)(?:\.0)?)?")
_HIDDEN = re.compile(r"\\u\{([0-9a-f]{1,6})\}")

#: A number as it is written: numerator and denominator, or a double.
_Number = tuple[int, int] | float
_Entries = list[tuple[int, _Number]]


def is_own_prism(text: str) -> bool:
    """Whether a model text says that tracebridge wrote it."""
    return text.startswith(MARKER + " ")


def read_own_prism(text: str, *, path: str | None = None) -> MarkovChain:
    """The chain that `format_prism` wrote as this text: equal in every name, number and order.

    Args:
        text: the text; its line ends may have become CRLF. path: where it came from, for messages.

    Raises:
        ModelError: the text was not written by `format_prism`, was changed since into what that would not write, or its
            chain breaks an invariant; with the line where there is one.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    reading = _Reading(path=path)
    for line in lines:
        reading.take(line)
    try:
        chain = reading.chain()
    except ModelError as error:
        located = (replace(problem, location=replace(problem.location, path=path)) for problem in error.problems)
        raise ModelError(located) from error
    _require_equal_texts(lines, format_prism(chain, max_states=None).split("\n"), path)
    return chain


# ---------------------------------------------------------------- reading


@dataclass(slots=True, kw_only=True)
class _Rewards:
    """A reward structure; a kind is a denominator, or ``float``, or ``none``."""

    state_kind: str
    action_kind: str
    state: _Entries = field(default_factory=list)
    action: _Entries = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What the lines said so far."""

    path: str | None
    line: int = 0
    exact_transitions: bool = False
    exact_initial: bool = False
    names: list[str] = field(default_factory=list)
    rows: list[_Entries] = field(default_factory=list)
    initial: _Entries = field(default_factory=list)
    labels: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    rewards: dict[str, _Rewards] = field(default_factory=dict)
    largest: int = 0

    def take(self, line: str) -> None:
        """One line. What has none of the forms is left to the comparison of the whole texts."""
        self.line += 1
        if self.line == 1:
            self._first(line)
        elif match := _COMMAND.fullmatch(line):
            self._command(*match.groups())
        elif match := _LABEL.fullmatch(line):
            runs = [(first or only, last or only) for first, last, only in _RUN.findall(match[1])]
            self.labels[self._name(match[2])] = [(self._position(first), self._position(last)) for first, last in runs]
        elif match := _REWARDS.fullmatch(line):
            self.rewards[self._name(match[1])] = _Rewards(state_kind=match[2], action_kind=match[3])
        elif self.rewards and (match := _REWARD_ITEM.fullmatch(line)):
            self._reward_item(*match.groups())
        elif match := _VARIABLE.fullmatch(line):
            one = "1" if self.exact_initial else "1.0"
            self.initial = [(int(match[1][:10]), self._number(match[2] or one, exact=self.exact_initial))]

    def chain(self) -> MarkovChain:
        """The chain that the lines describe.

        Raises:
            ModelError: there is none.
        """
        n = len(self.names)
        if max(self.largest, *(i for i, _ in self.initial), 0) >= n:
            raise self._error(f"a state number is beyond the {n} states that have a command")
        if n * len(self.labels) > _MAX_LABEL_ENTRIES:
            raise self._error(f"{len(self.labels)} labels over {n} states are more than can be held")
        initial: RationalVector | NDArray[np.float64]
        initial = _rationals(self.initial, n) if self.exact_initial else _doubles(self.initial, n)
        return MarkovChain(
            states=tuple(self.names),
            transitions=self._transitions(n),
            initial=initial,  # type: ignore[arg-type]  # the constructor takes a RationalVector too
            labels={name: _mask(runs, n) for name, runs in self.labels.items()},
            rewards={name: self._structure(rewards, n) for name, rewards in self.rewards.items()},
        )

    def _first(self, line: str) -> None:
        match = _FIRST_LINE.fullmatch(line)
        if match is None:
            raise self._error("this text was not written by tracebridge", "Storm or PRISM can read it")
        if match[1] != str(FORMAT_VERSION):
            raise self._error(
                f"this text has format {match[1]}; this version of tracebridge reads format {FORMAT_VERSION}"
            )
        self.exact_transitions, self.exact_initial = match[2] == "exact", match[3] == "exact"

    def _command(self, branches: str, name: str | None) -> None:
        exact = self.exact_initial if name is None else self.exact_transitions
        entries = []
        for branch in branches.split(" + "):
            match = _BRANCH.fullmatch(branch)
            if match is None:
                raise self._error(f"{branch[:80]!r} is no branch of the form p:(s'=k)")
            entries.append((self._position(match[2]), self._number(match[1], exact=exact)))
        if name is None:
            self.initial = entries
        else:
            self.names.append(self._name(name))
            self.rows.append(entries)

    def _reward_item(self, action: str | None, position: str, value: str) -> None:
        rewards = self.rewards[next(reversed(self.rewards))]
        kind, entries = (rewards.action_kind, rewards.action) if action else (rewards.state_kind, rewards.state)
        entries.append((self._position(position), self._number(value, exact=kind != "float")))

    def _name(self, text: str) -> str:
        try:
            return _HIDDEN.sub(lambda match: chr(int(match[1], 16)), text)
        except ValueError as error:
            raise self._error(f'the name "{text}" has a character that does not exist') from error

    def _position(self, digits: str) -> int:
        position = int(digits[:10])  # no file that is read has as many states
        self.largest = max(self.largest, position)
        return position

    def _number(self, text: str, *, exact: bool) -> _Number:
        match = _RATIONAL.fullmatch(text) if exact else None
        if len(text) > 2 * _MAX_DIGITS or (match and max(len(match[1]), len(match[2] or "")) > _MAX_DIGITS):
            raise self._error(f"the number {text[:20]}... has more than {_MAX_DIGITS} digits")
        if not exact:
            try:
                return float(text)
            except ValueError as error:
                raise self._error(f"{text} is no number") from error
        if match is None or (match[2] is not None and not int(match[2])):
            raise self._error(f"{text} is no fraction of integers", "the first line says that numbers are exact")
        return int(match[1]), int(match[2] or 1)

    def _transitions(self, n: int) -> csr_array | RationalMatrix:
        indptr = np.cumsum([0, *map(len, self.rows)], dtype=np.int64)
        indices = np.array([j for row in self.rows for j, _ in row], dtype=np.int64)
        values = [value for row in self.rows for _, value in row]
        if not self.exact_transitions:
            return csr_array((np.array(values, dtype=np.float64), indices, indptr), shape=(n, n))
        tops = [_numerator(value) for value in values]
        bottoms = [_denominator(row) for row in self.rows]
        return RationalMatrix(indptr, indices, np.array(tops, dtype=object), np.array(bottoms, dtype=object), n)

    def _structure(self, rewards: _Rewards, n: int) -> RewardStructure:
        state, exact_state = self._reward_vector(rewards.state, rewards.state_kind, n)
        action, exact_action = None, None
        if rewards.action_kind != "none":
            action, exact_action = self._reward_vector(rewards.action, rewards.action_kind, n)
        return RewardStructure(state=state, action=action, exact_state=exact_state, exact_action=exact_action)

    def _reward_vector(self, entries: _Entries, kind: str, n: int) -> tuple[NDArray[np.float64], RationalVector | None]:
        if kind == "float":
            return _doubles(entries, n), None
        if len(kind) > _MAX_DIGITS or not int(kind):
            raise self._error(f"{kind[:20]} is no denominator of rewards")
        exact = RationalVector(_rationals(entries, n).numerators, int(kind))
        return exact.to_float(), exact

    def _error(self, message: str, hint: str | None = None) -> ModelError:
        return ModelError(Problem(location=Location(path=self.path, line=self.line), message=message, hint=hint))


def _doubles(entries: _Entries, n: int) -> NDArray[np.float64]:
    vector = np.zeros(n)
    for i, value in entries:
        vector[i] = value if isinstance(value, float) else np.nan
    return vector


def _rationals(entries: _Entries, n: int) -> RationalVector:
    """A vector over the denominator of its first entry; were another's different, the texts would differ."""
    numerators = np.zeros(n, dtype=object)
    for i, value in entries:
        numerators[i] = _numerator(value)
    return RationalVector(numerators, _denominator(entries))


def _numerator(value: _Number) -> int:
    return value[0] if isinstance(value, tuple) else 0


def _denominator(entries: _Entries) -> int:
    return next((value[1] for _, value in entries if isinstance(value, tuple)), 1)


def _mask(runs: list[tuple[int, int]], n: int) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=np.bool_)
    for first, last in runs:
        mask[first : last + 1] = True
    return mask


def _require_equal_texts(found: list[str], expected: list[str], path: str | None) -> None:
    for number, (line, other) in enumerate(zip_longest(found, expected), start=1):
        if line != other:
            raise ModelError(
                Problem(
                    location=Location(path=path, line=number),
                    message="the file says that tracebridge wrote it, but this line is "
                    + ("missing" if line is None else f"{line[:80]!r}")
                    + (" at the end" if other is None else f" where it would write {other[:80]!r}"),
                    hint="undo the edit, or take away the first line so that the file is read as any other PRISM model",
                )
            )
