import json
from fractions import Fraction

import pytest

from tracebridge import check
from tracebridge.chain import ChainFit, StateVocabulary, TransitionCounts, fit_counts
from tracebridge.errors import FitError, ModelError

RUNS = [(["ask", "tool", "ask"], "success"), (["ask", "tool", "tool"], "failure"), (["ask"], "success")]
WORDS = StateVocabulary(
    labels={"busy": ["tool"], "over": ["failure", "success"], "lost": ["nowhere"], "asked": ["ask"]},
    rewards={"cost": {"tool": Fraction(3, 2), "ask": Fraction(1, 7)}},
)


def test_words_and_rewards_of_ones_own():
    fit = fit_counts(TransitionCounts.from_paths(RUNS), prior="none", vocabulary=WORDS)
    chain = fit.chain
    assert [chain.states[i] for i in chain.label("over").nonzero()[0]] == ["success", "failure"]
    assert not chain.label("lost").any()
    assert chain.rewards["cost"].fractions(action=True) == [Fraction(1, 7), Fraction(3, 2), 0, 0]
    cost, lost = check(chain, 'R{"cost"}=? [ F "over" ]; P=? [ F "lost" ]', engines=("closed-form",), exact=True)
    # without a prior the mean visits are those of the corpus: 4 of ask and 3 of tool in 3 runs
    assert cost.value.value == pytest.approx(float((4 * Fraction(1, 7) + 3 * Fraction(3, 2)) / 3), rel=1e-15)
    assert lost.value.value == 0


def test_they_are_kept():
    fit = fit_counts(TransitionCounts.from_paths(RUNS), vocabulary=WORDS)
    document = json.loads(json.dumps(fit.to_dict()))
    assert ChainFit.from_dict(document).vocabulary == WORDS
    document["vocabulary"]["rewards"]["cost"]["tool"] = "2"
    with pytest.raises(ModelError, match="does not follow from the counts"):
        ChainFit.from_dict(document)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"labels": {"success": ["ask"]}}, "'success'"),
        ({"labels": {"tool": ["ask"]}}, "'tool'"),
        ({"labels": {"init": ["ask"]}}, "'init'"),
        ({"rewards": {"steps": {"ask": 1}}}, "'steps'"),
    ],
)
def test_no_word_is_given_a_second_meaning(words, message):
    with pytest.raises(FitError, match=message):
        fit_counts(TransitionCounts.from_paths(RUNS), vocabulary=StateVocabulary(**words))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"labels": {"a": "tool"}}, "not a list"),
        ({"labels": {"": ["tool"]}}, "empty word"),
        ({"rewards": {"a": {"tool": -1}}}, "below zero"),
        ({"rewards": {"a": {"tool": "many"}}}, "no number"),
    ],
)
def test_what_is_no_vocabulary_is_refused(words, message):
    with pytest.raises(ModelError, match=message):
        StateVocabulary(**words)
