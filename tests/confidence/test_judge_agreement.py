"""Agreement of judges: the published tables, the definitions, and the residual pairs of a corpus."""

from __future__ import annotations

import math

import pytest

from tracebridge.confidence.bootstrap import Resampling
from tracebridge.confidence.judge_agreement import JudgeAgreement, agreement_of_counts, compare_judges, judge_pairs
from tracebridge.errors import InputError, UsageError
from tracebridge.studies.broadcast_notation import Block, Run, build_table


@pytest.mark.parametrize(
    ("confusion", "agreement", "kappa", "error", "mcnemar"),
    [
        ((1776, 311, 62, 1899), 0.907856, 0.816237, 0.0090, 166.2),
        ((1670, 433, 68, 1774), 0.873004, 0.747990, 0.0103, 265.9),
    ],
)
def test_published_tables(
    confusion: tuple[int, int, int, int], agreement: float, kappa: float, error: float, mcnemar: float
) -> None:
    found = agreement_of_counts("gpt-oss", "gemma", confusion)
    assert found["agreement"].value == pytest.approx(agreement, abs=5e-7)
    assert found["kappa"].value == pytest.approx(kappa, abs=5e-7)
    assert round(found.kappa_error, 4) == error
    assert round(found.mcnemar, 1) == mcnemar
    b, c = confusion[1:3]
    assert found["directional_rate"].value == pytest.approx(b / (b + c))
    assert found["pabak"].value == pytest.approx(2 * agreement - 1, abs=2e-6)
    assert 0 < found.mcnemar_p < 1e-30


def test_the_lean_of_judges_allows_for_clusters() -> None:
    """One pair a cluster: McNemar's own. Copies of pairs within clusters change nothing; as clusters they would."""
    verdicts = [(1, 0)] * 14 + [(0, 1)] * 5 + [(1, 1), (0, 0)] * 4

    def compared(copies: int, *, apart: bool) -> JudgeAgreement:
        runs = [
            Run(blocks=[Block("c90:4", "w:5", judged=pair)], cluster=copy * len(verdicts) + k if apart else k)
            for copy in range(copies)
            for k, pair in enumerate(verdicts)
        ]
        return compare_judges(build_table(runs, judges=("one", "two")), "one", "two")

    once, thrice, more = compared(1, apart=True), compared(3, apart=False), compared(3, apart=True)
    assert once.mcnemar_cluster_p == pytest.approx(once.mcnemar_p, rel=1e-12)
    assert thrice.mcnemar_cluster_p == pytest.approx(once.mcnemar_p, rel=1e-12)
    assert more.mcnemar_cluster_p == pytest.approx(thrice.mcnemar_p, rel=1e-12)
    assert thrice.mcnemar_p < 0.001 < once.mcnemar_p


def test_where_kappa_or_its_parts_have_no_value() -> None:
    same = agreement_of_counts("a", "b", (0, 0, 0, 9))
    assert same["agreement"].value == 1.0
    assert math.isnan(same["kappa"].value)
    assert "one and the same verdict" in same["kappa"].reason
    assert same["directional_rate"].status == "undefined"
    assert math.isnan(same.mcnemar)
    assert math.isnan(same.kappa_error)
    nothing = agreement_of_counts("a", "b", (0, 0, 0, 0))
    assert all(metric.status == "undefined" for metric in nothing.metrics)
    with pytest.raises(InputError, match="negative"):
        agreement_of_counts("a", "b", (1, -1, 0, 0))


def test_residual_pairs_of_a_corpus() -> None:
    verdicts = [(1, 1), (1, 0), (1, 0), (0, 1), (0, 0), (-1, 1), (1, -1)]
    runs = [
        Run(blocks=[Block("c90:4", "w:5", judged=pair), Block("c90:4", "c:4")], cluster=k % 3)
        for k, pair in enumerate(verdicts)
    ]
    table = build_table(runs, judges=("one", "two"))
    (pair,) = judge_pairs(table)
    found = compare_judges(table, *pair, resampling=Resampling(replicates=200))
    assert found.confusion == (1, 2, 1, 1)
    assert found.n_undecided == 2
    assert found["agreement"].value == 0.4
    assert found["agreement"].lower <= 0.4 <= found["agreement"].upper
    assert found.to_dict()["confusion"] == {"both": 1, "first_alone": 2, "second_alone": 1, "neither": 1}
    with pytest.raises(UsageError, match="no judge 'three'"):
        compare_judges(table, "one", "three")
