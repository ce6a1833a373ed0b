"""Properties that name what a state remembers, before a chain is fitted: does the model that was asked for have it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.chain.expanded.naming import CATEGORY, GROUP, PHASE, PREVIOUS, STAY, STEP, TASK_CLASS, VARIABLES
from tracebridge.errors import Problem, PropertyError
from tracebridge.pctl.references import free_identifiers
from tracebridge.pctl.source import locate

if TYPE_CHECKING:
    from tracebridge.pctl.ast import PropertyFile
    from tracebridge.states.model_form import ModelForm

# The part of a model that a variable comes with.
_PARTS = {
    CATEGORY: "any part, such as order2",
    PREVIOUS: "order2",
    STAY: "dwell4",
    STEP: "clock",
    PHASE: "phases:4",
    TASK_CLASS: "classes:2",
    GROUP: "group:model",
}


def remembered(form: ModelForm) -> frozenset[str]:
    """The variables of a chain of this form."""
    if form.is_first_order:
        return frozenset()
    has = {
        CATEGORY: True,
        PREVIOUS: form.previous,
        STAY: form.dwell > 1,
        STEP: form.has_clock,
        PHASE: form.phases > 1,
        TASK_CLASS: form.classes > 1,
        GROUP: form.group is not None,
    }
    return frozenset(name for name, present in has.items() if present)


def require_remembered(file: PropertyFile, form: ModelForm | None) -> None:
    """Refuse properties that name a variable which no state of the model would have.

    Args:
        file: with constants resolved. form: of the model; None if the ladder is to find one, which may lack any.

    Raises:
        PropertyError: naming each place, and the parts of a model that have the variable.
    """
    known = frozenset() if form is None else remembered(form)
    model = "model auto may choose a chain whose states do" if form is None else f"states of model {form} do"
    problems = [
        Problem(
            location=locate(node.span, file.path),
            message=f"{node.name}: {model} not remember it",
            hint=f"name a model that has it: {_PARTS[node.name]}, alone or joined to others by +",
        )
        for item in file.properties
        for node in free_identifiers(item.formula)
        if node.name in VARIABLES and node.name not in known
    ]
    if problems:
        raise PropertyError(problems)
