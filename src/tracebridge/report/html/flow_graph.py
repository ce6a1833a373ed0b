"""What a drawing of a chain shows: how often a run visits each state and takes each transition, on the average.

States that remember more than their step are drawn together as one node, and so are the rarely visited ones of a large
chain: expected visits and expected transitions simply add up, and their quotient is the probability that a visit to a
node goes on to another. Everything follows from the recorded chain by the closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.expanded.naming import CATEGORY
from tracebridge.closedform import absorption_probabilities, expected_visits
from tracebridge.inference.posterior import ChainPosterior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

#: A graph has so many nodes at most, ends of runs not counted.
MOST_NODES = 200

#: Transitions are drawn, the most frequent first, until they make up this share of all changes of node ...
DRAWN_SHARE = 0.9

#: ... or are this many for each node.
DRAWN_PER_NODE = 2

Kind = Literal["step", "success", "failure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowNode:
    """A state, or several.

    Attributes:
        name: of the state, or of what its members have in common. kind: absorbing states are success or failure.
        members: how many states it stands for. folded: of rarely visited ones that are together, how many; else 0.
        start: the share of runs that begin here.
        visits: expected steps of a run here; of an absorbing state the probability to end here.
        failing: the probability that a run that is here does not succeed, the mean over visits; None if there are none.
        stays: the probability that the next step is here again.
    """

    name: str
    kind: Kind
    members: int
    folded: int
    start: float
    visits: float
    failing: float | None
    stays: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEdge:
    """A transition between two different nodes, by their positions.

    Attributes:
        flow: how often a run takes it, on the average. probability: that a visit to the source goes on so.
        deviation: the posterior standard deviation of that; None where transitions are no draws of their own.
        observed: how often the runs took it; None for states that remember more.
    """

    source: int
    target: int
    flow: float
    probability: float
    deviation: float | None
    observed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """Nodes and transitions of a chain.

    Attributes:
        nodes: those that a run can visit, in the order of the chain, the ends of runs last.
        edges: by flow, the largest first. drawn: the positions of those that belong into a drawing.
        unreachable: how many states no run can visit.
    """

    nodes: tuple[FlowNode, ...]
    edges: tuple[FlowEdge, ...]
    drawn: tuple[int, ...]
    unreachable: int

    @property
    def drawn_share(self) -> float:
        """The share of all expected changes of node that is drawn."""
        total = sum(edge.flow for edge in self.edges)
        return sum(self.edges[k].flow for k in self.drawn) / total if total else 1.0

    @property
    def folded_share(self) -> float:
        """The share of all expected visits that goes to rarely visited states that are one node."""
        total = sum(node.visits for node in self.nodes if node.kind == "step")
        return sum(node.visits for node in self.nodes if node.folded) / total if total else 0.0

    @property
    def least_drawn(self) -> float:
        """All transitions taken more often than this are drawn."""
        left_out = set(range(len(self.edges))) - set(self.drawn)
        return max((self.edges[k].flow for k in left_out), default=0.0)


def flow_graph(fit: ChainFit | ExpandedFit, *, most_nodes: int = MOST_NODES) -> FlowGraph:
    """The graph of a fitted chain.

    Raises:
        ModelError: not every run ends.
    """
    chain = fit.chain
    form = AbsorbingChain(chain=chain)
    visits = np.zeros(chain.n_states)
    visits[form.transient] = expected_visits(form)
    succeeds = chain.label("success")[form.absorbing]
    failing = (~chain.label("success")).astype(np.float64)
    failing[form.transient] = absorption_probabilities(form)[:, ~succeeds].sum(axis=1)
    P = chain.transitions.tocoo()
    sources, targets = (axis.astype(np.int64) for axis in P.coords)
    moving = ~chain.absorbing[sources]
    sources, targets = sources[moving], targets[moving]
    flows = visits[sources] * P.data[moving]
    visits[form.absorbing] = chain.initial[form.absorbing]
    np.add.at(visits, targets[chain.absorbing[targets]], flows[chain.absorbing[targets]])

    names, node_of, n_folded = _nodes(fit, visits, most_nodes)
    n = len(names)
    pairs, position = np.unique(node_of[sources] * n + node_of[targets], return_inverse=True)
    between = np.bincount(position, weights=flows, minlength=len(pairs))
    node_visits = np.bincount(node_of, weights=visits, minlength=n)
    members = np.bincount(node_of, minlength=n)
    starts = np.bincount(node_of, weights=chain.initial, minlength=n)
    losses = np.bincount(node_of, weights=visits * failing, minlength=n)
    ends = np.zeros(n, dtype=np.bool_)
    ends[node_of[form.absorbing]] = True
    wins = np.zeros(n, dtype=np.bool_)
    wins[node_of[chain.label("success")]] = True

    kept = np.flatnonzero((node_visits > 0) | ends)
    order = [*kept[~ends[kept]].tolist(), *kept[wins[kept]].tolist(), *kept[ends[kept] & ~wins[kept]].tolist()]
    place = {node: k for k, node in enumerate(order)}
    a, b = pairs // n, pairs % n
    stays = dict(zip(a[a == b].tolist(), (between[a == b] / node_visits[a[a == b]]).tolist(), strict=True))
    nodes = tuple(
        FlowNode(
            name=names[node],
            kind="step" if not ends[node] else "success" if wins[node] else "failure",
            members=int(members[node]),
            folded=n_folded.get(node, 0),
            start=float(starts[node]),
            visits=float(node_visits[node]),
            failing=float(losses[node] / node_visits[node]) if node_visits[node] > 0 else None,
            stays=stays.get(node, 0.0),
        )
        for node in order
    )
    details = _details(fit, sources, targets) if n == chain.n_states else {}
    found = [
        FlowEdge(
            source=place[i],
            target=place[j],
            flow=flow,
            probability=flow / float(node_visits[i]),
            deviation=details[i, j][0] if details else None,
            observed=details[i, j][1] if details else None,
        )
        for i, j, flow in zip(a.tolist(), b.tolist(), between.tolist(), strict=True)
        if i != j and flow > 0
    ]
    edges = tuple(sorted(found, key=lambda edge: (-edge.flow, edge.source, edge.target)))
    return FlowGraph(
        nodes=nodes,
        edges=edges,
        drawn=drawn_edges(edges, len(nodes)),
        unreachable=int((visits[form.transient] == 0).sum()),
    )


def name_of_rest(number: int) -> str:
    """Of a node that stands for so many rarely visited ones."""
    return f"{number} more states"


def _nodes(fit: ChainFit | ExpandedFit, visits: Floats, most: int) -> tuple[list[str], Integers, dict[int, int]]:
    """The names of the nodes, the node of each state, shape (n,), and how many are folded into which node, if any."""
    chain = fit.chain
    names, node_of = list(chain.states), np.arange(chain.n_states)
    if isinstance(fit, ExpandedFit) and CATEGORY in chain.variables:
        node_of = chain.variables[CATEGORY].astype(np.int64)
        names = _category_names(fit, node_of)
    total = np.bincount(node_of, weights=np.where(chain.absorbing, 0.0, visits), minlength=len(names))
    passing = np.unique(node_of[~chain.absorbing])
    if len(passing) <= most:
        return names, node_of, {}
    rare = passing[np.argsort(-total[passing], kind="stable")[most - 1 :]]
    node_of = np.where(np.isin(node_of, rare), rare[0], node_of)
    names[int(rare[0])] = name_of_rest(len(rare))
    used, node_of = np.unique(node_of, return_inverse=True)
    return [names[k] for k in used.tolist()], node_of, {int(np.searchsorted(used, rare[0])): len(rare)}


def _category_names(fit: ExpandedFit, category: Integers) -> list[str]:
    """What is the label of all copies of a category, and the names of the absorbing states."""
    chain, base = fit.chain, fit.base.chain
    first = np.unique(category, return_index=True)[1]
    ends = {int(category[i]): chain.states[i] for i in np.flatnonzero(chain.absorbing).tolist()}
    return [ends.get(c, base.states[c]) for c in range(len(first))]


def _details(
    fit: ChainFit | ExpandedFit, sources: Integers, targets: Integers
) -> dict[tuple[int, int], tuple[float | None, int | None]]:
    """Of each transition of a chain that remembers nothing: its posterior deviation, and how often it was seen."""
    if isinstance(fit, ExpandedFit):
        return dict.fromkeys(zip(sources.tolist(), targets.tolist(), strict=True), (None, None))
    P, a = fit.chain.transitions, ChainPosterior.of_fit(fit).concentrations
    row = np.repeat(np.arange(fit.chain.n_states), np.diff(P.indptr))
    totals = np.add.reduceat(a, P.indptr[:-1])[row]
    deviations = np.where(a > 0, np.sqrt(P.data * (1 - P.data) / (totals + 1)), 0.0)
    by_edge = dict(zip(zip(row.tolist(), P.indices.tolist(), strict=True), deviations.tolist(), strict=True))
    counts = fit.counts.under(fit.policy)
    columns = [*counts.states, "success", "failure"]
    i, j = counts.counts.tocoo().coords
    seen = {
        (counts.states[r], columns[c]): int(number)
        for r, c, number in zip(i.tolist(), j.tolist(), counts.counts.tocoo().data.tolist(), strict=True)
    }
    names = fit.chain.states
    return {
        (i, j): (by_edge[i, j], seen.get((names[i], names[j]), 0))
        for i, j in zip(sources.tolist(), targets.tolist(), strict=True)
    }


def drawn_edges(edges: Sequence[FlowEdge], n_nodes: int) -> tuple[int, ...]:
    """The most frequent transitions, and of each node the most frequent one in and out."""
    wanted, sofar = DRAWN_SHARE * sum(edge.flow for edge in edges), 0.0
    chosen: set[int] = set()
    for k, edge in enumerate(edges):
        if sofar >= wanted or k >= DRAWN_PER_NODE * n_nodes:
            break
        chosen.add(k)
        sofar += edge.flow
    entered: set[int] = set()
    left: set[int] = set()
    for k, edge in enumerate(edges):
        if edge.source not in left or edge.target not in entered:
            chosen.add(k)
        left.add(edge.source)
        entered.add(edge.target)
    return tuple(sorted(chosen))
