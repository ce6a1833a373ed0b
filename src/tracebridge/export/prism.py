"""Writing a chain in the PRISM language: one module, one variable ``s``, one command a state.

What the language cannot say stands in comments that `tracebridge.export.prism_reader` reads: the name of the state
behind its command, the name of a label or reward structure behind its identifier, and on the first line whether numbers
are rationals or doubles. The file is therefore both a model for PRISM and Storm and a lossless copy of the chain.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import UsageError
from tracebridge.export.names import identifier_of
from tracebridge.export.single_start import AddedState, added_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain, RewardStructure
    from tracebridge.chain.rational import RationalVector

#: Both tools look at every command in every state, so that time grows with the square of the number of states.
MAX_STATES = 10_000

#: Integers of more bits are not written: Python turns no much longer ones into decimals.
MAX_INTEGER_BITS = 14_000

MARKER = "//= tracebridge dtmc"
FORMAT_VERSION = 1

_MAX_INTEGER_LITERAL = 2**31 - 1  # PRISM's integers; Storm's have 64 bits
_TERMS_A_GROUP = 32

# Characters that end a line, are invisible, change the direction of text, or are no characters: a fixed list, because
# what counts as printable differs between versions of Unicode. And the two that the notation itself uses.
_HIDDEN = (
    r'\x00-\x1f"\\\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ud800-\udfff\ufdd0-\ufdef'
    r"\ufeff\ufff0-\uffff\U000e0000-\U000e0fff"
)
_TO_ESCAPE = re.compile(f"[{_HIDDEN}]")


def format_prism(chain: MarkovChain, *, max_states: int | None = MAX_STATES) -> str:
    """The chain as the text of a PRISM model.

    Rationals are written as fractions over the denominator of their row, unreduced, so that a row of counts shows its
    counts and sums to one exactly; doubles in the shortest form that reads back as the same double. State ``i`` is
    ``s=i``. Every label, and every state under its own name, becomes a label. A spread initial distribution becomes an
    added first state (see `tracebridge.export.single_start`).

    Variables and constants of a chain that was itself read from a program are not written: the file has the one
    variable ``s``, and what the states were made of stays in their names.

    Args:
        chain: any chain. max_states: refuse more states than that; None for no limit.

    Raises:
        UsageError: too many states, or an integer of more than about 4,000 digits.
    """
    if max_states is not None and chain.n_states > max_states:
        raise UsageError(
            f"{chain.n_states} states are too many for the PRISM language (limit {max_states}): the time that PRISM "
            "and Storm need grows with their square; write another format, such as .drn or .umb, or lift the limit"
        )
    added = added_state(chain)
    lines = [*_header(chain, added), "dtmc", "", *_module(chain, added), "", *_labels(chain, added)]
    for name, structure in chain.rewards.items():
        lines += ["", *_reward_structure(name, structure)]
    return "\n".join(lines) + "\n"


def write_prism(chain: MarkovChain, path: Path, *, max_states: int | None = MAX_STATES) -> None:
    """Write `format_prism` to a file, which appears whole or not at all.

    Raises:
        UsageError: as `format_prism`. OSError: the file cannot be written.
    """
    text = format_prism(chain, max_states=max_states)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def quoted(name: str) -> str:
    r"""A name between double quotes on one line of a comment; what cannot be seen there becomes ``\u{hex}``."""
    return '"' + _TO_ESCAPE.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", name) + '"'


def _header(chain: MarkovChain, added: AddedState | None) -> Iterator[str]:
    transitions = "float" if chain.rationals is None else "exact"
    initial = "float" if chain.initial_rationals is None else "exact"
    yield f"{MARKER} {FORMAT_VERSION}, transitions {transitions}, initial {initial}"
    yield f"// A Markov chain of {chain.n_states} states. The comment behind a command names its state; that behind a"
    yield "// label or a reward structure gives the name that its identifier stands for. In a name, \\u{hex} is the"
    yield "// character of that code point. tracebridge restores the chain from these comments exactly."
    if transitions == "float":
        yield "// Probabilities are doubles, digit by digit: a row sums to one up to their rounding only."
    if added is not None:
        yield f'// Runs start in several states, so s={chain.n_states} (label "{added.label}") was added: it leads'
        yield "// to them and earns nothing. Runs are one step longer here: a step bound k becomes k+1."
    yield ""


def _module(chain: MarkovChain, added: AddedState | None) -> Iterator[str]:
    n = chain.n_states
    entries = _nonzero(chain.initial, chain.initial_rationals)
    start, mass = (n, "1") if added is not None else entries[0]
    comment = "" if mass in {"1", "1.0"} else f"  // mass {mass}"  # such as 7/7, which restores the count
    yield "module chain"
    yield f"  s : [0..{max(start, n - 1, 1)}] init {start};{comment}"  # PRISM refuses a range of one value
    yield ""
    indptr, indices = chain.transitions.indptr.tolist(), chain.transitions.indices.tolist()
    if chain.rationals is None:
        values = [double_text(value) for value in chain.transitions.data.tolist()]
    else:
        bottoms = chain.rationals.denominators[chain.rationals.row_of_entry].tolist()
        values = [fraction_text(*pair) for pair in zip(chain.rationals.numerators.tolist(), bottoms, strict=True)]
    for i, name in enumerate(chain.states):
        row = slice(indptr[i], indptr[i + 1])
        yield command_line(i, indices[row], values[row], quoted(name))
    if added is not None:
        yield command_line(n, [i for i, _ in entries], [value for _, value in entries], "the initial distribution")
    yield "endmodule"


def command_line(source: int, targets: Sequence[int], values: Sequence[str], comment: str) -> str:
    """The command of one state, with what its comment says."""
    branches = " + ".join(f"{value}:(s'={target})" for target, value in zip(targets, values, strict=True))
    return f"  [] s={source} -> {branches};  // {comment}"


def _labels(chain: MarkovChain, added: AddedState | None) -> Iterator[str]:
    for name, mask in chain.labels.items():
        yield f'label "{identifier_of(name)}" = {_where(mask)};  // label {quoted(name)}'
    for i, name in enumerate(chain.states):
        if name not in chain.labels:
            yield f'label "{identifier_of(name)}" = s={i};  // state {quoted(name)}'
    if added is not None:
        yield f'label "{added.label}" = s={chain.n_states};  // the added first state'
        yield f'label "{added.initial_label}" = {_where(chain.initial > 0)};  // the states that it leads to'


def _where(mask: NDArray[np.bool_]) -> str:
    """The states of a set as a formula over ``s``, grouped so that no reader has to nest deeply."""
    members = np.flatnonzero(mask)
    if not len(members):
        return "false"
    runs = np.split(members, np.flatnonzero(np.diff(members) > 1) + 1)
    terms = [f"s={run[0]}" if len(run) == 1 else f"s>={run[0]} & s<={run[-1]}" for run in runs]
    if len(terms) > 1:
        terms = [f"({term})" if "&" in term else term for term in terms]
    while len(terms) > _TERMS_A_GROUP:
        groups = [terms[i : i + _TERMS_A_GROUP] for i in range(0, len(terms), _TERMS_A_GROUP)]
        terms = [f"({' | '.join(group)})" for group in groups]
    return " | ".join(terms)


def _reward_structure(name: str, structure: RewardStructure) -> Iterator[str]:
    action = structure.action
    state_kind = "float" if structure.exact_state is None else _decimal(structure.exact_state.denominator)
    action_kind = "float" if structure.exact_action is None else _decimal(structure.exact_action.denominator)
    if action is None:
        action_kind = "none"
    yield f'rewards "{identifier_of(name)}"  // {quoted(name)}, state {state_kind}, action {action_kind}'
    items = [reward_line(i, value, action=False) for i, value in _nonzero(structure.state, structure.exact_state)]
    if action is not None:
        items += [reward_line(i, value, action=True) for i, value in _nonzero(action, structure.exact_action)]
    yield from items or ["  true : 0;"]  # Storm refuses a structure without items
    yield "endrewards"


def reward_line(state: int, value: str, *, action: bool) -> str:
    """The reward of one state, or of the action there."""
    return f"  {'[] ' if action else ''}s={state} : {value};"


def _nonzero(values: NDArray[np.float64], exact: RationalVector | None) -> list[tuple[int, str]]:
    """Positions and texts of the entries that are not zero, of either sign."""
    if exact is None:
        return [(i, double_text(float(values[i]))) for i in np.flatnonzero(values).tolist()]
    return [(i, fraction_text(top, exact.denominator)) for i, top in enumerate(exact.numerators.tolist()) if top]


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
