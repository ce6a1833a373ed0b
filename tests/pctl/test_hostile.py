"""Texts made to break a parser: deep, long, huge, malformed."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import PropertyError
from tracebridge.pctl import ast, parse_formula, parse_properties, read_properties
from tracebridge.pctl.nesting import MAX_DEPTH
from tracebridge.pctl.parser import MAX_BYTES
from tracebridge.pctl.source import MAX_PROBLEMS


def nested(levels: int) -> list[tuple[str, str]]:
    """Texts whose trees have this many levels, one for each way to nest."""
    pairs = (levels - 1) // 2
    return [
        ("negations", "!" * (levels - 1) + '"a"'),
        ("minus signs", "x = " + "-" * (levels - 2) + "1"),
        ("operators", "P>=0.5 [ F " * pairs + "!" * ((levels - 1) % 2) + '"a"' + " ]" * pairs),
        ("temporal operators", "P>=0.5 [ " + "X " * (levels - 2) + '"a" ]'),
        ("negated paths", "P>=0.5 [ " + "!" * (levels - 3) + 'X "a" ]'),
        ("until in until", "P>=0.5 [ " + '("a" U ' * (levels - 3) + '("b" U "c")' + ")" * (levels - 3) + " ]"),
        ("conditionals", "x ? y : " * (levels - 1) + "y"),
        ("calls", "max(1, " * (levels - 1) + "2" + ")" * (levels - 1)),
        ("filters", "filter(print, " * (levels - 1) + "2" + ")" * (levels - 1)),
        ("right-nested", '"a" & (' * (levels - 1) + '"a"' + ")" * (levels - 1)),
        ("mixed chain", "(" * (levels - 1) + '"a"' + "".join(f' {"&|"[k % 2]} "b")' for k in range(levels - 1))),
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), nested(MAX_DEPTH), ids=[kind for kind, _ in nested(3)])
def test_the_deepest_nesting_is_accepted(kind: str, text: str) -> None:
    parse_formula(text)


@pytest.mark.parametrize(("kind", "text"), nested(MAX_DEPTH + 1), ids=[kind for kind, _ in nested(3)])
def test_one_level_more_is_refused_with_its_place(kind: str, text: str) -> None:
    with pytest.raises(PropertyError, match=r"^<text>:1:\d+: nested more than 1,000 deep"):
        parse_formula(text)


@pytest.mark.parametrize("sign", ["|", "&", "=>", "<=>", "+", "*", "=", "<"])
def test_a_long_chain_is_no_nesting(sign: str) -> None:
    operand = "1" if sign in "+*<" else '"a"'
    if sign == "<":  # comparisons of comparisons have no type
        operand = "x"
    length = 10_000 if sign == "|" else 2_000
    text = f" {sign} ".join([operand] * length)
    if sign == "<":
        with pytest.raises(PropertyError, match="< needs a number, and this is a truth value"):
            parse_formula(text)
        return
    assert sum(1 for _ in ast.walk(parse_formula(text))) == 2 * length - 1


def test_a_long_chain_of_paths_is_no_nesting() -> None:
    text = "P=? [ " + " | ".join(['(X "a")'] * 3_000) + " ]"
    assert sum(isinstance(node, ast.PathBinary) for node in ast.walk(parse_formula(text))) == 2_999


def test_chains_of_different_strength_alternate() -> None:
    """``a & b | c & d | ...`` is two levels of chains, however long."""
    assert parse_formula(" | ".join(['"a" & "b"'] * 2_000))


def test_parentheses_alone_are_no_levels() -> None:
    assert parse_formula("(" * 20_000 + '"a"' + ")" * 20_000) == ast.Label("a")


@pytest.mark.parametrize(
    "unit",
    [
        "(", "[", "{", "!", "-", "P>=0.5 [ F ", "x ? ", "F ", "F<=", "F steps<=", "C{", "filter(max,", "max(", "<<",
        "[[", "[[p]] ", "quantile(", "T<=", "R{", "LRA>1+", "A [ ", '"a" U ', "||", "HOA: {", "x = ", '"', "\\",
        "\x00", "é", "^{", "F{steps<=1,", "P=? [ F x {",
    ],
)  # fmt: skip
def test_a_repeated_opening_is_an_error_and_no_crash(unit: str) -> None:
    repeated = unit * (10_000 // len(unit))
    for text in (repeated, f"P=? [ {repeated}"):
        with pytest.raises(PropertyError) as caught:
            parse_properties(text)
        assert len(caught.value.problems) <= MAX_PROBLEMS
        assert len(str(caught.value)) < 20_000


@pytest.mark.parametrize("unit", ["(", "P>=0.5 [ F "])
def test_the_longest_text_is_no_problem_either(unit: str) -> None:
    with pytest.raises(PropertyError):
        parse_properties(unit * (MAX_BYTES // len(unit)))


def test_errors_stay_fast_where_there_are_many() -> None:
    """Reading goes on after each error; the whole text is read once, and no more than twenty errors are described."""
    with pytest.raises(PropertyError) as caught:
        parse_properties("P=? [;" * (MAX_BYTES // 6))
    assert len(caught.value.problems) == MAX_PROBLEMS


@pytest.mark.parametrize(
    "number", ["1" * 100_000, "0." + "1" * 100_000, "1e" + "9" * 100_000, "1e100000", "1e-100000", "." + "0" * 100_000]
)
@pytest.mark.parametrize("around", ["%s = 1", 'P>=%s [ F "a" ]', 'P=? [ F<=%s "a" ]', "const double c = %s; c = 1"])
def test_enormous_constants_are_refused(number: str, around: str) -> None:
    with pytest.raises(PropertyError, match="this number has more than 4,300 digits"):
        parse_properties(around % number)


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.props"
    with path.open("wb") as file:
        file.truncate(10**11)  # a hole: 100 GB that no reader could hold
    with pytest.raises(PropertyError, match=r"huge\.props: a property text of more than 200,000 bytes"):
        read_properties(path)


def test_endless_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            assert 0 <= size <= 2 * MAX_BYTES
            return b"a" * size

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Endless()))
    with pytest.raises(PropertyError, match="more than 200,000 bytes"):
        read_properties("-")


def test_parsing_takes_no_recursion() -> None:
    """Every step up to the typed tree works within a few frames, whatever the depth."""
    parse_formula('"a"')  # the grammar is built, which is allowed to recurse
    limit = sys.getrecursionlimit()
    frame, used = sys._getframe(), 1
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    sys.setrecursionlimit(used + 60)
    try:
        for _, text in nested(MAX_DEPTH):
            parse_properties(text)
    finally:
        sys.setrecursionlimit(limit)


PIECES = [
    "P", "Pmax", "R", "S", "T", "LRA", "A", "E", "F", "G", "X", "U", "W", "C", "I", "HOA", "filter", "multi", "steps",
    "quantile", "time", "rew", "discount", "min", "max", "log", "true", "const", "int", "label", "x", '"a"', "0.5", "3",
    "=", "?", "<=", ">", "<", "[", "]", "(", ")", "{", "}", "&", "|", "||", "=>", "<=>", "!", "+", "-", "*", "/", "^",
    ",", ":", ";", "\n", "->", "<<", ">>", "//", "$", "=?", "P=? [ F ", 'R{"r"}=? [ C', "filter(max, ", '"n": ',
]  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join) | st.text(max_size=40))
def test_any_text_is_parsed_or_refused_with_places_in_it(text: str) -> None:
    try:
        parse_properties(text)
    except PropertyError as error:
        problems = error.problems
    else:
        return
    assert 1 <= len(problems) <= MAX_PROBLEMS
    lines = text.removeprefix("\ufeff").split("\n")
    for problem in problems:
        assert problem.location.line is not None
        assert problem.location.column is not None
        assert problem.location.line <= len(lines)
        assert problem.location.column <= len(lines[problem.location.line - 1]) + 1
        assert problem.message
