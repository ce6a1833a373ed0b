"""Bounds along a path and reward structures in plain language."""

from __future__ import annotations

from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula, quote


def spaced(bound: ast.StepBound | None) -> str:
    """The steps that count, behind a space; nothing where all do."""
    return f" {when(bound)}" if bound else ""


def when(bound: ast.StepBound) -> str:
    """When it happens."""
    if bound.exact and bound.upper is not None:
        return f"after exactly {steps(bound.upper)}"
    if bound.lower is None and bound.upper is not None:
        return f"{'in fewer than' if bound.upper_strict else 'within'} {steps(bound.upper)}"
    return f"at a step {_range(bound)}"


def always(bound: ast.StepBound | None) -> str:
    """When it holds all the time."""
    if bound is None:
        return "at every step"
    if bound.exact and bound.upper is not None:
        return f"after exactly {steps(bound.upper)}"
    if bound.lower is None and bound.upper is not None:
        return f"at every step {'before' if bound.upper_strict else 'up to'} step {format_formula(bound.upper)}"
    return f"at every step {_range(bound)}"


def counting(bound: ast.StepBound | None, rewards: tuple[ast.RewardBound, ...]) -> str:
    """Which steps count for an operator that may hold forever."""
    if bound is None and not rewards:
        return ""
    window = f" {_range(bound)}" if bound else ""
    return f", counting only steps{window}{collected(rewards)}"


def _range(bound: ast.StepBound) -> str:
    lower = format_formula(bound.lower) if bound.lower is not None else "0"
    upper = format_formula(bound.upper) if bound.upper is not None else None
    if upper is None:
        return f"{'after' if bound.lower_strict else 'from'} step {lower}{' on' * (not bound.lower_strict)}"
    if bound.exact:
        return f"at step {upper}"
    if bound.lower is None:
        return f"{'before' if bound.upper_strict else 'up to'} step {upper}"
    return f"from step {lower} to step {upper}"


def steps(formula: ast.Formula) -> str:
    """So many steps."""
    text = format_formula(formula)
    return f"{text} step" if text == "1" else f"{text} steps"


def collected(rewards: tuple[ast.RewardBound, ...]) -> str:
    """The reward that may have been collected by then."""
    if not rewards:
        return ""
    amounts = [f"{structure_name(reward.structure)} of {_amount(reward.bound)}" for reward in rewards]
    return f" with a collected {' and a collected '.join(amounts)}"


def _amount(bound: ast.StepBound) -> str:
    lower = format_formula(bound.lower) if bound.lower is not None else None
    upper = format_formula(bound.upper) if bound.upper is not None else None
    if bound.exact:
        return f"exactly {upper}"
    ends = []
    if lower is not None:
        ends.append(f"{'more than' if bound.lower_strict else 'at least'} {lower}")
    if upper is not None:
        ends.append(f"{'less than' if bound.upper_strict else 'at most'} {upper}")
    return " and ".join(ends)


def structure_name(structure: ast.Structure) -> str:
    """The reward that is collected."""
    match structure:
        case None:
            return "reward"
        case str():
            return f"reward {quote(structure)}"
        case ast.OnePerStep():
            return "number of steps"
        case number:
            return f"reward number {format_formula(number)}"
