"""A small corpus and its evidence, made in a moment by one engine."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

from tracebridge.pipeline import Assessment, assess
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import digest_of

PROPERTIES = """\
// What is asked of the agent.
const int d = 3;
//@ requirement R1
//@ credible 0.9
"ok": P>=0.3 [ F "success" ];
"within": P=? [ F<=d "success" ];
"steps": R{"steps"}=? [ F "absorbed" ];
"twice": pow(P=? [ F "success" ], 2);
"""

SETTINGS: dict[str, Any] = {
    "engines": ["closed-form"],
    "draws": 40,
    "resamples": 10,
    "replicates": 19,
    "futures": 0,
}


def write_corpus(
    folder: Path, *, name: str = "runs.jsonl", seed: int = 1, success: float = 0.5, tasks: int = 8
) -> Path:
    """Forty runs of some tasks over two tools, a tenth of them censored."""
    rng = random.Random(seed)
    lines = []
    for i in range(40):
        steps = [{"kind": "tool", "name": rng.choice(["plan", "search"])} for _ in range(rng.randint(1, 4))]
        outcome = rng.choices(["success", "failure", "censored"], [success, 0.9 - success, 0.1])[0]
        run = {
            "trace_id": f"r{i}",
            "task_id": f"t{i % tasks}",
            "trial": str(i // tasks),
            "steps": steps,
            "outcome": outcome,
        }
        lines.append(json.dumps(run))
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def assess_small(folder: Path, **options: Any) -> Assessment:
    """The evidence of such a corpus in ``folder / "out"``; the traces and properties lie beside that."""
    properties = folder / "agent.props"
    properties.write_text(PROPERTIES)
    corpus = write_corpus(
        folder, **{name: options.pop(name) for name in ("seed", "success", "tasks") if name in options}
    )
    return assess([corpus], properties, output=folder / "out", force=True, **{**SETTINGS, **options})


def edited(evidence: Evidence, place: list[Any], value: Any, *, sealed: bool = True) -> Evidence:
    """The evidence with another value at a place, and with the digest of what it then says if it is sealed again."""
    document = copy.deepcopy(dict(evidence.document))
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    if sealed:
        document["digest"] = digest_of(document)
    return Evidence(document=document)


def leaves(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[list[Any], Any]]:
    """Every place in a JSON document that holds no object and no list, with what is there."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in leaves(item, (*place, key))]
    if isinstance(value, list):
        return [found for i, item in enumerate(value) for found in leaves(item, (*place, i))]
    return [([*place], value)]
