"""``results.json``: everything a run found, with every digit, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tracebridge.chain.counts import CensoringPolicy, TransitionCounts
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.checking.result import number_to_json
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.report.ending_choices import ending_choices_to_dict
from tracebridge.states.model_form import FIRST_ORDER
from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.report.findings import Findings

#: Version 2 added certificate, marks, observed, notes, and what the data say about each number; version 3 models,
#: standings and the ladder.
SCHEMA_VERSION = 3
POLICIES: tuple[CensoringPolicy, ...] = ("censored", "failure", "drop")

#: What every number of a first-order chain rests on.
FIRST_ORDER_ASSUMPTIONS = (
    "What happens next depends on the current state alone (first order).",
    "It does so in the same way at every step (time-homogeneous).",
)

#: What every number of a fitted chain rests on.
ASSUMPTIONS = (
    "Runs are independent and alike; runs of the same task are usually neither.",
    "Whether a run is censored does not depend on how it would have ended, given its states (no test can tell).",
)


def assumption_notes(findings: Findings) -> list[str]:
    """The assumptions, and which of them were tested."""
    certificate, fit = findings.certificate, findings.fit
    first = [*FIRST_ORDER_ASSUMPTIONS]
    if isinstance(fit, ExpandedFit):
        first = [f"What happens next depends on what a state of {fit.form} holds, in the same way in every run."]
    assumptions = [*first, *ASSUMPTIONS]
    if isinstance(certificate, str):
        return [*assumptions, f"Nothing of this was tested: {certificate}."]
    if isinstance(certificate, ModelCertificate):
        verdicts = ", ".join(f"{scope} {standing.verdict}" for scope, standing in findings.standings.items())
        told = (
            f"The certificate tests the first of these, given the other two, which it does not test. Its verdicts: "
            f"{verdicts}."
        )
        return [*assumptions, told]
    tested = "The certificate tests the first two"
    names = [each.covariate for each in certificate.covariates if each.p is not None]
    tested += f", and the third by whether runs differ by {', '.join(names)}" if names else "; the third is not tested"
    return [*assumptions, f"{tested}. Its verdict: {certificate.verdict}."]


def results_document(findings: Findings, *, files: Mapping[str, str]) -> dict[str, Any]:
    """The document that `assess` writes.

    Args:
        findings: everything. files: name to SHA-256 of what was written beside it.
    """
    fit, figures, certificate = findings.fit, findings.figures, findings.certificate
    shown: dict[str, Any] = {"missing": figures} if isinstance(figures, str) else figures.to_dict()
    uncertainty = {name: found.to_dict() for name, found in findings.figure_uncertainty.items()}
    return {
        "kind": "tracebridge-results",
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "tracebridge", "version": __version__, "engines": dict(findings.engines)},
        "corpus": dict(findings.corpus),
        "fit": {
            "model": str(fit.form) if isinstance(fit, ExpandedFit) else FIRST_ORDER,
            "kappa": fit.kappa if isinstance(fit, ExpandedFit) else None,
            "states": list(fit.chain.states),
            "prior": str(fit.prior),
            "support": fit.support,
            "censored": fit.policy,
            "profile": fit.profile,
            "notes": list(fit.notes),
            "pass_rate": {policy: rate_to_json(fit.counts, policy) for policy in POLICIES},
            **_weighted_rates(fit),
            "mean_length": length_to_json(fit, fit.policy),
        },
        "mark": findings.mark,
        "certificate": {"missing": certificate} if isinstance(certificate, str) else certificate.to_dict(),
        "standings": {scope: standing.to_dict() for scope, standing in findings.standings.items()},
        "ladder": None if findings.ladder is None else findings.ladder.to_dict(),
        "figures": {**shown, "mark": findings.mark, "uncertainty": uncertainty},
        "observed": None if findings.observed is None else findings.observed.to_dict(),
        "reliability_bounds": None if findings.bounds is None else findings.bounds.to_dict(),
        "ending_choices": None if findings.ending_choices is None else ending_choices_to_dict(findings.ending_choices),
        "advice": list(findings.advice),
        "assumptions": assumption_notes(findings),
        "notes": list(findings.notes),
        "exact": findings.exact,
        "properties": [each.to_dict() for each in findings.properties],
        "exit_code": findings.exit_code,
        "files": dict(files),
    }


def prior_text(prior: str, support: str) -> str:
    """The prior of a fit and its support, in words; without a prior, no support gives what was not seen a probability.

    Args:
        prior, support: as `results_document` writes them.
    """
    return "no prior: observed transitions only" if prior in {"none", "0"} else f"prior {prior}, {support} support"


def rate_to_json(counts: TransitionCounts, policy: CensoringPolicy) -> str | None:
    """A pass rate as ``"successes/runs"``, None without runs."""
    rate = counts.pass_rate(policy)
    return None if rate is None else str(number_to_json(rate))


def _weighted_rates(fit: ChainFit | ExpandedFit) -> dict[str, Any]:
    """The same of the runs with their weights, where they have some."""
    if fit.weighted is None:
        return {}
    counts = fit.weighted.weighted
    return {"weighted_pass_rate": {policy: rate_to_json(counts, policy) for policy in POLICIES}}


def length_to_json(fit: ChainFit | ExpandedFit, policy: CensoringPolicy) -> str | None:
    """A mean length as a fraction, None without runs."""
    length = fit.counts.mean_length(policy)
    return None if length is None else str(number_to_json(length))
