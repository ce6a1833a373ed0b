"""What a logistic regression is fitted to: a response, named columns and the cluster of every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.confidence.table import Codes, Numbers

MAX_LEVELS = 50
"""A factor with more levels than that gets no indicators: they would be as many columns."""

_DEPENDENT = 1e-7  # of a column's length; what remains of it beside the columns before it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionDesign:
    """Rows (n) and columns (k, without the intercept) of a regression.

    Attributes:
        model: its name. response: what is explained. unit: what a row is, in the plural.
        y: (n,) 0 or 1. X: (n, k), finite. columns: their names.
        cluster: (n,) codes of the clusters.
        dropped: columns that were left out, with the reason.
        n_left_out: rows left out because something about them is not known.
        remarks: what is to be known about the rows.
    """

    model: str
    response: str
    unit: str
    y: Numbers
    X: Numbers
    columns: tuple[str, ...]
    cluster: Codes
    dropped: Mapping[str, str]
    n_left_out: int
    remarks: tuple[str, ...] = ()

    @property
    def n_clusters(self) -> int:
        """Clusters with a row."""
        return len(np.unique(self.cluster))

    def variance_inflation(self) -> Numbers:
        """(k,) 1 / (1 - R^2) of each column on the others and an intercept."""
        if len(self.columns) < 2:
            return np.ones(len(self.columns))
        return np.asarray(np.diag(np.linalg.inv(np.corrcoef(self.X, rowvar=False))))


def regression_design(
    model: str,
    response: str,
    unit: str,
    *,
    y: NDArray[np.generic],
    columns: Mapping[str, Numbers],
    cluster: Codes,
    dropped: Mapping[str, str] | None = None,
    standardised: Sequence[str] = (),
    products: Sequence[tuple[str, str]] = (),
    n_left_out: int = 0,
    remarks: Sequence[str] = (),
) -> RegressionDesign:
    """A design without rows or columns that cannot be used.

    A column known nowhere is dropped; then rows with an unknown value are left out and counted; then the columns
    ``standardised`` are (mean 0, variance 1 with divisor n), the ``products`` formed, and columns dropped that are
    constant or depend on those before them.
    """
    gone = dict(dropped or {})
    kept: dict[str, Numbers] = {}
    for name, column in columns.items():
        if len(column) and np.isnan(column).all():
            gone[name] = "it is not known for any row"
        else:
            kept[name] = column.astype(np.float64)
    known = np.ones(len(y), dtype=np.bool_)
    for column in kept.values():
        known &= ~np.isnan(column)
    kept = {name: standard(column[known]) if name in standardised else column[known] for name, column in kept.items()}
    for one, other in products:
        if one in kept and other in kept:
            kept[f"{one}:{other}"] = kept[one] * kept[other]
    gone |= {f"{one}:{other}": "one of its factors is dropped" for one, other in products if {one, other} & gone.keys()}
    basis: list[Numbers] = []
    used: dict[str, Numbers] = {}
    n_rows = int(known.sum())
    for name, column in kept.items():
        centred = column - column.mean() if n_rows else column
        length = float(np.linalg.norm(centred))
        if length <= _DEPENDENT * max(1.0, float(np.linalg.norm(column))):
            gone[name] = "it is constant"
            continue
        rest = centred / length
        for _ in range(2):  # once more, against rounding
            for direction in basis:
                rest = rest - (direction @ rest) * direction
        if np.linalg.norm(rest) < _DEPENDENT:
            gone[name] = "it follows from the columns before it"
            continue
        basis.append(rest / np.linalg.norm(rest))
        used[name] = column
    return RegressionDesign(
        model=model,
        response=response,
        unit=unit,
        y=np.asarray(y, dtype=np.float64)[known],
        X=np.column_stack(list(used.values())) if used else np.zeros((n_rows, 0)),
        columns=tuple(used),
        cluster=cluster[known],
        dropped=gone,
        n_left_out=n_left_out + int((~known).sum()),
        remarks=tuple(remarks),
    )


def standard(column: Numbers) -> Numbers:
    """Mean 0 and variance 1, with divisor n; a constant column becomes 0."""
    centred = column - column.mean() if len(column) else column
    spread = float(np.sqrt(np.mean(centred**2))) if len(column) else 0.0
    return centred / spread if spread > 0 else centred


def indicators(factor: str, codes: Codes, levels: Sequence[str]) -> tuple[dict[str, Numbers], dict[str, str]]:
    """One column for each level that occurs but the first, and what is dropped: all of them if there are too many."""
    present = np.unique(codes)
    if len(present) > MAX_LEVELS:
        return {}, {factor: f"its {len(present)} levels are more than {MAX_LEVELS}"}
    return {f"{factor}[{levels[k]}]": (codes == k).astype(np.float64) for k in present[1:].tolist()}, {}
