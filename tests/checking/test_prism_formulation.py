"""PRISM's questions mean what they are asked for: read back as text, and answered by the closed form, they agree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checking.random_chains import random_chain
from tests.checking.random_operators import branching, quantities, truths
from tests.checking.storm_chains import operator_of

from tracebridge.agreement import Agreement, compare_property
from tracebridge.chain import MarkovChain
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.prism import PrismSession
from tracebridge.checking.prism_formulation import formulate, parts_of
from tracebridge.checking.result import Verdict
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import fold_steps, format_formula, parse_formula
from tracebridge.pctl.ast import Filter, Formula, Property

#: Why there may be no question, or no answer on chains as sticky as these.
REASONS = (
    "PRISM ",
    "PRISM's exact engine does not take",
    "PRISM's doubles",
    "no correct digit",
)


class ReadBack(PrismSession):
    """A session in which the closed form answers, in rationals, what PRISM would be asked."""

    def __init__(self, chain: MarkovChain, *, exact: bool) -> None:
        super().__init__(chain, exact=exact, executable=None)

    def answers(self, text, masks, reward) -> list:
        asked = MarkovChain(
            states=tuple(f"q{i}" for i in range(self.chain.n_states)),
            transitions=self.chain.rationals,
            initial=self.chain.initial_rationals,
            labels={f"a{i}": mask for i, mask in enumerate(masks)},
            rewards={} if reward is None else {"r": reward},
        )
        listing = Filter("printall", fold_steps(parse_formula(text)))
        checker = PropertyChecker(asked, ClosedFormSession(asked, exact=True))
        result = checker.check(Property(formula=listing, text=text))
        assert result.answered, (text, result.reason)
        values = dict(result.listings[0].entries)
        return [values.get(f"q{i}") for i in range(self.chain.n_states)]

    def _doubles(self, text, masks, reward=None):
        found = self.answers(text, masks, reward)
        return np.array([float(each if isinstance(each, bool) else each.value) for each in found])

    def _rationals(self, text, masks, reward):
        return [each.value for each in self.answers(text, masks, reward)]


#: Sticky and quick ones, with one and with several ends, with values that are fractions and rewards that are finite.
CHAINS = [random_chain(seed, 6) for seed in (8, 20, 53)]


def compared(chain: MarkovChain, formula: Formula, *, exact: bool) -> Agreement | None:
    """What the two say together; None where PRISM is not asked, which must have a reason."""
    text = format_formula(formula)
    property_ = Property(formula=fold_steps(formula), text=text)
    sessions = ClosedFormSession(chain, exact=exact), ReadBack(chain, exact=exact)
    try:
        closed, prism = [PropertyChecker(chain, session).check(property_) for session in sessions]
    except PropertyError as error:
        assert "over no state" in str(error)  # noqa: PT017 - most formulas have an answer
        return None
    if Verdict.ERROR in {closed.verdict, prism.verdict}:
        assert "no state" in f"{closed.reason} {prism.reason}", (text, closed.reason, prism.reason)
        return None
    if not prism.answered:
        assert any(reason in (prism.reason or "") for reason in REASONS), (text, prism.reason)
        return None
    agreement = compare_property([closed, prism])
    assert agreement.agree, (text, agreement.gap, agreement.allowed, closed, prism)
    return agreement


@settings(max_examples=10)
@given(formula=st.one_of(quantities(), truths(), branching()))
def test_questions_in_doubles_mean_the_operator(formula):
    for chain in CHAINS:
        compared(chain, formula, exact=False)


@settings(max_examples=5)
@given(formula=st.one_of(quantities(0), truths(0)))
def test_questions_in_rationals_mean_the_operator(formula):
    for chain in CHAINS:
        compared(chain, formula, exact=True)


@pytest.mark.parametrize("path", ['F "a"', 'G "c"', '"c" U "a"', '"c" W "a"', '"a" R "c"', '!(F "b")', '!("c" W "b")'])
def test_thresholds_of_zero_and_one_are_decided_where_the_graph_decides_them(path):
    for chain in CHAINS:
        for bound in (">=1", "<=0", ">0"):
            formula = parse_formula(f"filter(count, P{bound} [ {path} ])")
            agreement = compared(chain, formula, exact=False)
            if agreement is not None:  # else the chain is too sticky for PRISM
                counts = [result.value for result in agreement.results]
                assert counts[0].value == counts[1].value == counts[1].lower == counts[1].upper, (path, bound)


@pytest.mark.parametrize(
    "path", ['F "a"', "C<=4", "C<4", "C", "I=3", 'F ("a" & (X "b"))', '"c" U "a"'], ids=lambda path: path
)
@pytest.mark.parametrize("structure", ['{"cost"}', ""])
def test_rewards_are_those_of_the_structure(path, structure):
    agreements = [compared(chain, parse_formula(f"R{structure}=? [ {path} ]"), exact=False) for chain in CHAINS]
    assert sum(agreement is not None for agreement in agreements) > 1


@pytest.mark.parametrize(
    ("text", "question", "operands"),
    [
        ('P>=0.5 [ "x" U<=3 "y" ]', 'P=? [ "a0" U<=3 "a1" ]', 2),
        ('P=? [ F !("x" | P>0.1 [ X "y" ]) ]', 'P=? [ F "a0" ]', 1),
        ('P=? [ G[1,4] "x" ]', 'P=? [ G[1,4] "a0" ]', 1),
        ('Pmin=? [ F>=2 "x" ]', 'P=? [ F>=2 "a0" ]', 1),
        ('P=? [ G F ("x" & (X "y")) ]', 'P=? [ G F ("a0" & (X "a1")) ]', 2),
        ('R{"cost"}>3 [ F "x" ]', 'R=? [ F "a0" ]', 1),
        ("R{2}=? [ C<4 ]", "R=? [ C<=3 ]", 0),
        ("T=? [ F true ]", "R=? [ F true ]", 1),
        ("S<0.1 [ true ]", "S=? [ true ]", 1),
        ('A [ "x" U "y" ]', 'A [ "a0" U "a1" ]', 2),
    ],
)
def test_the_text_that_prism_reads(text, question, operands):
    query = formulate(operator_of(text))
    assert query.text == question.replace("true", '"a0"')
    assert len(query.operands) == operands


def test_a_condition_is_a_quotient_of_two_questions():
    top, bottom = parts_of(operator_of('P>=0.5 [ F "x" || G "y" ]'))
    assert formulate(top).text == 'P=? [ (F "a0") & (G "a1") ]'
    assert formulate(bottom).text == 'P=? [ G "a0" ]'
    assert parts_of(operator_of('P=? [ F "x" ]')) is None


def test_a_condition_with_a_step_bound_cannot_be_asked():
    top, _ = parts_of(operator_of('P=? [ F<=3 "x" || G "y" ]'))
    with pytest.raises(UnsupportedError, match="step bounds inside LTL"):
        formulate(top)


@pytest.mark.parametrize(
    ("text", "kind", "steps", "complemented", "exact"),
    [
        ('P=? [ F "x" ]', "equations", 0, False, True),
        ('P=? [ !(F "x") ]', "equations", 0, True, True),
        ('P=? [ G "x" ]', "equations", 0, True, True),
        ('P=? [ !(!("x" W "y")) ]', "equations", 0, True, True),
        ('P=? [ F>3 "x" ]', "equations", 4, False, False),
        ('P=? [ "x" R<7 "y" ]', "steps", 6, True, False),
        ('P=? [ X "x" ]', "steps", 1, False, False),
        ('P=? [ (X "x") & (X "y") ]', "automaton", 0, False, False),
        ('R{"r"}=? [ I=7 ]', "steps", 7, False, False),
        ('R{"r"}=? [ F "x" ]', "equations", 0, False, True),
        ('R{"r"}=? [ C ]', "equations", 0, False, False),
        ('R{"r"}=? [ "x" U "y" ]', "automaton", 0, False, False),
        ('R{"r"}=? [ S ]', "long run", 0, False, True),
        ('E [ G "x" ]', "graph", 0, False, False),
    ],
)
def test_what_an_answer_takes(text, kind, steps, complemented, exact):
    query = formulate(operator_of(text))
    assert (query.kind, query.steps, query.complemented, query.exact) == (kind, steps, complemented, exact)


def test_step_bounds_are_whole_numbers():
    from dataclasses import replace

    from tracebridge.pctl.ast import Number, StepBound

    operator = operator_of('P=? [ F<=3 "x" ]')
    bound = StepBound(upper=Number(Fraction(5, 2), integer=False))
    with pytest.raises(PropertyError, match="not a number of steps"):
        formulate(replace(operator, path=replace(operator.path, bound=bound)))
