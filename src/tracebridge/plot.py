"""Figures for notebooks and papers: matplotlib axes of a reliability curve, a chain, a certificate, a calibration.

Every function draws on the axes that it is given, or else on new ones of pyplot, and returns them. What is drawn
follows from the arguments alone: the same numbers give the same figure. Texts from files are shown literally.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracebridge.errors import UsageError
from tracebridge.html_table import visible

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes

    from tracebridge.chain import AbsorbingChain, ChainFit, MarkovChain
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.confidence.calibration import ReliabilityBins
    from tracebridge.inference import Certificate
    from tracebridge.inference.expanded.certificate import ModelCertificate
    from tracebridge.pipeline import Assessment
    from tracebridge.report.evidence import Evidence

__all__ = ["plot_calibration", "plot_certificate", "plot_chain", "plot_reliability"]

_LONGEST_NAME = 24
_INCHES_A_LAYER, _INCHES_A_NODE = 1.5, 0.32


def plot_reliability(
    source: Assessment | Evidence | ChainFit | ExpandedFit | MarkovChain | AbsorbingChain,
    *,
    ax: Axes | None = None,
    last: int | None = None,
) -> Axes:
    """R(d), the probability of success within d steps, against the budget d.

    Of an assessment or its evidence also the posterior band, and the observed curve (Aalen-Johansen) with its interval.

    Args:
        source: what it is about. ax: where to draw. last: the largest budget; by default that of the report, and of a
            bare chain where R(d) is within 0.01 of its limit, at most 1,000.

    Raises:
        UsageError: a budget below one. ModelError: some runs never end, or no state means success.
    """
    from tracebridge.closedform import long_run_reliability, reliability_curve
    from tracebridge.report.plot import COLOURS

    found: Any = getattr(source, "evidence", source)
    results: Mapping[str, Any] | None = getattr(found, "results", None)
    fit: Any = found if results is None else found.fit
    chain: MarkovChain = getattr(fit, "chain", fit)
    if last is None:
        last = _last_budget(chain, results)
    if last < 1:
        raise UsageError(f"a curve has at least one step, not {last}")
    with _styled(ax):
        axes = _axes(ax)
        budgets = list(range(last + 1))
        curve = [float(value) for value in reliability_curve(chain, last)]
        axes.plot(budgets, curve, color=COLOURS[0], label="chain")
        limit = float(long_run_reliability(chain))
        axes.axhline(limit, color=COLOURS[0], linewidth=0.8, linestyle=":", label=f"limit {limit:.3g}")
        if results is not None:
            _bands(axes, results, last)
        axes.set(xlim=(0, last), ylim=(0, 1), xlabel="step budget d", ylabel="R(d)")
        axes.legend(loc="lower right")
    return axes


def _last_budget(chain: MarkovChain, results: Mapping[str, Any] | None) -> int:
    from tracebridge.closedform import horizon

    budgets = [] if results is None else [int(d) for d in results["figures"].get("R", {})]
    if budgets:
        return max(budgets)
    reach = float(horizon(chain, 0.01))
    return int(min(max(reach, 1), 1_000))


def _bands(axes: Axes, results: Mapping[str, Any], last: int) -> None:
    """The posterior band of the chain, and the observed curve with its own."""
    from tracebridge.report.plot import COLOURS

    posterior = {
        int(d): results["figures"]["uncertainty"][f"R({d})"]["posterior"]
        for d in results["figures"].get("R", {})
        if f"R({d})" in results["figures"]["uncertainty"]
    }
    band = [(d, each["lower"], each["upper"]) for d, each in posterior.items() if each is not None and d <= last]
    if band:
        d, lower, upper = zip(*band, strict=True)
        axes.fill_between(d, lower, upper, color=COLOURS[0], alpha=0.2, linewidth=0, label="posterior")
    observed = [] if results["observed"] is None else results["observed"]["R"].items()
    seen = [(int(d), each) for d, each in observed if each["value"] is not None and int(d) <= last]
    if seen:
        budgets, values = [d for d, _ in seen], [each["value"] for _, each in seen]
        axes.plot(budgets, values, "o-", color=COLOURS[1], markersize=3, linewidth=1, label="observed")
        ends = [(d, each["lower"], each["upper"]) for d, each in seen if each["lower"] is not None]
        if ends:
            d, lower, upper = zip(*ends, strict=True)
            axes.fill_between(d, lower, upper, color=COLOURS[1], alpha=0.15, linewidth=0)


def plot_chain(fit: ChainFit | ExpandedFit | Assessment | Evidence, *, ax: Axes | None = None, most: int = 30) -> Axes:
    """The transition graph: states by the expected step of their first visit, transitions as wide as they are frequent.

    Args:
        fit: what it is about. ax: where to draw. most: so many states at most; rare ones are drawn together.

    Raises:
        UsageError: fewer than two states, or a bare chain, of which nobody knows how sure it is. ModelError: not every
            run ends.
    """
    from matplotlib.patches import FancyArrowPatch

    from tracebridge.report.html.flow_graph import flow_graph
    from tracebridge.report.html.layered_layout import layered_layout
    from tracebridge.report.html.state_diagram import node_layers
    from tracebridge.report.plot import COLOURS

    if most < 2:
        raise UsageError(f"a drawing takes at least two states, not {most}")
    found: Any = getattr(fit, "evidence", fit)
    found = found.fit if hasattr(found, "results") else found
    if not hasattr(found, "chain"):
        raise UsageError(f"plot_chain draws a fit, an assessment or evidence, not a {type(found).__name__}")
    graph = flow_graph(found, most_nodes=most)
    drawn = [graph.edges[k] for k in graph.drawn]
    layout = layered_layout(
        node_layers(graph),
        [(edge.source, edge.target, math.sqrt(edge.flow)) for edge in drawn],
        node_heights=[1.0] * len(graph.nodes),
        edge_height=0.3,
        gap=0.5,
    )
    places = [(float(x), -y) for x, y in zip(layout.layers, layout.heights, strict=True)]
    colours = {"step": COLOURS[0], "success": COLOURS[2], "failure": COLOURS[1]}
    widest = max((edge.flow for edge in drawn), default=1.0)
    with _styled(ax):
        axes = _axes(ax, (2 + _INCHES_A_LAYER * max(layout.layers), 1.5 + _INCHES_A_NODE * layout.span))
        for edge in reversed(drawn):
            back = places[edge.target][0] <= places[edge.source][0]
            axes.add_patch(
                FancyArrowPatch(
                    places[edge.source],
                    places[edge.target],
                    arrowstyle="-|>",
                    mutation_scale=8,
                    shrinkA=18,
                    shrinkB=20,
                    connectionstyle=f"arc3,rad={0.35 if back else 0.08}",
                    linewidth=0.4 + 2.6 * edge.flow / widest,
                    color="#555555",
                    alpha=0.7,
                )
            )
        for node, (x, y) in zip(graph.nodes, places, strict=True):
            box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": colours[node.kind]}
            axes.text(x, y, f"{_name(node.name)}\n{node.visits:.3g}", ha="center", va="center", fontsize=7, bbox=box)
        heights = [y for _, y in places]
        axes.set(xlim=(-0.6, max(layout.layers) + 0.6), ylim=(min(heights) - 1, max(heights) + 1))
        axes.set_axis_off()
        axes.set_title(f"expected visits of a run; {len(drawn)} of {len(graph.edges)} transitions drawn")
    return axes


def plot_certificate(certificate: Certificate | ModelCertificate | Assessment, *, ax: Axes | None = None) -> Axes:
    """Each statistic of a certificate: its effect and the smallest that these runs would show, beside one that matters.

    Effects are shown as multiples of the reference effect of their unit, which stands at one.

    Raises:
        UsageError: an assessment whose certificate is missing.
    """
    from tracebridge.inference.certificate import p_text
    from tracebridge.report.plot import COLOURS

    found: Any = getattr(certificate, "certificate", certificate)
    if isinstance(found, str):
        raise UsageError(f"there is no certificate: {found}")
    rows = _statistics(found)
    places = [float(len(rows) - 1 - k) for k in range(len(rows))]
    with _styled(ax):
        axes = _axes(ax)
        axes.axvline(1, color="#767676", linewidth=0.8, linestyle="--", label="an effect that matters")
        scales = [{"gap": found.effects.gap, "nats": found.effects.nats}[each.unit] for _, each in rows]
        effects = [max(each.effect, 0.0) / scale for (_, each), scale in zip(rows, scales, strict=True)]
        rejected = [COLOURS[1] if each.p <= found.level else COLOURS[0] for _, each in rows]
        axes.barh(places, effects, height=0.6, color=rejected, alpha=0.75)
        shown = [
            (each.resolution / scale, place)
            for (_, each), scale, place in zip(rows, scales, places, strict=True)
            if each.resolution is not None
        ]
        if shown:
            axes.plot(*zip(*shown, strict=True), "d", color="black", markersize=5, label="smallest that would be seen")
        names = [f"{name} (p {p_text(each.p, found.replicates)})" for name, each in rows]
        axes.set(yticks=places, yticklabels=names, xlabel="effect, as a multiple of one that matters")
        axes.set(xlim=(0, None), ylim=(-0.6, len(rows) + 0.4))
        axes.legend(loc="upper right")
        axes.set_title(repr(found)[1:-1])
    return axes


def _statistics(certificate: Any) -> list[tuple[str, Any]]:
    """Name and statistic; of a richer chain each scope has its own."""
    if hasattr(certificate, "statistics"):
        return [(each.name, each) for each in certificate.statistics]
    scopes: Sequence[str] = ("timing", "path")
    return [(f"{scope}: {each.name}", each) for scope in scopes for each in certificate[scope].statistics]


def plot_calibration(bins: ReliabilityBins | Mapping[str, ReliabilityBins], *, ax: Axes | None = None) -> Axes:
    """Accuracy against stated confidence in bins: on the diagonal, confidence is what it says.

    Args:
        bins: the answers by their confidence, or several of them by name. ax: where to draw.
    """
    from tracebridge.confidence.calibration import ReliabilityBins
    from tracebridge.report.confidence_plots import plot_reliability as draw

    named = (
        {"stated": bins} if isinstance(bins, ReliabilityBins) else {visible(name): each for name, each in bins.items()}
    )
    with _styled(ax):
        return draw(_axes(ax), named)


def _axes(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """The axes that are given, or new ones of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    axes: Axes = plt.subplots(layout="constrained", figsize=size)[1]
    return axes


def _styled(ax: Axes | None) -> AbstractContextManager[Any]:
    """Our style for figures of our own; axes that are given keep their style, but names are never read as formulas."""
    from matplotlib import rc_context

    from tracebridge.report.plot import styled

    return styled() if ax is None else rc_context({"text.parse_math": False})


def _name(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 1]}…"
