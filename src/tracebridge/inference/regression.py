"""What changed between two corpora: rows that differ beyond chance, and what moved reliability, row by row.

The decomposition is exact. With visits ``n`` and worth ``h`` of the old chain and ``n'``, ``h'`` of the new one::

    R' - R  =  (pi0' - pi0) h + sum_i n'_i (row'_i - row_i) h  =  (pi0' - pi0) h' + sum_i n_i (row'_i - row_i) h'

and the mean of the two, which treats both chains alike, is what is attributed to the start and to each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import xlogy

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector
from tracebridge.closedform.absorbing_system import Scalar, scalar
from tracebridge.closedform.entries import Array, object_array
from tracebridge.closedform.sensitivity import Gradient, reliability_gradient
from tracebridge.errors import ModelError, UsageError
from tracebridge.inference.null_distribution import holm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.closedform.firstpassage import Target

DEFAULT_DEALS = 9_999

_BLOCK_NUMBERS = 4_000_000


# ---------------------------------------------------------------- what moved reliability


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one row of the chain adds to the difference. Attributes: the ``state`` and the ``amount``."""

    state: str
    amount: Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """Why the reliability of two chains differs: ``after - before = start + sum of rows``, exactly.

    Attributes:
        before, after: the reliability of the old and the new chain.
        start: what the change of where runs start adds.
        rows: what the change of each row adds, the largest amounts first. A state that only one of the chains has adds
            nothing itself: its effect is that of the rows which lead to it.
        only_old, only_new: states that one chain alone has.
    """

    before: Scalar
    after: Scalar
    start: Scalar
    rows: tuple[Contribution, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]


def decompose_reliability(
    old: MarkovChain, new: MarkovChain, *, d: int | None = None, target: Target = "success", exact: bool = False
) -> Decomposition:
    """Attribute the difference of R_inf, or of R(d), to the start and to the rows; states are matched by name.

    Raises:
        UsageError: for a budget below one.
        ModelError: if a chain is not absorbing, or a state is absorbing in one of them only.
    """
    if d is not None and d < 1:
        raise UsageError(f"a decomposition needs a budget of one or more, not {d}")
    chains = _over_common_states(old, new, target)
    gradients = [reliability_gradient(chain, d=d, exact=exact) for chain in chains]
    rows, starts = zip(*(_plain(chain, exact=exact) for chain in chains), strict=True)
    worths = [_worth_at_start(gradient, P) for gradient, P in zip(gradients, rows, strict=True)]
    half: Any = Fraction(1, 2) if exact else 0.5
    start = half * ((starts[1] - starts[0]) @ (worths[0] + worths[1]))
    change = (rows[1] - rows[0])[gradients[0].form.transient]
    amounts = half * sum(
        (gradients[occupied].occupancy * (change @ gradients[valued].worth.T)).sum(axis=1)
        for occupied, valued in ((1, 0), (0, 1))
    )
    found = [
        Contribution(state=state, amount=scalar(amount, exact=exact))
        for state, amount in zip(gradients[0].form.transient_states, amounts.tolist(), strict=True)
    ]
    known = [set(chain.states) for chain in (old, new)]
    return Decomposition(
        before=gradients[0].value,
        after=gradients[1].value,
        start=scalar(start, exact=exact),
        rows=tuple(sorted(found, key=lambda item: -abs(float(item.amount)))),
        only_old=tuple(state for state in old.states if state not in known[1]),
        only_new=tuple(state for state in new.states if state not in known[0]),
    )


def _over_common_states(old: MarkovChain, new: MarkovChain, target: Target) -> list[MarkovChain]:
    """Both chains over all states of either; a state that a chain lacks is never entered there, and takes the other's
    row so that it changes nothing."""
    states = list(dict.fromkeys([*old.states, *new.states]))
    position = {name: i for i, name in enumerate(states)}
    ends = [{name for name, a in zip(c.states, c.absorbing.tolist(), strict=True) if a} for c in (old, new)]
    for name in states:
        if name in set(old.states) & set(new.states) and (name in ends[0]) != (name in ends[1]):
            raise ModelError(f"the state {name!r} ends runs in one of the chains only")
    names = [target] if isinstance(target, str) else list(target)
    labels = {}
    for label in names:
        held = np.zeros(len(states), dtype=np.bool_)
        for chain in (old, new):
            held[[position[s] for s, a in zip(chain.states, chain.label(label).tolist(), strict=True) if a]] = True
        labels[label] = held
    rows = [
        {
            name: {position[chain.states[j]]: value for j, value in matrix.row(i).items()}
            for i, name in enumerate(chain.states)
        }
        for chain, matrix in ((chain, chain.exact_transitions()) for chain in (old, new))
    ]
    chains = []
    for side, chain in enumerate((old, new)):
        initial = [Fraction(0)] * len(states)
        for name, share in zip(chain.states, chain.exact_initial(), strict=True):
            initial[position[name]] = share
        matrix: Any = RationalMatrix.from_rows([rows[side].get(name) or rows[1 - side][name] for name in states])
        vector: Any = RationalVector.from_fractions(initial)
        chains.append(MarkovChain(states=tuple(states), transitions=matrix, initial=vector, labels=labels))
    return chains


def _plain(chain: MarkovChain, *, exact: bool) -> tuple[Array, Array]:
    """P and pi0 in full: the rows of two fits are compared, which are small."""
    if not exact:
        return chain.transitions.toarray(), chain.initial
    n, matrix = chain.n_states, chain.exact_transitions()
    P = np.full((n, n), Fraction(0), dtype=object)
    for i in range(n):
        for j, value in matrix.row(i).items():
            P[i, j] = value
    return P, object_array(chain.exact_initial())


def _worth_at_start(gradient: Gradient, P: Array) -> Array:
    """The reliability from every state with the whole budget: one step more than the first row of ``worth``."""
    return np.asarray(P @ gradient.worth[0])


# ---------------------------------------------------------------- which rows differ


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """Whether what follows a state differs between two corpora.

    Attributes:
        state: the state. n_old, n_new: transitions out of it that were seen.
        g2: the likelihood ratio statistic. df: its degrees of freedom. p_value: from deals at random with the same
            margins; None where nothing can differ. p_holm: adjusted for all states.
        moved: the successor whose share changed most, with its share in the old and in the new corpus.
        old_share, new_share: these shares; NaN without a transition.
    """

    state: str
    n_old: int
    n_new: int
    g2: float
    df: int
    p_value: float | None
    p_holm: float | None
    moved: str
    old_share: float
    new_share: float


def compare_rows(
    old: ChainFit, new: ChainFit, *, deals: int = DEFAULT_DEALS, seed: int = 0
) -> tuple[RowDifference, ...]:
    """Test every state's row for a difference between two corpora; the smallest p-values first.

    G2 has its chi-square law only where every cell has many counts. So its null law is found from tables with the same
    margins dealt at random, which is exact for independent transitions. Runs of one task are not independent: where a
    corpus has few tasks with many trials, small p-values say less than they seem to.

    Raises:
        UsageError: for weighted fits, or fewer than one deal.
    """
    if deals < 1:
        raise UsageError(f"a test needs a deal, not {deals}")
    if old.weighted is not None or new.weighted is not None:
        raise UsageError("rows of weighted runs are not counts: compare fits without weights")
    tables = [_row_tables(fit) for fit in (old, new)]
    found: list[RowDifference] = []
    generators = np.random.SeedSequence(seed)
    states = sorted(tables[0].keys() | tables[1].keys())
    for state, child in zip(states, generators.spawn(len(states)), strict=True):
        a, b = (table.get(state, {}) for table in tables)
        names = sorted(a.keys() | b.keys())
        pair = np.array([[counts.get(name, 0) for name in names] for counts in (a, b)], dtype=np.int64)
        found.append(_row_difference(state, names, pair.reshape(2, len(names)), deals, np.random.default_rng(child)))
    able = [i for i, row in enumerate(found) if row.p_value is not None]
    adjusted = dict(zip(able, holm([p for row in found if (p := row.p_value) is not None]), strict=True))
    found = [replace(row, p_holm=adjusted.get(i)) for i, row in enumerate(found)]
    return tuple(sorted(found, key=lambda row: (2.0 if row.p_value is None else row.p_value, -row.g2, row.state)))


def _row_tables(fit: ChainFit) -> dict[str, dict[str, int]]:
    rows = fit.row_counts()
    names = (*rows.states, "success", "failure")
    tables: dict[str, dict[str, int]] = {state: {} for state in rows.states}
    entries = rows.counts.tocoo()
    for i, j, count in zip(*(part.tolist() for part in entries.coords), entries.data.tolist(), strict=True):
        if count:
            tables[rows.states[i]][names[j]] = int(count)
    return tables


def _row_difference(
    state: str, names: Sequence[str], pair: NDArray[np.int64], deals: int, rng: np.random.Generator
) -> RowDifference:
    totals, columns = pair.sum(axis=1), pair.sum(axis=0)
    with np.errstate(invalid="ignore"):
        shares = pair / totals[:, None]
    able = len(names) > 1 and bool(np.all(totals > 0))
    g2 = float(_g2(pair[:1], columns)[0]) if able else 0.0
    p_value = None
    if able:
        as_large, together = 0, max(1, _BLOCK_NUMBERS // len(names))
        for begin in range(0, deals, together):
            size = min(together, deals - begin)
            dealt = rng.multivariate_hypergeometric(columns, int(totals[0]), size=size, method="marginals")
            as_large += int(np.sum(_g2(dealt, columns) >= g2 * (1 - 1e-12) - 1e-12))
        p_value = (1 + as_large) / (1 + deals)
    moved = int(np.argmax(np.abs(np.nan_to_num(shares[1]) - np.nan_to_num(shares[0])))) if names else 0
    return RowDifference(
        state=state,
        n_old=int(totals[0]),
        n_new=int(totals[1]),
        g2=g2,
        df=len(names) - 1 if able else 0,
        p_value=p_value,
        p_holm=None,
        moved=names[moved] if names else "",
        old_share=float(shares[0, moved]) if names else float("nan"),
        new_share=float(shares[1, moved]) if names else float("nan"),
    )


def _g2(first: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of 2 x s tables with these first rows, shape (B, s), and column totals; shape (B,)."""
    second = columns - first
    n = [part.sum(axis=1, dtype=np.float64) for part in (first, second)]
    inside = xlogy(first, first).sum(axis=1) + xlogy(second, second).sum(axis=1)
    margin = xlogy(n[0], n[0]) + xlogy(n[1], n[1]) + xlogy(columns, columns).sum() - xlogy(n[0] + n[1], n[0] + n[1])
    return np.asarray(np.maximum(2 * (inside - margin), 0.0))
