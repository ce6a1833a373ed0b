"""What stands behind a number: the verdict of the certificate that its scope needs, whichever kind there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tracebridge.inference.certificate import NOT_CERTIFIED, Certificate
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.inference.expanded.ladder import JUDGED_ON, SCOPES, Ladder, Part

if TYPE_CHECKING:
    from tracebridge.inference.expanded.scope import Scope

#: Beside numbers of a chain that was found not to describe the runs, as far as they need it to.
REJECTED = "chain rejected"

#: The verdicts of certificates, and ``none`` where nothing was tested; the worst first.
StandingVerdict = Literal["reject", "refused", "none", "inconclusive", "accept"]
_WORST_FIRST: tuple[StandingVerdict, ...] = ("reject", "refused", "none", "inconclusive", "accept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a certificate says for one scope.

    Attributes:
        scope: of the numbers. verdict: see `StandingVerdict`. reasons: why, one sentence each.
    """

    scope: Scope
    verdict: StandingVerdict
    reasons: tuple[str, ...]

    @property
    def mark(self) -> str | None:
        """A few words to stand beside every number of this scope; None if a certificate accepts the chain."""
        if self.verdict == "accept":
            return None
        return REJECTED if self.verdict == "reject" else NOT_CERTIFIED

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"scope": self.scope, "verdict": self.verdict, "mark": self.mark, "reasons": list(self.reasons)}


def standings(certificate: Certificate | ModelCertificate | Ladder | str) -> dict[Scope, Standing]:
    """The standing of each scope.

    The certificate of a first-order chain knows one scope: it is about the path, and what it says holds for timing too.
    A ladder says of its form the worst of the verdicts on the second part, on all runs, and on the third part.

    Args:
        certificate: a certificate, the ladder that the form was found by, or why there is none.
    """
    return {scope: _standing(certificate, scope) for scope in SCOPES}


def _standing(certificate: Certificate | ModelCertificate | Ladder | str, scope: Scope) -> Standing:
    if isinstance(certificate, str):
        return Standing(scope=scope, verdict="none", reasons=(certificate,))
    if isinstance(certificate, Certificate):
        return Standing(scope=scope, verdict=certificate.verdict, reasons=certificate.reasons)
    if isinstance(certificate, ModelCertificate):
        return Standing(scope=scope, verdict=certificate.verdict(scope), reasons=certificate.reasons(scope))
    tests = [test for test in certificate.tests if test.form == certificate.form]
    found: dict[Part, Standing] = {}
    for test in tests:
        found[test.part] = _standing(test.certificate, scope)
    if not found:
        return Standing(scope=scope, verdict="none", reasons=(f"{certificate.form} was not certified",))
    worst = min(found, key=lambda part: _WORST_FIRST.index(found[part].verdict))
    verdict = found[worst].verdict
    if "third" not in found and verdict in ("accept", "inconclusive"):
        return Standing(scope=scope, verdict="none", reasons=(f"{certificate.form} had no last test for {scope}",))
    return Standing(
        scope=scope, verdict=verdict, reasons=tuple(f"{JUDGED_ON[worst]}: {reason}" for reason in found[worst].reasons)
    )
