"""Reading files: declarations, names, annotations, places; see test_syntax_table.py for what the language is."""

from __future__ import annotations

import io
import logging
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import lark
import pytest

from tracebridge.errors import PropertyError
from tracebridge.pctl import ast, parse_formula, parse_properties, read_properties
from tracebridge.pctl.parser import MAX_BYTES, _grammar
from tracebridge.pctl.source import MAX_PROBLEMS


def test_declarations_names_and_annotations() -> None:
    file = parse_properties(
        'const int k = 3; const double p; const bool b = true; const n = 2;\nlabel "done" = "a" | "b";\n'
        "//@ requirement REQ-7\n//@ credible 0.95   over the posterior\n"
        '"große Tat": P>=p [ F<=k "done" ];\n//@ note minor'
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
    assert [note.key for note in file.unattached] == ["note"]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('//@ credble 0.95\nP>=0.5 [ F "a" ]', (1, 1), "'credble' is unknown.*did you mean credible"),
        ('P=? [ F "b" ]\n//@ Credible 0.95\nP>=0.5 [ F "a" ]', (2, 1), "'Credible' is unknown"),
        ('//@ severty advisory\nP>=0.5 [ F "a" ]', (1, 1), "did you mean severity"),
        ('P>=0.5 [ F "a" ];\n//@ credible 0.95\n', (2, 1), "no property follows the annotation credible"),
    ],
)
def test_a_slip_in_what_verdicts_depend_on_is_refused(text: str, place: tuple[int, int], said: str) -> None:
    with pytest.raises(PropertyError, match=said) as caught:
        parse_properties(text)
    (problem,) = caught.value.problems
    assert (problem.location.line, problem.location.column) == place


def test_annotations_of_others_are_kept() -> None:
    text = '//@ owner me\n//@ credits none\n//@ cred x\nP>=0.5 [ F "a" ]'
    assert [note.key for note in parse_properties(text).properties[0].annotations] == ["owner", "credits", "cred"]


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


# ---------------------------------------------------------------- from text to tree, by construct

A, B, C = ast.Label("a"), ast.Label("b"), ast.Label("c")
X = ast.Identifier("x")


def number(value: int) -> ast.Number:
    return ast.Number(Fraction(value), integer=True)


def path(text: str) -> ast.PathFormula:
    formula = parse_formula(f"P=? [ {text} ]")
    assert isinstance(formula, ast.Probability)
    return formula.path


def reward(text: str) -> ast.RewardPath:
    formula = parse_formula(f"R=? [ {text} ]")
    assert isinstance(formula, ast.Reward)
    return formula.path


UP_TO_5 = ast.StepBound(upper=number(5))

PATHS = [
    # one temporal operator within another: LTL
    ('F G "a"', ast.Eventually(ast.Globally(A))),
    ('X X "a"', ast.Next(ast.Next(A))),
    ('!(F "a")', ast.PathNot(ast.Eventually(A))),
    ('(F "a") & (G "b")', ast.PathBinary("&", ast.Eventually(A), ast.Globally(B))),
    ('(F "a") <=> "b"', ast.PathBinary("<=>", ast.Eventually(A), B)),
    ('"a" U ("b" U "c")', ast.Until(A, ast.Until(B, C))),
    ('F<=5 ("a" & X "b")', ast.Eventually(ast.PathBinary("&", A, ast.Next(B)), UP_TO_5)),
    ('"a" W<=5 (G "b")', ast.WeakUntil(A, ast.Globally(B), UP_TO_5)),
    ('"a" R (F "b")', ast.Release(A, ast.Eventually(B))),
    ("F !!x", ast.Eventually(ast.Unary("!", ast.Unary("!", X)))),
    # bounds on steps
    ('F steps<=5 "a"', ast.Eventually(A, UP_TO_5)),
    ('F time<=5 "a"', ast.Eventually(A, UP_TO_5)),
    ('F{steps<=5} "a"', ast.Eventually(A, UP_TO_5)),
    ('F^{<=5} "a"', ast.Eventually(A, UP_TO_5)),
    ('F steps[2,5] "a"', ast.Eventually(A, ast.StepBound(lower=number(2), upper=number(5)))),
    ('F>2,<=5 "a"', ast.Eventually(A, ast.StepBound(lower=number(2), upper=number(5), lower_strict=True))),
    ('F<5,>=2 "a"', ast.Eventually(A, ast.StepBound(lower=number(2), upper=number(5), upper_strict=True))),
    ('F time=5 "a"', ast.Eventually(A, ast.StepBound(lower=number(5), upper=number(5), exact=True))),
    # bounds on rewards
    ('F{"r"}<=5 "a"', ast.Eventually(A, None, (ast.RewardBound("r", UP_TO_5),))),
    ('F rew{"r"}<=5 "a"', ast.Eventually(A, None, (ast.RewardBound("r", UP_TO_5),))),
    ('F{rew{"r"}<=5} "a"', ast.Eventually(A, None, (ast.RewardBound("r", UP_TO_5),))),
    ('F rew<=5 "a"', ast.Eventually(A, None, (ast.RewardBound(None, UP_TO_5),))),
    ('F^{rew{"r"}<=5, steps<=5} "a"', ast.Eventually(A, UP_TO_5, (ast.RewardBound("r", UP_TO_5),))),
    (
        'F{"r"}<=5,{"s"}<=5 "a"',
        ast.Eventually(A, None, (ast.RewardBound("r", UP_TO_5), ast.RewardBound("s", UP_TO_5))),
    ),
    (
        '"a" U{"r"}[2,5] "b"',
        ast.Until(A, B, None, (ast.RewardBound("r", ast.StepBound(lower=number(2), upper=number(5))),)),
    ),
    ('G{"r"}<=5 "a"', ast.Globally(A, None, (ast.RewardBound("r", UP_TO_5),))),
    # automata
    (
        'HOA: {"f.hoa", "p" -> "a" & x}',
        ast.AutomatonPath("f.hoa", (ast.AutomatonProposition("p", ast.Binary("&", A, X)),)),
    ),
    ('!HOA:{"f.hoa"} & X "a"', ast.PathBinary("&", ast.PathNot(ast.AutomatonPath("f.hoa", ())), ast.Next(A))),
]


@pytest.mark.parametrize(("text", "tree"), PATHS, ids=[text for text, _ in PATHS])
def test_paths(text: str, tree: ast.PathFormula) -> None:
    assert path(text) == tree


# What stands without parentheses, and Storm's reading of it (printed by stormpy 2.0.0).
STORM_READS = [
    ('"a" & X "b" | "c"', '"a" & (X ("b" | "c"))'),
    ('!X "b" & "c"', '!(X ("b" & "c"))'),
    ('! X "b" U "c"', '(!(X "b")) U "c"'),
    ('X "b" U "c"', '(X "b") U "c"'),
    ('"a" U F "b"', '"a" U (F "b")'),
    ('F "a" & F "b"', 'F ("a" & (F "b"))'),
    ('"a" & "b" U "c"', '("a" & "b") U "c"'),
    ('"a" U "b" & X "c"', '"a" U ("b" & (X "c"))'),
    ('"a" U "b" | F "c"', '"a" U ("b" | (F "c"))'),
    ('F<=3 "a" & F<=2 "b"', 'F<=3 ("a" & (F<=2 "b"))'),
    ('G F "a" & G F "b"', 'G (F ("a" & (G (F "b"))))'),
    ('(("a") U ("b")) & ! (X "c") | G "d"', '((("a" U "b") & (!(X "c"))) | (G "d"))'),
]


@pytest.mark.parametrize(("bare", "parenthesised"), STORM_READS)
def test_a_prefix_operator_extends_as_far_to_the_right_as_possible(bare: str, parenthesised: str) -> None:
    assert path(bare) == path(parenthesised)


@pytest.mark.parametrize(
    ("bare", "parenthesised"),
    [
        ('"a" => F "b" => "c"', '"a" => (F ("b" => "c"))'),
        ('F "a" <=> "b" ? x : y', 'F (("a" <=> "b") ? x : y)'),
        ('!"a" U "b"', '(!"a") U "b"'),
        ("F x = 1 & y > 2 + 3 * -z", "F ((x = 1) & (y > (2 + (3 * (-z)))))"),
        ("F a => b => c", "F ((a => b) => c)"),
        ("F a - b - c = 0", "F (((a - b) - c) = 0)"),
        ("F a <=> b => c | d & e", "F ((a <=> b) => (c | (d & e)))"),
        ("F a ? b : c ? d : e", "F (a ? b : (c ? d : e))"),
    ],
)
def test_precedence_and_associativity_are_those_of_prism(bare: str, parenthesised: str) -> None:
    assert path(bare) == path(parenthesised)


REWARDS = [
    ('F "a"', ast.ReachReward(A)),
    ('(F "a")', ast.ReachReward(A)),
    ('F<=5 "a"', ast.PathReward(ast.Eventually(A, UP_TO_5))),
    ('F{"r"}<=5 "a"', ast.PathReward(ast.Eventually(A, None, (ast.RewardBound("r", UP_TO_5),)))),
    ('F ("a" & X "b")', ast.PathReward(ast.Eventually(ast.PathBinary("&", A, ast.Next(B))))),
    ('"a" U "b"', ast.PathReward(ast.Until(A, B))),
    ('!(G "a")', ast.PathReward(ast.PathNot(ast.Globally(A)))),
    ("C", ast.CumulativeReward()),
    ("C<=5", ast.CumulativeReward(number(5))),
    ("C<5", ast.CumulativeReward(number(5), strict=True)),
    ("C steps<=5", ast.CumulativeReward(number(5))),
    ('C{"r"}<=5', ast.CumulativeReward(reward_bounds=(ast.RewardBound("r", UP_TO_5),))),
    ('C rew{"r"}<=5', ast.CumulativeReward(reward_bounds=(ast.RewardBound("r", UP_TO_5),))),
    ('C^{rew{"r"}<=5,steps<=5}', ast.CumulativeReward(number(5), reward_bounds=(ast.RewardBound("r", UP_TO_5),))),
    ('C<=5,{"r"}<=5', ast.CumulativeReward(number(5), reward_bounds=(ast.RewardBound("r", UP_TO_5),))),
    ("C<=5 discount=x", ast.CumulativeReward(number(5), discount=X)),
    ("C discount=x", ast.CumulativeReward(discount=X)),
    ("Cdiscount=x", ast.CumulativeReward(discount=X)),
    ("I=5", ast.InstantaneousReward(number(5))),
    ("S", ast.LongRunReward()),
    ("LRA", ast.LongRunReward()),
    ("MP", ast.LongRunReward()),
]


@pytest.mark.parametrize(("text", "tree"), REWARDS, ids=[text for text, _ in REWARDS])
def test_rewards(text: str, tree: ast.RewardPath) -> None:
    assert reward(text) == tree


REACH = ast.ReachReward(A)
EVENTUALLY = ast.Eventually(A)
AT_LEAST_HALF = ast.Threshold(">=", ast.Number(Fraction(1, 2), integer=False))
QUERY = ast.Probability(EVENTUALLY)

OPERATORS = [
    ('R{"r"}=? [ F "a" ]', ast.Reward(REACH, "r")),
    ('R{2}=? [ F "a" ]', ast.Reward(REACH, number(2))),
    ('R{x}=? [ F "a" ]', ast.Reward(REACH, X)),
    ('R{"r"}max>=0.5 [ F "a" ]', ast.Reward(REACH, "r", AT_LEAST_HALF, "max")),
    ('T=? [ F "a" ]', ast.Reward(REACH, ast.OnePerStep())),
    ('Tmin>=0.5 [ F "a" ]', ast.Reward(REACH, ast.OnePerStep(), AT_LEAST_HALF, "min")),
    ('T max=? [ F "a" ]', ast.Reward(REACH, ast.OnePerStep(), None, "max")),
    ('R=? [ F "a" || F "b" ]', ast.Reward(REACH, condition=ast.Eventually(B))),
    ('P=? [ F "a" || F "b" ]', ast.Probability(EVENTUALLY, condition=ast.Eventually(B))),
    (
        'Pmax>=0.5 [ "a" U "b" || G "c" ]',
        ast.Probability(ast.Until(A, B), AT_LEAST_HALF, "max", condition=ast.Globally(C)),
    ),
    ('LRA=? [ "a" ]', ast.SteadyState(A)),
    ('LRA>=0.5 [ "a" ]', ast.SteadyState(A, AT_LEAST_HALF)),
    ('LRAmax=? [ "a" ]', ast.SteadyState(A, optimum="max")),
    ('Smin>=0.5 [ "a" ]', ast.SteadyState(A, AT_LEAST_HALF, "min")),
    ('S min=? [ "a" ]', ast.SteadyState(A, optimum="min")),
    ('A [ F "a" ]', ast.Quantified("A", EVENTUALLY)),
    ('E[ G E [ F "a" ] ]', ast.Quantified("E", ast.Globally(ast.Quantified("E", EVENTUALLY)))),
    ('filter(max, P=? [ F "a" ])', ast.Filter("max", QUERY)),
    ('filter(+, P=? [ F "a" ], "b")', ast.Filter("sum", QUERY, B)),
    ('filter(&, "a", "b")', ast.Filter("forall", A, B)),
    ('filter(|, "a", "b")', ast.Filter("exists", A, B)),
    ('filter(values, P=? [ F "a" ], true)', ast.Filter("values", QUERY, ast.Truth(True))),
    ('1 - filter(min, P=? [ F "a" ])', ast.Binary("-", number(1), ast.Filter("min", QUERY))),
    ('P=? [ F filter(forall, "b", "a") ]', ast.Probability(ast.Eventually(ast.Filter("forall", B, A)))),
    ('P=? [ F "a" {"b"} ]', ast.Filter("state", QUERY, B)),
    ('P=? [ F "a" {"b"}{min} ]', ast.Filter("min", QUERY, B)),
    ('P=? [ F "a" {"b"}{max}{min} ]', ast.Filter("range", QUERY, B)),
    ('P>=0.5 [ F "a" {"b"} ]', ast.Filter("forall", ast.Probability(EVENTUALLY, AT_LEAST_HALF), B)),
    ('R=? [ C {"b"}{max} ]', ast.Filter("max", ast.Reward(ast.CumulativeReward()), B)),
    ('S=? [ "a" {"b"}{max} ]', ast.Filter("max", ast.SteadyState(A), B)),
    (
        'quantile(max x, P>=0.5 [ F{"r"}<=x "a" ])',
        ast.Quantile(
            (ast.QuantileVariable("x", "max"),),
            ast.Probability(
                ast.Eventually(A, None, (ast.RewardBound("r", ast.StepBound(upper=X)),)), AT_LEAST_HALF
            ),
        ),
    ),
    (
        'quantile(A, min B, R>=0.5 [ C<=A ])',
        ast.Quantile(
            (ast.QuantileVariable("A"), ast.QuantileVariable("B", "min")),
            ast.Reward(ast.CumulativeReward(ast.Identifier("A")), None, AT_LEAST_HALF),
        ),
    ),
    ('multi(P=? [ F "a" ], R{"r"}>=0.5 [ F "a" ])', ast.Multi("multi", (QUERY, ast.Reward(REACH, "r", AT_LEAST_HALF)))),
    ('multilex(P=? [ F "a" ])', ast.Multi("multilex", (QUERY,))),
    ('<<p1, 2>> P=? [ F "a" ]', ast.Coalition(("p1", "2"), False, QUERY)),
    ('<<>> P=? [ F "a" ]', ast.Coalition((), False, QUERY)),
    ('<<*>> P=? [ F "a" ]', ast.Coalition(("*",), False, QUERY)),
    (
        '[[p1]] P>=0.5 [ F "a" ] & "b"',
        ast.Binary("&", ast.Coalition(("p1",), True, ast.Probability(EVENTUALLY, AT_LEAST_HALF)), B),
    ),
    ('P=? [ F "a" ] > 0.5', ast.Binary(">", QUERY, AT_LEAST_HALF.value)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tree"), OPERATORS, ids=[text for text, _ in OPERATORS])
def test_operators(text: str, tree: ast.Formula) -> None:
    assert parse_formula(text) == tree


# ---------------------------------------------------------------- words that are keywords in their place only

WORDS = (
    "T",
    "LRA",
    "MP",
    "HOA",
    "multi",
    "multilex",
    "quantile",
    "steps",
    "time",
    "rew",
    "discount",
    "Cdiscount",
    "log",
)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_storm_or_a_function_can_name_a_constant(word: str) -> None:
    """Wherever a constant may stand, also where the word would begin something else."""
    file = parse_properties(
        f'const int {word} = 3;\nP=? [ F<={word} "a" ];\nP=? [ F {word}<=3 ];\nP=? [ "a" U {word}=3 ];\n'
        f'P=? [ F[{word},{word}+1] {word}<5 ];\nP=? [ F {word}<=3 & "a" ];\nR=? [ C<={word} ];\nR=? [ I={word} ];\n'
        f'P>={word} [ F ({word}>2) ];\n{word}=3;\nP=? [ "a" U{{"r"}}<={word} {word}=3 ];\nR{{{word}}}=? [ C ]\n'
    )
    formulas = [entry.formula for entry in file.properties]
    name = ast.Identifier(word)
    assert all(name in list(ast.walk(formula)) for formula in formulas)
    assert formulas[0] == ast.Probability(ast.Eventually(A, ast.StepBound(upper=name)))
    assert formulas[1] == ast.Probability(ast.Eventually(ast.Binary("<=", name, number(3))))
    assert len(formulas) == 11


NEXT_LINES = [
    'T=? [ F "a" ]',
    'LRA>=0.5 [ "a" ]',
    'A [ F "a" ]',
    "filter(max, x)",
    'quantile(B, P>0.5 [ F<=B "a" ])',
    'multi(P=? [ F "a" ])',
    '<<p>> P=? [ F "a" ]',
    '[[p]] P=? [ F P>0.5[F "a"]]',
    'R{"r"}=? [ C ]',
    '"n": x',
    '!"a"',
    "(x)",
    "x",
]


@pytest.mark.parametrize("following", NEXT_LINES)
@pytest.mark.parametrize("first", ['P=? [ F "a" ]', '"a"', "x > 3", "T", "steps"])
def test_whatever_stands_on_the_next_line_is_the_next_property(first: str, following: str) -> None:
    formulas = [entry.formula for entry in parse_properties(f"{first}\n{following}\n").properties]
    alone = parse_properties(following).properties[0].formula
    assert formulas == [parse_formula(first), alone]


def test_the_bound_wins_where_an_operand_follows() -> None:
    assert path('F steps<=5 "a"') == ast.Eventually(A, UP_TO_5)
    assert path("F steps<=5 - x") == ast.Eventually(
        ast.Binary("<=", ast.Identifier("steps"), ast.Binary("-", number(5), X))
    )
    assert path('F steps<=5 R "a"') == ast.Release(
        ast.Eventually(ast.Binary("<=", ast.Identifier("steps"), number(5))), A
    )
    assert path("F steps<=5 R>2 [ C ]") == ast.Eventually(
        ast.Reward(ast.CumulativeReward(), threshold=ast.Threshold(">", number(2))), UP_TO_5
    )


def test_references_and_label_definitions_stay_labels() -> None:
    file = parse_properties('"n1": P=? [ F "a" ]; "n2": "n1" + 1;')
    assert file.properties[1].formula == ast.Binary("+", ast.Label("n1"), number(1))


def test_the_grammar_has_no_conflict_but_the_minus(caplog: pytest.LogCaptureFixture) -> None:
    """An expression goes on at a minus (see the head of pctl.lark); anything else is decided by the grammar."""
    lark.logger.addHandler(caplog.handler)
    level = lark.logger.level
    try:
        lark.logger.setLevel(logging.DEBUG)
        _grammar.__wrapped__()
    finally:
        lark.logger.setLevel(level)
        lark.logger.removeHandler(caplog.handler)
    conflicts = [record.getMessage() for record in caplog.records if "conflict" in record.getMessage()]
    assert set(conflicts) == {"Shift/Reduce conflict for terminal MINUS: (resolving as shift)"}
    assert not [record for record in caplog.records if "Reduce/Reduce" in record.getMessage()]


# ---------------------------------------------------------------- several errors in one go


def places(error: PropertyError) -> list[str]:
    return [f"{problem.location.line}:{problem.location.column}" for problem in error.problems]


def test_every_syntax_error_of_a_file_is_reported() -> None:
    text = (
        'P=0.5 [ F "a" ];\nP=? [ F "b" ];\nconst int k = ;\nP=? [ F (("a" ];\nlabel done = "a";\n'
        'P=? [ F "a"\n"m": R{}=? [ C ]\n"n": P=? [ X<=3 "a" ]; P=? [ "a" && "b" ]\nfilter(median, 1)\n'
    )
    with pytest.raises(PropertyError) as caught:
        parse_properties(text)
    assert places(caught.value) == ["1:3", "3:15", "4:10", "5:7", "6:5", "7:8", "8:12", "8:35", "9:8"]


def test_every_type_error_of_a_file_is_reported_once() -> None:
    text = 'const int k = 0.5;\nP>="a" [ F (1 + true) = 2 ] & 3;\n"n": "a" + 1;\n!("n" + 1);\nlabel "l" = 1;\n'
    with pytest.raises(PropertyError) as caught:
        parse_properties(text)
    assert places(caught.value) == ["1:15", "2:4", "2:17", "2:31", "3:6", "5:13"]


def test_leftovers_are_reported_once_a_line() -> None:
    with pytest.raises(PropertyError) as caught:
        parse_properties('"a" xor "b" xor "c"\n"a" or "b"')
    assert places(caught.value) == ["1:5", "2:5"]


def test_the_number_of_errors_is_limited() -> None:
    for text in ("P=? [ ;\n" * 50, "!3;\n" * 50, '"a" "b"\n' * 50):
        with pytest.raises(PropertyError) as caught:
            parse_properties(text)
        assert len(caught.value.problems) == MAX_PROBLEMS
