"""What qualitative verdicts rest on, for formulas of every kind, against edges found by hand."""

from __future__ import annotations

import pytest

from tracebridge import Step, Trace, fit_chain
from tracebridge.chain import ChainFit
from tracebridge.inference.qualitative import QualitativeBasis, is_relative_to_support, qualitative_basis
from tracebridge.inference.uncertainty import resolved_properties


def fitted(support: str | None = "observed") -> ChainFit:
    """a -> b -> success in 20 runs, c -> failure in 5."""
    paths = [("success", "ab")] * 20 + [("failure", "c")] * 5
    return fit_chain(
        (
            Trace(trace_id=str(i), outcome=outcome, steps=tuple(Step(name=name) for name in path))
            for i, (outcome, path) in enumerate(paths)
        ),
        support=support,
        prior="none" if support is None else None,
    )


def basis(text: str, fit: ChainFit | None = None) -> tuple[QualitativeBasis, ...]:
    fit = fit or fitted()
    (property_,) = resolved_properties(fit, text, None)
    return qualitative_basis(fit, property_.formula)


def edges(found: QualitativeBasis) -> set[tuple[str, str]]:
    assert found.support is not None
    return {(edge.source, edge.target) for edge in found.support.edges}


@pytest.mark.parametrize(
    "text",
    ['P<=0 [ !"a" U "b" ];', 'P>0 [ !"a" U "b" ];', 'E [ !"a" U "b" ];', '!(P>0 [ !"a" U "b" ]) & P>=0.1 [ F "b" ];'],
)
def test_never_rests_on_the_one_edge_that_would_make_it_possible(text: str) -> None:
    (found,) = basis(text)
    assert found.support is not None
    assert found.support.holds is False
    assert found.support.kind == "possible"
    assert edges(found) == {("c", "b")}
    assert found.support.edges[0].bound == pytest.approx(1 - 0.05 ** (1 / 5))
    assert found.support.edges[0].exits == 5


@pytest.mark.parametrize(
    ("text", "kind", "holds"),
    [
        ('P>=1 [ G !"failure" ];', "possible", True),  # denied: failure can be reached
        ('P>=1 [ F "absorbed" ];', "almost-sure", True),
        ('P<1 [ F "absorbed" ];', "almost-sure", True),
        ('P>0 [ G "b" ];', "almost-sure", True),  # denied: runs leave b almost surely
        ('A [ F "absorbed" ];', "inevitable", True),
        ('E [ G !"absorbed" ];', "inevitable", True),
        ('A [ G !"c" ];', "possible", True),
    ],
)
def test_each_operator_is_about_its_kind_of_reaching(text: str, kind: str, holds: bool) -> None:
    (found,) = basis(text)
    assert found.support is not None
    assert found.support.kind == kind
    assert found.support.holds is holds


def test_inevitable_rests_on_edges_that_close_a_cycle() -> None:
    (found,) = basis('A [ F "absorbed" ];')
    assert {("b", "a"), ("a", "a"), ("b", "b"), ("c", "c")} <= edges(found)


@pytest.mark.parametrize("text", ['P>=0.5 [ F "b" ];', 'P=? [ F "b" ];', 'P>=1 [ F "b" || F "a" ];', '"a";'])
def test_quantitative_properties_have_none(text: str) -> None:
    assert basis(text) == ()


def test_nested_verdicts_and_other_paths_are_told_apart() -> None:
    (nested,) = basis('P>=1 [ G ("b" => P>=1 [ X "success" ]) ];')
    assert nested.nested
    (bounded,) = basis('P>=1 [ F<=5 "absorbed" ];')
    assert bounded.support is None
    assert bounded.reason is not None
    assert bounded.to_dict() == {
        "operator": bounded.operator,
        "support": None,
        "reason": bounded.reason,
        "nested": False,
    }


def test_a_chain_on_full_support_with_a_prior_rests_on_no_unseen_edge() -> None:
    full = fitted("full")
    assert not is_relative_to_support(full)
    assert is_relative_to_support(fitted())
    assert is_relative_to_support(fitted(None))
    (found,) = basis('P<=0 [ !"a" U "b" ];', full)
    assert edges(found) == set()
    assert found.support is not None
    assert found.support.holds is True
    assert found.support.holds_as_observed is False
