import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tracebridge.chain.graph import reachable, reaching, recurrent_classes

law = settings(deadline=None, max_examples=60)

N = 6
edges = st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=15)
masks = st.lists(st.booleans(), min_size=N, max_size=N).map(np.array)


def matrix_of(pairs):
    dense = np.zeros((N, N))
    for i, j in pairs:
        dense[i, j] = 1e-300  # an edge is an edge, however improbable
    return csr_array(dense)


def graph_of(pairs):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(N))
    graph.add_edges_from(pairs)
    return graph


@law
@given(edges, masks)
def test_reachability_is_that_of_networkx(pairs, chosen):
    graph = graph_of(pairs)
    some = set(np.flatnonzero(chosen).tolist())
    forward = some.union(*(nx.descendants(graph, s) for s in some))
    backward = some.union(*(nx.ancestors(graph, s) for s in some))
    assert set(np.flatnonzero(reachable(matrix_of(pairs), chosen)).tolist()) == forward
    assert set(np.flatnonzero(reaching(matrix_of(pairs), chosen)).tolist()) == backward


@law
@given(edges, masks, masks)
def test_paths_through_a_set(pairs, chosen, through):
    """`through` restricts where a path goes on from, which is dropping the edges that leave other states."""
    allowed = {(i, j) for i, j in pairs if through[i]}
    matrix = matrix_of(pairs)
    np.testing.assert_array_equal(reachable(matrix, chosen, through=through), reachable(matrix_of(allowed), chosen))
    np.testing.assert_array_equal(reaching(matrix, chosen, through=through), reaching(matrix_of(allowed), chosen))


@law
@given(edges)
def test_recurrent_classes_are_the_closed_components(pairs):
    graph = graph_of(pairs)
    closed = [
        sorted(component)
        for component in nx.strongly_connected_components(graph)
        if all(target in component for source in component for target in graph.successors(source))
    ]
    assert [members.tolist() for members in recurrent_classes(matrix_of(pairs))] == sorted(closed)
