"""Probabilities under a condition against brute force over schedulers with memory, against chains, and by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.chain.test_decision import router
from tests.closedform.decision.references import holds_in, operator_of, values_by_schedulers

from tracebridge.chain import RationalMatrix, RationalVector
from tracebridge.chain.decision import DecisionProcess
from tracebridge.closedform.decision import ExactOptimiser, FloatOptimiser, optimal_values
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.errors import UnsupportedError

UNDEFINED = "undefined"


def optimum(process: DecisionProcess, text: str) -> list[Fraction | str]:
    values = optimal_values(ExactOptimiser(process), operator_of(text), holds_in(process)).values
    return [UNDEFINED if isinstance(value, float) else value for value in values.value.tolist()]


def remembering(process: DecisionProcess, first: str, second: str) -> DecisionProcess:
    """The process over states, whether a was seen or missed as the path asks, and the same of b for the condition.

    For ``F`` what is remembered is a state of the label, for ``G`` one outside it. Once both are known the choice is
    the first, because it does not matter. The first states are those of the process itself.
    """
    told = [process.label(label) == (kind == "F") for kind, label in ((first, "a_"), (second, "b_"))]

    def seen(state: int, before: tuple[bool, bool]) -> tuple[int, bool, bool]:
        return state, before[0] or bool(told[0][state]), before[1] or bool(told[1][state])

    found = [seen(state, (False, False)) for state in range(process.n_states)]
    rows, sizes, k = [], [], 0
    matrix = process.exact_transitions()
    while k < len(found):
        state, *before = found[k]
        choices = range(*process.choice_starts[state : state + 2].tolist())
        chosen = choices[:1] if all(before) else choices
        sizes.append(len(chosen))
        for row in chosen:
            entries: dict[int, Fraction] = {}
            for target, probability in matrix.row(row).items():
                after = seen(target, (before[0], before[1]))
                if after not in found:
                    found.append(after)
                entries[found.index(after)] = probability
            rows.append(entries)
        k += 1
    n = len(found)
    return DecisionProcess(
        states=tuple(map(str, found)),
        actions=tuple([("",) * size for size in sizes]),
        transitions=RationalMatrix.from_rows(rows, n),  # type: ignore[arg-type]
        initial=RationalVector(np.eye(1, n, dtype=np.int64)[0], 1),  # type: ignore[arg-type]
        labels={name: process.label(name)[[state for state, *_ in found]] for name in ("a_", "b_")},
    )


def undecided(seed: int, first: str, second: str) -> DecisionProcess:
    """Three choices in the first of two states that lead to one where a is told, one where b is, and an end."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 5, (6, 5)) * (rng.random((6, 5)) < 0.7)
    weights[:, 4] += 1  # all of them may end
    rows = [{j: Fraction(int(x), int(row.sum())) for j, x in enumerate(row) if x} for row in weights]
    told = {"a": np.arange(5) == 2, "b": np.arange(5) == 3}
    return DecisionProcess(
        states=tuple("01abe"),
        actions=(("x", "y", "z"), ("",), ("",), ("",), ("",)),
        transitions=RationalMatrix.from_rows([*rows, {4: Fraction(1)}], 5),  # type: ignore[arg-type]
        initial=np.eye(5)[0],
        labels={f"{name}_": told[name] if kind == "F" else ~told[name] for name, kind in (("a", first), ("b", second))},
    )


@pytest.mark.parametrize(("first", "second"), list(product("FG", "FG")))
def test_no_scheduler_with_memory_is_better_and_one_is_as_good(first: str, second: str) -> None:
    text = f'P=? [ {first} "a_" || {second} "b_" ]'
    process = undecided(1, first, second)
    between = 0
    columns = values_by_schedulers(remembering(process, first, second), text)[: process.n_states]
    for name, best in (("min", min), ("max", max)):
        defined = [[value for value in column if not math.isnan(value)] for column in columns]
        expected = [best(values) if values else UNDEFINED for values in defined]
        assert optimum(process, text.replace("=?", f"{name}=?")) == expected, name
        between += sum(isinstance(value, Fraction) and 0 < value < 1 for value in expected)
    assert between >= 3


FORMS = ['F "a_"', 'G !"b_"', '!"b_" U "a_"', '!"a_" W "b_"', '"b_" R !"a_"']


@pytest.mark.parametrize(("path", "condition"), list(product(FORMS, FORMS))[::2])
def test_a_chain_is_a_process_without_a_choice(path: str, condition: str) -> None:
    process = undecided(3, "F", "F")
    chain = process.induced(process.choice_starts[:-1])
    text = f"P=? [ {path} || {condition} ]"
    values = evaluate_operator(ExactArithmetic(chain), operator_of(text), holds_in(process)).value.tolist()
    expected = [UNDEFINED if isinstance(value, float) else value for value in values]
    assert any(isinstance(value, Fraction) for value in expected)
    for name in ("min", "max"):
        assert optimum(DecisionProcess.of_chain(chain), text.replace("=?", f"{name}=?")) == expected, name


def test_whoever_may_end_a_run_keeps_the_good_ones() -> None:
    """From 0 to a state that may stop or go on. To go on is right with 1/4; who has not stopped was right with 1/2.

    0 -> 1/2 right, 1/2 ask; in ask "stop" ends without an answer, and "guess" is right with 1/4. Of the runs that give
    an answer all are right if ask stops, and 5/8 if it guesses.
    """
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    process = DecisionProcess(
        states=("start", "ask", "right", "wrong", "stopped"),
        actions=(("",), ("stop", "guess"), ("",), ("",), ("",)),
        transitions=RationalMatrix.from_rows(  # type: ignore[arg-type]
            [{1: half, 2: half}, {4: Fraction(1)}, {2: quarter, 3: 1 - quarter}, {2: 1}, {3: 1}, {4: 1}], 5
        ),
        initial=np.eye(5)[0],
        labels={"answered": np.array([False, False, True, True, False])},
    )
    text = 'P{}=? [ F "right" || F "answered" ]'
    assert optimum(process, text.format("max")) == [1, quarter, 1, 0, UNDEFINED]
    assert optimum(process, text.format("min")) == [Fraction(5, 8), quarter, 1, 0, UNDEFINED]
    rounded = optimal_values(FloatOptimiser(process), operator_of(text.format("min")), holds_in(process)).values
    assert not rounded.exact
    assert (rounded.lower[0], rounded.upper[0]) == (0.625, 0.625)
    assert rounded.undefined.tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("path", ['F<=3 "success" || F "success"', 'F "success" || X "success"', 'F{"cost"}<=1 "done"'])
def test_bounds_are_refused_under_a_condition(path: str) -> None:
    text = f"Pmax=? [ {path} ]" if "||" in path else f'Pmax=? [ {path} || F "success" ]'
    with pytest.raises(UnsupportedError, match="without bounds"):
        optimum(router(), text)


def test_too_many_states_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracebridge.closedform.decision.conditional.MAX_STATES", 1)
    with pytest.raises(UnsupportedError, match="at most 1 states, not 2"):
        optimum(router(), 'Pmax=? [ F "success" || F "success" ]')
