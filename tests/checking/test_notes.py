"""What a result tells about how it came about."""

from __future__ import annotations

import pytest
from tests.checking.storm_chains import F, sticky, three_transient_states

from tracebridge.checking import CheckResult, Note, check
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.pctl import parse_properties

pytestmark = pytest.mark.storm

pytest.importorskip("stormpy")


@pytest.fixture(scope="module")
def results() -> dict[str, CheckResult]:
    text = """
    "plain": P=? [ F "success" ];
    "always": P>=0.25 [ G !"failure" ];
    "twice": P=? [ G !"failure" ] + P=? [ G !"failure" ] - P=? [ "s0" W "s1" ];
    """
    found = check(three_transient_states(), text)
    return {f"{result.property.name} {result.engine}": result for result in found}


def test_a_rewriting_is_told_and_the_plain_formula_is_not(results: dict[str, CheckResult]) -> None:
    assert results["plain Storm"].notes == ()
    (note,) = results["always Storm"].notes
    assert note.kind == "formulation"
    assert note.text == 'Storm is asked 1 - (P=? [ F !(!"failure") ]) for P>=0.25 [ G !"failure" ]'
    assert len(results["twice Storm"].notes) == 2  # each formulation once
    assert results["always closed form"].notes == ()


def test_notes_are_part_of_the_document(results: dict[str, CheckResult]) -> None:
    document = results["always Storm"].to_dict()
    assert document["notes"] == [{"kind": "formulation", "text": results["always Storm"].notes[0].text}]


def test_doubles_that_stand_in_for_rationals_come_with_a_warning() -> None:
    chain = sticky(F(1, 3))
    slow = 'P=? [ F<=100000000 "success" ] + P=? [ G<=2 "s" ]'  # the digits of rationals grow with every step
    (result,) = check(chain, slow, engines=["storm"], exact=True, time_limit=0.5)
    assert not result.exact
    assert [note.kind for note in result.notes] == ["warning", "formulation"]
    assert "its doubles stand in" in result.notes[0].text


def test_every_property_has_its_own_notes_warnings_first() -> None:
    class Chatty(ClosedFormSession):
        def evaluate(self, operator, holds):
            self.notes.append(Note(kind="formulation", text=f"step {len(self.notes)}"))
            self.notes.append(Note(kind="warning", text="beware"))
            return super().evaluate(operator, holds)

    chain = three_transient_states()
    checker = PropertyChecker(chain, Chatty(chain, exact=True))
    for property_ in parse_properties('P=? [ F "success" ]; P=? [ F "success" ] + P=? [ F "failure" ];').properties:
        notes = checker.check(property_).notes
        assert [note.text for note in notes] == ["beware", "step 0", "step 2"][: len(notes)]
        assert len(notes) == (2 if property_.text.count("F") == 1 else 3)
