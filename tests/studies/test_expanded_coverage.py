import pytest
from tests.inference.expanded.test_resampling import corpus

from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.closedform import absorption_time_cdf, reliability
from tracebridge.inference.intervals import wilson
from tracebridge.states.model_form import parse_model
from tracebridge.studies.expanded_coverage import KnownModel, coverage_of_forms
from tracebridge.studies.replication import Replication


@pytest.fixture(scope="module")
def runs():
    return corpus("order2", n=150, seed=5)


def test_figures_are_those_of_the_chain(runs):
    known = KnownModel.of_runs(runs, parse_model("order2+clock:0,2"))
    chain = ExpandedStructure.of_model(known.model).chain(known.model)
    ended = absorption_time_cdf(chain, known.median)
    assert ended[-2] < 0.5 <= ended[-1]
    assert known.figures[0] == pytest.approx(reliability(chain, known.median))
    assert 0 < known.figures[0] < known.figures[1] < 1 <= known.figures[2]


def test_intervals_cover(runs):
    forms = ("clock:0,1,2", "phases:2")
    knowns = [KnownModel.of_runs(runs, parse_model(name), runs=80, draws=60) for name in forms]
    found = coverage_of_forms(knowns, Replication(study="test", number=8))
    for each, name in zip(found, forms, strict=True):
        assert each.form == name
        assert each.corpora == 8
        assert each.intervals() == tuple(wilson(hits, 8) for hits in each.hits)
        assert min(each.hits) >= 5  # with intervals of 92 % as few as 4 of 8 cover in 0.2 % of all tests
    again = coverage_of_forms(knowns[:1], Replication(study="test", number=8))
    assert again[0].hits == found[0].hits
