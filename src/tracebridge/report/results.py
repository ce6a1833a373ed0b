"""``results.json``: everything a run found, with every digit, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracebridge.agreement import Agreement, worst_exit_code
from tracebridge.chain.counts import CensoringPolicy
from tracebridge.checking.result import number_to_json
from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.report.figures import KeyFigures

SCHEMA_VERSION = 1
POLICIES: tuple[CensoringPolicy, ...] = ("censored", "failure", "drop")

#: What every number of a fitted chain rests on, and that this version does not test it.
ASSUMPTIONS = (
    "What happens next depends on the current state alone (first order). Not tested by this version.",
    "It does so in the same way at every step (time-homogeneous). Not tested by this version.",
    "Runs are independent; runs of the same task are usually not. Not tested by this version.",
    "Whether a run is censored does not depend on how it would have ended, given its states.",
)


def results_document(
    *,
    corpus: Mapping[str, Any],
    fit: ChainFit,
    figures: KeyFigures | str,
    agreements: Sequence[Agreement],
    engines: Mapping[str, str],
    exact: bool,
    files: Mapping[str, str],
) -> dict[str, Any]:
    """The document that `assess` writes.

    Args:
        corpus: what was read, as `TraceSummary.to_dict` and the reader say.
        fit: the fit. figures: its headline numbers, or why there are none. agreements: one a property.
        engines: engine name to version. exact: whether rationals were asked for.
        files: name to SHA-256 of what was written.
    """
    return {
        "kind": "tracebridge-results",
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "tracebridge", "version": __version__, "engines": dict(engines)},
        "corpus": dict(corpus),
        "fit": {
            "states": list(fit.chain.states),
            "prior": str(fit.prior),
            "support": fit.support,
            "censored": fit.policy,
            "profile": fit.profile,
            "notes": list(fit.notes),
            "pass_rate": {policy: rate_to_json(fit, policy) for policy in POLICIES},
            "mean_length": length_to_json(fit, fit.policy),
        },
        "figures": {"missing": figures} if isinstance(figures, str) else figures.to_dict(),
        "assumptions": list(ASSUMPTIONS),
        "exact": exact,
        "properties": [agreement.to_dict() for agreement in agreements],
        "exit_code": worst_exit_code([agreement.exit_code for agreement in agreements]),
        "files": dict(files),
    }


def rate_to_json(fit: ChainFit, policy: CensoringPolicy) -> str | None:
    """A pass rate as ``"successes/runs"``, None without runs."""
    rate = fit.counts.pass_rate(policy)
    return None if rate is None else str(number_to_json(rate))


def length_to_json(fit: ChainFit, policy: CensoringPolicy) -> str | None:
    """A mean length as a fraction, None without runs."""
    length = fit.counts.mean_length(policy)
    return None if length is None else str(number_to_json(length))
