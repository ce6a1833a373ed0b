"""``tracebridge horizon``: how reliability grows with the step budget, and the budget that is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from tracebridge.cli.console import emit, progress_line, say
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.horizon_report import horizon_document, show_horizon
from tracebridge.cli.options import PATH, common, model_constants
from tracebridge.cli.values import parse_constants, parse_decimal
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.chain import AbsorbingChain, ChainFit, MarkovChain
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.closedform.shape import CurveShape, ExponentialLimit
    from tracebridge.inference import Interval

_SHOWN_BUDGETS = 20
_LONGEST_CURVE = 1_000


@click.command(
    cls=Verb,
    epilog="\b\nExample: which budget is enough for all but one success in a hundred runs, and for R(d) >= 0.6?\n"
    "  tracebridge horizon chain.json --gap 0.01 --target 0.6",
)
@click.argument("model", type=PATH)
@click.option(
    "--gap",
    default="0.01",
    show_default=True,
    metavar="NUMBER",
    help="The horizon is the smallest budget beyond which more steps add at most this to the probability of success; "
    "above zero.",
)
@click.option("--target", metavar="NUMBER", help="Also the smallest budget d with R(d) at least this.")
@click.option(
    "--d-max", type=click.IntRange(1, 100_000), help="Show R(d) up to this budget. [default: the horizon, at most 1000]"
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.05,
    show_default=True,
    help="The exponential limit is said to hold where it is off by at most this.",
)
@click.option(
    "--draws",
    type=click.IntRange(0, 100_000),
    default=4_000,
    show_default=True,
    help="Draws from the posterior for the intervals; 0 turns them off.",
)
@model_constants
@common
def horizon(
    model: str,
    gap: str,
    target: str | None,
    d_max: int | None,
    tolerance: float,
    draws: int,
    constants: tuple[str, ...],
    as_json: bool,
    seed: int,
) -> None:
    """Show how R(d) of MODEL grows with the budget d, and which budget is enough, by every rule.

    MODEL is a chain.json, a PRISM program, or a file that export writes. R(d) is the probability of success within d
    steps; it grows with d up to R_inf. The exact horizon is proven for the chain; the bound from the Perron vector
    never falls below it; the paper's rules stand beside them for comparison. Intervals are those of the posterior, for
    a chain.json with its counts.
    """
    from tracebridge.checking.models import read_model

    allowed = parse_decimal(gap, "--gap")
    if not 0 < allowed < 1:
        raise click.UsageError(f"--gap is a difference of probabilities, between 0 and 1; not {gap}")
    reach = None if target is None else parse_decimal(target, "--target")
    from tracebridge.errors import UnsupportedError
    from tracebridge.inference.expanded.posterior import FitDraws
    from tracebridge.inference.identification import NO_END_REASON
    from tracebridge.report.findings import end_was_seen

    read = read_model(model, constants=parse_constants(constants))
    if read.fitted is not None and not end_was_seen(read.fitted):
        raise UnsupportedError(f"{model} has no R(d): {NO_END_REASON}")
    with progress_line() as progress:
        progress("computing the curve, its shape and the rules")
        found = HorizonFigures.of(read.chain, allowed, reach, d_max)
        sampled, missing, source = None, None, None
        if read.fitted is None:
            missing = "this model has no counts: they need a chain.json that was fitted to traces"
        elif draws:
            progress(f"drawing {counted(draws, 'chain')} from the posterior")
            source = FitDraws.of_fit(read.fitted)
            sampled = SampledIntervals.of(read.fitted, found, allowed, reach, draws, seed)
    if as_json:
        emit(horizon_document(model, found, sampled, tolerance, draws if sampled else 0, seed))
        return
    show_horizon(found, sampled, tolerance)
    if missing is not None:
        say(f"note: no intervals, for {missing}")
    elif source is not None:
        say(
            f"note: intervals are 95 %, from {counted(source.number(draws), 'draw')} ({source.method}); they and the "
            "budgets hold as far as the chain describes the runs: see tracebridge certify"
        )


# ---------------------------------------------------------------- computing


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """As `HorizonRules`; ``heuristic`` is None too where a chain is too large for the rules of the paper."""

    gap: float
    exact: float
    perron: float
    diagonal: float | None = None
    condition: float | None = None
    heuristic: int | None = None
    reason: str | None = None

    @classmethod
    def of(cls, form: AbsorbingChain, gap: Fraction) -> Rules:
        """Every rule for this chain and gap."""
        from tracebridge.closedform import horizon as exact_horizon
        from tracebridge.closedform import horizon_bound
        from tracebridge.closedform.shape import horizon_rules
        from tracebridge.errors import UnsupportedError

        try:
            return cls(**asdict(horizon_rules(form, gap)))
        except UnsupportedError as error:
            exact, perron = exact_horizon(form, gap), horizon_bound(form, gap)
            return cls(gap=float(gap), exact=exact, perron=perron, reason=str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonFigures:
    """Everything about the chain itself: the curve at the budgets that are shown, and the rules."""

    reliability: float
    mean_time: float
    budgets: Sequence[int]
    curve: Sequence[float]
    shape: CurveShape
    rules: Rules
    target: Fraction | None
    budget: float | None
    limit: ExponentialLimit | str

    @classmethod
    def of(cls, chain: MarkovChain, gap: Fraction, target: Fraction | None, d_max: int | None) -> HorizonFigures:
        """Of a chain; with the budget for a target if one is given. Raises as the closed forms do."""
        from tracebridge.chain import AbsorbingChain
        from tracebridge.closedform import (
            first_passage_quantile,
            long_run_reliability,
            mean_time_to_absorption,
            reliability_curve,
        )
        from tracebridge.closedform.shape import curve_shape, exponential_limit
        from tracebridge.errors import UnsupportedError, UsageError

        form = AbsorbingChain(chain=chain)
        rules = Rules.of(form, gap)
        last = d_max or int(min(max(rules.exact, 1), _LONGEST_CURVE))
        curve = reliability_curve(form, last)
        budgets = _spread(last)
        try:
            limit: ExponentialLimit | str = exponential_limit(form)
        except (UsageError, UnsupportedError) as error:
            limit = str(error)
        return cls(
            reliability=float(long_run_reliability(form)),
            mean_time=float(mean_time_to_absorption(form).overall),
            budgets=budgets,
            curve=[float(curve[d]) for d in budgets],
            shape=curve_shape(form, last),
            rules=rules,
            target=target,
            budget=None if target is None else first_passage_quantile(form, target),
            limit=limit,
        )


def _spread(last: int) -> list[int]:
    """Every budget of a short curve, about twenty of a long one, and the last."""
    stride = max(1, last // _SHOWN_BUDGETS)
    return sorted({*range(0, last + 1, stride), last})


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledIntervals:
    """Intervals over posterior draws."""

    reliability: Interval | None
    curve: Sequence[Interval | None]
    exact: Interval
    budget: Interval | None

    @classmethod
    def of(
        cls,
        fit: ChainFit | ExpandedFit,
        found: HorizonFigures,
        gap: Fraction,
        target: Fraction | None,
        draws: int,
        seed: int,
    ) -> SampledIntervals:
        """For the figures of a fit."""
        from tracebridge.inference import budget_interval, horizon_interval, property_uncertainty

        texts = ['P=? [ F "success" ];', *(f'P=? [ F<={d} "success" ];' for d in found.budgets)]
        overall, *curve = property_uncertainty(fit, "\n".join(texts), draws=draws, seed=seed)
        return cls(
            reliability=overall.interval,
            curve=[each.interval for each in curve],
            exact=horizon_interval(fit, float(gap), draws=draws, seed=seed),
            budget=None if target is None else budget_interval(fit, float(target), draws=draws, seed=seed),
        )
