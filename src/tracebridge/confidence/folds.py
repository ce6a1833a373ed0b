"""Folds for held-out estimates: whole problems, balanced within tiers of difficulty, the same for the same seed.

Not scikit-learn's ``StratifiedGroupKFold``, which can leave a fold empty where groups are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.errors import FitError, UsageError
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

Integers: TypeAlias = NDArray[np.int64]


def tier_stratified_folds(
    group_of_unit: Integers,
    tier_of_unit: Integers | None = None,
    *,
    group_names: Sequence[str] | None = None,
    n_folds: int = 2,
    seed: int = 0,
) -> Integers:
    """The fold of each unit, shape (U,), 0..n_folds-1; the units of one group share a fold.

    Within each tier the groups are sorted by name, shuffled with ``default_rng([seed, place of the tier])`` and dealt
    out in turn; the next tier is dealt on from there, so that folds differ by at most one group in every tier and in
    all. A tier with a single group goes, after the others, to the fold with the fewest units (the first of them).

    Args:
        group_of_unit: shape (U,), codes from 0.
        tier_of_unit: shape (U,); a negative code, or None for all, is a tier of its own. A group in several tiers
            belongs to the lowest.
        group_names: the names of the groups by code, so that the folds do not depend on the order of input; without
            them groups are sorted by code.

    Raises:
        UsageError: less than two folds, shapes that differ. FitError: fewer groups than folds.
    """
    groups = np.asarray(group_of_unit)
    tiers = np.zeros(groups.shape, dtype=np.int64) if tier_of_unit is None else np.asarray(tier_of_unit)
    if n_folds < 2:
        raise UsageError(f"held-out estimates need at least two folds, not {n_folds}")
    if groups.ndim != 1 or groups.shape != tiers.shape:
        raise UsageError(f"groups of shape {groups.shape} and tiers of shape {tiers.shape}")
    present, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(present) < n_folds:
        what = counted(len(present), "problem")
        raise FitError(f"{what} cannot be split into {n_folds} folds, as the answers to one stay together")
    tier_of_group = np.full(len(present), np.iinfo(np.int64).max)
    np.minimum.at(tier_of_group, place, tiers)
    by_name = np.arange(len(present))
    if group_names is not None:
        by_name = np.array(sorted(by_name, key=lambda g: group_names[int(present[g])]), dtype=np.int64)
    fold_of_group = np.zeros(len(present), dtype=np.int64)
    single: list[int] = []
    start = 0
    for index, tier in enumerate(np.unique(tier_of_group)):
        members = by_name[tier_of_group[by_name] == tier]
        if len(members) == 1:
            single.append(int(members[0]))
            continue
        shuffled = np.random.default_rng([seed, index]).permutation(members)
        fold_of_group[shuffled] = (start + np.arange(len(shuffled))) % n_folds
        start += len(shuffled)
    units = np.bincount(fold_of_group, sizes, minlength=n_folds)
    units -= np.bincount(fold_of_group[single], sizes[single], minlength=n_folds)
    for group in single:
        fold_of_group[group] = int(np.argmin(units))
        units[fold_of_group[group]] += sizes[group]
    return np.asarray(fold_of_group[place], dtype=np.int64)
