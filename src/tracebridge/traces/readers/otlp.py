"""OpenTelemetry traces in OTLP JSON, with the attributes of the GenAI conventions or of OpenInference."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tracebridge.errors import Location, Problem
from tracebridge.traces.model import Step, Trace
from tracebridge.traces.problems import counted, shown
from tracebridge.traces.readers.instants import instant_of_nanoseconds, started
from tracebridge.traces.readers.otlp_spans import (
    EVALUATION_EVENT,
    EVALUATION_KEYS,
    OWN_ATTRIBUTES,
    Span,
    decode_spans,
    without_doubles,
)
from tracebridge.traces.readers.records import Record, RecordError, json_records
from tracebridge.traces.readers.verdict import agreed_verdict, ending, verdict_of
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

_TOLD_KEYS = frozenset({*OWN_ATTRIBUTES.values(), *EVALUATION_KEYS})


class OtlpReader:
    """OTLP JSON: one export, or one export a line.

    ============  ===============================================================================
    run           a ``traceId``, whose spans may be anywhere in the file
    step          a span that does something, by its start time: a call of a model (``chat``, kind ``llm``), of a tool
                  (kind ``tool``, its name), a retrieval, embedding, reranking or guardrail (kind and name are that
                  word). Agents, chains, turns and workflows contain steps and are none. A span that both vocabularies
                  describe, or two spans for one operation, one of each vocabulary, are one step
    error         ``status.code`` 2, or an ``error.type``
    outcome       events ``gen_ai.evaluation.result`` (``gen_ai.evaluation.score.label`` or ``.value``), attributes
                  ``evaluation.label`` or ``evaluation.score``, or our own ``tracebridge.outcome``: a usual word, a
                  boolean, 0 or 1; several must agree
    censoring     ``no_outcome`` where there is none of them; the reason is ``tracebridge.termination`` where given.
                  The status of a span is no outcome: unset is not success
    task, trial   ``tracebridge.task_id``, ``tracebridge.trial``
    model         the first ``gen_ai.response.model``, ``gen_ai.request.model`` or ``llm.model_name``
    started       the earliest ``startTimeUnixNano`` of its spans
    trace_id      ``traceId``
    ============  ===============================================================================

    A step has the duration of its span, and its tokens where they are counted. Spans are kept until the file ends, for
    a trace may go on anywhere in it.
    """

    name = "otlp"
    description = "OpenTelemetry OTLP JSON with gen_ai or OpenInference attributes, one export or one a line"

    def detect(self, file: InputFile) -> bool:
        """An object with resourceSpans."""
        seen = shape(file.head)
        return seen.kind in ("object", "array") and "resourceSpans" in seen.keys

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The traces in the order of their first spans."""
        spans: dict[str, dict[str, Span]] = {}
        n_twice = 0
        for record in json_records(file, log):
            for span in decode_spans(record, file, log):
                of_trace = spans.get(span.trace)
                if of_trace is None:
                    of_trace = spans[span.trace] = {}
                if span.id in of_trace:
                    n_twice += 1
                else:
                    of_trace[span.id] = span
        if n_twice:
            message = f"repeated, and counted once: {counted(n_twice, 'span')}"
            log.note(Problem(location=Location(path=file.label), message=message))
        for number, (name, of_trace) in enumerate(spans.items()):
            record = Record(b"", f"{file.label}[{name}]", number)
            try:
                trace = _trace(name, of_trace, record.source)
            except RecordError as error:
                location = Location(path=file.label, record=shown(name), field=error.field)
                log.refuse(Problem(location=location, message=str(error), hint=error.hint))
            else:
                yield trace


def _trace(name: str, spans: dict[str, Span], source: str) -> Trace:
    ordered = sorted(spans.values(), key=attrgetter("start", "end", "id"))
    described = [span for span in ordered if span.attributes or span.events]
    telling = [span for span in described if span.events or not _TOLD_KEYS.isdisjoint(span.attributes)]
    reason = _own(telling, "termination")
    verdict = agreed_verdict(_evaluations(telling), what="evaluations")
    outcome, termination = ending(verdict, None if reason is None else str(reason), is_cut=False)
    task, trial = _own(telling, "task"), _own(telling, "trial")
    return Trace(
        trace_id=name,
        outcome=outcome,
        steps=tuple([_step(span) for span in without_doubles(ordered, spans)]),
        termination=termination,
        task_id=None if task is None else str(task),
        trial=None if trial is None else str(trial),
        model=next((model for span in described if (model := span.model)), None),
        source=source,
        attributes=started(next((at for span in ordered if (at := instant_of_nanoseconds(span.start))), None)),
    )


def _own(spans: list[Span], field: str) -> Any:
    """The value of one of our own attributes: of the outermost span that has it, which starts first."""
    key = OWN_ATTRIBUTES[field]
    return next((span.attributes[key] for span in spans if span.attributes.get(key) is not None), None)


def _evaluations(spans: list[Span]) -> dict[str, bool | None]:
    found: dict[str, bool | None] = {}

    def add(place: str, label: Any, score: Any) -> None:
        value = score if label is None else label
        if value is not None:
            found[f"{place} #{len(found) + 1}"] = verdict_of(value, field=place)

    for span in spans:
        add(OWN_ATTRIBUTES["outcome"], None, span.attributes.get(OWN_ATTRIBUTES["outcome"]))
        label, score = map(span.attributes.get, EVALUATION_KEYS)
        add("evaluation", label, score)
        for event in span.events:
            values = event.values()
            label, score = map(values.get, ("gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value"))
            add(str(values.get("gen_ai.evaluation.name", EVALUATION_EVENT)), label, score)
    return found


def _step(span: Span) -> Step:
    operation = span.operation
    if operation is None:
        raise RecordError("a span that is no step")
    kind, name = operation
    duration = max(span.end - span.start, 0) / 1e9
    return Step(name=name, kind=kind, error=span.is_error, tokens=span.tokens, duration=duration)
