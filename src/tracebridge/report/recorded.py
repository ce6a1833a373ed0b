"""What `assess` wrote about a chain.json, found again beside it: the verdicts of its certificate.

The file is input like any other: it counts only if it says the hash of the chain.json that it lies beside, and its
words are shown as those of that record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.inference.expanded.standing import Standing, StandingVerdict
from tracebridge.traces.problems import escaped

if TYPE_CHECKING:
    from tracebridge.inference.expanded.scope import Scope

RESULTS = "results.json"

_KIND = "tracebridge-results"
_MOST_BYTES = 64 * 2**20
_LONGEST_REASON = 500
_MOST_REASONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStandings:
    """What was written beside a chain.json.

    Attributes:
        path: of the record. standings: of each scope; None if the record is about another chain.json, or an older one.
    """

    path: Path
    standings: Mapping[Scope, Standing] | None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        found = self.standings or {}
        return {"path": str(self.path), "standings": {scope: each.to_dict() for scope, each in found.items()}}


class _Standing(msgspec.Struct):
    verdict: StandingVerdict
    reasons: list[str]


class _Both(msgspec.Struct):
    timing: _Standing
    path: _Standing


class _Results(msgspec.Struct):
    kind: str
    files: dict[str, str]
    standings: _Both


def recorded_standings(chain: str | Path) -> RecordedStandings | None:
    """The record in the folder of a chain.json; None where there is none that can be read."""
    record = Path(chain).with_name(RESULTS)
    try:
        if not record.is_file() or record.stat().st_size > _MOST_BYTES:
            return None
        results = msgspec.json.decode(record.read_bytes(), type=_Results)
        with Path(chain).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError, RecursionError):  # no record of ours: msgspec's errors are ValueErrors
        return None
    if results.kind != _KIND:
        return None
    if results.files.get(Path(chain).name) != found:
        return RecordedStandings(path=record, standings=None)
    both = results.standings
    standings: dict[Scope, Standing] = {
        "timing": _standing("timing", both.timing),
        "path": _standing("path", both.path),
    }
    return RecordedStandings(path=record, standings=standings)


def _standing(scope: Scope, found: _Standing) -> Standing:
    reasons = tuple(escaped(reason, _LONGEST_REASON) for reason in found.reasons[:_MOST_REASONS])
    return Standing(scope=scope, verdict=found.verdict, reasons=reasons)
