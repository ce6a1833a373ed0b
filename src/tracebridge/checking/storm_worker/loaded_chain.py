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

    def reward_size(self, *, bounded: bool) -> int:  # noqa: ARG002 - that of a decision process depends on it
        """How many numbers a reward has that is sent with a question."""
        return self.n + 1

    def leaving(self, mask: NDArray[np.bool_], state_rewards: list[list[Any]], *, halting: bool) -> Any:
        """A model with one more state, to which those in the mask move, and the state rewards ``v0``, ``v1``, ...

        Args:
            mask: shape (n,). state_rewards: n + 1 numbers each. halting: states move on through copies of themselves,
                and all are initial; the one more state comes behind the copies.
        """
        n, kept = self.n, np.repeat(~mask, np.diff(self.indptr))
        last, nothing = 2 * n if halting else n, zero(exact=self.exact)
        numbers = np.flatnonzero(kept | halting)  # of a halting chain, the copies have all successors
        lengths = np.where(mask & (not halting), 1, np.diff(self.indptr))
        targets = np.full(lengths.sum(), last, dtype=np.int64)
        positions = np.flatnonzero(np.repeat(~mask | halting, lengths))
        targets[positions] = self.indices[numbers]
        values = [one(exact=self.exact)] * len(targets)
        for position, number in zip(positions.tolist(), numbers.tolist(), strict=True):
            values[position] = self.values[number]
        initial = np.append(self.initial, False)
        if halting:
            lengths = np.concatenate([np.ones(n, dtype=np.int64), lengths])
            targets = np.concatenate([np.where(mask, last, n + np.arange(n)), targets])
            values = [one(exact=self.exact)] * n + values
            initial = np.ones(2 * n + 1, dtype=np.bool_)
            state_rewards = [[*reward[:n], *[nothing] * n, reward[n]] for reward in state_rewards]
        rewards: StormRewards = {f"v{i}": (reward, None) for i, reward in enumerate(state_rewards)}
        indptr = np.concatenate([[0], np.cumsum(np.append(lengths, 1))])
        values.append(one(exact=self.exact))
        return build_model(indptr, np.append(targets, last), values, initial, rewards, exact=self.exact)


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
    return SparseDtmc[number](model_components(builder.build(), initial, rewards, exact=exact))


def model_components(matrix: Any, initial: NDArray[np.bool_], rewards: StormRewards, *, exact: bool) -> Any:
    """A matrix of Storm's with the label ``init`` and with rewards."""
    number = Rational if exact else float
    labeling = StateLabeling(len(initial))
    labeling.add_label("init")
    labeling.set_states("init", BitVector(len(initial), np.flatnonzero(initial).tolist()))
    models = {
        name: SparseRewardModel[number](optional_state_reward_vector=state, optional_state_action_reward_vector=action)
        for name, (state, action) in rewards.items()
    }
    return SparseModelComponents[number](transition_matrix=matrix, state_labeling=labeling, reward_models=models)
