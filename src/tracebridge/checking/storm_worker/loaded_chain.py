"""A chain that was sent, and Storm's model of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from stormpy import Rational
from stormpy.datastructures import BitVector, SparseMatrixBuilder
from stormpy.models import SparseDtmc, SparseModelComponents, SparseRewardModel, StateLabeling

from .number_codec import StormRewards, decode, decode_indices, decode_rewards, one, zero
from .protocol import LoadModel, WorkerError, unpack_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LoadedChain:
    """A chain in memory: its numbers, and Storm's model of it."""

    def __init__(self, request: LoadModel) -> None:
        self.indptr = decode_indices(request.indptr)
        self.indices = decode_indices(request.indices)
        self.exact = isinstance(request.values, list)
        self.n = len(self.indptr) - 1
        self.values = decode(request.values)
        starts_right = self.n >= 1 and self.indptr[0] == 0 and not (np.diff(self.indptr) < 0).any()
        if not starts_right or self.indptr[-1] != len(self.indices) or len(self.values) != len(self.indices):
            raise WorkerError("protocol", "the arrays of a chain do not fit together")
        if len(self.indices) and not (self.indices.min() >= 0 and self.indices.max() < self.n):
            raise WorkerError("protocol", "a transition leads to no state")
        self.initial = unpack_mask(request.initial, self.n)
        rewards: StormRewards = {f"r{i}": decode_rewards(reward, self.n) for i, reward in enumerate(request.rewards)}
        self.model = build_model(self.indptr, self.indices, self.values, self.initial, rewards, exact=self.exact)

    def leaving(self, mask: NDArray[np.bool_], reward: list[Any]) -> Any:
        """A model with the state reward ``v`` and one more state, to which the states in the mask move."""
        lengths = np.append(np.where(mask, 1, np.diff(self.indptr)), 1)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        kept = ~np.repeat(mask, np.diff(self.indptr))
        indices = np.full(indptr[-1], self.n, dtype=np.int64)
        positions = np.flatnonzero(np.repeat(np.append(~mask, False), lengths))
        indices[positions] = self.indices[kept]
        values = [one(exact=self.exact)] * len(indices)
        for position, value in zip(positions.tolist(), np.flatnonzero(kept).tolist(), strict=True):
            values[position] = self.values[value]
        rewards: StormRewards = {"v": ([*reward, zero(exact=self.exact)], None)}
        return build_model(indptr, indices, values, np.append(self.initial, False), rewards, exact=self.exact)


def build_model(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    values: list[Any],
    initial: NDArray[np.bool_],
    rewards: StormRewards,
    *,
    exact: bool,
    chunk: int = 20_000,
) -> Any:
    """Storm's sparse DTMC with these states in this order, built in chunks to bound the memory for Python's lists."""
    number = Rational if exact else float
    n = len(indptr) - 1
    builder = SparseMatrixBuilder[number](rows=n, columns=n, entries=len(indices))
    for start in range(0, n, chunk):
        end = min(n, start + chunk)
        first, last = int(indptr[start]), int(indptr[end])
        rows = np.repeat(np.arange(start, end), np.diff(indptr[start : end + 1]))
        builder.add_next_values(rows.tolist(), indices[first:last].tolist(), values[first:last])
    labeling = StateLabeling(n)
    for name, states in (("init", np.flatnonzero(initial).tolist()), ("a0", []), ("a1", [])):
        labeling.add_label(name)
        labeling.set_states(name, BitVector(n, states))
    models = {
        name: SparseRewardModel[number](optional_state_reward_vector=state, optional_state_action_reward_vector=action)
        for name, (state, action) in rewards.items()
    }
    components = SparseModelComponents[number](
        transition_matrix=builder.build(), state_labeling=labeling, reward_models=models
    )
    return SparseDtmc[number](components)
