from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tracebridge.chain import decisive_edges as module
from tracebridge.chain.decisive_edges import edges_that_matter, reachability_holds
from tracebridge.errors import UnsupportedError, UsageError

law = settings(deadline=None, max_examples=150)

N = 5
KINDS = ["possible", "almost-sure", "inevitable"]
# every state has a successor
rows = st.lists(st.sets(st.integers(0, N - 1), min_size=1, max_size=2), min_size=N, max_size=N)
masks = st.lists(st.booleans(), min_size=N, max_size=N).map(np.array)
some_states = masks.filter(lambda mask: mask.any())


def matrix_of(edges):
    dense = np.zeros((N, N))
    for i, j in edges:
        dense[i, j] = 1
    return csr_array(dense)


def judged(edges, start, target, kind, through):
    """The verdict by networkx, on the graph in which runs stop in the target and outside ``through``."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(N))
    stopping = {s for s in range(N) if target[s] or not through[s]}
    graph.add_edges_from((i, j) for i, j in edges if i not in stopping)
    starts = np.flatnonzero(start).tolist()
    seen = {s: {s} | nx.descendants(graph, s) for s in starts}
    if kind == "possible":
        return any(target[t] for s in starts for t in seen[s])
    reached = set().union(*seen.values())
    if any(s in stopping and not target[s] for s in reached):
        return False
    if kind == "almost-sure":  # no closed class but the target's states
        bottoms = [c for c in nx.strongly_connected_components(graph) if all(b in c for a in c for b in graph[a])]
        return all(target[min(c)] for c in bottoms if c & reached)
    return nx.is_directed_acyclic_graph(graph.subgraph(reached))


@law
@given(rows, some_states, masks, masks, st.sampled_from(KINDS), st.booleans(), st.lists(masks, min_size=N, max_size=N))
def test_they_are_those_whose_addition_changes_the_verdict(successors, start, target, safe, kind, plain, may):
    edges = {(i, j) for i, row in enumerate(successors) for j in row}
    through = np.ones(N, dtype=bool) if plain else safe
    matrix = matrix_of(edges)
    options = {} if plain else {"through": safe}
    before = judged(edges, start, target, kind, through)
    assert reachability_holds(matrix, start, target, kind, **options) == before
    expected = [
        pair
        for pair in product(range(N), repeat=2)
        if pair not in edges and judged(edges | {pair}, start, target, kind, through) != before
    ]
    every = np.ones((N, N), dtype=bool)
    assert list(map(tuple, edges_that_matter(matrix, every, start, target, kind, **options).tolist())) == expected
    allowed = np.array(may)
    found = edges_that_matter(matrix, allowed, start, target, kind, **options).tolist()
    assert list(map(tuple, found)) == [(i, j) for i, j in expected if allowed[i, j]]
    found = edges_that_matter(matrix, allowed[0], start, target, kind, **options).tolist()
    assert list(map(tuple, found)) == [(i, j) for i, j in expected if allowed[0][i]]


@law
@given(rows, st.integers(0, N - 1), masks, st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=6))
def test_a_set_of_edges_that_makes_the_target_possible_holds_one_of_them(successors, first, target, added):
    """If every state can be reached."""
    edges = {(i, j) for i, row in enumerate(successors) for j in row}
    start = np.arange(N) == first
    graph = nx.DiGraph(sorted(edges))
    if len(nx.descendants(graph, first) | {first}) < N or judged(edges, start, target, "possible", ~np.zeros(N, bool)):
        return
    if judged(edges | added, start, target, "possible", np.ones(N, dtype=bool)):
        every = np.ones((N, N), dtype=bool)
        alone = edges_that_matter(matrix_of(edges), every, start, target, "possible").tolist()
        assert added & set(map(tuple, alone))


def test_an_agent_that_was_never_seen_to_delete():
    # plan -> act -> {plan, done}; delete -> done; done is absorbing
    matrix = matrix_of({(0, 1), (1, 0), (1, 2), (2, 2), (3, 2), (4, 4)})
    start = np.arange(N) == 0
    leaving = np.array([True, True, False, True, False])
    delete, done = np.arange(N) == 3, np.arange(N) == 2
    assert not reachability_holds(matrix, start, delete, "possible")
    assert edges_that_matter(matrix, leaving, start, delete, "possible").tolist() == [[0, 3], [1, 3]]
    assert reachability_holds(matrix, start, done, "almost-sure")
    assert edges_that_matter(matrix, leaving, start, done, "almost-sure").tolist() == [[0, 4], [1, 4]]
    assert not reachability_holds(matrix, start, done, "inevitable")  # plan, act, plan, act, ...


def test_questions_that_have_no_meaning_are_refused(monkeypatch):
    matrix = csr_array(np.eye(3))
    some, none = np.array([True, False, False]), np.zeros(3, dtype=bool)
    every = np.ones((3, 3), dtype=bool)
    with pytest.raises(UsageError, match="no kind of verdict"):
        edges_that_matter(matrix, every, some, some, "surely")
    with pytest.raises(UsageError, match="needs a start state"):
        edges_that_matter(matrix, every, none, some, "possible")
    with pytest.raises(UsageError, match=r"shape \(2,\), not \(3,\) or \(3, 3\)"):
        edges_that_matter(matrix, every[0][:2], some, none, "possible")
    with pytest.raises(UsageError, match=r"truth values of shape \(3,\)"):
        reachability_holds(matrix, some, np.array([0, 1, 1]), "possible")
    monkeypatch.setattr(module, "MAX_EDGES", 1)
    with pytest.raises(UnsupportedError, match="up to 2 edges"):
        edges_that_matter(matrix, every, some, np.array([False, True, True]), "possible")
