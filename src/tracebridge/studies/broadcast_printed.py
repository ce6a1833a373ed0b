"""What follows from printed figures alone: judges, coefficients, costs, and where tables contradict each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tracebridge.confidence.cluster_logit import wald_p_value
from tracebridge.confidence.judge_agreement import agreement_of_counts
from tracebridge.studies.broadcast_published import (
    BLOCKS,
    COST_RATIOS,
    COSTS,
    DIVERGENT,
    DIVERGENT_02_09,
    ELIGIBLE,
    JUDGES,
    MIXED,
    PAIRS,
    POSSIBLE,
    ROUTEABLE,
    ROUTERS,
    ROUTING,
    SELECTED_VALID,
    TERMS,
    TRACES,
    VALID_02_09,
    VARIANTS,
    integers_printed_as,
    prints_as,
)
from tracebridge.studies.result import Table
from tracebridge.studies.statement import equals, fixed

if TYPE_CHECKING:
    from tracebridge.studies.broadcast_published import PrintedTerm
    from tracebridge.studies.result import Cell
    from tracebridge.studies.statement import Statement

#: What a turn of the protocol takes at most: three polls, an utterance, two rounds of three approvals; and evaluations
#: of a deliberation.
_CALLS_PER_BLOCK, _EVALUATIONS = 10, 3


def printed_tables() -> tuple[list[Table], list[Statement]]:
    """Every table that is made of printed figures, and what is asserted of them."""
    parts = (_integers(), _judges(), _variants(), _terms(), _costs(), _contradictions())
    return [table for table, _ in parts], [statement for _, statements in parts for statement in statements]


def _integers() -> tuple[Table, list[Statement]]:
    """Counts that are not printed, from shares and denominators that are."""
    fitting = [
        set(integers_printed_as(printed, n))
        for printed, n in (
            (ROUTING["CRA"][0], SELECTED_VALID),
            (ROUTERS["runtime_argmax"][0], ROUTEABLE),
            (ROUTING["HRWP"][0], POSSIBLE),
        )
    ]
    selected = sorted(set.intersection(*fitting))
    missed = integers_printed_as(ROUTING["MCR"][0], ELIGIBLE)
    tied = integers_printed_as(ROUTING["CTR"][0], PAIRS)
    # With three agents a mixed block has one correct-wrong pair if two polls are valid, and two if three are.
    three = PAIRS - MIXED
    misses = POSSIBLE - selected[0]
    rows: tuple[tuple[Cell, ...], ...] = (
        ("correct selections", _range(selected), "CRA, HRWP and the runtime router"),
        ("correct candidates missed by a valid selection", _range(missed), "MCR"),
        ("tied correct-wrong pairs", _range(tied), "CTR"),
        ("mixed blocks with three valid polls", str(three), "2,079 pairs in 1,184 blocks"),
        ("mixed blocks with two valid polls", str(MIXED - three), "2,079 pairs in 1,184 blocks"),
        ("solvable blocks without a correct selection", str(misses), "HRWP"),
        (
            "invalid selections in solvable blocks",
            f"{misses - missed[-1]} to {misses - missed[0]}",
            "the difference of the two",
        ),
        ("routeable blocks with an invalid selection", str(ROUTEABLE - SELECTED_VALID), "denominators"),
        ("blocks without a valid poll", str(BLOCKS - ROUTEABLE), "denominators"),
    )
    title = "Counts that follow from what is printed"
    return Table(title=title, columns=("count", "value", "from"), rows=rows), [
        equals("counts: integers that three printed shares allow for the correct selections", len(selected), 1, 0),
    ]


def _range(values: list[int] | range) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _judges() -> tuple[Table, list[Statement]]:
    rows: list[tuple[Cell, ...]] = []
    alike = 0
    for name, (n, agreement, kappa, confusion) in JUDGES.items():
        found = agreement_of_counts("gpt-oss-120b", name, confusion)
        values = (int(found["agreement"].denominator), found["agreement"].value, found["kappa"].value)
        alike += values[0] == n and prints_as(values[1], agreement) and prints_as(values[2], kappa)
        rows.append(
            (name, n, values[0], agreement, values[1], kappa, values[2], found.kappa_error,
             found["directional_rate"].value, found.mcnemar)
        )  # fmt: skip
    columns = (
        "judge", "pairs", "ours", "agreement", "ours", "kappa", "ours", "its std. error", "first alone, of differing",
        "McNemar",
    )  # fmt: skip
    return Table(title="Table 16: agreement with gpt-oss-120b", columns=columns, rows=tuple(rows)), [
        fixed("Table 16: judges with the printed pairs, agreement and kappa, of 2", alike, lower=2)
    ]


def _variants() -> tuple[Table, list[Statement]]:
    rows: list[tuple[Cell, ...]] = []
    alike, negative = 0, 0
    for name, (n, psdr, improved, degraded, shift) in VARIANTS.items():
        found = (n / VALID_02_09, improved - degraded)
        alike += prints_as(found[0], psdr) and abs(found[1] - shift) <= 1.5e-3 + 1e-9  # three rounded figures
        negative += shift < 0
        rows.append((name, n, psdr, found[0], shift, found[1], 100 * found[0] * shift))
    columns = ("judge", "divergent", "PSDR", "n / 9,263", "NPCS given D", "PSIR - PSDRg", "unconditional, points")
    return Table(title="Table 17: commitment by judge, tiers 02 to 09", columns=columns, rows=tuple(rows)), [
        fixed("Table 17: judges whose rates fit their counts, of 3", alike, lower=3),
        fixed("Table 17: judges under which conditional NPCS is negative, of 3", negative, lower=3),
    ]


def _terms() -> tuple[Table, list[Statement]]:
    rows: list[tuple[Cell, ...]] = []
    ratios, with_interval, p_values = 0, 0, 0
    for term in TERMS:
        beta = float(term.beta)
        ratios += _ratio_fits(term)
        p_value = None
        if term.interval is not None and term.p_value is not None:
            with_interval += 1
            low, p_value, high = _wald_p_values(term)
            p_values += low <= term.p_value <= high
        rows.append((term.table, term.term, beta, float(term.odds_ratio), math.exp(beta), term.p_value, p_value))
    columns = ("table", "term", "beta", "odds ratio", "exp(beta)", "p", "p from the interval")
    table = Table(title="Tables 4, 11, 12 and 18: printed coefficients", columns=columns, rows=tuple(rows))
    return table, [
        fixed(f"coefficients whose odds ratio is exp(beta), of {len(TERMS)}", ratios, lower=len(TERMS)),
        fixed(f"Table 11: p-values that follow from the interval by the normal, of {with_interval}", p_values,
              lower=with_interval),
    ]  # fmt: skip


def _half_digit(text: str) -> float:
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def _ratio_fits(term: PrintedTerm) -> bool:
    """Some coefficient that is printed so has an odds ratio that is printed so."""
    beta, ratio = float(term.beta), float(term.odds_ratio)
    low, high = (math.exp(beta + sign * _half_digit(term.beta)) for sign in (-1, 1))
    return low <= ratio + _half_digit(term.odds_ratio) and high >= ratio - _half_digit(term.odds_ratio)


def _wald_p_values(term: PrintedTerm) -> tuple[float, float, float]:
    """The least, the nominal and the largest p-value that rounding of the coefficient and its interval allows."""
    assert term.interval is not None  # noqa: S101 - of those that have one
    size, width = abs(float(term.beta)), term.interval[1] - term.interval[0]
    at = [(size + 5e-4, width - 1e-3), (size, width), (size - 5e-4, width + 1e-3)]
    low, nominal, high = (wald_p_value(beta / (spread / 2 / 1.959964)) for beta, spread in at)
    return low, nominal, high


def _costs() -> tuple[Table, list[Statement]]:
    single, broadcast = COSTS["single_agent"], COSTS["broadcast"]
    found = [above / below for above, below in zip(broadcast[1:], single[1:], strict=True)]
    rows: list[tuple[Cell, ...]] = [(mode, *figures, None) for mode, figures in COSTS.items()]
    rows.append(("broadcast / single_agent, paper", None, *COST_RATIOS, None))
    rows.append(("broadcast / single_agent, ours", None, *found, broadcast[0] - single[0]))
    table = Table(
        title="Table 20: cost by mode",
        columns=("mode", "pass rate", "thousand tokens", "calls", "seconds", "pass rate gained"),
        rows=tuple(rows),
    )
    alike = sum(prints_as(value, printed, 1) for value, printed in zip(found, COST_RATIOS, strict=True))
    return table, [fixed("Table 20: ratios of cost that come out as printed, of 3", alike, lower=3)]


def _contradictions() -> tuple[Table, list[Statement]]:
    """Three places where no corpus whatsoever could have both printed figures."""
    calls = _CALLS_PER_BLOCK * BLOCKS / TRACES + _EVALUATIONS
    both, alone, other, _ = JUDGES["gemma-4-31B-it"][3]
    residual = both + alone
    fewer, more = both + other - residual, VARIANTS["gemma-4-31B-it"][0] - DIVERGENT_02_09
    rows: tuple[tuple[Cell, ...], ...] = (
        ("20 and 6", "calls of a deliberation", COSTS["broadcast"][2], "at most", calls),
        ("16 and 3", "pairs that gpt-oss-120b finds divergent", residual, "at most", DIVERGENT),
        ("16 and 17", "pairs more that gemma-4-31B-it finds divergent", fewer, "of one sign with", more),
    )
    columns = ("tables", "what", "the first says", "but it must be", "what the other says")
    return Table(title="Where the printed tables contradict each other", columns=columns, rows=rows), [
        fixed("contradiction of Tables 20 and 6: calls beyond those that the blocks allow",
              COSTS["broadcast"][2] - calls, lower=1),
        fixed("contradiction of Tables 16 and 3: residual divergent pairs beyond all divergent pairs",
              residual - DIVERGENT, lower=1),
        fixed("contradiction of Tables 16 and 17: product of the two differences", fewer * more, upper=-1),
    ]  # fmt: skip
