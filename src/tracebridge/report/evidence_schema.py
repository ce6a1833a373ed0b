"""The fields of an evidence file and their types: what a reader accepts, and the JSON Schema that says so.

Missing fields are refused, and unknown ones everywhere but in ``chain``, the certificates and the ladder, which are
documents of their own and checked by what reads them when the numbers are computed again, and in ``corpus``, where
readers may add what they counted.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tracebridge.report.results_schema import Count, Number, Results, Sha256, Strict

Many = Annotated[int, Meta(ge=0, le=1_000_000)]


class Tool(Strict):
    """Versions of what computed the numbers."""

    name: Literal["tracebridge"]
    version: str
    python: str
    platform: str
    engines: dict[str, str]
    packages: dict[str, str]


class Options(Strict):
    """The options of the command, by the names of Python's arguments; files by their names alone."""

    seed: Count
    draws: Many
    resamples: Many
    replicates: Many
    futures: Many
    covariates: list[str] | None
    robust: float | None
    model: str
    engines: list[str]
    exact: bool
    time_limit: float | None
    trace_format: str | None
    mapping: dict[str, str] | None
    outcomes: list[str] | str | None
    endings: str | None
    skip_bad: bool
    k_max: int | None
    min_count: int
    top: int | None
    states: str | dict[str, Any] | None
    text_features: bool | dict[str, Any] | None
    prior: str | float | None
    support: str | None
    policy: str
    start: str | dict[str, Number]
    weight: str | dict[str, str] | None
    profile: str | None
    vocabulary: str | None


class Command(Strict):
    """What was asked for."""

    verb: Literal["assess"]
    options: Options


class Input(Strict):
    """A file that was read, by its name, and the number and the SHA-256 of its bytes."""

    role: Literal["traces", "properties", "outcomes", "endings", "states"]
    name: str | None
    sha256: Sha256
    size: Count | UnsetType = msgspec.field(name="bytes", default=UNSET)


class Properties(Strict):
    """The property file as it was given, and the values given for its constants, numbers as exact text."""

    source: str
    constants: dict[str, str | bool]


class Reading(Strict):
    """A property in plain language."""

    name: str | None
    text: str


class Assumption(Strict):
    """What numbers rest on, and what tested it."""

    id: str
    statement: str
    tested_by: str | None
    result: Literal["accept", "reject", "inconclusive", "untested", "untestable"]
    p: float | None
    reason: str | None


class Limit(Strict):
    """What the numbers do not show."""

    id: str
    statement: str


class EvidenceFile(Strict):
    """An assessment with all that it takes to find it again; ``digest`` seals the rest."""

    kind: Literal["tracebridge-evidence"]
    schema_version: Literal[1]
    tool: Tool
    command: Command
    inputs: list[Input]
    chain: dict[str, Any]
    properties: Properties
    results: Results
    readings: list[Reading]
    assumptions: list[Assumption]
    limits: list[Limit]
    files: dict[str, Sha256]
    digest: Sha256


def evidence_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of an evidence file.

    Made from the types above, so that it cannot disagree with the reader.
    """
    (reference,), definitions = msgspec.json.schema_components([EvidenceFile], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:tracebridge:evidence:1",
        **reference,
        "$defs": definitions,
    }
