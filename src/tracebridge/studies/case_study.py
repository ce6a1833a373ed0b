"""The framework case study (paper, SS6, Table IV, Proposition 8): horizons, and what a fit of such frameworks says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain import PriorName, fit_counts
from tracebridge.closedform import long_run_reliability, spectral_radius
from tracebridge.closedform.shape import HorizonRules, horizon_rules
from tracebridge.errors import UnsupportedError
from tracebridge.studies.closed_form import loop_chain
from tracebridge.studies.frameworks import FRAMEWORKS, Framework
from tracebridge.studies.random_chains import chain_of_rows, random_rows, scenario_of_rows
from tracebridge.studies.result import Cell, Findings, Table
from tracebridge.studies.statement import Statement, equals, fixed, mean, rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.studies.replication import Replication

GAP = 0.01
RUNS = 50
#: What the paper calls its horizon, on pipelines of so many equal stages, against the smallest that suffices.
PIPELINES = {2: 14, 3: 18, 5: 25, 8: 34}
_PRIORS: tuple[PriorName, ...] = ("none", "mass-one", "laplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFamily:
    """Random chains of m states, dense or with so many successors a state."""

    name: str
    m: int
    successors: int | None = None


FAMILIES = (
    ChainFamily(name="dense, 5 states", m=5),
    ChainFamily(name="dense, 10 states", m=10),
    ChainFamily(name="sparse, 10 states", m=10, successors=3),
)


def horizons_of_one(family: ChainFamily, rng: np.random.Generator) -> HorizonRules:
    """Every rule for a sufficient budget, of one random chain."""
    return horizon_rules(chain_of_rows(random_rows(rng, family.m, end=0.15, successors=family.successors)), GAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedReliability:
    """R_inf as 50 runs of a stand-in give it: by prior (none, mass-one, laplace), and the pass rate."""

    by_prior: tuple[float, float, float]
    pass_rate: float


def fit_one(framework: Framework, rng: np.random.Generator) -> FittedReliability:
    """Fit 50 runs of a new stand-in three times."""
    fit, _ = scenario_of_rows(framework.stand_in(rng)).fitted(RUNS, seed=int(rng.integers(2**63)))
    none, one, laplace = (float(long_run_reliability(fit_counts(fit.counts, prior=prior).chain)) for prior in _PRIORS)
    return FittedReliability(by_prior=(none, one, laplace), pass_rate=fit.counts.runs_by_outcome()["success"] / RUNS)


def study(replication: Replication) -> Findings:
    """Recompute Table IV's horizons, hold them against exact ones, and fit stand-ins of the frameworks."""
    printed, printed_statement = _printed_horizons()
    families, family_statements = _families(replication)
    pipelines, pipeline_statements = _pipelines()
    fitted, fitted_statements = _fitted(replication)
    return Findings(
        tables=(printed, families, pipelines, fitted),
        statements=(printed_statement, *family_statements, *pipeline_statements, *_loop(), *fitted_statements),
        not_reproduced=(
            ("the chains behind Table IV and Fig. 8 to 10 are not published: stand-ins have random routes and equal "
            "exits, which fixes R_inf and rho as printed, and nothing else"),
            (
                "the column 'Horizon' of Table IV is not eq. 14: all seven are ceil(log(R_inf / .01) / -log rho). "
                "That rule is no bound: it falls short of the smallest sufficient budget in a third of random "
                "chains, and by far on pipelines"
            ),
            ("Table II, IV and V give the same names other corpora: pass rates of .49, .69 and .61 follow from Table "
            "II for react, reflexion and toolformer, R_inf of .058, .070 and .450 from Table IV, about 1 from Table V"),
        ),
        notes=(
            "without a prior, R_inf of a fit is the pass rate by construction and says nothing for the chain",
        ),
    )  # fmt: skip


def _printed_horizons() -> tuple[Table, Statement]:
    rows, agreeing = [], 0
    for framework in FRAMEWORKS:
        rules = horizon_rules(chain_of_rows(framework.stand_in(np.random.default_rng(framework.states))), GAP)
        agreeing += rules.heuristic == framework.horizon
        rows.append(
            (
                framework.name,
                framework.states,
                framework.reliability,
                framework.radius,
                framework.horizon,
                rules.heuristic,
                rules.exact,
                rules.diagonal,
            )
        )
    columns = ("framework", "states", "R_inf", "rho", "paper", "its rule", "exact", "eq. 14")
    table = Table(title=f"Horizons of Table IV for a gap of {GAP}, and of stand-ins", columns=columns, rows=tuple(rows))
    statement = fixed("printed horizons that are ceil(log(R_inf / .01) / -log rho), of 7", agreeing, lower=7)
    return table, statement


def _families(replication: Replication) -> tuple[Table, list[Statement]]:
    found = replication.of_each(horizons_of_one, FAMILIES)
    rows, short_of, below = [], 0, 0
    for family, rules in zip(FAMILIES, found, strict=True):
        exact = np.array([rule.exact for rule in rules], dtype=np.float64)
        heuristic = np.array([rule.heuristic for rule in rules], dtype=np.float64)
        perron = np.array([rule.perron for rule in rules], dtype=np.float64)
        diagonal = [rule.diagonal / rule.exact for rule in rules if rule.diagonal is not None and rule.exact]
        needed = exact > 0
        short_of += int(np.count_nonzero(heuristic < exact))
        below += int(np.count_nonzero(perron < exact))
        rows.append(
            (
                family.name,
                len(rules),
                float(np.mean(heuristic < exact)),
                float((exact - heuristic).max()),
                float(np.median(perron[needed] / exact[needed])) if needed.any() else None,
                float(np.median(diagonal)) if diagonal else None,
            )
        )
    columns = ("chains", "number", "rule too short", "at most by", "Perron / exact", "eq. 14 / exact")
    table = Table(title="Rules for a sufficient budget on random chains; medians", columns=columns, rows=tuple(rows))
    number = sum(len(rules) for rules in found)
    return table, [
        rate("the paper's rule is shorter than the exact horizon", short_of, number, "chains", lower=0.1),
        fixed("chains whose Perron bound is below the exact horizon", below, upper=0),
    ]


def _pipelines() -> tuple[Table, list[Statement]]:
    rows: list[tuple[Cell, ...]] = []
    statements = []
    for stages, expected in PIPELINES.items():
        rules = horizon_rules(chain_of_rows(_pipeline(stages)), GAP)
        rows.append((stages, rules.exact, rules.heuristic, rules.diagonal, rules.reason or ""))
        statements.append(equals(f"pipeline of {stages} stages: exact horizon", rules.exact, expected, 0))
    acyclic = chain_of_rows(np.array([[0, 0.9, 0, 0, 0.1], [0, 0, 0.9, 0, 0.1], [0, 0, 0, 0.8, 0.2]]))
    rules = horizon_rules(acyclic, GAP)
    rows.append(("3, no loops", rules.exact, rules.heuristic, rules.diagonal, rules.reason or ""))
    statements.append(equals("three stages without loops: exact horizon", rules.exact, 3, 0))
    title = "Pipelines whose stages repeat with probability .6 and fail with .02"
    columns = ("stages", "exact", "paper's rule", "eq. 14", "why not")
    return Table(title=title, columns=columns, rows=tuple(rows)), statements


def _pipeline(stages: int) -> NDArray[np.float64]:
    rows = np.zeros((stages, stages + 2))
    for i in range(stages):
        rows[i, i], rows[i, i + 1], rows[i, stages + 1] = 0.6, 0.38, 0.02
    return rows


def _loop() -> list[Statement]:
    chain = loop_chain()
    wide, narrow = horizon_rules(chain, 0.01), horizon_rules(chain, 0.001)
    if wide.diagonal is None or wide.condition is None:
        raise UnsupportedError(f"eq. 14 has no value for the three-state loop: {wide.reason}")
    return [
        equals("three-state loop: rho", spectral_radius(chain), 0.690589595418, 1e-11),
        equals("three-state loop: exact horizon for .01", wide.exact, 9, 0),
        equals("three-state loop: exact horizon for .001", narrow.exact, 16, 0),
        equals("three-state loop: kappa", wide.condition, 6.9188, 5e-5),
        equals("three-state loop: eq. 14", wide.diagonal, 15.54, 5e-3),
    ]


def _fitted(replication: Replication) -> tuple[Table, list[Statement]]:
    found = replication.of_each(fit_one, FRAMEWORKS)
    rows, identity = [], 0.0
    errors_one, errors_laplace = [], []
    for framework, fits in zip(FRAMEWORKS, found, strict=True):
        by_prior = np.array([fit.by_prior for fit in fits])
        rates = np.array([fit.pass_rate for fit in fits])
        identity = max(identity, float(np.abs(by_prior[:, 0] - rates).max()))
        errors_one += (by_prior[:, 1] - framework.reliability).tolist()
        if framework.reliability < 0.1:
            errors_laplace += (by_prior[:, 2] - framework.reliability).tolist()
        means = by_prior.mean(axis=0)
        rows.append((framework.name, framework.reliability, float(rates.mean()), *means.tolist()))
    columns = ("framework", "true R_inf", "pass rate", "no prior", "mass one", "paper's prior")
    title = f"R_inf as {RUNS} runs of a stand-in give it, mean over {replication.number} corpora"
    statements = [
        fixed("largest difference of R_inf without a prior to the pass rate", identity, upper=1e-12),
    ]
    if len(errors_one) > 1:
        statements += [
            mean("bias of R_inf with mass one, all frameworks", errors_one, "corpora", lower=-0.02, upper=0.02),
            mean("bias of R_inf with the paper's prior where R_inf < .1", errors_laplace, "corpora", lower=0.03),
        ]
    return Table(title=title, columns=columns, rows=tuple(rows)), statements
