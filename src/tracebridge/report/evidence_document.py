"""Making the document of an evidence file, and the digest that seals it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tracebridge.pctl import explain
from tracebridge.report.assumptions import assumptions_of, limits_of

if TYPE_CHECKING:
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.fit import ChainFit
    from tracebridge.pctl import ast

KIND = "tracebridge-evidence"
SCHEMA_VERSION = 1

#: What is made of the evidence alone, and shows its digest.
RENDERED = "report.html"

#: The roles of inputs that the corpus does not tell of.
BESIDE_CORPUS = frozenset({"properties", "states"})

#: What the files of `corpus` that are no traces are, by the format that the reader gives them.
_ROLES = {"outcomes": "outcomes", "endings": "endings"}


def evidence_document(
    *,
    tool: Mapping[str, Any],
    command: Mapping[str, Any],
    inputs: Sequence[Mapping[str, Any]],
    fit: ChainFit | ExpandedFit,
    properties: Mapping[str, Any],
    resolved: ast.PropertyFile,
    results: Mapping[str, Any],
    files: Mapping[str, str],
) -> dict[str, Any]:
    """The document of evidence.json, with its digest.

    Args:
        tool: of `tool_document`. command: the verb and its options. inputs: of `corpus_inputs` and `input_document`.
        fit: the fit. properties: ``source``, the text as it was given, and the values given for its constants.
        resolved: the same with constants in place. results: of `results_document`.
        files: name to SHA-256 of what lies beside it. What is rendered from the evidence, and may show its digest, is
            not among them: it can be rendered again.
    """
    document = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "tool": dict(tool),
        "command": dict(command),
        "inputs": [dict(each) for each in inputs],
        "chain": fit.to_dict(),
        "properties": dict(properties),
        "results": dict(results),
        "readings": readings_of(resolved),
        "assumptions": assumptions_of(results),
        "limits": limits_of(results, fit),
        "files": dict(sorted(files.items())),
    }
    return {**document, "digest": digest_of(document)}


def readings_of(resolved: ast.PropertyFile) -> list[dict[str, Any]]:
    """Each property in plain language, in the order of the file."""
    return [{"name": each.name, "text": explain(each.formula)} for each in resolved.properties]


def corpus_inputs(corpus: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The files that the corpus says it was read from, as inputs."""
    return [
        {
            "role": _ROLES.get(file["format"], "traces"),
            "name": file["path"],
            **({"bytes": file["bytes"]} if "bytes" in file else {}),
            "sha256": file["sha256"],
        }
        for file in corpus["files"]
    ]


def input_document(role: Literal["properties", "states"], path: str | Path, data: bytes) -> dict[str, Any]:
    """A file that was read beside the corpus, as an input; standard input has no name."""
    name = None if str(path) == "-" else Path(path).name
    return {"role": role, "name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def digest_of(document: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal, of the canonical serialisation of a document without its ``digest``.

    That is JSON in ASCII with sorted keys and no space, doubles in their shortest form.
    """
    rest = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def constants_to_json(constants: Mapping[str, Fraction | bool]) -> dict[str, str | bool]:
    """Values of constants: truth values, and exact numbers as text."""
    return {name: value if isinstance(value, bool) else str(value) for name, value in sorted(constants.items())}
