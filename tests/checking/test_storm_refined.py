"""Storm's rationals stand in where its doubles are poor: sticky and nearly decomposable chains."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from tests.checking.storm_chains import F, evaluate, operator_of, sticky, three_transient_states, truth_on, walk_of

from tracebridge.agreement import compare
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking import check, storm_refined
from tracebridge.checking.storm_process import StormWorker
from tracebridge.checking.storm_refined import ACCURACY, EXACT_STATES, RefinedStormSession
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import UnsupportedError

pytestmark = pytest.mark.storm

PROPERTIES = """
"wins":   P=? [ F "success" ];
"loses":  P=? [ F "failure" ];
"safe":   P=? [ G !"failure" ];
"late":   P=? [ F>=3 "success" ];
"length": R{"steps"}=? [ F "success" | "failure" ];
"long":   S=? [ "success" ];
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as shared:
        yield shared


def nearly_decomposable(n: int, leak: Fraction) -> MarkovChain:
    """Two rings of n states that a run leaves for one another, or for an end, with the probability ``leak``."""
    rows: list[dict[int, Fraction]] = []
    for ring in (0, n):
        for i in range(n):
            row = {ring + (i + 1) % n: F(2, 3), ring + i: F(1, 3)}
            if i == 0:
                row = {state: p * (1 - 3 * leak) for state, p in row.items()}
                row |= {n - ring: leak, 2 * n: leak * (2 if ring else 1), 2 * n + 1: leak * (1 if ring else 2)}
                row = {state: p / sum(row.values()) for state, p in row.items()}
            rows.append(row)
    rows += [{2 * n: F(1)}, {2 * n + 1: F(1)}]
    return MarkovChain(
        states=(*(f"s{i}" for i in range(2 * n)), "success", "failure"),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions([1, *[0] * (2 * n + 1)]),
        rewards={"steps": RewardStructure.from_fractions([*[1] * (2 * n), 0, 0])},
    )


def with_steps(chain: MarkovChain) -> MarkovChain:
    steps = RewardStructure.from_fractions([F(int(not absorbing)) for absorbing in chain.absorbing])
    assert chain.rationals is not None
    return MarkovChain(
        states=chain.states,
        transitions=chain.rationals,
        initial=RationalVector.from_fractions(list(chain.exact_initial())),
        rewards={"steps": steps},
    )


@pytest.mark.parametrize(
    "chain",
    [
        with_steps(sticky(1 - F(1, 10**9))),
        with_steps(sticky(1 - F(1, 10**15))),
        nearly_decomposable(6, F(1, 10**8)),
        nearly_decomposable(15, F(1, 10**13)),
    ],
    ids=["sticky 1e-9", "sticky 1e-15", "decomposable 1e-8", "decomposable 1e-13"],
)
def test_the_gap_is_small_and_the_reader_is_told(chain: MarkovChain) -> None:
    agreements = compare(check(chain, PROPERTIES))
    assert len(agreements) == 6
    for agreement in agreements:
        assert agreement.agree, agreement.property.name
        assert agreement.gap is not None
        assert agreement.gap < ACCURACY
        assert agreement.allowed is not None
        assert agreement.allowed < ACCURACY
        storm = agreement.results[1]
        assert any("its exact engine was used" in note.text for note in storm.notes if note.kind == "warning")
        assert not agreement.results[0].notes


def test_the_answer_is_the_rational_one_rounded_outward(worker: StormWorker) -> None:
    chain = nearly_decomposable(4, F(1, 10**10))
    operator = operator_of('P=? [ F "success" ]')
    rational = evaluate(chain, operator, worker, exact=True)
    refined = RefinedStormSession(chain, worker=worker).evaluate(operator, truth_on(chain))
    assert not refined.exact
    assert all(rational.value[i] in refined[i] for i in range(chain.n_states))
    assert np.all(refined.upper <= np.nextafter(refined.lower, 2))


class Refuses:
    def evaluate(self, *_: object) -> EnclosureVector:
        raise AssertionError("an ordinary chain pays for the exact engine")


@pytest.mark.parametrize(
    "text",
    ['P=? [ F "success" ]', 'P=? [ G !"success" ]', "R=? [ C ]", 'S=? [ "success" ]', 'P=? [ F<=1000000 "success" ]'],
)
def test_ordinary_chains_never_pay(worker: StormWorker, text: str) -> None:
    chain = three_transient_states()
    session = RefinedStormSession(chain, worker=worker)
    assert session._reserve is not None
    session._reserve = Refuses()  # type: ignore[assignment]

    def holds(formula):
        return ~chain.label("success") if "!" in str(formula) else chain.label("success")

    assert np.isfinite(session.evaluate(operator_of(text), holds).value).all()
    assert [note.kind for note in session.notes] in ([], ["formulation"])


def test_long_step_bounds_are_left_to_doubles(worker: StormWorker) -> None:
    chain = sticky(1 - F(1, 10**6))
    session = RefinedStormSession(chain, worker=worker)
    values = session.evaluate(operator_of('P=? [ F<=3000000 "success" ]'), truth_on(chain))
    assert float(values[0].width) > ACCURACY
    assert session.notes == []


def test_other_chains_keep_their_doubles(worker: StormWorker) -> None:
    operator = operator_of('P=? [ F "success" ]')
    for digits, answered in ((9, True), (15, False)):
        exact = sticky(1 - F(1, 10**digits))
        floating = MarkovChain(states=exact.states, transitions=exact.transitions, initial=exact.initial)
        session = RefinedStormSession(floating, worker=worker)
        if answered:
            assert session.evaluate(operator, truth_on(floating))[0].width > ACCURACY
        else:
            with pytest.raises(UnsupportedError, match="no correct digit"):
                session.evaluate(operator, truth_on(floating))
        assert session.notes == []
    large = walk_of(EXACT_STATES, F(1, 2))  # one state more
    assert RefinedStormSession(large, worker=worker)._reserve is None
    assert RefinedStormSession(walk_of(EXACT_STATES - 1, F(1, 2)), worker=worker)._reserve is not None


@pytest.mark.parametrize("digits", [9, 15])
def test_rationals_that_take_too_long_are_given_up_for_good(monkeypatch: pytest.MonkeyPatch, digits: int) -> None:
    monkeypatch.setattr(storm_refined, "EXACT_TIME_LIMIT", 1e-6)
    chain = sticky(1 - F(1, 10**digits))
    with StormWorker() as worker:
        session = RefinedStormSession(chain, worker=worker)
        operator = operator_of('P=? [ F "success" ]')
        if digits == 9:
            assert F(1, 2) in session.evaluate(operator, truth_on(chain))[0]
        else:
            with pytest.raises(UnsupportedError, match="no correct digit"):
                session.evaluate(operator, truth_on(chain))
        assert [note.kind for note in session.notes] == ["warning"]
        assert "its exact engine gave up: Storm did not answer within 1e-06 s" in session.notes[0].text
        session.notes.clear()
        assert evaluate(chain, operator, worker, exact=True).value[0] == F(1, 2)  # the process is there again
        if digits == 9:
            assert F(1, 2) in session.evaluate(operator, truth_on(chain))[0]
            assert session.notes == []
