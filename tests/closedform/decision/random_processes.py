"""Random decision processes with what makes engines err: end components, sticky rows, idle cycles, traps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tracebridge.chain import RationalMatrix, RationalVector, RewardStructure
from tracebridge.chain.decision import DecisionProcess

LABELS = ("a", "b", "c")


def random_process(seed: int, max_states: int) -> DecisionProcess:
    """A rational process of 2 to ``max_states`` states, labels a, b, c and rewards steps and cost; the seed decides."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, max_states + 1))
    kind = rng.choice(["sparse", "moves", "sticky", "absorbing", "classes"])
    rows: list[dict[int, Fraction]] = []
    actions: list[tuple[str, ...]] = []
    for i in range(n):
        k = int(rng.integers(1, 4))
        actions.append(tuple(("go", "try", "wait")[:k]))
        for _ in range(k):
            width = 1 if kind == "moves" and rng.random() < 0.7 else int(rng.integers(1, min(n, 3) + 1))
            targets = rng.choice(n, size=width, replace=False)
            if kind == "classes":  # two halves, of which the second is closed
                targets = targets if i < n // 2 else n // 2 + targets % (n - n // 2)
            weights = rng.choice([1, 1, 2, 3, 10], size=width)
            row: dict[int, Fraction] = {}
            for j, weight in zip(targets.tolist(), weights.tolist(), strict=True):
                row[j] = row.get(j, Fraction(0)) + Fraction(weight, int(weights.sum()))
            if kind == "sticky" and rng.random() < 0.3:
                leave = Fraction(1, 10 ** int(rng.choice([3, 6, 9])))
                row = {j: p * leave for j, p in row.items()}
                row[i] = row.get(i, Fraction(0)) + 1 - leave
            if kind == "absorbing" and i >= n - 2:
                row = {i: Fraction(1)}
            rows.append(row)
    start = np.zeros(n, dtype=np.int64)
    start[rng.choice(n, size=int(rng.integers(1, min(n, 3) + 1)), replace=False)] = rng.integers(1, 4)
    m = len(rows)
    free = rng.random() < 0.7  # many idle end components
    return DecisionProcess(
        states=tuple(f"s{i}" for i in range(n)),
        actions=tuple(actions),
        transitions=RationalMatrix.from_rows(rows, n),
        initial=RationalVector(start, int(start.sum())),
        labels={name: rng.random(n) < share for name, share in zip(LABELS, (0.25, 0.5, 0.8), strict=True)},
        rewards={
            "steps": RewardStructure.from_fractions([1] * n),
            "cost": RewardStructure.from_fractions(
                [Fraction(int(x), 3) for x in rng.integers(0, 2, n) * (rng.random(n) < (0.3 if free else 1))],
                [int(x) for x in rng.integers(0, 3, m) * (rng.random(m) < 0.4)],
            ),
        },
    )
