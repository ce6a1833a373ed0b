"""What a reader must know about a fit, one sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.graph import reaching, recurrent_classes
from tracebridge.states.space import RESERVED_WORDS
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.chain.counts import CensoringPolicy, RowCounts, TransitionCounts
    from tracebridge.chain.estimate import StartName, Support
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.weights import WeightedCounts
    from tracebridge.states.abstraction import Abstraction
    from tracebridge.states.space import Renaming

_SHOWN = 5


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{text} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else text


def _some(names: Sequence[str], chosen: NDArray[np.bool_]) -> str:
    return _listed([names[i] for i in np.flatnonzero(chosen).tolist()])


def no_exit_seen(rows: RowCounts) -> NDArray[np.bool_]:
    """States from which no sequence of observed transitions leads to success or failure, shape (m,)."""
    m = len(rows.states)
    square = csr_array((rows.counts.data, rows.counts.indices, rows.counts.indptr), shape=(m, m + 2))
    square.resize((m + 2, m + 2))
    return ~reaching(square, np.arange(m + 2) >= m)[:m]


def run_notes(counts: TransitionCounts, rows: RowCounts, policy: CensoringPolicy, unseen: Sequence[str]) -> list[str]:
    """Censored runs and what was made of them, states that were left out, ends that no run had."""
    notes = []
    if counts.censored.n_runs:
        meaning = {
            "censored": "their transitions count, their ends do not",
            "failure": "they count as failures",
            "drop": "they are left out",
        }
        notes.append(f"censored runs: {counts.censored.n_runs} of {counts.n_runs}; {meaning[policy]}")
        if policy == "censored" and counts.censored.n_empty:
            notes.append(f"censored runs without a step, which tell nothing: {counts.censored.n_empty}")
    if unseen:
        notes.append(f"states without a step in the runs that count are not in the chain: {_listed(unseen)}")
    m = len(rows.states)
    if not m:
        notes.append(
            "no run that counts has a step: every run ends where it starts, and the chain is the pass rate alone"
        )
    exits = np.asarray(rows.counts[:, [m, m + 1]].sum(axis=0)).ravel() + rows.starts[m:]
    notes += [
        f"no run ended in {end}" for end, seen in zip(("success", "failure"), exits.tolist(), strict=True) if not seen
    ]
    return notes


def option_notes(
    rows: RowCounts,
    support: Support,
    start: StartName | Mapping[str, Fraction],
    weighted: WeightedCounts | None,
    *,
    smoothed: bool,
) -> list[str]:
    """What is impossible in the chain, weights, a start that is not the observed one, states that are declared only."""
    notes = []
    if support != "full" or not smoothed:
        possible = support if smoothed else "observed"
        notes.append(
            f"only {possible} transitions are possible in this chain: verdicts such as 'never' and 'almost surely' are "
            "relative to that"
        )
    if weighted is not None:
        notes.append(
            f"runs have weights: {weighted.counts.n_runs} count as {float(weighted.effective_runs):.4g} of equal "
            "weight, and rates and rows are weighted means"
        )
    if start == "smoothed":
        notes.append("the start is smoothed by the prior: runs may start in states in which none did")
    elif start != "observed":
        notes.append("the start was given, and is not that of the runs")
    declared_only = rows.visits == 0
    if declared_only.any():
        notes.append(
            f"declared states that no run visited: {_some(rows.states, declared_only)}; "
            "their rows are the prior alone, and they have no label but their name"
        )
    return notes


def row_notes(
    rows: RowCounts, chain: MarkovChain, *, smoothed: bool, stuck: NDArray[np.bool_], lost: NDArray[np.bool_]
) -> list[str]:
    """Rows that rest on no observation: on the prior alone, on nothing (stuck), or without a way out."""
    names = rows.states
    if smoothed:
        if not lost.any():
            return []
        return [f"from {_some(names, lost)} no way to an end was seen: there the prior alone decides how runs end"]
    notes = []
    if stuck.any():
        notes.append(
            f"what follows {_some(names, stuck)} was never seen, it only ends censored runs: it leads to 'stuck'"
        )
    for members in recurrent_classes(chain.transitions):
        if members[0] < len(names):
            inside = _listed([names[i] for i in members.tolist()])
            notes.append(f"no run was seen to leave {inside}: the chain stays there for ever")
    return notes


def abstraction_notes(abstraction: Abstraction) -> list[str]:
    """What was folded and renamed, and which words are no labels."""
    notes = []
    if abstraction.folded:
        steps = counted(sum(count for _, count in abstraction.folded), "step")
        if len(abstraction.folded) == sum(map(len, abstraction.space.members)):
            options = f"min_count={abstraction.min_count}" + (
                "" if abstraction.top is None else f", top={abstraction.top}"
            )
            left = "the lengths and ends of runs" if len(abstraction.space.names) == 1 else "what the properties name"
            notes.append(
                f"EVERY kind of step ({steps}) is folded into 'other' by {options}: the chain knows only {left}; "
                "lower min_count or raise top"
            )
        else:
            kinds = "rare kind of step" if len(abstraction.folded) == 1 else "rare kinds of step"
            are = "is" if len(abstraction.folded) == 1 else "are"
            notes.append(f"{len(abstraction.folded)} {kinds} ({steps}) {are} folded into 'other'")
    notes += [_renamed(renaming) for renaming in abstraction.space.propositions.renamings]
    if mixed := list(abstraction.space.mixed_labels):
        notes.append(
            "these words cannot be used in properties, because some states mix steps with and without them: "
            f"{_listed(mixed)}; assess with properties that name them keeps them apart"
        )
    return notes


def _renamed(renaming: Renaming) -> str:
    """What a property must write for a step's name or kind, and why."""
    reserved = renaming.original in RESERVED_WORDS
    why = "has a meaning of its own in chains and property files" if reserved else "names something else, too"
    return (
        f"properties call the {renaming.role} {renaming.original!r} by {renaming.proposition!r}, "
        f"because {renaming.original!r} {why}"
    )
