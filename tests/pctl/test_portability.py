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
from tests.pctl.strategies import any_formulas, formulas, queries

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
        ('P=? [ F>=3 "a" ]', 'P=? [ F=3 F "a" ]'),
        ('P=? [ F>=0 "a" ]', 'P=? [ F "a" ]'),
        ('P=? [ G>2 "a" ]', 'P=? [ !(F=3 F !"a") ]'),
        ('P=? [ "a" U>=2 "b" ]', 'P=? [ !(F<2 !"a") & (F=2 ("a" U "b")) ]'),
        ('P=? [ "a" U[2,5] "b" ]', 'P=? [ !(F<2 !"a") & (F=2 ("a" U<=3 "b")) ]'),
        ('P=? [ "a" U=2 "b" ]', 'P=? [ !(F<2 !"a") & (F=2 ("a" U<=0 "b")) ]'),
        ('P=? [ true U>=2 "b" ]', 'P=? [ F=2 (true U "b") ]'),
        ('P=? [ F (G<=2 "a") ]', 'P=? [ F !(F<=2 !"a") ]'),
        ('P=? [ (F "a") => (X "b") ]', 'P=? [ !(F "a") | (X "b") ]'),
        ('P=? [ "a" <=> (X "b") ]', 'P=? [ "a" & (X "b") | !"a" & !(X "b") ]'),
        ('P=? [ "a" W (X "b") ]', 'P=? [ !(("a" & !(X "b")) U (!"a" & !(X "b"))) ]'),
        ("P=? [ F !true ]", "P=? [ F false ]"),
        ('E [ X "a" ]', 'P>0 [ X "a" ]'),
        ('E [ "a" U<=3 "b" ]', 'P>0 [ "a" U<=3 "b" ]'),
        ('E [ G<=3 "a" ]', 'P>0 [ !(F<=3 !"a") ]'),
        ('A [ G "a" ]', 'P<=0 [ F !"a" ]'),
        ('A [ "a" W "b" ]', 'P<=0 [ ("a" & !"b") U (!"a" & !"b") ]'),
        ('A [ F<=3 "a" ]', 'P<=0 [ !(F<=3 "a") ]'),
        ('filter(avg, P=? [ F "a" ])', 'filter(avg, P=? [ F "a" ], true)'),
        ('filter(printall, P=? [ F "a" ], "b")', 'filter(values, P=? [ F "a" ], "b")'),
        ('R{"r"}=? [ Cdiscount=0.9 ]', 'R{"r"}=? [ Cdiscount=0.9 ]'),
    ],
)
def test_what_storm_gets(text: str, storm_text: str) -> None:
    formula = parse_formula(text)
    assert portability(formula, "storm") == []
    assert format_formula(formula, target="storm") == storm_text
    assert format_formula(storm_form(formula), target="storm") == storm_text


@pytest.mark.parametrize(
    ("text", "prism_text"),
    [
        ('P=? [ F "a" || F "b" ]', 'P=? [ (F "a") & (F "b") ] / P=? [ F "b" ]'),
        ('P>=0.5 [ G "a" || X "b" ]', 'P=? [ (G "a") & (X "b") ] / P=? [ X "b" ] >= 0.5'),
        ('E [ F<=3 "a" ]', 'P>0 [ F<=3 "a" ]'),
        ('A [ F<=3 "a" ]', 'P<=0 [ !(F<=3 "a") ]'),
        ('A [ G<=3 "a" ]', 'P<=0 [ !(G<=3 "a") ]'),
        ('E [ G "a" ]', 'E [ G "a" ]'),
        ('R{"r"}=? [ C<5 ]', 'R{"r"}=? [ C<=4 ]'),
        ('filter(values, P=? [ F "a" ])', 'filter(printall, P=? [ F "a" ])'),
        ('P=? [ !(F<=3 "a") ]', 'P=? [ !(F<=3 "a") ]'),
        ('R{"r"}=? [ F ("a" & (X "b")) ]', 'R{"r"}=? [ F ("a" & (X "b")) ]'),
        ('P=? [ F "a" & X "b" ]', 'P=? [ F ("a" & (X "b")) ]'),
        ('P=? [ X X "a" ]', 'P=? [ X X "a" ]'),
        ('LRA=? [ "a" ]', 'S=? [ "a" ]'),
        ('P=? [ F "a" {"b"}{max} ]', 'filter(max, P=? [ F "a" ], "b")'),
        ('multi(Pmax=? [ F "a" ], P>=0.5 [ F "b" ])', 'multi(Pmax=? [ F "a" ], P>=0.5 [ F "b" ])'),
    ],
)
def test_what_prism_gets(text: str, prism_text: str) -> None:
    formula = parse_formula(text)
    assert portability(formula, "prism") == []
    assert format_formula(formula, target="prism") == prism_text


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ('1 - P=? [ F "a" ]', "storm", "Storm does not calculate with operators"),
        ('P=? [ F "a" ] > 0.3', "storm", "Storm does not calculate with operators"),
        ('P=? [ "a" U>=k "b" ]', "storm", "Storm does not check a step bound without an upper end"),
        ('P=? [ "a" U[k,9] "b" ]', "storm", "Storm misreads U within an interval of steps"),
        ('P=? [ "a" U[200,300] "b" ]', "storm", "Storm misreads U within an interval of steps"),
        ('P=? [ G>=2000 "a" ]', "storm", "Storm does not check a step bound without an upper end"),
        ('E [ G "a" ]', "storm", "Storm has no A and E, and a finite part of a run does not show this one"),
        ('A [ G<=3 (F "a") ]', "prism", "PRISM takes no step bounds in A and E, and a finite part of a run"),
        ('filter(first, P=? [ F "a" ])', "storm", "Storm has no filter first"),
        ('filter(forall, "a") & "b"', "storm", "Storm takes filter, quantile, multi and << >> only at the top"),
        ('filter(max, P=? [ F "a" ], P>0 [ X "b" ])', "storm", "Storm takes no operator in the states of a filter"),
        ('quantile(B, R{"r"}>1 [ C<=B ])', "storm", "Storm has quantiles of P only"),
        ('quantile(B, P>0.5 [ F<=2*B "a" ])', "storm", "Storm takes the variable of a quantile only alone"),
        ('quantile(T, P>0.5 [ F<=T "a" ])', "storm", "Storm keeps the word T for itself"),
        ('quantile(B, P>0.5 [ F<=B "a" ])', "prism", "PRISM has no quantile"),
        ('multilex(Pmax=? [ F "a" ], Pmin=? [ F "b" ])', "prism", "PRISM has no multilex"),
        ('[[p1]] Pmax=? [ F "a" ]', "storm", "Storm has no [[ ]]"),
        ('P=? [ F{"r"}<=5 "a" ]', "prism", "PRISM has no reward bounds"),
        ('R{"r"}=? [ C{"r"}<=5 ]', "prism", "PRISM has no reward bounds"),
        ('P=? [ F{"r"}[2,5] "a" ]', "storm", "Storm takes beside reward bounds, and in them, only bounds with one end"),
        ('P=? [ G{"r"}<=5 "a" ]', "storm", "Storm takes reward bounds in one F or U over conditions on states"),
        ('P>0.5 [ F P>0.5 [ F{"r"}<=5 "a" ] ]', "storm", "Storm checks reward bounds only for the initial state"),
        ('P=? [ G "a" || F "b" ]', "storm", "Storm takes a condition only as F a || F b, both without bounds"),
        ('P=? [ F<=3 "a" || F "b" ]', "prism", "PRISM has no conditional ||, and only unbounded conditions of P"),
        ('Pmax=? [ F "a" || F "b" ]', "prism", "PRISM has no conditional ||"),
        ('R{"r"}=? [ F "a" || F "b" ]', "prism", "PRISM has no conditional ||"),
        ('P=? [ F<=3 (X "a") ]', "prism", "PRISM does not check step bounds inside LTL"),
        ('P=? [ HOA: {"f", "p" -> "a"} ]', "prism", "PRISM has no HOA"),
        ('T=? [ F "a" ]', "prism", "PRISM has no T"),
        ('R{"r"}=? [ C<=5 discount=0.9 ]', "prism", "PRISM has no discount"),
        ('R{"r"}=? [ F<=5 "a" ]', "prism", "PRISM takes in R only X, F and U without bounds"),
        ('R{"r"}=? [ G "a" ]', "prism", "PRISM takes in R only X, F and U without bounds"),
        ('R{"r"}=? [ "a" U "b" ]', "storm", "Storm takes in R only F without bounds, of a condition on states"),
        ("R{1}=? [ C ]", "storm", "Storm does not count reward structures"),
        ('P=? [ F{"1st"}<=5 "a" ]', "storm", "Storm cannot read the reward structure '1st'"),
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
        formulas(["a", "b", "tool-call"], 3, rewards=["r"])
        | queries(["a", "b", "tool-call"], 2, rewards=["r"])
        | any_formulas(["a", "b", "tool-call"], ["r"]),
        min_size=200,
        max_size=200,
    )
)
def test_storm_reads_what_is_said_to_be_portable(
    tmp_path_factory: pytest.TempPathFactory, trees: list[ast.Formula]
) -> None:
    portable = [tree for tree in trees if not portability(tree, "storm", names)]
    assert portable
    texts = [format_formula(tree, target="storm", names=names) for tree in portable]
    for text, answer in zip(texts, storm(texts, tmp_path_factory.mktemp("storm")), strict=True):
        assert answer in (["1"], ["0"]), f"{text}: {answer}"  # Storm calls a filter 0


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
        if any(isinstance(node, ast.Filter) for node in ast.walk(entry.formula)):
            continue  # Storm's Python interface reads filters and does not apply them
        texts.append(format_formula(storm_form(entry.formula), target="storm"))
        expected.append({"true": 1.0, "false": 0.0}.get(value, value.partition(" ")[0]))
    assert 'P=? [ !(F<=5 "failure") ]' in texts
    assert len(texts) > 30
    for text, answer, reference in zip(texts, storm(texts, tmp_path, shared["model"]), expected, strict=True):
        assert answer == pytest.approx(float(reference), rel=2e-5, abs=1e-9), text


def test_a_threshold_of_a_third_stays_a_third() -> None:
    third = ast.Probability(
        ast.Eventually(ast.Label("a")), ast.Threshold(">=", ast.Number(Fraction(1, 3), integer=False))
    )
    assert format_formula(third, target="storm") == 'P>=1/3 [ F "a" ]'
