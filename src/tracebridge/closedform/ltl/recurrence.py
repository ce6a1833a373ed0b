"""Which formulas a run in a recurrent class satisfies almost surely: a question about the graph alone.

In a recurrent class whatever may happen happens infinitely often, almost surely (Levy's extension of the Borel-Cantelli
lemmas). So if b has a positive probability in some state of the class, b holds infinitely often and ``a U b`` is the
same as ``a W b``; if not, ``a U b`` never holds. Replacing it changes no probability in the class, from the inside of a
formula outward (compare the master theorem of Esparza, Kretinsky and Sickert, One Theorem to Rule Them All, LICS 2018;
the least fixed points that ever hold are here those that hold infinitely often). What is left is a safety formula: a
run falsifies it if and only if progression comes to false after finitely many steps. It holds almost surely where no
path comes there, and has a positive probability where such a place can be reached (Levy's 0-1 law).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import recurrent_classes
from tracebridge.closedform.ltl.normal_form import FALSE, Form
from tracebridge.closedform.ltl.product import Product
from tracebridge.closedform.ltl.progression import Progression, explore
from tracebridge.closedform.ltl.safety import SafetyReduction, goals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.closedform.ltl.letters import Letters

    Mask = NDArray[np.bool_]
    Integers = NDArray[np.int64]
    Nodes = NDArray[np.bool_]


class Recurrence:
    """The recurrent classes of a chain, and what holds in them."""

    def __init__(self, matrix: csr_array, letters: Letters, progression: Progression) -> None:
        self._matrix = matrix
        self._letters = letters
        self._progression = progression
        classes = recurrent_classes(matrix)
        self._class_count = len(classes)
        self._class_of_state = np.full(matrix.shape[0], -1, dtype=np.int64)
        self._class_of_state[np.concatenate(classes)] = np.repeat(np.arange(len(classes)), [len(c) for c in classes])
        self._recurring: dict[Form, Mask] = {}

    def certain(self, forms: Sequence[Form]) -> Nodes:
        """Where a state is recurrent and a formula holds almost surely from it on, shape (formulas, n)."""
        nodes = np.zeros((len(forms), self._matrix.shape[0]), dtype=np.bool_)
        for states, product, starts in self._safety_products(forms):
            nodes[:, states] = _never_false(product)[starts]
        return nodes

    def recurs(self, form: Form) -> Mask:
        """In which classes a formula holds infinitely often, almost surely; in the others never, shape (classes,)."""
        if form not in self._recurring:
            recurring = np.zeros(self._class_count, dtype=np.bool_)
            for states, product, (start,) in self._safety_products([form]):
                possible = product.reaching(_never_false(product))[start]
                recurring[self._class_of_state[states[possible]]] = True
            self._recurring[form] = recurring
        return self._recurring[form]

    def _safety_products(self, forms: Sequence[Form]) -> Iterator[tuple[Integers, Product, list[int]]]:
        """The recurrent states, those together where the same goals recur; with them the product of the safety formulas
        that the given ones are the same as there, and the numbers of these formulas in it."""
        formulas = self._progression.formulas
        wanted = goals(formulas, forms)
        recurring = np.array([self.recurs(goal) for goal in wanted], dtype=np.bool_)
        recurring = recurring.reshape(len(wanted), self._class_count)
        for pattern, classes in _equal_columns(recurring):
            states = np.flatnonzero(np.isin(self._class_of_state, classes))
            reduction = SafetyReduction(
                formulas, frozenset(goal for goal, holds in zip(wanted, pattern, strict=True) if holds)
            )
            safe = [reduction.form(form) for form in forms]
            matrix = self._matrix[states][:, states]
            letters = self._letters.restricted(states, matrix)
            automaton = explore(self._progression, safe, letters.followers)
            number = {form: i for i, form in enumerate(automaton.forms)}
            yield states, Product(matrix, letters.of_state, automaton), [number[form] for form in safe]


def _never_false(product: Product) -> Nodes:
    """Nodes from which no path leads to false."""
    false = np.zeros(product.following.shape, dtype=np.bool_)
    false[[form == FALSE for form in product.forms]] = True
    return ~product.reaching(false)


def _equal_columns(matrix: Mask) -> Iterator[tuple[list[bool], Integers]]:
    """The different columns of a Boolean matrix and where each stands; a matrix without rows has one kind of column."""
    groups: dict[bytes, list[int]] = {}
    for i, column in enumerate(matrix.T):
        groups.setdefault(column.tobytes(), []).append(i)
    for positions in groups.values():
        yield matrix[:, positions[0]].tolist(), np.array(positions)
