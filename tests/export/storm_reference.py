"""Storm asked directly, in a process of its own: JSON in on standard input, JSON out on standard output.

The tests of exported files use this and not the project's own Storm engine, so that both are tested. A request is a
list of ``{"program": text, "exact": bool, "formulas": [text, ...]}``. An answer holds, for the chain that Storm built,
its states (by the values of their variables), rows, labels and rewards, the initial state, and the value of each
formula in every state; numbers are texts.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

import stormpy
from stormpy import developer


def answer(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".prism", encoding="utf-8", delete=False) as file:
        file.write(request["program"])
    try:
        program = stormpy.parse_prism_program(file.name)
    finally:
        os.unlink(file.name)  # noqa: PTH108
    options = stormpy.BuilderOptions()
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    options.set_build_state_valuations()
    options.set_exploration_checks(request["exact"])
    kind = stormpy.Rational if request["exact"] else float
    model = stormpy.build_model[kind](program, options=options)
    (start,) = model.initial_states
    matrix = model.transition_matrix
    values = []
    for formula in request["formulas"]:
        values.append(values_of(model, formula, environment(request["exact"]), start))
    return {
        "states": [json.loads(str(model.state_valuations.to_json(i))) for i in range(model.nr_states)],
        "rows": [[[entry.column, str(entry.value)] for entry in matrix.get_row(i)] for i in range(model.nr_states)],
        "labels": {label: list(model.labeling.get_states(label)) for label in sorted(model.labeling.get_labels())},
        "rewards": {name: rewards(model, reward) for name, reward in sorted(model.reward_models.items())},
        "start": start,
        "values": values,
    }


def values_of(model: Any, formula: str, direct: Any, start: int) -> list[str | bool | None]:
    """The values in all states, or in the initial state alone where Storm computes no others."""
    (property_,) = stormpy.parse_properties(formula)
    try:
        result = stormpy.model_checking(model, property_, environment=direct)
    except RuntimeError as error:
        if "initial states" not in str(error):
            raise
        result = None
    if result is None:  # quantiles, and bounds on rewards
        result = stormpy.model_checking(model, property_, environment=direct, only_initial_states=True)
        return [str(result.get_value(i)) if i == start else None for i in range(model.nr_states)]
    if result.is_qualitative():
        return [bool(result[i]) for i in range(model.nr_states)]
    return [str(value) for value in result.get_value_vector()]


def rewards(model: Any, reward: Any) -> dict[str, list[str] | None]:
    return {
        "state": [str(value) for value in reward.state_rewards] if reward.has_state_rewards else None,
        "action": [str(value) for value in reward.state_action_rewards] if reward.has_state_action_rewards else None,
    }


def environment(exact: bool) -> Any:
    from stormpy import environments

    if exact:
        return environments.exact()
    direct = environments.Environment()
    direct.solver().set_linear_equation_solver_type(environments.EquationSolverType.ELIMINATION)
    return direct


if __name__ == "__main__":
    developer.set_log_level(developer.LogLevel.OFF)
    answers = []
    for request in json.load(sys.stdin):
        try:
            answers.append(answer(request))
        except RuntimeError as error:
            answers.append({"error": str(error)})
    json.dump(answers, sys.stdout)
