"""Numbers of a message as Storm's numbers, and back: doubles as they are, rationals through text."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from stormpy import Rational

from .protocol import Numbers, RewardNumbers, WorkerError, pack_rational, unpack_doubles, unpack_rational

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: State and action rewards of each structure, in Storm's numbers.
StormRewards = dict[str, tuple[list[Any], list[Any] | None]]


def one(*, exact: bool) -> Any:
    """Storm's 1."""
    return decode(["1/1"])[0] if exact else 1.0


def zero(*, exact: bool) -> Any:
    """Storm's 0."""
    return decode(["0/1"])[0] if exact else 0.0


def decode(numbers: Numbers, n: int | None = None) -> list[Any]:
    """Storm's numbers; of rationals only the text is taken exactly (integers above 2^63 go through doubles)."""
    if isinstance(numbers, bytes):
        values: list[Any] = unpack_doubles(numbers).tolist()
    else:
        try:
            exact = [unpack_rational(text) for text in numbers]
        except (ValueError, ZeroDivisionError) as error:
            raise WorkerError("protocol", f"not a rational: {error}") from error
        values = [Rational(f"{value.numerator}/{value.denominator}") for value in exact]
    if n is not None and len(values) != n:
        raise WorkerError("protocol", f"{len(values)} numbers for {n} states")
    return values


def decode_indices(data: bytes) -> NDArray[np.int64]:
    """An array of 64-bit integers."""
    if len(data) % 8:
        raise WorkerError("protocol", f"{len(data)} bytes are no array of 64-bit integers")
    return np.frombuffer(data, dtype="<i8")


def decode_rewards(rewards: RewardNumbers, n: int) -> tuple[list[Any], list[Any] | None]:
    """State and action rewards of n states."""
    return decode(rewards.state, n), None if rewards.action is None else decode(rewards.action, n)


def encode(values: Any, *, exact: bool) -> Numbers:
    """Storm's numbers as bytes or text; among its rationals infinity is a double."""
    if not exact:
        doubles = np.array(values, dtype="<f8")
        if np.isnan(doubles).any():
            raise WorkerError("storm", "Storm's result is not a number")
        return doubles.tobytes()
    texts = []
    for value in values:
        if isinstance(value, float):
            if value != float("inf"):
                raise WorkerError("storm", f"Storm's exact result is {value!r}")
            texts.append("inf")
        else:
            texts.append(pack_rational(Fraction(str(value))))
    return texts


def encode_rewards(reward: Any, n: int, *, exact: bool) -> RewardNumbers:
    """The state and action rewards of a reward model of Storm."""
    if reward.has_transition_rewards:
        raise WorkerError("model", "rewards on transitions are not supported; put them on states or commands")
    state = reward.state_rewards if reward.has_state_rewards else [zero(exact=exact)] * n
    action = encode(reward.state_action_rewards, exact=exact) if reward.has_state_action_rewards else None
    return RewardNumbers(state=encode(state, exact=exact), action=action)
