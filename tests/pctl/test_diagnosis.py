"""The messages that an author of properties sees; each is a promise."""

from __future__ import annotations

import re
from inspect import cleandoc

import pytest

from tracebridge.errors import PropertyError
from tracebridge.pctl import parse_properties
from tracebridge.pctl.diagnosis import MISTAKES

MESSAGES = [
    # text, line:column, message
    ('P<=? [ F "a" ]', "1:4", "a bound needs a number, and =? asks for the value"),
    ('R{"r"}max>? [ F "a" ]', "1:11", "a bound needs a number, and =? asks for the value"),
    ('P=0.5 [ F "a" ]', "1:3", "an operator cannot be compared with ="),
    ('P= [ F "a" ]', "1:4", "the value is asked for with =?"),
    ('P [ F "a" ]', "1:3", "an operator needs =? or a bound before its brackets"),
    ('P => 0.5 [ F "a" ]', "1:3", "a bound is written >= or <="),
    (
        'p>=0.5 [ F "a" ]',
        "1:8",
        "the operators are P (probability), R (reward), S (long run) and T (expected time), in capitals",
    ),
    ('P>=0,5 [ F "a" ]', "1:5", "numbers are written with a decimal point"),
    ('P>=0.5 ( F "a" )', "1:8", "what an operator is about stands in square brackets"),
    ('P=? F "a"', "1:5", "what an operator is about stands in square brackets"),
    ('P>=0.5 [ <> "a" ]', "1:10", "eventually is written F"),
    ('P>=0.5 [ [] "a" ]', "1:10", "always is written G"),
    ('R{"r"} [ F "a" ]', "1:8", "an operator needs =? or a bound before its brackets"),
    ('Pr=? [ F "a" ]', "1:4", "unknown operator before =?"),
    ('p=? [ F "a" ]', "1:3", "unknown operator before =?"),
    ('R{"a"}/{"b"}=? [ F "c" ]', "1:7", "the ratio of two reward structures is not part of the language"),
    ('R(var)=? [ F "a" ]', "1:2", "R is the mean of a reward; its variance or distribution cannot be asked for"),
    ('R[exp]{"r"}=? [ F "a" ]', "1:2", "R is the mean of a reward; its variance or distribution cannot be asked for"),
    ('R{}=? [ F "a" ]', "1:3", "the braces after R name a reward structure"),
    ('R{"a", "b"}=? [ F "c" ]', "1:6", "one reward structure at a time"),
    ('R{0}=? [ F "a" ]', "1:3", "reward structures are counted from 1"),
    ('R{1.5}=? [ F "a" ]', "1:3", "the number of a reward structure must be a whole number"),
    ('R{true}=? [ F "a" ]', "1:3", "the number of a reward structure needs a number, and this is a truth value"),
    ('Tmin max=? [ F "a" ]', "1:1", "Tmin is followed by a second max"),
    ("T=? [ C<=5 ]", "1:7", "T, the expected time, needs F between its brackets"),
    ('T [ F "a" ]', "1:3", "an operator needs =? or a bound before its brackets"),
    ("LRA=0.5 [ true ]", "1:9", "an operator cannot be compared with ="),
    ('LRAmax min=? [ "a" ]', "1:1", "LRAmax is followed by a second min"),
    ('E=? [ F "a" ]', "1:3", "A and E take no bound"),
    ('A>=0.5 [ F "a" ]', "1:8", "A and E take no bound"),
    ('A [ "a" ]', "1:5", "A needs a temporal operator between its brackets"),
    ('Pmin max=? [ F "a" ]', "1:1", "Pmin is followed by a second max"),
    ("P=? [ F 'a' ]", "1:9", "names stand in double quotes"),
    ("P=? [ F “a” ]", "1:9", "names stand in straight double quotes"),
    ('P=? [ F "a" && "b" ]', "1:14", "the Boolean and is a single &"),
    ('P>0 [ F "a" ] || P>0 [ F "b" ]', "1:15", "the Boolean or is a single |"),
    ('P=? [ F "a" || "b" ]', "1:16", "the condition after || needs a temporal operator"),
    ('P=? [ F ("a" || "b") ]', "1:14", "the Boolean or is a single |"),
    ('P=? [ F "a" || F "b" || F "c" ]', "1:22", "the Boolean or is a single |"),
    ("P=? [ F s in {1,2} ]", "1:11", "membership in a set is written x=1 | x=2"),
    ("P=? [ F x == 2 ]", "1:12", "equality is a single ="),
    ('P>=1 [ F "a" ] and P>=1 [ F "b" ]', "1:16", "the Boolean and is written &"),
    ('P=? [ F "a" or "b" ]', "1:13", "the Boolean or is written |"),
    ('P=? [ F not "a" ]', "1:13", "the Boolean not is written !"),
    ('P=? [ F ("a" -> "b") ]', "1:14", "implication is written =>"),
    ('"a" <-> "b"', "1:6", "equivalence is written <=>"),
    ('"a" xor "b"', "1:5", "exclusive or is written !=, between two truth values in parentheses"),
    ("x^2 = 4", "1:2", "powers are written pow(x, k)"),
    ('P>=90% [ F "a" ]', "1:6", "numbers are written as fractions of one"),
    ("# a comment", "1:1", "comments start with //"),
    ("/* a comment */ true", "1:1", "comments start with //"),
    ('P=? [ F "a" & é ]', "1:15", "only a name in double quotes may hold this character"),
    ("x\u00a0= 3", "1:2", "this is a non-breaking space"),
    ('P≥0.5 [ F "a" ]', "1:2", "operators are written in ASCII"),
    ('P=? [ F "a" F "b" ]', "1:13", "two formulas stand side by side"),
    ('P=? [ "a" U "b" U "c" ]', "1:17", "U, W and R do not chain"),
    ('P=? [ X<=3 "a" ]', "1:7", "X takes no step bound"),
    ('P=? [ F<=2,[1,3] "a" ]', "1:12", "a second bound on the steps"),
    ('P=? [ F^steps<=2 "a" ]', "1:9", "after ^ the bounds stand in braces"),
    ('P=? [ F{"r"}<=true "a" ]', "1:15", "a reward bound needs a number, and this is a truth value"),
    ('P=? [ F{"r"}<="b" "a" ]', "1:15", "a reward bound must be a constant, not a label"),
    # LTL
    ('P=? [ (F "a") + 1 ]', "1:7", "F is a temporal operator and has no value here"),
    ('P=? [ (!F "a") = true ]', "1:7", "this is a path formula and has no value here"),
    ('P=? [ max((X "a"), 1) ]', "1:11", "X is a temporal operator and has no value here"),
    ('P=? [ F ((F "a") ? true : false) ]', "1:10", "F is a temporal operator and has no value here"),
    ('"a" & F "b"', "1:7", "a temporal operator stands between the brackets of P"),
    ('("a" & F "b")', "1:1", "this is a path formula and stands between the brackets of P"),
    ('S=? [ !F "a" ]', "1:7", "S needs a condition on states, not a path formula"),
    # filters
    ('filter("a", true)', "1:8", "a filter begins with its kind"),
    ("filter(max P=? [ F true ])", "1:12", "a comma follows the kind of a filter"),
    ("filter(median, 1)", "1:8", "unknown kind of filter: median"),
    ('filter(forall, F "a")', "1:16", "F is a temporal operator and has no value here"),
    ('P=? [ F filter(forall, F "a") ]', "1:24", "F is a temporal operator and has no value here"),
    ('P=? [ F "a" {F "b"} ]', "1:14", "a temporal operator stands between the brackets of P"),
    ('P=? [ F "a" {"b"}{avg} ]', "1:19", "only {min} and {max} follow the states of a filter"),
    ('P>=0.5 [ F "a" {"b"}{min} ]', "1:22", "{min} needs numbers, and an operator with a bound is true or false"),
    ('filter(max, P>=0.5 [ F "a" ])', "1:13", "the filter max needs a number, and this is a truth value"),
    ('filter(count, P=? [ F "a" ])', "1:15", "the filter count needs a truth value, and this is a number"),
    (
        'filter(max, P=? [ F "a" ], 3)',
        "1:28",
        "the set of states of a filter needs a truth value, and this is a whole number",
    ),
    ('1 + filter(range, P=? [ F "a" ])', "1:5", "+ needs a number, and this is a range of numbers"),
    ('filter(range, P=? [ F "a" ]) = 1', "1:1", "= needs single values, and this is a range of numbers"),
    ('P>=filter(max, P=? [ F "b" ]) [ F "a" ]', "1:4", "the bound of P must be a constant, not an operator"),
    # quantiles, several objectives, games
    ('quantile(P>0.3 [ F<=3 "a" ])', "1:10", "the variables of a quantile come first"),
    ('quantile(min B, P=? [ F<=B "a" ])', "1:17", "a quantile needs P or R with a bound"),
    ('quantile(min B, S>0.5 [ "a" ])', "1:17", "a quantile needs P or R with a bound"),
    ('quantile(min C, P>0.3 [ F<=3 "a" ])', "1:14", "this word is reserved and cannot name a variable"),
    ('quantile(B, B, P>0.3 [ F<=B "a" ])', "1:1", "the variable B of this quantile is declared twice"),
    ('quantile(B, P>0.3 [ F<=B "a" ]) & true', "1:1", "& needs a truth value, and this is a number"),
    ("P=? [ F multi(true) ]", "1:15", "the objectives of multi are the operators P, R and S"),
    ('multi(P=? [ F "a" ], P=? [ F "b" ]) + 1', "1:1", "+ needs a number, and this is a list of values"),
    ("<<p>> true", "1:7", "an operator such as P or R follows the players"),
    ('<<p, 2.5>> P>0.5 [ F "a" ]', "1:6", "a player is a name or a whole number"),
    # references
    ('"n": P=? [ F "a" ]; "n" & true', "1:21", "& needs a truth value, and this is a number"),
    ('"n": P>0 [ F "a" ]; "n" + 1', "1:21", "+ needs a number, and this is a truth value"),
    ('"n" + 1;"n": "m";"m": true', "1:1", "+ needs a number, and this is a truth value"),
    ('"n": true; "n": false; "n" & true', "1:24", 'two properties are named "n"'),
    ('label "n" = true; "n": true; "n" & true', "1:30", '"n" is a label and a property of this file'),
    ('F "a"', "1:1", "a temporal operator stands between the brackets of P"),
    ('"n": G "a"', "1:6", "a temporal operator stands between the brackets of P"),
    ('(F "a")', "1:1", "F is a temporal operator and stands between the brackets of P"),
    ('"a" U "b"', "1:5", "U and W stand between the brackets of P"),
    ('P=? [ "a" ]', "1:7", "P needs a temporal operator between its brackets: F, G, X, U, W or R"),
    ("P=? [ ]", "1:7", "unexpected ]; expected a temporal operator or a formula"),
    ('S=? [ F "a" ]', "1:7", "S needs a condition on states, not the temporal operator F"),
    ('R=? [ "a" ]', "1:7", "a reward needs F, C, I or S between its brackets"),
    ("R=? [ C>=3 ]", "1:8", "C takes upper bounds only"),
    ('R=? [ C{"r"}=3 ]', "1:8", "C takes upper bounds only"),
    ("R=? [ C<=3 discount=true ]", "1:21", "a discount needs a number, and this is a truth value"),
    ('P=? [ F "a"', "1:5", "this [ is never closed"),
    ('P=? [ F "a";\nP=? [ F "b" ];', "1:5", "this [ is never closed"),
    ('P=? [ F "a"\n"n": P=? [ F "b" ]', "1:5", "this [ is never closed"),
    ('P=? [ F ("a" ]', "1:9", "this ( is never closed"),
    ('P=? [ F "a" ] ]', "1:15", "nothing is open that ] could close"),
    ('P=? [ F "a ]', "1:9", 'this name has no closing "'),
    ('P=? [ F "" ]', "1:9", "a name between quotes cannot be empty"),
    (r'P=? [ F "a\q" ]', "1:9", r"unknown escape \q in a name"),
    ("P=?  // what", "1:4", "the text ends too early; expected ["),
    ("P>=0.5", "1:7", "the text ends too early; expected an operator such as + or ["),
    ("powr(2, 3) = 8", "1:1", "unknown function powr"),
    ("foo(2) = 8", "1:1", "unknown function foo"),
    ('P=? [ F "a" ] P=? [ F "b" ]', "1:15", "a complete property ends before this"),
    ('const int k = 3\nP=? [ F<=k "a" ]', "2:1", "a constant ends with ;"),
    ("const int F = 3;", "1:11", "this word is reserved and cannot name a constant"),
    ("const int clock = 3;", "1:11", "clock is a reserved word of PRISM and cannot name a constant"),
    ("const float p = 3;", "1:13", "the types of constants are int, double and bool"),
    ('label done = "a";', "1:7", "the name of a label stands in double quotes"),
    ("formula f = x = 1;", "1:9", "a formula definition belongs to a model file"),
    ("1" * 4301 + " = 1", "1:1", "this number has more than 4,300 digits"),
    ("1e99999 = 1", "1:1", "this number has more than 4,300 digits"),
    # types
    ('P=? [ F "a" ] & "b"', "1:1", "& needs a truth value, and this is a number"),
    ('!R{"r"}=? [ C ]', "1:2", "! needs a truth value, and this is a number"),
    ('P=? [ F (P=? [ F "a" ]) ]', "1:9", "F needs a truth value, and this is a number"),
    ("S=? [ 3 ]", "1:7", "S needs a truth value, and this is a whole number"),
    ('"a" + 1', "1:1", "+ needs a number, and this is a truth value"),
    ('1 - P>=0.5 [ F "a" ]', "1:5", "- needs a number, and this is a truth value"),
    ("-true", "1:2", "- needs a number, and this is a truth value"),
    ('"a" = 1', "1:7", "the two sides of = do not match: a truth value and a whole number"),
    ('"a" ? 1 : true', "1:11", "the two sides of ? : do not match: a whole number and a truth value"),
    ('P>=true [ F "a" ]', "1:4", "the bound of P needs a number, and this is a truth value"),
    ('P>="a" [ F "a" ]', "1:4", "the bound of P must be a constant, not a label"),
    ('P>=P=?[F "a"] [ F "a" ]', "1:4", "the bound of P must be a constant, not an operator"),
    ('P=? [ F<=2.5 "a" ]', "1:10", "a step bound counts steps and needs a whole number"),
    ('const double k = 2; P=? [ F<=k "a" ]', "1:30", "a step bound counts steps and needs a whole number"),
    ("mod(2.5, 2) = 1", "1:5", "mod needs whole numbers"),
    ("pow(2) = 1", "1:1", "pow takes 2 arguments, here are 1"),
    ("max(2) = 1", "1:1", "max takes two arguments or more"),
    ("const int k = 2.5;", "1:15", "the constant k is declared int, but its value is a number"),
    ('const bool b = "a";', "1:16", "the value of the constant b must be a constant, not a label"),
    ("const int k = 1; const int k = 2;", "1:18", "the constant k is declared twice"),
    ('label "x" = 3;', "1:13", "a label definition needs a truth value, and this is a whole number"),
    ('label "x" = true; label "x" = false;', "1:19", 'the label "x" is defined twice'),
]


@pytest.mark.parametrize(("text", "place", "message"), MESSAGES, ids=[text[:40] for text, _, _ in MESSAGES])
def test_message_and_place(text: str, place: str, message: str) -> None:
    with pytest.raises(PropertyError) as caught:
        parse_properties(text, path="a.props")
    (problem,) = caught.value.problems
    assert (f"{problem.location.line}:{problem.location.column}", problem.message) == (place, message)
    assert str(caught.value).startswith(f"a.props:{place}: {message}")


def test_no_message_speaks_of_the_parser() -> None:
    """Names of terminals and of lark never reach a user."""
    for text, _, _ in MESSAGES:
        with pytest.raises(PropertyError) as caught:
            parse_properties(text)
        assert not re.search(
            r"\b(?:RSQB|LPAR|STRING|IDENTIFIER|COMPARISON|\$END|__ANON|lark|Token)\b", str(caught.value)
        )


def test_every_usual_mistake_is_reached_by_some_text() -> None:
    """An entry of the catalogue that no text above ends in would be dead."""
    shown = {message for _, _, message in MESSAGES}
    assert {mistake.message for mistake in MISTAKES} <= shown


def test_the_whole_message() -> None:
    text = 'const int d = 8;\n\t"möglich": P>=0.9 [ F<=d "erfolg" && "ziel" ];\n'
    with pytest.raises(PropertyError) as caught:
        parse_properties(text, path="a.props")
    assert str(caught.value) == cleandoc(
        """
        a.props:2:37: the Boolean and is a single &
             "möglich": P>=0.9 [ F<=d "erfolg" && "ziel" ];
                                                ^
        """
    )


def test_the_caret_follows_wide_characters_and_control_characters_are_not_echoed() -> None:
    with pytest.raises(PropertyError) as caught:
        parse_properties('P=? [ F "検証\x1b[31m" = ] ]')
    line, caret = str(caught.value).split("\n")[1:]
    assert "\x1b" not in line
    assert caret.index("^") - len("    ") == len('P=? [ F "検証·[31m" = ') + 2


def test_a_long_line_is_cut_around_its_caret() -> None:
    with pytest.raises(PropertyError) as caught:
        parse_properties(" & ".join(['"a"'] * 100) + " && " + " & ".join(['"b"'] * 100))
    line, caret = str(caught.value).split("\n")[1:]
    assert len(line) < 120
    assert line[caret.index("^") - 1 :].startswith('&& "b"')
