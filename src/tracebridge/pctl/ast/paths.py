"""Path formulas, which are true or false of a path: the temporal operators, their combinations, and automata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from tracebridge.pctl.ast.bounds import RewardBound, StepBound
from tracebridge.pctl.ast.tree import Placed, Tree

if TYPE_CHECKING:
    from tracebridge.pctl.ast.nodes import Formula


@dataclass(frozen=True, slots=True, eq=False)
class Next(Placed):
    """``X a``."""

    letter: ClassVar[str] = "X"

    operand: Formula | PathFormula


@dataclass(frozen=True, slots=True, eq=False)
class _BoundedUnary(Placed):
    """An operator on one operand that may be bounded."""

    operand: Formula | PathFormula
    bound: StepBound | None = None
    reward_bounds: tuple[RewardBound, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Eventually(_BoundedUnary):
    """``F bound a``."""

    letter: ClassVar[str] = "F"


@dataclass(frozen=True, slots=True, eq=False)
class Globally(_BoundedUnary):
    """``G bound a``."""

    letter: ClassVar[str] = "G"


@dataclass(frozen=True, slots=True, eq=False)
class _BoundedBinary(Placed):
    """An operator on two operands that may be bounded."""

    left: Formula | PathFormula
    right: Formula | PathFormula
    bound: StepBound | None = None
    reward_bounds: tuple[RewardBound, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Until(_BoundedBinary):
    """``a U bound b``."""

    letter: ClassVar[str] = "U"


@dataclass(frozen=True, slots=True, eq=False)
class WeakUntil(_BoundedBinary):
    """``a W bound b``: a until b, or a forever."""

    letter: ClassVar[str] = "W"


@dataclass(frozen=True, slots=True, eq=False)
class Release(_BoundedBinary):
    """``a R bound b``: b up to and including the first a, or b forever."""

    letter: ClassVar[str] = "R"


@dataclass(frozen=True, slots=True, eq=False)
class PathNot(Placed):
    """``!`` of a path formula (LTL)."""

    operand: PathFormula


@dataclass(frozen=True, slots=True, eq=False)
class PathBinary(Placed):
    """A Boolean combination of which at least one side is a path formula (LTL)."""

    operator: Literal["&", "|", "=>", "<=>"]
    left: Formula | PathFormula
    right: Formula | PathFormula


@dataclass(frozen=True, slots=True, eq=False)
class AutomatonProposition(Tree):
    """What a proposition of an automaton stands for."""

    name: str
    formula: Formula


@dataclass(frozen=True, slots=True, eq=False)
class AutomatonPath(Placed):
    """Storm's ``HOA: {"file", "a" -> formula, ...}``: the runs that an automaton in a file accepts."""

    file: str
    propositions: tuple[AutomatonProposition, ...]


PathFormula = Next | Eventually | Globally | Until | WeakUntil | Release | PathNot | PathBinary | AutomatonPath
Temporal = Next | Eventually | Globally | Until | WeakUntil | Release
