"""Write the corpus of ``tracebridge demo``: 240 simulated runs of a refund agent, 60 tasks tried 4 times each.

    python benchmarks/make_demo_corpus.py src/tracebridge/demo/refund_agent.jsonl

The agent looks things up, talks to the customer, calls tools that sometimes fail, retries, and in the end refunds
rightly or wrongly, hands over, or runs into the cap of 11 steps. Tasks differ in difficulty, so runs of one task are
alike. The simulation is not a first-order Markov chain, and it is not meant to be one: real agents are not either.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

SEED = 20260
STEP_CAP = 11
TASKS, TRIALS = 60, 4


def simulate(rng: random.Random, difficulty: float) -> tuple[list[dict[str, object]], str, str]:
    """One run: its steps, outcome and reason of termination."""
    steps: list[dict[str, object]] = []
    known = 0  # what the agent has found out so far: user, order, policy
    step = ("message", "greet")
    while len(steps) < STEP_CAP:
        kind, name = step
        error = kind == "tool" and rng.random() < {"issue_refund": 0.05, "get_user": 0.08}.get(
            name, 0.05 + 0.2 * difficulty
        )
        steps.append({"kind": kind, "name": name, "error": True} if error else {"kind": kind, "name": name})
        if error:
            step = ("tool", name) if rng.random() < 0.7 else ("message", "ask_customer")
            continue
        if name == "issue_refund":
            right = rng.random() < 0.9 - 0.45 * difficulty - 0.15 * (known < 3)
            return steps, "success" if right else "failure", "refunded"
        if name == "hand_over":
            return steps, "success" if rng.random() < 0.25 else "failure", "handed_over"
        if kind == "tool":
            known += 1
        roll = rng.random()
        if name == "greet" or (kind == "message" and roll < 0.45):
            step = ("tool", "get_user" if known == 0 else "get_order")
        elif known >= 2 and roll < 0.75 - 0.3 * difficulty:
            step = ("tool", "check_policy" if known == 2 and roll < 0.5 else "issue_refund")
        elif roll > 0.97 - 0.08 * difficulty:
            step = ("tool", "hand_over")
        elif roll < 0.8:
            step = ("message", "ask_customer")
        else:
            step = ("tool", "get_order")
    return steps, "censored", "step_cap"


def main(path: Path) -> None:
    rng = random.Random(SEED)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for task in range(TASKS):
            difficulty = rng.betavariate(1.2, 1.8)
            for trial in range(TRIALS):
                steps, outcome, termination = simulate(rng, difficulty)
                record = {
                    "trace_id": f"refund-{task:02d}-{trial}",
                    "outcome": outcome,
                    "steps": steps,
                    "termination": termination,
                    "task_id": f"refund-{task:02d}",
                    "trial": str(trial),
                    "model": "simulated-agent",
                }
                file.write(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
