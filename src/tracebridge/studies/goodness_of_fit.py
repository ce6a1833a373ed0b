"""Goodness of fit (paper, SS7): chains that are right, second-order chains, and the seven frameworks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tracebridge.inference import SCENARIOS, certify, paper_profile
from tracebridge.inference.scenarios import Moment, Scenario
from tracebridge.studies.frameworks import FRAMEWORKS, Framework
from tracebridge.studies.random_chains import scenario_of_rows
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import fixed, rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.studies.replication import Replication
    from tracebridge.studies.statement import Statement

RUNS, FRAMEWORK_RUNS = 300, 500
#: Replicates of the bootstrap behind each certificate.
BOOTSTRAP = 99
WEIGHT = 0.6
#: What the paper prints for its second-order corpora, with the sign of its text: AIC of the second order minus first.
PAPER_RANGE = (-1540, -1310)

Memory = Literal["return", "cycle", "mixture"]
#: By what a step remembers, the probability that it is a run's last. It prefers, with weight .6, the previous state,
#: the state that the last two number, or a row of a second matrix, by the previous state (Raftery's mixture).
MEMORIES: dict[Memory, float] = {"return": 0.14, "cycle": 0.15, "mixture": 0.15}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One corpus under the published rule and our certificate.

    Attributes:
        by_times: rejected by the times to success. by_order: by AIC. accepted: by both together.
        delta_aic, delta_aic_support: with all parameters, and with those of observed rows only.
        vacuous: AIC could not reject whatever the dependence on the previous state. chi2_p: of the likelihood ratio.
        certified: whether the certificate does not reject.
    """

    by_times: bool | None
    by_order: bool
    accepted: bool | None
    delta_aic: float
    delta_aic_support: float
    vacuous: bool
    chi2_p: float | None
    certified: bool


def _judge(scenario: Scenario, n_runs: int, rng: np.random.Generator) -> Fit:
    fit, counts = scenario.fitted(n_runs, seed=int(rng.integers(2**63)))
    paper = paper_profile(counts.tables)
    certificate = certify(fit, counts, replicates=BOOTSTRAP, seed=int(rng.integers(2**63)))
    return Fit(
        by_times=None if paper.ks_p is None else paper.ks_p <= 0.05,
        by_order=paper.delta_aic <= 0,
        accepted=paper.accepted,
        delta_aic=paper.delta_aic,
        delta_aic_support=paper.delta_aic_support,
        vacuous=paper.aic_is_vacuous,
        chi2_p=paper.chi2_p,
        certified=certificate.p > certificate.level,
    )


def first_order(_: None, rng: np.random.Generator) -> Fit:
    """Condition A: 300 runs of a first-order chain of five states."""
    return _judge(SCENARIOS["N1"], RUNS, rng)


def second_order(memory: Memory, rng: np.random.Generator) -> Fit:
    """Condition B: 300 runs of a second-order chain of five states with weight .6, exits first-order."""
    return _judge(_scenario(memory, rng), RUNS, rng)


def framework(case: tuple[Framework, bool], rng: np.random.Generator) -> Fit:
    """Condition C: 500 runs of a stand-in; with memory the last two states decide every step between states."""
    source, remembers = case
    rows = source.stand_in(rng)
    scenario = scenario_of_rows(rows)
    if remembers:
        scenario = _with_law(len(rows), _remembering(rows, "cycle", 1.0))
    return _judge(scenario, FRAMEWORK_RUNS, rng)


def _scenario(memory: Memory, rng: np.random.Generator) -> Scenario:
    m, end = 5, MEMORIES[memory]
    rows = np.column_stack([rng.dirichlet(np.ones(m), size=m) * (1 - end), np.full((m, 2), end / 2)])
    second = rng.dirichlet(np.ones(m), size=m)
    return _with_law(m, _remembering(rows, memory, WEIGHT, second))


def _with_law(m: int, law: Callable[[Moment], NDArray[np.float64]]) -> Scenario:
    return Scenario(name="", description="", is_null=False, n_states=m, start=np.eye(m)[0], law=law)


def _remembering(
    rows: NDArray[np.float64], memory: Memory, weight: float, second: NDArray[np.float64] | None = None
) -> Callable[[Moment], NDArray[np.float64]]:
    """A run that goes on follows its memory with this weight, else its row; from its second step on."""
    m = len(rows)

    def law(now: Moment) -> NDArray[np.float64]:
        mixed = rows[now.state].copy()
        later = np.flatnonzero(now.before < m)
        before, state = now.before[later], now.state[later]
        if memory == "mixture" and second is not None:
            preferred = second[before]
        else:
            preferred = np.eye(m)[before if memory == "return" else (before + state + 1) % m]
        going_on = mixed[later, :m].sum(axis=1, keepdims=True)
        mixed[later, :m] = (1 - weight) * mixed[later, :m] + weight * going_on * preferred
        return mixed

    return law


def study(replication: Replication) -> Findings:
    """Conditions A, B and C of the paper, with its rule and with the certificate."""
    (a,) = replication.of_each(first_order, [None])
    b = dict(zip(MEMORIES, replication.of_each(second_order, list(MEMORIES)), strict=True))
    cases = [(each, remembers) for remembers in (False, True) for each in FRAMEWORKS]
    c = dict(
        zip(((each.name, remembers) for each, remembers in cases), replication.of_each(framework, cases), strict=True)
    )
    strong = [fit for memory in ("return", "cycle") for fit in b[memory]]
    plain = [fit for (_, remembers), fits in c.items() if not remembers for fit in fits]
    large = {each.name for each in FRAMEWORKS if each.states >= 10}
    blind = [fit for (name, remembers), fits in c.items() if remembers and name in large for fit in fits]
    return Findings(
        tables=(_table_ab(a, b), _table_c(c)),
        statements=(
            _rejects("A: the paper's rule rejects", a, lambda fit: fit.accepted is False, upper=0.03),
            _rejects("A: the certificate rejects", a, _not_certified, upper=0.07),
            _rejects("B, return and cycle: AIC rejects", strong, lambda fit: fit.by_order, lower=0.97),
            _rejects("B, return and cycle: times reject", strong, lambda fit: fit.by_times is True, upper=0.1),
            _rejects("B, return and cycle: the certificate rejects", strong, _not_certified, lower=0.97),
            fixed("C: smallest dAIC with all parameters", min(fit.delta_aic for fit in plain), lower=0.0),
            _rejects("C: the certificate rejects", plain, _not_certified, upper=0.07),
            _rejects("C with memory, m >= 10: AIC rejects", blind, lambda fit: fit.by_order, upper=0.03),
            _rejects("C with memory, m >= 10: the certificate rejects", blind, _not_certified, lower=0.97),
        ),
        not_reproduced=(
            (
                "A: none of 30 corpora rejected is no control of the error: a test of size 5 % would show that in "
                "one study of five. The rule's true size is about .5 %"
            ),
            (
                f"B: the generator is not given, and the printed range {PAPER_RANGE[0]} to {PAPER_RANGE[1]} of "
                "dAIC cannot tell it. Preferring one state after two reaches it, at exits near .15; Raftery's "
                "mixture, the usual meaning of a mixture weight, comes nowhere near. Times to success see none of "
                "them because exits stay first-order"
            ),
            (
                "C: a small positive dAIC does not fit Table IV's sizes: with all parameters of the second order "
                "it is in the hundreds to thousands, because the penalty is. With 10 to 12 states AIC accepts "
                "even a chain whose every step the last two states decide: the layer is vacuous there"
            ),
        ),
        notes=(
            (
                "with weight .6, B return prefers the previous state, B cycle the state that the last two number, and "
                "B mixture a row of a second matrix, by the previous state (Raftery)"
            ),
            (
                "dAIC is the AIC of the second order minus the first, as in the text (Fig. 7 has the opposite sign); "
                "'support' counts only what was observed as parameters; 'blind' is where AIC accepts any dependence"
            ),
        ),
    )  # fmt: skip


def _rejects(
    text: str,
    fits: list[Fit],
    rejected: Callable[[Fit], bool],
    *,
    lower: float | None = None,
    upper: float | None = None,
) -> Statement:
    return rate(text, sum(map(rejected, fits)), len(fits), "corpora", lower=lower, upper=upper)


def _not_certified(fit: Fit) -> bool:
    return not fit.certified


def _table_ab(a: list[Fit], b: dict[Memory, list[Fit]]) -> Table:
    groups: dict[str, tuple[str, tuple[int, int] | None, list[Fit]]] = {"A first order": ("0", None, a)}
    for memory, fits in b.items():
        groups[f"B {memory}, exit {MEMORIES[memory]}"] = ("1", PAPER_RANGE, fits)
    rows = []
    for name, (paper, paper_range, fits) in groups.items():
        aic = np.array([fit.delta_aic for fit in fits])
        rows.append(
            (
                name,
                len(fits),
                _share([fit.by_times for fit in fits]),
                _share([fit.by_order for fit in fits]),
                paper,
                _share([None if fit.accepted is None else not fit.accepted for fit in fits]),
                _share([not fit.certified for fit in fits]),
                None if paper_range is None else f"{paper_range[0]}..{paper_range[1]}",
                f"{aic.min():.0f}..{aic.max():.0f}",
            )
        )
    columns = ("runs", "corpora", "times", "AIC", "paper: both", "both", "certificate", "paper: dAIC", "dAIC")
    title = f"A and B, {RUNS} runs, 5 states: share rejected by times to success, AIC, both, and the certificate"
    return Table(title=title, columns=columns, rows=tuple(rows))


def _table_c(c: dict[tuple[str, bool], list[Fit]]) -> Table:
    rows = []
    for each in FRAMEWORKS:
        fits, remembering = c[each.name, False], c[each.name, True]
        rows.append(
            (
                each.name,
                each.states,
                "small, > 0",
                float(np.median([fit.delta_aic for fit in fits])),
                float(np.median([fit.delta_aic_support for fit in fits])),
                _share([fit.by_times for fit in fits]),
                _share([not fit.certified for fit in fits]),
                _share([fit.vacuous for fit in remembering]),
                _share([fit.by_order for fit in remembering]),
                _share([not fit.certified for fit in remembering]),
            )
        )
    columns = ("framework", "m", "paper: dAIC", "dAIC", "support", "times", "cert.", "blind", "AIC *", "cert. *")
    title = f"C, {FRAMEWORK_RUNS} runs of stand-ins; *: the same where the last two states decide every step"
    return Table(title=title, columns=columns, rows=tuple(rows))


def _share(flags: list[bool] | list[bool | None]) -> float | None:
    known = [flag for flag in flags if flag is not None]
    return sum(known) / len(known) if known else None
