"""How often the certificate rejects chains that are right, and how often those that are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference import DEFAULT_REPLICATES, SCENARIOS, certify
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import rate

if TYPE_CHECKING:
    from tracebridge.studies.replication import Replication

RUNS = 200
LEVEL = 0.05
LARGEST_SIZE = 0.07
LEAST_POWER = {"A1": 0.97, "A1b": 0.97, "A2": 0.97, "A2c": 0.97, "A3": 0.5, "A4": 0.97}

_STATISTICS = ("first passage", "previous state", "step time", "dwell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One corpus: what rejects its chain at 5 %. ``paper`` is None where the published rule has nothing to judge."""

    joint: bool
    by_statistic: tuple[bool, ...]
    paper: bool | None
    verdict: str


def judge(name: str, rng: np.random.Generator) -> Judgement:
    """Certify the fit of 200 runs of a scenario."""
    fit, counts = SCENARIOS[name].fitted(RUNS, seed=int(rng.integers(2**63)))
    certificate = certify(fit, counts, replicates=DEFAULT_REPLICATES, seed=int(rng.integers(2**63)), level=LEVEL)
    return Judgement(
        joint=certificate.p <= LEVEL,
        by_statistic=tuple(certificate[statistic].p <= LEVEL for statistic in _STATISTICS),
        paper=None if certificate.paper.accepted is None else not certificate.paper.accepted,
        verdict=certificate.verdict,
    )


def study(replication: Replication) -> Findings:
    """Size on the eight nulls, power on the alternatives."""
    names = tuple(SCENARIOS)
    found = dict(zip(names, replication.of_each(judge, names), strict=True))
    number = replication.number
    rows, statements = [], []
    rejected_nulls = nulls = 0
    for name, judgements in found.items():
        scenario = SCENARIOS[name]
        joint = sum(each.joint for each in judgements)
        paper = [each.paper for each in judgements if each.paper is not None]
        rows.append(
            (
                name,
                joint / number,
                *np.mean([each.by_statistic for each in judgements], axis=0).tolist(),
                sum(paper) / len(paper) if paper else None,
                sum(each.verdict == "accept" for each in judgements) / number,
            )
        )
        if scenario.is_null:
            rejected_nulls, nulls = rejected_nulls + joint, nulls + number
            statements.append(rate(f"size on {name}", joint, number, "corpora", upper=LARGEST_SIZE))
        else:
            statements.append(rate(f"power on {name}", joint, number, "corpora", lower=LEAST_POWER[name]))
    pooled = rate("size over all nulls", rejected_nulls, nulls, "corpora", upper=LARGEST_SIZE)
    return Findings(
        tables=(
            Table(
                title=f"Share of {number} corpora of {RUNS} runs rejected at {LEVEL:.0%}; N and F are right, A wrong",
                columns=("", "certificate", *_STATISTICS, "paper's rule", "accepted"),
                rows=tuple(rows),
            ),
            Table(
                title="What they are",
                columns=("", "chain"),
                rows=tuple((name, scenario.description) for name, scenario in SCENARIOS.items()),
            ),
        ),
        statements=(pooled, *statements),
        not_reproduced=(
            (
                "the paper's rule looks safe on chains that are right because it hardly ever rejects anything: its "
                "size is about .5 %, not 5 %. It does not see routes that change with time (A1b), and misses many "
                "mixtures (A3)"
            ),
        ),
    )
