"""What is accepted and refused, against what PRISM and Storm themselves accept."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracebridge.errors import PropertyError
from tracebridge.pctl import ast, parse_formula, parse_properties, read_properties
from tracebridge.pctl.parser import MAX_BYTES

# Constructs that PRISM parses and that are not in the language yet, by the group they have in the shared file.
LATER_GROUPS = {"LTL", "CTL", "filter", "multi", "HOA", "cond"}
LATER = {'R{1}=? [ F "done" ]', '"n1": P=? [ F "success" ]; "n2": "n1" + 1'}
# Refused by both tools, accepted here on purpose: names in quotes may be any text; exports map them.
OURS = {'"name-1": P=? [ F "success" ]', 'P=? [ F "suc-cess" ]'}
# Refused only because a constant has no value yet, or a label is not in the model: syntax is not the reason.
NOT_SYNTAX = ("Undefined constant", "Undeclared label")


@pytest.mark.shared_data
def test_the_language_is_that_of_prism(shared_data: Path) -> None:
    """What PRISM parses parses, or says that it is to come; what PRISM refuses is refused."""
    rows = json.loads((shared_data / "property_syntax.json").read_text())["rows"]
    parsed, later, refused = 0, 0, 0
    for row in rows:
        text, prism, _storm = row["property"], row["prism"], row["storm"]
        takes = prism["status"] == "ok" or prism.get("message", "").startswith(NOT_SYNTAX)
        if text in OURS or (takes and row["group"] not in LATER_GROUPS and text not in LATER):
            assert parse_properties(text).properties, text
            parsed += 1
        elif takes and row["group"] != "cond":
            with pytest.raises(PropertyError, match="not supported yet"):
                parse_properties(text)
            later += 1
        else:
            with pytest.raises(PropertyError):
                parse_properties(text)
            refused += 1
    assert parsed + later + refused == len(rows)
    assert min(parsed, later, refused) > 10  # the file is not empty, and every kind occurs


def test_declarations_names_and_annotations() -> None:
    file = parse_properties(
        'const int k = 3; const double p; const bool b = true; const n = 2;\nlabel "done" = "a" | "b";\n'
        "//@ requirement REQ-7\n//@ credible 0.95   over the posterior\n"
        '"große Tat": P>=p [ F<=k "done" ];\n//@ severity minor'
    )
    assert [(constant.name, constant.type) for constant in file.constants] == [
        ("k", "int"),
        ("p", "double"),
        ("b", "bool"),
        ("n", "int"),
    ]
    assert file.labels[0].name == "done"
    (entry,) = file.properties
    assert entry.name == "große Tat"
    assert entry.text == 'P>=p [ F<=k "done" ]'
    assert entry.annotation("requirement") == "REQ-7"
    assert entry.annotation("credible") == "0.95"
    assert entry.annotation("severity") is None
    assert [note.key for note in file.unattached] == ["severity"]


def test_properties_end_at_a_semicolon_or_at_the_end_of_their_line() -> None:
    text = 'P=? [ F "a" ]\nP=?\n  [ F\n "b" ]\n"n": P=? [ F "c" ]; P=? [ F "d" ];;\nP>=0.5 [ F "e" ] // f\n'
    assert [entry.text[-4] for entry in parse_properties(text).properties] == ["a", "b", "c", "d", "e"]


def test_the_same_text_gives_the_same_places() -> None:
    formula = parse_formula('P>=0.5 [ F ("a" & (x = 1)) ]')
    places = {type(node).__name__: node.span for node in ast.walk(formula)}
    assert places["Probability"] == ast.Span(line=1, column=1, end_line=1, end_column=29)
    assert places["Eventually"] == ast.Span(line=1, column=10, end_line=1, end_column=27)
    assert places["Identifier"] == ast.Span(line=1, column=20, end_line=1, end_column=21)


def test_comments_may_hold_anything_and_names_may_hold_comments() -> None:
    file = parse_properties('// "not closed [ (\nP=? [ F "http://x" ] // ]]]\n')
    assert file.properties[0].formula == ast.Probability(ast.Eventually(ast.Label("http://x")))


@pytest.mark.parametrize("text", ["", "\n\n", "// nothing\n", "\ufeff"])
def test_a_file_may_be_empty(text: str) -> None:
    assert parse_properties(text).properties == ()


def test_a_formula_stands_alone() -> None:
    with pytest.raises(PropertyError):
        parse_formula('"n": P=? [ F "a" ]')
    with pytest.raises(PropertyError):
        parse_formula('P=? [ F "a" ];')


def test_a_function_name_can_name_a_constant() -> None:
    assert parse_properties("const int log = 3; log + 1 = 4").constants[0].name == "log"


def test_reading_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.props"
    path.write_bytes(b'\xef\xbb\xbf"n": P=? [ F "a" ];\r\n')
    file = read_properties(path)
    assert file.path == str(path)
    assert file.properties[0].name == "n"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b'P=? [ F "a" ]')))
    assert read_properties("-").path == "<stdin>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"a\.props: no such property file"),
        (b'"a"\n\xff', r"a\.props:2: byte 0xff is not UTF-8"),
        (b"P=? [ F \x00 ]", r"a\.props:1:9: unexpected U\+0000"),
        (b" " * (MAX_BYTES + 1), r"a\.props: a property text of more than 200,000 bytes"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "a.props"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PropertyError, match=message):
        read_properties(path)


def test_a_directory_is_no_property_file(tmp_path: Path) -> None:
    with pytest.raises(PropertyError, match="this is a directory"):
        read_properties(tmp_path)
