"""From what a tool built out of an exported file back to the exported chain, each checked against the other."""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.state_annotations import IMPLICIT_LABELS
from tracebridge.errors import Location, ModelError
from tracebridge.export.prism_reader import is_own_prism, read_own_prism
from tracebridge.export.single_start import single_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.rational import RationalVector
    from tracebridge.chain.reward_structure import RewardStructure

#: Turning one fraction or decimal into a double by different routes may differ by a few units in the last place.
DOUBLE_TOLERANCE = 1e-14


def restore_chain(built: MarkovChain, text: str, *, path: str | None = None) -> MarkovChain:
    """The chain that was exported as ``text``, given what a tool built from that text.

    The text alone says everything, unreachable states included. What the tool built is the check: it must be the
    reachable part of the restored chain with the same labels and rewards. Rationals must be equal; where one side has
    doubles, the two may differ by `DOUBLE_TOLERANCE`, relative.

    Args:
        built: the tool's chain; its states are called by their variables, ``s=<value>`` or those of an expanded chain,
            such as ``category=<value>,step=<value>``. text: the model text. path: for messages.

    Returns:
        The exported chain; ``built`` itself where the text was not written by tracebridge.

    Raises:
        ModelError: as `read_own_prism`, or the tool built another chain.
    """
    if not is_own_prism(text):
        return built
    chain = read_own_prism(text, path=path)
    for difference in _differences(built, single_start(chain)):
        raise ModelError(
            f"the tool built another chain than the file describes: {difference}", location=Location(path=path)
        )
    return chain


def _differences(built: MarkovChain, written: MarkovChain) -> Iterator[str]:
    names = _names(written)
    position = {names[i]: i for i in np.flatnonzero(written.reachable_states()).tolist()}
    odd = sorted(position.keys() ^ set(built.states), key=lambda name: (len(name), name))
    if odd:
        yield f"only one of them has {', '.join(odd[:5])}"
        return
    order = np.array([position[name] for name in built.states])
    for k, name in enumerate(built.states):
        if not _same_row({int(order[j]): p for j, p in _row(built, k).items()}, _row(written, position[name])):
            yield f"the commands of {name} differ"
    if not np.array_equal(built.initial > 0, written.initial[order] > 0):
        yield "the initial states differ"
    # With variables, single states have no label in the file.
    for label in written.labels if written.variables else written.label_names():
        if label not in IMPLICIT_LABELS and not (
            built.has_label(label) and np.array_equal(built.label(label), written.label(label)[order])
        ):
            yield f'the label "{label}" differs'
    for name, structure in written.rewards.items():
        if name not in built.rewards or not _same_rewards(built.rewards[name], structure, order):
            yield f'the reward structure "{name}" differs'


def _names(written: MarkovChain) -> list[str]:
    """What a tool calls the states of a chain that a file says."""
    if not written.variables:
        return [f"s={i}" for i in range(written.n_states)]
    columns = np.stack(list(written.variables.values()), axis=1).tolist()
    return [",".join(f"{name}={x}" for name, x in zip(written.variables, row, strict=True)) for row in columns]


def _row(chain: MarkovChain, i: int) -> dict[int, Fraction] | dict[int, float]:
    if chain.rationals is not None:
        return chain.rationals.row(i)
    row = slice(chain.transitions.indptr[i], chain.transitions.indptr[i + 1])
    return dict(zip(chain.transitions.indices[row].tolist(), chain.transitions.data[row].tolist(), strict=True))


def _same_row(first: dict[int, Fraction | float], second: dict[int, Fraction] | dict[int, float]) -> bool:
    return first.keys() == second.keys() and all(_same(first[j], second[j]) for j in first)


def _same(first: Fraction | float, second: Fraction | float) -> bool:
    if isinstance(first, float) or isinstance(second, float):
        return isclose(first, second, rel_tol=DOUBLE_TOLERANCE, abs_tol=0.0)
    return first == second


def _same_rewards(built: RewardStructure, written: RewardStructure, order: NDArray[np.int64]) -> bool:
    for first, second in (
        (_entries(built.state, built.exact_state), _entries(written.state, written.exact_state)),
        (_entries(built.action, built.exact_action), _entries(written.action, written.exact_action)),
    ):
        for k, j in enumerate(order.tolist()):  # no action rewards are rewards of zero
            if not _same(first[k] if first else 0.0, second[j] if second else 0.0):
                return False
    return True


def _entries(values: NDArray[np.float64] | None, exact: RationalVector | None) -> Sequence[Fraction | float]:
    if exact is not None:
        return exact.to_fractions()
    return [] if values is None else values.tolist()
