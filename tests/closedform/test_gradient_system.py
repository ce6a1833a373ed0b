"""Systems of any size and sign against a direct solver, and their transposed ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import spsolve

from tracebridge.closedform.gradient_system import SignedSystem
from tracebridge.errors import ModelError


def random_system(n: int, seed: int) -> tuple[csr_array, np.ndarray]:
    """Four random successors each, and a small exit."""
    rng = np.random.default_rng(seed)
    rows, columns = np.repeat(np.arange(n), 4), rng.integers(0, n, size=4 * n)
    shares = rng.dirichlet(np.ones(5), size=n)
    shares[:, 4] *= 0.05
    shares /= shares.sum(axis=1, keepdims=True)
    Q = csr_array((shares[:, :4].ravel(), (rows, columns)), shape=(n, n))
    Q.sum_duplicates()
    return Q, shares[:, 4]


@pytest.mark.parametrize("n", [1, 40, 900])
@pytest.mark.parametrize("transposed", [False, True])
def test_solutions_are_those_of_a_direct_solver(n, transposed):
    Q, exits = random_system(n, n)
    A = csc_array(eye_array(n) - Q)
    system = SignedSystem(Q, exits)
    point, signed = np.zeros(n), np.random.default_rng(1).normal(size=n)
    point[0] = 1.0  # an iteration by itself breaks down on a single state
    for rhs in (point, signed, np.zeros(n)):
        expected = np.atleast_1d(spsolve(A.T.tocsc() if transposed else A, rhs))
        found = system.solve(rhs, transposed=transposed)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * (1 + np.abs(expected).max()))


def test_a_set_that_is_never_left_is_refused():
    with pytest.raises(ModelError, match="cannot be left"):
        SignedSystem(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), np.zeros(2))
