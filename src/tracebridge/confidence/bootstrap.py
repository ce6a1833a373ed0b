"""Cluster bootstrap: whole clusters of units drawn again with replacement, every replicate a product of two matrices.

A metric of the audit is a function of sums over units (blocks, pairs, polls): a ratio of two of them, or, for a ranking
metric, the sums at every distinct confidence. A replicate gives each cluster a multiplicity, so that the sums of all
replicates are ``multiplicities @ sums by cluster``; no loop runs over units.

Field and Welsh (2007), JRSS B 69.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from tracebridge.confidence.replicates import (
    DEFAULT_RESAMPLING,
    UNBOUNDED,
    ClusterInterval,
    Resampling,
    interval_of_replicates,
    undefined_interval,
)
from tracebridge.errors import UsageError

__all__ = [
    "DEFAULT_RESAMPLING",
    "UNBOUNDED",
    "ClusterInterval",
    "Resampling",
    "Statistic",
    "cluster_weights",
    "quotient",
    "ratio_interval",
    "ratio_intervals",
    "totals_intervals",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
#: From sums, shape (replicates, K), to the values of M metrics, shape (replicates, M); NaN where one is undefined.
Statistic: TypeAlias = Callable[[Floats], Floats]

#: Between which a metric lies.
Bounds: TypeAlias = tuple[float, float]

_CELLS = 2**21
_SUMS_AT_ONCE = 2**18  # what a processor's cache holds
_FEW_SUMS = 8  # for which the threads of a matrix product cost more than they save
_KIND_COST = 8  # a binomial draw costs about as much as so many draws of a cluster


def cluster_weights(n_clusters: int, replicates: int, seed: int) -> Iterator[Integers]:
    """How often each cluster is drawn, in batches of shape (r, n_clusters); every row sums to ``n_clusters``.

    The first replicates are the same however many are asked for; a batch has at most 2**21 draws, or one replicate.

    Raises:
        UsageError: no cluster.
    """
    if n_clusters < 1:
        raise UsageError(f"a bootstrap draws from one cluster or more, not {n_clusters}")
    batch = min(256, max(1, _CELLS // n_clusters))
    dtype = np.uint16 if n_clusters <= 2**16 else np.int64
    for key, first in enumerate(range(0, replicates, batch)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key,)))
        draws = rng.integers(0, n_clusters, size=(min(batch, replicates - first), n_clusters), dtype=dtype)
        weights = np.empty(draws.shape, dtype=np.int64)
        for row, drawn in zip(weights, draws, strict=True):
            row[:] = np.bincount(drawn, minlength=n_clusters)
        yield weights


def _kind_weights(clusters_of_kind: Integers, replicates: int, seed: int) -> Iterator[Integers]:
    """How many clusters of each kind are drawn, in batches of shape (r, kinds)."""
    n_clusters, n_kinds = int(clusters_of_kind.sum()), len(clusters_of_kind)
    batch = max(1, _CELLS // n_kinds)
    for key, first in enumerate(range(0, replicates, batch)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key,)))
        yield rng.multinomial(n_clusters, clusters_of_kind / n_clusters, size=min(batch, replicates - first))


def ratio_interval(
    numerator_by_unit: Floats,
    denominator_by_unit: Floats,
    cluster_of_unit: Integers,
    n_clusters: int,
    *,
    resampling: Resampling = DEFAULT_RESAMPLING,
    bounds: Bounds = UNBOUNDED,
) -> ClusterInterval:
    """The interval of ``sum(numerator) / sum(denominator)`` over units; arguments as in `ratio_intervals`, (U,)."""
    (interval,) = ratio_intervals(
        np.asarray(numerator_by_unit, dtype=np.float64)[:, None],
        np.asarray(denominator_by_unit, dtype=np.float64)[:, None],
        cluster_of_unit,
        n_clusters,
        resampling=resampling,
        bounds=[bounds],
    )
    return interval


def ratio_intervals(
    numerator_by_unit: Floats,
    denominator_by_unit: Floats,
    cluster_of_unit: Integers,
    n_clusters: int,
    *,
    resampling: Resampling = DEFAULT_RESAMPLING,
    bounds: Sequence[Bounds] | None = None,
) -> tuple[ClusterInterval, ...]:
    """The intervals of M ratios of sums over U units, from the same replicates.

    The design effect compares with independent units, whose variance is the linearised one, the sum of squares of
    ``(numerator - ratio * denominator) / sum(denominator)``; for a share it is ``p (1 - p) / n``.

    Args:
        numerator_by_unit, denominator_by_unit: shape (U, M), finite; 0 in both for a unit that a ratio does not count.
        cluster_of_unit: shape (U,), codes 0..n_clusters-1.
        n_clusters: the clusters of the corpus; those without units are drawn too, as they are part of it.
        bounds: as in `totals_intervals`.

    Raises:
        UsageError: shapes that do not fit, codes out of range, numbers that are not finite.
    """
    numerator, denominator = (np.asarray(x, dtype=np.float64) for x in (numerator_by_unit, denominator_by_unit))
    if numerator.ndim != 2 or numerator.shape != denominator.shape:
        raise UsageError(f"ratios of numerators of shape {numerator.shape} and denominators of {denominator.shape}")
    M = numerator.shape[1]
    table = np.hstack([numerator, denominator])
    intervals = totals_intervals(
        table,
        lambda sums: quotient(sums[:, :M], sums[:, M:]),
        cluster_of_unit,
        n_clusters,
        resampling=resampling,
        bounds=bounds,
    )
    top, bottom = numerator.sum(axis=0), denominator.sum(axis=0)
    residuals = quotient(numerator - quotient(top, bottom) * denominator, np.broadcast_to(bottom, numerator.shape))
    independent = (residuals**2).sum(axis=0)
    effects = quotient(np.array([interval.standard_error**2 for interval in intervals]), independent)
    return tuple(
        replace(interval, design_effect=float(effect)) for interval, effect in zip(intervals, effects, strict=True)
    )


def totals_intervals(
    table: Floats | csr_array,
    statistic: Statistic,
    cluster_of_unit: Integers,
    n_clusters: int,
    *,
    resampling: Resampling = DEFAULT_RESAMPLING,
    bounds: Sequence[Bounds] | None = None,
    resting_on: Sequence[int] | None = None,
) -> tuple[ClusterInterval, ...]:
    """The intervals of M functions of K sums over U units, from the same replicates.

    Args:
        table: what each unit adds to the sums, shape (U, K), dense or sparse.
        statistic: from sums, shape (r, K), to values, shape (r, M).
        cluster_of_unit, n_clusters: as in `ratio_intervals`.
        bounds: between which each of the M values lies whatever the corpus; none by default.
        resting_on: how many clusters each of the M values rests on; by default all that have a unit.

    Raises:
        UsageError: as there.
    """
    by_cluster = _sums_by_cluster(table, np.asarray(cluster_of_unit), n_clusters)
    contributing = int(np.count_nonzero(_row_has_entries(by_cluster)))
    point = statistic(_product(np.ones((1, n_clusters)), by_cluster))[0]
    if contributing < 2:
        reason = (
            "one cluster has all units of it, which tells no variation" if contributing else "no cluster has a unit"
        )
        return tuple(undefined_interval(resampling, contributing, reason) for _ in point)
    rows = max(1, _SUMS_AT_ONCE // max(by_cluster.shape[1], 1))
    drawn, batches = _draws(by_cluster, resampling)
    values = np.concatenate(
        [
            statistic(_product(weights[first : first + rows], drawn))
            for weights in batches
            for first in range(0, len(weights), rows)
        ]
    )
    left_out = np.zeros((0, len(point)))
    if resampling.method == "bca":
        left_out = _leave_one_out(by_cluster, statistic, rows)
    return tuple(
        interval_of_replicates(
            values[:, m],
            float(point[m]),
            left_out[:, m],
            resting_on[m] if resting_on else contributing,
            resampling,
            bounds[m] if bounds else UNBOUNDED,
        )
        for m in range(len(point))
    )


def quotient(numerator: Floats, denominator: Floats) -> Floats:
    """``numerator / denominator`` of equal shapes; NaN, without a warning, where the denominator is 0."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.asarray(np.divide(numerator, denominator, out=out, where=denominator != 0))


def _sums_by_cluster(table: Floats | csr_array, cluster: Integers, n_clusters: int) -> Floats | csr_array:
    n_units = table.shape[0]
    if cluster.shape != (n_units,):
        raise UsageError(f"{n_units} units and clusters of shape {cluster.shape}")
    if n_units and not 0 <= int(cluster.min()) <= int(cluster.max()) < n_clusters:
        raise UsageError(f"clusters are {int(cluster.min())}..{int(cluster.max())}, outside 0..{n_clusters - 1}")
    if not np.isfinite(table.data if issparse(table) else table).all():
        raise UsageError("a unit adds something that is not finite")
    member = csr_array((np.ones(n_units), (cluster, np.arange(n_units))), shape=(n_clusters, n_units))
    sums: Floats | csr_array = member @ table
    return sums


def _draws(by_cluster: Floats | csr_array, resampling: Resampling) -> tuple[Floats | csr_array, Iterator[Integers]]:
    """What is drawn, one row each, and how often.

    Clusters with the same sums cannot be told apart by the metric. Where there are few kinds of them, as when traces
    with a handful of blocks are the clusters, it is the kinds that are drawn, which has the same distribution.
    """
    n_clusters = by_cluster.shape[0]
    if not issparse(by_cluster):
        kinds, clusters_of_kind = np.unique(by_cluster, axis=0, return_counts=True)
        if len(kinds) <= n_clusters / _KIND_COST:
            return kinds, _kind_weights(clusters_of_kind, resampling.replicates, resampling.seed)
    return by_cluster, cluster_weights(n_clusters, resampling.replicates, resampling.seed)


def _row_has_entries(by_cluster: Floats | csr_array) -> NDArray[np.bool_]:
    if issparse(by_cluster):
        return np.asarray(abs(by_cluster).sum(axis=1)).ravel() > 0
    return np.asarray((by_cluster != 0).any(axis=1))


def _product(weights: NDArray[Any], by_cluster: Floats | csr_array) -> Floats:
    if issparse(by_cluster):
        return np.ascontiguousarray((by_cluster.T @ weights.T.astype(np.float64)).T)
    floats = weights.astype(np.float64)
    if by_cluster.shape[1] <= _FEW_SUMS:
        return np.asarray(np.einsum("rg,kg->rk", floats, np.ascontiguousarray(by_cluster.T)))
    return np.asarray(floats @ by_cluster)


def _leave_one_out(by_cluster: Floats | csr_array, statistic: Statistic, rows: int) -> Floats:
    """The statistic without each cluster in turn, shape (clusters, M)."""
    n_clusters = by_cluster.shape[0]
    total = _product(np.ones((1, n_clusters)), by_cluster)
    parts = []
    for first in range(0, n_clusters, rows):
        part: Any = by_cluster[first : first + rows]
        parts.append(statistic(total - (part.toarray() if issparse(part) else part)))
    return np.concatenate(parts)
