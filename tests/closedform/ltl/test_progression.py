"""The automata of formulas: what is left to satisfy stays few and small, and the same formulas are recognised."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.closedform.ltl.normal_form import FALSE, TRUE, Form, Formulas
from tracebridge.closedform.ltl.progression import Automaton, Progression, explore
from tracebridge.closedform.ltl.safety import SafetyReduction, goals, is_co_safe

LETTERS = np.array(list(itertools.product([False, True], repeat=2)))


def automaton(formulas: Formulas, form: Form) -> Automaton:
    return explore(Progression(formulas, LETTERS), [form], [range(len(LETTERS))] * len(LETTERS))


def eventually(f: Formulas, form: Form, last: float = math.inf) -> Form:
    return f.until(TRUE, form, last)


def globally(f: Formulas, form: Form, last: float = math.inf) -> Form:
    return f.release(FALSE, form, last)


def test_sizes() -> None:
    f = Formulas()
    a, b, not_a = f.literal(0, positive=True), f.literal(1, positive=True), f.literal(0, positive=False)
    response = globally(f, f.disjunction([not_a, eventually(f, b)]))
    assert len(automaton(f, eventually(f, a)).forms) == 2
    assert len(automaton(f, globally(f, eventually(f, a))).forms) == 1
    assert len(automaton(f, eventually(f, globally(f, a))).forms) == 1
    assert len(automaton(f, response).forms) == 2
    # one formula for each of the steps that may be left to the most urgent b; an answer in time forgets the rest
    urgent = globally(f, f.disjunction([not_a, eventually(f, b, 5)]))
    assert len(automaton(f, urgent).forms) == 1 + 5 + 1


def test_equal_formulas_are_one() -> None:
    f = Formulas()
    a, b, not_a = f.literal(0, positive=True), f.literal(1, positive=True), f.literal(0, positive=False)
    assert f.conjunction([a, not_a]) == FALSE
    assert eventually(f, eventually(f, a)) == eventually(f, a)
    assert eventually(f, eventually(f, a, 2), 3) == eventually(f, a, 5)
    assert globally(f, globally(f, a)) == globally(f, a)
    assert f.later(2, f.later(3, a)) == f.later(5, a)
    assert f.conjunction([eventually(f, a, 2), eventually(f, a, 4)]) == eventually(f, a, 2)
    assert f.disjunction([globally(f, a, 2), globally(f, a)]) == globally(f, a, 2)
    assert f.disjunction([a, f.conjunction([a, b])]) == a
    assert f.until(a, f.disjunction([a, b])) == f.disjunction([a, b])
    assert f.until(a, b, -1) == FALSE
    assert f.release(a, b, -1) == TRUE


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
def test_lattice_laws(pairs: list[tuple[int, int]]) -> None:
    """Absorption and distributivity give equal sets, however the formula was put together."""
    f = Formulas()
    atoms = [f.literal(i, positive=True) for i in range(4)]
    clauses = [f.conjunction([atoms[i], atoms[j]]) for i, j in pairs]
    whole = f.disjunction(clauses)
    assert whole == f.disjunction(reversed(clauses))
    assert f.conjunction([whole, f.disjunction([whole, atoms[0]])]) == whole
    factored = f.disjunction([f.conjunction([whole, atoms[0]]), f.conjunction([whole, atoms[1]])])
    assert f.conjunction([whole, f.disjunction([atoms[0], atoms[1]])]) == factored


def test_safety_of_a_known_recurrence() -> None:
    f = Formulas()
    a, b = f.literal(0, positive=True), f.literal(1, positive=True)
    form = f.disjunction([globally(f, eventually(f, a)), f.until(a, b)])
    assert set(goals(f, [form])) == {a, b}
    assert SafetyReduction(f, frozenset([a])).form(form) == TRUE
    assert SafetyReduction(f, frozenset([b])).form(form) == f.release(b, f.disjunction([a, b]))
    assert SafetyReduction(f, frozenset()).form(form) == FALSE
    assert is_co_safe(f, f.until(a, b))
    assert is_co_safe(f, globally(f, a, 7))
    assert not is_co_safe(f, eventually(f, globally(f, a)))


@pytest.mark.parametrize("last", [0, 1, 4])
def test_progression_counts_down(last: int) -> None:
    f = Formulas()
    a = f.literal(0, positive=True)
    left = Progression(f, LETTERS)
    form = eventually(f, a, last)
    for _ in range(last):
        form = left.after(form, 0)
        assert form not in {TRUE, FALSE}
    assert left.after(form, 0) == FALSE
    assert left.after(form, 3) == TRUE
