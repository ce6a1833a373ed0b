"""Linear systems of transient states in doubles: elimination without cancellation, and iteration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_array, csr_array, eye_array, random_array
from tests.closedform.reference import solve_linear
from threadpoolctl import threadpool_info, threadpool_limits

from tracebridge.closedform import dense_elimination, krylov, sparse_elimination
from tracebridge.closedform.dense_elimination import DenseElimination
from tracebridge.closedform.factorization import factorize, without_diagonal
from tracebridge.closedform.linear_solver import Factorization
from tracebridge.closedform.sparse_elimination import SparseElimination
from tracebridge.errors import EngineError, ModelError


class TestOneThread:
    def test_the_library_has_one_thread_while_a_matrix_is_eliminated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever it is set to before, and again afterwards."""
        seen = []

        def censor_and_look(*arguments: object) -> None:
            seen.append(blas_threads())
            censor_block(*arguments)

        censor_block = dense_elimination._censor_block
        monkeypatch.setattr(dense_elimination, "_censor_block", censor_and_look)
        with threadpool_limits(limits=2, user_api="blas"):
            before = blas_threads()
            DenseElimination(np.ones((100, 100)), np.ones(100))
            DenseElimination(np.ones((3, 3)), np.ones(3))  # too small for threads: nothing is changed
            assert blas_threads() == before
        assert seen == [{1}, {1}, before]


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


class TestFactorize:
    @pytest.mark.parametrize("exponent", [1, 6, 12, 14])
    @pytest.mark.parametrize("m", [1, 2, 12])
    def test_dense_elimination_keeps_all_digits(self, m: int, exponent: int) -> None:
        rng = np.random.default_rng(m * exponent)
        weights = rng.integers(0, 1000, (m, m))
        exits = np.full(m, 10.0**-exponent)
        rhs = rng.integers(1, 10, m).astype(np.float64)
        matrix = [
            [
                sum((Fraction(int(x)) for k, x in enumerate(weights[i]) if k != i), Fraction(exits[i]))
                if i == j
                else -Fraction(int(weights[i, j]))
                for j in range(m)
            ]
            for i in range(m)
        ]
        factors = factorize(csr_array(weights.astype(np.float64)), exits)
        for solve, system in (
            (factors.solve, matrix),
            (factors.solve_transposed, [list(column) for column in zip(*matrix, strict=True)]),
        ):
            true = solve_linear(system, [Fraction(b) for b in rhs])
            errors = [abs(Fraction(float(x)) / t - 1) for x, t in zip(solve(rhs), true, strict=True)]
            assert max(errors) <= 1e-14

    def test_the_diagonal_is_ignored(self) -> None:
        Q = np.array([[0.9, 0.3], [0.2, 0.0]])
        exits = np.array([0.1, 0.4])
        assert np.array_equal(
            factorize(csr_array(Q), exits).solve(np.ones(2)),
            factorize(csr_array(np.array([[5.0, 0.3], [0.2, 7.0]])), exits).solve(np.ones(2)),
        )

    def test_columns_are_solved_one_by_one(self) -> None:
        factors = factorize(csr_array(np.array([[0, 0.5], [0.25, 0]])), np.array([0.5, 0.75]))
        both = factors.solve(np.eye(2))
        assert np.array_equal(both[:, 1], factors.solve(np.array([0.0, 1.0])))
        assert np.allclose(both.T, factors.solve_transposed(np.eye(2)), rtol=1e-15)

    def test_sparse_systems_are_solved_as_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A well mixing graph is left to the iteration, a corridor is eliminated to the last state."""
        monkeypatch.setattr(sparse_elimination, "DENSE_CORE", 500)
        m = 2_000
        mixing = csr_array(random_array((m, m), density=5 / m, rng=np.random.default_rng(1)))
        corridor = csr_array((np.full(2 * m - 2, 0.5), (np.r_[0 : m - 1, 1:m], np.r_[1:m, 0 : m - 1])), shape=(m, m))
        x = np.linspace(1, 2, m)
        for Q, exits, eliminated in ((mixing, np.full(m, 0.1), False), (corridor, np.eye(1, m)[0], True)):
            off = without_diagonal(Q)
            diagonal = np.asarray(off.sum(axis=1)).ravel() + exits
            factors = factorize(Q, exits)
            assert factors.componentwise == eliminated
            for transposed, matrix in ((False, off), (True, off.T)):
                found = factors.approximate(diagonal * x - matrix @ x, transposed=transposed)
                assert np.allclose(found, x, rtol=1e-7)
            assert np.allclose(factors.solve(exits), 1, rtol=1e-13)

    def test_states_that_cannot_leave(self) -> None:
        Q = csr_array(np.array([[0, 0.5, 0.5], [0, 0, 1], [0, 1, 0]]))
        with pytest.raises(ModelError, match="positions 1, 2"):
            factorize(Q, np.array([0.5, 0, 0]))

    def test_empty(self) -> None:
        assert factorize(csr_array((0, 0)), np.zeros(0)).solve(np.zeros(0)).shape == (0,)

    @pytest.mark.parametrize(
        ("Q", "exits"), [([[0, -1], [0, 0]], [1, 1]), ([[0, 1], [0, 0]], [1, np.nan]), ([[0, 1], [0, 0]], [1, 1, 1])]
    )
    def test_nonsense(self, Q: list[list[float]], exits: list[float]) -> None:
        with pytest.raises(ValueError):
            factorize(csr_array(np.array(Q, dtype=float)), np.array(exits, dtype=float))

    def test_right_hand_sides_of_the_wrong_length(self) -> None:
        with pytest.raises(ValueError, match="of that length"):
            factorize(csr_array((2, 2)), np.ones(2)).solve(np.ones(3))


def random_system(m: int, exponent: int, density: float) -> tuple[np.ndarray, np.ndarray]:
    """Whole weights off the diagonal, and exits so small that ``1 - q`` would lose them."""
    rng = np.random.default_rng(m + exponent)
    weights = rng.integers(1, 1000, (m, m)) * (rng.random((m, m)) < density)
    weights[np.arange(m), (np.arange(m) + 1) % m] = 1  # a ring, so that all of it hangs together
    np.fill_diagonal(weights, 0)
    return weights.astype(np.float64), np.full(m, 2.0**-exponent)


def relative_errors(factors: Factorization, weights: np.ndarray, exits: np.ndarray, rhs: np.ndarray) -> list[float]:
    """Of `solve` and `solve_transposed`, against elimination in rationals."""
    m = len(exits)
    scale = 2**60  # makes integers of everything
    matrix = fmpz_mat(m, m)
    for i in range(m):
        for j in range(m):
            matrix[i, j] = -int(weights[i, j]) * scale
        matrix[i, i] = int(weights[i].sum()) * scale + int(Fraction(exits[i]) * scale)
    column = fmpz_mat(m, 1, [int(b) * scale for b in rhs])
    errors = []
    for found, system in ((factors.solve(rhs), matrix), (factors.solve_transposed(rhs), matrix.transpose())):
        true = system.solve(column)
        errors += [abs(Fraction(found[i]) / Fraction(int(true[i, 0].p), int(true[i, 0].q)) - 1) for i in range(m)]
    return [float(error) for error in errors]


class TestEliminationKeepsAllDigits:
    """Whatever the condition, here up to 2^55: nothing is ever subtracted."""

    @pytest.mark.parametrize("m", [1, 63, 64, 65, 130])
    def test_in_blocks(self, m: int) -> None:
        weights, exits = random_system(m, 50, 0.3)
        rhs = np.arange(1.0, m + 1)
        factors = DenseElimination(weights.copy(), exits)
        assert max(relative_errors(factors, weights, exits, rhs)) <= 4 * m * 2.0**-53 + 1e-15

    @pytest.mark.parametrize("density", [0.0, 0.05, 0.2])
    @pytest.mark.parametrize("exponent", [3, 55])
    def test_sparse(self, density: float, exponent: int) -> None:
        m = 40
        weights, exits = random_system(m, exponent, density)
        rhs = np.arange(1.0, m + 1)
        factors = SparseElimination(csr_array(weights), exits)
        assert factors.componentwise
        assert max(relative_errors(factors, weights, exits, rhs)) <= 4 * m * 2.0**-53

    @given(st.integers(0, 2**32 - 1), st.integers(1, 12))
    @settings(max_examples=40, deadline=None)
    def test_sparse_of_any_shape(self, seed: int, m: int) -> None:
        rng = np.random.default_rng(seed)
        weights = (rng.integers(0, 4, (m, m)) * (rng.random((m, m)) < 0.4)).astype(np.float64)
        np.fill_diagonal(weights, 0)
        exits = 2.0 ** -rng.integers(0, 50, m)
        rhs = rng.integers(1, 9, m).astype(np.float64)
        factors = SparseElimination(without_diagonal(csr_array(weights)), exits)
        assert max(relative_errors(factors, weights, exits, rhs)) <= 1e-14

    def test_two_halves_that_hardly_meet(self) -> None:
        """By symmetry the expected time is that of two states; the iteration fails, and all digits are there."""
        half, out, across = 700, 2.0**-50, 2.0**-46
        rng = np.random.default_rng(5)
        inner = csr_array(random_array((half, half), density=8 / half, rng=rng)) + eye_array(half, k=1)
        inner = without_diagonal(csr_array(inner + eye_array(half, k=1 - half)))
        inner.data /= np.repeat(np.asarray(inner.sum(axis=1)).ravel(), np.diff(inner.indptr))
        Q = csr_array(block_array([[inner, across * eye_array(half)], [2 * across * eye_array(half), inner]]))
        exits = np.repeat([out, 3 * out], half)
        # a t0 - b t1 = 1 and so on, for the times of the two halves
        a, b, c, d = Fraction(out + across), Fraction(across), Fraction(2 * across), Fraction(3 * out + 2 * across)
        true = [(d + b) / (a * d - b * c), (a + c) / (a * d - b * c)]
        factors = factorize(Q, exits)
        assert factors.componentwise
        times = factors.solve(np.ones(2 * half))
        assert times[:half] == pytest.approx(float(true[0]), rel=1e-12)
        assert times[half:] == pytest.approx(float(true[1]), rel=1e-12)

    def test_corridors_around_a_hub(self) -> None:
        """No bandwidth is small here, and still nothing fills in: visits to the hub are geometric."""
        corridors, length, out = 300, 20, 1e-13
        m = 1 + corridors * length
        starts = 1 + length * np.arange(corridors)
        chain = np.setdiff1d(np.arange(1, m), starts + length - 1)
        rows = np.r_[np.zeros(corridors, dtype=int), chain, starts + length - 1]
        columns = np.r_[starts, chain + 1, np.zeros(corridors, dtype=int)]
        weights = np.r_[np.full(corridors, 1 / corridors), np.ones(len(chain)), np.ones(corridors)]
        exits = np.zeros(m)
        exits[0] = out
        factors = factorize(csr_array((weights, (rows, columns)), shape=(m, m)), exits)
        assert factors.componentwise
        visits = factors.solve_transposed(np.eye(1, m)[0])
        assert visits[0] == pytest.approx(1 / out, rel=1e-12)
        assert visits[1:] == pytest.approx(1 / out / corridors, rel=1e-12)


class TestLargeCores:
    @staticmethod
    def mixing(m: int = 300) -> tuple[csr_array, np.ndarray]:
        Q = without_diagonal(csr_array(random_array((m, m), density=10 / m, rng=np.random.default_rng(2))))
        return Q, np.full(m, 0.1)

    def test_where_iteration_fails_elimination_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sparse_elimination, "DENSE_CORE", 20)
        Q, exits = self.mixing()
        factors = SparseElimination(Q, exits)
        assert not factors.componentwise
        rhs = np.arange(1.0, len(exits) + 1)
        iterated = factors.solve(rhs)
        monkeypatch.setattr(krylov, "_ITERATIONS", 1)
        assert np.allclose(factors.solve(rhs), iterated, rtol=1e-12)
        assert factors.componentwise
        assert np.array_equal(SparseElimination(Q, exits).solve(rhs), factors.solve(rhs))

    def test_what_is_too_entangled_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sparse_elimination, "DENSE_CORE", 20)
        monkeypatch.setattr(krylov, "_ITERATIONS", 0)
        with pytest.raises(EngineError, match="lead to one another in too many ways to be eliminated"):
            SparseElimination(*self.mixing(1_500), max_work=100_000)  # 75,000 to read, 375,000 for all of it

    def test_what_is_too_large_is_refused_before_it_is_copied(self) -> None:
        with pytest.raises(EngineError, match="transitions are too many to be eliminated"):
            SparseElimination(*self.mixing(), max_work=1_000)

    @pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
    def test_iteration_at_any_scale(self, scale: float) -> None:
        Q, exits = self.mixing()
        iteration = krylov.JumpChainIteration(Q, exits)
        expected = DenseElimination(Q.toarray(), exits).solve(np.ones(len(exits)))
        assert np.allclose(iteration.solve(np.full(len(exits), scale)), scale * expected, rtol=1e-13, atol=0)
        assert not iteration.solve(np.zeros(len(exits))).any()

    @pytest.mark.parametrize(
        ("Q", "exits"),
        [
            ([[0, 1e-200, 0], [1, 0, 1e-200], [0, 1e200, 0]], [0, 0, 1e-300]),  # what leaves the last state underflows
            ([[0, 1e-320, 0], [1e300, 0, 1], [0, 1, 0]], [0, 0, 1]),  # the way through the first state overflows
        ],
    )
    def test_mass_beyond_the_range_of_doubles(self, Q: list[list[float]], exits: list[float]) -> None:
        for kind, matrix in ((DenseElimination, np.array(Q)), (SparseElimination, csr_array(np.array(Q)))):
            with pytest.raises(EngineError, match="beyond the range of doubles"):
                kind(matrix, np.array(exits, dtype=np.float64))
