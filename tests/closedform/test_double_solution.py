"""Systems in double-doubles: residuals within their bounds, and enclosures whichever way the equations are solved."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array, diags_array, eye_array, random_array
from tests.closedform.strategies import chains, operators

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform import block_triangular, float_arithmetic, float_equations, krylov, multigrid
from tracebridge.closedform.accurate_product import AccurateProduct
from tracebridge.closedform.band_elimination import BandElimination, bandwidth
from tracebridge.closedform.block_triangular import BlockTriangular, blocks_in_order
from tracebridge.closedform.dense_elimination import DenseElimination
from tracebridge.closedform.double_solution import DoubleSolver, _Approximation
from tracebridge.closedform.double_system import DoubleSystem, Residuals, RightHandSide
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.error_free import DoubleDouble, product_error, two_sum
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.factorization import factorizations
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.closedform.krylov import JumpChainIteration, NoConvergenceError, bicgstab
from tracebridge.closedform.linear_solver import Factorization
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.closedform.multigrid import AggregationMultigrid
from tracebridge.closedform.rational_solution import solve_exact
from tracebridge.closedform.sparse_elimination import SparseElimination
from tracebridge.closedform.sparse_lu import SparseLU, band_entries, is_affordable, is_narrow
from tracebridge.closedform.stochastic_step import StochasticStep
from tracebridge.errors import EngineError, ModelError
from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Label,
    Number,
    Operator,
    Probability,
    Reward,
    StepBound,
    Unary,
)

doubles = st.floats(1e-30, 1e30)


def exactly(x: DoubleDouble) -> list[Fraction]:
    return [Fraction(high) + Fraction(low) for high, low in zip(x.high.tolist(), x.low.tolist(), strict=True)]


@st.composite
def double_chains(draw: st.DrawFn, *, most: int = 12) -> tuple[csr_array, np.ndarray]:
    """Rows of doubles of any size over a ring, so that all states hang together, and a mask of transient states.

    The last state absorbs; every state has some way there, however narrow.
    """
    n = draw(st.integers(3, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.random((n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.1, 0.4, 1.0])))
    weights *= 10.0 ** -rng.integers(0, draw(st.sampled_from([1, 4, 9])), (n, n))
    weights[np.arange(n), (np.arange(n) + 1) % n] += 10.0 ** -draw(st.sampled_from([0, 3, 6]))
    weights[-1] = 0
    weights[-1, -1] = 1
    weights /= weights.sum(axis=1)[:, None]
    active = np.arange(n) < n - 1
    active[draw(st.integers(0, n - 1))] = False
    return csr_array(weights), active


class TestErrorFreeTransformations:
    @given(doubles, doubles, st.sampled_from([1, -1]))
    def test_sums_and_products_are_exact_with_their_errors(self, a: float, b: float, sign: int) -> None:
        x, y = np.array([a]), np.array([sign * b])
        total, error = two_sum(x, y)
        assert Fraction(total[0]) + Fraction(error[0]) == Fraction(a) + sign * Fraction(b)
        product = x * y
        assert Fraction(product[0]) + Fraction(product_error(x, y, product)[0]) == Fraction(a) * sign * Fraction(b)

    @given(doubles, doubles, doubles)
    def test_double_doubles_hold_106_bits(self, a: float, b: float, c: float) -> None:
        x = DoubleDouble(np.array([a]), np.array([0.0])).plus(np.array([b])).plus(np.array([c]))
        true = Fraction(a) + Fraction(b) + Fraction(c)
        assert abs(exactly(x)[0] - true) <= true / 2**103
        assert abs(x.low[0]) <= 2.0**-53 * abs(x.high[0])


class TestAccurateProducts:
    @given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([1, 5, 60, 300]))
    @settings(max_examples=40, deadline=None)
    def test_within_the_bounds(self, seed: int, width: int, spread: int) -> None:
        rng = np.random.default_rng(seed)
        rows, columns = 7, 50
        dense = rng.random((rows, columns)) * 10.0 ** -rng.integers(0, spread, (rows, columns))
        dense *= rng.random((rows, columns)) < width / columns
        matrix = csr_array(dense)
        high = rng.random(columns) * 10.0 ** rng.integers(-spread, spread, columns)
        high[rng.random(columns) < 0.1] = 0
        x = DoubleDouble(high, high * rng.uniform(-1, 1, columns) * 2.0**-53)
        product = AccurateProduct(matrix)
        relative, absolute = product.relative_error(), product.absolute_error()
        found, truth = exactly(product(x)), exactly(x)
        for i in range(rows):
            true = sum((Fraction(a) * truth[j] for j, a in enumerate(dense[i].tolist()) if a), Fraction(0))
            bound = Fraction(relative[i]) * true + Fraction(absolute[i])
            assert abs(found[i] - true) <= bound
            assert true == 0 or relative[i] <= 1e-27

    def test_many_rows(self) -> None:
        """More entries than fit a chunk, empty rows and one row longer than a chunk."""
        rng = np.random.default_rng(3)
        tail = csr_array(random_array((3_000, 40_000), density=1e-3, rng=rng))
        tail.data = np.round(tail.data * 2**20)
        lengths = np.append(np.diff(tail.indptr), 40_000)
        data = np.append(tail.data, np.ones(40_000))
        indptr = np.append(0, np.cumsum(lengths))
        matrix = csr_array((data, np.append(tail.indices, np.arange(40_000)), indptr), shape=(3_001, 40_000))
        matrix.data[: matrix.indptr[10]] = 1
        x = rng.integers(0, 2**20, 40_000).astype(np.float64)
        found = AccurateProduct(matrix)(DoubleDouble(x, np.zeros_like(x)))
        assert np.array_equal(found.high, matrix @ x)  # integers below 2^53: both are exact
        assert not found.low.any()


class TestResiduals:
    @given(double_chains(), st.integers(0, 2**32 - 1))
    @settings(max_examples=50, deadline=None)
    def test_within_the_bounds(self, drawn: tuple[csr_array, np.ndarray], seed: int) -> None:
        P, active = drawn
        rng = np.random.default_rng(seed)
        system = DoubleSystem.of_doubles(P, active)
        boundary, gain = rng.random(P.shape[0]), rng.random(system.size)
        rhs = system.inflow(boundary, gain)
        high = rng.random(system.size) * 10.0 ** rng.integers(-9, 9, system.size)
        x = DoubleDouble(high, high * rng.uniform(-1, 1, system.size) * 2.0**-53)
        residuals = Residuals(system)
        residual, error = residuals(x, rhs)
        step = high * rng.uniform(-1, 1, system.size) * 2.0 ** -rng.integers(0, 60, system.size)
        moved, moved_error = residuals.moved(residual, error, step)
        lower_bounds = [residuals.lower_bound(high, np.full(system.size, wanted)) for wanted in (-np.inf, np.inf)]
        unknowns = dict(zip(np.flatnonzero(active).tolist(), exactly(x), strict=True))
        for i, state in enumerate(unknowns):
            row = {j: Fraction(p) for j, p in enumerate(P[[state]].toarray()[0].tolist()) if p}
            total = sum(row.values())
            b = total * Fraction(gain[i]) + sum(p * Fraction(boundary[j]) for j, p in row.items() if not active[j])
            assert abs(exactly(rhs.value)[i] - b) <= Fraction(rhs.error[i])
            leaving = total - row.get(state, 0)
            inflow = sum(p * unknowns[j] for j, p in row.items() if active[j] and j != state)
            true = b - leaving * unknowns[state] + inflow
            assert abs(Fraction(residual[i]) - true) <= Fraction(error[i])
            onward = {k: p for k, j in enumerate(unknowns) if (p := row.get(j, 0)) and j != state}
            image = leaving * Fraction(high[i]) - sum(p * Fraction(high[k]) for k, p in onward.items())
            assert all(Fraction(lower[i]) <= image for lower in lower_bounds)
            after = true - leaving * Fraction(step[i]) + sum(p * Fraction(step[k]) for k, p in onward.items())
            assert abs(Fraction(moved[i]) - after) <= Fraction(moved_error[i])


def one_way(make: Callable[[csr_array, np.ndarray], Factorization]) -> Callable[[DoubleSystem], DoubleSolver]:
    return lambda system: DoubleSolver(system, iter([lambda: make(system.entries, system.exits)]))


def by_blocks(entries: csr_array, exits: np.ndarray) -> Factorization:
    blocks = blocks_in_order(entries)
    if blocks is None:
        return SparseLU(entries, exits, keep_order=True)
    return BlockTriangular(entries, exits, blocks, lambda Q, out, _: SparseElimination(Q, out))


WAYS: dict[str, Callable[[csr_array, np.ndarray], Factorization]] = {
    "band": BandElimination,
    "dense": lambda Q, exits: DenseElimination(Q.toarray(), exits.copy()),
    "sparse": SparseElimination,
    "LU in order": lambda Q, exits: SparseLU(Q, exits, keep_order=True),
    "LU": lambda Q, exits: SparseLU(Q, exits, keep_order=False),
    "iteration": JumpChainIteration,
    "iteration in single precision": lambda Q, exits: JumpChainIteration(Q, exits, single=True),
    "multigrid": AggregationMultigrid,
    "blocks": by_blocks,
}


ITERATIVE = {"iteration", "iteration in single precision", "multigrid"}


class TestEveryWayEncloses:
    @pytest.mark.parametrize("way", list(WAYS))
    @given(drawn=double_chains(), seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=40, deadline=None)
    def test_against_rationals(self, way: str, drawn: tuple[csr_array, np.ndarray], seed: int) -> None:
        P, active = drawn
        rng = np.random.default_rng(seed)
        system = DoubleSystem.of_doubles(P, active)
        boundary, gain = rng.integers(0, 2, P.shape[0]).astype(np.float64), rng.random(system.size)
        rational = RationalMatrix.from_float(P)
        states = np.flatnonzero(active)
        inflow = [
            Fraction(gain[i]) + sum(p * Fraction(boundary[j]) for j, p in rational.row(s).items() if not active[j])
            for i, s in enumerate(states.tolist())
        ]
        true = solve_exact(rational, states, [inflow])[0]
        patch = pytest.MonkeyPatch()
        patch.setattr(multigrid, "SMALL", 2)
        patch.setattr(block_triangular, "SMALL_COMPONENT", 1)
        try:
            found = one_way(WAYS[way])(system).solve([system.inflow(boundary, gain)])[0]
        except EngineError:
            assert way in ITERATIVE  # not everything mixes, or falls into pairs
            return
        finally:
            patch.undo()
        for lower, upper, x in zip(found.lower, found.upper, true, strict=True):
            assert Fraction(lower) <= x <= Fraction(upper)
            if way not in ITERATIVE:
                assert upper - lower <= 2.0**-51 * x

    @pytest.mark.parametrize("way", list(WAYS))
    def test_both_sides(self, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """``(I - Q) x`` and ``x (I - Q)`` of a chain in two parts, of which one leads to the other."""
        monkeypatch.setattr(multigrid, "SMALL", 8)
        monkeypatch.setattr(block_triangular, "SMALL_COMPONENT", 4)
        rng = np.random.default_rng(7)
        half = 30
        ring = diags_array([1.0, 1.0], offsets=[1, 1 - half], shape=(half, half))
        part = csr_array(ring + random_array((half, half), density=0.1, rng=rng))
        Q = csr_array(block_diag([part, part]) + eye_array(2 * half, k=half))
        Q.setdiag(0.0)
        Q.eliminate_zeros()
        exits = np.full(2 * half, 0.3)
        leaving = np.asarray(Q.sum(axis=1)).ravel() + exits
        factors = WAYS[way](Q, exits)
        x = rng.random((2 * half, 2)) + 0.5
        for transposed, matrix in ((False, Q), (True, Q.T)):
            found = factors.approximate(leaving[:, None] * x - matrix @ x, transposed=transposed)
            assert np.allclose(found, x, rtol=1e-3 if "single" in way else 1e-5)  # several digits

    def test_what_nothing_reaches_is_zero(self) -> None:
        P = csr_array(np.array([[0, 1, 0, 0], [0.5, 0, 0, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=float))
        active = np.array([True, True, False, False])
        system = DoubleSystem.of_doubles(P, active)
        found = DoubleSolver(system).solve([system.inflow(np.array([0.0, 0, 1, 0]), None)])[0]
        assert found.lower.tolist() == found.upper.tolist() == [0, 0]

    @pytest.mark.parametrize("n", [600, 1_200])
    def test_small_unknowns_keep_their_digits(self, n: int) -> None:
        """Far from the goal of a walk with drift away from it: 3^-i is proven by elimination, down to underflow."""
        inner = np.arange(1, n)
        P = csr_array(
            (
                np.r_[np.full(n - 1, 0.25), np.full(n - 1, 0.75), 1, 1],
                (np.r_[inner, inner, 0, n], np.r_[inner + 1, inner - 1, 0, n]),
            )
        )
        active = np.isin(np.arange(n + 1), inner)
        system = DoubleSystem.of_doubles(P, active)
        found = DoubleSolver(system).solve([system.inflow((np.arange(n + 1) == n).astype(float), None)])[0]
        for i in inner.tolist():
            true = Fraction(3**i - 1, 3**n - 1)
            assert Fraction(found.lower[i - 1]) <= true <= Fraction(found.upper[i - 1])
            assert found.upper[i - 1] - found.lower[i - 1] <= 2.0**-51 * true or true < 1e-290

    def test_integers_over_their_denominators(self) -> None:
        thirds = RationalMatrix.from_rows(
            [
                {0: Fraction(1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3)},
                {0: Fraction(2, 7), 2: Fraction(5, 7)},
                {2: Fraction(1)},
            ]
        )
        active = np.array([True, True, False])
        system = DoubleSystem.of_integers(thirds, active)
        found = DoubleSolver(system).solve([system.inflow(np.zeros(3), np.ones(2))])[0]
        true = solve_exact(thirds, np.array([0, 1]), [[Fraction(1), Fraction(1)]])[0]
        assert all(Fraction(lo) <= x <= Fraction(up) for lo, up, x in zip(found.lower, found.upper, true, strict=True))


class TestResidualsThatAreFollowed:
    """The residual after a step comes from the one before; what is lost on the way is in the bounds."""

    @given(double_chains(), st.integers(0, 2**32 - 1), st.integers(1, 6))
    @settings(max_examples=40, deadline=None)
    def test_many_steps_later(self, drawn: tuple[csr_array, np.ndarray], seed: int, steps: int) -> None:
        P, active = drawn
        rng = np.random.default_rng(seed)
        system = DoubleSystem.of_doubles(P, active)
        rhs = system.inflow(rng.random(P.shape[0]), rng.random(system.size))
        residuals = Residuals(system)
        here = _Approximation.nothing(rhs)
        for i in range(steps):
            size = 10.0 ** rng.integers(-3, 3, system.size) * 2.0 ** -float(20 * i)
            here = here.moved(rng.uniform(-1, 1, system.size) * size, residuals)
        again = here.anew(residuals, rhs)
        assert np.all(here.x.high >= 0)
        assert not again.drift.any()
        leaving, entries, drift = system.diagonal.high, system.entries, here.drift
        apart = np.abs(here.residual - again.residual)
        assert np.all(apart <= (here.uncertain + again.uncertain + leaving * drift + entries @ drift) * (1 + 1e-12))

    def test_one_residual_in_twice_the_precision_is_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(3)
        P = rng.random((40, 40))
        P[-1] = np.arange(40) == 39
        system = DoubleSystem.of_doubles(csr_array(P / P.sum(axis=1)[:, None]), np.arange(40) < 39)
        calls = []
        original = Residuals.__call__
        monkeypatch.setattr(Residuals, "__call__", lambda *args: calls.append(1) or original(*args))
        found = DoubleSolver(system).solve([system.inflow(np.zeros(40), np.ones(39))])[0]
        assert len(calls) == 1
        assert np.all(found.upper - found.lower <= 2.0**-51 * found.value)


class TestWhereNoWayLeads:
    def test_failures_are_told_one_by_one(self) -> None:
        P = csr_array(np.array([[0, 0.5, 0.5], [0.5, 0, 0.5], [0, 0, 1]]))
        system = DoubleSystem.of_doubles(P, np.array([True, True, False]))

        def fails() -> Factorization:
            raise EngineError("the first way is closed")

        class Useless(DenseElimination):
            def _solve(self, rhs: np.ndarray, *, transposed: bool, tolerance: float | None) -> np.ndarray:
                return 0 * rhs

        ways = iter([fails, lambda: Useless(system.entries.toarray(), system.exits.copy())])
        solver = DoubleSolver(system, ways)
        with pytest.raises(EngineError, match="first way is closed; a solution does not come near enough"):
            solver.solve([system.inflow(np.zeros(3), np.ones(2))])
        with pytest.raises(EngineError, match="first way is closed"):
            solver.positive_image()

    def test_a_right_hand_side_that_is_no_amount(self) -> None:
        bad = np.array([np.nan])
        with pytest.raises(ValueError, match="finite and not negative"):
            RightHandSide(value=DoubleDouble(bad, bad), error=bad).in_range()

    def test_a_large_set_that_cannot_be_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(float_equations, "INTEGER_STATES", 0)
        monkeypatch.setattr(float_equations, "MOST_INTEGER_STATES", 0)
        P = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1.0]])
        chain = MarkovChain(states=("a", "b", "c"), transitions=P, initial=np.array([1.0, 0, 0]))
        zero = EnclosureVector.from_floats(np.zeros(3))
        with pytest.raises(ModelError, match="cannot be left"):
            FloatArithmetic(chain).solve(np.array([True, True, False]), zero, zero)


class TestOperators:
    """The whole evaluator with every system in double-doubles, however small, against rationals."""

    @given(st.data(), operators(), st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_doubles_enclose_rationals(self, data: st.DataObject, operator: Operator, exact: bool) -> None:
        chain = data.draw(chains(sticky=data.draw(st.booleans()), exact=exact))
        patch = pytest.MonkeyPatch()
        patch.setattr(float_equations, "INTEGER_STATES", 0)
        try:
            enclosed = evaluate_operator(FloatArithmetic(chain), operator, lambda formula: holds(chain, formula))
        finally:
            patch.undo()
        true = evaluate_operator(ExactArithmetic(chain), operator, lambda formula: holds(chain, formula)).value
        for lower, upper, x in zip(enclosed.lower, enclosed.upper, true, strict=True):
            assert x != x or lower <= x <= upper  # noqa: PLR0124 - NaN alone differs: there is no number to enclose


def holds(chain: MarkovChain, formula: Formula) -> np.ndarray:
    assert isinstance(formula, Label)
    return chain.label(formula.name)


class TestFarAhead:
    """Bounds of 10^12 steps, on more states than are raised to a power."""

    @staticmethod
    def sticky(n: int, leave: float) -> MarkovChain:
        """A random chain of n states that each end in ``goal`` or ``failure`` with about this probability."""
        rng = np.random.default_rng(n)
        P = np.zeros((n + 2, n + 2))
        P[:n, :n] = rng.random((n, n)) * (rng.random((n, n)) < 10 / n) + 0.01 * np.eye(n)
        P[:n] *= (1 - leave) / P[:n].sum(axis=1)[:, None]
        P[:n, n:] = leave * rng.dirichlet([1, 1], n)
        P[n, n] = P[n + 1, n + 1] = 1
        P /= P.sum(axis=1)[:, None]
        labels = {"goal": np.arange(n + 2) == n}
        reward = RewardStructure(state=(np.arange(n + 2) < n).astype(np.float64))
        initial = (np.arange(n + 2) == 0).astype(np.float64)
        return MarkovChain(
            states=tuple(f"s{i}" for i in range(n + 2)),
            transitions=P,
            initial=initial,
            labels=labels,
            rewards={"steps": reward},
        )

    @pytest.mark.parametrize("leave", [0.1, 1e-6, 1e-9])
    def test_the_limit_is_reached(self, leave: float, monkeypatch: pytest.MonkeyPatch) -> None:
        """10^12 steps are 10^3 times the expected time, or more: the bounds are those of the limit."""
        monkeypatch.setattr(StochasticStep, "apply", lambda self, x: pytest.fail("no step is to be taken"))
        monkeypatch.setattr(float_arithmetic, "power_of_steps", lambda *_: pytest.fail("no power is to be taken"))
        chain = self.sticky(200, leave)
        steps = Number(Fraction(10**12), True)
        goal = Label("goal")
        for far, ever in (
            (Probability(Eventually(goal, StepBound(upper=steps))), Probability(Eventually(goal))),
            (Probability(Globally(Unary("!", goal), StepBound(upper=steps))), Probability(Globally(Unary("!", goal)))),
            (Reward(CumulativeReward(steps), "steps"), Reward(CumulativeReward(), "steps")),
        ):
            a, b = (
                evaluate_operator(FloatArithmetic(chain), operator, lambda formula: self.truth(chain, formula))
                for operator in (far, ever)
            )
            assert np.all(a.lower <= b.lower)
            assert np.all(b.upper <= a.upper)
            assert np.all(a.upper - a.lower <= 1e-15 * b.upper)

    def test_a_power_where_steps_are_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Long before the limit; no more steps can be taken than it costs to square the matrix."""
        chain = self.sticky(30, 1e-4)
        goal = Probability(Eventually(Label("goal"), StepBound(upper=Number(Fraction(20_000), True))))
        monkeypatch.setattr(float_arithmetic, "_STEP_OVERHEAD", 1e-9)  # a power is never the lesser work
        by_steps = evaluate_operator(FloatArithmetic(chain), goal, lambda formula: self.truth(chain, formula))
        monkeypatch.setattr(float_arithmetic, "MAX_STEPS", 10)
        found = evaluate_operator(FloatArithmetic(chain), goal, lambda formula: self.truth(chain, formula))
        assert np.all(found.lower <= by_steps.upper)
        assert np.all(by_steps.lower <= found.upper)
        assert np.all(found.upper - found.lower <= 1e-15)

    def test_on_the_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where steps are cut off long before the limit the bounds contain what ball arithmetic finds."""
        chain = self.sticky(60, 1e-4)
        goal = Probability(Eventually(Label("goal"), StepBound(upper=Number(Fraction(20_000), True))))
        true = evaluate_operator(FloatArithmetic(chain), goal, lambda formula: self.truth(chain, formula))
        monkeypatch.setattr(float_arithmetic, "POWER_STATES", 0)
        monkeypatch.setattr(float_arithmetic, "MAX_STEPS", 10)
        found = evaluate_operator(FloatArithmetic(chain), goal, lambda formula: self.truth(chain, formula))
        assert np.all(found.lower <= true.upper)
        assert np.all(true.lower <= found.upper)
        assert found.upper[0] - found.lower[0] <= 0.4  # exp(-2) of the way is left, against all of it without t

    @staticmethod
    def truth(chain: MarkovChain, formula: Formula) -> np.ndarray:
        return ~chain.label("goal") if isinstance(formula, Unary) else holds(chain, formula)


class TestIteration:
    def test_it_gives_up_without_progress(self) -> None:
        """A rotation of a ring has no part that a polynomial of low degree would find first."""
        m = 4_000
        ring = csr_array(diags_array([1.0, 1.0], offsets=[1, 1 - m], shape=(m, m)))
        exits = np.zeros(m)
        exits[0] = 1.0
        iteration = JumpChainIteration(ring, exits)
        assert not iteration.converges()
        with pytest.raises(NoConvergenceError):
            iteration.solve(exits)

    @pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
    def test_any_scale(self, scale: float) -> None:
        rng = np.random.default_rng(0)
        matrix = np.eye(20) - 0.04 * rng.random((20, 20))
        x, ratio = bicgstab(lambda v: matrix @ v, scale * np.ones(20), tolerance=1e-12)
        assert ratio <= 1e-12
        assert np.allclose(matrix @ (x / scale), 1, rtol=1e-10)

    def test_single_precision_is_enough(self) -> None:
        """A few digits at a time, with residuals in twice the precision: as good as elimination."""
        rng = np.random.default_rng(8)
        n = 800
        P = csr_array(random_array((n, n), density=0.01, rng=rng) + 0.2 * eye_array(n, k=1) + 0.3 * eye_array(n))
        dense = P.toarray()
        dense[:, -1] += 1e-3
        dense[-1] = 0
        dense[-1, -1] = 1
        system = DoubleSystem.of_doubles(csr_array(dense / dense.sum(axis=1)[:, None]), np.arange(n) < n - 1)
        rhs = system.inflow(np.zeros(n), rng.random(n - 1))
        iteration = JumpChainIteration(system.entries, system.exits, single=True)
        assert iteration.converges()
        found = DoubleSolver(system, iter([lambda: iteration])).solve([rhs])[0]
        good = one_way(WAYS["dense"])(system).solve([rhs])[0]
        assert np.all(found.lower <= good.upper)
        assert np.all(good.lower <= found.upper)
        assert np.all(found.upper - found.lower <= 2.0**-51 * found.value)
        alone = iteration.solve(rng.random((n - 1, 2)))
        assert alone.shape == (n - 1, 2)
        x = rng.random(n - 1) + 0.5
        b = system.diagonal.high * x - system.entries @ x
        assert np.allclose(iteration.solve(np.maximum(b, 0)) - iteration.solve(np.maximum(-b, 0)), x, rtol=1e-10)

    def test_single_precision_does_not_see_a_narrow_exit(self) -> None:
        """Probabilities of 1e-12 are below its rounding: it is found out, and double precision does it."""
        rng = np.random.default_rng(9)
        n = 2_500
        Q = csr_array(random_array((n, n), density=4e-3, rng=rng) + eye_array(n, k=1) + eye_array(n, k=1 - n))
        Q.setdiag(0.0)
        Q.eliminate_zeros()
        exits = np.full(n, 1e-9)
        assert not JumpChainIteration(Q, exits, single=True).converges()
        assert JumpChainIteration(Q, exits).converges()

    @pytest.mark.parametrize(("entry", "better"), [(0.5, True), (1e-35, False), (1e35, False)])
    def test_when_single_precision_is_better(self, entry: float, better: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        Q = csr_array(np.array([[0.0, entry], [1.0, 0.0]]))
        assert not JumpChainIteration.better_in_single(Q, np.ones(2))  # it is small
        monkeypatch.setattr(krylov, "SINGLE_ENTRIES", 2)
        assert JumpChainIteration.better_in_single(Q, np.ones(2)) == better
        assert sum(1 for _ in factorizations(csr_array(Q), np.ones(2))) == 1  # so few states are eliminated anyway

    def test_nothing_to_do(self) -> None:
        x, ratio = bicgstab(lambda v: v, np.zeros(3), tolerance=0.1)
        assert not x.any()
        assert ratio == 0

    def test_zero_products_end_it(self) -> None:
        """The shadow residual may be orthogonal to the image of a direction: then there is no next step."""
        quarter_turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
        _, ratio = bicgstab(lambda v: quarter_turn @ v, np.array([1.0, 0.0]), tolerance=1e-9)
        assert ratio == 1


class TestShapes:
    @staticmethod
    def grid(k: int) -> csr_array:
        path = diags_array([1.0, 1.0], offsets=[1, -1], shape=(k, k))
        return csr_array(eye_array(k).tocsr()[:, :]) if k == 1 else csr_array(_kron_sum(path, k))

    def test_corridors_are_narrow(self) -> None:
        corridor = csr_array(diags_array([1.0, 1.0], offsets=[1, -1], shape=(900, 900)))
        assert is_narrow(corridor)
        assert band_entries(corridor) == 2 * 899
        assert bandwidth(corridor) == 1

    @pytest.mark.parametrize("m", [2, 3])
    def test_a_band_that_is_singular_in_doubles(self, m: int) -> None:
        """An exit of 1e-30 beside a mass of one is lost in the sum."""
        path = csr_array(diags_array([1.0, 1.0], offsets=[1, -1], shape=(m, m)))
        with pytest.raises(EngineError, match="pivot is zero"):
            BandElimination(path, np.array([1e-30, *[0.0] * (m - 1)]))

    @pytest.mark.parametrize("width", [1, 2, 8])
    def test_bands_of_any_width(self, width: int) -> None:
        rng = np.random.default_rng(width)
        m = 50
        offsets = [*range(-width, 0), *range(1, width + 1)]
        Q = csr_array(diags_array([rng.random(m - abs(k)) for k in offsets], offsets=offsets, shape=(m, m)))
        exits = rng.random(m)
        matrix = np.diag(Q.sum(axis=1) + exits) - Q.toarray()
        factors = BandElimination(Q, exits)
        x = rng.random((m, 3))
        assert bandwidth(Q) == width
        assert np.allclose(factors.approximate(matrix @ x, transposed=False), x, rtol=1e-9)
        assert np.allclose(factors.approximate(matrix.T @ x, transposed=True), x, rtol=1e-9)

    def test_grids_are_affordable_in_any_order(self) -> None:
        grid = self.grid(60)
        shuffled = np.random.default_rng(1).permutation(3_600)
        assert not is_narrow(grid)
        assert is_affordable(csr_array(grid[shuffled][:, shuffled]))

    def test_what_hangs_together_at_random_is_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracebridge.closedform.sparse_lu.MOST_ENTRIES", 10**6)
        random = csr_array(random_array((3_000, 3_000), density=2e-3, rng=np.random.default_rng(1)))
        assert not is_affordable(random)

    @pytest.mark.parametrize("shape", ["grid", "clusters"])
    def test_multigrid_on_what_mixes_slowly(self, shape: str) -> None:
        if shape == "grid":
            Q, exits = self.grid(70), np.zeros(4_900)
            exits[0] = 1.0
        else:
            rng = np.random.default_rng(2)
            parts = [
                csr_array(random_array((900, 900), density=8 / 900, rng=rng) + eye_array(900, k=1)) for _ in range(4)
            ]
            Q = csr_array(block_diag(parts) + 1e-6 * random_array((3_600, 3_600), density=1 / 3_600, rng=rng))
            Q.setdiag(0.0)
            Q.eliminate_zeros()
            exits = np.full(3_600, 1e-8)
        factors = AggregationMultigrid(Q, exits)
        assert np.allclose(factors.approximate(exits, transposed=False, tolerance=1e-10), 1, rtol=1e-3)

    def test_blocks_follow_the_runs(self) -> None:
        """Two components of three states each and single states around them."""
        rows = [0, 1, 2, 2, 3, 4, 5, 6, 6]
        columns = [1, 2, 0, 3, 4, 5, 3, 0, 7]
        pattern = csr_array((np.ones(9), (rows, columns)), shape=(8, 8))
        patch = pytest.MonkeyPatch()
        patch.setattr(block_triangular, "SMALL_COMPONENT", 2)
        blocks = blocks_in_order(pattern)
        patch.undo()
        assert blocks is not None
        position = np.empty(8, dtype=int)
        for k, block in enumerate(blocks):
            position[block.states] = k
            assert block.connected == (len(block.states) == 3)
        assert all(position[i] >= position[j] for i, j in zip(rows, columns, strict=True))
        assert sorted(np.concatenate([block.states for block in blocks]).tolist()) == list(range(8))
        assert blocks_in_order(csr_array(np.array([[0.0, 1], [1, 0]]))) is None

    def test_ways_in_order(self) -> None:
        """The quick ones first; a chain that falls apart is taken apart before anything is tried on the whole."""
        corridor = csr_array(diags_array([1.0], offsets=[1], shape=(3_000, 3_000)))
        exits = np.full(3_000, 0.5)
        assert isinstance(next(factorizations(corridor, exits))(), BandElimination)
        pairs = csr_array(diags_array([1.0, 1.0], offsets=[1, 12], shape=(3_000, 3_000)))
        assert isinstance(next(factorizations(pairs, exits))(), SparseLU)
        shuffled = np.random.default_rng(0).permutation(3_000)
        scattered = csr_array(corridor[shuffled][:, shuffled])
        assert isinstance(next(factorizations(scattered, exits))(), JumpChainIteration)
        made = [type(make()) for make in list(factorizations(scattered, exits))[1:2]]
        assert made == [BlockTriangular]


def _kron_sum(path: csr_array, k: int) -> csr_array:
    from scipy.sparse import kron

    return kron(path, eye_array(k)) + kron(eye_array(k), path)


def test_an_iteration_that_ends_early_is_still_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds come from the residual: fewer steps make them wider or lead elsewhere, never wrong."""
    rng = np.random.default_rng(4)
    n = 300
    P = csr_array(random_array((n, n), density=0.05, rng=rng) + 0.2 * eye_array(n, k=1))
    dense = P.toarray()
    dense[:, -1] += 0.1
    dense[-1] = 0
    dense[-1, -1] = 1
    P = csr_array(dense / dense.sum(axis=1)[:, None])
    active = np.arange(n) < n - 1
    system = DoubleSystem.of_doubles(P, active)
    rhs = system.inflow(np.zeros(n), np.ones(n - 1))
    good = one_way(WAYS["dense"])(system).solve([rhs])[0]
    monkeypatch.setattr(krylov, "_ITERATIONS", 4)
    rough = one_way(JumpChainIteration)(system).solve([rhs])[0]
    assert np.all(rough.lower <= good.upper)
    assert np.all(good.lower <= rough.upper)
