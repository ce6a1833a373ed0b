"""How sure the values of routers on whole deliberations are: clusters of deliberations drawn again.

In every replicate the chain is estimated anew from the deliberations drawn, and so are the routers' shares of correct
selections. Everything follows from sums over clusters (transitions, first polls, successes), so that
`tracebridge.confidence.bootstrap` draws them; and as every block is poll, route and utterance, a replicate takes a
system of no more equations than there are kinds of utterances. Of the assumption that what follows a selection depends
on the pool and the kind of poll alone, no resampling says anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.confidence.bootstrap import UNBOUNDED, quotient, totals_intervals
from tracebridge.confidence.deliberation import POLLS, ROUTES, SPEAKS
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracebridge.confidence.bootstrap import Bounds, ClusterInterval, Resampling
    from tracebridge.confidence.deliberation import Deliberations
    from tracebridge.confidence.router import RouteableBlocks
    from tracebridge.confidence.routing_process import RoutingProcess
    from tracebridge.confidence.table import Codes, Numbers

Floats: TypeAlias = NDArray[np.float64]

_R, _S = len(ROUTES), len(SPEAKS)
_LOOP = 1 - 1e-12
"""Keeps a replicate solvable in which some utterance is followed by others for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueIntervals:
    """Of one router: the probability to pass, the expected blocks, and by how much it passes more than the observed."""

    passes: ClusterInterval
    blocks: ClusterInterval
    gain: ClusterInterval


def router_intervals(
    routing: RoutingProcess,
    deliberations: Deliberations,
    blocks: RouteableBlocks,
    successes: Mapping[str, Numbers],
    resampling: Resampling,
) -> tuple[ValueIntervals, ...]:
    """Of the observed router first, then of each rule in order.

    Args:
        routing: of the action set ``valid``. deliberations: it was made of them, not refined.
        blocks, successes: as in `tracebridge.confidence.routing_values.router_values`.
    """
    table = blocks.pools.table
    refined = deliberations.refined(routing.poll_states)
    names = refined.states[len(deliberations.states) :]
    sums = _Sums(names=names, n_rules=len(successes))
    counted = sums.of_deliberations(refined, table.traces.cluster)
    place = {name: k for k, name in enumerate(names)}
    home = np.array([place.get(routing.poll_states[block], -1) for block in blocks.block.tolist()], dtype=np.int64)
    known = home >= 0
    cluster = table.cluster_of_block[blocks.block][known]
    counted.append((cluster, sums.known + home[known], np.ones(len(cluster))))
    counted += [
        (cluster, sums.success + k * sums.n_polls + home[known], success[known])
        for k, success in enumerate(successes.values())
    ]
    rows, columns, values = (np.concatenate(part) for part in zip(*counted, strict=True))
    totals = csr_array((values, (rows, columns)), shape=(table.n_clusters, sums.width))
    bounds: list[Bounds] = [(0.0, 1.0), (1.0, np.inf), UNBOUNDED] * (1 + len(successes))
    intervals = totals_intervals(
        totals, sums.values, np.arange(table.n_clusters), table.n_clusters, resampling=resampling, bounds=bounds
    )
    return tuple(
        ValueIntervals(passes=intervals[k], blocks=intervals[k + 1], gain=intervals[k + 2])
        for k in range(0, len(intervals), 3)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Where each sum stands: first polls, what follows utterances, routes from polls, utterances after routes, shares.

    Attributes:
        names: of the Q poll states, such as ``poll_M_wc``. n_rules: how many rules have successes.
    """

    names: tuple[str, ...]
    n_rules: int

    @property
    def n_polls(self) -> int:
        """Q."""
        return len(self.names)

    @property
    def following(self) -> int:
        """Where, after Q first polls, each utterance's following polls, passes and failures begin."""
        return self.n_polls

    @property
    def routed(self) -> int:
        """Where the routes of each poll state begin."""
        return self.following + _S * (self.n_polls + 2)

    @property
    def spoken(self) -> int:
        """Where the utterances of each route begin."""
        return self.routed + self.n_polls * _R

    @property
    def known(self) -> int:
        """Where the routeable blocks of each poll state begin, and then their successes rule by rule."""
        return self.spoken + _R * _S

    @property
    def success(self) -> int:
        """Where the successes of the first rule begin."""
        return self.known + self.n_polls

    @property
    def width(self) -> int:
        """How many sums there are."""
        return self.success + self.n_rules * self.n_polls

    def of_deliberations(self, refined: Deliberations, cluster_of_run: Codes) -> list[tuple[Codes, Codes, Floats]]:
        """Which cluster adds to which sum, for all steps of all deliberations."""
        codes = refined.codes.reshape(-1, 3)
        poll = codes[:, 0] - (len(POLLS) + _R + _S)
        route, speak = codes[:, 1] - len(POLLS), codes[:, 2] - len(POLLS) - _R
        lengths = np.diff(refined.offsets) // 3
        run = np.repeat(np.arange(len(lengths)), lengths)
        cluster = cluster_of_run[run]
        first = np.append(True, np.diff(run) > 0)[: len(run)]
        last = np.append(np.diff(run) > 0, True)[-len(run) :] if len(run) else first
        end_of = {Outcome.SUCCESS: self.n_polls, Outcome.FAILURE: self.n_polls + 1, Outcome.CENSORED: -1}
        ends = np.array([end_of[outcome] for outcome in refined.outcomes], dtype=np.int64)
        follows = np.where(last, ends[run], np.append(poll[1:], -1))
        seen = follows >= 0
        after = self.following + speak * (self.n_polls + 2) + follows
        columns = (
            (cluster[first], poll[first]),
            (cluster[seen], after[seen]),
            (cluster, self.routed + poll * _R + route),
            (cluster, self.spoken + route * _S + speak),
        )
        return [(rows, places, np.ones(len(rows))) for rows, places in columns]

    def values(self, sums: Floats) -> Floats:
        """From sums, shape (r, width), to passes, blocks and gain of the observed router and of every rule."""
        r, Q = len(sums), self.n_polls
        first = _shares(sums[:, :Q])
        following = _shares(sums[:, self.following : self.routed].reshape(r, _S, Q + 2))
        routed = _shares(sums[:, self.routed : self.spoken].reshape(r, Q, _R))
        spoken = sums[:, self.spoken : self.known].reshape(r, _R, _S)
        observed = routed @ _shares(spoken)
        after, present = _after_routes(spoken)
        known = sums[:, self.known : self.success]
        found = [_solved(first, observed, following)]
        for k in range(self.n_rules):
            begin = self.success + k * Q
            share = np.nan_to_num(quotient(sums[:, begin : begin + Q], known))
            found.append(_solved(first, self._under(share, after, present, observed), following))
        passes = found[0][0]
        columns = [column for p, b in found for column in (p, b, p - passes)]
        return np.stack(columns, axis=1)

    def _under(self, share: Floats, after: Floats, present: NDArray[np.bool_], observed: Floats) -> Floats:
        """What is spoken in each poll state (r, Q, utterances) under a rule that selects a correct poll so often.

        A kind that was never selected anywhere is no choice, and a state without a choice keeps what was observed, as
        `tracebridge.confidence.routing_process` has it.
        """
        made = observed.copy()
        for q, name in enumerate(self.names):
            _, pool, kinds = name.split("_")
            weights = {"c": share[:, q], "w": 1 - share[:, q]} if kinds == "wc" else {kinds: np.ones(len(share))}
            route = {kind: ROUTES.index(f"route_{pool}_{kind}") for kind in weights}
            there = {kind: weights[kind] * present[:, route[kind]] for kind in weights}
            if kinds == "wc":
                alone = present[:, route["w"]] != present[:, route["c"]]
                there = {kind: np.where(alone, present[:, route[kind]], there[kind]) for kind in there}
            spoken = sum(there[kind][:, None] * after[:, route[kind]] for kind in there)
            chosen = np.any([present[:, route[kind]] for kind in there], axis=0)
            made[:, q] = np.where(chosen[:, None], spoken, observed[:, q])
        return made


def _shares(counts: Floats) -> Floats:
    """Counts over their sum along the last axis; zeros where there are none."""
    return np.nan_to_num(quotient(counts, np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape)))


def _after_routes(spoken: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """What is spoken after each route (r, routes, utterances), borrowed from other pools where a kind was not selected.

    And where that is known at all, (r, routes).
    """
    kinds = [name[-1] for name in ROUTES]
    of_kind = {kind: spoken[:, [k == kind for k in kinds]].sum(axis=1) for kind in set(kinds)}
    pooled = np.stack([of_kind[kind] for kind in kinds], axis=1)
    there = spoken.sum(axis=-1) > 0
    return _shares(np.where(there[..., None], spoken, pooled)), pooled.sum(axis=-1) > 0


def _solved(first: Floats, spoken: Floats, following: Floats) -> tuple[Floats, Floats]:
    """The probability to pass and the expected blocks, each (r,).

    Args:
        first: (r, Q) first polls. spoken: (r, Q, utterances) in each poll state. following: (r, utterances, Q + 2).
    """
    polls = following[..., : spoken.shape[1]]
    rest = np.eye(_S) - _LOOP * (polls @ spoken)
    gains = np.stack([following[..., -2], polls.sum(axis=-1)], axis=-1)
    of_speak = np.linalg.solve(rest, gains)
    begun = (first[:, None, :] @ spoken @ of_speak)[:, 0, :]
    return begun[:, 0], 1 + begun[:, 1]
