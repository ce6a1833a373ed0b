"""A router that is learned: the probability that a candidate is correct, from what the router can see, held out.

Logistic regression with an L2 penalty (that of scikit-learn's ``LogisticRegression(C=1)``) on standardised features,
fitted to the blocks of the other folds; problems stay together. It routes to the highest probability, ties at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from tracebridge.confidence.divergence_class import equivalent_answers
from tracebridge.confidence.folds import tier_stratified_folds
from tracebridge.confidence.logistic import logistic_fit
from tracebridge.confidence.regression_design import indicators

if TYPE_CHECKING:
    from tracebridge.confidence.router import RouteableBlocks
    from tracebridge.confidence.table import Codes, Numbers

N_FOLDS = 2


def learned_probabilities(blocks: RouteableBlocks, *, n_folds: int = N_FOLDS, seed: int = 0) -> Numbers:
    """(V,) cross-fitted probabilities that the valid polls are correct; constant where the other folds have one class.

    Raises:
        UsageError: less than two folds. FitError: fewer problems than folds.
    """
    table = blocks.pools.table
    trace = table.blocks.trace[table.polls.block[blocks.poll]]
    problem = table.traces.problem[trace]
    fold = tier_stratified_folds(
        problem, table.traces.tier[trace], group_names=table.problems, n_folds=n_folds, seed=seed
    )
    columns = router_features(blocks)
    X = np.column_stack(list(columns.values()))
    probability = np.empty(len(blocks.poll))
    for k in range(n_folds):
        here = fold == k
        fitted, y = X[~here], blocks.correct[~here]
        if y.min() == y.max():
            probability[here] = y[0]
            continue
        mean, spread = fitted.mean(axis=0), fitted.std(axis=0)
        spread[spread == 0] = 1.0
        penalty = np.full(X.shape[1] + 1, 1 / len(y))
        penalty[0] = 0.0
        beta, _ = logistic_fit(_with_intercept((fitted - mean) / spread), y, penalty=penalty)
        probability[here] = expit(_with_intercept((X[here] - mean) / spread) @ beta)
    return probability


def router_features(blocks: RouteableBlocks) -> dict[str, Numbers]:
    """By name, a feature of every valid poll (V,), from the block's polls, its place and the tier; no label is used."""
    table, home = blocks.pools.table, blocks.home
    polls = table.polls
    block = polls.block[blocks.poll]
    score, answer = polls.confidence[blocks.poll], polls.answer[blocks.poll]
    n_valid = np.bincount(home, minlength=len(blocks.block))
    top = blocks.highest(score)
    highest = np.full(len(blocks.block), -np.inf)
    np.maximum.at(highest, home, score)
    _, cluster = np.unique(home * len(table.answers) + answer, return_inverse=True)
    tier_rank = table.traces.tier_rank[table.blocks.trace[block]]
    agents, _ = indicators("agent", polls.agent[blocks.poll], table.agents)
    return {
        "score": score,
        "rank": _mid_ranks(home, score),
        "gap_to_highest": highest[home] - score,
        "tied_on_top": (top & (np.bincount(home[top], minlength=len(blocks.block))[home] > 1)).astype(np.float64),
        "n_valid": n_valid[home].astype(np.float64),
        "cluster_share": np.bincount(cluster)[cluster] / n_valid[home] if len(cluster) else np.zeros(0),
        "equals_incumbent": equivalent_answers(table, answer, table.blocks.incumbent[block]).astype(np.float64),
        "round": table.blocks.round[block].astype(np.float64),
        "turn": table.blocks.turn[block].astype(np.float64),
        "tier_rank": _filled(tier_rank),
        **agents,
    }


def _mid_ranks(home: Codes, score: Numbers) -> Numbers:
    """Ranks within each block, the highest score 1; equal scores share the mean of their ranks."""
    order = np.lexsort((-score, home))
    sorted_home, sorted_score = home[order], score[order]
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (np.diff(sorted_home) > 0) | (np.diff(sorted_score) != 0)
    level = np.cumsum(starts) - 1
    place = np.arange(len(order)) - np.searchsorted(sorted_home, sorted_home)
    ranks = np.empty(len(order))
    ranks[order] = (np.bincount(level, weights=place + 1.0) / np.bincount(level))[level] if len(order) else 0.0
    return ranks


def _filled(column: Numbers) -> Numbers:
    """Unknown values take the mean of the known ones."""
    known = ~np.isnan(column)
    return np.where(known, column, column[known].mean() if known.any() else 0.0)


def _with_intercept(X: Numbers) -> Numbers:
    return np.column_stack([np.ones(len(X)), X])
