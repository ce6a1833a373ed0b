"""Writing an interval chain in the PRISM language: ``[lower,upper]`` in place of probabilities, one command a state.

PRISM and Storm read such a ``dtmc`` as the interval Markov chain in which nature chooses anew at each step. Both want
positive lower bounds for unbounded properties: an edge that may vanish can change which states are reached at all. The
text says how many there are; ``floor`` replaces them, for a comparison only, as the model is then a smaller set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.interval import compared_with_one
from tracebridge.errors import UsageError
from tracebridge.export.prism import MAX_STATES, command_line
from tracebridge.export.prism_text import (
    added_state_note,
    double_text,
    label_lines,
    nonzero_texts,
    quoted,
    reward_structure_lines,
)
from tracebridge.export.single_start import added_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.chain.interval import IntervalChain
    from tracebridge.export.single_start import AddedState


def format_prism_intervals(
    chain: IntervalChain, *, floor: float | None = None, max_states: int | None = MAX_STATES
) -> str:
    """The interval chain as the text of a PRISM model; bounds in the shortest form that reads back as the same double.

    State ``i`` is ``s=i``; labels, rewards and an added first state are those of `format_prism`.

    Args:
        chain: any interval chain.
        floor: replaces lower bounds of zero, and is cut off at the upper bound; None leaves them.
        max_states: refuse more states than that; None for no limit.

    Raises:
        UsageError: too many states, or a floor that is not between 0 and 1, or under which the lower bounds of a state
            sum to more than one.
    """
    if max_states is not None and chain.n_states > max_states:
        raise UsageError(f"{chain.n_states} states are too many for the PRISM language (limit {max_states})")
    lower = chain.lower.data
    vanishing = lower == 0
    if floor is not None:
        if not 0 < floor < 1:
            raise UsageError(f"a floor of lower bounds lies between 0 and 1, not {floor!r}")
        lower = np.where(vanishing, np.minimum(floor, chain.upper.data), lower)
        for i in np.flatnonzero(compared_with_one(lower, chain.lower.indptr) > 0).tolist():
            raise UsageError(f"state {chain.states[i]!r}: with the floor {floor!r} its lower bounds sum to over 1")
    added = added_state(chain.member)
    lines = [*_header(chain, int(np.count_nonzero(vanishing)), floor, added), "dtmc", ""]
    lines += [*_module(chain, lower.tolist(), added), "", *label_lines(chain.member, "s", added)]
    for name, structure in chain.rewards.items():
        lines += ["", *reward_structure_lines(name, structure, "s")]
    return "\n".join(lines) + "\n"


def _header(chain: IntervalChain, vanishing: int, floor: float | None, added: AddedState | None) -> Iterator[str]:
    yield f"// An interval Markov chain of {chain.n_states} states, written by tracebridge: each probability lies"
    yield "// between two bounds. The comment behind a command names its state."
    if vanishing and floor is None:
        yield f"// {vanishing} lower bounds are 0: PRISM refuses them, and so does Storm for properties without a step"
        yield "// bound."
    elif vanishing and floor is not None:
        yield f"// {vanishing} lower bounds of 0 were raised to {double_text(floor)}, as both tools want positive ones:"
        yield "// chains with a smaller probability there are left out, and the bounds of a property may be too narrow."
    yield from added_state_note(added, f"s={chain.n_states}")


def _module(chain: IntervalChain, lower: list[float], added: AddedState | None) -> Iterator[str]:
    n = chain.n_states
    entries = nonzero_texts(chain.initial, None)
    start = n if added is not None else entries[0][0]
    yield "module chain"
    yield f"  s : [0..{max(start, n - 1, 1)}] init {start};"  # PRISM refuses a range of one value
    yield ""
    indptr, indices = chain.upper.indptr.tolist(), chain.upper.indices.tolist()
    bounds = zip(lower, chain.upper.data.tolist(), strict=True)
    values = [f"[{double_text(low)},{double_text(high)}]" for low, high in bounds]
    for i, name in enumerate(chain.states):
        row = slice(indptr[i], indptr[i + 1])
        yield command_line(i, indices[row], values[row], quoted(name))
    if added is not None:
        masses = [f"[{mass},{mass}]" for _, mass in entries]
        yield command_line(n, [i for i, _ in entries], masses, "the initial distribution")
    yield "endmodule"
