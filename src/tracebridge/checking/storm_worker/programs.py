"""Exploring PRISM programs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import stormpy

from .number_codec import encode, encode_rewards
from .protocol import BuildProgram, Explored, WorkerError, pack_mask
from .storm_errors import storm_message

if TYPE_CHECKING:
    from numpy.typing import NDArray


def explore(request: BuildProgram) -> Explored:
    """The reachable chain of a program.

    Raises:
        WorkerError: the text is no sound program of type dtmc; of the kind ``sums`` if only its sums are wrong.
    """
    try:
        program = _program(request.text, request.constants)
        options = stormpy.BuilderOptions(build_full=True)
        options.set_add_overlapping_guards_label(True)
        options.set_exploration_checks(request.check_sums)
        options.set_add_out_of_bounds_state(not request.check_sums)  # the checks refuse such updates themselves
        model = stormpy.build_model[stormpy.Rational if request.exact else float](program, options=options)
    except (RuntimeError, stormpy.exceptions.StormError) as error:
        message = storm_message(error)
        raise WorkerError("sums" if "do not sum to one" in message else "model", message) from error
    states = _state_names(program, model)
    labeling = model.labeling
    marked = {name: _mask(labeling.get_states(name), model.nr_states) for name in labeling.get_labels()}
    deadlocks, overlapping = marked.pop("deadlock"), marked.pop("overlap_guards")
    initial = marked.pop("init")
    rows = [
        [(entry.column, entry.value) for entry in model.transition_matrix.get_row(i)] for i in range(model.nr_states)
    ]
    return Explored(
        states=states,
        indptr=np.cumsum([0, *(len(row) for row in rows)]).astype("<i8").tobytes(),
        indices=np.array([column for row in rows for column, _ in row], dtype="<i8").tobytes(),
        values=encode([value for row in rows for _, value in row], exact=request.exact),
        initial=pack_mask(initial),
        labels={name: pack_mask(marked[name]) for name in sorted(marked)},
        rewards={
            name: encode_rewards(reward, model.nr_states, exact=request.exact)
            for name, reward in sorted(model.reward_models.items())
        },
        deadlocks=[states[i] for i in np.flatnonzero(deadlocks)],
        overlapping=[states[i] for i in np.flatnonzero(overlapping)],
    )


def _program(text: str, constants: dict[str, str]) -> Any:
    """The program with all its constants defined."""
    with tempfile.TemporaryDirectory() as folder:  # Storm reads files only
        path = Path(folder, "model.prism")
        path.write_text(text, encoding="utf-8")
        program = stormpy.parse_prism_program(str(path), simplify=False)  # drops variables that never change
    if program.model_type is not None and "DTMC" not in str(program.model_type):
        kind = str(program.model_type).rpartition(".")[2].lower()
        raise WorkerError("model", f"the model is of type {kind}; only dtmc models can be read")
    undefined = {constant.name for constant in program.get_undefined_constants()}
    for name in constants:
        if name not in undefined:
            known = ", ".join(sorted(undefined)) or "none"
            raise WorkerError("model", f"the model has no undefined constant {name!r} (undefined: {known})")
    if missing := sorted(undefined - constants.keys()):
        raise WorkerError("model", f"constants without a value: {', '.join(missing)}")
    if constants:
        definitions = ",".join(f"{name}={value}" for name, value in sorted(constants.items()))
        program, _ = stormpy.instantiate_constants(program, definitions)
    return program


def _state_names(program: Any, model: Any) -> list[str]:
    """``x=1,y=0``: the variables in the order of the program."""
    variables = [*program.global_integer_variables, *program.global_boolean_variables]
    for module in program.modules:
        variables += [*module.integer_variables, *module.boolean_variables]
    order = [variable.name for variable in variables]
    names = []
    for i in range(model.nr_states):
        valuation = json.loads(str(model.state_valuations.to_json(i))) or {}
        parts = [f"{name}={json.dumps(valuation[name])}" for name in order if name in valuation]
        name = ",".join(parts) or f"state{i}"
        if valuation.get("_OutOfBoundsBit"):
            raise WorkerError("model", f"an update leads to a value out of bounds for a variable (at {name})")
        names.append(name)
    return names


def _mask(states: Any, n: int) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=np.bool_)
    mask[list(states)] = True
    return mask
