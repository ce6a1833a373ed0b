"""Storm asked about UMB archives, in a process of its own: JSON in on standard input, JSON out on standard output.

A request is a list of ``{"path": text, "formulas": [text, ...]}``; an answer holds what Storm made of the archive, and
the value of each formula in the initial state; numbers are texts. ``{"path": ..., "export": text}`` has Storm write the
archive that it read to another place.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import stormpy
import stormpy.io
from stormpy import developer, environments


def answer(request: dict[str, Any]) -> dict[str, Any]:
    model = stormpy.build_model_from_umb(request["path"])
    if "export" in request:
        stormpy.io.export_to_umb(model, request["export"])
    (start,) = model.initial_states
    matrix = model.transition_matrix
    values = []
    for formula in request.get("formulas", []):
        (property_,) = stormpy.parse_properties(formula)
        values.append(str(stormpy.model_checking(model, property_, environment=environment(model)).get_value(start)))
    return {
        "start": start,
        "rows": [[[entry.column, str(entry.value)] for entry in matrix.get_row(i)] for i in range(matrix.nr_rows)],
        "starts": [matrix.get_row_group_start(i) for i in range(model.nr_states)]
        if matrix.nr_rows > model.nr_states
        else None,
        "actions": [sorted(model.choice_labeling.get_labels_of_choice(i)) for i in range(matrix.nr_rows)]
        if model.has_choice_labeling()
        else None,
        "labels": {label: list(model.labeling.get_states(label)) for label in sorted(model.labeling.get_labels())},
        "valuations": [json.loads(str(model.state_valuations.to_json(i))) for i in range(model.nr_states)]
        if model.has_state_valuations()
        else None,
        "values": values,
    }


def environment(model: Any) -> Any:
    if model.is_exact:
        return environments.exact()
    direct = environments.Environment()
    direct.solver().set_linear_equation_solver_type(environments.EquationSolverType.ELIMINATION)
    return direct


def main() -> None:
    developer.set_log_level(developer.LogLevel.OFF)
    answers = json.dumps([answer(request) for request in json.load(sys.stdin)])
    sys.stdout.write(answers)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
