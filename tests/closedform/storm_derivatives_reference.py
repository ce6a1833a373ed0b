"""Storm's rational functions of a parametric chain, differentiated, in a process of its own: JSON in and JSON out.

A request is ``{"program": text, "questions": [formula, ...], "point": {parameter: fraction}}``; the answer holds for
each question the value at the initial state and its derivative by each parameter, as fractions.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import stormpy


def main() -> None:
    request = json.load(sys.stdin)
    with tempfile.NamedTemporaryFile("w", suffix=".prism", encoding="utf-8", delete=False) as file:
        file.write(request["program"])
    try:
        program = stormpy.parse_prism_program(file.name)
    finally:
        os.unlink(file.name)  # noqa: PTH108
    answers = []
    for formula in request["questions"]:
        (property_,) = stormpy.parse_properties(formula, program)
        model = stormpy.build_model[stormpy.RationalFunction](program, [property_])
        value = stormpy.model_checking(model, property_).get_value(model.initial_states[0])
        derivatives = {parameter.name: value.derive(parameter) for parameter in value.gather_variables()}
        answers.append(
            {
                "value": evaluated(value, request["point"]),
                "derivatives": {name: evaluated(slope, request["point"]) for name, slope in derivatives.items()},
            }
        )
    json.dump(answers, sys.stdout)


def evaluated(function, point: dict[str, str]) -> str:
    parameters = function.gather_variables()
    at = {parameter: stormpy.RationalFunctionCoefficient(point[parameter.name]) for parameter in parameters}
    return str(function.evaluate(at))


main()
