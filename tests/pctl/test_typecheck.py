"""Types that are known without a model; the messages themselves are in test_diagnosis.py."""

from __future__ import annotations

import pytest

from tracebridge.errors import PropertyError
from tracebridge.pctl import parse_properties

NUMBER, TRUTH = 'P=? [ F "a" ]', 'P>=0.5 [ F "a" ]'

NUMBERS = [
    "1",
    NUMBER,
    'S=? [ "a" ]',
    'T=? [ F "a" ]',
    "R{1}=? [ C ]",
    f"filter(min, {NUMBER})",
    f"filter(max, {NUMBER})",
    f"filter(sum, {NUMBER})",
    f"filter(avg, {NUMBER})",
    f"filter(state, {NUMBER})",
    f"filter(first, {NUMBER})",
    f"filter(print, {NUMBER})",
    f"filter(printall, {NUMBER})",
    f"filter(values, {NUMBER})",
    f"filter(count, {TRUTH})",
    'P=? [ F "a" {"b"} ]',
    'quantile(min B, P>0.5 [ F<=B "a" ])',
    f"multi({NUMBER}, {TRUTH})",
    f"<<p>> {NUMBER}",
    '"number"',
    '"later number"',
]
TRUTHS = [
    "true",
    '"label"',
    TRUTH,
    f"{NUMBER} > 0.5",
    'A [ F "a" ]',
    'E [ G !(F "a") ]',
    f"filter(count, {TRUTH}) = 3",
    f"filter(forall, {TRUTH})",
    f"filter(exists, {TRUTH})",
    f"filter(argmin, {NUMBER})",
    f"filter(argmax, {NUMBER})",
    f"filter(state, {TRUTH})",
    f"filter(first, {TRUTH})",
    f"filter(print, {TRUTH})",
    f"filter(printall, {TRUTH})",
    f"filter(values, {TRUTH})",
    'P>=0.5 [ F "a" {"b"} ]',
    f"multi({TRUTH}, {TRUTH})",
    f"[[p]] {TRUTH}",
    '"truth"',
    '"later truth"',
]
SEVERAL = [
    f"filter(range, {NUMBER})",
    'P=? [ F "a" {"b"}{min}{max} ]',
    f"multi({NUMBER}, {NUMBER})",
    f"multilex({NUMBER}, {NUMBER})",
    'quantile(D, B, P>0.5 [ F<=B,{"r"}<=D "a" ])',
]
AROUND = f'"number": {NUMBER}; "truth": {TRUTH}; %s; "later number": "number" * 2; "later truth": !"truth";'


def accepted(text: str) -> bool:
    try:
        parse_properties(AROUND % text)
    except PropertyError as error:
        if "needs" in str(error):
            return False
        raise
    return True


@pytest.mark.parametrize("formula", NUMBERS)
def test_a_number_is_a_number_and_no_truth_value(formula: str) -> None:
    assert accepted(f"({formula}) + 1")
    assert not accepted(f"!({formula})")


@pytest.mark.parametrize("formula", TRUTHS)
def test_a_truth_value_is_one_and_no_number(formula: str) -> None:
    assert accepted(f"!({formula})")
    assert not accepted(f"({formula}) + 1")


@pytest.mark.parametrize("formula", SEVERAL)
def test_several_values_stand_alone(formula: str) -> None:
    assert accepted(formula)
    assert accepted(f"filter(print, {formula})")
    for around in ("!(%s)", "(%s) + 1", "(%s) = 1", "true ? (%s) : 1", "filter(max, %s)", "max(%s, 1)"):
        assert not accepted(around % formula)


@pytest.mark.parametrize("around", ["!%s", "%s + 1", "F<=%s true"])
def test_a_name_that_no_constant_declares_may_be_anything(around: str) -> None:
    text = around % "x"
    parse_properties(f"P=? [ {text} ]" if text.startswith("F") else text)


def test_a_quantile_variable_is_a_whole_number_within_its_quantile() -> None:
    parse_properties('quantile(min B, P>0.5 [ F<=2*B "a" ])')
    with pytest.raises(PropertyError, match=r"1:31: a step bound counts steps and needs a whole number"):
        parse_properties('quantile(min B, P>0.5 [ F<=(B/2) "a" ])'.replace("F<=(", "F<=   ("))
    with pytest.raises(PropertyError, match=r"F needs a truth value, and this is a whole number"):
        parse_properties("quantile(min B, P>0.5 [ F B ])")
    # outside of it the name is another one
    parse_properties('const bool B = true; quantile(min B, P>0.5 [ F<=B "a" ]); B & true;')


def test_a_circle_of_references_is_left_to_their_resolution() -> None:
    parse_properties('"a": "b" + 1; "b": "a" * 2;')
    parse_properties('"success": P=? [ F "success" ];')


def test_a_long_chain_of_references_has_types() -> None:
    lines = ['"n0": P=? [ F "a" ];', *(f'"n{index}": "n{index - 1}" + 1;' for index in range(1, 3_000))]
    parse_properties("\n".join(reversed(lines)))
    with pytest.raises(PropertyError, match="! needs a truth value, and this is a number"):
        parse_properties("\n".join(reversed([*lines, '!"n2999";'])))
