"""The accuracy assumed of Storm's doubles, and that large chains are no obstacle to it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.checking.storm_chains import F, operator_of, sticky, truth_on, walk_of

from tracebridge.agreement import compare
from tracebridge.chain.markov import MarkovChain
from tracebridge.checking import check
from tracebridge.checking.storm_formulation import formulate
from tracebridge.checking.storm_solver import SolverChoice, choose_solver
from tracebridge.closedform.modelcheck import rounding_amplification
from tracebridge.errors import EngineError


def choice(chain: MarkovChain, text: str) -> SolverChoice:
    operator = operator_of(text)
    return choose_solver(chain, formulate(operator, "r0"), operator, truth_on(chain))


def amplification(chain: MarkovChain, text: str) -> float:
    return rounding_amplification(chain, operator_of(text), truth_on(chain))


def random_chain(n: int, width: int) -> MarkovChain:
    """A well mixing chain whose last two states absorb."""
    rng = np.random.default_rng(5)
    rows = np.concatenate([np.repeat(np.arange(n - 2), width), [n - 2, n - 1]])
    columns = np.concatenate([rng.integers(0, n, (n - 2) * width), [n - 2, n - 1]])
    matrix = csr_array((np.append(rng.random((n - 2) * width), [1, 1]), (rows, columns)), shape=(n, n))
    matrix.sum_duplicates()
    matrix.data = matrix.data / np.repeat(np.asarray(matrix.sum(axis=1)).ravel(), np.diff(matrix.indptr))
    names = (*(f"s{i}" for i in range(n - 2)), "success", "failure")
    return MarkovChain(states=names, transitions=matrix, initial=np.eye(1, n)[0])


def test_the_graph_loses_nothing_and_stepping_little() -> None:
    chain = sticky(1 - F(1, 10**12))
    eps = 2.0**-52
    assert choice(chain, "P=? [ F true ]").relative_error == pytest.approx(4 * 3 * eps)
    assert choice(chain, 'P=? [ F<=7 "success" ]').relative_error == pytest.approx(4 * 3 * eps * 8)
    assert choice(chain, 'P=? [ F "success" ]').relative_error == pytest.approx(4 * 3 * eps * 1e12, rel=1e-9)


def test_long_corridors_are_measured_by_their_squares() -> None:
    """From the middle of a fair walk on 0..n, its worst state, an end is n^2/4 steps away."""
    for n in (200, 1_400):  # by elimination, and by the bound for large chains
        assert amplification(walk_of(n, F(1, 2)), 'P=? [ F "top" ]') == pytest.approx(n * n / 4, rel=0.12)
    assert choice(walk_of(200, F(1, 2)), 'P=? [ F "top" ]').solver == "elimination"
    assert choice(walk_of(590, F(1, 2)), 'P=? [ F "top" ]').solver == "elimination"
    assert choice(walk_of(1_400, F(6, 10)), 'P=? [ F "top" ]').solver == "gauss-seidel"


def test_a_large_random_chain_is_measured_without_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = random_chain(4_000, 10)
    Q = chain.transitions[:3_998][:, :3_998]
    stay = np.ones(3_998)
    for _ in range(30_000):  # N 1 as the sum of the powers of Q
        stay, before = 1 + Q @ stay, stay
        if np.max(stay - before) < 1e-6 * np.max(stay):
            break

    def factorize(*_: object) -> None:
        raise AssertionError("a rough solution would do")

    monkeypatch.setattr("tracebridge.closedform.conditioning.factorize", factorize)
    found = amplification(chain, 'P=? [ F "success" ]')
    assert stay.max() <= found <= 1.15 * stay.max()


def test_what_doubles_cannot_resolve_is_infinite_and_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    up = walk_of(1_400, F(1, 10))  # 9 ** 1400 steps would be needed against the drift
    trap = MarkovChain(
        states=up.states,
        transitions=csr_array(np.vstack([np.eye(1, 1_401, 1), up.transitions.toarray()[1:]])),
        initial=up.initial,
        labels=dict(up.labels),
    )
    assert amplification(trap, 'P=? [ F "top" ]') == 0  # certain
    assert amplification(trap, 'S=? [ "top" ]') == np.inf
    assert choice(trap, 'S=? [ "top" ]').relative_error == np.inf

    def breaks_down(*_: object, **__: object) -> None:
        raise EngineError("cannot be factorized")

    monkeypatch.setattr("tracebridge.closedform.conditioning.factorize", breaks_down)
    assert amplification(trap, 'S=? [ "top" ]') == np.inf


def test_small_values_of_an_iteration_are_as_inaccurate_as_its_largest() -> None:
    """The iteration ends with 1e-76 where the truth is 1e-110, because nothing that matters changes any more."""
    (agreement,) = compare(check(walk_of(400, F(3, 10)), 'P=? [ F "top" ]'))
    assert agreement.agree is True
