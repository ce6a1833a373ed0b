from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.errors import Location, Problem
from tracebridge.traces.problems import ProblemLog, counted, escaped, shown


@given(text=st.text())
def test_names_are_shown_on_one_line_and_cut(text: str) -> None:
    assert escaped(text).isprintable()
    assert len(escaped(text)) <= 60 * len("\\U0010ffff") + 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("O'Hare", "'O'Hare'"),
        ("\x1b[31m\n", r"'\x1b[31m\n'"),
        ("x" * 61, "'" + "x" * 60 + "…'"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (0.5, "0.5"),
        pytest.param(1 << 16609, "an integer of 16610 bits", id="huge"),
        ([1], "a list"),
        ({}, "a dict"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert shown(value) == text


def test_numbers_and_their_nouns() -> None:
    assert [counted(number, "run") for number in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_what_is_beyond_the_limit_is_counted() -> None:
    log = ProblemLog(2)
    for index in range(3):
        log.note(Problem(location=Location(), message=str(index)))
        log.refuse([Problem(location=Location(), message=f"{index}{part}") for part in "ab"])
    assert (log.n_problems, log.n_notes, log.n_skipped) == (6, 3, 3)
    assert [str(problem) for problem in log.listing()] == ["0a", "0b", "and 4 more problems"]
    assert [str(note) for note in log.notes] == ["0", "1"]


@given(limit=st.integers(1, 4), parts=st.lists(st.lists(st.integers(0, 2), max_size=4), max_size=3))
def test_logs_add_up(limit: int, parts: list[list[int]]) -> None:
    """One log of everything is the sum of logs of its parts."""
    whole, total = ProblemLog(limit), ProblemLog(limit)
    for i, records in enumerate(parts):
        part = ProblemLog(limit)
        for j, n_problems in enumerate(records):
            problems = [Problem(location=Location(line=j), message=f"{i} {k}") for k in range(n_problems)]
            for log in (whole, part):
                log.refuse(problems)
                log.note(Problem(location=Location(), message=f"{i} {j}"))
        total.update(part)
    for name in ("problems", "notes", "n_problems", "n_notes", "n_skipped"):
        assert getattr(total, name) == getattr(whole, name)
