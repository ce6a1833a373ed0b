"""An independent way to the probability of an LTL formula: refine the chain until the formula is about one state.

Courcoubetis and Yannakakis, The Complexity of Probabilistic Verification (JACM 1995): an innermost temporal operator is
replaced by a new label; each state is split into one whose runs satisfy the operator and one whose runs do not, with
the transition probabilities that follow from Bayes' rule. Everything is in rationals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.closedform.reference import solve_linear

from tracebridge.chain.markov import MarkovChain
from tracebridge.pctl import ast

# formulas as tuples: ("label", name) ("true",) ("not", f) ("and", f, g) ("next", f) ("until", f, g)
Core = tuple


def core(node: ast.Formula | ast.PathFormula) -> Core:
    """A formula with X, U, negation and conjunction only; step bounds unrolled."""
    match node:
        case ast.Label():
            return ("label", node.name)
        case ast.Truth():
            return ("true",) if node.value else negation(("true",))
        case ast.PathNot():
            return negation(core(node.operand))
        case ast.Unary(operator="!"):
            return negation(core(node.operand))
        case ast.PathBinary() | ast.Binary():
            left, right = core(node.left), core(node.right)
            match node.operator:
                case "&":
                    return ("and", left, right)
                case "|":
                    return disjunction(left, right)
                case "=>":
                    return disjunction(negation(left), right)
                case "<=>":
                    return disjunction(("and", left, right), ("and", negation(left), negation(right)))
        case ast.Next():
            return ("next", core(node.operand))
        case ast.Eventually():
            return until(("true",), core(node.operand), node.bound)
        case ast.Globally():
            return negation(until(("true",), negation(core(node.operand)), node.bound))
        case ast.Until():
            return until(core(node.left), core(node.right), node.bound)
        case ast.Release():
            return negation(until(negation(core(node.left)), negation(core(node.right)), node.bound))
        case ast.WeakUntil():
            left, right = core(node.left), negation(core(node.right))
            return negation(until(("and", left, right), ("and", negation(left), right), node.bound))
    raise AssertionError(node)


def negation(formula: Core) -> Core:
    return formula[1] if formula[0] == "not" else ("not", formula)


def disjunction(left: Core, right: Core) -> Core:
    return negation(("and", negation(left), negation(right)))


def until(left: Core, right: Core, bound: ast.StepBound | None) -> Core:
    first = 0 if bound is None or bound.lower is None else int(bound.lower.value) + bound.lower_strict
    last = None if bound is None or bound.upper is None else int(bound.upper.value) - bound.upper_strict
    if last is not None and last < first:
        return negation(("true",))
    unrolled = ("until", left, right)
    if last is not None:
        unrolled = right
        for _ in range(last - first):
            unrolled = disjunction(right, ("and", left, ("next", unrolled)))
    for _ in range(first):
        unrolled = ("and", left, ("next", unrolled))
    return unrolled


def is_small(*paths: ast.PathFormula, operators: int = 6) -> bool:
    """Whether the reference has few different temporal operators to eliminate; each may double the states."""
    stack, found = [core(path) for path in paths], set()
    while stack:
        formula = stack.pop()
        if formula[0] in {"next", "until"}:
            found.add(formula)
        stack += formula[1:] if formula[0] != "label" else ()
    return len(found) <= operators


@dataclass
class Refined:
    rows: list[dict[int, Fraction]]
    truth: dict[Core, list[bool]]
    share: list[dict[int, Fraction]]  # how a state of the original chain is split


def probability(chain: MarkovChain, path: ast.Formula | ast.PathFormula) -> list[Fraction]:
    """The probability of the formula in every state."""
    matrix = chain.exact_transitions()
    n = chain.n_states
    model = Refined(
        rows=[matrix.row(i) for i in range(n)],
        truth={("true",): [True] * n, **{("label", name): mask.tolist() for name, mask in chain.labels.items()}},
        share=[{i: Fraction(1)} for i in range(n)],
    )
    formula = core(path)
    while (operator := innermost(formula, model.truth)) is not None:
        model = eliminate(model, operator)
    holds = propositional(formula, model.truth, len(model.rows))
    return [sum((p for i, p in split.items() if holds[i]), Fraction(0)) for split in model.share]


def innermost(formula: Core, known: dict[Core, list[bool]]) -> Core | None:
    """A temporal operator over operands that are about one state; None if the formula itself is."""
    if formula in known:
        return None
    for part in formula[1:]:
        if (found := innermost(part, known)) is not None:
            return found
    return formula if formula[0] in {"next", "until"} else None


def propositional(formula: Core, truth: dict[Core, list[bool]], n: int) -> list[bool]:
    if formula in truth:
        return truth[formula]
    operands = [propositional(part, truth, n) for part in formula[1:]]
    if formula[0] == "not":
        return [not x for x in operands[0]]
    assert formula[0] == "and"
    return [x and y for x, y in zip(*operands, strict=True)]


def eliminate(model: Refined, operator: Core) -> Refined:
    n = len(model.rows)
    operands = [propositional(part, model.truth, n) for part in operator[1:]]
    if operator[0] == "next":
        yes = [sum((p for t, p in row.items() if operands[0][t]), Fraction(0)) for row in model.rows]
    else:
        yes = until_probabilities(model.rows, *operands)
    chance = {True: yes, False: [1 - q for q in yes]}
    new = [(s, sign) for s in range(n) for sign in (True, False) if chance[sign][s] > 0]
    index = {pair: i for i, pair in enumerate(new)}
    rows = []
    for s, sign in new:
        row: dict[int, Fraction] = {}
        for t, p in model.rows[s].items():
            for after in (True, False):
                if chance[after][t] > 0 and now(operator[0], operands, s, t, after) == sign:
                    row[index[t, after]] = p * chance[after][t] / chance[sign][s]
        rows.append(row)
    truth = {formula: [mask[s] for s, _ in new] for formula, mask in model.truth.items()}
    truth[operator] = [sign for _, sign in new]
    share = [
        {index[s, sign]: p * chance[sign][s] for s, p in split.items() for sign in (True, False) if chance[sign][s] > 0}
        for split in model.share
    ]
    return Refined(rows, truth, share)


def now(kind: str, operands: Sequence[Sequence[bool]], state: int, successor: int, after: bool) -> bool:
    """Whether the operator holds now if it does or does not hold after one step."""
    if kind == "next":
        return operands[0][successor]
    return operands[1][state] or (operands[0][state] and after)


def until_probabilities(rows: list[dict[int, Fraction]], left: list[bool], right: list[bool]) -> list[Fraction]:
    states = range(len(rows))
    able = {s for s in states if right[s]}
    while grown := {s for s in states if left[s] and s not in able and able & set(rows[s])}:
        able |= grown
    unknown = [s for s in states if s in able and not right[s]]
    position = {s: i for i, s in enumerate(unknown)}
    matrix = [[Fraction(int(s == t)) - rows[s].get(t, 0) for t in unknown] for s in unknown]
    rhs = [sum((p for t, p in rows[s].items() if right[t]), Fraction(0)) for s in unknown]
    solution = solve_linear(matrix, rhs)
    return [Fraction(int(right[s])) if s not in position else solution[position[s]] for s in states]
