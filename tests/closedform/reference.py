"""Slow, independent answers in rationals: Gaussian elimination, transitive closure and enumeration of paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from tracebridge.chain.markov import MarkovChain
from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    InstantaneousReward,
    Label,
    LongRunReward,
    Next,
    Number,
    Operator,
    PathFormula,
    Probability,
    ReachReward,
    Release,
    Reward,
    StepBound,
    Until,
    WeakUntil,
)

Rows = list[dict[int, Fraction]]
Value = Fraction | float


def solve_linear(matrix: Sequence[Sequence[Fraction]], rhs: Sequence[Fraction]) -> list[Fraction]:
    """Gauss-Jordan elimination."""
    work = [[*row, b] for row, b in zip(matrix, rhs, strict=True)]
    n = len(work)
    for k in range(n):
        pivot = next(i for i in range(k, n) if work[i][k] != 0)
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [entry / work[k][k] for entry in work[k]]
        for i in range(n):
            if i != k and work[i][k] != 0:
                factor = work[i][k]
                work[i] = [a - factor * b for a, b in zip(work[i], work[k], strict=True)]
    return [row[n] for row in work]


class Reference:
    """Answers for one chain; ``value`` is a list with one number a state."""

    def __init__(self, chain: MarkovChain) -> None:
        matrix = chain.exact_transitions()
        self.chain = chain
        self.rows: Rows = [matrix.row(i) for i in range(chain.n_states)]
        self.states = range(chain.n_states)
        self.reach = [self._reachable(i) for i in self.states]

    def _reachable(self, start: int) -> set[int]:
        found, queue = {start}, [start]
        while queue:
            for target in self.rows[queue.pop()]:
                if target not in found:
                    found.add(target)
                    queue.append(target)
        return found

    def holds(self, formula: Formula) -> list[bool]:
        assert isinstance(formula, Label)
        return self.chain.label(formula.name).tolist()

    def value(self, operator: Operator) -> list[Value]:
        match operator:
            case Probability(path=path):
                bound = getattr(path, "bound", None)
                if isinstance(path, Next) or (bound is not None and bound.upper is not None):
                    return [self._enumerated(i, path) for i in self.states]
                return self._unbounded(path)
            case Reward(path=path):
                return self._reward(path)
            case _:
                return self._long_run([Fraction(int(x)) for x in self.holds(operator.operand)])

    # ------------------------------------------------------------ bounded: every path

    def _paths(self, start: int, steps: int) -> Iterator[tuple[list[int], Fraction]]:
        if steps == 0:
            yield [start], Fraction(1)
            return
        for target, p in self.rows[start].items():
            for rest, q in self._paths(target, steps - 1):
                yield [start, *rest], p * q

    def _enumerated(self, start: int, path: PathFormula) -> Fraction:
        steps = 1 if isinstance(path, Next) else max([0, *window(path.bound)])
        return sum((p for states, p in self._paths(start, steps) if self._satisfies(states, path)), Fraction(0))

    def _satisfies(self, states: list[int], path: PathFormula) -> bool:
        match path:
            case Next():
                return self.holds(path.operand)[states[1]]
            case Eventually():
                operand = self.holds(path.operand)
                return any(operand[states[t]] for t in window(path.bound))
            case Globally():
                operand = self.holds(path.operand)
                return all(operand[states[t]] for t in window(path.bound))
        a, b = self.holds(path.left), self.holds(path.right)
        states_in: dict[type, tuple[Callable[[int], bool], Callable[[int], bool]]] = {
            Until: (lambda s: a[s], lambda s: b[s]),
            WeakUntil: (lambda s: a[s] and not b[s], lambda s: not a[s] and not b[s]),
            Release: (lambda s: not a[s], lambda s: not b[s]),
        }
        left, right = states_in[type(path)]
        until = any(right(states[t]) and all(left(states[u]) for u in range(t)) for t in window(path.bound))
        return until if isinstance(path, Until) else not until

    # ------------------------------------------------------------ unbounded: one linear system

    def until(self, left: Sequence[bool], right: Sequence[bool]) -> list[Fraction]:
        able = {s for s in self.states if right[s]}
        while grown := {s for s in self.states if left[s] and s not in able and able & set(self.rows[s])}:
            able |= grown
        matrix, rhs = [], []
        for s in self.states:
            equation = [Fraction(int(s == t)) for t in self.states]
            if s in able and not right[s]:
                for t, p in self.rows[s].items():
                    equation[t] -= p
            matrix.append(equation)
            rhs.append(Fraction(int(right[s])))
        return solve_linear(matrix, rhs)

    def _unbounded(self, path: PathFormula) -> list[Value]:
        n = len(self.rows)
        a = self.holds(path.operand if isinstance(path, Eventually | Globally) else path.left)
        b = a if isinstance(path, Eventually | Globally) else self.holds(path.right)
        everywhere = [True] * n
        left, right = {
            Eventually: (everywhere, a),
            Globally: (everywhere, [not x for x in a]),
            Until: (a, b),
            WeakUntil: (
                [x and not y for x, y in zip(a, b, strict=True)],
                [not x and not y for x, y in zip(a, b, strict=True)],
            ),
            Release: ([not x for x in a], [not x for x in b]),
        }[type(path)]
        value = self.until(left, right)
        bound = getattr(path, "bound", None)
        for _ in range(0 if bound is None else int(bound.lower.value) + bound.lower_strict):
            value = [self._expected(s, value) if left[s] else Fraction(0) for s in self.states]
        return list(value) if isinstance(path, Eventually | Until) else [1 - x for x in value]

    def _expected(self, state: int, value: Sequence[Fraction]) -> Fraction:
        return sum((p * value[t] for t, p in self.rows[state].items()), Fraction(0))

    # ------------------------------------------------------------ rewards

    def _reward(self, path: object) -> list[Value]:
        structure = self.chain.rewards["cost"]
        per_step = structure.fractions(action=True)
        match path:
            case ReachReward():
                target = self.holds(path.operand)
                sure = self.until([True] * len(target), target)
                return [
                    x if p == 1 else math.inf
                    for x, p in zip(
                        self._collected(per_step, [p < 1 or t for p, t in zip(sure, target, strict=True)]),
                        sure,
                        strict=True,
                    )
                ]
            case CumulativeReward(bound=None):
                recurrent = self._recurrent()
                endless = [any(per_step[t] > 0 for t in self.reach[s] if recurrent[t]) for s in self.states]
                stop = [e or r for e, r in zip(endless, recurrent, strict=True)]
                return [math.inf if e else x for e, x in zip(endless, self._collected(per_step, stop), strict=True)]
            case CumulativeReward(bound=Number(value=k)):
                return [
                    sum(
                        (
                            p * sum((per_step[s] for s in states[:-1]), Fraction(0))
                            for states, p in self._paths(i, int(k) - path.strict)
                        ),
                        Fraction(0),
                    )
                    for i in self.states
                ]
            case InstantaneousReward(time=Number(value=k)):
                state = structure.fractions(action=False)
                return [
                    sum((p * state[states[-1]] for states, p in self._paths(i, int(k))), Fraction(0))
                    for i in self.states
                ]
            case LongRunReward():
                return self._long_run(per_step)
        raise AssertionError(path)

    def _collected(self, per_step: Sequence[Fraction], stop: Sequence[bool]) -> list[Fraction]:
        matrix = [
            [Fraction(int(s == t)) - (0 if stop[s] else self.rows[s].get(t, 0)) for t in self.states]
            for s in self.states
        ]
        return solve_linear(matrix, [Fraction(0) if stop[s] else per_step[s] for s in self.states])

    # ------------------------------------------------------------ long run: stationary distributions

    def _recurrent(self) -> list[bool]:
        return [all(s in self.reach[t] for t in self.reach[s]) for s in self.states]

    def _long_run(self, per_step: Sequence[Fraction]) -> list[Value]:
        recurrent = self._recurrent()
        gain = [Fraction(0)] * len(self.rows)
        for s in self.states:
            if recurrent[s]:
                members = sorted(self.reach[s])
                balance = [[Fraction(int(t == u)) - self.rows[u].get(t, 0) for u in members] for t in members]
                balance[0] = [Fraction(1)] * len(members)
                stationary = solve_linear(balance, [Fraction(1), *[Fraction(0)] * (len(members) - 1)])
                gain[s] = sum((x * per_step[t] for x, t in zip(stationary, members, strict=True)), Fraction(0))
        matrix = [
            [Fraction(int(s == t)) - (0 if recurrent[s] else self.rows[s].get(t, 0)) for t in self.states]
            for s in self.states
        ]
        return list(solve_linear(matrix, gain))


def window(bound: StepBound) -> range:
    """The steps of a bound with an end."""
    first = 0 if bound.lower is None else int(bound.lower.value) + bound.lower_strict
    return range(first, int(bound.upper.value) - bound.upper_strict + 1)
