"""The router as a decision: deliberations as a Markov decision process that chooses the kind of poll that is selected.

The poll states of the chain are apart by what the router could select (``poll_M_wc``: a wrong or a correct poll), and
the observed probabilities of selection give way to choices. The best scheduler for ``Pmax=? [ F "pass" ]`` is then the
oracle router, the one for ``Pmin`` the worst, and every fixed router is a scheduler in between.

All of this rests on *selection-ignorability*: what is spoken and what follows depends on the pool and on the kind of
poll that was selected, not on how it came to be selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from tracebridge.chain import RationalMatrix, RationalVector
from tracebridge.chain.decision import DecisionProcess
from tracebridge.confidence.deliberation import POOLS, block_pool_codes
from tracebridge.confidence.deliberation_chain import fit_deliberations
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.chain import ChainFit
    from tracebridge.confidence.deliberation import Deliberations
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Numbers

#: Which polls the router may select: those that tie on the highest score, the valid ones, or all.
ActionSet = Literal["tie", "valid", "all"]

_KINDS = "wci"  # the first two are indices by correctness
_MEANING = {"w": "wrong", "c": "correct", "i": "invalid"}
#: The action that selects a poll of each kind.
ACTIONS = {kind: f"select_{meaning}" for kind, meaning in _MEANING.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoutingProcess:
    """The routing MDP of a corpus.

    Attributes:
        process: the states of the refined chain; in each poll state a choice for each kind that the router may select.
        observed: the chain that it was made of: the same states under the routing that was observed.
        action_set: which polls the router may select.
        poll_states: (B,) the poll state of each block of the corpus, such as ``poll_M_wc``; empty where nobody was
            polled or a label is missing.
        notes: what a reader must know.
    """

    process: DecisionProcess
    observed: ChainFit
    action_set: ActionSet
    poll_states: tuple[str, ...]
    notes: tuple[str, ...]

    def observed_scheduler(self) -> dict[str, dict[str, Fraction]]:
        """The routing that was observed, as far as the action set has it.

        Raises:
            UsageError: naming a poll state in which a kind was selected that the router may not select here.
        """
        chain, decisions = self.observed.chain, {}
        rows = chain.exact_transitions()
        for state, actions in self._choosing():
            selected = {chain.states[j]: share for j, share in rows.row(chain.index(state)).items()}
            weights = {ACTIONS[name[-1]]: share for name, share in selected.items()}
            if foreign := sorted(set(weights) - set(actions)):
                raise UsageError(
                    f"in {state} {foreign[0]} was observed, which is no choice of the set {self.action_set!r}"
                )
            decisions[state] = weights
        return decisions

    def scheduler(self, correct: Numbers) -> dict[str, dict[str, Fraction]]:
        """A router that selects valid polls, as a scheduler.

        Args:
            correct: (B,) the probability with which it selects a correct poll in each block of the corpus, NaN where it
                does not route; see `tracebridge.confidence.router.router_successes`.

        Returns:
            For each poll state with a choice the mean weights of its actions over the blocks in this state.
        """
        home, decisions = np.array(self.poll_states), {}
        for state, actions in self._choosing():
            known = correct[(home == state) & ~np.isnan(correct)]
            if ACTIONS["c"] not in actions or ACTIONS["w"] not in actions:
                decisions[state] = {next(action for action in actions if action != ACTIONS["i"]): Fraction(1)}
                continue
            share = sum(map(Fraction, known.tolist()), Fraction(0)) / max(1, len(known))
            decisions[state] = {ACTIONS["c"]: share, ACTIONS["w"]: 1 - share}
        return decisions

    def _choosing(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The states in which there is something to choose, and their actions."""
        for state, actions in zip(self.process.states, self.process.actions, strict=True):
            if len(actions) > 1:
                yield state, actions


def routing_process(
    pools: BlockPools,
    deliberations: Deliberations,
    *,
    action_set: ActionSet = "valid",
    calls_per_poll_round: Fraction | int,
) -> RoutingProcess:
    """The routing MDP, by maximum likelihood.

    What follows a kind that was never selected from a pool is taken from the selections of that kind from other pools,
    and said so; a kind that was never selected at all is no choice.

    Raises:
        UsageError: for an action set that is none.
        FitError, NothingToCheckError: as `fit_counts` does.
    """
    poll_states = refined_poll_states(pools, action_set)
    refined = deliberations.refined(poll_states)
    observed = fit_deliberations(refined, calls_per_poll_round=calls_per_poll_round, prior="none")
    process, notes = _with_choices(observed)
    return RoutingProcess(
        process=process,
        observed=observed,
        action_set=action_set,
        poll_states=tuple(poll_states),
        notes=(*notes, *observed.notes),
    )


def refined_poll_states(pools: BlockPools, action_set: ActionSet) -> list[str]:
    """(B,) the pool of each block with what a router may select there: ``poll_M_wc``; see `RoutingProcess`.

    Where no poll is valid the set ``valid`` has invalid ones: the protocol lets somebody speak.

    Raises:
        UsageError: for an action set that is none.
    """
    if action_set not in get_args(ActionSet):
        raise UsageError(f"a router can choose from {', '.join(get_args(ActionSet))}, not from {action_set!r}")
    polls = pools.table.polls
    if action_set == "tie":
        selectable = pools.score == pools.maxima(pools.score)[polls.block]
    elif action_set == "valid":
        selectable = polls.valid | (pools.n_valid == 0)[polls.block]
    else:
        selectable = np.ones(len(polls.block), dtype=np.bool_)
    kind = np.where(polls.valid, pools.correct, _KINDS.index("i"))
    there = np.zeros((len(pools.n_polls), len(_KINDS)), dtype=np.int64)
    there[polls.block[selectable], kind[selectable]] = 1
    sets = ["".join(letter for place, letter in enumerate(_KINDS) if code >> place & 1) for code in range(8)]
    known = (pools.n_polls > 0) & pools.labelled
    codes = np.where(known, there @ (1 << np.arange(len(_KINDS))), 0).tolist()
    pool_of = block_pool_codes(pools).tolist()
    return [f"poll_{POOLS[pool]}_{sets[code]}" if code else "" for pool, code in zip(pool_of, codes, strict=True)]


def _with_choices(fit: ChainFit) -> tuple[DecisionProcess, list[str]]:
    """The chain of a fit with choices in place of the observed routing, and what was done for want of observations."""
    chain, notes = fit.chain, []
    rows = chain.exact_transitions()
    states = list(chain.states)
    position = {name: i for i, name in enumerate(states)}
    borrowed: dict[str, dict[int, Fraction]] = {}
    choices: list[list[tuple[str, dict[int, Fraction]]]] = []
    for i, state in enumerate(chain.states):
        if not state.startswith("poll_"):
            choices.append([("", rows.row(i))])
            continue
        _, pool, kinds = state.split("_")
        of_state = []
        for kind in kinds:
            route = f"route_{pool}_{kind}"
            if route not in position:
                following = _following(fit, kind)
                if not following:
                    notes.append(f"no {_MEANING[kind]} poll was ever selected: in {state} that is no choice here")
                    continue
                position[route] = len(states)
                states.append(route)
                borrowed[route] = {position[name]: share for name, share in following.items()}
                notes.append(
                    f"no {_MEANING[kind]} poll was selected from pool {pool}: what would follow is that of other pools"
                )
            of_state.append((ACTIONS[kind], {position[route]: Fraction(1)}))
        # A state in which nothing that may be selected ever was keeps what was observed.
        choices.append(of_state or [("", rows.row(i))])
    choices += [[("", row)] for row in borrowed.values()]
    if fit.vocabulary is None:
        raise UsageError("the routing process is made of a chain that was fitted to deliberations")
    return (
        DecisionProcess(
            states=tuple(states),
            actions=tuple(tuple(name for name, _ in of_state) for of_state in choices),
            transitions=RationalMatrix.from_rows([row for of_state in choices for _, row in of_state], len(states)),
            initial=RationalVector.from_fractions(  # type: ignore[arg-type]
                [*chain.exact_initial(), *(Fraction(0) for _ in borrowed)]
            ),
            labels={**_outcomes(states), **fit.vocabulary.labels_of(states)},
            rewards=fit.vocabulary.rewards_of(states),
        ),
        notes,
    )


def _following(fit: ChainFit, kind: str) -> dict[str, Fraction]:
    """What was spoken after selections of this kind, whatever the pool; empty if there were none."""
    rows = fit.row_counts()
    chosen = [i for i, name in enumerate(rows.states) if name.startswith("route_") and name.endswith(f"_{kind}")]
    counts = np.asarray(rows.counts[chosen].sum(axis=0)).ravel()[: len(rows.states)].tolist()
    total = sum(counts)
    return {name: Fraction(count, total) for name, count in zip(rows.states, counts, strict=True) if count}


def _outcomes(states: list[str]) -> dict[str, NDArray[np.bool_]]:
    """The labels that every fitted chain has."""
    masks = {word: np.array([name == word for name in states]) for word in ("success", "failure", "stuck")}
    return {**masks, "absorbed": np.any(list(masks.values()), axis=0)}
