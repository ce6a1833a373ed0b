"""What ``tracebridge horizon`` found, for people and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tracebridge.cli.console import print_table, write

if TYPE_CHECKING:
    from tracebridge.cli.horizon import HorizonFigures, Rules, SampledIntervals
    from tracebridge.closedform.shape import CurveShape, ExponentialLimit
    from tracebridge.inference import Interval


def show_horizon(found: HorizonFigures, sampled: SampledIntervals | None, tolerance: float) -> None:
    """The curve, its shape, the rules and the exponential limit."""
    overall = None if sampled is None else sampled.reliability
    write(f"R_inf {found.reliability:.4f}{_around(overall)}, mean steps of a run {found.mean_time:.4g}")
    write("")
    columns = ["d", "R(d)"] + (["95 % interval"] if sampled is not None else [])
    rows = []
    for i, (d, value) in enumerate(zip(found.budgets, found.curve, strict=True)):
        rows.append([str(d), f"{value:.4f}", *([_around(sampled.curve[i]).strip()] if sampled is not None else [])])
    print_table(columns, rows)
    write("")
    write(f"shape: {_shape_in_words(found.shape)}")
    write("")
    rules = found.rules
    write(f"horizon: the smallest budget d with R_inf - R(d) <= {rules.gap:g}")
    exact = [_steps(rules.exact), "proven for the chain"]
    if sampled is not None:
        exact[0] += _around(sampled.exact, ".0f")
    tabulated = "a heuristic, no bound"
    if rules.heuristic is None:
        tabulated = f"does not apply: {rules.reason}"
    elif rules.heuristic < rules.exact:
        tabulated += f", here {rules.exact - rules.heuristic:.0f} short"
    diagonal = "none" if rules.diagonal is None else f"{rules.diagonal:.1f}"
    print_table(
        ["rule", "d", "what it is"],
        [
            ["exact", *exact],
            ["Perron bound", _steps(rules.perron), "a bound: never below the exact horizon"],
            ["paper, eq. 14", diagonal, _diagonal_in_words(rules)],
            ["paper, Table IV", "none" if rules.heuristic is None else str(rules.heuristic), tabulated],
        ],
    )
    if found.target is not None and found.budget is not None:
        interval = "" if sampled is None or sampled.budget is None else _around(sampled.budget, ".0f")
        write("")
        never = "; R_inf is not above it" if found.budget == float("inf") else ""
        write(f"smallest budget d with R(d) >= {float(found.target):g}: {_steps(found.budget)}{interval}{never}")
    write("")
    for line in _limit_in_words(found.limit, tolerance):
        write(line)


def _around(interval: Interval | None, digits: str = ".4f") -> str:
    if interval is None:
        return ""
    lower, upper = (_steps(end) if digits == ".0f" else f"{end:{digits}}" for end in (interval.lower, interval.upper))
    return f" [{lower}, {upper}]"


def _steps(d: float) -> str:
    return "never" if d == float("inf") else f"{d:.0f}"


def _shape_in_words(shape: CurveShape) -> str:
    if shape.concave:
        why = " (Qw <= w: from every state, success is likeliest now)" if shape.falling else ""
        return f"concave at every d: each step adds less than the one before{why}"
    parts = []
    if shape.convex:
        many = "; such a stretch says that a run must get past something before it can succeed"
        parts.append(f"convex at d = {_ranges(shape.convex)}, where a step adds more than the one before{many}")
    if shape.undecided:
        parts.append(f"undecided within rounding at d = {_ranges(shape.undecided)}")
    last = len(shape.second_differences)
    parts.append("concave at every other d" if shape.concave_from is not None else f"concave at other d up to {last}")
    if shape.concave_from is None:
        parts.append("not known beyond")
    return "; ".join(parts)


def _ranges(numbers: Sequence[int]) -> str:
    """``1-3, 7`` for 1, 2, 3, 7; the first few."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in ranges[:8]]
    return ", ".join(texts) + (", ..." if len(ranges) > 8 else "")


def _diagonal_in_words(rules: Rules) -> str:
    if rules.diagonal is None or rules.condition is None:
        return f"does not apply: {rules.reason}"
    return f"a bound if Q can be diagonalised; condition of its eigenvectors {rules.condition:.3g}"


def _limit_in_words(limit: ExponentialLimit | str, tolerance: float) -> Iterator[str]:
    if isinstance(limit, str):
        yield f"exponential limit: not looked at: {limit}"
        return
    yield (
        f"exponential limit: successes mu {limit.success_rate:.4g} and failures eps {limit.failure_rate:.4g} a step; "
        f"eps/mu {limit.ratio:.4g}"
    )
    holds = "holds" if limit.gap <= tolerance else "does not hold"
    yield f"  R(d) = 1 - exp(-mu d) {holds} within {tolerance:g}: it is off by up to {limit.gap:.4f}"
    yield from (f"    {reason}" for reason in limit.obstacles(tolerance))
    holds = "holds" if limit.scaled_gap <= tolerance else "does not hold"
    yield (
        f"  R(d) = R_inf (1 - exp(-d/MTTA)), which allows failures, {holds} within {tolerance:g}: it is off by up to "
        f"{limit.scaled_gap:.4f}"
    )


def horizon_document(
    model: str, found: HorizonFigures, sampled: SampledIntervals | None, tolerance: float, draws: int, seed: int
) -> dict[str, Any]:
    """The JSON document ``tracebridge-horizon``."""
    from tracebridge.checking.result import number_to_json

    def interval(value: Interval | None) -> Any:
        return None if value is None else value.to_dict()

    overall, exact, reach = (None,) * 3 if sampled is None else (sampled.reliability, sampled.exact, sampled.budget)
    shape, limit = found.shape, found.limit
    rules: dict[str, Any] = {
        key: number_to_json(value) if isinstance(value, float) else value for key, value in asdict(found.rules).items()
    }
    curve = [None] * len(found.budgets) if sampled is None else sampled.curve
    return {
        "kind": "tracebridge-horizon",
        "schema_version": 1,
        "model": model,
        "draws": draws,
        "seed": seed,
        "R_inf": {"value": found.reliability, "interval": interval(overall)},
        "MTTA": found.mean_time,
        "R": [
            {"d": d, "R": value, "interval": interval(each)}
            for d, value, each in zip(found.budgets, found.curve, curve, strict=True)
        ],
        "shape": {
            "d_max": len(shape.second_differences),
            "concave": shape.concave,
            "convex": list(shape.convex),
            "undecided": list(shape.undecided),
            "concave_from": shape.concave_from,
            "Qw_at_most_w": shape.falling,
        },
        "horizon": {**rules, "interval": interval(exact)},
        "budget": None
        if found.target is None or found.budget is None
        else {
            "target": float(found.target),
            "d": number_to_json(found.budget),
            "interval": interval(reach),
        },
        "exponential_limit": {"reason": limit}
        if isinstance(limit, str)
        else {**asdict(limit), "tolerance": tolerance, "obstacles": limit.obstacles(tolerance)},
    }
