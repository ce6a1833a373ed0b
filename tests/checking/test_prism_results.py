"""Reading what PRISM writes: the forms of its files, and nothing else."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np
import pytest

from tracebridge.checking.prism_results import read_rationals, read_states, read_vector, refuse_error
from tracebridge.errors import EngineError, UnsupportedError


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "result.txt"


def test_states_and_a_vector_in_another_order(file):
    file.write_text("(s)\n0:(2)\n1:(0)\n2:(1)\n")
    order = read_states(file, 3)
    assert order.tolist() == [2, 0, 1]
    file.write_text("0.125\n1.0E-5\nInfinity\n")
    assert read_vector(file, order).tolist() == [1e-5, inf, 0.125]
    file.write_text("true\r\nfalse\r\ntrue\r\n")
    assert read_vector(file, order).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not begin with"),
        ("(x)\n0:(0)\n1:(1)\n", "does not begin with"),
        ("(s)\n0:(0)\n", "lists 1 states of a chain that has 2"),
        ("(s)\n0:(0)\n1:(1)\n2:(2)\n", "lists 3 states"),
        ("(s)\n0:(0)\n1:(0)\n", "every value of s once"),
        ("(s)\n0:(0)\n1:(7)\n", "every value of s once"),
        ("(s)\n1:(0)\n0:(1)\n", "has no state 0"),
        ("(s)\n0:(0,true)\n1:(1)\n", "has no state 0"),
        ("(s)\n0:(-1)\n1:(1)\n", "has no state 0"),
        ("(s)\n0:(0)\n1:(1)", "in the middle of a line"),
        (f"(s)\n0:({'9' * 200_000})\n1:(1)\n", "larger than"),
    ],
)
def test_states_that_are_not_those_of_the_chain(file, text, message):
    file.write_text(text)
    with pytest.raises(EngineError, match=message):
        read_states(file, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5\n", "gives 1 values for 2 states"),
        ("0.5\n0.5\n0.5\n", "gives 3 values"),
        ("0.5\nNaN\n", r"no number \(NaN\) in 1 of 2 states, the first being s=1"),
        ("0.5\n1/2\n", "value 2 of 2 is no number: '1/2'"),
        ("0.5\n 0.5\n", "is no number"),
        ("0.5\n0x1p-1\n", "is no number"),
        ("0.5\n١.٥\n", "is no number"),
        ("0.5\n0.", "in the middle of a line"),
        ("0.5\n" * 100_000, "larger than"),
    ],
)
def test_a_vector_that_is_none(file, text, message):
    file.write_text(text, encoding="utf-8")
    with pytest.raises(EngineError, match=message):
        read_vector(file, np.arange(2))


def test_a_file_that_was_not_written(file):
    with pytest.raises(EngineError, match=r"did not write its file result\.txt: No such file"):
        read_vector(file, np.arange(2))


def block(name: str, result: str) -> str:
    return f'"""{name}"": filter(state, P=? [ F ""a0"" ], s=0)"\nResult\n{result}\n'


def test_results_in_rationals(file):
    digits = "9" * 6_000  # more than Python itself turns into an integer
    results = ["24/79", "1", "0", "Infinity", f"1/{digits}"]
    names = [f"v{i}" for i in range(len(results))]
    file.write_text("\n".join(map(block, names, results)))
    assert read_rationals(file, names) == [Fraction(24, 79), 1, 0, inf, Fraction(1, 10**6_000 - 1)]
    file.write_text("Result\n24/79\n")  # a lone property has no head
    assert read_rationals(file, ["v0"]) == [Fraction(24, 79)]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", EngineError, "has 1 of 2 results"),
        (block("v0", "1/2"), EngineError, "has 1 of 2 results"),
        (block("v0", "1/2") + "\n" + block("v2", "1/2"), EngineError, "in the place of v1"),
        (block("v0", "1/2") + "\n" + block("v1", "0.5"), EngineError, "gives '0.5' for v1, which is no rational"),
        (block("v0", "1/2") + "\n" + block("v1", "1/0"), EngineError, "no rational"),
        (block("v0", "1/2") + "\n" + block("v1", "NaN"), EngineError, "no rational"),
        (block("v0", "1/2") + "\n" + block("v1", "1/2\n3"), EngineError, "gives '1/2 3' for v1"),
        (block("v0", "1/2") + "\n" + block("v1", "Error: out of memory."), EngineError, "out of memory"),
        (
            block("v0", "Error: Bounded until operator not supported by exact engine.") + "\n" + block("v1", "1"),
            UnsupportedError,
            "not supported by exact engine",
        ),
    ],
)
def test_results_that_are_no_rationals(file, text, error, message):
    file.write_text(text)
    with pytest.raises(EngineError, match=message) as caught:
        read_rationals(file, ["v0", "v1"])
    assert type(caught.value) is error


def test_a_result_is_not_an_error(file):
    for result in ("0.46875", "1", "true", "Infinity"):
        file.write_text(f"Result\n{result}\n")
        refuse_error(file)
    file.write_text("Result\nError: Iterative method did not converge within 10 iterations.\nConsider another.\n")
    with pytest.raises(EngineError, match=r"did not converge within 10 iterations\. Consider another"):
        refuse_error(file)
    file.write_text('P=? [ F "x" ]\n0.5\n')
    with pytest.raises(EngineError, match="has no result"):
        refuse_error(file)
    file.write_text("Result\nError: The explicit engine does not yet handle this operator.\n")
    with pytest.raises(UnsupportedError, match="does not yet handle"):
        refuse_error(file)
