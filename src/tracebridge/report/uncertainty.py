"""Intervals, shares, plans and what verdicts rest on, in the words of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracebridge.checking.result import number_from_json
from tracebridge.report.findings import RELATIVE_TO_SUPPORT
from tracebridge.report.table import interval_text
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.inference.planning import Plan
    from tracebridge.inference.qualitative import QualitativeBasis
    from tracebridge.inference.second_opinion import SecondOpinion

#: So many unseen transitions are listed for people, those of the largest bounds; results.json has all.
SHOWN_EDGES = 20

_ENOUGH = 0.8


def opinion_text(opinion: SecondOpinion) -> str:
    """What the other methods say, each by its name, on one line."""
    intervals = {each.method: interval_text(each) for each in opinion.intervals}
    parts = []
    for method in dict.fromkeys([*intervals, *opinion.satisfied]):
        share = opinion.satisfied.get(method)
        holds = [] if share is None else [f"holds in {share:.4g} of the resamples"]
        parts.append(f"{method} {', '.join([*([intervals[method]] if method in intervals else []), *holds])}")
    return "; ".join([*parts, *opinion.notes])


def contrary_opinions(found: Mapping[str, Any]) -> Iterator[str]:
    """Methods by which a decision that ``credible`` asked for would not have been made, one sentence each.

    Args:
        found: the document of a property's finding.
    """
    data, opinion, verdict = found["uncertainty"], found["second_opinion"], found["verdict"]
    if data is None or opinion is None or not data["credible"] or verdict not in ("satisfied", "violated"):
        return
    level = float(data["level"])
    asked = f"at least {level:.6g}" if verdict == "satisfied" else f"at most {1 - level:.6g}"
    for method, value in opinion["satisfied"].items():
        share = float(number_from_json(value))
        if share < level if verdict == "satisfied" else 1 - share < level:
            yield (
                f"not every method says {verdict}: by the {method} it holds in {share:.4g} of the resamples, and "
                f"{asked} is asked for"
            )


def plan_text(plan: Plan) -> str:
    """How many more runs would decide an undecided property."""
    if plan.reason is not None:
        return f"how many more runs would decide it is not known: {plan.reason}"
    if not plan.outlooks:
        return "it is on the edge of a decision: the fewer draws of the planning already decide it"
    enough = plan.enough(_ENOUGH)
    last = plan.outlooks[-1]
    if enough is None:
        runs = counted(last.n_more, "more run")
        answer = f"even {runs} would decide it with a probability of {last.decided:.2f} only; no more were tried"
    else:
        answer = f"about {counted(enough, 'more run')} would decide it with a probability of {_ENOUGH:g} or more"
    shown = ", ".join(f"{each.n_more}: {each.decided:.2f}" for each in plan.outlooks)
    error = max(each.error for each in plan.outlooks)
    return (
        f"{answer} (runs: probability of a decision at level {plan.level:g}, {shown}; posterior predictive, "
        f"{counted(last.futures, 'future')} each, standard error at most {error:.2f})"
    )


def basis_lines(bases: Sequence[QualitativeBasis]) -> Iterator[str]:
    """What the qualitative operators of a property rest on, one sentence each; by name if there are several."""
    for basis in bases:
        name = f"{basis.operator}: " if len(bases) > 1 else ""
        for line in _basis_lines(basis):
            yield f"{RELATIVE_TO_SUPPORT}: {name}{line}"


def _basis_lines(basis: QualitativeBasis) -> Iterator[str]:
    support = basis.support
    if support is None:
        yield f"which unseen transitions it rests on is not listed, because {basis.reason}"
        return
    if support.holds_as_observed is not None and support.holds_as_observed is not support.holds:
        yield (
            "on the observed transitions and starts alone the answer would be the opposite; it "
            "comes from transitions that the fit allows unseen, such as the exits of every state or those of a "
            "declared graph, or from the start that was given"
        )
    if basis.nested:
        yield ("the verdicts inside it are taken as they are in the fitted chain, and what those rest on is not listed")
    edges = sorted(support.edges, key=lambda edge: (-edge.bound, edge.source, edge.target))
    if not edges:
        yield "no single unseen transition would change it"
        return
    shown = "; ".join(
        f"{edge.source} -> {edge.target} (none of {edge.exits:g}, at most {edge.bound:.2g})"
        for edge in edges[:SHOWN_EDGES]
    )
    more = f"; and {len(edges) - SHOWN_EDGES} more" if len(edges) > SHOWN_EDGES else ""
    yield (
        "each of these unseen transitions would change it (its probability is at most the bound, "
        f"one-sided, 95 %): {shown}{more}"
    )
