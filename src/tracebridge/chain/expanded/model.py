"""ExpandedModel: the probabilities of a chain whose states remember more than their category.

A run of class k and group b is in category c, context g (see `ContextSpace`) and hidden phase z. Its next step is
category x, or it ends in success (x = m) or failure (x = m + 1), with probability ``A_k[z, g, c, x]``, and its phase
becomes z' with probability ``B[z, c, z']``, independently. Classes differ in how runs end alone: ``A_k`` is A with the
odds of success against failure times ``exp(tilt_k)``, and the probability to end as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import ModelError
from tracebridge.states.expansion import ContextSpace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.model_form import ModelForm

    Floats = NDArray[np.float64]

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedModel:
    """Parameters over m categories, C contexts, Z phases, K classes and G groups.

    Attributes:
        form: with the bins of its clock chosen.
        states: m category names, ascending. groups: G names of groups, ascending; empty without a group.
        start: joint probabilities of group, first phase and first category, or end in success (m) or failure (m + 1)
            of a run without a step; shape (G, Z, m + 2), sums to one.
        rows: A, shape (Z, C, m, m + 2); rows sum to one.
        advance: B, shape (Z, m, Z); rows sum to one. Zeros where the kind of phases forbids a change.
        class_weights: shape (K,), sum to one. class_tilts: shape (K,).

    Raises:
        ModelError: for shapes or sums that break this, or negative numbers.
    """

    form: ModelForm
    states: tuple[str, ...]
    start: Floats
    rows: Floats
    advance: Floats
    groups: tuple[str, ...] = ()
    class_weights: Floats = field(default_factory=lambda: np.ones(1))
    class_tilts: Floats = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        m, phases, classes = self.n_states, self.form.phases, self.form.classes
        shapes = {
            "start": (self.n_groups, phases, m + 2),
            "rows": (phases, self.space.size, m, m + 2),
            "advance": (phases, m, phases),
            "class_weights": (classes,),
            "class_tilts": (classes,),
        }
        for name, shape in shapes.items():
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.shape != shape:
                raise ModelError(f"{name} of {self.form} must have shape {shape}, not {values.shape}")
            if not np.isfinite(values).all() or (name != "class_tilts" and values.min(initial=0) < 0):
                raise ModelError(f"{name} of {self.form} must hold finite numbers that are not negative")
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        sums = {
            "start": self.start.sum(),
            "rows": self.rows.sum(axis=-1),
            "advance": self.advance.sum(axis=-1),
            "class_weights": self.class_weights.sum(),
        }
        for name, total in sums.items():
            if np.abs(total - 1).max(initial=0) > _TOLERANCE:
                raise ModelError(f"{name} of {self.form} must sum to one")

    @property
    def n_states(self) -> int:
        """Categories m."""
        return len(self.states)

    @property
    def n_groups(self) -> int:
        """Groups G, 1 without one."""
        return max(1, len(self.groups))

    @property
    def space(self) -> ContextSpace:
        """The contexts."""
        return ContextSpace(form=self.form, n_states=self.n_states, n_groups=self.n_groups)

    def rows_of_class(self, k: int) -> Floats:
        """The rows A of one class, shape (Z, C, m, m + 2)."""
        return tilted(self.rows, float(self.class_tilts[k]))


def tilted(rows: Floats, tilt: float) -> Floats:
    """Rows, shape (..., m + 2), with the odds of success against failure times ``exp(tilt)``; runs end as often."""
    if tilt == 0:
        return rows
    result = np.array(rows)
    success, failure = rows[..., -2], rows[..., -1]
    ending = success + failure
    # Half of the tilt on either side, so that none overflows.
    up, down = success * np.exp(tilt / 2), failure * np.exp(-tilt / 2)
    share = np.divide(up, up + down, out=np.zeros_like(up), where=ending > 0)
    result[..., -2] = ending * share
    result[..., -1] = ending * (1 - share)
    return result
