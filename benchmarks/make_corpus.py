"""Write a native trace corpus of a given number of steps: the same bytes for the same seed.

python benchmarks/make_corpus.py corpus.jsonl --steps 1000000
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec

NAMES = (
    "plan", "search", "open_file", "edit_file", "run_tests", "shell", "browse", "summarise", "ask_user", "think",
    "submit", "rollback",
)  # fmt: skip
KINDS = dict.fromkeys(NAMES, "tool") | {"plan": "message", "think": "message", "ask_user": "message"}
SENTENCE = "the agent reads a file and then runs every test that may have changed since its last commit"
WORDS = SENTENCE.split()


def runs(n_steps: int, seed: int) -> Iterator[dict[str, Any]]:
    """Runs of about twenty steps: sticky routing, errors that are often retried, three outcomes."""
    random = Random(seed)
    left = n_steps
    number = 0
    while left > 0:
        length = min(left, 1 + int(random.expovariate(1 / 19)))
        left -= length
        name = random.choice(NAMES[:3])
        steps = []
        for i in range(length):
            error = random.random() < 0.15
            start = random.randrange(len(WORDS) - 8)
            steps.append(
                {
                    "name": name,
                    "kind": KINDS[name],
                    "text": " ".join(WORDS[start : start + 4 + i % 5]),
                    "error": error,
                    "tokens": random.randrange(20, 2000),
                    "duration": random.randrange(1, 90_000) / 1000,
                    "attributes": {"exit_code": int(error), "path": f"src/module_{start}.py", "cached": start % 3 == 0},
                }
            )
            if not (error and random.random() < 0.6):
                name = random.choice(NAMES)
        yield {
            "trace_id": f"run-{number}",
            "task_id": f"task-{number % 500}",
            "trial": str(number // 500),
            "model": "example-1",
            "outcome": random.choices(("success", "failure", "censored"), (60, 35, 5))[0],
            "steps": steps,
        }
        number += 1


def write_corpus(path: Path, n_steps: int, seed: int = 1) -> None:
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.writelines(encode(run) + b"\n" for run in runs(n_steps, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write_corpus(options.path, options.steps, options.seed)
    print(f"{options.path}: {options.steps} steps, {options.path.stat().st_size / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
