"""Formulas about the runs of one chain: their product with the chain, and what its graph decides of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.ltl.letters import Letters
from tracebridge.closedform.ltl.normal_form import Formulas
from tracebridge.closedform.ltl.product import Product, ProductEquations
from tracebridge.closedform.ltl.progression import Progression, explore
from tracebridge.closedform.ltl.recurrence import Recurrence
from tracebridge.closedform.ltl.translation import Translation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.enclosure import EnclosureVector
    from tracebridge.closedform.ltl.normal_form import Form
    from tracebridge.closedform.ltl.translation import Holds
    from tracebridge.pctl.ast import PathFormula

    Nodes = NDArray[np.bool_]


class Question:
    """Some path formulas about one chain, translated over common operands."""

    def __init__(self, arithmetic: Arithmetic, holds: Holds, *paths: PathFormula) -> None:
        self.arithmetic = arithmetic
        self.formulas = Formulas()
        translation = Translation(self.formulas, holds)
        #: The formulas, in the order of the paths.
        self.forms = [translation.form(path) for path in paths]
        self.matrix = arithmetic.chain.transitions
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
            arithmetic=self.arithmetic,
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

    arithmetic: Arithmetic
    product: Product
    reached: Nodes
    possible: Nodes
    certain: Nodes

    def probabilities(self) -> list[EnclosureVector]:
        """The probability of the formula of each reached node, one vector a formula."""
        equations = ProductEquations(
            arithmetic=self.arithmetic,
            product=self.product,
            open=self.reached & self.possible & ~self.certain,
            given=[self.arithmetic.vector(row) for row in self.certain],
        )
        return equations.solve()
