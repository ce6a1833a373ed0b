import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import ModelError
from tracebridge.states.manual import StateMap, StateRule
from tracebridge.states.state_map_file import MAX_BYTES, read_state_map, state_map_from_dict

law = settings(deadline=None, max_examples=60)

TOML = """
default = "rest"

[[rule]]
state = "lookup"
name = ["search_*", "get_?"]
kind = "tool"

[[ rule ]]
state = "write_failed"
error = true
retry = false
text = "*!"
attributes = {channel = "mail*", priority = 1, urgent = true, ratio = 0.5}
"""

EXPECTED = StateMap(
    rules=(
        StateRule(state="lookup", name=("search_*", "get_?"), kind=("tool",)),
        StateRule(
            state="write_failed",
            error=True,
            retry=False,
            text=("*!",),
            attributes={"channel": "mail*", "priority": 1, "urgent": True, "ratio": 0.5},
        ),
    ),
    default="rest",
)


def write(tmp_path, text, name="map.toml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_toml_and_json_are_the_same_map(tmp_path):
    assert read_state_map(write(tmp_path, TOML)) == EXPECTED
    document = {key: value for key, value in EXPECTED.to_dict().items() if key != "kind"}
    assert read_state_map(write(tmp_path, json.dumps(document), "map.json")) == EXPECTED
    assert read_state_map(str(write(tmp_path, b"\xef\xbb\xbf" + TOML.encode()))) == EXPECTED


def test_a_default_alone_is_a_map(tmp_path):
    assert read_state_map(write(tmp_path, 'default = "step"')).states == ("step",)


def problems_of(tmp_path, text, name="map.toml"):
    with pytest.raises(ModelError) as caught:
        read_state_map(write(tmp_path, text, name))
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


def test_every_problem_is_told_with_its_rule(tmp_path):
    text = """colour = "red"
[[rule]]
stat = "a"
[[rule]]
state = "b"
name = []
error = "yes"
attributes = {x = [1], y = nan}
[[rule]]
state = "success"
retry = true
[[rule]]
state = "all"
attributes = {}
"""
    globs = "patterns are globs: * stands for any text, ? for one character"
    asked = 'asked (for steps that no rule matches write default = "all" above the rules)'
    compared = "compared with a pattern, a finite number, true or false"
    assert problems_of(tmp_path, text) == [
        "map.toml: unknown key 'colour' (there are default, rule)",
        'map.toml:2, record rule 1: this rule names no state (add a line such as state = "search")',
        "map.toml:2, record rule 1: unknown key 'stat' (did you mean 'state'?)",
        f"map.toml:4, record rule 2: 'name' must be a pattern or a list of some, not an empty list ({globs})",
        "map.toml:4, record rule 2: 'error' must be true or false, not text",
        f"map.toml:4, record rule 2: attribute 'x' is {compared}, not a list",
        f"map.toml:4, record rule 2: attribute 'y' is {compared}, not a number",
        "map.toml:9, record rule 3: 'success' cannot be a state, the word has a meaning of its own; 'step_success' can",
        f"map.toml:12, record rule 4: this rule has no condition: it takes every step, and no rule below it is {asked}",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule]\n", "map.toml:1:7: not TOML: Expected ']]' at the end of an array declaration"),
        ("a = " + "[" * 5_000, "map.toml: nested too deeply"),
        ("a = " + "1" * 5_000, "map.toml: not TOML: a whole number in it has too many digits"),
        (b"\xff", "map.toml: not UTF-8: byte 0 is 0xff"),
        (b"#" * (MAX_BYTES + 1), "map.toml: a state map has at most"),
        ("", "map.toml: 'rule' must be a list of 1 to 10000 rules, not 0 (write each rule under a line [[rule]])"),
        ("rule = 3", "map.toml: 'rule' must be a list of 1 to 10000 rules, not a number"),
        ("rule = [1]", "map.toml, record rule 1: a rule is a table, not a number"),
        ("default = 3", "map.toml, field default: must be the name of a state, not a number"),
        ('default = "init"', "map.toml, field default: 'init' cannot be a state"),
        ("[[rule]]\nstate = 1", "map.toml:1, record rule 1: 'state' must be text, not a number"),
        ('[[rule]]\nstate = "a"\nattributes = 1', "map.toml:1, record rule 1: 'attributes' must be a table"),
        ('[[rule]]\nstate = "a"\nname = ["a", 1]', "'name' must be a pattern or a list of some, not a list"),
        # a header inside a text: the lines of the rules are not known
        ('[[rule]]\nstate = "a"\ntext = """\n[[rule]]\n"""\nerror = 1', "map.toml, record rule 1: 'error' must be"),
    ],
)
def test_malformed_toml(tmp_path, text, message):
    (problem,) = problems_of(tmp_path, text)
    assert message in problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "map.json:1:2: not JSON: Expecting property name"),
        ("[" * 100_000, "map.json: nested too deeply"),
        ("[1]", "map.json: a state map is a table with the key 'rule', not a list"),
        ('{"rule": [], "rule": []}', "map.json: the key 'rule' is given twice"),
        ('{"rule": [{"state": "a", "attributes": {"x": NaN}}]}', "map.json: NaN is no JSON number"),
        (
            '{"rule": [{"state": "a", "attributes": {"x": ' + "9" * 5_000 + "}}]}",
            "map.json: a whole number in it has too many",
        ),
        ('{"rule": [{"state": "\\ud800", "name": "x"}]}', "map.json, record rule 1: '\\ud800' cannot be a state"),
    ],
)
def test_malformed_json(tmp_path, text, message):
    (problem,) = problems_of(tmp_path, text, "map.json")
    assert message in problem


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ModelError, match="there is no such file"):
        read_state_map(tmp_path / "none.toml")
    with pytest.raises(ModelError, match="cannot be read"):
        read_state_map(tmp_path)


patterns = st.lists(st.text(max_size=4), max_size=2).map(tuple)
rules = (
    st.fixed_dictionaries(
        {
            "state": st.text("abc", min_size=1, max_size=3),
            "kind": patterns,
            "name": patterns,
            "text": patterns,
            "error": st.none() | st.booleans(),
            "retry": st.none() | st.booleans(),
            "attributes": st.dictionaries(
                st.text(max_size=3),
                st.text(max_size=3) | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
                max_size=3,
            ),
        }
    )
    .filter(lambda given: any(value not in (None, (), {}) for key, value in given.items() if key != "state"))
    .map(lambda given: StateRule(**given))
)
maps = st.builds(StateMap, rules=st.lists(rules, min_size=1, max_size=4).map(tuple), default=st.none() | st.just("d"))


@law
@given(maps)
def test_documents_round_trip(state_map):
    document = json.loads(json.dumps(state_map.to_dict()))
    assert document.pop("kind") == "rules"
    assert state_map_from_dict(document) == state_map


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["rule", "state", "name", "kind", "error", "attributes", "default", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@law
@given(json_values)
def test_whatever_a_file_holds_is_a_map_or_a_listed_problem(data):
    try:
        problems, state_map = [], state_map_from_dict(data, path="f")
    except ModelError as error:
        problems, state_map = error.problems, None
    assert (state_map is None) == bool(problems)
    assert all(str(problem).startswith("f") for problem in problems)
    assert state_map is None or state_map.states
