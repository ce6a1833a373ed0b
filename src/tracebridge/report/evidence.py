"""``evidence.json``: one document with all that an assessment found and all that it takes to find it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracebridge.chain import ChainFit
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.expanded.naming import VARIABLES
from tracebridge.html_table import html_paragraph, html_table
from tracebridge.pctl import ast, parse_properties, resolve_constants

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """An assessment as a reviewer receives it.

    Attributes:
        document: the JSON values of evidence.json.
        folder: where it was read, with the files that it names beside it; None if it was not read from a file.
    """

    document: Mapping[str, Any]
    folder: Path | None = None

    @property
    def results(self) -> Mapping[str, Any]:
        """What results.json holds; see `results_document`."""
        results: Mapping[str, Any] = self.document["results"]
        return results

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the command, by the names of Python's arguments."""
        options: Mapping[str, Any] = self.document["command"]["options"]
        return options

    @property
    def digest(self) -> str:
        """What seals the document; see `tracebridge.report.evidence_document.digest_of`."""
        return str(self.document["digest"])

    @property
    def exit_code(self) -> int:
        """The worst over all properties, as recorded."""
        return int(self.results["exit_code"])

    @cached_property
    def fit(self) -> ChainFit | ExpandedFit:
        """The fit, restored from its document.

        Raises:
            ModelError: it is none.
        """
        chain = self.document["chain"]
        return ExpandedFit.from_dict(chain) if "form" in chain else ChainFit.from_dict(chain)

    @cached_property
    def base(self) -> ChainFit:
        """The first-order fit of the same runs, which follows from the counts, whatever chain is written beside them.

        Raises:
            ModelError: the counts are none.
        """
        chain = self.document["chain"]
        return ChainFit.refitted(chain.get("base") if "form" in chain else chain, "chain")

    @cached_property
    def properties(self) -> ast.PropertyFile:
        """The properties as they were given, their constants not yet resolved.

        Raises:
            PropertyError: they are none.
        """
        return parse_properties(self.document["properties"]["source"], path="properties.source")

    @property
    def constants(self) -> dict[str, Fraction | bool]:
        """The values that were given for constants, beside those in the property file."""
        given: Mapping[str, str | bool] = self.document["properties"]["constants"]
        return {name: value if isinstance(value, bool) else Fraction(value) for name, value in given.items()}

    @cached_property
    def resolved(self) -> ast.PropertyFile:
        """The properties with their constants in place.

        Raises:
            PropertyError: a constant has no value.
        """
        variables = VARIABLES if "form" in self.document["chain"] else ()
        return resolve_constants(self.properties, self.constants, variables=variables)

    def to_records(self) -> list[dict[str, Any]]:
        """One record a property: what it asks, verdict, marks, value, interval, and how far the engines are apart."""
        return [_record(item) for item in self.results["properties"]]

    def _repr_html_(self) -> str:
        records = self.to_records()
        reasons = [
            f"certificate for {scope}: {'; '.join([standing['verdict'], *standing['reasons']])}"
            for scope, standing in self.results["standings"].items()
        ]
        heads = list(records[0]) if records else []
        table = html_table(heads, [list(each.values()) for each in records], noun="properties")
        return html_paragraph(repr(self)[1:-1], reasons) + table

    def __repr__(self) -> str:
        return f"<Evidence of {len(self.results['properties'])} properties, digest {self.digest[:12]}>"


def _record(item: Mapping[str, Any]) -> dict[str, Any]:
    found = item["uncertainty"] or {}
    interval = found.get("interval") or {}
    values = [engine["value"]["value"] for engine in item["engines"] if engine["value"] is not None]
    return {
        "requirement": item["annotations"].get("requirement"),
        "property": item["name"],
        "formula": item["formula"],
        "verdict": item["verdict"] or "answered",
        "marks": ", ".join(item["marks"]),
        "value": values[0] if values else None,
        "lower": interval.get("lower"),
        "upper": interval.get("upper"),
        "satisfied": found.get("satisfied"),
        "agree": item["agree"],
        "gap": item["gap"],
    }
