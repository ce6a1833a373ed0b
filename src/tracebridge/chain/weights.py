"""Runs with weights: importance weights, or the weights of a sample drawn in strata.

Weights are relative. A run of weight w counts as ``w n_eff / sum(w)`` runs, where ``n_eff = sum(w)^2 / sum(w^2)`` is
the effective number of runs (Kish 1965): so a corpus with weights outweighs a prior, and narrows an interval, only as
far as its effective size goes, and equal weights change nothing. That a run stands for k identical ones is no such
weight: count it k times.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracebridge.chain.counts import CensoringPolicy, RowCounts, TransitionCounts
from tracebridge.chain.document import fraction_text
from tracebridge.chain.estimate import parse_fraction
from tracebridge.errors import FitError, Location, ModelError, Problem
from tracebridge.states.features import OUTCOMES
from tracebridge.states.flow import MAX_TOTAL, RunFlow, closed_walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.traces.model import Outcome, Trace

_MAX_TERM = 10**40
_FRACTION = re.compile(r"[0-9]{1,4000}/0*[1-9][0-9]{0,3999}", re.ASCII)

#: A weight of a run: a number, exactly or as its shortest text says, or its text.
Weight = int | Fraction | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedCounts:
    """A corpus whose runs have weights: a commutative monoid under ``+``.

    Attributes:
        counts: the runs as they are.
        weighted: the same runs, each as many times as its weight has ``unit_weight``.
        unit_weight: the weight that a count of one stands for in ``weighted``, positive.
        sum_of_squares: the sum of the squared weights.

    Raises:
        ModelError: for counts of different states or weights that no runs can have.
    """

    counts: TransitionCounts
    weighted: TransitionCounts
    unit_weight: Fraction
    sum_of_squares: Fraction

    def __post_init__(self) -> None:
        total = self.total_weight
        if self.counts.states != self.weighted.states:
            raise ModelError("counts and weighted counts are over different states")
        if self.unit_weight <= 0 or not total**2 <= self.counts.n_runs * self.sum_of_squares <= (
            self.counts.n_runs * total**2
        ):
            raise ModelError(f"no {self.counts.n_runs} weights have the sum {total} and squares {self.sum_of_squares}")
        for outcome in OUTCOMES:
            plain, weighted = (getattr(each, outcome).passages for each in (self.counts, self.weighted))
            if ((weighted != 0) > (plain != 0)).nnz:
                raise ModelError(f"a passage of {outcome} runs has a weight but no run")

    @classmethod
    def empty(cls) -> WeightedCounts:
        """The neutral element: no run."""
        none = TransitionCounts.empty()
        return cls(counts=none, weighted=none, unit_weight=Fraction(1), sum_of_squares=Fraction(0))

    @classmethod
    def from_codes(
        cls,
        states: Sequence[str],
        codes: NDArray[np.integer],
        offsets: NDArray[np.integer],
        outcomes: NDArray[np.integer],
        weights: Sequence[Fraction],
    ) -> WeightedCounts:
        """Count runs laid end to end: run r visits ``codes[offsets[r]:offsets[r + 1]]`` and has ``weights[r]``.

        Args:
            states: names of the codes. codes, offsets: the paths, shapes (n_steps,) and (n_runs + 1,).
            outcomes: positions in ``OUTCOMES``, shape (n_runs,). weights: zero or more, one a run.

        Raises:
            FitError: for weights that have no common unit within 64 bits.
        """
        unit = _common_unit(set(weights))
        multiples = [int(weight / unit) for weight in weights]
        passages = (np.diff(offsets) + 1).tolist()
        if sum(n * length for n, length in zip(multiples, passages, strict=True)) >= MAX_TOTAL:
            raise FitError(
                Problem(
                    location=Location(),
                    message=f"the weights of the runs have no common unit above {float(unit):.3g}: "
                    "as multiples of it they are too many",
                    hint="round the weights, to six decimals for example",
                )
            )
        walk = closed_walk(codes, offsets, len(states))
        outcome_of_passage = np.repeat(outcomes, passages)
        repeats = np.repeat(np.array(multiples, dtype=np.int64), passages)
        plain, weighted = {}, {}
        for code, outcome in enumerate(OUTCOMES):
            mine = np.flatnonzero(outcome_of_passage == code)
            entries = walk[:-1][mine], walk[1:][mine]
            plain[outcome.value] = RunFlow.from_entries(*entries, np.ones(len(mine), dtype=np.int64), len(states))
            weighted[outcome.value] = RunFlow.from_entries(*entries, repeats[mine], len(states))
        return cls(
            counts=TransitionCounts(states=tuple(states), **plain),
            weighted=TransitionCounts(states=tuple(states), **weighted),
            unit_weight=unit,
            sum_of_squares=sum((weight**2 for weight in weights), Fraction(0)),
        )

    @classmethod
    def from_paths(cls, paths: Iterable[tuple[Sequence[str], Outcome | str, Weight]]) -> WeightedCounts:
        """Count runs given as state names in order, an outcome and a weight.

        Raises:
            FitError: for a weight that is no number of zero or more, naming the run by its position.
        """
        runs = [(list(names), str(outcome), parse_weight(w, f"run {i}")) for i, (names, outcome, w) in enumerate(paths)]
        states = sorted({name for names, _, _ in runs for name in names})
        position = {name: i for i, name in enumerate(states)}
        codes = np.array([position[name] for names, _, _ in runs for name in names], dtype=np.int64)
        offsets = np.cumsum([0, *(len(names) for names, _, _ in runs)])
        outcomes = np.array([OUTCOMES.index(outcome) for _, outcome, _ in runs], dtype=np.int64)
        return cls.from_codes(states, codes, offsets, outcomes, [weight for _, _, weight in runs])

    def __add__(self, other: WeightedCounts) -> WeightedCounts:
        if not isinstance(other, WeightedCounts):
            return NotImplemented
        a, b = self.unit_weight, other.unit_weight
        unit = _common_unit({a, b})
        return WeightedCounts(
            counts=self.counts + other.counts,
            weighted=_times(self.weighted, int(a / unit)) + _times(other.weighted, int(b / unit)),
            unit_weight=unit,
            sum_of_squares=self.sum_of_squares + other.sum_of_squares,
        )

    # ------------------------------------------------------------ reading

    @property
    def total_weight(self) -> Fraction:
        """The sum of the weights."""
        return self.weighted.n_runs * self.unit_weight

    @property
    def effective_runs(self) -> Fraction:
        """``sum(w)^2 / sum(w^2)``: how many runs of equal weight say as much; 0 without a weight."""
        return self.total_weight**2 / self.sum_of_squares if self.sum_of_squares else Fraction(0)

    def under(self, policy: CensoringPolicy) -> RowCounts:
        """The weighted counts that a chain is fitted to, whose ``unit`` makes them effective runs."""
        rows = self.weighted.under(policy)
        if not self.sum_of_squares:
            return rows
        unit = self.unit_weight * self.total_weight / self.sum_of_squares
        return RowCounts(states=rows.states, counts=rows.counts, starts=rows.starts, visits=rows.visits, unit=unit)

    # ------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """JSON values: the weighted counts and the two numbers; the runs as they are stand beside it."""
        return {
            "counts": self.weighted.to_dict(),
            "unit_weight": fraction_text(self.unit_weight),
            "sum_of_squares": fraction_text(self.sum_of_squares),
        }

    @classmethod
    def from_dict(cls, data: Any, counts: TransitionCounts, path: str | None = None) -> WeightedCounts:
        """Read `to_dict`'s values; ``counts`` are the runs as they are. Raises ModelError."""
        place = Location(path=path, field="weighted")
        try:
            document = msgspec.convert(data, _Document, strict=True)
        except msgspec.ValidationError as error:
            raise ModelError(str(error), location=place) from error
        texts = document.unit_weight, document.sum_of_squares
        if not all(_FRACTION.fullmatch(text) for text in texts):
            raise ModelError(f"{texts[0][:80]!r} or {texts[1][:80]!r} is no fraction such as '1/3'", location=place)
        weighted = TransitionCounts.from_dict(document.counts, path)
        try:
            unit_weight, squares = map(Fraction, texts)
            return cls(counts=counts, weighted=weighted, unit_weight=unit_weight, sum_of_squares=squares)
        except ModelError as error:
            raise ModelError(str(error), location=place) from error


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    counts: dict[str, Any]
    unit_weight: str
    sum_of_squares: str


def _common_unit(weights: Collection[Fraction]) -> Fraction:
    """The largest number of which all weights are multiples; one if none is positive."""
    bottom = lcm(*(weight.denominator for weight in weights))
    return Fraction(gcd(*(int(weight * bottom) for weight in weights)) or bottom, bottom)


def _times(counts: TransitionCounts, factor: int) -> TransitionCounts:
    largest = max(1, *(int(getattr(counts, outcome).passages.sum()) for outcome in OUTCOMES))
    if largest * factor >= MAX_TOTAL:
        raise FitError("the weights of these corpora have no common unit within 64 bits; round them")
    flows = {outcome.value: RunFlow(getattr(counts, outcome).passages * factor) for outcome in OUTCOMES}
    return TransitionCounts(states=counts.states, **flows)


def parse_weight(value: object, run: str) -> Fraction:
    """A weight from a number or its text; 0.1 is 1/10, what its text says.

    Raises:
        FitError: for anything else and for a number below zero; ``run`` says whose weight it is.
    """
    try:
        weight = parse_fraction(value)
    except ValueError:
        problem = "is too large or has too many digits" if _is_positive(value) else "is no number of zero or more"
        raise FitError(f"{run}: the weight {str(value)[:80]!r} {problem}") from None
    if max(weight.numerator, weight.denominator) >= _MAX_TERM:
        raise FitError(f"{run}: the weight has more than 40 digits")
    return weight


def _is_positive(value: object) -> bool:
    """Whether this is a number above zero, however large, or its text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        number = float(value)
    except OverflowError:
        return True
    except ValueError:
        return False
    return number > 0 and (math.isfinite(number) or (isinstance(value, str) and value[:1].isdigit()))


class WeightReader:
    """Reads the weight of each trace of a stream on its way.

    Args:
        weight: a function of a trace, or the name of an attribute that every trace has.
    """

    def __init__(self, weight: str | Callable[[Trace], Weight]) -> None:
        self._weight = weight
        self.weights: list[Fraction] = []

    def passed_on(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """The traces as they come, after their weights were kept in ``weights``.

        Raises:
            FitError: for a trace without the attribute, or whose weight is no number of zero or more.
        """
        for trace in traces:
            run = f"run {trace.trace_id!r}"
            if callable(self._weight):
                value: object = self._weight(trace)
            elif self._weight in trace.attributes:
                value = trace.attributes[self._weight]
            else:
                raise FitError(
                    Problem(
                        location=Location(),
                        message=f"{run} has no attribute {self._weight!r} to be its weight",
                        hint="an empty cell, or nan in a table, is no attribute; give every run a number",
                    )
                )
            self.weights.append(parse_weight(value, run))
            yield trace
