"""The whole audit: its sections, what it lacks, its settings, and its laws."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tests.confidence.hand_fixture import T0, hand_table

from tracebridge.confidence.audit import ConfidenceAudit, audit_confidence
from tracebridge.errors import InputError, UsageError
from tracebridge.studies.broadcast_notation import Block, Run, build_table


def random_runs(n: int, seed: int) -> list[Run]:
    rng = np.random.default_rng(seed)
    runs = []
    for t in range(n):
        blocks = []
        for _ in range(int(rng.integers(1, 4))):
            kinds = rng.choice(list("cwi"), 3, p=[0.5, 0.3, 0.2])
            answers = ["g" if k == "c" else "" if k == "i" else f"x{rng.integers(2)}" for k in kinds]
            words = [f"{k}{rng.integers(50, 100)}:{a}" for k, a in zip(kinds, answers, strict=True)]
            said = rng.choice(["g", "x0", "x1"])
            speak = f"{'c' if said == 'g' else 'w'}:{said}" if rng.random() < 0.9 else None
            judged = tuple(rng.choice([0, 1, -1], 2, p=[0.2, 0.7, 0.1]).tolist())
            # Canonically equal answers are equivalent for every judge.
            scores = [int(word[1:].split(":")[0]) for word in words]
            polled = answers[int(np.argmax(scores))]
            incumbent = str(rng.choice(["g", "x0"])) if blocks else None
            blocks.append(
                Block(" ".join(words), speak, judged=(0, 0) if said == polled else judged, incumbent=incumbent)
            )
        runs.append(Run(blocks=blocks, cluster=t // 2, tier=t % 3, cell=t % 2, passed=int(rng.integers(2))))
    return runs


def audit_of(runs: list[Run], **options: object) -> ConfidenceAudit:
    made = build_table(runs, judges=("one", "two"), n_tiers=3)
    return audit_confidence(made, **{"replicates": 60, "null_replicates": 3, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def audit() -> ConfidenceAudit:
    return audit_of(random_runs(80, seed=4))


def test_every_section_is_filled_and_deterministic(audit: ConfidenceAudit) -> None:
    assert dict(audit.undefined) == {"costs": "no trace states tokens, calls or time"}
    document = json.dumps(audit.to_dict(), allow_nan=False)
    assert json.dumps(audit_of(random_runs(80, seed=4)).to_dict(), allow_nan=False) == document
    assert [group.name for group in audit.tiers] == ["1", "2", "3"]
    assert [group.name for group in audit.cells] == ["m0 / bench / judge", "m1 / bench / judge"]
    assert [(v.judge, v.undecided_policy) for v in audit.variants] == [
        (judge, policy) for judge in ("one", "two") for policy in ("exclude", "divergent", "equivalent")
    ]
    assert set(audit.recalibration) == {"identity", "temperature", "platt", "isotonic"}
    assert len(audit.constructions) == 5
    assert all(fit.status == "ok" for fit in audit.regressions)


def test_groups_add_up_to_the_corpus(audit: ConfidenceAudit) -> None:
    for name in ("CRA", "HRWP", "CTR", "PSDR", "NPCS_unconditional", "success[oracle]", "share[novel]"):
        for groups in (audit.tiers, audit.cells):
            assert sum(group[name].numerator for group in groups) == pytest.approx(audit[name].numerator), name
            assert sum(group[name].denominator for group in groups) == audit[name].denominator, name


def test_intervals_hold_their_value(audit: ConfidenceAudit) -> None:
    for axis, metric in audit.corpus:
        if axis != "calibration" and metric.status == "ok":  # an ECE of resamples is larger than that of the corpus
            assert metric.lower <= metric.value <= metric.upper, metric.name
            assert metric.level == 0.95


def test_records_name_denominators(audit: ConfidenceAudit) -> None:
    records = audit.to_records()
    assert {record["kind"] for record in records} == {"corpus", "tier", "cell"}
    assert all(record["denominator_name"] for record in records)
    with pytest.raises(KeyError):
        audit["no such metric"]


def test_polls_alone_leave_commitment_undefined_with_a_reason() -> None:
    audit = audit_confidence(hand_table(), replicates=20, null_replicates=2)
    assert audit.undefined["commitment"] == "no answer was spoken in public"
    assert {"judge_agreement", "cells", "costs", "adoption", "divergence"} <= audit.undefined.keys()
    assert math.isnan(audit["PSDR"].value)
    assert audit["PSDR"].reason == "there are no valid pairs"
    assert audit["CRA"].value == 0.5
    json.dumps(audit.to_dict(), allow_nan=False)


def test_routers_that_agree_in_every_cluster_may_differ_elsewhere() -> None:
    """No interval of width zero is made of there being no case: of 12 clusters a share 1 - .025^(1/12) may have one."""
    polls = ("c90:4 w50:5 w40:6", "w90:4 w50:5 c40:6")
    runs = [Run(blocks=[Block(polls[k % 2])], cluster=k) for k in range(12)]
    audit = audit_confidence(build_table(runs), replicates=40, null_replicates=2)
    reach = 1 - 0.025 ** (1 / 12)
    same = audit["gain_over_observed[first_listed_argmax]"]
    assert (same.value, same.lower, same.upper) == pytest.approx((0, -reach, reach))
    assert audit["gain_over_observed[oracle]"].value == pytest.approx(0.5)
    assert not {"gap_to_oracle[oracle]", "gain_over_observed[runtime_argmax]"} & {m.name for m in audit.corpus.routers}


def test_what_cannot_be_fitted_is_not_called_recalibrated() -> None:
    """All answers are correct: the map would be the identity, and its error that of confidence as stated."""
    audit = audit_confidence(build_table([Run(blocks=[Block("c90:4 c60:4")]) for _ in range(12)]), replicates=20)
    assert audit["ECE"].value == pytest.approx(0.25)
    assert math.isnan(audit["ECE_isotonic"].value)
    assert audit["ECE_isotonic"].reason == audit.undefined["ECE_isotonic"]
    assert "all correct or all wrong" in audit.undefined["ECE_isotonic"]
    assert "success[isotonic]" not in {metric.name for metric in audit.corpus.routers}


def test_one_problem_cannot_be_held_out_and_one_cluster_has_no_interval() -> None:
    audit = audit_confidence(build_table([Run(blocks=T0)]), replicates=20, null_replicates=2)
    assert {"recalibration", "learned_router"} <= audit.undefined.keys()
    assert math.isnan(audit["CRA"].lower)
    assert "one cluster" in audit["CRA"].reason
    assert "success[learned]" not in {metric.name for metric in audit.corpus.routers}


def test_a_corpus_without_polls() -> None:
    audit = audit_confidence(build_table([Run(blocks=[]), Run(blocks=[Block("")])]), replicates=20, null_replicates=2)
    assert all(metric.status == "undefined" for _, metric in audit.corpus)
    assert audit.undefined["routing"] == "nothing is recorded as selected"
    json.dumps(audit.to_dict(), allow_nan=False)


def test_a_metric_of_one_cluster_has_no_interval_beside_others_that_have_one() -> None:
    runs = [Run(blocks=[Block("c90:4 w90:5" if k == 0 else "c90:4 i1")], cluster=k) for k in range(4)]
    audit = audit_confidence(build_table(runs), replicates=50, null_replicates=2)
    assert (audit["CTR"].value, audit["CRA"].value) == (1.0, 1.0)
    assert math.isnan(audit["CTR"].lower)
    assert "one cluster has all" in audit["CTR"].reason
    assert (audit["CRA"].lower, audit["CRA"].upper) == (pytest.approx(0.025**0.25), 1.0)  # 4 of 4


def test_design_effect_of_clusters_that_repeat_one_trace() -> None:
    """Clusters of four equal traces: the variance is four times that of independent traces."""
    rng = np.random.default_rng(8)
    runs = [
        Run(blocks=[Block("c90:4" if right else "w90:5")], cluster=k)
        for k, right in enumerate(rng.random(100) < 0.5)
        for _ in range(4)
    ]
    audit = audit_confidence(build_table(runs), replicates=2_000, null_replicates=1)
    # A variance of 2,000 replicates has a relative standard error of sqrt(2 / 2000) = .032.
    assert audit.corpus.design_effects["CRA"] == pytest.approx(4, rel=0.13)


def test_settings_are_followed() -> None:
    runs = [Run(blocks=[Block("c90:4 u80:5", "c:4x", judged=(-1, 1))], cluster=k) for k in range(3)]
    made = build_table(runs, judges=("one", "two"))
    by_two = audit_confidence(made, replicates=20, null_replicates=2, judge="two", level=0.8)
    assert (by_two["PSDR"].value, by_two["PSDR"].level, by_two.settings["judge"]) == (1.0, 0.8, "two")
    excluded = audit_confidence(made, replicates=20, null_replicates=2)
    assert (excluded["PSDR"].denominator, excluded["PSDR"].n_dropped) == (0, 3)
    kept = audit_confidence(made, replicates=20, null_replicates=2, undecided_policy="equivalent")
    assert kept["PSDR"].value == 0.0
    with pytest.raises(InputError, match="no label"):
        audit_confidence(made, on_missing_label="error")
    with pytest.raises(UsageError, match="no judge"):
        audit_confidence(made, judge="three")
    with pytest.raises(UsageError, match="between 0 and 1"):
        audit_confidence(made, level=95)


def test_duplicated_traces_leave_values_and_their_intervals_alone_if_clusters_are_kept() -> None:
    runs = random_runs(12, seed=6)
    before, after = audit_of(runs), audit_of([*runs, *runs])
    for (axis, one), (_, two) in zip(before.corpus, after.corpus, strict=True):
        if axis == "calibration" or any(rule in one.name for rule in ("learned", "isotonic", "margin", "composed")):
            continue  # folds are dealt by problem, and there are twice as many; MARGIN has seen each problem before
        ends = [one.value, one.lower, one.upper]
        assert [two.value, two.lower, two.upper] == pytest.approx(ends, nan_ok=True, abs=1e-12), one.name
