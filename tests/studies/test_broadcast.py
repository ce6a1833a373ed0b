"""The rebuilt audit: the worked example against the packaged model, and the corpus for any seed."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import permutations
from statistics import fmean

import numpy as np
import pytest

from tracebridge import check, read_model
from tracebridge.confidence.router import routeable_blocks, router_successes
from tracebridge.confidence.routing import pair_counts
from tracebridge.confidence.routing_pools import BlockPools, block_pools
from tracebridge.confidence.table import ConfidenceTable
from tracebridge.resources import packaged
from tracebridge.studies.broadcast import NOT_REPRODUCED
from tracebridge.studies.broadcast_calibration import calibration_tables
from tracebridge.studies.broadcast_commitment import commitment_tables
from tracebridge.studies.broadcast_example import PASS_RATE, ROUTED, example_chain, passes, routing_choices
from tracebridge.studies.broadcast_population import MIXED, build_population
from tracebridge.studies.broadcast_printed import printed_tables
from tracebridge.studies.broadcast_published import TERMS, integers_printed_as, prints_as
from tracebridge.studies.broadcast_routing import construction_table, router_table, routing_tables
from tracebridge.studies.broadcast_tiers import tier_tables
from tracebridge.studies.replication import Replication

# ---------------------------------------------------------------- the worked example


def test_the_example_is_the_packaged_model() -> None:
    """The same answers, as fractions, as are written down beside the model, whose states and variables are others."""
    text = packaged("prism_models", "broadcast.prism").read_text(encoding="utf-8")
    expected = re.findall(r"// expect: (.+) = (\S+)", text)
    assert len(expected) == 14
    results = check(
        example_chain(), ";\n".join(formula for formula, _ in expected), engines=["closed-form"], exact=True
    )
    for result, (_, answer) in zip(results, expected, strict=True):
        assert result.value is not None
        assert result.value.value == Fraction(answer), result.property


@pytest.mark.storm
def test_the_packaged_model_has_the_same_states() -> None:
    """The packaged program has a start, and one state where here there are four: of an invalid selection, by pool."""
    chain = read_model(packaged("prism_models", "broadcast.prism")).chain
    ours = example_chain()
    for label in ("poll", "mixed", "selected_correct", "diverged", "spoken_none"):
        assert chain.label(label).sum() == ours.label(label).sum(), label


def test_choices_bound_every_router() -> None:
    """Each deterministic router by itself: only mixed pools leave a valid choice, W, M and C one of all."""
    chain = example_chain()
    for all_polls, n in ((False, 2), (True, 12)):
        process = routing_choices(chain, all_polls=all_polls)
        choosing = [
            (state, names) for state, names in zip(process.states, process.actions, strict=True) if len(names) > 1
        ]
        assert np.prod([len(names) for _, names in choosing]) == n
        values = [passes(process.induced(scheduler)) for scheduler in _schedulers(choosing)]
        assert min(values) <= PASS_RATE == passes(chain) <= max(values)
        assert float(max(values)) == pytest.approx(0.90607561, abs=5e-9)
        assert float(min(values)) == pytest.approx(0 if all_polls else 0.87033066, abs=5e-9)


def _schedulers(choosing: list[tuple[str, tuple[str, ...]]]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [{}]
    for state, names in choosing:
        found = [{**scheduler, state: name} for scheduler in found for name in names]
    return found


def test_the_example_routes_as_the_corpus_does(pools: BlockPools) -> None:
    selected = pools.selected
    valid, right = pools.table.polls.valid[selected], pools.table.polls.correct[selected] == 1
    for pool, chosen in {
        "N": pools.n_valid == 0,
        "W": (pools.n_valid > 0) & (pools.n_correct == 0),
        "M": pools.mixed,
        "C": (pools.n_valid > 0) & (pools.n_correct == pools.n_valid),
    }.items():
        counts = {"i": ~valid & chosen, "w": valid & ~right & chosen, "c": valid & right & chosen}
        assert {kind: int(mask.sum()) for kind, mask in counts.items() if mask.any()} == ROUTED[pool]


# ---------------------------------------------------------------- the corpus


@pytest.fixture(scope="module")
def corpus() -> ConfidenceTable:
    return build_population(np.random.default_rng(3))


@pytest.fixture(scope="module")
def pools(corpus: ConfidenceTable) -> BlockPools:
    return block_pools(corpus)


def test_statements_hold_for_another_seed(corpus: ConfidenceTable, pools: BlockPools) -> None:
    found = [
        *router_table(pools, 3)[1],
        *routing_tables(pools, 3)[1],
        *calibration_tables(pools, 3)[1],
        *commitment_tables(corpus)[1],
        *tier_tables(pools)[1],
    ]
    assert [statement.text for statement in found if statement.verdict != "holds"] == []


def test_mixed_blocks_are_a_solution_of_what_is_printed() -> None:
    """Tables 1, 6 and 15 by hand from the list of blocks, without the corpus and without the audit."""
    n = dict.fromkeys(("pairs", "ties", "pcca", "random", "majority", "weighted", "dealt"), 0.0)
    selected = {"c": 0, "w": 0, "i": 0}
    for kinds, scores, first, number in MIXED:
        selected[first] += number
        right = [k for k in range(3) if kinds[k] == "c"]
        wrong = [k for k in range(3) if kinds[k] in "wv"]
        pairs = [(a, b) for a in right for b in wrong]
        top = [k for k in right + wrong if scores[k] == max(scores[j] for j in right + wrong)]
        n["pairs"] += number * len(pairs)
        n["ties"] += number * sum(scores[a] == scores[b] for a, b in pairs)
        n["pcca"] += number * fmean([(scores[a] > scores[b]) + (scores[a] == scores[b]) / 2 for a, b in pairs])
        n["random"] += number * fmean([kinds[k] == "c" for k in top])
        for rule, weight in (("majority", [1, 1, 1]), ("weighted", scores)):
            votes = {kind: sum(weight[k] for k in range(3) if kinds[k] == kind) for kind in set(kinds) - {"i"}}
            best = [kind for kind, total in votes.items() if total == max(votes.values())]
            n[rule] += number * ("c" in best) / len(best)
        deals = [[scores[order[k]] for k in range(3)] for order in permutations(range(3))]
        n["dealt"] += number * fmean([sum(deal[a] == deal[b] for a, b in pairs) for deal in deals])
    assert selected == {"c": 714, "w": 462, "i": 8}
    assert (n["pairs"], n["ties"]) == (2_079, 679)
    assert prints_as(n["pcca"] / 1_184, 0.570)
    for rule, printed in (("random", 0.493), ("majority", 0.496), ("weighted", 0.501)):
        assert prints_as((4_111 + n[rule]) / 9_653, printed), rule
    assert prints_as(n["dealt"] / 2_079, 0.300)


def test_only_mixed_blocks_tell_rules_apart(pools: BlockPools) -> None:
    blocks = routeable_blocks(pools)
    success = router_successes(blocks)
    even = ~pools.mixed[blocks.block]
    for rule in ("random_valid", "majority_vote", "confidence_weighted_vote", "top_confidence_tie_random"):
        assert np.array_equal(success[rule][even], success["oracle"][even]), rule
    assert pair_counts(pools, pools.score).pairs[~pools.mixed].sum() == 0


# ---------------------------------------------------------------- printed figures


def test_rounding() -> None:
    assert prints_as(0.5065, 0.506)
    assert prints_as(0.5065, 0.507)
    assert not prints_as(0.5066, 0.506)
    assert list(integers_printed_as(0.058, 7_970)) == list(range(459, 467))
    assert list(integers_printed_as(0.123, 2)) == []


def test_contradictions_are_in_the_printed_figures() -> None:
    tables, statements = printed_tables()
    (table,) = [each for each in tables if "contradict" in each.title]
    assert [row[2] for row in table.rows] == [134.6, 2_087, -249]
    assert [row[4] for row in table.rows[1:]] == [1_927, 497]
    assert table.rows[0][4] == pytest.approx(29.6013, abs=5e-5)
    assert all(each.verdict == "holds" for each in statements)
    assert len(TERMS) == 24


def test_one_replicate_states_nothing_of_means_and_two_do(pools: BlockPools) -> None:
    for number, statements in ((1, 0), (2, 20)):
        table, found = construction_table(pools, Replication(study="broadcast", number=number))
        assert len(table.rows) == 20
        assert len(found) == statements
        assert all(each.verdict != "fails" for each in found)


def test_what_contradicts_itself_is_told() -> None:
    for name in ("Table 20 against Table 6", "Table 16 against Table 3", "Table 16 against Table 17"):
        assert any(text.startswith(name) for text in NOT_REPRODUCED), name
