"""Weighted Ward clustering of distinct points, cut where the silhouette is best.

A point with weight w counts as w equal points (Ward 1963; Murtagh 1983 for nearest-neighbour chains; Rousseeuw 1987
for silhouettes). Points are sorted first, so that the answer does not depend on the order in which they came, ties
included. Too many points for an exact tree are gathered by mini-batch k-means first (Sculley 2010), and the answer says
that it is approximate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import FitError, Location, Problem, UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: The tree of more distinct points than this is approximate, and so is one of more work: about half a minute.
MAX_POINTS = 10_000
MAX_WORK = 4 * 10**9

#: More numbers than this are refused: half a gigabyte.
MAX_NUMBERS = 2**26

#: An approximate tree is over so many centres at most, one for ten points, and its silhouettes are of so many steps.
MAX_CENTRES = 1_000
SAMPLED_STEPS = 3_000

#: Silhouettes closer to the best than this are ties; the smallest number of clusters wins.
SILHOUETTE_TIE = 1e-12

_BLOCK_BYTES = 64 * 2**20
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clustering:
    """A partition of the given points.

    Attributes:
        labels: the cluster of each point in the order given, shape (n,); clusters are numbered by their least point.
        n_clusters: how many.
        silhouettes: mean silhouette for every number of clusters tried; empty if there was nothing to choose.
        approximate: the tree is over centres of points, and silhouettes are of a sample.
    """

    labels: NDArray[np.int64]
    n_clusters: int
    silhouettes: Mapping[int, float]
    approximate: bool = False


def cluster(points: ArrayLike, weights: ArrayLike, *, k_max: int) -> Clustering:
    """Partition points, shape (n, p), with positive integer weights, shape (n,), into at most ``k_max`` clusters.

    At most ``k_max`` distinct points are their own clusters: their silhouette would be 1. Otherwise one Ward tree is
    cut at every k in 2..k_max and the cut with the highest exact mean silhouette is taken, the smallest of those within
    `SILHOUETTE_TIE` of it; ``k_max=1`` is one cluster.

    Beyond `MAX_POINTS` distinct points or `MAX_WORK` the tree is over k-means centres, silhouettes are of steps drawn
    from the points with a fixed seed, and the result is marked approximate.

    Raises:
        UsageError: for ``k_max`` below 1.
        FitError: for points that are not finite, weights below one, or too many distinct points.
    """
    if k_max < 1:
        raise UsageError(f"k_max must be at least 1, not {k_max}")
    array = np.asarray(points, dtype=np.float64)
    given = np.asarray(weights, dtype=np.float64)
    if array.ndim != 2 or given.shape != array.shape[:1]:
        raise FitError(f"points of shape {array.shape} with weights of shape {given.shape}")
    if not np.isfinite(array).all() or not (given >= 1).all():
        raise FitError("clustering needs finite points and weights of at least 1")
    distinct, inverse = np.unique(array + 0.0, axis=0, return_inverse=True)  # + 0.0: no negative zeros
    inverse = inverse.ravel()
    n = len(distinct)
    if n <= k_max or k_max == 1:
        labels = inverse if n <= k_max else np.zeros_like(inverse)
        return Clustering(labels=labels, n_clusters=min(n, k_max), silhouettes=MappingProxyType({}))
    require_clusterable(n, array.shape[1], k_max)
    total: NDArray[np.float64] = np.bincount(inverse, weights=given, minlength=n).astype(np.float64)
    exact = is_exact(n, array.shape[1], k_max)
    cuts, silhouettes = (_exact_cuts if exact else _approximate_cuts)(distinct, total, k_max)
    best = max(silhouettes.values(), default=0.0)
    chosen = min((k for k, score in silhouettes.items() if score >= best - SILHOUETTE_TIE), default=1)
    return Clustering(
        labels=cuts[chosen][inverse],
        n_clusters=chosen,
        silhouettes=MappingProxyType(silhouettes),
        approximate=not exact,
    )


def is_exact(n_points: int, n_columns: int, k_max: int) -> bool:
    """Whether so many distinct points get an exact tree and exact silhouettes."""
    return n_points <= MAX_POINTS and _work(n_points, n_points, n_columns, k_max) <= MAX_WORK


def require_clusterable(n_points: int, n_columns: int, k_max: int = 1) -> None:
    """Raise FitError where memory or time would not suffice even for an approximate tree."""
    work = _work(_n_centres(n_points), min(n_points, SAMPLED_STEPS), n_columns, k_max)
    if n_points * n_columns > MAX_NUMBERS or (work > MAX_WORK and not is_exact(n_points, n_columns, k_max)):
        raise FitError(
            Problem(
                location=Location(),
                message=f"{n_points} distinct points in {n_columns} columns are too many for up to {k_max} clusters",
                hint="keep the most frequent with top, fold the rare ones with min_count, or lower k_max",
            )
        )


def _work(n_in_tree: int, n_in_silhouettes: int, n_columns: int, k_max: int) -> int:
    """Numbers that the tree touches, and what silhouettes cost beside that: matrix products, which are quicker."""
    return n_in_tree**2 * n_columns + n_in_silhouettes**2 * k_max**2 // 64


def _n_centres(n_points: int) -> int:
    return max(2, min(MAX_CENTRES, n_points // 10))


Cuts = dict[int, "NDArray[np.int64]"]


def _exact_cuts(points: NDArray[np.float64], weights: NDArray[np.float64], k_max: int) -> tuple[Cuts, dict[int, float]]:
    pairs, _ = ward_tree(points, weights)
    cuts = {k: cut_tree(pairs, len(points), k) for k in range(2, k_max + 1)}
    return cuts, mean_silhouettes(points, weights, cuts)


def _approximate_cuts(
    points: NDArray[np.float64], weights: NDArray[np.float64], k_max: int
) -> tuple[Cuts, dict[int, float]]:
    """As `_exact_cuts`: the tree over centres, silhouettes of sampled steps; also the cut into one."""
    nearest = _nearest_centres(points, weights)
    mass = np.bincount(nearest, weights=weights).astype(np.float64)
    centres = np.empty((len(mass), points.shape[1]))
    for column in range(points.shape[1]):
        centres[:, column] = np.bincount(nearest, weights=weights * points[:, column]) / mass
    pairs, _ = ward_tree(centres, mass)
    cuts = {1: np.zeros(len(points), dtype=np.int64)}
    for k in range(2, min(k_max, len(centres)) + 1):
        labels = cut_tree(pairs, len(centres), k)[nearest]
        order = np.argsort(np.unique(labels, return_index=True)[1])  # clusters are numbered by their least point
        cuts[k] = np.argsort(order)[labels].astype(np.int64)
    sampled, repeats = _sampled_steps(weights)
    seen = {}
    for k, labels in cuts.items():
        present = np.unique(labels[sampled], return_inverse=True)[1]
        if present.max() > 0:  # a sample that is in one cluster does not tell how good the others are
            seen[k] = present
    return cuts, mean_silhouettes(points[sampled], repeats, seen)


def _nearest_centres(points: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """The k-means centre of each point, numbered without gaps, shape (n,)."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):  # sums over threads would depend on how many there are
        means = MiniBatchKMeans(n_clusters=_n_centres(len(points)), random_state=_SEED, n_init=1, batch_size=4096)
        labels = means.fit_predict(points, sample_weight=weights)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _sampled_steps(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Up to `SAMPLED_STEPS` steps drawn without replacement: the points that they are, ascending, and how often."""
    ends = np.cumsum(weights.astype(np.int64))
    total = int(ends[-1])
    drawn = np.random.default_rng(_SEED).choice(total, size=min(SAMPLED_STEPS, total), replace=False, shuffle=False)
    points, repeats = np.unique(np.searchsorted(ends, drawn, side="right"), return_counts=True)
    return points.astype(np.int64), repeats.astype(np.float64)


def ward_tree(
    points: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The Ward tree by nearest-neighbour chains, in O(n) memory and O(n^2 p) time.

    The distance of two clusters is ``sqrt(2 v w / (v + w)) |mu - nu|``, scipy's for repeated points.

    Returns:
        Merges by ascending height: pairs of points, one from each of the clusters that merge, shape (n - 1, 2), and
        heights, shape (n - 1,).
    """
    n = len(points)
    centroids, mass = points.copy(), weights.astype(np.float64)
    height_of = np.zeros(n)
    absent = np.zeros(n, dtype=np.bool_)
    pairs = np.empty((n - 1, 2), dtype=np.int64)
    heights = np.empty(n - 1)
    chain: list[int] = []
    for merge in range(n - 1):
        if not chain:
            chain.append(int(np.argmin(absent)))
        while True:
            top = chain[-1]
            difference = centroids - centroids[top]
            squares = np.einsum("ij,ij->i", difference, difference) * (2 * mass * mass[top] / (mass + mass[top]))
            squares[absent] = np.inf
            squares[top] = np.inf
            nearest = int(np.argmin(squares))
            # a tie goes back along the chain, or it would never end
            if len(chain) > 1 and squares[chain[-2]] <= squares[nearest]:
                break
            chain.append(nearest)
        partner = chain[-2]
        del chain[-2:]
        first, second = min(top, partner), max(top, partner)
        # Ward is monotone; rounding must not put a merge before those it is made of
        height = max(float(np.sqrt(squares[partner])), float(height_of[first]), float(height_of[second]))
        pairs[merge] = first, second
        heights[merge] = height
        both = mass[first] + mass[second]
        centroids[first] = (mass[first] * centroids[first] + mass[second] * centroids[second]) / both
        mass[first] = both
        height_of[first] = height
        absent[second] = True
    order = np.argsort(heights, kind="stable")
    return pairs[order], heights[order]


def cut_tree(pairs: NDArray[np.int64], n_points: int, k: int) -> NDArray[np.int64]:
    """The partition after all but the last ``k - 1`` merges; clusters are numbered by their least point; shape (n,)."""
    parent = list(range(n_points))

    def root(point: int) -> int:
        while parent[point] != point:
            parent[point] = parent[parent[point]]
            point = parent[point]
        return point

    for first, second in pairs[: n_points - k].tolist():
        a, b = root(first), root(second)
        parent[max(a, b)] = min(a, b)
    roots = np.array([root(point) for point in range(n_points)], dtype=np.int64)
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)


def mean_silhouettes(
    points: NDArray[np.float64], weights: NDArray[np.float64], cuts: Mapping[int, NDArray[np.int64]]
) -> dict[int, float]:
    """The mean silhouette of each partition, equal to that of the points repeated by their weights.

    Distances are Euclidean and computed once, block by block. A cluster of total weight one has silhouette 0.
    """
    totals = dict.fromkeys(cuts, 0.0)
    for rows, distances in _distance_blocks(points):
        for k, labels in cuts.items():
            mass = np.bincount(labels, weights=weights)
            to_cluster = distances @ (np.eye(len(mass))[labels] * weights[:, None])
            own = labels[rows]
            here = np.arange(len(own))
            alone = mass[own] <= 1
            inner = to_cluster[here, own] / np.where(alone, 1.0, mass[own] - 1)
            outer = to_cluster / mass
            outer[here, own] = np.inf
            nearest = outer.min(axis=1)
            scale = np.maximum(inner, nearest)
            scores = np.where(alone | (scale == 0), 0.0, (nearest - inner) / np.where(scale == 0, 1.0, scale))
            totals[k] += float(scores @ weights[rows])
    mass_of_all = float(weights.sum())
    return {k: total / mass_of_all for k, total in totals.items()}


def _distance_blocks(points: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    from scipy.spatial.distance import cdist

    n = len(points)
    step = max(1, _BLOCK_BYTES // (8 * n))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        yield rows, cdist(points[rows], points)
