"""Whether an evidence file is the one that was sealed, and contradicts itself nowhere; no engine is asked for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tracebridge.errors import ModelError
from tracebridge.report.evidence_document import digest_of
from tracebridge.report.evidence_reading import hash_beside, is_plain_name
from tracebridge.traces.problems import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
        found.append(f"it contradicts itself: {_first(places)}")
    return tuple(found)


def altered_files(evidence: Evidence) -> tuple[str, ...]:
    """What is wrong with the files that the evidence names, as far as they lie beside it; none of them has to."""
    if evidence.folder is None:
        return ()
    altered = [
        name for name, sha256 in evidence.document["files"].items() if _is_another(evidence.folder, name, sha256)
    ]
    if not altered:
        return ()
    return (f"what is beside it is not what was recorded: {_first([shown(name) for name in altered])}",)


def _first(places: Sequence[str]) -> str:
    more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    return ", ".join(places[:_MOST_PLACES]) + more


def _is_another(folder: Path, name: str, sha256: str) -> bool:
    try:
        return hash_beside(folder, name) != sha256
    except ModelError:
        return not is_plain_name(name) or os.path.lexists(folder / name)
