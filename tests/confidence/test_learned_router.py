"""The learned router: the penalised fit against scikit-learn's, features by hand, held out, and nothing to learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tracebridge.confidence.folds import tier_stratified_folds
from tracebridge.confidence.learned_router import learned_probabilities, router_features
from tracebridge.confidence.router import RouteableBlocks, routeable_blocks, success_by_value
from tracebridge.confidence.routing_pools import block_pools
from tracebridge.errors import FitError
from tracebridge.studies.broadcast_notation import Block, Run, build_table


def blocks_of(runs: list[Run]) -> RouteableBlocks:
    return routeable_blocks(block_pools(build_table(runs, n_tiers=4)))


def random_runs(n: int, seed: int) -> list[Run]:
    """The second agent is right more often than its modest scores say."""
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(n):
        right = rng.random(3) < [0.3, 0.9, 0.3]
        scores = rng.integers([70, 40, 70], [95, 60, 95])
        words = [
            f"{'wc'[int(y)]}{s}:{'g' if y else f'x{k}'}" for k, (y, s) in enumerate(zip(right, scores, strict=True))
        ]
        runs.append(Run(blocks=[Block(" ".join(words))]))
    return runs


def test_features_by_hand() -> None:
    found = router_features(
        blocks_of([Run(blocks=[Block("c90:4 w90:5 i1", incumbent="5", round=2), Block("w60:5 c50:4 w40:5")], tier=3)])
    )
    expected = {
        "score": [0.9, 0.9, 0.6, 0.5, 0.4],
        "rank": [1.5, 1.5, 1, 2, 3],
        "gap_to_highest": [0, 0, 0, 0.1, 0.2],
        "tied_on_top": [1, 1, 0, 0, 0],
        "n_valid": [2, 2, 3, 3, 3],
        "cluster_share": [1 / 2, 1 / 2, 2 / 3, 1 / 3, 2 / 3],
        "equals_incumbent": [0, 1, 0, 0, 0],
        "round": [2, 2, 0, 0, 0],
        "turn": [0, 0, 1, 1, 1],
        "tier_rank": [3] * 5,
        "agent[a1]": [0, 1, 0, 1, 0],
        "agent[a2]": [0, 0, 0, 0, 1],
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].tolist() == pytest.approx(values), name


def test_probabilities_are_those_of_a_penalised_fit_to_the_other_fold() -> None:
    blocks = blocks_of(random_runs(60, seed=2))
    found = learned_probabilities(blocks, seed=5)
    polls = blocks.pools.table.polls
    problem = blocks.pools.table.blocks.trace[polls.block[blocks.poll]]
    fold = tier_stratified_folds(problem, group_names=blocks.pools.table.problems, seed=5)
    X = np.column_stack(list(router_features(blocks).values()))
    for k in range(2):
        other = fold != k
        mean, spread = X[other].mean(axis=0), X[other].std(axis=0)
        spread[spread == 0] = 1
        model = LogisticRegression(C=1.0, tol=1e-10, max_iter=1_000)
        model.fit((X[other] - mean) / spread, blocks.correct[other])
        expected = model.predict_proba((X[~other] - mean) / spread)[:, 1]
        assert found[~other] == pytest.approx(expected, abs=1e-5)


def test_it_learns_whom_to_trust() -> None:
    blocks = blocks_of(random_runs(300, seed=3))
    top = success_by_value(blocks, blocks.pools.score[blocks.poll]).mean()
    assert success_by_value(blocks, learned_probabilities(blocks)).mean() > top + 0.3


def test_one_class_and_one_problem() -> None:
    certain = blocks_of([Run(blocks=[Block("c90:4 c80:4")]) for _ in range(4)])
    assert learned_probabilities(certain).tolist() == [1.0] * 8
    with pytest.raises(FitError, match="cannot be split"):
        learned_probabilities(blocks_of([Run(blocks=[Block("c90:4 w80:5")])]))
