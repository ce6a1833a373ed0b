"""Which states of a chain are copies of a category."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.chain.expanded.random_models import FORMS, random_model

from tracebridge.chain.expanded.copies import category_copies
from tracebridge.chain.expanded.structure import ExpandedStructure


@pytest.mark.parametrize("name", FORMS)
def test_every_state_before_the_outcomes_is_a_copy_of_its_category(name: str) -> None:
    model = random_model(name, seed=1)
    chain = ExpandedStructure.of_model(model).chain(model, {"word of a": ["a"], "all": ["a", "b", "c"]})
    copies = category_copies(chain)
    if name == "first-order":
        assert copies == {}
        return
    assert list(copies) == ["a", "b", "c"]
    for category, positions in copies.items():
        assert all(chain.states[i].startswith(f"{category} [") for i in positions.tolist())
    assert np.sort(np.concatenate(list(copies.values()))).tolist() == list(range(chain.n_states - 2))


def test_variables_of_another_program_make_no_copies() -> None:
    model = random_model("order2", seed=2)
    chain = ExpandedStructure.of_model(model).chain(model)
    n = chain.n_states
    assert category_copies(replace(chain, variables={**chain.variables, "x": np.arange(n)})) == {}
    assert category_copies(replace(chain, variables={"category": chain.variables["category"]})) == {}
    assert category_copies(replace(chain, variables={"category": np.arange(n) > 2, "step": np.arange(n)})) == {}
    assert list(category_copies(replace(chain, labels={"only b": chain.label("b")}))) == ["only b"]
