"""What a trace of a deliberation is: `broadcast-trace/0.1`, one JSON object a trace.

A *block* is one turn: the agents are polled in private, one poll is selected, its agent speaks in public. Flags that
can be computed (valid, labelled, diverged, the type of a pool) are never stored. Keys that the format does not name
are kept under ``extra`` of the object in which they stand.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

SCHEMA: Final = "broadcast-trace/0.1"

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=1000, pattern="^[^\\u0000-\\u001f]+$")]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Score: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] | float
"""A score as it was emitted: a whole number stays one."""


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An object of the format.

    Attributes:
        extra: what the file has beside the named fields; values are JSON.
    """

    extra: dict[str, Any] = {}


class Cell(Part, frozen=True, kw_only=True):
    """Who acted, on what, judged by whom; names may be empty where they are not known."""

    actor_model: str
    benchmark: str
    judge_model: str


class Protocol(Part, frozen=True, kw_only=True):
    """The protocol of the deliberation."""

    name: str
    version: str


class Config(Part, frozen=True, kw_only=True):
    """The settings of the protocol, as far as they are known."""

    n_agents: Count | None = None
    discussion_turns: Count | None = None
    approval_rounds: Count | None = None
    max_outer_rounds: Count | None = None
    router_rule: str | None = None
    tie_rule: str | None = None
    deferred_note_threshold: float | None = None
    memory_mode: str | None = None
    recent_history_window: Count | None = None
    approval_policy: str | None = None
    candidate_update_policy: str | None = None
    temperature: float | None = None
    max_tokens: Count | None = None


class StatedScale(Part, frozen=True, kw_only=True):
    """The scale of the scores.

    Attributes:
        min, max: its ends; a confidence is score / max.
        integer: scores are whole numbers.
        elicitation: the words in which confidence was asked for; null where they are not known.
        parse_fail_value: what the emitter writes for a poll that it could not parse.
        resolution: scores closer than this are tied, where they are no whole numbers.
        origin: ``inferred`` where the scale was told from the scores themselves.
    """

    min: float
    max: float
    integer: bool
    elicitation: str | None
    parse_fail_value: float | None = None
    resolution: float = 1e-9
    origin: Literal["stated", "inferred"] = "stated"


class Gold(Part, frozen=True, kw_only=True):
    """The reference answer."""

    answer: str | None = None
    answer_type: str | None = None


class Usage(Part, frozen=True, kw_only=True):
    """What was spent."""

    tokens_prompt: Count | None = None
    tokens_completion: Count | None = None
    tokens_total: Count | None = None
    calls: Count | None = None
    calls_by_role: dict[str, Count] = {}
    wall_s: Amount | None = None


class CorrectnessLabel(Part, frozen=True, kw_only=True):
    """Who says that an answer is correct, and how."""

    judge: str | None = None
    method: Literal["exact", "rule", "judge"] | None = None
    verdict: str | None = None


class Poll(Part, frozen=True, kw_only=True):
    """What one agent said in private when it was asked.

    Attributes:
        order: its place in the order of polling, which is the order in which ties are broken.
        score_raw: exactly as emitted; null where there was none that can be read.
        parse_ok: whether the emitter could parse the poll.
        candidate_raw, candidate: the candidate answer as given, and in the emitter's canonical form.
        correct: whether the candidate is correct; null where nobody says.
    """

    agent: Name
    order: Count
    score_raw: Score | None
    parse_ok: bool
    candidate_raw: str | None = None
    candidate: str | None = None
    correct: bool | None = None
    label: CorrectnessLabel | None = None
    usage: Usage | None = None


class Selection(Part, frozen=True, kw_only=True):
    """Which poll was given the floor.

    Attributes:
        agent: whose; null where none was.
        tie_set: the agents with the highest score.
        rule: the router's rule in words.
        derived: it was computed from the polls by ``rule``, not observed.
    """

    agent: Name | None
    score: Score | None = None
    tie_set: tuple[Name, ...] = ()
    rule: str | None = None
    derived: bool = False


class Equivalence(Part, frozen=True, kw_only=True):
    """What a judge says of the spoken answer against that of the selected poll.

    Attributes:
        residual: the two are not canonically equal, so that a judge was needed.
    """

    judge: Name
    verdict: Literal["equivalent", "divergent", "undecided"]
    residual: bool = True


class Speak(Part, frozen=True, kw_only=True):
    """A public utterance of the selected agent."""

    utt_id: Name
    agent: Name
    candidate_raw: str | None = None
    candidate: str | None = None
    correct: bool | None = None
    label: CorrectnessLabel | None = None
    equiv: tuple[Equivalence, ...] = ()
    text_sha256: str | None = None
    text: str | None = None
    usage: Usage | None = None


class Incumbent(Part, frozen=True, kw_only=True):
    """The answer that stands.

    Attributes:
        source: the agent it came from, or ``previous_attempt``.
    """

    answer: str | None = None
    source: str | None = None
    correct: bool | None = None


class Block(Part, frozen=True, kw_only=True):
    """One turn.

    Attributes:
        index: its place among all blocks of the trace, increasing.
        polls: in the order of polling.
        selection: null where nothing was selected.
        speak: null where nobody spoke (also a skipped discussion).
        visible: the utterances that the speaker could see; null where that is to be derived.
    """

    block_id: Name
    round: Count
    turn: Count
    index: Count
    polls: tuple[Poll, ...]
    selection: Selection | None
    speak: Speak | None
    incumbent_before: Incumbent | None = None
    incumbent_after: Incumbent | None = None
    visible: tuple[Name, ...] | None = None


class Approval(Part, frozen=True, kw_only=True):
    """One agent's vote on the incumbent."""

    round: Count
    approval_round: Count
    agent: Name
    approve: bool | None
    revised_answer: str | None = None
    parse_ok: bool = True


class Evaluation(Part, frozen=True, kw_only=True):
    """What the evaluator said of a submitted answer, once an outer round."""

    round: Count
    submitted_answer: str | None
    passed: bool | None
    signal: str | None = None


class RunOutcome(Part, frozen=True, kw_only=True):
    """How the run ended; ``censored`` where its end was not observed."""

    passed: bool | None
    stop: Literal["pass", "budget", "error", "censored"]
    correct: bool | None = None
    final_answer: str | None = None


class BroadcastTrace(Part, frozen=True, kw_only=True):
    """One deliberation.

    Attributes:
        trace_id: unique within a corpus.
        problem_uid: the problem; what folds are grouped by.
        cluster_id: independent clusters for standard errors; the problem where it is null.
        tier, tier_rank: difficulty as a name, and as the number that regressions use.
        mode: ``broadcast``, ``single_agent``, ``baseline_llm``, ``polls``, ...
        problem_text: the problem in words; tells problems apart that share a ``problem_uid``.
        outcome: null where nothing is known about the end.
        source: the file and record it came from.
    """

    schema: Literal["broadcast-trace/0.1"]
    trace_id: Name
    problem_uid: Name
    cell: Cell
    mode: Name
    protocol: Protocol
    score_scale: StatedScale
    blocks: tuple[Block, ...]
    cluster_id: Name | None = None
    tier: Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] | str | None = None
    tier_rank: float | None = None
    problem_text: str | None = None
    config: Config = Config()
    gold: Gold | None = None
    approvals: tuple[Approval, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    outcome: RunOutcome | None = None
    usage: Usage | None = None
    source: str | None = None


def broadcast_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one line of a `broadcast-trace/0.1` file.

    Made from the types above, so that it cannot disagree with the reader. What it cannot say is checked by
    :func:`tracebridge.confidence.broadcast_rules.broken_rules`. Other keys are allowed anywhere, as the reader keeps
    them under ``extra``.
    """
    (reference,), definitions = msgspec.json.schema_components([BroadcastTrace], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition.pop("additionalProperties", None)
        summary, _, _ = definition.get("description", "").partition("\n")
        definition["description"] = summary
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tracebridge:{SCHEMA.replace('/', ':')}",
        **reference,
        "$defs": definitions,
    }
