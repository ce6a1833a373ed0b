"""What to do about a chain that is not accepted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.inference.certificate import ReferenceEffects
from tracebridge.inference.expanded.advice import advice
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.inference.expanded.certification import certify_model
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths


def remembering() -> ExpandedModel:
    """What follows depends on the step before alone."""
    rows = np.empty((1, 3, 2, 4))
    rows[0, 0] = [[0.1, 0.7, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1]]
    rows[0, 1] = [[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1]]
    rows[0, 2] = [[0.4, 0.4, 0.1, 0.1], [0.4, 0.4, 0.1, 0.1]]
    return ExpandedModel(
        form=parse_model("order2"),
        states=("act", "think"),
        start=np.array([[[0.5, 0.5, 0, 0]]]),
        rows=rows,
        advance=np.ones((1, 2, 1)),
    )


@cache
def runs(number: int) -> RunPaths:
    return ModelSimulation(remembering()).corpora(number, [np.random.SeedSequence(3)])[0]


def certified(number: int, form: str, **options: float) -> ModelCertificate:
    return certify_model(runs(number), parse_model(form), replicates=39, seed=1, **options)  # type: ignore[arg-type]


def test_memory_of_the_step_before_is_told_and_its_model_named() -> None:
    said = advice(certified(200, "first-order"), {"model": 0.01, "trial": 0.6})
    assert any("depends on the step before" in line and "order2" in line for line in said)
    assert any("group:model" in line for line in said)
    assert not any("trial" in line for line in said)


def test_a_model_that_knows_it_already_is_not_named_again() -> None:
    certificate = replace(certified(200, "first-order"), form=str(parse_model("order2")))
    (line,) = [line for line in advice(certificate) if "step before" in line]
    assert "order2 does not mend it" in line


def test_the_runs_that_would_show_a_departure_are_counted() -> None:
    certificate = certified(40, "order2", effects=ReferenceEffects(gap=0.1, nats=0.05))
    assert certificate.verdict("timing") == "inconclusive"
    (line,) = [line for line in advice(certificate) if line.startswith("timing: about")]
    times = float(line.split("about ")[1].split(" times")[0])
    resolution = certificate.timing.statistics[0].resolution
    assert resolution is not None
    assert (resolution / 0.1) ** 2 <= times <= 1.15 * (resolution / 0.1) ** 2


def test_an_accepted_chain_needs_no_advice() -> None:
    certificate = certified(200, "order2", effects=ReferenceEffects(gap=0.9, nats=0.9))
    assert {certificate.verdict(scope) for scope in ("timing", "path")} == {"accept"}  # type: ignore[arg-type]
    assert advice(certificate, {"model": 0.001}) == ()
    assert str(ModelForm()) == "first-order"
