"""VariableLayout: a chain whose states are told apart by what they remember, so that a file can have variables for it.

These are the chains of `tracebridge.chain.expanded`: with its variables, in ascending order of them, named by them, and
with labels and rewards that are the same for all copies of a category.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.copies import category_copies
from tracebridge.chain.expanded.naming import (
    CATEGORY,
    GROUP,
    NO_VALUE,
    OUTCOME_STATES,
    VARIABLES,
    expanded_names,
)
from tracebridge.chain.state_annotations import IMPLICIT_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.reward_structure import RewardStructure

    Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VariableLayout:
    """The variables of a chain of n states over m categories, success and failure.

    Attributes:
        variables: their names, the category first. columns: their values, shape (n, variables).
        categories: m names. groups: names of the values of the group; empty without one.
        first_copy: the first state of each category, of success and of failure, shape (m + 2,).
    """

    variables: tuple[str, ...]
    columns: Integers
    categories: tuple[str, ...]
    groups: tuple[str, ...]
    first_copy: Integers

    @property
    def added_values(self) -> list[int]:
        """What the variables are in a first state that a file adds."""
        return [len(self.first_copy), *[NO_VALUE] * (len(self.variables) - 1)]


def variable_layout(chain: MarkovChain) -> VariableLayout | None:
    """The layout of a chain; None for one that a file with these variables would not restore."""
    names = tuple(chain.variables)
    if len(names) < 2 or names != tuple(name for name in VARIABLES if name in names) or names[0] != CATEGORY:
        return None
    if any(values.dtype != np.int64 for values in chain.variables.values()):
        return None
    columns = np.stack(list(chain.variables.values()), axis=1)
    present, first_copy = np.unique(columns[:, 0], return_index=True)
    m = len(present) - 2
    if m < 1 or not np.array_equal(present, np.arange(m + 2)) or columns[:-2].min() < 0 or not _ascends(columns):
        return None
    if chain.states[-2:] != OUTCOME_STATES or not np.array_equal(columns[-2:, 1:], np.full((2, len(names) - 1), -1)):
        return None
    if not all(_same_in_copies(mask, columns[:, 0], first_copy) for mask in chain.labels.values()):
        return None
    if not all(_earns_by_category(structure, columns[:, 0], first_copy) for structure in chain.rewards.values()):
        return None
    categories = tuple(category_copies(chain))
    if len(categories) != m or not all(name in chain.labels for name in OUTCOME_STATES):
        return None
    own = {name: values[:-2] for name, values in chain.variables.items()}
    labels = {*chain.labels, *IMPLICIT_LABELS}
    groups = _group_names(chain, categories, own) if GROUP in own else ()
    if chain.states[:-2] != expanded_names(categories, groups, own, labels):
        return None
    return VariableLayout(
        variables=names, columns=columns, categories=categories, groups=groups, first_copy=first_copy.astype(np.int64)
    )


def _ascends(columns: Integers) -> bool:
    """Every row is larger than the one before, in the order of words in a dictionary."""
    change = np.diff(columns, axis=0)
    first = np.argmax(change != 0, axis=1)
    return bool((change[np.arange(len(change)), first] > 0).all())


def _same_in_copies(values: NDArray[np.generic], category: Integers, first_copy: Integers) -> bool:
    return np.array_equal(values[first_copy][category], values)


def _earns_by_category(structure: RewardStructure, category: Integers, first_copy: Integers) -> bool:
    vectors: list[NDArray[np.generic]] = [structure.state]
    if structure.action is not None:
        vectors.append(structure.action)
    vectors += [exact.numerators for exact in (structure.exact_state, structure.exact_action) if exact is not None]
    return all(_same_in_copies(values, category, first_copy) for values in vectors)


def _group_names(
    chain: MarkovChain, categories: tuple[str, ...], own: Mapping[str, NDArray[np.int64]]
) -> tuple[str, ...]:
    """What stands in the names of states for each value of the group, which comes last in them."""
    values, first = np.unique(own[GROUP], return_index=True)
    numbers = [str(i) for i in range(int(values[-1]) + 1)]
    groups = [""] * len(numbers)
    sample = {name: column[first] for name, column in own.items()}
    for value, state, name in zip(
        values.tolist(), first.tolist(), expanded_names(categories, numbers, sample, ()), strict=True
    ):
        groups[value] = chain.states[state].rstrip("~")[len(name) - len(f"{value}]") : -1]
    return tuple(groups)
