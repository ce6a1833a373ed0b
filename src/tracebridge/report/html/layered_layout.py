"""A layered drawing of a graph: places for nodes, and the points that each edge passes (Sugiyama, Tagawa, Toda 1981).

Nodes stand in layers from left to right, here by the expected step of their first visit. An edge that spans several
layers gets a waypoint in each layer between, so that it passes beside nodes and not through them. The order within
layers is swept by barycentres as long as crossings are saved; then heights follow those of the neighbours as closely as
the distances allow (least squares, by pooling adjacent violators).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SWEEPS = 12
_RELAXATIONS = 16
_LAYER_COST = 0.02  # that of two nodes whose steps differ by a fifth
_SMALL_LAYER = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything stands.

    Attributes:
        layers: of each node. heights: of the middle of each node, in user units, the smallest at zero or more.
        waypoints: of each edge, the height at which it passes each layer strictly between its ends, from left to right.
        span: the largest height that is taken.
    """

    layers: tuple[int, ...]
    heights: tuple[float, ...]
    waypoints: tuple[tuple[float, ...], ...]
    span: float


def first_visit_steps(transitions: Floats, initial: Floats) -> Floats:
    """The expected step of the first visit to each state, given that it is visited; shape (n,).

    With j made absorbing and h the probability to reach it, ``g = Q g + Q h`` is the expected time on those runs.

    Args:
        transitions: shape (n, n), rows of absorbing states zero. initial: shape (n,).
    """
    n = len(initial)
    steps = np.zeros(n)
    for j in range(n):
        others = np.flatnonzero(np.arange(n) != j)
        system = np.eye(n - 1) - transitions[np.ix_(others, others)]
        reach = np.linalg.solve(system, transitions[others, j])
        time = np.linalg.solve(system, reach)
        reached = initial[j] + initial[others] @ reach
        steps[j] = initial[others] @ time / reached if reached > 0 else 0.0
    return steps


def layers_by_step(steps: Sequence[float], most: int) -> list[int]:
    """So many layers of similar steps at most: those with the least squares of ``log(1 + step)`` within layers.

    A further layer must save `_LAYER_COST`, and none holds much more than its share.
    """
    n = len(steps)
    if not n:
        return []
    order = sorted(range(n), key=lambda k: (steps[k], k))
    places = np.log1p([steps[k] for k in order])
    sums, squares = (np.concatenate([[0.0], np.cumsum(places**power)]) for power in (1, 2))
    largest = max(_SMALL_LAYER, 2 * -(-n // most))
    least = np.full((most + 1, n + 1), np.inf)  # of so many layers, for so many of the first
    least[0, 0] = 0.0
    before = np.zeros((most + 1, n + 1), dtype=np.int64)
    for layer in range(1, most + 1):
        for end in range(1, n + 1):
            begins = np.arange(max(0, end - largest), end)
            within = squares[end] - squares[begins] - (sums[end] - sums[begins]) ** 2 / (end - begins)
            cost = least[layer - 1, begins] + within + _LAYER_COST
            best = int(np.argmin(cost))
            least[layer, end], before[layer, end] = cost[best], begins[best]
    layer, end = int(np.argmin(least[:, n])), n
    found = [0] * n
    while layer:
        begin = int(before[layer, end])
        layer -= 1
        for k in order[begin:end]:
            found[k] = layer
        end = begin
    return found


def layered_layout(
    layers: Sequence[int],
    edges: Sequence[tuple[int, int, float]],
    *,
    node_heights: Sequence[float],
    edge_height: float,
    gap: float,
) -> Layout:
    """Order and heights.

    Args:
        layers: of each node, from 0. edges: two different nodes each and a positive weight; those within a layer have
            no say. node_heights: of each node. edge_height: what an edge that passes takes. gap: between two of them.
    """
    columns, segments, chains = _with_waypoints(layers, edges)
    n_items = sum(map(len, columns))
    sizes = np.full(n_items, float(edge_height))
    sizes[: len(layers)] = node_heights
    neighbours = _neighbours(segments, n_items)
    columns = _ordered(columns, segments, neighbours)
    heights = _heights(columns, neighbours, sizes, gap)
    heights = heights - (heights - sizes / 2).min(initial=0.0)
    return Layout(
        layers=tuple(layers),
        heights=tuple(heights[: len(layers)].tolist()),
        waypoints=tuple(tuple(heights[k] for k in chain) for chain in chains),
        span=float((heights + sizes / 2).max(initial=0.0)),
    )


Segment = tuple[int, int, float]
Neighbours = Sequence[Mapping[int, float]]


def _with_waypoints(
    layers: Sequence[int], edges: Sequence[tuple[int, int, float]]
) -> tuple[list[list[int]], list[list[Segment]], list[list[int]]]:
    """Items of each layer (nodes, then waypoints), segments from each layer to the next, and waypoints of each edge."""
    n_layers = max(layers, default=0) + 1
    columns: list[list[int]] = [[] for _ in range(n_layers)]
    for node, layer in enumerate(layers):
        columns[layer].append(node)
    segments: list[list[Segment]] = [[] for _ in range(n_layers)]
    chains: list[list[int]] = []
    next_item = len(layers)
    for source, target, weight in edges:
        left, right = sorted((source, target), key=lambda node: layers[node])
        chain: list[int] = []
        last = left
        for layer in range(layers[left] + 1, layers[right]):
            columns[layer].append(next_item)
            segments[layer - 1].append((last, next_item, weight))
            chain.append(next_item)
            last, next_item = next_item, next_item + 1
        if layers[left] < layers[right]:
            segments[layers[right] - 1].append((last, right, weight))
        chains.append(chain)
    return columns, segments, chains


def _neighbours(segments: Sequence[Sequence[Segment]], n_items: int) -> tuple[Neighbours, Neighbours]:
    """To the left and to the right of each item, with weights."""
    to_left: list[dict[int, float]] = [{} for _ in range(n_items)]
    to_right: list[dict[int, float]] = [{} for _ in range(n_items)]
    for layer in segments:
        for left, right, weight in layer:
            to_left[right][left] = to_left[right].get(left, 0.0) + weight
            to_right[left][right] = to_right[left].get(right, 0.0) + weight
    return to_left, to_right


def crossings(columns: Sequence[Sequence[int]], segments: Sequence[Sequence[Segment]]) -> int:
    """How many pairs of segments between neighbouring layers cross."""
    place = {item: k for column in columns for k, item in enumerate(column)}
    total = 0
    for layer in segments:
        if len(layer) < 2:
            continue
        ends = np.array([(place[a], place[b]) for a, b, _ in layer])
        left = np.sign(ends[:, None, 0] - ends[None, :, 0])
        right = np.sign(ends[:, None, 1] - ends[None, :, 1])
        total += int((left * right < 0).sum()) // 2
    return total


def _ordered(
    columns: list[list[int]], segments: Sequence[Sequence[Segment]], neighbours: tuple[Neighbours, Neighbours]
) -> list[list[int]]:
    """The order with the fewest crossings that the sweeps came by."""
    best, fewest = columns, crossings(columns, segments)
    current = [list(column) for column in columns]
    for sweep in range(_SWEEPS):
        side = sweep % 2
        for layer in _layers_of_sweep(len(current), side):
            place = {item: float(k) for column in current for k, item in enumerate(column)}
            current[layer].sort(key=lambda item: (_barycentre(neighbours[side][item], place, place[item]), place[item]))
        found = crossings(current, segments)
        if found < fewest:
            best, fewest = [list(column) for column in current], found
    return best


def _layers_of_sweep(n_layers: int, side: int) -> Iterator[int]:
    """To the right by the neighbours on the left, or the other way."""
    return iter(range(1, n_layers)) if side == 0 else iter(range(n_layers - 2, -1, -1))


def _barycentre(neighbours: Mapping[int, float], place: Mapping[int, float], own: float) -> float:
    if not neighbours:
        return own
    return sum(place[item] for item in neighbours) / len(neighbours)


def _heights(
    columns: Sequence[Sequence[int]], neighbours: tuple[Neighbours, Neighbours], sizes: Floats, gap: float
) -> Floats:
    """Heights near those of the neighbours, the heavier the nearer, in the given order."""
    heights = np.zeros(len(sizes))
    for column in columns:
        if column:
            heights[column] = _offsets(sizes[column], gap)
            heights[column] -= heights[column].mean()
    for sweep in range(_RELAXATIONS):
        side = sweep % 2
        for layer in _layers_of_sweep(len(columns), side):
            column = list(columns[layer])
            if not column:
                continue
            wanted = heights[column].copy()
            for k, item in enumerate(column):
                if near := neighbours[side][item]:
                    wanted[k] = sum(heights[other] * weight for other, weight in near.items()) / sum(near.values())
            offsets = _offsets(sizes[column], gap)
            heights[column] = _isotonic(wanted - offsets) + offsets
    return heights


def _offsets(sizes: Floats, gap: float) -> Floats:
    """Heights of items packed as closely as they may stand, the first at zero."""
    steps = (sizes[1:] + sizes[:-1]) / 2 + gap
    return np.concatenate([[0.0], np.cumsum(steps)])


def _isotonic(values: Floats) -> Floats:
    """The nearest ascending sequence, by pooling adjacent violators."""
    pools: list[tuple[float, int]] = []
    for value in values.tolist():
        total, size = value, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / size:
            before, members = pools.pop()
            total, size = total + before, size + members
        pools.append((total, size))
    return np.concatenate([np.full(size, total / size) for total, size in pools])
