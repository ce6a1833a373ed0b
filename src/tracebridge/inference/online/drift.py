"""A drift alarm with a stated rate of false alarms: do new runs still come from the chain of a baseline corpus?

Two alarms watch the same ratios of likelihoods (`tracebridge.inference.online.drift_evidence`).

*Ever*: the product ``E`` over the rows of ``(1 - w) + w L_s``, where ``L_s`` is the ratio of row s, averaged over
alternatives, and w = 1/rows the prior share of rows that change. E is a test martingale of the null hypothesis, so that
``P(E >= 1/alpha at any time) <= alpha`` without drift, however long the stream (Ville 1939; Robbins 1970). It rests on
all new runs since the start, which makes it slow once many of them were as before.

*Window*: a Shiryaev-Roberts e-detector ``M <- (M + 1) L`` over runs, L being the ratio of one run, under alternatives
that learn from recent runs (Shin, Ramdas and Rinaldo 2023, E-detectors; Pollak 1985). Half of it asks about all rows
together, half about each. It alarms at ``M >= A`` and starts again from zero; without drift the mean number of runs
between two alarms is at least A.

The null hypothesis: new and old runs are independent runs of one first-order chain, whose rows have a symmetric
Dirichlet prior of any of the masses of `BaselineRows.masses`; both statistics are the least over these. So the rates
are conditional on the counts of the baseline and averaged over the chains that these leave possible. They say nothing
of runs that no first-order chain describes, or that come in clusters, of one task for example. That runs changed is all
an alarm says: a new mix of tasks and new behaviour on the same tasks look alike.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracebridge.errors import UsageError
from tracebridge.inference.online.drift_causes import DriftCause, causes_of_all, causes_of_recent
from tracebridge.inference.online.drift_evidence import FIRMNESS, UNSEEN, BaselineRows, RowEvidence
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit

    Floats = NDArray[np.float64]

#: The most probable false alarm ever, the least mean number of runs between false alarms of the window, and the number
#: of runs after which the window has forgotten half.
DEFAULT_ALPHA = 0.01
DEFAULT_RUN_LENGTH = 10_000.0
DEFAULT_HALF_LIFE = 200.0

_MOST_LOG_RATIO = 600.0  # a larger ratio of one run raises an alarm as surely, and would overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReading:
    """The drift monitor after a run.

    Attributes:
        runs: how many new runs there were.
        log_e: the logarithm of E. p: ``min(1, 1 / largest E so far)``, a p-value that may be looked at after any run.
        ever: whether E has reached 1/alpha, now or before. newly: whether it did with this run.
        detector: M, before it started again. window: whether M has reached A with this run.
    """

    runs: int
    log_e: float
    p: float
    ever: bool
    newly: bool
    detector: float
    window: bool


class DriftMonitor:
    """Compares new runs with the counts behind a fit, run by run.

    Args:
        baseline: the fitted chain, or its rows. alpha: the largest probability of a false alarm of ``ever``.
        run_length: the least mean number of runs between false alarms of ``window``.
        half_life: runs after which alternatives of the window have forgotten half of what they learnt.

    Attributes:
        rows: of the baseline. runs: new runs so far. largest: the largest log E so far. alarmed_at: the run at which E
            reached 1/alpha, None if it has not. windows: the number of alarms of the window.

    Raises:
        UsageError: for an option out of range, and a baseline whose runs have weights.
    """

    def __init__(
        self,
        baseline: ChainFit | BaselineRows,
        *,
        alpha: float = DEFAULT_ALPHA,
        run_length: float = DEFAULT_RUN_LENGTH,
        half_life: float = DEFAULT_HALF_LIFE,
    ) -> None:
        if not 0 < alpha < 1 or not 1 <= run_length < math.inf or not 0 < half_life < math.inf:
            raise UsageError(
                f"alpha={alpha} lies between 0 and 1, run_length={run_length} is at least 1, half_life={half_life} is "
                "above 0"
            )
        self.alpha, self.run_length, self.half_life = alpha, run_length, half_life
        self.rows = baseline if isinstance(baseline, BaselineRows) else BaselineRows.of_fit(baseline)
        self.runs = 0
        self.largest = 0.0
        self.alarmed_at: int | None = None
        self.windows = 0
        self._forgetting = 0.5 ** (1 / half_life)
        self._code = {name: j for j, name in enumerate(self.rows.outcomes)}
        size, n_rows, n_masses = len(self.rows.outcomes), self.rows.n_rows, len(self.rows.masses)
        self._evidence = [
            RowEvidence(baseline=counts, size=size, masses=self.rows.masses) for counts in self.rows.counts
        ]
        self._share = 1 / n_rows
        self._factors = np.zeros((n_rows, n_masses))  # log((1 - w) + w L_s)
        self._detectors = np.zeros((n_rows + 1, len(FIRMNESS), n_masses))  # M, of all rows together first

    # ------------------------------------------------------------ runs

    def add(self, path: Sequence[str], outcome: Outcome | str) -> DriftReading:
        """One more run: its states by name, and how it ended.

        A state that the baseline does not have is an outcome of its own kind; what follows it is not compared.

        Raises:
            UsageError: there is no such outcome.
        """
        if outcome not in {*Outcome}:
            raise UsageError(f"{str(outcome)[:80]!r} is no outcome; there are {', '.join(Outcome)}")
        end = Outcome(outcome)
        if end is Outcome.CENSORED and self.rows.policy == "failure":
            end = Outcome.FAILURE
        self.runs += 1
        visited: dict[int, RowEvidence] = {}
        if not (end is Outcome.CENSORED and (self.rows.policy == "drop" or not path)):
            unseen = self._code[UNSEEN]
            codes = [self._code.get(name, unseen) for name in path]
            if end is not Outcome.CENSORED:
                codes.append(self._code[end.value])
            row = self.rows.n_rows - 1
            for code in codes:
                if row < self.rows.n_rows:  # else what follows an unseen state
                    evidence = self._evidence[row]
                    evidence.add(code, self.runs, self._forgetting)
                    visited[row] = evidence
                row = code if code < self.rows.n_rows - 1 else self.rows.n_rows
        return self._after(visited)

    def _after(self, visited: Mapping[int, RowEvidence]) -> DriftReading:
        self._detectors += 1
        if visited:
            rows = np.array([*visited])
            self._factors[rows] = _mixed(visited.values(), self._share)
            null = np.array([each.run_null for each in visited.values()])
            ratios = np.array([each.run_recent for each in visited.values()])[:, :, None] - null[:, None, :]
            self._detectors[rows + 1] *= np.exp(np.minimum(ratios, _MOST_LOG_RATIO))
            self._detectors[0] *= np.exp(np.minimum(ratios.sum(axis=0), _MOST_LOG_RATIO))
        log_e = float(self._factors.sum(axis=0).min())
        self.largest = max(self.largest, log_e)
        newly = self.alarmed_at is None and log_e >= -math.log(self.alpha)
        if newly:
            self.alarmed_at = self.runs
        # half of all rows together and half of each, averaged over alternatives; the least over the masses
        apart = self._detectors[1:].mean(axis=(0, 1))
        detector = float((self._detectors[0].mean(axis=0) + apart).min() / 2)
        window = detector >= self.run_length
        reading = DriftReading(
            runs=self.runs,
            log_e=log_e,
            p=min(1.0, math.exp(-self.largest)),
            ever=self.alarmed_at is not None,
            newly=newly,
            detector=detector,
            window=window,
        )
        if window:
            self.windows += 1
            self._detectors[:] = 0
        return reading

    def causes(self, *, recent: bool = False) -> list[DriftCause]:
        """The rows that speak most for drift, with a ratio of likelihoods above one; the first of them first.

        Args:
            recent: of recent runs, as the window weighs them; else of all new runs.
        """
        if recent:
            return causes_of_recent(self.rows, self._evidence, self._share, self.runs, self._forgetting)
        return causes_of_all(self.rows, self._evidence, self._share)

    # ------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """JSON values from which `restore` goes on, given the same baseline and options."""
        outcomes = self.rows.outcomes
        rows = {}
        for row, each in enumerate(self._evidence):
            if each.n_new:
                rows[self.rows.name(row) if row < self.rows.n_rows - 1 else ""] = {
                    "new": {outcomes[j]: n for j, n in sorted(each.new.items())},
                    "recent": {outcomes[j]: n for j, n in each.recent.items()},
                    "n_recent": each.n_recent,
                    "null": each.null,
                    "alternative": each.alternative,
                    "last_run": each.last_run,
                }
        return {
            "alpha": self.alpha,
            "run_length": self.run_length,
            "half_life": self.half_life,
            "runs": self.runs,
            "largest": self.largest,
            "alarmed_at": self.alarmed_at,
            "windows": self.windows,
            "rows": rows,
            "detectors": self._detectors.ravel().tolist(),
        }

    def restore(self, data: Any) -> None:
        """Take up what `to_dict` wrote of a monitor of the same baseline and options.

        Raises:
            UsageError: it is of another baseline or other options, or no such document.
        """
        try:
            state = msgspec.convert(data, _DriftDocument, strict=True)
            options = (state.alpha, state.run_length, state.half_life)
            if options != (self.alpha, self.run_length, self.half_life):
                raise ValueError(f"alpha, run length and half-life were {options}")
            self._detectors = np.array(state.detectors).reshape(self._detectors.shape)
            position = {self.rows.name(row): row for row in range(self.rows.n_rows - 1)} | {"": self.rows.n_rows - 1}
            for name, row in state.rows.items():
                evidence = self._evidence[position[name]]
                if (len(row.null), len(row.alternative)) != (len(evidence.null), len(evidence.alternative)):
                    raise ValueError(f"row {name!r} has other priors")
                evidence.new = {self._code[target]: n for target, n in row.new.items()}
                evidence.recent = {self._code[target]: n for target, n in row.recent.items()}
                evidence.null, evidence.alternative, evidence.last_run = row.null, row.alternative, row.last_run
                evidence.n_new, evidence.n_recent = sum(evidence.new.values()), row.n_recent
                self._factors[position[name]] = _mixed([evidence], self._share)[0]
        except (msgspec.ValidationError, ValueError, KeyError) as error:
            raise UsageError(
                f"what was saved of the drift monitor is of another baseline or options: {error}"
            ) from None
        self.runs, self.largest = state.runs, state.largest
        self.alarmed_at, self.windows = state.alarmed_at, state.windows


class _RowDocument(msgspec.Struct, forbid_unknown_fields=True):
    new: dict[str, int]
    recent: dict[str, float]
    n_recent: float
    null: list[float]
    alternative: list[float]
    last_run: int


class _DriftDocument(msgspec.Struct, forbid_unknown_fields=True):
    alpha: float
    run_length: float
    half_life: float
    runs: int
    largest: float
    alarmed_at: int | None
    windows: int
    rows: dict[str, _RowDocument]
    detectors: list[float]


def _mixed(rows: Collection[RowEvidence], share: float) -> Floats:
    """``log((1 - w) + w L)`` under each mass of the null hypothesis, L averaged over the alternatives.

    Shape (rows, masses).
    """
    averages = np.logaddexp.reduce(np.array([each.alternative for each in rows]), axis=1) - math.log(len(FIRMNESS))
    ratios = averages[:, None] - np.array([each.null for each in rows])
    return np.asarray(np.logaddexp(math.log1p(-share), math.log(share) + ratios))
