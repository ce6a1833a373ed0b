"""The chain that a PRISM or Storm file says: one initial state, and identifiers for names.

A file of either tool has a single initial state. Where the initial distribution is a point nothing changes. Elsewhere a
first state is added, whose successors are the initial distribution and which earns nothing; all labels are false there.
The chain then runs one step longer than the original, which `tracebridge.export.properties` takes into account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, vstack

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.export.names import identifier_of, unused_identifier
from tracebridge.export.variable_layout import variable_layout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedState:
    """The state that a file puts before a spread initial distribution.

    Attributes:
        label: the identifier of the label that holds there alone; ``start`` where no name is written so.
        initial_label: the identifier of the label of the states that the distribution leads to, as ``init`` means the
            added state in the file; ``initial`` where no name is written so.
    """

    label: str
    initial_label: str


def added_state(chain: MarkovChain) -> AddedState | None:
    """What is added to a chain in a file: None where the initial distribution is a point."""
    if np.count_nonzero(_initial_support(chain)) == 1:
        return None
    taken = {identifier_of(name) for name in chain.label_names()}
    return AddedState(label=unused_identifier("start", taken), initial_label=unused_identifier("initial", taken))


def single_start(chain: MarkovChain) -> MarkovChain:
    """The chain as a file says it: states, labels and rewards called by their identifiers, and one initial state.

    States keep their positions; an added first state comes last and is called by its label. Rational where the
    transitions of ``chain`` are. It has the variables that the file has beside ``s``.
    """
    layout = variable_layout(chain)
    variables = {} if layout is None else dict(zip(layout.variables, layout.columns.T, strict=True))
    added = added_state(chain)
    n = chain.n_states
    states = [identifier_of(name) for name in chain.states]
    labels = {identifier_of(name): mask for name, mask in chain.labels.items()}
    transitions: csr_array | RationalMatrix = chain.transitions if chain.rationals is None else chain.rationals
    rewards = {identifier_of(name): structure for name, structure in chain.rewards.items()}
    start = int(np.argmax(_initial_support(chain)))
    if added is not None:
        start = n
        states.append(added.label)
        labels = {name: np.append(mask, False) for name, mask in labels.items()}
        labels[added.initial_label] = np.append(chain.initial > 0, False)
        transitions = _with_first_row(chain)
        rewards = {name: _with_nothing_first(structure) for name, structure in rewards.items()}
        if layout is not None:
            first = zip(variables.items(), layout.added_values, strict=True)
            variables = {name: np.append(values, value) for (name, values), value in first}
    initial = RationalVector(np.eye(1, len(states), start, dtype=np.int64)[0], 1)
    return MarkovChain(
        states=tuple(states),
        transitions=transitions,
        initial=initial,  # type: ignore[arg-type]  # the constructor takes a RationalVector too
        labels=labels,
        rewards=rewards,
        variables=variables,
    )


def _initial_support(chain: MarkovChain) -> NDArray[np.bool_]:
    """Where the initial distribution is not zero; a rational may round to zero without being zero."""
    if chain.initial_rationals is None:
        return chain.initial > 0
    return np.asarray(chain.initial_rationals.numerators != 0, dtype=np.bool_)


def _with_first_row(chain: MarkovChain) -> csr_array | RationalMatrix:
    """The transitions with the initial distribution as one more row, and a column that nothing enters."""
    n = chain.n_states
    if chain.rationals is None:
        widened = csr_array(
            (chain.transitions.data, chain.transitions.indices, chain.transitions.indptr), shape=(n, n + 1)
        )
        return csr_array(vstack([widened, csr_array(np.append(chain.initial, 0.0)[None, :])], format="csr"))
    first = RationalMatrix.from_rows([dict(enumerate(chain.exact_initial()))], n + 1)
    matrix = chain.rationals
    return RationalMatrix(
        np.append(matrix.indptr, matrix.indptr[-1] + first.indptr[-1]),
        np.append(matrix.indices, first.indices),
        _joined(matrix.numerators, first.numerators),
        _joined(matrix.denominators, first.denominators),
        n + 1,
    )


def _with_nothing_first(structure: RewardStructure) -> RewardStructure:
    return RewardStructure(
        state=np.append(structure.state, 0.0),
        action=None if structure.action is None else np.append(structure.action, 0.0),
        exact_state=_with_zero(structure.exact_state),
        exact_action=_with_zero(structure.exact_action),
    )


def _with_zero(vector: RationalVector | None) -> RationalVector | None:
    return None if vector is None else RationalVector(_joined(vector.numerators, [0]), vector.denominator)


def _joined(first: NDArray[np.int64], second: NDArray[np.int64] | Sequence[int | Fraction]) -> NDArray[np.object_]:
    """Integers of any size, end to end."""
    return np.append(first.astype(object), np.array(second, dtype=object))
