"""The fields of results.json and their types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tracebridge.traces.run_dates import Instant

Number = float | str  # text for a rational, NaN and infinities, see `number_to_json`
Verdict = Literal["satisfied", "violated", "undecided", "unsupported", "error"]
Count = Annotated[int, Meta(ge=0)]
Whole = Annotated[str, Meta(pattern="^[0-9]{1,9}$")]  # a whole number as a key
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """An object without other fields than these."""


class Interval(Strict):
    """A statistical interval."""

    lower: Number
    upper: Number
    level: float
    method: str


class Enclosure(Strict):
    """A number with numerical bounds."""

    value: Number
    lower: Number
    upper: Number


class Operator(Strict):
    """One operator of a property under one engine."""

    operator: str
    nested: bool
    start: Enclosure
    start_states: dict[str, Enclosure] = {}


class Note(Strict):
    """A remark on how a value came about."""

    kind: Literal["warning", "formulation"]
    text: str


class Listing(Strict):
    """What a filter lists."""

    filter: str
    values: dict[str, bool | Enclosure | None]
    total: int


class EngineResult(Strict):
    """One property under one engine."""

    engine: str
    exact: bool
    verdict: Verdict | None
    value: Enclosure | None
    truth: bool | None
    operators: list[Operator]
    reason: str | None
    notes: list[Note]
    range: tuple[Enclosure, Enclosure] | None = None
    listings: list[Listing] = []


class Uncertainty(Strict):
    """A property under the posterior."""

    name: str | None
    formula: str
    level: float
    credible: bool
    draws: int
    seed: int
    undefined: int
    holds_at_point: bool | None
    point: Number | None
    mean: Number | None
    satisfied: Number | None
    violated: Number | None
    share_error: Number | None
    interval: Interval | None
    quantile_errors: tuple[Number, Number] | None
    verdict: Verdict | None
    reason: str | None
    notes: list[str]


class Standing(Strict):
    """What a certificate says for a scope."""

    scope: Literal["timing", "path"]
    verdict: Literal["reject", "refused", "none", "inconclusive", "accept"]
    mark: str | None
    reasons: list[str]


class SecondOpinion(Strict):
    """A property by other methods than the posterior."""

    name: str | None
    formula: str
    intervals: list[Interval]
    satisfied: dict[str, Number]
    notes: list[str]


class Outlook(Strict):
    """What a number of further runs would decide."""

    n_more: int
    factor: float
    satisfied: float
    violated: float
    decided: float
    error: float
    futures: int


class Plan(Strict):
    """How the prospect of a decision grows with the number of runs."""

    name: str | None
    formula: str
    level: float
    verdict: Verdict
    outlooks: list[Outlook]
    enough: int | None = msgspec.field(name="enough_at_0.8")
    seed: int
    reason: str | None


class Guarantee(Strict):
    """What holds of a property for all chains that the counts do not exclude."""

    method: str
    level: float
    transitions: int
    lower: Number | None
    upper: Number | None
    width_ratio: Number | None
    verdict: Verdict | None
    reason: str | None


class PropertyResult(Strict):
    """One property with all that is said about it."""

    name: str | None
    formula: str
    annotations: dict[str, str]
    verdict: Verdict | None
    at_estimate: Verdict | None
    agree: bool | None
    gap: Number | None
    allowed: Number | None
    reason: str | None
    uncertainty: Uncertainty | None
    engines: list[EngineResult]
    standing: Standing | None
    marks: list[str]
    second_opinion: SecondOpinion | None
    plan: Plan | None
    rests_on: list[dict[str, Any]]
    guarantee: Guarantee | None = None


class ReadFile(Strict):
    """A file that runs, outcomes or endings were read from."""

    path: str
    format: str
    sha256: Sha256
    n_records: Count
    size: Count | UnsetType = msgspec.field(name="bytes", default=UNSET)


class Length(Strict):
    """Of runs, in steps."""

    min: Count
    median: float
    mean: float
    max: Count


class Steps(Strict):
    """Steps of one name."""

    n: Count
    n_errors: Count


class Dates(Strict):
    """When the runs began that say it."""

    n_runs: Count
    first: Instant | None
    last: Instant | None


class Corpus(msgspec.Struct):
    """What was read."""

    schema_version: int
    n_runs: Count
    n_steps: Count
    outcomes: dict[Literal["success", "failure", "censored"], Count]
    terminations: dict[str, Count]
    length: Length
    lengths: dict[Whole, Count]
    steps: dict[str, Steps]
    n_other_names_steps: Count
    n_tasks: Count
    runs_per_task: dict[Whole, Count]
    n_without_task: Count
    models: dict[str, Count]
    dates: Dates
    files: list[ReadFile]
    n_skipped: Count
    problems: list[str]
    notes: list[str]


class Fit(Strict):
    """How the chain was fitted, and what the counts say without it."""

    model: str
    kappa: float | None
    states: list[str]
    prior: str
    support: str
    censored: str
    profile: str | None
    notes: list[str]
    pass_rate: dict[Literal["censored", "failure", "drop"], str | None]
    mean_length: str | None
    weighted_pass_rate: dict[Literal["censored", "failure", "drop"], str | None] | UnsetType = UNSET


class FigureIntervals(Strict):
    """Of one headline number, by the posterior and by other methods."""

    posterior: Interval | None
    others: list[Interval]


class Figures(Strict):
    """The headline numbers, or why they are missing."""

    mark: str | None
    uncertainty: dict[str, FigureIntervals]
    missing: str | UnsetType = UNSET
    outcomes: dict[str, Number] | UnsetType = UNSET
    reliability: Number | UnsetType = msgspec.field(name="R_inf", default=UNSET)
    mean_time: Number | UnsetType = msgspec.field(name="MTTA", default=UNSET)
    deviation: Number | UnsetType = msgspec.field(name="MTTA_standard_deviation", default=UNSET)
    curve: dict[Whole, Number] | UnsetType = msgspec.field(name="R", default=UNSET)
    horizon: Number | UnsetType = msgspec.field(name="horizon_0.01", default=UNSET)
    median_steps_to_success: Number | UnsetType = UNSET
    steps_per_failure: Number | UnsetType = UNSET


class EmpiricalPoint(Strict):
    """The curve of the runs themselves at one budget."""

    value: Number | None
    lower: Number | None
    upper: Number | None


class CensoringBounds(Strict):
    """A number if all censored runs failed, and if all succeeded."""

    fail: Number
    succeed: Number


class Observed(Strict):
    """What the runs say without the chain."""

    method: str
    n_runs: Count
    n_censored: Count
    curve: dict[Whole, EmpiricalPoint] = msgspec.field(name="R")
    if_all_censored: dict[str, CensoringBounds]
    missing: str | None


class HeadlineNumbers(Strict):
    """The numbers of one fit."""

    pass_rate: str | None
    reliability: Number | None = msgspec.field(name="R_inf")
    mean_time: Number | None = msgspec.field(name="MTTA")
    properties: list[bool | Number | None]
    missing: str | None


class EndingChoice(Strict):
    """What the numbers would be if runs that ended for a reason had been counted otherwise."""

    reason: str | None
    failed: Count
    censored: Count
    counted_as: Literal["censored", "failure", "drop"]
    numbers: HeadlineNumbers


class EndingChoices(Strict):
    """Every such choice that was tried."""

    present: HeadlineNumbers
    choices: list[EndingChoice]
    notes: list[str]


class ReliabilityBounds(Strict):
    """What runs that were cut say of R_inf."""

    step: Count
    lower: float
    upper: float


class ResultsTool(Strict):
    """The tool as results.json names it."""

    name: Literal["tracebridge"]
    version: str
    engines: dict[str, str]


class Results(Strict):
    """What results.json holds."""

    kind: Literal["tracebridge-results"]
    schema_version: int
    tool: ResultsTool
    corpus: Corpus
    fit: Fit
    mark: str | None
    certificate: dict[str, Any]
    standings: dict[Literal["timing", "path"], Standing]
    ladder: dict[str, Any] | None
    figures: Figures
    observed: Observed | None
    reliability_bounds: ReliabilityBounds | None
    ending_choices: EndingChoices | None
    advice: list[str]
    assumptions: list[str]
    notes: list[str]
    exact: bool
    properties: list[PropertyResult]
    exit_code: int
    files: dict[str, Sha256]
