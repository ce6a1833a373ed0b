"""What a chain that remembers more than its category asks of the first-order fit that it rests on, and of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.context_rows import context_counts, start_counts
from tracebridge.chain.expanded.path_document import in_document_order
from tracebridge.errors import ModelError, NothingToCheckError, UsageError
from tracebridge.states.expansion import ContextSpace
from tracebridge.states.model_form import ModelForm

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.states.run_paths import RunPaths


def categories_of(base: ChainFit) -> tuple[str, ...]:
    """The states of a first-order chain but its outcomes, which are the categories of richer ones."""
    return base.chain.states[: len(base.alpha)]


def runs_of_base(base: ChainFit, paths: RunPaths) -> RunPaths:
    """The runs over the categories of a first-order fit to them, in the order in which documents hold them.

    Raises:
        UsageError: for a fit with options that richer chains do not have.
        NothingToCheckError: if no run has a step.
        ModelError: if these are not the runs of the fit, or not under its policy for censored runs.
    """
    require_expandable(base)
    if not base.alpha:
        raise NothingToCheckError("no run has a step: there is nothing that a state could remember")
    ordered = in_document_order(over_states(paths, categories_of(base)))
    require_same_runs(base, ordered)
    return ordered


def require_expandable(base: ChainFit) -> None:
    """Raise UsageError for a first-order fit with options that richer chains do not have, saying what to do."""
    ended = base.counts.success.n_runs + base.counts.failure.n_runs
    if base.prior == "none" and base.policy != "failure" and not ended:
        raise UsageError(
            "no run was seen to end, and a chain that remembers more than its state has a prior, which alone would "
            "decide how runs end: count censored runs as failures (--censored failure, without --prior), or fit the "
            "model first-order"
        )
    reasons = [
        (base.weighted is not None, "weights of runs", "--weight"),
        (base.prior != "mass-one", f"the prior {base.prior}: the rows of categories have prior mass-one", "--prior"),
        (base.support != "full", f"support {base.support}: every state may follow every other", "--support"),
        (base.start != "observed", "a start that is not the observed one", "--start"),
    ]
    for holds, what, option in reasons:
        if holds:
            raise UsageError(
                f"a chain that remembers more than its state cannot be fitted with {what}; leave {option} out, or "
                "fit the model first-order"
            )


def over_states(paths: RunPaths, states: Sequence[str]) -> RunPaths:
    """The runs over other states, ascending, that hold all which they visit. Raises ModelError if these do not."""
    position = {name: i for i, name in enumerate(states)}
    moved = np.array([position.get(name, -1) for name in paths.states], dtype=np.int32)
    codes = moved[paths.codes] if paths.n_steps else np.empty(0, dtype=np.int32)
    if (codes < 0).any():
        lost = paths.states[int(paths.codes[int(np.argmax(codes < 0))])]
        raise ModelError(f"a run visits {lost!r}, which is no state of the first-order chain")
    return replace(paths, states=tuple(states), codes=codes)


def require_same_runs(base: ChainFit, paths: RunPaths) -> None:
    """Raise ModelError if runs over the base's states, under its policy, do not have its counts."""
    rows = base.row_counts()
    plain = ContextSpace(form=ModelForm(), n_states=len(paths.states))
    same = (
        np.array_equal(context_counts(plain, paths)[0, 0], rows.counts.toarray())
        and np.array_equal(start_counts(plain, paths)[0, 0], rows.starts)
        and np.array_equal(np.bincount(paths.codes, minlength=len(paths.states)), rows.visits)
    )
    if not same:
        raise ModelError("these are not the runs of the first-order chain, or not under its policy for censored runs")
