"""Progression: what is left to be true of the rest of a run after its first state, and the automaton this makes.

The "after" function of Esparza, Kretinsky and Sickert, One Theorem to Rule Them All: A Unified Translation of LTL into
omega-Automata (LICS 2018). A letter is what the operands are in a state: a row of truth values.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.ltl.normal_form import FALSE, TRUE, Atom, Form, Formulas, Later, Literal, Release, Until
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: An automaton has at most so many transitions, one for each formula and each letter that may be read there.
MAX_TRANSITIONS = 500_000


class Progression:
    """The after function of formulas over certain letters, shape (letters, operands)."""

    def __init__(self, formulas: Formulas, letters: NDArray[np.bool_]) -> None:
        self.formulas = formulas
        self._letters: list[list[bool]] = letters.tolist()
        self._after: dict[tuple[Form, int], Form] = {}

    def after(self, form: Form, letter: int) -> Form:
        """What the rest of a run that begins with ``letter`` must satisfy so that the run satisfies ``form``."""
        if (form, letter) not in self._after:
            join = self.formulas
            clauses = (
                join.conjunction(self._after_atom(atom, letter) for atom in join.atoms(clause)) for clause in form
            )
            self._after[form, letter] = join.disjunction(clauses)
        return self._after[form, letter]

    def _after_atom(self, atom: Atom, letter: int) -> Form:
        join = self.formulas
        match atom:
            case Literal():
                return TRUE if self._letters[letter][atom.operand] == atom.positive else FALSE
            case Later():
                return join.later(atom.steps - 1, atom.operand)
            case Until():
                again = join.until(atom.left, atom.right, atom.last - 1)
                waiting = join.conjunction([self.after(atom.left, letter), again])
                return join.disjunction([self.after(atom.right, letter), waiting])
            case Release():
                again = join.release(atom.left, atom.right, atom.last - 1)
                waiting = join.disjunction([self.after(atom.left, letter), again])
                return join.conjunction([self.after(atom.right, letter), waiting])


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """Formulas and what each letter makes of them.

    Attributes:
        forms: F formulas.
        table: the number of the next formula, shape (F, letters); -1 where the letter cannot be read.
    """

    forms: tuple[Form, ...]
    table: NDArray[np.int64]


def explore(progression: Progression, starts: Sequence[Form], followers: Sequence[Sequence[int]]) -> Automaton:
    """The automaton from some formulas on; they come first, in their order (once each).

    Args:
        followers: for each letter those that may come next in a run; a letter without any does not occur.

    Raises:
        UnsupportedError: above `MAX_TRANSITIONS` transitions.
    """
    numbers = {form: i for i, form in enumerate(dict.fromkeys(starts))}
    rows: list[dict[int, int]] = [{} for _ in numbers]
    queue = deque((form, letter) for form in numbers for letter, after in enumerate(followers) if after)
    planned = set(queue)
    while queue:
        form, letter = queue.popleft()
        rest = progression.after(form, letter)
        if rest not in numbers:
            numbers[rest] = len(numbers)
            rows.append({})
        rows[numbers[form]][letter] = numbers[rest]
        coming = [(rest, follower) for follower in followers[letter] if (rest, follower) not in planned]
        planned.update(coming)
        queue.extend(coming)
        if len(planned) > MAX_TRANSITIONS:
            raise UnsupportedError(
                f"the path formula is too large for the closed form: its automaton has more than {MAX_TRANSITIONS} "
                "transitions; split it, or use smaller step bounds"
            )
    table = np.full((len(numbers), len(followers)), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, list(row)] = list(row.values())
    return Automaton(tuple(numbers), table)
