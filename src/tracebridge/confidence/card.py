"""The Trace-Audit Card: an audit as one document, for programs and for people, with its own validator.

A card describes the measurement properties of a deliberation protocol; it is about no model and no data set.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.card_fields import CARD_GROUPS, CARD_SCHEMA
from tracebridge.confidence.metric_value import MetricValue
from tracebridge.errors import InputError, Location, Problem
from tracebridge.traces.files import InputFile
from tracebridge.traces.inputs import label_of
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.problems import escaped, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracebridge.confidence.card_fields import CardField

UNAVAILABLE = "unavailable"
_MAX_CARD_BYTES = 16 << 20
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCard:
    """A card.

    Attributes:
        groups: group to field to JSON value, in the order of ``CARD_GROUPS``; metrics are objects with ``value``,
            ``denominator_name`` and ``n``.

    Raises:
        InputError: a required field that is missing, a group or field that is none, a metric without its denominator;
            all of them.
    """

    groups: Mapping[str, Mapping[str, Any]]

    def __post_init__(self) -> None:
        if problems := list(card_problems(self.groups)):
            raise InputError(problems)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {"schema": CARD_SCHEMA, **{name: dict(fields) for name, fields in self.groups.items()}}

    def to_json(self) -> str:
        """The document as text; the same card gives the same text."""
        return msgspec.json.format(msgspec.json.encode(self.to_dict()).decode(), indent=2) + "\n"


def audit_card(groups: Mapping[str, Mapping[str, Any]]) -> AuditCard:
    """A card of values as Python has them: metrics as `MetricValue`, also within tables, NaN as ``"NaN"``.

    Raises:
        InputError: it is no valid card.
    """
    plain = {name: {field: card_value(value) for field, value in fields.items()} for name, fields in groups.items()}
    return AuditCard(groups=_in_order(plain))


def unavailable(reason: str) -> dict[str, str]:
    """What stands for a field that cannot be given, with the reason."""
    return {UNAVAILABLE: reason}


def card_value(value: Any) -> Any:
    """A value as JSON has it; a metric gets ``n``, the number of units that its denominator is."""
    if isinstance(value, MetricValue):
        n = value.denominator
        return value.to_dict() | {"n": int(n) if n == int(n) else n}
    if isinstance(value, float):
        return number_to_json(value)
    if isinstance(value, dict):
        return {str(key): card_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [card_value(item) for item in value]
    return value


def read_card(path: str | Path) -> AuditCard:
    """Read a card back.

    Raises:
        InputError: it is no JSON, or no valid card; with all that is wrong.
    """
    label = label_of(path, 1)
    with InputFile(Path(path), label) as file:
        data = file.document(_MAX_CARD_BYTES)
    try:
        document = decode_strictly(data)
    except JsonTextError as error:
        place = Location(path=label, line=error.line, column=error.column)
        raise InputError(Problem(location=place, message=str(error))) from error
    if not isinstance(document, dict) or document.get("schema") != CARD_SCHEMA:
        message = f"a card is a JSON object whose schema is {CARD_SCHEMA!r}"
        raise InputError(Problem(location=Location(path=label, field="schema"), message=message))
    groups = {name: fields for name, fields in document.items() if name != "schema"}
    try:
        return AuditCard(groups=_in_order(groups))
    except InputError as error:
        raise InputError(
            Problem(
                location=Location(path=label, field=problem.location.field), message=problem.message, hint=problem.hint
            )
            for problem in error.problems
        ) from error


def card_problems(groups: Mapping[str, Any]) -> Iterator[Problem]:
    """All that keeps a document from being a card: every missing field, and every metric that lacks what it needs."""
    for name in groups:
        if name not in CARD_GROUPS:
            yield _problem(escaped(name), "a card has no such group", f"there are {', '.join(CARD_GROUPS)}")
    for name, group in CARD_GROUPS.items():
        fields = groups.get(name, {})
        if not isinstance(fields, dict):
            yield _problem(name, f"a group is an object, this is {shown(fields)}")
            continue
        known = {field.name for field in group.fields}
        for field_name in fields:
            if field_name not in known:
                yield _problem(f"{name}.{escaped(field_name)}", "the group has no such field")
        for field in group.fields:
            yield from _field_problems(fields, field, f"{name}.{field.name}")


def _field_problems(fields: Mapping[str, Any], field: CardField, where: str) -> Iterator[Problem]:
    value = fields.get(field.name)
    if value is None or value == "":
        if field.is_required:
            hint = f'what cannot be given is {{"{UNAVAILABLE}": "the reason"}}'
            yield _problem(where, f"the field is required: {field.meaning}", hint)
        return
    if isinstance(value, dict) and UNAVAILABLE in value:
        if list(value) != [UNAVAILABLE] or not isinstance(value[UNAVAILABLE], str) or not value[UNAVAILABLE]:
            yield _problem(where, "what is unavailable has a reason and nothing else")
        return
    if field.kind == "metric" and not (isinstance(value, dict) and "value" in value):
        yield _problem(where, f"a metric is an object with a value, this is {shown(value)}")
        return
    yield from _metric_problems(value, where, 0)


def _metric_problems(value: Any, where: str, depth: int) -> Iterator[Problem]:
    """What is wrong with the metrics within a value."""
    if depth > _MAX_DEPTH:
        yield _problem(where, f"the value is nested more than {_MAX_DEPTH} deep")
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _metric_problems(item, f"{where}[{index}]", depth + 1)
        return
    if not isinstance(value, dict):
        return
    if "value" not in value:
        for key, item in value.items():
            yield from _metric_problems(item, f"{where}.{escaped(str(key))}", depth + 1)
        return
    if not isinstance(value.get("denominator_name"), str) or not value["denominator_name"]:
        yield _problem(where, "a metric names its denominator: denominator_name is missing")
    n = value.get("n")
    if isinstance(n, bool) or not isinstance(n, int | float) or not n >= 0:
        yield _problem(where, "a metric says how many units it rests on: n is missing")
    number = value["value"]
    is_undefined = number is None or number == "NaN"
    if is_undefined and not value.get("reason"):
        yield _problem(where, "an undefined metric says why: reason is missing")
    elif not is_undefined and (isinstance(number, bool) or not isinstance(number, int | float)):
        yield _problem(where, f"the value of a metric is a number, this is {shown(number)}")


def _in_order(groups: Mapping[str, Any]) -> dict[str, Any]:
    """Groups and fields in the order of the card; what is none of them comes last, for the validator to name."""
    ordered: dict[str, Any] = {}
    for name in (
        *(name for name in CARD_GROUPS if name in groups),
        *(name for name in groups if name not in CARD_GROUPS),
    ):
        fields = groups[name]
        if name in CARD_GROUPS and isinstance(fields, dict):
            known = [field.name for field in CARD_GROUPS[name].fields if field.name in fields]
            fields = {key: fields[key] for key in (*known, *(key for key in fields if key not in known))}
        ordered[name] = fields
    return ordered


def _problem(field: str, message: str, hint: str | None = None) -> Problem:
    return Problem(location=Location(field=field), message=message, hint=hint)
