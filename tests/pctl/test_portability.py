"""What a tool is said to take, it takes; and it means there what it means here."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pctl.strategies import formulas, queries

from tracebridge.pctl import (
    ast,
    format_formula,
    format_properties,
    parse_formula,
    parse_properties,
    portability,
    resolve_constants,
)
from tracebridge.pctl.portability import storm_form

_STORM = """
import json, sys
import stormpy
from stormpy import developer
developer.set_log_level(developer.LogLevel.OFF)
request = json.load(sys.stdin)
model = None
if request["model"]:
    model = stormpy.build_model(stormpy.parse_prism_program(request["model"]))
answers = []
for text in request["texts"]:
    try:
        properties = stormpy.parse_properties(text)
    except Exception as error:
        answers.append(str(error))
        continue
    if model is None:
        answers.append([entry.get_name() for entry in properties])
    else:
        result = stormpy.model_checking(model, properties[0])
        answers.append(result.get_value(0) if result.is_quantitative() else bool(result[0]))
json.dump(answers, open(request["answers"], "w"))
"""


def storm(texts: list[str], folder: Path, model: str | None = None) -> list[Any]:
    """What Storm says to each text: the names of the properties that it read, its message, or a value of the model."""
    pytest.importorskip("stormpy")
    request = {"texts": texts, "model": None, "answers": str(folder / "answers.json")}
    if model is not None:
        (folder / "model.prism").write_text(model)
        request["model"] = str(folder / "model.prism")
    subprocess.run([sys.executable, "-c", _STORM], input=json.dumps(request), text=True, check=True, timeout=120)
    answers: list[Any] = json.loads((folder / "answers.json").read_text())
    return answers


@pytest.mark.parametrize(
    ("text", "storm_text"),
    [
        ('P=? [ G<=5 "a" ]', 'P=? [ !(F<=5 !"a") ]'),
        ('P>=0.9 [ G[2,4] !"a" ]', 'P>=0.9 [ !(F[2,4] "a") ]'),
        ('P=? [ G "a" ]', 'P=? [ G "a" ]'),
        ('P=? [ "a" W "b" ]', 'P=? [ !(("a" & !"b") U (!"a" & !"b")) ]'),
        ('P=? [ "a" R<=3 "b" ]', 'P=? [ !(!"a" U<=3 !"b") ]'),
        ('"a" => P>0 [ F "b" ]', '!"a" | P>0 [ F "b" ]'),
        ('"a" <=> "b"', '"a" & "b" | !"a" & !"b"'),
        ('"a" = "b"', '"a" & "b" | !"a" & !"b"'),
        ('"a" ? "b" : !"c"', '"a" & "b" | !"a" & !"c"'),
        ('P=? [ F ("a" => "b") ]', 'P=? [ F (!"a" | "b") ]'),
        ('P=? [ F<=k+1 "a" ]', 'P=? [ F<=(k + 1) "a" ]'),
    ],
)
def test_what_storm_gets(text: str, storm_text: str) -> None:
    formula = parse_formula(text)
    assert portability(formula, "storm") == []
    assert format_formula(storm_form(formula), target="storm") == storm_text


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ('1 - P=? [ F "a" ]', "storm", "Storm does not calculate with operators"),
        ('P=? [ F "a" ] > 0.3', "storm", "Storm does not calculate with operators"),
        ('P=? [ F>=3 "a" ]', "storm", "Storm does not check a step bound without an upper end"),
        ('P=? [ G>2 "a" ]', "storm", "Storm does not check a step bound without an upper end"),
        ('("a" ? 1 : 0) > 0.5', "storm", "Storm takes no label and no operator inside an expression"),
        (
            'P=? [ F "tool-call" ]',
            "prism",
            "PRISM cannot read the label 'tool-call': a name consists of letters, digits",
        ),
        ('P=? [ F "module" ]', "storm", "Storm cannot read the label 'module': a reserved word there"),
        ('R{"1st"}=? [ C ]', "prism", "PRISM cannot read the reward structure '1st'"),
        ('Pmax>=0.5 [ F "a" ]', "prism", "PRISM takes min and max only with =?"),
        ('P=? [ F<=3000000000 "a" ]', "prism", "PRISM has no whole number above 2,147,483,647"),
        ('P=? [ F<=T "a" ]', "storm", "Storm keeps the word T for itself"),
    ],
)
def test_obstacles(text: str, target: str, message: str) -> None:
    (finding,) = portability(parse_formula(text), target)  # type: ignore[arg-type]
    assert finding.message.startswith(message)
    assert finding.severity == "note"


def test_nested_equivalences_do_not_explode() -> None:
    formula: ast.Formula = ast.Label("a")
    for _ in range(60):
        formula = ast.Binary("<=>", formula, ast.Label("b"))
    (finding,) = portability(formula, "storm")
    assert finding.message == "Storm has no <=>, and without it the formula is too large"


FILE = """\
// A file.
const int T = 3;
label "done" = "a" | "tool-call";
//@ requirement X
"first-one": P>=0.5 [ G<=4 !"done" ];
"second": 1 - P=? [ F "a" ];
R{"steps"}<5 [ C<T ];
"""


def names(name: str) -> str:
    return name.replace("-", "_")


def test_a_file_for_storm() -> None:
    assert format_properties(parse_properties(FILE), target="storm", names=names) == (
        "// A file.\n"
        "// Storm keeps the word T for itself\n"
        "// const int T = 3;\n"
        "//@ requirement X\n"
        '"first_one": P>=0.5 [ !(F<=4 ("a" | "tool_call")) ];\n'
        "// Storm does not calculate with operators\n"
        '// "second": 1 - P=? [ F "a" ];\n'
        "// Storm keeps the word T for itself\n"
        '// R{"steps"}<5 [ C<T ];\n'
    )


def test_a_file_for_prism() -> None:
    assert format_properties(parse_properties(FILE), target="prism", names=names) == (
        "// A file.\n"
        "const int T = 3;\n"
        "//@ requirement X\n"
        '"first_one": P>=0.5 [ G<=4 !("a" | "tool_call") ];\n'
        '"second": 1 - P=? [ F "a" ];\n'
        'R{"steps"}<5 [ C<=T - 1 ];\n'
    )


@pytest.mark.storm
@settings(max_examples=1, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.lists(
        formulas(["a", "b", "tool-call"], 3, rewards=["r"]) | queries(["a", "b", "tool-call"], 2, rewards=["r"]),
        min_size=150,
        max_size=150,
    )
)
def test_storm_reads_what_is_said_to_be_portable(
    tmp_path_factory: pytest.TempPathFactory, trees: list[ast.Formula]
) -> None:
    portable = [tree for tree in trees if not portability(tree, "storm", names)]
    assert portable
    texts = [format_formula(storm_form(tree), target="storm", names=names) for tree in portable]
    for text, answer in zip(texts, storm(texts, tmp_path_factory.mktemp("storm")), strict=True):
        assert answer == ["1"], f"{text}: {answer}"


@pytest.mark.storm
def test_storm_reads_a_whole_file_and_its_names(tmp_path: Path) -> None:
    text = format_properties(parse_properties(FILE), target="storm", names=names)
    assert storm([text], tmp_path) == [["first_one"]]


@pytest.mark.storm
@pytest.mark.shared_data
def test_storm_computes_from_our_text_what_prism_computes_from_the_users(shared_data: Path, tmp_path: Path) -> None:
    """Rewritten operators (bounded G, W, R, =>, ...) keep their meaning: PRISM's recorded values are the reference."""
    shared = json.loads((shared_data / "property_syntax.json").read_text())
    texts, expected = [], []
    for row in shared["rows"]:
        value = str(row["prism"].get("value"))
        try:
            file = parse_properties("const int NN = 4; const double p0 = 0.2;" + row["property"])
            (entry,) = resolve_constants(file).properties
        except ValueError:
            continue
        if row["prism"]["status"] != "ok" or portability(entry, "storm") or "R=?" in entry.text or "Rmax" in entry.text:
            continue
        texts.append(format_formula(storm_form(entry.formula), target="storm"))
        expected.append({"true": 1.0, "false": 0.0}.get(value, value.partition(" ")[0]))
    assert 'P=? [ !(F<=5 "failure") ]' in texts
    assert len(texts) > 25
    for text, answer, reference in zip(texts, storm(texts, tmp_path, shared["model"]), expected, strict=True):
        assert answer == pytest.approx(float(reference), rel=2e-5, abs=1e-9), text


def test_a_threshold_of_a_third_stays_a_third() -> None:
    third = ast.Probability(
        ast.Eventually(ast.Label("a")), ast.Threshold(">=", ast.Number(Fraction(1, 3), integer=False))
    )
    assert format_formula(third, target="storm") == 'P>=1/3 [ F "a" ]'
