"""Workspace: arrays that are written again and again, so that iterations do not ask the system for memory each time."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Workspace:
    """Arrays by name. What was written to one is lost when the same name is asked for again."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[np.float64]] = {}

    def array(self, name: str, *shape: int) -> NDArray[np.float64]:
        """An array of this shape whose values are not set."""
        size = prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(size)
        return kept[:size].reshape(shape)
