"""Router counterfactuals: the hand fixture, a reference by enumeration, the identities, and the real polls."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.confidence.hand_fixture import hand_table

from tracebridge.confidence.router import routeable_blocks, router_successes, router_tallies, success_by_value
from tracebridge.confidence.routing import routing_tallies
from tracebridge.confidence.routing_pools import block_pools
from tracebridge.confidence.table import ConfidenceTable
from tracebridge.errors import UsageError
from tracebridge.studies.broadcast_notation import Block, Run, build_table

VALID_ONLY = ("top_confidence_tie_random", "random_valid", "majority_vote", "confidence_weighted_vote")


def successes(table: ConfidenceTable, **options: str) -> dict[str, float]:
    found = router_successes(routeable_blocks(block_pools(table)), **options)  # type: ignore[arg-type]
    return {name: float(values.mean()) for name, values in found.items()}


def test_hand_fixture() -> None:
    found = successes(hand_table())
    expected = {
        "runtime_argmax": 0.333333,
        "first_listed_argmax": 0.333333,
        "top_confidence_tie_random": 0.666667,
        "random_valid": 0.555556,
        "majority_vote": 0.666667,
        "confidence_weighted_vote": 0.833333,
        "oracle": 1.0,
        "worst": 0.0,
    }
    assert found == pytest.approx(expected, abs=5e-7)
    assert successes(hand_table(), candidate_set="all")["top_confidence_tie_random"] == 0.5
    with pytest.raises(UsageError, match="valid, all"):
        successes(hand_table(), candidate_set="some")


polls = st.tuples(st.sampled_from("cwi"), st.integers(1, 4), st.sampled_from("xyz"))
corpora = st.lists(st.lists(polls, min_size=1, max_size=5), min_size=1, max_size=5)


def table_of(corpus: list[list[tuple[str, int, str]]]) -> ConfidenceTable:
    words = [" ".join(f"{kind}{score}:{answer}" for kind, score, answer in block) for block in corpus]
    return build_table([Run(blocks=[Block(word)]) for word in words], n_agents=5)


@settings(max_examples=25)
@given(corpora)
def test_against_enumeration(corpus: list[list[tuple[str, int, str]]]) -> None:
    found = router_successes(routeable_blocks(block_pools(table_of(corpus))))
    r = 0
    for block in corpus:
        valid = [(score, answer, kind == "c") for kind, score, answer in block if kind != "i"]
        if not valid:
            continue
        top = max(score for score, _, _ in valid)
        first = max(block, key=lambda poll: poll[1])  # the first of equals
        expected = {
            "runtime_argmax": float(first[0] == "c"),
            "first_listed_argmax": float(first[0] == "c"),
            "top_confidence_tie_random": np.mean([y for score, _, y in valid if score == top]),
            "random_valid": np.mean([y for _, _, y in valid]),
            "oracle": float(any(y for _, _, y in valid)),
            "worst": float(all(y for _, _, y in valid)),
        }
        for rule, weight in (("majority_vote", lambda s: 1), ("confidence_weighted_vote", lambda s: s)):
            votes: Counter[str] = Counter()
            for score, answer, _ in valid:
                votes[answer] += weight(score)
            winners = [answer for answer, n in votes.items() if n == max(votes.values())]
            expected[rule] = np.mean([np.mean([y for _, a, y in valid if a == answer]) for answer in winners])
        for rule, value in expected.items():
            assert found[rule][r] == pytest.approx(value, abs=1e-12), rule
        r += 1
    assert all(len(values) == r for values in found.values())


@settings(max_examples=25)
@given(corpora)
def test_identities(corpus: list[list[tuple[str, int, str]]]) -> None:
    pools = block_pools(table_of(corpus))
    metric = {tally.name: tally.value for tally in routing_tallies(pools)}
    blocks = routeable_blocks(pools)
    found = router_successes(blocks)
    hits = found["runtime_argmax"].sum()
    assert hits == metric["CRA"].numerator if metric["CRA"].denominator else hits == 0
    assert hits == metric["HRWP"].numerator if metric["HRWP"].denominator else hits == 0
    assert found["oracle"].sum() == metric["HRWP"].denominator
    for rule in VALID_ONLY:
        assert np.all(found["worst"] <= found[rule] + 1e-12)
        assert np.all(found[rule] <= found["oracle"] + 1e-12)
    for value in router_tallies(blocks, found):
        if value.name.startswith("gap_to_oracle") and len(blocks.block):
            rule = value.name.removeprefix("gap_to_oracle[").removesuffix("]")
            assert value.value.value == pytest.approx(float(np.mean(found["oracle"] - found[rule])), abs=1e-12)
        if value.name.startswith("gain_over_observed"):
            gain = found[value.name.removeprefix("gain_over_observed[").removesuffix("]")] - found["runtime_argmax"]
            assert value.value.denominator == np.count_nonzero(~np.isnan(gain))
            if value.value.denominator:
                assert value.value.value == pytest.approx(float(np.nanmean(gain)), abs=1e-12)


@settings(max_examples=20)
@given(corpora, st.randoms(use_true_random=False))
def test_rules_that_break_ties_at_random_do_not_see_the_order(
    corpus: list[list[tuple[str, int, str]]], random: object
) -> None:
    shuffled = [random.sample(block, len(block)) for block in corpus]  # type: ignore[attr-defined]
    before, after = (router_successes(routeable_blocks(block_pools(table_of(polled)))) for polled in (corpus, shuffled))
    for rule in (*VALID_ONLY, "oracle", "worst"):
        assert after[rule] == pytest.approx(before[rule], abs=1e-12), rule


def test_blocks_with_an_unlabelled_candidate_are_left_out_and_counted() -> None:
    pools = block_pools(build_table([Run(blocks=[Block("c90:a u80:b"), Block("c90:a"), Block("i1")])]))
    blocks = routeable_blocks(pools)
    (oracle,) = (t.value for t in router_tallies(blocks, router_successes(blocks)) if t.name == "success[oracle]")
    assert (oracle.value, oracle.denominator, oracle.n_dropped) == (1.0, 1, 1)


def test_without_recorded_selections_the_runtime_rule_is_undefined_and_its_replay_is_not() -> None:
    pools = block_pools(build_table([Run(blocks=[Block("c90:a w90:b", selected=-1)])]))
    blocks = routeable_blocks(pools)
    found = {t.name: t.value for t in router_tallies(blocks, router_successes(blocks))}
    assert found["success[runtime_argmax]"].status == "undefined"
    assert found["success[first_listed_argmax]"].value == 1.0
    assert found["success[top_confidence_tie_random]"].value == 0.5


def test_learned_values_route_to_the_highest() -> None:
    blocks = routeable_blocks(block_pools(build_table([Run(blocks=[Block("c90:a w80:b"), Block("c1:a w2:b")])])))
    assert success_by_value(blocks, np.array([0.2, 0.2, 0.9, 0.1])).tolist() == [0.5, 1.0]


@pytest.mark.shared_data
def test_real_polls(shared_data: Path) -> None:
    """5,650 real items: the published value of this router needs first-listed ties; random ones cost .013."""
    items = [json.loads(line) for line in (shared_data / "polls" / "routing_polls.jsonl").read_text().splitlines()]
    names = sorted({poll["agent"] for item in items for poll in item["polls"]})
    runs = [
        Run(blocks=[Block(" ".join(f"{'wc'[poll['correct']]}{poll['confidence'] * 100}:x" for poll in item["polls"]))])
        for item in items
    ]
    found = successes(build_table(runs, n_agents=len(names)))
    assert len(items) == 5_650
    assert round(found["first_listed_argmax"], 3) == 0.797
    assert round(found["top_confidence_tie_random"], 3) == 0.784
    by_agent = {
        name: np.mean([poll["correct"] for item in items for poll in item["polls"] if poll["agent"] == name])
        for name in names
    }
    assert round(max(by_agent.values()), 3) == 0.806
