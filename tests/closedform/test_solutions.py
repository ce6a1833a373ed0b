"""Linear systems of transient states in rationals, and in doubles with rigorous bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.reference import solve_linear
from tests.closedform.strategies import rows

from tracebridge.chain.rational import RationalMatrix
from tracebridge.closedform import ball_elimination, rational_solution
from tracebridge.closedform.ball_elimination import solve_in_balls
from tracebridge.closedform.enclosed_solution import EnclosedSolver, solve_enclosed, solve_enclosed_transposed
from tracebridge.closedform.integer_system import IntegerSystem
from tracebridge.closedform.linear_solver import Factorization
from tracebridge.closedform.rational_solution import solve_exact, solve_exact_transposed, solve_system_exact
from tracebridge.errors import EngineError, ModelError, UnsupportedError


@st.composite
def transient_sets(draw: st.DrawFn) -> tuple[RationalMatrix, np.ndarray]:
    """A chain and a set of its states that every state of the set can leave."""
    n = draw(st.integers(2, 7))
    chosen = np.array(sorted(draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=n - 1))))
    outside = [i for i in range(n) if i not in chosen]
    found = [draw(rows(n, sticky=True)) for _ in range(n)]
    for i in chosen.tolist():  # a small chance to leave from everywhere
        leave = Fraction(1, draw(st.sampled_from([2, 10**3, 10**12])))
        row = {target: p * (1 - leave) for target, p in found[i].items()}
        row[outside[0]] = row.get(outside[0], Fraction(0)) + leave
        found[i] = row
    return RationalMatrix.from_rows(found), chosen


def reference(P: RationalMatrix, chosen: np.ndarray, rhs: list[Fraction], *, transposed: bool) -> list[Fraction]:
    inside = chosen.tolist()
    matrix = [[Fraction(int(i == j)) - P.row(i).get(j, 0) for j in inside] for i in inside]
    return solve_linear([list(row) for row in zip(*matrix, strict=True)] if transposed else matrix, rhs)


right_hand_sides = st.lists(
    st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 3), Fraction(7, 2)]), min_size=7, max_size=7
)


class TestSystems:
    @given(transient_sets(), right_hand_sides, st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_exact_and_enclosed(
        self, system: tuple[RationalMatrix, np.ndarray], rhs: list[Fraction], transposed: bool
    ) -> None:
        P, chosen = system
        b = rhs[: len(chosen)]
        true = reference(P, chosen, b, transposed=transposed)
        assert (solve_exact_transposed if transposed else solve_exact)(P, chosen, [b, b]) == [true, true]
        enclosed = (solve_enclosed_transposed if transposed else solve_enclosed)(P, chosen, [b])[0]
        for lower, upper, x in zip(enclosed.lower, enclosed.upper, true, strict=True):
            assert Fraction(lower) <= x <= Fraction(upper)
            assert upper - lower <= 2**-51 * x

    @given(transient_sets(), right_hand_sides)
    @settings(max_examples=50, deadline=None)
    def test_bounds_do_not_depend_on_the_solver(
        self, system: tuple[RationalMatrix, np.ndarray], rhs: list[Fraction]
    ) -> None:
        """A solver that is wrong by a quarter costs iterations, not correctness."""
        P, chosen = system
        transient = IntegerSystem.of(P, chosen)
        good = transient.factorize()

        class Sloppy(Factorization):
            size, componentwise = good.size, good.componentwise

            def _solve(self, rhs: np.ndarray, *, transposed: bool, tolerance: float | None) -> np.ndarray:
                return 0.75 * good._solve(rhs, transposed=transposed, tolerance=tolerance)

        b = rhs[: len(chosen)]
        true = reference(P, chosen, b, transposed=False)
        enclosed = EnclosedSolver(transient, Sloppy()).solve([b])[0]
        assert all(
            Fraction(lo) <= x <= Fraction(up) for lo, up, x in zip(enclosed.lower, enclosed.upper, true, strict=True)
        )

    @given(transient_sets(), right_hand_sides, st.booleans())
    @settings(max_examples=50, deadline=None)
    def test_balls(self, system: tuple[RationalMatrix, np.ndarray], rhs: list[Fraction], transposed: bool) -> None:
        P, chosen = system
        b = rhs[: len(chosen)]
        true = reference(P, chosen, b, transposed=transposed)
        columns = [[x.as_integer_ratio() for x in b]]
        found = solve_in_balls(IntegerSystem.of(P, chosen), columns, transposed=transposed)[0]
        for lower, upper, x in zip(found.lower, found.upper, true, strict=True):
            assert Fraction(lower) <= x <= Fraction(upper)
            assert upper - lower <= 2**-51 * x

    def test_a_walk_that_is_left_once_in_1e20_steps(self) -> None:
        """Symmetric between a wall and a narrow door: the time to state i from the wall is i^2, so t_0 - t_i = i^2."""
        n, out = 1_200, Fraction(1, 10**20)
        inner = {i: {i - 1: Fraction(1, 2), i + 1: Fraction(1, 2)} for i in range(1, n - 1)}
        rows = [{1: Fraction(1)}, *inner.values(), {n - 2: 1 - out, n: out}, {n: Fraction(1)}]
        found = solve_enclosed(RationalMatrix.from_rows(rows), np.arange(n), [[Fraction(1)] * n])[0]
        # t_(n-1) = 1 + (1 - out) t_(n-2) and t_(n-2) = t_(n-1) + (n-1)^2 - (n-2)^2
        last = (1 + (1 - out) * ((n - 1) ** 2 - (n - 2) ** 2)) / out
        for i in range(n):
            true = last + (n - 1) ** 2 - i**2
            assert Fraction(found.lower[i]) <= true <= Fraction(found.upper[i])
            assert found.upper[i] - found.lower[i] <= 2**-51 * true

    def test_balls_that_stay_wide_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        P, _ = self.hardly_left_pair()
        system = IntegerSystem.of(P, np.array([0, 1]))
        monkeypatch.setattr(ball_elimination, "_PRECISIONS", (8, 16))
        with pytest.raises(EngineError, match="too ill-conditioned for 16 bits"):
            solve_in_balls(system, [[(1, 3), (0, 1)]], transposed=False)
        monkeypatch.setattr(ball_elimination, "MAX_WORK", -1)
        with pytest.raises(EngineError, match="2 of them lead to one another"):
            solve_in_balls(system, [[(1, 1), (0, 1)]], transposed=False)

    def test_a_solution_in_doubles_is_found_exactly(self) -> None:
        tiny = Fraction(1, 10**15)
        P = RationalMatrix.from_rows([{0: 1 - tiny, 1: tiny / 4, 2: 3 * tiny / 4}, {1: Fraction(1)}, {2: Fraction(1)}])
        found = solve_enclosed(P, np.array([0]), [[tiny / 4]])[0]
        assert (found.lower[0], found.upper[0]) == (0.25, 0.25)

    def test_components_that_nothing_reaches_are_zero(self) -> None:
        half = Fraction(1, 2)
        P = RationalMatrix.from_rows([{0: half, 2: half}, {0: half, 2: half}, {2: Fraction(1)}])
        found = solve_enclosed(P, np.array([0, 1]), [[Fraction(0), Fraction(1, 3)]])[0]
        assert (found.lower[0], found.upper[0]) == (0, 0)

    @staticmethod
    def hardly_left_pair() -> tuple[RationalMatrix, list[Fraction]]:
        """Two states that are left with 1e-30 only, and the expected visits to the first: (1, 1 - e) / (2 e - e^2)."""
        out = Fraction(1, 10**30)
        P = RationalMatrix.from_rows([{1: 1 - out, 2: out}, {0: 1 - out, 2: out}, {2: Fraction(1)}])
        total = 2 * out - out**2
        return P, [1 / total, (1 - out) / total]

    def test_states_that_hardly_let_go(self) -> None:
        P, true = self.hardly_left_pair()
        found = solve_enclosed(P, np.array([0, 1]), [[Fraction(1), Fraction(0)]])[0]
        for lower, upper, x in zip(found.lower, found.upper, true, strict=True):
            assert Fraction(lower) <= x <= Fraction(upper)
            assert upper - lower <= 2**-51 * x

    def test_where_refinement_fails_rationals_or_balls_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        P, true = self.hardly_left_pair()
        transient = IntegerSystem.of(P, np.array([0, 1]))
        factors = transient.factorize()
        monkeypatch.setattr(type(factors), "approximate", lambda self, rhs, *, transposed, tolerance=0.0: 0 * rhs)
        found = EnclosedSolver(transient, factors).solve([[Fraction(1), Fraction(0)]])[0]
        assert Fraction(found.lower[0]) <= true[0] <= Fraction(found.upper[0])
        monkeypatch.setattr(rational_solution, "EXACT_LIMIT", 1)
        found = EnclosedSolver(transient, factors).solve([[Fraction(1), Fraction(0)]])[0]
        assert Fraction(found.lower[0]) <= true[0] <= Fraction(found.upper[0])
        assert found.upper[0] - found.lower[0] <= 2**-51 * true[0]
        with pytest.raises(UnsupportedError, match="too many"):
            solve_system_exact(transient, [[Fraction(1), Fraction(0)]])

    def test_solutions_beyond_doubles(self, monkeypatch: pytest.MonkeyPatch) -> None:
        out = Fraction(1, 10**320)
        P = RationalMatrix.from_rows([{0: 1 - out, 1: out}, {1: Fraction(1)}])
        assert solve_exact(P, np.array([0]), [[Fraction(1)]]) == [[1 / out]]
        found = solve_enclosed(P, np.array([0]), [[Fraction(1)]])[0]
        assert (found.lower[0], found.upper[0]) == (np.finfo(np.float64).max, np.inf)
        monkeypatch.setattr(rational_solution, "EXACT_LIMIT", 0)
        found = solve_enclosed(P, np.array([0]), [[Fraction(1)]])[0]
        assert (found.lower[0], found.upper[0]) == (np.finfo(np.float64).max, np.inf)

    @pytest.mark.parametrize("bad", [Fraction(-1), float("inf"), float("nan")])
    def test_right_hand_sides_that_are_no_amounts(self, bad: Fraction | float) -> None:
        P = RationalMatrix.from_rows([{0: Fraction(1, 2), 1: Fraction(1, 2)}, {1: Fraction(1)}])
        with pytest.raises(ValueError, match="finite and not negative"):
            solve_enclosed(P, np.array([0]), [[bad]])

    def test_tiny_components_keep_their_relative_accuracy(self) -> None:
        n, up, down = 630, Fraction(1, 4), Fraction(3, 4)
        P = RationalMatrix.from_rows(
            [{0: Fraction(1)}, *({i - 1: down, i + 1: up} for i in range(1, n)), {n: Fraction(1)}]
        )
        found = solve_enclosed(P, np.arange(1, n), [[Fraction(0)] * (n - 2) + [up]])[0]
        true = Fraction(2, 3**n - 1)
        assert found.value[0] < 1e-300
        assert Fraction(found.lower[0]) <= true <= Fraction(found.upper[0])
        assert found.upper[0] - found.lower[0] <= 2**-51 * found.value[0]

    def test_states_that_cannot_leave(self) -> None:
        P = RationalMatrix.from_rows([{0: Fraction(1)}, {0: Fraction(1, 2), 2: Fraction(1, 2)}, {2: Fraction(1)}])
        with pytest.raises(ModelError, match="position"):
            solve_exact(P, np.array([0, 1]), [[Fraction(1), Fraction(1)]])

    def test_columns_of_the_wrong_length(self) -> None:
        P = RationalMatrix.from_rows([{1: Fraction(1)}, {1: Fraction(1)}])
        with pytest.raises(ValueError, match="columns of that length"):
            solve_exact(P, np.array([0]), [[Fraction(1), Fraction(1)]])
