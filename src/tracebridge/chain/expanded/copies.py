"""The copies of a category: the states of an expanded chain that are the same step with another past.

An expanded chain is known by its variables (see `tracebridge.chain.expanded.naming`), so that one that was read from a
file has copies too. In a plain chain a category is a state and has no copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.naming import CATEGORY, VARIABLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain


def category_copies(chain: MarkovChain) -> dict[str, NDArray[np.int64]]:
    """The positions of the copies of every category, ascending, by its name; empty for a plain chain.

    The name of a category is the first label that holds in its copies and nowhere else. Success and failure, which have
    no copies, are left out.
    """
    category = chain.variables.get(CATEGORY)
    if category is None or category.dtype != np.int64 or len(chain.variables) < 2:
        return {}
    if not chain.variables.keys() <= set(VARIABLES):
        return {}
    ends = np.unique(category[chain.absorbing])
    size = dict(zip(*(part.tolist() for part in np.unique(category, return_counts=True)), strict=True))
    found: dict[int, str] = {}
    for name, mask in chain.labels.items():
        held = np.unique(category[mask])
        if len(held) == 1 and mask.sum() == size[int(held[0])] and held[0] not in ends:
            found.setdefault(int(held[0]), name)
    return {found[c]: np.flatnonzero(category == c) for c in sorted(found)}
