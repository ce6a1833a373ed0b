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

from tracebridge.pctl.ast import (
    AutomatonPath,
    Binary,
    Coalition,
    Conditional,
    CumulativeReward,
    Eventually,
    Filter,
    Formula,
    Globally,
    Label,
    Next,
    Number,
    PathBinary,
    PathFormula,
    PathNot,
    Probability,
    Quantified,
    Release,
    Reward,
    Span,
    SteadyState,
    StepBound,
    Threshold,
    Truth,
    Unary,
    Until,
    WeakUntil,
    walk,
)
from tracebridge.pctl.evaluation import refusal
from tracebridge.pctl.printer import Target, negation
from tracebridge.pctl.rewrite import rewrite
from tracebridge.pctl.trampoline import Recursion, run

Whole = TypeVar("Whole", bound=Formula | PathFormula)

MAX_NODES = 10_000
"""The largest formula that a rewriting may make of a smaller one."""

MAX_STORM_STEPS = {Eventually: 1_000, Until: 100}
"""From what step on F and U are still said by nesting for Storm, whose automata grow with it: seconds at most."""

_ZERO = Number(Fraction(0), integer=True)
_ONE = Number(Fraction(1), integer=True)


def tool_form(formula: Whole, target: Target) -> Whole:
    """The formula without what the tool lacks, as far as the rules of this module can say it otherwise.

    Raises:
        PropertyError: it would have more than ``MAX_NODES`` nodes, because ``<=>`` and W repeat their operands.
    """
    form = prism_form(formula) if target == "prism" else storm_form(formula)
    if form is not formula:
        largest = max(MAX_NODES, 4 * sum(1 for _ in walk(formula)))
        if next(islice(walk(form), largest, None), None) is not None:
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
        self._known: dict[int, tuple[Formula, bool]] = {}  # a node is kept, so that its id stays its own

    def __contains__(self, formula: Formula) -> bool:
        return run(self._is_condition(formula))

    def _is_condition(self, formula: Formula) -> Recursion[bool]:
        if id(formula) not in self._known:
            found = isinstance(formula, Label | Quantified)
            match formula:
                case Probability() | Reward() | SteadyState():
                    found = formula.threshold is not None
                case Filter():
                    found = formula.kind in {"forall", "exists"}
                case Unary(operator="!") | Coalition():
                    found = yield self._is_condition(
                        formula.operand if isinstance(formula, Unary) else formula.operator
                    )
                case Binary(operator="&" | "|" | "=>" | "<=>"):
                    found = (yield self._is_condition(formula.right)) or (yield self._is_condition(formula.left))
                case Conditional():
                    found = (yield self._is_condition(formula.then)) or (yield self._is_condition(formula.otherwise))
                case _:
                    pass
            self._known[id(formula)] = formula, found
        return self._known[id(formula)][1]


# ---------------------------------------------------------------- PRISM


def _for_prism(node: Formula) -> Formula:
    match node:
        case Reward(path=CumulativeReward(bound=bound, strict=True) as path) if bound is not None:
            return replace(node, path=replace(path, bound=_minus(bound, _ONE), strict=False))
        case Filter(kind="values"):
            return replace(node, kind="printall")
        case Probability(condition=condition) if condition is not None and node.optimum is None:
            if _has_bounds(node.path) or _has_bounds(condition):
                return node  # PRISM's LTL takes none
            both = Probability(PathBinary("&", node.path, condition))
            quotient = Binary("/", both, Probability(condition), span=node.span)
            if node.threshold is None:
                return quotient
            return Binary(node.threshold.comparison, quotient, node.threshold.value, span=node.span)
        case Quantified() if _has_bounds(node.path):
            return _as_probability(node)
        case _:
            return node


def _has_bounds(path: PathFormula) -> bool:
    return any(getattr(node, "bound", None) or getattr(node, "reward_bounds", ()) for node in path_nodes(path))


def path_nodes(path: PathFormula) -> list[PathFormula]:
    """The path formulas that a path formula is made of, itself first; not those inside operators."""
    found: list[PathFormula] = []
    waiting: list[Formula | PathFormula] = [path]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Formula):
            continue
        found.append(node)
        match node:
            case Next() | Eventually() | Globally() | PathNot():
                waiting.append(node.operand)
            case Until() | WeakUntil() | Release() | PathBinary():
                waiting += [node.right, node.left]
            case AutomatonPath():
                pass
    return found


# ---------------------------------------------------------------- Storm


def _for_storm(node: Formula, conditions: Conditions) -> Formula:
    match node:
        case Unary(operator="!", operand=Truth(value)):  # Storm takes !true for a label
            return Truth(not value, span=node.span)
        case Binary(operator="=>"):
            return Binary("|", negation(node.left), node.right, span=node.span)
        case Binary(operator="<=>"):
            return _equivalence(node.left, node.right, node.span)
        case Binary(operator="=") if node.left in conditions or node.right in conditions:
            return _equivalence(node.left, node.right, node.span)
        case Binary(operator="!=") if node.left in conditions or node.right in conditions:
            return _equivalence(node.left, negation(node.right), node.span)
        case Conditional() if node.then in conditions or node.otherwise in conditions:
            yes, no = Binary("&", node.test, node.then), Binary("&", negation(node.test), node.otherwise)
            return Binary("|", yes, no, span=node.span)
        case Quantified():
            return _as_probability(node)
        case Filter():
            kind = "values" if node.kind == "printall" else node.kind
            return replace(node, kind=kind, states=node.states or Truth(True))
        case _:
            return node


def _equivalence(left: Formula, right: Formula, span: Span | None) -> Formula:
    both, neither = Binary("&", left, right), Binary("&", negation(left), negation(right))
    return Binary("|", both, neither, span=span)


def _path_for_storm(path: PathFormula) -> PathFormula:
    match path:
        case Globally() if path.bound is not None or path.reward_bounds:
            return PathNot(_until_for_storm(Eventually(negated(path.operand), path.bound, path.reward_bounds)))
        case WeakUntil():
            neither = _joined("&", negated(path.left), negated(path.right))
            left = _joined("&", path.left, negated(path.right))
            return PathNot(_until_for_storm(Until(left, neither, path.bound, path.reward_bounds)))
        case Release():
            dual = Until(negated(path.left), negated(path.right), path.bound, path.reward_bounds)
            return PathNot(_until_for_storm(dual))
        case Eventually() | Until():
            return _until_for_storm(path)
        case PathBinary(operator="=>"):
            return _path(_joined("|", negated(path.left), path.right))
        case PathBinary(operator="<=>"):
            both, neither = (
                _joined("&", path.left, path.right),
                _joined("&", negated(path.left), negated(path.right)),
            )
            return _path(_joined("|", both, neither))
        case _:
            return path


def _until_for_storm(path: Eventually | Until) -> PathFormula:
    """F and U from a step on: what is left to do at that step, and the way there."""
    bound = path.bound
    if bound is None or bound.lower is None or path.reward_bounds or (bound.exact and isinstance(path, Eventually)):
        return path
    first = _plus(bound.lower, _ONE) if bound.lower_strict else bound.lower
    if first == _ZERO:
        later = None if bound.upper is None else replace(bound, lower=None, lower_strict=False, exact=False)
        return replace(path, bound=later)
    if isinstance(first, Number) and first.value > MAX_STORM_STEPS[type(path)]:
        return path
    then = StepBound(lower=first, upper=first, exact=True)
    if isinstance(path, Eventually) or path.left == Truth(True):
        return path if bound.upper is not None else Eventually(replace(path, bound=None), then, span=path.span)
    if not isinstance(first, Number):
        return path  # the way there has no steps if it turns out to be 0
    rest = None
    if bound.upper is not None:
        rest = StepBound(upper=_minus(bound.upper, first), upper_strict=bound.upper_strict)
    on_the_way = PathNot(Eventually(negated(path.left), StepBound(upper=first, upper_strict=True)))
    return PathBinary("&", on_the_way, Eventually(replace(path, bound=rest), then), span=path.span)


def negated(part: Formula | PathFormula) -> Formula | PathFormula:
    """Not the formula or path formula; a double negation is left out."""
    if isinstance(part, Formula):
        return negation(part)
    return part.operand if isinstance(part, PathNot) else PathNot(part)


def _joined(operator: str, left: Formula | PathFormula, right: Formula | PathFormula) -> Formula | PathFormula:
    if isinstance(left, Formula) and isinstance(right, Formula):
        return Binary(operator, left, right)  # type: ignore[arg-type]
    return PathBinary(operator, left, right)  # type: ignore[arg-type]


def _path(part: Formula | PathFormula) -> PathFormula:
    assert not isinstance(part, Formula)  # noqa: S101 - one side of a PathBinary is a path formula
    return part


# ---------------------------------------------------------------- A and E


def _as_probability(node: Quantified) -> Formula:
    """A and E as P, where a finite part of a run shows what is asked for."""
    if node.quantifier == "E":
        wanted: Formula | PathFormula = node.path
    else:
        inner = node.path
        dual = isinstance(inner, Globally) and inner.bound is None and not inner.reward_bounds
        wanted = Eventually(negated(inner.operand)) if dual and isinstance(inner, Globally) else negated(inner)
    if isinstance(wanted, Formula) or not run(_shown_by_a_prefix(wanted, True)):
        return node
    comparison = ">" if node.quantifier == "E" else "<="
    return Probability(wanted, Threshold(comparison, _ZERO), span=node.span)  # type: ignore[arg-type]


def _shown_by_a_prefix(part: Formula | PathFormula, truth: bool) -> Recursion[bool]:
    """Whether a finite part of a run shows that a path formula has this truth on it, wherever it has: co-safety."""
    match part:
        case PathNot():
            return (yield _shown_by_a_prefix(part.operand, not truth)) is True
        case PathBinary(operator="&" | "|"):
            sides = [(part.left, truth), (part.right, truth)]
        case PathBinary(operator="=>"):
            sides = [(part.left, not truth), (part.right, truth)]
        case PathBinary():
            sides = [(side, either) for side in (part.left, part.right) for either in (True, False)]
        case AutomatonPath():
            return False
        case Next():
            sides = [(part.operand, truth)]
        case Eventually() | Globally() | Until() | WeakUntil() | Release():
            within_steps = part.bound is not None and part.bound.upper is not None
            if not within_steps and isinstance(part, Eventually | Until) is not truth:
                return False
            operands = [part.operand] if isinstance(part, Eventually | Globally) else [part.left, part.right]
            sides = [(operand, truth) for operand in operands]
        case _:
            return True
    for side, wanted in sides:
        if not (yield _shown_by_a_prefix(side, wanted)):
            return False
    return True


# ---------------------------------------------------------------- step counts


def _plus(left: Formula, right: Formula) -> Formula:
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(left.value + right.value, integer=True, span=left.span)
    return Binary("+", left, right)


def _minus(left: Formula, right: Formula) -> Formula:
    if isinstance(left, Number) and isinstance(right, Number) and left.value >= right.value:
        return Number(left.value - right.value, integer=True, span=left.span)
    return Binary("-", left, right)
