"""Routing metrics on the hand fixture, against a reference written block by block, and their laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.confidence.hand_fixture import hand_table

from tracebridge.confidence.routing import counts_of_blocks, routing_tallies
from tracebridge.confidence.routing_pools import MissingLabel, block_pools
from tracebridge.confidence.table import ConfidenceTable
from tracebridge.errors import InputError, UsageError
from tracebridge.studies.broadcast_notation import Block, Run, build_table


def metrics(table: ConfidenceTable, policy: MissingLabel = "drop") -> dict[str, tuple[float, float]]:
    found = [tally.value for tally in routing_tallies(block_pools(table, on_missing_label=policy))]
    return {value.name: (value.value, value.denominator) for value in found}


def test_hand_fixture() -> None:
    found = metrics(hand_table())
    assert found["CRA"] == (1 / 2, 2)
    assert found["HRWP"] == (1 / 3, 3)
    assert found["MCR"] == (1 / 2, 2)
    assert found["selected_invalid_rate"] == (2 / 4, 4)
    assert found["PCCA"] == (pytest.approx(0.583333, abs=5e-7), 3)
    assert found["CTR"] == (2 / 4, 4)
    assert found["unroutable_rate"] == (1 / 4, 4)
    assert found["routeable_selected_invalid_rate"] == (1 / 3, 3)
    assert found["top_tie_rate"] == (2 / 4, 4)
    assert found["pairwise_resolution"] == ((1 + 0.5 + 0 + 0.5) / 4, 4)
    assert counts_of_blocks(block_pools(hand_table()))["mixed_blocks"] == 3


polls = st.tuples(st.sampled_from("cwui"), st.integers(1, 4), st.sampled_from("xyz"))
corpora = st.lists(st.lists(polls, max_size=5), min_size=1, max_size=6)


def table_of(corpus: list[list[tuple[str, int, str]]], selected: int | None = None) -> ConfidenceTable:
    words = [" ".join(f"{kind}{score}:{answer}" for kind, score, answer in block) for block in corpus]
    return build_table([Run(blocks=[Block(word, selected=selected)]) for word in words], n_agents=5)


@settings(max_examples=25)
@given(corpora)
def test_against_a_reference_block_by_block(corpus: list[list[tuple[str, int, str]]]) -> None:
    """Everything that the definitions say of one block, added up; a label that is missing drops the block."""
    sums: dict[str, list[float]] = {}

    def add(name: str, above: float, below: float) -> None:
        entry = sums.setdefault(name, [0.0, 0.0])
        entry[0] += above
        entry[1] += below

    for block in corpus:
        if not block:
            continue
        kinds, scores = [k for k, _, _ in block], [s for _, s, _ in block]
        chosen = kinds[scores.index(max(scores))]
        valid = [k for k in kinds if k != "i"]
        right, wrong = ([s for k, s, _ in block if k == kind] for kind in "cw")
        known = "u" not in valid
        add("selected_invalid_rate", chosen == "i", 1)
        add("unroutable_rate", not valid, 1)
        add("top_tie_rate", scores.count(max(scores)) > 1, 1)
        if valid:
            add("routeable_selected_invalid_rate", chosen == "i", 1)
        if chosen in "cw":
            add("CRA", chosen == "c", 1)
        if right and chosen != "u":
            add("HRWP", chosen == "c", 1)
        if chosen != "i" and len(valid) > 1 and known:
            add("MCR", chosen == "w" and bool(right), 1)
        if right and wrong and known:
            won = sum((c > w) + (c == w) / 2 for c in right for w in wrong)
            ties = sum(c == w for c in right for w in wrong)
            n = len(right) * len(wrong)
            add("PCCA", won / n, 1)
            add("CTR", ties, n)
            add("pairwise_resolution", won, n)
    found = metrics(table_of(corpus))
    for name, (value, denominator) in found.items():
        above, below = sums.get(name, [0.0, 0.0])
        assert denominator == below, name
        assert math.isnan(value) if below == 0 else value == pytest.approx(above / below, abs=1e-12), name


def test_what_a_missing_label_does() -> None:
    table = build_table([Run(blocks=[Block("u90:a c80:b"), Block("w90:a u80:b"), Block("c9:a w8:b")])])
    dropped = {tally.name: tally.value for tally in routing_tallies(block_pools(table))}
    # First block: selected unlabelled. Second: the selected is wrong, and whether the block is solvable is unknown.
    assert (dropped["CRA"].n_dropped, dropped["CRA"].denominator) == (1, 2)
    assert (dropped["HRWP"].n_dropped, dropped["HRWP"].denominator) == (2, 1)
    assert (dropped["MCR"].n_dropped, dropped["PCCA"].n_dropped, dropped["CTR"].denominator) == (2, 2, 1)
    wrong = metrics(table, "wrong")
    assert (wrong["CRA"], wrong["HRWP"], wrong["MCR"]) == ((1 / 3, 3), (1 / 2, 2), (1 / 3, 3))
    with pytest.raises(InputError, match="2 valid polls have no label"):
        block_pools(table, on_missing_label="error")
    with pytest.raises(UsageError, match="drop, wrong, error"):
        block_pools(table, on_missing_label="maybe")  # type: ignore[arg-type]


def test_a_score_that_could_not_be_read_is_below_every_other() -> None:
    pools = block_pools(build_table([Run(blocks=[Block("inan c1:a"), Block("inan inan")])]))
    assert pools.first_of_highest(pools.score).tolist() == [1, 2]


def test_nothing_selected_and_nothing_asked_is_undefined() -> None:
    found = metrics(build_table([Run(blocks=[Block(""), Block("c90:a w80:b", selected=-1)])]))
    assert math.isnan(found["CRA"][0])
    assert math.isnan(found["selected_invalid_rate"][0])
    assert found["PCCA"] == (1.0, 1)
    assert found["unroutable_rate"] == (0.0, 1)


@settings(max_examples=25)
@given(corpora, st.randoms(use_true_random=False))
def test_the_order_of_agents_matters_only_where_scores_tie(
    corpus: list[list[tuple[str, int, str]]], random: object
) -> None:
    shuffled = [random.sample(block, len(block)) for block in corpus]  # type: ignore[attr-defined]
    before, after = metrics(table_of(corpus)), metrics(table_of(shuffled))
    untied = all(block and [s for _, s, _ in block].count(max(s for _, s, _ in block)) == 1 for block in corpus)
    free_of_ties = {"PCCA", "CTR", "pairwise_resolution", "unroutable_rate", "top_tie_rate"}
    for name in before if untied else free_of_ties:
        assert after[name] == pytest.approx(before[name], nan_ok=True, abs=1e-12), name


@settings(max_examples=25)
@given(corpora)
def test_only_the_order_of_scores_matters(corpus: list[list[tuple[str, int, str]]]) -> None:
    stretched = [[(kind, 3 * score**2, answer) for kind, score, answer in block] for block in corpus]
    before, after = metrics(table_of(corpus)), metrics(table_of(stretched))
    assert all(after[name] == pytest.approx(before[name], nan_ok=True) for name in before)


@settings(max_examples=25)
@given(corpora)
def test_a_block_without_valid_poll_moves_only_the_rates_about_polling(
    corpus: list[list[tuple[str, int, str]]],
) -> None:
    before, after = metrics(table_of(corpus)), metrics(table_of([*corpus, [("i", 1, "")]]))
    moved = {name for name in before if after[name] != pytest.approx(before[name], nan_ok=True)}
    # The top-tie rate is about all polled blocks, so that its denominator moves too.
    assert moved <= {"selected_invalid_rate", "unroutable_rate", "top_tie_rate"}


@settings(max_examples=25)
@given(corpora)
def test_duplicated_runs_leave_the_values_alone(corpus: list[list[tuple[str, int, str]]]) -> None:
    before, after = metrics(table_of(corpus)), metrics(table_of(corpus * 2))
    for name, (value, denominator) in before.items():
        assert after[name] == (pytest.approx(value, nan_ok=True), 2 * denominator)
