"""Outcomes that few runs had, or none: how sure draws are of how often runs end so.

A row of a context is shrunk to that of the coarser one, and refits see the runs alone: where no run failed, failures
have next to no probability in every draw, and intervals would have no width, whatever the number of runs. So every draw
of such a corpus gets one unit more, a task or a run, which succeeds in one half of the draws and fails in the other. If
c of n units failed, the share of failures is drawn from Beta(c + 1, n - c) in one half and from Beta(c, n - c + 1) in
the other: the two ends of Clopper and Pearson's exact interval. Half of each is the mid-P version of it (Lancaster
1961, Journal of the American Statistical Association 56, 223-234; Berry and Armitage 1995, The Statistician 44,
417-423). For ``c = 0`` the upper end at level .95 is the one-sided exact bound, ``1 - .05 ** (1 / n)``, the rule of
three; the mass-one prior of a first-order fit with three states makes it ``2.9 / n``.

Where on the way an outcome that nobody had would come, no run tells: draws put it where runs end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.expanded.scope import required_scope
from tracebridge.pctl import ast
from tracebridge.states.run_paths import CENSORED, FAILURE, SUCCESS
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.structure import ExpandedStructure
    from tracebridge.pctl.ast import Formula
    from tracebridge.states.run_paths import RunPaths

    Floats = NDArray[np.float64]

#: An outcome of fewer units than this is rare.
RARE_UNITS = 10

#: The share of ends that an outcome which no unit had keeps in draws without one more of it: as good as none, and
#: still far above the rounding of ``1 - P``.
_NEVER = 1e-9

_ENDS = (SUCCESS, FAILURE)
_NAMES = {SUCCESS: "success", FAILURE: "failure"}
_VERBS = {SUCCESS: "succeeded", FAILURE: "failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RareEnds:
    """How many units had each outcome, where one of them is rare.

    Attributes:
        seen: units with a run that succeeded, and with one that failed. units: with a run that was seen to end.
        noun: what a unit is called.
    """

    seen: tuple[int, int]
    units: int
    noun: str

    @classmethod
    def of_runs(cls, paths: RunPaths) -> RareEnds | None:
        """Of runs under their censoring policy; None where no outcome is rare.

        Units are tasks, and runs that name none by themselves.
        """
        ended = paths.outcomes != CENSORED
        seen = tuple(len(np.unique(paths.blocks[paths.outcomes == end])) for end in _ENDS)
        if min(seen) >= RARE_UNITS:
            return None
        repeated = len(np.unique(paths.blocks)) < paths.n_runs
        return cls(
            seen=(seen[0], seen[1]), units=len(np.unique(paths.blocks[ended])), noun="task" if repeated else "run"
        )

    @property
    def method(self) -> str:
        """What it adds to the name of a method."""
        rare = [
            f"{_NAMES[end]} in {seen or 'none'} of {counted(self.units, self.noun)}"
            for end, seen in zip(_ENDS, self.seen, strict=True)
            if seen < RARE_UNITS
        ]
        return f"one {self.noun} more of either outcome (mid-P: {', '.join(rare)})"

    def with_one_more(
        self, structure: ExpandedStructure, entries: Floats, initial: Floats, first: int, rng: np.random.Generator
    ) -> Floats:
        """The transitions of draws with one more unit each; it ends after a step, so that starts are as they were.

        Args:
            structure: of the chain. entries, initial: shape (n_transitions, D) and (n + 2, D).
            first: the number of the first of these draws: a failure is added to even ones, a success to odd ones.
            rng: for the weight of the unit.
        """
        draws = entries.shape[1]
        successes = np.asarray(structure.indptr[1:-2]) - 2  # a state's last transitions: to success, to failure
        with_steps = np.maximum(1 - initial[-2:].sum(axis=0), _NEVER)
        weight = np.minimum(rng.beta(1.0, max(self.units, 1), size=draws) / with_steps, 1.0)
        fails = (first + np.arange(draws)) % 2 == 0
        result = entries.copy()
        ends = entries[successes] + entries[successes + 1]
        share = np.divide(entries[successes + 1], ends, out=np.zeros_like(ends), where=ends > 0)
        if not self.seen[1]:
            share = np.minimum(share, _NEVER)
        if not self.seen[0]:
            share = np.maximum(share, 1 - _NEVER)
        share = (1 - weight) * share + weight * fails
        result[successes], result[successes + 1] = ends * (1 - share), ends * share
        return result

    def unknown_place(self, formula: Formula) -> str | None:
        """Why draws say nothing of a property: it asks for the way to an outcome that no unit had; None if it does not.

        Args:
            formula: of a resolved property.
        """
        if required_scope(formula) == "timing":
            return None
        named = {node.name for node in ast.walk(formula) if isinstance(node, ast.Label)}
        for end, seen in zip(_ENDS, self.seen, strict=True):
            if not seen and _NAMES[end] in named:
                return (
                    f"no run {_VERBS[end]}, so that nothing tells on which ways runs would: there is no interval of a "
                    f'property that names "{_NAMES[end]}" together with states on the way'
                )
        return None
