"""Clustering steps over k = 2..12 against scikit-learn, which fits anew for every k.

python benchmarks/clustering_speed.py [--steps 20000] [--features 10] [--refits 11] [--only continuous|categories]

Both sides get the same steps in the same run and do the same job: Ward clusters for every number of clusters and the
mean silhouette of each. Two corpora: *continuous*, noisy corners of a simplex, where every step is a point of its own
(ours is approximate beyond 10,000 points, and says so), and *categories*, one-hot features of which few are distinct.
With fewer refits than 11 scikit-learn's time is scaled up, which the output says. Times are CPU seconds of one thread.
The target is a ratio of at most 0.2.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score, silhouette_score
from threadpoolctl import threadpool_limits

from tracebridge.states import cluster

K_MAX = 12
TARGET = 0.2
STATES = 6


def continuous(n: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Noisy corners of a simplex, and which corner each point is of."""
    truth = rng.integers(0, STATES, size=n)
    return np.eye(p)[truth] + rng.normal(scale=0.08, size=(n, p)), truth


def categories(n: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One of p - 2 tools a step, and two flags that are seldom set; and the tool."""
    tools = rng.integers(0, p - 2, size=n)
    return np.hstack([np.eye(p - 2)[tools], rng.random((n, 2)) < 0.1]).astype(float), tools


def refits(points: np.ndarray, n_refits: int) -> tuple[float, np.ndarray, dict[int, float]]:
    """CPU seconds for all k, the labels of the best, and silhouettes."""
    chosen = range(2, 2 + n_refits) if n_refits < K_MAX - 1 else range(2, K_MAX + 1)
    start = time.process_time()
    labels = {k: AgglomerativeClustering(n_clusters=k).fit_predict(points) for k in chosen}
    scores = {k: float(silhouette_score(points, found)) for k, found in labels.items()}
    seconds = (time.process_time() - start) * (K_MAX - 1) / len(scores)
    return seconds, labels[max(scores, key=scores.__getitem__)], scores


def compare(name: str, points: np.ndarray, truth: np.ndarray, n_refits: int) -> float:
    start = time.process_time()
    found = cluster(points, np.ones(len(points)), k_max=K_MAX)
    ours = time.process_time() - start
    theirs, labels, scores = refits(points, n_refits)
    n_distinct = len(np.unique(points, axis=0))
    how = f"k = {found.n_clusters}, {'approximate' if found.approximate else 'exact'}"
    scaled = f" (scaled up from {n_refits} of {K_MAX - 1} refits)" if len(scores) < K_MAX - 1 else ""
    print(f"{name}: {len(points)} steps, {n_distinct} distinct, {points.shape[1]} features, k = 2..{K_MAX}")
    print(f"  tracebridge   {ours:9.2f} s  {how}, {rand(truth, found.labels)}")
    print(f"  scikit-learn  {theirs:9.2f} s{scaled}  {rand(truth, labels)}")
    common = [abs(found.silhouettes[k] - score) for k, score in scores.items()]
    print(f"  silhouettes differ by at most {max(common):.4f}; ratio {ours / theirs:.3f} (target {TARGET})")
    return ours / theirs


def rand(truth: np.ndarray, labels: np.ndarray) -> str:
    return f"adjusted Rand index with the truth {adjusted_rand_score(truth, labels):.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--refits", type=int, default=K_MAX - 1)
    parser.add_argument("--only", choices=["continuous", "categories"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    ratios = []
    for make in (continuous, categories):
        if options.only in (None, make.__name__):
            rng = np.random.default_rng(options.seed)
            points, truth = make(options.steps, options.features, rng)
            with threadpool_limits(limits=1):
                ratios.append(compare(make.__name__, points, truth, options.refits))
    print(f"worst ratio {max(ratios):.3f}: {'within' if max(ratios) <= TARGET else 'ABOVE'} the target {TARGET}")
    return 0 if max(ratios) <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
