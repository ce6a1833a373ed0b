"""A runtime monitor: what the steps of a live run so far say about its end, looked up in tables made once.

The semantics is conditional probability: after the prefix ``X_0 .. X_t`` a path formula has the probability of being
satisfied among the runs of the chain that begin so, and a reward its conditional expectation; see
`tracebridge.inference.online.prefix_form`. Both are exact for the chain. That the chain describes such runs is for its
certificate to say, whose mark every reading carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.fit import ChainFit
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.closedform.batched.operators import total_reward, unbounded_until
from tracebridge.closedform.until import UntilForm
from tracebridge.errors import EngineError, UsageError
from tracebridge.inference.certificate import NOT_CERTIFIED
from tracebridge.inference.intervals import require_level
from tracebridge.inference.online.likelihood import PrefixLikelihood
from tracebridge.inference.online.monitored_run import MonitoredRun
from tracebridge.inference.online.property_table import PropertyTable, quantile_rank
from tracebridge.inference.online.reading import Estimate, Reading
from tracebridge.inference.online.state_copies import StateCopies
from tracebridge.inference.online.step_states import StepStates
from tracebridge.inference.posterior import DEFAULT_DRAWS, ChainPosterior
from tracebridge.inference.uncertainty import resolved_properties

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tracebridge.inference.expanded.standing import Standing
    from tracebridge.pctl.ast import PropertyFile
    from tracebridge.traces.model import Outcome, Step

    Floats = NDArray[np.float64]


def runtime_monitor(
    fit: ChainFit | ExpandedFit,
    properties: PropertyFile | Path | str | None = None,
    *,
    constants: Mapping[str, Fraction | bool] | None = None,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
    level: float = 0.95,
    standing: Standing | None = None,
) -> RuntimeMonitor:
    """Prepare a monitor of live runs: a few microseconds a step, and some for each property.

    Args:
        fit: the fitted chain. One with memory, clock, phases or classes gets no intervals: its draws are refits.
        properties: a property file, the path of one, or the text of one; None for none. Each must be one P of X, U, F,
            G, W or R with step bounds, or one R of F, C or I=k; the monitor lists the others as refused.
        constants: of the file. draws: of the posterior, 0 for no interval; fewer of large chains.
        seed: of draws, and of the runs that likelihoods are compared with. level: of intervals.
        standing: what the certificate says of the chain's paths; without it readings say that it is not certified.

    Raises:
        UsageError: for what is no fit, a level that is none or a negative number of draws.
        PropertyError: the file cannot be read, or a property does not fit the chain.
    """
    if not isinstance(fit, ChainFit | ExpandedFit):
        raise UsageError(f"a monitor takes a fitted chain, a ChainFit or an ExpandedFit, not {type(fit).__name__}")
    require_level(level)
    if draws < 0:
        raise UsageError(f"the number of draws is not negative, {draws} is")
    copies = stack = None
    if isinstance(fit, ExpandedFit):
        copies = StateCopies(fit)
    elif draws:
        stack = next(iter(ChainPosterior.of_fit(fit).draws(draws, seed)))
    base = fit.base if isinstance(fit, ExpandedFit) else fit
    tables, refused = [], {}
    for each in resolved_properties(fit, properties, constants) if properties is not None else ():
        try:
            table = PropertyTable.of(each, fit.chain, stack, level)
            if copies is not None:
                table.require_alike(copies.positions)
            tables.append(table)
        except EngineError as error:
            refused[each.name or each.text] = str(error)
    return RuntimeMonitor(
        fit=fit,
        base=base,
        copies=copies,
        tables=tuple(tables),
        refused=refused,
        success=_estimates(fit, stack, level, _success),
        steps_left=_estimates(fit, stack, level, _steps_left),
        likelihood=PrefixLikelihood(fit.chain, seed, copies),
        states=StepStates(base),
        draws=0 if stack is None else stack.draws,
        level=level,
        mark=NOT_CERTIFIED if standing is None else standing.mark,
    )


def _success(stack: ChainStack) -> Floats:
    everywhere = np.ones(stack.chain.n_states, dtype=np.bool_)
    return unbounded_until(stack, UntilForm(left=everywhere, right=stack.chain.label("success"), complemented=False))


def _steps_left(stack: ChainStack) -> Floats:
    """Steps after the present one: the present one is the first of those that a chain counts from its state."""
    going = (~stack.chain.absorbing).astype(np.float64)
    return np.maximum(total_reward(stack, going) - going[:, None], 0.0)


def _estimates(
    fit: ChainFit | ExpandedFit, stack: ChainStack | None, level: float, ask: Callable[[ChainStack], Floats]
) -> tuple[Estimate, ...]:
    """One estimate a state."""
    point = np.asarray(ask(ChainStack.of_chain(fit.chain)))[:, 0]
    lower = upper = np.full(len(point), np.nan)
    if stack is not None:
        ordered = np.sort(np.broadcast_to(ask(stack), (len(point), stack.draws)), axis=1)
        tail = (1 - level) / 2
        lower, upper = (ordered[:, quantile_rank(share, stack.draws)] for share in (tail, 1 - tail))
    rows = zip(point.tolist(), lower.tolist(), upper.tolist(), strict=True)
    return tuple(Estimate(value=value, lower=low, upper=high) for value, low, high in rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuntimeMonitor:
    """Tables over the states of a fitted chain; `start` watches a run.

    Attributes:
        fit: the chain. base: that of first order over the same states, which is the chain itself without copies.
        copies: of its states where they remember more.
        tables: of the properties. refused: names of properties and why they have no table.
        success, steps_left: estimates of each state, in the order of the chain.
        likelihood: of prefixes. states: of steps. draws: behind the intervals. level: of these.
        mark: what the certificate says against the chain, if anything.
        seen: transitions that runs of the corpus made, as positions ``i n + j`` in the base. seen_first: their starts.
        ends: the positions of success and failure in the base.
    """

    fit: ChainFit | ExpandedFit
    base: ChainFit
    copies: StateCopies | None
    tables: tuple[PropertyTable, ...]
    refused: Mapping[str, str]
    success: tuple[Estimate, ...]
    steps_left: tuple[Estimate, ...]
    likelihood: PrefixLikelihood
    states: StepStates
    draws: int
    level: float
    mark: str | None
    seen: frozenset[int] = field(init=False, repr=False)
    seen_first: frozenset[int] = field(init=False, repr=False)
    ends: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counts, chain = self.base.counts, self.base.chain
        position = {name: i for i, name in enumerate(chain.states)}
        success, failure = position["success"], position["failure"]
        flow = counts.success + counts.failure + counts.censored
        at = np.array([position.get(name, -1) for name in counts.states], dtype=np.int64)
        inner = flow.transitions.tocoo()
        pairs = (at[inner.coords[0]] * chain.n_states + at[inner.coords[1]]).tolist()
        for end, ends in ((success, counts.success.ends), (failure, counts.failure.ends)):
            pairs += (at[np.flatnonzero(ends)] * chain.n_states + end).tolist()
        if self.fit.policy == "failure":
            pairs += (at[np.flatnonzero(counts.censored.ends)] * chain.n_states + failure).tolist()
        object.__setattr__(self, "seen", frozenset(pairs))
        object.__setattr__(self, "seen_first", frozenset(at[np.flatnonzero(flow.starts)].tolist()))
        object.__setattr__(self, "ends", {"success": success, "failure": failure})

    def start(self) -> MonitoredRun:
        """A run before its first step."""
        return MonitoredRun(self)

    def read(self, prefix: Sequence[Step | str], outcome: Outcome | str | None = None) -> Reading:
        """The reading after all the steps of a prefix, and after its end if an outcome is given.

        Raises:
            UsageError: for no step and no outcome. As `MonitoredRun.step` and `MonitoredRun.end` raise.
        """
        run = self.start()
        reading = None
        for step in prefix:
            reading = run.step(step)
        if outcome is not None:
            reading = run.end(outcome)
        if reading is None:
            raise UsageError("a prefix has a step or an outcome")
        return reading
