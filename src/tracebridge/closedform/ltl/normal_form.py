"""Formulas of linear temporal logic in a normal form: disjunctions of clauses of temporal atoms, all negations inside.

A formula is a set of clauses, a clause a set of numbered atoms. Clauses that another one makes superfluous are left
out, and so are atoms that follow from another of their clause (``F<=3 a`` beside ``F<=2 a``, ``F a`` beside ``G F a``).
Formulas that follow from each other by the rules of distributive lattices and by this implication of atoms are
therefore equal as sets, which keeps the number of formulas that a run can lead to finite and small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tracebridge.errors import UnsupportedError

Clause = frozenset[int]
Form = frozenset[Clause]
Last = int | float
"""The last step that counts; ``math.inf`` for no bound."""

TRUE: Form = frozenset([frozenset()])
FALSE: Form = frozenset()

#: So many comparisons of clauses and atoms are made for one question; they take a few seconds.
MAX_WORK = 2_000_000


@dataclass(frozen=True, slots=True)
class Literal:
    """An operand, by its number, holds now; or it does not."""

    operand: int
    positive: bool


@dataclass(frozen=True, slots=True)
class Later:
    """``X^steps operand``."""

    steps: int
    operand: Form


@dataclass(frozen=True, slots=True)
class Until:
    """``left U<=last right``."""

    left: Form
    right: Form
    last: Last


@dataclass(frozen=True, slots=True)
class Release:
    """``left R<=last right``: the dual of `Until`."""

    left: Form
    right: Form
    last: Last


Atom = Literal | Later | Until | Release


class Formulas:
    """The atoms that were met so far, and the operators, which give formulas in normal form.

    Every operator raises UnsupportedError when the formulas of one question have become too large.
    """

    def __init__(self) -> None:
        self._atoms: list[Atom] = []
        self._numbers: dict[Atom, int] = {}
        self._implied: dict[tuple[int, int], bool] = {}
        self._reduced: dict[Clause, Clause | None] = {}
        self._work = 0

    def atoms(self, clause: Clause) -> list[Atom]:
        """The atoms of a clause, oldest first."""
        return [self._atoms[number] for number in sorted(clause)]

    # ------------------------------------------------------------ operators

    def literal(self, operand: int, *, positive: bool) -> Form:
        """The operand or its negation."""
        return self._single(Literal(operand, positive))

    def later(self, steps: int, form: Form) -> Form:
        """``X^steps form``."""
        if steps == 0 or form in {TRUE, FALSE}:
            return form
        only = self._only_atom(form)
        if isinstance(only, Later):
            return self._single(Later(steps + only.steps, only.operand))
        return self._single(Later(steps, form))

    def until(self, left: Form, right: Form, last: Last = math.inf) -> Form:
        """``left U<=last right``; false for a negative bound."""
        if last < 0:
            return FALSE
        if last == 0 or self.implies(left, right) or right in {TRUE, FALSE}:
            return right
        only = self._only_atom(right)
        if left == TRUE and isinstance(only, Until) and only.left == TRUE:
            return self._single(Until(TRUE, only.right, last + only.last))  # F F
        return self._single(Until(left, right, last))

    def release(self, left: Form, right: Form, last: Last = math.inf) -> Form:
        """``left R<=last right``; true for a negative bound."""
        if last < 0:
            return TRUE
        if last == 0 or self.implies(right, left) or right in {TRUE, FALSE}:
            return right
        only = self._only_atom(right)
        if left == FALSE and isinstance(only, Release) and only.left == FALSE:
            return self._single(Release(FALSE, only.right, last + only.last))  # G G
        return self._single(Release(left, right, last))

    def conjunction(self, forms: Iterable[Form]) -> Form:
        """All of them."""
        product = TRUE
        for form in forms:
            if FALSE in {product, form}:
                return FALSE
            if TRUE in {product, form}:
                product = form if product == TRUE else product
                continue
            self._spend(len(product) * len(form))
            joined = (self._clause(a | b) for a in product for b in form)
            product = self._absorbed({clause for clause in joined if clause is not None})
        return product

    def disjunction(self, forms: Iterable[Form]) -> Form:
        """At least one of them."""
        clauses: set[Clause] = set()
        for form in forms:
            if form == TRUE:
                return TRUE
            clauses |= form
        return self._absorbed(clauses)

    # ------------------------------------------------------------ implication

    def implies(self, first: Form, second: Form) -> bool:
        """Whether the rules show that the second follows from the first; False says nothing."""
        return all(any(self._clause_implies(a, b) for b in second) for a in first)

    def _clause_implies(self, first: Clause, second: Clause) -> bool:
        self._spend(1)
        return second <= first or all(any(self._atom_implies(x, y) for x in first) for y in second)

    def _atom_implies(self, x: int, y: int) -> bool:
        if x == y:
            return True
        if (x, y) not in self._implied:
            self._spend(1)
            self._implied[x, y] = self._shows(x, y)
        return self._implied[x, y]

    def _shows(self, x: int, y: int) -> bool:
        first, second = self._atoms[x], self._atoms[y]
        match first, second:
            case Until(), Until() if first.last <= second.last:
                if self.implies(first.left, second.left) and self.implies(first.right, second.right):
                    return True
            case Release(), Release() if first.last >= second.last:
                if self.implies(first.left, second.left) and self.implies(first.right, second.right):
                    return True
            case Later(), Later():
                return first.steps == second.steps and self.implies(first.operand, second.operand)
        if isinstance(first, Release) and self.implies(first.right, frozenset([frozenset([y])])):
            return True
        return isinstance(second, Until) and self.implies(frozenset([frozenset([x])]), second.right)

    # ------------------------------------------------------------ clauses

    def _single(self, atom: Atom) -> Form:
        number = self._numbers.setdefault(atom, len(self._atoms))
        if number == len(self._atoms):
            self._atoms.append(atom)
        return frozenset([frozenset([number])])

    def _only_atom(self, form: Form) -> Atom | None:
        if len(form) != 1:
            return None
        (clause,) = form
        return self._atoms[next(iter(clause))] if len(clause) == 1 else None

    def _clause(self, atoms: Clause) -> Clause | None:
        """Without atoms that follow from others; None if it contradicts itself."""
        if atoms not in self._reduced:
            self._spend(len(atoms) ** 2)
            literals = [atom.operand for atom in self.atoms(atoms) if isinstance(atom, Literal)]
            contradiction = len(set(literals)) < len(literals)
            self._reduced[atoms] = None if contradiction else frozenset(self._weakest_left_out(atoms))
        return self._reduced[atoms]

    def _weakest_left_out(self, atoms: Clause) -> list[int]:
        kept: list[int] = []
        for y in sorted(atoms):
            if not any(self._atom_implies(x, y) for x in kept):
                kept = [x for x in kept if not self._atom_implies(y, x)]
                kept.append(y)
        return kept

    def _absorbed(self, clauses: set[Clause]) -> Form:
        """Without clauses that imply another one."""
        kept: list[Clause] = []
        for clause in sorted(clauses, key=sorted):
            if not any(self._clause_implies(clause, other) for other in kept):
                kept = [other for other in kept if not self._clause_implies(other, clause)]
                kept.append(clause)
        return frozenset(kept)

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise UnsupportedError(
                "the path formula is too large for the closed form: what is left of it after a few steps can be too "
                "many different formulas; split it, or use smaller step bounds"
            )
