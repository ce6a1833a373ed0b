"""The figures of the paper on confidence-routed broadcast ("What Confidence Routing Is Actually Doing"), by table."""

from __future__ import annotations

from dataclasses import dataclass

TRACES, BLOCKS, ROUTEABLE, SELECTED_VALID, POSSIBLE, ELIGIBLE = 4_181, 11_122, 9_653, 9_467, 5_295, 7_970
MIXED, PAIRS, CANDIDATES, ACCURACY, AGENTS, CLUSTERS = 1_184, 2_079, 23_391, 0.518, 3, 421
VALID_PAIRS, DIVERGENT, VALID_02_09, DIVERGENT_02_09 = 9_436, 1_927, 9_263, 1_921

#: Table 1: expected success over the routeable blocks, and the gap to the oracle, by router.
ROUTERS = {
    "runtime_argmax": (0.497, 0.052),
    "top_confidence_tie_random": (0.493, 0.055),
    "random_valid": (0.490, 0.059),
    "majority_vote": (0.496, 0.052),
    "confidence_weighted_vote": (0.501, 0.048),
    "learned": (0.499, 0.050),
}

#: Table 2: ECE, Brier score, AUROC and mean confidence, by calibrator.
CALIBRATION = {
    "identity": (0.278, 0.302, 0.721, 0.790),
    "temperature": (0.142, 0.242, 0.722, 0.580),
    "isotonic": (0.008, 0.208, 0.720, 0.518),
}
TEMPERATURE = 4.35

#: Tables 3 and 13: pairs of the primary class, their share in percent, their shift in points, pairs with the flag.
CLASSES = {
    "self_revert": (367, 19.0, -11.4, 367),
    "incumbent_pull": (120, 6.2, 1.7, 224),
    "peer_echo": (238, 12.4, -5.0, 550),
    "novel": (1_202, 62.4, -9.1, 1_202),
}

#: Table 5: mean confidence, accuracy and raw ECE, by actor and benchmark.
GRID = {
    "gpt-oss / math": (0.790, 0.518, 0.278),
    "gpt-oss / bio": (0.729, 0.593, 0.167),
    "gemma / bio": (0.879, 0.491, 0.438),
    "gemma / math": (0.839, 0.491, 0.443),
}

#: Table 6: estimate, ends of the 95 % interval, denominator.
ROUTING = {
    "CRA": (0.506, 0.486, 0.527, SELECTED_VALID),
    "HRWP": (0.906, 0.896, 0.915, POSSIBLE),
    "MCR": (0.058, 0.052, 0.065, ELIGIBLE),
    "PCCA": (0.570, 0.549, 0.593, MIXED),
    "CTR": (0.327, 0.305, 0.349, PAIRS),
    "selected_invalid_rate": (0.149, 0.139, 0.159, BLOCKS),
}

#: Table 10, as far as it is printed, by tier.
TIER_METRICS = ("HRWP", "PCCA", "CTR", "PSDR", "NPCS given D", "ECE")
TIERS = {
    "01": (0.991, 0.500, 0.000, 0.008, 0.000, 0.103),
    "02": (0.962, 0.572, 0.383, 0.125, 0.059, 0.128),
    "03": (0.853, 0.575, 0.368, 0.170, -0.250, 0.181),
    "04": (0.936, 0.587, 0.353, 0.166, -0.086, 0.202),
    "05": (0.915, 0.602, 0.361, 0.201, 0.022, 0.292),
    "06": (0.871, 0.578, 0.307, 0.233, -0.093, 0.356),
}

#: Table 15: mean and standard deviation of CRA, HRWP, PCCA and CTR; noise of the oracle, None for the permutation null.
CONSTRUCTIONS: dict[float | None, tuple[tuple[float, float | None], ...]] = {
    None: ((0.520, 0.002), (0.762, 0.003), (0.500, 0.011), (0.300, 0.006)),
    0.05: ((0.622, 0.001), (1.0, None), (1.0, None), (0.0, None)),
    0.10: ((0.620, 0.001), (1.0, None), (1.0, None), (0.0, None)),
    0.20: ((0.621, 0.001), (1.0, None), (1.0, None), (0.0, None)),
    0.50: ((0.605, 0.001), (0.961, 0.002), (0.913, 0.009), (0.023, 0.004)),
}

#: Table 16: decided pairs, agreement, kappa, and the verdicts: both divergent, the first judge alone, the second, none.
JUDGES = {
    "gemma-4-31B-it": (4_048, 0.908, 0.816, (1_776, 311, 62, 1_899)),
    "gemma-4-E4B-it": (3_945, 0.873, 0.748, (1_670, 433, 68, 1_774)),
}

#: Table 17: divergent pairs, PSDR, PSIR, PSDRg and NPCS given divergence, by judge, over the pairs of tiers 02 to 09.
VARIANTS = {
    "gpt-oss-120b": (DIVERGENT_02_09, 0.207, 0.174, 0.257, -0.083),
    "gemma-4-31B-it": (2_418, 0.261, 0.132, 0.192, -0.061),
    "gemma-4-E4B-it": (2_537, 0.274, 0.126, 0.186, -0.060),
}

#: Table 20: pass rate, thousands of tokens, calls, seconds.
COSTS = {
    "baseline_llm": (0.568, 18.4, 9.69, 43.6),
    "single_agent": (0.788, 48.1, 18.0, 74.3),
    "broadcast": (0.892, 616.5, 134.6, 294.9),
}
#: The ratios of broadcast to single_agent in its caption: tokens, calls, seconds.
COST_RATIOS = (12.8, 7.5, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTerm:
    """A coefficient as it is printed: digits are kept as text, since they say how it was rounded.

    Attributes:
        table, term: where. beta, odds_ratio: the texts. interval: 95 %, of beta. p_value: of beta = 0.
    """

    table: str
    term: str
    beta: str
    odds_ratio: str
    interval: tuple[float, float] | None = None
    p_value: float | None = None


def _terms(table: str, *rows: tuple[str, str, str]) -> tuple[PrintedTerm, ...]:
    return tuple(PrintedTerm(table=table, term=term, beta=beta, odds_ratio=ratio) for term, beta, ratio in rows)


#: Tables 4, 18, 12 and 11.
TERMS = (
    *_terms(
        "4",
        ("pool-solvable rate", "4.80", "121"),
        ("improvement rate", "1.30", "3.68"),
        ("tier difficulty", "0.39", "1.48"),
        ("selected-invalid rate", "0.58", "1.78"),
        ("PSDR", "0.15", "1.16"),
        ("degradation rate", "0.09", "1.09"),
    ),
    *_terms(
        "18",
        ("selected-correct rate", "5.94", "380"),
        ("improvement rate", "1.40", "4.08"),
        ("routing slack", "1.08", "2.96"),
        ("tier difficulty", "0.42", "1.52"),
        ("selected-invalid rate", "0.60", "1.81"),
        ("PSDR", "0.19", "1.21"),
    ),
    *_terms(
        "12",
        ("role: self", "-0.010", "0.99"),
        ("role: incumbent", "0.519", "1.68"),
        ("lag", "0.004", "1.00"),
        ("source confidence", "1.471", "4.35"),
        ("source correct", "0.314", "1.37"),
        ("most recent", "0.198", "1.22"),
    ),
    *(
        PrintedTerm(table="11", term=term, beta=beta, odds_ratio=ratio, interval=interval, p_value=p)
        for term, beta, ratio, interval, p in (
            ("correct: score", "6.551", "700.1", (5.844, 7.258), 1.18e-73),
            ("correct: score x difficulty", "-1.993", "0.136", (-2.303, -1.683), 2.44e-36),
            ("correct: round", "-0.903", "0.405", (-1.022, -0.785), 1.26e-50),
            ("divergent: poll correct", "-1.171", "0.310", (-1.333, -1.009), 1.23e-45),
            ("divergent: poll correct x difficulty", "0.254", "1.290", (0.181, 0.328), 8.85e-12),
            ("divergent: score", "-1.208", "0.299", (-1.886, -0.530), 4.83e-4),
        )
    ),
)

#: The problems of each tier in the companion release of the traces.
TIER_SIZES = (116, 517, 20, 1_106, 1_078, 497, 358, 328, 146, 15)


def prints_as(value: float, printed: float, decimals: int = 3) -> bool:
    """Whether a number is printed so; a number in the middle may be rounded either way."""
    return abs(value - printed) <= 0.5 * 10.0**-decimals + 1e-9


def integers_printed_as(printed: float, n: int, decimals: int = 3, scale: float = 1.0) -> range:
    """All k for which ``scale * k / n`` is printed so; they are consecutive."""
    fitting = [k for k in range(-n, n + 1) if prints_as(scale * k / n, printed, decimals)]
    return range(fitting[0], fitting[-1] + 1) if fitting else range(0)
