import fnmatch
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import FitError
from tracebridge.states.features import encode_runs
from tracebridge.states.manual import MAX_LENGTH, StateFunction, StateMap, StateRule, name_of
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=80)


def state_of(rule_map, *steps):
    return rule_map.groups(steps)[-1]


def test_the_first_rule_that_matches_gives_the_state():
    rules = StateMap(
        rules=(
            StateRule(state="failed", error=True),
            StateRule(state="lookup", kind=("tool",), name=("get_*", "search")),
            StateRule(state="get", name=("get_?",)),
        ),
        default="rest",
    )
    steps = [
        Step(name="get_user", kind="tool", error=True),
        Step(name="get_user", kind="tool"),
        Step(name="search", kind="tool"),
        Step(name="get_1", kind="message"),
        Step(name="get_12", kind="message"),
        Step(name="GET_1", kind="message"),
    ]
    assert rules.groups(steps) == ["failed", "lookup", "lookup", "get", "rest", "rest"]
    assert rules.states == ("failed", "get", "lookup", "rest")


def test_text_and_attributes():
    rules = StateMap(
        rules=(
            StateRule(state="refund", text=("*refund*", "*money\nback*")),
            StateRule(state="silent", text=("",)),
            StateRule(state="mail", attributes={"channel": "m[ai]il*", "urgent": True, "n": 1}),
            StateRule(state="one", attributes={"n": 1}),
        ),
        default="rest",
    )
    assert state_of(rules, Step(name="a", text="a refund, please")) == "refund"
    assert state_of(rules, Step(name="a", text="my money\nback")) == "refund"
    assert state_of(rules, Step(name="a")) == "silent"
    with_text = {"name": "a", "text": "x"}
    mail = {"channel": "mail/1", "urgent": True, "n": 1.0}
    assert state_of(rules, Step(**with_text, attributes=mail)) == "mail"
    assert state_of(rules, Step(**with_text, attributes=mail | {"urgent": 1})) == "one"
    assert state_of(rules, Step(**with_text, attributes=mail | {"channel": 3})) == "one"
    assert state_of(rules, Step(**with_text, attributes={"n": True})) == "rest"
    assert state_of(rules, Step(**with_text, attributes={"n": [1]})) == "rest"


def test_retries():
    rules = StateMap(rules=(StateRule(state="again", retry=True), StateRule(state="first", retry=False)))
    failed, plain = Step(name="a", error=True), Step(name="a")
    assert rules.groups([failed, plain, plain, Step(name="b", attributes={"retry": True})]) == [
        "first",
        "again",
        "first",
        "again",
    ]


def test_a_step_without_a_rule_is_an_error_that_says_what_to_do():
    rules = StateMap(rules=(StateRule(state="a", name=("a",)),))
    with pytest.raises(FitError, match=r"no rule .* kind 'action', name 'b', error false .*add a rule"):
        rules.groups([Step(name="b")])


words = st.text("ab*?[]!x\n", max_size=5)


@law
@given(
    st.lists(st.tuples(words, st.none() | st.booleans(), st.none() | words), max_size=6),
    st.lists(st.builds(Step, name=words.filter(bool), text=st.none() | words, error=st.booleans()), max_size=6),
)
def test_matching_follows_the_definition(conditions, steps):
    rules = tuple(
        StateRule(state=f"s{i}", name=(name,), error=error, text=() if text is None else (text,))
        for i, (name, error, text) in enumerate(conditions)
    )
    expected = [
        next(
            (
                f"s{i}"
                for i, (name, error, text) in enumerate(conditions)
                if fnmatch.fnmatchcase(step.name, name)
                and (error is None or error == step.error)
                and (text is None or fnmatch.fnmatchcase(step.text or "", text))
            ),
            "none",
        )
        for step in steps
    ]
    assert StateMap(rules=rules, default="none").groups(steps) == expected


def test_hostile_patterns_take_no_time():
    rules = StateMap(rules=(StateRule(state="x", text=("*a" * 300 + "*b",)),), default="rest")
    start = time.perf_counter()
    assert state_of(rules, Step(name="a", text="a" * 200_000)) == "rest"
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("", "not empty"),
        ("a\x1bb", "printable"),
        ("x" * (MAX_LENGTH + 1), "up to"),
        ("success", "'step_success' can"),
        ("error", "'step_error' can"),
        (3, "text"),
    ],
)
def test_names_that_cannot_be_states(state, message):
    with pytest.raises(ValueError, match=message):
        StateRule(state=state)
    with pytest.raises(ValueError, match=message):
        StateMap(rules=(), default=state)
    with pytest.raises(FitError, match=message):
        StateFunction.of(lambda step: state).groups([Step(name="a")])


def test_patterns_and_maps_that_are_too_long():
    with pytest.raises(ValueError, match="at most 1000"):
        StateRule(state="a", attributes={"k": "x" * (MAX_LENGTH + 1)})
    with pytest.raises(ValueError, match="at most 10000"):
        StateMap(rules=(StateRule(state="a", error=True),) * 10_001)


def test_a_rule_without_a_condition_is_refused():
    """It would hide all rules behind it; False is a condition, and what is given but empty is none."""
    assert StateRule(state="a", error=False).error is False
    with pytest.raises(ValueError, match="no condition"):
        StateRule(state="a", name=(), attributes={})


def by_length(step):
    return "long" if len(step.name) > 3 else "short"


def test_functions():
    states = StateFunction.of(by_length)
    assert states.name.endswith("test_manual.by_length")
    assert states.groups([Step(name="a"), Step(name="abcd")]) == ["short", "long"]
    assert StateFunction(name=states.name) == states
    with pytest.raises(FitError, match=r"by_length, which its document does not hold .*fit the traces again"):
        StateFunction(name=states.name).groups([Step(name="a")])
    runs = encode_runs([Trace(trace_id="t", outcome=Outcome.SUCCESS, steps=(Step(name="abcd"),))], states)
    assert [vector.group for vector in runs.vectors] == ["long"]


def test_a_function_that_gives_ever_new_states(monkeypatch):
    monkeypatch.setattr("tracebridge.states.manual.MAX_RULES", 2)
    with pytest.raises(FitError, match="more than 2 different states, the last of them 'c'"):
        StateFunction.of(lambda step: step.name).groups([Step(name=name) for name in "abac"])


def test_names_of_callables():
    class Namer:
        def __call__(self, step):
            return "a"

    assert name_of(Namer()).endswith("Namer")
    assert name_of(len) == "builtins.len"
