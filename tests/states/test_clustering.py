import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_score

from tracebridge.errors import FitError, UsageError
from tracebridge.states import clustering
from tracebridge.states.clustering import (
    MAX_NUMBERS,
    MAX_POINTS,
    SAMPLED_STEPS,
    cluster,
    cut_tree,
    is_exact,
    mean_silhouettes,
    require_clusterable,
    ward_tree,
)

law = settings(deadline=None, max_examples=60)


def partition(labels):
    """A labelling as a set of sets: equal for equal partitions, whatever the clusters are called."""
    groups = {}
    for i, label in enumerate(np.asarray(labels).tolist()):
        groups.setdefault(label, set()).add(i)
    return {frozenset(group) for group in groups.values()}


def generic_points(seed, n, p=3):
    """Continuous points, sorted as the module sorts them, without ties; and multiplicities."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, p)) + 4 * rng.integers(0, 3, size=(n, 1))
    return np.unique(points, axis=0), rng.integers(1, 5, size=n)


@pytest.mark.parametrize("seed", range(12))
def test_weighted_tree_is_the_tree_of_repeated_points(seed):
    n = 18
    points, weights = generic_points(seed, n)
    repeated = np.repeat(points, weights, axis=0)
    reference = ward(repeated)
    pairs, heights = ward_tree(points, weights.astype(float))
    np.testing.assert_allclose(heights, reference[-(n - 1) :, 2], rtol=1e-10)
    first = np.concatenate([[0], np.cumsum(weights)[:-1]])
    for k in range(2, n):
        expected = fcluster(reference, k, criterion="maxclust")[first]
        assert partition(cut_tree(pairs, n, k)) == partition(expected)


@pytest.mark.parametrize("seed", range(6))
def test_silhouettes_are_those_of_repeated_points(seed):
    points, weights = generic_points(seed, 25)
    pairs, _ = ward_tree(points, weights.astype(float))
    cuts = {k: cut_tree(pairs, 25, k) for k in range(2, 13)}
    found = mean_silhouettes(points, weights.astype(float), cuts)
    repeated = np.repeat(points, weights, axis=0)
    distances = cdist(repeated, repeated)  # scikit-learn's own distances lose half the digits between equal points
    for k, labels in cuts.items():
        expected = silhouette_score(distances, np.repeat(labels, weights), metric="precomputed")
        assert found[k] == pytest.approx(expected, abs=1e-12)


def test_silhouette_by_hand():
    # Points 0 (twice), 1 and 5 in clusters {0, 1}, {5}. For 0: a = (0 + 1) / 2, b = 5; for 1: a = 1, b = 4; 5 is alone.
    scores = mean_silhouettes(np.array([[0.0], [1.0], [5.0]]), np.array([2.0, 1.0, 1.0]), {2: np.array([0, 0, 1])})
    assert scores[2] == pytest.approx((2 * (5 - 0.5) / 5 + (4 - 1) / 4 + 0) / 4)


@pytest.mark.parametrize("seed", range(4))
def test_many_blocks_give_the_same_silhouettes(seed, monkeypatch):
    points, weights = generic_points(seed, 40)
    pairs, _ = ward_tree(points, weights.astype(float))
    cuts = {k: cut_tree(pairs, 40, k) for k in (2, 5)}
    whole = mean_silhouettes(points, weights.astype(float), cuts)
    monkeypatch.setattr("tracebridge.states.clustering._BLOCK_BYTES", 8 * 40 * 7)
    assert mean_silhouettes(points, weights.astype(float), cuts) == pytest.approx(whole, abs=1e-14)


lattices = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=40)


@law
@given(lattices, st.integers(1, 6), st.randoms(use_true_random=False))
def test_order_and_repetition_of_points_do_not_matter(points, k_max, random):
    """Lattice points are full of ties, where an order-dependent Ward tree gives itself away."""
    distinct, counts = np.unique(np.array(points), axis=0, return_counts=True)
    once = cluster(distinct, counts, k_max=k_max)
    order = list(range(len(points)))
    random.shuffle(order)
    shuffled = cluster(np.array(points)[order], np.ones(len(points)), k_max=k_max)
    label_of = {tuple(point): label for point, label in zip(distinct.tolist(), once.labels.tolist(), strict=True)}
    assert shuffled.labels.tolist() == [label_of[points[i]] for i in order]
    assert shuffled.silhouettes == once.silhouettes
    assert once.n_clusters == len(set(once.labels.tolist())) <= k_max


@law
@given(lattices, st.integers(2, 5))
def test_the_smallest_best_silhouette_wins_and_cuts_nest(points, k_max):
    distinct, counts = np.unique(np.array(points), axis=0, return_counts=True)
    found = cluster(distinct, counts, k_max=k_max)
    if len(distinct) <= k_max:
        assert not found.silhouettes
        assert found.labels.tolist() == list(range(len(distinct)))
        return
    assert set(found.silhouettes) == set(range(2, k_max + 1))
    best = max(found.silhouettes.values())
    assert found.silhouettes[found.n_clusters] >= best - 1e-12
    assert all(score < best - 1e-12 for k, score in found.silhouettes.items() if k < found.n_clusters)
    pairs, heights = ward_tree(distinct.astype(float), counts.astype(float))
    assert (np.diff(heights) >= 0).all()
    finer = cut_tree(pairs, len(distinct), k_max)
    coarser = cut_tree(pairs, len(distinct), 2)
    assert all(len({coarser[i] for i in group}) == 1 for group in partition(finer))


def test_separated_groups_are_found():
    centres = np.array([[0, 0], [10, 0], [0, 10]])
    points = (centres[:, None, :] + np.random.default_rng(5).normal(scale=0.1, size=(3, 20, 2))).reshape(-1, 2)
    found = cluster(points, np.ones(60), k_max=8)
    assert found.n_clusters == 3
    assert partition(found.labels) == {frozenset(range(20 * c, 20 * c + 20)) for c in range(3)}


def test_one_and_no_point():
    assert cluster(np.zeros((1, 2)), [7], k_max=12).n_clusters == 1
    assert cluster(np.zeros((5, 2)), [1] * 5, k_max=12).labels.tolist() == [0] * 5
    assert cluster(np.zeros((0, 2)), [], k_max=12).n_clusters == 0
    assert cluster(np.arange(5.0)[:, None], [1] * 5, k_max=1).labels.tolist() == [0] * 5


def test_negative_zero_is_zero():
    assert cluster(np.array([[0.0], [-0.0]]), [1, 1], k_max=5).n_clusters == 1


def test_refusals():
    with pytest.raises(UsageError, match="k_max"):
        cluster(np.zeros((2, 1)), [1, 1], k_max=0)
    with pytest.raises(FitError, match="finite"):
        cluster(np.array([[np.nan]]), [1], k_max=2)
    with pytest.raises(FitError, match="weights of at least 1"):
        cluster(np.zeros((1, 1)), [0], k_max=2)
    with pytest.raises(FitError, match="shape"):
        cluster(np.zeros((2, 1)), [1], k_max=2)
    with pytest.raises(FitError, match="too many") as caught:
        require_clusterable(MAX_NUMBERS // 3 + 1, 3)
    assert "min_count" in str(caught.value)
    with pytest.raises(FitError, match="too many"):
        require_clusterable(9_000, 10_000)
    with pytest.raises(FitError, match="too many"):
        require_clusterable(20_000, 10, 1_000)
    require_clusterable(MAX_POINTS, 30, 12)
    require_clusterable(5_000, 2_000)


def test_what_is_exact():
    assert is_exact(MAX_POINTS, 10, 12)
    assert is_exact(MAX_POINTS, 10, 30)
    assert not is_exact(MAX_POINTS + 1, 10, 2)
    assert not is_exact(MAX_POINTS, 1_000, 12)


# ---------------------------------------------------------------- too many points for an exact tree


def noisy_one_hot(seed, n, m=6, sigma=0.08):
    """The states of the paper's study: corners of a simplex with noise; and which of them each point is."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, m, size=n)
    return np.eye(m)[truth] + rng.normal(scale=sigma, size=(n, m)), truth


@pytest.fixture
def few_points(monkeypatch):
    """Beyond 300 points clustering is approximate."""
    monkeypatch.setattr(clustering, "MAX_POINTS", 300)


@pytest.mark.parametrize("seed", range(3))
def test_approximate_clusters_are_the_true_ones(seed, few_points):
    points, truth = noisy_one_hot(seed, 2_000)
    found = cluster(points, np.ones(2_000), k_max=12)
    assert found.approximate
    assert found.n_clusters == 6
    assert partition(found.labels) == partition(truth)
    assert set(found.silhouettes) == set(range(2, 13))


def test_approximate_clusters_beyond_the_real_limit(monkeypatch):
    monkeypatch.setattr(clustering, "MAX_CENTRES", 100)  # quicker, and enough for three clusters
    points, truth = noisy_one_hot(4, MAX_POINTS + 1_000, m=3)
    found = cluster(points, np.ones(len(points)), k_max=4)
    assert found.approximate
    assert partition(found.labels) == partition(truth)


def test_approximate_clusters_do_not_depend_on_order(few_points):
    points, _ = noisy_one_hot(7, 400, sigma=0.4)
    weights = np.random.default_rng(1).integers(1, 5, size=400)
    once = cluster(points, weights, k_max=8)
    order = np.random.default_rng(2).permutation(400)
    shuffled = cluster(points[order], weights[order], k_max=8)
    assert once.approximate
    assert shuffled.labels.tolist() == once.labels[order].tolist()
    assert shuffled.silhouettes == once.silhouettes
    repeated = cluster(np.repeat(points, weights, axis=0), np.ones(weights.sum()), k_max=8)
    assert repeated.labels.tolist() == np.repeat(once.labels, weights).tolist()


def test_silhouettes_of_a_sample_that_is_everything_are_exact(few_points):
    points, _ = noisy_one_hot(8, 500, sigma=0.3)
    weights = np.random.default_rng(3).integers(1, 6, size=500).astype(float)
    assert weights.sum() < SAMPLED_STEPS
    found = cluster(points, weights, k_max=6)
    exact = mean_silhouettes(points, weights, {found.n_clusters: found.labels})
    assert found.silhouettes[found.n_clusters] == pytest.approx(exact[found.n_clusters], abs=1e-12)


def test_silhouettes_of_a_sample_are_near_those_of_all(few_points, monkeypatch):
    points, _ = noisy_one_hot(9, 2_000, sigma=0.3)
    monkeypatch.setattr(clustering, "SAMPLED_STEPS", 600)
    found = cluster(points, np.ones(2_000), k_max=6)
    exact = mean_silhouettes(points, np.ones(2_000), {found.n_clusters: found.labels})[found.n_clusters]
    # silhouettes lie in -1..1 with a spread of about 0.1 here: four standard errors of 600
    assert found.silhouettes[found.n_clusters] == pytest.approx(exact, abs=4 * 0.1 / 600**0.5)


def test_clusters_that_no_sampled_step_is_in(few_points):
    """One kind of step has all but a billionth of the steps: a sample sees nothing else, and there is one cluster."""
    points, _ = noisy_one_hot(10, 400)
    weights = np.ones(400)
    weights[0] = 1e13
    found = cluster(points, weights, k_max=5)
    assert (found.n_clusters, dict(found.silhouettes), found.approximate) == (1, {}, True)
    assert set(found.labels.tolist()) == {0}


def test_sampled_steps_are_drawn_by_weight_and_without_replacement():
    weights = np.array([5.0, 1.0, 2_000.0, 4_000.0])
    points, repeats = clustering._sampled_steps(weights)
    assert repeats.sum() == SAMPLED_STEPS
    assert (repeats <= weights[points]).all()
    # hypergeometric: 2,000 of 6,006 steps, so that about 999 of 3,000 with a standard deviation of 18
    assert repeats[points.tolist().index(2)] == pytest.approx(SAMPLED_STEPS * 2_000 / 6_006, abs=5 * 18.3)
    points, repeats = clustering._sampled_steps(np.array([3.0, 1.0]))
    assert (points.tolist(), repeats.tolist()) == ([0, 1], [3.0, 1.0])


def test_the_smallest_of_equal_silhouettes_wins(monkeypatch):
    monkeypatch.setattr(clustering, "mean_silhouettes", lambda points, weights, cuts: {2: 0.5, 3: 0.5 + 1e-13, 4: 0.1})
    assert cluster(np.arange(9.0)[:, None], np.ones(9), k_max=4).n_clusters == 2
