import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain import (
    MarkovChain,
    RationalMatrix,
    RationalVector,
    RewardStructure,
    chain_from_dict,
    chain_to_dict,
    read_chain,
    read_document,
    write_chain,
    write_document,
)
from tracebridge.errors import InputError, ModelError

law = settings(deadline=None, max_examples=60)

names = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=5, unique=True)


def distribution(draw, n):
    weights = draw(st.lists(st.integers(0, 10**12), min_size=n, max_size=n).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


@st.composite
def chains(draw):
    """Chains of both kinds of numbers, with awkward names."""
    states = draw(names)
    n = len(states)
    rows = [distribution(draw, n) for _ in range(n)]
    initial = distribution(draw, n)
    rewards = {}
    if draw(st.booleans()):
        rewards["exact"] = RewardStructure.from_fractions([Fraction(i, 3) for i in range(n)])
        rewards["float"] = RewardStructure(state=np.arange(n) / 7, action=np.arange(n) / 3)
        rewards["both"] = RewardStructure.from_fractions([1] * n, [Fraction(i, 7) for i in range(n)])
    words = {}
    if draw(st.booleans()):
        of_states = {
            "n": st.integers(-(2**63), 2**63 - 1),
            "b": st.booleans(),
            "x": st.floats(allow_nan=False, allow_infinity=False),
        }
        words = {
            "variables": {name: np.array([draw(kind) for _ in range(n)]) for name, kind in of_states.items()},
            "constants": {"p": draw(st.fractions()), "on": draw(st.booleans())},
        }
    labels = {"odd label": np.arange(n) % 2 == 1} if "odd label" not in states else {}
    if draw(st.booleans()):
        return MarkovChain(
            states=tuple(states),
            transitions=RationalMatrix.from_rows([dict(enumerate(row)) for row in rows]),
            initial=RationalVector.from_fractions(initial),
            labels=labels,
            rewards=rewards,
            **words,
        )
    dense = np.array([[float(value) for value in row] for row in rows])
    return MarkovChain(
        states=tuple(states),
        transitions=dense,
        initial=np.array(list(map(float, initial))),
        labels=labels,
        rewards=rewards,
        **words,
    )


def same_bits(a, b):
    assert a.states == b.states
    for part in ("data", "indices", "indptr"):
        assert getattr(a.transitions, part).tobytes() == getattr(b.transitions, part).tobytes()
    assert a.initial.tobytes() == b.initial.tobytes()
    assert a.is_exact == b.is_exact
    if a.is_exact:
        for part in ("numerators", "denominators", "indices", "indptr"):
            assert getattr(a.rationals, part).tolist() == getattr(b.rationals, part).tolist()
        assert a.exact_initial() == b.exact_initial()
    assert {k: v.tolist() for k, v in a.labels.items()} == {k: v.tolist() for k, v in b.labels.items()}
    assert list(a.rewards) == list(b.rewards)
    for name, reward in a.rewards.items():
        other = b.rewards[name]
        assert reward.fractions(action=True) == other.fractions(action=True)
        assert reward.state.tobytes() == other.state.tobytes()
    assert list(a.variables) == list(b.variables)
    for name, values in a.variables.items():
        assert values.dtype == b.variables[name].dtype
        assert values.tobytes() == b.variables[name].tobytes()
    assert dict(a.constants) == dict(b.constants)
    assert list(map(type, a.constants.values())) == list(map(type, b.constants.values()))


@law
@given(chains())
def test_round_trip_bit_for_bit(chain):
    text = json.dumps(chain_to_dict(chain))
    again = chain_from_dict(json.loads(text))
    same_bits(chain, again)
    assert json.dumps(chain_to_dict(again)) == text


@law
@given(chains())
def test_files_round_trip(tmp_path_factory, chain):
    path = tmp_path_factory.mktemp("chains") / "chain.json"
    write_chain(path, chain)
    same_bits(chain, read_chain(path))
    assert [entry.name for entry in path.parent.iterdir()] == ["chain.json"]


def document(**changes):
    return {
        "kind": "markov-chain",
        "schema_version": 1,
        "states": ["a", "b"],
        "initial": {"a": "1/1"},
        "transitions": {"a": {"a": "1/3", "b": "2/3"}, "b": {"b": "1/1"}},
        "labels": {"end": ["b"]},
        "rewards": {"steps": {"state": {"a": 1}}},
    } | changes


def test_a_document_written_by_hand():
    chain = chain_from_dict(document())
    assert chain.exact_transitions().row(0) == {0: Fraction(1, 3), 1: Fraction(2, 3)}
    assert chain.label("end").tolist() == [False, True]
    assert chain.rewards["steps"].state.tolist() == [1, 0]
    mixed = chain_from_dict(document(initial={"b": 0.5, "a": 0.5}))
    assert mixed.rationals is not None
    assert mixed.initial_rationals is None
    ones = chain_from_dict(document(transitions={"a": {"a": 1}, "b": {"b": 1}}))
    assert ones.absorbing.all()


def test_variables_and_constants_written_by_hand():
    variables = {
        "n": {"type": "int", "values": {"b": -3, "a": 2}},
        "x": {"type": "double", "values": {"a": 1, "b": 0.5}},
        "on": {"type": "bool", "values": {"a": True, "b": False}},
    }
    chain = chain_from_dict(document(schema_version=2, variables=variables, constants={"p": "-1/5", "flag": False}))
    assert chain.variables["n"].tolist() == [2, -3]
    assert [str(chain.variables[name].dtype) for name in variables] == ["int64", "float64", "bool"]
    assert chain.variables["x"].tolist() == [1.0, 0.5]
    assert dict(chain.constants) == {"p": Fraction(-1, 5), "flag": False}
    assert chain_to_dict(chain)["schema_version"] == 2


def test_a_chain_without_them_is_written_as_the_older_version():
    written = chain_to_dict(chain_from_dict(document()))
    assert written["schema_version"] == 1
    assert not written.keys() & {"variables", "constants"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "x" * 500}, "field kind"),
        ({"schema_version": 3}, "field schema_version: version 3 of 'markov-chain' is unknown, 1 and 2 are known"),
        ({"schema_version": True}, "field schema_version: version True"),
        ({"variables": {"n": {"type": "int", "values": {"a": 1}}}}, "field variables.n: state 'b' has no value"),
        ({"variables": {"n": {"type": "int", "values": {"c": 1}}}}, "field variables.n: there is no state 'c'"),
        ({"variables": {"n": {"type": "int", "values": {"a": 1.5, "b": 1}}}}, "1.5 is no value of type int"),
        ({"variables": {"n": {"type": "int", "values": {"a": True, "b": 1}}}}, "True is no value of type int"),
        ({"variables": {"n": {"type": "bool", "values": {"a": 1, "b": True}}}}, "1 is no value of type bool"),
        ({"variables": {"n": {"type": "double", "values": {"a": True, "b": 1}}}}, "True is no value of type double"),
        ({"variables": {"n": {"type": "int", "values": {"a": 2**63, "b": 1}}}}, "a value of 'a' is beyond 64 bits"),
        ({"variables": {"n": {"type": "double", "values": {"a": 10**400, "b": 1}}}}, "variables"),
        (
            {"variables": {"n": {"type": "text", "values": {}}}},
            r"field variables\[...\].type: Invalid enum value 'text'",
        ),
        ({"variables": {"n n": {"type": "int", "values": {"a": 1, "b": 1}}}}, "'n n' cannot be the name of a variable"),
        ({"constants": {"p": "1"}}, "field constants.p: '1' is no fraction"),
        ({"constants": {"p": "1/0"}}, "field constants.p: '1/0' is no fraction"),
        ({"constants": {"p": 0.5}}, "field constants"),
        ({"schema_version": "1"}, "field schema_version"),
        ({"states": ["a", "a"]}, "field states: two states are called 'a'"),
        ({"states": []}, "there is no state"),
        (
            {"states": ["a", ""], "transitions": {"a": {"a": 1}, "": {"": 1}}, "labels": {}},
            "'' cannot be the name of a state",
        ),
        ({"states": ["a", 1]}, r"field states\[1\]: Expected `str`, got `int`"),
        ({"initial": {"c": "1/1"}}, "field initial: there is no state 'c'"),
        ({"initial": {"a": "1/2"}}, "the initial distribution sums to 1/2"),
        ({"initial": {}}, "the initial distribution sums to 0"),
        ({"transitions": {"c": {"a": 1}}}, "field transitions: there is no state 'c'"),
        ({"transitions": {"a": {"c": 1}}}, "field transitions.a: there is no state 'c'"),
        ({"transitions": {"a": {"a": "1/2", "b": 0.5}}}, "field transitions.a: some numbers are exact"),
        ({"transitions": {"a": {"a": "1/1"}, "b": {"b": 1.0}}}, "field transitions: some numbers are exact"),
        ({"transitions": {"a": {"a": "1/2"}, "b": {"b": "1/1"}}}, "state 'a': its row sums to 1/2"),
        (
            {"transitions": {"a": {"a": -0.5, "b": 1.5}, "b": {"b": 1}}},
            "state 'a': the probability of going to 'a' is -0.5",
        ),
        ({"transitions": {"a": {"a": True}}}, "got `bool`"),
        ({"transitions": {"a": {"a": "1/0"}}}, "'1/0' is no fraction"),
        ({"transitions": {"a": {"a": "1e999999999"}}}, "is no fraction such as '1/3'"),
        ({"transitions": {"a": {"a": "-1/2"}}}, "is no fraction"),
        ({"transitions": {"a": {"a": "٣/٣"}}}, "is no fraction"),
        ({"transitions": {"a": {"a": "1/" + "9" * 5000}}}, "is no fraction"),
        ({"labels": {"end": ["c"]}}, "field labels.end: there is no state 'c'"),
        ({"labels": {"init": ["a"]}}, "'init' cannot be given as a label"),
        ({"labels": {"a": ["b"]}}, "label 'a' is the name of a state"),
        ({"rewards": {"steps": {"state": {"c": 1}}}}, "field rewards.steps.state: there is no state 'c'"),
        ({"rewards": {"steps": {"state": {"a": -1}}}}, "its reward 'steps' is -1.0"),
        ({"rewards": {"steps": {"action": {}}}}, "field rewards"),
        ({"more": 1}, "unknown field `more`"),
        ({"initial": {"a": 10**400}}, "f.json"),
    ],
)
def test_documents_that_do_not_hold_together_are_refused(changes, message):
    with pytest.raises(ModelError, match=message) as caught:
        chain_from_dict(document(**changes), "f.json")
    assert str(caught.value).startswith("f.json")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.json:1:1: not JSON"),
        ('{"kind": "markov-chain",\n "states": [', "f.json:2:13: not JSON"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": -Infinity}', "-Infinity is no JSON number"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 10_000, "f.json"),
        ("[1]", "is an object, not list"),
        ('{"kind": "chain-fit"}', "is an object, not NoneType"),
    ],
)
def test_files_that_are_no_chain(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        read_chain("f.json")
    assert str(caught.value).startswith("f.json")


def test_files_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(ModelError, match="there is no such file"):
        read_document(tmp_path / "none.json")
    with pytest.raises(ModelError, match="cannot be read"):
        read_document(tmp_path)
    (tmp_path / "latin.json").write_bytes(b'"\xff"')
    with pytest.raises(ModelError, match="not UTF-8: byte 1 is 0xff"):
        read_document(tmp_path / "latin.json")
    with pytest.raises(InputError, match="cannot be written"):
        write_document(tmp_path / "no folder" / "x.json", {})


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.json"
    write_document(path, {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_document(path, {"a": math.nan})
    assert read_document(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_a_common_denominator_cannot_take_all_memory(monkeypatch):
    monkeypatch.setattr("tracebridge.chain.document._MAX_BITS", 100)
    with pytest.raises(ModelError, match=r"field transitions\.a: the common denominator .* too many digits"):
        chain_from_dict(document(transitions={"a": {"a": f"1/{2**40}", "b": f"1/{3**40}"}}))


def test_numbers_need_not_be_in_lowest_terms_and_zeros_are_left_out():
    chain = chain_from_dict(document(transitions={"a": {"b": "4/6", "a": "2/6"}, "b": {"b": "1/1", "a": "0/5"}}))
    assert chain.exact_transitions().row(0) == {0: Fraction(1, 3), 1: Fraction(2, 3)}
    assert chain.exact_transitions().row(1) == {1: 1}
    assert chain_to_dict(chain)["transitions"] == document()["transitions"]
    floats = chain_from_dict(document(transitions={"a": {"b": 1.0}, "b": {"b": 1, "a": 0.0}}))
    assert floats.transitions.nnz == 2
