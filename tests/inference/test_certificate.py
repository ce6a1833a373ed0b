from __future__ import annotations

import dataclasses
import json

import pytest

from tracebridge.errors import ModelError
from tracebridge.inference import SCENARIOS, Certificate, CovariateResult, ReferenceEffects, certify


@pytest.fixture(scope="module")
def accepted() -> Certificate:
    return certify(*SCENARIOS["F1"].fitted(200, seed=3), replicates=59)


@pytest.fixture(scope="module")
def rejected() -> Certificate:
    return certify(*SCENARIOS["A2"].fitted(200, seed=0), replicates=59)


def test_the_verdict_follows_from_the_numbers(accepted, rejected):
    assert (accepted.verdict, accepted.mark) == ("accept", None)
    assert "first passage" in accepted.reasons[0]
    assert (rejected.verdict, rejected.mark) == ("reject", "chain rejected")
    assert "previous state" in rejected.reasons[0]
    strict = dataclasses.replace(accepted, effects=ReferenceEffects(gap=0.01, nats=0.05))
    assert (strict.verdict, strict.mark) == ("inconclusive", "chain not certified")
    assert "an effect of 0.01 in probability would be missed in more than 20% of such corpora" in strict.reasons[1]


def test_an_acceptance_needs_something_that_could_have_contradicted(accepted):
    mute = tuple(dataclasses.replace(statistic, resolution=None) for statistic in accepted.statistics)
    assert dataclasses.replace(accepted, statistics=mute).verdict == "inconclusive"


def test_a_covariate_can_reject_but_never_acquit(accepted, rejected):
    covariate = CovariateResult(
        covariate="model", n_runs=9, n_values=2, over="runs", p=0.01, p_holm=0.02, p_path=0.01, p_outcome=0.5,
        nats_path=0.1, nats_outcome=0.0,
    )  # fmt: skip
    assert dataclasses.replace(accepted, covariates=(covariate,)).reasons == (
        "runs differ by model (adjusted p <= 0.02)",
    )
    harmless = dataclasses.replace(covariate, p_holm=0.06)
    assert dataclasses.replace(accepted, covariates=(harmless,)).verdict == "accept"
    assert dataclasses.replace(rejected, covariates=(harmless,) * 20).verdict == "reject"


def test_the_document_comes_back_as_it_was(accepted, rejected):
    for certificate in (accepted, rejected):
        document = json.loads(json.dumps(certificate.to_dict()))
        assert document == certificate.to_dict()
        assert Certificate.from_dict(document) == certificate
    assert "validates nothing" in accepted.to_dict()["identity"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "accept"}, "verdict does not follow"),
        ({"p": 0.9}, "verdict does not follow"),
        ({"p": "0.9"}, "Expected `float`"),
        ({"identity": "fine"}, "identity does not follow"),
        ({"schema_version": 2}, "version 2"),
        ({"schema_version": True}, "version True"),
        ({"kind": "chain-fit"}, "no document 'certificate'"),
        ({"more": 1}, "'more' is unknown"),
    ],
)
def test_a_document_that_was_tampered_with_is_refused(rejected, change, message):
    with pytest.raises(ModelError, match=message):
        Certificate.from_dict(rejected.to_dict() | change)


def test_a_document_without_a_field_is_refused(rejected):
    document = rejected.to_dict()
    del document["paper"]
    with pytest.raises(ModelError, match="paper"):
        Certificate.from_dict(document)
    with pytest.raises(ModelError, match="no document"):
        Certificate.from_dict([])


def test_statistics_are_found_by_name(rejected):
    assert rejected["dwell"].unit == "nats"
    with pytest.raises(KeyError):
        rejected["entropy"]
    assert repr(rejected).startswith("<Certificate: reject, p <= 0.0167")
