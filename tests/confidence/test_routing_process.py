"""The router as a decision, against its definition: every deterministic router tried, one by one."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.confidence.random_deliberations import random_deliberations

from tracebridge.closedform import long_run_reliability
from tracebridge.confidence.commitment import commitment_pairs
from tracebridge.confidence.deliberation import Deliberations
from tracebridge.confidence.router import routeable_blocks, router_successes
from tracebridge.confidence.routing_pools import block_pools
from tracebridge.confidence.routing_process import refined_poll_states, routing_process
from tracebridge.errors import UsageError

SEEDS = range(8)
SETS = ("tie", "valid", "all")


def process_of(table, action_set):
    pools = block_pools(table)
    return routing_process(
        pools,
        Deliberations.of(pools, commitment_pairs(table)),
        action_set=action_set,
        calls_per_poll_round=3,
    )


def passes(chain):
    return long_run_reliability(chain, target="pass", exact=True)


def deterministic_values(process):
    choosing = [(state, names) for state, names in zip(process.states, process.actions, strict=True) if len(names) > 1]
    for actions in product(*(names for _, names in choosing)):
        yield passes(process.induced(dict(zip((state for state, _ in choosing), actions, strict=True))))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_observed_router_is_a_scheduler(seed):
    """What was observed follows from the choices, where all that was observed is a choice."""
    made = process_of(random_deliberations(seed), "all")
    induced = made.process.induced(made.observed_scheduler())
    assert passes(induced) == passes(made.observed.chain)
    values = list(deterministic_values(made.process))
    assert min(values) <= passes(induced) <= max(values)


@pytest.mark.parametrize("seed", SEEDS)
def test_routers_lie_between_the_worst_and_the_oracle(seed):
    table = random_deliberations(seed, n_traces=120)
    made = process_of(table, "valid")
    blocks = routeable_blocks(block_pools(table))
    values = list(deterministic_values(made.process))
    assert len(values) == 2  # only mixed pools leave a valid choice
    found = {}
    for rule, success in router_successes(blocks).items():
        correct = np.full(len(table.blocks.trace), np.nan)
        correct[blocks.block] = success
        found[rule] = passes(made.process.induced(made.scheduler(correct)))
        assert min(values) <= found[rule] <= max(values)
    assert {found["oracle"], found["worst"]} == set(values)


@pytest.mark.parametrize("seed", SEEDS)
def test_more_choices_widen_the_range(seed):
    table = random_deliberations(seed, n_traces=80)
    ranges = {}
    for action_set in ("valid", "all"):
        values = list(deterministic_values(process_of(table, action_set).process))
        ranges[action_set] = min(values), max(values)
    assert ranges["all"][0] <= ranges["valid"][0] <= ranges["valid"][1] <= ranges["all"][1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("action_set", SETS)
def test_poll_states_say_what_can_be_selected(seed, action_set):
    """Block by block, from the definition."""
    table = random_deliberations(seed, n_traces=10, unlabelled=0.05)
    polls, states = table.polls, refined_poll_states(block_pools(table), action_set)
    for block, state in enumerate(states):
        rows = range(*table.blocks.first_poll[block : block + 2].tolist())
        valid = [row for row in rows if polls.valid[row]]
        if any(polls.correct[row] == -1 for row in valid):
            assert state == ""
            continue
        labels = {int(polls.correct[row]) for row in valid}
        pool = "N" if not valid else "M" if len(labels) == 2 else "C" if labels == {1} else "W"
        top = max(polls.score[row] for row in rows)
        choice = {
            "tie": [row for row in rows if polls.score[row] == top],
            "valid": valid or list(rows),
            "all": list(rows),
        }[action_set]
        kinds = {"wc"[polls.correct[row]] if polls.valid[row] else "i" for row in choice}
        assert state == f"poll_{pool}_" + "".join(kind for kind in "wci" if kind in kinds)


def test_what_was_never_selected_is_borrowed_or_no_choice():
    table = random_deliberations(5, n_traces=30)
    made = process_of(table, "all")
    for state, actions in zip(made.process.states, made.process.actions, strict=True):
        if state.startswith("route_") and state not in made.observed.chain.states:
            assert any(f"pool {state[6]}" in note for note in made.notes)
        assert actions
    assert all(isinstance(share, Fraction) for row in made.observed_scheduler().values() for share in row.values())


def test_an_unknown_set_of_choices_is_refused():
    with pytest.raises(UsageError, match="tie, valid, all"):
        process_of(random_deliberations(0), "best")
