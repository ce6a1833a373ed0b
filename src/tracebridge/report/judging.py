"""From what engines say about a chain to all findings: what its counts say, and what only its runs can say.

`assess` and the replay of its evidence go through here, so that a number is found again by the code that found it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracebridge.agreement import compare
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.fit import ChainFit
from tracebridge.checking import iter_check
from tracebridge.inference.ending_choices import ending_choices
from tracebridge.inference.expanded.posterior import FitDraws
from tracebridge.inference.expanded.scope import required_scope
from tracebridge.inference.expanded.standing import standings
from tracebridge.inference.figure_uncertainty import figure_uncertainty
from tracebridge.inference.identification import NO_END_REASON, reliability_bounds
from tracebridge.inference.judgement import judged, plans_of_undecided
from tracebridge.inference.qualitative import is_relative_to_support, qualitative_basis
from tracebridge.inference.robust_guarantee import robust_guarantees
from tracebridge.inference.second_opinion import second_opinions
from tracebridge.inference.uncertainty import property_uncertainty
from tracebridge.pctl import ast
from tracebridge.report.figures import HORIZON_GAP, key_figures
from tracebridge.report.findings import Findings, PropertyFinding, end_was_seen, marks_of
from tracebridge.report.observed import observed_curve

if TYPE_CHECKING:
    from pathlib import Path

    from tracebridge.agreement import Agreement
    from tracebridge.inference.figure_uncertainty import FigureUncertainty
    from tracebridge.inference.planning import Plan
    from tracebridge.inference.robust_guarantee import RobustGuarantee
    from tracebridge.inference.second_opinion import SecondOpinion
    from tracebridge.report.run_findings import Effort, RunFindings


def ask_engines(
    fit: ChainFit | ExpandedFit,
    file: ast.PropertyFile,
    engines: Sequence[str],
    *,
    exact: bool,
    time_limit: float | None,
    prism: str | Path | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> list[Agreement]:
    """What the engines say of a chain, one agreement a property; see `tracebridge.checking.check` for the options."""
    results = []
    for result in iter_check(fit, file, engines=engines, exact=exact, time_limit=time_limit, prism=prism):
        progress(f"{result.engine}: {result.property.name or result.property.text}")
        results.append(result)
    return compare(results)


def judge_chain(
    fit: ChainFit | ExpandedFit,
    file: ast.PropertyFile,
    agreements: Sequence[Agreement],
    of_runs: RunFindings,
    effort: Effort,
    *,
    corpus: Mapping[str, Any],
    engines: Mapping[str, str],
    exact: bool,
    progress: Callable[[str], None] = lambda message: None,
) -> Findings:
    """What the data say about a chain, about each property and about each headline number.

    Args:
        fit: the fit. file: the properties, resolved. agreements: what the engines say, one a property of the file.
        of_runs: what its runs say. effort: see there. corpus, engines, exact: see `Findings`.
    """
    base = fit.base if isinstance(fit, ExpandedFit) else fit
    seed, runs = effort.seed, of_runs.runs
    notes: list[str] = []
    source = FitDraws.of_fit(fit)
    agreements = [*agreements]
    if effort.draws:
        progress(f"{source.number(effort.draws)} draws of the posterior")
        agreements = judged(agreements, property_uncertainty(fit, file, draws=effort.draws, seed=seed, source=source))
    else:
        notes.append("no posterior was drawn: there are no intervals, and properties with credible stay undecided")
    opinions: list[SecondOpinion | None] = [None] * len(agreements)
    if effort.resamples:
        progress(f"{effort.resamples} resamples of the runs")
        opinions = [*second_opinions(fit, file, runs=runs, resamples=effort.resamples, seed=seed)]
        if fit.weighted is not None:
            notes.append("no bootstrap: runs with weights are not drawn again, their sampling design is not known")
    plans: Sequence[Plan | None] = [None] * len(agreements)
    if isinstance(fit, ChainFit):
        progress("planning")
        plans = plans_of_undecided(fit, file, agreements, futures=effort.futures, seed=seed)
    guarantees: Sequence[RobustGuarantee | None] = [None] * len(agreements)
    if effort.robust is not None:
        guarantees = robust_guarantees(fit, [each.property for each in agreements], level=effort.robust)
    properties = []
    standing_of = standings(of_runs.certificate if of_runs.ladder is None else of_runs.ladder)
    for agreement, opinion, plan, guarantee in zip(agreements, opinions, plans, guarantees, strict=True):
        formula = agreement.property.formula
        basis = qualitative_basis(base, formula) if is_relative_to_support(base) else ()
        standing = standing_of[required_scope(formula)]
        properties.append(
            PropertyFinding(
                agreement=agreement,
                standing=standing,
                marks=marks_of(basis, standing.mark),
                opinion=opinion,
                plan=plan,
                basis=basis,
                guarantee=guarantee,
            )
        )
    if isinstance(fit, ExpandedFit) and fit.form.classes > 1:
        powers = [each.agreement.property for each in properties if _takes_a_power(each.agreement.property.formula)]
        if powers:
            names = ", ".join(each.name or each.text for each in powers)
            notes.append(
                f"{names}: pow of a probability takes trials as independent, and here trials of a task share its "
                "class; the table of pass^k in the summary, and the property below it, do not"
            )
    figures = key_figures(fit.chain) if end_was_seen(fit) else NO_END_REASON
    budgets = [] if isinstance(figures, str) else list(figures.curve)
    uncertainty: Mapping[str, FigureUncertainty] = {}
    if effort.draws and not isinstance(figures, str):
        progress("intervals of the headline numbers")
        uncertainty = figure_uncertainty(
            fit,
            budgets,
            runs=runs,
            draws=effort.draws,
            resamples=effort.resamples,
            seed=seed,
            horizon_gap=HORIZON_GAP,
            source=source,
        )
    lengths = of_runs.lengths
    return Findings(
        corpus=corpus,
        fit=fit,
        figures=figures,
        figure_uncertainty=uncertainty,
        properties=tuple(properties),
        engines=engines,
        exact=exact,
        certificate=of_runs.certificate,
        ladder=of_runs.ladder,
        observed=None if lengths is None else observed_curve(fit, lengths, budgets),
        bounds=None if lengths is None else reliability_bounds(lengths.under(fit.policy)),
        ending_choices=None if of_runs.endings is None else ending_choices(base, of_runs.endings, file),
        advice=of_runs.advice,
        notes=tuple(notes),
    )


def _takes_a_power(formula: ast.Formula) -> bool:
    """Whether a property raises a probability to a power, as pass^k of independent trials does."""
    return any(
        isinstance(node, ast.Call)
        and node.function == "pow"
        and any(isinstance(part, ast.Probability) for part in ast.walk(node.arguments[0]))
        for node in ast.walk(formula)
    )
