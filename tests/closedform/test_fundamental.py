"""Every matrix is checked in Fractions against the equations that define it: they have one solution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.closedform import fundamental
from tracebridge.closedform.fundamental import (
    absorption_probabilities,
    absorption_time_variance,
    expected_visits,
    fundamental_matrix,
    hitting_probabilities,
    long_run_outcomes,
    long_run_reliability,
    long_run_unreliability,
    mean_time_to_absorption,
    visit_variances,
)
from tracebridge.errors import ModelError, UnsupportedError

F = Fraction
law = settings(deadline=None, max_examples=40)


def make_chain(rows: list[list[Fraction]], initial: list[Fraction], n_absorbing: int) -> MarkovChain:
    """Transient rows over all states, absorbing states last; the first of them is success."""
    n = len(rows) + n_absorbing
    table = [dict(enumerate(row)) for row in rows] + [{j: F(1)} for j in range(len(rows), n)]
    return MarkovChain(
        states=(*(f"s{i}" for i in range(len(rows))), *(f"end{j}" for j in range(n_absorbing))),
        transitions=RationalMatrix.from_rows(table),
        initial=RationalVector.from_fractions(initial),
        labels={"success": np.arange(n) == len(rows), "failure": np.arange(n) == len(rows) + 1},
    )


def in_doubles(chain: MarkovChain) -> MarkovChain:
    return MarkovChain(states=chain.states, transitions=chain.transitions, initial=chain.initial, labels=chain.labels)


def distribution(weights: list[int]) -> list[Fraction]:
    return [F(weight, sum(weights)) for weight in weights]


@st.composite
def absorbing_chains(draw: st.DrawFn, max_transient: int = 5, largest: int = 10**6) -> MarkovChain:
    """Exact chains, often sticky, with one to three absorbers: state i leads to i + 1 or an absorber, and anywhere."""
    m = draw(st.integers(1, max_transient))
    a = draw(st.integers(1, 3))
    weight = st.one_of(st.just(0), st.integers(0, 5), st.integers(1, largest))
    rows = []
    for i in range(m):
        weights = draw(st.lists(weight, min_size=m + a, max_size=m + a))
        weights[draw(st.sampled_from([i + 1, *range(m, m + a)]))] += 1
        rows.append(distribution(weights))
    start = draw(st.lists(st.integers(0, 3), min_size=m + a, max_size=m + a).filter(any))
    return make_chain(rows, distribution(start), a)


# Spec of the running example: rows s0, s1, s2 over s0, s1, s2 | success, failure.
TENTHS = [[1, 5, 4, 0, 0], [1, 2, 3, 3, 1], [0, 1, 6, 0, 3]]


@pytest.fixture
def example() -> MarkovChain:
    rows = [[F(x, 10) for x in row] for row in TENTHS]
    return make_chain(rows, [F(1), F(0), F(0), F(0), F(0)], 2)


def exact_blocks(chain: MarkovChain) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Q, R, and the initial mass on transient and on absorbing states, in Fractions."""
    form = AbsorbingChain(chain=chain)
    P = np.full((chain.n_states, chain.n_states), F(0), dtype=object)
    for i in range(chain.n_states):
        for j, value in chain.exact_transitions().row(i).items():
            P[i, j] = value
    start = np.array(chain.exact_initial(), dtype=object)
    m, a = form.transient, form.absorbing
    return P[np.ix_(m, m)], P[np.ix_(m, a)], start[m], start[a]


class TestGoldenNumbers:
    def test_where_runs_end(self, example: MarkovChain) -> None:
        B = absorption_probabilities(example, exact=True)
        assert B[:, 0].tolist() == [F(24, 79), F(36, 79), F(9, 79)]
        assert long_run_reliability(example, exact=True) == F(24, 79)
        assert long_run_reliability(example) == pytest.approx(24 / 79, rel=1e-15)

    def test_how_long_runs_take(self, example: MarkovChain) -> None:
        t = mean_time_to_absorption(example, exact=True)
        assert t.values.tolist() == [F(1000, 237), F(710, 237), F(770, 237)]
        assert t.overall == t["s0"] == F(1000, 237)
        assert mean_time_to_absorption(example).values == pytest.approx([1000 / 237, 710 / 237, 770 / 237], rel=1e-15)

    def test_one_state_is_geometric(self) -> None:
        # Runs end at each step with probability 1/5: mean 5, variance (1 - 1/5) / (1/5)^2 = 20.
        chain = make_chain([[F(4, 5), F(3, 20), F(1, 20)]], [F(1), F(0), F(0)], 2)
        assert mean_time_to_absorption(chain, exact=True).overall == 5
        assert absorption_time_variance(chain, exact=True).overall == 20
        assert visit_variances(chain, exact=True)[0, 0] == 20
        assert hitting_probabilities(chain, exact=True)[0, 0] == F(4, 5)

    def test_fair_coin_mixture_with_runs_without_a_step(self) -> None:
        # Half the runs take no step, half take exactly two: mean 1, variance 1.
        chain = make_chain([[F(0), F(1), F(0)], [F(0), F(0), F(1)]], [F(1, 2), F(0), F(1, 2)], 1)
        assert mean_time_to_absorption(chain, exact=True).overall == 1
        assert absorption_time_variance(chain, exact=True).overall == 1
        assert absorption_time_variance(chain).overall == pytest.approx(1, rel=1e-15)


class TestLaws:
    @law
    @given(absorbing_chains())
    def test_fundamental_matrix_inverts(self, chain: MarkovChain) -> None:
        Q, R, start, absorbed = exact_blocks(chain)
        N = fundamental_matrix(chain, exact=True)
        identity = np.vectorize(F, otypes=[object])(np.eye(len(Q), dtype=int))
        assert np.all((identity - Q) @ N == identity)
        assert np.all(expected_visits(chain, exact=True) == start @ N)
        assert np.all(absorption_probabilities(chain, exact=True) == N @ R)
        assert np.all(mean_time_to_absorption(chain, exact=True).values == N.sum(axis=1))
        assert list(long_run_outcomes(chain, exact=True).values()) == list(start @ N @ R + absorbed)

    @law
    @given(absorbing_chains())
    def test_outcomes_are_a_distribution(self, chain: MarkovChain) -> None:
        assert np.all(absorption_probabilities(chain, exact=True).sum(axis=1) == 1)
        assert sum(long_run_outcomes(chain, exact=True).values()) == 1
        reliability = long_run_reliability(chain, exact=True)
        assert reliability + long_run_unreliability(chain, exact=True) == 1
        assert reliability == long_run_outcomes(chain, exact=True)["end0"]

    @law
    @given(absorbing_chains())
    def test_variances_follow_from_second_moments(self, chain: MarkovChain) -> None:
        Q, _, start, _ = exact_blocks(chain)
        N = fundamental_matrix(chain, exact=True)
        # Second moments: E_i[T^2] = 1 + 2 (Q t)_i + (Q E[T^2])_i, and for visits V to j likewise when i = j.
        t = mean_time_to_absorption(chain, exact=True)
        variance = absorption_time_variance(chain, exact=True)
        second = variance.values + t.values**2
        assert np.all(second == 1 + 2 * (Q @ t.values) + Q @ second)
        assert variance.overall == start @ second - t.overall**2
        visits = visit_variances(chain, exact=True) + N**2
        at_home = np.diag(1 + 2 * (Q @ N).diagonal())
        assert np.all(visits == at_home + Q @ visits)

    @law
    @given(absorbing_chains())
    def test_hitting_probabilities_look_one_step_ahead(self, chain: MarkovChain) -> None:
        Q, *_ = exact_blocks(chain)
        H = hitting_probabilities(chain, exact=True)
        reached_next = H.copy()
        np.fill_diagonal(reached_next, F(1))  # once at j it has been hit
        assert np.all(Q @ reached_next == H)

    @settings(law, max_examples=20)
    @given(absorbing_chains(largest=10**13))
    def test_doubles_keep_their_relative_accuracy(self, chain: MarkovChain) -> None:
        for function in (fundamental_matrix, absorption_probabilities, expected_visits, hitting_probabilities):
            exact = function(chain, exact=True).astype(float)
            assert function(chain) == pytest.approx(exact, rel=1e-13, abs=0), function.__name__
        for function in (mean_time_to_absorption, absorption_time_variance):
            exact_values = function(chain, exact=True)
            values = function(chain)
            assert values.overall == pytest.approx(float(exact_values.overall), rel=1e-12, abs=1e-24)
            assert values.values == pytest.approx(exact_values.values.astype(float), rel=1e-12, abs=1e-24)
        for function in (long_run_reliability, long_run_unreliability):
            assert function(chain) == pytest.approx(float(function(chain, exact=True)), rel=1e-13, abs=0)
        exact_variances = visit_variances(chain, exact=True).astype(float)
        scale = fundamental_matrix(chain).max() ** 2
        assert visit_variances(chain) == pytest.approx(exact_variances, rel=1e-12, abs=1e-15 * scale)

    @law
    @given(absorbing_chains(max_transient=3))
    def test_a_row_of_doubles_stands_for_the_row_over_its_sum(self, chain: MarkovChain) -> None:
        rounded = in_doubles(chain)
        assert absorption_probabilities(rounded, exact=True).sum(axis=1).tolist() == [1] * len(
            AbsorbingChain(chain=chain).transient
        )
        assert float(mean_time_to_absorption(rounded, exact=True).overall) == pytest.approx(
            mean_time_to_absorption(rounded).overall, rel=1e-13
        )


class TestTinyExits:
    @pytest.mark.parametrize("exit_probability", [F(1, 10**8), F(1, 10**12), F(1, 10**14)])
    def test_nothing_cancels(self, exit_probability: Fraction) -> None:
        """Two states that hand a run to and fro, and let go of it with a tiny probability."""
        e = exit_probability
        rows = [[F(0), 1 - e, e / 4, e * 3 / 4], [1 - 2 * e, F(0), e, e]]
        chain = make_chain(rows, [F(1), F(0), F(0), F(0)], 2)
        exact = absorption_probabilities(chain, exact=True)
        # By hand: h0 = e/4 + (1-e) h1 and h1 = e + (1-2e) h0.
        by_hand = (e / 4 + (1 - e) * e) / (1 - (1 - e) * (1 - 2 * e))
        assert exact[0, 0] == by_hand
        assert absorption_probabilities(chain)[0, 0] == pytest.approx(float(by_hand), rel=4e-16)
        time = mean_time_to_absorption(chain, exact=True).overall
        assert mean_time_to_absorption(chain).overall == pytest.approx(float(time), rel=4e-16)

    def test_unreliability_below_rounding_of_one(self) -> None:
        e = F(1, 10**20)
        chain = make_chain([[F(1, 2), F(1, 2) - e, e]], [F(1), F(0), F(0)], 2)
        assert long_run_unreliability(chain) == pytest.approx(2e-20, rel=1e-15)
        assert long_run_reliability(chain) == 1.0

    def test_certain_success_has_no_failure_at_all(self) -> None:
        chain = make_chain([[F(1, 3), F(2, 3), F(0)]], [F(1), F(0), F(0)], 2)
        assert long_run_unreliability(chain) == 0.0
        assert long_run_reliability(chain) == 1.0


class TestTargets:
    def test_several_labels_and_names(self) -> None:
        chain = make_chain([[F(0), F(1, 2), F(1, 3), F(1, 6)]], [F(1), F(0), F(0), F(0)], 3)
        assert long_run_reliability(chain, target="end2", exact=True) == F(1, 6)
        assert long_run_reliability(chain, target=["success", "end2"], exact=True) == F(2, 3)
        assert long_run_reliability(chain, target=[], exact=True) == 0
        assert long_run_unreliability(chain, exact=True) == F(1, 2)  # failure and any other absorber

    def test_unknown(self, example: MarkovChain) -> None:
        with pytest.raises(ModelError, match=r'unknown label "sucess".*did you mean "success"'):
            long_run_reliability(example, target="sucess")

    def test_transient(self, example: MarkovChain) -> None:
        with pytest.raises(ModelError, match="\"s1\" holds in the transient state 's1'"):
            long_run_reliability(example, target="s1")

    def test_not_absorbing(self) -> None:
        swap = MarkovChain(states=("a", "b"), transitions=np.array([[0.0, 1.0], [1.0, 0.0]]), initial=[1.0, 0.0])
        with pytest.raises(ModelError, match=r"not an absorbing chain.*'a', 'b'"):
            mean_time_to_absorption(swap)


class TestShapes:
    def test_absorbing_states_anywhere(self) -> None:
        """State order is the chain's: results are aligned with the transient and absorbing states among it."""
        P = RationalMatrix.from_rows([{0: F(1)}, {0: F(1, 4), 2: F(3, 4)}, {2: F(1)}, {1: F(1)}])
        chain = MarkovChain(states=("good", "work", "bad", "plan"), transitions=P, initial=[0.0, 0.0, 0.0, 1.0])
        assert absorption_probabilities(chain).tolist() == [[0.25, 0.75], [0.25, 0.75]]
        assert mean_time_to_absorption(chain).to_dict() == {"values": {"work": 1.0, "plan": 2.0}, "overall": 2.0}
        assert long_run_outcomes(chain) == {"good": 0.25, "bad": 0.75}
        assert mean_time_to_absorption(chain, exact=True).to_dict()["overall"] == "2"
        with pytest.raises(KeyError):
            mean_time_to_absorption(chain)["good"]

    @pytest.mark.parametrize("exact", [False, True])
    def test_every_run_without_a_step(self, exact: bool) -> None:
        chain = make_chain([], [F(2, 3), F(1, 3)], 2)
        assert fundamental_matrix(chain, exact=exact).shape == (0, 0)
        assert absorption_probabilities(chain, exact=exact).shape == (0, 2)
        assert visit_variances(chain, exact=exact).shape == (0, 0)
        assert mean_time_to_absorption(chain, exact=exact).overall == 0
        assert absorption_time_variance(chain, exact=exact).overall == 0
        assert long_run_reliability(chain, exact=exact) == pytest.approx(2 / 3)

    def test_html_is_escaped(self) -> None:
        P = RationalMatrix.from_rows([{1: F(1)}, {1: F(1)}])
        chain = MarkovChain(states=("<b>", "end"), transitions=P, initial=[1.0, 0.0])
        assert "&lt;b&gt;" in mean_time_to_absorption(chain)._repr_html_()
        assert "<b>" not in mean_time_to_absorption(chain, exact=True)._repr_html_()

    def test_times_beyond_all_doubles(self) -> None:
        tiny = F(1, 10**200)
        chain = make_chain([[1 - tiny, tiny, F(0)], [1 - tiny, F(0), tiny]], [F(1), F(0), F(0)], 1)
        assert mean_time_to_absorption(chain, exact=True).overall == 10**400 + 10**200
        for function in (mean_time_to_absorption, expected_visits):
            with pytest.raises(UnsupportedError, match="beyond the range of doubles"):
                function(chain)

    def test_too_large_to_form(self, example: MarkovChain, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fundamental, "N_LIMIT", 2)
        with pytest.raises(UnsupportedError, match="3 transient states is too large"):
            fundamental_matrix(example)

    def test_large_and_sparse(self) -> None:
        """A fair walk on 0..n, absorbed at both ends: from i at n with probability i/n, after i (n - i) steps."""
        n = 3000
        inner = np.arange(1, n)
        rows = np.concatenate([inner, inner, [0, n]])
        columns = np.concatenate([inner - 1, inner + 1, [0, n]])
        from scipy.sparse import csr_array

        values = np.concatenate([np.full(2 * (n - 1), 0.5), [1.0, 1.0]])
        chain = MarkovChain(
            states=tuple(f"x{i}" for i in range(n + 1)),
            transitions=csr_array((values, (rows, columns)), shape=(n + 1, n + 1)),
            initial=(np.arange(n + 1) == 1000).astype(float),
            labels={"success": np.arange(n + 1) == n},
        )
        assert long_run_reliability(chain) == pytest.approx(1 / 3, rel=1e-9)
        assert mean_time_to_absorption(chain).overall == pytest.approx(1000 * 2000, rel=1e-9)
        assert absorption_probabilities(chain)[:, 1] == pytest.approx(inner / n, rel=1e-7)
