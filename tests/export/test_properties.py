"""Property files beside exported models: at the added first state they ask for the mean over the initial states."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from math import inf
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking import check
from tracebridge.checking.result import Verdict
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.modelcheck import evaluate_operator, evaluate_quantile
from tracebridge.errors import PropertyError
from tracebridge.export import (
    exported_chain,
    format_prism,
    is_rewritten,
    name_of,
    read_own_prism,
    rewrite_for_export,
    single_start,
)
from tracebridge.pctl import (
    ast,
    evaluate_constant,
    format_properties,
    parse_properties,
    portability,
    resolve_constants,
    rewrite,
)
from tracebridge.pctl.folding import fold_steps

STORM = Path(__file__).parent / "storm_reference.py"


def random_chain(random: Random, *, spread: bool = True) -> MarkovChain:
    """Five states with labels in every combination, an absorbing one among them, and rewards on states and steps."""
    n = 5
    rows = []
    for i in range(n):
        targets = [i] if i == n - 1 else random.sample(range(n), random.randint(1, 3))
        counts = {target: random.randint(1, 9) for target in targets}
        rows.append({target: Fraction(count, sum(counts.values())) for target, count in counts.items()})
    weights = [random.randint(0, 3) for _ in range(n)] if spread else [0] * n
    for i in random.sample(range(n), 2 if spread else 1):
        weights[i] += 1
    return MarkovChain(
        states=("s-0", "s-1", "s-2", "s-3", "end"),
        transitions=RationalMatrix.from_rows(rows),  # type: ignore[arg-type]
        initial=RationalVector(np.array(weights), sum(weights)),  # type: ignore[arg-type]
        labels={name: np.array([random.random() < 0.5 for _ in range(n)]) for name in ("a", "b-c", "F", "start")},
        rewards={
            "cost €": RewardStructure.from_fractions(
                [random.randint(0, 3) for _ in range(n)], [Fraction(random.randint(0, 3), 2) for _ in range(n)]
            ),
            "steps": RewardStructure.from_fractions([1, 1, 1, 1, 0]),
        },
    )


PATHS = [
    'X "a"',
    'X (!"b-c")',
    'F "a"',
    'F (!"a")',
    "F true",
    "F false",
    'F<=0 "a"',
    'F<=3 ("a" & !"b-c")',
    'F<3 (!"a")',
    'F>=2 "F"',
    'F>1 (!"F")',
    'F>=0 (!"a")',
    'F=0 (!"a")',
    'F=2 "init"',
    'F[1,3] (!"start")',
    'F[0,2] "start"',
    'F<=2 (P>=0.3 [ X "a" ])',
    'F (P<=0.5 [ F<=2 (!"a") ])',
    'F (R{"steps"}<=2 [ C<=3 ])',
    'G "a"',
    'G (!"a")',
    'G<=2 "a"',
    'G<=2 (!"a")',
    'G<=4 ("a" => "b-c")',
    'G>=1 (!"end")',
    'G[1,2] "a"',
    'G (P>0.1 [ F "end" ])',
    '"a" U "b-c"',
    '!"a" U "end"',
    '"a" U (!"b-c")',
    '("a" | "start") U<=2 (!"b-c")',
    '"a" U[1,3] "b-c"',
    '"a" U>=2 "F"',
    '!"a" U=2 "b-c"',
    '"a" W "b-c"',
    '!"a" W<=3 "b-c"',
    '"a" W (!"b-c")',
    '"a" R "b-c"',
    '!"a" R<=3 (!"b-c")',
    '(!"F") R (P>=0.1 [ F<=2 "end" ])',
    'F "deadlock"',
    'F "s-2"',
    'F ("a" <=> "F")',
    'F<=2 ("a" ? "F" : "start")',
    'F<=2*1+d "a"',
    'F<=d (!"end")',
]
LTL = [
    'F G "a"',
    'G F "F"',
    '(F "a") & (G (!"b-c"))',
    '"a" & (X "b-c")',
    'true & (F "a")',
    '!(F<=2 "a")',
    '!(X "a")',
    '(X "a") | (X X (!"b-c"))',
    '(F "a") => ("a" W (X "b-c"))',
    '(G<=2 (!"a")) <=> (F "F")',
    '"a" U ("b-c" U "F")',
    'X (!(F "end"))',
    'F ("start" & (X (!"start")))',
    'F (P>=0.3 [ X "a" ] & (X "a"))',
]
COLLECTING = [
    'F{"cost €"}<=3 "F"',
    'F{"cost €"}<2 (!"a")',
    'F{"cost €"}>=2 (!"a")',
    'F{"steps"}>0 "start"',
    '"a" U{"cost €"}<=2 (!"b-c")',
    'G{"cost €"}<=2 (!"end")',
    'F^{rew{"cost €"}<=4,steps<=3} "a"',
]
REWARD_PATHS = [
    'F "end"',
    'F (!"a")',
    'F ("a" | "end")',
    'F (P>=0.5 [ X "end" ])',
    "C<=0",
    "C<=3",
    "C<3",
    "C<=d",
    "I=0",
    "I=2",
    "I=d",
    "S",
    'F (F "end")',
    'F ((!"a") & (X "a"))',
    'X "a"',
    '"a" U (!"b-c")',
    'F<=3 "end"',
    "C<=3 discount=0.5",
    "C<3 discount=1/3",
    "Cdiscount=0.5",
]
OPERATORS = [
    *(f"P=? [ {path} ]" for path in PATHS),
    *(f"P=? [ {path} ]" for path in [*LTL, *COLLECTING]),
    *(f"T=? [ {path} ]" for path in ['F "end"', 'F (!"a")']),
    'R{"steps"}=? [ C{"cost €"}<=4 ]',
    "R{2}=? [ C<=3 ]",
    'quantile(B, P>=0.5 [ F{"cost €"}<=B (!"a") ])',
    *(f'R{{"{name}"}}=? [ {path} ]' for name in ("cost €", "steps") for path in REWARD_PATHS),
    'R{"steps"}=? [ C ]',
    'S=? [ "a" ]',
    'S=? [ P>=0.5 [ X "end" ] ]',
]
FILE = "const int d = 3;\n" + "\n".join(f"{operator};" for operator in OPERATORS)


# ---------------------------------------------------------------- a plain evaluator over one engine's operators


def holds(formula: ast.Formula, chain: MarkovChain) -> np.ndarray:
    """Where a condition holds, shape (n,)."""
    match formula:
        case ast.Truth(value):
            return np.full(chain.n_states, value)
        case ast.Label(name):
            return chain.label(name)
        case ast.Unary("!", operand):
            return ~holds(operand, chain)
        case ast.Binary(operator, left, right):
            first, second = holds(left, chain), holds(right, chain)
            return {"&": first & second, "|": first | second, "=>": ~first | second, "<=>": first == second}[operator]
        case ast.Conditional(test, then, otherwise):
            return np.where(holds(test, chain), holds(then, chain), holds(otherwise, chain))
        case ast.Probability() | ast.Reward() | ast.SteadyState():
            assert formula.threshold is not None
            bound = formula.threshold.value
            assert isinstance(bound, ast.Number)
            compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
            return np.array(
                [compare[formula.threshold.comparison](value, bound.value) for value in values(formula, chain)]
            )
    raise AssertionError(formula)


def folded(node: ast.Formula) -> ast.Formula:
    """A sum or product of numbers as one number: step bounds."""
    if isinstance(node, ast.Binary) and isinstance(node.left, ast.Number) and isinstance(node.right, ast.Number):
        value = evaluate_constant(node)
        assert isinstance(value, Fraction)
        return ast.Number(value, integer=True)
    return node


def values(formula: ast.Formula, chain: MarkovChain) -> list[Fraction | float]:
    """The exact value in every state of an operator, or of one with what undoes the added state's share."""
    match formula:
        case ast.Number(value):
            return [value] * chain.n_states
        case ast.Binary("-" | "/" as sign, left, right):
            pairs = zip(values(left, chain), values(right, chain), strict=True)
            return [first - second if sign == "-" else first / second for first, second in pairs]
    assert isinstance(formula, ast.Operator)
    vector = evaluate_operator(
        ExactArithmetic(chain), fold_steps(rewrite(formula, folded)), lambda operand: holds(operand, chain)
    )
    return [vector[i].value for i in range(chain.n_states)]


def at_start(formula: ast.Formula, chain: MarkovChain) -> Fraction | float:
    """The value where runs start: the mean, and for a quantile that of the mean."""
    if isinstance(formula, ast.Quantile):
        arithmetic, asked = ExactArithmetic(chain), fold_steps(formula)
        return evaluate_quantile(arithmetic, asked, lambda part: holds(part, chain), chain.exact_initial())[1].value
    return mean(values(formula, chain), chain)


def mean(numbers: list[Fraction | float], chain: MarkovChain) -> Fraction | float:
    weighted = [weight * value for weight, value in zip(chain.exact_initial(), numbers, strict=True) if weight]
    return inf if inf in weighted else sum(weighted)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("seed", range(12))
def test_the_first_state_has_the_mean_of_the_values(seed: int) -> None:
    chain = random_chain(Random(seed))
    file = parse_properties(FILE)
    written = single_start(chain)
    assert written.n_states == chain.n_states + 1
    originals = resolve_constants(file).properties
    rewritten = resolve_constants(rewrite_for_export(file, chain)).properties
    assert len(rewritten) == len(OPERATORS)
    for text, original, shifted in zip(OPERATORS, originals, rewritten, strict=True):
        assert values(shifted.formula, written)[-1] == at_start(original.formula, chain), text


@pytest.mark.parametrize("seed", range(100, 106))
def test_a_single_initial_state_changes_names_only(seed: int) -> None:
    chain = random_chain(Random(seed), spread=False)
    file = parse_properties(FILE)
    written = single_start(chain)
    assert written.n_states == chain.n_states
    for text, original, renamed in zip(
        OPERATORS,
        resolve_constants(file).properties,
        resolve_constants(rewrite_for_export(file, chain)).properties,
        strict=True,
    ):
        assert values(renamed.formula, written) == values(original.formula, chain), text


@pytest.mark.storm
def test_storm_reads_model_and_properties_and_agrees() -> None:
    """The texts alone: the value that Storm computes from the two files is the mean over the initial distribution."""
    pytest.importorskip("stormpy")
    file = parse_properties(FILE)
    originals = resolve_constants(file).properties
    requests, expected = [], []
    for seed in range(4):
        chain = random_chain(Random(seed))
        rewritten = rewrite_for_export(file, chain)
        formulas, means = [], []
        for original, shifted in zip(originals, rewritten.properties, strict=True):
            if portability(shifted, "storm") or "^{" in original.text:  # there Storm's exact engine crashes
                continue
            lines = format_properties(replace(rewritten, properties=(shifted,)), target="storm").splitlines()
            formulas.append(" ".join(line for line in lines if not line.startswith("//")))
            means.append(at_start(original.formula, chain))
        assert len(formulas) > 40
        requests.append({"program": format_prism(chain), "exact": True, "formulas": formulas})
        expected.append(means)
    command = [sys.executable, str(STORM)]
    done = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, timeout=300, check=True)
    for request, answer, means in zip(requests, json.loads(done.stdout), expected, strict=True):
        assert "error" not in answer, answer
        for formula, states, value in zip(request["formulas"], answer["values"], means, strict=True):
            found = states[answer["start"]]
            assert (inf if found == "inf" else Fraction(found)) == value, formula


# ---------------------------------------------------------------- texts

SPREAD = random_chain(Random(1))
POINT = random_chain(Random(1), spread=False)


def rewritten_text(text: str, chain: MarkovChain = SPREAD) -> str:
    (entry,) = rewrite_for_export(parse_properties(text), chain).properties
    return format_properties(ast.PropertyFile(properties=(replace(entry, comments=()),))).rstrip()


@pytest.mark.parametrize(
    ("original", "rewritten"),
    [
        ('P=? [ X "a" ];', 'P=? [ F=2 "a" ];'),
        ('P=? [ F "a" ];', 'P=? [ F "a" ];'),
        ('P=? [ F (!"a") ];', 'P=? [ F (!"_x_start" & !"a") ];'),
        ('P=? [ F<=8 "a" ];', 'P=? [ F<=9 "a" ];'),
        ('P=? [ F[1,3] (!"a") ];', 'P=? [ F[2,4] (!"a") ];'),
        ('P=? [ G (!"b-c") ];', 'P=? [ G (!"b_x2d_c") ];'),
        ('P=? [ G<=2 "F" ];', 'P=? [ G<=3 ("_x_start" | "F_x_") ];'),
        ('P=? [ "a" U<=3 "F" ];', 'P=? [ ("_x_start" | "a") U<=4 "F_x_" ];'),
        ('P=? [ !"a" U (!"F") ];', 'P=? [ !"a" U (!"_x_start" & !"F_x_") ];'),
        ('P=? [ F "init" ];', 'P=? [ F "initial" ];'),
        ('R{"cost €"}=? [ C<=4 ];', 'R{"cost_x20__x20ac_"}=? [ C<=5 ];'),
        ('R{"steps"}=? [ I=0 ];', 'R{"steps"}=? [ I=1 ];'),
        ('S=? [ "start" ];', 'S=? [ "start" ];'),
        ('"start";', 'P>=1 [ F=2 "start" ];'),
        ('!"a" | P>0.5 [ X "a" ];', 'P>=1 [ X (!"a") ] | P>0.5 [ F=2 "a" ];'),
        ('P>=0.5 [ F<=2 (P>=0.5 [ F<=2 "a" ]) ];', 'P>=0.5 [ F<=3 (!"_x_start" & P>=0.5 [ F<=2 "a" ]) ];'),
        ('1 - pow(1 - P=? [ F<=2 "a" ], 5);', '1 - pow(1 - P=? [ F<=3 "a" ], 5);'),
        ('"a": P=? [ F "end" ];', '"a_x_": P=? [ F "end" ];'),
        ('"pass rate": P=? [ F "end" ];', '"pass_x20_rate": P=? [ F "end" ];'),
        ('P=? [ F G "a" ];', 'P=? [ X F G "a" ];'),
        ('P=? [ !(F<=2 "a") & ("F" U (X "a")) ];', 'P=? [ !(F<=3 "a") & (X ("F_x_" U (X "a"))) ];'),
        ('P=? [ !(X "a") ];', 'P=? [ !(F=2 "a") ];'),
        ('P=? [ "a" & (X "F") ];', 'P=? [ (X "a") & (X X "F_x_") ];'),
        ('P=? [ HOA: {"f.hoa", "p" -> "F"} ];', 'P=? [ X (HOA: {"f.hoa", "p" -> "F_x_"}) ];'),
        ('P=? [ F{"cost €"}<=3 "a" ];', 'P=? [ F{"cost_x20__x20ac_"}<=3 "a" ];'),
        ('P=? [ F^{rew{"steps"}<=3,steps<=4} "a" ];', 'P=? [ F^{rew{"steps"}<=3,steps<=5} "a" ];'),
        ('quantile(s, P>=0.5 [ F{"steps"}<=s "a" ]);', 'quantile(s_, P>=0.5 [ F{"steps"}<=s_ "a" ]);'),
        ('T=? [ F "a" ];', 'T=? [ F "a" ] - 1;'),
        ('T<=3 [ F "a" ];', 'T<=4 [ F "a" ];'),
        ('R{"steps"}=? [ C<=3 discount=0.5 ];', 'R{"steps"}=? [ C<=4 discount=0.5 ] / 0.5;'),
        ('R{"steps"}>=3 [ Cdiscount=0.5 ];', 'R{"steps"}>=1.5 [ Cdiscount=0.5 ];'),
        ('R{"steps"}=? [ X "a" ];', 'R{"steps"}=? [ X X "a" ];'),
        ('A [ F "a" ];', 'P>=1 [ X (A [ F "a" ]) ];'),
        ('filter(max, P=? [ X "F" ]);', 'filter(max, P=? [ X "F_x_" ], !"_x_start");'),
        ('filter(max, P=? [ X "F" ], "a") + 1;', 'filter(max, P=? [ X "F_x_" ], "a") + 1;'),
        ('filter(forall, "a", !"F");', 'filter(forall, "a", !"_x_start" & !"F_x_");'),
        ('filter(argmax, P=? [ X "F" ], "a");', 'P>=1 [ X (filter(argmax, P=? [ X "F_x_" ], "a")) ];'),
        ('P=? [ F (filter(exists, "a")) ];', 'P=? [ F (!"_x_start" & filter(exists, "a", !"_x_start")) ];'),
        ('"n": P=? [ F<=2 "end" ] + 1;', '"n": P=? [ F<=3 "end" ] + 1;'),
    ],
)
def test_the_rewriting_of_a_formula(original: str, rewritten: str) -> None:
    # A bare condition at the top asks about the first step, hence X where the bound is written; both forms mean step 1.
    expected = rewritten.replace('P>=1 [ F=2 "start" ]', 'P>=1 [ X "start" ]')
    assert rewritten_text(original) == parse_and_format(expected)


def parse_and_format(text: str) -> str:
    return format_properties(parse_properties(text)).rstrip()


def test_with_a_single_start_only_names_change() -> None:
    assert rewritten_text('P=? [ X (!"b-c") ];', POINT) == 'P=? [ X !"b_x2d_c" ];'
    assert rewritten_text('P=? [ F<=8 "init" ];', POINT) == 'P=? [ F<=8 "init" ];'


def test_the_whole_file() -> None:
    text = """// What we promise.
const int s = 8;
label "ok" = "a" & !"b-c";

//@ requirement REQ-1
"fast": P>=0.5 [ F<=s "ok" ];
// Ends.
P>=1 [ F "end" ];
"""
    assert format_properties(rewrite_for_export(parse_properties(text), SPREAD)) == (
        '//= tracebridge properties 1, for the model file beside it and its added state "_x_start"\n'
        "// Properties for the model file that tracebridge wrote of the same chain, in the names of that file.\n"
        '// Its first state "_x_start" leads to the states that runs start in. So that there operators have\n'
        "// the mean of their values over those states, step bounds are one higher than in the original, X is F=2,\n"
        '// and what "_x_start" itself could decide is guarded. Operators inside others are as they were.\n'
        "\n"
        "// What we promise.\n"
        "const int s_ = 8;\n"
        "\n"
        '// original: P>=0.5 [ F<=s "ok" ]\n'
        "//@ requirement REQ-1\n"
        '"fast": P>=0.5 [ F<=(s_ + 1) ("a" & !"b_x2d_c") ];\n'
        "// Ends.\n"
        'P>=1 [ F "end" ];\n'
    )


def test_a_file_without_items_still_says_what_it_is() -> None:
    file = rewrite_for_export(parse_properties(""), POINT)
    assert format_properties(file).startswith(
        "//= tracebridge properties 1, for the model file beside it\n// Properties for the model file"
    )
    assert is_rewritten(parse_properties(format_properties(file)))


# ---------------------------------------------------------------- the pair of files, read back


CLASHING = ("a.b", "a_x2e_b", "start", "init", "s", "end")


def clashing_chain(random: Random, *, spread: bool) -> MarkovChain:
    """Names that meet under careless escaping, or that the files use for themselves."""
    chain = random_chain(random, spread=spread)
    rows = [chain.exact_transitions().row(i) for i in range(4)]
    rows[0] = {1: Fraction(1, 2), **{target: value / 2 for target, value in rows[0].items() if target != 1}}
    rows[0][0] = rows[0].get(0, Fraction(0)) + 1 - sum(rows[0].values())
    rows[3] = {3: Fraction(1, 3), 4: Fraction(2, 3)}
    initial = [*chain.exact_initial()[:4], Fraction(0), chain.exact_initial()[4]]
    n = len(CLASHING)
    return MarkovChain(
        states=CLASHING,
        transitions=RationalMatrix.from_rows([*rows, {0: Fraction(1, 4), 5: Fraction(3, 4)}, {5: Fraction(1)}]),  # type: ignore[arg-type]
        initial=RationalVector.from_fractions(initial),  # type: ignore[arg-type]
        labels={
            name: np.array([random.random() < 0.5 for _ in range(n)])
            for name in ("initial", "tool-call", "tool_x2d_call", "max", "_x_start")
        },
        rewards={
            name: RewardStructure.from_fractions([random.randint(0, 3) for _ in range(n - 1)] + [0])
            for name in ("a.b", "a_x2e_b")
        },
    )


PAIR_FILE = """const int d = 3;
label "ok" = "tool-call" & !"a.b";

//@ requirement REQ-1
"p-1": P=? [ F<=d "a.b" ];
"p_x2d_1": P=? [ F<=d "a_x2e_b" ];
"not at start": P=? [ F<=2 (!"start") ];
"min": P=? [ !"init" U<=d (!"tool_x2d_call") ];
"later": P=? [ F<=2 "initial" ];
"never ok": P=? [ G<=2 (!"ok") ];
"bound": P>=0.5 [ F<=d "end" ];
"cost": R{"a.b"}=? [ C<=d ];
"other cost": R{"a_x2e_b"}=? [ F "end" ];
"sum": 1 - pow(1 - P=? [ F<=d "end" ], 3) + P=? [ X "s" ];
"nested": P=? [ F<=d (P>=0.5 [ X (!"a.b") ]) ];
"here": "tool-call" | P>0.2 [ X "_x_start" ];
"""


def read_back(chain: MarkovChain, file: ast.PropertyFile) -> tuple[MarkovChain, ast.PropertyFile]:
    """Chain and properties from the two texts alone, the way that the command line takes."""
    properties = parse_properties(format_properties(rewrite_for_export(file, chain), target="prism"))
    assert is_rewritten(properties)
    return exported_chain(properties, read_own_prism(format_prism(chain))), properties


@pytest.mark.parametrize("spread", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_pair_of_files_read_back_gives_the_values_of_the_original(seed: int, spread: bool) -> None:
    chain = clashing_chain(Random(seed), spread=spread)
    file = parse_properties(PAIR_FILE)
    assert not is_rewritten(file)
    written, properties = read_back(chain, file)
    assert written.n_states == len(CLASHING) + spread
    expected = check(chain, file, engines=["closed-form"], exact=True)
    found = check(written, properties, engines=["closed-form"], exact=True)
    for original, result in zip(expected, found, strict=True):
        assert result.property.name is not None
        assert name_of(result.property.name) == original.property.name
        if original.verdict is Verdict.UNDECIDED:  # start states differ in the label: it does not hold in all of them
            assert original.property.name == "here"
            assert result.verdict is Verdict.VIOLATED
            continue
        assert result.verdict is original.verdict, original.property
        assert (result.value is None) == (original.value is None)
        if result.value is not None and original.value is not None:
            assert result.value.value == original.value.value, original.property
        assert result.truth == original.truth, original.property
    assert sum(result.value is not None for result in found) >= 9


@pytest.mark.parametrize("seed", range(4))
def test_every_operator_read_back_from_the_pair_of_files_has_the_mean_of_its_values(seed: int) -> None:
    chain = random_chain(Random(seed))
    named = "\n".join(f'"p{i}": {operator};' for i, operator in enumerate(OPERATORS))
    file = parse_properties(f"const int d = 3;\n{named}")
    originals = {entry.name: entry.formula for entry in resolve_constants(file).properties}
    written, properties = read_back(chain, file)
    resolved = resolve_constants(properties).properties
    assert len(resolved) > 60  # the others PRISM does not take: they stand in comments
    start = int(written.initial.argmax())
    for entry in resolved:
        original = originals[entry.name]
        assert values(entry.formula, written)[start] == at_start(original, chain), original


@pytest.mark.storm
@pytest.mark.parametrize("spread", [True, False])
def test_the_chain_read_back_is_the_one_that_storm_builds(spread: bool) -> None:
    """Name by name: states by their labels, labels, rewards and the start."""
    pytest.importorskip("stormpy")
    chain = clashing_chain(Random(5), spread=spread)
    text = format_prism(chain)
    written = single_start(read_own_prism(text))
    command = [sys.executable, str(STORM)]
    request = json.dumps([{"program": text, "exact": True, "formulas": []}])
    done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=300, check=True)
    (built,) = json.loads(done.stdout)
    order = [state["s"] for state in built["states"]]
    assert sorted(order) == np.flatnonzero(written.reachable_states()).tolist()
    assert set(built["labels"]) == set(written.label_names())
    for name, members in built["labels"].items():
        assert sorted(order[i] for i in members) == [i for i in sorted(order) if written.label(name)[i]], name
    rows = written.exact_transitions()
    for position, row in zip(order, built["rows"], strict=True):
        assert {order[j]: Fraction(value) for j, value in row} == rows.row(position)
    assert order[built["start"]] == written.initial.argmax()
    assert set(built["rewards"]) == set(written.rewards)
    for name, parts in built["rewards"].items():
        exact = written.rewards[name].fractions(action=False)
        assert [Fraction(value) for value in parts["state"]] == [exact[i] for i in order], name


# ---------------------------------------------------------------- the mark


@pytest.mark.parametrize("chain", [SPREAD, POINT])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "// only a comment\n",
        'P=? [ F "a" ];',
        'const int k = 3;\nlabel "ok" = "a";\nP=? [ F<=k "ok" ];',
        '//@ requirement R\n"a": P=? [ F "a" ];',
        'P=? [ F<=3 "a" ];\n//@ note low',
    ],
)
def test_the_mark_survives_parsing_and_formatting(text: str, chain: MarkovChain) -> None:
    assert not is_rewritten(parse_properties(text))
    file = rewrite_for_export(parse_properties(text), chain)
    assert is_rewritten(file)
    for target in (None, "prism", "storm"):
        once = format_properties(file, target=target)
        assert once.startswith("//= tracebridge properties 1, for the model file beside it")
        again = parse_properties(once)
        assert is_rewritten(again)
        assert is_rewritten(parse_properties("// A note of mine.\n\nconst int n = 1;\n" + once))
        assert format_properties(again) == format_properties(parse_properties(format_properties(again)))


def test_a_rewritten_file_is_not_rewritten_again() -> None:
    file = parse_properties(format_properties(rewrite_for_export(parse_properties(FILE), SPREAD)), path="p.props")
    with pytest.raises(PropertyError, match=r"p\.props: the properties are rewritten for a model file already"):
        rewrite_for_export(file, SPREAD)


def test_properties_of_a_model_that_starts_in_another_way_are_refused() -> None:
    """Their step bounds would count from the wrong state, and nothing else might tell."""
    original = parse_properties('P=? [ F<=3 "a" ];')
    for_spread, for_point = rewrite_for_export(original, SPREAD), rewrite_for_export(original, POINT)
    assert exported_chain(for_spread, SPREAD).n_states == SPREAD.n_states + 1
    assert exported_chain(for_point, POINT).n_states == POINT.n_states
    with pytest.raises(
        PropertyError, match='for a model with the added first state "_x_start", but this is one with one'
    ):
        exported_chain(for_spread, POINT)
    with pytest.raises(PropertyError, match="for a model with one initial state, but this is one with the added"):
        exported_chain(for_point, SPREAD)


@pytest.mark.parametrize(
    "mark",
    [
        "//= tracebridge properties 2, for the model file beside it",
        "//= tracebridge properties 1, for another model",
        '//= tracebridge properties 1, for the model file beside it and its added state "st art"',
        "//= tracebridge properties",
    ],
)
def test_a_mark_that_cannot_be_read_is_an_error(mark: str) -> None:
    file = parse_properties(f'{mark}\nP=? [ F "a" ];', path="p.props")
    with pytest.raises(PropertyError, match=r"p\.props: the line '//= tracebridge properties"):
        is_rewritten(file)


@pytest.mark.parametrize("comment", ["// tracebridge properties 1", "//= tracebridge propertiesque", "//= other"])
def test_other_comments_are_no_mark(comment: str) -> None:
    assert not is_rewritten(parse_properties(f'{comment}\nP=? [ F "a" ];'))


# ---------------------------------------------------------------- refusals


def test_every_name_that_the_chain_lacks_is_listed_with_its_place() -> None:
    text = 'P=? [ F "a" ];\nP=? [ F "aa" ];\nR{"step"}=? [ F "nope" ];\n'
    with pytest.raises(PropertyError) as raised:
        rewrite_for_export(parse_properties(text, path="p.props"), SPREAD)
    assert [str(problem.location) for problem in raised.value.problems] == [
        "p.props:2:9",
        "p.props:3:1",
        "p.props:3:17",
    ]
    assert 'unknown label "aa"' in str(raised.value)
    assert 'unknown reward structure "step"' in str(raised.value)
    assert 'did you mean "a"' in str(raised.value)


def test_an_unnamed_reward_is_the_first_one() -> None:
    chain = MarkovChain(
        states=("a", "b"),
        transitions=[[0.5, 0.5], [0, 1]],  # type: ignore[arg-type]
        initial=[0.5, 0.5],  # type: ignore[arg-type]
    )
    one = replace(chain, rewards={"cost": RewardStructure(state=np.ones(2))})
    assert rewritten_text("R=? [ C<=4 ];", one) == 'R{"cost"}=? [ C<=5 ];'
    assert rewritten_text("R=? [ C<=4 ];") == 'R{"cost_x20__x20ac_"}=? [ C<=5 ];'
    assert rewritten_text("R{2}=? [ C<=4 ];") == 'R{"steps"}=? [ C<=5 ];'
    assert rewritten_text('P=? [ F^{rew<=3} "a" ];') == 'P=? [ F{"cost_x20__x20ac_"}<=3 "a" ];'
    for text, message in [
        ("R=? [ C<=4 ];", "the model has no reward structure"),
        ("R{1}=? [ C ];", "there is no reward structure 1"),
    ]:
        with pytest.raises(PropertyError, match=message):
            rewritten_text(text, chain)


def test_what_the_added_state_makes_unaskable_becomes_a_comment() -> None:
    text = """//@ requirement REQ-1
"least": quantile(B, P>=0.5 [ F<=B "a" ]);
// Keeps its comment.
"given": P=? [ F "a" || F "F" ];
"asked": P=? [ F "a" ];
filter(print, P=? [ F "a" ]);
"""
    assert "\n".join(format_properties(rewrite_for_export(parse_properties(text), SPREAD)).splitlines()[6:]) == (
        "// cannot be asked in this model: a quantile of steps counts from the added state, which is one more\n"
        "//@ requirement REQ-1\n"
        '// least: quantile(B, P>=0.5 [ F<=B "a" ])\n'
        "// Keeps its comment.\n"
        '// original: P=? [ F "a" || F "F" ]\n'
        '"given": P=? [ F "a" || F "F_x_" ];\n'
        '"asked": P=? [ F "a" ];\n'
        "// cannot be asked in this model: filter print has a value of its own in the added state\n"
        '// filter(print, P=? [ F "a" ])'
    )
    assert [entry.name for entry in rewrite_for_export(parse_properties(text), POINT).properties] == [
        "least",
        "given",
        "asked",
        None,
    ]


def test_constants_of_the_model_become_numbers_and_its_variables_are_refused() -> None:
    chain = replace(SPREAD, constants={"N": Fraction(4)}, variables={"x": np.arange(5)})
    assert rewritten_text('P=? [ F<=N "a" ];', chain) == 'P=? [ F<=5 "a" ];'
    with pytest.raises(PropertyError, match=r"1:10: the model file has no variable x \(write a label"):
        rewritten_text("P=? [ F (x>2) ];", chain)
    with pytest.raises(PropertyError, match="1:10: unknown name y"):
        rewritten_text("P=? [ F (y>2) ];", chain)


def test_the_deepest_formula_that_parses_can_be_rewritten() -> None:
    nested = "P>=0 [ F " * 60 + '"a"' + " ]" * 60
    sums = " + ".join(['P=? [ X "a" ]'] * 150)
    assert rewrite_for_export(parse_properties(f"{nested};\n{sums};"), SPREAD).properties
