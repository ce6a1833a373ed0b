"""What stands in every PRISM file that tracebridge writes: names, numbers, sets of values, labels and rewards.

Labels and rewards are spoken of by the values of one variable, ``s`` or another.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import UsageError
from tracebridge.export.names import identifier_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.rational import RationalMatrix, RationalVector
    from tracebridge.chain.reward_structure import RewardStructure
    from tracebridge.export.single_start import AddedState

#: Integers of more bits are not written: Python turns no much longer ones into decimals.
MAX_INTEGER_BITS = 14_000

MARKER = "//= tracebridge dtmc"

#: The first form has one variable ``s`` for the state, the second one for each thing that a state remembers.
FORMAT_VERSION, VARIABLES_VERSION = 1, 2

_MAX_INTEGER_LITERAL = 2**31 - 1  # PRISM's integers; Storm's have 64 bits
_TERMS_A_GROUP = 32

# Characters that end a line, are invisible, change the direction of text, or are no characters: a fixed list, because
# what counts as printable differs between versions of Unicode. And the two that the notation itself uses.
_HIDDEN = (
    r'\x00-\x1f"\\\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ud800-\udfff\ufdd0-\ufdef'
    r"\ufeff\ufff0-\uffff\U000e0000-\U000e0fff"
)
_TO_ESCAPE = re.compile(f"[{_HIDDEN}]")


def quoted(name: str) -> str:
    r"""A name between double quotes on one line of a comment; what cannot be seen there becomes ``\u{hex}``."""
    return '"' + _TO_ESCAPE.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", name) + '"'


def where(mask: NDArray[np.bool_], variable: str) -> str:
    """A set of values of a variable as a formula, grouped so that no reader has to nest deeply."""
    members = np.flatnonzero(mask)
    if not len(members):
        return disjunction([])
    runs = np.split(members, np.flatnonzero(np.diff(members) > 1) + 1)
    terms = [
        f"{variable}={run[0]}" if len(run) == 1 else f"{variable}>={run[0]} & {variable}<={run[-1]}" for run in runs
    ]
    return disjunction([f"({term})" if len(terms) > 1 and "&" in term else term for term in terms])


def disjunction(terms: list[str]) -> str:
    """Any of the terms, grouped; ``false`` without one. Terms with operators stand in parentheses."""
    while len(terms) > _TERMS_A_GROUP:
        groups = [terms[i : i + _TERMS_A_GROUP] for i in range(0, len(terms), _TERMS_A_GROUP)]
        terms = [f"({' | '.join(group)})" for group in groups]
    return " | ".join(terms) or "false"


def label_line(name: str, mask: NDArray[np.bool_], variable: str) -> str:
    """A label that holds for these values of a variable."""
    return f'label "{identifier_of(name)}" = {where(mask, variable)};  // label {quoted(name)}'


def label_lines(chain: MarkovChain, variable: str, added: AddedState | None) -> Iterator[str]:
    """All labels of a chain, its states, and the added first state, over one variable that counts the states."""
    for name, mask in chain.labels.items():
        yield label_line(name, mask, variable)
    for i, name in enumerate(chain.states):
        if name not in chain.labels:
            yield f'label "{identifier_of(name)}" = {variable}={i};  // state {quoted(name)}'
    if added is not None:
        initial = where(chain.initial > 0, variable)
        yield from added_state_labels(added, f"{variable}={chain.n_states}", initial)


def added_state_labels(added: AddedState, place: str, initial: str) -> Iterator[str]:
    """What is true in an added first state, and in the states that it leads to, by the formulas of both."""
    yield f'label "{added.label}" = {place};  // the added first state'
    yield f'label "{added.initial_label}" = {initial};  // the states that it leads to'


def added_state_note(added: AddedState | None, place: str) -> Iterator[str]:
    """What the head of a file says of an added first state; ends the head."""
    if added is not None:
        yield f'// Runs start in several states, so {place} (label "{added.label}") was added: it leads'
        yield "// to them and earns nothing. Runs are one step longer here: a step bound k becomes k+1."
    yield ""


def reward_structure_lines(name: str, structure: RewardStructure, variable: str) -> Iterator[str]:
    """A reward structure over the values of a variable."""
    action = structure.action
    state_kind = "float" if structure.exact_state is None else _decimal(structure.exact_state.denominator)
    action_kind = "float" if structure.exact_action is None else _decimal(structure.exact_action.denominator)
    if action is None:
        action_kind = "none"
    yield f'rewards "{identifier_of(name)}"  // {quoted(name)}, state {state_kind}, action {action_kind}'
    items = [
        reward_line(i, value, variable, action=False)
        for i, value in nonzero_texts(structure.state, structure.exact_state)
    ]
    if action is not None:
        items += [
            reward_line(i, value, variable, action=True) for i, value in nonzero_texts(action, structure.exact_action)
        ]
    yield from items or ["  true : 0;"]  # Storm refuses a structure without items
    yield "endrewards"


def reward_line(value: int, reward: str, variable: str, *, action: bool) -> str:
    """The reward of one value of a variable, or of the action there."""
    return f"  {'[] ' if action else ''}{variable}={value} : {reward};"


def nonzero_texts(values: NDArray[np.float64], exact: RationalVector | None) -> list[tuple[int, str]]:
    """Positions and texts of the entries that are not zero, of either sign."""
    if exact is None:
        return [(i, double_text(float(values[i]))) for i in np.flatnonzero(values).tolist()]
    return [(i, fraction_text(top, exact.denominator)) for i, top in enumerate(exact.numerators.tolist()) if top]


def entry_texts(transitions: csr_array, rationals: RationalMatrix | None) -> list[str]:
    """The texts of the stored entries of a matrix, in their order; ``transitions`` are the roundings of rationals."""
    if rationals is None:
        return [double_text(value) for value in transitions.data.tolist()]
    bottoms = rationals.denominators[rationals.row_of_entry].tolist()
    return [fraction_text(*pair) for pair in zip(rationals.numerators.tolist(), bottoms, strict=True)]


def double_text(value: float) -> str:
    """The shortest decimal that reads back as this double."""
    return repr(value)


def fraction_text(top: int, bottom: int) -> str:
    """A rational as it is given, unreduced. Raises UsageError where it is too long to be written."""
    return _integer(top) if bottom == 1 else f"{_integer(top)}/{_integer(bottom)}"


def _integer(value: int) -> str:
    """An integer literal; where it is too long for PRISM's integers a decimal one, which both tools keep exactly."""
    return _decimal(value) if value <= _MAX_INTEGER_LITERAL else f"{_decimal(value)}.0"


def _decimal(value: int) -> str:
    if value.bit_length() > MAX_INTEGER_BITS:
        raise UsageError(
            f"the chain has a rational number of {value.bit_length()} bits, too long for the PRISM language; write the "
            "chain in doubles, or round its numbers to shorter fractions"
        )
    return str(value)
