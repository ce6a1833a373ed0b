"""What PRISM's and Storm's own languages lack, said with what they have.

Each rule keeps the meaning on every chain; step and reward bounds are carried over:

    PRISM   P=? [ w || v ]        P=? [ w & v ] / P=? [ v ]              with a bound: ... / ... >= p
            E [ F<=k a ]          P>0 [ F<=k a ]                         and A [ F<=k a ] as P<=0 [ !(F<=k a) ]
            C<k                   C<=k - 1
            filter(values, f)     filter(printall, f)
    Storm   G<=k a                !(F<=k !a)
            a W b                 !((a & !b) U (!a & !b))
            a R b                 !(!a U !b)
            F>=k a                F=k F a
            a U>=k b              !(F<k !a) & (F=k (a U b))              likewise a U[j,k] b, which Storm 2.0 misreads
            a => b, a <=> b       !a | b, (a & b) | (!a & !b)            likewise =, != and ? : of truth values
            E [ F a ], A [ G a ]  P>0 [ F a ], P<=0 [ F !a ]
            filter(max, f)        filter(max, f, true)                   and printall is called values

``E [ w ]`` is ``P>0 [ w ]`` where a finite part of a run shows w, as it shows F, U and X and all that has an upper step
bound: the runs that begin so have a positive probability. The runs of ``G a`` may have none.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import TypeVar

from tracebridge.pctl import ast
from tracebridge.pctl.evaluation import refusal
from tracebridge.pctl.printer import Target, negation
from tracebridge.pctl.rewrite import rewrite
from tracebridge.pctl.trampoline import Recursion, run

Whole = TypeVar("Whole", bound=ast.Formula | ast.PathFormula)

MAX_NODES = 10_000
"""The largest formula that a rewriting may make of a smaller one."""

MAX_STORM_STEPS = {ast.Eventually: 1_000, ast.Until: 100}
"""From what step on F and U are still said by nesting for Storm, whose automata grow with it: seconds at most."""

_ZERO = ast.Number(Fraction(0), integer=True)
_ONE = ast.Number(Fraction(1), integer=True)


def tool_form(formula: Whole, target: Target) -> Whole:
    """The formula without what the tool lacks, as far as the rules of this module can say it otherwise.

    Raises:
        PropertyError: it would have more than ``MAX_NODES`` nodes, because ``<=>`` and W repeat their operands.
    """
    form = prism_form(formula) if target == "prism" else storm_form(formula)
    if form is not formula:
        largest = max(MAX_NODES, 4 * sum(1 for _ in ast.walk(formula)))
        if next(islice(ast.walk(form), largest, None), None) is not None:
            lacking = "||" if target == "prism" else "<=>"
            raise refusal(formula.span, None, f"has no {lacking}, and without it the formula is too large")
    return form


def prism_form(formula: Whole) -> Whole:
    """The formula in PRISM's language."""
    return rewrite(formula, _for_prism)


def storm_form(formula: Whole) -> Whole:
    """The formula in Storm's language."""
    conditions = Conditions()
    return rewrite(formula, lambda node: _for_storm(node, conditions), change_path=_path_for_storm)


class Conditions:
    """Tells the truth values that are made of labels and operators, which Storm does not take inside expressions."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ast.Formula, bool]] = {}  # a node is kept, so that its id stays its own

    def __contains__(self, formula: ast.Formula) -> bool:
        return run(self._is_condition(formula))

    def _is_condition(self, formula: ast.Formula) -> Recursion[bool]:
        if id(formula) not in self._known:
            found = isinstance(formula, ast.Label | ast.Quantified)
            match formula:
                case ast.Probability() | ast.Reward() | ast.SteadyState():
                    found = formula.threshold is not None
                case ast.Filter():
                    found = formula.kind in {"forall", "exists"}
                case ast.Unary(operator="!") | ast.Coalition():
                    found = yield self._is_condition(
                        formula.operand if isinstance(formula, ast.Unary) else formula.operator
                    )
                case ast.Binary(operator="&" | "|" | "=>" | "<=>"):
                    found = (yield self._is_condition(formula.right)) or (yield self._is_condition(formula.left))
                case ast.Conditional():
                    found = (yield self._is_condition(formula.then)) or (yield self._is_condition(formula.otherwise))
                case _:
                    pass
            self._known[id(formula)] = formula, found
        return self._known[id(formula)][1]


# ---------------------------------------------------------------- PRISM


def _for_prism(node: ast.Formula) -> ast.Formula:
    match node:
        case ast.Reward(path=ast.CumulativeReward(bound=bound, strict=True) as path) if bound is not None:
            return replace(node, path=replace(path, bound=_minus(bound, _ONE), strict=False))
        case ast.Filter(kind="values"):
            return replace(node, kind="printall")
        case ast.Probability(condition=condition) if condition is not None and node.optimum is None:
            if _has_bounds(node.path) or _has_bounds(condition):
                return node  # PRISM's LTL takes none
            both = ast.Probability(ast.PathBinary("&", node.path, condition))
            quotient = ast.Binary("/", both, ast.Probability(condition), span=node.span)
            if node.threshold is None:
                return quotient
            return ast.Binary(node.threshold.comparison, quotient, node.threshold.value, span=node.span)
        case ast.Quantified() if _has_bounds(node.path):
            return _as_probability(node)
        case _:
            return node


def _has_bounds(path: ast.PathFormula) -> bool:
    return any(getattr(node, "bound", None) or getattr(node, "reward_bounds", ()) for node in path_nodes(path))


def path_nodes(path: ast.PathFormula) -> list[ast.PathFormula]:
    """The path formulas that a path formula is made of, itself first; not those inside operators."""
    found: list[ast.PathFormula] = []
    waiting: list[ast.Formula | ast.PathFormula] = [path]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Formula):
            continue
        found.append(node)
        match node:
            case ast.Next() | ast.Eventually() | ast.Globally() | ast.PathNot():
                waiting.append(node.operand)
            case ast.Until() | ast.WeakUntil() | ast.Release() | ast.PathBinary():
                waiting += [node.right, node.left]
            case ast.AutomatonPath():
                pass
    return found


# ---------------------------------------------------------------- Storm


def _for_storm(node: ast.Formula, conditions: Conditions) -> ast.Formula:
    match node:
        case ast.Unary(operator="!", operand=ast.Truth(value)):  # Storm takes !true for a label
            return ast.Truth(not value, span=node.span)
        case ast.Binary(operator="=>"):
            return ast.Binary("|", negation(node.left), node.right, span=node.span)
        case ast.Binary(operator="<=>"):
            return _equivalence(node.left, node.right, node.span)
        case ast.Binary(operator="=") if node.left in conditions or node.right in conditions:
            return _equivalence(node.left, node.right, node.span)
        case ast.Binary(operator="!=") if node.left in conditions or node.right in conditions:
            return _equivalence(node.left, negation(node.right), node.span)
        case ast.Conditional() if node.then in conditions or node.otherwise in conditions:
            yes, no = ast.Binary("&", node.test, node.then), ast.Binary("&", negation(node.test), node.otherwise)
            return ast.Binary("|", yes, no, span=node.span)
        case ast.Quantified():
            return _as_probability(node)
        case ast.Filter():
            kind = "values" if node.kind == "printall" else node.kind
            return replace(node, kind=kind, states=node.states or ast.Truth(True))
        case _:
            return node


def _equivalence(left: ast.Formula, right: ast.Formula, span: ast.Span | None) -> ast.Formula:
    both, neither = ast.Binary("&", left, right), ast.Binary("&", negation(left), negation(right))
    return ast.Binary("|", both, neither, span=span)


def _path_for_storm(path: ast.PathFormula) -> ast.PathFormula:
    match path:
        case ast.Globally() if path.bound is not None or path.reward_bounds:
            return ast.PathNot(_until_for_storm(ast.Eventually(negated(path.operand), path.bound, path.reward_bounds)))
        case ast.WeakUntil():
            neither = _joined("&", negated(path.left), negated(path.right))
            left = _joined("&", path.left, negated(path.right))
            return ast.PathNot(_until_for_storm(ast.Until(left, neither, path.bound, path.reward_bounds)))
        case ast.Release():
            dual = ast.Until(negated(path.left), negated(path.right), path.bound, path.reward_bounds)
            return ast.PathNot(_until_for_storm(dual))
        case ast.Eventually() | ast.Until():
            return _until_for_storm(path)
        case ast.PathBinary(operator="=>"):
            return _path(_joined("|", negated(path.left), path.right))
        case ast.PathBinary(operator="<=>"):
            both, neither = (
                _joined("&", path.left, path.right),
                _joined("&", negated(path.left), negated(path.right)),
            )
            return _path(_joined("|", both, neither))
        case _:
            return path


def _until_for_storm(path: ast.Eventually | ast.Until) -> ast.PathFormula:
    """F and U from a step on: what is left to do at that step, and the way there."""
    bound = path.bound
    if bound is None or bound.lower is None or path.reward_bounds or (bound.exact and isinstance(path, ast.Eventually)):
        return path
    first = _plus(bound.lower, _ONE) if bound.lower_strict else bound.lower
    if first == _ZERO:
        later = None if bound.upper is None else replace(bound, lower=None, lower_strict=False, exact=False)
        return replace(path, bound=later)
    if isinstance(first, ast.Number) and first.value > MAX_STORM_STEPS[type(path)]:
        return path
    then = ast.StepBound(lower=first, upper=first, exact=True)
    if isinstance(path, ast.Eventually) or path.left == ast.Truth(True):
        return path if bound.upper is not None else ast.Eventually(replace(path, bound=None), then, span=path.span)
    if not isinstance(first, ast.Number):
        return path  # the way there has no steps if it turns out to be 0
    rest = None
    if bound.upper is not None:
        rest = ast.StepBound(upper=_minus(bound.upper, first), upper_strict=bound.upper_strict)
    on_the_way = ast.PathNot(ast.Eventually(negated(path.left), ast.StepBound(upper=first, upper_strict=True)))
    return ast.PathBinary("&", on_the_way, ast.Eventually(replace(path, bound=rest), then), span=path.span)


def negated(part: ast.Formula | ast.PathFormula) -> ast.Formula | ast.PathFormula:
    """Not the formula or path formula; a double negation is left out."""
    if isinstance(part, ast.Formula):
        return negation(part)
    return part.operand if isinstance(part, ast.PathNot) else ast.PathNot(part)


def _joined(
    operator: str, left: ast.Formula | ast.PathFormula, right: ast.Formula | ast.PathFormula
) -> ast.Formula | ast.PathFormula:
    if isinstance(left, ast.Formula) and isinstance(right, ast.Formula):
        return ast.Binary(operator, left, right)  # type: ignore[arg-type]
    return ast.PathBinary(operator, left, right)  # type: ignore[arg-type]


def _path(part: ast.Formula | ast.PathFormula) -> ast.PathFormula:
    assert not isinstance(part, ast.Formula)  # noqa: S101 - one side of a PathBinary is a path formula
    return part


# ---------------------------------------------------------------- A and E


def _as_probability(node: ast.Quantified) -> ast.Formula:
    """A and E as P, where a finite part of a run shows what is asked for."""
    if node.quantifier == "E":
        wanted: ast.Formula | ast.PathFormula = node.path
    else:
        inner = node.path
        dual = isinstance(inner, ast.Globally) and inner.bound is None and not inner.reward_bounds
        wanted = ast.Eventually(negated(inner.operand)) if dual and isinstance(inner, ast.Globally) else negated(inner)
    if isinstance(wanted, ast.Formula) or not run(_shown_by_a_prefix(wanted, True)):
        return node
    comparison = ">" if node.quantifier == "E" else "<="
    return ast.Probability(wanted, ast.Threshold(comparison, _ZERO), span=node.span)  # type: ignore[arg-type]


def _shown_by_a_prefix(part: ast.Formula | ast.PathFormula, truth: bool) -> Recursion[bool]:
    """Whether a finite part of a run shows that a path formula has this truth on it, wherever it has: co-safety."""
    match part:
        case ast.PathNot():
            return (yield _shown_by_a_prefix(part.operand, not truth)) is True
        case ast.PathBinary(operator="&" | "|"):
            sides = [(part.left, truth), (part.right, truth)]
        case ast.PathBinary(operator="=>"):
            sides = [(part.left, not truth), (part.right, truth)]
        case ast.PathBinary():
            sides = [(side, either) for side in (part.left, part.right) for either in (True, False)]
        case ast.AutomatonPath():
            return False
        case ast.Next():
            sides = [(part.operand, truth)]
        case ast.Eventually() | ast.Globally() | ast.Until() | ast.WeakUntil() | ast.Release():
            within_steps = part.bound is not None and part.bound.upper is not None
            if not within_steps and isinstance(part, ast.Eventually | ast.Until) is not truth:
                return False
            operands = [part.operand] if isinstance(part, ast.Eventually | ast.Globally) else [part.left, part.right]
            sides = [(operand, truth) for operand in operands]
        case _:
            return True
    for side, wanted in sides:
        if not (yield _shown_by_a_prefix(side, wanted)):
            return False
    return True


# ---------------------------------------------------------------- step counts


def _plus(left: ast.Formula, right: ast.Formula) -> ast.Formula:
    if isinstance(left, ast.Number) and isinstance(right, ast.Number):
        return ast.Number(left.value + right.value, integer=True, span=left.span)
    return ast.Binary("+", left, right)


def _minus(left: ast.Formula, right: ast.Formula) -> ast.Formula:
    if isinstance(left, ast.Number) and isinstance(right, ast.Number) and left.value >= right.value:
        return ast.Number(left.value - right.value, integer=True, span=left.span)
    return ast.Binary("-", left, right)
