"""State maps as TOML and JSON files: every problem of a file is reported, with the rule and what to do."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

from tracebridge.errors import Location, ModelError, Problem
from tracebridge.states.manual import MAX_RULES, StateMap, StateRule
from tracebridge.traces.text_document import decoded, parse_document, unreadable_number

#: Larger files are refused.
MAX_BYTES = 4 * 2**20

_PATTERNS = ("kind", "name", "text")
_FLAGS = ("error", "retry")
_CONDITIONS = (*_PATTERNS, *_FLAGS, "attributes")
_RULE_KEYS = ("state", *_CONDITIONS)
_MAP_KEYS = ("default", "rule")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*rule[ \t]*\]\]", re.MULTILINE)


def read_state_map(path: str | Path) -> StateMap:
    """Read ordered rules from TOML or, if the file's name ends in ``.json``, from JSON.

    In TOML::

        default = "other"          # steps that no rule matches; without it they are an error

        [[rule]]                   # the first rule that matches a step gives its state
        state = "lookup"
        name = ["search_*", "get_?"]

        [[rule]]
        state = "write_failed"
        kind = "tool"
        error = true
        attributes = {channel = "mail*", priority = 1}

    The conditions of a rule are those of `StateRule`; all must hold. A JSON file has the same keys: an object with
    ``default`` and the list ``rule``.

    Raises:
        ModelError: listing every problem, with its place.
    """
    place = Location(path=str(path))
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ModelError("there is no such file", location=place) from None
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", location=place) from error
    if len(raw) > MAX_BYTES:
        raise ModelError(f"a state map has at most {MAX_BYTES} bytes, and this file has more", location=place)
    text = decoded(raw, str(path))
    if Path(path).suffix.lower() == ".json":
        return state_map_from_dict(parse_document(text, str(path)), path=str(path))
    lines = [text.count("\n", 0, header.start()) + 1 for header in _HEADER.finditer(text)]
    return state_map_from_dict(_parsed_toml(text, str(path)), path=str(path), lines=lines)


def state_map_from_dict(data: Any, *, path: str | None = None, lines: list[int] | None = None) -> StateMap:
    """The map that a file's content is; ``lines`` are those where the rules start.

    Raises:
        ModelError: listing every problem.
    """
    if not isinstance(data, Mapping):
        raise ModelError(f"a state map is a table with the key 'rule', not {_kind(data)}", location=Location(path=path))
    found = data.get("rule", [])
    problems = [_unknown_key(key, _MAP_KEYS, Location(path=path)) for key in data if key not in _MAP_KEYS]
    if not isinstance(found, list) or len(found) > MAX_RULES or not (found or "default" in data):
        message = f"'rule' must be a list of 1 to {MAX_RULES} rules" + (
            f", not {len(found)}" if isinstance(found, list) else f", not {_kind(found)}"
        )
        hint = "write each rule under a line [[rule]]"
        raise ModelError([*problems, Problem(location=Location(path=path), message=message, hint=hint)])
    known_lines = lines if lines is not None and len(lines) == len(found) else None  # a header inside a text misleads
    rules = []
    for number, rule in enumerate(found, start=1):
        line = known_lines[number - 1] if known_lines else None
        place = Location(path=path, line=line, record=f"rule {number}")
        wrong = list(_problems(rule, place))
        if not wrong:
            try:
                rules.append(_rule(rule))
            except ValueError as error:
                wrong.append(Problem(location=place, message=str(error)))
        problems += wrong
    if problems:
        raise ModelError(problems)
    default = data.get("default")
    try:
        if "default" in data and not isinstance(default, str):
            raise ValueError(f"must be the name of a state, not {_kind(default)}")
        return StateMap(rules=tuple(rules), default=default)
    except ValueError as error:
        raise ModelError(str(error), location=Location(path=path, field="default")) from None


def _problems(rule: object, place: Location) -> Iterator[Problem]:
    if not isinstance(rule, Mapping):
        yield Problem(location=place, message=f"a rule is a table, not {_kind(rule)}")
        return
    if isinstance(rule.get("state"), str) and not any(rule.get(key, {}) != {} for key in _CONDITIONS):
        message = "this rule has no condition: it takes every step, and no rule below it is asked"
        hint = f"for steps that no rule matches write default = {json.dumps(rule['state'])[:80]} above the rules"
        yield Problem(location=place, message=message, hint=hint)
    if "state" not in rule:
        hint = 'add a line such as state = "search"'
        yield Problem(location=place, message="this rule names no state", hint=hint)
    for key, value in rule.items():
        if key not in _RULE_KEYS:
            yield _unknown_key(key, _RULE_KEYS, place)
        elif key == "state" and not isinstance(value, str):
            yield Problem(location=place, message=f"'state' must be text, not {_kind(value)}")
        elif key in _FLAGS and not isinstance(value, bool):
            yield Problem(location=place, message=f"{key!r} must be true or false, not {_kind(value)}")
        elif key in _PATTERNS and not (
            isinstance(value, str) or (isinstance(value, list) and value and all(isinstance(v, str) for v in value))
        ):
            hint = "patterns are globs: * stands for any text, ? for one character"
            yield Problem(
                location=place, message=f"{key!r} must be a pattern or a list of some, not {_kind(value)}", hint=hint
            )
        elif key == "attributes":
            yield from _attribute_problems(value, place)


def _attribute_problems(value: object, place: Location) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(location=place, message=f"'attributes' must be a table of keys and values, not {_kind(value)}")
        return
    for key, wanted in value.items():
        if not isinstance(wanted, str | bool | int | float) or (isinstance(wanted, float) and not isfinite(wanted)):
            message = (
                f"attribute {key!r} is compared with a pattern, a finite number, true or false, not {_kind(wanted)}"
            )
            yield Problem(location=place, message=message)


def _rule(data: Mapping[str, Any]) -> StateRule:
    patterns: dict[str, Any] = {
        key: (data[key],) if isinstance(data[key], str) else tuple(data[key]) for key in _PATTERNS if key in data
    }
    return StateRule(
        state=data["state"],
        attributes=dict(data.get("attributes", {})),
        error=data.get("error"),
        retry=data.get("retry"),
        **patterns,
    )


def _unknown_key(key: object, known: tuple[str, ...], place: Location) -> Problem:
    close = get_close_matches(str(key)[:80], known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
    return Problem(location=place, message=f"unknown key {str(key)[:80]!r}", hint=hint)


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a table"}
    return "an empty list" if value == [] else names.get(type(value), type(value).__name__)


def _parsed_toml(text: str, path: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line, column = _toml_place(str(error))
        raise ModelError(f"not TOML: {message}", location=Location(path=path, line=line, column=column)) from error
    except RecursionError:
        raise ModelError("nested too deeply", location=Location(path=path)) from None
    except ValueError as error:  # an integer of thousands of digits
        raise ModelError(f"not TOML: {unreadable_number(error)}", location=Location(path=path)) from error


def _toml_place(message: str) -> tuple[str, int | None, int | None]:
    """tomllib says the place in its words only."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    return (found[1], int(found[2]), int(found[3])) if found else (message, None, None)
