"""How runs end over time, without a chain: the Aalen-Johansen estimator over lengths of runs.

The empirical counterpart of ``R(d)``: with every end seen it is the plain share of runs that succeed within d steps;
with censored runs it uses each of them for as long as it was seen (Aalen and Johansen 1978). It assumes that a run is
cut for reasons that do not foretell how it would have gone on, but not that runs are Markov.

Time counts as it does in a chain: a run of L steps ends at time L. A censored run of L steps is known not to have
ended at times 0, ..., L: had its last step ended it, the end would have been seen. One that was cut before its first
step tells nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tracebridge.chain.counts import CensoringPolicy
from tracebridge.chain.document import checked_document
from tracebridge.errors import Location, ModelError, UsageError
from tracebridge.states.features import OUTCOMES
from tracebridge.states.flow import MAX_TOTAL
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tracebridge.traces.model import Trace

#: What a curve is about: runs that succeeded by a time, that failed, or that ended either way.
Ending = Literal["success", "failure", "ended"]
IntervalMethod = Literal["wilson", "cloglog"]

KIND = "length-counts"
SCHEMA_VERSION = 1

_ENDINGS: tuple[Ending, ...] = get_args(Ending)
_CENSORED = OUTCOMES.index(Outcome.CENSORED)
_LENGTH = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthCounts:
    """Runs by length and outcome: a commutative monoid under ``+``.

    Attributes:
        lengths: the lengths that occur, in steps, ascending, int64, shape (n,).
        runs: runs by outcome (success, failure, censored) and length, int64, shape (3, n); no column is zero.

    Raises:
        ModelError: for arrays that are not so, or 2^60 runs or more.
    """

    lengths: NDArray[np.int64]
    runs: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("lengths", "runs"):
            array = np.array(getattr(self, name), dtype=np.int64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        lengths, runs = self.lengths, self.runs
        if lengths.ndim != 1 or runs.shape != (len(OUTCOMES), len(lengths)):
            raise ModelError(f"{lengths.size} lengths need runs of shape (3, {lengths.size}), not {runs.shape}")
        if len(lengths) and (lengths[0] < 0 or (np.diff(lengths) <= 0).any()):
            raise ModelError("lengths must ascend from zero or more")
        if (runs < 0).any() or not runs.any(axis=0).all():
            raise ModelError("a number of runs is negative, or a length has no run")
        if runs.sum(dtype=np.float64) >= MAX_TOTAL:
            raise ModelError("the counts are too large: their sum must stay below 2^60")

    # ------------------------------------------------------------ making

    @classmethod
    def empty(cls) -> LengthCounts:
        """The neutral element: no run."""
        return cls(lengths=np.empty(0, dtype=np.int64), runs=np.empty((len(OUTCOMES), 0), dtype=np.int64))

    @classmethod
    def from_lengths(
        cls, lengths: ArrayLike, outcomes: ArrayLike, multiplicities: ArrayLike | None = None
    ) -> LengthCounts:
        """From one length and one outcome a run; outcomes are positions in ``OUTCOMES``: success, failure, censored.

        Args:
            lengths: in steps, shape (n,). outcomes: 0, 1 or 2, shape (n,).
            multiplicities: how many runs each entry stands for, shape (n,); one by default.
        """
        lengths, outcomes = np.asarray(lengths, dtype=np.int64), np.asarray(outcomes, dtype=np.int64)
        counts = np.ones(len(lengths), dtype=np.int64) if multiplicities is None else np.asarray(multiplicities)
        if lengths.shape != outcomes.shape or lengths.shape != counts.shape or lengths.ndim != 1:
            raise ModelError(f"lengths {lengths.shape} and outcomes {outcomes.shape} do not belong together")
        if len(outcomes) and not (0 <= outcomes.min() <= outcomes.max() < len(OUTCOMES)):
            raise ModelError("an outcome is not 0 (success), 1 (failure) or 2 (censored)")
        distinct, position = np.unique(lengths, return_inverse=True)
        runs = np.zeros((len(OUTCOMES), len(distinct)), dtype=np.int64)
        np.add.at(runs, (outcomes, position), counts)
        kept = runs.any(axis=0)
        return cls(lengths=distinct[kept], runs=runs[:, kept])

    @classmethod
    def from_paths(
        cls, codes: NDArray[np.integer], offsets: NDArray[np.integer], outcomes: NDArray[np.integer]
    ) -> LengthCounts:
        """From paths laid end to end: run ``r`` is ``codes[offsets[r]:offsets[r + 1]]``; batches of them add up."""
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(codes):
            raise ModelError("offsets must begin with 0 and end with the number of steps")
        return cls.from_lengths(np.diff(offsets), outcomes)

    @classmethod
    def from_traces(cls, traces: Iterable[Trace]) -> LengthCounts:
        """Count a corpus in one pass; the traces are not kept."""
        tally = Counter((len(trace.steps), OUTCOMES.index(trace.outcome)) for trace in traces)
        pairs = np.array(list(tally), dtype=np.int64).reshape(-1, 2)
        return cls.from_lengths(pairs[:, 0], pairs[:, 1], np.array(list(tally.values()), dtype=np.int64))

    def __add__(self, other: LengthCounts) -> LengthCounts:
        if not isinstance(other, LengthCounts):
            return NotImplemented
        lengths = np.concatenate([self.lengths, other.lengths])
        runs = np.concatenate([self.runs, other.runs], axis=1)
        outcomes, entries = np.nonzero(runs)
        return LengthCounts.from_lengths(lengths[entries], outcomes, runs[outcomes, entries])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LengthCounts):
            return NotImplemented
        return np.array_equal(self.lengths, other.lengths) and np.array_equal(self.runs, other.runs)

    def __hash__(self) -> int:
        return hash((self.n_runs, self.lengths.tobytes()))

    # ------------------------------------------------------------ reading

    @property
    def n_runs(self) -> int:
        """All runs."""
        return int(self.runs.sum())

    @property
    def n_steps(self) -> int:
        """All steps."""
        return sum(a * b for a, b in zip(self.lengths.tolist(), self.runs.sum(axis=0).tolist(), strict=True))

    def runs_by_outcome(self) -> dict[str, int]:
        """The number of runs with each outcome."""
        return {outcome.value: int(n) for outcome, n in zip(OUTCOMES, self.runs.sum(axis=1), strict=True)}

    def within(self, outcome: Outcome | str, d: int | None) -> int:
        """Runs of at most d steps with this outcome; all of them for None."""
        runs = self.runs[OUTCOMES.index(Outcome(outcome))]
        return int(runs.sum() if d is None else runs[self.lengths <= d].sum())

    def under(self, policy: CensoringPolicy) -> LengthCounts:
        """After a censoring policy: as they are, with censored runs as failures at their last step, or without them."""
        runs = self.runs.copy()
        if policy == "failure":
            runs[OUTCOMES.index(Outcome.FAILURE)] += runs[_CENSORED]
        elif policy not in get_args(CensoringPolicy):
            raise UsageError(f"{policy!r} is no censoring policy; there are {', '.join(get_args(CensoringPolicy))}")
        if policy != "censored":
            runs[_CENSORED] = 0
        kept = runs.any(axis=0)
        return LengthCounts(lengths=self.lengths[kept], runs=runs[:, kept])

    # ------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """A JSON document: runs by outcome and length; zeros are left out."""
        lengths = self.lengths.tolist()
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            **{
                outcome.value: {str(length): n for length, n in zip(lengths, row, strict=True) if n}
                for outcome, row in zip(OUTCOMES, self.runs.tolist(), strict=True)
            },
        }

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> LengthCounts:
        """Read `to_dict`'s document. Raises ModelError, naming the field, for anything else."""
        document = checked_document(data, _Document, kind=KIND, version=SCHEMA_VERSION, path=path)
        entries = []
        for code, outcome in enumerate(OUTCOMES):
            place = Location(path=path, field=outcome.value)
            for text, n in getattr(document, outcome.value).items():
                if not _LENGTH.fullmatch(text):
                    raise ModelError(f"{text[:80]!r} is no length of a run", location=place)
                if not 0 <= n < MAX_TOTAL:
                    raise ModelError(f"{n} runs of length {text}: not in 0..2^60", location=place)
                entries.append((int(text), code, n))
        if sum(n for _, _, n in entries) >= MAX_TOTAL:
            raise ModelError("the counts are too large: their sum must stay below 2^60", location=Location(path=path))
        table = np.array(entries, dtype=np.int64).reshape(-1, 3)
        return cls.from_lengths(*table.T)

    def __repr__(self) -> str:
        outcomes = ", ".join(f"{n} {outcome}" for outcome, n in self.runs_by_outcome().items())
        return f"<LengthCounts of {self.n_runs} runs: {outcomes}>"


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    success: dict[str, int]
    failure: dict[str, int]
    censored: dict[str, int]


# ---------------------------------------------------------------- the estimator


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IncidenceCurves:
    """Shares of runs that succeeded, that failed, and that ended by each time: right-continuous step functions.

    Attributes:
        counts: the runs.
        times: when some run ended, ascending, shape (t,).
        at_risk: runs that could be seen to end at each of these times, shape (t,).
        ends: successes and failures at these times, shape (2, t).
        incidence, variance: the estimates of success, failure and ended by each time, and their Greenwood-type
            variances; shape (3, t); float64, or Fractions (dtype object) when exact.
        horizon: the last time at which the curves are known: that of the last run at risk; infinite where every run
            under observation was seen to end, -1 where no run tells anything.
    """

    counts: LengthCounts
    times: NDArray[np.int64]
    at_risk: NDArray[np.int64]
    ends: NDArray[np.int64]
    incidence: NDArray[Any]
    variance: NDArray[Any]
    horizon: float

    def at(self, d: ArrayLike, ending: Ending = "success") -> NDArray[Any]:
        """The estimate at times ``d``, any shape; the empirical ``R(d)`` by default. NaN beyond the horizon."""
        return self._looked_up(self.incidence, d, ending)

    def variance_at(self, d: ArrayLike, ending: Ending = "success") -> NDArray[Any]:
        """The variance of the estimate at times ``d``, any shape. NaN beyond the horizon."""
        return self._looked_up(self.variance, d, ending)

    def interval(
        self, d: ArrayLike, ending: Ending = "success", *, level: float = 0.95, method: IntervalMethod = "wilson"
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper pointwise confidence limits at times ``d``, two arrays of its shape; NaN beyond the horizon.

        Args:
            d: times in steps.
            ending: the curve.
            level: of each interval by itself, between 0 and 1.
            method: ``wilson`` is the score interval at the effective number of runs ``F(1 - F)/variance`` (Dorey and
                Korn 1987), which is their plain number without censoring; where the estimate is 0 or 1, it is the
                number of runs of which it is known whether they had ended so. ``cloglog`` is normal on the scale
                ``log(-log(1 - F))``; it has no answer (NaN) where the estimate is 0 or 1.

        Raises:
            UsageError: for another level, method, or curve.
        """
        if not 0 < level < 1:
            raise UsageError(f"a confidence level lies between 0 and 1, not {level!r}")
        z = float(ndtri((1 + level) / 2))
        F = self.at(d, ending).astype(np.float64)
        variance = self.variance_at(d, ending).astype(np.float64)
        if method == "wilson":
            return _score_limits(F, self._effective_runs(d, F, variance), z)
        if method == "cloglog":
            return _cloglog_limits(F, variance, z)
        raise UsageError(f"{method!r} is no interval method; there are {', '.join(get_args(IntervalMethod))}")

    def to_records(self) -> list[dict[str, Any]]:
        """One row for each time at which some run ended."""
        columns = {"time": self.times, "at_risk": self.at_risk, "successes": self.ends[0], "failures": self.ends[1]}
        for i, ending in enumerate(_ENDINGS):
            columns[ending] = self.incidence[i].astype(np.float64)
            columns[f"variance_{ending}"] = self.variance[i].astype(np.float64)
        lists = [column.tolist() for column in columns.values()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]

    def _looked_up(self, values: NDArray[Any], d: ArrayLike, ending: Ending) -> NDArray[Any]:
        if ending not in _ENDINGS:
            raise UsageError(f"{ending!r} is no curve; there are {', '.join(_ENDINGS)}")
        d = _times(d)
        row = np.concatenate([np.zeros(1, dtype=values.dtype), values[_ENDINGS.index(ending)]])
        found = np.asarray(row[np.searchsorted(self.times, d, side="right")])
        return np.where(d <= self.horizon, found, math.nan)

    def _effective_runs(
        self, d: ArrayLike, F: NDArray[np.float64], variance: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        lost = np.concatenate([[0], np.cumsum(self.counts.runs[_CENSORED])])
        cut_earlier = np.searchsorted(self.counts.lengths, np.maximum(_times(d), 1), side="left")
        known = self.counts.n_runs - lost[cut_earlier]
        inside = (F > 0) & (F < 1) & (variance > 0)
        effective = np.where(inside, F * (1 - F) / np.where(inside, variance, 1), known)
        return np.minimum(effective, self.counts.n_runs)


def aalen_johansen(counts: LengthCounts, *, exact: bool = False) -> IncidenceCurves:
    """Estimate how runs end over time, censored runs included.

    With Y runs at risk at time t, of which the shares p and q succeed and fail there, ``S <- S (1 - p - q)`` and
    ``F <- F + S p``; the covariances of S and F follow by the delta method from multinomial shares (Greenwood's formula
    for S; for F see Allignol, Schumacher and Beyersmann 2010). Without censoring ``F`` is the plain share of runs and
    its variance ``F (1 - F)/n``.

    Args:
        counts: the runs.
        exact: compute in Fractions; their size grows with the number of times.
    """
    lengths, runs = counts.lengths, counts.runs
    ended = runs[0] + runs[1]
    later = np.cumsum(runs.sum(axis=0)[::-1])[::-1]  # runs of this length or more
    tells_nothing = np.where(lengths == 0, runs[_CENSORED], 0)
    at_risk = later - tells_nothing
    happening = np.flatnonzero(ended)
    number: Any = Fraction if exact else float
    S, varS = number(1), number(0)
    F, varF, cov = [number(0)] * 2, [number(0)] * 2, [number(0)] * 2
    incidence, variance = [], []
    for k in happening.tolist():
        Y = int(at_risk[k])
        shares = [number(int(runs[cause, k])) / Y for cause in (0, 1)]
        stay = number(Y - int(ended[k])) / Y
        spread = S * S / Y
        for cause, p in enumerate(shares):
            varF[cause] += p * (2 * cov[cause] + p * varS) + spread * p * (1 - p)
            cov[cause] = stay * (cov[cause] + p * (varS - spread))
            F[cause] += S * p
        varS = stay * (stay * varS + spread * (1 - stay))
        S = S * stay
        for cause in (0, 1):
            if not stay and not F[1 - cause]:
                F[cause], varF[cause] = number(1), number(0)  # no rounding where all ends were of one kind
        incidence.append((*F, F[0] + F[1]))
        variance.append((*(max(value, number(0)) for value in varF), varS))
    kind = object if exact else np.float64
    informative = np.flatnonzero(runs.sum(axis=0) > tells_nothing)
    nobody_left = len(happening) > 0 and ended[happening[-1]] == at_risk[happening[-1]]
    return IncidenceCurves(
        counts=counts,
        times=lengths[happening],
        at_risk=at_risk[happening],
        ends=runs[:2, happening],
        incidence=np.array(incidence, dtype=kind).reshape(-1, 3).T,
        variance=np.array(variance, dtype=kind).reshape(-1, 3).T,
        horizon=math.inf if nobody_left else int(lengths[informative[-1]]) if len(informative) else -1,
    )


def _times(d: ArrayLike) -> NDArray[np.int64]:
    d = np.asarray(d)
    if not np.issubdtype(d.dtype, np.integer) or (d.size and d.min() < 0):
        raise UsageError("times are numbers of steps: integers, zero or more")
    return d.astype(np.int64)


def _score_limits(
    F: NDArray[np.float64], n: NDArray[np.float64], z: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    defined = n > 0
    n = np.where(defined, n, 1.0)
    middle = (F + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(F * (1 - F) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)
    lower = np.where(F == 0, 0.0, np.maximum(middle - half, 0))
    upper = np.where(F == 1, 1.0, np.minimum(middle + half, 1))
    return np.where(defined, lower, math.nan), np.where(defined, upper, math.nan)


def _cloglog_limits(
    F: NDArray[np.float64], variance: NDArray[np.float64], z: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    inside = (F > 0) & (F < 1)
    F = np.where(inside, F, math.nan)
    surviving = np.log1p(-F)
    factor = np.exp(z * np.sqrt(np.maximum(variance, 0)) / ((1 - F) * -surviving))
    return -np.expm1(surviving / factor), -np.expm1(surviving * factor)
