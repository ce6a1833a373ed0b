"""Readers of the trace formats: one file per format behind one registry.

A package adds a format of its own through an entry point of the group ``tracebridge.readers`` that names an object
with the interface of :class:`~tracebridge.traces.readers.reader.Reader`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from tracebridge.traces.jsonl import JsonlReader
from tracebridge.traces.readers.ag2 import Ag2Reader, WhoAndWhenReader
from tracebridge.traces.readers.atif import AtifReader
from tracebridge.traces.readers.claude_code import ClaudeCodeReader
from tracebridge.traces.readers.columns import COLUMNS, check_mapping
from tracebridge.traces.readers.evaluation_report import EvaluationReportReader
from tracebridge.traces.readers.flat import OUTCOME_WORDS, FlatReader
from tracebridge.traces.readers.harbor_trial import HarborTrialReader
from tracebridge.traces.readers.inspect_log import InspectReader
from tracebridge.traces.readers.inspect_package import InspectPackageReader
from tracebridge.traces.readers.messages import MessagesReader
from tracebridge.traces.readers.mini_swe_agent import MiniSweAgentReader
from tracebridge.traces.readers.openhands import OpenHandsReader
from tracebridge.traces.readers.otlp import OtlpReader
from tracebridge.traces.readers.plug_ins import ENTRY_POINT_GROUP, PlugIns, installed_plug_ins
from tracebridge.traces.readers.swe_agent import SweAgentReader
from tracebridge.traces.readers.tau2_bench import Tau2BenchReader
from tracebridge.traces.readers.tau_bench import TauBenchReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracebridge.traces.readers.reader import Reader

__all__ = ["COLUMNS", "ENTRY_POINT_GROUP", "FORMATS", "OUTCOME_WORDS", "check_mapping", "known_readers", "plug_ins"]

_BUILT_IN: tuple[Reader, ...] = (
    JsonlReader(),
    FlatReader(),
    MessagesReader(),
    TauBenchReader(),
    Tau2BenchReader(),
    SweAgentReader(),
    MiniSweAgentReader(),
    AtifReader(),
    HarborTrialReader(),
    InspectReader(),
    InspectPackageReader(),
    OtlpReader(),
    OpenHandsReader(),
    ClaudeCodeReader(),
    Ag2Reader(),
    WhoAndWhenReader(),
    EvaluationReportReader(),
)

FORMATS: Mapping[str, Reader] = MappingProxyType({reader.name: reader for reader in _BUILT_IN})
"""The formats that tracebridge itself reads, by name."""


def known_readers() -> Mapping[str, Reader]:
    """All formats by name: our own, and those of installed packages, as far as their readers can be loaded."""
    readers: dict[str, Reader] = dict(FORMATS)
    readers.update((reader.name, reader) for reader in plug_ins().readers)
    return MappingProxyType(readers)


def plug_ins() -> PlugIns:
    """The readers of installed packages, and what is wrong with those that cannot be used."""
    return installed_plug_ins(frozenset(FORMATS))
