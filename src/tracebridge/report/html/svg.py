"""Drawings as SVG markup: the same text for the same numbers, colours left to the style sheet, all text escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from markupsafe import Markup

from tracebridge.report.markdown import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Point = tuple[float, float]


def element(tag: str, *content: Markup | str, **attributes: str | float) -> Markup:
    """An element; text is escaped, Markup is not.

    Args:
        attributes: by their names, ``-`` written as ``_`` and ``class`` as ``class_``; numbers in user units.
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _text(value))
        for name, value in attributes.items()
    )
    inner = Markup("").join(part if isinstance(part, Markup) else _text(part) for part in content)
    return Markup("<{0}{1}>{2}</{0}>").format(tag, written, inner)


def drawing(width: float, height: float, *content: Markup, key: str, title: str, description: str) -> Markup:
    """A whole drawing with a name and a description for those who do not see it.

    Args:
        key: of its ids, unique in the page. width, height: in user units, which are CSS pixels unless it is scaled.
    """
    return element(
        "svg",
        element("title", title, id=f"{key}-title"),
        element("desc", description, id=f"{key}-desc"),
        *content,
        viewBox=f"0 0 {decimal(width)} {decimal(height)}",
        width=width,
        height=height,
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        class_="figure",
    )


def decimal(value: float) -> str:
    """A coordinate with one decimal at most."""
    text = f"{round(value, 1) + 0.0:.1f}"  # adding zero takes the sign from -0.0
    return text.removesuffix(".0")


def polyline(points: Iterable[Point]) -> str:
    """The path data of straight lines through points."""
    return "M" + "L".join(f"{decimal(x)} {decimal(y)}" for x, y in points)


def area(upper: Sequence[Point], lower: Sequence[Point]) -> str:
    """The path data of the area between two curves over the same abscissae."""
    return polyline([*upper, *reversed(lower)]) + "Z"


def fitted(text: str, columns: int) -> str:
    """Text of at most so many columns of a Latin letter's width, control characters visible; cut in its middle.

    Names of states differ at their ends as often as at their beginnings.
    """
    shown = printable(text[:columns] + text[-columns:] if len(text) > 2 * columns else text)
    if _columns(shown) <= columns and len(text) <= 2 * columns:
        return shown
    head = (columns - 1) // 2
    return f"{_beginning(shown, head)}…{_beginning(shown[::-1], columns - 1 - head)[::-1]}"


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _beginning(text: str, columns: int) -> str:
    while _columns(text) > columns:
        text = text[: max(columns, len(text) - 1)] if len(text) > columns else text[:-1]
    return text


def ticks(upper: float, most: int) -> list[float]:
    """Round numbers from zero to at most ``upper``, not more than ``most`` steps: multiples of 1, 2 or 5."""
    scale = 1.0
    while scale * 10 <= upper / most:
        scale *= 10
    while scale > upper:
        scale /= 10
    step = next(scale * factor for factor in (1, 2, 5, 10, 20, 50, 100) if scale * factor * most >= upper)
    return [step * k for k in range(int(upper / step + 1e-9) + 1)]


def _text(value: str | float) -> str:
    return printable(value) if isinstance(value, str) else decimal(value)
