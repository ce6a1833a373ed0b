"""Random chains with what makes engines err: sticky rows, several recurrent classes, cycles, parts cut off."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, RewardStructure

LABELS = ("a", "b", "c")
REWARDS = ("steps", "cost")


def random_chain(seed: int, max_states: int) -> MarkovChain:
    """A rational chain with 2 to ``max_states`` states, labels a, b, c and rewards steps and cost; the seed decides."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, max_states + 1))
    kind = rng.choice(["sparse", "absorbing", "sticky", "classes", "cycle"])
    rows: list[dict[int, Fraction]] = []
    for i in range(n):
        width = int(rng.integers(1, min(n, 5) + 1))
        targets = rng.choice(n, size=width, replace=False)
        if kind == "classes":  # two halves, of which the second is closed
            targets = targets if i < n // 2 else n // 2 + targets % (n - n // 2)
        if kind == "cycle" and rng.random() < 0.8:
            targets = np.array([(i + 1) % n])
        weights = rng.choice([1, 1, 2, 3, 10, 1000], size=len(targets))
        row: dict[int, Fraction] = {}
        for j, weight in zip(targets.tolist(), weights.tolist(), strict=True):
            row[j] = row.get(j, Fraction(0)) + Fraction(weight, int(weights.sum()))
        if kind == "sticky" and rng.random() < 0.3:
            leave = Fraction(1, 10 ** int(rng.choice([6, 9, 12])))
            row = {j: p * leave for j, p in row.items()}
            row[i] = row.get(i, Fraction(0)) + 1 - leave
        if kind == "absorbing" and i >= n - 2:
            row = {i: Fraction(1)}
        rows.append(row)
    start = np.zeros(n, dtype=np.int64)
    start[rng.choice(n, size=int(rng.integers(1, min(n, 3) + 1)), replace=False)] = rng.integers(1, 4)
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector(start, int(start.sum())),
        labels={name: rng.random(n) < share for name, share in zip(LABELS, (0.2, 0.5, 0.8), strict=True)},
        rewards={
            "steps": RewardStructure.from_fractions([1] * n),
            "cost": RewardStructure.from_fractions(
                [Fraction(int(x), 3) for x in rng.integers(0, 4, n)], [int(x) for x in rng.integers(0, 2, n)]
            ),
        },
    )
