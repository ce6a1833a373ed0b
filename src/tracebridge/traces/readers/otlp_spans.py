"""The spans of an OTLP export: what each is in the words of two conventions, and which of them are one operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence  # needed at run time: they are types of a struct's fields
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem
from tracebridge.traces.json_text import JsonTextError, decode_strictly

if TYPE_CHECKING:
    from collections.abc import Container

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog
    from tracebridge.traces.readers.records import Record

GEN_AI = "gen_ai"
OPEN_INFERENCE = "openinference"
_GEN_AI_STEPS = {
    "chat": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    "execute_tool": "tool",
    "retrieval": "retrieval",
    "embeddings": "embedding",
}
_OPEN_INFERENCE_STEPS = {
    "LLM": "llm",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    "EMBEDDING": "embedding",
    "RERANKER": "reranking",
    "GUARDRAIL": "guardrail",
}
_LLM_NAME = "chat"
_TOKEN_KEYS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    ("llm.token_count.prompt", "llm.token_count.completion"),
)
_ALL_TOKEN_KEYS = frozenset(key for keys in _TOKEN_KEYS for key in keys)
_MODEL_KEYS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
EVALUATION_EVENT = "gen_ai.evaluation.result"
EVALUATION_KEYS = ("evaluation.label", "evaluation.score")
OWN_ATTRIBUTES = {
    "task": "tracebridge.task_id",
    "trial": "tracebridge.trial",
    "outcome": "tracebridge.outcome",
    "termination": "tracebridge.termination",
}
"""Attributes that a user may set on any span of a trace, best on its root; the conventions have none for them."""

_DESCRIBING_KEYS = frozenset(
    {"gen_ai.operation.name", "openinference.span.kind", "gen_ai.tool.name", "tool.name", "error.type"}
)
_KEPT_KEYS = frozenset({*_MODEL_KEYS, *_ALL_TOKEN_KEYS, *EVALUATION_KEYS, *OWN_ATTRIBUTES.values()})
_READ_KEYS = _DESCRIBING_KEYS | _KEPT_KEYS
"""The attributes of a span that are read; others, such as whole prompts, are not kept until the file ends."""

_ERROR_CODES = (2, "2", "STATUS_CODE_ERROR")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Value(msgspec.Struct, gc=False):
    """An attribute's value; of containers (arrayValue, kvlistValue) nothing is needed."""

    stringValue: str | None = None  # noqa: N815 - the names of OTLP
    intValue: int | str | None = None  # noqa: N815
    doubleValue: float | str | None = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815

    def plain(self) -> str | int | float | bool | None:
        if self.stringValue is not None:
            return self.stringValue
        if isinstance(self.intValue, str):
            digits = self.intValue.lstrip("-")
            return int(self.intValue) if digits.isdecimal() and len(digits) < 20 else None
        if isinstance(self.doubleValue, str):
            return None  # NaN and infinities
        given = (self.boolValue, self.intValue, self.doubleValue)
        return next((value for value in given if value is not None), None)


class _Attribute(msgspec.Struct, gc=False):
    key: str
    value: _Value | None = None


class _Event(msgspec.Struct, gc=False):
    name: str = ""
    attributes: list[_Attribute] = []

    def values(self) -> dict[str, Any]:
        return _plain(self.attributes)


class _Status(msgspec.Struct, gc=False):
    code: int | str | None = None


class _SpanData(msgspec.Struct, gc=False):
    traceId: str  # noqa: N815
    spanId: str  # noqa: N815
    startTimeUnixNano: int | str  # noqa: N815
    endTimeUnixNano: int | str = 0  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    name: str = ""
    attributes: list[_Attribute] = []
    events: list[_Event] = []
    status: _Status | None = None


class _Scope(msgspec.Struct):
    spans: list[_SpanData] = []


class _Resource(msgspec.Struct):
    scopeSpans: list[_Scope] = []  # noqa: N815


class _Export(msgspec.Struct):
    resourceSpans: list[_Resource]  # noqa: N815


class Span(msgspec.Struct, gc=False):  # no cycle leads through one, and they are many: the collector passes over them
    """A span with those of its attributes that are read later, as plain values.

    Attributes:
        events: those that tell of an evaluation.
        start, end: nanoseconds since the epoch.
        vocabularies: the conventions whose attributes say what the span is.
        operation: kind and name of the step that the span is; None for one that only contains others.
    """

    trace: str
    id: str
    parent: str | None
    start: int
    end: int
    is_error: bool
    vocabularies: frozenset[str]
    operation: tuple[str, str] | None
    attributes: Mapping[str, Any]
    events: Sequence[_Event]

    @property
    def model(self) -> str | None:
        """The model that answered, or was asked."""
        for key in _MODEL_KEYS if self.attributes else ():
            if value := self.attributes.get(key):
                return str(value)
        return None

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together."""
        for keys in _TOKEN_KEYS if self.attributes else ():
            counts = [value for key in keys if isinstance(value := self.attributes.get(key), int) and value >= 0]
            if counts:
                return sum(counts)
        return None


def decode_spans(record: Record, file: InputFile, log: ProblemLog) -> list[Span]:
    """The spans of one export; one that does not decode goes to the log."""
    try:
        export = msgspec.convert(decode_strictly(bytes(record.data)), _Export)
        spans = [_span(data) for part in export.resourceSpans for scope in part.scopeSpans for data in scope.spans]
    except (JsonTextError, msgspec.MsgspecError, RecursionError, ValueError) as error:
        place = record.source.removeprefix(file.label).strip("[]:") or None
        log.refuse(Problem(location=Location(path=file.label, record=place), message=str(error)))
        return []
    return spans


def _span(data: _SpanData) -> Span:
    """The span of its data; times that are no numbers raise ValueError."""
    attributes = _plain(data.attributes, _READ_KEYS)
    vocabularies, operation = _described(
        attributes.get("gen_ai.operation.name"), attributes.get("openinference.span.kind")
    )
    if operation is not None and operation[0] == "tool":
        tool = attributes.get("gen_ai.tool.name") or attributes.get("tool.name") or data.name
        operation = ("tool", str(tool) or "tool")
    failed = data.status is not None and data.status.code in _ERROR_CODES
    return Span(
        trace=data.traceId,
        id=data.spanId,
        parent=data.parentSpanId or None,
        start=_nanoseconds(data.startTimeUnixNano),
        end=_nanoseconds(data.endTimeUnixNano),
        is_error=failed or attributes.get("error.type") is not None,
        vocabularies=vocabularies,
        operation=operation,
        attributes=_NOTHING if _DESCRIBING_KEYS.issuperset(attributes) else attributes,
        events=[event for event in data.events if event.name == EVALUATION_EVENT] if data.events else (),
    )


def without_doubles(ordered: list[Span], spans: Mapping[str, Span]) -> list[Span]:
    """The spans that are steps, without those that tell in one vocabulary what another span tells in the other.

    Two spans are one operation if they are of the same kind and name, of different vocabularies, and the one is the
    next step above the other, with no agent between; or they hang below the same span, where the vocabulary that has
    more of them is taken.
    """
    if len(frozenset().union(*{span.vocabularies for span in ordered})) < 2:
        return [span for span in ordered if span.operation is not None]
    above = _Ancestors(spans)
    steps = [span for span in ordered if span.operation is not None and not above.tells_the_same(span)]
    siblings: dict[tuple[str | None, tuple[str, str] | None], Counter[str]] = {}
    for span in steps:
        if len(span.vocabularies) == 1:
            counts = siblings.setdefault((span.parent, span.operation), Counter())
            counts[next(iter(span.vocabularies))] += 1
    found = []
    for span in steps:
        counts = siblings.get((span.parent, span.operation), Counter())
        taken = max(counts, key=lambda name: (counts[name], name), default=None)
        if taken is None or taken in span.vocabularies:
            found.append(span)
    return found


class _Ancestors:
    """For each span the next one above, itself included, that either vocabulary describes; each is looked up once."""

    def __init__(self, spans: Mapping[str, Span]) -> None:
        self._spans = spans
        self._described: dict[str, Span | None] = {}

    def tells_the_same(self, span: Span) -> bool:
        """Whether the next described span above is the same operation in the other vocabulary."""
        above = None if span.parent is None else self._next_described(span.parent)
        if above is None or above is span or above.operation != span.operation:
            return False
        return above.vocabularies.isdisjoint(span.vocabularies)

    def _next_described(self, name: str) -> Span | None:
        passed: list[str] = []
        found: Span | None = None
        at: str | None = name
        while at is not None and at in self._spans:
            if at in self._described:
                found = self._described[at]
                break
            self._described[at] = None  # should the parents go in a circle
            passed.append(at)
            if self._spans[at].vocabularies:
                found = self._spans[at]
                break
            at = self._spans[at].parent
        self._described.update(dict.fromkeys(passed, found))
        return found


@lru_cache(maxsize=1 << 8)
def _described(gen_ai: object, open_inference: object) -> tuple[frozenset[str], tuple[str, str] | None]:
    """The vocabularies that say what a span is, and its operation; of a tool any name, which others say."""
    told = [(GEN_AI, gen_ai), (OPEN_INFERENCE, open_inference)]
    kind = _GEN_AI_STEPS.get(str(gen_ai)) or _OPEN_INFERENCE_STEPS.get(str(open_inference).upper())
    operation = None if kind is None else (kind, _LLM_NAME if kind == "llm" else kind)
    return frozenset(name for name, value in told if value is not None), operation


def _nanoseconds(value: int | str) -> int:
    if isinstance(value, str):
        if not value.isdecimal() or len(value) > 20:
            raise ValueError(f"the time {value[:40]!r} is no number of nanoseconds")
        return int(value)
    if not 0 <= value < 1 << 64:
        raise ValueError("a time is no number of nanoseconds")
    return value


def _plain(attributes: list[_Attribute], keys: Container[str] | None = None) -> dict[str, Any]:
    return {
        attribute.key: value.plain() if (text := value.stringValue) is None else text
        for attribute in attributes
        if (keys is None or attribute.key in keys) and (value := attribute.value) is not None
    }
