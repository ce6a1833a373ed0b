"""Numbers of whole categories: means over copies weighted by visits, against what lumping keeps and exact changes."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.chain.expanded.random_models import FORMS, random_model

from tracebridge.chain import AbsorbingChain, MarkovChain
from tracebridge.chain.edit import parse_redirection, row_changes
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.closedform import expected_visits, long_run_reliability, mean_time_to_absorption
from tracebridge.closedform.category_start import category_ranking, category_start, category_visits
from tracebridge.closedform.sensitivity import mean_time_gradient, reliability_effect, reliability_gradient
from tracebridge.errors import ModelError


def expanded(name: str, seed: int = 0, m: int = 3) -> MarkovChain:
    model = random_model(name, m=m, seed=seed)
    return ExpandedStructure.of_model(model).chain(model)


@pytest.mark.parametrize("name", FORMS)
def test_the_mean_row_of_a_category_keeps_visits_and_success(name: str) -> None:
    """The plain chain of visit-weighted rows balances the same flows; with any other weights it would not."""
    chain = expanded(name, seed=1)
    categories = ["a", "b", "c", "success", "failure"]
    held = np.array([chain.label(category) for category in categories], dtype=float)
    rows = np.array([category_start(chain, category) @ chain.transitions @ held.T for category in categories[:3]])
    plain = MarkovChain(
        states=tuple(categories),
        transitions=np.vstack([rows, np.eye(5)[3:]]),  # type: ignore[arg-type]
        initial=held @ chain.initial,
        labels={"success": np.arange(5) == 3},
    )
    known = category_visits(chain)
    assert known.total(known.visits) == pytest.approx(expected_visits(plain), rel=1e-10)
    assert long_run_reliability(chain) == pytest.approx(long_run_reliability(plain), rel=1e-10)


def test_weights_are_visits_by_the_inverse() -> None:
    chain = expanded("order2+clock:0,2", seed=2)
    form = AbsorbingChain(chain=chain)
    visits = form.initial @ np.linalg.inv(np.eye(form.Q.shape[0]) - form.Q.toarray())
    own = chain.label("b")[form.transient]
    expected = np.zeros(chain.n_states)
    expected[form.transient[own]] = visits[own] / visits[own].sum()
    assert category_start(chain, "b") == pytest.approx(expected, rel=1e-10)
    assert float(sum(category_start(chain, "b", exact=True))) == 1
    assert sum(category_start(chain, "b", exact=True)) == Fraction(1)
    times = mean_time_to_absorption(chain)
    assert category_visits(chain).mean_of("b", times.values) == pytest.approx(expected[form.transient] @ times.values)


def test_a_past_that_does_not_matter_gives_the_numbers_of_the_plain_chain() -> None:
    plain_model = random_model("first-order", seed=3)
    model = random_model("order2+clock:0,1,3", seed=3)
    model = replace(
        model, rows=np.broadcast_to(plain_model.rows, model.rows.shape), start=plain_model.start, advance=model.advance
    )
    plain = ExpandedStructure.of_model(plain_model).chain(plain_model)
    chain = ExpandedStructure.of_model(model).chain(model)
    found = category_visits(chain).mean(mean_time_to_absorption(chain).values)
    assert found == pytest.approx(mean_time_to_absorption(plain).values, rel=1e-12)
    for gradient in (reliability_gradient, mean_time_gradient):
        short, long = category_ranking(gradient(plain)), category_ranking(gradient(chain))
        assert [row.state for row in short] == [row.state for row in gradient(plain).ranking()]
        by_name = {row.state: row for row in long}
        for row in short:
            other = by_name[row.state]
            assert (other.best, other.worst) == (row.best, row.worst)
            assert [other.visits, other.gain, other.loss] == pytest.approx([row.visits, row.gain, row.loss], rel=1e-9)


@pytest.mark.parametrize(
    "name", ["order2", "clock:0,2,3", "phases:3", "dwell2+clock:0,3+phases:2:full-shared+classes:3"]
)
def test_gain_and_loss_are_the_derivatives_of_redirecting_every_copy(name: str) -> None:
    chain = expanded(name, seed=4)
    for row in category_ranking(reliability_gradient(chain)):
        for target, slope in ((row.best, row.gain), (row.worst, row.loss)):
            changes = row_changes(chain, [parse_redirection(f"{row.state}:1/1000000->{target}", chain)])
            effect = reliability_effect(chain, changes)
            assert effect.first_order * 1e6 == pytest.approx(slope, rel=1e-8)
            assert effect.change * 1e6 == pytest.approx(slope, rel=1e-4)


def test_exact_numbers_are_those_of_doubles() -> None:
    chain = expanded("order2", seed=5)
    exact = category_ranking(reliability_gradient(chain, exact=True))
    for row, other in zip(category_ranking(reliability_gradient(chain)), exact, strict=True):
        assert isinstance(other.gain, Fraction)
        assert (row.state, row.best, row.worst) == (other.state, other.best, other.worst)
        assert [row.visits, row.leverage, row.gain, row.loss] == pytest.approx(
            [float(other.visits), other.leverage, float(other.gain), float(other.loss)], rel=1e-9
        )


def test_a_plain_chain_has_its_states() -> None:
    chain = expanded("first-order", seed=6)
    assert category_start(chain, "b").tolist() == [0, 1, 0, 0, 0]
    assert category_start(chain, "failure").tolist() == [0, 0, 0, 0, 1]
    assert list(category_visits(chain).copies) == ["a", "b", "c"]
    one = expanded("order2", seed=6)
    assert category_start(one, one.states[2], exact=True)[2] == 1
    with pytest.raises(ModelError, match="there is no category 'x'; there are 'a', 'b', 'c'"):
        category_start(one, "x")


def test_what_no_run_visits_has_no_mean() -> None:
    chain = expanded("order2", seed=7)
    elsewhere = replace(chain, initial=chain.label("success").astype(float))
    with pytest.raises(ModelError, match="no run visits 'b'"):
        category_start(elsewhere, "b")
    known = category_visits(elsewhere)
    assert math.isnan(known.mean_of("b", known.visits))
