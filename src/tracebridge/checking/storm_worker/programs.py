"""Exploring PRISM programs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import stormpy

from .number_codec import encode, encode_rewards
from .protocol import BuildProgram, Explored, VariableValues, WorkerError, pack_mask
from .storm_errors import storm_message

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OUT_OF_BOUNDS = "_OutOfBoundsBit"  # Storm's variable, true in states that an update out of bounds leads to


def explore(request: BuildProgram) -> Explored:
    """The reachable chain, or decision process, of a program.

    Raises:
        WorkerError: the text is no sound program of type dtmc or mdp; of the kind ``sums`` if only its sums are wrong.
    """
    try:
        program = _program(request.text, request.constants)
        options = stormpy.BuilderOptions(build_full=True)
        has_choices = "MDP" in str(program.model_type)
        if has_choices:
            options.set_build_choice_labels(True)
        else:
            options.set_add_overlapping_guards_label(True)
        options.set_exploration_checks(request.check_sums)
        options.set_add_out_of_bounds_state(not request.check_sums)  # the checks refuse such updates themselves
        model = stormpy.build_model[stormpy.Rational if request.exact else float](program, options=options)
    except (RuntimeError, stormpy.exceptions.StormError) as error:
        message = storm_message(error)
        raise WorkerError("sums" if "do not sum to one" in message else "model", message) from error
    variables = _variables(program, model)
    states = _state_names(variables, model.nr_states)
    labeling = model.labeling
    marked = {name: _mask(labeling.get_states(name), model.nr_states) for name in labeling.get_labels()}
    nowhere = np.zeros(model.nr_states, dtype=np.bool_)
    deadlocks, overlapping = marked.pop("deadlock"), marked.pop("overlap_guards", nowhere)
    initial = marked.pop("init")
    matrix = model.transition_matrix
    columns, values, value_of = _entries(matrix)
    return Explored(
        states=states,
        indptr=np.cumsum([0, *(len(matrix.get_row(i)) for i in range(matrix.nr_rows))]).astype("<i8").tobytes(),
        indices=np.array(columns, dtype="<i8").tobytes(),
        values=encode(values, exact=request.exact),
        value_of=np.array(value_of, dtype="<i8").tobytes(),
        initial=pack_mask(initial),
        labels={name: pack_mask(marked[name]) for name in sorted(marked)},
        rewards={
            name: encode_rewards(model.reward_models[name], model.nr_states, exact=request.exact)
            for name in (structure.name for structure in program.reward_models)  # in the order of the program
        },
        variables={name: _packed(held) for name, held in variables.items()},
        deadlocks=[states[i] for i in np.flatnonzero(deadlocks)],
        overlapping=[states[i] for i in np.flatnonzero(overlapping)],
        groups=_groups(matrix, model.nr_states) if has_choices else None,
        actions=_actions(model, matrix.nr_rows) if has_choices else [],
    )


def _groups(matrix: Any, n: int) -> bytes:
    """The first row of each state, and the number of rows."""
    starts = [matrix.get_row_group_start(i) for i in range(n)]
    return np.array([*starts, matrix.nr_rows], dtype="<i8").tobytes()


def _actions(model: Any, n_rows: int) -> list[str]:
    """The action of each row; Storm writes that of commands which have none as the empty name, or not at all."""
    labeling = model.choice_labeling
    return [next(iter(sorted(labeling.get_labels_of_choice(i))), "") for i in range(n_rows)]


def _entries(matrix: Any) -> tuple[list[int], list[Any], list[int]]:
    """Row by row the column of each entry, the different values, and which of them each entry has."""
    numbering: dict[Any, int] = {}
    columns, value_of = [], []
    for entry in matrix:
        columns.append(entry.column)
        value_of.append(numbering.setdefault(entry.value, len(numbering)))
    return columns, list(numbering), value_of


def _program(text: str, constants: dict[str, str]) -> Any:
    """The program with all its constants defined."""
    with tempfile.TemporaryDirectory() as folder:  # Storm reads files only
        path = Path(folder, "model.prism")
        path.write_text(text, encoding="utf-8")
        program = stormpy.parse_prism_program(str(path), simplify=False)  # drops variables that never change
    kind = str(program.model_type).rpartition(".")[2].lower()
    if program.model_type is not None and kind not in {"dtmc", "mdp"}:
        raise WorkerError("model", f"the model is of type {kind}; only dtmc and mdp models can be read")
    undefined = {constant.name for constant in program.get_undefined_constants()}
    for name in constants:
        if name not in undefined:
            known = ", ".join(sorted(undefined)) or "none"
            raise WorkerError("model", f"the model has no undefined constant {name!r} (undefined: {known})")
    if missing := sorted(undefined - constants.keys()):
        given = ",".join(f"{name}=..." for name in missing)
        raise WorkerError("model", f"constants without a value: {', '.join(missing)} (give them: --const {given})")
    if constants:
        definitions = ",".join(f"{name}={value}" for name, value in sorted(constants.items()))
        program, _ = stormpy.instantiate_constants(program, definitions)
    return program


def _variables(program: Any, model: Any) -> dict[str, NDArray[Any]]:
    """The variables, global ones first, then module by module; those of Storm's own left out. Shape (n,) each."""
    valuations = model.state_valuations
    held = {variable.name: variable for variable in valuations.get_all_variables()}
    declared = [*program.global_integer_variables, *program.global_boolean_variables]
    for module in program.modules:
        declared += [*module.integer_variables, *module.boolean_variables]
    names = [variable.name for variable in declared if variable.name in held]
    values = {
        name: _mask(valuations.get_boolean_values(held[name]), model.nr_states)
        if held[name].has_boolean_type()
        else np.array(valuations.get_int64_values(held[name]), dtype=np.int64)
        for name in names
    }
    if _OUT_OF_BOUNDS in held:
        outside = list(valuations.get_boolean_values(held[_OUT_OF_BOUNDS]))
        if outside:
            here = ",".join(f"{name}={_text(values[name][outside[0]])}" for name in names)
            raise WorkerError("model", f"an update leads to a value out of bounds for a variable (at {here})")
    return values


def _packed(values: NDArray[Any]) -> VariableValues:
    if values.dtype == np.bool_:
        return VariableValues(boolean=True, values=pack_mask(values))
    return VariableValues(boolean=False, values=values.astype("<i8").tobytes())


def _state_names(variables: dict[str, NDArray[Any]], n: int) -> list[str]:
    """``x=1,y=true``; without any variable ``state0``."""
    if not variables:
        return [f"state{i}" for i in range(n)]
    columns = [[f"{name}={_text(value)}" for value in values.tolist()] for name, values in variables.items()]
    return list(map(",".join, zip(*columns, strict=True)))


def _text(value: Any) -> str:
    return str(value).lower()


def _mask(states: Any, n: int) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=np.bool_)
    mask[list(states)] = True
    return mask
