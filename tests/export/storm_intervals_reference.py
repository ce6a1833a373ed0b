"""Storm asked about an interval program, in a process of its own: JSON in on standard input, JSON out.

A request is ``{"program": text, "questions": [[formula, "MINIMIZE" or "MAXIMIZE"], ...]}``; the answer holds the bounds
of each transition by the values of ``s``, and the value of each question at the initial state.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import stormpy
from stormpy import environments


def main() -> None:
    request = json.load(sys.stdin)
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
    model = stormpy.build_model[stormpy.Interval](program, options=options)
    names = [json.loads(str(model.state_valuations.to_json(i)))["s"] for i in range(model.nr_states)]
    matrix = model.transition_matrix
    bounds = [
        [names[i], names[entry.column], entry.value.lower(), entry.value.upper()]
        for i in range(model.nr_states)
        for entry in matrix.get_row(i)
    ]
    environment = environments.Environment()
    solver = environment.solver().min_max()
    solver.method = environments.MinMaxMethod.VALUE_ITERATION
    solver.precision = stormpy.Rational("1e-12")
    values = []
    for formula, mode in request["questions"]:
        (property_,) = stormpy.parse_properties(formula, program)
        result = stormpy.model_checking(
            model,
            property_,
            environment=environment,
            only_initial_states=False,
            uncertainty_resolution_mode=getattr(stormpy.UncertaintyResolutionMode, mode),
        )
        values.append(float(result.get_value(model.initial_states[0])))
    json.dump({"bounds": bounds, "values": values}, sys.stdout)


main()
