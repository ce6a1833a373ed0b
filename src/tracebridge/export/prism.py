"""Writing a chain in the PRISM language: one module, one variable ``s``, one command a state.

A chain whose states remember more than their category gets a variable for each thing that they remember instead (see
`tracebridge.export.prism_variables`).

What the language cannot say stands in comments that `tracebridge.export.prism_reader` reads: the name of the state
behind its command, the name of a label or reward structure behind its identifier, and on the first line whether numbers
are rationals or doubles. The file is therefore both a model for PRISM and Storm and a lossless copy of the chain.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracebridge.errors import UsageError
from tracebridge.export.prism_text import (
    FORMAT_VERSION,
    MARKER,
    added_state_note,
    entry_texts,
    label_lines,
    nonzero_texts,
    quoted,
    reward_structure_lines,
)
from tracebridge.export.prism_variables import format_with_variables
from tracebridge.export.single_start import AddedState, added_state
from tracebridge.export.variable_layout import variable_layout
from tracebridge.traces.atomic_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracebridge.chain.markov import MarkovChain

#: Commands, of which there is one a state, or one a row. Both tools look at every command in every state, so that time
#: grows with the square of the number of states.
MAX_STATES = 10_000


def format_prism(chain: MarkovChain, *, max_states: int | None = MAX_STATES) -> str:
    """The chain as the text of a PRISM model.

    Rationals are written as fractions over the denominator of their row, unreduced, so that a row of counts shows its
    counts and sums to one exactly; doubles in the shortest form that reads back as the same double. State ``i`` is
    ``s=i``. Every label, and every state under its own name, becomes a label. A spread initial distribution becomes an
    added first state (see `tracebridge.export.single_start`).

    Variables of an expanded chain (see `tracebridge.chain.expanded.naming`) become those of the file, and a command
    covers all states with the same row; single states have no label there. Other variables, of a chain that was itself
    read from a program, and constants are not written: the file has the one variable ``s``, and what the states were
    made of stays in their names.

    Args:
        chain: any chain. max_states: refuse more commands than that, one a state or a row; None for no limit.

    Raises:
        UsageError: too many commands, or an integer of more than about 4,000 digits.
    """
    layout = variable_layout(chain)
    if layout is not None:
        lines, n_commands = format_with_variables(chain, layout)
        _refuse_many(n_commands, "commands", max_states)
        return "\n".join(lines) + "\n"
    _refuse_many(chain.n_states, "states", max_states)
    added = added_state(chain)
    lines = [*_header(chain, added), "dtmc", "", *_module(chain, added), "", *label_lines(chain, "s", added)]
    for name, structure in chain.rewards.items():
        lines += ["", *reward_structure_lines(name, structure, "s")]
    return "\n".join(lines) + "\n"


def _refuse_many(number: int, what: str, limit: int | None) -> None:
    if limit is not None and number > limit:
        raise UsageError(
            f"{number} {what} are too many for the PRISM language (limit {limit}): the time that PRISM and Storm need "
            "grows with their square; write another format, such as .drn or .umb, or lift the limit"
        )


def write_prism(chain: MarkovChain, path: Path, *, max_states: int | None = MAX_STATES) -> None:
    """Write `format_prism` to a file, which appears whole or not at all.

    Raises:
        UsageError: as `format_prism`. OSError: the file cannot be written.
    """
    text = format_prism(chain, max_states=max_states)
    write_whole(path, text.encode())


def _header(chain: MarkovChain, added: AddedState | None) -> Iterator[str]:
    transitions = "float" if chain.rationals is None else "exact"
    initial = "float" if chain.initial_rationals is None else "exact"
    yield f"{MARKER} {FORMAT_VERSION}, transitions {transitions}, initial {initial}"
    yield f"// A Markov chain of {chain.n_states} states. The comment behind a command names its state; that behind a"
    yield "// label or a reward structure gives the name that its identifier stands for. In a name, \\u{hex} is the"
    yield "// character of that code point. tracebridge restores the chain from these comments exactly."
    if transitions == "float":
        yield "// Probabilities are doubles, digit by digit: a row sums to one up to their rounding only."
    yield from added_state_note(added, f"s={chain.n_states}")


def _module(chain: MarkovChain, added: AddedState | None) -> Iterator[str]:
    n = chain.n_states
    entries = nonzero_texts(chain.initial, chain.initial_rationals)
    start, mass = (n, "1") if added is not None else entries[0]
    comment = "" if mass in {"1", "1.0"} else f"  // mass {mass}"  # such as 7/7, which restores the count
    yield "module chain"
    yield f"  s : [0..{max(start, n - 1, 1)}] init {start};{comment}"  # PRISM refuses a range of one value
    yield ""
    indptr, indices = chain.transitions.indptr.tolist(), chain.transitions.indices.tolist()
    values = entry_texts(chain.transitions, chain.rationals)
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
