"""The perturbation bound against the exact effect of a change (paper, Proposition 2 and Fig. 5 a)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.edit import RowChange
from tracebridge.closedform.sensitivity import reliability_effect
from tracebridge.studies.closed_form import loop_chain
from tracebridge.studies.random_chains import chain_of_rows, random_rows, state_names
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import equals, fixed, mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.studies.replication import Replication

SIZES = (1, 2, 5, 10)
SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbed:
    """One change of one chain.

    Attributes:
        effect: the exact change of R_inf, without its sign. first_order: what the derivative says, likewise.
        bound: the paper's, None where its smallness condition does not hold. reliability: R_inf before.
    """

    effect: float
    first_order: float
    bound: float | None
    reliability: float


def perturb_one(m: int, rng: np.random.Generator) -> Perturbed:
    """Redirect a tenth of what does not end, in every state, to where another random row says."""
    rows = random_rows(rng, m, end=0.15, success=(0.3, 0.7))
    chain = chain_of_rows(rows)
    names = (*state_names(m), "success", "failure")
    # Exits to success stay; those to failure may double or vanish.
    staying = rows[:, :m].sum(axis=1) + rows[:, m + 1] * rng.uniform(-1, 1, size=m)
    target = rng.dirichlet(np.ones(m), size=m) * staying[:, None]
    delta = SHARE * (target - rows[:, :m])
    changes = []
    for i in range(m):
        by = {names[j]: Fraction(float(delta[i, j])) for j in range(m)}
        by["failure"] = -sum(by.values(), Fraction(0))
        changes.append(RowChange(state=names[i], by=by))
    effect = reliability_effect(chain, changes)
    return Perturbed(
        effect=abs(float(effect.change)),
        first_order=abs(float(effect.first_order)),
        bound=paper_bound(rows[:, :m], delta, rows[:, m]),
        reliability=float(effect.before),
    )


def paper_bound(Q: NDArray[np.float64], change: NDArray[np.float64], exits: NDArray[np.float64]) -> float | None:
    """Eq. 3 at ``eps = eps_max``, with ``change = eps Delta`` (m, m) and exits to success (m,) that stay as they are.

    ``|N|^2 |change| |exits| + |N|^3 |change|^2 |exits| / (1 - |N| |change|)`` in row-sum norms; None where
    ``|N| |change|`` is not below one.
    """
    visits = float(np.linalg.solve(np.eye(len(Q)) - Q, np.ones(len(Q))).max())
    size = float(np.abs(change).sum(axis=1).max())
    small = visits * size
    if small >= 1:
        return None
    linear = visits * small * float(exits.max())
    return linear + linear * small / (1 - small)


def study(replication: Replication) -> Findings:
    """How far the bound is from the truth, by the number of states."""
    found = replication.of_each(perturb_one, SIZES)
    rows, statements = [], []
    violations = 0
    for m, part in zip(SIZES, found, strict=True):
        held = [each for each in part if each.bound is not None and each.effect > 0]
        ratios = np.array([each.bound / each.effect for each in held if each.bound is not None])
        violations += int(np.count_nonzero(ratios < 1 - 1e-9))
        misses = np.array([abs(each.first_order / each.effect - 1) for each in part if each.effect > 0])
        empty = np.mean([each.bound is not None and each.bound >= each.reliability for each in held]) if held else None
        rows.append(
            (
                m,
                len(part),
                1 - len(held) / len(part),
                float(np.median(ratios)) if len(ratios) else None,
                "1 to 3",
                None if empty is None else float(empty),
                float(np.median(misses)),
            )
        )
        if m >= 5 and len(ratios) > 1:
            logs = np.log10(ratios)
            statements.append(mean(f"m = {m}: log10 of bound over effect", logs, "chains", lower=1.0))
    columns = ("states", "chains", "no bound", "bound / effect", "paper", "bound > R_inf", "first order off by")
    loop = reliability_effect(
        loop_chain(),
        [RowChange(state="s2", by={"s1": Fraction(7, 100), "s2": Fraction(-7, 100)})],
    )
    return Findings(
        tables=(
            Table(
                title=f"Paper's bound over the exact effect of redirecting {SHARE:.0%}; medians",
                columns=columns,
                rows=tuple(rows),
            ),
        ),
        statements=(
            fixed("chains that violate the bound", violations, upper=0),
            *statements,
            equals("three-state loop: R_inf after the change", float(loop.after), 0.346681922197, 1e-11),
            equals("three-state loop: to first order", float(loop.before + loop.first_order), 0.351241788175, 1e-11),
        ),
        not_reproduced=(
            (
                "Fig. 5 a has ratios of bound to effect between 1 and 3. Only chains of one state have such: from five "
                "states on the bound is some hundred times the effect here, and mostly above R_inf: then it says "
                "nothing"
            ),
        ),
        notes=(
            "the bound is true and not needed: the exact effect is one linear solve (`tracebridge whatif`)",
            (
                "Definition 3 asks for substochastic rows of Q(eps) only; that lets an exit to failure become "
                "negative. Rows must leave room for the exits to success that stay"
            ),
        ),
    )
