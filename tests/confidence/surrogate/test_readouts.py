import json
import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.confidence.surrogate.fake_language_model import MENTIONED, UNMENTIONED, MentionModel

from tracebridge.confidence.surrogate import (
    CallContext,
    Message,
    ScoredToken,
    Tool,
    ToolCall,
    call_text,
    read_out,
)
from tracebridge.errors import InputError, UsageError

BOOK = Tool(name="book", parameters={"properties": {"city": {}, "nights": {}, "guest": {"properties": {"family": {}}}}})
CANCEL = Tool(name="cancel", parameters={"properties": {"city": {}}})
REQUEST = CallContext(
    messages=(
        Message(role="system", content="Help."),
        Message(role="user", content="Paris for Smith, 3 nights; book it"),
    ),
    tools=(BOOK, CANCEL),
)
CALL = ToolCall(name="book", arguments={"nights": 3, "city": "Paris", "guest": {"family": "Smith"}})

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_every_value_is_found_by_its_pointer(arguments):
    """The text is JSON for the call, and the characters of a pointer are those of the value that it points to."""
    text = call_text(ToolCall(name="f", arguments=arguments))
    assert json.loads(text.text) == {"name": "f", "arguments": arguments}
    for pointer, (start, end) in text.values.items():
        value = arguments
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            value = value[int(key)] if isinstance(value, list) else value[key]
        written = text.text[start:end]
        assert json.loads(f'"{written}"' if isinstance(value, str) else written) == value


def test_the_order_of_arguments_changes_nothing():
    readouts = {
        json.dumps(read_out(MentionModel(), REQUEST, ToolCall(name="book", arguments=dict(order))).to_dict())
        for order in permutations(CALL.arguments.items())
    }
    assert len(readouts) == 1


def test_a_right_call_has_the_probabilities_of_the_model():
    found = read_out(MentionModel({"Yes": 0.6, "yes": 0.1, "No": 0.2, "no": 0.1}), REQUEST, CALL)
    assert dict(found.teacher_forcing.by_pointer) == pytest.approx(
        dict.fromkeys(("/city", "/guest/family", "/nights"), math.log(MENTIONED))
    )
    # " Yes" is a blank, which is certain, and the word: both forms count, as they would for a tokenizer with both
    assert found.verdict == pytest.approx(1.4 / (1.4 + 0.6))
    assert found.tool_choice == pytest.approx(0.5)  # both tools stand in the prompt
    assert found.tool_margin == pytest.approx(0)
    assert found.flags == ()


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ({"nights": 3, "city": "Rome", "guest": {"family": "Smith"}}, "/city"),
        ({"nights": 5, "city": "Paris", "guest": {"family": "Smith"}}, "/nights"),
        ({"nights": 3, "city": "Paris", "guest": {"family": "Jones"}}, "/guest/family"),
    ],
)
def test_a_wrong_value_is_found(arguments, pointer):
    found = read_out(MentionModel(), REQUEST, ToolCall(name="book", arguments=arguments))
    assert found.teacher_forcing.weakest == pointer
    assert found.teacher_forcing.minimum == pytest.approx(math.log(UNMENTIONED))
    assert found.request_pmi.by_pointer[pointer] == pytest.approx(0)  # the request does not speak for it


def test_what_the_request_says_shows_and_what_it_does_not_say_is_zero():
    found = read_out(MentionModel(), REQUEST, ToolCall(name="book", arguments={"city": "Paris", "nights": "Help"}))
    assert found.request_pmi.by_pointer["/city"] == pytest.approx(math.log(MENTIONED / UNMENTIONED))
    assert found.request_pmi.by_pointer["/nights"] == pytest.approx(0)  # the system says it, whatever the user does


def test_null_requests_replace_the_request_alone():
    model = MentionModel()
    read_out(model, REQUEST, CALL, null_requests=["nothing at all"])
    null = next(prompt for prompt in model.prompts if "nothing at all" in prompt)
    assert "Paris" not in null
    assert "Help." in null
    assert "book" in null


def test_a_name_is_scored_in_full():
    """With names that begin alike the shorter does not gain from the longer."""
    tools = (Tool(name="get"), Tool(name="get all"))
    context = CallContext(messages=(Message(role="user", content="all"),), tools=tools)
    short, long = (
        read_out(MentionModel({"get": 0.5, "all": 0.5}), context, ToolCall(name=tool.name)).tool_choice
        for tool in tools
    )
    assert short + long == pytest.approx(1)
    assert short == pytest.approx(2 / 3)


def test_what_is_undefined_is_said():
    alone = CallContext(messages=REQUEST.messages, tools=(BOOK,))
    found = read_out(MentionModel(), alone, ToolCall(name="book"))
    assert math.isnan(found.scores()["teacher_forcing"])
    assert math.isnan(found.scores()["request_pmi"])
    assert math.isnan(found.scores()["tool_choice"])
    assert 0 < found.scores()["verdict"] < 1
    assert found.to_dict()["scores"]["tool_choice"] is None
    assert len(found.flags) == 2
    foreign = read_out(MentionModel(), REQUEST, ToolCall(name="book", arguments={"colour": "red"}))
    assert foreign.flags == ("the argument 'colour' is not in the schema of 'book'",)
    impossible = read_out(MentionModel({"Paris": 0.0}), REQUEST, ToolCall(name="book", arguments={"city": "Paris"}))
    assert impossible.teacher_forcing.minimum == pytest.approx(math.log(1e-8))
    assert impossible.flags == ("1 tokens of the call have no probability; they count as 1e-8",)


class Told:
    """Says what it is told to."""

    def __init__(self, *tokens):
        self.tokens = tokens

    def score(self, prompt, continuation):
        return self.tokens


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "scored 0 of"),
        ([ScoredToken("{", -1.0, 0, 1)], "scored 1 of"),
        ([ScoredToken("{", 0.5, 0, 30)], None),
        ([ScoredToken("x", -1.0, 3, 30)], "leave out"),
    ],
)
def test_a_surrogate_that_did_not_read_everything_is_refused(tokens, message):
    length = len(call_text(ToolCall(name="book")).text)
    tokens = [token._replace(end=length) if token.end == 30 else token for token in tokens]
    with pytest.raises(InputError, match=message or "above zero"):
        read_out(Told(*tokens), REQUEST, ToolCall(name="book"))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (ToolCall(name="fly"), UsageError),
        (ToolCall(name="book", arguments={"city": math.nan}), InputError),
        (ToolCall(name="book", arguments={"city": {1: 2}}), InputError),
        (ToolCall(name="book", arguments={"city": {"a", "b"}}), InputError),
    ],
)
def test_what_is_no_call_is_refused(call, error):
    with pytest.raises(error):
        read_out(MentionModel(), REQUEST, call)


def test_nesting_is_bounded():
    value = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(InputError, match="nested more than 64 deep"):
        call_text(ToolCall(name="book", arguments={"city": value}))
