"""Whether a new agent is worse than a baseline, as far as the runs of both can tell.

For each property with a known direction, p is the posterior probability that its number is *not* worse than before.
Under no change, and with priors that are weak beside the runs, p is about uniform, as a one-sided p-value is. Holm's
procedure (1979, Scandinavian Journal of Statistics 6, 65-70) over all gated properties keeps the chance of any false
alarm within ``1 - level``, whatever the dependence between properties. So

- *regression*: the adjusted p is at most ``1 - level``;
- *passed*: the number is not worse by more than the margin, with posterior probability ``level`` or more;
- *inconclusive*: neither; with how many more runs of the new agent would decide, if they go on as these do.

The posteriors take runs as independent. Runs of the same task are not; where both agents are tried on the same tasks,
this errs to the side of no alarm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from scipy.special import ndtri

from tracebridge.checking.result import number_to_json
from tracebridge.errors import UsageError
from tracebridge.report.direction import Direction, Worse, direction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracebridge.report.evidence_diff import PropertyChange

Status = Literal["regression", "passed", "inconclusive", "not gated", "not comparable"]

DEFAULT_LEVEL = 0.95

#: A worsening that matters: of a probability, or relative to any other number.
DEFAULT_MARGIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One property of the new agent against the baseline.

    Attributes:
        name: of the property. status: see above; ``not gated`` where nobody knows which way is worse, or it is about no
            single number; ``not comparable`` where both ask for other numbers, or one has no posterior.
        worse: the side on which it is worse. advisory: it blocks nothing.
        old, new: its number in each fitted chain.
        worsening: from the old number to the new one, positive for the worse. bound: what it exceeds with the posterior
            probability ``1 - level`` only. margin: in the unit of the number.
        probability_worse: posterior. p_adjusted: Holm's.
        more_runs: of the new agent; ``more_of_both`` where those alone would not do, or be more; None where neither
            would, or none are needed.
        reason: why it is not gated or not comparable.
    """

    name: str
    status: Status
    advisory: bool
    worse: Worse | None = None
    old: float | None = None
    new: float | None = None
    worsening: float | None = None
    bound: float | None = None
    margin: float | None = None
    probability_worse: float | None = None
    p_adjusted: float | None = None
    more_runs: int | None = None
    more_of_both: int | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        numbers = ("old", "new", "worsening", "bound", "margin", "probability_worse", "p_adjusted")
        return {
            "name": self.name,
            "status": self.status,
            "advisory": self.advisory,
            "worse": self.worse,
            **{name: _json(getattr(self, name)) for name in numbers},
            "more_runs": self.more_runs,
            "more_of_both": self.more_of_both,
            "reason": self.reason,
        }


def judge_changes(
    changes: Sequence[PropertyChange],
    runs: tuple[int, int],
    *,
    level: float = DEFAULT_LEVEL,
    margin: float = DEFAULT_MARGIN,
    worse: Mapping[str, Worse] | None = None,
) -> list[Judgement]:
    """Judge each property, in the order given.

    Args:
        changes: of `compare_evidence`, with intervals of the level ``2 * level - 1``, whose ends are one-sided bounds.
        runs: how many stand behind the old and the new numbers.
        level: of each bound; ``1 - level`` is the chance of any false alarm.
        margin: see `DEFAULT_MARGIN`.
        worse: the side on which a property is worse, by name, where its formula does not tell or tells otherwise.

    Raises:
        UsageError: a level outside (0.5, 1), a negative margin, or a name that no property has.
    """
    if not 0.5 < level < 1 or not 0 <= margin < math.inf:
        raise UsageError(f"a level lies between 0.5 and 1, and a margin is not negative: not {level!r} and {margin!r}")
    names = [change.new["name"] or change.key for change in changes]
    if unknown := set(worse or {}).difference(names):
        raise UsageError(f"no common property is called {min(unknown)!r}; there are {', '.join(names) or 'none'}")
    sides = [_direction(change, (worse or {}).get(name)) for change, name in zip(changes, names, strict=True)]
    found = [_compared(change, name, side, margin) for change, name, side in zip(changes, names, sides, strict=True)]
    gated = [i for i, each in enumerate(found) if each.probability_worse is not None]
    smallest = [1 / max(changes[i].draws, 1) for i in gated]  # draws tell no smaller probability
    adjusted = holm([max(_p(found[i]), least) for i, least in zip(gated, smallest, strict=True)])
    for i, p in zip(gated, adjusted, strict=True):
        found[i] = _judged(replace(found[i], p_adjusted=p), changes[i], runs, level, len(gated))
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order given: the k-th smallest of m times ``m - k + 1``, made monotone, at most 1."""
    m, largest = len(p_values), 0.0
    adjusted = [0.0] * m
    for rank, i in enumerate(sorted(range(m), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (m - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def _p(judgement: Judgement) -> float:
    assert judgement.probability_worse is not None  # noqa: S101 - asked of gated ones only
    return 1 - judgement.probability_worse


def _direction(change: PropertyChange, named: Worse | None) -> Direction:
    found = direction(change.asked.formula)
    return found if named is None else replace(found, sense=1 if named == "lower" else -1)


def _compared(change: PropertyChange, name: str, side: Direction, margin: float) -> Judgement:
    """What is known before the probabilities of all properties are set against each other."""
    advisory = bool(change.new["annotations"].get("severity") == "advisory")
    judgement = Judgement(
        name=name, status="not comparable", advisory=advisory, worse=side.worse, old=change.old_value,
        new=change.new_value,
    )  # fmt: skip
    if change.same_formula and change.old_value is None and change.new_value is None:
        verdicts = [entry["verdict"] or "answered" for entry in (change.old, change.new)]
        told = f"it is about no single number; {verdicts[0]} before, {verdicts[1]} now"
        return replace(judgement, status="not gated", reason=told)
    greater, interval, difference = change.probability_greater, change.difference, change.value_change
    if greater is None or interval is None or difference is None:
        return replace(judgement, reason=change.reason or "there is no difference")
    if side.worse is None:
        ends = f"[{interval.lower:.4g}, {interval.upper:.4g}]"
        shown = f"the difference is {difference:+.4g}, {interval.level:.6g} interval {ends}"
        return replace(judgement, status="not gated", reason=f"which way is worse is not known; {shown}")
    lower = side.worse == "lower"
    scale = 1.0 if side.is_share else abs(change.old_value or 0.0)
    return replace(
        judgement,
        worsening=-difference if lower else difference,
        bound=-interval.lower if lower else interval.upper,
        margin=margin * scale,
        probability_worse=1 - greater if lower else greater,
    )


def _judged(judgement: Judgement, change: PropertyChange, runs: tuple[int, int], level: float, gated: int) -> Judgement:
    adjusted, bound, margin = judgement.p_adjusted, judgement.bound, judgement.margin
    assert adjusted is not None and bound is not None and margin is not None  # noqa: S101, PT018 - a gated property
    if adjusted <= 1 - level:
        return replace(judgement, status="regression")
    if bound <= margin:
        return replace(judgement, status="passed")
    assert judgement.worsening is not None  # noqa: S101 - a gated property
    spreads = [_spread(entry) for entry in (change.old, change.new)]
    old, new = spreads
    if old is None or new is None:
        return replace(judgement, status="inconclusive")
    more, both = runs_to_decide(judgement.worsening, margin, (old, new), runs, level=level, gated=gated)
    return replace(judgement, status="inconclusive", more_runs=more, more_of_both=both)


def _spread(entry: Mapping[str, Any]) -> float | None:
    """The posterior standard deviation of a number, by its interval as that of a normal distribution."""
    interval = (entry["uncertainty"] or {}).get("interval")
    if interval is None:
        return None
    z = float(ndtri((1 + interval["level"]) / 2))
    width = float(interval["upper"]) - float(interval["lower"])
    return width / (2 * z) if math.isfinite(width) else None


def runs_to_decide(
    worsening: float,
    margin: float,
    spreads: tuple[float, float],
    runs: tuple[int, int],
    *,
    level: float,
    gated: int,
) -> tuple[int | None, int | None]:
    """More runs that would decide if the worsening stays what it is: of the new agent, or of both if these are fewer.

    A posterior variance is taken to shrink as one over the number of runs. What decides is that the bound falls to the
    margin, or that the worsening is as many standard errors above zero as Holm's first step asks for.

    Args:
        worsening, margin: in the unit of the number. spreads: posterior standard deviations, of the old and the new
            number. runs: behind each. level: see `judge_changes`. gated: how many properties share it.

    Returns:
        More runs of the new agent; or None, and more runs of each agent, where the new agent's alone would not do or
        would have to be more than those of both together; or twice None, where no number would do.
    """
    spread = max((margin - worsening) / float(ndtri(level)), worsening / float(ndtri(1 - (1 - level) / gated)))
    (old, new), (n_old, n_new) = (value * value for value in spreads), runs
    if spread <= 0:
        return None, None
    target = spread * spread
    of_both = max(1, math.ceil(max(n_old, n_new) * ((old + new) / target - 1)))
    if target > old and (of_new := max(1, math.ceil(n_new * (new / (target - old) - 1)))) <= 2 * of_both:
        return of_new, None
    return None, of_both


def _json(value: float | None) -> float | str | None:
    return None if value is None else number_to_json(value)
