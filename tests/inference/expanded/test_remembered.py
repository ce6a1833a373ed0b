"""Properties that name what no state of the model would remember are refused before anything is fitted."""

import pytest
from tests.chain.expanded.random_models import random_model

from tracebridge.chain.expanded.naming import VARIABLES
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.errors import PropertyError
from tracebridge.inference.expanded.remembered import remembered, require_remembered
from tracebridge.pctl import parse_properties, resolve_constants
from tracebridge.states.model_form import parse_model


def resolved(text: str):
    return resolve_constants(parse_properties(text), {}, variables=VARIABLES)


@pytest.mark.parametrize(
    "name", ["order2", "dwell3", "clock:0,2", "phases:2", "classes:2", "group:model", "order2+clock:0,1+phases:2"]
)
def test_the_variables_of_a_form_are_those_of_its_chains(name):
    form = parse_model(name)
    assert remembered(form) == ExpandedStructure.of_model(random_model(name, seed=1)).variables.keys()


def test_a_first_order_chain_remembers_nothing():
    assert not remembered(parse_model("first-order"))


def test_what_the_model_lacks_is_named_with_its_place_and_what_has_it():
    file = resolved('P=? [ F (step>2 & "act") ];\nP=? [ F (previous=1 & stay=0) ];')
    require_remembered(file, parse_model("order2+dwell2+clock"))
    with pytest.raises(
        PropertyError, match=r"step: states of model order2[+]dwell2 do not remember it .*clock"
    ) as caught:
        require_remembered(file, parse_model("order2+dwell2"))
    assert [problem.location.line for problem in caught.value.problems] == [1]
    with pytest.raises(PropertyError) as caught:
        require_remembered(file, None)
    assert [problem.message.split(":")[0] for problem in caught.value.problems] == ["step", "previous", "stay"]


def test_variables_of_quantiles_are_their_own():
    require_remembered(resolved('quantile(min B, P>=0.5 [ F{"steps"}<=B "act" ])'), None)
