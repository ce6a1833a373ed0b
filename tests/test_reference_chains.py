"""Engines against closed formulas: every family of `reference_chains`, in rationals and in doubles."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reference_chains import FAMILIES, Reference, with_unreachable_part

from tracebridge import check
from tracebridge.checking import CheckResult, Verdict

families = pytest.mark.parametrize("family", FAMILIES)


def law(examples: int) -> settings:
    return settings(deadline=None, max_examples=examples, suppress_health_check=list(HealthCheck))


def results(reference: Reference, engine: str, *, exact: bool) -> list[CheckResult]:
    properties = "".join(f"{question.property};\n" for question in reference.questions)
    return check(reference.chain, properties, engines=[engine], exact=exact)


def assert_exact(reference: Reference, engine: str) -> None:
    for question, result in zip(reference.questions, results(reference, engine, exact=True), strict=True):
        told = (reference.name, question, result.reason)
        assert result.exact, told
        if isinstance(question.answer, bool):
            assert result.truth is question.answer, told
        else:
            assert result.value is not None, told
            assert result.value.value == (float("inf") if question.answer is None else question.answer), told


@families
@law(8)
@given(st.data())
def test_the_closed_form_in_rationals_is_the_formula(family: str, data: st.DataObject) -> None:
    assert_exact(data.draw(FAMILIES[family]), "closed-form")


@families
@law(4)
@given(st.data())
def test_a_part_that_no_run_enters_changes_nothing(family: str, data: st.DataObject) -> None:
    assert_exact(with_unreachable_part(data.draw(FAMILIES[family])), "closed-form")


@families
@law(8)
@given(st.data())
def test_the_bounds_of_doubles_contain_the_formula(family: str, data: st.DataObject) -> None:
    reference = data.draw(FAMILIES[family])
    for question, result in zip(reference.questions, results(reference, "closed-form", exact=False), strict=True):
        told = (reference.name, question, result)
        if isinstance(question.answer, bool):
            assert result.truth is question.answer or result.verdict is Verdict.UNDECIDED, told
            continue
        assert result.value is not None, told
        if question.answer is None:
            assert result.value.value == float("inf"), told
            continue
        assert Fraction(result.value.lower) <= question.answer <= Fraction(result.value.upper), told
        assert float(result.value.value) == pytest.approx(float(question.answer), rel=1e-9, abs=1e-12), told


@pytest.mark.storm
@families
@law(2)
@given(st.data())
def test_storm_in_rationals_gives_the_formula(family: str, data: st.DataObject) -> None:
    assert_exact(data.draw(FAMILIES[family]), "storm")


@pytest.mark.storm
@families
@law(2)
@given(st.data())
def test_storm_in_doubles_is_close_to_the_formula(family: str, data: st.DataObject) -> None:
    reference = data.draw(FAMILIES[family])
    for question, result in zip(reference.questions, results(reference, "storm", exact=False), strict=True):
        if isinstance(question.answer, bool):
            continue  # Storm decides by its approximate value; its numbers are looked at here
        assert result.value is not None, (reference.name, question, result.reason)
        expected = float("inf") if question.answer is None else float(question.answer)
        assert float(result.value.value) == pytest.approx(expected, rel=1e-8, abs=1e-12), (reference.name, question)
