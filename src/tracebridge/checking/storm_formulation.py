"""How Storm is asked about an operator: its query, and what is made of the answer.

What Storm's language lacks, or gets wrong, is rewritten into queries that Storm does answer:

* ``G``, ``W`` and ``R`` as complements of ``U``, also inside LTL (see `storm_ltl`);
* a lower step bound k as the mean, over the state after k steps, of the value that remains from there;
* reward bounds as bounds on whole numbers, and ``a U b`` under them as ``F b`` on a chain that a leaves for good (Storm
  2.0.0 says 1 where neither a nor b holds); a step bound beside them as a bound on a reward of one a step;
* the reward until ``a U b`` as that until ``F b``, where a U b is almost sure;
* a probability under a condition, unless both sides are ``F``, as a quotient of two;
* ``E`` as "the probability is above zero" and ``A`` as its complement, for the paths where that is the same: those that
  a finite part of a run decides.

Operands are sets of states, ``a0``, ``a1``, ..., never names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from tracebridge.checking.storm_ltl import automaton_query
from tracebridge.checking.storm_steps import constant_number, step_window, whole_steps
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

#: Operands that must all hold: formulas, each as it stands or negated.
Conjunction = tuple[tuple[ast.Formula, bool], ...]


@dataclass(frozen=True, slots=True)
class CollectedBound:
    """A bound on what is collected of a reward structure, or on the number of steps, which earn one each."""

    structure: str | ast.OnePerStep | None
    bound: ast.StepBound

    @property
    def is_interval(self) -> bool:
        """Whether it has two ends, which Storm takes as two bounds."""
        return self.bound.lower is not None and self.bound.upper is not None

    def __str__(self) -> str:
        name = "rew" if self.structure is None else f'rew{{"{self.structure}"}}'
        if isinstance(self.structure, ast.OnePerStep):
            name = "steps"
        ends, parts = self.bound, []
        if ends.lower is not None:
            parts.append(f"{name}>{'' if ends.lower_strict else '='}{format_formula(ends.lower)}")
        if ends.upper is not None:
            parts.append(f"{name}<{'' if ends.upper_strict else '='}{format_formula(ends.upper)}")
        return ",".join(parts)


@dataclass(frozen=True, slots=True)
class StormQuery:
    """What Storm is asked for an operator.

    Attributes:
        formula: Storm's text; ``a0`` stands for the first operand, ``a1`` for the second, and so on.
        operands: the sets of states. steps: how many steps the formula looks ahead; None if it needs equations solved.
        complemented: the operator is one minus the answer. long_run: a long-run average.
        delay: the answer is about the state after that many steps, all of them spent in a1.
        empty: no step lies within the bounds of the operator. automaton: the path is one of LTL.
        conditional: the answer is infinite where the condition, which is ``F a1``, is impossible.
        collected: bounds on rewards, which stand in the formula as `bounds_text`; runs end where a1 does not hold.
        discount: the factor by which rewards lose worth with every step.
        positive: the operator asks whether the answer is above zero. sure: a formula that holds where the answer is the
            operator; elsewhere that is infinite.
        translated: rewritten in a way that the other attributes do not tell.
    """

    formula: str
    operands: tuple[Conjunction, ...] = ()
    steps: int | None = None
    complemented: bool = False
    delay: int = 0
    long_run: bool = False
    empty: bool = False
    automaton: bool = False
    conditional: bool = False
    collected: tuple[CollectedBound, ...] = ()
    discount: Fraction | None = None
    positive: bool = False
    sure: str | None = None
    translated: bool = False

    @property
    def rewritten(self) -> bool:
        """Whether Storm is asked something else than the operator in Storm's own syntax."""
        changed = self.complemented or self.empty or self.positive or self.translated
        return changed or self.delay > 0 or self.sure is not None

    @property
    def is_probability(self) -> bool:
        """Whether the answer lies in [0, 1]."""
        return self.formula.startswith(("P", "S"))

    @property
    def decided_by_graph(self) -> bool:
        """Whether Storm tells probabilities of zero and one by the graph of the chain alone."""
        numeric = self.delay or self.automaton or self.conditional or self.collected
        return self.formula.startswith("P") and self.steps is None and not numeric

    @property
    def bounds_text(self) -> str:
        """The bounds on rewards as they stand in the formula, ``^{rew{"cost"}<=5,steps<=4}``."""
        return f"^{{{','.join(map(str, self.collected))}}}" if self.collected else ""


def formulate(operator: ast.Operator, structure: str) -> StormQuery:
    """The query for an operator, whose reward structure Storm knows as ``structure``.

    Raises:
        PropertyError: a bound that is no number. UnsupportedError: Storm cannot answer this operator, not even by
            `parts_of`.
    """
    match operator:
        case ast.SteadyState(operand):
            return StormQuery('S=? [ "a0" ]', operands=(((operand, True),),), long_run=True)
        case ast.Probability(path, condition=None):
            return _path_query(path)
        case ast.Probability(ast.Eventually(goal, None, ()), condition=ast.Eventually(given, None, ())):
            operands = ((ast.state_operand(goal), True),), ((ast.state_operand(given), True),)
            return StormQuery('P=? [ F "a0" || F "a1" ]', operands=operands, conditional=True)
        case ast.Reward():
            return _reward_query(operator, structure)
        case ast.Quantified():
            return _branching_query(operator)
        case ast.Multi():
            raise UnsupportedError("several objectives are for models with choices; a chain has none")
        case ast.Coalition():
            raise UnsupportedError("coalitions of players are for games")
    raise UnsupportedError(f"Storm is not asked about {type(operator).__name__}")


def parts_of(operator: ast.Operator) -> tuple[ast.Probability, ast.Probability] | None:
    """The two probabilities whose quotient a conditional one is, where Storm has no query for it; else None."""
    if not isinstance(operator, ast.Probability) or operator.condition is None:
        return None
    if all(_is_reachability(path) for path in (operator.path, operator.condition)):
        return None
    both = ast.PathBinary("&", operator.path, operator.condition)
    return ast.Probability(both), ast.Probability(operator.condition)


def _is_reachability(path: ast.Node) -> bool:
    """``F a`` without bounds, a being a state formula."""
    return (
        isinstance(path, ast.Eventually)
        and path.bound is None
        and not path.reward_bounds
        and isinstance(path.operand, ast.Formula)
    )


# ---------------------------------------------------------------- probabilities


def _path_query(path: ast.PathFormula) -> StormQuery:
    if not ast.is_pctl(path):
        query = automaton_query(path)
        operands = tuple([((operand, True),) for operand in query.operands])
        return StormQuery(f"P=? [ {query.text} ]", operands=operands, automaton=True, translated=query.rewritten)
    if isinstance(path, ast.Next):
        return StormQuery('P=? [ X "a0" ]', operands=(((ast.state_operand(path.operand), True),),), steps=1)
    return _until_query(path)


def _until_query(path: ast.PathFormula) -> StormQuery:
    """Every path operator but X as ``a1 U a0`` or one minus it (PRISM's own reduction, step bounds carried over)."""
    stay: Conjunction
    goal: Conjunction
    match path:
        case ast.Eventually(a):
            stay, goal, complemented = (), ((ast.state_operand(a), True),), False
        case ast.Globally(a):
            stay, goal, complemented = (), ((ast.state_operand(a), False),), True
        case ast.Until(a, b):
            a, b = ast.state_operand(a), ast.state_operand(b)
            stay, goal, complemented = ((a, True),), ((b, True),), False
        case ast.WeakUntil(a, b):
            a, b = ast.state_operand(a), ast.state_operand(b)
            stay, goal, complemented = ((a, True), (b, False)), ((a, False), (b, False)), True
        case ast.Release(a, b):
            a, b = ast.state_operand(a), ast.state_operand(b)
            stay, goal, complemented = ((a, False),), ((b, False),), True
        case _:
            raise UnsupportedError(f"Storm is not asked about {type(path).__name__}")
    operands = (goal, stay) if stay else (goal,)
    first, last = step_window(path.bound)
    if last is not None and last < first:
        return StormQuery("P=? [ F<=0 false ]", steps=0, complemented=complemented, empty=True)
    if path.reward_bounds:
        collected = _collected(path.reward_bounds, path.bound)
        query = StormQuery("", operands=operands, complemented=complemented, collected=collected)
        translated = bool(stay) or path.bound is not None or any(item.is_interval for item in collected)
        return replace(query, formula=f'P=? [ F{query.bounds_text} "a0" ]', translated=translated)
    # Storm has no lower bound without an upper one; and before the first step of [first,last] it lets a run of
    # a1 U a0 pass through states of a0 that are not in a1 (2.0.0). With a1 true it is right.
    delay = 0 if last is not None and not stay else first
    bound = "" if last is None else f"<={last - delay}" if delay == first else f"[{first},{last}]"
    return StormQuery(
        f'P=? [ "a1" U{bound} "a0" ]' if stay else f'P=? [ F{bound} "a0" ]',
        operands=operands,
        steps=last,
        complemented=complemented,
        delay=delay,
    )


def _collected(rewards: tuple[ast.RewardBound, ...], steps: ast.StepBound | None) -> tuple[CollectedBound, ...]:
    bounds = tuple([CollectedBound(item.structure, item.bound) for item in rewards])
    return bounds if steps is None else (*bounds, CollectedBound(ast.OnePerStep(), steps))


# ---------------------------------------------------------------- rewards


def _reward_query(operator: ast.Reward, structure: str) -> StormQuery:
    head = f'R{{"{structure}"}}=? '
    match operator:
        case ast.Reward(ast.ReachReward(goal), condition=ast.Eventually() as condition) if _is_reachability(condition):
            operands = ((goal, True),), ((ast.state_operand(condition.operand), True),)
            return StormQuery(f'{head}[ F "a0" || F "a1" ]', operands=operands, conditional=True)
        case ast.Reward(condition=condition) if condition is not None:
            raise UnsupportedError("Storm has rewards under a condition only where both sides are F without bounds")
        case ast.Reward(ast.ReachReward(operand), structure=ast.OnePerStep()):
            return StormQuery('T=? [ F "a0" ]', operands=(((operand, True),),))
        case ast.Reward(ast.ReachReward(operand)):
            return StormQuery(f'{head}[ F "a0" ]', operands=(((operand, True),),))
        case ast.Reward(ast.PathReward(ast.Until(stay, goal, None, ()) as path)) if ast.is_pctl(path):
            operands = ((ast.state_operand(goal), True),), ((ast.state_operand(stay), True),)
            return StormQuery(f'{head}[ F "a0" ]', operands=operands, sure='P>=1 [ "a1" U "a0" ]')
        case ast.Reward(ast.CumulativeReward() as path):
            return _cumulative_query(path, head)
        case ast.Reward(ast.InstantaneousReward(time)):
            steps = whole_steps(time)
            return StormQuery(f"{head}[ I={steps} ]", steps=steps)
        case ast.Reward(ast.LongRunReward()):
            return StormQuery(f"{head}[ S ]", long_run=True)
    raise UnsupportedError("Storm has no rewards until a path formula holds, but for F and U without bounds")


def _cumulative_query(path: ast.CumulativeReward, head: str) -> StormQuery:
    discount = None if path.discount is None else _discount(path.discount)
    factor = "" if discount is None else f"discount={discount.numerator}/{discount.denominator}"  # without a space
    if path.reward_bounds:
        if factor:
            raise UnsupportedError("Storm has no discounted reward within reward bounds")
        steps_bound = None if path.bound is None else ast.StepBound(upper=path.bound, upper_strict=path.strict)
        query = StormQuery("", collected=_collected(path.reward_bounds, steps_bound))
        return replace(query, formula=f"{head}[ C{query.bounds_text} ]")
    if path.bound is None:
        return StormQuery(f"{head}[ C{factor} ]", discount=discount)
    steps = whole_steps(path.bound) - path.strict
    if steps < 0:
        raise PropertyError("C<0 collects nothing: the first bound that means something is C<=0")
    return StormQuery(f"{head}[ C<={steps}{factor} ]", steps=steps, discount=discount)


def _discount(factor: ast.Formula) -> Fraction:
    value = constant_number(factor)
    if not 0 < value < 1:
        raise PropertyError(f"a discount lies between 0 and 1, which {format_formula(factor)} does not")
    return value


# ---------------------------------------------------------------- branching time


def _branching_query(operator: ast.Quantified) -> StormQuery:
    """``E`` of a path that a finite run fulfils is "with probability above zero"; ``A`` of one that such a run breaks,
    its complement."""
    path = operator.path
    staying = _staying_query(operator)
    if staying is not None:
        return staying
    fulfilled = isinstance(path, ast.Next | ast.Eventually | ast.Until)
    broken = isinstance(path, ast.Next | ast.Globally | ast.WeakUntil | ast.Release)
    if not ast.is_pctl(path) or not (fulfilled if operator.quantifier == "E" else broken):
        raise UnsupportedError(
            f"Storm has no {operator.quantifier} [ ... ], and no probability says the same as "
            f"{format_formula(replace(operator, span=None))}"
        )
    if isinstance(path, ast.Next) and operator.quantifier == "A":
        operand = ((ast.state_operand(path.operand), False),)
        return StormQuery('P=? [ X "a0" ]', operands=(operand,), steps=1, complemented=True, positive=True)
    return replace(_path_query(path), positive=True)


def _staying_query(operator: ast.Quantified) -> StormQuery | None:
    """``E [ G<=k a ]`` as "k steps in a have a probability above zero"; ``A [ F<=k a ]`` is its dual."""
    match operator.quantifier, operator.path:
        case ("E", ast.Globally(operand, bound, ())) | ("A", ast.Eventually(operand, bound, ())):
            first, last = step_window(bound)
            if first > 0 or last is None or last < 0 or not isinstance(operand, ast.Formula):
                return None
            within = ((operand, operator.quantifier == "E"),)
            return StormQuery(
                'P=? [ F<=0 "a0" ]',
                operands=(within, within),
                steps=last,
                delay=last,
                complemented=operator.quantifier == "A",
                positive=True,
            )
        case _:
            return None


# ---------------------------------------------------------------- as text


def storm_formulation(operator: ast.Operator) -> str:
    """How Storm is asked about an operator, as a text for reports: the query, and what is made of its answer."""
    if (parts := parts_of(operator)) is not None:
        return " / ".join(f"({storm_formulation(part)})" for part in parts)
    query = formulate(operator, _structure_text(operator))
    texts = [_conjunction_text(operand) for operand in query.operands]
    if query.automaton:  # every operand stands in parentheses already
        texts = [format_formula(formula) for ((formula, _),) in query.operands]
    text = _named(query.formula, texts)
    if query.delay:
        stay = f" spent where {texts[1]}" if len(texts) > 1 else ""
        text = f"R{{v}}=? [ I={query.delay} ] with v = {text}, over runs with {query.delay} steps{stay}"
    elif query.collected and len(texts) > 1:
        text = f"{text} on the chain that ends where {texts[1]} does not hold"
    if query.sure is not None:
        return f"{text} where {_named(query.sure, texts)}, infinity elsewhere"
    if query.positive:
        text = f"{text} > 0"
        return f"!({text})" if query.complemented else text
    return f"1 - ({text})" if query.complemented else text


def _named(formula: str, texts: list[str]) -> str:
    """A query with its operands in the place of their labels."""
    return re.sub(r'"a(\d+)"', lambda name: texts[int(name[1])], formula)


def _structure_text(operator: ast.Operator) -> str:
    match operator:
        case ast.Reward(structure=str() as name):
            return name
        case ast.Reward(structure=ast.OnePerStep()):
            return "one a step"
        case _:
            return "r0"


def _conjunction_text(conjunction: Conjunction) -> str:
    literals = [
        f"({format_formula(formula)})" if holds else f"!({format_formula(formula)})" for formula, holds in conjunction
    ]
    return literals[0] if len(literals) == 1 else f"({' & '.join(literals)})"
