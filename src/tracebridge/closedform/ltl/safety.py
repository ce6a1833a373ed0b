"""Least fixed points in a formula, and the safety formula that is left when it is known which of them recur."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tracebridge.closedform.ltl.normal_form import FALSE, Atom, Form, Formulas, Later, Literal, Release, Until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def goals(formulas: Formulas, forms: Sequence[Form]) -> list[Form]:
    """The right sides of all untils without a step bound, in a fixed order, each once."""
    found = (atom.right for atom in _atoms_below(formulas, forms) if isinstance(atom, Until) and atom.last == math.inf)
    return list(dict.fromkeys(found))


def is_co_safe(formulas: Formulas, form: Form) -> bool:
    """Whether there is no release without a step bound: a finite part of a run shows that the formula holds."""
    return not any(isinstance(atom, Release) and atom.last == math.inf for atom in _atoms_below(formulas, [form]))


class SafetyReduction:
    """Formulas with ``a W b`` for ``a U b`` where b is one of the recurring goals, and false where it is not."""

    def __init__(self, formulas: Formulas, recurring: frozenset[Form]) -> None:
        self._formulas = formulas
        self._recurring = recurring
        self._known: dict[Form, Form] = {}

    def form(self, form: Form) -> Form:
        """The safety formula."""
        if form not in self._known:
            join = self._formulas
            clauses = (join.conjunction(map(self._atom, join.atoms(clause))) for clause in form)
            self._known[form] = join.disjunction(clauses)
        return self._known[form]

    def _atom(self, atom: Atom) -> Form:
        join = self._formulas
        match atom:
            case Literal():
                return join.literal(atom.operand, positive=atom.positive)
            case Later():
                return join.later(atom.steps, self.form(atom.operand))
            case Release():
                return join.release(self.form(atom.left), self.form(atom.right), atom.last)
            case Until() if atom.last < math.inf:
                return join.until(self.form(atom.left), self.form(atom.right), atom.last)
            case Until():
                if atom.right not in self._recurring:
                    return FALSE
                left, right = self.form(atom.left), self.form(atom.right)
                return join.release(right, join.disjunction([left, right]))


def _atoms_below(formulas: Formulas, forms: Sequence[Form]) -> Iterator[Atom]:
    """The atoms of some formulas and of the formulas inside them, in a fixed order."""
    seen = set(forms)
    stack = list(reversed(forms))
    while stack:
        for clause in sorted(stack.pop(), key=sorted):
            for atom in formulas.atoms(clause):
                yield atom
                match atom:
                    case Literal():
                        continue
                    case Later():
                        inner = [atom.operand]
                    case Until() | Release():
                        inner = [atom.left, atom.right]
                new = [form for form in inner if form not in seen]
                seen.update(new)
                stack += new
