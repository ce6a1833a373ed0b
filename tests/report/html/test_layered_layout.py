"""Laws of the layout, against definitions written out here."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from tracebridge.report.html.layered_layout import (
    _isotonic,
    _neighbours,
    _ordered,
    _with_waypoints,
    crossings,
    first_visit_steps,
    layered_layout,
    layers_by_step,
)

GRAPHS = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.floats(0.01, 5)).filter(lambda e: e[0] != e[1]),
            max_size=25,
        ),
        st.lists(st.floats(10, 60), min_size=n, max_size=n),
    )
)


def compressed(layers: list[int]) -> list[int]:
    used = sorted(set(layers))
    return [used.index(layer) for layer in layers]


@given(GRAPHS)
@settings(max_examples=30)
def test_nothing_overlaps_and_edges_pass_every_layer_between(graph):
    layers, edges, heights = graph
    layers = compressed(layers)
    layout = layered_layout(layers, edges, node_heights=heights, edge_height=6, gap=8)
    taken: dict[int, list[tuple[float, float]]] = {}
    for node, layer in enumerate(layers):
        taken.setdefault(layer, []).append((layout.heights[node], heights[node]))
    for (source, target, _), way in zip(edges, layout.waypoints, strict=True):
        low, high = sorted((layers[source], layers[target]))
        assert len(way) == max(0, high - low - 1)
        for layer, height in zip(range(low + 1, high), way, strict=True):
            taken[layer].append((height, 6.0))
    for items in taken.values():
        items.sort()
        for (below, size), (above, next_size) in pairwise(items):
            assert above - below >= (size + next_size) / 2 + 8 - 1e-6
        assert items[0][0] - items[0][1] / 2 >= -1e-9
        assert items[-1][0] + items[-1][1] / 2 <= layout.span + 1e-9
    assert layout == layered_layout(layers, edges, node_heights=heights, edge_height=6, gap=8)


@given(GRAPHS)
@settings(max_examples=30)
def test_crossings_are_counted_and_never_made_more(graph):
    layers, edges, _ = graph
    columns, segments, _ = _with_waypoints(compressed(layers), edges)
    place = {item: k for column in columns for k, item in enumerate(column)}
    pairs = [(a, b) for layer in segments for k, a in enumerate(layer) for b in layer[:k]]
    expected = sum((place[a[0]] - place[b[0]]) * (place[a[1]] - place[b[1]]) < 0 for a, b in pairs)
    assert crossings(columns, segments) == expected
    found = _ordered(columns, segments, _neighbours(segments, sum(map(len, columns))))
    assert crossings(found, segments) <= expected
    assert [sorted(column) for column in found] == [sorted(column) for column in columns]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12))
def test_the_nearest_ascending_sequence(values):
    np.testing.assert_allclose(_isotonic(np.array(values)), isotonic_regression(values).x, atol=1e-9)


def test_first_visits_by_walking_until_the_state_is_met():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(6), size=6)
    P[4:] = 0  # absorbing
    initial = np.array([0.5, 0.3, 0.2, 0, 0, 0])
    steps = first_visit_steps(P, initial)
    for j in range(6):
        mass, time, reached = initial.copy(), 0.0, initial[j]
        mass[j] = 0
        for step in range(1, 400):
            mass = mass @ P
            time, reached = time + step * mass[j], reached + mass[j]
            mass[j] = 0
        assert steps[j] == np.float64(time / reached) or abs(steps[j] - time / reached) < 1e-9


@given(st.lists(st.floats(0, 500), max_size=60), st.integers(1, 5))
def test_layers_follow_the_steps_and_are_few_and_none_is_large(steps, most):
    layers = layers_by_step(steps, most)
    assert sorted(set(layers)) == list(range(len(set(layers))))
    assert len(set(layers)) <= most
    assert all(layers.count(layer) <= max(6, 2 * -(-len(steps) // most)) for layer in layers)
    for a, b in pairwise(sorted(zip(steps, layers, strict=True))):
        assert a[0] == b[0] or a[1] <= b[1]


@given(st.lists(st.floats(0, 50), min_size=1, max_size=6))
def test_layers_are_the_cheapest_of_all_partitions(steps):
    def cost(layers: list[int]) -> float:
        parts = [[np.log1p(step) for step, of in zip(steps, layers, strict=True) if of == k] for k in set(layers)]
        return sum(float(np.var(part)) * len(part) + 0.02 for part in parts)

    choices = product(range(3), repeat=len(steps))
    assert cost(layers_by_step(steps, 3)) <= min(cost(list(each)) for each in choices) + 1e-9
