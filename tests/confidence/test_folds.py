"""Folds keep problems together, are balanced within tiers and depend on nothing but names and seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.confidence.folds import tier_stratified_folds
from tracebridge.errors import FitError, UsageError

GROUPS = st.lists(st.integers(0, 15), min_size=1, max_size=80).filter(lambda groups: len(set(groups)) >= 3)


@given(GROUPS, st.integers(1, 4), st.integers(2, 3), st.integers(0, 9))
@settings(max_examples=40)
def test_groups_stay_together_and_every_fold_and_tier_is_balanced(
    groups: list[int], n_tiers: int, n_folds: int, seed: int
) -> None:
    group = np.array(groups)
    tier = group % n_tiers
    fold = tier_stratified_folds(group, tier, n_folds=n_folds, seed=seed)
    fold_of = {g: set(fold[group == g].tolist()) for g in set(groups)}
    assert all(len(folds) == 1 for folds in fold_of.values())
    for t in range(n_tiers):
        sizes = [sum(folds == {k} for g, folds in fold_of.items() if g % n_tiers == t) for k in range(n_folds)]
        assert max(sizes) - min(sizes) <= 1
    several = [g for g in fold_of if sum(other % n_tiers == g % n_tiers for other in fold_of) > 1]
    totals = [sum(fold_of[g] == {k} for g in several) for k in range(n_folds)]
    assert max(totals) - min(totals) <= 1
    assert np.array_equal(fold, tier_stratified_folds(group, tier, n_folds=n_folds, seed=seed))


@given(GROUPS, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_folds_do_not_depend_on_the_order_of_units_or_on_codes(groups: list[int], random: object) -> None:
    names = [f"p{i:02d}" for i in range(16)]
    group = np.array(groups)
    fold = tier_stratified_folds(group, group % 2, group_names=names)
    recoded = np.random.default_rng(len(groups)).permutation(16)
    other_names = [""] * 16
    for code, new in enumerate(recoded):
        other_names[new] = names[code]
    order = np.random.default_rng(1).permutation(len(groups))
    other = tier_stratified_folds(recoded[group][order], (group % 2)[order], group_names=other_names)
    assert np.array_equal(other, fold[order])


def test_tiers_of_odd_size_take_turns_in_having_more() -> None:
    """Four tiers of three problems: two folds of six."""
    group = np.arange(12)
    assert np.bincount(tier_stratified_folds(group, group // 3)).tolist() == [6, 6]


def test_a_tier_of_one_problem_goes_to_the_fold_with_fewer_units() -> None:
    group, tier = np.array([0, 0, 0, 1, 2]), np.array([0, 0, 0, 0, 1])
    fold = tier_stratified_folds(group, tier)
    assert fold[4] == fold[3]


def test_the_seed_matters() -> None:
    folds = {tuple(tier_stratified_folds(np.arange(12), seed=seed).tolist()) for seed in range(5)}
    assert len(folds) > 1


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(FitError, match="1 problem cannot"):
        tier_stratified_folds(np.zeros(4, dtype=int))
    with pytest.raises(UsageError, match="two folds"):
        tier_stratified_folds(np.arange(4), n_folds=1)
    with pytest.raises(UsageError, match="shape"):
        tier_stratified_folds(np.arange(4), np.arange(3))
