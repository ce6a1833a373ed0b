"""Slow, independent answers for budgets, discounts and CTL: runs followed one by one, and Gaussian elimination."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import count

from tests.closedform.reference import Reference, Rows, Value, solve_linear, window

from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Globally,
    Next,
    Number,
    PathFormula,
    Probability,
    Quantified,
    Release,
    Reward,
    RewardBound,
    StepBound,
    Until,
    WeakUntil,
)

Spent = tuple[Fraction, ...]
Bounds = list[tuple[StepBound, list[Fraction]]]


def ends(bound: StepBound) -> tuple[Fraction, bool, Fraction | None, bool]:
    lower = bound.lower.value if isinstance(bound.lower, Number) else Fraction(0)
    upper = bound.upper.value if isinstance(bound.upper, Number) else None
    return lower, bound.lower_strict, upper, bound.upper_strict


def within(bound: StepBound, spent: Fraction) -> bool:
    lower, lower_strict, upper, upper_strict = ends(bound)
    enough = spent > lower if lower_strict else spent >= lower
    return enough and (upper is None or (spent < upper if upper_strict else spent <= upper))


def exceeded(bound: StepBound, spent: Fraction) -> bool:
    _, _, upper, upper_strict = ends(bound)
    return upper is not None and (spent >= upper if upper_strict else spent > upper)


class UnfoldingReference(Reference):
    """Answers for operators with budgets, discounts and A or E; else as `Reference`."""

    def value(self, operator: object) -> list[Value]:
        if isinstance(operator, Quantified):
            return [Fraction(int(x)) for x in self._quantified(operator)]
        if isinstance(operator, Probability) and getattr(operator.path, "reward_bounds", ()):
            return self._budgeted_probability(operator.path)
        if isinstance(operator, Reward) and isinstance(operator.path, CumulativeReward):
            path = operator.path
            per_step = self.chain.rewards[str(operator.structure)].fractions(action=True)
            if path.reward_bounds:
                steps = None if path.bound is None else StepBound(upper=path.bound, upper_strict=path.strict)
                return self._budgeted_reward(self._bounds(steps, path.reward_bounds), per_step)
            if path.discount is not None:
                return self._discounted(path, per_step)
        return super().value(operator)  # type: ignore[arg-type]

    # ------------------------------------------------------------ budgets: the chain of (state, spent)

    def _bounds(self, steps: StepBound | None, reward_bounds: Sequence[RewardBound]) -> Bounds:
        found: Bounds = [] if steps is None else [(steps, [Fraction(1)] * len(self.rows))]
        for bound in reward_bounds:
            found.append((bound.bound, self.chain.rewards[str(bound.structure)].fractions(action=True)))
        return found

    def _unfold(
        self, bounds: Bounds, stops: Callable[[int, Spent], bool]
    ) -> tuple[list[tuple[int, Spent]], Rows, list[bool]]:
        """Reachable pairs, their successors, and which of them have left a budget; what is spent beyond is cut off."""
        nothing = tuple(Fraction(0) for _ in bounds)
        pairs = [(s, nothing) for s in self.states]
        index = {pair: i for i, pair in enumerate(pairs)}
        rows: Rows = []
        for i in count():
            if i == len(pairs):
                break
            state, spent = pairs[i]
            rows.append({})
            if stops(state, spent) or any(exceeded(b, x) for (b, _), x in zip(bounds, spent, strict=True)):
                rows[i][i] = Fraction(1)
                continue
            after = tuple(self._cut(b, x + cost[state]) for (b, cost), x in zip(bounds, spent, strict=True))
            for target, p in self.rows[state].items():
                pair = (target, after)
                if pair not in index:
                    index[pair] = len(pairs)
                    pairs.append(pair)
                rows[i][index[pair]] = p
        return pairs, rows, [any(exceeded(b, x) for (b, _), x in zip(bounds, pair[1], strict=True)) for pair in pairs]

    @staticmethod
    def _cut(bound: StepBound, spent: Fraction) -> Fraction:
        lower, _, upper, _ = ends(bound)
        return min(spent, max(lower, upper or Fraction(0)) + 1)

    def _budgeted_probability(self, path: PathFormula) -> list[Value]:
        n = len(self.rows)
        assert not isinstance(path, Next)
        if isinstance(path, Eventually | Globally):
            a = self.holds(path.operand)
            left, right = [True] * n, a if isinstance(path, Eventually) else [not x for x in a]
        else:
            a, b = self.holds(path.left), self.holds(path.right)
            left, right = {
                Until: (a, b),
                WeakUntil: (
                    [x and not y for x, y in zip(a, b, strict=True)],
                    [not x and not y for x, y in zip(a, b, strict=True)],
                ),
                Release: ([not x for x in a], [not x for x in b]),
            }[type(path)]
        bounds = self._bounds(path.bound, path.reward_bounds)

        def fits(spent: Spent) -> bool:
            return all(within(b, x) for (b, _), x in zip(bounds, spent, strict=True))

        pairs, rows, out = self._unfold(bounds, lambda s, spent: (right[s] and fits(spent)) or not left[s])
        good = [right[s] and fits(spent) for s, spent in pairs]
        open_ = [left[s] and not g and not o for (s, _), g, o in zip(pairs, good, out, strict=True)]
        product = Reference.__new__(Reference)
        product.rows, product.states = rows, range(len(rows))
        value = product.until(open_, good)[:n]
        return list(value) if isinstance(path, Eventually | Until) else [1 - x for x in value]

    def _budgeted_reward(self, bounds: Bounds, per_step: list[Fraction]) -> list[Value]:
        """A step counts if what is spent with it is within every budget."""
        pairs, rows, out = self._unfold(bounds, lambda s, spent: False)
        gain = [
            per_step[s] if not any(exceeded(b, x + c[s]) for (b, c), x in zip(bounds, spent, strict=True)) else 0
            for s, spent in pairs
        ]
        gain = [0 if o else g for g, o in zip(gain, out, strict=True)]
        product = Reference.__new__(Reference)
        product.rows, product.states = rows, range(len(rows))
        product.reach = [product._reachable(i) for i in product.states]
        recurrent = product._recurrent()
        endless = [any(gain[t] > 0 for t in product.reach[s] if recurrent[t]) for s in product.states]
        stop = [e or r for e, r in zip(endless, recurrent, strict=True)]
        finite = product._collected([Fraction(g) for g in gain], stop)
        return [math.inf if e else x for e, x in zip(endless, finite, strict=True)][: len(self.rows)]

    # ------------------------------------------------------------ discounts

    def _discounted(self, path: CumulativeReward, per_step: list[Fraction]) -> list[Value]:
        assert isinstance(path.discount, Number)
        x = path.discount.value
        if path.bound is None:
            matrix = [[Fraction(int(s == t)) - x * self.rows[s].get(t, 0) for t in self.states] for s in self.states]
            return list(solve_linear(matrix, per_step))
        assert isinstance(path.bound, Number)
        distribution = [[Fraction(int(s == t)) for t in self.states] for s in self.states]
        total = [Fraction(0)] * len(self.rows)
        for i in range(int(path.bound.value) - path.strict):
            for s in self.states:
                total[s] += x**i * sum((p * g for p, g in zip(distribution[s], per_step, strict=True)), Fraction(0))
                distribution[s] = [
                    sum((distribution[s][t] * self.rows[t].get(u, 0) for t in self.states), Fraction(0))
                    for u in self.states
                ]
        return list(total)

    # ------------------------------------------------------------ CTL: choices made step by step

    def _quantified(self, operator: Quantified) -> list[bool]:
        """A run is one long enough that a state comes back after all that the window looks at: a lasso decides it."""
        path, n = operator.path, len(self.rows)
        if isinstance(path, Next):
            a = self.holds(path.operand)
            choose = any if operator.quantifier == "E" else all
            return [choose(a[t] for t in self.rows[s]) for s in self.states]
        bound = path.bound
        first = 0 if bound is None or bound.lower is None else window(StepBound(bound.lower, bound.lower))[0]
        first += bool(bound is not None and bound.lower_strict)
        last = None if bound is None or bound.upper is None else int(bound.upper.value) - bound.upper_strict
        horizon = first + n + 1 if last is None else max(last, 0)
        values = self._positions(path)

        @cache
        def some(state: int, time: int) -> bool:
            """Whether some run from here on satisfies until, not having failed or succeeded so far."""
            if last is not None and time > last:
                return False
            if time >= first and values[state][1]:
                return True
            return values[state][0] and time < horizon and any(some(t, time + 1) for t in self.rows[state])

        @cache
        def none(state: int, time: int) -> bool:
            """Whether some run from here on never satisfies until; one that lasts to the horizon has a cycle."""
            if last is not None and time > last:
                return True
            if time >= first and values[state][1]:
                return False
            return not values[state][0] or time >= horizon or any(none(t, time + 1) for t in self.rows[state])

        positive = isinstance(path, Eventually | Until)
        if operator.quantifier == "E":
            return [some(s, 0) if positive else none(s, 0) for s in self.states]
        return [not none(s, 0) if positive else not some(s, 0) for s in self.states]

    def _positions(self, path: PathFormula) -> list[tuple[bool, bool]]:
        """Left and right of the until that the path operator, or its negation, is."""
        if isinstance(path, Eventually):
            return [(True, x) for x in self.holds(path.operand)]
        if isinstance(path, Globally):
            return [(True, not x) for x in self.holds(path.operand)]
        assert isinstance(path, Until | WeakUntil | Release)
        pairs = zip(self.holds(path.left), self.holds(path.right), strict=True)
        if isinstance(path, Until):
            return list(pairs)
        if isinstance(path, WeakUntil):
            return [(x and not y, not x and not y) for x, y in pairs]
        return [(not x, not y) for x, y in pairs]
