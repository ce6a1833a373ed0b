"""Figures as SVG texts: the same bytes for the same numbers, text as text, colours that everybody can tell apart."""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

#: Okabe and Ito (2008).
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_GREY: Final = "#767676"
_SIZE: Final = (5.6, 3.8)  # inches

_STYLE: Final[dict[str, Any]] = {
    "svg.hashsalt": "tracebridge",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "figure.figsize": _SIZE,
    "text.parse_math": False,  # names of agents and tiers come from files
}


class Figure:
    """One figure with one axes, drawn without a display and without the state of pyplot."""

    def __init__(self) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Drawing

        with styled():
            self._drawing = Drawing(layout="constrained")
            FigureCanvasSVG(self._drawing)
            self.axes: Axes = self._drawing.add_subplot()

    def svg(self) -> str:
        """The figure as an SVG text."""
        text = io.StringIO()
        with styled():
            self._drawing.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


@contextmanager
def styled() -> Iterator[None]:
    """While it lasts, matplotlib draws in the style of the reports."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]  # a plain dict of its keys
        yield


def diagonal(axes: Axes) -> None:
    """The line of perfect calibration."""
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, linestyle="--", zorder=0)
