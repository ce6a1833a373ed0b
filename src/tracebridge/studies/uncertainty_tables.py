"""The paper's uncertainty tables (Table II and III): what they are made of, and what their agreement shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import beta

from tracebridge.chain import fit_counts
from tracebridge.inference import RunCounts, property_uncertainty
from tracebridge.studies.coverage import CHAINS, true_figures
from tracebridge.studies.frameworks import FRAMEWORKS
from tracebridge.studies.random_chains import scenario_of_rows
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import Statement, equals, fixed, mean, rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.studies.replication import Replication

RUNS = 50
RESAMPLES, DRAWS = 400, 1_000
_TAILS = np.array([0.025, 0.975])
_STATES = 6
_HALF_DIGIT = 0.0005 + 1e-9

#: Table II: success exit, its 95 % interval, failure exit.
TABLE_2 = {
    "react": {
        "tool call": (0.064, 0.039, 0.094, 0.067),
        "plan": (0.076, 0.048, 0.109, 0.072),
        "retry": (0.034, 0.004, 0.092, 0.085),
        "reflect": (0.081, 0.038, 0.138, 0.081),
        "error parse": (0.082, 0.028, 0.162, 0.082),
        "wait": (0.057, 0.007, 0.153, 0.057),
    },
    "reflexion": {
        "plan": (0.121, 0.074, 0.178, 0.027),
        "error parse": (0.083, 0.041, 0.138, 0.033),
        "retry": (0.054, 0.020, 0.103, 0.045),
        "reflect": (0.104, 0.056, 0.166, 0.043),
        "tool call": (0.097, 0.066, 0.133, 0.064),
        "wait": (0.128, 0.049, 0.236, 0.064),
    },
    "toolformer": {
        "retry": (0.105, 0.057, 0.164, 0.048),
        "error parse": (0.046, 0.015, 0.093, 0.028),
        "tool call": (0.078, 0.053, 0.108, 0.062),
        "wait": (0.073, 0.021, 0.154, 0.036),
        "plan": (0.092, 0.050, 0.145, 0.050),
        "reflect": (0.085, 0.042, 0.142, 0.068),
    },
}


# ---------------------------------------------------------------- Table II: which counts are behind it?


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitCounts:
    """Counts behind a row: departures of a state, those to success, and those to failure."""

    departures: int
    successes: int
    failures: int


def counts_behind(
    exit_: float, lower: float, upper: float, failing: float, *, departures: int = 1_000
) -> list[ExitCounts]:
    """All counts, up to so many departures, whose posterior under one pseudo-count an entry prints as this row.

    With m states the exit to success is ``Beta(c + 1, n + m + 1 - c)``; printed are its mean and quantiles, and the
    mean of the exit to failure, with three digits.
    """
    totals = np.arange(_STATES + 2, departures + _STATES + 3)[None, :]
    shapes = np.arange(1, departures // 2)[:, None]
    c, n = np.nonzero((np.abs(shapes / totals - exit_) <= _HALF_DIGIT) & (shapes < totals))
    a, total = shapes[c, 0], totals[0, n]
    ends = beta.ppf(_TAILS[:, None], a, total - a)
    printed = (np.abs(ends[0] - lower) <= _HALF_DIGIT) & (np.abs(ends[1] - upper) <= _HALF_DIGIT)
    found = []
    for shape, size in zip(a[printed].tolist(), total[printed].tolist(), strict=True):
        failures = [f for f in range(size - shape) if abs((f + 1) / size - failing) <= _HALF_DIGIT]
        found += [ExitCounts(departures=size - _STATES - 2, successes=shape - 1, failures=f) for f in failures]
    return found


def _table_2() -> tuple[Table, list[Statement]]:
    rows, behind, shares = [], 0, {}
    for framework, states in TABLE_2.items():
        ended = np.zeros(2)
        for state, printed in states.items():
            found = counts_behind(*printed)
            behind += bool(found)
            first = found[0] if found else None
            shown = (None,) * 3 if first is None else (first.departures, first.successes, first.failures)
            interval = "{:.3f} [{:.3f}, {:.3f}], {:.3f}".format(*printed)
            rows.append((framework, state, interval, len(found), *shown))
            if first is not None:
                ended += [first.successes, first.failures]
        shares[framework] = float(ended[0] / ended.sum())
    in_table_4 = {framework.name: framework.reliability for framework in FRAMEWORKS}
    columns = ("framework", "state", "paper: exits", "solutions", "departures", "successes", "failures")
    return Table(title="Counts behind Table II; the first of several solutions", columns=columns, rows=tuple(rows)), [
        fixed("rows of Table II that one pseudo-count an entry explains, of 18", behind, lower=18),
        *(
            equals(f"pass rate behind Table II, {name} (Table IV: {in_table_4[name]:.3f})", share, expected, 0.01)
            for (name, share), expected in zip(shares.items(), (0.49, 0.69, 0.61), strict=True)
        ),
    ]  # fmt: skip


# ---------------------------------------------------------------- Table III: two intervals that agree


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoIntervals:
    """One corpus: median width for entries of Q, and whether the interval of R_inf covers the truth, by method.

    Methods are the posterior and the trace bootstrap with one pseudo-count an entry, both as in the paper, and the
    default posterior.
    """

    widths: tuple[float, float, float]
    covers: tuple[bool, bool, bool]


def two_intervals(_: None, rng: np.random.Generator) -> TwoIntervals:
    """Fifty runs of an agent that mostly succeeds."""
    known = CHAINS[1]
    m, seed = known.states, int(rng.integers(2**63))
    scenario = scenario_of_rows(known.rows)
    fit, _counts = scenario.fitted(RUNS, seed=seed)
    codes, offsets, outcomes = scenario.draw(RUNS, np.random.default_rng(seed))  # the same runs
    runs = RunCounts.of_paths(scenario.states, codes, offsets, outcomes)
    weights = rng.multinomial(RUNS, np.full(RUNS, 1 / RUNS), size=RESAMPLES)
    resampled = np.asarray(weights @ runs.table).reshape(RESAMPLES, m + 1, m + 2)[:, :m]
    counts = np.asarray(runs.table.sum(axis=0)).reshape(m + 1, m + 2)[:m]
    drawn, drawn_reliability = smoothed(resampled)
    truth = true_figures(known)[0]
    widths = [
        _median_width(beta.ppf(_TAILS[:, None, None], *_shapes(counts, 1.0))[:, :, :m]),
        _median_width(np.quantile(drawn[:, :, :m], _TAILS, axis=0)),
        _median_width(beta.ppf(_TAILS[:, None, None], *_shapes(counts, 1 / (m + 2)))[:, :, :m]),
    ]
    low, high = np.quantile(drawn_reliability, _TAILS)
    posteriors = []
    for each in (fit_counts(fit.counts, profile="paper"), fit):
        (found,) = property_uncertainty(each, 'P=? [ F "success" ]', draws=DRAWS, seed=seed)
        posteriors.append(found.interval is not None and truth in found.interval)
    return TwoIntervals(
        widths=(widths[0], widths[1], widths[2]), covers=(posteriors[0], bool(low <= truth <= high), posteriors[1])
    )


def smoothed(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The paper's estimates from counts (corpora, m, m + 2): rows of that shape, and R_inf from the first state."""
    rows = np.asarray((counts + 1) / (counts.sum(axis=2, keepdims=True) + counts.shape[2]), dtype=np.float64)
    m = rows.shape[1]
    success = np.linalg.solve(np.eye(m) - rows[:, :, :m], rows[:, :, [m]])
    return rows, np.asarray(success[:, 0, 0], dtype=np.float64)


def _shapes(counts: NDArray[np.int64], alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a = np.asarray(counts + alpha, dtype=np.float64)
    return a, np.asarray(a.sum(axis=1, keepdims=True) - a)


def _median_width(ends: NDArray[np.float64]) -> float:
    return float(np.median(ends[1] - ends[0]))


def _table_3(replication: Replication) -> tuple[Table, list[Statement]]:
    (found,) = replication.of_each(two_intervals, [None])
    widths = np.array([each.widths for each in found])
    covers = np.array([each.covers for each in found])
    rows: list[tuple[str | float | None, ...]] = [
        (f"paper, {framework.name}", framework.posterior[1], framework.bootstrap[1], None) for framework in FRAMEWORKS
    ]
    rows += [
        ("ours, median width", *widths.mean(axis=0).tolist()),
        ("ours, coverage of R_inf", *covers.mean(axis=0).tolist()),
    ]
    number = replication.number
    statements = [
        rate(text, int(covers[:, k].sum()), number, "corpora", lower=lower, upper=upper)
        for k, (text, lower, upper) in enumerate(
            [
                ("posterior as in the paper: coverage of R_inf", None, 0.2),
                ("bootstrap as in the paper: coverage of R_inf", None, 0.2),
                ("default posterior: coverage of R_inf", 0.9, None),
            ]
        )
    ]
    if number > 1:
        text = "median width of the bootstrap minus that of the posterior, as in the paper"
        statements.insert(0, mean(text, widths[:, 1] - widths[:, 0], "corpora", lower=-0.05, upper=0.05))
    title = f"Interval widths for entries of Q (Table III), and {RUNS} runs of an agent that mostly succeeds"
    columns = ("", "posterior", "bootstrap", "default posterior")
    return Table(title=title, columns=columns, rows=tuple(rows)), statements


def study(replication: Replication) -> Findings:
    """Invert Table II, and see whether intervals that agree as in Table III are right."""
    table_2, behind = _table_2()
    table_3, agreement = _table_3(replication)
    return Findings(
        tables=(table_2, table_3),
        statements=(*behind, *agreement),
        not_reproduced=(
            (
                "the corpora behind Table II and III are not published. Table II is Beta(c + 1, n + 7 - c) with "
                "integers in all 18 rows, which means six states, while Table IV has 9, 12 and 10 for the same "
                "names"
            ),
            (
                "posterior and bootstrap agree to about .01 in the median width, which the paper takes as a "
                "check: they share one prior and its bias, and on an agent that mostly succeeds both miss R_inf"
            ),
        ),
    )
