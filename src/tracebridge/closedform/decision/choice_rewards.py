"""What the choices of a decision process earn."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tracebridge.closedform.expected_reward import reward_structure

if TYPE_CHECKING:
    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.chain.reward_structure import RewardStructure
    from tracebridge.pctl.ast import Span, Structure


def process_reward(process: DecisionProcess, structure: Structure, span: Span | None = None) -> RewardStructure:
    """The reward structure of this name or number, with its action rewards, which the frame of the process has not.

    Raises:
        PropertyError: there is none.
    """
    found = reward_structure(process.frame, structure, span)
    names = [name for name, held in process.frame.rewards.items() if held is found]
    return process.rewards[names[0]] if names else found  # one for every step has no name


def choice_gains(process: DecisionProcess, structure: RewardStructure) -> list[Fraction]:
    """What each choice earns, m numbers: the reward of its state and its own."""
    state = structure.fractions(action=False)
    of_state = [state[i] for i in process.state_of_choice.tolist()]
    if structure.action is None:
        return of_state
    own = (
        structure.exact_action.to_fractions()
        if structure.exact_action is not None
        else [Fraction(x) for x in structure.action.tolist()]
    )
    return [a + b for a, b in zip(of_state, own, strict=True)]
