"""What a verdict on a fitted chain rests on: the transitions that no run was seen to make.

A qualitative verdict, such as "never" or "almost surely", is one relative to the chain's support: what it does not have
is taken to be impossible. What the data say of a transition that was never seen, out of a state that was left n times,
is that its probability is at most ``1 - .05^(1/n)`` with 95 % confidence.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.decisive_edges import MAX_EDGES, ReachabilityKind, edges_that_matter, reachability_holds
from tracebridge.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit

_OUTCOMES = ("success", "failure")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenEdge:
    """A transition that no run made.

    Attributes:
        source, target: names; the target is a state, ``success`` or ``failure``.
        exits: how often the source was left; the effective number where runs have weights.
        bound: the one-sided upper confidence bound of its probability, 1 where the source was never left. It holds
            for this transition, and for all the unseen ones out of one source together, but not for those of several.
        in_chain: the fitted chain has it all the same: the prior gives it a probability.
        declared: whether the declared graph has it, None without one.
    """

    source: str
    target: str
    exits: float
    bound: float
    in_chain: bool
    declared: bool | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {field: getattr(self, field) for field in self.__slots__}


def unseen_edges(fit: ChainFit, *, level: float = 0.95, sources: Collection[str] | None = None) -> list[UnseenEdge]:
    """The transitions among the states of a fit and to both outcomes that no run made, by source and target.

    Args:
        fit: the fit, whose censoring policy says what counts.
        level: of the one-sided confidence bounds, between 0 and 1.
        sources: the states to look at; all of them by default.

    Raises:
        UsageError: for another level, or a source that is no state of the fit.
        UnsupportedError: for more than five million transitions.
    """
    rows = fit.row_counts()
    m = len(rows.states)
    position = {name: i for i, name in enumerate(rows.states)}
    if sources is not None and (strange := sorted(set(sources) - set(position))):
        raise UsageError(f"no state that runs can leave is called {strange[0]!r}")
    chosen = np.arange(m) if sources is None else np.array(sorted(position[name] for name in {*sources}), dtype=int)
    if len(chosen) * (m + 2) > MAX_EDGES:
        raise UnsupportedError(
            f"{len(chosen)} states have up to {len(chosen) * (m + 2)} unseen transitions, more than can be listed; "
            "ask for those of some sources, or of one verdict"
        )
    unseen = rows.counts[chosen].toarray() == 0
    own, target = np.nonzero(unseen)
    return _with_bounds(fit, np.column_stack([chosen[own], target]), level=level)


def _with_bounds(fit: ChainFit, pairs: NDArray[np.int64], *, level: float) -> list[UnseenEdge]:
    """The transitions given as positions of source and target in the fitted chain, shape (k, 2)."""
    rows = fit.row_counts()
    exits = [float(n * rows.unit) for n in np.asarray(rows.counts.sum(axis=1)).ravel().tolist()]
    names = fit.chain.states
    own, following = fit.chain.transitions.tocoo().coords
    places = np.array([len(names), 1])
    inside = np.isin(pairs @ places, np.column_stack([own, following]) @ places)
    edges = []
    for (i, j), present in zip(pairs.tolist(), inside.tolist(), strict=True):
        declared = None
        if fit.declared is not None:
            declared = fit.declared.may_follow(names[i], names[j])
        edges.append(
            UnseenEdge(
                source=names[i],
                target=names[j],
                exits=exits[i],
                bound=zero_count_bound(exits[i], level=level),
                in_chain=present,
                declared=declared,
            )
        )
    return edges


def zero_count_bound(n: float, *, level: float = 0.95) -> float:
    """``1 - (1 - level)^(1/n)``: the upper confidence bound of a probability after none of n; 1 for n = 0.

    Raises:
        UsageError: for a level that does not lie between 0 and 1, or a negative n.
    """
    if not 0 < level < 1 or not n >= 0:
        raise UsageError(f"a confidence level lies between 0 and 1 and a number is not negative: {level!r}, {n!r}")
    return -math.expm1(math.log1p(-level) / n) if n else 1.0


# ---------------------------------------------------------------- verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSupport:
    """A verdict about reachability on a fitted chain, and what it rests on.

    Attributes:
        kind: what is asked; see `edges_that_matter`.
        holds: the answer on the fitted chain.
        holds_as_observed: the answer on the transitions and starts that were observed; None where some state was never
            seen to be left. Where it differs from ``holds``, the answer comes from the prior, the declared graph or the
            start that was given.
        edges: the transitions that the chain does not have and that would change the answer, each by itself.
    """

    kind: ReachabilityKind
    holds: bool
    holds_as_observed: bool | None
    edges: tuple[UnseenEdge, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "kind": self.kind,
            "holds": self.holds,
            "holds_as_observed": self.holds_as_observed,
            "edges": [edge.to_dict() for edge in self.edges],
        }


def verdict_support(
    fit: ChainFit,
    target: str | NDArray[np.bool_],
    kind: ReachabilityKind,
    *,
    through: str | NDArray[np.bool_] | None = None,
    level: float = 0.95,
) -> VerdictSupport:
    """What a verdict about reaching ``target`` from the start rests on.

    ``P<=0 [ F "delete" ]`` denies ``possible`` for ``"delete"``; see `edges_that_matter` for the other kinds. On full
    support with a prior the chain has every transition, and no verdict rests on one that it lacks. Unless the start
    was given, every set of new edges that makes an impossible target possible holds one of those listed.

    Args:
        fit: the fit.
        target, through: a label or a state of the chain, or a truth value for each of its states, shape (n,).
        kind: what is asked.
        level: of the one-sided confidence bounds.

    Raises:
        ModelError: for a label that the chain does not have.
        UsageError: for another kind or level.
        UnsupportedError: for more than five million edges.
    """
    chain = fit.chain
    n, m = chain.n_states, len(fit.alpha)
    aim = chain.label(target) if isinstance(target, str) else target
    passable = chain.label(through) if isinstance(through, str) else through
    allowed = np.arange(n) < m
    start = chain.initial > 0
    pairs = edges_that_matter(chain.transitions, allowed, start, aim, kind, through=passable)
    pairs = pairs[pairs[:, 1] < m + len(_OUTCOMES)]  # nothing but a lack of observations leads to stuck
    observed = None
    rows = fit.row_counts()
    if rows.counts.sum(axis=1).all():
        steps, ends = rows.counts.tocoo(), np.arange(m, n)
        own, following = steps.coords
        coordinates = np.concatenate([own, ends]), np.concatenate([following, ends])
        seen = csr_array((np.ones(len(coordinates[0])), coordinates), shape=(n, n))
        first = np.zeros(n, dtype=np.bool_)
        first[: m + 2] = rows.starts > 0
        observed = reachability_holds(seen, first, aim, kind, through=passable)
    return VerdictSupport(
        kind=kind,
        holds=reachability_holds(chain.transitions, start, aim, kind, through=passable),
        holds_as_observed=observed,
        edges=tuple(_with_bounds(fit, pairs, level=level)),
    )
