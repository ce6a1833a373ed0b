"""Reward structures and bounds on them as Storm is given them: whole numbers that are no larger than they must be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracebridge.checking.storm_steps import constant_number
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import ast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.checking.storm_formulation import CollectedBound

    Spent = Callable[[ast.Structure], Sequence[Fraction]]

#: Storm follows every amount below the bounds through every state; it is not asked for more pairs than this.
MAX_UNFOLDED = 20_000_000


@dataclass(frozen=True, slots=True)
class WholeBounds:
    """Bounds on rewards in whole numbers.

    Attributes:
        rewards: what each state earns, one list a bound that is left. bounds: ``>=3``, ``<=5``, of the same lists.
        levels: how many combinations of amounts Storm follows. impossible: no run keeps them, and nothing else matters.
    """

    rewards: tuple[tuple[int, ...], ...] = ()
    bounds: tuple[tuple[str, ...], ...] = ()
    levels: int = 1
    impossible: bool = False


def structure_name(chain: MarkovChain, structure: ast.Structure) -> str | None:
    """The name of a reward structure of the chain: by name, by number from 1, or the first; None is one a step.

    Raises:
        PropertyError: there is no such structure.
    """
    names = list(chain.rewards)
    known = ", ".join(f'"{name}"' for name in names) or "none"
    match structure:
        case ast.OnePerStep():
            return None
        case None if names:
            return names[0]
        case None:
            raise PropertyError("R needs a reward structure, and the chain has none")
        case str():
            if structure not in chain.rewards:
                raise PropertyError(f'there is no reward structure "{structure}"; the chain has: {known}')
            return structure
        case _:
            number = constant_number(structure)
            if number.denominator != 1 or not 1 <= number <= len(names):
                raise PropertyError(f"there is no reward structure number {number}; the chain has: {known}")
            return names[int(number) - 1]


def step_rewards(chain: MarkovChain, structure: ast.Structure) -> list[Fraction]:
    """What a step from each state earns, state and action reward, n numbers."""
    name = structure_name(chain, structure)
    return [Fraction(1)] * chain.n_states if name is None else chain.rewards[name].fractions(action=True)


def whole_bounds(spent: Spent, n_states: int, collected: Sequence[CollectedBound]) -> WholeBounds:
    """The bounds in whole numbers; those that every run keeps are left out.

    Args:
        spent: what each step from a state, or each choice of a decision process, spends of a structure.

    Raises:
        PropertyError: an unknown reward structure, or a bound that is no number. UnsupportedError: too much for Storm.
    """
    rewards, bounds = [], []
    levels = 1
    for item in collected:
        earned = spent(item.structure)
        unit = common_unit(earned)
        whole = [int(value / unit) for value in earned] if unit else [0] * len(earned)
        texts, largest = [], 0
        lower, upper = item.bound.lower, item.bound.upper
        if lower is not None:
            least = _scaled(lower, unit, round_up=True, strict=item.bound.lower_strict)
            if least > 0:
                if not unit:
                    return WholeBounds(impossible=True)
                texts.append(f">={least}")
                largest = least
        if upper is not None:
            most = _scaled(upper, unit, round_up=False, strict=item.bound.upper_strict)
            if most < 0:
                return WholeBounds(impossible=True)
            if unit:
                texts.append(f"<={most}")
                largest = max(largest, most)
        if texts:
            levels *= largest + 1
            rewards.append(tuple([min(value, largest + 1) for value in whole]))  # more makes no difference
            bounds.append(tuple(texts))
    if (size := n_states * levels) > MAX_UNFOLDED:
        raise UnsupportedError(f"Storm would have to follow {size:,} pairs of a state and an amount of reward")
    return WholeBounds(tuple(rewards), tuple(bounds), levels)


def common_unit(earned: Sequence[Fraction]) -> Fraction:
    """The largest number of which all are multiples; zero if all are zero."""
    bottom = math.lcm(*(value.denominator for value in earned))
    return Fraction(math.gcd(*(int(value * bottom) for value in earned)), bottom)


def _scaled(bound: ast.Formula, unit: Fraction, *, round_up: bool, strict: bool) -> int:
    """A bound in units, as the nearest whole number that a reward can reach without being beyond it."""
    value = constant_number(bound)
    if value < 0:
        raise PropertyError(f"a bound on a reward is not negative, which {value} is")
    if not unit:  # then only the sign matters
        at_zero = int(value > 0 or strict)
        return at_zero if round_up else -int(value == 0 and strict)
    scaled = value / unit
    nearest = math.ceil(scaled) if round_up else math.floor(scaled)
    if strict and nearest == scaled:
        return nearest + 1 if round_up else nearest - 1
    return nearest
