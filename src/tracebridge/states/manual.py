"""State maps: the user says which state a step belongs to, by ordered rules in a file or by a function."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tracebridge.errors import FitError, Location, Problem
from tracebridge.states.features import retries
from tracebridge.states.space import OTHER, RESERVED_WORDS
from tracebridge.traces.model import Step
from tracebridge.traces.problems import counted

#: A map has at most so many rules, and a function gives at most so many states.
MAX_RULES = 10_000
#: States and patterns are at most this long.
MAX_LENGTH = 1_000

Matcher = Callable[[str], object]
Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRule:
    """Steps that meet every condition given are in ``state``.

    There is a condition at least: a rule without any would match every step and hide the rules behind it. What no rule
    matches is for the default of the map.

    Patterns are globs: ``*`` stands for any text, ``?`` for one character, ``[abc]`` and ``[!abc]`` for one of these
    and for any other. A pattern matches a whole value; of several, one must. Capitals count.

    Attributes:
        state: the name of the state.
        kind, name, text: patterns of these fields; a step without text has the text "".
        error, retry: whether the step failed, and whether it repeats the step before it after that failed.
        attributes: for each key a pattern if it is text, and otherwise the value itself; a step without it fails.

    Raises:
        ValueError: for a state or pattern that is none, or no condition.
    """

    state: str
    kind: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    error: bool | None = None
    retry: bool | None = None
    attributes: Mapping[str, Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_state_name(self.state)
        flags = self.error is not None or self.retry is not None
        if not (self.kind or self.name or self.text or self.attributes or flags):
            raise ValueError(
                "the rule has no condition, so that every step would match it and none the rules behind it"
            )
        for pattern in (*self.kind, *self.name, *self.text, *(v for v in self.attributes.values() if type(v) is str)):
            if len(pattern) > MAX_LENGTH:
                raise ValueError(f"a pattern has {len(pattern)} characters, at most {MAX_LENGTH} are allowed")
        object.__setattr__(self, "attributes", dict(sorted(self.attributes.items())))

    def to_dict(self) -> dict[str, Any]:
        """The rule as in a file, every pattern in a list; conditions that are not made are left out."""
        given = {"kind": list(self.kind), "name": list(self.name), "text": list(self.text)}
        flags = {"error": self.error, "retry": self.retry}
        return {
            "state": self.state,
            **{key: patterns for key, patterns in given.items() if patterns},
            **{key: flag for key, flag in flags.items() if flag is not None},
            **({"attributes": dict(self.attributes)} if self.attributes else {}),
        }


class _CompiledRule:
    """A rule ready to be asked: what depends on kind, name and error alone, and the rest."""

    def __init__(self, rule: StateRule) -> None:
        self.state = rule.state
        self.error, self.retry = rule.error, rule.retry
        self._kind, self._name, self._text = (_matcher(each) for each in (rule.kind, rule.name, rule.text))
        self._attributes = [
            (key, _matcher((value,)) if isinstance(value, str) else None, value)
            for key, value in rule.attributes.items()
        ]
        self.is_settled = self._text is None and not self._attributes

    def may_match(self, kind: str, name: str, error: bool) -> bool:
        return (
            (self.error is None or self.error is error)
            and (self._kind is None or self._kind(kind) is not None)
            and (self._name is None or self._name(name) is not None)
        )

    def accepts_rest(self, step: Step) -> bool:
        if self._text is not None and self._text(step.text or "") is None:
            return False
        for key, matches, value in self._attributes:
            found = step.attributes.get(key)
            if matches is not None:
                if not isinstance(found, str) or matches(found) is None:
                    return False
            elif isinstance(found, bool) is not isinstance(value, bool) or found != value:
                return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMap:
    """Ordered rules: the first that matches a step gives its state.

    Attributes:
        rules: in their order.
        default: the state of steps that no rule matches; without one they are an error.

    Raises:
        ValueError: for more than `MAX_RULES` rules, or a default that cannot be a state.
    """

    rules: tuple[StateRule, ...]
    default: str | None = None
    _candidates: Callable[[str, str, bool], tuple[_CompiledRule, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.rules) > MAX_RULES:
            raise ValueError(f"{len(self.rules)} rules, at most {MAX_RULES} are allowed")
        if self.default is not None:
            require_state_name(self.default)
        compiled = [_CompiledRule(rule) for rule in self.rules]

        @lru_cache(maxsize=65_536)  # few kinds of step go through the rules, however many steps there are
        def candidates(kind: str, name: str, error: bool) -> tuple[_CompiledRule, ...]:
            possible = []
            for rule in compiled:
                if rule.may_match(kind, name, error):
                    possible.append(rule)
                    if rule.is_settled and rule.retry is None:
                        break
            return tuple(possible)

        object.__setattr__(self, "_candidates", candidates)

    @property
    def states(self) -> tuple[str, ...]:
        """Every state that the map can give, ascending."""
        return tuple(sorted({*(rule.state for rule in self.rules), *([self.default] if self.default else [])}))

    def groups(self, steps: Sequence[Step]) -> list[str]:
        """The state of each step of a run.

        Raises:
            FitError: for a step that no rule matches where there is no default.
        """
        return [self._state(step, retry) for step, retry in zip(steps, retries(steps), strict=True)]

    def _state(self, step: Step, retry: bool) -> str:
        for rule in self._candidates(step.kind, step.name, step.error):
            if (rule.retry is None or rule.retry is retry) and (rule.is_settled or rule.accepts_rest(step)):
                return rule.state
        if self.default is None:
            raise _unmatched(step)
        return self.default

    def to_dict(self) -> dict[str, Any]:
        """The document of the map."""
        default = {} if self.default is None else {"default": self.default}
        return {"kind": "rules", **default, "rule": [rule.to_dict() for rule in self.rules]}


def _unmatched(step: Step) -> FitError:
    where = f"kind {step.kind!r}, name {step.name!r}, error {str(step.error).lower()}"
    return FitError(
        Problem(
            location=Location(),
            message=f"no rule of the state map matches a step of {where}",
            hint=f"add a rule, or a default such as default = {OTHER!r}",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFunction:
    """A Python function from a step to the name of its state.

    A document holds no code: read from one, the map knows the function's name only and cannot be applied.

    Attributes:
        name: module and name of the function. function: None after reading a document.
    """

    name: str
    function: Callable[[Step], str] | None = field(default=None, compare=False)
    _known: set[str] = field(init=False, repr=False, compare=False, default_factory=set)

    @classmethod
    def of(cls, function: Callable[[Step], str]) -> StateFunction:
        """The map that this function is."""
        return cls(name=name_of(function), function=function)

    def groups(self, steps: Sequence[Step]) -> list[str]:
        """The state of each step.

        Raises:
            FitError: if the function is not here, or gives what cannot be a state.
        """
        if self.function is None:
            raise unknown_function("states", self.name)
        return [self._checked(self.function(step)) for step in steps]

    def _checked(self, state: object) -> str:
        if isinstance(state, str) and state in self._known:
            return state
        try:
            require_state_name(state)
        except ValueError as error:
            raise FitError(f"{self.name}: {error}") from None
        if len(self._known) >= MAX_RULES:
            raise FitError(f"{self.name} gives more than {MAX_RULES} different states, the last of them {state!r:.80}")
        self._known.add(str(state))
        return str(state)

    def to_dict(self) -> dict[str, Any]:
        """The document of the map: the name alone."""
        return {"kind": "function", "name": self.name}


def name_of(function: Callable[..., Any]) -> str:
    """Module and name of a function, or of the class of an object that can be called."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def unknown_function(what: str, name: str) -> FitError:
    """The error for a fit whose function is not in its document."""
    return FitError(
        Problem(
            location=Location(),
            message=f"the {what} of this fit come from the Python function {name}, which its document does not hold",
            hint="fit the traces again with it, or write the map as rules in a file",
        )
    )


def require_state_name(name: object) -> None:
    """Raise ValueError for what cannot be the name of a state, saying why."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a state needs a name that is text and not empty, not {name!r:.80}")
    if len(name) > MAX_LENGTH or not name.isprintable():
        raise ValueError(f"{name!r:.80} cannot be a state: up to {counted(MAX_LENGTH, 'printable character')}")
    if name in RESERVED_WORDS and name != OTHER:
        raise ValueError(f"{name!r} cannot be a state, the word has a meaning of its own; 'step_{name}' can")


def _matcher(patterns: Sequence[str]) -> Matcher | None:
    """Full match of a value with one of the globs; None without any.

    `fnmatch.translate` never backtracks over a star, so that time stays about linear in the text.
    """
    if not patterns:
        return None
    matches = [re.compile(fnmatch.translate(pattern)).match for pattern in patterns]
    if len(matches) == 1:
        return matches[0]
    return lambda value: next((found for match in matches if (found := match(value)) is not None), None)
