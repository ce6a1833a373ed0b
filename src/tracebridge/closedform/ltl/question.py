"""Formulas about the runs of one chain: their product with the chain, and what its graph decides of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.ltl.letters import Letters
from tracebridge.closedform.ltl.normal_form import Formulas
from tracebridge.closedform.ltl.product import Product
from tracebridge.closedform.ltl.progression import Progression, explore
from tracebridge.closedform.ltl.recurrence import Recurrence
from tracebridge.closedform.ltl.translation import Translation

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.closedform.ltl.normal_form import Form
    from tracebridge.closedform.ltl.translation import Holds
    from tracebridge.pctl.ast import PathFormula

    Nodes = NDArray[np.bool_]


class Question:
    """Some path formulas about the chain of a matrix, translated over common operands."""

    def __init__(self, matrix: csr_array, holds: Holds, *paths: PathFormula) -> None:
        self.formulas = Formulas()
        translation = Translation(self.formulas, holds)
        #: The formulas, in the order of the paths.
        self.forms = [translation.form(path) for path in paths]
        self.matrix = matrix
        self.letters = Letters.of(translation.operands, self.matrix)
        self.progression = Progression(self.formulas, self.letters.truth)
        self._recurrence = Recurrence(self.matrix, self.letters, self.progression)

    def decide(self, form: Form) -> DecidedProduct:
        """The product of the chain with a formula."""
        automaton = explore(self.progression, [form], self.letters.followers)
        product = Product(self.matrix, self.letters.of_state, automaton)
        start = np.zeros(product.following.shape, dtype=np.bool_)
        start[0] = True
        possible = product.reaching(self._recurrence.certain(automaton.forms))
        return DecidedProduct(
            product=product,
            reached=product.reachable(start),
            possible=possible,
            certain=~product.reaching(~possible),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecidedProduct:
    """A product and what its graph decides; the formula asked about comes first.

    Attributes:
        reached: nodes that are reachable from a state with the formula asked about, shape (F, n).
        possible, certain: where the formula of the node has a probability above zero, and of one, shape (F, n).
    """

    product: Product
    reached: Nodes
    possible: Nodes
    certain: Nodes

    @property
    def between(self) -> Nodes:
        """The reached nodes that the graph does not decide."""
        return self.reached & self.possible & ~self.certain
