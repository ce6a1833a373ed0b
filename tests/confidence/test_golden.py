"""Every check of the published tables, recomputed from their integers and printed digits.

A check recomputes a number and says how far from what is printed rounding may take it. Three are asserted to fail: the
published tables contradict each other there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tracebridge.confidence.cluster_logit import wald_p_value
from tracebridge.confidence.judge_agreement import agreement_of_counts
from tracebridge.confidence.metric_value import ratio
from tracebridge.studies.broadcast_population import PROBLEMS_PER_CLUSTER
from tracebridge.studies.broadcast_published import TIER_SIZES

BLOCKS, SELECTED_VALID, ROUTEABLE, POSSIBLE, ELIGIBLE = 11_122, 9_467, 9_653, 5_295, 7_970
CORRECT_SELECTED, MIXED, PAIRS, CANDIDATES, ACCURACY = 4_795, 1_184, 2_079, 23_391, 0.518
VALID_PAIRS, DIVERGENT, VALID_02_09 = 9_436, 1_927, 9_263
CLASSES = {
    "self-revert": (367, 19.0, -11.4, -42),
    "incumbent-pull": (120, 6.2, 1.7, 2),
    "peer-echo": (238, 12.4, -5.0, -12),
    "novel": (1_202, 62.4, -9.1, -109),
}
FLAGS = {"self": 367, "inc": 224, "peer": 550, "none": 1_202}
TRACES = 4_181


@dataclass(frozen=True)
class Check:
    """``recomputed`` is within ``tolerance`` of what is printed. ``near``: of what is stored as recomputed, which may
    start from printed digits where this starts from integers."""

    recomputed: Callable[[], float]
    tolerance: float
    near: float = 1e-9


def integers(printed: float, n: int, decimals: int, scale: float = 1.0) -> list[int]:
    """All k for which ``scale * k / n`` is printed so."""
    half = 0.5 * 10**-decimals * (1 + 1e-9)
    return [k for k in range(-n, n + 1) if abs(scale * k / n - printed) <= half]


def share(name: str, k: float, n: float) -> Callable[[], float]:
    return lambda: ratio(name, k, n, "units").value


CHECKS: dict[tuple[str, str], Check] = {}


def check(table: str, what: str, recomputed: Callable[[], float], tolerance: float, near: float = 1e-9) -> None:
    assert (table, what) not in CHECKS
    CHECKS[table, what] = Check(recomputed, tolerance, near)


def only(values: Iterable[float]) -> float:
    (value,) = values
    return value


def correct_selected() -> float:
    fitting = [set(integers(p, n, 3)) for p, n in ((0.506, SELECTED_VALID), (0.497, ROUTEABLE), (0.906, POSSIBLE))]
    return only(set.intersection(*fitting))


def two_or_three_valid(valid: int) -> float:
    """Of a mixed blocks with three valid polls (two pairs) and b with two (one pair): 2a + b = 2079, a + b = 1184."""
    solutions = [(a, MIXED - a) for a in range(MIXED + 1) if 2 * a + (MIXED - a) == PAIRS]
    return only(solutions)[3 - valid]


check("T6", "selected-invalid = 1 - 9467/11122", share("SIR", BLOCKS - SELECTED_VALID, BLOCKS), 5e-4)
check("T1/T6", "integer selected-correct K with K/9467=.506, K/9653=.497, K/5295=.906 (unique)", correct_selected, 0)
check("T1", "oracle success 5295/9653", share("oracle", POSSIBLE, ROUTEABLE), 1e-3)
for name, success in {
    "runtime": 0.497,
    "tie-random": 0.493,
    "random-valid": 0.490,
    "majority": 0.496,
    "cwv": 0.501,
    "learned": 0.499,
}.items():
    # Both the success and the gap are rounded.
    check("T1", f"gap to oracle, {name}", lambda success=success: POSSIBLE / ROUTEABLE - success, 1e-3)
check("T1", "five fixed routers span (pp)", lambda: 100 * (0.501 - 0.490), 0.1)
check("T6", "MCR numerator range over 7970 eligible", lambda: integers(0.058, ELIGIBLE, 3)[0], 0)
check(
    "T1/T6",
    "HRWP misses 5295-4795 = MCR numerator + selected-invalid-on-solvable",
    lambda: POSSIBLE - correct_selected(),
    0,
)
check("T1/T6", "routeable but selected invalid 9653-9467", lambda: ROUTEABLE - SELECTED_VALID, 0)
check("T1/T6", "unroutable (no valid candidate) 11122-9653", lambda: BLOCKS - ROUTEABLE, 0)
check("T6", "mixed blocks with 3 valid (2 pairs)", lambda: two_or_three_valid(3), 0)
check("T6", "mixed blocks with 2 valid (1 pair)", lambda: two_or_three_valid(2), 0)
check("T6", "CTR numerator range", lambda: integers(0.327, PAIRS, 3)[0], 0)
check("T2/T6", "valid polls / all polls (3 per block)", share("valid", CANDIDATES, 3 * BLOCKS), 5e-4)
# A null estimated from 50 replicates: its printed deviations are .002 and .003.
check("T15A", "CRA under permutation over all 3 polls = candidate accuracy", lambda: ACCURACY, 2.5e-3)
check(
    "T15A",
    "HRWP under permutation over all 3 polls = (#correct/3)/5295",
    lambda: ACCURACY * CANDIDATES / 3 / POSSIBLE,
    3e-3,
)
for cell, confidence, accuracy, ece in (
    ("oss/math", 0.790, 0.518, 0.278),
    ("oss/bio", 0.729, 0.593, 0.167),
    ("gemma/bio", 0.879, 0.491, 0.438),
    ("gemma/math", 0.839, 0.491, 0.443),
):
    violated = int(abs(confidence - accuracy) > ece + 1.5e-3)
    check("T5", f"|mean conf - acc| <= ECE {cell}", lambda violated=violated: violated, 0)


def murphy() -> float:
    """Isotonic confidence is its own accuracy, so that its Brier score is UNC - RES; the raw one has the same RES."""
    uncertainty = ACCURACY * (1 - ACCURACY)
    resolution = uncertainty - 0.208
    return int(0.302 - uncertainty + resolution < 0.278**2)


check("T2", "Murphy: REL_raw = Brier_raw-UNC+RES >= ECE^2", murphy, 0)
check("T2", "isotonic mean conf = accuracy", lambda: ACCURACY, 5e-4)
# One confidence in place of all: Jensen's gap.
check("T2", "sigma(logit(.79)/4.35)", lambda: 1 / (1 + math.exp(-math.log(0.79 / 0.21) / 4.35)), 5e-3)
check("abs/T3", "PSDR 1927/9436", share("PSDR", DIVERGENT, VALID_PAIRS), 5e-4)
check("T3", "counts sum", lambda: sum(n for n, *_ in CLASSES.values()), 0)
for name, (n, _, shift, net) in CLASSES.items():
    check("T3", f"{name} share %", share(name, 100 * n, DIVERGENT), 0.051)
    what = f"{name}: an integer net-event count reproduces delta"
    check("T3", what, lambda n=n, shift=shift, net=net: integers(shift, n, 1, 100) == [net], 0)
check(
    "T3",
    "pooled conditional NPCS (pp)",
    lambda: sum(n * shift for n, _, shift, _ in CLASSES.values()) / DIVERGENT,
    0.1,
)
check(
    "abs",
    "unconditional shift (pp) = net/9436",
    lambda: sum(n * shift for n, _, shift, _ in CLASSES.values()) / VALID_PAIRS,
    0.05,
)
check(
    "T3/abs",
    "NPCS_uncond = PSDR * NPCS|D (pp)",
    lambda: 100 * DIVERGENT / VALID_PAIRS * sum(net for *_, net in CLASSES.values()) / DIVERGENT,
    0.05,
)
primary = {"self": 367, "inc": 120, "peer": 238}
check("T13", "any-flag = 1927-1202", lambda: DIVERGENT - FLAGS["none"], 0)
check("T13", "peer-echo flag - primary", lambda: FLAGS["peer"] - primary["peer"], 0)
check("T13", "incumbent flag - primary (also self-revert)", lambda: FLAGS["inc"] - primary["inc"], 0)
check("T13", "flag surplus = 104+312", lambda: FLAGS["self"] + FLAGS["inc"] + FLAGS["peer"] - sum(primary.values()), 0)
for name, n in FLAGS.items():
    check("T13", f"{name} %", share(name, 100 * n, DIVERGENT), 0.05)
for name, confusion in {"31B": (1776, 311, 62, 1899), "E4B": (1670, 433, 68, 1774)}.items():
    judges = agreement_of_counts("gpt-oss", name, confusion)
    check("T16", f"{name} n", lambda judges=judges: judges["agreement"].denominator, 0)
    check("T16", f"{name} agreement", lambda judges=judges: judges["agreement"].value, 5e-4)
    check("T16", f"{name} Cohen kappa", lambda judges=judges: judges["kappa"].value, 5e-4)
for name, n, improved, degraded, shift in (
    ("oss", 1_921, 0.174, 0.257, -0.083),
    ("31B", 2_418, 0.132, 0.192, -0.061),
    ("E4B", 2_537, 0.126, 0.186, -0.060),
):
    check("T17", f"{name} PSDR /9263", share("PSDR", n, VALID_02_09), 5e-4)
    check("T17", f"{name} PSIR-PSDRg=NPCS|D", lambda a=improved, b=degraded: a - b, 1.5e-3)
    check("T17", f"{name} unconditional NPCS (pp)", lambda n=n, shift=shift: 100 * n / VALID_02_09 * shift, 5e-3)
check("T17/T10", "valid pairs outside tiers 02-09", lambda: VALID_PAIRS - VALID_02_09, 0)
check("T17/T3", "divergent pairs outside 02-09", lambda: DIVERGENT - 1_921, 0)
check("T10", "tier01 PSDR = 1/119", share("PSDR", 1, 119), 5e-4)
check("T10", "tier03 PSDR = 8/47", share("PSDR", 8, 47), 5e-4)
check("T10", "tier03 NPCS|D = -2/8", share("NPCS", -2, 8), 5e-4)
check("T10", "tier01 HRWP = 115/116", share("HRWP", 115, 116), 5e-4)


def odds_ratio(beta: str, printed: str) -> Callable[[], float]:
    """Some coefficient that is printed so has an odds ratio that is printed so."""

    def ends(text: str) -> tuple[float, float]:
        half = 0.5 * 10.0 ** -len(text.partition(".")[2])
        return float(text) - half, float(text) + half

    (low, high), (least, most) = ends(beta), ends(printed)
    return lambda: float(math.exp(low) <= most and math.exp(high) >= least)


ODDS_RATIOS = {
    "T4": [("pool-solvable", "4.80", "121"), ("improve", "1.30", "3.68"), ("tier", "0.39", "1.48"),
           ("sel-invalid", "0.58", "1.78"), ("PSDR", "0.15", "1.16"), ("degrade", "0.09", "1.09")],
    "T18": [("sel-correct", "5.94", "380"), ("improve", "1.40", "4.08"), ("slack", "1.08", "2.96"),
            ("tier", "0.42", "1.52"), ("sel-inv", "0.60", "1.81"), ("PSDR", "0.19", "1.21")],
    "T12": [("self", "-0.010", "0.99"), ("incumbent", "0.519", "1.68"), ("lag", "0.004", "1.00"),
            ("conf", "1.471", "4.35"), ("correct", "0.314", "1.37"), ("recent", "0.198", "1.22")],
    "T11": [("score", "6.551", "700.1"), ("score x diff", "-1.993", "0.136"), ("round", "-0.903", "0.405"),
            ("poll correct", "-1.171", "0.310"), ("poll x diff", "0.254", "1.290"), ("div score", "-1.208", "0.299")],
}  # fmt: skip
for table, rows in ODDS_RATIOS.items():
    for name, beta, printed in rows:
        check(table, f"OR=exp(beta) {name}", odds_ratio(beta, printed), 0)

WALD = {
    "score": (6.551, 5.844, 7.258),
    "score x diff": (-1.993, -2.303, -1.683),
    "round": (-0.903, -1.022, -0.785),
    "poll correct": (-1.171, -1.333, -1.009),
    "poll x diff": (0.254, 0.181, 0.328),
    "div score": (-1.208, -1.886, -0.530),
}


def log_p(beta: float, width: float) -> float:
    return math.log10(wald_p_value(beta / (width / 2 / 1.959964)))


for name, (estimate, lower, upper) in WALD.items():
    check("T11", f"CI centred on beta {name}", lambda a=lower, b=upper: (a + b) / 2, 1.001e-3)
    # The coefficient is rounded by up to .0005 and the width of the interval by up to .001.
    size, spread = abs(estimate), upper - lower
    extremes = [log_p(size + a, spread + b) for a, b in ((5e-4, -1e-3), (-5e-4, 1e-3))]
    value = log_p(size, spread)
    check(
        "T11",
        f"p from Wald z, log10 {name}",
        lambda value=value: value,
        max(abs(e - value) for e in extremes),
        1e-5,
    )
check("T20", "token ratio broadcast/single", share("tokens", 616.5, 48.1), 0.05)
check("T20", "call ratio", share("calls", 134.6, 18.0), 0.05)
check("T20", "wall ratio", share("wall", 294.9, 74.3), 0.05)
check("T4/T10", "sum of tier sizes", lambda: sum(TIER_SIZES), 0)
check(
    "T4/T10",
    "sum of ceil(n_t/10) = 421 'problem clusters'",
    lambda: sum(math.ceil(n / PROBLEMS_PER_CLUSTER) for n in TIER_SIZES),
    0,
)
check(
    "T8/T6",
    "blocks per trace 11122/4181 < 4 => approval must stop the turn loop early",
    lambda: float(BLOCKS / TRACES < 4),
    0,
)
# Ten calls a block and three evaluations a trace are the most that the protocol makes; 134.6 are printed.
check(
    "T20/T6",
    "calls per trace implied by 11122 blocks, <=10 calls/block + <=3 evals",
    lambda: 10 * BLOCKS / TRACES + 3,
    5,
)
# More residual pairs are divergent for the first judge than there are divergent pairs at all.
check("T16/T3", "judge1=div count (1776+311) <= all divergences 1927", lambda: max(0, 1776 + 311 - DIVERGENT), 0)
FIRST_JUDGE, SECOND_JUDGE = (1776 + 311, 1_921), (1776 + 62, 2_418)  # divergent pairs of table 16 and of table 17
# One table says that the second judge finds fewer divergent pairs, the other that it finds more.
check(
    "T16/T17",
    "Gemma-31B labels should not raise divergences when it 'rescues' (311>62)",
    lambda: float((SECOND_JUDGE[0] < FIRST_JUDGE[0]) == (SECOND_JUDGE[1] < FIRST_JUDGE[1])),
    0,
)

CONTRADICTIONS = {
    ("T20/T6", "calls per trace implied by 11122 blocks, <=10 calls/block + <=3 evals"),
    ("T16/T3", "judge1=div count (1776+311) <= all divergences 1927"),
    ("T16/T17", "Gemma-31B labels should not raise divergences when it 'rescues' (311>62)"),
}


@pytest.fixture(scope="module")
def stored(shared_data: Path) -> dict[tuple[str, str], dict[str, object]]:
    rows = json.loads((shared_data / "confidence_golden.json").read_text())
    assert len(rows) == 114
    return {(row["table"], row["what"]): row for row in rows}


@pytest.mark.shared_data
def test_every_stored_check_is_recomputed(stored: dict[tuple[str, str], dict[str, object]]) -> None:
    assert len(CHECKS) == 114
    assert CHECKS.keys() == stored.keys()
    assert {key for key, row in stored.items() if not row["ok"]} == CONTRADICTIONS


@pytest.mark.shared_data
@pytest.mark.parametrize("key", CHECKS, ids=lambda key: f"{key[0]}: {key[1]}")
def test_golden(key: tuple[str, str], stored: dict[tuple[str, str], dict[str, object]]) -> None:
    row, golden = stored[key], CHECKS[key]
    value = float(golden.recomputed())
    assert value == pytest.approx(row["recomputed"], abs=golden.near)
    agrees = abs(value - float(str(row["reported"]))) <= golden.tolerance + 1e-12
    assert agrees == row["ok"] == (key not in CONTRADICTIONS)


def test_ranges_of_integers() -> None:
    assert (integers(0.058, ELIGIBLE, 3)[0], integers(0.058, ELIGIBLE, 3)[-1]) == (459, 466)
    assert integers(0.327, PAIRS, 3) == [679, 680]
    assert correct_selected() == CORRECT_SELECTED
