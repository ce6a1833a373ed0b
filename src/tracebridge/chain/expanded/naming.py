"""The variables of expanded states, what their numbers mean, and names that say the same in words.

======== =================================================================================================
variable value
======== =================================================================================================
category position among the categories, m for success and m + 1 for failure
task_class hidden class of the task, from 0
group    value of the covariate, from 0, in the order of its names
previous category of the step before, m at the first step
stay     earlier steps of the same stay in the category, up to the largest level, which stands for more as well
step     earlier steps of the run, up to the start of the last bin of the clock, which stands for more as well
phase    hidden phase, from 0
======== =================================================================================================

A chain has those of them that its form remembers, in this order, and its states are in ascending order of them; in
success and failure all but the category are -1. At a time t of a run ``step`` is t, until the last bin. Such a chain
has a label for each category, which holds in all states of the category: its copies.
"""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

CATEGORY, TASK_CLASS, GROUP = "category", "task_class", "group"
PREVIOUS, STAY, STEP, PHASE = "previous", "stay", "step", "phase"

#: All variables, in the order in which a chain has them.
VARIABLES = (CATEGORY, TASK_CLASS, GROUP, PREVIOUS, STAY, STEP, PHASE)

OUTCOME_STATES = ("success", "failure")

#: What a variable other than the category is in success and failure.
NO_VALUE = -1


def expanded_names(
    categories: Sequence[str],
    groups: Sequence[str],
    variables: Mapping[str, NDArray[Any]],
    labels: Collection[str],
) -> tuple[str, ...]:
    """Names of the states but the outcomes, such as ``search [previous plan, stay 2+, step 4, phase 1, group gpt]``.

    They are unique and none is a label: where names of categories make them ambiguous, those are quoted, and ``~``
    keeps them apart from labels. The states of a chain that remembers nothing are called as their categories.

    Args:
        categories: m names. groups: names of the values of the covariate. variables: of the states, shape (n,) each.
        labels: what no state may be called.
    """
    if variables.keys() <= {CATEGORY}:
        return tuple(categories[c] for c in variables[CATEGORY].tolist())
    taken = set(labels)
    names = _names(categories, groups, variables)
    if len(set(names)) < len(names):
        quote = [json.dumps(name) for name in categories]
        names = _names(quote, [json.dumps(name) for name in groups], variables)
    for marks in count():
        marked = tuple(name + "~" * marks for name in names)
        if taken.isdisjoint(marked):
            return marked
    raise AssertionError  # some number of marks is in no label


def _names(categories: Sequence[str], groups: Sequence[str], variables: Mapping[str, NDArray[Any]]) -> list[str]:
    columns = [
        _texts(name, variables[name], categories, groups)
        for name in (PREVIOUS, STAY, STEP, PHASE, TASK_CLASS, GROUP)
        if name in variables
    ]
    own = variables[CATEGORY].tolist()
    return [f"{categories[c]} [{', '.join(parts)}]" for c, parts in zip(own, zip(*columns, strict=True), strict=True)]


def _texts(name: str, values: NDArray[Any], categories: Sequence[str], groups: Sequence[str]) -> list[str]:
    """What one variable says in each state."""
    last = int(values.max(initial=0))
    if name == PREVIOUS:
        texts = [*(f"previous {category}" for category in categories), "first"]
    elif name == GROUP:
        texts = [f"group {group}" for group in groups]
    elif name == TASK_CLASS:
        texts = [f"class {value}" for value in range(last + 1)]
    elif name == PHASE:
        texts = [f"phase {value}" for value in range(last + 1)]
    else:
        texts = [f"{name} {value}" for value in range(last)] + [f"{name} {last}+"]
    return np.array(texts, dtype=object)[values].tolist()  # type: ignore[no-any-return]
