"""Whether an evidence file is the one that was sealed, and contradicts itself nowhere; no engine is asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.report.evidence_document import digest_of

if TYPE_CHECKING:
    from tracebridge.report.evidence import Evidence

_MOST_PLACES = 3


def unsoundness(evidence: Evidence) -> tuple[str, ...]:
    """Why nothing should rest on this file, as sentences without a full stop; none if it is sound.

    A sound file may still be forged: `tracebridge.replay` computes its numbers again.
    """
    from tracebridge.report.replay.consistency import inconsistencies

    found = []
    if digest_of(evidence.document) != evidence.digest:
        found.append("its digest does not fit its content: it was changed after it was written")
    places = list(dict.fromkeys(each.path for each in inconsistencies(evidence)))
    if places:
        more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        found.append(f"it contradicts itself: {', '.join(places[:_MOST_PLACES])}{more}")
    return tuple(found)
