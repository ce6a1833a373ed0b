"""The corpus with the published margins: counts exactly, nulls and oracles within .006."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tracebridge.confidence.commitment import commitment_pairs, commitment_tallies
from tracebridge.confidence.divergence_class import CLASSES, class_tallies, classify_divergences
from tracebridge.confidence.null_construction import Construction, noisy_oracle, permutation_null
from tracebridge.confidence.router import routeable_blocks, router_successes
from tracebridge.confidence.routing import counts_of_blocks, routing_tallies
from tracebridge.confidence.routing_pools import BlockPools, block_pools
from tracebridge.confidence.table import ConfidenceTable
from tracebridge.errors import UsageError
from tracebridge.studies.broadcast_population import build_population
from tracebridge.studies.broadcast_published import TIER_SIZES

TOLERANCE = 0.006


@pytest.fixture(scope="module")
def population() -> ConfidenceTable:
    return build_population(np.random.default_rng(20_260_901))


@pytest.fixture(scope="module")
def pools(population: ConfidenceTable) -> BlockPools:
    return block_pools(population)


def test_margins_of_routing(pools: BlockPools) -> None:
    counts = counts_of_blocks(pools)
    assert counts["blocks"] == 11_122
    assert (counts["valid_polls"], counts["correct_polls"]) == (23_391, 12_116)
    assert (counts["routeable_blocks"], counts["solvable_blocks"], counts["mixed_blocks"]) == (9_653, 5_295, 1_184)
    found = {tally.name: (tally.value.numerator, tally.value.denominator) for tally in routing_tallies(pools)}
    assert found["CRA"] == (4_795, 9_467)
    assert found["HRWP"] == (4_795, 5_295)
    assert found["MCR"] == (462, 7_970)
    assert found["CTR"] == (679, 2_079)
    assert found["selected_invalid_rate"] == (1_655, 11_122)
    assert found["unroutable_rate"] == (1_469, 11_122)
    assert found["routeable_selected_invalid_rate"] == (186, 9_653)
    assert found["PCCA"][1] == 1_184
    assert found["PCCA"][0] / 1_184 == pytest.approx(0.570, abs=TOLERANCE)


def test_recorded_selections_are_the_first_of_the_highest(pools: BlockPools) -> None:
    assert np.array_equal(pools.first_of_highest(pools.score), pools.selected)


def test_margins_of_traces(population: ConfidenceTable) -> None:
    assert np.bincount(population.traces.tier).tolist() == list(TIER_SIZES)
    assert population.n_clusters == 421
    assert int((population.traces.passed == 1).sum()) == 3_729


def test_margins_of_commitment(population: ConfidenceTable) -> None:
    """Tables 3 and 13: counts, shifts in percentage points and flags of the classes, and the rates of the pairs."""
    pairs = commitment_pairs(population)
    found = {tally.name: tally.value for tally in commitment_tallies(pairs)}
    assert (found["PSDR"].numerator, found["PSDR"].denominator) == (1_927, 9_436)
    assert (found["NPCS_given_divergence"].numerator, found["NPCS_unconditional"].numerator) == (-161, -161)
    assert (found["PSIR"].numerator, found["PSDRg"].numerator) == (335, 496)
    classes = classify_divergences(population, pairs)
    assert np.bincount(classes.primary).tolist() == [367, 120, 238, 1_202]
    assert classes.flags.sum(axis=0).tolist() == [367, 224, 550]
    assert (classes.n_any_flag, classes.flag_surplus) == (725, 416)
    assert classes.surplus_by_class == {"self_revert": 0, "incumbent_pull": 104, "peer_echo": 312}
    shifts = {tally.name: round(100 * tally.value.value, 1) for tally in class_tallies(classes)}
    assert [shifts[f"shift[{name}]"] for name in CLASSES] == [-11.4, 1.7, -5.0, -9.1]
    assert [shifts[f"share[{name}]"] for name in CLASSES] == [19.0, 6.2, 12.4, 62.4]


def test_routers(pools: BlockPools) -> None:
    found = {name: values.mean() for name, values in router_successes(routeable_blocks(pools)).items()}
    assert round(found["runtime_argmax"], 3) == 0.497
    assert found["top_confidence_tie_random"] == pytest.approx(0.493, abs=TOLERANCE)
    assert found["random_valid"] == pytest.approx(0.4899, abs=5e-5)
    assert found["oracle"] == pytest.approx(0.548534, abs=5e-7)


def close(found: Construction, **expected: float) -> None:
    for name, value in expected.items():
        assert found.mean[name] == pytest.approx(value, abs=TOLERANCE), name


def test_permutation_null(pools: BlockPools) -> None:
    """The printed values; their expectations are .518 and .7628. Monte-Carlo errors of 30 replicates are below .001,
    but for PCCA, whose is .0023: the tolerance is 2.6 of them."""
    found = permutation_null(pools, replicates=30, seed=1)
    close(found, CRA=0.520, HRWP=0.762, PCCA=0.500, CTR=0.300)
    assert 0.005 < found.deviation["PCCA"] < 0.02


def test_permutation_null_is_the_mean_over_all_orders(pools: BlockPools) -> None:
    """Every block has three polls: the six orders of its scores can be gone through."""
    score, right = pools.score.reshape(-1, 3), (pools.correct == 1).reshape(-1, 3)
    valid = pools.table.polls.valid.reshape(-1, 3)
    row = np.arange(len(score))
    taken = [score[:, order].argmax(axis=1) for order in permutations(range(3))]
    hits = np.mean([right[row, poll].sum() for poll in taken])
    routed = np.mean([valid[row, poll].sum() for poll in taken])
    found = permutation_null(pools, replicates=40, seed=2)
    for name, expected in (("HRWP", hits / 5_295), ("CRA", hits / routed)):
        # Four Monte-Carlo standard errors of the mean of 40 replicates.
        assert found.mean[name] == pytest.approx(expected, abs=4 * found.deviation[name] / 40**0.5), name


@pytest.mark.parametrize(
    ("sigma", "expected"),
    [
        (0.05, {"CRA": 0.622, "HRWP": 1.0, "PCCA": 1.0, "CTR": 0.0}),
        (0.2, {"CRA": 0.621, "HRWP": 1.0, "PCCA": 1.0, "CTR": 0.0}),
        (0.5, {"CRA": 0.605, "HRWP": 0.961, "PCCA": 0.913, "CTR": 0.023}),
    ],
)
def test_noisy_oracle(pools: BlockPools, sigma: float, expected: dict[str, float]) -> None:
    """Monte-Carlo errors of 12 replicates are below .001, but for PCCA at sigma .5, whose is .0018."""
    close(noisy_oracle(pools, sigma, replicates=12, seed=1), **expected)


def test_constructions_are_reproducible_and_refuse_what_is_no_number(pools: BlockPools) -> None:
    assert permutation_null(pools, replicates=2, seed=3).mean == permutation_null(pools, replicates=2, seed=3).mean
    with pytest.raises(UsageError, match="replicate"):
        permutation_null(pools, replicates=0)
    with pytest.raises(UsageError, match="noise"):
        noisy_oracle(pools, float("nan"))
