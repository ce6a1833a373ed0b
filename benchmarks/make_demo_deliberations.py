"""Makes the packaged deliberations: 150 simulated ones of three agents on problems of three tiers.

    python benchmarks/make_demo_deliberations.py src/tracebridge/demo/deliberations.jsonl.gz

Simulated, not recorded: agents state heaped scores that know something of being right, one of them overconfident; polls
fail to parse now and then; the first of the highest scores speaks, and sometimes says what it was not polled on.
"""

from __future__ import annotations

import sys

import numpy as np

from tracebridge.confidence.broadcast import (
    SCHEMA,
    Block,
    BroadcastTrace,
    Cell,
    Config,
    Equivalence,
    Incumbent,
    Poll,
    Protocol,
    RunOutcome,
    Selection,
    Speak,
    StatedScale,
    Usage,
)
from tracebridge.confidence.broadcast_file import write_broadcast

AGENTS = {"planner": 0.0, "critic": 0.08, "solver": -0.05}  # how much more often than its tier each is right
TIERS = {"easy": 0.8, "medium": 0.55, "hard": 0.3}
SCALE = StatedScale(
    min=1, max=100, integer=True, parse_fail_value=1, elicitation="How strongly do you want to speak now, 1 to 100?"
)
N_DELIBERATIONS, MAX_BLOCKS = 150, 4


def deliberation(rng: np.random.Generator, row: int) -> BroadcastTrace:
    """One deliberation; answers are whole numbers, and the right one is 42."""
    tier = list(TIERS)[row % len(TIERS)]
    blocks: list[Block] = []
    incumbent, passed = None, False
    while len(blocks) < MAX_BLOCKS and not passed:
        polls = [poll(rng, agent, order, TIERS[tier]) for order, agent in enumerate(AGENTS)]
        top = max(p.score_raw for p in polls)
        chosen = next(p for p in polls if p.score_raw == top)
        said = spoken(rng, chosen, polls, incumbent)
        blocks.append(
            Block(
                block_id=f"b{len(blocks)}",
                round=0,
                turn=len(blocks),
                index=len(blocks),
                polls=tuple(polls),
                selection=Selection(
                    agent=chosen.agent,
                    score=top,
                    tie_set=tuple(p.agent for p in polls if p.score_raw == top),
                    rule="argmax, first of equals",
                ),
                speak=Speak(
                    utt_id=f"u{len(blocks)}",
                    agent=chosen.agent,
                    candidate=said,
                    correct=None if said is None else said == "42",
                    equiv=()
                    if chosen.candidate is None or said in (None, chosen.candidate)
                    else (Equivalence(judge="exact", verdict="divergent"),),
                ),
                incumbent_before=None if incumbent is None else Incumbent(answer=incumbent, correct=incumbent == "42"),
            )
        )
        incumbent = said or incumbent
        passed = bool(rng.random() < (0.75 if said == "42" else 0.02))
    calls = 4 * len(blocks)
    return BroadcastTrace(
        schema=SCHEMA,
        trace_id=f"d{row:03d}",
        problem_uid=f"problem-{row // 2:02d}",
        tier=tier,
        tier_rank=float(row % len(TIERS)),
        cell=Cell(actor_model="simulated", benchmark="simulated", judge_model="exact"),
        mode="broadcast",
        protocol=Protocol(name="broadcast", version="demo"),
        config=Config(n_agents=len(AGENTS), discussion_turns=MAX_BLOCKS, router_rule="argmax", tie_rule="first"),
        score_scale=SCALE,
        blocks=tuple(blocks),
        outcome=RunOutcome(passed=passed, stop="pass" if passed else "budget", final_answer=incumbent),
        usage=Usage(tokens_total=int(calls * rng.integers(300, 500)), calls=calls, wall_s=round(calls * 1.7, 1)),
    )


def poll(rng: np.random.Generator, agent: str, order: int, easiness: float) -> Poll:
    """What an agent is polled on; scores are heaped on tens and, at the top, on fives."""
    if rng.random() < 0.12:
        return Poll(agent=agent, order=order, score_raw=1, parse_ok=False)
    correct = bool(rng.random() < easiness + AGENTS[agent])
    level = rng.normal(78 if correct else 64, 16) + (12 if agent == "solver" else 0)
    step = 5 if level >= 80 else 10
    score = int(np.clip(round(level / step) * step, 10, 100))
    if rng.random() < 0.06:  # wants to speak, and states no answer
        return Poll(agent=agent, order=order, score_raw=score, parse_ok=True)
    answer = "42" if correct else str(rng.choice([7, 13, 24], p=[0.6, 0.3, 0.1]))
    return Poll(agent=agent, order=order, score_raw=score, parse_ok=True, candidate=answer, correct=correct)


def spoken(rng: np.random.Generator, chosen: Poll, polls: list[Poll], incumbent: str | None) -> str | None:
    """What the selected agent says: its own answer, a peer's, the incumbent, something new, or nothing."""
    if chosen.candidate is None:
        return None
    others = sorted({p.candidate for p in polls if p.candidate not in (None, chosen.candidate)})
    choices = [chosen.candidate, *others[:1], *([incumbent] if incumbent else []), "99"]
    weights = np.array([12.0, *[1.6] * len(others[:1]), *([1.0] if incumbent else []), 0.6])
    return None if rng.random() < 0.02 else str(rng.choice(choices, p=weights / weights.sum()))


def main() -> None:
    """Write them."""
    rng = np.random.default_rng(7)
    count = write_broadcast([deliberation(rng, row) for row in range(N_DELIBERATIONS)], sys.argv[1])
    print(f"{count} deliberations written to {sys.argv[1]}")


if __name__ == "__main__":
    main()
