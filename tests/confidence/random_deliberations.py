"""Random corpora of deliberations whose labels follow from their answers, for laws that hold of every corpus."""

from __future__ import annotations

import numpy as np

from tracebridge.confidence.table import (
    UNKNOWN,
    BlockColumns,
    ConfidenceTable,
    PollColumns,
    ScoreScale,
    SpeakColumns,
    TraceColumns,
)

ANSWERS = tuple("abcde")
CORRECT = 0  # the answer "a" is correct everywhere


def random_deliberations(
    seed: int,
    *,
    n_traces: int = 40,
    n_agents: int = 3,
    censored: float = 0.0,
    silent: float = 0.1,
    invalid: float = 0.25,
    unselected: float = 0.0,
    unlabelled: float = 0.0,
) -> ConfidenceTable:
    """A corpus in which the first of the highest scores is selected; shares of what may go wrong are given."""
    rng = np.random.default_rng(seed)
    traces = []
    blocks = {name: [] for name in ("trace", "round", "turn", "selected", "incumbent", "incumbent_correct")}
    polls = {name: [] for name in ("block", "agent", "score", "valid", "answer", "correct")}
    speaks = {name: [] for name in ("block", "agent", "answer", "correct")}
    for trace in range(n_traces):
        passed, incumbent = False, UNKNOWN
        for turn in range(int(rng.integers(1, 6))):
            block, first = len(blocks["trace"]), len(polls["block"])
            for agent in range(n_agents):
                valid = rng.random() >= invalid
                answer = int(rng.choice(len(ANSWERS), p=[0.4, 0.3, 0.1, 0.1, 0.1])) if valid else UNKNOWN
                known = valid and rng.random() >= unlabelled
                polls["block"].append(block)
                polls["agent"].append(agent)
                polls["score"].append(float(rng.integers(1, 11) * 10))
                polls["valid"].append(valid)
                polls["answer"].append(answer)
                polls["correct"].append(int(answer == CORRECT) if known else UNKNOWN)
            scores = polls["score"][first:]
            chosen = first + int(np.argmax(scores)) if rng.random() >= unselected else UNKNOWN
            for name, value in (("trace", trace), ("round", 0), ("turn", turn), ("selected", chosen)):
                blocks[name].append(value)
            blocks["incumbent"].append(incumbent)
            blocks["incumbent_correct"].append(UNKNOWN if incumbent == UNKNOWN else int(incumbent == CORRECT))
            answer = polls["answer"][chosen] if chosen != UNKNOWN and rng.random() < 0.7 else int(rng.integers(5))
            if rng.random() < silent:
                answer = UNKNOWN
            speaks["block"].append(block)
            speaks["agent"].append(int(rng.integers(n_agents)))
            speaks["answer"].append(answer)
            speaks["correct"].append(int(answer == CORRECT) if answer != UNKNOWN else UNKNOWN)
            incumbent = answer if answer != UNKNOWN else incumbent
            passed = answer == CORRECT and bool(rng.random() < 0.8)
            if passed:
                break
        traces.append((passed, bool(rng.random() < censored)))
    n_blocks, n_speaks = len(blocks["trace"]), len(speaks["block"])
    columns = {name: np.array(values) for name, values in polls.items()}
    selected = np.array(blocks["selected"])[speaks["block"]]
    apart = np.array(speaks["answer"]) != np.append(columns["answer"], UNKNOWN)[selected]
    whole = np.full(n_traces, np.nan)
    zeros = np.zeros(n_traces, dtype=np.int64)
    return ConfidenceTable(
        traces=TraceColumns(
            identifier=tuple(f"run{i}" for i in range(n_traces)),
            problem=np.arange(n_traces),
            cluster=np.arange(n_traces) // 2,
            tier=zeros,
            tier_rank=zeros.astype(float),
            cell=zeros,
            mode=zeros,
            passed=np.array([passed for passed, _ in traces], dtype=np.int8),
            censored=np.array([cut for _, cut in traces]),
            tokens=whole,
            calls=whole,
            wall=whole,
        ),
        blocks=BlockColumns(
            first_poll=np.arange(n_blocks + 1) * n_agents,
            **{
                name: np.array(values, dtype=np.int8 if name == "incumbent_correct" else np.int64)
                for name, values in blocks.items()
            },
        ),
        polls=PollColumns(
            block=columns["block"],
            agent=columns["agent"],
            score=columns["score"],
            confidence=columns["score"] / 100,
            valid=columns["valid"].astype(np.bool_),
            answer=columns["answer"],
            correct=columns["correct"].astype(np.int8),
        ),
        speaks=SpeakColumns(
            block=np.array(speaks["block"]),
            agent=np.array(speaks["agent"]),
            answer=np.array(speaks["answer"]),
            correct=np.array(speaks["correct"], dtype=np.int8),
            divergent=apart.astype(np.int8)[:, None],
            residual=apart,
            first_visible=np.zeros(n_speaks + 1, dtype=np.int64),
            visible=np.zeros(0, dtype=np.int64),
        ),
        scale=ScoreScale(minimum=1, maximum=100, integer=True),
        problems=tuple(f"p{i}" for i in range(n_traces)),
        clusters=tuple(f"c{i}" for i in range((n_traces + 1) // 2)),
        tiers=("only",),
        cells=(("model", "benchmark", "judge"),),
        modes=("broadcast",),
        agents=tuple("xyz")[:n_agents],
        answers=ANSWERS,
        judges=("exact",),
        equivalent=np.zeros((0, 2), dtype=np.int64),
    )
