"""What an evidence file says of its runs beyond their transitions, restored as far as it follows from itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tracebridge.errors import Location, ModelError
from tracebridge.inference.certificate import Certificate
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.inference.expanded.ladder import Ladder, LadderTest, Part, Rung
from tracebridge.inference.expanded.scope import Scope
from tracebridge.report.replay.account import Unknown
from tracebridge.report.run_findings import RunFindings

#: Fields of certificates that follow from the others.
_DERIVED = frozenset({"kind", "schema_version", "verdict", "verdicts", "reasons", "identity", "low_power", "form"})


def recorded_runs(results: Mapping[str, Any]) -> RunFindings:
    """The certificate, the ladder and the advice in a results document.

    Raises:
        ModelError: one is none, or says what does not follow from its own numbers.
    """
    ladder = results["ladder"]
    return RunFindings(
        certificate=_certificate(results["certificate"]),
        ladder=None if ladder is None else _ladder(ladder),
        advice=tuple(results["advice"]),
    )


def without_its_numbers(certificate: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """A certificate in which all is unknown but what follows from the rest."""
    return {
        key: value if key in _DERIVED or key == "missing" else Unknown(reason=reason)
        for key, value in certificate.items()
    }


def _certificate(data: Mapping[str, Any]) -> Certificate | ModelCertificate | str:
    path = "results.certificate"
    match data:
        case {"kind": "certificate"}:
            return Certificate.from_dict(data, path)
        case {"kind": "model-certificate"}:
            return ModelCertificate.from_dict(data, path)
        case {"missing": str(reason)} if len(data) == 1:
            return reason
    raise ModelError("this is no certificate, nor the reason for there being none", location=Location(path=path))


class _Skipped(msgspec.Struct):
    name: str
    reason: str


class _Test(msgspec.Struct):
    scope: Scope
    form: str
    part: Part
    certificate: dict[str, Any]


class _Ladder(msgspec.Struct):
    runs: tuple[int, int, int]
    blocks: tuple[int, int, int]
    rungs: list[Rung]
    skipped: list[_Skipped]
    tests: list[_Test]
    passed: dict[Scope, str]
    form: str
    kappa: float
    seed: int
    classes: int


def _ladder(data: Mapping[str, Any]) -> Ladder:
    place = Location(path="results.ladder")
    try:
        read = msgspec.convert(data, _Ladder, strict=True)
    except msgspec.ValidationError as error:
        raise ModelError(f"this is no ladder: {error}", location=place) from error
    ladder = Ladder(
        runs=read.runs,
        blocks=read.blocks,
        rungs=tuple(read.rungs),
        skipped=tuple((each.name, each.reason) for each in read.skipped),
        tests=tuple(
            LadderTest(
                scope=test.scope,
                form=test.form,
                part=test.part,
                certificate=ModelCertificate.from_dict(test.certificate, "results.ladder.tests"),
            )
            for test in read.tests
        ),
        passed=read.passed,
        form=read.form,
        kappa=read.kappa,
        seed=read.seed,
        classes=read.classes,
    )
    if msgspec.json.decode(msgspec.json.encode(ladder.to_dict())) != data:
        raise ModelError("says what does not follow from its own numbers", location=place)
    return ladder
