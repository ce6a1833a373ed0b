"""The parameters of a model in a JSON document, and whether they follow from the runs in the same document.

Each array of `ExpandedModel` is one list, the last axis fastest. Doubles are written as they print shortest, so that
they are read back bit for bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import numpy as np

from tracebridge.chain.expanded.context_rows import require_cells
from tracebridge.chain.expanded.estimation import estimate, estimate_stack, space_of
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.errors import Location, ModelError, Problem, TracebridgeError
from tracebridge.states.expansion import ContextSpace

if TYPE_CHECKING:
    from tracebridge.states.model_form import ModelForm
    from tracebridge.states.run_paths import RunPaths

#: Machines may differ in the last digits of what is computed again.
CLOSED_FORM_TOLERANCE = 1e-9

#: Phases that were fitted are where one more iteration changes the log-likelihood by at most this, in nats a step.
_GAIN_TOLERANCE = 1e-4

_ARRAYS = ("start", "rows", "advance", "class_weights", "class_tilts")


class ParametersDocument(msgspec.Struct, forbid_unknown_fields=True):
    """The types of `parameters_to_dict`'s values."""

    groups: list[str]
    start: list[float]
    rows: list[float]
    advance: list[float]
    class_weights: list[float]
    class_tilts: list[float]


def parameters_to_dict(model: ExpandedModel) -> dict[str, Any]:
    """The names of the groups and all arrays as JSON values."""
    return {"groups": list(model.groups), **{name: getattr(model, name).ravel().tolist() for name in _ARRAYS}}


def parameters_from_document(
    document: ParametersDocument, form: ModelForm, states: tuple[str, ...], path: str | None = None
) -> ExpandedModel:
    """Read `parameters_to_dict`'s values; sizes are compared before anything is built.

    Args:
        form: with the bins of its clock chosen. states: the categories. path: of the file, for messages.

    Raises:
        ModelError: naming the field.
    """

    def refuse(message: str, field: str) -> NoReturn:
        raise ModelError(message, location=Location(path=path, field=field))

    m, n_groups, n_phases = len(states), max(1, len(document.groups)), form.phases
    if (form.group is None) != (not document.groups) or document.groups != sorted(set(document.groups)):
        refuse("groups are there where the form has one, unique and ascending", "parameters.groups")
    space = ContextSpace(form=form, n_states=m, n_groups=n_groups)
    try:
        require_cells(space)
    except TracebridgeError as error:
        raise ModelError(str(error), location=Location(path=path, field="form")) from error
    shapes = {
        "start": (n_groups, n_phases, m + 2),
        "rows": (n_phases, space.size, m, m + 2),
        "advance": (n_phases, m, n_phases),
        "class_weights": (form.classes,),
        "class_tilts": (form.classes,),
    }
    arrays = {}
    for name, shape in shapes.items():
        values = getattr(document, name)
        if len(values) != int(np.prod(shape)):
            refuse(f"{len(values)} numbers are not the {int(np.prod(shape))} of {form}", f"parameters.{name}")
        arrays[name] = np.array(values, dtype=np.float64).reshape(shape)
    try:
        return ExpandedModel(form=form, states=states, groups=tuple(document.groups), **arrays)
    except ModelError as error:
        raise ModelError(str(error), location=Location(path=path, field="parameters")) from error


def require_fitted(model: ExpandedModel, paths: RunPaths, kappa: float) -> None:
    """Raise ModelError if parameters do not follow from runs, under a kappa.

    Rows of contexts and starts are computed again. The parameters of hidden phases are taken as they are if one more
    iteration of their fit changes the likelihood by next to nothing; classes of tasks are taken as they are.
    """
    form = replace(model.form, classes=1)
    groups = () if form.group is None else paths.group_names
    space_of(paths, form)
    if form.phases == 1:
        again = estimate(paths, form, kappa)
        pairs = [(getattr(model, name), getattr(again, name)) for name in ("start", "rows", "advance")]
        fitted = model.groups == groups and all(
            np.allclose(ours, theirs, rtol=0, atol=CLOSED_FORM_TOLERANCE) for ours, theirs in pairs
        )
    else:
        fitted = model.groups == groups and abs(_gain_of_an_iteration(model, paths, kappa)) <= _GAIN_TOLERANCE
    if not fitted:
        raise ModelError(
            Problem(
                location=Location(field="parameters"),
                message="do not follow from the runs and options in the same document",
                hint="fit the runs again",
            )
        )


def _gain_of_an_iteration(model: ExpandedModel, paths: RunPaths, kappa: float) -> float:
    """By how much one more iteration for the phases raises the log-likelihood, in nats a step."""
    from tracebridge.chain.expanded.forward import log_likelihood

    plain = replace(model, form=replace(model.form, classes=1), class_weights=np.ones(1), class_tilts=np.zeros(1))
    corpora = np.zeros(paths.n_runs, dtype=np.int64)
    after = estimate_stack(paths, corpora, 1, plain.form, kappa, warm=plain, iterations=1).model(0)
    gain = log_likelihood(after, paths).sum() - log_likelihood(plain, paths).sum()
    return float(gain) / max(1, paths.n_steps)
