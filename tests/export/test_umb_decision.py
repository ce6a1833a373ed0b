"""Decision processes as UMB archives: round trips, the bytes of the specification, archives of others, hostile ones."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chain.test_decision import router
from tests.export.test_umb import DATA, NUMBERS, ask_storm, distribution, packed, read_bytes, same_vector

from tracebridge.chain import RationalMatrix, RationalVector, RewardStructure
from tracebridge.chain.decision import DecisionProcess
from tracebridge.checking.models import read_model
from tracebridge.errors import ModelError
from tracebridge.export.umb import umb_members, write_umb
from tracebridge.export.umb_reader import read_umb

NAMES = st.text(st.characters(exclude_categories=()), max_size=3)  # halves of surrogate pairs too


@st.composite
def processes(draw: st.DrawFn) -> DecisionProcess:
    """Any names of states and actions, the latter perhaps empty or shared; rationals or doubles of any size."""
    states = draw(st.lists(NAMES.filter(bool), min_size=1, max_size=4, unique=True))
    n = len(states)
    actions = [draw(st.lists(NAMES | st.sampled_from(["go", ""]), min_size=1, max_size=3)) for _ in states]
    m = sum(map(len, actions))
    largest = draw(st.sampled_from([3, 10**12, 2**80]))
    rows = [distribution(draw, n, largest) for _ in range(m)]
    transitions: Any = RationalMatrix(
        np.cumsum([0, *(sum(map(bool, tops)) for tops, _ in rows)]),
        np.array([j for tops, _ in rows for j, top in enumerate(tops) if top]),
        np.array([top for tops, _ in rows for top in tops if top], dtype=object),
        np.array([bottom for _, bottom in rows], dtype=object),
        n,
    )
    if draw(st.booleans()):
        transitions = transitions.to_float()
    tops, bottom = distribution(draw, n, largest)
    initial: Any = RationalVector(np.array(tops, dtype=object), bottom)
    if draw(st.booleans()):
        initial = initial.to_float()
    thirds = RationalVector(np.arange(m), 3)
    structures = [
        RewardStructure(state=np.arange(n) / 7),
        RewardStructure(state=np.arange(n) / 7, action=np.arange(m) / 3),
        RewardStructure.from_fractions([Fraction(i, 2**70) for i in range(n)], [Fraction(i, 6) for i in range(m)]),
        RewardStructure(state=np.arange(n) / 7, action=thirds.to_float(), exact_action=thirds),
    ]
    rewards = {
        name: draw(st.sampled_from(structures)) for name in draw(st.lists(NAMES.filter(bool), max_size=2, unique=True))
    }
    return DecisionProcess(
        states=tuple(states),
        actions=tuple(map(tuple, actions)),
        transitions=transitions,
        initial=initial,
        labels={"a": np.arange(n) % 2 == 0} if "a" not in states else {},
        rewards=rewards,
        variables={"x": np.arange(n) - 1} if draw(st.booleans()) else {},
        constants={"p": draw(st.fractions())},
    )


def same_bits(first: DecisionProcess, second: DecisionProcess) -> None:
    assert (first.states, first.actions) == (second.states, second.actions)
    for part in NUMBERS:
        assert getattr(first.transitions, part).tobytes() == getattr(second.transitions, part).tobytes()
    assert (first.rationals is None) == (second.rationals is None)
    if first.rationals is not None:
        for part in ("numerators", "denominators"):
            assert getattr(first.rationals, part).tolist() == getattr(second.rationals, part).tolist()
    assert first.initial.tobytes() == second.initial.tobytes()
    same_vector(first.initial_rationals, second.initial_rationals)
    assert list(first.rewards) == list(second.rewards)
    for one, other in zip(first.rewards.values(), second.rewards.values(), strict=True):
        assert one.state.tobytes() == other.state.tobytes()
        assert (one.action is None) == (other.action is None)
        assert one.action is None or one.action.tobytes() == other.action.tobytes()
        same_vector(one.exact_state, other.exact_state)
        same_vector(one.exact_action, other.exact_action)
    for words in ("labels", "variables"):
        found = [{name: held.tolist() for name, held in getattr(each, words).items()} for each in (first, second)]
        assert found[0] == found[1]
    assert first.constants == second.constants


@settings(deadline=None, max_examples=40)
@given(processes())
def test_the_very_process_comes_back(process: DecisionProcess) -> None:
    data = packed(umb_members(process))
    assert data == packed(umb_members(process))
    same_bits(read_bytes(data), process)


def test_the_arrays_are_those_of_the_specification(tmp_path: Path) -> None:
    process = router(actions=(("weak", ""), ("a b",)), initial=RationalVector(np.array([1, 2]), 3))
    members = umb_members(process)
    system = json.loads(members["index.json"])["transition-system"]
    sizes = {"#players": 1, "#states": 3, "#choices": 4, "#choice-actions": 3, "#branches": 7, "#initial-states": 1}
    assert {key: system[key] for key in sizes} == sizes
    assert members["state-to-choices.bin"] == struct.pack("<4Q", 0, 2, 3, 4)
    assert members["choice-to-branches.bin"] == struct.pack("<5Q", 0, 2, 4, 5, 7)
    assert members["branch-to-target.bin"] == struct.pack("<7Q", 0, 1, 0, 1, 1, 0, 1)
    assert members["branch-to-probability.bin"] == struct.pack("<14q", 1, 2, 1, 2, 1, 4, 3, 4, 1, 1, 1, 3, 2, 3)
    assert members["state-is-initial.bin"] == struct.pack("<Q", 0b100)
    assert members["actions/choices/values.bin"] == struct.pack("<4I", 0, 1, 2, 1)
    assert members["actions/choices/string-mapping.bin"] == struct.pack("<4Q", 0, 4, 4, 11)
    assert members["actions/choices/strings.bin"] == b"weaka_x20_b"
    assert members["annotations/rewards/reward-0/choices/values.bin"] == struct.pack("<8q", 1, 1, 2, 1, 0, 1, 0, 1)
    write_umb(process, tmp_path / "model")
    same_bits(read_model(tmp_path / "model").described, process)  # type: ignore[arg-type]


# ---------------------------------------------------------------- archives of others


def test_what_storm_wrote() -> None:
    """Storm 2.0.0, of prism_models/expert_routing.prism in doubles."""
    process = read_umb(DATA / "mdp_by_storm.umb")
    assert isinstance(process, DecisionProcess)
    assert process.states == ("s=0", "s=1", "s=2")
    assert process.actions == (("weak", "strong"), ("answer",), ("answer",))
    assert process.transitions.toarray().tolist() == [[0.4, 0.5, 0.1], [0, 0.9, 0.1], [0, 1, 0], [0, 0, 1]]
    assert process.rewards["cost"].action is not None
    assert process.rewards["cost"].action.tolist() == [1, 4, 0, 0]
    assert {name: mask.tolist() for name, mask in process.labels.items()} == {
        "answered": [False, True, True],
        "right": [False, True, False],
        "wrong": [False, False, True],
    }


def foreign(**replaced: Any) -> dict[str, bytes]:
    """The archive of another tool: two choices in state 0, one in state 1, and no names of actions."""
    system = {
        "time": "discrete",
        "#players": 1,
        "#states": 2,
        "#initial-states": 1,
        "#choices": 3,
        "#choice-actions": 2,
        "#branches": 4,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": {"type": "double"},
    }
    rewards = {"applies-to": ["branches"], "type": {"type": "double"}, "alias": "cost"}
    index = {"format-version": 1, "format-revision": 0, "annotations": {"rewards": {"r": rewards}}}
    changed = {key: value for key, value in replaced.items() if key.startswith("#")}
    members = {
        "index.json": json.dumps(index | {"transition-system": system | changed}).encode(),
        "state-to-choices.bin": struct.pack("<3Q", 0, 2, 3),
        "choice-to-branches.bin": struct.pack("<4Q", 0, 2, 3, 4),
        "branch-to-target.bin": struct.pack("<4Q", 0, 1, 1, 1),
        "branch-to-probability.bin": struct.pack("<4d", 0.25, 0.75, 1, 1),
        "state-is-initial.bin": struct.pack("<Q", 1),
        "actions/choices/values.bin": struct.pack("<3I", 1, 0, 0),
        "annotations/rewards/r/branches/values.bin": struct.pack("<4d", 2, 2, 3, 0),
    }
    members |= replaced.get("members", {})
    return {name: data for name, data in members.items() if data is not None}


def test_actions_without_texts_and_rewards_of_branches() -> None:
    process = read_bytes(packed(foreign()))
    assert process.actions == (("action1", "action0"), ("action0",))
    assert process.rewards["cost"].action.tolist() == [2, 3, 0]
    nameless = foreign(**{"#choice-actions": 0}, members={"actions/choices/values.bin": None})
    assert read_bytes(packed(nameless)).actions == (("", ""), ("",))


TEXTS = {
    "actions/choices/string-mapping.bin": struct.pack("<3Q", 0, 2, 3),
    "actions/choices/strings.bin": "äb".encode(),
}


def test_actions_with_texts() -> None:
    assert read_bytes(packed(foreign(members=TEXTS))).actions == (("b", "ä"), ("ä",))


@pytest.mark.parametrize(
    ("changed", "members", "message"),
    [
        ({"#choices": 1}, {}, "#choices is 1: each of the 2 states"),
        ({"#branches": 2}, {}, "#branches is 2: each of the 3 choices"),
        ({"#choice-actions": 1}, {}, "choice 0 has action 1, but there are only 1"),
        ({"#choice-actions": -1}, {}, "#choice-actions is -1"),
        ({"#choice-actions": 2**60}, TEXTS, "string-mapping.bin: has 24 bytes"),
        ({}, {"actions/choices/values.bin": b"12"}, "values.bin: has 2 bytes where the index asks for 12"),
        ({}, TEXTS | {"actions/choices/strings.bin": None}, "strings.bin: is absent"),
        ({}, TEXTS | {"actions/choices/strings.bin": b"\xff\xffb"}, "string 0 is not UTF-8"),
        ({}, {"state-to-choices.bin": None}, "state-to-choices.bin: is absent, but 3 entries"),
        ({}, {"state-to-choices.bin": struct.pack("<3Q", 0, 3, 3)}, "state 1 leads nowhere"),
        ({}, {"choice-to-branches.bin": struct.pack("<4Q", 0, 3, 3, 4)}, "choice 1 leads nowhere"),
        ({}, {"branch-to-probability.bin": struct.pack("<4d", 0.25, 0.7, 1, 1)}, "'state0', action 'action1': its row"),
        ({}, {"annotations/rewards/r/branches/values.bin": struct.pack("<4d", 2, 1, 3, 0)}, "branches of choice 0"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    changed: dict[str, int], members: dict[str, bytes], message: str
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read_bytes(packed(foreign(**changed, members=members)))
    assert all(problem.location.path == "m.umb" for problem in caught.value.problems)


def test_a_short_archive_cannot_ask_for_the_memory_of_many_rewards() -> None:
    index = json.loads(foreign()["index.json"])
    reward = {"applies-to": ["branches"], "type": {"type": "rational"}}
    index["annotations"] = {"rewards": {f"r{i}": reward for i in range(3_000)}}
    index["transition-system"] |= {"#branches": 10**5}
    with pytest.raises(ModelError, match="need more memory"):
        read_bytes(packed(foreign(members={"index.json": json.dumps(index).encode()})))


@pytest.mark.parametrize(
    ("edited", "message"),
    [
        (
            {
                "actions/choices/strings.bin": b"weakmaxstop",
                "actions/choices/string-mapping.bin": struct.pack("<5Q", 0, 4, 7, 11, 11),
            },
            "'max' is not an identifier",
        ),
        ({"state-to-choices.bin": struct.pack("<4Q", 0, 1, 2, 4)}, "the added first state has several choices"),
    ],
)
def test_edited_archives_of_ours_are_refused(edited: dict[str, bytes], message: str) -> None:
    process = router(actions=(("weak", "max"), ("stop",)), initial=RationalVector(np.array([1, 2]), 3))
    with pytest.raises(ModelError, match=message):
        read_bytes(packed(umb_members(process) | edited))


# ---------------------------------------------------------------- Storm


@pytest.mark.storm
def test_storm_reads_what_is_written(tmp_path: Path) -> None:
    pytest.importorskip("stormpy")
    exact = router(actions=(("weak", "ask again"), ("",)))
    floats = replace(router(), transitions=exact.transitions, rationals=None)
    formulas = ['R{"cost"}max=? [ F "success" ]', 'R{"cost"}min=? [ F "success" ]', 'Pmax=? [ F<=1 "success" ]']
    requests: list[dict[str, Any]] = []
    for name, process in {"exact": exact, "floats": floats}.items():
        write_umb(process, tmp_path / f"{name}.umb")
        requests.append({"path": str(tmp_path / f"{name}.umb"), "formulas": formulas})
    requests[1]["export"] = str(tmp_path / "again.umb")
    found, _ = ask_storm(requests)
    assert found["rows"] == [[[0, "1/2"], [1, "1/2"]], [[0, "1/4"], [1, "3/4"]], [[1, "1"]]]
    assert found["starts"] == [0, 2]
    assert found["actions"] == [["weak"], ["ask_x20_again"], []]
    # The weak expert costs 1 and is right every other time, the strong one 2 and three times of four.
    assert [Fraction(value) for value in found["values"]] == [Fraction(8, 3), 2, Fraction(3, 4)]
    again = read_umb(tmp_path / "again.umb")
    assert isinstance(again, DecisionProcess)
    assert again.actions == (("weak", "strong"), ("stop",))
    assert again.transitions.data.tobytes() == floats.transitions.data.tobytes()
    assert again.rewards["cost"].action is not None
    assert again.rewards["cost"].action.tolist() == [1, 2, 0]
