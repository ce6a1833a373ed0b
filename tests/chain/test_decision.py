"""DecisionProcess: its invariants, the chains that schedulers make of it, and its document."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from tests.closedform.decision.random_processes import random_process

from tracebridge.chain import RationalMatrix, RationalVector, RewardStructure
from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.decision_document import read_decision, write_decision
from tracebridge.errors import ModelError


def router(**changed: object) -> DecisionProcess:
    """Ask a weak or a strong expert, again until one of them is right; rational."""
    parts: dict[str, object] = {
        "states": ("ask", "done"),
        "actions": (("weak", "strong"), ("stop",)),
        "transitions": RationalMatrix.from_rows(
            [{0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(1, 4), 1: Fraction(3, 4)}, {1: Fraction(1)}], 2
        ),
        "initial": RationalVector(np.array([1, 0]), 1),
        "labels": {"success": np.array([False, True])},
        "rewards": {"cost": RewardStructure.from_fractions([0, 0], [1, 2, 0])},
    }
    return DecisionProcess(**(parts | changed))  # type: ignore[arg-type]


def test_choices_are_the_rows_state_by_state() -> None:
    process = router()
    assert process.choice_starts.tolist() == [0, 2, 3]
    assert process.state_of_choice.tolist() == [0, 0, 1]
    assert (process.n_states, process.n_choices) == (2, 3)
    assert process.label("success").tolist() == [False, True]
    assert process.edges.toarray().tolist() == [[1, 1], [0, 1]]
    assert process.reachable_states().all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"actions": (("weak", "strong"), ())}, "3 x 2|2 x 2"),
        ({"actions": (("weak", "strong", "stop"), ())}, "state 'done' has no choice"),
        ({"actions": (("weak", "strong"),)}, "2 states need 2 tuples of actions"),
        ({"transitions": np.array([[0.5, 0.4], [0.25, 0.75], [0, 1]])}, "'ask', action 'weak': its row sums to 0.9"),
        ({"transitions": np.array([[0.5, 0.5], [1.5, -0.5], [0, 1]])}, "'strong': the probability .* -0.5"),
        ({"transitions": np.array([[0.5, 0.5], [np.nan, 1], [0, 1]])}, "'strong': the probability .* nan"),
        ({"rewards": {"cost": RewardStructure(state=np.zeros(2), action=np.zeros(2))}}, r"shape \(2,\) for 3 choices"),
        ({"rewards": {"cost": RewardStructure(state=np.zeros(2), action=np.array([0, -1.0, 0]))}}, "'strong': .* -1.0"),
        ({"states": ("ask", "ask")}, "two states are called 'ask'"),
        ({"initial": np.array([0.5, 0.4])}, "initial distribution sums to 0.9"),
    ],
)
def test_what_breaks_an_invariant_is_refused_with_its_place(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        router(**changed)


def test_arrays_cannot_be_written_to() -> None:
    process = router()
    with pytest.raises(ValueError, match="read-only"):
        process.transitions.data[0] = 1


def test_schedulers_by_row_by_name_and_by_weight() -> None:
    process = router()
    by_row = process.induced(np.array([1, 2]))
    by_name = process.induced({"ask": "strong"})
    assert (
        by_row.exact_transitions().row(0)
        == by_name.exact_transitions().row(0)
        == {
            0: Fraction(1, 4),
            1: Fraction(3, 4),
        }
    )
    mixed = process.induced({"ask": {"weak": Fraction(1, 3), "strong": Fraction(2, 3)}})
    assert mixed.exact_transitions().row(0) == {0: Fraction(1, 3), 1: Fraction(2, 3)}
    assert mixed.rewards["cost"].fractions(action=True) == [Fraction(5, 3), 0]
    assert mixed.is_exact
    in_doubles = process.induced({"ask": {"weak": 0.25, 1: 0.75}})  # type: ignore[dict-item]
    assert in_doubles.rationals is None
    assert in_doubles.transitions.toarray().tolist() == [[0.3125, 0.6875], [0, 1]]


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        ({}, "nothing is decided, and it has 2 choices"),
        ({"ask": "guess"}, "no choice is called 'guess'.*'weak', 'strong'"),
        ({"ask": 2}, "counted from 0 to 1"),
        ({"ask": {"weak": Fraction(1, 2)}}, "sum to 1/2"),
        ({"ask": {"weak": 1.5, "strong": -0.5}}, "weight of 'strong' is -0.5"),
        ({"nowhere": "weak"}, "no state 'nowhere'"),
        (np.array([2, 2]), "rows 0 to 1, and 2 is none"),
        (np.array([0]), "2 states is as many whole numbers"),
    ],
)
def test_a_scheduler_that_does_not_fit_is_refused(scheduler: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        router().induced(scheduler)  # type: ignore[arg-type]


def test_choices_that_share_a_name_are_told_apart_by_position() -> None:
    process = router(actions=(("go", "go"), ("",)))
    with pytest.raises(ModelError, match="several choices are called 'go'"):
        process.induced({"ask": "go"})
    assert process.induced({"ask": 1}).exact_transitions().row(0)[1] == Fraction(3, 4)


def same(first: DecisionProcess, second: DecisionProcess) -> bool:
    """Equal in every name, number and order."""
    return (
        (first.states, first.actions) == (second.states, second.actions)
        and first.transitions.toarray().tolist() == second.transitions.toarray().tolist()
        and [first.exact_transitions().row(k) for k in range(first.n_choices)]
        == [second.exact_transitions().row(k) for k in range(second.n_choices)]
        and (first.rationals is None) == (second.rationals is None)
        and first.exact_initial() == second.exact_initial()
        and {name: mask.tolist() for name, mask in first.labels.items()}
        == {name: mask.tolist() for name, mask in second.labels.items()}
        and list(first.rewards) == list(second.rewards)
        and all(
            [None if x is None else x.tolist() for x in (held.state, held.action)]
            == [None if x is None else x.tolist() for x in (second.rewards[name].state, second.rewards[name].action)]
            for name, held in first.rewards.items()
        )
        and {name: values.tolist() for name, values in first.variables.items()}
        == {name: values.tolist() for name, values in second.variables.items()}
        and first.constants == second.constants
    )


@pytest.mark.parametrize("seed", range(6))
def test_documents_are_read_back_as_they_were(seed: int) -> None:
    process = random_process(seed, 6)
    text = json.dumps(process.to_dict())
    assert same(DecisionProcess.from_dict(json.loads(text)), process)
    doubles = DecisionProcess(
        states=process.states,
        actions=process.actions,
        transitions=process.transitions,
        initial=process.initial,
        labels=process.labels,
        rewards={name: RewardStructure(state=held.state, action=held.action) for name, held in process.rewards.items()},
        variables={"x": np.arange(process.n_states)},
        constants={"p": Fraction(1, 3), "fair": True},
    )
    assert same(DecisionProcess.from_dict(json.loads(json.dumps(doubles.to_dict()))), doubles)


def test_files_are_read_back(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "router.json"
    write_decision(path, router())
    assert same(read_decision(path), router())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["choices"].pop("done"), "state 'done' has no choice"),
        (lambda d: d["choices"].update(elsewhere=[]), "there is no state 'elsewhere'"),
        (lambda d: d["choices"]["ask"][0]["transitions"].update(nowhere="1/2"), "choices.ask.*no state 'nowhere'"),
        (
            lambda d: d["choices"]["ask"][0].update(transitions={"ask": 0.5, "done": "1/2"}),
            "exact and some are doubles",
        ),
        (lambda d: d["choices"]["ask"][0].update(transitions={"ask": "1/2"}), "action 'weak': its row sums to 1/2"),
        (lambda d: d["rewards"]["cost"]["action"].update(ask=["1/1"]), "1 rewards for the 2 choices of 'ask'"),
        (lambda d: d.update(schema_version=9), "version 9"),
        (lambda d: d.update(colour="red"), "colour"),
    ],
)
def test_a_wrong_document_is_refused_with_the_field(change, message: str) -> None:  # type: ignore[no-untyped-def]
    document = router().to_dict()
    change(document)
    with pytest.raises(ModelError, match=message):
        DecisionProcess.from_dict(document, "router.json")


def test_records_and_tables() -> None:
    process = router(states=("<ask>", "done"))
    assert process.to_records()[0] == {
        "source": "<ask>",
        "action": "weak",
        "choice": 0,
        "target": "<ask>",
        "probability": 0.5,
        "exact": "1/2",
    }
    assert "&lt;ask&gt;" in process._repr_html_()
    assert repr(process) == "<DecisionProcess of 2 states, 3 choices, rational>"
