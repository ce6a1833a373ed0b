"""What a replay allows: engines that are not here, and other versions of what computed the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from tracebridge.checking import ENGINE_NAMES
from tracebridge.checking.result import number_from_json
from tracebridge.report.replay.account import Unknown, Within
from tracebridge.report.tool import tool_document

if TYPE_CHECKING:
    from tracebridge.report.evidence import Evidence

#: Drawn numbers of other versions may be so many Monte-Carlo standard errors, of both together, away.
MONTE_CARLO_ERRORS = 6.0

#: The packages that draw random numbers.
_DRAWING = ("numpy", "scipy")


def other_versions(evidence: Evidence) -> bool:
    """Whether something else computed the record than what is here."""
    recorded = evidence.document["tool"]
    here = tool_document(recorded["engines"])
    return any(recorded[name] != here[name] for name in ("version", "packages"))


def leave_out_engines(
    found: Sequence[dict[str, Any]], recorded: Sequence[Mapping[str, Any]], missing: Mapping[str, str]
) -> None:
    """Make unknown what engines that are not here have to say, in place."""
    if not missing:
        return
    for each, old in zip(found, recorded, strict=False):
        by_name = {result["engine"]: result for result in each["engines"]}
        names = [result["engine"] for result in old["engines"]]
        each["engines"] = [
            Unknown(reason=missing[name]) if name in missing else by_name.pop(name, None) for name in names
        ]
        each["engines"] = [*filter(None, each["engines"]), *by_name.values()]
        disagreed = ("verdict", "at_estimate") if old["agree"] is False else ()
        for key in ("agree", "gap", "allowed", "reason", *disagreed):
            each[key] = Unknown(reason="; ".join(missing.values()))


def allow_for_versions(
    found: Mapping[str, Any], recorded: Mapping[str, Any], evidence: Evidence, versions: Mapping[str, str]
) -> None:
    """Where other versions computed the record, allow what they may have found otherwise, in place."""
    tool = evidence.document["tool"]
    for each, old in zip(found["properties"], recorded["properties"], strict=False):
        _allow_for_rounding(each, old)
    here = tool_document({})["packages"]
    drawn_otherwise = [name for name in _DRAWING if tool["packages"].get(name) != here[name]]
    engines = {ENGINE_NAMES[name]: version for name, version in versions.items()}
    others = {name for name, version in engines.items() if tool["engines"].get(name) != version}
    for each, old in zip(found["properties"], recorded["properties"], strict=False):
        if others:
            _allow_for_engines(each, old, others)
        if drawn_otherwise and each["uncertainty"] is not None:
            each["uncertainty"] = _drawn(each["uncertainty"], f"other versions of {', '.join(drawn_otherwise)}")
        if drawn_otherwise and each["plan"] is not None:
            each["plan"] = Unknown(reason=f"other versions of {', '.join(drawn_otherwise)} draw other futures")
    if drawn_otherwise:
        reason = f"other versions of {', '.join(drawn_otherwise)} draw other numbers"
        for each in found["figures"]["uncertainty"].values():
            each["posterior"] = Unknown(reason=reason)


def _allow_for_rounding(found: dict[str, Any], recorded: Mapping[str, Any]) -> None:
    """The gap of two engines may be any that their bounds allow."""
    if isinstance(found["gap"], float) and isinstance(found["allowed"], float) and recorded["allowed"] is not None:
        allowed = max(found["allowed"], float(number_from_json(recorded["allowed"])))
        found["gap"] = Within(value=found["gap"], allowed=min(allowed, 1e-9), reason="rounding")


def _allow_for_engines(found: dict[str, Any], recorded: Mapping[str, Any], others: set[str]) -> None:
    """Numbers of an engine of another version may lie as far away as the bounds of both reach."""
    for result, old in zip(found["engines"], recorded["engines"], strict=False):
        if isinstance(result, Unknown) or result["engine"] not in others:
            continue
        for enclosure, before in _enclosures(result, old):
            reach = sum(
                float(number_from_json(side["upper"])) - float(number_from_json(side["lower"]))
                for side in (enclosure, before)
            )
            for key in ("value", "lower", "upper"):
                enclosure[key] = Within(value=enclosure[key], allowed=2 * reach, reason="another version of the engine")
    for key in ("gap", "allowed"):
        if not isinstance(found[key], Unknown):
            found[key] = Unknown(reason="another version of an engine")


def _enclosures(
    found: Mapping[str, Any], recorded: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    if found["value"] is not None and recorded["value"] is not None:
        yield found["value"], recorded["value"]
    for operator, before in zip(found["operators"], recorded["operators"], strict=False):
        yield operator["start"], before["start"]


def _drawn(uncertainty: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """The uncertainty of a property as far as its Monte-Carlo error leaves it open."""

    def within(value: Any, error: Any) -> Any:
        known = isinstance(value, float) and isinstance(error, float)
        return Within(value=value, allowed=MONTE_CARLO_ERRORS * sqrt(2) * error, reason=reason) if known else value

    found = dict(uncertainty)
    errors, share_error = found["quantile_errors"], found["share_error"]
    if found["interval"] is not None and errors is not None:
        ends = {
            name: within(found["interval"][name], error) for name, error in zip(("lower", "upper"), errors, strict=True)
        }
        found["mean"] = within(found["mean"], max(errors))
        found["interval"] = {**found["interval"], **ends}
    for name in ("satisfied", "violated"):
        found[name] = within(found[name], share_error)
    for name in ("quantile_errors", "share_error", "reason", "notes"):
        if found[name]:
            found[name] = Unknown(reason=f"{reason}: it goes with the draws")
    return found
