"""Random deliberations that obey the format, for laws that hold of every one."""

from __future__ import annotations

from random import Random
from typing import Any

from tracebridge.confidence.broadcast import (
    SCHEMA,
    Approval,
    Block,
    BroadcastTrace,
    Cell,
    Config,
    Equivalence,
    Evaluation,
    Gold,
    Incumbent,
    Poll,
    Protocol,
    RunOutcome,
    Selection,
    Speak,
    StatedScale,
    Usage,
)

AGENTS = ("ann", "bob", "cyd")
ANSWERS = ("4", "4.0", "\\boxed{4}", "5", " 5 ", "", "x+1", "a\u0301", "\u00e1", None)
TRUTHS = (True, False, None)
SCORES = (None, -1, 0, 1, 50, 99, 100, 101, 0.5, 87.5, 90.0)
EXTRAS: tuple[dict[str, Any], ...] = ({}, {}, {"mood": "good"}, {"": [1, {"é\n": None}]})


def random_corpus(seed: int) -> list[BroadcastTrace]:
    """One to three deliberations of up to four blocks on the scale of whole numbers from 1 to 100."""
    random = Random(seed)
    return [random_trace(random, f"t{row}") for row in range(random.randint(1, 3))]


def random_trace(random: Random, name: str) -> BroadcastTrace:
    """One deliberation in which anything that may be left out sometimes is."""
    pick = random.choice
    blocks: list[Block] = []
    for index in range(random.randint(0, 4)):
        blocks.append(_block(random, index, [block.speak.utt_id for block in blocks if block.speak is not None]))
    return BroadcastTrace(
        schema=SCHEMA,
        trace_id=name,
        problem_uid=pick(["p1", "p2"]),
        cluster_id=pick([None, "c1", "c2"]),
        tier=pick([None, "easy", 3, "10"]),
        tier_rank=pick([None, 0.25, -1.0]),
        cell=Cell(actor_model=pick(["m1", "m2"]), benchmark="math", judge_model="j"),
        mode=pick(["broadcast", "single_agent"]),
        protocol=Protocol(name="p", version="1"),
        config=Config(memory_mode=pick([None, "summary_plus_recent"]), recent_history_window=pick([None, 0, 1, 2])),
        score_scale=StatedScale(min=1.0, max=100.0, integer=True, elicitation="how sure?", parse_fail_value=1.0),
        gold=pick([None, Gold(answer=pick(ANSWERS))]),
        blocks=tuple(blocks),
        approvals=pick([(), (Approval(round=0, approval_round=1, agent="ann", approve=None, revised_answer="4"),)]),
        evaluations=pick([(), (Evaluation(round=0, submitted_answer="4", passed=True, signal="PASS"),)]),
        outcome=pick(
            [
                None,
                RunOutcome(passed=pick(TRUTHS), stop=pick(["budget", "error", "censored"])),
                RunOutcome(passed=True, stop="pass", final_answer="4"),
            ]
        ),
        usage=pick([None, Usage(tokens_total=pick([None, 7]), calls=3, calls_by_role={"poll": 2}, wall_s=0.5)]),
        source=pick([None, "f.jsonl:1"]),
        extra=pick(EXTRAS),
    )


def _block(random: Random, index: int, earlier: list[str]) -> Block:
    pick = random.choice
    polled = random.sample(AGENTS, random.randint(0, 3))
    polls = tuple(
        Poll(
            agent=agent,
            order=order,
            score_raw=pick(SCORES),
            parse_ok=pick([True, True, False]),
            candidate_raw=pick(ANSWERS),
            candidate=pick([None, None, *ANSWERS]),
            correct=pick(TRUTHS),
            extra=pick(EXTRAS),
        )
        for order, agent in enumerate(polled)
    )
    selected = pick([None, *polled])
    judges = random.sample(["j1", "j2"], random.randint(0, 2))
    verdicts = ("equivalent", "divergent", "undecided")
    speak = Speak(
        utt_id=f"u{index}",
        agent=selected or AGENTS[0],
        candidate_raw=pick(ANSWERS),
        correct=pick(TRUTHS),
        equiv=tuple(Equivalence(judge=judge, verdict=pick(verdicts)) for judge in judges),
    )
    return Block(
        block_id=f"b{index}",
        round=index // 2,
        turn=index % 2,
        index=index * 3,
        polls=polls,
        selection=pick([None, *[Selection(agent=selected, score=pick([None, 90]), tie_set=tuple(polled[:1]))] * 3]),
        speak=pick([None, speak, speak, speak]),
        incumbent_before=pick([None, Incumbent(answer=pick(ANSWERS), correct=pick(TRUTHS))]),
        visible=pick([None, None, tuple(random.sample([*earlier, "review"], random.randint(0, len(earlier) + 1)))]),
    )
