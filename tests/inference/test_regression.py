"""What changed between corpora: decompositions that add up, and tests of rows with their size and power."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, TransitionCounts, fit_counts
from tracebridge.closedform import long_run_reliability, reliability
from tracebridge.errors import ModelError, UsageError
from tracebridge.inference.regression import compare_rows, decompose_reliability

F = Fraction
law = settings(deadline=None, max_examples=25)


def chain_of(names: tuple[str, ...], rows: list[dict[str, Fraction]], start: dict[str, Fraction]) -> MarkovChain:
    states = (*names, "success", "failure")
    position = {name: i for i, name in enumerate(states)}
    ends = [{"success": F(1)}, {"failure": F(1)}]
    return MarkovChain(
        states=states,
        transitions=RationalMatrix.from_rows(
            [{position[name]: value for name, value in row.items()} for row in [*rows, *ends]]
        ),
        initial=RationalVector.from_fractions([start.get(name, F(0)) for name in states]),
        labels={"success": np.array([name == "success" for name in states])},
    )


@st.composite
def chains(draw: st.DrawFn) -> MarkovChain:
    names = tuple(draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)))
    places = [*names, "success", "failure"]

    def law_over(last: int) -> dict[str, Fraction]:
        weights = draw(st.lists(st.integers(0, 4), min_size=len(places), max_size=len(places)))
        weights[-1] += last
        return {name: F(w, sum(weights)) for name, w in zip(places, weights, strict=True) if w}

    return chain_of(names, [law_over(1) for _ in names], law_over(1))


class TestDecomposition:
    @law
    @given(chains(), chains(), st.sampled_from([None, 1, 2, 5]))
    def test_it_adds_up_exactly_whatever_states_the_chains_have(self, old, new, d):
        found = decompose_reliability(old, new, d=d, exact=True)
        wanted = [
            long_run_reliability(chain, exact=True) if d is None else reliability(chain, d, exact=True)
            for chain in (old, new)
        ]
        assert [found.before, found.after] == wanted
        assert found.start + sum(row.amount for row in found.rows) == wanted[1] - wanted[0]
        back = decompose_reliability(new, old, d=d, exact=True)
        assert back.start == -found.start
        assert {r.state: r.amount for r in back.rows} == {r.state: -r.amount for r in found.rows}
        for row in found.rows:
            if row.state in {*found.only_old, *found.only_new}:
                assert row.amount == 0
        doubles = decompose_reliability(old, new, d=d)
        exact = {row.state: float(row.amount) for row in found.rows}
        assert {row.state: row.amount for row in doubles.rows} == pytest.approx(exact, abs=1e-13)

    def test_one_changed_row_is_all_there_is(self):
        rows = [{"b": F(1)}, {"a": F(1, 2), "success": F(1, 4), "failure": F(1, 4)}]
        old = chain_of(("a", "b"), rows, {"a": F(1)})
        new = chain_of(("a", "b"), [rows[0], {"a": F(1, 2), "success": F(1, 2)}], {"a": F(1)})
        found = decompose_reliability(old, new, exact=True)
        assert (found.before, found.after, found.start) == (F(1, 2), 1, 0)
        assert [(row.state, row.amount) for row in found.rows] == [("b", F(1, 2)), ("a", 0)]

    def test_a_new_state_is_charged_to_the_row_that_leads_to_it(self):
        old = chain_of(("a",), [{"success": F(1, 2), "failure": F(1, 2)}], {"a": F(1)})
        new = chain_of(("a", "fallback"), [{"success": F(1, 2), "fallback": F(1, 2)}, {"success": F(1)}], {"a": F(1)})
        found = decompose_reliability(old, new, exact=True)
        assert [(row.state, row.amount) for row in found.rows] == [("a", F(1, 2)), ("fallback", 0)]
        assert found.only_new == ("fallback",)

    def test_a_state_that_ends_runs_in_one_chain_only_is_refused(self):
        old = chain_of(("a",), [{"success": F(1)}], {"a": F(1)})
        new = chain_of(("a",), [{"a": F(1)}], {"a": F(1)})
        with pytest.raises(ModelError, match="'a' ends runs in one"):
            decompose_reliability(old, new)
        with pytest.raises(UsageError, match="budget"):
            decompose_reliability(old, old, d=0)


def fit_of(paths):
    return fit_counts(TransitionCounts.from_paths(paths))


class TestRows:
    def test_the_statistic_by_hand_and_the_exact_p_value(self):
        """3 of 4 against 1 of 4: all tables with these margins, weighted by the hypergeometric law."""
        old = fit_of([(["a"], "success")] * 3 + [(["a"], "failure")])
        new = fit_of([(["a"], "success")] + [(["a"], "failure")] * 3)
        (row,) = compare_rows(old, new)
        assert row.g2 == pytest.approx(2 * (6 * np.log(3 / 2) + 2 * np.log(1 / 2)))
        exact = sum(comb(4, k) * comb(4, 4 - k) for k in range(5) if abs(k - 2) >= 1) / comb(8, 4)
        assert row.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))
        assert row.p_holm == row.p_value
        assert (row.n_old, row.n_new, row.df, row.moved) == (4, 4, 1, "failure")
        assert (row.old_share, row.new_share) == (0.25, 0.75)

    def test_the_row_that_changed_is_found(self):
        rng = np.random.default_rng(1)
        old = fit_of(corpus(rng, 300, 0.3))
        new = fit_of(corpus(rng, 300, 0.6))
        first, *rest = compare_rows(old, new, deals=1999)
        assert first.state == "act"
        assert first.p_holm == pytest.approx(2 / 2000)  # two rows: twice the smallest possible p
        assert [row.state for row in rest] == ["plan"]
        assert rest[0].p_holm is not None
        assert rest[0].p_holm > 0.05

    def test_size_of_the_family(self):
        """150 pairs without a difference: some row is rejected in at most .05, with error .018."""
        rng = np.random.default_rng(2)
        rejected = 0
        for seed in range(150):
            rows = compare_rows(fit_of(corpus(rng, 30, 0.4)), fit_of(corpus(rng, 30, 0.4)), deals=399, seed=seed)
            rejected += any(row.p_holm is not None and row.p_holm <= 0.05 for row in rows)
        assert rejected / 150 <= 0.05 + 3 * 0.018

    def test_a_state_of_one_corpus_alone_cannot_differ(self):
        rows = compare_rows(fit_of([(["a"], "success")]), fit_of([(["b"], "success")]))
        assert [(row.state, row.p_value, row.p_holm) for row in rows] == [("a", None, None), ("b", None, None)]

    def test_what_is_refused(self):
        fit = fit_of([(["a"], "success")])
        with pytest.raises(UsageError, match="deal"):
            compare_rows(fit, fit, deals=0)


def corpus(rng: np.random.Generator, runs: int, failing: float):
    """plan, which may fail, then act, which fails, succeeds, or leads back."""
    found = []
    for _ in range(runs):
        path = []
        while True:
            path.append("plan")
            if rng.random() < 0.1:
                found.append((path, "failure"))
                break
            path.append("act")
            drawn = rng.random()
            if drawn < 0.8:
                found.append((path, "failure" if drawn < failing else "success"))
                break
    return found


def test_enumeration_of_small_tables_covers_the_statistic():
    """G2 is zero exactly for proportional rows."""
    for a, b in product(range(1, 4), repeat=2):
        old = fit_of([(["a"], "success")] * a + [(["a"], "failure")] * b)
        new = fit_of([(["a"], "success")] * (2 * a) + [(["a"], "failure")] * (2 * b))
        (row,) = compare_rows(old, new, deals=19)
        assert row.g2 == pytest.approx(0, abs=1e-12)
        assert row.p_value == 1
