"""What is accepted and refused, against what PRISM and Storm themselves accept: 108 strings, both tools' answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tracebridge.errors import PropertyError
from tracebridge.pctl import parse_formula, parse_properties

ACCEPTED_ON_PURPOSE = {
    '"name-1": P=? [ F "success" ]': "names in quotes are the user's own text; exports map them to identifiers",
    'P=? [ F "suc-cess" ]': "names in quotes are the user's own text; exports map them to identifiers",
}
# PRISM reports these as parse errors, though the text is well-formed: a constant without a value, a label or an
# identifier that its model lacks.
NOT_SYNTAX = ("Undefined constant", "Undeclared label", "Undeclared identifier")


def parses(answer: dict[str, str]) -> bool:
    """Whether a tool parsed the string, whatever it then made of it."""
    return answer["status"] != "parse-err" or answer["message"].startswith(NOT_SYNTAX)


@pytest.mark.shared_data
def test_what_prism_or_storm_parses_parses_and_the_rest_is_refused(shared_data: Path) -> None:
    rows = json.loads((shared_data / "property_syntax.json").read_text())["rows"]
    assert len(rows) == 108
    wrong = []
    refused = 0
    for row in rows:
        text = row["property"]
        expected = parses(row["prism"]) or parses(row["storm"]) or text in ACCEPTED_ON_PURPOSE
        refused += not expected
        try:
            parse_properties(text)
        except PropertyError as error:
            if expected:
                wrong.append(f"refused: {error}")
        else:
            if not expected:
                wrong.append(f"accepted: {text}")
    assert not wrong, "\n".join(wrong)
    assert refused == 9  # && and in formula, U U, R(var) R(exp) R[var], S of a path


@pytest.mark.shared_data
def test_every_exception_is_in_the_table_and_refused_by_both(shared_data: Path) -> None:
    rows = {row["property"]: row for row in json.loads((shared_data / "property_syntax.json").read_text())["rows"]}
    for text in ACCEPTED_ON_PURPOSE:
        assert not parses(rows[text]["prism"])
        assert not parses(rows[text]["storm"])
        assert parse_properties(text).properties


# ---------------------------------------------------------------- the same tree as Storm's, from bare text

STORM = """
import json, sys
import stormpy
from stormpy import developer
developer.set_log_level(developer.LogLevel.OFF)
read = []
for text in json.load(sys.stdin):
    try:
        (parsed,) = stormpy.parse_properties(text)
        read.append(str(parsed.get_raw_formula()))
    except RuntimeError:
        read.append(None)
json.dump(read, sys.stderr)
"""


def bare_path(random: Random, operators: int) -> str:
    """A formula of LTL with few parentheses, so that precedence decides what belongs together."""
    if operators == 0:
        return random.choice(['"a"', '"b"', '"c"'])
    form = random.randrange(3)
    if form == 0:
        return random.choice(["!", "X ", "F ", "G ", "F<=3 "]) + bare_path(random, operators - 1)
    if form == 1:
        return f"({bare_path(random, operators - 1)})"
    left = random.randrange(operators)
    sign = random.choice([" & ", " | ", " U "])
    return bare_path(random, left) + sign + bare_path(random, operators - 1 - left)


@pytest.mark.storm
def test_bare_text_groups_as_in_storm() -> None:
    """Storm prints what it read with every parenthesis, which leaves nothing to precedence."""
    random = Random(1)
    texts = sorted({f"P=? [ {bare_path(random, random.randrange(2, 9))} ]" for _ in range(1_500)})
    texts = [text for text in texts if any(letter in text[1:] for letter in "XFGU")]  # we want a temporal operator
    script = [sys.executable, "-c", STORM]
    answer = subprocess.run(script, input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=300)
    agreed = 0
    for text, storm in zip(texts, json.loads(answer.stderr), strict=True):
        if storm is None:
            with pytest.raises(PropertyError):
                parse_formula(text)
        else:
            assert parse_formula(text) == parse_formula(storm.replace("true U<=3", "F<=3")), text
            agreed += 1
    assert agreed > 500
