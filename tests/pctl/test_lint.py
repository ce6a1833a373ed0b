"""What lint says, and about which place."""

from __future__ import annotations

import pytest

from tracebridge.pctl import lint, parse_properties

LABELS = {"success", "failure", "absorbed", "tool-call"}
LEVEL = "the share of the posterior in which the property must hold: at least 0.5, and below 1"
NAME = '"n": '


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (NAME + 'P=? [ F "sucess" ];', '1:14: error: no state has the label "sucess" (did you mean "success"?)'),
        (
            NAME + 'P=? [ F "xyz" ];',
            '1:14: error: no state has the label "xyz" (the model has "absorbed", "failure", "success", "tool-call")',
        ),
        ('"n": true;\n"n": true;', '2:1: error: a second property is called "n" (names must differ)'),
        (
            '"success": true;',
            (
                '1:1: error: the property "success" is called like a label '
                "(PRISM keeps both in one namespace; rename the property)"
            ),
        ),
        (
            'label "success" = "failure"; "n": P=? [ F "success" ];',
            '1:1: error: the definition of "success" hides a label of the model (choose another name)',
        ),
        (
            'P=? [ F "success" ];',
            '1:1: warning: a property without a name is hard to find in a report (write "name": in front of it)',
        ),
        (NAME + 'P>=1.5 [ F "success" ];', "1:6: error: a probability lies between 0 and 1, and the bound is >=1.5"),
        (NAME + 'S<-0.1 [ "success" ];', "1:6: error: a probability lies between 0 and 1, and the bound is <-0.1"),
        (
            'const double p = 3/2; "n": P>p [ F "success" ];',
            "1:28: error: a probability lies between 0 and 1, and the bound is >p",
        ),
        (NAME + 'P>1 [ F "success" ];', "1:6: error: the bound >1 can never hold (use >= or <=)"),
        (NAME + 'P<0 [ F "success" ];', "1:6: error: the bound <0 can never hold (use >= or <=)"),
        (NAME + 'R{"steps"}<0 [ C ];', "1:6: error: the bound <0 can never hold (use >= or <=)"),
        (NAME + 'R{"steps"}<=-1 [ C ];', "1:6: error: the bound <=-1 can never hold: rewards are not negative"),
        (NAME + 'P>=0 [ F "success" ];', "1:6: warning: the bound >=0 always holds"),
        (NAME + 'P<=1 [ F "success" ];', "1:6: warning: the bound <=1 always holds"),
        (
            NAME + 'P=? [ F[5,2] "success" ];',
            "1:12: error: no step satisfies this bound: the last is 2, the first 5",
        ),
        (
            'const int k = 0; "n": P=? [ F<k "success" ];',
            "1:29: error: no step satisfies this bound: the last is -1, the first 0",
        ),
        (NAME + 'R{"steps"}=? [ C<=-1 ];', "1:21: error: a step count cannot be negative"),
        ('const int k = 1; "n": P=? [ F "success" ];', "1:1: warning: the constant k is not used"),
        ('label "x" = "success"; "n": P=? [ F "success" ];', '1:1: warning: the label "x" is not used'),
        (
            NAME + "P=? [ F success ];",
            '1:14: error: unknown name success (a label stands in quotes: "success")',
        ),
        (
            'const int steps = 2; "n": P=? [ F<=step+steps "success" ];',
            "1:36: error: unknown name step (did you mean steps?)",
        ),
        (
            NAME + 'R{"step"}=? [ C ];',
            '1:6: error: unknown reward structure "step" (did you mean "steps"?)',
        ),
        (
            '//@ requirment R1\n"n": true;',
            "1:1: warning: unknown annotation 'requirment' (did you mean requirement?)",
        ),
        (
            '//@ owner me\n"n": true;',
            "1:1: warning: unknown annotation 'owner' (the keys are requirement, credible, severity, note)",
        ),
        (
            '//@ credible 95\n"n": true;',
            f"1:1: error: credible 95 is no level ({LEVEL})",
        ),
        (
            '//@ credible nan\n"n": true;',
            f"1:1: error: credible nan is no level ({LEVEL})",
        ),
        ('//@ credible 0.4\n"n": true;', f"1:1: error: credible 0.4 is no level ({LEVEL})"),
        ('//@ credible 1\n"n": true;', f"1:1: error: credible 1 is no level ({LEVEL})"),
        ('//@ credible 1/0\n"n": true;', f"1:1: error: credible 1/0 is no level ({LEVEL})"),
        ('//@ credible 1e999999999\n"n": true;', f"1:1: error: credible 1e999999999 is no level ({LEVEL})"),
        ('//@ requirement\n"n": true;', "1:1: error: the annotation requirement has no value"),
        (
            '//@ severity Advisery\n"n": true;',
            "1:1: warning: severity Advisery is unknown, and the property counts as blocking (did you mean advisory?)",
        ),
        (
            '//@ severity minor\n"n": true;',
            "1:1: warning: severity minor is unknown, and the property counts as blocking (it is blocking or advisory)",
        ),
        (
            '"n": true;\n//@ requirement X',
            "2:1: warning: no property follows the annotation requirement (put it before its property)",
        ),
        (
            '"m": "n" + 1; "n": "m" + 1;',
            (
                "1:1: error: m is defined in terms of itself: m -> n -> m "
                "(the name of a property stands for its formula; rename it if a label of the model is meant)"
            ),
        ),
        (
            'true;\n"n": true;\nP>0.5 [ F "success" ];',
            '1:1: warning: 2 properties without a name are hard to find in a report (write "name": in front of it)',
        ),
        (
            NAME + 'P=? [ F{"step"}<=3 "success" ];',
            '1:12: error: unknown reward structure "step" (did you mean "steps"?)',
        ),
        (NAME + "R{2}=? [ C ];", '1:6: error: there is no reward structure 2 (the model has "steps", counted from 1)'),
        (NAME + 'P=? [ F{"steps"}<0 "success" ];', "1:12: error: no collected reward satisfies this bound"),
        (NAME + 'P=? [ F{"steps"}[3,2] "success" ];', "1:12: error: no collected reward satisfies this bound"),
        (NAME + 'filter(max, P=? [ F "success" ], false);', "1:6: error: the filter is over no states"),
        (
            'const int k = 2; "n": filter(max, P=? [ F<=k "success" ], k > 3);',
            "1:23: error: the filter is over no states",
        ),
        (
            NAME + 'quantile(B, P>=0.5 [ F<=3 "success" ]);',
            "1:6: warning: the quantile looks for B, which its operator does not use (write it as a bound, as in F<=B)",
        ),
        (
            'const int B = 3; "n": quantile(B, P>=0.5 [ F<=B "success" ]);',
            "1:23: error: the variable B of the quantile is called like a constant (choose another name)",
        ),
        (
            NAME + 'multi(Pmax=? [ F "success" ], Pmin=? [ F "failure" ]);',
            "1:6: warning: this asks about choices, and a Markov chain has none",
        ),
        ('const int a = a + 1; "n": a = 1;', "1:1: error: a is defined in terms of itself: a -> a"),
    ],
)
def test_one_finding(text: str, finding: str) -> None:
    found = lint(parse_properties(text), labels=LABELS, reward_structures={"steps"}, targets=())
    assert [str(entry) for entry in found] == [finding]


def test_without_a_model_labels_are_not_judged() -> None:
    assert lint(parse_properties('"n": P=? [ F "anything" ];')) == []


def test_the_labels_of_prism_are_always_there() -> None:
    assert lint(parse_properties('"n": P=? [ F "deadlock" ];'), labels=LABELS) == []


def test_an_unnamed_reward_structure_is_doubtful_unless_there_is_one() -> None:
    file = parse_properties('"n": R=? [ C ];')
    assert lint(file, reward_structures={"steps"}) == []
    assert [finding.severity for finding in lint(file)] == ["warning"]
    assert [finding.severity for finding in lint(file, reward_structures={"a", "b"})] == ["warning"]


def test_what_the_warning_about_an_unnamed_structure_says() -> None:
    (finding,) = lint(
        parse_properties('"n": R=? [ C ];'), labels=LABELS, reward_structures=["cost", "steps"], targets=()
    )
    assert str(finding) == (
        "1:6: warning: R names no reward structure: the first is taken, as in PRISM; Storm refuses if there are "
        'several (write R{"cost"})'
    )
    (missing,) = lint(parse_properties('"n": R=? [ C ];'), labels=LABELS, reward_structures=[], targets=())
    assert str(missing) == "1:6: error: the model has no reward structure"


def test_names_of_the_model_are_known() -> None:
    file = parse_properties('"n": P=? [ F (s=N) ];')
    assert lint(file, labels=LABELS, names=["s", "N"], targets=()) == []
    assert [str(finding) for finding in lint(file, targets=())] == [
        '1:15: warning: unless the model has it, s is unknown (a label stands in quotes: "s")',
        '1:17: warning: unless the model has it, N is unknown (a label stands in quotes: "N")',
    ]


def test_a_quantile_knows_its_variable_and_only_within() -> None:
    file = parse_properties('"n": quantile(min B, P>=0.5 [ F<=B "success" ]);\n"m": P>=0.5 [ F<=B "success" ];')
    assert [str(finding) for finding in lint(file, labels=LABELS, targets=())] == [
        '2:18: error: unknown name B (a label stands in quotes: "B")'
    ]
    shadow = parse_properties('"n": quantile(min N, P>=0.5 [ F<=N "success" ]);')
    (finding,) = lint(shadow, labels=LABELS, names=["N"], targets=())
    assert finding.message == "the variable N of the quantile is called like a name of the model"


def test_the_name_of_a_property_is_no_unknown_label() -> None:
    file = parse_properties('"m": P>=0.5 [ F "success" ];\n"n": P=? [ F "m" ];')
    assert lint(file, labels=LABELS, targets=()) == []


def test_which_tool_takes_what_is_a_note() -> None:
    file = parse_properties('label "x" = "a";\n"n": 1 - P=? [ F "x" ];\n"m": P=? [ F "tool-call" ];')
    found = [str(finding) for finding in lint(file)]
    assert found == [
        "1:1: note: neither PRISM nor Storm defines a label by other labels; `props format --for prism` writes it out",
        "2:10: note: Storm does not calculate with operators",
        "3:14: note: PRISM cannot read the label 'tool-call': a name consists of letters, digits and underscores there",
        "3:14: note: Storm cannot read the label 'tool-call': a name consists of letters, digits and underscores there",
    ]
    assert lint(file, targets=()) == []


def test_findings_come_in_the_order_of_the_text_and_as_json() -> None:
    found = lint(parse_properties('const int k = 1;\nP>=0 [ F "a" ];'), targets=())
    assert [finding.to_dict() for finding in found] == [
        {
            "severity": "warning",
            "message": "the constant k is not used",
            "hint": None,
            "property": None,
            "line": 1,
            "column": 1,
            "end_line": 1,
            "end_column": 17,
        },
        {
            "severity": "warning",
            "message": "a property without a name is hard to find in a report",
            "hint": 'write "name": in front of it',
            "property": None,
            "line": 2,
            "column": 1,
            "end_line": 2,
            "end_column": 15,
        },
        {
            "severity": "warning",
            "message": "the bound >=0 always holds",
            "hint": None,
            "property": None,
            "line": 2,
            "column": 1,
            "end_line": 2,
            "end_column": 15,
        },
    ]


def test_what_nobody_sees_is_named_wherever_it_stands():
    """Trojan source: what an editor shows is not what is checked."""
    text = """\
// checked \u202e\u2066
const int d = 2;
label "ends\u200b" = "success";
//@ requirement REQ\u2069
"a": P>=0.5 [ F<=d "ends\u200b" ]; // \u2067
"plain": P=? [ F "ends\u200b" ]; // \u00e9\u4e00 is seen
// \ufeff
"""
    found = [each for each in lint(parse_properties(text)) if "nobody sees" in each.message]
    assert [
        (each.span.line if each.span else 0, each.property, each.message.partition(" holds")[0]) for each in found
    ] == [
        (0, None, "the comment at the end"),
        (2, None, "the comment at the constant d"),
        (3, None, "the definition of a label"),
        (4, "a", "the annotation"),
        (5, "a", "the property"),
        (5, "a", "the comment at the property"),
        (6, "plain", "the property"),
    ]
    assert {each.severity for each in found} == {"warning"}
    assert "U+202E (right-to-left override), U+2066 (left-to-right isolate)" in found[1].message
    assert all(str(each).isprintable() for each in found)
