"""How Storm is asked about an operator: its query, and what is made of the answer.

What Storm's language lacks is rewritten into queries that Storm does answer: ``G``, ``W`` and ``R`` as complements of
``U``, and a lower step bound k as the mean, over the state after k steps, of the value that remains from there.
Operands are sets of states, ``a0`` and ``a1``, never names.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

#: Operands that must all hold: formulas, each as it stands or negated.
Conjunction = tuple[tuple[ast.Formula, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StormQuery:
    """What Storm is asked for an operator.

    Attributes:
        formula: Storm's text; ``a0`` stands for the first operand and ``a1`` for the second.
        operands: at most two. steps: how many steps the formula looks ahead; None if it needs equations solved.
        complemented: the operator is one minus the answer. long_run: a long-run average.
        delay: the answer is about the state after that many steps, all of them spent in a1.
        empty: no step lies within the bounds of the operator.
    """

    formula: str
    operands: tuple[Conjunction, ...] = ()
    steps: int | None = None
    complemented: bool = False
    delay: int = 0
    long_run: bool = False
    empty: bool = False

    @property
    def rewritten(self) -> bool:
        """Whether Storm is asked something else than the operator in Storm's own syntax."""
        return self.complemented or self.delay > 0 or self.empty

    @property
    def is_probability(self) -> bool:
        """Whether the answer lies in [0, 1]."""
        return self.formula.startswith(("P", "S"))


def formulate(operator: ast.Operator, structure: str) -> StormQuery:
    """The query for an operator, whose reward structure Storm knows as ``structure``."""
    match operator:
        case ast.SteadyState(operand):
            return StormQuery(formula='S=? [ "a0" ]', operands=(((operand, True),),), long_run=True)
        case ast.Probability(ast.Next(operand)):
            return StormQuery(formula='P=? [ X "a0" ]', operands=(((operand, True),),), steps=1)
        case ast.Probability(path):
            return _until_query(path)
        case ast.Reward(ast.ReachReward(operand)):
            return StormQuery(formula=f'R{{"{structure}"}}=? [ F "a0" ]', operands=(((operand, True),),))
        case ast.Reward(ast.CumulativeReward(None)):
            return StormQuery(formula=f'R{{"{structure}"}}=? [ C ]')
        case ast.Reward(ast.CumulativeReward(bound, strict)) if bound is not None:
            steps = max(_whole(bound) - strict, 0)
            return StormQuery(formula=f'R{{"{structure}"}}=? [ C<={steps} ]', steps=steps)
        case ast.Reward(ast.InstantaneousReward(time)):
            steps = _whole(time)
            return StormQuery(formula=f'R{{"{structure}"}}=? [ I={steps} ]', steps=steps)
        case ast.Reward(ast.LongRunReward()):
            return StormQuery(formula=f'R{{"{structure}"}}=? [ S ]', long_run=True)
    raise UnsupportedError(f"Storm is not asked about {type(operator).__name__}")


def _until_query(path: ast.PathFormula) -> StormQuery:
    """Every path operator but X as ``a1 U a0`` or one minus it (PRISM's own reduction, step bounds carried over)."""
    stay: Conjunction
    goal: Conjunction
    match path:
        case ast.Eventually(a):
            stay, goal, complemented = (), ((a, True),), False
        case ast.Globally(a):
            stay, goal, complemented = (), ((a, False),), True
        case ast.Until(a, b):
            stay, goal, complemented = ((a, True),), ((b, True),), False
        case ast.WeakUntil(a, b):
            stay, goal, complemented = ((a, True), (b, False)), ((a, False), (b, False)), True
        case ast.Release(a, b):
            stay, goal, complemented = ((a, False),), ((b, False),), True
        case _:
            raise UnsupportedError(f"Storm is not asked about {type(path).__name__}")
    first, last = _window(path.bound)
    if last is not None and last < first:
        return StormQuery(formula="P=? [ F<=0 false ]", steps=0, complemented=complemented, empty=True)
    # Storm has no lower bound without an upper one; and before the first step of [first,last] it lets a run of
    # a1 U a0 pass through states of a0 that are not in a1 (2.0.0). With a1 true it is right.
    delay = 0 if last is not None and not stay else first
    bound = "" if last is None else f"<={last - delay}" if delay == first else f"[{first},{last}]"
    return StormQuery(
        formula=f'P=? [ "a1" U{bound} "a0" ]' if stay else f'P=? [ F{bound} "a0" ]',
        operands=(goal, stay) if stay else (goal,),
        steps=last,
        complemented=complemented,
        delay=delay,
    )


def _window(bound: ast.StepBound | None) -> tuple[int, int | None]:
    """The first and the last step that count, the last None if all later ones do; none counts if last < first."""
    if bound is None:
        return 0, None
    first = 0 if bound.lower is None else _whole(bound.lower) + bound.lower_strict
    last = None if bound.upper is None else _whole(bound.upper) - bound.upper_strict
    return first, last


def _whole(number: ast.Formula) -> int:
    if not isinstance(number, ast.Number) or number.value.denominator != 1 or number.value < 0:
        raise PropertyError(f"a step bound must be a whole number of steps, not {format_formula(number)}")
    if number.value >= 1 << 63:
        raise UnsupportedError(f"Storm counts steps in 64 bits, too few for {format_formula(number)}")
    return number.value.numerator


def storm_formulation(operator: ast.Operator) -> str:
    """How Storm is asked about an operator, as a text for reports: the query, and what is made of its answer."""
    structure = operator.structure if isinstance(operator, ast.Reward) and operator.structure else "r0"
    query = formulate(operator, structure)
    text = query.formula
    for label, operand in zip(('"a0"', '"a1"'), query.operands, strict=False):
        text = text.replace(label, _conjunction_text(operand), 1)
    if query.delay:
        stay = f" spent where {_conjunction_text(query.operands[1])}" if len(query.operands) > 1 else ""
        text = f"R{{v}}=? [ I={query.delay} ] with v = {text}, over runs with {query.delay} steps{stay}"
    return f"1 - ({text})" if query.complemented else text


def _conjunction_text(conjunction: Conjunction) -> str:
    literals = [
        f"({format_formula(formula)})" if holds else f"!({format_formula(formula)})" for formula, holds in conjunction
    ]
    return literals[0] if len(literals) == 1 else f"({' & '.join(literals)})"
